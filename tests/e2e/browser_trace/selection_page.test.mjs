/*
 * A call that is selected in the timeline: by mouse and keyboard, in the details, in the address.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { violations } from '../axe.mjs';
import { THEMES, copied, launch, painted, settled, unreadable, visit } from '../browser.mjs';
import { btrace } from '../make.mjs';
import { startServer } from '../server.mjs';

const shots = process.env.SCREENSHOTS;
const MAIN = 4000, WORKER = 4001, PID = 21010;
const MS = 1e6;
const NAMES = ['com.acme.app.Runner.run', 'com.acme.io.Loader.load', 'com.acme.parser.FileParser.parseFiles', 'com.acme.io.Loader.read', 'com.acme.ui.Screen.draw', 'com.acme.work.Worker.work'];
const [RUN, LOAD, PARSE, READ, DRAW, WORK] = [1, 2, 3, 4, 5, 6];
let server, browser, id, states, start;
const ending = [];

/* A main thread that waits for 30 of the 50 ms of a call. */
function kernelText() {
	const stamp = (ms) => (4000 + ms / 1000).toFixed(6);
	const mark = (ms, text) => `app-${PID} (${PID}) [000] ...1 ${stamp(ms)}: tracing_mark_write: ${text}`;
	const turn = (ms, from, state, to) => `x-${from} (${from || '-----'}) [000] d..2 ${stamp(ms)}: sched_switch: prev_comm=x prev_pid=${from} prev_prio=120 prev_state=${state} ==> next_comm=x next_pid=${to} next_prio=120`;
	return `# tracer: nop\n#\n${[turn(0, 0, 'R', PID), mark(10, `B|${PID}|load`), turn(20, PID, 'S', 0), turn(50, 0, 'R', PID), mark(60, `E|${PID}`), turn(100, PID, 'S', 0)].join('\n')}\n`;
}

before(async () => {
	if (shots) fs.mkdirSync(shots, { recursive: true });
	server = await startServer({ after: (f) => ending.push(f) });
	await server.put('/api/v1/builds/chosen/methods', NAMES.map((n, i) => `${i + 1},1,${n.replace(/\.(\w+)$/, ' $1')} ()V`).join('\n') + '\n');
	const calls = [[MAIN, PARSE, 12, 20], [MAIN, READ, 33, 5], [MAIN, LOAD, 10, 30], [MAIN, LOAD, 50, 10], [MAIN, DRAW, 70, 20], [MAIN, RUN, 1, 100], [WORKER, LOAD, 45, 4], [WORKER, WORK, 1, 60]];
	const made = await server.trace(btrace(calls.map(([tid, method, at, dur]) => [tid, method, at * MS, dur * MS]), { pid: MAIN }), { query: { build_id: 'chosen' } });
	assert.equal(made.state, 'ready', JSON.stringify(made.error));
	({ id, start_ns: start } = made);
	const waited = await server.trace(kernelText(), {});
	assert.equal(waited.state, 'ready', JSON.stringify(waited.error));
	states = waited.id;
	browser = await launch();
});

after(async () => {
	await browser?.close();
	for (const f of ending) await f();
});

async function open(query = '', { trace = id, scheme = 'light', width = 1280, height = 900 } = {}) {
	const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height }, permissions: ['clipboard-read', 'clipboard-write'] });
	const page = await context.newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	await visit(page, server, `/traces/${trace}${query}`);
	await page.waitForSelector('[data-ready]');
	await settled(page);
	return page;
}

async function done(page, t) {
	if (shots) await page.screenshot({ path: path.join(shots, `selection-${t.name.replaceAll(/\W+/g, '-').slice(0, 60)}.png`) });
	assert.deepEqual(page.problems, []);
	await page.context().close();
}

const query = (page) => new URL(page.url()).searchParams;
const pane = (page) => page.getByRole('region', { name: 'The selected call' });
const title = (page) => pane(page).locator('h3').first();
const shown = (page, name) => page.waitForFunction((n) => document.querySelector('.callpane h3')?.textContent === n, name);

