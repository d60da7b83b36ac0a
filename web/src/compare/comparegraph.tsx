// The differential flame graph: widths of one side, colours by change; and the same as a table.
import type { ComparedTree } from '../api/api';
import { useMemo } from 'preact/hooks';
import { css } from '../ui/color';
import { change, colorOfLevel, flameOf, isChance, levelAt, pairOf, pathTo, relative } from './comparedoc';
import { boxesOf, childrenOf } from '../trace/graph/flamelayout';
import { count, duration, splitName, withoutParameters } from '../i18n/format';
import { Graph } from '../trace/graph/graph';
import { metricOf } from '../trace/graph/graphparts';
import { copying, elsewhere, type About } from '../trace/parts/methodmenu';
import type { Item } from '../ui/menu';
import { afresh, useMore } from '../ui/panelstate';
import { MethodName } from '../ui/parts';
import { set, text } from '../ui/route';
import { wordsOf } from '../api/source';
import { tr } from '../i18n/strings/compare';
import { dark } from '../ui/theme';

const LISTED = 50;
const STEPS = [-4, -3, -2, -1, 0, 1, 2, 3, 4];

const each = (n: number) => (Number.isInteger(n) ? count(n) : n.toFixed(1));

/** Text of a node for both sides. */
export function factsOf(c: ComparedTree, node: number): [string, string][] {
	const [all, self, calls] = [pairOf(c, node, 'ns'), pairOf(c, node, 'self_ns'), pairOf(c, node, 'count')];
	const seen = (side: 'a' | 'b') => (node > 0 && !c.other[node] && c[`${side}_traces`] ? tr(', in {c} of {c2} traces', { c: count(c[`${side}_traces`]![node]), c2: count(c[side].length) }) : '');
	const chance = isChance(c, node) ? tr('may be chance') : '';
	return [
		['A', tr('{a}, self {a2}, {a3} calls{seen}', { a: duration(all.a), a2: duration(self.a), a3: each(calls.a), seen: seen('a') })],
		['B', tr('{b}, self {b2}, {b3} calls{seen}', { b: duration(all.b), b2: duration(self.b), b3: each(calls.b), seen: seen('b') })],
		['change', [change(all), relative(all), chance].filter(Boolean).join(', ')],
	];
}

export function Legend({ grey = tr('the change is under 1 % of the whole') }: { grey?: string }) {
	return (
		<p class="legend">
			<span>{tr('less in B')}</span>
			<span class="ramp" aria-hidden="true">{STEPS.map((l) => <i key={l} style={{ background: css(colorOfLevel(l, dark.value)) }} />)}</span>
			<span>{tr('more in B')}</span>
			<span class="quiet">{tr('Grey: {grey}. The strongest colours: removed, new, or more than threefold.', { grey })}</span>
		</p>
	);
}

/** The numbers of a path in the address. */
export function rootOf(path: string): number[] {
	return /^\d{1,9}(\.\d{1,9})*$/.test(path) ? path.split('.').map(Number) : [];
}

const nameOf = (c: ComparedTree) => {
	const names = new Map(c.names.map((n) => [n.method, n.name]));
	return (node: number) => names.get(c.method[node]) ?? '';
};

/** The children of the root, on either side: what widths of one side cannot show, too. */
export function Below({ c, open }: { c: ComparedTree; open: (node: number) => void }) {
	const [max, more] = useMore('children', LISTED);
	const name = nameOf(c);
	const all = childrenOf({ parent: c.parent });
	return (
		<div class="scroll short" tabIndex={0}>
			<table class="methods">
				<thead><tr><th>{tr('Directly below {name}', { name: splitName(name(0))[1] || tr('the top') })}</th><th class="num">A</th><th class="num">B</th>
					<th class="num">{tr('Change')}</th><th class="num">{tr('Of A')}</th><th class="num">{tr('Calls A')}</th><th class="num">{tr('Calls B')}</th></tr></thead>
				<tbody>{all.slice(0, max).map((i) => {
					const [time, calls] = [pairOf(c, i, 'ns'), pairOf(c, i, 'count')];
					return (
						<tr key={i}><td class="mono name"><button class="plain" onClick={() => open(i)}>
							{c.other[i] ? tr('{other} smaller nodes', { other: count(c.other[i]) }) : <MethodName name={name(i)} />}</button></td>
						<td class="num">{duration(time.a)}</td><td class="num">{duration(time.b)}</td><td class="num">{change(time)}</td><td class="num">{relative(time)}</td>
						<td class="num">{each(calls.a)}</td><td class="num">{each(calls.b)}</td></tr>);
				})}</tbody>
			</table>
			{all.length > max && <button class="small" onClick={() => more(max * 4)}>{tr('Show more of {all}', { all: count(all.length) })}</button>}
		</div>
	);
}

