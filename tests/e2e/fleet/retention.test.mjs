/*
 * retention.test.mjs - the deletions of a project's rules, their time and their announcement; pinned,
 * shared and undecoded traces remain.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { binary, root, sanitized, startServer, until } from '../server.mjs';

const DAY_MS = 86400000;

/* Makes traces look as old as that many days. */
function age(s, days) {
	s.sql(Object.entries(days).map(([id, n]) => `UPDATE trace SET created_ms=created_ms-${Math.round(n * DAY_MS)} WHERE trace_id='${id}'`).join(';'));
}

async function upload(s, calls, query = {}) {
	return (await s.trace(sampleTrace(calls), { query: { build_id: 'b1', ...query } })).id;
}

/* Leaves those traces nothing but their uploads. */
async function archive(s, ids) {
	s.sql('UPDATE trace SET ready_ms=ready_ms-864000000');
	await rules(s, { decoded_max_age_days: 7 });
	for (const id of ids) await until(async () => ((await s.get(`/api/v1/traces/${id}`)).json.state === 'archived' ? true : undefined), 'archived');
	await rules(s, {});
}

const rules = (s, body, query) => s.ask('PUT', '/api/v1/retention', { key: s.admin, body: JSON.stringify(body), query });
const there = async (s, id) => (await s.get(`/api/v1/traces/${id}`)).status === 200;
const gone = (s, id) => until(async () => ((await there(s, id)) ? undefined : true), `${id} deleted`);
const files = (s, folder) => fs.readdirSync(path.join(s.data, folder), { recursive: true, withFileTypes: true }).filter((e) => e.isFile()).length;
const withDefaults = (t) => startServer(t, { args: ['--retention-every', '1'] });

/* Without limits, so that no default deletes a test's old traces before the test sets its rules. */
async function start(t) {
	const s = await withDefaults(t);
	await rules(s, {});
	return s;
}

