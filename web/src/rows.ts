// Slices by row: the slices of one depth are disjoint and in time order, so that a row is found by
// bisection and painted by galloping.
import type { Slices } from './columns';

export interface Rows {
	n: number;
	depth: number;        // number of rows
	first: Uint32Array;   // of row r: first[r] .. first[r + 1]
	start: Float64Array;
	end: Float64Array;
	method: Uint32Array;
	merged: Uint32Array | null;
}

/** How many slices each row holds, as first[r + 1]; `more`: calls open at the first chunk, too. */
function counts(chunks: Slices[], more: number): Uint32Array {
	let depth = more;
	for (const c of chunks) for (let i = 0; i < c.n; i++) if (c.depth[i] >= depth) depth = c.depth[i] + 1;
	const first = new Uint32Array(depth + 1);
	for (let r = 0; r < more; r++) first[r + 1]++;
	for (const c of chunks) for (let i = 0; i < c.n; i++) first[c.depth[i] + 1]++;
	for (let r = 0; r < depth; r++) first[r + 1] += first[r];
	return first;
}

/** One counting sort by depth; pre-order keeps the time order within a row.  `part`: the chunks begin
 *  amid the thread, so that what is open there belongs to them. */
export function toRows(chunks: Slices[], part = false): Rows {
	const open = part && chunks.length > 0 ? chunks[0].open : new Float64Array(0);
	const first = counts(chunks, open.length / 3);
	const at = first.slice();
	const n = first[first.length - 1];
	const merged = chunks.some((c) => c.merged !== null);
	const rows: Rows = { n, depth: first.length - 1, first, start: new Float64Array(n), end: new Float64Array(n),
		method: new Uint32Array(n), merged: merged ? new Uint32Array(n) : null };
	for (let r = 0; r * 3 < open.length; r++) {
		const k = at[r]++;
		rows.start[k] = open[3 * r];
		rows.end[k] = open[3 * r] + open[3 * r + 1];
		rows.method[k] = open[3 * r + 2];
	}
	for (const c of chunks)
		for (let i = 0; i < c.n; i++) {
			const k = at[c.depth[i]]++;
			rows.start[k] = c.start[i];
			rows.end[k] = c.start[i] + c.dur[i];
			rows.method[k] = c.method[i];
			if (rows.merged && c.merged) rows.merged[k] = c.merged[i];
		}
	return rows;
}

/** The first slice of [lo, hi) that ends after t. */
export function firstEndingAfter(end: Float64Array, lo: number, hi: number, t: number): number {
	while (lo < hi) {
		const mid = (lo + hi) >>> 1;
		if (end[mid] <= t) lo = mid + 1;
		else hi = mid;
	}
	return lo;
}

/** The same from `at` on, by doubling steps: near ones are found at once. */
export function gallop(end: Float64Array, at: number, hi: number, t: number): number {
	let step = 1;
	let lo = at;
	if (at >= hi || end[at] > t) return at;
	while (lo + step < hi && end[lo + step] <= t) {
		lo += step;
		step *= 2;
	}
	return firstEndingAfter(end, lo, Math.min(hi, lo + step + 1), t);
}

/** The slice of a row at time t, or -1. */
export function sliceAt(rows: Rows, row: number, t: number): number {
	if (row < 0 || row >= rows.depth) return -1;
	const k = firstEndingAfter(rows.end, rows.first[row], rows.first[row + 1], t);
	return k < rows.first[row + 1] && rows.start[k] <= t ? k : -1;
}
