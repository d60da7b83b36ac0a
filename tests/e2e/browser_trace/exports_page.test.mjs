/*
 * Opening a trace in other tools: from the page, in a real browser, with pages of other origins that
 * replace the Perfetto UI, and with speedscope itself, whose importers read our files.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, signIn, unreadable } from '../browser.mjs';
import * as read from '../export_readers.mjs';
import { binary, root, startServer, tracewell, until } from '../server.mjs';

const sim = path.join(path.dirname(binary()), '..', 'tests', 'tracewell-sim');
const speedscope = path.join(root, 'tests/node_modules/speedscope/dist/release');
const shots = process.env.SCREENSHOTS;
let server, browser, dir, id, trace, threads, perfetto, viewer, stranger;
let seen = []; // messages received by the stand-in for the Perfetto UI
const ending = [];

/* As the Perfetto UI: answers PING to its opener, takes one trace, or fetches ?url= by itself. */
const fakeUi = `<!doctype html><title>UI</title><script>
	const args = new URLSearchParams(location.hash.replace(/^#!\\/\\?/, ''));
	const tell = (what, body) => fetch('/seen?' + new URLSearchParams({ what: JSON.stringify({ hash: Object.fromEntries(args), opener: !!window.opener, ...what }) }), { method: 'POST', body });
	if (args.get('url')) fetch(args.get('url')).then(async (r) => tell({ status: r.status }, await r.arrayBuffer()), (e) => tell({ failed: String(e) }, ''));
	let had = false;
	addEventListener('message', (e) => {
		if (e.source !== window.opener) return;
		if (e.data === 'PING') return e.source.postMessage('PONG', '*');
		const { buffer, ...rest } = e.data.perfetto;
		if (had || !(buffer instanceof ArrayBuffer) || typeof rest.title !== 'string') return;
		had = true;
		tell({ ...rest, origin: e.origin }, buffer);
	});
</script>`;

/* A server with a separate origin; `files`: a folder, or a page. */
async function origin(files) {
	const s = http.createServer((req, res) => {
		if (req.method === 'POST') {
			const pieces = [];
			return req.on('data', (p) => pieces.push(p)).on('end', () => {
				seen.push({ ...JSON.parse(new URL(req.url, 'http://x').searchParams.get('what')), bytes: Buffer.concat(pieces) });
				res.end();
			});
		}
		if (!fs.existsSync(files)) return res.setHeader('content-type', 'text/html').end(files);
		const name = path.join(files, path.basename(new URL(req.url, 'http://x').pathname) || 'index.html');
		if (!fs.existsSync(name)) return res.writeHead(404).end();
		const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm' };
		res.setHeader('content-type', types[path.extname(name)] ?? 'application/octet-stream').end(fs.readFileSync(name));
	});
	await new Promise((ok) => s.listen(0, '127.0.0.1', ok));
	ending.push(() => s.close());
	return `http://127.0.0.1:${s.address().port}`;
}

before(async () => {
	if (shots) fs.mkdirSync(shots, { recursive: true });
	dir = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-exports-'));
	execFileSync(sim, ['--out', dir, '--seed', '31', '--records', '4000']);
	perfetto = await origin(fakeUi);
	stranger = await origin(fakeUi);
	viewer = await origin(speedscope);
	server = await startServer({ after: (f) => ending.push(f) }, { args: ['--perfetto-ui', `${perfetto}/ui/`, '--speedscope-ui', viewer, '--firefox-ui', viewer] });
	id = tracewell('push', '--server', server.url, '--key', server.ingest, '--build-id', 'x', '--scenario', 'cold_start', '--meta', 'app=com.acme.shop',
		'--threads', path.join(dir, 'threads.txt'), '--mapping', path.join(dir, 'methodMapping.txt'), '--wait', path.join(dir, 'rhea-atrace.bin'));
	trace = (await server.get(`/api/v1/traces/${id}`)).json;
	threads = (await server.get(`/api/v1/traces/${id}/threads`)).json.threads.filter((x) => x.slices);
	browser = await launch();
});

after(async () => {
	await browser?.close();
	for (const f of ending) await f();
	fs.rmSync(dir, { recursive: true, force: true });
});

