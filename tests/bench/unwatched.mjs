/*
 * unwatched.mjs - a page without an inspector, as users have it.  A page that Playwright controls has a
 * copy of every response for the inspector, 14 bytes per call, which the page itself does not need.
 */
import fs from 'node:fs';
import { sleep } from '../e2e/server.mjs';

const WAIT_MS = 120_000;

export class Unwatched {
	/* In a browser that Playwright started; close Playwright's own pages before you read the memory. */
	static async open(browser, { cookies = [], script } = {}) {
		const page = new Unwatched();
		page.cdp = await browser.newBrowserCDPSession();
		page.asked = new Map();
		page.cdp.on('Target.receivedMessageFromTarget', (e) => page.receive(JSON.parse(e.message)));
		const { browserContextId } = await page.cdp.send('Target.createBrowserContext');
		page.context = browserContextId;
		const plain = cookies.map(({ name, value, domain, path, httpOnly, sameSite }) => ({ name, value, domain, path, httpOnly, sameSite }));
		await page.cdp.send('Storage.setCookies', { cookies: plain, browserContextId });
		const { targetId } = await page.cdp.send('Target.createTarget', { url: 'about:blank', browserContextId, width: 1280, height: 800 });
		page.session = (await page.cdp.send('Target.attachToTarget', { targetId, flatten: false })).sessionId;
		await page.send('Page.enable');
		if (script) await page.send('Page.addScriptToEvaluateOnNewDocument', { source: `(${script})()` });
		return page;
	}

	receive({ id, result, error }) {
		const ask = this.asked.get(id);
		this.asked.delete(id);
		if (error) ask?.no(new Error(error.message));
		else ask?.ok(result);
	}

	send(method, params = {}) {
		const id = (this.last = (this.last ?? 0) + 1);
		return new Promise((ok, no) => {
			this.asked.set(id, { ok, no });
			this.cdp.send('Target.sendMessageToTarget', { sessionId: this.session, message: JSON.stringify({ id, method, params }) }).catch(no);
		});
	}

	goto(url) {
		return this.send('Page.navigate', { url });
	}

	async evaluate(fn, arg) {
		const { result, exceptionDetails: bad } = await this.send('Runtime.evaluate', { expression: `(${fn})(${JSON.stringify(arg)})`, awaitPromise: true, returnByValue: true });
		if (bad) throw new Error(bad.exception?.description ?? bad.text);
		return result.value;
	}

	/* A navigation ends the evaluation, which is then repeated. */
	async until(fn) {
		for (const end = Date.now() + WAIT_MS; Date.now() < end; await sleep(50))
			if (await this.evaluate(fn).catch(() => false)) return;
		throw new Error(`not within ${WAIT_MS / 1000} s: ${fn}`);
	}

	/* Resident MiB of its process, after a collection; its is the largest that draws pages. */
	async resident() {
		await this.send('HeapProfiler.collectGarbage');
		const { processInfo } = await this.cdp.send('SystemInfo.getProcessInfo');
		const of = (pid) => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
		return Math.max(...processInfo.filter((p) => p.type === 'renderer').map((p) => of(p.id)));
	}

	close() {
		return this.cdp.send('Target.disposeBrowserContext', { browserContextId: this.context });
	}
}
