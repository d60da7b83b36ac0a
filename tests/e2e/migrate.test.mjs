/*
 * migrate.test.mjs - a data folder brought to PostgreSQL and back: every answer stays as it was, the
 * command is killed and goes on, a server of the source goes on meanwhile, and what differs is found.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { sampleMapping, sampleTrace } from './make.mjs';
import { postgresIsThere, startPostgres } from './postgres.mjs';
import { Server, binary, until } from './server.mjs';
import { findSlower } from './slower.mjs';

const skip = postgresIsThere ? false : 'PostgreSQL 15 or later is not installed';
const json = (o) => JSON.stringify(o);

function folder(t) {
	const data = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-mig-'));
	t.after(() => fs.rmSync(data, { recursive: true, force: true }));
	return data;
}

/* `catalog` keeps a run of these tests on PostgreSQL from moving the source there. */
async function serve(t, data, env = {}, args = ['--webhook-private', '127.0.0.0/8']) {
	const s = new Server(data, args, env);
	s.args = s.args.filter((_, i, all) => all[i] !== '--catalog' && all[i - 1] !== '--catalog');
	await s.start();
	t.after(() => s.stop());
	return s;
}

function migrate(args, env = {}) {
	const { TRACEWELL_CATALOG: _, ...own } = process.env;
	const r = spawnSync(binary(), ['migrate', ...args], { encoding: 'utf8', env: { ...own, ...env } });
	return { code: r.status, signal: r.signal, told: r.stdout + r.stderr, json: r.stdout.startsWith('{') ? JSON.parse(r.stdout) : undefined };
}

/* Everything that a project can have, and traces in the states that stay. */
async function fill(s) {
	const as = { key: s.write }, admin = { key: s.admin };
	await findSlower(s, 12);
	const ready = await s.trace(sampleTrace(20), { query: { app: 'shop', version_name: '1', build_id: 'b1', device: 'Pixel \u{1F600}', labels: json({ team: 'cart' }), scenario: 'start' } });
	for (const answer of [
		await s.put('/api/v1/builds/b1/methods', sampleMapping),
		await s.ask('PATCH', `/api/v1/traces/${ready.id}`, { ...as, body: json({ tags: ['slow', 'a b'], title: 'Näher ansehen', pinned: true }) }),
		await s.ask('POST', `/api/v1/traces/${ready.id}/annotations`, { ...as, body: json({ author: 'ann', text: 'here', ts_ns: 5 }) }),
		await s.ask('PUT', '/api/v1/filters/mine', { ...as, body: json({ query: 'app=shop', author: 'ann' }) }),
		await s.ask('POST', '/api/v1/webhooks', { ...admin, body: json({ url: 'http://127.0.0.1:9/x', name: 'ours' }) }),
	]) assert.ok(answer.status < 300, answer.text);
	assert.equal(spawnSync(binary(), ['user', 'create', 'ann', '--data', s.data, '--server-admin'], { input: 'correct horse battery' }).status, 0);
	await until(async () => (s.db('SELECT count(*) FROM trace WHERE state=2 AND (folded=0 OR hung=0 OR detected=0 OR named<>1 AND build_id<>\'\')') === 0 ? true : undefined), 'all counted', 60);
	return ready;
}

/* Left in quarantine. */
async function failedIn(t, data) {
	const s = await serve(t, data, { TRACEWELL_WORKER_FAULT: 'crash' }, ['--worker-tries', '1']);
	const failed = await s.trace(sampleTrace(33), { query: { app: 'shop' } });
	assert.equal(failed.state, 'failed');
	await s.stop();
	return failed;
}

const TARGETS = (id, failed) => [
	'/api/v1/traces?limit=200', `/api/v1/traces/${id}`, `/api/v1/traces/${failed}`, `/api/v1/traces/${id}/annotations`, `/api/v1/traces/${id}/threads`,
	`/api/v1/traces/${id}/names`, `/api/v1/traces/${id}/flame`, `/api/v1/traces/${id}/methods`, `/api/v1/traces/${id}/findings`, `/api/v1/traces/${id}/raw/trace`,
	'/api/v1/traces?tag=slow', '/api/v1/traces?q=PIXEL', '/api/v1/facets', '/api/v1/builds', '/api/v1/builds/b1', '/api/v1/filters', '/api/v1/retention', '/api/v1/detectors',
	'/api/v1/regressions', '/api/v1/fleet/scenarios?by=all', '/api/v1/fleet/scenarios?by=day', '/api/v1/fleet/methods', '/api/v1/fleet/findings', '/api/v1/fleet/labels',
	'/api/v1/fleet/search?q=Repo', '/api/v1/fleet/locks', '/api/v1/anr/groups', '/api/v1/webhooks', '/api/v1/projects', '/api/v1/members', '/api/v1/quarantine',
];

