/*
 * bench_page.mjs - what the page costs in Chromium with software rendering: from opening a trace to
 * its first calls on the screen and to all of them, and frames while zooming and panning.
 *
 *   TRACEWELL=build-release/server/tracewell node tests/bench/bench_page.mjs FILE [MAPPING [THREADS]]
 *
 * A frame is the time from a wheel event to the browser's next frame after the calls are drawn.
 */
import fs from 'node:fs';
import path from 'node:path';
import { launch, signIn } from '../e2e/browser.mjs';
import { startServer, tracewell } from '../e2e/server.mjs';

const FLOORS = { first_ms: 1500, zoom_p95_ms: 60 };
const RUNS = 5;
const [file, mapping, threads] = process.argv.slice(2);

if (!file || !fs.existsSync(file)) {
	console.log(`no ${file ?? 'file'}: the page is not measured`);
	process.exit(0);
}

/* Marks of the chart: when something was drawn, and how many calls were loaded by then. */
function watchMarks() {
	window.painted = [];
	new PerformanceObserver((list) => {
		for (const m of list.getEntriesByName('tracewell-painted')) window.painted.push({ at: m.startTime, calls: m.detail });
	}).observe({ type: 'mark', buffered: true });
}

async function opening(page, url) {
	await page.goto('about:blank');
	await page.goto(url);
	await page.waitForSelector('[data-ready]', { timeout: 120000 });
	return page.evaluate(async () => {
		await new Promise((done) => setTimeout(done, 300));
		const calls = window.painted.filter((p) => p.calls > 0);
		return { first: calls[0].at, complete: calls.find((p) => p.calls === calls[calls.length - 1].calls).at, calls: calls[calls.length - 1].calls };
	});
}

/* `turns` wheel events, each after the frame of the one before; ms each. */
function frames(page, turns, kind) {
	return page.evaluate(async ([n, how]) => {
		const canvas = document.querySelector('.chart canvas');
		const box = canvas.getBoundingClientRect();
		const times = [];
		for (let i = 0; i < n; i++) {
			const before = window.painted.length;
			const start = performance.now();
			const step = how === 'zoom' ? { deltaY: i % 40 < 20 ? -120 : 120 } : { deltaX: i % 40 < 20 ? 60 : -60 };
			canvas.dispatchEvent(new WheelEvent('wheel', { ...step, bubbles: true, cancelable: true,
				clientX: box.x + box.width * 0.4, clientY: box.y + 80 }));
			while (window.painted.length === before && performance.now() - start < 2000) await new Promise((done) => setTimeout(done));
			await new Promise((done) => requestAnimationFrame(done));
			times.push(performance.now() - start);
		}
		return times.sort((a, b) => a - b);
	}, [turns, kind]);
}

const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

function line(what, value, floor) {
	console.log(`${what.padEnd(44)} ${value.toFixed(0).padStart(6)} ms${floor ? `  ${(value / floor).toFixed(2)} x of the floor of ${floor} ms` : ''}`);
}

async function measure(server, browser) {
	const args = ['push', '--server', server.url, '--key', server.ingest, '--build-id', 'bench', '--wait'];
	const id = tracewell(...args, ...(mapping ? ['--mapping', mapping] : []), ...(threads ? ['--threads', threads] : []), file);
	const list = (await server.get(`/api/v1/traces/${id}/threads`)).json.threads;
	const largest = list.reduce((a, b) => (b.slices > a.slices ? b : a));
	const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
	await page.addInitScript(watchMarks);
	await signIn(page, server);
	const url = `${server.url}/traces/${id}?thread=${largest.tid}`;
	const runs = [];
	for (let i = 0; i < RUNS; i++) runs.push(await opening(page, url));
	const all = list.reduce((n, t) => n + t.slices, 0);
	console.log(`${path.basename(file)}: ${all} calls, the thread shown has ${runs[0].calls}`);
	line('first calls on the screen, first visit', runs[0].first, FLOORS.first_ms);
	line(`first calls on the screen, median of ${RUNS}`, median(runs.map((r) => r.first)), FLOORS.first_ms);
	line('every call loaded, first visit', runs[0].complete);
	line(`every call loaded, median of ${RUNS}`, median(runs.map((r) => r.complete)));
	for (const kind of ['zoom', 'pan']) {
		const times = await frames(page, 120, kind);
		await frames(page, 10, 'zoom'); // into the trace, where there is room to move
		line(`${kind}: frame, p50`, at(times, 0.5));
		line(`${kind}: frame, p95`, at(times, 0.95), FLOORS.zoom_p95_ms);
	}
}

const ending = [];
const server = await startServer({ after: (f) => ending.push(f) });
const browser = await launch();
try {
	await measure(server, browser);
} finally {
	await browser.close();
	for (const f of ending) await f();
}
