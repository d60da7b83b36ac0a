/*
 * The page in a real browser with the real server: the steps of a user.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { THEMES, painted, settled, signIn, unreadable, tab } from '../browser.mjs';
import { btrace } from '../make.mjs';
import { browser, dir, done, id, open, openTrace, server, shots, truth } from '../page.mjs';
import { startServer, tracewell, until } from '../server.mjs';

test('the list shows the trace, filters it and finds it', async (t) => {
	const page = await open('/traces');
	await page.waitForSelector('td a:has-text("cold_start")');
	await page.fill('input[type=search]', 'nothing like it');
	await page.waitForSelector('text=No traces match these filters');
	await page.click('text=Clear');
	await page.waitForSelector('td a:has-text("cold_start")');
	await done(page, t);
});

test('a trace opens with its threads, its calls and real names', async (t) => {
	const page = await openTrace();
	assert.equal(await page.locator('.threads li').count(), Object.keys(truth.threads).length);
	assert.match(await page.locator('.threads .name[aria-pressed=true]').innerText(), /main/);
	await page.click('text=Visible calls as a table');
	await page.waitForSelector('.short td.mono');
	const names = await page.locator('.short td.mono').allInnerTexts();
	assert.ok(names.length > 10);
	assert.ok(names.filter((n) => n in truth.methods).length > names.length / 2, names[0]);
	await done(page, t);
});

test('names of methods remain text', async (t) => {
	const page = await openTrace('?tab=methods');
	const name = await page.locator('.methods tbody tr').first().innerText();
	assert.ok(name.includes('<img'), name);
	assert.equal(await page.locator('main img').count(), 0);
	await done(page, t);
});

test('a trace is asked for once, while the page\'s code still comes', async (t) => {
	const page = await open();
	const asked = [];
	page.on('request', (r) => r.url().includes('/api/v1/') && asked.push(new URL(r.url()).pathname.replace(/.*\/traces\/[0-9A-Z]+/, '')));
	await page.goto(`${server.url}/traces/${id}`);
	await page.waitForSelector('[data-ready]');
	const early = ['', '/threads', '/names', '/notes/sums'];
	for (const what of early) assert.equal(asked.filter((a) => a === what).length, 1, `${what || 'the trace'} is asked for once`);
	const first = asked.findIndex((a) => a === '/slices');
	assert.ok(early.every((what) => asked.indexOf(what) < first));
	await page.goto(`${server.url}/traces/01HHHHHHHHHHHHHHHHHHHHHHHH`);
	await page.waitForSelector('[role=alert] >> text=Trace not found');
	await done(page, t);
});

test('the first picture is drawn before progress is reported', async (t) => {
	const page = await open();
	await page.addInitScript(() => {
		window.heard = [];
		window.Worker = class extends window.Worker {
			constructor(...args) {
				super(...args);
				this.addEventListener('message', (e) => window.heard.push(e.data.kind));
			}
		};
	});
	await page.goto(`${server.url}/traces/${id}`);
	await page.waitForSelector('[data-ready]');
	const heard = await page.evaluate(() => window.heard);
	assert.ok(heard.includes('progress'));
	assert.ok(heard.indexOf('painted') < heard.indexOf('progress'), heard.join(' '));
	await done(page, t);
});

test('colours without red and green are stored', async (t) => {
	const page = await openTrace();
	const pixels = () => page.evaluate(() => [...document.querySelector('canvas.calls').getContext('2d').getImageData(0, 0, 1200, 400).data].reduce((n, v, i) => (n * 31 + v * (i % 7)) % 1e9, 0));
	const before = await pixels();
	await page.locator('#upper').getByRole('button', { name: 'Colours', exact: true }).click();
	await page.getByLabel('Colour-blind palette').check();
	await settled(page);
	assert.notEqual(await pixels(), before);
	await page.reload();
	await page.waitForSelector('[data-ready]');
	await page.locator('#upper').getByRole('button', { name: 'Colours', exact: true }).click();
	assert.ok(await page.getByLabel('Colour-blind palette').isChecked());
	await done(page, t);
});

test('the wheel zooms, the address holds the view, a reload keeps it', async (t) => {
	const page = await openTrace();
	const before = await page.locator('.under .quiet').first().innerText();
	const box = await page.locator('canvas.calls').boundingBox();
	await page.mouse.move(box.x + box.width / 2, box.y + 60);
	for (let i = 0; i < 5; i++) {
		await page.keyboard.down('Control');
		await page.mouse.wheel(0, -300);
		await page.keyboard.up('Control');
		await painted(page);
	}
	await page.waitForFunction((b) => document.querySelector('.under .quiet').textContent !== b, before);
	const zoomed = await page.locator('.under .quiet').first().innerText();
	await settled(page);
	assert.match(page.url(), /from=\d+&to=\d+/);
	await page.reload();
	await page.waitForSelector('[data-ready]');
	assert.equal(await page.locator('.under .quiet').first().innerText(), zoomed);
	await done(page, t);
});

test('keys zoom and fit', async (t) => {
	const page = await openTrace();
	const span = () => page.locator('.under .quiet').first().innerText();
	const whole = await span();
	await page.locator('canvas.calls').focus();
	await page.keyboard.press('w');
	await page.waitForFunction((b) => document.querySelector('.under .quiet').textContent !== b, whole);
	await page.keyboard.press('?');
	await page.waitForSelector('dialog[open]');
	await page.keyboard.press('Escape');
	await done(page, t);
});

test('the pointer shows name, wall, self, share and count of a call', async (t) => {
	const page = await openTrace();
	await page.click('text=Visible calls as a table');
	const row = page.locator('.short tbody tr').first();
	const box = await page.locator('canvas.calls').boundingBox();
	for (let x = 10; x < box.width && (await page.locator('.tip').count()) === 0; x += 15) {
		await page.mouse.move(box.x + x, box.y + 30);
		await painted(page);
	}
	assert.equal(await row.count(), 1);
	const tip = await page.locator('.tip').innerText();
	const of = (what) => new RegExp(`^${what}\\s+(.+)$`, 'm').exec(tip)?.[1] ?? assert.fail(`${what} in ${tip}`);
	const name = tip.split('\n')[0];
	const tid = await page.evaluate(() => document.querySelector('.threads .name[aria-pressed=true] .num').textContent);
	const { methods } = (await server.get(`/api/v1/traces/${id}/methods?thread=${tid}&limit=10000`)).json;
	const m = methods.find((x) => x.name === name);
	assert.ok(m, `${name} is a method of the thread`);
	assert.equal(Number(of('count').split(' ')[0].replaceAll(',', '')), m.count);
	assert.match(of('wall'), /\d (s|ms|µs|ns)$/);
	assert.match(of('self'), /^0$|\d (s|ms|µs|ns)$/);
	assert.match(of('share'), /% of the thread's busy time/);
	await done(page, t);
});

test('dragging moves the view, and so does the minimap', async (t) => {
	const page = await openTrace();
	const view = () => {
		const q = new URL(page.url()).searchParams;
		return [Number(q.get('from')), Number(q.get('to'))];
	};
	const box = await page.locator('canvas.calls').boundingBox();
	await page.mouse.move(box.x + box.width / 2, box.y + 60);
	await page.keyboard.down('Control');
	await page.mouse.wheel(0, -600);
	await page.keyboard.up('Control');
	await settled(page);
	const [from, to] = view();
	await page.mouse.down();
	await page.mouse.move(box.x + box.width / 4, box.y + 60, { steps: 8 });
	await page.mouse.up();
	await settled(page);
	const [panned, pannedTo] = view();
	assert.ok(Math.abs(panned - from - (to - from) / 4) < (to - from) * 0.01, 'a quarter of the view later');
	assert.ok(Math.abs(pannedTo - panned - (to - from)) <= 2, 'as much in view as before');
	const strip = await page.locator('.minimap').boundingBox();
	await page.mouse.move(strip.x + strip.width * 0.5, strip.y + 10);
	await page.mouse.down();
	await page.mouse.move(strip.x + strip.width * 0.25, strip.y + 10, { steps: 4 });
	await page.mouse.up();
	await settled(page);
	const trace = (await server.get(`/api/v1/traces/${id}`)).json;
	const [a, b] = view();
	const middle = trace.start_ns + (trace.end_ns - trace.start_ns) * 0.25;
	assert.ok(Math.abs((a + b) / 2 - middle) < (trace.end_ns - trace.start_ns) * 0.01, 'where the minimap was let go');
	await done(page, t);
});

test('the address is written rarely, however much the wheel turns', async (t) => {
	const page = await openTrace();
	await page.evaluate(() => {
		window.writes = 0;
		const real = history.replaceState.bind(history);
		history.replaceState = (...a) => { window.writes++; real(...a); };
	});
	const ms = await page.evaluate(async () => {
		const c = document.querySelector('canvas.calls');
		const begun = performance.now();
		for (let i = 0; i < 200; i++) {
			c.dispatchEvent(new WheelEvent('wheel', { deltaY: i % 2 ? 40 : -60, bubbles: true, cancelable: true }));
			await new Promise((done) => setTimeout(done, 5));
		}
		return performance.now() - begun;
	});
	await settled(page);
	const writes = await page.evaluate(() => window.writes);
	assert.ok(writes > 0 && writes <= ms / 250 + 3, `${writes} writes in ${Math.round(ms)} ms`); // four a second, however slow the machine
	await done(page, t);
});

test('scroll, order and filter are in the address, and survive a reload', async (t) => {
	const page = await openTrace('?tab=methods');
	const box = await page.locator('canvas.calls').boundingBox();
	await page.mouse.move(box.x + 300, box.y + 100);
	await page.keyboard.down('Shift');
	await page.mouse.wheel(0, 90);
	await page.keyboard.up('Shift');
	await page.fill('.panel[aria-label=Methods] input[type=search]', 'okhttp');
	await page.waitForFunction(() => [...document.querySelectorAll('.methods tbody .name')].every((e) => e.textContent.includes('okhttp')));
	await settled(page); // a click on a heading that is replaced at that moment would be lost
	await page.click('.methods >> text=Calls');
	await page.waitForSelector('th[aria-sort=descending]:has-text("Calls")');
	await settled(page);
	const q = new URL(page.url()).searchParams;
	assert.deepEqual([q.get('sort'), q.get('filter')], ['count', 'okhttp']);
	assert.match(q.get('open'), /^\d+\.5$/, 'the thread, from its fifth row on');
	/* quantiles come after the rest */
	const whole = () => page.waitForFunction(() => !document.querySelector('.methods tbody').innerText.includes('–'));
	await whole();
	const rows = await page.locator('.methods tbody').innerText();
	await page.reload();
	await page.waitForSelector('[data-ready]');
	await page.waitForSelector('th[aria-sort=descending]:has-text("Calls")');
	await whole();
	assert.equal(await page.locator('.methods tbody').innerText(), rows);
	assert.equal(await page.inputValue('.panel[aria-label=Methods] input[type=search]'), 'okhttp');
	await settled(page);
	assert.equal(new URL(page.url()).searchParams.get('open'), q.get('open'));
	await done(page, t);
});

