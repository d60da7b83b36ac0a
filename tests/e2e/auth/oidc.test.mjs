/*
 * oidc.test.mjs - sign-in by an OpenID provider: a real one (oidc-provider) for accepted cases, and one
 * that sends invalid tokens for refused ones.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';

import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { CLIENT, Jar, jwt, knows, newKey, publicOf, realProvider, saysAnything } from '../oidc_provider.mjs';
import { atEnd, binary, cookiesOf, freePort, newFolder, startServer, tracewell, until } from '../server.mjs';

/* A port that is free now: provider and server must know each other's address before they run. */
/* A server that the provider signs people in to. */
async function signsIn(t, provider, args = [], env = { TRACEWELL_OIDC_CLIENT_SECRET: CLIENT.secret }) {
	const s = await startServer(t, { env, args: ['--oidc-issuer', provider.url, '--oidc-client-id', CLIENT.id, '--oidc-loopback-http', '--oidc-name', 'the firm', ...args] });
	assert.ok(s.read); // makes the project "test"
	return s;
}

async function withReal(t, args, options = {}, env) {
	const port = await freePort();
	const callback = `http://127.0.0.1:${port}/api/v1/oidc/callback`;
	const provider = await realProvider(t, callback, options);
	const s = await signsIn(t, provider, ['--listen', `127.0.0.1:${port}`, ...args], env);
	return { s, provider };
}

const begin = (s, next) => `${s.url}/api/v1/oidc/begin${next ? `?next=${encodeURIComponent(next)}` : ''}`;
const isCallback = (url) => url.includes('/api/v1/oidc/callback');
const whyOf = (to) => new URL(to).searchParams.get('oidc');

/* Signs in by the browser `jar`; where the server sends it to at last. */
async function signIn(s, jar, login, next) {
	const back = await jar.follow(begin(s, next), isCallback, login);
	assert.ok(isCallback(back), back);
	return (await jar.ask(back, { fromElsewhere: true })).to;
}

async function who(s, jar) {
	return JSON.parse((await jar.ask(`${s.url}/api/v1/session`)).body_text);
}

const make = (s, name, ...flags) => execFileSync(binary(), ['user', 'create', name, '--data', s.data, ...flags], { input: `password of ${name}\n`, stdio: ['pipe', 'pipe', 'pipe'] });

async function root(s) {
	make(s, 'root', '--server-admin');
	const signed = await s.ask('POST', '/api/v1/session', { key: null, body: JSON.stringify({ name: 'root', password: 'password of root' }) });
	const headers = { Cookie: signed.headers.get('set-cookie').split(';')[0], 'X-Tracewell': '1' };
	return (method, target, body) => s.ask(method, target, { key: null, headers, body: body && JSON.stringify(body) });
}

for (const [alg, options] of [['RS256', {}], ['ES256', { claimsInToken: true }], ['PS256', { client: { token_endpoint_auth_method: 'client_secret_post' } }], ['ES384', {}]])
	test(`a person signs in by a real provider, ${alg}`, async (t) => {
		const { s, provider } = await withReal(t, ['--oidc-create', '--oidc-new-roles', 'viewer:test'], { alg, ...options });
		knows('ann-1', { preferred_username: 'Ann', email: 'ann@firm.example', email_verified: true });
		const jar = new Jar();
		assert.deepEqual((await who(s, jar)).oidc, { name: 'the firm', linked: false });

		const first = await jar.ask(begin(s));
		const flow = cookiesOf(first.headers)[0];
		for (const attribute of ['HttpOnly', 'SameSite=Lax', 'Path=/api/v1/oidc', 'Max-Age=600']) assert.ok(flow.includes(attribute), flow);
		const asked = new URL(first.to).searchParams;
		assert.equal(asked.get('code_challenge_method'), 'S256');
		for (const secret of ['state', 'nonce', 'code_challenge']) assert.match(asked.get(secret), /^[\w-]{43}$/);

		const to = await signIn(s, jar, 'ann-1', '/builds?project=x');
		assert.equal(to, `${s.url}/builds?project=x`, 'back to where it was');
		const json = await who(s, jar);
		assert.deepEqual([json.user, json.scope, json.oidc.linked], ['ann', 'read', true]);
		assert.equal(provider.asked.includes('GET /me'), !options.claimsInToken, 'UserInfo is asked for what the token lacks');
		const { status } = await s.get('/api/v1/traces', { key: null, headers: { Cookie: jar.header(s.url) } });
		assert.equal(status, 200);

		const audit = (await (await root(s))('GET', '/api/v1/audit?limit=50&everywhere=1')).json.entries;
		const did = audit.filter((e) => e.actor.name === 'ann').map((e) => e.action).reverse();
		assert.deepEqual(did.filter((a) => a !== 'member.set'), ['user.create', 'identity.link', 'session.start']);
		const started = audit.find((e) => e.action === 'session.start' && e.actor.name === 'ann');
		assert.equal(started.facts.how, 'oidc');
		for (const secret of [CLIENT.secret, jar.header(s.url).split(/tw_session_\d+=/)[1], asked.get('state'), asked.get('nonce')])
			assert.ok(!s.log.includes(secret), 'a secret in the log');
	});

