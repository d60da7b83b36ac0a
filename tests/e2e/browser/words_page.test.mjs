/*
 * The page in Chinese: chosen by the user or the browser, every page without an English word that is not a
 * name, readable and within its bounds, and back; and navigation by keys.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { violations } from '../axe.mjs';
import { unreadable, visit } from '../browser.mjs';
import { browser, done, id, open, server, shots } from '../page.mjs';
import { inFull, until } from '../server.mjs';

/* English texts: one or more words that are not part of a name, code or choice of the data. */
function english(page) {
	return page.evaluate(() => {
		const DATA = 'code, pre, kbd, dt, .mono, textarea, [lang]:not(html), option, noscript, .brand, .top .quiet, .name, .tags, .presets';
		const NAMES = new Set(['Trace', 'Webhook', 'pprof', 'Android', 'ms', 'test', 'web', 'main']);
		const left = (text) => !NAMES.has(text.trim()) && (/\b[a-z]{2,} [a-z]{2,}\b/.test(text) || /^[^\p{L}\d]*[A-Z]?[a-z]{2,}[^\p{L}\d]*$/u.test(text));
		const isName = (e) => e.matches(':has(> wbr, > .quiet > wbr)'); // method names break between their words
		const found = [];
		const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		for (let n = walker.nextNode(); n; n = walker.nextNode()) {
			const e = n.parentElement;
			if (e.getClientRects().length && !e.closest(DATA) && !isName(e) && !isName(e.parentElement) && left(n.textContent)) found.push(n.textContent.trim());
		}
		for (const e of document.querySelectorAll('[aria-label], [title], [placeholder]'))
			for (const a of ['aria-label', 'title', 'placeholder']) if (left(e.getAttribute(a) ?? '') && !e.closest(DATA)) found.push(`${a}: ${e.getAttribute(a)}`);
		return [...new Set(found)];
	});
}

const PAGES = ['/', '/compare?a=ID&b=ID', '/search', '/fleet', '/fleet/methods', '/fleet/flame', '/fleet/findings', '/fleet/compare', '/regressions', '/anrs', '/locks', '/detectors', '/capture',
	'/builds', '/source', '/retention', '/quarantine', '/notifications', '/keys', '/people', '/audit', '/health', '/traces/ID', '/traces/ID?tab=sql&sql=SELECT+1'];

async function settled(page, language) {
	await page.waitForSelector(`html[lang="${language}"] main h1`);
	await page.waitForLoadState('networkidle');
	await page.waitForFunction(() => !document.querySelector('.busy'));
}

/* Rules of axe that depend on the language: the other rules are checked on the English pages (craft_page, states_page). */
const NAMES_AND_LANGUAGE = ['aria-command-name', 'aria-dialog-name', 'aria-input-field-name', 'aria-meter-name', 'aria-progressbar-name', 'aria-toggle-field-name', 'aria-tooltip-name',
	'button-name', 'document-title', 'empty-heading', 'empty-table-header', 'html-has-lang', 'html-lang-valid', 'image-alt', 'input-button-name', 'label', 'label-content-name-mismatch',
	'label-title-only', 'link-name', 'page-has-heading-one', 'role-img-alt', 'select-name', 'summary-name', 'svg-img-alt', 'valid-lang'];

/* The texts of a page as its address has it, with the language that was chosen. */
async function look(page, at) {
	await page.goto(server.url + at.replaceAll('ID', id));
	await settled(page, 'zh-Hans');
	assert.match(await page.textContent('main'), /\p{Script=Han}/u, at);
	assert.deepEqual(await english(page), [], at);
	assert.deepEqual(await unreadable(page), [], at);
	assert.deepEqual(await violations(page, inFull(undefined, NAMES_AND_LANGUAGE)), [], at);
	if (shots) await page.screenshot({ path: path.join(shots, `chinese${at.replaceAll(/\W+/g, '-')}.png`), fullPage: true });
}

