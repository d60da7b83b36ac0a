/*
 * fleet_compare.test.mjs - two sides of a fleet with known values: the slower method is found with its
 * change, whatever devices the sides have; the CI gate; messages for sides that cannot be compared.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

import { btrace } from '../make.mjs';
import { binary, startServer, until } from '../server.mjs';

const PID = 4000;
const mapping = ['# v', '1,1,com.app.Main onCreate ()V', '2,1,com.app.Repo load ()V', '3,1,com.app.Db query ()V', '4,1,com.app.Old path ()V', '5,1,com.app.New path ()V', ''].join('\n');
const LOW = JSON.stringify({ ram_mb: 2048 });
const HIGH = JSON.stringify({ ram_mb: 8192 });

/* onCreate { load { query } path }: load is what differs. */
const trace = ({ load, version }) => {
	const at = 1_000_000;
	return btrace([[PID, 3, at + 2000, 30_000], [PID, 2, at + 1000, load], [PID, version === '8.3.0' ? 4 : 5, at + load + 2000, 20_000], [PID, 1, at, load + 30_000]], { pid: PID });
};

/* Low devices take three times as long; 8.3.1 has more of them, and takes 40 % longer in Repo.load. */
const SLOWER = 1.4;
const fleet = ['8.3.0', '8.3.1'].flatMap((version) => Array.from({ length: 40 }, (_, i) => {
	const low = version === '8.3.0' ? i % 4 === 0 : i % 4 !== 0;
	return { version, low, load: Math.round((200_000 + ((i * 7) % 10) * 4000) * (low ? 3 : 1) * (version === '8.3.1' ? SLOWER : 1)) };
}));

async function send(s, x, i) {
	const answer = await s.post('/api/v1/traces', trace(x), { query: { app: 'shop', version_name: x.version, build_id: `b${x.version}`, scenario: 'cold_start', os: x.low ? '13' : '14', labels: x.low ? LOW : HIGH },
		headers: { 'Idempotency-Key': `compare-${i}` } });
	assert.ok(answer.status <= 202, answer.text);
	return answer.json.id;
}

const compare = (s, query) => s.get(`/api/v1/fleet/compare?${query}`);
const sum = (list, of) => list.reduce((n, x) => n + of(x), 0);
const near = (reported, truth, error) => assert.ok(Math.abs(reported - truth) <= Math.abs(truth) * error, `${reported} for ${truth}`);

