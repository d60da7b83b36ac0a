// The timeline of all threads: heads at the left, one canvas over all tracks, one time axis.
import { effect } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { annotations, timesOf } from '../state/annotations';
import { currentProject } from '../../api/api';
import { addressOf, sameView } from '../state/axis';
import type { Found } from '../worker/calls';
import { answered, probe, returned } from '../../api/health';
import { serverText } from '../../i18n/servertext';
import { shapeOf, Tiles } from '../state/lanes';
import type { CallId, Hit } from '../worker/messages';
import { CallPane, useSelected } from './callpane';
import { EventPane } from './eventpane';
import { parseEvent } from '../state/event';
import { MethodMenu, type About } from '../parts/methodmenu';
import { Minimap } from './minimap';
import { parseCall } from '../state/selection';
import { Failure, useSize, useWidth } from '../../ui/parts';
import { number, path, query, set, text, type Changes } from '../../ui/route';
import { Scene, type Hover } from './scene';
import { RULER } from './scenedraw';
import type { Progress } from '../worker/store';
import { tr } from '../../i18n/strings/trace';
import { dark, density, safe } from '../../ui/theme';
import { ThreadMenu, ThreadTools } from './threadtools';
import { Control, type AboutThread, type Shown } from './timelinecontrol';
import { keysOn, pointerOn, wheelOn } from './timelineinput';
import { Heads } from './timelinehead';
import { HoverTip, Under } from './timelineparts';
import { closedProcesses, openFromAddress, openTids, type TimelineProps } from './timelineview';
import { viewOf } from '../state/view';
import { layoutOf, Presence, SPAN_KINDS, together, TRACE_KINDS } from './tracks';

/** Layout and open groups, from the address. */
function usePlan(p: TimelineProps, rows: Tiles['rows'] | undefined) {
	const presence = useMemo(() => new Presence(p.sums, rows), [p.sums, rows]);
	const openText = text('open');
	const rowText = text('row');
	const allCounters = text('counters') === 'all';
	const open = useMemo(() => openFromAddress(p.focus), [openText, rowText, openText ? null : p.focus]);
	const closed = text('closed');
	const layout = useMemo(() => layoutOf(p.threads, open, presence, allCounters, closedProcesses()), [p.threads, open, presence, allCounters, closed]);
	const chosen = parseCall(text('call'))?.tid;
	const opened = useMemo(() => openTids(p.threads, open, chosen), [p.threads, open, chosen]);
	return { presence, open, layout, opened };
}

const OVERVIEW_THREADS = 32; // of a trace without calls
const OVERVIEW_CELLS = 256;

/** The last state reported by the scene. */
function useNews() {
	const [progress, report] = useState<ReadonlyMap<number, Progress>>(new Map());
	const [error, fail] = useState<{ tid: number | null; lanes?: boolean; message: string } | null>(null);
	const [calls, list] = useState<Hit[] | null>(null);
	const [top, scrolled] = useState(0);
	const [shape, draw] = useState<number[]>([]); // of a trace without calls
	const [rows, grow] = useState<Tiles['rows']>();
	return { rows, grow, shape, draw, progress, report, error, fail, calls, list, top, scrolled };
}

type News = ReturnType<typeof useNews>;

/** The scene and what steers it, for as long as this trace is shown. */
function useScene(p: TimelineProps, presence: Presence, news: News, point: (s: Shown | null) => void, announce: (message: string) => void, openMenu: (about: About) => void, about: (t: AboutThread) => void) {
	const made = useMemo(() => {
		const page = path.peek();
		const write = (changes: Changes) => path.peek() === page && set(changes); // it may end moving after the page was left
		const control = new Control(point, announce, openMenu, about);
		const kinds = { thread: presence.of(['state', ...SPAN_KINDS, 'counter']), trace: presence.of(TRACE_KINDS), counters: presence.counters.has(null) };
		const calls = p.threads.some((t) => t.slices > 0);
		const came = () => {
			scene.repaint();
			if (tiles.rows.size > 0) news.grow(tiles.rows);
			if (!calls) news.draw(shapeOf(tiles.loadedOverall(), p.whole, OVERVIEW_CELLS));
		};
		const tiles: Tiles = new Tiles(p.id, p.whole, kinds, came, (why) => news.fail({ tid: null, lanes: true, message: why.message }));
		const scene: Scene = new Scene(p.id, currentProject(), p.whole, tiles, {
			view: (v) => write(addressOf(v)),
			top: (px) => {
				news.scrolled(Math.round(px / 100) * 100);
				write({ y: px > 0 ? Math.round(px) : null });
			},
			progress: (tid, q) => {
				news.report((m) => new Map(m).set(tid, q));
				control.progress(tid, q.complete);
			},
			failed: (tid, { status, code, message }) => {
				news.fail({ tid, message });
				if (status === 401) answered(`/api/v1/traces/${p.id}/slices`, status);
				else if (code === 'lost') probe();
			},
			found: (tid: number, n: Found | null) => tid === control.now.p.focus?.tid && control.now.p.onFound(n),
			visible: (h) => news.list(h),
			next: (tid, h) => control.showHit(tid, h),
			hover: (h: Hover | null) => control.hover(h),
			drawn: () => control.now.p.onDrawn(),
		});
		scene.view = viewOf(p.whole);
		control.scene = scene;
		if (!calls) tiles.overview(['', ...p.threads.slice(0, OVERVIEW_THREADS).map((t) => t.tid)]);
		return { control, scene, canvas: pointerOn(scene, control, false), wheel: wheelOn(scene, control), ruler: pointerOn(scene, control, true), onKey: keysOn(scene, control) };
	}, []);
	useEffect(() => () => made.scene.stop(), []);
	return made;
}

