/*
 * Comparison of two sides of a fleet with known values: summary, quantiles, table and graph; the address;
 * hostile names; sides that cannot be compared, with a remedy.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { violations } from '../axe.mjs';
import { THEMES, navigate, settled, unreadable, visit } from '../browser.mjs';
import { btrace } from '../make.mjs';
import { browser, done, HOSTILE, open, server, shots } from '../page.mjs';
import { startServer, until } from '../server.mjs';
import { findSlower } from '../regressed_fleet.mjs';

const PID = 4200;
const EACH = 30;
const hostile = HOSTILE.replaceAll(' ', '\u00a0');
const mapping = ['# v', '1,1,com.shop.Main onCreate ()V', '2,1,com.shop.Repo load ()V', '3,1,com.shop.Db query ()V', `4,1,com.shop.Old ${hostile} ()V`, '5,1,com.shop.New path ()V', ''].join('\n');
const [LOW, HIGH] = [2048, 8192].map((ram_mb) => JSON.stringify({ ram_mb }));

/* onCreate { load { query } path }: query differs by chance alone; 8.3.1 takes 40 % longer in load, and is on more of the slow devices. */
const trace = ({ load, query, version }) => {
	const at = 1_000_000;
	return btrace([[PID, 3, at + 2000, query], [PID, 2, at + 1000, load], [PID, version === '8.3.0' ? 4 : 5, at + load + 2000, 20_000], [PID, 1, at, load + 30_000]], { pid: PID });
};
const fleet = ['8.3.0', '8.3.1'].flatMap((version) => Array.from({ length: EACH }, (_, i) => {
	const low = version === '8.3.0' ? i % 4 === 0 : i % 4 !== 0;
	return { version, low, query: 30_000 + ((i * 13) % 7) * 500, load: Math.round((200_000 + ((i * 7) % 10) * 4000) * (low ? 3 : 1) * (version === '8.3.1' ? 1.4 : 1)) };
}));

async function send() {
	const ids = [];
	for (const version of ['8.3.0', '8.3.1']) await server.put(`/api/v1/builds/v${version}/methods`, mapping);
	for (const [i, x] of fleet.entries()) {
		const sent = await server.post('/api/v1/traces', trace(x), { query: { app: 'shop', version_name: x.version, build_id: `v${x.version}`, scenario: 'checkout', os: x.low ? '13' : '14', labels: x.low ? LOW : HIGH },
			headers: { 'Idempotency-Key': `versus-${i}` } });
		assert.ok(sent.status <= 202, sent.text);
		ids.push(sent.json.id);
	}
	await server.trace(trace({ ...fleet[0], version: '9.0' }), { query: { app: 'other', version_name: '9.0', build_id: 'v8.3.0', scenario: 'other' } });
	await until(async () => {
		const { json } = await server.get('/api/v1/fleet/methods?scenario=checkout');
		return json?.traces === fleet.length && json.methods.every((m) => m.resolved) ? true : undefined;
	}, 'all are counted and named', 60);
	return ids;
}
let made;
const ready = () => (made ??= send());

const ADDRESS = '/fleet/compare?a=8.3.0&b=8.3.1&scenario=checkout';
const answer = async (query = 'a=8.3.0&b=8.3.1&scenario=checkout') => (await server.get(`/api/v1/fleet/compare?${query}`)).json;
const row = (page, name) => page.locator(`#methods tr[data-method="${name}"]`);
const names = (page) => page.locator('#methods tbody tr').evaluateAll((all) => all.map((r) => r.dataset.method));
const whole = async (page) => {
	await page.waitForSelector('[data-versus]');
	await page.waitForSelector('[data-graph] canvas');
};
const at = (page) => new URL(page.url()).searchParams;

/* How many pixels of the graph are bluish, orange or grey. */
const hues = (page) => page.locator('[data-diff] canvas').evaluate((c) => {
	const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
	const n = { blue: 0, orange: 0, grey: 0 };
	for (let i = 0; i < d.length; i += 4) {
		if (d[i + 3] < 255) continue;
		n[d[i + 2] - d[i] > 12 ? 'blue' : d[i] - d[i + 2] > 12 ? 'orange' : 'grey']++;
	}
	return n;
});
const painted = (page, hue, least) => until(async () => ((await hues(page))[hue] > least ? true : undefined), `more than ${least} pixels of ${hue}`);

