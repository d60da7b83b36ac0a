import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lanes, NoteSum, Thread } from '../../src/api/api';
import { addressOf, fitted, panned, sameView, timeOf, xOf, zoomed } from '../../src/trace/state/axis';
import { Payload } from '../../src/trace/worker/columns';
import { flowOf, otherEnd } from '../../src/trace/state/flows';
import { paintCounter, paintSpans, paintStates, paintStrip, rangeOf, uncovered, type Surface } from '../../src/trace/timeline/lanepaint';
import { lanesOf, noteAt, shapeOf, trackKey, valueAt, type Lane } from '../../src/trace/state/lanes';
import { formatOpen, parseOpen, withOpen } from '../../src/trace/state/opened';
import { toRows } from '../../src/trace/worker/rows';
import { risen } from '../../src/trace/state/progress';
import { linesOf } from '../../src/trace/state/statelines';
import { mainOf, ranOf } from '../../src/trace/state/threadlist';
import { groupAt, inOrder, inView, layoutOf, OPEN_ROWS, Presence, ROW, rowBox, together, trackAt } from '../../src/trace/timeline/tracks';
import { callsOf, chunk } from './chunk';

const thread = (tid: number, more: Partial<Thread> = {}): Thread => ({ thread_id: tid, tid, pid: 1, name: `t${tid}`, is_main: false, slices: 10, roots: 1,
	max_depth: 5, start_ns: 0, end_ns: 100, busy_ns: 10, running_ns: 10, activity: [0, 255], source: 'calls', interval_ns: 0, ...more });
const sum = (kind: string, tid: number | null, text = '', dur_ns = 5): NoteSum => ({ kind, tid, text, notes: 1, dur_ns });

test('the address of a view tells of no other view', () => {
	for (const v of [{ from: 0.4, to: 99.6 }, { from: -3.2, to: 50 }, { from: 1e15 + 0.25, to: 1e15 + 50.25 }]) {
		assert.ok(sameView(v, addressOf(v)), 'its own echo');
		assert.ok(!sameView(v, { ...addressOf(v), to: addressOf(v).to + 1 }));
	}
});

test('the percentage of loaded calls does not fall when another thread begins to load', () => {
	const one = risen(0, [{ loaded: 3, total: 4 }]);
	const two = risen(one, [{ loaded: 4, total: 4 }, { loaded: 0, total: 36 }]);
	assert.deepEqual([risen(0, []), one, two, risen(two, [{ loaded: 4, total: 4 }, { loaded: 32, total: 36 }])], [0, 75, 75, 90]);
});

test('a view stays within the trace, and zooms around a point', () => {
	const trace = { from: 1000, to: 2000 };
	assert.deepEqual(fitted({ from: 0, to: 500 }, trace), { from: 990, to: 1490 });
	assert.deepEqual(fitted({ from: 1900, to: 2400 }, trace), { from: 1510, to: 2010 });
	assert.deepEqual(fitted({ from: 1500, to: 1501 }, trace), { from: 1500, to: 1550 });
	assert.deepEqual(fitted({ from: -1e9, to: 1e9 }, trace), { from: 990, to: 2010 });
	const z = zoomed({ from: 1000, to: 2000 }, 0.5, 0.25);
	assert.deepEqual(z, { from: 1125, to: 1625 });
	assert.equal(xOf(1250, z, 100), 25);
	assert.equal(timeOf(25, z, 100), 1250);
	assert.deepEqual(panned({ from: 0, to: 100 }, 0.5), { from: 50, to: 150 });
});

test('what is open goes into the address and back', () => {
	assert.deepEqual([...parseOpen('', 7)], [[7, { row: 0, full: false }]]);
	assert.deepEqual([...parseOpen('none', 7)], []);
	for (const text of ['1', '1.20', '1,2.3f,900', '5f', 'none']) assert.equal(formatOpen(parseOpen(text, null)), text);
	assert.deepEqual([...parseOpen('x,1,-4,2.,3', null).keys()], [1, 3], 'nonsense is left out');
	assert.equal(formatOpen(withOpen(parseOpen('1.5,2', null), 1, { full: true })), '1.5f,2');
	assert.equal(formatOpen(withOpen(parseOpen('1.5,2', null), 1, null)), '2');
});

