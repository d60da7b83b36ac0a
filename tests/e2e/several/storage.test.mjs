/*
 * storage.test.mjs - files on an S3-compatible store: uploads, decodes, reads, deletes; the cache; what goes
 * wrong there, and kills, lose nothing that was accepted. The store is bucket.mjs.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { present, startBucket } from '../bucket.mjs';
import { sampleMapping, sampleTrace } from '../make.mjs';
import { parse, value } from '../prometheus.mjs';
import { binary, startServer, until } from '../server.mjs';

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
const keyOf = (body) => `blobs/${sha256(body).slice(0, 2)}/${sha256(body)}`;
const recordOf = (id) => `records/${id.slice(-1)}/${id}`;
const fileOf = (id) => `traces/${id.slice(-2)}/${id}.db`;
const metric = async (s, name, labels) => value(parse((await s.get('/metrics', { key: null })).text), name, labels);
const cached = (s) => fs.readdirSync(path.join(s.data, 'cache'));
const ready = (s) => s.get('/readyz', { key: null });

/* Asynchronous: the store is in this process. */
function run(args, env) {
	const child = spawn(binary(), args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
	let reported = '';
	for (const out of [child.stdout, child.stderr]) out.setEncoding('utf8').on('data', (text) => (reported += text));
	return new Promise((done) => child.once('close', (code) => done({ code, reported })));
}

/* Like startServer; the same data folder again on demand. */
async function start(t, bucket, { args = [], env = {}, ...more } = {}) {
	return startServer(t, { args: bucket.args(...args), env: { ...bucket.env, ...env }, ...more });
}

test('uploads, mappings and decoded files are there, and no file is in the data folder', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b, { args: ['--s3-part=64K'] });
	const body = sampleTrace(40);
	const trace = await s.trace(body, { query: { build_id: 'b1' } });
	assert.equal(trace.state, 'ready');
	assert.ok(b.keys().includes(keyOf(body)) && b.keys().includes(fileOf(trace.id)), b.keys().join(' '));
	assert.deepEqual(fs.readFileSync(b.file(keyOf(body))), body);
	assert.ok(!fs.existsSync(path.join(s.data, 'blobs')) && !fs.existsSync(path.join(s.data, 'traces')));
	assert.equal((await s.put('/api/v1/builds/b1/methods', sampleMapping)).status, 200);
	assert.ok(b.keys().includes(keyOf(sampleMapping)));
	assert.match(JSON.stringify((await s.get(`/api/v1/traces/${trace.id}/flame`)).json), /com\.example\.app/);
	assert.deepEqual((await s.get(`/api/v1/traces/${trace.id}/raw/trace`)).bytes, body);

	const large = sampleTrace(8000); // in parts
	const other = await s.trace(large);
	assert.equal(other.state, 'ready');
	assert.ok(b.count('PUT', 'partNumber=2') >= 1, 'it went in parts');
	assert.deepEqual(fs.readFileSync(b.file(keyOf(large))), large);
	assert.equal((await ready(s)).json.checks.storage.ok, true);
	assert.ok((await metric(s, 'tracewell_storage_requests_total', { op: 'put', outcome: 'ok' })) >= 4);
	assert.ok((await metric(s, 'tracewell_storage_requests_total', { op: 'multipart', outcome: 'ok' })) >= 4);
	assert.deepEqual(s.spool(), []);

	const before = (await s.get(`/api/v1/traces/${trace.id}/flame`)).json;
	await s.stop();
	fs.rmSync(path.join(s.data, 'cache'), { recursive: true });
	await s.start(); // nothing on the node but the catalogue
	assert.deepEqual((await s.get(`/api/v1/traces/${trace.id}/flame`)).json, before);
	assert.deepEqual((await s.get(`/api/v1/traces/${other.id}/raw/trace`)).bytes, large);
	assert.ok((await metric(s, 'tracewell_storage_bytes_total', { direction: 'received' })) > large.length);
});

test('deletions reach the store, except content that another trace uses', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b);
	const [one, other, third] = [await s.trace(sampleTrace(41)), await s.trace(sampleTrace(41), { query: { build_id: 'x' } }), await s.trace(sampleTrace(42))];
	assert.equal((await s.ask('DELETE', `/api/v1/traces/${one.id}`)).status, 204);
	await until(() => (b.keys().includes(fileOf(one.id)) ? undefined : true), 'its decoded file gone');
	assert.ok(b.keys().includes(keyOf(sampleTrace(41))), 'the content is the other one\'s too');
	assert.equal((await s.get(`/api/v1/traces/${other.id}/raw/trace`)).status, 200);

	let refused = 0;
	b.fault = (q) => (q.method === 'DELETE' && refused++ < 3 ? { status: 500, code: 'InternalError' } : undefined);
	for (const id of [other.id, third.id]) assert.equal((await s.ask('DELETE', `/api/v1/traces/${id}`)).status, 204);
	await until(() => (b.keys().length === 0 ? true : undefined), 'all objects gone');
	assert.ok(refused > 3);
	await until(() => (cached(s).length === 0 ? true : undefined), 'the cache is empty, too');
});