test('without two versions, the page requests sides', async (t) => {
	const page = await open('/fleet/compare');
	await page.getByText('Only com.acme.shop 8.3.1 has traces in the last 30 days.').waitFor();
	await settled(page);
	assert.equal(new URL(page.url()).search, '');
	assert.deepEqual([await unreadable(page), await violations(page)], [[], []]);
	await done(page, t);
});

test('an app with one version: the page names it and the next step', async (t) => {
	await ready();
	const page = await open('/fleet/compare?app=other');
	await page.getByText('Only other 9.0 has traces in the last 30 days.').waitFor();
	await page.getByText('Send traces of another version').waitFor();
	await done(page, t);
});

test('the page compares the two newest versions of the most used app and shows the result', async (t) => {
	await ready();
	const page = await open('/');
	await navigate(page, 'Compare');
	await page.waitForURL(/fleet\/compare\?a=8\.3\.0&b=8\.3\.1&app=shop$/);
	await whole(page);
	await page.getByLabel('Both Scenario').selectOption('checkout');
	await page.waitForFunction(() => location.search.includes('scenario=checkout'));
	await page.getByLabel('A Version').selectOption('');
	await page.getByLabel('A Version').selectOption('8.3.0');
	await page.waitForSelector('.verdict >> text=/slower .*Repo.load/');
	await whole(page);
	const v = await answer();
	assert.equal(await page.locator('.verdict').innerText(), v.summary);
	assert.equal(await page.title(), 'Compare · tracewell');
	for (const [side, label] of [['A', '8.3.0'], ['B', '8.3.1']]) assert.match(await page.locator(`section[aria-label="Side ${side}"]`).innerText(), new RegExp(`${label}[^]*${EACH}\\s*traces`));
	assert.match(await page.locator('section[aria-label="Mix"]').innerText(), /B is weighted by A’s mix/);
	const p50 = await page.locator('[data-scenario=checkout] [data-stat=p50]').innerText();
	assert.match(p50, /\+3\d %[^]*\+\d+ % to \+\d+ %[^]*slower/);
	assert.match(await row(page, 'com.shop.Repo.load').innerText(), /\+[\d.]+ µs ± [\d.]+ (µs|ns)/);
	assert.doesNotMatch(await row(page, 'com.shop.Repo.load').innerText(), /chance/);
	assert.match(await row(page, 'com.shop.Db.query').innerText(), /may be chance/);
	assert.doesNotMatch(await row(page, 'com.shop.Main.onCreate').innerText(), /chance/, 'what did not change needs no excuse');
	assert.match(await row(page, 'com.shop.New.path').innerText(), /new[^]*0 %\s+100 %/);
	await done(page, t);
});

test('without the correction, other devices are taken for the version', async (t) => {
	await ready();
	const page = await open(ADDRESS);
	await whole(page);
	const change = () => page.locator('[data-scenario=checkout] [data-stat=mean] td:nth-of-type(3)').innerText();
	const before = parseFloat((await change()).slice(1));
	await page.locator('select[name=mix]').selectOption('none');
	await page.waitForFunction((w) => document.querySelector('[data-versus] [data-stat=mean]') && !document.querySelector('[data-stat=mean]').textContent.includes(w), `+${before} %`);
	assert.ok(parseFloat((await change()).slice(1)) > 2 * before, await change());
	assert.equal(at(page).get('mix'), 'none');
	await page.goBack();
	await page.waitForFunction((w) => document.querySelector('[data-stat=mean]')?.textContent.includes(w), `+${before} %`);
	await done(page, t);
});

