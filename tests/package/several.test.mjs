/*
 * several.test.mjs - several servers with roles on one catalogue in PostgreSQL, behind HAProxy as
 * deploy/proxy/haproxy-several.cfg has it: what each role answers, and uploads while servers are killed.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import { test } from 'node:test';

import { sampleTrace } from '../e2e/make.mjs';
import { postgresIsThere, startPostgres } from '../e2e/postgres.mjs';
import { Server, atEnd, binary, freePort, root, sleep, until } from '../e2e/server.mjs';
import { folder, hasProxy } from './cluster.mjs';

const NAME = 'traces.example.com';
const skip = !postgresIsThere ? 'no PostgreSQL 15' : !hasProxy && 'no haproxy';

/* On a port that stays its own over a restart, as HAProxy's list has it. */
async function startRole(t, data, url, role, port) {
	const s = new Server(data, ['--catalog', url, '--several-servers', '--role', role, '--behind-proxy', '--trusted-proxies', '127.0.0.1', ...(port ? ['--listen', `127.0.0.1:${port}`] : [])], {});
	await s.start();
	atEnd(t, () => s.stop());
	return s;
}

/* The shipped text with the test's ports and certificate; each replacement must find its place. */
async function startProxy(t, ports) {
	const at = folder(t, 'haproxy');
	execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', `/CN=${NAME}`,
		'-addext', `subjectAltName=DNS:${NAME}`, '-keyout', `${at}/key.pem`, '-out', `${at}/cert.pem`], { stdio: 'ignore' });
	const ca = fs.readFileSync(`${at}/cert.pem`, 'utf8');
	fs.writeFileSync(`${at}/both.pem`, ca + fs.readFileSync(`${at}/key.pem`, 'utf8'));
	const port = await freePort();
	let text = fs.readFileSync(path.join(root, 'deploy/proxy/haproxy-several.cfg'), 'utf8');
	for (const [from, to] of [['bind :443', `bind 127.0.0.1:${port}`], [`/etc/haproxy/${NAME}.pem`, `${at}/both.pem`], ...ports.map((p, i) => [`127.0.0.1:808${i + 1}`, `127.0.0.1:${p}`])]) {
		assert.ok(text.includes(from), from);
		text = text.replaceAll(from, to);
	}
	fs.writeFileSync(`${at}/haproxy.cfg`, text);
	const child = spawn('haproxy', ['-db', '-f', `${at}/haproxy.cfg`], { stdio: ['ignore', 'ignore', 'pipe'] });
	let said = '';
	child.stderr.on('data', (piece) => (said += piece));
	atEnd(t, () => new Promise((done) => child.once('close', done).kill('SIGTERM')));
	const ask = (method, target, { key, body, headers = {} } = {}) => new Promise((done, fail) => {
		const req = https.request({ host: '127.0.0.1', port, method, path: target, servername: NAME, ca, agent: false, timeout: 30000,
			headers: { Host: NAME, ...(key ? { Authorization: `Bearer ${key}` } : {}), ...(body ? { 'Content-Length': body.length } : {}), ...headers } }, (res) => {
			const pieces = [];
			res.on('data', (piece) => pieces.push(piece)).on('error', fail).on('end', () => {
				const text = Buffer.concat(pieces).toString();
				done({ status: res.statusCode, headers: res.headers, text, json: text.startsWith('{') ? JSON.parse(text) : undefined });
			});
		}).on('error', fail);
		req.end(body);
	});
	await until(async () => ((await ask('GET', '/readyz').catch(() => null))?.status === 200 ? true : undefined), 'the proxy').catch((e) => assert.fail(e.message + said));
	return ask;
}