async function answers(s, { ready, failed }) {
	const all = {};
	for (const target of TARGETS(ready.id, failed.id)) {
		const answer = await s.get(target, { key: s.admin });
		/* a server looks when it starts, and notes the time */
		all[target] = [answer.status, target === '/api/v1/regressions' ? answer.text.replaceAll(/"last_ms":\d+/g, '') : answer.bytes.toString('latin1')];
	}
	assert.ok(Object.values(all).filter(([status]) => status === 200).length > 25, json(Object.entries(all).filter(([, [status]]) => status !== 200)));
	return all;
}

const keysOf = (from, to) => Object.assign(to, { ingestKey: from.ingest, readKey: from.read, writeKey: from.write, adminKey: from.admin });

test('to PostgreSQL and back: every answer is what it was', { skip, timeout: 300000 }, async (t) => {
	const db = await startPostgres(t);
	const [source, target, back] = [folder(t), path.join(folder(t), 'new'), path.join(folder(t), 'back')];
	const failed = await failedIn(t, source);
	const s = await serve(t, source);
	s.db = (sql) => Number(spawnSync('python3', ['-c', 'import sqlite3,sys;print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0])', path.join(source, 'catalogue.db'), sql], { encoding: 'utf8' }).stdout);
	const known = { failed, ready: await fill(s) };
	const before = await answers(s, known);
	const audit = (await s.get('/api/v1/audit', { key: s.admin })).json.entries;
	await s.stop();

	await t.test('cut short at any place, and run again until it is done', async () => {
		for (const step of ['migrate_rows', 'migrate_brought']) {
			assert.equal(migrate(['--from', source, '--data', target, '--to-catalog', db.url('one')], { TRACEWELL_CRASH_AT: step }).signal, 'SIGKILL', step);
			const early = spawnSync(binary(), ['serve', '--data', target, '--listen', '127.0.0.1:0'], { encoding: 'utf8' });
			assert.notEqual(early.status, 0);
			assert.match(early.stderr + early.stdout, /half a copy/);
		}
		const done = migrate(['--from', source, '--data', target, '--to-catalog', db.url('one'), '--json']);
		assert.equal(done.code, 0, done.told);
		assert.equal(done.json.state, 'done');
		for (const table of done.json.tables) {
			assert.deepEqual(table.from, table.to, table.name);
			assert.match(table.to.sha256, /^[0-9a-f]{64}$/);
		}
		assert.ok(done.json.tables.find((x) => x.name === 'trace').put < done.json.tables.find((x) => x.name === 'trace').from.rows, 'what was there is not put again');
		const again = migrate(['--from', source, '--data', target]);
		assert.equal(again.code, 1);
		assert.match(again.told, /in use/);
	});

	await t.test('what differs is found', async () => {
		assert.equal(migrate(['--from', source, '--data', target, '--verify', '--json']).json.state, 'compared');
		db.sql("UPDATE trace SET title='other' WHERE title<>''", 'one');
		const wrong = migrate(['--from', source, '--data', target, '--verify']);
		assert.equal(wrong.code, 1);
		assert.match(wrong.told, new RegExp(`table trace is not alike: .* 1 differ, the first is project_id=.*${known.ready.id}`));
		db.sql("UPDATE trace SET title='Näher ansehen' WHERE title<>''", 'one');
		const blob = fs.readdirSync(path.join(target, 'blobs'), { recursive: true }).find((f) => f.length > 10);
		fs.rmSync(path.join(target, 'blobs', blob));
		const lacks = migrate(['--from', source, '--data', target, '--verify']);
		assert.equal(lacks.code, 1);
		assert.match(lacks.told, /the target's .*(not there|not kept)/);
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
	assert.equal(returned.code, 0, returned.told);
	assert.deepEqual([returned.json.from, returned.json.to, returned.json.state], ['postgresql', 'sqlite', 'done']);
	const home = keysOf(s, await serve(t, back));
	assert.match(home.log, /catalogue=sqlite/);
	const again = await answers(home, known);
	for (const at of Object.keys(before)) assert.deepEqual(again[at], before[at], at);
	await home.stop();
	assert.equal(spawnSync(binary(), ['check', '--data', back]).status, 0);
});

test('beside a server: reads go on, what came meanwhile comes too, and what waits is decoded there', { skip, timeout: 300000 }, async (t) => {
	const db = await startPostgres(t);
	const [source, target] = [folder(t), path.join(folder(t), 'new')];
	const url = db.url('beside');
	const s = await serve(t, source);
	const first = await s.trace(sampleTrace(20), { query: { app: 'shop', version_name: '1' } });
	void [s.read, s.write, s.admin];

	const copied = migrate(['--from', source, '--data', target, '--to-catalog', url, '--json']);
	assert.equal(copied.code, 0, copied.told);
	assert.equal(copied.json.state, 'copied');
	assert.match(spawnSync(binary(), ['key', 'list', '--data', target, '--project', 'test'], { encoding: 'utf8' }).stderr, /half a copy/);

	const second = await s.trace(sampleTrace(21), { query: { app: 'shop', version_name: '1' } });
	assert.equal((await s.ask('DELETE', `/api/v1/traces/${first.id}`)).status, 204);

	const child = spawn(binary(), ['migrate', '--from', source, '--data', target, '--hold', '--json'], { stdio: ['ignore', 'pipe', 'pipe'] });
	t.after(() => child.kill('SIGKILL'));
	let told = '', out = '';
	child.stderr.setEncoding('utf8').on('data', (text) => (told += text));
	child.stdout.setEncoding('utf8').on('data', (text) => (out += text));
	const ended = new Promise((done) => child.once('close', done));
	await until(() => (told.includes('The source answers what is read') ? true : undefined), 'held');
	const began = Date.now();
	assert.equal((await s.get(`/api/v1/traces/${second.id}`)).json.state, 'ready');
	assert.equal((await s.get(`/api/v1/traces/${second.id}/flame`)).status, 200);
	assert.ok(Date.now() - began < 5000, 'who reads does not wait');
	const refused = await s.ask('PATCH', `/api/v1/traces/${second.id}`, { key: s.write, body: json({ title: 'x' }) });
	assert.equal(refused.status, 503, refused.text);
	const moved = keysOf(s, await serve(t, target));
	await s.stop('SIGKILL');
	child.kill('SIGINT');
	assert.equal(await ended, 0, told);
	assert.equal(JSON.parse(out).state, 'done');

	assert.equal((await moved.get(`/api/v1/traces/${first.id}`)).status, 404);
	assert.equal((await moved.get(`/api/v1/traces/${second.id}`)).json.state, 'ready');
	assert.equal((await moved.trace(sampleTrace(9), {})).state, 'ready');
});

test('uploads that wait are decoded where they were brought', { skip, timeout: 120000 }, async (t) => {
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
	assert.equal(r.code, 0, r.told);
	const moved = keysOf(dying, await serve(t, target));
	for (const id of ids) assert.equal((await moved.decoded(id)).state, 'ready');
});

test('what cannot be done is refused in words', { skip }, async (t) => {
	const db = await startPostgres(t);
	const [one, other] = [folder(t), folder(t)];
	for (const data of [one, other]) spawnSync(binary(), ['key', 'create', '--data', data, '--project', 'p', '--scope', 'read']);
	const target = path.join(folder(t), 'new');
	for (const [args, words] of [
		[['--from', one, '--data', one], /folder of its own/],
		[['--from', path.join(one, 'no'), '--data', target], /no data folder/],
		[['--from', one, '--data', other, '--to-catalog', db.url('x')], /catalogue of its own/],
		[['--from', one, '--data', other], /in use/],
		[['--from', one, '--data', target, '--to-catalog', 'mysql://x'], /PostgreSQL/],
		[['--from', one, '--data', target, '--verify'], /no catalogue yet/],
	]) {
		const r = migrate(args);
		assert.equal(r.code, 1, args.join(' '));
		assert.match(r.told, words, args.join(' '));
	}
	assert.equal(migrate([]).code, 2);
	assert.equal(migrate(['--from', one, '--data', target, '--to-catalog', db.url('half')], { TRACEWELL_CRASH_AT: 'migrate_rows' }).signal, 'SIGKILL');
	assert.match(migrate(['--from', other, '--data', target]).told, /half a copy of another catalogue/);
});
