// The timeline of all threads: heads at the left, one canvas over all tracks, one time axis.
import { effect } from '@preact/signals';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { NoteSum, Thread } from './api';
import { currentProject } from './api';
import type { Span } from './axis';
import { count, duration } from './format';
import { flowOf, otherEnd, wakerOf, type Spot } from './flows';
import { Tiles } from './lanes';
import type { Hit } from './messages';
import { Minimap } from './minimap';
import { kindTitle } from './notekinds';
import { formatOpen, parseOpen, withOpen, type OpenSet } from './opened';
import { Busy, Failure, useWidth } from './parts';
import { number, query, set, text } from './route';
import { RULER } from './scenedraw';
import { Scene, type Hover, type Range } from './scene';
import { many, wordsOf } from './source';
import type { Progress } from './store';
import { dark } from './theme';
import { Head, type HeadActions } from './timelinehead';
import { keysOn, pointerOn, rowsHidden, wheelOn, type Actions } from './timelineinput';
import { CallTip, NoteTip } from './tip';
import { inView, layoutOf, OPEN_ROWS, Presence, ROW, SPAN_KINDS, TRACE_KINDS, type Group, type Layout } from './tracks';

const HEADS_ALL = 64; // up to so many threads every head is in the document
const HEADS_AROUND = 400; // CSS pixels beyond the view
const HEIGHT_MAX = 0.66; // of the window
const HEIGHT_MIN = 200;

export interface TimelineProps {
	id: string;
	threads: Thread[]; // in order, those that are listed
	names: string[];
	matches: Uint8Array | null;
	whole: Span;
	sums: NoteSum[];
	focus: Thread | null;
	range: Range | null;
	step: { turn: number; forward: boolean };
	onFound: (calls: number | null) => void;
}

/** The view that the address tells. */
function viewOf(whole: Span): Span {
	const from = number('from') ?? whole.from;
	return { from, to: Math.max(from + 1, number('to') ?? whole.to) };
}

function openFromAddress(first: Thread | null): OpenSet {
	const open = text('open');
	const row = number('row'); // older addresses knew one thread
	const set = parseOpen(open, first && first.slices > 0 ? first.tid : null);
	return !open && row && first ? withOpen(set, first.tid, { row }) : set;
}

/** The scene, for as long as this trace is shown. */
function useScene(p: TimelineProps, presence: Presence, events: Partial<Record<string, (...a: never[]) => void>>): Scene {
	const on = useRef(events);
	on.current = events;
	const scene = useMemo(() => {
		const tell = (name: string) => (...a: unknown[]) => (on.current[name] as ((...x: unknown[]) => void) | undefined)?.(...a);
		const kinds = { thread: presence.of(['state', ...SPAN_KINDS, 'counter']), trace: presence.of(TRACE_KINDS), counters: presence.counters.has(null) };
		const tiles = new Tiles(p.id, p.whole, kinds, () => made.repaint());
		const made: Scene = new Scene(p.id, currentProject(), p.whole, tiles, { view: tell('view'), top: tell('top'), progress: tell('progress'),
			failed: tell('failed'), found: tell('found'), visible: tell('visible'), next: tell('next'), hover: tell('hover') });
		made.view = viewOf(p.whole);
		return made;
	}, []);
	useEffect(() => () => scene.stop(), []);
	return scene;
}

interface Shown {
	hover: Hover;
	x: number;
	y: number;
}

