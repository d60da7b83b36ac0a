/*
 * postgres.test.mjs - the catalogue in PostgreSQL: the main tasks, two servers on one, one of them killed,
 * PostgreSQL restarted under load, and refusals with their messages.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { Server, atEnd, binary, inFull, makeData, newFolder, sideBySide, sleep, tracewell, until } from '../server.mjs';

const test = sideBySide(2);

const skip = postgresIsThere ? false : 'PostgreSQL 15 or later is not installed';
const run = (...args) => spawnSync(binary(), args, { encoding: 'utf8' });

function folder(t) {
	return newFolder(t, 'tracewell-pg-');
}

async function serve(t, data, url, env = {}, args = []) {
	const s = new Server(data, ['--catalog', url, ...args], env);
	await s.start();
	atEnd(t, () => {
		s.child.kill('SIGCONT');
		return s.stop();
	});
	return s;
}

const several = ['--several-servers'];
const upload = (s, body, key, query = {}) => s.post('/api/v1/traces', body, { query: { app: 'shop', version_name: '1', scenario: 'cold_start', ...query }, headers: { 'Idempotency-Key': key } });
const counted = (s) => s.get('/api/v1/fleet/scenarios?by=all').then(({ json }) => json?.traces ?? 0);

test('the main job, and features of a file alone', { skip }, async (t) => {
	const db = await startPostgres(t);
	const data = folder(t);
	const s = await serve(t, data, db.url('main'));

	assert.match(s.log, /catalogue=postgresql/);
	assert.equal((await s.get('/readyz', { key: null })).json.checks.catalogue.engine, 'postgresql');
	const trace = await s.trace(sampleTrace(20), { query: { app: 'shop', version_name: '1', build_id: 'b1', device: 'Pixel \u{1F600}', labels: JSON.stringify({ team: 'cart' }) } });
	assert.equal(trace.state, 'ready');
	assert.match((await s.flameLines(trace.id, 4000))[0], /unknown:1 /);
	assert.equal((await s.put('/api/v1/builds/b1/methods', sampleMapping)).status, 200);
	assert.match((await s.flameLines(trace.id, 4000))[0], /com\.example\.app\.Class0\.method1 /);
	await until(async () => ((await counted(s)) === 1 ? true : undefined), 'the trace counted');
	await until(async () => {
		const { json } = await s.get('/api/v1/fleet/methods');
		return json.methods?.length && json.methods.every((m) => m.resolved) ? true : undefined;
	}, 'names in the fleet');

	await t.test('found by its words, whatever their case, and by its tag', async () => {
		const mark = await s.ask('PATCH', `/api/v1/traces/${trace.id}`, { key: s.write, body: JSON.stringify({ tags: ['slow', 'a b'], title: 'Näher ansehen' }) });
		assert.equal(mark.status, 200, mark.text);
		assert.deepEqual(mark.json.tags.sort(), ['a b', 'slow']);
		for (const query of [{ q: 'PIXEL' }, { q: '100%' }, { tag: 'slow' }, { q: 'näher' }])
			assert.equal((await s.get('/api/v1/traces', { query })).json.total, query.q === '100%' ? 0 : 1, JSON.stringify(query));
	});

	await t.test('bytes that are no text are taken all the same', async () => {
		const answer = await s.ask('POST', `/api/v1/traces?app=${'%ff%fe'}&device=a%00b&build_id=b1`, { key: s.ingest, body: sampleTrace(3) });
		assert.ok(answer.status === 202 || answer.status === 400, answer.text);
		assert.ok((await s.get('/api/v1/traces', { query: { q: '\ufffd' } })).status === 200);
	});

	await t.test('commands find it through the folder; those that need a file state that', async () => {
		assert.match(tracewell('key', 'list', '--data', data, '--project', 'test'), /ingest/);
		assert.equal(run('check', '--data', data).status, 0);
		for (const [args, words] of [
			[['backup', '--data', data, '--to', path.join(data, '..', `${path.basename(data)}-copy`)], /pg_dump/],
			[['export', '--data', data, '--project', 'test', '--output', path.join(data, 'x.tar')], /PostgreSQL/],
			[['serve', '--data', data, '--catalog', db.url('other'), '--listen', '127.0.0.1:0'], /belongs to another catalogue/],
			[['serve', '--data', folder(t), '--catalog', db.url('main'), '--listen', '127.0.0.1:0'], /another data folder/],
			[['serve', '--data', data, '--several-servers', '--listen', '127.0.0.1:0'], /without --several-servers/],
			[['serve', '--data', data, '--catalog', 'mysql://x', '--listen', '127.0.0.1:0'], /PostgreSQL/],
			[['serve', '--data', folder(t), '--catalog', 'postgres://tw:secret@localhost/x', '--listen', '127.0.0.1:0'], /passfile/],
		]) {
			const r = run(...args);
			assert.notEqual(r.status, 0, args.join(' '));
			assert.match(r.stdout + r.stderr, words);
			assert.doesNotMatch(r.stdout + r.stderr, /secret/);
		}
		const own = await makeData(folder(t));
		tracewell('key', 'create', '--data', own, '--project', 'p', '--scope', 'read');
		assert.match(run('serve', '--data', own, '--catalog', db.url('third'), '--listen', '127.0.0.1:0').stderr, /already has a catalogue/);
		db.sql('UPDATE catalogue_schema SET version=version+1', 'main');
		assert.match(run('key', 'list', '--data', data, '--project', 'test').stderr, /newer tracewell/);
		db.sql('UPDATE catalogue_schema SET version=version-1', 'main');
	});

	await t.test('deleted, and on record without a gap', async () => {
		assert.equal((await s.ask('DELETE', `/api/v1/traces/${trace.id}`)).status, 204);
		assert.equal((await s.get(`/api/v1/traces/${trace.id}`)).status, 404);
		const { json } = await s.get('/api/v1/audit', { key: s.admin });
		const ids = json.entries.map((e) => Number(e.id)).sort((a, b) => a - b);
		assert.ok(json.entries.some((e) => e.action === 'trace.delete'));
		assert.deepEqual(ids, ids.map((_, i) => ids[0] + i));
	});
});

/* As if the leases of all claims had run out, for which a full run waits. */
const overdue = (db, schema) => inFull(false, true) && db.sql('UPDATE job SET due_ms=0 WHERE claimed=1', schema);

