/*
 * The ANR panel in a real browser: verdict, chain, deadlocks side by side, threads, light and dark.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, signIn, unreadable } from './browser.mjs';
import { root, startServer } from './server.mjs';

const shots = process.env.SCREENSHOTS;
const HOSTILE = '<img src=x onerror=alert(1)>';
const WRITTEN_MS = 400; // by then the address holds the view
const ending = [];
let server, browser, id, ring, looks, plain;

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

before(async () => {
	if (shots) fs.mkdirSync(shots, { recursive: true });
	server = await startServer({ after: (f) => ending.push(f) });
	id = (await server.trace(fs.readFileSync(path.join(root, 'tests/golden/anr/realistic/input')), { query: { app: 'com.example.shop', scenario: 'anr' } })).id;
	ring = (await server.trace(RING)).id;
	looks = (await server.trace(LOOKS)).id;
	plain = (await server.trace(fs.readFileSync(path.join(root, 'tests/golden/btrace2/realistic/input')))).id;
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
	await signIn(page, server);
	await page.goto(`${server.url}/traces/${trace}${query}`);
	await page.waitForSelector('[data-ready]');
	return page;
}

async function done(page, t) {
	if (shots) await page.screenshot({ path: path.join(shots, `${t.name.replaceAll(/\W+/g, '-')}.png`), fullPage: true });
	assert.deepEqual(page.problems, []);
	await page.context().close();
}

test('anr: the verdict stands on top, the chain below it as steps', async (t) => {
	const page = await open(id);
	assert.equal(await page.innerText('#anr .verdict'),
		'Main waits 5 s for a lock of Cart held by DB-writer, which runs SQLiteConnection.execute for OrderDao.insert.');
	const steps = await page.locator('#anr .chain > li').allInnerTexts();
	assert.equal(steps.length, 2);
	assert.match(steps[0], /^main Blocked waits in com\.example\.shop\.Cart\.total Cart\.java:88\s+wants a lock of com\.example\.shop\.Cart 0x045af028, held by DB-writer, taken in com\.example\.shop\.OrderDao\.insert/);
	assert.match(steps[1], /^DB-writer Native reads or writes in android\.database\.sqlite\.SQLiteConnection\.execute .* for com\.example\.shop\.OrderDao\.insert/);
	const top = await page.locator('#anr').boundingBox();
	assert.ok(top.y < (await page.locator('[aria-label=Threads]').first().boundingBox()).y, 'above the threads of the trace');
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
	assert.match(await page.innerText('#anr [aria-label="What main waits for"]'), /and so round again to main/);
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
	await page.waitForTimeout(WRITTEN_MS);
	await page.reload();
	await page.waitForSelector('#anr .opened .stack');
	assert.deepEqual(await names(), ['DB-writer']);
	await page.click('#anr .opened >> text=Show in the chart');
	await page.waitForSelector('.threads .name[aria-pressed=true]:has-text("DB-writer")');
	await page.fill('#anr input[type=search]', 'no such thing');
	await page.waitForSelector('#anr >> text=No thread has this');
	await done(page, t);
});

test('anr: another process of the same report', async (t) => {
	const page = await open(id);
	await page.selectOption('#anr select', { label: '/system/bin/surfaceflinger (900)' });
	await page.waitForSelector('#anr .chain >> text=surfaceflinger');
	assert.match(await page.innerText('#anr .verdict'), /^Main was idle/);
	await done(page, t);
});

test('anr: looks at intervals name where main stood', async (t) => {
	const page = await open(looks);
	assert.equal(await page.innerText('#anr .verdict'), 'Main stood in Io.read in 3 of 4 samples over 3.0 s.');
	await page.selectOption('#anr select', '2');
	await page.waitForSelector('#anr .verdict:has-text("Draw.it")');
	await done(page, t);
});

test('anr: a trace without a report has no panel', async (t) => {
	const page = await open(plain);
	assert.equal(await page.locator('#anr').count(), 0);
	await done(page, t);
});

for (const scheme of ['light', 'dark'])
	for (const width of [1280, 480])
		test(`anr: all can be read, ${scheme}, ${width} wide`, async (t) => {
			for (const trace of [id, ring]) {
				const page = await open(trace, '?stack=0', scheme, width);
				await page.waitForSelector('#anr .opened .stack');
				await page.click('#anr summary').catch(() => {});
				assert.deepEqual(await unreadable(page), []);
				if (shots) await page.screenshot({ path: path.join(shots, `anr-${scheme}-${width}-${trace === id ? 'chain' : 'ring'}.png`), fullPage: true });
				assert.deepEqual(page.problems, []);
				await page.context().close();
			}
		});
