// Words on painted calls.
import { count, splitName } from '../../i18n/format';
import { fit, fitMethod, FONT } from '../../ui/label';
import type { Label } from '../worker/paint';
import { tr } from '../../i18n/strings/trace';
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
		const room = l.w / dpr - 8;
		const text = l.merged > 1 ? fit(g, tr('{merged} short ones', { merged: count(l.merged) }), room) : fitMethod(g, splitName(names[l.method] ?? '')[1], room);
		if (!text) continue;
		g.fillStyle = ink(l.method);
		g.fillText(text, l.x / dpr + 4, l.y / dpr + (ROW - 1) / 2 + 0.5);
	}
}
