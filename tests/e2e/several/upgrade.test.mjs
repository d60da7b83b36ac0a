/*
 * upgrade.test.mjs - upgrades by a program that has one migration more, tracewell-next: only its server migrates, and
 * only while no server of this version runs.  A catalogue whose schema or columns the program does not know is refused and left
 * unchanged.  The unit test catalogue_upgrade covers migrations.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { sampleTrace } from '../make.mjs';
import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { Server, atEnd, binary, makeData, newFolder, sqlite, tracewell, until } from '../server.mjs';

const next = path.join(path.dirname(binary()), '..', 'tests', 'tracewell-next');
const digest = (file) => crypto.createHash('sha256').update(fs.readFileSync(file)).digest('hex');

for (const [name, statement, words] of [
	['of a later version', 'PRAGMA user_version=999', /has schema 999, this program knows up to \d+: it was written by a newer tracewell/],
	['without a version', 'PRAGMA user_version=0', /no schema number: it is not a catalogue of tracewell/],
	['of another development version', 'ALTER TABLE alert_rule DROP COLUMN method', /lacks column method in table alert_rule: .* start with an empty data folder/],
])
	test(`a catalogue ${name} is refused and left unchanged`, async (t) => {
		const data = newFolder(t, 'tracewell-upgrade-');
		await makeData(data);
		const file = path.join(data, 'catalogue.db');
		tracewell('key', 'create', '--data', data, '--project', 'p', '--scope', 'read');
		sqlite(file, statement);
		const before = digest(file);
		for (const args of [['serve', '--data', data, '--listen', '127.0.0.1:0'], ['key', 'list', '--data', data, '--project', 'p']]) {
			const run = spawnSync(binary(), args, { encoding: 'utf8', timeout: 60_000 });
			assert.equal(run.status, 1, args[0]);
			assert.match(run.stdout + run.stderr, words);
		}
		assert.equal(digest(file), before);
		assert.deepEqual(fs.readdirSync(data).filter((n) => n.includes('schema-')), [], 'no copy');
	});

function refused(program, args, words) {
	const run = spawnSync(program, args, { encoding: 'utf8', timeout: 180_000 });
	assert.equal(run.status, 1, `${args.join(' ')}\n${run.stdout}${run.stderr}`);
	assert.match(run.stdout + run.stderr, words, args.join(' '));
}

async function start(t, program, data, args) {
	const s = new Server(data, args, {});
	s.program = program;
	atEnd(t, () => {
		s.child.kill('SIGCONT');
		return s.stop();
	});
	await s.start();
	return s;
}

async function works(s, ingest, read) {
	Object.assign(s, { ingestKey: ingest, readKey: read });
	assert.equal((await s.trace(sampleTrace(5))).state, 'ready');
}

const older = (data) => [
	['key', 'create', '--data', data, '--project', 'test', '--scope', 'read'],
	['key', 'list', '--data', data, '--project', 'test'],
	['check', '--data', data],
];
const MUST_START = /has schema \d+, this program needs \d+: start its server, which migrates the catalogue/;
const NEWER = /it was written by a newer tracewell/;

const catalogues = {
	'in the data folder': { version: (data) => sqlite(path.join(data, 'catalogue.db'), 'PRAGMA user_version'), inUse: /a server or backup uses this data folder/ },
	'in PostgreSQL': { skip: !postgresIsThere && 'PostgreSQL 15 or later is not installed', inUse: /stop all of them, then start this one/ },
};

for (const [name, { skip, version, inUse }] of Object.entries(catalogues))
	test(`a catalogue ${name}: commands of the next version change nothing, its server migrates once the old one has ended`, { skip, timeout: 900_000 }, async (t) => {
		const db = version ? null : await startPostgres(t);
		const data = path.join(newFolder(t, 'tracewell-upgrade-'), 'data');
		const args = ['--catalog', db ? db.url('one') : ''];
		const schema = () => Number(version ? version(data) : db.sql('SELECT version FROM catalogue_schema', 'one'));
		const old = await start(t, binary(), data, args);
		const keys = [old.ingest, old.read];
		const was = schema();

		for (const command of older(data)) refused(next, command, MUST_START);
		refused(next, ['serve', '--data', data, '--listen', '127.0.0.1:0', ...args], inUse);
		assert.equal(schema(), was);
		await works(old, ...keys);
		await old.stop();
		for (const command of older(data)) refused(next, command, MUST_START);
		assert.equal(schema(), was);

		const upgraded = await start(t, next, data, args);
		assert.equal(schema(), was + 1);
		await works(upgraded, ...keys);
		assert.equal(await upgraded.total(), 2);
		for (const command of older(data)) refused(binary(), command, NEWER);
		assert.equal(spawnSync(next, older(data)[1]).status, 0);
		await upgraded.stop();
		refused(binary(), ['serve', '--data', data, '--listen', '127.0.0.1:0', ...args], NEWER);
	});

/* The old server decodes a trace and publishes it while it stands still: when it continues, another must get the trace. */
test('several servers: a server with a claim that was disconnected during the migration does not renew it', { skip: catalogues['in PostgreSQL'].skip, timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const data = path.join(newFolder(t, 'tracewell-upgrade-'), 'data');
	const args = ['--catalog', db.url('one'), '--several-servers'];
	const old = await start(t, binary(), data, args);
	db.sql("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$; CREATE TRIGGER slow BEFORE UPDATE ON trace FOR EACH ROW WHEN (NEW.state=2 AND OLD.state<>2) EXECUTE FUNCTION slow()", 'one');
	old.ingestKey = old.ingest;
	const sent = await old.post('/api/v1/traces', sampleTrace(9));
	assert.equal(sent.status, 202, sent.text);
	await until(() => (db.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event='PgSleep'") === '1' ? true : undefined), 'it publishes the trace');
	old.child.kill('SIGSTOP');
	db.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type='client backend' AND pid<>pg_backend_pid()");
	await until(() => (db.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event='PgSleep'") === '0' ? true : undefined), 'its transaction has ended');
	db.sql("DROP TRIGGER slow ON trace; UPDATE job SET due_ms=due_ms+3600000", 'one');
	const claim = 'SELECT owner, due_ms FROM job', lead = 'SELECT coalesce(max(until_ms),0) FROM catalogue_lead WHERE owner=(SELECT owner FROM job)';
	const upgraded = await start(t, next, data, [...args, '--role', 'query']);
	const [was, led] = [db.sql(claim, 'one'), db.sql(lead, 'one')];
	old.child.kill('SIGCONT');
	await until(() => (/event=claims_not_renewed .*a newer version has migrated it/.test(old.log) ? true : undefined), 'it does not renew its claim');
	assert.equal(db.sql(claim, 'one'), was);
	assert.ok(Number(db.sql(lead, 'one')) <= Number(led), 'nor does it lead');
	db.sql('UPDATE job SET due_ms=0', 'one');
	const decodes = await start(t, next, data, [...args, '--role', 'decode']);
	await until(() => (/event=decoded .*outcome=ready/.test(decodes.log) ? true : undefined), 'another decodes it', 300);
	assert.equal(db.sql('SELECT state FROM trace', 'one'), '2');
	await upgraded.stop();
});

test('several servers: all must end before the next version migrates; a disconnected one writes nothing afterwards', { skip: catalogues['in PostgreSQL'].skip, timeout: 900_000 }, async (t) => {
	const db = await startPostgres(t);
	const data = path.join(newFolder(t, 'tracewell-upgrade-'), 'data');
	const args = ['--catalog', db.url('one'), '--several-servers'];
	const schema = () => Number(db.sql('SELECT version FROM catalogue_schema', 'one'));
	const ended = await start(t, binary(), data, args);
	const keys = [ended.ingest, ended.read];
	const stalled = await start(t, binary(), data, args);
	const was = schema();
	await works(stalled, ...keys);
	await ended.stop();
	refused(next, ['serve', '--data', data, '--listen', '127.0.0.1:0', ...args], catalogues['in PostgreSQL'].inUse);
	assert.equal(schema(), was);

	stalled.child.kill('SIGSTOP');
	db.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type='client backend' AND pid<>pg_backend_pid()");
	const upgraded = await start(t, next, data, args);
	assert.equal(schema(), was + 1);
	stalled.child.kill('SIGCONT');
	await until(async () => ((await stalled.get('/readyz', { key: null })).status === 503 ? true : undefined), 'the old server is not ready');
	const upload = await stalled.post('/api/v1/traces', sampleTrace(7));
	assert.equal(upload.status, 503, upload.text);
	await until(() => /a newer version has migrated it, stop this server/.test(stalled.log), 'its log has the reason');
	await works(upgraded, ...keys);
	assert.equal(await upgraded.total(), 2);
});
