/*
 * tls.test.mjs - HTTPS by the binary itself: its protocol versions, uploads and downloads, and certificates
 * replaced while requests run.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import https from 'node:https';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import tls from 'node:tls';

import { sampleTrace } from '../make.mjs';
import { atEnd, binary, startServer, until } from '../server.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-tls-'));
process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));

/* A self-signed certificate for localhost; serial numbers distinguish them. */
function make(name, serial, kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']) {
	const [cert, key] = [`${name}.crt`, `${name}.key`].map((f) => path.join(folder, f));
	execFileSync('openssl', ['req', '-x509', ...kind, '-nodes', '-days', '2', '-subj', `/CN=${name}`, '-set_serial', String(serial),
		'-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost', '-keyout', key, '-out', cert], { stdio: 'ignore' });
	return { cert, key };
}

function use({ cert, key }, where) {
	const put = (from, to) => {
		fs.copyFileSync(from, `${to}.new`);
		fs.renameSync(`${to}.new`, to);
	};
	put(key, where.key);
	put(cert, where.cert);
}

const one = make('one', 1001);
const two = make('two', 2002, ['-newkey', 'rsa:2048']);
const ca = [one, two].map((p) => fs.readFileSync(p.cert));

async function started(t, args = []) {
	const where = { cert: path.join(folder, `${t.name.replace(/\W/g, '')}.crt`), key: path.join(folder, `${t.name.replace(/\W/g, '')}.key`) };
	use(one, where);
	const s = await startServer(t, { args: ['--tls-cert', where.cert, '--tls-key', where.key, ...args] });
	return { s, where };
}

function ask(s, method, target, { headers = {}, body, agent, key = s.read } = {}) {
	return new Promise((done, fail) => {
		const r = https.request({ host: '127.0.0.1', port: s.port, method, path: target, ca, agent: agent ?? false, headers: { ...(key && { Authorization: `Bearer ${key}` }), ...headers } }, (a) => {
			const pieces = [];
			const { socket } = a;
			const serial = Number.parseInt(socket.getPeerCertificate().serialNumber, 16);
			a.on('data', (p) => pieces.push(p)).on('error', fail).on('end', () => done({ status: a.statusCode, headers: a.headers, bytes: Buffer.concat(pieces), serial, socket }));
		});
		r.on('error', fail);
		r.end(body);
	});
}

const json = (a) => JSON.parse(a.bytes.toString('utf8'));

function handshake(s, options) {
	return new Promise((done, fail) => {
		const socket = tls.connect({ host: '127.0.0.1', port: s.port, ca, ...options }, () => {
			done({ version: socket.getProtocol(), cipher: socket.getCipher().name, serial: Number.parseInt(socket.getPeerCertificate().serialNumber, 16) });
			socket.end();
		});
		socket.on('error', fail);
	});
}

test('push names the wrong one of http and https, without further attempts', async (t) => {
	const { s } = await started(t);
	const plain = await startServer(t);
	const file = path.join(folder, 'a.bin');
	fs.writeFileSync(file, sampleTrace());
	const push = (server) => spawnSync(binary(), ['push', '--server', server, '--key', 'k', file], { encoding: 'utf8', timeout: 20000 });
	for (const [server, words] of [[`https://127.0.0.1:${plain.port}`, 'the server uses plain HTTP: use http://'], [`http://127.0.0.1:${s.port}`, 'the server uses TLS: use https://']]) {
		const { status, stderr } = push(server);
		assert.ok(stderr.includes(`${server}: ${words}`), stderr);
		assert.doesNotMatch(stderr, /retrying/);
		assert.equal(status, 1);
	}
});

