/*
 * groups.test.mjs - several servers that decode waiting small traces in groups, with files in a common folder or a store:
 * one is killed or stands still while it has a group, and others take over the jobs that it lost.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';

import { startCluster } from '../cluster.mjs';
import { startGates } from '../forwarders.mjs';
import { sampleMapping, sampleTrace } from '../make.mjs';
import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { startPrimary } from '../postgres_pair.mjs';
import { Server, atEnd, binary, newFolder, sanitized, until } from '../server.mjs';

const cannotDelay = spawnSync('strace', ['-V']).error ? 'no strace here' : sanitized() ? 'sanitizers do not bear a tracer' : false;
const skip = !postgresIsThere && 'PostgreSQL 15 or later is not installed';
const options = { skip, timeout: 900000 };
const TRACES = 20;
const CALLS = (n) => 10 + n;

/* Servers on one catalogue and one folder, with traces that wait for a decoder. */
async function begin(t, db, name, address = db.url(name)) {
	const data = path.join(newFolder(t, 'tw-groups-'), 'data');
	const serve = async (role, env = {}, url = address) => {
		const s = new Server(data, ['--catalog', url, '--several-servers', '--role', role, '--device-requests', '0', '--decode-workers', '1'], env);
		await s.start();
		atEnd(t, () => {
			s.child.kill('SIGCONT');
			return s.stop();
		});
		return s;
	};
	const front = await serve('ingest,query');
	for (let n = 0; n < TRACES; n++) {
		const answer = await front.post('/api/v1/traces', sampleTrace(CALLS(n), n + 1), { query: { app: 'shop', version_name: '1', scenario: 'start' }, headers: { 'Idempotency-Key': `k${n}` } });
		assert.equal(answer.status, 202, answer.text);
	}
	const sql = (text) => db.sql(text, name);
	return { data, serve, front, sql, expire: (where = 'true') => sql(`UPDATE job SET due_ms=0 WHERE claimed=1 AND ${where}; UPDATE catalogue_lead SET until_ms=0`) };
}

const ready = (s) => [...s.log.matchAll(/event=decoded trace=(\w+) outcome=ready/g)].map((m) => m[1]);

/* All are decoded and counted once, and their files are those that the catalogue names. */
async function verify({ front, data, sql }) {
	const counted = async () => (await front.get('/api/v1/fleet/scenarios?by=all')).json?.traces ?? 0;
	await until(async () => ((await counted()) >= TRACES ? true : undefined), 'all are counted', 300);
	await until(() => (sql("SELECT count(*) FROM trace_stage WHERE stage='rollup'") === '0' ? true : undefined), 'nothing waits to be counted', 300);
	assert.equal(await counted(), TRACES);
	assert.equal(sql('SELECT count(*) FROM job'), '0');
	assert.equal(sql('SELECT count(*) FROM trace WHERE state=2'), String(TRACES));
	const { json } = await front.get('/api/v1/fleet/methods?metrics=calls');
	assert.equal(Math.max(...json.methods.map((m) => m.calls.sum)), Array.from({ length: TRACES }, (_, n) => CALLS(n)).reduce((a, b) => a + b));
	const check = spawnSync(binary(), ['check', '--data', data], { encoding: 'utf8' });
	assert.equal(check.status, 0, check.stdout + check.stderr);
}

test('a server is killed while it decodes a group', options, async (t) => {
	const db = await startPostgres(t);
	for (const [step, published] of [['child_done', false], ['trace_renamed', false], ['row_ready', true]])
		await t.test(`at ${step}`, async (t) => {
			const c = await begin(t, db, step);
			const dying = await c.serve('decode', { TRACEWELL_CRASH_AT: step });
			assert.equal((await dying.ended).signal, 'SIGKILL');
			const [claimed, done] = [Number(c.sql('SELECT count(*) FROM job WHERE claimed=1')), Number(c.sql('SELECT count(*) FROM trace WHERE state=2'))];
			assert.ok(published ? done > 1 : claimed > 1 && done === 0, `${claimed} claimed, ${done} ready`);
			c.expire();
			const others = [await c.serve('decode'), await c.serve('decode')];
			await verify(c);
			const by = others.flatMap(ready);
			assert.equal(new Set(by).size, by.length, 'none is decoded twice');
			assert.equal(by.length, TRACES - done);
		});
});

