/*
 * anr_groups.test.mjs - ANR groups through the public API: expected groups only, late names, rules set by
 * users, regrouping, hostile input.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CAUSES, MAPPING, VERSIONS, fleet } from '../../gen/anr_fleet.mjs';
import { btrace } from '../make.mjs';
import { startServer, tracewell, until } from '../server.mjs';

const send = async (s, x) => {
	const answer = await s.post('/api/v1/traces', x.text, { query: { app: 'shop', version_name: x.version, build_id: `b${x.version}`, scenario: 'anr', os: '14', device: x.device,
		labels: JSON.stringify({ user_id: x.user, team: 'a', beta: true, rooted: false, ram_gb: 6 }) }, headers: { 'Idempotency-Key': `anr-${x.i}` } });
	assert.ok(answer.status <= 202, answer.text);
	return answer.json.id;
};

/* All reports have their keys by the rules and names that hold. */
const settled = (s, n, query = '') => until(async () => {
	const { json } = await s.get(`/api/v1/anr/groups${query}`);
	return json?.anrs === n && json.pending === 0 ? json : undefined;
}, `${n} ANRs in groups`, 60);

const put = (s, rules, version) => s.ask('PUT', '/api/v1/anr/rules', { key: s.write, body: JSON.stringify({ rules, ...(version === undefined ? {} : { version }) }) });
const count = (list, key) => list.reduce((n, x) => n.set(key(x), (n.get(key(x)) ?? 0) + 1), new Map());
const distinct = (list, key) => new Set(list.map(key)).size;
const titles = (json) => new Map(json.groups.map((g) => [g.title, g.count]));

async function everything(s) {
	const list = (await s.get('/api/v1/anr/groups?limit=1000')).json;
	const groups = [];
	for (const g of list.groups) groups.push((await s.get(`/api/v1/anr/groups/${g.key}`)).json);
	const locks = (await s.get('/api/v1/fleet/locks?threads=all')).json;
	return JSON.stringify([list, groups, locks]);
}

