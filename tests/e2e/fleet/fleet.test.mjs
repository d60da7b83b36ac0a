/*
 * fleet.test.mjs - rollups through the public API: late names, recounts, filters, refusals, and each trace
 * counted once despite kills.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';

import { btrace } from '../make.mjs';
import { root, sleep, stages, startServer, tracewell, until } from '../server.mjs';

const PID = 4000;
const mapping = ['# v', '1,1,com.app.Main onCreate ()V', '2,1,com.app.Repo load ()V', '3,1,com.app.Db query (I)V', '4,1,com.app.Db query (J)V', ''].join('\n');

/* onCreate → load (of that length) → two queries, of which the overloads have one name. */
const trace = (load, calls = 1) =>
	btrace(Array.from({ length: calls }, (_, i) => {
		const at = 1_000_000 + i * 2 * (load + 10_000);
		return [[PID, 3, at + 2000, 100], [PID, 4, at + 3000, 200], [PID, 2, at + 1000, load], [PID, 1, at, load + 5000]];
	}).flat(), { pid: PID });

const LABELS = { low: { ram_mb: 2048 }, high: { ram_mb: 8192 } };

/* A small fleet: 8.3.1 is slower in Repo.load by 40 %. */
const fleet = ['8.3.0', '8.3.1'].flatMap((version) => ['low', 'high'].flatMap((cls) =>
	Array.from({ length: 12 }, (_, i) => ({ version, cls, load: Math.round((100_000 + i * 10_000) * (cls === 'low' ? 3 : 1) * (version === '8.3.1' ? 1.4 : 1)), calls: 1 + (i % 3), device: `phone ${i % 2}` }))));

async function send(s, x, i) {
	const answer = await s.post('/api/v1/traces', trace(x.load, x.calls), { query: { app: 'shop', version_name: x.version, build_id: `b${x.version}`, scenario: 'cold_start',
		os: '14', device: x.device, labels: JSON.stringify(LABELS[x.cls]) }, headers: { 'Idempotency-Key': `fleet-${i}` } });
	assert.ok(answer.status <= 202, answer.text);
	return answer.json.id;
}

const counted = (s, n, query = '') => until(async () => {
	const { json } = await s.get(`/api/v1/fleet/scenarios?by=all${query}`);
	assert.ok(!json || json.traces === undefined || json.traces <= n, `${json?.traces} counted of ${n}`);
	return json?.traces === n ? json : undefined;
}, `${n} traces counted`, 60);

const rank = (values, percent) => [...values].sort((a, b) => a - b)[Math.ceil((values.length * percent) / 100) - 1];
const near = (reported, truth, error) => assert.ok(Math.abs(reported - truth) <= truth * error, `${reported} for ${truth}`);

