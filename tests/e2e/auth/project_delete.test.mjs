/*
 * project_delete.test.mjs - deleting a project: its keys, sessions and links end with the response, its
 * rows and files in the background, however often the server is killed, and no other project changes.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { binary, startServer, tracewell, until } from '../server.mjs';

const ARGS = ['--webhook-private', '127.0.0.0/8', '--retention-every', '1', '--max-disk-use', '0']; // no response depends on the disk's use
const json = (o) => JSON.stringify(o);
const BLOCKED = '"main" prio=5 tid=1 Blocked\n  at a.B.c(B.java:1)\n  - waiting to lock <0x01> (a a.T) held by thread 2\n\n"w" prio=5 tid=2 Runnable\n  at a.W.d(W.java:3)\n  - locked <0x01> (a a.T)\n';

/* A project with traces, some with the content of those of other projects, and something of every kind of setting. */
async function fill(s, project, own) {
	const key = s.key('admin', project);
	const as = { key };
	const ids = [];
	for (const [calls, version] of [[50, '1'], [60, '1'], [50 + own, '2'], [60 + own, '2']])
		ids.push((await s.post('/api/v1/traces', sampleTrace(calls), { ...as, query: { app: 'com.app', scenario: 'start', version_name: version, build_id: 'b1', device: `d${calls}` } })).json.id);
	ids.push((await s.post('/api/v1/traces', BLOCKED, { ...as, query: { app: 'com.app', version_name: '2' } })).json.id);
	for (const id of ids) await until(async () => (await s.get(`/api/v1/traces/${id}`, as)).json.state === 'ready', 'decoded');
	const changes = [
		['PUT', '/api/v1/builds/b1/methods?wait=60', sampleMapping],
		['PUT', `/api/v1/builds/b${own}/retrace?wait=60`, `a.B -> c:\n    void m${own}() -> d\n`],
		['PUT', '/api/v1/filters/mine', json({ query: 'app=com.app' })],
		['PUT', '/api/v1/retention', json({ max_age_days: 300 })],
		['PUT', '/api/v1/capture/rules', json({ rules: [] })],
		['PUT', '/api/v1/detectors', json({ rules: [] })],
		['POST', '/api/v1/alerts/rules', json({ name: 'start', kind: 'duration', threshold: 800 })],
		['POST', '/api/v1/webhooks', json({ name: 'chat', url: 'http://127.0.0.1:9/x', events: ['digest'] })],
		['POST', `/api/v1/traces/${ids[0]}/annotations`, json({ text: 'here', ts_ns: 1 })],
		['PATCH', `/api/v1/traces/${ids[0]}`, json({ title: 'slow', tags: ['a'] })],
	];
	for (const [method, target, body] of changes) {
		const a = await s.ask(method, target, { ...as, body });
		assert.ok(a.status < 300, `${method} ${target}: ${a.status} ${a.text}`);
	}
	const hook = (await s.get('/api/v1/webhooks', as)).json.webhooks[0].id;
	assert.equal((await s.ask('POST', `/api/v1/webhooks/${hook}/test`, as)).status, 202);
	await until(() => s.sql(`SELECT count(*) FROM outbox_attempt a JOIN outbox o ON o.delivery_id=a.delivery_id WHERE o.hook_id='${hook}'`) !== '0', 'an attempt to deliver');
	await until(async () => (await s.get('/api/v1/fleet/stages', as)).json.stages.every((x) => !x.waiting), 'derived data');
	const { id } = (await s.get('/api/v1/projects', as)).json.projects[0];
	const open = await s.ask('POST', '/api/v1/uploads', { ...as, headers: { 'Tus-Resumable': '1.0.0', 'Upload-Length': '10', 'Content-Type': 'application/offset+octet-stream' }, body: 'half' });
	assert.equal(open.status, 201, open.text);
	return { key, ids, id };
}

/* Responses that depend on nothing but the project's data. */
async function seen(s, p) {
	const of = [`/api/v1/traces`, '/api/v1/builds', '/api/v1/anr/groups', '/api/v1/fleet/methods', '/api/v1/fleet/flame', '/api/v1/fleet/locks', '/api/v1/filters', '/api/v1/retention', '/api/v1/detectors',
		'/api/v1/alerts/rules', '/api/v1/projects', '/api/v1/inbox', '/api/v1/facets?column=device', ...p.ids.flatMap((id) => [`/api/v1/traces/${id}`, `/api/v1/traces/${id}/flame`, `/api/v1/traces/${id}/methods`])];
	const all = {};
	for (const target of of) {
		const a = await s.get(target, { key: p.key });
		assert.equal(a.status, 200, `${target}: ${a.text}`);
		all[target] = `${a.status} ${a.text}`;
	}
	return all;
}

