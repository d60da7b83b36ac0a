/*
 * uploads_page.test.mjs - files from the page: dropped anywhere or chosen, followed until they can be opened; links to
 * traces of other projects, projects by name, addresses that do not exist.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { violations } from '../axe.mjs';
import { dragged, drop, signIn } from '../browser.mjs';
import { btrace, sampleMapping, sampleTrace } from '../make.mjs';
import { ID, library, OTHER, placed, recording, source } from '../native_symbols.mjs';
import { browser, done, HOSTILE, id, server, watched } from '../page.mjs';
import { atEnd, binary, root, startServer, tracewell, until } from '../server.mjs';

const link = (s, path = '') => `${tracewell('link', 'create', '--data', s.data, '--url', s.url).replace('/signin', `/signin${path && `?next=${encodeURIComponent(path)}`}`)}`;

/* Signed in as an admin of the server. */
async function entered(s = server, at = '/', scheme = 'light', width = 1280) {
	const page = await watched(scheme, width);
	if (s !== server) page.problems.length = 0;
	await page.goto(link(s, at));
	await page.waitForSelector('nav[aria-label="Pages"]');
	return page;
}

const row = (page, name) => page.getByRole('region', { name: 'Uploads' }).locator('li', { hasText: name });
/* On the page of a trace that was uploaded the list is folded once all are ready. */
const shownAll = (page) => page.getByRole('region', { name: 'Uploads' }).getByRole('button', { name: 'Show' }).click();
const records = (n) => btrace(Array.from({ length: n }, (_, i) => [4000, 1 + (i % 7), i * 1000, 900]));

test('an empty project requests a file; the first that is dropped is shown once it is decoded', async (t) => {
	const empty = await startServer(t);
	const page = await browser.newPage();
	await page.goto(link(empty));
	await page.getByRole('heading', { name: 'Send a first trace' }).waitFor();
	await page.getByText('Drop trace files anywhere on this page').waitFor();
	assert.deepEqual(await violations(page), []);
	await drop(page, [['first.bin', sampleTrace()], ['methodMapping.txt', sampleMapping]]);
	await page.waitForURL(/\/traces\/[0-9A-Z]{26}/);
	await page.waitForSelector('[data-ready]');
	await page.waitForSelector('h1 >> text=first.bin');
	await page.getByRole('region', { name: 'Uploads' }).getByText('2 ready').waitFor();
	assert.equal(await row(page, 'methodMapping.txt').count(), 0, 'nothing covers the trace');
	await shownAll(page);
	await row(page, 'methodMapping.txt').locator('text=In use for build local-').waitFor();
	const names = await page.evaluate(async () => (await fetch(`/api/v1${location.pathname}/methods`)).text());
	assert.match(names, /com\.example\.app\.Class/, 'named by the mapping that came with it');
	await page.close();
});

