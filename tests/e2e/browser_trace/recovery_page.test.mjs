/*
 * The timeline remains usable after errors and delays: a picture that fails, a search in a thread that is not loaded, names
 * that are not sent again, a cancelled drag, late events.  Stepping through threads adds no entry to the browser's history;
 * a snapshot has no time axis.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fs from 'node:fs';
import path from 'node:path';
import { launch, painted, settled, visit } from '../browser.mjs';
import { btrace, form } from '../make.mjs';
import { root, startServer, until } from '../server.mjs';

const MAIN = 4000, WORKER = 4001, MS = 1e6;
const NAMES = ['android.os.Looper.loop', 'android.os.MessageQueue.nativePollOnce', 'com.acme.work.Worker.work'];
/* A section of a thread that runs for 20 ms of 100. */
const at = (ms) => `[000] d..2 ${(4000 + ms / 1000).toFixed(6)}:`;
const turn = (ms, from, state, to) => `x-${from} (${from || '-----'}) ${at(ms)} sched_switch: prev_comm=x prev_pid=${from} prev_prio=120 prev_state=${state} ==> next_comm=y next_pid=${to} next_prio=120`;
const KERNEL = `# tracer: nop\n#\n${[turn(0, 0, 'R', 100), `app-100 (100) ${at(10)} tracing_mark_write: B|100|load`, `app-100 (100) ${at(15)} tracing_mark_write: C|100|heap|5`, turn(20, 100, 'S', 101), turn(50, 101, 'S', 100), `app-100 (100) ${at(60)} tracing_mark_write: E|100`, turn(100, 100, 'S', 0)].join('\n')}\n`;
let server, browser, id, start, anr, kernel;
const ending = [];

before(async () => {
	server = await startServer({ after: (f) => ending.push(f) });
	await server.put('/api/v1/builds/steady/methods', NAMES.map((n, i) => `${i + 1},1,${n.replace(/\.(\w+)$/, ' $1')} ()V`).join('\n') + '\n');
	const calls = [[MAIN, 2, 2, 40], [MAIN, 3, 45, 20], [MAIN, 1, 1, 99], [WORKER, 3, 60, 4], [WORKER, 3, 30, 30]];
	const made = await server.trace(btrace(calls.map(([tid, m, at, dur]) => [tid, m, at * MS, dur * MS]), { pid: MAIN }), { query: { build_id: 'steady' } });
	assert.equal(made.state, 'ready', JSON.stringify(made.error));
	({ id, start_ns: start } = made);
	anr = (await server.trace(fs.readFileSync(path.join(root, 'tests/golden/anr/realistic/input')), {})).id;
	kernel = (await server.trace(KERNEL, {})).id;
	browser = await launch();
});

after(async () => {
	await browser?.close();
	for (const f of ending) await f();
});

async function open(query = '', { trace = id, script, before, scale = 1, ready = '[data-ready]' } = {}) {
	const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, deviceScaleFactor: scale });
	const page = await context.newPage();
	await before?.(page);
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

test('a search counts the calls of the current thread', async () => {
	const page = await open(`?open=${MAIN},${WORKER}&find=work`);
	const counted = (text) => page.waitForFunction((t) => document.querySelector('.search output')?.textContent.includes(t), text);
	await counted('1 call in');
	await page.locator('.threads button.name', { hasText: String(WORKER) }).click();
	await counted(`2 calls in ${WORKER}`);
	await page.locator('.threads button.name', { hasText: String(MAIN) }).click();
	await counted(`1 call in`);
	await page.context().close();
});

test('a search without a match in the thread leads to the flame graph of all threads', async () => {
	const page = await open(`?thread=${WORKER}&find=nativePollOnce`);
	await page.locator('.search button', { hasText: 'All threads' }).click();
	await page.waitForSelector('text=/^1 of \\d+ frames match/');
	assert.equal(query(page).get('threads'), 'all');
	assert.equal(await page.locator('.search button', { hasText: 'All threads' }).count(), 0, 'the search is of all threads already');
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
	assert.match(query(page).get('call'), new RegExp(`^${WORKER}\\.`), 'and it is selected');
	await page.context().close();
});

