/*
 * The window of a trace: panes, tabs, lines that are dragged, wheel and touch; on a phone one pane at a time.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { violations } from '../axe.mjs';
import { settled, tab, unreadable, visit } from '../browser.mjs';
import { browser, done, id, open, openTrace, server } from '../page.mjs';
import { inFull } from '../server.mjs';

const query = (page) => new URL(page.url()).searchParams;
const selectedTab = (page) => page.locator('[role=tab][aria-selected=true]').innerText();
const boxOf = (page, selector) => page.locator(selector).first().boundingBox();

for (const [width, scheme] of [[1280, 'light'], [1920, 'dark'], [2560, 'light']])
	test(`the page fills the window and does not scroll, ${width} wide`, async (t) => {
		const page = await open(`/traces/${id}`, scheme, width);
		await page.waitForSelector('[data-ready]');
		for (const name of ['Flame graph', 'Call tree', 'Methods', 'Findings', 'Report']) {
			await tab(page, name);
			await page.waitForSelector('[role=tabpanel] .panel');
			await settled(page);
			const { high, wide } = await page.evaluate(() => ({ high: document.documentElement.scrollHeight - innerHeight, wide: document.documentElement.scrollWidth - innerWidth }));
			assert.deepEqual([high, wide], [0, 0], name);
			assert.deepEqual(await unreadable(page), [], name);
			if (inFull(true, width === 1280)) assert.deepEqual(await violations(page), [], name);
		}
		const lower = await boxOf(page, '.lower');
		assert.ok(Math.abs(lower.y + lower.height - 900) < 2 && lower.width === width, 'the panes reach the edges');
		assert.equal(Math.round((await boxOf(page, 'main > .head')).height) < 48, true, 'the header is one line');
		await done(page, t);
	});

test('a trace and all that its page loads is at most 120 KB, compressed', async () => {
	await (await open()).context().close(); // signed in: what follows begins with the trace
	const context = await browser.newContext();
	const page = await context.newPage();
	const sizes = [];
	page.on('response', (r) => new URL(r.url()).pathname.startsWith('/api/') || sizes.push(r.headerValue('content-length'))); // of a worker, sizes() knows none
	await visit(page, server, `/traces/${id}`);
	await page.waitForSelector('[data-ready]');
	await page.waitForSelector('.flame canvas');
	await settled(page);
	const all = (await Promise.all(sizes)).map(Number);
	assert.ok(all.every((bytes) => bytes > 0), `each has its length: ${all}`);
	const kb = all.reduce((a, b) => a + b, 0) / 1024;
	assert.ok(all.length > 10 && kb > 50 && kb <= 120, `${all.length} files, ${kb} KB`);
	await context.close();
});

test('tabs: by pointer and keys, in the address; panels come when they are first shown', async (t) => {
	const page = await open('/builds');
	const asked = [];
	page.on('request', (r) => asked.push(new URL(r.url()).pathname.split('/').pop()));
	await page.goto(`${server.url}/traces/${id}`);
	await page.waitForSelector('[data-flame]');
	assert.deepEqual([await selectedTab(page), asked.includes('methods'), asked.includes('findings')], ['Flame graph', false, false]);
	await page.getByRole('tab', { name: 'Flame graph' }).focus();
	await page.keyboard.press('ArrowRight');
	await page.waitForSelector('[role=tab][aria-selected=true]:has-text("Call tree")');
	await page.keyboard.press('ArrowRight');
	await page.waitForSelector('.methods tbody tr');
	assert.ok(asked.includes('methods'));
	assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Methods');
	await page.keyboard.press('End');
	await page.waitForSelector('[role=tab][aria-selected=true]:has-text("Report")');
	await page.waitForSelector('dl.facts');
	await settled(page);
	assert.equal(query(page).get('tab'), 'report');
	await page.reload();
	await page.waitForSelector('dl.facts');
	await page.keyboard.press('Tab');
	assert.equal(asked.includes('findings'), false, 'never shown, never asked for');
	await done(page, t);
});

test('older addresses open the panel that they mean', async (t) => {
	const page = await open('/builds');
	for (const [more, name] of [['view=bottom_up', 'Flame graph'], ['as=tree&view=bottom_up', 'Call tree'], ['method=1&view=sandwich', 'Flame graph'], ['findings=1', 'Findings'],
		['sort=count', 'Methods'], ['filter=a', 'Methods'], ['tab=methods&view=bottom_up', 'Methods'], ['tab=events', 'Flame graph']]) {
		await page.goto(`${server.url}/traces/${id}?${more}`);
		await page.waitForSelector('[role=tabpanel]');
		assert.equal(await selectedTab(page), name, more);
	}
	await page.goto(`${server.url}/traces/${id}?tab=nothing`);
	await page.waitForSelector('.notice:has-text("tab=nothing")');
	await done(page, t);
});

test('lines between panes are moved by dragging and by keys, and keep their positions', async (t) => {
	const page = await openTrace();
	const line = page.getByRole('separator', { name: 'Height of the timeline' });
	const high = async () => (await boxOf(page, '.upper')).height;
	const before = await high();
	const box = await line.boundingBox();
	await page.mouse.move(box.x + 400, box.y + 3);
	await page.mouse.down();
	await page.mouse.move(box.x + 400, box.y - 97, { steps: 5 });
	await page.mouse.up();
	await page.waitForFunction((h) => Math.abs(document.querySelector('.upper').getBoundingClientRect().height - h) < 5, before - 100);
	const dragged = Number(await line.getAttribute('aria-valuenow'));
	await line.focus();
	await page.keyboard.press('ArrowDown');
	assert.equal(Number(await line.getAttribute('aria-valuenow')), dragged + 2);
	const now = await high();
	assert.ok(now > before - 100);
	await page.reload();
	await page.waitForSelector('[data-ready]');
	assert.ok(Math.abs((await high()) - now) < 2, 'kept in this browser');
	await page.keyboard.press('Tab');
	await line.focus();
	await page.keyboard.press('Home');
	assert.equal(await line.getAttribute('aria-valuenow'), '15');
	await line.dblclick({ force: true });
	await page.waitForFunction((h) => Math.abs(document.querySelector('.upper').getBoundingClientRect().height - h) < 2, before);

	/* details are at the side, and the timeline keeps its width */
	const canvas = await boxOf(page, 'canvas.calls');
	await page.mouse.click(canvas.x + 40, canvas.y + 30);
	await page.waitForSelector('.side .callpane');
	assert.equal((await boxOf(page, 'canvas.calls')).width, canvas.width);
	const [side, tabs] = [await boxOf(page, '.side'), await boxOf(page, '.tabs')];
	assert.ok(side.x >= tabs.x + tabs.width && Math.abs(side.x + side.width - 1280) < 2);
	const upright = page.getByRole('separator', { name: 'Width of the details' });
	await upright.focus();
	await page.keyboard.press('ArrowLeft');
	await page.waitForFunction((w) => document.querySelector('.side').getBoundingClientRect().width > w + 15, side.width);
	await done(page, t);
});