export function Timeline(p: TimelineProps) {
	const presence = useMemo(() => new Presence(p.sums), [p.sums]);
	const openText = text('open');
	const rowText = text('row');
	const allCounters = text('counters') === 'all';
	const open = useMemo(() => openFromAddress(p.focus), [openText, rowText, openText ? null : p.focus]);
	const layout = useMemo(() => layoutOf(p.threads, open, presence, allCounters), [p.threads, open, presence, allCounters]);
	const opened = useMemo(() => p.threads.filter((t) => open.has(t.tid) && t.slices > 0).map((t) => t.tid), [p.threads, open]);
	const [box, width] = useWidth<HTMLDivElement>();
	const [head, headWidth] = useWidth<HTMLDivElement>();
	const height = Math.max(HEIGHT_MIN, Math.min(layout.height, Math.round(innerHeight * HEIGHT_MAX)));
	const [progress, report] = useState<ReadonlyMap<number, Progress>>(new Map());
	const [error, fail] = useState<{ tid: number; message: string } | null>(null);
	const [shown, point] = useState<Shown | null>(null);
	const [calls, list] = useState<Hit[] | null>(null);
	const [top, scrolled] = useState(0);
	const [said, tell] = useState('');
	const pointer = useRef({ x: 0, y: 0, busy: false });
	const here = useRef<number | null>(null); // thread at which a flow was met
	const found = useRef<{ tid: number; hit: Hit } | null>(null);
	const waker = useRef<AbortController | null>(null);
	const els = { canvas: useRef<HTMLCanvasElement>(null), over: useRef<HTMLCanvasElement>(null), ruler: useRef<HTMLCanvasElement>(null),
		list: useRef<HTMLUListElement>(null), scroller: useRef<HTMLDivElement>(null) };
	const now = useRef({ p, open, layout });
	now.current = { p, open, layout };

	const scene = useScene(p, presence, {
		view: (v: Span) => set({ from: Math.max(0, Math.round(v.from)), to: Math.max(1, Math.round(v.to)) }),
		top: (px: number) => scrolled(Math.round(px / 100) * 100),
		progress: (tid: number, q: Progress) => report((m) => new Map(m).set(tid, q)),
		failed: (tid: number, message: string) => fail({ tid, message }),
		found: (tid: number, n: number | null) => tid === now.current.p.focus?.tid && p.onFound(n),
		visible: (h: Hit[]) => list(h),
		next: (tid: number, h: Hit) => showHit(tid, h),
		hover: (h: Hover | null) => hover(h),
	});

	function put(to: OpenSet, more: Record<string, string | number | null> = {}, push = false): void {
		set({ open: formatOpen(to), row: null, ...more }, push);
	}

	function hover(h: Hover | null): void {
		if (pointer.current.busy) return;
		waker.current?.abort();
		point(h && { hover: h, x: pointer.current.x, y: pointer.current.y });
		if (h?.what === 'note') meet(h.spot);
		else if (!scene.spot && here.current === null) {
			scene.flow = null;
			scene.drawOver();
		}
	}

	/** What this note leads to is drawn; who woke a thread has to be asked for. */
	function meet(spot: Spot): void {
		const all = now.current.p.threads;
		here.current = null;
		scene.flow = flowOf(spot, all);
		scene.drawOver();
		if (scene.flow) return;
		const abort = new AbortController();
		waker.current = abort;
		wakerOf(p.id, spot, all, abort.signal).then((f) => {
			if (!f || abort.signal.aborted) return;
			scene.flow = f;
			scene.drawOver();
		}, () => {});
	}

	function groupOf(tid: number): Group | undefined {
		return now.current.layout.groups.find((g) => g.thread?.tid === tid);
	}

	function reveal(g: Group): void {
		const s = els.scroller.current;
		if (!s) return;
		if (g.y < s.scrollTop) scene.scroll(g.y);
		else if (g.y + Math.min(g.height, 60) > s.scrollTop + s.clientHeight) scene.scroll(g.y - s.clientHeight / 3);
	}

	function centre(time: number): void {
		const span = scene.view.to - scene.view.from;
		if (time < scene.view.from || time > scene.view.to) scene.move({ from: time - span / 2, to: time + span / 2 });
	}

	function showHit(tid: number, h: Hit): void {
		const span = Math.max((h.end - h.start) * 4, 1000);
		const middle = (h.start + h.end) / 2;
		found.current = { tid, hit: h };
		scene.move({ from: middle - span / 2, to: middle + span / 2 });
		const g = groupOf(tid);
		if (rowsHidden(g ?? null)) put(withOpen(now.current.open, tid, { row: Math.max(0, h.depth - OPEN_ROWS / 2) }));
		else if (g?.calls) scene.scroll(g.calls.y + h.depth * ROW - height / 2);
	}

	const act: Actions = {
		rows: (g, row) => g.thread && g.calls && put(withOpen(now.current.open, g.thread.tid, { row: Math.max(0, Math.min(g.thread.max_depth - g.calls.rows, row)) })),
		select: (from, to, tids) => selectRange(p, from, to, tids),
		clear: () => {
			scene.spot = scene.flow = here.current = null;
			scene.drawOver();
			tell('');
			set({ a: null, b: null, sel: null, threads: text('threads') === 'sel' ? null : text('threads'), root: null, skip: null }, true);
		},
		zoomTo: (what) => (what === 'whole' ? scene.move(p.whole) : p.range && scene.move(p.range)),
		dwell: (on) => {
			pointer.current.busy = on;
			if (on) point(null);
			else scene.draw();
		},
		open: () => {
			if (shown?.hover.what === 'call') zoomTo(shown.hover.hit.start, shown.hover.hit.end);
			else if (shown) zoomTo(shown.hover.spot.lane.ts[shown.hover.spot.i], shown.hover.spot.lane.ts[shown.hover.spot.i] + shown.hover.spot.lane.dur[shown.hover.spot.i]);
		},
		focus: (step) => {
			const at = p.threads.findIndex((t) => t.tid === p.focus?.tid);
			const t = p.threads[Math.max(0, Math.min(p.threads.length - 1, at + step))];
			if (t) pick(t, false, false);
		},
		toggle: () => p.focus && toggle(p.focus),
		alone: () => p.focus && put(withOpen(new Map(), p.focus.tid, open.get(p.focus.tid) ?? {}), {}, true),
		full: () => p.focus && full(p.focus),
		add: () => p.focus && addToRange(p, p.focus),
		selectView: () => selectRange(p, Math.max(0, Math.floor(scene.view.from)), Math.ceil(scene.view.to), null),
		extend: (share) => {
			const v = scene.view;
			const r = p.range ?? { from: v.from, to: (v.from + v.to) / 2 };
			const to = Math.max(r.from + 1, r.to + share * (v.to - v.from));
			selectRange(p, Math.floor(r.from), Math.ceil(to), null, false);
		},
		step: (forward) => stepNote(forward),
		follow: () => follow(),
		down: (rows) => {
			const g = p.focus && groupOf(p.focus.tid);
			if (g && rowsHidden(g)) act.rows(g, g.calls.row + rows);
			else scene.scroll(scene.top + rows * ROW);
		},
	};

	function zoomTo(from: number, to: number): void {
		const pad = Math.max(1, (to - from) * 0.03);
		scene.move({ from: from - pad, to: to + pad });
	}

	function pick(t: Thread, add: boolean, opens = true): void {
		if (add) return addToRange(p, t);
		const to = opens && t.slices > 0 && !open.has(t.tid) ? withOpen(open, t.tid, {}) : open;
		put(to, { thread: t.tid, root: null, skip: null }, true);
		const g = groupOf(t.tid);
		if (g) reveal(g);
	}

	const toggle = (t: Thread) => put(withOpen(open, t.tid, open.has(t.tid) ? null : {}), {}, true);
	const full = (t: Thread) => put(withOpen(open, t.tid, { full: !open.get(t.tid)?.full, row: 0 }), {}, true);

	/** The note after (or before) the one that was picked, of the thread that has the focus. */
	function stepNote(forward: boolean): void {
		const g = p.focus && groupOf(p.focus.tid);
		if (!g) return;
		const own = g.tracks.filter((t) => t.kind !== 'counter' && t.kind !== 'state');
		const spots = (own.length > 0 ? own : g.tracks.filter((t) => t.kind === 'state')).flatMap((t) => scene.lanesOf(t, g))
			.flatMap((lane) => [...lane.ts].flatMap((_, i) => (lane.notes[i] === 1 ? [{ lane, i }] : [])))
			.sort((a, b) => (a.lane.ts[a.i] - b.lane.ts[b.i]) * (forward ? 1 : -1));
		const at = scene.spot?.lane.tid === g.thread?.tid && scene.spot ? scene.spot.lane.ts[scene.spot.i] : forward ? scene.view.from - 1 : scene.view.to;
		const to = spots.find((s) => (forward ? s.lane.ts[s.i] > at : s.lane.ts[s.i] < at));
		if (!to) return tell(forward ? 'No later note here.' : 'No earlier note here.');
		scene.spot = to;
		centre(to.lane.ts[to.i]);
		meet(to);
		tell(`${kindTitle(to.lane.kind)}: ${to.lane.text[to.i] || 'no text'}, ${to.lane.dur[to.i] > 0 ? duration(to.lane.dur[to.i]) : 'a moment'}${scene.flow ? `, ${scene.flow.label}; f follows` : ''}`);
	}

	function follow(): void {
		const f = scene.flow;
		if (!f) return tell('Nothing to follow here.');
		const end = otherEnd(f, here.current ?? scene.spot?.lane.tid ?? (shown?.hover.what === 'note' ? shown.hover.spot.lane.tid ?? -1 : -1));
		const t = p.threads.find((x) => x.tid === end.tid);
		if (!t) return;
		here.current = end.tid;
		centre(end.time);
		pick(t, false);
		tell(`At ${t.name || t.tid}; f goes back.`);
	}

	useEffect(() => scene.attach({ canvas: els.canvas.current!, over: els.over.current!, ruler: els.ruler.current!, list: els.list.current!, scroller: els.scroller.current! }), []);
	useEffect(() => scene.resize(width, height), [width, height]);
	useEffect(() => scene.update({ threads: p.threads, layout, names: p.names, matches: p.matches, focus: p.focus?.tid ?? null, range: p.range, opened }),
		[p.threads, layout, p.names, p.matches, p.focus, p.range, opened]);
	useEffect(() => scene.look(), [dark.value]);
	useEffect(() => effect(() => {
		void query.value;
		scene.move(viewOf(p.whole)); // the back button, or a button elsewhere on the page
	}), []);
	useEffect(() => {
		if (p.step.turn === 0 || !p.focus) return;
		const f = found.current?.tid === p.focus.tid ? found.current.hit : null;
		const after = f ? { start: f.start, row: f.depth, index: f.index } : { start: p.step.forward ? scene.view.from : scene.view.to, row: -1, index: -1 };
		if (!open.has(p.focus.tid)) put(withOpen(open, p.focus.tid, {}));
		scene.say({ kind: 'next', tid: p.focus.tid, after, forward: p.step.forward });
	}, [p.step.turn]);
	useEffect(() => {
		list(null);
		fail(null);
		found.current = null;
	}, [p.focus?.tid]);
	const actions = useRef(act);
	actions.current = act;
	const [canvasOn, rulerOn, onKey] = useMemo(() => {
		const late = new Proxy({} as Actions, { get: (_, name) => (...a: unknown[]) => (actions.current[name as keyof Actions] as (...x: unknown[]) => void)(...a) });
		return [{ ...pointerOn(scene, late, false), wheel: wheelOn(scene, late) }, pointerOn(scene, late, true), keysOn(scene, late)] as const;
	}, []);
	useEffect(() => {
		const c = els.canvas.current!;
		c.addEventListener('wheel', canvasOn.wheel, { passive: false });
		return () => c.removeEventListener('wheel', canvasOn.wheel);
	}, []);

	const heads: HeadActions = { pick, toggle, full, counters: () => set({ counters: 'all' }, true), reveal };
	const { wheel: _, ...canvasPointer } = canvasOn;
	const dpr = scene.dpr;
	const size = (w: number, h: number) => ({ width: Math.max(1, Math.round(w * dpr)), height: Math.max(1, Math.round(h * dpr)), style: { width: `${w}px`, height: `${h}px` } });
	return (
		<div class="chart timeline">
			<div class="axis">
				<div ref={head} class="headwidth" />
				<div style={{ width: `${width}px` }}>
					<Minimap threads={p.threads} whole={p.whole} range={p.range} onView={(v) => scene.move(v)} />
					<canvas ref={els.ruler} {...size(width, RULER)} class="ruler" aria-hidden="true" {...rulerOn} />
				</div>
			</div>
			<div class="scroller" ref={els.scroller} onScroll={() => scene.scrolled()} style={{ height: `${height}px` }}>
				<div class="sheet" style={{ height: `${layout.height}px` }}>
					<div class="pane" style={{ height: `${height}px` }} onScroll={(e) => { e.currentTarget.scrollTop = 0; }}>
						<ul class="threads" ref={els.list} style={{ width: `${headWidth}px` }} aria-label="Threads">
							<Heads layout={layout} top={top} height={height} focus={p.focus} range={p.range} on={heads} />
						</ul>
						<div ref={box} class="canvasbox">
							<canvas ref={els.canvas} {...size(width, height)} class="calls" tabIndex={0} role="application"
								aria-label="Timeline of all threads. The keys are behind the question mark. Threads are listed beside it; tables below hold calls, notes and times in each state."
								{...canvasPointer} onPointerMove={(e) => { pointer.current.x = e.clientX; pointer.current.y = e.clientY; canvasPointer.onPointerMove(e); }}
								onDblClick={() => act.open()} onKeyDown={onKey} />
							<canvas ref={els.over} {...size(width, height)} class="over" aria-hidden="true" />
						</div>
					</div>
				</div>
			</div>
			{shown && <HoverTip shown={shown} p={p} />}
			<p class="keyed" role="status">{said}</p>
			{error && <Failure error={new Error(error.message)} retry={() => { scene.say({ kind: 'again', tid: error.tid }); fail(null); }} />}
			<Under p={p} progress={opened.flatMap((t) => progress.get(t) ?? [])} wanted={opened.length} failed={error !== null} scene={scene} calls={calls} list={list} />
		</div>
	);
}

