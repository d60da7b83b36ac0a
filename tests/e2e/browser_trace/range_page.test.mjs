/*
 * Selections beyond one call: a range as a table and compared with another range, all calls of a method,
 * threads that are searched, pinned, grouped and hidden, and events; by mouse and keyboard, in the address.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { violations } from '../axe.mjs';
import { THEMES, launch, painted, settled, unreadable, visit } from '../browser.mjs';
import { btrace } from '../make.mjs';
import { startServer } from '../server.mjs';

const shots = process.env.SCREENSHOTS;
const MAIN = 4000, PID = 21010, MS = 1e6;
const NAMES = ['android.os.Looper.loop', 'android.os.MessageQueue.nativePollOnce', 'com.acme.io.Loader.load', 'com.acme.work.Worker.work'];
const [LOOP, POLL, LOAD, WORK] = [1, 2, 3, 4];
const POOL = [4001, 4002, 4003];
let server, browser, id, kernel, start;
const ending = [];

/* Two threads of the kernel's states, a counter, and a mark. */
function kernelText() {
	const stamp = (ms) => (4000 + ms / 1000).toFixed(6);
	const mark = (ms, text) => `app-${PID} (${PID}) [000] ...1 ${stamp(ms)}: tracing_mark_write: ${text}`;
	const turn = (ms, from, state, to) => `x-${from} (${from || '-----'}) [000] d..2 ${stamp(ms)}: sched_switch: prev_comm=x prev_pid=${from} prev_prio=120 prev_state=${state} ==> next_comm=y next_pid=${to} next_prio=120`;
	return `# tracer: nop\n#\n${[turn(0, 0, 'R', PID), mark(5, `C|${PID}|heap|100`), mark(10, `B|${PID}|load`), turn(20, PID, 'S', PID + 1), mark(25, `C|${PID}|heap|300`), turn(50, PID + 1, 'S', PID), mark(60, `E|${PID}`), turn(100, PID, 'S', 0)].join('\n')}\n`;
}

before(async () => {
	if (shots) fs.mkdirSync(shots, { recursive: true });
	server = await startServer({ after: (f) => ending.push(f) });
	await server.put('/api/v1/builds/ranges/methods', NAMES.map((n, i) => `${i + 1},1,${n.replace(/\.(\w+)$/, ' $1')} ()V`).join('\n') + '\n');
	const calls = [[MAIN, POLL, 2, 40], [MAIN, LOAD, 45, 20], [MAIN, LOAD, 70, 5], [MAIN, LOOP, 1, 99], ...POOL.flatMap((tid, i) => [[tid, LOAD, 10 + i, 2 + i], [tid, WORK, 1, 30 + 10 * i]])];
	const made = await server.trace(btrace(calls.map(([tid, m, at, dur]) => [tid, m, at * MS, dur * MS]), { pid: MAIN }), { query: { build_id: 'ranges' } });
	assert.equal(made.state, 'ready', JSON.stringify(made.error));
	({ id, start_ns: start } = made);
	const system = await server.trace(kernelText(), {});
	assert.equal(system.state, 'ready', JSON.stringify(system.error));
	kernel = system.id;
	browser = await launch();
});

after(async () => {
	await browser?.close();
	for (const f of ending) await f();
});

async function open(query = '', { trace = id, scheme = 'light', width = 1280 } = {}) {
	const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 } });
	const page = await context.newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	await visit(page, server, `/traces/${trace}${query}`);
	await page.waitForSelector('[data-ready]');
	await settled(page);
	return page;
}

async function done(page, t) {
	if (shots) await page.screenshot({ path: path.join(shots, `range-${t.name.replaceAll(/\W+/g, '-').slice(0, 60)}.png`) });
	assert.deepEqual(page.problems, []);
	await page.context().close();
}

const query = (page) => new URL(page.url()).searchParams;
const panel = (page, name) => page.getByRole('region', { name, exact: true });
const heads = (page) => page.locator('.threads li .text').allInnerTexts();

/* Position of a time, in ms after the first call's begin, on the canvas, next to the n-th head. */
async function at(page, ms, n, dy = 10) {
	const box = await page.locator('canvas.calls').boundingBox();
	const li = await page.locator('.threads li').nth(n).boundingBox();
	const trace = (await server.get(`/api/v1/traces/${id}`)).json;
	const [from, to] = [Number(query(page).get('from') ?? trace.start_ns), Number(query(page).get('to') ?? trace.end_ns)];
	return [box.x + ((start + ms * MS - from) / (to - from)) * box.width, li.y + dy];
}

