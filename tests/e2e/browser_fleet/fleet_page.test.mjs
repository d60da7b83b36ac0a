/*
 * Pages of the fleet, over a small fleet with known values: from the overview to a regression and its first
 * day; methods sorted, filtered and restored from the address; hostile names, empty results, panels that
 * fail separately; in light and dark.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { violations } from '../axe.mjs';
import { THEMES, navigate, settled, unreadable } from '../browser.mjs';
import * as readers from '../export_readers.mjs';
import { btrace, zip } from '../make.mjs';
import { HOSTILE, done, open, server, shots } from '../page.mjs';
import { root, until } from '../server.mjs';
import { look } from '../regressed_fleet.mjs';

const PID = 4200, EACH = 24, MS = 1_000_000;
const VERSIONS = ['9.8.0', '9.9.0', '9.10.0']; /* the last one is slower, and the latest by number alone */
const SLOWER = 1.5;
const name = HOSTILE.replaceAll(' ', '\u00a0');
const mapping = ['# v', '1,1,com.shop.Main start ()V', '2,1,com.shop.Repo load ()V', `3,1,com.shop.${name} draw ()V`, ''].join('\n');
const loadOf = (version, i) => Math.round((8 * MS + i * 120_000) * (version === '9.10.0' ? SLOWER : 1));
const rank = (values, percent) => [...values].sort((a, b) => a - b)[Math.ceil((values.length * percent) / 100) - 1];

const trace = (load) => btrace([[PID, 2, 2 * MS, load], [PID, 3, 2 * MS + load + 1000, MS], [PID, 1, MS, load + 4 * MS]], { pid: PID });

async function send(version, i) {
	const sent = await server.post('/api/v1/traces', trace(loadOf(version, i)), { query: { app: 'fleet', version_name: version, build_id: `f${version}`, scenario: 'open_cart', os: i % 2 ? '14' : '15', device: `phone ${i % 2}`,
		labels: JSON.stringify({ ram_mb: i % 3 ? 8192 : 2048 }) }, headers: { 'Idempotency-Key': `fleet-page-${version}-${i}` } });
	assert.ok(sent.status <= 202, sent.text);
}

/* There once, whichever test is first. */
async function fleet() {
	await server.ask('PUT', '/api/v1/fleet/labels', { key: server.write, body: '{"labels":["device"]}' });
	for (const version of VERSIONS) {
		await server.put(`/api/v1/builds/f${version}/methods`, mapping);
		for (let i = 0; i < EACH; i++) await send(version, i);
	}
	await server.trace(fs.readFileSync(path.join(root, 'tests/golden/anr/realistic/input')), { query: { app: 'fleet', scenario: 'anr' } });
	await server.trace(trace(loadOf('9.10.0', 0)), { query: { app: 'fleet', scenario: 'of no device' } });
	await server.trace(zip({ 'a.txt': Buffer.from('nothing') }), { query: { app: 'fleet', scenario: 'open_cart' } });
	await until(async () => {
		const { json } = await server.get('/api/v1/fleet/methods?scenario=open_cart');
		return json?.traces === VERSIONS.length * EACH && json.methods.length === 3 && json.methods.every((m) => m.resolved) ? true : undefined;
	}, 'all are counted and named', 120);
	await server.ask('PUT', '/api/v1/regressions/rules', { key: server.write, body: JSON.stringify({ min_days: 1, min_traces: 5 }) });
	await look(server);
}
let made;
const ready = () => (made ??= fleet());

/* "12.3 ms" in ns */
const nsOf = (text) => parseFloat(text) * { ns: 1, µs: 1e3, ms: MS, s: 1e9 }[text.trim().split(' ')[1]];
const near = (text, truth, error = 0.03) => assert.ok(Math.abs(nsOf(text) - truth) <= truth * error, `${text} for ${truth}`);
const OVERVIEW = '/fleet?app=fleet';
const whole = async (page) => {
	for (const one of ['#intake dl', '#scenarios tbody', '#slower tbody tr', '#topanrs tbody tr', '#slowest tbody tr']) await page.waitForSelector(one);
};