test('the table is sorted, narrowed and opened, and all of it is in the address', async (t) => {
	await ready();
	const page = await open(ADDRESS);
	await whole(page);
	assert.equal((await names(page))[0], 'com.shop.Repo.load', 'what changed most is first');
	await page.locator('#methods').getByRole('button', { name: 'Method' }).click();
	assert.deepEqual(await names(page), [...await names(page)].sort((a, b) => a.localeCompare(b, 'en')));
	await page.locator('#methods').getByRole('button', { name: 'Total B' }).click();
	assert.equal((await names(page))[0], 'com.shop.Main.onCreate');
	assert.equal(await page.locator('#methods th[aria-sort=descending]').innerText(), '↓ Total B');
	assert.equal(at(page).get('sort'), 'total_b');
	await page.getByRole('button', { name: 'Removed (1)' }).click();
	await page.waitForFunction(() => document.querySelectorAll('#methods tbody tr').length === 1);
	assert.deepEqual(await names(page), [`com.shop.Old.${hostile}`], 'a name is text');
	assert.equal(await page.locator('main img').count(), 0);
	await page.getByRole('button', { name: 'All (5)' }).click();
	await row(page, 'com.shop.Repo.load').getByRole('button').click();
	await page.waitForSelector('[data-one] [data-stat=p50] >> text=slower');
	assert.match(await page.locator('[data-one]').innerText(), /In 100 % of A’s traces and 100 % of B’s/);
	await page.reload();
	await page.waitForSelector('[data-one] [data-stat=p50]');
	await page.goBack();
	await page.locator('[data-one]').waitFor({ state: 'detached' });
	await page.goto(`${server.url}${ADDRESS}&only=new&method=com.shop.Repo.load`);
	await page.waitForSelector('#methods section >> text=Repo.load'); /* of a link whose table does not have it */
	await page.waitForSelector('[data-one] [data-stat=p50]');
	await page.locator('#methods').getByRole('button', { name: 'Close' }).click();
	await page.locator('[data-one]').waitFor({ state: 'detached' });
	await page.getByRole('button', { name: 'All (5)' }).click();
	await page.fill('#methods input[type=search]', 'db.');
	await page.waitForFunction(() => document.querySelectorAll('#methods tbody tr').length === 1);
	await done(page, t);
});

test('of overloads the one that is clicked is opened', async (t) => {
	const methods = ['onCreate ()V', 'parse (Ljava/lang/String;)V', 'parse ([B)V'].map((m, i) => `${i + 1},1,com.shop.Json ${m}`).join('\n') + '\n';
	const ids = [];
	for (const longer of [0, 30_000]) {
		await server.put(`/api/v1/builds/over${longer}/methods`, methods);
		const calls = btrace([[PID, 2, 1_002_000, 20_000 + longer], [PID, 3, 1_100_000, 10_000], [PID, 1, 1_000_000, 200_000]], { pid: PID });
		ids.push((await server.trace(calls, { query: { app: 'over', version_name: `1.${longer}`, build_id: `over${longer}`, scenario: 'overloads' } })).id);
	}
	await until(async () => ((await answer(`a=trace:${ids[0]}&b=trace:${ids[1]}`))?.comparable ? true : undefined), 'both are counted', 60);
	const page = await open(`/fleet/compare?a=trace:${ids[0]}&b=trace:${ids[1]}`);
	await whole(page);
	await row(page, 'com.shop.Json.parse').getByRole('button', { name: 'byte[]' }).click();
	await page.waitForSelector('[data-one]');
	assert.deepEqual(await page.locator('#methods [aria-expanded=true]').allInnerTexts(), ['com.shop.Json.parse(byte[])']);
	assert.match(await page.locator('[data-one] [data-stat=p50]').innerText(), /10\.0 µs\s+10\.0 µs/, 'its own times');
	await page.reload();
	await page.waitForSelector('[data-one]');
	assert.deepEqual(await page.locator('#methods [aria-expanded=true]').allInnerTexts(), ['com.shop.Json.parse(byte[])']);
	await page.locator('#methods [aria-expanded=true]').click();
	await page.locator('[data-one]').waitFor({ state: 'detached' });
	await done(page, t);
});

