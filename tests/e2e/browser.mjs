/*
 * browser.mjs - Chromium for the tests and benchmarks of the page.
 */
import { chromium } from 'playwright-core';

export function launch() {
	return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu',
		'--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
}

/* Signs a fresh page in with a key that may write, as a person would. */
export async function signIn(page, server) {
	await page.goto(server.url + '/');
	await page.click('summary:has-text("With a key")');
	await page.fill('input[name=token]', server.write);
	await page.click('text=Sign in with the key');
	await page.waitForSelector('h1:text-matches("^(Traces|Bring in a first trace)$")');
}

/* Opens an address, signed in: by hand the first time, after that with the session that this gave. */
export async function visit(page, server, target = '/') {
	const before = server.session;
	if (before) await page.context().addCookies(before);
	else {
		await signIn(page, server);
		server.session = await page.context().cookies();
	}
	if (before || target !== '/') await page.goto(server.url + target);
	if (target === '/') await page.waitForSelector('h1:text-matches("^(Traces|Bring in a first trace)$")');
}

/* By hand with a name and a password. */
export async function signInAs(page, server, name, password) {
	await page.goto(server.url + '/');
	await page.fill('input[name=name]', name);
	await page.fill('input[name=password]', password);
	await page.click('button.primary');
	await page.waitForSelector('h1:text-matches("^(Traces|Bring in a first trace)$")');
}

/* To another page by the navigation: opens the menu that holds its link, when it is in one. */
export async function navigate(page, name) {
	const named = { hasText: new RegExp(`^${name}$`) };
	const link = page.locator('.top nav a', named);
	await link.waitFor({ state: 'attached' });
	const menu = page.locator('.places', { has: page.locator('a', named) });
	if (await menu.count() && !await link.isVisible()) await menu.locator('button').click();
	await link.click();
}

/*
 * What a person could not read: text whose contrast against what is painted behind it is under
 * 4.5 (3 for large text), text that its box cuts off, and what sticks out sideways.
 */
export function unreadable(page) {
	return page.evaluate(() => {
		const canvas = document.createElement('canvas');
		canvas.width = canvas.height = 1;
		const g = canvas.getContext('2d', { willReadFrequently: true });
		const rgba = (css) => {
			g.clearRect(0, 0, 1, 1);
			g.fillStyle = css;
			g.fillRect(0, 0, 1, 1);
			const d = g.getImageData(0, 0, 1, 1).data;
			return [d[0], d[1], d[2], d[3] / 255];
		};
		const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
		const light = (c) => {
			const [r, g, b] = c.map((v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
			return 0.2126 * r + 0.7152 * g + 0.0722 * b;
		};
		const behind = (e) => {
			const chain = [];
			for (let at = e; at; at = at.parentElement) chain.unshift(rgba(getComputedStyle(at).backgroundColor));
			return chain.reduce((below, top) => over(top, below), [255, 255, 255]);
		};
		const opacity = (e) => (e ? Number(getComputedStyle(e).opacity) * opacity(e.parentElement) : 1);
		const found = [];
		const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		for (let n = walker.nextNode(); n; n = walker.nextNode()) {
			const e = n.parentElement;
			const text = n.textContent.trim();
			const style = getComputedStyle(e);
			if (!text || !e.getClientRects().length || e.closest('.hidden, noscript, :disabled, option')) continue;
			const back = behind(e);
			const ink = rgba(style.color);
			ink[3] *= opacity(e);
			const [a, b] = [light(over(ink, back)), light(back)].sort((x, y) => y - x);
			const size = parseFloat(style.fontSize);
			const large = size >= 24 || (size >= 18.5 && Number(style.fontWeight) >= 700);
			const ratio = (a + 0.05) / (b + 0.05);
			if (ratio < (large ? 3 : 4.5)) found.push(`contrast ${ratio.toFixed(2)}: ${text.slice(0, 40)}`);
			if (style.textOverflow !== 'ellipsis' && /hidden|clip/.test(style.overflowX) && e.scrollWidth > e.clientWidth + 1)
				found.push(`cut off: ${text.slice(0, 40)}`);
		}
		for (const e of document.querySelectorAll('body *')) {
			const box = e.getBoundingClientRect();
			if (box.right > innerWidth + 1 && !e.closest('.scroll, pre, .hidden, svg')) found.push(`sticks out: ${e.tagName} ${e.className} ${e.textContent.slice(0, 40)}`);
		}
		if (document.documentElement.scrollWidth > innerWidth) found.push('the page scrolls sideways');
		return found;
	});
}
