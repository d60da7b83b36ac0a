import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NoteSum, Thread } from '../../src/api/api';
import { compared, noteRows, type Row } from '../../src/trace/panels/rangerows';
import { formatBase, parseBase } from '../../src/trace/state/base';
import { formatEvent, parseEvent } from '../../src/trace/state/event';
import { arranged, stemOf, toggled, type Arrangement } from '../../src/trace/state/threadlist';
import { layoutOf, Presence } from '../../src/trace/timeline/tracks';

const sum = (kind: string, tid: number | null, text: string, notes: number, dur_ns: number): NoteSum => ({ kind, tid, text, notes, dur_ns });
const row = (key: string, ns: number | null, n = 1): Row => ({ key, name: key, n, ns, more: '' });
const thread = (tid: number, name: string, more: Partial<Thread> = {}): Thread => ({ thread_id: tid, tid, pid: 1, name, is_main: false, slices: tid, roots: 1, max_depth: 5, start_ns: 100 - tid,
	end_ns: 100, busy_ns: 9, running_ns: tid % 7, activity: [0], source: 'calls', interval_ns: 0, ...more });
const plain: Arrangement = { find: '', sort: '', grouped: false, pinned: [], hidden: new Set() };
const order = (list: Thread[], a: Partial<Arrangement>, shown: number | null = null) => arranged(list, { ...plain, ...a }, shown).map((t) => t.tid);

test('a range that is kept goes into the address and back', () => {
	for (const text of ['0-5', '10-20:7', '10-20:7,8']) assert.equal(formatBase(parseBase(text)!), text);
	for (const text of ['', '5-5', '9-1', 'a-b', '1-2:', '1-2:x']) assert.equal(parseBase(text), null, text);
});

test('an event goes into the address and back', () => {
	for (const text of ['contention.7.1200', 'gc..5', 'frame..5.16']) assert.equal(formatEvent(parseEvent(text)!), text);
	for (const text of ['', 'gc', 'gc.5', 'GC..5', 'gc..x']) assert.equal(parseEvent(text), null, text);
});

test('sums of several threads are one line, longest first; states apart from events, counters in neither', () => {
	const sums = [sum('state', 1, 'running', 2, 50), sum('state', 2, 'running', 1, 30), sum('contention', 1, 'lock', 1, 9), sum('gc', null, '', 3, 20), sum('counter', 1, 'heap', 5, 0)];
	assert.deepEqual(noteRows(sums, true).map((r) => [r.name, r.n, r.ns]), [['running', 3, 80]]);
	assert.deepEqual(noteRows(sums, false).map((r) => [r.n, r.ns]), [[3, 20], [1, 9]]);
});

test('two ranges are compared by what changed most, with what only one of them has', () => {
	const pairs = compared([row('a', 10), row('b', 50), row('new', 5)], [row('a', 90), row('b', 50), row('gone', 30), row('counted', null, 4)]);
	assert.deepEqual(pairs.map((p) => [p.row.key, p.row.ns, p.base?.ns ?? null, p.change]), [['a', 10, 90, -80], ['gone', 0, 30, -30], ['new', 5, null, 5], ['counted', null, null, -4], ['b', 50, 50, 0]]);
});

test('threads are filtered, sorted, hidden and pinned', () => {
	const list = [thread(1, 'main'), thread(2, 'pool-1-thread-2'), thread(3, 'pool-1-thread-10'), thread(4, 'RenderThread'), thread(16, 'pool-2-thread-1')];
	assert.deepEqual(order(list, {}), [1, 2, 3, 4, 16]);
	assert.deepEqual(order(list, { find: 'POOL' }), [2, 3, 16]);
	assert.deepEqual(order(list, { find: '16' }), [16], 'by id, too');
	assert.deepEqual(order(list, { find: 'pool' }, 1), [1, 2, 3, 16], 'the one that is shown stays');
	assert.deepEqual(order(list, { sort: 'name' }), [1, 2, 3, 16, 4], 'numbers in names as numbers');
	assert.deepEqual(order(list, { sort: 'busy' }), [4, 3, 2, 16, 1]);
	assert.deepEqual(order(list, { sort: 'start' }), [16, 4, 3, 2, 1]);
	assert.deepEqual(order(list, { hidden: new Set([1, 4]) }), [2, 3, 16]);
	assert.deepEqual(order(list, { pinned: [4, 2], hidden: new Set([1]), sort: 'tid' }), [4, 2, 3, 16]);
	assert.equal(toggled([1, 2], 2), '1');
	assert.equal(toggled([], 3), '3');
});

test('threads with similar names are one group, which closes', () => {
	assert.equal(stemOf('pool-3-thread-12'), 'pool-#-thread-#');
	const list = arranged([thread(1, 'main'), thread(2, 'pool-1-thread-2'), thread(4, 'RenderThread'), thread(3, 'pool-1-thread-10'), thread(5, '')], { ...plain, grouped: true, pinned: [4] }, null);
	const heads = (closed: string[]) => layoutOf(list, new Map(), new Presence([]), false, new Set(closed)).groups.map((g) => g.process?.name ?? g.thread?.tid);
	assert.deepEqual(heads([]), [4, 1, 'pool-#-thread-#', 2, 3, 5]);
	assert.deepEqual(heads(['~pool-%23-thread-%23']), [4, 1, 'pool-#-thread-#', 5]);
});
