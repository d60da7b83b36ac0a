/*
 * storage_shared.test.mjs - several servers on one catalogue in PostgreSQL and one S3-compatible store, with no
 * folder in common: what one takes the other reads, what one deletes the other may put, one of them sweeps.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { present, startBucket } from '../bucket.mjs';
import { sampleMapping, sampleTrace } from '../make.mjs';
import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { Server, atEnd, binary, inFull, newFolder, until } from '../server.mjs';

const skip = postgresIsThere ? false : 'PostgreSQL 15 or later is not installed';
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
const keyOf = (body) => `blobs/${sha256(body).slice(0, 2)}/${sha256(body)}`;
const fileOf = (id) => `traces/${id.slice(-2)}/${id}.db`;
const HOUR_MS = 3600 * 1000;

/* A database, a store, and servers with a folder each. */
async function setUp(t, name) {
	const db = await startPostgres(t);
	const bucket = await startBucket(t);
	const home = newFolder(t, 'tracewell-shared-');
	fs.writeFileSync(path.join(home, 'secret.key'), randomBytes(32).toString('hex') + '\n', { mode: 0o600 });
	let n = 0;
	const args = (...more) => bucket.args('--catalog', db.url(name), '--several-servers', '--secret-key-file', path.join(home, 'secret.key'), ...more);
	const serve = async (more = [], env = {}) => {
		const data = path.join(home, `node${++n}`);
		fs.mkdirSync(data);
		const s = new Server(data, args(...more), { ...bucket.env, TRACEWELL_CATALOG: db.url(name), ...env });
		atEnd(t, () => s.stop());
		await s.start();
		return s;
	};
	return { db, bucket, home, args, serve };
}

/* Keys are made by a command that finds the catalogue by a folder: those of the first are everybody's. */
function share(from, to) {
	for (const scope of ['ingest', 'read', 'write', 'admin']) Object.defineProperty(to, scope, { value: from[scope], configurable: true });
}

const refused = (args, env) => {
	const child = spawn(binary(), ['serve', '--listen', '127.0.0.1:0', ...args], { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...env } });
	let reported = '';
	child.stderr.setEncoding('utf8').on('data', (text) => (reported += text));
	return new Promise((done) => child.once('close', (code) => done({ code, reported })));
};
const age = (b, key, ms) => {
	const at = new Date(Date.now() - ms);
	fs.utimesSync(b.file(key), at, at);
};

test('uploads of one server are read and completed by the other, without shared files', { skip, timeout: 900_000 }, async (t) => {
	const { bucket: b, db, home, args, serve } = await setUp(t, 'shared');
	const [one, other] = [await serve(), await serve()];
	share(one, other);
	const body = sampleTrace(40);
	const trace = await one.trace(body, { query: { build_id: 'b1' } });
	assert.equal(trace.state, 'ready');
	assert.deepEqual((await present(other, `/api/v1/traces/${trace.id}/raw/trace`)).bytes, body);
	assert.equal((await other.put('/api/v1/builds/b1/methods', sampleMapping)).status, 200);
	assert.match((await one.flameLines(trace.id, 4000))[0], /com\.example\.app\.Class0\.method1 /);
	assert.match((await other.flameLines(trace.id, 4000))[0], /com\.example\.app\.Class0\.method1 /);
	for (const s of [one, other]) {
		assert.equal((await s.get('/readyz', { key: null })).json.checks.storage.engine, 's3');
		assert.ok(!fs.existsSync(path.join(s.data, 'blobs')) && !fs.existsSync(path.join(s.data, 'storage_owner')));
	}
	assert.deepEqual(b.all().filter((key) => key.startsWith('owner/')), [`owner/${db.sql('SELECT identity FROM catalogue_identity', 'shared')}`]);

	await t.test('a server that dies with a decode leaves it to the others', async () => {
		const dying = await serve([], { TRACEWELL_CRASH_AT: 'trace_renamed' });
		share(one, dying);
		await one.stop();
		await other.stop();
		await dying.post('/api/v1/traces', sampleTrace(41), {}).catch(() => null);
		assert.equal((await dying.ended).signal, 'SIGKILL');
		if (inFull(false, true)) db.sql('UPDATE job SET due_ms=0 WHERE claimed=1', 'shared'); // as if its lease had run out
		await other.start();
		await until(async () => ((await other.get('/api/v1/traces', { query: { state: 'ready' } })).json.total === 2 ? true : undefined), 'the other has done it', 120);
		await one.start();
		assert.equal((await one.get('/api/v1/traces', { query: { state: 'ready' } })).json.total, 2);
	});

	await t.test('another store, and a folder without one, are refused', async () => {
		const fresh = path.join(home, 'fresh');
		const elsewhere = await refused(['--data', fresh, ...args(`--blobs=s3://${b.name}/elsewhere`)], b.env);
		assert.notEqual(elsewhere.code, 0);
		assert.match(elsewhere.reported, /another store/);
		const bare = await refused(['--data', path.join(home, 'bare'), '--catalog', db.url('shared'), '--several-servers'], b.env);
		assert.notEqual(bare.code, 0);
		assert.match(bare.reported, /another store/);
	});
});