test('a server that is killed after it deleted a row deletes the files when it is started again', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b);
	const [one, other] = [await s.trace(sampleTrace(43)), await s.trace(sampleTrace(44))];
	await s.write, await s.stop();
	s.env = { ...b.env, TRACEWELL_CRASH_AT: 'row_deleted' };
	await s.start();
	await s.ask('DELETE', `/api/v1/traces/${one.id}`).catch(() => undefined);
	assert.equal((await s.ended).signal, 'SIGKILL');
	s.env = { ...b.env };
	await s.start();
	assert.equal((await s.get(`/api/v1/traces/${one.id}`)).status, 404);
	await until(() => (b.keys().length === 3 ? true : undefined), () => `those of the other remain: ${b.keys()}`);
	assert.ok(b.keys().includes(fileOf(other.id)) && b.keys().includes(keyOf(sampleTrace(44))));
	await until(() => s.sql('SELECT count(*) FROM file_drop') === '0' || undefined, 'nothing is left to do');
});

test('a missing record is written at the next start, also if another trace is deleted while the records are listed', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b);
	const ids = [];
	for (let n = 0; n < 5; n++) ids.push((await s.trace(sampleTrace(60 + n))).id);
	await until(() => (ids.every((id) => b.keys().includes(recordOf(id))) ? true : undefined), 'all have records');
	await s.stop();
	const records = () => b.keys().filter((key) => key.startsWith('records/'));
	const [first, , missing] = records();
	fs.rmSync(b.file(missing));
	let deleted;
	b.fault = async (q) => { // after the first page of the list, which has the record of the deleted trace
		if (!/continuation-token=.*records/.test(q.url)) return;
		deleted ??= started.then(() => s.ask('DELETE', `/api/v1/traces/${first.split('/').at(-1)}`));
		assert.equal((await deleted).status, 204);
	};
	const started = s.start();
	await started;
	await until(() => (records().includes(missing) ? true : undefined), 'the missing record');
	assert.ok(deleted, 'the list has several pages');
});

test('how old a file is goes by the store\'s clock', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b);
	await s.trace(sampleTrace(45));
	await s.stop();
	const lost = 'blobs/aa/' + 'a'.repeat(64);
	fs.mkdirSync(path.dirname(b.file(lost)), { recursive: true });
	fs.copyFileSync(b.file(keyOf(sampleTrace(45))), b.file(lost));
	fs.copyFileSync(b.file(keyOf(sampleTrace(45))).replace(/object$/, 'metadata.json'), b.file(lost).replace(/object$/, 'metadata.json'));
	const at = new Date(Date.now() - 25 * 3600 * 1000);
	fs.utimesSync(b.file(lost), at, at);
	b.skewMs = -2 * 3600 * 1000;
	s.args.push('--s3-sweep=1');
	await s.start();
	await until(() => (s.log.includes('event=storage_swept') ? true : undefined), 'a sweep');
	assert.ok(b.keys().includes(lost), 'it is 23 hours old there');
	assert.equal(b.count('GET', 'uploads='), 1, 'what the store does not implement (501) is not asked for again and again');
	b.skewMs = 0;
	await until(() => (b.keys().includes(lost) ? undefined : true), 'it is a day old, and gone');
});

test('unreferenced objects are swept when older than a day, and only then', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b);
	const trace = await s.trace(sampleTrace(43));
	await s.stop();
	const old = new Date(Date.now() - 25 * 3600 * 1000);
	const put = (key, mtime) => {
		fs.mkdirSync(path.dirname(b.file(key)), { recursive: true });
		fs.copyFileSync(b.file(keyOf(sampleTrace(43))), b.file(key));
		fs.copyFileSync(b.file(keyOf(sampleTrace(43))).replace(/object$/, 'metadata.json'), b.file(key).replace(/object$/, 'metadata.json'));
		fs.utimesSync(b.file(key), mtime, mtime);
	};
	const [lost, young] = ['blobs/aa/' + 'a'.repeat(64), 'blobs/bb/' + 'b'.repeat(64)];
	put(lost, old);
	put(young, new Date());
	put('traces/AV/01ARZ3NDEKTSV4RRFFQ69G9FAV.db', old);
	put('somebody/else', old);
	for (const key of [keyOf(sampleTrace(43)), fileOf(trace.id)]) fs.utimesSync(b.file(key), old, old);
	await s.stop();
	await s.start();
	await ready(s);
	assert.ok(b.keys().includes(lost), 'only who asks for it is swept for');
	await s.stop();
	s.args = b.args('--s3-sweep=1');
	await s.start();
	await until(() => (/event=storage_swept removed=2/.test(s.log) ? true : undefined), 'a sweep');
	assert.deepEqual(b.keys(), [young, keyOf(sampleTrace(43)), 'somebody/else', fileOf(trace.id), recordOf(trace.id)].sort());
	assert.equal((await s.get(`/api/v1/traces/${trace.id}/flame`)).status, 200);
});

