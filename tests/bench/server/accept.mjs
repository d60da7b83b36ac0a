/*
 * accept.mjs - the cost of an accepted small upload with the catalogue in PostgreSQL, on a server that does nothing else:
 * processor time of server and PostgreSQL, the uploads per second that two cores would take at that price, and the
 * statements with the most time.
 *
 *   TRACEWELL=build-release/server/tracewell node tests/bench/server/accept.mjs [UPLOADS [ROUNDS [OTHER-BINARY]]]
 *
 * With a second binary both take turns: a busy machine slows both.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';

import { sampleTrace } from '../../e2e/make.mjs';
import { startPostgres } from '../../e2e/postgres.mjs';
import { Server, atEnd, binary, untilEnd } from '../../e2e/server.mjs';
import { cpuOf } from './processes.mjs';
import { sendTraces } from './senders.mjs';

const UPLOADS = Number(process.argv[2] ?? 2000);
const ROUNDS = Number(process.argv[3] ?? 1);
const other = process.argv[4];
const SENDERS = 32;
const CALLS = 15; // of three records each
const CORES = 2;
const bodies = Array.from({ length: UPLOADS }, (_, n) => zlib.gzipSync(sampleTrace(CALLS, n + 1)));

async function measure(program) {
	process.env.TRACEWELL = program;
	const t = untilEnd();
	const home = fs.mkdtempSync(path.join(os.tmpdir(), 'tw-accept-'));
	const more = ['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.track_planning=on'].flatMap((setting) => ['-c', setting]);
	const db = await startPostgres(t, { more });
	db.sql('CREATE EXTENSION pg_stat_statements');
	const s = new Server(path.join(home, 'data'), ['--role', 'ingest', '--several-servers', '--device-requests', '0', '--max-queue', '1000000', '--catalog', db.url('one')]);
	atEnd(t, () => s.stop());
	await s.start();
	s.ingestKey = s.ingest;
	db.sql('SELECT pg_stat_statements_reset()');
	const before = { server: cpuOf(s.child.pid), postgres: cpuOf(db.child.pid), at: performance.now() };
	await sendTraces(s, bodies, SENDERS);
	const seconds = (performance.now() - before.at) / 1000;
	const server = (cpuOf(s.child.pid) - before.server) / UPLOADS, postgres = (cpuOf(db.child.pid) - before.postgres) / UPLOADS;
	console.log(`${path.relative('.', program)}: ${(UPLOADS / seconds).toFixed(0)} uploads/s accepted here; processor ms per upload: server ${server.toFixed(2)}, PostgreSQL ${postgres.toFixed(2)}, so ${((CORES * 1000) / (server + postgres)).toFixed(0)}/s on ${CORES} cores without the clients`);
	const rows = JSON.parse(db.sql("SELECT json_agg(r) FROM (SELECT calls, plans, total_plan_time AS plan, total_exec_time AS exec, shared_blks_hit+shared_blks_read AS blocks, query FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%' ORDER BY total_plan_time+total_exec_time DESC LIMIT 8) r"));
	for (const r of rows) console.log(`  ${(r.calls / UPLOADS).toFixed(2)} runs, ${(r.plans / UPLOADS).toFixed(2)} plans, ${(r.plan / UPLOADS).toFixed(3)} + ${(r.exec / UPLOADS).toFixed(3)} ms, ${(r.blocks / r.calls).toFixed(0)} blocks a run: ${r.query.replace(/\s+/g, ' ').slice(0, 150)}`);
	await t.end();
	fs.rmSync(home, { recursive: true, force: true });
}

const programs = [binary(), ...(other ? [path.resolve(other)] : [])];
for (let round = 0; round < ROUNDS; round++) for (const program of programs) await measure(program);
