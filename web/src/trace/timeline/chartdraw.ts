// Words on painted calls.
import { count, splitName } from './format';
import { fit, FONT } from './label';
import type { Label } from './paint';
import { tr } from './strings/trace';
import { ROW } from './tracks';

/** Seconds with as many digits as the step needs. */
export function exact(ns: number, step: number): string {
	return `${(ns / 1e9).toFixed(Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(step)))))} s`;
}

export function drawLabels(g: CanvasRenderingContext2D, labels: Label[], names: string[], dpr: number,
	ink: (method: number) => string): void {
	g.font = FONT;
	g.textBaseline = 'middle';
	for (const l of labels) {
		const text = fit(g, l.merged > 1 ? tr('{merged} short ones', { merged: count(l.merged) }) : splitName(names[l.method] ?? '')[1], l.w / dpr - 8);
		if (!text) continue;
		g.fillStyle = ink(l.method);
		g.fillText(text, l.x / dpr + 4, l.y / dpr + (ROW - 1) / 2 + 0.5);
	}
}
