/*
 * The panel "Events and counters" in a real browser: kinds with their numbers, rows, the target of a row,
 * and its state in the address.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, settled, unreadable, visit, tab } from '../browser.mjs';
import { frameTimeline, systemTrace } from '../make.mjs';
import { root, startServer } from '../server.mjs';

const HOSTILE = '<img src=x onerror=alert(1)>';
const ending = [];
let server, browser, mixed, janky, many, lots;

/* A section, a lock wait of main's and 140 marks, the last of which would like to be markup and to turn what follows around. */
const line = (tid, at, text) => `app-${tid} (4000) [000] ...1 ${(100 + at / 1000).toFixed(6)}: tracing_mark_write: ${text}\n`;
const TEXT = '# tracer: nop\n' + line(4000, 0, 'B|4000|start') +
	line(4000, 5, 'B|4000|monitor contention with owner writer (4007) at void a.B.put()(B.java:5) waiters=0 blocking from void a.B.get()(B.java:9)') +
	line(4000, 25, 'E|4000') + line(4000, 900, 'E|4000') +
	Array.from({ length: 140 }, (_, i) => line(4000, 100 + i, `I|4000|${i === 138 ? HOSTILE : i === 139 ? 'left\u202eright' : `mark ${i}`}`)).join('');

before(async () => {
	server = await startServer({ after: (f) => ending.push(f) });
	mixed = (await server.trace(fs.readFileSync(path.join(root, 'tests/golden/perfetto/realistic/input')), { query: { scenario: 'jank' } })).id;
	janky = (await server.trace(Buffer.concat([systemTrace(), frameTimeline([[10, 1], [24, 128], [24, 128 | 64], [12, 1], [30, 16], [40, 1024], [10, 256], [10, 0]])]))).id;
	many = (await server.trace(TEXT)).id;
	lots = (await server.trace('# tracer: nop\n' + Array.from({ length: 10_050 }, (_, i) => line(4000, i / 10, `I|4000|mark ${i}`)).join(''))).id;
	browser = await launch();
});

after(async () => {
	await browser?.close();
	for (const f of ending) await f();
});

/* `first`: the tab that is shown without a choice. */
async function open(trace, query = '', scheme = 'light', first = '') {
	const context = await browser.newContext({ colorScheme: scheme, viewport: { width: 1280, height: 900 } });
	const page = await context.newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	page.on('dialog', (d) => { page.problems.push('dialog: ' + d.message()); d.dismiss(); });
	await visit(page, server, `/traces/${trace}${query}`);
	if (first) {
		await page.getByRole('tab', { name: first, exact: true, selected: true }).waitFor();
		return page;
	}
	await tab(page, 'Events');
	await page.waitForSelector('#notes tbody tr');
	return page;
}

async function done(page) {
	assert.deepEqual(page.problems, []);
	await page.context().close();
}

const kindsOf = (page) => page.getByRole('group', { name: 'Kind' }).getByRole('button');
const heads = (page) => page.locator('#notes thead th').allInnerTexts();
const rows = (page) => page.locator('#notes tbody tr').evaluateAll((all) => all.map((r) => [...r.cells].map((c) => c.innerText)));

test('notes: every kind is listed with its number, and picked', async () => {
	const page = await open(mixed);
	const { kinds } = (await server.get(`/api/v1/traces/${mixed}/notes?limit=1`)).json;
	const shown = (await kindsOf(page).allInnerTexts()).map((x) => x.split(' ').pop());
	assert.deepEqual(shown.map(Number).sort(), Object.values(kinds).sort());
	await page.click('#notes .choice >> text=Frames 4');
	await page.waitForSelector('#notes tbody >> text=app deadline missed');
	const frames = await rows(page);
	assert.equal(frames.length, kinds.frame);
	assert.deepEqual(await heads(page), ['At', '↓ Duration', 'Event', 'Result', 'Jank', 'Presented', 'Timeline', 'More', 'Thread']);
	const late = frames.find((r) => r[5] === 'late');
	assert.deepEqual(late.slice(1), ['29.0 ms', 'TX - com.app/com.app.Main#0', 'late: app', 'app deadline missed, buffer stuffing', 'late', 'actual', 'of: surface, display frame: 901, process: 10', 'the trace']);
	await settled(page);
	assert.equal(new URL(page.url()).searchParams.get('note'), 'frame');
	await page.reload();
	await page.waitForSelector('#notes tbody >> text=app deadline missed');
	await done(page);
});

