/*
 * quota.test.mjs - quotas of keys and devices: 429 beyond them, the remainder in headers,
 * counted, and remembered by the next server.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { sampleTrace } from '../make.mjs';
import { sleep, startServer, until } from '../server.mjs';

const TUS = { 'Tus-Resumable': '1.0.0' };
const base64 = (text) => Buffer.from(text).toString('base64');

/* The draft's fields: { "key-requests": { r: 5, t: 10 } }. */
const fields = (text) => Object.fromEntries((text ?? '').split(', ').filter(Boolean).map((item) => {
	const [name, ...pairs] = item.split(';');
	return [name.slice(1, -1), Object.fromEntries(pairs.map((p) => p.split('=')))];
}));
const left = (answer) => fields(answer.headers.get('ratelimit'));
const counted = async (s, limit) => Number(new RegExp(`^tracewell_quota_refused_total\\{limit="${limit}"\\} (\\d+)$`, 'm')
	.exec((await s.get('/metrics', { key: null })).text)[1]);

function isRefused(answer, within) {
	assert.equal(answer.status, 429, answer.text);
	assert.equal(answer.json.error.status, 'too_many_requests');
	assert.match(answer.json.error.message, /retry in \d+ s/);
	const wait = Number(answer.headers.get('retry-after'));
	assert.ok(wait >= 1 && wait <= within, `Retry-After: ${wait}`);
}

test('requests of a key', async (t) => {
	const s = await startServer(t, { args: ['--key-requests', '5'] });
	const one = s.ingest;
	const two = s.key('ingest');
	const sent = [];
	for (let i = 0; i < 5; i++) sent.push(await s.post('/api/v1/traces', sampleTrace(3, i + 1)));
	assert.deepEqual(sent.map((a) => a.status), Array(5).fill(202));
	assert.deepEqual(sent.map((a) => Number(left(a)['key-requests'].r)), [4, 3, 2, 1, 0]);
	assert.deepEqual(fields(sent[0].headers.get('ratelimit-policy'))['key-requests'], { q: '5', w: '60' });
	isRefused(await s.post('/api/v1/traces', sampleTrace(3, 9)), 24);
	const asked = await s.get(`/api/v1/traces/${sent[0].json.id}`, { key: one });
	isRefused(asked, 24);
	assert.equal(left(asked)['key-requests'].r, '0');
	assert.equal((await s.post('/api/v1/traces', sampleTrace(3, 9), { key: two })).status, 202, 'another key');
	assert.equal((await s.get('/healthz', { key: one })).status, 200, 'what needs no key');
	assert.equal(await counted(s, 'key-requests'), 2);
	assert.match((await s.get('/metrics', { key: null })).text, /^tracewell_limits_hit_total\{limit="rate"\} 2$/m);
	assert.match((await s.get('/metrics', { key: null })).text, /^tracewell_quota_tracked\{of="key"\} \d+$/m);
});

test('Retry-After leaves space for HEAD and PATCH, so that a resumed upload continues', async (t) => {
	const s = await startServer(t, { args: ['--key-requests', '40'] });
	const bytes = sampleTrace(20);
	const ask = (method, target, headers = {}, body = undefined) => s.ask(method, target, { key: s.ingest, headers: { ...TUS, ...headers }, body });
	const at = (await ask('POST', '/api/v1/uploads', { 'Upload-Length': String(bytes.length) })).headers.get('location').replace(/^https?:\/\/[^/]+/, '');
	let refused;
	while ((refused = await ask('HEAD', at)).status !== 429);
	await sleep(Number(refused.headers.get('retry-after')) * 1000);
	assert.equal((await ask('HEAD', at)).headers.get('upload-offset'), '0');
	const sent = await ask('PATCH', at, { 'Upload-Offset': '0', 'Content-Type': 'application/offset+octet-stream' }, bytes);
	assert.equal(sent.status, 204, sent.text);
});

test('bytes of a key', async (t) => {
	const s = await startServer(t, { args: ['--key-bytes', '6000'] });
	const body = sampleTrace(50);
	assert.ok(body.length * 2 < 6000 && body.length * 3 > 6000, `${body.length} bytes`);
	const first = await s.post('/api/v1/traces', body);
	assert.equal(Number(left(first)['key-bytes'].r), 6000 - body.length);
	assert.equal((await s.post('/api/v1/traces', sampleTrace(50, 2))).status, 202);
	isRefused(await s.post('/api/v1/traces', sampleTrace(50, 3)), 86400);
	assert.equal((await s.post('/api/v1/traces', 'x')).status, 415, 'what is left is left');
	/* a body without a declared length counts as it arrives */
	const s2 = s.key('ingest');
	const stream = new ReadableStream({ start: (c) => (c.enqueue(body), c.close()) });
	const chunked = await s.post('/api/v1/traces', stream, { key: s2 });
	assert.equal(chunked.status, 202, chunked.text);
	const after = await s.post('/api/v1/traces', 'x', { key: s2 });
	assert.equal(Number(left(after)['key-bytes'].r), 6000 - body.length - 1);
	assert.equal(await counted(s, 'key-bytes'), 1);
});

