// Lines of the table of a range, and of two ranges side by side.
import type { NoteSum } from '../../api/api';
import { trackTitle } from '../state/notekinds';

/** A row of the table: name, count, duration; a counter has values instead of a duration. */
export interface Row {
	key: string;
	name: string;
	n: number;
	ns: number | null;
	more: string;
	method?: number;
}

/** Sums of notes by kind and text, over threads. */
export function noteRows(sums: NoteSum[], state: boolean): Row[] {
	const rows = new Map<string, Row>();
	for (const s of sums) {
		if ((s.kind === 'state') !== state || s.kind === 'counter') continue;
		const key = `${s.kind} ${s.text}`;
		const row = rows.get(key) ?? { key, name: state ? s.text : trackTitle(s.kind, s.text), n: 0, ns: 0, more: '' };
		row.n += s.notes;
		row.ns! += s.dur_ns;
		rows.set(key, row);
	}
	return [...rows.values()].sort((a, b) => b.ns! - a.ns! || b.n - a.n);
}

export interface Pair {
	row: Row;
	base: Row | null; // null: nothing of it there
	change: number; // ns, or how many where nothing lasts
}

/** Rows of both ranges, what changed most first. */
export function compared(rows: Row[], base: Row[]): Pair[] {
	const there = new Map(base.map((r) => [r.key, r]));
	const here = new Set(rows.map((r) => r.key));
	const weight = (r: Row | null) => (r ? r.ns ?? r.n : 0);
	return [...rows, ...base.filter((r) => !here.has(r.key)).map((r) => ({ ...r, n: 0, ns: r.ns === null ? null : 0, more: '' }))]
		.map((row) => ({ row, base: there.get(row.key) ?? null, change: weight(row) - weight(there.get(row.key) ?? null) }))
		.sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
}
