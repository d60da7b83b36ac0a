/*
 * ingest.test.mjs - accepted and refused uploads; after a refusal no row and no file in the spool remains.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import zlib from 'node:zlib';

import { btrace, form, sampleMapping, sampleTrace, zstd } from '../make.mjs';
import { atEnd, newFolder, sleep, startServer, tracewell, until } from '../server.mjs';

const words = { 400: 'bad_request', 401: 'no_token', 403: 'denied', 404: 'not_found', 409: 'conflict', 413: 'too_large', 415: 'unsupported', 422: 'malformed', 507: 'disk_full' };

function isRefused(answer, status, message) {
	assert.equal(answer.status, status, answer.text);
	assert.deepEqual(Object.keys(answer.json.error), ['status', 'message', 'offset']);
	assert.equal(answer.json.error.status, words[status]);
	if (message) assert.match(answer.json.error.message, message);
}

async function leavesNothing(s, rows = 0) {
	assert.equal(await s.total(), rows);
	await until(() => (s.spool().length === 0 ? true : undefined), 'an empty spool', 5);
}

test('uploads that are taken', async (t) => {
	const s = await startServer(t);

	await t.test('plain, gzip, zstd and nested are the same trace', async () => {
		const plain = sampleTrace();
		const bodies = [plain, zlib.gzipSync(plain), zstd(plain), zlib.gzipSync(zstd(plain))];
		for (const body of bodies) {
			const trace = await s.trace(body, { query: { build_id: 'b1', scenario: 'cold_start' } });
			assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
			assert.equal(trace.summary.slices, 150);
			assert.equal(trace.summary.threads, 1);
			assert.equal(trace.meta.build_id, 'b1');
			assert.equal(trace.upload_bytes, body.length);
		}
	});

	await t.test('a form with metadata and a thread list', async () => {
		const meta = { app: 'com.example', version_code: 77, pid: 4000, labels: { cohort: 'x' }, scenario: 'page' };
		const { body, headers } = form(['meta', JSON.stringify(meta)], ['trace', sampleTrace()], ['threads', '4000,main\n']);
		const trace = await s.trace(body, { headers, query: { scenario: 'jank', device: 'Pixel' } });
		assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
		assert.equal(trace.meta.app, 'com.example');
		assert.equal(trace.meta.version_code, '77');
		assert.equal(trace.meta.scenario, 'page');
		assert.equal(trace.meta.device, 'Pixel');
		assert.deepEqual(trace.meta.labels, { cohort: 'x' });
		const { json } = await s.get(`/api/v1/traces/${trace.id}/threads`);
		assert.equal(json.threads[0].name, 'main');
	});

	await t.test('Location is the address of the trace', async () => {
		const answer = await s.post('/api/v1/traces', sampleTrace(3));
		assert.equal(answer.status, 202);
		assert.equal(answer.headers.get('location'), answer.json.url);
		assert.equal((await s.get(answer.json.url, { key: s.ingest })).json.id, answer.json.id);
	});

	await t.test('a slow client is waited for', async () => {
		const body = sampleTrace(20);
		const before = await s.total();
		const socket = await s.socket(
			`POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${s.ingest}\r\nContent-Length: ${body.length}\r\n\r\n`,
		);
		for (let at = 0; at < body.length; at += 100) {
			socket.write(body.subarray(at, at + 100));
			await sleep(30);
		}
		assert.match(await socket.answer, /^HTTP\/1\.1 202 /);
		assert.equal(await s.total(), before + 1);
	});

	await t.test('a client that closed its sending side is answered', async () => {
		const body = sampleTrace(21);
		const socket = await s.socket(
			`POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${s.ingest}\r\nContent-Length: ${body.length}\r\n\r\n`,
		);
		socket.end(body);
		assert.match(await socket.answer, /^HTTP\/1\.1 202 /);
	});

	await t.test('the same recording without a key is one trace for a day', async () => {
		const send = () => s.post('/api/v1/traces', sampleTrace(32), { query: { device: 'Pixel 8', started_at: '1700000000000' } });
		const both = await Promise.all([send(), send()]);
		assert.deepEqual(both.map((r) => r.status).sort(), [200, 202]);
		assert.equal(both[0].json.id, both[1].json.id);
		s.sql(`UPDATE trace SET created_ms=created_ms-86400001 WHERE trace_id='${both[0].json.id}'`);
		const later = await send();
		assert.equal(later.status, 202);
		assert.notEqual(later.json.id, both[0].json.id);
	});
	await t.test('two uploads racing with one idempotency key are one trace', async () => {
		const before = await s.total();
		const send = () => s.post('/api/v1/traces', sampleTrace(30), { headers: { 'Idempotency-Key': 'race-1' } });
		const answers = await Promise.all([send(), send(), send(), send()]);
		assert.deepEqual(answers.map((a) => a.status).sort(), [200, 200, 200, 202]);
		assert.equal(new Set(answers.map((a) => a.json.id)).size, 1);
		assert.equal(await s.total(), before + 1);
		isRefused(await s.post('/api/v1/traces', sampleTrace(31), { headers: { 'Idempotency-Key': 'race-1' } }), 409);
		assert.equal(await s.total(), before + 1);
	});
});

test('uploads that are refused', async (t) => {
	const s = await startServer(t, { args: ['--max-body', '300K'] });
	const url = '/api/v1/traces';

	await t.test('an empty body', async () => {
		isRefused(await s.post(url, ''), 400, /empty/);
		isRefused(await s.post(url, new Blob([]).stream()), 400, /empty/);
	});
	await t.test('garbage', async () => {
		const garbage = Buffer.alloc(5000, 'garbage ');
		isRefused(await s.post(url, garbage), 415);
		isRefused(await s.post(url, zlib.gzipSync(garbage)), 415);
		isRefused(await s.post(url, Buffer.alloc(200000, 0xee)), 415);
		isRefused(await s.post(url, Buffer.from('x')), 415);
	});
	await t.test('a version that cannot be read', async () => {
		isRefused(await s.post(url, btrace([[1, 1, 1000, 1000]], { version: 4 })), 415, /version/);
		isRefused(await s.post(url, btrace([[1, 1, 1000, 1000]], { version: 6 })), 415, /version/);
	});
	await t.test('a bomb of 1:10,000', async () => {
		const bomb = zstd(sampleTrace(10), { byte: 0, n: 64 << 20 });
		isRefused(await s.post(url, bomb), 413);
		isRefused(await s.post(url, zlib.gzipSync(zstd(sampleTrace(10), { byte: 0, n: 1 << 30 }))), 413);
	});
	await t.test('5 GiB declared, before a byte of it', async () => {
		const socket = await s.socket(
			`POST ${url} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${s.ingest}\r\nContent-Length: 5368709120\r\n\r\n`,
		);
		const answer = await socket.answer;
		assert.match(answer, /^HTTP\/1\.1 413 /);
		assert.match(answer, /"status":"too_large"/);
	});
	await t.test('chunks past the limit', async () => {
		const piece = new Uint8Array(sampleTrace(2000)); /* 96,032 bytes */
		const stream = (n) => new ReadableStream({
			pull(c) {
				if (n-- > 0) c.enqueue(piece);
				else c.close();
			},
		});
		isRefused(await s.post(url, stream(4)), 413);
		isRefused(await s.post(url, stream(200)), 413); /* far past: answered before its end */
	});
	await t.test('wrong keys', async () => {
		isRefused(await s.post(url, sampleTrace(), { key: null }), 401);
		isRefused(await s.post(url, sampleTrace(), { key: 'twi_wrong' }), 401);
		isRefused(await s.post(url, sampleTrace(), { key: s.ingest + 'x' }), 401);
		isRefused(await s.post(url, sampleTrace(), { key: s.read }), 403);
		const basic = await s.post(url, sampleTrace(), { key: null, headers: { Authorization: 'Basic YTpi' } });
		isRefused(basic, 401);
		assert.match(basic.headers.get('www-authenticate'), /^Bearer/);
	});
	await t.test('an unknown project', async () => {
		isRefused(await s.post(url, sampleTrace(), { query: { project: '01ARZ3NDEKTSV4RRFFQ69G5FAV' } }), 404);
	});
	await t.test('metadata that is wrong', async () => {
		const bad = [
			{ app: 'x'.repeat(513) }, { device: 'a\nb' }, { app: 'a\u0000b' }, { pid: '-1' }, { pid: '1e3' },
			{ started_at: '99999999999999999' }, { labels: '[]' }, { labels: '{' }, { nonsense: '1' }, { format: 'nope' },
		];
		for (const query of bad) isRefused(await s.post(url, sampleTrace(), { query }), 400);
		isRefused(await s.ask('POST', url + '?app=%ff', { key: s.ingest, body: sampleTrace() }), 400);
		isRefused(await s.post(url, sampleTrace(), { headers: { 'Idempotency-Key': 'k'.repeat(256) } }), 400);
		isRefused(await s.post(url, sampleTrace(), { headers: { 'Content-Encoding': 'br' } }), 415);
		for (const [encoding, body] of [['gzip', Buffer.from('no trace')], ['zstd', zlib.gzipSync('no trace')], ['gzip, zstd', zlib.gzipSync('no trace')]]) {
			const { json } = await s.post(url, body, { headers: { 'Content-Encoding': encoding } });
			assert.equal(json.error.message, `Content-Encoding is ${encoding.split(' ').at(-1)}, but the body is not compressed with it and is not a trace`);
		}
		const skippable = Buffer.from('502a4d18040000000102030428b52ffd', 'hex'); // as pzstd begins
		for (const [encoding, body] of [['gzip', zlib.gzipSync('no trace')], ['zstd', skippable]])
			assert.doesNotMatch((await s.post(url, body, { headers: { 'Content-Encoding': encoding } })).json.error.message, /Content-Encoding/);
	});
	await t.test('forms that are wrong', async () => {
		const send = (...parts) => {
			const { body, headers } = form(...parts);
			return s.post(url, body, { headers });
		};
		isRefused(await send(['meta', '{}']), 400, /trace/);
		isRefused(await send(['trace', '']), 400, /empty/);
		isRefused(await send(['trace', sampleTrace()], ['trace', sampleTrace()]), 400, /twice/);
		isRefused(await send(['trace', sampleTrace()], ['other', 'x']), 400, /other/);
		isRefused(await send(['trace', sampleTrace()], ['meta', '{"pid":']), 400, /JSON/);
		isRefused(await send(['trace', sampleTrace()], ['meta', '{"pid":"x"}']), 400, /pid/);
		isRefused(await send(['trace', 'garbage garbage garbage garbage']), 415);
		const { body, headers } = form(['trace', sampleTrace()]);
		isRefused(await s.post(url, body.subarray(0, body.length - 10), { headers }), 400, /boundary/);
		isRefused(await s.post(url, body, { headers: { 'Content-Type': 'multipart/form-data' } }), 400, /boundary/);
	});
	await t.test('and after all of them', () => leavesNothing(s));
});

