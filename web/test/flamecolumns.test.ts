import assert from 'node:assert/strict';
import { test } from 'node:test';
import { flameOf } from '../src/api/flamecolumns';

/** t { a { b, (3 smaller) }, c, (9 smaller) } */
test('parents and values follow from depths and self values', () => {
	assert.deepEqual(flameOf({
		names: ['t', 'a', 'b', '(other)', 'c'], methods: [-1, 5, 6, -1, 7], name: [0, 1, 2, 3, 4, 3], depth: [0, 1, 2, 2, 1, 1],
		self: [0, 60, 500, 40, 390, 10], count: [1, 1, 1, 3, 1, 9], other: [0, 0, 0, 3, 0, 9], total_nodes: 15, shown_nodes: 3, partial: false,
	}), {
		names: ['t', 'a', 'b', '(other)', 'c'], name: [0, 1, 2, 3, 4, 3], parent: [0, 0, 1, 1, 0, 0], value: [1000, 600, 500, 40, 390, 10],
		self: [0, 60, 500, 40, 390, 10], count: [1, 1, 1, 3, 1, 9], method: [-1, 5, 6, -1, 7, -1], other: [0, 0, 0, 3, 0, 9],
		total_nodes: 15, shown_nodes: 3, partial: false,
	});
});