test('a server is killed while it decodes a group whose files are in a store', options, async (t) => {
	const db = await startPostgres(t);
	for (const [step, published] of [['child_done', false], ['trace_renamed', false], ['row_ready', true]])
		await t.test(`at ${step}`, async (t) => {
			const c = await startCluster(t, { db, name: step });
			const serve = (role, more = {}) => c.serve({ ...more, args: ['--role', role, '--decode-workers', '1'] });
			const front = await serve('ingest,query');
			const kept = new Map();
			for (let n = 0; n < TRACES; n++) {
				const answer = await front.post('/api/v1/traces', sampleTrace(CALLS(n), 4000), { key: c.keys.ingest, query: { app: 'shop', version_name: '1', scenario: 'start' }, headers: { 'Idempotency-Key': `k${n}` } });
				assert.equal(answer.status, 202, answer.text);
				kept.set(n, { id: answer.json.id, calls: CALLS(n), of: 0 });
			}
			const dying = await serve('decode', { join: false, env: { TRACEWELL_CRASH_AT: step } });
			assert.equal((await dying.ended).signal, 'SIGKILL');
			const count = (of) => Number(db.sql(`SELECT count(*) FROM ${of}`, step));
			const [claimed, done] = [count('job WHERE claimed=1'), count('trace WHERE state=2')];
			assert.ok(published ? done > 1 : claimed > 1 && done === 0, `${claimed} claimed, ${done} ready`);
			db.sql('UPDATE job SET due_ms=0 WHERE claimed=1; UPDATE catalogue_lead SET until_ms=0', step);
			const others = [await serve('decode', { join: false }), await serve('decode', { join: false })];
			await c.verify({ kept }, 300);
			const by = others.flatMap(ready);
			assert.equal(new Set(by).size, by.length, 'none is decoded twice');
			assert.equal(by.length, TRACES - done);
		});
});

test('a server that stalled loses the jobs of its group that another took, and all are decoded once', options, async (t) => {
	const db = await startPostgres(t);
	const c = await begin(t, db, 'still');
	c.sql('CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN OLD; END $$');
	c.sql('CREATE TRIGGER hold BEFORE DELETE ON job FOR EACH ROW EXECUTE FUNCTION hold()');
	const still = await c.serve('decode');
	const holds = "FROM pg_stat_activity WHERE query LIKE 'WITH gone AS (DELETE FROM job%' AND state='active'";
	await until(() => (db.sql(`SELECT count(*) ${holds}`) === '1' ? true : undefined), 'its transaction deletes the first job', 60);
	still.child.kill('SIGSTOP');
	db.sql(`SELECT pg_terminate_backend(pid) ${holds}`);
	await until(() => (db.sql(`SELECT count(*) ${holds}`) === '0' ? true : undefined), 'its transaction has ended', 60);
	c.sql('DROP TRIGGER hold ON job');
	const had = c.sql('SELECT trace_id FROM job WHERE claimed=1 ORDER BY trace_id').split('\n');
	assert.ok(had.length > 6, `${had.length} in the group`);
	const lost = had.slice(0, 5), listed = lost.map((id) => `'${id}'`).join(',');
	c.sql(`UPDATE job SET due_ms=due_ms+600000 WHERE claimed=1 AND trace_id NOT IN (${listed})`);
	c.expire(`trace_id IN (${listed})`);
	const other = await c.serve('decode');
	await until(() => (c.sql('SELECT count(*) FROM job') === String(had.length - lost.length) ? true : undefined), 'the other took what was free', 300);
	still.child.kill('SIGCONT');
	await verify(c);
	await until(() => (/event=claim_lost/.test(still.log) ? true : undefined), 'informed that it lost them', 60);
	assert.deepEqual(ready(still).filter((id) => lost.includes(id)), []); // the others it completes, or returns if PostgreSQL seems down
	assert.deepEqual(ready(other).filter((id) => lost.includes(id)).sort(), lost);
});

