/*
 * forwarders.mjs - forwarders in a process of their own, through which the programs of a test reach each other. A closed gate
 * lets nothing pass and ends no connection, as a network that drops packets; a gate with { http: true } also fails
 * requests at random.
 *
 *   const gates = await startGates(t);
 *   const port = await gates.make('in1 db', { port: 5432 });
 *   await gates.set('in1 db', { closed: true });                 // {}: all passes
 *   await gates.set('store', { chance: 0.3, status: 500 });     // or drop, cut, flip, wait: milliseconds; { hang }
 */
import { fork } from 'node:child_process';
import http from 'node:http';
import net from 'node:net';
import { fileURLToPath } from 'node:url';

import { atEnd } from './server.mjs';

const file = fileURLToPath(import.meta.url);

function forward(gate) {
	return net.createServer((from) => {
		const pair = [from, net.connect(gate.to)];
		gate.pairs.add(pair);
		for (const [one, other] of [pair, [...pair].reverse()]) {
			one.setNoDelay?.(true);
			one.on('data', (bytes) => other.write(bytes));
			one.on('error', () => {});
			one.on('close', () => {
				if (gate.state.closed) return; // the other side does not know yet
				other.destroy();
				gate.pairs.delete(pair);
			});
			if (gate.state.closed) one.pause();
		}
	});
}

async function passRequest(gate, q, r) {
	const body = Buffer.concat(await q.toArray());
	while (gate.state.hang) await new Promise((done) => setTimeout(done, 20));
	const fault = Math.random() < (gate.state.chance ?? 0) ? gate.state : {};
	if (fault.wait) await new Promise((done) => setTimeout(done, fault.wait));
	if (fault.status) return r.writeHead(fault.status, { 'content-type': 'application/xml' }).end(q.method === 'HEAD' ? '' : '<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>by the test</Message></Error>');
	if (fault.drop) return q.socket.destroy();
	const { expect, ...headers } = q.headers;
	const inner = http.request({ ...gate.to, method: q.method, path: q.url, headers }, async (answer) => {
		const bytes = await answer.toArray().then(Buffer.concat, () => undefined);
		if (!bytes) return q.socket.destroy();
		const { 'transfer-encoding': coding, ...rest } = answer.headers;
		if (fault.flip && q.method === 'GET' && !q.url.includes('list-type') && bytes.length) bytes[bytes.length >> 1] ^= 1;
		r.writeHead(answer.statusCode, { ...rest, ...(q.method === 'HEAD' ? {} : { 'content-length': bytes.length }) });
		if (!fault.cut) return r.end(bytes);
		r.write(bytes.subarray(0, bytes.length >> 1), () => q.socket.destroy());
	});
	inner.on('error', () => q.socket.destroy());
	inner.end(body);
}

function set(gate, state) {
	gate.state = state;
	for (const pair of [...gate.pairs]) {
		if (pair.some((one) => one.destroyed) && !state.closed) {
			pair.forEach((one) => one.destroy());
			gate.pairs.delete(pair);
		}
		for (const one of pair) state.closed ? one.pause() : one.resume();
	}
}

if (process.argv[1] === file) {
	const gates = new Map();
	process.on('disconnect', () => process.exit());
	process.on('message', async ({ id, name, to, state }) => {
		let port;
		if (to) {
			const gate = { to: { host: '127.0.0.1', ...to }, state: {}, pairs: new Set() };
			gates.set(name, gate);
			const server = to.http ? http.createServer((q, r) => passRequest(gate, q, r).catch(() => q.socket.destroy())) : forward(gate);
			await new Promise((done) => server.listen(0, '127.0.0.1', done));
			port = server.address().port;
		} else {
			set(gates.get(name), state);
		}
		process.send({ id, port });
	});
}

export async function startGates(t) {
	const child = fork(file, [], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
	const waiting = new Map();
	let n = 0;
	child.on('message', ({ id, port }) => waiting.get(id)(port));
	atEnd(t, () => child.disconnect());
	const call = (message) => new Promise((done) => {
		waiting.set(++n, done);
		child.send({ id: n, ...message });
	});
	return { make: (name, to) => call({ name, to }), set: (name, state) => call({ name, state }) };
}