function Heads({ layout, top, height, focus, range, on }: { layout: Layout; top: number; height: number; focus: Thread | null; range: Range | null; on: HeadActions }) {
	const [a, b] = layout.groups.length <= HEADS_ALL ? [0, layout.groups.length] : inView(layout, top - HEADS_AROUND, top + height + HEADS_AROUND);
	return <>{layout.groups.slice(a, b).map((g) => (
		<Head key={g.thread?.thread_id ?? 0} g={g} focused={g.thread !== null && g.thread === focus} picked={!!g.thread && !!range?.tids?.has(g.thread.tid)} on={on} />))}</>;
}

function HoverTip({ shown, p }: { shown: Shown; p: TimelineProps }) {
	const { hover: h, x, y } = shown;
	if (h.what === 'note') return <NoteTip spot={h.spot} threads={p.threads} start={p.whole.from} x={x} y={y} />;
	const t = p.threads.find((q) => q.tid === h.tid);
	return <CallTip words={wordsOf(t ? [t] : [])} hit={h.hit} about={h.about} name={p.names[h.hit.method] ?? ''} start={p.whole.from} x={x} y={y} />;
}

function Under({ p, progress, wanted, failed, scene, calls, list }: {
	p: TimelineProps; progress: Progress[]; wanted: number; failed: boolean; scene: Scene; calls: Hit[] | null; list: (h: Hit[] | null) => void;
}) {
	const v = viewOf(p.whole);
	const ready = progress.length === wanted && progress.every((q) => q.complete);
	const [loaded, total] = [progress.reduce((n, q) => n + q.loaded, 0), progress.reduce((n, q) => n + q.total, 0)];
	const slices = progress.reduce((n, q) => n + q.slices, 0);
	const words = wordsOf(p.focus ? [p.focus] : []);
	return <>
		<div class="row under">
			{!ready && !failed && <Busy what={total > 0 ? `Loading ${words.many}, ${Math.round((100 * loaded) / total)} %` : `Loading ${words.many}`} />}
			{ready && <span class="quiet" data-ready="1">{many(slices, words)} in {count(wanted)} open {wanted === 1 ? 'thread' : 'threads'}, {duration(v.to - v.from)} in view</span>}
			{p.range && <span class="quiet">{duration(p.range.to - p.range.from)} selected{p.range.tids ? ` of ${p.range.tids.size === 1 && p.focus ? p.focus.name || p.focus.tid : `${count(p.range.tids.size)} threads`}` : ''}</span>}
			<span class="grow" />
			<button class="small" onClick={() => scene.move(p.whole)}>Whole trace</button>
			{p.focus && <button class="small" aria-expanded={calls !== null}
				onClick={() => (calls ? list(null) : scene.say({ kind: 'visible', tid: p.focus!.tid, from: scene.view.from, to: scene.view.to }))}>
				{calls ? 'Hide the table' : `Visible ${words.many} as a table`}
			</button>}
		</div>
		{calls && <VisibleCalls of={p.focus} calls={calls} names={p.names} start={p.whole.from} />}
	</>;
}