test('the cache keeps to its bound and survives a restart', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b, { args: ['--cache-bytes=16K'] });
	const ids = [];
	for (let i = 0; i < 8; i++) ids.push((await s.trace(sampleTrace(300 + i))).id);
	/* derived data reads the files as well */
	await until(async () => ((await s.get('/api/v1/fleet/stages')).json.stages.every((x) => x.waiting === 0) ? true : undefined), 'nothing waits for a stage');
	for (const id of [...ids, ...ids]) assert.equal((await s.get(`/api/v1/traces/${id}/flame`)).status, 200);
	const bytes = () => cached(s).reduce((sum, name) => sum + fs.statSync(path.join(s.data, 'cache', name)).size, 0);
	assert.ok(bytes() <= 16 << 10 && bytes() > 0, `${bytes()} bytes`);
	assert.equal(await metric(s, 'tracewell_cache_bytes'), bytes());
	assert.equal(await metric(s, 'tracewell_cache_files'), cached(s).length);
	assert.ok((await metric(s, 'tracewell_cache_evictions_total')) > 0);
	assert.ok((await metric(s, 'tracewell_cache_reads_total', { outcome: 'miss' })) > 0);
	await s.stop();
	fs.writeFileSync(path.join(s.data, 'cache', '.fill-7'), 'half');
	await s.start();
	const files = cached(s);
	assert.ok(files.length > 0 && !files.includes('.fill-7'));
	const last = ids.at(-1);
	assert.ok(files.includes(`${last}.db`));
	const before = b.count('GET', fileOf(last));
	assert.equal((await s.get(`/api/v1/traces/${last}/flame`)).status, 200);
	assert.equal(b.count('GET', fileOf(last)), before, 'it was read from the cache');
});

test('two concurrent readers fetch once', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b, { args: ['--query-threads=8'] });
	const { id } = await s.trace(sampleTrace(44));
	await s.stop();
	fs.rmSync(path.join(s.data, 'cache'), { recursive: true });
	await s.start();
	b.log.length = 0;
	const shared = () => metric(s, 'tracewell_cache_reads_total', { outcome: 'shared' });
	b.fault = async (q) => {
		if (q.method === 'GET' && q.url.includes(id)) await until(async () => ((await shared()) >= 1 ? true : undefined), 'another reader waits for the same file');
	};
	const answers = await Promise.all(Array.from({ length: 6 }, () => s.get(`/api/v1/traces/${id}/flame`)));
	assert.deepEqual(answers.map((a) => a.status), Array(6).fill(200));
	assert.equal(b.count('GET', fileOf(id)), 1);
	assert.ok((await shared()) >= 1);
});

/* Each fault hits the first tries of every kind of request; all of it goes well in the end. */
const passing = {
	'500': () => ({ status: 500, code: 'InternalError' }),
	'503 SlowDown': () => ({ status: 503, code: 'SlowDown' }),
	'a connection that ends': () => ({ drop: true }),
	'an answer that gets lost': () => ({ drop: 'after' }),
	'bodies cut short': (q) => (q.method === 'GET' ? { cut: true } : undefined),
	'bodies damaged on the way': (q) => (q.method === 'GET' && !q.url.includes('list-type') ? { flip: true } : undefined),
	'slowness': () => ({ wait: 300 }),
};

for (const [name, fault] of Object.entries(passing))
	test(`passes: ${name}`, async (t) => {
		const b = await startBucket(t);
		const s = await start(t, b, { args: ['--s3-part=64K', '--s3-timeout=20', '--query-deadline=60000'] });
		const hits = new Map();
		b.fault = (q) => {
			const kind = `${q.method} ${q.url.replace(/[0-9a-f]{20,}/g, '')}`;
			hits.set(kind, (hits.get(kind) ?? 0) + 1);
			return hits.get(kind) <= 2 ? fault(q) : undefined;
		};
		const bodies = [sampleTrace(45), sampleTrace(5000)];
		for (const body of bodies) {
			const trace = await s.trace(body);
			assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
			assert.deepEqual(fs.readFileSync(b.file(keyOf(body))), body);
		}
		const ids = (await s.get('/api/v1/traces')).json.traces.map((x) => x.id);
		await s.stop();
		fs.rmSync(path.join(s.data, 'cache'), { recursive: true });
		hits.clear(); // from its start on the server reads, also for derived data
		await s.start();
		for (const id of ids) {
			const answer = await present(s, `/api/v1/traces/${id}/flame`);
			assert.equal(answer.status, 200, answer.text);
		}
	});

test('a clock that is another\'s is learnt from the store', async (t) => {
	const b = await startBucket(t);
	b.skewMs = -3 * 3600 * 1000;
	const s = await start(t, b);
	assert.equal((await s.trace(sampleTrace(46))).state, 'ready');
	b.skewMs = 2 * 3600 * 1000;
	assert.equal((await s.trace(sampleTrace(47))).state, 'ready');
});

