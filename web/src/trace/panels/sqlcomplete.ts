// Completion of table and column names, and the history of statements.
export interface Completion { from: number; names: string[] } // the word begins at `from`

/** Names for the word that ends at the cursor: a column of the table before a dot, otherwise tables and columns, those of the
 *  statement's tables first. `tables`: as "slice(id, name)". */
export function completionOf(sql: string, cursor: number, tables: string[]): Completion | null {
	const [, owner, word] = /(?:(\w+)\.)?(\w*)$/.exec(sql.slice(0, cursor)) ?? [];
	if (word === undefined || (!word && !owner) || /^\d/.test(word) || /\w/.test(sql.charAt(cursor)) || (sql.slice(0, cursor).split("'").length & 1) === 0) return null; // within a text
	const all = tables.map((t): [string, string[]] => { const [name, columns] = t.slice(0, -1).split('('); return [name, columns.split(', ')]; });
	const used = all.filter(([name]) => new RegExp(`\\b(from|join)\\s+${name}\\b`, 'i').test(sql));
	const alias = (name: string) => new RegExp(`\\b${name}\\s+(?:as\\s+)?${owner}\\b`, 'i').test(sql);
	const of = owner ? all.filter(([name]) => name === owner || alias(name)).flatMap(([, columns]) => columns)
		: /\b(from|join)\s+\w*$/i.test(sql.slice(0, cursor)) ? all.map(([name]) => name)
			: [...used.flatMap(([, columns]) => columns), ...all.map(([name]) => name), ...all.flatMap(([, columns]) => columns)];
	const names = [...new Set(of)].filter((n) => n.startsWith(word.toLowerCase()) && n !== word);
	return names.length ? { from: cursor - word.length, names: names.slice(0, 8) } : null;
}

const KEY = 'tracewell-sql', MAX_STATEMENTS = 10;

/** Statements run in this browser, the last one first. */
export function statementsRun(): string[] {
	try {
		return (JSON.parse(localStorage.getItem(KEY) ?? '[]') as string[]).filter((s) => typeof s === 'string');
	} catch {
		return []; // nothing stored, or not valid JSON
	}
}

export function rememberStatement(sql: string): void {
	try {
		localStorage.setItem(KEY, JSON.stringify([sql, ...statementsRun().filter((s) => s !== sql)].slice(0, MAX_STATEMENTS)));
	} catch {
		// storage is full or disabled
	}
}
