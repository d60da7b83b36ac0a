/*
 * speedscope.mjs - speedscope from npm, to compare with the page: the same calls in its own format, loaded and
 * zoomed in the same browser.
 */
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { chromium } from 'playwright-core';
import { root, sleep } from '../e2e/server.mjs';
import { Unwatched } from './unwatched.mjs';

const folder = path.join(root, 'tests/node_modules/speedscope/dist/release');
const LOAD_MS = 120_000;

/* The records of a plain btrace 2.0 file (version 5) by thread, as [start, end, method]; null: packed. */
function records(file) {
	const data = fs.readFileSync(file);
	if (data.readUInt32LE(0) !== 5) return null;
	const threads = new Map();
	for (let at = 32; at + 16 <= data.length; at += 16) {
		const low = data.readBigUInt64LE(at);
		const high = data.readBigUInt64LE(at + 8);
		const start = Number(low >> 19n);
		const dur = Number(((low & 0x7ffffn) << 26n) | (high >> 38n));
		const tid = Number((high >> 23n) & 0x7fffn);
		if (!threads.has(tid)) threads.set(tid, []);
		threads.get(tid).push([start, start + dur, Number(high & 0x7fffffn)]);
	}
	return threads;
}

/* Opens and closes of one thread, in order; a call that sticks out of its caller ends with it. */
function* events(calls) {
	const open = [];
	calls.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
	const close = function* (upto) {
		while (open.length && open[open.length - 1][1] <= upto) {
			const c = open.pop();
			yield `{"type":"C","at":${c[1]},"frame":${c[2]}}`;
		}
	};
	for (const c of calls) {
		yield* close(c[0]);
		if (open.length) c[1] = Math.min(c[1], open[open.length - 1][1]);
		open.push(c);
		yield `{"type":"O","at":${c[0]},"frame":${c[2]}}`;
	}
	yield* close(Infinity);
}

/* False: the recording cannot be read here. */
export function writeSpeedscope(file, to) {
	const threads = records(file);
	if (!threads) return false;
	const out = fs.openSync(to, 'w');
	const methods = new Map();
	for (const calls of threads.values())
		for (const c of calls) {
			if (!methods.has(c[2])) methods.set(c[2], methods.size);
			c[2] = methods.get(c[2]);
		}
	fs.writeSync(out, `{"$schema":"https://www.speedscope.app/file-format-schema.json","name":"bench","shared":{"frames":[${[...methods.keys()].map((m) => `{"name":"method ${m}"}`).join(',')}]},"profiles":[`);
	let first = true;
	for (const [tid, calls] of threads) {
		const end = calls.reduce((n, c) => Math.max(n, c[1]), 0);
		fs.writeSync(out, `${first ? '' : ','}{"type":"evented","name":"thread ${tid}","unit":"nanoseconds","startValue":0,"endValue":${end},"events":[`);
		let lines = [];
		let begun = false;
		const flush = () => {
			if (lines.length) fs.writeSync(out, (begun ? ',' : '') + lines.join(','));
			begun ||= lines.length > 0;
			lines = [];
		};
		for (const e of events(calls)) if (lines.push(e) === 20000) flush();
		flush();
		fs.writeSync(out, ']}');
		first = false;
	}
	fs.writeSync(out, ']}');
	fs.closeSync(out);
	return true;
}

/* Its zoom is the wheel with Ctrl; a frame ends when the browser can draw the next. */
async function zoomed(n) {
	const canvas = [...document.querySelectorAll('canvas')].pop();
	const target = document.elementFromPoint(640, 400) ?? canvas;
	const times = [];
	for (let i = 0; i < n; i++) {
		const start = performance.now();
		target.dispatchEvent(new WheelEvent('wheel', { deltaY: i % 40 < 20 ? -40 : 40, ctrlKey: true, bubbles: true, cancelable: true, clientX: 500, clientY: 400 }));
		await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
		times.push(performance.now() - start);
	}
	return times.sort((a, b) => a - b);
}

export class Speedscope {
	async start() {
		this.files = http.createServer((req, res) => {
			const name = new URL(req.url, 'http://x').pathname;
			const file = name === '/profile.json' ? this.json : path.join(folder, path.normalize(name === '/' ? 'index.html' : name));
			if (!file || !fs.existsSync(file)) return res.writeHead(404).end();
			const type = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm', '.json': 'application/json' }[path.extname(file)];
			res.writeHead(200, { 'content-type': type ?? 'application/octet-stream' });
			fs.createReadStream(file).pipe(res);
		});
		await new Promise((ok) => this.files.listen(0, '127.0.0.1', ok));
		// it draws by WebGL: in software, as everything here
		this.browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell',
			args: ['--no-sandbox', '--use-angle=swiftshader', '--enable-unsafe-swiftshader', '--ignore-gpu-blocklist'] });
	}

	async measure(json, turns, cpu) {
		if (!fs.existsSync(folder)) return { failed: 'not installed (npm ci in tests/)' };
		if (!this.browser) await this.start();
		this.json = json;
		const page = await (await this.browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
		try {
			const base = `http://127.0.0.1:${this.files.address().port}/`;
			await page.goto(base);
			await page.waitForTimeout(500);
			await page.goto('about:blank');
			const idle = await cpu(this.browser);
			const begun = Date.now();
			await page.goto(`${base}#profileURL=${encodeURIComponent(base + 'profile.json')}`);
			await page.waitForFunction(() => document.title.includes('bench') || /went wrong|error/i.test(document.body.innerText), null, { timeout: LOAD_MS });
			if (!(await page.title()).includes('bench')) return { failed: `does not load it: ${(await page.innerText('body')).slice(0, 80)}` };
			await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
			const first = Date.now() - begun;
			const opened = await cpu(this.browser);
			const zoom = await page.evaluate(zoomed, turns);
			const zoom_cpu = ((await cpu(this.browser)) - opened) / turns;
			await page.context().close();
			return { first, complete: first, open_cpu: opened - idle, zoom, zoom_cpu, mib: await this.memory(base, turns) };
		} catch (why) {
			return { failed: `does not load it within ${LOAD_MS / 1000} s, or its page ends: ${String(why.message).split('\n')[0]}` };
		} finally {
			await page.context().close().catch(() => {});
		}
	}

	/* MiB that the profile adds to speedscope without one, once it was zoomed. */
	async memory(base, turns) {
		const page = await Unwatched.open(this.browser);
		await page.goto(base);
		await sleep(800);
		const empty = await page.resident();
		await page.goto('about:blank');
		await page.goto(`${base}#profileURL=${encodeURIComponent(base + 'profile.json')}`);
		await page.until(() => document.title.includes('bench'));
		await page.evaluate(zoomed, turns);
		const mib = (await page.resident()) - empty;
		await page.close();
		return mib;
	}

	async stop() {
		await this.browser?.close();
		this.files?.close();
	}
}