test('a search counts, steps to each call and begins again', async (t) => {
	const page = await openTrace();
	const tid = await page.evaluate(() => document.querySelector('.threads .name[aria-pressed=true] .num').textContent);
	const { methods } = (await server.get(`/api/v1/traces/${id}/methods?thread=${tid}&limit=10000`)).json;
	const rare = methods.find((m) => m.count === 3 && methods.filter((x) => x.name.includes(m.name)).length === 1);
	await page.fill('.search input', rare.name);
	await page.waitForSelector('.search output:has-text("3 calls in")');
	const { names } = (await server.get(`/api/v1/traces/${id}/names`)).json;
	assert.match(await page.locator('.search output').innerText(), new RegExp(`^1 of ${names.length.toLocaleString('en')} methods`));
	assert.match(await page.locator('.search output').innerText(), /% of its busy time$/);
	const step = async (button) => {
		const before = page.url();
		await page.click(`.search >> text=${button}`);
		await page.waitForURL((url) => url.href !== before);
		await settled(page);
		return page.url();
	};
	const met = [];
	for (let i = 0; i < 4; i++) met.push(await step('Next'));
	assert.equal(new Set(met.slice(0, 3)).size, 3, 'three calls');
	assert.equal(met[3], met[0], 'and round');
	assert.equal(await step('Previous'), met[2]);
	await page.fill('.search input', '/(/');
	await page.waitForSelector('.search output:has-text("not an expression")');
	await done(page, t);
});

