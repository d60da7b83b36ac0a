/*
 * The pages around traces: the list, its filters, columns and picked rows; builds; keys; a first trace.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { copied, navigate, settled, unreadable } from '../browser.mjs';
import { btrace } from '../make.mjs';
import { dir, done, HOSTILE, server, watched } from '../page.mjs';
import { startServer, tracewell, until } from '../server.mjs';

const small = (n) => btrace(Array.from({ length: n }, (_, i) => [4000, i % 7, i * 1000, 900]));
const DEVICES = ['Pixel 8', 'SM-S911B', HOSTILE];
let ids;

/* Twelve small traces of a project of their own: three devices, two scenarios, sizes that differ. */
async function fill() {
	if (ids) return;
	const made = [];
	for (let i = 0; i < 12; i++)
		made.push(await upload(50 + i, { app: 'com.acme.lists', version_name: `1.${i}`, device: DEVICES[i % 3], os: `1${i % 2}`, scenario: i % 2 ? 'scroll' : 'cold start', build_id: 'b#1 ?' }));
	ids = made;
}

/* A trace of the project, decoded; its id. */
async function upload(calls, query) {
	const { json } = await server.post('/api/v1/traces', small(calls), { key: server.key('ingest', 'lists'), query });
	await until(async () => ((await get(json.id)).json.state === 'ready' ? true : undefined), `trace ${json.id}`);
	return json.id;
}

const project = async () => (await adminJson('/api/v1/projects')).projects.find((p) => p.name === 'lists').id;
let admin;
async function adminJson(target) {
	if (!admin) {
		const answer = await server.ask('POST', '/api/v1/session', { key: null, body: JSON.stringify({ token: tracewell('link', 'create', '--data', server.data).split('#')[1] }) });
		admin = answer.headers.get('set-cookie').split(';')[0];
	}
	return (await server.get(target, { key: null, headers: { Cookie: admin } })).json;
}

/* A page signed in as an admin, at an address in the project of this file. */
async function openList(query = {}, target = '/traces', scheme = 'light', width = 1280) {
	await fill();
	const page = await watched(scheme, width);
	await page.goto(tracewell('link', 'create', '--data', server.data, '--url', server.url));
	await page.waitForSelector('nav[aria-label="Pages"]');
	await page.goto(`${server.url}${target}?${new URLSearchParams({ project: await project(), ...query })}`);
	await page.waitForSelector(target === '/traces' ? 'tr[data-trace]' : 'table');
	return page;
}

const shown = (page) => page.locator('tr[data-trace]').evaluateAll((rows) => rows.map((r) => r.dataset.trace));
const gets = (page, wanted) => page.waitForFunction((w) => JSON.stringify([...document.querySelectorAll('tr[data-trace]')].map((r) => r.dataset.trace).sort()) === w, JSON.stringify([...wanted].sort()));
const bar = (page) => page.getByRole('region', { name: 'Selected traces' });
let reader;
const get = (id) => server.get(`/api/v1/traces/${id}`, { key: (reader ??= server.key('read', 'lists')) });

