/*
 * resume.test.mjs - uploads over bad networks: tus 1.0.0, by hand and by the public client.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import * as tus from 'tus-js-client';

import { sampleTrace } from '../make.mjs';
import { freePort, startServer, until } from '../server.mjs';

const TYPE = 'application/offset+octet-stream';
const base64 = (text) => Buffer.from(text).toString('base64');
const metadata = (o) => Object.entries(o).map(([k, v]) => `${k} ${base64(v)}`).join(',');
const left = (s) => fs.readdirSync(path.join(s.data, 'uploads'));

/* One request of the protocol. */
const ask = (s, method, target, headers = {}, body, key = s.ingest) =>
	s.ask(method, target, { key, body, headers: { 'Tus-Resumable': '1.0.0', ...headers } });

async function begin(s, bytes, headers = {}, body) {
	const answer = await ask(s, 'POST', '/api/v1/uploads', { 'Upload-Length': String(bytes.length), ...headers }, body);
	assert.equal(answer.status, 201, answer.text);
	return answer.headers.get('location');
}

const patch = (s, at, offset, body, headers = {}, key) =>
	ask(s, 'PATCH', at, { 'Content-Type': TYPE, 'Upload-Offset': String(offset), ...headers }, body, key);

async function offsetOf(s, at) {
	const answer = await ask(s, 'HEAD', at);
	assert.equal(answer.status, 200);
	return { offset: Number(answer.headers.get('upload-offset')), trace: answer.headers.get('tracewell-trace'), headers: answer.headers };
}

test('pieces become a trace like any other', async (t) => {
	const s = await startServer(t);
	const bytes = sampleTrace(50, 1);
	const at = await begin(s, bytes, { 'Upload-Metadata': metadata({ build_id: 'b7', scenario: 'cold_start', labels: '{"lane":"7"}', filename: 'x' }) });
	for (let offset = 0; offset < bytes.length; offset += 1000) {
		assert.deepEqual((await offsetOf(s, at)).offset, offset);
		const answer = await patch(s, at, offset, bytes.subarray(offset, offset + 1000));
		assert.equal(answer.status, 204, answer.text);
		assert.equal(answer.headers.get('upload-offset'), String(Math.min(offset + 1000, bytes.length)));
		assert.ok(Date.parse(answer.headers.get('upload-expires')) > Date.now());
	}
	const { trace, headers } = await offsetOf(s, at);
	assert.equal(headers.get('upload-length'), String(bytes.length));
	assert.equal(headers.get('cache-control'), 'no-store');
	const got = await s.decoded(trace);
	assert.equal(got.state, 'ready', JSON.stringify(got.error));
	assert.deepEqual([got.meta.build_id, got.meta.scenario, got.meta.labels], ['b7', 'cold_start', { lane: '7' }]);
	const raw = await s.get(`/api/v1/traces/${trace}/raw/trace`);
	assert.deepEqual(raw.bytes, bytes);
	assert.equal((await patch(s, at, bytes.length, 'more')).status, 403);
	assert.equal((await patch(s, at, bytes.length, '')).status, 204, 'asked again, answered again');
	assert.equal(await s.total(), 1);
	assert.equal(left(s).filter((f) => f.endsWith('.part')).length, 0);
});

test('with the first piece, and with an Idempotency-Key', async (t) => {
	const s = await startServer(t);
	const bytes = sampleTrace(5, 2);
	const key = { 'Idempotency-Key': 'once' };
	const answer = await ask(s, 'POST', '/api/v1/uploads', { 'Upload-Length': String(bytes.length), 'Content-Type': TYPE, ...key }, bytes);
	assert.equal(answer.status, 201, answer.text);
	assert.equal(answer.headers.get('upload-offset'), String(bytes.length));
	const plain = await s.post('/api/v1/traces', bytes, { headers: key });
	assert.equal(plain.status, 200);
	assert.equal(plain.json.id, answer.headers.get('tracewell-trace'));
	const other = await begin(s, sampleTrace(5, 3), key);
	assert.equal((await patch(s, other, 0, sampleTrace(5, 3))).status, 409, 'the same key with other content');
	assert.equal((await ask(s, 'HEAD', other)).status, 404, 'refused for good');
	assert.equal(await s.total(), 1);
});

