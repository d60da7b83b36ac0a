/*
 * migrate.test.mjs - a data folder migrated to PostgreSQL and back: every response remains the same, the
 * command is killed and continues, the source's server runs during the copy, and differences are detected.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { sampleTrace } from '../make.mjs';
import { answers, failedIn, fill, folder, json, keysOf, migrate, serve } from '../migrate_fixture.mjs';
import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { atEnd, binary, makeData, sideBySide, startServer, until } from '../server.mjs';

const test = sideBySide(3);

const skip = postgresIsThere ? false : 'PostgreSQL 15 or later is not installed';
test('to PostgreSQL and back: every response is unchanged', { skip, timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const [source, target, back] = [folder(t), path.join(folder(t), 'new'), path.join(folder(t), 'back')];
	const failed = await failedIn(t, source);
	const s = await serve(t, source);
	const known = { failed, ready: await fill(s) };
	const before = await answers(s, known);
	const audit = (await s.get('/api/v1/audit', { key: s.admin })).json.entries;
	await s.stop();

	await t.test('cut short at any place, and run again until it is done', async () => {
		for (const step of ['migrate_rows', 'migrate_brought']) {
			assert.equal(migrate(['--from', source, '--data', target, '--to-catalog', db.url('one')], { TRACEWELL_CRASH_AT: step }).signal, 'SIGKILL', step);
			const early = spawnSync(binary(), ['serve', '--data', target, '--listen', '127.0.0.1:0'], { encoding: 'utf8' });
			assert.notEqual(early.status, 0);
			assert.match(early.stderr + early.stdout, /an incomplete copy/);
		}
		const done = migrate(['--from', source, '--data', target, '--to-catalog', db.url('one'), '--json']);
		assert.equal(done.code, 0, done.reported);
		assert.equal(done.json.state, 'done');
		for (const table of done.json.tables) {
			assert.deepEqual(table.from, table.to, table.name);
			assert.match(table.to.sha256, /^[0-9a-f]{64}$/);
		}
		assert.ok(done.json.tables.find((x) => x.name === 'trace').written < done.json.tables.find((x) => x.name === 'trace').from.rows, 'what was there is not put again');
		const again = migrate(['--from', source, '--data', target]);
		assert.equal(again.code, 1);
		assert.match(again.reported, /in use .* use an empty one; if it is a complete, unused copy, delete it and start again/);
	});

	await t.test('differences are found', async () => {
		assert.equal(migrate(['--from', source, '--data', target, '--verify', '--json']).json.state, 'compared');
		db.sql("UPDATE trace SET title='other' WHERE title<>''", 'one');
		const wrong = migrate(['--from', source, '--data', target, '--verify']);
		assert.equal(wrong.code, 1);
		assert.match(wrong.reported, new RegExp(`table trace differs: .* 1 differ, the first is project_id=.*${known.ready.id}`));
		db.sql("UPDATE trace SET title='Näher ansehen' WHERE title<>''", 'one');
		const blob = fs.readdirSync(path.join(target, 'blobs'), { recursive: true }).find((f) => f.length > 10);
		fs.rmSync(path.join(target, 'blobs', blob));
		const lacks = migrate(['--from', source, '--data', target, '--verify']);
		assert.equal(lacks.code, 1);
		assert.match(lacks.reported, /the target's .*(missing|no longer stored)/);
		fs.linkSync(path.join(source, 'blobs', blob), path.join(target, 'blobs', blob));
	});

	const moved = keysOf(s, await serve(t, target));
	assert.match(moved.log, /catalogue=postgresql/);
	const after = await answers(moved, known);
	for (const at of Object.keys(before)) assert.deepEqual(after[at], before[at], at);
	const { json: record } = await moved.get('/api/v1/audit', { key: s.admin });
	assert.equal(record.entries.length > 0, true);
	for (const entry of audit) assert.ok(record.entries.some((e) => json(e) === json(entry)), json(entry));

	await t.test('numbers go on where they were', () => {
		assert.equal(spawnSync(binary(), ['key', 'create', '--data', target, '--project', 'test', '--scope', 'read']).status, 0);
		const ids = db.sql('SELECT entry_id FROM audit ORDER BY entry_id', 'one').split('\n').map(Number);
		assert.deepEqual(ids, ids.map((_, i) => ids[0] + i));
		assert.equal(db.sql('SELECT action FROM audit ORDER BY entry_id DESC LIMIT 1', 'one'), 'key.create');
	});
	await moved.stop();

	const returned = migrate(['--from', target, '--data', back, '--json']);
	assert.equal(returned.code, 0, returned.reported);
	assert.deepEqual([returned.json.from, returned.json.to, returned.json.state], ['postgresql', 'sqlite', 'done']);
	const home = keysOf(s, await serve(t, back));
	assert.match(home.log, /catalogue=sqlite/);
	const again = await answers(home, known);
	for (const at of Object.keys(before)) assert.deepEqual(again[at], before[at], at);
	await home.stop();
	assert.equal(spawnSync(binary(), ['check', '--data', back]).status, 0);
});

test('while a server runs: reads continue, new traces are copied, and queued ones are decoded in the target', { skip, timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const [source, target] = [folder(t), path.join(folder(t), 'new')];
	const url = db.url('beside');
	const s = await serve(t, source);
	const first = await s.trace(sampleTrace(20), { query: { app: 'shop', version_name: '1' } });
	void [s.read, s.write, s.admin];

	const copied = migrate(['--from', source, '--data', target, '--to-catalog', url, '--json']);
	assert.equal(copied.code, 0, copied.reported);
	assert.equal(copied.json.state, 'copied');
	assert.match(spawnSync(binary(), ['key', 'list', '--data', target, '--project', 'test'], { encoding: 'utf8' }).stderr, /an incomplete copy/);

	const second = await s.trace(sampleTrace(21), { query: { app: 'shop', version_name: '1' } });
	assert.equal((await s.ask('DELETE', `/api/v1/traces/${first.id}`)).status, 204);

	const child = spawn(binary(), ['migrate', '--from', source, '--data', target, '--hold', '--json'], { stdio: ['ignore', 'pipe', 'pipe'] });
	atEnd(t, () => child.kill('SIGKILL'));
	let reported = '', out = '';
	child.stderr.setEncoding('utf8').on('data', (text) => (reported += text));
	child.stdout.setEncoding('utf8').on('data', (text) => (out += text));
	const ended = new Promise((done) => child.once('close', done));
	await until(() => (reported.includes('The source serves reads') ? true : undefined), 'held');
	assert.equal((await s.get(`/api/v1/traces/${second.id}`)).json.state, 'ready', 'readers do not wait for the end of the hold');
	assert.equal((await s.get(`/api/v1/traces/${second.id}/flame`)).status, 200);
	child.kill('SIGHUP'); // a terminal that was closed
	const refused = await s.ask('PATCH', `/api/v1/traces/${second.id}`, { key: s.write, body: json({ title: 'x' }) });
	assert.equal(refused.status, 503, refused.text);
	assert.deepEqual([child.exitCode, child.signalCode], [null, null], 'it is held on');
	const moved = keysOf(s, await serve(t, target));
	await s.stop('SIGKILL');
	child.kill('SIGINT');
	assert.equal(await ended, 0, reported);
	assert.equal(JSON.parse(out).state, 'done');
	assert.match(reported, /accepts changes again.*delete it and repeat/);

	assert.equal((await moved.get(`/api/v1/traces/${first.id}`)).status, 404);
	assert.equal((await moved.get(`/api/v1/traces/${second.id}`)).json.state, 'ready');
	assert.equal((await moved.trace(sampleTrace(9), {})).state, 'ready');
});

test('uploads that wait are decoded where they were brought', { skip, timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const [source, target] = [folder(t), path.join(folder(t), 'new')];
	const dying = await serve(t, source, { TRACEWELL_CRASH_AT: 'child_done' });
	void [dying.read, dying.write];
	const ids = [];
	for (let i = 0; i < 5; i++) {
		const answer = await dying.post('/api/v1/traces', sampleTrace(10 + i)).catch(() => null);
		if (answer?.status === 202) ids.push(answer.json.id);
	}
	assert.equal((await dying.ended).signal, 'SIGKILL');
	assert.ok(ids.length > 0);
	const r = migrate(['--from', source, '--data', target, '--to-catalog', db.url('waits')]);
	assert.equal(r.code, 0, r.reported);
	const moved = keysOf(dying, await serve(t, target));
	for (const id of ids) assert.equal((await moved.decoded(id)).state, 'ready');
});

/* Files of a folder by their keys, with their contents. */
function filesIn(data) {
	const keys = ['blobs', 'traces'].flatMap((kind) => fs.readdirSync(path.join(data, kind), { recursive: true }).map((f) => `${kind}/${f}`));
	return Object.fromEntries(keys.filter((key) => fs.statSync(path.join(data, key)).isFile()).sort().map((key) => [key, fs.readFileSync(path.join(data, key)).toString('latin1')]));
}

