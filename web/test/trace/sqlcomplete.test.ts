import assert from 'node:assert/strict';
import { test } from 'node:test';
import { completionOf } from '../../src/trace/panels/sqlcomplete';

const TABLES = ['slice(id, thread_id, dur_ns, name)', 'thread(thread_id, tid, name)'];
const at = (sql: string) => completionOf(sql.replace('|', ''), sql.indexOf('|'), TABLES);

test('tables after FROM and JOIN', () => {
	assert.deepEqual(at('SELECT * FROM s|'), { from: 14, names: ['slice'] });
	assert.deepEqual(at('SELECT * FROM slice JOIN t|')?.names, ['thread']);
	assert.equal(at('SELECT * FROM |'), null, 'nothing was typed');
});

test('columns, those of the tables in use first', () => {
	assert.deepEqual(at('SELECT d| FROM slice')?.names, ['dur_ns']);
	assert.deepEqual(at('SELECT t| FROM thread')?.names, ['thread_id', 'tid', 'thread']);
	assert.deepEqual(at('select T|')?.names, ['thread', 'thread_id', 'tid']);
});

test('the columns of a table or its alias after a dot', () => {
	assert.deepEqual(at('SELECT s.| FROM slice s')?.names, ['id', 'thread_id', 'dur_ns', 'name']);
	assert.deepEqual(at('SELECT t.t| FROM slice s JOIN thread AS t')?.names, ['thread_id', 'tid']);
	assert.equal(at('SELECT x.| FROM slice'), null);
});

test('nothing where a new name follows', () => {
	for (const sql of ['SELECT count(*) AS n| FROM slice', 'SELECT tid as t| FROM thread', 'SELECT max(dur_ns) d| FROM slice', 'SELECT * FROM slice s|', 'SELECT * FROM slice s JOIN thread t|', 'SELECT * FROM slice, thread\n t|', 'SELECT * FROM (SELECT 1) s|'])
		assert.equal(at(sql), null, sql);
	assert.deepEqual(at('SELECT * FROM slice WHERE d|')?.names, ['dur_ns']);
	assert.deepEqual(at('SELECT * FROM slice AS s JOIN thread USING (t|')?.names, ['thread_id', 'tid', 'thread']);
});

test('a key after a long word costs no more than one after a short word', () => {
	const began = process.cpuUsage();
	assert.deepEqual(at(`SELECT ${'a'.repeat(60_000)} d| FROM slice`)?.names, ['dur_ns']);
	const { user } = process.cpuUsage(began);
	assert.ok(user < 1_000_000, `${user / 1e6} s`);
});

test('nothing in a text, in a number, in the middle of a word, or for a complete name', () => {
	assert.equal(at("SELECT 'd|' FROM slice"), null);
	assert.equal(at('SELECT 1|'), null);
	assert.equal(at('SELECT d|ur FROM slice'), null);
	assert.equal(at('SELECT dur_ns| FROM slice'), null);
});
