/*
 * Mappings as jobs: accepted durably, compiled by a queue scheduled by project, on no thread that serves
 * reads, and cancelled when they are no longer needed.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import { test } from 'node:test';
import zlib from 'node:zlib';

import { btrace, sampleMapping, sampleTrace } from '../make.mjs';
import { binary, childrenOf, startServer, until } from '../server.mjs';

const SLEEP = { TRACEWELL_WORKER_FAULT: 'sleep' };

let made;

/* 64 GiB inside: gzip of gzip of zstd frames that a decoder skips. */
function bomb(n) {
	const skipped = Buffer.alloc(8);
	skipped.writeUInt32LE(0x184d2a50, 0);
	skipped.writeUInt32LE(16 << 20, 4);
	const one = zlib.gzipSync(Buffer.concat([skipped, Buffer.alloc(16 << 20)]), { level: 9 });
	made ??= zlib.gzipSync(Buffer.concat(Array(4096).fill(one)), { level: 1 });
	return Buffer.concat([made, Buffer.from([n])]);
}

async function restart(s, env, signal) {
	await s.stop(signal);
	s.env = env;
	await s.start();
}

/* All that a neighbour does: each is answered. */
async function neighbour(s, trace, read) {
	const ask = async (method, target, options) => {
		const answer = await s.ask(method, target, options);
		assert.ok([200, 204].includes(answer.status), `${method} ${target}: ${answer.status} ${answer.text}`);
	};
	await ask('GET', '/api/v1/traces', { key: read });
	await ask('GET', `/api/v1/traces/${trace}/flame`, { key: read });
	await ask('POST', '/api/v1/session', { key: null, body: JSON.stringify({ name: 'bert', password: 'correct horse battery' }) });
}

async function withNeighbour(t, options = {}) {
	const s = await startServer(t, { ...options, args: ['--shutdown', '0', ...(options.args ?? [])] });
	const keys = { ingest: s.key('ingest', 'beta'), read: s.key('read', 'beta'), write: s.key('write', 'beta') };
	execFileSync(binary(), ['user', 'create', 'bert', '--data', s.data], { input: 'correct horse battery' });
	execFileSync(binary(), ['user', 'role', 'bert', '--data', s.data, '--role', 'viewer', '--project', 'beta']);
	const { id } = (await s.post('/api/v1/traces', sampleTrace(), { key: keys.ingest, query: { build_id: 'b1' } })).json;
	await until(async () => ((await s.get(`/api/v1/traces/${id}`, { key: keys.read })).json.state === 'ready' ? true : undefined), 'a trace');
	return { s, keys, id };
}

const state = async (s, build, kind = 'methods', key = undefined) => {
	const { json } = await s.get(`/api/v1/builds/${build}`, key ? { key } : {});
	return kind === 'methods' ? json.state : json.retrace.state;
};

const compiled = async (s, outcome) =>
	Number(new RegExp(`^tracewell_mapping_compiles_total.outcome="${outcome}". (\\d+)$`, 'm').exec((await s.get('/metrics', { key: null })).text)?.[1] ?? NaN);

/* The children that compile, by the lines of /proc. */
const children = (s) => childrenOf(s).filter((child) => !child.template).map((child) => child.pid);

test('streams that explode are refused, as mappings and as traces, and cost a neighbour nothing', async (t) => {
	bomb(0); // takes a while, in which no server is to wait for this process
	const { s, keys, id } = await withNeighbour(t);
	const sent = [0, 1, 2, 3, 4, 5, 6, 7].map((n) => s.put(`/api/v1/builds/bomb${n}/methods`, bomb(n), { key: s.ingest }));
	for (let i = 0; i < 3; i++) await neighbour(s, id, keys.read);
	for (const answer of await Promise.all(sent)) {
		assert.equal(answer.status, 413, answer.text);
		assert.match(answer.json.error.message, /more than 200 times/);
	}
	assert.equal(await state(s, 'bomb0'), 'failed');
	const upload = await s.post('/api/v1/traces', bomb(9));
	if (upload.status < 300) assert.equal((await s.decoded(upload.json.id)).error.status, 'too_large');
	else assert.equal(upload.status, 413, upload.text);
});

