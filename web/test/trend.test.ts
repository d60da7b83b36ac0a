import assert from 'node:assert/strict';
import { test } from 'node:test';
import { namedVersions, shownLines, trendChart, type Trend, type TrendPoint } from '../src/fleet/trenddoc';

const DAY = 86400000;
const point = (d: number, ns: number, sure = true): TrendPoint => ({ day_ms: d * DAY, of_traces: 9, traces: 9, p50: { ns, low_ns: sure ? ns * 0.9 : null, high_ns: sure ? ns * 1.1 : null }, p95: { ns: 2 * ns, low_ns: null, high_ns: null } });
const trend = (lines: [string | null, TrendPoint[]][]): Trend => ({ since_ms: 0, until_ms: 60 * DAY, change_ms: 20 * DAY, metric: 'self', versions: [{ version: '1', day_ms: 10 * DAY, traces: 5 }, { version: '2', day_ms: 20 * DAY, traces: 5 }, { version: '0', day_ms: 0, traces: 9 }], versions_total: 3, complete: true, lines: lines.map(([version, points]) => ({ version, points })) });

test('a change between versions shows both, another one all', () => {
	const both = trend([[null, [point(10, 5)]], ['1', [point(10, 5)]], ['2', [point(20, 9)]]]);
	assert.deepEqual(shownLines(both).map((l) => l.role), ['base', 'head']);
	assert.deepEqual(shownLines(trend([[null, [point(10, 5)]]])).map((l) => l.role), ['all']);
	assert.deepEqual(shownLines(trend([[null, [point(10, 5)]], ['1', []], ['2', [point(20, 9)]]])).map((l) => l.role), ['head'], 'a version that is gone has no line');
	assert.deepEqual(shownLines(trend([[null, [point(10, 5)]], ['1', []], ['2', []]])).map((l) => l.role), ['all']);
});

test('days stand by time, from zero up, and the change where its day begins', () => {
	const c = trendChart(trend([[null, [point(10, 100), point(11, 110), point(20, 200), point(30, 210)]]]), 'p50', 800, 220);
	const dots = c.lines[0].dots;
	assert.ok(dots.every((d) => d.x > c.left && d.x < c.right && d.y < c.bottom && d.y >= c.top));
	assert.ok(Math.abs((dots[3].x - dots[2].x) - 10 * (dots[1].x - dots[0].x)) < 1e-6, 'as far apart as the days');
	assert.ok(c.change < dots[2].x && c.change > dots[1].x);
	assert.ok(Math.abs(dots[2].x - c.change - (dots[1].x - dots[0].x) / 2) < 1e-6);
	assert.equal(c.ticks[0].y, c.bottom);
	assert.deepEqual(c.versions.map((v) => v.of.version), ['1', '2'], 'one from before is not marked');
});

test('a day alone stands in the middle, and its change with it', () => {
	const c = trendChart(trend([[null, [point(20, 100)]]]), 'p50', 800, 220);
	assert.ok(Math.abs(c.lines[0].dots[0].x - (c.left + c.right) / 2) < 1e-6);
	assert.equal(c.change, c.lines[0].dots[0].x);
	assert.deepEqual(c.versions.map((v) => v.of.version), ['2']);
});

test('bands are of days in a row that have an interval', () => {
	const bands = (points: TrendPoint[], which: 'p50' | 'p95' = 'p50') => trendChart(trend([[null, points]]), which, 800, 220).lines[0].bands;
	assert.equal(bands([point(10, 5), point(11, 5), point(12, 5)]).length, 1);
	assert.equal(bands([point(10, 5), point(11, 5), point(14, 5)]).length, 2);
	assert.equal(bands([point(10, 5), point(11, 5, false), point(12, 5)]).length, 2);
	assert.equal(bands([point(10, 5)])[0].split(' ').length, 4, 'a bar');
	assert.deepEqual(bands([point(10, 5)], 'p95'), []);
});

test('names of versions do not run into each other, the two of the change come first', () => {
	const at = (version: string, x: number) => ({ x, of: { version, day_ms: 0, traces: 1 } });
	assert.deepEqual(namedVersions([at('1', 0), at('2', 30), at('3', 60), at('4', 200)], 70, ['2']).map((v) => v.of.version), ['2', '4']);
});
