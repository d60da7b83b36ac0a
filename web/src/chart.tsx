// The time-ordered flame chart of one thread: a canvas that its worker paints, with labels on top.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Thread } from './api';
import { currentProject } from './api';
import { palette } from './color';
import { count, duration, tickStep } from './format';
import type { FromWorker, Hit, ToWorker } from './messages';
import { Minimap } from './minimap';
import type { Label, View } from './paint';
import { Busy, Failure, useWidth } from './parts';
import { cssPixel, dark } from './theme';
import { Tip } from './tip';

declare const WORKER_URL: string;

const ROW = 18;
const RULER = 22;
const HEIGHT = 380;

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
}

interface Progress {
	loaded: number;
	total: number;
	slices: number;
	complete: boolean;
	rows: number;
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
	useEffect(() => {
		say({ kind: 'load', id: p.thread.thread_id, trace: p.trace, project: currentProject(), tid: p.thread.tid });
	}, [p.thread.thread_id]);
	return say;
}

function drawRuler(g: CanvasRenderingContext2D, p: ChartProps, width: number, ink: string): void {
	const span = p.to - p.from;
	const step = tickStep(span, width / 110);
	g.fillStyle = ink;
	g.strokeStyle = ink;
	g.globalAlpha = 0.75;
	g.textBaseline = 'middle';
	g.font = '11px system-ui, sans-serif';
	const first = Math.ceil((p.from - p.start) / step) * step;
	const near = step < first / 200; // far in: the first mark in full, the others from there
	for (let t = first, i = 0; t <= p.to - p.start; t += step, i++) {
		const x = ((t + p.start - p.from) / span) * width;
		g.fillRect(x, RULER - 6, 1, 6);
		g.fillText(near && i > 0 ? `+${duration(t - first)}` : near ? exact(t, step) : duration(t), x + 4, RULER / 2);
	}
	g.globalAlpha = 1;
}

/** Seconds with as many digits as the step needs. */
function exact(ns: number, step: number): string {
	return `${(ns / 1e9).toFixed(Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(step)))))} s`;
}

function drawLabels(g: CanvasRenderingContext2D, labels: Label[], names: string[], dpr: number, faded: boolean, ink: string): void {
	g.font = '11px system-ui, sans-serif';
	g.textBaseline = 'middle';
	g.fillStyle = ink;
	g.globalAlpha = faded ? 0.65 : 1;
	for (const l of labels) {
		const name = l.merged > 1 ? `${count(l.merged)} short calls` : short(names[l.method] ?? '');
		const room = Math.floor((l.w / dpr - 6) / 6.1);
		if (room < 2) continue;
		const text = name.length > room ? name.slice(0, room - 1) + '…' : name;
		g.fillText(text, l.x / dpr + 4, RULER + l.y / dpr + (ROW - 1) / 2 + 0.5);
	}
	g.globalAlpha = 1;
}

function short(name: string): string {
	const method = name.lastIndexOf('.');
	const cls = name.lastIndexOf('.', method - 1);
	return name.slice(cls + 1);
}

