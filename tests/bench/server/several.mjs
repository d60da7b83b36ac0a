/*
 * several.mjs - the cost of a trace on each engine: uploads and decodes per second, processor time, transactions,
 * log and space of PostgreSQL, requests and bytes of a store; one server on SQLite and a folder, then 1, 2 and 4
 * servers on PostgreSQL, and on PostgreSQL and S3; and the first request for a trace at a server that has none of
 * its files, and the same request again.  Last, the number of small uploads per second that servers accept if they
 * do nothing else: the limit of one catalogue.
 *
 *   TRACEWELL=build-release/server/tracewell node tests/bench/server/several.mjs [TRACES [RECORDS]]
 *
 * Everything shares one machine, also the store, which is a script, so more servers are faster only if there are
 * processors for them.  For planning, use the processor time per trace of servers, decoders and database.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';

import { startBucket } from '../../e2e/bucket.mjs';
import { sampleTrace } from '../../e2e/make.mjs';
import { postgresIsThere, startPostgres } from '../../e2e/postgres.mjs';
import { Server, atEnd, binary, until, untilEnd } from '../../e2e/server.mjs';
import { sendTraces } from './senders.mjs';

const TRACES = Number(process.argv[2] ?? 300);
const RECORDS = Number(process.argv[3] ?? 20000);
const SENDERS = 16;
const TICKS = 100; // a second, of /proc
const t = untilEnd();

/* Of the process and of all that it has waited for, ms. */
function cpuOf(pid) {
	const [user, system, waitedUser, waitedSystem] = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ').slice(11, 15).map(Number);
	return ((user + system + waitedUser + waitedSystem) * 1000) / TICKS;
}

const childrenOf = (pid) => fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
const databaseCpu = (db) => (db ? [db.child.pid, ...childrenOf(db.child.pid)].reduce((sum, pid) => sum + cpuOf(pid), 0) : 0);
const databaseWork = (db) => {
	if (!db) return { commits: 0, changes: 0, log: 0, room: 0 };
	const [commits, changes, log, room] = db.sql("SELECT (SELECT xact_commit FROM pg_stat_database WHERE datname='postgres'), txid_snapshot_xmax(txid_current_snapshot()), pg_current_wal_lsn()-'0/0', pg_database_size('postgres')").split('|').map(Number);
	return { commits, changes, log, room };
};
const bytesOf = (file) => fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0;
const filesBelow = (...parts) => {
	const from = path.join(...parts);
	return fs.existsSync(from) ? fs.readdirSync(from, { recursive: true, withFileTypes: true }).filter((f) => f.isFile()).map((f) => path.join(f.parentPath ?? f.path, f.name)) : [];
};
const bytesBelow = (...parts) => filesBelow(...parts).reduce((sum, f) => sum + bytesOf(f), 0);

const sim = path.join(path.dirname(binary()), '..', 'tests', 'tracewell-sim');

/* A simulated phone's, as it sends them.  No two alike: the same content would be kept once. */
function recordings() {
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'tw-phone-'));
	const bodies = Array.from({ length: TRACES }, (_, n) => {
		execFileSync(sim, ['--out', dir, '--seed', String(n + 1), '--build', '1', '--records', String(RECORDS)]);
		return zlib.gzipSync(fs.readFileSync(path.join(dir, 'rhea-atrace.bin')));
	});
	const mapping = fs.readFileSync(path.join(dir, 'methodMapping.txt'));
	fs.rmSync(dir, { recursive: true });
	return { bodies, mapping };
}

const { bodies, mapping } = recordings();

const timed = async (what) => {
	const begin = performance.now();
	await what();
	return performance.now() - begin;
};

/* ms of the first request for each of some traces, and of the same request again. */
async function questions(s) {
	const { json } = await s.get('/api/v1/traces', { query: { limit: 20 } });
	const ask = async () => {
		const times = [];
		for (const { id } of json.traces) times.push(await timed(() => s.get(`/api/v1/traces/${id}/flame?thread=all`)));
		return times.sort((a, b) => a - b)[times.length >> 1];
	};
	return [await ask(), await ask()];
}

/* The parts that all servers share, and each server's own. */
function places(name, n, db, bucket) {
	const home = fs.mkdtempSync(path.join(os.tmpdir(), 'tw-several-'));
	const args = ['--device-requests', '0', '--log-level', 'info'];
	if (db) args.push('--catalog', db.url(name.replace(/\W/g, '_')));
	if (n > 1) args.push('--several-servers');
	if (bucket) args.push(...bucket.args('--secret-key-file', path.join(home, 'secret.key')));
	if (bucket) fs.writeFileSync(path.join(home, 'secret.key'), '0123456789abcdef'.repeat(4) + '\n', { mode: 0o600 });
	const data = (of) => path.join(home, bucket ? `node${of}` : 'data');
	const servers = Array.from({ length: n }, (_, of) => new Server(data(of), args, bucket?.env ?? {}));
	for (const s of servers) atEnd(t, () => s.stop());
	return { home, servers };
}

