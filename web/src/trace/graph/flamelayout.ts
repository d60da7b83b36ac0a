// A merged flame graph as boxes: parents over children, width by value.
import type { Flame } from '../../api/api';

export interface Boxes {
	n: number;
	depth: Uint16Array;
	x0: Float64Array; // 0..1
	x1: Float64Array;
	rows: number;
	byRow: number[][]; // node indexes of a row, left to right
}

/** Children start at the left edge of their parent, in the order of the response (falling value). */
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
		depth[i] = i && depth[p] + 1;
		x0[i] = next[p];
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

/** The node that a key selects from a node: parent, first (heaviest) child, siblings; the node itself if there is none. */
export function walk(f: Flame, b: Boxes, node: number, key: string): number {
	if (key === 'ArrowUp') return f.parent[node];
	if (key === 'ArrowDown') return node + 1 < b.n && f.parent[node + 1] === node ? node + 1 : node;
	if (key === 'Home') return 0;
	const row = b.byRow[b.depth[node]];
	const other = row[row.indexOf(node) + (key === 'ArrowLeft' ? -1 : 1)];
	return other !== undefined && node !== 0 && f.parent[other] === f.parent[node] ? other : node;
}

/** The direct children of node 0, in the order of the response. */
export function childrenOf(f: Pick<Flame, 'parent'>): number[] {
	const out: number[] = [];
	for (let i = 1; i < f.parent.length; i++) if (f.parent[i] === 0) out.push(i);
	return out;
}

/** A question about a flame graph: methods from the view's top, and how many of the heaviest
 *  children are left out. */
export interface Place {
	path: number[];
	skip: number;
}

/** "12.5+20": the path, and how many of the heaviest are left out. */
export const placeText = ({ path, skip }: Place) => path.join('.') + (skip ? `+${skip}` : '');

/** Null: it is none. */
export function parsePlace(text: string): Place | null {
	const m = /^(\d{1,9}(?:\.\d{1,9})*)?(?:\+(\d{1,9}))?$/.exec(text);
	return m && { path: m[1] ? m[1].split('.').map(Number) : [], skip: Number(m[2] ?? 0) };
}

/** Where opening a node leads; `at` is the place for which the graph was requested: the node as the
 *  root, or for a rest its parent without the children that are shown. */
export function placeOf(f: Flame, at: Place, node: number): Place {
	const path = [...at.path, ...pathOf(f, node)];
	if (f.other[node] === 0 || node === 0) return { path, skip: 0 };
	const parent = f.parent[node];
	const shown = f.parent.filter((p, i) => i > 0 && p === parent && !f.other[i]).length;
	return { path, skip: (parent === 0 ? at.skip : 0) + shown };
}

/** One step back: from a rest node to its full graph, otherwise to the caller. */
export function above(at: Place): Place {
	return { path: at.skip ? at.path : at.path.slice(0, -1), skip: 0 };
}

/** Without the children that are wide enough to be seen; null when none is narrower, or all are. */
export function narrow(f: Flame, at: Place, width: number): { place: Place; nodes: number } | null {
	let wide = 0;
	let nodes = 0;
	for (const i of childrenOf(f)) {
		if (f.other[i]) nodes += f.other[i];
		else if ((f.value[i] / (f.value[0] || 1)) * width >= 1) wide++;
		else nodes++;
	}
	return wide && nodes ? { place: { path: at.path, skip: at.skip + wide }, nodes } : null;
}
