import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AnrProcess, AnrThread } from '../src/anr/anrdoc';
import { folded, pictureOf, waitsOf, type Picture } from '../src/anr/waits';

/** Threads by whom they wait for: an index, null (nobody), or 'gone'. */
function dump(holders: (number | null | 'gone')[], main: number | null = 0): AnrProcess {
	const victims = new Array(holders.length).fill(0);
	holders.forEach((_, i) => {
		const met = new Set([i]);
		for (let at = holders[i]; typeof at === 'number' && !met.has(at); at = holders[at]) {
			victims[at]++;
			met.add(at);
		}
	});
	const threads = holders.map((h, i): AnrThread => ({ name: `t${i}`, track: i, state: h === null ? 'Native' : 'Blocked', held: [], top: null, frames: [], victims: victims[i],
		...(h === null ? {} : { wants: { id: `0x${h}`, type: 'a.Lock', holder: h === 'gone' ? null : h, holder_tid: h === 'gone' ? 99 : undefined, named: true } }) }));
	return { pid: 1, at_ns: 0, facts: {}, verdict: '', end: '', cluster: '', main, culprit: null, main_frame: null, chain: [], cycles: [], threads, threads_left_out: 0 };
}

const named = (q: Picture) => q.boxes.map((b) => (b.kind === 'thread' ? `t${b.thread}` : b.kind));
const at = (q: Picture, name: string) => q.boxes[named(q).indexOf(name)];

test('nobody waits: nothing to draw', () => {
	assert.deepEqual(waitsOf(dump([null, null])), []);
	assert.deepEqual(waitsOf(dump([])), []);
});

test('a chain is one row, from main on the left to who holds it up', () => {
	const p = dump([1, 2, null, null]);
	const [w] = waitsOf(p);
	assert.deepEqual([w.threads, w.ring, w.deadlock], [[0, 1, 2], [2], false]);
	const q = pictureOf(p, w);
	assert.deepEqual([q.columns, q.rows, q.hidden], [3, 1, 0]);
	assert.deepEqual(['t0', 't1', 't2'].map((n) => [at(q, n).column, at(q, n).row]), [[0, 0], [1, 0], [2, 0]]);
	assert.deepEqual(q.arrows.map((a) => [q.boxes[a.from].thread, q.boxes[a.to].thread, a.ring]), [[1, 2, false], [0, 1, false]]);
});

test('a deadlock begins with main, and an arrow leads back', () => {
	const p = dump([null, 2, 3, 1, 2], 2);
	const [w] = waitsOf(p);
	assert.deepEqual([w.ring, w.deadlock, w.threads], [[2, 3, 1], true, [1, 2, 3, 4]]);
	const q = pictureOf(p, w);
	assert.deepEqual(q.arrows.filter((a) => a.ring).map((a) => [q.boxes[a.from].thread, q.boxes[a.to].thread]), [[2, 3], [3, 1], [1, 2]]);
	assert.ok(q.boxes.filter((b) => b.ring).every((b) => b.column === 1), 'one below the other');
	assert.deepEqual([at(q, 't4').column, at(q, 't4').ring], [0, false]);
});

test('a thread that waits for itself is a ring of one', () => {
	const p = dump([0]);
	const [w] = waitsOf(p);
	assert.deepEqual([w.ring, w.deadlock], [[0], true]);
	assert.deepEqual(pictureOf(p, w).arrows.map((a) => [a.from, a.to]), [[0, 0]]);
});

test('a holder that the dump does not have is an end of its own', () => {
	const p = dump(['gone', 'gone', 0]);
	const [w, ...rest] = waitsOf(p);
	assert.equal(rest.length, 0);
	assert.deepEqual([w.ring, w.gone!.holder_tid], [[], 99]);
	assert.deepEqual(named(pictureOf(p, w)).sort(), ['gone', 't0', 't1', 't2']);
});

test('the wait of main comes first, then deadlocks, then the largest', () => {
	const p = dump([null, 2, 1, 0, 6, 6, null, 6], 3);
	assert.deepEqual(waitsOf(p).map((w) => w.threads), [[0, 3], [1, 2], [4, 5, 6, 7]]);
});

test('500 threads on one lock: main is drawn, the rest is told', () => {
	const p = dump([...new Array(499).fill(499), null], 400);
	const q = pictureOf(p, waitsOf(p)[0]);
	assert.ok(q.boxes.length <= 48, `${q.boxes.length} boxes`);
	assert.ok(named(q).includes('t400'));
	const more = q.boxes.find((b) => b.kind === 'more')!;
	assert.equal(more.more + q.boxes.filter((b) => b.kind === 'thread').length, 500);
	assert.equal(q.hidden, more.more);
});

test('a ring of 500 and a chain of 5,000 stay small and keep their ends', () => {
	const ring = dump(Array.from({ length: 500 }, (_, i) => (i + 1) % 500), 7);
	const q = pictureOf(ring, waitsOf(ring)[0]);
	assert.deepEqual([q.boxes.length, q.hidden, q.boxes[0].thread], [12, 489, 7]);
	const chain = dump([...Array.from({ length: 4999 }, (_, i) => i + 1), null]);
	chain.threads.forEach((t, i) => (t.victims = i));
	const c = pictureOf(chain, waitsOf(chain)[0]);
	assert.ok(c.boxes.length <= 49 && c.boxes.some((b) => b.thread === 4999));
	assert.equal(c.hidden + c.boxes.filter((b) => b.kind === 'thread').length, 5000);
});

test('no two boxes lie on the same place', () => {
	const holders = Array.from({ length: 300 }, (_, i) => (i === 0 ? null : Math.floor((i * 7919) % i)));
	const p = dump(holders, 250);
	const q = pictureOf(p, waitsOf(p)[0]);
	const places = q.boxes.map((b) => `${b.column} ${b.row}`);
	assert.equal(new Set(places).size, places.length);
	assert.ok(q.boxes.every((b) => b.row >= 0 && b.row < q.rows && b.column >= 0 && b.column < q.columns));
});

test('folded, a chain is one column from main down to who holds it up', () => {
	const q = pictureOf(dump([1, 2, null]), waitsOf(dump([1, 2, null]))[0]);
	const f = folded(q);
	assert.deepEqual(['t0', 't1', 't2'].map((n) => f[named(q).indexOf(n)]), [0, 1, 2].map((row) => ({ row, level: 0 })));
});

test('folded, several that wait for one are indented above it, each row has one box', () => {
	const p = dump([3, 3, 0, null, 3]);
	const q = pictureOf(p, waitsOf(p)[0]);
	const f = folded(q);
	const of = (n: string) => f[named(q).indexOf(n)];
	assert.deepEqual([of('t2'), of('t0'), of('t3')], [{ row: 0, level: 1 }, { row: 1, level: 1 }, { row: 4, level: 0 }], 'main first, with its own waiter');
	assert.deepEqual(f.map((x) => x.row).sort(), [0, 1, 2, 3, 4]);
	for (const a of q.arrows) assert.ok(f[a.from].row < f[a.to].row, 'arrows lead down');
});

test('folded, those that wait for a deadlock are indented beside its arrows', () => {
	const p = dump([1, 2, 0, 1]);
	const q = pictureOf(p, waitsOf(p)[0]);
	const f = folded(q);
	assert.deepEqual(q.boxes.map((b, i) => [b.thread, f[i].level, f[i].row]).sort((a, b) => a[2] - b[2]), [[0, 0, 0], [3, 1, 1], [1, 0, 2], [2, 0, 3]]);
});
