/*
 * The timeline of all threads in a real browser, as a person uses it: tracks, several threads open, one
 * axis, ranges over sets of threads, flows, the keyboard, the state in the address.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { THEMES, launch, painted, settled, unreadable, visit, tab } from '../browser.mjs';
import { btrace, form, sampleTrace, systemTrace } from '../make.mjs';
import { reads, sample, startServer, until } from '../server.mjs';

const shots = process.env.SCREENSHOTS;
const PID = 21010, WORKER = 21055, LATE = 21077;
let server, browser, id, deep;
const ending = [];

/* A second of kernel text: a main thread that waits for a lock of a worker, is woken, starts a thread; a
 * counter, a collection, a span, a mark, a call that the worker answers. */
function kernelText() {
	const rows = [];
	const at = (us, line) => rows.push([us, line]);
	const stamp = (us) => (4000 + us / 1e6).toFixed(6);
	const names = { [PID]: '.acme.shop', [WORKER]: 'disk', [LATE]: 'late', 0: '<idle>' };
	const mark = (us, tid, text) => at(us, `${names[tid]}-${tid} (${PID}) [000] ...1 ${stamp(us)}: tracing_mark_write: ${text}`);
	const turn = (us, from, state, to) => at(us, `${names[from]}-${from} (${from ? PID : '-----'}) [000] d..2 ${stamp(us)}: sched_switch: prev_comm=${names[from]} prev_pid=${from} prev_prio=120 prev_state=${state} ==> next_comm=${names[to]} next_pid=${to} next_prio=120`);
	const wake = (us, by, who) => at(us, `${names[by]}-${by} (${PID}) [000] d..3 ${stamp(us)}: sched_waking: comm=${names[who]} pid=${who} prio=120 target_cpu=000`);
	turn(0, 0, 'R', PID);
	mark(10, PID, `B|${PID}|doFrame`);
	mark(100, PID, `C|${PID}|heap|100`);
	mark(50_000, PID, `B|${PID}|pthread_create tid=${LATE}`);
	mark(50_100, PID, `E|${PID}`);
	mark(100_000, PID, `B|${PID}|monitor contention with owner disk (${WORKER}) at void com.acme.Store.put()(Store.java:88) waiters=0 blocking from int com.acme.Store.size()(Store.java:31)`);
	turn(100_100, PID, 'S', WORKER);
	mark(100_200, WORKER, `B|${PID}|write page`);
	mark(200_000, WORKER, `C|${PID}|heap|400`);
	mark(250_000, WORKER, `B|${PID}|young concurrent copying GC`);
	mark(280_000, WORKER, `E|${PID}`);
	mark(299_000, WORKER, `E|${PID}`);
	wake(300_000, WORKER, PID);
	turn(300_500, WORKER, 'S', PID);
	mark(301_000, PID, `E|${PID}`);
	mark(400_000, PID, `S|${PID}|checkout|7`);
	mark(500_000, PID, `C|${PID}|heap|50`);
	mark(600_000, PID, `I|${PID}|tapped`);
	turn(610_000, PID, 'S', LATE);
	mark(620_000, LATE, `B|${PID}|late work`);
	mark(690_000, LATE, `E|${PID}`);
	turn(700_000, LATE, 'S', PID);
	const binder = (us, tid, text) => at(us, `${names[tid]}-${tid} (${PID}) [000] ...1 ${stamp(us)}: binder_transaction${text}`);
	binder(720_000, PID, `: transaction=77 dest_node=4 dest_proc=${PID} dest_thread=0 reply=0 flags=0x10 code=0x1`);
	binder(730_000, WORKER, '_received: transaction=77');
	binder(750_000, WORKER, `: transaction=78 dest_node=0 dest_proc=${PID} dest_thread=${PID} reply=1 flags=0x0 code=0x0`);
	binder(760_000, PID, '_received: transaction=78');
	mark(800_000, PID, `F|${PID}|checkout|7`);
	mark(900_000, PID, `E|${PID}`);
	turn(1_000_000, PID, 'S', 0);
	return '# tracer: nop\n#\n' + rows.sort((a, b) => a[0] - b[0]).map((r) => r[1]).join('\n') + '\n';
}

before(async () => {
	if (shots) fs.mkdirSync(shots, { recursive: true });
	server = await startServer({ after: (f) => ending.push(f) });
	const trace = await server.trace(kernelText(), { query: { app: 'com.acme.shop' } });
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	id = trace.id;
	// two threads, one of them 900 calls deep
	const nest = Array.from({ length: 900 }, (_, i) => [PID & 0x7fff, 1 + (i % 9), 1e6 + (899 - i) * 1000, 2e6 + i * 2000]);
	const flat = Array.from({ length: 40 }, (_, i) => [(PID & 0x7fff) + 1, 3, 1e6 + i * 50_000, 20_000]);
	const made = await server.trace(btrace([...nest, ...flat], { pid: PID & 0x7fff }), {});
	assert.equal(made.state, 'ready', JSON.stringify(made.error));
	deep = made.id;
	browser = await launch();
});

