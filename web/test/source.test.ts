// Numbers of samples are never called calls.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Thread } from '../src/api/api';
import { headOf, many, mark, wordsOf } from '../src/api/source';

const thread = (source: Thread['source'], interval_ns = 0) => ({ source, interval_ns }) as Thread;

test('a thread says beside its name where its calls come from', () => {
	assert.equal(mark(thread('calls')), '');
	assert.equal(mark(thread('samples', 20_000_000)), 'samples, every 20.0 ms');
	assert.equal(mark(thread('samples')), 'samples');
	assert.equal(mark(thread('counts')), 'counts, no times');
});

test('words of one thread and of several', () => {
	assert.equal(many(1, wordsOf([thread('calls')])), '1 call');
	assert.equal(many(2, wordsOf([thread('calls'), thread('calls')])), '2 calls');
	assert.equal(many(2, wordsOf([thread('samples')])), '2 sample runs');
	assert.equal(many(2, wordsOf([thread('calls'), thread('samples')])), '2 calls and samples');
	assert.equal(wordsOf([thread('samples')]).head, 'Samples');
	assert.notEqual(wordsOf([thread('counts')]).hint, '');
	assert.equal(wordsOf([]).head, 'Calls');
});

test('the number of a trace is called calls only where each was seen', () => {
	assert.equal(headOf('btrace2'), 'Calls');
	for (const format of ['btrace3', 'profilo', 'art', 'anr', 'sentry', 'matrix', 'java_samples', 'perfetto', 'one that is new'])
		assert.equal(headOf(format), 'Calls, samples');
});
