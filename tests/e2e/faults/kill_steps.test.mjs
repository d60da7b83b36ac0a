/*
 * kill_steps.test.mjs - a server on PostgreSQL and an S3-compatible store is killed at each write or
 * message of an upload, its decode, its count, a deletion and expiry. Another server takes over, and the
 * result is the one without a kill. tests/fault/fault.c counts the steps. EVERY=1 tests all of them,
 * otherwise STEPS (12) spread over them, by SEED.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';

import { blobKey, fileKey, recordKey, lots, startCluster } from '../cluster.mjs';
import { ANY, Faults } from '../faults.mjs';
import { sampleTrace } from '../make.mjs';
import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { sanitized, until } from '../server.mjs';

const skip = !postgresIsThere ? 'PostgreSQL 15 or later is not installed' : sanitized() && 'a sanitizer does not load the library';
const EVERY = process.env.EVERY === '1';
const STEPS = Number(process.env.STEPS ?? 12);
const SEED = Number(process.env.SEED ?? 1);
const SWEEP_AFTER = 12; /* more at once would be too many for it to believe */
const DAY_MS = 25 * 3600 * 1000;

/* A query server looks on; the one that works is followed by another when it dies. */
class Relay {
	constructor(c, looks) {
		Object.assign(this, { c, looks, kept: new Map(), gone: new Set(), round: 0 });
	}

	/* Releases a dead server's leases, so that the test does not wait for them. */
	async next(args = []) {
		this.c.db.sql('UPDATE job SET due_ms=0 WHERE claimed=1; UPDATE catalogue_lead SET until_ms=0', 'steps');
		const folder = fs.mkdtempSync(`${this.c.home}/f`);
		this.faults = new Faults(folder, this.c.home);
		this.works = await this.c.serve({ args: ['--role', 'ingest,decode', ...args], env: { LD_PRELOAD: this.faults.shim }, join: false });
	}

	async counted() {
		const [scenarios, methods] = await Promise.all([this.looks.get('/api/v1/fleet/scenarios?by=all'), this.looks.get('/api/v1/fleet/methods?metrics=calls')]);
		return { traces: scenarios.json.traces ?? 0, calls: Math.max(0, ...(methods.json.methods ?? []).map((m) => m.calls.sum)) };
	}

	/* All that was accepted, once: as without a kill. */
	get owed() {
		return { traces: this.kept.size, calls: [...this.kept.values()].reduce((sum, k) => sum + k.calls, 0) };
	}

	async send() {
		const [key, calls] = [`round-${this.round}`, 5 + this.round];
		const answer = await this.works.post('/api/v1/traces', sampleTrace(calls, 4000), { query: { app: 'shop', version_name: '1', scenario: 'start' }, headers: { 'Idempotency-Key': key } }).catch(() => null);
		if (answer && answer.status < 300) {
			assert.ok(!this.kept.has(key) || this.kept.get(key).id === answer.json.id, 'the same upload is the same trace');
			this.kept.set(key, { id: answer.json.id, calls });
			return true;
		}
		assert.ok(!answer || answer.status === 503, answer?.text);
		return false;
	}

	/* Every second round deletes the upload of the previous one. */
	async drop() {
		const old = this.round % 2 ? undefined : this.kept.get(`round-${this.round - 1}`)?.id;
		if (!old || this.gone.has(old)) return;
		const answer = await this.looks.ask('DELETE', `/api/v1/traces/${old}`, {}).catch(() => null);
		if (answer?.status === 204 || answer?.status === 404) this.gone.add(old);
	}

	async isDone() {
		const [owed, n] = [this.owed, await this.counted()];
		assert.ok(n.traces <= owed.traces + (this.kept.has(`round-${this.round}`) ? 0 : 1), 'none is counted twice');
		const waiting = this.c.db.sql('SELECT count(*) FROM job', 'steps');
		return n.traces === owed.traces && n.calls === owed.calls && waiting === '0';
	}

	/* Until it is done or the server dead. */
	async live() {
		await this.send();
		await this.drop();
		await until(async () => this.works.exited || ((this.kept.has(`round-${this.round}`) || (await this.send())) && (await this.isDone())), `round ${this.round} done`);
	}

