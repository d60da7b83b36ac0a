/*
 * Craft: what holds on every page, in both themes, by keyboard, on any width, while loading and when
 * something fails.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { violations } from '../axe.mjs';
import { THEMES, settled, signInAs, unreadable } from '../browser.mjs';
import { browser, done, id, openTrace, server, watched } from '../page.mjs';
import { fleet } from '../../gen/anr_fleet.mjs';
import { sampleTrace } from '../make.mjs';
import { binary, inFull, root, tracewell, until } from '../server.mjs';

const SHIFT = 0.005; // 0.1 is what counts as good; a title that grows with its trace's name is the last that moves
let anr, other; // a trace with a report, one to compare with: created on demand
const person = { name: 'crafter', password: 'sees every page' };
let session; // of that person, once signed in

/* Signed in as a user who may open every page. */
async function enter(page) {
	if (session) {
		await page.context().addCookies(session);
		return page.goto(server.url);
	}
	execFileSync(binary(), ['user', 'create', person.name, '--data', server.data], { input: person.password });
	for (const role of [['server-admin'], ['editor', '--project', 'test']]) tracewell('user', 'role', person.name, '--data', server.data, '--role', ...role);
	await signInAs(page, server, person.name, person.password);
	session = await page.context().cookies();
}

async function open(target = '/', scheme = 'light', width = 1280) {
	const page = await watched(scheme, width);
	await enter(page);
	if (target !== '/') await page.goto(server.url + target);
	return page;
}

/* Every page: name, address, and a selector that matches once it is complete. */
async function pages() {
	anr ??= (await server.trace(fs.readFileSync(path.join(root, 'tests/golden/anr/realistic/input')), { query: { app: 'com.example.shop', scenario: 'anr' } })).id;
	other ??= (await server.trace(sampleTrace(50), { query: { app: 'com.example.app', scenario: 'scroll', build_id: 'unnamed' } })).id;
	return [
		['overview', '/', '#newest td'], ['list', '/traces', 'td'], ['nothing found', '/traces?q=nothing+like+it', 'text=No traces match'], ['builds', '/builds', 'h1'],
		['trace', `/traces/${id}?find=okhttp3`, '[data-flame]'], ['callers', `/traces/${id}?view=sandwich&method=1`, '[data-half=Callees]'],
		['steps', `/traces/${id}?view=bottom_up&t=recursion,merge:1&threads=all`, '[data-flame]'],
		['methods', `/traces/${id}?tab=methods`, '.methods tbody tr'], ['call tree', `/traces/${id}?tab=tree`, '.treerow[aria-level="2"]'], ['report', `/traces/${id}?tab=report`, 'dl.facts'],
		['anr', `/traces/${anr}?stack=0&waits=1`, '#anr .opened'], ['no such trace', '/traces/01ARZ3NDEKTSV4RRFFQ69G5FAV', '[role=alert]'], ['no such page', '/builds/none', '[role=alert], h1'],
		['compare', `/compare?a=${id}&b=${other}`, '.compared tbody tr'], ['regressions', '/regressions', '#thresholds input'], ['fleet methods', '/fleet/methods', '#methods tbody tr, #methods > p'], ['fleet flame graph', '/fleet/flame', '#flame canvas, #flame p'],
		['fleet method', '/fleet/methods?method=com.example.None', '#method [role=alert]'], ['two sides of the fleet', '/fleet/compare', 'text=Each side is a version'], ['findings', `/traces/${id}?findings=1`, '#findings h3'], ['detectors', '/detectors', 'text=No differences from'],
		['compare nothing', '/compare', 'text=Choose what to compare'],
		['health', '/health', '#slow'], ['sql', `/traces/${id}?tab=sql&sql=SELECT+name+FROM+method`, '#sql tbody tr'],
		['keys', '/keys', 'main section:last-of-type td'], ['people', '/people', '#accounts td'], ['changes', '/audit', 'tr[data-entry]'], ['account', '/account', 'input[type=password]'],
	];
}

/* One of each kind; in a full run all of them. */
const somePages = async () => (await pages()).filter(([name]) => inFull(true, ['list', 'trace', 'anr', 'compare', 'fleet methods', 'people'].includes(name)));

/* Where axe checks the contrast in the default run too: it takes 5 to 10 s for a table of 2,000 elements, unreadable() 0.1 s. */
const BY_AXE = ['list', 'trace', 'anr', 'people'];

const inFullRuns = inFull(test, () => undefined);