function VisibleCalls({ of, calls, names, start }: { of: Thread | null; calls: Hit[]; names: string[]; start: number }) {
	return (
		<div class="scroll short" tabIndex={0}>
			<table>
				<caption class="quiet">The longest {wordsOf(of ? [of] : []).many} of {of?.name || 'the thread'} in view, at most 200, in time order</caption>
				<thead><tr><th scope="col" class="num">Start</th><th scope="col" class="num">Duration</th>
					<th scope="col" class="num">Depth</th><th scope="col">Method</th></tr></thead>
				<tbody>{calls.map((c, i) => (
					<tr key={i}><td class="num">{duration(c.start - start)}</td><td class="num">{duration(c.end - c.start)}</td>
						<td class="num">{c.depth}</td>
						<td class="mono name">{c.merged > 1 ? `${count(c.merged)} short ${wordsOf(of ? [of] : []).many}, the longest ${names[c.method]}` : names[c.method]}</td></tr>))}</tbody>
			</table>
		</div>
	);
}

/** A range of time, of these threads: one is the thread that is shown, several are a set. */
function selectRange(p: TimelineProps, from: number, to: number, tids: ReadonlySet<number> | null, push = true): void {
	const time = { a: from, b: to, root: null, skip: null };
	if (!tids) return set(time, push);
	const calls = p.threads.filter((t) => tids.has(t.tid));
	if (calls.length === 1) return set({ ...time, thread: calls[0].tid, sel: null, threads: null, open: text('open') || formatOpen(openFromAddress(p.focus)) }, push);
	set({ ...time, sel: calls.map((t) => t.tid).join(','), threads: calls.length === 0 ? null : 'sel' }, push);
}

/** Takes a thread into the set of those that are looked at together, or out of it. */
function addToRange(p: TimelineProps, t: Thread): void {
	const before = text('sel') ? text('sel').split(',').map(Number) : [];
	const tids = new Set(before.length > 0 ? before : p.focus ? [p.focus.tid] : []);
	if (before.includes(t.tid)) tids.delete(t.tid);
	else tids.add(t.tid);
	set({ sel: [...tids].join(','), threads: tids.size > 1 ? 'sel' : null, root: null, skip: null }, true);
}
