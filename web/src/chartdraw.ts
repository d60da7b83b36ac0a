// Words on painted calls.
import { count } from './format';
import { fit, FONT } from './label';
import type { Label } from './paint';
import { tr } from './strings/trace';
import { ROW } from './tracks';

/** Seconds with as many digits as the step needs. */
export function exact(ns: number, step: number): string {
	return `${(ns / 1e9).toFixed(Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(step)))))} s`;
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
		const text = fit(g, l.merged > 1 ? tr('{merged} short ones', { merged: count(l.merged) }) : short(names[l.method] ?? ''), l.w / dpr - 8);
		if (!text) continue;
		g.fillStyle = ink(l.method);
		g.fillText(text, l.x / dpr + 4, l.y / dpr + (ROW - 1) / 2 + 0.5);
	}
}
