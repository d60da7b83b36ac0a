// Questions about the calls of a thread: the longest in view, the next that a search lights up,
// what one call spends itself, and the totals of its method.
import type { CallId, Called, Hit, Place } from './messages';
import { firstEndingAfter, type Rows } from './rows';

export function hitOf(r: Rows, k: number, depth: number): Hit {
	return { method: r.method[k], start: r.start(k), end: r.end(k), depth, merged: r.merged ? r.merged[k] : 0, index: k };
}

/** Of all that is offered the `max` longest, as a heap with the shortest on top. */
class Longest {
	private heap: number[] = [];

	constructor(private r: Rows, private max: number) {}

	private length(k: number): number {
		return this.r.length(k);
	}

	offer(k: number): void {
		const h = this.heap;
		if (h.length === this.max) {
			if (this.length(k) <= this.length(h[0])) return;
			h[0] = k;
			this.sink();
			return;
		}
		let i = h.push(k) - 1;
		for (let up = (i - 1) >> 1; i > 0 && this.length(h[up]) > this.length(h[i]); i = up, up = (i - 1) >> 1)
			[h[i], h[up]] = [h[up], h[i]];
	}

	private sink(): void {
		const h = this.heap;
		for (let i = 0; ;) {
			let least = i;
			for (const c of [2 * i + 1, 2 * i + 2])
				if (c < h.length && this.length(h[c]) < this.length(h[least])) least = c;
			if (least === i) return;
			[h[i], h[least]] = [h[least], h[i]];
			i = least;
		}
	}

	taken(): number[] {
		return this.heap;
	}
}

/** The row of a slice: rows are stored one after the other. */
function rowOf(r: Rows, k: number): number {
	let lo = 0;
	let hi = r.depth;
	while (lo + 1 < hi) {
		const mid = (lo + hi) >>> 1;
		if (r.first[mid] <= k) lo = mid;
		else hi = mid;
	}
	return lo;
}

/** The `max` longest calls between two times, in time order. */
export function visible(r: Rows, from: number, to: number, max: number): Hit[] {
	const longest = new Longest(r, max);
	for (let row = 0; row < r.depth; row++) {
		const hi = r.first[row + 1];
		for (let k = firstEndingAfter(r, r.first[row], hi, from); k < hi && r.start(k) < to; k++) longest.offer(k);
	}
	return longest.taken().map((k) => hitOf(r, k, rowOf(r, k))).sort((a, b) => a.start - b.start || a.depth - b.depth);
}

/** The first slice of [lo, hi) that begins at t or later. */
function firstFrom(r: Rows, lo: number, hi: number, t: number): number {
	while (lo < hi) {
		const mid = (lo + hi) >>> 1;
		if (r.start(mid) < t) lo = mid + 1;
		else hi = mid;
	}
	return lo;
}

/** The index at which the search in a row for the next (or previous) call after a place starts; calls are in the order
 *  of begin, row, index. */
function enter(r: Rows, row: number, at: Place, forward: boolean): number {
	const [lo, hi] = [r.first[row], r.first[row + 1]];
	let k = firstFrom(r, lo, hi, at.start);
	if (row < at.row) while (k < hi && r.start(k) === at.start) k++;
	else if (row === at.row) while (k < hi && r.start(k) === at.start && k <= at.index) k++;
	if (forward) return k;
	k--;
	while (k >= lo && r.start(k) === at.start && row === at.row && k >= at.index) k--;
	return k;
}

function step(r: Rows, wanted: Uint8Array, at: Place, forward: boolean): Hit | null {
	let best: Hit | null = null;
	for (let row = 0; row < r.depth; row++) {
		const [lo, hi] = [r.first[row], r.first[row + 1]];
		const beaten = (k: number) => best && (forward ? r.start(k) >= best.start : r.start(k) < best.start);
		let k = enter(r, row, at, forward);
		while (k >= lo && k < hi && !beaten(k) && !wanted[r.method[k]]) k += forward ? 1 : -1;
		if (k >= lo && k < hi && !beaten(k)) best = hitOf(r, k, row);
	}
	return best;
}

/** The search's hit after (or before) a position; the first follows the last. */
export function next(r: Rows, wanted: Uint8Array, at: Place, forward: boolean): Hit | null {
	const edge: Place = { start: forward ? -Infinity : Infinity, row: -1, index: -1 };
	return step(r, wanted, at, forward) ?? step(r, wanted, edge, forward);
}

/** The call of a row that begins at a time; the last of those, as the others have no length.  -1: none. */
const beginning = (r: Rows, row: number, start: number): number => firstFrom(r, r.first[row], r.first[row + 1], start + 1) - 1;

