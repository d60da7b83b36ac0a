/*
 * page.mjs - for the tests of the page: a server with one simulated trace, a browser, and a stand-in
 * for the Perfetto UI. The exports are set before the tests run.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, before } from 'node:test';
import { launch, settled, visit } from './browser.mjs';
import { binary, startServer, tracewell } from './server.mjs';

const sim = path.join(path.dirname(binary()), '..', 'tests', 'tracewell-sim');
export const shots = process.env.SCREENSHOTS;
export const HOSTILE = '<img src=x onerror=alert(1)>';
export let server, browser, dir, truth, id, uiUrl;
export const stand = { handed: undefined, mute: false }; // in for the Perfetto UI: what it was given; it does not answer
let ui;
const ending = [];

/* Replaces the Perfetto UI: answers PING, stores the received file. */
function fakeUi() {
	const page = `<!doctype html><script>
		addEventListener('message', (e) => {
			const p = e.data.perfetto;
			if (e.data === 'PING') e.source.postMessage('PONG', '*');
			else if (p) fetch('/got?' + new URLSearchParams({ title: p.title, url: p.url }), { method: 'POST', body: p.buffer });
		});</script>`;
	return http.createServer((req, res) => {
		if (req.method !== 'POST') return res.setHeader('content-type', 'text/html').end(stand.mute ? 'nothing here' : page);
		const pieces = [];
		req.on('data', (p) => pieces.push(p)).on('end', () => {
			stand.handed = { ...Object.fromEntries(new URL(req.url, 'http://x').searchParams), bytes: Buffer.concat(pieces) };
			res.end();
		});
	});
}

/* A page that notes what must not happen. */
export async function watched(scheme = 'light', width = 1280, height = 900) {
	const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height } });
	const page = await context.newPage();
	page.problems = [];
	page.on('pageerror', (e) => page.problems.push(e.message));
	page.on('dialog', (d) => { page.problems.push('dialog: ' + d.message()); d.dismiss(); });
	page.on('request', (r) => { if (!r.url().startsWith(server.url) && !r.url().startsWith(uiUrl)) page.problems.push('left the origin: ' + r.url()); });
	return page;
}

export async function open(target = '/', scheme = 'light', width = 1280) {
	const page = await watched(scheme, width);
	await visit(page, server, target);
	return page;
}

export async function openTrace(query = '') {
	const page = await open(`/traces/${id}${query}`);
	await page.waitForSelector('[data-ready]');
	await settled(page);
	return page;
}

export async function done(page, t) {
	if (shots) await page.screenshot({ path: path.join(shots, `${t.name.replaceAll(/\W+/g, '-')}.png`), fullPage: true });
	assert.deepEqual(page.problems, []);
	await page.context().close();
}

before(async () => {
	if (shots) fs.mkdirSync(shots, { recursive: true });
	dir = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-page-'));
	execFileSync(sim, ['--out', dir, '--seed', '77', '--records', '12000']);
	truth = JSON.parse(fs.readFileSync(path.join(dir, 'truth.json'), 'utf8'));
	ui = fakeUi();
	await new Promise((ok) => ui.listen(0, '127.0.0.1', ok));
	uiUrl = `http://127.0.0.1:${ui.address().port}`;
	server = await startServer({ after: (f) => ending.push(f) }, { args: ['--perfetto-ui', uiUrl, '--repositories', path.join(dir, 'clones')] });
	// one name is what an attacker would choose
	const mapping = fs.readFileSync(path.join(dir, 'methodMapping.txt'), 'utf8').split('\n');
	const first = Object.entries(truth.methods).sort((a, b) => b[1].self_ns - a[1].self_ns)[0][0];
	const cut = first.lastIndexOf('.');
	const hostile = mapping.map((l) => l.replace(`${first.slice(0, cut)} ${first.slice(cut + 1)} `, `${first.slice(0, cut)}.${HOSTILE.replaceAll(' ', '\u00a0')} ${first.slice(cut + 1)} `));
	fs.writeFileSync(path.join(dir, 'hostile.txt'), hostile.join('\n'));
	id = tracewell('push', '--server', server.url, '--key', server.ingest, '--build-id', 'web', '--scenario', 'cold_start',
		'--meta', 'app=com.acme.shop', '--meta', 'version_name=8.3.1', '--threads', path.join(dir, 'threads.txt'),
		'--mapping', path.join(dir, 'hostile.txt'), '--wait', path.join(dir, 'rhea-atrace.bin'));
	browser = await launch();
});

after(async () => {
	await browser?.close();
	for (const f of ending) await f();
	ui?.close();
	fs.rmSync(dir, { recursive: true, force: true });
});
