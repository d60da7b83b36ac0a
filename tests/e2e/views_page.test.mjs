/*
 * Ways to look at the merged calls: steps that reshape them, the sandwich, metrics, the app's own
 * frames, and what can be done with a method; each as a person would do it.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { done, open, openTrace, server, id, shots } from './page.mjs';
import { root, tracewell } from './server.mjs';

const graph = (page, panel = 'Merged flame graph') => page.getByRole('region', { name: panel });
const flame = (page) => page.locator('[data-flame]');

/* What the server says of what the page shows. */
async function answer(page) {
	await page.waitForSelector('[data-flame]');
	const at = new URL(page.url());
	const p = new URLSearchParams({ thread: at.searchParams.get('threads') === 'all' ? 'all' : at.searchParams.get('thread') ?? 'all',
		transform: at.searchParams.get('t') ?? '', metric: at.searchParams.get('metric') ?? 'wall' });
	const { status, json, text } = await server.get(`${at.pathname.replace('/traces/', '/api/v1/traces/')}/flame?${p}`);
	assert.equal(status, 200, text);
	return json;
}

/* The heaviest path's first node, by keys. */
async function walkTo(page, downs) {
	await flame(page).locator('canvas').focus();
	await page.keyboard.press('Home');
	for (let i = 0; i < downs; i++) await page.keyboard.press('ArrowDown');
	return (await page.locator('.keyed .mono').first().textContent()) ?? '';
}

async function choose(page, item) {
	await page.keyboard.press('m');
	const menu = page.getByRole('menu');
	await menu.waitFor();
	await menu.getByRole('menuitem', { name: item, exact: true }).click();
	await page.waitForSelector('[data-flame]');
}

const names = (node, out = new Set()) => {
	if (node.method !== undefined) out.add(node.name);
	node.children.forEach((c) => names(c, out));
	return out;
};

test('a method is left out, merged and looked at alone; steps are taken back', async (t) => {
	const page = await openTrace('?threads=all');
	const whole = await answer(page);
	const name = await walkTo(page, 2);
	assert.ok(names(whole).has(name), name);

	await choose(page, 'Without this method');
	await page.locator('.step').waitFor();
	await page.waitForFunction(() => location.search.includes('drop'));
	assert.ok(!names(await answer(page)).has(name));

	await page.goBack();
	await page.locator('.step').waitFor({ state: 'detached' });
	await walkTo(page, 2);
	await choose(page, 'Only this method');
	await page.waitForFunction(() => location.search.includes('focus'));
	const only = await answer(page);
	assert.deepEqual(only.children.map((c) => c.name), [name]);

	await page.reload();
	await page.locator('.step').waitFor();
	await page.getByRole('button', { name: /^Take back/ }).click();
	await page.locator('.step').waitFor({ state: 'detached' });
	assert.equal((await answer(page)).value, whole.value);
	await done(page, t);
});

test('a sandwich shows callers above and callees below', async (t) => {
	const page = await openTrace('?threads=all');
	const name = await walkTo(page, 3);
	await choose(page, 'Callers and callees').catch(() => undefined);
	await page.waitForSelector('[data-half="Callers"]');
	await page.waitForSelector('[data-half="Callees"]');
	assert.equal(await page.locator('.sandwich h3.mono').textContent(), name);
	assert.equal(await page.locator('.sandwich canvas').count(), 2);
	/* the middle is the lowest row of the callers */
	const callers = page.locator('[data-half="Callers"] canvas');
	await callers.focus();
	await page.keyboard.press('Home');
	assert.equal(await page.locator('[data-half="Callers"] .keyed .mono').textContent(), name);
	await page.keyboard.press('ArrowUp');
	const caller = await page.locator('[data-half="Callers"] .keyed .mono').textContent();
	assert.notEqual(caller, name);
	await page.keyboard.press('Enter');
	await page.waitForFunction((n) => document.querySelector('.sandwich h3.mono')?.textContent === n, caller);
	if (shots) await page.screenshot({ path: path.join(shots, 'sandwich.png'), fullPage: true });
	await done(page, t);
});

test('only the app\'s frames, and a library as one frame', async (t) => {
	const page = await openTrace('?threads=all');
	const whole = await answer(page);
	await page.getByRole('button', { name: 'App frames only', exact: true }).click();
	await page.waitForFunction(() => location.search.includes('t=app'));
	const own = await answer(page);
	assert.equal(own.value, whole.value, 'time moves, it is not lost');
	assert.ok([...names(own)].every((n) => !/^(android|java|kotlin|androidx)\./.test(n)));
	await page.getByRole('button', { name: 'App frames only', exact: true }).click();
	await page.locator('.step').waitFor({ state: 'detached' });
	const name = await walkTo(page, 2);
	await page.keyboard.press('m');
	const item = page.getByRole('menuitem', { name: /^Show (?!recursion)\S+ as one frame$/ });
	const pkg = /^Show (\S+) as/.exec(await item.textContent())[1];
	assert.ok(name.startsWith(pkg + '.'), `${name} is of ${pkg}`);
	await item.click();
	await page.waitForFunction(() => location.search.includes('library'));
	const folded = await answer(page);
	assert.ok(names(folded).has(`[${pkg}]`) && !names(folded).has(name));
	await done(page, t);
});

