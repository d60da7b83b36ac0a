// Labels and numbers of merged graphs and trees.
import type { Flame } from '../../api/api';
import { count, duration, percent, splitName } from '../../i18n/format';
import { childrenOf, type Boxes, type Place } from './flamelayout';
import type { About } from '../parts/methodmenu';
import type { Item } from '../../ui/menu';
import { many, type Words } from '../../api/source';
import { tr } from '../../i18n/strings/trace';
import { Tip } from '../parts/tip';

/** What widths are made of. */
export interface Metric {
	key: 'wall' | 'running' | 'count' | 'cpu' | 'waiting';
	all: string; // of a node with its subtree
	own: string;
	show: (v: number) => string;
	timed: boolean; // otherwise widths are numbers of calls, the only metric
}

/** How many of a graph's nodes are shown; `least`: there may be more. */
export function nodesOf({ shown_nodes, total_nodes }: { shown_nodes: number; total_nodes: number }, least = false): string {
	const numbers = { shown: count(shown_nodes), total: count(total_nodes) };
	if (shown_nodes === total_nodes) return tr.many(total_nodes, '{n} node', '{n} nodes');
	return least ? tr('{shown} of at least {total} nodes', numbers) : tr('{shown} of {total} nodes', numbers);
}

export function metricOf(key: string, w: Words, timed = true): Metric {
	const sums = { all: tr('{many} in total', { many: w.many }), own: tr('self {many}', { many: w.many }) };
	if (!timed) return { key: 'wall', ...sums, show: (v) => count(v / (w.unit ?? 1)), timed };
	if (key === 'count') return { key, ...sums, show: count, timed };
	if (key === 'cpu') return { key, all: 'CPU', own: tr('own CPU'), show: duration, timed };
	if (key === 'waiting') return { key, all: tr('waiting'), own: tr('self waiting'), show: duration, timed };
	if (key === 'running') return { key, all: tr('running'), own: tr('self running'), show: duration, timed };
	return { key: 'wall', all: tr('wall'), own: tr('self'), show: duration, timed };
}

export interface Answer {
	f: Flame;
	boxes: Boxes;
	at: Place; // place of the request: the response's nodes are below it, even if the address has changed since
}

export function numbers(f: Flame, node: number, m: Metric, w: Words): [string, string][] {
	return [
		[m.all, m.show(f.value[node])],
		[m.own, f.unit! > 1 && !f.self[node] ? `< ${m.show(f.unit!)}` : m.show(f.self[node])],
		...(m.timed ? [['count', many(f.count[node], w)] as [string, string]] : []),
		['share', tr('{f} of this graph', { f: percent(f.value[node] / (f.value[0] || 1)) })],
	];
}

/** The path to the graph's root; each step is a link back. */
export function Crumbs({ names, path, skip = 0, go }: { names: (method: number) => string | undefined; path: number[]; skip?: number; go: (path: number[]) => void }) {
	if (path.length === 0 && skip === 0) return null;
	const first = Math.max(0, path.length - 4);
	return (
		<nav class="crumbs" aria-label={tr('Path of the flame graph')}>
			<button class="small" onClick={() => go([])}>{tr('Top')}</button>
			{first > 0 && <span class="quiet">…</span>}
			{path.slice(first).map((m, i) => (
				<button key={i} class="small" title={names(m)} aria-current={!skip && first + i === path.length - 1}
					onClick={() => go(path.slice(0, first + i + 1))}>{splitName(names(m) ?? tr('method {m}', { m }))[1]}</button>))}
			{skip > 0 && <span>{tr('without its {skip} heaviest', { skip: count(skip) })}</span>}
		</nav>
	);
}

export function FlameTip({ f, node, x, y, facts }: { f: Flame; node: number; x: number; y: number; facts: [string, string][] }) {
	return (
		<Tip x={x} y={y} name={f.other[node] ? tr('{other} smaller', { other: count(f.other[node]) }) : f.names[f.name[node]]}>
			{f.other[node] > 0 && node > 0 && <div>{tr('Click to show them.')}</div>}
			<dl>{facts.map(([k, v]) => <><dt key={k}>{k}</dt><dd>{v}</dd></>)}</dl>
			{f.method[node] >= 0 && <div class="quiet">{tr('Right click or m: more')}</div>}
		</Tip>
	);
}

/** The node to return to: the previous root. */
export function nodeOf(a: Answer, left: Place | null): number {
	if (!left || left.skip || left.path.length !== a.at.path.length + 1) return 0;
	return childrenOf(a.f).find((i) => a.f.method[i] === left.path[left.path.length - 1]) ?? 0;
}

export function stackOf(f: Flame, node: number, above: string[]): string[] {
	const out: string[] = [];
	for (let i = node; i > 0; i = f.parent[i]) out.unshift(f.names[f.name[i]]);
	return f.method[0] >= 0 ? [...above, ...out] : out;
}

export interface GraphProps {
	a: Answer;
	metric: Metric;
	words: Words;
	matches: Uint8Array | null;
	names: string[];
	label: string;
	hold: string; // its name where the address holds how far it is scrolled
	flip?: boolean;
	callers?: boolean; // children are callers
	fill?: (node: number) => string; // other colours than those of packages
	factsOf?: (node: number) => [string, string][]; // other numbers than those of the graph
	itemsOf?: (about: About) => Item[]; // another menu of a method
	open: (node: number) => void;
	up: () => void;
	came: Place | null;
}
