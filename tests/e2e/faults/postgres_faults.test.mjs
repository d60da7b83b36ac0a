/*
 * postgres_faults.test.mjs - two servers while their PostgreSQL fails otherwise than by dying: sessions ended at
 * random, serialization failures and deadlocks at random, no connection to be had, a restart in order and as by a
 * crash, and a primary that writes no more. FAULTS (15, in a full run 60) is how many of each.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';

import { startCluster } from '../cluster.mjs';
import { sampleTrace } from '../make.mjs';
import { command, postgresIsThere, startPostgres } from '../postgres.mjs';
import { atEnd, inFull, sleep, until } from '../server.mjs';

const skip = postgresIsThere ? false : 'PostgreSQL 15 or later is not installed';
const FAULTS = Number(process.env.FAULTS ?? inFull(60, 15));
const MINE = "pid<>pg_backend_pid() AND application_name='tracewell'";

/* A writer that fails now and then as one does that met another. */
const QUARREL = `CREATE FUNCTION quarrel() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	IF random() < 0.15 THEN PERFORM nextval('quarrels'); RAISE EXCEPTION 'at random' USING ERRCODE = CASE WHEN random() < 0.5 THEN '40001' ELSE '40P01' END; END IF;
	RETURN NULL; END $$`;
const QUARRELLED = ['trace', 'job', 'part', 'rollup_part', 'catalogue_lead'];

/* Acts until that came to enough of them. */
async function enough(what, act) {
	let n = 0;
	await until(async () => ((n += Number(act())) >= FAULTS ? true : void (await sleep(60))), what, 120);
	return n;
}

/* Sessions of the test's own, until none is left for others. */
function crowd(db, n) {
	return Array.from({ length: n }, () => spawn(path.join(path.dirname(command('psql').at(-1)), 'psql'), ['-Xq', db.base], { stdio: ['pipe', 'ignore', 'ignore'] }));
}

const anyUnready = (c) => until(async () => {
	for (const s of c.servers) if ((await s.get('/readyz', { key: null })).status !== 200) return true;
	return undefined;
}, 'it is noticed');

test('sessions end, writers conflict, no connection is free: nothing is lost or counted twice', { skip, timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const c = await startCluster(t, { db, name: 'faulty' });
	await c.serve();
	await c.serve();
	const load = c.send(3);
	const well = async (what) => {
		const began = Date.now();
		await load.more(10, `uploads after: ${what}`);
		await c.works();
		t.diagnostic(`${what}: uploads and all pages ${(Date.now() - began) / 1000} s after`);
	};
	await load.more(10, 'uploads before');

	const ended = await enough('sessions ended', () => db.sql(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE ${MINE} AND random()<0.4`));
	await well(`${ended} sessions ended`);

	await enough('statements cancelled', () => db.sql(`SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE ${MINE} AND random()<0.5`));
	await well('statements cancelled');

	db.sql('CREATE SEQUENCE quarrels', 'faulty'); // which counts those of transactions that are rolled back, too
	db.sql(QUARREL, 'faulty');
	for (const table of QUARRELLED) db.sql(`CREATE TRIGGER quarrel AFTER INSERT OR UPDATE OR DELETE ON ${table} FOR EACH ROW EXECUTE FUNCTION quarrel()`, 'faulty');
	await until(() => (Number(db.sql('SELECT last_value FROM quarrels', 'faulty')) >= FAULTS ? true : undefined), 'quarrels', 120);
	for (const table of QUARRELLED) db.sql(`DROP TRIGGER quarrel ON ${table}`, 'faulty');
	await well('serialization failures and deadlocks');

	const many = crowd(db, 200);
	atEnd(t, () => many.forEach((one) => one.kill()));
	await enough('no connection', () => {
		try {
			db.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${MINE}`);
			many.push(...crowd(db, 10)); // which take their place
			return 0;
		} catch {
			return 1; // it got none either
		}
	});
	for (const one of many) one.kill();
	await until(() => {
		try {
			return db.sql('SELECT 1') === '1' || undefined;
		} catch {
			return undefined;
		}
	}, 'a connection to be had');
	await well('no connection to be had');

	/* What a role without a privilege gets (the tests' role has all), and what a damaged table and a failed disk give. */
	for (const state of ['42501', 'XX001', '58030']) {
		db.sql(`CREATE OR REPLACE FUNCTION quarrel() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'until an operator acts' USING ERRCODE='${state}'; END $$`, 'faulty');
		db.sql('CREATE TRIGGER quarrel BEFORE INSERT ON trace FOR EACH ROW EXECUTE FUNCTION quarrel()', 'faulty');
		await anyUnready(c);
		const { status, json, headers } = await c.servers[0].post('/api/v1/traces', sampleTrace(3));
		assert.deepEqual([status, json.error.status, headers.get('retry-after')], [503, 'storage', '60'], json.error.message);
		db.sql('DROP TRIGGER quarrel ON trace', 'faulty');
		await well(`writes failed with ${state}`);
	}

	for (const signal of ['SIGINT', 'SIGQUIT']) {
		await db.stop(signal);
		await anyUnready(c);
		await db.start();
		await well(`restarted by ${signal}`);
	}

	/* The error of a primary that became a standby during its sessions. */
	const writers = () => db.sql('SELECT pid FROM pg_locks WHERE classid=1953977199 ORDER BY 1').split('\n');
	const before = writers();
	db.sql("CREATE OR REPLACE FUNCTION quarrel() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no more' USING ERRCODE='25006'; END $$", 'faulty');
	db.sql('CREATE TRIGGER quarrel AFTER INSERT ON trace FOR EACH ROW EXECUTE FUNCTION quarrel()', 'faulty');
	await until(() => (before.filter((pid) => !writers().includes(pid)).length >= c.servers.length ? true : undefined), 'a writer of each asked for another host', 180);
	db.sql('DROP TRIGGER quarrel ON trace', 'faulty');
	await well('nothing could be written');

	await load.end();
	await c.verify(load);
	t.diagnostic(`${load.kept.size} uploads accepted; answers ${JSON.stringify([...load.reported])}, the slowest ${load.slowest} ms`);
});