test('notes: expected and actual frames have a track each, and a click selects the frame under the pointer', async () => {
	const page = await open(mixed);
	const { start_ns, end_ns } = (await server.get(`/api/v1/traces/${mixed}`)).json;
	const { notes } = (await server.get(`/api/v1/traces/${mixed}/notes?kind=frame`)).json;
	const canvas = await page.locator('canvas.calls').boundingBox();
	const titles = (await page.locator('.threads .track').allInnerTexts()).filter((x) => /frames/.test(x));
	assert.deepEqual(titles, ['Expected frames', 'Actual frames', 'Expected display frames', 'Actual display frames']);
	for (const title of titles.slice(0, 3)) { // the last frame begins at the trace's end
		const n = notes.find((x) => title === { surface: `${x.detail.timeline} frames`, display: `${x.detail.timeline} display frames` }[x.detail.of].replace(/^./, (c) => c.toUpperCase()));
		const track = await page.locator('.threads .track', { hasText: title }).boundingBox();
		await page.mouse.click(canvas.x + (canvas.width * (n.ts_ns + n.dur_ns / 2 - start_ns)) / (end_ns - start_ns), track.y + track.height / 2);
		await page.waitForURL((url) => url.searchParams.get('event') === `frame..${n.ts_ns}.${n.dur_ns}`);
		await page.locator('.callpane dl', { hasText: n.detail.timeline }).getByText(n.detail.of, { exact: true }).waitFor();
	}
	await done(page);
});

/* A pixel of the timeline, as painted: x and y in the window. */
const pixelAt = (page, x, y) => page.evaluate(([px, py]) => {
	const c = document.querySelector('canvas.calls');
	const r = c.getBoundingClientRect();
	return [...c.getContext('2d').getImageData(Math.round((px - r.x) * c.width / r.width), Math.round((py - r.y) * c.height / r.height), 1, 1).data].slice(0, 3).join();
}, [x, y]);

