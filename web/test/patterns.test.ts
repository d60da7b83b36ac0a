// Patterns of capture rules in the page's preview are those of the server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matches } from '../src/admin/patterns';

test('patterns match as fnmatch without escapes', () => {
	const yes = [['Pixel*', 'Pixel 8'], ['1[45]', '14'], ['8.3.*', '8.3.1'], ['8.?', '8.4'], ['[!a]b', 'cb'], ['a.b', 'a.b'], ['*', ''], ['a[b', 'a[b'], ['[a-c]x', 'bx'], ['C:\\x', 'C:\\x'], ['(a|b)', '(a|b)'], ['小米*', '小米 14']];
	const no = [['Pixel*', 'pixel 8'], ['1[45]', '16'], ['8.3.*', '8x3.1'], ['8.?', '8.'], ['[!a]b', 'ab'], ['a.b', 'axb'], ['(a|b)', 'a'], ['[z-a]', 'z'], ['', 'x']];
	for (const [p, v] of yes) assert.ok(matches(p, v), `${p} ${v}`);
	for (const [p, v] of no) assert.ok(!matches(p, v), `${p} ${v}`);
});
