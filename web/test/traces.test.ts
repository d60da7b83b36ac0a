import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Trace } from '../src/api/api';
import { backOff, changesTo, dateOf, dayStart, keptOf, loss, nameOf, newestFirst, several } from '../src/api/traces';

const trace = (more: Partial<Trace> = {}) => ({ id: 'ID', title: '', pinned: false, tags: [], annotations: 0, meta: { app: 'a', version_name: '1', scenario: '' }, ...more }) as Trace;

test('a trace is called by its title, else by what it is of', () => {
	assert.equal(nameOf(trace({ title: 'Slow' })), 'Slow');
	assert.equal(nameOf(trace()), 'a 1');
	assert.equal(nameOf(trace({ meta: { app: '', version_name: '', scenario: '' } as Trace['meta'] })), 'ID');
});

test('what a saved list keeps', () => {
	const a = keptOf(new URLSearchParams('cursor=9.X&tag=slow&app=b&project=P&n=50&q='));
	assert.equal(a, 'app=b&tag=slow');
	assert.equal(keptOf(new URLSearchParams('tag=slow&app=b')), a, 'the order of an address says nothing');
	const to = changesTo('app=x&evil=1&cursor=7');
	assert.deepEqual(to.app, ['x']);
	const labels = keptOf(new URLSearchParams('label=b=2&app=a&label=a=1,x'));
	assert.equal(labels, keptOf(new URLSearchParams('app=a&label=a=1,x&label=b=2')), 'nor does that of labels');
	assert.deepEqual(changesTo(labels).label, ['a=1,x', 'b=2']);
	assert.equal(to.cursor, null);
	assert.deepEqual(to.tag, [], 'what the list does not say is cleared');
	assert.ok(!('evil' in to) && !('project' in to));
});

test('days of fields are moments and back', () => {
	for (const day of ['2026-11-21', '2024-02-29', '2026-03-29', '2026-12-31']) {
		assert.equal(dateOf(String(dayStart(day))), day);
		assert.equal(dateOf(String(dayStart(day, 1)), 1), day);
		assert.ok(dayStart(day, 1)! - dayStart(day)! >= 23 * 3_600_000);
	}
	for (const bad of ['', 'x', '2026-1-1']) assert.equal(dayStart(bad), null);
	for (const bad of ['', '-1', '1e9', '<b>']) assert.equal(dateOf(bad), '');
});

test('what goes with deleted traces', () => {
	assert.match(loss([trace()]).join(' '), /^Its upload .* Builds and their mappings are kept\.$/);
	const two = loss([trace({ pinned: true, annotations: 3 }), trace({ annotations: 1 })]).join(' ');
	assert.match(two, /^Their uploads/);
	assert.match(two, /4 annotations/);
	assert.match(two, /1 of them is pinned/);
	assert.match(loss([trace({ pinned: true })]).join(' '), /It is pinned/);
	assert.equal(several(1, 'trace'), '1 trace');
	assert.equal(several(2000, 'trace'), '2,000 traces');
});

test('asking again takes longer each time, but not for ever', () => {
	const waits = Array.from({ length: 20 }, (_, i) => backOff(i));
	assert.equal(waits[0], 1000);
	assert.ok(waits.every((w, i) => i === 0 || w >= waits[i - 1]));
	assert.equal(waits.at(-1), 10_000);
});

test('versions are read from the newest on; what begins like none is behind', () => {
	assert.deepEqual(newestFirst(['8.9.0', '', '8.10.0', 'nightly', 'v9.0']), ['v9.0', '8.10.0', '8.9.0', 'nightly']);
});
