// Strokes and words over the painted timeline: ruler, bands, selection, flows, the cursor.
import { xOf, type Span } from '../state/axis';
import { exact } from './chartdraw';
import { duration, tick, tickStep } from '../../i18n/format';
import type { Flow } from '../state/flows';
import { FONT } from '../../ui/label';
import type { Lane } from '../state/lanes';
import type { Group } from './tracks';

export const RULER = 24;
const MOMENTS_MAX = 60; // lines over all threads; more would hide the calls

/** A colour of the stylesheet, without its dashes. */
export type Ink = (name: string) => string;

/** Times from the trace's start; far in, the first mark in full and the others from there. */
export function drawRuler(g: CanvasRenderingContext2D, v: Span, start: number, width: number, range: Span | null, ink: Ink): void {
	const span = v.to - v.from;
	const step = tickStep(span, width / 110);
	g.clearRect(0, 0, width, RULER);
	if (range) {
		const [a, b] = [xOf(range.from, v, width), xOf(range.to, v, width)];
		g.fillStyle = ink('accent');
		g.fillRect(Math.max(0, a), RULER - 4, Math.min(width, b) - Math.max(0, a), 4);
	}
	g.fillStyle = ink('quiet');
	g.textBaseline = 'middle';
	g.font = FONT;
	const first = Math.ceil((v.from - start) / step) * step;
	const near = step < first / 200;
	for (let t = first, i = 0; t <= v.to - start; t += step, i++) {
		const x = xOf(t + start, v, width);
		const text = near && i > 0 ? `+${tick(t - first)}` : near ? exact(t, step) : tick(t);
		g.fillRect(Math.round(x), RULER - 8, 1, 8);
		if (x + 5 + g.measureText(text).width <= width) g.fillText(text, x + 5, RULER / 2 - 1);
	}
}

function eachInView(lanes: Lane[], v: Span, on: (from: number, to: number) => void): void {
	for (const l of lanes)
		for (let i = 0; i < l.n && l.ts[i] < v.to; i++) {
			const end = l.ts[i] + l.dur[i];
			if (end >= v.from) on(Math.max(l.ts[i], l.tile.from), Math.min(end, l.tile.to));
		}
}

/** Items of all threads are drawn over all threads: collections and ANRs as bands, spans by their ends,
 *  marks as lines. */
export function drawBands(g: CanvasRenderingContext2D, v: Span, width: number, height: number, lanes: (kind: string) => Lane[], ink: Ink): void {
	for (const kind of ['gc', 'anr']) {
		g.fillStyle = ink(`band-${kind}`);
		eachInView(lanes(kind), v, (from, to) => {
			const x = xOf(from, v, width);
			g.fillRect(x, 0, Math.max(1, xOf(to, v, width) - x), height);
		});
	}
	const lines: number[] = [];
	eachInView(lanes('instant'), v, (from) => lines.push(from));
	eachInView(lanes('async'), v, (from, to) => lines.push(from, to));
	if (lines.length > MOMENTS_MAX) return;
	g.fillStyle = ink('band-line');
	for (const t of lines) g.fillRect(Math.round(xOf(t, v, width)), 0, 1, height);
}

/** Annotations go through every track: a line where one begins, and over its time a veil. */
export function drawAnnotations(g: CanvasRenderingContext2D, v: Span, width: number, height: number, list: Span[], ink: Ink): void {
	g.fillStyle = ink('hit');
	for (const a of list) {
		if (a.to < v.from || a.from > v.to) continue;
		const [x0, x1] = [Math.round(xOf(a.from, v, width)), Math.round(xOf(a.to, v, width))];
		g.globalAlpha = 0.12;
		if (x1 > x0) g.fillRect(Math.max(0, x0), 0, Math.min(width, x1) - Math.max(0, x0), height);
		g.globalAlpha = 0.8;
		g.fillRect(x0, 0, 1, height);
	}
	g.globalAlpha = 1;
}

/** Shades the time outside the selection, and marks its edges. */
export function drawRange(g: CanvasRenderingContext2D, r: Span & { tids: ReadonlySet<number> | null }, v: Span, width: number, height: number,
	groups: Group[], top: number, ink: Ink): void {
	const a = Math.max(0, Math.min(width, xOf(r.from, v, width)));
	const b = Math.max(0, Math.min(width, xOf(r.to, v, width)));
	g.fillStyle = ink('select');
	g.fillRect(0, 0, a, height);
	g.fillRect(b, 0, width - b, height);
	for (const x of groups)
		if (r.tids && (!x.thread || !r.tids.has(x.thread.tid))) g.fillRect(a, x.y - top, b - a, x.height);
	g.fillStyle = ink('accent');
	for (const x of [a, b - 1]) if (x > 0 && x < width - 1) g.fillRect(Math.round(x), 0, 1, height);
	if (b <= 0 || a >= width || r.to <= r.from) return;
	const length = duration(r.to - r.from);
	g.font = FONT;
	words(g, length, (a + b - g.measureText(length).width) / 2 - 6, 32, width, ink); // below the cursor's time
}

