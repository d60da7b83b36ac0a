/*
 * cluster.mjs - several servers on PostgreSQL and an S3-compatible store, devices that send to all of them
 * until they are accepted, and the checks after any fault.
 *
 *   const c = await startCluster(t, { db, name: 'x' });
 *   const s = await c.serve();
 *   const load = c.send(3);   ...   await load.end();   await c.verify(load.kept);
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { startBucket } from './bucket.mjs';
import { sampleTrace } from './make.mjs';
import { Server, atEnd, fetchWithin, sleep, until } from './server.mjs';

export const blobKey = (body) => {
	const sha256 = createHash('sha256').update(body).digest('hex');
	return `blobs/${sha256.slice(0, 2)}/${sha256}`;
};
export const recordKey = (id) => `records/${id.slice(-1)}/${id}`;
export const fileKey = (id) => `traces/${id.slice(-2)}/${id}.db`;

/* Numbers that come the same again, for faults that are drawn by lot. */
export function lots(seed) {
	let state = seed >>> 0 || 1;
	return () => {
		state ^= state << 13;
		state ^= state >>> 17;
		state ^= state << 5;
		return (state >>> 0) / 2 ** 32;
	};
}

const SCOPES = ['ingest', 'read', 'write', 'admin'];

class Cluster {
	constructor(t, db, bucket, url) {
		Object.assign(this, { t, db, bucket, url, servers: [], n: 0, keys: {} });
		this.home = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-cluster-'));
		this.secret = path.join(this.home, 'secret.key');
		fs.writeFileSync(this.secret, randomBytes(32).toString('hex') + '\n', { mode: 0o600 });
	}

	args(...more) {
		return this.bucket.args('--catalog', this.url, '--several-servers', '--secret-key-file', this.secret, ...more);
	}

	/* All servers use the first one's keys.  `host`: its address, if it does not listen on loopback. */
	async serve({ args = [], env = {}, under = [], join = true, host } = {}) {
		const data = path.join(this.home, `node${++this.n}`);
		fs.mkdirSync(data);
		const s = new Server(data, this.args(...args), { ...this.bucket.env, TRACEWELL_CATALOG: this.url, ...env }, under);
		atEnd(this.t, () => s.stop('SIGKILL'));
		await s.start();
		if (host) s.url = `http://${host}:${s.port}`;
		for (const scope of SCOPES) {
			this.keys[scope] ??= s.key(scope);
			Object.defineProperty(s, scope, { value: this.keys[scope], configurable: true });
		}
		if (join) this.servers.push(s);
		return s;
	}

	/* As devices do: the same key until it is accepted, at one server after the other.  Ends on request,
	 * after each has completed its upload. `large`: additional calls in traces of the first device; `patience`:
	 * milliseconds after which the next server is tried. */
	send(n, { most = Infinity, pause = 5, least = 0, large = 0, patience = 90000 } = {}) {
		const load = { kept: new Map(), reported: new Map(), slowest: 0, going: true };
		const one = async (of) => {
			for (let i = 0; ((load.going && i < most) || i < least) && !load.given_up; i++) {
				const [key, calls] = [`${of}-${i}`, 5 + ((7 * i + of) % 40) + (of === 0 ? large : 0)];
				for (let turn = i; !load.kept.has(key) && !load.given_up; turn++) {
					const s = this.servers[turn % this.servers.length];
					const began = Date.now();
					const answer = await fetchWithin(patience, `${s.url}/api/v1/traces?app=shop&version_name=1&scenario=start`, { method: 'POST', body: sampleTrace(calls, 4000 + of),
						headers: { Authorization: `Bearer ${this.keys.ingest}`, 'Idempotency-Key': key } });
					load.slowest = Math.max(load.slowest, Date.now() - began);
					load.reported.set(answer?.status ?? 0, (load.reported.get(answer?.status ?? 0) ?? 0) + 1);
					if (answer?.status === 202 || answer?.status === 200) load.kept.set(key, { id: JSON.parse(answer.text).id, calls, of });
					else await sleep(50);
				}
				await sleep(pause);
			}
		};
		const all = Array.from({ length: n }, (_, of) => one(of));
		load.end = () => {
			load.going = false;
			return Promise.all(all);
		};
		atEnd(this.t, () => (load.given_up = true));
		/* Waits for that many further uploads. */
		load.more = async (more, what, seconds = 60) => {
			const from = load.kept.size;
			await until(() => (load.kept.size >= from + more ? true : undefined), what, seconds);
		};
		return load;
	}

	/* Waits until every server serves its pages and API; returns the seconds. */
	async works(seconds = 60) {
		const began = Date.now();
		for (const s of this.servers)
			for (const [target, key] of [['/readyz', null], ['/', null], ['/api/v1/traces', s.read], ['/api/v1/fleet/methods', s.read]])
				await until(async () => ((await s.get(target, { key }).catch(() => null))?.status === 200 ? true : undefined), `${target} of ${s.url}`, seconds);
		return (Date.now() - began) / 1000;
	}

	/* Every accepted upload exists, decoded once and counted once; the only refusal was a request to retry. */
	async verify({ kept, reported = new Map() }, seconds = 90) {
		const s = this.servers[0];
		assert.deepEqual([...reported.keys()].filter((status) => ![0, 200, 202, 429, 503].includes(status)), [], JSON.stringify([...reported]));
		const ids = new Set([...kept.values()].map((k) => k.id));
		assert.equal(ids.size, kept.size, 'each a trace of its own');
		await until(async () => ((await s.get('/api/v1/traces', { query: { state: 'ready', limit: 1 } }).catch(() => null))?.json?.total >= kept.size ? true : undefined), 'all decoded', seconds);
		assert.equal((await s.get('/api/v1/traces', { query: { limit: 1 } })).json.total, kept.size, 'none that was sent again is a second one');
		const counted = async () => (await s.get('/api/v1/fleet/scenarios?by=all')).json?.traces ?? 0;
		await until(async () => ((await counted()) >= kept.size ? true : undefined), 'all counted', seconds);
		await until(async () => ((await s.metric('tracewell_stage_waiting_traces', { stage: 'rollup' })) === 0 ? true : undefined), 'nothing waits to be counted', seconds);
		assert.equal(await counted(), kept.size, 'none counted twice');
		/* of each call of the outer method there is one */
		const { json } = await s.get('/api/v1/fleet/methods?metrics=calls');
		const calls = Math.max(...json.methods.map((m) => m.calls.sum));
		assert.equal(calls, [...kept.values()].reduce((sum, k) => sum + k.calls, 0), 'calls of the fleet');
		for (const of of this.servers)
			for (const { id } of [...kept.values()].slice(-5)) await until(async () => ((await of.get(`/api/v1/traces/${id}`)).json?.state === 'ready' ? true : undefined), `${id} at each server, also one that lost its session with the database just now`);
		const keys = new Set(await this.bucket.keys());
		for (const { id, calls, of } of kept.values())
			for (const key of [fileKey(id), blobKey(sampleTrace(calls, 4000 + of))]) assert.ok(keys.has(key), `${key} of ${id}`);
	}
}

/* `bucket`: another store than bucket.mjs; `at`: the address that this is reached by. */
export async function startCluster(t, { db, name, url, at, bucket }) {
	const c = new Cluster(t, db, bucket ?? (await startBucket(t, 'files', at)), url ?? db.url(name));
	atEnd(t, () => fs.rmSync(c.home, { recursive: true, force: true }));
	return c;
}
