/*
 * detectors.test.mjs - rules for methods that should not take long: verified, stored in versions, tried without being
 * stored, and their findings in traces for which these are known, or counted here in another way.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { MAIN, mapping, randomCalls, shopTrace, workerTrace } from '../../gen/detect_trace.mjs';
import { root, startServer, until } from '../server.mjs';

const MS = 1e6;
const json = (x) => JSON.stringify(x);
const keep = (s, body, key = s.write) => s.put('/api/v1/detectors', typeof body === 'string' ? body : json(body), { key });
const RULE = { id: 'mine', kind: 'own', title: 'Mine', methods: ['com.shop'], threshold_ms: 5 };

async function shop(t, args = []) {
	const s = await startServer(t, { args });
	await s.put('/api/v1/builds/shop/methods', mapping);
	const trace = await s.trace(shopTrace(), { query: { build_id: 'shop', app: 'shop' } });
	assert.equal(trace.state, 'ready', json(trace.error));
	return { s, trace };
}

const rule = (f, id) => f.rules.find((r) => r.id === id);
const sums = (f, id) => { const r = rule(f, id); return [r.calls, r.total_ns / MS, r.found, r.found_ns / MS]; };

test('known problems of a trace are found by the built-in rules', async (t) => {
	const { s, trace } = await shop(t);
	const { status, json: f } = await s.get(`/api/v1/traces/${trace.id}/findings`);
	assert.equal(status, 200);

	await t.test('sums: outermost calls of the main thread, without the frames around its loop', () => {
		assert.deepEqual(sums(f, 'database'), [1, 800, 1, 800]);
		assert.deepEqual(sums(f, 'sleep'), [1, 250, 1, 250]);
		assert.deepEqual(sums(f, 'json'), [1, 120, 1, 120]);
		assert.deepEqual(sums(f, 'file'), [2, 13, 0, 0]);
		assert.deepEqual(sums(f, 'reflection'), [0, 0, 0, 0]);
		assert.deepEqual([f.main_tid, f.unnamed, f.partial, f.cut, f.rules_version], [MAIN, 0, false, [], 0]);
		assert.equal(f.findings.length, 3);
	});

	await t.test('a finding leads to its call and to the app\'s call around it', () => {
		const [x] = f.findings.filter((y) => y.rule === 'database');
		assert.deepEqual([x.tid, x.start_ns / MS, x.wall_ns / MS, x.call.name, x.caller.name, x.depth, x.note],
			[MAIN, 1100, 800, 'android.database.sqlite.SQLiteDatabase.query', 'com.shop.Cart.load', 5, null]);
	});

	await t.test('frames: slow and frozen ones, each with its cause', () => {
		assert.deepEqual([f.frames.from, f.frames.total, f.frames.slow, f.frames.frozen, f.frames.messages], ['calls', 3, 2, 1, 1]);
		const [frozen, message, slow] = f.frames.list;
		assert.deepEqual([frozen.what, frozen.frozen, frozen.dur_ns / MS, frozen.cause.rule], ['frame', true, 998, 'database']);
		assert.equal(frozen.cause.message, 'Database on the main thread: 800 ms in android.database.sqlite.SQLiteDatabase.query, called by com.shop.Cart.load.');
		assert.deepEqual([message.what, message.dur_ns / MS, message.cause.message], ['message', 900, '860 ms in com.shop.Cart.heavy.']);
		assert.deepEqual([slow.what, slow.frozen, slow.dur_ns / MS], ['frame', false, 48]);
		assert.equal(slow.cause.message, '48 ms in android.view.Choreographer.doFrame itself, without its callees.');
	});

	await t.test('phases of the start, each with its dominant method', () => {
		assert.deepEqual([f.start.kind, f.start.dur_ns / MS], ['process', 739]);
		assert.deepEqual(f.start.phases.map((p) => [p.id, p.start_ns / MS, p.dur_ns / MS]),
			[['attach', 20, 40], ['providers', 61, 39], ['application', 110, 280], ['create', 420, 180], ['resume', 610, 30], ['frame', 711, 48]]);
		const causes = Object.fromEntries(f.start.phases.map((p) => [p.id, p.cause]));
		assert.equal(causes.application.rule, 'sleep');
		assert.match(causes.create.message, /^JSON on the main thread: 120 ms in org.json.JSONObject.<init>, called by com.shop.Feed.parse\.$/);
	});

	await t.test('at most the requested number is returned: the longest', async () => {
		const body = json({ trace: trace.id, rules: [{ ...RULE, methods: ['java.io.FileInputStream'], threads: 'all', threshold_ms: 1 }] });
		const { json: two } = await s.post('/api/v1/detectors/preview', body, { key: s.read, query: { limit: 2 } });
		assert.deepEqual([rule(two, 'mine').found, rule(two, 'mine').listed], [3, 2]);
		assert.deepEqual(two.findings.map((x) => x.wall_ns / MS).sort((a, b) => b - a), [600, 8]);
	});

	await t.test('findings are computed once, until rules change', async () => {
		const first = await s.get(`/api/v1/traces/${trace.id}/findings`);
		const tag = { 'If-None-Match': first.headers.get('etag') };
		assert.match(tag['If-None-Match'], new RegExp(`^"${(await s.get('/api/v1/session')).json.version}-`), 'another version may answer otherwise');
		assert.equal((await s.get(`/api/v1/traces/${trace.id}/findings`, { headers: tag })).status, 304);
		assert.equal((await keep(s, { rules: [] })).status, 200);
		const { status: now, json: none } = await s.get(`/api/v1/traces/${trace.id}/findings`, { headers: tag });
		assert.deepEqual([now, none.rules, none.findings, none.rules_version], [200, [], [], 1]);
		assert.equal((await s.put('/api/v1/frames', json({ framework: ['com.shop.Cart'] }), { key: s.write })).status, 200);
		await keep(s, { rules: [{ ...RULE, methods: ['android.database.sqlite'] }] });
		assert.equal((await s.get(`/api/v1/traces/${trace.id}/findings`)).json.findings[0].caller, null);
	});
});

/* Counts rule by rule and call by call, by the nesting of calls alone. */
function naive({ list, nameOf }, rules) {
	const main = list.filter((c) => c.tid === MAIN);
	const fits = (r, c) => r.methods.some((m) => nameOf(c.method) === m || nameOf(c.method).startsWith(m + '.'));
	const above = (c) => (c.parent ? [...above(c.parent), c.parent] : []);
	const loops = (c) => nameOf(c.method) === 'android.app.ActivityThread.main';
	const loop = new Map(); // call: when the first loop inside it begins
	for (const c of main) if (loops(c)) for (const a of above(c)) loop.set(a, Math.min(c.start, loop.get(a) ?? Infinity));
	const out = Object.fromEntries(rules.map((r) => [r.id, { calls: 0, total: 0, found: [] }]));
	const state = new Map(); // call: rules that count it, kinds that it tells
	for (const c of main) {
		const mine = { counted: new Set(), reported: new Set() };
		state.set(c, mine);
		if (loops(c)) continue;
		const around = above(c).filter((a) => !((loop.get(a) ?? Infinity) <= c.start)); // a loop ends what is around it
		for (const r of rules) {
			if (!fits(r, c) || around.some((a) => state.get(a).counted.has(r.id) || state.get(a).reported.has(r.kind)) || mine.reported.has(r.kind)) continue;
			mine.counted.add(r.id);
			const reported = c.dur >= r.threshold_ms * MS;
			if (reported) mine.reported.add(r.kind);
			if (loop.has(c)) continue; // it lies around a loop
			out[r.id].calls++;
			out[r.id].total += c.dur;
			if (reported) out[r.id].found.push([c.start, c.dur]);
		}
	}
	return out;
}

