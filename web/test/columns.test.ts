import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeChunk, DamagedChunk } from '../src/columns';
import { count, duration, percent, splitName, tick, tickStep } from '../src/format';
import { paint, type View } from '../src/paint';
import { gallop, sliceAt, toRows } from '../src/rows';
import { chunk } from './chunk';

// a(0..100) { b(10..30) c(30..60) { d(40..50) } } e(200..201)
const sample = () => chunk(5, 0, [[], [0, 0, 1, 0, 3], [0, 10, 0, 10, 100], [20, 10, 1], [10, 40], [0, 1, 2, 3, 4], [], []]);

test('a chunk decodes as schema/columns.md says', () => {
	const s = decodeChunk(sample(), 1000);
	assert.deepEqual([...s.start], [1000, 1010, 1030, 1040, 1200]);
	assert.deepEqual([...s.dur], [100, 20, 30, 10, 1]);
	assert.deepEqual([...s.depth], [0, 1, 1, 2, 0]);
	assert.deepEqual([...s.method], [0, 1, 2, 3, 4]);
});

test('a chunk that begins inside open calls places its slices by the chunk', () => {
	const s = decodeChunk(chunk(2, 2, [[50, 500, 7, 20, 300, 8], [0, 2], [0, 5], [4, 9], [], [1, 2], [], []]), 1000);
	assert.deepEqual([...s.start], [1000, 1005]);
	assert.deepEqual([...s.depth], [2, 1]);
	assert.deepEqual([...s.dur], [4, 9]);
});

test('a cut chunk is told, not shown', () => {
	const whole = sample();
	for (let n = 0; n < whole.length; n++) assert.throws(() => decodeChunk(whole.slice(0, n), 0), DamagedChunk, `cut at ${n}`);
});

test('rows hold each depth in time order and find slices', () => {
	const rows = toRows([decodeChunk(sample(), 0)]);
	assert.equal(rows.depth, 3);
	assert.deepEqual([...rows.first], [0, 2, 4, 5]);
	assert.equal(rows.method[sliceAt(rows, 1, 35)], 2);
	assert.equal(sliceAt(rows, 0, 150), -1);
	assert.equal(sliceAt(rows, 9, 1), -1);
});

test('galloping finds what a walk finds', () => {
	const end = Float64Array.from({ length: 1000 }, (_, i) => i * 3 + (i % 3));
	for (const t of [-1, 0, 5, 500, 2997, 5000])
		for (const at of [0, 1, 17, 999]) {
			let walk = at;
			while (walk < 1000 && end[walk] <= t) walk++;
			assert.equal(gallop(end, at, 1000, t), walk, `from ${at} to ${t}`);
		}
});

test('painting ends and marks what is shorter than a pixel', () => {
	const n = 50000;
	const s = { n, start: Float64Array.from({ length: n }, (_, i) => i * 2), dur: new Float64Array(n).fill(1),
		method: new Uint32Array(n), depth: new Uint16Array(n), merged: null, open: new Float64Array(0) };
	const v: View = { from: 0, to: n * 2, width: 100, y: 0, height: 10, top: 0, rowHeight: 10 };
	const px = new Uint32Array(1000);
	const look = { palette: Uint32Array.of(7), matches: null, background: 1, highlight: 2, faded: 3 };
	const draw = (view: View) => paint(px.fill(1), toRows([s]), view, look, []);
	draw(v);
	assert.ok(px.slice(0, 100).every((p) => p === 7), 'a dense row is full');
	assert.equal(px[9 * 100], 1, 'the gap between rows stays');
	assert.ok(px.slice(0, 900).every((p) => p === 7), 'every line of the row but the last');
	draw({ ...v, top: 4 });
	assert.deepEqual([px[0], px[499], px[500]], [7, 7, 1], 'a row that is scrolled half out shows its rest');
	draw({ ...v, top: 9 });
	assert.ok(px.every((p) => p === 1), 'nothing but its gap is left');
	draw({ ...v, y: 3, height: 5 });
	assert.deepEqual([px[299], px[300], px[799], px[800]], [1, 7, 7, 1], 'only the lines of its part');
});

test('numbers read well', () => {
	assert.equal(duration(1234567), '1.23 ms');
	assert.equal(duration(0), '0');
	assert.equal(duration(25e6), '25.0 ms');
	assert.equal(duration(7), '7 ns');
	assert.equal(tick(25e6), '25 ms');
	assert.equal(tick(1.5e6), '1.5 ms');
	assert.equal(tick(200e6), '200 ms');
	assert.equal(tick(0), '0');
	assert.equal(percent(0.02), '2.0 %');
	assert.equal(percent(0.0999), '10 %');
	assert.equal(duration(100e6), '100 ms');
	assert.equal(count(1234567), '1,234,567');
	assert.equal(percent(0.0004), '<0.1 %');
	assert.deepEqual(splitName('a.b.C.m'), ['a.b.', 'C.m']);
	assert.equal(tickStep(1000, 10), 100);
});
