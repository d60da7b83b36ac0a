import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isolated } from '../src/i18n/format';
import { fit, fitMethod } from '../src/ui/label';

const g = { measureText: (s: string) => ({ width: s.length }) } as unknown as CanvasRenderingContext2D; // one a character

test('a method keeps its name where the box is narrow', () => {
	const at = (name: string, room: number) => fitMethod(g, name, room);
	assert.equal(at('FileParser.parseFiles', 21), 'FileParser.parseFiles');
	assert.equal(at('FileParser.parseFiles', 20), '…parseFiles');
	assert.equal(at('FileParser.parseFiles', 11), '…parseFiles');
	assert.equal(at('FileParser.parseFiles', 10), 'parseFiles');
	assert.equal(at('FileParser.parseFiles', 4), 'par…');
	assert.equal(at('FileParser.parseFiles', 3), '');
	assert.equal(at('Parser.of(java.lang.String)', 20), 'Parser.of', 'what it takes goes first');
	assert.equal(at('Parser.of(java.lang.String)', 8), '…of');
	assert.equal(at('Attr.attribute', 8), 'attribu…', 'what does not fit whole is read from its begin');
	assert.equal(at('art::Thread::Run(void*)', 12), '…Run');
	assert.equal(at('Choreographer#doFrame 4711', 12), '…doFrame');
	assert.equal(at('a.b\u202ecod', 40), 'a.b[U+202E]cod', 'it cannot reorder what stands around it');
	assert.equal(at('write page to disk', 8), 'write p…', 'a sentence is read from its begin');
	assert.equal(at('Lock of a.b: wait', 8), fit(g, 'Lock of a.b: wait', 8));
});

test('a character of several parts is not split', () => {
	assert.equal(fit(g, 'abc👩‍👧 done', 6), 'abc…');
	assert.equal(fit(g, 'abce\u0301f done', 5), 'abc…');
	assert.equal(fit(g, 'abce\u0301f done', 6), 'abce\u0301…');
	assert.equal(fit(g, 'abcdef done', 6), 'abcde…');
});

test('only a name with letters from right to left is isolated', () => {
	assert.equal(isolated('com.app.Feed'), 'com.app.Feed');
	assert.equal(isolated('写入 é'), '写入 é');
	for (const name of ['תטבי', 'تطبيق 2']) assert.equal(isolated(name), `\u2068${name}\u2069`);
});