test('every page in Chinese, chosen in the header, and back', async (t) => {
	const page = await open('/');
	assert.equal(await page.getAttribute('html', 'lang'), 'en');
	await page.click('header button[lang="zh-Hans"]');
	await settled(page, 'zh-Hans');
	for (const at of PAGES) await look(page, at);
	await page.click('header button[lang="en"]');
	await settled(page, 'en');
	assert.equal(new URL(page.url()).pathname, `/traces/${id}`, 'the page stays');
	assert.doesNotMatch(await page.textContent('main'), /\p{Script=Han}/u);
	await done(page, t);
});

test('keys and their meaning in Chinese, numbers and the name of a trace as they are', async (t) => {
	const page = await open('/');
	await page.click('header button[lang="zh-Hans"]');
	await settled(page, 'zh-Hans');
	await page.keyboard.press('?');
	await page.waitForSelector('dialog:has-text("下一条、上一条 Trace")');
	assert.deepEqual(await english(page), []);
	await page.keyboard.press('Escape');
	await page.waitForSelector('tr[data-trace] >> text=cold_start');
	await done(page, t);
});

const DEADLOCK = `"main" prio=5 tid=1 Blocked
  at com.example.shop.Cart.total(Cart.java:88)
  - waiting to lock <0x02> (a com.example.shop.Store) held by thread 9
  - locked <0x01> (a com.example.shop.Cart)

"DB-writer" prio=5 tid=9 Blocked
  at com.example.shop.Store.put(Store.java:7)
  - waiting to lock <0x01> (a com.example.shop.Cart) held by thread 1
  - locked <0x02> (a com.example.shop.Store)
`;

test("the server's own sentences: refusals, verdicts, detectors; its answers stay English", async (t) => {
	const anr = await server.trace(DEADLOCK, { query: { app: 'words', scenario: 'anr' } });
	const page = await open('/search');
	const asked = [];
	page.on('request', (r) => asked.push(r.url()));
	await page.click('header button[lang="zh-Hans"]');
	await settled(page, 'zh-Hans');
	assert.equal(asked.some((u) => /\/servermessages-/.test(u)), false, 'loaded with the first sentence, not before');
	const answer = page.waitForResponse((r) => r.url().includes('01ARZ3NDEKTSV4RRFFQ69G5FAV') && r.status() === 404);
	await page.goto(`${server.url}/traces/01ARZ3NDEKTSV4RRFFQ69G5FAV`);
	await page.waitForSelector('[role=alert]:has-text("没有这个 Trace")');
	assert.equal((await (await answer).json()).error.message, 'no such trace');
	assert.ok(asked.some((u) => /\/servermessages-/.test(u)));
	await until(async () => (await server.get(`/api/v1/traces/${anr.id}`)).json.anr_title !== '', 'the cause of the ANR');
	await page.goto(`${server.url}/traces`);
	await page.waitForSelector(`tr[data-trace="${anr.id}"] a.rowlink:has-text("Cart 和 Store 的死锁")`);
	await page.goto(`${server.url}/traces/${anr.id}`);
	await page.waitForSelector('.verdict:has-text("死锁：主线程等待 Store 的锁（由 DB-writer 持有），DB-writer 又在等待 Cart 的锁（由主线程持有）。")');
	assert.equal(await page.locator('#anr h3:has-text("死锁：2 个线程")').count(), 1);
	await page.goto(`${server.url}/traces/${id}`);
	await page.click('#tab-findings');
	await page.waitForSelector('#findings td:has-text("主线程上的")');
	assert.deepEqual(await english(page), []);
	await page.goto(`${server.url}/fleet`);
	await page.waitForSelector('select[name=days] option:has-text("30 天")', { state: 'attached' });
	assert.equal(await page.locator('select[name=class] option').nth(1).textContent(), '低端');
	await done(page, t);
});

