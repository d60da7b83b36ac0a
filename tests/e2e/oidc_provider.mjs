/*
 * oidc_provider.mjs - OpenID providers for tests: a real one (oidc-provider), and one whose responses a test
 * chooses. Both are on loopback, at localhost, so that they are another site than 127.0.0.1.
 */
import { createHash, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import http from 'node:http';
import https from 'node:https';

import Provider from 'oidc-provider';

import { atEnd, cookiesOf } from './server.mjs';

export const CLIENT = { id: 'tracewell', secret: 'the secret of the client' };

const ALGS = { RS256: ['rsa', { modulusLength: 2048 }], ES256: ['ec', { namedCurve: 'P-256' }], ES384: ['ec', { namedCurve: 'P-384' }], PS256: ['rsa', { modulusLength: 2048 }] };

/* A fresh private key with its id, as a JWK. */
export function newKey(alg, kid) {
	const { privateKey } = generateKeyPairSync(...ALGS[alg]);
	return { ...privateKey.export({ format: 'jwk' }), kid, alg, use: 'sig' };
}

/* The first key of each provider: making one of RSA costs 0.2 s. */
const firstKeys = new Map();
const firstKey = (alg, kid) => firstKeys.get(alg + kid) ?? firstKeys.set(alg + kid, newKey(alg, kid)).get(alg + kid);

export const publicOf = (jwk) => ({ ...createPublicKey({ key: jwk, format: 'jwk' }).export({ format: 'jwk' }), kid: jwk.kid, alg: jwk.alg, use: 'sig' });

/* `tls`: { key, cert } for https. */
async function listen(t, tls) {
	const answer = (req, res) => server.answer(req, res);
	const server = tls ? https.createServer(tls, answer) : http.createServer(answer);
	await new Promise((done) => server.listen(0, '127.0.0.1', done));
	server.url = `${tls ? 'https' : 'http'}://localhost:${server.address().port}`;
	atEnd(t, () => {
		server.closeAllConnections();
		server.close();
	});
	return server;
}

/* The real provider's people, by their login names there. */
const people = new Map();
export const knows = (login, claims) => people.set(login, claims);

/*
 * The real provider for the server at `callback`. `.use(keys)` restarts it with other keys; `.only` is
 * called before each request and may answer it itself (true).
 */
export async function realProvider(t, callback, { alg = 'RS256', claimsInToken = false, client = {} } = {}) {
	const server = await listen(t);
	const self = { url: server.url, asked: [] };
	self.use = (keys) => {
		const provider = new Provider(server.url, {
			clients: [{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: [callback], response_types: ['code'],
				grant_types: ['authorization_code'], id_token_signed_response_alg: alg, ...client }],
			jwks: { keys },
			pkce: { required: () => true, methods: ['S256'] },
			conformIdTokenClaims: !claimsInToken,
			claims: { openid: ['sub'], profile: ['preferred_username'], email: ['email', 'email_verified'], groups: ['groups'] },
			scopes: ['openid', 'profile', 'email', 'groups'],
			findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...people.get(id) }) }),
			cookies: { keys: ['for the tests'] },
			enabledJWA: { idTokenSigningAlgValues: ['RS256', 'PS256', 'ES256', 'ES384'] },
		});
		const answer = provider.callback();
		server.answer = (req, res) => {
			self.asked.push(`${req.method} ${req.url.split('?')[0]}`);
			if (!self.only?.(req, res)) answer(req, res);
		};
	};
	self.use([firstKey(alg, 'first')]);
	return self;
}

const spell = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

export function jwt(header, claims, key) {
	const covered = `${spell(header)}.${spell(claims)}`;
	const how = { key, format: 'jwk', dsaEncoding: 'ieee-p1363' };
	return `${covered}.${sign('sha256', Buffer.from(covered), how).toString('base64url')}`;
}

/*
 * A provider whose tokens `.say` chooses: it receives the correct ({ header, claims, key }) and returns these
 * changed, or the token's text. Its codes are good once, and need the verifier of their challenge.
 */