after(async () => {
	await browser?.close();
	for (const f of ending) await f();
});

async function open(trace = id, query = '', scheme = 'light', width = 1280) {
	const page = await (await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 } })).newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	page.on('request', (r) => !r.url().startsWith(server.url) && page.problems.push('left the origin: ' + r.url()));
	await visit(page, server, `/traces/${trace}${query}`);
	await page.waitForSelector('[data-ready]');
	await settled(page); // lanes are there
	return page;
}

async function done(page, t) {
	if (shots) await page.screenshot({ path: path.join(shots, `timeline-${t.name.replaceAll(/\W+/g, '-').slice(0, 60)}.png`) });
	assert.deepEqual(page.problems, []);
	await page.context().close();
}

const query = (page) => new URL(page.url()).searchParams;
const heads = (page) => page.locator('.threads .name .text').allInnerTexts();
const head = (page, name) => page.locator('.threads li', { has: page.locator(`.name .text:text-is("${name}")`) });

/* Where a time of the trace is on the canvas. */
async function xOf(page, ns) {
	const trace = (await server.get(`/api/v1/traces/${id}`)).json;
	const box = await page.locator('canvas.calls').boundingBox();
	const q = query(page);
	const from = Number(q.get('from') ?? trace.start_ns), to = Number(q.get('to') ?? trace.end_ns);
	return box.x + ((trace.start_ns + ns - from) / (to - from)) * box.width;
}

/* The middle of a track of a thread, by its label. */
async function yOf(page, name, track) {
	const li = name ? head(page, name) : page.locator('.threads li').first();
	const box = await (track ? li.locator(`.track:text-is("${track}")`) : li).boundingBox();
	return box.y + box.height / 2;
}

async function pixel(page, x, y) {
	const box = await page.locator('canvas.calls').boundingBox();
	return page.evaluate(([px, py]) => [...document.querySelector('canvas.calls').getContext('2d').getImageData(px, py, 1, 1).data].slice(0, 3), [Math.round(x - box.x), Math.round(y - box.y)]);
}

const color = (page, name) => page.evaluate((n) => {
	const v = getComputedStyle(document.documentElement).getPropertyValue(n).trim();
	return [1, 3, 5].map((i) => parseInt(v.slice(i, i + 2), 16));
}, name);

test('threads are listed main first, then by activity, with their tracks', async (t) => {
	const page = await open();
	assert.deepEqual(await heads(page), ['.acme.shop', 'disk', 'late']);
	assert.equal(await page.locator('.threads .name').nth(0).getAttribute('aria-pressed'), null, 'the whole trace is no thread');
	const tracks = await head(page, '.acme.shop').locator('.track').allInnerTexts();
	assert.deepEqual(tracks.slice(0, 2), ['States', 'Lock waits']);
	assert.ok(tracks.includes('Thread starts'), tracks.join());
	assert.deepEqual((await page.locator('.threads li').first().locator('.track').allInnerTexts()).filter((x) => x !== 'heap'), ['Collections', 'Spans', 'Marks']);
	await done(page, t);
});

test('threads of several processes are listed below their process, which closes over them', async (t) => {
	const span = (pid, tid, name, ts, dur) => ({ ph: 'X', pid, tid, name, ts, dur });
	const meta = (pid, tid, what, name) => ({ ph: 'M', pid, tid, name: what, args: { name } });
	const trace = await server.trace(JSON.stringify([meta(7, 7, 'process_name', 'com.acme'), meta(9, 9, 'process_name', 'com.acme:push'), meta(7, 7, 'thread_name', 'main'),
		meta(9, 9, 'thread_name', 'push'), meta(9, 10, 'thread_name', 'sync'), span(7, 7, 'onCreate', 0, 900), span(9, 9, 'onReceive', 100, 300), span(9, 10, 'upload', 200, 100)]));
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	const page = await open(trace.id);
	assert.deepEqual(await heads(page), ['com.acme', 'main', 'com.acme:push', 'push', 'sync']);
	assert.equal(await head(page, 'com.acme:push').locator('.facts').innerText(), '2 threads');
	await page.click('[aria-label="Close com.acme:push"]');
	await page.waitForFunction(() => document.querySelectorAll('.threads .name').length === 3);
	assert.deepEqual(await heads(page), ['com.acme', 'main', 'com.acme:push']);
	await page.waitForFunction(() => new URL(location.href).searchParams.get('closed') === '9');
	await page.focus('canvas.calls');
	await page.keyboard.press('j'); // the next thread is in the closed process: it opens
	await page.waitForFunction(() => document.querySelectorAll('.threads .name').length === 5);
	await page.waitForFunction(() => new URL(location.href).searchParams.get('thread') === '9');
	await head(page, 'com.acme:push').locator('.name').click();
	await page.waitForFunction(() => new URL(location.href).searchParams.get('sel') === '9,10');
	await done(page, t);
});

