/*
 * From a method to its source, in the page: repositories set up, refused and tried by an admin; link,
 * owners and last changes at a regression, in the comparison of versions, at a method of the fleet and
 * in the workbench's menu; in light and dark.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { violations } from '../axe.mjs';
import { navigate, unreadable, tab } from '../browser.mjs';
import { dir, done, HOSTILE, open, openTrace, server, shots, watched } from '../page.mjs';
import { Repository } from '../repository.mjs';
import { tracewell } from '../server.mjs';
import { findSlower } from '../regressed_fleet.mjs';

const LOAD = 'com.app.Repo.load';
const FILE = 'app/src/main/java/com/app/Repo.kt';
let ids;

const repo = (lines) => `package com.app\n\nclass Repo {\n\tfun load(): Int {\n${lines.map((l) => `\t\t${l}\n`).join('')}\t}\n}\n`;

function makeClone() {
	const r = new Repository(path.join(dir, 'clones/test/app'));
	r.write('.github/CODEOWNERS', '* @shop/all\n/app/src/main/java/com/app/ @shop/data\n');
	r.write(FILE, repo(['return 1']));
	r.commit('Begin');
	r.git('tag', 'v8.3.0');
	r.write(FILE, repo(['Thread.sleep(1)', 'return 1']));
	const slow = r.commit('Wait for <b>it</b>', 'Bob');
	r.git('tag', 'v8.3.1');
	return { slow };
}

/* A sign-in link is for an admin. */
async function asAdmin(target, scheme, width) {
	const page = await watched(scheme, width);
	await page.goto(tracewell('link', 'create', '--data', server.data, '--url', server.url));
	await page.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
	await page.goto(server.url + target);
	return page;
}

const FACTS = `[aria-label=Source] >> a:has-text("${FILE}:4-7")`;

async function changes(page) {
	await page.getByRole('button', { name: 'Last changes between 8.3.0 and 8.3.1' }).click();
	await page.locator(`tr[data-commit="${ids.slow}"]`).getByText('Wait for <b>it</b>').waitFor();
	await page.locator(`tr[data-commit="${ids.slow}"]`).getByText('Bob').waitFor();
	await page.waitForSelector('text=The newest commit of the clone is');
}

test('an admin sets the location of the source, and tests it', async (t) => {
	ids = makeClone();
	const page = await asAdmin('/');
	await navigate(page, 'Source');
	await page.waitForSelector('text=No repositories yet');
	await page.click('text=Add a repository');
	await page.fill('form.rule [name=name]', 'app');
	await page.fill('form.rule [name=link]', 'javascript:alert(1)//{path}');
	await page.click('form.rule summary');
	await page.fill('form.rule [name=roots]', 'app/src/main/java');
	await page.click('form.rule button.primary');
	await page.waitForSelector('[role=alert] >> text=link begins with http');
	await page.fill('form.rule [name=link]', 'https://git.example.com/app/blob/{commit}/{path}#L{line}');
	await page.fill('form.rule [name=commit_link]', 'https://git.example.com/app/commit/{commit}');
	await page.fill('form.rule [name=clone]', 'app');
	await page.waitForSelector('text=Clones of this project are in the folder test');
	await page.click('form.rule button.primary');
	await page.waitForSelector('tr[data-repository=app]');
	await page.fill('#try [name=method]', LOAD);
	await page.fill('#try [name=version]', '8.3.1');
	await page.click('#try button');
	await page.waitForSelector(`#try a:has-text("${FILE}:4-7")`);
	assert.equal(await page.locator('#try a').getAttribute('href'), `https://git.example.com/app/blob/${ids.slow}/${FILE}#L4`);
	await page.waitForSelector('#try >> text=@shop/data');
	await page.fill('#try [name=version]', '9');
	await page.click('#try button');
	await page.waitForSelector('#try >> text=The clone has no tag, branch or commit v9');
	assert.deepEqual(await unreadable(page), []);
	await done(page, t);
});

