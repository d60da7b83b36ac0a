/*
 * stall.test.mjs - of several servers under load one stands still, or is cut off from the database, in the middle
 * of whatever it does: uploads at the others go on, and nothing is lost or counted twice.  STALLS
 * (2, in a full run 20) is how often each.  The database itself reports who waits for a lock for longer; a stall
 * lasts until the others have uploaded.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { startCluster } from '../cluster.mjs';
import { sampleTrace } from '../make.mjs';
import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { inFull, sleep, until } from '../server.mjs';

const skip = postgresIsThere ? false : 'PostgreSQL 15 or later is not installed';
const STALLS = Number(process.env.STALLS ?? inFull(20, 2));
const LOCK_MS = 1500; // a wait for a lock that the database reports
const STALL_MS = 2 * LOCK_MS, UPLOADS = 10; // a stall lasts so long and until so many uploads of the others
const GAP_MS = 15_000; // between two uploads; half of what a server that waits for another's lock takes to give up
const PAUSE_MS = 50; // of a device: what all send is to be decoded in the end
const WAITED = /STATEMENT: +(INSERT INTO (trace|part|job|capture)|WITH of_build)/; // an upload's, that waited for a lock

/* The database's socket, through which nothing passes while it is cut. */
async function startCut(t, db) {
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tw-cut-'));
	fs.chmodSync(folder, 0o755);
	const pairs = new Set();
	const cut = { folder, closed: false };
	const proxy = net.createServer((from) => {
		const to = net.connect(path.join(db.socket, '.s.PGSQL.5432'));
		const pair = [from, to];
		pairs.add(pair);
		for (const [one, other] of [pair, [to, from]]) {
			one.on('data', (bytes) => other.write(bytes));
			one.on('error', () => {});
			one.on('close', () => {
				other.destroy();
				pairs.delete(pair);
			});
			if (cut.closed) one.pause();
		}
	});
	await new Promise((done) => proxy.listen(path.join(folder, '.s.PGSQL.5432'), done));
	cut.set = (closed) => {
		cut.closed = closed;
		for (const one of [...pairs].flat()) closed ? one.pause() : one.resume();
	};
	t.after(() => {
		for (const one of [...pairs].flat()) one.destroy();
		proxy.close();
		fs.rmSync(folder, { recursive: true, force: true });
	});
	return cut;
}

/* Devices that send to these servers alone, and the longest time between two accepted uploads. */
function device(c, servers, load) {
	const d = { longest: 0, last: Date.now(), uploads: 0, going: true };
	const one = async (of) => {
		for (let i = 0; d.going; i++) {
			const [key, calls] = [`${load.n++}`, 5 + ((7 * i + of) % 40)];
			const to = servers[i % servers.length];
			const answer = await fetch(`${to.url}/api/v1/traces?app=shop&version_name=1&scenario=start&build_id=b`, { method: 'POST', body: sampleTrace(calls, 4000 + of),
				headers: { Authorization: `Bearer ${c.keys.ingest}`, 'Idempotency-Key': key }, signal: AbortSignal.timeout(60000) }).catch(() => null);
			const json = await answer?.json().catch(() => null);
			load.told.set(answer?.status ?? 0, (load.told.get(answer?.status ?? 0) ?? 0) + 1);
			if (answer?.status === 202) {
				load.kept.set(key, { id: json.id, calls, of });
				d.uploads++;
				d.longest = Math.max(d.longest, Date.now() - d.last);
				d.last = Date.now();
			}
			await sleep(PAUSE_MS);
		}
	};
	const all = [0, 1, 2].map(one);
	d.end = () => {
		d.going = false;
		return Promise.all(all);
	};
	return d;
}

test('a server that stands still or is cut off delays no uploads at the others', { skip, timeout: 900000 }, async (t) => {
	const db = await startPostgres(t);
	for (const setting of ['log_lock_waits=on', `deadlock_timeout='${LOCK_MS}ms'`]) db.sql(`ALTER SYSTEM SET ${setting}`);
	db.sql('SELECT pg_reload_conf()');
	const cut = await startCut(t, db);
	const c = await startCluster(t, { db, name: 'stall' });
	const near = await c.serve({ args: ['--role', 'ingest'] });
	const there = c.url;
	c.url = there.replace(encodeURIComponent(db.socket), encodeURIComponent(cut.folder));
	assert.notEqual(c.url, there);
	const far = await c.serve(); // its database is behind the cut; the first that decodes, so it leads
	c.url = there;
	const worker = await c.serve({ args: ['--role', 'decode'] });
	const load = { kept: new Map(), told: new Map(), n: 0 };
	const all = device(c, [far, near], load);
	await until(() => (load.kept.size >= 20 ? true : undefined), 'uploads', 240).catch((e) => {
		throw new Error(`${e.message}: answers ${JSON.stringify([...load.told])}`);
	});
	const round = async (stop = () => {}, go = () => {}) => {
		await sleep(Math.random() * 60);
		const others = device(c, [near], load);
		stop();
		await sleep(STALL_MS);
		await until(() => (others.uploads >= UPLOADS ? true : undefined), 'uploads of the others');
		await others.end();
		go();
		await until(async () => ((await far.get('/readyz', { key: null }).catch(() => null))?.status === 200 ? true : undefined), 'it goes on', 60);
		return others.longest;
	};
	const rounds = async (...what) => {
		const all = [];
		for (let i = 0; i < STALLS; i++) all.push(await round(...what));
		return Math.max(...all);
	};
	const gaps = { 'nothing stopped': await rounds(), 'the leader stopped': await rounds(() => far.child.kill('SIGSTOP'), () => far.child.kill('SIGCONT')),
		'a worker stopped': await rounds(() => worker.child.kill('SIGSTOP'), () => worker.child.kill('SIGCONT')),
		'the leader cut off': await rounds(() => cut.set(true), () => cut.set(false)) };
	t.diagnostic(`longest time between two accepted uploads of ${STALLS} stalls: ${Object.entries(gaps).map(([what, ms]) => `${what} ${ms} ms`).join(', ')}`);
	await all.end();
	c.servers = [far, near]; // a worker answers no pages
	await c.judge(load, 240);
	t.diagnostic(`${load.kept.size} uploads accepted; answers ${JSON.stringify([...load.told])}`);
	assert.doesNotMatch(db.log, WAITED, 'no upload waited for a lock');
	for (const [what, ms] of Object.entries(gaps)) assert.ok(ms <= GAP_MS, `${what}: ${ms} ms`);
});
