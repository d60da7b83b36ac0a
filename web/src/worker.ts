// Owns the slices of the thread that is shown: fetches and decodes its chunks, paints views of them.
import { found, hitOf, next, selfOf, totalsOf, visible, type Totals } from './calls';
import { loadLevel, Passing, persist, plan, type Chunk } from './levels';
import type { About, FromWorker, ToWorker } from './messages';
import { paint, type Look } from './paint';
import { sliceAt, toRows, type Rows } from './rows';

const VISIBLE_MAX = 200;

let rows: Rows | null = null;
let totals: Totals | null = null; // once every call is there, unmerged
let look: Look | null = null;
let loading: AbortController | null = null;

function say(m: FromWorker, transfer: Transferable[] = []): void {
	(self as unknown as Worker).postMessage(m, transfer);
}

async function get(path: string, signal: AbortSignal): Promise<Response> {
	const r = await fetch(path, { signal }).catch((why: Error) => {
		throw why.name === 'AbortError' ? why : new Passing('The server does not answer. Is it still running?');
	});
	if (r.ok) return r;
	const body = await r.json().catch(() => null);
	const message = body?.error?.message ?? `The server answered ${r.status}.`;
	throw r.status === 429 || r.status >= 500 ? new Passing(message) : new Error(message);
}

function tellFound(): void {
	say({ kind: 'found', calls: rows && look?.matches ? found(rows, look.matches) : null });
}

async function load(m: Extract<ToWorker, { kind: 'load' }>, signal: AbortSignal): Promise<void> {
	const base = `/api/v1/traces/${m.trace}/slices`;
	const project = m.project ? `project=${encodeURIComponent(m.project)}` : '';
	const directory = await persist(async () => (await get(`${base}?thread=${m.tid}&${project}`, signal)).json(), signal);
	const levels = plan(directory.chunks as Chunk[]);
	const total = levels.reduce((n, l) => n + l.length, 0);
	let before = 0;
	for (const [i, level] of levels.entries()) {
		const slices = await loadLevel(level, (c) => `${base}/${c}?${project}`, get, signal, (done) =>
			say({ kind: 'progress', id: m.id, loaded: before + done, total, slices: 0, complete: false }));
		signal.throwIfAborted();
		before += level.length;
		rows = toRows(slices);
		totals = rows.merged ? null : totalsOf(slices);
		say({ kind: 'progress', id: m.id, loaded: before, total, slices: rows.n, complete: i === levels.length - 1 });
		if (look?.matches) tellFound();
	}
	if (levels.length === 0) say({ kind: 'progress', id: m.id, loaded: 0, total: 0, slices: 0, complete: true });
}

/** Another thread: what is still on its way for the one before is not waited for. */
function begin(m: Extract<ToWorker, { kind: 'load' }>): void {
	const abort = new AbortController();
	loading?.abort();
	loading = abort;
	rows = null;
	totals = null;
	load(m, abort.signal).catch((why: Error) => {
		if (abort.signal.aborted) return;
		abort.abort(); // the other lanes
		say({ kind: 'failed', id: m.id, message: why.message });
	});
}

function about(r: Rows, k: number, row: number): About {
	const method = r.method[k];
	return {
		self: r.merged ? null : selfOf(r, k, row),
		methodCount: totals ? totals.count[method] : null,
		methodSelf: totals ? totals.self[method] : null,
		busy: totals ? totals.busy : null,
	};
}

self.onmessage = (e: MessageEvent<ToWorker>) => {
	const m = e.data;
	switch (m.kind) {
	case 'load':
		begin(m);
		break;
	case 'look':
		look = m.look;
		tellFound();
		break;
	case 'paint': {
		const px = new Uint32Array(m.buffer);
		const labels = rows && look ? paint(px, rows, m.view, look) : [];
		if (!rows || !look) px.fill(look?.background ?? 0);
		say({ kind: 'painted', id: m.id, view: m.view, buffer: m.buffer, labels, calls: rows?.n ?? 0 }, [m.buffer]);
		break;
	}
	case 'hit': {
		const k = rows ? sliceAt(rows, m.row, m.time) : -1;
		if (rows && k >= 0) say({ kind: 'hit', id: m.id, hit: hitOf(rows, k, m.row), about: about(rows, k, m.row) });
		else say({ kind: 'hit', id: m.id, hit: null, about: { self: null, methodCount: null, methodSelf: null, busy: null } });
		break;
	}
	case 'visible':
		say({ kind: 'visible', id: m.id, calls: rows ? visible(rows, m.from, m.to, VISIBLE_MAX) : [] });
		break;
	case 'next':
		say({ kind: 'next', id: m.id, hit: rows && look?.matches ? next(rows, look.matches, m.after, m.forward) : null });
		break;
	}
};