test('jobs of a claim whose reply was lost are claimed again by the same server', options, async (t) => {
	const pair = await startPrimary(t), db = pair.primary;
	const gates = await startGates(t);
	const port = await gates.make('decoder', { port: db.port });
	const c = await begin(t, db, 'lost', pair.url('lost'));
	/* The second claim, of the other jobs of the group, waits once. */
	c.sql('CREATE TABLE go(); CREATE TABLE slow(); INSERT INTO slow DEFAULT VALUES');
	c.sql("CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS(SELECT 1 FROM job WHERE claimed=1) AND EXISTS(SELECT 1 FROM slow) THEN DELETE FROM slow; WHILE NOT EXISTS(SELECT FROM go) LOOP PERFORM pg_sleep(0.02); END LOOP; END IF; RETURN NEW; END $$");
	c.sql('CREATE TRIGGER wait BEFORE UPDATE ON job FOR EACH ROW WHEN (NEW.claimed=1 AND OLD.claimed=0) EXECUTE FUNCTION wait()');
	const decoder = await c.serve('decode', {}, pair.address('lost', port));
	const claims = "FROM pg_stat_activity WHERE query LIKE 'WITH mine AS (SELECT project_id, trace_id FROM (%'";
	await until(() => (db.sql(`SELECT count(*) ${claims} AND wait_event='PgSleep'`) === '1' ? true : undefined), 'it claims the group', 60);
	await gates.set('decoder', { closed: true });
	c.sql('INSERT INTO go DEFAULT VALUES');
	await until(() => (Number(c.sql('SELECT count(*) FROM job WHERE claimed=1')) > 2 ? true : undefined), 'the claim is committed', 60);
	c.sql('UPDATE job SET due_ms=due_ms+3600000 WHERE claimed=1'); // their leases do not end during the test
	await until(() => (/event=claim_failed/.test(decoder.log) ? true : undefined), 'it gives the claim up');
	db.endSessions();
	await gates.set('decoder', {});
	await verify(c);
	assert.equal(ready(decoder).length, TRACES);
	assert.equal(c.sql('SELECT max(attempts) FROM trace'), '1');
});

