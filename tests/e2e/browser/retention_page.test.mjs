/*
 * The pages of retention and quarantine: a viewer's view, an admin's changes, the message about the next deletions, a
 * trace whose decoded file expired, and uploads that killed decoders.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { navigate, unreadable } from '../browser.mjs';
import { sampleTrace } from '../make.mjs';
import { browser, done, shots } from '../page.mjs';
import { binary, startServer, tracewell, until } from '../server.mjs';

const change = (s, sql, ...values) => execFileSync('python3', ['-c', 'import sqlite3,sys\ndb=sqlite3.connect(sys.argv[1],timeout=20)\ndb.execute(sys.argv[2],sys.argv[3:])\ndb.commit()',
	path.join(s.data, 'catalogue.db'), sql, ...values.map(String)]);

async function watch(s, scheme, who) {
	const page = await (await browser.newContext({ colorScheme: scheme, viewport: { width: 1280, height: 900 } })).newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	if (!who) await page.goto(tracewell('link', 'create', '--data', s.data, '--url', s.url));
	else {
		await page.goto(s.url + '/');
		await page.fill('input[name=name]', who.name);
		await page.fill('input[name=password]', who.password);
		await page.click('button.primary');
	}
	await page.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
	return page;
}

const shot = async (page, name) => shots && page.screenshot({ path: path.join(shots, `${name}.png`), fullPage: true });

test('an admin tries rules out, saves them, and sees what goes next and why', async (t) => {
	const s = await startServer(t, { args: ['--retention-every', '3600'] });
	const old = (await s.trace(sampleTrace(60), { query: { app: 'com.acme.old' } })).id;
	const kept = (await s.trace(sampleTrace(61), { query: { app: 'com.acme.kept' } })).id;
	const soon = (await s.trace(sampleTrace(62), { query: { app: 'com.acme.soon' } })).id;
	await s.ask('PATCH', `/api/v1/traces/${kept}`, { key: s.write, body: '{"pinned":true}' });
	for (const [id, days] of [[old, 40], [kept, 40], [soon, 25]]) change(s, 'UPDATE trace SET created_ms=created_ms-?*86400000 WHERE trace_id=?', days, id);
	await s.ask('PUT', '/api/v1/retention', { key: s.admin, body: '{}' });
	for (const scheme of ['light', 'dark']) {
		const page = await watch(s, scheme);
		await navigate(page, 'Retention');
		await page.waitForSelector('text=Traces are kept until they are deleted manually.');
		await page.waitForSelector('.roomfacts dd:has-text("3")');
		await page.waitForSelector('text=Above 80 % of the disk, the oldest traces');
		await page.waitForSelector('#next >> text=Nothing to delete with the current rules.');
		await page.fill('input[name=max_age_days]', '0');
		await page.waitForSelector('text=a number above 0');
		assert.ok(await page.locator('text="Save rules"').isDisabled());
		await page.fill('input[name=max_age_days]', '30');
		await page.click('text=Preview deletions');
		await page.locator(`#next tr[data-due="${old}"]`, { hasText: 'older than 30 days' }).waitFor();
		await page.locator(`#next tr[data-due="${old}"]`, { hasText: 'at the next check' }).waitFor();
		await page.locator(`#next tr[data-due="${soon}"]`, { hasText: 'com.acme.soon' }).waitFor();
		assert.equal(await page.locator(`#next tr[data-due="${kept}"]`).count(), 0);
		await page.getByText(/These rules would delete 2 items \([\d.]+ (Ki)?B\), listed below/).waitFor();
		assert.equal((await s.get('/api/v1/retention')).json.rules.max_age_days, null, 'nothing is saved by that');
		assert.deepEqual(await unreadable(page), []);
		await shot(page, `retention-tried-${scheme}`);
		if (scheme === 'light') {
			await page.context().close();
			continue;
		}
		await page.click('summary:has-text("As JSON")');
		const json = page.getByRole('textbox', { name: 'As JSON' });
		await json.fill(JSON.stringify({ ...JSON.parse(await json.inputValue()), max_bytes: 2 ** 29 }));
		await page.getByRole('button', { name: 'Fill in the form' }).click();
		assert.equal(await page.inputValue('input[name=max_bytes]'), '0.5');
		await page.click('text=Save rules');
		await page.waitForSelector('text=Traces are deleted 30 days after upload.');
		await page.waitForSelector('text=At most 512 MiB are used');
		await page.waitForSelector('[role=status] >> text=Saved. They apply from the next check.');
		assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Save rules', 'the focus stays');
		assert.deepEqual((({ max_age_days, max_bytes }) => [max_age_days, max_bytes])((await s.get('/api/v1/retention')).json.rules), [30, 2 ** 29]);
		await page.goto(`${s.url}/retention`); // its address works too
		await page.waitForSelector('text=At most 512 MiB are used');
		await navigate(page, 'Audit log');
		await page.locator('tr[data-entry]', { hasText: 'changed a setting' }).filter({ hasText: 'retention' }).first().waitFor();
		await page.goto(`${s.url}/traces?cols=state,expires`);
		await page.locator('th', { hasText: 'Expires' }).waitFor();
		await page.locator('tr', { hasText: 'com.acme.kept' }).filter({ hasText: 'pinned' }).waitFor();
		await page.goto(`${s.url}/traces/${soon}`);
		await page.locator('.head a[href^="/retention"]', { hasText: 'until 20' }).waitFor({ state: 'attached' }); // narrow windows have no room for it
		await done(page, t);
	}
});

test('a viewer sees the rules and what goes, and changes nothing', async (t) => {
	const s = await startServer(t, { args: ['--retention-every', '3600'] });
	await s.trace(sampleTrace(63));
	await s.ask('PUT', '/api/v1/retention', { key: s.admin, body: JSON.stringify({ max_traces: 5, uploads_max_age_days: 3 }) });
	const person = { name: 'vera', password: 'only looks at it' };
	execFileSync(binary(), ['user', 'create', person.name, '--data', s.data], { input: person.password });
	tracewell('user', 'role', person.name, '--data', s.data, '--project', 'test', '--role', 'viewer');
	const page = await watch(s, 'light', person);
	await navigate(page, 'Retention');
	await page.waitForSelector('text=At most 5 traces are kept; the oldest are deleted first.');
	await page.locator('#next tr', { hasText: 'raw upload' }).filter({ hasText: 'older than 3 days; the trace stays' }).waitFor();
	await page.waitForSelector('text=Admins of the project change them.');
	assert.equal(await page.locator('main form, main button').count(), 0);
	assert.equal(await page.locator('nav >> text=Quarantine').count(), 0);
	await done(page, t);
});

test('a trace whose decoded file was deleted is decoded again when it is opened, and the page reports this', async (t) => {
	const s = await startServer(t, { args: ['--retention-every', '1', '--decode-workers', '1'] });
	const { id } = await s.trace(sampleTrace(64));
	change(s, 'UPDATE trace SET ready_ms=ready_ms-9*86400000');
	await s.ask('PUT', '/api/v1/retention', { key: s.admin, body: '{"decoded_max_age_days":8}' });
	await until(async () => ((await s.get(`/api/v1/traces/${id}`)).json.state === 'archived' ? true : undefined), 'archived');
	const page = await watch(s, 'light');
	await page.waitForSelector('td >> text=archived');
	let hold;
	const held = new Promise((go) => { hold = go; });
	await page.route((u) => u.pathname === `/api/v1/traces/${id}`, async (route) => { // a fast decode ends before that
		const r = await route.fetch();
		const body = await r.json();
		if (body.state === 'ready') await held;
		await route.fulfill({ response: r, body: JSON.stringify(body) });
	});
	await page.click('td a.rowlink');
	await page.waitForSelector('text=The decoded file of this trace was deleted.');
	await shot(page, 'archived');
	hold();
	await page.waitForSelector('[data-ready]');
	assert.equal(await page.locator('text=was deleted').count(), 0);
	await done(page, t);
});

test('poison: seen with its reason, saved, tried again, deleted', async (t) => {
	const s = await startServer(t, { args: ['--worker-attempts', '1'], env: { TRACEWELL_WORKER_FAULT: 'crash' } });
	const body = sampleTrace(65);
	const bad = (await s.trace(body, { query: { app: 'com.acme.bad', build_id: 'b7' } })).id;
	const worse = (await s.trace(sampleTrace(66), { query: { app: '<img src=x onerror=alert(1)>' } })).id;
	for (const scheme of ['light', 'dark']) {
		const page = await watch(s, scheme);
		await navigate(page, 'Quarantine');
		const row = page.locator(`tr[data-poison="${bad}"]`);
		await row.filter({ hasText: 'Crashed (SIGSEGV)' }).filter({ hasText: 'build b7' }).waitFor();
		await page.locator(`tr[data-poison="${worse}"]`, { hasText: '<img src=x' }).waitFor();
		assert.deepEqual(await unreadable(page), []);
		await shot(page, `quarantine-${scheme}`);
		if (scheme === 'light') {
			const [download] = await Promise.all([page.waitForEvent('download'), row.locator('text=Save').click()]);
			assert.equal(download.suggestedFilename(), `${bad}-trace`);
			await row.locator('text=Try again').click();
			await row.filter({ hasText: 'Crashed' }).locator('td.num', { hasText: /^2$/ }).waitFor();
		}
		await page.context().close();
	}
	await s.stop();
	s.env = {};
	await s.start();
	const page = await watch(s, 'light');
	await page.goto(`${s.url}/quarantine`);
	await page.locator(`tr[data-poison="${bad}"] >> text=Try again`).click();
	await page.waitForSelector('text=It was decoded');
	await page.locator(`tr[data-poison="${bad}"]`).waitFor({ state: 'detached' });
	await page.locator(`tr[data-poison="${worse}"] >> text=Delete`).click();
	await page.click('dialog >> text=Keep');
	await page.locator(`tr[data-poison="${worse}"] >> text=Delete`).click();
	await page.click('dialog button.danger');
	await page.waitForSelector('text=The quarantine is empty');
	assert.equal((await s.get(`/api/v1/traces/${worse}`)).status, 404);
	assert.equal((await s.get(`/api/v1/traces/${bad}`)).json.state, 'ready');
	const noted = (await s.get('/api/v1/audit', { key: s.admin, query: { action: 'trace' } })).json.entries;
	assert.ok(noted.some((e) => e.action === 'trace.delete' && e.target === worse) && noted.some((e) => e.action === 'trace.requeue' && e.target === bad));
	await done(page, t);
});

test('an invalid stored rule is named where it is saved again, and by the health of the server', async (t) => {
	const s = await startServer(t, { args: ['--retention-every', '3600'] });
	await s.trace(sampleTrace(60));
	change(s, "INSERT INTO project_setting(project_id,key,value,updated_ms) SELECT project_id,'retention','{\"max_age',1 FROM project");
	const page = await watch(s, 'light');
	await navigate(page, 'Health');
	await page.locator('[data-problem="setting retention"]', { hasText: 'The stored setting retention is invalid: it is not JSON' }).getByRole('link', { name: 'Retention' }).click();
	await page.locator('#rules [role=alert]', { hasText: 'The stored setting is invalid: it is not JSON' }).waitFor();
	await page.waitForSelector('text=Traces are kept until they are deleted manually.');
	assert.deepEqual(await unreadable(page), []);
	await page.click('text="Save rules"');
	await page.waitForSelector('text=Saved. They apply from the next check.');
	await page.locator('#rules [role=alert]').waitFor({ state: 'detached' });
	await until(async () => ((await s.get('/api/v1/settings/invalid', { key: s.read })).json.settings.length === 0 ? true : undefined), 'valid again');
	assert.deepEqual(page.problems, []);
});
