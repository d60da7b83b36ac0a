/*
 * The call tree, the table of methods, the search in every view, and calls 3,000 deep, in a real browser
 * as a person uses them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { copied, painted, settled, tab } from '../browser.mjs';
import { btrace } from '../make.mjs';
import { done, id, open, openTrace, server } from '../page.mjs';

const PID = 4321, DEEP = 3000;
const query = (page) => new URL(page.url()).searchParams;
const panel = (page, name) => page.getByRole('region', { name });
const selected = (page) => page.locator('.treerow[aria-selected=true]');
const rows = (page) => page.locator('.treebody .treerow');
const flame = async (more = '') => (await server.get(`/api/v1/traces/${id}/flame?thread=all&format=json${more}`)).json;
const level = async (page) => Number(await selected(page).getAttribute('aria-level'));

async function openTree(more = '') {
	const page = await openTrace(`?threads=all&as=tree&tree=-${more}`); // closed
	await page.waitForSelector('.treebody .treerow[aria-level="2"]');
	await page.locator('.tree').focus();
	return page;
}

/* The depth of the heaviest child's heaviest child and so on. */
function heaviest(node) {
	const next = (node.children ?? []).find((c) => !c.other);
	return next ? 1 + heaviest(next) : 1;
}

test('the call tree is walked and opened by keys, and the address holds it', async (t) => {
	const page = await openTree();
	const whole = await flame('&max_nodes=200000');
	const first = whole.children[0];
	await page.keyboard.press('ArrowDown');
	assert.match(await selected(page).innerText(), new RegExp(first.name.split('.').slice(-2).join('.').replace(/[^\w.]/g, '.')));
	assert.equal(await selected(page).locator('.num').nth(2).innerText(), first.count.toLocaleString('en'));
	await page.keyboard.press('ArrowRight');
	await page.waitForSelector('.treerow[aria-level="3"]');
	assert.equal(await selected(page).getAttribute('aria-expanded'), 'true');
	await page.keyboard.press('ArrowRight');
	assert.equal(await level(page), 3);
	await settled(page);
	const size = () => page.locator('.tree').getAttribute('aria-rowcount');
	const held = await size();
	assert.ok(query(page).get('tree'));
	await page.reload();
	await page.waitForSelector('.treerow[aria-level="3"]');
	assert.equal(await size(), held);
	await page.locator('.tree').focus();
	/* the focused row is announced, also while it is scrolled out of view */
	const active = () => page.evaluate(() => document.getElementById(document.querySelector('.tree').getAttribute('aria-activedescendant'))?.getAttribute('aria-selected'));
	await page.keyboard.press('Home');
	await page.keyboard.press('*');
	await page.waitForFunction((n) => document.querySelector('.treerow[aria-selected=true]')?.getAttribute('aria-level') === String(n), heaviest(whole));
	await page.keyboard.press('End');
	assert.equal(await active(), 'true');
	await page.locator('.treebody').evaluate((e) => { e.scrollTop = 0; });
	await painted(page);
	assert.equal(await active(), 'true');
	await page.goBack();
	await page.waitForFunction((n) => document.querySelector('.tree').getAttribute('aria-rowcount') === n, held);
	await page.keyboard.press('Home');
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('ArrowLeft');
	await page.waitForSelector('.treerow[aria-level="3"]', { state: 'detached' });
	await settled(page);
	await page.keyboard.press('*');
	await page.waitForFunction((n) => document.querySelector('.treerow[aria-selected=true]')?.getAttribute('aria-level') === String(n), heaviest(whole));
	await page.goBack();
	await page.waitForSelector('.treerow[aria-level="3"]', { state: 'detached' });
	await done(page, t);
});

