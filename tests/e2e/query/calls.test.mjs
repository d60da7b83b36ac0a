/*
 * calls.test.mjs - single calls of a trace, and time that is waiting, over the wire.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { btrace } from '../make.mjs';
import { startServer, until } from '../server.mjs';

const MS = 1e6, MAIN = 4000, POOL = 4001;
const NAMES = ['android.os.Looper.loop', 'android.os.MessageQueue.nativePollOnce', 'com.acme.Feed.load', 'java.lang.Object.wait', 'com.acme.Pool.run'];
const [LOOP, POLL, LOAD, WAIT, RUN] = [1, 2, 3, 4, 5];
const CALLS = [[MAIN, POLL, 1, 60], [MAIN, LOAD, 62, 20], [MAIN, LOAD, 84, 4], [MAIN, LOOP, 0, 100], [POOL, LOAD, 10, 5], [POOL, WAIT, 20, 70], [POOL, RUN, 1, 95]];

async function traced(t) {
	const s = await startServer(t);
	await s.put('/api/v1/builds/waits/methods', NAMES.map((n, i) => `${i + 1},1,${n.replace(/\.(\w+)$/, ' $1')} ()V`).join('\n') + '\n');
	const trace = await s.trace(btrace(CALLS.map(([tid, m, at, dur]) => [tid, m, at * MS, dur * MS]), { pid: MAIN }), { query: { build_id: 'waits', app: 'acme' } });
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	const { names } = (await s.get(`/api/v1/traces/${trace.id}/names`)).json;
	const method = (of) => names.indexOf(NAMES[of - 1]);
	return { s, at: `/api/v1/traces/${trace.id}`, start: trace.start_ns, method };
}

test('single calls', async (t) => {
	const { s, at, start, method } = await traced(t);
	const calls = async (q) => (await s.get(`${at}/calls?${q}`)).json;

	await t.test('all of a method: longest first, histogram, quantiles', async () => {
		const all = await calls(`method=${method(LOAD)}`);
		assert.deepEqual(all.calls.map((c) => [c.tid, c.dur_ns / MS, c.depth, c.name]), [[MAIN, 20, 1, NAMES[LOAD - 1]], [POOL, 5, 1, NAMES[LOAD - 1]], [MAIN, 4, 1, NAMES[LOAD - 1]]]);
		assert.deepEqual([all.count, all.total, all.sum_ns, all.max_ns], [3, 3, 29 * MS, 20 * MS]);
		assert.ok(Math.abs(all.p50_ns / (5 * MS) - 1) < 0.017, all.p50_ns);
		assert.equal(all.histogram.reduce((n, b) => n + b.calls, 0), 3);
		for (const c of all.calls) assert.ok(all.histogram.some((b) => c.dur_ns >= b.from_ns && c.dur_ns < b.to_ns));
	});
	await t.test('a range of durations, the order of time', async () => {
		const some = await calls(`method=${method(LOAD)}&max_ns=${5 * MS}&sort=start&limit=1`);
		assert.deepEqual([some.count, some.total, some.calls.map((c) => (c.start_ns - start) / MS)], [3, 2, [10]]);
		assert.deepEqual((await calls(`min_ns=${16 * MS}&thread=main`)).calls.map((c) => c.dur_ns / MS), [100, 60, 20], 'every call over 16 ms');
	});
	await t.test('neighbours, on the thread and in the trace', async () => {
		const { previous, next, previous_here, next_here } = await calls(`method=${method(LOAD)}&around=${MAIN}.${start + 62 * MS}.1&limit=0`);
		assert.deepEqual([previous.tid, next.start_ns - start, previous_here, next_here.start_ns - start], [POOL, 84 * MS, null, 84 * MS]);
	});
	await t.test('a range of time holds calls that overlap it', async () => {
		const { calls: list } = await calls(`from=${start + 83 * MS}&to=${start + 86 * MS}&thread=main&sort=start`);
		assert.deepEqual(list.map((c) => c.dur_ns / MS), [100, 4]);
	});
	await t.test('invalid queries are refused', async () => {
		for (const [q, status] of [['method=99', 404], ['method=x', 400], ['around=1.2', 400], ['around=1.2.3.4', 400], ['around=a.b.c', 400], ['limit=10001', 400], ['sort=name', 400], ['thread=7', 404]])
			assert.equal((await s.get(`${at}/calls?${q}`)).status, status, q);
	});
});

test('overloads are distinguished by their descriptors', async (t) => {
	const s = await startServer(t);
	await s.put('/api/v1/builds/over/methods', '1,1,com.acme.Json parse (Ljava/lang/String;)V\n2,1,com.acme.Json parse ()V\n3,1,com.acme.Feed load\n');
	const trace = await s.trace(btrace([[MAIN, 3, 0, 90 * MS], [MAIN, 1, MS, 50 * MS], [MAIN, 2, 2 * MS, 30 * MS]], { pid: MAIN }), { query: { build_id: 'over', app: 'acme' } });
	const ask = async (path) => (await s.get(`/api/v1/traces/${trace.id}/${path}`)).json;
	const all = [['com.acme.Feed.load', ''], ['com.acme.Json.parse', '()V'], ['com.acme.Json.parse', '(Ljava/lang/String;)V']];
	const pairs = (rows) => rows.map((r) => [r.name, r.descriptor]).sort();
	const { names, descriptors } = await ask('names');
	assert.deepEqual(names.map((n, i) => [n, descriptors[i]]).sort(), all);
	assert.deepEqual(pairs((await ask('methods')).methods), all);
	assert.deepEqual(pairs((await ask('calls')).calls), all);
	assert.deepEqual(pairs((await ask('search?q=parse')).methods), all.slice(1));
	for (const [q, found] of [['parse(', all.slice(1)], ['parse(String): void', [all[2]]], ['PARSE(java.lang.String', [all[2]]], ['json.parse()', [all[1]]], ['String', []]])
		for (const path of ['search', 'methods']) assert.deepEqual(pairs((await ask(`${path}?q=${encodeURIComponent(q)}`)).methods), found, `${path} ${q}`);
	assert.deepEqual(pairs((await ask(`methods?regex=1&q=${encodeURIComponent('parse\\((?!\\))')}`)).methods), [all[2]]);
	const { children: [load] } = await ask('flame?thread=main');
	assert.deepEqual([load, load.children[0], load.children[0].children[0]].map((n) => [n.name, n.descriptor]), [all[0], all[2], all[1]]);
	assert.equal('descriptor' in (await ask('flame?thread=main')), false, 'the root is not a method');
});

test('the CPU time of calls', async (t) => {
	const { s, at, start } = await traced(t);
	assert.equal((await s.get(`${at}/calls?around=${MAIN}.${start + 62 * MS}.1&limit=0`)).json.around.cpu_ns, null, 'the trace has none');

	/* doFrame from 1 to 400 ms calls put from 50 to 350; the thread is off its CPU from 100 to 300 */
	const stamp = (ms) => `[000] ...1 ${(4000 + ms / 1000).toFixed(6)}:`;
	const mark = (ms, text) => `acme-${MAIN} (${MAIN}) ${stamp(ms)} tracing_mark_write: ${text}`;
	const turn = (ms, from, to) => `x-${from} (-----) ${stamp(ms)} sched_switch: prev_comm=x prev_pid=${from} prev_prio=120 prev_state=S ==> next_comm=acme next_pid=${to} next_prio=120`;
	const text = ['# tracer: nop', '#', turn(0, 0, MAIN), mark(1, `B|${MAIN}|doFrame`), mark(50, `B|${MAIN}|put`), turn(100, MAIN, 0), turn(300, 0, MAIN),
		mark(350, `E|${MAIN}`), mark(400, `E|${MAIN}`), turn(500, MAIN, 0), ''].join('\n');
	const trace = await s.trace(text, { query: { app: 'acme' } });
	const ask = async (path) => (await s.get(`/api/v1/traces/${trace.id}/${path}`)).json;
	const { calls: [frame, put] } = await ask('calls?sort=start');
	assert.deepEqual([frame, put].map((c) => [c.name, c.dur_ns / MS, c.cpu_ns / MS]), [['doFrame', 399, 199], ['put', 300, 100]]);
	const { around } = await ask(`calls?around=${put.tid}.${put.start_ns}.1&limit=0&method=${put.method}`);
	assert.deepEqual(around, put);
	assert.equal((await ask(`calls?around=${put.tid}.${put.start_ns + 1}.1&limit=0`)).around, null, 'no call begins there');

	const begin = frame.start_ns - MS;
	const inRange = async (from, to) => Object.fromEntries((await ask(`methods?from=${begin + from * MS}&to=${begin + to * MS}`)).methods.map((m) => [m.name, [m.sum_ns, m.cpu_ns].map((ns) => ns / MS)]));
	assert.deepEqual(await inRange(70, 320), { doFrame: [250, 50], put: [250, 50] }, 'both edges cut both calls');
	assert.deepEqual(await inRange(20, 500), { doFrame: [380, 180], put: [300, 100] }, 'one edge cuts the outer call');
	assert.deepEqual(await inRange(150, 250), { doFrame: [100, 0], put: [100, 0] });

	/* visit calls itself: the thread is off its CPU for 200 of its 400 ms */
	const recursive = ['# tracer: nop', '#', turn(0, 0, MAIN), mark(0, `B|${MAIN}|visit`), mark(50, `B|${MAIN}|visit`), turn(100, MAIN, 0), turn(300, 0, MAIN),
		mark(350, `E|${MAIN}`), mark(400, `E|${MAIN}`), turn(500, MAIN, 0), ''].join('\n');
	const again = await s.trace(recursive, { query: { app: 'acme' } });
	for (const of of ['', '?thread=main', `?from=${again.start_ns}&to=${again.end_ns}`]) {
		const [m] = (await s.get(`/api/v1/traces/${again.id}/methods${of}`)).json.methods;
		assert.deepEqual([m.count, m.total_ns, m.sum_ns, m.cpu_ns, m.waiting_ns].map((v, i) => (i ? v / MS : v)), [2, 400, 700, 200, 200], of);
	}
});