test('from the overview to the slow method and the version that made it slow', async (t) => {
	await ready();
	const page = await open('/');
	await navigate(page, 'Overview');
	await whole(page);
	const versions = await page.locator('#scenarios tr[data-scenario=open_cart]').evaluateAll((rows) => rows.map((r) => r.dataset.version));
	assert.deepEqual(versions, [...VERSIONS].reverse(), 'the newest first, 10 after 9');
	const cells = await page.locator('#scenarios tr[data-version="9.10.0"] td').allInnerTexts();
	const lengths = Array.from({ length: EACH }, (_, i) => loadOf('9.10.0', i) + 4 * MS);
	for (const [at, percent] of [[1, 50], [3, 75], [4, 95]]) near(cells[at], rank(lengths, percent));
	assert.match(cells[2], /^\+3\d %$/);
	const change = await page.locator('#slower tr:has-text("Duration of open_cart") td').nth(1).innerText();
	assert.equal(cells[2], change, 'one change has one figure');
	await page.click('#slower tr:has-text("Repo.load") a:has-text("over versions")');
	await page.waitForSelector('#method tr[data-point]');
	const points = await page.locator('#method tr[data-point]').evaluateAll((rows) => rows.map((r) => [r.dataset.point, ...[...r.cells].map((c) => c.textContent)]));
	assert.deepEqual(points.map((p) => p[0]), [...VERSIONS].reverse());
	assert.match(points[0].at(-2), /^\+(49|50|51) %$/, 'slower by what was made');
	assert.match(points[1].at(-2), /0 %$|^–$/);
	for (const [i, version] of [...VERSIONS].reverse().entries())
		for (const [at, percent] of [[3, 50], [4, 75], [5, 95], [6, 99]]) near(points[i][at], rank(Array.from({ length: EACH }, (_, k) => loadOf(version, k)), percent));
	await page.waitForSelector('text=accurate to within 1.6 %');
	assert.equal(await page.locator('#method g[data-mark]').count(), VERSIONS.length);
	await page.click('#method tr[data-point="9.10.0"] a:has-text("slowest trace")');
	await page.waitForSelector('[data-ready]');
	assert.equal(new URL(page.url()).searchParams.get('find'), 'com.shop.Repo.load');
	await page.goBack();
	await page.waitForSelector('#method tr[data-point]');
	await page.click('text=Its calls in all traces');
	await page.waitForSelector('form.search [name=method]');
	assert.equal(await page.inputValue('form.search [name=method]'), 'com.shop.Repo.load');
	await done(page, t);
});

test('links of the overview keep its filter and lead to the slowest trace', async (t) => {
	await ready();
	const page = await open('/fleet?app=fleet&os=14&days=90');
	await page.waitForSelector('#intake a');
	const row = page.locator('#scenarios tr[data-scenario=open_cart][data-version="9.10.0"]');
	const since = String((Math.floor(Date.now() / 86_400_000) - 89) * 86_400_000);
	const target = async (locator) => Object.fromEntries(new URL(await locator.evaluate((a) => a.href)).searchParams);
	const filter = { app: 'fleet', os: '14', recorded_since: since, scenario: 'open_cart', sort: 'duration' };
	assert.deepEqual(await target(row.locator('th a').first()), filter);
	const traces = row.locator('td:nth-last-child(2) a');
	assert.deepEqual(await target(traces), { ...filter, version_name: '9.10.0' });
	assert.deepEqual(await target(page.locator('#intake a').first()), { app: 'fleet', os: '14', recorded_since: since });
	const n = await traces.innerText();
	const slowest = await row.locator('a', { hasText: 'slowest trace' }).evaluate((a) => a.pathname);
	await traces.click();
	await page.waitForSelector(`h1:has-text("Traces") ~ span:has-text("${n} match")`);
	assert.equal(await page.locator('main td a.rowlink').first().evaluate((a) => a.pathname), slowest, 'the first of the list');
	await page.goto(`${server.url}/fleet?app=fleet`);
	await whole(page);
	await page.locator('#slower tr', { hasText: 'Duration of open_cart' }).locator('a.slower').click();
	await page.waitForSelector('tr[data-regression] button[aria-expanded=true] >> text=Duration of open_cart');
	await done(page, t);
});

