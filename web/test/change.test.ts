// One change has one figure: in the inbox, the overview, the list of regressions, comparisons and the server's texts.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { relative } from '../src/compare/comparedoc';
import { duration, inUnit, percent, signed } from '../src/i18n/format';

const SRC = new URL('../src/', import.meta.url);
const table = (name: string) => readFileSync(new URL('../../tests/unit/fleet/test_hook.c', import.meta.url), 'utf8').split(`} ${name}[] = {`)[1].split('};')[0];
const valued = (name: string) => [...table(name).matchAll(/\{([\d.]+), "([^"]+)"\}/g)].map(([, value, text]) => [Number(value), text] as const);
const figures = valued('figures');

test('the page writes the figures of the server', () => {
	assert.ok(figures.length >= 9);
	for (const [share, text] of figures) {
		assert.equal(percent(share), text);
		assert.equal(signed(share), share === 0 ? '±0 %' : `+${text}`);
		assert.equal(signed(-share), share === 0 ? '±0 %' : `−${text}`);
	}
	assert.equal(relative({ a: 1000, b: 1474 }), '+47 %');
	assert.equal(relative({ a: 1000, b: 1000 }), '±0 %');
});

test('so are times and the figures of alerts', () => {
	const times = valued('times');
	assert.ok(times.length >= 6);
	for (const [ns, text] of times) assert.equal(duration(ns), text);
	const alerts = [...table('alert_figures').matchAll(/\{"(\w+)", ([\d.]+), "([^"]+)"\}/g)];
	assert.ok(alerts.length >= 6);
	for (const [, unit, value, text] of alerts) assert.equal(inUnit(Number(value), unit as 'ms' | 'share' | 'times', (n) => `${n} times`), text);
});

test('no page has another way to write a change', () => {
	for (const f of readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name) && !/format\.ts$/.test(name)))
		assert.doesNotMatch(readFileSync(new URL(f, SRC), 'utf8'), /[+−]\$\{percent\(|\+\{percent\(/, f);
});
