/*
 * Traces that are too large to be loaded completely, and stacks thousands deep, in a real browser.  The page is
 * compared with the recording's own records, read here without the product.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launch, settled, visit } from '../browser.mjs';
import { btrace } from '../make.mjs';
import { binary, startServer, tracewell } from '../server.mjs';

const CALLS = 5_100_000; // of one thread: more than the page keeps
const ROW = 18;
const DEEP = 3000;
let server, browser, work;
const ending = [];

before(async () => {
	work = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-large-'));
	server = await startServer({ after: (f) => ending.push(f) });
	browser = await launch();
});

after(async () => {
	await browser?.close();
	for (const f of ending) await f();
	fs.rmSync(work, { recursive: true, force: true });
});

/* Stores the calls that the page's worker lists, to the nanosecond. */
function keepLists() {
	window.Worker = class extends Worker {
		constructor(...how) {
			super(...how);
			this.addEventListener('message', (m) => {
				if (m.data.kind === 'visible') window.listed = m.data.calls;
				if (m.data.kind === 'progress') window.slices = m.data.slices;
			});
		}
	};
}

async function open(target) {
	const page = await (await browser.newContext({ viewport: { width: 1280, height: 1300 } })).newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	await page.addInitScript(keepLists);
	await visit(page, server, target);
	await page.waitForSelector('[data-ready]');
	return page;
}

async function done(page) {
	assert.deepEqual(page.problems, []);
	await page.context().close();
}

/* Records of a plain btrace 2.0 recording. */
class Recording {
	constructor(folder) {
		this.data = fs.readFileSync(path.join(folder, 'rhea-atrace.bin'));
		this.n = (this.data.length - 32) / 16;
		this.names = new Map(fs.readFileSync(path.join(folder, 'methodMapping.txt'), 'utf8').split('\n').flatMap((line) => {
			const m = /^(\d+),\d+,(\S+) (\S+) /.exec(line);
			return m ? [[Number(m[1]), `${m[2]}.${m[3]}`]] : [];
		}));
	}

	/* Of record i, in ns. */
	times(i) {
		const at = 32 + 16 * i;
		const low = this.data.readUInt32LE(at);
		const start = this.data.readUInt32LE(at + 4) * 2 ** 13 + (low >>> 19);
		const dur = (low & 0x7ffff) * 2 ** 26 + (this.data.readUInt32LE(at + 12) >>> 6);
		return [start, start + dur];
	}

	name(i) {
		return this.names.get(this.data.readUInt32LE(40 + 16 * i) & 0x7fffff);
	}

	/* Calls that are open between two times: [start, end, name, depth], by start and depth. */
	between(from, to) {
		const met = [];
		for (let i = 0; i < this.n; i++) {
			const [start, end] = this.times(i);
			if (start < to && end > from) met.push([start, end, this.name(i)]);
		}
		met.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
		const around = [];
		return met.map((c) => {
			while (around.length > 0 && around[around.length - 1] <= c[0]) around.pop();
			return [...c, around.push(c[1]) - 1];
		});
	}
}

/* A view around a time with as many calls as the table takes: from, to, the calls. */
function fewEnough(recording, time) {
	for (let wide = 200_000, i = 0; i < 20; i++) {
		const [from, to] = [Math.round(time - wide), Math.round(time + wide)];
		const calls = recording.between(from, to);
		if (calls.length >= 60 && calls.length <= 200) return [from, to, calls];
		wide *= calls.length > 200 ? 0.6 : 2.1;
	}
	throw new Error(`no view of 60 to 200 calls around ${time}`);
}

/* As the table writes a time. */
function written(ns) {
	const [size, unit] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']].find(([s]) => ns >= s) ?? [1, 'ns'];
	const v = ns / size;
	return ns === 0 ? '0' : `${v.toFixed(size === 1 || v >= 100 ? 0 : v >= 10 ? 1 : 2)} ${unit}`;
}