test('the merged flame graph: opened by clicks, searched, centered on a method, as a file', async (t) => {
	await ready();
	const page = await open('/fleet/methods?app=fleet&scenario=open_cart');
	await navigate(page, 'Flame graph');
	await page.goto(`${server.url}/fleet/flame?app=fleet&scenario=open_cart`);
	const drawn = (view) => page.waitForSelector(`[data-flame=${view}] canvas`);
	const keyed = page.locator('#flame .keyed').last();
	const at = () => new URL(page.url()).searchParams;
	await drawn('top_down');
	const loads = VERSIONS.flatMap((v) => Array.from({ length: EACH }, (_, i) => loadOf(v, i))), mean = loads.reduce((a, b) => a + b) / loads.length;
	await page.locator('[data-flame] canvas').focus();
	for (const name of ['main', 'com.shop.Main.start', 'com.shop.Repo.load']) {
		await page.keyboard.press('ArrowDown');
		assert.ok((await keyed.innerText()).startsWith(name), await keyed.innerText());
	}
	const facts = await keyed.innerText();
	near(facts.match(/per trace ([\d.]+ \S+),/)[1], mean, 0.01);
	assert.match(facts, /calls 1, .*in 72 of 72 traces$/);
	await page.keyboard.press('Enter');
	await page.waitForSelector('nav.crumbs [aria-current=true]:has-text("Repo.load")');
	assert.equal(at().get('at'), 'com.shop.Repo.load');
	await page.reload();
	await page.waitForSelector('nav.crumbs [aria-current=true]:has-text("Repo.load")');
	/* numbers of methods are those of the traces of a link: others are not shown as if they were the same */
	await page.goto(page.url().replace('Repo.load', 'Repo.other'));
	await page.click('text=Show the whole graph');
	await drawn('top_down');
	assert.equal(at().get('root'), null);
	await page.fill('[name=find]', '/repo/');
	await page.waitForSelector('.hits >> text=1 of 4 frames');
	await page.click('#flame >> text=Bottom-up');
	await drawn('bottom_up');
	await page.click('#flame >> text=Children as a table');
	const [self, load] = [page.locator('#flame td.name').first(), page.locator('#flame tr:has(td.name:has-text("Repo.load")) td.num').first()];
	assert.equal(await self.innerText(), 'com.shop.Repo.load');
	near(await load.innerText(), mean, 0.01);
	/* the menu of a method; a thread has none */
	await page.goto(`${server.url}/fleet/flame?app=fleet&scenario=open_cart`);
	await drawn('top_down');
	await page.locator('[data-flame] canvas').focus();
	for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowDown');
	await page.keyboard.press('m');
	await page.click('[role=menuitem] >> text=Callers and callees');
	await drawn('bottom_up');
	await drawn('top_down');
	assert.equal(at().get('method'), 'com.shop.Repo.load');
	await page.locator('[data-flame=bottom_up] canvas').focus();
	for (const name of ['com.shop.Main.start', 'main']) {
		await page.keyboard.press('ArrowUp');
		assert.ok((await page.locator('#flame .keyed').first().innerText()).startsWith(name));
	}
	const saved = async (label) => {
		const [file] = await Promise.all([page.waitForEvent('download'), page.locator(`[data-flame=top_down] >> text=${label}`).click()]);
		return fs.readFileSync(await file.path());
	};
	const sum = loads.reduce((a, b) => a + b);
	assert.equal(String(await saved('Folded stacks')), `com.shop.Repo.load ${sum}\n`);
	assert.equal(readers.pprof(await saved('pprof')).methods.get('com.shop.Repo.load').self, sum);
	assert.equal(await page.locator('[data-flame=bottom_up] >> text=pprof').count(), 0);
	assert.deepEqual([await unreadable(page), await violations(page)], [[], []]);
	await page.click('[aria-label="Show the whole graph"]');
	await page.waitForSelector('.sandwich', { state: 'detached' });
	await drawn('top_down');
	await page.locator('[data-flame] canvas').click({ position: { x: 300, y: 30 } });
	await page.waitForSelector('nav.crumbs');
	await page.selectOption('[name=version_name]', '9.10.0');
	await page.waitForSelector('nav.crumbs', { state: 'detached' });
	await page.waitForSelector('text=means of 24 traces');
	await done(page, t);
});

