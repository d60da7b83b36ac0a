/*
 * proxy.test.mjs - forwarded headers are trusted from the configured proxies only.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { test } from 'node:test';

import { binary, startServer } from '../server.mjs';

const json = (o) => JSON.stringify(o);
const TRUST = ['--trusted-proxies', '127.0.0.1, 10.0.0.0/8, fd00::/8'];

/* The client address of a request, from the audit log. */
async function takenFor(s, headers) {
	const name = `f${Math.trunc(Math.random() * 1e9)}`;
	const a = await s.ask('PUT', `/api/v1/filters/${name}`, { key: s.write, headers, body: json({ query: 'app=a' }) });
	assert.ok(a.status < 300, a.text);
	return (await s.get('/api/v1/audit', { key: s.admin, query: { target: name } })).json.entries[0].address;
}

/* A request with lines of one name more than once, which fetch would join. */
async function raw(s, lines) {
	const socket = await s.socket(`GET /api/v1/session HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lines.map((l) => `${l}\r\n`).join('')}\r\n`);
	return socket.answer;
}

const secure = async (s, headers) => {
	const a = await s.ask('POST', '/api/v1/session', { key: null, headers, body: json({ token: s.read }) });
	return { cookie: /; Secure$/.test(a.headers.get('set-cookie') ?? ''), hsts: a.headers.has('strict-transport-security'), status: a.status };
};

const account = (s, name, ...more) => execFileSync(binary(), ['user', 'create', name, '--data', s.data, ...more], { input: `password of ${name}` });

test('only configured proxies are trusted', async (t) => {
	for (const args of [[], ['--trusted-proxies', '10.0.0.0/8,192.168.0.1', '--proxy-user-header', 'Remote-User']]) {
		const s = await startServer(t, { args });
		account(s, 'root', '--server-admin');
		for (const spoof of ['9.9.9.9', '10.0.0.1', '127.0.0.1, 9.9.9.9', '::1'])
			assert.equal(await takenFor(s, { 'X-Forwarded-For': spoof }), '127.0.0.1');
		assert.deepEqual(await secure(s, { 'X-Forwarded-Proto': 'https' }), { cookie: false, hsts: false, status: 204 });
		assert.equal((await secure(s, { Origin: 'https://evil.example', 'X-Forwarded-Host': 'evil.example' })).status, 403);
		const who = await s.get('/api/v1/session', { key: null, headers: { 'Remote-User': 'root', 'X-Forwarded-For': '10.0.0.1' } });
		assert.equal(who.json.signed_in, false);
		assert.equal((await s.get('/api/v1/users', { key: null, headers: { 'Remote-User': 'root' } })).status, 401);
	}
});

test('the client is the last address that no trusted proxy has', async (t) => {
	const s = await startServer(t, { args: TRUST });
	const cases = {
		'9.9.9.9': '9.9.9.9',
		'1.1.1.1, 9.9.9.9': '9.9.9.9', // the part before is forged
		'9.9.9.9, 10.1.2.3': '9.9.9.9', // two proxies in a row
		'127.0.0.1, 9.9.9.9, 10.1.2.3, fd00::7': '9.9.9.9',
		'10.0.0.9': '10.0.0.9', // no other client is affected
		'2001:DB8::0:1': '2001:db8::1',
		'[2001:db8::2]:443': '2001:db8::2',
		'::ffff:203.0.113.7': '203.0.113.7', // a proxy that listens for both
		'9.9.9.9:1234': '9.9.9.9',
		'9.9.9.9, unknown': '127.0.0.1', // no address: the connection's
		'nonsense': '127.0.0.1',
		'': '127.0.0.1',
		'9.9.9.9, 11.0.0.1': '11.0.0.1', // just outside of the network
	};
	for (const [chain, address] of Object.entries(cases)) assert.equal(await takenFor(s, { 'X-Forwarded-For': chain }), address, chain);
	assert.equal(await takenFor(s, {}), '127.0.0.1');
});

test('https and host are those of the client', async (t) => {
	const s = await startServer(t, { args: TRUST });
	assert.deepEqual(await secure(s, { 'X-Forwarded-Proto': 'https' }), { cookie: true, hsts: true, status: 204 });
	assert.deepEqual(await secure(s, { 'X-Forwarded-Proto': 'https, http' }), { cookie: false, hsts: false, status: 204 });
	assert.equal((await secure(s, { Origin: 'https://traces.example', 'X-Forwarded-Host': 'traces.example' })).status, 204);
	assert.equal((await secure(s, { Origin: 'https://evil.example', 'X-Forwarded-Host': 'evil.example, traces.example' })).status, 403);
});

