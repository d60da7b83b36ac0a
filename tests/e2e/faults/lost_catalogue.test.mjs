/*
 * lost_catalogue.test.mjs - a catalogue that is missing, older or another's deletes nothing: the server refuses to start, sets
 * unknown files aside in lost/, and `tracewell check --rebuild` makes a catalogue from the files.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import zlib from 'node:zlib';

import { startBucket } from '../bucket.mjs';
import { form, sampleMapping, sampleTrace, systemTrace } from '../make.mjs';
import { Server, atEnd, binary, newFolder, root, until } from '../server.mjs';

const golden = (name) => fs.readFileSync(path.join(root, 'tests/golden/anr', name, 'input'));
const CATALOGUE = ['catalogue.db', 'catalogue.db-wal', 'catalogue.db-shm'];
const json = (o) => JSON.stringify(o);

function folder(t) {
	return newFolder(t, 'tracewell-lost-');
}

/* A server whose catalogue is a file in its folder, wherever the other tests have theirs. */
async function serve(t, data, { args = [], env = {} } = {}) {
	const s = new Server(data, args, env);
	s.args = args;
	s.schema = undefined;
	await s.start();
	atEnd(t, () => s.stop());
	return s;
}

/* The error message of a server that does not start. */
async function refused(t, data, options) {
	await assert.rejects(serve(t, data, options), (e) => (assert.match(e.message, /the server ended/), (refused.why = e.message), true));
	return refused.why;
}

