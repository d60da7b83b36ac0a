/* Keys on the page: a project with more than a page of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { done, server, watched } from '../page.mjs';
import { tracewell } from '../server.mjs';

test('keys are shown by pages, the newest first', async (t) => {
	for (let i = 0; i < 110; i++) await server.ask('POST', '/api/v1/keys', { key: server.admin, body: JSON.stringify({ name: `key-${i}.`, scope: 'read' }) });
	const page = await watched('light');
	await page.goto(tracewell('link', 'create', '--data', server.data, '--url', server.url));
	await page.waitForSelector('h1');
	await page.goto(`${server.url}/keys`);
	const rows = page.locator('tr[data-key]');
	await rows.filter({ hasText: 'key-109.' }).waitFor();
	assert.equal(await rows.count(), 100);
	await page.getByRole('button', { name: 'Next' }).click();
	await rows.filter({ hasText: 'key-0.' }).waitFor();
	assert.ok(await rows.count() >= 10);
	assert.equal(await rows.filter({ hasText: 'key-109.' }).count(), 0);
	await page.getByRole('button', { name: 'Back' }).click();
	await rows.filter({ hasText: 'key-109.' }).waitFor();
	await done(page, t);
});
