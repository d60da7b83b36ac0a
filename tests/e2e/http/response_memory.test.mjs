/*
 * response_memory.test.mjs - unread responses use a bounded amount of memory, and no caller uses all of it.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import { test } from 'node:test';

import { btrace } from '../make.mjs';
import { sanitized, startServer, until } from '../server.mjs';

const METHODS = 300_000;
const LIMIT_MB = 96;

/* An export of it holds about 10 MB. */
function manyMethods() {
	const records = [];
	for (let i = 0; i < METHODS; i++) records.push([4000, i, 1_000_000 + i * 10, 5]);
	return btrace(records, { pid: 4000 });
}

/* An export whose answer is read up to its headers and no further: their text. */
async function unread(s, target, key) {
	const socket = await s.socket();
	const heads = new Promise((done) => {
		let all = '';
		const receive = (piece) => {
			all += piece;
			if (!all.includes('\r\n\r\n')) return;
			socket.pause();
			socket.off('data', receive);
			done(all);
		};
		socket.removeAllListeners('data').on('data', receive);
		socket.once('close', () => done(all));
	});
	socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\n${key ? `Authorization: Bearer ${key}\r\n` : ''}\r\n`);
	return { socket, head: await heads };
}

/* Heaps of the C library besides the first, of up to 64 MiB, at whose end their address space is reserved. Each retains memory that was freed. */
const heapsOf = (s) => fs.readFileSync(`/proc/${s.child.pid}/maps`, 'utf8').split('\n')
	.filter((line) => / ---p 00000000 00:00 0 *$/.test(line) && BigInt(`0x${line.split(/[- ]/)[1]}`) % (64n << 20n) === 0n).length;

const statusOf = ({ head }) => Number(/^HTTP\/1.1 (\d+)/.exec(head)?.[1]);
const exportOf = (id) => `/api/v1/traces/${id}/export/speedscope`;

async function openMany(s, n, target, key) {
	const all = await Promise.all(Array.from({ length: n }, () => unread(s, target, key)));
	const served = all.filter((a) => statusOf(a) === 200);
	const refused = all.filter((a) => statusOf(a) === 503);
	assert.equal(served.length + refused.length, n, all.map(statusOf).join(' '));
	assert.ok(served.length > 0, 'some are served');
	assert.ok(refused.length > n / 2, 'most are refused');
	for (const { head } of refused) {
		assert.match(head, /\r\nRetry-After: \d+\r\n/);
		assert.match(head, /"status":"busy"/);
	}
	return all;
}

const closeAll = (all) => all.forEach(({ socket }) => socket.destroy());

test('exports that are never read', { timeout: 900_000 }, async (t) => {
	const s = await startServer(t, { args: ['--response-memory', `${LIMIT_MB}M`, '--response-cache', '0', '--connection-timeout', '600', '--query-deadline', '120000'] });
	const body = manyMethods();
	const { id } = await s.trace(body, { query: { uuid: 'a' } });
	const other = await s.post('/api/v1/traces', body, { key: s.key('ingest', 'other'), query: { uuid: 'b' } });
	const read = s.key('read', 'other');
	await until(async () => ((await s.get(`/api/v1/traces/${other.json.id}`, { key: read })).json.state === 'ready' ? true : undefined), 'the other trace decoded', 120);
	const idle = s.resident();

	await t.test('hold no more than --response-memory, and leave memory for another project', async () => {
		const all = await openMany(s, 30, exportOf(id), s.read);
		if (!sanitized()) assert.ok(s.resident() - idle < LIMIT_MB * 1.5, `${idle} MB idle, ${s.resident()} MB now`);
		if (!sanitized()) assert.ok(heapsOf(s) <= os.cpus().length + LIMIT_MB / 64, `${heapsOf(s)} heaps`);
		const theirs = await s.get(exportOf(other.json.id), { key: read });
		assert.equal(theirs.status, 200, theirs.text.slice(0, 200));
		assert.equal(theirs.json.shared.frames.length, METHODS);
		assert.equal((await s.get('/api/v1/traces')).status, 200, 'small responses are made all the same');
		const metrics = (await s.get('/metrics', { key: null })).text;
		assert.match(metrics, /^tracewell_response_memory_limit_bytes 100663296$/m);
		assert.ok(Number(/^tracewell_response_memory_refused_total (\d+)$/m.exec(metrics)[1]) > 15);
		closeAll(all);
		await until(async () => ((await s.get(exportOf(id))).status === 200 ? true : undefined), 'room after they were closed');
	});

	await t.test('by one ticket, without a key', async () => {
		const ticket = await s.post(`/api/v1/traces/${id}/tickets`, JSON.stringify({ kind: 'speedscope' }), { key: s.read, headers: { 'Content-Type': 'application/json' } });
		const all = await openMany(s, 12, ticket.json.path, null);
		if (!sanitized()) assert.ok(s.resident() - idle < LIMIT_MB * 1.5);
		closeAll(all);
		await until(async () => ((await s.get(exportOf(id))).status === 200 ? true : undefined), 'room after they were closed');
	});

	await t.test('give way to a reader when memory is short', async () => {
		const all = await openMany(s, 12, exportOf(id), s.read);
		await until(async () => ((await s.get(exportOf(id))).status === 200 ? true : undefined), 'unread exports cut', 60);
		assert.match(s.log, /unread_responses_aborted/);
		closeAll(all);
	});
});
