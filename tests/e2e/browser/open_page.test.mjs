/*
 * open_page.test.mjs - `tracewell open`: a local file in the page, by a server that ends with it.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { drop, launch } from '../browser.mjs';
import { sampleMapping, sampleTrace } from '../make.mjs';
import { ID, library, placed, recording } from '../native_symbols.mjs';
import { atEnd, binary, until } from '../server.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-open-test-'));
const file = (name, bytes) => (fs.writeFileSync(path.join(folder, name), bytes), path.join(folder, name));
let browser;

before(async () => {
	file('trace.bin', sampleTrace());
	file('methodMapping.txt', sampleMapping);
	browser = await launch();
});
after(async () => {
	await browser.close();
	fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
});

/* Files that it left in TMPDIR, which only it uses. */
const left = () => fs.readdirSync(folder).filter((name) => name.startsWith('tracewell-open-'));

function opened(t, ...args) {
	return started(t, { TMPDIR: folder }, ...args, '--no-browser');
}

function started(t, env, ...args) {
	const child = spawn(binary(), ['open', ...args], { env: { ...process.env, ...env } });
	const o = { child, out: '', err: '' };
	child.stdout.on('data', (piece) => (o.out += piece));
	child.stderr.on('data', (piece) => (o.err += piece));
	o.ended = new Promise((done) => child.once('exit', (code, signal) => done({ code, signal })));
	atEnd(t, () => child.kill('SIGKILL'));
	return o;
}

const link = (o) => until(() => /^http\S+$/m.exec(o.out)?.[0], `a link; it said ${o.err}`);

test('a browser gets the link by a file that is private', async (t) => {
	const programs = fs.mkdtempSync(path.join(folder, 'programs-'));
	const reported = path.join(programs, 'opened');
	fs.writeFileSync(path.join(programs, 'xdg-open'), `#!/bin/sh\nprintf '%s\\n' "$@" >${reported}.new && mv ${reported}.new ${reported}\n`, { mode: 0o755 });
	const o = started(t, { TMPDIR: folder, DISPLAY: ':99', PATH: `${programs}:${process.env.PATH}` }, path.join(folder, 'trace.bin'));
	const address = await link(o);
	const [file, ...more] = await until(() => (fs.existsSync(reported) ? fs.readFileSync(reported, 'utf8').trim().split('\n') : undefined), 'xdg-open is started');
	assert.deepEqual(more, []);
	assert.ok(!file.includes('twl_') && !file.includes('#'), file);
	assert.equal(fs.statSync(file).mode & 0o777, 0o600);
	assert.equal(fs.statSync(path.dirname(file)).mode & 0o777, 0o700);
	const page = await browser.newPage();
	await page.goto(`file://${file}`);
	await page.waitForURL((url) => url.pathname.startsWith('/traces/'));
	assert.equal(new URL(page.url()).origin, new URL(address).origin);
	await page.close();
	o.child.kill('SIGINT');
	assert.deepEqual(await o.ended, { code: 0, signal: null });
});

test('the link leads to the trace, with its names; Ctrl-C leaves nothing', async (t) => {
	const o = opened(t, path.join(folder, 'trace.bin'), '--mapping', path.join(folder, 'methodMapping.txt'));
	const address = await link(o);
	const page = await browser.newPage();
	await page.goto(address);
	await page.waitForSelector('[data-ready]');
	await page.waitForSelector('h1 >> text=trace.bin');
	assert.match(new URL(page.url()).pathname, /^\/traces\/[0-9A-Z]{26}$/);
	assert.ok(!page.url().includes('#twl_'));
	const methods = await page.evaluate(async () => (await fetch(`/api/v1${location.pathname}/methods`)).text());
	assert.match(methods, /com\.example\.app\.Class/);
	await drop(page, [['another.bin', sampleTrace(9)]]);
	const uploads = page.getByRole('region', { name: 'Uploads' });
	await uploads.getByRole('link', { name: 'another.bin' }).click();
	await page.waitForSelector('h1 >> text=another.bin');
	await page.close();
	o.child.kill('SIGINT');
	assert.deepEqual(await o.ended, { code: 0, signal: null });
	assert.deepEqual(left(), []);
});