/** Opening a rest shows its nodes below its parent; at the root a larger response is requested. */
export function openNode(c: Pick<ComparedTree, 'other' | 'parent' | 'method'>, node: number, root: number[], go: (root: number[]) => void, more: () => void): void {
	if (c.other[node] && c.parent[node] === 0) more();
	else go([...root, ...pathTo(c, c.other[node] ? c.parent[node] : node)]);
}

/** Without the parameters that distinguish overloads. */
const plainName = (n: { name: string; descriptor: string }) => (n.descriptor ? withoutParameters(n.name) : n.name);

const nameAt = (c: ComparedTree, root: number[]) => c.names.filter((n) => n.method === root[root.length - 1]).map(plainName)[0];

/** Whether the numbers of a path in the address are those of other methods: numbers depend on the methods of all traces. */
export const isMoved = (c: ComparedTree, root: number[]) => root.length > 0 && nameAt(c, root) !== text('at');

/** Changes of the address that show the whole graph. */
export const TOP = { root: null, at: null, nodes: null };

/** Shows the graph below a path, whose last name is checked when the link is opened. */
export function goBelow(c: ComparedTree, root: number[], changes: Record<string, string> = {}): void {
	set({ ...changes, ...TOP, root: root.join('.'), at: nameAt(c, root) ?? null, ...afresh() }, true);
}

/** The method to which the graph is limited, which can be undone. */
export function Focus({ name = text('focus'), of }: { name?: string; of: (name: string) => void }) {
	return name ? <nav class="steps"><span class="step" title={name}>{tr('only {name}', { name })}<button class="plain" aria-label={tr('Show the whole comparison')} onClick={() => of('')}>×</button></span></nav> : null;
}

/** `focus` limits the graph to a method, `find` finds its calls. Threads are the top level of `threads`; they are not methods. */
export function DiffGraph({ c, side, root, go, more, focus, find, threads = false }: {
	c: ComparedTree; side: 'a' | 'b'; root: number[]; go: (root: number[]) => void; more: () => void; focus: (name: string) => void; find?: (name: string) => void; threads?: boolean;
}) {
	const { a, nodes } = useMemo(() => {
		const { f, nodes } = flameOf(c, side);
		return { nodes, a: { f, boxes: boxesOf(f), at: { path: [], skip: 0 } } };
	}, [c, side]);
	const isDark = dark.value;
	const fill = useMemo(() => (i: number) => (c.other[nodes[i]] ? '' : css(colorOfLevel(levelAt(c, nodes[i]), isDark))), [c, nodes, isDark]);
	const up = () => root.length > 0 && go(root.slice(0, -1));
	const open = (i: number) => (i === 0 ? up() : openNode(c, nodes[i], root, go, more));
	const words = wordsOf([]);
	const isThread = (m: number) => threads && (root.length ? m === root[0] : c.parent.some((p, i) => i > 0 && p === 0 && c.method[i] === m));
	const itemsOf = ({ method, name }: About): Item[] => {
		if (isThread(method)) return [copying(name)];
		const plain = plainName(c.names.find((n) => n.method === method)!);
		return [
			{ label: tr('Only this method'), run: () => focus(plain) },
			...(find ? [{ label: tr('Find its calls'), run: () => find(plain) }] : []),
			...elsewhere(plain),
			copying(name),
		];
	};
	return <Graph a={a} label={tr('Differential flame graph')} hold="graph" metric={metricOf('wall', words)} words={words} matches={null} names={[]} fill={fill} factsOf={(i) => factsOf(c, nodes[i])} itemsOf={itemsOf}
		open={open} up={up} came={null} />;
}