test('supported extensions are listed, others are refused', async (t) => {
	const s = await startServer(t, { args: ['--max-body', '64K'] });
	const reported = await ask(s, 'OPTIONS', '/api/v1/uploads', {}, undefined, null);
	assert.equal(reported.status, 204);
	const { headers } = reported;
	assert.equal(headers.get('tus-version'), '1.0.0');
	assert.equal(headers.get('tus-extension'), 'creation,creation-with-upload,checksum,expiration,termination');
	assert.equal(headers.get('tus-checksum-algorithm'), 'sha1,sha256');
	assert.equal(headers.get('tus-max-size'), '65536');
	const create = (more, key) => ask(s, 'POST', '/api/v1/uploads', { 'Upload-Length': '10', ...more }, undefined, key);
	for (const [status, more] of [[412, { 'Tus-Resumable': '0.2.2' }], [400, { 'Upload-Length': 'ten' }], [400, { 'Upload-Length': '-1' }],
		[400, { 'Upload-Length': '0' }], [413, { 'Upload-Length': '65537' }], [413, { 'Upload-Length': '9223372036854775807' }],
		[400, { 'Upload-Defer-Length': '1' }], [400, { 'Upload-Metadata': 'build_id !!!' }],
		[400, { 'Upload-Metadata': metadata({ bild_id: 'typo' }) }], [400, { 'Upload-Metadata': metadata({ build_id: 'a\0b' }) }],
		[400, { 'Upload-Metadata': metadata({ format: 'nonsense' }) }], [400, { 'Idempotency-Key': 'x'.repeat(256) }]]) {
		const answer = await create(more);
		assert.equal(answer.status, status, JSON.stringify(more) + answer.text);
		assert.ok(answer.json.error.message);
		assert.equal(answer.headers.get('tus-resumable'), '1.0.0');
	}
	assert.match((await create({ 'Upload-Metadata': metadata({ bild_id: 'typo' }) })).text, /unknown metadata field bild_id; did you mean build_id\?/);
	assert.match((await create({ 'Upload-Metadata': 'build_id !!!' })).text, /Upload-Metadata .* base64/);
	assert.equal((await s.ask('POST', '/api/v1/uploads', { key: s.ingest, headers: { 'Upload-Length': '1' } })).status, 412);
	assert.equal((await create({}, null)).status, 401);
	assert.equal((await create({}, s.read)).status, 403);
	const at = await begin(s, Buffer.alloc(10));
	const other = s.key('ingest', 'another');
	for (const method of ['HEAD', 'DELETE'])
		assert.equal((await ask(s, method, at, {}, undefined, other)).status, 404, `${method} by another project`);
	assert.equal((await patch(s, at, 0, 'x', {}, other)).status, 404, 'PATCH by another project');
	assert.equal((await patch(s, at, 1, 'x')).status, 409);
	assert.equal((await patch(s, at, 0, 'x'.repeat(11))).status, 413);
	assert.equal((await patch(s, at, 0, 'x', { 'Content-Type': 'text/plain' })).status, 415);
	assert.equal((await patch(s, at, 0, 'x', { 'Upload-Checksum': 'md5 AAAA' })).status, 400);
	assert.equal((await offsetOf(s, at)).offset, 0);
	assert.equal((await ask(s, 'DELETE', at)).status, 204);
	assert.equal((await ask(s, 'HEAD', at)).status, 404);
	assert.deepEqual(left(s), []);
});

test('an upload of an unknown format is refused when complete, and deleted', async (t) => {
	const s = await startServer(t);
	const bytes = Buffer.alloc(2000, 'no trace at all ');
	const at = await begin(s, bytes);
	const answer = await patch(s, at, 0, bytes);
	assert.ok(answer.status === 415 || answer.status === 422, answer.text);
	assert.equal((await ask(s, 'HEAD', at)).status, 404);
	assert.deepEqual([left(s), s.spool(), await s.total()], [[], [], 0]);
});