test('the tree opens with its hottest path, and a link keeps it closed', async (t) => {
	const page = await openTrace('?as=tree');
	await page.waitForSelector('.treebody .treerow[aria-level="3"]');
	const open = page.locator('.treerow[aria-expanded=true]');
	const { children: [hottest] } = (await server.get(`/api/v1/traces/${id}/flame?thread=main`)).json;
	assert.ok((await open.nth(1).innerText()).startsWith(hottest.name.split('.').slice(-2).join('.')), 'the heaviest root');
	assert.equal(query(page).get('tree'), null);
	await page.locator('.tree').focus();
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('ArrowLeft');
	await page.waitForSelector('.treerow[aria-level="3"]', { state: 'detached' });
	await settled(page);
	assert.equal(query(page).get('tree'), '-');
	await page.reload();
	await page.waitForSelector('.treebody .treerow[aria-level="2"]');
	assert.equal(await open.count(), 1);
	await done(page, t);
});

test('letters find a row, Enter opens it alone, Escape goes back up', async (t) => {
	const page = await openTree('&view=bottom_up');
	const { children } = await flame('&view=bottom_up');
	const real = children.filter((c) => !c.other);
	assert.equal(await rows(page).nth(1).locator('.num').first().innerText(), await rows(page).nth(1).locator('.num').nth(0).innerText());
	const last = (c) => c.name.split('.').at(-1);
	const wanted = real.slice(2, 12).find((c) => /^[a-z]{3}/i.test(last(c)) && real.findIndex((x) => last(x).toLowerCase().startsWith(last(c).slice(0, 3).toLowerCase())) === real.indexOf(c));
	/* letters in quick succession are one word: the clock does not advance between them */
	await page.evaluate(() => {
		const now = performance.now;
		performance.now = () => 1;
		globalThis.clockGoes = () => { performance.now = now; };
	});
	await page.keyboard.type(last(wanted).slice(0, 3));
	await page.evaluate(() => globalThis.clockGoes());
	assert.match(await selected(page).innerText(), new RegExp(last(wanted).replace(/\W/g, '.')));
	await page.keyboard.press('Enter');
	await page.waitForFunction((m) => new URL(location).searchParams.get('root') === String(m), wanted.method);
	await page.waitForSelector('[data-flame]');
	await page.locator('.tree').focus();
	await page.keyboard.press('Escape');
	await page.waitForFunction(() => !new URL(location).searchParams.get('root'));
	/* the menu, by key and by pointer */
	await page.waitForSelector('[data-flame]');
	await rows(page).nth(1).click({ button: 'right', position: { x: 80, y: 10 } });
	await page.getByRole('menuitem', { name: 'Callers and callees' }).click();
	await page.waitForFunction(() => location.search.includes('view=sandwich'));
	await done(page, t);
});

test('nodes that a response omitted are loaded when they are opened', async (t) => {
	const page = await openTree();
	const asked = [];
	page.on('request', (r) => r.url().includes('/flame') && asked.push(new URL(r.url()).searchParams));
	await page.keyboard.press('*');
	await page.waitForFunction(() => Number(document.querySelector('.treerow[aria-selected=true]')?.getAttribute('aria-level')) > 3);
	const rest = page.locator('.treerow', { hasText: /\d smaller/ }).first();
	const before = await page.evaluate(() => Number(document.querySelector('.tree').getAttribute('aria-rowcount')));
	for (let y = 0; y < before * 24 && (await rest.count()) === 0; y += 400) {
		await page.locator('.treebody').evaluate((e, to) => { e.scrollTop = to; }, y);
		await painted(page);
	}
	const place = await rest.getAttribute('aria-rowindex');
	await rest.dblclick();
	await page.waitForFunction((n) => Number(document.querySelector('.tree').getAttribute('aria-rowcount')) > n, before);
	assert.ok(asked.some((q) => Number(q.get('skip')) > 0), 'the rest was asked for');
	await page.waitForFunction((at) => document.querySelector('.treerow[aria-selected=true]')?.getAttribute('aria-rowindex') === at, place); // the first of the nodes that it replaced
	await done(page, t);
});