test('one of two overloads is opened in the merged flame graph', async (t) => {
	await server.put('/api/v1/builds/overloads/methods', ['# v', '1,1,com.shop.Main start ()V', '2,1,com.shop.Repo get (I)V', '3,1,com.shop.Repo get (J)V', ''].join('\n'));
	await server.trace(btrace([[PID, 2, 2 * MS, 8 * MS], [PID, 3, 11 * MS, 4 * MS], [PID, 1, MS, 16 * MS]], { pid: PID }), { query: { app: 'overloads', build_id: 'overloads' } });
	await until(async () => (await server.get('/api/v1/fleet/flame?app=overloads')).json?.names?.some((n) => n.name === 'com.shop.Repo.get'), 'it is counted and named', 60);
	const page = await open('/fleet/flame?app=overloads');
	await page.waitForSelector('[data-flame=top_down] canvas');
	await page.locator('[data-flame] canvas').focus();
	for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowDown');
	assert.ok((await page.locator('#flame .keyed').last().innerText()).startsWith('com.shop.Repo.get(int)'));
	await page.keyboard.press('Enter');
	await page.waitForSelector('nav.crumbs [aria-current=true]:has-text("Repo.get")');
	await page.waitForSelector('[data-flame=top_down] canvas');
	await done(page, t);
});

test('a method lists its callers and callees, with links', async (t) => {
	await ready();
	const page = await open('/fleet/methods?app=fleet&scenario=open_cart&method=com.shop.Repo.load');
	await page.waitForSelector('#callers tr[data-near]');
	const cells = (row) => page.locator(`#callers ${row} td`).allInnerTexts();
	const loads = VERSIONS.flatMap((v) => Array.from({ length: EACH }, (_, i) => loadOf(v, i))), mean = loads.reduce((a, b) => a + b) / loads.length;
	const [who, share, each, calls] = await cells('tr[data-near]');
	assert.deepEqual([who, share, calls], ['com.shop.Main.start', '100 %', String(loads.length)]);
	near(each, mean, 0.01);
	await page.click('#callers tr[data-near="com.shop.Main.start"] a');
	await page.waitForSelector('#callers tr[data-near=main] >> text=threads main');
	assert.equal(new URL(page.url()).searchParams.get('method'), 'com.shop.Main.start');
	const called = await page.locator('#callers tr[data-near] td:first-child').allInnerTexts();
	assert.deepEqual(called, ['threads main', 'com.shop.Repo.load', `com.shop.${name}.draw`]);
	near((await cells('tr:has-text("self time")'))[2], 3 * MS, 0.01);
	assert.equal(parseFloat((await cells('tr[data-near="com.shop.Repo.load"]'))[1]), Math.round((100 * mean) / (mean + 4 * MS)));
	/* of one kind of threads */
	await server.trace(btrace([[PID, 1, MS, 5 * MS], [PID + 1, 2, MS, 3 * MS]], { pid: PID }), { query: { app: 'pools', version_name: '9.10.0', build_id: 'f9.10.0', scenario: 'two_threads' } });
	await until(async () => ((await server.get('/api/v1/fleet/callers?scenario=two_threads&name=com.shop.Repo.load')).json?.of_traces === 1 ? true : undefined), 'it is merged', 120);
	const names = () => page.locator('#callers tr[data-near] td:first-child').allInnerTexts();
	await page.goto(`${server.url}/fleet/methods?app=pools&scenario=two_threads&method=com.shop.Repo.load`);
	await page.waitForSelector('#callers tr[data-near]');
	const [pool] = await names();
	assert.match(pool, /^threads (?!main)/);
	const field = page.getByLabel('on thread');
	await field.fill('main');
	await field.press('Enter');
	await page.getByText('No call of it on these threads').waitFor();
	assert.equal(new URL(page.url()).searchParams.get('thread'), 'main');
	await page.reload();
	await page.getByText('No call of it on these threads').waitFor();
	assert.equal(await field.inputValue(), 'main');
	await field.fill('others');
	await field.press('Enter');
	await page.waitForSelector('#callers tr[data-near]');
	assert.deepEqual(await names(), [pool]);
	await field.fill(pool.slice('threads '.length));
	await field.press('Enter');
	await page.waitForSelector('#callers tr[data-near]');
	assert.deepEqual(await names(), [pool]);
	await field.fill('nobody');
	await field.press('Enter');
	await page.locator('#callers [role=alert] >> text=none of these traces has threads called nobody').waitFor();
	await done(page, t);
});