type Canvases = ReturnType<typeof useCanvases>;

function useCanvases() {
	return { canvas: useRef<HTMLCanvasElement>(null), over: useRef<HTMLCanvasElement>(null), ruler: useRef<HTMLCanvasElement>(null),
		list: useRef<HTMLUListElement>(null) };
}

/** Keeps the scene in step with the page and the address; changes that a picture needs are applied without waiting for a frame. */
function useSync(p: TimelineProps, { scene, control, wheel }: ReturnType<typeof useScene>, els: Canvases, scroller: preact.RefObject<HTMLDivElement>, news: News, plan: ReturnType<typeof usePlan>, width: number, height: number): void {
	const { layout, opened } = plan;
	useLayoutEffect(() => {
		const c = els.canvas.current!;
		scene.attach({ canvas: c, over: els.over.current!, ruler: els.ruler.current!, list: els.list.current!, scroller: scroller.current! });
		c.addEventListener('wheel', wheel, { passive: false });
		return () => c.removeEventListener('wheel', wheel);
	}, []);
	useLayoutEffect(() => { // before the thread is requested: its failure may arrive at any time after that
		news.list(null);
		news.fail(null);
		control.forget();
	}, [p.focus?.tid]);
	useLayoutEffect(() => scene.resize(width, height), [width, height, density.value]);
	useLayoutEffect(() => scene.scroll(number('y') ?? 0), []); // scrolling adds no entries to the history
	useLayoutEffect(() => scene.update({ threads: p.threads, layout, names: p.names, matches: p.matches, focus: p.focus?.tid ?? null, range: p.range, opened, annotations: timesOf(annotations.value) }),
		[p.threads, layout, p.names, p.matches, p.focus, p.range, opened, annotations.value]);
	const order = ['tq', 'tsort', 'tgroup', 'idle'].map(text).join();
	const before = useRef({ order, layout, threads: p.threads });
	useLayoutEffect(() => { // another filter or order: the current thread remains in view; a pinned or hidden thread: the view remains
		const { order: was, layout: old, threads } = before.current;
		before.current = { order, layout, threads: p.threads };
		if (threads === p.threads) return;
		const g = layout.groups.find((x) => x.thread !== null && x.thread === p.focus);
		if (was === order) control.keep(old, layout);
		else if (g) control.reveal(g);
	}, [layout]);
	useLayoutEffect(() => p.onFound(null), [p.focus?.tid]); // cleared until the new thread's matches are counted
	useEffect(() => scene.look(), [dark.value, safe.value]);
	useEffect(() => effect(() => {
		void query.value; // the back button, or a button of another panel
		if (!sameView(scene.view, viewOf(p.whole))) scene.move(viewOf(p.whole));
	}), []);
	useEffect(() => {
		if (p.step.turn > 0) control.seek(p.step.forward);
	}, [p.step.turn]);
}

/** The selection is described in the details pane. */
const isCall = (h: Hover, at?: CallId) => h.what === 'call' && at !== undefined && h.tid === at.tid && h.hit.start === at.start && h.hit.depth === at.depth;