test('a piece with a checksum counts completely or not at all', async (t) => {
	const s = await startServer(t);
	const bytes = sampleTrace(50, 4);
	const at = await begin(s, bytes);
	const sum = (name, b) => ({ 'Upload-Checksum': `${name} ${createHash(name).update(b).digest('base64')}` });
	const half = bytes.subarray(0, 1500);
	assert.equal((await patch(s, at, 0, half, sum('sha1', half))).status, 204);
	const rest = bytes.subarray(1500);
	const wrong = await patch(s, at, 1500, rest, sum('sha256', half));
	assert.equal(wrong.status, 460, wrong.text);
	assert.equal((await offsetOf(s, at)).offset, 1500);
	assert.equal((await patch(s, at, 1500, rest, sum('sha256', rest))).status, 204);
	assert.equal((await s.decoded((await offsetOf(s, at)).trace)).state, 'ready');
});

/* A file of an upload, aged as if long after its last byte. */
function age(file) {
	if (file.endsWith('.json')) fs.writeFileSync(file, JSON.stringify({ ...JSON.parse(fs.readFileSync(file, 'utf8')), expires_ms: 1 }));
	fs.utimesSync(file, 1, 1);
}

test('unfinished uploads are limited, counted and deleted', async (t) => {
	const s = await startServer(t, { args: ['--max-open-uploads', '2', '--max-open-bytes', '5000', '--upload-expiry', '3600'] });
	const create = (n) => ask(s, 'POST', '/api/v1/uploads', { 'Upload-Length': String(n) });
	const first = await begin(s, Buffer.alloc(2000));
	assert.equal((await patch(s, first, 0, 'x'.repeat(700))).status, 204);
	const tooMuch = await create(3001);
	assert.equal(tooMuch.status, 429);
	assert.ok(tooMuch.headers.get('retry-after'));
	assert.equal((await create(3000)).status, 201);
	assert.equal((await create(1)).status, 429);
	const other = s.key('ingest', 'another');
	assert.equal((await ask(s, 'POST', '/api/v1/uploads', { 'Upload-Length': '10' }, undefined, other)).status, 201);
	const { text } = await s.get('/metrics');
	assert.match(text, /^tracewell_resumable_open 3$/m);
	assert.match(text, /^tracewell_resumable_bytes 700$/m);
	await s.stop();
	for (const name of left(s)) age(path.join(s.data, 'uploads', name));
	await s.start();
	await until(() => (left(s).length === 0 ? true : undefined), 'nothing left');
	assert.match((await s.get('/metrics')).text, /^tracewell_resumable_total\{step="expired"\} 3$/m);
	assert.equal((await ask(s, 'HEAD', first)).status, 404);
});

/* The first n bytes of a PATCH, over a socket that is then left to itself. */
async function sendSome(s, at, offset, bytes, n) {
	const socket = await s.socket(`PATCH ${at} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${s.ingest}\r\nTus-Resumable: 1.0.0\r\n` +
		`Content-Type: ${TYPE}\r\nUpload-Offset: ${offset}\r\nContent-Length: ${bytes.length - offset}\r\n\r\n`);
	socket.write(bytes.subarray(offset, offset + n));
	return socket;
}

test('a client that cannot send PATCH names it in a POST', async (t) => {
	const s = await startServer(t);
	const bytes = sampleTrace(20, 3);
	const at = await begin(s, bytes);
	const by = (method, headers = {}, body) => ask(s, 'POST', at, { 'X-HTTP-Method-Override': method, ...headers }, body);
	const half = bytes.length >> 1;
	assert.equal((await by('PATCH', { 'Content-Type': TYPE, 'Upload-Offset': '0' }, bytes.subarray(0, half))).status, 204);
	const head = await by('HEAD');
	assert.deepEqual([head.status, head.headers.get('upload-offset')], [200, String(half)]);
	assert.equal((await by('PATCH', { 'Content-Type': TYPE, 'Upload-Offset': String(half) }, bytes.subarray(half))).status, 204);
	assert.equal((await s.decoded((await offsetOf(s, at)).trace)).state, 'ready');
	const other = await begin(s, bytes);
	assert.equal((await ask(s, 'POST', other, { 'X-HTTP-Method-Override': 'DELETE' })).status, 204);
	assert.equal((await ask(s, 'HEAD', other)).status, 404);
	assert.equal((await ask(s, 'POST', at, { 'X-HTTP-Method-Override': 'PUT' })).status, 405);
	assert.equal((await s.ask('POST', '/api/v1/traces/01ARZ3NDEKTSV4RRFFQ69G5FAV', { key: s.write, headers: { 'X-HTTP-Method-Override': 'DELETE' } })).status, 405, 'nowhere else');
});