test('a regression lists its owners and the commits that changed its lines', async (t) => {
	const found = await findSlower(server);
	const page = await asAdmin(`/regressions?open=${found.id}`);
	await page.waitForSelector(FACTS);
	await page.waitForSelector('text=not set; CODEOWNERS names @shop/data');
	await changes(page);
	assert.equal(await page.inputValue('[name=owner]'), '', 'suggested, not set');
	await page.getByRole('button', { name: 'Use as owner' }).click();
	assert.equal(await page.inputValue('[name=owner]'), '@shop/data');
	await page.click('[aria-label="Actions"] button.primary');
	await page.locator('tr[data-regression]').getByText('@shop/data').waitFor();
	await done(page, t);
});

test('the comparison of two versions has it at each method, the fleet at one', async (t) => {
	const page = await open(`/fleet/compare?${new URLSearchParams({ a: '8.3.0', b: '8.3.1', app: 'shop', scenario: 'slower', method: LOAD })}`);
	await page.waitForSelector(FACTS);
	await changes(page);
	assert.deepEqual(await unreadable(page), []);
	await page.goto(`${server.url}/fleet/methods?${new URLSearchParams({ method: LOAD, version_name: '8.3.1' })}`);
	await page.waitForSelector(FACTS);
	await page.getByRole('button', { name: 'Last changes up to 8.3.1' }).click();
	await page.locator(`tr[data-commit="${ids.slow}"]`).waitFor();
	await done(page, t);
});

test('the menu of a method links to its source, or explains why it cannot', async (t) => {
	const page = await openTrace('?tab=methods');
	const rows = page.locator('table.methods tbody tr');
	await rows.filter({ hasNotText: HOSTILE }).filter({ hasText: 'com.' }).first().click({ button: 'right' });
	await page.getByRole('menuitem', { name: 'Source' }).click();
	await page.waitForSelector('dialog[open] >> text=from package and class');
	await page.waitForSelector('dialog[open] >> text=/No file of that commit declares|The clone has no tag/');
	assert.deepEqual(await violations(page), []);
	await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
	await page.waitForSelector('dialog[open]', { state: 'detached' });
	await rows.filter({ hasText: HOSTILE }).first().click({ button: 'right' });
	await page.getByRole('menuitem', { name: 'Source' }).click();
	await page.waitForSelector('dialog[open] >> text=Not a Java or Kotlin method');
	await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
	await page.waitForSelector('dialog[open]', { state: 'detached' });
	await done(page, t);
});

for (const [scheme, width] of [['light', 1280], ['dark', 1920]])
	test(`the page of repositories and a regression can be read and used by all, ${scheme}, ${width}`, async (t) => {
		const page = await asAdmin('/source', scheme, width);
		await page.click('[aria-label="Edit app"]');
		await page.waitForSelector('form.rule');
		if (shots) await page.screenshot({ path: path.join(shots, `source-${scheme}.png`), fullPage: true });
		assert.deepEqual(await unreadable(page), []);
		assert.deepEqual(await violations(page), []);
		await page.goto(`${server.url}/regressions?status=all`);
		await page.locator(`tr[data-regression]:has-text("${LOAD}") button`).click();
		await page.waitForSelector(FACTS);
		await changes(page);
		if (shots) await page.screenshot({ path: path.join(shots, `source-regression-${scheme}.png`), fullPage: true });
		assert.deepEqual(await unreadable(page), []);
		assert.deepEqual(await violations(page), []);
		await done(page, t);
	});

test('without a link template the file leads to the page that sets it', async (t) => {
	const { json } = await server.get('/api/v1/source/repositories');
	const put = (link) => server.ask('PUT', '/api/v1/source/repositories', { key: server.admin, body: JSON.stringify({ repositories: json.repositories.map((r) => ({ ...r, link })) }) });
	assert.equal((await put('')).status, 200);
	const page = await open(`/fleet/methods?${new URLSearchParams({ method: LOAD, version_name: '8.3.1' })}`);
	await page.locator('[aria-label=Source]', { hasText: `${FILE}:4-7` }).getByRole('link', { name: 'Set a link to this file' }).click();
	await page.waitForSelector('tr[data-repository=app]');
	assert.equal((await put(json.repositories[0].link)).status, 200);
	await done(page, t);
});

test('who may only look sees repositories and no way to change them', async (t) => {
	const page = await open('/source');
	await page.waitForSelector('tr[data-repository=app]');
	assert.equal(await page.locator('text=/Add a repository|Edit|Remove/').count(), 0);
	await done(page, t);
});
