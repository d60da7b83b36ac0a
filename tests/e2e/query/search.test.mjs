/*
 * search.test.mjs - calls of the fleet found by method, time, thread and ancestor, linked to where
 * they are; named late, made again, asked in wrong words.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { btrace } from '../make.mjs';
import { startServer, tracewell, until } from '../server.mjs';

const PID = 4000;
const mapping = ['# v', '1,1,com.app.Main onCreate ()V', '2,1,com.app.Repo load ()V', '3,1,com.app.Db query ()V', ''].join('\n');

/* Main.onCreate → Repo.load → Db.query (of that length); and Db.query by itself, half as long. */
const trace = (query) => btrace([[PID, 3, 1_002_000, query], [PID, 2, 1_001_000, query + 5000], [PID, 1, 1_000_000, query + 9000],
	[PID, 3, 90_000_000, Math.round(query / 2)]], { pid: PID });

const fleet = Array.from({ length: 24 }, (_, i) => ({ version: i % 2 ? '8.3.1' : '8.3.0', query: 1_000_000 + i * 100_000 }));

const search = (s, q) => s.get(`/api/v1/fleet/search?${new URLSearchParams(q)}`);
const all = (s) => until(async () => {
	const { json } = await search(s, { method: 'com.app.Db.query' });
	return json?.traces === fleet.length && json.matches === fleet.length ? json : undefined;
}, 'every trace in the index', 90);

/* Calls are looked up within a time that a busy machine may need for the rest: asked until it was enough. */
const lookedUp = (s, q) => until(async () => {
	const { json } = await search(s, q);
	return json.hits[0]?.call ? json : undefined;
}, 'the first call looked up');

test('calls of a fleet, looked for', async (t) => {
	const s = await startServer(t);
	const ids = [];
	for (const [i, x] of fleet.entries()) {
		const answer = await s.post('/api/v1/traces', trace(x.query), { query: { app: 'shop', version_name: x.version, build_id: 'b1', scenario: 'cold_start' }, headers: { 'Idempotency-Key': `search-${i}` } });
		assert.ok(answer.status <= 202, answer.text);
		ids.push(answer.json.id);
	}

	await t.test('by the number of a method, and by its name once the mapping arrived', async () => {
		await until(async () => ((await search(s, { method: 'unknown:3' })).json?.matches === fleet.length ? true : undefined), 'unnamed methods', 90);
		await s.put('/api/v1/builds/b1/methods', mapping);
		await all(s);
		assert.equal((await search(s, { method: 'unknown:3' })).json.matches, 0);
	});

	await t.test('longer than a time, the longest first, with the call itself', async () => {
		const json = await lookedUp(s, { method: 'com.app.Db.query', over_ns: 2_000_000 });
		const truth = fleet.map((x, i) => [ids[i], x.query]).filter(([, q]) => q > 2_000_000).sort((a, b) => b[1] - a[1]);
		assert.deepEqual(json.hits.map((h) => [h.trace, h.max_ns]), truth);
		assert.equal(json.matches, truth.length);
		assert.equal(json.partial, false);
		for (const h of json.hits) {
			if (!h.call) continue; /* time was up on a busy machine */
			assert.equal(h.call.duration_ns, h.max_ns);
			assert.equal(h.call.depth, 2);
			assert.ok(h.call.tid > 0);
		}
		assert.equal((await search(s, { method: 'com.app.Db.query', over_ns: 3_300_000 })).json.hits.length, 0);
		assert.equal((await search(s, { method: 'com.app.Db.query', over_ns: 3_299_999 })).json.hits.length, 1);
	});

	await t.test('filtered as all of the fleet, by thread, by ancestor, by expression', async () => {
		const some = (await search(s, { method: 'com.app.Db.query', version_name: '8.3.1', limit: 5 })).json;
		assert.equal(some.traces, 12);
		assert.equal(some.hits.length, 5);
		assert.ok(some.hits.every((h) => h.version_name === '8.3.1'));
		const main = (await search(s, { method: 'com.app.Db.query', thread: some.hits[0].thread || 'main' })).json;
		assert.equal(main.matches, fleet.length);
		assert.equal((await search(s, { method: 'com.app.Db.query', thread: 'no such thread' })).json.matches, 0);
		const below = await until(async () => {
			const { json } = await search(s, { method: 'com.app.Db.query', ancestor: 'com.app.Repo.load', limit: 3 });
			return json.hits.filter((h) => h.call).length === 3 ? json : undefined;
		}, 'three calls below another');
		assert.deepEqual(below.hits.map((h) => h.call.depth), [2, 2, 2]);
		assert.equal((await search(s, { method: 'com.app.Repo.load', ancestor: 'com.app.Db.query' })).json.hits.length, 0);
		assert.equal((await search(s, { method: 'com.app.Main.onCreate', ancestor: 'com.app.Main.onCreate' })).json.hits.length, 0);
		const regex = await until(async () => {
			const { json } = await search(s, { method: '^com\\.app\\.(Repo|Main)', regex: 1, ancestor: 'onCreate$', ancestor_regex: 1, limit: 2 });
			return json.hits.length === 2 ? json : undefined;
		}, 'two calls below another');
		assert.equal(regex.methods, 2);
		assert.deepEqual(regex.hits.map((h) => h.method), ['com.app.Repo.load', 'com.app.Repo.load']);
	});

	await t.test('invalid queries get a message', async () => {
		for (const [query, words] of [
			[{}, /method is required/], [{ method: '(', regex: 1 }, /not a regular expression/], [{ method: 'x', colour: 'red' }, /unknown parameter colour/], [{ method: 'x', over_ns: -1 }, /over_ns/],
			[{ method: 'x', over_ns: 'soon' }, /over_ns/], [{ method: 'x', limit: 0 }, /limit/], [{ method: 'x', since: 5, until: 4 }, /since is after/],
			[{ method: '^(([a-zA-Z.]+)+)+[0-9]$', regex: 1 }, /too costly|too long/], [{ method: 'x', ancestor: '[', ancestor_regex: 1 }, /not a regular expression/],
		]) {
			const { status, json } = await search(s, query);
			assert.equal(status, 400, JSON.stringify(query));
			assert.match(json.error.message, words);
		}
		assert.equal((await search(s, { method: 'no.such.method' })).json.hits.length, 0);
		const stranger = await s.get('/api/v1/fleet/search?method=com.app.Db.query', { key: s.key('read', 'other') });
		assert.equal(stranger.json.matches, 0);
	});

	await t.test('rebuilt from the traces it is the same; a deleted trace is not a hit', async () => {
		const before = await all(s);
		await s.stop();
		tracewell('rollup', '--data', s.data, '--rebuild');
		await s.start();
		const after = await all(s);
		assert.deepEqual(after.hits.map((h) => [h.trace, h.max_ns, h.thread]), before.hits.map((h) => [h.trace, h.max_ns, h.thread]));
		assert.equal((await s.ask('DELETE', `/api/v1/traces/${after.hits[0].trace}`)).status, 204);
		const { json } = await search(s, { method: 'com.app.Db.query' });
		assert.equal(json.hits.length, fleet.length - 1);
		assert.ok(json.hits.every((h) => h.trace !== after.hits[0].trace));
	});
});
