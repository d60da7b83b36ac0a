/*
 * refused_uploads.test.mjs - the answer to an upload that is refused arrives, though its client sends all
 * of it before it reads: the socket lingers. And slots and connections that one caller cannot take from others.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { compile, java, skip as noJava } from '../jdk.mjs';
import { sampleTrace } from '../make.mjs';
import { atEnd, newFolder, root, sleep, startServer, until } from '../server.mjs';

const run = promisify(execFile);
const MIB = 1 << 20;
const SIZES = [1, 10, 64];

const PYTHON = `
import sys, urllib.request, urllib.error
for line in sys.stdin:
    url, key, encoding, size, how = line.split()
    size = int(size)
    headers = {'Authorization': 'Bearer ' + key, 'Content-Type': 'application/octet-stream'}
    if encoding != '-': headers['Content-Encoding'] = encoding
    data = bytes(size) if how == 'length' else (bytes(16384) for _ in range(size // 16384))
    try:
        print(urllib.request.urlopen(urllib.request.Request(url, data, headers)).status, flush=True)
    except urllib.error.HTTPError as e:
        print(e.code, flush=True)
    except Exception as e:
        print(repr(e), flush=True)
`;

/* The responses of a program to lines. */
function conversed(program, args, lines) {
	const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
	let out = '';
	child.stdout.setEncoding('utf8').on('data', (piece) => (out += piece));
	child.stdin.end(lines.map((line) => line + '\n').join(''));
	return new Promise((done) => child.once('close', () => done(out.trim().split('\n'))));
}

/* By each way in, each size and both framings: a case's line, and the status that it is to get. */
const cases = (url, list) => list.flatMap(({ query = '', key, encoding = '-', status, within }) =>
	SIZES.flatMap((size) => ['length', 'chunked'].map((how) => ({ url: `${url}/api/v1/traces${query}`, key, encoding, bytes: size * MIB, how, status, within }))));
const lineOf = (c) => [c.url, c.key, c.encoding, c.bytes, c.how].join(' ');

async function curl(folder, c, more) {
	const file = path.join(folder, `${c.bytes}`);
	if (!fs.existsSync(file)) fs.writeFileSync(file, Buffer.alloc(c.bytes));
	const args = ['-s', '-o', path.join(folder, 'answer'), '-w', '%{http_code} %{size_upload}', '-X', 'POST', '-T', file, '-H', `Authorization: Bearer ${c.key}`, ...more];
	if (c.encoding !== '-') args.push('-H', `Content-Encoding: ${c.encoding}`);
	if (c.how === 'chunked') args.push('-H', 'Transfer-Encoding: chunked');
	const { stdout } = await run('curl', [...args, c.url]).catch((e) => ({ stdout: `${e.code} ${e.stdout}` }));
	return stdout.split(' ').map(Number);
}

test('the answer to a refused upload arrives', async (t) => {
	const folder = newFolder(t, 'tracewell-refused-');
	const s = await startServer(t, { args: ['--max-body', '512K'] });
	const roomy = await startServer(t, { args: ['--max-body', '100M', '--max-in-flight', '1'] });
	const all = cases(s.url, [
		{ key: 'twi_wrong', status: 401 },
		{ key: s.read, status: 403 },
		{ key: s.ingest, status: 413 },
	]).concat(cases(roomy.url, [{ key: roomy.ingest, encoding: 'br', status: 415 }, { key: roomy.ingest, query: '?started_at=never', status: 400 }, { key: roomy.ingest, status: 415, within: true }]));
	/* chunks of zeros may be found to be no trace before they are too many */
	const asExpected = (c, status) => (c.status === 413 && c.how === 'chunked' && Number(status) === 415 ? 413 : status);
	const compare = (said) => assert.deepEqual(said.map((status, i) => `${asExpected(all[i], status)} ${lineOf(all[i])}`), all.map((c) => `${c.status} ${lineOf(c)}`));

	await t.test('Python', async () => compare(await conversed('python3', ['-c', PYTHON], all.map(lineOf))));
	await t.test('Java', { skip: noJava }, async () => {
		compile(folder, [path.join(root, 'tests/device/Refused.java')]);
		compare(await conversed('java', ['-XX:TieredStopAtLevel=1', '-cp', folder, 'Refused'], all.map(lineOf)));
	});
	await t.test('curl, with Expect and without', async () => {
		for (const c of all) {
			assert.equal(asExpected(c, (await curl(folder, c, ['-H', 'Expect:']))[0]), c.status, lineOf(c));
			const [status, sent] = await curl(folder, c, ['-H', 'Expect: 100-continue', '--expect100-timeout', '30']);
			assert.equal(asExpected(c, status), c.status, lineOf(c));
			/* chunks past a limit are known when they are there */
			if (c.within) continue;
			if (c.status !== 413 || c.how === 'length') assert.equal(sent, 0, `nothing is sent: ${lineOf(c)}`);
		}
	});
	await t.test('while all slots are taken', async () => {
		const held = await roomy.socket(`POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${roomy.ingest}\r\nContent-Length: 1000000\r\n\r\nabcd`);
		await until(async () => (/^tracewell_uploads_open 1$/m.test((await roomy.get('/metrics', { key: null })).text) ? true : undefined), 'the slot is taken');
		const full = cases(roomy.url, [{ key: roomy.ingest, status: 503 }]);
		assert.deepEqual(await conversed('python3', ['-c', PYTHON], full.map(lineOf)), full.map(() => '503'));
		held.destroy();
	});
	await t.test('nothing is held for them', async () => {
		assert.match((await s.get('/metrics', { key: null })).text, /^tracewell_uploads_open 0$/m);
		assert.deepEqual(s.spool(), []);
		assert.equal(s.log.includes('outcome=crash'), false);
	});
});

