/*
 * statements.mjs - statements and transactions of PostgreSQL per small trace, from upload to counted, how often each
 * kind of statement runs, and how many updates of rows change no index (HOT).  --several: a server that shares its catalogue;
 * --store: its files are in an S3-compatible store, too.
 *
 *   TRACEWELL=build-release/server/tracewell node tests/bench/server/statements.mjs [TRACES [--several] [--store]]
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';

import { startBucket } from '../../e2e/bucket.mjs';
import { sampleTrace } from '../../e2e/make.mjs';
import { startPostgres } from '../../e2e/postgres.mjs';
import { Server, atEnd, until, untilEnd } from '../../e2e/server.mjs';
import { sendTraces } from './senders.mjs';

const TRACES = Number(process.argv[2] ?? 300);
const SENDERS = 16;
const CALLS = 15; // of three records each

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'tw-statements-'));
const more = ['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.max=10000'].flatMap((setting) => ['-c', setting]);
const t = untilEnd();
const db = await startPostgres(t, { more });
db.sql('CREATE EXTENSION pg_stat_statements');
const has = (option) => process.argv.includes(option);
const bucket = has('--store') ? await startBucket(t) : undefined;
const secret = path.join(home, 'secret.key');
fs.writeFileSync(secret, 'ab'.repeat(32), { mode: 0o600 });
const s = new Server(path.join(home, 'data'), [...(bucket?.args('--secret-key-file', secret) ?? []), '--device-requests', '0', '--max-queue', '100000', '--catalog', db.url('one'), ...(has('--several') ? ['--several-servers'] : [])], bucket?.env);
atEnd(t, () => s.stop());
await s.start();
s.ingestKey = s.ingest;
s.readKey = s.read;

const bodies = Array.from({ length: TRACES }, (_, n) => zlib.gzipSync(sampleTrace(CALLS, n + 1)));
const changes = () => Number(db.sql("SELECT txid_snapshot_xmax(txid_current_snapshot())"));
db.sql('SELECT pg_stat_statements_reset()');
const [before, begin] = [changes(), performance.now()];
await sendTraces(s, bodies, SENDERS);
const counted = () => Number(db.sql("SELECT count(*) FROM trace WHERE state=2 AND rollup_state<>0", 'one'));
try {
	await until(async () => ((await new Promise((r) => setTimeout(r, 500))), counted() === TRACES ? true : undefined), 'all counted', 600);
} finally {
	const seconds = (performance.now() - begin) / 1000;
	const rows = JSON.parse(db.sql("SELECT json_agg(json_build_array(calls, rows, query) ORDER BY calls DESC) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'"));
	const per = (n) => (n / TRACES).toFixed(2).padStart(7);
	console.log(`${TRACES} traces counted in ${seconds.toFixed(1)} s: ${per(rows.reduce((sum, [calls]) => sum + calls, 0))} statements, ${per(changes() - before)} transactions that write, per trace`);
	for (const row of db.sql("SELECT relname, n_tup_ins, n_tup_upd, n_tup_hot_upd, n_tup_del FROM pg_stat_user_tables WHERE n_tup_ins+n_tup_upd>0 ORDER BY n_tup_upd+n_tup_ins DESC LIMIT 4", 'one').split('\n')) {
		const [table, ...counts] = row.split('|');
		console.log(`${table}: ${['inserts', 'updates', 'of these HOT', 'deletes'].map((what, i) => `${what} ${per(Number(counts[i])).trim()}`).join(', ')}`);
	}
	for (const [calls, got, query] of rows) if (calls / TRACES >= 0.05) console.log(`${per(calls)} ${per(got)} ${query.replace(/\s+/g, ' ').slice(0, 170)}`);
	await t.end();
	fs.rmSync(home, { recursive: true, force: true });
}
