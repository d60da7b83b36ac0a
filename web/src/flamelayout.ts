// A merged flame graph as boxes: parents over children, width by value.
import type { Flame } from './api';

export interface Boxes {
	n: number;
	depth: Uint16Array;
	x0: Float64Array; // 0..1
	x1: Float64Array;
	rows: number;
	byRow: number[][]; // node indexes of a row, left to right
}

/** Children start at the left edge of their parent, in the order of the answer (falling value). */
export function boxesOf(f: Flame): Boxes {
	const n = f.value.length;
	const depth = new Uint16Array(n);
	const x0 = new Float64Array(n);
	const x1 = new Float64Array(n);
	const next = new Float64Array(n); // where the next child of a node starts
	const byRow: number[][] = [];
	const total = f.value[0] || 1;
	for (let i = 0; i < n; i++) {
		const p = f.parent[i];
		depth[i] = i === 0 ? 0 : depth[p] + 1;
		x0[i] = i === 0 ? 0 : next[p];
		x1[i] = x0[i] + f.value[i] / total;
		next[i] = x0[i];
		if (i > 0) next[p] = x1[i];
		(byRow[depth[i]] ??= []).push(i);
	}
	return { n, depth, x0, x1, rows: byRow.length, byRow };
}

/** The node of a row at x (0..1), or -1. */
export function boxAt(b: Boxes, row: number, x: number): number {
	const nodes = b.byRow[row] ?? [];
	let lo = 0;
	let hi = nodes.length;
	while (lo < hi) {
		const mid = (lo + hi) >>> 1;
		if (b.x1[nodes[mid]] <= x) lo = mid + 1;
		else hi = mid;
	}
	return lo < nodes.length && b.x0[nodes[lo]] <= x ? nodes[lo] : -1;
}

/** Method indexes from the view's top to the node. */
export function pathOf(f: Flame, node: number): number[] {
	const path: number[] = [];
	for (let i = node; i > 0; i = f.parent[i]) if (f.method[i] >= 0) path.unshift(f.method[i]);
	return path;
}
