/*
 * audit.test.mjs - the audit log: every route that changes something writes exactly one entry without
 * secrets; so do the command line and deletions by the server itself.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { binary, routesServed, startServer, tracewell, until } from '../server.mjs';
import { findSlower } from '../regressed_fleet.mjs';

const json = (o) => JSON.stringify(o);

/* Routes that change no stored data, or whose change is its own record. */
const WITHOUT = {
	'POST /api/v1/traces': 'a trace says by which key it was sent, and its deletion says so again',
	'POST /v1development/profiles': 'as a trace',
	'POST /api/v1/uploads': 'as a trace: what is not whole yet is in no list',
	'POST /api/v1/uploads/direct': 'the same',
	'POST /api/v1/uploads/direct/{upload}/complete': 'as a trace',
	'PATCH /api/v1/uploads/{upload}': 'the same',
	'DELETE /api/v1/uploads/{upload}': 'the same',
	'OPTIONS /api/v1/uploads': 'changes nothing',
	'OPTIONS /api/v1/uploads/{upload}': 'changes nothing',
	'HEAD /api/v1/uploads/{upload}': 'changes nothing',
	'POST /api/v1/oidc/link': 'only begins what the callback ends, and that is recorded: oidc.test.mjs',
	'POST /api/v1/alerts/evaluate': 'compares what the server compares by itself every ten minutes',
	'POST /api/v1/regressions/detect': 'finds what the server finds each hour by itself',
	'POST /api/v1/traces/{id}/sql': 'only reads',
	'POST /api/v1/traces/{id}/tickets': 'makes a link that nothing is kept of',
	'POST /api/v1/detectors/preview': 'looks, and keeps nothing',
	'POST /api/v1/alerts/preview': 'the same',
};

