/*
 * browser.mjs - Chromium for the tests and benchmarks of the page.
 */
import { chromium } from 'playwright-core';

import { inFull, until } from './server.mjs';

/* Themes and widths at which a page is held to what can be read: each theme once, in a full run at both widths. */
export const THEMES = inFull([['light', 1280], ['dark', 1280], ['light', 1920], ['dark', 1920]], [['light', 1280], ['dark', 1920]]);

/* Runs in each page before its own scripts: knows the timers that the page waits for and the time of its last act. */
const WATCH = `(() => {
	const SHORT_MS = 700; // longer ones poll progress
	const QUIET_MS = 60;
	const timers = new Set();
	let last = performance.now();
	const act = () => { last = performance.now(); };
	const set = window.setTimeout, clear = window.clearTimeout;
	window.setTimeout = (run, ms, ...more) => {
		const timer = set(() => {
			timers.delete(timer);
			act();
			if (typeof run === 'function') run(...more);
		}, ms);
		if (!(ms > SHORT_MS)) timers.add(timer);
		return timer;
	};
	window.clearTimeout = (timer) => {
		timers.delete(timer);
		clear(timer);
	};
	const Real = window.Worker;
	if (Real)
		window.Worker = class extends Real {
			constructor(...args) {
				super(...args);
				this.addEventListener('message', act);
			}
			postMessage(...args) {
				act();
				super.postMessage(...args);
			}
		};
	new MutationObserver(act).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
	const frame = () => new Promise((done) => requestAnimationFrame(done));
	window.documentBegins();
	window.painted = async () => {
		await frame();
		await frame();
		await new Promise((done) => set(done));
	};
	window.activity = () => document.readyState + ', timers: ' + timers.size + ', last change ' + Math.round(performance.now() - last) + ' ms ago';
	window.atRest = async () => {
		await window.painted();
		return timers.size === 0 && performance.now() - last >= QUIET_MS;
	};
})()`;

/* BROWSER_SLOWER=8: pages run as on a machine eight times slower, where answers and keys come in another order. */
const SLOWER = Number(process.env.BROWSER_SLOWER ?? 1);
/* BROWSER_LATE=300: each response, short timer and frame comes that many milliseconds later, so that a test that does not
 * wait for its effect fails each time. */
const LATE_MS = Number(process.env.BROWSER_LATE ?? 0);
const LATE = `(() => {
	const set = window.setTimeout, clear = window.clearTimeout, frame = window.requestAnimationFrame, cancel = window.cancelAnimationFrame;
	window.setTimeout = (run, ms, ...more) => set(run, (ms ?? 0) + (ms > 700 ? 0 : ${LATE_MS}), ...more);
	window.requestAnimationFrame = (run) => -set(() => frame(run), ${LATE_MS});
	window.cancelAnimationFrame = (n) => (n < 0 ? clear(-n) : cancel(n));
	const board = navigator.clipboard;
	if (board) {
		const write = board.writeText.bind(board);
		board.writeText = (text) => new Promise((done, fail) => set(() => write(text).then(done, fail), ${LATE_MS}));
	}
})()`;

async function slow(context, page) {
	const session = await context.newCDPSession(page);
	await session.send('Emulation.setCPUThrottlingRate', { rate: SLOWER });
	if (!LATE_MS) return;
	await session.send('Network.enable');
	await session.send('Network.emulateNetworkConditions', { offline: false, latency: LATE_MS, downloadThroughput: -1, uploadThroughput: -1 });
}

/* Calls that change a context permanently: it is not given to another test. */
const LASTING = ['addInitScript', 'exposeBinding', 'exposeFunction', 'on', 'once', 'route', 'setDefaultTimeout', 'setExtraHTTPHeaders', 'setGeolocation', 'setOffline'];
const LASTING_CLOCK = ['fastForward', 'install', 'pauseAt', 'resume', 'runFor', 'setFixedTime', 'setSystemTime']; // of `context.clock`, which is also `page.clock`

/*
 * Contexts that tests closed, by their options. The next test with the same options gets one of them, without its pages,
 * cookies, stored items and permissions. A new renderer process costs as much as loading a page twice, so an empty page of
 * the server's origin keeps the old one alive (one process per site: see launch).
 */
class Spare {
	#free = new Map();

	take(options) {
		return this.#free.get(JSON.stringify(options))?.pop();
	}

	/* Makes `close` of a new context put it here, unless it was changed permanently. */
	lend(context, options) {
		const free = this.#free.get(JSON.stringify(options)) ?? [];
		this.#free.set(JSON.stringify(options), free);
		const origins = new Set();
		let keeper, changed = false;
		context.on('request', (r) => r.isNavigationRequest() && r.url().startsWith('http') && origins.add(new URL(r.url()).origin));
		for (const [of, names] of [[context, LASTING], [context.clock, LASTING_CLOCK]])
			for (const name of names) {
				const real = of[name].bind(of);
				of[name] = (...more) => ((changed = true), real(...more));
			}
		const [pages, close] = [context.pages.bind(context), context.close.bind(context)];
		context.pages = () => pages().filter((page) => page !== keeper);
		context.close = async () => {
			if (free.includes(context)) return;
			const used = context.pages();
			/* A handler of a route may be in the middle of its answer when a test ends. */
			await Promise.all([context, ...used].map((x) => x.unrouteAll({ behavior: 'ignoreErrors' })));
			if (changed || origins.size !== 1) return close();
			try {
				keeper ??= await emptyPage(context, ...origins);
				await Promise.all(used.map((page) => Object.getPrototypeOf(page).close.call(page)));
				await Promise.all([context.clearCookies(), context.clearPermissions(), keeper.evaluate(() => localStorage.clear())]);
				if (options?.permissions) await context.grantPermissions(options.permissions);
				context.requests.open.clear();
				free.push(context);
			} catch {
				return close();
			}
		};
		return context;
	}
}

