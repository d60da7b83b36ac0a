/*
 * first_day_page.test.mjs - the first day of a new user, from an empty data folder: a file of each format, the slow
 * method, a link for a colleague, two versions, a regression, an ANR group, thresholds, SQL and the server's health.
 * Each step prints its clicks, keys and seconds, and has a limit on clicks and keys. A typed word counts as one key.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { violations } from '../axe.mjs';
import { drop, launch, settled } from '../browser.mjs';
import { root, startServer, tracewell, until } from '../server.mjs';
import { sendSlower } from '../regressed_fleet.mjs';

const FORMATS = ['anr', 'art', 'atrace', 'blockcanary', 'btrace2', 'chrome', 'firefox', 'folded', 'java_samples', 'matrix', 'otlp', 'perf_data', 'perfetto', 'pprof', 'profilo', 'rhea1', 'sentry', 'simpleperf', 'speedscope', 'systrace'];
const FILES = FORMATS.map((f) => [`recording-${f}.bin`, fs.readFileSync(path.join(root, 'tests/golden', f, 'realistic/input'))]);
const ending = [];
let server, browser, page;
const took = { clicks: 0, keys: 0 };
const link = () => tracewell('link', 'create', '--data', server.data, '--url', server.url);

before(async () => {
	server = await startServer({ after: (f) => ending.push(f) });
	browser = await launch();
	page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
});

after(async () => {
	await browser?.close();
	for (const f of ending) await f();
});

async function click(target) {
	took.clicks++;
	await (typeof target === 'string' ? page.locator(target).first() : target).click();
	await settled(page);
}

async function press(key) {
	took.keys++;
	await page.keyboard.press(key);
	await settled(page);
}

async function type(text) {
	took.keys++;
	await page.keyboard.type(text);
	await settled(page);
}

/* A click selects the field's text, and the word replaces it. */
async function fill(field, text) {
	took.clicks++;
	await field.click({ clickCount: 3 });
	await type(text);
}

async function go(menu, name) {
	await click(page.locator('.places > button', { hasText: menu }));
	await click(page.locator('.places a', { hasText: new RegExp(`^${name}$`) }));
}

function step(name, most, act) {
	test(name, async (t) => {
		took.clicks = took.keys = 0;
		const begin = performance.now();
		await act(t);
		t.diagnostic(`${took.clicks} clicks, ${took.keys} keys, ${((performance.now() - begin) / 1000).toFixed(1)} s`);
		assert.ok(took.clicks + took.keys <= most, `${took.clicks} clicks and ${took.keys} keys, at most ${most}`);
		assert.deepEqual(await violations(page), []);
		assert.deepEqual(page.problems, []);
	});
}

step('1. the sign-in link of the first command opens a page that asks for a file', 0, async () => {
	await page.goto(link());
	await page.getByText('Drop trace files anywhere on this page').waitFor();
});

step('2. a file of each format is dropped and can be opened', 0, async () => {
	await drop(page, FILES);
	const uploads = page.getByRole('region', { name: 'Uploads' });
	await until(async () => ((await uploads.locator('li[data-upload=ready] a').count()) === FILES.length ? true : undefined), 'all can be opened', 120);
	const { traces } = (await server.get('/api/v1/traces', { key: server.key('read', 'default'), query: { limit: 100 } })).json;
	assert.deepEqual([...new Set(traces.map((t) => t.state))], ['ready']);
	assert.equal(traces.length, FILES.length);
});

step('3. the slow method of a recording, from the list', 3, async () => {
	await click(page.getByRole('link', { name: 'Traces', exact: true }));
	await click(page.getByRole('link', { name: 'recording-sentry.bin' }).last());
	await page.waitForSelector('[data-ready]');
	await click(page.getByRole('tab', { name: 'Methods', exact: true }));
	const id = page.url().match(/traces\/(\w+)/)[1];
	const { json } = await server.get(`/api/v1/traces/${id}/methods`, { key: server.key('read', 'default') });
	const slowest = json.methods.reduce((a, b) => (b.self_ns > a.self_ns ? b : a));
	assert.match(await page.locator('.methods tbody tr').first().innerText(), new RegExp(slowest.name.split('.').pop().replace(/\W/g, '\\$&')));
});

step('4. the address is the link: a colleague sees the same tab', 0, async () => {
	const colleague = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
	await colleague.goto(link());
	await colleague.waitForSelector('nav[aria-label="Pages"]');
	await colleague.goto(page.url());
	await colleague.waitForSelector('.methods tbody tr');
	assert.equal(await colleague.locator('.methods tbody tr').first().innerText(), await page.locator('.methods tbody tr').first().innerText());
	await colleague.context().close();
});