test('the session is one like any other: followed, ended, signed out', async (t) => {
	const { s } = await withReal(t, ['--oidc-create', '--session-max', '1000']);
	knows('bea', { preferred_username: 'bea' });
	const jar = new Jar();
	await signIn(s, jar, 'bea');
	const one = jar.header(s.url);
	assert.match(one, /tw_session_\d+=tws_[\w-]{43}/);
	assert.ok(!one.includes('tw_oidc'), 'the flow is over');
	const back = await jar.follow(begin(s), isCallback, 'bea');
	const again = await jar.ask(back, { fromElsewhere: true });
	const cookie = cookiesOf(again.headers).find((c) => c.startsWith('tw_session_'));
	for (const attribute of ['HttpOnly', 'SameSite=Strict', 'Path=/', 'Max-Age=1000']) assert.ok(cookie.includes(attribute), cookie);
	const old = await s.get('/api/v1/session', { key: null, headers: { Cookie: one } });
	assert.equal(old.status, 401, 'signing in ends the session before, though its cookie does not travel on the way back');
	assert.equal((await who(s, jar)).user, 'bea', 'the same account');
	assert.equal((await jar.ask(`${s.url}/api/v1/session`, { method: 'DELETE', headers: { 'X-Tracewell': '1' } })).status, 204);
	assert.equal((await who(s, jar)).signed_in, false);
});

test('unknown users are refused, and admitted by the provider\'s groups', async (t) => {
	const { s } = await withReal(t, []);
	knows('eve-7', { preferred_username: 'root', email: 'root@firm.example', email_verified: true });
	const admin = await root(s);
	const jar = new Jar();
	assert.equal(whyOf(await signIn(s, jar, 'eve-7')), 'not_invited', 'a name that is taken opens nothing');
	assert.match(s.log, /event=oidc_refused .*reason=not_invited subject=eve-7/);
	assert.equal((await who(s, jar)).signed_in, false);

	make(s, 'eve');
	assert.equal((await admin('PUT', '/api/v1/users/eve', { subject: 5 })).status, 400);
	assert.equal((await admin('PUT', '/api/v1/users/eve', { subject: 'eve-7' })).status, 204);
	assert.equal((await admin('PUT', '/api/v1/users/root', { subject: 'eve-7' })).status, 409);
	await signIn(s, jar, 'eve-7');
	assert.equal((await who(s, jar)).user, 'eve');
	const { users } = (await admin('GET', '/api/v1/users')).json;
	assert.deepEqual(users.map((u) => [u.name, u.oidc, u.disabled]), [['eve', true, false], ['root', false, false]]);

	await t.test('and disabled users are refused, in every way', async () => {
		assert.equal((await admin('PUT', '/api/v1/users/eve', { disabled: true })).status, 204);
		assert.equal((await jar.ask(`${s.url}/api/v1/session`)).status, 401, 'the session is over');
		assert.equal(whyOf(await signIn(s, new Jar(), 'eve-7')), 'disabled');
		const refused = await s.ask('POST', '/api/v1/session', { key: null, body: '{"name":"eve","password":"password of eve"}' });
		assert.equal(refused.status, 403);
		assert.match(refused.json.error.message, /disabled/);
		const wrong = await s.ask('POST', '/api/v1/session', { key: null, body: '{"name":"eve","password":"something else"}' });
		assert.equal(wrong.status, 401, 'shown only to those who know the password');
		assert.equal((await admin('PUT', '/api/v1/users/eve', { disabled: false })).status, 204);
		await signIn(s, jar, 'eve-7');
		assert.equal((await who(s, jar)).user, 'eve');
	});

	await t.test('the same from the command line', async () => {
		const listed = () => tracewell('user', 'list', '--data', s.data).split('\n').find((line) => line.startsWith('eve'));
		assert.equal(listed(), 'eve\tnone\tlinked');
		tracewell('user', 'disable', 'eve', '--data', s.data);
		assert.equal(listed(), 'eve\tnone\tdisabled\tlinked');
		assert.equal((await jar.ask(`${s.url}/api/v1/session`)).status, 401, 'the session is over');
		assert.equal(whyOf(await signIn(s, new Jar(), 'eve-7')), 'disabled');
		tracewell('user', 'enable', 'eve', '--data', s.data);
		await signIn(s, jar, 'eve-7');
		assert.equal((await who(s, jar)).user, 'eve');
		tracewell('user', 'unlink', 'eve', '--data', s.data);
		assert.notEqual((await who(s, jar)).user, 'eve', 'who came by it is out');
		assert.equal(whyOf(await signIn(s, new Jar(), 'eve-7')), 'not_invited');
		assert.throws(() => tracewell('user', 'unlink', 'eve', '--data', s.data), /not linked to a provider/);
		assert.throws(() => tracewell('user', 'disable', 'nobody', '--data', s.data));
		const { entries } = (await admin('GET', '/api/v1/audit?limit=20&everywhere=1')).json;
		assert.deepEqual(entries.filter((e) => e.actor.kind === 'cli').map((e) => e.action).slice(0, 3), ['identity.unlink', 'user.change', 'user.change']);
		assert.equal((await admin('PUT', '/api/v1/users/eve', { subject: 'eve-7' })).status, 204);
	});

	await t.test('and users whose link is removed', async () => {
		const jar = new Jar();
		await signIn(s, jar, 'eve-7');
		assert.equal((await who(s, jar)).user, 'eve');
		assert.equal((await admin('PUT', '/api/v1/users/eve', { subject: '' })).status, 204);
		assert.notEqual((await who(s, jar)).user, 'eve', 'who came by it is out');
		assert.equal(whyOf(await signIn(s, new Jar(), 'eve-7')), 'not_invited');
	});
});

