/*
 * fleet_flame.test.mjs - one flame graph of many traces, through the public API: sums equal those of the
 * traces, late names, recounts, app frames only, and messages of refusals.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as readers from '../export_readers.mjs';
import { btrace } from '../make.mjs';
import { startServer, tracewell, until } from '../server.mjs';

const PID = 4000;
const mapping = ['# v', '1,1,com.app.Main onCreate ()V', '2,1,com.app.Repo load ()V', '3,1,com.app.Db query ()V', '4,1,android.os.Handler dispatch ()V', ''].join('\n');

/* onCreate { dispatch { load { query } } } on main, load on a pool thread where `pool`. */
const trace = ({ load, pool }) => {
	const at = 1_000_000;
	const records = [[PID, 3, at + 3000, load / 4], [PID, 2, at + 2000, load], [PID, 4, at + 1000, load + 2000], [PID, 1, at, load + 4000]];
	if (pool) records.push([PID + 7, 2, at, load * 2]);
	return btrace(records, { pid: PID });
};

const fleet = ['8.3.0', '8.3.1'].flatMap((version) => Array.from({ length: 10 }, (_, i) =>
	({ version, load: (100_000 + i * 20_000) * (version === '8.3.1' ? 2 : 1), pool: i % 2 === 0 })));

async function send(s, x, i) {
	const answer = await s.post('/api/v1/traces', trace(x), { query: { app: 'shop', version_name: x.version, build_id: `b${x.version}`, scenario: 'cold_start', os: '14' },
		headers: { 'Idempotency-Key': `flame-${i}` } });
	assert.ok(answer.status <= 202, answer.text);
}

const flame = async (s, query = '') => (await s.get(`/api/v1/fleet/flame?${query}`)).json;
const counted = (s, n) => until(async () => {
	const json = await flame(s);
	return json?.of_traces === n ? json : undefined;
}, `${n} traces merged`, 60);

/** Nodes by their path of names. */
function nodesOf(f) {
	const name = new Map(f.names.map((n) => [n.method, n.name]));
	const paths = [];
	f.parent.forEach((parent, i) => {
		paths[i] = i === 0 ? '' : `${paths[parent]}/${f.other[i] ? '(other)' : name.get(f.method[i])}`;
	});
	return Object.fromEntries(paths.map((p, i) => [p, { value: f.value[i], self: f.self[i], count: f.count[i], traces: f.in_traces[i] }]));
}

const sum = (list, of) => list.reduce((n, x) => n + of(x), 0);
const MAIN = '/main/com.app.Main.onCreate/android.os.Handler.dispatch/com.app.Repo.load';