test('main comes first, then who did most, then who has no calls', () => {
	const list = [thread(1, { running_ns: 5 }), thread(2, { slices: 0, running_ns: 0, is_main: true }), thread(3, { running_ns: 9 }), thread(4, { is_main: true, running_ns: 1 })];
	assert.deepEqual(inOrder(list).map((t) => t.tid), [4, 3, 1, 2]);
});

test('without calls, threads come by what the scheduler says they ran', () => {
	const list = [thread(1, { slices: 0, running_ns: 0 }), thread(2, { slices: 0, running_ns: 0 }), thread(3, { running_ns: 9 }), thread(4, { slices: 0, running_ns: 0 })];
	const ran = ranOf(list, [sum('state', 2, 'running', 30), sum('state', 2, 'running', 4), sum('state', 3, 'running', 70), sum('state', 1, 'sleeping', 90), sum('state', 4, 'running', 40)]);
	assert.deepEqual(ran.map((t) => t.running_ns), [0, 34, 9, 40]);
	assert.deepEqual(inOrder(ran).map((t) => t.tid), [3, 4, 2, 1]);
});

test('only the traced process has a main thread', () => {
	const mains = (list: Thread[], pid: number) => mainOf(list, pid).filter((t) => t.is_main).map((t) => t.tid);
	const of = (busy: number) => [10, 20].map((pid) => thread(pid, { pid, is_main: true, slices: 0 })).concat(thread(21, { pid: 20, slices: busy }));
	assert.deepEqual(mains(of(9), 10), [10], 'the upload names it');
	assert.deepEqual(mains(of(9), 0), [20], 'the one with calls');
	assert.deepEqual(mains(of(9), 99), [20], 'nor is it there');
	assert.deepEqual(mains(of(0), 0), [], 'none of a system trace');
	assert.deepEqual(mains([thread(1, { is_main: true, slices: 0 })], 0), [1], 'one process is the traced one');
});

test('a process with one thread of its name needs no head', () => {
	const list = [thread(1, { pid: 10, process: 'kthreadd', name: 'kthreadd' }), thread(2, { pid: 20, process: 'com.acme', name: 'main' })];
	assert.deepEqual(layoutOf(list, new Map(), new Presence([]), false, new Set(['10'])).groups.map((g) => g.process?.name ?? g.thread?.tid), [1, 'com.acme', 2]);
});

test('threads of several processes lie below their process, which closes over them', () => {
	const list = inOrder([thread(1, { pid: 10, process: 'app', is_main: true, running_ns: 3 }), thread(2, { pid: 20, process: 'app:push', running_ns: 9 }), thread(3, { pid: 10, process: 'app', running_ns: 1 }),
		thread(4, { pid: 20, process: 'app:push', slices: 0 })]);
	assert.deepEqual(list.map((t) => t.tid), [1, 3, 2, 4]);
	const heads = (closed: string[]) => layoutOf(list, parseOpen('', 2), new Presence([sum('gc', null)]), false, new Set(closed)).groups.map((g) => g.process?.name ?? g.thread?.tid ?? 'trace');
	assert.deepEqual(heads([]), ['trace', 'app', 1, 3, 'app:push', 2, 4]);
	assert.deepEqual(heads(['10']), ['trace', 'app', 'app:push', 2, 4]);
	assert.deepEqual(heads(['10', '20', '99']), ['trace', 'app', 'app:push']);
	const l = layoutOf(list, new Map(), new Presence([]), false, new Set(['20']));
	assert.equal(l.height, l.groups.reduce((n, g) => n + g.height, 0));
	assert.ok(l.groups[3].strip && !l.groups[3].open, 'closed, it shows when its threads were busy');
	assert.deepEqual(layoutOf([thread(1), thread(2)], new Map(), new Presence([]), false).groups.map((g) => g.thread?.tid), [1, 2], 'one process needs no head');
});

