/*
 * http.test.mjs - invalid requests before any route is called, byte by byte: a JSON error if there is a
 * request to answer, always the right status, the connection closed, nothing left.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { sampleTrace } from '../make.mjs';
import { startServer, until } from '../server.mjs';

const JSON_ERROR = /\r\nContent-Type: application\/json\r\n[^]*\r\n\r\n(\{"error":\{.*\}\})$/;

test('requests that are wrong as such', async (t) => {
	const s = await startServer(t, { args: ['--connection-timeout', '20'] });
	const say = async (text) => (await s.socket(text)).answer;
	const refused = async (text, status, word, message) => {
		const answer = await say(text);
		assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), answer.slice(0, 300));
		const { error } = JSON.parse(JSON_ERROR.exec(answer)?.[1] ?? assert.fail(JSON.stringify([text.slice(0, 300), answer])));
		assert.equal(error.status, word);
		assert.equal(error.offset, null);
		assert.match(error.message, message);
	};
	const get = (target, ...headers) => `GET ${target} HTTP/1.1\r\n${['Host: x', ...headers].join('\r\n')}\r\n\r\n`;

	await t.test('a path too long', async () => {
		const path = (n) => '/api/v1/traces?q=' + 'a'.repeat(n - '/api/v1/traces?q='.length);
		assert.match(await say(get(path(16384), 'Connection: close')), /^HTTP\/1\.1 401 /);
		for (const n of [16385, 40000, 100_000]) await refused(get(path(n)), 414, 'target_too_long', /16384 bytes/);
	});
	await t.test('headers too large', async () => {
		const padded = (n, each) => {
			const lines = [];
			while (n > 0) lines.push(`X-Pad-${lines.length}: ${'p'.repeat(each)}`), (n -= each);
			return get('/healthz', 'Connection: close', ...lines);
		};
		assert.match(await say(padded(60_000, 30_000)), /^HTTP\/1\.1 200 /);
		for (const [n, each] of [[66_000, 66_000], [70_000, 10_000], [100_000, 50_000]])
			await refused(padded(n, each), 431, 'headers_too_large', /65536 bytes/);
	});
	await t.test('Host', async () => {
		await refused('GET /healthz HTTP/1.1\r\n\r\n', 400, 'bad_request', /Host header is missing/);
		await refused(get('/healthz', 'Host: y'), 400, 'bad_request', /more than one Host/);
		assert.match(await say('GET /healthz HTTP/1.0\r\n\r\n'), /^HTTP\/1\.\d 200 /);
	});
	await t.test('a space in the path', async () => {
		await refused('GET /api v1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 400, 'bad_request', /percent-encode/);
	});
	const smuggled = '0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n';
	await t.test('two ends of one body', async () => {
		const post = (...headers) => `POST /api/v1/traces HTTP/1.1\r\nHost: x\r\n${headers.join('\r\n')}\r\n\r\n`;
		await refused(post('Content-Length: 4', 'Transfer-Encoding: chunked') + smuggled, 400, 'bad_request', /more than once/);
		await refused(post('Content-Length: 4', 'Content-Length: 5') + 'abcde', 400, 'bad_request', /more than once/);
		await refused(post('Transfer-Encoding: chunked', 'Transfer-Encoding: identity') + smuggled, 400, 'bad_request', /more than once/);
		await refused(post('Transfer-Encoding: gzip') + 'abc', 400, 'bad_request', /chunked/);
		await refused(post('Content-Length : 4') + 'abcd', 400, 'bad_request', /not a header name/);
		assert.equal((await say(post('Content-Length: 4', 'Transfer-Encoding: chunked') + smuggled)).match(/HTTP\/1\.1 /g).length, 1);
	});
	await t.test('lines that two readers split differently', async () => {
		const torn = /NUL or CR, is folded or does not end with CRLF/;
		const raw = (...lines) => `POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${s.ingest}\r\n${lines.join('\r\n')}\r\n\r\n`;
		for (const line of ['Content-Length: 0\x0050', 'Content-Length: 0\0', 'Transfer-Encoding: chunked\0x', 'X: a\rContent-Length: 4', 'X: a\r',
			'X: a\nContent-Length: 4', 'X: a\r\n b', 'X: a\r\n\tb'])
			for (const text of [raw(line), raw(line, 'Y: z'), raw('Y: z', line)]) await refused(text + smuggled, 400, 'bad_request', torn);
		for (const text of ['GET /healthz HTTP/1.1\nHost: x\r\n\r\n', 'GET /healthz HTTP/1.1\r\nHost: x\r\n\n', 'GET /healthz\0/x HTTP/1.1\r\nHost: x\r\n\r\n', 'GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n'])
			await refused(text, 400, 'bad_request', torn);
		await refused(raw('Content-Length: 18446744073709551615') + 'abc', 400, 'bad_request', /2\^64-1/);
		await refused(`POST /api/v1/traces HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n${smuggled}`, 400, 'bad_request', /HTTP\/1\.0/);
		await refused(raw('Transfer-Encoding: chunked') + '4\nabcd\r\n0\r\n\r\n', 400, 'bad_request', /CRLF/);
		const chunked = await say(raw('Transfer-Encoding: chunked') + '4\r\nabcd\n0\n\n' + get('/healthz'));
		assert.equal(chunked.match(/HTTP\/1\.1 /g).length, 1, 'nothing is read after chunks');
		assert.match(chunked, /Connection: close/i);
	});
	await t.test('a target in absolute form', async () => {
		assert.match(await say(get('http://x/healthz', 'Connection: close')), /^HTTP\/1\.1 200 /);
		assert.match(await say(get('HTTPS://other.example:8443/healthz?a=b', 'Connection: close')), /^HTTP\/1\.1 200 /);
		assert.match(await say(get('http://x', 'Connection: close')), /^HTTP\/1\.1 200 /);
		assert.match(await say(get('http://x?q=1', 'Connection: close')), /^HTTP\/1\.1 200 /);
		await refused(get('http:///healthz', 'Connection: close'), 400, 'bad_request', /host is empty/);
		await refused(get('http://me@x/healthz', 'Connection: close'), 400, 'bad_request', /user name/);
		/* its host takes the place of Host, so that a page's origin is compared with it */
		const sign = (target, origin) => say(`POST ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nOrigin: ${origin}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`);
		assert.match(await sign('http://y/api/v1/session', 'http://y'), /^HTTP\/1\.1 400 /);
		assert.match(await sign('http://y/api/v1/session', 'http://x'), /^HTTP\/1\.1 403 /);
	});
	/* libmicrohttpd responds to these itself: they are not requests. */
	await t.test('input that is not HTTP', async () => {
		const bytes = 300_000;
		for (const [text, status] of [
			['nonsense and more\r\n\r\n', 400],
			['GET / HTTP/1.1\r\nHost: x\r\nno colon here\r\n\r\n', 400],
			['POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n', 400],
			['POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n', 413],
			[`POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${s.ingest}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`, 400],
			['GET / HTTP/3.0\r\nHost: x\r\n\r\n', 505],
			[get('/' + 'a'.repeat(bytes)), 414],
			[get('/', 'X-Pad: ' + 'p'.repeat(bytes)), 431],
		]) {
			const answer = await say(text);
			/* bytes that the client still sends may truncate the response */
			if (text.length < bytes || answer) assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), text.slice(0, 80));
			if (answer) assert.match(answer, /Connection: close/i);
		}
		assert.match(await say('nonsense\r\n\r\n'), /^(HTTP\/1\.1 400 |$)/);
	});
	await t.test('and the server continues', async () => {
		assert.equal((await s.get('/healthz', { key: null })).status, 200);
		assert.deepEqual(s.spool(), []);
		assert.equal(await s.total(), 0);
	});
});

