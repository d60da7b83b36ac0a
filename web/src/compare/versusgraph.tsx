// The differential flame graph of two sides of the fleet: numbers of one trace, grey what may be chance.
import { Refusal, type ComparedTree } from '../api/api';
import { pairOf } from './comparedoc';
import { Below, DiffGraph, Focus, goBelow, isMoved, Legend, openNode, rootOf } from './comparegraph';
import { Crumbs } from '../trace/graph/graphparts';
import { count } from '../i18n/format';
import { useTable } from '../ui/panelstate';
import { Busy, Choice, Failure, Panel, type Loaded } from '../ui/parts';
import { set, text } from '../ui/route';
import { tr } from '../i18n/strings/versus';
import { nodesOf } from '../trace/graph/graphparts';
import { compareWith } from './versuspick';

const NODES_MAX = 200000;
const GREY = tr('the change is under 1 % of the whole, or may be chance');

const focus = (name: string) => compareWith({ focus: name || null });

function Graph({ c }: { c: ComparedTree }) {
	const root = rootOf(text('root'));
	const side = text('width') === 'a' ? 'a' : 'b';
	const [listed, list] = useTable('children');
	const go = (to: number[]) => goBelow(c, to);
	const more = () => set({ nodes: Math.min(NODES_MAX, c.shown_nodes * 4) }, true);
	const empty = pairOf(c, 0, 'ns')[side] === 0;
	return <>
		<Focus of={focus} />
		<Crumbs names={(m) => c.names.find((n) => n.method === m)?.name} path={root} go={go} />
		<Legend grey={c.significant ? GREY : undefined} />
		{!c.significant && <p class="quiet">{tr('With fewer than ten traces on a side, changes cannot be distinguished from chance: colours show every difference.')}</p>}
		<div data-diff={side}>{empty ? <p class="quiet">{side === 'b' ? tr('B does not call this. Choose the widths of A to see it.') : tr('A does not call this. Choose the widths of B to see it.')}</p>
			: <DiffGraph c={c} side={side} root={root} go={go} more={more} focus={focus} threads={!text('focus')} />}</div>
		<div class="row under">
			<span class="quiet">{tr('{nodes}; times are per trace, of {a} in A and {b} in B', { nodes: nodesOf(c), a: count(c.a.length), b: count(c.b.length) })}</span>
			<span class="grow" />
			<button class="small" aria-expanded={listed} onClick={list}>{listed ? tr('Hide the table') : tr('Children as a table')}</button>
		</div>
		{listed && <Below key={root.join()} c={c} open={(node) => openNode(c, node, root, go, more)} />}
	</>;
}

export function VersusGraph({ tree }: { tree: Loaded<ComparedTree> }) {
	const moved = tree.value && !tree.busy && !tree.error && isMoved(tree.value, rootOf(text('root')));
	const gone = moved || (tree.error instanceof Refusal && tree.error.status === 404 && (text('root') !== '' || text('focus') !== ''));
	return (
		<Panel title={tr('Differential flame graph')} id="difference" aside={<>
			<Choice label={tr('Threads')} value={text('thread') || 'all'} options={[['all', tr('All threads')], ['main', tr('Main thread')]]} onPick={(v) => compareWith({ thread: v === 'main' ? v : null })} />
			<Choice label={tr('Frames')} value={text('frames') === 'app' ? 'app' : 'all'} options={[['all', tr('All frames')], ['app', tr('The app’s')]]} onPick={(v) => compareWith({ frames: v === 'app' ? v : null })} />
			<span class="quiet">{tr('Widths')}</span><Choice label={tr('Widths')} value={text('width') === 'a' ? 'a' : 'b'} options={[['b', tr('As B')], ['a', tr('Widths of A, with removed calls')]]} onPick={(v) => set({ width: v === 'a' ? v : null }, true)} />
		</>}>
			{gone && <div class="notice"><strong>{tr('This path does not exist here.')}</strong><p>{tr('Neither side has a call on this path, or the set of traces has changed since the link was made.')}</p>
				<button onClick={() => compareWith({ focus: null })}>{tr('Show the whole graph')}</button></div>}
			{tree.error && !gone && <Failure error={tree.error} retry={tree.again} />}
			{!tree.value && tree.busy && <Busy what={tr('Merging calls of both sides')} retry={tree.again} />}
			{tree.value && !tree.error && !moved && <div class={tree.busy ? 'stale' : ''} data-graph={tree.busy ? undefined : '1'}><Graph c={tree.value} /></div>}
		</Panel>
	);
}