async function drag(page, from, to, shift = true) {
	if (shift) await page.keyboard.down('Shift');
	await page.mouse.move(...from);
	await page.mouse.down();
	await page.mouse.move((from[0] + to[0]) / 2, (from[1] + to[1]) / 2);
	await page.mouse.move(...to);
	await page.mouse.up();
	if (shift) await page.keyboard.up('Shift');
	await settled(page);
}

/* The table's sections as { name: [[cells]] }. */
const sections = (page) => panel(page, 'Selected range').locator('table.range').evaluate((table) => {
	const out = {};
	let now;
	for (const tr of table.querySelectorAll('tbody tr')) {
		if (tr.className === 'section') out[now = tr.textContent.replace(/ ?[\d,]+$/, '')] = [];
		else out[now].push([...tr.cells].map((c) => c.textContent.trim()));
	}
	return out;
});

test('an area over several threads is one table of exactly that range; waits come last', async (t) => {
	const page = await open(`?open=${MAIN}`);
	await drag(page, await at(page, 10, 0, 60), await at(page, 60, 2, 12));
	assert.equal(query(page).get('sel').split(',').length, 3, 'threads that the area covers');
	await page.getByRole('tab', { name: 'Selected range' }).click();
	await settled(page);
	const { Calls } = await sections(page);
	const [a, b] = ['a', 'b'].map((n) => Number(query(page).get(n)));
	const { methods } = (await server.get(`/api/v1/traces/${id}/methods?thread=${query(page).get('sel')}&from=${a}&to=${b}&sort=running_ns`)).json;
	assert.deepEqual(Calls.map((r) => [r[0], r[1]]), methods.map((m) => [m.name, String(m.count)]), 'as the server counts them');
	assert.equal(Calls.at(-1)[0], NAMES[POLL - 1], 'a wait is no culprit');
	assert.match(Calls.at(-1)[4], /^waits \d/);
	await panel(page, 'Selected range').getByRole('searchbox').fill('loader');
	await page.waitForFunction(() => document.querySelectorAll('table.range tbody tr').length === 2);
	await panel(page, 'Selected range').getByRole('button', { name: 'Loader.load' }).click();
	await panel(page, 'Calls').getByText('Loader.load').first().waitFor();
	await done(page, t);
});

test('two ranges of a trace are shown side by side', async (t) => {
	const page = await open(`?a=${start + 44 * MS}&b=${start + 66 * MS}&threads=all&tab=range`);
	await page.getByRole('button', { name: 'Compare with another range' }).click();
	await panel(page, 'Selected range').getByText('Base of the comparison. Select another range').waitFor();
	const ruler = await page.locator('canvas.ruler').boundingBox();
	const x = async (ms) => (await at(page, ms, 0))[0];
	await drag(page, [await x(69), ruler.y + 8], [await x(76), ruler.y + 8], false);
	await panel(page, 'Selected range').getByText('compared with 22.0 ms from 44.0 ms').waitFor();
	await settled(page);
	const load = (await sections(page)).Calls.find((r) => r[0] === NAMES[LOAD - 1]);
	assert.deepEqual(load.slice(2), ['5.00 ms', '20.0 ms', '−15.0 ms']);
	await page.reload();
	await panel(page, 'Selected range').getByText('compared with 22.0 ms').waitFor();
	await page.getByRole('button', { name: 'Stop comparing' }).click();
	await page.waitForFunction(() => !location.search.includes('base='));
	await done(page, t);
});

