/*
 * webhooks.test.mjs - events are sent to the team once and signed, also across kill -9; receivers that hang, refuse,
 * redirect, close or never stop sending are reported and block no other delivery.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { isSigned, startReceiver } from '../webhook_receiver.mjs';
import { FAKETIME, atEnd, sanitized, sideBySide, startServer, until } from '../server.mjs';
import { findSlower } from '../regressed_fleet.mjs';

const test = sideBySide(4);

const ARGS = ['--webhook-private', '127.0.0.0/8', '--public-url', 'https://traces.example.com'];
const json = (o) => JSON.stringify(o);

const asker = (s) => (method, target, body) => s.ask(method, `/api/v1/webhooks${target}`, { key: s.admin, body: body && json(body) });

async function hook(s, url, more = {}) {
	const made = await asker(s)('POST', '', { url, ...more });
	assert.equal(made.status, 201, made.text);
	return made.json;
}

/** The newest delivery of a hook, once `is` holds. */
const delivery = (s, id, is, seconds = 40) => until(async () => {
	const { json: log } = await asker(s)('GET', `/${id}/deliveries`);
	return log.deliveries.find(is);
}, 'a delivery', seconds);

const test1 = async (s, id) => (await asker(s)('POST', `/${id}/test`)).json.delivery;

const db = (s, sql) => s.sql(sql);
/** What only time would bring: deliveries are due now. */
const DAY_MS = 86_400_000;
const makeDue = (s) => db(s, 'update webhook set hold_ms=0; update outbox set due_ms=1 where state=0');

test('a regression is sent: signed, once, in each receiver\'s form', async (t) => {
	const [s, r] = [await startServer(t, { args: ARGS }), await startReceiver(t)];
	const plain = await hook(s, `${r.url}/plain`, { name: 'ours' });
	for (const kind of ['slack', 'teams', 'matrix']) await hook(s, `${r.url}/${kind}`, { kind, events: ['regression.found'] });
	await hook(s, `${r.url}/other`, { events: ['anr.new'] });
	assert.match(plain.secret, /^twh_[\w-]{43}$/);
	const found = await findSlower(s, 12);
	await r.wait('/plain', 2);
	const got = r.at('/plain').find((g) => g.json.regression.method);
	assert.ok(isSigned(got, plain.secret));
	assert.ok(!isSigned(got, `${plain.secret}x`));
	assert.deepEqual([got.json.event, got.headers['tracewell-event'], got.json.id, got.json.project.name], ['regression.found', 'regression.found', got.headers['tracewell-event-id'], 'test']);
	assert.equal(got.json.regression.id, found.id);
	assert.match(got.json.text, /^Slower: com\.app\.Repo\.load in slower of shop, \+\d+ % in 8\.3\.1 against 8\.3\.0: /);
	assert.equal(new URL(got.json.url).searchParams.get('open'), found.id);
	for (const kind of ['slack', 'teams', 'matrix']) await r.wait(`/${kind}`, 2);
	const of = (kind) => r.at(`/${kind}`).map((g) => g.json).find((j) => json(j).includes('Repo.load'));
	assert.match(of('slack').text, /^Slower: `com\.app\.Repo\.load` in `slower`.*<https:\/\/traces\.example\.com\/regressions\?.*\|Look>$/s);
	assert.match(of('teams').attachments[0].content.body[0].text, /: com\.app\.Repo\.load in slower/);
	assert.match(of('matrix').html, /<code>com\.app\.Repo\.load<\/code>/);
	await s.ask('POST', '/api/v1/regressions/detect', { key: s.write });

	await t.test('changes by people and later versions follow, and are in the history', async () => {
		for (const status of ['acknowledged', 'fixed', 'open']) await s.ask('PATCH', `/api/v1/regressions/${found.id}`, { key: s.write, body: json({ status, owner: 'ann' }) });
		await s.ask('PATCH', `/api/v1/regressions/${found.id}`, { key: s.write, body: json({ note: 'no news' }) });
		await r.wait('/plain', 5);
		assert.deepEqual(r.at('/plain').slice(2).map((g) => [g.json.event, g.json.regression.status]), [['regression.status', 'acknowledged'], ['regression.fixed', 'fixed'], ['regression.status', 'open']]);
		const { history } = (await s.get(`/api/v1/regressions/${found.id}/history`)).json;
		assert.deepEqual(history.map((h) => [h.n, h.event, h.status]), [[4, 'regression.status', 'open'], [3, 'regression.fixed', 'fixed'], [2, 'regression.status', 'acknowledged'], [1, 'regression.found', 'open']]);
		assert.equal(history[3].author, 'tracewell');
		assert.equal(new Set(r.at('/plain').map((g) => g.json.id)).size, 5, 'each event once');
	});
	await t.test('a delivery is resent under the same id', async () => {
		const { deliveries } = (await asker(s)('GET', `/${plain.id}/deliveries`)).json;
		assert.deepEqual([deliveries.length, deliveries[0].state, deliveries[0].log[0].http, deliveries[0].log[0].error], [5, 'delivered', 204, '']);
		const whole = (await asker(s)('GET', `/${plain.id}/deliveries/${deliveries[0].id}`)).json;
		assert.equal(json(JSON.parse(whole.body)), json(r.at('/plain')[4].json));
		assert.deepEqual([whole.body_length, whole.log], [r.at('/plain')[4].text.length, deliveries[0].log]);
		for (const d of deliveries) assert.ok(d.body.length <= 2048 && d.body_length >= d.body.length, `${d.body.length} of ${d.body_length}`);
		assert.equal(deliveries[0].body, whole.body.slice(0, 2048), 'a list has the first of it');
		for (const id of ['999999', 'x', '-1']) assert.equal((await asker(s)('GET', `/${plain.id}/deliveries/${id}`)).status, 404);
		assert.equal((await asker(s)('POST', `/${plain.id}/deliveries/${deliveries[0].id}`)).status, 202);
		const again = await r.wait('/plain', 6);
		assert.equal(again.json.id, deliveries[0].event_id);
		assert.equal((await asker(s)('POST', `/${plain.id}/deliveries/999999`)).status, 404);
	});
	assert.equal(r.at('/other').length, 0);
	assert.ok(!s.log.includes(plain.secret) && !json((await s.get('/api/v1/audit', { key: s.admin })).json).includes(plain.secret));
	const listed = await asker(s)('GET', '');
	assert.ok(!listed.text.includes('twh_'), 'a secret is shown once');
});

