/*
 * fleet_findings.test.mjs - findings of detectors in many traces: counted by rule, cause and version; again after a
 * new mapping or a change of rules; removed with the trace.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { btrace } from '../make.mjs';
import { startServer, tracewell, until } from '../server.mjs';

const PID = 4100, MS = 1_000_000;
const mapping = (build) => ['# v', '1,1,com.app.Main onCreate ()V', `2,1,com.app.${build === 'b2' ? 'Store' : 'Repo'} load ()V`, '3,1,android.app.SharedPreferencesImpl getString ()V', '4,1,org.json.JSONObject get ()V', '5,1,java.lang.String length ()I', ''].join('\n');

/* onCreate → load → preferences, and JSON right below onCreate; times in ms, 0: no such call. */
function trace(prefs, json, others = 0) {
	const at = 2 * MS, calls = [];
	if (prefs) calls.push([PID, 3, at + MS, prefs * MS]);
	calls.push([PID, 2, at, (prefs + 2) * MS]);
	if (json) calls.push([PID, 4, at + (prefs + 3) * MS, json * MS]);
	calls.push([PID, 5, at + (prefs + json + 4) * MS, (others + 1) * MS]);
	calls.push([PID, 1, MS, (prefs + json + others + 8) * MS]);
	return btrace(calls, { pid: PID });
}

const FLEET = [
	...Array.from({ length: 6 }, (_, i) => ({ version: '1.0', build: 'b1', prefs: 20 + i, json: 0, flavour: i % 2 ? 'beta' : 'stable' })),
	...Array.from({ length: 3 }, (_, i) => ({ version: '1.0', build: 'b1', prefs: 2, json: 0, flavour: 'stable', i })),
	...Array.from({ length: 4 }, (_, i) => ({ version: '2.0', build: 'b2', prefs: 40 + i, json: 30 + i, flavour: 'stable' })),
];
const sum = (list, of) => list.reduce((n, x) => n + of(x), 0);

async function send(s, x, i) {
	const sent = await s.post('/api/v1/traces', trace(x.prefs, x.json), { query: { app: 'shop', version_name: x.version, build_id: x.build, scenario: 'start', os: '14', labels: JSON.stringify({ flavour: x.flavour }) }, headers: { 'Idempotency-Key': `f-${i}` } });
	assert.ok(sent.status <= 202, sent.text);
	return sent.json.id;
}

const ask = async (s, query = '') => (await s.get(`/api/v1/fleet/findings?${query}`)).json;
const settled = (s, n, ok = () => true, query = '') => until(async () => {
	const f = await ask(s, query);
	return f.examined === n && f.pending === 0 && ok(f) ? f : undefined;
}, `${n} traces looked at`, 60);
/* Names are given by a stage of their own. */
const isNamed = (f) => f.rules.every((r) => r.causes.every((c) => c.resolved));
const of = (f, id) => f.rules.find((r) => r.id === id);