/* Each of the others: the action of its entry, the request, the expected entry. */
function changes(v) {
	const t = `/api/v1/traces/${v.trace}`;
	return [
		['POST /api/v1/projects', 'project.create', '/api/v1/projects', { name: 'fresh' }, 'fresh'],
		['DELETE /api/v1/projects/{name}', 'project.delete', '/api/v1/projects/fresh', undefined, 'fresh'],
		['POST /api/v1/users', 'user.create', '/api/v1/users', { name: 'bob', password: v.passwords[0] }, 'bob'],
		['PUT /api/v1/users/{name}', 'user.change', '/api/v1/users/bob', { password: v.passwords[1], admin: true }, 'bob'],
		['PUT /api/v1/members/{name}', 'member.set', '/api/v1/members/bob', { role: 'editor' }, 'bob', { scope: 'write' }],
		['DELETE /api/v1/members/{name}', 'member.remove', '/api/v1/members/bob', undefined, 'bob'],
		['DELETE /api/v1/users/{name}', 'user.remove', '/api/v1/users/bob', undefined, 'bob'],
		['POST /api/v1/keys', 'key.create', '/api/v1/keys', { name: 'ci', scope: 'read' }, undefined, { name: 'ci', scope: 'read', expires_ms: '0' }],
		['POST /api/v1/keys/{id}/rotate', 'key.rotate', () => `/api/v1/keys/${v.key}/rotate`, {}, () => v.key],
		['DELETE /api/v1/keys/{id}', 'key.revoke', () => `/api/v1/keys/${v.key}`, undefined, () => v.key],
		['PUT /api/v1/builds/{build_id}/methods', 'mapping.set', '/api/v1/builds/b1/methods', sampleMapping, 'b1', { kind: 'methods' }],
		['PUT /api/v1/builds/{build_id}/commit', 'build.commit', '/api/v1/builds/b1/commit', json({ commit: '0123abc' }), 'b1', { commit: '0123abc' }],
		['PUT /api/v1/builds/{build_id}/symbols', 'mapping.set', '/api/v1/builds/elf:0123456789abcdef/symbols?wait=0', 'not compiled yet', 'elf:0123456789abcdef', { kind: 'symbols' }],
		['PUT /api/v1/builds/{build_id}/retrace', 'mapping.set', '/api/v1/builds/b1/retrace', 'a.B -> c:\n    void m() -> d\n', 'b1', { kind: 'retrace' }],
		['PUT /api/v1/retention', 'setting.set', '/api/v1/retention', { max_age_days: 365 }, 'retention'],
		['PUT /api/v1/source/repositories', 'setting.set', '/api/v1/source/repositories', { repositories: [] }, 'source', { value: '{"repositories":[]}' }],
		['PUT /api/v1/capture/rules', 'setting.set', '/api/v1/capture/rules', { rules: [] }, 'capture', { value: '{"max_age_s":3600,"rules":[]}' }],
		['PUT /api/v1/frames', 'setting.set', '/api/v1/frames', { framework: ['com.vendor'] }, 'frames', { value: '{"framework":["com.vendor"]}' }],
		['PUT /api/v1/fleet/labels', 'setting.set', '/api/v1/fleet/labels', { labels: ['device'] }, 'rollups', { value: '{"labels":["device"]}' }],
		['PUT /api/v1/regressions/rules', 'setting.set', '/api/v1/regressions/rules', { min_days: 3 }, 'regressions'],
		['PUT /api/v1/digest/settings', 'setting.set', '/api/v1/digest/settings', { every: 'daily' }, 'digest'],
		['POST /api/v1/regressions/{regression}/ticket', 'ticket.create', `/api/v1/regressions/${v.regression}/ticket`, undefined, v.regression, { tracker: 'github' }],
		['POST /api/v1/anr/groups/{key}/ticket', 'ticket.create', `/api/v1/anr/groups/${v.group}/ticket`, undefined, v.group, { tracker: 'github' }],
		['PUT /api/v1/tracker', 'setting.set', '/api/v1/tracker', { for: 'jira', template: '' }, 'tracker', { value: '{"for":"jira","template":""}' }],
		['POST /api/v1/webhooks', 'webhook.create', '/api/v1/webhooks', { name: 'chat', url: v.secretUrl, events: ['digest'] }, undefined, { name: 'chat', host: 'https://hooks.invalid', kind: 'json' }],
		['PATCH /api/v1/webhooks/{hook}', 'webhook.change', () => `/api/v1/webhooks/${v.hook}`, { new_secret: true, paused: true }, () => v.hook, { paused: 'yes' }],
		['POST /api/v1/webhooks/{hook}/test', 'webhook.test', () => `/api/v1/webhooks/${v.hook}/test`, undefined, () => v.hook],
		['POST /api/v1/webhooks/{hook}/deliveries/{delivery}', 'webhook.redeliver', () => `/api/v1/webhooks/${v.hook}/deliveries/1`, undefined, () => v.hook, { delivery: '1' }],
		['PATCH /api/v1/webhooks/{hook}', 'webhook.change', () => `/api/v1/webhooks/${v.hook}`, { paused: false }, () => v.hook, { paused: 'no' }],
		['POST /api/v1/digest', 'digest.send', '/api/v1/digest', undefined, 'digest'],
		['DELETE /api/v1/webhooks/{hook}', 'webhook.remove', () => `/api/v1/webhooks/${v.hook}`, undefined, () => v.hook],
		['PATCH /api/v1/regressions/{regression}', 'regression.change', () => `/api/v1/regressions/${v.regression}`, { owner: 'ann', status: 'acknowledged' }, () => v.regression, { status: 'acknowledged', owner: 'ann' }],
		['PATCH /api/v1/inbox', 'regression.change', '/api/v1/inbox', () => ({ items: [{ kind: 'regression', id: v.regression }], status: 'fixed' }), () => v.regression, { status: 'fixed', owner: 'ann' }],
		['PATCH /api/v1/inbox', 'regression.change', '/api/v1/inbox', () => ({ items: [{ kind: 'regression', id: v.regression }], muted_until_ms: 4102444800000 }), () => v.regression, { status: 'fixed', owner: 'ann', muted_until_ms: '4102444800000' }],
		['POST /api/v1/alerts/rules', 'alert.create', '/api/v1/alerts/rules', { name: 'start', kind: 'duration', threshold: 800 }, undefined, { name: 'start', kind: 'duration' }],
		['PATCH /api/v1/alerts/rules/{rule}', 'alert.change', () => `/api/v1/alerts/rules/${v.rule}`, { name: 'starts' }, () => v.rule, { name: 'starts' }],
		['DELETE /api/v1/alerts/rules/{rule}', 'alert.remove', () => `/api/v1/alerts/rules/${v.rule}`, undefined, () => v.rule],
		['PUT /api/v1/anr/rules', 'setting.set', '/api/v1/anr/rules', { rules: [] }, 'anr_rules', { version: '1', value: '{"rules":[]}' }],
		['PUT /api/v1/detectors', 'setting.set', '/api/v1/detectors', { rules: [] }, 'detectors', { version: '1', value: '{"rules":[]}' }],
		['PATCH /api/v1/traces/{id}', 'trace.edit', t, { title: 'slow', pinned: true, tags: ['a', 'b'] }, v.trace, { title: 'slow', pinned: 'true', tags: 'a,b' }],
		['PATCH /api/v1/traces/{id}', 'trace.edit', t, { add_tags: ['c', 'd'], remove_tags: ['a'] }, v.trace, { add_tags: 'c,d', remove_tags: 'a' }],
		['POST /api/v1/traces/{id}/annotations', 'annotation.create', `${t}/annotations`, { text: 'here', ts_ns: 1 }, v.trace],
		['PATCH /api/v1/traces/{id}/annotations/{annotation}', 'annotation.edit', () => `${t}/annotations/${v.annotation}`, { text: 'there' }, v.trace],
		['DELETE /api/v1/traces/{id}/annotations/{annotation}', 'annotation.delete', () => `${t}/annotations/${v.annotation}`, undefined, v.trace],
		['PUT /api/v1/filters/{name}', 'filter.set', '/api/v1/filters/mine', { query: 'app=a' }, 'mine', { query: 'app=a' }],
		['DELETE /api/v1/filters/{name}', 'filter.delete', '/api/v1/filters/mine', undefined, 'mine'],
		['DELETE /api/v1/traces/{id}', 'trace.delete', t, undefined, v.trace, { app: 'com.acme', sent_by: v.sender }],
		['PUT /api/v1/session/password', 'user.change', '/api/v1/session/password', () => ({ old: v.passwords[2], password: v.passwords[3] }), 'root', { password: 'changed' }],
		['POST /api/v1/session', 'session.start', '/api/v1/session', () => ({ name: 'root', password: v.passwords[3] }), 'root', { how: 'password' }],
		['DELETE /api/v1/session', 'session.end', '/api/v1/session', undefined, 'root'],
		['DELETE /api/v1/session/all', 'session.end_all', '/api/v1/session/all', undefined, 'root'],
	];
}