test('two sides of a fleet', async (t) => {
	const s = await startServer(t);
	const ids = [];
	for (const version of ['8.3.0', '8.3.1']) await s.put(`/api/v1/builds/b${version}/methods`, mapping);
	for (const [i, x] of fleet.entries()) ids.push(await send(s, x, i));
	await until(async () => ((await s.get('/api/v1/fleet/flame')).json?.of_traces === fleet.length ? true : undefined), 'all counted', 60);

	await t.test('the method that got slower is found, by how much, with the mix of devices taken out', async () => {
		const { status, json, text } = await compare(s, 'a=8.3.0&b=8.3.1');
		assert.equal(status, 200, text);
		assert.ok(json.comparable && json.mix.corrected && json.mix.note === '');
		const cold = json.scenarios.find((x) => x.scenario === 'cold_start');
		const load = json.methods.find((m) => m.name === 'com.app.Repo.load');
		assert.equal(json.methods[0].name, 'com.app.Repo.load', 'first of all');
		/* with A's mix, B's mean is that of its classes, 1 low to 3 high */
		const of = (version, low) => fleet.filter((x) => x.version === version && x.low === low);
		const mean = (list) => sum(list, (x) => x.load - 30_000) / list.length;
		const truth = 0.25 * mean(of('8.3.1', true)) + 0.75 * mean(of('8.3.1', false));
		near(load.self_ns.a, mean(fleet.filter((x) => x.version === '8.3.0')), 0.001);
		near(load.self_ns.b, truth, 0.001);
		assert.ok(load.significant && load.self_ns.change.low > 0 && load.self_ns.change.low < load.self_ns.change.value && load.self_ns.change.high > load.self_ns.change.value);
		const { p50 } = cold.stats;
		assert.ok(p50.significant && p50.enough_traces);
		assert.ok(p50.change.value > 0.2 && p50.change.value < 0.5, `${p50.change.value}: not the threefold of the raw mix`);
		assert.ok(p50.change.low <= p50.change.value && p50.change.value <= p50.change.high);
		assert.match(json.summary, /^p\d+ of cold_start is [\d.]+ % slower \(.* → .*, 95 % confidence interval (about )?\+.*\), most of it in com\.app\.Repo\.load\.$/);
		assert.equal(json.methods.find((m) => m.name === 'com.app.New.path').state, 'new');
		assert.equal(json.methods.find((m) => m.name === 'com.app.Old.path').state, 'removed');
		assert.equal(json.methods.find((m) => m.name === 'com.app.Db.query').significant, false, 'what stayed is not sure');
		assert.deepEqual([json.counts.new, json.counts.removed], [1, 1]);
		const raw = (await compare(s, 'a=8.3.0&b=8.3.1&mix=none&tree=0')).json;
		assert.ok(!raw.mix.corrected && raw.mix.note === '' && raw.tree === undefined);
		assert.ok(raw.scenarios[0].stats.mean.change.value > 1, 'without, devices are taken for the version');
	});

	await t.test('the tree has both sides with equal weights, and marks significant differences', async () => {
		const { tree } = (await compare(s, 'a=8.3.0&b=8.3.1')).json;
		const name = new Map(tree.names.map((n) => [n.method, n.name]));
		const at = (method) => tree.method.findIndex((m) => name.get(m) === method);
		const load = at('com.app.Repo.load');
		near(tree.b_ns[load] / tree.b_of_traces / (tree.a_ns[load] / tree.a_of_traces), SLOWER, 0.03);
		assert.equal(tree.significant[load], 1);
		assert.equal(tree.significant[at('com.app.Db.query')], 0);
		assert.equal(tree.b_ns[at('com.app.Old.path')], 0);
		assert.equal(tree.a_ns[at('com.app.New.path')], 0);
		assert.equal(tree.a_traces[load], 40);
		const one = (await compare(s, 'a=8.3.0&b=8.3.1&focus=com.app.Repo.load')).json.tree;
		assert.equal(one.method[0], tree.method[load], 'its calls alone');
		assert.deepEqual([one.a_ns[0], one.b_ns[0], one.significant[0], one.total_nodes], [tree.a_ns[load], tree.b_ns[load], 1, 1]);
	});

	await t.test('filters, single traces, and one method', async () => {
		const os = (await compare(s, 'a.os=14&b.os=13&version_name=8.3.0')).json;
		assert.equal(os.a.traces + os.b.traces, 40);
		assert.deepEqual([os.mix.corrected, os.mix.strata.map((x) => [x.scenario, x.class])], [true, [['cold_start', null]]], 'no class in common: by scenario alone');
		assert.match(os.mix.note, /no device class in common, so differences in the device mix could not be corrected/);
		const one = (await compare(s, `a=trace:${ids[1]}&b=trace:${ids[41]}`)).json;
		assert.match(one.summary, /one trace per side/);
		assert.ok(one.methods.every((m) => !m.significant && m.self_ns.change.low === null));
		const load = one.methods.find((m) => m.name === 'com.app.Repo.load');
		assert.equal(load.total_ns.a, fleet[1].load);
		assert.equal(load.total_ns.b, fleet[41].load);
		const method = (await compare(s, 'a=8.3.0&b=8.3.1&method=com.app.Repo.load&tree=0')).json.method;
		assert.deepEqual([method.a_share, method.b_share], [1, 1]);
		assert.ok(method.stats.p50.significant);
	});

	await t.test('as Markdown, the same each time', async () => {
		const page = await compare(s, 'a=8.3.0&b=8.3.1&format=markdown');
		assert.match(page.headers.get('content-type'), /^text\/markdown/);
		assert.match(page.text, /\| cold\\_start \| p50 \|/);
		assert.match(page.text, /\| com\.app\.Repo\.load \|/);
		assert.equal((await compare(s, 'a=8.3.0&b=8.3.1&format=markdown')).text, page.text);
	});

	await t.test('impossible comparisons get a message', async () => {
		const none = (await compare(s, 'a=8.3.0&b=not%20semver')).json;
		assert.equal(none.comparable, false);
		assert.match(none.summary, /B \(not semver\) has no traces/);
		for (const [query, status, words] of [['', 400, /A and B are the same/], ['a=1&b=1', 400, /set what differs/], ['a=1&b=2&colour=red', 400, /unknown parameter colour/], ['a=1&b=2&mix=x', 400, /mix/],
			['a=1&b=2&a.class=huge', 400, /class/], ['a=trace:01ABC&b=8.3.0', 404, /./], ['a=1&b=2&only=x', 400, /only/], ['a=1&b=2&format=pdf', 400, /format/]]) {
			const answer = await compare(s, query);
			assert.equal(answer.status, status, `${query}: ${answer.text}`);
			assert.match(answer.json.error.message, words);
		}
		const stranger = (await s.get('/api/v1/fleet/compare?a=8.3.0&b=8.3.1', { key: s.key('read', 'other') })).json;
		assert.match(stranger.summary, /Neither side has traces/);
	});

	await t.test('the gate: passes, fails, lacks data, is misused, has no server', async () => {
		const gate = (...args) => spawnSync(binary(), ['compare', '--server', s.url, '--key', s.read, '--base', '8.3.0', '--head', '8.3.1', ...args], { encoding: 'utf8' });
		const held = gate('--fail-if', 'p50(cold_start) > +80%', '--fail-if', 'mean(method:com.app.Db.query) > +1ms');
		assert.equal(held.status, 0, held.stdout + held.stderr);
		assert.match(held.stdout, /passes +p50\(cold_start\) > \+80%: .*95 % confidence interval/);
		const failed = gate('--fail-if', 'p50(cold_start) > +10%', '--fail-if', 'p50(method:com.app.Repo.load) > +50us', '--json');
		assert.equal(failed.status, 1, failed.stdout + failed.stderr);
		assert.deepEqual(JSON.parse(failed.stdout).conditions.map((c) => c.result), ['FAILS', 'FAILS']);
		const budget = gate('--fail-if', 'p50(cold_start) > 1us', '--fail-if', 'p50(cold_start) > 60s', '--json');
		assert.deepEqual(JSON.parse(budget.stdout).conditions.map((c) => c.result), ['FAILS', 'passes'], 'without a sign it is of what B has');
		const share = gate('--fail-if', 'share(method:com.app.Old.path) < -50%', '--markdown');
		assert.equal(share.status, 1, share.stdout + share.stderr);
		assert.match(share.stdout, /\| FAILS \| 100\.0 % -> 0\.0 %/);
		for (const condition of ['p99(cold_start) > 1%', 'p50(warm_start) > 1%', 'p50(method:no.such.m) > 1%'])
			assert.equal(gate('--fail-if', condition).status, 2, condition);
		for (const wrong of ['p42(cold_start) > 1%', 'p50(cold_start)', 'p50(cold_start) > 5', 'share(cold_start) > 1%', 'p50() > 1%', 'p50(x) = 1%']) {
			const answer = gate('--fail-if', wrong);
			assert.equal(answer.status, 2, wrong);
			assert.match(answer.stderr, /is not a condition/);
		}
		const filter = spawnSync(binary(), ['compare', '--server', s.url, '--key', s.read, '--base', 'os=14,version_name=8.3.0', '--head', 'os=14,version_name=8.3.1', '--fail-if', 'mean(cold_start) > 10%'], { encoding: 'utf8' });
		assert.equal(filter.status, 1, filter.stdout + filter.stderr);
		const nobody = spawnSync(binary(), ['compare', '--server', s.url, '--key', 'wrong', '--base', '1', '--head', '2'], { encoding: 'utf8' });
		assert.equal(nobody.status, 3, nobody.stderr);
		assert.equal(spawnSync(binary(), ['compare', '--base', '1']).status, 2);
	});
});

