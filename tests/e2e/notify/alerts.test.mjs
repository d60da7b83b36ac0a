/*
 * alerts.test.mjs - limits of figures: durations, displays, frames, ANR spikes. Each excess is one event by webhook,
 * mail and inbox with the same figure, across looks, kills, swings around the limit and changed rules.
 */
import assert from 'node:assert/strict';

import { mapping as shopMapping, shopTrace } from '../../gen/detect_trace.mjs';
import { readMail, startMail, startReceiver } from '../webhook_receiver.mjs';
import { sideBySide, startServer, until } from '../server.mjs';
import { sendSlower } from '../regressed_fleet.mjs';

const test = sideBySide(2);

const BASE = 'https://traces.example.com';
const ARGS = ['--webhook-private', '127.0.0.1', '--public-url', BASE];
const DAY_MS = 86_400_000;

const ask = (s, method, path, body) => s.ask(method, `/api/v1/${path}`, { key: s.write, body: body && JSON.stringify(body) });
async function add(s, rule) {
	const made = await ask(s, 'POST', 'alerts/rules', { name: 'Cold start', min_traces: 5, ...rule });
	assert.equal(made.status, 201, made.text);
	return made.json;
}
async function look(s) {
	const a = await ask(s, 'POST', 'alerts/evaluate');
	assert.equal(a.status, 200, a.text);
	assert.equal(a.json.partial, false);
	return a.json.figures;
}
const alerts = async (s, state = 'all') => (await s.get('/api/v1/inbox', { query: { state, kind: 'alert' } })).json.items;
const hook = async (s, r, path = '/h') => assert.equal((await s.ask('POST', '/api/v1/webhooks', { key: s.admin, body: JSON.stringify({ url: `${r.url}${path}`, events: ['alert.found', 'alert.returned', 'alert.fixed'] }) })).status, 201);
const reported = (s) => s.sql("select event_id from outbox where event>=8 and hook_id<>'mail' order by delivery_id").split('\n').filter(Boolean);
const p95 = async (s, version) => (await s.get('/api/v1/fleet/scenarios', { query: { by: 'version', scenario: 'slower' } })).json.groups.find((g) => g.key === version).duration_ns.p95;

