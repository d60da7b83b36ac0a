/*
 * Comparison of two traces in the page: selection in the list, summary, graph by pointer and keys, removed
 * calls, table, address.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { copied, navigate, settled, unreadable } from '../browser.mjs';
import { btrace } from '../make.mjs';
import { dir, done, HOSTILE, id, open, server } from '../page.mjs';
import { binary, tracewell } from '../server.mjs';

let next; // the version after that of `id`: slower, and does more
function newer() {
	if (next) return next;
	const folder = path.join(dir, 'newer');
	execFileSync(path.join(path.dirname(binary()), '..', 'tests', 'tracewell-sim'), ['--out', folder, '--seed', '77', '--records', '18000', '--slow', '50']);
	next = tracewell('push', '--server', server.url, '--key', server.ingest, '--build-id', 'web2', '--scenario', 'cold_start', '--meta', 'app=com.acme.shop',
		'--meta', 'version_name=8.3.2', '--mapping', path.join(folder, 'methodMapping.txt'), '--wait', path.join(folder, 'rhea-atrace.bin'));
	return next;
}

const table = (page) => page.locator('section[aria-label=Methods] tbody tr');
const graph = (page) => page.locator('[data-diff] canvas');

/* How many pixels of the graph are bluish, orange or grey. */
const hues = async (page) => (await settled(page), graph(page)).evaluate((c) => {
	const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
	const n = { blue: 0, orange: 0, grey: 0 };
	for (let i = 0; i < d.length; i += 4) {
		if (d[i + 3] < 255) continue;
		if (d[i + 2] - d[i] > 12) n.blue++;
		else if (d[i] - d[i + 2] > 12) n.orange++;
		else n.grey++;
	}
	return n;
});

test('no frame shows a comparison whose graph is still empty', async (t) => {
	const b = newer();
	const page = await open();
	await page.addInitScript(() => {
		window.empty = [];
		const look = () => {
			const c = document.querySelector('[data-diff] canvas');
			if (c && c.width > 10 && c.height > 10) {
				const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
				window.empty.push(!d.some((v) => v > 0));
			}
			requestAnimationFrame(look);
		};
		new MutationObserver((_, self) => document.querySelector('[data-diff] canvas') && (self.disconnect(), requestAnimationFrame(look))).observe(document, { childList: true, subtree: true });
	});
	await page.goto(`${server.url}/compare?a=${id}&b=${b}`);
	await page.waitForSelector('[data-compared]');
	await page.waitForFunction(() => window.empty.length > 2);
	await page.getByRole('button', { name: 'Widths of A, with removed calls' }).click();
	await page.waitForSelector('[data-diff=a]');
	await page.setViewportSize({ width: 1000, height: 700 });
	await settled(page);
	assert.equal((await page.evaluate(() => window.empty)).filter(Boolean).length, 0);
	await done(page, t);
});

test('two traces of the list are compared', async (t) => {
	const b = newer();
	const page = await open();
	await navigate(page, 'Traces');
	for (const one of [id, b]) await page.locator(`tr[data-trace="${one}"] input[type=checkbox]`).click();
	await page.locator('.picked').getByRole('link', { name: 'Compare' }).click();
	await page.waitForSelector('[data-compared]');
	await table(page).first().waitFor();
	const at = () => new URL(page.url());
	assert.deepEqual([at().pathname, at().searchParams.get('a'), at().searchParams.get('b')], ['/compare', id, b], 'the older one is A');
	assert.equal(await page.title(), 'Comparison · tracewell');

	// the sentence and the rows are the server's numbers
	const { json } = await server.get('/api/v1/compare', { query: { a: id, b, thread: 'main' } });
	const words = await page.locator('.verdict').innerText();
	assert.ok(await page.getByText('Compares main threads.').isVisible(), 'a start is what its main thread does');
	assert.match(words, json.b_ns[0] > json.a_ns[0] ? /^B takes .* more than A/ : /^B takes .* less than A/);
	const methods = (await server.get('/api/v1/compare/methods', { query: { a: id, b, thread: 'main' } })).json;
	const name = (m) => m.name.split('.').slice(-1)[0];
	assert.ok((await table(page).first().innerText()).includes(name(methods.methods[0])));
	assert.match(await page.locator('section[aria-label="Side B"]').innerText(), /8\.3\.2/);

	// orange is more; widths as in A show calls that B lacks
	const usual = await hues(page);
	assert.ok(usual.orange > 500, JSON.stringify(usual));
	await page.getByRole('button', { name: 'Widths of A, with removed calls' }).click();
	await page.waitForSelector('[data-diff=a]');
	await settled(page);
	assert.equal(at().searchParams.get('width'), 'a');
	await page.getByRole('button', { name: 'As B' }).click();

	// the graph by keys: into the heaviest node, and its label
	await graph(page).focus();
	for (const key of ['Home', 'ArrowDown']) await page.keyboard.press(key);
	assert.match(await page.locator('.keyed').innerText(), /A .*self.*B .*calls.*change/s);
	const answered = page.waitForResponse(/compare\?.*root=/);
	await page.keyboard.press('Enter');
	await answered;
	await page.waitForSelector('nav[aria-label="Path of the flame graph"] [aria-current=true]');
	await page.waitForSelector('[data-compared]');
	const root = at().searchParams.get('root');
	assert.match(root, /^\d+$/);
	const part = (await server.get('/api/v1/compare', { query: { a: id, b, root, thread: 'main' } })).json;
	await page.getByRole('button', { name: 'Children as a table' }).click();
	await page.locator('.panel .short tbody tr').first().waitFor();
	const below = await page.locator('.panel .short tbody tr').count();
	assert.equal(below, Math.min(50, part.parent.filter((p, i) => i > 0 && p === 0).length));

	// a link is the whole view; swapped, more is less
	await page.reload();
	await page.waitForSelector('[data-compared]');
	assert.equal(at().searchParams.get('root'), root);
	const link = page.url();
	await page.goto(link.replace(/([?&]at=)[^&]+/, '$1com.example.Other.method')); // the number is another method's now
	await page.getByText('This path does not exist here.').waitFor();
	await page.goto(link);
	await page.waitForSelector('[data-compared]');
	await page.getByRole('button', { name: 'Top', exact: true }).click();
	await page.getByRole('button', { name: 'Swap A and B' }).click();
	await page.waitForFunction((w) => document.querySelector('.verdict').textContent !== w, words);
	await page.waitForFunction(() => / less than A/.test(document.querySelector('.verdict').textContent));
	await page.waitForSelector('[data-compared]');
	const swapped = await hues(page);
	assert.ok(swapped.blue > usual.blue && swapped.orange < usual.orange, JSON.stringify([usual, swapped]));
	await page.goBack();
	await page.waitForFunction((w) => document.querySelector('.verdict')?.textContent === w, words);

	// all threads
	await page.getByRole('button', { name: 'All threads' }).click();
	await page.waitForFunction((w) => document.querySelector('.verdict').textContent !== w, words);
	await page.getByText('Compares all threads: their times are added').waitFor();
	await page.waitForSelector('[data-compared]');
	await settled(page);
	assert.equal(at().searchParams.get('thread'), 'all');
	for (const scheme of ['light', 'dark']) {
		await page.emulateMedia({ colorScheme: scheme });
		assert.deepEqual(await unreadable(page), []);
	}
	await done(page, t);
});