async function threeTraces(t) {
	const data = folder(t);
	const s = await serve(t, data);
	const traces = [];
	for (const n of [20, 21, 22]) traces.push(await s.trace(sampleTrace(n), { query: { app: 'shop' } }));
	await s.stop();
	return { s, data, traces, fileOf: ({ id }) => `traces/${id.slice(-2)}/${id}.db` };
}

test('files truncated by a power loss in an earlier run are not reused', { timeout: 900_000 }, async (t) => {
	const { data, traces, fileOf } = await threeTraces(t);
	const target = path.join(folder(t), 'new');
	const files = filesIn(data);
	assert.equal(migrate(['--from', data, '--data', target], { TRACEWELL_CRASH_AT: 'migrate_brought' }).signal, 'SIGKILL');
	const upload = Object.keys(files).find((key) => key.startsWith('blobs/'));
	for (const key of [upload, fileOf(traces[0])]) { // files of its own, not names of the source's
		fs.rmSync(path.join(target, key));
		fs.writeFileSync(path.join(target, key), files[key].slice(0, 50), 'latin1');
	}
	const done = migrate(['--from', data, '--data', target, '--json']);
	assert.deepEqual([done.code, done.json.state, done.json.files.linked, done.json.files.lost], [0, 'done', 2, 0], done.reported);
	assert.deepEqual(filesIn(target), files);
	assert.deepEqual(filesIn(data), files, 'the source stays as it was');
});

