// The time-ordered flame chart of one thread: a canvas that its worker paints, with labels on top.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Thread } from './api';
import { currentProject } from './api';
import { palette } from './color';
import { drawLabels, drawRuler, drawSelection, ROW, RULER } from './chartdraw';
import { count, duration } from './format';
import type { About, FromWorker, Hit, ToWorker } from './messages';
import { Minimap } from './minimap';
import type { Label, View } from './paint';
import { Busy, Failure, useWidth } from './parts';
import { cssPixel, dark } from './theme';
import { many, wordsOf, type Words } from './source';
import { CallTip } from './tip';

declare const WORKER_URL: string;

const ROWS = 21; // in view at most
const PAINTED = 'tracewell-painted'; // for measuring from outside

export interface ChartProps {
	trace: string;
	thread: Thread;
	start: number;
	end: number;
	from: number;
	to: number;
	names: string[];
	matches: Uint8Array | null;
	selection: [number, number] | null;
	onView: (from: number, to: number) => void;
	onSelect: (range: [number, number] | null) => void;
	step: { turn: number; forward: boolean };
	row: number; // the first that is shown
	onRow: (row: number) => void;
	onFound: (calls: number | null) => void;
}

interface Progress {
	loaded: number;
	total: number;
	slices: number;
	complete: boolean;
}

/** The worker of this chart, and its answers by kind. */
function useWorker(p: ChartProps, on: (m: FromWorker) => void) {
	const hear = useRef(on);
	hear.current = on;
	const worker = useMemo(() => new Worker(WORKER_URL, { type: 'module' }), []);
	const say = (m: ToWorker, transfer: Transferable[] = []) => worker.postMessage(m, transfer);
	useEffect(() => {
		worker.onmessage = (e) => hear.current(e.data as FromWorker);
		return () => worker.terminate();
	}, []);
	const load = () => say({ kind: 'load', id: p.thread.thread_id, trace: p.trace, project: currentProject(), tid: p.thread.tid });
	useEffect(load, [p.thread.thread_id]);
	return { say, load };
}

