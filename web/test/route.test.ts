import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';

// as much of a browser as an address needs
const serverText: Record<string, () => void> = {};
let steps: string[] = [];
let writes = 0;
const put = (to: string) => {
	const u = new URL(to, 'http://here');
	Object.assign(globalThis.location, { pathname: u.pathname, search: u.search });
};
Object.assign(globalThis, {
	location: { pathname: '/', search: '', origin: 'http://here' },
	addEventListener: (name: string, f: () => void) => (serverText[name] = f),
	scrollTo: () => {},
	history: {
		state: null,
		pushState: (_: unknown, __: string, to: string) => { steps.push(to); put(to); },
		replaceState: (_: unknown, __: string, to: string) => { steps[steps.length - 1] = to; put(to); writes++; },
	},
});
const { flush, go, number, path, set, text, texts } = await import('../src/ui/route');

/* Fake timers for URL writes; time advances only in wait(). */
let now = 0;
let timers: { at: number; run: () => void }[] = [];
Object.assign(globalThis, {
	setTimeout: (run: () => void, ms: number) => timers[timers.push({ at: now + ms, run }) - 1],
	clearTimeout: (timer: unknown) => (timers = timers.filter((t) => t !== timer)),
});
performance.now = () => now;
function wait(ms: number) {
	now += ms;
	const due = timers.filter((t) => t.at <= now);
	timers = timers.filter((t) => t.at > now);
	for (const t of due) t.run();
}

beforeEach(() => {
	steps = ['/traces/T'];
	put('/traces/T');
	serverText.popstate();
	writes = 0;
});

test('changes are seen at once and written a few times a second, many as one', () => {
	for (let i = 1; i <= 500; i++) set({ from: i, to: i + 10 });
	assert.equal(number('from'), 500);
	assert.equal(writes, 1, 'the first at once');
	wait(320);
	assert.equal(writes, 2, 'all others as one');
	assert.deepEqual(steps, ['/traces/T?from=500&to=510']);
	wait(320);
	set({ from: null, to: null });
	assert.deepEqual(steps, ['/traces/T']);
});

test('a step for the back button keeps the view it leaves', () => {
	set({ from: 1, to: 2 });
	set({ root: '3.4' }, true);
	assert.deepEqual(steps, ['/traces/T?from=1&to=2', '/traces/T?from=1&to=2&root=3.4']);
	set({ root: '3.4' }, true);
	assert.equal(steps.length, 2, 'the same again is no step');
	set({ from: 7 });
	go('/builds');
	assert.deepEqual(steps.slice(1), ['/traces/T?from=7&to=2&root=3.4', '/builds']);
	assert.equal(path.value, '/builds');
	assert.equal(text('root'), '');
});

test('a name may stand several times', () => {
	set({ from: 1, label: ['a=1', 'b=2', ''] }, true);
	assert.deepEqual(texts('label'), ['a=1', 'b=2']);
	set({ label: ['c=3'], to: 2 }, true);
	assert.equal(steps.at(-1), '/traces/T?from=1&label=c%3D3&to=2');
	set({ label: [] }, true);
	assert.deepEqual(texts('label'), []);
	assert.equal(steps.at(-1), '/traces/T?from=1&to=2');
});

test('going back drops what was not written yet', () => {
	set({ from: 5 });
	set({ from: 6 });
	const before = writes;
	put('/traces/T?from=1');
	serverText.popstate();
	wait(320);
	assert.equal(number('from'), 1);
	assert.equal(writes, before);
});

test('leaving the page writes what waits', () => {
	set({ find: 'a' });
	const before = writes;
	set({ find: 'a b&c' });
	serverText.pagehide();
	assert.deepEqual(steps, ['/traces/T?find=a+b%26c']);
	flush();
	assert.equal(writes, before + 1, 'once');
});

test('what is no number is none', () => {
	for (const [v, want] of [['12', 12], ['-1', null], ['1e3', null], ['', null], ['9'.repeat(17), null]] as const) {
		set({ from: v });
		assert.equal(number('from'), want, v);
	}
	set({ from: null });
	assert.equal(text('from'), '');
	assert.equal(number('from'), null);
});