	/* The work of the next server: it accepts the upload that the device sends again. */
	async finish() {
		await until(() => this.send().then((yes) => yes || undefined), 'the upload is taken');
		await this.drop();
		await until(() => this.isDone().then((yes) => yes || undefined), `all of it done after round ${this.round}: ${JSON.stringify(this.owed)}`, 40)
			.catch(async (e) => assert.fail(`${e.message} ${JSON.stringify(await this.counted())} ${this.works.log.slice(-1500)}`));
	}

	/* No file without an owner, and none is missing. */
	async sweep() {
		const b = this.c.bucket;
		const old = new Date(Date.now() - DAY_MS);
		for (const key of b.keys()) fs.utimesSync(b.file(key), old, old);
		/* without a sweep, whichever server was killed: the catalogue lists the remains of a deletion */
		this.c.db.sql('UPDATE file_drop SET due_ms=0', 'steps');
		await until(() => this.c.db.sql('SELECT count(*) FROM file_drop', 'steps') === '0' || undefined, 'files of deleted traces are deleted', 90);
		for (const { id } of [...this.kept.values()].filter((k) => this.gone.has(k.id))) assert.ok(!b.keys().includes(fileKey(id)), `${id} was deleted`);
		await this.works.stop();
		await this.next(['--s3-sweep=1']);
		const owed = new Set();
		for (const { id, calls } of this.kept.values()) if (!this.gone.has(id)) owed.add(fileKey(id)).add(recordKey(id)).add(blobKey(sampleTrace(calls, 4000)));
		const strays = () => {
			try {
				return b.keys().filter((key) => !owed.has(key));
			} catch {
				return ['a folder went while it was read'];
			}
		};
		await until(() => (strays().length === 0 ? true : undefined), 'what nobody owns is gone', 40).catch((e) => assert.fail(`${e.message}: ${strays()} ${this.works.log.slice(-1500)}`));
		const missing = () => [...owed].filter((key) => !b.keys().includes(key));
		await until(() => (missing().length === 0 ? true : undefined), 'nothing is missing').catch((e) => assert.fail(`${e.message}: ${missing()}`));
		await this.works.stop();
		await this.next();
	}
}

test('a server is killed at a step, and another finishes what it began', { skip, timeout: EVERY ? 7200000 : 240000 }, async (t) => {
	const db = await startPostgres(t);
	const c = await startCluster(t, { db, name: 'steps' });
	const r = new Relay(c, await c.serve({ args: ['--role', 'query'] }));
	await r.next();
	let steps = 0;
	for (; r.round < 2; r.round++) { /* without a kill, for the number of steps */
		r.faults.arm(ANY, ANY, 'KILL', r.works.child.pid);
		await r.live();
		steps = r.faults.disarm().calls;
	}
	const lot = lots(SEED);
	const at = EVERY ? Array.from({ length: steps }, (_, i) => i + 1) : Array.from({ length: STEPS }, (_, i) => 1 + Math.floor(((i + lot()) * steps) / STEPS));
	let killed = 0;
	const what = new Map();
	for (const [i, step] of at.entries()) {
		r.faults.arm(step, step, 'KILL', r.works.child.pid);
		await r.live();
		const { what: did } = r.faults.disarm();
		killed += r.works.exited ? 1 : 0;
		what.set(did.split(' ')[0], (what.get(did.split(' ')[0]) ?? 0) + 1);
		if (!r.works.exited) r.works.child.kill('SIGKILL');
		await r.works.ended;
		assert.equal((await r.looks.get('/')).status, 200, 'the page is there meanwhile');
		await r.next();
		await r.finish();
		r.round++;
		if (i % SWEEP_AFTER === SWEEP_AFTER - 1) await r.sweep();
	}
	if (at.length % SWEEP_AFTER) await r.sweep();
	t.diagnostic(`${killed} kills at ${at.length} of ${steps} steps (${[...what].map(([name, n]) => `${name || 'behind the last'} ${n}`)}); ${r.kept.size} uploads, ${r.gone.size} deleted`);
	assert.ok(killed >= at.length / 2);
});
