/*
 * auth.test.mjs - accounts: passwords, sessions, roles, attempts, cross-site requests, and the command line
 * that creates accounts.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { sampleTrace } from '../make.mjs';
import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { binary, startServer, tracewell, until } from '../server.mjs';

const change = { 'X-Tracewell': '1' };

/* `tracewell user ...`; the password goes to stdin. */
function user(s, input, ...args) {
	return execFileSync(binary(), ['user', ...args, '--data', s.data], { input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] });
}

function fails(s, input, ...args) {
	try {
		user(s, input, ...args);
	} catch (why) {
		return why.stderr;
	}
	return assert.fail(`${args.join(' ')} worked`);
}

const signIn = (s, body, headers = {}) => s.ask('POST', '/api/v1/session', { key: null, body: JSON.stringify(body), headers });

async function cookieOf(s, name, password) {
	const answer = await signIn(s, { name, password });
	assert.equal(answer.status, 204, answer.text);
	return answer.headers.get('set-cookie').split(';')[0];
}

const as = (cookie, headers = change) => ({ key: null, headers: { Cookie: cookie, ...headers } });

const who = async (s, cookie) => (await s.get('/api/v1/session', as(cookie))).json;

test('people, by the command line', async (t) => {
	const s = await startServer(t);
	assert.ok(s.read);
	user(s, 'correct horse\n', 'create', 'Ann');
	assert.match(fails(s, 'correct horse\n', 'create', 'ann'), /user ann already exists/);
	assert.match(fails(s, 'short\n', 'create', 'bob'), /10 to 256/);
	assert.match(fails(s, '', 'create', 'bob'), /no password on stdin/);
	assert.match(fails(s, 'correct horse\n', 'create', 'a b'), /letters, digits/);
	assert.equal(user(s, '', 'list'), 'ann\tnone\n');
	user(s, '', 'role', 'ann', '--project', 'test', '--role', 'editor');
	assert.equal(user(s, '', 'list', '--project', 'test'), 'ann\teditor\n');
	assert.match(fails(s, '', 'role', 'ann', '--project', 'test', '--role', 'king'), /viewer, editor, admin, server-admin or none/);
	assert.match(fails(s, '', 'role', 'bob', '--project', 'test', '--role', 'viewer'), /no user of that name/);

	const cookie = await cookieOf(s, 'ANN', 'correct horse');
	const json = await who(s, cookie);
	assert.equal(json.user, 'ann');
	assert.equal(json.scope, 'write');
	assert.deepEqual(json.projects.map((p) => p.name), ['test']);

	user(s, '', 'role', 'ann', '--role', 'server-admin');
	assert.equal((await s.get('/api/v1/traces', as(cookie))).status, 401, 'a new role ends sessions');
	assert.equal((await who(s, await cookieOf(s, 'ann', 'correct horse'))).scope, 'server');
	user(s, 'battery staple\n', 'passwd', 'ann');
	assert.equal((await signIn(s, { name: 'ann', password: 'correct horse' })).status, 401);
	const last = await cookieOf(s, 'ann', 'battery staple');
	user(s, '', 'remove', 'ann');
	assert.equal((await s.get('/api/v1/traces', as(last))).status, 401);
	assert.equal((await signIn(s, { name: 'ann', password: 'battery staple' })).status, 401);
	for (const f of fs.readdirSync(s.data)) {
		const file = path.join(s.data, f);
		if (fs.statSync(file).isFile()) assert.ok(!fs.readFileSync(file, 'latin1').includes('battery staple'), f);
	}
	for (const secret of ['correct horse', 'battery staple', cookie.split('=')[1]]) assert.ok(!s.log.includes(secret), 'a secret in the log');
});