export async function saysAnything(t, tls) {
	const server = await listen(t, tls);
	const self = { url: server.url, codes: new Map(), keys: [firstKey('RS256', 'one')], keysAsked: 0, asked: [] };
	const json = (res, status, body) => res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

	self.right = (nonce) => {
		const now = Math.floor(Date.now() / 1000);
		return { header: { alg: 'RS256', kid: self.keys[0].kid }, key: self.keys[0],
			claims: { iss: server.url, sub: 'sub-of-ann', aud: CLIENT.id, nonce, iat: now, exp: now + 300, preferred_username: 'ann' } };
	};
	/* The token's answer to a code. */
	self.token = (form, res) => {
		const of = self.codes.get(form.get('code'));
		self.codes.delete(form.get('code'));
		const challenge = createHash('sha256').update(form.get('code_verifier') ?? '').digest('base64url');
		if (!of || challenge !== of.challenge) return json(res, 400, { error: 'invalid_grant' });
		const said = (self.say ?? ((right) => right))(self.right(of.nonce));
		return json(res, 200, { token_type: 'Bearer', id_token: typeof said === 'string' ? said : jwt(said.header, said.claims, said.key) });
	};
	server.answer = (req, res) => {
		const { pathname, searchParams: q } = new URL(req.url, server.url);
		self.asked.push(pathname);
		if (self.only?.(pathname, res)) return;
		if (pathname === '/.well-known/openid-configuration')
			return json(res, 200, { issuer: server.url, authorization_endpoint: `${server.url}/auth`, token_endpoint: `${server.url}/token`, jwks_uri: `${server.url}/keys`, ...self.about });
		if (pathname === '/keys') return json(res, 200, { keys: self.keys.map(publicOf) });
		if (pathname === '/me') return json(res, 200, self.me);
		if (pathname === '/auth') {
			const code = `code${self.codes.size}${Math.random()}`;
			self.codes.set(code, { nonce: q.get('nonce'), challenge: q.get('code_challenge') });
			return res.writeHead(302, { location: `${q.get('redirect_uri')}?${new URLSearchParams({ code, state: q.get('state') })}` }).end();
		}
		const pieces = [];
		req.on('data', (p) => pieces.push(p)).on('end', () => self.token(new URLSearchParams(Buffer.concat(pieces).toString()), res));
	};
	return self;
}

/* A browser's cookies, by host and port; no domains, no paths: enough for two servers. */
export class Jar {
	constructor() {
		this.of = new Map();
		this.strict = new Set(); // names of those that other sites' pages do not make it send
	}

	header(url, fromElsewhere = false) {
		const all = [...(this.of.get(new URL(url).host) ?? [])];
		return all.filter(([k]) => !fromElsewhere || !this.strict.has(k)).map(([k, v]) => `${k}=${v}`).join('; ');
	}

	/* `fromElsewhere`: another site's page (the provider's) sent the browser here. */
	async ask(url, { fromElsewhere, ...options } = {}) {
		const cookie = this.header(url, fromElsewhere);
		const answer = await fetch(url, { redirect: 'manual', ...options, headers: { ...(cookie ? { Cookie: cookie } : {}), ...options.headers } });
		const host = new URL(url).host;
		if (!this.of.has(host)) this.of.set(host, new Map());
		for (const line of cookiesOf(answer.headers)) {
			const [pair] = line.split(';');
			const at = pair.indexOf('=');
			if (/max-age=0|expires=Thu, 01 Jan 1970/i.test(line)) this.of.get(host).delete(pair.slice(0, at));
			else this.of.get(host).set(pair.slice(0, at), pair.slice(at + 1));
			if (/samesite=strict/i.test(line)) this.strict.add(pair.slice(0, at));
		}
		answer.body_text = await answer.text();
		const to = answer.headers.get('location');
		answer.to = to ? new URL(to, url).href : null;
		return answer;
	}

	/* Follows redirects, filling the forms of the real provider as `login`, until `stop` returns true. */
	async follow(url, stop, login) {
		let answer = await this.ask(url);
		let here = url;
		for (let i = 0; i < 20; i++) {
			if (answer.to) {
				if (stop(answer.to)) return answer.to;
				here = answer.to;
				answer = await this.ask(here);
				continue;
			}
			const action = /action="([^"]+)"/.exec(answer.body_text)?.[1];
			if (!action || !login) return here;
			const prompt = /name="prompt" value="(\w+)"/.exec(answer.body_text)[1];
			const body = new URLSearchParams(prompt === 'login' ? { prompt, login, password: 'anything' } : { prompt });
			here = new URL(action, here).href;
			answer = await this.ask(here, { method: 'POST', body });
		}
		throw new Error(`no end of redirects at ${here}`);
	}
}