test('on another file system files are copied, and existing ones are read instead of copied again', { skip: fs.existsSync('/dev/shm') && fs.statSync('/dev/shm').dev !== fs.statSync('/tmp').dev ? false : 'no second file system', timeout: 900_000 }, async (t) => {
	const { data } = await threeTraces(t);
	const parent = fs.mkdtempSync('/dev/shm/tracewell-mig-');
	atEnd(t, () => fs.rmSync(parent, { recursive: true, force: true }));
	const target = path.join(parent, 'new');
	const files = filesIn(data);
	assert.equal(migrate(['--from', data, '--data', target], { TRACEWELL_CRASH_AT: 'migrate_file' }).signal, 'SIGKILL');
	assert.equal(migrate(['--from', data, '--data', target], { TRACEWELL_CRASH_AT: 'migrate_brought' }).signal, 'SIGKILL');
	assert.deepEqual(filesIn(target), files);
	const key = Object.keys(files)[0];
	fs.writeFileSync(path.join(target, key), files[key].slice(0, 50), 'latin1');
	const done = migrate(['--from', data, '--data', target, '--json']);
	assert.deepEqual([done.code, done.json.files.linked, done.json.files.copied, done.json.files.bytes], [0, 0, 1, files[key].length], done.reported);
	assert.deepEqual(filesIn(target), files);
});

test('missing and damaged files of the source are named and counted, and the rest is copied', { timeout: 900_000 }, async (t) => {
	const { s, data, traces, fileOf } = await threeTraces(t);
	const target = path.join(folder(t), 'new');
	fs.rmSync(path.join(data, fileOf(traces[0])));
	fs.truncateSync(path.join(data, fileOf(traces[1])), 100);
	const done = migrate(['--from', data, '--data', target, '--json']);
	assert.deepEqual([done.code, done.json.state, done.json.files.lost], [1, 'done', 2], done.reported);
	for (const { id } of traces.slice(0, 2)) assert.match(done.reported, new RegExp(`^${id}: .*, in the source too$`, 'm'));
	assert.ok(!fs.existsSync(path.join(target, fileOf(traces[1]))));
	const compared = migrate(['--from', data, '--data', target, '--verify', '--json']);
	assert.deepEqual([compared.code, compared.json.state, compared.json.files.lost], [1, 'compared', 2], compared.reported);
	const moved = keysOf(s, await serve(t, target)); // uploads are there: what lacks is decoded again
	for (const { id } of traces) assert.equal((await moved.decoded(id)).state, 'ready');
});

