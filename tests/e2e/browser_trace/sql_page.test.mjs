/*
 * sql_page.test.mjs - SQL of a trace in the page: examples, an own statement and the next one, its errors, the call of a row, CSV, saved queries.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';

import { violations } from '../axe.mjs';
import { signIn, THEMES, unreadable, tab } from '../browser.mjs';
import { done, HOSTILE, id, open, openTrace, server, watched } from '../page.mjs';

const query = (page) => new URL(page.url()).searchParams;
const editor = '#sql textarea[name=sql]';

async function run(page, sql) {
	await page.fill(editor, sql);
	await page.press(editor, 'Control+Enter');
	await page.waitForFunction((s) => new URLSearchParams(location.search).get('sql') === s, sql);
}

test('examples run, a row leads to its call, and the address keeps the query', async (t) => {
	const page = await openTrace();
	await tab(page, 'SQL');
	await page.locator('#sql tbody tr').first().waitFor(); // of the first example
	await page.locator('#sql [aria-label=Examples] button[aria-pressed=true]', { hasText: 'Methods by self time' }).waitFor();
	const height = () => page.locator(editor).evaluate((e) => e.offsetHeight);
	const two = await height();
	await page.locator(editor).press('Control+End');
	await page.keyboard.type('\n--\n--\n--\n--');
	assert.ok(await height() >= two + 40, 'the editor grows with its text');
	for (const name of await page.locator('#sql [aria-label=Examples] button.small:not([aria-haspopup])').allInnerTexts()) {
		await page.getByRole('button', { name, exact: true }).click();
		await page.waitForFunction(() => document.querySelector('#sql [role=status]') && !document.querySelector('#sql .busy, #sql .stale'));
		assert.equal(await page.locator('#sql [role=alert]').count(), 0, name);
	}
	await run(page, 'SELECT name, ts_ns, dur_ns, depth, thread_id FROM slice ORDER BY dur_ns DESC LIMIT 3');
	await page.waitForSelector('#sql >> text=3 rows');
	await page.locator('#sql tbody tr').first().getByRole('button', { name: 'Show this call in the timeline' }).click();
	await page.waitForFunction(() => new URLSearchParams(location.search).has('call'));
	await page.reload();
	await page.waitForSelector('#sql >> text=3 rows');
	assert.equal(query(page).get('tab'), 'sql');
	await done(page, t);
});

test('names in results are text, errors are shown, and only SELECT runs', async (t) => {
	const page = await openTrace('?tab=sql');
	await run(page, `SELECT '${HOSTILE}' AS name, NULL AS missing, 1.5 AS number`);
	await page.locator('#sql').getByRole('cell', { name: HOSTILE, exact: true }).waitFor();
	await page.waitForSelector('#sql td:text-is("NULL")');
	await run(page, 'SELEC 1');
	await page.waitForSelector('#sql [role=alert]:has-text("syntax error")');
	await run(page, 'DROP TABLE slice');
	await page.waitForSelector('#sql [role=alert]');
	await run(page, 'SELECT 1 AS one WHERE 0');
	await page.waitForSelector('#sql >> text=No rows.');
	await done(page, t);
});

test('another statement ends the one that runs', async (t) => {
	const page = await openTrace('?tab=sql');
	const isEndless = (r) => r.postData()?.includes('endless');
	await page.route('**/sql*', (route) => (isEndless(route.request()) ? undefined : route.continue())); // which gets no answer
	const [asked, left] = [page.waitForRequest(isEndless), page.waitForEvent('requestfailed', isEndless)];
	await run(page, "SELECT 'endless'");
	await asked;
	await run(page, 'SELECT 1 AS one');
	await page.waitForSelector('#sql >> text=1 row');
	assert.equal((await left).failure().errorText, 'net::ERR_ABORTED');
	await done(page, t);
});

test('a result is saved as CSV, a query for the project', async (t) => {
	const sql = "SELECT 'a&b=c' AS text, count(*) AS calls FROM slice";
	const page = await openTrace('?tab=sql');
	await run(page, sql);
	await page.waitForSelector('#sql >> text=1 row');
	const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save as CSV' }).click()]);
	const { json } = await server.post(`/api/v1/traces/${id}/sql`, JSON.stringify({ sql }), { key: server.read });
	assert.equal(fs.readFileSync(await file.path(), 'utf8'), `"text","calls"\r\n"${json.rows[0][0]}",${json.rows[0][1]}\r\n`);
	await page.getByRole('button', { name: 'Save this query' }).click();
	await page.getByLabel('Name of this query').fill('all calls');
	await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
	await page.waitForSelector('#sql .saved >> text=all calls');
	const list = await open('/traces');
	await list.waitForSelector('td');
	await list.waitForLoadState('networkidle');
	assert.equal(await list.getByText('all calls').count(), 0, 'it is not a list of traces');
	await list.context().close();
	await run(page, 'SELECT 2');
	await page.locator('#sql .saved').getByRole('button', { name: 'all calls', exact: true }).click();
	await page.waitForFunction((s) => new URLSearchParams(location.search).get('sql') === s, sql);
	assert.equal(await page.inputValue(editor), sql);
	await page.getByRole('button', { name: 'Delete the saved query all calls' }).click();
	await page.waitForSelector('#sql .saved', { state: 'detached' });
	await done(page, t);
});

