/*
 * Views of merged calls: transform steps, the sandwich, metrics, the app's own frames, and the actions of a
 * method, each as a user performs it.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { copied, settled, tab } from '../browser.mjs';
import { inverted, paths, STEPS, stepped, subtree } from '../reshape_reference.mjs';
import { done, open, openTrace, server, id, shots } from '../page.mjs';
import { newFolder, root, tracewell, until } from '../server.mjs';

const graph = (page, panel = 'Merged flame graph') => page.getByRole('region', { name: panel });
const flame = (page) => page.locator('[data-flame]');

/* The server's response for the shown view. */
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
	await page.waitForSelector('[data-flame]');
	await flame(page).locator('canvas').focus();
	await page.keyboard.press('Home');
	for (let i = 0; i < downs; i++) await page.keyboard.press('ArrowDown');
	return (await page.locator('.keyed .mono').first().textContent()) ?? '';
}

/* As the page writes a time. */
function lasting(ns) {
	const [size, unit] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']].find(([s]) => ns >= s) ?? [1, 'ns'];
	const v = ns / size;
	return ns === 0 ? '0' : `${v.toFixed(size === 1 || v >= 100 ? 0 : v >= 10 ? 1 : 2)} ${unit}`;
}

async function choose(page, item, shown = '[data-flame]') {
	await page.keyboard.press('m');
	const menu = page.getByRole('menu');
	await menu.waitFor();
	await menu.getByRole('menuitem', { name: item, exact: true }).click();
	await page.waitForSelector(shown);
}

const names = (node, out = new Set()) => {
	if (node.method !== undefined) out.add(node.name);
	node.children.forEach((c) => names(c, out));
	return out;
};

test('a method is dropped, merged and focused; steps are undone', async (t) => {
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
	await page.getByRole('button', { name: /^Undo/ }).click();
	await page.locator('.step').waitFor({ state: 'detached' });
	assert.equal((await answer(page)).value, whole.value);
	await done(page, t);
});