test('misbehaving receivers are reported and block no other delivery', async (t) => {
	const [s, r] = [await startServer(t, { args: ARGS }), await startReceiver(t)];
	const cases = [['hang', /no response within 15 seconds/, 0], ['busy', /it returned 500/, 500], ['redirect', /returned 302, a redirect/, 302],
		['away', /closed without a response/, 0], ['cut', /closed during the response/, 200], ['later', /returned 429/, 429]];
	const hooks = {};
	for (const [manner] of cases) {
		r.manner[`/${manner}`] = manner;
		hooks[manner] = await hook(s, `${r.url}/${manner}`);
	}
	const fine = await hook(s, `${r.url}/fine`);
	r.manner['/endless'] = 'endless';
	const endless = await hook(s, `${r.url}/endless`);
	for (const h of [...Object.values(hooks), endless, fine]) await test1(s, h.id);
	/* a hanging delivery blocks only its own webhook; on a busy machine its 15 seconds may end before another is sent */
	let n = 1;
	await until(async () => {
		await r.wait('/fine', n);
		const hanging = await delivery(s, hooks.hang.id, () => true);
		if (!hanging.log.length) return true;
		await test1(s, hooks.hang.id);
		await r.wait('/hang', ++n);
		await test1(s, fine.id);
	}, 'a delivery while another hangs');
	assert.equal((await delivery(s, endless.id, (d) => d.log.length)).state, 'delivered', 'its word was received, the rest is not read');
	for (const [manner, words, http] of cases) {
		const d = await delivery(s, hooks[manner].id, (x) => x.log.length);
		assert.match(d.log[0].error, words);
		assert.deepEqual([d.state, d.log.length, d.log[0].http, r.at(`/${manner}`).length], ['given_up', 1, http, manner === 'hang' ? n : 1], manner);
	}
});

