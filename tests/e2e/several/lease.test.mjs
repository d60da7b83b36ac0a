/*
 * lease.test.mjs - one of several servers computes derived data for all; another takes over when it dies, when it is
 * stopped, and when it stalls; logs and metrics show which one it is.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { sampleTrace } from '../make.mjs';
import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { Server, atEnd, newFolder, until } from '../server.mjs';

const skip = postgresIsThere ? false : 'PostgreSQL 15 or later is not installed';
const upload = (s, n) => s.post('/api/v1/traces', sampleTrace(100 + n), { query: { app: 'shop', version_name: '1', scenario: 'cold_start' }, headers: { 'Idempotency-Key': `k${n}` } });
const counted = (s) => s.get('/api/v1/fleet/scenarios?by=all').then(({ json }) => json?.traces ?? 0);
const metric = async (s, name) => Number(new RegExp(`^${name}(?:{[^}]*})? ([0-9.]+)$`, 'm').exec((await s.get('/metrics', { key: null })).text)?.[1]);
const leads = (s) => metric(s, 'tracewell_leader');

async function serve(t, data, url, node, more = []) {
	const s = new Server(data, ['--catalog', url, '--several-servers', ...(node ? ['--node', node] : []), ...more], {});
	await s.start();
	atEnd(t, () => {
		s.child.kill('SIGCONT');
		return s.stop();
	});
	return s;
}

/* Sends all to `to`; `of` returns the count. */
async function bring(to, from, n, of) {
	for (let i = from; i < from + n; i++) assert.equal((await upload(to, i)).status, 202);
	await until(async () => ((await counted(of)) === from + n ? true : undefined), `${from + n} counted`, 60);
}

test('one counts for all, and another follows it', { skip, timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const data = newFolder(t, 'tracewell-lead-');
	const url = db.url('lead');
	const a = await serve(t, data, url, 'first');
	await until(async () => ((await leads(a)) === 1 ? true : undefined), 'the first leads');
	const b = await serve(t, data, url, 'second');
	const folded = () => Promise.all([a, b].map((s) => s.metric('tracewell_stage_traces_total', { stage: 'rollup', outcome: 'done' })));

	await t.test('traces decoded by the other server, too', async () => {
		await bring(b, 0, 6, b);
		assert.deepEqual([await leads(a), await leads(b)], [1, 0]);
		assert.deepEqual(await folded(), [6, 0]);
	});

	await t.test('each server reports its identity', async () => {
		assert.match((await b.get('/metrics', { key: null })).text, /^tracewell_node_info{node="second",role="all",version="[^"]+"} 1$/m);
		assert.equal((await a.get('/readyz', { key: null })).json.node, 'first');
		for (const line of b.log.trim().split('\n').filter((l) => l.includes('event=decoded'))) assert.match(line, /^time=\S+ node=second level=/);
	});

	await t.test('it is stopped: the other continues immediately', async () => {
		await a.stop();
		assert.equal(db.sql("SELECT count(*) FROM catalogue_lead WHERE what='background' AND owner='first' AND until_ms>0", 'lead'), '0', 'it gave its lease back');
		await until(async () => ((await leads(b)) === 1 ? true : undefined), 'the second leads', 30);
		await bring(b, 6, 2, b);
	});

	await t.test('it dies: the other continues when its lease has expired', async () => {
		await a.start();
		b.child.kill('SIGKILL');
		await b.ended;
		await until(async () => ((await leads(a)) === 1 ? true : undefined), 'the first leads', 40);
		await bring(a, 8, 2, a);
	});

	await t.test('it freezes and resumes: it knows that it has lost the lease', async () => {
		await b.start();
		a.child.kill('SIGSTOP');
		await until(async () => ((await leads(b)) === 1 ? true : undefined), 'the second leads', 40);
		await bring(b, 10, 2, b);
		a.child.kill('SIGCONT');
		assert.equal(await leads(a), 0, 'at once');
		await bring(a, 12, 2, a);
		assert.deepEqual([await leads(a), await leads(b)], [0, 1]);
		assert.equal(await counted(b), 14);
	});
});

test('an invalid name is refused, and a single server reports none', async () => {
	const data = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-lead-'));
	const s = new Server(data, ['--node', 'no name'], {});
	await assert.rejects(s.start(), /--node must be letters, digits, \. _ and -, not "no name"/);
	s.args = [];
	await s.start();
	assert.equal(await leads(s), 1);
	assert.doesNotMatch(s.log, / node=/);
	await s.stop();
	fs.rmSync(data, { recursive: true });
});
