/*
 * storage_faults.test.mjs - two servers on PostgreSQL and an S3-compatible store with seeded faults: it is slow, returns
 * 500 and SlowDown, truncates bodies in both directions, stores objects without a response, damages bodies and ETags;
 * its clock or a server's is wrong; it refuses all requests for a time.
 * FAULTS (25, in a full run 100) and SEED choose the number and the sequence.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';

import { lots, startCluster } from '../cluster.mjs';
import { sampleTrace } from '../make.mjs';
import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { FAKETIME, inFull, sanitized, until } from '../server.mjs';

const skip = postgresIsThere ? false : 'PostgreSQL 15 or later is not installed';
const FAULTS_MADE = Number(process.env.FAULTS ?? inFull(100, 25));
const SEED = Number(process.env.SEED ?? 1);
const CHANCE = 0.35;

const FAULTS = [
	{ status: 500, code: 'InternalError' }, { status: 503, code: 'SlowDown' }, { status: 503, code: 'SlowDown', retryAfter: 1 }, { wait: 700 },
	{ drop: true }, { drop: 'after' }, { cut: true }, { flip: true }, { etag: '"00000000000000000000000000000000"' },
];

/* Each answer by lot; how many of each fault there were. */
function haunt(bucket, lot) {
	const made = new Map();
	const note = (name) => made.set(name, (made.get(name) ?? 0) + 1);
	bucket.fault = (q) => {
		if (lot() > CHANCE) return;
		const fault = FAULTS[Math.floor(lot() * FAULTS.length)];
		if (fault.flip && q.method !== 'GET') return; // then a list may contain any text
		if (fault.flip && q.url.includes('list-type')) return;
		note(Object.keys(fault).map((k) => (k === 'code' ? fault.code : k === 'status' ? fault.status : k)).join(' '));
		return fault;
	};
	bucket.early = (q) => {
		if (q.method !== 'PUT' || lot() > 0.1) return;
		note('reset');
		return { reset: true };
	};
	return made;
}

function heal(bucket) {
	bucket.fault = bucket.early = () => undefined;
}

test('by lot, under load', { skip, timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const c = await startCluster(t, { db, name: 'haunted' });
	await c.serve({ args: ['--s3-part=64K'] });
	await c.serve({ args: ['--s3-part=64K'] });
	const load = c.send(3, { large: 1500 });
	await load.more(5, 'uploads before');
	const made = haunt(c.bucket, lots(SEED));
	const faults = () => [...made.values()].reduce((sum, n) => sum + n, 0);
	await until(() => (faults() >= FAULTS_MADE ? true : undefined), `${FAULTS_MADE} faults`, 240);
	heal(c.bucket);
	const began = Date.now();
	await load.more(5, 'uploads after');
	await load.end();
	t.diagnostic(`all pages ${await c.works()} s after it was well`);
	await c.verify(load);
	t.diagnostic(`all done ${(Date.now() - began) / 1000} s after; ${load.kept.size} uploads, answers ${JSON.stringify([...load.reported])}, faults ${JSON.stringify([...made])}`);
	for (const { id, calls, of } of [...load.kept.values()].slice(0, 20))
		assert.deepEqual((await c.servers[1].get(`/api/v1/traces/${id}/raw/trace`)).bytes, sampleTrace(calls, 4000 + of));
});

test('it refuses everybody for a while, and its clock runs off', { skip, timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const c = await startCluster(t, { db, name: 'refused' });
	await c.serve();
	await c.serve();
	const load = c.send(2, { pause: 20 });
	await load.more(5, 'uploads before');
	c.bucket.fault = () => ({ status: 403, code: 'AccessDenied' });
	const refused = () => load.reported.get(503) ?? 0;
	await until(() => (refused() >= 4 ? true : undefined), 'uploads are refused');
	heal(c.bucket);
	const began = Date.now();
	await load.more(5, 'uploads after it refused');
	t.diagnostic(`uploads ${(Date.now() - began) / 1000} s after it refused everybody`);
	for (const hours of [2, -2, 0]) {
		c.bucket.skewMs = hours * 3600 * 1000;
		await load.more(5, `uploads with its clock ${hours} hours off`);
	}
	await load.end();
	await c.works();
	await c.verify(load);
});

test('the clock of one server is off, and it dies with a decode', { skip: skip || (sanitized() && 'no library with a sanitizer') || (!FAKETIME && 'no libfaketime (Debian: faketime)'), timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const c = await startCluster(t, { db, name: 'clock' });
	await c.serve();
	for (const off of ['+2h', '-2h']) {
		const s = await c.serve({ env: { LD_PRELOAD: FAKETIME, FAKETIME: off, TRACEWELL_CRASH_AT: 'child_done' }, join: false });
		const answer = await s.post('/api/v1/traces', sampleTrace(3), { headers: { 'Idempotency-Key': `first${off}` } }).catch(() => null);
		const { id } = answer?.json ?? {};
		await until(() => (s.exited || (id && c.servers.some((of) => of.log.includes(`event=decoded trace=${id} `))) || undefined), 'it died with the decode, unless the other was quicker');
		await s.stop('SIGKILL');
		db.sql('UPDATE job SET due_ms=0 WHERE claimed=1', 'clock'); // no server waits for its lease
		t.diagnostic(`${off}: upload ${answer?.status}`);
		await c.serve({ env: { LD_PRELOAD: FAKETIME, FAKETIME: off } });
	}
	const load = c.send(3);
	await load.more(20, 'uploads');
	await load.end();
	await c.works();
	const s = c.servers[0];
	await until(async () => ((await s.get('/api/v1/traces', { query: { state: 'ready' } })).json.total === (await s.total()) ? true : undefined), 'what the dead had, too', 60);
	const done = c.servers.map((of) => [...of.log.matchAll(/event=decoded trace=(\w+) outcome=ready/g)].map((m) => m[1]));
	assert.equal(new Set(done.flat()).size, done.flat().length, 'none is decoded twice');
	assert.ok(done.every((of) => of.length > 0), 'all of them decode');
	for (const of of c.servers) assert.doesNotMatch(of.log, /event=claim_lost/);
});
