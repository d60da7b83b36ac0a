/* The API's reference in a browser: readable in light and dark, wide and narrow, under the policy it is served with. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { violations } from '../axe.mjs';
import { launch, unreadable } from '../browser.mjs';
import { atEnd, startServer } from '../server.mjs';

/* All sections are of one make; looking at each would take minutes. */
const KEPT = ['upload_trace', 'fleet_methods', 'make_webhook', 'schema-trace'];

test('the reference can be read', async (t) => {
	const s = await startServer(t);
	const browser = await launch();
	atEnd(t, () => browser.close());
	for (const [colorScheme, width] of [['light', 1280], ['dark', 1280], ['light', 600]])
		await t.test(`${colorScheme}, ${width} wide`, async () => {
			const page = await browser.newPage({ colorScheme, viewport: { width, height: 900 } });
			const said = [];
			page.on('console', (m) => said.push(m.text()));
			page.on('request', (r) => { if (!r.url().startsWith(s.url)) said.push(r.url()); });
			await page.goto(`${s.url}/api/reference#upload_trace`);
			await page.waitForSelector('#schema-tracepage', { state: 'attached' });
			assert.equal(await page.locator('#upload_trace h3').innerText(), 'POST /api/v1/traces');
			const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
			assert.equal(background, colorScheme === 'dark' ? 'rgb(20, 25, 27)' : 'rgb(246, 247, 247)');
			await page.evaluate((kept) => document.querySelectorAll('section').forEach((e) => kept.includes(e.id) || e.remove()), KEPT);
			assert.deepEqual((await unreadable(page)).slice(0, 5), []);
			if (colorScheme === 'light') assert.deepEqual((await violations(page)).slice(0, 5), []);
			assert.deepEqual(said.filter((text) => !/favicon/.test(text)), []);
			if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/reference-${colorScheme}-${width}.png` });
			await page.close();
		});
});