test('each role answers its own part, and says so of the rest', { skip, timeout: 120000 }, async (t) => {
	const db = await startPostgres(t);
	const url = db.url('roles');
	const data = folder(t, 'roles');
	const alone = spawnSync(binary(), ['serve', '--data', data, '--catalog', url, '--role', 'query', '--listen', '127.0.0.1:0'], { encoding: 'utf8' });
	assert.equal(alone.status, 2, alone.stderr);
	assert.match(alone.stderr, /--several-servers is missing/);
	const wrong = spawnSync(binary(), ['serve', '--data', data, '--role', 'cook', '--listen', '127.0.0.1:0'], { encoding: 'utf8' });
	assert.match(wrong.stderr, /--role must be ingest, decode, query or all, not "cook"/);

	const takes = await startRole(t, data, url, 'ingest');
	const sent = await takes.post('/api/v1/traces', sampleTrace(20));
	assert.equal(sent.status, 202, sent.text);
	const { id } = sent.json;
	assert.equal((await takes.get('/readyz', { key: null })).json.role, 'ingest');
	assert.match((await takes.get('/metrics', { key: null })).text, /^tracewell_stage_traces_total/m, 'also of what it does not do');
	for (const target of ['/', '/api/v1/fleet/methods', `/api/v1/traces/${id}/flame`]) {
		const answer = await takes.get(target);
		assert.equal(answer.status, 503, target);
		assert.match(answer.json.error.message, /--role ingest/);
		assert.ok(answer.headers.get('retry-after'));
	}
	assert.equal((await takes.get(`/api/v1/traces/${id}`)).json.state, 'queued');

	const works = await startRole(t, data, url, 'decode');
	assert.equal((await works.post('/api/v1/traces', sampleTrace(1))).status, 503, 'an upload is not given up for being sent to the wrong one');
	assert.equal((await works.get('/', { key: null })).status, 503);
	assert.equal((await works.get('/metrics', { key: null })).status, 200);
	const shows = await startRole(t, data, url, 'query');
	assert.equal((await shows.decoded(id)).state, 'ready');
	assert.doesNotMatch(takes.log + shows.log, /event=decod/, 'they decode nothing');
	assert.ok((await shows.flameLines(id, 4000)).length > 0);
	assert.equal((await shows.get('/', { key: null })).status, 200);
	assert.equal((await shows.post('/api/v1/traces', sampleTrace(1))).status, 503);
});

test('behind HAProxy: servers are killed, and what was accepted is decoded and counted once', { skip, timeout: 240000 }, async (t) => {
	const db = await startPostgres(t);
	const url = db.url('several');
	const data = folder(t, 'several');
	const ports = [await freePort(), await freePort(), await freePort(), await freePort()];
	const start = (role, port) => startRole(t, data, url, role, port);
	const nodes = [await start('ingest', ports[0]), await start('ingest,decode', ports[1]), await start('query,decode', ports[2]), await start('query', ports[3])];
	const ask = await startProxy(t, ports);
	const [ingest, read] = [nodes[0].ingest, nodes[0].read];
	const kept = new Map();
	let going = true;

	/* As a device does: the same key until it is accepted. */
	const sender = async (of) => {
		for (let i = 0; going || i < 15; i++) {
			const key = `${of}-${i}`;
			for (let tries = 0; !kept.has(key); tries++) {
				assert.ok(tries < 300, 'an upload is taken at last');
				const answer = await ask('POST', '/api/v1/traces?app=shop&version_name=1&scenario=start', { key: ingest, body: sampleTrace(5 + i, 4000), headers: { 'Idempotency-Key': key } }).catch(() => null);
				if (answer?.status === 202 || answer?.status === 200) kept.set(key, answer.json.id);
				else if (answer) assert.ok([502, 503].includes(answer.status), answer.text);
				if (!kept.has(key)) await sleep(100);
			}
		}
	};
	const senders = [0, 1, 2].map(sender);
	for (const at of [0, 1, 2, 3]) {
		const before = kept.size;
		await until(() => (kept.size > before + 8 ? true : undefined), 'uploads before', 60);
		nodes[at].child.kill('SIGKILL');
		await nodes[at].ended;
		await until(() => (kept.size > before + 16 ? true : undefined), 'uploads go on by the others', 60);
		await nodes[at].start();
	}
	going = false;
	await Promise.all(senders);
	assert.equal(new Set(kept.values()).size, kept.size);

	const list = () => ask('GET', '/api/v1/traces?state=ready&limit=1', { key: read });
	await until(async () => ((await list().catch(() => null))?.json?.total >= kept.size ? true : undefined), 'all decoded', 120);
	const { total } = (await ask('GET', '/api/v1/traces?limit=1', { key: read })).json;
	await until(async () => ((await ask('GET', '/api/v1/fleet/scenarios?by=all', { key: read })).json?.traces >= total ? true : undefined), 'all counted', 120);
	for (const s of nodes) assert.equal(await s.metric('tracewell_stage_waiting_traces', { stage: 'rollup' }).catch(() => 0), 0, 'nothing waits to be counted');
	assert.equal((await ask('GET', '/api/v1/fleet/scenarios?by=all', { key: read })).json.traces, total, 'none twice');
	assert.equal(total, kept.size, 'and none that was sent again is a second one');
	assert.equal(db.sql('SELECT count(*) FROM job', 'several'), '0');
	for (const id of [...kept.values()].slice(-20)) assert.equal((await ask('GET', `/api/v1/traces/${id}`, { key: read })).json.state, 'ready');
	assert.equal((await ask('GET', '/')).status, 200);
	for (const s of nodes) await s.stop();
	const check = spawnSync(binary(), ['check', '--data', data], { encoding: 'utf8' });
	assert.equal(check.status, 0, check.stdout + check.stderr);
});