test('a selected range re-computes the flame graph and the table', async (t) => {
	const page = await openTrace('?tab=methods');
	const first = () => page.locator('.methods tbody tr').first().innerText();
	const whole = await first();
	const box = await page.locator('canvas.calls').boundingBox();
	await page.keyboard.down('Shift');
	await page.mouse.move(box.x + box.width * 0.3, box.y + 90);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width * 0.4, box.y + 95, { steps: 6 });
	await page.mouse.up();
	await page.keyboard.up('Shift');
	await page.waitForFunction((w) => document.querySelector('.methods tbody tr')?.innerText !== w, whole);
	await settled(page);
	const q = new URL(page.url()).searchParams;
	assert.ok(Number(q.get('b')) > Number(q.get('a')));
	const tid = await page.evaluate(() => document.querySelector('.threads .name[aria-pressed=true] .num').textContent);
	const { methods } = (await server.get(`/api/v1/traces/${id}/methods?thread=${tid}&from=${q.get('a')}&to=${q.get('b')}&limit=10000`)).json;
	const busy = methods.reduce((n, m) => n + m.self_ns, 0);
	const share = (100 * methods[0].self_ns) / busy;
	await page.waitForFunction((want) => Math.abs(parseFloat(document.querySelector('.methods .share').textContent) - want) <= 0.6, share);
	await page.click('text=Clear the selection');
	await page.waitForFunction((w) => document.querySelector('.methods tbody tr')?.innerText === w, whole);
	await done(page, t);
});

