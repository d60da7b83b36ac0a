// Handing a trace to the Perfetto UI: open its window, wait for PONG, post the bytes.

const PING_MS = 100;
const WAIT_MS = 30000;

function answered(w: Window, origin: string): Promise<void> {
	return new Promise((resolve, reject) => {
		const timer = setInterval(() => w.postMessage('PING', origin), PING_MS);
		const end = (done: () => void) => {
			clearInterval(timer);
			clearTimeout(limit);
			removeEventListener('message', hear);
			done();
		};
		const hear = (e: MessageEvent) => {
			if (e.source === w && e.origin === origin && e.data === 'PONG') end(resolve);
		};
		const limit = setTimeout(
			() => end(() => reject(new Error(`The Perfetto UI at ${origin} did not answer. Can this browser reach it?`))), WAIT_MS);
		addEventListener('message', hear);
	});
}

/** Must be called from a click, or the browser blocks the window. */
export async function openInPerfetto(ui: string, from: string, title: string, permalink: string,
	on: (what: string) => void): Promise<void> {
	const origin = new URL(ui).origin;
	const w = window.open(ui);
	if (!w) throw new Error('The browser blocked the window. Allow pop-ups for this page and try again.');
	on('Making the Perfetto file');
	const [buffer] = await Promise.all([fetch(from).then((r) => {
		if (!r.ok) throw new Error(`The server answered ${r.status} when asked for the Perfetto file.`);
		return r.arrayBuffer();
	}), answered(w, origin)]);
	on('Handing it over');
	w.postMessage({ perfetto: { buffer, title, url: permalink, fileName: `${title.replace(/[^\w.-]+/g, '_')}.perfetto-trace`, localOnly: true } },
		origin, [buffer]);
}
