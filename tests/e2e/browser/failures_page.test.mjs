/*
 * Failures while the page is open: each is reported with a remedy, and the page continues to work.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { settled, signIn, tab } from '../browser.mjs';
import { btrace, sampleMapping, sampleTrace } from '../make.mjs';
import { HOSTILE, browser, done, id, open, openTrace, server } from '../page.mjs';
import { root, startServer, until } from '../server.mjs';

const query = (page) => new URL(page.url()).searchParams;

test('a part of the page that fails to load can be retried, at the same address', async (t) => {
	const page = await open('/builds');
	let broken = true;
	await page.route(/\/assets\/trace-/, (route) => (broken ? route.abort() : route.continue()));
	await page.goto(`${server.url}/traces/${id}?find=okhttp3`);
	await page.waitForSelector('[role=alert] >> text=The page is incomplete.');
	broken = false;
	await page.click('text=Reload the page');
	await page.waitForSelector('[data-ready]');
	assert.equal(query(page).get('find'), 'okhttp3');
	await done(page, t);
});

test('a refusal for a moment is named, and the request repeated', async (t) => {
	const page = await open('/traces');
	let refusals = 2;
	await page.route('**/api/v1/traces/*/methods*', (route) => (refusals-- > 0 ? route.fulfill({ status: 503, headers: { 'Retry-After': '1' }, contentType: 'application/json', body: '{"error":{"status":"busy","message":"too much at once"}}' }) : route.continue()));
	await page.goto(`${server.url}/traces/${id}?tab=methods`);
	await page.waitForSelector('[role=alert]:has-text("The server is temporarily unavailable.") >> text=The page will try again.');
	await page.waitForSelector('.methods tbody tr');
	assert.equal(await page.locator('[role=alert]').count(), 0);
	await done(page, t);
});

test('a request that is refused each time is not repeated for ever', async (t) => {
	const page = await open('/traces');
	let asked = 0;
	await page.route('**/api/v1/traces/*/methods*', (route) => (asked++, route.fulfill({ status: 503, headers: { 'Retry-After': '0.1' }, body: 'busy' })));
	await page.goto(`${server.url}/traces/${id}?tab=methods`);
	const again = page.locator('text=The page will try again.');
	await again.waitFor();
	await again.waitFor({ state: 'detached' });
	const before = asked;
	assert.ok(before >= 4, `${before}`);
	await page.click('text=Try again');
	await until(() => (asked === before + 1 ? true : undefined), 'another request by hand');
	await settled(page);
	assert.equal(asked, before + 1);
	await done(page, t);
});

test('a request that exceeds its time is not repeated', async (t) => {
	const page = await open('/traces');
	let asked = 0;
	await page.route('**/api/v1/traces/*/methods*', (route) => (asked++, route.fulfill({ status: 504, headers: { 'Retry-After': '0.1' }, contentType: 'application/json', body: '{"error":{"status":"deadline","message":"the query took too long"}}' })));
	await page.goto(`${server.url}/traces/${id}?tab=methods`);
	await page.waitForSelector('[role=alert]:has-text("took too long")');
	assert.equal(await page.locator('text=The page will try again.').count(), 0);
	const before = asked;
	await settled(page);
	assert.equal(asked, before);
	await done(page, t);
});

test('a change that is refused for a moment is not said to be repeated', async (t) => {
	const page = await open('/traces');
	let asked = 0;
	await page.goto(`${server.url}/signin`);
	await page.route('**/api/v1/session*', (route) => (route.request().method() === 'POST' ? (asked++, route.fulfill({ status: 429, headers: { 'Retry-After': '1' }, contentType: 'application/json', body: '{"error":{"status":"too_many","message":"too many attempts"}}' })) : route.continue()));
	await page.fill('[name=name]', 'ann');
	await page.fill('[name=password]', 'a password');
	await page.click('main form button');
	await page.waitForSelector('[role=alert]:has-text("Too many attempts.")');
	assert.equal(await page.locator('text=The page will try again.').count(), 0);
	assert.equal(asked, 1);
	await done(page, t);
});