for (const [what, status] of [['fails', 503], ['comes late', 200]])
	test(`an early list of chunks that ${what} closes no thread and hides no error`, async () => {
		const [{ chunk }] = (await server.get(`/api/v1/traces/${id}/slices?thread=${WORKER}`)).json.chunks;
		const refused = { status: 404, json: { error: { status: 'not_found', message: 'the chunk is gone', offset: null } } };
		const hold = () => {
			let go;
			return Object.assign(new Promise((done) => (go = done)), { go: () => go() });
		};
		const [list, calls, calling] = [hold(), hold(), hold()];
		let lists = 0;
		const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
		const page = await context.newPage();
		await visit(page, server, '/traces');
		await page.addInitScript(() => {
			const post = Worker.prototype.postMessage;
			Worker.prototype.postMessage = function (m, ...rest) {
				this.onpainted ??= (this.addEventListener('message', (e) => e.data.kind === 'painted' && (window.calls = e.data.calls)), true);
				return post.call(this, m, ...rest);
			};
		});
		await context.route(new RegExp(`/slices\\?thread=${WORKER}(&|$)`), async (route) => {
			if (lists++ > 0) return route.continue(); // that of the page
			await list;
			return status === 200 ? route.continue() : route.fulfill({ status, json: { error: { status: 'busy', message: 'busy', offset: null } } });
		});
		await context.route(new RegExp(`/slices/${chunk}(\\?|$)`), async (route) => {
			calling.go();
			await calls;
			return status === 200 ? route.fulfill(refused) : route.continue();
		});
		await page.goto(`${server.url}/traces/${id}?open=${MAIN},${WORKER}`);
		await page.waitForFunction(() => window.calls === 3); // those of the other thread
		await calling;
		const late = page.waitForResponse((r) => r.url().includes(`/slices?thread=${WORKER}`));
		list.go();
		await (await late).finished();
		await painted(page);
		calls.go();
		if (status === 200) await page.locator('.timeline [role=alert]').getByText('the chunk is gone').waitFor();
		else await page.waitForFunction(() => window.calls === 5);
		await context.close();
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

test('the head of a looper shows when it worked, and its colours have a legend', async () => {
	const page = await open();
	assert.match(await page.locator('.threads li .facts').first().innerText(), /59\.\d ms busy/, '99 ms less 40 of nativePollOnce');
	await page.locator('#upper').getByRole('button', { name: 'Colours', exact: true }).click();
	const legend = page.getByRole('dialog', { name: 'What the colours mean' });
	await legend.getByText('com.acme.work').waitFor();
	await page.keyboard.press('Escape');
	await page.context().close();
	const states = await open('', { trace: kernel });
	await states.locator('#upper').getByRole('button', { name: 'Colours', exact: true }).click();
	assert.deepEqual((await states.getByRole('dialog', { name: 'What the colours mean' }).locator('li').allInnerTexts()).slice(0, 3), ['load', 'running', 'runnable'], 'calls, then states');
	await states.context().close();
});

test('the legend of a flame graph has the colours of its frames, also those without red and green', async () => {
	const page = await open();
	const graph = page.locator('#flame');
	await graph.getByRole('button', { name: 'Colours', exact: true }).click();
	const legend = page.getByRole('dialog', { name: 'What the colours mean' });
	const [app, library] = ['com.acme.work', 'android.os'].map((name) => legend.locator('li', { hasText: name }));
	assert.match(await library.innerText(), /Android and Java/, 'whose code it is');
	assert.doesNotMatch(await app.innerText(), /Android/);
	const drawn = async (line) => {
		const color = await line.locator('.swatch').evaluate((e) => getComputedStyle(e).backgroundColor);
		const pixels = await graph.locator('canvas').evaluate((c, color) => {
			const { data } = c.getContext('2d').getImageData(0, 0, c.width, c.height);
			const [r, g, b] = color.match(/\d+/g).map(Number);
			let n = 0;
			for (let i = 0; i < data.length; i += 4) if (data[i] === r && data[i + 1] === g && data[i + 2] === b) n++;
			return n;
		}, color);
		return { color, pixels };
	};
	const usual = await drawn(app);
	assert.ok(usual.pixels > 100, JSON.stringify(usual));
	await legend.getByLabel('Colour-blind palette').check();
	await settled(page);
	const safe = await drawn(app);
	assert.notEqual(safe.color, usual.color);
	assert.ok(safe.pixels > 100, JSON.stringify(safe));
	await page.context().close();
});

test('labels of dense events never overprint, at every zoom', async () => {
	const lines = [];
	for (let i = 0; i < 300; i++) {
		const name = i % 3 ? `stage ${i} of a request with a long name` : `s${i}`;
		lines.push([i, `S|100|${name}|${i}`], [i + 1 + (i * 7) % 40, `F|100|${name}|${i}`], [i + 0.1, `B|100|inflate view ${i}`], [i + 0.1 + (i % 9) / 10, 'E|100']);
	}
	const text = `# tracer: nop\n#\n${lines.sort((a, b) => a[0] - b[0]).map(([ms, mark]) => `app-100 (100) ${at(ms)} tracing_mark_write: ${mark}`).join('\n')}\n`;
	const { id: dense } = await server.trace(text, {});
	const record = () => {
		const of = (g) => g.canvas.className === 'calls';
		const { putImageData, fillText } = CanvasRenderingContext2D.prototype;
		CanvasRenderingContext2D.prototype.putImageData = function (...args) {
			if (of(this)) window.labels = [];
			return putImageData.apply(this, args);
		};
		CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
			if (of(this)) window.labels.push({ text, x, y: Math.round(y), end: x + this.measureText(text).width });
			return fillText.call(this, text, x, y, ...more);
		};
	};
	const page = await open('', { trace: dense, script: record });
	const box = await page.locator('canvas.calls').boundingBox();
	await page.mouse.move(box.x + box.width * 0.4, box.y + 40);
	let seen = 0, most = 0;
	for (let zoom = 0; zoom < 12; zoom++) {
		const labels = await page.evaluate(() => window.labels);
		for (const y of new Set(labels.map((l) => l.y))) {
			const row = labels.filter((l) => l.y === y).sort((a, b) => a.x - b.x);
			most = Math.max(most, row.length);
			for (const [i, l] of row.entries()) {
				assert.ok(l.end <= box.width + 1, `zoom ${zoom}: ${l.text} is within the canvas`);
				if (i > 0) assert.ok(row[i - 1].end <= l.x, `zoom ${zoom}: ${row[i - 1].text} and ${l.text}`);
			}
		}
		seen += labels.length;
		await page.keyboard.down('Control');
		await page.mouse.wheel(0, -150);
		await page.keyboard.up('Control');
		await settled(page);
	}
	assert.ok(seen > 50 && most > 3, `${seen} labels, ${most} in a row`);
	await page.context().close();
});

test('tables name culprits unless asked otherwise, and show by which metric', async () => {
	const page = await open('?threads=all');
	await page.getByRole('tab', { name: 'Methods', exact: true }).click();
	const names = () => page.locator('.methods tbody .name').allInnerTexts();
	await page.locator('.methods th[aria-sort=descending]', { hasText: 'Running' }).waitFor();
	assert.match((await names())[0], /Worker\.work/);
	assert.match((await names()).at(-1), /nativePollOnce/);
	await page.locator('.methods thead').getByRole('button', { name: 'Self' }).click();
	await page.locator('.methods th[aria-sort=descending]', { hasText: 'Self' }).waitFor();
	await page.waitForFunction(() => document.querySelector('.methods tbody .name').textContent.includes('Worker.work') && document.querySelectorAll('.methods tbody .name')[1].textContent.includes('nativePollOnce'));
	await until(async () => ((await server.get('/api/v1/fleet/methods')).json?.methods?.some((m) => m.name === NAMES[1]) ? true : undefined), 'it is counted');
	await page.goto(`${server.url}/fleet/methods`);
	await page.locator('#methods th[aria-sort=descending]', { hasText: 'Self' }).waitFor();
	assert.equal(await page.locator('#methods tr[data-method*=nativePollOnce]').count(), 0);
	await page.getByLabel('include waits').check();
	await page.locator('#methods tr[data-method*=nativePollOnce]').waitFor();
	await page.context().close();
});

test('bidirectional controls in names of a trace and its threads are shown by their numbers', async () => {
	const { body, headers } = form(['meta', JSON.stringify({ app: 'a\u202ex', device: 'd\u2066x' })], ['trace', btrace([[MAIN, 1, 0, MS], [WORKER, 1, 0, MS]], { pid: MAIN })], ['threads', `${MAIN},m\u202ex\n${WORKER},w\u202ex\n`]);
	const { id: hostile } = await server.trace(body, { headers });
	const page = await open('', { trace: hostile });
	assert.deepEqual(await page.locator('.threads .name .text').allInnerTexts(), ['m[U+202E]x', 'w[U+202E]x']);
	assert.match(await page.locator('h1').innerText(), /a\[U\+202E\]x/);
	assert.match(await page.locator('.brief').textContent(), /d\[U\+2066\]x/);
	for (const tab of ['Flame graph', 'Call tree', 'Methods', 'Calls']) {
		await page.getByRole('tab', { name: tab, exact: true }).click();
		await settled(page);
		assert.doesNotMatch(await page.locator('body').innerText(), /[\u202a-\u202e\u2066-\u2069]/, tab);
	}
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
	await page.getByRole('tab', { name: 'Call tree', exact: true }).click();
	await page.locator('.treerow[aria-level="2"]').first().waitFor();
	await page.locator('.treebody').focus();
	await page.keyboard.press('*');
	await page.locator('.treerow[aria-level="4"]').first().waitFor();
	assert.deepEqual([...new Set(await page.locator('.treerow:not(.titles) > :nth-child(2)').allInnerTexts())], ['1'], 'one stack, however deep');
	await page.context().close();
});

test('folded stacks are as wide as their values', async () => {
	const folded = await server.trace('main;draw 3000\nmain;draw;text 1234\nmain;load 766\n', { query: { scenario: 'folded' } });
	const page = await open('?tab=flame', { trace: folded.id, ready: '.flame canvas' });
	const rows = async (of) => (await page.locator(of).allInnerTexts()).map((row) => row.split(/\s+/).filter(Boolean).slice(0, 3));
	await page.getByRole('button', { name: 'Children as a table' }).click();
	await page.locator('#flame .scroll tbody tr').first().waitFor();
	assert.deepEqual(await rows('#flame .scroll tbody tr'), [['main', '5,000', '0']]);
	await page.getByRole('tab', { name: 'Methods', exact: true }).click();
	await page.locator('table.methods tbody tr').nth(3).waitFor();
	assert.deepEqual(await rows('table.methods tbody tr'), [['draw', '3,000', '4,234'], ['text', '1,234', '1,234'], ['load', '766', '766'], ['main', '0', '5,000']]);
	await page.context().close();
});

test('names that fail to reload leave the page unchanged, and load on retry', async () => {
	const late = await server.trace(btrace([[MAIN, 7, MS, 5 * MS]], { pid: MAIN }), { query: { build_id: 'steady_late' } });
	const page = await open('', { trace: late.id });
	const colours = page.locator('#upper').getByRole('button', { name: 'Colours', exact: true });
	await colours.click();
	const top = (await colours.boundingBox()).y;
	await page.route(/\/names(\?|$)/, (route) => route.fulfill({ status: 500, json: { error: { status: 'io', message: 'the disk is on fire' } } }));
	await server.put('/api/v1/builds/steady_late/methods', '7,1,com.acme.Late name ()V\n');
	await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange'))); // the user returns to the page
	const notice = page.locator('.notices [role=alert]');
	await notice.getByText('the disk is on fire').waitFor();
	await page.waitForSelector('canvas.calls');
	await page.waitForFunction((top) => {
		const box = document.querySelector('#upper .popover');
		const button = box.parentElement.querySelector('button').getBoundingClientRect();
		return button.top > top + 10 && Math.abs(box.getBoundingClientRect().top - button.bottom) < 10;
	}, top); // the notice moved the button, and its box with it
	const placed = await page.evaluate(async () => {
		let n = 0;
		new MutationObserver((all) => (n += all.length)).observe(document.querySelector('#upper .popover'), { attributes: true });
		for (let i = 0; i < 5; i++) await new Promise((done) => requestAnimationFrame(done));
		return n;
	});
	assert.equal(placed, 0, 'a box at rest is not placed with each frame');
	await page.keyboard.press('Escape');
	assert.equal(await page.locator('[role=tabpanel]').count(), 1, 'panels stay');
	await page.unrouteAll();
	await notice.getByRole('button', { name: 'Try again' }).click();
	await notice.waitFor({ state: 'detached' });
	await page.getByRole('tab', { name: 'Methods', exact: true }).click();
	await page.locator('.methods tbody tr', { hasText: 'com.acme.Late.name' }).waitFor();
	await page.context().close();
});

test('a touch that the system takes over selects nothing', async () => {
	const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, hasTouch: true });
	const page = await context.newPage();
	await visit(page, server, `/traces/${id}`);
	await page.waitForSelector('[data-ready]');
	const client = await context.newCDPSession(page);
	const box = await page.locator('canvas.ruler').boundingBox();
	const drag = async (end) => {
		const at = (share) => [{ x: box.x + box.width * share, y: box.y + 10 }];
		await client.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: at(0.2) });
		for (const share of [0.3, 0.4]) await client.send('Input.dispatchTouchEvent', { type: 'touchMove', touchPoints: at(share) });
		await client.send('Input.dispatchTouchEvent', { type: end, touchPoints: [] });
		await settled(page);
	};
	await drag('touchCancel');
	assert.equal(query(page).get('a'), null);
	await drag('touchEnd');
	assert.notEqual(query(page).get('a'), null, 'one that ends does');
	await context.close();
});

