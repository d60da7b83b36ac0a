/*
 * inbox_page.test.mjs - regressions and ANR groups in one list: by state, kind and owner, answered by pointer and keys,
 * several at once; an ANR group that was fixed returns with a newer report; more than a page of them.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

import { CAUSES, fleet } from '../../gen/anr_fleet.mjs';
import { violations } from '../axe.mjs';
import { settled, signInAs, THEMES, unreadable } from '../browser.mjs';
import { done, open, server, watched } from '../page.mjs';
import { binary, tracewell, until } from '../server.mjs';
import { findSlower } from '../regressed_fleet.mjs';

const sent = fleet(9);
let ready;
const inbox = async (query = {}) => (await server.get(`/api/v1/inbox?${new URLSearchParams(query)}`)).json;
const answer = (body, key = server.write) => server.ask('PATCH', '/api/v1/inbox', { key, body: JSON.stringify(body) });

async function anr(x, version) {
	const body = `${x.text}`;
	const { status, text } = await server.post('/api/v1/traces', body, { query: { app: 'inbox', version_name: version, device: x.device, os: '14', scenario: 'anr', session_id: `s-${Math.random()}` }, headers: { 'Idempotency-Key': `inbox-${Math.random()}` } });
	assert.ok(status <= 202, text);
}

/* Once for all tests of this file. */
const prepare = () => (ready ??= (async () => {
	for (const x of sent) await anr(x, '1.9.0');
	await findSlower(server);
	await until(async () => {
		const { json } = await server.get('/api/v1/anr/groups');
		return json.anrs >= sent.length && json.pending === 0 ? true : undefined;
	}, 'ANRs in groups', 120);
})());

test('regressions and ANR groups share states, counts, bulk actions and refusals', async () => {
	await prepare();
	const all = await inbox({ state: 'all' });
	assert.ok(all.items.some((i) => i.kind === 'regression' && i.regression.change > 0.2));
	const groups = all.items.filter((i) => i.kind === 'anr');
	assert.ok(groups.length >= 2 && groups.every((g) => g.status === 'open' && g.anr.count > 0 && g.anr.trend.reduce((n, d) => n + d.count, 0) === g.anr.count), 'each with its days');
	assert.equal(all.counts.all, all.items.length);
	assert.equal(all.counts.new, all.items.length);
	const two = [all.items.find((i) => i.kind === 'regression'), groups[0]].map(({ kind, id }) => ({ kind, id }));
	assert.deepEqual((await answer({ items: two, status: 'acknowledged', owner: 'ann' })).json, { changed: 2 });
	const mine = await inbox({ owner: 'ann', state: 'acknowledged' });
	assert.deepEqual(mine.items.map((i) => i.id).sort(), two.map((i) => i.id).sort());
	assert.equal((await inbox()).counts.new, all.counts.new - 2);
	assert.equal((await server.get(`/api/v1/regressions/${two[0].id}`)).json.status, 'acknowledged', 'one figure everywhere');
	assert.equal((await server.get(`/api/v1/anr/groups/${groups[0].id}`)).json.owner, 'ann');
	await answer({ items: [two[1]], muted_until_ms: Date.now() + 3600_000 });
	assert.deepEqual((await inbox({ state: 'muted' })).items.map((i) => i.id), [two[1].id]);
	assert.ok(!(await inbox()).items.some((i) => i.id === two[1].id));
	await answer({ items: two, status: 'open', owner: '', muted_until_ms: 0 });
	for (const [body, status] of [[{ items: [], status: 'open' }, 400], [{ items: two }, 400], [{ items: two, status: 'gone' }, 400], [{ items: two, more: 1 }, 400], [{ items: [{ kind: 'x', id: '1' }], status: 'open' }, 400], [{ items: [{ kind: 'anr', id: '0000000000000000' }], status: 'open' }, 404],
		[{ items: [two[1]], status: 'returned' }, 400], [{ items: [two[1]], muted_until_ms: -1 }, 400], [{ items: Array(201).fill(two[1]), status: 'open' }, 400]])
		assert.equal((await answer(body)).status, status, JSON.stringify(body).slice(0, 80));
	assert.equal((await answer({ items: [...two, { kind: 'anr', id: '0000000000000000' }], status: 'fixed', owner: 'eve' })).status, 404);
	assert.deepEqual((await inbox({ state: 'all' })).items.filter((i) => i.status !== 'open' || i.owner), [], 'one that does not exist changes none');
	assert.equal((await answer({ items: two, status: 'open' }, server.read)).status, 403);
	for (const q of ['state=gone', 'kind=x', 'limit=0', 'nothing=1', 'cursor=x', 'cursor=5', 'cursor=5.', 'cursor=.a']) assert.equal((await server.get(`/api/v1/inbox?${q}`)).status, 400, q);
});