test('a client that disconnects half-way leaves nothing', async (t) => {
	const s = await startServer(t, { args: ['--connection-timeout', '60'] });
	const body = sampleTrace(3000);
	for (const headers of [`Content-Length: ${body.length}`, 'Transfer-Encoding: chunked']) {
		const socket = await s.socket(`POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${s.ingest}\r\n${headers}\r\n\r\n`);
		socket.write(headers.startsWith('C') ? body.subarray(0, 20000) : '4\r\nabcd\r\n');
		if (headers.startsWith('C'))
			await until(() => (s.spool().length === 1 ? true : undefined), 'a spool file while it arrives', 5);
		socket.destroy();
	}
	await leavesNothing(s);
});

test('damage that leaves a readable part is a trace', async (t) => {
	const s = await startServer(t);

	await t.test('zstd cut short', async () => {
		const records = sampleTrace(3000);
		const packed = zstd(records.subarray(0, 100000), records.subarray(100000));
		const trace = await s.trace(packed.subarray(0, 110000));
		assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
		assert.ok(trace.summary.losses > 0);
		assert.ok(trace.summary.slices > 5000 && trace.summary.slices < 9000);
		assert.ok(trace.report.repairs.some((r) => r.kind === 'loss'), JSON.stringify(trace.report));
	});
	await t.test('zstd cut before anything can be read', async () => {
		const before = await s.total();
		const answer = await s.post('/api/v1/traces', zstd(sampleTrace()).subarray(0, 8));
		assert.ok(answer.status === 415 || answer.status === 422, answer.text);
		assert.equal(await s.total(), before);
	});
	await t.test('records with impossible times', async () => {
		const day = 86_400_000_000_000;
		const body = btrace([[4000, 1, 1000, 500], [4000, 2, 2000, 3 * day], [4000, 3, 4000, 10], [4000, 4, -1, 0], [4000, 5, 5000, 10]]);
		const trace = await s.trace(body);
		assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
		assert.ok(trace.report.repairs.length > 0, 'named in the report');
		assert.ok(trace.end_ns - trace.start_ns < day, 'the span is not blown up');
	});
});