test('people, by the API', async (t) => {
	const s = await startServer(t);
	const project = (await s.get('/api/v1/projects')).json.projects[0].id;
	const answer = await signIn(s, { token: tracewell('link', 'create', '--data', s.data).split('#')[1] });
	const root = answer.headers.get('set-cookie').split(';')[0];
	const post = (target, body, cookie = root) => s.ask('POST', target, { ...as(cookie), body: JSON.stringify(body) });
	const put = (target, body, cookie = root) => s.ask('PUT', target, { ...as(cookie), body: JSON.stringify(body) });
	const del = (target, cookie = root) => s.ask('DELETE', target, as(cookie));

	for (const name of ['ann', 'bob', 'eve']) assert.equal((await post('/api/v1/users', { name, password: `password of ${name}` })).status, 201);
	assert.equal((await post('/api/v1/users', { name: 'ann' })).status, 409);
	for (const bad of [{}, { name: 'a b' }, { name: 5 }, { name: 'x', password: 'short' }, { name: 'x', password: 5 }, { name: 'x', admin: 'yes' }, { name: 'longenough1', password: 'LongEnough1' }])
		assert.equal((await post('/api/v1/users', bad)).status, 400, JSON.stringify(bad));
	assert.equal((await signIn(s, { name: 'ann', password: 'password of ann' })).status, 204);
	const { users, next_cursor } = (await s.get('/api/v1/users', as(root))).json;
	assert.deepEqual(users.map((u) => [u.name, u.admin, u.password]), [['ann', false, true], ['bob', false, true], ['eve', false, true]]);
	assert.equal(next_cursor, null);
	assert.ok(users[0].last_seen_ms > 0 && users[1].last_seen_ms === 0, 'who was seen');
	assert.ok(!JSON.stringify(users).includes('argon2'));

	await t.test('a role is granted, changed and revoked', async () => {
		const bob = await cookieOf(s, 'bob', 'password of bob');
		assert.deepEqual((await who(s, bob)).projects, []);
		assert.equal((await who(s, bob)).signed_in, true);
		const none = await s.get('/api/v1/traces', as(bob));
		assert.equal(none.status, 403);
		assert.match(none.json.error.message, /no role in any project/);
		assert.equal((await put('/api/v1/members/bob', { role: 'viewer' })).status, 204);
		assert.equal((await s.get('/api/v1/traces', as(bob))).status, 200);
		assert.equal((await s.ask('PUT', '/api/v1/frames', { ...as(bob), body: '{}' })).status, 403);
		assert.equal((await put('/api/v1/members/bob', { role: 'editor' })).status, 204);
		assert.equal((await s.ask('PUT', '/api/v1/frames', { ...as(bob), body: '{}' })).status, 200);
		assert.equal((await s.ask('POST', '/api/v1/traces', { ...as(bob), body: sampleTrace() })).status, 202, 'an editor sends');
		assert.deepEqual((await s.get('/api/v1/members', as(root))).json.members.map((m) => [m.name, m.role]), [['bob', 'editor']]);
		assert.equal((await del('/api/v1/members/bob')).status, 204);
		assert.equal((await del('/api/v1/members/bob')).status, 404);
		assert.equal((await s.get('/api/v1/traces', as(bob))).status, 403);
		for (const [name, role, status] of [['nobody', 'viewer', 404], ['bob', 'owner', 400], ['bob', undefined, 400], ['a%20b', 'viewer', 404]])
			assert.equal((await put(`/api/v1/members/${name}`, { role })).status, status, name);
	});

	await t.test('an admin of a project keeps its members, not the accounts', async () => {
		await put('/api/v1/members/ann', { role: 'admin' });
		const ann = await cookieOf(s, 'ann', 'password of ann');
		assert.equal((await put('/api/v1/members/eve', { role: 'viewer' }, ann)).status, 204);
		assert.equal((await s.get('/api/v1/users', as(ann))).status, 403);
		assert.equal((await put('/api/v1/users/eve', { password: 'taken over!' }, ann)).status, 403);
		assert.equal((await put('/api/v1/users/ann', { admin: true }, ann)).status, 403);
		tracewell('key', 'create', '--data', s.data, '--project', 'other', '--new-project', '--scope', 'read');
		const other = (await who(s, root)).projects.find((p) => p.name === 'other').id;
		assert.equal((await s.get(`/api/v1/members?project=${other}`, as(ann))).status, 404);
		assert.equal((await put(`/api/v1/members/ann?project=${other}`, { role: 'admin' }, ann)).status, 404);
		assert.equal((await s.get(`/api/v1/members?project=${project}`, as(ann))).status, 200);
	});

	await t.test("one's own password", async () => {
		const one = await cookieOf(s, 'eve', 'password of eve');
		const two = await cookieOf(s, 'eve', 'password of eve');
		assert.equal((await put('/api/v1/session/password', { old: 'wrong', password: 'another one' }, one)).status, 403);
		assert.equal((await put('/api/v1/session/password', { old: 'password of eve', password: 'short' }, one)).status, 400);
		assert.equal((await put('/api/v1/session/password', { password: 'another one' }, one)).status, 400);
		const changed = await put('/api/v1/session/password', { old: 'password of eve', password: 'another one' }, one);
		assert.equal(changed.status, 204, changed.text);
		for (const old of [one, two]) assert.equal((await s.get('/api/v1/projects', as(old))).status, 401, 'the old sessions are over');
		const now = changed.headers.get('set-cookie').split(';')[0];
		assert.equal((await who(s, now)).user, 'eve');
		assert.equal((await put('/api/v1/session/password', { old: 'x', password: 'another one' })).status, 403, 'a link has no account');
	});

	await t.test('an account is changed and removed', async () => {
		const bob = await cookieOf(s, 'bob', 'password of bob');
		assert.equal((await put('/api/v1/users/bob', { admin: true })).status, 204);
		assert.equal((await s.get('/api/v1/projects', as(bob))).status, 401, 'signed out by it');
		assert.equal((await who(s, await cookieOf(s, 'bob', 'password of bob'))).scope, 'server');
		assert.equal((await put('/api/v1/users/bob', { password: 'bob has another' })).status, 204);
		assert.equal((await signIn(s, { name: 'bob', password: 'password of bob' })).status, 401);
		assert.equal((await put('/api/v1/users/nobody', {})).status, 404);
		assert.equal((await del('/api/v1/users/bob')).status, 204);
		assert.equal((await del('/api/v1/users/bob')).status, 404);
		assert.equal((await signIn(s, { name: 'bob', password: 'bob has another' })).status, 401);
	});
});