test('an empty fleet page accepts a dropped file; a small project shows the next steps', async (t) => {
	const empty = await startServer(t);
	const page = await browser.newPage();
	await page.goto(link(empty, '/fleet/methods'));
	await page.getByText('No traces to show for the last 30 days. Drop a trace file anywhere on this page').waitFor();
	assert.ok((await page.locator('#methods').boundingBox()).height < 200, 'no reserved space remains');
	assert.deepEqual(await violations(page), []);
	await page.goto(`${empty.url}/anrs?kind=deadlock`);
	await page.getByText('No ANR matches.').getByRole('button', { name: 'Clear the filter' }).click();
	await page.getByText('No ANRs in the last 30 days. Drop a thread dump anywhere on this page').waitFor();
	await page.goto(`${empty.url}/locks?source=calls`);
	await page.getByText('No lock wait matches.').getByRole('button', { name: 'Clear the filter' }).click();
	await page.getByText('No main thread waited for a lock in the last 30 days. Drop a trace').getByRole('button', { name: 'Include all threads' }).click();
	await page.getByText('No thread waited for a lock').waitFor();
	assert.deepEqual(await violations(page), []);
	await drop(page, [['first.bin', sampleTrace()]]);
	await page.waitForSelector('h1 >> text=first.bin');

	await page.getByRole('link', { name: 'Overview', exact: true }).click();
	await page.getByText('Detectors found nothing').waitFor();
	assert.equal(await page.locator('main .panel').first().getAttribute('id'), 'newest', 'what there is comes first');
	for (const panel of ['#slower', '#topanrs', '#topfindings']) assert.ok((await page.locator(panel).boundingBox()).height < 140, panel);
	await page.locator('#slowest').getByText('Send traces with a build_id').waitFor();
	await page.locator('#topanrs').getByText('Drop a thread dump').waitFor();
	assert.deepEqual(await violations(page), []);
	await page.getByRole('button', { name: 'Upload with details' }).click();
	await page.getByRole('dialog', { name: 'Upload traces' }).getByLabel('Scenario').fill('cold_start');
	await page.keyboard.press('Escape');

	await empty.trace(sampleTrace(60), { query: { app: 'com.acme', scenario: 'cold_start', version_name: '1', build_id: 'no mapping/1' } });
	await until(async () => ((await empty.get('/api/v1/fleet/methods', { query: { build_id: 'no mapping/1' }, key: empty.read })).json.traces === 1 ? true : undefined), 'it is counted');
	const viewer = await browser.newPage();
	await signIn(viewer, { url: empty.url, write: empty.read });
	await viewer.locator('#topanrs').getByText('No ANRs for this time range and filter.').waitFor();
	assert.equal(await viewer.getByText('Drop').count(), 0, 'a viewer cannot upload');
	await viewer.close();
	await page.goto(`${empty.url}/fleet/methods?project=test&build_id=${encodeURIComponent('no mapping/1')}`);
	await page.locator('#methods').getByText('Some methods have no name').getByRole('link', { name: 'no mapping/1' }).click();
	await page.getByText('Method names are missing in 1 trace of this build. Send its methodMapping.txt').waitFor();
	await page.goto(`${empty.url}/fleet/methods?project=test&scenario=other`);
	await page.getByText('No traces match this filter.').waitFor();
	await page.getByRole('button', { name: 'Clear the filter' }).click();
	await page.waitForSelector('#methods tr[data-method]');
	await page.close();
});

test('files dropped while the code that sends them cannot be loaded are reported', async (t) => {
	const page = await entered(server, '/inbox');
	let broken = true;
	await page.route(/\/assets\/uploads-/, (route) => (broken ? route.abort() : route.continue()));
	await drop(page, [['dropped.bin', records(15)]]);
	await page.waitForSelector('[role=alert] >> text=The page is incomplete.');
	assert.deepEqual(await violations(page), []);
	broken = false;
	await Promise.all([page.waitForEvent('load'), page.getByRole('button', { name: 'Reload the page' }).click()]);
	await page.waitForSelector('nav[aria-label="Pages"]');
	await drop(page, [['dropped.bin', records(15)]]);
	await page.waitForSelector('h1 >> text=dropped.bin');
	await done(page, t);
});

test('several files at once, of several formats, and one that is none', async (t) => {
	const page = await entered(server, '/regressions');
	const golden = (name) => fs.readFileSync(path.join(root, 'tests/golden', name, 'input'));
	const folded = 'main;a;b 10\nmain;a;c 20\n';
	await drop(page, [['one.bin', records(20)], [`${HOSTILE}.trace`, golden('anr/realistic')], ['stacks.folded', folded], ['picture.png', '\x89PNG\r\n\x1a\n then some']]);
	await row(page, 'one.bin').locator('text=Ready').waitFor();
	await row(page, HOSTILE).locator('text=Ready').waitFor();
	await row(page, 'stacks.folded').locator('text=/Ready|Failed/').waitFor();
	await row(page, 'picture.png').locator('text=Failed').waitFor();
	await row(page, 'picture.png').getByText('Not a trace in a known format. Choose a recording').waitFor();
	assert.equal(await row(page, 'picture.png').getByRole('button', { name: 'Try again' }).count(), 0, 'it would be refused again');
	assert.match(page.url(), /\/regressions/, 'several leave the reader where they are');
	const uploads = page.getByRole('region', { name: 'Uploads' });
	await uploads.getByRole('status').getByText(/^\d ready, 1 failed$/).waitFor();
	assert.match(await uploads.locator('li').first().innerText(), /picture\.png/, 'what failed is first');
	assert.deepEqual(await violations(page), []);
	await row(page, 'picture.png').getByRole('button', { name: 'Dismiss picture.png' }).click();
	assert.equal(await row(page, 'picture.png').count(), 0);
	await row(page, 'one.bin').getByRole('link', { name: 'one.bin' }).click();
	await page.waitForSelector('h1 >> text=one.bin');
	await done(page, t);
});