test('the table has p95 and selectable columns, and is copied as text', async (t) => {
	const page = await open('/');
	await page.goto(`${server.url}/traces/${id}?threads=all&tab=methods`);
	const table = panel(page, 'Methods');
	await table.locator('th', { hasText: 'p95' }).waitFor();
	const { methods } = (await server.get(`/api/v1/traces/${id}/methods?p95=1`)).json;
	const cells = table.locator('tbody tr').first().locator('td.num');
	await page.waitForFunction(() => document.querySelector('table.methods tbody tr').cells[5].textContent !== '–');
	await table.getByRole('button', { name: 'p95' }).click();
	await page.waitForFunction(() => location.search.includes('sort=p95_ns'));
	await table.locator('th[aria-sort="descending"]', { hasText: 'p95' }).waitFor();
	await page.goBack();
	await table.locator('th[aria-sort="descending"]', { hasText: 'Running' }).waitFor();
	await table.getByRole('button', { name: 'Columns' }).click();
	await table.getByLabel('Wall').check();
	await table.getByLabel('Longest').uncheck();
	await page.waitForFunction(() => new URL(location).searchParams.get('cols') === 'count,running,self,total,sum,p95');
	await page.keyboard.press('Escape');
	const lines = (await copied(page, () => table.getByRole('button', { name: 'Copy as TSV' }).click())).split('\n').map((l) => l.split('\t'));
	assert.deepEqual(lines[0], ['method', 'calls', 'running_ns', 'self_ns', 'total_ns', 'sum_ns', 'p95_ns']);
	const m = methods[0];
	assert.deepEqual(lines[1], [m.name, m.count, m.running_ns, m.self_ns, m.total_ns, m.sum_ns, m.p95_ns].map(String));
	assert.equal(await cells.count(), 8);
	await table.locator('tbody tr').first().click({ button: 'right' });
	assert.ok((await copied(page, () => page.getByRole('menuitem', { name: 'Copy row' }).click())).startsWith(`${m.name}: calls ${m.count.toLocaleString('en')}, running `));
	await done(page, t);
});

test('the table is filtered by text and by expression', async (t) => {
	const page = await openTrace('?threads=all&tab=methods');
	const table = panel(page, 'Methods');
	const filter = async (text, said) => {
		await table.getByLabel('Filter').fill(text);
		await table.getByText(said).waitFor();
	};
	const { names } = (await server.get(`/api/v1/traces/${id}/names`)).json;
	const n = (await server.get(`/api/v1/traces/${id}/methods?regex=1&q=${encodeURIComponent('\\.(run|get)$')}`)).json.total;
	assert.ok(n > 0 && n < names.length);
	await filter('/\\.(run|get)$/', new RegExp(`of ${n} methods that fit`));
	await filter('/(/', 'not a regular expression');
	await filter('no such name', 'No called method matches this name.');
	await done(page, t);
});

test('a search shows its count and share of time and steps through hits, in every view', async (t) => {
	const page = await openTrace('?threads=all');
	await page.waitForSelector('[data-flame]');
	await page.fill('.search input', '/run$/');
	const graph = panel(page, 'Merged flame graph');
	const said = graph.locator('.hits output').first();
	const whole = await flame();
	let hits = 0, inside = 0;
	const walk = (node, under) => {
		const hit = node.method !== undefined && /run$/i.test(node.name);
		hits += hit ? 1 : 0;
		if (hit && !under) inside += node.value;
		for (const c of node.children ?? []) walk(c, under || hit);
	};
	walk(whole, false);
	const share = (100 * inside) / whole.value;
	await graph.getByText(new RegExp(`^${hits.toLocaleString('en')} of [\\d,]+ frames match`)).waitFor();
	assert.ok(Math.abs(parseFloat(/([\d.]+) % of the time/.exec(await said.innerText())[1]) - share) <= 0.51);
	const met = new Set();
	for (let i = 0; i < 3; i++) {
		await graph.getByRole('button', { name: 'Next of the frames that match' }).click();
		met.add(await graph.locator('.keyed').innerText());
	}
	assert.equal(met.size, Math.min(3, hits));
	for (const line of met) assert.match(line.split('\n')[0], /run/);
	/* the tree, the sandwich and the table */
	await tab(page, 'Call tree');
	await panel(page, 'Call tree').getByText(/open rows match/).waitFor();
	await tab(page, 'Flame graph');
	await graph.getByRole('button', { name: 'Sandwich' }).click();
	await graph.locator('.sandwich h3.mono', { hasText: /run$/ }).waitFor(); // without a chosen method: the heaviest that is found
	const middle = whole.children.find((c) => c.method !== undefined && c.children?.length);
	await page.goto(`${server.url}/traces/${id}?threads=all&view=sandwich&method=${middle.method}&find=${encodeURIComponent('/run$/')}`);
	await graph.locator('.hits').nth(1).waitFor();
	await page.fill('.search input', (await server.get(`/api/v1/traces/${id}/methods`)).json.methods[2].name.slice(0, 300));
	await tab(page, 'Methods');
	const table = panel(page, 'Methods');
	await table.getByText(/of 25 rows match, [\d.]+ % of the time/).waitFor();
	await table.getByRole('button', { name: 'Next of the rows that match' }).click();
	assert.ok(await page.evaluate(() => document.activeElement.closest('tr.lit') !== null));
	await done(page, t);
});

