/*
 * bench_page.mjs - the cost of the page in Chromium with software rendering, every thread open: from
 * opening a trace to its first calls on the screen and to all of them, frames while zooming and moving,
 * a search, memory; and the same of speedscope with the same calls, where it loads them.
 *
 *   TRACEWELL=build-release/server/tracewell node tests/bench/bench_page.mjs FILE [MAPPING [THREADS]]
 *   TRACEWELL=... node tests/bench/bench_page.mjs --sizes 100000,1700000,5000000 [--no-speedscope]
 *
 * FILE is a btrace 2.0 recording; with --sizes the simulated phone makes one of each size.  A frame is
 * the time from a wheel event to the browser's next frame after the calls are drawn.  Memory is the
 * growth of the page's process from the list of traces to a trace after zooming and a search. Openings and
 * memory are of a page without an inspector. CPU time is of all processes of the browser, and is the most
 * reliable figure on a busy machine.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { launch, signIn } from '../e2e/browser.mjs';
import { binary, sleep, startServer, tracewell } from '../e2e/server.mjs';
import { Speedscope, writeSpeedscope } from './speedscope.mjs';
import { Unwatched } from './unwatched.mjs';

const FLOORS = { first_ms: 150, complete_ms: 500, zoom_p95_ms: 33, bytes: 60 };
const RUNS = 3;
const OPENING_MS = 500;
const FRAMES = 120;
const args = process.argv.slice(2);
const option = (name) => (args.includes(name) ? args.splice(args.indexOf(name), 2)[1] : null);
const flag = (name) => args.includes(name) && args.splice(args.indexOf(name), 1).length > 0;
const sizes = option('--sizes');
const compare = !flag('--no-speedscope');
const [file, mapping, threads] = args;

if (!sizes && (!file || !fs.existsSync(file))) {
	console.log(`no ${file ?? 'file'}: the page is not measured`);
	process.exit(0);
}

/* Marks of the timeline: when something was drawn, and how many calls were loaded by then. */
function watchMarks() {
	window.painted = [];
	new PerformanceObserver((list) => {
		for (const m of list.getEntriesByName('tracewell-painted')) window.painted.push({ at: m.startTime, calls: m.detail });
	}).observe({ type: 'mark', buffered: true });
	window.tasks = []; // over 50 ms
	new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((e) => e.duration))).observe({ type: 'longtask' });
}

async function opening(page, url) {
	await page.goto('about:blank');
	await sleep(OPENING_MS); // the page before has ended
	await page.goto(url);
	await sleep(OPENING_MS); // each question takes time of the page's thread
	await page.until(() => !!document.querySelector('[data-ready]'));
	return page.evaluate(async () => {
		await new Promise((done) => setTimeout(done, 300));
		const calls = window.painted.filter((p) => p.calls > 0);
		return { first: calls[0].at, complete: calls.find((p) => p.calls === calls[calls.length - 1].calls).at, calls: calls[calls.length - 1].calls };
	});
}

/* Wheel events, each after the frame of the one before; ms each. */
async function frames([n, how]) {
	const canvas = document.querySelector('canvas.calls');
	const box = canvas.getBoundingClientRect();
	const times = [];
	for (let i = 0; i < n; i++) {
		const before = window.painted.length;
		const start = performance.now();
		const step = how === 'zoom' ? { ctrlKey: true, deltaY: i % 40 < 20 ? -120 : 120 } : { deltaX: i % 40 < 20 ? 60 : -60 };
		canvas.dispatchEvent(new WheelEvent('wheel', { ...step, bubbles: true, cancelable: true,
			clientX: box.x + box.width * 0.4, clientY: box.y + 80 }));
		while (window.painted.length === before && performance.now() - start < 2000) await new Promise((done) => setTimeout(done));
		await new Promise((done) => requestAnimationFrame(done));
		times.push(performance.now() - start);
	}
	return times.sort((a, b) => a - b);
}

/* From typing to the number of calls that match. */
async function search(what) {
	const input = document.querySelector('.search input');
	const start = performance.now();
	Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(input, what);
	input.dispatchEvent(new Event('input', { bubbles: true }));
	while (!/ in /.test(document.querySelector('.search output')?.textContent ?? '') && performance.now() - start < 20000)
		await new Promise((done) => requestAnimationFrame(done));
	return performance.now() - start;
}

/* A page without a trace, and without an inspector. */
async function listOf(server, browser, cookies) {
	const page = await Unwatched.open(browser, { cookies, script: watchMarks });
	await page.goto(`${server.url}/`);
	await page.until(() => /^(Overview|Traces)/.test(document.querySelector('h1')?.textContent));
	return page;
}

/* In a separate browser, from the list of traces: the trace's page and data are not in its cache at first. */
async function openings(server, cookies, url) {
	const browser = await launch({ measured: true });
	const page = await listOf(server, browser, cookies);
	const runs = [];
	const begun = await cpu(browser);
	for (let i = 0; i < RUNS; i++) runs.push(await opening(page, url));
	const opened = await cpu(browser);
	await browser.close();
	return { shown: runs[0].calls, first: runs[0].first, again: median(runs.map((r) => r.first)), complete: median(runs.map((r) => r.complete)),
		open_cpu: (opened - begun) / RUNS };
}

/* Memory (MiB) that a used trace page adds to a page without a trace, in a browser that has no processes of other pages. */
async function memory(server, cookies, url) {
	const browser = await launch({ measured: true });
	const page = await listOf(server, browser, cookies);
	await sleep(500);
	const empty = await page.resident();
	await page.goto(url);
	await page.until(() => !!document.querySelector('[data-ready]'));
	await page.evaluate(frames, [FRAMES, 'zoom']);
	await page.evaluate(search, 'a');
	const mib = (await page.resident()) - empty;
	await browser.close();
	return mib;
}

