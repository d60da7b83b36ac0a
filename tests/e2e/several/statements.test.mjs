/*
 * statements.test.mjs - how much PostgreSQL does: statements and transactions per trace from upload to counted,
 * updates of its row that change no index, statements of an answer about the fleet, and those of an idle server.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { startBucketApart } from '../bucket.mjs';
import { btrace, sampleTrace } from '../make.mjs';
import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { Server, atEnd, newFolder, root, startServer, until } from '../server.mjs';

const skip = !postgresIsThere && 'PostgreSQL 15 or later is not installed';
const options = { skip, timeout: 900000 };
const TRACES = 256;
const SENDERS = 8;
const ONE = 'one'; // the schema

async function startDatabase(t) {
	const more = ['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.max=10000'].flatMap((setting) => ['-c', setting]);
	const db = await startPostgres(t, { more });
	db.sql('CREATE EXTENSION pg_stat_statements');
	return db;
}

const changes = (db) => Number(db.sql('SELECT txid_snapshot_xmax(txid_current_snapshot())'));
const statements = (db, of = 'true') => Number(db.sql(`SELECT coalesce(sum(calls),0) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_%' AND query NOT LIKE 'SET search_path%' AND (${of})`));
const counted = 'SELECT count(*) FROM trace WHERE state=2 AND rollup_state=1 AND anr_state=1 AND named=1 AND detected>0';

/* Rows of trace_stage, which triggers maintain, that differ from the conditions of the stages. */
const kept = 'SELECT stage, project_id, rank, trace_id FROM trace_stage';
const due = [...fs.readFileSync(path.join(root, 'schema/catalogue/0001_init.sql'), 'utf8').matchAll(/INDEX trace_stage_(\w+) ON trace\(project_id, (?:(\w+), )?trace_id\) WHERE (.*);/g)]
	.map(([, stage, rank, where]) => `SELECT '${stage}', project_id, ${rank ?? 0}, trace_id FROM trace WHERE ${where}`).join(' UNION ALL ');
const differences = `SELECT count(*) FROM ((${kept} EXCEPT (${due})) UNION ALL ((${due}) EXCEPT ${kept})) d`;

/* Uploads wait until another server decodes: how many wait does not depend on the machine's speed.  A single server with the role
 * of an ingest server is replaced. */
const arrangements = {
	'one server': { most: 17 },
	'several servers with a shared folder': { most: 17.5, several: true },
	'several servers with a store': { most: 16.5, several: true, store: true },
};

/* Repeated at intervals, also if there is nothing to do: their number depends on the time. */
const polls = ['build_rename WHERE stage=', 'rollup_cell WHERE project_id>', 'rollup_tree WHERE pending>', 'anr_trace WHERE day<', 'anr_day WHERE day<', 'anr_day d WHERE d.project_id=$1 AND d.waiting=', 'anr_day WHERE project_id=$1 AND pack_ms>',
	'postponed WHERE stage=', 'rollup_merged WHERE due>', 'count_delta LIMIT', 'outbox WHERE state=', 'ticket WHERE due_ms>', 'resumable WHERE', 'project WHERE project_id>', 'catalogue_schema'].map((of) => `query LIKE 'SELECT%FROM ${of}%'`).join(' OR ');
/* Locks of objects: how many share a statement depends on the time, too. */
const locks = "query LIKE '%pg_try_advisory_lock_shared%'";