test('a budget is reported once per version, by webhook, mail and inbox, with one figure', async (t) => {
	const [r, mail] = [await startReceiver(t), await startMail(t)];
	const s = await startServer(t, { args: [...ARGS, '--smtp-url', mail.url, '--mail-from', 'tracewell@example.com'] });
	await hook(s, r);
	assert.equal((await s.ask('PUT', '/api/v1/digest/settings', { key: s.admin, body: JSON.stringify({ every: 'off', mail: ['ann@example.com'] }) })).status, 200);
	await sendSlower(s, 12);
	const limit = (await p95(s, '8.3.0') + await p95(s, '8.3.1')) / 2 / 1e6;
	const rule = await add(s, { kind: 'duration', app: 'shop', scenario: 'slower', percentile: 95, threshold: limit });
	const figures = await look(s);
	assert.deepEqual(figures.map((f) => [f.version, f.traces, f.exceeded]).sort(), [['8.3.0', 12, false], ['8.3.1', 12, true]]);
	assert.equal(figures.find((f) => f.exceeded).value, await p95(s, '8.3.1') / 1e6, 'the figure of the fleet page');

	const got = await r.wait('/h');
	const [item] = await alerts(s, 'new');
	assert.equal(got.json.event, 'alert.found');
	for (const a of [got.json.alert, item.alert]) {
		assert.deepEqual([a.rule, a.version, a.percentile, a.unit, a.traces, a.days], [rule.id, '8.3.1', 95, 'ms', 12, 7]);
		assert.equal(a.value, figures.find((f) => f.exceeded).value);
	}
	assert.deepEqual([item.title, item.app, item.scenario, item.version], ['Cold start', 'shop', 'slower', '8.3.1']);
	const shown = /p95 of the duration in slower of shop, version 8\.3\.1: ([\d.,]+ \S+) \(threshold: [\d.,]+ \S+; 12 traces in 7 days\)\./.exec(got.json.text);
	assert.ok(shown, got.json.text);
	assert.ok(got.json.url.startsWith(`${BASE}/inbox?project=`) && got.json.url.endsWith('&state=all&kind=alert'));
	assert.ok(got.json.text.includes(`${BASE}/traces/${item.alert.trace}`), 'with a trace as evidence');
	const letter = readMail(await until(() => mail.mails[0], 'a mail'));
	assert.match(JSON.stringify(letter), /Above the threshold: Cold start/);
	assert.ok(JSON.stringify(letter).includes(shown[1]), 'the mail has the same figure');

	await look(s);
	await look(s);
	assert.equal(reported(s).length, 1, 'further looks say nothing');

	await t.test('a figure that swings around the limit is not reported again', async () => {
		const value = item.alert.value;
		for (const now of [value * 1.05, value * 0.99, value * 1.05]) {
			await ask(s, 'PATCH', `alerts/rules/${rule.id}`, { threshold: now });
			await look(s);
		}
		assert.equal(reported(s).length, 1, 'a tenth below the limit, and not less, is below');
		await ask(s, 'PATCH', `alerts/rules/${rule.id}`, { threshold: value * 1.2 });
		await look(s);
		assert.equal((await r.wait('/h', 2)).json.event, 'alert.fixed');
		assert.equal((await alerts(s))[0].status, 'fixed');
		await ask(s, 'PATCH', `alerts/rules/${rule.id}`, { threshold: value * 0.9 });
		await look(s);
		assert.equal((await alerts(s))[0].status, 'returned');
		assert.equal(reported(s).length, 2, 'within a day the inbox alone shows it');
		await ask(s, 'PATCH', `alerts/rules/${rule.id}`, { threshold: value * 1.2 });
		await look(s);
		s.sql(`update alert set notified_ms=notified_ms-${DAY_MS}`);
		await ask(s, 'PATCH', `alerts/rules/${rule.id}`, { threshold: value * 0.9 });
		await look(s);
		assert.equal((await r.wait('/h', 3)).json.event, 'alert.returned');
	});

	await t.test('people answer it as they do a regression', async () => {
		const answer = (what) => s.ask('PATCH', '/api/v1/inbox', { key: s.write, body: JSON.stringify({ items: [{ kind: 'alert', id: item.id }], ...what }) });
		assert.equal((await answer({ status: 'acknowledged', owner: 'ann', note: 'known' })).status, 200);
		const [now] = await alerts(s, 'acknowledged');
		assert.deepEqual([now.owner, now.note], ['ann', 'known']);
		assert.equal((await answer({ status: 'fixed' })).status, 200);
		await look(s);
		assert.equal((await alerts(s))[0].status, 'fixed', 'it stays answered while it is above its limit');
		assert.equal((await s.ask('PATCH', '/api/v1/inbox', { key: s.write, body: JSON.stringify({ items: [{ kind: 'alert', id: 'none' }], owner: 'x' }) })).status, 404);
	});

	assert.equal((await ask(s, 'DELETE', `alerts/rules/${rule.id}`)).status, 204);
	assert.deepEqual([await alerts(s), (await s.get(`/api/v1/alerts/rules/${rule.id}`)).status], [[], 404]);
});

test('a rule is tried before it is saved', async (t) => {
	const s = await startServer(t, { args: ARGS });
	await sendSlower(s, 6);
	const attempt = (rule, key = s.read) => s.ask('POST', '/api/v1/alerts/preview', { key, body: JSON.stringify(rule) });
	const p95s = [await p95(s, '8.3.0') / 1e6, await p95(s, '8.3.1') / 1e6];
	const draft = { kind: 'duration', app: 'shop', scenario: 'slower', threshold: (p95s[0] + p95s[1]) / 2, min_traces: 5 };
	const tried = await attempt(draft);
	assert.equal(tried.status, 200, tried.text);
	assert.deepEqual(tried.json.figures.map((f) => [f.rule, f.version, f.value, f.traces, f.exceeded]).sort((a, b) => a[2] - b[2]), [['', '8.3.0', p95s[0], 6, false], ['', '8.3.1', p95s[1], 6, true]]);
	assert.deepEqual((await attempt({ ...draft, min_traces: 7 })).json.figures, [], 'too few traces');
	assert.deepEqual((await attempt({ ...draft, scenario: 'other' })).json.figures, []);
	assert.deepEqual([(await s.get('/api/v1/alerts/rules')).json.rules, await alerts(s)], [[], []]);

	const { id } = await add(s, draft);
	await look(s);
	const changed = async (limit) => (await attempt({ rule: id, threshold: limit })).json.figures.filter((f) => f.exceeded).map((f) => f.version);
	assert.deepEqual([await changed(p95s[1] * 1.05), await changed(p95s[1] * 1.2)], [['8.3.1'], []], 'its alert ends a tenth below the limit');
	assert.equal((await s.get(`/api/v1/alerts/rules/${id}`)).json.threshold, draft.threshold);
	for (const [body, status, words] of [[{ rule: 'none', threshold: 1 }, 404, /alert rule/], [{ rule: 5, threshold: 1 }, 400, /rule is the id/], [{ rule: id, kind: 'duration' }, 400, /add a rule for another figure/], [{ kind: 'duration' }, 400, /above 0/], [{ ...draft, colour: 1 }, 400, /only fields/]]) {
		const a = await attempt(body);
		assert.equal(a.status, status, a.text);
		assert.match(a.json.error.message, words);
	}
	assert.equal((await attempt({ rule: id, threshold: 1 }, s.key('read', 'other'))).status, 404, "another project's rule");
});

