/*
 * small_files.test.mjs - small uploads and decoded traces in rows of PostgreSQL (--small-files): no object is written for
 * them, every server and program reads them, and they go with their trace; larger ones are objects as ever.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { blobKey, fileKey, recordKey, startCluster } from '../cluster.mjs';
import { sampleMapping, sampleTrace } from '../make.mjs';
import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { binary, newFolder, startServer, until } from '../server.mjs';

const skip = !postgresIsThere && 'PostgreSQL 15 or later is not installed';
const SMALL = '--small-files=16K';
const upload = (calls) => sampleTrace(calls, 4000);
const LARGE = 9000; // calls of an upload over 16K

/* Asynchronous: the store is in this process. */
function run(args, env) {
	const child = spawn(binary(), args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
	let text = '';
	for (const out of [child.stdout, child.stderr]) out.setEncoding('utf8').on('data', (part) => (text += part));
	return new Promise((done) => child.once('close', (code) => done({ code, text })));
}

async function begin(t, name, args = [SMALL]) {
	const db = await startPostgres(t);
	const c = await startCluster(t, { db, name });
	const s = await c.serve({ args });
	return { db, c, s, rows: (where = 'true') => Number(db.sql(`SELECT count(*) FROM small_file WHERE ${where}`, name)) };
}

test('a small trace costs no object, and is read at any server', { skip, timeout: 900000 }, async (t) => {
	const { c, s, rows } = await begin(t, 'rows');
	const other = await c.serve({ args: [SMALL] });
	const kept = [];
	for (let calls = 20; calls < 30; calls++) kept.push(await s.trace(upload(calls), { query: { app: 'shop', version_name: '1', build_id: 'b' } }));
	assert.ok(kept.every((trace) => trace.state === 'ready'));
	assert.equal(rows("part='trace'"), 10);
	assert.equal(rows("part='decoded'"), 10);
	await until(async () => (((await s.get('/api/v1/fleet/scenarios?by=all')).json?.traces === 10) ? true : undefined), 'all are counted');
	assert.deepEqual(c.bucket.keys(), [], 'no object');
	assert.equal(c.bucket.count('PUT', '/traces/') + c.bucket.count('PUT', '/blobs/') + c.bucket.count('PUT', '/records/'), 0);
	for (const of of [s, other]) {
		assert.deepEqual((await of.get(`/api/v1/traces/${kept[3].id}/raw/trace`)).bytes, upload(23));
		assert.match(JSON.stringify((await of.get(`/api/v1/traces/${kept[3].id}/flame`)).json), /unknown:1/);
	}
	assert.equal((await s.put('/api/v1/builds/b/methods', sampleMapping)).status, 200);
	await until(async () => (/com\.example\.app/.test(JSON.stringify((await other.get(`/api/v1/traces/${kept[4].id}/flame`)).json)) ? true : undefined), 'names of a late mapping');
	assert.ok(c.bucket.keys().includes(blobKey(sampleMapping)), 'a mapping is an object');
});

test('a larger trace is an object with a record, and one of both kinds too', { skip, timeout: 900000 }, async (t) => {
	const { c, s, rows } = await begin(t, 'large');
	const large = await s.trace(upload(LARGE));
	assert.ok(upload(LARGE).length > 16384 && large.state === 'ready');
	await until(() => (c.bucket.keys().includes(recordKey(large.id)) ? true : undefined), 'its record');
	assert.ok(c.bucket.keys().includes(blobKey(upload(LARGE))));
	assert.equal(rows("part='trace'"), 0);
	assert.equal(rows("part='decoded'") === 0, c.bucket.keys().includes(fileKey(large.id)), 'the decoded file is in one place');
	assert.deepEqual((await s.get(`/api/v1/traces/${large.id}/raw/trace`)).bytes, upload(LARGE));
});

test('rows go with their trace, and equal uploads have their own', { skip, timeout: 900000 }, async (t) => {
	const { db, c, s, rows } = await begin(t, 'deleted');
	const [one, other] = [await s.trace(upload(20)), await s.trace(upload(20), { query: { build_id: 'x' } })];
	assert.notEqual(one.id, other.id);
	assert.equal((await s.ask('DELETE', `/api/v1/traces/${one.id}`)).status, 204);
	assert.equal(rows(`trace_id='${one.id}'`), 0);
	assert.deepEqual((await s.get(`/api/v1/traces/${other.id}/raw/trace`)).bytes, upload(20));
	assert.equal((await s.ask('DELETE', `/api/v1/traces/${other.id}`)).status, 204);
	assert.equal(rows(), 0);
	assert.equal(db.sql('SELECT count(*) FROM file_drop', 'deleted'), '0', 'there is no object to delete');
	assert.equal(c.bucket.count('DELETE', '/blobs/') + c.bucket.count('DELETE', '/traces/') + c.bucket.count('DELETE', '/records/'), 0);
});

test('content stored as object and as row is deleted with each trace separately', { skip, timeout: 900000 }, async (t) => {
	const { db, c, s, rows } = await begin(t, 'two', []);
	const before = await s.trace(upload(21));
	assert.ok(c.bucket.keys().includes(blobKey(upload(21))) && rows() === 0);
	const now = await c.serve({ args: [SMALL] });
	await s.stop(); // it would decode without rows
	const after = await now.trace(upload(21), { query: { build_id: 'x' } });
	assert.equal(rows(`trace_id='${after.id}'`), 2);
	assert.equal((await now.ask('DELETE', `/api/v1/traces/${before.id}`)).status, 204);
	const old = new Date(Date.now() - 2 * 3600 * 1000); // a young object may belong to another server's upload
	for (const key of c.bucket.keys()) fs.utimesSync(c.bucket.file(key), old, old);
	db.sql('UPDATE file_drop SET due_ms=0', 'two');
	await until(() => (c.bucket.keys().length === 0 ? true : undefined), () => `the objects are gone: ${c.bucket.keys()}`, 60);
	await until(() => db.sql('SELECT count(*) FROM file_drop', 'two') === '0' || undefined, 'nothing is left to do', 150);
	assert.deepEqual((await now.get(`/api/v1/traces/${after.id}/raw/trace`)).bytes, upload(21));
});

test('a damaged row is decoded again, here to an object', { skip, timeout: 900000 }, async (t) => {
	const { db, c, s, rows } = await begin(t, 'again');
	const trace = await s.trace(upload(22));
	await s.stop();
	const now = await c.serve();
	db.sql("UPDATE small_file SET content='\\x0102' WHERE part='decoded'", 'again');
	await now.get(`/api/v1/traces/${trace.id}/flame`);
	await until(() => (c.bucket.keys().includes(fileKey(trace.id)) ? true : undefined), 'an object');
	await until(() => (rows("part='decoded'") === 0 ? true : undefined), 'no row');
	assert.equal(rows("part='trace'"), 1, 'the upload stays where it is');
	assert.match(JSON.stringify((await now.get(`/api/v1/traces/${trace.id}/flame`)).json), /unknown:1/);
});

test('uploads and decodes go on exactly once when servers are killed', { skip, timeout: 900000 }, async (t) => {
	const { c, rows } = await begin(t, 'killed');
	await c.serve({ args: [SMALL] });
	const load = c.send(3, { least: 12 });
	for (let i = 0; i < 3; i++) {
		await load.more(8, 'uploads go on');
		c.servers[1].child.kill('SIGKILL');
		await c.servers[1].ended;
		c.servers.pop();
		await c.serve({ args: [SMALL] });
	}
	await load.more(8, 'uploads go on');
	await load.end();
	const count = async () => (await c.servers[0].get('/api/v1/traces', { query: { state: 'ready', limit: 1 } })).json.total;
	await until(async () => ((await count()) === load.kept.size ? true : undefined), 'all decoded', 90);
	await until(async () => ((await c.servers[0].get('/api/v1/fleet/scenarios?by=all')).json?.traces === load.kept.size ? true : undefined), 'all counted once', 90);
	assert.equal(rows("part='trace'"), load.kept.size);
	assert.equal(rows("part='decoded'"), load.kept.size);
	for (const { id, calls, of } of load.kept.values()) assert.deepEqual((await c.servers[0].get(`/api/v1/traces/${id}/raw/trace`)).bytes, sampleTrace(calls, 4000 + of), id);
	assert.deepEqual(c.bucket.keys(), []);
});

test('check and migrate take rows for files', { skip, timeout: 900000 }, async (t) => {
	const { c, s } = await begin(t, 'programs');
	const kept = [await s.trace(upload(23)), await s.trace(upload(24))];
	const env = { ...c.bucket.env, TRACEWELL_CATALOG: c.url };
	const check = await run(['check', '--data', s.data], env);
	assert.equal(check.code, 0, check.text);
	const to = path.join(c.home, 'folder');
	await s.stop();
	const migrate = await run(['migrate', '--from', s.data, '--data', to, '--to-blobs', ''], { ...c.bucket.env });
	assert.equal(migrate.code, 0, migrate.text);
	const folder = await startServer(t, { data: to });
	for (const [i, { id }] of kept.entries()) {
		assert.deepEqual((await folder.get(`/api/v1/traces/${id}/raw/trace`, { key: c.keys.read })).bytes, upload(23 + i));
		assert.match(JSON.stringify((await folder.get(`/api/v1/traces/${id}/flame`, { key: c.keys.read })).json), /unknown:1/);
	}
});

test('the setting needs PostgreSQL and a store', { timeout: 900000 }, async (t) => {
	const data = newFolder(t, 'tw-small-');
	const { code, text } = await run(['serve', '--data', data, '--listen', '127.0.0.1:0', SMALL], {});
	assert.notEqual(code, 0);
	assert.match(text, /--small-files needs a catalogue in PostgreSQL/);
});
