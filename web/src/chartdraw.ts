// What the page itself draws over the painted calls: ruler, labels, the selection.
import { count, tick, tickStep } from './format';
import { fit, FONT } from './label';
import type { Label } from './paint';

export const ROW = 18;
export const RULER = 22;

/** Seconds with as many digits as the step needs. */
export function exact(ns: number, step: number): string {
	return `${(ns / 1e9).toFixed(Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(step)))))} s`;
}

/** Times from the trace's start; far in, the first mark in full and the others from there. */
export function drawRuler(g: CanvasRenderingContext2D, from: number, to: number, start: number, width: number, ink: string): void {
	const span = to - from;
	const step = tickStep(span, width / 110);
	g.fillStyle = ink;
	g.textBaseline = 'middle';
	g.font = FONT;
	const first = Math.ceil((from - start) / step) * step;
	const near = step < first / 200;
	for (let t = first, i = 0; t <= to - start; t += step, i++) {
		const x = ((t + start - from) / span) * width;
		const text = near && i > 0 ? `+${tick(t - first)}` : near ? exact(t, step) : tick(t);
		g.fillRect(x, RULER - 6, 1, 6);
		if (x + 4 + g.measureText(text).width <= width) g.fillText(text, x + 4, RULER / 2);
	}
}

/** "a.b.Class.method" without its package. */
export function short(name: string): string {
	const method = name.lastIndexOf('.');
	const cls = name.lastIndexOf('.', method - 1);
	return name.slice(cls + 1);
}

export function drawLabels(g: CanvasRenderingContext2D, labels: Label[], names: string[], dpr: number,
	ink: (method: number) => string): void {
	g.font = FONT;
	g.textBaseline = 'middle';
	for (const l of labels) {
		const text = fit(g, l.merged > 1 ? `${count(l.merged)} short ones` : short(names[l.method] ?? ''), l.w / dpr - 8);
		if (!text) continue;
		g.fillStyle = ink(l.method);
		g.fillText(text, l.x / dpr + 4, RULER + l.y / dpr + (ROW - 1) / 2 + 0.5);
	}
}

/** Shades what is not selected, and marks the edges. */
export function drawSelection(g: CanvasRenderingContext2D, a: number, b: number, width: number, height: number,
	shade: string, edge: string): void {
	g.fillStyle = shade;
	g.fillRect(0, RULER, Math.max(0, a), height);
	g.fillRect(b, RULER, Math.max(0, width - b), height);
	g.fillStyle = edge;
	for (const x of [a, b]) if (x >= 0 && x <= width) g.fillRect(Math.round(x) - (x === b ? 1 : 0), 0, 1, RULER + height);
}
