/*
 * small_files.mjs - the cost of a small trace with a store and PostgreSQL, without and with --small-files, in turns: requests
 * to the store, statements, log and bytes of PostgreSQL, processor time of server and children, and of PostgreSQL.
 *
 *   TRACEWELL=build-release/server/tracewell node tests/bench/server/small_files.mjs [TRACES [ROUNDS [OTHER-BINARY]]]
 *
 * With a second binary both take turns: a busy machine slows both.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';

import { startBucket } from '../../e2e/bucket.mjs';
import { sampleTrace } from '../../e2e/make.mjs';
import { startPostgres } from '../../e2e/postgres.mjs';
import { Server, atEnd, binary, sleep, until, untilEnd } from '../../e2e/server.mjs';
import { cpuOf } from './processes.mjs';
import { sendTraces } from './senders.mjs';

const TRACES = Number(process.argv[2] ?? 300);
const ROUNDS = Number(process.argv[3] ?? 2);
const other = process.argv[4];
const SENDERS = 8;
const CALLS = 15; // of three records each
const bodies = Array.from({ length: TRACES }, (_, n) => zlib.gzipSync(sampleTrace(CALLS, n + 1)));

async function measure(program, name, args) {
	process.env.TRACEWELL = program;
	const t = untilEnd();
	const home = fs.mkdtempSync(path.join(os.tmpdir(), 'tw-small-files-'));
	const more = ['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.max=10000'].flatMap((setting) => ['-c', setting]);
	const db = await startPostgres(t, { more });
	db.sql('CREATE EXTENSION pg_stat_statements');
	const b = await startBucket(t);
	const s = new Server(path.join(home, 'data'), b.args('--device-requests', '0', '--max-queue', '100000', '--catalog', db.url('one'), ...args), b.env);
	atEnd(t, () => s.stop());
	await s.start();
	s.ingestKey = s.ingest;
	db.sql('SELECT pg_stat_statements_reset()');
	const state = () => ({ server: cpuOf(s.child.pid), postgres: cpuOf(db.child.pid), log: Number(db.sql("SELECT pg_current_wal_lsn()-'0/0'")), bytes: Number(db.sql("SELECT pg_database_size('postgres')")), put: b.count('PUT', '/'), get: b.count('GET', '/blobs/') + b.count('GET', '/traces/') + b.count('HEAD', '/') });
	const before = state();
	await sendTraces(s, bodies, SENDERS);
	await until(async () => (await sleep(500), Number(db.sql('SELECT count(*) FROM trace WHERE state=2 AND rollup_state<>0', 'one')) === TRACES ? true : undefined), 'all counted', 600);
	await until(() => (args.length || b.count('PUT', '/records/') >= TRACES ? true : undefined), 'records', 60);
	const after = state();
	const statements = Number(db.sql("SELECT sum(calls) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%' AND query NOT LIKE '%FROM trace WHERE state=2 AND rollup_state<>0%'"));
	const per = (key, digits = 2) => ((after[key] - before[key]) / TRACES).toFixed(digits);
	console.log(`${programs.length > 1 ? `${path.relative('.', program)} ` : ''}${name.padEnd(20)}: per trace ${per('put')} PUT, ${per('get')} GET and HEAD, ${(statements / TRACES).toFixed(1)} statements, ${(Number(per('log')) / 1000).toFixed(1)} KB of log, ${(Number(per('bytes')) / 1000).toFixed(1)} KB in PostgreSQL; processor ms: server and children ${per('server')}, PostgreSQL ${per('postgres')}`);
	await t.end();
	fs.rmSync(home, { recursive: true, force: true });
}

console.log(`${TRACES} traces of ${bodies[0].length} bytes`);
const programs = [binary(), ...(other ? [path.resolve(other)] : [])];
for (let round = 0; round < ROUNDS; round++)
	for (const args of [[], ['--small-files=16K']])
		for (const program of programs) await measure(program, args[0] ?? 'objects', args);