test('an account is linked by the user who is signed in to it', async (t) => {
	const { s } = await withReal(t, []);
	knows('carl-9', { preferred_username: 'somebody' });
	make(s, 'carl');
	make(s, 'dora');
	const jar = new Jar();
	const enter = (name) => jar.ask(`${s.url}/api/v1/session`, { method: 'POST', body: JSON.stringify({ name, password: `password of ${name}` }) });
	const ask = (body) => jar.ask(`${s.url}/api/v1/oidc/link?next=/account`, { method: 'POST', headers: { 'X-Tracewell': '1' }, body: JSON.stringify(body) });
	const link = (name) => until(async () => { // the provider shares this process, and may answer late
		const answer = await ask({ password: `password of ${name}` });
		return answer.status < 500 ? answer : undefined;
	}, `a response to linking ${name}`);
	await enter('carl');
	assert.equal((await jar.ask(`${s.url}/api/v1/oidc/link`, { method: 'POST' })).status, 403, 'not asked for by our page');
	assert.equal((await ask({})).status, 400, 'a session is not enough');
	const refused = await ask({ password: 'password of dora' });
	assert.equal(refused.status, 403);
	assert.match(refused.body_text, /the password is wrong/);
	assert.equal((await who(s, jar)).user, 'carl', 'the session goes on');

	const left = new Jar(); // the same session in a second window, which signs out during the sign-in
	left.of.set(new URL(s.url).host, new Map(jar.of.get(new URL(s.url).host)));
	const begun = JSON.parse((await link('carl')).body_text);
	const late = await jar.follow(begun.location, isCallback, 'carl-9');
	assert.equal((await left.ask(`${s.url}/api/v1/session/all`, { method: 'DELETE', headers: { 'X-Tracewell': '1' } })).status, 204);
	assert.equal(whyOf((await jar.ask(late, { fromElsewhere: true })).to), 'state', 'what was begun ends with the session');
	assert.equal(whyOf(await signIn(s, new Jar(), 'carl-9')), 'not_invited', 'and nothing is linked');

	await enter('carl');
	const { location } = JSON.parse((await link('carl')).body_text);
	const back = await jar.follow(location, isCallback, 'carl-9');
	assert.equal((await jar.ask(back, { fromElsewhere: true })).to, `${s.url}/account`);
	assert.deepEqual((await who(s, jar)).oidc, { name: 'the firm', linked: true });
	const other = new Jar();
	await signIn(s, other, 'carl-9');
	assert.equal((await who(s, other)).user, 'carl');

	await enter('dora');
	const again = JSON.parse((await link('dora')).body_text);
	assert.equal(whyOf((await jar.ask(await jar.follow(again.location, isCallback, 'carl-9'))).to), 'linked', 'one person, one account');
	assert.equal((await who(s, jar)).user, 'dora');
	for (let i = 0; i < 10; i++) assert.equal((await ask({ password: 'a wrong one' })).status, 403);
	const tired = await link('dora');
	assert.equal(tired.status, 429, 'tries count as those of signing in');
	assert.ok(Number(tired.headers.get('retry-after')) > 0);
});

test('failed sign-ins count per account: others at the same address are not affected', async (t) => {
	const p = await saysAnything(t);
	const s = await signsIn(t, p, ['--oidc-create']);
	const enter = async (sub, name = sub) => {
		p.say = (right) => ({ ...right, claims: { ...right.claims, sub, preferred_username: name } });
		return whyOf(await signIn(s, new Jar()));
	};
	make(s, 'root');
	for (let i = 0; i < 40; i++) { // more than any limit of an address
		assert.equal(await enter('ann'), null, 'who is signed in does not count');
		const jar = new Jar();
		const no = new URL(await jar.follow(begin(s), isCallback));
		no.searchParams.delete('code');
		no.searchParams.set('error', 'access_denied');
		assert.equal(whyOf((await jar.ask(no.href)).to), 'refused', 'nor does who thinks better of it');
	}
	const whys = [];
	while (whys.length < 40 && whys.at(-1) !== 'busy') whys.push(await enter('intruder', 'root'));
	assert.deepEqual([...new Set(whys)], ['name_taken', 'busy'], 'a person who is refused again and again');
	assert.ok(whys.length > 10, 'ten tries');
	assert.equal(await enter('bea'), null, 'and nobody else');

	const guess = async () => {
		const jar = new Jar();
		const to = new URL(await jar.follow(begin(s), isCallback));
		to.searchParams.set('code', 'made up');
		return whyOf((await jar.ask(to.href)).to);
	};
	const guesses = [];
	const asked = () => p.asked.filter((a) => a === '/token').length;
	let before;
	while (guesses.length < 200 && guesses.at(-1) !== 'busy') {
		before = asked();
		guesses.push(await guess());
	}
	assert.equal(guesses.at(-1), 'busy');
	assert.ok(guesses.length > 30, 'thirty codes that the provider never gave, from one address');
	assert.equal(asked(), before, 'the provider is not asked any more');
	const byPassword = await s.ask('POST', '/api/v1/session', { key: null, body: JSON.stringify({ name: 'root', password: 'password of root' }) });
	assert.equal(byPassword.status, 204, 'passwords have a count of their own');
});

