/*
 * api.test.mjs - callers and their permissions, lists, deletion, health, and start and stop of the server.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import zlib from 'node:zlib';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { lint, parse } from '../prometheus.mjs';
import { atEnd, binary, makeData, sanitized, startServer, tracewell, until } from '../server.mjs';

test('a key reaches its own project and nothing else', async (t) => {
	const s = await startServer(t);
	const trace = await s.trace(sampleTrace(), { query: { build_id: 'b1' } });
	await s.put('/api/v1/builds/b1/methods', sampleMapping);
	const other = { read: s.key('read', 'other'), write: s.key('write', 'other'), ingest: s.key('ingest', 'other') };
	const at = `/api/v1/traces/${trace.id}`;

	for (const target of [at, `${at}/threads`, `${at}/names`, `${at}/methods`, `${at}/flame`, `${at}/slices?thread=4000`, `${at}/slices/0`, `${at}/search?q=a`, `${at}/perfetto`, `${at}/raw/trace`, '/api/v1/builds/b1'])
		assert.equal((await s.get(target, { key: other.read })).status, 404, target);
	assert.equal((await s.get(at, { key: other.ingest })).status, 404);
	assert.equal((await s.ask('DELETE', at, { key: other.write })).status, 404);
	assert.deepEqual((await s.get('/api/v1/traces', { key: other.read })).json, { traces: [], total: 0, total_is_capped: false, next_cursor: null });
	assert.deepEqual((await s.get('/api/v1/builds', { key: other.read })).json.builds, []);
	assert.deepEqual((await s.get('/api/v1/facets?column=app', { key: other.read })).json.values, []);
	assert.equal((await s.get('/api/v1/projects', { key: other.read })).json.projects.length, 1);

	await t.test('the same idempotency key in two projects is two traces', async () => {
		const headers = { 'Idempotency-Key': 'same' };
		const a = await s.post('/api/v1/traces', sampleTrace(9), { headers });
		const b = await s.post('/api/v1/traces', sampleTrace(9), { headers, key: other.ingest });
		assert.equal(a.status, 202);
		assert.equal(b.status, 202);
		assert.notEqual(a.json.id, b.json.id);
	});
	await t.test('scopes', async () => {
		assert.equal((await s.get(at, { key: s.ingest })).status, 200);
		assert.equal((await s.get(`${at}/threads`, { key: s.ingest })).status, 403);
		assert.equal((await s.get('/api/v1/traces', { key: s.ingest })).status, 403);
		assert.equal((await s.ask('DELETE', at, { key: s.ingest })).status, 403);
		assert.equal((await s.put('/api/v1/builds/b1/methods', sampleMapping, { key: s.read })).status, 403);
		assert.equal((await s.get('/api/v1/keys')).status, 403);
		assert.equal((await s.get('/api/v1/traces', { key: null })).status, 401);
	});
	await t.test('a revoked key has no access', async () => {
		const key = s.key('read', 'gone');
		const row = tracewell('key', 'list', '--data', s.data, '--project', 'gone').split('\t');
		assert.equal((await s.get('/api/v1/traces', { key })).status, 200);
		tracewell('key', 'revoke', '--data', s.data, '--project', 'gone', row[0]);
		assert.equal((await s.get('/api/v1/traces', { key })).status, 401);
		assert.match(tracewell('key', 'list', '--data', s.data, '--project', 'gone'), /revoked/);
	});
});

test('sessions', async (t) => {
	const s = await startServer(t);
	const project = (await s.get('/api/v1/projects')).json.projects[0];
	const signIn = (token) => s.ask('POST', '/api/v1/session', { key: null, body: JSON.stringify({ token }) });
	const link = tracewell('link', 'create', '--data', s.data, '--url', 'https://t.example/');
	assert.match(link, /^https:\/\/t\.example\/signin#twl_[\w-]{43}$/);

	const nobody = await s.get('/api/v1/session', { key: null });
	assert.equal(nobody.json.signed_in, false);
	assert.deepEqual(nobody.json.projects, []);

	const answer = await signIn(link.split('#')[1]);
	assert.equal(answer.status, 204, answer.text);
	const given = answer.headers.get('set-cookie');
	assert.match(given, /HttpOnly/);
	assert.match(given, /SameSite=Strict/);
	const cookie = given.split(';')[0];
	const as = (headers) => ({ key: null, headers: { Cookie: cookie, ...headers } });
	const change = { 'X-Tracewell': '1' };

	await t.test('a link is used once', async () => assert.equal((await signIn(link.split('#')[1])).status, 401));
	await t.test('an admin sees the projects', async () => {
		const { json } = await s.get('/api/v1/session', as());
		assert.equal(json.scope, 'server');
		assert.equal(json.projects.length, 1);
		assert.deepEqual(json.project, project);
		assert.equal((await s.get(`/api/v1/traces?project=${project.id}`, as())).status, 200);
		assert.equal((await s.get('/api/v1/traces?project=01ARZ3NDEKTSV4RRFFQ69G5FAV', as())).status, 404);
		assert.equal((await s.get(`/api/v1/traces?project=${project.name}`, as())).status, 200);
		assert.equal((await s.get('/api/v1/traces?project=elsewhere', as())).status, 404);
		for (const name of [project.name, 'elsewhere'])
			assert.equal((await s.get(`/api/v1/traces?project=${name}`, { key: 'unknown' })).status, 401, 'no names without credentials');
	});
	await t.test('changes by cookie need the guard header', async () => {
		const body = JSON.stringify({ name: 'k', scope: 'ingest' });
		assert.equal((await s.ask('POST', '/api/v1/keys', { ...as(), body })).status, 403);
		const made = await s.ask('POST', '/api/v1/keys', { ...as(change), body });
		assert.equal(made.status, 201);
		assert.equal((await s.post('/api/v1/traces', sampleTrace(), { key: made.json.key })).status, 202);
		const { keys } = (await s.get('/api/v1/keys', as())).json;
		assert.ok(keys.some((k) => k.id === made.json.id && k.scope === 'ingest' && k.revoked_ms === 0));
		assert.ok(!JSON.stringify(keys).includes(made.json.key), 'secrets are not listed');
		assert.equal((await s.ask('DELETE', `/api/v1/keys/${made.json.id}`, as(change))).status, 204);
		assert.equal((await s.post('/api/v1/traces', sampleTrace(), { key: made.json.key })).status, 401);
		for (const bad of ['{}', '[]', 'x', '{"scope":"server"}', '{"scope":"read","name":5}', '{"scope":"read","name":"a\\u0000"}'])
			assert.equal((await s.ask('POST', '/api/v1/keys', { ...as(change), body: bad })).status, 400, bad);
	});
	await t.test('a read token signs in for its project', async () => {
		const token = await signIn(s.read);
		assert.equal(token.status, 204);
		const headers = { Cookie: token.headers.get('set-cookie').split(';')[0] };
		const { json } = await s.get('/api/v1/session', { key: null, headers });
		assert.equal(json.scope, 'read');
		assert.equal((await s.get('/api/v1/keys', { key: null, headers })).status, 403);
		assert.equal((await signIn(s.ingest)).status, 401);
	});
	await t.test('signing out ends it', async () => {
		assert.equal((await s.ask('DELETE', '/api/v1/session', as(change))).status, 204);
		assert.equal((await s.get('/api/v1/traces', as())).status, 401);
	});
	await t.test('no secret in the log', () => {
		for (const secret of [s.read, s.ingest, cookie.split('=')[1], link.split('#')[1]]) assert.ok(!s.log.includes(secret));
	});
});

test('traces by label, session, version code, ABI and when they were recorded', async (t) => {
	const s = await startServer(t);
	const at = Date.now() - 86_400_000;
	const ids = [];
	for (let i = 0; i < 4; i++) {
		const labels = JSON.stringify({ user: `u=${i % 2},x`, n: i, beta: i > 1 });
		ids.push((await s.trace(sampleTrace(10 + i), { query: { version_code: `${99 + i}`, abi: i ? 'arm64-v8a' : 'x86', session_id: `s-${i >> 1}`, started_at: `${at + i * 1000}`, labels } })).id);
	}
	const is = async (query, which) => {
		const { status, json, text } = await s.get(`/api/v1/traces?${new URLSearchParams(query)}`);
		assert.equal(status, 200, text);
		assert.deepEqual(json.traces.map((x) => ids.indexOf(x.id)).sort(), which, JSON.stringify(query));
		assert.equal(json.total, which.length);
	};
	await is([['label', 'user=u=0,x']], [0, 2]);
	await is([['label', 'user=u=0,x'], ['label', 'beta=true']], [2]);
	await is([['label', 'user=u=0,x'], ['label', 'user=u=1,x']], []);
	await is([['label', 'n=3']], [3]);
	await is([['label', 'n=']], []);
	await is([['label', 'colour=']], [0, 1, 2, 3]);
	await is([['label', 'colour=red']], []);
	await is([['session_id', 's-1']], [2, 3]);
	await is([['session_id', 's-1'], ['label', 'n=2']], [2]);
	await is([['version_code', '100']], [1]);
	await is([['version_code_min', '100']], [1, 2, 3]);
	await is([['version_code_min', '99'], ['version_code_max', '100']], [0, 1]);
	await is([['abi', 'x86']], [0]);
	await is([['recorded_since', `${at + 1000}`], ['recorded_until', `${at + 3000}`]], [1, 2]);
	const values = async (column) => (await s.get('/api/v1/facets', { query: { column } })).json.values;
	assert.deepEqual(await values('abi'), [{ value: 'arm64-v8a', count: 3 }, { value: 'x86', count: 1 }]);
	assert.deepEqual((await values('label')).slice(0, 3), [{ value: 'beta=false', count: 2 }, { value: 'beta=true', count: 2 }, { value: 'user=u=0,x', count: 2 }]);
	for (const [bad, why] of [['abi=x86&abi=arm64-v8a', /abi is given more than once/], ['label=x', /label must be KEY=VALUE/], ['version_code_min=8.1', /version_code_min must be a number/], ['recorded_since=today', /recorded_since must be a number/]]) {
		const { status, json } = await s.get(`/api/v1/traces?${bad}`);
		assert.equal(status, 400, bad);
		assert.match(json.error.message, why);
	}
});

test('lists, pages, filters and deletion', async (t) => {
	const s = await startServer(t);
	const ids = [];
	for (let i = 0; i < 7; i++) {
		const query = { app: i % 2 ? 'odd' : 'even', scenario: 'page', device: `device-${i}` };
		ids.push((await s.trace(sampleTrace(10 + i), { query })).id);
	}
	const list = async (query) => (await s.get('/api/v1/traces', { query })).json;

	await t.test('pages hold each trace once', async () => {
		const seen = [];
		let cursor = '';
		do {
			const page = await list({ limit: '3', ...(cursor ? { cursor } : {}) });
			assert.equal(page.total, 7);
			seen.push(...page.traces.map((x) => x.id));
			cursor = page.next_cursor;
		} while (cursor);
		assert.deepEqual(seen, [...ids].reverse());
	});
	await t.test('sorting and filters', async () => {
		const sizes = (await list({ sort: 'slices', order: 'asc' })).traces.map((x) => x.summary.slices);
		assert.deepEqual(sizes, [...sizes].sort((a, b) => a - b));
		assert.equal((await list({ app: 'odd' })).total, 3);
		assert.equal((await list({ q: 'ice-3' })).total, 1);
		assert.equal((await list({ state: 'failed' })).total, 0);
		assert.equal((await list({ app: "x' OR '1'='1" })).total, 0);
		assert.deepEqual((await s.get('/api/v1/facets?column=app')).json.values, [{ value: 'even', count: 4 }, { value: 'odd', count: 3 }]);
		for (const bad of ['sort=x', 'order=up', 'limit=0', 'limit=501', 'state=x', 'since=x', 'cursor=nonsense'])
			assert.equal((await s.get(`/api/v1/traces?${bad}`)).status, 400, bad);
		assert.equal((await s.get('/api/v1/facets?column=key_id')).status, 400);
		const { error } = (await s.get('/api/v1/traces?order=up')).json;
		assert.match(error.message, /^order must be (desc or asc|asc or desc), not up$/);
		const put = await s.ask('PUT', '/api/v1/traces');
		assert.equal(put.json.error.message, 'this path supports POST, GET, HEAD, not PUT');
	});
	await t.test('deletion takes row, trace file and blobs', { skip: process.env.TRACEWELL_TEST_BUCKET && 'its files are in a store (storage.test.mjs)' }, async () => {
		const count = (folder) => fs.readdirSync(path.join(s.data, folder), { recursive: true, withFileTypes: true }).filter((e) => e.isFile()).length;
		const [blobs, files] = [count('blobs'), count('traces')];
		assert.equal((await s.ask('DELETE', `/api/v1/traces/${ids[0]}`)).status, 204);
		assert.equal((await s.get(`/api/v1/traces/${ids[0]}`)).status, 404);
		assert.equal((await s.ask('DELETE', `/api/v1/traces/${ids[0]}`)).status, 404);
		assert.equal(count('blobs'), blobs - 1);
		assert.equal(count('traces'), files - 1);
		for (const bad of ['x', '..%2f..', '%2e%2e', "'", ids[1].toLowerCase()]) assert.equal((await s.get(`/api/v1/traces/${bad}`)).status, 404, bad);
	});
});

test('health, metrics and the page', async (t) => {
	const s = await startServer(t);
	assert.deepEqual((await s.get('/healthz', { key: null })).json, { status: 'ok' });
	assert.equal((await s.get('/readyz', { key: null })).json.status, 'ready');
	await s.trace(sampleTrace());
	await t.test('metrics are in Prometheus form', async () => {
		const { text, headers } = await s.get('/metrics', { key: null });
		assert.match(headers.get('content-type'), /^text\/plain; version=0\.0\.4/);
		lint(parse(text));
		assert.match(text, /tracewell_requests_total\{method="POST",route="\/api\/v1\/traces",status="202"\} 1\n/);
		assert.match(text, /tracewell_queue_traces 0\n/);
		assert.match(text, /tracewell_decodes_total\{format="btrace2",outcome="ready"\} 1\n/);
	});
	await t.test('page addresses give the page, files their type', async () => {
		for (const target of ['/', '/traces/01ARZ3NDEKTSV4RRFFQ69G5FAV', '/signin', '/builds', '/builds/8.3.1']) {
			const answer = await s.get(target, { key: null });
			assert.equal(answer.status, 200);
			assert.match(answer.headers.get('content-type'), /^text\/html/);
			assert.match(answer.headers.get('content-security-policy'), /default-src 'self'.*frame-ancestors 'none'/);
		}
		for (const target of ['/no.js', '/assets/no', '/api/v1/no', '/api', '/.git/config', '/tracesx', '/..%2f..%2fetc%2fpasswd'])
			assert.equal((await s.get(target, { key: null })).status, 404, target);
	});
	await t.test('responses are compressed as requested', async () => {
		const gzip = await s.get('/api/v1/openapi.json', { key: null, headers: { 'Accept-Encoding': 'gzip' } });
		assert.equal(gzip.headers.get('content-encoding'), 'gzip');
		assert.equal(gzip.headers.get('vary'), 'Accept-Encoding');
		const socket = await s.socket('GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept-Encoding: gzip;q=0.5, zstd\r\n\r\n');
		assert.match(await socket.answer, /Content-Encoding: zstd/);
	});
	await t.test('idle memory', { skip: sanitized() && 'built with a sanitizer' }, async () => {
		const mib = s.resident();
		t.diagnostic(`resident after one trace: ${mib.toFixed(1)} MiB`);
		assert.ok(mib <= 40, `${mib} MiB`);
	});
});

test('the command line', async (t) => {
	const fails = (...args) => {
		try {
			tracewell(...args);
		} catch (e) {
			return e;
		}
		return assert.fail(`${args.join(' ')} went through`);
	};
	assert.match(tracewell('version'), /^tracewell \d+\.\d+\.\d+$/);
	assert.match(tracewell('help'), /tracewell serve/);
	assert.match(tracewell('serve', '--help'), /--max-body/);
	assert.equal(fails('nonsense').status, 2);
	assert.equal(fails('serve', '--no-such-flag', '1').status, 2);
	assert.match(fails('serve', '--listen', '0.0.0.0:0').stderr, /behind-proxy/);
	const data = ['--data', path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-cli-')), 'new')];
	atEnd(t, () => fs.rmSync(path.dirname(data[1]), { recursive: true }));
	assert.match(fails('key', 'create', ...data, '--project', 'p', '--scope', 'read').stderr, /is not a data folder of a server/);
	await makeData(data[1]);
	assert.equal(fails('key', 'create', ...data, '--project', 'p').status, 2);
	assert.equal(fails('key', 'create', ...data, '--scope', 'read').status, 2);
	assert.equal(fails('key', 'create', ...data, '--project', 'a\nb', '--scope', 'read').status, 2);
	assert.match(tracewell('key', 'create', ...data, '--project', 'p', '--scope', 'read'), /^twr_[\w-]{43}$/);
	assert.ok(fs.existsSync(binary()));

	await t.test('IPv6', async (t6) => {
		const s = await startServer(t6, { args: ['--listen', '[::1]:0'] }).catch(() => null);
		if (!s) return t6.skip('no IPv6 here');
		assert.equal((await fetch(`http://[::1]:${s.port}/healthz`)).status, 200);
	});
	await t.test('a port in use is reported', async (tp) => {
		const s = await startServer(tp);
		const e = fails('serve', '--data', s.data + '-2', '--listen', `127.0.0.1:${s.port}`);
		fs.rmSync(s.data + '-2', { recursive: true, force: true });
		assert.equal(e.status, 1);
		assert.match(e.stderr, /cannot listen on \S+: Address already in use: stop the program that uses it .*another port/);
	});
	await t.test('an address of another machine is reported', () => {
		const e = fails('serve', '--data', data[1] + '-away', '--listen', '192.0.2.1:8080', '--behind-proxy');
		assert.equal(e.status, 1);
		assert.match(e.stderr, /Cannot assign requested address: set an address of this machine/);
	});
	await t.test('a data folder that is a file is reported', () => {
		fs.writeFileSync(data[1] + '-file', '');
		assert.match(fails('serve', '--data', data[1] + '-file', '--listen', '127.0.0.1:0').stderr, /--data \S+-file is not a folder/);
	});
	await t.test('an unreachable PostgreSQL is reported, with the reason on one line', () => {
		const { stderr } = fails('serve', '--data', data[1] + '-pg', '--listen', '127.0.0.1:0', '--catalog', 'postgres://nobody@127.0.0.1:1/none');
		assert.match(stderr, /event=catalogue_lost reason=.*Connection refused/);
		assert.doesNotMatch(stderr, /\\u000/); // a line break within a value
		assert.match(stderr, /catalogue: no connection to its server; the log has the reason/);
	});
});

test('a stop is graceful', async (t) => {
	const s = await startServer(t);
	const body = sampleTrace(40);
	const socket = await s.socket(
		`POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${s.ingest}\r\nContent-Length: ${body.length}\r\n\r\n`,
	);
	socket.write(body.subarray(0, 100));
	/* one is the question itself */
	await until(async () => (/^tracewell_requests_open 2$/m.test((await s.get('/metrics', { key: null })).text) ? true : undefined), 'an upload under way');
	s.child.kill('SIGTERM');
	await until(() => (/event=stopping/.test(s.log) ? true : undefined), 'the stop has begun');
	socket.write(body.subarray(100));
	assert.match(await socket.answer, /^HTTP\/1\.1 202 /);
	assert.deepEqual(await s.ended, { code: 0, signal: null });
	assert.match(s.log, /event=stopped/);
	await s.start();
	await until(async () => ((await s.get('/api/v1/traces?state=ready')).json.total === 1 ? true : undefined), 'decoded after the restart');
});

test('replies to keep', async (t) => {
	const s = await startServer(t);
	const trace = await s.trace(sampleTrace());
	const raw = await s.get(`/api/v1/traces/${trace.id}/raw/trace`);
	assert.ok(raw.bytes.equals(sampleTrace()), `${raw.status}: ${raw.bytes.length} bytes`);
	const packed = zlib.gzipSync(sampleTrace(12));
	const second = await s.trace(packed);
	assert.ok((await s.get(`/api/v1/traces/${second.id}/raw/trace`)).bytes.equals(packed));
	assert.equal((await s.get(`/api/v1/traces/${trace.id}/raw/threads`)).status, 404);
});