test('while the store is unavailable uploads are asked to retry, decodes are postponed, and nothing is lost', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b, { args: ['--s3-timeout=2'] });
	const kept = await s.trace(sampleTrace(48));
	await s.stop();
	fs.rmSync(path.join(s.data, 'cache'), { recursive: true });
	await s.start();
	b.fault = () => ({ hang: true });
	const refused = await s.post('/api/v1/traces', sampleTrace(49));
	assert.equal(refused.status, 503, refused.text);
	assert.ok(Number(refused.headers.get('retry-after')) > 0);
	await until(async () => ((await ready(s)).status === 503 ? true : undefined), 'not ready');
	assert.equal((await ready(s)).json.checks.storage.ok, false);
	assert.equal(await metric(s, 'tracewell_storage_unavailable'), 1);
	const puts = b.count('PUT', '');
	assert.equal((await s.post('/api/v1/traces', sampleTrace(50))).status, 503);
	assert.equal(b.count('PUT', ''), puts, 'without asking the store, now that it is known');
	assert.equal((await s.get(`/api/v1/traces/${kept.id}/flame`)).status, 503);
	assert.equal((await s.get('/api/v1/traces')).json.total, 1);

	b.fault = () => undefined;
	await until(async () => ((await ready(s)).status === 200 ? true : undefined), 'ready again');
	assert.equal((await s.get(`/api/v1/traces/${kept.id}/flame`)).status, 200);
	assert.equal((await s.trace(sampleTrace(49))).state, 'ready');

	let away = true; // from when the upload is in until the decoder's file is to be put
	b.fault = (q) => (away && q.url.includes('/traces/') ? { status: 500, code: 'InternalError' } : undefined);
	const { id } = (await s.post('/api/v1/traces', sampleTrace(51))).json;
	await until(async () => (/outcome=postponed/.test(s.log) ? true : undefined), 'the decode is put off');
	const waiting = await until(async () => { // it is tried now and then
		const { json } = await s.get(`/api/v1/traces/${id}`);
		return json.state === 'queued' ? json : undefined;
	}, 'it waits');
	assert.match(waiting.error?.message ?? '', /store|storage/);
	away = false;
	assert.equal((await s.decoded(id)).state, 'ready');
	assert.equal((await s.get(`/api/v1/traces/${id}`)).json.attempts, 1, 'it cost no try');
});

test('a bucket that is gone for a while makes nothing fail for good', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b, { args: ['--s3-timeout=2'] });
	const { id } = await s.trace(sampleTrace(58));
	await s.stop();
	fs.rmSync(path.join(s.data, 'cache'), { recursive: true });
	await s.start();
	b.fault = () => ({ status: 404, code: 'NoSuchBucket' });
	assert.equal((await s.get(`/api/v1/traces/${id}/flame`)).status, 503);
	assert.equal((await s.get('/api/v1/traces')).json.traces[0].state, 'ready');
	b.fault = () => undefined;
	await until(async () => ((await s.get(`/api/v1/traces/${id}/flame`)).status === 200 ? true : undefined), 'read again');
});

test('a 404 of another than the store makes nothing fail for good', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b, { args: ['--s3-timeout=2'] });
	const { id } = await s.trace(sampleTrace(58));
	await s.stop();
	fs.rmSync(path.join(s.data, 'cache'), { recursive: true });
	await s.start();
	b.fault = (q) => (q.url.includes('/traces/') ? { status: 404, code: 'NotHere' } : undefined);
	const answer = await s.get(`/api/v1/traces/${id}/flame`);
	assert.equal(answer.status, 503, answer.text);
	assert.match(answer.text, /the store returned 404/);
	assert.equal((await s.get('/api/v1/traces')).json.traces[0].state, 'ready');
	assert.equal((await ready(s)).status, 200, 'one object says nothing of the store');
	b.fault = () => undefined;
	assert.equal((await s.get(`/api/v1/traces/${id}/flame`)).status, 200);
});

test('a file that is damaged in the store is found so, and made again', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b);
	const { id } = await s.trace(sampleTrace(59));
	await s.stop();
	fs.rmSync(path.join(s.data, 'cache'), { recursive: true });
	const bytes = fs.readFileSync(b.file(fileOf(id)));
	bytes[bytes.length >> 1] ^= 1;
	fs.writeFileSync(b.file(fileOf(id)), bytes);
	await s.start();
	assert.match((await s.get(`/api/v1/traces/${id}/flame`)).text, /it is being decoded again from its upload/);
	assert.equal((await s.decoded(id)).state, 'ready');
	assert.equal((await s.get(`/api/v1/traces/${id}/flame`)).status, 200);
});

test('a damaged local copy is fetched again, and nothing is decoded again', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b);
	const { id } = await s.trace(sampleTrace(59));
	await s.stop();
	fs.writeFileSync(path.join(s.data, 'cache', `${id}.db`), 'differs from the uploaded content');
	await s.start();
	const from = s.log.length;
	assert.equal((await s.get(`/api/v1/traces/${id}/flame`)).status, 200);
	assert.equal(b.count('GET', fileOf(id)), 1);
	assert.doesNotMatch(s.log.slice(from), /event=decoding/);
});