test('failed deliveries are retried with growing delays; all arrive when the receiver is back', async (t) => {
	const [s, r] = [await startServer(t, { args: ARGS }), await startReceiver(t)];
	const h = await hook(s, `${r.url}/h`);
	r.manner['/h'] = 'busy';
	await findSlower(s, 12);
	const d = await delivery(s, h.id, (x) => x.attempts === 1);
	const wait = d.next_ms - d.log[0].at_ms - d.log[0].took_ms;
	assert.ok(d.state === 'waiting' && wait >= 45_000 && wait <= 75_000, `${wait} ms`);
	r.manner['/h'] = 'later';
	makeDue(s);
	const asked = await delivery(s, h.id, (x) => x.log.some((l) => l.http === 429));
	assert.ok(asked.next_ms - asked.log.at(-1).at_ms >= 7_199_000, 'Retry-After is honoured');
	const listed = (await asker(s)('GET', `/${h.id}`)).json;
	assert.ok(listed.consecutive_failures >= 2 && listed.failing_ms > 0 && listed.waiting === 2, json(listed));
	r.manner['/h'] = 'fine';
	makeDue(s);
	await until(async () => ((await asker(s)('GET', `/${h.id}`)).json.waiting === 0 ? true : undefined), 'nothing waits', 20);
	assert.equal((await asker(s)('GET', `/${h.id}`)).json.failing_ms, 0);

	await t.test('an unreachable receiver delays all its deliveries; a single refused one delays only itself', async () => {
		const { regressions } = (await s.get('/api/v1/regressions')).json;
		const say = (status) => s.ask('PATCH', `/api/v1/regressions/${regressions[0].id}`, { key: s.write, body: json({ status }) });
		r.manner['/h'] = 'wrong';
		await say('acknowledged');
		const refused = await delivery(s, h.id, (x) => x.log.some((l) => l.http === 400));
		r.manner['/h'] = 'fine';
		await say('open');
		await delivery(s, h.id, (x) => x.id > refused.id && x.state === 'delivered');
		await test1(s, h.id);
		const before = r.at('/h').length;
		await delivery(s, h.id, (x) => x.event === 'test' && x.state === 'delivered');
		const still = await delivery(s, h.id, (x) => x.id === refused.id);
		assert.deepEqual([still.state, still.attempts, still.next_ms], ['waiting', 1, refused.next_ms], `${before}`);
		makeDue(s);
		await delivery(s, h.id, (x) => x.id === refused.id && x.state === 'delivered');
	});
	await t.test('a receiver that returns 410 is paused and marked; a person resumes it', async () => {
		r.manner['/h'] = 'gone';
		const { regressions } = (await s.get('/api/v1/regressions')).json;
		await s.ask('PATCH', `/api/v1/regressions/${regressions[0].id}`, { key: s.write, body: json({ status: 'acknowledged' }) });
		const paused = await until(async () => {
			const now = (await asker(s)('GET', `/${h.id}`)).json;
			return now.paused_ms ? now : undefined;
		}, 'it is paused');
		assert.match(paused.paused_reason, /returned 410/);
		assert.equal((await s.get('/api/v1/audit', { key: s.admin, query: { action: 'webhook.pause' } })).json.entries[0].target, h.id);
		const log = (await asker(s)('GET', `/${h.id}/deliveries`)).json.deliveries;
		const again = await asker(s)('POST', `/${h.id}/deliveries/${log[0].id}`);
		assert.deepEqual([again.status, again.json.error.message], [409, 'this webhook is paused: resume it first']);
		const tested = log.find((d) => d.event === 'test');
		assert.equal((await asker(s)('POST', `/${h.id}/deliveries/${tested.id}`)).status, 202, 'a test goes to it all the same');
		assert.equal((await delivery(s, h.id, (x) => x.id === tested.id && x.attempts === 2)).state, 'given_up', 'once');
		r.manner['/h'] = 'fine';
		const before = r.at('/h').length;
		await asker(s)('PATCH', `/${h.id}`, { paused: false });
		await r.wait('/h', before + 1);
	});
});

