/*
 * ready.test.mjs - /readyz reports the state of the catalogue, disk, store, upload slots and decoders from
 * memory: it responds while any of them hangs, and writes nothing. And a full disk: deletes, retention and restarts work.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { startBucket } from '../bucket.mjs';
import { ANY, Faults, shim } from '../faults.mjs';
import { sampleTrace } from '../make.mjs';
import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { Server, atEnd, sideBySide, startServer, until } from '../server.mjs';

const test = sideBySide(2); // most of their time they wait

const ready = async (s, target = '/readyz') => s.get(target, { key: null });
const checks = async (s) => (await ready(s)).json.checks;
const turns = (s, status, check) => until(async () => {
	const r = await ready(s);
	return r.status === status && (!check || r.json.checks[check].ok === (status === 200)) ? r : undefined;
}, `/readyz ${status} ${check ?? ''}`, 20);
/* Prints the time from a fault, which the caller has just caused, to the red response. */
async function turnsRed(t, fault, red) {
	const began = performance.now();
	const r = await red();
	t.diagnostic(`${fault}: /readyz red after ${((performance.now() - began) / 1000).toFixed(2)} s`);
	return r;
}
const NAMES = ['reading', 'catalogue', 'running', 'disk', 'uploads', 'jobs', 'storage'];

test('each check has a name, a state and a message; asking writes nothing', async (t) => {
	const s = await startServer(t, { args: ['--reserve', '0'] });
	const first = await ready(s);
	assert.equal(first.status, 200, first.text);
	assert.deepEqual(Object.keys(first.json.checks).sort(), [...NAMES].sort());
	for (const name of NAMES) assert.deepEqual([first.json.checks[name].ok, first.json.checks[name].message], [true, ''], name);
	if (process.env.TRACEWELL_TEST_POSTGRES) return;
	const state = () => ['catalogue.db', 'catalogue.db-wal'].map((name) => {
		const { size, mtimeMs } = fs.statSync(path.join(s.data, name));
		return `${name} ${size} ${mtimeMs}`;
	}).join();
	const before = state();
	for (let i = 0; i < 20; i++) for (const target of ['/readyz', '/readyz?for=read']) assert.equal((await ready(s, target)).status, 200);
	assert.equal(state(), before);
});

for (const error of ['EIO', 'ENOSPC'])
	test(`the data folder fails with ${error}`, { skip: !fs.existsSync(shim) && `no ${shim}` }, async (t) => {
		const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-ready-'));
		const data = path.join(folder, 'data');
		const faults = new Faults(folder, data);
		const s = new Server(data, [], { LD_PRELOAD: faults.shim });
		await s.start();
		atEnd(t, async () => {
			faults.disarm();
			await s.stop();
			fs.rmSync(folder, { recursive: true, force: true });
		});
		await turns(s, 200);
		faults.arm(1, ANY, error);
		const r = await turnsRed(t, error, () => turns(s, 503, 'disk'));
		assert.match(r.json.checks.disk.message, /disk|data folder/);
		faults.disarm();
		await turns(s, 200);
		assert.match(s.log, /event=ready_check check=disk state=failed/);
		assert.match(s.log, /event=ready_check check=disk state=ok/);
	});

test('a commit that fails is seen without a probe, and its end too', { skip: (process.env.TRACEWELL_TEST_POSTGRES && 'of SQLite') || (!fs.existsSync(shim) && `no ${shim}`) }, async (t) => {
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-ready-'));
	const data = path.join(folder, 'data');
	const faults = new Faults(folder, path.join(data, 'catalogue.db-wal'));
	const s = new Server(data, [], { LD_PRELOAD: faults.shim });
	await s.start();
	atEnd(t, async () => {
		faults.disarm();
		await s.stop();
		fs.rmSync(folder, { recursive: true, force: true });
	});
	void s.ingest;
	await turns(s, 200);
	faults.arm(1, ANY, 'EIO');
	const { status, json, headers } = await s.post('/api/v1/traces', sampleTrace(5));
	assert.deepEqual([status, json.error.status, headers.get('retry-after')], [503, 'storage', '60'], json.error.message);
	await turns(s, 503, 'catalogue');
	faults.disarm();
	await turns(s, 200, 'catalogue');
	assert.equal((await s.trace(sampleTrace(5))).state, 'ready');
});

