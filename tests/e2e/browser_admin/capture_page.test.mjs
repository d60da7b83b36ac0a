/*
 * Capture rules in the page: created, changed, refused and removed by an admin, the traces that they
 * brought, and the view of a user who may only read; in light and dark.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { violations } from '../axe.mjs';
import { navigate, unreadable } from '../browser.mjs';
import { sampleTrace } from '../make.mjs';
import { done, open, server, shots, watched } from '../page.mjs';
import { tracewell } from '../server.mjs';

async function asAdmin(scheme, width) {
	const page = await watched(scheme, width);
	await page.goto(tracewell('link', 'create', '--data', server.data, '--url', server.url));
	await page.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
	await navigate(page, 'Capture');
	await page.waitForSelector('#rules p');
	return page;
}

const rulesFor = async (query) => (await server.get('/api/v1/capture', { key: server.ingest, query })).json.captures.map((c) => c.rule);

test('an admin sets what devices record, and sees the uploaded traces', async (t) => {
	const page = await asAdmin();
	await page.waitForSelector('text=No rules yet');
	await page.click('text=Add a rule');
	await page.fill('form.rule [name=name]', 'cold starts');
	await page.fill('form.rule [name=scenario]', 'cold_start');
	await page.fill('form.rule [name=version_name]', '8.3.*\n9.0');
	await page.waitForSelector('form.rule [data-known=version_name]:has-text("Matches 1 of 1: 8.3.1")'); // of the trace that is there
	await page.fill('form.rule [name=device]', 'Nokia*\n');
	await page.fill('form.rule [name=app]', 'com.none.*');
	await page.waitForSelector('form.rule [data-known=app]:has-text("Matches none of the 1")');
	const preview = page.getByRole('form', { name: 'A new rule' }).getByRole('button', { name: 'Preview' });
	await preview.click();
	await page.waitForSelector('form.rule [role=status]:has-text("0 of the latest 1 traces match")');
	await page.fill('form.rule [name=device]', '');
	await page.waitForSelector('form.rule [role=status]:empty', { state: 'attached' }); // of other conditions
	await page.fill('form.rule [name=app]', '');
	await preview.click();
	await page.waitForSelector('form.rule [role=status]:has-text("1 of the latest 1 traces match; 1.0 % of their devices would record. Nothing was saved.")');
	assert.deepEqual(await page.locator('form.rule tr[data-matches] td').allInnerTexts(), ['8.3.1', 'com.acme.shop', '–', '–', '1']);
	assert.deepEqual(await rulesFor({ version_name: '8.3.1' }), []);
	await page.fill('form.rule [name=scenario]', 'another');
	await preview.click();
	await page.waitForSelector('form.rule [role=status]:has-text("0 of the latest 1 traces match")');
	await page.fill('form.rule [name=scenario]', 'cold_start');
	for (const [field, wrong, why] of [['share', '101', '0 to 100'], ['per_day', '1.5', 'a whole number; 0: no limit']]) {
		const right = await page.inputValue(`form.rule [name=${field}]`);
		await page.fill(`form.rule [name=${field}]`, wrong);
		await page.locator('form.rule label', { has: page.locator(`[name=${field}][aria-invalid=true]`) }).getByText(why).waitFor();
		assert.ok(await page.locator('form.rule button.primary').isDisabled());
		await page.fill(`form.rule [name=${field}]`, right);
	}
	await page.fill('form.rule [name=share]', '100');
	await page.fill('form.rule [name=per_day]', '2');
	await page.fill('form.rule [name=record]', '{"max_seconds": }');
	await page.click('form.rule button.primary');
	await page.waitForSelector('[role=alert] >> text=The recording settings are not valid JSON.');
	await page.fill('form.rule [name=record]', '{"max_seconds": 20}');
	await page.click('form.rule button.primary');
	await page.waitForSelector('[role=alert] >> text=letters, digits');
	await page.fill('form.rule [name=name]', 'cold-starts');
	await page.click('form.rule button.primary');
	await page.waitForSelector('tr[data-rule=cold-starts] >> text=version 8.3.* or 9.0');
	await page.locator('button:focus', { hasText: 'Add a rule' }).waitFor();
	assert.deepEqual(await rulesFor({ version_name: '9.0', device_id: 'one' }), ['cold-starts']);
	for (const seed of [50, 51]) await server.trace(sampleTrace(seed), { query: { capture: 'cold-starts', device_id: 'one' } });
	await page.reload();
	await page.waitForSelector('tr[data-rule=cold-starts] >> text=2 of 2 full');
	await page.waitForSelector('svg[aria-label$=", 0, 2"]');
	assert.deepEqual(await rulesFor({ version_name: '9.0' }), []);
	await page.click('[aria-label="Edit cold-starts"]');
	assert.equal(await page.inputValue('form.rule [name=version_name]'), '8.3.*\n9.0');
	await page.fill('form.rule [name=per_day]', '1000');
	await page.click('form.rule button.primary');
	await page.waitForSelector('tr[data-rule=cold-starts] >> text=2 of 1,000');
	await page.waitForSelector('[aria-label="Edit cold-starts"]:focus');
	await page.getByRole('button', { name: 'Create an ingest key and fill it in' }).click();
	await page.locator('.command pre', { hasText: /^KEY=twi_\S+\ncurl / }).waitFor();
	assert.deepEqual(await rulesFor({ version_name: '9.0' }), ['cold-starts']);
	await done(page, t);
});

test('who may only look sees the rules and no way to change them', async (t) => {
	const page = await open('/capture');
	await page.waitForSelector('tr[data-rule=cold-starts]');
	assert.equal(await page.locator('text=Add a rule').count(), 0);
	assert.equal(await page.locator('#rules button').count(), 0);
	await done(page, t);
});

for (const scheme of ['light', 'dark'])
	test(`all of it can be read and reached: ${scheme}`, async (t) => {
		const page = await asAdmin(scheme, scheme === 'dark' ? 1920 : 1280);
		await page.click('[aria-label="Edit cold-starts"]');
		await page.waitForSelector('form.rule');
		await page.getByRole('form').getByRole('button', { name: 'Preview' }).click();
		await page.waitForSelector('form.rule tr[data-matches]');
		assert.equal(new Set(await page.locator('form.rule .conditions textarea').evaluateAll((all) => all.map((e) => e.getBoundingClientRect().top))).size, 1, 'fields of conditions in one row');
		await page.setViewportSize({ width: 390, height: 844 });
		assert.deepEqual(await unreadable(page), []);
		assert.deepEqual(await violations(page), []);
		await page.setViewportSize({ width: scheme === 'dark' ? 1920 : 1280, height: 900 });
		assert.deepEqual(await unreadable(page), []);
		assert.deepEqual(await violations(page), []);
		if (shots) await page.screenshot({ path: path.join(shots, `capture-${scheme}.png`), fullPage: true });
		await done(page, t);
	});

test('the rules as JSON', async (t) => {
	const page = await asAdmin();
	await page.click('summary:has-text("As JSON")');
	const text = page.getByRole('textbox', { name: 'As JSON' });
	const doc = JSON.parse(await text.inputValue());
	assert.deepEqual(doc.rules.map((r) => r.name), ['cold-starts']);
	await text.fill('{"rules": [');
	await page.click('.asjson >> text=Save');
	await page.waitForSelector('.asjson [role=alert] >> text=This is not JSON');
	await text.fill(JSON.stringify({ rules: [{ name: 'no spaces here' }] }));
	await page.click('.asjson >> text=Save');
	await page.waitForSelector('[role=alert] >> text=letters, digits');
	assert.deepEqual(await rulesFor({ version_name: '9.0' }), ['cold-starts']);
	await text.fill(JSON.stringify({ ...doc, max_age_s: 1800, rules: doc.rules.map((r) => ({ ...r, per_day: 7 })) }));
	await page.click('.asjson >> text=Save');
	await page.waitForSelector('tr[data-rule=cold-starts] >> text=2 of 7');
	await page.waitForSelector('text=Devices poll every 30 minutes.');
	await done(page, t);
});

test('a rule is deleted permanently after a second confirmation', async (t) => {
	const page = await asAdmin();
	await page.click('[aria-label="Remove cold-starts"]');
	await page.click('text=Remove permanently');
	await page.waitForSelector('td:has-text("by deleted rules")', { state: 'detached' });
	await page.waitForSelector('tr[data-rule=cold-starts]', { state: 'detached' });
	assert.deepEqual(await rulesFor({ version_name: '9.0' }), []);
	await done(page, t);
});

test('on a phone, the cells after one that spans columns have the names of their columns', async (t) => {
	const rules = (await server.get('/api/v1/capture/rules')).json;
	const page = await watched('light', 390);
	await page.route('**/api/v1/capture/rules*', (r) => r.fulfill({ contentType: 'application/json', body: JSON.stringify({ ...rules, rules: [{ name: 'another' }], days: [{ rule: '', day_ms: Math.floor(Date.now() / 86400000) * 86400000, traces: 3, devices: 2 }] }) }));
	await page.goto(tracewell('link', 'create', '--data', server.data, '--url', server.url));
	await page.waitForSelector('nav[aria-label="Pages"]');
	await page.goto(`${server.url}/capture`);
	await page.locator('tr', { hasText: 'by deleted rules' }).waitFor();
	const names = (row) => row.locator('td').evaluateAll((cells) => cells.map((cell) => [cell.dataset.column, cell.hasAttribute('data-lead')]));
	assert.deepEqual(await names(page.locator('tr', { hasText: 'by deleted rules' })), [['', false], ['Traces today', false], ['Devices today', false], ['14 days', false], ['', false]]);
	assert.deepEqual((await names(page.locator('tr[data-rule=another]'))).slice(0, 5), [['', true], ['Scenario', false], ['Applies to', false], ['Share', false], ['Traces today', false]]);
	await done(page, t);
});