/* These need a trace of which the decoder died: a server of their own. */
const OF_QUARANTINE = [['POST', 'trace.requeue'], ['DELETE', 'trace.delete']];

const value = (x) => (typeof x === 'function' ? x() : x);

async function watcher(s) {
	execFileSync(binary(), ['user', 'create', 'watcher', '--server-admin', '--data', s.data], { input: 'watching password' });
	const signed = await s.ask('POST', '/api/v1/session', { key: null, body: json({ name: 'watcher', password: 'watching password' }) });
	const [, session] = signed.headers.get('set-cookie').split(';')[0].split('=');
	/* the cookie's name has the server's port, which a restart changes here */
	const headers = () => ({ Cookie: `tw_session_${s.port}=${session}` });
	return async (query = {}) => (await s.get('/api/v1/audit', { key: null, headers: headers(), query: { everywhere: '1', limit: '500', ...query } })).json.entries;
}

test('every route that changes data is listed here', () => {
	const lines = routesServed().map((r) => `${r.method} ${r.path}`).filter((r) => !r.startsWith('GET '));
	const here = [...new Set(changes({ passwords: [] }).map(([route]) => route)), ...OF_QUARANTINE.map(([method]) => `${method} /api/v1/quarantine/{id}`), ...Object.keys(WITHOUT)];
	assert.deepEqual(lines.sort(), here.sort());
});