test('displays and frames are derived from detector findings', async (t) => {
	const s = await startServer(t, { args: ARGS });
	await s.put('/api/v1/builds/shop/methods', shopMapping);
	await s.trace(shopTrace(), { query: { build_id: 'shop', app: 'shop', version_name: '2', scenario: 'cold' } });
	await add(s, { name: 'TTID', kind: 'initial_display', threshold: 700, min_traces: 1 });
	await add(s, { name: 'TTFD', kind: 'full_display', threshold: 700, min_traces: 1 });
	await add(s, { name: 'Slow', kind: 'slow_frames', threshold: 0.5, min_traces: 1 });
	await add(s, { name: 'Frozen', kind: 'frozen_frames', threshold: 0.5, min_traces: 1 });
	await until(async () => (await look(s)).length === 3 || undefined, 'the figures are known');
	const by = Object.fromEntries((await alerts(s)).map((i) => [i.title, i.alert]));
	assert.deepEqual(Object.keys(by).sort(), ['Slow', 'TTID'], 'no full display is reported, and a third of the frames is frozen');
	assert.ok(Math.abs(by.TTID.value - 739) <= 739 / 64, `739 ms, in the precision of percentiles: ${by.TTID.value}`);
	assert.ok(Math.abs(by.Slow.value - 2 / 3) < 1e-5, `${by.Slow.value}`);
	assert.equal(by.Slow.version, '2');
});

test('a return that was not reported at first is reported later, if it is not over by then', async (t) => {
	const [s, r] = [await startServer(t, { args: ARGS }), await startReceiver(t)];
	await hook(s, r);
	await sendSlower(s, 6);
	const { id } = await add(s, { kind: 'duration', version_name: '8.3.1', threshold: 0.0001 });
	const events = () => r.at('/h').map((g) => g.json.event.replace('alert.', ''));
	const below = async (yes) => {
		await ask(s, 'PATCH', `alerts/rules/${id}`, { threshold: yes ? 1e6 : 0.0001 });
		await look(s);
	};
	const dayLater = async () => {
		s.sql(`update alert set notified_ms=notified_ms-${DAY_MS}`);
		await look(s);
	};
	const answer = async (what) => {
		const [item] = await alerts(s);
		assert.equal((await s.ask('PATCH', '/api/v1/inbox', { key: s.write, body: JSON.stringify({ items: [{ kind: 'alert', id: item.id }], ...what }) })).status, 200);
	};
	const said = async (n, what) => {
		await r.wait('/h', n);
		assert.equal(reported(s).length, n, what);
		assert.equal(events()[n - 1], what);
	};
	await look(s);
	await said(1, 'found');
	await below(true);
	await said(2, 'fixed');
	await below(false);
	await look(s);
	assert.equal(reported(s).length, 2, 'not within a day');
	await dayLater();
	await said(3, 'returned');
	await dayLater();
	assert.equal(reported(s).length, 3, 'and once');

	for (const status of ['acknowledged', 'fixed']) {
		s.sql(`update alert set notified_ms=${Date.now()}`);
		await below(true);
		const n = reported(s).length;
		await below(false);
		await answer({ status });
		await dayLater();
		assert.equal(reported(s).length, n, `${status}: somebody knows`);
		await below(true);
		assert.equal(reported(s).length, n, 'nor is the end of what was not reported');
		await below(false);
		await dayLater();
		assert.equal(reported(s).length, n + 1, 'the next one is reported');
	}

	const n = reported(s).length;
	await answer({ muted_until_ms: Date.now() + DAY_MS });
	await below(true);
	await below(false);
	await dayLater();
	assert.equal(reported(s).length, n, 'muted');
	await answer({ muted_until_ms: 0 });
	await look(s);
	await said(n + 1, 'returned');
});

const ANR = '"main" prio=5 tid=1 Blocked\n  at com.app.Main.draw(Main.kt:5)\n  - waiting to lock <0x01> (a a.T) held by thread 2\n\n"w" prio=5 tid=2 Runnable\n  at com.app.Repo.load(Repo.kt:5)\n  - locked <0x01> (a a.T)\n';
const report = (s, n) => s.trace(`${ANR}\n"x${n}" prio=5 tid=${n + 3} Runnable\n  at com.app.Other.run(Other.kt:${n})\n`, { query: { app: 'shop', version_name: '1' } });

