// What the canvases write must be readable on what they write it on.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { colorOf, css, packageOf } from '../src/color';

type Rgb = [number, number, number];

function tokens(dark: boolean): (name: string) => Rgb {
	const style = readFileSync(new URL('../src/style.css', import.meta.url), 'utf8');
	const block = (dark ? /:root\[data-theme="dark"\] \{([^}]*)\}/ : /:root \{([^}]*)\}/).exec(style)![1];
	return (name) => {
		const m = new RegExp(`${name}: #([0-9a-f]{6});`).exec(block);
		assert.ok(m, `${name} is a colour of six digits`);
		return [0, 2, 4].map((i) => parseInt(m[1].slice(i, i + 2), 16)) as Rgb;
	};
}

function contrast(a: Rgb, b: Rgb): number {
	const light = (c: Rgb) => {
		const [r, g, bl] = c.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * bl;
	};
	const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
	return (x + 0.05) / (y + 0.05);
}

for (const dark of [false, true])
	test(`labels can be read on every colour, ${dark ? 'dark' : 'light'}`, () => {
		const token = tokens(dark);
		const seen = new Set<number>();
		for (let i = 0; i < 5000; i++) {
			const p = colorOf(`com.p${i}.Class${i % 7}.m`, dark);
			seen.add(p);
			const ratio = contrast(token('--flame-ink'), [p & 255, (p >> 8) & 255, (p >> 16) & 255]);
			assert.ok(ratio >= 4.5, `${css(p)} has ${ratio.toFixed(2)}`);
		}
		assert.equal(seen.size, 120, 'every hue and lightness was met');
		for (const [ink, on] of [['--hit-ink', '--hit'], ['--faded-ink', '--faded'], ['--ink', '--line'], ['--ink', '--chart'], ['--quiet', '--panel'], ['--accent-ink', '--accent']])
			assert.ok(contrast(token(ink), token(on)) >= 4.5, `${ink} on ${on}: ${contrast(token(ink), token(on)).toFixed(2)}`);
		// a match must stand out from what did not match
		assert.ok(contrast(token('--hit'), token('--faded')) >= 3);
	});

test('one class has one colour, a package one hue', () => {
	assert.equal(colorOf('a.b.C.m', false), colorOf('a.b.C.n', false));
	assert.notEqual(colorOf('a.b.C.m', false), colorOf('a.b.C.m', true));
	assert.equal(packageOf('a.b.C.m'), 'a.b');
	assert.equal(packageOf('m'), 'm');
});