/* Where a moment (ms after the first call's begin less 1) is on a row of a thread. */
async function point(page, ms, row, thread = 0) {
	const box = await page.locator('canvas.calls').boundingBox();
	const li = await page.locator('.threads li').nth(thread).boundingBox();
	const q = query(page);
	const trace = (await server.get(`/api/v1/traces/${id}`)).json;
	const from = Number(q.get('from') ?? trace.start_ns), to = Number(q.get('to') ?? trace.end_ns);
	return [box.x + ((start + (ms - 1) * MS - from) / (to - from)) * box.width, li.y + 4 + row * 18 + 8];
}

const click = async (page, ...at) => page.mouse.click(...(await point(page, ...at)));

/* The facts of the pane by their names. */
const facts = (page) => pane(page).locator('.facts').evaluate((dl) => {
	const terms = [...dl.querySelectorAll('dt')];
	return Object.fromEntries(terms.map((dt) => [dt.textContent, dt.nextElementSibling.textContent.trim()]));
});
const lines = (page, name) => pane(page).getByRole('region', { name }).locator('li').evaluateAll((all) => all.map((li) => [...li.children].map((c) => c.textContent)));

/* How many pixels over the calls have the outline's colour. */
const outlined = (page) => page.evaluate(() => {
	const c = document.querySelector('canvas.over');
	const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
	const v = getComputedStyle(document.documentElement).getPropertyValue('--ink').trim();
	const [r, g, b] = [1, 3, 5].map((i) => parseInt(v.slice(i, i + 2), 16));
	let n = 0;
	for (let i = 0; i < d.length; i += 4) if (d[i] === r && d[i + 1] === g && d[i + 2] === b && d[i + 3] === 255) n++;
	return n;
});

test('a click selects a call: outline, times, stack, callees, neighbours; the address keeps it', async (t) => {
	const page = await open();
	assert.equal(await outlined(page), 0);
	await click(page, 20, 1);
	await shown(page, NAMES[LOAD - 1]);
	assert.equal(query(page).get('call'), `${MAIN}.${start + 9 * MS}.1`);
	assert.ok((await outlined(page)) > 300, 'an outline is seen');
	const [side, inner] = await Promise.all(['.bench .side', '.callpane'].map((of) => page.locator(of).boundingBox()));
	assert.deepEqual([inner.x, inner.y], [side.x, side.y], 'the pane fills its place, or its fixed title would have a gap above');
	const reported = await facts(page);
	assert.equal(reported.wall, '30.0 ms');
	assert.match(reported.self, /^5\.00 ms 17 %/);
	assert.match(reported['of its caller'], /^30/);
	assert.match(reported.Thread, new RegExp(`${MAIN}`));
	assert.equal(reported['starts at'], '9.00 ms');
	assert.deepEqual((await lines(page, 'Stack')).map(([n]) => n), ['Runner.run', 'Loader.load']);
	assert.deepEqual((await lines(page, 'Callees')).map(([n, d]) => [n, d]), [['FileParser.parseFiles', '20.0 ms'], ['Loader.read', '5.00 ms']], 'the longest first');

	await page.reload();
	await shown(page, NAMES[LOAD - 1]);
	await settled(page);
	assert.ok((await outlined(page)) > 300);

	await page.getByRole('button', { name: 'Next call of the method on this thread' }).click();
	await page.waitForFunction((at) => location.search.includes(at), `call=${MAIN}.${start + 49 * MS}.1`);
	await page.waitForFunction(() => document.querySelector('.callpane .facts strong')?.textContent === '10.0 ms');
	assert.ok(await page.getByRole('button', { name: 'Next call of the method on this thread' }).isDisabled(), 'it was the last');
	await page.getByRole('button', { name: 'Previous call of the method on this thread' }).click();
	await page.waitForFunction(() => document.querySelector('.callpane .facts strong')?.textContent === '30.0 ms');

	await pane(page).getByRole('region', { name: 'Stack' }).getByRole('button', { name: 'Runner.run' }).click();
	await shown(page, NAMES[RUN - 1]);
	await pane(page).getByRole('region', { name: 'Callees' }).getByRole('button', { name: 'Screen.draw' }).click();
	await shown(page, NAMES[DRAW - 1]);
	assert.deepEqual(await lines(page, 'Callees'), [], 'it makes none');

	await page.getByRole('button', { name: 'Copy link' }).click();
	await page.getByRole('button', { name: 'Copied' }).waitFor();
	assert.equal(await page.evaluate(() => navigator.clipboard.readText()), page.url());

	await page.locator('canvas.calls').focus();
	await page.keyboard.press('Escape');
	await pane(page).waitFor({ state: 'detached' });
	assert.equal(query(page).get('call'), null);
	await painted(page);
	assert.equal(await outlined(page), 0);
	await done(page, t);
});

