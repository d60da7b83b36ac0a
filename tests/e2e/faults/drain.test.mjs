/*
 * drain.test.mjs - a stop that a load balancer can follow, and a log in which one upload can be followed.
 */
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';

import { sampleTrace } from '../make.mjs';
import { startServer, until } from '../server.mjs';

const ready = (s) => s.get('/readyz', { key: null });
/* By a separate connection: open ones are served until the end. */
const refused = (s) => new Promise((done) => {
	const socket = net.connect(s.port, '127.0.0.1', () => { socket.destroy(); done(undefined); });
	socket.once('error', () => done(true));
});

test('SIGTERM: immediately not ready, still serving, then no new connections, then running requests finish', async (t) => {
	const s = await startServer(t, { args: ['--drain-seconds', '600', '--shutdown', '600'] });
	assert.equal((await ready(s)).status, 200);

	/* an upload that is begun now and ends after the drain */
	const key = s.ingest;
	const slow = await s.socket(`POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${sampleTrace(60).length}\r\n\r\n`);
	const body = sampleTrace(60);
	slow.write(body.subarray(0, 100));

	s.child.kill('SIGTERM');
	const red = await until(async () => {
		const r = await ready(s);
		return r.status === 503 ? r : undefined;
	}, 'a red readiness');
	assert.equal(red.json.checks.running.ok, false);
	assert.match(red.json.checks.running.message, /shutting down/);
	assert.equal((await s.get('/readyz?for=read', { key: null })).status, 503, 'readers go elsewhere, too');
	const upload = await s.post('/api/v1/traces', sampleTrace(61));
	assert.equal(upload.status, 202, 'whoever has not noticed yet is served');
	s.child.kill('SIGTERM'); // ends the drain
	await until(() => refused(s), 'no new connection');
	assert.ok(!s.exited, 'the upload holds it');
	slow.end(body.subarray(100));
	assert.match(await slow.answer, /^HTTP\/1.1 202 /);
	assert.deepEqual(await s.ended, { code: 0, signal: null });

	s.args.splice(0, 4);
	await s.start();
	assert.equal((await s.get('/api/v1/traces')).json.total, 2);
});

test('a decode in progress is finished before the end', async (t) => {
	const s = await startServer(t);
	const { id } = (await s.post('/api/v1/traces', sampleTrace(20000))).json;
	await s.stop();
	assert.match(s.log, /event=stopped/);
	await s.start();
	assert.equal((await s.decoded(id)).state, 'ready');
	assert.equal((await s.decoded(id)).attempts, 1);
});

test('a drain ends after --drain-seconds', async (t) => {
	const s = await startServer(t, { args: ['--drain-seconds', '2'] });
	s.child.kill('SIGTERM');
	assert.deepEqual(await s.ended, { code: 0, signal: null });
	const at = (event) => until(() => new RegExp(`^time=(\\S+) .*event=${event}\\b`, 'm').exec(s.log)?.[1], `the line ${event}`).then(Date.parse);
	assert.ok((await at('stopped')) - (await at('draining')) >= 1990, 'not before the time');
});

test('one upload, from its request to its trace, by the ids in the log', async (t) => {
	const s = await startServer(t);
	const answer = await s.post('/api/v1/traces', sampleTrace(62));
	const { id } = answer.json;
	await s.decoded(id);
	const request = answer.headers.get('x-request-id');
	const event = (name) => s.log.split('\n').find((l) => l.includes(id) && new RegExp(`event=${name}\\b`).test(l));
	for (const name of ['accepted', 'decoding', 'decoded']) await until(() => event(name), `the line ${name}`);
	assert.ok(event('accepted').includes(request), 'it leads to the request');
	assert.match(event('decoded'), /outcome=ready/);
	assert.ok(s.log.split('\n').some((l) => l.includes('event=request') && l.includes(`id=${request}`) && /status=202/.test(l)));
});
