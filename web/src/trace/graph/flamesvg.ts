// A merged flame graph as an SVG text: everything in it that comes from a trace is escaped.
import type { Flame } from '../../api/api';
import { colorOf, css } from '../../ui/color';
import type { Boxes } from './flamelayout';
import { labelOf, ROW } from './flamepaint';
import { percent } from '../../i18n/format';

export const WIDTH = 1600;
const NARROWEST = 0.3;
const CHARACTER = 6.7; // of the 11px monospace below

export function escapeXml(s: string): string {
	return s.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd')
		.replace(/[&<>"']/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' })[c]!);
}

/** The complete graph; each box has a title with its numbers. */
export function svgOf(f: Flame, b: Boxes, show: (v: number) => string, safe = false): string {
	const out = [`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${b.rows * ROW}" width="${WIDTH}" height="${b.rows * ROW}" font-family="monospace" font-size="11">`,
		'<rect width="100%" height="100%" fill="#ffffff"/>'];
	for (let i = 0; i < b.n; i++) {
		const w = (b.x1[i] - b.x0[i]) * WIDTH;
		if (w < NARROWEST) continue;
		const [x, y] = [b.x0[i] * WIDTH, b.depth[i] * ROW];
		const fill = f.method[i] < 0 ? '#d9dfe1' : css(colorOf(f.names[f.name[i]], false, safe));
		const label = labelOf(f, i);
		const room = Math.floor((w - 8) / CHARACTER);
		const name = f.other[i] ? label : f.names[f.name[i]];
		out.push(`<g><title>${escapeXml(name)}, ${escapeXml(show(f.value[i]))}, ${escapeXml(percent(f.value[i] / (f.value[0] || 1)))}</title>`
			+ `<rect x="${x.toFixed(2)}" y="${y}" width="${Math.max(0.3, w - (w > 3 ? 1 : 0)).toFixed(2)}" height="${ROW - 1}" fill="${fill}"/>`
			+ (room >= 3 ? `<text x="${(x + 4).toFixed(2)}" y="${y + 13}">${escapeXml(label.length > room ? `${label.slice(0, room - 1)}…` : label)}</text>` : '') + '</g>');
	}
	return out.join('\n') + '\n</svg>\n';
}
