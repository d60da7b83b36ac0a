// What differs between two documents of detectors, and how they are written.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { differences, inOrder, written, type Doc, type RuleSum } from '../../src/trace/panels/findings';

const doc = (...rules: Doc['rules']): Doc => ({ rules, frames: { slow_ms: 16 } });
const rule = (id: string, more = {}) => ({ id, title: id.toUpperCase(), methods: ['a.B', 'c.D'], threshold_ms: 16, ...more });

test('what is written is the same document, with lists in one line', () => {
	const d = doc(rule('x', { message: 'a "quoted", [text]\n' }), rule('y', { methods: [] }));
	assert.deepEqual(JSON.parse(written(d)), d);
	assert.ok(written(d).includes('"methods": ["a.B", "c.D"]'));
	assert.deepEqual(Object.keys(JSON.parse(written({ ...d, version: 7 } as Doc))), ['rules', 'frames']);
});

test('rules that came, went, changed and moved', () => {
	const a = doc(rule('x'), rule('y'), rule('z'));
	assert.deepEqual(differences(a, a), []);
	assert.deepEqual(differences(a, doc(rule('x'), rule('y'))), [{ what: 'z', member: 'the rule', before: 'Z', after: '' }]);
	assert.deepEqual(differences(doc(rule('x')), doc(rule('x', { threshold_ms: 8, enabled: false }))),
		[{ what: 'x', member: 'threshold_ms', before: '16', after: '8' }, { what: 'x', member: 'enabled', before: '', after: 'false' }]);
	assert.deepEqual(differences(doc(rule('x')), doc(rule('x', { methods: ['c.D', 'e.F'] }))), [{ what: 'x', member: 'methods', before: 'a.B', after: 'e.F' }]);
	assert.deepEqual(differences(doc(rule('x')), doc(rule('x', { methods: ['c.D', 'a.B'] })))[0].member, 'methods, order');
	assert.deepEqual(differences(a, doc(rule('y'), rule('x'), rule('z'))), [{ what: 'rules', member: 'order', before: 'x, y, z', after: 'y, x, z' }]);
	assert.deepEqual(differences(a, { ...a, frames: { slow_ms: 32 } }), [{ what: 'frames', member: 'slow_ms', before: '16', after: '32' }]);
});

test('rules with most time over their threshold come first, those that rest are left out', () => {
	const sum = (id: string, found_ns: number, total_ns: number, enabled = true) => ({ id, found_ns, total_ns, enabled }) as RuleSum;
	assert.deepEqual(inOrder([sum('a', 0, 9), sum('b', 5, 5), sum('c', 7, 7), sum('d', 9, 9, false), sum('e', 0, 9)]).map((r) => r.id), ['c', 'b', 'a', 'e']);
});