test('keys without an id, and changed keys of an id, are fetched again, but not for each token', async (t) => {
	const p = await saysAnything(t);
	const nameless = (alg) => ({ ...newKey(alg, 'x'), kid: undefined });
	p.keys = [nameless('RS256')];
	const s = await signsIn(t, p, ['--oidc-create']);
	const asked = () => p.asked.filter((a) => a === '/keys').length;
	assert.equal(whyOf(await signIn(s, new Jar())), null);
	p.keys = [nameless('RS256')];
	assert.equal(whyOf(await signIn(s, new Jar())), null, 'the new key is there at once');
	assert.equal(asked(), 2);
	const right = p.keys;
	const stranger = nameless('RS256');
	p.say = (said) => ({ ...said, key: stranger });
	/* keys are fetched at most once in ten seconds, which pass during a few sign-ins on a busy machine */
	await until(async () => {
		const before = asked();
		for (let i = 0; i < 4; i++) assert.equal(whyOf(await signIn(s, new Jar())), 'token');
		return asked() <= before + 1;
	}, 'wrong tokens share one key fetch');
	p.say = undefined;
	p.keys = right;
	assert.equal(whyOf(await signIn(s, new Jar())), null, 'and the keys that were known stay');
});

test('roles if the provider omits them', async (t) => {
	const p = await saysAnything(t);
	const s = await signsIn(t, p, ['--oidc-create', '--oidc-roles', 'perf=editor:test']);
	const jar = new Jar();
	const now = async (claims) => {
		p.say = (right) => ({ ...right, claims: { ...right.claims, ...claims } });
		await signIn(s, jar);
		return (await who(s, jar)).scope;
	};
	assert.equal(await now({ groups: ['perf'] }), 'write');
	assert.ok(!s.log.includes('oidc_no_role_claim'));
	assert.equal(await now({}), 'public', 'providers often omit the claim of a user who left every group');
	assert.match(s.log, /event=oidc_no_role_claim .*claim=groups subject=sub-of-ann/);
	assert.equal(await now({ groups: ['perf'] }), 'write');
	assert.equal(await now({ groups: null }), 'public');
});

test('an address and its word of being verified are of one document', async (t) => {
	const p = await saysAnything(t);
	p.about = { userinfo_endpoint: `${p.url}/me` };
	const tokens = p.token;
	p.token = (form, res) => tokens(form, { writeHead: (status, headers) => ({ end: (body) => res.writeHead(status, headers).end(JSON.stringify({ ...JSON.parse(body), access_token: 'x' })) }) });
	const s = await signsIn(t, p, ['--oidc-create', '--oidc-email-domains', 'firm.example']);
	const outcome = async (claims, me) => {
		p.say = (right) => ({ ...right, claims: { ...right.claims, ...claims } });
		p.me = { sub: 'sub-of-ann', ...me };
		return whyOf(await signIn(s, new Jar()));
	};
	assert.equal(await outcome({ email: 'a@firm.example' }, { email_verified: true }), 'email');
	assert.equal(await outcome({ email: 'a@firm.example' }, { email: 'a@firm.example', email_verified: true }), null);
});

test('a provider on https is believed by the authority that is named for it, and by no other', async (t) => {
	const dir = newFolder(t, 'tracewell-oidc-');
	const file = (name) => path.join(dir, name);
	const own = (name) => execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=localhost',
		'-addext', 'subjectAltName=DNS:localhost', '-keyout', file(`${name}.key`), '-out', file(`${name}.pem`)], { stdio: 'ignore' });
	own('theirs');
	own('other');
	const p = await saysAnything(t, { key: fs.readFileSync(file('theirs.key')), cert: fs.readFileSync(file('theirs.pem')) });
	const outcome = async (...args) => {
		const s = await startServer(t, { args: ['--oidc-issuer', p.url, '--oidc-client-id', CLIENT.id, '--oidc-create', ...args] });
		const { to } = await new Jar().ask(begin(s));
		return to.startsWith(p.url) ? 'sent there' : [whyOf(to), await until(() => /oidc_refused .*error=(.*)\n/.exec(s.log)?.[1], 'why, in the log')];
	};
	assert.equal(await outcome('--oidc-ca-file', file('theirs.pem')), 'sent there');
	for (const args of [[], ['--oidc-ca-file', file('other.pem')]]) {
		const [why, error] = await outcome(...args);
		assert.equal(why, 'away');
		assert.match(error, /certificate/);
	}
	const [why, error] = await outcome('--oidc-ca-file', file('nowhere.pem'));
	assert.equal(why, 'away');
	assert.match(error, /nowhere\.pem|CA|cert/i);
});