test('it speaks TLS 1.2 and 1.3 with ciphers that keep secrets, and nothing older', async (t) => {
	const { s } = await started(t);
	assert.equal((await handshake(s, {})).version, 'TLSv1.3');
	const old = await handshake(s, { maxVersion: 'TLSv1.2' });
	assert.equal(old.version, 'TLSv1.2');
	assert.match(old.cipher, /^ECDHE-.*(GCM|CHACHA20)/);
	await assert.rejects(handshake(s, { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }));
	for (const weak of ['ECDHE-ECDSA-AES128-SHA', 'AES128-GCM-SHA256', 'ECDHE-ECDSA-AES128-SHA256'])
		await assert.rejects(handshake(s, { maxVersion: 'TLSv1.2', ciphers: `${weak}:@SECLEVEL=0` }), weak);
	const plain = await fetch(`http://127.0.0.1:${s.port}/healthz`).catch((e) => e);
	assert.ok(plain instanceof Error, 'plain HTTP gets no answer');
	assert.match(s.log, /event=listening url=https:/);
});

test('every answer has HSTS, and cookies are secure', async (t) => {
	const { s } = await started(t);
	for (const target of ['/', '/healthz', '/api/v1/traces', '/nowhere/at/all', '/api/v1/keys'])
		assert.equal((await ask(s, 'GET', target, { key: null })).headers['strict-transport-security'], 'max-age=31536000', target);
	const signed = await ask(s, 'POST', '/api/v1/session', { key: null, body: JSON.stringify({ token: s.read }), headers: { 'Content-Type': 'application/json' } });
	assert.equal(signed.status, 204);
	assert.match(signed.headers['set-cookie'][0], /; HttpOnly; SameSite=Strict; Secure$/);
});

test('uploads, resumed ones, streams and many requests of one connection', async (t) => {
	const { s } = await started(t);
	const agent = new https.Agent({ keepAlive: true, maxSockets: 1, ca });
	atEnd(t, () => agent.destroy());
	const body = sampleTrace(5);
	const up = await ask(s, 'POST', '/api/v1/traces', { key: s.ingest, body, agent });
	assert.equal(up.status, 202, up.bytes.toString());
	const sockets = new Set();
	const { id } = json(up);
	await until(async () => {
		const a = await ask(s, 'GET', `/api/v1/traces/${id}`, { agent });
		sockets.add(a.socket);
		return json(a).state === 'ready' ? true : undefined;
	}, 'decoded');
	for (let i = 0; i < 50; i++) sockets.add((await ask(s, 'GET', `/api/v1/traces/${id}/threads`, { agent })).socket);
	assert.equal(sockets.size, 1, 'one connection carried all');
	assert.deepEqual((await ask(s, 'GET', `/api/v1/traces/${id}/raw/trace`, { agent })).bytes, Buffer.from(body), 'what comes back is what went in');
	assert.ok((await ask(s, 'GET', `/api/v1/traces/${id}/perfetto`, { agent })).bytes.length > 100);

	const tus = { 'Tus-Resumable': '1.0.0' };
	const half = Math.floor(body.length / 2);
	const begun = await ask(s, 'POST', '/api/v1/uploads', { key: s.ingest, headers: { ...tus, 'Upload-Length': String(body.length) } });
	const place = begun.headers.location.replace(/^https?:\/\/[^/]*/, '');
	const piece = (from, to) => ask(s, 'PATCH', place, { key: s.ingest, body: body.subarray(from, to), headers: { ...tus, 'Content-Type': 'application/offset+octet-stream', 'Upload-Offset': String(from) } });
	assert.equal((await piece(0, half)).status, 204);
	assert.equal((await ask(s, 'HEAD', place, { key: s.ingest, headers: tus })).headers['upload-offset'], String(half));
	assert.equal((await piece(half, body.length)).status, 204);
});

test('many large bodies pass completely in both directions', async (t) => {
	const { s } = await started(t);
	const noise = Buffer.alloc(6 << 20);
	for (let i = 0; i < noise.length; i += 4) noise.writeUInt32LE((Math.imul(i, 2654435761) ^ (i << 7)) >>> 0, i);
	const { id } = json(await ask(s, 'POST', '/api/v1/traces?format=auto', { key: s.ingest, body: sampleTrace(9) }).then((a) => (a.status < 300 ? a : ask(s, 'POST', '/api/v1/traces', { key: s.ingest, body: sampleTrace(9) }))));
	const all = await Promise.all([...Array(24)].map((_, i) => (i % 2
		? ask(s, 'PUT', `/api/v1/builds/b${i}/methods?wait=60`, { key: s.ingest, body: noise }) // refused after all of it was read; a slow server does so after its 202
		: ask(s, 'GET', `/api/v1/traces/${id}/raw/trace`))));
	for (const [i, a] of all.entries()) assert.ok(i % 2 ? a.status === 202 || (a.status >= 400 && a.status < 500) : a.status === 200, `${i}: ${a.status}`);
	assert.equal((await ask(s, 'GET', '/healthz')).status, 200);
});