test('two servers of one host keep their sessions apart', async (t) => {
	const [a, b] = [await startServer(t), await startServer(t)];
	const jar = new Map(); /* as a browser has it: by name, whatever the port */
	const header = () => [...jar].map((pair) => pair.join('=')).join('; ');
	for (const s of [a, b]) {
		assert.ok(s.read);
		user(s, 'correct horse\n', 'create', 'ann');
		const [name, value] = (await signIn(s, { name: 'ann', password: 'correct horse' }, { ...change, Cookie: header() })).headers.get('set-cookie').split(';')[0].split('=');
		jar.set(name, value);
	}
	for (const s of [a, b]) assert.equal((await s.get('/api/v1/session', { key: null, headers: { Cookie: header() } })).status, 200);
	assert.equal((await a.ask('DELETE', '/api/v1/session', { key: null, headers: { ...change, Cookie: header() } })).status, 204);
	assert.equal((await a.get('/api/v1/session', { key: null, headers: { Cookie: header() } })).status, 401);
	assert.equal((await b.get('/api/v1/session', { key: null, headers: { Cookie: header() } })).status, 200, 'signing out of one leaves the other');
});

test('sessions end, and follow each other', async (t) => {
	const s = await startServer(t, { args: ['--session-idle', '1000', '--session-max', '2000', '--public-url', 'https://traces.example'] });
	assert.ok(s.read);
	user(s, 'correct horse\n', 'create', 'ann');
	const given = await signIn(s, { name: 'ann', password: 'correct horse' });
	for (const [, attribute] of Object.entries(['HttpOnly', 'SameSite=Strict', 'Secure', 'Path=/', 'Max-Age=2000']))
		assert.ok(given.headers.get('set-cookie').includes(attribute), attribute);
	const one = given.headers.get('set-cookie').split(';')[0];
	assert.match(one, /^__Host-tw_session=tws_[\w-]{43}$/);

	const again = await signIn(s, { name: 'ann', password: 'correct horse' }, { Cookie: one, ...change });
	const two = again.headers.get('set-cookie').split(';')[0];
	assert.notEqual(one, two);
	assert.equal((await s.get('/api/v1/projects', as(one))).status, 401, 'signing in ends the session before');

	const three = await cookieOf(s, 'ann', 'correct horse');
	assert.equal((await s.ask('DELETE', '/api/v1/session/all', as(two))).status, 204);
	for (const cookie of [two, three]) assert.equal((await s.get('/api/v1/projects', as(cookie))).status, 401, 'signed out everywhere');

	await s.stop();
	s.args = ['--session-idle', '600', '--session-max', '3600'];
	await s.start();
	const short = await cookieOf(s, 'ann', 'correct horse');
	assert.notEqual((await s.get('/api/v1/projects', as(short))).status, 401);
	s.sql('UPDATE session SET seen_ms=seen_ms-600000');
	assert.equal((await s.get('/api/v1/projects', as(short))).status, 401, 'unused for its time');
});

