import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parsePlace, placeText } from '../../src/trace/graph/flamelayout';
import { strangeValues } from '../../src/trace/state/linkvalues';
import { fitting, parse } from '../../src/trace/state/steps';

const known = { tids: [1, 22], methods: 10, hasCpu: false, columns: ['count', 'self', 'p95'], tabs: ['flame', 'methods'] };
const strange = (query: string, of = known) => {
	const q = new URLSearchParams(query);
	return strangeValues((n) => q.get(n) ?? '', of).map((s) => s.name);
};

test('a link whose values are all understood says nothing', () => {
	assert.deepEqual(strange(''), []);
	assert.deepEqual(strange('view=sandwich&method=9&metric=count&as=tree&threads=sel&sel=1,22&thread=22&open=1.4f,22&from=0&to=9&a=1&b=2&root=1.2&skip=3'
		+ '&sort=p95_ns&order=asc&cols=count,self&rows=100&counters=all&idle=1&tables=children,callers&more=notes:60,children:200&tops=graph:120&y=300&callers=4.5%2B20&callees=%2B7'), []);
	assert.deepEqual(strange('open=none&cols=none&sort=name&metric=cpu', { ...known, hasCpu: true }), []);
});

test('each value that is not understood is named, with what is shown instead', () => {
	const bad = { view: 'up', metric: 'cpu', as: 'cake', threads: 'some', thread: '3', sel: '1,3', open: '3f', from: 'x', b: '-1', root: '1..2', skip: 'x', method: '10',
		sort: 'colour', order: 'up', cols: 'count,colour', rows: 'x', counters: 'some', idle: 'yes', y: 'low', more: 'notes', tops: 'graph:x', callers: 'x', callees: '+' };
	for (const [name, value] of Object.entries(bad)) assert.deepEqual(strange(`${name}=${encodeURIComponent(value)}`), [name], name);
	assert.deepEqual(strange(new URLSearchParams(bad).toString()).sort(), Object.keys(bad).sort());
	assert.ok(strangeValues((n) => (n === 'view' ? 'x' : ''), known)[0].instead.length > 3);
});

test('a place is told by its path and what is left out', () => {
	for (const text of ['', '4', '4.5+20', '+7']) assert.equal(placeText(parsePlace(text)!), text);
	for (const text of ['x', '1.', '.1', '+', '1+', '1+x']) assert.equal(parsePlace(text), null, text);
});

test('steps on methods that are not there are left out', () => {
	assert.deepEqual(fitting(parse('focus:9,focus:10,drop:11'), 10), parse('focus:9'));
	assert.deepEqual(fitting(parse('library:a.b,focus:10,drop:11'), 10), parse('library:a.b,focus:10'), 'but a library is one more');
});