for (const scheme of ['light', 'dark'])
	test(`notes: frames that overlap have rows, and colours and words for why they were late, ${scheme}`, async () => {
		const page = await open(janky, '', scheme);
		const { start_ns, end_ns } = (await server.get(`/api/v1/traces/${janky}`)).json;
		const { lanes, texts } = (await server.get(`/api/v1/traces/${janky}/notes/lanes?kind=frame&cells=4096`)).json;
		assert.ok(texts.length > 0);
		const canvas = await page.locator('canvas.calls').boundingBox();
		const head = page.locator('.threads .track', { hasText: 'Actual frames' });
		await page.waitForFunction(() => [...document.querySelectorAll('.threads .track')].some((x) => x.innerText === 'Actual frames' && x.offsetHeight > 30)); // two rows
		const track = await head.boundingBox();
		const place = (ts, dur, row) => ({ x: canvas.x + (canvas.width * (ts + dur * 0.6 - start_ns)) / (end_ns - start_ns), y: track.y + row * (track.height + 2) / 2 + 13 });
		const colours = new Map();
		for (const l of lanes.filter((x) => x.name === 'actual surface')) {
			let at = start_ns;
			for (const [i, step] of l.step_ns.entries()) {
				const { x, y } = place(at += step, l.dur_ns[i], l.row);
				const colour = await pixelAt(page, x, y);
				assert.equal(colours.get(l.outcome) ?? colour, colour, `${l.outcome} has one colour`);
				colours.set(l.outcome, colour);
				await page.mouse.click(x, y);
				await page.waitForURL((url) => url.searchParams.get('event') === `frame..${at}.${l.dur_ns[i]}`);
			}
		}
		assert.equal(new Set(colours.values()).size, 6, 'five outcomes, and one that the device did not report');
		const due = lanes.find((x) => x.name === 'expected surface' && x.row === 0);
		const [dueTrack] = [await page.locator('.threads .track', { hasText: /^Expected frames$/ }).boundingBox()];
		assert.equal(await pixelAt(page, place(start_ns + due.step_ns[0], due.dur_ns[0], 0).x, dueTrack.y + 13), colours.get(''), 'an expected frame is as grey as one without an outcome');
		await page.locator('.callpane dl', { hasText: 'late: app' }).waitFor(); // the last lane
		const late = lanes.find((l) => l.outcome === 'late_app');
		const { x, y } = place(start_ns + late.step_ns[0], late.dur_ns[0], late.row);
		await page.mouse.move(x, y);
		await page.locator('.tip dd', { hasText: /^late: app$/ }).waitFor();
		await page.locator('#upper').getByRole('button', { name: 'Colours', exact: true }).click();
		await page.locator('.colourkey li', { hasText: /^late: app$/ }).waitFor();
		const legend = await page.locator('.colourkey ul', { hasText: 'on time' }).locator('li').allInnerTexts();
		assert.deepEqual(legend, ['on time', 'late: queued', 'dropped', 'late: other cause', 'late: app']);
		const swatch = await page.locator('.colourkey li', { hasText: /^late: app$/ }).locator('i').evaluate((e) => getComputedStyle(e).backgroundColor);
		assert.equal(swatch.replace(/[^\d,]/g, ''), colours.get('late_app'));
		await page.keyboard.press('Escape');
		await page.click('#notes .choice >> text=Frames');
		await page.waitForSelector('#notes tbody >> text=late: app');
		assert.deepEqual((await rows(page)).slice(0, 3).map((r) => r[3]), ['late: app', 'late: other cause', 'late: other cause'], 'late frames come first');
		await done(page);
	});

test('a trace that lost its calls states its content, its losses with their cause, and leads to the decode report', async () => {
	const input = fs.readFileSync(path.join(root, 'tests/golden/perfetto/realistic/input'));
	const cut = (await server.trace(input.subarray(0, 150))).id;
	const page = await open(cut, '', 'light', 'Report');
	assert.equal(new URL(page.url()).searchParams.get('tab'), null, 'nobody chose the tab');
	await page.locator('table.repairs tbody td', { hasText: 'input_truncated' }).waitFor();
	await tab(page, 'Events'); // its two processes
	await page.waitForFunction(() => document.querySelectorAll('#notes tbody tr').length === 2);
	const notice = page.getByRole('status').filter({ hasText: 'This trace contains no calls.' });
	await notice.getByText('Contents: Processes: 2.', { exact: false }).waitFor();
	await notice.getByText('Lost while decoding it: the input ends within a record', { exact: false }).waitFor();
	await notice.getByRole('button', { name: 'Decode report' }).click();
	await page.locator('table.repairs tbody td', { hasText: 'input_truncated' }).waitFor();
	await page.getByText('Bytes are counted from 0 in the upload after decompression.').waitFor();
	await done(page);
});

test('notes: of more than 10,000 events the others are loaded on request', async () => {
	const page = await open(lots);
	await page.getByText('100 of 10,000', { exact: true }).waitFor();
	await page.getByText('The first 10,000 of 10,050', { exact: false }).waitFor();
	const load = page.getByRole('button', { name: 'Load up to 100,000 events' });
	await load.click();
	await page.getByText('100 of 10,050', { exact: true }).waitFor();
	await load.waitFor({ state: 'detached' });
	await page.getByRole('searchbox', { name: 'Find', exact: true }).fill('mark 10049');
	await page.getByText('1 of 10,050 match').waitFor();
	await done(page);
});

