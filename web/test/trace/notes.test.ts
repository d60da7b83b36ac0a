import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Note } from '../../src/api/api';
import { columnsOf, factsOf, shortSignature } from '../../src/trace/panels/eventfacts';
import { around, counterValue, inOrder, kindsInOrder, kindTitle, within } from '../../src/trace/state/notekinds';

const note = (id: number, ts_ns: number, dur_ns: number | null): Note => ({ id, kind: 'gc', tid: 1, ts_ns, dur_ns, value: 0, text: '', detail: null });

test('kinds: what is looked for first, then the most', () => {
	assert.deepEqual(kindsInOrder({ state: 900, counter: 5, gc: 2, contention: 1, zebra: 900 }), ['contention', 'gc', 'state', 'zebra', 'counter']);
	assert.equal(kindTitle('contention'), 'Lock waits');
	assert.equal(kindTitle('some_new_kind'), 'some new kind');
});

test('longest first where they last, by time where they are moments', () => {
	assert.deepEqual(inOrder([note(1, 5, 10), note(2, 6, null), note(3, 7, 30), note(4, 1, 10)]).map((n) => n.id), [3, 4, 1, 2]);
	assert.deepEqual(inOrder([note(1, 5, null), note(2, 6, null)]).map((n) => n.id), [1, 2]);
});

test('what begins before the trace or ends after it is told as far as the trace has it', () => {
	assert.deepEqual(within(note(1, 50, 100), 100, 200), { ts_ns: 100, dur_ns: 50 });
	assert.deepEqual(within(note(1, 150, 100), 100, 200), { ts_ns: 150, dur_ns: 50 });
	assert.deepEqual(within(note(1, 150, null), 100, 200), { ts_ns: 150, dur_ns: null });
	assert.deepEqual(within(note(1, 10, 20), 100, 200), { ts_ns: 100, dur_ns: 0 });
});

test('a view around a note holds it whole and stays in the trace', () => {
	for (const n of [note(1, 0, 0), note(2, 5e9, 2e9), note(3, 9.9e9, null)]) {
		const [from, to] = around(n, 1e10);
		assert.ok(from >= 0 && from <= n.ts_ns && to >= n.ts_ns + (n.dur_ns ?? 0) && to <= 1e10 && to > from, `${from} ${to}`);
	}
});

test('late frames come before longer ones that were in time', () => {
	const frame = (id: number, dur_ns: number, outcome?: string): Note => ({ ...note(id, id, dur_ns), kind: 'frame', outcome });
	assert.deepEqual(inOrder([frame(1, 30, 'on_time'), frame(2, 10, 'late_app'), frame(3, 20, 'late_app'), frame(4, 90), frame(5, 25, 'late_other')]).map((n) => n.id), [3, 2, 5, 4, 1]);
});

test('states and values of counters come after other events', () => {
	const of = (id: number, kind: string, dur_ns: number | null): Note => ({ ...note(id, id, dur_ns), kind });
	const all = [of(1, 'counter', null), of(2, 'state', 900), of(3, 'instant', null), of(4, 'contention', 20), of(5, 'state', 950)];
	assert.deepEqual(inOrder(all).map((n) => n.id), [4, 3, 5, 2, 1]);
	assert.deepEqual(inOrder([all[0], all[2]]).map((n) => n.id), [3, 1], 'moments too');
});

test('a view around a note begins where the trace begins', () => {
	assert.equal(around(note(1, 5e9, 2e9), 1e10, 4.9e9)[0], 4.9e9);
});

test('a counter has the unit with which its name ends', () => {
	assert.deepEqual([counterValue('heap_kb', 13210), counterValue('Heap size (KB)', 1024), counterValue('mem.rss bytes', 512), counterValue('load percent', 40), counterValue('cpu_mhz', 1800), counterValue('fps', 60)],
		['12.9 MiB', '1 MiB', '512 B', '40 %', '1,800 mhz', '60 fps']);
	assert.deepEqual([counterValue('open files', 1234), counterValue('items', 3), counterValue('ratio', 11.25), counterValue('heap_kb', -5)], ['1,234', '3', '11.25', '-5']);
});

test('a signature in a table has no packages and no return type', () => {
	assert.equal(shortSignature('void com.acme.db.Store.put(java.lang.String, int)'), 'Store.put(String, int)');
	assert.equal(shortSignature('int a.B$C.<init>()'), 'B$C.<init>()');
	assert.equal(shortSignature('void com.acme.db.Store.put'), 'Store.put');
	assert.equal(shortSignature('com.acme.db.Store.put'), 'Store.put');
	assert.equal(shortSignature('no signature'), 'no signature');
	assert.equal(shortSignature('of com.acme.db.Store in all'), 'of com.acme.db.Store in all');
});

test('details: the important ones are columns, no other waiters and one process are none', () => {
	const named = (tid: number) => `t${tid}`;
	const wait = (detail: object, value = 7): Note => ({ ...note(1, 5, 10), kind: 'contention', value, detail: detail as Note['detail'] });
	const facts = factsOf(wait({ owner: 'disk (7)', owner_method: 'void a.B.put()', owner_source: 'B.java:5', waiters: 0, method: 'void a.B.get()', source: 'B.java:9', pid: 4, odd_one: 'x' }), named);
	assert.deepEqual(facts.map((f) => [f.label, f.text]), [['held by', 't7'], ['waits in', 'void a.B.get() B.java:9'], ['owner is in', 'void a.B.put() B.java:5'], ['odd one', 'x'], ['process', '4']]);
	assert.deepEqual(factsOf(wait({ waiters: 2 }, 0), named).map((f) => f.text), ['2']);
	const { columns, rest } = columnsOf([facts, facts], 3);
	assert.deepEqual(columns.map((c) => c.key), ['held_by', 'method', 'owner_method']);
	assert.deepEqual([...rest], ['odd_one']);
	const counter = factsOf({ ...note(1, 5, null), kind: 'counter', text: 'ratio', value: 11, detail: { exact: '11.25' } as unknown as Note['detail'] }, named);
	assert.deepEqual(counter.map((f) => [f.label, f.text]), [['value', '11.25']]);
	assert.deepEqual(columnsOf([counter], 3).columns, [{ key: 'value', label: 'value', number: true }]);
});

test('details with the names of members of objects are details', () => {
	const detail = JSON.parse('{"__proto__":"a","constructor":"b","toString":"c"}') as Note['detail'];
	assert.deepEqual(factsOf({ ...note(1, 5, null), detail }, String).map((f) => [f.label, f.text]), [['  proto  ', 'a'], ['constructor', 'b'], ['toString', 'c']]);
});