test('findings of a fleet', async (t) => {
	const s = await startServer(t);
	await s.ask('PUT', '/api/v1/fleet/labels', { key: s.write, body: '{"labels":["flavour"]}' });
	const ids = [];
	for (const [i, x] of FLEET.entries()) ids.push(await send(s, x, i));
	const slow = FLEET.filter((x) => x.prefs > 16);

	await t.test('without names nothing is found; with the mapping it is', async () => {
		assert.deepEqual((await settled(s, FLEET.length)).rules, []);
		for (const b of ['b1', 'b2']) await s.put(`/api/v1/builds/${b}/methods`, mapping(b));
		const f = await settled(s, FLEET.length, (v) => of(v, 'json')?.traces === 4 && of(v, 'preferences')?.traces === slow.length && isNamed(v));
		assert.deepEqual(f.rules.map((r) => r.id), ['preferences', 'json'], 'most time on the main thread first');
		assert.equal(f.traces, FLEET.length);
		assert.equal(f.partial, 0);
	});

	await t.test('sums, causes, versions and exemplars are those of the traces', async () => {
		const f = await ask(s);
		const p = of(f, 'preferences');
		assert.deepEqual([p.traces, p.found, p.ns, p.main_ns, p.max_ns], [slow.length, slow.length, sum(slow, (x) => x.prefs) * MS, sum(slow, (x) => x.prefs) * MS, 43 * MS]);
		assert.ok(Math.abs(p.share - slow.length / FLEET.length) < 1e-4);
		assert.deepEqual(p.groups.map((g) => [g.key, g.of_traces, g.traces, g.main_ns]), [['1.0', 9, 6, sum(slow.slice(0, 6), (x) => x.prefs) * MS], ['2.0', 4, 4, sum(slow.slice(6), (x) => x.prefs) * MS]]);
		assert.deepEqual(p.exemplars, [12, 11, 10].map((i) => ({ id: ids[i], ns: FLEET[i].prefs * MS })));
		assert.deepEqual(p.causes.map((c) => [c.name, c.resolved, c.traces, c.ns, c.exemplar]), [['com.app.Store.load', true, 4, sum(slow.slice(6), (x) => x.prefs) * MS, ids[12]], ['com.app.Repo.load', true, 6, sum(slow.slice(0, 6), (x) => x.prefs) * MS, ids[5]]]);
		assert.deepEqual(of(f, 'json').causes.map((c) => [c.name, c.traces]), [['com.app.Main.onCreate', 4]]);
		const alone = (await s.get(`/api/v1/traces/${ids[12]}/findings`)).json;
		assert.equal(alone.rules.find((r) => r.id === 'preferences').found_ns, p.exemplars[0].ns, 'as the trace itself tells it');
		for (const id of ['preferences', 'json']) assert.equal(of(f, id).causes_total, of(f, id).causes.length);
	});

	await t.test('a filter, a dimension and a label leave their own', async () => {
		assert.deepEqual((await ask(s, 'version_name=2.0')).rules.map((r) => [r.id, r.traces]), [['preferences', 4], ['json', 4]]);
		assert.equal((await ask(s, 'version_name=2.0')).examined, 4);
		const label = of(await ask(s, 'by=label%3Aflavour'), 'preferences');
		assert.deepEqual(label.groups.map((g) => [g.key, g.values, g.of_traces, g.traces]), [['beta', 1, 3, 3], ['stable', 1, 10, 7]]);
		assert.equal(of(await ask(s, 'label=flavour%3Dbeta'), 'preferences').traces, 3);
		assert.deepEqual((await ask(s, 'rule=json&limit=1')).rules.map((r) => r.id), ['json']);
		assert.deepEqual((await ask(s, 'scenario=nothing')).rules, []);
		const one = of(await ask(s, 'limit=1'), 'preferences');
		assert.deepEqual([one.causes.length, one.causes_total], [1, 2]);
	});

	await t.test('invalid queries get a message', async () => {
		for (const [query, status, words] of [['rule=nothing', 404, /no detector/], ['limit=0', 400, /limit/], ['limit=101', 400, /limit/], ['by=moon', 400, /by/], ['colour=red', 400, /unknown parameter colour/]]) {
			const answer = await s.get(`/api/v1/fleet/findings?${query}`);
			assert.equal(answer.status, status, query);
			assert.match(answer.json.error.message, words);
		}
		const stranger = (await s.get('/api/v1/fleet/findings', { key: s.key('read', 'other') })).json;
		assert.deepEqual([stranger.examined, stranger.rules], [0, []]);
	});

	await t.test('a deleted trace is taken out', async () => {
		assert.equal((await s.ask('DELETE', `/api/v1/traces/${ids[12]}`)).status, 204);
		const p = of(await ask(s), 'preferences');
		assert.deepEqual([p.traces, p.exemplars[0].id, p.max_ns], [slow.length - 1, ids[11], 42 * MS]);
		if (process.env.TRACEWELL_TEST_CLICKHOUSE) await until(async () => ((await ask(s)).traces === FLEET.length - 1 ? true : undefined), 'its rows are hidden');
		else assert.equal((await ask(s)).traces, FLEET.length, 'which stays counted');
	});

	await t.test('changed rules analyse all of them again', async () => {
		const rules = (await s.get('/api/v1/detectors')).json;
		const doc = { version: rules.version, rules: [{ id: 'mine', kind: 'own', title: 'Store', methods: ['com.app.Store'], threads: 'main', threshold_ms: 1, severity: 'error', message: '' }, ...rules.rules.filter((r) => r.id !== 'json').map((r) => (r.id === 'preferences' ? { ...r, threshold_ms: 22 } : r))] };
		assert.equal((await s.ask('PUT', '/api/v1/detectors', { key: s.write, body: JSON.stringify(doc) })).status, 200);
		const f = await settled(s, FLEET.length - 1, (v) => of(v, 'mine')?.traces === 3);
		assert.equal(of(f, 'json'), undefined);
		assert.equal(f.rules_version, rules.version + 1);
		assert.equal(of(f, 'preferences').traces, slow.filter((x) => x.prefs >= 22).length - 1);
	});

	await t.test('frames that are the app\'s change who caused it', async () => {
		assert.equal((await s.ask('PUT', '/api/v1/frames', { key: s.write, body: JSON.stringify({ framework: ['com.app.Repo'] }) })).status, 200);
		await settled(s, FLEET.length - 1, (v) => of(v, 'preferences')?.causes.some((c) => c.name === 'com.app.Main.onCreate'));
	});

	await t.test('killed while it looks, and made again from the traces, it is the same', async () => {
		const { version, rules } = (await s.get('/api/v1/detectors')).json;
		await s.ask('PUT', '/api/v1/detectors', { key: s.write, body: JSON.stringify({ version, rules: rules.filter((r) => r.id !== 'mine') }) });
		await s.stop('SIGKILL');
		await s.start();
		const before = await settled(s, FLEET.length - 1, (v) => !of(v, 'mine') && isNamed(v));
		assert.equal(of(before, 'preferences').traces, 7);
		await s.stop();
		tracewell('rollup', '--data', s.data, '--rebuild');
		await s.start();
		assert.deepEqual(await settled(s, FLEET.length - 1, isNamed), before);
	});
});