const requestsOf = (bucket) => (bucket ? [bucket.count('PUT', '/') + bucket.count('POST', '/'), bucket.count('GET', '/') + bucket.count('HEAD', '/')] : [0, 0]);

/* All that costs, as one row of numbers to be subtracted. */
const spent = (db, bucket) => ({ cpu: databaseCpu(db), ...databaseWork(db), writes: requestsOf(bucket)[0], reads: requestsOf(bucket)[1] });

async function measure(name, n, db, bucket) {
	const { home, servers } = places(name, n, db, bucket);
	for (const s of servers) await s.start();
	for (const s of servers) s.ingestKey = servers[0].ingest; // made before the clock runs
	await servers[0].put('/api/v1/builds/b/methods', mapping);
	const before = spent(db, bucket);
	const begin = performance.now();
	await sendTraces(servers, bodies, SENDERS);
	const sent = performance.now() - begin;
	const [first] = servers;
	await until(async () => ((await first.get('/api/v1/traces', { query: { state: 'ready', limit: 1 } })).json.total === TRACES ? true : undefined), 'all decoded', 600);
	const decoded = performance.now() - begin;
	await until(async () => ((await first.get('/api/v1/fleet/scenarios?by=all')).json?.traces === TRACES ? true : undefined), 'all counted', 600);
	const after = spent(db, bucket);
	const each = Object.fromEntries(Object.keys(after).map((key) => [key, (after[key] - before[key]) / TRACES]));
	const cpu = servers.reduce((sum, s) => sum + cpuOf(s.child.pid), 0) / TRACES;
	for (const s of servers) await s.stop();
	const kept = bucket ? bytesBelow(bucket.folder, 'tw') : bytesBelow(first.data, 'blobs') + bytesBelow(first.data, 'traces');
	if (!db) each.room = filesBelow(first.data).filter((f) => /catalogue\.db/.test(f)).reduce((sum, f) => sum + bytesOf(f), 0) / TRACES;
	for (const s of servers) fs.rmSync(path.join(s.data, 'cache'), { recursive: true, force: true });
	await first.start();
	first.readKey = first.read;
	const [cold, warm] = await questions(first);
	await first.stop();
	fs.rmSync(home, { recursive: true, force: true });
	return { ...each, name, uploads: (TRACES * 1000) / sent, decodes: (TRACES * 1000) / decoded, cpu, database: each.cpu, kept: kept / TRACES, cold, warm };
}

/* Uploads a second, and the transactions of each, of servers that accept alone. */
async function accepting(n, db) {
	const { home, servers } = places(`accepting${n}`, n, db, null);
	for (const s of servers) s.args.push('--role', 'ingest', '--max-queue', '100000', ...(n > 1 ? [] : ['--several-servers']));
	for (const s of servers) await s.start();
	for (const s of servers) s.ingestKey = servers[0].ingest;
	const small = Array.from({ length: 1500 }, (_, of) => zlib.gzipSync(sampleTrace(150, of + 1)));
	const before = databaseWork(db).changes;
	const ms = await timed(() => sendTraces(servers, small, SENDERS));
	const each = (databaseWork(db).changes - before) / small.length;
	for (const s of servers) await s.stop();
	fs.rmSync(home, { recursive: true, force: true });
	return `${n} accepting: ${((small.length * 1000) / ms).toFixed(0)} uploads/s, ${each.toFixed(1)} transactions that change each`;
}

const rows = [await measure('SQLite', 1, null)];
const accepted = [];
if (postgresIsThere) {
	const db = await startPostgres(t);
	for (const n of [1, 2, 4]) rows.push(await measure(`PostgreSQL x${n}`, n, db));
	accepted.push(await accepting(1, db), await accepting(2, db));
	for (const n of [1, 2, 4]) rows.push(await measure(`PostgreSQL, S3 x${n}`, n, db, await startBucket(t, `files${n}`)));
} else console.log('PostgreSQL is not installed: SQLite alone');
const [base] = rows;
const by = (value, to) => `${value.toFixed(1)} (${(value / to).toFixed(2)})`;

console.log(`${TRACES} traces of ${RECORDS} records, ${bodies[0].length} bytes sent; in brackets the ratio to SQLite's`);
console.log('| | uploads/s | decoded/s | CPU ms of servers | of the database | transactions | that change | bytes of log | bytes of catalogue | S3 writes | S3 reads | bytes kept | first flame ms | next ms |');
console.log('|---|---|---|---|---|---|---|---|---|---|---|---|---|---|');
for (const r of rows)
	console.log(`| ${r.name} | ${by(r.uploads, base.uploads)} | ${by(r.decodes, base.decodes)} | ${by(r.cpu, base.cpu)} | ${r.database.toFixed(1)} | ${r.commits.toFixed(1)} | ${r.changes.toFixed(1)} | ${r.log.toFixed(0)} | ${r.room.toFixed(0)} | ` +
		`${r.writes.toFixed(2)} | ${r.reads.toFixed(2)} | ${r.kept.toFixed(0)} | ${by(r.cold, base.cold)} | ${by(r.warm, base.warm)} |`);
for (const line of accepted) console.log(line);
await t.end();