test('findings in random calls equal those of plain counting', async (t) => {
	const { s } = await shop(t);
	const rules = [
		{ id: 'r0', kind: 'io', title: 'r0', methods: ['com.shop.Cart', 'java.io.FileInputStream'], threshold_ms: 8 },
		{ id: 'r1', kind: 'io', title: 'r1', methods: ['com.shop.Cart.load', 'org.json'], threshold_ms: 1 },
		{ id: 'r2', kind: 'database', title: 'r2', methods: ['android.database.sqlite', 'com.shop.Feed'], threshold_ms: 20 },
		{ id: 'r3', kind: 'lock', title: 'r3', methods: ['com.shop'], threshold_ms: 0 },
	];
	for (let seed = 1; seed <= 6; seed++) {
		const calls = randomCalls(seed * 7919, 300 * seed);
		const trace = await s.trace(calls.body, { query: { build_id: 'shop' } });
		const { json: f, status, text } = await s.post('/api/v1/detectors/preview', json({ trace: trace.id, rules }), { key: s.read, query: { limit: 500 } });
		assert.equal(status, 200, text);
		const want = naive(calls, rules);
		for (const r of rules) {
			const got = f.findings.filter((x) => x.rule === r.id).map((x) => [x.start_ns, x.wall_ns]);
			assert.deepEqual([rule(f, r.id).calls, rule(f, r.id).total_ns], [want[r.id].calls, want[r.id].total], `seed ${seed}, ${r.id}`);
			assert.deepEqual(got.sort((a, b) => a[0] - b[0]), want[r.id].found.sort((a, b) => a[0] - b[0]), `seed ${seed}, ${r.id}`);
		}
		assert.ok(f.findings.length > 20, 'a test that can fail');
	}
});

