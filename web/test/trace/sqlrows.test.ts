// Which rows of an SQL result are calls, and what a saved query looks like.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Thread } from '../../src/api/api';
import { isDuration, placer, savedSql, sqlOf } from '../../src/trace/panels/sqlrows';

const threads = [{ thread_id: 0, tid: 4000 }, { thread_id: 1, tid: 4001 }] as Thread[];

test('a row with a time and a thread leads to its call', () => {
	const of = placer(['name', 'ts_ns', 'dur_ns', 'depth', 'thread_id'], threads)!;
	assert.deepEqual(of(['a', 5, 7, 2, 1]), { tid: 4001, start_ns: 5, dur_ns: 7, depth: 2 });
	assert.equal(of(['a', 5, 7, 2, 9]), null, 'a thread that does not exist');
	assert.equal(of(['a', null, 7, 2, 1]), null);
	assert.equal(of(['a', '5', 7, 2, 1]), null, 'a text is not a time');
});

test('without a depth a row is a time of its thread, without a thread nothing', () => {
	assert.deepEqual(placer(['ts_ns', 'tid'], threads)!([5, 4000]), { tid: 4000, start_ns: 5, dur_ns: 0, depth: null });
	assert.equal(placer(['ts_ns', 'dur_ns'], threads), null);
	assert.equal(placer(['tid', 'busy_ns'], threads), null);
});

test('times are durations but for the start', () => {
	assert.deepEqual(['dur_ns', 'busy_ns', 'ts_ns', 'count'].map(isDuration), [true, true, false, false]);
});

test('a saved query is read back as it was', () => {
	const sql = "SELECT name FROM slice WHERE name LIKE '%a&b=c+d%'\n-- ü";
	assert.equal(sqlOf(savedSql(sql)), sql);
	assert.equal(sqlOf('app=x&sort=name'), '');
});
