// Colours of calls: the hue tells the package, the lightness the class, the same in every view and
// on every visit.  All hues are equally light to the eye, so that labels can be read on each.

export function hash(text: string): number {
	let h = 0x811c9dc5;
	for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
	return h >>> 0;
}

/** The package of "a.b.Class.method": "a.b". */
export function packageOf(name: string): string {
	const pieces = name.split('.');
	return pieces.slice(0, Math.max(1, pieces.length - 2)).join('.');
}

function channel(h: number, s: number, l: number, shift: number): number {
	const k = (shift + h / 30) % 12;
	const a = s * Math.min(l, 1 - l);
	return Math.round(255 * (l - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
}

/** 0xAABBGGRR, as a little-endian pixel. */
export function pixel(h: number, s: number, l: number): number {
	return (0xff000000 | (channel(h, s, l, 4) << 16) | (channel(h, s, l, 8) << 8) | channel(h, s, l, 0)) >>> 0;
}

function luminance(p: number): number {
	const [r, g, b] = [p & 255, (p >> 8) & 255, (p >> 16) & 255].map((v) => {
		const c = v / 255;
		return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
	});
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** The pixel of a hue that is as light as asked. */
function equallyLight(h: number, s: number, want: number): number {
	let lo = 0;
	let hi = 1;
	for (let i = 0; i < 12; i++) {
		const mid = (lo + hi) / 2;
		if (luminance(pixel(h, s, mid)) < want) lo = mid;
		else hi = mid;
	}
	return pixel(h, s, (lo + hi) / 2);
}

const HUES = 24; // a step apart they are told from each other; more are not
const made = new Map<number, number>();

export function colorOf(name: string, dark: boolean): number {
	const cls = name.slice(0, Math.max(0, name.lastIndexOf('.')));
	const hue = hash(packageOf(name)) % HUES;
	const step = (hash(cls) >>> 8) % 5;
	const key = (hue * 5 + step) * 2 + Number(dark);
	let p = made.get(key);
	if (p === undefined) {
		p = dark ? equallyLight(hue * (360 / HUES), 0.5, 0.08 + step * 0.017) : equallyLight(hue * (360 / HUES), 0.62, 0.48 + step * 0.045);
		made.set(key, p);
	}
	return p;
}

export function css(p: number): string {
	return `rgb(${p & 255},${(p >> 8) & 255},${(p >> 16) & 255})`;
}

export function palette(names: string[], dark: boolean): Uint32Array {
	return Uint32Array.from(names, (n) => colorOf(n, dark));
}
