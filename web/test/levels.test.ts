import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadLevel, Passing, persist, plan, SLICES_MAX, type Chunk } from '../src/levels';
import { chunk } from './chunk';

const c = (n: number, level: number, slices: number): Chunk => ({ chunk: n, level, start_ns: 0, slices });
const shape = (chunks: Chunk[]) => plan(chunks).map((l) => l.map((x) => x.chunk));

test('one level is loaded as it is, of several a coarse one first', () => {
	assert.deepEqual(shape([]), []);
	assert.deepEqual(shape([c(0, 0, 10), c(1, 0, 10)]), [[0, 1]]);
	assert.deepEqual(shape([c(0, 0, 100), c(1, 0, 100), c(2, 1, 20), c(3, 2, 5)]), [[3], [0, 1]]);
});

test('what is too much is not loaded: the finest level that fits is the last', () => {
	assert.deepEqual(shape([c(0, 0, SLICES_MAX), c(1, 1, 9)]), [[1], [0]]);
	assert.deepEqual(shape([c(0, 0, SLICES_MAX + 1), c(1, 1, 9), c(2, 2, 3)]), [[2], [1]]);
	assert.deepEqual(shape([c(0, 0, SLICES_MAX + 1), c(1, 2, 9)]), [[1]], 'a level may be missing');
	assert.deepEqual(shape([c(0, 0, SLICES_MAX + 2), c(1, 1, SLICES_MAX + 1)]), [[1]], 'at least the coarsest');
});

const one = chunk(1, 0, [[], [0], [0], [5], [], [2], [], []]);
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
	assert.deepEqual(got.map((s) => s.method[0]), [2, 2]);
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
	const wait = persist(() => Promise.reject(new Passing('busy')), waiting.signal, 100000);
	setTimeout(() => waiting.abort(), 5);
	await assert.rejects(wait, { name: 'AbortError' });
});