test('mappings that take long stop no reader, and a neighbour has its turn', async (t) => {
	const { s, keys, id } = await withNeighbour(t);
	const doomed = (await s.post('/api/v1/traces', sampleTrace(60))).json.id;
	await s.decoded(doomed);
	await restart(s, SLEEP);
	const sent = [0, 1, 2, 3, 4, 5, 6, 7].map((n) => s.put(`/api/v1/builds/a${n}/${n % 2 ? 'methods' : 'retrace'}`, sampleMapping, { key: s.ingest }).catch(() => null));
	await until(async () => (/^tracewell_compiling_mappings 1$/m.test((await s.get('/metrics', { key: null })).text) ? true : undefined), 'a compiler at work');
	for (let i = 0; i < 3; i++) await neighbour(s, id, keys.read);
	assert.equal((await s.ask('DELETE', `/api/v1/traces/${doomed}`)).status, 204, 'a deletion waits for no child');
	const mine = await s.put('/api/v1/builds/b1/methods', sampleMapping, { key: keys.ingest, query: { wait: '0' } });
	assert.equal(mine.status, 202, mine.text);
	assert.deepEqual([mine.json.build_id, mine.json.traces], ['b1', 1]);
	await until(async () => ((await state(s, 'b1', 'methods', keys.read)) === 'compiling' ? true : undefined), "the neighbour's turn");
	const states = await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map((n) => state(s, `a${n}`, n % 2 ? 'methods' : 'retrace')));
	assert.equal(states.filter((x) => x === 'compiling').length, 1, `one of a project at a time: ${states}`);
	await s.stop();
	for (const answer of await Promise.all(sent)) assert.ok(!answer || [202, 503].includes(answer.status), answer?.text);
	s.env = {};
	await s.start();
	await until(async () => ((await state(s, 'b1', 'methods', keys.read)) === 'ready' ? true : undefined), 'compiled after a restart');
});

test('an accepted mapping survives a kill', async (t) => {
	const s = await startServer(t);
	const trace = await s.trace(sampleTrace(), { query: { build_id: 'b1' } });
	await restart(s, SLEEP);
	for (const [kind, body] of [['methods', sampleMapping], ['retrace', 'com.A -> a.a:\n    void b() -> c\n']]) {
		const answer = await s.put(`/api/v1/builds/b1/${kind}`, body, { query: { wait: '0' } });
		assert.equal(answer.status, 202, answer.text);
		assert.match(answer.json.state, /^(queued|compiling)$/);
	}
	await until(async () => ((await state(s, 'b1')) === 'compiling' ? true : undefined), 'it is being compiled');
	await restart(s, {}, 'SIGKILL');
	for (const kind of ['methods', 'retrace'])
		await until(async () => ((await state(s, 'b1', kind)) === 'ready' ? true : undefined), `${kind} ready`);
	const { json } = await s.get(`/api/v1/traces/${trace.id}/methods`);
	assert.ok(json.methods.some((m) => m.name === 'com.example.app.Class0.method1'), 'it names the earlier trace');
	assert.deepEqual(s.spool(), []);
	const { status } = await s.stop().then(() => ({ status: execFileSync(binary(), ['check', '--data', s.data], { encoding: 'utf8' }) }));
	assert.doesNotMatch(status, /missing|damaged/);
});

