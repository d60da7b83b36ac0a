/*
 * ANRs and locks in the page: groups, one of them with its deadlock drawn, rules made and taken back,
 * addresses that lead there again, hostile names; in light and dark.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fleet } from '../../gen/anr_fleet.mjs';
import { violations } from '../axe.mjs';
import { settled, unreadable } from '../browser.mjs';
import { btrace } from '../make.mjs';
import { done, open, server, shots, watched } from '../page.mjs';
import { root, tracewell, until } from '../server.mjs';

const HOSTILE = '<img src=x onerror=alert(1)>';
const sent = fleet(22);
let ready;

/* Once for all tests of this file. */
const prepare = () => (ready ??= (async () => {
	for (const x of sent) await server.post('/api/v1/traces', x.text, { query: { app: 'shop', version_name: x.version, device: x.device, os: '14', scenario: 'anr', labels: JSON.stringify({ user_id: x.user }) } });
	await server.post('/api/v1/traces', `"main" prio=5 tid=1 Blocked\n  at a.B.c(X.java:1)\n  - waiting to lock <0x01> (a ${HOSTILE}) held by thread 2\n\n"w" prio=5 tid=2 Runnable\n  at a.${HOSTILE}.run(X.java:2)\n  - locked <0x01> (a ${HOSTILE})\n`, { query: { app: 'shop', version_name: HOSTILE } });
	await until(async () => {
		const { json } = await server.get('/api/v1/anr/groups?app=shop');
		return json.anrs === sent.length + 1 && json.pending === 0 ? true : undefined;
	}, 'ANRs in groups', 90);
})());

async function asWriter(scheme, width) {
	const page = await watched(scheme, width);
	await page.goto(tracewell('link', 'create', '--data', server.data, '--url', server.url));
	await page.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
	return page;
}

test('groups lead to one of them, with its report and its deadlock drawn', async (t) => {
	await prepare();
	const page = await open('/anrs?app=shop');
	const row = page.locator('tr[data-group]:has-text("Deadlock of Cart and Stock")');
	await row.waitFor();
	await page.waitForSelector('tr[data-group]:has-text("Lock of Orders, held in Orders.insert")');
	const rings = sent.filter((x) => x.cause.id === 'ring').length;
	await row.locator(`td.num:text-is("${rings}")`).first().waitFor();
	await row.locator('a').click();
	await page.waitForSelector('#group .verdict:has-text("Deadlock: main waits 5 s")');
	await page.waitForSelector('#who td:text-is("8.3.0")');
	await page.waitForSelector('#anr h3:has-text("Deadlock of 2 threads")');
	await page.waitForSelector('#anr .waits svg');
	const [short, id] = await page.locator('#exemplars tr[data-trace] a').first().evaluate((a) => [a.textContent, a.closest('tr').dataset.trace]);
	assert.ok(short.length >= 10 && id.startsWith(short), short);
	assert.ok((await server.get('/api/v1/traces', { query: { q: short } })).json.traces.some((x) => x.id === id), 'the search finds it');
	await page.locator('#exemplars button:has-text("Show")').first().click();
	await page.waitForFunction(() => new URLSearchParams(location.search).get('trace'));
	const address = page.url();
	await page.goto('about:blank');
	await page.goto(address);
	await page.waitForSelector('#anr h3:has-text("Deadlock of 2 threads")');
	await done(page, t);
});

test('a decision about a group is shown wherever groups are listed', async (t) => {
	await prepare();
	const page = await asWriter();
	const lists = [['/anrs?app=shop', '#anrs'], ['/fleet?app=shop', '#topanrs']];
	const row = (list) => page.locator(`${list} tr[data-group]:has-text("Lock of Orders, held in Orders.insert")`);
	for (const [address, list] of lists) {
		await page.goto(server.url + address);
		await row(list).waitFor();
		assert.equal(await row(list).locator('[data-decision]').count(), 0);
	}
	await row('#topanrs').locator('a').click();
	await page.locator('#group').getByRole('button', { name: /^Mute for/ }).click();
	await page.locator('#group strong', { hasText: /muted until 20/ }).waitFor();
	for (const [address, list] of lists) {
		await page.goto(server.url + address);
		await row(list).locator('[data-decision]', { hasText: /muted until 20/ }).waitFor();
	}
	await page.goto(`${server.url}/anrs?app=shop`);
	await row('#anrs').locator('a').click();
	await page.locator('#group').getByRole('button', { name: 'Unmute' }).click();
	await page.locator('#group').getByRole('button', { name: /^Mute for/ }).waitFor();
	await done(page, t);
});

