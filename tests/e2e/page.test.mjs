/*
 * The page in a real browser against the real server: what a person would do by hand.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { btrace } from './make.mjs';
import { launch, signIn, unreadable } from './browser.mjs';
import { binary, startServer, tracewell, until } from './server.mjs';

const sim = path.join(path.dirname(binary()), '..', 'tests', 'tracewell-sim');
const shots = process.env.SCREENSHOTS;
const HOSTILE = '<img src=x onerror=alert(1)>';
const WRITTEN_MS = 400; // by then the address holds the view
let server, browser, dir, truth, id, ui, uiUrl, handed;
let mute = false; // the stand-in for the Perfetto UI does not answer
const ending = [];

/* Stands in for the Perfetto UI: answers PING, keeps what it is given. */
function fakeUi() {
	const page = `<!doctype html><script>
		addEventListener('message', (e) => {
			const p = e.data.perfetto;
			if (e.data === 'PING') e.source.postMessage('PONG', '*');
			else if (p) fetch('/got?' + new URLSearchParams({ title: p.title, url: p.url }), { method: 'POST', body: p.buffer });
		});</script>`;
	return http.createServer((req, res) => {
		if (req.method !== 'POST') return res.setHeader('content-type', 'text/html').end(mute ? 'nothing here' : page);
		const pieces = [];
		req.on('data', (p) => pieces.push(p)).on('end', () => {
			handed = { ...Object.fromEntries(new URL(req.url, 'http://x').searchParams), bytes: Buffer.concat(pieces) };
			res.end();
		});
	});
}

/* A page that notes what must not happen. */
async function watched(scheme = 'light', width = 1280, height = 900) {
	const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height } });
	const page = await context.newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	page.on('dialog', (d) => { page.problems.push('dialog: ' + d.message()); d.dismiss(); });
	page.on('request', (r) => { if (!r.url().startsWith(server.url) && !r.url().startsWith(uiUrl)) page.problems.push('left the origin: ' + r.url()); });
	return page;
}

async function open(target = '/', scheme = 'light', width = 1280) {
	const page = await watched(scheme, width);
	await signIn(page, server);
	if (target !== '/') await page.goto(server.url + target);
	return page;
}

async function openTrace(query = '') {
	const page = await open(`/traces/${id}${query}`);
	await page.waitForSelector('[data-ready]');
	return page;
}

async function done(page, t) {
	if (shots) await page.screenshot({ path: path.join(shots, `${t.name.replaceAll(/\W+/g, '-')}.png`), fullPage: true });
	assert.deepEqual(page.problems, []);
	await page.context().close();
}

before(async () => {
	if (shots) fs.mkdirSync(shots, { recursive: true });
	dir = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-page-'));
	execFileSync(sim, ['--out', dir, '--seed', '77', '--records', '12000']);
	truth = JSON.parse(fs.readFileSync(path.join(dir, 'truth.json'), 'utf8'));
	ui = fakeUi();
	await new Promise((ok) => ui.listen(0, '127.0.0.1', ok));
	uiUrl = `http://127.0.0.1:${ui.address().port}`;
	server = await startServer({ after: (f) => ending.push(f) }, { args: ['--perfetto-ui', uiUrl] });
	// one name is what an attacker would choose
	const mapping = fs.readFileSync(path.join(dir, 'methodMapping.txt'), 'utf8').split('\n');
	const first = Object.entries(truth.methods).sort((a, b) => b[1].self_ns - a[1].self_ns)[0][0];
	const cut = first.lastIndexOf('.');
	const hostile = mapping.map((l) => l.replace(`${first.slice(0, cut)} ${first.slice(cut + 1)} `, `${first.slice(0, cut)}.${HOSTILE.replaceAll(' ', '\u00a0')} ${first.slice(cut + 1)} `));
	fs.writeFileSync(path.join(dir, 'hostile.txt'), hostile.join('\n'));
	id = tracewell('push', '--server', server.url, '--key', server.ingest, '--build-id', 'web', '--scenario', 'cold_start',
		'--meta', 'app=com.acme.shop', '--meta', 'version_name=8.3.1', '--threads', path.join(dir, 'threads.txt'),
		'--mapping', path.join(dir, 'hostile.txt'), '--wait', path.join(dir, 'rhea-atrace.bin'));
	browser = await launch();
});

