import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BARS, barsOf, extreme, increase, type MetricHistory } from '../src/api/history';
import { DAY_MS } from '../src/i18n/format';

const HOUR = DAY_MS / 24;
const END = 40 * DAY_MS;
const history = (hours_ago: number[], uploads: number[]): MetricHistory => ({ step_ms: 120_000, at_ms: hours_ago.map((h) => END - h * HOUR), series: { uploads, queue: uploads } });

test('the bars of a counter sum to its increase, and begin with the server', () => {
	const h = history([3, 2, 1, 0], [5, 5, 9, 12]);
	const bars = barsOf(h, 'uploads', 'counter');
	assert.equal(bars.length, BARS);
	assert.equal(bars.reduce((n, b) => n + (b.value ?? 0), 0), 12);
	assert.deepEqual([bars[BARS - 12].value, bars[BARS - 8].value, bars[BARS - 1].value], [5, 0, 3]);
	assert.equal(bars[0].value, null, 'it did not run');
});

test('the bars of a server that started days ago begin with its first sample', () => {
	const h = history([23.9, 2, 0], [1_000_000, 1_000_300, 1_000_720]);
	assert.equal(barsOf(h, 'uploads', 'counter').reduce((n, b) => n + (b.value ?? 0), 0), 720);
});

test('a gauge has its extreme in each bar', () => {
	const h = history([0.1, 0.05, 0], [4, 1, 2]);
	assert.equal(barsOf(h, 'queue', 'highest')[BARS - 1].value, 4);
	assert.equal(barsOf(h, 'queue', 'lowest')[BARS - 1].value, 1);
	assert.equal(barsOf(h, 'unknown', 'highest')[BARS - 1].value, null);
});

test('the last hour', () => {
	assert.equal(increase(history([3, 2, 0.5, 0], [5, 6, 9, 12]), 'uploads', HOUR), 6);
	assert.equal(increase(history([0.5, 0], [5, 12]), 'uploads', HOUR), 12, 'all of a server that began within it');
	assert.equal(increase(history([], []), 'uploads', HOUR), 0);
});

test('the latest extreme', () => {
	const bars = barsOf(history([10, 5, 2, 0], [3, 7, 7, 0]), 'queue', 'highest');
	assert.equal(extreme(bars, 'highest')?.from_ms, END - 2 * HOUR);
	assert.equal(extreme(bars, 'lowest')?.value, 0);
	assert.equal(extreme(barsOf(history([], []), 'queue', 'highest'), 'highest'), null);
});