test('the flame graph goes into a node and comes back', async (t) => {
	const page = await openTrace();
	const canvas = page.locator('.flame canvas');
	await canvas.waitFor();
	await canvas.click({ position: { x: 30, y: 28 } });
	await page.waitForSelector('.crumbs');
	assert.ok(new URL(page.url()).searchParams.get('root'));
	await page.click('.crumbs >> text=Top');
	await page.waitForSelector('.crumbs', { state: 'detached' });
	await page.click('text=Bottom-up');
	await page.waitForFunction(() => location.search.includes('bottom_up'));
	await done(page, t);
});

test('a mapping that comes late gives its names to the open page', async (t) => {
	const late = tracewell('push', '--server', server.url, '--key', server.ingest, '--build-id', 'late-web', '--wait', path.join(dir, 'rhea-atrace.bin'));
	const page = await open(`/traces/${late}?tab=methods`);
	await page.waitForSelector('text=Method names are missing.');
	await page.waitForSelector('.methods >> text=/unknown:\\d+/');
	await server.put('/api/v1/builds/late-web/methods', fs.readFileSync(path.join(dir, 'methodMapping.txt')));
	await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
	await page.waitForSelector('text=Method names are missing.', { state: 'detached' });
	await page.waitForFunction(() => !document.querySelector('.methods').innerText.includes('unknown:'));
	await done(page, t);
});

test('a second click while the response is pending selects the visible node', async (t) => {
	const page = await openTrace();
	await page.waitForSelector('[data-flame]');
	let goOn;
	const held = new Promise((done) => (goOn = done));
	await page.route('**/flame?*', async (route) => {
		await held;
		await route.continue();
	});
	await page.locator('.flame canvas').dblclick({ position: { x: 30, y: 28 } });
	goOn();
	await page.waitForSelector('.crumbs');
	await page.waitForSelector('[data-flame]');
	assert.match(new URL(page.url()).searchParams.get('root'), /^\d+$/, 'one step, not two');
	assert.equal(await page.locator('[role=alert]').count(), 0);
	await done(page, t);
});

test('nothing stays hidden in (other), top-down and bottom-up', async (t) => {
	const small = await startServer(t, { args: ['--flame-nodes', '9'] });
	const records = Array.from({ length: 60 }, (_, i) => [[4000, 100, 1e6 + i * 1e5, 500 + i], [4000, 1 + i, 1e6 + i * 1e5, 9000 + 7 * i]]).flat();
	const trace = (await small.trace(btrace(records))).id;
	for (const view of ['top_down', 'bottom_up']) {
		const page = await browser.newPage();
		await signIn(page, small);
		const whole = (await small.get(`/api/v1/traces/${trace}/flame?thread=all&view=${view}&max_nodes=200000`)).json;
		await page.goto(`${small.url}/traces/${trace}?threads=all&view=${view}`);
		await page.waitForSelector('[data-flame]');
		await page.click('text=Children as a table');
		const panel = page.locator('.panel[aria-label="Merged flame graph"]');
		const seen = new Set();
		for (let turn = 0; turn < 80; turn++) {
			const names = await panel.locator('tbody .name').allInnerTexts();
			names.filter((n) => !/ smaller nodes$/.test(n)).forEach((n) => seen.add(n));
			const rest = panel.locator('tbody button:has-text("smaller nodes")');
			if ((await rest.count()) === 0) break;
			const before = page.url();
			await rest.click();
			await page.waitForFunction((b) => location.href !== b, before);
			await page.waitForSelector('[data-flame]');
		}
		const want = new Set(whole.children.filter((c) => !c.other).map((c) => c.name));
		assert.deepEqual([...want].filter((n) => !seen.has(n)), [], view);
		await page.click('.crumbs >> text=Top');
		await page.waitForSelector('.crumbs', { state: 'detached' });
		await page.close();
	}
	/* in a sandwich: every caller of one method */
	const page = await browser.newPage();
	await signIn(page, small);
	const { methods } = (await small.get(`/api/v1/traces/${trace}/methods?limit=1000`)).json;
	await page.goto(`${small.url}/traces/${trace}?threads=all&view=sandwich&method=${methods.find((m) => m.id === 100).method}`);
	await page.click('text=Callers as a table');
	const half = page.locator('[data-half="Callers"]');
	const callers = new Set();
	for (let turn = 0; turn < 20; turn++) {
		await half.locator('tbody .name').first().waitFor();
		(await half.locator('tbody .name').allInnerTexts()).filter((n) => !/ smaller nodes$/.test(n)).forEach((n) => callers.add(n));
		const rest = half.locator('tbody button:has-text("smaller nodes")');
		if ((await rest.count()) === 0) break;
		const before = page.url();
		await rest.click();
		await page.waitForFunction((b) => location.href !== b, before);
		await half.waitFor();
	}
	assert.equal(callers.size, 60);
	await page.reload();
	await page.click('text=All callers');
	await page.waitForSelector('text=All callers', { state: 'detached' });
	await page.close();
});