/* Not spawnSync: a store may be in this process. */
function run(args, env) {
	const child = spawn(binary(), args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
	const got = { out: '', stderr: '' };
	child.stdout.setEncoding('utf8').on('data', (text) => (got.out += text));
	child.stderr.setEncoding('utf8').on('data', (text) => (got.stderr += text));
	return new Promise((done) => child.once('close', (code) => done({ code, ...got })));
}

const check = (data, ...args) => run(['check', '--data', data, ...args]);

function below(...parts) {
	const dir = path.join(...parts);
	return !fs.existsSync(dir) ? [] : fs.readdirSync(dir, { recursive: true, withFileTypes: true })
		.filter((e) => e.isFile()).map((e) => path.relative(dir, path.join(e.parentPath ?? e.path, e.name))).sort();
}

const kept = (data) => [...below(data, 'blobs'), ...below(data, 'traces')];

function moveCatalogue(from, to) {
	fs.mkdirSync(to, { recursive: true });
	for (const name of CATALOGUE) if (fs.existsSync(path.join(from, name))) fs.renameSync(path.join(from, name), path.join(to, name));
}

function copyCatalogue(from, to) {
	fs.mkdirSync(to, { recursive: true });
	for (const name of CATALOGUE) if (fs.existsSync(path.join(from, name))) fs.copyFileSync(path.join(from, name), path.join(to, name));
}

test('without its catalogue a folder with files is not served, and nothing in it is deleted', async (t) => {
	const data = folder(t);
	const s = await serve(t, data);
	for (let i = 0; i < 3; i++) await s.trace(sampleTrace(20 + i));
	await s.stop();
	const files = kept(data);
	assert.equal(files.length, 6);
	moveCatalogue(data, path.join(data, 'away'));

	const why = await refused(t, data);
	assert.match(why, /has 3 uploads and 3 decoded traces, but no catalogue: restore it, or run `tracewell check --rebuild`, or start once with --adopt/);
	assert.deepEqual(kept(data), files);
	assert.ok(!fs.existsSync(path.join(data, 'catalogue.db')), 'no empty catalogue is left');
	const checked = await check(data);
	assert.equal(checked.code, 1);
	assert.match(checked.stderr, /has files but no catalogue: restore catalogue\.db .*check --rebuild/);

	/* an empty one, or one of another folder */
	const other = folder(t);
	const fresh = await serve(t, other);
	await fresh.stop();
	copyCatalogue(other, data);
	assert.match(await refused(t, data), /the catalogue lacks 3 of 3 traces in .*: restore it, or move it away and run `tracewell check --rebuild`, or start once with --adopt/);
	assert.deepEqual(kept(data), files);

	const adopted = await serve(t, data, { args: ['--adopt'] });
	await until(() => (kept(data).length === 0 ? true : undefined), 'unknown files are moved');
	await adopted.stop();
	const [day] = fs.readdirSync(path.join(data, 'lost'));
	assert.deepEqual([...below(data, 'lost', day, 'blobs'), ...below(data, 'lost', day, 'traces')], files);
	assert.equal(below(data, 'lost', day, 'records').length, 3);
	const listed = await check(data);
	assert.equal(listed.code, 0, listed.stderr);
	assert.match(listed.out, new RegExp(`lost: 9 files, \\d+\\.\\d MB, in .*/lost/${day}`));
	const lines = (await check(data, '--json')).out.trim().split('\n').map((line) => JSON.parse(line));
	assert.deepEqual([lines.length, lines[0].problem], [9, 'lost']);

	/* the right catalogue after all */
	for (const name of CATALOGUE) fs.rmSync(path.join(data, name), { force: true });
	moveCatalogue(path.join(data, 'away'), data);
	const again = await serve(t, data);
	await until(() => (kept(data).length === 6 ? true : undefined), 'known files come back');
	assert.equal((await again.get('/api/v1/traces')).json.total, 3);
	assert.equal((await check(data)).code, 0);
});

test('an older catalogue is refused; one that lacks a few traces sets them aside until the newer is back', async (t) => {
	const data = folder(t), old = path.join(data, 'older'), recent = path.join(data, 'recent'), newest = path.join(data, 'newest');
	let s = await serve(t, data);
	const keys = { read: s.read, ingest: s.ingest };
	await s.trace(sampleTrace(11));
	await s.stop();
	copyCatalogue(data, old);
	const start = async (options) => Object.assign(await serve(t, data, options), { readKey: keys.read, ingestKey: keys.ingest });
	s = await start();
	await s.trace(sampleTrace(12));
	await s.trace(sampleTrace(13));
	await s.stop();
	copyCatalogue(data, recent);
	s = await start();
	const last = await s.trace(sampleTrace(14));
	await s.stop();
	copyCatalogue(data, newest);
	const files = kept(data);
	const restore = (from) => {
		for (const name of CATALOGUE) fs.rmSync(path.join(data, name), { force: true });
		copyCatalogue(from, data);
	};

	restore(old);
	assert.match(await refused(t, data), /the catalogue lacks 3 of 4 traces/);
	assert.deepEqual(kept(data), files);

	restore(recent);
	s = await start();
	await until(() => (kept(data).length === files.length - 2 ? true : undefined), 'an upload and a decoded trace are set aside');
	assert.equal((await s.get(`/api/v1/traces/${last.id}`)).status, 404);
	await s.stop();
	assert.match(s.log, /event=swept blobs=1 traces=1 records=1 pieces=0 to=lost/);

	restore(newest);
	s = await start();
	await until(() => (kept(data).length === files.length ? true : undefined), 'both are back');
	assert.equal((await s.get(`/api/v1/traces/${last.id}/flame`)).status, 200);
	assert.deepEqual(below(data, 'lost'), []);
});

test('an accepted upload that was set aside before its decode is back with the newer catalogue', async (t) => {
	const data = folder(t), recent = path.join(data, 'recent'), newest = path.join(data, 'newest');
	let s = await serve(t, data);
	const keys = { readKey: s.read, ingestKey: s.ingest };
	await s.trace(sampleTrace(12));
	await s.stop();
	copyCatalogue(data, recent);
	const start = async (options) => Object.assign(await serve(t, data, options), keys);
	s = await start({ env: { TRACEWELL_WORKER_FAULT: 'sleep' } });
	const sent = await s.post('/api/v1/traces', sampleTrace(14));
	assert.equal(sent.status, 202);
	await s.stop('SIGKILL');
	await s.ended;
	copyCatalogue(data, newest);
	const blobs = below(data, 'blobs');
	const restore = (from) => {
		for (const name of CATALOGUE) fs.rmSync(path.join(data, name), { force: true });
		copyCatalogue(from, data);
	};

	restore(recent);
	s = await start();
	await until(() => (below(data, 'blobs').length === blobs.length - 1 ? true : undefined), 'the upload is set aside');
	await s.stop();
	restore(newest);
	s = await start();
	assert.equal((await s.decoded(sent.json.id)).state, 'ready');
	assert.deepEqual(below(data, 'blobs'), blobs);
});

test('files left by a crash are moved to lost/ and remain for --lost-days', async (t) => {
	const data = folder(t);
	let s = await serve(t, data);
	await s.trace(sampleTrace(15));
	await s.stop('SIGKILL');
	await s.ended;
	const sha = 'ab'.repeat(32), blob = path.join('blobs/ab', sha), decoded = 'traces/11/01ARZ3NDEKTSV4RRFFQ6911111.db';
	fs.mkdirSync(path.join(data, path.dirname(decoded)), { recursive: true });
	fs.writeFileSync(path.join(data, blob), 'cut short');
	fs.writeFileSync(path.join(data, decoded), 'deleted in part');
	const long = new Date(Date.now() - 400 * 86400e3);
	fs.utimesSync(path.join(data, blob), long, long);

	s = await serve(t, data);
	await until(() => (below(data, 'lost').length === 2 ? true : undefined), 'both are in lost/');
	await s.stop();
	const [day] = fs.readdirSync(path.join(data, 'lost'));
	assert.ok(Math.abs(fs.statSync(path.join(data, 'lost', day, blob)).mtimeMs - long) < 1000, 'its own age stays');
	assert.equal(s.log.match(/event=swept/g).length, 1);

	const dayBefore = (days) => new Date(Date.now() - days * 86400e3).toISOString().slice(0, 10);
	const move = (from, to) => fs.renameSync(path.join(data, 'lost', from), path.join(data, 'lost', to));
	move(day, dayBefore(30));
	s = await serve(t, data);
	await s.trace(sampleTrace(16)); // the sweep is over when the first is decoded
	await s.stop();
	assert.equal(below(data, 'lost').length, 2, 'not before 30 days');
	move(dayBefore(30), dayBefore(32));
	s = await serve(t, data);
	await until(() => (below(data, 'lost').length === 0 ? true : undefined), 'they expire');
	await s.stop();
	assert.match(s.log, /event=lost_expired files=2/);
	assert.deepEqual(fs.readdirSync(path.join(data, 'lost')), []);
});

test('a file in lost/ that has a row and cannot be moved back does not expire', async (t) => {
	const data = folder(t);
	let s = await serve(t, data);
	const { id } = await s.trace(sampleTrace(15));
	await s.stop();
	const shard = path.join(data, 'traces', id.slice(-2)), lost = path.join(data, 'lost', new Date(Date.now() - 90 * 86400e3).toISOString().slice(0, 10), 'traces');
	fs.mkdirSync(lost, { recursive: true });
	fs.renameSync(shard, path.join(lost, id.slice(-2)));
	fs.writeFileSync(shard, 'not a folder');
	s = await serve(t, data);
	await until(() => (s.log.includes('event=start_check') ? true : undefined), 'the sweep ended');
	await s.stop();
	assert.match(s.log, /event=sweep /);
	assert.deepEqual(below(lost), [path.join(id.slice(-2), `${id}.db`)]);
	fs.rmSync(shard);
	s = await serve(t, data);
	await until(() => (below(lost).length === 0 ? true : undefined), 'it is back');
	assert.deepEqual(below(shard), [`${id}.db`]);
});

test('a backup leaves lost/ out, and a server starts on it', async (t) => {
	const data = folder(t), copy = path.join(folder(t), 'copy');
	const s = await serve(t, data);
	const { id } = await s.trace(sampleTrace(15));
	fs.mkdirSync(path.join(data, 'lost/2026-01-02/blobs/ab'), { recursive: true });
	fs.writeFileSync(path.join(data, 'lost/2026-01-02/blobs/ab/x'), 'x');
	const made = await run(['backup', '--data', data, '--to', copy]);
	assert.equal(made.code, 0, made.stderr);
	assert.ok(!fs.existsSync(path.join(copy, 'lost')));
	const keys = { readKey: s.read };
	await s.stop();
	const from = Object.assign(await serve(t, copy), keys);
	assert.equal((await from.get(`/api/v1/traces/${id}`)).json.state, 'ready');
	await until(() => (below(copy, 'records').length === 1 ? true : undefined), 'records are written again');
});

test("a start refuses a folder with another program's spool/", async (t) => {
	const data = folder(t);
	for (const name of ['cron', 'mail']) fs.mkdirSync(path.join(data, 'spool', name), { recursive: true });
	fs.writeFileSync(path.join(data, 'spool/queue'), 'precious');
	assert.match(await refused(t, data), /has no catalogue, but has files in spool\/, which a start would delete: check --data, or start once with --adopt/);
	assert.equal(fs.readFileSync(path.join(data, 'spool/queue'), 'utf8'), 'precious');
	const s = await serve(t, data, { args: ['--adopt'] });
	assert.equal((await s.trace(sampleTrace(5))).state, 'ready');
});

test('commands with a mistyped --data make no folder and name the nearest one', async (t) => {
	const dir = folder(t), data = path.join(dir, 'data');
	fs.mkdirSync(data);
	const s = await serve(t, data);
	const commands = [['link', 'create'], ['key', 'create', '--project', 'p', '--scope', 'read'], ['user', 'list'], ['check'], ['check', '--rebuild'], ['audit']];
	for (const [slip, nearest] of [[path.join(dir, 'dat'), data], [path.join(dir, 'date/'), data], [dir, data], [path.join(data, 'blobs/x'), undefined]])
		for (const command of commands) {
			const got = await run([...command, '--data', slip]);
			assert.equal(got.code, 1, `${command} ${slip}: ${got.stderr}`);
			assert.match(got.stderr, nearest ? new RegExp(`is not a data folder of a server; the nearest one is ${nearest}\n`) : /is not a data folder of a server/);
			if (slip !== dir) assert.ok(!fs.existsSync(slip), `${command} made ${slip}`);
		}
	assert.deepEqual(fs.readdirSync(dir), ['data']);
	const none = await run(['link', 'create', '--data', path.join(dir, 'data/spool/none/none')]);
	assert.match(none.stderr, /is not a data folder of a server/);
	await s.stop();
});

test('a start with a misspelt --data is refused, another new folder is made and logged', async (t) => {
	const dir = folder(t), data = path.join(dir, 'data');
	const s = await serve(t, data);
	assert.match(s.log, new RegExp(`event=data_folder_created data=${data}\n`));
	await s.stop();
	for (const slip of ['dta', 'daata/', 'adta']) {
		const got = await run(['serve', '--data', path.join(dir, slip), '--listen', '127.0.0.1:0']);
		assert.notEqual(got.code, 0);
		assert.match(got.stderr + got.out, new RegExp(`${slip} does not exist, but ${data} is a data folder: correct --data, or create the folder`));
	}
	assert.deepEqual(fs.readdirSync(dir), ['data']);
	await s.start();
	assert.doesNotMatch(s.log.slice(s.log.lastIndexOf('event=listening')), /data_folder_created/);
	await (await serve(t, path.join(dir, 'data2'))).stop();
	await s.stop();
});

/* --- rebuild --- */

const TYPE = 'application/offset+octet-stream';
const base64 = (text) => Buffer.from(text).toString('base64');

async function resumable(s, bytes, meta) {
	const ask = (method, target, headers, body) => s.ask(method, target, { key: s.ingest, body, headers: { 'Tus-Resumable': '1.0.0', ...headers } });
	const made = await ask('POST', '/api/v1/uploads', { 'Upload-Length': String(bytes.length), 'Upload-Metadata': Object.entries(meta).map(([k, v]) => `${k} ${base64(v)}`).join(',') });
	assert.equal(made.status, 201, made.text);
	const at = made.headers.get('location');
	for (const [offset, piece] of [[0, bytes.subarray(0, 700)], [700, bytes.subarray(700)]])
		assert.equal((await ask('PATCH', at, { 'Content-Type': TYPE, 'Upload-Offset': String(offset) }, piece)).status, 204);
	return s.decoded((await ask('HEAD', at, {})).headers.get('tracewell-trace'));
}

async function counted(s) {
	await until(() => (s.sql(`SELECT (SELECT count(*) FROM trace WHERE state<2 OR (state=2 AND (rollup_state=0 OR anr_state=0 OR (detected=0 AND rollup_state=1)))) +
		(SELECT count(*) FROM build_rename)`) === '0' ? true : undefined), 'all counted', 180).catch((e) => assert.fail(`${e.message} ${s.log.slice(-3000)}`));
}

/* Traces of every kind, in two projects; the last one is queued. */
async function fillAll(t, data, options = {}) {
	const s = await serve(t, data, options);
	const good = async (answer) => assert.ok((await answer).status < 300, (await answer).text);
	const meta = { app: 'shop', version_name: '1.2', version_code: '12', build_id: 'b1', device: 'Pixel 8', scenario: 'start', labels: json({ team: 'cart' }) };
	const first = await s.trace(sampleTrace(40), { query: { ...meta, uuid: 'u-1' }, headers: { 'Idempotency-Key': 'once' } });
	await s.trace(sampleTrace(41), { query: { ...meta, version_name: '1.3', build_id: 'b2', commit: 'abcdef0123456789' } });
	await s.trace(zlib.gzipSync(golden('realistic')), { query: { ...meta, scenario: 'anr', build_id: 'b3' } });
	await s.trace('"main" prio=5 tid=1 Blocked\n  at a.b.c(SourceFile:1)\n  - waiting to lock <0x01> (a a.d) held by thread 2\n\n"w" prio=5 tid=2 Runnable\n  at a.d.e(SourceFile:3)\n  - locked <0x01> (a a.d)\n', { query: { ...meta, scenario: 'anr', build_id: 'r1' } });
	const both = form(['trace', sampleTrace(30)], ['system', systemTrace()], ['meta', json({ ...meta, labels: { lane: '7' } })]);
	await s.trace(both.body, { headers: both.headers });
	await resumable(s, sampleTrace(50, 1), { ...meta, scenario: 'resumed' });
	await good(s.put('/api/v1/builds/b1/methods', sampleMapping));
	await good(s.put('/api/v1/builds/b2/methods', sampleMapping));
	await good(s.put('/api/v1/builds/r1/retrace', 'com.shop.Cart -> a.b:\n    void total() -> c\ncom.shop.Store -> a.d:\n    3:3:void load():20 -> e\n'));
	await good(s.ask('PATCH', `/api/v1/traces/${first.id}`, { body: json({ tags: ['slow'], title: 'Näher ansehen', pinned: true }), key: s.write }));
	await good(s.ask('POST', `/api/v1/traces/${first.id}/annotations`, { body: json({ author: 'ann', text: 'here', ts_ns: 5 }), key: s.write }));
	const other = { ingest: s.key('ingest', 'other') };
	await s.post('/api/v1/traces', sampleTrace(44), { query: { app: 'till' }, key: other.ingest });
	await counted(s);
	const same = Object.fromEntries(['ingestKey', 'readKey', 'writeKey', 'adminKey'].map((k) => [k, s[k]]));
	await s.stop();
	/* fails, and is in quarantine */
	const crashing = Object.assign(await serve(t, data, { args: [...(options.args ?? []), '--worker-attempts', '1'], env: { ...options.env, TRACEWELL_WORKER_FAULT: 'crash' } }), same);
	const failed = await crashing.trace(sampleTrace(33), { query: { app: 'shop' } });
	assert.equal(failed.state, 'failed');
	await crashing.stop();
	/* remains queued */
	const hanging = Object.assign(await serve(t, data, { args: options.args, env: { ...options.env, TRACEWELL_WORKER_FAULT: 'sleep' } }), same);
	const queued = await hanging.post('/api/v1/traces', sampleTrace(34), { query: { app: 'shop', scenario: 'late' } });
	assert.equal(queued.status, 202);
	await until(() => (hanging.sql(`SELECT claimed FROM job WHERE trace_id='${queued.json.id}'`) === '1' ? true : undefined), 'it is being decoded');
	if (!options.env) await until(() => (below(data, 'records').filter((file) => fs.statSync(path.join(data, 'records', file)).size > 0).length === 12 ? true : undefined), 'its record is written');
	await hanging.stop('SIGKILL');
	await hanging.ended;
	return { first, failed, queued: queued.json.id };
}

/* All responses for a project. */
async function answers(s, key) {
	const all = {};
	const get = async (target) => {
		const answer = await s.get(target, { key });
		assert.equal(answer.status, 200, `${target}: ${answer.text}`);
		return answer.json;
	};
	const { traces } = await get('/api/v1/traces?limit=200');
	all.list = traces;
	for (const { id, state } of traces) {
		all[id] = await get(`/api/v1/traces/${id}`);
		all[`${id} annotations`] = await get(`/api/v1/traces/${id}/annotations`);
		if (state !== 'ready') continue;
		for (const what of ['flame', 'methods', 'threads', 'findings', 'documents', 'names']) all[`${id} ${what}`] = await get(`/api/v1/traces/${id}/${what}`);
	}
	for (const target of ['builds', 'facets?column=app', 'quarantine', 'anr/groups', 'fleet/locks', 'fleet/scenarios?by=all', 'fleet/methods', 'fleet/findings', 'fleet/labels'])
		all[target] = await get(`/api/v1/${target}`);
	return all;
}

async function keysOf(s, data, env) {
	const create = async (project, scope) => (await run(['key', 'create', '--data', data, '--project', project, '--new-project', '--scope', scope], env)).out.trim();
	return { test: await create('test', 'admin'), other: await create('other', 'admin'), ingest: await create('test', 'ingest') };
}

/* Not in a record: which key sent it; when it was decoded again. */
const comparable = (all) => JSON.parse(JSON.stringify(all, (name, value) => (['key_id', 'attempts'].includes(name) && typeof value !== 'object' ? undefined : value)));

async function compare(t, data, { first }, options, lose) {
	let s = await serve(t, data, options);
	let keys = await keysOf(s, data, options.env);
	await counted(s);
	const before = { test: await answers(s, keys.test), other: await answers(s, keys.other) };
	await s.stop();
	assert.equal(before.test.list.length, 8);
	assert.deepEqual(before.test.list.map((x) => x.state).sort(), ['failed', 'ready', 'ready', 'ready', 'ready', 'ready', 'ready', 'ready']);

	const where = await lose();
	const rebuilt = await run(['check', '--rebuild', '--data', where, '--json', ...(options.rebuild?.args ?? [])], options.rebuild?.env ?? options.env);
	assert.equal(rebuilt.code, 0, rebuilt.stderr);
	assert.match(rebuilt.stderr, /The records do not contain accounts, keys, project settings/);
	const sums = JSON.parse(rebuilt.out);
	assert.deepEqual([sums.ready, sums.queued, sums.failed, sums.builds, sums.skipped], [8, 0, 1, 3, 0]);
	const twice = await run(['check', '--rebuild', '--data', where], options.env);
	assert.equal(twice.code, 1);
	assert.match(twice.stderr, /the catalogue is not empty/);

	s = await serve(t, where, { ...options, args: [...(options.args ?? []), ...(where === data ? [] : ['--s3-adopt'])] });
	keys = await keysOf(s, where, options.env);
	await counted(s);
	const read = async () => comparable({ test: await answers(s, keys.test), other: await answers(s, keys.other) });
	const as = comparable(before);
	let after;
	await until(async () => (isDeepStrictEqual(after = await read(), as) ? true : undefined), 'everything is as before', 40).catch(() => {});
	for (const project of ['test', 'other'])
		for (const target of Object.keys(as[project])) assert.deepEqual(after[project][target], as[project][target], `${project} ${target}`);
	assert.deepEqual(after, as);
	/* the same upload again is the same trace */
	const again = await s.post('/api/v1/traces', sampleTrace(40), { key: keys.ingest, headers: { 'Idempotency-Key': 'once' } });
	assert.equal(again.json.id, first.id);
	assert.ok(!/event=swept/.test(s.log), 'nothing is unknown to it');
	await s.stop();
	const checked = await run(['check', '--data', where], options.env);
	assert.deepEqual([checked.code, checked.out], [0, ''], checked.stderr);
}

test('a catalogue is rebuilt from its folder: list, flame graphs, fleet figures and ANR groups are as before', async (t) => {
	const data = folder(t);
	const made = await fillAll(t, data);
	/* the queued one while it is queued */
	moveCatalogue(data, path.join(data, 'queued'));
	const rebuilt = await run(['check', '--rebuild', '--data', data]);
	assert.equal(rebuilt.code, 0, rebuilt.stderr);
	assert.match(rebuilt.out, /rebuilt the catalogue of .* from 12 records: 7 traces ready, 1 to be decoded, 1 failed, 3 builds; 0 records skipped/);
	for (const name of CATALOGUE) fs.rmSync(path.join(data, name), { force: true });
	moveCatalogue(path.join(data, 'queued'), data);
	await compare(t, data, made, {}, () => (moveCatalogue(data, path.join(data, 'away')), data));
});

test('a catalogue is rebuilt from a bucket alone', async (t) => {
	const data = folder(t), fresh = path.join(folder(t), 'fresh');
	const b = await startBucket(t);
	const settings = Object.fromEntries(b.args().map((arg) => arg.slice(2).split('=')).map(([name, value]) => [`TRACEWELL_${name.toUpperCase().replaceAll('-', '_')}`, value]));
	const options = { args: [], env: { ...b.env, ...settings }, rebuild: { args: b.args().slice(0, 2), env: b.env } };
	const made = await fillAll(t, data, options);
	await compare(t, data, made, options, () => {
		assert.equal(b.keys().filter((key) => key.startsWith('records/')).length, 12, 'that of the killed server was written by the next');
		fs.rmSync(data, { recursive: true });
		return fresh;
	});
	const gone = await serve(t, fresh, options);
	await gone.ask('DELETE', `/api/v1/traces/${made.first.id}`, { key: (await keysOf(gone, fresh, options.env)).test });
	await until(() => (b.keys().some((key) => key.endsWith(made.first.id)) ? undefined : true), 'its record goes with it');
});
