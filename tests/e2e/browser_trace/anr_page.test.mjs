/*
 * The ANR panel in a real browser: verdict, chain, deadlocks side by side, threads, light and dark.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import zlib from 'node:zlib';
import { THEMES, launch, settled, unreadable, visit } from '../browser.mjs';
import { form, sampleMapping, sampleTrace, zip } from '../make.mjs';
import { root, startServer } from '../server.mjs';

const shots = process.env.SCREENSHOTS;
const HOSTILE = '<img src=x onerror=alert(1)>';
const ending = [];
let server, browser, id, ring, looks, plain, crowd, beside, sampled;

const RING = `Subject: Broadcast of Intent { act=a.b.GO }, waited 10001ms
"main" prio=5 tid=1 Blocked
  at a.b.Left.take(Left.java:5)
  - waiting to lock <0x02> (a a.b.Right) held by thread 9
  - locked <0x01> (a a.b.Left)
  at android.os.Looper.loop(Looper.java:1)

"${HOSTILE}" prio=5 tid=9 Blocked
  at a.b.Right.take(Right.java:7)
  - waiting to lock <0x01> (a ${HOSTILE}) held by thread 1
  - locked <0x02> (a a.b.Right)
  at java.lang.Thread.run(Thread.java:1012)
`;

const LOOKS = [0, 1, 2, 3].map((i) => `stack = 01-12 10:10:1${i}.000\n\na.b.${i === 2 ? 'Draw.it' : 'Io.read'}(Io.java:1)\na.b.Main.go(Main.java:1)\n\n`).join('');

/* 499 threads wait for a lock that the last one has; two more, on their own, wait for each other. */
const CROWD = ['"main" prio=5 tid=1 Blocked\n  at a.b.Store.get(Store.java:1)\n  - waiting to lock <0x01> (a a.b.Store) held by thread 500',
	...Array.from({ length: 498 }, (_, i) => `"pool-${i}" prio=5 tid=${i + 2} Blocked\n  at a.b.Store.get(Store.java:1)\n  - waiting to lock <0x01> (a a.b.Store) held by thread 500`),
	'"writer" prio=5 tid=500 Runnable\n  at a.b.Store.put(Store.java:9)\n  - locked <0x01> (a a.b.Store)',
	'"left" prio=5 tid=501 Blocked\n  at a.b.Left.take(Left.java:5)\n  - waiting to lock <0x03> (a a.b.Right) held by thread 502\n  - locked <0x02> (a a.b.Left)',
	'"right" prio=5 tid=502 Blocked\n  at a.b.Right.take(Right.java:7)\n  - waiting to lock <0x02> (a a.b.Left) held by thread 501\n  - locked <0x03> (a a.b.Right)',
	''].join('\n\n');

/* A dump of the trace's process: main is in a method of the trace. */
const BESIDE = `"main" prio=5 tid=1 Native
  | sysTid=4000 nice=0
  at com.example.app.Class3.method4(Class3.java:5)
  at com.example.app.NotCalled.ever(NotCalled.java:1)
  at android.os.Looper.loop(Looper.java:1)

`;

/* Java stacks that were taken in the same seconds. */
const STACKS = JSON.stringify({ format: 'java-stacks/1', pid: 4000, interval_ms: 20,
	frames: ['com.example.app.Class3.method4(Class3.java:5)', 'android.os.Looper.loop(Looper.java:1)'], stacks: [[0, 1], [1]],
	threads: { 1: { name: 'main', sys_tid: 4000 } }, samples: Array.from({ length: 10 }, (_, i) => [i * 20_000_000, 1, i % 5 ? 0 : 1]) });

before(async () => {
	if (shots) fs.mkdirSync(shots, { recursive: true });
	server = await startServer({ after: (f) => ending.push(f) });
	id = (await server.trace(fs.readFileSync(path.join(root, 'tests/golden/anr/realistic/input')), { query: { app: 'com.example.shop', scenario: 'anr' } })).id;
	ring = (await server.trace(RING)).id;
	looks = (await server.trace(LOOKS)).id;
	plain = (await server.trace(fs.readFileSync(path.join(root, 'tests/golden/btrace2/realistic/input')))).id;
	crowd = (await server.trace(zlib.gzipSync(CROWD))).id;
	await server.put('/api/v1/builds/b1/methods', sampleMapping);
	const { body, headers } = form(['trace', sampleTrace(2000)], ['anr', BESIDE]);
	beside = (await server.trace(body, { headers, query: { build_id: 'b1' } })).id;
	const stacks = form(['trace', STACKS], ['anr', BESIDE]);
	sampled = (await server.trace(stacks.body, { headers: stacks.headers })).id;
	browser = await launch();
});

after(async () => {
	await browser?.close();
	for (const f of ending) await f();
});

