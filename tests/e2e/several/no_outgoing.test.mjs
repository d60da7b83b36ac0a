/*
 * no_outgoing.test.mjs - nothing phones home: a server without configured addresses connects to none, looks up no name
 * and sends no datagram, while it is used as people and devices use it; and the page asks its own server alone.
 *
 * The system calls of the server and of all its children are written down by strace; without one the test skips.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { launch, visit } from '../browser.mjs';
import { sampleMapping, sampleTrace } from '../make.mjs';
import { atEnd, sanitized, startServer, until } from '../server.mjs';
import { sendSlower } from '../regressed_fleet.mjs';

const lacks = spawnSync('strace', ['-V']).error ? 'no strace here' : sanitized() ? 'sanitizers do not bear a tracer' : false;

/* Addresses of connections and messages, as strace writes them; sockets between its own processes have none. */
const FOREIGN = /\b(connect|sendto|sendmsg|sendmmsg)\(.*sa_family=AF_(?!UNIX|UNSPEC)\w+/;
const UNIX = /\bconnect\(.*sa_family=AF_UNIX, sun_path=("[^"]*")/;

/* A server that strace follows from its first call on, and its lines once it has ended: call .ended() for them. */
async function traced(t, options = {}) {
	const log = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-alone-')), 'calls');
	atEnd(t, () => fs.rmSync(path.dirname(log), { recursive: true, force: true }));
	/* -D: the server is this test's child, the tracer a grandchild of it */
	const s = await startServer(t, { ...options, under: ['strace', '-D', '-f', '-q', '-s', '200', '-e', 'trace=connect,sendto,sendmsg,sendmmsg,socket', '-e', 'signal=none', '-o', log] });
	const { pid } = s.child;
	const tracer = /TracerPid:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1];
	const lines = () => fs.readFileSync(log, 'utf8').split('\n');
	const ended = async () => {
		await s.stop();
		const runs = () => fs.existsSync(`/proc/${tracer}`) && !/State:\s+Z/.test(fs.readFileSync(`/proc/${tracer}/status`, 'utf8'));
		await until(() => (runs() ? undefined : true), 'the end of the tracer');
		assert.ok(lines().some((l) => l.startsWith(`${pid} `) && /\+\+\+ (exited|killed)/.test(l)), `${lines().slice(-5).join('\n')}\n${s.log.slice(-500)}`);
		return lines();
	};
	return { s, ended };
}

test('a server that knows no other address talks to none', { skip: lacks }, async (t) => {
	const { s, ended } = await traced(t);
	await sendSlower(s, 12);
	const { id } = await s.trace(sampleTrace(), { query: { build_id: 'b' } });
	await s.put('/api/v1/builds/b/methods', sampleMapping);
	for (const target of [`/api/v1/traces/${id}/flame?thread=4000`, `/api/v1/traces/${id}/findings`, `/api/v1/traces/${id}/perfetto`, '/api/v1/fleet/methods', '/api/v1/regressions', '/api/v1/digest?for=markdown', '/', '/api/reference', '/metrics'])
		assert.equal((await s.get(target)).status, 200, target);
	assert.equal((await s.ask('POST', '/api/v1/regressions/detect', { key: s.write })).status, 200);
	const lines = await ended();
	assert.ok(lines.some((l) => /\bsocket\(AF_INET6?, SOCK_STREAM/.test(l)), 'the tracer saw the server begin to listen');
	assert.ok(lines.some((l) => /\bsend(to|msg)\(/.test(l)), 'the tracer saw the server answer');
	assert.deepEqual(lines.filter((l) => FOREIGN.test(l)), []);
	assert.deepEqual(lines.filter((l) => UNIX.test(l)), [], 'nor to a resolver or a bus of this machine');
	assert.deepEqual(lines.filter((l) => /\bsocket\(AF_INET6?, SOCK_DGRAM/.test(l)), [], 'nor is a name looked up');
});

test('one that knows of a webhook talks to that, and the test sees it', { skip: lacks }, async (t) => {
	const reported = [];
	const receiver = http.createServer((req, res) => { reported.push(req.url); req.resume().on('end', () => res.end()); });
	await new Promise((done) => receiver.listen(0, '127.0.0.1', done));
	atEnd(t, () => receiver.close());
	const { port } = receiver.address();
	const { s, ended } = await traced(t, { args: ['--webhook-private', '127.0.0.0/8'] });
	const hook = (await s.ask('POST', '/api/v1/webhooks', { key: s.admin, body: JSON.stringify({ url: `http://127.0.0.1:${port}/hook` }) })).json.id;
	await s.ask('POST', `/api/v1/webhooks/${hook}/test`, { key: s.admin });
	await until(() => (reported.length ? true : undefined), 'the webhook is called');
	const foreign = (await ended()).filter((l) => FOREIGN.test(l));
	assert.ok(foreign.length > 0, 'the connection is written down');
	for (const l of foreign) assert.match(l, new RegExp(`htons\\(${port}\\).*127\\.0\\.0\\.1`));
});

test('the page asks its own server alone', async (t) => {
	const s = await startServer(t);
	await sendSlower(s, 5);
	const { id } = await s.trace(sampleTrace(), { query: { build_id: 'b', scenario: 'cold_start' } });
	const browser = await launch();
	atEnd(t, () => browser.close());
	const context = await browser.newContext();
	const asked = new Set();
	/* the context sees what pages, their workers and their frames ask for */
	context.on('request', (r) => asked.add(new URL(r.url()).origin));
	const sockets = [];
	const page = await context.newPage();
	page.on('websocket', (w) => sockets.push(w.url()));
	await visit(page, s, '/');
	await page.goto(`${s.url}/traces/${id}`);
	await page.locator('h1').first().waitFor();
	await page.locator('canvas').first().waitFor();
	for (const target of ['/fleet', '/compare', '/regressions', '/builds', '/api/reference']) {
		await page.goto(s.url + target);
		await page.locator('h1').first().waitFor();
	}
	const own = [s.url, 'null' /* data: and blob: */];
	assert.deepEqual([...asked].filter((origin) => !own.includes(origin)), []);
	assert.deepEqual(sockets, []);
});

/* Names of XML, and examples in forms that a person fills in: all addresses that the page's files hold. */
const HELD = [/^http:\/\/www\.w3\.org\//, /^https:\/\/[a-z]+\.example\.com\//, /^https:\/\/github\.com\/OWNER\/REPO\//, /^https:\/\/gitlab\.com\/GROUP\/PROJECT\//,
	/^https:\/\/api\.github\.com$/, /^https:\/\/gitlab\.com\/api\/v4$/, /^https:\/\/example\.atlassian\.net$/];

test('the page’s files contain no external address', async (t) => {
	const s = await startServer(t);
	const { text: html } = await s.get('/', { key: null });
	const texts = new Map([['/', html]]);
	const named = (text) => [...text.matchAll(/["'(`](?:\/|\.\/)?((?:assets\/)?[\w.-]+\.(?:js|css|svg))["')`]/g)].map((m) => (m[1].includes('/') || m[1] === 'favicon.svg' ? `/${m[1]}` : `/assets/${m[1]}`));
	const waiting = named(html);
	assert.ok(waiting.length > 0);
	for (let file; (file = waiting.pop());) {
		if (texts.has(file)) continue;
		const { status, text } = await s.get(file, { key: null });
		assert.equal(status, 200, file);
		texts.set(file, text);
		waiting.push(...named(text));
	}
	assert.ok(texts.size > 20, `${texts.size} files, with those that are loaded later`);
	const addresses = [...texts].flatMap(([file, text]) => [...text.matchAll(/\bhttps?:\/\/[\w.-]+[^\s"'`)<]*/g)].map((m) => [m[0], file]));
	assert.ok(addresses.length > 0);
	assert.deepEqual(addresses.filter(([address]) => !HELD.some((held) => held.test(address))), []);
	assert.doesNotMatch(html, /(?:src|href)="(?:https?:)?\/\//, 'nothing is loaded from elsewhere');
});