test('table and column names are completed by keyboard and mouse; earlier statements are listed', async (t) => {
	const page = await openTrace('?tab=sql');
	const names = page.locator('#sqlnames [role=option]');
	await page.fill(editor, '');
	await page.locator(editor).pressSequentially('SELECT s.du');
	assert.equal(await names.count(), 0, 's is unknown yet');
	await page.locator(editor).pressSequentially(' FROM sl');
	assert.deepEqual(await names.allInnerTexts(), ['slice']);
	await page.keyboard.press('Tab');
	assert.equal(await page.inputValue(editor), 'SELECT s.du FROM slice');
	await page.locator(editor).pressSequentially(' s ORDER BY s.d');
	assert.deepEqual(await names.allInnerTexts(), ['dur_ns', 'depth']);
	assert.deepEqual([await violations(page), await unreadable(page)], [[], []]);
	await page.keyboard.press('ArrowUp');
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('Enter');
	assert.equal(await page.inputValue(editor), 'SELECT s.du FROM slice s ORDER BY s.dur_ns');
	await page.locator(editor).evaluate((e) => e.setSelectionRange('SELECT s.du'.length, 'SELECT s.du'.length));
	await page.keyboard.type('r');
	await names.filter({ hasText: 'dur_ns' }).click();
	assert.equal(await page.inputValue(editor), 'SELECT s.dur_ns FROM slice s ORDER BY s.dur_ns');
	await page.keyboard.type(', n'); // at the cursor, after the inserted name
	await page.keyboard.press('Escape');
	assert.equal(await names.count(), 0);
	await page.keyboard.type('ame');
	await page.keyboard.press('Control+Enter');
	await page.waitForSelector('#sql [role=status] >> text=/row/');
	await run(page, 'SELECT 2 AS two');
	await page.waitForSelector('#sql th >> text=two');
	await page.getByRole('button', { name: 'History' }).click();
	const ran = page.getByRole('dialog', { name: 'Queries run in this browser' }).getByRole('button');
	assert.deepEqual(await ran.allInnerTexts(), ['SELECT 2 AS two', 'SELECT s.dur_ns, name FROM slice s ORDER BY s.dur_ns']);
	await ran.nth(1).click();
	await page.waitForSelector('#sql th >> text=dur_ns');
	await page.reload();
	await page.getByRole('button', { name: 'History' }).click();
	assert.match(await ran.first().innerText(), /^SELECT s\.dur_ns/);
	await done(page, t);
});

test('Enter is a new line unless an arrow key chose a name; keys of an input method choose none', async (t) => {
	const page = await openTrace('?tab=sql');
	const names = page.locator('#sqlnames [role=option]');
	const chosen = page.locator('#sqlnames [aria-selected=true]');
	for (const sql of ['SELECT count(*) AS n', 'SELECT * FROM slice s', 'SELECT max(dur_ns) AS d', 'SELECT tid AS t', 'SELECT na']) {
		await page.fill(editor, '');
		await page.locator(editor).pressSequentially(sql);
		await page.keyboard.press('Enter');
		assert.equal(await page.inputValue(editor), `${sql}\n`);
	}
	await page.fill(editor, '');
	await page.locator(editor).pressSequentially('SELECT na');
	await names.filter({ hasText: 'name' }).waitFor();
	assert.equal(await chosen.count(), 0);
	await page.keyboard.press('ArrowDown');
	assert.equal(await chosen.innerText(), 'name');
	await page.keyboard.press('Enter');
	assert.equal(await page.inputValue(editor), 'SELECT name');
	await page.keyboard.type(', ');
	const input = await page.context().newCDPSession(page);
	await input.send('Input.imeSetComposition', { text: 'du', selectionStart: 2, selectionEnd: 2 });
	await names.filter({ hasText: 'dur_ns' }).waitFor();
	await page.keyboard.press('ArrowDown');
	assert.equal(await chosen.count(), 0);
	await page.keyboard.press('Tab');
	assert.equal(await page.inputValue(editor), 'SELECT name, du');
	await done(page, t);
});

test('signing out clears the statements that ran', async (t) => {
	const page = await watched();
	const history = page.getByRole('button', { name: 'History' });
	const at = `${server.url}/traces/${id}?tab=sql`;
	await signIn(page, server); // a session that no other test uses
	await page.goto(at);
	await run(page, 'SELECT 1 AS one');
	await history.waitFor();
	await page.getByRole('button', { name: 'Sign out' }).click();
	await page.waitForSelector('summary:has-text("With a key")');
	await signIn(page, server);
	await page.goto(at);
	await page.waitForSelector(editor);
	assert.equal(await history.count(), 0);
	await done(page, t);
});

test('it can be read in each theme', async (t) => {
	for (const [scheme, width] of THEMES) {
		const page = await open(`/traces/${id}?tab=sql&sql=${encodeURIComponent('SELECT name, ts_ns, dur_ns, depth, thread_id FROM slice LIMIT 20')}`, scheme, width);
		await page.waitForSelector('#sql >> text=20 rows');
		assert.deepEqual([await violations(page), await unreadable(page)], [[], []]);
		await done(page, t);
	}
});