test('a mapping that fails leaves the one before in use, with its reason on the build', async (t) => {
	const s = await startServer(t);
	assert.equal((await s.put('/api/v1/builds/b1/methods', sampleMapping)).json.state, 'ready');
	const before = fs.readdirSync(`${s.data}/blobs`, { recursive: true }).length;
	const refused = await s.put('/api/v1/builds/b1/methods', '<!doctype html><title>Sign in</title>');
	assert.equal(refused.status, 422);
	for (const json of [(await s.get('/api/v1/builds/b1')).json, (await s.get('/api/v1/builds')).json.builds[0]]) {
		assert.deepEqual([json.mapping, json.state, json.entries], [true, 'failed', 9]);
		assert.deepEqual(json.error, { ...refused.json.error });
		assert.deepEqual([json.retrace.state, json.retrace.error], ['none', null]);
	}
	await until(async () => (fs.readdirSync(`${s.data}/blobs`, { recursive: true }).length === before ? true : undefined), 'its upload is not kept');
	const none = await s.put('/api/v1/builds/b2/retrace', sampleMapping);
	assert.equal(none.status, 422);
	const { json } = await s.get('/api/v1/builds/b2');
	assert.deepEqual([json.retrace.mapping, json.retrace.state, json.state, json.error], [false, 'failed', 'none', null]);
	assert.equal((await s.put('/api/v1/builds/b1/methods', sampleMapping)).status, 200, 'what is in use, again');
	assert.equal(await state(s, 'b1'), 'ready');
	/* keys of apps cannot replace it, and not make it look broken either */
	for (const body of ['<!doctype html><title>Sign in</title>', sampleMapping + '4,1,a.B c ()V\n'])
		assert.ok((await s.put('/api/v1/builds/b1/methods', body, { key: s.ingest })).status >= 400);
	for (const json of [(await s.get('/api/v1/builds/b1')).json, (await s.get('/api/v1/builds')).json.builds.find((b) => b.build_id === 'b1')])
		assert.deepEqual([json.state, json.error, json.entries], ['ready', null, 9]);
});

test('an upload that failed is forgotten after 30 days', async (t) => {
	const s = await startServer(t, { args: ['--retention-every', '1'] });
	for (const build of ['old', 'new']) assert.equal((await s.put(`/api/v1/builds/${build}/methods`, '<!doctype html>')).status, 422);
	s.sql(`UPDATE mapping_job SET queued_ms=queued_ms-${31 * 86_400_000} WHERE build_id='old'`);
	await until(async () => ((await state(s, 'old')) === 'none' ? true : undefined), 'forgotten');
	assert.equal(await state(s, 'new'), 'failed');
});

test('a compiler that dies is tried again, and a deadline is not', async (t) => {
	for (const [env, wall, retries, status] of [['crash', '60', 1, 500], ['sleep', '1', 0, 422]]) {
		const s = await startServer(t, { args: ['--worker-attempts', '2', '--worker-wall', wall, '--shutdown', '0'], env: { TRACEWELL_WORKER_FAULT: env } });
		const answer = await s.put('/api/v1/builds/b1/methods', sampleMapping);
		assert.ok(answer.status >= 400, answer.text);
		assert.equal((await s.get('/api/v1/builds/b1')).json.error.status, answer.json.error.status);
		assert.equal(await compiled(s, 'retry'), retries, `${env} ${status}`);
		assert.equal(await compiled(s, 'failed'), 1);
	}
});

test('the same content again is not compiled again', async (t) => {
	const s = await startServer(t);
	const first = await s.put('/api/v1/builds/b1/methods', sampleMapping);
	assert.equal(await compiled(s, 'ready'), 1);
	const again = await s.put('/api/v1/builds/b1/methods', sampleMapping, { key: s.ingest, query: { wait: '0' } });
	assert.deepEqual([again.status, again.json], [200, first.json]);
	assert.equal(await compiled(s, 'ready'), 1);
	/* unless the image was deleted */
	await s.stop();
	const image = s.sql("SELECT map_sha256 FROM build WHERE build_id='b1'");
	for (const name of fs.readdirSync(`${s.data}/blobs`, { recursive: true }))
		if (name.endsWith(image)) fs.rmSync(`${s.data}/blobs/${name}`);
	await s.start();
	const trace = await s.trace(sampleTrace(), { query: { build_id: 'b1' } });
	assert.equal((await s.put('/api/v1/builds/b1/methods', sampleMapping)).status, 200);
	assert.equal(await compiled(s, 'ready'), 1, 'since the restart');
	assert.ok((await s.get(`/api/v1/traces/${trace.id}/methods`)).json.methods.some((m) => m.name === 'com.example.app.Class0.method1'));
});

