/*
 * keys.test.mjs - life of keys: expiry, rotation with two valid secrets for a time, revocation, and the
 * record of their use.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';

import { sampleMapping } from '../make.mjs';
import { binary, makeData, newFolder, startServer, tracewell } from '../server.mjs';

const json = (o) => JSON.stringify(o);

async function made(s, body) {
	const a = await s.ask('POST', '/api/v1/keys', { key: s.admin, body: json(body) });
	assert.equal(a.status, 201, a.text);
	return a.json;
}

const keyOf = async (s, id) => (await s.get('/api/v1/keys', { key: s.admin })).json.keys.find((k) => k.id === id);
const works = async (s, key) => (await s.get('/api/v1/traces', { key })).status;
/* Expires the old secret, and the sessions that end with it. */
const endGrace = (s, id) => s.sql(`UPDATE session SET expires_ms=1 WHERE expires_ms<=(SELECT old_until_ms FROM api_key WHERE key_id='${id}'); UPDATE api_key SET old_until_ms=1 WHERE key_id='${id}'`);
const rotate = (s, id, body) => s.ask('POST', `/api/v1/keys/${id}/rotate`, { key: s.admin, body: json(body) });

test('a key expires at its stated time, with its sessions', async (t) => {
	const s = await startServer(t);
	const k = await made(s, { name: 'short', scope: 'read', expires_ms: Date.now() + 3_600_000 });
	assert.equal(await works(s, k.key), 200);
	const signed = await s.ask('POST', '/api/v1/session', { key: null, body: json({ token: k.key }) });
	const cookie = { key: null, headers: { Cookie: signed.headers.get('set-cookie').split(';')[0] } };
	assert.equal((await s.get('/api/v1/traces', cookie)).status, 200);
	s.sql(`UPDATE session SET expires_ms=1 WHERE expires_ms<=(SELECT expires_ms FROM api_key WHERE key_id='${k.id}'); UPDATE api_key SET expires_ms=1 WHERE key_id='${k.id}'`);
	const over = await s.get('/api/v1/traces', { key: k.key });
	assert.equal(over.status, 401);
	assert.match(over.json.error.message, /the key has expired; ask an admin/);
	assert.equal((await s.get('/api/v1/traces', cookie)).status, 401);
	const again = await rotate(s, k.id, {});
	assert.equal(again.status, 400);
	assert.match(again.json.error.message, /has expired; send another expires_ms/);
	const renewed = await rotate(s, k.id, { expires_ms: 0 });
	assert.equal(await works(s, renewed.json.key), 200);
	assert.equal(await works(s, k.key), 401, 'a secret that had ended does not come back');
});

test('keys are listed by pages, newest first, and completely by the command', async (t) => {
	const s = await startServer(t);
	const ids = [];
	for (let i = 0; i < 5; i++) ids.unshift((await made(s, { name: `k${i}`, scope: 'read' })).id);
	const all = (await s.get('/api/v1/keys', { key: s.admin })).json;
	assert.equal(all.next_cursor, null);
	assert.deepEqual(all.keys.slice(0, 5).map((k) => k.id), ids);
	const seen = [];
	for (let cursor = ''; cursor !== null;) {
		const page = (await s.get('/api/v1/keys', { key: s.admin, query: { limit: 2, cursor } })).json;
		assert.ok(page.keys.length <= 2);
		seen.push(...page.keys);
		cursor = page.next_cursor;
	}
	assert.deepEqual(seen.map((k) => k.id), all.keys.map((k) => k.id));
	assert.equal((await s.get('/api/v1/keys', { key: s.admin, query: { limit: 501 } })).status, 400);
	s.sql("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i<999) INSERT INTO api_key(project_id,key_id,name,scope,hash,created_ms) SELECT project_id,printf('00%024d',i),'many',1,CAST(printf('%032d',i) AS BLOB),1 FROM n, project WHERE name='test'");
	const rows = tracewell('key', 'list', '--data', s.data, '--project', 'test').trim().split('\n').map((row) => row.split('\t')[0]);
	assert.equal(rows.length, all.keys.length + 1000);
	assert.equal(new Set(rows).size, rows.length);
});