describe('retention', { concurrency: 2 }, () => {
	test('a project without rules has defaults, which the first start logs', async (t) => {
		const s = await withDefaults(t);
		assert.match(s.log, /event=retention_defaults uploads_days=14 traces_days=90 figures_days=400 max_disk_use_percent=80 /);
		const ids = [await upload(s, 50), await upload(s, 51), await upload(s, 52)];
		age(s, { [ids[0]]: 91, [ids[1]]: 15, [ids[2]]: 13 });
		await gone(s, ids[0]);
		await until(async () => ((await s.get(`/api/v1/traces/${ids[1]}`)).json.has_upload === false ? true : undefined), 'its upload deleted');
		assert.ok(await there(s, ids[2]));
		assert.equal(files(s, 'traces'), 2);
		await s.put('/api/v1/builds/b1/methods', sampleMapping);
		await until(async () => ((await s.get(`/api/v1/traces/${ids[1]}/methods`)).json.methods.some((m) => m.resolved) ? true : undefined), 'named by a late mapping');
		assert.equal((await rules(s, { max_age_days: 0, uploads_max_age_days: null })).json.rules.max_age_days, null);
	});

	test('by age: previewed, then deleted with its files; pinned traces remain', async (t) => {
		const s = await start(t);
		const ids = [await upload(s, 50), await upload(s, 51), await upload(s, 52)];
		await s.ask('PATCH', `/api/v1/traces/${ids[1]}`, { key: s.write, body: '{"pinned":true}' });
		age(s, { [ids[0]]: 31, [ids[1]]: 31, [ids[2]]: 25 });

		const dry = await rules(s, { max_age_days: 30 }, { dry_run: 'true' });
		assert.equal(dry.status, 200, dry.text);
		assert.deepEqual(dry.json.expiring_now.map((d) => [d.id, d.reason]), [[ids[0], 'age']]);
		assert.ok(dry.json.expiring_soon.some((x) => x.id === ids[2] && x.expires_ms > Date.now() && x.expires_ms < Date.now() + 6 * DAY_MS));
		assert.equal((await s.get('/api/v1/retention')).json.rules.max_age_days, null, 'nothing was changed');
		assert.ok(await there(s, ids[0]));

		assert.equal((await rules(s, { max_age_days: 30 })).status, 200);
		await gone(s, ids[0]);
		const reported = (await s.get(`/api/v1/traces/${ids[2]}`)).json;
		assert.ok(Math.abs(reported.expires_ms - (reported.created_ms + 30 * DAY_MS)) < 1);
		assert.equal((await s.get(`/api/v1/traces/${ids[1]}`)).json.expires_ms, null);
		assert.ok((await there(s, ids[1])) && (await there(s, ids[2])));
		assert.deepEqual([files(s, 'blobs'), files(s, 'traces')], [2, 2]);
		assert.match(s.log, new RegExp(`event=trace_expired trace=${ids[0]} reason=age`));
		assert.match((await s.get('/metrics', { key: null })).text, /tracewell_expired_total\{what="trace"\} 1\n/);
	});

	test('by number and by bytes, the oldest first', async (t) => {
		const s = await start(t);
		const ids = [];
		for (let i = 0; i < 5; i++) ids.push(await upload(s, 60 + i));
		age(s, Object.fromEntries(ids.map((id, i) => [id, 10 - i])));
		await rules(s, { max_traces: 3 });
		await gone(s, ids[0]);
		await gone(s, ids[1]);
		assert.equal(await s.total(), 3);
		const { use } = (await s.get('/api/v1/retention')).json;
		assert.ok(use.upload_bytes > 0 && use.decoded_bytes > 0);
		await rules(s, { max_bytes: use.upload_bytes + use.decoded_bytes - 1 });
		await gone(s, ids[2]);
		assert.equal(await s.total(), 2);
	});

	test('by value: annotated traces are retained by rule, exempt ones always', async (t) => {
		const s = await start(t);
		const ids = [];
		for (let i = 0; i < 4; i++) ids.push(await upload(s, 70 + i));
		await s.ask('PATCH', `/api/v1/traces/${ids[0]}`, { key: s.write, body: '{"title":"the slow one"}' });
		await s.ask('POST', `/api/v1/traces/${ids[1]}/annotations`, { key: s.write, body: '{"text":"here","ts_ns":1}' });
		s.sql(`UPDATE trace SET exempt_reason='exemplar' WHERE trace_id='${ids[2]}'`);
		age(s, Object.fromEntries(ids.map((id) => [id, 40])));
		const due = async (r) => (await rules(s, r, { dry_run: 'true' })).json.expiring_now.map((d) => d.id).sort();
		assert.deepEqual(await due({ max_age_days: 30, keep_annotated: false }), [ids[0], ids[1], ids[3]].sort());
		assert.deepEqual(await due({ max_age_days: 30 }), [ids[3]], 'retained if the rule is absent');
		assert.deepEqual(await due({ max_traces: 1, keep_annotated: true }), [ids[3]]);
		assert.deepEqual(await due({ uploads_max_age_days: 30, keep_annotated: true }), [ids[3]]);
		assert.equal((await rules(s, { keep_annotated: 1 })).status, 400);
		const set = await rules(s, { max_age_days: 30, keep_annotated: true });
		assert.equal(set.json.rules.keep_annotated, true);
		await gone(s, ids[3]);
		for (const id of ids.slice(0, 3)) assert.equal((await s.get(`/api/v1/traces/${id}`)).json.expires_ms, null);
		assert.equal((await s.get(`/api/v1/traces/${ids[2]}`)).json.exempt_reason, 'exemplar');
	});

	test('traces with an ANR have a separate age, and the first of each group is retained', async (t) => {
		const s = await start(t);
		const anr = (n) => fs.readFileSync(path.join(root, 'tests/golden/anr/realistic/input'), 'utf8') + '\n'.repeat(n);
		const ids = [];
		for (let i = 0; i < 3; i++) ids.push((await s.trace(Buffer.from(anr(i)))).id);
		const plain = await upload(s, 71);
		const rows = await Promise.all(ids.map(async (id) => (await s.get(`/api/v1/traces/${id}`)).json));
		assert.match(rows[0].anr, /^[0-9a-f]{8,}$/);
		assert.equal(new Set(rows.map((r) => r.anr)).size, 1);
		assert.deepEqual(rows.map((r) => r.first_anr), [true, false, false]);
		assert.equal((await s.get(`/api/v1/traces/${plain}`)).json.anr, '');
		age(s, { [ids[0]]: 95, [ids[1]]: 94, [ids[2]]: 40, [plain]: 40 });
		const due = async (r) => (await rules(s, r, { dry_run: 'true' })).json.expiring_now.map((d) => [d.id, d.reason]);
		assert.deepEqual(await due({ max_age_days: 30, keep_first_anr: false }), [ids[0], ids[1], ...[ids[2], plain].sort()].map((id) => [id, 'age']));
		assert.deepEqual(await due({ max_age_days: 30, anr_max_age_days: 90, keep_first_anr: false }), [[ids[0], 'anr_age'], [ids[1], 'anr_age'], [plain, 'age']]);
		assert.deepEqual(await due({ max_traces: 1, anr_max_age_days: 200 }), [[plain, 'count']], 'no other limit');
		const set = await rules(s, { max_age_days: 30, anr_max_age_days: 90 });
		assert.deepEqual([set.json.rules.keep_first_anr, set.json.rules.anr_max_age_days], [true, 90]);
		await gone(s, ids[1]);
		await gone(s, plain);
		const left = (await s.get('/api/v1/traces')).json.traces;
		assert.deepEqual(left.map((x) => [x.id, x.expires_ms && Math.round((x.expires_ms - x.created_ms) / DAY_MS)]).sort(), [[ids[0], null], [ids[2], 90]].sort());
	});

	test('the first trace of an ANR group outlives its age, up to a limit', { skip: process.env.TRACEWELL_TEST_POSTGRES ? 'it writes to the file' : false }, async (t) => {
		const s = await start(t);
		const ids = [await upload(s, 101), await upload(s, 102), await upload(s, 103)];
		const sql = (script, ...args) => execFileSync('python3', ['-c', `import sqlite3,sys\ndb=sqlite3.connect(sys.argv[1],timeout=20)\n${script}\ndb.commit()`, path.join(s.data, 'catalogue.db'), ...args]);
		sql("db.execute(\"UPDATE trace SET anr='forged-'||trace_id\")");
		age(s, { [ids[0]]: 43, [ids[1]]: 42, [ids[2]]: 41 });
		const due = async (r) => (await rules(s, r, { dry_run: 'true' })).json.expiring_now.map((d) => [d.id, d.reason]);
		assert.deepEqual(await due({ max_age_days: 30 }), []);
		assert.deepEqual(await due({ anr_max_age_days: 30 }), []);
		assert.deepEqual(await due({ max_age_days: 30, max_traces: 1 }), ids.slice(0, 2).map((id) => [id, 'count']));
		assert.deepEqual(await due({ max_bytes: 1 }), ids.map((id) => [id, 'bytes']));

		sql("db.execute('UPDATE trace SET file_bytes=? WHERE trace_id<>?',(3<<30,sys.argv[2]))", ids[0]);
		for (const rule of ['max_age_days', 'anr_max_age_days'])
			assert.deepEqual((await due({ [rule]: 30 })).map(([id]) => id), ids.slice(0, 1), 'the newest stay, until they have 4 GiB; however large, one does not take the others with it');
		sql("db.execute('UPDATE trace SET file_bytes=1')");
		assert.deepEqual(await due({ max_age_days: 30 }), []);
		sql('db.row_factory=sqlite3.Row\nrow=dict(db.execute("SELECT * FROM trace WHERE trace_id=?",(sys.argv[2],)).fetchone())\n' +
			'for i in range(999):\n  row.update(trace_id="01FORGED%018d"%i,anr="group%d"%i,uuid="",created_ms=row["created_ms"]+1)\n' +
			'  db.execute("INSERT INTO trace(%s) VALUES(%s)"%(",".join(row),",".join("?"*len(row))),list(row.values()))', ids[2]);
		assert.deepEqual(await due({ max_age_days: 30 }), ids.slice(0, 2).map((id) => [id, 'age']), 'a thousand stay');
		await rules(s, { max_age_days: 30 });
		await gone(s, ids[0]);
		await gone(s, ids[1]);
		assert.ok(await there(s, ids[2]));
	});

	test('the age of uploads holds for archived traces: nothing would be left, so they go', async (t) => {
		const s = await start(t);
		const id = await upload(s, 110);
		const pinned = await upload(s, 111);
		await archive(s, [id, pinned]);
		await s.ask('PATCH', `/api/v1/traces/${pinned}`, { key: s.write, body: '{"pinned":true}' });
		age(s, { [id]: 25, [pinned]: 25 });
		await rules(s, { uploads_max_age_days: 30 });
		const reported = (await s.get(`/api/v1/traces/${id}`)).json;
		assert.equal(Math.round((reported.expires_ms - reported.created_ms) / DAY_MS), 30);
		const { expiring_soon: soon } = (await s.get('/api/v1/retention')).json;
		assert.deepEqual(soon.map((d) => [d.id, d.deletes, d.reason]), [[id, 'trace', 'archived_age']]);
		age(s, { [id]: 6, [pinned]: 6 });
		await gone(s, id);
		assert.ok(await there(s, pinned));
		assert.equal(files(s, 'blobs'), 1);
		assert.match(s.log, new RegExp(`event=trace_expired trace=${id} reason=archived_age`));
	});

	test('archived traces are decoded again only while there is space', async (t) => {
		const s = await startServer(t, { args: ['--retention-every', '1', '--decode-workers', '1', '--max-queue', '16', '--shutdown', '0'] });
		const ids = [];
		for (let i = 0; i < 8; i++) ids.push(await upload(s, 120 + i));
		await archive(s, ids);
		await s.stop();
		s.env = { TRACEWELL_WORKER_FAULT: 'sleep' };
		await s.start();
		const answers = [];
		for (const id of ids) answers.push(await s.get(`/api/v1/traces/${id}/methods`));
		assert.deepEqual(answers.map((r) => r.status), [409, 409, 503, 503, 503, 503, 503, 503]);
		assert.match(answers[7].json.error.message, /are queued for decoding.*retry in 10 s/);
		assert.equal(answers[7].headers.get('retry-after'), '10');
		assert.equal((await s.get(`/api/v1/traces/${ids[7]}`)).json.state, 'archived');
		assert.equal((await s.post('/api/v1/traces', sampleTrace(130))).status, 202, 'uploads have the rest');
		await s.stop('SIGKILL');
		s.env = {};
		s.args = [...s.args, '--min-free', '99'];
		await s.start();
		const full = await s.get(`/api/v1/traces/${ids[7]}/methods`);
		assert.equal(full.status, 507, full.text);
		assert.match(full.json.error.message, /no space to decode it again/);
		assert.ok(Number(full.headers.get('retry-after')) > 0);
	});

	test('decoded files alone: previewed, deleted, and made again when the trace is opened', async (t) => {
		const s = await start(t);
		const id = await upload(s, 77);
		const pinned = await upload(s, 78);
		await s.ask('PATCH', `/api/v1/traces/${pinned}`, { key: s.write, body: '{"pinned":true}' });
		const before = (await s.get(`/api/v1/traces/${id}/methods`)).json;
		const { summary } = (await s.get(`/api/v1/traces/${id}`)).json;
		const decodedDays = (days) => s.sql(`UPDATE trace SET ready_ms=ready_ms-${days * DAY_MS}`);
		decodedDays(5);
		const dry = await until(async () => { // a decoded file remains until its trace is counted
			const answer = await rules(s, { decoded_max_age_days: 7 }, { dry_run: 'true' });
			return answer.json.expiring_soon.length ? answer : undefined;
		}, 'counted');
		assert.deepEqual(dry.json.expiring_now, []);
		assert.deepEqual(dry.json.expiring_soon.map((d) => [d.id, d.deletes, d.reason, d.bytes]), [[id, 'decoded', 'decoded_age', summary.file_bytes]]);
		assert.ok(dry.json.expiring_soon[0].expires_ms > Date.now() && dry.json.expiring_soon[0].expires_ms < Date.now() + 3 * DAY_MS);
		assert.deepEqual((await rules(s, { decoded_max_age_days: 7 }, { dry_run: 'true', days: 1 })).json.expiring_soon, []);
		await rules(s, { decoded_max_age_days: 7 });
		const reported = (await s.get(`/api/v1/traces/${id}`)).json;
		assert.deepEqual([reported.expires_ms, reported.upload_expires_ms, reported.decoded_expires_ms], [null, null, dry.json.expiring_soon[0].expires_ms]);
		decodedDays(3);
		const state = async () => (await s.get(`/api/v1/traces/${id}`)).json.state;
		await until(async () => ((await state()) === 'archived' ? true : undefined), 'archived');
		assert.deepEqual([files(s, 'traces'), files(s, 'blobs')], [1, 2], 'the pinned one keeps its file');
		assert.equal((await s.get(`/api/v1/traces/${id}`)).json.summary.slices, summary.slices);
		assert.deepEqual((await s.get('/api/v1/traces', { query: { state: 'archived' } })).json.traces.map((x) => x.id), [id]);
		assert.equal((await s.get('/api/v1/retention')).json.use.archived, 1);
		assert.match((await s.get('/metrics', { key: null })).text, /tracewell_expired_total\{what="decoded"\} 1\n/);
		assert.match(s.log, new RegExp(`event=decoded_expired trace=${id} reason=decoded_age`));
		const noted = (await s.get('/api/v1/audit', { key: s.admin, query: { action: 'decoded' } })).json.entries;
		assert.deepEqual(noted.map((e) => [e.action, e.target, e.actor.kind]), [['decoded.delete', id, 'server']]);
		await s.stop();
		assert.equal(spawnSync(binary(), ['check', '--data', s.data]).status, 0);
		await s.start();
		assert.equal(await state(), 'archived', 'a start does not decode it');

		const first = await s.get(`/api/v1/traces/${id}/methods`);
		assert.equal(first.status, 409);
		assert.match(first.json.error.message, /decoded again/);
		await s.decoded(id);
		assert.deepEqual((await s.get(`/api/v1/traces/${id}/methods`)).json, before);
		assert.equal(files(s, 'traces'), 2);
	});

	test('uploads alone: the trace remains, can be named late, and is marked', async (t) => {
		const s = await start(t);
		const id = await upload(s, 80);
		const before = (await s.get(`/api/v1/traces/${id}/methods`)).json;
		age(s, { [id]: 8 });
		await rules(s, { uploads_max_age_days: 7 });
		await until(async () => ((await s.get(`/api/v1/traces/${id}`)).json.has_upload ? undefined : true), 'the upload deleted');
		assert.deepEqual((await s.get(`/api/v1/traces/${id}/methods`)).json, before);
		assert.equal((await s.get(`/api/v1/traces/${id}/raw/trace`)).status, 404);
		assert.equal(files(s, 'blobs'), 0);
		await s.put('/api/v1/builds/b1/methods', sampleMapping);
		assert.match((await s.get(`/api/v1/traces/${id}/methods`)).json.methods[0].name, /com\.example\.app/);
		assert.equal(spawnSync(binary(), ['check', '--data', s.data]).status, 0);

		/* a damaged file is then a loss, not a trace that waits for ever */
		const file = fs.readdirSync(path.join(s.data, 'traces'), { recursive: true }).find((f) => String(f).endsWith('.db'));
		fs.writeFileSync(path.join(s.data, 'traces', String(file)), 'no database');
		const r = await s.get(`/api/v1/traces/${id}/flame`);
		assert.equal(r.status, 404);
		assert.match(r.json.error.message, /this trace is lost/);
		assert.equal((await s.ask('DELETE', `/api/v1/traces/${id}`)).status, 204);
	});

	test('an upload whose decoded file is missing is decoded again before it is deleted', async (t) => {
		const s = await start(t);
		const id = await upload(s, 82);
		const before = (await s.get(`/api/v1/traces/${id}/methods`)).json;
		const file = fs.readdirSync(path.join(s.data, 'traces'), { recursive: true }).find((f) => String(f).endsWith('.db'));
		fs.rmSync(path.join(s.data, 'traces', String(file)));
		age(s, { [id]: 8 });
		await rules(s, { uploads_max_age_days: 7 });
		await until(() => s.sql('SELECT has_upload FROM trace') === '0' || undefined, 'the upload deleted');
		assert.match(s.log, new RegExp(`event=trace_file_missing trace=${id} action="decoding it again"`));
		assert.deepEqual((await s.get(`/api/v1/traces/${id}/methods`)).json, before);
	});

	test('a trace whose files cannot be read does not stop the deletion of others', async (t) => {
		const s = await start(t);
		const ids = [];
		do ids.push(await upload(s, 83 + ids.length));
		while (ids.at(-1).slice(-2) === ids[0].slice(-2));
		const folder = path.join(s.data, 'traces', ids[0].slice(-2));
		fs.renameSync(folder, `${folder}.away`);
		fs.writeFileSync(folder, '');
		age(s, { [ids[0]]: 9, [ids.at(-1)]: 8 });
		await rules(s, { uploads_max_age_days: 7 });
		await until(() => s.sql(`SELECT has_upload FROM trace WHERE trace_id='${ids.at(-1)}'`) === '0' || undefined, 'its upload deleted');
		assert.equal(s.sql(`SELECT has_upload FROM trace WHERE trace_id='${ids[0]}'`), '1');
		await until(() => s.log.includes(`event=retention what=${ids[0]} status=storage`) || undefined, 'its failure logged');
	});

	test('below the disk floor no upload is begun, whole or resumable, and nothing is left', async (t) => {
		const s = await startServer(t, { args: ['--min-free', '99'] });
		const whole = await s.post('/api/v1/traces', sampleTrace(95));
		assert.equal(whole.status, 507);
		assert.match(whole.json.error.message, /disk|free/);
		const tus = { 'Tus-Resumable': '1.0.0' };
		const pieces = await s.post('/api/v1/uploads', undefined, { headers: { ...tus, 'Upload-Length': '100' } });
		assert.equal(pieces.status, 507, pieces.text);
		const with_body = await s.post('/api/v1/uploads', sampleTrace(96), {
			headers: { ...tus, 'Upload-Length': String(sampleTrace(96).length), 'Content-Type': 'application/offset+octet-stream' } });
		assert.equal(with_body.status, 507, with_body.text);
		assert.equal((await s.get('/readyz', { key: null })).status, 503);
		assert.equal((await s.get('/api/v1/traces')).status, 200, 'what is there is read on');
		assert.deepEqual([files(s, 'blobs'), s.spool().length], [0, 0]);
	});

	test('a disk above --max-disk-use: the oldest decoded traces go first, and no more than it takes', { skip: sanitized() && 'a sanitizer takes no shim' }, async (t) => {
		const shim = path.join(path.dirname(path.dirname(binary())), 'tests', 'libtracewell-disk.so');
		const SIZE = 400 << 20;
		const s = await startServer(t, { args: ['--retention-every', '1', '--reserve', '0', '--min-free', '0', '--max-disk-use', '50'], env: { LD_PRELOAD: shim, TRACEWELL_DISK: String(SIZE) } });
		await rules(s, {});
		const ids = [];
		for (let i = 0; i < 8; i++) ids.push(await upload(s, 20_000 + i));
		age(s, Object.fromEntries(ids.map((id, i) => [id, 20 - i])));
		await s.ask('PATCH', `/api/v1/traces/${ids[1]}`, { key: s.write, body: '{"pinned":true}' });
		s.sql(`UPDATE trace SET exempt_reason='regression' WHERE trace_id='${ids[3]}'`);
		await s.ran('retention');
		assert.equal(await s.total(), 8, 'below the limit nothing is deleted');
		const { disk, use } = (await s.get('/api/v1/retention')).json;
		assert.deepEqual([disk.max_percent, disk.size_bytes], [50, SIZE]);
		/* room for all but about one and a half traces */
		const each = (use.upload_bytes + use.decoded_bytes) / 8;
		const other = SIZE / 2 - disk.used_bytes + 1.5 * each;
		fs.writeFileSync(path.join(s.data, 'ballast'), Buffer.alloc(Math.round(other)));
		await gone(s, ids[0]);
		await gone(s, ids[2]);
		await until(() => (s.log.includes('reason="the disk was above --max-disk-use"') ? true : undefined), 'logged');
		await s.ran('retention');
		assert.deepEqual(await Promise.all(ids.map((id) => there(s, id))), [false, true, false, true, true, true, true, true], 'pinned and evidence stay, newer ones too');
		const after = (await s.get('/api/v1/retention')).json.disk;
		assert.ok(after.used_bytes <= SIZE / 2, `${after.used_bytes}`);
		assert.match((await s.get('/metrics', { key: null })).text, /tracewell_disk_expired_traces_total 2\n/);
	});

	test('traces and figures that are old only by a clock that jumped remain for a day of uptime', async (t) => {
		const s = await startServer(t, { args: ['--retention-every', '1'] });
		const counts = () => ['trace', 'rollup_cell', 'anr_day'].map((table) => Number(s.sql(`SELECT count(*) FROM ${table}`)));
		await upload(s, 50);
		await s.trace(fs.readFileSync(path.join(root, 'tests/golden/anr/realistic/input')));
		await until(() => (counts().every(Boolean) ? true : undefined), 'counted');
		await s.stop();
		const before = counts();
		const restart = async (stored) => {
			fs.writeFileSync(path.join(s.data, 'retention.time'), stored);
			await s.start();
		};
		s.sql(`UPDATE trace SET created_ms=created_ms-${500 * DAY_MS}`);
		for (const table of ['rollup_cell', 'anr_day', 'anr_trace']) s.sql(`UPDATE ${table} SET day=day-500`);
		for (const stored of ['', `${Date.now() - 500 * DAY_MS} 0\n`]) {
			const logged = s.log.length;
			await restart(stored);
			for (const task of ['retention', 'rollup', 'anr']) await s.ran(task, { first: true });
			assert.match(s.log.slice(logged), / event=retention_clock .*for a day of uptime/);
			await s.stop();
			assert.deepEqual(counts(), before);
		}
		await restart(`${Date.now() - 500 * DAY_MS} ${DAY_MS}\n`);
		await until(() => (counts().slice(1).some(Boolean) ? undefined : true), 'figures deleted');
		await until(() => (counts()[0] === before[0] ? undefined : true), 'a trace deleted');
	});

	test('a stop of three days delays nothing', async (t) => {
		const s = await startServer(t);
		const { id } = await s.trace(sampleTrace(51));
		await s.stop();
		fs.writeFileSync(path.join(s.data, 'retention.time'), `${Date.now() - 3 * DAY_MS} 0\n`);
		await s.start();
		const resumed = await s.post('/api/v1/uploads', '', { headers: { 'Tus-Resumable': '1.0.0', 'Upload-Length': '1' } });
		assert.equal(resumed.status, 201, resumed.text);
		assert.ok(Date.parse(resumed.headers.get('upload-expires')) > Date.now(), resumed.headers.get('upload-expires'));
		const [decoded] = fs.readdirSync(path.join(s.data, 'traces'), { recursive: true }).filter((name) => name.includes(id));
		assert.ok(decoded, 'a file');
		fs.truncateSync(path.join(s.data, 'traces', decoded), 10);
		execFileSync(binary(), ['check', '--data', s.data, '--repair']);
		await s.decoded(id);
		assert.equal((await s.get(`/api/v1/traces/${id}/methods`)).status, 200);
	});

	test('content shared by two traces is retained until the last is deleted', async (t) => {
		const s = await start(t);
		const body = sampleTrace(90);
		const ids = [(await s.trace(body, { query: { device: 'a' } })).id, (await s.trace(body, { query: { device: 'b' } })).id];
		assert.notEqual(ids[0], ids[1]);
		assert.equal(files(s, 'blobs'), 1);
		age(s, { [ids[0]]: 9 });
		await rules(s, { max_age_days: 5 });
		await gone(s, ids[0]);
		assert.equal(files(s, 'blobs'), 1);
		assert.equal((await s.get(`/api/v1/traces/${ids[1]}/raw/trace`)).status, 200);
	});

	test('rules are verified, and are for admins', async (t) => {
		const s = await start(t);
		for (const [body, words] of [
			[{ max_age: 3 }, /unknown rule "max_age"/],
			[{ max_age_days: -1 }, /max_age_days must be a whole number from 1/],
			[{ max_age_days: '3' }, /whole number/],
			[{ max_bytes: 1e300 }, /max_bytes/],
			[[], /must be a JSON object/],
		]) {
			const r = await rules(s, body);
			assert.equal(r.status, 400, JSON.stringify(body));
			assert.match(r.json.error.message, words);
		}
		assert.equal((await s.ask('PUT', '/api/v1/retention', { key: s.read, body: '{}' })).status, 403);
		assert.equal((await s.ask('PUT', '/api/v1/retention', { key: s.write, body: '{}' })).status, 403);
		assert.equal((await rules(s, {})).status, 200);
	});
});