test('a server killed at any byte continues there', async (t) => {
	const s = await startServer(t);
	const bytes = sampleTrace(200, 5);
	const at = await begin(s, bytes, { 'Upload-Metadata': metadata({ build_id: 'killed' }) });
	let offset = 0;
	for (const n of [1, 63, 1, 700, 2048, 0, 1500]) {
		const socket = await sendSome(s, at, offset, bytes, n);
		await until(async () => ((await offsetOf(s, at)).offset === offset + n ? true : undefined), `${n} bytes there`);
		assert.equal((await patch(s, at, offset + n, 'x')).status, 423, 'one at a time');
		await s.stop('SIGKILL');
		socket.destroy();
		await s.start();
		offset += n;
		assert.equal((await offsetOf(s, at)).offset, offset);
	}
	assert.equal((await patch(s, at, offset, bytes.subarray(offset))).status, 204);
	const { trace } = await offsetOf(s, at);
	assert.equal((await s.decoded(trace)).state, 'ready');
	assert.deepEqual((await s.get(`/api/v1/traces/${trace}/raw/trace`)).bytes, bytes);
	await s.stop('SIGKILL');
	await s.start();
	assert.equal((await offsetOf(s, at)).trace, trace, 'known after the next kill');
});

for (const step of ['piece_written', 'spool_written', 'blob_renamed', 'log_synced', 'row_committed'])
	test(`killed at ${step}, an upload is one trace`, async (t) => {
		const s = await startServer(t, { env: { TRACEWELL_CRASH_AT: step } });
		const bytes = sampleTrace(20, 6);
		const at = await begin(s, bytes);
		await patch(s, at, 0, bytes).catch(() => null);
		assert.equal((await s.ended).signal, 'SIGKILL');
		fs.writeFileSync(path.join(s.data, 'uploads', 'stray.part'), 'x');
		s.env = {};
		await s.start();
		assert.ok(!left(s).includes('stray.part'), 'what belongs to none is removed');
		const { offset, trace } = await offsetOf(s, at);
		assert.equal(offset, bytes.length);
		assert.equal((await s.decoded(trace)).state, 'ready');
		assert.equal(await s.total(), 1);
	});

/* The public client; it resumes by itself when the server is back. */
for (const overridePatchMethod of [false, true]) test(`the public client, the server killed on the way${overridePatchMethod ? ', by POST alone' : ''}`, async (t) => {
	const s = await startServer(t, { args: ['--listen', `127.0.0.1:${await freePort()}`] });
	const bytes = sampleTrace(20000, 7);
	let kills = 0;
	const done = new Promise((resolve, reject) => {
		const upload = new tus.Upload(bytes, {
			endpoint: `${s.url}/api/v1/uploads`,
			headers: { Authorization: `Bearer ${s.ingest}` },
			metadata: { build_id: 'client', scenario: 'warm_start', filename: 'trace.bin' },
			chunkSize: 100000,
			overridePatchMethod,
			retryDelays: Array(100).fill(200),
			onAfterResponse: (_, res) => {
				const id = res.getHeader('Tracewell-Trace');
				if (id) resolve(id);
			},
			onProgress: (sent) => {
				if (sent < 250000 * (kills + 1) || kills === 2) return;
				kills++;
				s.stop('SIGKILL').then(() => s.start()).catch(reject);
			},
			onError: reject,
		});
		upload.start();
	});
	const id = await done;
	assert.equal(kills, 2);
	const got = await s.decoded(id);
	assert.equal(got.state, 'ready', JSON.stringify(got.error));
	assert.deepEqual([got.meta.build_id, got.meta.scenario], ['client', 'warm_start']);
	assert.deepEqual((await s.get(`/api/v1/traces/${id}/raw/trace`)).bytes, bytes);
	assert.equal(await s.total(), 1);
});