test('every filter of the server, in the address', async (t) => {
	const page = await openList();
	await page.getByLabel('Scenario').selectOption('scroll');
	await gets(page, ids.filter((_, i) => i % 2));
	await page.getByLabel('Device').selectOption(HOSTILE);
	await gets(page, ids.filter((_, i) => i % 6 === 5));
	await settled(page);
	await page.reload();
	await gets(page, ids.filter((_, i) => i % 6 === 5));
	await page.getByRole('button', { name: 'Clear', exact: true }).click();
	await gets(page, ids);
	await page.getByRole('button', { name: 'More filters' }).click();
	await page.getByLabel('OS').selectOption('11');
	await gets(page, ids.filter((_, i) => i % 2));
	await page.getByLabel('OS').selectOption('');
	await page.getByLabel('Build').selectOption('b#1 ?');
	await gets(page, ids);
	const today = new Date(Date.now() - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
	await page.getByLabel('From').fill(today);
	await page.getByLabel('To', { exact: true }).fill(today);
	await gets(page, ids);
	await page.getByLabel('To', { exact: true }).fill('2020-01-01');
	await page.getByText('No traces match these filters.').waitFor();
	assert.deepEqual(await unreadable(page), []);
	await page.getByRole('button', { name: 'Show all traces' }).click();
	await gets(page, ids);
	await page.getByLabel('Search').fill('1.11');
	await gets(page, [ids[11]]);
	await page.goBack().catch(() => undefined);
	await done(page, t);
});

test('labels, sessions, version codes, ABI and days of recording, in the address', async (t) => {
	await fill();
	const day = new Date().setUTCHours(12, 0, 0, 0) - 10 * 86400000; // a later upload counts on its arrival day
	const date = (i) => new Date(day + i * 86400000).toISOString().slice(0, 10);
	const made = [];
	for (let i = 0; i < 4; i++)
		made.push(await upload(90 + i, { app: 'com.acme.filters', version_code: `${804 + i}`, abi: i ? 'arm64-v8a' : 'x86', session_id: `s-${i >> 1}`, started_at: `${day + i * 86400000}`, labels: JSON.stringify({ user: `u,${i % 2}`, [HOSTILE]: HOSTILE, beta: i > 1 }) }));
	const reported = (...which) => which.map((i) => made[i]);
	const page = await openList({ app: 'com.acme.filters', more: '1' });
	await gets(page, made);
	const label = page.getByLabel('Label', { exact: true });
	const add = async (text) => {
		await label.click();
		await page.keyboard.type(text);
		await page.keyboard.press('Enter');
	};
	assert.ok((await page.locator('#known-labels option').evaluateAll((all) => all.map((o) => o.value))).includes(`${HOSTILE}=${HOSTILE}`), 'suggested');
	await add('user=u,1');
	await gets(page, reported(1, 3));
	await add('beta=true');
	await gets(page, reported(3));
	await settled(page);
	assert.deepEqual(new URL(page.url()).searchParams.getAll('label'), ['user=u,1', 'beta=true']);
	await page.reload();
	await gets(page, reported(3));
	await page.getByRole('button', { name: 'Without the label user=u,1' }).click();
	await gets(page, reported(2, 3));
	await add(`${HOSTILE}=${HOSTILE}`);
	await gets(page, reported(2, 3));
	await page.getByRole('button', { name: 'Save this list' }).click();
	await page.getByLabel('Name of this list').pressSequentially('beta');
	await page.keyboard.press('Enter');
	await page.getByRole('button', { name: 'beta', exact: true }).waitFor();
	await page.getByRole('button', { name: 'Clear', exact: true }).click();
	await gets(page, [...ids, ...made]);
	await page.getByRole('button', { name: 'beta', exact: true }).click();
	await gets(page, reported(2, 3));
	await page.getByRole('button', { name: 'Delete the saved list beta' }).click();
	await page.getByRole('button', { name: 'Without the label beta=true' }).click();
	await page.getByRole('button', { name: `Without the label ${HOSTILE}=${HOSTILE}` }).click();
	await gets(page, made);
	await label.click();
	await page.keyboard.type('user');
	assert.ok(await page.getByRole('button', { name: 'Filter', exact: true }).isDisabled(), 'no key=value');
	await label.fill('');
	const type = async (name, text) => {
		await page.getByLabel(name, { exact: true }).click();
		await page.keyboard.press('Control+A');
		await page.keyboard.type(text);
		await page.keyboard.press('Enter');
	};
	await type('Session', 's-1');
	await gets(page, reported(2, 3));
	await type('Session', ' ');
	await type('Lowest version code', '805');
	await gets(page, reported(1, 2, 3));
	await type('Highest version code', '806');
	await gets(page, reported(1, 2));
	await page.getByLabel('Lowest version code', { exact: true }).fill('');
	await page.keyboard.press('Enter');
	await page.getByLabel('Highest version code', { exact: true }).fill('');
	await page.keyboard.press('Enter');
	await page.getByLabel('ABI').selectOption('x86');
	await gets(page, reported(0));
	await page.getByLabel('ABI').selectOption('');
	await page.getByLabel(/^Version code/).selectOption('807');
	await gets(page, reported(3));
	await page.getByLabel(/^Version code/).selectOption('');
	await page.getByLabel('Recorded since', { exact: true }).fill(date(1));
	await page.getByLabel('Recorded until', { exact: true }).fill(date(2));
	await gets(page, reported(1, 2));
	assert.deepEqual(await unreadable(page), []);
	for (const id of made) await server.ask('DELETE', `/api/v1/traces/${id}`, { key: server.key('write', 'lists') });
	await done(page, t);
});

test('columns are chosen, stored and shared', async (t) => {
	const page = await openList();
	const heads = () => page.locator('table.traces thead th').allInnerTexts();
	const headsAre = (list) => page.waitForFunction((w) => JSON.stringify([...document.querySelectorAll('table.traces thead th')].map((e) => e.innerText)) === w, JSON.stringify(list));
	const before = await heads();
	assert.ok(before.includes('Version') && !before.includes('Format'));
	await page.getByRole('button', { name: 'Columns' }).click();
	await page.getByLabel('Format', { exact: true }).check();
	await page.getByLabel('Version', { exact: true }).uncheck();
	await page.keyboard.press('Escape');
	assert.ok(await page.getByRole('button', { name: 'Columns' }).evaluate((e) => e === document.activeElement));
	const after = await heads();
	assert.ok(after.includes('Format') && !after.includes('Version'), after.join());
	assert.ok((await page.locator('tr[data-trace]').first().innerText()).includes('btrace2'));
	assert.ok(new URL(page.url()).searchParams.get('cols').includes('format'), 'a link shows the same columns');
	await page.goto(`${server.url}/traces?project=${await project()}`);
	await page.waitForSelector('tr[data-trace]');
	await headsAre(after); // this browser remembers
	await page.getByRole('button', { name: 'Columns' }).click();
	await page.getByRole('button', { name: 'Reset columns' }).click();
	await headsAre(before);
	await done(page, t);
});

test('lists are sorted and paged', async (t) => {
	const page = await openList();
	const size = (h) => page.locator('table.traces thead').getByRole('button', { name: h });
	await size('Calls, samples').click();
	await page.waitForFunction((first) => document.querySelector('tr[data-trace]').dataset.trace === first, ids[11]);
	await size('Calls, samples').click();
	await page.waitForFunction((first) => document.querySelector('tr[data-trace]').dataset.trace === first, ids[0]);
	assert.equal(await page.locator('th[aria-sort="ascending"]').innerText(), 'Calls, samples ↑');
	await settled(page);
	/* a page of five, as if there were hundreds */
	await page.route('**/api/v1/traces?*', (r) => r.continue({ url: r.request().url().replace('limit=50', 'limit=5') }));
	await page.reload();
	await gets(page, ids.slice(0, 5));
	await page.getByText('1 to 5 of 12').waitFor();
	await page.getByRole('button', { name: 'Next' }).click();
	await gets(page, ids.slice(5, 10));
	await page.reload();
	await gets(page, ids.slice(5, 10));
	await page.getByRole('button', { name: 'Next' }).click();
	await page.getByText('11 to 12 of 12').waitFor();
	assert.ok(await page.getByRole('button', { name: 'Next' }).isDisabled());
	await page.getByRole('button', { name: 'Back' }).click();
	await gets(page, ids.slice(5, 10));
	await page.getByRole('button', { name: 'First' }).click();
	await gets(page, ids.slice(0, 5));
	await page.getByRole('button', { name: 'Next' }).click();
	await gets(page, ids.slice(5, 10));
	await settled(page);
	const shared = await page.context().newPage();
	await shared.route('**/api/v1/traces?*', (r) => r.continue({ url: r.request().url().replace('limit=50', 'limit=5') }));
	await shared.goto(page.url());
	await gets(shared, ids.slice(5, 10));
	await shared.getByRole('button', { name: 'Back' }).click();
	await gets(shared, ids.slice(0, 5));
	await shared.close();
	await page.getByRole('button', { name: 'Back' }).click();
	await gets(page, ids.slice(0, 5));
	let release;
	const held = new Promise((go) => (release = go));
	await page.route(/api\/v1\/traces\?.*cursor=/, async (r) => { await held; await r.fallback(); });
	for (const _ of [1, 2]) await page.keyboard.press('n');
	release();
	await gets(page, ids.slice(5, 10));
	await page.getByText('6 to 10 of 12').waitFor(); // the second n came before the page of the first
	await done(page, t);
});

test('rows by keyboard: j, k, x, X, Enter, #, Escape', async (t) => {
	const page = await openList({ sort: 'slices', order: 'asc' });
	for (const k of ['j', 'j', 'j', 'k', 'x']) await page.keyboard.press(k);
	assert.equal(await page.evaluate(() => document.activeElement.closest('tr').dataset.trace), ids[1]);
	await bar(page).getByText('1 trace selected').waitFor();
	for (const k of ['j', 'j', 'Shift+X']) await page.keyboard.press(k);
	await bar(page).getByText('3 traces selected').waitFor();
	await page.keyboard.press('#');
	const dialog = page.getByRole('dialog');
	await dialog.getByText('Delete 3 traces?').waitFor();
	assert.ok(await dialog.getByRole('button', { name: 'Keep' }).evaluate((e) => e === document.activeElement), 'the safe answer has the focus');
	await page.keyboard.press('Escape');
	await dialog.waitFor({ state: 'detached' });
	await page.keyboard.press('Escape');
	await bar(page).waitFor({ state: 'detached' });
	await page.keyboard.press('?');
	await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).getByText('next, previous trace').waitFor();
	const keys = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
	assert.equal(await keys.getByText('zoom in, zoom out').isVisible(), false, 'of this page first');
	await keys.getByText('Other pages').click();
	await keys.getByText('zoom in, zoom out').waitFor();
	await page.keyboard.press('Escape');
	await page.getByLabel('Search').click();
	await page.keyboard.type('jx');
	assert.equal(await page.getByLabel('Search').inputValue(), 'jx', 'letters are letters in a field');
	await page.getByLabel('Search').fill('');
	await gets(page, ids);
	await settled(page); // the typed text may still be searched for, and removed rows lose the focus
	await page.getByLabel('Search').blur();
	await page.keyboard.press('j');
	await page.keyboard.press('Enter');
	await page.waitForURL(`**/traces/${ids[0]}*`);
	await page.waitForSelector('[data-ready]');
	await done(page, t);
});

