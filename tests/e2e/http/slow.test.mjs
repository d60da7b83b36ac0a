/*
 * slow.test.mjs - clients that take their time: headers a byte at a time, bodies that stop, ends
 * that are closed by half, thousands of connections that say nothing, and many from one address.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import { test } from 'node:test';

import { sampleTrace } from './make.mjs';
import { sleep, startServer, until } from './server.mjs';

const metric = async (s, name) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec((await s.get('/metrics', { key: null })).text)[1]);
const descriptors = (s) => fs.readdirSync(`/proc/${s.child.pid}/fd`).length;

/* Sends a byte now and then, never silent for as long as the time-out, until the end. */
async function drip(socket, text) {
	const began = Date.now();
	let open = true;
	socket.once('close', () => (open = false));
	for (let i = 0; open && Date.now() - began < 40_000; i++) {
		socket.write(text[i % text.length]);
		await sleep(300);
	}
	return { open, ms: Date.now() - began };
}

test('headers that come a byte at a time', async (t) => {
	const s = await startServer(t, { args: ['--connection-timeout', '2'] });
	const before = descriptors(s);
	const first = await drip(await s.socket('GET /healthz HTTP/1.1\r\n'), 'X-A: b\r\n');
	assert.ok(!first.open && first.ms >= 1500, JSON.stringify(first));
	const line = await drip(await s.socket('GET /'), 'a');
	assert.ok(!line.open, JSON.stringify(line));
	const kept = await s.socket('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
	await sleep(500);
	const second = await drip(kept, 'X');
	assert.ok(!second.open, 'the second request of a connection: ' + JSON.stringify(second));
	assert.match(await kept.answer, /^HTTP\/1\.1 200 /);
	assert.equal(await metric(s, 'tracewell_connections_late_total'), 3);
	await until(() => (descriptors(s) <= before + 2 ? true : undefined), 'their descriptors are closed', 10);
});

/* A body is not headers: as long as it comes, it may take longer than they may. */
test('a body that is slow comes in, one that stops is cut', async (t) => {
	const s = await startServer(t, { args: ['--connection-timeout', '2'] });
	const body = sampleTrace(20);
	const head = `POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${s.ingest}\r\nContent-Length: ${body.length}\r\n\r\n`;
	const slow = await s.socket(head);
	for (let i = 0; i < 12; i++) {
		slow.write(body.subarray(Math.floor((i * body.length) / 12), Math.floor(((i + 1) * body.length) / 12)));
		await sleep(300);
	}
	assert.match(await slow.answer, /^HTTP\/1\.1 202 /);
	const stopped = await s.socket(head);
	stopped.write(body.subarray(0, 100));
	assert.equal(await stopped.answer, '');
	await until(() => (s.spool().some((name) => name.startsWith('up-')) ? undefined : true), 'an empty spool', 10);
	assert.equal(await s.total(), 1);
});

test('connections closed by half, at any time', async (t) => {
	const s = await startServer(t, { args: ['--connection-timeout', '60'] });
	const before = descriptors(s);
	for (const text of ['', 'G', 'GET /healthz HTTP/1.1\r\n', 'GET /healthz HTTP/1.1\r\nHost: x\r\n']) {
		const socket = await s.socket(text);
		await sleep(50);
		const began = Date.now();
		socket.end();
		await socket.answer;
		assert.ok(Date.now() - began < 20_000, JSON.stringify(text));
	}
	const asked = await s.socket('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
	asked.end();
	assert.match(await asked.answer, /^HTTP\/1\.1 200 /, 'a whole request is answered');
	await until(() => (descriptors(s) <= before + 2 ? true : undefined), 'their descriptors are closed', 10);
});

test('ten thousand idle connections', async (t) => {
	const MANY = 10_000;
	const s = await startServer(t, { args: ['--connections', '12000', '--connections-per-address', '0', '--connection-timeout', '300'] });
	if (s.log.includes('event=few_descriptors')) return t.skip('the system allows too few descriptors');
	await s.get('/healthz', { key: null });
	const memory = s.resident();
	const files = descriptors(s); /* one of them is that request's own */
	const sockets = [];
	while (sockets.length < MANY)
		sockets.push(...(await Promise.all(Array.from({ length: 250 }, () => new Promise((done, fail) => {
			const socket = net.connect(s.port, '127.0.0.1', () => done(socket));
			socket.once('error', fail);
		})))));
	await until(() => (descriptors(s) >= files + MANY - 1 ? true : undefined), 'all are accepted', 60).catch((e) => {
		throw new Error(`${e.message}: ${descriptors(s) - files}; ${s.log.slice(-300)}`);
	});
	const each = ((s.resident() - memory) * 1024) / MANY;
	t.diagnostic(`${descriptors(s)} descriptors, ${s.resident().toFixed(0)} MiB: ${each.toFixed(1)} KiB a connection`);
	assert.ok(each < 24, `${each} KiB a connection`);
	assert.equal((await s.trace(sampleTrace())).state, 'ready', 'work goes on beside them');
	const last = sockets[MANY - 1];
	const answer = new Promise((done) => last.once('data', (d) => done(d.toString('latin1'))));
	last.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
	assert.match(await answer, /^HTTP\/1\.1 200 /, 'they are good for a request');
	assert.ok((await metric(s, 'tracewell_connections_open')) > MANY - 1);
	for (const socket of sockets) socket.destroy();
	await until(() => (descriptors(s) <= files + 20 ? true : undefined), 'descriptors are given back', 60);
	t.diagnostic(`${s.resident().toFixed(0)} MiB after, ${memory.toFixed(0)} before`);
});

test('connections of one address are bounded', async (t) => {
	const s = await startServer(t, { args: ['--connections-per-address', '20'] });
	const connect = (localAddress) => new Promise((done) => {
		const socket = net.connect({ port: s.port, host: '127.0.0.1', localAddress });
		socket.on('error', () => {});
		socket.once('connect', () => done(socket));
	});
	const many = await Promise.all(Array.from({ length: 40 }, () => connect('127.0.0.7')));
	let closed = 0;
	for (const socket of many) socket.resume().once('close', () => closed++);
	await until(() => (closed >= 20 ? true : undefined), 'those past the bound are closed', 10);
	await sleep(200);
	assert.equal(closed, 20);
	assert.equal((await s.get('/healthz', { key: null })).status, 200, 'another address has its own');
	for (const socket of many) socket.destroy();
	await until(async () => {
		const socket = await connect('127.0.0.7');
		const answer = new Promise((done) => (socket.once('data', () => done(true)), socket.once('close', () => done(undefined))));
		socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
		return answer;
	}, 'room again', 10);
});
