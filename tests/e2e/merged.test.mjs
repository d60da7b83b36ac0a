/* A recording and the machine's own kernel trace of the same seconds, sent together.  The truth is physics:
 * a method's begin and end are read on a CPU, so its thread must be running then. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { form } from './make.mjs';
import { root, startServer, tracewell } from './server.mjs';

const folder = path.join(root, '../shared/samples/merge/javac-and-kernel');

test('a recording beside a kernel trace is on one clock with it', { skip: !fs.existsSync(folder) && 'no ../shared/samples' }, async (t) => {
	const s = await startServer(t);
	const part = (name) => fs.readFileSync(path.join(folder, name));
	const { body, headers } = form(['trace', part('rhea-atrace.bin.zst')], ['system', part('system.perfetto-trace')], ['threads', part('threads.txt')]);
	const trace = await s.trace(body, { headers });
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	assert.equal(trace.summary.format, 'btrace2');

	const running = new Map();
	for (let after = 0; after !== null;) {
		const { json } = await s.get(`/api/v1/traces/${trace.id}/notes?kind=state&limit=100000&after=${after}`);
		for (const n of json.notes) {
			if (n.text !== 'running') continue;
			if (!running.has(n.tid)) running.set(n.tid, []);
			running.get(n.tid).push([n.ts_ns, n.ts_ns + n.dur_ns]);
		}
		after = json.next;
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