test('rules are validated before they are stored, with messages that name rule and member', async (t) => {
	const s = await startServer(t);
	const put = (body) => keep(s, body);
	const bad = [
		[{}, /rules must be a list of at most 64 rules/],
		[{ rules: Array.from({ length: 65 }, () => RULE) }, /at most 64/],
		[{ rules: [7] }, /^rule 1: it must be an object/],
		[{ rules: [RULE, { ...RULE, id: 'b', kind: 'gremlins' }] }, /^rule 2 \(b\): kind must be one of json, io, database.* or own$/],
		[{ rules: [{ ...RULE, id: 'No Spaces' }] }, /id must be 1 to 40 characters of a to z/],
		[{ rules: [{ ...RULE, id: undefined }] }, /^rule 1: id must be /],
		[{ rules: [{ ...RULE, title: '' }] }, /\(mine\): title must be /],
		[{ rules: [{ ...RULE, title: 'a\nb' }] }, /\(mine\): title must be .*control/],
		[{ rules: [{ ...RULE, methods: [] }] }, /methods: set methods or notes/],
		[{ rules: [{ ...RULE, methods: [''] }] }, /methods: .*1 to 200 bytes/],
		[{ rules: [{ ...RULE, methods: [7] }] }, /each of methods must be a text/],
		[{ rules: [{ ...RULE, methods: ['/(/'] }] }, /methods: \/\(\/: not a regular expression/],
		[{ rules: [{ ...RULE, methods: Array.from({ length: 41 }, () => '/a/') }] }, /at most 40 \/expressions\//],
		[{ rules: [{ ...RULE, notes: ['gremlin'] }] }, /each of notes must be a kind of note/],
		[{ rules: [{ ...RULE, threshold_ms: -1 }] }, /threshold_ms must be a number of milliseconds from 0 to 600000/],
		[{ rules: [{ ...RULE, threshold_ms: '5' }] }, /threshold_ms must be a number/],
		[{ rules: [{ ...RULE, severity: 'loud' }] }, /severity must be info, warning or error/],
		[{ rules: [{ ...RULE, threads: '' }] }, /threads must be main, others, all/],
		[{ rules: [{ ...RULE, enabled: 1 }] }, /enabled must be true or false/],
		[{ rules: [{ ...RULE, what: 1 }] }, /rule 1 \(mine\): unknown member what; the members are id, kind/],
		[{ rules: [RULE, RULE] }, /^rule 2: id: rule 1 has the same id, mine/],
		[{ rules: [], frames: { slow_ms: 0 } }, /frames: slow_ms must be a number of milliseconds/],
		[{ rules: [], frames: { slow_ms: 800 } }, /slow_ms must not exceed frozen_ms/],
		[{ rules: [], frames: { fast_ms: 8 } }, /unknown member fast_ms/],
		[{ rules: [], frames: [] }, /frames: it must be an object/],
		[{ rules: [], version: -1 }, /version must be the number/],
	];
	for (const [body, why] of bad) {
		const r = await put(body);
		assert.equal(r.status, 400, json(body));
		assert.match(r.json.error.message, why);
	}
	assert.equal((await put('{"rules":')).status, 400);
	assert.equal((await put({ rules: [{ ...RULE, message: 'x'.repeat(70000) }] })).status, 413);
	assert.deepEqual((await s.get('/api/v1/detectors')).json.versions, []);
});

test('versions: the last holds, earlier ones are read and brought back', async (t) => {
	const s = await startServer(t);
	const first = (await s.get('/api/v1/detectors')).json;
	assert.deepEqual([first.version, first.versions, first.rules.length > 10], [0, [], true]);
	assert.deepEqual([first.rules, first.frames], [first.defaults.rules, first.defaults.frames]);
	assert.equal((await keep(s, { ...first, version: 0 })).status, 200, 'a response can be sent back as a request');
	assert.equal((await keep(s, { version: 1, rules: [RULE], frames: { slow_ms: 32 } })).status, 200);
	const late = await keep(s, { version: 1, rules: [] });
	assert.deepEqual([late.status, /current version is 2, not 1/.test(late.json.error.message)], [409, true]);
	const { json: now } = await s.get('/api/v1/detectors');
	assert.deepEqual([now.version, now.rules, now.frames, now.versions.map((v) => v.version)], [2, [RULE], { slow_ms: 32 }, [2, 1]]);
	const { json: old } = await s.get('/api/v1/detectors?version=1');
	assert.deepEqual([old.version, old.rules], [1, first.rules]);
	assert.equal((await keep(s, { version: 2, rules: old.rules, frames: old.frames })).json.version, 3);
	assert.equal((await s.get('/api/v1/detectors?version=9')).status, 404);
	const { entries } = (await s.get('/api/v1/audit?action=setting', { key: s.admin })).json;
	assert.deepEqual(entries.filter((e) => e.target === 'detectors').map((e) => e.facts.version), ['3', '2', '1']);
	const tag = { 'If-None-Match': (await s.get('/api/v1/detectors')).headers.get('etag') };
	assert.equal((await s.get('/api/v1/detectors', { headers: tag })).status, 304);
});

test('a preview changes nothing, and a trace that cannot be scanned is reported', async (t) => {
	const { s, trace } = await shop(t, ['--retention-every', '1']);
	const attempt = (body) => s.post('/api/v1/detectors/preview', json(body), { key: s.read });
	const before = (await s.get(`/api/v1/traces/${trace.id}/findings`)).json;
	const tried = await attempt({ trace: trace.id, rules: [RULE], frames: { slow_ms: 1, frozen_ms: 40 } });
	assert.deepEqual([tried.status, tried.json.rules_version, tried.json.frames.frozen], [200, null, 2]);
	assert.deepEqual((await s.get(`/api/v1/traces/${trace.id}/findings`)).json, before);
	assert.equal((await s.get('/api/v1/detectors')).json.version, 0);

	const refused = async (body, status, why) => {
		const r = await attempt(body);
		assert.equal(r.status, status, r.text);
		assert.match(r.json.error.message, why);
	};
	await refused({ rules: [RULE] }, 400, /trace must be the id/);
	await refused({ rules: [{ ...RULE, kind: 'x' }], trace: trace.id }, 400, /rule 1 \(mine\): kind/);
	await refused({ rules: [RULE], trace: 'short' }, 400, /trace must be the id/);
	await refused({ rules: [RULE], trace: '0'.repeat(26) }, 404, /./);

	await t.test('an archived trace is decoded again and reported', async () => {
		s.sql('UPDATE trace SET ready_ms=ready_ms-864000000');
		const state = async () => (await s.get(`/api/v1/traces/${trace.id}`)).json.state;
		await s.ask('PUT', '/api/v1/retention', { key: s.admin, body: json({ decoded_max_age_days: 7 }) });
		await until(async () => ((await state()) === 'archived' ? true : undefined), 'archived');
		await s.ask('PUT', '/api/v1/retention', { key: s.admin, body: json({}) });
		await refused({ rules: [RULE], trace: trace.id }, 409, /only the upload of this trace is stored; it is being decoded again/);
		await until(async () => ((await state()) === 'ready' ? true : undefined), 'ready again');
		assert.deepEqual((await s.get(`/api/v1/traces/${trace.id}/findings`)).json.findings, before.findings);
	});

	await t.test('an expression that backtracks too much is skipped, and its rule is marked', async () => {
		const body = { trace: trace.id, rules: [{ ...RULE, methods: ['/^([a-z.]|[a-z.]+)+[0-9]$/', 'com.shop.Cart.heavy'] }] };
		const { json: f, status } = await attempt(body);
		assert.equal(status, 200);
		assert.match(rule(f, 'mine').problem, /too costly for names like/);
		assert.equal(rule(f, 'mine').found, 1, 'its other patterns hold');
	});

	await t.test('another project\'s trace is not there', async () => {
		const other = s.key('write', 'other');
		const r = await s.post('/api/v1/detectors/preview', json({ trace: trace.id, rules: [RULE] }), { key: other });
		assert.equal(r.status, 404);
		assert.equal((await keep(s, { rules: [] }, other)).status, 200);
		assert.equal((await s.get('/api/v1/detectors')).json.version, 0);
	});

	await t.test('a trace without its main thread', async () => {
		const none = await s.trace(workerTrace(), { query: { build_id: 'shop' } });
		const { json: f } = await s.get(`/api/v1/traces/${none.id}/findings`);
		assert.deepEqual([f.main_tid, f.findings, f.frames.from, f.start], [null, [], null, null]);
		const all = (await attempt({ trace: none.id, rules: [{ ...RULE, methods: ['java.io'], threads: 'all' }] })).json;
		assert.deepEqual([rule(all, 'mine').found, all.findings[0].caller.name], [1, 'com.shop.Worker.run']);
	});

	await t.test('a trace without names is marked', async () => {
		const nameless = await s.trace(shopTrace(), { query: { build_id: 'unknown' } });
		const { json: f } = await s.get(`/api/v1/traces/${nameless.id}/findings`);
		assert.deepEqual([f.unnamed, f.methods, f.findings], [f.methods, f.methods, []]);
	});
});

test('a trace that failed to decode is not scanned, and is marked', async (t) => {
	const s = await startServer(t, { env: { TRACEWELL_WORKER_FAULT: 'crash' }, args: ['--worker-attempts', '1'] });
	const { id, state } = await s.trace(shopTrace());
	assert.equal(state, 'failed');
	for (const r of [await s.get(`/api/v1/traces/${id}/findings`), await s.post('/api/v1/detectors/preview', json({ trace: id, rules: [RULE] }), { key: s.read })]) {
		assert.equal(r.status, 409, r.text);
		assert.match(r.json.error.message, /could not be decoded/);
	}
});

test('a response that reached its deadline is marked and not cached', async (t) => {
	const s = await startServer(t, { args: ['--query-deadline', '1'] });
	await s.put('/api/v1/builds/shop/methods', mapping);
	const trace = await s.trace(randomCalls(7, 60000).body, { query: { build_id: 'shop' } });
	const costly = Array.from({ length: 60 }, (_, i) => ({ ...RULE, id: `r${i}`, methods: Array.from({ length: 6 }, (__, k) => `*${'a'.repeat(100)}${i}b${k}`) }));
	assert.equal((await keep(s, { rules: costly })).status, 200);
	const { status, headers, json: f, text } = await s.get(`/api/v1/traces/${trace.id}/findings`);
	assert.equal(status, 200, text);
	assert.deepEqual([f.partial, f.cut, headers.get('etag'), headers.get('cache-control')], [true, ['time'], null, 'no-store']);
});

test('whatever a format tells is looked through: calls, samples, sections and notes', async (t) => {
	const s = await startServer(t);
	const golden = path.join(root, 'tests/golden');
	const inputs = fs.readdirSync(golden).map((f) => path.join(golden, f, 'realistic/input')).filter((f) => fs.existsSync(f));
	const all = (await s.get('/api/v1/detectors')).json.rules.map((r) => ({ ...r, threads: 'all', threshold_ms: 0 }));
	let found = 0;
	assert.ok(inputs.length > 10);
	for (const input of inputs) {
		const sent = await s.trace(fs.readFileSync(input), {}).catch(() => null);
		if (sent?.state !== 'ready') continue; // of formats that want more than one file
		const { status, json: f, text } = await s.post('/api/v1/detectors/preview', json({ trace: sent.id, rules: all }), { key: s.read });
		assert.equal(status, 200, `${input}: ${text}`);
		assert.equal(f.partial, false, input);
		for (const r of f.rules) {
			assert.equal(f.findings.filter((x) => x.rule === r.id).length, r.listed, input);
			assert.ok(r.listed <= r.found && r.found <= r.calls && r.found_ns <= r.total_ns && r.max_ns <= r.total_ns, `${input}: ${json(r)}`);
		}
		for (const x of f.findings) assert.ok(x.start_ns + x.wall_ns >= sent.start_ns && (x.call || x.note), `${input}: ${json(x)}`);
		found += f.findings.length;
	}
	assert.ok(found > 10, `${found} findings`);
});