test('two ranges of a trace are one differential flame graph', async (t) => {
	const [a, b] = [[44, 66], [69, 76]].map((r) => r.map((ms) => start + ms * MS));
	const page = await open(`?a=${b[0]}&b=${b[1]}&threads=all&tab=range&base=${a[0]}-${a[1]}`);
	const range = panel(page, 'Selected range');
	await range.getByRole('button', { name: 'Differential flame graph' }).click();
	await page.waitForSelector('[data-diff=b] canvas');
	const of = (part) => `a=${id}&b=${id}&a_from=${a[0]}&a_to=${a[1]}&b_from=${b[0]}&b_to=${b[1]}${part}`;
	const { json } = await server.get(`/api/v1/compare?${of('')}`);
	assert.deepEqual([json.a_ns[0], json.b_ns[0]], [28 * MS, 7 * MS]); // of all threads
	await range.getByText('Calls: 28.0 ms before, 7.00 ms now').waitFor();
	assert.ok((await range.locator('.legend').boundingBox()).height < 40, 'the legend is one line');
	await range.getByRole('button', { name: 'Children as a table' }).click();
	const row = range.locator('tbody tr').first();
	assert.deepEqual((await row.locator('td').allInnerTexts()).slice(1, 4), ['22.0 ms', '7.00 ms', '−15.0 ms']);
	await row.getByRole('button').click();
	await page.waitForFunction(() => new URL(location.href).searchParams.get('droot'));
	await settled(page);
	await page.goBack();
	await page.waitForFunction(() => !new URL(location.href).searchParams.get('droot'));
	await page.reload();
	await page.waitForSelector('[data-diff=b] canvas');
	await settled(page);
	assert.deepEqual(await violations(page), []);
	const menu = async (item) => {
		await range.locator('[data-diff=b] canvas').focus();
		for (const key of ['Home', 'ArrowDown', 'm']) await page.keyboard.press(key);
		await page.getByRole('menuitem', { name: item }).click();
	};
	await menu('Only this method');
	const only = range.locator('nav.steps');
	const name = await only.locator('.step').getAttribute('title');
	assert.ok(NAMES.includes(name), name);
	await page.waitForSelector('[data-diff=b]');
	await only.getByRole('button', { name: 'Show the whole comparison' }).click();
	await only.waitFor({ state: 'detached' });
	await page.waitForSelector('[data-diff=b]');
	await menu('Find its calls');
	assert.equal(await page.getByLabel('Find a method').inputValue(), name);
	await menu('Over versions');
	await page.waitForFunction((name) => location.pathname === '/fleet/methods' && new URL(location.href).searchParams.get('method') === name, name);
	await page.goBack();
	await page.waitForSelector('[data-diff=b] canvas');
	await range.getByRole('button', { name: 'Table', exact: true }).click();
	await range.locator('table.range').waitFor();
	await done(page, t);
});

test('an area of a system trace has states, events and counters', async (t) => {
	const page = await open('', { trace: kernel });
	const trace = (await server.get(`/api/v1/traces/${kernel}`)).json;
	await page.goto(`${server.url}/traces/${kernel}?a=${trace.start_ns}&b=${trace.start_ns + 40 * MS}&threads=all&tab=range`);
	await panel(page, 'Selected range').locator('table').waitFor();
	await settled(page);
	const all = await sections(page);
	const state = (name) => all['Thread states'].find((r) => r[0] === name);
	assert.equal(state('running')[2], '40.0 ms', 'one CPU, two threads in turn');
	assert.deepEqual(all.Counters.map((r) => [r[0].split(' ')[0], r[2]]), [['heap', '100 to 300']]);
	await done(page, t);
});

test('all calls of a method: from the menu, by duration, to one of them', async (t) => {
	const page = await open(`?open=${MAIN}&threads=all`);
	await page.mouse.click(...(await at(page, 50, 0, 4 + 18 + 9)), { button: 'right' });
	await page.getByRole('menuitem', { name: 'List its calls' }).click();
	const rows = () => panel(page, 'Calls').locator('tbody tr').evaluateAll((all) => all.map((tr) => tr.cells[0].textContent));
	await page.waitForFunction(() => document.querySelectorAll('table.methods tbody tr').length === 5);
	assert.deepEqual(await rows(), ['20.0 ms', '5.00 ms', '4.00 ms', '3.00 ms', '2.00 ms']);
	await panel(page, 'Calls').getByRole('group', { name: 'Calls by duration' }).getByRole('button').last().click();
	await page.waitForFunction(() => document.querySelectorAll('table.methods tbody tr').length === 1);
	await page.getByRole('button', { name: 'All durations' }).click();
	await page.waitForFunction(() => document.querySelectorAll('table.methods tbody tr').length === 5);
	await panel(page, 'Calls').getByLabel('At least').fill('4');
	await page.waitForFunction(() => document.querySelectorAll('table.methods tbody tr').length === 3);
	await panel(page, 'Calls').getByText('3 of 5 calls take 4.00 ms to 20.0 ms').waitFor();
	await panel(page, 'Calls').getByRole('button', { name: '4.00 ms' }).click();
	await page.waitForFunction((call) => new URL(location.href).searchParams.get('call') === call, `${POOL[2]}.${start + 11 * MS}.1`);
	await page.waitForFunction((n) => document.querySelector('.callpane h3')?.textContent === n, NAMES[LOAD - 1]);
	await page.getByRole('button', { name: 'Calls of all methods' }).click();
	await page.waitForFunction(() => !location.search.includes('calls='));
	await done(page, t);
});