for (const [scheme, width] of THEMES)
	test(`every page can be read and axe finds nothing, ${scheme}, ${width}`, async (t) => {
		const page = await watched(scheme, width);
		await page.goto(server.url);
		await page.waitForSelector('input[type=password]');
		assert.deepEqual(await violations(page), [], 'sign-in');
		await enter(page);
		for (const [name, at, whole] of await (scheme === 'light' ? pages() : somePages())) {
			await page.goto(server.url + at);
			await page.waitForSelector(whole);
			if (at.startsWith('/traces/') && name !== 'no such trace') await page.waitForSelector('[data-ready]');
			await page.waitForFunction(() => !document.querySelector('.busy, .stale')); // what is loaded again is dimmed, what follows a panel that loads is hidden
			await page.locator('button:has-text("as a table"), #anr button:has-text("As a table"), #anr button:has-text("Raw text")').evaluateAll((all) => all.forEach((b) => b.click()));
			assert.deepEqual(await violations(page), [], name);
			if (BY_AXE.includes(name)) assert.deepEqual(await violations(page, ['color-contrast']), [], name);
			assert.deepEqual(await unreadable(page), [], name);
			if (name !== 'trace') continue;
			await page.keyboard.press('Escape');
			await page.keyboard.press('?');
			await page.waitForSelector('dialog[open]');
			assert.deepEqual(await violations(page), [], 'keys');
		}
		await done(page, t);
	});

inFullRuns('nothing moves while a page loads', async (t) => {
	const page = await open();
	await page.addInitScript(() => {
		globalThis.moved = [];
		new PerformanceObserver((list) => {
			for (const e of list.getEntries()) if (!e.hadRecentInput) globalThis.moved.push([e.value, ...e.sources.map((s) => `${s.node?.nodeName} ${s.node?.className} ${s.node?.id}`)]);
		}).observe({ type: 'layout-shift', buffered: true });
	});
	await page.route('**/api/**', async (route) => { // answers come one after the other, as over a slow line
		await new Promise((go) => setTimeout(go, 20 + (route.request().url().length % 7) * 30));
		await route.continue();
	});
	const jumps = [];
	const visit = async (name, at, whole) => {
		await page.goto(server.url + at);
		await page.waitForSelector(whole);
		if (at.startsWith('/traces/') && name !== 'no such trace') await page.waitForSelector('[data-ready]');
		await settled(page);
		const moved = await page.evaluate(() => globalThis.moved);
		const sum = moved.reduce((n, [value]) => n + value, 0);
		t.diagnostic(`${name}: ${sum.toFixed(4)}`);
		if (sum > SHIFT) jumps.push(`${name}: ${JSON.stringify(moved)}`);
	};
	for (const [name, at, whole] of await pages()) await visit(name, at, whole);

	/* an overview whose table of ANRs is full */
	for (const x of fleet(9)) await server.trace(x.text, { query: { app: 'com.example.shop', version_name: x.version, device: x.device, scenario: 'anr' } });
	await until(async () => ((await server.get('/api/v1/anr/groups')).json.total > 5 ? true : undefined), 'more groups than the overview shows');
	for (const width of [1280, 390]) {
		await page.setViewportSize({ width, height: 900 });
		await visit(`overview with ANRs, ${width}`, '/', '#topanrs tr:nth-child(5)');
		await page.waitForSelector('#slowest td');
		assert.ok((await page.locator('#topanrs').boundingBox()).height > 200);
	}
	assert.deepEqual(jumps, []);
	await done(page, t);
});

test('on a phone, buttons and fields are 40 pixels high, other targets at least 24 or far from their neighbours', async () => {
	const context = await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true });
	const page = await context.newPage();
	await enter(page);
	const small = [];
	for (const [name, at, whole] of (await pages()).filter(([name]) => ['overview', 'compare', 'fleet methods', 'builds', 'callers', 'call tree', 'people'].includes(name))) {
		await page.goto(server.url + at);
		await page.waitForSelector(whole);
		await settled(page);
		small.push(...(await violations(page, ['target-size'])).map((line) => `${name}: ${line}`));
		small.push(...await page.locator('button, .button, select, input:not([type=checkbox], [type=radio]), label:has([type=checkbox]), header nav a, .threads li, .treerow:not(.titles)').evaluateAll((all, at) => all
			.filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < (e.matches('.threads :is(.name, .fold)') ? 38 : 40) && !e.matches('.plain:not(th *), .bars *')).map((e) => `${at}: ${e.outerHTML.slice(0, 120)}`), name));
	}
	assert.deepEqual(small, []);
	await context.close();
});

