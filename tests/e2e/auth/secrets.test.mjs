/*
 * secrets.test.mjs - secrets of webhooks are encrypted: none is in the catalogue, and a catalogue without
 * its key reports that and continues with new ones.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { isSigned, startReceiver } from '../webhook_receiver.mjs';
import { binary, newFolder, startServer, until } from '../server.mjs';

const ARGS = ['--webhook-private', '127.0.0.0/8'];
const asker = (s) => (method, target, body) => s.ask(method, `/api/v1/webhooks${target}`, { key: s.admin, body: body && JSON.stringify(body) });

const db = (s, sql) => s.sql(sql);

/** Is the next event signed by that secret? */
async function signed(s, r, hook, secret) {
	const n = r.got.length;
	assert.equal((await asker(s)('POST', `/${hook}/test`)).status, 202);
	const got = await until(() => r.got[n], 'a test', 30);
	return isSigned(got, secret);
}

test('the catalogue contains no secret, and the issued secret still signs after a restart', async (t) => {
	const [s, r] = [await startServer(t, { args: ARGS }), await startReceiver(t)];
	const made = (await asker(s)('POST', '', { url: `${r.url}/h` })).json;
	const kept = () => db(s, 'select secret from webhook');
	assert.match(kept(), /^sealed:1:[\w-]+$/);
	assert.equal(fs.statSync(path.join(s.data, 'secret.key')).mode & 0o777, 0o600);
	assert.equal(await signed(s, r, made.id, made.secret), true);
	const again = (await asker(s)('PATCH', `/${made.id}`, { new_secret: true })).json;
	assert.notEqual(again.secret, made.secret);
	assert.equal((await asker(s)('PATCH', `/${made.id}`, { name: 'other' })).status, 200);
	assert.equal(await signed(s, r, made.id, again.secret), true);
	await s.stop();
	for (const file of ['catalogue.db', 'catalogue.db-wal'].map((f) => path.join(s.data, f)).filter(fs.existsSync))
		for (const secret of [made.secret, again.secret]) assert.ok(!fs.readFileSync(file).includes(secret), `${file} has a secret`);
	await s.start();
	assert.equal(await signed(s, r, made.id, again.secret), true);
});

test('a backup without the key reports that secrets must be set again, and creates a new key on request', async (t) => {
	const [s, r] = [await startServer(t, { args: ARGS }), await startReceiver(t)];
	const made = (await asker(s)('POST', '', { url: `${r.url}/h` })).json;
	const copy = newFolder(t, 'tracewell-copy-');
	execFileSync(binary(), ['backup', '--data', s.data, '--to', path.join(copy, 'b')], { stdio: 'pipe' });
	const files = fs.readdirSync(path.join(copy, 'b'), { recursive: true });
	assert.ok(!files.some((f) => /secret/.test(f)), 'the key is in no backup');
	await s.stop();
	fs.rmSync(path.join(s.data, 'secret.key'));
	await s.start();
	assert.match(s.log, /secret_key_lost/);
	assert.ok(!fs.existsSync(path.join(s.data, 'secret.key')), 'none in its place');
	for (const [method, target, body] of [['PATCH', `/${made.id}`, { new_secret: true }], ['POST', '', { url: `${r.url}/i` }]]) {
		const refused = await asker(s)(method, target, body);
		assert.deepEqual([refused.status, /key that encrypts secrets is missing.*--new-secret-key/.test(refused.text)], [409, true], refused.text);
	}
	assert.equal((await asker(s)('GET', `/${made.id}`)).json.secret_lost, true);
	await asker(s)('POST', `/${made.id}/test`);
	const failed = await until(async () => (await asker(s)('GET', `/${made.id}/deliveries`)).json.deliveries.find((d) => d.log.length), 'a try');
	assert.match(failed.log[0].error, /encrypted with a key that this server does not have .*: set another secret/);
	assert.deepEqual(r.got, [], 'nothing goes unsigned');
	await s.stop();
	const args = s.args;
	s.args = [...args, '--new-secret-key'];
	await s.start();
	assert.match(s.log, /secrets_lost/);
	const fresh = (await asker(s)('PATCH', `/${made.id}`, { new_secret: true })).json;
	assert.equal(fresh.secret_lost, false);
	assert.equal(await signed(s, r, made.id, fresh.secret), true);
});

test('a key that is none, or that others can read, is refused at the start', async (t) => {
	const s = await startServer(t);
	await s.stop();
	const file = path.join(s.data, 'secret.key');
	const key = fs.readFileSync(file);
	const refused = (words, ...args) => {
		const { status, stderr } = spawnSync(binary(), ['serve', '--data', s.data, '--listen', '127.0.0.1:0', ...args], { encoding: 'utf8', timeout: 60_000 });
		assert.notEqual(status, 0);
		assert.match(stderr, words);
		assert.ok(!stderr.includes(key.toString('utf8').trim()), 'never the key');
	};
	fs.chmodSync(file, 0o644);
	refused(/can be read by others: chmod 600/);
	fs.chmodSync(file, 0o600);
	for (const text of ['', 'abc\n', `${'g'.repeat(64)}\n`, `${'0'.repeat(66)}\n`]) {
		fs.writeFileSync(file, text);
		refused(/is not a key: one line of 64 hex digits/);
	}
	refused(/cannot be read/, '--secret-key-file', path.join(s.data, 'none'));
	const given = path.join(s.data, 'given');
	fs.writeFileSync(given, key, { mode: 0o640 });
	for (const mode of [0o660, 0o644]) {
		fs.chmodSync(given, mode);
		refused(/can be read by others/, '--secret-key-file', given);
	}
	fs.chmodSync(given, 0o640);
	s.args = [...s.args, '--secret-key-file', given];
	await s.start();
});
