/*
 * The column "refused" of deploy/guides/formats.md, for reports, issues, mappings and archives: every
 * reason for a refusal that it names is provoked, and the answer's words are held.  A reason that the
 * guide adds without a case here fails, and so does a case that it no longer names.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import zlib from 'node:zlib';
import { sampleMapping } from '../make.mjs';
import { root, startServer } from '../server.mjs';

const R8 = 'com.shop.Cart -> a.b:\n    void add() -> c\n';
const binary = Buffer.from(Array.from({ length: 9000 }, (_, i) => (i * 7919) & 255));

/* One stored or odd entry, followed by the directory's first bytes. */
function zip(bytes, { flags = 0, method = 0, name = 'rhea-atrace.bin' } = {}) {
	const head = Buffer.alloc(30);
	head.writeUInt32LE(0x04034b50, 0);
	head.writeUInt16LE(flags, 6);
	head.writeUInt16LE(method, 8);
	head.writeUInt32LE(bytes.length, 18);
	head.writeUInt32LE(bytes.length, 22);
	head.writeUInt16LE(name.length, 26);
	return Buffer.concat([head, Buffer.from(name), bytes, Buffer.from([0x50, 0x4b, 1, 2])]);
}

const golden = (format) => fs.readFileSync(path.join(root, 'tests/golden', format, 'garbage/input'));
const matrix = (stack) => `{"tag":"Trace_EvilMethod","detail":"NORMAL","cost":800,"stack":"${stack}"}`;

/* Beginning of the row: its words, the input, the expected message; `to` names another address. */
const rows = {
	'ANR reports:': [['no thread, waiting channel or reason in it', golden('anr'), /no readable thread, wait channel or reason/]],
	'ANR events of Measure': [['no stack in it', golden('anr_json'), /no readable stack/]],
	'zip or tar of a recording': [
		['encrypted zip', zip(Buffer.from('x'.repeat(99)), { flags: 1 }), /encrypted/],
		['other methods than deflate and stored', zip(Buffer.from('x'.repeat(99)), { method: 14 }), /neither deflate nor stored/],
		['no trace in it', zip(Buffer.from('nothing'), { name: 'a.txt' }), /none of the 1 files/],
	],
	'Matrix trace canary issues': [
		['over 64 MiB', zlib.gzipSync(matrix('0,1,1,800\\n'.repeat(7_000_000)), { level: 1 }), /more than 67108864 bytes/],
		['8 M values', matrix('0,1,1,800').replace('}', `,"more":[${'0,'.repeat(8_500_000)}0]}`), /more than 8388608 values/],
		['nothing with a tag or a stack', '[{"detail":"x"},{"stackKey":"1|"}]', /no Matrix issue/],
	],
	'`methodMapping.txt`': [
		['binary', binary, /binary|mapping/, 'methods'],
		['R8 mapping', R8, /retrace/, 'methods'],
		['no mapping line at all', 'one\ntwo\nthree\n', /line/, 'methods'],
	],
	'R8 or ProGuard `mapping.txt`': [
		['binary', binary, /binary/, 'retrace'],
		['method mapping', sampleMapping, /methods/, 'retrace'],
		['no class with a method', 'com.shop.Cart -> a.b:\n    int total -> c\n', /no class with a method/, 'retrace'],
	],
};

function refusedColumn(begin) {
	const guide = fs.readFileSync(path.join(root, 'deploy/guides/formats.md'), 'utf8');
	const line = guide.split('\n').find((l) => l.startsWith('| ' + begin));
	assert.ok(line, `deploy/guides/formats.md has no row that begins with ${begin}`);
	return line.replace(/ \|$/, '').split(' | ').at(-2);
}

/* The message of a refusal, immediately or after decoding. */
async function refusal(s, body, to) {
	const answer = to ? await s.put(`/api/v1/builds/b/${to}`, body) : await s.post('/api/v1/traces', body);
	if (answer.status > 202) return answer.json.error.message;
	assert.equal(to, undefined, 'the mapping was taken');
	const trace = await s.decoded(answer.json.id);
	assert.equal(trace.state, 'failed', 'it was decoded');
	return trace.error.message;
}

test('everything that deploy/guides/formats.md lists as refused is refused with a message', async (t) => {
	const s = await startServer(t);
	for (const [begin, cases] of Object.entries(rows))
		await t.test(begin, async () => {
			let rest = refusedColumn(begin);
			for (const [reason, body, words, to] of cases) {
				assert.ok(rest.includes(reason), `the guide does not say "${reason}"`);
				rest = rest.replace(reason, '');
				assert.match(await refusal(s, body, to), words, reason);
			}
			assert.match(rest, /^(, | or |and )*$/, 'the guide names a reason that is not tried');
		});
});
