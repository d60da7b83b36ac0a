/*
 * quarantine.test.mjs - uploads that crashed decoders: stored, listed with the reason, visible to admins
 * only, retried or deleted, and limited in number and size.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';

import { sampleTrace } from '../make.mjs';
import { endsUnlike, startServer, until } from '../server.mjs';

const files = (s) => fs.readdirSync(path.join(s.data, 'blobs'), { recursive: true, withFileTypes: true }).filter((e) => e.isFile()).length;
const listed = async (s) => (await s.get('/api/v1/quarantine', { key: s.admin })).json.quarantine;
const number = async (s, what) => Number(new RegExp(`^${what} (\\d+)$`, 'm').exec((await s.get('/metrics', { key: null })).text.replaceAll(/[{}]/g, '|').replaceAll('|', ''))?.[1] ?? NaN);
const poisoned = (t, how, args = [], env = {}) =>
	startServer(t, { args: ['--worker-attempts', '2', ...args], env: { TRACEWELL_WORKER_FAULT: how, ...env } });

async function restart(s, env) {
	await s.stop();
	s.env = env;
	await s.start();
}

describe('quarantine', { concurrency: 2 }, () => {
	/* a deadline is reached once and not tried again */
	for (const [how, reason, signal, args, deaths] of [
		['crash', 'crash', 11, [], 2],
		['loop', 'loop', 24, ['--worker-cpu', '1', '--worker-wall', '200'], 1],
		['sleep', 'loop', 9, ['--worker-wall', '1'], 1],
		['eat', 'memory', 0, ['--worker-memory', '128M'], 2],
		['run', 'forbidden', 31, [], 2],
	])
		test(`a decoder that ends by ${how}`, { skip: endsUnlike(how) }, async (t) => {
			const s = await poisoned(t, how, args);
			const body = sampleTrace(40);
			const trace = await s.trace(body, { query: { build_id: 'b1', app: 'com.app' } });
			assert.equal(trace.state, 'failed');
			const [one, ...more] = await listed(s);
			assert.equal(more.length, 0);
			assert.equal(one.id, trace.id);
			assert.deepEqual([one.reason, one.signal, one.crashes, one.bytes, one.app, one.state], [reason, signal, deaths, body.length, 'com.app', 'failed']);
			assert.equal(one.message, trace.error.message);
			assert.ok(one.first_ms >= one.created_ms && one.last_ms >= one.first_ms);
			assert.deepEqual(one.parts, [{ part: 'trace', bytes: body.length }]);
			assert.match(s.log, new RegExp(`event=quarantined trace=${trace.id} reason=${reason} signal=${signal}`));
			assert.equal(await number(s, `tracewell_decoder_crashes_totalreason="${reason}"`), deaths);
			assert.equal(trace.attempts, deaths);
			assert.equal(await number(s, 'tracewell_quarantine_traces'), 1);
			assert.equal(await number(s, 'tracewell_quarantine_bytes'), body.length);
		});

	test('a decoder ends when its trace is deleted', async (t) => {
		const s = await startServer(t, { args: ['--decode-workers', '1', '--shutdown', '0'], env: { TRACEWELL_WORKER_FAULT: 'sleep' } });
		const { id } = (await s.post('/api/v1/traces', sampleTrace(44))).json;
		const pid = await until(async () => /event=decoding trace=\S+ attempt=1 pid=(\d+)/.exec(s.log)?.[1], 'a decoder');
		assert.ok(fs.existsSync(`/proc/${pid}`));
		assert.equal((await s.ask('DELETE', `/api/v1/traces/${id}`)).status, 204);
		await until(async () => (fs.existsSync(`/proc/${pid}`) ? undefined : true), 'the end of its decoder');
		await until(async () => /event=decoding_abandoned/.exec(s.log) ?? undefined, 'a line about it');
		await until(async () => (s.spool().length ? undefined : true), 'an empty spool');
		assert.deepEqual(await listed(s), []);
		assert.equal(files(s), 0);
	});

	test('an unreadable upload fails with its reason and delays no other', async (t) => {
		const s = await startServer(t, { args: ['--decode-workers', '1', '--worker-attempts', '3'] });
		const body = sampleTrace(45);
		const { id } = await s.trace(body);
		await s.stop();
		const sha = createHash('sha256').update(body).digest('hex');
		const blob = fs.readdirSync(path.join(s.data, 'blobs'), { recursive: true }).find((name) => name.endsWith(sha));
		fs.rmSync(path.join(s.data, 'blobs', blob));
		fs.mkdirSync(path.join(s.data, 'blobs', blob)); // opens, and each read fails
		s.sql(`UPDATE trace SET state=0 WHERE trace_id='${id}'`);
		s.sql(`INSERT INTO job(project_id,trace_id,due_ms,queued_ms,bytes) SELECT project_id,trace_id,1,1,1 FROM trace WHERE trace_id='${id}'`);
		await s.start();
		const other = await s.post('/api/v1/traces', sampleTrace(46));
		assert.equal((await s.decoded(other.json.id)).state, 'ready');
		const failed = await s.decoded(id);
		assert.equal(failed.state, 'failed');
		assert.match(failed.error.message, /cannot be read from storage/);
		assert.equal(failed.attempts, 3);
		assert.doesNotMatch(s.log, /outcome=postponed/, 'no pause for the others');
	});

	test('its bytes are for admins alone, as a file to save', async (t) => {
		const s = await poisoned(t, 'crash');
		const body = sampleTrace(41);
		const { id } = await s.trace(body);
		const target = `/api/v1/quarantine/${id}/trace`;
		const saved = await s.get(target, { key: s.admin });
		assert.equal(saved.status, 200);
		assert.ok(saved.bytes.equals(body));
		assert.equal(saved.headers.get('content-type'), 'application/octet-stream');
		assert.equal(saved.headers.get('x-content-type-options'), 'nosniff');
		assert.equal(saved.headers.get('content-disposition'), `attachment; filename="${id}-trace"`);
		for (const key of [s.read, s.write, s.ingest]) {
			assert.equal((await s.get(target, { key })).status, 403);
			assert.equal((await s.get(`/api/v1/traces/${id}/raw/trace`, { key })).status, 403, 'by no other way');
		}
		assert.match((await s.get(`/api/v1/traces/${id}/raw/trace`)).json.error.message, /in quarantine/);
		assert.equal((await s.get(target, { key: s.key('admin', 'other') })).status, 404);
		assert.equal((await s.get(`/api/v1/quarantine/${id}/threads`, { key: s.admin })).status, 404);
	});

	test('the format is reported if it was recognised before the end', async (t) => {
		const s = await startServer(t, { args: ['--worker-attempts', '1'], env: { TRACEWELL_CRASH_AT: 'child_decoded' } });
		await s.trace(sampleTrace(42));
		const [one] = await listed(s);
		assert.deepEqual([one.format, one.signal], ['btrace2', 9]);
	});

	test('after an upgrade it is tried again, and leaves; a second death is counted', async (t) => {
		const s = await poisoned(t, 'crash');
		const { id } = await s.trace(sampleTrace(43));
		const retry = () => s.ask('POST', `/api/v1/quarantine/${id}`, { key: s.admin });
		assert.equal((await retry()).status, 202);
		const again = await until(async () => (await listed(s)).find((q) => q.crashes === 4), 'a second end');
		assert.ok(again.last_ms > again.first_ms);

		await restart(s, {});
		assert.equal((await listed(s)).length, 1, 'it is still there');
		const answer = await retry();
		assert.deepEqual([answer.status, answer.json], [202, { id, state: 'queued' }]);
		assert.equal((await s.decoded(id)).state, 'ready');
		assert.deepEqual(await listed(s), []);
		assert.equal((await retry()).status, 404);
		assert.equal((await s.get(`/api/v1/traces/${id}/raw/trace`)).status, 200);
	});

	test('discarding it deletes its bytes', async (t) => {
		const s = await poisoned(t, 'crash');
		const { id } = await s.trace(sampleTrace(44));
		const stays = await s.trace(sampleTrace(45));
		assert.equal(files(s), 2);
		assert.equal((await s.ask('DELETE', `/api/v1/quarantine/${id}`, { key: s.admin })).status, 204);
		assert.equal(files(s), 1);
		assert.equal((await s.get(`/api/v1/traces/${id}`)).status, 404);
		assert.deepEqual((await listed(s)).map((q) => q.id), [stays.id]);
	});

	test('merely invalid uploads are refused with a message and not quarantined', async (t) => {
		const s = await startServer(t, { args: ['--max-decoded', '200K'] }); // more than preflight reads
		const bad = await s.trace(sampleTrace(20000));
		assert.equal(bad.state, 'failed');
		assert.deepEqual(await listed(s), []);
		assert.equal((await s.get(`/api/v1/quarantine/${bad.id}/trace`, { key: s.admin })).status, 404);
		assert.equal((await s.get(`/api/v1/traces/${bad.id}/raw/trace`)).status, 200);
	});

	test('bounded by number and bytes, the oldest are deleted first, pinned ones remain', async (t) => {
		const s = await poisoned(t, 'crash', ['--worker-attempts', '1', '--retention-every', '1']);
		const bodies = [46, 47, 48, 49].map((n) => sampleTrace(n));
		const ids = [];
		for (const body of bodies) ids.push((await s.trace(body)).id);
		await s.ask('PATCH', `/api/v1/traces/${ids[0]}`, { key: s.write, body: '{"pinned":true}' });
		const rules = (r, query) => s.ask('PUT', '/api/v1/retention', { key: s.admin, body: JSON.stringify(r), query });
		const dry = await rules({ quarantine_max_traces: 3 }, { dry_run: 'true' });
		assert.deepEqual(dry.json.expiring_now.map((d) => [d.id, d.reason]), [[ids[1], 'quarantine']]);
		assert.deepEqual([dry.json.rules.quarantine_max_traces, dry.json.rules.quarantine_max_bytes], [3, 1 << 30]);
		await rules({ quarantine_max_traces: 3 });
		await until(async () => ((await listed(s)).length === 3 ? true : undefined), 'one gone');
		assert.deepEqual((await listed(s)).map((q) => q.id), [ids[0], ids[2], ids[3]]);
		await rules({ quarantine_max_bytes: bodies[0].length + bodies[3].length });
		await until(async () => ((await listed(s)).length === 2 ? true : undefined), 'another gone');
		assert.deepEqual((await listed(s)).map((q) => q.id), [ids[0], ids[3]]);
		assert.equal(files(s), 2);
		assert.equal((await rules({ quarantine_max_traces: -1 })).status, 400);
	});
});
