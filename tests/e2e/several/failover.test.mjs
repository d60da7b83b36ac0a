/*
 * failover.test.mjs - servers on a primary of PostgreSQL and its replica: the primary dies under load and the
 * replica is promoted; the old primary returns, read-only or writable; the replica is lost and commits wait
 * for it. The tests mostly wait, so they run concurrently.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';

import { startCluster } from '../cluster.mjs';
import { sampleTrace } from '../make.mjs';
import { postgresIsThere } from '../postgres.mjs';
import { startPair } from '../postgres_pair.mjs';
import { until } from '../server.mjs';

const skip = postgresIsThere ? false : 'PostgreSQL 15 or later is not installed';

/* Every server reports that the catalogue cannot be written. */
const unready = (c) => until(async () => {
	for (const s of c.servers) if ((await s.get('/readyz', { key: null })).status === 200) return undefined;
	return true;
}, 'not ready');

describe('a primary and its replica', { concurrency: true }, () => {
	test('the primary is killed, its replica is promoted: nothing accepted is lost, everything continues', { skip, timeout: 900_000 }, async (t) => {
		const pair = await startPair(t);
		const c = await startCluster(t, { db: pair, url: pair.url('ha') });
		await c.serve();
		await c.serve();
		const load = c.send(3);
		await load.more(15, 'uploads before');
		await pair.primary.crash();
		await unready(c);
		const lacking = Date.now();
		await pair.promote();
		await load.more(10, 'uploads go on');
		t.diagnostic(`took uploads again ${(Date.now() - lacking) / 1000} s after the promotion began`);
		t.diagnostic(`and all pages ${await c.works()} s later`);

		const old = pair.primary;
		const rows = () => old.sql('SELECT count(*) FROM trace', 'ha');
		const standby = path.join(old.data, 'standby.signal');
		for (const [how, begin] of [['read-only', () => fs.writeFileSync(standby, '')], ['as if nothing had been', () => fs.rmSync(standby)]]) {
			begin();
			await old.start();
			if (how !== 'read-only') old.sql("ALTER SYSTEM SET synchronous_standby_names=''");
			if (how !== 'read-only') old.sql('SELECT pg_reload_conf()');
			const before = rows();
			pair.replica.endSessions();
			await load.more(6, `uploads while the old one is there ${how}`);
			await pair.replica.stop('SIGINT'); // the old one is all there is
			await unready(c);
			await pair.replica.start();
			await load.more(6, `uploads when the new one is back, and the old one there ${how}`);
			assert.equal(rows(), before, how);
			assert.equal(old.sql("SELECT count(*) FROM pg_locks WHERE locktype='advisory'"), '0', 'nobody is at work there');
			await old.stop('SIGINT');
		}
		assert.ok(c.servers.some((s) => /event=catalogue_stale/.test(s.log)), 'it was seen');
		await load.end();
		await c.verify(load);
		t.diagnostic(`${load.kept.size} uploads accepted; answers ${JSON.stringify([...load.reported])}, the slowest ${load.slowest} ms`);
	});

	test('the replica is lost: no upload is acknowledged without it, and no request waits for ever', { skip, timeout: 900_000 }, async (t) => {
		const pair = await startPair(t);
		const c = await startCluster(t, { db: pair, url: pair.url('wait') });
		const s = await c.serve();
		await s.trace(sampleTrace(5));
		await pair.replica.crash();
		const six = async () => {
			const began = Date.now();
			const answer = await s.post('/api/v1/traces', sampleTrace(6), { headers: { 'Idempotency-Key': 'six' } });
			return { ...answer, waited: (Date.now() - began) / 1000 };
		};
		const refused = async () => {
			const answer = await six();
			assert.equal(answer.status, 503, answer.text);
			return answer.waited;
		};
		const first = await refused();
		let second;
		await until(async () => (second = await refused()) < first / 2, () => `a commit that is not waited for as long as the first: ${second} s, ${first} s`);
		assert.equal((await s.get('/api/v1/traces')).status, 200, 'what is read is answered');
		assert.equal((await s.get('/readyz?for=read', { key: null })).status, 200, 'and a proxy sees it');
		pair.primary.sql("ALTER SYSTEM SET synchronous_standby_names=''");
		pair.primary.sql('SELECT pg_reload_conf()');
		const healed = Date.now();
		const again = await until(async () => {
			const r = await six();
			return r.status < 300 ? r : undefined;
		}, 'accepted', 60);
		t.diagnostic(`refused after ${first} s and ${second} s, accepted ${(Date.now() - healed) / 1000} s after it was repaired`);
		assert.equal((await s.decoded(again.json.id)).state, 'ready');
		assert.equal(await s.total(), 2, 'it is one trace, whether the first answer was committed or not');
	});
});