/* Any label may be filtered by, and any of several equally slow traces may be returned. */
const onClickHouse = Boolean(process.env.TRACEWELL_TEST_CLICKHOUSE);
const unlike = (text) => (onClickHouse ? text.replace(/"exemplar":"[^"]*"/g, '"exemplar":"one"') : text);

async function everything(s) {
	const out = [];
	for (const q of ['scenarios?by=version', 'scenarios?by=day', 'scenarios?by=class', 'flame?version_name=8.3.1', 'methods?metrics=wall,self,cpu,waiting,calls,call', 'methods?version_name=8.3.1&sort=p50_wall', 'method?name=com.app.Repo.load&by=version'])
		out.push(unlike((await s.get(`/api/v1/fleet/${q}`)).text));
	return out;
}

test('queries on a fleet', async (t) => {
	const s = await startServer(t);
	const labels = await s.ask('PUT', '/api/v1/fleet/labels', { key: s.write, body: '{"labels":["device"]}' });
	assert.deepEqual(labels.json, { labels: ['device'] });
	const ids = [];
	for (const [i, x] of fleet.entries()) ids.push(await send(s, x, i));
	await counted(s, fleet.length);

	await t.test('unnamed methods are counted per build, and named when the mapping arrives', async () => {
		const before = (await s.get('/api/v1/fleet/methods')).json;
		assert.equal(before.total, 8, 'four methods of each build');
		assert.ok(before.methods.every((m) => !m.resolved && m.name.startsWith('unknown:') && m.build_id));
		for (const version of ['8.3.0', '8.3.1']) await s.put(`/api/v1/builds/b${version}/methods`, mapping);
		const after = await until(async () => {
			const { json } = await s.get('/api/v1/fleet/methods');
			return json.methods.every((m) => m.resolved) && json.total === 4 ? json : undefined;
		}, 'names');
		assert.equal(after.traces, fleet.length);
		assert.deepEqual(after.methods.map((m) => `${m.name}${m.descriptor}`).sort(),
			['com.app.Db.query(I)V', 'com.app.Db.query(J)V', 'com.app.Main.onCreate()V', 'com.app.Repo.load()V']);
	});

	await t.test('quantiles are within the stated error, by version and class', async () => {
		for (const [version, cls] of [['8.3.0', 'low'], ['8.3.1', 'high'], ['8.3.1', '']]) {
			const { json } = await s.get(`/api/v1/fleet/methods?version_name=${version}${cls && `&class=${cls}`}&metrics=wall,self,calls,call,cpu&sort=sum_wall`);
			const of = fleet.filter((x) => x.version === version && (!cls || x.cls === cls));
			const load = json.methods.find((m) => m.name === 'com.app.Repo.load');
			assert.equal(json.traces, of.length);
			assert.equal(load.wall.traces, of.length);
			assert.equal(load.share, 1);
			assert.equal(load.wall.sum, of.reduce((sum, x) => sum + x.load * x.calls, 0));
			assert.equal(load.calls.sum, of.reduce((sum, x) => sum + x.calls, 0));
			assert.equal(load.wall.max, Math.max(...of.map((x) => x.load * x.calls)));
			assert.equal(load.cpu.traces, 0, 'not known here');
			for (const p of [50, 75, 95, 99]) {
				near(load.wall[`p${p}`], rank(of.map((x) => x.load * x.calls), p), json.error);
				near(load.call[`p${p}`], rank(of.map((x) => x.load), p), json.error);
				near(load.self[`p${p}`], rank(of.map((x) => (x.load - 300) * x.calls), p), json.error);
			}
			assert.equal(json.methods[0].name, 'com.app.Main.onCreate', 'sorted');
			const worst = ids[fleet.indexOf(of.reduce((a, x) => (x.load * x.calls > a.load * a.calls ? x : a)))];
			assert.equal(load.wall.exemplar, worst);
		}
	});

	await t.test('one method over versions shows what got slower', async () => {
		const { json } = await s.get('/api/v1/fleet/method?name=com.app.Repo.load&by=version&metrics=call');
		assert.deepEqual(json.groups.map((g) => g.key), ['8.3.0', '8.3.1']);
		near(json.groups[1].call.mean / json.groups[0].call.mean, 1.4, 0.01);
		const days = (await s.get('/api/v1/fleet/method?name=com.app.Repo.load')).json;
		assert.ok(days.groups.length >= 1 && /^\d{4}-\d\d-\d\d$/.test(days.groups[0].key));
	});

	await t.test('scenarios by version, class and label, with exemplars that open', async () => {
		const { json } = await s.get('/api/v1/fleet/scenarios');
		assert.deepEqual(json.groups.map((g) => [g.scenario, g.key, g.duration_ns.traces]), [['cold_start', '8.3.0', 24], ['cold_start', '8.3.1', 24]]);
		for (const g of json.groups) {
			for (const id of Object.values(g.exemplars)) assert.ok(ids.includes(id));
			const longest = await s.get(`/api/v1/traces/${g.exemplars.max}`);
			near(longest.json.summary.duration_ns, g.duration_ns.max, json.error * 2);
		}
		const classes = (await s.get('/api/v1/fleet/scenarios?by=class')).json.groups;
		assert.deepEqual(classes.map((g) => g.key), ['high', 'low']);
		const label = encodeURIComponent('device=phone 1');
		assert.equal((await s.get(`/api/v1/fleet/scenarios?by=all&label=${label}`)).json.traces, 24);
		assert.equal((await s.get(`/api/v1/fleet/methods?label=${label}`)).json.traces, 24);
	});

	await t.test('by a label: its values, those without it, the largest and a counted rest', async () => {
		const by = async (what, query = '') => (await s.get(`/api/v1/fleet/${what}&by=${encodeURIComponent('label:device')}${query}`)).json;
		const { groups, ...head } = await by('scenarios?');
		assert.deepEqual([head.by, head.traces, head.values, head.not_counted, head.total], ['label:device', 48, 2, 0, 2]);
		assert.deepEqual(groups.map((g) => [g.scenario, g.key, g.values, g.duration_ns.traces]), [['cold_start', 'phone 0', 1, 24], ['cold_start', 'phone 1', 1, 24]]);
		const method = await by('method?name=com.app.Repo.load&metrics=wall', '&version_name=8.3.1');
		for (const [i, g] of method.groups.entries()) {
			const of = fleet.filter((x) => x.device === `phone ${i}` && x.version === '8.3.1').map((x) => x.load * x.calls);
			assert.deepEqual([g.key, g.of_traces, g.wall.max], [`phone ${i}`, 12, Math.max(...of)]);
			near(g.wall.p50, rank(of, 50), method.error);
		}
		assert.deepEqual((await by('scenarios?', '&label=device%3Dphone%201')).groups.map((g) => [g.key, g.duration_ns.traces]), [['phone 1', 24]]);
		const refused = [['by=label:colour', /not counted by the label colour/], ['by=label:', /not counted by the label/], ['by=label:device&class=low', /omit one of them/], ['by=label:device&label=a%3Db', /one label at a time/]];
		for (const [query, words] of [...(onClickHouse ? [] : refused),
			['by=label:device&top=0', /top/], ['by=label:device&top=201', /top/], ['label=device', /KEY=VALUE/]]) {
			const { status, json } = await s.get(`/api/v1/fleet/scenarios?${query}`);
			assert.equal(status, 400, query);
			assert.match(json.error.message, words);
		}
	});

	await t.test('invalid queries get a message', async () => {
		for (const [query, words] of [
			['methods?device=Pixel', /unknown parameter device; the parameters are: metrics, sort, order/], ['methods?colour=red', /unknown parameter colour/], ['methods?metrics=wall,heat', /unknown metric heat/],
			['methods?sort=p42_self', /sort is p50/], ['methods?sort=p95_', /sort is .*, not p95_$/], ['methods?sort=beauty', /sort is .* call, as in p95_self, not beauty$/], ['methods?limit=many', /limit must be a number from 1 to \d+, not many$/], ['methods?class=huge', /class/], ['scenarios?by=moon', /by/],
			['methods?since=5&until=4', /since is after/], ['method', /name is required/], ...(onClickHouse ? [] : [['methods?label=a%3Db&os=14', /omit one of them/], ['methods?thread=main', /by thread only with --analytics/], ['method?name=com.app.Repo.load&threads=main', /by thread only/]]), ['methods?q=(&regex=1', /./],
			['methods?limit=0', /limit/],
		]) {
			const { status, json } = await s.get(`/api/v1/fleet/${query}`);
			assert.equal(status, 400, query);
			assert.match(json.error.message, words);
		}
		assert.equal((await s.get('/api/v1/fleet/method?name=no.such.m')).status, 404);
		assert.equal((await s.get('/api/v1/fleet/methods?version_name=not.semver-%F0%9F%90%99')).json.total, 0);
		for (const body of ['{"labels":"x"}', '{"labels":["a","a"]}', '{"labels":["a=b"]}', '{"labels":["1","2","3","4","5"]}', '{"labels":[""]}', '{}'])
			assert.equal((await s.ask('PUT', '/api/v1/fleet/labels', { key: s.write, body })).status, 400, body);
		const stranger = await s.get('/api/v1/fleet/methods', { key: s.key('read', 'other') });
		assert.equal(stranger.json.traces, 0);
		assert.equal(stranger.json.total, 0);
	});

	await t.test('made again from the traces, it is the same', async () => {
		const before = await everything(s);
		await s.stop();
		tracewell('rollup', '--data', s.data, '--rebuild');
		await s.start();
		assert.deepEqual(await everything(s), before);
	});

	await t.test('a deleted trace is no longer an exemplar; it remains counted, except in ClickHouse', async () => {
		const before = (await s.get('/api/v1/fleet/scenarios')).json.groups[1];
		const gone = before.exemplars.max;
		assert.equal((await s.ask('DELETE', `/api/v1/traces/${gone}`)).status, 204);
		if (onClickHouse) await until(async () => ((await s.get('/api/v1/fleet/scenarios')).json.traces === fleet.length - 1 ? true : undefined), 'taken out');
		const after = (await s.get('/api/v1/fleet/scenarios')).json;
		assert.equal(after.traces, fleet.length - (onClickHouse ? 1 : 0));
		if (onClickHouse) assert.ok(after.groups[1].exemplars.max !== gone && after.groups[1].duration_ns.sum < before.duration_ns.sum);
		else assert.equal(after.groups[1].exemplars.max, null);
	});
});

test('values of a label: traces without it, traces from before it was configured, and many values', { skip: onClickHouse && 'none came before: unit test fleet_engines' }, async (t) => {
	const s = await startServer(t);
	const send1 = async (i, labels) => assert.ok((await s.post('/api/v1/traces', trace(10_000 + i), { query: { app: 'shop', scenario: 'open', labels: JSON.stringify(labels) }, headers: { 'Idempotency-Key': `label-${i}` } })).status <= 202);
	for (let i = 0; i < 3; i++) await send1(i, { flavour: 'early' });
	await counted(s, 3);
	await s.ask('PUT', '/api/v1/fleet/labels', { key: s.write, body: '{"labels":["flavour"]}' });
	const values = ['beta', 'beta', 'beta', 'stable', 'stable', 'x=1', '(none)', 'ö'];
	for (const [i, flavour] of values.entries()) await send1(10 + i, { flavour });
	for (let i = 0; i < 4; i++) await send1(20 + i, { flavourful: 'no' });
	await counted(s, 3 + values.length + 4);
	const ask = async (top) => (await s.get(`/api/v1/fleet/scenarios?by=label%3Aflavour&top=${top}`)).json;
	const reported = (v) => v.groups.map((g) => [g.key, g.values, g.duration_ns.traces]);
	const few = await ask(2);
	assert.deepEqual([few.traces, few.not_counted, few.values, few.total], [12, 3, 5, 4]);
	assert.deepEqual(reported(few), [['', 0, 4], ['beta', 1, 3], ['stable', 1, 2], ['', 3, 3]]);
	const rest = few.groups.at(-1);
	assert.equal(rest.duration_ns.max - rest.duration_ns.mean > 0, true, 'of all of them');
	assert.deepEqual(reported(await ask(4)), [['', 0, 4], ['(none)', 1, 1], ['beta', 1, 3], ['stable', 1, 2], ['x=1', 1, 1], ['ö', 1, 1]], 'one alone is no rest');
	assert.equal((await s.get('/api/v1/fleet/scenarios?by=all&label=flavour%3D')).json.traces, 4);
	await s.stop();
	tracewell('rollup', '--data', s.data, '--rebuild');
	await s.start();
	const again = await ask(20);
	assert.deepEqual([again.traces, again.not_counted, again.values], [15, 0, 6]);
	await s.ask('PUT', '/api/v1/fleet/labels', { key: s.write, body: '{"labels":[]}' });
	assert.equal((await s.get('/api/v1/fleet/scenarios?by=label%3Aflavour')).status, 400, 'not counted by any more');
});

test('killed again and again while it counts, every trace counts once', async (t) => {
	const kills = Number(process.env.FLEET_KILLS ?? 2 * stages.length);
	const s = await startServer(t);
	const rule = { name: 'cold starts', kind: 'duration', scenario: 'cold_start', threshold: 800 }; // alerts serve projects with rules only
	assert.equal((await s.ask('POST', '/api/v1/alerts/rules', { key: s.write, body: JSON.stringify(rule) })).status, 201);
	let sent = 0;
	for (let k = 0; k < kills; k++) {
		for (let i = 0; i < 10; i++, sent++) await send(s, fleet[sent % fleet.length], `kill-${sent}`);
		if (k % 3 === 1) await s.put('/api/v1/builds/b8.3.1/methods', mapping + `# ${k}\n`);
		await sleep((k * 37) % 150);
		await s.stop('SIGKILL');
		if (k % 2) { /* again, after the first turn of a stage; that may be before it listens */
			s.env = { TRACEWELL_CRASH_AT: stages[(k >> 1) % stages.length] };
			const last = () => send(s, fleet[sent % fleet.length], `kill-${sent}`);
			await s.start().then(last).catch(() => undefined);
			await until(() => s.exited || undefined, 'it died');
			s.env = {};
			await s.start();
			await last(); /* again, where it had arrived */
			sent++;
			continue;
		}
		await s.start();
	}
	const before = await counted(s, sent);
	await until(async () => ((await s.metric('tracewell_stage_waiting_traces')) === 0 ? true : undefined), 'nothing waits');
	assert.equal(s.sql('SELECT count(*) FROM trace WHERE named<>1 OR rollup_state<>1 OR anr_state<>1 OR detected<=0'), '0');
	assert.equal(s.sql('SELECT count(*) FROM build b WHERE (names_traces, names_slices, names_resolved_slices)<>(SELECT count(*), sum(t.names_slices), sum(t.names_resolved_slices) FROM trace t WHERE t.build_id=b.build_id)'), '0', 'names are counted once');
	assert.equal(before.groups[0].duration_ns.traces, sent);
	const old = await everything(s);
	await s.stop();
	tracewell('rollup', '--data', s.data, '--rebuild');
	await s.start();
	assert.equal((await counted(s, sent)).traces, sent);
	assert.deepEqual(await everything(s), old);
});

test('traces without times, of snapshots or counts, enter no percentiles', async (t) => {
	const s = await startServer(t);
	const report = ['----- pid 4242 at 2026-11-21 10:00:00 -----', 'Cmd line: com.example.app', 'DALVIK THREADS (1):', '"main" prio=5 tid=1 Native',
		'  at com.app.Repo.load(Repo.java:30)', '', '----- end 4242 -----', ''].join('\n');
	const where = { app: 'shop', version_name: '1' };
	const anr = await s.trace(report, { query: { ...where, scenario: 'anr' } });
	assert.equal(anr.summary.format, 'anr');
	const matrix = await s.trace(JSON.stringify({ tag: 'Trace_EvilMethod', detail: 'LAG', threadStack: 'at com.app.Feed.draw(Feed.java:9)\n' }), { query: { ...where, scenario: 'lag' } });
	const art = execFileSync('python3', [path.join(root, 'tests', 'gen', 'art.py'), 'counts', '--seed', '8']);
	const counts = await s.trace(art, { query: { ...where, scenario: 'cold_start' } });
	for (const one of [anr, matrix, counts]) assert.deepEqual([one.summary.timed, one.summary.duration_ns], [false, 0], one.summary.format);
	const other = await s.trace(trace(50_000), { query: { ...where, scenario: 'cold_start' } });
	assert.deepEqual([other.summary.timed, other.summary.duration_ns > 0], [true, true]);
	for (const { id } of [anr, matrix, counts])
		await until(async () => ((await s.get(`/api/v1/traces/${id}`)).json.rollup_state === 'counted' ? true : undefined), 'it is done with');
	const all = await counted(s, 1);
	assert.deepEqual(all.groups.map((g) => [g.scenario, g.duration_ns.traces]), [['cold_start', 1]]);
	const names = (await s.get('/api/v1/fleet/methods')).json.methods.map((m) => m.name);
	assert.ok(names.length > 0 && !names.includes('com.app.Repo.load'), names.join());
	const compared = await s.get('/api/v1/fleet/compare', { query: { a: `trace:${anr.id}`, b: `trace:${other.id}` } });
	assert.equal(compared.status, 409, compared.text);
	assert.match(compared.json.error.message, /has no times to compare/);
});

test('a trace counts on the day on which it was recorded', async (t) => {
	const s = await startServer(t);
	const DAY = 86_400_000;
	const now = Date.now();
	const at = now - 2 * DAY;
	const YEAR = 365 * DAY;
	const post = async (seed, query) => {
		const r = await s.post('/api/v1/traces', trace(100_000 + seed), { query: { app: 'shop', version_name: '1', scenario: 'start', ...query } });
		assert.equal(r.status, 202, r.text);
		return (await s.decoded(r.json.id)).meta.recorded_ms;
	};
	const days = async (n) => {
		await counted(s, n, `&since=${now - 20 * DAY}&until=${now}`);
		const { json } = await s.get(`/api/v1/fleet/scenarios?by=day&since=${now - 20 * DAY}&until=${Date.now()}`);
		return Object.fromEntries(json.groups.map((g) => [g.key, g.duration_ns.traces]));
	};
	const dayOf = (ms) => new Date(ms).toISOString().slice(0, 10);
	assert.ok((await post(1, {})) >= now, 'without a time: its arrival');
	assert.equal(await post(2, { started_at: String(at) }), at, 'late, by a right clock');
	assert.deepEqual(await days(2), { [dayOf(now)]: 1, [dayOf(at)]: 1 });
	/* a clock that is a year slow; the request's duration is added */
	const corrected = await post(3, { started_at: String(at - YEAR), sent_at: String(Date.now() - YEAR) });
	assert.ok(corrected >= at && corrected < at + DAY / 24, `${corrected - at} ms`);
	assert.ok((await post(4, { started_at: String(now - YEAR) })) >= now, 'older than anything waits on a device');
	assert.deepEqual(await days(4), { [dayOf(now)]: 2, [dayOf(at)]: 2 }, 'the day before yesterday is counted again');
	await s.stop();
	tracewell('rollup', '--data', s.data, '--rebuild');
	await s.start();
	assert.deepEqual(await days(4), { [dayOf(now)]: 2, [dayOf(at)]: 2 }, 'made again from the traces');
});

test('the time of a method never exceeds the length of its threads', async (t) => {
	const s = await startServer(t);
	const MS = 1_000_000, OTHER = PID + 1;
	/* on main a call of load in one of load in one of load; both threads are in onCreate from begin to end */
	const calls = [[PID, 2, 30, 10], [PID, 2, 20, 40], [PID, 2, 10, 80], [PID, 1, 1, 100], [OTHER, 2, 5, 90], [OTHER, 1, 1, 100]];
	const { id } = await s.trace(btrace(calls.map(([tid, method, at, dur]) => [tid, method, at * MS, dur * MS]), { pid: PID }), { query: { build_id: 'nested', scenario: 'nested' } });
	await s.put('/api/v1/builds/nested/methods', mapping);
	const { summary } = (await s.get(`/api/v1/traces/${id}`)).json;
	const { methods } = await until(async () => {
		const { json } = await s.get('/api/v1/fleet/methods?scenario=nested&metrics=wall,self,calls');
		return json?.methods?.length === 2 && json.methods.every((m) => m.resolved) ? json : undefined;
	}, 'it is counted and named', 60);
	const of = Object.fromEntries(methods.map((m) => [m.name, m]));
	assert.deepEqual([of['com.app.Repo.load'].wall.max, of['com.app.Repo.load'].calls.max], [(80 + 90) * MS, 4], 'inner calls are counted, their time is not counted again');
	assert.equal(of['com.app.Main.onCreate'].wall.max, 2 * summary.duration_ns, 'all of two threads');
	for (const m of methods) assert.ok(m.wall.max <= 2 * summary.duration_ns && m.self.max <= m.wall.max, m.name);
	if (!onClickHouse) return;
	for (const thread of ['main', 'Thread-#']) {
		const { json } = await s.get(`/api/v1/fleet/methods?scenario=nested&metrics=wall&thread=${encodeURIComponent(thread)}`);
		for (const m of json.methods) assert.ok(m.wall.max <= summary.duration_ns, `${m.name} on ${thread}`);
	}
});