test('scheduler states are drawn where they were, in their colours', async (t) => {
	const page = await open();
	const box = await head(page, '.acme.shop').locator('.track:text-is("States")').boundingBox();
	const at = async (ms) => pixel(page, await xOf(page, ms * 1e6), box.y + box.height - 1);
	assert.deepEqual(await at(60), await color(page, '--state-running'));
	assert.deepEqual(await at(200), await color(page, '--state-sleeping'));
	const top = await pixel(page, await xOf(page, 200e6), box.y + 1);
	assert.notDeepEqual(top, await color(page, '--state-sleeping'), 'sleeping is low, too');
	const { start_ns } = (await server.get(`/api/v1/traces/${id}`)).json;
	await page.goto(`${server.url}/traces/${id}?from=${start_ns + 299e6}&to=${start_ns + 302e6}`);
	await page.waitForSelector('[data-ready]');
	await settled(page);
	assert.deepEqual(await at(300.3), await color(page, '--state-runnable'), 'half a millisecond, from near');
	await done(page, t);
});

test('several threads are open at once on one axis, and the address holds them', async (t) => {
	const page = await open();
	await page.click('[aria-label="Open disk"]');
	await page.waitForSelector('[data-ready]:has-text("2 open threads")'); // the tracks below it have moved
	await page.click('[aria-label="Open late"]');
	await page.waitForURL((url) => url.searchParams.get('open')?.split(',').length === 3);
	assert.match(query(page).get('open'), new RegExp(`^${PID},${WORKER},${LATE}$`));
	await page.waitForFunction(() => document.querySelector('[data-ready]')?.textContent.includes('3 open threads'));
	await head(page, 'late').scrollIntoViewIfNeeded();
	await settled(page);
	const box = await page.locator('canvas.calls').boundingBox();
	await page.mouse.move(box.x + box.width / 2, box.y + 80);
	await page.keyboard.down('Control');
	await page.mouse.wheel(0, -300);
	await page.keyboard.up('Control');
	await settled(page);
	const url = page.url();
	const x = await xOf(page, 650e6);
	const y = (await head(page, 'late').boundingBox()).y + 30;
	await page.mouse.move(x, y);
	await page.waitForSelector('.tip:has-text("late work")');
	await page.reload();
	await page.waitForSelector('[data-ready]:has-text("3 open threads")');
	assert.equal(page.url(), url);
	await page.click('[aria-label="Close disk"]');
	await page.waitForSelector('[data-ready]:has-text("2 open threads")');
	await page.goBack();
	await page.waitForSelector('[data-ready]:has-text("3 open threads")');
	await done(page, t);
});

test('the time under the pointer goes through every track', async (t) => {
	const page = await open();
	const box = await page.locator('canvas.calls').boundingBox();
	await page.mouse.move(box.x + 400, box.y + 40);
	await painted(page);
	const lit = await page.evaluate(() => {
		const c = document.querySelector('canvas.over');
		const d = c.getContext('2d').getImageData(400, 0, 1, c.height).data;
		return [...Array(c.height).keys()].filter((y) => d[4 * y + 3] > 0).length / c.height;
	});
	assert.ok(lit > 0.9, `${lit} of the height`);
	await done(page, t);
});

test('notes show their kind: a lock wait, a counter, a collection', async (t) => {
	const page = await open();
	const tip = async (name, track, ms) => {
		await page.mouse.move(await xOf(page, ms * 1e6), await yOf(page, name, track));
		await page.waitForSelector('.tip');
		return page.locator('.tip').innerText();
	};
	assert.match(await tip('.acme.shop', 'Lock waits', 200), /held by\s+disk[^]*|for\s+201 ms/);
	assert.match(await tip('', 'Collections', 265), /young concurrent copying[^]*30\.0 ms/);
	const named = (await page.locator('.track:text-is("heap")').count()) > 0;
	assert.ok(named, 'the counter has a track');
	const counter = await page.locator('.track:text-is("heap")').first().boundingBox();
	await page.mouse.move(await xOf(page, 300e6), counter.y + 20);
	await page.waitForSelector('.tip:has-text("400")');
	await done(page, t);
});

test('an ANR is a span of the whole trace, and a band through every thread', async (t) => {
	const issue = (detail, cost, time) => JSON.stringify({ machine: 'HIGH', detail, cost, scene: `com.acme.${detail}`, stack: `0,1048574,1,${cost}\n1,30,1,${cost - 100}\n`,
		stackKey: '30|', tag: 'Trace_EvilMethod', process: 'com.acme.shop', time });
	const trace = await server.trace(`${issue('NORMAL', 1500, 1.7e12)}\n${issue('ANR', 5000, 1.7e12 + 9000)}\n`);
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	const { start_ns, end_ns } = (await server.get(`/api/v1/traces/${trace.id}`)).json;
	const { notes: [anr] } = (await server.get(`/api/v1/traces/${trace.id}/notes?kind=anr`)).json;
	assert.equal(anr.dur_ns, 5e9);
	const page = await open(trace.id);
	const box = await page.locator('canvas.calls').boundingBox();
	const x = (ns) => box.x + ((ns - start_ns) / (end_ns - start_ns)) * box.width;
	const red = (at) => page.evaluate((px) => {
		const c = document.querySelector('canvas.calls');
		const d = c.getContext('2d').getImageData(px, 0, 1, c.height).data;
		return [...Array(c.height).keys()].filter((y) => d[4 * y] > d[4 * y + 1] + 12).length / c.height;
	}, Math.round(at - box.x));
	await page.waitForFunction((px) => { // lanes come by themselves
		const [r, g] = document.querySelector('canvas.calls').getContext('2d').getImageData(px, 4, 1, 1).data;
		return r !== g;
	}, Math.round(x(anr.ts_ns + 2e9) - box.x));
	const [inside, outside] = [await red(x(anr.ts_ns + 2e9)), await red(x(anr.ts_ns - 1e9))];
	assert.ok(inside > 0.5 && outside < 0.1, `${inside} of the height inside, ${outside} outside`);
	await page.mouse.move(x(anr.ts_ns + 3e9), await yOf(page, '', 'ANR'));
	await page.waitForSelector('.tip:has-text("com.acme.ANR")');
	assert.match(await page.locator('.tip').innerText(), /what\s+ANR[^]*for\s+5\.00 s/);
	await done(page, t);
});

