// Colours of calls: the hue identifies the package, the lightness the class, the same in every view and
// on every visit.  All hues are equally light to the eye, so that labels can be read on each.

import { withoutParameters } from '../i18n/format';

export function hash(text: string): number {
	let h = 0x811c9dc5;
	for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
	return h >>> 0;
}

/** The package of "a.b.Class.method": "a.b". */
export function packageOf(name: string): string {
	const bare = withoutParameters(name);
	const method = bare.lastIndexOf('.');
	const cls = method > 0 ? bare.lastIndexOf('.', method - 1) : -1;
	return cls >= 0 ? bare.slice(0, cls) : method >= 0 ? bare.slice(0, method) : bare;
}

/** 0xAABBGGRR, as a little-endian pixel, of a colour in Oklch: lightness, chroma, hue in degrees. */
export function pixel(l: number, c: number, h: number): number {
	const a = c * Math.cos((h * Math.PI) / 180);
	const b = c * Math.sin((h * Math.PI) / 180);
	const x = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
	const y = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
	const z = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
	const channel = (v: number) => {
		const e = v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055;
		return Math.round(255 * Math.min(1, Math.max(0, e)));
	};
	const red = channel(4.0767416621 * x - 3.3077115913 * y + 0.2309699292 * z);
	const green = channel(-1.2684380046 * x + 2.6097574011 * y - 0.3413193965 * z);
	const blue = channel(-0.0041960863 * x - 0.7034186147 * y + 1.707614701 * z);
	return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

export const HUES = 24; // the most that can be distinguished
const made = new Map<number, number>();

/** Without red and green: from blue over grey to yellow, neighbours with different lightness.  Eyes that lack
 *  red or green cones distinguish as many of them as others do. */
function blueToYellow(hue: number, step: number, dark: boolean): number {
	const b = (2 * hue) / (HUES - 1) - 1;
	const light = dark ? 0.31 + step * 0.014 + (hue % 3) * 0.07 : 0.7 + step * 0.014 + (hue % 3) * 0.075;
	const most = b < 0 ? (dark ? 0.115 : 0.11) : (dark ? 0.1 : 0.15); // that a screen can show of it
	return pixel(light, Math.abs(b) * most, b < 0 ? 258 : 98);
}

/** safe: for red-green colour blindness. */
export function colorOf(name: string, dark: boolean, safe = false): number {
	const cls = name.slice(0, Math.max(0, withoutParameters(name).lastIndexOf('.')));
	const hue = hash(packageOf(name)) % HUES;
	const step = (hash(cls) >>> 8) % 5;
	const key = ((hue * 5 + step) * 2 + Number(dark)) * 2 + Number(safe);
	let p = made.get(key);
	if (p === undefined) {
		p = safe ? blueToYellow(hue, step, dark)
			: dark ? pixel(0.4 + step * 0.022, 0.085, hue * (360 / HUES)) : pixel(0.78 + step * 0.023, 0.072, hue * (360 / HUES));
		made.set(key, p);
	}
	return p;
}

export function css(p: number): string {
	return `rgb(${p & 255},${(p >> 8) & 255},${(p >> 16) & 255})`;
}

export function palette(names: string[], dark: boolean, safe: boolean): Uint32Array {
	const known = new Map<string, number>(); // methods of a class have one colour
	return Uint32Array.from(names, (n) => {
		const cls = n.slice(0, Math.max(0, withoutParameters(n).lastIndexOf('.')));
		let p = cls ? known.get(cls) : undefined;
		if (p === undefined) known.set(cls, p = colorOf(n, dark, safe));
		return p;
	});
}
