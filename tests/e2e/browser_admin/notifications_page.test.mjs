/*
 * Webhooks in the page: made, tested, read try by try, paused by its receiver and resumed; the digest set and
 * read beforehand; issue texts; in light and dark.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, test } from 'node:test';
import { violations } from '../axe.mjs';
import { unreadable } from '../browser.mjs';
import { done, server, shots, watched } from '../page.mjs';
import { startReceiver } from '../webhook_receiver.mjs';
import { tracewell, until } from '../server.mjs';
import { findSlower } from '../regressed_fleet.mjs';
import { startTrackers } from '../trackers.mjs';

let receiver, tracker;
const ending = [];

/* The server again, with the private addresses that it may reach. */
async function prepare() {
	receiver = await startReceiver({ after: (f) => ending.push(f) });
	tracker = await startTrackers({ after: (f) => ending.push(f) }, 'github');
	await server.stop();
	server.args.push('--webhook-private', '127.0.0.0/8', '--public-url', 'https://traces.example.com', '--smtp-url', 'smtp://127.0.0.1:9', '--mail-from', 'tracewell@example.com');
	await server.start();
}

after(() => ending.forEach((f) => f()));

async function asAdmin(scheme, width, target = '/notifications', ready = '#tracker form') {
	const page = await watched(scheme, width);
	await page.goto(tracewell('link', 'create', '--data', server.data, '--url', server.url));
	await page.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
	await page.goto(server.url + target);
	await page.waitForSelector(ready);
	return page;
}

const ROW = 'tr[data-hook]:has-text("perf channel")';

test('a webhook is made, refused, tested, and its deliveries are read', async (t) => {
	await prepare();
	const page = await asAdmin('light', 1280, '/webhooks?open=none'); // the earlier address of the page
	assert.equal(page.url().replace(/.*(?=\/notifications)/, ''), '/notifications?open=none');
	await page.waitForSelector('text=No webhooks yet');
	await page.getByRole('button', { name: 'Add a webhook' }).click();
	await page.fill('form.rule [name=name]', 'perf channel');
	await page.fill('form.rule [name=url]', 'ftp://example.com');
	await page.getByRole('button', { name: 'Add', exact: true }).click();
	await page.waitForSelector('#webhooks [role=alert] >> text=must be http');
	await page.fill('form.rule [name=url]', `${receiver.url}/h`);
	await page.click('form.rule summary:text-is("Events: all events")');
	await page.uncheck('[name="regression.status"]');
	await page.waitForSelector('form.rule summary:text-is("Events: 9 / 10")');
	await page.getByRole('button', { name: 'Add', exact: true }).click();
	await page.waitForSelector('[role=status] code:text-matches("^twh_")');
	await page.getByRole('button', { name: 'I have copied it' }).click();
	await page.locator(ROW).getByText('no deliveries yet').waitFor();
	await page.getByRole('button', { name: 'Test perf channel' }).click();
	await page.locator('tr[data-delivery]').getByText('status 204').waitFor();
	await page.locator('tr[data-delivery]').getByRole('button', { name: 'test', exact: true }).click();
	await page.waitForSelector('pre.body >> text=This is a test of the webhook');
	assert.equal(receiver.at('/h').length, 1);
	await page.locator('tr[data-delivery]').getByRole('button', { name: /Redeliver/ }).click();
	await receiver.wait('/h', 2);
	assert.equal(receiver.at('/h')[0].json.id, receiver.at('/h')[1].json.id);
	await done(page, t);
});

test('a webhook that its receiver ended shows why it is paused, and is resumed', async (t) => {
	receiver.manner['/h'] = 'gone';
	const found = await findSlower(server, 12);
	const page = await asAdmin();
	await page.locator(ROW).getByText('it returned 410').waitFor();
	await page.locator(ROW).getByText('Events in the meantime are not sent.').waitFor();
	receiver.manner['/h'] = 'fine';
	await page.getByRole('button', { name: 'Resume perf channel' }).click();
	await page.getByRole('button', { name: 'Pause perf channel' }).waitFor();
	await until(() => receiver.at('/h').filter((g) => g.json.regression?.id === found.id)[0], 'it is reported'); // what waited goes out at once
	await done(page, t);
});