test('several traces: one file, exports, pins and tags', async (t) => {
	const page = await openList({ sort: 'slices', order: 'asc' });
	const pick = (i) => page.locator(`tr[data-trace="${ids[i]}"] input[type=checkbox]`).click();
	await pick(0);
	assert.ok(await bar(page).getByRole('button', { name: 'Merge into one file' }).isDisabled(), 'one is nothing to merge');
	await pick(1);
	const file = page.waitForEvent('download');
	await bar(page).getByRole('button', { name: 'Merge into one file' }).click();
	const merged = await file;
	assert.match(merged.suggestedFilename(), /^merge/); /* a browser may report this before it has read the sent name */
	const bytes = fs.readFileSync(await merged.path());
	assert.ok(bytes.length > 100 && bytes[0] === 0x0a, bytes.toString('latin1', 0, 200)); /* a packet */

	const files = [];
	page.on('download', (d) => files.push(d));
	await bar(page).getByRole('button', { name: 'Export' }).click();
	await page.getByRole('button', { name: 'Methods as CSV' }).click();
	await until(() => (files.length === 2 ? true : undefined), 'two downloads');
	for (const f of files) assert.match(fs.readFileSync(await f.path(), 'utf8'), /^name,count,self_ns/);

	await bar(page).getByRole('button', { name: 'Pin', exact: true }).click();
	await bar(page).getByRole('button', { name: 'Unpin' }).waitFor();
	assert.equal(await page.locator('[aria-label=pinned]').count(), 2);
	await bar(page).getByRole('button', { name: 'Tags' }).click();
	await page.getByLabel('Add', { exact: true }).fill(HOSTILE);
	await page.keyboard.press('Enter');
	await page.locator(`tr[data-trace="${ids[0]}"] a.tag`).getByText(HOSTILE).waitFor();
	await page.locator(`tr[data-trace="${ids[1]}"] a.tag`).getByText(HOSTILE).waitFor();
	assert.deepEqual((await get(ids[0])).json.tags, [HOSTILE]);
	await page.locator(`tr[data-trace="${ids[1]}"] a.tag`).click();
	await gets(page, [ids[0], ids[1]]);
	assert.equal(new URL(page.url()).searchParams.get('tag'), HOSTILE);
	await bar(page).getByRole('button', { name: 'Tags' }).click();
	await page.getByRole('button', { name: `Remove the tag ${HOSTILE}` }).click();
	await page.getByText('No traces match these filters.').waitFor();
	assert.deepEqual(await unreadable(page), []);
	await done(page, t);
});