test('a click needs one answer of the worker for the outline and the details', async (t) => {
	const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
	const page = await context.newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	await page.addInitScript(() => { // questions about a call by its begin are never answered
		const post = Worker.prototype.postMessage;
		Worker.prototype.postMessage = function (m, ...more) {
			if (m.kind !== 'call') post.call(this, m, ...more);
		};
	});
	await visit(page, server, `/traces/${id}`);
	await page.waitForSelector('[data-ready]');
	await settled(page);
	await click(page, 20, 1);
	await shown(page, NAMES[LOAD - 1]);
	assert.ok((await outlined(page)) > 300);
	assert.equal((await facts(page)).wall, '30.0 ms');
	assert.deepEqual((await lines(page, 'Stack')).map(([n]) => n), ['Runner.run', 'Loader.load']);
	assert.deepEqual((await lines(page, 'Callees')).map(([n]) => n), ['FileParser.parseFiles', 'Loader.read']);
	await click(page, 80, 1);
	await shown(page, NAMES[DRAW - 1]);
	await done(page, t);
});

test('a click outside all calls selects none, a drag keeps the selection', async (t) => {
	const page = await open();
	await click(page, 80, 1);
	await shown(page, NAMES[DRAW - 1]);
	await page.mouse.move(...(await point(page, 30, 0)));
	await page.mouse.down();
	await page.mouse.move(...(await point(page, 50, 0)), { steps: 4 });
	await page.mouse.up();
	await settled(page);
	assert.match(query(page).get('call'), /^4000\./, 'a drag is no click');
	await page.goBack();
	await pane(page).waitFor({ state: 'detached' });
	await page.goForward();
	await shown(page, NAMES[DRAW - 1]);
	await click(page, 95, 1);
	await pane(page).waitFor({ state: 'detached' });
	await done(page, t);
});

test('calls of the method are stepped through in the trace, by a link too', async (t) => {
	const page = await open(`?open=${MAIN}&call=${MAIN}.${start + 9 * MS}.1`);
	await shown(page, NAMES[LOAD - 1]);
	const next = page.getByRole('button', { name: 'Next call of the method in the trace' });
	await next.click();
	await page.waitForFunction((at) => location.search.includes(at), `call=${WORKER}.${start + 44 * MS}.1`);
	await page.waitForFunction(() => document.querySelector('.callpane .facts strong')?.textContent === '4.00 ms');
	assert.equal(query(page).get('thread'), String(WORKER), 'its thread is looked at');
	await next.click();
	await page.waitForFunction((at) => location.search.includes(at), `call=${MAIN}.${start + 49 * MS}.1`);
	await page.waitForFunction(() => document.querySelector('.callpane .facts strong')?.textContent === '10.0 ms');
	assert.ok(await next.isDisabled());

	await page.goto(`${server.url}/traces/${id}?open=none&call=${WORKER}.${start}.0`);
	await shown(page, NAMES[WORK - 1]);
	await page.goto(`${server.url}/traces/${id}?call=${MAIN}.${start + 1}.0`);
	await page.waitForSelector('.callpane >> text=No loaded call starts there');
	await page.goto(`${server.url}/traces/${id}?call=999.1.0`);
	await page.waitForSelector('.callpane >> text=No loaded call starts there');
	await page.goto(`${server.url}/traces/${id}?call=never`);
	await page.waitForSelector('.notice:has-text("call=never")');
	await done(page, t);
});