test('a key signs in, and its end is the end', async (t) => {
	const s = await startServer(t);
	const { headers } = await signIn(s, { token: s.write });
	const cookie = headers.get('set-cookie').split(';')[0];
	assert.ok(!cookie.includes(s.write), 'the cookie is no key');
	assert.equal((await who(s, cookie)).scope, 'write');
	const id = tracewell('key', 'list', '--data', s.data, '--project', 'test').split('\t')[0];
	tracewell('key', 'revoke', '--data', s.data, '--project', 'test', id);
	assert.equal((await s.get('/api/v1/traces', as(cookie))).status, 401);
	assert.equal((await s.get('/api/v1/traces', { key: cookie.split('=')[1] })).status, 401, 'a session is no key');
	for (const bad of [{}, { token: 5 }, { name: 'ann' }, { name: 'ann', password: 5 }, { name: 'a', password: 'b', token: 'c' }, { token: 'x'.repeat(200) }])
		assert.equal((await signIn(s, bad)).status, 400, JSON.stringify(bad));
});

test('a sign-in with an unknown name takes as long as one with a known name', async (t) => {
	const env = { TRACEWELL_CHEAP_PASSWORDS: undefined };
	const s = await startServer(t, { env });
	execFileSync(binary(), ['user', 'create', 'ann', '--data', s.data], { input: 'correct horse\n', env: { ...process.env, ...env } });
	const cpu = { ann: 0, nobody: 0 }; // ticks of the server's processor time, which other load does not change
	const ticks = () => fs.readFileSync(`/proc/${s.child.pid}/stat`, 'utf8').split(') ')[1].split(' ').slice(11, 15).reduce((sum, n) => sum + Number(n), 0);
	for (const name of ['ann', 'nobody']) {
		const before = ticks();
		for (let i = 0; i < 4; i++) assert.equal((await signIn(s, { name, password: 'a wrong one' })).status, 401);
		cpu[name] = ticks() - before;
	}
	t.diagnostic(`processor time of four wrong passwords: ${JSON.stringify(cpu)}`);
	assert.ok(cpu.ann > 8 && cpu.nobody >= cpu.ann / 3);
});