test('refusals of a merge are explained', async (t) => {
	const page = await openList({ sort: 'slices', order: 'asc' });
	await page.locator(`tr[data-trace="${ids[0]}"] input[type=checkbox]`).click();
	await page.locator(`tr.is-picked[data-trace="${ids[0]}"]`).waitFor();
	assert.ok(await page.locator(`tr[data-trace="${ids[0]}"] input[type=checkbox]`).isChecked(), 'the box says so, too');
	await page.locator(`tr[data-trace="${ids[1]}"] input[type=checkbox]`).click();
	await page.route('**/api/v1/merge?*', (r) => r.continue({ url: r.request().url().replace(ids[1], '01ARZ3NDEKTSV4RRFFQ69G5FAV') }));
	await bar(page).getByRole('button', { name: 'Merge into one file' }).click();
	await bar(page).getByRole('alert').getByText('no such trace').waitFor();
	await done(page, t);
});

test('traces are deleted after a confirmation that lists them', async (t) => {
	const extra = [];
	for (let i = 0; i < 3; i++) extra.push(await upload(200 + i, { app: 'com.acme.extra' }));
	const write = server.key('write', 'lists');
	await server.ask('PATCH', `/api/v1/traces/${extra[0]}`, { key: write, body: JSON.stringify({ pinned: true, title: 'The one we kept' }) });
	await server.ask('POST', `/api/v1/traces/${extra[0]}/annotations`, { key: write, body: JSON.stringify({ text: 'x', ts_ns: 1 }) });
	const page = await openList({ app: 'com.acme.extra' });
	await gets(page, extra);
	await page.getByLabel('Select all on this page').check();
	await bar(page).getByRole('button', { name: 'Delete' }).click();
	const dialog = page.getByRole('dialog');
	const says = await dialog.innerText();
	for (const part of ['Delete 3 traces?', 'The one we kept', 'uploads', '1 annotation is deleted', '1 of them is pinned', 'mappings are kept']) assert.ok(says.includes(part), `${part}: ${says}`);
	assert.deepEqual(await unreadable(page), []);
	await dialog.getByRole('button', { name: 'Keep' }).click();
	assert.equal((await get(extra[0])).status, 200);
	/* one was deleted by another user: reported, and the rest can continue */
	await server.ask('DELETE', `/api/v1/traces/${extra[1]}`, { key: write });
	await bar(page).getByRole('button', { name: 'Delete' }).click();
	await dialog.getByRole('button', { name: 'Delete permanently' }).click();
	await dialog.getByRole('alert').waitFor();
	assert.match(await dialog.getByRole('alert').innerText(), /no such trace/i);
	await dialog.getByRole('button', { name: 'Keep' }).click();
	await bar(page).getByRole('button', { name: 'Clear' }).click();
	await page.reload();
	await page.waitForSelector('tr[data-trace], .notice');
	if (await page.getByLabel('Select all on this page').count()) {
		await page.getByLabel('Select all on this page').check();
		await bar(page).getByRole('button', { name: 'Delete' }).click();
		await dialog.getByRole('button', { name: 'Delete permanently' }).click();
	}
	await page.getByText('No traces match these filters.').waitFor();
	for (const id of extra) assert.equal((await get(id)).status, 404);
	await done(page, t);
});