test('groups lie below each other, rows and tracks in them', () => {
	const list = [thread(1, { max_depth: 300 }), thread(2), thread(3, { max_depth: 3000 })];
	const p = new Presence([sum('state', 1, 'running'), sum('contention', 1), sum('gc', 9), ...Array.from({ length: 9 }, (_, i) => sum('counter', null, `c${i}`))]);
	const l = layoutOf(list, parseOpen('1.290,3f', null), p, false);
	assert.equal(l.groups.length, 4, 'the whole trace has one, too');
	assert.deepEqual(l.groups[0].tracks.map((t) => t.kind), ['gc'], 'many counters would push the threads out of view');
	assert.equal(l.groups[0].hidden, 9);
	const few = layoutOf(list, new Map(), new Presence(['a', 'b'].map((name) => sum('counter', null, name))), false).groups[0];
	assert.deepEqual([few.tracks.length, few.hidden], [2, 0]);
	const alone = layoutOf([thread(1, { slices: 0 })], new Map(), p, false).groups[0];
	assert.deepEqual([alone.tracks.length, alone.hidden], [5, 5], 'without calls some are shown');
	assert.equal(layoutOf(list, new Map(), p, true).groups[0].tracks.length, 10);
	let y = 0;
	for (const g of l.groups) {
		assert.equal(g.y, y);
		y += g.height;
		let last = g.y;
		for (const t of [...g.tracks, ...(g.strip ? [g.strip] : []), ...(g.calls ? [g.calls] : [])]) {
			assert.ok(t.y >= last, 'not over each other');
			last = t.y + t.height;
		}
		assert.ok(last <= g.y + g.height);
	}
	assert.equal(l.height, y);
	const [, a, , c] = l.groups;
	assert.deepEqual([a.calls!.rows, a.calls!.row, a.calls!.height], [OPEN_ROWS, 280, OPEN_ROWS * ROW], 'no further than the last row');
	assert.equal(c.calls!.rows, 3000);
	assert.deepEqual(inView(l, c.y + 5000, c.y + 5100), [3, 4]);
	assert.equal(groupAt(l, a.y), a);
	assert.equal(groupAt(l, a.y - 1), l.groups[0]);
	assert.equal(groupAt(l, l.height), null);
	assert.equal(trackAt(a, a.tracks[1].y + 2)?.kind, 'contention');
});

test('events that overlap have rows of their track, and the tracks below make room', () => {
	const rows = new Map([[trackKey('frame', null, 'actual surface'), 3], [trackKey('section', 1, ''), 2]]);
	const p = new Presence([sum('frame', null, 'actual surface'), sum('async', null), sum('section', 1), sum('io', 1)], rows);
	const [trace, one] = layoutOf([thread(1)], parseOpen('1', null), p, false).groups;
	const [frames, async] = trace.tracks;
	assert.deepEqual([frames.height, async.y - frames.y], [3 * 18 - 2, 3 * 18]);
	assert.deepEqual(one.tracks.map((t) => [t.kind, t.height]), [['io', 16], ['section', 34]]);
	assert.equal(one.calls!.y, one.tracks[1].y + 36);
	for (const row of [0, 1, 2]) {
		const box = rowBox(frames, row);
		assert.deepEqual([box.y - frames.y, box.height], [18 * row, 16]);
	}
	assert.deepEqual(rowBox(async, 5), { y: async.y, height: 16 }, 'a row that has no place yet is not over the next track');
});

test('four thousand threads are laid out in a moment, and found by bisection', () => {
	const list = Array.from({ length: 4096 }, (_, i) => thread(i + 1, { max_depth: 1024 }));
	const open = parseOpen(list.slice(0, 50).map((t) => `${t.tid}f`).join(','), null);
	const begun = process.cpuUsage();
	const l = layoutOf(list, open, new Presence([]), false);
	for (let y = 0; y < l.height; y += 997) assert.ok(groupAt(l, y)!.y <= y);
	assert.ok(process.cpuUsage(begun).user < 1e6, 'µs of processor time: some 30,000');
});