inFullRuns('no request leaves the origin, whatever page is open and however it looks', async (t) => {
	const page = await open(); // notes each request that does
	const asked = [];
	page.on('request', (r) => asked.push(new URL(r.url()).origin));
	for (const [, at, whole] of await pages()) {
		await page.goto(server.url + at);
		await page.waitForSelector(whole);
		await page.click('header >> text=/Dark|Light/');
	}
	assert.ok(asked.length > 20);
	assert.deepEqual([...new Set(asked.filter((o) => o !== 'null'))], [server.url]); // null: texts that the page made itself
	await done(page, t);
});

test('a route loads only the code that it needs', async (t) => {
	const page = await open('/builds');
	const loads = async (at, whole) => {
		const scripts = new Set();
		const receive = (r) => r.url().endsWith('.js') && scripts.add(path.basename(new URL(r.url()).pathname).split('-')[0]);
		page.on('request', receive);
		await page.goto(server.url + at);
		await page.waitForSelector(whole);
		page.off('request', receive);
		return scripts;
	};
	const list = await loads('/traces', 'td');
	const builds = await loads('/builds', 'h1');
	const trace = await loads(`/traces/${id}`, '[data-ready]');
	const compare = await loads(`/compare?a=${id}&b=${id}`, '[data-compared]');
	const [keys, people, account] = [await loads('/keys', 'td'), await loads('/people', 'td'), await loads('/account', 'input')];
	assert.ok(list.has('list') && !list.has('trace') && !list.has('worker') && !list.has('builds'), [...list].join());
	assert.ok(builds.has('builds') && !builds.has('trace') && !builds.has('list'), [...builds].join());
	assert.ok(trace.has('trace') && trace.has('worker') && !trace.has('list'), [...trace].join());
	assert.ok(compare.has('graphpages') && !compare.has('trace') && !compare.has('worker') && !compare.has('list'), [...compare].join());
	for (const [own, has] of Object.entries({ keyspage: keys, people, account })) assert.ok(has.has(own) && !['trace', 'worker', 'list', 'graphpages', 'builds'].some((x) => has.has(x)), [...has].join());
	await done(page, t);
});

test('what a trace needs is requested once, before the code of its page', async (t) => {
	const page = await open('/builds');
	const asked = [];
	page.on('request', (r) => asked.push(new URL(r.url()).pathname + new URL(r.url()).search));
	await page.goto(`${server.url}/traces/${id}`);
	await page.waitForSelector('[data-ready]');
	await settled(page);
	const code = asked.findIndex((at) => at.startsWith('/assets/trace-'));
	for (const at of [`/api/v1/session?trace=${id}`, ...['', '/threads', '/names', '/notes/sums', '/documents?kind=anr'].map((what) => `/api/v1/traces/${id}${what}`)]) {
		assert.equal(asked.filter((one) => one === at).length, 1, `${at}: ${asked.join(' ')}`);
		assert.ok(asked.indexOf(at) < code, `${at}: ${asked.join(' ')}`);
	}
	assert.equal(asked.filter((at) => at.startsWith('/assets/worker-')).length, 1);
	await done(page, t);
});

for (const width of [2560, 3840])
	inFullRuns(`every page fits ${width} pixels`, async (t) => {
		const page = await open('/', 'light', width);
		for (const [name, at, whole] of await pages()) {
			await page.goto(server.url + at);
			await page.waitForSelector(whole);
			assert.deepEqual(await unreadable(page), [], name);
		}
		await done(page, t);
	});

test('no table is wider than its panel, from a phone to a large screen', async (t) => {
	const page = await open();
	const wide = [];
	for (const [name, at, whole] of (await pages()).filter(([, at]) => !at.startsWith('/traces/'))) {
		await page.goto(server.url + at);
		await page.waitForSelector(whole);
		for (const width of [390, 760, 800, 960, 1024, 1280, 2560]) {
			await page.setViewportSize({ width, height: 900 });
			await settled(page);
			wide.push(...await page.locator('.scroll').evaluateAll((all) => all.filter((panel) => panel.scrollWidth > panel.clientWidth).map((panel) => panel.innerText.slice(0, 40))).then((all) => all.map((text) => `${name}, ${width}: ${text}`)));
		}
	}
	assert.deepEqual(wide, []);
	/* with room, the rows are a table again */
	await page.goto(`${server.url}/traces`);
	await page.waitForSelector('td');
	assert.equal(await page.locator('[data-blocks]').count(), 0);
	await page.setViewportSize({ width: 500, height: 900 });
	await page.waitForSelector('[data-blocks] [data-column="Duration"]');
	await page.setViewportSize({ width: 1280, height: 900 });
	await page.waitForSelector('[data-blocks]', { state: 'detached' });
	await done(page, t);
});

