/*
 * Perfetto's own importer reads our files. It is not packaged for Debian, so the test runs where
 * TRACE_PROCESSOR names a trace_processor_shell, and is skipped otherwise;
 * tests/unit/query_export/test_perfetto*.c check the same with our reader.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { btrace, form, sampleMapping, sampleTrace, systemTrace } from '../make.mjs';
import { newFolder, startServer } from '../server.mjs';

const shell = process.env.TRACE_PROCESSOR;
const wanted = `
	SELECT 'errors' AS key, (SELECT ifnull(sum(value), 0) FROM stats WHERE severity IN ('error', 'data_loss')) AS value
	UNION ALL SELECT 'calls', (SELECT count(*) FROM slice s JOIN thread_track t ON s.track_id = t.id WHERE t.name = 'methods')
	UNION ALL SELECT 'ns', (SELECT sum(dur) FROM slice s JOIN thread_track t ON s.track_id = t.id WHERE t.name = 'methods')
	UNION ALL SELECT 'depth', (SELECT max(depth) FROM slice s JOIN thread_track t ON s.track_id = t.id WHERE t.name = 'methods')
	UNION ALL SELECT 'open', (SELECT count(*) FROM slice WHERE dur < 0)
	UNION ALL SELECT 'unnamed', (SELECT count(*) FROM slice WHERE name IS NULL)
	UNION ALL SELECT 'switches', (SELECT count(*) FROM sched_slice)
	UNION ALL SELECT 'processes', (SELECT count(DISTINCT upid) FROM thread_track t JOIN thread USING (utid) WHERE t.name = 'methods')
	UNION ALL SELECT 'traces', (SELECT count(*) FROM metadata WHERE name GLOB 'trace_attribute.tracewell_trace*');`;

test('Perfetto\'s importer reads our files without a complaint', { skip: !shell && 'TRACE_PROCESSOR is not set' }, async (t) => {
	const s = await startServer(t);
	const dir = newFolder(t, 'tracewell-importer-');
	const imported = (bytes) => {
		fs.writeFileSync(path.join(dir, 'trace'), bytes);
		fs.writeFileSync(path.join(dir, 'query'), wanted);
		const csv = execFileSync(shell, ['-q', path.join(dir, 'query'), path.join(dir, 'trace')], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
		return Object.fromEntries(csv.trim().split('\n').map((line) => line.replaceAll('"', '').split(',')).filter(([, v]) => /^\d+$/.test(v)).map(([k, v]) => [k, Number(v)]));
	};
	await s.put('/api/v1/builds/b1/methods', sampleMapping);
	const system = systemTrace(btrace([]).readBigUInt64LE(16));
	const { body, headers } = form(['trace', sampleTrace(300)], ['system', system]);
	const one = await s.trace(body, { headers, query: { build_id: 'b1', device: 'a', session_id: 's', scenario: 'start' } });
	const two = await s.trace(sampleTrace(200, 5000), { query: { build_id: 'b1', device: 'b' } });
	const alone = imported(system);
	const calls = { errors: alone.errors, calls: 900, ns: 300 * (2000 + 3000 + 9000), depth: 1, open: alone.open, unnamed: 0, switches: alone.switches, processes: 1, traces: 1 };
	const of = `/api/v1/traces/${one.id}/perfetto`;
	const both = `/api/v1/merge?ids=${one.id},${two.id}`;
	const cases = [
		...['none', 'gzip', 'packets'].map((how) => [`${of}?compress=${how}`, calls]),
		[`${of}?format=tar`, calls],
		[`${of}?system=0`, { ...calls, errors: 0, open: 0, switches: 0 }],
		[`${of}?from=1500000&to=1600000`, { errors: alone.errors, calls: 30, ns: 10 * (2000 + 3000 + 9000) }],
		...['start', 'slice:com.example.app.Class0.method1'].map((how) => [`${both}&align=${how}`, { ...calls, calls: 1500, ns: 500 * (2000 + 3000 + 9000), processes: 2, traces: 2 }]),
	];
	/* all are fetched before: a connection does not outlive the importer's time */
	const files = [];
	for (const [where] of cases) files.push((await s.get(where)).bytes);
	cases.forEach(([where, expected], i) => {
		const got = imported(files[i]);
		assert.deepEqual(Object.fromEntries(Object.keys(expected).map((k) => [k, got[k]])), expected, where);
	});
});
