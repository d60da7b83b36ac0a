/*
 * palette_page.test.mjs - the search dialog: `/`, results while typing, keys, targets.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { violations } from '../axe.mjs';
import { THEMES, painted, settled, unreadable, visit } from '../browser.mjs';
import { done, HOSTILE, open, openTrace, server, watched } from '../page.mjs';
import { until } from '../server.mjs';

const METHODS = ['com.acme.shop.data.JsonParser.parse', 'com.acme.shop.ads.Ads.warmUp', 'com.acme.shop.Main$$ExternalSyntheticLambda0.run', 'a.b.c', `com.acme.${HOSTILE.replaceAll(' ', '_')}.run`, 'java.net.URI.parse'];
const chrome = JSON.stringify({ traceEvents: METHODS.map((name, i) => ({ ph: 'X', cat: 'method', name, pid: 1, tid: 1, ts: 1000 + i * 100, dur: 50 })) });
const R8 = 'com.acme.shop.Checkout -> a.b:\n    1:1:void pay():1:1 -> c\n';
let made;

async function fill() {
	made ??= (async () => {
		const { id } = await server.trace(chrome, { query: { app: 'com.acme.found', version_name: '1.2.3', scenario: 'a scenario', build_id: 'found-build' } });
		await until(async () => ((await server.get('/api/v1/search?q=warmup')).json.methods.length ? true : undefined), 'names in the index', 120);
		return id;
	})();
	return made;
}

const names = async (q) => (await server.get(`/api/v1/search?${new URLSearchParams({ q, limit: '50' })}`)).json.methods.map((m) => m.name);

test('typical queries find the expected results', async () => {
	await fill();
	assert.equal((await names('JsonParser.parse'))[0], METHODS[0]);
	assert.deepEqual((await names('parse')).filter((name) => METHODS.includes(name)), [METHODS[0], 'java.net.URI.parse'], "the app's own methods come first");
	assert.deepEqual(await names('*.warmUp'), [METHODS[1]]);
	assert.deepEqual(await names('main lambda run'), [METHODS[2]]);
	assert.equal((await names('a.b.c'))[0], 'a.b.c');
	assert.deepEqual(await names('nothing of the kind'), []);
	assert.deepEqual(await names('%_'), []);
	for (const [q, name] of [['JsonPraser', METHODS[0]], ['jsonparser prase', METHODS[0]], ['Ads.wramUp', METHODS[1]]]) assert.equal((await names(q))[0], name, `${q}: with typing errors`);
	const similar = async (q) => (await server.get(`/api/v1/search?${new URLSearchParams({ q })}`)).json.methods_are_similar;
	assert.deepEqual([await similar('JsonPraser'), await similar('JsonParser'), await similar('nothing of the kind')], [true, false, false]);
	const { json } = await server.get('/api/v1/search?q=found-build');
	assert.deepEqual(json.builds.map((b) => b.build_id), ['found-build']);
	assert.equal(json.traces.length, 1);
	const traces = async (q) => (await server.get(`/api/v1/search?${new URLSearchParams({ q })}`)).json.traces_total;
	assert.deepEqual([await traces('SCENARIO found 1.2'), await traces('found nowhere')], [1, 0], 'each word occurs in a trace, in any order');
	for (const q of ['', ' ', 'x'.repeat(201), '1 2 3 4 5 6 7 8 9']) assert.equal((await server.get(`/api/v1/search?${new URLSearchParams({ q })}`)).status, 400, q);
	assert.equal((await server.get('/api/v1/search?q=x&limit=51')).status, 400);
	await server.put('/api/v1/builds/found-build/retrace', R8);
	const again = await until(async () => {
		const hit = (await server.get('/api/v1/search?q=a.b.c')).json.methods.find((m) => m.raw === 'a.b.c');
		return hit;
	}, 'the method by its obfuscated name', 120);
	assert.equal(again.name, 'com.acme.shop.Checkout.pay');
	await server.trace(chrome.replace('"a.b.c"', '"a.b.d"'), { query: { app: 'com.acme.found', version_name: '1.2.4', build_id: 'other-build' } });
	await server.put('/api/v1/builds/other-build/retrace', R8.replace('-> c', '-> d'));
	for (const q of ['a.b.c', 'a.b.d'])
		await until(async () => {
			const { methods, methods_are_similar } = (await server.get(`/api/v1/search?q=${q}`)).json;
			return !methods_are_similar && methods.some((m) => m.raw === q && m.name === again.name) ? true : undefined;
		}, `${q}, though another build's obfuscated name of the method is similar`, 120);
});

test('its code is loaded before use, and text typed earlier is not lost', async (t) => {
	await fill();
	const page = await watched();
	let release;
	const held = new Promise((done) => (release = done));
	const asked = page.waitForRequest(/\/assets\/palette-/);
	await page.route(/\/assets\/palette-/, async (route) => { await held; await route.continue(); });
	await visit(page, server, '/builds');
	await asked;
	await page.locator('button.find').waitFor(); // the page that signed in may have requested it
	await painted(page);
	await page.keyboard.press('/');
	await painted(page);
	await page.keyboard.type('parsex');
	await page.keyboard.press('Backspace');
	assert.equal(await page.locator('dialog.palette').count(), 0);
	release();
	const box = page.getByRole('combobox', { name: 'Search methods' });
	await box.waitFor();
	assert.equal(await box.inputValue(), 'parse');
	await page.keyboard.type('r.parse');
	await page.getByRole('option', { name: METHODS[0] }).waitFor();
	assert.equal(await box.inputValue(), 'parser.parse');
	await done(page, t);
});

test('by keys: /, words, arrows, Enter', async (t) => {
	await fill();
	const page = await open('/builds');
	await page.locator('button.find').waitFor();
	await settled(page);
	await page.keyboard.press('/');
	const box = page.getByRole('combobox', { name: 'Search methods' });
	await box.waitFor();
	await page.keyboard.type('parser');
	await page.getByRole('option', { name: METHODS[0] }).waitFor();
	assert.equal(await page.locator('[role=option][aria-selected=true]').innerText(), METHODS[0]);
	assert.deepEqual(await violations(page), []);
	await page.keyboard.press('ArrowDown');
	assert.notEqual(await page.locator('[role=option][aria-selected=true]').innerText(), METHODS[0]);
	await page.keyboard.press('ArrowUp');
	await page.keyboard.press('Enter');
	await page.waitForURL(/fleet\/methods\?.*JsonParser\.parse/);
	await settled(page);
	await page.keyboard.press('/');
	await box.waitFor();
	await page.keyboard.type('webhoo');
	await page.keyboard.press('Escape');
	assert.equal(await page.getByRole('dialog', { name: 'Search' }).count(), 0);
	await page.keyboard.press('Control+k');
	await box.waitFor();
	await page.keyboard.type('detector');
	await page.keyboard.press('Enter'); // before the answer is there
	await page.waitForURL(/\/detectors/);
	await done(page, t);
});

test('an exact build or page name is listed first; pasted text is found', async (t) => {
	const id = await fill();
	const page = await open('/builds');
	await page.getByRole('button', { name: 'Search' }).waitFor();
	await page.keyboard.press('Control+k');
	const box = page.getByRole('combobox', { name: 'Search methods' });
	const first = page.locator('[role=option][aria-selected=true]');
	for (const [text, option] of [['found-build', /^found-build/], ['build', /^Builds/], [`${server.url}/traces/${id}?tab=methods`, /com\.acme\.found/], [`at ${METHODS[0]}(JsonParser.java:12)`, /JsonParser\.parse/], ['Lcom/acme/shop/data/JsonParser;', /JsonParser\.parse/]]) {
		await box.fill(text);
		await settled(page);
		assert.match(await first.innerText(), option, text);
	}
	await page.keyboard.press('Enter');
	await page.waitForURL(/fleet\/methods\?.*JsonParser\.parse/);
	await done(page, t);
});

test('a label leads to the traces that have it', async (t) => {
	const { id } = await server.trace(chrome, { query: { app: 'com.acme.found', labels: '{"ram_mb":7700}' } });
	const page = await open('/');
	await page.keyboard.press('Control+k');
	await page.getByRole('combobox', { name: 'Search methods' }).fill('ram_mb=7700');
	await page.getByRole('option', { name: 'Traces with the label ram_mb=7700' }).click();
	await page.waitForURL(/\/traces\?label=ram_mb%3D7700/);
	await page.locator(`a[href*="${id}"]`).first().waitFor();
	assert.equal(await page.locator('main tbody tr').count(), 1);
	await done(page, t);
});

test('similar names come after all that has the text itself', async (t) => {
	await fill();
	const page = await open('/builds');
	await page.route('**/api/v1/search?*', async (route) => {
		const { json } = await server.get('/api/v1/search?q=JsonPraser');
		await route.fulfill({ contentType: 'application/json', body: JSON.stringify({ ...json, traces: [], traces_total: 0 }) });
	});
	await page.getByRole('button', { name: 'Search' }).waitFor();
	await page.keyboard.press('Control+k');
	await page.getByRole('combobox', { name: 'Search methods' }).fill('health');
	await page.getByRole('option', { name: METHODS[0] }).waitFor();
	assert.deepEqual((await page.getByRole('option').allInnerTexts()).map((o) => o.split('\n')[0]), ['Health', METHODS[0], 'Calls of health by duration']);
	await page.keyboard.press('Enter');
	await page.waitForURL(/\/health/);
	await done(page, t);
});