test('a double click zooms to the call, whatever comes between the clicks', async (t) => {
	const page = await open();
	const view = () => ['from', 'to'].map((n) => (Number(query(page).get(n)) - start) / MS + 1);
	const zoomed = async (from, to) => {
		await page.waitForFunction(([a, b]) => {
			const q = new URL(location.href).searchParams;
			return Math.abs(Number(q.get('from')) - a) < 2e6 && Math.abs(Number(q.get('to')) - b) < 2e6;
		}, [start + (from - 1) * MS, start + (to - 1) * MS]);
		await settled(page);
	};
	await page.mouse.dblclick(...(await point(page, 20, 2)));
	await zoomed(12, 32);
	await shown(page, NAMES[PARSE - 1]);
	assert.ok(view()[0] <= 12 && view()[1] >= 32, 'all of it is in view');
	await page.locator('canvas.calls').focus();
	await page.keyboard.press('0');
	await zoomed(1, 101);
	/* slowly: its details come between the clicks */
	const [x, y] = await point(page, 80, 1);
	await page.mouse.click(x, y);
	await shown(page, NAMES[DRAW - 1]);
	await page.mouse.down({ clickCount: 2 });
	await page.mouse.up({ clickCount: 2 });
	await zoomed(70, 90);
	/* a double click in the details does not zoom */
	await pane(page).locator('.facts dt').first().dblclick();
	await settled(page);
	await zoomed(70, 90);
	await done(page, t);
});

test('a right click offers what the flame graph offers', async (t) => {
	const page = await open();
	const menu = page.getByRole('menu');
	const offered = async () => (await menu.getByRole('menuitem').allInnerTexts()).join();
	await page.mouse.click(...(await point(page, 20, 1)), { button: 'right' });
	await menu.waitFor();
	const here = await offered();
	assert.equal(await menu.locator('p').innerText(), 'Loader.load');
	await page.keyboard.press('Escape');
	await menu.waitFor({ state: 'detached' });
	await page.locator('.flame canvas').first().focus();
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('m');
	await menu.waitFor();
	assert.equal(await menu.locator('p').innerText(), 'Loader.load');
	assert.equal(here, await offered());
	await page.keyboard.press('Escape');

	await page.mouse.click(...(await point(page, 20, 1)), { button: 'right' });
	await menu.getByRole('menuitem', { name: 'Without this method' }).click();
	await page.waitForFunction(() => location.search.includes('drop'));
	await page.locator('.step').first().waitFor();

	/* by key, of the selected call */
	await page.locator('canvas.calls').focus();
	await page.keyboard.press('Shift+F10');
	await page.waitForSelector('.keyed:has-text("No call is selected")');
	await click(page, 80, 1);
	await shown(page, NAMES[DRAW - 1]);
	await page.locator('canvas.calls').focus();
	await page.keyboard.press('Shift+F10');
	await menu.waitFor();
	assert.equal(await menu.locator('p').innerText(), 'Screen.draw');
	assert.equal(await copied(page, () => menu.getByRole('menuitem', { name: 'Copy stack' }).click()), `\tat ${NAMES[DRAW - 1]}\n\tat ${NAMES[RUN - 1]}`);
	await done(page, t);
});

test('labels keep the method where boxes are narrow', async (t) => {
	const page = await open();
	await page.addInitScript(() => {
		globalThis.written = new Set();
		const { fillText } = CanvasRenderingContext2D.prototype;
		CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
			globalThis.written.add(text);
			return fillText.call(this, text, ...at);
		};
	});
	const written = async (width) => {
		await page.setViewportSize({ width, height: 900 });
		await page.reload();
		await page.waitForSelector('[data-ready]');
		await page.waitForSelector('[role=tablist]');
		await settled(page);
		return [...(await page.evaluate(() => [...globalThis.written]))];
	};
	assert.ok((await written(1280)).includes('FileParser.parseFiles'));
	const narrow = await written(620);
	assert.ok(narrow.includes('…parseFiles'), narrow.join());
	assert.ok(!narrow.some((l) => /^(File|Load|Scr).*…$/.test(l)), narrow.join());
	await done(page, t);
});

