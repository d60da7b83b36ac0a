// What the server's encoder makes (tests/unit/test_columns.c holds it to these bytes) is read here.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { decodeChunk } from '../src/columns';

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

function check(bytes: Uint8Array, text: string): number {
	const lines = text.split('\n').filter(Boolean).map((l) => l.split(' '));
	const start = Number(lines.find((l) => l[0] === 'start')![1]);
	const calls = lines.filter((l) => /^\d+$/.test(l[0])).map((l) => l.map(Number));
	const s = decodeChunk(bytes, start);
	assert.equal(s.n, calls.length);
	calls.forEach(([depth, at, dur, method, , merged], i) => {
		assert.deepEqual([s.depth[i], s.start[i], s.dur[i], s.method[i], s.merged ? s.merged[i] : 0],
			[depth, at, dur, method, merged], `call ${i}`);
	});
	return calls.length;
}

test('chunks of the server decode to the calls they were made of', () => {
	const names = readdirSync(FOLDER).filter((f) => f.endsWith('.txt')).map((f) => f.slice(0, -4));
	assert.ok(names.length >= 4);
	for (const name of names)
		assert.ok(check(bytesOf(read(`${name}.hex`)), read(`${name}.txt`)) > 4, name);
});

test('the example of schema/columns.md decodes as it says', () => {
	const example = /```\n(54 57 43 31[^`]*)\n```/.exec(read('schema/columns.md', ROOT));
	assert.ok(example);
	check(bytesOf(example[1]), read('example.txt'));
});