test('the wheel scrolls the pane under it, with Ctrl it zooms', async (t) => {
	const page = await openTrace();
	await page.locator('.threads .bottom').first().press('Enter'); // a click may miss it while the list still scrolls to it
	const view = () => [query(page).get('from'), query(page).get('to')].join();
	const box = await boxOf(page, 'canvas.calls');
	await page.mouse.move(box.x + 300, box.y + 60);
	const before = view();
	await page.mouse.wheel(0, 120);
	await page.waitForFunction(() => document.querySelector('.scroller').scrollTop > 50);
	await settled(page);
	assert.equal(view(), before, 'no zoom');
	await page.keyboard.down('Control');
	await page.mouse.wheel(0, -300);
	await page.keyboard.up('Control');
	await page.waitForFunction(() => location.search.includes('from='));
	assert.equal(await page.evaluate(() => scrollY), 0);
	await tab(page, 'Methods');
	await page.waitForSelector('.methods tbody tr');
	const pane = await boxOf(page, '.tabbody');
	await page.mouse.move(pane.x + 300, pane.y + 120);
	await page.mouse.wheel(0, 200);
	await page.waitForFunction(() => document.querySelector('.tabbody').scrollTop > 100);
	const head = await boxOf(page, '.methods thead th');
	assert.ok(Math.abs(head.y - pane.y) < 3, 'its heading stays in view');
	await done(page, t);
});

/* Two fingers on the canvas, `apart` pixels from each other, then further. */
async function pinch(page, apart, to, on = 'canvas.calls') {
	const client = await page.context().newCDPSession(page);
	const box = await boxOf(page, on);
	const at = (gap) => [-1, 1].map((s) => ({ x: box.x + box.width / 2 + (s * gap) / 2, y: box.y + 60 }));
	await client.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: at(apart) });
	for (let i = 1; i <= 5; i++) await client.send('Input.dispatchTouchEvent', { type: 'touchMove', touchPoints: at(apart + ((to - apart) * i) / 5) });
	await client.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
}

/* Overlays of the page: how each is opened, and its selector. */
const rightOn = (place) => async (page) => {
	const box = await boxOf(page, place);
	await page.mouse.click(box.x + box.width * 0.3, box.y + Math.min(40, box.height / 2), { button: 'right' });
};
const press = (name) => (page) => page.getByRole('button', { name, exact: true }).first().click();
const OVER = [['order of threads', press('Sort'), '[role=dialog]'], ['colours', press('Colours'), '[role=dialog]'], ['title and tags', press('Edit'), '[role=dialog]'], ['other tools', press('Other tools'), '[role=dialog]'],
	['a call', rightOn('canvas.calls'), '.menu'], ['a thread', rightOn('.threads .name'), '.menu'], ['a frame', rightOn('.flame canvas'), '.menu'], ['keys', (page) => page.keyboard.press('?'), 'dialog[open]'], ['upload', press('Upload'), 'dialog[open]']];