test('an unmounted volume is not reported as lost files', { timeout: 900_000 }, async (t) => {
	const data = folder(t), target = path.join(folder(t), 'new');
	const s = await serve(t, data);
	for (let n = 0; n < 10; n++) await s.trace(sampleTrace(30 + n));
	await s.stop();
	for (const name of ['blobs', 'traces']) fs.renameSync(path.join(data, name), path.join(data, `${name}.away`));
	const failed = migrate(['--from', data, '--data', target]);
	assert.equal(failed.code, 1);
	assert.match(failed.reported, /20 of the source's 20 files are missing: is everything mounted\?/);
	assert.match(spawnSync(binary(), ['serve', '--data', target, '--listen', '127.0.0.1:0'], { encoding: 'utf8' }).stderr, /migrat/, 'nobody serves it');
	for (const name of ['blobs', 'traces']) {
		fs.rmSync(path.join(data, name), { recursive: true, force: true });
		fs.renameSync(path.join(data, `${name}.away`), path.join(data, name));
	}
	const done = migrate(['--from', data, '--data', target, '--json']);
	assert.deepEqual([done.code, done.json.state, done.json.files.lost], [0, 'done', 0], done.reported);
});

test('back from PostgreSQL while its server runs, paused while it decodes', { skip, timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const [source, back] = [folder(t), path.join(folder(t), 'back')];
	const s = await startServer(t, { data: source, env: { TRACEWELL_WORKER_FAULT: 'sleep' }, args: ['--catalog', db.url('busy'), '--decode-workers', '1', '--shutdown', '0'] });
	const { id } = (await s.post('/api/v1/traces', sampleTrace(20))).json;
	await until(async () => ((await s.get(`/api/v1/traces/${id}`)).json.state === 'decoding' ? true : undefined), 'a decode under way');
	const child = spawn(binary(), ['migrate', '--from', source, '--data', back, '--hold', '--json'], { stdio: ['ignore', 'pipe', 'pipe'] });
	atEnd(t, () => child.kill('SIGKILL'));
	let reported = '', out = '';
	child.stderr.setEncoding('utf8').on('data', (text) => (reported += text));
	child.stdout.setEncoding('utf8').on('data', (text) => (out += text));
	const ended = new Promise((done) => child.once('close', done));
	await until(() => (reported.includes('The source serves reads') ? true : undefined), 'held', 60);
	assert.equal((await s.get(`/api/v1/traces/${id}`)).json.state, 'decoding');
	await s.stop('SIGKILL');
	child.kill('SIGINT');
	assert.equal(await ended, 0, reported);
	const r = JSON.parse(out);
	assert.deepEqual([r.state, r.from, r.to], ['done', 'postgresql', 'sqlite']);
	for (const table of r.tables) assert.deepEqual(table.from, table.to, table.name);
	const home = keysOf(s, await serve(t, back));
	assert.equal((await home.decoded(id)).state, 'ready');
});

test('impossible migrations are refused with a message', { skip }, async (t) => {
	const db = await startPostgres(t);
	const [one, other] = [folder(t), folder(t)];
	for (const data of [one, other]) spawnSync(binary(), ['key', 'create', '--data', await makeData(data), '--project', 'p', '--scope', 'read']);
	const target = path.join(folder(t), 'new');
	for (const [args, words] of [
		[['--from', one, '--data', one], /separate folder/],
		[['--from', path.join(one, 'no'), '--data', target], /not a data folder/],
		[['--from', one, '--data', other, '--to-catalog', db.url('x')], /already has a catalogue/],
		[['--from', one, '--data', other], /in use/],
		[['--from', one, '--data', target, '--to-catalog', 'mysql://x'], /PostgreSQL/],
		[['--from', one, '--data', target, '--verify'], /no catalogue yet/],
	]) {
		const r = migrate(args);
		assert.equal(r.code, /separate folder|PostgreSQL/.test(words.source) ? 2 : 1, `${args.join(' ')}: ${r.reported}`);
		assert.match(r.reported, words, args.join(' '));
	}
	assert.equal(migrate([]).code, 2);
	assert.equal(migrate(['--from', one, '--data', target, '--to-catalog', db.url('half')], { TRACEWELL_CRASH_AT: 'migrate_rows' }).signal, 'SIGKILL');
	assert.match(migrate(['--from', other, '--data', target]).reported, /an incomplete copy of another catalogue/);
});
