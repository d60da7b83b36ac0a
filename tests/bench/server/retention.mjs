/*
 * retention.mjs - the cost of deleting old traces from PostgreSQL: processor time, log (WAL) and dead rows per deleted
 * trace, the time of a vacuum, and what uploads take meanwhile.  The traces are copies of a few that were uploaded, with
 * their small files.  fsync is on, unlike in tests.
 *
 *   TRACEWELL=build-release/server/tracewell node tests/bench/server/retention.mjs [TRACES [DELETED [OTHER-BINARY]]]
 *
 * With a second binary both take turns, each in a database of its own.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';

import { startBucketApart } from '../../e2e/bucket.mjs';
import { sampleTrace } from '../../e2e/make.mjs';
import { startPostgres } from '../../e2e/postgres.mjs';
import { Server, atEnd, binary, sleep, until, untilEnd } from '../../e2e/server.mjs';
import { cpuOf } from './processes.mjs';
import { sendTraces } from './senders.mjs';

const TRACES = Number(process.argv[2] ?? 300000);
const DELETED = Number(process.argv[3] ?? TRACES / 10);
const other = process.argv[4];
const FIRST = 50; // uploaded; the others are copies of them
const CALLS = 15; // of three records each
const DAY_MS = 86400000;
const OLD_DAYS = 40, KEPT_DAYS = 30;
const UPLOADS = 60; // of one device after another

/* Copies of the first traces' rows: the first DELETED are old. */
function copy(db) {
	const columns = (table) => db.sql(`SELECT string_agg(quote_ident(column_name), ',') FROM information_schema.columns WHERE table_schema='one' AND table_name='${table}'`).split(',');
	const id = `'0'||lpad(n::text,25,'0')`;
	const other = { trace_id: id, idempotency_key: `'copy'||n`, recorded_ms: 'created_ms-n', created_ms: `created_ms-n-CASE WHEN n<=${DELETED} THEN ${OLD_DAYS * DAY_MS} ELSE ${DAY_MS} END`, ready_ms: 'ready_ms-n' };
	for (const table of ['trace', 'part', 'small_file']) {
		const all = columns(table);
		db.sql(`INSERT INTO ${table}(${all.join(',')}) SELECT ${all.map((c) => other[c] ?? `t.${c}`).join(',')} FROM generate_series(1,${TRACES}) n
			JOIN (SELECT *, dense_rank() OVER (ORDER BY trace_id)-1 AS place FROM ${table} WHERE trace_id NOT LIKE '00%') t ON t.place=n%${FIRST}`, 'one');
	}
	db.sql('VACUUM (FREEZE, ANALYZE)', 'one');
}

const median = (all) => all.sort((a, b) => a - b)[all.length >> 1];

/* ms of each upload, one after the other. */
async function uploadTimes(s, from) {
	const times = [];
	for (let n = 0; n < UPLOADS; n++) {
		const began = performance.now();
		await sendTraces(s, [zlib.gzipSync(sampleTrace(CALLS, from + n))], 1, from + n);
		times.push(performance.now() - began);
	}
	return `median ${median(times).toFixed(0)} ms, at most ${times.at(-1).toFixed(0)} ms`;
}

async function measure(program) {
	process.env.TRACEWELL = program;
	const t = untilEnd();
	const home = fs.mkdtempSync(path.join(os.tmpdir(), 'tw-retention-'));
	const db = await startPostgres(t, { more: ['fsync=on', 'max_wal_size=4GB', 'shared_buffers=512MB', 'shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.track_planning=on', 'pg_stat_statements.max=10000'].flatMap((setting) => ['-c', setting]) });
	db.sql('CREATE EXTENSION pg_stat_statements');
	const bucket = await startBucketApart(t);
	const secret = path.join(home, 'secret.key');
	fs.writeFileSync(secret, 'ab'.repeat(32), { mode: 0o600 });
	const s = new Server(path.join(home, 'data'), [...bucket.args('--secret-key-file', secret), '--several-servers', '--retention-every', '1', '--device-requests', '0', '--catalog', db.url('one')], bucket.env);
	atEnd(t, () => s.stop());
	await s.start();
	s.ingestKey = s.ingest;
	await s.ask('PUT', '/api/v1/retention', { key: s.admin, body: '{}' });
	await sendTraces(s, Array.from({ length: FIRST }, (_, n) => zlib.gzipSync(sampleTrace(CALLS, n + 1))), 4, 0);
	const count = (where) => Number(db.sql(`SELECT count(*) FROM trace WHERE ${where}`, 'one'));
	await until(() => (count('state=2 AND rollup_state=1 AND anr_state=1 AND named=1 AND detected>0') === FIRST ? true : undefined), 'counted', 300);
	copy(db);
	console.log(`${path.relative('.', program)}: ${TRACES} traces; an upload alone: ${await uploadTimes(s, 1000)}`);
	const sum = () => ({ server: cpuOf(s.child.pid), postgres: cpuOf(db.child.pid), at: performance.now(), wal: Number(db.sql('SELECT wal_bytes FROM pg_stat_wal')), transactions: Number(db.sql('SELECT txid_snapshot_xmax(txid_current_snapshot())')) });
	db.sql('CHECKPOINT; SELECT pg_stat_statements_reset()');
	const before = sum();
	await s.ask('PUT', '/api/v1/retention', { key: s.admin, body: JSON.stringify({ max_age_days: KEPT_DAYS }) });
	const during = await uploadTimes(s, 5000);
	await until(async () => (await s.metric('tracewell_expired_total', { what: 'trace' })) >= DELETED || void (await sleep(500)), 'deleted', 3600);
	const after = sum();
	const per = (n) => (n / DELETED).toFixed(3);
	console.log(`  ${DELETED} deleted in ${((after.at - before.at) / 1000).toFixed(0)} s; per deleted trace: server ${per(after.server - before.server)} ms, PostgreSQL ${per(after.postgres - before.postgres)} ms of processor time, ${per((after.wal - before.wal) / 1024)} KB of log, ${per(after.transactions - before.transactions)} transactions (with ${UPLOADS} uploads)`);
	for (const r of JSON.parse(db.sql("SELECT json_agg(r) FROM (SELECT calls, total_plan_time+total_exec_time AS ms, shared_blks_hit+shared_blks_read AS blocks, query FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat%' ORDER BY 2 DESC LIMIT 12) r")))
		console.log(`  ${per(r.calls)} runs, ${per(r.ms)} ms, ${(r.blocks / r.calls).toFixed(0)} blocks a run: ${r.query.replace(/\s+/g, ' ').slice(0, 150)}`);
	console.log(`  an upload meanwhile: ${during}`);
	console.log(`  dead rows: ${db.sql("SELECT string_agg(relname||' '||n_dead_tup, ', ' ORDER BY n_dead_tup DESC) FROM pg_stat_user_tables WHERE schemaname='one' AND n_dead_tup>100", 'one')}`);
	const cpu = cpuOf(db.child.pid), at = performance.now();
	db.sql('VACUUM', 'one');
	console.log(`  vacuum: ${((performance.now() - at) / 1000).toFixed(1)} s, ${per(cpuOf(db.child.pid) - cpu)} ms of processor time per deleted trace`);
	await t.end();
	fs.rmSync(home, { recursive: true, force: true });
}

for (const program of [binary(), ...(other ? [path.resolve(other)] : [])]) await measure(program);
