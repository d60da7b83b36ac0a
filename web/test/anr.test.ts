import assert from 'node:assert/strict';
import { test } from 'node:test';
import { does, lockName, order, shows, stackText, threadName, type AnrProcess, type AnrThread } from '../src/anr/anrdoc';

function thread(name: string, more: Partial<AnrThread> = {}): AnrThread {
	return { name, track: 1, state: 'Native', held: [], top: null, frames: [], ...more };
}

function process(threads: AnrThread[], more: Partial<AnrProcess> = {}): AnrProcess {
	return { pid: 1, at_ns: 0, facts: {}, verdict: '', end: '', cluster: '', main: null, culprit: null, main_frame: null,
		chain: [], cycles: [], threads, threads_left_out: 0, ...more };
}

const step = (thread: number) => ({ thread, does: 'running', frame: null, app_frame: null });
const wish = { id: '0x1', type: 'a.Store', holder: 0, named: true };

test('main comes first, then its chain, deadlocks, waiters, holders and the rest', () => {
	const p = process([thread('rest'), thread('holder', { held: [{ id: '0x2' }] }), thread('waits', { wants: wish }), thread('ring'),
		thread('blocker'), thread('main'), thread('waited for', { victims: 2 })],
	{ main: 5, chain: [step(5), step(4)], cycles: [{ certain: true, size: 1, threads: [step(3)] }] });
	assert.deepEqual(order(p).map((i) => p.threads[i].name), ['main', 'blocker', 'ring', 'waits', 'waited for', 'holder', 'rest']);
});

test('a thread in chain and deadlock stands once', () => {
	const p = process([thread('a'), thread('b')], { main: 1, chain: [step(1), step(0)], cycles: [{ certain: true, size: 2, threads: [step(0), step(1)] }] });
	assert.deepEqual(order(p), [1, 0]);
});

test('the filter looks at names, states, locks and stacks, all words', () => {
	const t = thread('DB-writer', { state: 'Blocked', sys_tid: 4255, wants: wish, frames: [{ name: 'a.b.OrderDao.insert' }] });
	for (const yes of ['', 'db', 'blocked', 'orderdao', 'a.store', '4255', 'db ORDER']) assert.ok(shows(t, yes), yes);
	for (const no of ['native', 'db nothing']) assert.ok(!shows(t, no), no);
});

test('words for locks, threads and frames', () => {
	assert.equal(lockName({ id: '0x1', type: 'java.lang.Class<a.B>' }), 'the class lock of a.B');
	assert.equal(lockName({ id: '0x1', type: 'a.B' }), 'a lock of a.B');
	assert.equal(lockName({ id: '0x1' }), 'a lock of an unknown class');
	assert.equal(threadName(thread('', { sys_tid: 7 })), 'thread 7');
	assert.equal(threadName(undefined), 'an unknown thread');
	assert.equal(does({ ...step(0), does: 'blocked' }), 'waits in');
	assert.equal(does({ ...step(0), does: 'something new' }), 'is in');
});

test('a stack is copied as a dump has it', () => {
	const t = thread('main', { tid: 1, state: 'Blocked', frames: [{ name: 'a.B.c', where: 'B.java:1', locks: [{ how: 'wants', id: '0x1', type: 'T' }] }, { name: 'f' }] });
	assert.equal(stackText(t), '"main" tid=1 Blocked\n  at a.B.c(B.java:1)\n  - waiting to lock <0x1> (a T)\n  at f');
});
