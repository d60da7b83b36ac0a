import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Note } from '../src/api/api';
import { around, inOrder, kindsInOrder, kindTitle, within } from '../src/trace/state/notekinds';

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
	const frame = (id: number, dur_ns: number, jank: string): Note => ({ ...note(id, id, dur_ns), kind: 'frame', detail: { jank } });
	assert.deepEqual(inOrder([frame(1, 30, 'none'), frame(2, 10, 'app deadline missed'), frame(3, 20, 'app deadline missed')]).map((n) => n.id), [3, 2, 1]);
});

test('a view around a note begins where the trace begins', () => {
	assert.equal(around(note(1, 5e9, 2e9), 1e10, 4.9e9)[0], 4.9e9);
});