const answer: Lanes = { texts: ['running', 'sleeping'], from_ns: 100, to_ns: 200, partial: false, lanes: [
	{ kind: 'state', tid: 1, name: '', row: 0, outcome: '', step_ns: [-20, 40, 30], dur_ns: [40, 30, -1], text: [0, 1, 0], value: [3, -1, 2], notes: [1, 5, 1] }] };

test('lanes are read as the server tells them', () => {
	const [l] = lanesOf(answer, { from: 100, to: 200 });
	assert.deepEqual([...l.ts], [80, 120, 150]);
	assert.deepEqual([...l.dur], [40, 30, 0]);
	assert.deepEqual(l.text, ['running', 'sleeping', 'running']);
	assert.equal(noteAt(l, 110, 1), 0);
	assert.equal(noteAt(l, 130, 1), 1);
	assert.equal(noteAt(l, 151, 2), 2, 'a moment is met near it');
	assert.equal(noteAt(l, 190, 2), -1);
	assert.deepEqual([valueAt(l, 79), valueAt(l, 80), valueAt(l, 149), valueAt(l, 1e9)], [-1, 0, 1, 2]);
});

const surface = (from = 100, to = 200): Surface => ({ px: new Uint32Array(100 * 10), width: 100, height: 10, dpr: 1, view: { from, to }, top: 0 });
const row = (s: Surface, y: number) => [...s.px.slice(y * 100, y * 100 + 100)];

test('states differ in height as well as colour', () => {
	const s = surface();
	paintStates(s, { y: 0, height: 10 }, lanesOf(answer, { from: 100, to: 200 }), new Map([['running', 5], ['sleeping', 6]]));
	assert.deepEqual([row(s, 0)[10], row(s, 0)[30], row(s, 9)[30], row(s, 9)[60]], [5, 0, 6, 0]);
	assert.equal(row(s, 0)[50], 5, 'a moment is one pixel');
});

test('a span that reaches out of its tile is not drawn twice, and all of it in view', () => {
	const lane = (over: Partial<Lane>): Lane => ({ ...lanesOf(answer, { from: 100, to: 150 })[0], ...over });
	const s = surface();
	paintSpans(s, { y: 2, height: 4 }, [lane({ n: 1, ts: Float64Array.of(90), dur: Float64Array.of(500) })], { fill: 7, edge: 8 });
	assert.deepEqual([row(s, 2)[0], row(s, 2)[49], row(s, 2)[50], row(s, 1)[10], row(s, 6)[10]], [8, 7, 0, 0, 0]);
});

test('a counter holds its value until the next, and shows what was drawn together', () => {
	const lane: Lane = { kind: 'counter', tid: null, name: 'c', row: 0, outcome: '', tile: { from: 100, to: 200 }, n: 2, ts: Float64Array.of(100, 150), dur: new Float64Array(2),
		text: ['c', 'c'], value: [10, 5], notes: [1, 9], low: [10, 0], high: [10, 20] };
	assert.deepEqual(rangeOf([lane]), [0, 20]);
	assert.deepEqual(rangeOf([]), [0, 1]);
	const s = surface();
	paintCounter(s, { y: 0, height: 10 }, [lane], [0, 20], { fill: 7, edge: 8 });
	assert.deepEqual([row(s, 4)[20], row(s, 5)[20], row(s, 9)[20]], [0, 8, 7], 'half high');
	assert.equal(row(s, 0)[50], 8, 'up to the largest');
	assert.equal(row(s, 9)[99], 7, 'to the end');
});

test('activity shows the largest share of a pixel', () => {
	const s = surface();
	const cells = new Uint8Array(1000);
	cells[505] = 255;
	cells[900] = 1;
	paintStrip(s, { y: 0, height: 10 }, [{ tile: { from: 100, to: 200 }, cells }], 9);
	assert.deepEqual([row(s, 0)[50], row(s, 0)[51], row(s, 9)[90], row(s, 8)[90]], [9, 0, 9, 0]);
});