test('3,000 calls deep: timeline, graph, tree and sandwich', async (t) => {
	const nest = Array.from({ length: DEEP }, (_, i) => [PID, 1 + ((DEEP - 1 - i) % 9) + (i === 0 ? 20 : 0), 1e6 + (DEEP - 1 - i) * 1000, 2e6 + i * 2000]);
	const deep = await server.trace(btrace(nest, { pid: PID }), {});
	assert.equal(deep.state, 'ready', JSON.stringify(deep.error));
	assert.equal(deep.summary.max_depth, DEEP);
	const page = await open(`/traces/${deep.id}`);
	await page.waitForSelector('[data-flame]');
	await page.locator('.threads .bottom', { hasText: 'All 3,000 rows' }).press('Enter'); // a click may miss it while the list still scrolls to it
	await page.waitForFunction((n) => document.querySelector('.sheet').clientHeight > n * 18, DEEP);
	const canvases = () => page.evaluate(() => Math.max(...[...document.querySelectorAll('canvas')].map((c) => c.height)));
	assert.ok((await canvases()) < 1000, 'no canvas is as high as what it shows');
	await page.locator('.scroller').evaluate((e) => { e.scrollTop = e.scrollHeight; });
	const graph = panel(page, 'Merged flame graph');
	const box = graph.locator('.canvasbox.flame');
	await box.evaluate((e) => { e.scrollTop = e.scrollHeight; });
	const at = await box.boundingBox();
	await box.scrollIntoViewIfNeeded();
	const now = await box.boundingBox();
	await page.mouse.move(now.x + 3, now.y + at.height - 8);
	await page.waitForSelector('.tip');
	assert.match(await page.locator('.tip').innerText(), /share/);
	await tab(page, 'Call tree');
	await page.locator('[data-flame] .tree').focus();
	await page.waitForSelector('[data-flame] .treerow[aria-level="2"]'); // the tree's own answer, no longer the graph's
	await page.keyboard.press('*');
	await page.waitForFunction((n) => document.querySelector('.treerow[aria-selected=true]')?.getAttribute('aria-level') === String(n + 1), DEEP);
	assert.ok((await rows(page).count()) < 80, 'rows are virtual');
	await settled(page);
	assert.ok(page.url().length < 500, 'a path is short in the address');
	await page.reload();
	await page.waitForFunction((n) => document.querySelector('.tree')?.getAttribute('aria-rowcount') === String(n + 2), DEEP);
	const { names } = (await server.get(`/api/v1/traces/${deep.id}/names`)).json;
	const bottom = (await server.get(`/api/v1/traces/${deep.id}/methods?sort=max_ns&order=asc&limit=1`)).json.methods[0];
	assert.ok(names[bottom.method]);
	await page.goto(`${server.url}/traces/${deep.id}?view=sandwich&method=${bottom.method}`);
	await page.waitForSelector('[data-half="Callers"] canvas');
	assert.ok(await graph.locator('.canvasbox.flame').first().evaluate((e, n) => e.scrollHeight >= n * 19, DEEP - 1));
	assert.ok((await canvases()) < 1000);
	await done(page, t);
});
