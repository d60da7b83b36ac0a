/*
 * fleet_inlined.test.mjs - sampled frames of an obfuscated build are the same methods in the fleet as in their
 * trace: with the mapping first, late, and replaced.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startServer, until } from '../server.mjs';

const MS = 1e6;
/* pay inlines sum (line 1 and 2) and sum inlines round (line 1); x is an outline that pay calls. */
const stacks = JSON.stringify({
	format: 'java-stacks/1', pid: 9, interval_ms: 10,
	frames: ['android.os.Looper.loop(Looper.java:99)', 'a.a.m(SourceFile:1)', 'a.a.m(SourceFile:2)', 'a.a.m(SourceFile:3)', 'a.o.x(SourceFile:5)'],
	stacks: [[1, 0], [2, 0], [3, 0], [4, 3, 0]],
	threads: { 1: { name: 'main', sys_tid: 9 } },
	samples: [[0, 1, 0], [10000000, 1, 1], [20000000, 1, 2], [30000000, 1, 3]],
});
const map = (sum = 'sum') => `shop.Cart -> a.a:\n    1:1:void shop.Price.round():7:7 -> m\n    1:1:int shop.Price.${sum}():21 -> m\n    1:1:void pay():30 -> m\n`
	+ `    2:2:int shop.Price.${sum}():22:22 -> m\n    2:2:void pay():30 -> m\n    3:3:void pay():31:31 -> m\n`
	+ 'shop.Made -> a.o:\n    5:5:void outline():0:0 -> x\n# {"id":"com.android.tools.r8.outline"}\n';
const wall = (sum = 'sum') => ({ 'android.os.Looper.loop': 40, 'shop.Cart.pay': 40, [`shop.Price.${sum}`]: 20, 'shop.Price.round': 10 });

test('inlined methods in the fleet', async (t) => {
	const s = await startServer(t);
	const send = async (build, i) => (await s.trace(stacks, { query: { app: 'shop', build_id: build, version_name: build, scenario: build }, headers: { 'Idempotency-Key': `${build}-${i}` } })).id;
	const methods = async (build, sort = 'p50_wall') => (await s.get(`/api/v1/fleet/methods?scenario=${build}&metrics=wall,self,calls&sort=${sort}`)).json;
	const reported = async (build, want, traces) => {
		let now;
		await until(async () => {
			now = await methods(build);
			for (const m of now?.methods ?? []) assert.ok(m.wall.p50 > 0, `listed without figures: ${JSON.stringify(m)}`);
			return now?.traces === traces && JSON.stringify(now.methods.map((m) => m.name).sort()) === JSON.stringify(Object.keys(want).sort()) ? true : undefined;
		}, () => `${build}: ${JSON.stringify(now)}`, 60);
		for (const m of now.methods) {
			assert.ok(Math.abs(m.wall.p50 / MS - want[m.name]) <= want[m.name] * 0.02, `${m.name} ${m.wall.p50}`);
			assert.equal(m.wall.traces, traces, `${m.name}: each trace counts once, however many lines it was seen at`);
		}
	};
	const flame = async (build) => {
		const { names, parent, method } = (await s.get(`/api/v1/fleet/flame?scenario=${build}`)).json;
		const name = new Map(names.map((n) => [n.method, n.name])), paths = [];
		parent.forEach((p, i) => (paths[i] = i === 0 ? '' : `${paths[p]};${name.get(method[i]) ?? 'thread'}`));
		return paths;
	};

	await t.test('the mapping arrived first', async () => {
		assert.equal((await s.put('/api/v1/builds/first/retrace', map())).status, 200);
		for (let i = 0; i < 3; i++) await send('first', i);
		await reported('first', wall(), 3);
		const paths = await flame('first');
		assert.ok(paths.some((p) => p.endsWith('android.os.Looper.loop;shop.Cart.pay;shop.Price.sum;shop.Price.round')), paths.join('\n'));
		assert.ok(!paths.some((p) => /outline|a\.[ao]\./.test(p)), paths.join('\n'));
	});

	await t.test('a search leads to the inlined call', async () => {
		const { json } = await s.get('/api/v1/fleet/search?method=shop.Price.round&scenario=first');
		assert.equal(json.hits.length, 3, JSON.stringify(json));
		for (const hit of json.hits) assert.deepEqual([hit.method, hit.max_ns, hit.call.start_ns, hit.call.duration_ns], ['shop.Price.round', 10 * MS, 0, 10 * MS]);
	});

	await t.test('the mapping arrived late: the traces of its build are counted again', async () => {
		for (let i = 0; i < 3; i++) await send('late', i);
		await send('other', 0);
		await reported('late', { 'android.os.Looper.loop': 40, 'a.a.m': 40, 'a.o.x': 10 }, 3);
		assert.equal((await s.put('/api/v1/builds/late/retrace', map())).status, 200);
		await reported('late', wall(), 3);
		await reported('other', { 'android.os.Looper.loop': 40, 'a.a.m': 40, 'a.o.x': 10 }, 1);
		await reported('first', wall(), 3);
	});

	await t.test('and replaced', async () => {
		assert.equal((await s.put('/api/v1/builds/late/retrace', map('total'), { key: s.write })).status, 200);
		await reported('late', wall('total'), 3);
	});

	await t.test('where a trace of the day is gone, the rest keeps its figures and is named', async () => {
		const ids = [await send('gone', 0), await send('gone', 1)];
		await reported('gone', { 'android.os.Looper.loop': 40, 'a.a.m': 40, 'a.o.x': 10 }, 2);
		assert.equal((await s.ask('DELETE', `/api/v1/traces/${ids[0]}`, { key: s.write })).status, 204);
		assert.equal((await s.put('/api/v1/builds/gone/retrace', map())).status, 200);
		await until(async () => ((await methods('gone')).methods.some((m) => m.name === 'shop.Cart.pay') ? true : undefined), 'named');
		assert.equal((await methods('gone')).traces, process.env.TRACEWELL_TEST_CLICKHOUSE ? 1 : 2, 'in ClickHouse a deleted trace does not count');
	});

	await t.test('two sides of a comparison have the same methods', async () => {
		const id = await send('late', 9);
		const { json, text } = await s.get(`/api/v1/fleet/compare?a=trace:${id}&b.scenario=first`);
		assert.ok(json.methods, text);
		for (const m of json.methods) assert.ok(!m.name.startsWith('a.'), m.name);
	});

});
