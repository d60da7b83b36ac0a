/*
 * decoder_group.test.mjs - small traces of one project that wait together share a decoder: each has its own result, and one that
 * kills the decoder costs the others nothing.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { sampleTrace, systemTrace, zip } from '../make.mjs';
import { endsUnlike, sleep, startServer, until } from '../server.mjs';

/* As in server/decode/jobs.c. */
const GATHER_MS = 50;

const started = (s) => [...s.log.matchAll(/event=decoding trace=(\S+) attempt=(\d+) pid=(\d+)/g)].map(([, id, attempt, pid]) => ({ id, attempt: Number(attempt), pid }));

/* A server whose only decoder of the project never ends, until it is restarted with all the uploads waiting. */
async function waiting(t, bodies, { args = [], fault, last } = {}) {
	const s = await startServer(t, { args: ['--decode-workers', '1', '--shutdown', '0', ...args], env: { TRACEWELL_WORKER_FAULT: 'sleep' } });
	const ids = [];
	for (const body of bodies) {
		ids.push((await s.post('/api/v1/traces', body)).json.id);
		await until(() => started(s).length || undefined, 'the decoder that sleeps');
	}
	await last?.(s);
	await s.stop();
	const seen = started(s).length;
	s.env = fault ? { TRACEWELL_WORKER_FAULT: fault } : {};
	await s.start();
	return { s, ids, since: () => started(s).slice(seen) };
}

const ends = (s, ids) => Promise.all(ids.map((id) => s.decoded(id)));

describe('groups', { concurrency: 2 }, () => {
	test('waiting traces share a decoder, and each equals its separate decode', async (t) => {
		const { s, ids, since } = await waiting(t, Array.from({ length: 20 }, (_, i) => sampleTrace(10 + i)));
		const traces = await ends(s, ids);
		for (const [i, trace] of traces.entries()) {
			assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
			assert.equal(trace.attempts, 1);
			const alone = await s.trace(sampleTrace(10 + i, 4001 + i));
			assert.equal(trace.slices, alone.slices);
			assert.equal(trace.methods, alone.methods);
			const graph = async ({ id }) => (await s.get(`/api/v1/traces/${id}/flame`)).text.replaceAll(/"trace":"[^"]*"|"name":"thread \d+"/g, '');
			assert.equal(await graph(trace), await graph(alone));
		}
		const first = since().filter((d) => ids.includes(d.id));
		assert.equal(first.length, 20, 'each once');
		assert.equal(new Set(first.map((d) => d.pid)).size, 2, '16 and 4');
	});

	test('a group holds up no other project', async (t) => {
		let other;
		const last = async (s) => {
			other = (await s.post('/api/v1/traces', sampleTrace(5), { key: s.key('ingest', 'other') })).json.id;
		};
		const { s, ids, since } = await waiting(t, Array.from({ length: 40 }, (_, i) => sampleTrace(10 + i)), { last });
		await ends(s, ids);
		const order = since();
		const before = order.slice(0, order.findIndex((d) => d.id === other));
		assert.ok(order.some((d) => d.id === other));
		assert.ok(new Set(before.map((d) => d.pid)).size <= 1, `${before.length} before it`);
	});

	test('a single trace does not wait for others to be claimed with it', async (t) => {
		const s = await startServer(t, { args: ['--decode-workers', '24', '--shutdown', '0'], env: { TRACEWELL_WORKER_FAULT: 'sleep' } });
		let least = Infinity;
		for (let i = 0; i < 20 && least >= GATHER_MS; i++) {
			const sent = Date.now();
			const { id } = (await s.post('/api/v1/traces', sampleTrace(10 + i))).json;
			const [, at] = await until(() => new RegExp(`^time=(\\S+) .*event=decoding trace=${id}`, 'm').exec(s.log) ?? undefined, 'its decoder');
			if (i > 0) least = Math.min(least, Date.parse(at) - sent); // the first runs alone
			await sleep(2 * GATHER_MS); // so that the next claim does not wait
		}
		assert.ok(least < GATHER_MS, `${least} ms`);
	});

	test('an upload that cannot be read has its own error', async (t) => {
		const bodies = Array.from({ length: 6 }, (_, i) => sampleTrace(10 + i));
		const whole = zip({ 'trace.btrace': sampleTrace(200) });
		bodies[2] = whole.subarray(0, whole.length - 1000); // its head is well
		const { s, ids } = await waiting(t, bodies);
		const traces = await ends(s, ids);
		const alone = await s.trace(zip({ 'trace.btrace': sampleTrace(201) }).subarray(0, -1000));
		assert.equal(traces[2].state, alone.state);
		assert.equal(traces[2].error?.status, alone.error?.status);
		for (const [i, trace] of traces.entries()) {
			if (i !== 2) assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
			assert.equal(trace.attempts, 1);
		}
	});

	test('the system trace of an archive is stored with its own trace', async (t) => {
		const system = systemTrace();
		const bodies = [sampleTrace(10), sampleTrace(11), zip({ 'a.btrace': sampleTrace(12), 'b.perfetto-trace': system }), sampleTrace(13)];
		const { s, ids } = await waiting(t, bodies);
		const traces = await ends(s, ids);
		for (const trace of traces) assert.deepEqual([trace.state, trace.attempts], ['ready', 1], JSON.stringify(trace.error));
		const held = await Promise.all(traces.map(async ({ id }) => (await s.get(`/api/v1/traces/${id}/perfetto`)).bytes.includes(system)));
		assert.deepEqual(held, [false, false, true, false]);
	});

	test('a decoder that dies costs one trace an attempt', { skip: endsUnlike('tire') }, async (t) => {
		const { s, ids, since } = await waiting(t, Array.from({ length: 7 }, (_, i) => sampleTrace(10 + i)), { fault: 'tire' });
		const traces = await ends(s, ids);
		for (const trace of traces) assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
		/* a trace, one that dies, the rest again: three times; the last is alone */
		assert.equal(traces.filter((trace) => trace.attempts === 2).length, 3);
		assert.equal(traces.filter((trace) => trace.attempts === 1).length, 4);
		for (const again of since().filter((d) => d.attempt === 2))
			assert.equal(since().filter((d) => d.pid === again.pid).length, 1, 'alone');
		assert.equal((s.log.match(/outcome=retry/g) ?? []).length, 3);
	});

	test('a decoder ends when its traces are deleted', async (t) => {
		const { s, ids, since } = await waiting(t, Array.from({ length: 4 }, (_, i) => sampleTrace(10 + i)), { fault: 'sleep' });
		await until(() => ids.every((id) => since().some((d) => d.id === id)) || undefined, 'a decoder for all');
		for (const id of ids) assert.equal((await s.ask('DELETE', `/api/v1/traces/${id}`)).status, 204);
		await until(() => s.log.includes('event=decoding_abandoned') || undefined, 'its end', 60);
		assert.equal(s.log.includes('outcome='), false);
	});

	test('traces that all kill their decoder end as ever', { skip: endsUnlike('crash') }, async (t) => {
		const { s, ids } = await waiting(t, Array.from({ length: 4 }, (_, i) => sampleTrace(10 + i)), { fault: 'crash', args: ['--worker-attempts', '2'] });
		for (const trace of await ends(s, ids)) assert.deepEqual([trace.state, trace.attempts], ['failed', 2]);
		assert.equal((await s.get('/api/v1/quarantine', { key: s.admin })).json.quarantine.length, 4);
	});
});