test('a known ANR group that spikes is reported once a spike', async (t) => {
	const [s, r] = [await startServer(t, { args: ARGS }), await startReceiver(t)];
	await hook(s, r);
	const { id } = await add(s, { name: 'Spike', kind: 'anr_spike', threshold: 3, min_traces: 4 });
	for (let n = 0; n < 2; n++) await report(s, n);
	const group = async () => (await s.get('/api/v1/anr/groups')).json.groups[0];
	await until(async () => (await group())?.count === 2 || undefined, 'two reports');
	s.sql(`update anr_trace set recorded_ms=recorded_ms-${3 * DAY_MS}, day=day-3`);
	for (let n = 2; n < 5; n++) await report(s, n);
	await until(async () => s.sql("select count(*) from anr_trace where key<>''") === '5' || undefined, 'three more');
	assert.deepEqual(await look(s), [], 'three are too few to be a spike');
	await report(s, 5);
	await until(async () => s.sql("select count(*) from anr_trace where key<>''") === '6' || undefined, 'a fourth');
	const [figure] = await look(s);
	assert.equal(figure.traces, 4);
	assert.ok(Math.abs(figure.value - 4) < 0.1, `4 reports, and 2 in two days before: ${figure.value}`);
	const got = await r.wait('/h');
	const { key } = await group();
	assert.equal(got.json.alert.anr, key);
	assert.match(got.json.text, /4 ANR reports in 24 hours, 4(\.\d+)? times the mean of earlier days \(threshold: 3 times\)\./);
	assert.ok(got.json.url.startsWith(`${BASE}/anrs/${key}?`));
	await report(s, 6);
	await until(async () => s.sql("select count(*) from anr_trace where key<>''") === '7' || undefined, 'a fifth');
	await look(s);
	assert.equal(reported(s).length, 1);

	await t.test('it ends, and the next spike is reported', async () => {
		await ask(s, 'PATCH', `alerts/rules/${id}`, { min_traces: 100 });
		assert.deepEqual((await look(s)).map((f) => [f.traces, f.exceeded]), [[5, true]], 'the minimum ends nothing');
		await ask(s, 'PATCH', `alerts/rules/${id}`, { min_traces: 4 });
		s.sql(`update anr_trace set recorded_ms=recorded_ms-${3 * DAY_MS}, day=day-3`);
		s.sql(`update alert set notified_ms=notified_ms-${3 * DAY_MS}`);
		assert.deepEqual(await look(s), [], 'no report in 24 hours');
		const ended = (await r.wait('/h', 2)).json;
		assert.equal(ended.event, 'alert.fixed');
		assert.match(ended.text, /0 ANR reports in 24 hours/);
		assert.equal((await alerts(s))[0].status, 'fixed');
		for (let n = 7; n < 14; n++) await report(s, n);
		await until(async () => s.sql("select count(*) from anr_trace where key<>''") === '14' || undefined, 'seven more');
		assert.deepEqual((await look(s)).map((f) => [f.traces, f.exceeded]), [[7, true]]);
		assert.equal((await r.wait('/h', 3)).json.event, 'alert.returned');
	});
});

for (const step of ['alert_figures', 'alert_stored'])
	test(`kill -9 at ${step} reports once`, async (t) => {
		const [s, r] = [await startServer(t, { args: ARGS }), await startReceiver(t)];
		await hook(s, r);
		await sendSlower(s, 6);
		await s.stop();
		s.env = { TRACEWELL_CRASH_AT: step };
		await s.start();
		await add(s, { kind: 'duration', threshold: 0.0001 });
		await ask(s, 'POST', 'alerts/evaluate').catch(() => null);
		assert.equal((await s.ended).signal, 'SIGKILL');
		s.env = {};
		await s.start();
		await look(s);
		await r.wait('/h', 2);
		await look(s);
		assert.deepEqual(r.at('/h').map((g) => [g.json.event, g.json.alert.version]).sort(), [['alert.found', '8.3.0'], ['alert.found', '8.3.1']]);
		assert.equal(reported(s).length, 2);
	});