test('a client that cannot wait for a slow store is asked to retry, and finds the file then', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b, { args: ['--query-deadline=300'] });
	const { id } = await s.trace(sampleTrace(59));
	await s.stop();
	fs.rmSync(path.join(s.data, 'cache'), { recursive: true });
	await s.start();
	let pass;
	const held = new Promise((done) => (pass = done));
	b.fault = async (q) => {
		if (q.method === 'GET' && q.url.includes(fileOf(id))) await held;
	};
	const early = await s.get(`/api/v1/traces/${id}/flame`);
	assert.equal(early.status, 503, early.text);
	assert.match(early.text, /being fetched from the store/);
	pass();
	await until(() => (cached(s).includes(`${id}.db`) ? true : undefined), 'it came all the same');
	assert.equal((await s.get(`/api/v1/traces/${id}/flame`)).status, 200);
	assert.equal(b.count('GET', fileOf(id)), 1);
});

test('an object whose deletion got no response is not written again while the deletion may still arrive', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b);
	const { id } = await s.trace(sampleTrace(59));
	let lost = 0;
	b.fault = (q) => (q.method === 'DELETE' && q.url.includes(keyOf(sampleTrace(59))) && lost++ === 0 ? { drop: true } : undefined);
	assert.equal((await s.ask('DELETE', `/api/v1/traces/${id}`)).status, 204);
	await until(() => (b.keys().length === 0 ? true : undefined), 'all objects gone');
	const again = await s.post('/api/v1/traces', sampleTrace(59), {});
	assert.equal(again.status, 503, again.text);
	assert.match(again.text, /has not confirmed it/);
	assert.equal((await s.trace(sampleTrace(60))).state, 'ready', 'anything else is taken');
});

test('a check whose store becomes unavailable reports that, and no missing files', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b);
	await s.trace(sampleTrace(59));
	await s.stop();
	b.fault = (q) => (q.url.includes('/blobs/') ? { status: 503, code: 'SlowDown' } : undefined);
	const checked = await run(['check', '--data', s.data], { ...b.env, TRACEWELL_S3_TIMEOUT: '1' });
	assert.notEqual(checked.code, 0);
	assert.match(checked.reported, /the store returned 503/);
	assert.doesNotMatch(checked.reported, /missing|damaged|unreadable/);
});

const serveOn = (b, data, ...more) => run(['serve', '--data', data, '--listen', '127.0.0.1:0', ...b.args(...more)], b.env);

test('a prefix is one catalogue\'s: another, or a fresh one, does not start on it and deletes nothing', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b);
	const { id } = await s.trace(sampleTrace(64));
	await s.stop();
	const before = b.all();
	assert.ok(before.some((key) => key.startsWith('owner/')));
	const fresh = path.join(b.dir, 'fresh');
	assert.match((await serveOn(b, fresh)).reported, /belongs to another catalogue .*--s3-adopt/);
	const owner = before.find((key) => key.startsWith('owner/'));
	fs.renameSync(b.file(owner), path.join(b.dir, 'owner'));
	assert.match((await serveOn(b, fresh)).reported, /has files, but this catalogue has none/);
	fs.renameSync(path.join(b.dir, 'owner'), b.file(owner));
	assert.deepEqual(b.all(), before);
	fs.rmSync(path.join(s.data, 'storage_owner'));
	assert.match((await serveOn(b, s.data)).reported, /belongs to another catalogue/);
	s.args = b.args('--s3-adopt');
	await s.start();
	assert.equal((await s.get(`/api/v1/traces/${id}/flame`)).status, 200);
	await s.stop();
	assert.equal(b.all().filter((key) => key.startsWith('owner/')).length, 1);
	s.args = b.args();
	await s.start();
});

test('a catalogue that lacks most of the stored files is not used to sweep', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b);
	await s.trace(sampleTrace(65));
	await s.stop();
	const old = new Date(Date.now() - 25 * 3600 * 1000);
	for (let i = 10; i < 30; i++) {
		const key = `blobs/${i}/${String(i).repeat(32)}`;
		fs.mkdirSync(path.dirname(b.file(key)), { recursive: true });
		fs.copyFileSync(b.file(keyOf(sampleTrace(65))), b.file(key));
		fs.utimesSync(b.file(key), old, old);
	}
	const before = b.keys();
	s.args = b.args('--s3-sweep=1');
	await s.start();
	await until(() => (/20 of 23 files have no row: nothing was deleted/.test(s.log) ? true : undefined), 'no sweep');
	assert.deepEqual(b.keys(), before);
});

test('a store that is silent at the start is proven when it answers; a first start needs it', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b, { args: ['--s3-timeout=2'] });
	const { id } = await s.trace(sampleTrace(66));
	await s.stop();
	fs.rmSync(path.join(s.data, 'cache'), { recursive: true });
	b.fault = () => ({ drop: true });
	const first = await serveOn(b, path.join(b.dir, 'fresh'), '--s3-timeout=1');
	assert.equal(first.code, 1);
	assert.match(first.reported, /the store does not respond/);
	await s.start();
	assert.equal((await s.post('/api/v1/traces', sampleTrace(67))).status, 503);
	const kept = fs.readFileSync(b.file(keyOf(sampleTrace(66))));
	fs.rmSync(b.file(keyOf(sampleTrace(66)))); // another store answers
	b.fault = () => undefined;
	await until(() => (/none of the first 1 uploads of the catalogue is in the store/.test(s.log) ? true : undefined), 'it is found to be another');
	assert.equal((await ready(s)).status, 503);
	assert.equal((await s.post('/api/v1/traces', sampleTrace(67))).status, 503);
	fs.writeFileSync(b.file(keyOf(sampleTrace(66))), kept);
	await until(async () => ((await ready(s)).status === 200 ? true : undefined), 'ready');
	assert.equal((await s.get(`/api/v1/traces/${id}/flame`)).status, 200);
});

