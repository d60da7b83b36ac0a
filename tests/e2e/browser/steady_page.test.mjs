/*
 * The timeline stays usable when something goes wrong or comes late: a picture that fails, a search in a thread
 * that is not loaded; stepping through threads is no step of the back button; a snapshot has no time axis.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fs from 'node:fs';
import path from 'node:path';
import { launch, painted, settled, visit } from '../browser.mjs';
import { btrace } from '../make.mjs';
import { root, startServer } from '../server.mjs';

const MAIN = 4000, WORKER = 4001, MS = 1e6;
const NAMES = ['android.os.Looper.loop', 'android.os.MessageQueue.nativePollOnce', 'com.acme.work.Worker.work'];
let server, browser, id, start, anr;
const ending = [];

before(async () => {
	server = await startServer({ after: (f) => ending.push(f) });
	await server.put('/api/v1/builds/steady/methods', NAMES.map((n, i) => `${i + 1},1,${n.replace(/\.(\w+)$/, ' $1')} ()V`).join('\n') + '\n');
	const calls = [[MAIN, 2, 2, 40], [MAIN, 3, 45, 20], [MAIN, 1, 1, 99], [WORKER, 3, 60, 4], [WORKER, 3, 30, 30]];
	const made = await server.trace(btrace(calls.map(([tid, m, at, dur]) => [tid, m, at * MS, dur * MS]), { pid: MAIN }), { query: { build_id: 'steady' } });
	assert.equal(made.state, 'ready', JSON.stringify(made.error));
	({ id, start_ns: start } = made);
	anr = (await server.trace(fs.readFileSync(path.join(root, 'tests/golden/anr/realistic/input')), {})).id;
	browser = await launch();
});

after(async () => {
	await browser?.close();
	for (const f of ending) await f();
});

async function open(query = '', { trace = id, script, ready = '[data-ready]' } = {}) {
	const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
	const page = await context.newPage();
	if (script) await page.addInitScript(script);
	await visit(page, server, `/traces/${trace}${query}`);
	await page.waitForSelector(ready);
	await settled(page);
	return page;
}

const query = (page) => new URL(page.url()).searchParams;

test('a picture that fails is not the last one', async () => {
	const page = await open('', { script: () => {
		const post = Worker.prototype.postMessage;
		Worker.prototype.postMessage = function (m, ...rest) {
			if (m.kind === 'paint' && window.breakOne) {
				window.breakOne = false;
				window.broken = true;
				m = { ...m, parts: 5 };
			}
			return post.call(this, m, ...rest);
		};
	} });
	const canvas = page.locator('canvas.calls');
	const pixels = () => canvas.evaluate((c) => [...c.getContext('2d').getImageData(0, 0, c.width, 60).data].reduce((n, v, i) => (n * 31 + v * (i % 7)) % 1e9, 0));
	await canvas.focus();
	await page.evaluate(() => { window.breakOne = true; });
	await page.keyboard.press('w');
	await page.waitForFunction(() => window.broken);
	await settled(page);
	const before = await pixels();
	await page.keyboard.press('w');
	await settled(page);
	await painted(page);
	assert.notEqual(await pixels(), before, 'the next one is drawn');
	await page.context().close();
});

test('a search steps into a thread that is closed', async () => {
	const page = await open(`?open=none&thread=${WORKER}&find=work`);
	await page.getByRole('searchbox', { name: 'Find a method' }).press('Enter');
	await page.waitForFunction(() => /[?&]from=/.test(location.search));
	await settled(page);
	const [from, to] = ['from', 'to'].map((n) => (Number(query(page).get(n)) - start) / MS);
	assert.ok(from < 29 && to > 59 && to - from < 125, `${from} to ${to}: its first call`);
	assert.match(query(page).get('open'), new RegExp(`${WORKER}`));
	await page.context().close();
});

test('stepping through threads leaves the back button alone', async () => {
	const page = await open();
	await page.locator('canvas.calls').focus();
	const steps = () => page.evaluate(() => history.length);
	const before = await steps();
	await page.keyboard.press('j');
	await page.waitForFunction((tid) => location.search.includes(`thread=${tid}`), WORKER);
	await page.keyboard.press('k');
	await page.waitForFunction((tid) => location.search.includes(`thread=${tid}`), MAIN);
	assert.equal(await steps(), before);
	await page.context().close();
});

test('the head of a looper shows when it worked, and its colours are told', async () => {
	const page = await open();
	assert.match(await page.locator('.threads li .facts').first().innerText(), /59\.\d ms busy/, '99 ms less 40 of nativePollOnce');
	await page.getByRole('button', { name: 'Colours', exact: true }).click();
	const legend = page.getByRole('dialog', { name: 'What the colours mean' });
	await legend.getByText('com.acme.work').waitFor();
	await page.keyboard.press('Escape');
	await page.context().close();
});

test('a snapshot has no time axis and no times', async () => {
	const page = await open('?tab=flame', { trace: anr, ready: '.flame canvas' });
	assert.equal(await page.locator('canvas.ruler, canvas.calls').count(), 0);
	assert.equal(await page.getByRole('group', { name: 'Metric' }).count(), 0);
	for (const tab of ['Flame graph', 'Call tree', 'Methods', 'Events']) {
		await page.getByRole('tab', { name: tab, exact: true }).click();
		await settled(page);
		assert.doesNotMatch(await page.locator('#tabpanel').innerText(), /\d (ms|µs|ns|s)\b/, tab);
	}
	await page.context().close();
});
