// Rows into a pixel buffer: work is rows × pixels, however many slices there are.
import { firstEndingAfter, gallop, type Rows } from './rows';

/** One thread's part of a picture. */
export interface View {
	from: number;      // ns at the left edge
	to: number;
	width: number;     // device pixels, of the picture too
	y: number;         // of its first line in the picture
	height: number;
	top: number;       // device pixels scrolled past
	rowHeight: number; // device pixels, not always whole; one of them the gap
}

export interface Label {
	x: number;
	y: number; // in the picture; of a row that is cut off above, where it would begin
	w: number;
	method: number;
	merged: number;
}

export interface Look {
	palette: Uint32Array; // pixel by method
	matches: Uint8Array | null; // search: 1 lights up, the rest fades
	background: number;
	highlight: number;
	faded: number;
}

const LABEL_MIN = 28;
const LABELS_MAX = 1500;

function colorFor(look: Look, method: number): number {
	if (look.matches) return look.matches[method] ? look.highlight : look.faded;
	return look.palette[method] ?? look.faded;
}

/** Draws the calls of a row on its first line that is in view, and the others like it but the last: a gap. */
function paintRow(px: Uint32Array, rows: Rows, v: View, look: Look, row: number, labels: Label[]): void {
	const y = Math.round(row * v.rowHeight) - v.top;
	const line = (v.y + Math.max(0, y)) * v.width;
	const lines = Math.min(v.height, Math.round((row + 1) * v.rowHeight) - v.top - 1) - Math.max(0, y);
	const hi = rows.first[row + 1];
	const scale = v.width / (v.to - v.from);
	if (lines <= 0) return;
	let k = firstEndingAfter(rows, rows.first[row], hi, v.from);
	while (k < hi && rows.start(k) < v.to) {
		const left = (rows.start(k) - v.from) * scale;
		const right = (rows.end(k) - v.from) * scale;
		const x0 = Math.max(0, Math.floor(left));
		let x1 = Math.min(v.width, Math.floor(right));
		if (x0 >= v.width) break;
		if (x1 - x0 > 2) x1--; // a gap between neighbours that can spare it
		if (x1 <= x0) x1 = x0 + 1;
		const color = colorFor(look, rows.method[k]);
		if (x1 - x0 === 1) px[line + x0] = color;
		else px.fill(color, line + x0, line + x1);
		if (x1 - x0 > LABEL_MIN && labels.length < LABELS_MAX)
			labels.push({ x: x0, y: v.y + y, w: x1 - x0, method: rows.method[k], merged: rows.merged ? rows.merged[k] : 0 });
		k = right - left >= 1 ? k + 1 : gallop(rows, k + 1, hi, v.from + x1 / scale);
	}
	for (let i = 1; i < lines; i++) px.copyWithin(line + i * v.width, line, line + v.width);
}

/** Into lines that hold the background. */
export function paint(px: Uint32Array, rows: Rows, v: View, look: Look, labels: Label[]): void {
	const first = Math.max(0, Math.floor(v.top / v.rowHeight) - 1);
	const last = Math.min(rows.depth, Math.ceil((v.top + v.height) / v.rowHeight) + 1);
	for (let row = first; row < last; row++) paintRow(px, rows, v, look, row, labels);
}