step('5. two versions are compared, once devices sent them', 2, async () => {
	await sendSlower({ post: (at, body, of) => server.post(at, body, { ...of, key: (server.first ??= server.key('write', 'default')) }), put: (at, body) => server.put(at, body, { key: server.first ??= server.key('write', 'default') }),
		get: (at) => server.get(at, { key: (server.reads ??= server.key('read', 'default')) }) });
	await go('Fleet', 'Compare');
	await page.locator('.verdict', { hasText: /slower.*Repo\.load|Repo\.load.*slower/s }).waitFor();
});

step('6. thresholds for regressions are set, and one is found', 6, async () => {
	await go('Problems', 'Regressions');
	await fill(page.locator('#thresholds [name=min_days]'), '1');
	await click('#thresholds button.primary');
	await click(page.getByRole('button', { name: 'Check now' }));
	await page.locator('tr[data-regression]', { hasText: 'com.app.Repo.load' }).waitFor();
});

step('7. a method is found by a part of its name', 3, async () => {
	await press('/');
	await type('Repo.load');
	await page.locator('[role=option][aria-selected=true]', { hasText: 'com.app.Repo.load' }).waitFor();
	await press('Enter');
	await page.waitForURL(/\/fleet\/methods\?.*method=com\.app\.Repo\.load/);
});

step('8. the regression is answered in the inbox', 4, async () => {
	await click(page.locator('.top nav a', { hasText: /^Inbox$/ }));
	const rows = page.locator('tr[data-item^="regression"]');
	await rows.first().waitFor();
	const title = await rows.first().getAttribute('data-item');
	const at = await page.locator('tr[data-item]').evaluateAll((all, id) => all.findIndex((r) => r.dataset.item === id), title);
	for (let i = 0; i <= at; i++) await page.keyboard.press('j');
	took.keys++;
	await press('a');
	await page.locator(`tr[data-item="${title}"]`, { hasText: 'Acknowledged' }).waitFor();
});

step('9. a threshold is set where a change is too small to report', 3, async () => {
	await page.goto(`${server.url}/regressions`);
	await click('tr[data-regression] button:visible'); // the other one is acknowledged, and folded
	const offer = page.getByRole('button', { name: /^report only changes above \d+ %$/ });
	const above = Number(/\d+/.exec(await offer.textContent())[0]) / 100;
	await click(offer);
	await page.locator('#thresholds [name=min_change]:focus').waitFor();
	await press('Enter');
	await until(async () => ((await server.get('/api/v1/regressions/rules', { key: server.reads })).json.min_change === above ? true : undefined), 'stored');
	await page.locator('#thresholds [name=min_change]:focus').waitFor();
});

step('10. a group of ANRs is muted', 4, async () => {
	await click(page.locator('.top nav a', { hasText: /^Inbox$/ }));
	await click('tr[data-item^="anr"] a');
	await page.waitForURL(/\/anrs\//);
	await click(page.getByRole('button', { name: 'Mute for 7 days' }));
	await page.getByText(/muted until/i).waitFor();
	await page.locator('button:focus', { hasText: 'Unmute' }).waitFor();
});

step('11. an alert rule is added where its figure is seen, with a preview', 3, async () => {
	await click(page.locator('.top nav a', { hasText: /^Overview$/ }));
	await click(page.getByRole('link', { name: 'Alert on slower' }));
	const form = page.getByRole('form', { name: 'A new alert rule' });
	await form.getByText(/Above the threshold now: 0 of \d/).waitFor();
	await click(form.getByRole('button', { name: 'Add' }));
	await page.locator('tr[data-rule]', { hasText: 'slower: p95, duration' }).waitFor();
	await page.locator('button:focus', { hasText: 'Add an alert rule' }).waitFor();
	assert.equal(new URL(page.url()).search, '');
});

step('12. SQL on a trace', 3, async () => {
	await click(page.locator('.top nav a', { hasText: /^Traces$/ }));
	await click('tr[data-trace] td.wide a');
	await page.waitForSelector('[data-ready]');
	await click(page.getByRole('tab', { name: 'SQL', exact: true }));
	await page.locator('#sql tbody tr').first().waitFor();
});

step('13. the state of the server', 2, async () => {
	await go('Manage', 'Health');
	await page.getByText('All checks pass').waitFor();
});