test('a fleet of known causes', async (t) => {
	const s = await startServer(t);
	const sent = fleet(42);
	const ids = [];
	for (const x of sent) ids.push(await send(s, x));

	await t.test('the groups are exactly the causes, with counts, users, versions, devices and days', async () => {
		const json = await settled(s, sent.length);
		assert.equal(json.total, CAUSES.length);
		assert.deepEqual(Object.fromEntries(titles(json)), Object.fromEntries(count(sent, (x) => x.cause.before ?? x.cause.title)));
		for (const cause of CAUSES) {
			const of = sent.filter((x) => x.cause === cause);
			const g = json.groups.find((x) => x.title === (cause.before ?? cause.title));
			assert.equal(g.kind, cause.kind, cause.id);
			assert.deepEqual([g.count, g.users, g.versions, g.devices], [of.length, distinct(of, (x) => x.user), distinct(of, (x) => x.version), distinct(of, (x) => x.device)], cause.id);
			assert.equal(g.trend.reduce((n, d) => n + d.count, 0), of.length);
			if (cause.locks) assert.deepEqual([...new Set(g.cause.locks.map((l) => l.class))].sort(), cause.locks);
			if (cause.binder) assert.deepEqual(g.cause.binder, cause.binder);
			assert.ok(g.verdict.length > 10);
		}
	});

	await t.test('filters select some of them', async () => {
		const query = { version_name: VERSIONS[2], label: 'team=a' };
		const { json } = await s.get('/api/v1/anr/groups', { query });
		const of = sent.filter((x) => x.version === VERSIONS[2]);
		assert.equal(json.anrs, of.length);
		assert.equal(json.total, distinct(of, (x) => x.cause.id));
		assert.equal((await s.get('/api/v1/anr/groups', { query: { label: 'team=b' } })).json.anrs, 0);
		for (const [label, n] of [['beta=true', sent.length], ['beta=1', 0], ['rooted=false', sent.length], ['rooted=0', 0], ['ram_gb=6', sent.length]])
			assert.equal((await s.get('/api/v1/anr/groups', { query: { label } })).json.anrs, n, label);
		const io = (await s.get('/api/v1/anr/groups?kind=io')).json.groups;
		assert.deepEqual(io.map((g) => g.kind), ['io']);
		const stranger = await s.get('/api/v1/anr/groups', { key: s.key('read', 'other') });
		assert.equal(stranger.json.anrs, 0);
		assert.equal((await s.get(`/api/v1/anr/groups/${io[0].key}`, { key: s.key('read', 'other') })).status, 404);
	});

	await t.test('one group shows versions, devices, and traces that open', async () => {
		const { groups } = (await s.get('/api/v1/anr/groups')).json;
		const ring = groups.find((g) => g.kind === 'deadlock');
		const one = (await s.get(`/api/v1/anr/groups/${ring.key}`)).json;
		const of = sent.filter((x) => x.cause.id === 'ring');
		assert.deepEqual(Object.fromEntries(one.by_version.map((v) => [v.value, v.count])), Object.fromEntries(count(of, (x) => x.version)));
		assert.deepEqual(Object.fromEntries(one.by_device.map((v) => [v.value, v.count])), Object.fromEntries(count(of, (x) => x.device)));
		assert.deepEqual(one.exemplars.map((e) => e.trace).sort(), of.map((x) => ids[x.i]).sort().slice(-20));
		const times = one.exemplars.map((e) => e.recorded_ms);
		assert.deepEqual(times, [...times].sort((a, b) => b - a), 'the latest first');
		assert.equal((await s.get(`/api/v1/traces/${one.exemplars[0].trace}`)).status, 200);
		assert.match(one.verdict, /^deadlock: main waits 5 s for a lock of/);
	});

	await t.test('locks that main waited for, with their holders, from reports', async () => {
		const { json } = await s.get('/api/v1/fleet/locks');
		const by = Object.fromEntries(json.locks.map((l) => [l.name, l]));
		const held = sent.filter((x) => x.cause.id === 'held');
		assert.deepEqual(Object.keys(by).sort(), ['com.shop.Cart.total', 'com.shop.Orders.insert', 'com.shop.Stock.take']);
		assert.deepEqual([by['com.shop.Orders.insert'].traces, by['com.shop.Orders.insert'].total_ns, by['com.shop.Orders.insert'].versions, by['com.shop.Orders.insert'].holder],
			[held.length, held.length * 5e9, distinct(held, (x) => x.version), 'DB-writer']);
		assert.deepEqual(by['com.shop.Orders.insert'].monitors, ['com.shop.Orders']);
		const all = (await s.get('/api/v1/fleet/locks?threads=all&sort=waits')).json.locks;
		assert.equal(all.reduce((n, l) => n + l.waits, 0), json.locks.reduce((n, l) => n + l.waits, 0) + sent.filter((x) => x.cause.id === 'ring').length, 'the other member of each ring');
		const one = (await s.get('/api/v1/fleet/lock?name=com.shop.Orders.insert&by=version')).json;
		assert.deepEqual(Object.fromEntries(one.groups.map((g) => [g.key, g.traces])), Object.fromEntries(count(held, (x) => x.version)));
	});

	await t.test('a late mapping names and groups them again', async () => {
		for (const version of VERSIONS) assert.equal((await s.put(`/api/v1/builds/b${version}/retrace`, MAPPING)).status, 200);
		const json = await until(async () => {
			const { json } = await s.get('/api/v1/anr/groups');
			return json.pending === 0 && json.groups.some((g) => g.title === 'Sleep in Retry.pause') && !json.groups.some((g) => g.title === 'Sleep in b.c') ? json : undefined;
		}, 'names');
		assert.equal(json.total, CAUSES.length);
		assert.equal(titles(json).get('Sleep in Retry.pause'), sent.filter((x) => x.cause.obf).length);
	});

	await t.test('rules skip, merge and name, without another upload, and are taken back', async () => {
		const before = (await s.get('/api/v1/anr/groups')).json;
		const key = (title) => before.groups.find((g) => g.title === title).key;
		const first = (await s.get('/api/v1/anr/rules')).json;
		assert.deepEqual([first.version, first.rules], [0, []]);
		const changed = await put(s, [
			{ action: 'skip', frame: 'com.shop.Layout.' },
			{ action: 'merge', name: 'Startup', groups: [key('Sleep in Retry.pause'), key('File, database or network in Prefs.load')] },
			{ action: 'name', name: 'The ring', lock: '/^com\\.shop\\.(Cart|Stock)$/', kind: 'deadlock' },
			{ action: 'merge', name: 'Resting', enabled: false, kind: 'deadlock' },
		], 0);
		assert.equal(changed.status, 200, changed.text);
		assert.equal(changed.json.version, 1);
		const json = await settled(s, sent.length);
		assert.equal(json.rules_version, 1);
		assert.equal(json.total, CAUSES.length - 1);
		const startup = json.groups.find((g) => g.name === 'Startup');
		assert.equal(startup.count, sent.filter((x) => x.cause.obf || x.cause.id === 'file').length);
		assert.equal(json.groups.find((g) => g.kind === 'deadlock').name, 'The ring');
		assert.equal(json.groups.find((g) => g.kind === 'deadlock').key, key('Deadlock of Cart and Stock'), 'a name does not move a group');
		assert.ok(titles(json).has('Running Screen.draw'), 'the frame below is blamed');
		const late = await put(s, [], 0);
		assert.equal(late.status, 409);
		assert.match(late.json.error.message, /current version is 1/);
		assert.equal((await put(s, [], 1)).json.version, 2);
		const after = await settled(s, sent.length);
		assert.deepEqual(after.groups, before.groups);
		assert.equal((await s.get('/api/v1/anr/rules?version=1')).json.rules.length, 4);
		assert.equal((await s.get('/api/v1/anr/rules?version=9')).status, 404);
		const tag = (await s.get('/api/v1/anr/rules')).headers.get('etag');
		assert.equal((await s.get('/api/v1/anr/rules', { headers: { 'If-None-Match': tag } })).status, 304);
	});

	await t.test("whose frames are the app's moves groups too", async () => {
		await s.ask('PUT', '/api/v1/frames', { key: s.write, body: '{"framework":["com.shop.Prefs"]}' });
		const json = await until(async () => {
			const { json } = await s.get('/api/v1/anr/groups');
			return json.pending === 0 && json.groups.some((g) => g.title.startsWith('File, database or network in App.lambda$onCreate$')) ? json : undefined;
		}, 'another frame');
		assert.equal(json.groups.filter((g) => g.kind === 'io').length, 1, 'one group whatever the number of the lambda');
		await s.ask('PUT', '/api/v1/frames', { key: s.write, body: '{}' });
		await until(async () => (titles((await s.get('/api/v1/anr/groups')).json).has('File, database or network in Prefs.load') ? true : undefined), 'as before');
		await settled(s, sent.length);
	});

	await t.test('made again from the traces, it is the same', async () => {
		const before = await everything(s);
		await s.stop();
		tracewell('rollup', '--data', s.data, '--rebuild');
		await s.start();
		assert.equal(await everything(s), before);
	});

	await t.test('a deleted trace remains counted, named and grouped', async () => {
		const ring = (await s.get('/api/v1/anr/groups?kind=deadlock')).json.groups[0];
		const one = (await s.get(`/api/v1/anr/groups/${ring.key}`)).json;
		assert.equal((await s.ask('DELETE', `/api/v1/traces/${one.exemplars[0].trace}`)).status, 204);
		const version = (await put(s, [{ action: 'merge', name: 'All', kind: 'deadlock' }])).json.version;
		const json = await settled(s, sent.length);
		assert.equal(json.rules_version, version);
		const merged = json.groups.find((g) => g.name === 'All');
		assert.equal(merged.count, ring.count);
		const after = (await s.get(`/api/v1/anr/groups/${merged.key}`)).json;
		assert.equal(after.exemplars.find((e) => e.trace === one.exemplars[0].trace)?.exists ?? false, false);
		assert.ok(after.exemplars[0].exists, 'those that are there come first');
	});
});

