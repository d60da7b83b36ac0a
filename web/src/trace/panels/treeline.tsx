// One row of the call tree, and the row of titles above.
import { isLeaf, type TreeNode } from './calltree';
import { count, percent, splitName } from '../../i18n/format';
import type { Metric } from '../graph/graphparts';
import type { Words } from '../../api/source';
import { coarse } from '../../ui/narrow';
import { tr } from '../../i18n/strings/trace';

export const ROW = coarse ? 40 : 24;
export const AROUND = 12; // rows beyond the view that are in the document
const STEP = 14; // pixels of one level

interface LineActions {
	pick(n: TreeNode): void;
	open(n: TreeNode): void;
	drill(n: TreeNode): void;
	more(n: TreeNode, x: number, y: number): void;
}

const head = (s: string) => s.charAt(0).toUpperCase() + s.slice(1);

export function Titles({ metric, words }: { metric: Metric; words: Words }) {
	return (
		<div class="treerow titles" role="row" aria-rowindex={1}>
			<span role="columnheader" class="name">{tr('Method')}</span>
			<span role="columnheader" class="num">{head(metric.all)}</span>
			<span role="columnheader" class="num">{head(metric.own)}</span>
			<span role="columnheader" class="num" title={words.hint}>{words.head}</span>
			<span role="columnheader" class="num">{tr('Share')}</span>
		</div>
	);
}

function Fold({ n, on }: { n: TreeNode; on: LineActions }) {
	if (isLeaf(n)) return <span class="fold" />;
	return (
		<button class="fold plain" tabIndex={-1} aria-hidden="true" onClick={() => on.open(n)}>
			<svg viewBox="0 0 10 10" width="10" height="10"><path d={n.open ? 'M1 3h8L5 8z' : 'M3 1v8l5-4z'} /></svg>
		</button>
	);
}

export function Line({ n, at, focused, indent, metric, total, lit, on }: {
	n: TreeNode; at: number; focused: boolean; indent: number; metric: Metric; total: number; lit: boolean; on: LineActions;
}) {
	const [pkg, rest] = splitName(n.name);
	const share = n.value / (total || 1);
	return (
		<div id={`row${at}`} role="row" aria-level={n.depth + 1} aria-rowindex={at + 2} aria-expanded={isLeaf(n) ? undefined : n.open} aria-selected={focused}
			class={`treerow ${lit ? 'lit' : ''}`} style={{ top: `${at * ROW}px` }} onPointerDown={() => on.pick(n)} onDblClick={() => on.drill(n)}
			onContextMenu={(e) => { e.preventDefault(); on.more(n, e.clientX, e.clientY); }}>
			<span role="gridcell" class="name mono" style={{ paddingLeft: `${Math.max(0, indent) * STEP}px` }} title={tr('{name}, depth {depth}', { name: n.name, depth: n.depth })}>
				<Fold n={n} on={on} />
				{n.other ? <span class="quiet">{tr('{other} smaller', { other: count(n.other) })}</span> : <><span class="method">{n.depth === 0 && n.method < 0 ? n.name : rest}</span> <span class="quiet">{n.method < 0 ? '' : pkg}</span></>}
			</span>
			<span role="gridcell" class="num">{metric.show(n.value)}</span>
			<span role="gridcell" class="num">{metric.show(n.self)}</span>
			<span role="gridcell" class="num">{count(n.count)}</span>
			<span role="gridcell" class="num share"><span class="bar" style={{ width: `${100 * share}%` }} /><span>{percent(share)}</span></span>
		</div>
	);
}