test('an ANR group that was fixed in a version returns with a report from it, not from an older one', async () => {
	await prepare();
	const x = sent[0];
	const reports = async (n) => until(async () => {
		const { json } = await server.get('/api/v1/anr/groups?app=inbox');
		return json.anrs === n && json.pending === 0 ? json.groups : undefined;
	}, `${n} reports`, 120);
	const before = await reports(sent.length);
	await anr(x, '1.9.1');
	const after = await reports(sent.length + 1);
	const group = after.find((g) => g.count > (before.find((b) => b.key === g.key)?.count ?? 0)).key;
	const status = async () => (await server.get(`/api/v1/anr/groups/${group}`)).json.status;
	await answer({ items: [{ kind: 'anr', id: group }], status: 'fixed', fixed_in: '1.10.0' });
	assert.equal(await status(), 'fixed');
	await anr(x, '1.9.1');
	await reports(sent.length + 2);
	assert.equal(await status(), 'fixed', '1.9.1 is before 1.10.0');
	await anr(x, '1.10.2');
	await reports(sent.length + 3);
	assert.equal(await status(), 'returned');
	assert.ok((await inbox({ state: 'returned' })).items.some((i) => i.id === group));
	await answer({ items: [{ kind: 'anr', id: group }], owner: 'bob' });
	assert.equal(await status(), 'returned', 'an owner changes no state');
	await answer({ items: [{ kind: 'anr', id: group }], status: 'acknowledged' });
	assert.equal(await status(), 'acknowledged');
	await answer({ items: [{ kind: 'anr', id: group }], status: 'open', owner: '' });
});

test('i assigns to the person who signed in', async (t) => {
	await prepare();
	const person = { name: 'mira', password: 'reads the inbox' };
	execFileSync(binary(), ['user', 'create', person.name, '--data', server.data], { input: person.password });
	tracewell('user', 'role', person.name, '--data', server.data, '--role', 'server-admin');
	const page = await watched();
	await signInAs(page, server, person.name, person.password);
	await page.goto(`${server.url}/inbox`);
	const row = page.locator('tr[data-item]').first();
	await row.waitFor();
	await page.keyboard.press('j');
	await page.keyboard.press('i');
	await row.locator('td:has-text("mira") .letter:text-is("m")').waitFor();
	await page.keyboard.press('z');
	await page.locator('tr[data-item] .letter').waitFor({ state: 'detached' });
	for (const [change, shown] of [['updated a regression', 'button[aria-expanded=true]'], ['updated an ANR group', '#group .verdict']]) {
		await page.goto(`${server.url}/audit`);
		await page.locator('tr[data-entry]', { hasText: change }).first().getByRole('link').click();
		await page.locator(shown).first().waitFor();
	}
	await done(page, t);
});

test('i of a session without an account changes nothing, and the page states why', async (t) => {
	await prepare();
	const page = await open('/inbox');
	await page.locator('tr[data-item]').first().waitFor();
	await page.keyboard.press('j');
	await page.keyboard.press('i');
	await page.getByRole('status').filter({ hasText: 'Not assigned' }).waitFor();
	await page.keyboard.press('z');
	assert.deepEqual((await inbox({ state: 'all' })).items.filter((i) => i.owner), []);
	await done(page, t);
});