/* A proxy that replaces the key in the requests that continue an upload. */
async function changeOfKey(t, s, from, to) {
	const proxy = net.createServer((client) => {
		const server = net.connect(s.port, '127.0.0.1');
		const end = () => (client.destroy(), server.destroy());
		for (const side of [client, server]) side.on('error', end).on('close', end);
		server.pipe(client);
		client.on('data', (piece) => {
			const text = piece.toString('latin1');
			const out = text.includes('X-HTTP-Method-Override: PATCH') ? Buffer.from(text.replace(from, to), 'latin1') : piece;
			if (!server.write(out)) client.pause();
		});
		server.on('drain', () => client.resume());
	});
	await new Promise((done) => proxy.listen(0, '127.0.0.1', done));
	atEnd(t, () => proxy.close());
	return `http://127.0.0.1:${proxy.address().port}`;
}

test('the device uploader gets the status of a refusal while it sends 10 MB', { skip: noJava }, async (t) => {
	const folder = newFolder(t, 'tracewell-refused-');
	compile(folder, [...java('deploy/device/dev/tracewell'), path.join(root, 'tests/device/Device.java')]);
	const device = async (...args) => (await run('java', ['-XX:TieredStopAtLevel=1', '-cp', folder, 'Device', ...args])).stdout.trim();
	const s = await startServer(t);
	const file = path.join(folder, 'large');
	fs.writeFileSync(file, crypto.randomBytes(10 * MIB)); // it is compressed in the queue
	for (const [status, key] of [[401, 'twi_wrong'], [403, s.read]]) {
		const queue = path.join(folder, `queue-${status}`);
		await device('add', queue, '100000000', file);
		assert.match(await device('whole', await changeOfKey(t, s, s.ingest, key), s.ingest, queue), new RegExp(`^${status}:`));
		assert.match(s.log, new RegExp(`event=request .*path=/api/v1/uploads/.* status=${status} `));
	}
});

/* An upload that has begun and continues byte by byte; its response, once it ends. */
async function slowUpload(s, key, address) {
	const socket = await s.socket(`POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Length: 100000\r\n\r\n`, address);
	socket.write(sampleTrace(1).subarray(0, 32));
	socket.drip = setInterval(() => socket.write('\0'), 1000);
	socket.once('close', () => clearInterval(socket.drip));
	return socket;
}
const metric = async (s, name) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec((await s.get('/metrics', { key: null })).text)?.[1] ?? 0);

test('one key cannot take all upload slots', async (t) => {
	const s = await startServer(t, { args: ['--max-in-flight', '16'] });
	const [alpha, beta] = [s.key('ingest', 'alpha'), s.key('ingest', 'beta')];
	const sockets = await Promise.all(Array.from({ length: 40 }, () => slowUpload(s, alpha)));
	const refused = await until(async () => {
		const done = await Promise.all(sockets.map((socket) => Promise.race([socket.answer, sleep(1)])));
		return done.filter((a) => a).length >= 28 ? done.filter((a) => a) : undefined;
	}, 'those past its share are refused');
	for (const answer of refused) assert.match(answer, /^HTTP\/1\.1 503 [^]*uploads of the same key are in progress/);
	assert.equal(await metric(s, 'tracewell_uploads_open'), 12, 'three quarters');
	/* another key of the same address is served at once */
	for (let i = 0; i < 5; i++) assert.equal((await s.post('/api/v1/traces', sampleTrace(20, 900 + i), { key: beta })).status, 202);
	assert.equal((await s.put('/api/v1/builds/b/methods', '# v\n1,1,a.B c ()V\n', { key: beta })).status < 300, true);
	/* while slots are scarce, uploads that slow are ended early, and the others are accepted */
	await until(async () => ((await metric(s, 'tracewell_limits_hit_total{limit="slow_body"}')) >= 4 ? true : undefined), 'slow bodies are cut', 60).catch(async (e) => {
		throw new Error(`${e.message}: ${(await s.get('/metrics', { key: null })).text.match(/limits_hit.*|uploads_open.*/g).join('; ')}`);
	});
	await until(async () => ((await metric(s, 'tracewell_uploads_open')) <= 8 ? true : undefined), 'slots are free again', 60);
	for (const socket of sockets) socket.destroy();
});