test('tries are counted, for a name and for an address', async (t) => {
	const s = await startServer(t);
	assert.ok(s.read);
	user(s, 'correct horse\n', 'create', 'ann');
	user(s, 'battery staple\n', 'create', 'bob');
	const wrong = (name) => signIn(s, { name, password: 'a wrong one' });
	const first = await wrong('ann');
	const unknown = await wrong('nobody');
	assert.equal(first.status, 401);
	assert.equal(first.text, unknown.text, 'the same words for both');

	for (const name of ['ann', 'nobody']) {
		const limited = await until(async () => {
			const answers = [await signIn(s, { name, password: 'correct horse' }), await signIn(s, { name: name.toUpperCase(), password: 'correct horse' })];
			if (answers.every(({ status }) => status === 429)) return answers;
			await Promise.all(Array.from({ length: 8 }, () => wrong(name))); /* one a minute is forgotten, in which a slow machine tries few */
		}, `${name} refused, also with the right password`, 240);
		for (const { headers } of limited) assert.ok(Number(headers.get('retry-after')) >= 1, headers.get('retry-after'));
	}
	assert.ok(await cookieOf(s, 'bob', 'battery staple'));
	for (let i = 0; i < 5; i++) assert.equal((await signIn(s, { name: `user${i}`, password: 'a wrong one' })).status, 401, `${i}`);
	await until(async () => { /* a slow machine forgets between two of them */
		await Promise.all(Array.from({ length: 8 }, (_, i) => signIn(s, { name: `other${i}`, password: 'a wrong one' })));
		return (await signIn(s, { name: 'bob', password: 'battery staple' })).status === 429 ? true : undefined;
	}, 'too many from here', 240);
	assert.equal((await signIn(s, { token: s.read })).status, 204, 'a key is not guessed');
	assert.match(s.log, /event=wrong_password .*address=127\.0\.0\.1/);
	assert.ok(!/correct horse|battery staple|a wrong one/.test(s.log));
});

test("another site's page changes nothing", async (t) => {
	const s = await startServer(t, { args: ['--public-url', 'https://traces.example/tw'] });
	assert.ok(s.read);
	user(s, 'correct horse\n', 'create', 'ann', '--server-admin');
	const cookie = await cookieOf(s, 'ann', 'correct horse');
	const body = JSON.stringify({ name: 'k', scope: 'ingest' });
	const make = (headers) => s.ask('POST', '/api/v1/keys', { key: null, body, headers: { Cookie: cookie, ...headers } });
	const own = `http://127.0.0.1:${s.port}`;
	for (const [headers, status] of [
		[{}, 403],
		[{ 'X-Tracewell': '2' }, 403],
		[change, 201],
		[{ ...change, Origin: own, 'Sec-Fetch-Site': 'same-origin' }, 201],
		[{ ...change, Origin: 'https://traces.example' }, 201],
		[{ ...change, 'Sec-Fetch-Site': 'none' }, 201],
		[{ ...change, Origin: 'https://evil.example' }, 403],
		[{ ...change, Origin: 'null' }, 403],
		[{ ...change, Origin: `${own}.evil.example` }, 403],
		[{ ...change, Origin: 'https://traces.example.evil' }, 403],
		[{ ...change, Origin: own, 'Sec-Fetch-Site': 'cross-site' }, 403],
		[{ ...change, 'Sec-Fetch-Site': 'same-site' }, 403],
	]) {
		const answer = await make(headers);
		assert.equal(answer.status, status, `${JSON.stringify(headers)}: ${answer.text}`);
	}
	const evil = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' };
	assert.equal((await signIn(s, { name: 'ann', password: 'correct horse' }, evil)).status, 403, 'nor signs anyone in');
	assert.equal((await s.ask('DELETE', '/api/v1/session', { key: null, headers: { Cookie: cookie, ...evil } })).status, 403, 'nor out');
	assert.equal((await s.get('/api/v1/projects', as(cookie))).status, 200);
	assert.equal((await s.post('/api/v1/traces', sampleTrace(), { headers: evil })).status, 202, 'a key is shown on purpose');
});