after(async () => {
	await browser?.close();
	for (const f of ending) await f();
	ui?.close();
	fs.rmSync(dir, { recursive: true, force: true });
});

test('the list shows the trace, filters it and finds it', async (t) => {
	const page = await open();
	await page.waitForSelector('td a:has-text("com.acme.shop")');
	await page.fill('input[type=search]', 'nothing like it');
	await page.waitForSelector('text=No trace fits these filters');
	await page.click('text=Clear');
	await page.waitForSelector('td a:has-text("com.acme.shop")');
	await done(page, t);
});

test('a trace opens with its threads, its calls and real names', async (t) => {
	const page = await openTrace();
	assert.equal(await page.locator('.threads li').count(), Object.keys(truth.threads).length);
	assert.match(await page.locator('.threads [aria-pressed=true]').innerText(), /main/);
	await page.click('text=Visible calls as a table');
	await page.waitForSelector('.short td.mono');
	const names = await page.locator('.short td.mono').allInnerTexts();
	assert.ok(names.length > 10);
	assert.ok(names.filter((n) => n in truth.methods).length > names.length / 2, names[0]);
	await done(page, t);
});

test('names of methods stay text', async (t) => {
	const page = await openTrace();
	const name = await page.locator('.methods tbody tr').first().innerText();
	assert.ok(name.includes('<img'), name);
	assert.equal(await page.locator('main img').count(), 0);
	await done(page, t);
});

test('the wheel zooms, the address holds the view, a reload keeps it', async (t) => {
	const page = await openTrace();
	const before = await page.locator('.under .quiet').first().innerText();
	const box = await page.locator('.chart canvas').boundingBox();
	await page.mouse.move(box.x + box.width / 2, box.y + 60);
	for (let i = 0; i < 5; i++) {
		await page.mouse.wheel(0, -300);
		await page.waitForTimeout(40);
	}
	await page.waitForFunction((b) => document.querySelector('.under .quiet').textContent !== b, before);
	const zoomed = await page.locator('.under .quiet').first().innerText();
	await page.waitForTimeout(WRITTEN_MS);
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
	await page.locator('.chart canvas').focus();
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
	const box = await page.locator('.chart canvas').boundingBox();
	for (let x = 10; x < box.width && (await page.locator('.tip').count()) === 0; x += 15) {
		await page.mouse.move(box.x + x, box.y + 30);
		await page.waitForTimeout(30);
	}
	assert.equal(await row.count(), 1);
	const tip = await page.locator('.tip').innerText();
	const of = (what) => new RegExp(`^${what}\\s+(.+)$`, 'm').exec(tip)?.[1] ?? assert.fail(`${what} in ${tip}`);
	const name = tip.split('\n')[0];
	const tid = await page.evaluate(() => document.querySelector('.threads [aria-pressed=true] .num').textContent);
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
	const box = await page.locator('.chart canvas').boundingBox();
	await page.mouse.move(box.x + box.width / 2, box.y + 60);
	await page.mouse.wheel(0, -600);
	await page.waitForTimeout(WRITTEN_MS);
	const [from, to] = view();
	await page.mouse.down();
	await page.mouse.move(box.x + box.width / 4, box.y + 60, { steps: 8 });
	await page.mouse.up();
	await page.waitForTimeout(WRITTEN_MS);
	const [panned, pannedTo] = view();
	assert.ok(Math.abs(panned - from - (to - from) / 4) < (to - from) * 0.01, 'a quarter of the view later');
	assert.ok(Math.abs(pannedTo - panned - (to - from)) <= 2, 'as much in view as before');
	const strip = await page.locator('.minimap').boundingBox();
	await page.mouse.move(strip.x + strip.width * 0.5, strip.y + 10);
	await page.mouse.down();
	await page.mouse.move(strip.x + strip.width * 0.25, strip.y + 10, { steps: 4 });
	await page.mouse.up();
	await page.waitForTimeout(WRITTEN_MS);
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
	await page.evaluate(async () => {
		const c = document.querySelector('.chart canvas');
		for (let i = 0; i < 200; i++) {
			c.dispatchEvent(new WheelEvent('wheel', { deltaY: i % 2 ? 40 : -60, bubbles: true, cancelable: true }));
			await new Promise((done) => setTimeout(done, 5));
		}
	});
	await page.waitForTimeout(WRITTEN_MS);
	const writes = await page.evaluate(() => window.writes);
	assert.ok(writes > 0 && writes < 30, `${writes} writes`);
	await done(page, t);
});