test('the focus goes through a page in its order, and is seen', async (t) => {
	const page = await open();
	for (const [name, at, whole] of await somePages()) {
		await page.goto(server.url + at);
		await page.waitForSelector(whole);
		if (at.startsWith('/traces/') && name !== 'no such trace') await page.waitForSelector('[data-ready]');
		assert.equal(await page.locator('[tabindex]:not([tabindex="0"]):not([tabindex="-1"])').count(), 0, 'no order of its own');
		await page.evaluate(() => { globalThis.met = []; });
		for (let i = 0; i < 40; i++) {
			await page.keyboard.press('Tab');
			const said = await page.evaluate(() => {
				const e = document.activeElement;
				if (e === document.body || globalThis.met.includes(e)) return 'round';
				const last = globalThis.met.at(-1);
				globalThis.met.push(e);
				const what = `${e.tagName} ${e.getAttribute('aria-label') ?? e.textContent.slice(0, 30)}`;
				if (last && !(last.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)) return `out of order: ${what}`;
				const box = e.getBoundingClientRect();
				const style = getComputedStyle(e);
				if (box.width === 0 || style.visibility === 'hidden') return `not seen: ${what}`;
				if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 1) return `without a mark: ${what}`;
				return '';
			});
			if (said === 'round') break;
			assert.equal(said, '', name);
		}
	}
	await done(page, t);
});

test('the first key leads past the header', async (t) => {
	const page = await open('/traces');
	await page.waitForSelector('main td');
	await page.keyboard.press('Tab');
	const skip = page.getByRole('button', { name: 'Skip to the content' });
	assert.ok(await skip.evaluate((e) => e === document.activeElement && getComputedStyle(e).clipPath === 'none'), 'it is seen');
	await page.keyboard.press('Enter');
	await page.keyboard.press('Tab');
	assert.ok(await page.evaluate(() => document.querySelector('main').contains(document.activeElement)));
	await done(page, t);
});

test('each canvas has the same content as its table', async (t) => {
	for (const query of ['', '?view=bottom_up', '?threads=all&view=sandwich&method=1', 'compare']) {
		const page = query === 'compare' ? await open(`/compare?a=${id}&b=${id}`) : await openTrace(query);
		await page.waitForSelector('.flame canvas');
		for (const canvas of await page.locator('canvas[role=application]').all()) {
			const panel = canvas.locator('xpath=ancestor::section[contains(@class, "panel")]');
			const label = await canvas.getAttribute('aria-label');
			assert.match(label, /table/, 'it says where');
			const button = panel.locator('button:has-text("as a table")').first();
			if (await button.count()) await button.click();
			await panel.locator('table tbody tr').first().waitFor();
		}
		await done(page, t);
	}
});

test('the keys are behind ? on every page', async (t) => {
	const page = await open();
	for (const [name, at, whole] of await somePages()) {
		await page.goto(server.url + at);
		await page.waitForSelector(whole);
		await page.keyboard.press('?');
		await page.waitForSelector('dialog[open] > .keys h3').catch(() => assert.fail(name)); // those of this page
		await page.keyboard.press('Escape');
		await page.waitForSelector('dialog[open]', { state: 'detached' });
	}
	await done(page, t);
});

test('reduced motion disables animations', async (t) => {
	const page = await open('/builds');
	await page.emulateMedia({ reducedMotion: 'reduce' });
	await page.route(/\/(threads|traces)(\?|$)/, () => {}); // never answers
	await page.goto(`${server.url}/traces/${id}`);
	await page.waitForSelector('.spinner');
	assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
	await page.emulateMedia({ reducedMotion: 'no-preference' });
	await page.waitForFunction(() => document.getAnimations().length > 0);
	await done(page, t);
});

/* The request, where its result is shown, and the placeholder until then. */
const views = [
	['/traces', /\/api\/v1\/traces\?/, 'main', 'Loading traces'], ['/builds', /\/api\/v1\/builds/, 'main', 'Loading builds'],
	['trace', /\/traces\/\w+(\?|$)/, 'main', 'Opening the trace'], ['trace', /\/threads(\?|$)/, 'main', 'Opening the trace'], ['trace', /\/names(\?|$)/, 'main', 'Opening the trace'],
	[() => `/compare?a=${id}&b=${id}`, /\/compare\?/, 'main', 'Comparing'], [() => `/compare?a=${id}&b=${id}`, /\/compare\/methods\?/, '.panel[aria-label=Methods]', 'Summing both sides'],
	['/keys', /\/api\/v1\/keys/, 'main', 'Loading keys'], ['/keys', /\/api\/v1\/projects/, 'main', 'Loading projects'],
	['/people', /\/api\/v1\/users/, '#accounts', 'Loading accounts'], ['/people', /\/api\/v1\/members/, '#members', 'Loading members'], ['/audit', /\/api\/v1\/audit/, 'main', 'Loading changes'],
	['trace', /\/flame\?/, '.panel[aria-label="Merged flame graph"]', 'Merging calls'], [() => `/traces/${id}?tab=methods`, /\/methods\?/, '.panel[aria-label=Methods]', 'Summing'],
];