test('a list is saved by a name, for everybody, and forgotten', async (t) => {
	const page = await openList({ scenario: 'scroll', sort: 'slices', cols: 'version,state' });
	await page.getByRole('button', { name: 'Save this list' }).click();
	await page.getByLabel('Name of this list').fill(HOSTILE);
	await page.getByRole('button', { name: 'Save', exact: true }).click();
	const saved = page.getByRole('group', { name: 'Saved lists' });
	const one = saved.getByRole('button', { name: HOSTILE, exact: true });
	await one.waitFor();
	assert.equal(await one.getAttribute('aria-pressed'), 'true');
	await done(page, t);

	const other = await openList();
	await gets(other, ids);
	await other.getByRole('group', { name: 'Saved lists' }).getByRole('button', { name: HOSTILE, exact: true }).click();
	await gets(other, ids.filter((_, i) => i % 2));
	assert.deepEqual((await other.locator('table.traces thead th').allInnerTexts()).slice(1), ['Trace', 'Version', 'State']);
	await other.goBack();
	await gets(other, ids);
	await other.getByRole('button', { name: `Delete the saved list ${HOSTILE}` }).click();
	await other.getByRole('group', { name: 'Saved lists' }).waitFor({ state: 'detached' });
	await done(other, t);
});

test('who may only look is offered nothing else', async (t) => {
	const page = await watched();
	await page.goto(server.url);
	await page.click('summary:has-text("With a key")');
	await page.fill('input[name=token]', server.key('read', 'lists'));
	await page.click('text=Sign in with the key');
	await navigate(page, 'Traces');
	await page.locator('tr[data-trace] input[type=checkbox]').first().click();
	await bar(page).getByRole('button', { name: 'Export' }).waitFor();
	for (const name of ['Delete', 'Pin', 'Tags']) assert.equal(await bar(page).getByRole('button', { name, exact: true }).count(), 0, name);
	await page.keyboard.press('#');
	assert.equal(await page.getByRole('dialog').count(), 0);
	await navigate(page, 'Projects and keys');
	await page.getByText('Only project admins can see keys.').waitFor();
	await done(page, t);
});

