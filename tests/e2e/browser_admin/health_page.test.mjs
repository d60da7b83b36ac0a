/*
 * health_page.test.mjs - the server's own state: checks, queue, stages and why they wait, space, refused and slow requests.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { violations } from '../axe.mjs';
import { THEMES, unreadable, visit } from '../browser.mjs';
import { done, open, server, watched } from '../page.mjs';

const fact = (page, panel, name) => page.locator(`#${panel} dl > div`, { hasText: name }).locator('dd');

test('the state of an idle server', async (t) => {
	for (const [scheme, width] of THEMES) {
		const page = await open('/health', scheme, width);
		await page.waitForSelector('#checks >> text=All checks pass');
		await page.locator('#trends header >> text=/The server has just started|Since the server started/').waitFor();
		assert.equal(await page.locator('#trends [data-series]').count(), 6);
		assert.equal(await page.locator('#checks [data-check]').count(), Object.keys((await server.get('/readyz', { key: null })).json.checks).length);
		assert.equal(await fact(page, 'queue', 'Waiting traces').innerText(), '0');
		assert.match(await fact(page, 'slots', 'Signed in').innerText(), /^[1-9]/);
		await page.waitForSelector('#stages tr[data-stage=rollup]');
		await page.waitForSelector('#space >> text=/ used, .* free/');
		await page.waitForSelector('#slow tr[data-route="/api/v1/traces"]');
		assert.equal(await page.evaluate(() => {
			const colour = (e) => getComputedStyle(e).backgroundColor;
			const memory = [...document.querySelectorAll('#space .roombar span')].at(-1); // far below its limit
			return colour(memory) === colour(document.body.appendChild(Object.assign(document.createElement('i'), { style: 'background: var(--accent)' })));
		}), true, 'no colour of a warning');
		assert.deepEqual([await violations(page), await unreadable(page)], [[], []]);
		await page.setViewportSize({ width: 390, height: 844 }); // tables without links scroll by keys
		assert.deepEqual([await violations(page), await unreadable(page)], [[], []]);
		await done(page, t);
	}
});

test('what fails, waits or is refused is named', async (t) => {
	const page = await watched();
	const metrics = (await server.get('/metrics', { key: null })).text;
	await page.route('**/readyz', (r) => r.fulfill({ status: 503, contentType: 'application/json', body: JSON.stringify({ status: 'not_ready', role: 'all', checks: { disk: { ok: false, since_ms: Date.UTC(2026, 10, 20, 12), message: 'less than 5 % of the disk is free' }, jobs: { ok: true, since_ms: 0, message: '' } } }) }));
	await page.route('**/metrics', (r) => r.fulfill({ contentType: 'text/plain', body: metrics.replace(/^tracewell_queue_traces .*$/m, 'tracewell_queue_traces 4321').replace(/^tracewell_queue_oldest_seconds .*$/m, 'tracewell_queue_oldest_seconds 90.5').replace(/^tracewell_catalogue_damaged_pages .*$/m, 'tracewell_catalogue_damaged_pages 3')
		.replace(/^(tracewell_limits_hit_total\{limit="rate"\}) .*$/m, '$1 7') }));
	const now = Date.UTC(2026, 10, 20, 18), hours = [9, 6, 3, 0.5, 0];
	const series = { queue_traces: [0, 900, 0, 2, 4], failed: [0, 0, 2, 2, 5], uploads: [0, 10, 20, 30, 40], refused: [0, 0, 0, 0, 0], errors: [0, 0, 0, 0, 0], disk_free_bytes: [6, 8, 7, 7, 8] };
	await page.route('**/metrics/history', (r) => r.fulfill({ contentType: 'application/json', body: JSON.stringify({ step_ms: 120000, at_ms: hours.map((h) => now - h * 3600000), series }) }));
	await page.route('**/api/v1/fleet/stages*', (r) => r.fulfill({ contentType: 'application/json', body: JSON.stringify({ stages: [{ stage: 'anr', depends: [], waiting: 12, oldest_ms: 1700000000000, postponed: [{ reason: 'not_found', message: 'the trace file is missing', traces: 3 }] }] }) }));
	await visit(page, server, '/health');
	await page.waitForSelector('#checks >> text=2 checks fail');
	await page.locator('#checks [data-problem=damaged] >> text=The catalogue is damaged.').waitFor();
	await page.waitForSelector('[role=alert] >> text=The catalogue is damaged.');
	const disk = page.locator('#checks [data-problem=disk]');
	assert.match(await disk.innerText(), /Less than 5 % of the disk is free[\s\S]*since 2026-11-\d\d \d\d:\d\d/);
	assert.equal(await page.locator('#checks [data-check]').count(), 1, 'the check that passes');
	assert.match(await page.locator('#checks [data-problem=failed]').innerText(), /3 decodes failed in the last hour/);
	await page.locator('#checks [data-problem=anr] >> text=ANR groups: some traces are postponed.').waitFor();
	const failed = page.locator('#trends [data-series=failed]');
	assert.match(await failed.innerText(), /Failed decodes\s+5\s+3 in the last hour/);
	assert.equal(await failed.locator('rect:not(.none)').count(), 2, 'two bars: hours ago, and now');
	assert.match(await page.locator('#trends [data-series=queue_traces]').innerText(), /Waiting traces\s+4\s+peak 900, \d\d:\d\d/);
	const start = /\d\d:\d\d/.exec(await page.getByText(/Since the server started, 2026-11-\d\d/).innerText())[0];
	assert.match(await page.locator('#trends [data-series=disk_free_bytes]').innerText(), new RegExp(`lowest 6 B, ${start}`), 'not the begin of its bar, which is earlier');
	assert.deepEqual([await violations(page), await unreadable(page)], [[], []]);
	assert.equal(await fact(page, 'queue', 'Waiting traces').innerText(), '4,321');
	assert.equal(await fact(page, 'queue', 'Longest wait').innerText(), '90.5 s');
	assert.match(await page.locator('#stages tr[data-stage=anr]').innerText(), /12[\s\S]*the trace file is missing \(3\)/);
	await page.waitForSelector('#slots >> text=Refused since the server started: rate limit 7.');
	await page.unroute('**/metrics');
	for (const at of ['**/metrics', '**/metrics/history']) await page.route(at, (r) => r.fulfill({ status: 404, body: '{}' }));
	await page.getByRole('button', { name: 'Refresh' }).click();
	await page.waitForSelector('text=The metrics are served at the address of --metrics-listen');
	await done(page, t);
});