test('dragging with Shift over threads selects time and threads, and everything is of just that', async (t) => {
	const page = await open(id, '?open=none');
	const [x0, x1] = [await xOf(page, 310e6), await xOf(page, 660e6)];
	const [y0, y1] = [await yOf(page, 'disk'), await yOf(page, 'late')];
	await page.keyboard.down('Shift');
	await page.mouse.move(x0, y0);
	await page.mouse.down();
	await page.mouse.move(x1, y1, { steps: 5 });
	await page.mouse.up();
	await page.keyboard.up('Shift');
	await page.waitForSelector('text=of 2 threads');
	await page.waitForFunction(([begin, end]) => { // the pointer's line is where it is, not where the drag began
		const c = document.querySelector('canvas.over');
		const drawn = (x) => c.getContext('2d').getImageData(Math.round((x - c.getBoundingClientRect().x) * c.width / c.clientWidth) - 1, c.height - 4, 3, 1).data.some((v) => v > 0);
		return drawn(end) && !drawn(begin);
	}, [x0, x1]);
	const q = query(page);
	assert.equal(q.get('sel'), `${WORKER},${LATE}`);
	const range = `from=${q.get('a')}&to=${q.get('b')}`;
	const { methods } = (await server.get(`/api/v1/traces/${id}/methods?thread=${q.get('sel')}&${range}`)).json;
	assert.deepEqual(methods.map((m) => m.name), ['late work']);
	await tab(page, 'Methods');
	await page.waitForFunction(() => document.querySelectorAll('.methods tbody tr').length >= 1 && document.querySelector('.methods tbody .name').textContent.includes('late work'));
	await tab(page, 'Flame graph');
	await page.waitForSelector('[data-flame]');
	await page.locator('.flame canvas').focus();
	await page.keyboard.press('Home');
	const merged = (await server.get(`/api/v1/traces/${id}/flame?thread=${q.get('sel')}&${range}`)).json;
	assert.match(await page.locator('.panel[aria-label="Merged flame graph"] .keyed').innerText(), new RegExp(`wall ${(merged.value / 1e6).toFixed(1)} ms`));
	await tab(page, 'Thread states');
	const lines = page.locator('.panel[aria-label="Thread states"] tbody tr');
	await lines.nth(1).waitFor();
	assert.deepEqual((await lines.locator('th').allInnerTexts()).map((x) => x.split(/\s/)[0]), ['disk', 'late']);
	const { sums } = (await server.get(`/api/v1/traces/${id}/notes/sums?thread=${LATE}&${range}`)).json;
	const ran = sums.find((x) => x.text === 'running').dur_ns;
	assert.ok(Math.abs(ran - 50e6) < 2e6, 'it ran from 610 to 660 ms');
	assert.ok((await lines.nth(1).innerText()).includes(`${(ran / 1e6).toFixed(1)} ms`));
	await page.reload();
	await page.waitForSelector('text=of 2 threads');
	await page.click('text=Clear the selection');
	await page.waitForSelector('text=of 2 threads', { state: 'detached' });
	await done(page, t);
});

test('a link to a time outside the trace shows the whole trace', async (t) => {
	const shown = async (page) => (await page.locator('[data-ready]').innerText()).replaceAll(/\s+/g, ' ');
	const page = await open();
	const whole = await shown(page);
	assert.match(whole, /The view shows 1\.00 s of 1\.00 s\.$/);
	await page.goto(`${server.url}/traces/${id}?from=9000000000000000&to=9000000000001000`);
	await page.waitForSelector('[data-ready]');
	await settled(page);
	assert.equal(await shown(page), whole);
	assert.ok((await page.locator('.minimap .window').boundingBox()).width > 900, 'all of it is in view');
	await done(page, t);
});

