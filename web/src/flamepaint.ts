// A merged flame graph onto its canvas.
import type { Flame } from './api';
import { colorOf, css } from './color';
import { count, splitName } from './format';
import type { Boxes } from './flamelayout';
import { fit, FONT } from './label';

export const ROW = 19;

export interface Look {
	matches: Uint8Array | null;
	dark: boolean;
	focus: number; // the node the keys are at, or -1
	flip: boolean; // the root is the lowest row
}

/** The name as a box shows it. */
export function labelOf(f: Flame, node: number): string {
	if (f.other[node]) return `${count(f.other[node])} smaller`;
	return node === 0 && f.method[0] < 0 ? f.names[f.name[0]] : splitName(f.names[f.name[node]])[1];
}

/** The row on the canvas that a node's depth is. */
export function rowOf(b: Boxes, depth: number, flip: boolean): number {
	return flip ? b.rows - 1 - depth : depth;
}

function outline(g: CanvasRenderingContext2D, b: Boxes, node: number, width: number, ink: string, flip: boolean): void {
	const x = b.x0[node] * width;
	const w = Math.max(4, (b.x1[node] - b.x0[node]) * width);
	g.strokeStyle = ink;
	g.lineWidth = 2;
	g.strokeRect(Math.min(Math.max(1, x + 1), width - 3), rowOf(b, b.depth[node], flip) * ROW + 1, Math.max(2, w - 3), ROW - 3);
}

export function paintBoxes(g: CanvasRenderingContext2D, f: Flame, b: Boxes, width: number, look: Look): void {
	const style = getComputedStyle(document.documentElement);
	const color = (name: string) => style.getPropertyValue(name);
	const [ink, hit, hitInk, faded, fadedInk, other, otherInk] =
		['--flame-ink', '--hit', '--hit-ink', '--faded', '--faded-ink', '--line', '--ink'].map(color);
	const painted = new Float64Array(b.rows); // right edge of what a row has so far
	g.font = FONT;
	g.textBaseline = 'middle';
	for (let i = 0; i < b.n; i++) {
		const x = b.x0[i] * width;
		const w = (b.x1[i] - b.x0[i]) * width;
		const row = rowOf(b, b.depth[i], look.flip);
		if (x + w < painted[row] || (w < 0.5 && x < painted[row])) continue; // its pixel is taken
		const m = f.method[i];
		const plain = f.other[i] > 0 || m < 0;
		const lit = look.matches !== null && m >= 0 && look.matches[m] === 1;
		const shown = Math.max(1, w - (w > 3 ? 1 : 0));
		g.fillStyle = plain ? other : lit ? hit : look.matches ? faded : css(colorOf(f.names[f.name[i]], look.dark));
		g.fillRect(x, row * ROW, shown, ROW - 1);
		painted[row] = x + shown;
		const label = w > 24 ? fit(g, labelOf(f, i), w - 9) : '';
		if (!label) continue;
		g.fillStyle = plain ? otherInk : lit ? hitInk : look.matches ? fadedInk : ink;
		g.fillText(label, x + 4, row * ROW + (ROW - 1) / 2 + 0.5);
	}
	if (look.focus >= 0 && look.focus < b.n) outline(g, b, look.focus, width, color('--ink'), look.flip);
}