test('mappings', async (t) => {
	const s = await startServer(t, { args: ['--worker-wall', '900'] });
	const url = '/api/v1/builds/b%2F1/methods';

	await t.test('name earlier traces, in any encoding', async () => {
		const trace = await s.trace(sampleTrace(), { query: { build_id: 'b/1' } });
		for (const body of [sampleMapping, zlib.gzipSync(sampleMapping), zstd(Buffer.from(sampleMapping))]) {
			const answer = await s.put(url, body);
			assert.equal(answer.status, 200, answer.text);
			assert.equal(answer.json.build_id, 'b/1');
			assert.equal(answer.json.entries, 9);
			assert.equal(answer.json.traces, 1);
		}
		const { json } = await s.get(`/api/v1/traces/${trace.id}/methods`);
		assert.ok(json.methods.some((m) => m.name === 'com.example.app.Class0.method1'));
	});
	await t.test('an empty one', async () => isRefused(await s.put(url, ''), 400));
	await t.test('a binary one', async () => {
		const answer = await s.put(url, Buffer.from(Array.from({ length: 9000 }, (_, i) => (i * 7919) & 255)));
		isRefused(answer, 422);
		assert.equal(typeof answer.json.error.offset, 'number');
	});
	await t.test('another kind of file', async () => {
		isRefused(await s.put(url, '<!doctype html><title>Sign in</title>'), 422);
	});
	await t.test('R8\'s mapping names what the method mapping says, and names in the trace', async () => {
		const trace = await s.trace(sampleTrace(), { query: { build_id: 'r8' } });
		const names = async () => (await s.get(`/api/v1/traces/${trace.id}/methods?limit=100`)).json.methods.map((m) => m.name);
		const obfuscated = '# 1\n1,1,a.b c (La/b;)V\n2,1,a.b c (I)V\n3,1,x.Y z ()V\n4,1,a.b d ()V\n';
		const r8 = '# pg_map_id: 0123456789abcdef\ncom.shop.Cart -> a.b:\n    1:3:void add(com.shop.Cart):4:6 -> c\n    4:9:void find(int):7:12 -> c\n'
			+ '    void one():1 -> d\n    void two(int):2 -> d\n';
		assert.equal((await s.put('/api/v1/builds/r8/methods', obfuscated)).status, 200);
		assert.ok((await names()).includes('a.b.c'));
		const answer = await s.put('/api/v1/builds/r8/retrace', zlib.gzipSync(r8));
		assert.equal(answer.status, 200, answer.text);
		assert.equal(answer.json.id, '0123456789abcdef');
		assert.equal(answer.json.methods, 4);
		const late = await names();
		for (const name of ['com.shop.Cart.add', 'com.shop.Cart.find', 'x.Y.z', 'com.shop.Cart.one']) assert.ok(late.includes(name), `${name} in ${late}`);
		const build = (await s.get('/api/v1/builds/r8')).json;
		assert.equal(build.retrace.mapping, true);
		assert.equal(build.latest.trace_id, trace.id);
		assert.equal(build.latest.ids, 6);
		assert.equal(build.latest.resolved, 4);
		assert.equal((await s.get(`/api/v1/traces/${trace.id}`)).json.report.names.retrace, true);
	});
	await t.test('resolved names of all traces of a build are counted, and again with a later mapping', async () => {
		const names = async (build, want) => {
			let seen;
			await until(async () => {
				seen = (await s.get(`/api/v1/builds/${build}`)).json.names;
				return JSON.stringify(seen) === JSON.stringify(want) || undefined;
			}, 'the counts').catch(() => assert.deepEqual(seen, want));
		};
		const one = await s.trace(sampleTrace(), { query: { build_id: 'n1' } });
		const two = await s.trace(sampleTrace(), { query: { build_id: 'n1', mapping_id: 'n2' } });
		const { summary } = (await s.get(`/api/v1/traces/${one.id}`)).json;
		const of = (traces, unresolved_traces, resolved, slices) => ({ traces, unresolved_traces, ids: 6 * traces, resolved, slices: summary.slices * traces, resolved_slices: slices });
		await names('n1', of(2, 2, 0, 0));
		assert.equal((await s.put('/api/v1/builds/n1/methods', '# 1\n1,1,a.b c (I)V\n')).status, 200);
		const first = (await s.get(`/api/v1/traces/${one.id}`)).json.report.names.resolved_slices;
		await names('n1', of(2, 2, 2, 2 * first));
		// mapping_id names another build: its mapping wins for that trace
		assert.equal((await s.put('/api/v1/builds/n2/methods', sampleMapping)).status, 200);
		await names('n1', of(2, 1, 7, first + summary.slices));
		assert.equal((await s.put('/api/v1/builds/n1/methods', sampleMapping)).status, 200);
		await names('n1', of(2, 0, 12, 2 * summary.slices));
		const listed = (await s.get('/api/v1/builds')).json.builds.find((b) => b.build_id === 'n1');
		assert.equal(listed.names.unresolved_traces, 0);
		assert.equal((await s.ask('DELETE', `/api/v1/traces/${two.id}`)).status, 204);
		await names('n1', of(1, 0, 6, summary.slices));
		// a trace that brings its names has no ids to name
		const named = await s.trace('"main" prio=5 tid=1 Runnable\n  at a.b.c(B.java:1)\n', { query: { build_id: 'n3' } });
		assert.equal(named.state, 'ready');
		await names('n3', { traces: 1, unresolved_traces: 0, ids: 0, resolved: 0, slices: 0, resolved_slices: 0 });
	});
	await t.test('the one kind sent as the other', async () => {
		const wrong = await s.put(url, 'com.shop.Cart -> a.b:\n    void add() -> c\n');
		isRefused(wrong, 422);
		assert.match(wrong.json.error.message, /retrace/);
		const other = await s.put('/api/v1/builds/b%2F1/retrace', sampleMapping);
		isRefused(other, 422);
		assert.match(other.json.error.message, /methods/);
	});
	await t.test('the earlier mapping remains in use after a refusal', async () => {
		assert.equal((await s.get('/api/v1/builds/b%2F1')).json.entries, 9);
		assert.deepEqual(s.spool(), []);
	});
	await t.test('two million lines', async () => {
		const lines = [];
		for (let i = 1; i <= 2_000_000; i++) lines.push(`${i},1,a.b.C${i % 5000} m${i} ()V`);
		const answer = await s.put('/api/v1/builds/huge/methods', zlib.gzipSync(lines.join('\n') + '\n', { level: 1 }));
		assert.equal(answer.status, 200, answer.text);
		assert.equal(answer.json.entries, 2_000_000);
	});
	await t.test('names are data', async () => {
		const evil = Buffer.concat([
			Buffer.from('1,1,<img src=x onerror=alert(1)> <script> ()V\n2,1,a.b.N\u0000ul m ()V\n3,1,a.b.'),
			Buffer.from([0xff, 0xfe, 0xc3]),
			Buffer.from(' m ()V\n4,1,a.b.'),
			Buffer.alloc(1 << 20, 'L'),
			Buffer.from(' m ()V\n5,1,a.b.C \r\n6,1,a.b.Good fine ()V\n'),
		]);
		assert.equal((await s.put('/api/v1/builds/evil/methods', evil)).status, 200);
		const trace = await s.trace(btrace([1, 2, 3, 4, 5, 6].map((m) => [4000, m, m * 1000, 500])), { query: { build_id: 'evil' } });
		const { json, headers } = await s.get(`/api/v1/traces/${trace.id}/methods`);
		assert.match(headers.get('content-type'), /^application\/json/);
		assert.equal(json.methods.length, 6);
		for (const m of json.methods) assert.ok(Buffer.byteLength(m.name) <= 8192 + 16, `${m.name.length} bytes`);
		assert.ok(json.methods.some((m) => m.name === 'a.b.Good.fine'));
	});
});