test('while the catalogue is down its check is named, and the parts that need it are reported as not available', async (t) => {
	const page = await watched();
	await page.route('**/readyz', (r) => r.fulfill({ status: 503, contentType: 'application/json', body: JSON.stringify({ status: 'not_ready', role: 'all', checks: { reading: { ok: false, since_ms: Date.UTC(2026, 10, 20, 12), message: '' } } }) }));
	const broken = ['**/api/v1/fleet/stages*', '**/metrics', '**/metrics/history'];
	for (const at of broken) await page.route(at, (r) => r.fulfill({ status: 503, contentType: 'application/json', body: '{}' }));
	await visit(page, server, '/health');
	await page.locator('#checks [data-problem=reading]').getByText('Catalogue is readable').waitFor();
	for (const part of ['#stages', '#trends']) await page.locator(part).getByText('Not available: the request failed.').waitFor();
	await page.getByText('Metrics are not available: the request failed.').waitFor();
	assert.equal(await page.locator('[role=alert]').count(), 0);
	assert.deepEqual([await violations(page), await unreadable(page)], [[], []]);
	for (const at of broken) await page.unroute(at);
	await page.getByRole('button', { name: 'Refresh' }).click();
	await page.waitForSelector('#stages tr[data-stage=rollup]');
	await page.waitForSelector('#trends [data-series]');
	await page.unroute('**/readyz');
	await page.route('**/readyz', (r) => r.fulfill({ status: 500, body: '' }));
	await page.getByRole('button', { name: 'Refresh' }).click();
	await page.waitForSelector('[role=alert] >> text=The server returned 500.');
	await done(page, t);
});