test('notes: a lock wait comes first, names its holder, and its time leads to the chart', async () => {
	const page = await open(many);
	assert.equal(await page.getByRole('group', { name: 'Kind' }).locator('[aria-pressed=true]').innerText(), 'Lock waits 1');
	const [wait] = await rows(page);
	assert.equal(wait[1], '20.0 ms');
	assert.deepEqual(await heads(page), ['At', '↓ Duration', 'Event', 'Held by', 'Waits in', 'Owner is in', 'Thread']);
	assert.match(wait[3], /4007/);
	assert.deepEqual(wait.slice(4, 6), ['B.get()', 'B.put()']); // no other waiters: 0 is not shown
	assert.equal(await page.locator('#notes td.fact').nth(1).getAttribute('title'), 'void a.B.get() B.java:9');
	await page.click('#notes tbody button');
	await settled(page);
	const q = new URL(page.url()).searchParams;
	assert.equal(q.get('thread'), '4000');
	const { notes } = (await server.get(`/api/v1/traces/${many}/notes?kind=contention`)).json;
	assert.ok(Number(q.get('from')) <= notes[0].ts_ns && Number(q.get('to')) >= notes[0].ts_ns + notes[0].dur_ns, page.url());
	await done(page);
});

test('notes: more are loaded on request, in order, and names remain text', async () => {
	const page = await open(many, '?note=instant');
	assert.equal((await rows(page)).length, 100);
	await page.getByText('100 of 140', { exact: true }).waitFor();
	await page.click('#notes >> text=Show more');
	await page.waitForFunction(() => document.querySelectorAll('#notes tbody tr').length === 140);
	const all = await rows(page);
	assert.deepEqual(all.slice(0, 138).map((r) => r[1]), Array.from({ length: 138 }, (_, i) => `mark ${i}`));
	assert.deepEqual(all.slice(138).map((r) => r[1]), [HOSTILE, 'left[U+202E]right']);
	assert.equal(await page.locator('#notes >> text=Show more').count(), 0);
	await settled(page);
	await page.reload();
	await page.waitForFunction(() => document.querySelectorAll('#notes tbody tr').length === 140); // the address holds it
	await done(page);
});

test('notes: a head orders rows, a click on a row selects its event, and threads are chosen', async () => {
	const page = await open(mixed, '?note=state&thread=13');
	const starts = () => page.locator('#notes tbody tr').evaluateAll((all) => all.map((r) => r.cells[1].innerText));
	const longest = await starts();
	const mine = longest.length;
	await page.getByRole('columnheader', { name: 'At', exact: true }).getByRole('button').click();
	await page.waitForFunction(() => document.querySelector('#notes th[aria-sort=ascending]')?.textContent === '↑ At');
	assert.equal(new URL(page.url()).searchParams.get('eventsort'), 'start');
	assert.deepEqual([...(await starts())].sort(), [...longest].sort());
	await page.locator('#notes td.event').first().click();
	await page.waitForSelector('#notes tr.lit');
	assert.match(new URL(page.url()).searchParams.get('event'), /^state\.13\./);
	await page.locator('#notes').getByRole('button', { name: 'All threads' }).click();
	await page.waitForFunction((n) => document.querySelectorAll('#notes tbody tr').length > n, mine);
	const { notes } = (await server.get(`/api/v1/traces/${mixed}/notes?kind=state`)).json;
	await page.waitForFunction((n) => document.querySelectorAll('#notes tbody tr').length === n, Math.min(100, notes.length));
	await done(page);
});