test('invalid rules and queries get a message', async (t) => {
	const s = await startServer(t);
	for (const [rules, words] of [
		['x', /list of at most 100 rules/], [Array(101).fill({ action: 'skip', frame: 'a' }), /at most 100/], [[7], /rule 1: it must be an object/],
		[[{ action: 'skip', frame: '/(/' }], /rule 1: frame: not a regular expression/], [[{ action: 'skip', frame: 'x'.repeat(201) }], /1 to 200 bytes/], [[{ action: 'skip', frame: '' }], /1 to 200 bytes/],
		[[{ action: 'skip', frame: 'a' }, { action: 'blame', frame: 'b' }], /rule 2: action must be skip, merge or name, not blame/], [[{ action: 'skip', frame: 'a', colour: 'red' }], /rule 1: unknown member colour/],
		[[{ action: 'skip' }], /frame that is not blamed/], [[{ action: 'merge', frame: 'a' }], /name must be a text of 1 to 100 bytes/], [[{ action: 'merge', name: 'x' }], /select ANRs/],
		[[{ action: 'name', name: 'a\u0007', kind: 'io' }], /control characters/], [[{ action: 'name', name: 'x', kind: 'heat' }], /kind must be deadlock, .* not heat/], [[{ action: 'name', name: 'x', groups: ['12'] }], /16 digits, 0-9 and a-f/],
		[[{ action: 'name', name: 'x', groups: [] }], /groups must be a list of 1 to 50 texts/], [[{ action: 'skip', frame: 5 }], /frame must be a text of 1 to 200 bytes/], [[{ action: 'skip', frame: 'a', enabled: 1 }], /enabled must be true or false/],
	]) {
		const { status, json } = await put(s, rules);
		assert.equal(status, 400, JSON.stringify(rules).slice(0, 80));
		assert.match(json.error.message, words);
	}
	assert.match((await put(s, [], -1)).json.error.message, /number of the changed rules/);
	assert.equal((await s.get('/api/v1/anr/rules')).json.version, 0, 'nothing was stored');
	for (const [query, words] of [['anr/groups?colour=red', /unknown parameter colour/], ['anr/groups?kind=heat', /kind/], ['anr/groups?since=5&until=4', /since is after/], ['anr/groups?limit=0', /limit/],
		['fleet/locks?threads=some', /threads/], ['fleet/locks?sort=hot', /sort/], ['fleet/locks?q=(&regex=1', /./], ['fleet/lock', /name is required/], ['fleet/lock?name=a&by=moon', /by/]]) {
		const { status, json } = await s.get(`/api/v1/${query}`);
		assert.equal(status, 400, query);
		assert.match(json.error.message, words);
	}
	for (const key of ['0123456789abcdef', 'x', '%00', '../../x']) assert.equal((await s.get(`/api/v1/anr/groups/${encodeURIComponent(key)}`)).status, 404, key);
	assert.equal((await s.get('/api/v1/fleet/lock?name=no.such')).status, 404);
	assert.equal((await s.ask('PUT', '/api/v1/anr/rules', { body: '{"rules":[]}' })).status, 403, 'a reader');
});

