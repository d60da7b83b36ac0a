/*
 * formats_perfetto.test.mjs - Perfetto traces over the wire: alone, compressed, with another trace, in an
 * archive; files exported by this server; a damaged side file affects only itself.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import zlib from 'node:zlib';

import { btrace, form } from '../make.mjs';
import { reads, root, sample, startServer } from '../server.mjs';

const golden = (name) => fs.readFileSync(path.join(root, 'tests/golden/perfetto', name, 'input'));
const samples = sample('merge/javac-and-kernel');
const notes = async (s, id, query = '') => (await s.get(`/api/v1/traces/${id}/notes?limit=1000${query}`)).json;
const threads = async (s, id) => (await s.get(`/api/v1/traces/${id}/threads`)).json.threads;
const repair = (trace, name) => trace.report.repairs.find((r) => r.name === name);

test('Perfetto traces', async (t) => {
	const s = await startServer(t);

	await t.test('alone, plain and packed', async () => {
		for (const pack of [(b) => b, zlib.gzipSync, zlib.deflateSync]) {
			const trace = await s.trace(pack(golden('realistic')), {});
			assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
			assert.equal(trace.summary.format, 'perfetto');
			const list = await threads(s, trace.id);
			const of = (tid, source) => list.find((x) => x.tid === tid && x.source === source);
			assert.equal(of(11, 'calls').name, 'worker');
			assert.equal(of(11, 'calls').pid, 10);
			assert.equal(of(14, 'samples').interval_ns, 10_000_000);
			assert.deepEqual(await s.flameLines(trace.id, 14), ['  com.app.Main.run 40000000', '    com.app.Db.query 30000000', '    libc.so+0x1234 10000000']);
			/* begun on one CPU, ended on another */
			assert.deepEqual(await s.flameLines(trace.id, 13), ['  paint 5000', '  draw 700']);
			const { kinds } = await notes(s, trace.id);
			assert.deepEqual(kinds, { instant: 4, async: 5, binder: 1, counter: 6, state: 10, wakeup: 2, process: 2, flow: 1, frame: 4 });
			assert.equal(repair(trace, 'kernel_overrun').kind, 'loss');
			assert.equal(repair(trace, 'event_unread').count, 1);
			const { notes: frames } = await notes(s, trace.id, '&kind=frame');
			assert.equal(frames.find((f) => f.detail.presented === 'late').detail.jank, 'app deadline missed, buffer stuffing');
		}
	});

	await t.test('with a method trace, on its clock', async () => {
		const PID = 10;
		const methods = btrace([[PID, 1, 0, 1_000_000], [11, 2, 0, 500_000]], { pid: PID });
		/* the golden trace begins when BOOTTIME is 100 s and MONOTONIC 95 s; this one a second before */
		methods.writeBigUInt64LE(99_000_000_000n, 8);
		methods.writeBigUInt64LE(94_000_000_000n, 16);
		methods.writeBigUInt64LE(94_000_000_000n, 24);
		const { body, headers } = form(['system', zlib.gzipSync(golden('realistic'))], ['trace', methods]);
		const trace = await s.trace(body, { headers });
		assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
		assert.equal(trace.summary.format, 'btrace2');
		const { notes: list } = await notes(s, trace.id, '&kind=state');
		const running = list.find((n) => n.tid === 11 && n.text === 'running');
		assert.equal(running.dur_ns, 1000);
		assert.equal(running.ts_ns, 1_010_001_000);
	});

	await t.test('an unreadable side file does not affect the trace', async () => {
		const methods = btrace([[10, 1, 0, 1_000_000]], { pid: 10 });
		const { body, headers } = form(['trace', methods], ['system', golden('minimal').subarray(0, 30)]);
		const trace = await s.trace(body, { headers });
		assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
		assert.equal(trace.summary.slices, 1);
		const wrong = form(['trace', methods], ['system', 'words\n'.repeat(3000)]);
		assert.equal((await s.post('/api/v1/traces', wrong.body, { headers: wrong.headers })).status, 415);
	});

	await t.test('exports can be uploaded again', async () => {
		const calls = [];
		for (let i = 0; i < 200; i++) calls.push([77, i % 7, i * 1000, 600], [78, i % 5, i * 900, 300]);
		const first = await s.trace(btrace(calls, { pid: 77 }), {});
		const answer = await fetch(`${s.url}/api/v1/traces/${first.id}/perfetto`, { headers: { Authorization: `Bearer ${s.readKey}` } });
		assert.equal(answer.status, 200);
		const second = await s.trace(Buffer.from(await answer.arrayBuffer()), {});
		assert.equal(second.summary.format, 'perfetto');
		assert.deepEqual(second.report.repairs, []);
		const key = (x) => [x.tid, x.pid, x.is_main, x.slices, x.max_depth, x.busy_ns];
		assert.deepEqual((await threads(s, second.id)).map(key), (await threads(s, first.id)).map(key));
		for (const tid of [77, 78])
			assert.deepEqual((await s.flameLines(second.id, tid)).sort(), (await s.flameLines(first.id, tid)).sort());
	});

	await t.test('the kernel agrees with a real method trace', reads(samples), async () => {
		const read = (name) => fs.readFileSync(path.join(samples, name));
		const { body, headers } = form(['trace', read('rhea-atrace.bin.zst')], ['system', read('system.perfetto-trace')], ['threads', read('threads.txt')]);
		const trace = await s.trace(body, { headers });
		assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
		assert.equal(trace.summary.slices, 331_894);
		assert.equal(repair(trace, 'before_trace').kind, 'note');
		assert.equal(trace.summary.losses, 0);
		const all = await threads(s, trace.id);
		for (const tid of [29495, 29496, 29497]) {
			assert.equal(all.filter((x) => x.tid === tid).length, 1, 'one row for a thread');
			const thread = all.find((x) => x.tid === tid);
			/* its calls lie where the kernel saw the thread run: at least at both ends */
			const first = await notes(s, trace.id, `&kind=state&thread=${tid}&from=${thread.start_ns}&to=${thread.start_ns + 1}`);
			assert.deepEqual(first.notes.map((n) => n.text), ['running']);
			const last = await notes(s, trace.id, `&kind=state&thread=${tid}&from=${thread.end_ns}&to=${thread.end_ns + 1}`);
			assert.deepEqual(last.notes.map((n) => n.text), ['running']);
		}
	});
});