test('a drag on the ruler selects time', async (t) => {
	const page = await open();
	const r = await page.locator('canvas.ruler').boundingBox();
	await page.mouse.move(r.x + 100, r.y + 10);
	await page.mouse.down();
	await page.mouse.move(r.x + 300, r.y + 10, { steps: 4 });
	await page.mouse.up();
	await page.waitForSelector('text=selected');
	assert.equal(query(page).get('sel'), null, 'the threads stay as they were');
	assert.ok(Number(query(page).get('b')) > Number(query(page).get('a')));
	await done(page, t);
});

/* Pixels in the colour of arrows. */
async function arrowPixels(page) {
	await painted(page);
	return page.evaluate(() => {
		const c = document.querySelector('canvas.over');
		const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
		let n = 0;
		for (let i = 0; i < d.length; i += 4) if (d[i] > 150 && d[i + 1] < 90 && d[i + 2] > 80 && d[i + 3] > 200) n++;
		return n;
	});
}

test('the start of a thread leads to that thread and back, by pointer and key', async (t) => {
	const page = await open();
	await page.mouse.move(await xOf(page, 400e6), await yOf(page, '.acme.shop', 'Thread starts'));
	await painted(page);
	const none = await arrowPixels(page);
	await page.mouse.move(await xOf(page, 50.05e6), await yOf(page, '.acme.shop', 'Thread starts'));
	await page.waitForSelector('.tip');
	assert.ok((await arrowPixels(page)) > none + 50, 'an arrow to the thread that begins');
	await page.locator('canvas.calls').focus();
	for (const name of ['late', '.acme.shop']) {
		await page.keyboard.press('f');
		await page.waitForSelector(`.threads .name[aria-pressed=true]:has-text("${name}")`);
	}
	await done(page, t);
});

test('an annotation is a line through every track', async (t) => {
	const { start_ns } = (await server.get(`/api/v1/traces/${id}`)).json;
	const made = await server.post(`/api/v1/traces/${id}/annotations`, JSON.stringify({ ts_ns: start_ns + 720e6, text: 'here' }), { key: server.write, headers: { 'Content-Type': 'application/json' } });
	assert.equal(made.status, 201, made.text);
	const page = await open();
	const box = await page.locator('canvas.calls').boundingBox();
	const x = Math.round((await xOf(page, 720e6)) - box.x);
	const lit = await page.evaluate(([at]) => {
		const c = document.querySelector('canvas.calls');
		const d = [at - 1, at, at + 1].map((px) => c.getContext('2d').getImageData(px, 0, 1, c.height).data);
		const hit = (p, y) => p[4 * y] > 140 && p[4 * y + 1] < 120 && p[4 * y + 2] > 70;
		return [...Array(c.height).keys()].filter((y) => d.some((p) => hit(p, y))).length / c.height;
	}, [x]);
	assert.ok(lit > 0.9, `${lit} of the height`);
	await done(page, t);
	assert.equal((await server.ask('DELETE', `/api/v1/traces/${id}/annotations/${made.json.id}`)).status, 204);
});

for (const [what, track, at, says] of [['a lock wait leads to its holder', 'Lock waits', 200e6, 'held by'], ['a call to another process leads to the thread that answers', 'Binder calls', 740e6, 'answered by']]) test(`${what} and back, by key`, async (t) => {
	const page = await open();
	await page.mouse.move(await xOf(page, 400e6), await yOf(page, '.acme.shop', track));
	await painted(page);
	const none = await arrowPixels(page);
	await page.mouse.move(await xOf(page, at), await yOf(page, '.acme.shop', track));
	await page.waitForSelector(`.tip:has-text("${says}")`);
	const arrow = await arrowPixels(page);
	assert.ok(arrow > none + 50, `${arrow} pixels of an arrow, ${none} without`);
	await page.locator('canvas.calls').focus();
	await page.keyboard.press('f');
	await page.waitForSelector('.threads .name[aria-pressed=true]:has-text("disk")');
	assert.match(await page.locator('.timeline .keyed').innerText(), /At disk; f goes back/);
	await page.keyboard.press('f');
	await page.waitForSelector('.threads .name[aria-pressed=true]:has-text(".acme.shop")');
	await done(page, t);
});

test('notes are stepped through by key, and announce their kind', async (t) => {
	const page = await open();
	await page.locator('canvas.calls').focus();
	const said = page.locator('.timeline .keyed');
	await page.keyboard.press('.');
	await page.waitForFunction(() => /Thread starts/.test(document.querySelector('.timeline .keyed').textContent));
	assert.match(await said.innerText(), /starts late; f follows/);
	await page.keyboard.press('.');
	await page.waitForFunction(() => /Lock waits/.test(document.querySelector('.timeline .keyed').textContent));
	assert.match(await said.innerText(), /held by disk; f follows/);
	await page.keyboard.press(',');
	await page.waitForFunction(() => /Thread starts/.test(document.querySelector('.timeline .keyed').textContent));
	await page.keyboard.press('f');
	await page.waitForSelector('.threads .name[aria-pressed=true]:has-text("late")');
	await done(page, t);
});

