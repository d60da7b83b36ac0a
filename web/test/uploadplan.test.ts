// Files of one drop: traces, what belongs to them, and the build that a mapping names.
import assert from 'node:assert/strict';
import { File as NodeFile } from 'node:buffer'; // Node 18 has no global File
import { test } from 'node:test';
import { buildIdOf } from '../src/list/elf';
import { buildOf, kindOf, planOf } from '../src/list/uploadplan';

const MAPPING = '1,0,com.acme.App.start ()V\n';
const OTHER = '1,0,com.acme.Other.start ()V\n';
const R8 = '# pg_map_id: abc123\ncom.acme.App -> a.a:\n';
const drop = (...files: [name: string, head?: string, folder?: string][]) => files.map(([name, head = '', folder = '']) => ({ file: new NodeFile([head], name) as unknown as File, folder, head }));
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

test('libraries are sent by their build id, and take part in nothing else', () => {
	const files = [...drop(['a.bin'], ['methodMapping.txt', MAPPING]), { ...drop(['libshop.so'])[0], elfBuild: 'ab01' }, { ...drop(['libbare.so'])[0], elfBuild: '' }];
	assert.deepEqual(plan(files), [['libshop.so', 'symbols', 'elf:ab01', '', false], ['libbare.so', 'symbols', '', '', true],
		['a.bin', 'trace', buildOf(MAPPING), '', false], ['methodMapping.txt', 'methods', buildOf(MAPPING), '', false]]);
});

/** An ELF file of one segment of notes: another note, then the build id. */
function elf(wide: boolean, little: boolean, id: number[]): Uint8Array<ArrayBuffer> {
	const v = new DataView(new ArrayBuffer(256));
	const word = (at: number, n: number) => (wide ? v.setBigUint64(at, BigInt(n), little) : v.setUint32(at, n, little));
	const note = (at: number, type: number, bytes: number[]) => {
		[4, bytes.length, type].forEach((n, i) => v.setUint32(at + 4 * i, n, little));
		[0x47, 0x4e, 0x55, 0, ...bytes].forEach((b, i) => v.setUint8(at + 12 + i, b));
	};
	[0x7f, 0x45, 0x4c, 0x46, wide ? 2 : 1, little ? 1 : 2].forEach((b, i) => v.setUint8(i, b));
	word(wide ? 32 : 28, 72);
	v.setUint16(wide ? 54 : 42, wide ? 56 : 32, little);
	v.setUint16(wide ? 56 : 44, 1, little);
	v.setUint32(72, 4, little);
	word(72 + (wide ? 8 : 4), 144);
	word(72 + (wide ? 32 : 16), 18 + 2 + 16 + id.length);
	note(144, 1, [9, 9]);
	note(164, 3, id);
	return new Uint8Array(v.buffer);
}

test('the build id of an ELF file is read whatever its class and byte order', async () => {
	for (const wide of [true, false]) for (const little of [true, false])
		assert.equal(await buildIdOf(new Blob([elf(wide, little, [0xab, 0x01, 0xff, 0x7e])])), 'ab01ff7e', `${wide} ${little}`);
	const whole = elf(true, true, [0xab, 0x01, 0xff, 0x7e]);
	for (let n = 0; n <= whole.length; n++) assert.match(await buildIdOf(new Blob([whole.slice(0, n)])), /^(ab01ff7e)?$/);
	for (let i = 0; i < whole.length; i++) {
		const other = whole.slice();
		other[i] ^= 0xff;
		await buildIdOf(new Blob([other]));
	}
});
