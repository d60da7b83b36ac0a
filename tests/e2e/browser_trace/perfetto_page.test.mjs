/*
 * The way from the page to the Perfetto UI and back.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { browser, done, id, openTrace, stand } from '../page.mjs';
import { atEnd, until } from '../server.mjs';

test('the Perfetto UI is stand.handed the file, and the way back to this view', async (t) => {
	const page = await openTrace('?find=okhttp3');
	const canvas = page.locator('canvas.calls');
	await canvas.focus();
	await page.keyboard.press('w');
	await page.click('text=Open in the Perfetto UI');
	await until(async () => stand.handed, 'the file');
	assert.equal(stand.handed.title, 'com.acme.shop 8.3.1 cold_start');
	assert.equal(stand.handed.bytes[0], 0x0a);
	const back = new URL(stand.handed.url);
	assert.equal(back.pathname, `/traces/${id}`);
	const project = (await page.evaluate(async () => (await (await fetch('/api/v1/session')).json()).project.id));
	assert.equal(back.searchParams.get('project'), project);
	assert.equal(back.searchParams.get('find'), 'okhttp3');
	assert.ok(Number(back.searchParams.get('to')) > Number(back.searchParams.get('from')));
	await done(page, t);
});

test('a window of the Perfetto UI that is closed is noticed at once', async (t) => {
	stand.mute = true;
	atEnd(t, () => (stand.mute = false));
	const page = await openTrace();
	const popup = page.waitForEvent('popup');
	await page.click('text=Open in the Perfetto UI');
	await page.waitForSelector('text=Preparing the Perfetto file');
	await (await popup).close();
	await page.waitForSelector('[role=alert] >> text=was closed before it received the trace');
	await page.waitForSelector('button:enabled:has-text("Open in the Perfetto UI")');
	await done(page, t);
});

test('a blocked window is explained, and the way around it', async (t) => {
	const page = await openTrace();
	await page.evaluate(() => (window.open = () => null)); // what a browser that blocks answers
	await page.click('text=Open in the Perfetto UI');
	await page.waitForSelector('[role=alert] >> text=Allow pop-ups for this page');
	assert.equal(await page.locator('a[download]:has-text("Download .perfetto-trace")').count(), 1);
	await page.click('text=Dismiss');
	assert.equal(await page.locator('[role=alert]').count(), 0);
	await done(page, t);
});