test('a list that does not come, and one that stops coming', async (t) => {
	const page = await openList();
	await page.route('**/api/v1/traces?*', (r) => r.abort());
	await page.getByLabel('Scenario').selectOption('scroll');
	await page.getByRole('alert').getByText('The server is not responding').first().waitFor();
	assert.ok((await shown(page)).length > 0, 'what was there stays');
	assert.deepEqual(await unreadable(page), []);
	await page.getByRole('button', { name: 'Try again' }).click();
	await page.unroute('**/api/v1/traces?*'); // from here on the page may recover by itself
	await gets(page, ids.filter((_, i) => i % 2));
	assert.equal(await page.getByRole('alert').count(), 0);
	await done(page, t);
});

test('builds: their mappings, waiting traces, and a command that works unchanged', async (t) => {
	const page = await openList({}, '/builds');
	const row = page.locator('tr[data-build="b#1 ?"]');
	await page.getByText('Method names are missing in 12 traces of 1 build').waitFor();
	assert.match(await row.innerText(), /missing/);
	assert.match(await row.innerText(), /12\s+12\s+0 %/);
	await row.getByRole('button', { name: 'How to send' }).click();
	await page.getByText('Method names are missing in 12 traces of this build. Send its methodMapping.txt').waitFor();
	assert.equal(new URL(page.url()).searchParams.get('build'), 'b#1 ?');
	await page.getByRole('button', { name: 'Create an ingest key and fill it in' }).click();
	const command = page.locator('.instructions pre').first();
	await page.waitForFunction(() => /^KEY=twi_/.test(document.querySelector('.instructions pre').textContent));
	/* the text pasted into a shell, in a folder with the mapping */
	const folder = fs.mkdtempSync(path.join(dir, 'paste-'));
	fs.writeFileSync(path.join(folder, 'methodMapping.txt'), Array.from({ length: 7 }, (_, i) => `${i},1,com.acme.Lists m${i} ()V`).join('\n'));
	const { execFileSync } = await import('node:child_process');
	const said = JSON.parse(execFileSync('bash', ['-ec', (await command.innerText()).replaceAll('curl ', 'curl -sS ')], { cwd: folder, encoding: 'utf8' }));
	assert.equal(said.build_id, 'b#1 ?');
	await until(async () => {
		await page.getByRole('button', { name: 'Refresh' }).click();
		await settled(page);
		return /100 %/.test(await row.innerText()) ? true : undefined;
	}, 'all ids named', 20);
	assert.match(await row.innerText(), /present/);
	await page.getByText('All ids of its traces have names.').waitFor();
	assert.deepEqual(await unreadable(page), []);
	await done(page, t);
});