test('methods that only wait are distinguished from those that work', async (t) => {
	const { s, at } = await traced(t);
	const ask = async (path) => (await s.get(path)).json;

	await t.test('in the table', async () => {
		const { methods } = await ask(`${at}/methods?sort=running_ns`);
		assert.deepEqual(methods.map((m) => m.name), [LOAD, RUN, LOOP, POLL, WAIT].map((m) => NAMES[m - 1]));
		assert.deepEqual(methods.map((m) => m.running_ns / MS), [29, 20, 16, 0, 0]);
		assert.deepEqual((await ask(`${at}/methods?sort=self_ns&limit=2`)).methods.map((m) => m.name), [WAIT, POLL].map((m) => NAMES[m - 1]), 'by time alone they come first');
	});
	await t.test('in activity: a looper is busy per message', async () => {
		const { threads } = await ask(`${at}/threads`);
		const main = threads.find((x) => x.tid === MAIN);
		assert.equal(main.busy_ns, 100 * MS);
		assert.ok(Math.abs(main.running_ns / MS - 40) < 1, main.running_ns);
		assert.deepEqual([10, 64, 90, 120].map((i) => main.activity[i] > 200), [false, false, true, true], 'it waits for most of the trace');
		const { threads: [strip] } = await ask(`${at}/activity?cells=10&thread=main`);
		assert.deepEqual(strip.activity.map((v) => v > 128), [false, false, false, false, false, false, true, true, true, true]);
	});
	await t.test('in the graph: running and waiting add up to wall time', async () => {
		const [wall, running, waiting] = await Promise.all(['wall', 'running', 'waiting'].map((m) => ask(`${at}/flame?metric=${m}`)));
		assert.deepEqual([wall.value, running.value, waiting.value].map((ns) => ns / MS), [195, 65, 130]);
		const up = await ask(`${at}/flame?metric=waiting&view=bottom_up`);
		assert.deepEqual(up.children.slice(0, 2).map((c) => [c.name, c.value / MS]), [[NAMES[WAIT - 1], 70], [NAMES[POLL - 1], 60]]);
	});
	await t.test('over the fleet', async () => {
		const names = async (q) => (await ask(`/api/v1/fleet/methods?sort=sum_self${q}`)).methods.map((m) => m.name);
		await until(async () => ((await names('')).length === NAMES.length ? true : undefined), 'the trace is counted');
		assert.deepEqual(await names(''), [WAIT, POLL, LOAD, RUN, LOOP].map((m) => NAMES[m - 1]));
		assert.deepEqual(await names('&waits=false'), [LOAD, RUN, LOOP].map((m) => NAMES[m - 1]));
		assert.equal((await s.get('/api/v1/fleet/methods?waits=perhaps')).status, 400);
	});
});
