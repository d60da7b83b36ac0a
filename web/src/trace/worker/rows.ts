// Slices by row: the slices of one depth are disjoint and in time order, so that a row is found by
// bisection and painted by galloping.
import { DamagedChunk, type Payload, type Places } from './columns';

const WORD = 2 ** 32;
const HALF = 2 ** 16;
const LONG = WORD - 1; // marks a length that is stored separately

/** The same numbers in a wider array. */
function wider(list: Uint16Array | Uint32Array): Uint32Array {
	return list instanceof Uint32Array ? list : Uint32Array.from(list);
}

/** Times are exact and take 8 bytes a slice: a begin by its distance from the first, and a length.  What
 *  few threads need (begins 4.3 s and more after the first, lengths beyond that, methods beyond 65,536) is
 *  there from the first slice on that needs it. */
export class Rows implements Places {
	readonly n: number;
	readonly depth: number; // number of rows
	readonly merged: Uint32Array | null; // calls drawn as one; 0: one
	method: Uint16Array | Uint32Array;
	private readonly low: Uint32Array; // of begin - base
	private high: Uint16Array | Uint32Array | null = null;
	private readonly lengths: Uint32Array;
	private readonly long = new Map<number, number>();

	/** first: of row r: first[r] .. first[r + 1]; base: no slice begins before. */
	constructor(readonly first: Uint32Array, private readonly base: number, merged: boolean) {
		this.depth = first.length - 1;
		this.n = first[this.depth];
		this.low = new Uint32Array(this.n);
		this.lengths = new Uint32Array(this.n);
		this.method = new Uint16Array(this.n);
		this.merged = merged ? new Uint32Array(this.n) : null;
	}

	start(k: number): number {
		return this.base + this.low[k] + (this.high ? this.high[k] * WORD : 0);
	}

	length(k: number): number {
		const d = this.lengths[k];
		return d === LONG ? this.long.get(k)! : d;
	}

	end(k: number): number {
		return this.start(k) + this.length(k);
	}

	begin(at: number, start: number, method: number, merged: number): void {
		const after = start - this.base;
		if (!(after >= 0)) throw new DamagedChunk('a call begins before its thread');
		this.low[at] = after;
		if (after >= WORD) this.begunLate(at, Math.floor(after / WORD));
		if (method >= HALF) this.method = wider(this.method);
		this.method[at] = method;
		if (this.merged) this.merged[at] = merged;
	}

	private begunLate(at: number, words: number): void {
		this.high ??= new Uint16Array(this.n);
		if (words >= HALF) this.high = wider(this.high);
		this.high[at] = words;
	}

	finish(at: number, end: number): void {
		const length = end - this.start(at);
		this.lengths[at] = Math.min(length, LONG);
		if (length >= LONG) this.long.set(at, length);
	}
}

/** Where each row begins, as first[r]; `more`: calls open at the first chunk, too. */
function begins(chunks: Payload[], more: number): Uint32Array {
	const counts: number[] = new Array(more).fill(1);
	for (const c of chunks) c.countDepths(counts);
	const first = new Uint32Array(counts.length + 1);
	for (let r = 0; r < counts.length; r++) first[r + 1] = first[r] + (counts[r] ?? 0);
	return first;
}

/** A counting sort by depth; pre-order keeps the time order within a row.  The chunks are used up.
 *  `part`: they begin amid the thread, so that what is open there belongs to them; `breathe`: handles
 *  pending messages between two chunks. */
export async function toRows(chunks: Payload[], part = false, breathe?: () => Promise<void>): Promise<Rows> {
	const open = part && chunks.length > 0 ? chunks[0].open : new Float64Array(0);
	const first = begins(chunks, open.length / 3);
	const at = first.slice();
	const rows = new Rows(first, chunks[0]?.earliest ?? 0, chunks.some((c) => c.merged));
	for (let r = 0; r * 3 < open.length; r++) {
		const k = at[r]++;
		rows.begin(k, open[3 * r], open[3 * r + 2], 0);
		rows.finish(k, open[3 * r] + open[3 * r + 1]);
	}
	for (const c of chunks) {
		c.read(rows, at);
		c.free();
		await breathe?.();
	}
	return rows;
}

/** The first slice of [lo, hi) that ends after t. */
export function firstEndingAfter(rows: Rows, lo: number, hi: number, t: number): number {
	while (lo < hi) {
		const mid = (lo + hi) >>> 1;
		if (rows.end(mid) <= t) lo = mid + 1;
		else hi = mid;
	}
	return lo;
}

/** The same from `at` on, by doubling steps: near ones are found quickly. */
export function gallop(rows: Rows, at: number, hi: number, t: number): number {
	let step = 1;
	let lo = at;
	if (at >= hi || rows.end(at) > t) return at;
	while (lo + step < hi && rows.end(lo + step) <= t) {
		lo += step;
		step *= 2;
	}
	return firstEndingAfter(rows, lo, Math.min(hi, lo + step + 1), t);
}

/** The slice of a row at time t, or -1. */
export function sliceAt(rows: Rows, row: number, t: number): number {
	if (row < 0 || row >= rows.depth) return -1;
	const k = firstEndingAfter(rows, rows.first[row], rows.first[row + 1], t);
	return k < rows.first[row + 1] && rows.start(k) <= t ? k : -1;
}
