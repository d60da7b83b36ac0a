/*
 * stages.test.mjs - traces that wait for a stage of derived data, and why: in /metrics, in the API, and for
 * each project alone.  A trace whose file is away is postponed, delays no other, and is counted once its file is back.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { fleet } from '../../gen/anr_fleet.mjs';
import { sampleTrace } from '../make.mjs';
import { root, startServer, until } from '../server.mjs';

const WHERE = { app: 'shop', version_name: '1', scenario: 'cold_start', build_id: 'b1' };
const { properties } = JSON.parse(fs.readFileSync(path.join(root, 'schema/openapi.json'), 'utf8')).components.schemas.FleetStages;

const upload = (s, n) => s.trace(sampleTrace(100 + n), { query: WHERE, headers: { 'Idempotency-Key': `k${n}` } });
const counted = async (s) => (await s.get('/api/v1/fleet/scenarios?by=all')).json.traces;
const waiting = async (s) => Object.fromEntries((await s.get('/api/v1/fleet/stages')).json.stages.map((x) => [x.stage, x]));
const idle = (s) => until(async () => Object.values(await waiting(s)).every((x) => x.waiting + x.postponed.length === 0) || undefined, 'nothing waits');

function fileOf(s, id) {
	const traces = path.join(s.data, 'traces');
	return path.join(traces, fs.readdirSync(traces, { recursive: true }).find((f) => f.includes(id)));
}

test('traces that wait, and why', async (t) => {
	const s = await startServer(t);
	const { id } = await upload(s, 0);
	await idle(s);
	const at = await waiting(s);
	assert.deepEqual(Object.keys(at), properties.stages.items.properties.stage.enum);
	assert.deepEqual(at.anr.depends, ['decoder', 'mapping', 'rules']);
	assert.deepEqual(at.rollup, { stage: 'rollup', depends: ['decoder', 'mapping'], waiting: 0, oldest_ms: 0, postponed: [] });

	const file = fileOf(s, id);
	fs.renameSync(file, `${s.data}/away`);
	s.sql('UPDATE trace SET named=0, anr_state=0, detected=0');
	await upload(s, 1); /* wakes the stages */
	for (const stage of ['names', 'anr', 'findings'])
		await until(async () => ((await s.metric('tracewell_stage_waiting_traces', { stage, reason: 'not_found' })) === 1 ? true : undefined), `${stage} is postponed`);
	await until(async () => ((await counted(s)) === 2 ? true : undefined), 'the other is counted');
	const now = await waiting(s);
	for (const stage of ['names', 'anr', 'findings']) {
		assert.deepEqual([stage, now[stage].postponed], [stage, [{ reason: 'not_found', message: 'the trace file is missing', traces: 1 }]]);
		assert.ok((await s.metric('tracewell_stage_traces_total', { stage, outcome: 'postponed' })) >= 1);
	}
	assert.deepEqual(now.rollup.postponed, []);
	assert.match(s.log, new RegExp(`event=stage_postponed stage=anr trace=${id} reason=`));

	await s.stop(); /* postponed traces survive a restart */
	await s.start();
	assert.deepEqual((await waiting(s)).anr.postponed, [{ reason: 'not_found', message: 'the trace file is missing', traces: 1 }]);
	await s.stop(); /* they are resumed at a start; a running server may wait a minute for its next look */
	fs.renameSync(`${s.data}/away`, file);
	s.sql('UPDATE postponed SET again_ms=0');
	await s.start();
	await upload(s, 2);
	await idle(s);
	assert.equal(await counted(s), 3);
	assert.equal(s.sql('SELECT count(*) FROM trace WHERE named=1 AND rollup_state=1 AND anr_state=1 AND detected>0'), '3');
});

test('a project sees its own traces alone', async (t) => {
	const s = await startServer(t);
	await upload(s, 0);
	await idle(s);
	s.sql(`INSERT INTO postponed SELECT project_id, trace_id, 'anr', 1, ${Date.now() + 86_400_000}, 1, 'busy' FROM trace`);
	s.sql("UPDATE postponed SET project_id='other'");
	assert.deepEqual((await waiting(s)).anr.postponed, []);
	assert.equal(await s.metric('tracewell_stage_waiting_traces', { stage: 'anr', reason: 'busy' }), 1);
});

test('a day of ANRs whose sums are damaged delays no other day, and is counted again', async (t) => {
	const s = await startServer(t);
	const day = (n) => Math.floor(Date.now() / 86_400_000) - n;
	const report = (n, ago) => s.trace(fleet(n + 1)[n].text, { query: { ...WHERE, scenario: 'anr', started_at: String(day(ago) * 86_400_000) }, headers: { 'Idempotency-Key': `anr${n}` } });
	const left = () => s.sql('SELECT count(*) FROM anr_day WHERE waiting=1');
	await report(0, 3);
	await report(1, 2);
	await until(() => left() === '0' || undefined, 'both days are counted');
	s.sql(`UPDATE anr_rollup SET data=${s.schema ? "'\\xff'" : "x'ff'"} WHERE day=${day(3)}`);
	await report(2, 3);
	await report(3, 2);
	await until(async () => (await idle(s), left() === '0') || undefined, 'both days are counted again');
	const { groups, anrs } = (await s.get('/api/v1/anr/groups')).json;
	assert.deepEqual([anrs, groups.reduce((n, g) => n + g.count, 0)], [4, 4]);
	assert.equal(s.log.split('event=anr_counts_not_updated').length - 1, 1, 'one warning');
	assert.match(s.log, new RegExp(`event=anr_counts_not_updated project=\\w+ day=${day(3)} reason="the sums of ANRs and locks are damaged"`));
});
