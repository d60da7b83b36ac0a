import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesOf } from '../../src/trace/worker/body';

const numbered = (n: number) => Uint8Array.from({ length: n }, (_, i) => (i * 7 + (i >> 8)) & 255);

/** An answer whose bytes come in pieces of their own sizes; breaks off before the last where `broken`. */
function answer(bytes: Uint8Array, sizes: number[], broken = false): Response {
	let at = 0;
	return new Response(new ReadableStream({
		type: 'bytes',
		pull(c) {
			const n = Math.min(sizes[at % sizes.length], bytes.length);
			if (broken && bytes.length <= n) return c.error(new TypeError('connection lost'));
			if (n > 0) c.enqueue(bytes.slice(0, n));
			bytes = bytes.subarray(n);
			at++;
			if (bytes.length > 0) return;
			c.close();
			c.byobRequest?.respond(0);
		},
	}));
}

test('an answer is read whole, however its bytes come and however many were expected', async () => {
	for (const n of [1, 65535, 65536, 65537, 300_000])
		for (const sizes of [[70_000], [1000, 3, 65536]])
			for (const expected of [0, 10, n, 2 * n])
				assert.deepEqual(await bytesOf(answer(numbered(n), sizes), expected), numbered(n), `${n} bytes, ${expected} expected`);
});

test('answers that are read at once do not mix', async () => {
	const all = [200_001, 90_000, 131_072].map((n) => ({ n, got: bytesOf(answer(numbered(n), [4099]), 1) }));
	for (const { n, got } of all) assert.deepEqual(await got, numbered(n));
});

test('an answer that breaks off is an error that passes', async () => {
	await assert.rejects(bytesOf(answer(numbered(5000), [1000], true), 5000), TypeError);
});

test('without such reading the browser gathers the bytes', async () => {
	const plain = { body: { getReader: () => { throw new TypeError('no byob'); } }, arrayBuffer: async () => numbered(9).buffer } as unknown as Response;
	assert.deepEqual(await bytesOf(plain, 1), numbered(9));
});