test('while another program uses the folder, the server deletes nothing', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b);
	const { id } = await s.trace(sampleTrace(68));
	const lock = spawn('flock', ['-s', path.join(s.data, 'storage.lock'), 'sh', '-c', 'echo held; cat'], { stdio: ['pipe', 'pipe', 'inherit'] });
	await new Promise((done) => lock.stdout.once('data', done));
	assert.equal((await s.ask('DELETE', `/api/v1/traces/${id}`)).status, 204);
	const deleted = b.count('DELETE', '');
	await until(async () => ((await ready(s)).status === 200 && b.log.push('GET tick') > 0 && b.count('GET', 'tick') > 20 ? true : undefined), 'a while');
	assert.equal(b.count('DELETE', ''), deleted);
	lock.stdin.end();
	await until(() => (b.keys().length === 0 ? true : undefined), 'then it is gone');
});

for (const step of ['spool_written', 'object_put', 'row_committed', 'job_claimed', 'child_done', 'trace_renamed', 'row_ready'])
	test(`kill -9 at ${step}`, async (t) => {
		const b = await startBucket(t);
		const s = await start(t, b);
		await s.ingest, await s.read;
		await s.stop();
		s.env = { ...s.env, TRACEWELL_CRASH_AT: step };
		await s.start();
		const answer = await s.post('/api/v1/traces', sampleTrace(52), { headers: { 'Idempotency-Key': 'once' } }).catch(() => undefined);
		await s.ended;
		s.env = { ...b.env };
		fs.rmSync(path.join(s.data, 'cache'), { recursive: true, force: true });
		await s.start();
		if (answer) assert.equal((await s.decoded(answer.json.id)).state, 'ready');
		const again = await s.post('/api/v1/traces', sampleTrace(52), { headers: { 'Idempotency-Key': 'once' } });
		const trace = await s.decoded(again.json.id);
		assert.equal(trace.state, 'ready');
		assert.equal((await s.get('/api/v1/traces')).json.total, 1);
		assert.deepEqual((await s.get(`/api/v1/traces/${trace.id}/raw/trace`)).bytes, sampleTrace(52));
	});

test('a wrong key, bucket or setup is reported with a message', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b);
	await s.trace(sampleTrace(53));
	await s.stop();
	const serve = (args, env = {}) => run(['serve', '--data', s.data, '--listen', '127.0.0.1:0', ...args], { ...b.env, ...env });
	const wrong = await serve(b.args(), { AWS_SECRET_ACCESS_KEY: 'guessed' });
	assert.equal(wrong.code, 1);
	assert.match(wrong.reported, /the store returned 403 .*SignatureDoesNotMatch/);
	assert.ok(!wrong.reported.includes('guessed'));
	assert.match((await serve(b.args(), { AWS_ACCESS_KEY_ID: '' })).reported, /set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/);
	assert.match((await serve([])).reported, /files of this data folder are in s3:\/\/files\/tw: set --blobs/);
	assert.match((await serve(['--blobs=s3://files/tx', ...b.args().slice(1)])).reported, /are in s3:\/\/files\/tw/);
	fs.rmSync(path.join(s.data, 'storage'));
	assert.match((await serve(['--blobs=s3://files/tx', ...b.args().slice(1)])).reported, /none of the first 1 uploads of the catalogue is in the store/);
	assert.match((await serve(['--blobs=s3://nowhere/tw', ...b.args().slice(1)])).reported, /no bucket of that name/);
	const doctor = (args, env = {}) => run(['doctor', ...args], { ...b.env, ...env });
	assert.match((await doctor([`--blobs=s3://files/tw`, `--s3-endpoint=${b.url}`])).reported, /good: s3:\/\/files\/tw responds|s3:\/\/files\/tw responds/);
	assert.match((await doctor([`--blobs=s3://files/tw`, `--s3-endpoint=${b.url}`], { AWS_SECRET_ACCESS_KEY: 'x' })).reported, /refuses: the store returned 403/);
	assert.match((await doctor(['--blobs=s3://files/tw', '--s3-endpoint=http://127.0.0.1:9'])).reported, /does not respond: the store does not respond/);
	assert.match((await serve(['--blobs=ftp://x'])).reported, /--blobs is s3:\/\/BUCKET/);
	assert.match((await serve([`--blobs=s3://files/tw`, '--s3-endpoint=http://127.0.0.1:9/x'])).reported, /the store's address is/);
});