/* Does a thread of the server wait for the other end of a pipe?  Unknown where the kernel hides it: true. */
function isInPipe(s) {
	const tasks = `/proc/${s.child.pid}/task`;
	const where = fs.readdirSync(tasks).map((task) => fs.readFileSync(path.join(tasks, task, 'wchan'), 'utf8'));
	return where.some((at) => /fifo|partner/.test(at)) || where.every((at) => at === '0');
}

/* Replaces the file by a pipe, in which a reader of the trace waits.  False: no reader came. */
async function deletedWithin(s, n) {
	const id = await send(s, FLEET[n], n);
	await settled(s, 1);
	const [at, aside] = [path.join(s.data, 'traces', id.slice(-2), `${id}.db`), path.join(s.data, `aside${n}`)];
	fs.rmSync(at);
	assert.equal(spawnSync('mkfifo', [aside]).status, 0);
	fs.linkSync(aside, at);
	const { version, rules } = (await s.get('/api/v1/detectors')).json;
	assert.equal((await s.ask('PUT', '/api/v1/detectors', { key: s.write, body: JSON.stringify({ version, rules: rules.slice(1) }) })).status, 200);
	await until(() => isInPipe(s) || undefined, 'a look at the trace');
	assert.equal((await s.ask('DELETE', `/api/v1/traces/${id}`)).status, 204);
	try {
		fs.closeSync(fs.openSync(aside, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK));
		return true;
	} catch (err) {
		assert.equal(err.code, 'ENXIO');
		return false;
	}
}

test('a trace deleted during the query is not an error', { skip: process.env.TRACEWELL_TEST_BUCKET && 'its file is in a store' }, async (t) => {
	const s = await startServer(t);
	let n = 0;
	while (!(await deletedWithin(s, n))) assert.ok(++n < 8, 'nobody looks');
	await send(s, FLEET[n + 1], n + 1);
	await settled(s, 1); // it is done with the one before
	assert.doesNotMatch(s.log, /event=stage_(postponed|failed)/);
});
