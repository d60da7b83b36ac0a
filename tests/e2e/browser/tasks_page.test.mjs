/*
 * Tasks of those who read traces, each with the clicks and keys that it takes: from an open trace to an answer that is
 * on the screen and true. A typed name counts as one key.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, navigate, settled, visit } from '../browser.mjs';
import { btrace } from '../make.mjs';
import { root, startServer, until } from '../server.mjs';

const PID = 21010, DISK = 21055, MS = 1_000_000;
const NAMES = ['com.acme.App.onCreate', 'com.acme.json.Parser.parseAll', 'com.acme.json.Parser.parseOne', 'com.acme.db.Store.open'];
const ending = [];
let server, browser, start, kernel, frames, anr;
const EACH = 12; // traces of a version

/* onCreate { parseAll { parseOne, parseOne } open }, in milliseconds; `all` is the time of parseAll. */
const cold = (all = 60) => btrace([[PID, 3, 10, 5], [PID, 3, 20, 12], [PID, 2, 8, all], [PID, 4, 120, 20], [PID, 1, 1, 140 + all]]
	.map(([tid, method, at, dur]) => [tid & 0x7fff, method, at * MS, dur * MS]), { pid: PID & 0x7fff });

/* The main thread waits 200 ms for a lock that `disk`, a thread without calls, holds, and is blocked during that time. */
function locked() {
	const stamp = (ms) => (4000 + ms / 1000).toFixed(6);
	const mark = (ms, text) => `.acme.shop-${PID} (${PID}) [000] ...1 ${stamp(ms)}: tracing_mark_write: ${text}`;
	const turn = (ms, from, state, to) => `x-${from} (${from ? PID : '-----'}) [000] d..2 ${stamp(ms)}: sched_switch: prev_comm=${from === DISK ? 'disk' : '.acme.shop'} prev_pid=${from} prev_prio=120 prev_state=${state} ==> next_comm=${to === DISK ? 'disk' : '.acme.shop'} next_pid=${to} next_prio=120`;
	return ['# tracer: nop', '#', turn(0, 0, 'R', PID), mark(1, `B|${PID}|doFrame`),
		mark(100, `B|${PID}|monitor contention with owner disk (${DISK}) at void com.acme.Store.put()(Store.java:88) waiters=0 blocking from int com.acme.Store.size()(Store.java:31)`),
		turn(100.1, PID, 'S', DISK), turn(300, DISK, 'S', PID), mark(300.2, `E|${PID}`), mark(400, `E|${PID}`), turn(500, PID, 'S', 0), ''].join('\n');
}

before(async () => {
	server = await startServer({ after: (f) => ending.push(f) });
	const mapping = NAMES.map((n, i) => `${i + 1},1,${n.replace(/\.(\w+)$/, ' $1')} ()V`).join('\n') + '\n';
	for (const [version, all] of [['8.3.0', 40], ['8.4.0', 60]]) {
		await server.put(`/api/v1/builds/v${version}/methods`, mapping);
		for (let i = 0; i < EACH; i++) {
			const sent = await server.post('/api/v1/traces', cold(all + (i % 5) / 10), { query: { app: 'shop', version_name: version, build_id: `v${version}`, scenario: 'cold_start' }, headers: { 'Idempotency-Key': `${version}-${i}` } });
			assert.ok(sent.status <= 202, sent.text);
		}
	}
	start = (await server.trace(cold(), { query: { app: 'shop', version_name: '8.4.0', build_id: 'v8.4.0', scenario: 'cold_start' } })).id;
	kernel = (await server.trace(locked(), { query: { app: 'other', scenario: 'lock' } })).id;
	frames = (await server.trace(fs.readFileSync(path.join(root, 'tests/golden/perfetto/realistic/input')), { query: { app: 'other', scenario: 'scroll' } })).id;
	anr = (await server.trace(fs.readFileSync(path.join(root, 'tests/golden/anr/realistic/input')), { query: { app: 'other', scenario: 'anr' } })).id;
	await until(async () => {
		const { json } = await server.get('/api/v1/fleet/methods?scenario=cold_start');
		return json?.traces === 2 * EACH + 1 && json.methods.every((m) => m.resolved) ? true : undefined;
	}, 'all starts are counted and named');
	browser = await launch();
});

after(async () => {
	await browser?.close();
	for (const f of ending) await f();
});

/* A page whose clicks and keys are counted. */
async function open(address) {
	const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	await visit(page, server, address);
	if (address.startsWith('/traces/')) await page.waitForSelector('[role=tablist]');
	await settled(page);
	const took = { clicks: 0, keys: 0 };
	return { page, took,
		async click(target) {
			took.clicks++;
			await (typeof target === 'string' ? page.locator(target).first() : target).click();
			await settled(page);
		},
		async press(key) {
			took.keys++;
			await page.keyboard.press(key);
			await settled(page);
		},
		async type(text) {
			took.keys++;
			await page.keyboard.type(text);
			await settled(page);
		},
		tab(name) {
			return this.click(page.getByRole('tab', { name, exact: true }));
		} };
}

function task(name, most, address, act) {
	test(name, async (t) => {
		const p = await open(address());
		await act(p, p.page);
		t.diagnostic(`${p.took.clicks} clicks, ${p.took.keys} keys`);
		assert.ok(p.took.clicks + p.took.keys <= most, `${p.took.clicks} clicks and ${p.took.keys} keys, at most ${most}`);
		assert.deepEqual(p.page.problems, []);
		await p.page.context().close();
	});
}

const events = (page) => page.locator('#notes tbody tr');
const shows = (page, selector, text) => page.locator(selector, { hasText: text }).first().waitFor();

