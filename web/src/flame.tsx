// The merged flame graph: opening a node asks the server for that subtree in full, and a rest for
// what it stands for.  Steps change what is merged; a sandwich shows callers and callees of one method.
import { useMemo, useRef, useState } from 'preact/hooks';
import { api, Refusal } from './api';
import { count, percent, splitName } from './format';
import { above, boxesOf, childrenOf, narrow, placeOf, type Place } from './flamelayout';
import { labelOf } from './flamepaint';
import { Graph, metricOf, numbers, type Answer, type Metric } from './graph';
import { Busy, Choice, Failure, Panel, useLoad, useWidth } from './parts';
import { number, set, text } from './route';
import { AppSwitch, StepBar, useSteps } from './stepbar';
import { format, type Step } from './steps';
import type { Words } from './source';

const LISTED = 50;

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
}

function Crumbs({ at, names, go }: { at: Place; names: string[]; go: (p: Place) => void }) {
	const { path, skip } = at;
	if (path.length === 0 && skip === 0) return null;
	const first = Math.max(0, path.length - 4);
	return (
		<nav class="crumbs" aria-label="Path of the flame graph">
			<button class="small" onClick={() => go({ path: [], skip: 0 })}>Top</button>
			{first > 0 && <span class="quiet">…</span>}
			{path.slice(first).map((m, i) => (
				<button key={i} class="small" title={names[m]} aria-current={!skip && first + i === path.length - 1}
					onClick={() => go({ path: path.slice(0, first + i + 1), skip: 0 })}>{splitName(names[m] ?? '')[1]}</button>))}
			{skip > 0 && <span>without its {count(skip)} heaviest</span>}
		</nav>
	);
}

/** The children of the root as a table: all that the canvas shows of them, and what it cannot. */
function Children({ a, metric, words, open }: { a: Answer; metric: Metric; words: Words; open: (node: number) => void }) {
	const [max, more] = useState(LISTED);
	const { f } = a;
	const all = childrenOf(f);
	const head = (s: string) => s.charAt(0).toUpperCase() + s.slice(1);
	return (
		<div class="scroll short" tabIndex={0}>
			<table class="methods">
				<thead><tr><th scope="col">Directly below {labelOf(f, 0)}</th><th scope="col" class="num">{head(metric.all)}</th>
					<th scope="col" class="num">{head(metric.own)}</th><th scope="col" class="num" title={words.hint}>{words.head}</th><th scope="col" class="num">Share</th></tr></thead>
				<tbody>{all.slice(0, max).map((i) => {
					const [with_, own] = numbers(f, i, metric, words);
					return (
						<tr key={i}><td class="mono name"><button class="plain" onClick={() => open(i)}>
							{f.other[i] ? `${count(f.other[i])} smaller nodes` : <><span class="quiet">{splitName(f.names[f.name[i]])[0]}</span>{labelOf(f, i)}</>}</button></td>
						<td class="num">{with_[1]}</td><td class="num">{own[1]}</td><td class="num">{count(f.count[i])}</td>
						<td class="num">{percent(f.value[i] / (f.value[0] || 1))}</td></tr>);
				})}</tbody>
			</table>
			{all.length > max && <button class="small" onClick={() => more(max * 4)}>Show more of {count(all.length)}</button>}
		</div>
	);
}

function useFlame(p: Props, view: string, metric: string, at: Place, transform: string) {
	const params = { thread: p.thread, view, metric, root: at.path.join('.'), skip: at.skip || null, from: p.range?.[0], to: p.range?.[1], transform };
	return useLoad<Answer>(JSON.stringify(params) + p.mappingTurn, async (s) => {
		const f = await api.flame(p.id, params, s);
		return { f, boxes: boxesOf(f), at };
	});
}