export function Chart(p: ChartProps) {
	const [box, width] = useWidth<HTMLDivElement>();
	const canvas = useRef<HTMLCanvasElement>(null);
	const buffer = useRef<ArrayBuffer | null>(null);
	const waiting = useRef(false); // a paint is under way
	const dirty = useRef(false);
	const last = useRef<{ view: View; labels: Label[]; image: ImageData } | null>(null);
	const drag = useRef<{ x: number; y: number; from: number; to: number; top: number; select: boolean; moved: boolean } | null>(null);
	const [top, putTop] = useState(p.row * ROW);
	const [progress, report] = useState<Progress | null>(null);
	const [error, fail] = useState<string | null>(null);
	const [hit, point] = useState<{ hit: Hit; about: About } | null>(null);
	const [at, follow] = useState<[number, number]>([0, 0]); // the pointer, in the window
	const [rows, list] = useState<Hit[] | null>(null);
	const [picking, pick] = useState<[number, number] | null>(null);
	const asked = useRef(0);
	const dpr = Math.max(1, Math.round(devicePixelRatio || 1));
	const depth = p.thread.max_depth;
	const height = Math.min(ROWS, Math.max(4, depth)) * ROW;
	const maxTop = Math.max(0, depth * ROW - height);
	const state = useRef({ ...p, top, width, height });
	state.current = { ...p, top: Math.min(top, maxTop), width, height };

	const { say, load } = useWorker(p, (m) => {
		if (m.kind === 'progress' && m.id === state.current.thread.thread_id) {
			report(m);
			repaint();
		} else if (m.kind === 'failed' && m.id === state.current.thread.thread_id) fail(m.message);
		else if (m.kind === 'painted') painted(m);
		else if (m.kind === 'hit' && m.id === asked.current) point(m.hit && { hit: m.hit, about: m.about });
		else if (m.kind === 'found') p.onFound(m.calls);
		else if (m.kind === 'visible') list(m.calls);
		else if (m.kind === 'next' && m.hit) showHit(m.hit);
	});

	const found = useRef<Hit | null>(null);

	function scroll(to: number): void {
		const px = Math.max(0, Math.min(maxTop, to));
		putTop(px);
		p.onRow(Math.round(px / ROW));
	}

	function showHit(h: Hit): void {
		found.current = h;
		const span = Math.max((h.end - h.start) * 4, 1000);
		const middle = (h.start + h.end) / 2;
		move(middle - span / 2, middle + span / 2);
		scroll(h.depth * ROW - height / 2);
	}

	function move(from: number, to: number): void {
		const s = state.current;
		const all = Math.max(1, s.end - s.start);
		const span = Math.min(Math.max(to - from, 50), all * 1.02);
		const low = Math.max(s.start - all * 0.01, Math.min(from, s.end + all * 0.01 - span));
		p.onView(low, low + span);
	}

	function zoom(factor: number, at = 0.5): void {
		const s = state.current;
		const time = s.from + (s.to - s.from) * at;
		move(time - (time - s.from) * factor, time + (s.to - time) * factor);
	}

	function repaint(): void {
		dirty.current = true;
		if (waiting.current) return;
		const s = state.current;
		if (s.width < 10) return;
		dirty.current = false;
		waiting.current = true;
		const view: View = { from: s.from, to: s.to, width: s.width * dpr, height: s.height * dpr, top: Math.round(s.top * dpr), rowHeight: ROW * dpr };
		const bytes = view.width * view.height * 4;
		const b = buffer.current && buffer.current.byteLength === bytes ? buffer.current : new ArrayBuffer(bytes);
		buffer.current = null;
		say({ kind: 'paint', id: s.thread.thread_id, view, buffer: b }, [b]);
	}

	function painted(m: Extract<FromWorker, { kind: 'painted' }>): void {
		waiting.current = false;
		buffer.current = m.buffer;
		const image = new ImageData(new Uint8ClampedArray(m.buffer), m.view.width, m.view.height);
		last.current = { view: m.view, labels: m.labels, image };
		draw();
		if (dirty.current) repaint();
		performance.clearMarks(PAINTED);
		performance.mark(PAINTED, { detail: m.calls });
	}

	function draw(): void {
		const g = canvas.current?.getContext('2d');
		const l = last.current;
		if (!g || !l || l.image.data.length === 0) return;
		const style = getComputedStyle(document.documentElement);
		g.setTransform(1, 0, 0, 1, 0, 0);
		g.clearRect(0, 0, canvas.current!.width, canvas.current!.height);
		g.putImageData(l.image, 0, RULER * dpr);
		g.setTransform(dpr, 0, 0, dpr, 0, 0);
		const color = (name: string) => style.getPropertyValue(name);
		const s = state.current;
		const [plain, lit, faded] = [color('--flame-ink'), color('--hit-ink'), color('--faded-ink')];
		drawRuler(g, s.from, s.to, s.start, s.width, color('--quiet'));
		drawLabels(g, l.labels, s.names, dpr, (m) => (!s.matches ? plain : s.matches[m] ? lit : faded));
		const range = picking ?? s.selection;
		const x = (t: number) => ((t - s.from) / (s.to - s.from)) * s.width;
		if (range) drawSelection(g, x(Math.min(...range)), x(Math.max(...range)), s.width, s.height, color('--select'), color('--accent'));
	}

	useEffect(() => {
		const d = dark.value;
		say({ kind: 'look', look: { palette: palette(p.names, d), matches: p.matches, background: cssPixel('--chart'), highlight: cssPixel('--hit'), faded: cssPixel('--faded') } });
		repaint();
	}, [p.names, p.matches, dark.value]);
	useEffect(repaint, [p.from, p.to, top, width, height]);
	useEffect(() => {
		if (Math.round(top / ROW) !== p.row) putTop(Math.min(maxTop, p.row * ROW));
	}, [p.row]);
	useEffect(draw, [p.selection, picking]);
	useEffect(() => {
		fail(null);
		report(null);
		list(null);
		found.current = null;
	}, [p.thread.thread_id]);
	useEffect(() => {
		if (p.step.turn === 0) return;
		const s = state.current;
		const f = found.current;
		const after = f ? { start: f.start, row: f.depth, index: f.index } : { start: p.step.forward ? s.from : s.to, row: -1, index: -1 };
		say({ kind: 'next', id: 0, after, forward: p.step.forward });
	}, [p.step.turn]);

	const timeAt = (x: number) => state.current.from + (x / state.current.width) * (state.current.to - state.current.from);

	const onWheel = (e: WheelEvent) => {
		e.preventDefault();
		const s = state.current;
		if (e.shiftKey && !e.ctrlKey) scroll(s.top + e.deltaY);
		else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
			const d = (e.deltaX / s.width) * (s.to - s.from);
			move(s.from + d, s.to + d);
		} else zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * 0.0025))), e.offsetX / s.width);
	};
	useEffect(() => {
		const c = canvas.current!;
		c.addEventListener('wheel', onWheel, { passive: false });
		return () => c.removeEventListener('wheel', onWheel);
	});

	const onDown = (e: PointerEvent) => {
		if (e.button !== 0) return;
		(e.currentTarget as Element).setPointerCapture(e.pointerId);
		drag.current = { x: e.offsetX, y: e.offsetY, from: p.from, to: p.to, top: state.current.top, select: e.shiftKey || e.offsetY < RULER, moved: false };
		point(null);
	};
	const onMove = (e: PointerEvent) => {
		const d = drag.current;
		if (!d) {
			asked.current++;
			follow([e.clientX, e.clientY]);
			if (e.offsetY < RULER) point(null);
			else say({ kind: 'hit', id: asked.current, row: Math.floor((e.offsetY - RULER + state.current.top) / ROW), time: timeAt(e.offsetX) });
			return;
		}
		d.moved ||= Math.abs(e.offsetX - d.x) > 3 || Math.abs(e.offsetY - d.y) > 3;
		if (!d.moved) return;
		if (d.select) pick([timeAt(d.x), timeAt(e.offsetX)]);
		else {
			const shift = ((d.x - e.offsetX) / width) * (d.to - d.from);
			move(d.from + shift, d.to + shift);
			scroll(d.top + d.y - e.offsetY);
		}
	};
	const onUp = (e: PointerEvent) => {
		const d = drag.current;
		drag.current = null;
		if (d?.select && d.moved) {
			const range = [timeAt(d.x), timeAt(e.offsetX)].sort((a, b) => a - b);
			p.onSelect([Math.max(0, Math.floor(range[0])), Math.ceil(range[1])]);
		} else if (d?.select) p.onSelect(null);
		pick(null);
	};
	const onDouble = () => {
		if (!hit) return;
		const pad = Math.max(1, (hit.hit.end - hit.hit.start) * 0.03);
		move(hit.hit.start - pad, hit.hit.end + pad);
	};
	const onKey = (e: KeyboardEvent) => {
		const s = state.current;
		const pan = (share: number) => move(s.from + share * (s.to - s.from), s.to + share * (s.to - s.from));
		const keys: Record<string, () => void> = {
			w: () => zoom(0.7), s: () => zoom(1 / 0.7), a: () => pan(-0.2), d: () => pan(0.2),
			'+': () => zoom(0.7), '=': () => zoom(0.7), '-': () => zoom(1 / 0.7), '0': () => move(s.start, s.end),
			ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1),
			ArrowDown: () => scroll(s.top + 3 * ROW), ArrowUp: () => scroll(s.top - 3 * ROW),
			Escape: () => p.onSelect(null),
			Enter: () => s.selection && move(s.selection[0], s.selection[1]),
		};
		const act = keys[e.key];
		if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
		e.preventDefault();
		act();
	};

	const busy = progress === null || !progress.complete;
	const words = wordsOf([p.thread]);
	return (
		<div class="chart">
			<Minimap thread={p.thread} start={p.start} end={p.end} from={p.from} to={p.to} selection={p.selection} onView={move} />
			<div ref={box} class="canvasbox">
				<canvas ref={canvas} width={width * dpr} height={(height + RULER) * dpr} tabIndex={0} role="img"
					style={{ width: `${width}px`, height: `${height + RULER}px` }}
					aria-label={`${p.thread.name || p.thread.tid} over time, ${many(p.thread.slices, words)} in all. The table of what is visible below holds the same.`}
					onPointerDown={onDown} onPointerMove={onMove} onPointerUp={onUp} onDblClick={onDouble}
					onPointerLeave={() => !drag.current && (asked.current++, point(null))} onKeyDown={onKey} />
				{hit && !drag.current && <CallTip words={words} hit={hit.hit} about={hit.about} name={p.names[hit.hit.method] ?? ''} start={p.start} x={at[0]} y={at[1]} />}
			</div>
			{error && <Failure error={new Error(error)} retry={() => { fail(null); load(); }} />}
			<div class="row under">
				{busy && !error && <Busy what={progress ? `Loading ${words.many}, ${Math.round((100 * progress.loaded) / Math.max(1, progress.total))} %` : `Loading ${words.many}`} />}
				{!busy && <span class="quiet" data-ready="1">{many(progress.slices, words)}, {duration(p.to - p.from)} in view</span>}
				{p.selection && <span class="quiet">{duration(p.selection[1] - p.selection[0])} selected</span>}
				<span class="grow" />
				<button class="small" onClick={() => move(p.start, p.end)}>Whole thread</button>
				<button class="small" aria-expanded={rows !== null}
					onClick={() => (rows ? list(null) : say({ kind: 'visible', id: 0, from: p.from, to: p.to }))}>
					{rows ? 'Hide the table' : `Visible ${words.many} as a table`}
				</button>
			</div>
			{rows && <VisibleCalls calls={rows} words={words} names={p.names} start={p.start} />}
		</div>
	);
}

function VisibleCalls({ calls, words, names, start }: { calls: Hit[]; words: Words; names: string[]; start: number }) {
	return (
		<div class="scroll short" tabIndex={0}>
			<table>
				<caption class="quiet">The longest {words.many} in view, at most 200, in time order</caption>
				<thead><tr><th scope="col" class="num">Start</th><th scope="col" class="num">Duration</th>
					<th scope="col" class="num">Depth</th><th scope="col">Method</th></tr></thead>
				<tbody>{calls.map((c, i) => (
					<tr key={i}><td class="num">{duration(c.start - start)}</td><td class="num">{duration(c.end - c.start)}</td>
						<td class="num">{c.depth}</td>
						<td class="mono name">{c.merged > 1 ? `${count(c.merged)} short ones, the longest ${names[c.method]}` : names[c.method]}</td></tr>))}</tbody>
			</table>
		</div>
	);
}