test('a pattern that would never end, and names that are no names', async (t) => {
	const s = await startServer(t);
	const name = `com.shop.${'a'.repeat(300)}`;
	const hostile = '<img src=x onerror=alert(1)>';
	const text = (frame, type) => `"main" prio=5 tid=1 Blocked\n  at ${frame}(X.java:1)\n  - waiting to lock <0x01> (a ${type}) held by thread 2\n\n"w" prio=5 tid=2 Runnable\n  at ${frame}(X.java:2)\n  - locked <0x01> (a ${type})\n`;
	const frames = [`${name}.run`, `com.shop.${hostile}.run`, "com.shop.'); DROP TABLE anr;--.run", 'com.shop.\u202Eevil.run', 'com.shop.$$$$.$', '$.1', '....'];
	for (const [i, frame] of frames.entries())
		assert.ok((await s.post('/api/v1/traces', text(frame, i % 2 ? hostile : 'T'), { query: { version_name: hostile, device: hostile, build_id: 'b' } })).status <= 202);
	await settled(s, frames.length);
	assert.equal((await put(s, [{ action: 'skip', frame: '/(a+)+b$/' }, { action: 'skip', frame: '/(a|aa)+$b/' }, { action: 'merge', name: hostile, lock: hostile }])).status, 200);
	const json = await settled(s, frames.length);
	assert.equal(json.groups.find((g) => g.name === hostile).count, 3);
	const locks = (await s.get('/api/v1/fleet/locks')).json;
	assert.ok(locks.locks.some((l) => l.monitors.includes(hostile)));
	assert.equal(json.groups[0].last_version, hostile);
});