test('where the page is on https, cookies are of this host alone', async (t) => {
	const p = await saysAnything(t);
	const s = await signsIn(t, p, ['--oidc-create', '--public-url', 'https://traces.example']);
	const jar = new Jar();
	const first = await jar.ask(begin(s));
	assert.match(cookiesOf(first.headers)[0], /^__Host-tw_oidc=[^;]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/);
	const back = new URL(await jar.follow(first.to, isCallback));
	assert.equal(back.origin, 'https://traces.example');
	const here = `${s.url}${back.pathname}${back.search}`;
	const flow = jar.header(s.url);
	const planted = await fetch(here, { redirect: 'manual', headers: { Cookie: flow.replace('__Host-', '') } });
	assert.equal(whyOf(new URL(planted.headers.get('location'), s.url)), 'state', 'a cookie that a neighbour planted');
	const signed = await jar.ask(here, { fromElsewhere: true });
	assert.equal(whyOf(signed.to), null);
	const cookie = cookiesOf(signed.headers).find((c) => c.startsWith('__Host-tw_session'));
	for (const attribute of ['; Path=/;', 'HttpOnly', 'SameSite=Strict', 'Secure']) assert.ok(cookie.includes(attribute), cookie);
	assert.ok(!/domain/i.test(cookie));
	assert.equal((await who(s, jar)).user, 'ann');
	const plain = await s.get('/api/v1/session', { key: null, headers: { Cookie: jar.header(s.url).replace('__Host-', '') } });
	assert.equal(plain.json.signed_in, false, 'without the prefix it is nobody\'s');
});

test('roles follow the word of the provider', async (t) => {
	const { s } = await withReal(t, ['--oidc-create', '--oidc-scopes', 'openid profile groups', '--oidc-roles',
		'perf=viewer:test, /perf/leads=editor:test, cn=chief,  boss=server-admin, perf=viewer:no such project'.replace('cn=chief, ', '')]);
	const jar = new Jar();
	const now = async (groups) => {
		knows('fay', { preferred_username: 'fay', groups });
		await signIn(s, jar, 'fay');
		return (await who(s, jar)).scope;
	};
	assert.equal(await now([]), 'public');
	assert.equal(await now(['perf']), 'read');
	assert.equal(await now(['other', 'perf', '/perf/leads']), 'write', 'the highest');
	assert.equal(await now('perf'), 'read', 'one text, and a role that became less');
	assert.equal(await now(['boss']), 'server');
	assert.equal(await now(['Perf', 'per', 'perf ']), 'public', 'nothing like it counts');
	tracewell('key', 'create', '--data', s.data, '--project', 'second', '--new-project', '--scope', 'read');
	tracewell('user', 'role', 'fay', '--data', s.data, '--project', 'second', '--role', 'admin');
	assert.equal(await now(['perf']), 'read');
	assert.deepEqual((await who(s, jar)).projects.map((p) => p.name).sort(), ['second', 'test'], 'a project without a rule is left alone');
});

test('addresses: verified, and of a domain', async (t) => {
	const { s } = await withReal(t, ['--oidc-create', '--oidc-email-domains', 'firm.example, firm.test']);
	for (const [email, email_verified, fine] of [['a@firm.example', true, true], ['c@firm.example', false, false], ['e@evil.example', true, false]]) {
		const login = `of-${email}`;
		knows(login, { preferred_username: `u${email[0]}`, email, email_verified });
		const to = await signIn(s, new Jar(), login);
		assert.equal(whyOf(to), fine ? null : 'email', `${email} ${email_verified}`);
	}
});

test('names of new accounts', async (t) => {
	const { s } = await withReal(t, ['--oidc-create']);
	make(s, 'gus');
	for (const [name, why] of [['gus', 'name_taken'], ['GUS', 'name_taken'], ['a b', 'no_name'], ['<b>', 'no_name'], [undefined, 'no_name'], ['x'.repeat(65), 'no_name']]) {
		knows('gus-at-firm', { preferred_username: name });
		assert.equal(whyOf(await signIn(s, new Jar(), 'gus-at-firm')), why, name);
	}
});