test('a tooltip does not cover its call', async (t) => {
	const page = await open('', { height: 760 });
	const tip = page.locator('.tip');
	const covers = async (x, top, height) => {
		for (const y of [top + 1, top + height - 1]) {
			await page.mouse.move(5, 5);
			await tip.waitFor({ state: 'detached' });
			await page.mouse.move(x, y);
			await tip.waitFor();
			const box = await tip.boundingBox();
			assert.ok(box.y >= top + height || box.y + box.height <= top, `from ${box.y} to ${box.y + box.height}, the call from ${top} to ${top + height}`);
		}
	};
	const [x, y] = await point(page, 20, 1);
	assert.ok(y < 360);
	await covers(x, y - 8, 18); // below it
	const flame = await page.locator('.flame canvas').first().boundingBox();
	const row = flame.y + 3 * 19; // parseFiles, below all threads, run and load
	assert.ok(row > 380);
	await covers(flame.x + 60, row, 19); // above it
	await done(page, t);
});

test('m marks the selected call as the range, and its duration is shown', async (t) => {
	const page = await open(`?open=${MAIN},${WORKER}`);
	await page.evaluate(() => {
		globalThis.written = [];
		const { fillText } = CanvasRenderingContext2D.prototype;
		CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
			globalThis.written.push(text);
			return fillText.call(this, text, ...at);
		};
	});
	await page.locator('canvas.calls').focus();
	await page.keyboard.press('m');
	await page.waitForSelector('.keyed:has-text("The selection has no duration")');
	assert.equal(query(page).get('a'), null);
	await click(page, 46, 1, 1);
	await shown(page, NAMES[LOAD - 1]);
	await page.locator('canvas.calls').focus();
	await page.keyboard.press('m');
	await page.waitForFunction(() => new URL(location.href).searchParams.has('b'));
	assert.deepEqual(['a', 'b', 'thread'].map((n) => Number(query(page).get(n))), [start + 44 * MS, start + 48 * MS, WORKER]);
	await page.waitForSelector('.under:has-text("4.00 ms selected of")');
	await settled(page);
	assert.ok((await page.evaluate(() => globalThis.written)).includes('4.00 ms'), 'beside the range');
	await page.getByRole('tab', { name: 'Methods' }).click();
	await page.waitForFunction(() => document.querySelector('[aria-label="Methods"]')?.textContent.includes('Worker.work'));
	await page.locator('canvas.calls').focus();
	await page.keyboard.press('Enter');
	await page.waitForFunction((at) => Math.abs(Number(new URL(location.href).searchParams.get('from')) - at) < 1e6, start + 44 * MS);
	await page.keyboard.press('Escape');
	await pane(page).waitFor({ state: 'detached' });
	await page.waitForFunction(() => !location.search.includes('a='));
	await done(page, t);
});

test('running and sleeping times of a call are shown where the trace has states', async (t) => {
	const page = await open('', { trace: states });
	await page.getByRole('button', { name: 'Visible calls as a table' }).click();
	await page.locator('.short').getByRole('button', { name: 'load' }).click();
	await shown(page, 'load');
	await page.waitForFunction(() => document.querySelector('.callpane .facts')?.textContent.includes('sleeping'));
	const reported = await facts(page);
	assert.equal(reported.wall, '50.0 ms');
	assert.match(reported.running, /^20\.0 ms 40/);
	assert.match(reported.sleeping, /^30\.0 ms 60/);
	await done(page, t);
});

for (const [scheme, width] of [...THEMES, ['light', 390], ['dark', 2560]])
	test(`the details can be read: ${scheme}, ${width}`, async (t) => {
		const page = await open(`?open=${MAIN}&call=${MAIN}.${start + 9 * MS}.1`, { scheme, width });
		await shown(page, NAMES[LOAD - 1]);
		await settled(page);
		const [call, details] = [(await point(page, 20, 1))[1], (await pane(page).boundingBox()).y];
		assert.ok(call < details, `the call is at ${call}, its details begin at ${details}`);
		assert.deepEqual(await unreadable(page), []);
		assert.deepEqual(await violations(page), []);
		const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
		assert.ok(!wide, 'nothing is beside the window');
		await done(page, t);
	});