task('1. the slowest method of a start', 1, () => `/traces/${start}`, async (p, page) => {
	await p.tab('Methods');
	assert.match(await page.locator('.methods tbody tr').first().innerText(), /onCreate/);
});

task('2. the call that blocked the main thread', 2, () => `/traces/${kernel}`, async (p, page) => {
	await p.tab('Events');
	await p.click('#notes tbody tr button');
	await shows(page, '.callpane .facts', 'int com.acme.Store.size()');
	await shows(page, '.callpane .facts', '200 ms');
});

task('3. who held the lock', 1, () => `/traces/${kernel}`, async (p, page) => {
	await p.tab('Events');
	await shows(page, '#notes td[data-label="held by"]', 'disk');
});

task('4. all calls over 16 ms', 3, () => `/traces/${start}`, async (p, page) => {
	await p.tab('Calls');
	await p.click('input[type=number]');
	await p.type('16');
	const { json } = await server.get(`/api/v1/traces/${start}/calls?min_ns=16000000`);
	await page.waitForFunction((n) => document.querySelectorAll('.methods tbody tr').length === n, json.total);
	assert.ok(json.total > 1 && json.total < 5);
});

task('5. what happened between two moments', 2, () => `/traces/${kernel}`, async (p, page) => {
	const box = await page.locator('canvas.ruler').boundingBox();
	p.took.clicks++;
	await page.mouse.move(box.x + box.width * 0.1, box.y + 12);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width * 0.4, box.y + 12, { steps: 3 });
	await page.mouse.move(box.x + box.width * 0.7, box.y + 12);
	await page.mouse.up();
	await settled(page);
	await p.tab('Selected range');
	await shows(page, 'table.range', 'sleeping');
	await shows(page, 'table.range', 'doFrame');
});

task('6. what a thread waited for', 2, () => `/traces/${kernel}`, async (p, page) => {
	await p.tab('Thread states');
	await shows(page, '.states thead', 'Lock waits');
	await p.tab('Events');
	await shows(page, '#notes td[data-label="held by"]', 'disk');
});

task('7. which frames were late, and why', 2, () => `/traces/${frames}`, async (p, page) => {
	await p.tab('Events');
	await p.click(page.getByRole('button', { name: /^Frames/ }));
	assert.match(await events(page).first().innerText(), /app deadline missed.*late/s);
});

task('8. where the main thread of an ANR stood', 0, () => `/traces/${anr}`, async (p, page) => {
	await shows(page, '#anr', 'Main waits 5 s for a lock of Cart held by DB-writer');
	await shows(page, '#anr', 'Cart.java:88');
});

task('9. a method by a part of its name, and all its calls', 4, () => `/traces/${start}`, async (p, page) => {
	await p.press('/');
	await p.type('parseO');
	await p.press('Enter');
	await shows(page, '.callpane header', 'parseOne');
	await p.click(page.getByRole('button', { name: 'List its 2 calls' }));
	await page.waitForFunction(() => document.querySelectorAll('.methods tbody tr').length === 2);
});

task('10. the source of a call', 4, () => `/traces/${start}`, async (p, page) => {
	await p.press('/');
	await p.type('parseO');
	await p.press('Enter');
	await shows(page, '.callpane header', 'parseOne');
	await p.click(page.locator('.callpane').getByRole('button', { name: 'Source', exact: true }));
	await shows(page, 'dialog[open]', 'com.acme.json.Parser.parseOne');
});

task('11. why the newest version is slower', 2, () => `/traces/${start}`, async (p, page) => {
	p.took.clicks += 2; // the menu and its entry
	await navigate(page, 'Compare');
	await shows(page, '.verdict', /slower.*parseAll/);
	assert.match(await page.locator('#methods tbody tr').first().innerText(), /parseAll/);
});

task('12. how much of a call its thread ran', 2, () => `/traces/${kernel}`, async (p, page) => {
	await p.tab('Calls');
	await p.click('.methods tbody tr button');
	await shows(page, '.callpane header', 'doFrame');
	assert.match(await page.locator('.callpane .facts').innerText(), /wall\s+399 ms[^]*CPU\s+199 ms\s+50 %/i);
});

task('13. the slow binder call and the process that answered it', 1, () => `/traces/${frames}`, async (p, page) => {
	await p.tab('Events');
	await shows(page, '#notes td[data-label="answered by"]', 'surfaceflinger');
});

task('14. which frames were late, and what ran in one', 4, () => `/traces/${frames}`, async (p, page) => {
	await p.tab('Events');
	await p.click(page.getByRole('button', { name: /^Frames/ }));
	await p.click(events(page).filter({ hasText: 'app deadline missed' }).getByRole('button'));
	await p.click(page.getByRole('button', { name: 'Select its time' }));
	await shows(page, '.tabbody p[role=status]', '29.0 ms from 29.0 ms, all threads');
	await shows(page, 'table.range', 'Main.run');
});

task('15. where a method is called from, and the time of each caller', 4, () => `/traces/${start}`, async (p, page) => {
	await p.press('/');
	await p.type('parseO');
	await p.click(page.getByRole('button', { name: 'Sandwich' }));
	await p.click(page.getByRole('button', { name: 'Callers as a table' }));
	const row = page.locator('[data-half=Callers] .methods tbody tr');
	assert.match(await row.first().innerText(), /Parser\s*\.?parseAll\s+17\.0 ms/);
});

task('16. the share of a package in the time of the main thread', 2, () => `/traces/${start}`, async (p, page) => {
	await p.press('/');
	await p.type('com.acme.json');
	await shows(page, '.search output', '2 of 4 methods, 3 calls in');
	await shows(page, '.search output', ', 30 % of its busy time');
});