test('a thread that runs again was woken by another', async (t) => {
	const trace = (await server.get(`/api/v1/traces/${id}`)).json;
	const page = await open(id, `?from=${trace.start_ns + 299_000_000}&to=${trace.start_ns + 302_000_000}`);
	const answer = page.waitForResponse(/kind=wakeup/);
	await page.mouse.move(await xOf(page, 300_300_000), await yOf(page, '.acme.shop', 'States'));
	await answer;
	await page.locator('canvas.calls').focus();
	await painted(page);
	await page.keyboard.press('f');
	await page.waitForSelector('.threads .name[aria-pressed=true]:has-text("disk")');
	await done(page, t);
});

test('everything by keyboard: threads, rows, range, set of threads', async (t) => {
	const page = await open();
	await page.locator('canvas.calls').focus();
	const focused = (name) => page.waitForSelector(`.threads .name[aria-pressed=true]:has-text("${name}")`);
	await page.keyboard.press('j');
	await focused('disk');
	await page.keyboard.press('o');
	await page.waitForSelector('[aria-label="Close disk"]');
	await page.keyboard.press('O');
	await page.waitForSelector('[aria-label="Open .acme.shop"]');
	await page.keyboard.press('k');
	await focused('.acme.shop');
	await page.keyboard.press('w');
	await page.keyboard.press('v');
	await page.waitForFunction(() => new URL(location.href).searchParams.get('b'));
	await settled(page);
	const q = query(page);
	assert.ok(Math.abs(Number(q.get('a')) - Number(q.get('from'))) <= 1 && Math.abs(Number(q.get('b')) - Number(q.get('to'))) <= 1);
	await page.keyboard.press('Shift+ArrowLeft');
	await settled(page);
	assert.ok(Number(query(page).get('b')) < Number(q.get('b')), 'its end moves');
	await page.keyboard.press('j');
	await focused('disk');
	await page.keyboard.press('x');
	await page.keyboard.press('j');
	await focused('late');
	await page.keyboard.press('x');
	await page.waitForSelector('text=of 2 threads');
	await page.keyboard.press('Escape');
	await page.waitForSelector('text=of 2 threads', { state: 'detached' });
	await page.keyboard.press('?');
	await page.waitForSelector('dialog[open] >> text=follow the arrow');
	await page.keyboard.press('Escape');
	await page.keyboard.press('0');
	await done(page, t);
});

test('the list of threads is one stop of Tab; arrows, Enter and letters act in it', async (t) => {
	const page = await open();
	const at = () => page.evaluate(() => document.activeElement.closest('.threads [role=treeitem]')?.querySelector('.name .text').textContent ?? null);
	const arrives = (name) => page.waitForFunction((n) => document.activeElement.matches('[role=treeitem][tabindex="0"]') && document.activeElement.querySelector('.text').textContent === n, name);
	await page.locator('canvas.calls').focus();
	await page.keyboard.press('Tab');
	await arrives('.acme.shop');
	await page.keyboard.press('Tab');
	assert.equal(await at(), null, 'a second Tab leaves the list');
	await page.keyboard.press('Shift+Tab');
	await arrives('.acme.shop');
	assert.equal(await page.locator('.threads [tabindex="0"]').count(), 1);
	await page.keyboard.press('ArrowDown');
	await arrives('disk');
	assert.equal(await page.locator('.threads .name[aria-pressed=true] .text').innerText(), '.acme.shop', 'arrows alone select nothing');
	await page.keyboard.press('ArrowRight');
	await page.waitForSelector('[role=treeitem][aria-expanded=true]:focus');
	await page.keyboard.press('ArrowLeft');
	await page.waitForSelector('[role=treeitem][aria-expanded=false]:focus');
	await page.keyboard.press('Enter');
	await page.waitForSelector('[role=treeitem][aria-selected=true][aria-expanded=true]:focus:has-text("disk")');
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('p');
	await page.waitForFunction(() => new URL(location.href).searchParams.get('pin'));
	await arrives('late');
	await page.keyboard.press('h');
	await page.waitForFunction(() => new URL(location.href).searchParams.get('hide'));
	await page.waitForFunction(() => document.activeElement.matches('[role=treeitem]'));
	await page.keyboard.press('End');
	await page.waitForFunction(() => document.activeElement === document.querySelector('.threads').lastElementChild);
	await page.keyboard.press('Shift+F10');
	await page.waitForSelector('.menu >> text=Hide');
	await page.keyboard.press('Escape');
	await page.waitForFunction(() => document.activeElement === document.querySelector('.threads').lastElementChild);
	await done(page, t);
});

