import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

const SRC = new URL('../src/', import.meta.url);
const TOKENS = 'ui/tokens.css';
const read = (name: string) => readFileSync(new URL(name, SRC), 'utf8');
const sheets = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((f) => f.endsWith('.css') && f !== TOKENS).map((f) => ({ name: f, text: read(f) }));
const tokens = read(TOKENS);

/** Where a stylesheet says for itself what tokens.css has a name for. */
function strays(pattern: RegExp): string[] {
	return sheets.flatMap(({ name, text }) => text.split('\n').flatMap((line, i) => [...line.matchAll(pattern)].map((m) => `${name}:${i + 1}: ${m[0]}`)));
}

test('colours are in tokens.css only', () => {
	assert.deepEqual(strays(/#[0-9a-f]{3,8}\b(?![^{};]*\{)|\b(?:rgba?|hsla?|oklch)\(/gi), []);
});

test('sizes of text are in tokens.css only', () => {
	assert.deepEqual(strays(/font(?:-size)?: *[\d.]+(?:px|r?em)[^;}]*/g), []);
});

test('distances have names where there is one', () => {
	assert.deepEqual(strays(/(?:padding|margin|gap)(?:-[a-z]+)*: [^;}]*(?<![\w.(-])(?:2|4|6|8|12|16|24)px\b[^;}]*/g), []);
});

test('corners are in tokens.css only', () => {
	assert.deepEqual(strays(/border-radius: *[\d.]+px/g), []);
});

test('every name that is used is there, in both themes where it is a colour', () => {
	const own = sheets.map((s) => s.text).join('\n');
	const there = new Set([...(tokens + own).matchAll(/(--[\w-]+):/g)].map((m) => m[1]));
	for (const m of own.matchAll(/var\((--[\w-]+)/g)) assert.ok(there.has(m[1]), m[1]);
	const [, light, dark] = tokens.split(':root');
	const colours = (s: string) => [...s.matchAll(/(--[\w-]+): #/g)].map((m) => m[1]).sort();
	assert.deepEqual(colours(light), colours(dark));
});

test('dark colours are for screens: paper is white', () => {
	assert.match(tokens, /@media screen \{[^{}]*:root\[data-theme="dark"\] \{/);
});
