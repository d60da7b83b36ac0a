// Completion of table and column names in a statement.
const LONGEST = 200; // a longer word is not a name

export interface Completion { from: number; names: string[] } // the word begins at `from`

/** Names for the word that ends at the cursor: a column of the table before a dot, otherwise tables and columns, those of the
 *  statement's tables first; none where a new name follows: after AS, the name of a table or `)`. `tables`: as "slice(id, name)". */
export function completionOf(sql: string, cursor: number, tables: string[]): Completion | null {
	const before = sql.slice(Math.max(0, cursor - LONGEST), cursor);
	const [, owner, word] = /(?:(\w+)\.)?(\w*)$/.exec(before) ?? [];
	if (word === undefined || (!word && !owner) || /^\d/.test(word) || /\w/.test(sql.charAt(cursor)) || (sql.slice(0, cursor).split("'").length & 1) === 0) return null; // within a text
	const all = tables.map((t): [string, string[]] => { const [name, columns] = t.slice(0, -1).split('('); return [name, columns.split(', ')]; });
	if (!owner && new RegExp(`(\\)\\s*|\\b(as|${all.map(([name]) => name).join('|')})\\s+)\\w*$`, 'i').test(before)) return null;
	const used = all.filter(([name]) => new RegExp(`\\b(from|join)\\s+${name}\\b`, 'i').test(sql));
	const alias = (name: string) => new RegExp(`\\b${name}\\s+(?:as\\s+)?${owner}\\b`, 'i').test(sql);
	const of = owner ? all.filter(([name]) => name === owner || alias(name)).flatMap(([, columns]) => columns)
		: /\b(from|join)\s+\w*$/i.test(before) ? all.map(([name]) => name)
			: [...used.flatMap(([, columns]) => columns), ...all.map(([name]) => name), ...all.flatMap(([, columns]) => columns)];
	const names = [...new Set(of)].filter((n) => n.startsWith(word.toLowerCase()) && n !== word);
	return names.length ? { from: cursor - word.length, names: names.slice(0, 8) } : null;
}