function head(g: CanvasRenderingContext2D, x: number, y: number, up: boolean): void {
	const d = up ? 1 : -1;
	g.beginPath();
	g.moveTo(x, y);
	g.lineTo(x - 4, y + 7 * d);
	g.lineTo(x + 4, y + 7 * d);
	g.fill();
}

/** From one thread to another, and back when the resource was released. */
export function drawFlow(g: CanvasRenderingContext2D, f: Flow, v: Span, width: number, heightOf: (tid: number) => number | null, ink: Ink): void {
	const [y0, y1] = [heightOf(f.from.tid), heightOf(f.to.tid)];
	if (y0 === null || y1 === null) return;
	const [x0, x1] = [xOf(f.from.time, v, width), xOf(f.to.time, v, width)];
	g.strokeStyle = g.fillStyle = ink('hit');
	g.lineWidth = 1.5;
	g.beginPath();
	g.moveTo(x0, y0);
	g.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
	g.stroke();
	head(g, x1, y1, y1 < y0);
	if (f.back !== null) {
		const x = xOf(f.back, v, width);
		g.setLineDash([4, 3]);
		g.beginPath();
		g.moveTo(x, y1);
		g.lineTo(x, y0);
		g.stroke();
		g.setLineDash([]);
		head(g, x, y0, y0 < y1);
	}
	words(g, f.label, Math.max(4, Math.min(x1, width - 8)) + 8, Math.max(12, (y0 + y1) / 2), width, ink);
}

function words(g: CanvasRenderingContext2D, text: string, x: number, y: number, width: number, ink: Ink): void {
	g.font = FONT;
	g.textBaseline = 'middle';
	const w = g.measureText(text).width + 12;
	const at = Math.max(2, Math.min(x, width - w - 2));
	g.fillStyle = ink('panel');
	g.fillRect(at, y - 9, w, 18);
	g.strokeStyle = ink('line');
	g.lineWidth = 1;
	g.strokeRect(at + 0.5, y - 8.5, w - 1, 17);
	g.fillStyle = ink('ink');
	g.fillText(text, at + 6, y + 0.5);
}

/** The time under the pointer, through every track. */
export function drawCursor(g: CanvasRenderingContext2D, time: number, v: Span, width: number, height: number, start: number, ink: Ink): void {
	const x = Math.round(xOf(time, v, width));
	g.fillStyle = ink('cursor');
	g.fillRect(x, 0, 1, height);
	const step = (v.to - v.from) / width;
	words(g, step < (time - start) / 2000 ? exact(time - start, step) : duration(Math.max(0, time - start)), x + 6, 10, width, ink);
}

/** The ends of a counter's scale, at its left. */
export function drawScale(g: CanvasRenderingContext2D, high: string, low: string, y: number, height: number, ink: Ink): void {
	g.font = FONT;
	g.textBaseline = 'middle';
	for (const [text, at] of [[high, y + 7], [low, y + height - 7]] as const) {
		g.globalAlpha = 0.75;
		g.fillStyle = ink('panel');
		g.fillRect(2, at - 6, g.measureText(text).width + 6, 12);
		g.globalAlpha = 1;
		g.fillStyle = ink('ink');
		g.fillText(text, 5, at + 0.5);
	}
}

/** The value of a counter under the pointer, on the side that the tooltip does not cover. */
export function drawValue(g: CanvasRenderingContext2D, text: string, x: number, y: number, width: number, ink: Ink): void {
	g.font = FONT;
	words(g, text, x > width - innerWidth / 2 ? x + 6 : x - g.measureText(text).width - 18, y, width, ink);
}

/** The call that is selected: a frame that is seen on every colour. */
export function drawSelected(g: CanvasRenderingContext2D, x0: number, x1: number, y: number, height: number, ink: Ink): void {
	g.strokeStyle = ink('panel');
	g.lineWidth = 4;
	g.strokeRect(x0 - 1, y - 1, x1 - x0 + 2, height + 2);
	g.strokeStyle = ink('ink');
	g.lineWidth = 2;
	g.strokeRect(x0 - 1, y - 1, x1 - x0 + 2, height + 2);
}

/** A note that was picked. */
export function drawSpot(g: CanvasRenderingContext2D, x0: number, x1: number, y: number, height: number, ink: Ink): void {
	g.strokeStyle = ink('hit');
	g.lineWidth = 2;
	g.strokeRect(x0 - 2, y - 2, x1 - x0 + 4, height + 4);
}