test('two servers on one catalogue: work begun by a killed one is done by the other, once', { skip, timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const data = folder(t);
	const url = db.url('two');
	const dying = await serve(t, data, url, { TRACEWELL_CRASH_AT: 'child_done' }, several);
	const answers = [];
	for (let i = 0; i < 6; i++) answers.push(await upload(dying, sampleTrace(10 + i), `k${i}`).catch(() => null));
	assert.ok(answers[0]?.status === 202);
	assert.equal((await dying.ended).signal, 'SIGKILL');
	assert.ok(Number(db.sql('SELECT count(*) FROM job WHERE claimed=1', 'two')) >= 1, 'it died with a claim');
	overdue(db, 'two');

	const [a, b] = [await serve(t, data, url, {}, several), await serve(t, data, url, {}, several)];
	const alone = run('serve', '--data', data, '--catalog', url, '--listen', '127.0.0.1:0');
	assert.notEqual(alone.status, 0);
	assert.match(alone.stderr, /another server uses this catalogue/);
	for (let i = 0; i < 40; i++) {
		const answer = await upload(i % 2 ? a : b, sampleTrace(10 + i), `k${i}`);
		assert.ok(answer.status === 202 || answer.status === 200, answer.text);
	}
	await until(async () => ((await counted(a)) === 40 ? true : undefined), 'all counted', 120);
	assert.equal(await counted(b), 40);
	assert.equal((await b.get('/api/v1/traces', { query: { state: 'ready' } })).json.total, 40);
	assert.equal(db.sql('SELECT count(*) FROM job', 'two'), '0');
	for (const s of [a, b]) assert.match(s.log, /event=decoded /, 'both decode');
	const done = [...(a.log + b.log).matchAll(/event=decoded trace=(\w+) outcome=ready/g)].map((m) => m[1]);
	assert.equal(done.length, 40, 'what the dead one had and all else once');
	assert.equal(new Set(done).size, 40);
	const { json } = await a.get('/api/v1/traces', { query: { limit: 40 } });
	for (const trace of json.traces) assert.ok((await b.flameLines(trace.id, 4000)).length > 0);
	assert.equal(run('check', '--data', data).status, 0);

	assert.equal((await upload(a, sampleTrace(60), 'last')).status, 202);
	await until(async () => ((await counted(a)) >= 41 ? true : undefined), 'the last one counted', 120);
	assert.equal(await counted(a), 41, 'none was counted twice');
});

