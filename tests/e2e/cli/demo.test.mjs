/*
 * demo.test.mjs - the demo's fleet shows the version that became slower, the methods that cause it, their
 * owners and commits, and the deadlock.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';

import { newFolder, root, startServer, until } from '../server.mjs';

test('the demo has a regression to find, and a deadlock', { timeout: 900_000 }, async (t) => {
	const clones = newFolder(t, 'tracewell-demo-');
	const s = await startServer(t, { args: ['--repositories', clones] });
	execFileSync('node', [path.join(root, 'tests/gen/demo_repository.mjs'), path.join(clones, 'test/shop')]);
	const said = execFileSync('node', [path.join(root, 'tests/gen/demo_fleet.mjs'), s.url, s.admin, 'shop'], { encoding: 'utf8' });
	assert.equal(Number(said), 276);
	const traces = await until(async () => { // of ANRs it does not wait itself
		const all = (await s.get('/api/v1/traces?limit=500')).json.traces;
		return all.every((x) => x.state === 'ready') ? all : undefined;
	}, 'every trace is decoded');
	assert.deepEqual(traces.filter((x) => x.summary.repairs || x.summary.losses).map((x) => x.id), [], 'nothing in it looks damaged');
	const found = (await s.get('/api/v1/regressions')).json.regressions;
	const methods = found.filter((r) => r.scenario === 'cold_start' && r.head === '8.4.0').map((r) => r.method);
	assert.ok(methods.includes('com.acme.shop.data.JsonParser.parse'), JSON.stringify(methods));
	assert.deepEqual(found.filter((r) => r.scenario === 'feed_scroll'), [], 'unchanged scenarios are not reported');
	const launch = traces.filter((x) => x.meta.scenario === 'first_launch' && x.meta.version_name === '8.4.0').sort((a, b) => b.summary.slices - a.summary.slices)[0];
	assert.ok(launch.summary.slices > 95_000 && launch.summary.threads >= 20, `${launch.summary.slices} calls on ${launch.summary.threads} threads`);
	const { kinds } = (await s.get(`/api/v1/traces/${launch.id}/notes?limit=1`)).json;
	for (const kind of ['state', 'wakeup', 'contention']) assert.ok(kinds[kind] > 0, `${kind} in ${JSON.stringify(kinds)}`);
	const called = (await s.get(`/api/v1/traces/${launch.id}/methods?limit=5000`)).json.methods.map((m) => m.name);
	for (const name of ['Choreographer#doFrame 5', 'android.os.BinderProxy.transactNative', 'com.acme.shop.ads.Ads.warmUp']) assert.ok(called.includes(name), name);
	const compared = (await s.get('/api/v1/fleet/compare?a=8.3.0&b=8.4.0&scenario=cold_start&format=markdown')).text;
	assert.match(compared, /JsonParser\.parse .*\| yes \|/);
	assert.match(compared, /weighted by A's mix of scenarios and device classes/, 'by device classes, which are known');
	for (const [method, owner, author] of [['com.acme.shop.data.JsonParser.parse', '@acme/data', 'Jonas Weber'], ['com.acme.shop.ads.Ads.warmUp', '@acme/growth', 'Ana Lima']]) {
		const { json } = await s.get(`/api/v1/source/blame?method=${method}&app=com.acme.shop&base=8.3.0&head=8.4.0`);
		assert.deepEqual([json.found, json.owners[0].names, json.commits.map((c) => c.author)], [true, [owner], [author]], JSON.stringify(json));
	}
	assert.equal((await s.get('/api/v1/source?method=com.shop.Cart.total&version=8.4.0')).json.owners[0].names[0], '@acme/checkout', 'the deadlock\'s');
	await until(async () => (await s.get('/api/v1/anr/groups')).json.groups.find((g) => g.kind === 'deadlock'), 'a group of deadlocks');
	const anr = traces.find((x) => x.meta.scenario === 'anr' && x.summary.threads >= 60);
	assert.ok(anr, 'an ANR with 60 threads');
});
