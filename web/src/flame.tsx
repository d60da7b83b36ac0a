// The merged flame graph: opening a node asks the server for that subtree in full, and a rest for
// what it stands for.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { api, Refusal, type Flame } from './api';
import { count, duration, percent, splitName } from './format';
import { above, boxAt, boxesOf, childrenOf, narrow, placeOf, walk, type Boxes, type Place } from './flamelayout';
import { labelOf, paintBoxes, ROW } from './flamepaint';
import { Busy, Choice, Failure, Panel, useLoad, useWidth } from './parts';
import { number, set, text } from './route';
import { dark } from './theme';
import { Tip } from './tip';
import { many, type Words } from './source';

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
}

function numbers(f: Flame, node: number, counts: boolean, w: Words): [string, string][] {
	const show = (v: number) => (counts ? count(v) : duration(v));
	return [
		[counts ? `${w.many} with all below` : 'wall', show(f.value[node])],
		[counts ? `own ${w.many}` : 'self', show(f.self[node])],
		['count', many(f.count[node], w)],
		['share', `${percent(f.value[node] / (f.value[0] || 1))} of this graph`],
	];
}

function FlameTip({ f, node, x, y, counts, words }: { f: Flame; node: number; x: number; y: number; counts: boolean; words: Words }) {
	return (
		<Tip x={x} y={y} name={f.other[node] ? `${count(f.other[node])} smaller` : f.names[f.name[node]]}>
			{f.other[node] > 0 && node > 0 && <div>A click shows them.</div>}
			<dl>{numbers(f, node, counts, words).map(([k, v]) => <><dt key={k}>{k}</dt><dd>{v}</dd></>)}</dl>
		</Tip>
	);
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
function Children({ f, counts, words, open }: { f: Flame; counts: boolean; words: Words; open: (node: number) => void }) {
	const [max, more] = useState(LISTED);
	const all = childrenOf(f);
	return (
		<div class="scroll short" tabIndex={0}>
			<table class="methods">
				<thead><tr><th scope="col">Directly below {labelOf(f, 0)}</th><th scope="col" class="num">{counts ? 'With all below' : 'Wall'}</th>
					<th scope="col" class="num">{counts ? `Own ${words.many}` : 'Self'}</th><th scope="col" class="num" title={words.hint}>{words.head}</th><th scope="col" class="num">Share</th></tr></thead>
				<tbody>{all.slice(0, max).map((i) => {
					const [wall, self] = numbers(f, i, counts, words);
					return (
						<tr key={i}><td class="mono name"><button class="plain" onClick={() => open(i)}>
							{f.other[i] ? `${count(f.other[i])} smaller nodes` : <><span class="quiet">{splitName(f.names[f.name[i]])[0]}</span>{labelOf(f, i)}</>}</button></td>
						<td class="num">{wall[1]}</td><td class="num">{self[1]}</td><td class="num">{count(f.count[i])}</td>
						<td class="num">{percent(f.value[i] / (f.value[0] || 1))}</td></tr>);
				})}</tbody>
			</table>
			{all.length > max && <button class="small" onClick={() => more(max * 4)}>Show more of {count(all.length)}</button>}
		</div>
	);
}

interface Answer {
	f: Flame;
	boxes: Boxes;
	at: Place; // what was asked for: nodes of an answer lie below this, whatever the address says by now
}

function useFlame(p: Props, view: string, metric: string, at: Place) {
	const params = { thread: p.thread, view, metric, root: at.path.join('.'), skip: at.skip || null, from: p.range?.[0], to: p.range?.[1] };
	return useLoad<Answer>(JSON.stringify(params) + p.mappingTurn, async (s) => {
		const f = await api.flame(p.id, params, s);
		return { f, boxes: boxesOf(f), at };
	});
}

/** The node that is gone back to: the one that was the root before. */
function nodeOf(a: Answer, left: Place | null): number {
	if (!left || left.skip || left.path.length !== a.at.path.length + 1) return 0;
	return childrenOf(a.f).find((i) => a.f.method[i] === left.path[left.path.length - 1]) ?? 0;
}

function Graph({ a, counts, words, matches, open, up, came }: {
	a: Answer; counts: boolean; words: Words; matches: Uint8Array | null; open: (node: number) => void; up: () => void; came: Place | null;
}) {
	const { f, boxes } = a;
	const [box, width] = useWidth<HTMLDivElement>();
	const canvas = useRef<HTMLCanvasElement>(null);
	const [over, point] = useState<{ node: number; x: number; y: number } | null>(null);
	const [focus, put] = useState(-1);
	const dpr = Math.max(1, Math.round(devicePixelRatio || 1));
	const height = Math.max(1, boxes.rows) * ROW;
	const keyed = focus >= 0 && focus < boxes.n ? focus : -1;

	useEffect(() => {
		point(null);
		put((n) => (n < 0 ? -1 : nodeOf(a, came)));
	}, [a]);
	useEffect(() => {
		const g = canvas.current?.getContext('2d');
		if (!g || width < 10) return;
		g.setTransform(dpr, 0, 0, dpr, 0, 0);
		g.clearRect(0, 0, width, height);
		paintBoxes(g, f, boxes, width, { matches, dark: dark.value, focus: keyed });
	}, [a, width, matches, dark.value, keyed]);

	const nodeAt = (e: PointerEvent | MouseEvent) => boxAt(boxes, Math.floor(e.offsetY / ROW), e.offsetX / width);
	const onKey = (e: KeyboardEvent) => {
		if (e.ctrlKey || e.metaKey || e.altKey) return;
		const at = Math.max(0, keyed);
		if (e.key === 'Enter') open(at);
		else if (e.key === 'Escape' || e.key === 'Backspace') up();
		else if (/^(Arrow(Up|Down|Left|Right)|Home)$/.test(e.key)) {
			const to = keyed < 0 ? 0 : walk(f, boxes, at, e.key);
			const y = boxes.depth[to] * ROW;
			put(to);
			if (box.current && (y < box.current.scrollTop || y + ROW > box.current.scrollTop + box.current.clientHeight))
				box.current.scrollTop = y - box.current.clientHeight / 2;
		} else return;
		e.preventDefault();
	};
	return <>
		<div ref={box} class="canvasbox flame">
			<canvas ref={canvas} width={width * dpr} height={height * dpr} role="application" tabIndex={0}
				style={{ width: `${width}px`, height: `${height}px` }}
				aria-label="Merged flame graph. Arrows go to parent, child and siblings, Enter opens a node, Escape goes up. The tables below hold the same numbers."
				onClick={(e) => { const n = nodeAt(e); if (n >= 0) open(n); }} onKeyDown={onKey}
				onFocus={(e) => e.currentTarget.matches(':focus-visible') && put((n) => Math.max(0, n))} onBlur={() => put(-1)}
				onPointerLeave={() => point(null)}
				onPointerMove={(e) => {
					const node = nodeAt(e);
					point(node < 0 ? null : { node, x: e.clientX, y: e.clientY });
				}} />
		</div>
		{over && over.node < boxes.n && <FlameTip f={f} node={over.node} x={over.x} y={over.y} counts={counts} words={words} />}
		<p class="keyed" role="status">{keyed >= 0 && <><span class="mono">{f.other[keyed] ? labelOf(f, keyed) : f.names[f.name[keyed]]}</span>{' '}
			<span class="quiet">{numbers(f, keyed, counts, words).map(([k, v]) => `${k} ${v}`).join(', ')}</span></>}</p>
	</>;
}

export function FlamePanel(p: Props) {
	const view = text('view') === 'bottom_up' ? 'bottom_up' : 'top_down';
	const metric = text('metric') === 'count' ? 'count' : 'wall';
	const rootText = text('root');
	const skip = number('skip') ?? 0;
	const at = useMemo(() => ({ path: rootText ? rootText.split('.').map(Number) : [], skip }), [rootText, skip]);
	const flame = useFlame(p, view, metric, at);
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
	return (
		<Panel title="Merged flame graph" aside={<>
			{p.scope}
			<Choice label="Direction" value={view} options={[['top_down', 'Top-down'], ['bottom_up', 'Bottom-up']]}
				onPick={(v) => set({ view: v === 'top_down' ? null : v, root: null, skip: null })} />
			<Choice label="Metric" value={metric} options={[['wall', 'Wall'], ['count', p.words.head]]}
				onPick={(v) => set({ metric: v === 'wall' ? null : v, skip: null })} />
		</>}>
			<Crumbs at={at} names={p.names} go={go} />
			{gone && <div class="notice"><strong>This path does not occur here.</strong>
				<p>The graph is of another thread or time range than the path.</p>
				<button onClick={() => go({ path: [], skip: 0 })}>Show the whole graph</button></div>}
			{flame.error && !gone && <Failure error={flame.error} retry={flame.again} />}
			{!a && flame.busy && <Busy what="Merging calls" />}
			<div ref={box} />
			{a && !flame.error && <div class={flame.busy ? 'stale' : ''} data-flame={flame.busy ? undefined : '1'}>
				{a.f.value[0] === 0 ? <p class="quiet">No call in this part.</p>
					: <Graph a={a} counts={metric === 'count'} words={p.words} matches={p.matches} open={open} up={up} came={came.current} />}
			</div>}
			{a && !flame.error && <div class="row under">
				<span class="quiet">{count(a.f.shown_nodes)} {a.f.shown_nodes < a.f.total_nodes ? `of ${view === 'bottom_up' ? 'at least ' : ''}${count(a.f.total_nodes)} ` : ''}nodes{a.f.partial ? ', not complete: the time for this query ran out' : ''}</span>
				<span class="grow" />
				{thin && <button class="small" onClick={() => go(thin.place)}>Show the {count(thin.nodes)} too narrow to see</button>}
				<button class="small" aria-expanded={listed} onClick={() => list(!listed)}>{listed ? 'Hide the table' : 'Children as a table'}</button>
			</div>}
			{a && !flame.error && listed && <Children key={JSON.stringify(a.at)} f={a.f} counts={metric === 'count'} words={p.words} open={open} />}
		</Panel>
	);
}