async function open(query = '', scheme = 'light') {
	const context = await browser.newContext({ colorScheme: scheme, viewport: { width: 1280, height: 900 }, permissions: ['clipboard-read', 'clipboard-write'] });
	const page = await context.newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	await signIn(page, server);
	await page.goto(`${server.url}/traces/${id}${query}`);
	await page.waitForSelector('button:has-text("Other tools")');
	return page;
}

async function done(page, t) {
	if (shots) await page.screenshot({ path: path.join(shots, `${t.name.replaceAll(/\W+/g, '-')}.png`), fullPage: true });
	assert.deepEqual(page.problems, []);
	await page.context().close();
}

async function met() {
	return until(async () => seen.shift(), 'what the other page saw');
}

test('one click hands the Perfetto UI the file, the title, the way back, the range and what to pin', async (t) => {
	const tid = threads[1].tid;
	const page = await open(`?thread=${tid}&a=${trace.start_ns + 1000}&b=${trace.start_ns + 5000}`);
	await page.click('button:has-text("Open in the Perfetto UI")');
	const got = await met();
	assert.equal(got.origin, server.url);
	assert.equal(got.title, 'com.acme.shop cold_start');
	assert.equal(got.fileName, 'com.acme.shop_cold_start.perfetto-trace');
	assert.equal(got.bytes[0], 0x0a);
	const back = new URL(got.url);
	assert.equal(back.origin + back.pathname, `${server.url}/traces/${id}`);
	assert.equal(back.searchParams.get('a'), String(trace.start_ns + 1000));
	assert.ok(back.searchParams.get('project'));
	assert.doesNotMatch(got.url, /[^A-Za-z0-9.\-_#:/?=&;%+$ ]/, 'nothing that the UI would blank out');
	assert.equal(got.hash.visStart, String(trace.boot_base_ns + trace.start_ns + 1000));
	assert.equal(got.hash.visEnd, String(trace.boot_base_ns + trace.start_ns + 5000));
	const [command, ...more] = JSON.parse(got.hash.startupCommands);
	assert.equal(more.length, 0);
	assert.equal(command.id, 'dev.perfetto.PinTracksByRegex');
	assert.match(`process 1 > ${threads[1].name} ${tid} > methods`, new RegExp(command.args[0]));
	await done(page, t);
});

test('a link to a time outside the trace hands over all of it', async (t) => {
	const page = await open(`?from=${trace.end_ns + 1000}&to=${trace.end_ns + 5000}`);
	await page.click('button:has-text("Open in the Perfetto UI")');
	const { hash } = await met();
	assert.equal(hash.visStart, undefined);
	assert.ok(hash.startupCommands);
	await done(page, t);
});

test('a UI that fetches files itself gets the file without a key, and no other origin does', async (t) => {
	const page = await open();
	await page.click('button:has-text("Other tools")');
	await page.click('button:has-text("Perfetto UI (by link)")');
	const got = await met();
	assert.equal(got.status, 200, JSON.stringify(got));
	assert.equal(got.opener, false, 'it cannot reach back');
	assert.ok(!new URL(got.hash.url).search, 'no query: the UI refuses those');
	assert.equal(got.bytes[0], 0x0a);
	await page.click('button:has-text("Copy a link for the Perfetto UI")');
	await page.waitForSelector('text=Copied.');
	const link = await page.evaluate(() => navigator.clipboard.readText());
	assert.ok(link.startsWith(`${perfetto}/ui/#!/?url=`));
	const elsewhere = await page.context().newPage();
	await elsewhere.goto(link.replace(perfetto, stranger));
	assert.match((await met()).failed, /Failed to fetch/, 'a page of another origin may not read it');
	await elsewhere.goto(link);
	assert.equal((await met()).status, 200);
	await done(page, t);
});

test('files without private data', async (t) => {
	const page = await open(`?thread=${threads[0].tid}`);
	await page.click('button:has-text("Other tools")');
	const saved = async (label) => {
		const [file] = await Promise.all([page.waitForEvent('download'), page.click(`.tools a:text-is("${label}")`)]);
		return fs.readFileSync(await file.path(), 'utf8');
	};
	const complete = await saved('Chrome trace events');
	await page.getByLabel('Without private data').check();
	assert.deepEqual(await unreadable(page), []);
	if (shots) await page.screenshot({ path: path.join(shots, 'sanitize.png') });
	const without = await saved('Chrome trace events');
	assert.ok(complete.includes(id) && !without.includes(id));
	assert.deepEqual(read.chrome(without).methods, read.chrome(complete).methods);
	assert.ok(!(await saved('Perfetto')).includes(id));
	await done(page, t);
});

/* speedscope's view of a file, by its own export; it drops keys while it imports. */
async function asSpeedscopeReads(page) {
	await page.waitForFunction(() => document.title !== 'speedscope' && !/^Loading/i.test(document.body.innerText));
	for (let tries = 0; tries < 90; tries++) {
		const saved = page.waitForEvent('download', { timeout: 2000 }).catch(() => undefined);
		await page.keyboard.press('Control+s');
		const download = await saved;
		if (download) return fs.readFileSync(await download.path(), 'utf8');
	}
	throw new Error('speedscope exports nothing');
}

function same(got, want, columns, what, slack = 0) {
	for (const m of want) {
		const g = got.get(m.name);
		assert.ok(g, `${what}: ${m.name}`);
		for (const [c, field] of Object.entries(columns)) assert.ok(Math.abs(g[c] - m[field]) <= slack, `${what}: ${c} of ${m.name}: ${g[c]}, not ${m[field]}`);
	}
	assert.equal(got.size, want.length, what);
}

test('speedscope opens it from the menu, and read it right', async (t) => {
	const page = await open(`?thread=${threads[0].tid}`);
	await page.click('button:has-text("Other tools")');
	await page.click(`.tools button:has-text("Thread ${threads[0].tid}")`);
	const popup = page.waitForEvent('popup');
	await page.click('.tools button.item:text-is("speedscope")');
	const scope = await popup;
	const { methods, file } = read.speedscope(await asSpeedscopeReads(scope));
	assert.equal(file.profiles.length, 1);
	assert.equal(file.profiles[0].name, `com.acme.shop cold_start, thread ${threads[0].tid}`);
	const want = (await server.get(`/api/v1/traces/${id}/methods?limit=10000&thread=${threads[0].tid}`)).json.methods;
	same(methods, want, { self: 'self_ns', total: 'total_ns', count: 'count' }, 'speedscope');
	await done(page, t);
});

test("speedscope's importers read our other formats right", async (t) => {
	const context = await browser.newContext();
	const want = (await server.get(`/api/v1/traces/${id}/methods?limit=10000`)).json.methods;
	const timed = want.filter((m) => m.total_ns > 0);
	const cases = {
		chrome: { unitNs: 1000, columns: { self: 'self_ns', total: 'total_ns' }, slack: 2 * want.reduce((n, m) => Math.max(n, m.count), 0) },
		pprof: { unitNs: 1, columns: { self: 'self_ns', total: 'total_ns' }, want: timed },
		folded: { unitNs: 1, columns: { self: 'self_ns', total: 'total_ns' }, query: 'merged=1', want: timed },
	};
	for (const [kind, c] of Object.entries(cases)) {
		const ticket = await server.ask('POST', `/api/v1/traces/${id}/tickets`, { body: JSON.stringify({ kind, query: c.query ?? '' }) });
		const page = await context.newPage();
		await page.goto(`${viewer}/#profileURL=${encodeURIComponent(server.url + ticket.json.path)}`);
		const { methods, threads: names } = read.speedscope(await asSpeedscopeReads(page), c.unitNs);
		if (kind === 'chrome') assert.equal(names.length, threads.length, String(names));
		same(methods, c.want ?? want, c.columns, kind, c.slack);
		await page.close();
	}
	await context.close();
	void t;
});

test('the menu works by keys, and its downloads follow the selection', async (t) => {
	const page = await open(`?thread=${threads[1].tid}&a=${trace.start_ns + 1000}&b=${trace.start_ns + 500000}`);
	const button = page.locator('button:has-text("Other tools")');
	await button.focus();
	await page.keyboard.press('Enter');
	assert.equal(await button.getAttribute('aria-expanded'), 'true');
	const focused = () => page.evaluate(() => document.activeElement.textContent);
	const isOpen = () => page.waitForFunction(() => document.activeElement?.textContent === 'All threads');
	await isOpen();
	await page.keyboard.press('ArrowUp');
	assert.equal(await focused(), 'Methods as CSV');
	await page.keyboard.press('Home');
	await page.keyboard.press('ArrowDown');
	assert.equal(await focused(), `Thread ${threads[1].tid}`);
	await page.keyboard.press('Enter');
	await page.keyboard.press('End');
	const saved = page.waitForEvent('download');
	await page.keyboard.press('Enter');
	const download = await saved;
	assert.match(download.suggestedFilename(), /^com\.acme\.shop-cold_start-\w+\.methods\.csv$/);
	const { methods } = read.csv(fs.readFileSync(await download.path(), 'utf8'));
	const want = (await server.get(`/api/v1/traces/${id}/methods?limit=10000&thread=${threads[1].tid}&from=${trace.start_ns + 1000}&to=${trace.start_ns + 500000}`)).json.methods;
	same(methods, want, { self: 'self_ns', total: 'total_ns', count: 'count' }, 'csv');
	await page.keyboard.press('Escape');
	await page.waitForSelector('.tools', { state: 'detached' });
	assert.match(await focused(), /Other tools/);
	await button.click();
	await page.waitForFunction(() => document.querySelector('.tools')?.contains(document.activeElement));
	await page.mouse.click(5, 5);
	await page.waitForSelector('.tools', { state: 'detached' }); // a click outside closes it
	await done(page, t);
});

test('a blocked window is explained', async (t) => {
	const page = await open();
	await page.evaluate(() => (window.open = () => null));
	await page.click('button:has-text("Other tools")');
	await page.click('.tools button.item:text-is("speedscope")');
	await page.waitForSelector('[role=alert] >> text=Allow pop-ups for this page');
	await done(page, t);
});

for (const scheme of ['light', 'dark'])
	test(`menu and picture can be read: ${scheme}`, async (t) => {
		const page = await open('', scheme);
		await page.click('button:has-text("Other tools")');
		assert.deepEqual(await unreadable(page), []);
		const file = path.join(dir, 'flame.svg');
		fs.writeFileSync(file, (await server.get(`/api/v1/traces/${id}/export/svg`)).bytes);
		const picture = await page.context().newPage();
		const asked = [];
		picture.on('request', (r) => asked.push(r.url()));
		for (const width of [1280, 700]) {
			await picture.setViewportSize({ width, height: 900 });
			await picture.goto(`file://${file}`);
			const found = await picture.evaluate(() => {
				const say = [];
				const box = (e) => e.getBoundingClientRect();
				const rgb = (css) => css.match(/[\d.]+/g).slice(0, 3).map(Number);
				const light = (c) => { const [r, g, b] = c.map((v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
				const contrast = (a, b) => { const [x, y] = [light(rgb(a)), light(rgb(b))].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
				const fill = (e) => getComputedStyle(e).fill;
				if (document.documentElement.nodeName !== 'svg' || document.querySelector('parsererror, script')) say.push('not a picture');
				const boxes = [...document.querySelectorAll('svg > svg')];
				for (const b of boxes) {
					const r = box(b.querySelector('rect'));
					if (r.left < -0.5 || r.right > innerWidth + 0.5) say.push('sticks out');
					if (getComputedStyle(b).overflow !== 'hidden') say.push('text is not clipped');
					const text = b.querySelector('text');
					if (text && contrast(fill(text), fill(b.querySelector('rect'))) < 4.5) say.push('contrast of ' + text.textContent);
					if (!b.querySelector('title').textContent.includes('%')) say.push('no numbers');
				}
				for (const text of document.querySelectorAll(':root > text')) if (contrast(fill(text), fill(document.querySelector('.page'))) < 4.5) say.push('contrast of the head');
				return { say, boxes: boxes.length };
			});
			assert.deepEqual(found.say, []);
			assert.ok(found.boxes > 50);
		}
		assert.ok(asked.every((u) => u.startsWith('file:')), 'stands alone');
		if (shots) await picture.screenshot({ path: path.join(shots, `flame-${scheme}.png`) });
		await done(page, t);
	});
