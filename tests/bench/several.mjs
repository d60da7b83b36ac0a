/*
 * several.mjs - what a trace costs on each engine: uploads and decodes a second, processor time, transactions
 * and log of PostgreSQL, one server after the other on SQLite, then 1, 2 and 4 servers on PostgreSQL; and the
 * first and later questions about a trace.
 *
 *   TRACEWELL=build-release/server/tracewell node tests/bench/several.mjs [TRACES [RECORDS]]
 *
 * All of it shares one machine: what is added by more servers shows where there are processors for them. The
 * processor's time per trace, of servers, decoders and database, is what plans are made of.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';

import { sampleTrace } from '../e2e/make.mjs';
import { postgresIsThere, startPostgres } from '../e2e/postgres.mjs';
import { Server, until } from '../e2e/server.mjs';

const TRACES = Number(process.argv[2] ?? 300);
const RECORDS = Number(process.argv[3] ?? 20000);
const SENDERS = 8;
const TICKS = 100; // a second, of /proc
const ends = [];
const t = { after: (end) => ends.unshift(end) };

/* Of the process and of all that it has waited for, ms. */
function cpuOf(pid) {
	const [user, system, waitedUser, waitedSystem] = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ').slice(11, 15).map(Number);
	return ((user + system + waitedUser + waitedSystem) * 1000) / TICKS;
}

const childrenOf = (pid) => fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
const databaseCpu = (db) => (db ? [db.child.pid, ...childrenOf(db.child.pid)].reduce((sum, pid) => sum + cpuOf(pid), 0) : 0);
const databaseWork = (db) => {
	if (!db) return { commits: 0, log: 0 };
	const [commits, log] = db.sql("SELECT (SELECT xact_commit FROM pg_stat_database WHERE datname='postgres'), pg_current_wal_lsn()-'0/0'").split('|').map(Number);
	return { commits, log };
};

const body = zlib.gzipSync(sampleTrace(RECORDS, 7));

async function send(servers) {
	let next = 0;
	const sender = async (of) => {
		while (next < TRACES) {
			const n = next++;
			const s = servers[of % servers.length];
			const answer = await s.post('/api/v1/traces', body, { query: { app: 'shop', version_name: '1', scenario: 'start', device: `d${n}` }, headers: { 'Idempotency-Key': `k${n}` } });
			if (answer.status !== 202) throw new Error(answer.text);
		}
	};
	await Promise.all(Array.from({ length: SENDERS }, (_, of) => sender(of)));
}

const timed = async (what) => {
	const begin = performance.now();
	await what();
	return performance.now() - begin;
};

/* ms of the first question about each of some traces, and of the same once more. */
async function questions(s) {
	const { json } = await s.get('/api/v1/traces', { query: { limit: 20 } });
	const ask = async () => {
		const times = [];
		for (const { id } of json.traces) times.push(await timed(() => s.get(`/api/v1/traces/${id}/flame?thread=7`)));
		return times.sort((a, b) => a - b)[times.length >> 1];
	};
	return [await ask(), await ask()];
}

async function measure(name, n, db) {
	const data = fs.mkdtempSync(path.join(os.tmpdir(), 'tw-several-'));
	const args = [...(db ? ['--catalog', db.url(name.replace(/\W/g, '_'))] : []), ...(n > 1 ? ['--several-servers'] : []), '--device-requests', '0', '--log-level', 'warn'];
	const servers = Array.from({ length: n }, () => new Server(data, [...args, '--log-level', 'info'], {}));
	for (const s of servers) await s.start();
	for (const s of servers) s.ingestKey = servers[0].ingest; // made before the clock runs
	const before = { cpu: databaseCpu(db), ...databaseWork(db) };
	const begin = performance.now();
	await send(servers);
	const sent = performance.now() - begin;
	await until(async () => ((await servers[0].get('/api/v1/traces', { query: { state: 'ready', limit: 1 } })).json.total === TRACES ? true : undefined), 'all decoded', 600);
	const decoded = performance.now() - begin;
	await until(async () => ((await servers[0].get('/api/v1/fleet/scenarios?by=all')).json?.traces === TRACES ? true : undefined), 'all counted', 600);
	const after = { cpu: databaseCpu(db), ...databaseWork(db) };
	const cpu = servers.reduce((sum, s) => sum + cpuOf(s.child.pid), 0);
	for (const s of servers) await s.stop();
	await servers[0].start();
	servers[0].readKey = servers[0].read;
	const [cold, warm] = await questions(servers[0]);
	await servers[0].stop();
	fs.rmSync(data, { recursive: true, force: true });
	return { name, uploads: (TRACES * 1000) / sent, decodes: (TRACES * 1000) / decoded, cpu: cpu / TRACES, database: (after.cpu - before.cpu) / TRACES,
		commits: (after.commits - before.commits) / TRACES, log: (after.log - before.log) / TRACES, cold, warm };
}

const rows = [await measure('SQLite', 1, null)];
if (postgresIsThere) {
	const db = await startPostgres(t);
	for (const n of [1, 2, 4]) rows.push(await measure(`PostgreSQL x${n}`, n, db));
} else console.log('PostgreSQL is not installed: SQLite alone');
const [base] = rows;
const by = (value, to) => `${value.toFixed(1)} (${(value / to).toFixed(2)})`;

console.log(`${TRACES} traces of ${RECORDS} records, ${body.length} bytes sent; in brackets the ratio to SQLite's`);
console.log('| | uploads/s | decoded/s | CPU ms of servers | of the database | commits | bytes of log | first flame ms | next ms |\n|---|---|---|---|---|---|---|---|---|');
for (const r of rows) console.log(`| ${r.name} | ${by(r.uploads, base.uploads)} | ${by(r.decodes, base.decodes)} | ${by(r.cpu, base.cpu)} | ${r.database.toFixed(1)} | ${r.commits.toFixed(1)} | ${r.log.toFixed(0)} | ${by(r.cold, base.cold)} | ${by(r.warm, base.warm)} |`);
for (const end of ends) await end();