test('methods are filtered by thread where the server counts them by thread', async (t) => {
	await ready();
	const page = await open('/fleet/methods?app=fleet');
	await page.waitForSelector('#methods tbody tr');
	const counted = (await server.get('/api/v1/fleet/methods')).json.by_thread; // with ClickHouse
	assert.equal(await page.getByLabel('on thread').count(), counted ? 1 : 0);
	const asked = [];
	await page.route('**/api/v1/fleet/methods*', async (route) => {
		const url = new URL(route.request().url());
		asked.push(url.searchParams.get('thread'));
		url.searchParams.delete('thread');
		const response = await route.fetch({ url: url.href });
		await route.fulfill({ response, json: { ...(await response.json()), by_thread: true } });
	});
	await page.reload();
	const field = page.getByLabel('on thread');
	await field.fill('others');
	await field.press('Enter');
	await until(() => (asked.includes('others') ? true : undefined), 'the question of other threads');
	await settled(page);
	assert.equal(new URL(page.url()).searchParams.get('thread'), 'others');
	assert.match(await page.locator('#methods tbody tr a').first().getAttribute('href'), /thread=others/, 'the callers of a method are of the same threads');
	assert.deepEqual(await violations(page), []);
	await page.unrouteAll({ behavior: 'wait' });
	await done(page, t);
});

test('the page shows that several apps are summed, and one can be selected', async (t) => {
	await ready();
	await server.trace(trace(loadOf('9.10.0', 1)), { query: { app: 'another', scenario: 'open_cart', version_name: '1' } });
	const page = await open('/fleet');
	await page.locator('select[name=app] option', { hasText: /^All apps \(\d\)$/ }).waitFor({ state: 'attached' });
	await page.selectOption('select[name=app]', 'another');
	await settled(page);
	assert.equal(new URL(page.url()).searchParams.get('app'), 'another');
	assert.deepEqual(await violations(page), []);
	await done(page, t);
});

test('arrivals are shown and link to the lists', async (t) => {
	await ready();
	const page = await open(OVERVIEW);
	await whole(page);
	const facts = Object.fromEntries(await page.locator('#intake dl div').evaluateAll((all) => all.map((d) => [d.children[0].textContent, d.children[1].textContent])));
	const n = VERSIONS.length * EACH;
	assert.deepEqual([facts.Traces, facts.Waiting, facts.Failed, facts['Included below']], [String(n + 3), '0', '1', String(n + 1)], 'a report of an ANR is not counted there');
	assert.equal(facts['ANR reports and pending'], '1');
	await page.click('#intake a:has-text("1") >> nth=-1');
	await page.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
	assert.match(page.url(), /state=failed/);
	await page.goBack();
	await whole(page);
	await page.click('#topanrs tbody a');
	await page.waitForSelector('#anr h3');
	await done(page, t);
});