test('recordings without a main thread are compared as they are', async (t) => {
	const send = (n) => server.trace(btrace([[7, 1, 1000, 500 * n], [7, 2, 1100, 100]]), { query: { app: 'pool', version_name: String(n) } });
	const [a, b] = [(await send(1)).id, (await send(2)).id];
	const page = await open(`/compare?a=${a}&b=${b}`);
	await page.waitForSelector('[data-compared]');
	await page.getByText('Compares all threads').waitFor();
	await page.getByRole('button', { name: 'Main thread' }).click();
	await page.getByText('These traces have no main threads to compare.').waitFor();
	await page.getByRole('button', { name: 'Compare all threads' }).click();
	await page.getByText('Compares all threads').waitFor();
	await done(page, t);
});

test('new and gone methods, by hostile names, sorted, filtered and copied', async (t) => {
	const send = async (callee, build) => {
		await server.put(`/api/v1/builds/${build}/methods`, `1,1,p.Main run ()V\n2,1,p.Old ${HOSTILE.replaceAll(' ', '\u00a0')} ()V\n3,1,p.Fresh make ()V\n`);
		return (await server.trace(btrace([[4000, callee, 2000, 5000], [4000, 1, 1000, 9000]]), { query: { app: 'x', build_id: build } })).id;
	};
	const [a, b] = [await send(2, 'cmp1'), await send(3, 'cmp2')];
	const page = await open(`/compare?a=${a}&b=${b}`);
	await table(page).first().waitFor();
	assert.equal(await table(page).count(), 3);
	assert.match(await page.locator('.verdict').innerText(), /about the same/);
	await page.getByRole('button', { name: 'Removed (1)' }).click();
	await page.waitForFunction(() => document.querySelectorAll('section[aria-label=Methods] tbody tr').length === 1);
	assert.match(await table(page).innerText(), /<img.src=x.onerror=alert\(1\)>.*removed/s);
	await page.getByRole('button', { name: 'All', exact: true }).click();
	await page.getByPlaceholder('part of a name, or /expression/').fill('/Fresh|Main/');
	await page.waitForFunction(() => document.querySelectorAll('section[aria-label=Methods] tbody tr').length === 2);
	await page.getByRole('button', { name: 'Method', exact: true }).click();
	await page.waitForFunction(() => /Fresh/.test(document.querySelector('section[aria-label=Methods] tbody tr').textContent));
	const lines = (await copied(page, () => page.getByRole('button', { name: 'Copy as TSV' }).click())).split('\n').map((l) => l.split('\t'));
	assert.deepEqual(lines, [['method', 'a_self_ns', 'b_self_ns', 'a_total_ns', 'b_total_ns', 'a_count', 'b_count'], ['p.Fresh.make', '0', '5000', '0', '5000', '0', '1'], ['p.Main.run', '4000', '4000', '9000', '9000', '1', '1']]);

	// calls that B lacks have no width as in B, and the strongest blue as in A
	assert.equal((await hues(page)).blue, 0);
	await page.getByRole('button', { name: 'Widths of A, with removed calls' }).click();
	await page.waitForSelector('[data-diff=a]');
	await page.waitForFunction(() => {
		const c = document.querySelector('[data-diff] canvas');
		const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
		for (let i = 0; i < d.length; i += 4) if (d[i + 2] - d[i] > 60) return true;
	});

	// deletions in between are shown, with a way to continue
	await server.ask('DELETE', `/api/v1/traces/${b}`);
	await page.reload();
	await page.getByRole('alert').getByText('These traces cannot be compared.').waitFor();
	await page.getByRole('link', { name: 'All traces' }).waitFor();
	await page.goto(`${server.url}/compare?a=${a}`);
	await page.getByText('Choose what to compare.').waitFor();
	await page.goto(`${server.url}/compare?a=${a}&b=${a}&root=999&hologram=1`);
	await page.getByText('Some link parameters were ignored.').waitFor();
	await page.getByRole('button', { name: 'Show the whole comparison' }).click();
	await page.waitForSelector('[data-compared]');
	await done(page, t);
});