test('rows are virtual: 900 deep, a few at a time or all', async (t) => {
	const page = await open(deep);
	const rows = page.locator('.threads .bottom');
	assert.equal(await rows.innerText(), 'All 900 rows');
	const height = () => page.locator('.sheet').evaluate((e) => e.clientHeight);
	assert.ok((await height()) < 800);
	await rows.press('Enter'); // a click may miss it while the list still scrolls to it
	await page.waitForFunction(() => document.querySelector('.sheet').clientHeight > 900 * 18);
	assert.match(query(page).get('open'), /f/);
	const tall = await page.evaluate(() => Math.max(...[...document.querySelectorAll('.timeline canvas')].map((c) => c.height)));
	assert.ok(tall < 1000, `the tallest canvas has ${tall} pixels`);
	await page.locator('canvas.calls').focus();
	for (let i = 0; i < 6; i++) await page.keyboard.press('PageDown');
	await settled(page);
	const box = await page.locator('canvas.calls').boundingBox();
	const trace = (await server.get(`/api/v1/traces/${deep}`)).json;
	const x = box.x + (2e6 / (trace.end_ns - trace.start_ns)) * box.width * 0.5;
	await page.mouse.move(x, box.y + box.height / 2);
	await page.waitForSelector('.tip');
	const depth = Number(/depth\s+(\d+)/.exec(await page.locator('.tip').innerText())[1]);
	const top = await page.locator('.scroller').evaluate((e) => e.scrollTop);
	assert.ok(Math.abs(depth - (top + box.height / 2) / 18) < 3, `row ${depth} at ${top}`);
	await done(page, t);
});

test('two threads of a real recording with the kernel’s states', reads(sample('merge/javac-and-kernel')), async (t) => {
	const folder = sample('merge/javac-and-kernel');
	const part = (name) => fs.readFileSync(path.join(folder, name));
	const { body, headers } = form(['trace', part('rhea-atrace.bin.zst')], ['system', part('system.perfetto-trace')], ['threads', part('threads.txt')]);
	const real = await server.trace(body, { headers });
	const page = await open(real.id, '?idle=1');
	const all = (await server.get(`/api/v1/traces/${real.id}/threads`)).json.threads;
	assert.equal(await page.locator('.threads .name[aria-pressed]').count() > 3, true);
	assert.ok((await page.locator('.threads li').count()) < all.length, 'heads are virtual');
	await page.locator('.scroller').evaluate((e) => (e.scrollTop = 3000));
	await settled(page);
	assert.ok((await page.locator('.threads li').count()) < 90);
	const tid = 29496;
	const { start_ns, end_ns } = (await server.get(`/api/v1/traces/${real.id}`)).json;
	const states = (await server.get(`/api/v1/traces/${real.id}/notes/sums`)).json.sums.filter((x) => x.kind === 'state');
	const sums = states.filter((x) => x.tid === tid);
	const lasted = new Map();
	for (const x of states) if (x.tid !== null) lasted.set(x.tid, (lasted.get(x.tid) ?? 0) + x.dur_ns);
	assert.ok(lasted.size > 3);
	for (const [of, ns] of lasted) assert.ok(ns <= end_ns - start_ns, `${of}: ${ns}`); // the kernel's recording continues after the trace
	await page.goto(`${server.url}/traces/${real.id}?thread=${tid}&open=29495,${tid}&tab=states`);
	await page.waitForSelector('[data-ready]:has-text("2 open threads")');
	const ran = sums.find((x) => x.text === 'running').dur_ns;
	await page.waitForFunction((want) => document.querySelector('.states tbody').textContent.includes(want), ran >= 1e9 ? `${(ran / 1e9).toFixed(2)} s` : 'ms');
	await done(page, t);
});

test('a trace of the kernel alone is as long as its states, and its threads come by what they ran', async (t) => {
	const stamp = (us) => (4000 + us / 1e6).toFixed(6);
	const turn = (us, [from, fromTid], state, [to, toTid]) => `${from}-${fromTid} (${fromTid || '-----'}) [000] d..2 ${stamp(us)}: sched_switch: prev_comm=${from} prev_pid=${fromTid} prev_prio=120 prev_state=${state} ==> next_comm=${to} next_pid=${toTid} next_prio=120`;
	const [idle, short, long] = [['<idle>', 0], ['short', 501], ['long', 502]];
	const text = ['# tracer: nop', '#', turn(0, idle, 'R', short), turn(100_000, short, 'S', long), turn(800_000, long, 'S', short), turn(1_000_000, short, 'S', idle), ''].join('\n');
	const kernel = await server.trace(text, { query: { scenario: 'kernel_alone' } });
	assert.equal(kernel.state, 'ready', JSON.stringify(kernel.error));
	assert.deepEqual([kernel.summary.slices, kernel.summary.timed, kernel.summary.duration_ns], [0, true, 1_000_000_000]);
	const page = await open(kernel.id);
	assert.deepEqual((await heads(page)).slice(0, 2), ['long', 'short']);
	assert.equal(await head(page, 'long').locator('.facts').innerText(), '700 ms');
	assert.equal(await page.locator('.threads em').count(), 0, 'none is the main thread of a traced process');
	assert.match(await page.locator('[data-ready]').innerText(), /^No calls were recorded\. The view shows 1\.00 s of 1\.00 s\.$/);
	const [x, y] = [await page.locator('canvas.calls').boundingBox().then((b) => b.x + b.width * 0.4), await yOf(page, 'long')];
	assert.deepEqual(await pixel(page, x, y), await color(page, '--state-running'));
	await page.waitForSelector('.minimap .strip path[d^=M]'); // threads that run
	await tab(page, 'Thread states');
	const rows = await page.waitForFunction(() => {
		const all = [...document.querySelectorAll('.states tbody tr')].map((tr) => tr.innerText.replaceAll(/\s+/g, ' '));
		return all.length > 1 && all;
	}).then((x) => x.jsonValue());
	assert.match(rows[0], /^long 502 700 ms/);
	assert.match(rows[1], /^short 501 /, 'of all threads, unless one is chosen');
	/* nor does the recorder's run count as one of the scenario */
	await until(async () => ((await server.get(`/api/v1/traces/${kernel.id}`)).json.rollup_state === 'counted' ? true : undefined), 'it is looked at');
	assert.equal((await server.get('/api/v1/fleet/scenarios')).json.groups.some((x) => x.scenario === 'kernel_alone'), false);
	await done(page, t);
});

