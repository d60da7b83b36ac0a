// Handing a trace to the Perfetto UI: open its window, wait for PONG, post the bytes.
import { call } from '../api/api';
import { tr } from '../i18n/strings/trace';

const PING_MS = 100;
const WAIT_MS = 30000;

/** The browser would not open the window. */
export class Blocked extends Error {
	constructor() {
		super(tr('The browser blocked the window of the Perfetto UI. Allow pop-ups for this page and try again, or download the file and open it there.'));
	}
}

/** Ends with the first PONG; fails when the window is closed, or nothing answers for long. */
function answered(w: Window, origin: string, stop: AbortController): Promise<void> {
	return new Promise((resolve, reject) => {
		const end = (done: () => void) => {
			clearInterval(timer);
			clearTimeout(limit);
			removeEventListener('message', hear);
			done();
		};
		const fail = (message: string) => end(() => {
			stop.abort();
			reject(new Error(message));
		});
		const timer = setInterval(() => {
			if (w.closed) fail(tr('The Perfetto UI was closed before it received the trace.'));
			else w.postMessage('PING', origin);
		}, PING_MS);
		const hear = (e: MessageEvent) => {
			if (e.source === w && e.origin === origin && e.data === 'PONG') end(resolve);
		};
		const limit = setTimeout(() => fail(tr('The Perfetto UI at {origin} is not responding. Can this browser reach it?', { origin })), WAIT_MS);
		addEventListener('message', hear);
	});
}

interface Handover {
	ui: string;        // its address, with the range to show
	file: string;      // where the bytes come from
	title: string;
	permalink: string; // back to this view
}

/** Must be called from a click, or the browser blocks the window. */
export async function openInPerfetto(h: Handover, on: (what: string) => void): Promise<void> {
	const origin = new URL(h.ui).origin;
	const w = window.open(h.ui);
	if (!w) throw new Blocked();
	const stop = new AbortController();
	on(tr('Preparing the Perfetto file'));
	const there = answered(w, origin, stop);
	const bytes = call(h.file, { signal: stop.signal }).then((r) => r.arrayBuffer());
	bytes.catch(() => {}); // reported by `there` if the window was closed
	await Promise.race([there, bytes]);
	const [buffer] = await Promise.all([bytes, there]);
	if (w.closed) throw new Error(tr('The Perfetto UI was closed before it received the trace.'));
	on(tr('Sending the trace'));
	w.postMessage({ perfetto: { buffer, title: h.title, url: h.permalink,
		fileName: `${h.title.replace(/[^\w.-]+/g, '_')}.perfetto-trace`, localOnly: true } }, origin, [buffer]);
}