test("the browser's language, and what another one loads", async (t) => {
	const loaded = async (locale) => {
		const context = await browser.newContext({ locale, viewport: { width: 1280, height: 900 } });
		const page = await context.newPage();
		const asked = [];
		page.on('request', (r) => asked.push(r.url()));
		await visit(page, server, '/search'); // with the session of the tests before
		await page.waitForSelector('main h1');
		const language = await page.getAttribute('html', 'lang');
		await context.close();
		return [language, asked.map((u) => /(\w+)\.zh-/.exec(u)?.[1]).filter((part) => part && part !== 'search').sort()]; // the search box loads its own when the page is idle
	};
	assert.deepEqual(await loaded('en-US'), ['en', []]);
	assert.deepEqual(await loaded('de-DE'), ['en', []]);
	assert.deepEqual(await loaded('zh-CN'), ['zh-Hans', ['fleet', 'frame']]);
	t.diagnostic('a page loads its own words, and those of the frame');
});

test('the menus of the navigation, by keys and by pointer, on wide and narrow screens', async (t) => {
	const page = await open('/');
	const menu = page.getByRole('button', { name: 'Problems' });
	await menu.focus();
	await page.keyboard.press('ArrowDown');
	await page.waitForFunction(() => document.activeElement?.textContent === 'Regressions');
	assert.equal(await menu.getAttribute('aria-expanded'), 'true');
	assert.deepEqual(await violations(page), []);
	assert.deepEqual(await unreadable(page), []);
	await page.keyboard.press('End');
	await page.waitForFunction(() => document.activeElement?.textContent === 'Detectors');
	await page.keyboard.press('ArrowDown');
	await page.waitForFunction(() => document.activeElement?.textContent === 'Regressions');
	await page.keyboard.press('Escape');
	await page.waitForFunction(() => document.activeElement?.textContent === 'Problems');
	assert.equal(await menu.getAttribute('aria-expanded'), 'false');
	await page.keyboard.press('Enter');
	await page.getByRole('link', { name: 'Locks' }).click();
	await page.waitForSelector('h1:has-text("Locks")');
	assert.equal(await menu.getAttribute('aria-expanded'), 'false', 'closed by going there');
	assert.equal(await menu.getAttribute('aria-current'), 'true');
	await menu.click();
	assert.equal(await page.locator('.places a[aria-current="page"]').textContent(), 'Locks');
	await page.locator('main h1').click();
	assert.equal(await menu.getAttribute('aria-expanded'), 'false', 'closed by a click beside');
	assert.equal(await page.evaluate(() => document.querySelector('header').offsetHeight < 60), true, 'one row at 1280');
	await page.setViewportSize({ width: 360, height: 740 });
	await page.getByRole('button', { name: 'More' }).waitFor();
	assert.equal(await page.evaluate(() => document.querySelector('header').offsetHeight < 84), true, 'two rows at 360');
	await page.getByRole('button', { name: 'More' }).click();
	await page.getByRole('dialog', { name: 'More' }).getByRole('button', { name: 'Sign out' }).waitFor();
	assert.deepEqual(await violations(page), []);
	assert.deepEqual(await unreadable(page), []);
	await page.keyboard.press('Escape');
	assert.equal(await page.getByRole('button', { name: 'Sign out' }).count(), 0);
	await page.getByRole('button', { name: 'Manage' }).click();
	await page.waitForSelector('.places a:has-text("Retention")');
	for (const width of [360, 390]) {
		await page.setViewportSize({ width, height: 740 });
		for (const name of ['Fleet', 'Problems', 'Manage']) {
			if (await page.getByRole('button', { name }).getAttribute('aria-expanded') === 'false') await page.getByRole('button', { name }).click();
			await page.locator('.places > ul:not([hidden])').waitFor();
			assert.deepEqual(await unreadable(page), [], `${name} at ${width}`);
		}
	}
	await done(page, t);
});
