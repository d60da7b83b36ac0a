/*
 * accept.mjs - the cost of an accepted small upload with the catalogue in PostgreSQL, on servers that do nothing else:
 * processor time of servers and PostgreSQL, the uploads per second that two cores would take at that price, statements,
 * writing transactions, bytes of log (WAL), wait events of connections, and the statements with the most time; on one
 * server, then on two.
 *
 *   TRACEWELL=build-release/server/tracewell node tests/bench/server/accept.mjs [UPLOADS [ROUNDS [OTHER-BINARY]]]
 *
 * With a second binary both take turns: a busy machine slows both.
 */
import { spawn } from 'node:child_process';
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
const SAMPLE_MS = 50;
const bodies = Array.from({ length: UPLOADS }, (_, n) => zlib.gzipSync(sampleTrace(CALLS, n + 1)));

/* Samples the wait events of running statements. The returned function stops it and returns the most frequent events. */
function sampleWaits(db) {
	const psql = spawn('psql', ['-XqtA', db.base], { stdio: ['pipe', 'pipe', 'inherit'] });
	let text = '';
	psql.stdout.setEncoding('utf8').on('data', (piece) => (text += piece));
	const timer = setInterval(() => psql.stdin.write("SELECT coalesce(wait_event, 'none') FROM pg_stat_activity WHERE state='active' AND pid<>pg_backend_pid() AND backend_type='client backend';\n"), SAMPLE_MS);
	return async () => {
		clearInterval(timer);
		const ended = new Promise((done) => psql.once('close', done));
		psql.stdin.end();
		await ended;
		const counts = new Map();
		for (const event of text.trim().split('\n')) counts.set(event, (counts.get(event) ?? 0) + 1);
		return [...counts].sort(([, a], [, b]) => b - a).slice(0, 5).map(([event, n]) => `${event} ${n}`).join(', ');
	};
}

const workOf = (db) => db.sql("SELECT (SELECT sum(calls) FROM pg_stat_statements), txid_snapshot_xmax(txid_current_snapshot()), pg_current_wal_lsn()-'0/0'").split('|').map(Number);

async function measure(program, n) {
	process.env.TRACEWELL = program;
	const t = untilEnd();
	const home = fs.mkdtempSync(path.join(os.tmpdir(), 'tw-accept-'));
	const more = ['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.track_planning=on'].flatMap((setting) => ['-c', setting]);
	const db = await startPostgres(t, { more });
	db.sql('CREATE EXTENSION pg_stat_statements');
	const servers = Array.from({ length: n }, () => new Server(path.join(home, 'data'), ['--role', 'ingest', '--several-servers', '--device-requests', '0', '--max-queue', '1000000', '--catalog', db.url('one')]));
	for (const s of servers) {
		atEnd(t, () => s.stop());
		await s.start();
		s.ingestKey = servers[0].ingest;
	}
	const cpu = () => servers.reduce((sum, s) => sum + cpuOf(s.child.pid), 0);
	db.sql('SELECT pg_stat_statements_reset()');
	const waits = sampleWaits(db);
	const before = { work: workOf(db), server: cpu(), postgres: cpuOf(db.child.pid), at: performance.now() };
	await sendTraces(servers, bodies, SENDERS);
	const seconds = (performance.now() - before.at) / 1000;
	const server = (cpu() - before.server) / UPLOADS, postgres = (cpuOf(db.child.pid) - before.postgres) / UPLOADS;
	const [statements, transactions, log] = workOf(db).map((after, k) => (after - before.work[k]) / UPLOADS);
	console.log(`${path.relative('.', program)}, servers: ${n}: ${(UPLOADS / seconds).toFixed(0)} uploads/s accepted here; processor ms per upload: server ${server.toFixed(2)}, PostgreSQL ${postgres.toFixed(2)}, so ${((CORES * 1000) / (server + postgres)).toFixed(0)}/s on ${CORES} cores without the clients`);
	console.log(`  ${statements.toFixed(2)} statements, ${transactions.toFixed(2)} writing transactions, ${log.toFixed(0)} bytes of log; waits: ${await waits()}`);
	const rows = JSON.parse(db.sql("SELECT json_agg(r) FROM (SELECT calls, plans, total_plan_time AS plan, total_exec_time AS exec, shared_blks_hit+shared_blks_read AS blocks, query FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%' ORDER BY total_plan_time+total_exec_time DESC LIMIT 8) r"));
	for (const r of rows) console.log(`  ${(r.calls / UPLOADS).toFixed(2)} runs, ${(r.plans / UPLOADS).toFixed(2)} plans, ${(r.plan / UPLOADS).toFixed(3)} + ${(r.exec / UPLOADS).toFixed(3)} ms, ${(r.blocks / r.calls).toFixed(0)} blocks a run: ${r.query.replace(/\s+/g, ' ').slice(0, 150)}`);
	await t.end();
	fs.rmSync(home, { recursive: true, force: true });
}

const programs = [binary(), ...(other ? [path.resolve(other)] : [])];
for (let round = 0; round < ROUNDS; round++) for (const n of [1, 2]) for (const program of programs) await measure(program, n);