test('a page of builds that was opened from a bookmark leads back to the first', async (t) => {
	const key = server.key('ingest', 'lists');
	for (const build of ['pages-1', 'pages-2']) await server.put(`/api/v1/builds/${build}/methods`, '1,1,p.Main run ()V\n', { key });
	const page = await openList({}, '/builds');
	await page.route(/\/api\/v1\/builds(\?|$)/, (r) => r.continue({ url: `${r.request().url()}${r.request().url().includes('?') ? '&' : '?'}limit=1` }));
	const first = () => page.locator('tr[data-build]').getAttribute('data-build');
	await page.reload();
	await page.getByText('1 to 1').waitFor();
	const newest = await first();
	await page.getByRole('button', { name: 'Next' }).click();
	await page.waitForFunction((name) => document.querySelector('tr[data-build]').dataset.build !== name, newest);
	await page.getByText('2 to 2').waitFor();
	await settled(page);
	const bookmark = page.url();
	await page.goto('about:blank');
	await page.goto(bookmark);
	await page.getByText('2 to 2').waitFor();
	assert.notEqual(await first(), newest);
	await page.getByRole('button', { name: 'Back' }).click();
	await page.waitForSelector(`tr[data-build="${newest}"]`);
	assert.equal(new URL(page.url()).pathname, '/builds');
	await done(page, t);
});

test('keys: made and shown once, rotated, revoked', async (t) => {
	const page = await openList({}, '/keys', 'dark');
	const panel = page.getByRole('region', { name: 'Keys of this project' });
	const make = async () => {
		await panel.getByLabel('Name', { exact: true }).fill(HOSTILE);
		await panel.getByRole('button', { name: 'Create a key' }).click();
		await panel.getByText('It is shown only once').waitFor();
		return copied(page, () => panel.getByRole('button', { name: 'Copy the key' }).click());
	};
	const first = await make();
	assert.match(first, /^twi_/);
	assert.equal((await server.post('/api/v1/traces', small(3), { key: first })).status, 202);
	assert.deepEqual(await unreadable(page), []);
	await page.reload();
	const rows = panel.locator('tr[data-key]').filter({ hasText: HOSTILE });
	await rows.first().waitFor();
	assert.ok(!(await page.content()).includes(first), 'it is shown once');
	assert.ok(!/never/.test(await rows.first().innerText()), 'it was seen');

	await rows.first().getByRole('button', { name: /^Rotate/ }).click();
	await page.getByLabel('Old secret works for').selectOption('an hour');
	await page.getByRole('button', { name: 'Create the new secret' }).click();
	await panel.getByText('It is shown only once').waitFor();
	const second = await panel.locator('.notice.good pre').innerText();
	assert.notEqual(second, first);
	assert.equal((await server.post('/api/v1/traces', small(5), { key: second })).status, 202);
	await rows.first().getByText(/old secret until .*, not used since/).waitFor();
	assert.equal((await server.post('/api/v1/traces', small(4), { key: first })).status, 202, 'the old one works on');
	await page.reload();
	await rows.first().getByText(/old secret until .*, still used/).waitFor();
	assert.match(await rows.first().innerText(), /from 127\.0\.0\.1/);
	assert.deepEqual(await unreadable(page), []);
	await rows.first().getByRole('button', { name: /^Revoke/ }).click();
	await page.getByRole('dialog').getByText('It was last seen').waitFor();
	await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
	await panel.getByText(/^revoked/).first().waitFor();
	for (const key of [first, second]) assert.equal((await server.post('/api/v1/traces', small(5), { key })).status, 401);
	await panel.getByLabel('Valid').selectOption('90 days');
	await panel.getByLabel('Name', { exact: true }).fill('ends');
	await panel.getByRole('button', { name: 'Create a key' }).click();
	await panel.locator('tr[data-key]').filter({ hasText: 'ends 20' }).waitFor();
	await done(page, t);
});