test('each change leaves exactly one entry, refusals and looks none, and no secret is in any', async (t) => {
	const s = await startServer(t);
	const secrets = new Set([s.ingest, s.read, s.write, s.admin]);
	const v = { passwords: ['first password of bob', 'second password of bob', 'first password of root', 'other password of root'] };
	v.passwords.forEach((p) => secrets.add(p));
	v.secretUrl = 'https://hooks.invalid/T0/B1/a-secret-of-its-own';
	secrets.add(v.secretUrl);
	v.trace = (await s.trace(sampleTrace(), { query: { app: 'com.acme', build_id: 'b1' } })).id;
	v.sender = (await s.get('/api/v1/keys', { key: s.admin })).json.keys.find((k) => k.scope === 'ingest').id;
	v.regression = (await findSlower(s, 12)).id;
	await s.trace('"main" prio=5 tid=1 Blocked\n  at a.B.c(B.java:1)\n  - waiting to lock <0x01> (a a.T) held by thread 2\n\n"w" prio=5 tid=2 Runnable\n  at a.W.d(W.java:3)\n  - locked <0x01> (a a.T)\n');
	v.group = (await until(async () => (await s.get('/api/v1/anr/groups')).json.groups[0], 'a group of ANRs')).key;
	secrets.add('a-token-of-the-tracker');
	assert.equal((await s.ask('PUT', '/api/v1/tracker', { key: s.admin, body: json({ for: 'github', template: '', api: 'https://tracker.invalid', repository: 'a/b', token: 'a-token-of-the-tracker' }) })).status, 200);
	execFileSync(binary(), ['user', 'create', 'root', '--server-admin', '--data', s.data], { input: v.passwords[2] });
	const audit = await watcher(s);
	const headers = { 'X-Tracewell': '1' };
	const sign = async (a) => {
		const cookie = a.headers.get('set-cookie')?.split(';')[0];
		if (cookie && !cookie.endsWith('=')) {
			headers.Cookie = cookie;
			secrets.add(cookie.split('=')[1]);
		}
	};
	const signIn = async (password) => sign(await s.ask('POST', '/api/v1/session', { key: null, body: json({ name: 'root', password }) }));
	await signIn(v.passwords[2]);
	let newest = (await audit())[0].id;

	for (const [route, action, target, body, what, facts] of changes(v))
		await t.test(route, async () => {
			const [method] = route.split(' ');
			if (route === 'DELETE /api/v1/session/all') {
				await signIn(v.passwords[3]);
				newest = (await audit())[0].id;
			}
			if (action === 'webhook.redeliver') await until(async () => {
				const { deliveries } = (await s.ask('GET', `/api/v1/webhooks/${v.hook}/deliveries`, { key: null, headers })).json;
				return deliveries.some((d) => ['waiting', 'sending'].includes(d.state)) ? undefined : true;
			}, 'the test is over');
			const sent = value(body);
			const began = Date.now();
			const a = await s.ask(method, value(target), { key: null, headers, body: sent === undefined || typeof sent === 'string' ? sent : json(sent) });
			assert.ok(a.status < 300, a.text);
			await sign(a);
			if (a.json?.key) secrets.add(a.json.key);
			if (a.json?.secret) secrets.add(a.json.secret);
			if (route === 'POST /api/v1/keys') v.key = a.json.id;
			if (route === 'POST /api/v1/webhooks') v.hook = a.json.id;
			if (route === 'POST /api/v1/alerts/rules') v.rule = a.json.id;
			if (action === 'annotation.create') v.annotation = a.json.id;
			const fresh = (await audit()).filter((e) => e.id > newest);
			assert.equal(fresh.length, 1, json(fresh));
			const [e] = fresh;
			newest = e.id;
			assert.equal(e.action, action);
			if (what !== undefined) assert.equal(e.target, value(what));
			for (const [k, x] of Object.entries(facts ?? {})) assert.equal(e.facts[k], x, json(e));
			assert.equal(e.actor.kind, 'user');
			assert.equal(e.actor.name, 'root');
			assert.equal(e.address, '127.0.0.1');
			assert.equal(e.request, a.headers.get('x-request-id'));
			assert.ok(e.at_ms >= began && e.at_ms <= Date.now());
		});

	await t.test('refused and idle requests leave none', async () => {
		await s.ask('DELETE', `/api/v1/traces/${v.trace}`, { key: s.write });
		await s.ask('POST', '/api/v1/keys', { key: s.read, body: json({ scope: 'read' }) });
		await s.ask('POST', '/api/v1/keys', { key: s.admin, body: json({ scope: 'none' }) });
		await s.ask('POST', '/api/v1/session', { key: null, body: json({ name: 'root', password: 'wrong password' }) });
		await s.get('/api/v1/traces');
		assert.equal((await audit())[0].id, newest);
	});
	await t.test('no entry and no log line contains a secret or its hash', async () => {
		const { createHash } = await import('node:crypto');
		const all = json(await audit());
		assert.ok(secrets.size > 10);
		for (const secret of secrets) {
			assert.ok(!all.includes(secret), 'a secret in an entry');
			assert.ok(!all.includes(createHash('sha256').update(secret).digest('hex')));
			assert.ok(!s.log.includes(secret), 'a secret in the log');
		}
	});
});