for (const scheme of ['light', 'dark'])
	test(`menus and dialogs over a trace: axe finds nothing, all can be read, Escape closes them, ${scheme}`, async (t) => {
		const page = await open(`/traces/${id}`, scheme);
		await page.waitForSelector('[data-ready]');
		await page.waitForSelector('.flame canvas');
		await settled(page);
		for (const [name, show, there] of OVER) {
			await show(page);
			await page.locator(there).first().waitFor();
			assert.deepEqual([await violations(page), await unreadable(page)], [[], []], name);
			await page.keyboard.press('Escape');
			await page.locator(there).waitFor({ state: 'hidden' });
		}
		await done(page, t);
	});

/* A finger stays for longer than a tap, then leaves. */
async function rest(page, selector, down) {
	await page.locator(selector).first().scrollIntoViewIfNeeded();
	await settled(page);
	const { x, y, width } = await boxOf(page, selector);
	const touch = await page.context().newCDPSession(page);
	await touch.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: [{ x: x + width / 4, y: y + down }] });
	await page.waitForSelector('.menu');
	await touch.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
	await settled(page);
	assert.equal(await page.locator('.menu').count(), 1, 'its end is no tap');
}

test('a phone shows one pane at a time; pinch, tap and buttons work on the timeline', async (t) => {
	const context = await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
	const page = await context.newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	await visit(page, server, `/traces/${id}`);
	await page.waitForSelector('[data-ready]');
	await page.waitForSelector('[role=tablist]');
	await settled(page);
	assert.deepEqual([await selectedTab(page), await page.locator('[role=tabpanel]').count(), await page.locator('[role=separator]').count()], ['Timeline', 0, 0]);
	assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight), true);
	const { start_ns, end_ns } = (await server.get(`/api/v1/traces/${id}`)).json;
	const span = () => Number(query(page).get('to') ?? end_ns) - Number(query(page).get('from') ?? start_ns);
	const whole = span();
	await pinch(page, 60, 120);
	await page.waitForFunction(() => location.search.includes('from='));
	await settled(page);
	assert.ok(Math.abs(span() / whole - 0.5) < 0.1, `half of the time: ${span() / whole}`);
	assert.equal(await page.locator('.callpane').count(), 0, 'a pinch is no tap');
	await page.getByRole('button', { name: 'Zoom out' }).tap();
	await page.getByRole('button', { name: 'Zoom out' }).tap();
	const box = await boxOf(page, 'canvas.calls');
	await page.touchscreen.tap(box.x + 30, box.y + 30);
	await page.waitForSelector('.side .callpane');
	assert.deepEqual(await violations(page), []);
	await tab(page, 'Methods');
	await page.waitForSelector('.methods tbody tr');
	assert.equal(await page.locator('canvas.calls').isVisible(), false);
	assert.deepEqual(await violations(page), []);
	await tab(page, 'Call tree');
	await page.waitForSelector('.treerow[aria-level="2"]');
	assert.ok(await page.locator('.treerow[aria-level="2"] .method').first().evaluate((e) => e.getBoundingClientRect().width > 60 && e.getBoundingClientRect().right < innerWidth / 2), 'methods have names');
	await tab(page, 'Timeline');
	await page.waitForFunction(() => document.querySelector('canvas.calls').getBoundingClientRect().width > 100);
	for (const [selector, down, item] of [['.threads li:not(.open) .name', 12, 'Pin to the top'], ['canvas.calls', 42, 'Copy name']]) {
		await rest(page, selector, down);
		assert.equal(await page.locator('.menu button', { hasText: item }).count(), 1);
		await page.keyboard.press('Escape');
	}
	const closed = page.locator('.threads li:not(.open)').first();
	const name = await closed.locator('.name').innerText();
	await closed.scrollIntoViewIfNeeded();
	await settled(page);
	const [lane, chart] = [await closed.boundingBox(), await boxOf(page, 'canvas.calls')];
	await page.touchscreen.tap(chart.x + chart.width / 2, lane.y + 16);
	await page.locator('.threads li.open', { hasText: name.split('\n')[0] }).waitFor(); // a tap on a closed thread's lane
	await done(page, t);
});

test('on a phone two fingers go into the flame graph and out of it, a tap into it', async (t) => {
	const context = await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
	const page = await context.newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	await visit(page, server, `/traces/${id}?tab=flame`);
	const canvas = '.canvasbox.flame canvas';
	await page.waitForSelector(canvas);
	await settled(page);
	const root = () => query(page).get('root');
	assert.equal(root(), null);
	await pinch(page, 60, 140, canvas);
	await page.waitForFunction(() => new URLSearchParams(location.search).has('root'));
	await settled(page);
	const inside = root();
	await pinch(page, 140, 60, canvas);
	await page.waitForFunction((was) => new URLSearchParams(location.search).get('root') !== was, inside);
	await settled(page);
	const outside = root();
	assert.ok((outside ?? '').length < inside.length, `${outside} is above ${inside}`);
	const box = await boxOf(page, canvas);
	await page.touchscreen.tap(box.x + box.width / 2, box.y + 45);
	await page.waitForFunction((was) => (new URLSearchParams(location.search).get('root') ?? '') !== (was ?? ''), outside);
	assert.ok(root().length > (outside ?? '').length);
	assert.equal(await page.locator('.tip').count(), 0, 'a finger hides what it is on');
	await done(page, t);
});