test('a session that the server cannot check yet is asked for again', async (t) => {
	const page = await open('/traces');
	let refusals = 1;
	await page.route('**/api/v1/session*', (route) => (refusals-- > 0 ? route.fulfill({ status: 502, contentType: 'text/html', body: '<h1>Bad Gateway</h1>' }) : route.continue()));
	await page.goto(`${server.url}/traces`);
	await page.waitForSelector('[role=alert]:has-text("The server returned 502.")');
	await page.waitForSelector('main td');
	await done(page, t);
});

test('a part whose code does not arrive while the server is away is loaded when it is back', async (t) => {
	const page = await open('/traces');
	await page.waitForSelector('main td');
	await page.waitForLoadState('networkidle');
	let gone = true;
	await page.route(/\/assets\/|\/api\//, (route) => (gone ? route.abort() : route.continue()));
	await page.locator('.top nav a[href^="/inbox"]').click();
	await page.waitForSelector('.away');
	await page.waitForSelector('[role=alert] >> text=The page is incomplete.');
	gone = false;
	await page.waitForSelector('h1:has-text("Inbox")');
	await done(page, t);
});

test('an unavailable server is reported, the content remains, and the page continues when it is back', async (t) => {
	const page = await openTrace();
	await page.waitForSelector('[data-flame]');
	await page.waitForLoadState('networkidle');
	let gone = true;
	await page.route('**/api/**', (route) => (gone ? route.abort() : route.continue()));
	const drawn = page.locator('.timeline [data-ready]');
	const calls = await drawn.innerText();
	await page.click('text=Bottom-up');
	await page.waitForSelector('[role=alert] >> text=The server is not responding.');
	assert.equal(await drawn.innerText(), calls);
	gone = false;
	await page.waitForSelector('.away', { state: 'detached' });
	await page.waitForSelector('[data-flame]');
	assert.equal(await page.locator('[role=alert]').count(), 0);
	assert.equal(query(page).get('view'), 'bottom_up');
	await done(page, t);
});

test('calls that could not be loaded while the server was away come when it is back', async (t) => {
	const page = await openTrace();
	let gone = true;
	await page.route('**/api/**', (route) => (gone ? route.abort() : route.continue()));
	await page.locator('.threads .name').nth(1).press('Enter');
	await page.waitForSelector('.timeline [role=alert]');
	await page.waitForSelector('.away');
	gone = false;
	await page.waitForSelector('.away', { state: 'detached' });
	await page.waitForSelector('[data-ready] >> text=2 open threads');
	await done(page, t);
});

test('a trace deleted while it is open is reported, and what was loaded remains', async (t) => {
	const trace = (await server.trace(sampleTrace(70))).id;
	const page = await open(`/traces/${trace}`);
	await page.waitForSelector('[data-ready]');
	await page.waitForSelector('[data-flame]');
	const answer = await page.evaluate(async (at) => (await fetch(at, { method: 'DELETE', headers: { 'X-Tracewell': '1' } })).status, `/api/v1/traces/${trace}`);
	assert.equal(answer, 204);
	await page.click('text=Bottom-up');
	await page.waitForSelector('[role=alert] >> text=This trace was deleted.');
	assert.ok(await page.locator('.timeline [data-ready]').isVisible());
	await page.click('main .notice >> text=All traces');
	await page.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
	await done(page, t);
});

test('a mapping that arrives refreshes the names, is announced, and keeps the view', async (t) => {
	const trace = (await server.trace(sampleTrace(60), { query: { build_id: 'meanwhile' } })).id;
	const page = await open(`/traces/${trace}?tab=methods`);
	await page.waitForSelector('[data-ready]');
	await page.waitForSelector('.methods >> text=/unknown:\\d+/');
	const span = await server.get(`/api/v1/traces/${trace}`);
	await page.goto(`${server.url}/traces/${trace}?from=${span.json.start_ns + 1000}&to=${span.json.start_ns + 90000}&view=bottom_up&tab=methods`);
	await page.waitForSelector('[data-ready]');
	const before = await page.locator('.under .quiet').first().innerText();
	await server.put('/api/v1/builds/meanwhile/methods', sampleMapping);
	await page.waitForSelector('[role=status] >> text=A mapping arrived: 6 of 6 method ids now have names.'); // by itself
	await page.waitForFunction(() => /method\d/.test(document.querySelector('.methods').innerText));
	await page.waitForFunction((text) => document.querySelector('.under .quiet')?.innerText === text, before); // once the calls are there again
	assert.equal(query(page).get('view'), 'bottom_up');
	await page.click('[role=status] >> text=Close');
	await done(page, t);
});

test('a link of another version: unknown parameters are named, the rest is shown', async (t) => {
	const page = await openTrace('?find=okhttp3&hologram=3&t=explode:4,recursion');
	const notice = page.locator('.notice:has-text("Some link parameters were ignored.")');
	await notice.waitFor();
	assert.deepEqual(await notice.locator('code').allInnerTexts(), ['hologram', 'the step explode:4']);
	assert.equal(await page.inputValue('.search input'), 'okhttp3');
	await page.waitForSelector('.step:has-text("recursion as one frame")');
	await notice.locator('button').click();
	await notice.waitFor({ state: 'detached' });
	await settled(page);
	assert.deepEqual([query(page).get('hologram'), query(page).get('t'), query(page).get('find')], [null, 'recursion', 'okhttp3']);
	await done(page, t);
});

test('values of a link that mean nothing here are named, with what is shown instead', async (t) => {
	const page = await openTrace('?view=hologram&metric=cpu&thread=999999&sort=colour&order=up&root=x&threads=all&t=focus:99999,recursion');
	const notice = page.locator('.notice:has-text("Some link parameters were ignored.")');
	await notice.waitFor();
	assert.deepEqual((await notice.locator('code').allInnerTexts()).sort(), ['metric=cpu', 'order=up', 'root=x', 'sort=colour', 'the step focus:99999', 'thread=999999', 'view=hologram']);
	assert.match(await notice.innerText(), /view=hologram top-down; metric=cpu wall time; thread=999999 the first thread/);
	await page.waitForSelector('[aria-pressed=true]:has-text("Top-down")');
	await page.waitForSelector('[data-flame] canvas');
	await tab(page, 'Methods');
	await page.waitForSelector('th[aria-sort=descending]:has-text("Running")');
	assert.equal(await page.locator('[role=alert]').count(), 0);
	await notice.locator('button').click();
	await notice.waitFor({ state: 'detached' });
	await settled(page);
	assert.equal(new URL(page.url()).search, '?threads=all&t=recursion&tab=methods');
	await done(page, t);
});

test('a thread without calls that a link names is shown, with a note that it has none', async (t) => {
	const trace = (await server.trace(fs.readFileSync(path.join(root, 'tests/golden/systrace/realistic/input')))).id;
	const { threads } = (await server.get(`/api/v1/traces/${trace}/threads`)).json;
	const idle = threads.find((x) => x.slices === 0);
	const page = await open(`/traces/${trace}?thread=${idle.tid}`);
	await page.waitForSelector('[data-ready]');
	const picked = page.locator('.threads .name[aria-pressed=true]');
	assert.equal(await picked.locator('.num').innerText(), String(idle.tid));
	await page.waitForSelector('.panel[aria-label="Merged flame graph"] >> text=has no calls.');
	assert.equal(await page.locator('text=Some link parameters').count(), 0);
	assert.equal(await page.locator('.threads .name[aria-pressed]').count(), threads.filter((x) => x.slices > 0).length + 1, 'other threads without calls stay hidden');
	await done(page, t);
});

test('a link of this version is understood whole', async (t) => {
	const trace = (await server.get(`/api/v1/traces/${id}`)).json;
	const { tid } = (await server.get(`/api/v1/traces/${id}/threads`)).json.threads[0];
	const page = await openTrace(`?from=${trace.start_ns}&to=${trace.end_ns}&a=${trace.start_ns}&b=${trace.end_ns}&threads=all&view=sandwich&method=1&metric=count&open=${tid}&idle=1&note=gc&stack=1&anr=x&anrstate=Blocked&waits=1&dump=0&sort=name&order=asc&filter=a&rows=50&counters=all&sel=${tid}&skip=1&root=1`);
	assert.equal(await page.locator('text=Some link parameters').count(), 0);
	await done(page, t);
});

test('a session that has ended is reported; after signing in again the page is unchanged', async (t) => {
	const page = await openTrace('?find=okhttp3');
	await page.waitForSelector('[data-flame]');
	await page.waitForLoadState('networkidle');
	await page.context().clearCookies();
	await page.click('text=Bottom-up');
	await page.waitForSelector('[role=alert] >> text=Your session has ended.');
	await page.click('summary:has-text("With a key")');
	await page.fill('input[name=token]', server.write);
	await page.click('text=Sign in with the key');
	await page.waitForSelector('[data-ready]');
	await page.waitForSelector('[aria-pressed=true]:has-text("Bottom-up")');
	assert.equal(await page.inputValue('.search input'), 'okhttp3');
	await done(page, t);
});

/* Names as an attacker would choose them: markup, and far too long; in every view of the page. */
test('markup and names of 1 MB remain text, and no view breaks', async (t) => {
	const s = await startServer(t);
	const long = 'com.example.' + 'L'.repeat(1 << 20);
	await s.put('/api/v1/builds/names/methods', `1,1,${HOSTILE.replaceAll(' ', '\u00a0')} run ()V\n2,1,${long} go ()V\n3,1,a.B c ()V\n`);
	const records = [[4000, 2, 1e6 + 1000, 2000], [4000, 3, 1e6 + 4000, 1000], [4000, 1, 1e6, 9000]];
	const trace = await s.trace(btrace(records), { query: { build_id: 'names', app: HOSTILE, scenario: HOSTILE } });
	const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	page.on('dialog', (d) => { page.problems.push(d.message()); d.dismiss(); });
	await signIn(page, s);
	const sound = async (where) => {
		assert.equal(await page.locator('main img').count(), 0, where);
		assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${where}: nothing sticks out`);
		assert.deepEqual(page.problems, [], where);
	};
	await page.waitForSelector('td a');
	await sound('list');
	await page.goto(`${s.url}/builds`);
	await page.waitForSelector('td');
	await sound('builds');
	for (const view of ['top_down', 'bottom_up', 'sandwich&method=0', 'sandwich&method=1', 'top_down&t=focus:0,merge:1']) {
		await page.goto(`${s.url}/traces/${trace.id}?view=${view}&find=L`);
		await page.waitForSelector('[data-ready]');
		await sound(view);
		await tab(page, 'Methods');
		await page.waitForSelector('.methods tbody tr');
		await page.click('text=Visible calls as a table');
		await page.waitForSelector('.short td');
		const tallest = await page.locator('.methods tbody tr').evaluateAll((rows) => Math.max(...rows.map((r) => r.getBoundingClientRect().height)));
		assert.ok(tallest < 100, `${view}: a row of ${tallest} px`);
		await sound(view);
	}
	await page.context().close();
});

test('names cannot reorder the text around them, in any list, title or label', async (t) => {
	const s = await startServer(t);
	const [spoof, arabic] = ['com.app.\u05e7\u05d5\u05d3\u202efdp.exe', '\u062a\u0637\u0628\u064a\u0642'];
	await s.put('/api/v1/builds/bidi/methods', `1,1,${spoof} run ()V\n2,1,${arabic} go ()V\n`);
	const trace = await s.trace(btrace([[4000, 2, 1e6 + 1000, 2000], [4000, 1, 1e6, 9000]]), { query: { build_id: 'bidi', app: arabic, version_name: '9.1', scenario: spoof, device: spoof } });
	const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
	await signIn(page, s);
	const sound = async (where) => {
		const found = await page.evaluate(() => {
			const shown = [...document.querySelectorAll('body *')].flatMap((e) => [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).concat(e.title ?? '', e.ariaLabel ?? ''));
			return shown.filter((text) => /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(text));
		});
		assert.deepEqual(found, [], where);
		assert.match(await page.innerText('body'), /\[U\+202E\]fdp\.exe/, where);
	};
	for (const [where, whole] of [['/traces', 'main td'], ['/', '#newest td'], [`/traces/${trace.id}?tab=methods`, '.methods tbody tr'], [`/traces/${trace.id}?tab=tree`, '.treerow[aria-level="2"]']]) {
		await page.goto(s.url + where);
		await page.waitForSelector(whole);
		await settled(page);
		await sound(where);
	}
	/* the version follows the name of the app on its right */
	const [app, version] = await page.locator('h1 bdi').evaluateAll((all) => all.map((e) => e.getBoundingClientRect().left));
	assert.ok(app < version);
	assert.match(await page.title(), /^\u2068[^\u2068\u2069]+\u2069 · tracewell$/);
	await page.context().close();
});
