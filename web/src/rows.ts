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

/** One counting sort by depth; pre-order keeps the time order within a row. */
export function toRows(chunks: Slices[]): Rows {
	let depth = 0;
	let n = 0;
	let merged = false;
	for (const c of chunks) {
		n += c.n;
		merged ||= c.merged !== null;
		for (let i = 0; i < c.n; i++) if (c.depth[i] >= depth) depth = c.depth[i] + 1;
	}
	const first = new Uint32Array(depth + 1);
	for (const c of chunks) for (let i = 0; i < c.n; i++) first[c.depth[i] + 1]++;
	for (let r = 0; r < depth; r++) first[r + 1] += first[r];
	const at = first.slice();
	const rows: Rows = { n, depth, first, start: new Float64Array(n), end: new Float64Array(n),
		method: new Uint32Array(n), merged: merged ? new Uint32Array(n) : null };
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
