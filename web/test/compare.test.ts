import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Trace, Comparison } from '../src/api/api';
import { change, colorOfLevel, comparisonOf, flameOf, levelOf, pathTo, relative, sidesOf, verdict } from '../src/compare/comparedoc';
import { boxesOf } from '../src/trace/graph/flamelayout';
import { apart, contrast, tokens, type Rgb } from './eyes';

const trace = (id: string, created_ms: number, version_name: string, state = 'ready') => ({ id, created_ms, state, meta: { version_name } }) as Trace;

test('two traces are two sides, the older first; more are those of two versions', () => {
	const [x, y, z] = [trace('x', 5, '2'), trace('y', 3, '1'), trace('z', 9, '2')];
	assert.deepEqual(sidesOf([x, y]), { a: ['y'], b: ['x'] });
	assert.deepEqual(sidesOf([z, x, y]), { a: ['y'], b: ['x', 'z'] });
	assert.equal(sidesOf([x]), null);
	assert.equal(sidesOf([x, y, z, trace('w', 1, '3')]), null, 'three versions');
	assert.equal(sidesOf([x, z, trace('v', 2, '2')]), null, 'one version');
	assert.deepEqual(sidesOf([x, y, trace('f', 1, '3', 'failed')]), { a: ['y'], b: ['x'] });
	assert.equal(sidesOf([y, ...Array.from({ length: 17 }, (_, i) => trace(`t${i}`, i + 10, '2'))]), null, '17 of one side');
});

/* A: top 100 = m 60 (gone) + n 40; B, two traces: top 220 = n 200 (self 180, new o 20) + rest 20. */
const c: Comparison = {
	a: [{}], b: [{}, {}], names: [{ method: 3, name: 'p.M.m', descriptor: '' }, { method: 4, name: 'p.N.n', descriptor: '' }, { method: 7, name: 'p.O.o', descriptor: '' }],
	parent: [0, 0, 0, 2, 0], method: [-1, 3, 4, 7, -1], other: [0, 0, 0, 0, 5],
	a_ns: [100, 60, 40, 0, 0], b_ns: [220, 0, 200, 20, 20], a_self_ns: [0, 60, 40, 0, 0], b_self_ns: [0, 0, 180, 20, 20],
	a_count: [0, 1, 2, 0, 0], b_count: [0, 0, 4, 2, 9], total_nodes: 8, shown_nodes: 3,
} as unknown as Comparison;

test('the graph has the nodes of the side that makes the widths', () => {
	const b = flameOf(c, 'b');
	assert.deepEqual([b.nodes, b.f.names, b.f.parent, b.f.other], [[0, 2, 3, 4], ['all calls', 'p.N.n', 'p.O.o', '(other)'], [0, 0, 1, 0], [0, 0, 0, 5]]);
	assert.equal(boxesOf(b.f).rows, 3);
	assert.deepEqual(flameOf(c, 'a').nodes, [0, 1, 2]);
	assert.deepEqual([pathTo(c, 3), pathTo(c, 4), pathTo(c, 0)], [[4, 7], [], []]);
});

test('changes are of one trace, small ones are none, what is new or gone is the strongest', () => {
	assert.deepEqual([[100, 100], [100, 100.9], [100, 104], [100, 120], [100, 160], [100, 400], [0, 5], [5, 0], [104, 100], [0, 0]].map(([a, b]) => levelOf({ a, b }, 100)),
		[0, 0, 1, 2, 3, 4, 4, -4, -1, 0]);
	assert.equal(verdict(c), 'B takes 10 ns more than A: 110 ns against 100 ns a trace (+10 %).');
	assert.equal(verdict({ ...c, b_ns: [201], a_ns: [100] } as Comparison), 'A and B take about the same time: 100 ns and 101 ns a trace.');
	assert.match(verdict({ ...c, b_ns: [0] } as Comparison), /^Only A has calls/);
	assert.deepEqual([relative({ a: 0, b: 3 }), relative({ a: 3, b: 0 }), relative({ a: 200, b: 197 }), relative({ a: 1, b: 30 }), relative({ a: 4, b: 4 })], ['new', 'removed', '−1.5 %', '+2,900 %', '±0 %']);
	assert.deepEqual([change({ a: 1e6, b: 3e6 }), change({ a: 3e6, b: 1e6 }), change({ a: 2, b: 2 })], ['+2.00 ms', '−2.00 ms', '±0']);
});

for (const dark of [false, true])
	test(`colours of changes can be read, and told apart by eyes of all kinds, ${dark ? 'dark' : 'light'}`, () => {
		const levels = [-4, -3, -2, -1, 0, 1, 2, 3, 4].map((l) => colorOfLevel(l, dark));
		for (const p of levels) {
			const ratio = contrast(tokens(dark)('--flame-ink'), [p & 255, (p >> 8) & 255, (p >> 16) & 255] as Rgb);
			assert.ok(ratio >= 4.5, `${p.toString(16)} has ${ratio.toFixed(2)}`);
		}
		for (const eye of ['usual', 'protan', 'deutan'] as const) {
			const far = apart(eye, levels[0], levels[8]);
			for (let i = 0; i < levels.length; i++)
				for (let k = 0; k < i; k++) {
					const d = apart(eye, levels[i], levels[k]);
					// less, grey and more are never alike; a step of the same side is seen
					assert.ok(d >= (i <= 4 === k <= 4 ? 0.012 : 0.02), `${eye}: ${k - 4} and ${i - 4} are ${d.toFixed(3)} apart`);
				}
			assert.ok(far >= 0.12, `${eye}: gone and new are ${far.toFixed(3)} apart`);
		}
	});

test('less and more have the hues of the graph in the table, too', () => {
	const style = readFileSync(new URL('../src/ui/tokens.css', import.meta.url), 'utf8');
	assert.equal([...style.matchAll(/--less: #|--more: #/g)].length, 4);
});

test('main threads are compared where both sides have them, else all', async () => {
	const asked: string[] = [];
	const answers = (of: Record<string, Comparison | number>) => async (thread: string) => {
		asked.push(thread);
		const answer = of[thread];
		if (typeof answer === 'number') throw Object.assign(new Error('no'), { status: answer });
		return answer;
	};
	const oneSided = { ...c, b_ns: [0, 0, 0, 0, 0] };
	const outcome = async (meant: string, root: string, of: Record<string, Comparison | number>) => (asked.length = 0, [(await comparisonOf(meant, root, answers(of))).thread, ...asked]);
	assert.deepEqual(await outcome('', '', { main: c, '': c }), ['main', 'main']);
	assert.deepEqual(await outcome('', '', { main: oneSided, '': c }), ['all', 'main', '']);
	assert.deepEqual(await outcome('', '', { main: 404, '': c }), ['all', 'main', '']);
	assert.deepEqual(await outcome('', '3.4', { main: c, '': c }), ['all', ''], 'an older link');
	assert.deepEqual(await outcome('all', '', { main: c, '': c }), ['all', '']);
	assert.deepEqual(await outcome('main', '3', { main: oneSided, '': c }), ['main', 'main']);
	await assert.rejects(outcome('', '', { main: 500, '': c }));
	await assert.rejects(outcome('main', '', { main: 404, '': c }));
});