test('the digest is set and read beforehand, and the tracker is named', async (t) => {
	const page = await asAdmin();
	await page.selectOption('#digest [name=every]', 'weekly');
	await page.selectOption('#digest [name=weekday]', '3');
	await page.fill('#digest [name=mail]', 'ann@example.com\nbob');
	await page.click('#digest button.primary');
	await page.waitForSelector('#digest [role=alert] >> text=not an address such as ann@example.com');
	await page.fill('#digest [name=mail]', 'ann@example.com');
	await page.click('#digest button.primary');
	await page.waitForSelector('#digest button.primary[disabled]');
	assert.deepEqual((await server.get('/api/v1/digest/settings', { key: server.admin })).json, { every: 'weekly', hour: 7, weekday: 3, webhook: true, mail: ['ann@example.com'] });
	await page.getByRole('button', { name: 'Preview' }).click();
	await page.waitForSelector('pre.digest >> text=com.app.Repo.load in slower');
	await page.getByRole('button', { name: 'Send it now' }).click();
	await page.locator('#digest [role=status]').getByText('Queued for 1 webhook and 1 address.').waitFor();
	const reported = await until(() => receiver.at('/h').find((g) => g.json.event === 'digest'), 'the digest is delivered');
	assert.match(reported.json.text, /com\.app\.Repo\.load in slower/);
	await page.fill('#tracker [name=template]', 'https://github.com/o/r/issues/new?title={title}&body={body}');
	await page.click('#tracker button.primary');
	await page.waitForSelector('#tracker button.primary[disabled]');
	await page.click('#tracker summary');
	await page.fill('#tracker [name=api]', tracker.url);
	await page.getByLabel('Repository').fill('acme/shop');
	await page.fill('#tracker [name=token]', tracker.settings.token);
	await page.fill('#tracker [name=assignees]', 'ann@example.com = ann\n@feed-team = bob');
	await page.click('#tracker button.primary');
	await page.waitForSelector('#tracker button.primary[disabled]');
	await page.waitForSelector('#tracker >> text=stored; enter another to replace it');
	assert.equal(await page.inputValue('#tracker [name=token]'), '');
	assert.deepEqual((await server.get('/api/v1/tracker', { key: server.admin })).json.assignees, { 'ann@example.com': 'ann', '@feed-team': 'bob' });
	assert.deepEqual(await violations(page), []);
	await done(page, t);
});

test('a regression has its history and its issue text', async (t) => {
	const page = await asAdmin('light', 1280, '/regressions?status=all', 'tr[data-regression]');
	await page.locator('tr[data-regression]:has-text("com.app.Repo.load") button').click();
	await page.getByRole('list', { name: 'History' }).getByText('found by tracewell').waitFor();
	await page.getByRole('button', { name: 'Issue text' }).click();
	await page.waitForSelector('pre.body >> text=## Where to look');
	const href = await page.getByRole('link', { name: 'Open a new issue' }).getAttribute('href');
	assert.equal(new URL(href).origin, 'https://github.com');
	await page.getByRole('button', { name: 'Create an issue in GitHub' }).click();
	const ticket = page.getByRole('group', { name: 'Ticket' });
	await ticket.getByText('open there').waitFor();
	assert.equal(await ticket.getByRole('link', { name: '1' }).getAttribute('href'), 'https://github.example.com/acme/shop/issues/1');
	assert.equal(tracker.issues.length, 1);
	await page.getByRole('button', { name: 'Jira' }).click();
	await page.waitForSelector('pre.body >> text=h3. Where to look');
	await page.getByRole('link', { name: 'Open a new issue' }).waitFor({ state: 'detached' });
	assert.deepEqual(await unreadable(page), []);
	assert.deepEqual(await violations(page), []);
	await done(page, t);
});

