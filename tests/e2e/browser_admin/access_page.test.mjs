/*
 * Sign-in, projects, deletion, and error messages of the page.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { navigate, settled, signIn, unreadable } from '../browser.mjs';
import { Faults, shim } from '../faults.mjs';
import { browser, dir, done, id, open, server, shots, watched } from '../page.mjs';
import { startServer, tracewell } from '../server.mjs';

test('failures are shown', async (t) => {
	const page = await open('/traces/01ARZ3NDEKTSV4RRFFQ69G5FAV');
	await page.waitForSelector('text=Trace not found');
	await page.goto(`${server.url}/traces/${id}?root=0.0.0.0.0.0`);
	await page.waitForSelector('text=This path does not exist here.');
	await page.click('text=Show the whole graph');
	await page.waitForSelector('[data-flame]');
	await done(page, t);
});

test('a trace is deleted only after confirmation', async (t) => {
	const extra = tracewell('push', '--server', server.url, '--key', server.ingest, '--build-id', 'short-lived', '--wait', path.join(dir, 'rhea-atrace.bin'));
	const page = await open('/traces?build_id=short-lived');
	await page.click(`tr[data-trace="${extra}"] input[type=checkbox]`);
	await page.click('.picked >> text=Delete');
	await page.click('text=Keep');
	assert.equal((await server.get(`/api/v1/traces/${extra}`)).status, 200);
	await page.click('.picked >> text=Delete');
	await page.click('text=Delete permanently');
	await page.waitForSelector('text=No traces match these filters');
	assert.equal((await server.get(`/api/v1/traces/${extra}`)).status, 404);
	await done(page, t);
});

test('a sign-in link signs in once, and leaves no trace in the address', async (t) => {
	const link = tracewell('link', 'create', '--data', server.data, '--url', server.url);
	const page = await watched();
	await page.goto(link);
	await page.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
	assert.ok(!page.url().includes('#'));
	await page.click('text=Sign out');
	await page.waitForSelector('h1:has-text("Sign in")');
	await page.goto('about:blank');
	await page.goto(link);
	await page.waitForSelector('[role=alert]');
	assert.equal(await page.locator('h1').innerText(), 'Sign in');
	await done(page, t);
});

test('links and reloads stay in the project that was picked', async (t) => {
	const key = server.key('ingest', 'other');
	const there = tracewell('push', '--server', server.url, '--key', key, '--meta', 'app=com.acme.other', '--wait', path.join(dir, 'rhea-atrace.bin'));
	const page = await watched();
	await page.goto(tracewell('link', 'create', '--data', server.data, '--url', server.url));
	await page.selectOption('header select', { label: 'other' });
	await page.click('td a:has-text("com.acme.other")');
	await page.waitForSelector('[data-ready]');
	await page.reload();
	await page.waitForSelector('[data-ready]');
	assert.equal(new URL(page.url()).pathname, `/traces/${there}`);
	assert.equal(await page.locator('header select option:checked').innerText(), 'other');
	await navigate(page, 'Traces');
	await page.waitForSelector('td a:has-text("com.acme.other")');
	await page.selectOption('header select', { label: 'test' });
	await page.waitForSelector('td:has-text("com.acme.shop")');
	await page.goBack();
	await page.waitForSelector('td a:has-text("com.acme.other")');
	assert.equal(await page.locator('header select option:checked').innerText(), 'other');
	await page.goto(`${server.url}/traces?project=01ARZ3NDEKTSV4RRFFQ69G5FAV`);
	await page.waitForSelector('text=Project not found');
	await page.click('text=Show a project you can access');
	await page.waitForSelector('td a');
	await done(page, t);
});

test('of two projects that were picked, the last one is shown, also if its response comes first', async (t) => {
	server.key('read', 'left at once');
	const page = await watched();
	await page.goto(tracewell('link', 'create', '--data', server.data, '--url', server.url));
	await navigate(page, 'Traces');
	await page.waitForSelector('td:has-text("com.acme.shop")');
	let answer, first = true;
	const answered = new Promise((go) => (answer = go));
	await page.route('**/api/v1/session*', async (route) => {
		const late = first;
		first = false;
		if (late) await answered;
		await route.continue().catch(() => {}); // the page gave it up
	});
	await page.selectOption('header select', { label: 'left at once' });
	await Promise.all([page.waitForResponse('**/api/v1/session*'), page.selectOption('header select', { label: 'test' })]);
	answer();
	await settled(page);
	assert.equal(await page.locator('header select option:checked').innerText(), 'test');
	await page.waitForSelector('td:has-text("com.acme.shop")');
	await done(page, t);
});

