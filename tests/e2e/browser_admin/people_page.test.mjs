/*
 * People in the page: accounts and roles as an admin gives them, signing in with a password, one's own
 * account; in light and dark.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { THEMES, navigate, unreadable } from '../browser.mjs';
import { browser, done, server, shots, watched } from '../page.mjs';
import { atEnd, tracewell } from '../server.mjs';

async function byLink(scheme) {
	const page = await watched(scheme);
	await page.goto(tracewell('link', 'create', '--data', server.data, '--url', server.url));
	await page.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
	return page;
}

async function signIn(page, name, password) {
	await page.goto(server.url + '/');
	await page.fill('input[name=name]', name);
	await page.fill('input[name=password]', password);
	await page.click('button.primary');
}

test('an admin makes accounts and gives roles, and they hold', async (t) => {
	const page = await byLink();
	await navigate(page, 'People');
	await page.waitForSelector('text=No accounts yet.');
	for (const name of ['ann', 'bob']) {
		await page.fill('input[name=account]', name);
		await page.fill('input[name=new-password]', `password of ${name}`);
		await page.click('button:has-text("Create the account")');
		await page.waitForSelector(`#accounts td:has-text("${name}")`);
	}
	assert.deepEqual(await page.locator('input[name=member]').evaluate((field) => [...field.list.options].map((o) => o.value)), ['ann', 'bob'], 'names that it proposes');
	await page.fill('input[name=member]', 'ann');
	await page.click('button:has-text("Grant the role")');
	await page.waitForSelector('#members td:has-text("ann")');
	await page.fill('input[name=member]', 'nobody');
	await page.click('button:has-text("Grant the role")');
	await page.waitForSelector('#members [role=alert]:has-text("no user of that name")');

	const ann = await watched();
	await signIn(ann, 'ann', 'a wrong one');
	await ann.waitForSelector('[role=alert]:has-text("the name or the password is wrong")');
	assert.equal(await ann.locator('input[name=password]').inputValue(), '');
	await signIn(ann, 'Ann', 'password of ann');
	await ann.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
	await navigate(ann, 'Traces');
	await ann.waitForSelector('td a');
	const pick = () => ann.locator('tr[data-trace] input[type=checkbox]').first().click();
	await pick();
	await ann.waitForSelector('.picked button:has-text("Export")');
	assert.equal(await ann.locator('.picked button:has-text("Delete")').count(), 0, 'a viewer is offered no deletion');
	assert.equal(await ann.locator('nav >> text=People').count(), 0);
	await page.selectOption('[aria-label="Role of ann"]', 'editor');
	await ann.waitForFunction(async () => (await (await fetch('/api/v1/session')).json()).scope === 'write');
	await ann.reload();
	await pick();
	await ann.waitForSelector('.picked button:has-text("Delete")');
	await page.click('[aria-label="Remove ann from the project"]');
	await page.click('text=Remove permanently');
	await page.waitForSelector('text=No members yet.');
	await ann.goto(server.url + '/');
	await ann.waitForSelector('text=You do not have a role in any project yet.');
	await done(ann, t);

	const bob = await watched();
	await signIn(bob, 'bob', 'password of bob');
	await bob.waitForSelector('text=You do not have a role in any project yet.');
	await Promise.all([page.waitForResponse((r) => r.request().method() !== 'GET' && r.ok()), page.click('[aria-label="bob is admin of the server"]')]);
	await page.waitForSelector('[aria-label="bob is admin of the server"]:checked');
	await signIn(bob, 'bob', 'password of bob');
	await bob.waitForSelector('nav >> text=People', { state: 'attached' });
	await bob.context().close();

	await page.click('[aria-label="Remove the account bob"]');
	await page.click('button:has-text("Keep")');
	await page.click('[aria-label="Change password of bob"]');
	await page.fill('[aria-label="New password of bob"]', 'battery staple');
	await page.click('text="Set"');
	await page.waitForSelector('[aria-label="Change password of bob"]');
	await page.click('[aria-label="Remove the account bob"]');
	await page.click('text=Remove permanently');
	await page.waitForSelector('#accounts td:has-text("bob")', { state: 'detached' });
	await done(page, t);
});

test('a viewer of an empty project sees how to get a first trace, but no upload controls', async (t) => {
	server.key('read', 'nothing');
	tracewell('user', 'role', 'ann', '--data', server.data, '--project', 'nothing', '--role', 'viewer');
	const page = await watched('light', 390);
	await signIn(page, 'ann', 'password of ann');
	await page.waitForSelector('nav[aria-label="Pages"]');
	await page.goto(`${server.url}/?project=nothing`);
	await page.getByText('Your role can only view traces.').waitFor();
	assert.equal(await page.locator('h1').innerText(), 'Traces');
	assert.equal(await page.locator('.dropzone, .start pre').count(), 0);
	await page.goto(`${server.url}/fleet/compare?project=nothing`);
	await page.getByText('No traces to compare yet.').waitFor();
	assert.equal(await page.locator('.versuspick').count(), 0, 'lists of choices without a choice');
	await page.goto(`${server.url}/builds?project=nothing`);
	await page.getByText('App frames', { exact: true }).waitFor();
	assert.equal(await page.locator('#frames button, #frames input:enabled').count(), 0);
	assert.deepEqual(await unreadable(page), []);
	await done(page, t);
});

test('a project is deleted once its name is typed, also the one that is shown', async (t) => {
	const page = await byLink();
	atEnd(t, () => page.context().close());
	const gone = (name) => page.waitForSelector(`button[aria-label="Delete project ${name}"]`, { state: 'detached' });
	await page.goto(`${server.url}/keys`);
	for (const name of ['old app', 'older app']) {
		await page.fill('label:has-text("New project") input', name);
		await page.keyboard.press('Enter');
		await page.waitForSelector(`button[aria-label="Delete project ${name}"]`);
	}
	await page.click('button[aria-label="Delete project old app"]');
	const button = page.locator('dialog button:has-text("Delete the project")');
	await page.waitForSelector('dialog input:focus');
	assert.ok(await button.isDisabled());
	await page.keyboard.type('Old app');
	assert.ok(await button.isDisabled(), 'the exact name');
	await page.keyboard.press('Control+A');
	await page.keyboard.type('old app');
	await page.keyboard.press('Enter');
	await gone('old app');
	await page.locator('td a', { hasText: /^older app$/ }).click();
	await page.waitForURL(/project=/);
	await page.waitForSelector('h1:has-text("Send a first trace")');
	await navigate(page, 'Projects and keys');
	await page.click('button[aria-label="Delete project older app"]');
	await page.waitForSelector('dialog input:focus');
	await page.keyboard.type('older app');
	await button.click();
	await gone('older app');
	await page.waitForSelector('h1:has-text("Projects and keys")');
	assert.deepEqual(await page.locator('[role=alert]').allTextContents(), []);
});

test("one's own password, and signing out everywhere", async (t) => {
	const admin = await byLink();
	const made = await admin.evaluate(async () => (await fetch('/api/v1/users', { method: 'POST', headers: { 'X-Tracewell': '1' },
		body: JSON.stringify({ name: 'eve', password: 'password of eve', admin: true }) })).status);
	assert.equal(made, 201);
	await admin.context().close();
	const page = await watched();
	const other = await watched();
	for (const p of [page, other]) {
		await signIn(p, 'eve', 'password of eve');
		await p.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
	}
	await page.click('header >> text=eve');
	const fields = page.locator('form.fields input[type=password]');
	await fields.nth(0).fill('a wrong one');
	await fields.nth(1).fill('battery staple');
	await fields.nth(2).fill('battery stapl');
	await page.waitForSelector('text=The passwords differ.');
	await fields.nth(2).fill('battery staple');
	await page.click('text=Change password');
	await page.waitForSelector('[role=alert]:has-text("the old password is wrong")');
	await fields.nth(0).fill('password of eve');
	await page.click('text=Change password');
	await page.waitForSelector('text=All other browsers are signed out.');
	await other.reload();
	await other.waitForSelector('h1:has-text("Sign in")');
	await page.click('text=Sign out everywhere');
	await page.waitForSelector('h1:has-text("Sign in")');
	await signIn(page, 'eve', 'battery staple');
	await page.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
	await other.context().close();
	await done(page, t);
});

test('titles are in one place on all pages of a wide window, below the name of the product', async (t) => {
	const page = await byLink();
	await page.setViewportSize({ width: 2560, height: 1440 });
	const left = (selector) => page.locator(selector).first().evaluate((e) => e.getBoundingClientRect().left);
	for (const at of ['/people', '/keys', '/audit', '/traces', '/inbox', '/regressions', '/']) {
		await page.goto(server.url + at);
		await page.waitForSelector('main h1');
		assert.equal(await left('main h1'), await left('.brand'), at);
	}
	await done(page, t);
});

test('the pages can be read, light and dark', async () => {
	for (const [scheme, width] of THEMES) {
		const page = await byLink(scheme);
		await page.setViewportSize({ width, height: 900 });
		await page.evaluate(() => fetch('/api/v1/users', { method: 'POST', headers: { 'X-Tracewell': '1' }, body: '{"name":"eve"}' }));
		await page.evaluate(() => fetch('/api/v1/members/eve', { method: 'PUT', headers: { 'X-Tracewell': '1' }, body: '{"role":"editor"}' }));
		await page.goto(server.url + '/people');
		await page.waitForSelector('#accounts td');
		await page.waitForSelector('#members td');
		assert.deepEqual(await unreadable(page), []);
		if (shots) await page.screenshot({ path: path.join(shots, `people-${scheme}-${width}.png`) });
		await page.click('button:has-text("Sign out")');
		await page.waitForSelector('h1:has-text("Sign in")');
		assert.deepEqual(await unreadable(page), []);
		if (shots) await page.screenshot({ path: path.join(shots, `signin-${scheme}-${width}.png`) });
		await page.context().close();
	}
	assert.ok(browser.isConnected());
});