test('a group shows its reports per 1,000 traces, by version', async (t) => {
	const query = (version) => ({ app: 'rated', version_name: version });
	for (let i = 0; i < 8; i++) await server.post('/api/v1/traces', btrace([[4000, 1, 1_000_000, 9_000_000 + i]]), { query: query('2.0') });
	for (const version of ['1.0', '2.0']) await server.post('/api/v1/traces', sent.find((x) => x.cause.id === 'ring').text, { query: query(version) });
	await until(async () => {
		const { json } = await server.get('/api/v1/anr/groups?app=rated');
		return json.anrs === 2 && json.pending === 0 && json.traces === 8 ? true : undefined;
	}, 'reports and traces are counted', 60);
	const page = await open('/anrs?app=rated');
	await page.waitForSelector('#anrs p:has-text("Reports per 1,000 traces with times: 250.")');
	await page.waitForSelector('tr[data-group] [data-rate]:text-is("250 per 1,000")');
	await page.locator('tr[data-group] a').click();
	const cell = (version) => page.locator('#who tr', { has: page.locator(`td:text-is("${version}")`) }).locator('[data-rate]');
	await cell('2.0').waitFor();
	assert.deepEqual([await cell('2.0').innerText(), await cell('1.0').innerText()], ['125', 'no traces']);
	await page.waitForSelector('#who p:has-text("They are not shares of sessions.")');
	await done(page, t);
});

test('rows of ANRs in the list name their cause', async (t) => {
	await prepare();
	const { groups } = (await server.get('/api/v1/anr/groups?app=shop')).json;
	const page = await open('/traces?app=shop');
	await page.locator('tr[data-trace]').first().waitFor();
	const names = await page.locator('tr[data-trace] a.rowlink').allInnerTexts();
	assert.deepEqual([...new Set(names)].sort(), groups.map((g) => g.name || g.title).sort());
	await done(page, t);
});

test('rules are made in the page, hold, and are taken back', async (t) => {
	await prepare();
	const page = await asWriter();
	await page.goto(`${server.url}/anrs?app=shop`);
	for (const title of ['Sleep in b.c', 'File, database or network in Prefs.load']) await page.locator(`tr[data-group]:has-text("${title}") input[type=checkbox]`).check();
	await page.click('text=Merge 2');
	await page.waitForSelector('form.rule >> text=Of the groups');
	await page.click('form.rule button.primary');
	await page.waitForSelector('[role=alert] >> text=name must be a text of 1 to 100 bytes');
	await page.fill('form.rule [name=name]', HOSTILE);
	await page.click('form.rule button.primary');
	await page.waitForSelector('tr[data-rule="1"] >> text=are one group');
	await page.goto(`${server.url}/anrs?app=shop`);
	await page.waitForSelector(`tr[data-group] a:text-is("${HOSTILE}")`);
	await page.goto(`${server.url}/anrs/rules`);
	await page.click('[aria-label="Remove rule 1"]');
	await page.click('text=Remove permanently');
	await page.waitForSelector('text=There are no rules: ANRs are grouped by cause.');
	await page.waitForSelector('select[name=version]');
	await page.goto(`${server.url}/anrs?app=shop`);
	await page.waitForSelector('tr[data-group]:has-text("Sleep in b.c")');
	await done(page, t);
});

test('locks: who holds them, for how long, over versions', async (t) => {
	await prepare();
	const page = await open('/locks?app=shop');
	await page.waitForSelector('tr[data-lock="com.shop.Orders.insert"] >> text=DB-writer');
	await page.waitForSelector(`#locks td:has-text("${HOSTILE}")`);
	await page.locator('tr[data-lock="com.shop.Orders.insert"] button').click();
	await page.waitForSelector('#lock tr[data-point="8.3.0"]');
	assert.equal(new URL(page.url()).searchParams.get('name'), 'com.shop.Orders.insert');
	assert.equal(await page.locator('#locks tr[aria-current]').getAttribute('data-lock'), 'com.shop.Orders.insert');
	await page.locator('#locks th', { hasText: 'Waits' }).getByRole('button').click();
	await page.locator('#locks th[aria-sort=descending] >> text=Waits').waitFor();
	assert.equal(new URL(page.url()).searchParams.get('sort'), 'waits');
	for (const holder of await page.locator('#locks td.thread').all()) assert.ok((await holder.boundingBox()).height < 80, 'a name of a thread is not broken');
	await page.selectOption('#locks select[name=threads]', 'all');
	await page.waitForSelector('#locks h2:has-text("Locks that threads waited for")');
	await page.fill('#locks input[name=q]', 'orders');
	await page.waitForSelector('#locks tr[data-lock="com.shop.Cart.total"]', { state: 'detached' });
	await page.waitForSelector('#locks tr[data-lock="com.shop.Orders.insert"]');
	await page.locator('tr[data-lock="com.shop.Orders.insert"]').getByRole('link', { name: 'longest wait' }).click();
	await page.waitForSelector('#anr h3');
	await done(page, t);
});