/** The call that begins then and there, and its callers and callees; null: none is loaded, or only merged with others. */
export function called(r: Rows | null | undefined, { tid, start, depth }: CallId, max: number): Called | null {
	if (!r || depth >= r.depth) return null;
	const k = beginning(r, depth, start);
	if (k < r.first[depth] || r.start(k) !== start || (r.merged && r.merged[k] > 1)) return null;
	const hit = hitOf(r, k, depth);
	const stack: Hit[] = [];
	for (let row = 0; row < depth; row++) {
		const up = beginning(r, row, start);
		if (up >= r.first[row]) stack.push(hitOf(r, up, row));
	}
	const longest = new Longest(r, max);
	const below = depth + 1;
	let made = 0;
	for (let c = below < r.depth ? firstFrom(r, r.first[below], r.first[below + 1], start) : r.n; c < (r.first[below + 1] ?? 0) && r.start(c) < hit.end; c++) {
		longest.offer(c);
		made += Math.max(1, r.merged?.[c] ?? 1);
	}
	const callees = longest.taken().map((c) => hitOf(r, c, below)).sort((a, b) => b.end - b.start - a.end + a.start || a.start - b.start);
	return { tid, start, depth, hit, self: r.merged ? null : selfOf(r, k, depth), stack, callees, made };
}

/** The hits of a search: number of calls, and the share of the busy time in which one of them is open. */
export interface Found {
	calls: number;
	share: number;
	least: boolean; // calls are merged: of which methods the others are is not known here
}

/** Matches in a row that are not within other matches.  `around`: the spans of those, as begin and end in turns,
 *  disjoint and ascending. */
function outermost(r: Rows, row: number, wanted: Uint8Array, around: number[]): number[] {
	const fresh: number[] = [];
	let at = 0;
	for (let k = r.first[row]; k < r.first[row + 1]; k++) {
		if (!wanted[r.method[k]]) continue;
		while (at < around.length && around[at + 1] < r.end(k)) at += 2;
		if (at >= around.length || around[at] > r.start(k)) fresh.push(r.start(k), r.end(k));
	}
	return fresh;
}

function joined(a: number[], b: number[]): number[] {
	const out: number[] = [];
	for (let i = 0, j = 0; i < a.length || j < b.length;)
		if (j >= b.length || (i < a.length && a[i] <= b[j])) {
			out.push(a[i], a[i + 1]);
			i += 2;
		} else {
			out.push(b[j], b[j + 1]);
			j += 2;
		}
	return out;
}

export function found(r: Rows, wanted: Uint8Array): Found {
	let calls = 0;
	let around: number[] = [];
	let busy = 0;
	for (let k = 0; k < r.n; k++) if (wanted[r.method[k]]) calls++; // of merged ones, the longest
	for (let row = 0; calls > 0 && row < r.depth; row++) {
		const fresh = outermost(r, row, wanted, around);
		if (fresh.length > 0) around = joined(around, fresh);
	}
	for (let k = 0; k < (r.first[1] ?? 0); k++) busy += r.length(k);
	let time = 0;
	for (let i = 0; i < around.length; i += 2) time += around[i + 1] - around[i];
	return { calls, share: busy > 0 ? time / busy : 0, least: r.merged !== null && r.merged.some((n) => n > 1) };
}

/** A call's self time. */
export function selfOf(r: Rows, k: number, row: number): number {
	let self = r.length(k);
	if (row + 1 >= r.depth) return self;
	const hi = r.first[row + 2];
	// calls of no length at its edges weigh nothing on either side
	for (let c = firstEndingAfter(r, r.first[row + 1], hi, r.start(k)); c < hi && r.end(c) <= r.end(k); c++)
		self -= r.length(c);
	return self;
}

/** Calls and self time by method. */
export interface Totals {
	count: Uint32Array;
	self: Float64Array;
	busy: number; // time with a call open
}

/** Of a thread whose calls are all there, unmerged. */
export function totalsOf(r: Rows): Totals {
	let methods = 0;
	for (let k = 0; k < r.n; k++) if (r.method[k] >= methods) methods = r.method[k] + 1;
	const t: Totals = { count: new Uint32Array(methods), self: new Float64Array(methods), busy: 0 };
	for (let row = 0; row < r.depth; row++) {
		let parent = row > 0 ? r.first[row - 1] : 0;
		for (let k = r.first[row]; k < r.first[row + 1]; k++) {
			const dur = r.length(k);
			t.count[r.method[k]]++;
			t.self[r.method[k]] += dur;
			if (row === 0) t.busy += dur;
			else if (dur > 0) { // one of no length weighs nothing, whosever it is
				while (r.end(parent) <= r.start(k)) parent++;
				t.self[r.method[parent]] -= dur;
			}
		}
	}
	return t;
}
