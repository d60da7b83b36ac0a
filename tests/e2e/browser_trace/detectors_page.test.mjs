/*
 * Detectors in the page: findings, frozen frames and the start in a trace, with a link to each call; rules
 * written, verified, previewed on a trace, saved, compared and restored; in light and dark.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { mapping, shopTrace, workerTrace } from '../../gen/detect_trace.mjs';
import { violations } from '../axe.mjs';
import { unreadable, tab } from '../browser.mjs';
import { done, HOSTILE, open, server, shots } from '../page.mjs';
import { root } from '../server.mjs';

let ready;
/* Once for all tests of this file. */
const prepare = () => (ready ??= (async () => {
	await server.put('/api/v1/builds/shop/methods', mapping);
	const shop = await server.trace(shopTrace(), { query: { build_id: 'shop', app: 'shop', scenario: 'cold_start' } });
	const worker = await server.trace(workerTrace(), { query: { build_id: 'shop', app: 'shop', scenario: 'worker' } });
	return { shop: shop.id, worker: worker.id };
})());

const at = (page, name) => Number(new URL(page.url()).searchParams.get(name));
const editor = '#rules textarea[name=rules]';
const found = (id) => `#findings tr[data-rule="${id}"]`;

test('a trace lists what blocks its main thread, and shows the call', async (t) => {
	const { shop } = await prepare();
	const page = await open(`/traces/${shop}`);
	await tab(page, 'Findings');
	await page.waitForSelector(`${found('database')}:has-text("800 ms")`);
	await page.waitForSelector(`${found('file')}:has-text("13.0 ms")`);
	await page.waitForSelector('#findings p:has-text("3 frames: 2 slow (over 16.0 ms), 1 of them frozen (over 700 ms); 1 message during which no frame could be drawn.")');
	await page.waitForSelector('#findings tr[data-frame=frozen] >> text=Database on the main thread: 800 ms in android.database.sqlite.SQLiteDatabase.query, called by com.shop.Cart.load.');
	await page.waitForSelector('#findings tr[data-phase=application] >> text=Sleeping on the main thread: 250 ms in java.lang.Thread.sleep, called by com.shop.ShopApp.onCreate.');
	await page.click(`${found('json')} button`);
	await page.locator(`${found('json')} + tr.more tr[data-finding=json]`).first().waitFor(); // below its detector
	assert.equal(await page.locator('#findings tr.more').count(), 1, 'of one detector');
	await page.locator('#findings tr[data-finding=json]:has-text("com.shop.Feed.parse")').locator('button').click();
	await page.waitForFunction(() => new URLSearchParams(location.search).get('a') === '435000000');
	assert.deepEqual([at(page, 'b'), at(page, 'thread')], [555000000, 4000]);
	assert.ok(at(page, 'from') < 435000000 && at(page, 'to') > 555000000);
	await page.waitForSelector('button:text-is("Clear the selection")');
	const address = page.url();
	await page.goto('about:blank');
	await page.goto(address);
	await page.waitForSelector(`${found('database')}:has-text("800 ms")`);
	await done(page, t);
});