test('the arrows walk the merged graph, Enter opens, Escape goes up', async (t) => {
	const page = await openTrace();
	await page.waitForSelector('[data-flame]');
	const tid = await page.evaluate(() => document.querySelector('.threads .name[aria-pressed=true] .num').textContent);
	const flame = (await server.get(`/api/v1/traces/${id}/flame?thread=${tid}`)).json;
	const at = (name) => page.waitForFunction((n) => document.querySelector('.keyed .mono')?.textContent === n, name);
	await page.locator('.flame canvas').focus();
	await page.keyboard.press('Home');
	await at(flame.name);
	await page.keyboard.press('ArrowDown');
	await at(flame.children[0].name);
	await page.keyboard.press('ArrowRight');
	await at(flame.children[1].name);
	await page.keyboard.press('ArrowLeft');
	await page.keyboard.press('ArrowDown');
	await at(flame.children[0].children[0].name);
	await page.keyboard.press('ArrowUp');
	await at(flame.children[0].name);
	await page.keyboard.press('Enter');
	await page.waitForSelector('.crumbs');
	assert.equal(new URL(page.url()).searchParams.get('root'), String(flame.children[0].method));
	await page.waitForSelector('[data-flame]');
	await page.keyboard.press('Escape');
	await page.waitForSelector('.crumbs', { state: 'detached' });
	await at(flame.children[0].name);
	await page.keyboard.press('Enter'); /* both at once: the way back is not lost while the way in still comes */
	await page.keyboard.press('Escape');
	await page.waitForSelector('.crumbs', { state: 'detached' });
	await page.waitForSelector('[data-flame]');
	assert.equal(new URL(page.url()).searchParams.get('root') ?? '', '');
	await done(page, t);
});

test('graph and table can be of all threads', async (t) => {
	const page = await openTrace('?tab=methods');
	await page.locator('.panel[aria-label=Methods] >> text=All threads').click();
	await page.waitForSelector(`text=of ${Object.keys(truth.methods).length.toLocaleString('en')} methods;`);
	const first = page.locator('.methods tbody tr').first();
	const top = Object.values(truth.methods).sort((a, b) => b.self_ns - a.self_ns)[0];
	assert.ok((await first.innerText()).includes(top.count.toLocaleString('en')));
	await page.reload();
	await tab(page, 'Flame graph');
	await page.waitForSelector('.panel[aria-label="Merged flame graph"] [aria-pressed=true]:has-text("All threads")');
	await done(page, t);
});

test('a chunk that fails once is requested again; one that keeps failing is reported', async (t) => {
	const page = await open('/builds');
	let failures = 2;
	let stays = false;
	await page.route(/\/slices\/\d+/, (route) => {
		if (stays) return route.fulfill({ status: 404, json: { error: { status: 'not_found', message: 'gone with the wind' } } });
		return failures-- > 0 ? route.fulfill({ status: 503, body: '' }) : route.continue();
	});
	await page.goto(`${server.url}/traces/${id}`);
	await page.waitForSelector('[data-ready]');
	assert.ok(failures < 0);
	await settled(page); // a key on a name that is replaced at that moment is lost
	await page.evaluate(() => { // the failure arrives before the effects of the render that opens the thread
		const frame = requestAnimationFrame;
		window.requestAnimationFrame = (run) => frame(() => setTimeout(run, 200));
	});
	stays = true;
	await page.locator('.threads .name').nth(1).press('Enter');
	await page.waitForSelector('text=gone with the wind');
	stays = false;
	await page.click('text=Try again');
	await page.waitForSelector('[data-ready]');
	await done(page, t);
});