test('flows lead from the waiter to the holder, from the starter to the started', () => {
	const list = [thread(1), thread(2, { start_ns: 500 })];
	const lane = (kind: string, value: number, notes = 1): Lane => ({ ...lanesOf(answer, { from: 0, to: 1 })[0], kind, tid: 1, n: 1, ts: Float64Array.of(10), dur: Float64Array.of(30), value: [value], notes: [notes], text: ['x'] });
	const f = flowOf({ lane: lane('contention', 2), i: 0 }, list)!;
	assert.deepEqual(f, { from: { tid: 1, time: 10 }, to: { tid: 2, time: 10 }, back: 40, label: 'held by t2' });
	assert.equal(otherEnd(f, 1).tid, 2);
	assert.equal(otherEnd(f, 2).tid, 1);
	assert.equal(flowOf({ lane: lane('thread_created', 2), i: 0 }, list)!.to.time, 500);
	for (const none of [lane('contention', 99), lane('contention', 1), lane('contention', 2, 3), lane('io', 2)]) assert.equal(flowOf({ lane: none, i: 0 }, list), null);
});

test('times in states are told by thread', () => {
	const [a] = linesOf([sum('state', 1, 'running', 10), sum('state', 1, 'sleeping', 30), sum('contention', 1, '', 4), sum('state', 2, 'running', 9)], [thread(1), thread(3)]);
	assert.equal(a.known, 40);
	assert.deepEqual([a.states[0], a.states[3], a.waits[0]], [10, 30, 4]);
	assert.equal(linesOf([sum('state', 2, 'running')], [thread(3)]).length, 0);
});

test('the minimap is all threads together', () => {
	assert.deepEqual(together([thread(1), thread(2, { activity: [0, 255] }), thread(3, { slices: 0, activity: [255, 255] })]), [0, 255]);
	assert.deepEqual(together([]), []);
});

test('a part of a thread begins with what is open there', async () => {
	const bytes = () => new Payload(chunk(1, 2, [[50, 500, 7, 20, 100, 8], [], [0, 2], [5], [], [0], [], []]), 1000);
	const rows = await toRows([bytes()], true);
	assert.deepEqual([...rows.first], [0, 1, 2, 3]);
	assert.deepEqual(callsOf(rows), [[950, 500, 7, 0], [980, 100, 8, 1], [1000, 5, 2, 2]]);
	assert.equal((await toRows([bytes()])).n, 1, 'a whole thread has them already');
});

test('words on events that overlap end where the next one begins', () => {
	const of = (x0: number, x1: number, text: string) => ({ x0, x1, text });
	assert.deepEqual(uncovered([of(0, 100, 'a'), of(40, 60, 'b'), of(200, 300, 'd'), of(40, 50, 'c')]),
		[of(0, 40, 'a'), of(40, 50, 'c'), of(200, 300, 'd')]);
});

test('without calls the overview shows how many threads run, or the first counter', () => {
	const tile = { from: 0, to: 100 };
	const lane = (kind: string, ts: number[], dur: number[], text: string[], value: number[]): Lane => ({ kind, tid: 1, name: '', row: 0, outcome: '', tile, n: ts.length,
		ts: Float64Array.from(ts), dur: Float64Array.from(dur), text, value, notes: ts.map(() => 1), low: value, high: value });
	const states = [lane('state', [0, 50], [50, 25], ['running', 'sleeping'], [0, 0]), lane('state', [25], [50], ['running'], [0])];
	assert.deepEqual(shapeOf(states, tile, 4), [128, 255, 128, 0]);
	assert.deepEqual(shapeOf([lane('counter', [0, 50], [0, 0], ['', ''], [5, 10])], tile, 4), [128, 128, 255, 255]);
	assert.deepEqual(shapeOf([], tile, 2), [0, 0]);
});