for (const [name, { most, several, store }] of Object.entries(arrangements))
	test(`${name}: a trace takes at most ${most} statements apart from polls and locks, and 3 write transactions; few of its updates change an index`, options, async (t) => {
		const db = await startDatabase(t);
		const home = newFolder(t, 'tw-statements-');
		const secret = path.join(home, 'secret.key');
		fs.writeFileSync(secret, 'ab'.repeat(32), { mode: 0o600 });
		const bucket = store ? await startBucketApart(t) : undefined;
		const args = ['--catalog', db.url(ONE), ...(several ? ['--several-servers'] : []), ...(bucket?.args('--secret-key-file', secret) ?? []), '--device-requests', '0', '--max-queue', '10000'];
		const serve = async (...more) => {
			const s = new Server(path.join(home, 'data'), [...args, ...more], bucket?.env ?? {});
			atEnd(t, () => s.stop());
			await s.start();
			return s;
		};
		Object.assign(process.env, bucket?.env); // of the command that makes the key
		const ingest = await serve(...(several ? ['--role', 'ingest,query'] : []));
		ingest.ingestKey = ingest.ingest;
		db.sql('SELECT pg_stat_statements_reset()');
		const before = changes(db);
		const send = async (first) => {
			for (let n = first; n < TRACES; n += SENDERS) {
				const answer = await ingest.post('/api/v1/traces', sampleTrace(15, n + 1), { query: { app: 'shop', build_id: 'b', version_name: '1', device: `d${n}` }, headers: { 'Idempotency-Key': `k${n}` } });
				assert.equal(answer.status, 202, answer.text);
			}
		};
		await Promise.all(Array.from({ length: SENDERS }, (_, first) => send(first)));
		await ingest.stop();
		const rest = await serve();
		await until(() => (db.sql(counted, ONE) === String(TRACES) ? true : undefined), 'all are counted', 600);
		await rest.stop(); // its sessions report their rows
		assert.equal(db.sql(`${kept} LIMIT 1`, ONE).split('|')[0], 'findings');
		assert.equal(db.sql(differences, ONE), '0');
		const [all, written] = [(statements(db) - statements(db, "query LIKE '%count(*) FROM trace WHERE state=$%'")) / TRACES, (changes(db) - before) / TRACES];
		t.diagnostic(`${all.toFixed(2)} statements and ${written.toFixed(2)} transactions that write, per trace`);
		const many = db.sql("SELECT calls||' '||left(query,100) FROM pg_stat_statements ORDER BY calls DESC LIMIT 12");
		const [polled, locked] = [polls, locks].map((of) => statements(db, of) / TRACES);
		t.diagnostic(`${polled.toFixed(2)} of the statements are polls, ${locked.toFixed(2)} lock objects, ${(all - polled - locked).toFixed(2)} remain`);
		assert.ok(all - polled - locked <= most, `${many}\n${all - polled - locked} statements per trace`);
		assert.ok(locked <= 8, `${many}\n${locked} statements per trace lock objects`);
		assert.ok(all <= 24, `${many}\n${all} statements per trace, polls and locks included`);
		assert.ok(written <= 3, `${written} transactions per trace`);
		const [updates, hot] = db.sql("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname='one' AND relname='trace'").split('|').map(Number);
		t.diagnostic(`${(updates / TRACES).toFixed(2)} updates of a trace's row, of which ${(hot / TRACES).toFixed(2)} change no index`);
		assert.ok(updates <= 5.5 * TRACES, `${updates} updates`);
		assert.ok(updates - hot <= 2 * TRACES, `${updates - hot} updates change indexes`);
		db.sql("UPDATE trace SET build_id='' WHERE trace_id IN (SELECT trace_id FROM trace LIMIT 3); UPDATE trace SET named=0, anr_state=0; UPDATE trace SET build_id='b', rollup_state=0 WHERE build_id=''", ONE);
		assert.equal(db.sql(differences, ONE), '0');
	});

/* A trace of one call to each method. */
const wide = (methods, pid) => btrace(Array.from({ length: methods }, (_, i) => [pid, i + 1, 1_000_000 + i * 1000, 500]), { pid });

