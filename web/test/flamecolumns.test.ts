import assert from 'node:assert/strict';
import { test } from 'node:test';
import { flameOf, type FlameColumns } from '../src/api/flamecolumns';

/** t { a { b, (3 smaller) }, c, (9 smaller) } */
const columns: FlameColumns = {
	names: ['(other)', 't', 'a', 'b', 'c'], methods: [-2, -1, 5, 6, 7], name: [1, 2, 3, 0, 4, 0], children: [3, 2, 0, 0, 0, 0], unit: 1,
	self: [0, 60, 500, 40, 390, 10], count: [1, 1, 1, 3, 1, 9], other: [3, 9], total_nodes: 15, shown_nodes: 3, partial: false,
};

test('parents and values follow from numbers of children and self values', () => {
	assert.deepEqual(flameOf(columns), {
		names: ['(other)', 't', 'a', 'b', 'c'], name: [1, 2, 3, 0, 4, 0], parent: [0, 0, 1, 1, 0, 0], value: [1000, 600, 500, 40, 390, 10], unit: 1,
		self: [0, 60, 500, 40, 390, 10], count: [1, 1, 1, 3, 1, 9], method: [-1, 5, 6, -2, 7, -2], other: [0, 0, 0, 3, 0, 9],
		total_nodes: 15, shown_nodes: 3, partial: false,
	});
});

test('rounded times are multiples of their unit', () => {
	const f = flameOf({ ...columns, unit: 10_000 });
	assert.deepEqual(f.self, [0, 600_000, 5_000_000, 400_000, 3_900_000, 100_000]);
	assert.deepEqual(f.value, [10_000_000, 6_000_000, 5_000_000, 400_000, 3_900_000, 100_000]);
	assert.deepEqual(f.count, columns.count);
});

test('a graph that is the rest of another one has a rest as its root', () => {
	const f = flameOf({ ...columns, names: ['(other)', 'a'], methods: [-2, 5], name: [0, 1], children: [1, 0], self: [0, 7], count: [2, 2], other: [4] });
	assert.deepEqual([f.parent, f.value, f.method, f.other], [[0, 0], [7, 7], [-2, 5], [4, 0]]);
});
