// The merged flame graph.  Opening a node requests its complete subtree; opening a rest node, its nodes.  Steps
// change what is merged; a sandwich shows callers and callees of one method.
import { useMemo, useRef } from 'preact/hooks';
import { api, Refusal } from '../../api/api';
import { count } from '../../i18n/format';
import { above, boxesOf, narrow, parsePlace, placeOf, placeText, type Place } from '../graph/flamelayout';
import { Children } from '../graph/children';
import { SaveGraph } from '../graph/flamesave';
import { Graph } from '../graph/graph';
import { Crumbs, metricOf, nodesOf, type Answer, type Metric } from '../graph/graphparts';
import { afresh, useTable } from '../../ui/panelstate';
import { Busy, Choice, Failure, Panel, Pending, useLoad, useWidth } from '../../ui/parts';
import { number, set, text } from '../../ui/route';
import { matching } from '../../ui/matching';
import { FlameLegend } from '../parts/legend';
import { AppSwitch, StepBar, useSteps } from '../parts/stepbar';
import { format, type Step } from '../state/steps';
import type { Words } from '../../api/source';
import { tr } from '../../i18n/strings/trace';
import { TreeGrid } from './treegrid';

const FOUND_MAX = 1000; // methods scanned for the longest-running match

interface Props {
	id: string;
	thread: string;
	range: [number, number] | null;
	names: string[];
	matches: Uint8Array | null;
	mappingTurn: number;
	scope: preact.ComponentChild;
	words: Words;
	hasCpu: boolean;
	timed: boolean; // otherwise only numbers of calls are meaningful
	tree: boolean; // as rows that open, instead of boxes
}

const TREE_NODES = 2000; // of a response for a tree: further ones are requested where it is opened

const paramsOf = (p: Props, view: string, metric: string, transform: string, tree = false) =>
	({ thread: p.thread, view, metric, from: p.range?.[0], to: p.range?.[1], transform, max_nodes: tree ? TREE_NODES : null, digits: tree || view === 'bottom_up' || !p.timed ? null : 4 });

function useFlame(p: Props, view: string, metric: string, at: Place, transform: string, tree = false) {
	const params = { ...paramsOf(p, view, metric, transform, tree), root: at.path.join('.'), skip: at.skip || null };
	return useLoad<Answer>(JSON.stringify(params) + p.mappingTurn, async (s) => {
		const f = await api.flame(p.id, params, s);
		return { f, boxes: boxesOf(f), at };
	});
}