test('rows of one kind of events are never shown under the title of another', async () => {
	const page = await open('?tab=events&note=state', { trace: kernel });
	const rows = page.locator('#notes tbody tr');
	await rows.first().waitFor();
	let go;
	const held = new Promise((done) => (go = done));
	await page.route(/\/notes\?.*kind=counter/, async (route) => (await held, route.continue()));
	await page.getByRole('button', { name: /^Counters/ }).click();
	await page.waitForFunction(() => document.querySelector('#notes button[aria-pressed=true]')?.textContent.startsWith('Counters'));
	await painted(page);
	assert.equal(await rows.count(), 0, 'those that are loading are not there yet');
	go();
	await rows.first().waitFor();
	await page.context().close();
});

test('a session that ends while calls are loaded is reported', async () => {
	const page = await open('?open=none');
	await page.context().clearCookies();
	await page.locator('.threads .name').nth(1).press('Enter');
	await page.getByText('Your session has ended.').first().waitFor();
	await page.context().close();
});

test('states and events that failed to load are reported, and load on retry', async () => {
	let refused = 0;
	let broken = true;
	const page = await open('', { trace: kernel, before: (p) => p.route(/\/notes\/lanes\?/, (route) => (broken ? (refused++, route.fulfill({ status: 503, json: { error: { status: 'busy', message: 'too many questions at once', offset: null } } })) : route.continue())) });
	const notice = page.locator('.timeline [role=alert]');
	await notice.getByText('States and events could not be loaded.').waitFor();
	const asked = refused;
	await page.locator('canvas.calls').focus();
	await page.keyboard.press('j');
	await page.keyboard.press('k');
	await settled(page);
	assert.equal(refused, asked, 'not asked for again by each picture');
	broken = false;
	await notice.getByRole('button', { name: 'Try again' }).click();
	await notice.waitFor({ state: 'detached' });
	await settled(page);
	assert.ok(await page.locator('canvas.calls').evaluate((c) => {
		const running = getComputedStyle(document.documentElement).getPropertyValue('--state-running').trim();
		const px = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
		const [r, g, b] = [1, 3, 5].map((i) => parseInt(running.slice(i, i + 2), 16));
		for (let i = 0; i < px.length; i += 4) if (px[i] === r && px[i + 1] === g && px[i + 2] === b) return true;
		return false;
	}), 'states are drawn');
	await page.context().close();
});