test('one server may delete content while another stores it', { skip, timeout: 900_000 }, async (t) => {
	const { bucket: b, serve } = await setUp(t, 'race');
	const [one, other] = [await serve(), await serve()];
	share(one, other);
	const body = sampleTrace(60);
	const gone = await one.trace(body);
	assert.equal((await one.ask('DELETE', `/api/v1/traces/${gone.id}`)).status, 204);
	const kept = await one.trace(sampleTrace(61));
	assert.equal(b.count('DELETE', keyOf(body)), 0, 'what was put a moment ago stays for now');

	let let_go;
	const held = new Promise((done) => (let_go = done));
	b.fault = async (q) => {
		if (q.method === 'DELETE' && q.url.includes(keyOf(body))) await held;
	};
	age(b, keyOf(body), HOUR_MS);
	await until(() => (b.count('DELETE', keyOf(body)) ? true : undefined), 'its deletion under way', 120);
	const again = other.trace(body);
	await until(() => (other.spool().length > 0 ? true : undefined), 'the same upload at the other');
	assert.equal((await other.trace(sampleTrace(62))).state, 'ready', 'one that came after it is stored');
	assert.equal(b.log.slice(b.log.findIndex((line) => line.startsWith('DELETE'))).filter((line) => line.startsWith('PUT') && line.includes(keyOf(body))).length, 0, 'it is not put meanwhile');
	let_go();
	const trace = await again;
	assert.equal(trace.state, 'ready');
	assert.ok(b.keys().includes(keyOf(body)), 'and is there in the end');
	assert.deepEqual((await present(one, `/api/v1/traces/${trace.id}/raw/trace`)).bytes, body);
	assert.equal((await present(one, `/api/v1/traces/${kept.id}/raw/trace`)).status, 200);
	assert.deepEqual(b.keys().filter((key) => key === fileOf(trace.id)), [fileOf(trace.id)]);
});

test('a deleter that lost its claim claims again, and two servers cannot share a folder', { skip, timeout: 900_000 }, async (t) => {
	const { bucket: b, db, args, serve } = await setUp(t, 'lost');
	const one = await serve();
	const body = sampleTrace(64);
	const gone = await one.trace(body);
	const second = await refused(['--data', one.data, ...args()], b.env);
	assert.notEqual(second.code, 0);
	assert.match(second.reported, /a separate --data/);

	age(b, keyOf(body), HOUR_MS);
	const from = b.log.length;
	let lost = false;
	b.fault = async (q) => {
		if (lost || q.method !== 'HEAD' || !q.url.includes(keyOf(body))) return;
		lost = true;
		db.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid<>pg_backend_pid() AND application_name='tracewell'", 'lost');
	};
	assert.equal((await one.ask('DELETE', `/api/v1/traces/${gone.id}`)).status, 204);
	await until(() => (b.count('DELETE', keyOf(body)) ? true : undefined), 'it is deleted in the end', 120);
	const asked = b.log.slice(from).filter((line) => line.includes(keyOf(body)));
	assert.ok(asked.slice(0, asked.findIndex((line) => line.startsWith('DELETE'))).filter((line) => line.startsWith('HEAD')).length >= 2, asked.join('\n'));
});

test('one of several servers sweeps', { skip, timeout: 900_000 }, async (t) => {
	const { bucket: b, serve } = await setUp(t, 'sweep');
	const one = await serve();
	const trace = await one.trace(sampleTrace(70));
	const tus = { 'Tus-Resumable': '1.0.0', 'Content-Type': 'application/offset+octet-stream' };
	const open = await one.ask('POST', '/api/v1/uploads', { key: one.ingest, headers: { ...tus, 'Upload-Length': '10' }, body: 'half ' });
	assert.equal(open.headers.get('upload-offset'), '5', open.text);
	const half = b.keys().find((key) => key.startsWith('pieces/'));
	const lost = ['blobs/aa/' + 'a'.repeat(64), half.replace(/.{26}$/, '01ARZ3NDEKTSV4RRFFQ69G5FAV')];
	for (const key of lost) {
		fs.mkdirSync(path.dirname(b.file(key)), { recursive: true });
		fs.copyFileSync(b.file(keyOf(sampleTrace(70))), b.file(key));
		fs.copyFileSync(b.file(keyOf(sampleTrace(70))).replace(/object$/, 'metadata.json'), b.file(key).replace(/object$/, 'metadata.json'));
	}
	for (const key of b.keys()) age(b, key, 25 * HOUR_MS);
	const servers = [await serve(['--s3-sweep=1']), await serve(['--s3-sweep=1'])];
	await until(() => (lost.some((key) => b.keys().includes(key)) ? undefined : true), 'what no row names is gone', 120);
	assert.ok(b.keys().includes(half), 'a piece of an upload that is open stays');
	const times = (s) => s.log.split('event=storage_swept').length - 1;
	await until(() => (servers.reduce((sum, s) => sum + times(s), 0) >= 2 ? true : undefined), 'two sweeps', 120);
	assert.equal(servers.filter((s) => times(s) > 0).length, 1, 'all by one');
	assert.equal((await present(one, `/api/v1/traces/${trace.id}/raw/trace`)).status, 200);
});