test('methods are sorted, filtered and found by name; the address holds it, Back takes it back', async (t) => {
	await ready();
	const page = await open(OVERVIEW);
	await whole(page);
	await page.selectOption('select[name=scenario]', 'open_cart');
	await page.click('#slowest a:has-text("All 3 methods")');
	const names = async (first) => {
		await page.waitForFunction((want) => document.querySelector('#methods tbody tr')?.dataset.method === want && !document.querySelector('#methods .stale'), first);
		return page.locator('#methods tbody tr').evaluateAll((rows) => rows.map((r) => r.dataset.method));
	};
	await names('com.shop.Repo.load');
	await page.click('#methods th button:has-text("Wall")');
	await names('com.shop.Main.start');
	assert.equal(await page.locator('#methods th[aria-sort=descending]').innerText(), '↓ Wall');
	await page.click('#methods th button:has-text("Wall")');
	await names(`com.shop.${name}.draw`);
	await page.click('#methods button:has-text("all")');
	await page.waitForFunction(() => location.search.includes('stat=sum'));
	const sum = VERSIONS.flatMap((v) => Array.from({ length: EACH }, (_, i) => loadOf(v, i))).reduce((a, b) => a + b);
	await page.waitForFunction(() => !document.querySelector('#methods .stale'));
	near(await page.locator('#methods tr[data-method="com.shop.Repo.load"] td:nth-child(3)').innerText(), sum, 0.01);
	const query = new URL(page.url()).searchParams;
	assert.deepEqual([query.get('sort'), query.get('order'), query.get('stat'), query.get('scenario'), query.get('app')], ['wall', 'asc', 'sum', 'open_cart', 'fleet']);
	await page.fill('#methods [name=q]', 'repo');
	assert.deepEqual(await names('com.shop.Repo.load'), ['com.shop.Repo.load']);
	await page.fill('#methods [name=q]', '(');
	await page.check('#methods [name=regex]');
	await page.waitForSelector('#methods [role=alert] >> text=regular expression');
	await page.fill('#methods [name=q]', '^com\\.shop\\.(Main|Repo)\\.');
	await page.waitForFunction(() => document.querySelectorAll('#methods tbody tr').length === 2);
	await settled(page);
	await page.reload();
	await page.waitForFunction(() => document.querySelectorAll('#methods tbody tr').length === 2);
	await page.click('#methods tr[data-method="com.shop.Repo.load"] a');
	await page.waitForSelector('#method tr[data-point]');
	await page.selectOption('#method select[name=by]', 'class');
	await page.waitForSelector('#method tr[data-point=low]');
	await page.selectOption('#method select[name=by]', 'os');
	await page.waitForSelector('#method tr[data-point="15"]');
	await page.click('#method button:has-text("CPU")');
	const clear = (text) => page.getByText(text).getByRole('button', { name: 'Clear the filter' });
	await clear('No trace that matches the filter has this value.').waitFor();
	await page.selectOption('.fleetfilter [name=class]', 'mid');
	await clear('No traces match this filter.').click();
	await page.waitForSelector('text=None of these traces has this value.');
	await page.goBack();
	await page.goBack();
	await clear('No trace that matches the filter has this value.').waitFor();
	for (const [at, there] of [['os', '#method tr[data-point="15"]'], ['class', '#method tr[data-point=low]'], ['version', '#method tr[data-point="9.9.0"]']]) {
		await page.goBack();
		await page.waitForSelector(there);
		assert.equal(await page.inputValue('#method select[name=by]'), at);
	}
	await page.goBack();
	await page.waitForFunction(() => document.querySelectorAll('#methods tbody tr').length === 2);
	await done(page, t);
});