test('sessions end with the secret that began them', async (t) => {
	const s = await startServer(t);
	const k = await made(s, { scope: 'read' });
	const session = async (key) => {
		const signed = await s.ask('POST', '/api/v1/session', { key: null, body: json({ token: key }) });
		const cookie = { Cookie: signed.headers.get('set-cookie').split(';')[0] };
		return async () => (await s.get('/api/v1/traces', { key: null, headers: cookie })).status;
	};
	const before = await session(k.key);
	const two = (await rotate(s, k.id, { grace_s: 3600 })).json;
	const inGrace = await session(k.key);
	const after = await session(two.key);
	assert.deepEqual([await before(), await inGrace(), await after()], [200, 200, 200]);
	endGrace(s, k.id);
	assert.deepEqual([await before(), await inGrace(), await after()], [401, 401, 200]);
	await rotate(s, k.id, { grace_s: 0 });
	assert.equal(await after(), 401);
});

test('ends that make no sense are refused', async (t) => {
	const s = await startServer(t);
	for (const expires_ms of [1, -1, Date.now() - 1000, '2030', 1.5, true, Number.MAX_SAFE_INTEGER])
		assert.equal((await s.ask('POST', '/api/v1/keys', { key: s.admin, body: json({ scope: 'read', expires_ms }) })).status, 400, String(expires_ms));
	const k = await made(s, { scope: 'read' });
	for (const grace_s of [-1, 366 * 86400 + 1, '1', 0.5, null])
		assert.equal((await rotate(s, k.id, { grace_s })).status, 400, String(grace_s));
	assert.equal(await works(s, k.key), 200, 'nothing was changed by those');
	assert.equal((await rotate(s, '01ARZ3NDEKTSV4RRFFQ69G5FAV', {})).status, 404);
});

test('a rotated key has two secrets for a time, and reports whether the old one is used', async (t) => {
	const s = await startServer(t);
	const k = await made(s, { name: 'field', scope: 'read' });
	assert.equal((await keyOf(s, k.id)).last_used_ms, 0);
	const began = Date.now();
	assert.equal(await works(s, k.key), 200);
	const first = await keyOf(s, k.id);
	assert.ok(first.last_used_ms >= began && first.last_used_ms <= Date.now());
	assert.equal(first.last_used_address, '127.0.0.1');
	const r = await rotate(s, k.id, { grace_s: 3600 });
	assert.equal(r.status, 200, r.text);
	assert.equal(r.json.id, k.id, 'the key is the same');
	assert.notEqual(r.json.key, k.key);
	assert.match(r.json.key, /^twr_/);
	assert.equal(await works(s, r.json.key), 200);
	assert.equal((await keyOf(s, k.id)).old_last_used_ms, 0, 'nobody used the old one since');
	assert.equal(await works(s, k.key), 200, 'the old one works on');
	assert.ok((await keyOf(s, k.id)).old_last_used_ms >= (await keyOf(s, k.id)).rotated_ms, 'somebody still has it');
	const row = await keyOf(s, k.id);
	assert.equal(row.old_expires_ms, r.json.old_expires_ms);
	endGrace(s, k.id);
	assert.equal(await works(s, r.json.key), 200);
	const over = await s.get('/api/v1/traces', { key: k.key });
	assert.equal(over.status, 401);
	assert.match(over.json.error.message, /rotated and its old secret has ended/);
});

test('a second rotation ends the first secret immediately, revoking ends both', async (t) => {
	const s = await startServer(t);
	const k = await made(s, { scope: 'write', expires_ms: Date.now() + 3_600_000 });
	const two = (await rotate(s, k.id, {})).json;
	const three = (await rotate(s, k.id, {})).json;
	assert.equal(await works(s, k.key), 401);
	assert.equal(await works(s, two.key), 200);
	assert.equal(await works(s, three.key), 200);
	const row = await keyOf(s, k.id);
	assert.ok(row.expires_ms > Date.now());
	assert.equal(row.old_expires_ms, row.expires_ms, 'a week, but not longer than it had');
	assert.equal((await s.ask('DELETE', `/api/v1/keys/${k.id}`, { key: s.admin })).status, 204);
	for (const { key } of [two, three]) {
		const gone = await s.get('/api/v1/traces', { key });
		assert.equal(gone.status, 401);
		assert.match(gone.json.error.message, /was revoked/);
	}
	assert.equal((await rotate(s, k.id, {})).status, 404);
});