for (const scale of [1.25, 2])
	test(`at ${scale} pixels for one of CSS each is drawn`, async () => {
		const page = await open('', { scale });
		const canvas = await page.locator('canvas.calls').evaluate((c) => {
			const box = c.getBoundingClientRect();
			const g = c.getContext('2d');
			const x = Math.round(c.width * 0.5);
			const column = g.getImageData(x, 0, 1, c.height).data;
			const colors = [];
			for (let y = 0; y < c.height; y++) colors.push(column.slice(4 * y, 4 * y + 3).join());
			return { size: [c.width, c.height], wanted: [box.width, box.height].map((v) => Math.round(v * devicePixelRatio)), colors: new Set(colors).size };
		});
		assert.deepEqual(canvas.size, canvas.wanted);
		assert.ok(canvas.colors > 2, 'calls');
		const at = await page.locator('.threads li').first().boundingBox();
		const box = await page.locator('canvas.calls').boundingBox();
		await page.mouse.click(box.x + box.width * 0.55, at.y + 4 + 18 + 9);
		await page.getByRole('heading', { name: NAMES[2] }).waitFor();
		await page.context().close();
	});

test('216 threads: found, walked, sorted, grouped, pinned and hidden', async () => {
	const calls = Array.from({ length: 216 }, (_, i) => [MAIN + i, 1 + (i % 3), 1 + (i % 40), 5 + (i % 50)]);
	const { body, headers } = form(['trace', btrace(calls.map(([tid, m, at, dur]) => [tid, m, at * MS, dur * MS]), { pid: MAIN })], ['threads', calls.map(([tid], i) => `${tid},pool-${i}\n`).join('')]);
	const made = await server.trace(body, { headers, query: { build_id: 'steady' } });
	const page = await open('', { trace: made.id });
	const heads = () => page.locator('.threads li').count();
	assert.ok(await heads() < 100, 'heads out of view are not in the document');
	const canvas = page.locator('canvas.calls');
	const last = MAIN + 215;
	await page.getByRole('searchbox', { name: 'Find a thread' }).fill(String(last));
	await page.waitForFunction(() => document.querySelectorAll('.threads li').length === 1);
	await page.locator('.threads .name').first().press('Enter');
	await page.waitForFunction((tid) => new URL(location.href).searchParams.get('thread') === String(tid), last);
	await page.getByRole('searchbox', { name: 'Find a thread' }).fill('');
	await page.waitForFunction(() => document.querySelectorAll('.threads li').length > 5);
	await settled(page);
	assert.ok(await page.locator('.threads li', { hasText: String(last) }).isVisible(), 'the thread that is looked at is in view');
	await page.getByRole('button', { name: 'Sort', exact: true }).focus();
	let tabs = 0;
	for (; tabs < 4 && !await canvas.evaluate((e) => e === document.activeElement); tabs++) await page.keyboard.press('Tab');
	assert.ok(tabs < 4, 'the timeline is reached before the names of its threads');
	for (let i = 0; i < 30; i++) await page.keyboard.press('k');
	await settled(page);
	const focused = query(page).get('thread');
	assert.notEqual(focused, String(last));
	assert.ok(await page.locator('.threads li', { hasText: focused }).first().isVisible());
	const toTop = async () => {
		await page.mouse.move(700, 300);
		await page.mouse.wheel(0, -100000);
		await page.waitForFunction(() => document.querySelector('.scroller').scrollTop === 0);
	};
	await toTop();

	/* sorted, grouped, pinned, hidden */
	await page.getByRole('button', { name: 'Sort', exact: true }).click();
	await page.getByLabel('Thread id').check();
	await page.getByLabel('Group threads with similar names').check();
	await page.keyboard.press('Escape');
	await settled(page);
	await toTop(); // the thread that is looked at came into view
	const group = page.locator('.threads li', { hasText: '216 threads' });
	await group.waitFor();
	await group.getByRole('button', { name: /^Close/ }).click();
	await page.waitForFunction(() => document.querySelectorAll('.threads li').length < 4);
	await group.getByRole('button', { name: /^Open/ }).click();
	const tids = () => page.locator('.threads li .name .num').allInnerTexts();
	await page.waitForFunction((tid) => document.querySelector('.threads li .name .num')?.textContent === String(tid), MAIN);
	assert.deepEqual((await tids()).slice(0, 4), [0, 1, 2, 3].map((i) => String(MAIN + i)));
	const menu = async (tid, item) => {
		await page.locator('.threads li .name', { hasText: String(tid) }).click({ button: 'right' });
		await page.getByRole('menuitem', { name: item, exact: true }).click();
		await settled(page);
	};
	await menu(MAIN + 5, 'Pin to the top');
	assert.equal(await page.evaluate(() => document.querySelector('.scroller').scrollTop), 0, 'the list stays at its top');
	assert.equal((await tids())[0], String(MAIN + 5));

	/* in the middle of the list, what is in view stays there when one thread of it is pinned and another hidden */
	for (const i of [1, 2]) await page.locator('.threads li', { hasText: String(MAIN + i) }).getByRole('button', { name: /^Open/ }).click(); // what is below moves
	await settled(page);
	await page.mouse.move(700, 300);
	await page.mouse.wheel(0, 1200);
	await page.waitForFunction(() => document.querySelector('.scroller').scrollTop > 1000);
	await settled(page);
	const inView = () => page.evaluate(() => {
		const top = document.querySelector('.scroller').getBoundingClientRect().top;
		return [...document.querySelectorAll('.threads li')].map((e) => [e.querySelector('.name .num')?.textContent, Math.round(e.getBoundingClientRect().top - top)]).filter(([tid, y]) => tid && y >= 0).slice(0, 5);
	});
	const seen = await inView();
	await menu(seen[3][0], 'Pin to the top');
	assert.deepEqual((await inView()).slice(0, 3), seen.slice(0, 3), 'pinned');
	await menu(seen[4][0], 'Hide');
	assert.deepEqual((await inView()).slice(0, 3), seen.slice(0, 3), 'hidden');
	await page.goBack();
	await page.goBack();
	await settled(page);
	assert.deepEqual(await inView(), seen, 'taken back');
	await toTop();
	await menu(MAIN + 1, 'Hide');
	await toTop();
	assert.deepEqual((await tids()).slice(0, 3), [5, 0, 2].map((i) => String(MAIN + i)));
	await page.getByText('215 of 216 threads').or(page.getByPlaceholder('215 of 216 threads')).waitFor();
	await page.context().close();
});
