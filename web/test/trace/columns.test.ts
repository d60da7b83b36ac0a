import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DamagedChunk, Payload } from '../../src/trace/worker/columns';
import { count, duration, percent, splitName, tick, tickStep } from '../../src/i18n/format';
import { paint, type View } from '../../src/trace/worker/paint';
import { gallop, sliceAt, toRows } from '../../src/trace/worker/rows';
import { callsOf, chunk, rowsOf, type Call } from './chunk';

// a(0..15) { b(1..4) c(4..9) { d(5..8) } } e(20..21)
const sample = () => chunk(5, 0, [[], [], [0, 0, 0, 1, 1, 2, 0, 3, 3, 4], [3, 3, 1], [1, 6], [0, 1, 0, 1, 5], [], []]);

const rowsFrom = (bytes: Uint8Array, start: number) => toRows([new Payload(bytes, start)]);

test('a chunk decodes as schema/columns.md says', async () => {
	assert.deepEqual(callsOf(await rowsFrom(sample(), 1000)), [[1000, 15, 0, 0], [1020, 1, 4, 0], [1001, 3, 1, 1], [1004, 5, 2, 1], [1005, 3, 3, 2]]);
});

test('a chunk that begins inside open calls places its slices by the chunk', async () => {
	const r = await rowsFrom(chunk(2, 2, [[50, 500, 7, 20, 300, 8], [], [0, 1, 2, 2], [4, 9], [], [0, 5], [], []]), 1000);
	assert.deepEqual([...r.first], [0, 0, 1, 2]);
	assert.deepEqual(callsOf(r), [[1005, 9, 2, 1], [1000, 4, 1, 2]]);
});

test('a call that goes on in the next chunk is there once', async () => {
	// a(0..15) { b(2..6) | c(8..12) } in two chunks
	const one = new Payload(chunk(2, 0, [[], [], [0, 1, 0, 2], [4], [9], [0, 2], [], []]), 0);
	const two = new Payload(chunk(1, 1, [[8, 15, 1], [], [0, 3], [4], [], [0], [], []]), 8);
	assert.deepEqual(callsOf(await toRows([one, two])), [[0, 15, 1, 0], [2, 4, 2, 1], [8, 4, 3, 1]]);
});

test('a cut chunk is told, not shown', async () => {
	const whole = sample();
	for (let n = 0; n < whole.length; n++) await assert.rejects(async () => rowsFrom(whole.slice(0, n), 0), DamagedChunk, `cut at ${n}`);
	const lies = sample();
	new DataView(lies.buffer).setUint32(4, 0xffffffff, true);
	await assert.rejects(rowsFrom(lies, 0), DamagedChunk, 'more slices than it holds');
	new DataView(lies.buffer).setUint32(4, 5, true);
	new DataView(lies.buffer).setUint32(8, 0xffffffff, true);
	await assert.rejects(async () => rowsFrom(lies, 0), DamagedChunk, 'more open calls than it holds');
});

test('what was read is given back, and between chunks others have their turn', async () => {
	const bytes = [sample(), sample()];
	const kept = bytes.map((b) => new Payload(b, 0));
	let turns = 0;
	await toRows(kept, false, async () => void turns++);
	assert.equal(turns, 2);
	if ('transfer' in ArrayBuffer.prototype) assert.deepEqual(bytes.map((b) => b.buffer.byteLength), [0, 0]); // not in every node
});

test('times and methods are exact, however large', () => {
	const word = 2 ** 32;
	const edges = [0, 1, word - 2, word - 1, word, word + 1, 2 ** 48 - 1, 2 ** 48, 2 ** 52];
	for (const base of [0, 5e9 + 7, 2 ** 50]) {
		const apart: Call[] = edges.flatMap((at) => [0, 1, 65535, 65536, 2 ** 31].map((method): Call => [base + at, 0, method, 0]));
		assert.deepEqual(callsOf(rowsOf(apart)), apart);
		const long: Call[] = edges.slice(0, -1).map((dur, row): Call => [base, dur, row, row]);
		assert.deepEqual(callsOf(rowsOf(long)), long);
	}
	assert.throws(() => rowsOf([[10, 1, 0, 0], [9, 1, 0, 0]]), DamagedChunk, 'none begins before the first');
});

test('rows hold each depth in time order and find slices', async () => {
	const rows = await rowsFrom(sample(), 0);
	assert.equal(rows.depth, 3);
	assert.deepEqual([...rows.first], [0, 2, 4, 5]);
	assert.equal(rows.method[sliceAt(rows, 1, 7)], 2);
	assert.equal(sliceAt(rows, 0, 17), -1);
	assert.equal(sliceAt(rows, 9, 1), -1);
});

test('galloping finds what a walk finds', () => {
	const rows = rowsOf(Array.from({ length: 1000 }, (_, i): Call => [i * 3, i % 3, 0, 0]));
	for (const t of [-1, 0, 5, 500, 2997, 5000])
		for (const at of [0, 1, 17, 999]) {
			let walk = at;
			while (walk < 1000 && rows.end(walk) <= t) walk++;
			assert.equal(gallop(rows, at, 1000, t), walk, `from ${at} to ${t}`);
		}
});

test('painting ends and marks what is shorter than a pixel', () => {
	const n = 50000;
	const rows = rowsOf(Array.from({ length: n }, (_, i): Call => [i * 2, 1, 0, 0]));
	const v: View = { from: 0, to: n * 2, width: 100, y: 0, height: 10, top: 0, rowHeight: 10 };
	const px = new Uint32Array(1000);
	const look = { palette: Uint32Array.of(7), matches: null, background: 1, highlight: 2, faded: 3 };
	const draw = (view: View) => paint(px.fill(1), rows, view, look, []);
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
	assert.deepEqual(splitName('a.b.C.m(java.lang.String)'), ['a.b.', 'C.m(java.lang.String)']);
	for (const whole of ['C.m', 'm', '', '(unknown)', 'libart.so+0x12', 'a::B::call(_jclass*, ...)']) assert.deepEqual(splitName(whole), ['', whole]);
	assert.equal(tickStep(1000, 10), 100);
});