async function isSame(s, p, was) {
	for (const [target, text] of Object.entries(await seen(s, p))) assert.equal(text, was[target], target);
}

async function adminOf(s) {
	execFileSync(binary(), ['user', 'create', 'root', '--server-admin', '--data', s.data], { input: 'password of root' });
	const signed = await s.ask('POST', '/api/v1/session', { key: null, body: json({ name: 'root', password: 'password of root' }) });
	const session = signed.headers.get('set-cookie').split(';')[0].split('=')[1];
	return () => ({ key: null, headers: { Cookie: `tw_session_${s.port}=${session}`, 'X-Tracewell': '1' } });
}

/* Number of the project's rows by table, without the audit log. */
function rowsOf(s, id) {
	const tables = (s.schema
		? s.sql(`SELECT table_name FROM information_schema.columns WHERE column_name='project_id' AND table_schema='${s.schema}'`)
		: s.sql("SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c ON c.name='project_id' WHERE m.type='table'")).split('\n');
	assert.ok(tables.length > 30);
	return tables.filter((table) => table !== 'audit').map((table) => `${table} ${s.sql(`SELECT count(*) FROM "${table}" WHERE project_id='${id}'`)}`).filter((line) => !line.endsWith(' 0'));
}

const files = (s, folder) => fs.readdirSync(path.join(s.data, folder), { recursive: true, withFileTypes: true }).filter((e) => e.isFile()).map((e) => e.name).sort();
/* The project's rows in ClickHouse (TRACEWELL_TEST_CLICKHOUSE) by table. */
async function analyticsRowsOf(s, id) {
	const [, at, database] = /^clickhouse:\/\/(.*)\/(.*)$/.exec(s.args[s.args.indexOf('--analytics') + 1]) ?? [];
	if (!at) return [];
	const ask = async (sql) => (await (await fetch(`http://${at}/`, { method: 'POST', body: sql })).text()).trim().split('\n');
	const tables = await ask(`SELECT table FROM system.columns WHERE database = '${database}' AND name = 'project'`);
	const counts = await Promise.all(tables.map(async (table) => `${table} ${await ask(`SELECT count() FROM ${database}.${table} WHERE project = '${id}'`)}`));
	return counts.filter((line) => !line.endsWith(' 0'));
}

const inFolder = !process.env.TRACEWELL_TEST_BUCKET;

async function isForgotten(s, p) {
	await until(() => s.sql(`SELECT count(*) FROM project WHERE project_id='${p.id}'`) === '0', () => `the project's row deleted; it has ${rowsOf(s, p.id)}`);
	assert.deepEqual(rowsOf(s, p.id), []);
	await until(async () => ((await analyticsRowsOf(s, p.id)).length === 0 ? true : undefined), 'no row in ClickHouse');
	assert.equal(s.sql('SELECT count(*) FROM outbox_attempt WHERE delivery_id NOT IN (SELECT delivery_id FROM outbox)'), '0');
}

