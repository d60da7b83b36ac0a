// The meaning of an SQL result's columns for the page: durations, and rows that are calls.
import type { Thread } from '../../api/api';

export type Value = string | number | null;
export interface Result {
	columns: string[];
	rows: Value[][];
	truncated: boolean;
}

export interface Place {
	tid: number;
	start_ns: number;
	dur_ns: number;
	depth: number | null; // null: a time, not one call
}

/** Finds the call of a row by its columns ts_ns, dur_ns, thread_id or tid, and depth; null if they do not name a time of a thread. */
export function placer(columns: string[], threads: Thread[]): ((row: Value[]) => Place | null) | null {
	const at = (name: string) => columns.indexOf(name);
	const [ts, dur, thread, tid, depth] = ['ts_ns', 'dur_ns', 'thread_id', 'tid', 'depth'].map(at);
	if (ts < 0 || (thread < 0 && tid < 0)) return null;
	const tids = new Map(threads.map((t) => [t.thread_id, t.tid]));
	const number = (row: Value[], i: number) => (i >= 0 && typeof row[i] === 'number' ? row[i] as number : null);
	return (row) => {
		const start = number(row, ts);
		const of = tid >= 0 ? number(row, tid) : tids.get(number(row, thread) ?? -1) ?? null;
		if (start === null || of === null || !threads.some((t) => t.tid === of)) return null;
		const length = number(row, dur);
		return { tid: of, start_ns: start, dur_ns: length ?? 0, depth: length === null ? null : number(row, depth) };
	};
}

/** A column of durations in nanoseconds. */
export const isDuration = (column: string): boolean => /_ns$/.test(column) && column !== 'ts_ns';

/** A saved query is the part of a trace's address that shows it. */
export const savedSql = (sql: string): string => new URLSearchParams({ tab: 'sql', sql }).toString();
export const sqlOf = (query: string): string => new URLSearchParams(query).get('sql') ?? '';
