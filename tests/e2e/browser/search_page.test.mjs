/*
 * Slow calls of the fleet in the page: the form is in the address, a hit opens its trace with the call
 * selected, and invalid searches are explained; in light and dark.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { violations } from '../axe.mjs';
import { navigate, unreadable } from '../browser.mjs';
import { btrace } from '../make.mjs';
import { done, open, server, shots } from '../page.mjs';
import { until } from '../server.mjs';

const PID = 4100;
const mapping = ['# v', '1,1,com.shop.Main start ()V', '2,1,com.shop.Repo load ()V', '3,1,android.os.Looper loop ()V', ''].join('\n');
const LONG = [3_000_000, 9_000_000, 5_000_000];

/* There once, whichever test is first. */
const fleet = (async () => {
	for (const [i, long] of LONG.entries())
		await server.post('/api/v1/traces', btrace([[PID, 2, 2_000_000, long], [PID, 1, 1_000_000, long + 2_000_000], [PID, 3, 500_000, long + 4_000_000]], { pid: PID }),
			{ query: { app: 'shop', version_name: `9.${i}`, build_id: 'search', scenario: 'cold_start' } });
	await server.put('/api/v1/builds/search/methods', mapping);
	await until(async () => ((await server.get('/api/v1/fleet/search?method=com.shop.Repo.load')).json?.matches === LONG.length ? true : undefined), 'the index', 120);
	await until(async () => ((await server.get('/api/v1/fleet/methods?q=com.shop.Repo.load')).json?.methods[0]?.self.traces === LONG.length ? true : undefined), 'the rollups', 120);
});
let made;
const ready = () => (made ??= fleet());

test('a search is stored in the address, and its hits link to the call', async (t) => {
	await ready();
	const page = await open('/');
	await navigate(page, 'Slow calls');
	await page.waitForSelector('text=select one of the app’s methods with long calls');
	await page.selectOption('select[name=app]', 'shop');
	assert.equal((await server.get('/api/v1/fleet/methods?app=shop&waits=false&sort=p95_call&metrics=call&limit=1')).json.methods[0].name, 'android.os.Looper.loop');
	await page.waitForFunction(() => [...document.querySelectorAll('tbody button')].map((b) => b.textContent).sort().join() === 'com.shop.Main.start,com.shop.Repo.load'); // not the framework's
	await page.locator('tbody tr', { hasText: 'com.shop.Repo.load' }).locator('button').click();
	await page.waitForSelector('tbody tr:nth-child(3) td:first-child >> text=3.00 ms');
	assert.equal(new URL(page.url()).searchParams.get('method'), 'com.shop.Repo.load');
	await page.goBack();
	await page.selectOption('select[name=app]', '');
	await page.fill('form.search [name=method]', 'com.shop.Repo.load');
	await page.fill('form.search [name=over]', '4');
	await page.fill('form.search [name=below]', 'com.shop.Main.start');
	await page.click('form.search button.primary');
	await page.waitForSelector('tbody tr:nth-child(2)');
	assert.deepEqual(await page.locator('tbody tr td:first-child').allInnerTexts(), ['9.00 ms', '5.00 ms']);
	assert.match(page.url(), /method=com\.shop\.Repo\.load.*over=4/);
	await page.reload();
	await page.waitForSelector('tbody tr:nth-child(2)');
	assert.equal(await page.inputValue('form.search [name=below]'), 'com.shop.Main.start');
	await page.click('tbody tr:first-child td:first-child a');
	await page.waitForSelector('[data-ready]');
	const at = new URL(page.url()).searchParams;
	assert.equal(Number(at.get('b')) - Number(at.get('a')), 9_000_000);
	assert.equal(at.get('find'), 'com.shop.Repo.load');
	await done(page, t);
});

test('an expression, a filter, nothing found, and a wrong one', async (t) => {
	await ready();
	const page = await open('/search?method=%5Ecom%5C.shop&regex=1&version_name=9.0');
	await page.waitForSelector('tbody tr:nth-child(2)');
	await page.waitForSelector('[role=status] >> text=of 2 in 1 trace');
	await page.selectOption('select[name=version_name]', '');
	await page.waitForSelector('[role=status] >> text=of 6 in');
	await page.fill('form.search [name=over]', '60000');
	await page.click('form.search button.primary');
	await page.waitForSelector('text=No call is that long');
	await page.fill('form.search [name=method]', '(');
	await page.click('form.search button.primary');
	await page.waitForSelector('[role=alert] >> text=regular expression');
	await page.goBack();
	await page.waitForSelector('text=No call is that long');
	await done(page, t);
});

for (const scheme of ['light', 'dark'])
	test(`it can be read by all, ${scheme}`, async (t) => {
		await ready();
		const page = await open('/search?method=com.shop.Repo.load', scheme);
		await page.waitForSelector('tbody tr:nth-child(3)');
		assert.deepEqual(await violations(page), []);
		assert.deepEqual(await unreadable(page), []);
		if (shots) await page.screenshot({ path: path.join(shots, `search-${scheme}.png`), fullPage: true });
		await done(page, t);
	});