/* CPU milliseconds of the whole browser so far. */
async function cpu(browser) {
	const cdp = await browser.newBrowserCDPSession();
	const { processInfo } = await cdp.send('SystemInfo.getProcessInfo');
	return processInfo.reduce((n, p) => n + p.cpuTime * 1000, 0);
}

const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

function line(what, value, unit, floor, other) {
	const beside = other === undefined ? '' : `  speedscope ${typeof other === 'number' ? `${other.toFixed(0)} ${unit}` : other}`;
	console.log(`${what.padEnd(40)} ${value.toFixed(0).padStart(6)} ${unit.padEnd(4)}${floor ? ` ${(value / floor).toFixed(2)} x of ${floor}` : ''}${beside}`);
}

async function measurePage(server, browser, id) {
	const list = (await server.get(`/api/v1/traces/${id}/threads`)).json.threads.filter((t) => t.slices > 0);
	const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
	await page.addInitScript(watchMarks);
	await signIn(page, server);
	const url = `${server.url}/traces/${id}?open=${list.map((t) => t.tid).join(',')}`;
	const cookies = await page.context().cookies();
	const m = { calls: list.reduce((n, t) => n + t.slices, 0), threads: list.length, ...await openings(server, cookies, url) };
	await page.goto(url);
	await page.waitForFunction((n) => window.painted.some((p) => p.calls === n), m.shown, { timeout: 120000 });
	await page.waitForSelector('[data-ready]', { timeout: 120000 });
	await page.evaluate(() => { window.tasks.length = 0; });
	const opened = await cpu(browser);
	m.zoom = await page.evaluate(frames, [FRAMES, 'zoom']);
	m.zoom_task = await page.evaluate(() => Math.max(0, ...window.tasks));
	m.zoom_cpu = ((await cpu(browser)) - opened) / FRAMES;
	await page.evaluate(frames, [10, 'zoom']); // into the trace, where there is room to move
	m.pan = await page.evaluate(frames, [FRAMES, 'pan']);
	m.search = await page.evaluate(search, 'a');
	await page.context().close();
	m.mib = await memory(server, cookies, url);
	return m;
}

function tell(name, m, other) {
	const o = other ?? {};
	console.log(`${name}: ${m.calls} calls in ${m.threads} threads, all open; ${m.shown} in the page`);
	line('first calls on the screen, first visit', m.first, 'ms', FLOORS.first_ms, o.first);
	line(`first calls on the screen, median of ${RUNS}`, m.again, 'ms', FLOORS.first_ms);
	line(`every call loaded, median of ${RUNS}`, m.complete, 'ms', FLOORS.complete_ms, o.complete);
	line('CPU of an opening, mean', m.open_cpu, 'ms', 0, o.open_cpu);
	line('zoom: frame, p50', at(m.zoom, 0.5), 'ms', 0, o.zoom && at(o.zoom, 0.5));
	line('zoom: frame, p95', at(m.zoom, 0.95), 'ms', FLOORS.zoom_p95_ms, o.zoom && at(o.zoom, 0.95));
	line('zoom: longest task over 50 ms, 0 none', m.zoom_task, 'ms', 100);
	line('zoom: CPU a frame, mean', m.zoom_cpu, 'ms', 0, o.zoom_cpu);
	line('pan: frame, p50', at(m.pan, 0.5), 'ms');
	line('pan: frame, p95', at(m.pan, 0.95), 'ms', FLOORS.zoom_p95_ms);
	line('search: typing to the count', m.search, 'ms', 0, o.search);
	line('memory over a page without a trace', m.mib, 'MiB', 0, o.mib);
	line('memory per call', (m.mib * 1048576) / m.calls, 'B', FLOORS.bytes, o.mib && (o.mib * 1048576) / m.calls);
	if (o.failed) console.log(`speedscope: ${o.failed}`);
}

async function measure(server, browser, name, recording, extra) {
	const push = ['push', '--server', server.url, '--key', server.ingest, '--build-id', name, '--wait', ...extra];
	const id = tracewell(...push, recording);
	const m = await measurePage(server, browser, id);
	let other;
	if (compare) {
		const json = path.join(work, `${name}.json`);
		other = writeSpeedscope(recording, json) ? await speedscope.measure(json, FRAMES, cpu) : { failed: 'the recording is packed: not converted' };
		fs.rmSync(json, { force: true });
	}
	tell(name, m, other);
}

const ending = [];
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-bench-'));
const server = await startServer({ after: (f) => ending.push(f) });
const browser = await launch({ measured: true });
const speedscope = new Speedscope();
try {
	if (file) await measure(server, browser, path.basename(file), file, [...(mapping ? ['--mapping', mapping] : []), ...(threads ? ['--threads', threads] : [])]);
	const sim = path.join(path.dirname(binary()), '..', 'tests', 'tracewell-sim');
	for (const n of sizes?.split(',') ?? []) {
		const out = path.join(work, n);
		fs.mkdirSync(out);
		execFileSync(sim, ['--out', out, '--seed', '5', '--records', n, '--threads', '6']);
		await measure(server, browser, `simulated ${n}`, path.join(out, 'rhea-atrace.bin'), ['--mapping', path.join(out, 'methodMapping.txt'), '--threads', path.join(out, 'threads.txt')]);
		fs.rmSync(out, { recursive: true, force: true });
	}
} finally {
	await browser.close();
	await speedscope.stop();
	for (const f of ending) await f();
	fs.rmSync(work, { recursive: true, force: true });
}