test('scroll, order and filter are in the address, and kept by a reload', async (t) => {
	const page = await openTrace();
	const box = await page.locator('.chart canvas').boundingBox();
	await page.mouse.move(box.x + 300, box.y + 100);
	await page.keyboard.down('Shift');
	await page.mouse.wheel(0, 90);
	await page.keyboard.up('Shift');
	await page.fill('.panel[aria-label=Methods] input[type=search]', 'okhttp');
	await page.click('.methods >> text=Calls');
	await page.waitForSelector('th[aria-sort=descending]:has-text("Calls")');
	await page.waitForFunction(() => [...document.querySelectorAll('.methods tbody .name')].every((e) => e.textContent.includes('okhttp')));
	await page.waitForTimeout(WRITTEN_MS);
	const q = new URL(page.url()).searchParams;
	assert.deepEqual([q.get('sort'), q.get('filter'), q.get('row')], ['count', 'okhttp', '5']);
	const rows = await page.locator('.methods tbody').innerText();
	await page.reload();
	await page.waitForSelector('[data-ready]');
	await page.waitForSelector('th[aria-sort=descending]:has-text("Calls")');
	assert.equal(await page.locator('.methods tbody').innerText(), rows);
	assert.equal(await page.inputValue('.panel[aria-label=Methods] input[type=search]'), 'okhttp');
	await page.waitForTimeout(WRITTEN_MS);
	assert.equal(new URL(page.url()).searchParams.get('row'), '5');
	await done(page, t);
});

test('a search counts, steps to each call and begins again', async (t) => {
	const page = await openTrace();
	const tid = await page.evaluate(() => document.querySelector('.threads [aria-pressed=true] .num').textContent);
	const { methods } = (await server.get(`/api/v1/traces/${id}/methods?thread=${tid}&limit=10000`)).json;
	const rare = methods.find((m) => m.count === 3 && methods.filter((x) => x.name.includes(m.name)).length === 1);
	await page.fill('.search input', rare.name);
	await page.waitForSelector('output:has-text("3 calls in")');
	const { names } = (await server.get(`/api/v1/traces/${id}/names`)).json;
	assert.match(await page.locator('output').innerText(), new RegExp(`^1 of ${names.length.toLocaleString('en')} methods`));
	const met = [];
	for (let i = 0; i < 4; i++) {
		await page.click('text=Next');
		await page.waitForTimeout(WRITTEN_MS);
		met.push(page.url());
	}
	assert.equal(new Set(met.slice(0, 3)).size, 3, 'three calls');
	assert.equal(met[3], met[0], 'and round');
	await page.click('text=Previous');
	await page.waitForTimeout(WRITTEN_MS);
	assert.equal(page.url(), met[2]);
	await page.fill('.search input', '/(/');
	await page.waitForSelector('output:has-text("not an expression")');
	await done(page, t);
});