async function open(trace, query = '', scheme = 'light', width = 1280) {
	const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 } });
	const page = await context.newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	page.on('dialog', (d) => { page.problems.push('dialog: ' + d.message()); d.dismiss(); });
	await visit(page, server, `/traces/${trace}${query}`);
	await page.waitForSelector('[data-ready]', { state: 'attached' }); // a phone shows the report instead
	return page;
}

async function done(page, t) {
	if (shots) await page.screenshot({ path: path.join(shots, `${t.name.replaceAll(/\W+/g, '-')}.png`), fullPage: true });
	assert.deepEqual(page.problems, []);
	await page.context().close();
}

test('anr: the verdict is shown first, the chain below it as steps', async (t) => {
	const page = await open(id);
	assert.equal(await page.innerText('#anr .verdict'),
		'Main waits 5 s for a lock of Cart held by DB-writer, which runs SQLiteConnection.execute for OrderDao.insert' +
			'; also a deadlock: say "hi" waits for a lock of Right held by crossing, which waits for a lock of Left held by say "hi".');
	const steps = await page.locator('#anr .chain > li').allInnerTexts();
	assert.equal(steps.length, 2);
	assert.match(steps[0], /^main Blocked waits in com\.example\.shop\.Cart\.total Cart\.java:88\s+waits for a lock of com\.example\.shop\.Cart 0x045af028, held by DB-writer, acquired in com\.example\.shop\.OrderDao\.insert/);
	assert.match(steps[1], /^DB-writer Native reads or writes in android\.database\.sqlite\.SQLiteConnection\.execute .* for com\.example\.shop\.OrderDao\.insert/);
	assert.equal(await page.locator('[role=tab]').first().innerText(), 'ANR');
	assert.equal(await page.locator('[role=tab][aria-selected=true]').innerText(), 'ANR', 'shown first');
	await done(page, t);
});

test('anr: the link to its group appears once the group is known', async (t) => {
	const page = await open(plain);
	let known = false;
	await page.route(new RegExp(`/api/v1/traces/${id}(\\?|$)`), async (route) => {
		const response = await route.fetch();
		await route.fulfill({ response, json: { ...await response.json(), ...(!known && { anr_group: '', rollup_state: 'waiting' }) } });
	});
	await page.goto(`${server.url}/traces/${id}`);
	await page.locator('#anr .verdict').waitFor();
	const group = page.getByRole('link', { name: 'All ANRs with this cause' });
	assert.equal(await group.count(), 0);
	known = true;
	await group.waitFor();
	await page.unrouteAll({ behavior: 'ignoreErrors' });
	await done(page, t);
});

test('anr: a deadlock shows both stacks side by side', async (t) => {
	const page = await open(ring);
	assert.match(await page.innerText('#anr .verdict'), /^Deadlock: main waits 10 s for a lock of Right held by /);
	assert.equal(await page.innerText('#anr .cycle h3'), 'Deadlock of 2 threads');
	const stacks = page.locator('#anr .stacks > div');
	assert.equal(await stacks.count(), 2);
	const [a, b] = [await stacks.nth(0).boundingBox(), await stacks.nth(1).boundingBox()];
	assert.ok(Math.abs(a.y - b.y) < 2 && b.x >= a.x + a.width, 'beside each other');
	assert.match(await stacks.nth(0).innerText(), /a\.b\.Left\.take/);
	assert.match(await stacks.nth(1).innerText(), /a\.b\.Right\.take/);
	assert.match(await stacks.nth(1).locator('.lock.wants').innerText(), /^waiting to lock/);
	assert.ok((await stacks.nth(1).innerText()).includes(HOSTILE), 'a name is text');
	assert.equal(await page.locator('#anr img').count(), 0);
	assert.match(await page.innerText('#anr [aria-label="What the main thread waits for"]'), /and back to main/);
	await done(page, t);
});

test('anr: threads are filtered and opened, and the address holds it', async (t) => {
	const page = await open(id);
	const names = () => page.locator('#anr .anrthreads tbody tr:not(.opened) > td:first-child button').allInnerTexts();
	assert.deepEqual((await names()).slice(0, 4), ['main', 'DB-writer', 'say "hi"', 'crossing']);
	assert.equal((await names()).length, 9);
	await page.fill('#anr input[type=search]', 'fdatasync native');
	await page.waitForFunction(() => document.querySelectorAll('#anr .anrthreads tbody tr').length === 1);
	await page.click('#anr .anrthreads >> text=DB-writer');
	await page.waitForSelector('#anr .opened .stack');
	assert.equal(await page.locator('#anr .opened .stack li').count(), 9);
	assert.match(await page.innerText('#anr .opened .stack'), /locked com\.example\.shop\.Cart 0x045af028/);
	await settled(page);
	await page.reload();
	await page.waitForSelector('#anr .opened .stack');
	assert.deepEqual(await names(), ['DB-writer']);
	await page.click('#anr .opened >> text=Show in the flame graph');
	await page.locator('#flame .choice button[aria-pressed=true]', { hasText: 'DB-writer' }).waitFor();
	await page.goBack();
	await page.fill('#anr input[type=search]', 'no such thing');
	await page.waitForSelector('#anr >> text=No thread has this');
	await done(page, t);
});