test('the time of a method is an alert of each version, with the figure of its page', async (t) => {
	const r = await startReceiver(t);
	const s = await startServer(t, { args: ARGS });
	await hook(s, r);
	await sendSlower(s, 12);
	const method = 'com.app.Repo.load';
	const { groups } = (await s.get('/api/v1/fleet/method', { query: { name: method, by: 'version', metrics: 'self' } })).json;
	const of = (version) => groups.find((g) => g.key === version).self;
	const rule = await add(s, { name: 'Load', kind: 'method_self', method, app: 'shop', scenario: 'slower', percentile: 50, threshold: (of('8.3.0').p50 + of('8.3.1').p50) / 2 / 1e6 });
	assert.equal(rule.method, method);
	assert.deepEqual((await look(s)).map((f) => [f.version, f.value, f.traces, f.exceeded]).sort(), ['8.3.0', '8.3.1'].map((v) => [v, of(v).p50 / 1e6, 12, v === '8.3.1']));
	const got = (await r.wait('/h')).json;
	assert.equal(got.alert.method, method);
	assert.match(got.text, /p50 of the self time of com\.app\.Repo\.load in slower of shop, version 8\.3\.1: [\d.]+ ms \(threshold: /);
	const [item] = await alerts(s, 'new');
	assert.deepEqual([item.alert.method, item.alert.trace], [method, of('8.3.1').exemplar]);
	const figures = async (more) => (await ask(s, 'POST', 'alerts/preview', { name: 'x', min_traces: 5, method, ...more })).json.figures;
	const shares = await figures({ kind: 'method_share', threshold: 0.7 });
	const lengths = (await s.get('/api/v1/fleet/scenarios', { query: { by: 'version', scenario: 'slower' } })).json.groups;
	for (const f of shares) {
		const truth = of(f.version).sum / (lengths.find((g) => g.key === f.version).duration_ns.mean * 12);
		assert.ok(Math.abs(f.value / truth - 1) < 0.001 && f.exceeded === truth > 0.7, `${f.version}: ${f.value} for ${truth}`);
	}
	assert.deepEqual(shares.map((f) => f.exceeded).sort(), [false, true]);
	assert.deepEqual(await figures({ kind: 'method_self', method: 'com.app.Nothing.here', threshold: 1 }), []);
});

test('contradictory rules are refused with a message', async (t) => {
	const s = await startServer(t);
	const good = { name: 'a', kind: 'duration', threshold: 800 };
	for (const [more, words] of [[{ name: '' }, /name must be a text/], [{ kind: 'memory' }, /duration, initial_display/], [{ threshold: 0 }, /above 0/], [{ threshold: '800' }, /above 0/], [{ threshold: 1e12 }, /above 0 and below 1000000000/],
		[{ kind: 'slow_frames', threshold: 5 }, /a share above 0/], [{ kind: 'method_self' }, /need a method/], [{ method: 'a.b' }, /other kinds have none/], [{ kind: 'method_share', method: 'x'.repeat(1025), threshold: 0.5 }, /method/], [{ percentile: 100 }, /1 to 99/], [{ percentile: 9.5 }, /1 to 99/], [{ min_traces: 0 }, /1 to 1000000/], [{ days: 91 }, /1 to 90/], [{ mail: 'no' }, /true or false/], [{ colour: 1 }, /only fields/]]) {
		const a = await ask(s, 'POST', 'alerts/rules', { ...good, ...more });
		assert.equal(a.status, 400, a.text);
		assert.match(a.json.error.message, words);
	}
	const { id } = await add(s, good);
	assert.match((await ask(s, 'PATCH', `alerts/rules/${id}`, { kind: 'anr_spike' })).json.error.message, /add a rule for another figure/);
	assert.equal((await ask(s, 'PATCH', `alerts/rules/${id}`, { name: 'b', days: 3 })).json.name, 'b');
	assert.equal((await ask(s, 'PATCH', 'alerts/rules/none', { name: 'b' })).status, 404);
	const other = await add(s, { ...good, name: 'c' });
	for (const same of [await ask(s, 'POST', 'alerts/rules', { ...good, name: 'b' }), await ask(s, 'PATCH', `alerts/rules/${other.id}`, { name: 'b' })]) {
		assert.equal(same.status, 409, same.text);
		assert.match(same.json.error.message, /another alert rule has the name b: choose a different one/);
	}
	assert.equal((await ask(s, 'PATCH', `alerts/rules/${id}`, { name: 'b', days: 4 })).json.days, 4, 'its own name is free');
	for (let i = 2; i < 50; i++) await add(s, { ...good, name: `rule ${i}` });
	const full = await ask(s, 'POST', 'alerts/rules', good);
	assert.deepEqual([full.status, full.json.error.message], [409, 'a project has at most 50 alert rules']);
	assert.equal((await s.ask('POST', '/api/v1/alerts/rules', { key: s.read, body: JSON.stringify(good) })).status, 403);
});