test('a recording with its side files is one trace; several mappings dropped together request their builds', async (t) => {
	const page = await entered(server, '/inbox');
	await drop(page, [['with threads.bin', sampleTrace()], ['threads.txt', '4000,Renamed by list\n']]);
	await page.waitForSelector('h1 >> text=with threads.bin');
	const threads = await page.evaluate(async () => (await fetch(`/api/v1${location.pathname}/threads`)).text());
	assert.match(threads, /Renamed by list/);
	await shownAll(page);
	assert.equal(await row(page, 'with threads.bin').locator('text=threads.txt').count(), 1);
	await drop(page, [['unpaired.bin', records(12)], ['one.txt', sampleMapping], ['two.txt', sampleMapping], ['binder.txt', '1,a.b.C\n'], ['unpaired too.bin', records(13)]]);
	for (const name of ['one.txt', 'two.txt']) await row(page, name).getByText('Which build does this mapping belong to?').waitFor();
	await row(page, 'binder.txt').getByText('Drop it with that recording only.').waitFor();
	assert.equal(await row(page, 'binder.txt').getByText('Choose a recording').count(), 0, 'no other remedy');
	await row(page, 'unpaired.bin').locator('text=Ready').waitFor();
	const found = (await server.get('/api/v1/traces', { query: { q: 'unpaired.bin' } })).json.traces;
	assert.deepEqual(found.map((f) => f.meta.build_id), [''], 'no mapping was guessed');
	await done(page, t);
});

test('chosen with details; a mapping alone requests its build', async (t) => {
	const page = await entered(server, '/traces');
	await page.getByRole('banner').getByRole('button', { name: 'Upload', exact: true }).click();
	const dialog = page.getByRole('dialog', { name: 'Upload traces' });
	await dialog.getByText('Details for these files').click();
	await dialog.getByLabel('App').fill('com.acme.chosen');
	await dialog.getByLabel('Version').fill('9.9');
	await dialog.getByLabel('Build').fill('');
	assert.deepEqual(await violations(page), []);
	const [chooser] = await Promise.all([page.waitForEvent('filechooser'), dialog.getByRole('button', { name: 'Choose files' }).click()]);
	await chooser.setFiles([{ name: 'chosen.bin', mimeType: 'application/octet-stream', buffer: records(31) }]);
	await page.waitForSelector('h1 >> text=chosen.bin');
	const trace = await server.get(`/api/v1/traces/${/traces\/(\w+)/.exec(page.url())[1]}`);
	assert.deepEqual([trace.json.meta.app, trace.json.meta.version_name, trace.json.title], ['com.acme.chosen', '9.9', 'chosen.bin']);
	await page.getByRole('banner').getByRole('button', { name: 'Upload', exact: true }).click();
	await dialog.waitFor();
	await drop(page, [['map.txt', 'com.acme.Shop -> a.a:\n    1:3:void open():10:12 -> a\n']]);
	await dialog.waitFor({ state: 'detached' });
	const mapping = row(page, 'map.txt');
	await mapping.getByText('Which build does this mapping belong to?').waitFor();
	await mapping.getByLabel('Build').fill('chosen-build');
	await page.keyboard.press('Enter');
	await mapping.locator('text=In use for build chosen-build').waitFor();
	assert.equal((await server.get('/api/v1/builds/chosen-build')).json.retrace.state, 'ready');
	await done(page, t);
});

