/*
 * backup_s3.test.mjs - a backup into an S3-compatible store, under load; what is fetched from there is a
 * data folder that a server runs on. The store is s3rver; it takes any signature of version 4, so a gate
 * before it verifies them, and the sums of bodies, from the scheme's text alone.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createHash, createHmac } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import S3rver from 's3rver';

import { sampleMapping, sampleTrace } from './make.mjs';
import { binary, startServer } from './server.mjs';

const SUFFIX = '._S3rver_object';

const SECRET = 'S3RVER';
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
const hmac = (key, text) => createHmac('sha256', key).update(text).digest();

/* Signature Version 4, as the service computes it. */
function isSigned({ method, url, headers }) {
	const [, date, region, service, names, signature] =
		/^AWS4-HMAC-SHA256 Credential=[^/]+\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/
			.exec(headers.authorization ?? '') ?? [];
	if (!signature || !/(^|;)host(;|$)/.test(names) || !/(^|;)x-amz-content-sha256(;|$)/.test(names)) return false;
	const [path, query = ''] = url.split('?');
	const lines = names.split(';').map((name) => `${name}:${headers[name].trim()}\n`).join('');
	const canonical = [method, path, query, lines, names, headers['x-amz-content-sha256']].join('\n');
	const scope = `${date}/${region}/${service}/aws4_request`;
	const key = [date, region, service, 'aws4_request'].reduce(hmac, 'AWS4' + SECRET);
	return hmac(key, ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, sha256(canonical)].join('\n')).toString('hex') === signature;
}

/* Passes on what is signed and whole. */
async function startGate(t, port) {
	const gate = http.createServer(async (q, r) => {
		const body = Buffer.concat(await q.toArray());
		if (!isSigned(q) || sha256(body) !== q.headers['x-amz-content-sha256']) {
			r.writeHead(403).end(q.method === 'HEAD' ? undefined : 'SignatureDoesNotMatch');
			return;
		}
		const { expect, ...headers } = q.headers;
		http.request({ port, host: '127.0.0.1', method: q.method, path: q.url, headers }, (answer) => {
			r.writeHead(answer.statusCode, answer.headers);
			answer.pipe(r);
		}).end(body);
	});
	await new Promise((done) => gate.listen(0, '127.0.0.1', done));
	t.after(() => gate.close());
	return gate.address().port;
}

/* The store and its bucket; .backup() and .fetch(). */
async function startStore(t) {
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-s3-'));
	const store = new S3rver({ port: 0, address: '127.0.0.1', silent: true, directory: path.join(dir, 'store'), configureBuckets: [{ name: 'backups' }] });
	const port = await startGate(t, (await store.run()).port);
	t.after(async () => {
		await store.close();
		fs.rmSync(dir, { recursive: true, force: true });
	});
	const env = { ...process.env, AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: SECRET };
	return {
		async backup(data, more = {}, to = 's3://backups/nightly') {
			const child = spawn(binary(), ['backup', '--data', data, '--to', to, '--s3-endpoint', `http://127.0.0.1:${port}/`],
				{ stdio: ['ignore', 'pipe', 'pipe'], env: { ...env, ...more } });
			let told = '';
			for (const out of [child.stdout, child.stderr]) out.setEncoding('utf8').on('data', (text) => (told += text));
			return new Promise((done) => child.once('close', (code) => done({ code, told })));
		},
		/* As any S3 client copies a prefix to a folder. */
		fetch(name) {
			const from = path.join(dir, 'store', 'backups', 'nightly');
			const to = path.join(dir, name);
			for (const file of fs.readdirSync(from, { recursive: true }).map(String).filter((f) => f.endsWith(SUFFIX))) {
				const target = path.join(to, file.slice(0, -SUFFIX.length));
				fs.mkdirSync(path.dirname(target), { recursive: true });
				fs.copyFileSync(path.join(from, file), target);
			}
			return to;
		},
	};
}

const upload = async (s, n) => (await s.post('/api/v1/traces', sampleTrace(50 + n), { query: { build_id: 'b1' } })).json.id;
const flameOf = async (s, id, key) => (await s.get(`/api/v1/traces/${id}/flame`, { key })).json;
const isWhole = (data) => spawnSync(binary(), ['check', '--data', data]).status === 0;

test('under load; what is fetched is a data folder with the same answers; again sends what is new', async (t) => {
	const store = await startStore(t);
	const s = await startServer(t);
	const before = [];
	for (let i = 0; i < 8; i++) before.push(await upload(s, i));
	await s.put('/api/v1/builds/b1/methods', sampleMapping);
	for (const id of before) await s.decoded(id);
	let going = true;
	const load = (async () => {
		for (let i = 100; going; i++) {
			const id = await upload(s, i);
			if (i % 3 === 0) await s.ask('DELETE', `/api/v1/traces/${id}`);
		}
	})();
	const first = await store.backup(s.data);
	going = false;
	await load;
	assert.equal(first.code, 0, first.told);
	assert.match(first.told, /\d+ uploads are in the backup; \d+ files copied/);

	const again = await startServer(t, { data: store.fetch('restored') });
	for (const id of before) {
		assert.equal((await until200(again, `/api/v1/traces/${id}/flame`, s.read)).status, 200);
		assert.deepEqual(await flameOf(again, id, s.read), await flameOf(s, id, s.read));
	}
	await again.stop();
	assert.ok(isWhole(again.data));

	await store.backup(s.data);
	assert.match((await store.backup(s.data)).told, /; 1 files copied/, 'the catalogue alone');
	await upload(s, 500);
	assert.match((await store.backup(s.data)).told, /; 2 files copied/);
});

async function until200(s, target, key) {
	for (let i = 0; i < 500; i++) {
		const r = await s.get(target, { key });
		if (r.status === 200) return r;
		await new Promise((done) => setTimeout(done, 40));
	}
	throw new Error(`${target}: no 200`);
}

test('says what it cannot do', async (t) => {
	const store = await startStore(t);
	const s = await startServer(t);
	await upload(s, 1);
	const wrong = await store.backup(s.data, { AWS_SECRET_ACCESS_KEY: 'guessed' });
	assert.equal(wrong.code, 1);
	assert.match(wrong.told, /the store answered 403/);
	assert.ok(!wrong.told.includes('guessed'));
	assert.match((await store.backup(s.data, { AWS_ACCESS_KEY_ID: '' })).told, /set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/);
	assert.match((await store.backup(s.data, {}, 's3://')).told, /say where to/);
	assert.match((await store.backup(s.data, {}, 's3://nowhere/x')).told, /the store answered 404/);
	assert.deepEqual(s.spool(), []);
});