/* The environment of a server whose clock is off by what the file says. */
function movableClock(t) {
	const clock = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'tw-clock-')), 'offset');
	atEnd(t, () => fs.rmSync(path.dirname(clock), { recursive: true }));
	fs.writeFileSync(clock, '+0\n');
	return { clock, env: { LD_PRELOAD: FAKETIME, FAKETIME_TIMESTAMP_FILE: clock, FAKETIME_NO_CACHE: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1' } };
}
const noClock = (sanitized() && 'no library with a sanitizer') || (!FAKETIME && 'no libfaketime (Debian: faketime)');

test('after a forward clock jump, waiting deliveries are not given up and new ones are not postponed', { skip: noClock }, async (t) => {
	const isNear = (s, column, table) => {
		const ms = Number(db(s, `select max(${column}) from ${table}`));
		assert.ok(Math.abs(ms - Date.now()) < DAY_MS, `${column}: ${ms}`);
	};
	const { clock, env } = movableClock(t);
	const [s, r] = [await startServer(t, { args: ARGS, env }), await startReceiver(t)];
	const h = await hook(s, `${r.url}/h`);
	r.manner['/h'] = 'busy';
	const found = await findSlower(s, 12);
	await delivery(s, h.id, (x) => x.attempts === 1);
	const logged = s.log.length;
	fs.writeFileSync(clock, '+500d\n');
	assert.equal((await s.ask('PATCH', `/api/v1/regressions/${found.id}`, { key: s.write, body: json({ status: 'acknowledged' }) })).status, 200);
	await until(() => (Number(db(s, 'select count(*) from outbox')) > 2 ? true : undefined), 'another event waits');
	assert.ok(Number(db(s, 'select max(at_ms) from audit')) > Date.now() + 499 * DAY_MS, 'the clock jumped');
	for (const of of ['due_ms', 'until_ms-3*86400000', 'created_ms']) isNear(s, of, 'outbox');
	const states = () => db(s, 'select distinct state from outbox');
	makeDue(s);
	await until(() => (s.log.indexOf('event=delivery_failed', logged) > 0 ? true : undefined), 'one is tried');
	assert.equal(states(), '0', 'all wait');
	isNear(s, 'hold_ms', 'webhook');
	r.manner['/h'] = 'fine';
	makeDue(s);
	await until(() => (states() === '1' ? true : undefined), 'all are delivered');
});

test('after the clock was set back, waiting deliveries are sent, also by a server started then', { skip: noClock }, async (t) => {
	const { clock, env } = movableClock(t);
	const [s, r] = [await startServer(t, { args: [...ARGS, '--retention-every', '1'], env }), await startReceiver(t)];
	const h = await hook(s, `${r.url}/h`);
	r.manner['/h'] = 'busy';
	const found = await findSlower(s, 12);
	await delivery(s, h.id, (x) => x.attempts === 1);
	r.manner['/h'] = 'fine';
	const refused = r.at('/h').length; // one or both of the two events were tried
	const allDelivered = () => until(() => (Number(db(s, 'select count(*) from outbox where state=0')) === 0 ? true : undefined), 'all are delivered');
	fs.writeFileSync(clock, '-10d\n');
	await allDelivered();
	const accepted = r.at('/h').slice(refused).map((g) => g.json.id);
	assert.deepEqual(accepted, [...new Set(accepted)], 'each once');
	const sent = r.at('/h').length;
	r.manner['/h'] = 'busy';
	assert.equal((await s.ask('PATCH', `/api/v1/regressions/${found.id}`, { key: s.write, body: json({ status: 'acknowledged' }) })).status, 200);
	await until(() => (r.at('/h').length > sent ? true : undefined), 'another is tried');
	await s.stop();
	r.manner['/h'] = 'fine';
	fs.writeFileSync(clock, '-20d\n');
	await s.start();
	await allDelivered();
});

test('kill -9 between the change and its delivery loses no event and repeats none', async (t) => {
	const r = await startReceiver(t);
	const s = await startServer(t, { args: ARGS, env: { TRACEWELL_CRASH_AT: 'delivery_begun' } });
	const h = await hook(s, `${r.url}/h`);
	await findSlower(s, 12).catch(() => undefined); // the server dies somewhere in it
	assert.equal((await s.ended).signal, 'SIGKILL');
	assert.equal(r.got.filter((g) => g.json.event).length <= 1, true);
	s.env = {};
	await s.start();
	await r.wait('/h', 2);
	await until(async () => ((await asker(s)('GET', `/${h.id}`)).json.waiting === 0 ? true : undefined), 'all are sent');
	const { deliveries } = (await asker(s)('GET', `/${h.id}/deliveries`)).json;
	assert.deepEqual(deliveries.map((d) => d.state), ['delivered', 'delivered']);
	assert.equal(new Set(r.at('/h').map((g) => g.json.id)).size, 2);
});

test('kill -9 between the response and its row resends under the same id', async (t) => {
	const r = await startReceiver(t);
	const s = await startServer(t, { args: ARGS, env: { TRACEWELL_CRASH_AT: 'delivery_answered' } });
	const h = await hook(s, `${r.url}/h`);
	await asker(s)('POST', `/${h.id}/test`).catch(() => undefined);
	assert.equal((await s.ended).signal, 'SIGKILL');
	assert.equal(r.at('/h').length, 1);
	s.env = {};
	await s.start();
	const [first, second] = [await r.wait('/h', 1), await r.wait('/h', 2)];
	assert.equal(first.headers['tracewell-event-id'], second.headers['tracewell-event-id']);
	assert.equal((await delivery(s, h.id, (d) => d.state === 'delivered')).event_id, first.json.id);
});

test('a delivery whose result cannot be stored is not resent, and nothing else is sent', async (t) => {
	const [s, r] = [await startServer(t, { args: ARGS }), await startReceiver(t)];
	const [h, other] = [await hook(s, `${r.url}/h`), await hook(s, `${r.url}/other`)];
	db(s, s.schema ? 'alter table outbox_attempt add constraint no_space check (false) not valid' : "create trigger no_space before insert on outbox_attempt begin select raise(abort, 'no room'); end");
	await test1(s, h.id);
	await r.wait('/h');
	const refused = () => s.log.split('delivery_not_stored').length - 1;
	await until(() => (refused() >= 1 ? true : undefined), 'it is reported', 20);
	await test1(s, other.id);
	await until(() => (refused() >= 3 ? true : undefined), 'it is written again', 40);
	assert.ok(refused() < 6, 'later each time');
	assert.deepEqual([r.at('/h').length, r.at('/other').length], [1, 0]);
	assert.match((await asker(s)('POST', `/${h.id}/test`)).json.error.message, /a test of this webhook is already queued/);
	db(s, s.schema ? 'alter table outbox_attempt drop constraint no_space' : 'drop trigger no_space');
	await r.wait('/other', 1, 70);
	assert.deepEqual([(await delivery(s, h.id, (d) => d.log.length)).state, r.at('/h').length], ['delivered', 1]);
});

test('projects take turns, and stopping waits for no receiver', async (t) => {
	const [s, r] = [await startServer(t, { args: ARGS }), await startReceiver(t)];
	const fine = await hook(s, `${r.url}/fine`);
	r.manner['/hang'] = 'hang';
	const others = ['one', 'two', 'three'].map((name) => ({ ask: s.ask.bind(s), admin: s.key('admin', name) }));
	for (const o of others)
		for (let i = 0; i < 16; i++) await hook(o, `${r.url}/hang`).then((h) => test1(o, h.id));
	await r.wait('/hang', 8);
	await test1(s, fine.id);
	await r.wait('/fine', 1, 120);
	assert.ok(r.at('/hang').length < 48, 'it does not wait for all that came before it');
	await r.wait('/hang', r.at('/hang').length + 1);
	await s.stop();
	assert.match(s.log, /event=stopped/);
});

test('a new group of ANRs is sent once', async (t) => {
	const [s, r] = [await startServer(t, { args: ARGS }), await startReceiver(t)];
	await hook(s, `${r.url}/h`, { events: ['anr.new'] });
	const report = (n) => `"main" prio=5 tid=1 Blocked\n  at a.B.c(B.java:1)\n  - waiting to lock <0x01> (a a.T) held by thread 2\n\n"w${n}" prio=5 tid=2 Runnable\n  at com.example.app.Class0.method1(D.java:3)\n  - locked <0x01> (a a.T)\n`;
	for (const n of [1, 2]) await s.trace(report(n), { query: { app: 'shop', version_name: '8.3.1', device: '<!channel>' } });
	const got = await r.wait('/h');
	assert.equal(got.json.event, 'anr.new');
	await until(async () => ((await s.get('/api/v1/anr/groups')).json.groups[0]?.count === 2 ? true : undefined), 'both are in the group');
	assert.equal(r.at('/h').length, 1);
	assert.equal(new URL(got.json.url).pathname, `/anrs/${got.json.anr.key}`);
});

test('internal addresses are refused, also behind names', async (t) => {
	const [s, r] = [await startServer(t, { args: ['--webhook-private', '127.0.0.0/8,169.254.0.0/16,::/96'] }), await startReceiver(t)];
	const port = new URL(r.url).port;
	const hosts = [['127.0.0.1', '127.0.0.1'], ['localhost', /127\.0\.0\.1|::1/], ['[::ffff:127.0.0.1]', /127/], ['0x7f.1', '127.0.0.1'], ['169.254.169.254', '169.254.169.254']];
	const made = [];
	for (const [host, shown] of hosts) made.push([host, shown, await hook(s, `http://${host}:${port}/`)]);
	await s.stop();
	s.args.splice(s.args.indexOf('--webhook-private'), 2);
	await s.start();
	for (const [host, shown, h] of made) {
		for (const [method, target] of [['POST', ''], ['PATCH', `/${h.id}`]]) {
			const a = await asker(s)(method, target, { url: `http://${host}:${port}/other` });
			assert.deepEqual([a.status, /private address, which --webhook-private/.test(a.json.error.message)], [400, true], a.text);
		}
		assert.equal((await asker(s)('PATCH', `/${h.id}`, { name: 'stands', url: `http://${host}:${port}/` })).status, 200, 'the rest of one that is there can be changed');
		await test1(s, h.id);
		const d = await delivery(s, h.id, (x) => x.log.length);
		assert.match(d.log[0].error, /private address, which --webhook-private/, host);
		assert.match(d.log[0].error, typeof shown === 'string' ? new RegExp(shown.replaceAll('.', '\\.')) : shown);
	}
	assert.equal(r.got.length, 0);
});

test('an invalid webhook is refused with a message', async (t) => {
	const s = await startServer(t);
	const ask = asker(s);
	for (const [body, words] of [[{}, /url must be http/], [{ url: 'ftp://a.example' }, /url must be http/], [{ url: 'https://' }, /and a host/], [{ url: 'https://h:99999/' }, /no valid host and port/], [{ url: 'https://me:pw@a.example/' }, /name or password/],
		[{ url: 'https://a.example/\u00e4' }, /percent-encode/], [{ url: `https://a.example/${'x'.repeat(1000)}` }, /at most 1000/], [{ url: 'https://a.example', kind: 'pigeon' }, /json, slack, teams/],
		[{ url: 'https://a.example', events: ['noise'] }, /unknown event noise/], [{ url: 'https://a.example', events: [] }, /at least one/], [{ url: 'https://a.example', secret: 'x' }, /only fields/]]) {
		const a = await ask('POST', '', body);
		assert.equal(a.status, 400, a.text);
		assert.match(a.json.error.message, words);
	}
	for (let i = 0; i < 20; i++) await hook(s, `https://h${i}.example.com/x`);
	const full = await ask('POST', '', { url: 'https://one.more.example' });
	assert.deepEqual([full.status, full.json.error.message], [409, 'a project has at most 20 webhooks; remove one first']);
	const [one] = (await ask('GET', '')).json.webhooks;
	const changed = (await ask('PATCH', `/${one.id}`, { name: 'b', new_secret: true, events: ['digest'] })).json;
	assert.deepEqual([changed.name, changed.events, changed.url, changed.secret.startsWith('twh_')], ['b', ['digest'], one.url, true]);
	assert.equal((await s.get(`/api/v1/webhooks/${one.id}`, { key: s.key('admin', 'other') })).status, 404);
	assert.equal((await ask('DELETE', `/${one.id}`)).status, 204);
	assert.equal((await ask('GET', `/${one.id}`)).status, 404);
	assert.match((await s.get('/metrics', { key: null })).text, /tracewell_webhook_waiting_events 0/);
});
