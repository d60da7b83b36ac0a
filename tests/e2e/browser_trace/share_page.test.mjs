/*
 * Sharing on the page: titles, pins, tags, annotations on timeline and panel, stacks as text, graphs as pictures.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { copied, settled, unreadable, tab } from '../browser.mjs';
import { done, HOSTILE, id, open, openTrace, server, watched } from '../page.mjs';

const notes = async () => (await server.get(`/api/v1/traces/${id}/annotations`)).json.annotations;
const panel = (page) => page.getByRole('region', { name: 'Annotations' });
const clear = async () => {
	for (const a of await notes()) await server.ask('DELETE', `/api/v1/traces/${id}/annotations/${a.id}`);
	await server.ask('PATCH', `/api/v1/traces/${id}`, { key: server.write, body: JSON.stringify({ title: '', pinned: false, tags: [] }) });
};
const write = async (place, text) => (await server.ask('POST', `/api/v1/traces/${id}/annotations`, { key: server.write, body: JSON.stringify({ text, ...place }) })).json.id;

test('a trace is named, pinned and tagged', async (t) => {
	const page = await openTrace();
	await page.getByRole('button', { name: 'Edit', exact: true }).click();
	await page.getByLabel('Title', { exact: true }).fill(HOSTILE);
	await page.keyboard.press('Enter');
	await page.getByRole('heading', { level: 1, name: HOSTILE }).waitFor();
	await page.getByRole('button', { name: 'Edit', exact: true }).click();
	await page.getByRole('button', { name: 'Pin', exact: true }).click();
	await page.getByRole('button', { name: 'Unpin' }).waitFor();
	await page.getByLabel('Add a tag').fill('slow, cold');
	await page.keyboard.press('Enter');
	await page.getByRole('link', { name: 'slow cold' }).waitFor();
	await page.reload();
	await page.getByRole('heading', { level: 1, name: HOSTILE }).waitFor();
	assert.deepEqual(await unreadable(page), []);
	await page.getByRole('link', { name: 'slow cold' }).click();
	await page.getByRole('link', { name: HOSTILE }).waitFor();
	await page.goBack();
	await page.getByRole('button', { name: 'Edit', exact: true }).click();
	await page.getByRole('button', { name: 'Remove the tag slow cold' }).click();
	await page.getByRole('link', { name: 'slow cold' }).waitFor({ state: 'detached' });
	const { title, pinned, tags } = (await server.get(`/api/v1/traces/${id}`)).json;
	assert.deepEqual([title, pinned, tags], [HOSTILE, true, []]);
	await clear();
	await done(page, t);
});

test('two tags are removed quickly, one after the other', async (t) => {
	assert.equal((await server.ask('PATCH', `/api/v1/traces/${id}`, { key: server.write, body: '{"tags":["one","two","three"]}' })).status, 200);
	const page = await openTrace();
	await page.route('**/api/v1/traces/*', async (route) => {
		if (route.request().method() === 'PATCH') await new Promise((later) => setTimeout(later, 300));
		await route.continue();
	});
	await page.getByRole('button', { name: 'Edit', exact: true }).click();
	for (const tag of ['one', 'two']) await page.getByRole('button', { name: `Remove the tag ${tag}` }).click();
	for (const name of ['one', 'two']) await page.getByRole('link', { name, exact: true }).waitFor({ state: 'detached' });
	assert.deepEqual((await server.get(`/api/v1/traces/${id}`)).json.tags, ['three']);
	await clear();
	await done(page, t);
});

test('an annotation at a time: written, seen on the timeline, linked, changed, deleted', async (t) => {
	await clear();
	const { start_ns: start, end_ns: end } = (await server.get(`/api/v1/traces/${id}`)).json;
	const [a, b] = [0.5, 0.6].map((share) => Math.round(start + (end - start) * share));
	const page = await openTrace(`?a=${a}&b=${b}`);
	await page.keyboard.press('n');
	await panel(page).getByRole('textbox').fill(`${HOSTILE}\nsecond line`);
	await page.keyboard.press('Control+Enter');
	await panel(page).locator('.words').getByText(HOSTILE).waitFor();
	const [one] = await notes();
	assert.deepEqual([one.ts_ns, one.dur_ns], [a, b - a], 'the selection is where it belongs');
	assert.notEqual(one.tid, null);
	const flag = page.getByRole('button', { name: /^Annotation by/ });
	await flag.waitFor();
	const box = await flag.boundingBox();
	const ruler = await page.locator('canvas.ruler').boundingBox();
	assert.ok(Math.abs(box.x - (ruler.x + ruler.width * 0.5)) < 4 && Math.abs(box.width - ruler.width * 0.1) < 6, 'it lies where the time is');
	assert.deepEqual(await unreadable(page), []);
	await flag.click();
	await page.waitForFunction(() => location.search.includes('annotation='));
	await page.locator('li.current').waitFor();
	await settled(page);
	const at = new URL(page.url()).searchParams;
	assert.ok(Number(at.get('from')) <= a && Number(at.get('to')) >= b && Number(at.get('to')) - Number(at.get('from')) < end - start, 'the view went there');
	const link = await copied(page, () => panel(page).getByRole('button', { name: 'Copy link' }).click());
	await panel(page).getByRole('button', { name: 'Edit' }).click();
	await panel(page).getByRole('textbox').fill('better words');
	await panel(page).getByRole('button', { name: 'Save' }).click();
	await panel(page).getByText('better words').waitFor();
	await panel(page).getByText(/, changed /).waitFor();
	await done(page, t);

	const other = await open();
	await other.goto(link);
	await other.waitForSelector('[data-ready]');
	await other.locator('li.current').getByText('better words').waitFor();
	await other.waitForFunction(([from, to]) => {
		const q = new URLSearchParams(location.search);
		return Number(q.get('from')) <= from && Number(q.get('to')) >= to;
	}, [a, b]);
	await panel(other).getByRole('button', { name: 'Delete' }).click();
	await panel(other).getByRole('button', { name: 'Keep' }).click();
	assert.equal((await notes()).length, 1);
	await panel(other).getByRole('button', { name: 'Delete' }).click();
	await panel(other).getByRole('button', { name: 'Delete permanently' }).click();
	await panel(other).waitFor({ state: 'detached' });
	assert.equal(await other.locator('.flag').count(), 0);
	assert.equal((await notes()).length, 0);
	await done(other, t);
});

test('an annotation on a method, from its menu', async (t) => {
	await clear();
	const page = await openTrace('?threads=all&tab=methods');
	const row = page.getByRole('region', { name: 'Methods' }).locator('tbody tr').first();
	const name = await row.locator('td.name').textContent();
	await row.getByRole('button', { name: /^More about/ }).click();
	await page.getByRole('menuitem', { name: 'Annotate' }).click();
	await panel(page).getByRole('textbox').fill('known, see the ticket');
	await panel(page).getByRole('button', { name: 'Save' }).click();
	await panel(page).getByText('known, see the ticket').waitFor();
	const [one] = await notes();
	assert.equal(one.method_name, name);
	assert.equal(one.ts_ns, null);
	await panel(page).getByRole('button', { name: `on ${name}` }).click();
	await page.waitForFunction((n) => new URLSearchParams(location.search).get('find') === n, name);
	await clear();
	await done(page, t);
});

test('who may only look reads annotations and writes none', async (t) => {
	await clear();
	const { start_ns: start } = (await server.get(`/api/v1/traces/${id}`)).json;
	await write({ ts_ns: start + 5 }, 'x'.repeat(4000));
	const page = await watched();
	await page.goto(server.url);
	await page.click('summary:has-text("With a key")');
	await page.fill('input[name=token]', server.read);
	await page.click('text=Sign in with the key');
	await page.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
	await page.goto(`${server.url}/traces/${id}`);
	await page.waitForSelector('[data-ready]');
	await tab(page, 'Annotations');
	await panel(page).getByText('xxxx').waitFor();
	assert.deepEqual(await unreadable(page), []);
	for (const name of ['Annotate', 'Pin', 'Edit', 'Delete']) assert.equal(await page.getByRole('button', { name, exact: true }).count(), 0, name);
	await page.keyboard.press('n');
	assert.equal(await panel(page).getByRole('textbox').count(), 0);
	await clear();
	await done(page, t);
});

test('a stack as text', async (t) => {
	const page = await openTrace('?threads=all');
	await page.waitForSelector('[data-flame]');
	await page.locator('[data-flame] canvas').focus();
	for (const k of ['Home', 'ArrowDown', 'ArrowDown', 'ArrowDown']) await page.keyboard.press(k);
	const name = await page.locator('[data-flame] .keyed .mono').textContent();
	await page.keyboard.press('m');
	const stack = (await copied(page, () => page.getByRole('menuitem', { name: 'Copy stack' }).click())).split('\n');
	assert.ok(stack.length >= 3 && stack.every((l) => l.startsWith('\tat ')), stack.join('|'));
	assert.equal(stack[0], `\tat ${name}`);
	await done(page, t);
});

test('a flame graph as SVG and PNG', async (t) => {
	const page = await openTrace('?threads=all');
	await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
	await page.waitForSelector('[data-flame]');
	const save = async (what) => {
		const file = page.waitForEvent('download');
		await page.getByRole('button', { name: 'Save picture' }).click();
		await page.getByRole('button', { name: what, exact: true }).click();
		return fs.readFileSync(await (await file).path());
	};
	const svg = (await save('As SVG')).toString('utf8');
	assert.match(svg, /^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
	assert.ok(!svg.includes('<img') && svg.includes('&lt;img'), 'a name that is markup stays text');
	const checked = await page.evaluate((text) => {
		const doc = new DOMParser().parseFromString(text, 'image/svg+xml');
		return { bad: doc.querySelector('parsererror')?.textContent ?? null, boxes: doc.querySelectorAll('g rect').length, other: [...doc.querySelectorAll('*')].filter((e) => !['svg', 'g', 'rect', 'text', 'title'].includes(e.tagName)).length };
	}, svg);
	assert.equal(checked.bad, null);
	assert.equal(checked.other, 0);
	assert.ok(checked.boxes > 20);
	const png = await save('As PNG');
	assert.deepEqual([...png.subarray(0, 8)], [0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10]);
	assert.equal(png.readUInt32BE(16), 3200);
	assert.ok(png.length > 5000, 'something is painted');
	await page.getByRole('button', { name: 'Copy as PNG' }).click();
	await page.getByText('Copied.').waitFor();
	const types = await page.evaluate(async () => (await navigator.clipboard.read())[0].types);
	assert.ok(types.includes('image/png'));
	await done(page, t);
});

test('a picture whose code cannot be loaded is reported', async (t) => {
	const page = await openTrace('?threads=all');
	await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
	await page.route(/\/assets\/panels-/, (route) => route.abort());
	for (const name of ['As SVG', 'As PNG', 'Copy as PNG']) {
		await page.reload();
		await page.waitForSelector('[data-flame]');
		await page.getByRole('button', { name: 'Save picture' }).click();
		await page.getByRole('button', { name, exact: true }).click();
		await page.locator('output', { hasText: 'Part of this page could not be loaded.' }).waitFor();
	}
	await done(page, t);
});