test('calls recorded with a report show the work of main if the report came too late', async (t) => {
	const s = await startServer(t);
	const idle = '"main" prio=5 tid=1 Native\n  | sysTid=4000 nice=0\n  at android.os.MessageQueue.nativePollOnce(Native method)\n  at android.os.MessageQueue.next(MessageQueue.java:335)\n  at android.os.Looper.loop(Looper.java:1)\n';
	const ms = 1_000_000;
	/* 1 s of start, then Feed.parse for 4 of the last 5 s */
	const trace = btrace([[4000, 3, 10 * ms, 900 * ms], [4000, 4, 2200 * ms, 3900 * ms], [4000, 2, 2000 * ms, 4500 * ms], [4000, 1, 1500 * ms, 5400 * ms]], { pid: 4000 });
	const form = new FormData();
	form.append('meta', JSON.stringify({ build_id: 'b1', scenario: 'anr' }));
	form.append('trace', new Blob([trace]));
	form.append('anr', new Blob([idle]));
	await s.put('/api/v1/builds/b1/methods', ['# v', '1,1,android.os.Handler dispatch ()V', '2,1,com.shop.Feed show ()V', '3,1,com.shop.App start ()V', '4,1,com.shop.Feed parse ()V', ''].join('\n'));
	const { status } = await s.post('/api/v1/traces', form);
	assert.ok(status <= 202);
	const json = await settled(s, 1);
	assert.deepEqual([json.groups[0].kind, json.groups[0].title, json.groups[0].cause.frames], ['path', 'Time spent in Feed.parse', ['com.shop.Feed.parse', 'com.shop.Feed.show']]);
	const alone = await s.post('/api/v1/traces', idle);
	assert.ok(alone.status <= 202);
	const two = await settled(s, 2);
	assert.deepEqual(two.groups.map((g) => g.kind).sort(), ['idle', 'path']);
});

test('a group is never named after an outline, but after its caller, by the outline\'s original line', async (t) => {
	const s = await startServer(t);
	const stacks = JSON.stringify({
		format: 'java-stacks/1', pid: 9, interval_ms: 100,
		frames: ['android.os.Looper.loop(Looper.java:99)', 'a.a.m(SourceFile:27)', 'a.o.x(SourceFile:1)'],
		stacks: [[2, 1, 0], []],
		threads: { 1: { name: 'main', sys_tid: 9 } },
		samples: Array.from({ length: 61 }, (_, i) => [i * 100_000_000, 1, i < 60 ? 0 : 1]),
	});
	const map = 'made.Out -> a.o:\n    1:1:int outline():0:0 -> x\n# {"id":"com.android.tools.r8.outline"}\nshop.Cart -> a.a:\n'
		+ '    4:4:int shop.Price.sum():21:21 -> m\n    4:4:void pay():30 -> m\n    27:27:void pay():0:0 -> m\n'
		+ '# {"id":"com.android.tools.r8.outlineCallsite","positions":{"1":4}}\n';
	assert.equal((await s.put('/api/v1/builds/b1/retrace', map)).status, 200);
	const trace = await s.trace(stacks, { query: { scenario: 'anr', build_id: 'b1' } });
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	const json = await settled(s, 1);
	assert.deepEqual([json.groups[0].kind, json.groups[0].title, json.groups[0].cause.frames], ['path', 'Time spent in Price.sum', ['shop.Price.sum', 'shop.Cart.pay']]);
});

