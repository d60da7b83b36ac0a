// Files of one drop: traces, what belongs to them, and the build that a mapping names.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildOf, kindOf, planOf } from '../src/list/uploadplan';

const MAPPING = '1,0,com.acme.App.start ()V\n';
const OTHER = '1,0,com.acme.Other.start ()V\n';
const R8 = '# pg_map_id: abc123\ncom.acme.App -> a.a:\n';
const drop = (...files: [name: string, head?: string, folder?: string][]) => files.map(([name, head = '', folder = '']) => ({ file: new File([head], name), folder, head }));
const plan = (files: ReturnType<typeof drop>, known = '') => planOf(files, known).map((p) => [p.file.name, p.kind, p.build, p.sides.map(([part, f]) => `${part}=${f.name}`).join(' '), p.alone]);

test('a mapping is known by its text, what belongs to a trace by its name', () => {
	assert.deepEqual(['methodMapping.txt.zst', 'mapping.txt', 'threads (1).txt', 'binder.txt', 'rhea-atrace.gz', 'system.perfetto-trace', 'rhea-atrace.bin.zst', 'cold start.perfetto-trace'].map((n) => kindOf(n, '\x00')),
		['methods', 'retrace', 'threads', 'binder', 'atrace', 'system', 'trace', 'trace']);
	assert.deepEqual([kindOf('names.txt', MAPPING), kindOf('names.txt', R8)], ['methods', 'retrace']);
});

test('a recording with its side files and its mapping is one trace of one build', () => {
	assert.deepEqual(plan(drop(['rhea-atrace.bin'], ['threads.txt'], ['binder.txt'], ['system.perfetto-trace'], ['methodMapping.txt', MAPPING], ['mapping.txt', R8])), [
		['rhea-atrace.bin', 'trace', buildOf(MAPPING), 'threads=threads.txt binder=binder.txt system=system.perfetto-trace', false],
		['methodMapping.txt', 'methods', buildOf(MAPPING), '', false], ['mapping.txt', 'retrace', buildOf(MAPPING), '', false]]);
	assert.deepEqual(plan(drop(['a.bin'], ['mapping.txt', R8])).map((p) => p[2]), ['abc123', 'abc123']);
	assert.deepEqual(plan(drop(['a.bin'], ['mapping.txt', R8]), 'B7').map((p) => p[2]), ['B7', 'B7']);
});

test('recordings of several folders have the mapping of their folder', () => {
	const two = drop(['a.bin', '', '/one/'], ['methodMapping.txt', MAPPING, '/one/'], ['threads.txt', '', '/one/'], ['b.bin', '', '/two/'], ['methodMapping.txt', OTHER, '/two/']);
	assert.deepEqual(plan(two).map((p) => [p[0], p[2], p[3]]), [['a.bin', buildOf(MAPPING), 'threads=threads.txt'], ['methodMapping.txt', buildOf(MAPPING), ''], ['b.bin', buildOf(OTHER), ''], ['methodMapping.txt', buildOf(OTHER), '']]);
	assert.deepEqual(plan(drop(['a.bin', '', '/rec/'], ['methodMapping.txt', MAPPING, '/'])).map((p) => p[2]), [buildOf(MAPPING), buildOf(MAPPING)], 'one mapping is clear wherever it lies');
});

test('several mappings in one place name nothing', () => {
	assert.deepEqual(plan(drop(['a.bin'], ['one.txt', MAPPING], ['two.txt', OTHER])).map((p) => p[2]), ['', '', '']);
	assert.deepEqual(plan(drop(['a.bin'], ['one.txt', MAPPING], ['two.txt', OTHER]), 'B7').map((p) => p[2]), ['B7', '', ''], 'nor a build that was given');
});

test('a side file without one trace to belong to is not sent; one that is a trace itself is', () => {
	assert.deepEqual(plan(drop(['threads.txt'], ['binder.txt'])).map((p) => p[4]), [true, true]);
	assert.deepEqual(plan(drop(['a.bin'], ['b.bin'], ['threads.txt'], ['system.perfetto-trace'])).map((p) => [p[1], p[3], p[4]]),
		[['trace', '', false], ['trace', '', false], ['trace', '', true], ['trace', '', false]]);
	assert.deepEqual(plan(drop(['system.perfetto-trace'])), [['system.perfetto-trace', 'trace', '', '', false]]);
});