test('anr: waiting threads are drawn, and a table has the same content', async (t) => {
	const page = await open(id);
	const waits = page.locator('#anr [aria-label="Wait graph"]');
	const middle = async (name) => {
		const b = await waits.locator(`.box:has-text("${name}")`).boundingBox();
		return [b.x + b.width / 2, b.y + b.height / 2];
	};
	const [[mainX, mainY], [writerX, writerY]] = [await middle('main'), await middle('DB-writer')];
	assert.ok(mainX < writerX && Math.abs(mainY - writerY) < 2, 'who waits stands left of who holds');
	assert.match(await waits.locator('.arrow text').first().textContent(), /Cart/);
	assert.equal(await waits.locator('.box.ring').count(), 0);
	await waits.locator('text=As a table').click();
	assert.equal((await waits.locator('tbody tr').first().innerText()).replaceAll(/\s+/g, ' '), 'main Blocked a lock of com.example.shop.Cart 0x045af028 DB-writer');
	await waits.locator('select').selectOption({ label: 'Deadlock of 2 threads' });
	await waits.locator('.box.ring').nth(1).waitFor();
	assert.equal(await waits.locator('.arrow.ring').count(), 2);
	await waits.locator('.box.ring').first().focus();
	await page.keyboard.press('Enter');
	await page.waitForSelector('#anr .opened .stack >> text=Left.take');
	await done(page, t);
});

test('anr: on a phone, waits are drawn as one column that does not scroll sideways', async (t) => {
	for (const which of [id, ring, crowd]) {
		const page = await open(which, '', 'light', 390);
		const waits = page.locator('#anr [aria-label="Wait graph"]');
		await waits.locator('.box').first().waitFor();
		const fits = () => waits.locator('.scroll').first().evaluate((e) => e.scrollWidth <= e.clientWidth);
		assert.ok(await fits(), which);
		for (const option of await waits.locator('select option').evaluateAll((all) => all.map((o) => o.value))) {
			await waits.locator('select').selectOption(option);
			await settled(page);
			assert.ok(await fits(), `${which}, wait ${option}`);
		}
		const boxes = await waits.locator('.box rect').evaluateAll((all) => all.map((r) => r.getBoundingClientRect()).map((r) => [r.left, r.right, r.top]));
		assert.ok(boxes.every(([left, right]) => left >= 0 && right <= 390), which);
		assert.equal(new Set(boxes.map(([, , top]) => Math.round(top))).size, boxes.length, 'a row per box');
		await done(page, t);
	}
});

test('anr: of 500 threads that wait, the picture shows the ones that matter and counts the others', async (t) => {
	const page = await open(crowd);
	const waits = page.locator('#anr [aria-label="Wait graph"]');
	assert.ok(await waits.locator('.box').count() <= 48);
	assert.equal(await waits.locator('.box.main').count(), 1);
	const more = Number(/([\d,]+) more threads/.exec(await waits.locator('.box.more').textContent())[1]);
	assert.equal(more + await waits.locator('.box.thread').count(), 500);
	assert.match(await waits.innerText(), new RegExp(`${more} of its 500 threads are not shown; 2 other threads`));
	await waits.locator('text=As a table').click();
	assert.equal(await waits.locator('tbody tr').count(), 40);
	await waits.locator('text=Show all 499').click();
	assert.equal(await waits.locator('tbody tr').count(), 499);
	await done(page, t);
});

test('anr: states count their threads and show only them', async (t) => {
	const page = await open(crowd);
	await page.waitForSelector('#anr .chips button');
	assert.deepEqual(await page.locator('#anr .chips button').allInnerTexts(), ['All 502', 'Blocked 501', 'Runnable 1']);
	await page.click('#anr .chips >> text=Runnable 1');
	await page.waitForFunction(() => document.querySelectorAll('#anr .anrthreads tbody tr').length === 1);
	assert.match(await page.innerText('#anr .anrthreads tbody'), /writer/);
	await page.fill('#anr input[type=search]', 'pool');
	await page.waitForSelector('#anr >> text=No thread that is Runnable has this');
	await done(page, t);
});