test('on a phone findings are blocks, and nothing scrolls sideways', async (t) => {
	const { shop } = await prepare();
	const page = await open(`/traces/${shop}`, 'light', 390);
	await tab(page, 'Findings');
	await page.click(`${found('json')} button`);
	const finding = page.locator('#findings tr[data-finding=json]:has-text("com.shop.Feed.parse")');
	await finding.waitFor();
	const sideways = await page.locator('#findings .scroll').evaluateAll((all) => all.filter((s) => s.scrollWidth > s.clientWidth).map((s) => s.innerText.slice(0, 40)));
	assert.deepEqual(sideways, []);
	assert.equal(await page.locator('#findings .scroll').count(), 4, 'detectors, findings, frames, start');
	assert.equal(await finding.locator('[data-lead]').innerText(), 'org.json.JSONObject.<init>');
	assert.equal(await page.locator('#findings tr[data-phase=application] [data-lead]').innerText(), await page.locator('#findings tr[data-phase=application] .name').innerText());
	assert.match(await page.locator(`${found('database')} td:nth-child(4)`).evaluate((e) => getComputedStyle(e, '::before').content), /^"Longest/);
	await finding.locator('button').click();
	await page.waitForFunction(() => new URLSearchParams(location.search).get('a') === '435000000');
	await done(page, t);
});

test('a trace without a main thread explains the consequence', async (t) => {
	const { worker } = await prepare();
	const page = await open(`/traces/${worker}?findings=1`);
	await page.waitForSelector('#findings >> text=The trace does not name its main thread');
	await page.waitForSelector('#findings >> text=The trace has no frames');
	await done(page, t);
});

test('sampled calls are marked as sampled', async (t) => {
	const sampled = await server.trace(fs.readFileSync(path.join(root, 'tests/golden/java_samples/realistic/input')), { query: { app: 'shop' } });
	const page = await open(`/traces/${sampled.id}?findings=1`);
	await page.waitForSelector('#findings >> text=/The calls of the main thread are samples/');
	await done(page, t);
});

test('rules are written, verified, previewed, saved and restored', async (t) => {
	const { shop } = await prepare();
	const page = await open(`/detectors?as=json&trace=${shop}`);
	await page.waitForSelector('#rules >> text=Default rules');
	const shipped = await page.inputValue(editor);
	await page.fill(editor, shipped.slice(0, -4));
	await page.click('text=Save as a new version');
	await page.waitForSelector('#rules [role=alert] >> text=This is not JSON');
	await page.fill(editor, shipped.replace('"kind": "sleep"', '"kind": "nap"'));
	await page.waitForSelector('tr[data-differs=sleep]:has-text("nap")');
	await page.click('#try button:text-is("Test")');
	await page.waitForSelector('#try [role=alert] >> text=/Rule 12 \\(sleep\\): kind must be one of json/i');
	await page.fill(editor, JSON.stringify({ rules: [{ id: 'cart', kind: 'own', title: HOSTILE, methods: ['com.shop.Cart'], threshold_ms: 100, message: HOSTILE }], frames: { slow_ms: 8, frozen_ms: 40 } }));
	await page.click('#try button:text-is("Test")');
	await page.waitForSelector('#try >> text=2 findings with these rules, 3 with the active rules. Nothing was saved.');
	await page.waitForSelector(`#try tr[data-rule=cart]:has-text("${HOSTILE}")`);
	await page.waitForSelector('#try >> text=3 frames: 3 slow (over 8.00 ms), 2 of them frozen (over 40.0 ms)');
	assert.deepEqual((await server.get('/api/v1/detectors')).json.versions, []);
	await page.click('text=Save as a new version');
	await page.waitForSelector('#rules header >> text=/Version 1/');
	await page.waitForSelector('text=No differences from version 1.');
	assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Save as a new version', 'the focus stays');
	await page.click('text=Reset to defaults');
	await page.waitForSelector('tr[data-differs=cart]:has-text("the rule")');
	assert.equal(await page.locator('#try >> text=findings with these rules').count(), 0, 'they are of other rules');
	await page.click('text=Save as a new version');
	await page.waitForSelector('#rules header >> text=/Version 2/');
	await page.selectOption('select[name=version]', '1');
	await page.waitForSelector('#rules header >> text=/no longer active/');
	await page.click('text=Restore these rules');
	await page.waitForSelector('#rules header >> text=/Version 3/');
	assert.equal((await server.get('/api/v1/detectors')).json.rules[0].id, 'cart');
	await page.click('#try button:text-is("Test")');
	await page.waitForSelector('#try >> text=2 findings with these rules, 2 with the active rules.');
	await page.locator('#try tr[data-finding=cart] button').first().click();
	await page.waitForSelector(`#findings tr[data-rule=cart]:has-text("${HOSTILE}")`);
	assert.deepEqual([at(page, 'a'), at(page, 'b')], [1010000000, 1990000000]);
	await server.put('/api/v1/detectors', JSON.stringify((await server.get('/api/v1/detectors?version=2')).json.defaults), { key: server.write });
	await done(page, t);
});

test('the form changes, adds and switches off rules, and a preview counts their findings', async (t) => {
	await prepare();
	const before = (await server.get('/api/v1/detectors')).json;
	const page = await open('/detectors');
	const sleeps = page.locator('#rules tr[data-rule=sleep] a'); // its findings in the fleet
	await sleeps.waitFor();
	const { rules: inFleet } = (await server.get('/api/v1/fleet/findings?by=all')).json;
	assert.deepEqual([await sleeps.innerText(), new URL(await sleeps.evaluate((a) => a.href)).search], [String(inFleet.find((r) => r.id === 'sleep').found), '?rule=sleep']);
	await page.getByRole('button', { name: 'Edit Sleeping on the main thread' }).click();
	await page.locator('tr[data-rule=sleep] + tr.more form.rule').waitFor(); // below its rule
	await page.locator('form.rule input[name=threshold_ms]').fill('1.5');
	await page.click('text=Apply to the rules');
	await page.waitForSelector('#rules tr[data-rule=sleep] td:text-is("1.50 ms")');
	await page.waitForSelector('tr[data-differs=sleep]:has-text("1.5")');
	await page.setViewportSize({ width: 1280, height: 400 });
	await page.evaluate(() => scrollTo(0, 0));
	assert.ok(await page.locator('#rules button:text-is("Save as a new version")').evaluate((e) => e.getBoundingClientRect().bottom <= innerHeight), 'Save remains in view below a long table');
	await page.setViewportSize({ width: 1280, height: 800 });
	await page.click('#rules button:text-is("Add a rule")');
	assert.ok(await page.getByText('Apply to the rules').isDisabled());
	await page.locator('form.rule input[name=title]').fill('Cart work!');
	await page.locator('form.rule input[name=threshold_ms]').fill('100');
	await page.locator('form.rule textarea[name=methods]').fill('com.shop.Cart\n');
	await page.click('text=Apply to the rules');
	await page.waitForSelector('#rules tr[data-rule=cart-work]');
	await page.getByRole('checkbox', { name: 'Use Sleeping on the main thread' }).click();
	await page.waitForSelector('tr[data-differs=sleep]:has-text("false")');
	const preview = '#try button:enabled:has-text("Preview on the latest")';
	await page.route(/\/traces\/[^/]+\/findings/, (r) => r.fulfill({ status: 404, json: { error: { code: 'not_found', message: 'deleted meanwhile' } } }), { times: 1 });
	await page.click(preview);
	await page.waitForSelector('#try :text("deleted meanwhile")');
	await page.click(preview);
	await page.waitForSelector('#try tr[data-preview=cart-work]');
	await page.waitForFunction(() => document.querySelector('#try tr[data-preview=cart-work]').getBoundingClientRect().bottom <= innerHeight); // without scrolling
	assert.match(await page.innerText('#try tr[data-preview=cart-work]'), /Cart work!\s+2\s+0\s+1/);
	assert.match(await page.innerText('#try tr[data-preview=sleep]'), /\s0\s+1\s+0$/);
	assert.equal((await server.get('/api/v1/detectors')).json.version, before.version, 'nothing was saved');
	assert.deepEqual([await unreadable(page), await violations(page)], [[], []]);
	await page.click('text=Save as a new version');
	await page.waitForSelector('text=/No differences from version/');
	const { rules } = (await server.get('/api/v1/detectors')).json;
	assert.deepEqual(rules.find((r) => r.id === 'cart-work'), { id: 'cart-work', kind: 'own', title: 'Cart work!', methods: ['com.shop.Cart'], threads: 'main', threshold_ms: 100, severity: 'warning' });
	assert.equal(rules.find((r) => r.id === 'sleep').enabled, false);
	await server.put('/api/v1/detectors', JSON.stringify(before.defaults), { key: server.write });
	await done(page, t);
});

for (const [scheme, width] of [['light', 1280], ['dark', 1920]])
	test(`all of it can be read and reached: ${scheme}`, async (t) => {
		const { shop } = await prepare();
		const page = await open(`/traces/${shop}?findings=1`, scheme, width);
		await page.waitForSelector(`${found('database')}:has-text("800 ms")`);
		await page.waitForSelector('[data-ready]');
		assert.deepEqual(await unreadable(page), []);
		assert.deepEqual(await violations(page), []);
		if (shots) await page.locator('#findings').screenshot({ path: path.join(shots, `findings-${scheme}.png`) });
		await page.goto(`${server.url}/detectors?as=json&trace=${shop}`);
		await page.fill(editor, (await page.inputValue(editor)).replace('"threshold_ms": 16', '"threshold_ms": 8').replace('"org.json.JSONObject", ', ''));
		await page.waitForSelector('tr[data-differs=json]');
		await page.click('#try button:text-is("Test")');
		await page.waitForSelector('#try tr[data-phase=application]');
		assert.deepEqual(await unreadable(page), []);
		assert.deepEqual(await violations(page), []);
		if (shots) await page.screenshot({ path: path.join(shots, `detectors-${scheme}.png`), fullPage: true });
		await done(page, t);
	});