test('one flame graph of a fleet', async (t) => {
	const s = await startServer(t);
	for (const [i, x] of fleet.entries()) await send(s, x, i);
	await counted(s, fleet.length);

	await t.test('methods are named when the mapping arrives, and merged over builds', async () => {
		const before = await flame(s);
		assert.ok(before.names.some((n) => n.name.startsWith('unknown:') && n.name.endsWith('of build b8.3.0')), JSON.stringify(before.names));
		for (const version of ['8.3.0', '8.3.1']) await s.put(`/api/v1/builds/b${version}/methods`, mapping);
		const after = await until(async () => {
			const f = await flame(s);
			return f.names.every((n) => !n.name.startsWith('unknown:')) ? f : undefined;
		}, 'names');
		assert.equal(after.total_nodes, 7);
	});

	await t.test('callers and callees of a method', async () => {
		const load = sum(fleet, (x) => x.load), pool = sum(fleet.filter((x) => x.pool), (x) => x.load * 2);
		const callers = async (query) => (await s.get(`/api/v1/fleet/callers?name=com.app.Repo.load&${query}`)).json;
		const all = await callers('');
		assert.deepEqual([all.of_traces, all.calls, all.total_ns, all.self_ns], [20, 30, load + pool, load * 3 / 4 + pool]);
		assert.deepEqual(all.callers.map((c) => [c.name, c.thread, c.total_ns, c.calls, c.in_traces]), [
			['android.os.Handler.dispatch', false, load, 20, 20], [all.callers[1].name, true, pool, 10, 10]].sort((a, b) => b[2] - a[2]));
		assert.deepEqual(all.callees.map((c) => [c.name, c.total_ns, c.calls]), [['com.app.Db.query', load / 4, 20]]);
		assert.ok(Math.abs(sum(all.callers, (c) => c.share) - 1) < 1e-9);
		const main = await callers('thread=main&frames=app&version_name=8.3.1'); // the platform's calls are their callers'
		assert.deepEqual(main.callers.map((c) => [c.name, c.share]), [['com.app.Main.onCreate', 1]]);
		const others = await callers('thread=others');
		assert.deepEqual(others.callers.map((c) => [c.thread, c.share, c.calls]), [[true, 1, 10]]);
		assert.equal((await callers('limit=1')).callers.length, 1);
		assert.deepEqual((await callers('version_name=none')).callers, []);
		assert.equal((await s.get('/api/v1/fleet/callers?name=com.app.Nothing')).status, 404);
		assert.equal((await s.get('/api/v1/fleet/callers')).status, 400);
	});

	await t.test('sums and shares are those of the traces', async () => {
		for (const version of ['', '8.3.0', '8.3.1']) {
			const of = fleet.filter((x) => !version || x.version === version);
			const f = await flame(s, version && `version_name=${version}`);
			const nodes = nodesOf(f);
			assert.equal(f.of_traces, of.length);
			assert.deepEqual(nodes[MAIN], { value: sum(of, (x) => x.load), self: sum(of, (x) => x.load * 0.75), count: of.length, traces: of.length });
			assert.deepEqual(nodes[`${MAIN}/com.app.Db.query`], { value: sum(of, (x) => x.load / 4), self: sum(of, (x) => x.load / 4), count: of.length, traces: of.length });
			const pool = Object.entries(nodes).find(([p]) => p.endsWith('/com.app.Repo.load') && !p.startsWith('/main'));
			assert.equal(pool[1].traces, of.filter((x) => x.pool).length, 'the share of traces that have it');
			assert.equal(nodes[''].value, sum(of, (x) => x.load + 4000 + (x.pool ? 2 * x.load : 0)));
		}
	});

	await t.test('one kind of threads, a root, few nodes with an honest rest, and callers', async () => {
		const main = await flame(s, 'thread=main');
		assert.equal(nodesOf(main)[''].value, sum(fleet, (x) => x.load + 4000));
		assert.ok(main.threads.length === 2 && main.threads.includes('main'));
		assert.equal(nodesOf(await flame(s, 'thread=others'))[''].value, sum(fleet, (x) => (x.pool ? 2 * x.load : 0)), 'all but main');
		const number = (name) => main.names.find((n) => n.name === name).method;
		const below = await flame(s, `thread=main&root=${[number('main'), number('com.app.Main.onCreate')].join('.')}`);
		assert.equal(below.value[0], sum(fleet, (x) => x.load + 4000));
		assert.equal(below.method[0], number('com.app.Main.onCreate'));
		const few = await flame(s, 'max_nodes=2');
		assert.equal(few.shown_nodes, 2);
		few.value.forEach((v, i) => assert.equal(v, few.self[i] + few.parent.reduce((n, p, k) => n + (k > 0 && p === i ? few.value[k] : 0), 0)));
		const up = nodesOf(await flame(s, 'view=bottom_up'));
		assert.equal(up['/com.app.Db.query'].value, sum(fleet, (x) => x.load / 4));
		assert.ok(up['/com.app.Db.query/com.app.Repo.load/android.os.Handler.dispatch']);
	});

	await t.test("the app's frames alone", async () => {
		const nodes = nodesOf(await flame(s, 'frames=app&thread=main'));
		assert.equal(nodes['/main/com.app.Main.onCreate/com.app.Repo.load'].value, sum(fleet, (x) => x.load));
		assert.equal(nodes['/main/com.app.Main.onCreate'].self, fleet.length * 4000, "time of frames that are left out is their callers'");
		assert.ok(!Object.keys(nodes).some((p) => p.includes('android.os')));
	});

	await t.test('the calls of one method, with their callees and with their callers', async () => {
		const load = sum(fleet, (x) => x.load), pool = sum(fleet.filter((x) => x.pool), (x) => x.load * 2);
		const one = 'focus=com.app.Repo.load';
		const down = await flame(s, one);
		assert.equal(down.names.find((n) => n.method === down.method[0]).name, 'com.app.Repo.load');
		assert.deepEqual(nodesOf(down), { '': { value: load + pool, self: load * 3 / 4 + pool, count: 30, traces: fleet.length },
			'/com.app.Db.query': { value: load / 4, self: load / 4, count: 20, traces: 20 } });
		const up = nodesOf(await flame(s, `${one}&view=bottom_up`));
		assert.equal(up[''].value, load + pool, 'with the time of its callees');
		assert.equal(up['/android.os.Handler.dispatch'].value, load);
		assert.equal(up['/android.os.Handler.dispatch/com.app.Main.onCreate/main'].value, load);
		assert.deepEqual(Object.keys(nodesOf(await flame(s, `${one}&view=bottom_up&thread=main&frames=app`))), ['', '/com.app.Main.onCreate', '/com.app.Main.onCreate/main']);
		const query = down.names.find((n) => n.name === 'com.app.Db.query').method;
		const below = await flame(s, `${one}&root=${query}`);
		assert.equal(below.value[0], load / 4);
		assert.deepEqual(below.names.map((n) => n.name).sort(), ['com.app.Db.query', 'com.app.Repo.load'], 'with the names on the path');
		assert.deepEqual(Object.keys(nodesOf(await flame(s, 'focus=android.os.Handler.dispatch&frames=app'))), ['', '/com.app.Repo.load', '/com.app.Repo.load/com.app.Db.query']);
	});

	await t.test('as folded stacks', async () => {
		const folded = async (query) => Object.fromEntries((await s.get(`/api/v1/fleet/flame?format=folded&${query}`)).text.trim().split('\n').map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]));
		const load = sum(fleet, (x) => x.load);
		const main = await folded('thread=main');
		assert.deepEqual(main, { 'main;com.app.Main.onCreate': 20 * 2000, 'main;com.app.Main.onCreate;android.os.Handler.dispatch': 20 * 2000,
			[MAIN.slice(1).replaceAll('/', ';')]: load * 3 / 4, [`${MAIN.slice(1).replaceAll('/', ';')};com.app.Db.query`]: load / 4 });
		assert.deepEqual(await folded('thread=main&focus=com.app.Repo.load'), { 'com.app.Repo.load': load * 3 / 4, 'com.app.Repo.load;com.app.Db.query': load / 4 });
		assert.equal((await folded('thread=main&max_nodes=1'))['main;(other)'], load + 20 * 4000);
	});

	await t.test('as a pprof profile', async () => {
		const pprof = async (query) => {
			const answer = await s.get(`/api/v1/fleet/flame?format=pprof&${query}`);
			assert.equal(answer.headers.get('content-type'), 'application/octet-stream');
			assert.match(answer.headers.get('content-disposition'), /filename="fleet.pb"/);
			return readers.pprof(answer.bytes);
		};
		const load = sum(fleet, (x) => x.load);
		const { methods, types } = await pprof('thread=main');
		assert.deepEqual(types, ['wall/nanoseconds', 'calls/count']);
		assert.deepEqual(Object.fromEntries(methods), {
			main: { self: 0, total: load + 20 * 4000, count: 0 },
			'com.app.Main.onCreate': { self: 20 * 2000, total: load + 20 * 4000, count: 20 },
			'android.os.Handler.dispatch': { self: 20 * 2000, total: load + 20 * 2000, count: 20 },
			'com.app.Repo.load': { self: load * 3 / 4, total: load, count: 20 },
			'com.app.Db.query': { self: load / 4, total: load / 4, count: 20 },
		});
		assert.deepEqual((await pprof('thread=main&focus=com.app.Repo.load')).methods.get('com.app.Repo.load'), { self: load * 3 / 4, total: load, count: 20 });
		assert.equal((await pprof('thread=main&max_nodes=1')).methods.get('(other)').self, load + 20 * 4000);
		assert.deepEqual((await pprof('metric=cpu')).types, ['cpu/nanoseconds', 'calls/count']);
		assert.equal((await pprof('version_name=not%20there')).methods.size, 0);
	});

	await t.test('invalid queries get a message', async () => {
		for (const [query, status, words] of [['metric=heat', 400, /metric/], ['view=round', 400, /view/], ['frames=some', 400, /frames/], ['root=a', 400, /root is method numbers/],
			['root=99999', 404, /./], ['focus=com.app.Nothing', 404, /no counted trace has a method of that name/], ['thread=nobody', 404, /none of these traces has threads called nobody/], ['format=pprof&view=bottom_up', 400, /omit view=bottom_up/], ['colour=red', 400, /unknown parameter colour/], ['max_nodes=0', 400, /max_nodes/]]) {
			const answer = await s.get(`/api/v1/fleet/flame?${query}`);
			assert.equal(answer.status, status, query);
			assert.match(answer.json.error.message, words);
		}
		const none = await flame(s, 'version_name=not%20there');
		assert.deepEqual([none.of_traces, none.value, none.names], [0, [0], []]);
		const stranger = (await s.get('/api/v1/fleet/flame', { key: s.key('read', 'other') })).json;
		assert.equal(stranger.of_traces, 0);
	});

	await t.test('made again from the traces, it is the same', async () => {
		const questions = ['', 'version_name=8.3.1&frames=app', 'view=bottom_up'];
		const ask = async () => Promise.all(questions.map(async (q) => (await s.get(`/api/v1/fleet/flame?${q}`)).text));
		const before = await ask();
		await s.stop();
		tracewell('rollup', '--data', s.data, '--rebuild');
		await s.start();
		assert.deepEqual(await ask(), before);
	});
});