test('a sandwich shows callers above and callees below', async (t) => {
	const page = await openTrace('?threads=all');
	const name = await walkTo(page, 3);
	await choose(page, 'Callers and callees', '[data-half="Callers"]');
	await page.waitForSelector('[data-half="Callees"]');
	assert.equal(await page.locator('.sandwich h3.mono').textContent(), name);
	assert.equal(await page.locator('.sandwich canvas').count(), 2);
	/* the middle is the lowest row of the callers */
	const low = () => page.locator('[data-half="Callers"] .flame').evaluate((e) => e.scrollHeight - e.clientHeight - e.scrollTop);
	assert.ok((await low()) < 2, 'and in view');
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

test('from a row below, the sandwich is shown and has the keys', async (t) => {
	const page = await openTrace('?threads=all&tab=methods');
	const row = page.locator('section[aria-label="Methods"] tbody tr').nth(6);
	await row.click({ button: 'right' });
	await page.getByRole('menuitem', { name: 'Callers and callees' }).click();
	await page.waitForSelector('[data-half="Callers"]');
	await page.waitForFunction(() => document.activeElement?.matches('.sandwich h3.mono'));
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

test('a method can be classified as app or library', async (t) => {
	const page = await openTrace('?threads=all');
	await page.waitForSelector('[data-flame]');
	const before = names(await answer(page));
	const mine = [...before].find((n) => n.startsWith('com.acme.shop.'));
	const pkg = mine.split('.').slice(0, 3).join('.');
	await page.goto(`${server.url}/builds`);
	const panel = page.getByRole('region', { name: 'App frames' });
	await panel.getByLabel('Kotlin coroutines').uncheck();
	await panel.getByLabel(/^Also treat as library/).fill(`${pkg}\n\n`);
	await panel.getByRole('button', { name: 'Save' }).click();
	await panel.getByText('Saved.').waitFor();
	await page.reload();
	assert.equal(await panel.getByLabel(/^Also treat as library/).inputValue(), pkg);
	assert.ok(!(await panel.getByLabel('Kotlin coroutines').isChecked()));
	await page.goto(`${server.url}/traces/${id}?threads=all&t=app`);
	assert.ok(![...names(await answer(page))].some((n) => n.startsWith(pkg + '.')));
	await page.goto(`${server.url}/builds`);
	await panel.getByLabel(/^Also treat as library/).fill('x'.repeat(300));
	await panel.getByRole('button', { name: 'Save' }).click();
	await panel.getByRole('alert').waitFor();
	assert.equal((await server.put('/api/v1/frames', '{}', { key: server.write })).status, 200);
	await done(page, t);
});

test('the table follows the steps, and its rows have the same menu', async (t) => {
	const page = await openTrace('?threads=all&tab=methods');
	const table = graph(page, 'Methods');
	const first = table.locator('tbody tr').first();
	const name = await first.locator('td.name').textContent();
	await first.getByRole('button', { name: `More about ${name}` }).click();
	await page.getByRole('menuitem', { name: 'Merge into its callers' }).click();
	await page.waitForFunction(() => location.search.includes('merge'));
	await page.waitForFunction((n) => ![...document.querySelectorAll('table.methods td.name')].some((x) => x.textContent === n), name);
	await table.getByText('p95 is computed from recorded calls and is not available after the graph was changed').waitFor();
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

const ROWS = 50;

/* The table, as a user copies it: self time by method, of the methods with the most. */
async function ownTimes(page) {
	await page.waitForSelector('.panel[aria-label=Methods] > div:not(.stale) table');
	const copy = graph(page, 'Methods').getByRole('button', { name: /^Cop/ });
	const lines = (await copied(page, () => copy.click())).split('\n').map((l) => l.split('\t'));
	const self = lines[0].indexOf('self_ns');
	return lines.slice(1).map((l) => [l[0], Number(l[self])]).filter(([, ns]) => ns > 0);
}

/* The same of every path by hand. */
function ownOf(map) {
	const own = {};
	for (const [p, ns] of map) {
		const last = p.split(' > ').at(-1);
		if (last) own[last] = (own[last] ?? 0) + ns;
	}
	return own;
}

/* Every row has the right time, and no other method has more. */
function holds(rows, own, what) {
	assert.deepEqual(rows, rows.map(([name]) => [name, own[name]]), what);
	assert.deepEqual(rows.map(([, ns]) => ns), Object.values(own).sort((a, b) => b - a).slice(0, ROWS).filter((ns) => ns > 0), what);
}

test('on a phone methods and calls are blocks that keep their order, and bars of durations are wide enough for a finger', async (t) => {
	const page = await open(`/traces/${id}?tab=methods`, 'light', 390);
	const fits = () => page.locator('.tabbody').evaluate((e) => e.scrollWidth <= e.clientWidth);
	const columns = (row) => page.locator(row).first().evaluate((e) => [...e.cells].map((c) => c.dataset.column ?? 'none'));
	await page.locator('.methods tbody tr').first().waitFor();
	assert.deepEqual((await columns('.methods tbody tr')).slice(0, 2), ['', 'Calls']);
	assert.ok(await fits(), 'methods');
	await page.locator('.methods thead').getByRole('button', { name: 'Calls', exact: true }).click();
	await page.waitForFunction(() => new URLSearchParams(location.search).get('sort') === 'count');
	await page.goto(`${server.url}/traces/${id}?threads=all&tab=calls`);
	await page.locator('.histogram .bars button').first().waitFor();
	assert.deepEqual((await columns('.methods tbody tr')).slice(0, 3), ['Duration', 'Start', '']);
	assert.ok(await fits(), 'calls');
	const bars = await page.locator('.histogram .bars button').evaluateAll((all) => all.map((b) => [b.getBoundingClientRect().width, parseInt(b.ariaLabel.replaceAll(',', ''), 10)]));
	assert.ok(bars.every(([width]) => width >= 24), JSON.stringify(bars));
	const { count } = (await server.get(`/api/v1/traces/${id}/calls`)).json;
	assert.equal(bars.reduce((n, [, calls]) => n + calls, 0), count, 'no call is lost');
	await done(page, t);
});

test('on a phone a name breaks between its words', async (t) => {
	const page = await open(`/traces/${id}?threads=all&tab=methods&rows=${ROWS}`, 'light', 390);
	await page.waitForSelector('.methods tbody tr');
	await settled(page);
	const { names, broken } = await page.evaluate(() => {
		const range = document.createRange();
		const out = { names: 0, broken: [] };
		for (const cell of document.querySelectorAll('.methods td.name')) {
			const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
			const chars = [];
			while (walk.nextNode())
				for (let i = 0; i < walk.currentNode.data.length; i++) {
					range.setStart(walk.currentNode, i);
					range.setEnd(walk.currentNode, i + 1);
					chars.push([walk.currentNode.data[i], Math.round(range.getBoundingClientRect().bottom)]);
				}
			const ends = chars.flatMap(([, bottom], i) => (i > 0 && bottom > chars[i - 1][1] ? [i] : []));
			out.names += ends.length > 0;
			for (const i of ends) if (/[a-z]{2}/.test(chars[i - 1][0] + chars[i][0])) out.broken.push(`${cell.textContent} at ${i}`);
		}
		return out;
	});
	assert.ok(names > 0, 'some are longer than a line');
	assert.deepEqual(broken, []);
	await done(page, t);
});

test('each step gives what a walk over every path gives, is a crumb and can be undone', async (t) => {
	const page = await open('/');
	await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
	await page.goto(`${server.url}/traces/${id}?threads=all&rows=${ROWS}`);
	const list = paths((await server.get(`/api/v1/traces/${id}/flame?thread=all&max_nodes=200000`)).json);
	const { methods } = (await server.get(`/api/v1/traces/${id}/methods?limit=${ROWS}`)).json;
	const m = methods.find((x) => !x.name.includes('<img') && list.filter(([p]) => p.includes(x.name)).length > 3 && list.some(([p]) => p.indexOf(x.name) > 0 && p.at(-1) !== x.name));
	const row = graph(page, 'Methods').getByRole('button', { name: `More about ${m.name}`, exact: true });
	const pkg = m.name.split('.').slice(0, -2).join('.');
	const whole = ownOf(stepped(list));
	const before = await ownTimes(page);
	holds(before, whole, 'as it was');
	const cases = [['Only this method', 'focus', STEPS.focus(m.name)], ['Without this method', 'drop', STEPS.drop(m.name)], ['Merge into its callers', 'merge', STEPS.merge(m.name)],
		['Merge its callees into it', 'fold', STEPS.fold(m.name)], ['Show recursion as one frame', 'recursion', STEPS.recursion()], [`Show ${pkg} as one frame`, 'library', STEPS.frame(pkg)]];
	for (const [item, kind, step] of cases) {
		await row.click();
		await page.getByRole('menuitem', { name: item, exact: true }).click();
		await page.locator('.step').waitFor();
		assert.ok(new URL(page.url()).searchParams.get('t').startsWith(kind));
		holds(await ownTimes(page), ownOf(stepped(list, step)), item);
		await page.getByRole('button', { name: /^Undo/ }).click();
		await page.locator('.step').waitFor({ state: 'detached' });
		await until(async () => (isDeepStrictEqual(await ownTimes(page), before) ? true : undefined), 'the rows are as they were'); // a menu of one of before goes with it
	}
	holds(await ownTimes(page), whole, 'undone');
	await tab(page, 'Flame graph');
	await page.getByRole('button', { name: 'Bottom-up' }).click();
	await page.locator('.step:has-text("inverted")').waitFor();
	await page.waitForSelector('[data-flame]');
	assert.equal(await walkTo(page, 1), Object.entries(whole).sort((a, b) => b[1] - a[1])[0][0], 'on top is who spent most');
	/* in full: the children of the root, as a table, against every path */
	const below = async () => (await graph(page).locator('tbody tr').evaluateAll((rows) => rows.map((r) => [r.cells[0].textContent, r.cells[1].textContent]))).filter(([n]) => !n.endsWith('smaller nodes'));
	const agrees = async (map, what) => {
		const own = [...map].filter(([p]) => !p.includes(' > '));
		const rows = await below();
		assert.ok(rows.length > 0, what);
		assert.deepEqual(rows, rows.map(([n]) => [n, lasting(map.get(n))]), what);
		assert.deepEqual(rows.map(([, v]) => v), own.map(([, v]) => v).sort((x, y) => y - x).slice(0, rows.length).map(lasting), what);
	};
	await page.getByRole('button', { name: 'Children as a table' }).click();
	await graph(page).locator('tbody tr').first().waitFor();
	await agrees(inverted(list, [], 1), 'inverted');
	await page.getByRole('button', { name: 'Undo: inverted' }).click();
	await page.waitForSelector('[aria-pressed=true]:has-text("Top-down")');
	/* focus subtree: the graph shows one path, as the address and breadcrumbs do */
	await page.waitForSelector('[data-flame]');
	const name = await walkTo(page, 2);
	await page.keyboard.press('Enter');
	await page.waitForSelector('.crumbs');
	await page.waitForSelector('[data-flame]');
	const { names: all } = (await server.get(`/api/v1/traces/${id}/names`)).json;
	const at = new URL(page.url()).searchParams.get('root').split('.').map((i) => all[i]);
	assert.equal(at.at(-1), name);
	assert.equal(await page.locator('.crumbs button[aria-current=true]').getAttribute('title'), name);
	await agrees(subtree(list, at, 1), 'the subtree');
	await page.goBack();
	await page.waitForSelector('.crumbs', { state: 'detached' });
	await done(page, t);
});

test('a permalink holds every state of the page', async (t) => {
	const { threads } = (await server.get(`/api/v1/traces/${id}/threads`)).json;
	const busy = threads.filter((x) => x.slices > 0);
	const page = await open(`/traces/${id}`, 'light', 1280);
	await page.waitForSelector('[data-ready]');
	for (const x of busy.slice(0, 3)) {
		const closed = page.locator(`[aria-label="Open ${x.name}"]`);
		if (await closed.count()) await closed.click();
	}
	await settled(page); // a click on a name that moves at that moment would be lost
	for (const [i, x] of busy.slice(1, 3).entries()) {
		await page.locator('.threads .name', { has: page.locator(`.num:text-is("${x.tid}")`) }).click({ modifiers: ['Control'] });
		await page.waitForFunction((n) => document.querySelectorAll('.threads .picked').length === n, i + 2);
	}
	await page.locator('canvas.calls').focus();
	await page.keyboard.press('w');
	await page.keyboard.press('v');
	await page.fill('.search input', 'run');
	await page.getByRole('button', { name: 'App frames only', exact: true }).click();
	await page.getByRole('button', { name: 'Calls', exact: true }).first().click();
	await page.getByRole('button', { name: 'Bottom-up' }).click();
	await page.waitForSelector('[data-flame]');
	await settled(page);
	await page.click('text=Children as a table');
	await tab(page, 'Call tree');
	await page.waitForSelector('.treebody .treerow[aria-level="2"]');
	await settled(page); // an arrow key on a tree that is replaced at that moment would be lost
	await page.locator('.tree').focus();
	await page.keyboard.press('ArrowDown');
	await page.waitForFunction(() => document.getElementById(document.querySelector('.tree').getAttribute('aria-activedescendant'))?.ariaLevel === '2');
	await page.keyboard.press('ArrowRight');
	await page.waitForSelector('.treebody .treerow[aria-level="3"]');
	const table = graph(page, 'Methods');
	await tab(page, 'Methods');
	await table.getByLabel('Filter').fill('a');
	await settled(page);
	await table.locator('th button', { hasText: 'Total' }).click();
	await table.getByRole('button', { name: 'Columns' }).click();
	await table.getByLabel('Wall').check();
	await table.getByRole('button', { name: 'Columns' }).click();
	await page.locator('.scroller').evaluate((e) => { e.scrollTop = 60; });
	const state = async () => {
		await page.waitForSelector('[data-ready]');
		await tab(page, 'Methods');
		await table.locator('th[aria-sort="descending"]', { hasText: 'Total' }).waitFor();
		await settled(page);
		const methods = (await table.locator('table').textContent()).replace(/–|\d+(\.\d+)? (ns|µs|ms|s)/g, '');
		await tab(page, 'Call tree');
		await page.waitForSelector('.treebody .treerow[aria-level="3"]');
		await settled(page);
		return { methods, ...(await page.evaluate(() => ({
			search: location.search,
			pressed: [...document.querySelectorAll('main [aria-pressed]')].map((e) => `${e.textContent} ${e.getAttribute('aria-pressed')}`),
			open: [...document.querySelectorAll('.threads [aria-expanded]')].map((e) => e.getAttribute('aria-label')),
			picked: [...document.querySelectorAll('.threads .picked')].map((e) => e.textContent),
			top: document.querySelector('.scroller').scrollTop,
			steps: [...document.querySelectorAll('.step')].map((e) => e.textContent),
			tree: [...document.querySelectorAll('.treebody .treerow')].map((e) => e.textContent),
			inputs: [...document.querySelectorAll('main input[type=search]')].map((e) => e.value),
			children: document.querySelector('[aria-label="Call tree"] table')?.textContent,
			under: [...document.querySelectorAll('.timeline .under .quiet')].map((e) => e.textContent),
		}))) };
	};
	const before = await state();
	assert.ok(before.picked.length === 3 && before.steps.length === 2 && before.top > 0, JSON.stringify([before.picked, before.steps, before.top]));
	await page.reload();
	assert.deepEqual(await state(), before);
	/* in another browser without stored state: the address alone; then the sandwich */
	const other = await open(`/traces/${id}${before.search}`);
	await other.waitForSelector('.treebody .treerow[aria-level="3"]');
	assert.equal(await other.locator('[data-ready]').innerText(), before.under[0]);
	await tab(other, 'Flame graph');
	await other.getByRole('button', { name: 'Sandwich' }).click();
	const method = (await server.get(`/api/v1/traces/${id}/methods?limit=3`)).json.methods[1];
	await other.goto(`${server.url}/traces/${id}?threads=all&view=sandwich&method=${method.method}`);
	await other.waitForSelector('[data-half="Callers"] canvas');
	await settled(other);
	for (const title of ['Callers', 'Callees']) {
		const button = other.locator(`text=${title} as a table`);
		if (await button.count()) await button.click();
	}
	await settled(other);
	const tables = () => other.locator('.sandwich table').allInnerTexts();
	await other.waitForSelector('.sandwich table tbody tr');
	const reported = await tables();
	await other.reload();
	await other.waitForSelector('[data-half="Callers"] table tbody tr');
	await other.waitForSelector('[data-half="Callees"]');
	assert.deepEqual(await tables(), reported);
	/* the table equals the server's response: callers, heaviest first */
	const up = (await server.get(`/api/v1/traces/${id}/flame?thread=all&view=bottom_up&transform=fold:${method.method}&root=${method.method}`)).json;
	assert.deepEqual((await other.locator('[data-half="Callers"] tbody tr').allInnerTexts()).map((r) => r.split(/[\n\t]/)[0].trim()).slice(0, 5), up.children.slice(0, 5).map((c) => c.name));
	await done(other, t);
	await done(page, t);
});

test('a permalink holds tables, rows and how far each graph is scrolled', async (t) => {
	const page = await openTrace('?threads=all');
	await page.waitForSelector('[data-flame]');
	await page.getByRole('button', { name: 'Visible calls as a table' }).click();
	const listed = (p) => p.locator('.timeline .short tbody').innerText();
	await page.waitForSelector('.timeline .short td');
	const whole = await listed(page);
	await page.locator('canvas.calls').focus();
	for (let i = 0; i < 3; i++) await page.keyboard.press('w');
	await page.waitForFunction((before) => ![before, ''].includes(document.querySelector('.timeline .short tbody')?.innerText), whole); // it follows the view
	await settled(page);
	const scroll = (where, px) => page.locator(where).evaluate((e, y) => { e.scrollTop = y; }, px);
	const stands = (p, where, px) => p.waitForFunction(([w, y]) => document.querySelector(w)?.scrollTop === y, [where, px]);
	const reopened = async () => {
		await settled(page);
		return open(`/traces/${id}${new URL(page.url()).search}`);
	};
	await scroll('.flame', 180);
	let other = await reopened();
	await stands(other, '.flame', 180);
	await other.waitForSelector('.timeline .short td');
	assert.equal(await listed(other), await listed(page));
	await done(other, t);
	/* another graph begins at its top; the one before is as it was */
	await flame(page).locator('canvas').click({ position: { x: 40, y: 60 } });
	await page.waitForSelector('.crumbs');
	await stands(page, '[data-flame] .flame', 0);
	await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))); // it has been announced
	await page.goBack();
	await page.waitForSelector('.crumbs', { state: 'detached' });
	await stands(page, '[data-flame] .flame', 180);
	await page.getByRole('button', { name: 'Children as a table' }).click();
	await page.goto(`${server.url}/traces/${id}?threads=all&view=bottom_up&tables=children`);
	const below = graph(page).locator('table tbody tr');
	await graph(page).getByRole('button', { name: /^Show more of/ }).click();
	await page.waitForFunction(() => document.querySelectorAll('[aria-label="Merged flame graph"] tbody tr').length > 50);
	other = await reopened();
	await other.waitForFunction((n) => document.querySelectorAll('[aria-label="Merged flame graph"] tbody tr').length === n, await below.count());
	await done(other, t);
	/* callers, whose root is below, and a tree that has to be opened first */
	await page.goto(`${server.url}/traces/${id}?threads=all&view=sandwich&method=1`);
	await page.waitForSelector('[data-half="Callers"] canvas');
	const top = await page.locator('[data-half="Callers"] .flame').evaluate((e) => (e.scrollTop -= 90));
	other = await reopened();
	await stands(other, '[data-half="Callers"] .flame', top);
	await done(other, t);
	await page.goto(`${server.url}/traces/${id}?threads=all&as=tree`);
	await page.waitForSelector('.treebody .treerow[aria-level="2"]');
	await page.locator('.tree').focus();
	await page.keyboard.press('*');
	await page.waitForFunction(() => document.querySelector('.treebody').scrollTop > 100);
	await settled(page);
	await scroll('.treebody', 240);
	other = await reopened();
	await stands(other, '.treebody', 240);
	await done(other, t);
	await done(page, t);
});

test('CPU and waiting time, if a trace has them', async (t) => {
	const none = await openTrace();
	assert.equal(await none.getByRole('button', { name: 'CPU', exact: true }).count(), 0);
	await done(none, t);
	const dir = newFolder(t, 'tracewell-views-');
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
	await tab(page, 'Methods');
	const table = graph(page, 'Methods');
	await table.getByRole('button', { name: 'Waiting' }).click();
	await page.waitForFunction(() => location.search.includes('sort=waiting_ns'));
	await table.locator('th[aria-sort="descending"]', { hasText: 'Waiting' }).waitFor();
	/* each metric in tree, bottom-up and sandwich: the shown values are the server's */
	const { methods } = (await server.get(`/api/v1/traces/${dual}/methods?limit=3&sort=total_ns`)).json;
	const middle = methods[2].method;
	for (const metric of ['wall', 'cpu', 'waiting', 'count']) {
		const ask = async (more) => (await server.get(`/api/v1/traces/${dual}/flame?thread=all&metric=${metric}&max_nodes=20000${more}`)).json.children;
		const show = metric === 'count' ? (v) => v.toLocaleString('en') : lasting;
		for (const view of ['top_down', 'bottom_up']) {
			await page.goto(`${server.url}/traces/${dual}?threads=all&metric=${metric}&view=${view}&as=tree&tree=-`); // only the first level
			await page.waitForSelector('.treebody .treerow[aria-level="2"]');
			const rows = await page.locator('.treebody .treerow[aria-level="2"]').evaluateAll((all) => all.map((r) => [r.querySelector('.method').textContent, ...[...r.querySelectorAll('.num')].slice(0, 3).map((c) => c.textContent)]));
			const want = await ask(`&view=${view}`);
			assert.ok(rows.length > 2 && want.some((c) => c.value > 0), `${metric} ${view}`);
			assert.deepEqual(rows, want.slice(0, rows.length).map((c) => [c.name.split('.').slice(-2).join('.'), show(c.value), show(c.self), c.count.toLocaleString('en')]), `${metric} ${view}`);
		}
		await page.goto(`${server.url}/traces/${dual}?threads=all&metric=${metric}&view=sandwich&method=${middle}&tables=callers,callees`);
		for (const [half, more] of [['Callers', `&view=bottom_up&transform=fold:${middle}&root=${middle}`], ['Callees', `&transform=focus:${middle}&root=${middle}`]]) {
			await page.waitForSelector(`[data-half="${half}"] table`);
			const rows = await page.locator(`[data-half="${half}"] tbody tr`).evaluateAll((all) => all.map((r) => [...r.cells].slice(0, 4).map((c) => c.textContent)));
			const want = await ask(more);
			assert.ok(want.length > 0, half);
			assert.deepEqual(rows, want.slice(0, 50).map((c) => [c.name, show(c.value), show(c.self), c.count.toLocaleString('en')]), `${metric} ${half}`);
		}
	}
	await done(page, t);
});
