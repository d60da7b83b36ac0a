/*
 * small.mjs - the cost of a small trace: processor time until it is decoded and counted, and traces per second.  Compared
 * with a loop that writes, syncs and renames a file of the same size, and with SQLite with a transaction per row.
 *
 *   TRACEWELL=build-release/server/tracewell node tests/bench/server/small.mjs [TRACES [OTHER-BINARY]]
 *
 * With a second binary both take turns, four rounds each: a busy machine slows both.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';
import { execFileSync } from 'node:child_process';

import { sampleTrace } from '../../e2e/make.mjs';
import { Server, binary, until } from '../../e2e/server.mjs';
import { sendTraces } from './senders.mjs';

const TRACES = Number(process.argv[2] ?? 1000);
const other = process.argv[3];
const ROUNDS = other ? Number(process.argv[4] ?? 4) : 1;
const SENDERS = 16;
const CALLS = 15; // of three records each
const TICKS = 100; // a second, of /proc

const ticksOf = (pid) => fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ').slice(11, 15).map((n) => (Number(n) * 1000) / TICKS);
const childrenOf = (pid) => fs.readdirSync(`/proc/${pid}/task`).flatMap((tid) => fs.readFileSync(`/proc/${pid}/task/${tid}/children`, 'utf8').trim().split(' ').filter(Boolean));

/* ms of the server itself, and of its children, those that live and those that ended. */
function cpuOf(pid) {
	const [user, system, waitedUser, waitedSystem] = ticksOf(pid);
	const living = childrenOf(pid).map((child) => ticksOf(child).reduce((sum, n) => sum + n));
	return { own: user + system, children: waitedUser + waitedSystem + living.reduce((sum, n) => sum + n, 0) };
}

const bodies = Array.from({ length: TRACES }, (_, n) => zlib.gzipSync(sampleTrace(CALLS, n + 1)));

async function measure(program) {
	process.env.TRACEWELL = program;
	const home = fs.mkdtempSync(path.join(os.tmpdir(), 'tw-small-'));
	const s = new Server(path.join(home, 'data'), ['--device-requests', '0', '--max-queue', '100000']);
	await s.start();
	const before = cpuOf(s.child.pid);
	const begin = performance.now();
	await sendTraces(s, bodies, SENDERS);
	const sent = performance.now() - begin;
	await until(async () => ((await s.get('/api/v1/traces', { query: { state: 'ready', limit: 1 } })).json.total === TRACES ? true : undefined), 'all decoded', 600);
	const decoded = performance.now() - begin;
	await until(async () => ((await s.get('/api/v1/fleet/scenarios?by=all')).json?.traces === TRACES ? true : undefined), 'all counted', 600);
	const counted = performance.now() - begin;
	const after = cpuOf(s.child.pid);
	await s.stop();
	fs.rmSync(home, { recursive: true, force: true });
	return { own: (after.own - before.own) / TRACES, children: (after.children - before.children) / TRACES, sent, decoded, counted };
}

/* The least that durable means: one file after the other. */
function bareFiles() {
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tw-bare-'));
	const begin = performance.now();
	bodies.forEach((body, n) => {
		const fd = fs.openSync(path.join(folder, 'new'), 'w');
		fs.writeSync(fd, body);
		fs.fsyncSync(fd);
		fs.closeSync(fd);
		fs.renameSync(path.join(folder, 'new'), path.join(folder, `f${n}`));
	});
	const ms = performance.now() - begin;
	fs.rmSync(folder, { recursive: true });
	return ms;
}

const SQL = `import os,sqlite3,sys,tempfile,time
d=tempfile.mkdtemp()
c=sqlite3.connect(os.path.join(d,'t.db'),isolation_level=None)
c.execute('PRAGMA journal_mode=WAL'); c.execute('PRAGMA synchronous=FULL'); c.execute('CREATE TABLE t(id INTEGER PRIMARY KEY, b BLOB)')
b=os.urandom(int(sys.argv[2])); t=time.time()
for i in range(int(sys.argv[1])): c.execute('INSERT INTO t(b) VALUES(?)',(b,))
print((time.time()-t)*1000)
import shutil; shutil.rmtree(d)`;

const rate = (ms) => `${((TRACES * 1000) / ms).toFixed(0)}/s`;
const programs = [binary(), ...(other ? [path.resolve(other)] : [])];
for (let round = 0; round < ROUNDS; round++)
	for (const program of programs) {
		const r = await measure(program);
		console.log(`${path.relative('.', program)}: CPU per trace ${(r.own + r.children).toFixed(2)} ms (server ${r.own.toFixed(2)}, children ${r.children.toFixed(2)}); accepted ${rate(r.sent)}, decoded ${rate(r.decoded)}, counted ${rate(r.counted)}`);
	}
console.log(`write, fsync, rename of ${bodies[0].length} bytes: ${rate(bareFiles())}`);
console.log(`SQLite, a transaction per row: ${rate(Number(execFileSync('python3', ['-c', SQL, String(TRACES), String(bodies[0].length)], { encoding: 'utf8' })))}`);