/* A start takes 20 times as long as a scroll; 2.0 has mostly scrolls where 1.0 has mostly starts, and 3.0 is slower in scrolls. */
test('another mix of scenarios is not a change, and a change in one scenario is found', async (t) => {
	const s = await startServer(t);
	const sent = [['1.0', 'start', 30], ['1.0', 'scroll', 12], ['1.0', 'search', 3], ['2.0', 'start', 12], ['2.0', 'scroll', 30], ['3.0', 'start', 12], ['3.0', 'scroll', 30]];
	for (const version of ['1.0', '2.0', '3.0']) await s.put(`/api/v1/builds/s${version}/methods`, mapping);
	for (const [version, scenario, n] of sent)
		for (let i = 0; i < n; i++) {
			const load = (scenario === 'start' ? 4_000_000 : 200_000) * (1 + ((i * 7) % 12) / 100) * (version === '3.0' && scenario === 'scroll' ? SLOWER : 1);
			const answer = await s.post('/api/v1/traces', trace({ load: Math.round(load), version: '8.3.0' }), { query: { app: 'shop', version_name: version, build_id: `s${version}`, scenario, labels: LOW }, headers: { 'Idempotency-Key': `mix-${version}-${scenario}-${i}` } });
			assert.ok(answer.status <= 202, answer.text);
		}
	await until(async () => ((await s.get('/api/v1/fleet/flame')).json?.of_traces === sum(sent, (x) => x[2]) ? true : undefined), 'all counted', 60);
	const load = (v) => v.methods.find((m) => m.name === 'com.app.Repo.load');
	const same = (await compare(s, 'a=1.0&b=2.0')).json;
	assert.deepEqual(same.mix.strata.map((x) => [x.scenario, x.class, x.a_traces, x.b_traces, x.excluded]), [['scroll', 'low', 12, 30, false], ['search', 'low', 3, 0, true], ['start', 'low', 30, 12, false]]);
	assert.equal(same.mix.note, '3 traces of A and 0 of B are excluded: their scenarios and device classes are not on both sides.');
	assert.deepEqual([same.a.traces, same.a.compared, same.b.compared], [45, 42, 42]);
	assert.equal(load(same).significant, false);
	assert.equal(same.tree.significant.filter(Boolean).length, 0);
	assert.ok(Math.abs(load(same).self_ns.change.value) < load(same).self_ns.a * 0.02);
	const raw = (await compare(s, 'a=1.0&b=2.0&mix=none&tree=0')).json;
	assert.ok(load(raw).significant && load(raw).self_ns.b < load(raw).self_ns.a / 2, 'without weights, the mix is taken for the version');
	const mixed = load((await compare(s, 'a=1.0&b=3.0')).json), alone = load((await compare(s, 'a=1.0&b=3.0&scenario=scroll')).json);
	assert.deepEqual([mixed.significant, mixed.scenario, alone.significant, alone.scenario], [true, 'scroll', true, null]);
	for (const side of ['a', 'b']) near(mixed.scenario_self_ns[side], alone.self_ns[side], 1e-6);
	near(mixed.scenario_self_ns.change.high, alone.self_ns.change.high, 1e-6);
	const page = (await compare(s, 'a=1.0&b=3.0&format=markdown')).text;
	assert.match(page, /\| com\.app\.Repo\.load \|.* \(\+\d+ % in scroll\) \|.*\| yes \|/);
	assert.match(page, /^3 traces of A and 0 of B are excluded/m);
	const shown = spawnSync(binary(), ['compare', '--server', s.url, '--key', s.read, '--base', '1.0', '--head', '3.0'], { encoding: 'utf8' }).stdout;
	assert.match(shown, /3 traces of A and 0 of B are excluded/);
});