test('closing a thread stops its load, and others go on', async (t) => {
	const page = await open('/builds');
	const stopped = [];
	page.on('requestfailed', (r) => stopped.push(r.url()));
	let held;
	await page.route(/\/slices\/\d+/, (route) => (held ? route.continue() : (held = route))); // the first never comes
	await page.goto(`${server.url}/traces/${id}`);
	await until(async () => held, 'the first chunk');
	await page.locator('.threads .name').nth(1).press('Enter');
	await page.locator('.threads .fold').nth(0).press('Enter');
	await page.waitForSelector('[data-ready]');
	await until(async () => stopped.find((u) => u === held.request().url()), 'the request ended', 5);
	await done(page, t);
});

test('builds are loaded again until their mappings are compiled', async (t) => {
	const page = await open('/traces');
	let state = 'queued';
	await page.route('**/api/v1/builds*', async (route) => {
		const response = await route.fetch();
		const json = await response.json();
		await route.fulfill({ response, json: { ...json, builds: json.builds.map((b) => ({ ...b, state })) } });
	});
	await page.goto(`${server.url}/builds`);
	for (const [next, shown] of [['compiling', 'new upload queued'], ['ready', 'new upload being compiled']]) {
		await page.waitForSelector(`td >> text=${shown}`);
		state = next;
	}
	await page.locator('td', { hasText: 'new upload' }).first().waitFor({ state: 'detached' });
	await done(page, t);
});

test('the check of legibility finds illegible text', async (t) => {
	const page = await open('/builds');
	await page.waitForSelector('table');
	assert.deepEqual(await unreadable(page), []);
	await page.evaluate(() => {
		const style = (what, css) => Object.assign(document.querySelector(what).style, css);
		style('h1', { color: '#bbb', background: '#ccc' });
		style('td a', { display: 'block', width: '12px', overflow: 'hidden', whiteSpace: 'nowrap' });
		style('p', { width: '3000px' });
	});
	const found = (await unreadable(page)).join('\n');
	assert.match(found, /contrast 1\.\d+: Builds/);
	assert.match(found, /cut off/);
	assert.match(found, /sticks out: P/);
	await done(page, t);
});

for (const [scheme, width] of THEMES)
	test(`every page can be read in ${scheme} at ${width}`, async (t) => {
		const page = await open('/', scheme, width);
		const look = async (what) => {
			assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), scheme);
			assert.deepEqual(await unreadable(page), [], what);
			if (shots) await page.screenshot({ path: path.join(shots, `${what}-${scheme}-${width}.png`), fullPage: true });
		};
		await page.waitForSelector('td');
		await look('list');
		await page.goto(`${server.url}/traces?q=nothing+like+it`);
		await page.waitForSelector('text=No traces match these filters');
		await look('none');
		await page.goto(`${server.url}/builds`);
		await page.waitForSelector('td');
		await look('builds');
		const trace = (await server.get(`/api/v1/traces/${id}`)).json;
		const span = trace.end_ns - trace.start_ns;
		await page.goto(`${server.url}/traces/${id}?find=okhttp3&a=${trace.start_ns + Math.floor(span / 4)}&b=${trace.start_ns + Math.floor(span / 2)}`);
		await page.waitForSelector('[data-ready]');
		await page.waitForSelector('[data-flame]');
		await page.click('text=Visible calls as a table');
		await page.click('text=Children as a table');
		await look('trace');
		for (const [name, there] of [['Call tree', '.treebody .treerow'], ['Methods', '.methods tbody tr'], ['Findings', '#findings h3'], ['Report', 'dl.facts']]) {
			await tab(page, name);
			await page.waitForSelector(there);
			await look(name);
		}
		await page.keyboard.press('?');
		await page.waitForSelector('dialog[open]');
		await look('keys');
		await done(page, t);
	});

test('a context whose clock was changed is not given to another test', async () => {
	const now = async (time) => {
		const page = await browser.newPage();
		if (time) await page.clock.setFixedTime(time);
		await page.goto(server.url);
		const at = await page.evaluate(() => Date.now());
		await page.close();
		return at;
	};
	assert.equal(await now(1000), 1000);
	assert.ok(await now() > 1000);
});