test('the graph is grey where a change may be chance, shows removed calls, and works by keys', async (t) => {
	await ready();
	const page = await open(ADDRESS);
	await whole(page);
	const usual = await hues(page);
	assert.ok(usual.orange > 500 && usual.grey > 500 && usual.blue === 0, JSON.stringify(usual));
	await page.getByRole('button', { name: 'Widths of A, with removed calls' }).click();
	await page.waitForSelector('[data-diff=a]');
	await page.waitForFunction(() => location.search.includes('width=a'));
	await painted(page, 'blue', 200); // removed calls
	await page.getByRole('button', { name: 'As B' }).click();
	await page.locator('[data-diff=b] canvas').focus();
	const keyed = page.locator('.keyed');
	for (const key of ['Home', 'ArrowDown', 'ArrowDown', 'ArrowDown']) await page.keyboard.press(key);
	assert.match(await keyed.innerText(), /Repo\.load.*in 30 of 30 traces.*\+4\d %/s);
	assert.doesNotMatch(await keyed.innerText(), /chance/);
	await page.keyboard.press('ArrowDown');
	assert.match(await keyed.innerText(), /Db\.query.*may be chance/s);
	await page.keyboard.press('ArrowUp');
	await page.keyboard.press('Enter');
	await page.waitForSelector('nav[aria-label="Path of the flame graph"] [aria-current=true]:has-text("Repo.load")');
	await page.waitForSelector('[data-graph]');
	await page.locator('[data-diff=b] canvas').focus();
	await page.keyboard.press('m');
	await page.click('[role=menuitem] >> text=Only this method');
	await page.waitForSelector('nav.steps >> text=only com.shop.Repo.load');
	assert.deepEqual([at(page).get('focus'), at(page).get('root')], ['com.shop.Repo.load', null]);
	await page.waitForSelector('[data-graph]');
	await page.click('nav.steps button');
	await page.waitForSelector('nav.steps', { state: 'detached' });
	await page.goBack();
	await page.goBack();
	await page.waitForSelector('nav[aria-label="Path of the flame graph"] [aria-current=true]:has-text("Repo.load")');
	await page.waitForSelector('[data-graph]');
	await page.getByRole('button', { name: 'Children as a table' }).click();
	await page.waitForSelector('#difference table >> text=Db.query');
	await page.waitForFunction(() => location.search.includes('tables='));
	await page.reload();
	await whole(page);
	await page.waitForSelector('#difference table >> text=Db.query');
	await page.waitForSelector('nav[aria-label="Path of the flame graph"] >> text=Main.onCreate'); /* a fresh link knows the way, too */
	const link = page.url();
	await page.goto(link.replace(/([?&]at=)[^&]+/, '$1com.shop.Other.load')); /* new traces renumbered the methods */
	await page.waitForSelector('text=This path does not exist here');
	await page.goto(link);
	await whole(page);
	await page.getByRole('button', { name: 'Top', exact: true }).click();
	await page.waitForFunction(() => !location.search.includes('root='));
	await page.getByRole('button', { name: 'Swap A and B' }).click();
	await page.waitForSelector('.verdict >> text=faster');
	await whole(page);
	assert.equal(at(page).get('a'), '8.3.1');
	await painted(page, 'blue', 500);
	await done(page, t);
});

test('the same as Markdown and JSON', async (t) => {
	await ready();
	const page = await open(`${ADDRESS}&mix=none&b.class=low`);
	await whole(page);
	for (const [name, type] of [['Markdown', /^text\/markdown/], ['JSON', /json/]]) {
		const href = await page.getByRole('link', { name, exact: true }).getAttribute('href');
		const got = await page.request.get(server.url + href);
		assert.equal(got.status(), 200, href);
		assert.match(got.headers()['content-type'], type);
		assert.ok((await got.text()).includes('class low'), 'the same sides');
	}
	await done(page, t);
});

test('single traces, and one against a version', async (t) => {
	const ids = await ready();
	const page = await open(`/fleet/compare?b=8.3.1&scenario=checkout`);
	await page.waitForSelector('[data-versus]');
	await page.getByLabel('A Or one trace').fill(`${server.url}/traces/${ids[1]}?find=x`);
	await page.keyboard.press('Enter');
	await page.waitForSelector(`section[aria-label="Side A"] a[href="/traces/${ids[1]}"]`);
	assert.equal(at(page).get('a'), `trace:${ids[1]}`);
	assert.ok(await page.getByLabel('A Scenario').isDisabled(), 'a trace is one whatever the filter');
	await page.waitForSelector('#lengths >> text=too few traces');
	await page.goto(`${server.url}/fleet/compare?a=trace:${ids[1]}&b=trace:${ids[EACH + 1]}`);
	await page.waitForSelector('.verdict >> text=one trace per side');
	await whole(page);
	assert.equal(await page.locator('#lengths, section[aria-label="Mix"], #methods :text("may be chance")').count(), 0, 'of two traces nothing is weighed');
	await page.waitForSelector('#difference >> text=changes cannot be distinguished from chance');
	await painted(page, 'orange', 500);
	await done(page, t);
});

