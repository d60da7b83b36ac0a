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
import { chromium } from 'playwright-core';
import { binary, startServer, tracewell } from './server.mjs';

const sim = path.join(path.dirname(binary()), '..', 'tests', 'tracewell-sim');
const shots = process.env.SCREENSHOTS;
const HOSTILE = '<img src=x onerror=alert(1)>';
let server, browser, dir, truth, id, ui, uiUrl, handed;
const ending = [];

/* Stands in for the Perfetto UI: answers PING, keeps what it is given. */
function fakeUi() {
	const page = `<!doctype html><script>
		addEventListener('message', (e) => {
			if (e.data === 'PING') e.source.postMessage('PONG', '*');
			else if (e.data.perfetto) fetch('/got?title=' + encodeURIComponent(e.data.perfetto.title), { method: 'POST', body: e.data.perfetto.buffer });
		});</script>`;
	return http.createServer((req, res) => {
		if (req.method !== 'POST') return res.setHeader('content-type', 'text/html').end(page);
		const pieces = [];
		req.on('data', (p) => pieces.push(p)).on('end', () => {
			handed = { title: new URL(req.url, 'http://x').searchParams.get('title'), bytes: Buffer.concat(pieces) };
			res.end();
		});
	});
}

async function open(target = '/', scheme = 'light', width = 1280) {
	const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 } });
	const page = await context.newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	page.on('dialog', (d) => { page.problems.push('dialog: ' + d.message()); d.dismiss(); });
	page.on('request', (r) => { if (!r.url().startsWith(server.url) && !r.url().startsWith(uiUrl)) page.problems.push('left the origin: ' + r.url()); });
	await page.goto(server.url + '/');
	await page.fill('input[type=password]', server.read);
	await page.click('button.primary');
	await page.waitForSelector('h1:has-text("Traces")');
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
	browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu',
		'--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
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
	await page.waitForURL(/from=\d+&to=\d+/);
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

test('the pointer shows name and wall time', async (t) => {
	const page = await openTrace();
	const box = await page.locator('.chart canvas').boundingBox();
	await page.mouse.move(box.x + 40, box.y + 30);
	for (let x = 60; x < box.width && (await page.locator('.tip').count()) === 0; x += 25) {
		await page.mouse.move(box.x + x, box.y + 30);
		await page.waitForTimeout(30);
	}
	const tip = await page.locator('.tip').innerText();
	assert.match(tip, /wall/);
	await done(page, t);
});

test('a search counts, and steps to calls', async (t) => {
	const page = await openTrace();
	await page.fill('.search input', 'okhttp3');
	const want = (await page.evaluate(async (i) => (await (await fetch(`/api/v1/traces/${i}/names`)).json()).names.filter((n) => n.includes('okhttp3')).length, id));
	await page.waitForSelector(`output:has-text("${want} of")`);
	const url = page.url();
	await page.click('text=Next');
	await page.waitForFunction((u) => location.href !== u, url);
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

test('the Perfetto UI is handed the file', async (t) => {
	const page = await openTrace();
	await page.click('text=Open in the Perfetto UI');
	for (let i = 0; i < 100 && !handed; i++) await page.waitForTimeout(50);
	assert.equal(handed.title, 'com.acme.shop 8.3.1 cold_start');
	assert.equal(handed.bytes[0], 0x0a);
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

test('what went wrong is told', async (t) => {
	const page = await open('/traces/01ARZ3NDEKTSV4RRFFQ69G5FAV');
	await page.waitForSelector('text=There is nothing here.');
	await done(page, t);
});

test('a trace that could not be decoded says why', async (t) => {
	// a header and nothing but an impossible end
	const bad = Buffer.alloc(64);
	bad.writeUInt32LE(5, 0);
	bad.writeUInt32LE(4711, 4);
	bad.writeBigUInt64LE(1000n, 8);
	bad.writeBigUInt64LE(1000n, 16);
	bad.writeBigUInt64LE(1000n, 24);
	const up = await server.post('/api/v1/traces', bad);
	if (up.status === 202) {
		const page = await open(`/traces/${up.json.id}`);
		await page.waitForSelector('text=This trace could not be decoded.');
		await done(page, t);
	} else {
		assert.equal(up.status, 422);
		assert.match(up.json.error.message, /no readable record/);
	}
});

for (const scheme of ['light', 'dark'])
	test(`every page in ${scheme}`, async (t) => {
		for (const width of [1280, 1920]) {
			const page = await open('/builds', scheme, width);
			await page.waitForSelector('table');
			assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), scheme);
			assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing sticks out');
			await done(page, t);
		}
	});