test('a library that is dropped with a trace names its native frames', async (t) => {
	const page = await entered(server, '/traces'), folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tw-library-'));
	atEnd(t, () => fs.rmSync(folder, { recursive: true }));
	const bare = library(folder, OTHER, source, '-Wl,--build-id=none');
	await drop(page, [['native.data', fs.readFileSync(recording)], ['libshop.so', fs.readFileSync(library(folder, ID, placed))], ['libbare.so', fs.readFileSync(bare)]]);
	await row(page, 'libshop.so').getByText(`Names native frames of build id ${ID}`).waitFor();
	await row(page, 'libbare.so').getByText('This library has no build id').waitFor();
	assert.equal(await row(page, 'libbare.so').getByRole('button', { name: 'Try again' }).count(), 0);
	await page.waitForSelector('h1 >> text=native.data');
	const names = await page.evaluate(async () => (await fetch(`/api/v1${location.pathname}/methods`)).text());
	assert.match(names, /shop::Cart::pay\(int, int\)/);
	await done(page, t);
});

test('a library whose reader cannot be loaded is reported, and the files dropped with it are sent', async (t) => {
	const page = await entered(server, '/traces');
	await page.route(/\/assets\/elf-/, (route) => route.abort());
	await drop(page, [['beside.bin', records(77)], ['libshop.so', Buffer.from('\x7fELF')]]);
	await row(page, 'libshop.so').getByText('Part of this page could not be loaded.').waitFor();
	await page.waitForSelector('h1 >> text=beside.bin');
	await done(page, t);
});

test('a file dropped on the page of another trace stays in the list with its link, until it is opened', async (t) => {
	const page = await entered(server, `/traces/${id}`);
	const show = page.getByRole('region', { name: 'Uploads' }).getByRole('button', { name: 'Show' });
	await page.waitForSelector('[data-ready]');
	for (const name of ['second.bin', 'third.bin']) { // the third on the page of the second, which is in the list
		await drop(page, [[name, records(name.length + 41)]]);
		await row(page, name).getByText('Ready').waitFor();
		assert.equal(await show.count(), 0, 'not folded');
		await row(page, name).getByRole('link', { name }).click();
		await page.waitForSelector(`h1 >> text=${name}`);
		await show.waitFor();
		assert.equal(await row(page, name).count(), 0, 'nothing covers the trace');
	}
	await done(page, t);
});

test('a reader is offered no upload', async (t) => {
	const page = await watched();
	await page.goto(`${server.url}/signin`);
	await page.getByText('With a key').click();
	await page.getByLabel('A read, write or admin key').fill(server.key('read'));
	await page.keyboard.press('Enter');
	await page.waitForSelector('nav[aria-label="Pages"]');
	assert.equal(await page.getByRole('banner').getByRole('button', { name: 'Upload', exact: true }).count(), 0);
	const keepsPage = () => page.evaluate(() => new Promise((resolve) => addEventListener('dragover', (e) => setTimeout(() => resolve(e.defaultPrevented && e.dataTransfer.dropEffect === 'none')), { once: true })));
	const over = async () => {
		const kept = keepsPage();
		await page.dispatchEvent('body', 'dragover', { dataTransfer: await dragged(page, [['one.bin', records(5)]]) });
		return kept;
	};
	assert.ok(await over(), 'the browser does not open the file instead of the page');
	await page.getByText('You cannot upload to this project').waitFor();
	await page.getByRole('button', { name: 'Sign out' }).click();
	await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor();
	assert.ok(await over());
	await page.getByText('Sign in to upload').waitFor();
	await done(page, t);
});

