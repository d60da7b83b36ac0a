/*
 * fair.test.mjs - many concurrent uploads: a burst of one project delays decodes of others by no more than
 * its share, and above the queue limits the response has a Retry-After.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { manyMethods } from '../isolation.mjs';
import { sampleTrace } from '../make.mjs';
import { binary, endsUnlike, freePort, sleep, startServer, until } from '../server.mjs';

/* Traces decoded between the answer to an upload and its own decode, as the log has them. */
function overtook(log, request, id) {
	const lines = log.split('\n');
	const from = lines.findIndex((l) => l.includes('event=request') && l.includes(`id=${request}`));
	const to = lines.findIndex((l) => l.includes('event=decoded') && l.includes(`trace=${id}`));
	assert.ok(from >= 0 && to >= 0, 'both are in the log');
	return lines.slice(from, to).filter((l) => l.includes('event=decoded')).length;
}

test("a burst of other projects' holds up nobody", async (t) => {
	/* a decoder per trace, so that the time of each is known; groups: decode/group */
	const s = await startServer(t, { args: ['--decode-workers', '1', '--decode-group', '1'] });
	const keys = ['one', 'two', 'three'].map((name) => s.key('ingest', name));
	const alone = { ingest: s.key('ingest', 'alone'), read: s.key('read', 'alone') };
	let n = 0;
	const burst = (key, count) => Promise.all(Array.from({ length: count }, () => s.post('/api/v1/traces', sampleTrace(30, ++n), { key })));
	for (const answer of await burst(keys[0], 50)) assert.equal(answer.status, 202);
	const measure = async () => {
		const sent = await s.post('/api/v1/traces', sampleTrace(30, ++n), { key: alone.ingest });
		assert.equal(sent.status, 202);
		await until(() => (s.log.includes(`event=decoded trace=${sent.json.id}`) ? true : undefined), 'decoded');
		const between = overtook(s.log, sent.headers.get('x-request-id'), sent.json.id);
		const { text } = await s.get('/metrics', { key: null });
		const waiting = Number(/^tracewell_queue_traces (\d+)$/m.exec(text)[1]);
		assert.ok(waiting > 0, 'the burst still waits');
		return { between, waiting };
	};
	const first = await measure(); /* behind the one that was being decoded */
	assert.ok(first.between <= 2, `${first.between} decoded before it`);
	for (const key of keys) assert.equal((await burst(key, 75)).every((a) => a.status === 202), true);
	/* Shares are of time: after a decode that the machine delayed, the others get more decodes, so the
	 * median of five rounds decides whether each of four projects has about a quarter. */
	const times = [];
	for (let i = 0; i < 5; i++) times.push(await measure());
	const middle = times.map((m) => m.between).sort((a, b) => a - b)[2];
	assert.ok(middle <= 6, `decoded before it: ${JSON.stringify(times)}`);
});

test('decoders of large uploads have a lower priority, and a limit of time nevertheless', { skip: endsUnlike('sleep') }, async (t) => {
	const s = await startServer(t, { args: ['--worker-wall', '2', '--shutdown', '0'], env: { TRACEWELL_WORKER_FAULT: 'sleep' } });
	const decoder = async (body) => {
		const { id } = (await s.post('/api/v1/traces', body)).json;
		const [, pid] = await until(() => new RegExp(`event=decoding trace=${id} attempt=1 pid=(\\d+)`).exec(s.log) ?? undefined, 'its decoder');
		return { id, nice: os.getPriority(Number(pid)) - os.getPriority(s.child.pid) };
	};
	const large = await decoder(manyMethods(70_000)), small = await decoder(sampleTrace(30));
	assert.deepEqual([small.nice, large.nice], [0, 10]);
	/* it sleeps, so its time is extended no more than once */
	const { state, error } = await s.decoded(large.id);
	assert.deepEqual([state, error.status, error.message], ['failed', 'deadline', 'decoding took too long and was stopped']);
});

const BUSY = (answer) => {
	assert.equal(answer.status, 503, answer.text);
	assert.equal(answer.json.error.status, 'busy');
	assert.match(answer.json.error.message, /are queued for decoding/);
	assert.equal(answer.headers.get('retry-after'), '10');
};

test('beyond the backlog limit all upload endpoints return Retry-After', async (t) => {
	const s = await startServer(t, { args: ['--decode-workers', '1', '--max-queue', '10', '--shutdown', '0', '--listen', `127.0.0.1:${await freePort()}`], env: { TRACEWELL_WORKER_FAULT: 'sleep' } });
	const TUS = { 'Tus-Resumable': '1.0.0' };
	const create = () => s.ask('POST', '/api/v1/uploads', { key: s.ingest, headers: { ...TUS, 'Upload-Length': '100' } });
	const begun = await create();
	assert.equal(begun.status, 201, begun.text);
	for (let i = 0; i < 5; i++) assert.equal((await s.post('/api/v1/traces', sampleTrace(3, i + 1))).status, 202);
	BUSY(await s.post('/api/v1/traces', sampleTrace(3, 10)));
	BUSY(await create());
	BUSY(await s.ask('PATCH', begun.headers.get('location'), { key: s.ingest, body: 'x', headers: { ...TUS, 'Upload-Offset': '0', 'Content-Type': 'application/offset+octet-stream' } }));
	const other = s.key('ingest', 'other');
	for (let i = 0; i < 3; i++) assert.equal((await s.post('/api/v1/traces', sampleTrace(3, i + 20), { key: other })).status, 202);
	BUSY(await s.post('/api/v1/traces', sampleTrace(3, 30), { key: other }));
	const { text } = await s.get('/metrics', { key: null });
	assert.match(text, /^tracewell_queue_refused_total 4$/m);
	assert.match(text, /^tracewell_limits_hit_total\{limit="busy"\} 4$/m);
	assert.match(text, /^tracewell_queue_bytes [1-9]\d*$/m);
	assert.deepEqual(s.spool().filter((name) => name.startsWith('up-')), []);

	await t.test('and push waits until there is space', async () => {
		const file = path.join(s.data, 'pushed.bin');
		fs.writeFileSync(file, sampleTrace(3, 40));
		const push = spawn(binary(), ['push', '--server', s.url, '--key', s.ingest, '--wait', file]);
		let said = '';
		push.stderr.setEncoding('utf8').on('data', (d) => (said += d));
		const ended = new Promise((done) => push.once('exit', done));
		await until(() => (/retrying in 1\d\.\d s/.test(said) ? true : undefined), 'push waits', 20);
		await s.stop('SIGKILL');
		s.env = {};
		await s.start();
		assert.equal(await ended, 0, said);
		assert.equal(said.match(/retrying/g).length, 1, said);
	});
	await until(async () => ((await s.post('/api/v1/traces', sampleTrace(3, 50))).status === 202 ? true : undefined), 'room');
});

test('a limit in bytes, and uploads above it', async (t) => {
	const s = await startServer(t, { args: ['--decode-workers', '1', '--max-queue-bytes', '4K', '--shutdown', '0'], env: { TRACEWELL_WORKER_FAULT: 'sleep' } });
	const large = sampleTrace(400);
	assert.ok(large.length > 4096);
	assert.equal((await s.post('/api/v1/traces', large)).status, 202, 'nothing waits: any size');
	BUSY(await s.post('/api/v1/traces', sampleTrace(3, 2)));
	await s.stop();
	await s.start(); /* it counts again, from the catalogue */
	BUSY(await s.post('/api/v1/traces', sampleTrace(3, 2)));
});