test('a trace of counters alone has a timeline of them', async (t) => {
	const text = ['# tracer: nop', '#', ...Array.from({ length: 50 }, (_, i) => `app-100 (100) [000] ...1 ${(4000 + i / 100).toFixed(6)}: tracing_mark_write: C|100|heap_kb|${1000 + i * 20}`), ''].join('\n');
	const counters = await server.trace(text, { query: { scenario: 'counters_alone' } });
	assert.deepEqual([counters.state, counters.summary.slices, counters.summary.duration_ns], ['ready', 0, 490_000_000]);
	const page = await open(counters.id);
	assert.match(await page.locator('[data-ready]').innerText(), /The view shows 490 ms of 490 ms\.$/);
	assert.equal(await page.locator('.threads .track').innerText(), 'heap_kb');
	await page.waitForSelector('.minimap .strip path[d^=M]'); // the counter's shape
	const box = await page.locator('canvas.calls').boundingBox();
	await page.mouse.move(box.x + box.width / 2, box.y + 20);
	await page.waitForSelector('.tip:has-text("heap_kb"):has-text("MiB")'); // in the unit of its name
	await page.keyboard.press('Escape');
	await page.locator('#notes tbody tr').first().waitFor();
	assert.equal(await page.locator('#notes tbody tr').first().locator('td').first().innerText(), '0');
	await done(page, t);
});

test('events of a system trace that began before the calls are shown from the first call on', async (t) => {
	const { body, headers } = form(['trace', sampleTrace(400)], ['system', systemTrace()]);
	const both = await server.trace(body, { headers });
	assert.equal(both.state, 'ready', JSON.stringify(both.error));
	const page = await open(both.id, '?tab=events&note=state');
	await page.locator('#notes tbody tr').first().waitFor();
	const at = await page.locator('#notes tbody tr td:first-child').allInnerTexts();
	assert.ok(at.length > 0 && at.every((x) => !/^[-−]/.test(x)), at.join());
	await done(page, t);
});

for (const [scheme, width] of THEMES)
	test(`the timeline can be read in ${scheme} at ${width}`, async (t) => {
		const { start_ns } = (await server.get(`/api/v1/traces/${id}`)).json;
		const page = await open(id, `?open=${PID},${WORKER}&tab=states&a=${start_ns + 100e6}&b=${start_ns + 400e6}`, scheme, width);
		assert.deepEqual(await unreadable(page), []);
		await until(async () => ((await page.locator('.states tbody tr').count()) > 0 ? true : undefined), 'states');
		await done(page, t);
	});

test('without calls a trace still shows its content, and errors state a remedy', async (t) => {
	const page = await open();
	await page.route(/notes\/sums/, (r) => r.fulfill({ status: 503, json: { error: { status: 'busy', message: 'the server is busy' } } }));
	await page.reload();
	await page.waitForSelector('[role=alert] >> text=the server is busy');
	await page.unroute(/notes\/sums/);
	await page.click('text=Try again');
	await page.waitForSelector('[data-ready]');
	/* states, notes and the call tree: a pending load is reported, and a failed one can be retried */
	const { start_ns } = (await server.get(`/api/v1/traces/${id}`)).json;
	for (const [panel, address, there] of [['Thread states', /notes\/sums\?.*from/, '.states tbody tr'], ['Events and counters', /\/notes\?.*kind=/, 'tbody tr'],
		['Call tree', /\/flame\?/, '.treerow[aria-level="2"]']]) {
		let fail = true;
		let free;
		const held = new Promise((go) => { free = go; });
		await page.route(address, async (r) => {
			await held;
			return fail ? r.fulfill({ status: 503, json: { error: { status: 'busy', message: 'the server is busy' } } }) : r.continue();
		});
		await page.goto(`${server.url}/traces/${id}?a=${start_ns + 100e6}&b=${start_ns + 700e6}`);
		await tab(page, panel === 'Events and counters' ? 'Events' : panel);
		const box = page.getByRole('region', { name: panel });
		await box.locator('.busy').waitFor();
		free();
		await box.locator('[role=alert] >> text=the server is busy').waitFor();
		fail = false;
		await box.getByRole('button', { name: 'Try again' }).click();
		await box.locator(there).first().waitFor();
		await page.unroute(address);
	}
	await done(page, t);
});