/* An empty page of this origin; the server receives no request for it. */
async function emptyPage(context, origin) {
	const page = await context.newPage();
	await page.route('**', (route) => route.fulfill({ contentType: 'text/html', body: '' }));
	await page.goto(`${origin}/`);
	return page;
}

/* The page of a request; undefined: a new page whose document has not begun, or a worker that has none. */
function pageOf(request) {
	try {
		return request.frame().page();
	} catch {
		return undefined;
	}
}

function watch(context) {
	const requests = { open: new Set(), begun: 0 };
	context.requests = requests;
	context.setDefaultTimeout(60_000);
	/* Chromium does not always report the end of a request whose document was left, or whose page was closed. */
	const begin = ({ page, frame }) => {
		if (frame !== page.mainFrame()) return;
		for (const r of requests.open) if (!r.isNavigationRequest() && pageOf(r) === page) requests.open.delete(r);
	};
	context.on('page', (page) => page.on('close', () => {
		for (const r of requests.open) if (pageOf(r) === page) requests.open.delete(r);
	}));
	context.on('request', (r) => (requests.open.add(r), requests.begun++));
	for (const end of ['requestfinished', 'requestfailed']) context.on(end, (r) => requests.open.delete(r));
	if (SLOWER > 1 || LATE_MS) context.on('page', (page) => slow(context, page).catch(() => {}));
	return context.exposeBinding('documentBegins', begin).then(() => context.addInitScript((LATE_MS ? LATE + ';' : '') + WATCH)).then(() => context);
}

/* Waits until a page is idle: no open request, no timer, no change. The failure names the condition that was not met. */
export async function settled(page) {
	const { requests } = page.context();
	let rests;
	await until(async () => {
		const { begun } = requests;
		rests = await page.evaluate(() => globalThis.atRest()).catch(() => false); // it may navigate just now
		return rests && requests.open.size === 0 && requests.begun === begun ? true : undefined;
	}, 'a page at rest').catch(async (e) => {
		const open = [...requests.open].map((r) => `${r.resourceType()} ${r.url()} of ${pageOf(r) === page ? 'this page' : pageOf(r)?.url()}`);
		const active = rests ? '' : await page.evaluate(() => globalThis.activity()).catch((failed) => failed.message);
		throw new Error([e.message, page.url(), active, ...open].filter(Boolean).join('\n'));
	});
}

/* What `act` puts into the clipboard. */
export async function copied(page, act) {
	const NOTHING = 'nothing is copied yet';
	await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
	await page.evaluate((text) => navigator.clipboard.writeText(text), NOTHING);
	await act();
	return until(async () => {
		const text = await page.evaluate(() => navigator.clipboard.readText());
		return text === NOTHING ? undefined : text;
	}, 'something copied');
}

/* Waits until the page has painted its data. */
export const painted = (page) => page.evaluate(() => globalThis.painted());

export async function launch({ measured = false } = {}) {
	/* Tests leave a page before optimized code pays off; benchmarks (`measured`) do not. */
	const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell', args: ['--no-sandbox', '--disable-gpu',
		'--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--process-per-site', ...(measured ? [] : ['--js-flags=--no-maglev --no-opt'])] });
	const make = browser.newContext.bind(browser);
	const spare = new Spare();
	/* Without motion: a turning spinner is drawn 60 times a second. */
	browser.newContext = async (given) => {
		const options = { reducedMotion: 'reduce', ...given };
		return spare.take(options) ?? spare.lend(await make(options).then(watch), options);
	};
	browser.newPage = async (options) => {
		const context = await browser.newContext(options);
		const page = await context.newPage();
		page.close = () => context.close();
		return page;
	};
	return browser;
}

/* Files in the hand of who drags them over a page: [name, bytes] each. */
export function dragged(page, files) {
	const list = files.map(([name, bytes]) => [name, Buffer.from(bytes).toString('base64')]);
	return page.evaluateHandle((all) => {
		const t = new DataTransfer();
		for (const [name, text] of all) t.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name));
		return t;
	}, list);
}

/* Drops files as a person does: over the page first. */
export async function drop(page, files) {
	const dataTransfer = await dragged(page, files);
	await page.dispatchEvent('body', 'dragover', { dataTransfer });
	await page.getByText('Drop to upload').waitFor();
	await page.dispatchEvent('body', 'drop', { dataTransfer });
	await page.getByText('Drop to upload').waitFor({ state: 'detached' });
}

/* Signs a fresh page in with a key that may write, as a person would. */
export async function signIn(page, server) {
	await page.goto(server.url + '/');
	await page.click('summary:has-text("With a key")');
	await page.fill('input[name=token]', server.write);
	await page.click('text=Sign in with the key');
	await page.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
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
	if (target === '/') await page.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
}

/* By hand with a name and a password. */
export async function signInAs(page, server, name, password) {
	await page.goto(server.url + '/');
	await page.fill('input[name=name]', name);
	await page.fill('input[name=password]', password);
	await page.click('button.primary');
	await page.waitForSelector('h1:text-matches("^(Overview|Traces|Send a first trace)$")');
}

/* Shows a panel of a trace. */
export async function tab(page, name) {
	await page.getByRole('tab', { name, exact: true }).click();
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
		const known = new Map(); // reading a pixel back is slow, and a page has few colours
		const rgba = (css) => {
			if (!known.has(css)) known.set(css, painted(css));
			return [...known.get(css)];
		};
		const painted = (css) => {
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
			if (!text || !e.getClientRects().length || e.closest('.hidden, noscript, :disabled, [aria-disabled=true], option')) continue;
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