test('a disk that is nearly full', async (t) => {
	const s = await startServer(t, { args: ['--min-free', '99'] });
	isRefused(await s.post('/api/v1/traces', sampleTrace()), 507);
	isRefused(await s.put('/api/v1/builds/b/methods', sampleMapping), 507);
	const ready = await s.get('/readyz');
	assert.equal(ready.status, 503);
	assert.equal(ready.json.checks.disk.ok, false);
	const reading = await s.get('/readyz?for=read', { key: null });
	assert.equal(reading.status, 200, 'readers need no room');
	assert.equal(reading.json.checks.disk.ok, false);
	assert.equal((await s.get('/readyz?for=upload', { key: null })).status, 503);
	isRefused(await s.get('/readyz?for=all', { key: null }), 400);
	await leavesNothing(s);
});

test('a disk that fills up on the way', async (t) => {
	const data = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-full-'));
	try {
		execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', data], { stdio: 'ignore' });
	} catch {
		fs.rmdirSync(data);
		return t.skip('a small file system cannot be mounted here');
	}
	atEnd(t, () => {
		execFileSync('umount', ['-l', data]);
		fs.rmdirSync(data);
	});
	const s = await startServer(t, { data, args: ['--min-free', '0'] });
	const big = btrace(Array.from({ length: 300_000 }, (_, i) => [4000, 1 + ((i * 7919) % 5000), i * 1000, 900]));
	isRefused(await s.post('/api/v1/traces', big), 507);
	await leavesNothing(s);
	assert.equal((await s.trace(sampleTrace())).state, 'ready');
	await s.stop();
});