/** One graph that is opened by clicks, with its path and its table. */
function Explorer({ p, view, metric, steps, named }: { p: Props; view: string; metric: Metric; steps: Step[]; named: string[] }) {
	const rootText = text('root');
	const skip = number('skip') ?? 0;
	const at = useMemo(() => ({ path: parsePlace(rootText)?.path ?? [], skip }), [rootText, skip]);
	const { tree } = p;
	const flame = useFlame(p, view, metric.key, at, format(steps), tree);
	const [listed, list] = useTable('children');
	const came = useRef<Place | null>(null);
	const a = flame.value;
	const go = (to: Place) => {
		came.current = at;
		set({ root: to.path.join('.'), skip: to.skip || null, tree: null, ...afresh() }, true);
	};
	const up = () => (at.path.length > 0 || at.skip > 0) && go(above(at)); // also while the opened node is loading
	const open = (node: number) => {
		if (!a) return;
		if (node === 0) up();
		else go(placeOf(a.f, a.at, node));
	};
	const gone = flame.error instanceof Refusal && flame.error.status === 404 && (at.path.length > 0 || at.skip > 0);
	const [box, width] = useWidth<HTMLDivElement>();
	const thin = a && !tree && narrow(a.f, a.at, width);
	return <>
		<Crumbs names={(m) => named[m]} path={at.path} skip={at.skip} go={(path) => go({ path, skip: 0 })} />
		{gone && <div class="notice"><strong>{tr('This path does not exist here.')}</strong>
			<p>{tr('The graph shows another thread or time range.')}</p>
			<button onClick={() => go({ path: [], skip: 0 })}>{tr('Show the whole graph')}</button></div>}
		{flame.error && !gone && <Failure error={flame.error} retry={flame.again} />}
		{!a && flame.busy && <Busy what={tr('Merging calls')} />}
		<div ref={box} />
		{a && !flame.error && <div class={flame.busy ? 'stale' : ''} data-flame={flame.busy ? undefined : '1'}>
			{a.f.value[0] === 0 ? <p class="quiet">{steps.length ? tr('Nothing is left after the changes.') : tr('No calls here.')}</p>
				: tree ? <TreeGrid id={p.id} a={a} params={paramsOf(p, view, metric.key, format(steps), true)} metric={metric} words={p.words} matches={p.matches}
					callers={view === 'bottom_up'} go={go} up={up} />
				: <Graph a={a} label={tr('Merged flame graph')} hold="graph" metric={metric} words={p.words} matches={p.matches} names={named}
					callers={view === 'bottom_up'} open={open} up={up} came={came.current} />}
		</div>}
		{a && !flame.error && <div class="row under">
			<span class="quiet">{nodesOf(a.f, view === 'bottom_up')}{a.f.partial ? tr(', incomplete: the time limit was reached') : ''}</span>
			<span class="grow" />
			{thin && <button class="small" onClick={() => go(thin.place)}>{tr.many(thin.nodes, 'List {n} hidden narrow frame', 'List {n} hidden narrow frames')}</button>}
			{!tree && a.f.value[0] > 0 && <FlameLegend f={a.f} searched={p.matches !== null} />}
			{!tree && a.f.value[0] > 0 && <SaveGraph a={a} id={p.id} metric={metric} matches={p.matches} />}
			<button class="small" aria-expanded={listed} onClick={list}>{listed ? tr('Hide the table') : tr('Children as a table')}</button>
		</div>}
		{a && !flame.error && listed && <Children key={JSON.stringify(a.at)} name="children" a={a} metric={metric} words={p.words} open={open} />}
	</>;
}

interface HalfProps {
	p: Props;
	title: string;
	held: 'callers' | 'callees'; // in the address
	steps: Step[];
	at: Place;
	top: Place; // of the half as a whole
	metric: Metric;
	named: string[];
	go: (to: Place) => void;
	pick: (method: number) => void;
}

/** Callers are above the method, callees below. */
function Half({ p, title, held, steps, at, top, metric, named, go, pick }: HalfProps) {
	const up = held === 'callers';
	const flame = useFlame(p, up ? 'bottom_up' : 'top_down', metric.key, at, format(steps));
	const [listed, list] = useTable(held);
	const a = flame.value;
	const part = placeText(at) !== placeText(top);
	if (flame.error instanceof Refusal && flame.error.status === 404)
		return <p class="quiet">{tr('It has no calls here.')}{' '}{part && <button class="small" onClick={() => go(top)}>{tr('All {title}', { title: title.toLowerCase() })}</button>}</p>;
	if (flame.error) return <Failure error={flame.error} retry={flame.again} />;
	if (!a) return <Busy what={tr('Merging {title}', { title: title.toLowerCase() })} />;
	const open = (node: number) => {
		if (a.f.other[node] && node > 0) go(placeOf(a.f, a.at, node)); // nodes too small to be shown with the others
		else if (node > 0 && a.f.method[node] >= 0) pick(a.f.method[node]);
	};
	const some = a.f.value[0] > 0;
	return (
		<div class={flame.busy ? 'stale' : ''} data-half={flame.busy ? undefined : up ? 'Callers' : 'Callees'}>
			{part && <p class="crumbs"><button class="small" onClick={() => go(top)}>{tr('All {title}', { title: title.toLowerCase() })}</button> <span class="quiet">{tr('without {skip} that are heavier', { skip: count(at.skip) })}</span></p>}
			{some ? <Graph a={a} label={title} hold={held} metric={metric} words={p.words} matches={p.matches} names={named} flip={up} callers={up}
				open={open} up={() => part && go(top)} came={null} /> : <p class="quiet">{tr('Nothing is left after the changes.')}</p>}
			{some && <div class="row under"><span class="grow" /><button class="small" aria-expanded={listed} onClick={list}>{listed ? tr('Hide the table') : tr('{title} as a table', { title })}</button></div>}
			{some && listed && <Children key={placeText(at)} name={held} a={a} metric={metric} words={p.words} open={open} callers={up} />}
		</div>
	);
}

