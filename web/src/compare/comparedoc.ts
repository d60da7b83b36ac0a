// Comparison of two sides: their traces, numbers per trace, the drawing and the summary.
import { pixel } from '../ui/color';
import { duration, signed } from '../i18n/format';
import type { ComparedTree, Comparison, Flame, Trace } from '../api/api';
import { tr } from '../i18n/strings/compare';

export const SIDE_MAX = 16;

/** The selected sides: two traces, the older first, or traces of two versions; null: neither. */
export function sidesOf(list: Trace[]): { a: string[]; b: string[] } | null {
	const ready = list.filter((t) => t.state === 'ready').sort((x, y) => x.created_ms - y.created_ms || (x.id < y.id ? -1 : 1));
	if (ready.length === 2) return { a: [ready[0].id], b: [ready[1].id] };
	const versions = [...new Set(ready.map((t) => t.meta.version_name))];
	if (ready.length < 2 || versions.length !== 2) return null;
	const [a, b] = versions.map((v) => ready.filter((t) => t.meta.version_name === v).map((t) => t.id));
	return a.length <= SIDE_MAX && b.length <= SIDE_MAX ? { a, b } : null;
}

/** Numbers of a node: of each side, a trace. */
export interface Pair { a: number; b: number }
export const pairOf = (c: ComparedTree, node: number, what: 'ns' | 'self_ns' | 'count'): Pair =>
	({ a: c[`a_${what}`][node] / c.a.length, b: c[`b_${what}`][node] / c.b.length });

const SMALL = 0.01; // of the larger side's whole
const LEVELS = [0.1, 0.3, 0.7]; // of the larger of the two

const onBoth = (c: ComparedTree) => pairOf(c, 0, 'ns').a > 0 && pairOf(c, 0, 'ns').b > 0;

/** Compares the given threads; by default the main threads if both sides have them. */
export async function comparisonOf(meant: string, root: string, fetchThread: (thread: string) => Promise<Omit<Comparison, 'thread'>>): Promise<Comparison> {
	if (meant === 'main') return { ...(await fetchThread('main')), thread: 'main' };
	if (meant === '' && root === '') {
		const c = await fetchThread('main').catch((e: unknown) => {
			if ((e as { status?: number }).status !== 404) throw e; // one of them has no known main thread
		});
		if (c && onBoth(c)) return { ...c, thread: 'main' };
	}
	return { ...(await fetchThread('')), thread: 'all' };
}

/** 0: as before or small; up to 4: much more in B, down to -4: much less.  `whole`: the time of the larger side. */
export function levelOf({ a, b }: Pair, whole: number): number {
	const change = b - a;
	if (Math.abs(change) < SMALL * whole || change === 0) return 0;
	const share = Math.abs(change) / Math.max(a, b);
	return Math.sign(change) * (1 + LEVELS.filter((l) => share >= l).length);
}

/** May the change of a node be chance?  Not known for the root, the sum of all threads. */
export const isChance = (c: ComparedTree, node: number) => !!c.significant && !c.significant[node] && !c.other[node] && (node > 0 || c.method[0] >= 0);

/** The level of a node: what may be chance is as before. */
export function levelAt(c: ComparedTree, node: number): number {
	const all = pairOf(c, 0, 'ns');
	return isChance(c, node) ? 0 : levelOf(pairOf(c, node, 'ns'), Math.max(all.a, all.b));
}

/** Blue is less, orange is more, grey is the same: distinguishable also with red-green colour blindness. */
export function colorOfLevel(level: number, dark: boolean): number {
	const n = Math.abs(level) / 4;
	const hue = level < 0 ? 252 : 62;
	return dark ? pixel(0.36 + n * 0.12, n * 0.105, hue) : pixel(0.88 - n * 0.14, n * 0.135, hue);
}

/** The tree as a flame graph with the widths of `side`; `nodes` has the comparison's node of each. */
export function flameOf(c: ComparedTree, side: 'a' | 'b'): { f: Flame; nodes: number[] } {
	const name = new Map(c.names.map((n) => [n.method, n.name]));
	const value = c[`${side}_ns`];
	const nodes: number[] = [];
	const at = new Int32Array(value.length);
	for (let i = 0; i < value.length; i++) {
		if (i > 0 && value[i] === 0) continue; // and so is all below
		at[i] = nodes.length;
		nodes.push(i);
	}
	const names = nodes.map((i) => (c.other[i] ? tr('(other)') : name.get(c.method[i]) ?? tr('all calls')));
	const of = (list: number[]) => nodes.map((i) => list[i]);
	return { nodes, f: { names, name: nodes.map((_, i) => i), parent: nodes.map((i) => at[c.parent[i]]), value: of(value), self: of(c[`${side}_self_ns`]), count: of(c[`${side}_count`]),
		method: of(c.method), other: of(c.other), total_nodes: c.total_nodes, shown_nodes: c.shown_nodes, partial: false } };
}

/** Method numbers from the root of the response to a node. */
export function pathTo(c: Pick<ComparedTree, 'parent' | 'method'>, node: number): number[] {
	const path: number[] = [];
	for (let i = node; i > 0; i = c.parent[i]) if (c.method[i] >= 0) path.unshift(c.method[i]);
	return path;
}

export function change({ a, b }: Pair, show: (v: number) => string = duration): string {
	if (a === b) return '±0';
	const sign = b > a ? '+' : '−';
	return sign + show(Math.abs(b - a));
}

/** "+12 %", "new", "removed". */
export function relative({ a, b }: Pair): string {
	if (a === 0) return b === 0 ? '' : tr('new');
	if (b === 0) return tr('removed');
	return signed((b - a) / a);
}

/** The summary of the comparison. */
export function verdict(c: Comparison): string {
	const all = pairOf(c, 0, 'ns');
	const each = c.a.length + c.b.length > 2 ? tr(' a trace') : '';
	if (all.a === 0 && all.b === 0) return tr('Neither side has a call here.');
	if (all.a === 0) return tr('Only B has calls here: {b}{each}.', { b: duration(all.b), each });
	if (all.b === 0) return tr('Only A has calls here: {a}{each}.', { a: duration(all.a), each });
	if (Math.abs(all.b - all.a) < SMALL * Math.max(all.a, all.b)) return tr('A and B take about the same time: {a} and {b}{each}.', { a: duration(all.a), b: duration(all.b), each });
	return tr('B takes {a} {a2} than A: {b} against {a3}{each} ({all}).', { a: duration(Math.abs(all.b - all.a)), a2: all.b > all.a ? tr('more') : tr('less'), b: duration(all.b), a3: duration(all.a), each, all: relative(all) });
}