test('an alert rule is previewed, added, changed and removed', async (t) => {
	const page = await asAdmin('light', 1280, '/notifications', '#alerts .quiet');
	const rules = async () => (await server.get('/api/v1/alerts/rules')).json.rules;
	const p50 = Object.fromEntries((await server.get('/api/v1/fleet/scenarios', { query: { by: 'version', scenario: 'slower' } })).json.groups.map((g) => [g.key, g.duration_ns.p50 / 1e6]));
	await page.getByRole('button', { name: 'Add an alert rule' }).click();
	const form = page.getByRole('form', { name: 'A new alert rule' });
	await form.getByLabel('Name').fill('Slow start');
	await form.getByLabel('Percentile').fill('50');
	await form.getByLabel('Minimum traces').fill('5');
	await form.locator('#known-scenario option[value=slower]').waitFor({ state: 'attached' });
	await form.getByLabel('Scenario').fill('slower');
	await form.getByText('Enter a threshold above 0.').waitFor();
	assert.ok(await form.getByRole('button', { name: 'Preview' }).isDisabled());
	await form.getByLabel('Threshold in ms').fill(String((p50['8.3.0'] + p50['8.3.1']) / 2));
	await form.getByRole('button', { name: 'Preview' }).click();
	await form.getByText('Above the threshold now: 1 of 2. Nothing was saved.').waitFor();
	assert.equal(await form.locator('tr[data-figure="8.3.1"] td').last().innerText(), 'yes');
	assert.equal(await form.locator('tr[data-figure="8.3.0"] td').last().innerText(), 'no');
	assert.match(await form.locator('tr[data-figure="8.3.1"] a').getAttribute('href'), /^\/traces\//);
	assert.deepEqual(await rules(), []);
	assert.deepEqual(await unreadable(page), []);
	assert.deepEqual(await violations(page), []);
	await page.setViewportSize({ width: 390, height: 800 });
	const figure = form.locator('tr[data-figure="8.3.1"]');
	assert.ok((await figure.boundingBox()).height < 100, 'a figure is a block of at most three lines');
	await figure.getByText('yes').scrollIntoViewIfNeeded();
	assert.deepEqual(await unreadable(page), []);
	assert.deepEqual(await violations(page), []);
	await page.setViewportSize({ width: 1280, height: 900 });
	await form.getByLabel('Threshold in ms').fill('100000');
	await form.locator('table').waitFor({ state: 'detached' });
	await form.getByRole('button', { name: 'Preview' }).click();
	await form.getByText('Above the threshold now: 0 of 2. Nothing was saved.').waitFor();
	await form.getByRole('button', { name: 'Add' }).click();
	const row = page.locator('tr[data-rule]:has-text("Slow start")');
	await row.getByText('100 s').waitFor();
	await row.getByText('8.3.1: ').waitFor();
	await page.locator('button:focus', { hasText: 'Add an alert rule' }).waitFor();

	await page.getByRole('button', { name: 'Edit Slow start' }).click();
	const change = page.getByRole('form', { name: 'Edit Slow start' });
	await change.getByText('duration of slower').waitFor();
	assert.equal(await change.getByLabel('Threshold in ms').inputValue(), '100000');
	await change.locator('summary', { hasText: 'As JSON' }).click();
	const json = change.getByRole('textbox', { name: 'As JSON' });
	await json.fill(JSON.stringify({ ...JSON.parse(await json.inputValue()), threshold: 20000, days: 3 }));
	await change.getByRole('button', { name: 'Fill in the form' }).click();
	assert.equal(await change.getByLabel('Threshold in ms').inputValue(), '20000');
	assert.equal(await change.getByLabel('Days').inputValue(), '3');
	await change.getByRole('button', { name: 'Preview' }).click();
	await change.getByText('Above the threshold now: 0 of 2. Nothing was saved.').waitFor();
	await change.getByRole('button', { name: 'Save' }).click();
	await row.getByText('20.0 s').waitFor();
	await page.locator('button[aria-label="Edit Slow start"]:focus').waitFor();
	const [rule] = await rules();
	assert.deepEqual([rule.name, rule.kind, rule.scenario, rule.percentile, rule.threshold, rule.min_traces, rule.days, rule.mail], ['Slow start', 'duration', 'slower', 50, 20000, 5, 3, true]);
	await page.getByRole('button', { name: 'Check now' }).click();
	await row.getByText('8.3.1: ').waitFor();
	await page.setViewportSize({ width: 390, height: 800 });
	const scope = row.locator('td', { hasText: /^slower$/ });
	assert.ok((await scope.boundingBox()).width >= 60, 'a word is not broken letter by letter');
	await page.setViewportSize({ width: 1280, height: 900 });
	await page.getByRole('button', { name: 'Remove Slow start' }).click();
	await page.getByRole('button', { name: 'Remove permanently' }).click();
	await row.waitFor({ state: 'detached' });
	assert.deepEqual(await rules(), []);
	await page.getByRole('button', { name: 'Add an alert rule' }).click();
	await form.getByLabel('Metric').selectOption('anr_spike');
	await form.getByLabel('Threshold, multiple of the daily mean').fill('3');
	await form.getByRole('button', { name: 'Preview' }).click();
	await form.getByText('No value: too few reports.').waitFor();
	await done(page, t);
});

test('the page of a method opens an alert rule for it, filled in', async (t) => {
	const page = await asAdmin('light', 1280, '/fleet/methods?method=com.app.Repo.load&by=version&scenario=slower&app=shop', '#method tr[data-point]');
	const p95 = (await server.get('/api/v1/fleet/method', { query: { name: 'com.app.Repo.load', by: 'version', scenario: 'slower', metrics: 'self' } })).json.groups.find((g) => g.key === '8.3.1').self.p95;
	await page.locator('#method').getByRole('link', { name: 'Alert', exact: true }).click();
	const form = page.getByRole('form', { name: 'A new alert rule' });
	await form.getByText('No value: too few traces.').waitFor();
	await form.getByLabel('Minimum traces').fill('5');
	await form.getByRole('button', { name: 'Preview' }).click();
	await form.getByText('Above the threshold now: 0 of 2. Nothing was saved.').waitFor();
	const [metric, method, scenario, percentile, threshold] = await Promise.all(['kind', 'method', 'scenario', 'percentile', 'threshold'].map((name) => form.locator(`[name=${name}]`).inputValue()));
	assert.deepEqual([metric, method, scenario, percentile], ['method_self', 'com.app.Repo.load', 'slower', '95']);
	assert.ok(Math.abs(Number(threshold) / (1.2 * p95 / 1e6) - 1) < 0.05, threshold);
	await form.getByLabel('Metric').selectOption('method_share');
	await form.getByLabel('Threshold in %').fill('1');
	await form.getByRole('button', { name: 'Preview' }).click();
	await form.getByText('Above the threshold now: 2 of 2. Nothing was saved.').waitFor();
	assert.deepEqual([await unreadable(page), await violations(page)], [[], []]);
	await form.getByRole('button', { name: 'Add' }).click();
	await page.locator('tr[data-rule] td:has-text("share of a method")').waitFor();
	await page.locator('tr[data-rule] .loss', { hasText: /^8\.3\.1: .* \(\d+ traces\)$/ }).waitFor();
	assert.ok((await server.get('/api/v1/inbox', { query: { kind: 'alert' } })).json.items.length > 0, 'it is in the inbox at once');
	const [rule] = (await server.get('/api/v1/alerts/rules')).json.rules;
	assert.deepEqual([rule.kind, rule.method, rule.threshold, rule.app], ['method_share', 'com.app.Repo.load', 0.01, 'shop']);
	await page.locator('tr[data-rule]').getByRole('button', { name: /^Remove / }).click();
	await page.getByRole('button', { name: 'Remove permanently' }).click();
	await page.locator('tr[data-rule]').waitFor({ state: 'detached' });
	await done(page, t);
});

for (const [scheme, width] of [['light', 1280], ['dark', 1920]])
	test(`all of it can be read and reached: ${scheme}, ${width}`, async (t) => {
		const page = await asAdmin(scheme, width);
		await page.locator(ROW).locator('button[aria-expanded]').click();
		await page.locator('tr[data-delivery]').first().waitFor();
		await page.locator('tr[data-delivery] button.plain').first().click();
		await page.waitForSelector('pre.body');
		await page.getByRole('button', { name: 'Edit perf channel' }).click();
		await page.waitForSelector('form[aria-label="Edit the webhook"]');
		await page.getByRole('button', { name: 'Preview' }).click();
		await page.waitForSelector('pre.digest');
		assert.deepEqual(await unreadable(page), []);
		assert.deepEqual(await violations(page), []);
		if (shots) await page.screenshot({ path: path.join(shots, `notifications-${scheme}.png`), fullPage: true });
		await done(page, t);
	});

test('who may only look has no such page', async (t) => {
	const page = await watched();
	await page.goto(server.url);
	const { signIn } = await import('../browser.mjs');
	await signIn(page, { ...server, write: server.read, url: server.url });
	await page.goto(`${server.url}/notifications`);
	await page.getByText('Only admins of this project can open this page.').waitFor();
	assert.equal(await page.locator('nav >> text=Notifications').count(), 0);
	await done(page, t);
});
