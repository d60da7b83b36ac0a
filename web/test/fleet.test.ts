import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changeOf, chartOf, compareVersions, enough, groupId, groupName, inOrder, metricNamed, namedMarks, scenarioRows, statNamed, uncounted, unsure, type Metric, type Point, type ScenarioGroup } from '../src/fleet/fleetdoc';

const stat = (p50: number, traces = 5) => ({ traces, sum: p50 * traces, mean: p50, p50, p75: p50 * 1.2, p95: p50 * 2, p99: p50 * 2, max: p50 * 2 });
const group = (scenario: string, key: string, p50: number, traces = 5): ScenarioGroup => ({ scenario, key, duration_ns: stat(p50, traces), exemplars: { p50: null, p75: null, p95: null, p99: null, max: null } });
const point = (key: string, p50: number, traces = 5): Point => ({ key, of_traces: 5, self: { ...stat(p50, traces), exemplar: null } as Metric });

test('versions stand in the order of their numbers, what leads up to one before it, none before all', () => {
	const right = ['', '8.9', '8.9.1', '8.10.0-alpha', '8.10.0-rc.2', '8.10.0-rc.10', '8.10.0', '9.0'];
	assert.deepEqual([...right].reverse().sort(compareVersions), right);
	assert.equal(compareVersions('1.0', '1.0'), 0);
	assert.equal(compareVersions('', ''), 0);
});

test('scenarios: most traces first, the latest versions of each, the rest counted', () => {
	const rows = scenarioRows([group('b', '1.9', 10), group('b', '1.10', 30), group('b', '1.8', 90), group('a', '', 5, 2), group('c', '1', 1, 2)], 2);
	assert.deepEqual(rows.map((r) => [r.scenario, r.traces, r.older]), [['b', 15, 1], ['a', 2, 0], ['c', 2, 0]]);
	assert.deepEqual(rows[0].versions.map((g) => g.key), ['1.10', '1.9']);
	assert.equal(rows[0].most, 60, 'of what is shown');
	assert.deepEqual(scenarioRows([], 3), []);
});

test('a change needs something before it, and more than both may be off', () => {
	assert.equal(changeOf(15, 10), 0.5);
	assert.equal(changeOf(15, 0), null);
	assert.equal(changeOf(15, undefined), null);
	assert.ok(Math.abs(unsure(1 / 64) - (65 / 63 - 1)) < 1e-12);
	const truth = 1000; // told 1/64 too low before, too high after: no change at all
	assert.ok(Math.abs(changeOf(truth * (1 + 1 / 64), truth * (1 - 1 / 64))!) <= unsure(1 / 64) + 1e-12);
});

test('groups of versions are ordered, others stay as they come', () => {
	const keys = (by: string) => inOrder(by, [point('1.10', 1), point('1.9', 1)]).map((p) => p.key);
	assert.deepEqual(keys('version'), ['1.9', '1.10']);
	assert.deepEqual(keys('os'), ['1.10', '1.9']);
});

test('the picture begins at zero, holds the highest, and keeps its order', () => {
	const c = chartOf('version', [point('1', 100), point('2', 300), point('3', 0, 0)], 'self', 500, 200);
	assert.deepEqual(c.marks.map((m) => m.key), ['1', '2'], 'who does not tell it is not drawn');
	assert.equal(c.ticks[0].value, 0);
	assert.equal(c.ticks[0].y, c.bottom);
	const top = c.ticks[c.ticks.length - 1];
	assert.ok(top.value >= 600 && top.y <= c.marks[1].p95 && top.y >= 0);
	assert.ok(c.marks[1].p95 < c.marks[1].p75 && c.marks[1].p75 < c.marks[1].p50 && c.marks[1].p50 < c.bottom);
	assert.ok(Math.abs((c.bottom - c.marks[1].p50) / (c.bottom - c.marks[0].p50) - 3) < 1e-9, 'heights are as the values');
	assert.ok(c.marks.every((m) => m.x > c.left && m.x < c.right));
});

test('days stand by time, so that a gap is seen; too many are cut from the old side', () => {
	const { marks } = chartOf('day', [point('2026-01-01', 1), point('2026-01-02', 1), point('2026-01-10', 1)], 'self', 1000, 200);
	assert.ok(Math.abs((marks[2].x - marks[1].x) / (marks[1].x - marks[0].x) - 8) < 1e-9);
	const many = chartOf('version', Array.from({ length: 100 }, (_, i) => point(`1.${i}`, i)), 'self', 1000, 200);
	assert.deepEqual([many.marks.length, many.dropped, many.marks[0].key], [60, 40, '1.40']);
	assert.deepEqual(chartOf('day', [], 'self', 0, 200).marks, []);
	assert.equal(chartOf('day', [point('2026-01-01', 0)], 'self', 300, 200).marks.length, 1, 'one day, and nothing in it');
});

test('names below do not touch, and the last one is there', () => {
	const { marks } = chartOf('version', Array.from({ length: 30 }, (_, i) => point(`1.${i}`, 1)), 'self', 600, 200);
	const named = namedMarks(marks, 80);
	assert.equal(named[named.length - 1].key, '1.29');
	assert.ok(named.length > 3 && named.every((m, i) => i === 0 || m.x - named[i - 1].x >= 80));
});

test('an address that says nonsense asks for what is usual', () => {
	assert.equal(metricNamed('heat'), 'self');
	assert.equal(metricNamed('calls'), 'calls');
	assert.equal(statNamed('p42'), 'p95');
});

test('what is ready and not counted; deleted ones that are still counted are no debt', () => {
	const c = { all: 10, queued: 1, decoding: 0, failed: 1, done: 8, counted: 5 };
	assert.equal(uncounted(c), 3);
	assert.equal(uncounted({ ...c, counted: 20 }), 0);
	assert.equal(uncounted({ ...c, capped: { all: true, queued: false, decoding: false, failed: false, done: true } }), 0, 'nobody knows how many are ready');
});

test('values of a label: most traces first, those without it and the rest last; each by its own name', () => {
	const of = (key: string, values: number, traces: number): Point => ({ ...point(key, 10, traces), of_traces: traces, values });
	const shown = inOrder('label:flavour', [of('', 0, 90), of('beta', 1, 5), of('stable', 1, 40), of('', 31, 60), of('(none)', 1, 2)]);
	assert.deepEqual(shown.map(groupName), ['stable', 'beta', '(none)', '(none)', '31 other values']);
	assert.equal(new Set(shown.map(groupId)).size, 5, 'a value that is called so is another one');
	const rows = scenarioRows([{ ...group('a', 'x', 1, 5), values: 1 }, { ...group('a', '', 1, 50), values: 0 }, { ...group('a', 'y', 1, 9), values: 1 }, { ...group('a', '', 1, 70), values: 3 }], 3, 'label:flavour');
	assert.deepEqual(rows[0].versions.map(groupName), ['y', 'x', '(none)']);
	assert.equal(rows[0].older, 1);
	assert.equal(groupName(group('a', '', 1)), 'not given');
});

test('a change of few traces is not compared, as on the page that compares', () => {
	assert.deepEqual([enough(50, 10, 10), enough(50, 9, 500), enough(50, 500, 0)], [true, false, false]);
	assert.deepEqual([enough(95, 20, 20), enough(95, 19, 500)], [true, false]);
});