test('behind HAProxy: uploads in pieces go on at another server when theirs is killed', { skip, timeout: 240000 }, async (t) => {
	const db = await startPostgres(t);
	const url = db.url('pieces');
	const data = folder(t, 'pieces');
	const ports = [await freePort(), await freePort(), await freePort(), await freePort()];
	const start = (role, port) => startRole(t, data, url, role, port);
	const nodes = [await start('ingest', ports[0]), await start('ingest', ports[1]), await start('query,decode', ports[2])];
	const ask = await startProxy(t, ports);
	const [key, read] = [nodes[0].ingest, nodes[0].read];
	const tus = { 'Tus-Resumable': '1.0.0' };

	/* As a client does: requests the offset of a locked or lost upload, and continues. */
	const send = async (bytes) => {
		const begun = await until(async () => {
			const answer = await ask('POST', '/api/v1/uploads', { key, headers: { ...tus, 'Upload-Length': String(bytes.length) } }).catch(() => null);
			return answer?.status === 201 ? answer : undefined;
		}, 'an upload begun', 60);
		const at = begun.headers.location;
		return until(async () => {
			const head = await ask('HEAD', at, { key, headers: tus }).catch(() => null);
			if (head?.headers['tracewell-trace']) return head.headers['tracewell-trace'];
			if (head?.status !== 200) return undefined;
			const offset = Number(head.headers['upload-offset']);
			const piece = bytes.subarray(offset, offset + 2000);
			const answer = await ask('PATCH', at, { key, body: piece, headers: { ...tus, 'Upload-Offset': String(offset), 'Content-Type': 'application/offset+octet-stream' } }).catch(() => null);
			assert.ok(!answer || [204, 409, 423, 502, 503, 504].includes(answer.status), answer?.text);
			return undefined;
		}, 'an upload whole', 90);
	};
	const sent = Array.from({ length: 6 }, (_, i) => sampleTrace(400 + i));
	const senders = sent.map(send);
	const pieces = () => nodes.slice(0, 2).reduce((n, s) => n + (s.log.match(/method=PATCH [^\n]*status=204/g)?.length ?? 0), 0);
	const more = (n) => {
		const before = pieces();
		return until(() => (pieces() >= before + n ? true : undefined), 'pieces are taken');
	};
	for (const at of [0, 1]) {
		await more(3);
		nodes[at].child.kill('SIGKILL');
		await nodes[at].ended;
		await more(3);
		await nodes[at].start();
	}
	const ids = await Promise.all(senders);
	assert.equal(new Set(ids).size, sent.length);
	await until(async () => ((await ask('GET', '/api/v1/traces?state=ready&limit=1', { key: read })).json?.total === sent.length ? true : undefined), 'all decoded', 90);
	for (const s of nodes.slice(0, 2)) assert.match(s.log, /method=PATCH [^\n]*status=204/, 'both took pieces');
	for (const [i, id] of ids.entries()) assert.deepEqual((await nodes[2].get(`/api/v1/traces/${id}/raw/trace`, { key: read })).bytes, sent[i]);
	for (const s of nodes) await s.stop();
	const check = spawnSync(binary(), ['check', '--data', data], { encoding: 'utf8' });
	assert.equal(check.status, 0, check.stdout + check.stderr);
});
