/*
 * abandoned.test.mjs - a query whose client closed the connection ends; one whose client closed only its sending half is
 * answered if it is quick.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { manyMethods } from '../isolation.mjs';
import { startServer, until } from '../server.mjs';

const METHODS = 250_000;
const WORTH_MS = 120_000; // of queries: far longer than the server needs to detect that the client has left

test('queries of clients that closed the connection', { timeout: 400_000 }, async (t) => {
	/* one thread answers, and no answer is taken from the cache: the queries last as long as their sum */
	const s = await startServer(t, { args: ['--query-threads', '1', '--query-deadline', '3600000', '--response-cache', '0', '--response-memory', '1G'] });
	const { id } = await s.trace(manyMethods(METHODS));
	let serial = 0;
	const target = () => `/api/v1/traces/${id}/flame?max_nodes=20000&from=${++serial}`;
	const head = (what) => `GET ${what} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${s.read}\r\nConnection: close\r\n\r\n`;
	await s.get(target());
	const began = performance.now();
	await s.get(target());
	const each = performance.now() - began;
	const n = Math.min(400, Math.ceil(WORTH_MS / each));
	const open = () => s.metric('tracewell_requests_open');
	const ended = () => s.metric('tracewell_requests_abandoned_total');

	for (const [how, close] of [['a reset', (socket) => socket.resetAndDestroy()], ['an end', (socket) => socket.destroy()]]) {
		await t.test(`end after ${how}`, async (t) => {
			const before = await ended();
			const sockets = await Promise.all(Array.from({ length: n }, () => s.socket(head(target()))));
			await until(async () => ((await open()) >= n * 0.9 ? true : undefined), 'the queries begun');
			const left = performance.now();
			sockets.forEach(close);
			await until(async () => ((await open()) === 1 ? true : undefined), 'no request but that for the metrics', 120);
			const took = performance.now() - left;
			t.diagnostic(`${n} queries of ${each.toFixed(0)} ms each ended ${(took / 1000).toFixed(1)} s after ${how}`);
			assert.ok((await ended()) - before > n / 2, 'most were not answered to the end');
			assert.match(s.log, /event=request .*status=499/);
		});
	}

	await t.test('an SQL statement ends too', async () => {
		const before = await ended();
		const body = JSON.stringify({ sql: 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c' });
		const socket = await s.socket(`POST /api/v1/traces/${id}/sql HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${s.read}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
		await until(async () => ((await open()) === 2 ? true : undefined), 'the statement begun');
		socket.destroy();
		await until(async () => ((await open()) === 1 ? true : undefined), 'no request but that for the metrics', 120);
		assert.equal(await ended(), before + 1);
	});

	await t.test('detectors that are tried, too', async () => {
		const before = await ended();
		const post = (path, body) => s.socket(`POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${s.read}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
		/* it waits for the one thread until its client has left */
		const statement = await post(`/api/v1/traces/${id}/sql`, JSON.stringify({ sql: 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c' }));
		await until(async () => ((await open()) === 2 ? true : undefined), 'the statement begun');
		const attempt = await post('/api/v1/detectors/preview', JSON.stringify({ trace: id, rules: [{ id: 'a', kind: 'own', title: 'A', methods: ['/x/'], threads: 'all', threshold_ms: 0 }] }));
		await until(async () => ((await open()) === 3 ? true : undefined), 'the attempt waits');
		attempt.destroy();
		statement.destroy();
		await until(async () => ((await open()) === 1 ? true : undefined), 'no request but that for the metrics', 120);
		assert.equal(await ended(), before + 2);
	});

	await t.test('and that of a client that closed its sending half is answered', async () => {
		const before = await ended();
		const socket = await s.socket();
		socket.end(head(`/api/v1/traces/${id}`)); // a query of seconds counts as abandoned
		assert.match(await socket.answer, /^HTTP\/1\.1 200 /);
		assert.equal(await ended(), before);
	});
});