test('sides that cannot be compared are explained, with a remedy', async (t) => {
	await ready();
	const page = await open('/fleet/compare?a=8.3.0&b=8.3.0&scenario=checkout');
	await page.waitForSelector('[role=alert] >> text=A and B are the same');
	await page.getByRole('button', { name: 'Start over' }).last().click();
	await page.waitForURL(/\?a=8\.3\.0&b=8\.3\.1&app=shop$/); // the two newest
	await whole(page);
	await page.goBack();
	await page.waitForSelector('[role=alert] >> text=A and B are the same');
	let broken = true;
	await page.route('**/api/v1/fleet/scenarios*', (route) => (broken ? route.fulfill({ status: 503, contentType: 'application/json', body: '{"error":{"status":"busy","message":"too much at once"}}' }) : route.continue()));
	await page.goto(`${server.url}/fleet/compare`);
	await page.waitForSelector('[role=alert] >> text=The versions could not be loaded.');
	await page.waitForSelector('text=Choose A and B');
	broken = false;
	await page.locator('[role=alert]').getByRole('button', { name: 'Try again' }).click();
	await whole(page);
	await page.goto(`${server.url}/fleet/compare?a=8.3.0&b=9.9.9&scenario=checkout`);
	await page.waitForSelector('.verdict >> text=B (9.9.9)');
	await page.getByRole('button', { name: 'Use 400 days' }).click();
	await page.waitForFunction(() => location.search.includes('days=400'));
	await page.waitForSelector('.notice >> text=One side has no traces');
	assert.equal(await page.getByLabel('B Version').inputValue(), '9.9.9', 'what is not there is still shown as picked');
	await page.goto(`${server.url}/fleet/compare?a=trace:01ARZ3NDEKTSV4RRFFQ69G5FAV&b=8.3.1`);
	await page.getByRole('button', { name: 'Remove the trace from A' }).click();
	await page.waitForSelector('[data-versus]');
	await page.goto(`${server.url}${ADDRESS}&a.class=huge`);
	await page.waitForSelector('[role=alert] >> text=/class/i');
	await page.goto(`${server.url}${ADDRESS}&a.since=2026-13-45`);
	await page.waitForSelector('[role=alert] >> text=/since/i');
	await page.goto(`${server.url}${ADDRESS}&colour=red&root=77777`);
	await page.waitForSelector('[role=status] >> text=parameters were ignored');
	await page.waitForSelector('text=This path does not exist here');
	await page.getByRole('button', { name: 'Show the whole graph' }).click();
	await whole(page);
	await page.goto(`${server.url}/fleet/compare?a=8.3.0&b=8.3.1&a.label=${encodeURIComponent('x=1')}&b.app=${encodeURIComponent(HOSTILE)}`);
	await page.waitForSelector('.verdict');
	assert.equal(await page.locator('main img').count(), 0);
	await done(page, t);
});

test('nothing moves while it loads, and failures show a remedy', async (t) => {
	await ready();
	const page = await open('/');
	await page.addInitScript(() => {
		globalThis.moved = [];
		new PerformanceObserver((list) => {
			for (const e of list.getEntries()) if (!e.hadRecentInput) globalThis.moved.push([e.value, ...e.sources.map((s) => `${s.node?.nodeName} ${s.node?.className}`)]);
		}).observe({ type: 'layout-shift', buffered: true });
	});
	await page.route('**/api/v1/f*/**', async (route) => { // the graph before the numbers, the method last
		await new Promise((go) => setTimeout(go, /method=/.test(route.request().url()) ? 500 : /tree=0/.test(route.request().url()) ? 250 : 50));
		await route.continue();
	});
	await page.goto(`${server.url}${ADDRESS}&method=com.shop.Repo.load`);
	await whole(page);
	await page.waitForSelector('[data-one] [data-stat=p50]');
	await settled(page);
	const moved = await page.evaluate(() => globalThis.moved);
	assert.ok(moved.reduce((n, [value]) => n + value, 0) < 0.005, JSON.stringify(moved));
	for (const [what, words] of [[/facets/, 'could not be loaded'], [/tree=0&limit=1000/, 'These traces cannot be compared'], [/max_nodes|limit=1(&|$)/, 'Something went wrong']]) {
		await page.unrouteAll();
		await page.route((url) => what.test(url.href), (route) => route.fulfill({ status: 500, json: { error: { status: 'io', message: 'the disk is on fire' } } }));
		await page.goto(server.url + ADDRESS);
		await page.waitForSelector(`[role=alert]:has-text("the disk is on fire") >> text=${words}`);
		await page.unrouteAll();
		await page.locator('[role=alert] >> text=Try again').first().click();
		await page.locator('[role=alert]').waitFor({ state: 'detached' });
		await whole(page);
	}
	await done(page, t);
});