for (const [i, [where, what, place, words]] of views.entries())
	(i % 3 ? inFullRuns : test)(`${what.source} that takes long is shown with its duration, one that fails with a way to continue`, async (t) => {
		const page = await open(where === '/builds' ? '/' : '/builds');
		let held;
		let way = 'hold';
		await page.route((url) => what.test(url.pathname + url.search) && url.pathname.startsWith('/api/'), (route) => {
			if (way === 'hold') held = route;
			else if (way === 'fail') void route.fulfill({ status: 500, json: { error: { status: 'io', message: 'the disk is on fire' } } });
			else void route.continue();
		});
		await page.goto(server.url + (where === 'trace' ? `/traces/${id}` : typeof where === 'function' ? where() : where));
		await page.waitForSelector(`${place} >> text=${words}`);
		await page.waitForSelector(`${place} .busy >> text=/[1-9] s/`);
		way = 'fail';
		await held.fulfill({ status: 500, json: { error: { status: 'io', message: 'the disk is on fire' } } });
		await page.waitForSelector(`${place} [role=alert] >> text=the disk is on fire`);
		way = 'go on';
		await page.click(`${place} >> text=Try again`);
		await page.waitForSelector(`${place} [role=alert]`, { state: 'detached' });
		await page.waitForSelector(`${place} >> css=td, canvas`);
		await done(page, t);
	});

test('a request that the server does not answer can be repeated', async (t) => {
	const page = await open('/builds');
	await page.clock.install();
	let asked = 0;
	await page.route((url) => url.pathname === '/api/v1/traces', (route) => asked++ && route.continue());
	await page.click('header >> text=Traces');
	await page.waitForSelector('main .busy');
	await page.clock.runFor(9_000);
	assert.ok(!(await page.locator('.busy').innerText()).includes('not responded'));
	await page.clock.runFor(2_000);
	await page.click('.busy:has-text("The server has not responded yet.") >> text=Try again');
	await page.waitForSelector('td');
	assert.ok(asked > 1);
	await done(page, t);
});

test('an incomplete response is marked as such', async (t) => {
	const page = await open('/builds');
	await page.route(/\/(flame|methods)\?/, async (route) => {
		const answer = await route.fetch();
		await route.fulfill({ response: answer, json: { ...(await answer.json()), partial: true } });
	});
	await page.goto(`${server.url}/traces/${id}`);
	await page.waitForSelector('.panel[aria-label="Merged flame graph"] >> text=incomplete');
	await page.getByRole('tab', { name: 'Methods' }).click();
	await page.waitForSelector('.panel[aria-label=Methods] >> text=incomplete');
	await done(page, t);
});

test('a form that opens below a long table is scrolled to, its first field focused', async (t) => {
	const page = await open('/detectors');
	await page.setViewportSize({ width: 1280, height: 500 });
	await page.getByRole('button', { name: /^Edit / }).first().click();
	const title = page.locator('form.rule [name=title]');
	await title.waitFor();
	await settled(page);
	assert.equal(await title.evaluate((field) => field === document.activeElement), true);
	assert.equal(await page.locator('form.rule').evaluate((form) => form.getBoundingClientRect().bottom < innerHeight + 1), true); // scrolled by whole pixels
	await done(page, t);
});

test('a pressed button is seen in forced colours, and dark pages are printed in light ones', async (t) => {
	const page = await openTrace();
	const back = (pressed) => page.locator(`.choice button[aria-pressed=${pressed}]`).first().evaluate((e) => getComputedStyle(e).backgroundColor);
	await page.emulateMedia({ forcedColors: 'active' });
	await page.locator('.choice button').first().waitFor();
	assert.notEqual(await back(true), await back(false));
	await page.emulateMedia({ forcedColors: null, colorScheme: 'dark' });
	await page.waitForSelector('html[data-theme=dark]');
	const ink = () => page.evaluate(() => getComputedStyle(document.documentElement).color);
	const onScreen = await ink();
	await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
	assert.notEqual(await ink(), onScreen);
	assert.equal(await ink(), 'rgb(27, 36, 38)', 'that of the light theme');
	assert.equal(await page.locator('.top').isVisible(), false);
	await page.emulateMedia({ media: null, colorScheme: null });
	await done(page, t);
});
