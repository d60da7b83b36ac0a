// Compares two selections: a summary, the differential flame graph, the methods.  The
// address holds all of it; sides are lists of traces here, and the server may learn other ways to name one.
import { useEffect } from 'preact/hooks';
import { api, Refusal, type ComparedTrace, type Comparison } from '../api/api';
import { comparisonOf, pairOf, SIDE_MAX, verdict } from './comparedoc';
import { Below, DiffGraph, Focus, goBelow, isMoved, Legend, openNode, rootOf, TOP } from './comparegraph';
import { Crumbs } from '../trace/graph/graphparts';
import { CompareTable } from './comparetable';
import { when } from '../i18n/format';
import { afresh, useTable } from '../ui/panelstate';
import { LinkCheck } from '../trace/state/linkcheck';
import { Busy, Choice, Failure, Panel, useLoad, type Loaded } from '../ui/parts';
import { link, number, set, text } from '../ui/route';
import { tr } from '../i18n/strings/compare';
import { nodesOf } from '../trace/graph/graphparts';
import { nameOf, several } from '../api/traces';

const NODES_MAX = 200000;

function Side({ name, list }: { name: string; list: ComparedTrace[] }) {
	const lacking = list.filter((x) => x.named * 2 < x.methods).length;
	return (
		<section class="side" aria-label={tr('Side {name}', { name })}>
			<h2>{name} <span class="quiet">{several(list.length, 'trace')}</span></h2>
			<ul>{list.map(({ trace: t }) => (
				<li key={t.id}><a href={link(`/traces/${t.id}`)}>{nameOf(t)}</a>
					<span class="quiet">{[t.meta.version_name && tr('version {version_name}', { version_name: t.meta.version_name }), t.meta.scenario, t.meta.device, when(t.created_ms)].filter(Boolean).join(', ')}</span></li>))}</ul>
			{lacking > 0 && <p class="badtext">{tr('{list}: methods without names cannot be matched across builds.', { list: lacking === list.length ? tr('Method names are missing') : tr('Method names are missing in {lacking}', { lacking: several(lacking, 'trace') }) })}{' '}
				<a href={link('/builds')}>{tr('Send the mapping')}</a></p>}
		</section>
	);
}

function Graphs({ c, root }: { c: Comparison; root: number[] }) {
	const side = text('width') === 'a' ? 'a' : 'b';
	const [listed, list] = useTable('children');
	const go = (to: number[]) => goBelow(c, to, { thread: c.thread });
	const more = () => set({ nodes: Math.min(NODES_MAX, c.shown_nodes * 4) }, true);
	const focus = (name: string) => set({ focus: name, thread: c.thread, ...TOP, ...afresh() }, true);
	const empty = pairOf(c, 0, 'ns')[side] === 0;
	return (
		<Panel title={tr('Differential flame graph')} aside={<>
			<Choice label={tr('Threads')} value={c.thread} options={[['main', tr('Main thread')], ['all', tr('All threads')]]} onPick={(v) => set({ thread: v }, true)} />
			<span class="quiet">{tr('Widths')}</span><Choice label={tr('Widths')} value={side} options={[['b', tr('As B')], ['a', tr('Widths of A, with removed calls')]]} onPick={(v) => set({ width: v === 'a' ? v : null }, true)} />
		</>}>
			<Focus of={focus} />
			<Crumbs names={(m) => c.names.find((n) => n.method === m)?.name} path={root} go={go} />
			<Legend />
			<div data-diff={side}>{empty ? <p class="quiet">{side === 'b' ? tr('B does not call this. Choose the widths of A to see it.') : tr('A does not call this. Choose the widths of B to see it.')}</p>
				: <DiffGraph c={c} side={side} root={root} go={go} more={more} focus={focus} />}</div>
			<div class="row under">
				<span class="quiet">{tr('{nodes}; times are per trace', { nodes: nodesOf(c) })}</span>
				<span class="grow" />
				<button class="small" aria-expanded={listed} onClick={list}>{listed ? tr('Hide the table') : tr('Children as a table')}</button>
			</div>
			{listed && <Below key={root.join()} c={c} open={(node) => openNode(c, node, root, go, more)} />}
		</Panel>
	);
}

function Nothing() {
	return (
		<div class="notice">
			<strong>{tr('Choose what to compare.')}</strong>
			<p>{tr('In the list of traces, select two traces, or traces of two versions, and press Compare. Each side can have up to {side_max} traces.', { side_max: SIDE_MAX })}</p>
			<p><a class="button" href={link('/traces')}>{tr('All traces')}</a></p>
		</div>
	);
}

function Body({ tree, params, root }: { tree: Loaded<Comparison>; params: Record<string, string>; root: number[] }) {
	const c = tree.value;
	const gone = tree.error instanceof Refusal && tree.error.status === 404 && (root.length > 0 || text('focus') !== '');
	const moved = c && !tree.busy && !tree.error && isMoved(c, root);
	if (gone || moved) return <div class="notice"><strong>{tr('This path does not exist here.')}</strong><p>{tr('Neither side has a call on this path, or the traces or their method names have changed since the link was made.')}</p>
		<button onClick={() => set({ ...TOP, focus: null })}>{tr('Show the whole comparison')}</button></div>;
	const mainless = tree.error instanceof Refusal && tree.error.status === 404 && params.thread === 'main';
	if (mainless) return <div class="notice"><strong>{tr('These traces have no main threads to compare.')}</strong><p>{tr('One of the traces does not name its main thread, or was deleted.')}</p>
		<button onClick={() => set({ thread: 'all' })}>{tr('Compare all threads')}</button></div>;
	if (tree.error) return <Failure error={tree.error} retry={tree.again} title={tr('These traces cannot be compared.')} />;
	if (!c) return <Busy what={tr('Comparing')} retry={tree.again} />;
	const alone = c.a.length === 1 && c.b.length === 1;
	return <>
		<p class="verdict" role="status">{verdict(c)}</p>
		<p class="quiet">{c.thread === 'main' ? tr('Compares main threads.') : tr('Compares all threads: their times are added, although they ran in parallel.')}</p>
		<div class="sides"><Side name="A" list={c.a} /><Side name="B" list={c.b} /></div>
		{alone && <p class="quiet">{tr('With one trace on each side, differences can be chance. Compare several traces of each version for reliable results.')}</p>}
		<div class={tree.busy ? 'stale' : ''} data-compared={tree.busy ? undefined : '1'}><Graphs c={c} root={root} /></div>
		<CompareTable sides={{ params: { ...params, thread: c.thread === 'main' ? 'main' : '' }, traces: { a: c.a.length, b: c.b.length } }} />
	</>;
}

export function ComparePage() {
	const [a, b] = [text('a'), text('b')];
	const params = { a, b, thread: text('thread') };
	const root = rootOf(text('root'));
	const query = { ...params, focus: text('focus'), root: root.join('.'), max_nodes: number('nodes') };
	const some = a !== '' && b !== '';
	const tree = useLoad<Comparison | null>(JSON.stringify(query), async (s) => (some ? comparisonOf(query.thread, query.root, (thread) => api.compare({ ...query, thread }, s)) : null));
	useEffect(() => {
		document.title = tr('Comparison · tracewell');
	}, []);
	return (
		<main class="wide">
			<LinkCheck />
			<div class="row head"><h1>{tr('Comparison')}</h1><span class="grow" />
				{some && <button onClick={() => set({ a: b, b: a }, true)}>{tr('Swap A and B')}</button>}</div>
			{some ? <Body tree={tree as Loaded<Comparison>} params={params} root={root} /> : <Nothing />}
		</main>
	);
}