const NO_PARTS = { callers: null, callees: null };

/** Callers above and callees below one method: the URL's `method`, otherwise the longest-running method that matches the search. */
function Sandwich({ p, metric, steps, named }: { p: Props; metric: Metric; steps: Step[]; named: string[] }) {
	const requested = number('method');
	const known = requested !== null && requested < named.length ? requested : null;
	const params = { thread: p.thread, from: p.range?.[0], to: p.range?.[1], transform: format(steps), sort: 'running_ns', limit: p.matches ? FOUND_MAX : 1 };
	const load = useLoad(known === null ? JSON.stringify(params) + p.mappingTurn : '', async (s) => (known === null ? (await api.methods(p.id, params, s)).methods : []));
	const method = known ?? (load.value?.find((m) => p.matches?.[m.method]) ?? load.value?.[0])?.method ?? null;
	const [callers, callees] = [text('callers'), text('callees')];
	const top = useMemo<Place>(() => ({ path: [method ?? 0], skip: 0 }), [method]);
	const up = useMemo(() => (callers && parsePlace(callers)) || top, [callers, top]);
	const down = useMemo(() => (callees && parsePlace(callees)) || top, [callees, top]);
	if (method === null) return load.value ? <p class="quiet">{tr('No calls here.')}</p> : <Pending of={load} what={tr('Summing')} />;
	const pick = (m: number) => set({ method: m, ...NO_PARTS }, true);
	const half = { p, metric, named, pick, top };
	return (
		<div class="sandwich load-in-order">
			<h3>{tr('Callers')}</h3>
			<Half {...half} held="callers" title={tr('Callers')} at={up} steps={[...steps, { kind: 'fold', method }]} go={(to) => set({ callers: to === top ? null : placeText(to) }, true)} />
			<h3 class="mono" tabIndex={-1}>{named[method]}</h3>
			<Half {...half} held="callees" title={tr('Callees')} at={down} steps={[...steps, { kind: 'focus', method }]} go={(to) => set({ callees: to === top ? null : placeText(to) }, true)} />
			<p class="quiet under">{tr('Click a method to center on it. Callers share {key}.', { key: !p.timed || metric.key === 'count' ? tr('its {many}', { many: p.words.many }) : tr('its total time') })}</p>
		</div>
	);
}

export function FlamePanel(p: Props) {
	const requested = text('view');
	const view = requested === 'bottom_up' || (requested === 'sandwich' && !p.tree) ? requested : 'top_down';
	const key = text('metric');
	const metric = metricOf(!p.hasCpu && key === 'cpu' ? 'wall' : key, p.words, p.timed);
	const { steps, named } = useSteps(p.names);
	const find = text('find');
	const matches = useMemo(() => (named === p.names ? p.matches : matching(named, find)), [named, p.names, p.matches, find]);
	const q = { ...p, matches };
	const metrics: [string, string][] = [['wall', tr('Wall')], ['running', tr('Running')], ['waiting', tr('Waiting')], ['count', p.words.head]];
	if (p.hasCpu) metrics.push(['cpu', 'CPU']);
	return (
		<Panel title={p.tree ? tr('Call tree') : tr('Merged flame graph')} id="flame" aside={<>
			{p.scope}
			<AppSwitch />
			<Choice label={tr('Direction')} value={view} options={[['top_down', tr('Top-down')], ['bottom_up', tr('Bottom-up')], ...(p.tree ? [] : [['sandwich', tr('Sandwich')] as [string, string]])]}
				onPick={(v) => set({ view: v === 'top_down' ? null : v, root: null, skip: null, tree: null, ...NO_PARTS, ...afresh() }, true)} />
			{p.timed && <Choice label={tr('Metric')} value={metric.key} options={metrics}
				onPick={(v) => set({ metric: v === 'wall' ? null : v, skip: null }, true)} />}
		</>}>
			<StepBar names={p.names} />
			{view === 'sandwich' ? <Sandwich p={q} metric={metric} steps={steps} named={named} />
				: <Explorer p={q} view={view} metric={metric} steps={steps} named={named} />}
		</Panel>
	);
}