test('overloads are distinct in every view, and details show the signature', async (t) => {
	await server.put('/api/v1/builds/over/methods', ['com.acme.Json parse (Ljava/lang/String;I)V', 'com.acme.Json parse ([B)V', 'com.acme.Feed load (J)Lcom/acme/Item;'].map((m, i) => `${i + 1},1,${m}`).join('\n') + '\n');
	const over = await server.trace(btrace([[MAIN, 1, 1, 50], [MAIN, 2, 2, 30], [MAIN, 3, 0, 90]].map(([tid, method, at, dur]) => [tid, method, at * MS, dur * MS]), { pid: MAIN }), { query: { build_id: 'over' } });
	const page = await open(`?call=${MAIN}.${over.start_ns + MS}.1`, { trace: over.id });
	const details = page.getByRole('region', { name: 'The selected call' });
	await details.getByText('Same method').waitFor();
	assert.equal(await title(page).innerText(), 'com.acme.Json.parse(String, int)');
	await details.getByText('Json.parse(java.lang.String, int): void', { exact: true }).waitFor();
	assert.match(await details.getByRole('region', { name: 'Callees' }).innerText(), /Json\.parse\(byte\[\]\)/);
	const stack = await details.getByRole('region', { name: 'Stack' }).getByRole('listitem').allInnerTexts();
	assert.deepEqual(stack.map((s) => s.split('\n')[0]), ['Feed.load', 'Json.parse(String, int)']);
	await details.getByRole('region', { name: 'Stack' }).getByRole('button', { name: 'Feed.load' }).click();
	await details.getByText('Feed.load(long): com.acme.Item', { exact: true }).waitFor();
	for (const [tab, rows] of [['Methods', '.methods tbody .name button'], ['Call tree', '.treebody .method']]) {
		await page.getByRole('tab', { name: tab }).click();
		await page.locator(rows).getByText('parse').first().waitFor();
		const names = (await page.locator(rows).allInnerTexts()).map((n) => n.replace(/^.*\.(?=\w+\.)/, ''));
		for (const name of ['Feed.load', 'Json.parse(String, int)', 'Json.parse(byte[])']) assert.ok(names.includes(name), `${tab}: ${names}`);
	}
	await page.keyboard.press('/');
	await page.keyboard.type('parse(byte');
	await page.getByText('1 of 3 methods').waitFor();
	await done(page, t);
});

test('a search finds methods by their obfuscated names', async (t) => {
	const calls = ['a.b.c', 'a.b.d', 'com.acme.Kept.run'].map((name, i) => ({ ph: 'X', cat: 'method', name, pid: 1, tid: 1, ts: 1000 + i * 100, dur: 50 }));
	await server.put('/api/v1/builds/r8/retrace', 'com.acme.shop.Checkout -> a.b:\n    1:1:void pay():1:1 -> c\n    2:2:void refund():2:2 -> d\n');
	const renamed = await server.trace(JSON.stringify({ traceEvents: calls }), { query: { build_id: 'r8' } });
	const { names, obfuscated } = (await server.get(`/api/v1/traces/${renamed.id}/names`)).json;
	assert.deepEqual(names.map((name, i) => [name, obfuscated[i]]).sort(), [['com.acme.Kept.run', ''], ['com.acme.shop.Checkout.pay', 'a.b.c'], ['com.acme.shop.Checkout.refund', 'a.b.d']]);
	assert.deepEqual((await server.get(`/api/v1/traces/${id}/names`)).json.obfuscated, [], 'a build without a mapping of R8');
	const page = await open('', { trace: renamed.id });
	await page.keyboard.press('/');
	await page.keyboard.type('a.b.d');
	await page.getByText('1 of 3 methods').waitFor();
	await page.keyboard.press('Enter');
	await shown(page, 'com.acme.shop.Checkout.refund');
	await done(page, t);
});

test('on a phone no hint in a field is cut', async (t) => {
	const page = await open('', { width: 390, height: 844 });
	const cut = () => page.locator('main input[placeholder]:visible').evaluateAll((all) => all.map((e) => {
		const style = getComputedStyle(e);
		const g = document.createElement('canvas').getContext('2d');
		g.font = style.font;
		return [e.placeholder, e.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - g.measureText(e.placeholder).width];
	}).filter(([, left]) => left < 0));
	assert.deepEqual(await cut(), []);
	await page.getByRole('tab', { name: 'Methods', exact: true }).click();
	await page.locator('.methods tbody tr').first().waitFor();
	assert.deepEqual(await cut(), []);
	await done(page, t);
});