test('changed keys are fetched once; a code is valid once', async (t) => {
	const { s, provider } = await withReal(t, ['--oidc-create']);
	knows('hal', { preferred_username: 'hal' });
	const jar = new Jar();
	await signIn(s, jar, 'hal');
	const asked = () => provider.asked.filter((a) => a === 'GET /jwks').length;
	assert.equal(asked(), 1);
	await signIn(s, jar, 'hal');
	assert.equal(asked(), 1, 'kept');
	provider.use([newKey('RS256', 'second')]);
	assert.equal(whyOf(await signIn(s, new Jar(), 'hal')), null);
	assert.equal(asked(), 2);

	const back = await jar.follow(begin(s), isCallback, 'hal');
	const flow = jar.header(s.url);
	assert.equal(whyOf((await jar.ask(back)).to), null);
	const replay = () => fetch(back, { redirect: 'manual', headers: { Cookie: flow } });
	const tokens = provider.asked.filter((a) => a === 'POST /token').length;
	assert.equal(whyOf(new URL((await replay()).headers.get('location'), s.url)), 'state', 'the state was used');
	assert.equal(provider.asked.filter((a) => a === 'POST /token').length, tokens, 'and the provider is not bothered');

	// a code seen by others is invalid in another flow
	const stolen = new URL(await jar.follow(begin(s), isCallback, 'hal')).searchParams.get('code');
	const other = new Jar();
	const own = new URL(await other.follow(begin(s), isCallback, 'hal'));
	own.searchParams.set('code', stolen);
	assert.equal(whyOf((await other.ask(own.href)).to), 'refused', 'PKCE');
});

test('a provider with false responses signs in no account', async (t) => {
	const p = await saysAnything(t);
	const s = await signsIn(t, p, ['--oidc-create']);
	const now = Math.floor(Date.now() / 1000);
	const outcome = async (say) => {
		p.say = say;
		const jar = new Jar();
		const to = await signIn(s, jar);
		const session = await who(s, jar);
		assert.equal(session.signed_in, whyOf(to) === null);
		return whyOf(to);
	};
	const claim = (changes) => (right) => ({ ...right, claims: { ...right.claims, ...changes } });
	const tamper = (at) => (right) => {
		const parts = jwt(right.header, right.claims, right.key).split('.');
		const bytes = Buffer.from(parts[at], 'base64url');
		bytes[bytes.length >> 1] ^= 1;
		parts[at] = bytes.toString('base64url');
		return parts.join('.');
	};
	const hmac = (right) => {
		const covered = jwt({ alg: 'HS256', kid: right.header.kid }, right.claims, right.key).split('.').slice(0, 2).join('.');
		return `${covered}.${Buffer.from('x'.repeat(32)).toString('base64url')}`;
	};
	assert.equal(await outcome((right) => right), null, 'the right one is taken');
	for (const [what, say, why] of [
		['another nonce', claim({ nonce: 'another' }), 'token'],
		['no nonce', claim({ nonce: undefined }), 'token'],
		['another client', claim({ aud: 'another' }), 'token'],
		['several clients, and not who asked', claim({ aud: [CLIENT.id, 'another'] }), 'token'],
		['asked for by another', claim({ aud: [CLIENT.id, 'another'], azp: 'another' }), 'token'],
		['several clients, asked for by us', claim({ aud: ['another', CLIENT.id], azp: CLIENT.id }), null],
		['another provider', claim({ iss: 'https://evil.example' }), 'token'],
		['over', claim({ iat: now - 1000, exp: now - 61 }), 'clock'],
		['over by less than clocks differ', claim({ iat: now - 1000, exp: now - 30 }), null],
		['of tomorrow', claim({ iat: now + 86400, exp: now + 90000 }), 'clock'],
		['without an end', claim({ exp: undefined }), 'token'],
		['of nobody', claim({ sub: undefined }), 'token'],
		['a changed claim', tamper(1), 'token'],
		['a changed signature', tamper(2), 'token'],
		['not signed', (r) => jwt({ alg: 'none' }, r.claims, r.key).replace(/[^.]*$/, ''), 'token'],
		['signed by nothing', (r) => jwt({ ...r.header, alg: 'none' }, r.claims, r.key), 'token'],
		['a shared secret', hmac, 'token'],
		['a key that it does not have', (r) => ({ ...r, header: { ...r.header, kid: 'unknown' } }), 'token'],
		['a key of its own making', (r) => ({ ...r, key: newKey('RS256', 'one') }), 'token'],
		['a key that it brings along', (r) => ({ ...r, header: { alg: 'RS256', jwk: publicOf(p.stranger) }, key: p.stranger }), 'token'],
		['no token', () => 'nonsense', 'token'],
	]) {
		p.stranger ??= newKey('RS256', 'stranger');
		assert.equal(await outcome(say), why, what);
		await s.stop(); // so that attempts are not counted together
		await s.start();
	}
});