export function Chart(p: ChartProps) {
	const [box, width] = useWidth<HTMLDivElement>();
	const canvas = useRef<HTMLCanvasElement>(null);
	const buffer = useRef<ArrayBuffer | null>(null);
	const waiting = useRef(false); // a paint is under way
	const dirty = useRef(false);
	const last = useRef<{ view: View; labels: Label[]; image: ImageData } | null>(null);
	const drag = useRef<{ x: number; y: number; from: number; to: number; top: number; select: boolean; moved: boolean } | null>(null);
	const [top, scroll] = useState(0);
	const [progress, report] = useState<Progress | null>(null);
	const [error, fail] = useState<string | null>(null);
	const [hit, point] = useState<{ hit: Hit; x: number; y: number } | null>(null);
	const [rows, list] = useState<Hit[] | null>(null);
	const [picking, pick] = useState<[number, number] | null>(null);
	const asked = useRef(0);
	const dpr = Math.max(1, Math.round(devicePixelRatio || 1));
	const depth = p.thread.max_depth;
	const height = Math.min(HEIGHT, Math.max(4, depth) * ROW + 2);
	const maxTop = Math.max(0, depth * ROW - height);
	const state = useRef({ ...p, top, width, height });
	state.current = { ...p, top: Math.min(top, maxTop), width, height };

	const say = useWorker(p, (m) => {
		if (m.kind === 'progress' && m.id === state.current.thread.thread_id) {
			report(m);
			repaint();
		} else if (m.kind === 'failed' && m.id === state.current.thread.thread_id) fail(m.message);
		else if (m.kind === 'painted') painted(m);
		else if (m.kind === 'hit' && m.id === asked.current) point((h) => (m.hit && h ? { ...h, hit: m.hit } : m.hit ? { hit: m.hit, x: mouse.current[0], y: mouse.current[1] } : null));
		else if (m.kind === 'visible') list(m.calls);
		else if (m.kind === 'next' && m.hit) showHit(m.hit);
	});

	const mouse = useRef<[number, number]>([0, 0]);
	const found = useRef<Hit | null>(null);

	function showHit(h: Hit): void {
		found.current = h;
		const span = Math.max((h.end - h.start) * 4, 1000);
		const middle = (h.start + h.end) / 2;
		move(middle - span / 2, middle + span / 2);
		scroll(Math.max(0, Math.min(maxTop, h.depth * ROW - height / 2)));
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
		performance.mark('tracewell-painted');
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
		drawRuler(g, state.current, state.current.width, style.getPropertyValue('--ink'));
		drawLabels(g, l.labels, state.current.names, dpr, state.current.matches !== null, style.getPropertyValue('--flame-ink'));
		drawSelection(g);
	}

	function drawSelection(g: CanvasRenderingContext2D): void {
		const s = state.current;
		const range = picking ?? s.selection;
		if (!range) return;
		const at = (t: number) => ((t - s.from) / (s.to - s.from)) * s.width;
		const [a, b] = [at(Math.min(...range)), at(Math.max(...range))];
		g.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--select');
		g.fillRect(0, RULER, Math.max(0, a), s.height);
		g.fillRect(b, RULER, Math.max(0, s.width - b), s.height);
	}

	useEffect(() => {
		const d = dark.value;
		say({ kind: 'look', look: { palette: palette(p.names, d), matches: p.matches, background: cssPixel('--chart'), highlight: cssPixel('--hit'), faded: cssPixel('--faded') } });
		repaint();
	}, [p.names, p.matches, dark.value]);
	useEffect(repaint, [p.from, p.to, top, width, height]);
	useEffect(draw, [p.selection, picking]);
	useEffect(() => {
		fail(null);
		report(null);
		list(null);
		scroll(0);
		found.current = null;
	}, [p.thread.thread_id]);
	useEffect(() => {
		if (p.step.turn === 0) return;
		const s = state.current;
		const f = found.current;
		say({ kind: 'next', id: 0, after: f ? f.start : p.step.forward ? s.from : s.to, row: f ? f.depth : -1, forward: p.step.forward });
	}, [p.step.turn]);

	const timeAt = (x: number) => state.current.from + (x / state.current.width) * (state.current.to - state.current.from);

	const onWheel = (e: WheelEvent) => {
		e.preventDefault();
		const s = state.current;
		if (e.shiftKey && !e.ctrlKey) scroll(Math.max(0, Math.min(maxTop, s.top + e.deltaY)));
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
		mouse.current = [e.offsetX, e.offsetY];
		if (!d) {
			asked.current++;
			point((h) => (h ? { ...h, x: e.offsetX, y: e.offsetY } : h));
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
			scroll(Math.max(0, Math.min(maxTop, d.top + d.y - e.offsetY)));
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
			ArrowDown: () => scroll(Math.min(maxTop, s.top + 3 * ROW)), ArrowUp: () => scroll(Math.max(0, s.top - 3 * ROW)),
			Escape: () => p.onSelect(null),
			Enter: () => s.selection && move(s.selection[0], s.selection[1]),
		};
		const act = keys[e.key];
		if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
		e.preventDefault();
		act();
	};

	const busy = progress === null || !progress.complete;
	return (
		<div class="chart">
			<Minimap thread={p.thread} start={p.start} end={p.end} from={p.from} to={p.to} selection={p.selection} onView={move} />
			<div ref={box} class="canvasbox">
				<canvas ref={canvas} width={width * dpr} height={(height + RULER) * dpr} tabIndex={0} role="img"
					style={{ width: `${width}px`, height: `${height + RULER}px` }}
					aria-label={`Calls of ${p.thread.name || p.thread.tid} over time, ${count(p.thread.slices)} in all. The table of visible calls below holds the same.`}
					onPointerDown={onDown} onPointerMove={onMove} onPointerUp={onUp} onDblClick={onDouble}
					onPointerLeave={() => !drag.current && (asked.current++, point(null))} onKeyDown={onKey} />
				{hit && !drag.current && <Tip hit={hit.hit} name={p.names[hit.hit.method] ?? ''} start={p.start} x={hit.x} y={hit.y} width={width} />}
			</div>
			{error && <Failure error={new Error(error)} />}
			<div class="row under">
				{busy && !error && <Busy what={progress ? `Loading calls, ${Math.round((100 * progress.loaded) / Math.max(1, progress.total))} %` : 'Loading calls'} />}
				{!busy && <span class="quiet" data-ready="1">{count(progress.slices)} calls, {duration(p.to - p.from)} in view</span>}
				{p.selection && <span class="quiet">{duration(p.selection[1] - p.selection[0])} selected</span>}
				<span class="grow" />
				<button class="small" onClick={() => move(p.start, p.end)}>Whole thread</button>
				<button class="small" aria-expanded={rows !== null}
					onClick={() => (rows ? list(null) : say({ kind: 'visible', id: 0, from: p.from, to: p.to }))}>
					{rows ? 'Hide the table' : 'Visible calls as a table'}
				</button>
			</div>
			{rows && <VisibleCalls calls={rows} names={p.names} start={p.start} />}
		</div>
	);
}

function VisibleCalls({ calls, names, start }: { calls: Hit[]; names: string[]; start: number }) {
	return (
		<div class="scroll short" tabIndex={0}>
			<table>
				<caption class="quiet">The longest calls in view, at most 200, in time order</caption>
				<thead><tr><th scope="col" class="num">Start</th><th scope="col" class="num">Duration</th>
					<th scope="col" class="num">Depth</th><th scope="col">Method</th></tr></thead>
				<tbody>{calls.map((c, i) => (
					<tr key={i}><td class="num">{duration(c.start - start)}</td><td class="num">{duration(c.end - c.start)}</td>
						<td class="num">{c.depth}</td><td class="mono">{names[c.method]}</td></tr>))}</tbody>
			</table>
		</div>
	);
}
