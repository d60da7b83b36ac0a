// A merged flame graph onto its canvas: the rows that are in view.
import type { Flame } from '../../api/api';
import { colorOf, css } from '../../ui/color';
import { count, splitName } from '../../i18n/format';
import type { Boxes } from './flamelayout';
import { fitMethod, FONT } from '../../ui/label';
import { tr } from '../../i18n/strings/trace';

export const ROW = 19;

export interface Look {
	matches: Uint8Array | null;
	dark: boolean;
	safe: boolean;
	focus: number; // the node the keys are at, or -1
	flip: boolean; // the root is the lowest row
	fill?: (node: number) => string; // instead of the package's colour; '' for nodes that represent several
}

/** The name as a box shows it. */
export function labelOf(f: Flame, node: number): string {
	if (f.other[node]) return tr('{other} smaller', { other: count(f.other[node]) });
	return node === 0 && f.method[0] < 0 ? f.names[f.name[0]] : splitName(f.names[f.name[node]])[1];
}

/** The row on the canvas that a node's depth is. */
export function rowOf(b: Boxes, depth: number, flip: boolean): number {
	return flip ? b.rows - 1 - depth : depth;
}

/** Rows [from, to) are painted, the first at the top of the canvas. */
export interface Window {
	from: number;
	to: number;
	shift: number; // pixels of the first that are hidden above
	width: number;
}

interface Inks {
	flame: string; hit: string; hitInk: string; faded: string; fadedInk: string; other: string; ink: string;
}

function inks(): Inks {
	const style = getComputedStyle(document.documentElement);
	const color = (name: string) => style.getPropertyValue(name);
	return { flame: color('--flame-ink'), hit: color('--hit'), hitInk: color('--hit-ink'), faded: color('--faded'), fadedInk: color('--faded-ink'),
		other: color('--line'), ink: color('--ink') };
}

function outline(g: CanvasRenderingContext2D, x: number, y: number, width: number, room: number, ink: string): void {
	const w = Math.max(4, width);
	g.strokeStyle = ink;
	g.lineWidth = 2;
	g.strokeRect(Math.min(Math.max(1, x + 1), room - 3), y + 1, Math.max(2, w - 3), ROW - 3);
}

/** Fill and ink of a node's box. */
function coloursOf(f: Flame, i: number, look: Look, c: Inks): [string, string] {
	const m = f.method[i];
	const own = look.fill?.(i);
	if (own) return [own, c.flame];
	if (f.other[i] > 0 || m < 0) return [c.other, c.ink];
	if (look.matches) return look.matches[m] === 1 ? [c.hit, c.hitInk] : [c.faded, c.fadedInk];
	return [css(colorOf(f.names[f.name[i]], look.dark, look.safe)), c.flame];
}

function paintRow(g: CanvasRenderingContext2D, f: Flame, b: Boxes, nodes: number[], y: number, width: number, look: Look, c: Inks): void {
	let painted = 0; // right edge of the row's painted part
	for (const i of nodes) {
		const x = b.x0[i] * width;
		const w = (b.x1[i] - b.x0[i]) * width;
		if (x + w < painted || (w < 0.5 && x < painted)) continue; // its pixel is taken
		const shown = Math.max(1, w - (w > 3 ? 1 : 0));
		const [fill, ink] = coloursOf(f, i, look, c);
		g.fillStyle = fill;
		g.fillRect(x, y, shown, ROW - 1);
		painted = x + shown;
		const label = w > 24 ? fitMethod(g, labelOf(f, i), w - 9) : '';
		if (!label) continue;
		g.fillStyle = ink;
		g.fillText(label, x + 4, y + (ROW - 1) / 2 + 0.5);
	}
}

export function paintBoxes(g: CanvasRenderingContext2D, f: Flame, b: Boxes, v: Window, look: Look): void {
	const c = inks();
	g.font = FONT;
	g.textBaseline = 'middle';
	for (let row = v.from; row < Math.min(v.to, b.rows); row++)
		paintRow(g, f, b, b.byRow[rowOf(b, row, look.flip)], (row - v.from) * ROW - v.shift, v.width, look, c);
	const row = look.focus >= 0 && look.focus < b.n ? rowOf(b, b.depth[look.focus], look.flip) : -1;
	if (row >= v.from && row < v.to)
		outline(g, b.x0[look.focus] * v.width, (row - v.from) * ROW - v.shift, (b.x1[look.focus] - b.x0[look.focus]) * v.width, v.width, c.ink);
}