test('entries are paged, filtered, and those of a project for its admins only', async (t) => {
	const s = await startServer(t);
	const audit = await watcher(s);
	for (let i = 0; i < 7; i++) await s.ask('PUT', `/api/v1/filters/f${i}`, { key: s.write, body: json({ query: 'app=a' }) });
	s.key('read', 'other');
	const page = async (query, key = s.admin) => s.get('/api/v1/audit', { key, query });
	const first = (await page({ action: 'filter', limit: 3 })).json;
	const second = (await page({ action: 'filter', limit: 3, cursor: first.next_cursor })).json;
	const third = (await page({ action: 'filter', limit: 3, cursor: second.next_cursor })).json;
	assert.deepEqual([first, second, third].flatMap((p) => p.entries.map((e) => e.target)), ['f6', 'f5', 'f4', 'f3', 'f2', 'f1', 'f0']);
	assert.equal(third.next_cursor, null);
	assert.equal(first.entries[0].actor.kind, 'key');
	assert.deepEqual((await page({ target: 'f3' })).json.entries.map((e) => e.action), ['filter.set']);
	assert.deepEqual((await page({ action: 'filt' })).json.entries, [], 'a whole word of an action');
	assert.equal((await page({ actor: first.entries[0].actor.id, action: 'filter' })).json.entries.length, 7);
	const projects = new Set((await page({})).json.entries.map((e) => e.project));
	assert.equal(projects.size, 1, 'of the own project alone');
	assert.equal((await page({ everywhere: '1' })).status, 403);
	assert.equal((await page({}, s.write)).status, 403);
	for (const bad of [{ limit: 0 }, { limit: 501 }, { cursor: 'x' }, { everywhere: 'maybe' }]) assert.equal((await page(bad)).status, 400);
	assert.ok(new Set((await audit()).map((e) => e.project)).size > 2, 'two projects and the server');
	const other = s.key('admin', 'other');
	assert.ok((await page({}, other)).json.entries.every((e) => !e.target.startsWith('f')));
});