test('a link to a trace opens it in whatever project it is, and a project has its name in an address', async (t) => {
	const key = server.key('ingest', 'elsewhere');
	const made = (await server.post('/api/v1/traces', records(25), { key, query: { app: 'com.acme.elsewhere' } })).json.id;
	const page = await entered(server, `/traces/${made}`);
	await page.waitForSelector('[data-ready]');
	await page.waitForSelector('h1 >> text=com.acme.elsewhere');
	await page.waitForURL(/project=/); // the address follows a moment later
	const project = new URL(page.url()).searchParams.get('project');
	assert.match(project, /^[0-9A-Z]{26}$/);
	assert.equal(await page.getByLabel('Project').inputValue(), project);
	await page.goto(`${server.url}/traces?project=elsewhere`);
	await page.waitForSelector(`tr[data-trace="${made}"]`);
	await page.goto(`${server.url}/traces?project=nowhere`);
	await page.getByText('Project not found').waitFor();

	const reader = { name: 'only-here', password: 'reads one project' };
	execFileSync(binary(), ['user', 'create', reader.name, '--data', server.data], { input: reader.password });
	tracewell('user', 'role', reader.name, '--data', server.data, '--role', 'viewer', '--project', 'test');
	const other = await watched();
	await other.goto(`${server.url}/traces/${made}`);
	await other.getByLabel('Name').fill(reader.name);
	await other.getByLabel('Password').fill(reader.password);
	await other.keyboard.press('Enter');
	await other.getByText('ask an admin for a role').first().waitFor();
	assert.ok(!other.url().includes('project='), 'what may not be read is not named');
	await done(other, t);
	const nobody = { name: 'without-role', password: 'has no project yet' };
	execFileSync(binary(), ['user', 'create', nobody.name, '--data', server.data], { input: nobody.password });
	const third = await watched();
	await third.goto(`${server.url}/traces/${made}`);
	await third.getByLabel('Name').fill(nobody.name);
	await third.getByLabel('Password').fill(nobody.password);
	await third.keyboard.press('Enter');
	await third.getByText('You do not have a role in any project yet.').first().waitFor();
	assert.equal(await third.getByText('Something went wrong').count(), 0);
	await done(third, t);
	await done(page, t);
});

test('files are sent to the project in which they were dropped, also while another one is shown', async (t) => {
	const reader = server.key('read', 'meanwhile');
	const page = await entered(server, '/traces?project=test');
	let send;
	const sent = new Promise((go) => (send = go));
	await page.route(/\/api\/v1\/traces\?/, async (route) => {
		if (route.request().method() === 'POST') await sent;
		await route.continue();
	});
	await page.waitForSelector('tr[data-trace]');
	await drop(page, ['one', 'two', 'three'].map((name, i) => [`${name}.bin`, records(40 + i)]));
	await row(page, 'three.bin').getByText('Waiting').waitFor();
	await page.selectOption('header select', { label: 'meanwhile' });
	await page.getByRole('heading', { name: 'Send a first trace' }).waitFor();
	send();
	await row(page, 'three.bin').getByRole('link').click();
	await page.waitForSelector('h1 >> text=three.bin');
	assert.equal(await page.locator('header select option:checked').innerText(), 'test');
	assert.equal((await server.get('/api/v1/traces', { key: reader })).json.total, 0);
	await done(page, t);
});

test('an address that does not exist is a page to a browser, and JSON to a program', async (t) => {
	const page = await entered(server, '/no/such/page');
	await page.getByRole('heading', { name: 'Page not found' }).waitFor();
	const status = async (headers) => (await fetch(`${server.url}/no/such/page`, { headers })).status;
	assert.deepEqual([await status({ Accept: 'text/html' }), await status({})], [404, 404]);
	assert.equal((await fetch(`${server.url}/no/such/page`)).headers.get('content-type'), 'application/json');
	assert.equal((await fetch(`${server.url}/api/v1/nothing`, { headers: { Accept: 'text/html' } })).headers.get('content-type'), 'application/json');
	assert.ok(id);
	await page.getByRole('link', { name: 'All traces', exact: true }).click();
	await page.getByRole('heading', { name: 'Traces', exact: true }).waitFor();
	await page.getByRole('link', { name: 'Overview', exact: true }).click();
	await page.getByRole('link', { name: /^All (\d+ )?traces$/ }).click();
	await page.waitForURL(/\/traces/);
	await done(page, t);
});