test('a deleted project ends at once, its rows and files soon after, and another is the same byte for byte', async (t) => {
	const s = await startServer(t, { args: ARGS });
	const other = await fill(s, 'other', 7);
	const before = inFolder && ['blobs', 'traces', 'records', 'uploads'].map((folder) => files(s, folder));
	const gone = await fill(s, 'gone', 9);
	const reader = s.key('read', 'gone');
	const root = await adminOf(s);
	const signed = await s.ask('POST', '/api/v1/session', { key: null, body: json({ token: reader }) });
	const session = { key: null, headers: { Cookie: signed.headers.get('set-cookie').split(';')[0] } };
	const link = (await s.ask('POST', `/api/v1/traces/${gone.ids[0]}/tickets`, { key: reader, body: json({ kind: 'speedscope' }) })).json.path;
	assert.equal((await s.get(link, { key: null })).status, 200);
	assert.equal((await s.get('/api/v1/traces', session)).status, 200);
	const was = await seen(s, other);
	if (process.env.TRACEWELL_TEST_CLICKHOUSE) assert.ok((await analyticsRowsOf(s, gone.id)).length > 0);

	assert.equal((await s.ask('DELETE', '/api/v1/projects/gone', { key: gone.key })).status, 403, 'a key cannot delete its project');
	assert.equal((await s.ask('DELETE', '/api/v1/projects/Gone', root())).status, 404, 'the name must be exact');
	assert.equal((await s.ask('DELETE', `/api/v1/projects/${gone.id}`, root())).status, 404, 'an id is not a name');
	for (const name of ['.', '..', ' ']) assert.equal((await s.ask('POST', '/api/v1/projects', { ...root(), body: json({ name }) })).status, 400, 'no path names it');
	const named = await s.ask('POST', '/api/v1/projects', { ...root(), body: json({ name: gone.id }) });
	assert.equal(named.status, 201, 'an id can be the name of another project');
	assert.equal((await s.ask('DELETE', '/api/v1/projects/gone', root())).status, 202);
	assert.equal((await s.ask('DELETE', `/api/v1/projects/${gone.id}`, root())).status, 202);
	for (const key of [gone.key, reader]) assert.equal((await s.get('/api/v1/traces', { key })).status, 401, 'keys end');
	assert.equal((await s.get('/api/v1/traces', session)).status, 401, 'sessions of keys end');
	assert.equal((await s.get(link, { key: null })).status, 401, 'links of other tools end');
	assert.ok(!(await s.get('/api/v1/projects', root())).json.projects.some((p) => p.id === gone.id || p.name === 'gone'));
	assert.equal((await s.get('/api/v1/traces', { ...root(), query: { project: gone.id } })).status, 404);
	assert.equal((await s.ask('DELETE', '/api/v1/projects/gone', root())).status, 404, 'a second time');

	const again = await s.ask('POST', '/api/v1/projects', { ...root(), body: json({ name: 'gone' }) });
	assert.equal(again.status, 201, 'the name is free');
	assert.notEqual(again.json.id, gone.id);
	assert.equal((await s.get('/api/v1/traces', { ...root(), query: { project: 'gone' } })).json.total, 0);

	await isForgotten(s, gone);
	await isSame(s, other, was);
	if (inFolder) assert.deepEqual(['blobs', 'traces', 'records'].map((folder) => files(s, folder)), before.slice(0, 3));
	if (inFolder) await until(() => files(s, 'uploads').join() === before[3].join(), 'unfinished uploads deleted');
	const entry = (await s.get('/api/v1/audit', { ...root(), query: { everywhere: '1', action: 'project.delete' } })).json.entries;
	assert.deepEqual(entry.map((e) => [e.actor.name, e.target, e.facts.id]), [['root', gone.id, named.json.id], ['root', 'gone', gone.id]]);
	tracewell('check', '--data', s.data); // ends with status 1 if a file is missing or damaged
});

/* Traces are deleted together, then builds, then other rows. */
const STEPS = ['row_deleted', 'project_part_deleted', 'project_part_deleted'];

test('killed after each step of the deletion, the next start continues it', async (t) => {
	const s = await startServer(t, { args: ARGS });
	const other = await fill(s, 'other', 7);
	const before = inFolder && ['blobs', 'traces', 'records', 'uploads'].map((folder) => files(s, folder));
	const gone = await fill(s, 'gone', 9);
	const was = await seen(s, other);
	await s.stop();
	assert.equal(spawnSync(binary(), ['project', 'delete', 'gone', '--data', s.data], { input: 'gone\n', env: { ...process.env, ...s.env } }).status, 0);
	let kills = 0;
	for (const step of STEPS) {
		s.env = { TRACEWELL_CRASH_AT: step };
		await s.start().catch(() => {});
		kills += (await s.ended).signal === 'SIGKILL' ? 1 : 0;
	}
	assert.equal(kills, STEPS.length);
	s.env = {};
	await s.start();
	await isForgotten(s, gone);
	await isSame(s, other, was);
	if (inFolder) await until(() => ['blobs', 'traces', 'records', 'uploads'].every((folder, i) => files(s, folder).join() === before[i].join()), () => `only the other's files: ${files(s, 'blobs')}`);
});

test('`tracewell project delete` needs the name twice', async (t) => {
	const s = await startServer(t, { args: ARGS });
	const key = s.key('read', 'shop');
	const run = (name, input) => spawnSync(binary(), ['project', 'delete', name, '--data', s.data], { input, encoding: 'utf8' });
	for (const input of ['', '\n', 'Shop\n', 'yes\n']) {
		const r = run('shop', input);
		assert.equal(r.status, 2);
		assert.match(r.stderr, /the name does not match; nothing was deleted: enter the project's name on standard input/);
	}
	assert.match(run('shp', 'shp\n').stderr, /there is no project shp \(did you mean shop\?\)/);
	assert.equal((await s.get('/api/v1/traces', { key })).status, 200);
	const done = run('shop', 'shop\n');
	assert.equal(done.status, 0);
	assert.match(done.stderr, /^project shop deleted; the server removes its data in the background$/m);
	assert.equal((await s.get('/api/v1/traces', { key })).status, 401);
});