test('a trace that could not be decoded shows the reason', async (t) => {
	const broken = await startServer(t, { env: { TRACEWELL_WORKER_FAULT: 'crash' }, args: ['--worker-attempts', '1'] });
	const up = await broken.post('/api/v1/traces', fs.readFileSync(path.join(dir, 'rhea-atrace.bin')));
	assert.equal(up.status, 202);
	await broken.decoded(up.json.id);
	for (const scheme of ['light', 'dark']) {
		const page = await browser.newPage({ colorScheme: scheme, viewport: { width: 1280, height: 800 } });
		await signIn(page, broken);
		await page.goto(`${broken.url}/traces/${up.json.id}`);
		await page.waitForSelector('text=This trace could not be decoded.');
		const { error } = (await broken.get(`/api/v1/traces/${up.json.id}`)).json;
		assert.ok((await page.locator('[role=alert]').innerText()).toLowerCase().includes(error.message.toLowerCase()));
		assert.deepEqual(await unreadable(page), []);
		await page.waitForSelector('text=A project admin can download it');
		if (shots) await page.screenshot({ path: path.join(shots, `failed-${scheme}.png`) });
		await page.close();
	}
});

test('an admin saves an upload that decoders died of', async (t) => {
	const broken = await startServer(t, { env: { TRACEWELL_WORKER_FAULT: 'crash' }, args: ['--worker-attempts', '1'] });
	const up = await broken.post('/api/v1/traces', fs.readFileSync(path.join(dir, 'rhea-atrace.bin')));
	await broken.decoded(up.json.id);
	const page = await browser.newPage();
	await signIn(page, { url: broken.url, write: broken.admin });
	await page.goto(`${broken.url}/traces/${up.json.id}`);
	const file = page.waitForEvent('download');
	await page.click('text=Download the upload');
	assert.deepEqual(fs.readFileSync(await (await file).path()), fs.readFileSync(path.join(dir, 'rhea-atrace.bin')));
	await page.close();
});

test('a trace that the server cannot decode yet shows the reason', { skip: !fs.existsSync(shim) && `no ${shim}` }, async (t) => {
	const folder = fs.mkdtempSync(path.join(dir, 'held-up-'));
	const data = path.join(folder, 'data');
	const faults = new Faults(folder, path.join(data, 'spool', '01'));
	const full = await startServer(t, { data, args: ['--min-free', '0'], env: { LD_PRELOAD: faults.shim } });
	faults.arm(1, 0xffffffff, 'ENOSPC');
	const { id: held } = (await full.post('/api/v1/traces', fs.readFileSync(path.join(dir, 'rhea-atrace.bin')))).json;
	const page = await watched();
	page.removeAllListeners('request'); // another server than the one that is watched
	await signIn(page, full);
	await page.waitForSelector('.state:has-text("queued, delayed")');
	await page.goto(`${full.url}/traces/${held}`);
	await page.waitForSelector('text=The server could not decode it yet.');
	assert.match(await page.locator('.notice').innerText(), /disk is full.*retries automatically/is);
	assert.deepEqual(await unreadable(page), []);
	if (shots) await page.screenshot({ path: path.join(shots, 'held-up.png') });
	faults.disarm();
	await page.waitForSelector('[data-ready]');
	assert.equal(await page.locator('text=The server could not decode it yet.').count(), 0);
	await done(page, t);
});
