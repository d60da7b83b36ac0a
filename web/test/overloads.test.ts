import assert from 'node:assert/strict';
import { test } from 'node:test';
import { distinct, distinctions, distinctName, signature, signatureOf, withOverloads } from '../src/api/overloads';

test('a descriptor as in Java', () => {
	assert.equal(signature('(Ljava/lang/String;[[IJ)V'), '(java.lang.String, int[][], long): void');
	assert.equal(signature('([Ljava/util/Map$Entry;)Lx/Y;'), '(java.util.Map$Entry[]): x.Y');
	assert.equal(signature('()Z'), '(): boolean');
	for (const none of ['', 'x', '(:12', ':12']) assert.equal(signature(none), '');
});

test('methods of one name are distinguished by as little as suffices', () => {
	const rows: [string, string][] = [
		['a.P.parse', '(Ljava/lang/String;)V'], ['a.P.one', '(I)V'], ['a.P.parse', '()V'],
		['a.P.get', '()Ljava/lang/Object;'], ['a.P.get', '()Ljava/lang/String;'], // a bridge
		['a.P.put', '(Lx/A;)V'], ['a.P.put', '(Ly/A;)V'],
		['a.P.same', '(I)V'], ['a.P.same', '(I)V'],
		['a.P.half', ''], ['a.P.half', '(J)V'],
	];
	const found = distinctions(rows.map((r) => r[0]), rows.map((r) => r[1]));
	assert.deepEqual(rows.map((_, i) => found.get(i)), ['(String)', undefined, '()', '(): Object', '(): String', '(x.A)', '(y.A)', undefined, undefined, undefined, '(long)']);
});

test('answers about the open trace name overloads, those about others do not', () => {
	assert.deepEqual(distinct('t', ['a.P.parse', 'a.P.parse', 'a.P.one'], ['(I)V', '()V', '(J)I']), ['a.P.parse(int)', 'a.P.parse()', 'a.P.one']);
	assert.equal(distinctName('t', 1, 'a.P.parse'), 'a.P.parse()');
	assert.equal(distinctName('t', -1, 'all threads'), 'all threads');
	assert.equal(distinctName('u', 1, 'a.P.parse'), 'a.P.parse');
	assert.equal(signatureOf('t', 2), '(long): int');
	assert.equal(signatureOf('u', 2), '');
});

test('rows of an answer have names of their own', () => {
	const rows = [{ name: 'a.P.parse', descriptor: '(I)V', n: 1 }, { name: 'a.P.parse', descriptor: '(J)V', n: 2 }, { name: 'a.P.one', descriptor: '(J)V', n: 3 }];
	assert.deepEqual(withOverloads(rows).map((r) => `${r.name} ${r.n}`), ['a.P.parse(int) 1', 'a.P.parse(long) 2', 'a.P.one 3']);
	assert.deepEqual(withOverloads(rows.slice(1)), rows.slice(1));
});
