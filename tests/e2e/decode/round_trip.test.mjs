/*
 * Every file that an export writes is read again: the same threads, methods and sums, and where the format has
 * them, the same calls.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { root, startServer } from '../server.mjs';

const original = fs.readFileSync(path.join(root, 'tests/golden/art/realistic/input'));

/* calls: the format has each call; otherwise a path is one call.  timed: it has times. */
const FORMATS = {
	speedscope: { calls: true, timed: true, source: 'calls' },
	chrome: { calls: true, timed: true, source: 'calls' },
	perfetto: { calls: true, timed: true, source: 'calls' },
	firefox: { timed: true, source: 'samples' },
	folded: { source: 'counts' },
	pprof: { source: 'samples' },
};

async function sums(s, trace) {
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	const at = `/api/v1/traces/${trace.id}`;
	const threads = (await s.get(`${at}/threads`)).json.threads.filter((t) => t.slices > 0);
	const methods = (await s.get(`${at}/methods?thread=all&limit=1000`)).json.methods;
	return {
		trace,
		sources: [...new Set(threads.map((t) => t.source))],
		threads: threads.map((t) => t.tid).sort((a, b) => a - b),
		times: methods.map((m) => [m.name, m.total_ns, m.self_ns]).sort(),
		counts: methods.map((m) => [m.name, m.count]).sort(),
	};
}

test('exports are read again', async (t) => {
	const s = await startServer(t);
	const want = await sums(s, await s.trace(original));
	assert.ok(want.times.length > 5 && want.threads.length > 1);

	for (const [format, expected] of Object.entries(FORMATS)) {
		await t.test(format, async () => {
			const target = format === 'perfetto' ? 'perfetto' : `export/${format}`;
			const file = await s.get(`/api/v1/traces/${want.trace.id}/${target}`);
			assert.equal(file.status, 200, file.text);
			const got = await sums(s, await s.trace(file.bytes));
			assert.equal(got.trace.summary.format, format);
			assert.deepEqual(got.times, want.times);
			assert.deepEqual(got.threads, want.threads);
			assert.deepEqual(got.sources, [expected.source]);
			assert.equal(got.trace.summary.timed, !!expected.timed);
			if (expected.calls) assert.deepEqual(got.counts, want.counts);
			assert.equal(got.trace.summary.losses, 0);
		});
	}
});