test('anr: the text of the report is one click away, and remains text', async (t) => {
	for (const [trace, text] of [[ring, RING], [crowd, CROWD], [beside, BESIDE]]) {
		const page = await open(trace);
		await page.click('#anr >> text=Raw text');
		await page.waitForSelector('#anr pre.raw');
		assert.equal(await page.textContent('#anr pre.raw'), text);
		assert.equal(await page.locator('#anr img').count(), 0);
		const [download] = await Promise.all([page.waitForEvent('download'), page.click('#anr >> text=Download as text')]);
		assert.equal(download.suggestedFilename(), `${trace}-anr.txt`);
		assert.equal(fs.readFileSync(await download.path(), 'utf8'), text);
		await done(page, t);
	}
});

test('anr: a text that a browser cannot unpack can be had as it came', async (t) => {
	const packed = (await server.trace(zip({ 'anr_1.txt': Buffer.from(RING) }))).id;
	const page = await open(packed);
	await page.click('#anr >> text=Raw text');
	await page.waitForSelector('#anr >> text=inside an archive');
	const [download] = await Promise.all([page.waitForEvent('download'), page.click('#anr a:has-text("Download the upload")')]);
	assert.equal(fs.readFileSync(await download.path()).subarray(0, 2).toString(), 'PK');
	await done(page, t);
});

test('anr: a frame leads to its calls in the trace of the same seconds', async (t) => {
	const page = await open(beside, '?stack=0');
	await page.locator('#anr .opened .link').waitFor();
	assert.deepEqual(await page.locator('#anr .opened .link').allInnerTexts(), ['com.example.app.Class3.method4']);
	await page.click('#anr .opened .link');
	await page.waitForSelector('.search output:has-text("1 of 6 methods, 500 calls in")');
	await settled(page);
	const q = new URL(page.url()).searchParams;
	assert.equal(q.get('find'), 'com.example.app.Class3.method4');
	assert.equal(q.get('thread'), '4000');
	const trace = (await server.get(`/api/v1/traces/${beside}`)).json;
	assert.equal(Number(q.get('to')), trace.end_ns, 'the report is of the trace\'s end');
	await done(page, t);
});

test('anr: a sampled trace of the same seconds is below the report, marked as sampled', async (t) => {
	const page = await open(sampled, '?stack=0');
	assert.match(await page.innerText('#anr .verdict'), /^Main/);
	const threads = (await server.get(`/api/v1/traces/${sampled}/threads`)).json.threads;
	assert.ok(threads.some((x) => x.tid === 4000 && x.source === 'samples' && x.interval_ns === 20_000_000), JSON.stringify(threads));
	await page.click('#anr .opened .link');
	await page.waitForSelector('.search output:has-text(" in ")');
	assert.match(await page.innerText('.search output'), /^1 of \d methods, \d+ sample run/);
	assert.equal(new URL(page.url()).searchParams.get('find'), 'com.example.app.Class3.method4');
	await done(page, t);
});

test('anr: rows of the table are of one height', async (t) => {
	const page = await open(id);
	const rows = await page.locator('#anr .anrthreads tbody tr').evaluateAll((all) => all.map((r) => r.getBoundingClientRect().height));
	const lines = rows.map((h) => (h - 13) / 20); // of 20 px, with 6 px above and below and a line
	assert.ok(rows.length === 9 && lines.every((n) => Math.abs(n - Math.round(n)) < 0.1), rows.join());
	await done(page, t);
});

test('anr: another process of the same report', async (t) => {
	const page = await open(id);
	await page.selectOption('#anr select', { label: '/system/bin/surfaceflinger (900)' });
	await page.waitForSelector('#anr .chain >> text=surfaceflinger');
	assert.match(await page.innerText('#anr .verdict'), /^Main was idle/);
	await done(page, t);
});

test('anr: periodic stacks show where main was', async (t) => {
	const page = await open(looks);
	assert.equal(await page.innerText('#anr .verdict'), 'Main was in Io.read in 3 of 4 samples over 3.0 s.');
	await page.selectOption('#anr select', '2');
	await page.waitForSelector('#anr .verdict:has-text("Draw.it")');
	await done(page, t);
});

test('anr: a trace without a report has no panel', async (t) => {
	const page = await open(plain);
	assert.equal(await page.locator('#anr').count(), 0);
	await done(page, t);
});

for (const [scheme, width] of [['light', 480], ...THEMES])
	test(`anr: all can be read, ${scheme}, ${width} wide`, async (t) => {
		for (const trace of [id, ring]) {
			const page = await open(trace, '?stack=0', scheme, width);
			await page.waitForSelector('#anr .opened .stack');
			for (const summary of await page.locator('#anr summary').all()) await summary.click();
			assert.deepEqual(await unreadable(page), []);
			if (shots) await page.screenshot({ path: path.join(shots, `anr-${scheme}-${width}-${trace === id ? 'chain' : 'ring'}.png`), fullPage: true });
			assert.deepEqual(page.problems, []);
			await page.context().close();
		}
	});
