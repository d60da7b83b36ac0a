// The flame graph that is shown, as SVG or PNG.
import type { Flame } from '../../api/api';
import { tr } from '../../i18n/strings/trace';
import { dark, safe } from '../../ui/theme';
import type { Boxes } from './flamelayout';
import { paintBoxes, ROW } from './flamepaint';
import { WIDTH } from './flamesvg';

export { svgOf } from './flamesvg';

const SCALE = 2; // of the PNG

export function pngOf(f: Flame, b: Boxes, matches: Uint8Array | null): Promise<Blob> {
	const canvas = document.createElement('canvas');
	canvas.width = WIDTH * SCALE;
	canvas.height = Math.min(16384, b.rows * ROW * SCALE); // what browsers draw at most
	const g = canvas.getContext('2d')!;
	g.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--panel');
	g.fillRect(0, 0, canvas.width, canvas.height);
	g.scale(SCALE, SCALE);
	paintBoxes(g, f, b, { from: 0, to: b.rows, shift: 0, width: WIDTH }, { matches, dark: dark.value, safe: safe.value, focus: -1, flip: false });
	return new Promise((ok, no) => canvas.toBlob((blob) => (blob ? ok(blob) : no(new Error(tr('The browser could not create the picture.')))), 'image/png'));
}