test('all upload slots are taken', async (t) => {
	const s = await startServer(t, { args: ['--max-in-flight', '2'] });
	const head = `POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${s.ingest}\r\nContent-Length: 100000\r\n\r\n`;
	const sockets = [await s.socket(head + 'x'.repeat(32)), await s.socket(head + 'x'.repeat(32))];
	const r = await turnsRed(t, 'all upload slots taken', () => turns(s, 503, 'uploads'));
	assert.match(r.json.checks.uploads.message, /max-in-flight/);
	assert.equal((await ready(s, '/readyz?for=read')).status, 200, 'readers need no slot');
	for (const socket of sockets) socket.destroy();
	await turns(s, 200, 'uploads');
});

const processes = (db) => {
	const all = [db.child.pid];
	for (const name of fs.readdirSync('/proc').filter((n) => /^\d+$/.test(n))) {
		try {
			if (Number(/^PPid:\t(\d+)/m.exec(fs.readFileSync(`/proc/${name}/status`, 'utf8'))[1]) === db.child.pid) all.push(Number(name));
		} catch { /* it has ended */ }
	}
	return all;
};

const signal = (pid, name) => {
	try {
		process.kill(pid, name);
	} catch { /* it has ended */ }
};
const goOn = (pid) => signal(pid, 'SIGCONT');

/* Stops the server of the database; the processes that were stopped. */
const halt = (db) => {
	const all = processes(db);
	for (const pid of all) signal(pid, 'SIGSTOP');
	return all;
};

test('PostgreSQL is frozen: /readyz still responds', { skip: !postgresIsThere && 'no PostgreSQL 15', timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const s = await startServer(t, { args: ['--catalog', db.url('still')] });
	await turns(s, 200);
	const stopped = halt(db);
	try {
		for (const target of ['/readyz', '/readyz?for=read'])
			await turnsRed(t, `PostgreSQL stopped, ${target}`, () => until(async () => ((await ready(s, target)).status === 503 ? true : undefined), `${target} red while nothing answers`, 20));
		const { reading, catalogue, disk } = await checks(s);
		assert.deepEqual([reading.ok, catalogue.ok, disk.ok], [false, false, true]);
	} finally {
		stopped.forEach(goOn);
	}
	await turns(s, 200);
});