test('an empty server: three commands, a key, and it turns green', async (t) => {
	const s = await startServer(t);
	const page = await watched();
	page.removeAllListeners('request'); // another server than the one that is watched
	await page.goto(tracewell('link', 'create', '--data', s.data, '--url', s.url));
	await page.getByRole('heading', { name: 'Send a first trace' }).waitFor();
	await page.waitForSelector('[data-arrival="waiting"]');
	for (const scheme of ['light', 'dark']) {
		await page.emulateMedia({ colorScheme: scheme });
		assert.deepEqual(await unreadable(page), []);
	}
	assert.ok((await page.locator('.start pre').nth(2).innerText()).includes(s.url));
	await page.getByRole('button', { name: 'Create an ingest key and fill it in' }).click();
	await page.waitForFunction(() => /^KEY=twi_/.test(document.querySelector('.start pre').textContent));
	const commands = await page.locator('.start .command pre').allInnerTexts();
	const paste = [commands[0], ...commands.filter((c) => c.startsWith('curl'))].join('\n').replaceAll('curl ', 'curl -sS ');
	const folder = fs.mkdtempSync(path.join(dir, 'first-'));
	for (const f of ['methodMapping.txt', 'rhea-atrace.bin']) fs.copyFileSync(path.join(dir, f), path.join(folder, f));
	const { execFileSync } = await import('node:child_process');
	execFileSync('bash', ['-ec', paste], { cwd: folder });
	await page.waitForSelector('[data-arrival="ready"]');
	await page.getByText('The first trace is ready.').waitFor();
	assert.ok(await page.locator('.arrival').evaluate((e) => e.classList.contains('good')));
	assert.deepEqual(await page.locator('.arrival li').evaluateAll((l) => l.map((e) => e.className)), ['done', 'done', 'done']);
	await page.getByRole('link', { name: /^Open / }).click();
	await page.waitForSelector('[data-ready]');
	assert.deepEqual(page.problems, []);
	await page.context().close();
});

test('the first trace shows its progress', async (t) => {
	const page = await watched();
	await page.goto(tracewell('link', 'create', '--data', server.data, '--url', server.url));
	await page.waitForSelector('nav[aria-label="Pages"]');
	const real = (await get(ids[0])).json;
	let state = null;
	await page.route('**/api/v1/traces?*', (r) => r.fulfill({ json: { traces: state ? [{ ...real, state, summary: null, error: state === 'failed' ? { status: 'corrupt', message: HOSTILE, offset: 1 } : null }] : [], total: state ? 1 : 0, next_cursor: null } }));
	await page.goto(`${server.url}/?project=${await project()}`);
	await page.waitForSelector('[data-arrival="waiting"]');
	for (const [next, words] of [['queued', 'queued for decoding'], ['decoding', 'being decoded'], ['failed', 'could not be decoded']]) {
		state = next;
		await page.waitForSelector(`[data-arrival="${next}"]`);
		await page.locator('.arrival').getByText(words).waitFor();
		assert.deepEqual(await unreadable(page), []);
	}
	await page.locator('.arrival').getByText(HOSTILE).waitFor();
	await done(page, t);
});

test('a text that was typed just before its page is left is not put into the next address', async (t) => {
	const page = await openList();
	await page.evaluate(() => {
		const field = document.querySelector('#search');
		field.value = 'typed';
		field.dispatchEvent(new Event('input', { bubbles: true }));
		document.querySelector('.top nav a[href^="/inbox"]').click();
	});
	await page.getByRole('heading', { name: 'Inbox' }).waitFor();
	await settled(page);
	assert.ok(!new URL(page.url()).searchParams.has('q'), page.url());
	await done(page, t);
});