test('tracewell push', async (t) => {
	const s = await startServer(t);
	const folder = newFolder(t, 'tracewell-push-');
	fs.mkdirSync(path.join(folder, 'inner'));
	fs.writeFileSync(path.join(folder, 'rhea-atrace.bin'), sampleTrace(5));
	fs.writeFileSync(path.join(folder, 'inner', 'b.bin.gz'), zlib.gzipSync(sampleTrace(6)));
	fs.writeFileSync(path.join(folder, 'notes.txt'), 'no trace');
	fs.writeFileSync(path.join(folder, 'map.txt'), sampleMapping);
	const to = ['push', '--server', s.url, '--key', s.ingest, '--build-id', 'p1', '--scenario', 'page', '--meta', 'app=a & b'];

	const ids = tracewell(...to, '--mapping', path.join(folder, 'map.txt'), '--wait', folder).split('\n');
	assert.equal(ids.length, 2);
	for (const id of ids) {
		const { json } = await s.get(`/api/v1/traces/${id}`);
		assert.equal(json.state, 'ready');
		assert.equal(json.meta.app, 'a & b');
	}
	assert.deepEqual(tracewell(...to, folder).split('\n'), ids, 'the same push is the same traces');
	fs.writeFileSync(path.join(folder, 'bad.bin'), 'garbage garbage garbage garbage garbage');
	assert.throws(() => tracewell(...to, path.join(folder, 'bad.bin')), (e) => e.status === 1 && /415/.test(e.stderr));
	assert.throws(() => tracewell('push', '--server', s.url, '--key', 'wrong', folder), (e) => e.status === 1 && /401/.test(e.stderr));
	assert.throws(() => tracewell('push', folder), (e) => e.status === 2);
});