test('every response has the security headers for browsers', async (t) => {
	const https = await startServer(t, { args: ['--public-url', 'https://traces.example', '--max-body', '1024'] });
	const plain = await startServer(t);
	const key = https.ingest;
	const answers = {
		page: await https.get('/', { key: null }),
		json: await https.get('/api/v1/traces'),
		nobody: await https.get('/api/v1/traces', { key: null }),
		denied: await https.get('/api/v1/traces', { key }),
		'no such path': await https.get('/api/v1/nothing'),
		'no such method': await https.ask('PUT', '/healthz'),
		'too large': await https.post('/api/v1/traces', Buffer.alloc(2000)),
		'too long': await https.get('/' + 'x'.repeat(20000)),
		'no content': await https.ask('DELETE', '/api/v1/session', { key: null }),
	};
	assert.deepEqual(Object.values(answers).map((a) => a.status), [200, 200, 401, 403, 404, 405, 413, 414, 204]);
	assert.match(answers['no such path'].text, /no such path; .api.reference/);
	for (const [what, a] of Object.entries(answers)) {
		const of = (name) => a.headers.get(name) ?? '';
		assert.match(of('content-security-policy'), /default-src 'self'.*script-src 'self';.*object-src 'none'.*frame-ancestors 'none'.*base-uri 'none'/, what);
		assert.ok(!of('content-security-policy').includes('unsafe'), what);
		assert.equal(of('x-content-type-options'), 'nosniff', what);
		assert.equal(of('referrer-policy'), 'no-referrer', what);
		assert.equal(of('cross-origin-resource-policy'), 'same-origin', what);
		assert.match(of('strict-transport-security'), /^max-age=\d{8}$/, what);
	}
	assert.equal((await plain.get('/', { key: null })).headers.get('strict-transport-security'), null, 'not where there is no https');
});

test('no event loop waits for the catalogue while callers sign in and are looked up', { skip: !postgresIsThere && 'no PostgreSQL 15', timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const s = await startServer(t, { args: ['--catalog', db.url('loops'), '--http-threads', '1'] });
	user(s, 'a few good words', 'create', 'anna');
	const cookie = await cookieOf(s, 'anna', 'a few good words');
	void s.ingest, s.read;
	const ways = {
		'a key': () => s.get('/api/v1/traces'),
		'a key with an upload': () => s.post('/api/v1/traces', sampleTrace(5)),
		'a session': () => s.get('/api/v1/session', as(cookie)),
		'signing in with a key': () => signIn(s, { token: s.read }),
		'signing in with a password': () => signIn(s, { name: 'anna', password: 'a few good words' }),
	};
	const waiting = () => db.sql("SELECT pid, query_start FROM pg_stat_activity WHERE wait_event_type='Lock' ORDER BY 1, 2").trim();
	for (const [what, ask] of Object.entries(ways))
		await until(async () => {
			const psql = spawn('psql', ['-XqtA', db.base], { stdio: ['pipe', 'pipe', 'ignore'] });
			const locked = new Promise((done) => psql.stdout.once('data', done));
			psql.stdin.write("SET search_path=loops; BEGIN; LOCK TABLE api_key, session, \"user\" IN ACCESS EXCLUSIVE MODE; SELECT 'locked';\n");
			await locked;
			let answered = false;
			const answer = ask().then(() => (answered = true));
			const waits = await until(() => waiting() || answered || undefined, `${what} waits for the lock`);
			assert.equal((await s.get('/healthz', { key: null })).status, 200);
			const still = !answered && waiting() === waits; // on a slow machine the lock may time out during this
			psql.stdin.end('COMMIT;\n');
			await answer;
			return still || undefined;
		}, `the only event loop responds while ${what} waits for the catalogue`);
});