test('of several scenarios, a method shows its open regression, or the scenario that changed', async (t) => {
	const s = await startServer(t);
	const found = await findSlower(s);
	for (let i = 0; i < 80; i++) { // the same in both versions, from 5 to 200 ms
		const load = 5_000_000 * (1 + ((i >> 1) * 7) % 40);
		const sent = await s.post('/api/v1/traces', btrace([[4000, 2, 1_001_000, load], [4000, 1, 1_000_000, load + 500_000]], { pid: 4000 }), { query: { app: 'shop', version_name: `8.3.${i % 2}`, build_id: `b8.3.${i % 2}`, scenario: 'browse' }, headers: { 'Idempotency-Key': `browse-${i}` } });
		assert.ok(sent.status <= 202, sent.text);
	}
	const load = () => s.get('/api/v1/fleet/compare?a=8.3.0&b=8.3.1');
	const { significant } = await until(async () => {
		const { json } = await load();
		return json.a.traces + json.b.traces === 150 ? json.methods.find((m) => m.name === 'com.app.Repo.load') : undefined;
	}, 'all are counted', 60);
	assert.equal(significant, true, 'the difference between the scenarios does not hide it');
	const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	await visit(page, s, '/fleet/compare?a=8.3.0&b=8.3.1');
	const link = row(page, 'com.app.Repo.load').getByRole('link', { name: /^\+\d+ % in slower$/ });
	await link.waitFor();
	assert.equal(await row(page, 'com.app.Repo.load').getByText('may be chance').count(), 0);
	const { json: alone } = await s.get('/api/v1/fleet/compare?a=8.3.0&b=8.3.1&scenario=slower');
	const { a, b } = alone.methods.find((m) => m.name === 'com.app.Repo.load').self_ns;
	const copied = await s.get('/api/v1/fleet/compare?a=8.3.0&b=8.3.1&format=markdown');
	assert.ok(copied.text.includes(`(+${(100 * (b / a - 1)).toFixed(0)} % in slower)`), copied.text);
	assert.equal(new URL(await link.getAttribute('href'), s.url).searchParams.get('open'), found.id);
	const [figure] = (await link.innerText()).split(' in ');
	const mix = page.locator('section[aria-label="Mix"]');
	assert.match(await mix.innerText(), /browse\s+unknown\s+40\s+40/);
	assert.deepEqual([await unreadable(page), await violations(page)], [[], []]);
	await page.goto(`${s.url}/regressions`);
	assert.equal(await page.locator(`tr[data-regression="${found.id}"] td.num`).first().innerText(), figure, 'one change, one figure');
	await done(page, t);
});

for (const [scheme, width] of [['light', 320], ['light', 390], ...THEMES])
	test(`the page can be read and used by all, ${scheme}, ${width}`, async (t) => {
		await ready();
		const page = await open('/fleet/compare', scheme, width);
		await whole(page);
		assert.deepEqual([await unreadable(page), await violations(page)], [[], []]);
		if (width === 390) {
			const verdict = await page.locator('.verdict').boundingBox();
			assert.ok(verdict.y + verdict.height < 844 && (await page.locator('#methods tr[data-method]').count()) <= 5, 'the verdict is on the first screen, few methods follow');
			assert.ok(!(await page.locator('#lengths .whisker').first().isVisible()));
			await page.locator('#lengths summary').click();
			await page.locator('#lengths .whisker').first().waitFor();
			assert.deepEqual([await unreadable(page), await violations(page)], [[], []]);
		}
		await page.goto(`${server.url}${ADDRESS}&method=com.shop.Repo.load`);
		await whole(page);
		await page.waitForSelector('[data-one] [data-stat=p50]');
		assert.deepEqual([await unreadable(page), await violations(page)], [[], []]);
		if (width === 390) {
			const [head, first] = [page.locator('#methods > .scroll > table > thead > tr'), await page.locator('#methods tr[data-method] td').nth(1).boundingBox()];
			assert.ok(await head.evaluate((row) => row.scrollWidth <= row.clientWidth), 'every head is seen');
			assert.equal((await page.locator('#methods tr[data-method] td').nth(4).boundingBox()).x, first.x, 'total times are below self times');
			assert.ok((await page.locator('[data-one] [data-stat=p50] .whisker').boundingBox()).width > 200, "the intervals in a row's details are as wide as the row");
		}
		if (shots) await page.screenshot({ path: path.join(shots, `versus-${scheme}-${width}.png`), fullPage: true });
		await page.goto(`${server.url}/fleet/compare?a=8.3.0&b=9.9.9`);
		await page.waitForSelector('.notice.warn');
		assert.deepEqual([await unreadable(page), await violations(page)], [[], []]);
		await done(page, t);
	});
