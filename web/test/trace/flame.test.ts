import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Flame } from '../../src/api/api';
import { above, boxAt, boxesOf, childrenOf, narrow, pathOf, placeOf, walk } from '../../src/trace/graph/flamelayout';
import { matching } from '../../src/ui/matching';

/** t { a { b, (3 smaller) }, c, (9 smaller) } */
const f: Flame = {
	names: ['t', 'a', 'b', 'c', '(other)'], name: [0, 1, 2, 4, 3, 4], parent: [0, 0, 1, 1, 0, 0],
	value: [1000, 600, 500, 40, 390, 10], self: [0, 60, 500, 40, 390, 10], count: [1, 1, 1, 3, 1, 9],
	method: [-1, 5, 6, -1, 7, -1], other: [0, 0, 0, 3, 0, 9], total_nodes: 15, shown_nodes: 3, partial: false,
};

test('boxes lie under their parents', () => {
	const b = boxesOf(f);
	assert.deepEqual([...b.x0].map((x) => Math.round(x * 1000)), [0, 0, 0, 500, 600, 990]);
	assert.equal(b.rows, 3);
	assert.equal(boxAt(b, 1, 0.7), 4);
	assert.equal(boxAt(b, 2, 0.52), 3);
	assert.equal(boxAt(b, 2, 0.56), -1);
	assert.equal(boxAt(b, 9, 0.5), -1);
	assert.deepEqual(pathOf(f, 2), [5, 6]);
});

test('a node opens below where its graph was asked for', () => {
	assert.deepEqual(placeOf(f, { path: [], skip: 0 }, 2), { path: [5, 6], skip: 0 });
	assert.deepEqual(placeOf(f, { path: [1, 2], skip: 0 }, 4), { path: [1, 2, 7], skip: 0 });
	assert.deepEqual(placeOf(f, { path: [1], skip: 40 }, 1), { path: [1, 5], skip: 0 }, 'out of a rest');
});

test('a rest opens as its parent without what is shown, again and again', () => {
	assert.deepEqual(placeOf(f, { path: [], skip: 0 }, 5), { path: [], skip: 2 });
	assert.deepEqual(placeOf(f, { path: [1], skip: 2 }, 5), { path: [1], skip: 4 });
	assert.deepEqual(placeOf(f, { path: [1], skip: 2 }, 3), { path: [1, 5], skip: 1 }, 'of a node further down');
	assert.deepEqual(above({ path: [1, 5], skip: 3 }), { path: [1, 5], skip: 0 });
	assert.deepEqual(above({ path: [1, 5], skip: 0 }), { path: [1], skip: 0 });
	assert.deepEqual(above({ path: [], skip: 0 }), { path: [], skip: 0 });
});

test('what is narrower than a pixel can be asked for', () => {
	assert.deepEqual(narrow(f, { path: [5], skip: 1 }, 1000), { place: { path: [5], skip: 3 }, nodes: 9 });
	assert.deepEqual(narrow(f, { path: [], skip: 0 }, 2), { place: { path: [], skip: 1 }, nodes: 10 });
	assert.equal(narrow(f, { path: [], skip: 0 }, 0), null, 'nothing would be left out');
	const whole = { ...f, other: [0, 0, 0, 0, 0, 0] };
	assert.equal(narrow(whole, { path: [], skip: 0 }, 1000), null);
});

test('the arrows walk to parent, child and siblings', () => {
	const b = boxesOf(f);
	const go = (from: number, ...keys: string[]) => keys.reduce((n, k) => walk(f, b, n, k), from);
	assert.equal(go(0, 'ArrowDown'), 1);
	assert.equal(go(0, 'ArrowDown', 'ArrowRight'), 4);
	assert.equal(go(0, 'ArrowDown', 'ArrowRight', 'ArrowRight'), 5);
	assert.equal(go(5, 'ArrowRight'), 5, 'the last');
	assert.equal(go(1, 'ArrowLeft'), 1, 'the first');
	assert.equal(go(4, 'ArrowDown'), 4, 'a leaf');
	assert.equal(go(3, 'ArrowRight'), 3, 'not to a cousin');
	assert.equal(go(2, 'ArrowUp', 'ArrowUp'), 0);
	assert.equal(go(0, 'ArrowUp'), 0);
	assert.equal(go(3, 'Home'), 0);
	assert.deepEqual(childrenOf(f), [1, 4, 5]);
});

test('names are matched as text, or as an expression between slashes', () => {
	const names = ['a.b.C.run', 'a.b.C$1.Run', 'x[0]'];
	const of = (find: string) => matching(names, find) && [...matching(names, find)!];
	assert.equal(of(''), null);
	assert.deepEqual(of('RUN'), [1, 1, 0]);
	assert.deepEqual(of('C.'), [1, 0, 0], 'a dot is a dot');
	assert.deepEqual(of('[0]'), [0, 0, 1]);
	assert.deepEqual(of('/c.*run$/'), [1, 1, 0]);
	assert.deepEqual(of('/C\\.run/'), [1, 0, 0]);
	assert.equal(of('/(/'), null, 'no expression');
	assert.deepEqual(of('/'), [0, 0, 0]);
});

test('a time that was rounded to nothing is shown as less than the unit', async () => {
	Object.assign(globalThis, { location: { pathname: '/', search: '' }, addEventListener: () => undefined });
	const { metricOf, numbers } = await import('../../src/trace/graph/graphparts');
	const { wordsOf } = await import('../../src/api/source');
	const words = wordsOf([]);
	const show = (unit: number | undefined, node: number) => numbers({ ...f, unit }, node, metricOf('wall', words), words).slice(0, 2).map((n) => n[1]);
	assert.deepEqual(show(10_000, 0), ['1.00 µs', '< 10.0 µs']);
	assert.deepEqual(show(10_000, 1), ['600 ns', '60 ns']);
	assert.deepEqual(show(1, 0), ['1.00 µs', '0']);
	assert.deepEqual(show(undefined, 0), ['1.00 µs', '0']);
});

test('of calls without times, widths are the numbers that were recorded', async () => {
	const { metricOf, numbers } = await import('../../src/trace/graph/graphparts');
	const { wordsOf } = await import('../../src/api/source');
	const of = (source: string, interval_ns: number, value: number) => {
		const words = wordsOf([{ source, interval_ns } as never]);
		return numbers({ ...f, value: [value, 0], self: [0, 0] }, 0, metricOf('cpu', words, false), words).slice(0, 2);
	};
	assert.deepEqual(of('counts', 0, 1_234_567), [['counted calls in total', '1,234,567'], ['self counted calls', '0']]);
	assert.deepEqual(of('samples', -1, 13_000_000), [['stacks in total', '13'], ['self stacks', '0']]);
});