test('whose code a method is can be said', async (t) => {
	const page = await openTrace('?threads=all');
	await page.waitForSelector('[data-flame]');
	const before = names(await answer(page));
	const mine = [...before].find((n) => n.startsWith('com.acme.shop.'));
	const pkg = mine.split('.').slice(0, 3).join('.');
	await page.goto(`${server.url}/builds`);
	const panel = page.getByRole('region', { name: 'App frames' });
	await panel.getByLabel('Kotlin coroutines').uncheck();
	await panel.getByLabel(/^Also other people/).fill(`${pkg}\n\n`);
	await panel.getByRole('button', { name: 'Save' }).click();
	await panel.getByText('Saved.').waitFor();
	await page.reload();
	assert.equal(await panel.getByLabel(/^Also other people/).inputValue(), pkg);
	assert.ok(!(await panel.getByLabel('Kotlin coroutines').isChecked()));
	await page.goto(`${server.url}/traces/${id}?threads=all&t=app`);
	assert.ok(![...names(await answer(page))].some((n) => n.startsWith(pkg + '.')));
	await page.goto(`${server.url}/builds`);
	await panel.getByLabel(/^Also other people/).fill('x'.repeat(300));
	await panel.getByRole('button', { name: 'Save' }).click();
	await panel.getByRole('alert').waitFor();
	assert.equal((await server.put('/api/v1/frames', '{}', { key: server.read })).status, 200);
	await done(page, t);
});

test('the table follows the steps, and its rows have the same menu', async (t) => {
	const page = await openTrace('?threads=all');
	const table = graph(page, 'Methods');
	const first = table.locator('tbody tr').first();
	const name = await first.locator('td.name').textContent();
	await first.getByRole('button', { name: `More about ${name}` }).click();
	await page.getByRole('menuitem', { name: 'Merge into its callers' }).click();
	await page.waitForFunction(() => location.search.includes('merge'));
	await page.waitForFunction((n) => ![...document.querySelectorAll('table.methods td.name')].some((x) => x.textContent === n), name);
	/* by keyboard: opened, left by Escape, focus is where it was */
	const more = table.locator('tbody tr').first().getByRole('button', { name: /^More about/ });
	await more.focus();
	await page.keyboard.press('Enter');
	await page.getByRole('menu').waitFor();
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('Escape');
	await page.getByRole('menu').waitFor({ state: 'detached' });
	assert.ok(await more.evaluate((e) => e === document.activeElement));
	await done(page, t);
});

test('CPU and waiting time, where a trace tells them', async (t) => {
	const none = await openTrace();
	assert.equal(await none.getByRole('button', { name: 'Waiting' }).count(), 0);
	await done(none, t);
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-views-'));
	t.after(() => fs.rmSync(dir, { recursive: true, force: true }));
	const file = path.join(dir, 'dual.trace');
	fs.writeFileSync(file, execFileSync('python3', [path.join(root, 'tests', 'gen', 'art.py'), 'v1-dual', '--json', path.join(dir, 't.json'),
		'--seed', '5', '--calls', '900', '--threads', '3']));
	const dual = tracewell('push', '--server', server.url, '--key', server.ingest, '--wait', file);
	assert.notEqual(dual, id);
	const page = await open(`/traces/${dual}?threads=all`);
	await page.waitForSelector('[data-flame]');
	const wall = await answer(page);
	await graph(page).getByRole('button', { name: 'CPU' }).click();
	await page.waitForFunction(() => location.search.includes('metric=cpu'));
	const cpu = await answer(page);
	await graph(page).getByRole('button', { name: 'Waiting' }).click();
	await page.waitForFunction(() => location.search.includes('metric=waiting'));
	const waiting = await answer(page);
	assert.ok(cpu.value > 0 && waiting.value > 0 && cpu.value + waiting.value <= wall.value);
	const table = graph(page, 'Methods');
	await table.getByRole('button', { name: 'Waiting' }).click();
	await page.waitForFunction(() => location.search.includes('sort=waiting_ns'));
	await table.locator('th[aria-sort="descending"]', { hasText: 'Waiting' }).waitFor();
	await done(page, t);
});
