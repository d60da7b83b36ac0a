/* A recording and the machine's own kernel trace of the same seconds, sent together.  The truth is physics:
 * a method's begin and end are read on a CPU, so its thread must be running then. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { btrace, form, sampleTrace, systemTrace, zip } from '../make.mjs';
import { reads, sample, startServer, tracewell, until } from '../server.mjs';

const folder = sample('merge/javac-and-kernel');

test('a recording with a kernel trace shares its clock', reads(folder), async (t) => {
	const s = await startServer(t);
	const part = (name) => fs.readFileSync(path.join(folder, name));
	const { body, headers } = form(['trace', part('rhea-atrace.bin.zst')], ['system', part('system.perfetto-trace')], ['threads', part('threads.txt')]);
	const trace = await s.trace(body, { headers });
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	assert.equal(trace.summary.format, 'btrace2');

	const running = new Map();
	for (let after = 0; after !== null;) {
		const { json } = await s.get(`/api/v1/traces/${trace.id}/notes?kind=state&limit=100000&cursor=${after}`);
		for (const n of json.notes) {
			if (n.text !== 'running') continue;
			if (!running.has(n.tid)) running.set(n.tid, []);
			running.get(n.tid).push([n.ts_ns, n.ts_ns + n.dur_ns]);
		}
		after = json.next_cursor;
	}
	const rows = tracewell('sql', trace.id, '--data', s.data, '--format', 'csv', 'SELECT tid, ts_ns, ts_ns + dur_ns FROM slice JOIN thread USING (thread_id)').split('\n').slice(1);
	const share = (shift) => {
		let [inside, all] = [0, 0];
		for (const row of rows) {
			const [tid, ...instants] = row.split(',').map(Number);
			const spans = running.get(tid) ?? [];
			for (const at of instants) {
				let [low, high] = [0, spans.length];
				while (low < high) {
					const middle = (low + high) >> 1;
					if (spans[middle][0] <= at + shift) low = middle + 1;
					else high = middle;
				}
				all++;
				inside += low > 0 && at + shift <= spans[low - 1][1];
			}
		}
		return inside / all;
	};
	assert.equal(rows.length * 2, 663788);
	assert.ok(share(0) > 0.996, `${share(0)} of all instants`);
	assert.ok(share(100_000) < 0.97, 'a tenth of a millisecond shows');
});

/* Part `system` of a form and the system trace in an archive yield the same result. */
test('the device\'s trace in an archive is joined like one in a form', async (t) => {
	const s = await startServer(t);
	const system = systemTrace();
	const files = { 'ws/rhea-atrace.bin': sampleTrace(), 'ws/systemTrace.perfetto': system, 'ws/notes.txt': Buffer.from('nothing of a trace') };
	const sent = form(['trace', sampleTrace()], ['system', system]);
	const whole = await s.trace(sent.body, { headers: sent.headers });
	const archive = await s.trace(zip(files));
	for (const trace of [whole, archive]) assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	assert.equal(archive.summary.slices, whole.summary.slices);
	assert.ok(archive.report.system, 'the report tells of it');
	assert.deepEqual(archive.report.system, whole.report.system);
	const export_of = async (trace, query = '') => (await s.get(`/api/v1/traces/${trace.id}/perfetto${query}`)).bytes;
	const [a, b] = [await export_of(archive, '?system=true'), await export_of(whole, '?system=true')];
	assert.equal(archive.report.system.joined, true);
	assert.ok(a.length > system.length && a.length === b.length);
	assert.ok(a.includes(system), 'all of it');
	assert.ok(!(await export_of(archive, '?system=false')).includes(system));
	assert.ok((await s.get(`/api/v1/traces/${archive.id}/raw/system`)).bytes.equals(system), 'kept byte for byte');
	assert.ok((await export_of(archive, '?format=tar')).includes(system));

	await t.test('a separately sent one replaces that of the archive', async () => {
		const other = Buffer.concat([system, system]);
		const both = form(['trace', zip(files)], ['system', other]);
		const trace = await s.trace(both.body, { headers: both.headers });
		assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
		assert.ok((await s.get(`/api/v1/traces/${trace.id}/raw/system`)).bytes.equals(other));
		assert.equal(trace.report.repairs.find((r) => r.name === 'entry_skipped').count, 2);
	});
	await t.test('a shorter one after a longer one is complete, and nothing else', async () => {
		for (const [seed, bytes] of [[101, Buffer.concat([system, system])], [102, system]]) {
			const trace = await s.trace(zip({ 'a.bin': sampleTrace(seed), 's.pftrace': bytes }));
			assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
			assert.ok((await s.get(`/api/v1/traces/${trace.id}/raw/system`)).bytes.equals(bytes));
		}
	});
	await t.test('an archive without one has none', async () => {
		const trace = await s.trace(zip({ 'a.bin': btrace([[4000, 1, 1000, 50]]) }));
		assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
		assert.equal((await s.get(`/api/v1/traces/${trace.id}/raw/system`)).status, 404);
		assert.equal((await s.get(`/api/v1/traces/${trace.id}/perfetto?system=true`)).status, 404);
	});
	await t.test('decoded again, it is found again; deleted, it is gone', async () => {
		const blobs = () => fs.readdirSync(path.join(s.data, 'blobs'), { recursive: true }).filter((f) => /[0-9a-f]{64}$/.test(f)).length;
		const own = await s.trace(zip({ 'a.bin': sampleTrace(7), 's.pftrace': systemTrace(undefined, { pid: 4001 }) }));
		const before = blobs();
		await s.stop();
		for (const file of fs.readdirSync(path.join(s.data, 'traces'), { recursive: true }))
			if (file.endsWith(`${own.id}.db`)) fs.unlinkSync(path.join(s.data, 'traces', file));
		await s.start();
		const again = await until(async () => {
			const { json } = await s.get(`/api/v1/traces/${own.id}`);
			return json.state === 'ready' && json.ready_ms > own.ready_ms ? json : undefined;
		}, 'decoded again');
		assert.deepEqual(again.report, own.report);
		assert.equal(blobs(), before);
		assert.equal((await s.ask('DELETE', `/api/v1/traces/${own.id}`)).status, 204);
		assert.equal(blobs(), before - 2);
	});
});

test('a recording of a whole run with the kernel\'s trace in one archive', reads(folder), async (t) => {
	const s = await startServer(t);
	const part = (name) => fs.readFileSync(path.join(folder, name));
	const trace = await s.trace(zip({ 'system.perfetto-trace': part('system.perfetto-trace'), 'trace.zst': part('rhea-atrace.bin.zst'), 'threads.txt': part('threads.txt') }));
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	assert.equal(trace.report.system.joined, true, JSON.stringify(trace.report.system));
	const { bytes } = await s.get(`/api/v1/traces/${trace.id}/perfetto?system=true`);
	assert.ok(bytes.length > part('system.perfetto-trace').length);
});
