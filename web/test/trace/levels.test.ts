import assert from 'node:assert/strict';
import { test } from 'node:test';
import { levelsOf, loadLevel, partFor, Passing, persist, plan, WHOLE_MAX, type Chunk } from '../../src/trace/worker/levels';
import { toRows } from '../../src/trace/worker/rows';
import { chunk } from './chunk';

const c = (n: number, level: number, slices: number): Chunk => ({ chunk: n, level, start_ns: 0, slices });
const shape = (chunks: Chunk[], room?: number) => plan(chunks, room).whole.map((l) => l.map((x) => x.chunk));

test('one level is loaded as it is, of several a coarse one first', () => {
	assert.deepEqual(shape([]), []);
	assert.deepEqual(shape([c(0, 0, 10), c(1, 0, 10)]), [[0, 1]]);
	assert.deepEqual(shape([c(0, 0, 100), c(1, 0, 100), c(2, 1, 20), c(3, 2, 5)]), [[3], [0, 1]]);
});

test('where every call is too much, the coarsest level is there and the rest comes by part', () => {
	assert.deepEqual(shape([c(0, 0, WHOLE_MAX), c(1, 1, 9)]), [[1], [0]]);
	assert.deepEqual(shape([c(0, 0, WHOLE_MAX + 1), c(1, 1, 9), c(2, 2, 3)]), [[2]]);
	assert.equal(plan([c(0, 0, WHOLE_MAX + 1), c(1, 1, 9)]).parts, true);
	assert.equal(plan([c(0, 0, WHOLE_MAX), c(1, 1, 9)]).parts, false);
	assert.deepEqual(shape([c(0, 0, 50), c(1, 1, 9)], 49), [[1]], 'others have the room');
	assert.deepEqual(shape([c(0, 0, WHOLE_MAX + 1)]), [[0]], 'at least the coarsest');
});

test('a part is the finest level of which the view is few enough', () => {
	const at = (n: number, level: number, slices: number, start_ns: number): Chunk => ({ chunk: n, level, slices, start_ns });
	const fine = Array.from({ length: 100 }, (_, i) => at(i, 0, 65536, i * 1000));
	const middle = Array.from({ length: 4 }, (_, i) => at(200 + i, 1, 65536, i * 25000));
	const levels = levelsOf([...fine, ...middle, at(300, 2, 4000, 0)]);
	const ids = (from: number, to: number) => partFor(levels, from, to)?.chunks.map((x) => x.chunk);
	assert.deepEqual(ids(50_100, 50_200), [50], 'inside one chunk');
	assert.deepEqual(ids(50_000, 52_000), [49, 50, 51, 52], 'with as much around it');
	assert.deepEqual(partFor(levels, 50_100, 50_200), { level: 0, chunks: [fine[50]], from: 50_000, to: 51_000 });
	assert.deepEqual(ids(0, 8_000), [0, 1, 2, 3, 4, 5, 6, 7], 'only the view, where its surroundings are too much');
	assert.deepEqual(ids(0, 100_000), [200, 201, 202, 203], 'a coarser level');
	assert.equal(partFor(levels, 99_900, 99_950)?.to, Infinity);
	assert.equal(partFor(levelsOf([...fine, at(300, 2, 4000, 0)]), 0, 100_000), null, 'the coarsest is there anyway');
});

const one = chunk(1, 0, [[], [], [0, 2], [5], [], [0], [], []]);
const answer = () => new Response(new Uint8Array(one));

test('a chunk that fails in passing is asked for again', async () => {
	const asked: string[] = [];
	const fetch = async (path: string) => {
		asked.push(path);
		const again = asked.filter((p) => p === '/1').length;
		if (path === '/1' && again === 1) throw new Passing('busy');
		if (path === '/1' && again === 2) return { arrayBuffer: () => Promise.reject(new TypeError('broken off')) } as Response;
		return answer();
	};
	const steps: number[] = [];
	const got = await loadLevel([c(0, 0, 1), c(1, 0, 1)], (n) => `/${n}`, fetch, new AbortController().signal, (n) => steps.push(n), 1);
	assert.deepEqual((await Promise.all(got.map((p) => toRows([p])))).map((r) => r.method[0]), [2, 2]);
	assert.deepEqual(asked.sort(), ['/0', '/1', '/1', '/1']);
	assert.deepEqual(steps, [1, 2]);
});

test('after four times it is told, and what will not pass is told at once', async () => {
	let asked = 0;
	const ask = (why: Error) => persist(() => { asked++; return Promise.reject(why); }, new AbortController().signal, 1);
	await assert.rejects(ask(new Passing('busy')), /busy/);
	assert.equal(asked, 4);
	await assert.rejects(ask(new Error('gone')), /gone/);
	assert.equal(asked, 5);
});

test('an aborted load asks for nothing more', async () => {
	const abort = new AbortController();
	let asked = 0;
	const fetch = async () => {
		if (++asked === 6) abort.abort();
		return answer();
	};
	const many = Array.from({ length: 50 }, (_, i) => c(i, 0, 1));
	await assert.rejects(loadLevel(many, String, fetch, abort.signal, () => {}, 1), { name: 'AbortError' });
	assert.ok(asked < 13, `${asked} asked`);
	const waiting = new AbortController();
	const wait = persist(() => {
		setImmediate(() => waiting.abort()); // during the pause that follows
		return Promise.reject(new Passing('busy'));
	}, waiting.signal, 100000);
	await assert.rejects(wait, { name: 'AbortError' });
});