test('a library opened with a trace names its native frames', async (t) => {
	const o = opened(t, recording, library(folder, ID, placed));
	const page = await browser.newPage();
	await page.goto(await link(o));
	await page.waitForURL(/\/traces\/[0-9A-Z]{26}/);
	await page.waitForSelector('[data-ready]');
	const methods = await page.evaluate(async () => (await fetch(`/api/v1${location.pathname}/methods`)).text());
	assert.match(methods, /shop::Cart::pay\(int, int\)/);
	await page.close();
	o.child.kill('SIGINT');
	assert.deepEqual(await o.ended, { code: 0, signal: null });
});

test('several files are listed by their names', async (t) => {
	const names = Array.from({ length: 40 }, (_, i) => `a recording with a long name, so that what is said of all is more than a page of memory, ${i}.bin`);
	const o = opened(t, ...names.map((name, i) => file(name, sampleTrace(i + 1))));
	const page = await browser.newPage();
	await page.goto(await link(o));
	await page.waitForSelector('h1:text-matches("^Traces$")');
	for (const name of [names[0], names[39]]) await page.getByRole('link', { name }).waitFor();
	await page.close();
	o.child.kill('SIGINT');
	assert.deepEqual(await o.ended, { code: 0, signal: null });
});

test('a second one does not sign users out of the first; a requested port is on 127.0.0.1', async (t) => {
	const port = 20000 + (process.pid % 20000);
	const all = [opened(t, path.join(folder, 'trace.bin')), opened(t, path.join(folder, 'trace.bin')), opened(t, path.join(folder, 'trace.bin'), '--port', String(port))];
	const page = await browser.newPage();
	const hosts = [];
	for (const o of all) {
		await page.goto(await link(o));
		await page.waitForSelector('[data-ready]');
		hosts.push(new URL(page.url()));
	}
	assert.equal(new Set(hosts.map((u) => u.hostname)).size, 3, hosts.map(String).join());
	assert.equal(hosts[2].host, `127.0.0.1:${port}`);
	await page.goto(hosts[0].origin + '/traces');
	await page.waitForSelector('h1:text-matches("^Traces$")');
	await page.close();
	for (const o of all) o.child.kill('SIGTERM');
	for (const o of all) assert.equal((await o.ended).code, 0);
});

test('a link leads nowhere but to this page', async (t) => {
	const o = opened(t, path.join(folder, 'trace.bin'));
	const address = await link(o);
	const page = await browser.newPage();
	await page.goto(address.replace(/next=[^#]*/, 'next=//127.0.0.2:9/evil'));
	await page.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
	assert.equal(new URL(page.url()).host, new URL(address).host);
	await page.close();
	o.child.kill('SIGTERM');
	assert.equal((await o.ended).code, 0);
});

test('a missing file is reported by its name, before anything is started', async (t) => {
	for (const args of [[path.join(folder, 'nothere')], [path.join(folder, 'trace.bin'), '--mapping', path.join(folder, 'nothere')]]) {
		const o = opened(t, ...args);
		assert.equal((await o.ended).code, 1);
		assert.equal(o.err, `tracewell open: ${folder}/nothere: No such file or directory\n`);
		assert.equal(o.out, '');
	}
});

test('a file that is not a trace is reported, and nothing is left behind', async (t) => {
	const o = opened(t, file('picture.png', Buffer.from('\x89PNG\r\n\x1a\n then some', 'latin1')));
	assert.equal((await o.ended).code, 1);
	assert.match(o.err, /picture\.png: .+\n.*nothing to show/s);
	assert.deepEqual(left(), []);
});

test('killed, it takes its server along', async (t) => {
	const o = opened(t, path.join(folder, 'trace.bin'));
	const address = new URL(await link(o));
	assert.ok((await fetch(address.origin)).ok);
	o.child.kill('SIGKILL');
	await o.ended;
	await until(async () => ((await fetch(address.origin).catch(() => null)) ? undefined : true), 'the server is gone');
});

test('wrong usage', async (t) => {
	assert.equal((await opened(t).ended).code, 2);
	assert.equal((await opened(t, path.join(folder, 'trace.bin'), '--port', '70000').ended).code, 2);
});