test('a version links to its days, and a hostile name remains text', async (t) => {
	await ready();
	const page = await open('/fleet/methods?app=fleet&scenario=open_cart');
	await page.click(`#methods tr:has-text("onerror") a`);
	await page.waitForSelector('#method tr[data-point="9.8.0"]');
	assert.ok((await page.innerText('#method .verdict')).includes(name));
	assert.equal(await page.locator('main img').count(), 0);
	await page.click('#method tr[data-point="9.8.0"] a');
	await page.waitForFunction(() => document.querySelectorAll('#method tr[data-point]').length === 1 && document.querySelector('#method tr[data-point]').dataset.point.length === 10);
	assert.equal(new URL(page.url()).searchParams.get('version_name'), '9.8.0');
	assert.equal(await page.inputValue('select[name=version_name]'), '9.8.0');
	await done(page, t);
});

test('a counted label filters all panels, and unsupported combinations are explained', async (t) => {
	await ready();
	const page = await open(OVERVIEW);
	await whole(page);
	await page.fill('[aria-label="Traces with a label"] input', 'phone 1');
	await page.click('[aria-label="Traces with a label"] button');
	const traces = (n) => page.waitForFunction((want) => document.querySelector('#scenarios tr[data-version="9.10.0"] td:nth-last-child(2)')?.textContent === want, String(n));
	await traces(EACH / 2);
	assert.equal(new URL(page.url()).searchParams.get('label'), 'device=phone 1');
	await page.waitForSelector('#slower >> text=Not filtered by label');
	await page.click('#slowest a:has-text("Repo.load")');
	await page.waitForSelector('#method tr[data-point="9.10.0"] td:nth-child(2):has-text("12 of 12")');
	assert.equal(await page.locator('#method select[name=by] option[value=os]').count(), 0);
	await page.click('h1 a:has-text("Fleet")');
	await traces(EACH / 2);
	await page.selectOption('select[name=class]', 'low');
	await page.waitForSelector('#scenarios [role=alert] >> text=omit one of them');
	await page.click('button[aria-label="Any label"]');
	await traces(EACH / 3);
	await done(page, t);
});

test('scenarios and a method by a label that is counted by, and on to one of its values', async (t) => {
	await ready();
	const page = await open(`${OVERVIEW}&class=low`);
	await page.waitForSelector('#scenarios tbody');
	await page.selectOption('#scenarios select[name=by]', 'label:device');
	const phone = (n) => page.waitForFunction((want) => document.querySelector('#scenarios tr[data-scenario=open_cart][data-version="phone 1"] td:nth-last-child(2)')?.textContent === want, String(n));
	await phone((VERSIONS.length * EACH) / 2);
	assert.equal(new URL(page.url()).searchParams.get('class'), null, 'which a label cannot be asked with');
	await page.waitForSelector('#scenarios tr[data-values="0"] >> text=(none)'); // one names no device
	assert.deepEqual(await violations(page), []);
	await page.click('#scenarios a:has-text("phone 1")');
	await page.waitForSelector('#methods tbody tr');
	assert.equal(new URL(page.url()).searchParams.get('label'), 'device=phone 1');
	await page.goto(`${server.url}/fleet/methods?app=fleet&method=com.shop.Repo.load&by=label:device`);
	await page.waitForSelector('#method tr[data-point="phone 0"] td:has-text("36 of 36")');
	const loads = VERSIONS.flatMap((v) => Array.from({ length: EACH }, (_, i) => loadOf(v, i)).filter((_, i) => i % 2));
	const cells = await page.locator('#method tr[data-point="phone 1"] td').allInnerTexts();
	near(cells[2], rank(loads, 50));
	assert.equal(await page.locator('#method thead th').first().innerText(), 'device');
	await page.click('#method tr[data-point="phone 1"] a:has-text("phone 1")');
	await page.waitForFunction(() => document.querySelectorAll('#method tr[data-point]').length === 1 && document.querySelector('#method tr[data-point]').dataset.point.length === 10);
	assert.equal(new URL(page.url()).searchParams.get('label'), 'device=phone 1');
	await page.goto(`${server.url}/fleet/methods?method=com.shop.Repo.load&by=label:colour`);
	await page.waitForSelector('#method [role=alert] >> text=not counted by the label colour');
	await done(page, t);
});