test('notes: a search covers all kinds, texts, threads and details, and counts them', async () => {
	const page = await open(many);
	const { kinds } = (await server.get(`/api/v1/traces/${many}/notes?limit=1`)).json;
	const all = Object.values(kinds).reduce((a, b) => a + b);
	const field = page.locator('#notes input[type=search]');
	const searched = async (what, status) => {
		await field.click({ clickCount: 3 });
		await page.keyboard.type(what);
		await page.locator('#notes').getByText(status, { exact: true }).waitFor();
	};
	await searched('MARK 13', `9 of ${all} match`);
	assert.deepEqual((await kindsOf(page).allInnerTexts()).slice(0, 2), ['All kinds 9', 'Lock waits 0']);
	assert.deepEqual((await rows(page)).map((r) => r[1]), ['mark 13', ...Array.from({ length: 8 }, (_, i) => `mark ${130 + i}`)].map((x) => `Marks ${x}`));
	await searched('b.get', `1 of ${all} match`);
	assert.deepEqual((await kindsOf(page).allInnerTexts()).slice(0, 2), ['All kinds 1', 'Lock waits 1'], 'in a detail');
	await searched('/^mark 1\\d$/', `10 of ${all} match`);
	await page.getByRole('button', { name: 'Lock waits 0' }).click();
	await page.locator('#notes').getByText(`0 of ${kinds.contention} match`, { exact: true }).waitFor();
	await page.getByRole('button', { name: /^All kinds/ }).click();
	await page.locator('#notes').getByText(`10 of ${all} match`, { exact: true }).waitFor();
	await settled(page);
	await page.reload();
	await page.locator('#notes').getByText(`10 of ${all} match`, { exact: true }).waitFor();
	assert.equal(await field.inputValue(), '/^mark 1\\d$/');
	await searched('/(/', 'Not a regular expression: missing closing parenthesis. (at byte 1)');
	assert.equal(await page.locator('#notes tbody tr').count(), 0, 'no rows of an earlier search');
	await done(page);
});

test('notes: a search shows named events before states, which last longer', async () => {
	const page = await open(mixed);
	const find = page.locator('#notes input[type=search]');
	await find.click();
	await page.keyboard.type('/./');
	await page.getByRole('button', { name: /^All kinds/ }).waitFor();
	await page.waitForFunction(() => document.querySelector('#notes [aria-pressed=true]')?.textContent.startsWith('All kinds') && document.querySelector('#notes tbody tr'));
	await settled(page);
	const { notes } = (await server.get(`/api/v1/traces/${mixed}/notes?regex=1&q=.&limit=10000`)).json;
	const always = (n) => n.kind === 'state' || n.kind === 'counter';
	const named = notes.filter((n) => !always(n));
	assert.ok(named.length > 0 && Math.max(...notes.filter((n) => n.kind === 'state').map((n) => n.dur_ns)) > Math.min(...named.map((n) => n.dur_ns ?? 0)), 'the order matters');
	const kinds = await page.locator('#notes tbody td.event .quiet:first-child').allInnerTexts();
	const first = kinds.findIndex((k) => /states|Counters/.test(k));
	assert.ok(first > 0 && kinds.slice(first).every((k) => /states|Counters/.test(k)), kinds.join());
	await done(page);
});

test('notes: states are of the thread that is shown, and of the selected time', async () => {
	const page = await open(mixed, '?note=state&thread=13');
	const of = async (query) => (await server.get(`/api/v1/traces/${mixed}/notes?kind=state&thread=13${query}`)).json.notes;
	assert.equal((await rows(page)).length, (await of('')).length);
	assert.ok((await rows(page)).every((r) => r.at(-1) === 'RenderThread 13'));
	const [first] = await of('');
	const until = first.ts_ns + first.dur_ns - 1;
	await page.goto(`${server.url}/traces/${mixed}?note=state&thread=13&a=${first.ts_ns}&b=${until}`);
	await page.waitForFunction(() => document.querySelectorAll('#notes tbody tr').length === 1);
	await done(page);
});

for (const scheme of ['light', 'dark'])
	test(`notes: all can be read, ${scheme}`, async () => {
		const page = await open(mixed, '?note=frame', scheme);
		assert.deepEqual(await unreadable(page), []);
		await done(page);
	});