test('a new certificate serves the next connection while requests run; a wrong one changes nothing', async (t) => {
	const { s, where } = await started(t);
	const { id } = json(await ask(s, 'POST', '/api/v1/traces', { key: s.ingest, body: sampleTrace(6) }));
	let going = true;
	let failures = 0;
	const seen = new Set();
	const many = [...Array(6)].map(async () => {
		while (going)
			await ask(s, 'GET', `/api/v1/traces/${id}`).then((a) => {
				if (a.status !== 200) failures++;
				seen.add(a.serial);
			}, () => failures++);
	});
	const kept = new https.Agent({ keepAlive: true, maxSockets: 1, ca });
	const before = (await ask(s, 'GET', '/healthz', { agent: kept })).socket;
	assert.equal((await handshake(s, {})).serial, 1001);
	for (const round of [two, one, two, one, two]) {
		use(round, where);
		s.child.kill('SIGHUP');
		await until(async () => ((await handshake(s, {})).serial === (round === one ? 1001 : 2002) ? true : undefined), 'the other certificate');
	}
	assert.equal((await ask(s, 'GET', '/healthz', { agent: kept })).socket, before, 'an open connection goes on');
	kept.destroy();
	fs.writeFileSync(where.cert, 'no certificate at all');
	s.child.kill('SIGHUP');
	await until(() => (/event=certificate_kept .*contains no certificates/.test(s.log) ? true : undefined), 'it is reported');
	use({ cert: one.cert, key: two.key }, where);
	s.child.kill('SIGHUP');
	await until(() => (/event=certificate_kept .*does not match the certificate/.test(s.log) ? true : undefined), 'it is reported');
	assert.equal((await handshake(s, {})).serial, 2002, 'the one before goes on');
	use(one, where); // without a signal: the files are polled
	await until(async () => ((await handshake(s, {})).serial === 1001 ? true : undefined), 'noticed by itself');
	going = false;
	await Promise.all(many);
	assert.equal(failures, 0);
	assert.deepEqual([...seen].sort(), [1001, 2002]);
	assert.ok(!s.log.includes('PRIVATE KEY'));
});

test('half-open handshakes and garbage block no other client', async (t) => {
	const { s } = await started(t, ['--connection-timeout', '15']);
	const idle = await Promise.all([...Array(40)].map((_, i) => s.socket(i % 2 ? '' : 'GET / HTTP/1.1\r\n\r\n\x16\x03\x01')));
	assert.equal((await ask(s, 'GET', '/healthz')).status, 200);
	await Promise.all(idle.map((x) => x.answer)); // the server closes them
	assert.equal((await ask(s, 'GET', '/healthz')).status, 200);
});

test('errors at the start have one clear message', () => {
	const serve = (...args) => spawnSync(binary(), ['serve', '--data', path.join(folder, 'none'), '--listen', '127.0.0.1:0', ...args], { encoding: 'utf8' });
	const reported = (r, words) => {
		assert.notEqual(r.status, 0);
		assert.match(r.stderr, words);
	};
	reported(serve('--tls-cert', one.cert), /both --tls-cert and --tls-key/);
	reported(serve('--tls-cert', one.cert, '--tls-key', two.key), /does not match the certificate/);
	reported(serve('--tls-cert', one.key, '--tls-key', one.key), /contains no certificates/);
	reported(serve('--tls-cert', one.cert, '--tls-key', '/nowhere.key'), /cannot read \/nowhere\.key/);
	reported(spawnSync(binary(), ['serve', '--listen', '0.0.0.0:0'], { encoding: 'utf8' }), /--tls-cert/);
});