test('an answer about the fleet takes at most 10 statements, however many methods, builds and scenarios it has', options, async (t) => {
	const db = await startDatabase(t);
	const s = await startServer(t, { args: ['--catalog', db.url(ONE)] });
	const add = async (methods, builds, app) => {
		for (let n = 0; n < builds; n++) await s.trace(wide(methods, n + 1), { query: { app, version_name: `${1 + (n % 2)}`, build_id: `${app}${n}`, scenario: `start ${n >> 1}`, device: `d${n}` } });
		await until(async () => ((await s.get('/api/v1/fleet/scenarios', { query: { app, by: 'all' } })).json?.traces === builds ? true : undefined), `${app} is counted`, 600);
		await until(() => (db.sql(`SELECT count(*) FROM trace WHERE NOT (${counted.split('WHERE ')[1]})`, ONE) === '0' ? true : undefined), 'all stages are done', 600);
	};
	await add(3, 2, 'few');
	await add(1500, 12, 'many');
	const questions = ['methods?limit=1000', 'flame?', 'compare?a=1&b=2', 'scenarios?by=all'];
	/* statements about methods and cells, not those of stages or of the key */
	const fleet = "query ~ 'rollup_' AND query ~* '^(SELECT|WITH)' AND query !~ 'pending|rollup_merged|EXISTS'";
	for (const question of questions) {
		const taken = {};
		for (const app of ['few', 'many']) {
			db.sql('SELECT pg_stat_statements_reset()');
			const answer = await s.get(`/api/v1/fleet/${question}&app=${app}`);
			assert.equal(answer.status, 200, answer.text);
			await until(() => (statements(db, fleet) ? true : undefined), 'its statements are counted');
			taken[app] = statements(db, fleet);
		}
		t.diagnostic(`${question}: ${taken.few} statements for 3 methods, ${taken.many} for 1,500`);
		assert.ok(taken.many <= 10, `${question}: ${taken.many} statements`);
	}
});

test('an idle server with 3,000 projects runs no statement for each of them, and applies rules changed at another server', options, async (t) => {
	const PROJECTS = 3000;
	const db = await startDatabase(t);
	const s = await startServer(t, { args: ['--catalog', db.url(ONE), '--several-servers'] }); // it checks for work every two seconds
	await s.trace(sampleTrace(15, 1), { query: { app: 'shop', build_id: 'b', version_name: '1', device: 'd' } });
	await until(() => (db.sql(counted, ONE) === '1' ? true : undefined), 'the trace is counted');
	await s.ran('retention'); // it visits each project once an hour
	const columns = db.sql("SELECT string_agg(quote_ident(column_name), ',') FROM information_schema.columns WHERE table_schema='one' AND table_name='trace'").split(',');
	const values = columns.map((c) => ({ project_id: 'p.project_id', trace_id: "'01T'||substr(p.project_id,4)" })[c] ?? `t.${c}`);
	db.sql(`INSERT INTO project(project_id,name,created_ms) SELECT '01P'||lpad(i::text,23,'0'), 'project '||i, 1 FROM generate_series(1,${PROJECTS}) i;
		INSERT INTO trace(${columns}) SELECT ${values} FROM trace t CROSS JOIN project p WHERE p.name LIKE 'project %';
		INSERT INTO anr_day(project_id,day,waiting) SELECT project_id, floor(extract(epoch FROM now())/86400), 0 FROM project WHERE name LIKE 'project %';
		INSERT INTO project_setting(project_id,key,value,updated_ms) SELECT project_id, 'labels', '{}', 1 FROM project WHERE name LIKE 'project %'`, ONE);
	db.sql('SELECT pg_stat_statements_reset()');
	await until(() => (statements(db, "query LIKE '%count_delta LIMIT%'") >= 20 ? true : undefined), 'twenty rounds of a stage');
	const [most, query] = db.sql("SELECT calls, left(query,300) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_%' ORDER BY calls DESC LIMIT 1").split('|');
	t.diagnostic(`at most ${most} times: ${query}`);
	assert.ok(Number(most) < PROJECTS, `${most} times: ${query}`);
	const other = await startServer(t, { data: s.data, args: ['--catalog', db.url(ONE), '--several-servers', '--role', 'query'] });
	const inspected = "SELECT detected FROM trace JOIN project USING (project_id) WHERE name='test'";
	const before = db.sql(inspected, ONE);
	assert.equal((await other.ask('PUT', '/api/v1/frames', { key: s.admin, body: '{"framework":["com.shop"]}' })).status, 200);
	const after = await until(() => [db.sql(inspected, ONE)].find((number) => !['0', before].includes(number)), 'the trace is inspected again');
	assert.equal(db.sql(`SELECT count(*) FROM trace WHERE detected=${after}`, ONE), '1');
});