test('the command line does the same', async (t) => {
	const s = await startServer(t);
	const run = (...args) => spawnSync(binary(), ['key', ...args, '--data', s.data, '--project', 'test'], { encoding: 'utf8' });
	const first = run('create', '--scope', 'read', '--name', 'cli', '--expires', '90d').stdout.trim();
	assert.equal(await works(s, first), 200);
	const listed = run('list').stdout.split('\n').find((l) => l.includes('\tcli\t'));
	const day = new Date(Date.now() + 90 * 86_400_000).toISOString().slice(0, 10);
	assert.ok(listed.includes(`ends ${day}`), listed);
	assert.match(listed, /seen 20..-.*Z from 127\.0\.0\.1/);
	const second = run('rotate', listed.split('\t')[0], '--grace', '0s').stdout.trim();
	assert.match(second, /^twr_/);
	assert.equal(await works(s, second), 200);
	assert.equal(await works(s, first), 401);
	assert.doesNotMatch(run('list').stdout, /previous secret/);
	const third = run('rotate', listed.split('\t')[0], '--grace', '7d').stdout.trim();
	const week = new Date(Date.now() + 7 * 86_400_000).toISOString().slice(0, 10);
	assert.match(run('list').stdout, new RegExp(`\tprevious secret ends ${week}.*, seen -\n`));
	assert.equal(await works(s, second), 200);
	assert.match(run('list').stdout, /\tprevious secret ends .*, seen 20.*\n/);
	assert.equal(await works(s, third), 200);
	for (const bad of ['tomorrow', '0d', '90', 'd', '-1d', '9999999d'])
		assert.equal(run('create', '--scope', 'read', '--expires', bad).status, 2, bad);
	assert.equal(run('rotate').status, 2);
	assert.equal(run('revoke', listed.split('\t')[0]).status, 0);
	assert.match(tracewell('key', 'list', '--data', s.data, '--project', 'test'), /\tread\trevoked\tcli\t/);
});

test('an ingest key may add a mapping to a build, but not replace one', async (t) => {
	const s = await startServer(t);
	const [ingest, write] = [s.ingest, s.write];
	const other = sampleMapping.replaceAll('com.', 'org.');
	assert.notEqual(other, sampleMapping);
	for (const [kind, first, second] of [['methods', sampleMapping, other], ['retrace', 'com.A -> a.a:\n    void b() -> c\n', 'com.B -> a.a:\n    void b() -> c\n']]) {
		const to = `/api/v1/builds/b1/${kind}`;
		assert.equal((await s.put(to, first, { key: ingest })).status, 200);
		assert.equal((await s.put(to, first, { key: ingest })).status, 200, 'the same again is no change');
		const refused = await s.put(to, second, { key: ingest });
		assert.equal(refused.status, 403);
		assert.match(refused.json.error.message, /b1 has another mapping already: replacing it requires a key of scope write/);
		assert.equal((await s.put(to, second, { key: write })).status, 200);
		assert.equal((await s.put(to, first, { key: ingest })).status, 403, 'nor back');
	}
});

test('a key for an unknown project is refused, with a similar name and the flag that creates the project', async (t) => {
	const parent = newFolder(t, 'tracewell-slip-');
	const data = await makeData(path.join(parent, 'new'));
	const key = (verb, project, ...more) => spawnSync(binary(), ['key', verb, '--data', data, '--project', project, ...more], { encoding: 'utf8' });
	const create = (project, ...more) => key('create', project, '--scope', 'read', ...more);
	const first = create('shopping');
	assert.equal(first.status, 0, first.stderr);
	assert.match(first.stderr, /^created project shopping, the first of this server\n$/);
	assert.match(first.stdout, /^twr_[\w-]{43}\n$/, 'scripts read the key alone');
	assert.equal(create('shopping').stderr, '');
	const refused = (project, text) => {
		const slip = create(project);
		assert.deepEqual([slip.status, slip.stdout, slip.stderr], [1, '', `tracewell key: ${text}: correct --project, or add --new-project to create it\n`]);
	};
	refused('shoping', 'there is no project shoping (did you mean shopping?)');
	refused('chat', 'there is no project chat');
	for (let twice = 0; twice < 2; twice++) {
		const made = create('chat', '--new-project');
		assert.deepEqual([made.status, made.stderr], [0, '']);
	}
	assert.equal(key('revoke', 'shopping', 'x').stderr, 'tracewell key: the project has no valid key with this id\n');
	for (const verb of ['list', 'rotate', 'revoke']) {
		const slip = key(verb, 'shopin', ...(verb === 'list' ? [] : ['x']));
		assert.deepEqual([slip.status, slip.stdout], [1, '']);
		assert.match(slip.stderr, /there is no project shopin \(did you mean shop/, 'a key that is not there makes none');
	}
});
