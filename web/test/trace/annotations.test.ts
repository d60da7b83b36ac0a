import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Annotation, Flame } from '../../src/api/api';
import { boxesOf } from '../../src/trace/graph/flamelayout';
import { escapeXml, svgOf } from '../../src/trace/graph/flamesvg';

// as much of a browser as an address needs
Object.assign(globalThis, { location: { pathname: '/', search: '' }, addEventListener: () => undefined });
const { placeOf } = await import('../../src/trace/state/annotations');

const one = (more: Partial<Annotation>): Annotation => ({ id: 'A', author: '', text: 't', created_ms: 1, updated_ms: 0, ts_ns: null, dur_ns: 0, tid: null, method: null, method_name: null, ...more });

test('an annotation leads to its time and thread, or to its method', () => {
	const to = placeOf(one({ ts_ns: 5e6, dur_ns: 1e6, tid: 7 }), { from: 0, to: 1e9 }, '3');
	assert.ok(Number(to.from) < 5e6 && Number(to.to) > 6e6);
	assert.equal(to.thread, 7);
	assert.match(String(to.open), /7/);
	const method = placeOf(one({ method: 3, method_name: 'a.B.c' }), { from: 0, to: 1e9 }, '');
	assert.deepEqual(method, { annotation: 'A', find: 'a.B.c' });
});

test('an annotation at an edge of the trace leads to a view within it', () => {
	const whole = { from: 4e12, to: 4e12 + 5e9 };
	const first = placeOf(one({ ts_ns: whole.from, dur_ns: 2e9 }), whole, '');
	assert.equal(first.from, whole.from);
	const last = placeOf(one({ ts_ns: whole.to, dur_ns: 0 }), whole, '');
	assert.equal(last.to, whole.to);
});

test('names in a saved picture are text', () => {
	const hostile = '</text><script>alert(1)</script>&"\u0000\u0008';
	const f = { names: ['all', hostile], name: [0, 1], parent: [-1, 0], value: [10, 10], self: [0, 10], count: [1, 1], method: [-1, 0], other: [0, 0], total_nodes: 2, shown_nodes: 2, partial: false } as Flame;
	const svg = svgOf(f, boxesOf(f), String);
	assert.ok(!svg.includes('<script') && svg.includes('&lt;script'));
	assert.ok(!/[\u0000-\u0008]/.test(svg));
	assert.equal(escapeXml(`<a b='c'>&"`), '&lt;a b=&#39;c&#39;&gt;&amp;&quot;');
	assert.equal(svg.match(/<rect /g)!.length, 3, 'paper and two boxes');
});
