/*
 * regressions.test.mjs - regressions by version are detected, reported once despite kills, muted and fixed; invalid
 * requests are refused with a message.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { btrace } from '../make.mjs';
import { startReceiver } from '../webhook_receiver.mjs';
import { startServer, until } from '../server.mjs';
import { look as lookAt, sendSlower } from '../regressed_fleet.mjs';

test('a version that is slower', async (t) => {
	const s = await startServer(t);
	const ask = (method, path, body) => s.ask(method, `/api/v1/${path}`, { key: s.write, body: body && JSON.stringify(body) });
	await sendSlower(s);
	const look = () => lookAt(s);
	const list = async (query = '') => (await s.get(`/api/v1/regressions${query}`)).json.regressions;

	await t.test('is not reported with the first thresholds, which require more than a day', async () => {
		const looked = await look();
		assert.deepEqual([looked.series > 0, looked.found, looked.new], [true, 0, 0]);
		assert.deepEqual(await list(), []);
	});

	let found;
	await t.test('is found: the method, the scenario, by how much', async () => {
		const rules = (await ask('PUT', 'regressions/rules', { min_days: 1 })).json;
		assert.deepEqual([rules.min_days, rules.min_traces], [1, 30]);
		assert.deepEqual(await look(), { series: 3, found: 2, new: 2 });
		assert.deepEqual(await look(), { series: 3, found: 2, new: 0 });
		const all = await list();
		assert.deepEqual(all.map((r) => [r.method, r.base, r.head, r.status, r.scenario, r.app]).sort(), [
			['', '8.3.0', '8.3.1', 'open', 'slower', 'shop'], ['com.app.Repo.load', '8.3.0', '8.3.1', 'open', 'slower', 'shop']]);
		found = all.find((r) => r.method);
		assert.ok(found.low <= 0.5 && found.high >= 0.5 && Math.abs(found.change - 0.5) < 0.05, JSON.stringify(found));
		assert.ok(Math.abs(found.after_ns / found.before_ns - 1 - found.change) < 0.01);
		assert.deepEqual([found.traces_before, found.traces_after], [35, 35]);
		for (const id of [found.before_trace, found.after_trace]) {
			const evidence = (await s.get(`/api/v1/traces/${id}`)).json;
			assert.equal(evidence.exempt_reason, 'regression');
		}
		assert.deepEqual((await s.get(`/api/v1/regressions/${found.id}`)).json, found);
	});

	await t.test('its days have values with intervals, for both versions and for all', async () => {
		const trend = (await s.get(`/api/v1/regressions/${found.id}/trend`)).json;
		assert.deepEqual([trend.metric, trend.change_ms, trend.versions_total], ['self', found.day_ms, 2]);
		assert.deepEqual(trend.lines.map((l) => [l.version, l.points.map((p) => p.traces)]), [[null, [70]], ['8.3.0', [35]], ['8.3.1', [35]]]);
		assert.deepEqual(trend.versions.map((v) => [v.version, v.day_ms, v.traces]), [['8.3.0', found.day_ms, 35], ['8.3.1', found.day_ms, 35]]);
		const [, base, head] = trend.lines.map((l) => l.points[0]);
		assert.ok(Math.abs(head.p50.ns / base.p50.ns - 1.5) < 0.05, JSON.stringify(trend));
		for (const p of [base, head]) {
			assert.ok(p.p50.low_ns < p.p50.ns && p.p50.ns < p.p50.high_ns, 'which the median of 35 has');
			assert.deepEqual([p.p95.low_ns, p.p95.high_ns], [null, null], 'which their p95 has not');
		}
		const whole = (await list()).find((r) => !r.method);
		const lengths = (await s.get(`/api/v1/regressions/${whole.id}/trend`)).json;
		assert.deepEqual([lengths.metric, lengths.lines[0].points[0].traces], ['duration', 70]);
		assert.ok(lengths.lines[1].points[0].p50.ns > base.p50.ns);
		assert.equal((await s.get('/api/v1/regressions/01AAAAAAAAAAAAAAAAAAAAAAAA/trend')).status, 404);
		assert.equal((await s.get(`/api/v1/regressions/${found.id}/trend`, { key: s.key('read', 'another') })).status, 404);
	});

	await t.test('traces that arrive late change the figures of their day, and no change is reported again', async () => {
		const at = Date.now() - 3 * 86400000;
		for (const [version, load] of [['8.3.0', 1_000_000], ['8.3.1', 1_500_000]])
			for (let i = 0; i < 35; i++) {
				const sent = await s.post('/api/v1/traces', btrace([[4000, 2, 1_001_000, load + i * 4_000], [4000, 1, 1_000_000, load + 500_000]], { pid: 4000 }),
					{ query: { app: 'shop', version_name: version, build_id: `b${version}`, scenario: 'slower', started_at: String(at) }, headers: { 'Idempotency-Key': `late-${version}-${i}` } });
				assert.equal(sent.status, 202, sent.text);
			}
		await until(async () => (await s.get(`/api/v1/regressions/${found.id}/trend`)).json.lines[0].points.map((p) => p.traces).join() === '70,70', 'counted on their day');
		assert.equal((await look()).new, 0);
		const { history } = (await s.get(`/api/v1/regressions/${found.id}/history`)).json;
		assert.equal(history.filter((h) => h.event === 'regression.found').length, 1);
		assert.equal((await list()).length, 2);
	});

	await t.test('evidence is retained exactly as long as the regression is open', async () => {
		const other = (await s.get('/api/v1/traces?limit=200')).json.traces.find((x) => !x.exempt_reason).id;
		const kept = async (id) => (await s.get(`/api/v1/traces/${id}`)).json.exempt_reason;
		s.sql(`UPDATE trace SET exempt_reason='regression' WHERE trace_id='${other}'; UPDATE regression SET app='gone', before_trace='${other}', last_ms=last_ms-17280000000 WHERE method=''`);
		await look();
		assert.equal(await kept(other), 'regression', 'open, unseen for 200 days');
		const gone = (await list()).find((r) => r.app === 'gone');
		await ask('PATCH', `regressions/${gone.id}`, { status: 'fixed' });
		await look();
		assert.equal(await kept(other), '', 'fixed');
		assert.equal(await kept(gone.after_trace), 'regression', 'which another one needs');
		await ask('PATCH', `regressions/${gone.id}`, { status: 'open' });
		await look();
		assert.equal(await kept(other), 'regression', 'open again');
		s.sql("UPDATE regression SET last_ms=last_ms-34560000000 WHERE app='gone'");
		await look();
		assert.equal((await list()).some((r) => r.app === 'gone'), false);
		assert.equal(await kept(other), '', 'its row is gone');
	});

	await t.test('people own it, mute it and close it', async () => {
		const said = await ask('PATCH', `regressions/${found.id}`, { owner: 'ann', note: 'the\ncache', status: 'acknowledged' });
		assert.deepEqual([said.status, said.json.owner, said.json.note, said.json.status], [200, 'ann', 'the\ncache', 'acknowledged']);
		assert.deepEqual((await list('?owner=ann')).map((r) => r.id), [found.id]);
		await ask('PATCH', `regressions/${found.id}`, { muted_until_ms: Date.now() + 86_400_000 });
		assert.equal((await list()).length, 1);
		assert.equal((await list('?muted=true')).length, 2);
		await ask('PATCH', `regressions/${found.id}`, { muted_until_ms: 0, status: 'fixed', fixed_in: '8.3.2' });
		await look();
		assert.deepEqual((await list('?status=fixed')).map((r) => [r.id, r.fixed_in]), [[found.id, '8.3.2']]);
		assert.equal((await list('?status=all&method=com.app.Repo.load')).length, 1);
	});

	await t.test('invalid queries and states are refused with a message', async () => {
		for (const [query, words] of [['colour=red', /unknown parameter colour/], ['status=gone', /status/], ['muted=perhaps', /muted/]]) {
			const answer = await s.get(`/api/v1/regressions?${query}`);
			assert.equal(answer.status, 400, answer.text);
			assert.match(answer.json.error.message, words);
		}
		for (const [method, path, body, words] of [
			['PUT', 'regressions/rules', { speed: 1 }, /unknown rule speed/], ['PUT', 'regressions/rules', { certainty: 0 }, /certainty is standard errors/],
			['PUT', 'regressions/rules', { window_days: 4, min_days: 3 }, /at least twice/], ['PATCH', `regressions/${found.id}`, { app: 'x' }, /only status, .* can be changed/],
			['PATCH', `regressions/${found.id}`, { status: 'great' }, /status/], ['PATCH', `regressions/${found.id}`, { muted_until_ms: -1 }, /since 1970/], ['PATCH', `regressions/${found.id}`, { muted_until_ms: Number.MAX_SAFE_INTEGER }, /since 1970/]]) {
			const answer = await ask(method, path, body);
			assert.equal(answer.status, 400, answer.text);
			assert.match(answer.json.error.message, words);
		}
		assert.equal((await ask('PATCH', 'regressions/01AAAAAAAAAAAAAAAAAAAAAAAA', { owner: 'x' })).status, 404);
		assert.equal((await s.get(`/api/v1/regressions/${found.id}`, { key: s.key('read', 'other') })).status, 404);
	});
});

test('a method that the version before did not have', async (t) => {
	const s = await startServer(t);
	const PID = 4400, EACH = 35;
	const mapping = (version) => ['# v', '1,1,com.app.Main onCreate ()V', '2,1,com.app.Repo load ()V', ...(version === '2.0' ? ['3,1,com.app.Cache warm ()V'] : []), ''].join('\n');
	for (const version of ['1.9', '2.0']) {
		await s.put(`/api/v1/builds/n${version}/methods`, mapping(version));
		for (let i = 0; i < EACH; i++) {
			const warm = version === '2.0' && i > 1 ? 500_000 + i * 1000 : 0;
			const calls = [[PID, 2, 1_100_000, 1_000_000], ...(warm ? [[PID, 3, 2_200_000, warm]] : []), [PID, 1, 1_000_000, 1_800_000 + i * 1000]];
			assert.ok((await s.post('/api/v1/traces', btrace(calls, { pid: PID }), { query: { app: 'shop', version_name: version, build_id: `n${version}`, scenario: 'open' }, headers: { 'Idempotency-Key': `new-${version}-${i}` } })).status <= 202);
		}
	}
	await until(async () => {
		const { json } = await s.get('/api/v1/fleet/methods?scenario=open');
		return json?.traces === 2 * EACH && json.methods.every((m) => m.resolved) ? true : undefined;
	}, 'all are counted and named', 60);
	await s.ask('PUT', '/api/v1/regressions/rules', { key: s.write, body: '{"min_days":1}' });
	await lookAt(s);
	const list = async () => (await s.get('/api/v1/regressions?status=all')).json.regressions.filter((r) => r.kind === 'new');
	const [r, ...others] = await list();
	assert.deepEqual(others, []);
	assert.deepEqual([r.method, r.base, r.head, r.before_ns, r.status, r.traces_before, r.traces_after, r.before_trace], ['com.app.Cache.warm', '1.9', '2.0', 0, 'open', EACH, EACH, null]);
	assert.ok(Math.abs(r.share - (EACH - 2) / EACH) < 1e-5 && Math.abs(r.after_ns - 518_000) < 15_000 && r.low < r.change && r.change < r.high && Math.abs(r.change - 0.27) < 0.03, JSON.stringify(r));
	assert.equal((await s.get(`/api/v1/traces/${r.after_trace}`)).json.exempt_reason, 'regression');
	const issue = (await s.get(`/api/v1/regressions/${r.id}/issue`)).json;
	assert.match(JSON.stringify(issue), /com\.app\.Cache\.warm in open is new since 2\.0/);
	assert.match(JSON.stringify(issue), /at the median in 94 % of traces/);
	await s.ask('PATCH', `/api/v1/regressions/${r.id}`, { key: s.write, body: JSON.stringify({ status: 'acknowledged', owner: 'ann', muted_until_ms: Date.now() + 60_000_000 }) });
	await lookAt(s);
	assert.deepEqual((await list()).length, 0, 'muted');
	const again = (await s.get('/api/v1/regressions?status=all&muted=true')).json.regressions.filter((x) => x.kind === 'new');
	assert.deepEqual(again.map((x) => [x.id, x.status, x.owner]), [[r.id, 'acknowledged', 'ann']]);
	const trend = (await s.get(`/api/v1/regressions/${r.id}/trend`)).json;
	assert.deepEqual(trend.lines.map((l) => [l.version, l.points.map((p) => [p.of_traces, p.traces])]), [[null, [[2 * EACH, EACH - 2]]], ['1.9', []], ['2.0', [[EACH, EACH - 2]]]]);
});

test('killed at any step of a search, no figure changes and each regression is reported once', async (t) => {
	const [s, r] = [await startServer(t, { args: ['--webhook-private', '127.0.0.1'] }), await startReceiver(t)];
	assert.equal((await s.ask('POST', '/api/v1/webhooks', { key: s.admin, body: JSON.stringify({ url: `${r.url}/h` }) })).status, 201);
	await sendSlower(s, 12);
	await s.ask('PUT', '/api/v1/regressions/rules', { key: s.write, body: '{"min_days":1,"min_traces":5}' });
	const fleet = async () => Promise.all(['methods', 'scenarios?by=version'].map(async (q) => (await s.get(`/api/v1/fleet/${q}`)).text));
	const found = async () => (await s.get('/api/v1/regressions?status=all')).json.regressions;
	const figures = (rows) => rows.map(({ id, first_ms, last_ms, ...row }) => row);
	const rows = () => [s.sql('SELECT count(*) FROM regression'), s.sql('SELECT count(*) FROM regression_history'), s.sql('SELECT count(DISTINCT event_id) FROM outbox')].map(Number);
	await lookAt(s);
	const [counted, expected] = [await fleet(), figures(await found())];
	assert.equal(expected.length, 2);
	for (const [step, stored] of [['regressions_found', 0], ['regressions_stored', 2], ['regressions', 2]])
		await t.test(step, async () => {
			await s.stop();
			s.sql('DELETE FROM outbox; DELETE FROM regression_history; DELETE FROM regression');
			r.got = [];
			s.env = { TRACEWELL_CRASH_AT: step };
			await s.start().catch(() => undefined); // the first search may begin before the server listens
			assert.equal((await s.ended).signal, 'SIGKILL');
			assert.deepEqual(rows(), [stored, stored, stored]);
			s.env = {};
			await s.start();
			await s.ran('regressions', { first: true });
			const after = await found();
			await lookAt(s);
			assert.deepEqual((await found()).map((f) => f.id), after.map((f) => f.id));
			assert.deepEqual([await fleet(), figures(after), figures(await found())], [counted, expected, expected]);
			assert.deepEqual(rows(), [2, 2, 2]);
			await until(() => (s.sql('SELECT count(*) FROM outbox WHERE state=0') === '0' ? true : undefined), 'all are sent');
			assert.deepEqual(r.at('/h').filter((g, i, all) => all.findIndex((o) => o.json.id === g.json.id) === i).map((g) => g.json.regression.id).sort(), after.map((f) => f.id).sort());
		});
});