/* The time-out is long: only noticing the close itself makes these quick. */
test('a connection closed in the packet of the last bytes is noticed', async (t) => {
	const s = await startServer(t, { args: ['--connection-timeout', '600'] });
	const body = sampleTrace(3000); /* more than is held in memory */
	const cut = body.subarray(0, 20000);
	const head = (...headers) => Buffer.from(
		`POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${s.ingest}\r\n${headers.join('\r\n')}\r\n\r\n`,
	);
	const chunk = (bytes) => Buffer.concat([Buffer.from(bytes.length.toString(16) + '\r\n'), bytes, Buffer.from('\r\n')]);
	/* All in one write, then the end: with the socket corked they are one segment or two at once. */
	const send = async (...pieces) => {
		const socket = await s.socket();
		socket.cork();
		for (const piece of pieces) socket.write(piece);
		socket.end();
		socket.uncork();
		return socket.answer;
	};
	const quickly = async (what, ask) => {
		let answer;
		void ask().then((text) => (answer = text));
		return until(() => (s.spool().length === 0 ? answer : undefined), `${what}: its end, and an empty spool`);
	};

	for (let i = 0; i < 10; i++) {
		assert.equal(await quickly('a body cut', () => send(head(`Content-Length: ${body.length}`), cut)), '');
		assert.equal(await quickly('headers alone', () => send(head(`Content-Length: ${body.length}`))), '');
	}
	for (let i = 0; i < 3; i++) {
		assert.equal(await quickly('chunks cut', () => send(head('Transfer-Encoding: chunked'), chunk(cut))), '');
		const socket = await s.socket();
		socket.write(head(`Content-Length: ${body.length}`));
		await until(() => (s.spool().length === 1 ? true : undefined), 'its headers read');
		await quickly('a body cut behind its headers', () => (socket.end(cut), socket.answer));
	}
	assert.equal(await s.total(), 0);

	await t.test('and complete ones are answered', async () => {
		assert.match(await send(head(`Content-Length: ${body.length}`), body), /^HTTP\/1\.1 202 /);
		assert.match(await send(head('Transfer-Encoding: chunked'), chunk(sampleTrace(30)), '0\r\n\r\n'), /^HTTP\/1\.1 202 /);
		assert.match(await send(head('Transfer-Encoding: chunked'), chunk(cut), chunk(body.subarray(20000)), '0\r\n\r\n'), /^HTTP\/1\.1 202 /);
	});
});