export function Timeline(p: TimelineProps) {
	const news = useNews();
	const plan = usePlan(p, news.rows);
	const { open, layout, opened } = plan;
	const [scroller, , height] = useSize<HTMLDivElement>();
	const [box, width] = useWidth<HTMLDivElement>();
	const [head, headWidth] = useWidth<HTMLDivElement>();
	const [shown, point] = useState<Shown | null>(null);
	const [message, announce] = useState('');
	const [menu, openMenu] = useState<About | null>(null);
	const [threadAbout, about] = useState<AboutThread | null>(null);
	const els = useCanvases();
	const made = useScene(p, plan.presence, news, point, announce, openMenu, about);
	const { control, scene, onKey } = made;
	control.now = { p, open, layout, height, shown, scroller: scroller.current, canvas: els.canvas.current };
	useSync(p, made, els, scroller, news, plan, width, height);

	const activity = useMemo(() => together(p.threads), [p.threads]);
	const { on: pointer, dragged } = made.canvas;
	const selected = useSelected(scene, news.progress);
	const eventText = text('event');
	const event = useMemo(() => parseEvent(eventText), [eventText]);
	useEffect(() => p.onDetails(selected ? <CallPane p={p} selected={selected} on={control} /> : event && <EventPane p={p} at={event} on={control} />), [selected, event, p.threads, p.names, p.sums]);
	const onMove = (e: PointerEvent) => {
		control.pointer.x = e.clientX;
		control.pointer.y = e.clientY;
		pointer.onPointerMove(e);
	};
	const size = (w: number, h: number) => ({ width: Math.max(1, Math.round(w * scene.dpr)), height: Math.max(1, Math.round(h * scene.dpr)), style: { width: `${w}px`, height: `${h}px` } });
	const again = () => {
		const { tid = null, lanes = false } = broken.current ?? {};
		news.fail(null);
		if (tid !== null) scene.post({ kind: 'again', tid });
		if (lanes) scene.tiles.retry();
		scene.repaint();
	};
	const broken = useRef<typeof news.error>(null);
	broken.current = news.error;
	useEffect(() => returned.subscribe(() => broken.current && again()), []);
	return (
		<div class="chart timeline" onClick={(e) => control.click(e, e.target === els.canvas.current && !dragged())}>
			<div class="axis">
				<div ref={head} class="headwidth"><ThreadTools listed={p.threads.length} all={p.there} /></div>
				<div style={{ width: `${width}px` }}>
					<Minimap activity={activity.length > 0 ? activity : news.shape} whole={p.whole} range={p.range} onView={(v) => scene.move(v)} />
					<canvas ref={els.ruler} {...size(width, RULER)} class="ruler" aria-hidden="true" {...made.ruler.on} />
				</div>
			</div>
			<div class="scroller" ref={scroller} onScroll={() => scene.scrolled()} style={{ height: `${layout.height}px` }}>
				<div class="sheet" style={{ height: `${layout.height}px` }}>
					<div class="pane" style={{ height: `${height}px` }} onScroll={(e) => {
						const by = e.currentTarget.scrollTop; // a name that is out of view is scrolled to by the browser
						e.currentTarget.scrollTop = 0;
						if (by) scene.scroll(scene.top + by);
					}}>
						<div ref={box} class="canvasbox">
							<canvas ref={els.canvas} {...size(width, height)} class="calls" tabIndex={0} role="application"
								aria-label={tr('Timeline of all threads. Press ? for keys. The tables below have the same data.')}
								{...pointer} onPointerMove={onMove} onContextMenu={(e) => control.menu(e)} onKeyDown={onKey} />
							<canvas ref={els.over} {...size(width, height)} class="over" aria-hidden="true" />
						</div>
						<Heads layout={layout} list={els.list} width={headWidth} top={news.top} height={height} focus={p.focus} picked={p.picked} on={control} />
					</div>
				</div>
			</div>
			{shown && !isCall(shown.hover, selected?.at) && <HoverTip shown={shown} p={p} />}
			{threadAbout && <ThreadMenu about={threadAbout} p={p} on={control} close={() => about(null)} />}
			{menu && <MethodMenu about={menu} close={() => openMenu(null)} />}
			{news.error && <Failure error={new Error(serverText(news.error.message))} title={news.error.lanes ? tr('States and events could not be loaded.') : undefined} retry={again} />}
			<Under p={p} message={message} progress={opened.flatMap((t) => news.progress.get(t) ?? [])} wanted={opened.length} failed={news.error !== null && news.error.tid !== null} scene={scene} calls={news.calls} list={news.list} goTo={(tid, h) => control.goTo(tid, h)} />
		</div>
	);
}
