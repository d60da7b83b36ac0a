/*
 * The page of changes: what an admin sees of them, in light and dark, and that names in them are text.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { navigate, unreadable } from '../browser.mjs';
import { done, HOSTILE, server, shots, watched } from '../page.mjs';
import { tracewell } from '../server.mjs';

test('changes are listed, picked by kind, and paged', async (t) => {
	for (let i = 0; i < 120; i++)
		await server.ask('PUT', `/api/v1/filters/f${i % 3}`, { key: server.write, body: JSON.stringify({ query: `app=${i}` }) });
	await server.ask('POST', '/api/v1/keys', { key: server.admin, body: JSON.stringify({ name: HOSTILE, scope: 'read' }) });
	const put = (rules) => server.ask('PUT', '/api/v1/retention', { key: server.admin, body: JSON.stringify({ max_age_days: 80, max_traces: null, ...rules }) });
	await put({});
	await put({ max_age_days: 90 });
	const key = (await server.ask('POST', '/api/v1/keys', { key: server.admin, body: JSON.stringify({ name: '', scope: 'ingest' }) })).json.id;
	for (const scheme of ['light', 'dark']) {
		const page = await watched(scheme);
		await page.goto(tracewell('link', 'create', '--data', server.data, '--url', server.url));
		await navigate(page, 'Audit log');
		await page.reload(); // its address is served too
		const rows = page.locator('tr[data-entry]');
		await rows.filter({ hasText: HOSTILE }).filter({ hasText: 'created a key' }).first().waitFor();
		await rows.filter({ hasText: 'created a key' }).filter({ hasText: '(unnamed) ingest' }).first().waitFor();
		await page.getByText(key).waitFor({ state: 'detached' });
		await page.getByLabel('Show').selectOption('settings');
		const set = rows.filter({ hasText: 'retention rules' });
		await set.first().filter({ has: page.locator('td.details', { hasText: /^Delete traces older than: 90 days$/ }) }).waitFor(); // only what was changed
		await set.nth(1).filter({ hasText: 'Delete traces older than: 80 days, ' }).waitFor();
		await page.getByLabel('Show').selectOption('saved lists');
		await rows.filter({ hasText: 'app=119' }).waitFor();
		assert.equal(await rows.count(), 100);
		await page.click('text=Older changes');
		await rows.filter({ hasText: 'app=0' }).first().waitFor();
		assert.equal(await rows.count(), 120);
		await page.getByLabel('of all projects and the server').check();
		await page.getByLabel('Show').selectOption('sign-in links');
		await rows.filter({ hasText: 'created a sign-in link' }).filter({ hasText: 'on the server' }).first().waitFor();
		await page.reload(); // the address contains the filters
		await rows.filter({ hasText: 'created a sign-in link' }).first().waitFor();
		assert.equal(await page.getByLabel('Show').inputValue(), 'link');
		assert.ok(await page.getByLabel('of all projects and the server').isChecked());
		assert.deepEqual(await unreadable(page), []);
		if (shots) await page.screenshot({ path: path.join(shots, `audit-${scheme}.png`) });
		await done(page, t);
	}
});