test('PostgreSQL is frozen: a running query ends with 503', { skip: !postgresIsThere && 'no PostgreSQL 15', timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const s = await startServer(t, { args: ['--catalog', db.url('query')] });
	const { id } = await s.trace(sampleTrace(5));
	const psql = spawn('psql', ['-XqtA', db.base], { stdio: ['pipe', 'pipe', 'ignore'] });
	atEnd(t, () => psql.kill('SIGKILL'));
	const locked = new Promise((done) => psql.stdout.once('data', done));
	psql.stdin.write("SET search_path=query; BEGIN; LOCK TABLE annotation IN ACCESS EXCLUSIVE MODE; SELECT 'locked';\n");
	await locked;
	const query = s.get(`/api/v1/traces/${id}/annotations`); // its key is looked up before, and it waits for the lock
	await until(() => (db.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type='Lock'").trim() === '1' ? true : undefined), 'the query waits');
	const stopped = halt(db);
	const began = performance.now();
	try {
		const answer = await Promise.race([query, new Promise((done) => setTimeout(done, 55_000))]); // statement_timeout is 60 s
		assert.ok(answer, 'it ends while PostgreSQL is stopped');
		assert.equal(answer.status, 503, answer.text);
		assert.ok(answer.headers.get('retry-after'));
		t.diagnostic(`503 after ${((performance.now() - began) / 1000).toFixed(1)} s`);
	} finally {
		stopped.forEach(goOn);
	}
	psql.stdin.end('COMMIT;\n');
	await turns(s, 200);
	await until(async () => ((await s.get(`/api/v1/traces/${id}/annotations`)).status === 200 ? true : undefined), 'it is answered again');
});

test('a lock on the table that uploads write does not delay /readyz', { skip: !postgresIsThere && 'no PostgreSQL 15', timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const s = await startServer(t, { args: ['--catalog', db.url('locked')] });
	void s.ingest; // a key is a write
	await turns(s, 200);
	const psql = spawn('psql', ['-XqtA', db.base], { stdio: ['pipe', 'pipe', 'ignore'] });
	atEnd(t, () => psql.kill('SIGKILL'));
	const locked = new Promise((done) => psql.stdout.once('data', done));
	psql.stdin.write('SET search_path=locked; BEGIN; LOCK TABLE job IN EXCLUSIVE MODE; SELECT 1;\n');
	await locked;
	const waits = s.post('/api/v1/traces', sampleTrace(5));
	assert.equal((await ready(s)).status, 200, 'a lock of one table is not a fault of the catalogue');
	assert.equal((await ready(s, '/readyz?for=read')).status, 200, 'it can be read');
	const refused = await waits;
	assert.equal(refused.status, 503, 'the upload does not wait for ever');
	assert.ok(refused.headers.get('retry-after'));
	psql.stdin.end('COMMIT;\n');
	await until(async () => ((await s.post('/api/v1/traces', sampleTrace(5))).status === 202 ? true : undefined), 'uploads are accepted again');
	assert.equal((await ready(s)).status, 200);
});

for (const [how, fault] of [['hangs', { hang: true }], ['refuses connections', { drop: true }], ['fails', { status: 500, code: 'InternalError' }]])
	test(`the store ${how}: /readyz returns 503, and uploads are refused instead of spooled`, { timeout: 900_000 }, async (t) => {
		const b = await startBucket(t);
		const s = await startServer(t, { args: b.args('--s3-timeout=600'), env: b.env });
		const { id } = await s.trace(sampleTrace(20));
		await turns(s, 200);
		b.fault = () => fault;
		const early = s.post('/api/v1/traces', sampleTrace(21)); // while the store is believed to answer
		const r = await turnsRed(t, `the store ${how}`, () => turns(s, 503, 'storage'));
		assert.equal(r.json.checks.storage.engine, 's3');
		for (const answer of [await early, await s.post('/api/v1/traces', sampleTrace(22))]) {
			assert.equal(answer.status, 503, answer.text);
			assert.ok(answer.headers.get('retry-after'));
		}
		assert.equal((await ready(s, '/readyz?for=read')).status, 200);
		assert.equal((await s.get(`/api/v1/traces/${id}/flame`)).status, 200, 'what is cached is read');
		b.fault = () => undefined;
		await turns(s, 200, 'storage');
		assert.equal((await s.trace(sampleTrace(21))).state, 'ready');
	});

test('decodes fail outside their traces: /readyz returns 503, and not for ever if no further trace comes', { timeout: 900_000 }, async (t) => {
	const b = await startBucket(t);
	const s = await startServer(t, { args: b.args('--s3-timeout=1'), env: b.env });
	await turns(s, 200);
	b.fault = (q) => (q.method === 'PUT' && q.url.includes('/traces/') ? { status: 403, code: 'AccessDenied' } : undefined);
	const { json } = await s.post('/api/v1/traces', sampleTrace(20));
	const r = await turns(s, 503, 'jobs');
	assert.match(r.json.checks.jobs.message, /several consecutive decodes failed/);
	assert.equal((await s.ask('DELETE', `/api/v1/traces/${json.id}`)).status, 204);
	await turns(s, 200, 'jobs');
});

/* --- a full disk --- */

const canMount = process.getuid?.() === 0 && (() => {
	const at = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-mount-'));
	try {
		execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', at], { stdio: 'ignore' });
		execFileSync('umount', [at]);
		return true;
	} catch {
		return false;
	} finally {
		fs.rmdirSync(at);
	}
})();

function mountFull(t, kind) {
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-full-'));
	const disk = path.join(folder, 'disk');
	fs.mkdirSync(disk);
	atEnd(t, () => {
		try {
			execFileSync('umount', ['-l', disk]);
		} finally {
			fs.rmSync(folder, { recursive: true, force: true });
		}
	});
	if (kind === 'ext4') {
		execFileSync('truncate', ['-s', '40M', path.join(folder, 'image')]);
		execFileSync('mkfs.ext4', ['-q', '-F', path.join(folder, 'image')]);
		execFileSync('mount', ['-o', 'loop', path.join(folder, 'image'), disk]);
	} else {
		execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=40m', 'none', disk]);
	}
	return disk;
}

const canLoop = (() => {
	try {
		execFileSync('sh', ['-c', 'command -v mkfs.ext4 && losetup -f'], { stdio: 'ignore' });
		return true;
	} catch {
		return false;
	}
})();

test('a reserve with holes, as a copy may have, is allocated at the start', async (t) => {
	const s = await startServer(t);
	const file = path.join(s.data, 'reserve');
	const { size } = fs.statSync(file);
	assert.ok(size > 1 << 20);
	await s.stop();
	fs.truncateSync(file, 0);
	fs.truncateSync(file, size);
	assert.equal(fs.statSync(file).blocks, 0);
	await s.start();
	assert.ok(fs.statSync(file).blocks * 512 >= size);
	await turns(s, 200);
});

for (const kind of ['tmpfs', 'ext4'])
	test(`a full disk (${kind}): deletes, retention and restarts work, nothing is lost`,
		{ timeout: 900000, skip: process.env.TRACEWELL_TEST_BUCKET || process.env.TRACEWELL_TEST_POSTGRES ? 'of the folder' : !canMount ? 'mounting is not allowed' : kind === 'ext4' && !canLoop && 'no loop devices' }, async (t) => {
			const disk = mountFull(t, kind);
			const s = new Server(path.join(disk, 'data'), ['--min-free', '0', '--retention-every', '1'], {});
			await s.start();
			atEnd(t, () => s.stop('SIGKILL'));
			void s.ingest, s.read, s.write, s.admin;
			const ids = [];
			for (let i = 0; i < 16; i++) ids.push((await s.trace(sampleTrace(50, 1000 + i), { query: { scenario: i < 3 ? 'old' : 'new' } })).id);
			const whole = fs.statSync(path.join(s.data, 'reserve')).size;
			assert.ok(whole > 1 << 20, 'a reserve');

			/* another program takes all that is free, and all that becomes free */
			const fill = () => {
				try {
					execFileSync('sh', ['-c', `cat /dev/zero >> ${path.join(disk, 'fill')}`], { stdio: 'ignore' });
				} catch { /* full */ }
			};
			fill();
			await turns(s, 503, 'disk');
			assert.equal((await ready(s, '/readyz?for=read')).status, 200);
			assert.equal((await s.post('/api/v1/traces', sampleTrace(50, 2000))).status, 507);
			for (let i = 0; i < 4; i++) {
				assert.equal((await s.ask('DELETE', `/api/v1/traces/${ids.pop()}`)).status, 204);
				fill();
			}
			for (const signal of ['SIGKILL', 'SIGTERM']) {
				await s.stop(signal);
				fill();
				await s.start();
				const gone = ids.pop();
				const answer = await s.ask('DELETE', `/api/v1/traces/${gone}`);
				assert.equal(answer.status, 204, `after ${signal}: ${answer.text}`);
				fill();
			}
			const rules = await s.put('/api/v1/retention', JSON.stringify({ max_age_days: 1 }), { key: s.admin });
			assert.ok(rules.status < 300, rules.text);
			s.sql(`UPDATE trace SET created_ms=created_ms-${3 * 86400000} WHERE trace_id IN ('${ids.slice(0, 3).join("','")}')`);
			for (const id of ids.splice(0, 3)) await until(async () => ((await s.get(`/api/v1/traces/${id}`)).status === 404 ? true : undefined), 'deleted by retention');

			fs.rmSync(path.join(disk, 'fill'));
			await turns(s, 200);
			assert.equal(fs.statSync(path.join(s.data, 'reserve')).size, whole, 'it is allocated again');
			assert.equal((await s.trace(sampleTrace(50, 2000))).state, 'ready');
			for (const id of ids) assert.equal((await s.get(`/api/v1/traces/${id}/flame`)).status, 200, 'what was not deleted is there');
			assert.equal(await s.total(), ids.length + 1);
		});
