// What the server's encoder makes (tests/unit/decoder_trace/test_columns.c holds it to these bytes) is read here.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Payload } from '../../src/trace/worker/columns';
import { toRows } from '../../src/trace/worker/rows';

// from dist-test/, wherever the tests are started
const ROOT = new URL('../../', import.meta.url);
const FOLDER = new URL('tests/golden/columns/', ROOT);
const read = (name: string, base = FOLDER) => readFileSync(new URL(name, base), 'utf8');

/** Two digits a byte, one or two spaces between; the rest of a line is a comment. */
function bytesOf(hex: string): Uint8Array {
	const lines = hex.split('\n').map((l) => l.split(/ {3,}/)[0]);
	return Uint8Array.from(lines.join(' ').split(/ +/).filter(Boolean), (b) => {
		assert.match(b, /^[0-9a-f]{2}$/);
		return parseInt(b, 16);
	});
}

async function check(bytes: Uint8Array, text: string): Promise<number> {
	const lines = text.split('\n').filter(Boolean).map((l) => l.split(' '));
	const start = Number(lines.find((l) => l[0] === 'start')![1]);
	const calls = lines.filter((l) => /^\d+$/.test(l[0])).map((l) => l.map(Number));
	const r = await toRows([new Payload(bytes, start)]);
	assert.equal(r.n, calls.length);
	for (let row = 0; row < r.depth; row++) {
		const got = Array.from({ length: r.first[row + 1] - r.first[row] }, (_, i) => r.first[row] + i)
			.map((k) => [row, r.start(k), r.end(k) - r.start(k), r.method[k], r.merged ? r.merged[k] : 0]);
		assert.deepEqual(got, calls.filter((c) => c[0] === row).map(([depth, at, dur, method, , merged]) => [depth, at, dur, method, merged]), `row ${row}`);
	}
	return calls.length;
}

test('chunks of the server decode to the calls they were made of', async () => {
	const names = readdirSync(FOLDER).filter((f) => f.endsWith('.txt')).map((f) => f.slice(0, -4));
	assert.ok(names.length >= 4);
	for (const name of names)
		assert.ok((await check(bytesOf(read(`${name}.hex`)), read(`${name}.txt`))) > 4, name);
});

test('the example of schema/columns.md decodes as it says', async () => {
	const example = /```\n(54 57 43 32[^`]*)\n```/.exec(read('schema/columns.md', ROOT));
	assert.ok(example);
	await check(bytesOf(example[1]), read('example.txt'));
});