/** One graph that is opened by clicks, with its path and its table. */
function Explorer({ p, view, metric, steps, named }: { p: Props; view: string; metric: Metric; steps: Step[]; named: string[] }) {
	const rootText = text('root');
	const skip = number('skip') ?? 0;
	const at = useMemo(() => ({ path: rootText ? rootText.split('.').map(Number) : [], skip }), [rootText, skip]);
	const flame = useFlame(p, view, metric.key, at, format(steps));
	const [listed, list] = useState(false);
	const came = useRef<Place | null>(null);
	const a = flame.value;
	const go = (to: Place) => {
		came.current = at;
		set({ root: to.path.join('.'), skip: to.skip || null }, true);
	};
	const up = () => (a && (a.at.path.length || a.at.skip)) && go(above(a.at));
	const open = (node: number) => {
		if (!a) return;
		if (node === 0) up();
		else go(placeOf(a.f, a.at, node));
	};
	const gone = flame.error instanceof Refusal && flame.error.status === 404 && (at.path.length > 0 || at.skip > 0);
	const [box, width] = useWidth<HTMLDivElement>();
	const thin = a && narrow(a.f, a.at, width);
	return <>
		<Crumbs at={at} names={named} go={go} />
		{gone && <div class="notice"><strong>This path does not occur here.</strong>
			<p>The graph is of another thread or time range than the path.</p>
			<button onClick={() => go({ path: [], skip: 0 })}>Show the whole graph</button></div>}
		{flame.error && !gone && <Failure error={flame.error} retry={flame.again} />}
		{!a && flame.busy && <Busy what="Merging calls" />}
		<div ref={box} />
		{a && !flame.error && <div class={flame.busy ? 'stale' : ''} data-flame={flame.busy ? undefined : '1'}>
			{a.f.value[0] === 0 ? <p class="quiet">{steps.length ? 'Nothing is left of this part.' : 'No call in this part.'}</p>
				: <Graph a={a} label="Merged flame graph" metric={metric} words={p.words} matches={p.matches} names={named}
					callers={view === 'bottom_up'} open={open} up={up} came={came.current} />}
		</div>}
		{a && !flame.error && <div class="row under">
			<span class="quiet">{count(a.f.shown_nodes)} {a.f.shown_nodes < a.f.total_nodes ? `of ${view === 'bottom_up' ? 'at least ' : ''}${count(a.f.total_nodes)} ` : ''}nodes{a.f.partial ? ', not complete: the time for this query ran out' : ''}</span>
			<span class="grow" />
			{thin && <button class="small" onClick={() => go(thin.place)}>Show the {count(thin.nodes)} too narrow to see</button>}
			<button class="small" aria-expanded={listed} onClick={() => list(!listed)}>{listed ? 'Hide the table' : 'Children as a table'}</button>
		</div>}
		{a && !flame.error && listed && <Children key={JSON.stringify(a.at)} a={a} metric={metric} words={p.words} open={open} />}
	</>;
}

function Half({ p, title, view, at, steps, metric, named, flip, pick }: {
	p: Props; title: string; view: string; at: Place; steps: Step[]; metric: Metric; named: string[]; flip: boolean; pick: (method: number) => void;
}) {
	const flame = useFlame(p, view, metric.key, at, format(steps));
	const a = flame.value;
	if (flame.error instanceof Refusal && flame.error.status === 404) return <p class="quiet">It is not called in this part.</p>;
	if (flame.error) return <Failure error={flame.error} retry={flame.again} />;
	if (!a) return <Busy what={`Merging ${title.toLowerCase()}`} />;
	const open = (node: number) => node > 0 && a.f.method[node] >= 0 && pick(a.f.method[node]);
	return (
		<div class={flame.busy ? 'stale' : ''} data-half={flame.busy ? undefined : title}>
			{a.f.value[0] === 0 ? <p class="quiet">Nothing is left of this part.</p>
				: <Graph a={a} label={title} metric={metric} words={p.words} matches={p.matches} names={named} flip={flip} callers={flip}
					open={open} up={() => undefined} came={null} />}
		</div>
	);
}

/** Callers above and callees below of all calls of one method. */
function Sandwich({ p, metric, steps, named }: { p: Props; metric: Metric; steps: Step[]; named: string[] }) {
	const method = number('method');
	const up = useMemo<Place>(() => ({ path: [method ?? 0], skip: 0 }), [method]);
	const down = useMemo<Place>(() => ({ path: [], skip: 0 }), []);
	if (method === null) return <p class="quiet">Right click a frame or a method below and choose Callers and callees.</p>;
	const pick = (m: number) => set({ method: m }, true);
	return (
		<div class="sandwich">
			<h3>Callers</h3>
			<Half p={p} title="Callers" view="bottom_up" at={up} steps={[...steps, { kind: 'fold', method }]} metric={metric} named={named} flip pick={pick} />
			<h3 class="mono">{named[method] ?? `method ${method}`}</h3>
			<Half p={p} title="Callees" view="top_down" at={down} steps={[...steps, { kind: 'focus', method }]} metric={metric} named={named} flip={false} pick={pick} />
			<p class="quiet under">A click makes that method the middle. Callers share {metric.key === 'count' ? `its ${p.words.many}` : 'its time with all below'}.</p>
		</div>
	);
}

export function FlamePanel(p: Props) {
	const asked = text('view');
	const view = asked === 'bottom_up' || asked === 'sandwich' ? asked : 'top_down';
	const key = text('metric');
	const metric = metricOf(!p.hasCpu && (key === 'cpu' || key === 'waiting') ? 'wall' : key, p.words);
	const { steps, named } = useSteps(p.names);
	const metrics: [string, string][] = [['wall', 'Wall'], ['count', p.words.head]];
	if (p.hasCpu) metrics.push(['cpu', 'CPU'], ['waiting', 'Waiting']);
	return (
		<Panel title="Merged flame graph" aside={<>
			{p.scope}
			<AppSwitch />
			<Choice label="Direction" value={view} options={[['top_down', 'Top-down'], ['bottom_up', 'Bottom-up'], ['sandwich', 'Sandwich']]}
				onPick={(v) => set({ view: v === 'top_down' ? null : v, root: null, skip: null })} />
			<Choice label="Metric" value={metric.key} options={metrics}
				onPick={(v) => set({ metric: v === 'wall' ? null : v, skip: null })} />
		</>}>
			<StepBar names={p.names} />
			{view === 'sandwich' ? <Sandwich p={p} metric={metric} steps={steps} named={named} />
				: <Explorer p={p} view={view} metric={metric} steps={steps} named={named} />}
		</Panel>
	);
}