test('a mapping whose claim had no reply is claimed again by the same server', options, async (t) => {
	const pair = await startPrimary(t), db = pair.primary;
	const gates = await startGates(t);
	const port = await gates.make('decoder', { port: db.port });
	const c = await begin(t, db, 'map', pair.url('map'));
	const sent = await c.front.ask('PUT', '/api/v1/builds/b/methods', { key: c.front.write, body: sampleMapping });
	assert.equal(sent.status, 202, sent.text);
	c.sql('CREATE TABLE go(); CREATE TABLE slow(); INSERT INTO slow DEFAULT VALUES');
	c.sql('CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS(SELECT 1 FROM slow) THEN DELETE FROM slow; WHILE NOT EXISTS(SELECT FROM go) LOOP PERFORM pg_sleep(0.02); END LOOP; END IF; RETURN NEW; END $$');
	c.sql('CREATE TRIGGER wait BEFORE UPDATE ON mapping_job FOR EACH ROW WHEN (NEW.claimed=1 AND OLD.claimed=0) EXECUTE FUNCTION wait()');
	const decoder = await c.serve('decode', {}, pair.address('map', port));
	await until(() => (db.sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%UPDATE mapping_job%' AND wait_event='PgSleep'") === '1' ? true : undefined), 'it claims the mapping', 60);
	await gates.set('decoder', { closed: true });
	c.sql('INSERT INTO go DEFAULT VALUES');
	await until(() => (c.sql('SELECT count(*) FROM mapping_job WHERE claimed=1') === '1' ? true : undefined), 'the claim is committed', 60);
	c.sql('UPDATE mapping_job SET due_ms=due_ms+3600000 WHERE claimed=1'); // its lease does not end during the test
	await until(() => (/event=claim_failed/.test(decoder.log) ? true : undefined), 'it gives the claim up');
	db.endSessions();
	await gates.set('decoder', {});
	await until(() => (c.sql("SELECT map_sha256<>'' FROM build WHERE build_id='b'") === 't' ? true : undefined), 'it is compiled', 300);
	await until(() => (/event=mapping_compiled build=b kind=\w+ outcome=ready attempt=1/.test(decoder.log) ? true : undefined), 'it was the first attempt');
});

test('jobs of a group whose leases are about to end are left to the next claim, not failed', options, async (t) => {
	const db = await startPostgres(t);
	const c = await startCluster(t, { db, name: 'late' });
	const serve = (role, more = {}) => c.serve({ ...more, args: ['--role', role, '--decode-workers', '1'] });
	const front = await serve('ingest,query');
	for (let n = 0; n < TRACES; n++) {
		const answer = await front.post('/api/v1/traces', sampleTrace(CALLS(n), 4000), { key: c.keys.ingest, query: { app: 'shop', version_name: '1', scenario: 'start' }, headers: { 'Idempotency-Key': `k${n}` } });
		assert.equal(answer.status, 202, answer.text);
	}
	const sql = (text) => db.sql(text, 'late');
	/* five seconds are left of each first lease: too few to store an object */
	sql('CREATE FUNCTION shorten() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.due_ms := NEW.due_ms - 25000; RETURN NEW; END $$');
	sql('CREATE TRIGGER shorten BEFORE UPDATE ON job FOR EACH ROW WHEN (NEW.claimed=1 AND NEW.attempts=1) EXECUTE FUNCTION shorten()');
	const decoder = await serve('decode', { join: false });
	await until(() => (/event=claim_lost/.test(decoder.log) ? true : undefined), 'a lease is too short', 60);
	sql('DROP TRIGGER shorten ON job');
	await until(() => (sql('SELECT count(*) FROM job') === '0' ? true : undefined), 'all are decoded', 300);
	assert.equal(sql('SELECT count(*) FROM trace WHERE state=2'), String(TRACES));
	assert.doesNotMatch(decoder.log, /outcome=(failed|postponed)/);
});

test('the leases of a group are checked again if its files took long to become durable', { ...options, skip: skip || cannotDelay }, async (t) => {
	const db = await startPostgres(t);
	const c = await startCluster(t, { db, name: 'slow' });
	const serve = (role, more = {}) => c.serve({ ...more, args: ['--role', role, '--decode-workers', '1'] });
	const front = await serve('ingest,query');
	for (let n = 0; n < TRACES; n++) {
		const answer = await front.post('/api/v1/traces', sampleTrace(CALLS(n), 4000), { key: c.keys.ingest, query: { app: 'shop', version_name: '1', scenario: 'start' }, headers: { 'Idempotency-Key': `k${n}` } });
		assert.equal(answer.status, 202, answer.text);
	}
	const sql = (text) => db.sql(text, 'slow');
	/* first leases last 17 s: long enough before the delay, too short after it; and they are not renewed */
	sql('CREATE FUNCTION shorten() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.due_ms := CASE OLD.claimed WHEN 1 THEN OLD.due_ms ELSE NEW.due_ms - 13000 END; RETURN NEW; END $$');
	sql('CREATE TRIGGER shorten BEFORE UPDATE ON job FOR EACH ROW WHEN (NEW.claimed=1 AND NEW.attempts=1) EXECUTE FUNCTION shorten()');
	const decoder = await serve('decode', { join: false, under: ['strace', '-D', '-f', '-q', '-o', '/dev/null', '-e', 'trace=fsync', '-e', 'inject=fsync:delay_enter=8000000', '-e', 'signal=none'] });
	await until(() => (/event=claim_lost/.test(decoder.log) ? true : undefined), 'a lease is too short', 120);
	await decoder.stop('SIGKILL');
	sql('DROP TRIGGER shorten ON job; UPDATE job SET due_ms=0');
	await serve('decode', { join: false });
	await until(() => (sql('SELECT count(*) FROM job') === '0' ? true : undefined), 'all are decoded', 300);
	assert.equal(sql('SELECT count(*) FROM trace WHERE state=2'), String(TRACES));
});