test('tries of passwords count by client, not by proxy', async (t) => {
	const s = await startServer(t, { args: TRUST });
	const wrong = (i, from) => s.ask('POST', '/api/v1/session', { key: null, headers: { 'X-Forwarded-For': from }, body: json({ name: `nobody${i}`, password: 'a wrong one' }) });
	let last;
	for (let i = 0; i < 90 && last?.status !== 429; i++) last = await wrong(i, '9.9.9.9'); // some have been forgotten by then
	assert.equal(last.status, 429);
	assert.equal((await wrong(99, '8.8.8.8')).status, 401, 'another client may try');
});

test('a trusted proxy may name the signed-in user', async (t) => {
	const s = await startServer(t, { args: [...TRUST, '--proxy-user-header', 'Remote-User'] });
	account(s, 'ann@example.org');
	s.key('read', 'test');
	execFileSync(binary(), ['user', 'role', 'ann@example.org', '--data', s.data, '--project', 'test', '--role', 'editor']);
	const ann = { 'Remote-User': 'Ann@example.org' };
	const as = (headers, rest = {}) => ({ key: null, headers: { ...ann, ...headers }, ...rest });
	const who = (await s.get('/api/v1/session', as({}))).json;
	assert.deepEqual([who.signed_in, who.user, who.scope], [true, 'ann@example.org', 'write']);
	assert.equal((await s.get('/api/v1/traces', as({}))).status, 200);
	assert.equal((await s.get('/api/v1/keys', as({}))).status, 403, 'roles hold');
	const body = json({ query: 'app=a' });
	assert.equal((await s.ask('PUT', '/api/v1/filters/x', as({}, { body }))).status, 403, 'a change needs the header of the page');
	assert.equal((await s.ask('PUT', '/api/v1/filters/x', as({ 'X-Tracewell': '1', 'Sec-Fetch-Site': 'cross-site' }, { body }))).status, 403);
	assert.ok((await s.ask('PUT', '/api/v1/filters/x', as({ 'X-Tracewell': '1' }, { body }))).status < 300);
	const [entry] = (await s.get('/api/v1/audit', { key: s.admin, query: { target: 'x' } })).json.entries;
	assert.deepEqual([entry.actor.kind, entry.actor.name], ['user', 'ann@example.org']);

	const stranger = await s.get('/api/v1/traces', { key: null, headers: { 'Remote-User': 'eve' } });
	assert.equal(stranger.status, 403);
	assert.match(stranger.json.error.message, /signed in as eve, whose account does not exist/);
	assert.ok([400, 403].includes((await s.get('/api/v1/traces', { key: null, headers: { 'Remote-User': "ann' OR '1'='1" } })).status));
	assert.match(await raw(s, ['Remote-User: eve', 'Remote-User: ann@example.org']), /^HTTP\/1\.1 400 [^]*was sent twice/);
	assert.match(await raw(s, ['X-Forwarded-For: 9.9.9.9', 'X-Forwarded-For: 10.0.0.1']), /^HTTP\/1\.1 200 /);
	assert.equal((await s.get('/api/v1/session', { key: s.read, headers: ann })).json.user, null, 'a key goes before');
});

test('settings that make no sense are refused', () => {
	const serve = (...args) => spawnSync(binary(), ['serve', '--data', '/nowhere/at/all', ...args], { encoding: 'utf8' });
	for (const bad of ['10.0.0.0/33', 'fd00::/129', 'proxy.example', '10.0.0/8', '1.2.3.4/', '/8'])
		assert.match(serve('--trusted-proxies', bad).stderr, /is neither an address nor a network/, bad);
	assert.match(serve('--trusted-proxies', [...Array(33)].map((_, i) => `10.0.0.${i}`).join(',')).stderr, /at most 32/);
	assert.match(serve('--proxy-user-header', 'Remote-User').stderr, /needs --trusted-proxies/);
	assert.match(serve('--proxy-user-header', 'Remote User', '--trusted-proxies', '::1').stderr, /must be the name of a header/);
});