test('the key may come from a file that changes, and the bucket stand in the host\'s name', async (t) => {
	const b = await startBucket(t);
	const file = path.join(b.dir, 'credentials');
	fs.writeFileSync(file, '[default]\naws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\n[other]\naws_access_key_id = X\n', { mode: 0o600 });
	const args = [`--blobs=s3://${b.name}/tw`, `--s3-endpoint=http://localhost:${b.port}`, '--s3-virtual-host', `--s3-credentials-file=${file}`, '--s3-timeout=3'];
	const s = await startServer(t, { args, env: { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '' } });
	assert.equal((await s.trace(sampleTrace(54))).state, 'ready');
	fs.writeFileSync(file, '[default]\naws_access_key_id = S3RVER\naws_secret_access_key = WRONG\n');
	assert.equal((await s.post('/api/v1/traces', sampleTrace(55))).status, 503);
	fs.writeFileSync(file, '[default]\naws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\n');
	await until(async () => ((await s.post('/api/v1/traces', sampleTrace(55))).status === 202 ? true : undefined), 'accepted');
});

test('check, sql, backup, export and import look there too', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b);
	const [one, other] = [await s.trace(sampleTrace(56)), await s.trace(sampleTrace(57))];
	await s.put('/api/v1/builds/b1/methods', sampleMapping);
	const check = (...more) => run(['check', '--data', s.data, ...more], b.env);
	for (const more of [[], ['--quick']]) {
		const answer = await check(...more);
		assert.equal(answer.code, 0, answer.reported);
	}
	const noted = await run(['audit', '--data', s.data, '--action', 'build.methods'], { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '' });
	assert.equal(noted.code, 0, 'a missing object is reported without its key: ' + noted.reported);
	const rows = await run(['sql', one.id, '--data', s.data, 'SELECT 6*7 AS n'], b.env);
	assert.match(rows.reported, /42/);
	const copy = path.join(b.dir, 'copy');
	const backup = await run(['backup', '--data', s.data, '--to', copy], b.env);
	assert.equal(backup.code, 0, backup.reported);
	const restored = await startServer(t, { data: copy });
	assert.deepEqual((await restored.get(`/api/v1/traces/${other.id}/flame`, { key: s.read })).json, (await s.get(`/api/v1/traces/${other.id}/flame`)).json);

	const archive = path.join(b.dir, 'project.tar.zst');
	const exported = await run(['export', '--data', s.data, '--project', 'test', '-o', archive], b.env);
	assert.equal(exported.code, 0, exported.reported);
	const imported = await run(['import', archive, '--data', s.data, '--project', 'again'], b.env);
	assert.equal(imported.code, 0, imported.reported);

	fs.rmSync(b.file(fileOf(one.id)));
	assert.match((await check()).reported, /decoded file of trace .* is missing; its upload is intact/);
	assert.match((await check('--repair')).reported, /repaired: .*queued to be decoded again/);
	assert.equal((await s.decoded(one.id)).state, 'ready');
	await until(() => (b.keys().includes(fileOf(one.id)) ? true : undefined), 'decoded again');
	b.fault = () => ({ status: 500, code: 'InternalError' });
	assert.match((await run(['check', '--data', s.data, '--quick'], { ...b.env, TRACEWELL_S3_TIMEOUT: '1' })).reported, /the store returned 500/);
	b.fault = () => undefined;
	assert.match(spawnSync(binary(), ['check', '--data', s.data], { encoding: 'utf8', env: { ...process.env, AWS_ACCESS_KEY_ID: '' } }).stderr, /set AWS_ACCESS_KEY_ID/);
	await restored.stop();
});

const announce = (s, body, more = {}) => s.post('/api/v1/uploads/direct', JSON.stringify({ bytes: body.length, sha256: sha256(body), ...more.said }), { key: more.key ?? s.ingest, headers: more.headers });
const putTo = (reported, body) => fetch(reported.url, { method: reported.method, body, headers: reported.headers });

test('a trace whose upload is gone is moved to another store as it was decoded', async (t) => {
	const [b, c] = [await startBucket(t), await startBucket(t, 'others')];
	const s = await start(t, b, { args: ['--retention-every', '1'] });
	const { id } = await s.trace(sampleTrace(56));
	s.sql(`UPDATE trace SET created_ms=created_ms-${40 * 86400000}`);
	assert.equal((await s.ask('PUT', '/api/v1/retention', { key: s.admin, body: '{"uploads_max_age_days":30}' })).status, 200);
	await until(async () => ((await s.get(`/api/v1/traces/${id}`)).json.has_upload ? undefined : true), 'its upload deleted');
	const archive = path.join(b.dir, 'project.tar.zst');
	assert.equal((await run(['export', '--data', s.data, '--project', 'test', '-o', archive], b.env)).code, 0);
	const other = await start(t, c);
	assert.ok(other.read);
	const imported = await run(['import', archive, '--data', other.data], c.env);
	assert.equal(imported.code, 0, imported.reported);
	assert.match(imported.reported, /^1 trace/, imported.reported);
	assert.ok(c.keys().includes(fileOf(id)), c.keys().join(' '));
	assert.ok(!fs.existsSync(path.join(other.data, 'blobs')) && !fs.existsSync(path.join(other.data, 'traces')));
	assert.deepEqual((await other.get(`/api/v1/traces/${id}/flame`)).json, (await s.get(`/api/v1/traces/${id}/flame`)).json);
});