test('a server that stood still for longer than its lease lost its work, and writes nothing of it', { skip, timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const data = folder(t);
	const url = db.url('still');
	const still = await serve(t, data, url, {}, several);
	const stood = new Promise((done) => {
		const receive = (text) => {
			if (!text.includes('event=decoding')) return;
			still.child.kill('SIGSTOP');
			still.child.stderr.off('data', receive);
			done();
		};
		still.child.stderr.on('data', receive);
	});
	/* It must not end the job before the signal, however late this process reads the log. */
	db.sql("CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN OLD; END $$", 'still');
	db.sql('CREATE TRIGGER hold BEFORE DELETE ON job FOR EACH ROW EXECUTE FUNCTION hold()', 'still');
	const answered = upload(still, sampleTrace(200000), 'large'); // perhaps when it goes on
	await stood;
	db.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'DELETE FROM job%' AND state='active'");
	db.sql('DROP TRIGGER hold ON job', 'still');
	assert.equal(db.sql('SELECT claimed FROM job', 'still'), '1');
	const id = db.sql('SELECT trace_id FROM job', 'still');
	overdue(db, 'still');
	const other = await serve(t, data, url, {}, several);
	await until(async () => ((await other.get(`/api/v1/traces/${id}`)).json?.state === 'ready' ? true : undefined), 'taken over', 60);
	still.child.kill('SIGCONT');
	await until(() => (/event=claim_lost/.test(still.log) ? true : undefined), 'informed that it lost it');
	assert.doesNotMatch(still.log, /outcome=ready/);
	assert.equal((await answered).json.id, id);
	assert.equal(run('check', '--data', data).status, 0, 'the file is the one that the row tells');
	assert.equal((await still.trace(sampleTrace(7), { headers: { 'Idempotency-Key': 'small' } })).state, 'ready', 'and it goes on');
});

test('its server is restarted under load: accepted uploads exist, and everything continues by itself', { skip, timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const s = await serve(t, folder(t), db.url('restarted'));
	const kept = new Map();
	let going = true;
	const refused = new Set();
	const sender = async (of) => {
		for (let i = 0; going; i++) {
			const key = `${of}-${i}`;
			const answer = await upload(s, sampleTrace(5 + (i % 20), 4000), key).catch(() => null);
			if (answer?.status === 202 || answer?.status === 200) kept.set(key, answer.json.id);
			else if (answer) {
				refused.add(answer.status);
				await sleep(50);
			}
		}
	};
	void s.ingest, s.read;
	const senders = [0, 1, 2].map(sender);
	for (const signal of ['SIGINT', 'SIGQUIT']) {
		const before = kept.size;
		await until(() => (kept.size > before + 20 ? true : undefined), 'uploads before');
		await db.stop(signal);
		for (const target of ['/readyz', '/readyz?for=read']) await until(async () => ((await s.get(target, { key: null })).status === 503 ? true : undefined), `${target} red while it is away`);
		await db.start();
		await until(async () => ((await s.get('/readyz', { key: null })).status === 200 ? true : undefined), 'ready again');
	}
	const before = kept.size;
	await until(() => (kept.size > before + 20 ? true : undefined), 'uploads after');
	going = false;
	await Promise.all(senders);
	assert.deepEqual([...refused].filter((status) => status !== 503), [], 'the only refusal is a request to retry');
	await until(async () => ((await s.get('/api/v1/traces', { query: { state: 'ready' } })).json?.total >= kept.size ? true : undefined), 'all decoded', 120);
	for (const id of [...kept.values()].slice(0, 50)) assert.equal((await s.get(`/api/v1/traces/${id}`)).json.state, 'ready');
	const total = (await s.get('/api/v1/traces')).json.total;
	await until(async () => ((await counted(s)) === total ? true : undefined), 'all counted', 120);
	assert.equal(new Set(kept.values()).size, kept.size);
});
