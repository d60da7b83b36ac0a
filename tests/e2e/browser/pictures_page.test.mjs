/*
 * The pictures of the documents show the pages as they are: the same headings, and about the same light at
 * every place; each is used, with words for those who do not see it, and none is large.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { launch, signIn } from '../browser.mjs';
import { documents, textOf } from '../documents.mjs';
import { FOLDER, fill, pictures } from '../pictures.mjs';
import { root, startServer } from '../server.mjs';

const writes = process.env.PICTURES === 'write';
const SIZE = { width: 1280, height: 800 };
const MOST_BYTES = 80 * 1024;
const MOST_APART = 0.012; // of black to white, at the mean of all places: times make 0.0002, another page more than this
const record = path.join(FOLDER, 'pictures.json');
const ending = [];
let server, browser, ids;

before(async () => {
	server = await startServer({ after: (f) => ending.push(f) });
	browser = await launch();
	ids = await fill(server);
});
after(async () => {
	await browser?.close();
	for (const f of ending) await f();
});

/* As a reader of the documents would have it before them. */
async function show(page, [, at, whole, top, press]) {
	await page.goto(server.url + at);
	await page.waitForSelector(whole);
	if (at.startsWith('/traces/')) await page.waitForSelector('[data-ready]');
	if (press) {
		await page.locator(press[0]).first().click();
		await page.locator(press[1]).first().waitFor({ state: 'attached' });
	}
	await page.mouse.move(0, 0);
	await page.waitForLoadState('networkidle');
	if (top !== 'body') await page.locator(top).first().evaluate((e) => window.scrollTo(0, e.getBoundingClientRect().top + scrollY - 8));
	await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

async function take(page) {
	const client = await page.context().newCDPSession(page);
	const { data } = await client.send('Page.captureScreenshot', { format: 'webp', quality: 70 });
	await client.detach();
	return Buffer.from(data, 'base64');
}

const headings = (page) => page.locator('h1, h2, h3, th').evaluateAll((all) => all.filter((e) => {
	const r = e.getBoundingClientRect();
	return r.height && r.bottom > 0 && r.top < innerHeight;
}).map((e) => e.innerText.trim()).filter(Boolean));

/* How far two pictures are apart when both are 64 by 40 grey fields. */
const apart = (page, a, b) => page.evaluate(async (both) => {
	const [x, y] = await Promise.all(both.map(async (data) => {
		const image = await createImageBitmap(new Blob([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))]), { resizeWidth: 64, resizeHeight: 40, resizeQuality: 'high' });
		const g = new OffscreenCanvas(64, 40).getContext('2d');
		g.drawImage(image, 0, 0);
		return g.getImageData(0, 0, 64, 40).data;
	}));
	return x.reduce((sum, v, i) => sum + Math.abs(v - y[i]), 0) / (x.length * 0.75) / 255;
}, [a, b].map((bytes) => bytes.toString('base64')));

test('each picture equals its page', { timeout: 900_000 }, async (t) => {
	const known = writes ? {} : JSON.parse(fs.readFileSync(record, 'utf8'));
	const blank = await browser.newPage();
	const verified = [];
	let last;
	const page = await (await browser.newContext({ colorScheme: 'light', viewport: SIZE, reducedMotion: 'reduce' })).newPage();
	await signIn(page, server);
	for (const picture of pictures(ids)) {
		const [name] = picture;
		await show(page, picture);
		const [file, bytes, said] = [path.join(FOLDER, `${name}.webp`), await take(page), await headings(page)];
		if (process.env.SCREENSHOTS) await page.screenshot({ path: path.join(process.env.SCREENSHOTS, `${name}.png`) });
		if (writes) {
			fs.writeFileSync(file, bytes);
			known[name] = said;
		}
		const far = await apart(blank, bytes, fs.readFileSync(file));
		const other = last ? await apart(blank, bytes, last) : 1;
		last = bytes;
		verified.push(`${name} ${far.toFixed(4)} (another page ${other.toFixed(3)})`);
		assert.ok(other > MOST_APART, 'it differs from another page');
		assert.deepEqual(said, known[name], `${name}: other headings; PICTURES=write makes the pictures anew`);
		assert.ok(far <= MOST_APART, `${name} is ${far} apart from its page; PICTURES=write makes the pictures anew`);
	}
	t.diagnostic(`apart: ${verified.join(', ')}`);
	if (writes) fs.writeFileSync(record, JSON.stringify(known, null, '\t') + '\n');
});

test('each is small, is used, and has a text alternative', () => {
	const names = fs.readdirSync(FOLDER).filter((f) => f.endsWith('.webp'));
	assert.deepEqual(names.map((f) => path.basename(f, '.webp')).sort(), pictures(ids).map(([name]) => name).sort());
	const used = new Map();
	for (const name of documents())
		for (const [, alt, to] of textOf(name).matchAll(/!\[([^\]]*)\]\(([^)]+)\)/g)) used.set(path.join(path.dirname(path.join(root, name)), to), alt);
	for (const f of names) {
		assert.ok(fs.statSync(path.join(FOLDER, f)).size <= MOST_BYTES, `${f} is large`);
		assert.ok((used.get(path.join(FOLDER, f)) ?? '').length > 30, `${f} is in no document, or has no words`);
	}
});
