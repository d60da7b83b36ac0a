/*
 * statements.test.mjs - how much PostgreSQL does: statements and transactions per trace from upload to counted, and
 * updates of its row that change no index.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';

import { sampleTrace } from '../make.mjs';
import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { Server, newFolder, until } from '../server.mjs';

const skip = !postgresIsThere && 'PostgreSQL 15 or later is not installed';
const options = { skip, timeout: 900000 };
const TRACES = 256;
const ONE = 'one'; // the schema

async function startDatabase(t) {
	const more = ['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.max=10000'].flatMap((setting) => ['-c', setting]);
	const db = await startPostgres(t, { more });
	db.sql('CREATE EXTENSION pg_stat_statements');
	return db;
}

const changes = (db) => Number(db.sql('SELECT txid_snapshot_xmax(txid_current_snapshot())'));
const statements = (db, of = 'true') => Number(db.sql(`SELECT coalesce(sum(calls),0) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_%' AND (${of})`));
const counted = 'SELECT count(*) FROM trace WHERE state=2 AND rollup_state=1 AND anr_state=1 AND named=1 AND detected>0';

/* Uploads wait until another server decodes: how many wait does not depend on the machine's speed. */
test('a trace takes at most 20 statements and 3 transactions, and few of its updates change an index', options, async (t) => {
	const db = await startDatabase(t);
	const data = path.join(newFolder(t, 'tw-statements-'), 'data');
	const args = ['--catalog', db.url(ONE), '--device-requests', '0', '--max-queue', '10000'];
	const ingest = new Server(data, [...args, '--several-servers', '--role', 'ingest,query']);
	t.after(() => ingest.stop());
	await ingest.start();
	ingest.ingestKey = ingest.ingest;
	db.sql('SELECT pg_stat_statements_reset()');
	const before = changes(db);
	for (let n = 0; n < TRACES; n++) {
		const answer = await ingest.post('/api/v1/traces', sampleTrace(15, n + 1), { query: { app: 'shop', build_id: 'b', version_name: '1', device: `d${n}` }, headers: { 'Idempotency-Key': `k${n}` } });
		assert.equal(answer.status, 202, answer.text);
	}
	await ingest.stop();
	const rest = new Server(data, args);
	t.after(() => rest.stop());
	await rest.start();
	await until(() => (db.sql(counted, ONE) === String(TRACES) ? true : undefined), 'all are counted', 600);
	await rest.stop(); // its sessions report their rows
	const [all, written] = [(statements(db) - statements(db, "query LIKE '%count(*) FROM trace WHERE state=$%'")) / TRACES, (changes(db) - before) / TRACES];
	t.diagnostic(`${all.toFixed(2)} statements and ${written.toFixed(2)} transactions that write, per trace`);
	assert.ok(all <= 20, `${all} statements per trace`);
	assert.ok(written <= 3, `${written} transactions per trace`);
	const [updates, hot] = db.sql("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname='one' AND relname='trace'").split('|').map(Number);
	t.diagnostic(`${(updates / TRACES).toFixed(2)} updates of a trace's row, of which ${(hot / TRACES).toFixed(2)} change no index`);
	assert.ok(updates <= 6 * TRACES, `${updates} updates`);
	assert.ok(updates - hot <= 2.5 * TRACES, `${updates - hot} updates change indexes`);
});
