// The SQL statements that were run last, per project, in this browser until the user signs out.
import { currentProject } from '../../api/api';

const KEY = 'tracewell-sql', MAX_STATEMENTS = 10;
const keyNow = () => `${KEY} ${currentProject()}`;

/** Statements run in this project, the last one first. */
export function statementsRun(): string[] {
	try {
		return (JSON.parse(localStorage.getItem(keyNow()) ?? '[]') as string[]).filter((s) => typeof s === 'string');
	} catch {
		return []; // nothing stored, or not valid JSON
	}
}

export function rememberStatement(sql: string): void {
	try {
		localStorage.setItem(keyNow(), JSON.stringify([sql, ...statementsRun().filter((s) => s !== sql)].slice(0, MAX_STATEMENTS)));
	} catch {
		// storage is full or disabled
	}
}

/** In all projects: the next user of this browser may be another person. */
export function clearStatements(): void {
	try {
		for (const key of Object.keys(localStorage)) if (key.startsWith(KEY)) localStorage.removeItem(key);
	} catch {
		// storage is disabled
	}
}