test('each panel has a message when it is empty', async (t) => {
	await ready();
	const page = await open('/fleet?app=nobody');
	for (const [panel, words] of [['#intake', 'No traces for'], ['#scenarios', 'No traces match this filter'], ['#slower', 'No open regressions'], ['#topanrs', 'No ANRs for'], ['#slowest', 'No traces match this filter']])
		await page.waitForSelector(`${panel} >> text=${words}`);
	await page.goto(`${server.url}/fleet/methods?app=nobody`);
	await page.waitForSelector('#methods >> text=No traces match this filter');
	await page.goto(`${server.url}/fleet/methods?method=no.such.Method`);
	await page.waitForSelector('#method [role=alert] >> text=no counted trace has a method of that name');
	await page.goto(`${server.url}/fleet/none`);
	await page.waitForSelector('text=no page at this address');
	await done(page, t);
});

test('a panel fails alone, and loads when it is retried', async (t) => {
	await ready();
	const page = await open('/');
	let broken = true;
	await page.route('**/api/v1/fleet/methods*', (route) => (broken ? route.fulfill({ status: 503, contentType: 'application/json', body: '{"error":{"status":"busy","message":"too much at once"}}' }) : route.continue()));
	await page.goto(server.url + OVERVIEW);
	await page.waitForSelector('#slowest [role=alert] >> text=Too much at once');
	for (const one of ['#intake dl', '#scenarios tbody', '#slower tbody tr', '#topanrs tbody tr']) await page.waitForSelector(one);
	broken = false;
	await page.click('#slowest button:has-text("Try again")');
	await page.waitForSelector('#slowest tbody tr');
	assert.equal(await page.locator('#slowest [role=alert]').count(), 0);
	await done(page, t);
});

for (const [scheme, width] of THEMES)
	test(`they can be read by all, ${scheme}, ${width}`, async (t) => {
		await ready();
		const page = await open(OVERVIEW, scheme, width);
		for (const [name_, address, there] of [['overview', OVERVIEW, '#slowest tbody tr'], ['methods', '/fleet/methods?app=fleet', '#methods tbody tr'], ['method', '/fleet/methods?app=fleet&scenario=open_cart&method=com.shop.Main.start', '#callers tr[data-near]']]) {
			await page.goto(server.url + address);
			await page.waitForSelector(there);
			if (name_ === 'overview') await whole(page);
			if (name_ === 'method') await page.waitForSelector('#method tr[data-point]');
			assert.deepEqual(await unreadable(page), [], name_);
			assert.deepEqual(await violations(page), [], name_);
			if (shots) await page.screenshot({ path: path.join(shots, `fleet-${name_}-${scheme}-${width}.png`), fullPage: true });
		}
		await done(page, t);
	});

test('the overview loads its numbers again when processing ends', async (t) => {
	await ready();
	const sendTo = async (version) => {
		await server.trace(trace(8 * MS), { query: { app: 'arriving', version_name: version, scenario: 'open_cart' } });
		await until(async () => (await server.get('/api/v1/fleet/scenarios?app=arriving&by=version')).json.groups.some((g) => g.key === version) || undefined, `${version} is counted`);
	};
	await sendTo('1');
	const page = await open('/');
	let processing = true;
	await page.route('**/api/v1/fleet/stages*', async (route) => {
		const response = await route.fetch();
		const json = await response.json();
		if (processing) json.stages[0].waiting = 1;
		await route.fulfill({ response, json });
	});
	await page.goto(`${server.url}/fleet?app=arriving`);
	await page.waitForSelector('#scenarios tr[data-version="1"]');
	await page.waitForSelector('#intake [data-stages]');
	await sendTo('2');
	processing = false;
	await page.waitForSelector('#scenarios tr[data-version="2"]');
	await done(page, t);
});
