// Colours of calls: the hue tells the package, the lightness the class, the same in every view and
// on every visit.

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

export function colorOf(name: string, dark: boolean): number {
	const cls = name.slice(0, Math.max(0, name.lastIndexOf('.')));
	// 24 hues a step apart are told from each other; more are not
	const hue = (hash(packageOf(name)) % 24) * 15;
	const step = ((hash(cls) >>> 8) % 5) - 2;
	return dark ? pixel(hue, 0.42, 0.42 + step * 0.025) : pixel(hue, 0.62, 0.76 + step * 0.025);
}

export function css(p: number): string {
	return `rgb(${p & 255},${(p >> 8) & 255},${(p >> 16) & 255})`;
}

export function palette(names: string[], dark: boolean): Uint32Array {
	return Uint32Array.from(names, (n) => colorOf(n, dark));
}
