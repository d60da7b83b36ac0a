// How colours look: what can be read on what, and to eyes that lack red or green cones.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

export type Rgb = [number, number, number];
export type Eye = 'usual' | 'protan' | 'deutan';

/** The colours of tokens.css by name. */
export function tokens(dark: boolean): (name: string) => Rgb {
	const style = readFileSync(new URL('../src/ui/tokens.css', import.meta.url), 'utf8');
	const block = (dark ? /:root\[data-theme="dark"\] \{([^}]*)\}/ : /:root \{([^}]*)\}/).exec(style)![1];
	return (name) => {
		const m = new RegExp(`${name}: #([0-9a-f]{6});`).exec(block);
		assert.ok(m, `${name} is a colour of six digits`);
		return [0, 2, 4].map((i) => parseInt(m[1].slice(i, i + 2), 16)) as Rgb;
	};
}

export function contrast(a: Rgb, b: Rgb): number {
	const light = (c: Rgb) => {
		const [r, g, bl] = c.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * bl;
	};
	const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
	return (x + 0.05) / (y + 0.05);
}

/** A pixel as an eye sees it, in linear light (Viénot, Brettel and Mollon 1999). */
export function seen(eye: Eye, p: number): Rgb {
	const line = (v: number) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
	const [r, g, b] = [p & 255, (p >> 8) & 255, (p >> 16) & 255].map(line);
	if (eye === 'usual') return [r, g, b];
	const [of, blue] = eye === 'deutan' ? [0.29275 * r + 0.70725 * g, -0.02234 * r + 0.02234 * g + b] : [0.11238 * r + 0.88762 * g, 0.00401 * r - 0.00401 * g + b];
	return [of, of, blue];
}

/** How far two pixels look apart: Oklab's distance of what the eye sees. */
export function apart(eye: Eye, p: number, q: number): number {
	const lab = (x: number) => {
		const [r, g, b] = seen(eye, x).map((v) => Math.max(0, v));
		const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
		const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
		const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
		return [0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s, 1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s, 0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s];
	};
	const [x, y] = [lab(p), lab(q)];
	return Math.hypot(...x.map((v, i) => v - y[i]));
}