test('one address with many keys cannot take all upload slots', async (t) => {
	const s = await startServer(t, { args: ['--max-in-flight', '16'] });
	const keys = ['a', 'b', 'c', 'd'].map((project) => s.key('ingest', project));
	const sockets = await Promise.all(keys.flatMap((key) => Array.from({ length: 12 }, () => slowUpload(s, key, '127.0.0.2'))));
	const refused = [];
	for (const socket of sockets) socket.answer.then((answer) => refused.push(answer));
	await until(() => (refused.length >= sockets.length - 14 ? true : undefined), 'those past its share are refused');
	assert.ok(refused.some((answer) => /^HTTP\/1\.1 503 [^]*uploads from the same address are in progress/.test(answer)), refused.at(-1));
	assert.equal((await s.post('/api/v1/traces', sampleTrace(20), { key: s.key('ingest', 'e') })).status, 202, 'another address is served');
	for (const socket of sockets) socket.destroy();
});

test('idle connections give way to new ones', async (t) => {
	const s = await startServer(t, { args: ['--connections', '32', '--connections-per-address', '0', '--connection-timeout', '300'] });
	const body = sampleTrace(3000);
	const busy = await s.socket(`POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${s.ingest}\r\nContent-Length: ${body.length}\r\n\r\n`);
	busy.write(body.subarray(0, 50_000));
	await until(async () => ((await metric(s, 'tracewell_uploads_open')) === 1 ? true : undefined), 'the upload has begun');
	const sockets = [];
	const closed = [];
	const open = async (text) => {
		const socket = await s.socket(text);
		const at = sockets.push(socket) - 1;
		socket.resume().once('close', () => closed.push(at));
	};
	const health = async () => {
		const socket = net.connect(s.port, '127.0.0.1');
		const answer = new Promise((done) => (socket.once('data', (d) => done(d.toString('latin1'))), socket.once('close', () => done('')), socket.once('error', () => done(''))));
		socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
		assert.match(await answer, /^HTTP\/1\.1 200 /);
	};
	for (let i = 0; i < 120; i++) await open('');
	await until(() => (closed.length >= 80 ? true : undefined), 'the oldest are closed');
	assert.ok(closed.every((at) => at < 100), `the newest are open: ${closed}`);
	for (let i = 0; i < 5; i++) await health();
	/* nor do requests without a valid key occupy a slot */
	for (let i = 0; i < 120; i++) await open('POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer twi_none\r\nContent-Length: 5000\r\n\r\nabc');
	for (let i = 0; i < 120; i++) await open('POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\nabc');
	for (let i = 0; i < 5; i++) await health();
	assert.ok((await metric(s, 'tracewell_connections_evicted_total')) > 200);
	busy.write(body.subarray(50_000));
	assert.match(await busy.answer, /^HTTP\/1\.1 202 /, 'what is under way is not cut');
	for (const socket of sockets) socket.destroy();
});

test('with every connection at work /healthz answers', async (t) => {
	const s = await startServer(t, { args: ['--connections', '8', '--connections-per-address', '0', '--connection-timeout', '300'] });
	const sockets = await Promise.all(Array.from({ length: 8 }, () => slowUpload(s, s.ingest)));
	await until(() => (s.spool().length === 8 ? true : undefined), 'eight uploads are under way');
	for (let i = 0; i < 5; i++) assert.match(await (await s.socket('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).answer, /^HTTP\/1\.1 200 /);
	const other = await s.get('/api/v1/traces');
	assert.equal(other.status, 503, other.text);
	assert.match(other.json.error.message, /all 8 connections are in use/);
	assert.ok(other.headers.get('retry-after'));
	for (const socket of sockets) socket.destroy();
	await until(async () => ((await s.get('/api/v1/traces')).status === 200 ? true : undefined), 'room again');
});