test('a truncated body counts by its received bytes', async (t) => {
	const s = await startServer(t, { args: ['--key-bytes', '100000'] });
	const socket = await s.socket(
		`POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${s.ingest}\r\nContent-Length: 90000\r\n\r\n`);
	socket.end('x'.repeat(1000));
	await socket.answer;
	const after = await s.post('/api/v1/traces', 'y');
	assert.ok(Number(left(after)['key-bytes'].r) >= 98999, after.headers.get('ratelimit'));
});

test('a device, however it identifies itself', async (t) => {
	const s = await startServer(t, { args: ['--device-requests', '4'] });
	const query = { device: 'Pixel 9/abc' };
	const form = (device, n) => {
		const f = new FormData();
		f.append('trace', new Blob([sampleTrace(3, n)]));
		f.append('meta', JSON.stringify({ device }));
		return f;
	};
	const tus = (n) => {
		const bytes = sampleTrace(3, n);
		return s.ask('POST', '/api/v1/uploads', { key: s.ingest, body: bytes, headers: { ...TUS,
			'Upload-Length': String(bytes.length), 'Content-Type': 'application/offset+octet-stream',
			'Upload-Metadata': `device ${base64(query.device)}` } });
	};
	const first = await s.post('/api/v1/traces', sampleTrace(3, 1), { query });
	assert.equal(left(first)['device-requests'].r, '3');
	assert.equal((await s.post('/api/v1/traces', form(query.device, 2))).status, 202);
	assert.equal((await tus(3)).status, 201);
	const many = await Promise.all([4, 5, 6].map((n) => s.post('/api/v1/traces', form(query.device, n))));
	assert.deepEqual(many.map((a) => a.status).sort(), [202, 429, 429], 'one had room, at the same time');
	isRefused(many.find((a) => a.status === 429), 30);
	isRefused(await s.post('/api/v1/traces', sampleTrace(3, 7), { query }), 30);
	const refused = await tus(8);
	isRefused(refused, 30);
	assert.equal(await s.total(), 4);
	await until(() => (s.spool().length === 0 ? true : undefined), 'an empty spool');
	assert.equal((await s.post('/api/v1/traces', form('another', 9))).status, 202);
	assert.equal((await s.post('/api/v1/traces', sampleTrace(3, 10), { query, key: s.key('ingest', 'other') })).status, 202,
		'the same name in another project is another device');
	assert.equal((await s.post('/api/v1/traces', sampleTrace(3, 11))).status, 202, 'none is said');
	assert.ok(await counted(s, 'device-requests') >= 4);
});

test('sending the same again takes no bytes of the device', async (t) => {
	const s = await startServer(t, { args: ['--device-bytes', '20000'] });
	const body = sampleTrace(50);
	const send = () => s.post('/api/v1/traces', body, { query: { device: 'd' }, headers: { 'Idempotency-Key': 'one' } });
	assert.equal((await send()).status, 202);
	for (let i = 0; i < 10; i++) assert.equal((await send()).status, 200);
	const other = await s.post('/api/v1/traces', sampleTrace(50, 2), { query: { device: 'd' } });
	assert.equal(Number(left(other)['device-bytes'].r), 20000 - body.length - sampleTrace(50, 2).length);
});

test('a restart resets no daily quota, however the server ended', async (t) => {
	const s = await startServer(t, { args: ['--key-bytes', '6000', '--device-requests', '1'] });
	const body = sampleTrace(50);
	for (const n of [1, 2]) assert.equal((await s.post('/api/v1/traces', sampleTrace(50, n))).status, 202);
	assert.equal((await s.post('/api/v1/traces', sampleTrace(3, 3), { query: { device: 'd' } })).status, 202);
	await s.stop();
	await s.start();
	isRefused(await s.post('/api/v1/traces', body), 86400);
	isRefused(await s.post('/api/v1/traces', 'x', { query: { device: 'd' } }), 60);
	await s.stop('SIGKILL'); /* the counters stored at the previous start are still there */
	await s.start();
	isRefused(await s.post('/api/v1/traces', body), 86400);
	assert.ok(!s.log.includes('quota_not'), s.log);
});
