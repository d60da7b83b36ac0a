import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isChance, levelAt } from '../src/compare/comparedoc';
import { signed } from '../src/i18n/format';
import { newestFirst } from '../src/api/traces';
import { axisOf, between, leftOut, paramsOf, positionOn, sorted, swapped, traceIn, treeOf, verdictOf, type FleetTree, type Method, type Stat, type Stratum, type Versus } from '../src/compare/versusdoc';

const DAY = 86400000;
const NOW = 100 * DAY + 5000;
const from = (query: string) => {
	const q = new URLSearchParams(query);
	return (name: string) => q.get(name) ?? '';
};

test('the address asks what the server takes, and nothing before the sides differ', () => {
	assert.equal(paramsOf(from('app=shop&days=7'), NOW), null);
	assert.deepEqual(paramsOf(from('a=1&b=2&app=shop&b.os=14&sort=name'), NOW), { since: 71 * DAY, a: '1', b: '2', app: 'shop', 'b.os': '14' });
	assert.deepEqual(paramsOf(from('a.class=low&days=7&mix=none'), NOW), { since: 94 * DAY, mix: 'none', 'a.class': 'low' });
	assert.equal(paramsOf(from('a=1&days=9999'), NOW)!.since, 71 * DAY, 'no such days: 30');
});

test('days of a side: a day, its end alone, and what is no day', () => {
	assert.equal(paramsOf(from('a.since=1970-02-01'), NOW)!['a.since'], 31 * DAY);
	assert.deepEqual(paramsOf(from('b.until=1970-03-01&days=7'), NOW), { since: 94 * DAY, 'b.since': 53 * DAY, 'b.until': 59 * DAY });
	assert.equal(paramsOf(from('b.until=1970-01-02'), NOW)!['b.since'], 0);
	assert.equal(paramsOf(from('a.since=2026-13-45'), NOW)!['a.since'], '2026-13-45', 'for the server to refuse');
});

test('sides swap with all that is theirs', () => {
	const to = swapped(from('a=1&b=2&a.os=13&b.class=low&app=shop'));
	assert.deepEqual(Object.fromEntries(Object.entries(to).filter(([, v]) => v)), { a: '2', b: '1', 'b.os': '13', 'a.class': 'low' });
	assert.ok('a.os' in to && to['a.os'] === null && !('app' in to));
});

test('a trace is named by its id or its address', () => {
	const id = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
	for (const typed of [id, ` ${id} `, id.toLowerCase(), `https://x.example/traces/${id}?find=a`]) assert.equal(traceIn(typed), id);
	assert.equal(traceIn(' none '), 'none');
});

test('the two versions that are used most, by their age', () => {
	assert.deepEqual(newestFirst(['8.9.0', '8.10.0', '', '7.0']), ['8.10.0', '8.9.0', '7.0']);
});

const stat = (low: number | null, value: number | null, high: number | null, significant = false): Stat =>
	({ a: { value: 1, low: 1, high: 1 }, b: { value: 1, low: 1, high: 1 }, change: { low, value, high }, enough_traces: low !== null, significant });

test('what is said of a change', () => {
	assert.deepEqual([stat(0.1, 0.2, 0.3, true), stat(-0.3, -0.2, -0.1, true), stat(-0.1, 0.2, 0.3), stat(null, 0.5, null)].map(verdictOf), ['slower', 'faster', 'may be chance', 'too few traces']);
	assert.deepEqual([0, 0.123, -0.0456].map(signed), ['±0 %', '+12 %', '−4.6 %']);
	assert.equal(between({ value: 0, low: -0.01, high: 0.2 }, signed), '−1.0 % to +20 %');
	assert.equal(between({ value: 0.321, low: 0.318, high: 0.324 }, signed), 'about +32 %');
	assert.equal(between({ value: 0, low: null, high: null }, signed), '');
});

test('0 and every change are on the axis', () => {
	for (const list of [[stat(0.1, 0.2, 0.3)], [stat(-0.3, -0.2, -0.1)], [stat(null, null, null)], []]) {
		const x = axisOf(list);
		for (const v of [0, ...list.flatMap((s) => Object.values(s.change) as number[]).filter((v) => v !== null)]) assert.ok(positionOn(x, v) > 0 && positionOn(x, v) < 1, `${v}`);
	}
	assert.ok(positionOn(axisOf([stat(0.1, 0.2, 0.3)]), 0.1) < positionOn(axisOf([stat(0.1, 0.2, 0.3)]), 0.3));
});

test('what one side lacks is named on the side that has it, with the scenario if there are several', () => {
	const of = (strata: Partial<Stratum>[]) => ({ a: { traces: 10, compared: 8 }, b: { traces: 5, compared: 5 }, mix: { strata } }) as unknown as Versus;
	const low = { scenario: 'start', class: 'low', a_traces: 2, b_traces: 0, excluded: true }, high = { scenario: 'start', class: 'high', a_traces: 8, b_traces: 5, excluded: false };
	assert.match(leftOut('a', of([low, high])), /not on both sides: low\./);
	assert.match(leftOut('a', of([low, { ...high, scenario: 'scroll' }])), /: start · low\./);
	assert.match(leftOut('a', of([{ ...low, class: null }, { ...high, scenario: 'scroll', class: null }])), /: start\./);
	assert.match(leftOut('a', of([low, { ...high, excluded: true }])), /not on both sides, or not among the 100 with the most traces on both: low, high\./);
	assert.equal(leftOut('b', of([low, high])), '');
});

const method = (name: string, a: number, b: number, share = 1) => ({ name, self_ns: { a, b }, total_ns: { a, b }, calls: { a, b }, a_share: share, b_share: 1 }) as Method;

test('methods are ordered by a column, changes by their size, ties as they came', () => {
	const list = [method('x', 10, 12), method('z', 50, 20, 0.5), method('y', 0, 2)];
	const by = (key: Parameters<typeof sorted>[1], down: boolean) => sorted(list, key, down).map((m) => m.name).join('');
	assert.deepEqual([by('self_change', true), by('self_change', false), by('name', false), by('total_a', true), by('share_a', false)], ['zxy', 'xyz', 'xyz', 'zxy', 'zxy']);
	assert.equal(list[0].name, 'x', 'the answer stays as it is');
});

/* top: load (sure), query (may be chance), rest. */
const tree = { names: [], parent: [0, 0, 0, 0], method: [-1, 1, 2, -1], other: [0, 0, 0, 4], a_ns: [1000, 500, 300, 200], b_ns: [3000, 2000, 800, 200], a_self_ns: [], b_self_ns: [], a_count: [], b_count: [],
	total_nodes: 4, shown_nodes: 3, a_of_traces: 10, b_of_traces: 20, significant: [0, 1, 0, 0] } as unknown as FleetTree;

test('a node is grey when its change may be chance, where that was asked', () => {
	const c = treeOf(tree);
	assert.deepEqual([c.a.length, c.b.length], [10, 20]);
	assert.deepEqual([0, 1, 2, 3].map((i) => isChance(c, i)), [false, false, true, false]);
	assert.ok(levelAt(c, 1) > 0, '50 to 100 a trace');
	assert.equal(levelAt(c, 2), 0);
	assert.ok(levelAt(c, 0) > 0, 'nobody says that the top is chance');
	const few = treeOf({ ...tree, b_of_traces: 0 });
	assert.equal(few.b.length, 1, 'never divided by nothing');
	assert.ok(!few.significant && levelAt(few, 2) > 0);
	assert.ok(isChance({ ...c, method: [7, 1, 2, -1] }, 0), 'a node as the root is asked for');
});
