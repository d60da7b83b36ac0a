/*
 * headers.test.mjs - every response of every route, successful or refused, has the security headers;
 * secrets of requests are not logged.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { binary, root, routesServed, startServer, tracewell } from '../server.mjs';

const EVERY = {
	'content-security-policy': /^default-src 'self'; script-src 'self'; style-src 'self'; .*object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'$/,
	'x-content-type-options': /^nosniff$/,
	'x-frame-options': /^DENY$/,
	'referrer-policy': /^no-referrer$/,
	'permissions-policy': /camera=\(\)/,
	'cross-origin-opener-policy': /^same-origin-allow-popups$/,
	'cross-origin-resource-policy': /^(same-origin|cross-origin)$/,
	'strict-transport-security': /^max-age=31536000$/,
	'x-request-id': /^[0-9a-f]{16}$/,
	'cache-control': /./,
};

function good(answer, what) {
	for (const [name, value] of Object.entries(EVERY)) assert.match(answer.headers.get(name) ?? '', value, `${what}: ${answer.status} without ${name}`);
	assert.doesNotMatch(answer.headers.get('content-security-policy'), /unsafe|\*/, what);
	assert.equal(answer.headers.get('access-control-allow-origin'), null, what);
	assert.doesNotMatch(answer.headers.get('server') ?? '', /./, what);
}

test('every route, allowed and refused; no secret in the log', async (t) => {
	const s = await startServer(t, { args: ['--public-url', 'https://traces.example', '--log-level', 'debug'] });
	const secrets = new Set([s.ingest, s.read, s.write, s.admin]);
	const trace = await s.trace(sampleTrace(), { query: { build_id: 'b1' } });
	await s.put('/api/v1/builds/b1/methods', sampleMapping);
	const password = 'a password nobody may see';
	execFileSync(binary(), ['user', 'create', 'root', '--server-admin', '--data', s.data], { input: password });
	const sign = async (body) => {
		const a = await s.ask('POST', '/api/v1/session', { key: null, body: JSON.stringify(body) });
		good(a, 'signing in');
		return a.headers.get('set-cookie')?.split(';')[0];
	};
	const cookie = await sign({ name: 'root', password });
	const link = tracewell('link', 'create', '--data', s.data).split('#')[1];
	secrets.add(password).add(cookie.split('=')[1]).add(link).add((await sign({ token: link })).split('=')[1]);
	for (const body of [{ name: 'root', password: 'a wrong password of mine' }, { token: 'twl_no_such_link_at_all' }, { token: 'twr_no_such_key_at_all' }]) {
		await sign(body);
		secrets.add(body.password ?? body.token);
	}
	const made = await s.ask('POST', '/api/v1/keys', { key: s.admin, body: '{"scope":"read"}' });
	const rotated = await s.ask('POST', `/api/v1/keys/${made.json.id}/rotate`, { key: s.admin, body: '{}' });
	secrets.add(made.json.key).add(rotated.json.key);
	const ticket = await s.ask('POST', `/api/v1/traces/${trace.id}/tickets`, { body: '{"kind":"csv"}' });
	secrets.add(ticket.json.path.split('/').at(-2));
	await s.get(ticket.json.path, { key: null });
	await s.get('/api/v1/traces', { key: 'twr_unknown_and_wrong_key' });
	secrets.add('twr_unknown_and_wrong_key');

	const routes = routesServed();
	assert.ok(routes.length > 50);
	const fill = { id: trace.id, build_id: 'b1', part: 'trace', kind: 'csv', chunk: '0', name: 'nobody' };
	for (const { method, path: template } of routes) {
		const target = template.replace(/\{([\w*]+)\}/g, (_, n) => (n === '*' ? '' : fill[n] ?? 'x'));
		const ends = method === 'DELETE'; // without credentials only: the rest is needed later
		for (const as of [{}, ...(ends ? [] : [{ Cookie: cookie, 'X-Tracewell': '1' }])])
			if (!(template.includes('/tickets/') && as.Cookie)) good(await s.ask(method, target, { key: null, headers: as }), `${method} ${template}`);
	}
	for (const [method, target, headers] of [['GET', '/no/such/page', {}], ['PROPFIND', '/api/v1/traces', {}], ['GET', `/${'x'.repeat(17000)}`, {}], ['GET', '/api/v1/%zz', {}],
		['POST', '/api/v1/session', { Origin: 'https://evil.example' }]])
		good(await s.ask(method, target, { key: null, headers }), `${method} ${target.slice(0, 40)}`);

	await s.stop();
	assert.ok(s.log.includes('event=request') && s.log.length > 10_000);
	assert.ok(secrets.size >= 14);
	for (const secret of secrets) assert.ok(!s.log.includes(secret), `in the log: ${secret}`);
});

/* A view that only links reach is lost by a reload. */
test('every address of the page is served when it is loaded as such', async (t) => {
	const s = await startServer(t);
	const text = ['app/main.tsx', 'app/pages.ts'].map((name) => fs.readFileSync(path.join(root, 'web/src', name), 'utf8')).join('\n');
	const views = [...new Set([...text.matchAll(/(?:\bp === |\bat: )'(\/[\w/]*)'/g)].map(([, view]) => view))];
	assert.ok(views.length >= 20 && views.includes('/audit'), views.join(' '));
	for (const view of views) {
		const a = await s.get(view, { key: null });
		assert.deepEqual([a.status, /<title>|<!doctype html>/i.test(a.text)], [200, true], view);
	}
	assert.equal((await s.get('/nowhere', { key: null })).status, 404);
});