test('locks that calls waited for add up with those of reports', async (t) => {
	const s = await startServer(t);
	const at = (us, text) => `            main-40    (   40) [000] ...1     1.${String(us).padStart(6, '0')}: tracing_mark_write: ${text}\n`;
	const contended = (line, us) => `# tracer: nop\n#\n${at(100, `B|40|monitor contention with owner w (41) at void a.b.c(a.d)(SourceFile:${line}) waiters=0 blocking from void a.d.e()(SourceFile:3)`)}${at(100 + us, 'E|40')}`;
	for (const [i, us] of [500, 700, 900].entries()) await s.trace(contended(7, us), { query: { build_id: 'b1', version_name: `1.${i % 2}` } });
	await s.trace('"main" prio=5 tid=1 Blocked\n  at a.d.e(SourceFile:3)\n  - waiting to lock <0x01> (a a.b) held by thread 2\n\n"w" prio=5 tid=2 Runnable\n  at a.b.c(SourceFile:7)\n  - locked <0x01> (a a.b)\n', { query: { build_id: 'b1', version_name: '1.0' } });
	const lock = (name, traces) => until(async () => {
		const { json } = await s.get('/api/v1/fleet/locks');
		return json.locks.length === 1 && json.locks[0].name === name && json.locks[0].traces === traces ? json.locks[0] : undefined;
	}, name);
	const raw = await lock('a.b.c', 4);
	assert.deepEqual([raw.waits, raw.timed, raw.total_ns, raw.max_ns, raw.reports, raw.versions, raw.holder], [4, 3, 2_100_000, 900_000, 1, 2, 'w']);
	assert.deepEqual(raw.monitors, ['a.b']);
	await s.put('/api/v1/builds/b1/retrace', 'com.shop.Cart -> a.b:\n    1:9:void total(com.shop.Store):21:29 -> c\ncom.shop.Store -> a.d:\n    void load() -> e\n');
	const named = await lock('com.shop.Cart.total', 4);
	assert.deepEqual([named.total_ns, named.monitors], [2_100_000, ['com.shop.Cart']]);
	assert.equal((await s.get('/api/v1/fleet/locks?source=reports')).json.locks[0].traces, 1);
	assert.equal((await s.get('/api/v1/fleet/locks?source=calls')).json.locks[0].traces, 3);
	assert.equal((await s.get('/api/v1/fleet/locks?q=cart')).json.total, 1);
	assert.equal((await s.get('/api/v1/fleet/locks?version_name=1.1')).json.locks[0].traces, 1);
	const before = JSON.stringify((await s.get('/api/v1/fleet/locks')).json);
	await s.stop();
	tracewell('rollup', '--data', s.data, '--rebuild');
	await s.start();
	assert.equal(JSON.stringify((await s.get('/api/v1/fleet/locks')).json), before);
});

