/*
 * slow.test.mjs - slow clients: headers a byte at a time, bodies that stop, half-closed connections,
 * thousands of idle connections, and many from one address.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import { test } from 'node:test';

import { sampleTrace } from '../make.mjs';
import { sleep, startServer, until } from '../server.mjs';

const metric = async (s, name) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec((await s.get('/metrics', { key: null })).text)[1]);
/* Sockets alone: background threads open and close files as they like. */
const descriptors = (s) => {
	const folder = `/proc/${s.child.pid}/fd`;
	return fs.readdirSync(folder).filter((fd) => {
		try {
			return fs.readlinkSync(`${folder}/${fd}`).startsWith('socket:');
		} catch {
			return false; // closed in the meantime
		}
	}).length;
};

/* Sends a byte now and then, never silent for as long as the time-out, until the server closes; the bytes sent. */
async function drip(socket, text) {
	let [open, i] = [true, 0];
	socket.once('close', () => (open = false));
	await until(async () => {
		if (!open) return true;
		socket.write(text[i++ % text.length]);
		await sleep(200);
	}, `closed while it sends ${JSON.stringify(text)}`);
	return i;
}

test('headers that arrive byte by byte', async (t) => {
	const [s, patient] = await Promise.all(['10', '600'].map((limit) => startServer(t, { args: ['--connection-timeout', limit] })));
	const before = descriptors(s);
	const open = await patient.socket('GET /healthz HTTP/1.1\r\n');
	const kept = await s.socket('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
	await new Promise((done) => kept.once('data', done));
	await Promise.all([
		drip(await s.socket('GET /healthz HTTP/1.1\r\n'), 'X-A: b\r\n'),
		drip(await s.socket('GET /'), 'a'),
		drip(kept, 'X'), // the second request of a connection
	]);
	open.write('Host: x\r\nConnection: close\r\n\r\n');
	assert.match(await open.answer, /^HTTP\/1\.1 200 /, 'one begun earlier, with a later limit');
	assert.match(await kept.answer, /^HTTP\/1\.1 200 /);
	assert.equal(await metric(s, 'tracewell_connections_late_total'), 3);
	await until(() => (descriptors(s) <= before + 2 ? true : undefined), 'their descriptors are closed', 10);
});

/* Browsers open connections in advance, and keep others for later. */
test('silent connections are closed, and not counted as late', async (t) => {
	const s = await startServer(t, { args: ['--connection-timeout', '2'] });
	const closed = [];
	for (let i = 0; i < 20; i++) {
		const socket = await s.socket(i % 2 ? '' : 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
		socket.resume();
		closed.push(new Promise((done) => socket.once('close', done)));
		await sleep(100);
	}
	await Promise.all(closed);
	assert.equal(await metric(s, 'tracewell_connections_late_total'), 0);
});

/* A body is not headers: as long as it comes, it may take longer than they may. */
test('a slow body is accepted, a stalled one is ended', async (t) => {
	const s = await startServer(t, { args: ['--connection-timeout', '10'] });
	const body = sampleTrace(2000);
	const head = `POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${s.ingest}\r\nContent-Length: ${body.length}\r\n\r\n`;
	const slow = await s.socket(head);
	const stopped = await s.socket(head);
	stopped.write(body.subarray(0, 100));
	let ended, sent = 0;
	stopped.once('close', () => (ended = true));
	await until(async () => {
		if (ended) return true;
		slow.write(body.subarray(sent, (sent += 100)));
		await sleep(100);
	}, 'the stalled one is ended');
	assert.ok(sent < body.length, 'the slow one is not complete');
	slow.write(body.subarray(sent));
	assert.match(await slow.answer, /^HTTP\/1\.1 202 /);
	assert.equal(await stopped.answer, '');
	await until(() => (s.spool().some((name) => name.startsWith('up-')) ? undefined : true), 'an empty spool', 10);
	assert.equal(await s.total(), 1);
});

test('connections closed by half, at any time', async (t) => {
	const s = await startServer(t, { args: ['--connection-timeout', '600'] });
	const before = descriptors(s);
	const PARTS = ['', 'G', 'GET /healthz HTTP/1.1\r\n', 'GET /healthz HTTP/1.1\r\nHost: x\r\n'];
	for (const [text, atOnce] of [...PARTS.map((part) => [part, false]), ...PARTS.map((part) => [part, true])]) {
		if (atOnce) s.child.kill('SIGSTOP'); // the server finds the connection, its bytes and its end together
		const socket = await s.socket(text);
		let closed;
		socket.once('close', () => (closed = true));
		await new Promise((done) => socket.end(done));
		if (atOnce) s.child.kill('SIGCONT');
		await until(() => closed, `the end of ${JSON.stringify(text)}, long before the time-out`);
	}
	const asked = await s.socket('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
	asked.end();
	assert.match(await asked.answer, /^HTTP\/1\.1 200 /, 'a whole request is answered');
	await until(() => (descriptors(s) <= before + 2 ? true : undefined), 'their descriptors are closed', 10);
});

test('ten thousand idle connections', async (t) => {
	const MANY = 10_000;
	const s = await startServer(t, { args: ['--connections', '12000', '--connections-per-address', '0', '--connection-timeout', '300'] });
	if (s.log.includes('event=descriptor_limit_low')) return t.skip('the system allows too few descriptors');
	await until(() => s.log.includes('event=start_check state=complete') || undefined, 'the start check closes its files');
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
	const left = many.filter((socket) => !socket.destroyed);
	for (const socket of left) {
		const answered = new Promise((done) => (socket.once('data', () => done(true)), socket.once('close', () => done(false))));
		socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
		assert.ok(await answered, 'those within it are served');
	}
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
