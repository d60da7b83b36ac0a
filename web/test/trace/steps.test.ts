import assert from 'node:assert/strict';
import { test } from 'node:test';
import { added, describe, format, made, packageOf, parse, without, type Step } from '../../src/trace/state/steps';

test('steps are read and written alike', () => {
	const text = 'app,focus:12,library:com.acme,recursion,drop:3,merge:4';
	assert.equal(format(parse(text)), text);
	assert.deepEqual(parse('focus:,focus:x,what,recursion:1,library:,app'), [{ kind: 'app' }]);
	assert.deepEqual(parse(''), []);
	assert.equal(parse(Array(40).fill('drop:1').join(',')).length, 32);
});

test('one more step', () => {
	const steps = parse('drop:3');
	assert.equal(format(added(steps, { kind: 'drop', method: 3 })), 'drop:3');
	assert.equal(format(added(steps, { kind: 'app' })), 'app,drop:3');
	assert.equal(format(added(steps, { kind: 'merge', method: 1 })), 'drop:3,merge:1');
});

test('frames that steps make go with what made them', () => {
	const steps = parse('drop:3,library:a.b,focus:10,drop:2');
	assert.deepEqual(made(steps), ['[a.b]']);
	assert.equal(format(without(steps, 1, 10)), 'drop:3,drop:2');
	assert.equal(format(without(steps, 0, 10)), 'library:a.b,focus:10,drop:2');
});

test('words and packages', () => {
	const name = (m: number) => `m${m}`;
	const words = (s: Step) => describe(s, name);
	assert.equal(words({ kind: 'drop', method: 3 }), 'without m3');
	assert.equal(words({ kind: 'library', name: 'a' }), 'a as one frame');
	assert.equal(packageOf('com.acme.app.Main.run'), 'com.acme.app');
	assert.equal(packageOf('com.acme.a.b'), 'com.acme');
	assert.equal(packageOf('nopackage'), '');
	assert.equal(packageOf('a.B.c(Ljava/lang/String;)V'), 'a');
});