test('reports are related to the traces with times by the same filter, by version', async (t) => {
	const s = await startServer(t);
	const dump = (method, lock) => `"main" prio=5 tid=1 Blocked\n  at com.shop.${method}(X.java:1)\n  - waiting to lock <0x01> (a com.shop.${lock}) held by thread 2\n\n"w" prio=5 tid=2 Runnable\n  at com.shop.${lock}.hold(X.java:2)\n  - locked <0x01> (a com.shop.${lock})\n`;
	const query = (version, i) => ({ app: 'shop', version_name: version, device_id: `phone ${i}`, labels: '{"team":"a"}' });
	for (const [version, traces, reports] of [['1.0', 3, 1], ['2.0', 5, 2], ['3.0', 0, 1]]) {
		for (let i = 0; i < traces; i++)
			assert.equal((await s.post('/api/v1/traces', btrace([[4000, 1, 1_000_000, 9_000_000 + i]]), { query: query(version, i) })).status, 202);
		for (let i = 0; i < reports; i++) assert.equal((await s.post('/api/v1/traces', dump('Cart.total', 'Stock') + '\n'.repeat(i), { query: query(version, i) })).status, 202);
	}
	const counted = async (filter) => (await s.get('/api/v1/anr/groups', { query: filter })).json.traces;
	const all = await until(async () => {
		const { json } = await s.get('/api/v1/anr/groups');
		return json.anrs === 4 && json.pending === 0 && json.traces === 8 ? json : undefined;
	}, 'reports and traces are counted', 60);
	const one = (await s.get(`/api/v1/anr/groups/${all.groups[0].key}`)).json;
	assert.equal(one.traces, 8);
	assert.deepEqual(Object.fromEntries(one.by_version.map((v) => [v.value, [v.count, v.traces]])), { '1.0': [1, 3], '2.0': [2, 5], '3.0': [1, 0] });
	assert.ok(one.by_device.every((d) => d.traces === undefined));
	assert.deepEqual([await counted({ version_name: '2.0' }), await counted({ app: 'other' })], [5, 0]);
	assert.equal(await counted({ label: 'team=a' }), null, 'traces are not counted by this label');
});

test('a late report counts when it was recorded: first and last seen, latest version, and whether a fix failed', async (t) => {
	const s = await startServer(t);
	const DAY = 86400_000;
	const now = Date.now();
	const text = CAUSES.find((c) => c.id === 'ring').make(0);
	const report = async (i, version, ago) => {
		const { status, json } = await s.post('/api/v1/traces', text, { query: { app: 'shop', version_name: version, device: `Phone ${i}`, os: '14', scenario: 'anr', ...(ago > 0 && { started_at: String(now - ago) }) }, headers: { 'Idempotency-Key': `late-${i}` } });
		assert.ok(status <= 202, JSON.stringify(json));
		await settled(s, i + 1);
		return json.id;
	};
	const about = (ms, ago, what) => assert.ok(Math.abs(ms - (now - ago)) < DAY / 4, `${what}: ${new Date(ms).toISOString()}`);
	const group = async () => (await s.get('/api/v1/anr/groups')).json.groups[0];
	await report(0, '8.4.0', DAY);
	const late = await report(1, '8.3.0', 5 * DAY);
	const g = await group();
	about(g.first_ms, 5 * DAY, 'first');
	about(g.last_ms, DAY, 'last');
	assert.equal(g.last_version, '8.4.0', 'of the report that was recorded last, not of the one that came last');
	const bars = g.trend.filter((d) => d.count);
	assert.deepEqual([bars[0].day_ms, bars.at(-1).day_ms], [g.first_ms, g.last_ms].map((ms) => ms - ms % DAY), 'the bars say the same');
	const { exemplars } = (await s.get(`/api/v1/anr/groups/${g.key}`)).json;
	about(exemplars.find((e) => e.trace === late).recorded_ms, 5 * DAY, 'exemplar');
	about((await s.get('/api/v1/inbox')).json.items[0].last_ms, DAY, 'inbox');
	const before = JSON.stringify(g);
	await s.stop();
	tracewell('rollup', '--data', s.data, '--rebuild');
	await s.start();
	await settled(s, 2);
	assert.equal(JSON.stringify(await group()), before, 'counted again');

	const fixed = await s.ask('PATCH', '/api/v1/inbox', { key: s.write, body: JSON.stringify({ items: [{ kind: 'anr', id: g.key }], status: 'fixed' }) });
	assert.equal(fixed.status, 200);
	await report(2, '8.4.0', 2 * DAY);
	assert.equal((await s.get(`/api/v1/anr/groups/${g.key}`)).json.status, 'fixed', 'recorded before the fix');
	await report(3, '8.4.1', 0);
	assert.equal((await s.get(`/api/v1/anr/groups/${g.key}`)).json.status, 'returned');
});
