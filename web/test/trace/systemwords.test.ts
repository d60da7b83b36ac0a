// What the report says of the device's own trace.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { System } from '../../src/api/api';
import { systemWords } from '../../src/trace/panels/systemwords';

const joined: System = { joined: true, reason: null, clock: 'monotonic', offset_ns: 5_000_000_000, residual_ns: 147, steps: 1, packets: 378, damages: 0, cut: false };

test('a device\'s trace that is joined, by which clock and how far', () => {
	const words = systemWords(joined);
	assert.match(words, /in Perfetto files, placed by MONOTONIC, moved by 5\D?000\D?000\D?000 ns/);
	assert.ok(!words.includes('stretches'));
	assert.match(systemWords({ ...joined, steps: 3 }), /3 ranges/);
	assert.match(systemWords({ ...joined, cut: true, damages: 2 }), /\(damaged in 2 places, the end is missing\)/);
});

test('one that shares no clock, and one that is left out', () => {
	assert.match(systemWords({ ...joined, clock: 'start' }), /no common clock.*both start at the same time/);
	const words = systemWords({ joined: false, reason: 'it is not a Perfetto trace, or empty', packets: 0, damages: 0, cut: false });
	assert.match(words, /omitted from Perfetto files: it is not a Perfetto trace, or empty\./);
});
