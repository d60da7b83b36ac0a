// What the canvases write must be readable on what they write it on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { colorOf, css, packageOf } from '../src/ui/color';
import { OUTCOMES } from '../src/trace/state/notekinds';
import { apart, contrast, tokens, type Eye } from './eyes';

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

for (const dark of [false, true])
	test(`the blue to yellow colours can be read, and told apart without red or green cones, ${dark ? 'dark' : 'light'}`, () => {
		const token = tokens(dark);
		const seen = new Map<boolean, Set<number>>([[false, new Set()], [true, new Set()]]);
		for (let i = 0; i < 5000; i++)
			for (const safe of [false, true]) {
				const p = colorOf(`com.p${i}.C.m`, dark, safe);
				seen.get(safe)!.add(p);
				if (safe) assert.ok(contrast(token('--flame-ink'), [p & 255, (p >> 8) & 255, (p >> 16) & 255]) >= 4.5, css(p));
			}
		for (const eye of ['protan', 'deutan'] as Eye[]) {
			const alike = (of: Set<number>) => {
				const all = [...of];
				const pairs = all.flatMap((x, i) => all.slice(0, i).map((y) => apart(eye, x, y)));
				return pairs.filter((d) => d < 0.02).length / pairs.length;
			};
			assert.ok(alike(seen.get(true)!) < 0.6 * alike(seen.get(false)!), `${eye}: ${alike(seen.get(true)!)} against ${alike(seen.get(false)!)} of all pairs look alike`);
		}
	});

for (const dark of [false, true])
	test(`the colours of frames have contrast and differ for usual, protan and deutan vision, ${dark ? 'dark' : 'light'}`, () => {
		const token = tokens(dark);
		const colours = Object.keys(OUTCOMES).map((o) => token(`--frame-${o}`));
		for (const c of colours) assert.ok(contrast(token('--flame-ink'), c) >= 4.5, String(c));
		const fills = colours.map(([r, g, b]) => r | (g << 8) | (b << 16));
		for (const eye of ['usual', 'protan', 'deutan'] as Eye[])
			for (const [i, p] of fills.entries()) for (const q of fills.slice(0, i)) assert.ok(apart(eye, p, q) >= 0.08, `${eye}: ${css(p)} and ${css(q)}, ${apart(eye, p, q).toFixed(3)}`);
	});

test('one class has one colour, a package one hue', () => {
	assert.equal(colorOf('a.b.C.m', false), colorOf('a.b.C.n', false));
	assert.notEqual(colorOf('a.b.C.m', false), colorOf('a.b.C.m', true));
	assert.equal(packageOf('a.b.C.m'), 'a.b');
	assert.equal(packageOf('m'), 'm');
});