test('devices without a class: the response warns that their mix matters', async (t) => {
	const s = await startServer(t);
	const plain = fleet.filter((_, i) => i % 8 === 0);
	for (const [i, x] of plain.entries()) await s.post('/api/v1/traces', trace(x), { query: { version_name: x.version, build_id: `b${x.version}`, scenario: 'cold_start' }, headers: { 'Idempotency-Key': `plain-${i}` } });
	await until(async () => ((await s.get('/api/v1/fleet/flame')).json?.of_traces === plain.length ? true : undefined), 'all counted', 60);
	const note = /^No trace reports the class of its device \(ram_mb or device_class\), so differences in the device mix could not be corrected\.$/m;
	assert.match((await compare(s, 'a=8.3.0&b=8.3.1')).json.mix.note, note);
	assert.match((await compare(s, 'a=8.3.0&b=8.3.1&format=markdown')).text, /No trace reports the class/);
	assert.equal((await compare(s, 'a=8.3.0&b=8.3.2')).json.mix.note, '', 'one side has nothing');
	assert.doesNotMatch((await compare(s, 'a=8.3.0&b=8.3.2&format=markdown')).text, /\| Method \|/, 'there is nothing to compare');
	for (const form of [[], ['--markdown']]) {
		const { stdout } = spawnSync(binary(), ['compare', '--server', s.url, '--key', s.read, '--base', '8.3.0', '--head', '8.3.1', ...form], { encoding: 'utf8' });
		assert.match(stdout, note);
		assert.match(stdout, /A is the base, `?8\.3\.0`?; B is the head, `?8\.3\.1`?\./);
	}
});