/* TrackDescriptors of two processes that number a thread alike, and one call on each. */
function sameThreadNumber() {
	const varint = (n) => {
		const out = [];
		for (; n > 127; n = Math.floor(n / 128)) out.push((n % 128) | 128);
		return Buffer.from([...out, n]);
	};
	const int = (field, n) => Buffer.concat([varint(field * 8), varint(n)]);
	const bytes = (field, b) => Buffer.concat([varint(field * 8 + 2), varint(b.length), Buffer.from(b)]);
	const packet = (ts, ...more) => bytes(1, Buffer.concat([int(8, ts), int(10, 1), ...more]));
	const thread = (uuid, pid, name) => packet(0, bytes(60, Buffer.concat([int(1, uuid), bytes(4, Buffer.concat([int(1, pid), int(2, 1), bytes(5, Buffer.from(name))]))])));
	const event = (ts, uuid, type, name) => packet(ts, bytes(11, Buffer.concat([int(9, type), int(11, uuid), ...(name ? [bytes(23, Buffer.from(name))] : [])])));
	return Buffer.concat([thread(1, 5, 't1'), thread(2, 10, 't2'), event(1000, 1, 1, 'workOfA'), event(2000, 2, 1, 'workOfB'), event(3000, 1, 2), event(9000, 2, 2)]);
}

test('threads of two processes with one number are two threads', async (t) => {
	const s = await startServer(t);
	const chrome = [
		{ pid: 0, ph: 'M', name: 'process_name', args: { name: 'com.zero' } },
		{ pid: 0, tid: 7, ph: 'X', name: 'workOfA', ts: 1, dur: 2 },
		{ pid: 1, tid: 7, ph: 'X', name: 'workOfB', ts: 2, dur: 7 },
	];
	for (const [body, pids] of [[sameThreadNumber(), [5, 10]], [Buffer.from(JSON.stringify(chrome)), [0, 1]]]) {
		const trace = await s.trace(body, {});
		assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
		const list = await threads(s, trace.id);
		assert.deepEqual(list.map((x) => [x.pid, x.slices, x.busy_ns]).sort((a, b) => a[0] - b[0]), [[pids[0], 1, 2000], [pids[1], 1, 7000]]);
		const { processes } = (await s.get(`/api/v1/traces/${trace.id}/threads`)).json;
		assert.deepEqual(processes, pids.map((pid) => ({ pid, name: pid ? '' : 'com.zero', threads: 1 })));
	}
});

test('a trace of several processes is exported as several, with their names', async (t) => {
	const s = await startServer(t);
	const chrome = [
		...[[3, 'com.app'], [4, 'com.app:remote']].map(([pid, name]) => ({ pid, ph: 'M', name: 'process_name', args: { name } })),
		{ pid: 3, tid: 3, ph: 'X', name: 'workOfA', ts: 1, dur: 2 },
		{ pid: 4, tid: 9, ph: 'X', name: 'workOfB', ts: 2, dur: 7 },
	];
	const first = await s.trace(Buffer.from(JSON.stringify(chrome)), {});
	const exported = await fetch(`${s.url}/api/v1/traces/${first.id}/perfetto`, { headers: { Authorization: `Bearer ${s.readKey}` } });
	const second = await s.trace(Buffer.from(await exported.arrayBuffer()), {});
	for (const { id } of [first, second])
		assert.deepEqual((await s.get(`/api/v1/traces/${id}/threads`)).json.processes,
			[{ pid: 3, name: 'com.app', threads: 1 }, { pid: 4, name: 'com.app:remote', threads: 1 }]);
});