test('a selected range re-computes the flame graph and the table', async (t) => {
	const page = await openTrace();
	const first = () => page.locator('.methods tbody tr').first().innerText();
	const whole = await first();
	const box = await page.locator('.chart canvas').boundingBox();
	await page.keyboard.down('Shift');
	await page.mouse.move(box.x + box.width * 0.3, box.y + 90);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width * 0.4, box.y + 95, { steps: 6 });
	await page.mouse.up();
	await page.keyboard.up('Shift');
	await page.waitForFunction((w) => document.querySelector('.methods tbody tr')?.innerText !== w, whole);
	const q = new URL(page.url()).searchParams;
	assert.ok(Number(q.get('b')) > Number(q.get('a')));
	const tid = await page.evaluate(() => document.querySelector('.threads [aria-pressed=true] .num').textContent);
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

test('the Perfetto UI is handed the file, and the way back to this view', async (t) => {
	const page = await openTrace('?find=okhttp3');
	const canvas = page.locator('.chart canvas');
	await canvas.focus();
	await page.keyboard.press('w');
	await page.click('text=Open in the Perfetto UI');
	await until(async () => handed, 'the file');
	assert.equal(handed.title, 'com.acme.shop 8.3.1 cold_start');
	assert.equal(handed.bytes[0], 0x0a);
	const back = new URL(handed.url);
	assert.equal(back.pathname, `/traces/${id}`);
	const project = (await page.evaluate(async () => (await (await fetch('/api/v1/session')).json()).project.id));
	assert.equal(back.searchParams.get('project'), project);
	assert.equal(back.searchParams.get('find'), 'okhttp3');
	assert.ok(Number(back.searchParams.get('to')) > Number(back.searchParams.get('from')));
	await done(page, t);
});

test('a window of the Perfetto UI that is closed is noticed at once', async (t) => {
	mute = true;
	t.after(() => (mute = false));
	const page = await openTrace();
	const popup = page.waitForEvent('popup');
	await page.click('text=Open in the Perfetto UI');
	await page.waitForSelector('text=Making the Perfetto file');
	await (await popup).close();
	await page.waitForSelector('[role=alert] >> text=was closed before it had the trace', { timeout: 2000 });
	await page.waitForSelector('button:enabled:has-text("Open in the Perfetto UI")');
	await done(page, t);
});

test('a blocked window is explained, and the way around it', async (t) => {
	const page = await openTrace();
	await page.evaluate(() => (window.open = () => null)); // what a browser that blocks answers
	await page.click('text=Open in the Perfetto UI');
	await page.waitForSelector('[role=alert] >> text=Allow pop-ups for this page');
	assert.equal(await page.locator('a[download]:has-text("Download .perfetto-trace")').count(), 1);
	await page.click('text=Dismiss');
	assert.equal(await page.locator('[role=alert]').count(), 0);
	await done(page, t);
});

test('a mapping that comes late gives its names to the open page', async (t) => {
	const late = tracewell('push', '--server', server.url, '--key', server.ingest, '--build-id', 'late-web', '--wait', path.join(dir, 'rhea-atrace.bin'));
	const page = await open(`/traces/${late}`);
	await page.waitForSelector('text=Method names are missing.');
	await page.waitForSelector('.methods >> text=/unknown:\\d+/');
	await server.put('/api/v1/builds/late-web/methods', fs.readFileSync(path.join(dir, 'methodMapping.txt')));
	await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
	await page.waitForSelector('text=Method names are missing.', { state: 'detached' });
	await page.waitForFunction(() => !document.querySelector('.methods').innerText.includes('unknown:'));
	await done(page, t);
});

test('a second click while the answer is under way goes where it looks', async (t) => {
	const page = await openTrace();
	await page.waitForSelector('[data-flame]');
	await page.route('**/flame?*', async (route) => {
		await new Promise((done) => setTimeout(done, 400));
		await route.continue();
	});
	await page.locator('.flame canvas').dblclick({ position: { x: 30, y: 28 } });
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
});

test('the arrows walk the merged graph, Enter opens, Escape goes up', async (t) => {
	const page = await openTrace();
	await page.waitForSelector('[data-flame]');
	const tid = await page.evaluate(() => document.querySelector('.threads [aria-pressed=true] .num').textContent);
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
	await done(page, t);
});

test('graph and table can be of all threads', async (t) => {
	const page = await openTrace();
	await page.locator('.panel[aria-label=Methods] >> text=All threads').click();
	await page.waitForSelector(`text=of ${Object.keys(truth.methods).length.toLocaleString('en')} methods;`);
	const first = page.locator('.methods tbody tr').first();
	const top = Object.values(truth.methods).sort((a, b) => b.self_ns - a.self_ns)[0];
	assert.ok((await first.innerText()).includes(top.count.toLocaleString('en')));
	await page.reload();
	await page.waitForSelector('.panel[aria-label="Merged flame graph"] [aria-pressed=true]:has-text("All threads")');
	await done(page, t);
});

test('a chunk that fails in passing is asked for again, one that stays away is told', async (t) => {
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
	stays = true;
	await page.locator('.threads button').nth(1).click();
	await page.waitForSelector('text=gone with the wind');
	stays = false;
	await page.click('text=Try again');
	await page.waitForSelector('[data-ready]');
	await done(page, t);
});

test('another thread stops the load of the one before', async (t) => {
	const page = await open('/builds');
	const stopped = [];
	page.on('requestfailed', (r) => stopped.push(r.url()));
	let held;
	await page.route(/\/slices\/\d+/, (route) => (held ? route.continue() : (held = route))); // the first never comes
	await page.goto(`${server.url}/traces/${id}`);
	await until(async () => held, 'the first chunk');
	await page.locator('.threads button').nth(1).click();
	await page.waitForSelector('[data-ready]');
	await until(async () => stopped.find((u) => u === held.request().url()), 'the request ended', 5);
	await done(page, t);
});

test('what went wrong is told', async (t) => {
	const page = await open('/traces/01ARZ3NDEKTSV4RRFFQ69G5FAV');
	await page.waitForSelector('text=There is nothing here.');
	await page.goto(`${server.url}/traces/${id}?root=0.0.0.0.0.0`);
	await page.waitForSelector('text=This path does not occur here.');
	await page.click('text=Show the whole graph');
	await page.waitForSelector('[data-flame]');
	await done(page, t);
});

test('a trace is deleted after being asked, and only then', async (t) => {
	const extra = tracewell('push', '--server', server.url, '--key', server.ingest, '--build-id', 'short-lived', '--wait', path.join(dir, 'rhea-atrace.bin'));
	const page = await open('/?build_id=short-lived');
	await page.click(`[aria-label="Delete trace ${extra}"]`);
	await page.click('text=Keep');
	assert.equal((await server.get(`/api/v1/traces/${extra}`)).status, 200);
	await page.click(`[aria-label="Delete trace ${extra}"]`);
	await page.click('text=Delete for good');
	await page.waitForSelector('text=No trace fits these filters');
	assert.equal((await server.get(`/api/v1/traces/${extra}`)).status, 404);
	await done(page, t);
});

test('a sign-in link signs in once, and leaves no trace in the address', async (t) => {
	const link = tracewell('link', 'create', '--data', server.data, '--url', server.url);
	const page = await watched();
	await page.goto(link);
	await page.waitForSelector('h1:has-text("Traces")');
	assert.ok(!page.url().includes('#'));
	await page.click('text=Sign out');
	await page.waitForSelector('h1:has-text("Sign in")');
	await page.goto('about:blank');
	await page.goto(link);
	await page.waitForSelector('[role=alert]');
	assert.equal(await page.locator('h1').innerText(), 'Sign in');
	await done(page, t);
});

test('links and reloads stay in the project that was picked', async (t) => {
	const key = server.key('ingest', 'other');
	const there = tracewell('push', '--server', server.url, '--key', key, '--meta', 'app=com.acme.other', '--wait', path.join(dir, 'rhea-atrace.bin'));
	const page = await watched();
	await page.goto(tracewell('link', 'create', '--data', server.data, '--url', server.url));
	await page.selectOption('header select', { label: 'other' });
	await page.click('td a:has-text("com.acme.other")');
	await page.waitForSelector('[data-ready]');
	await page.reload();
	await page.waitForSelector('[data-ready]');
	assert.equal(new URL(page.url()).pathname, `/traces/${there}`);
	assert.equal(await page.locator('header select option:checked').innerText(), 'other');
	await page.click('nav >> text=Traces');
	await page.waitForSelector('td a:has-text("com.acme.other")');
	await page.selectOption('header select', { label: 'test' });
	await page.waitForSelector('td a:has-text("com.acme.shop")');
	await page.goto(`${server.url}/?project=01ARZ3NDEKTSV4RRFFQ69G5FAV`);
	await page.waitForSelector('text=There is no such project.');
	await page.click('text=Show what is here');
	await page.waitForSelector('td a');
	await done(page, t);
});

test('a trace that could not be decoded says why', async (t) => {
	const broken = await startServer(t, { env: { TRACEWELL_WORKER_FAULT: 'crash' }, args: ['--worker-tries', '1'] });
	const up = await broken.post('/api/v1/traces', fs.readFileSync(path.join(dir, 'rhea-atrace.bin')));
	assert.equal(up.status, 202);
	await broken.decoded(up.json.id);
	for (const scheme of ['light', 'dark']) {
		const page = await browser.newPage({ colorScheme: scheme, viewport: { width: 1280, height: 800 } });
		await signIn(page, broken);
		await page.goto(`${broken.url}/traces/${up.json.id}`);
		await page.waitForSelector('text=This trace could not be decoded.');
		const { error } = (await broken.get(`/api/v1/traces/${up.json.id}`)).json;
		assert.ok((await page.locator('[role=alert]').innerText()).toLowerCase().includes(error.message.toLowerCase()));
		assert.deepEqual(await unreadable(page), []);
		const file = page.waitForEvent('download');
		await page.click('text=Download what was uploaded');
		assert.deepEqual(fs.readFileSync(await (await file).path()), fs.readFileSync(path.join(dir, 'rhea-atrace.bin')));
		if (shots) await page.screenshot({ path: path.join(shots, `failed-${scheme}.png`) });
		await page.close();
	}
});

test('the check of what is readable finds what is not', async (t) => {
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

for (const scheme of ['light', 'dark'])
	for (const width of [1280, 1920])
		test(`every page can be read in ${scheme} at ${width}`, async (t) => {
			const page = await open('/', scheme, width);
			const look = async (what) => {
				assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), scheme);
				assert.deepEqual(await unreadable(page), [], what);
				if (shots) await page.screenshot({ path: path.join(shots, `${what}-${scheme}-${width}.png`), fullPage: true });
			};
			await page.waitForSelector('td');
			await look('list');
			await page.goto(`${server.url}/?q=nothing+like+it`);
			await page.waitForSelector('text=No trace fits these filters');
			await look('none');
			await page.goto(`${server.url}/builds`);
			await page.waitForSelector('td');
			await look('builds');
			const trace = (await server.get(`/api/v1/traces/${id}`)).json;
			const span = trace.end_ns - trace.start_ns;
			await page.goto(`${server.url}/traces/${id}?find=okhttp3&a=${trace.start_ns + Math.floor(span / 4)}&b=${trace.start_ns + Math.floor(span / 2)}`);
			await page.waitForSelector('[data-ready]');
			await page.waitForSelector('[data-flame]');
			await page.waitForSelector('.methods tbody tr');
			await page.click('text=Visible calls as a table');
			await page.click('text=Children as a table');
			await page.click('summary');
			await look('trace');
			await page.keyboard.press('?');
			await page.waitForSelector('dialog[open]');
			await look('keys');
			await done(page, t);
		});