test('a device puts its trace straight into the store', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b, { args: ['--max-open-uploads=3'] });
	const body = sampleTrace(60);
	const begun = await announce(s, body, { said: { meta: { build_id: 'b1', scenario: 'cold', started_at: 1700000000000, labels: '{"user":"u1"}' } } });
	assert.equal(begun.status, 201, begun.text);
	assert.deepEqual(Object.keys(begun.json).sort(), ['complete_url', 'expires_ms', 'headers', 'id', 'method', 'url']);
	assert.ok(begun.json.expires_ms > Date.now() && begun.json.expires_ms < Date.now() + 3700e3);
	const early = await s.post(begun.json.complete_url);
	assert.equal(early.status, 409, early.text);
	assert.match(early.json.error.message, /was not uploaded yet/);
	assert.equal((await fetch(begun.json.url, { method: 'PUT', body: 'x', headers: begun.json.headers }).catch(() => ({ status: 0 }))).status === 200, false, 'another length is not signed');
	assert.equal((await putTo({ ...begun.json, url: begun.json.url.replace(begun.json.id, 'x'.repeat(26)) }, body)).status, 403, 'nor another key');
	assert.equal((await putTo(begun.json, body)).status, 200);

	const stranger = s.key('ingest', 'other');
	assert.equal((await s.post(begun.json.complete_url, undefined, { key: stranger })).status, 404, 'it is its key\'s alone');
	const done = await s.post(begun.json.complete_url);
	assert.equal(done.status, 202, done.text);
	const trace = await s.decoded(done.json.id);
	assert.equal(trace.state, 'ready');
	assert.equal(trace.meta.build_id, 'b1');
	assert.equal(trace.meta.labels.user, 'u1');
	assert.deepEqual((await s.get(`/api/v1/traces/${trace.id}/raw/trace`)).bytes, body);
	const again = await s.post(begun.json.complete_url);
	assert.equal(again.status, 200, again.text);
	assert.equal(again.json.id, trace.id);
	assert.equal((await s.get('/metrics/history', { key: null })).json.series.uploads.at(-1), 1, 'counted once');
	await until(() => (b.keys().filter((key) => key.startsWith('incoming/')).length === 1 ? true : undefined), 'only what it became is noted');

	const lie = await announce(s, sampleTrace(61));
	const other = Buffer.from(sampleTrace(61));
	other[100] ^= 1;
	assert.equal((await putTo(lie.json, other)).status, 400);
	b.verifies = false; // a store that knows no checksums
	assert.equal((await putTo(lie.json, other)).status, 200);
	assert.equal((await s.post(lie.json.complete_url)).status, 460);
	await until(async () => ((await s.post(lie.json.complete_url)).status === 404 ? true : undefined), 'it is over');

	const junk = Buffer.alloc(500, 7);
	const wrong = await announce(s, junk);
	assert.equal((await putTo(wrong.json, junk)).status, 200);
	assert.equal((await s.post(wrong.json.complete_url)).status, 415);
	await until(() => (b.keys().filter((key) => key.endsWith('.json')).length === 0 ? true : undefined), 'what was refused is gone');
	assert.equal((await s.get('/api/v1/traces')).json.total, 1);

	for (let i = 0; i < 3; i++) assert.equal((await announce(s, sampleTrace(70 + i))).status, 201);
	const full = await announce(s, sampleTrace(80));
	assert.equal(full.status, 429, full.text);
	for (const said of [{ bytes: 0 }, { bytes: -1 }, { sha256: 'x' }, { meta: [] }, { meta: { nonsense: 'x' } }, { meta: { app: {} } }, { more: 1 }])
		assert.equal((await announce(s, body, { said })).status, 400, JSON.stringify(said));
	assert.equal((await announce(s, body, { said: { bytes: 1e12 } })).status, 413);
});

test('two concurrent completions make one trace; a kill in between loses nothing', async (t) => {
	const b = await startBucket(t);
	const s = await start(t, b);
	const body = sampleTrace(62);
	const begun = (await announce(s, body)).json;
	await putTo(begun, body);
	await s.stop();
	s.env = { ...b.env, TRACEWELL_CRASH_AT: 'row_committed' };
	await s.start();
	await s.post(begun.complete_url).catch(() => undefined);
	await s.ended;
	s.env = { ...b.env };
	await s.start();
	const answers = await Promise.all([s.post(begun.complete_url), s.post(begun.complete_url)]);
	for (const a of answers) assert.equal(a.status, 200, a.text);
	assert.equal((await s.get('/api/v1/traces')).json.total, 1);
	assert.equal((await s.decoded(answers[0].json.id)).state, 'ready');
});

test('a data folder has no such addresses', async (t) => {
	const s = await startServer(t);
	const answer = await announce(s, sampleTrace(63));
	assert.equal(answer.status, 409);
	assert.match(answer.json.error.message, /in its folder: send them to \/api\/v1\/traces/);
	assert.equal((await s.post('/api/v1/uploads/direct/01ARZ3NDEKTSV4RRFFQ69G5FAV/complete')).status, 409);
});
