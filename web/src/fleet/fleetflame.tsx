// One flame graph of many traces, from their merged call trees.  Times and calls are means per trace.
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { get, Refusal, url, type Flame } from '../api/api';
import { withOverloads } from '../api/overloads';
import { wordsOf } from '../api/source';
import { openNode, rootOf } from '../compare/comparegraph';
import type { Head } from './fleetdoc';
import { FleetFilter } from './fleetfilter';
import { methodLink, Narrowed, NoTraces, OnThread, searchLink, useFleetQuery, withFilter } from './fleetparts';
import { count, duration, percent } from '../i18n/format';
import { Children } from '../trace/graph/children';
import { boxesOf } from '../trace/graph/flamelayout';
import { SaveGraph } from '../trace/graph/flamesave';
import { Graph } from '../trace/graph/graph';
import { Crumbs, metricOf, type Answer } from '../trace/graph/graphparts';
import { copying, type About } from '../trace/parts/methodmenu';
import { matching } from '../ui/matching';
import { afresh, useTable } from '../ui/panelstate';
import { Busy, Choice, Failure, MethodName, Panel, useLoad } from '../ui/parts';
import { go as visit, number, set, text } from '../ui/route';
import { tr } from '../i18n/strings/fleet';

const NODES_MAX = 200000;
const WORDS = wordsOf([]);
const TOP = { root: null, at: null, nodes: null };

type View = 'top_down' | 'bottom_up';

interface FleetFlame extends Head {
	of_traces: number; omitted_below_ns: number; threads: string[]; names: { method: number; name: string; descriptor: string }[];
	parent: number[]; method: number[]; other: number[]; value: number[]; self: number[]; count: number[]; in_traces: number[]; total_nodes: number; shown_nodes: number;
}

interface Graphed extends Answer {
	v: FleetFlame;
	names: string[]; // by number
}

function graphOf(v: FleetFlame): Graphed {
	const names = Array<string>(v.names.reduce((least, n) => Math.max(least, n.method + 1), 0)).fill('');
	for (const n of withOverloads(v.names)) names[n.method] = n.name;
	const each = (list: number[]) => list.map((x) => x / Math.max(1, v.of_traces));
	const f: Flame = { ...v, names: [...names, tr('All calls')], name: v.method.map((m) => (m < 0 ? names.length : m)), value: each(v.value), self: each(v.self), count: each(v.count).map((n) => Math.round(n * 10) / 10), partial: false };
	return { v, names, f, boxes: boxesOf(f), at: { path: [], skip: 0 } };
}

/** Without the parameters that distinguish overloads of one response: another one may have one of them only. */
const plainName = ({ v }: Graphed, method: number) => v.names.find((n) => n.method === method)?.name;

function factsOf({ f, v }: Graphed, node: number): [string, string][] {
	return [[tr('per trace'), duration(f.value[node])], [tr('self'), duration(f.self[node])], [tr('calls'), count(f.count[node])],
		[tr('share'), percent(f.value[node] / (f.value[0] || 1))], ...(f.other[node] ? [] : [[tr('in'), tr('{n} of {traces} traces', { n: count(v.in_traces[node]), traces: count(v.of_traces) })] as [string, string]])];
}

const center = (method: string) => set({ method, view: null, ...TOP, ...afresh() }, true);

/** What can be done with a method; nothing with a thread. */
function itemsOf({ method, name }: About, a: Graphed) {
	if (method < a.v.threads.length) return [];
	const plain = plainName(a, method)!;
	return [
		{ label: tr('Callers and callees'), run: () => center(plain) },
		{ label: tr('Over versions'), run: () => visit(methodLink(plain)) },
		{ label: tr('Its calls in all traces'), run: () => visit(searchLink(plain)) },
		copying(name),
	];
}