test('the command line and the server itself are noted; entries go when they are old', async (t) => {
	const s = await startServer(t, { args: ['--retention-every', '1'] });
	const audit = await watcher(s);
	tracewell('link', 'create', '--data', s.data);
	const [link] = await audit({ action: 'link.create' });
	assert.deepEqual([link.actor.kind, link.address], ['cli', '']);
	assert.ok(link.actor.name.length > 0);
	const a = (await s.trace(sampleTrace(3), {})).id;
	await s.trace(sampleTrace(4), {});
	await s.ask('PUT', '/api/v1/retention', { key: s.admin, body: json({ max_traces: 1 }) });
	const [gone] = await until(async () => {
		const found = await audit({ action: 'trace.delete' });
		return found.length ? found : undefined;
	}, 'the older trace is deleted');
	assert.deepEqual([gone.actor.kind, gone.target], ['server', a]);
	const reported = tracewell('audit', '--data', s.data, '--action', 'trace').split('\n');
	assert.ok(reported.some((l) => l.includes('trace.delete') && l.includes(a)), reported.join('\n'));
	const lines = tracewell('audit', '--data', s.data, '--json', '--limit', '3').split('\n').map((l) => JSON.parse(l));
	assert.equal(lines.length, 3);
	assert.ok(lines[0].id > lines[2].id);

	await s.stop();
	s.sql("UPDATE audit SET at_ms=at_ms-2*86400000 WHERE action LIKE 'link%'");
	s.args.push('--audit-days', '1');
	await s.start();
	const [expired] = await until(async () => {
		const found = await audit({ action: 'audit.expire' });
		return found.length ? found : undefined;
	}, 'the old entry is gone');
	assert.equal(expired.facts.entries, '1');
	assert.deepEqual(await audit({ action: 'link' }), []);
});

test('the audit command prints nothing of a device that a terminal obeys', async (t) => {
	const s = await startServer(t);
	const { id } = await s.trace(sampleTrace(5), { query: { app: 'a\u009b31m', scenario: '\u202eb' } });
	assert.equal((await s.ask('DELETE', `/api/v1/traces/${id}`)).status, 204);
	const printed = tracewell('audit', '--data', s.data, '--action', 'trace.delete');
	assert.match(printed, /"app":"a\ufffd31m","scenario":"\ufffdb"/);
	assert.match(printed, /^[^\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]+$/);
});

test('the user before sudo is named, and found by that name', async (t) => {
	const s = await startServer(t);
	const audit = await watcher(s);
	const env = { ...process.env };
	delete env.SUDO_USER;
	const made = async (more) => {
		execFileSync(binary(), ['link', 'create', '--data', s.data], { env: { ...env, ...more } });
		return (await audit({ action: 'link.create' }))[0].actor.name;
	};
	const self = await made({});
	assert.deepEqual([await made({ SUDO_USER: 'ann' }), await made({ SUDO_USER: self }), await made({ SUDO_USER: '<b>' })], [`ann as ${self}`, self, self]);
	assert.equal((await audit({ actor: 'ann' })).length, 1);
});

test('actions on quarantined uploads are audited', async (t) => {
	const s = await startServer(t, { env: { TRACEWELL_WORKER_FAULT: 'crash' }, args: ['--worker-attempts', '1'] });
	const { id } = await s.trace(sampleTrace());
	const audit = await watcher(s);
	for (const [method, action] of OF_QUARANTINE) {
		const newest = (await audit())[0].id;
		const a = await s.ask(method, `/api/v1/quarantine/${id}`, { key: s.admin });
		assert.ok(a.status < 300, a.text);
		await until(async () => (method === 'DELETE' || (await s.get(`/api/v1/traces/${id}`)).json.state === 'failed' ? true : undefined), 'it failed again');
		const fresh = (await audit()).filter((e) => e.id > newest && e.action !== 'key.create');
		assert.deepEqual(fresh.map((e) => [e.action, e.target, e.actor.kind]), [[action, id, 'key']]);
	}
});

test('importing a project is audited in that project', { skip: process.env.TRACEWELL_TEST_POSTGRES ? 'projects are brought into files' : false }, async (t) => {
	const from = await startServer(t);
	await from.trace(sampleTrace());
	const file = path.join(from.data, 'project.tar');
	tracewell('export', '--project', 'test', '--data', from.data, '-o', file);
	const to = await startServer(t);
	const audit = await watcher(to);
	tracewell('import', file, '--data', to.data);
	const found = await audit({ action: 'project' });
	assert.deepEqual(found.map((e) => [e.action, e.target, e.actor.kind, e.facts.traces]), [['project.import', 'test', 'cli', '1']]);
});