test('threads are found, sorted, grouped, pinned and hidden', async (t) => {
	const page = await open();
	const first = await heads(page);
	assert.equal(first.length, 4);
	await page.getByRole('searchbox', { name: 'Find a thread' }).fill(String(POOL[1]));
	await page.waitForFunction(() => document.querySelectorAll('.threads li').length === 1);
	await page.getByRole('searchbox', { name: 'Find a thread' }).fill('');
	await page.waitForFunction(() => document.querySelectorAll('.threads li').length === 4);
	await page.getByRole('button', { name: 'Sort' }).click();
	await page.getByLabel('Thread id').check();
	await page.keyboard.press('Escape');
	const tids = () => page.locator('.threads li .name .num').allInnerTexts();
	assert.deepEqual(await tids(), [MAIN, ...POOL].map(String));
	assert.match(await page.locator('.threads li .name').nth(3).innerText(), /^Thread\s+4003$/, 'a number stands for a name once');
	await page.locator('.threads li').nth(3).locator('.name').focus();
	await settled(page); // the list scrolls to the focused element, which closes a menu
	await page.locator('.threads li').nth(3).locator('.name').click({ button: 'right' });
	await page.getByRole('menuitem', { name: 'Pin to the top' }).click();
	await settled(page);
	assert.equal((await tids())[0], String(POOL[2]));
	await page.locator('canvas.calls').focus();
	await page.keyboard.press('h');
	await page.waitForFunction(() => document.querySelectorAll('.threads li').length === 3);
	await page.reload();
	await page.waitForSelector('[data-ready]');
	await settled(page);
	assert.equal((await heads(page)).length, 3, 'the address keeps it');
	await page.getByRole('button', { name: 'Sort' }).click();
	await page.getByRole('button', { name: 'Show 1 hidden' }).click();
	await page.waitForFunction(() => document.querySelectorAll('.threads li').length === 4);
	await page.getByRole('button', { name: 'Reset' }).click();
	await page.waitForFunction(() => !/pin=|tsort=|hide=/.test(location.search));
	await done(page, t);
});

test('an event is selected by a click or in the table, and shown in the details', async (t) => {
	const page = await open('?open=' + PID, { trace: kernel });
	const states = await page.locator('.threads .track.thin').first().boundingBox();
	const canvas = await page.locator('canvas.calls').boundingBox();
	await page.mouse.click(canvas.x + canvas.width * 0.5, states.y + states.height / 2);
	const pane = page.getByRole('region', { name: 'The selected event' });
	await pane.locator('h3', { hasText: 'sleeping' }).waitFor();
	assert.match(query(page).get('event'), new RegExp(`^state\\.${PID}\\.`));
	await pane.getByText('30.0 ms').waitFor();
	await page.reload();
	await pane.getByText('30.0 ms').waitFor();
	const room = () => page.locator('.scroller').boundingBox();
	const before = await room();
	await pane.getByRole('button', { name: 'Select its time' }).click();
	await page.waitForFunction(() => /[?&]a=/.test(location.search));
	await page.locator('.under').getByText('30.0 ms selected').waitFor();
	assert.equal(await page.getByText('30.0 ms selected').count(), 1);
	assert.deepEqual(await room(), before, 'the timeline stays where it is');
	await pane.getByRole('button', { name: 'Clear the selection' }).click();
	await pane.waitFor({ state: 'detached' });

	await page.getByRole('tab', { name: 'Events' }).click();
	await page.locator('#notes').getByRole('button', { name: /^Counters/ }).click();
	await page.locator('#notes').getByRole('searchbox').fill('heap');
	await page.locator('#notes').getByRole('status').getByText('1 of 2 match').waitFor(); // the other is outside of the range
	await page.locator('#notes tbody button').click();
	await pane.getByText('300').first().waitFor();
	await done(page, t);
});

for (const [scheme, width] of THEMES)
	test(`what is selected can be read: ${scheme}, ${width}`, async (t) => {
		const page = await open(`?a=${start}&b=${start + 66 * MS}&threads=all&tab=range&base=${start}-${start + 9 * MS}`, { scheme, width });
		assert.deepEqual(await unreadable(page), []);
		assert.deepEqual(await violations(page), []);
		await page.getByRole('tab', { name: 'Calls' }).click();
		await panel(page, 'Calls').locator('tbody').waitFor();
		await settled(page);
		assert.deepEqual(await unreadable(page), []);
		assert.deepEqual(await violations(page), []);
		await page.getByRole('button', { name: 'Sort' }).click();
		await painted(page);
		assert.deepEqual(await violations(page), []);
		await done(page, t);
	});