/** The graph of a view, or of one method: with its callees top down, with its callers bottom up. */
function Picture({ view, method = '' }: { view: View; method?: string }) {
	const fleet = useFleetQuery();
	const root = method ? [] : rootOf(text('root'));
	const at = text('at'), find = text('find');
	const metric = metricOf(text('metric') === 'cpu' ? 'cpu' : 'wall', WORDS);
	const params = { ...fleet.params, view, focus: method, metric: metric.key, frames: text('frames') === 'app' ? 'app' : '', thread: text('thread'), root: root.join('.'), max_nodes: number('nodes') };
	const load = useLoad(`flame ${fleet.key} ${JSON.stringify(params)}`, async (s) => graphOf(await get<FleetFlame>('/api/v1/fleet/flame', params, s)));
	const a = load.value;
	const matches = useMemo(() => a && matching(a.names, find), [a, find]);
	const hold = method && view === 'bottom_up' ? 'callers' : 'graph';
	const [listed, list] = useTable(hold);
	const missing = load.error instanceof Refusal && load.error.status === 404;
	const moved = a && !load.busy && root.length > 0 && plainName(a, root[root.length - 1]) !== at; // other traces number their methods otherwise
	if (missing && method) return <p class="quiet">{tr('These traces have no such calls, or the calls are too short.')}</p>;
	if (root.length > 0 && (missing || moved)) return <div class="notice"><strong>{tr('This path does not exist here.')}</strong>
		<p>{tr('The traces have changed since the link was made.')}</p><button onClick={() => set(TOP)}>{tr('Show the whole graph')}</button></div>;
	if (load.error) return <Failure error={load.error} retry={load.again} />;
	if (!a) return <Busy what={tr('Merging calls')} retry={load.again} />;
	if (a.v.of_traces === 0) return <NoTraces />;
	if (a.f.value[0] === 0) return <p class="quiet">{tr('None of these traces has this value.')}</p>;

	const go = (to: number[]) => set({ root: to.join('.'), at: plainName(a, to[to.length - 1]) ?? null, nodes: null, ...afresh() }, true);
	const more = () => set({ nodes: Math.min(NODES_MAX, a.f.shown_nodes * 4) }, true);
	const up = () => root.length > 0 && go(root.slice(0, -1));
	const open = (i: number) => {
		if (!method) return i === 0 ? up() : openNode(a.f, i, root, go, more);
		if (a.f.other[i]) more();
		else if (i > 0 && a.f.method[i] >= a.v.threads.length) center(plainName(a, a.f.method[i])!);
	};
	const flip = hold === 'callers';
	const file = (format: string, label: string) => <a class="button small" download href={url('/api/v1/fleet/flame', { ...params, max_nodes: null, format })}>{label}</a>;
	return (
		<div class={load.busy ? 'stale' : ''} data-flame={load.busy ? undefined : view}>
			<Crumbs names={(m) => a.names[m]} path={root} go={go} />
			<Graph a={a} label={tr('Merged flame graph')} hold={hold} metric={metric} words={WORDS} matches={matches} names={a.names} flip={flip} callers={view === 'bottom_up'}
				factsOf={(i) => factsOf(a, i)} itemsOf={(about) => itemsOf(about, a)} open={open} up={up} came={null} />
			<div class="row under">
				<span class="quiet">{tr('{shown} of {total} nodes; times are means of {traces}.', { shown: count(a.f.shown_nodes), total: count(a.f.total_nodes), traces: tr.many(a.v.of_traces, '{n} trace', '{n} traces') })}{a.v.omitted_below_ns > 0 && tr(' Calls that took less than {omitted_below_ns} in their trace may be missing.', { omitted_below_ns: duration(a.v.omitted_below_ns) })}</span>
				<span class="grow" />
				<SaveGraph a={a} id="fleet" metric={metric} matches={matches} />
				{file('folded', tr('Folded stacks'))}
				{view === 'top_down' && file('pprof', 'pprof')}
				<button class="small" aria-expanded={listed} onClick={list}>{listed ? tr('Hide the table') : tr('Children as a table')}</button>
			</div>
			{listed && <Children name={hold} a={a} metric={metric} words={WORDS} open={open} callers={view === 'bottom_up'} />}
		</div>
	);
}

/** The method in the middle, callers above and callees below. */
function Sandwich({ method }: { method: string }) {
	return (
		<div class="sandwich load-in-order">
			<h3>{tr('Callers')}</h3><Picture key={`callers ${method}`} view="bottom_up" method={method} />
			<h3 class="mono"><MethodName name={method} /></h3><Picture key={method} view="top_down" method={method} />
		</div>
	);
}

/** The graph begins at its top when other traces are selected. */
function useTop(): void {
	const { days, params } = useFleetQuery();
	const filter = JSON.stringify([days, { ...params, since: 0 }, text('thread'), text('frames')]);
	const before = useRef(filter);
	useEffect(() => {
		if (before.current !== filter) set(TOP);
		before.current = filter;
	}, [filter]);
}

export function FlamePage() {
	const method = text('method');
	const view = text('view') === 'bottom_up' ? 'bottom_up' : 'top_down';
	useTop();
	useEffect(() => {
		document.title = tr('{at} · tracewell', { at: tr('Fleet flame graph') });
	}, []);
	return (
		<main class="fleet wide">
			<div class="row head"><h1><a href={withFilter('/fleet')}>{tr('Fleet')}</a> · {tr('Flame graph')}</h1><FleetFilter /><Narrowed /></div>
			<Panel title={tr('Calls of all traces, merged')} id="flame" aside={<>
				<Choice label={tr('Frames')} value={text('frames') === 'app' ? 'app' : 'all'} options={[['all', tr('All frames')], ['app', tr('The app’s')]]} onPick={(v) => set({ frames: v === 'app' ? v : null }, true)} />
				{!method && <Choice label={tr('Direction')} value={view} options={[['top_down', tr('Top-down')], ['bottom_up', tr('Bottom-up')]]} onPick={(v) => set({ view: v === 'top_down' ? null : v, ...TOP, ...afresh() }, true)} />}
				<Choice label={tr('Metric')} value={text('metric') === 'cpu' ? 'cpu' : 'wall'} options={[['wall', tr('Wall')], ['cpu', 'CPU']]} onPick={(v) => set({ metric: v === 'cpu' ? v : null }, true)} />
				<OnThread />
				<label class="inline">{tr('Find')}{' '}<input type="search" name="find" value={text('find')} placeholder={tr('name, or /expression/')} onInput={(e) => set({ find: e.currentTarget.value })} /></label>
			</>}>
				{method && <nav class="steps"><span class="step" title={method}>{tr('only {name}', { name: method })}<button class="plain" aria-label={tr('Show the whole graph')} onClick={() => set({ method: null, ...TOP, ...afresh() }, true)}>×</button></span></nav>}
				{method ? <Sandwich method={method} /> : <Picture key={view} view={view} />}
			</Panel>
		</main>
	);
}