test('a sign-in belongs to the browser that began it', async (t) => {
	const p = await saysAnything(t);
	const s = await signsIn(t, p, ['--oidc-create']);
	const mine = new Jar();
	const other = new Jar();
	const back = await mine.follow(begin(s), isCallback);
	await other.follow(begin(s), isCallback);
	assert.equal(whyOf((await other.ask(back)).to), 'state', 'another browser, with a sign-in of its own');
	assert.equal(whyOf((await new Jar().ask(back)).to), 'state', 'a browser without');
	for (const name of ['state', 'code']) {
		const cut = new URL(back);
		cut.searchParams.delete(name);
		const jar = new Jar();
		jar.of.set(new URL(s.url).host, new Map(mine.of.get(new URL(s.url).host)));
		if (name === 'state') assert.equal(whyOf((await jar.ask(cut.href)).to), 'state');
	}
	const forged = new Jar();
	await forged.follow(begin(s), isCallback);
	const cookies = forged.of.get(new URL(s.url).host);
	const flow = `tw_oidc_${s.port}`;
	cookies.set(flow, cookies.get(flow).replace(/^./, (c) => (c === 'A' ? 'B' : 'A')));
	assert.equal(whyOf((await forged.ask(back)).to), 'state', 'a cookie of their own making');
	assert.equal(whyOf((await mine.ask(back)).to), null, 'all that did not harm the one it belongs to');

	const elsewhere = await new Jar().ask(begin(s), { headers: { 'Sec-Fetch-Site': 'cross-site' } });
	assert.equal(whyOf(elsewhere.to), 'elsewhere');
	for (const next of ['https://evil.example/', '//evil.example', '/\\evil.example', 'evil', '/a b', `/${'x'.repeat(1100)}`]) {
		const jar = new Jar();
		assert.equal(await signIn(s, jar, undefined, next), `${s.url}/`, next);
	}
	const no = new URL(await mine.follow(begin(s), isCallback));
	no.searchParams.delete('code');
	no.searchParams.set('error', 'access_denied');
	assert.equal(whyOf((await mine.ask(no.href)).to), 'refused');
	const wrong = new URL(await mine.follow(begin(s), isCallback));
	wrong.searchParams.set('iss', 'https://evil.example');
	assert.equal(whyOf((await mine.ask(wrong.href)).to), 'token', 'an answer that says it is of another provider');
});

test('a provider that hangs, fails or never stops sending delays nothing else', async (t) => {
	const p = await saysAnything(t);
	const s = await signsIn(t, p, ['--oidc-create', '--query-deadline', '1500', '--query-threads', '1']);
	const waiting = [];
	atEnd(t, () => waiting.forEach((res) => res.destroy()));
	const hang = (at) => (pathname, res) => pathname === at && waiting.push(res);
	const away = async () => {
		const answer = await new Jar().ask(begin(s));
		return isCallback(answer.to) || !answer.to.startsWith(s.url) ? null : whyOf(answer.to);
	};
	p.only = (pathname, res) => pathname.includes('well-known') && res.writeHead(500).end('<h1>no</h1>');
	assert.equal(await away(), 'away');
	assert.match(s.log, /reason=away .*the provider responded with 500/);
	p.only = (pathname, res) => pathname.includes('well-known') && res.end(Buffer.alloc(1 << 20, ' '));
	await until(async () => (await away(), s.log.includes('the provider does not respond: Failed writing') ? true : undefined), 'an answer without end');
	p.about = { issuer: 'https://evil.example' };
	p.only = undefined;
	await until(async () => (await away(), s.log.includes('issuer is https://evil.example') ? true : undefined), 'another issuer');
	p.about = { token_endpoint: 'http://evil.example/token' };
	assert.equal(await away(), 'away');
	assert.match(s.log, /token_endpoint is not an https address/);
	p.about = {};
	await until(async () => ((await away()) === null ? true : undefined), 'the provider is back');

	p.only = hang('/token');
	const backs = await Promise.all(Array.from({ length: 12 }, async () => {
		const jar = new Jar();
		return { jar, back: await jar.follow(begin(s), isCallback) };
	}));
	let ended = 0;
	const ends = Promise.all(backs.map(async ({ jar, back }) => whyOf((await jar.ask(back).finally(() => ended++)).to)));
	assert.equal((await s.get('/api/v1/traces')).status, 200);
	assert.ok(ended < backs.length, 'the only thread of queries is free while they hang');
	const whys = await ends;
	assert.ok(whys.every((w) => w === 'away' || w === 'busy') && whys.includes('away'), `${whys}`);
	p.only = (pathname, res) => pathname === '/token' && res.writeHead(302, { location: `${p.url}/keys` }).end();
	const jar = new Jar();
	assert.equal(whyOf(await signIn(s, jar)), 'away', 'it is not followed elsewhere');
	p.only = undefined;
	assert.equal(whyOf(await signIn(s, jar)), null);
});

test('settings that cannot be meant keep the server from starting', async (t) => {
	const dir = newFolder(t, 'tracewell-oidc-');
	const empty = path.join(dir, 'empty');
	fs.writeFileSync(empty, '\n');
	const fails = (...args) => {
		try {
			execFileSync(binary(), ['serve', '--data', dir, '--listen', '127.0.0.1:0', ...args], { stdio: 'pipe', timeout: 60_000 });
		} catch (why) {
			return `${why.stdout}${why.stderr}`;
		}
		return assert.fail('it started');
	};
	const good = ['--oidc-issuer', 'https://id.example', '--oidc-client-id', 'x'];
	assert.match(fails('--oidc-issuer', 'http://id.example', '--oidc-client-id', 'x'), /not an https address/);
	assert.match(fails('--oidc-issuer', 'http://127.0.0.1.evil.example', '--oidc-client-id', 'x', '--oidc-loopback-http'), /not an https address/);
	assert.match(fails('--oidc-issuer', 'http://127.0.0.1@evil.example', '--oidc-client-id', 'x', '--oidc-loopback-http'), /not an https address/);
	assert.match(fails('--oidc-issuer', 'https://id.example'), /needs --oidc-client-id/);
	assert.match(fails(...good, '--oidc-scopes', 'profile'), /openid must be among them/);
	assert.match(fails(...good, '--oidc-client-secret-file', '/nowhere'), /No such file/);
	assert.match(fails(...good, '--oidc-client-secret-file', empty), /contains no secret/);
	assert.match(fails(...good, '--oidc-roles', 'perf=owner:test'), /is not a role/);
	assert.match(fails(...good, '--oidc-new-roles', 'viewer:test'), /--oidc-create/);
	// a user of the provider could take the name of a colleague whom the proxy signs in
	assert.match(fails(...good, '--oidc-create', '--trusted-proxies', '127.0.0.1', '--proxy-user-header', 'Remote-User'), /take the name of a user of the proxy/);
});