test('answered in the page, by pointer and by keys', async (t) => {
	await prepare();
	const page = await open('/inbox');
	const rows = page.locator('tr[data-item]');
	await rows.first().waitFor();
	await page.locator('tr[data-item^=anr] svg.bars').first().waitFor();
	await page.locator('tr[data-item^=regression] svg.bars rect.after').first().waitFor();
	const n = await rows.count();
	assert.equal(await page.getByRole('group', { name: 'State' }).locator('[aria-pressed=true]').innerText(), `Unresolved ${n}`);
	assert.deepEqual(await violations(page), []);
	await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
	const bar = page.getByRole('region', { name: 'Selected' });
	await bar.getByText(`${n} selected`).waitFor();
	await bar.getByLabel('Owner').fill('carol');
	await bar.getByRole('button', { name: 'Assign' }).click();
	const carols = (w) => page.waitForFunction((many) => [...document.querySelectorAll('tr[data-item]')].filter((r) => r.textContent.includes('carol')).length === many, w);
	await carols(n);
	assert.deepEqual(await page.locator('datalist#owners option').evaluateAll((all) => all.map((o) => o.value)), ['carol'], 'owners to filter by');
	const [kind, id] = (await rows.first().getAttribute('data-item')).split(' ');
	await answer({ items: [{ kind, id }], owner: 'dave' });
	await page.getByRole('status').filter({ hasText: `${n} items: assigned to carol` }).getByRole('button', { name: 'Undo' }).click();
	await carols(0);
	await page.locator(`tr[data-item="${kind} ${id}"]:has-text("dave")`).waitFor(); // another person's decision since then
	await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
	await bar.getByLabel('Owner').fill('carol');
	await bar.getByRole('button', { name: 'Assign' }).click();
	await carols(n);
	await page.keyboard.press('j');
	const first = await rows.first().getAttribute('data-item');
	await page.keyboard.press('x');
	await bar.getByText('1 selected').waitFor();
	await page.keyboard.press('a');
	await page.locator(`tr[data-item="${first}"] .state:has-text("Acknowledged")`).waitFor();
	await page.getByRole('button', { name: 'Acknowledged' }).click();
	await page.waitForFunction(() => document.querySelectorAll('tr[data-item]').length === 1);
	await page.keyboard.press('j');
	await page.keyboard.press('m');
	await page.getByText('No items match.').waitFor();
	await page.getByRole('status').filter({ hasText: /: muted until \d{4}-/ }).waitFor();
	await page.keyboard.press('z');
	await page.waitForFunction(() => document.querySelectorAll('tr[data-item]').length === 1);
	assert.equal(await page.getByRole('button', { name: 'Undo' }).count(), 0);
	await settled(page); // each response was read
	await page.keyboard.press('j');
	await page.keyboard.press('a');
	await page.getByRole('status').filter({ hasText: ': Acknowledged' }).getByRole('button', { name: 'Undo' }).waitFor();
	await page.keyboard.press('j');
	await page.keyboard.press('m');
	await page.getByText('No items match.').waitFor();
	await page.getByRole('button', { name: /^Muted/ }).click();
	await page.locator(`tr[data-item="${first}"]:has-text("muted until")`).waitFor();
	await page.goto(`${server.url}/inbox?owner=erin`);
	await page.getByText('No items match.').waitFor();
	assert.equal(await page.getByText('The inbox is empty.').count(), 0, 'only for this owner');
	await page.getByRole('button', { name: 'Clear' }).click();
	await page.getByRole('button', { name: /^Muted/ }).click();
	await page.locator(`tr[data-item="${first}"]:has-text("muted until")`).waitFor();
	await page.getByLabel('Kind').selectOption('anr');
	await page.waitForFunction(() => location.search.includes('kind=anr'));
	await page.goto(`${server.url}/inbox?kind=anr&state=all`);
	await rows.first().locator('a').click();
	await page.waitForURL(/\/anrs\//);
	const actions = page.getByRole('form', { name: 'Actions' });
	await actions.getByLabel('in version').fill('9.9.9');
	await actions.getByRole('button', { name: 'Mark as fixed' }).click();
	await page.getByText('Fixed, fixed in 9.9.9').waitFor();
	await page.locator('#exemplars td a').first().click();
	await page.getByRole('link', { name: 'All ANRs with this cause' }).first().click();
	await page.waitForURL(/\/anrs\//);
	await page.getByText('Fixed, fixed in 9.9.9').waitFor(); // the group that it came from
	await done(page, t);
});

test('more items than a page: pages by cursor, keys and buttons; the selection is on the shown page', async (t) => {
	await prepare();
	const before = (await inbox({ state: 'all' })).total;
	const letters = (i) => String.fromCharCode(97 + (i % 26), 97 + Math.floor(i / 26));
	const file = CAUSES.find((c) => c.id === 'file');
	for (let i = 0; i < 105; i++) await anr({ device: 'Phone', text: file.make(1).replace('Prefs.load', `Prefs.${letters(i)}`) }, '1.9.0');
	const all = await until(async () => {
		const v = await inbox({ state: 'all', limit: 1000 });
		return v.total >= before + 105 ? v.items.map((i) => i.id) : undefined;
	}, 'a group for each of 105 ANRs', 300);
	const seen = [];
	for (let cursor = ''; cursor !== null;) {
		const v = await inbox({ state: 'all', limit: 40, ...(cursor && { cursor }) });
		assert.equal(v.total, all.length);
		seen.push(...v.items.map((i) => i.id));
		cursor = v.next_cursor;
	}
	assert.deepEqual(seen, all, 'each item once, in the order of the whole list');

	const page = await open('/inbox?state=all');
	const rows = page.locator('tr[data-item]');
	const nav = page.getByRole('navigation', { name: 'Pages of the list' });
	await nav.getByText(`1 to 100 of ${all.length}`).waitFor();
	assert.equal(await rows.count(), 100);
	await page.keyboard.press('n');
	await nav.getByText(`101 to ${all.length} of ${all.length}`).waitFor();
	await rows.nth(all.length - 101).waitFor();
	assert.equal(await rows.first().getAttribute('data-item'), `anr ${all[100]}`);
	assert.ok(await nav.getByRole('button', { name: 'Next' }).isDisabled());
	await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
	const bar = page.getByRole('region', { name: 'Selected' });
	await bar.getByText(`${all.length - 100} selected`).waitFor();
	await page.keyboard.press('a');
	await until(async () => (await inbox({ state: 'all', limit: 1000 })).items.every((i, at) => (i.status === 'acknowledged') === (at >= 100)) || undefined, 'the second page, and nothing else, acknowledged');
	assert.deepEqual(await violations(page), []);
	await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
	await page.keyboard.press('p');
	await nav.getByText(`1 to 100 of ${all.length}`).waitFor();
	await bar.waitFor({ state: 'detached' });
	await nav.getByRole('button', { name: 'Next' }).click();
	await page.waitForURL(/cursor=/);
	await page.getByRole('button', { name: /^New/ }).click();
	await page.waitForURL((u) => !u.searchParams.has('cursor'), { timeout: 60000 });
	await done(page, t);
});

for (const [scheme, width] of [...THEMES, ['light', 390]])
	test(`the inbox can be read in ${scheme} at ${width}`, async (t) => {
		await prepare();
		const page = await open('/inbox?state=all', scheme, width);
		await page.locator('tr[data-item]').first().waitFor();
		assert.deepEqual(await unreadable(page), []);
		const { width: wide } = await page.locator('tr[data-item] td.wide').first().boundingBox();
		assert.ok(wide >= 170, `the column of names is ${wide} wide`);
		await done(page, t);
	});