test('a part of a name and a pattern in the search of calls', async (t) => {
	await fill();
	const page = await open(`/search?method=${encodeURIComponent('*.warmUp')}`);
	await page.waitForSelector(`td:has-text("Ads.warmUp")`);
	await done(page, t);
});

test('in a trace, / searches its methods and Ctrl+K the project', async (t) => {
	const page = await openTrace();
	await page.locator('h1').first().click();
	await page.keyboard.press('/');
	assert.equal(await page.getByRole('dialog', { name: 'Search' }).count(), 0);
	await page.keyboard.press('Escape');
	await page.keyboard.press('Control+k');
	await page.getByRole('combobox', { name: 'Search methods' }).waitFor();
	await done(page, t);
});

for (const [scheme, width] of THEMES)
	test(`it can be read in ${scheme} at ${width}, names are text`, async (t) => {
		await fill();
		const page = await open('/builds', scheme, width);
		await page.getByRole('button', { name: 'Search', exact: true }).or(page.locator('button.find')).first().click();
		await page.getByRole('combobox', { name: 'Search methods' }).waitFor();
		await page.keyboard.type('alert');
		await page.getByRole('option', { name: 'alert(1)' }).first().waitFor();
		await page.getByRole('combobox', { name: 'Search methods' }).fill('JsonPraser');
		await page.getByText('No method has this name. Similar names are shown.').waitFor();
		assert.deepEqual(await unreadable(page), []);
		await done(page, t);
	});
