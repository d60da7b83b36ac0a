// Lanes into a pixel buffer: scheduler states, spans, counters, activity.  Work is notes × lanes in view;
// the server merged notes shorter than a cell, so there are at most as many as pixels.
import type { Span } from '../state/axis';
import { pixel } from '../../ui/color';
import type { Lane, Strip } from '../state/lanes';

export interface Surface {
	px: Uint32Array;
	width: number; // device pixels
	height: number;
	dpr: number;
	view: Span;
	top: number; // CSS pixels that the list is scrolled
}

interface Box {
	y: number; // in the list, CSS pixels
	height: number;
}

/** A colour as fill and as edge: labels can be read on the fill. */
interface Tint {
	fill: number;
	edge: number;
}

const HUES: Record<string, number> = {
	anr: 22, contention: 40, gc: 80, class_load: 105, render: 130, thread_created: 155, flow: 345, message: 175, binder: 195, section: 220,
	counter: 240, async: 255, io: 270, park: 290, wait: 310, instant: 340,
};

export function tintOf(kind: string, dark: boolean): Tint {
	const hue = HUES[kind] ?? 230;
	return dark ? { fill: pixel(0.42, 0.085, hue), edge: pixel(0.74, 0.12, hue) } : { fill: pixel(0.87, 0.07, hue), edge: pixel(0.58, 0.14, hue) };
}

/** The height of a state, which distinguishes it together with its colour. */
const STATE_HEIGHT: Record<string, number> = { running: 1, runnable: 0.6, blocked: 1, sleeping: 0.3, stopped: 0.3, dead: 0.15 };

function fill(s: Surface, x0: number, x1: number, y0: number, y1: number, color: number): void {
	const from = Math.max(0, x0);
	const to = Math.min(s.width, x1);
	if (from >= to) return;
	for (let y = Math.max(0, y0); y < Math.min(s.height, y1); y++) s.px.fill(color, y * s.width + from, y * s.width + to);
}

const hair = (s: Surface) => Math.round(s.dpr);
const deviceY = (s: Surface, y: number) => Math.round((y - s.top) * s.dpr);

function deviceX(s: Surface, t: number): number {
	const x = ((t - s.view.from) / (s.view.to - s.view.from)) * s.width;
	return Math.max(-1, Math.min(s.width + 1, Math.floor(x)));
}

/** Each note of a lane that is in view, with its pixels: at least one wide. */
export function eachRun(s: Surface, l: Lane, on: (i: number, x0: number, x1: number) => void): void {
	const from = Math.max(s.view.from, l.tile.from);
	const to = Math.min(s.view.to, l.tile.to);
	for (let i = 0; i < l.n && l.ts[i] < to; i++) {
		const end = l.ts[i] + l.dur[i];
		if (end < from) continue;
		const x0 = deviceX(s, Math.max(l.ts[i], from));
		on(i, x0, Math.max(x0 + 1, deviceX(s, Math.min(end, to))));
	}
}

/** A box with words on it. */
export interface Worded {
	x0: number;
	x1: number;
	text: string;
}

/** How far the words of each box may reach, in the order of their begins: a box that begins within another is painted over it. */
export function uncovered(boxes: Worded[]): Worded[] {
	const all = [...boxes].sort((a, b) => a.x0 - b.x0); // of those that begin together the last is on top
	return all.map((b, i) => ({ ...b, x1: Math.min(b.x1, all[i + 1]?.x0 ?? Infinity) })).filter((b) => b.x1 > b.x0);
}

export function paintStates(s: Surface, box: Box, lanes: Lane[], colors: ReadonlyMap<string, number>): void {
	const y0 = deviceY(s, box.y);
	const y1 = deviceY(s, box.y + box.height);
	for (const l of lanes)
		eachRun(s, l, (i, x0, x1) => {
			const share = STATE_HEIGHT[l.text[i]] ?? 0.3;
			fill(s, x0, x1, y1 - Math.max(hair(s), Math.round((y1 - y0) * share)), y1, colors.get(l.text[i]) ?? colors.get('sleeping')!);
		});
}

/** Moments are lines, what lasts a box with an edge where it begins. */
export function paintSpans(s: Surface, box: Box, lanes: Lane[], tint: Tint): void {
	const y0 = deviceY(s, box.y);
	const y1 = deviceY(s, box.y + box.height);
	for (const l of lanes)
		eachRun(s, l, (_, x0, x1) => {
			if (x1 - x0 > 2 * hair(s)) fill(s, x0 + hair(s), x1, y0, y1, tint.fill);
			fill(s, x0, Math.min(x1, x0 + 2 * hair(s)), y0, y1, tint.edge);
		});
}

/** Smallest and largest value of a counter, with 0 unless it is far away. */
export function rangeOf(lanes: Lane[]): [number, number] {
	let low = Infinity;
	let high = -Infinity;
	for (const l of lanes)
		for (let i = 0; i < l.n; i++) {
			low = Math.min(low, l.low[i]);
			high = Math.max(high, l.high[i]);
		}
	if (low > high) return [0, 1];
	if (low > 0 && low < high * 0.9) low = 0;
	return [low, high > low ? high : low + 1];
}

/** An area: each value holds until the next; of merged values the largest. */
export function paintCounter(s: Surface, box: Box, lanes: Lane[], range: [number, number], tint: Tint): void {
	const y0 = deviceY(s, box.y);
	const y1 = deviceY(s, box.y + box.height);
	const level = (v: number) => Math.round(y1 - ((v - range[0]) / (range[1] - range[0])) * (y1 - y0));
	for (const l of lanes)
		for (let i = 0; i < l.n; i++) {
			const x0 = deviceX(s, Math.max(l.ts[i], l.tile.from));
			const x1 = deviceX(s, Math.min(i + 1 < l.n ? l.ts[i + 1] : l.tile.to, l.tile.to));
			const up = level(l.value[i]);
			fill(s, x0, x1, up, y1, tint.fill);
			fill(s, x0, x1, up, up + hair(s), tint.edge);
			if (l.notes[i] > 1) fill(s, x0, x0 + 1, level(l.high[i]), y1, tint.edge);
		}
}

/** The largest share of each pixel's cells. */
export function paintStrip(s: Surface, box: Box, strips: Strip[], color: number): void {
	const y0 = deviceY(s, box.y);
	const y1 = deviceY(s, box.y + box.height);
	const scale = (s.view.to - s.view.from) / s.width;
	for (const { tile, cells } of strips) {
		const cell = (tile.to - tile.from) / cells.length;
		for (let x = Math.max(0, deviceX(s, tile.from)); x < Math.min(s.width, deviceX(s, tile.to)); x++) {
			const from = Math.max(0, Math.floor((s.view.from + x * scale - tile.from) / cell));
			const to = Math.min(cells.length - 1, Math.floor((s.view.from + (x + 1) * scale - tile.from) / cell));
			let most = 0;
			for (let i = from; i <= to; i++) most = Math.max(most, cells[i]);
			if (most > 0) fill(s, x, x + 1, y1 - Math.max(1, Math.round(((y1 - y0) * most) / 255)), y1, color);
		}
	}
}