/* The lock of tests/golden/atrace/realistic, in a report. */
const REPORT_OF_PUT = `"main" prio=5 tid=1 Blocked
  at com.acme.Cart.total(Cart.java:88)
  - waiting to lock <0x02> (a com.acme.db.Store) held by thread 9

"DB-writer" prio=5 tid=9 Runnable
  at com.acme.db.Store.put(Store.java:7)
  - locked <0x02> (a com.acme.db.Store)
`;

test('the longest wait of a lock in traces with calls is shown among the events, also if ANR reports have it', async (t) => {
	await server.trace(fs.readFileSync(`${root}/tests/golden/atrace/realistic/input`), { query: { app: 'waits' } });
	await server.trace(Buffer.from(REPORT_OF_PUT), { query: { app: 'waits', scenario: 'anr' } });
	const lockOf = async () => (await server.get('/api/v1/fleet/locks?app=waits')).json.locks.find((l) => l.name === 'com.acme.db.Store.put');
	const lock = await until(async () => { const l = await lockOf(); return l?.reports && l.traces === 2 ? l : undefined; }, 'both are counted', 60);
	assert.equal(lock.worst_source, 'calls', 'the wait of the report has no duration');
	assert.equal((await server.get('/api/v1/fleet/locks?app=waits&source=reports')).json.locks[0].worst_source, 'reports');
	const page = await open('/locks?app=waits');
	await page.locator('tr[data-lock="com.acme.db.Store.put"]').getByRole('link', { name: 'longest wait' }).click();
	const row = page.locator('.panel tr.go');
	await row.filter({ hasText: 'Store.put' }).first().waitFor();
	assert.equal(await row.filter({ hasNotText: 'Store.put' }).count(), 0, 'only waits for this lock');
	await row.first().getByRole('button').click();
	await page.waitForURL(/[?&]from=/);
	await page.locator('.top a.brand').click();
	await page.getByRole('heading', { name: 'Overview' }).waitFor();
	await settled(page);
	assert.equal(new URL(page.url()).search, '', 'the view of the trace is not written into the address of the next page');
	await done(page, t);
});

for (const scheme of ['light', 'dark'])
	test(`all of it can be read and reached: ${scheme}`, async (t) => {
		await prepare();
		const page = await asWriter(scheme, scheme === 'dark' ? 1920 : 1280);
		for (const [name, address, ready_] of [['anrs', '/anrs?app=shop', 'tr[data-group]'], ['group', null, '#anr h3'], ['rules', '/anrs/rules?groups=0123456789abcdef', 'form.rule'], ['locks', '/locks?app=shop&name=com.shop.Orders.insert', '#lock tr[data-point]']]) {
			if (address) await page.goto(server.url + address);
			else await page.locator('tr[data-group]:has-text("Deadlock of Cart") a').click();
			await page.waitForSelector(ready_);
			assert.deepEqual(await unreadable(page), [], name);
			assert.deepEqual(await violations(page), [], name);
			if (shots) await page.screenshot({ path: path.join(shots, `hangs-${name}-${scheme}.png`), fullPage: true });
		}
		await done(page, t);
	});

test("a scenario's long name does not make a narrow page wider", async (t) => {
	await prepare();
	const page = await asWriter('light', 390);
	for (const at of ['/anrs', '/locks', '/fleet/methods']) {
		await page.goto(`${server.url}${at}?scenario=${'login_of_a_generated_test_class_'.repeat(5)}`);
		await page.locator('summary', { hasText: 'Filter' }).click();
		await page.locator('.fleetfilter select[name=scenario]').waitFor();
		await settled(page);
		assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), at);
	}
	await done(page, t);
});