test('without a configured provider none of its routes exist', async (t) => {
	const s = await startServer(t);
	for (const target of ['begin', 'callback']) assert.equal((await s.get(`/api/v1/oidc/${target}`, { key: null })).status, 404);
	assert.equal((await s.get('/api/v1/session', { key: null })).json.oidc, null);
});

test('a public client, and a secret from a file', async (t) => {
	const dir = newFolder(t, 'tracewell-oidc-');
	const file = path.join(dir, 'secret');
	fs.writeFileSync(file, `${CLIENT.secret}\n`);
	knows('ida', { preferred_username: 'ida' });
	const open = await withReal(t, ['--oidc-create'], { client: { token_endpoint_auth_method: 'none', client_secret: undefined } }, {});
	assert.equal(whyOf(await signIn(open.s, new Jar(), 'ida')), null);
	const kept = await withReal(t, ['--oidc-create', '--oidc-client-secret-file', file], {}, {});
	assert.equal(whyOf(await signIn(kept.s, new Jar(), 'ida')), null);
	assert.ok(!kept.s.log.includes(CLIENT.secret));
	const none = await withReal(t, ['--oidc-create'], {}, {});
	assert.equal(whyOf(await signIn(none.s, new Jar(), 'ida')), 'refused');
});

test('a sign-in begun at one server is completed at another, once', { skip: postgresIsThere ? false : 'PostgreSQL 15 or later is not installed' }, async (t) => {
	const db = await startPostgres(t);
	const data = newFolder(t, 'tracewell-signin-');
	const servers = [];
	let to = 0;
	const balancer = http.createServer((q, r) => {
		const inner = http.request({ host: '127.0.0.1', port: servers[to].port, method: q.method, path: q.url, headers: q.headers, agent: false }, (answer) => {
			r.writeHead(answer.statusCode, answer.headers);
			answer.pipe(r);
		});
		inner.on('error', () => r.destroy());
		q.pipe(inner);
	});
	await new Promise((done) => balancer.listen(0, '127.0.0.1', done));
	atEnd(t, () => balancer.close() && balancer.closeAllConnections());
	const front = { url: `http://127.0.0.1:${balancer.address().port}` };
	const provider = await realProvider(t, `${front.url}/api/v1/oidc/callback`, {});
	for (let i = 0; i < 2; i++) servers.push(await startServer(t, { data, env: { TRACEWELL_OIDC_CLIENT_SECRET: CLIENT.secret }, args: ['--catalog', db.url('signin'), '--several-servers',
		'--oidc-issuer', provider.url, '--oidc-client-id', CLIENT.id, '--oidc-loopback-http', '--oidc-create', '--oidc-new-roles', 'viewer:test'] }));
	assert.ok(servers[0].read);
	knows('ann-2', { preferred_username: 'ann' });
	const jar = new Jar();
	const back = await jar.follow(begin(front), isCallback, 'ann-2');
	const flow = jar.header(front.url);
	assert.match(flow, /tw_oidc/);
	const at = (i) => {
		to = i;
		return jar.ask(back, { fromElsewhere: true });
	};
	assert.equal((await at(1)).to, `${front.url}/`);
	for (const i of [0, 1]) {
		to = i;
		assert.equal((await who(front, jar)).user, 'ann', 'signed in at both');
		const again = await fetch(back, { redirect: 'manual', headers: { Cookie: flow } });
		assert.equal(whyOf(new URL(again.headers.get('location'), front.url)), 'state', 'ended once');
	}
	to = 0;
	assert.equal((await jar.ask(`${front.url}/api/v1/session`, { method: 'DELETE', headers: { 'X-Tracewell': '1' } })).status, 204);
	to = 1;
	assert.equal((await who(front, jar)).signed_in, false, 'signed out at both');

	make(servers[0], 'root', '--server-admin');
	const guess = (i, password) => servers[i].ask('POST', '/api/v1/session', { key: null, body: JSON.stringify({ name: 'root', password }) });
	for (let i = 0; i < 10; i++) assert.equal((await guess(i % 2, 'a guess')).status, 401);
	for (const i of [0, 1]) {
		const late = await guess(i, 'password of root');
		assert.equal(late.status, 429, 'tries are counted for both together');
		assert.ok(Number(late.headers.get('retry-after')) > 0);
	}
	await servers[1].stop();
});
