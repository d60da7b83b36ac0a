/* A recording's files in one archive are one trace. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import zlib from 'node:zlib';
import { sampleTrace, zip } from '../make.mjs';
import { startServer } from '../server.mjs';

const files = {
	'workspace/README.md': Buffer.from('# nothing of a trace\n'),
	'workspace/rhea-atrace.bin': sampleTrace(),
	'workspace/thread.list': Buffer.from('4000,main of the bundle\n'),
};

test('an archive of a recording', async (t) => {
	const s = await startServer(t);
	const plain = await s.trace(sampleTrace());
	for (const [name, body] of [['zip', zip(files)], ['compressed', zlib.gzipSync(zip(files))]])
		await t.test(`${name}: the trace, and names for its threads`, async () => {
			const trace = await s.trace(body);
			assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
			assert.equal(trace.summary.format, 'btrace2');
			assert.equal(trace.summary.slices, plain.summary.slices);
			const { threads } = (await s.get(`/api/v1/traces/${trace.id}/threads`)).json;
			assert.equal(threads.find((x) => x.tid === 4000).name, 'main of the bundle');
			assert.equal(trace.report.repairs.find((r) => r.name === 'entry_skipped').count, 1);
			const raw = await s.get(`/api/v1/traces/${trace.id}/raw/trace`);
			assert.ok(raw.bytes.equals(body), 'kept byte for byte');
		});
	await t.test('one that is cut keeps the files before', async () => {
		const whole = zip({ 'threads.txt': files['workspace/thread.list'], 'a.bin': sampleTrace(), 'b.txt': Buffer.from('more') });
		const trace = await s.trace(whole.subarray(0, whole.length - 30));
		assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
		assert.ok(trace.report.repairs.some((r) => r.name === 'input_truncated'));
	});
	await t.test('one without a trace is reported', async () => {
		const trace = await s.trace(zip({ 'a.txt': Buffer.from('nothing') }));
		assert.equal(trace.state, 'failed');
		assert.match(trace.error.message, /none of the 1 files/);
	});
});