test('above 5 million calls a view from near shows exactly what was recorded', async () => {
	const sim = path.join(path.dirname(binary()), '..', 'tests', 'tracewell-sim');
	execFileSync(sim, ['--out', work, '--seed', '11', '--records', String(CALLS), '--threads', '1']);
	const id = tracewell('push', '--server', server.url, '--key', server.ingest, '--build-id', 'large', '--wait',
		'--mapping', path.join(work, 'methodMapping.txt'), '--threads', path.join(work, 'threads.txt'), path.join(work, 'rhea-atrace.bin'));
	const recording = new Recording(work);
	assert.equal(recording.n, CALLS);
	const trace = (await server.get(`/api/v1/traces/${id}`)).json;
	assert.equal(trace.summary.slices, CALLS);

	const page = await open(`/traces/${id}`);
	const coarse = await page.evaluate(() => window.slices);
	assert.ok(coarse > 0 && coarse < 100_000, `${coarse} slices stand for the whole`);
	const counted = page.locator('.timeline [data-ready]');
	const whole = (await counted.innerText()).split('.')[0];
	const show = page.locator('.timeline button:has-text("as a table")');
	await show.click();
	await page.waitForFunction(() => window.listed?.length > 0);
	assert.ok(await page.evaluate(() => window.listed.some((c) => c.merged > 1)), 'calls are drawn together');

	const rows = page.locator('.timeline table tbody tr');
	for (const share of [0.1, 0.5, 0.93]) {
		const [first] = recording.times(Math.floor(CALLS * share));
		const [from, to, want] = fewEnough(recording, first);
		await page.goto(`${server.url}/traces/${id}?from=${from}&to=${to}`);
		await page.waitForSelector('[data-ready]');
		await show.click();
		await page.waitForFunction((n) => window.listed?.length === n && window.listed.every((c) => c.merged === 0), want.length);
		const got = await page.evaluate(() => window.listed.map((c) => [c.start, c.end, c.depth]));
		assert.deepEqual(got, want.map((c) => [c[0], c[1], c[3]]), 'to the nanosecond');
		assert.equal((await counted.innerText()).split('.')[0], whole, 'a part in view is not counted as the thread');
		await page.waitForFunction((n) => document.querySelectorAll('.timeline table tbody tr').length === n, want.length);
		const reported = await rows.evaluateAll((list) => list.map((tr) => [...tr.cells].map((c) => c.textContent)));
		assert.deepEqual(reported, want.map(([start, end, name, depth]) => [written(start - trace.start_ns), written(end - start), String(depth), name]));
	}

	/* after moving, the table lists the calls in view */
	const before = await page.evaluate(() => JSON.stringify(window.listed));
	await page.locator('canvas.calls').focus();
	for (let i = 0; i < 4; i++) await page.keyboard.press('d');
	await page.waitForFunction((was) => JSON.stringify(window.listed) !== was && window.listed.every((c) => c.merged === 0), before);
	await settled(page); // the address holds the view
	const q = new URL(page.url()).searchParams;
	const [from, to] = [Number(q.get('from')), Number(q.get('to'))];
	await page.waitForFunction(([a, b]) => window.listed.every((c) => c.start <= b && c.end >= a), [from, to]);
	const kept = await page.evaluate(() => window.slices);
	assert.ok(kept < 2_000_000, `${kept} slices are kept around the view`);
	await done(page);
});

test('3,000 rows deep: the last row can be seen, pointed at and zoomed', async () => {
	const PID = 4000;
	// ends first: the innermost call comes first
	const nest = Array.from({ length: DEEP }, (_, i) => [PID, 1 + ((DEEP - 1 - i) % 9), 1e6 + (DEEP - 1 - i) * 1000, 2e6 + i * 2000]);
	const trace = await server.trace(btrace(nest, { pid: PID }), {});
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	assert.equal(trace.summary.max_depth, DEEP);
	const page = await open(`/traces/${trace.id}?open=${PID}f`);
	await page.waitForFunction((h) => document.querySelector('.sheet').clientHeight >= h, DEEP * ROW);
	const canvases = await page.evaluate(() => Math.max(...[...document.querySelectorAll('.timeline canvas')].map((c) => c.height)));
	assert.ok(canvases < 1000, `the tallest canvas has ${canvases} pixels`);
	await page.locator('.scroller').evaluate((e) => { e.scrollTop = e.scrollHeight; });
	await settled(page);
	await page.locator('canvas.calls').scrollIntoViewIfNeeded();
	const box = await page.locator('canvas.calls').boundingBox();
	const { top, tall } = await page.locator('.scroller').evaluate((e) => ({ top: e.scrollTop, tall: e.scrollHeight - e.clientHeight }));
	assert.ok(top > DEEP * ROW - 1000 && top >= tall - 1, `scrolled to ${top}`);
	const y = box.y + (await page.locator('.sheet').evaluate((e) => e.clientHeight)) - top - 6 - ROW / 2; // of the last row
	const x = box.x + ((DEEP - 1) * 1000 + 1e6) / (trace.end_ns - trace.start_ns) * box.width;
	await page.mouse.move(x, y);
	await page.waitForSelector('.tip');
	assert.match(await page.locator('.tip').innerText(), new RegExp(`depth\\s+${DEEP - 1}\\b|depth\\s+2,999`));
	/* zoomed in, its 2 ms fill the view: the innermost call is all there is at the pointer */
	const address = page.url();
	await page.keyboard.down('Control');
	for (let i = 0; i < 3; i++) await page.mouse.wheel(0, -300);
	await page.keyboard.up('Control');
	await page.waitForFunction((was) => location.href !== was, address);
	await page.mouse.move(x + 1, y);
	await page.waitForSelector('.tip:has-text("2,999"), .tip:has-text("2999")');
	await page.locator('.timeline button:has-text("as a table")').click();
	await page.waitForFunction(() => window.listed?.length === 200); // the longest of them
	await done(page);
});