test('the last upload counts, and ends the compilation of the one before', async (t) => {
	const s = await startServer(t, { args: ['--shutdown', '0'], env: SLEEP });
	const other = sampleMapping.replaceAll('com.', 'org.');
	const first = s.put('/api/v1/builds/b1/methods', sampleMapping, { key: s.ingest });
	const [pid] = await until(async () => (children(s).length ? children(s) : undefined), 'its child');
	assert.equal((await s.put('/api/v1/builds/b1/methods', other, { key: s.ingest })).status, 403, 'an ingest key replaces none that waits');
	assert.equal((await s.put('/api/v1/builds/b1/methods', sampleMapping, { key: s.ingest, query: { wait: '0' } })).status, 202, 'the same again');
	assert.equal((await s.put('/api/v1/builds/b1/methods', other, { query: { wait: '0' } })).status, 202);
	const replaced = await first;
	assert.equal(replaced.status, 409, replaced.text);
	await until(async () => (children(s).includes(pid) ? undefined : true), 'the end of its child');
	await restart(s, {});
	await until(async () => ((await state(s, 'b1')) === 'ready' ? true : undefined), 'the last one ready');
	const trace = await s.trace(btrace([[4000, 1, 1000, 500]]), { query: { build_id: 'b1' } });
	assert.match((await s.get(`/api/v1/traces/${trace.id}/methods`)).json.methods[0].name, /^(org|android|java)\./);
});

test('waiting is bounded, for a request and for a project', async (t) => {
	const { s, keys, id } = await withNeighbour(t);
	for (const wait of ['61', '-1', 'x']) assert.equal((await s.put('/api/v1/builds/b1/methods', sampleMapping, { query: { wait } })).status, 400);
	await restart(s, SLEEP);
	const waiting = Array.from({ length: 40 }, () => s.put('/api/v1/builds/b1/methods', sampleMapping, { key: s.ingest, query: { wait: '60' } }));
	const first = await Promise.race(waiting);
	assert.equal(first.status, 202, 'of 40 some are answered before the end');
	await neighbour(s, id, keys.read);
	await s.stop();
	for (const answer of await Promise.all(waiting.map((w) => w.catch(() => null)))) assert.ok(!answer || [202, 503].includes(answer.status), answer?.text);
});

test("the bytes of a project's waiting mappings are bounded, and a replacement counts once", async (t) => {
	const s = await startServer(t, { args: ['--shutdown', '0', '--decode-workers', '1', '--max-body', '16K'], env: SLEEP });
	const send = (build, n, key = s.write) => s.put(`/api/v1/builds/${build}/methods`, Buffer.from(`${n},1,${'a'.repeat(15_000)}.C m ()V\n`), { key, query: { wait: '0' } });
	assert.equal((await send('b0', 0)).status, 202);
	await until(async () => ((await s.metric('tracewell_compiling_mappings')) === 1 ? true : undefined), 'a compiler at work');
	for (let i = 1; i <= 4; i++) assert.equal((await send(`b${i}`, i)).status, 202);
	const refused = await send('b5', 5);
	assert.equal(refused.status, 503, refused.text);
	assert.ok(Number(refused.headers.get('retry-after')) > 0);
	assert.match(refused.json.error.message, /^4 mappings of this project \(60\d\d\d bytes\) wait to be compiled/);
	assert.equal((await s.get('/api/v1/builds/b5')).status, 404);
	/* known before the body, so nothing is sent and nothing stored */
	const early = await s.socket(`PUT /api/v1/builds/b5/methods HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\nAuthorization: Bearer ${s.write}\r\nContent-Length: 15000\r\n\r\n`);
	assert.match(await early.answer, /^HTTP\/1\.1 503 [^]*wait to be compiled/);
	assert.equal((await send('b1', 6)).status, 202);
	assert.equal((await send('b1', 7, s.key('write', 'other'))).status, 202);
});

test('compilers leave the processors to short requests', async (t) => {
	const s = await startServer(t, { args: ['--shutdown', '0'], env: SLEEP });
	/* also where the server itself was started at a lower priority */
	const own = os.getPriority(s.child.pid) + 3;
	for (const thread of fs.readdirSync(`/proc/${s.child.pid}/task`)) os.setPriority(Number(thread), own);
	assert.equal((await s.put('/api/v1/builds/b/methods?wait=0', sampleMapping, { key: s.write })).status, 202);
	const [compiler] = await until(async () => (children(s).length ? children(s) : undefined), 'a compiler');
	await until(async () => (os.getPriority(compiler) === own + 10 ? true : undefined), 'its lower priority');
});
