// Owns the slices of the threads that are open: fetches and decodes their chunks, paints views of them.
import { called, found, hitOf, next, selfOf, visible } from './calls';
import { Refused, WHOLE_MAX, type Directory } from './levels';
import type { About, FromWorker, ToWorker, WorkerError, WorkerStart } from './messages';
import { paint, type Label, type Look } from './paint';
import { sliceAt, type Rows } from './rows';
import { get, Store, type Progress } from './store';

const VISIBLE_MAX = 200;
const CALLEES_MAX = 100;
const PICTURE_MS = 100; // how long the first picture waits for calls
const NOTHING: About = { self: null, methodCount: null, methodSelf: null, busy: null };

type Paint = Extract<ToWorker, { kind: 'paint' }>;

const stores = new Map<number, Store>();
const promised = new Map<number, number>(); // slices that a store keeps whole
const reached = new Map<number, Progress>(); // last reported
let look: Look | null = null;
let counted: number | null = null; // the thread whose matches are counted
let opened: Extract<ToWorker, { kind: 'open' }> | null = null;

function post(m: FromWorker, transfer: Transferable[] = []): void {
	(self as unknown as Worker).postMessage(m, transfer);
}

const errorOf = (why: unknown): WorkerError =>
	(why instanceof Refused ? { code: why.code, status: why.status, message: why.message } : { code: 'internal', status: 0, message: (why as Error)?.message ?? String(why) });

const fail = (tid: number | null, why: unknown) => post({ kind: 'failed', tid, error: errorOf(why) });

function postFound(): void {
	const s = counted !== null && stores.get(counted);
	if (s) post({ kind: 'found', tid: s.tid, found: s.rows && look?.matches ? found(s.rows, look.matches) : null });
}

/** Reserves memory for a thread's slices if there is enough. */
function room(tid: number, slices: number): number {
	let taken = 0;
	for (const [other, n] of promised) if (other !== tid) taken += n;
	const left = WHOLE_MAX - taken;
	if (slices <= left) promised.set(tid, slices);
	return left;
}

/** The first picture waits for calls, and everything that it does not need waits for it: other calls are requested and progress
 *  is reported after it, because the page's thread would handle the reports first. */
let pictured: () => void;
const firstPicture = new Promise<void>((done) => {
	pictured = done;
});
let expected = true; // until it is drawn, or no longer waits
let held: Paint | null = null; // its request, while it waits

function paintHeld(): void {
	const m = held;
	held = null;
	if (m) handle(m);
}

const slicesOf = (trace: string) => `/api/v1/traces/${trace}/slices`;
const queryOf = (project: string) => (project ? `project=${encodeURIComponent(project)}` : '');

function begin(tid: number): void {
	const store: Store = new Store(slicesOf(opened!.trace), queryOf(opened!.project), tid, (p) => {
		const fresh = p.fresh && !expected; // the first picture already contains what was loaded before it
		reached.set(tid, p);
		paintHeld();
		void firstPicture.then(() => {
			if (store.stopped) return;
			post({ kind: 'progress', tid, ...p, fresh });
			if (tid === counted && look?.matches && p.loaded === p.total) postFound();
		});
	}, (why) => fail(tid, why));
	stores.set(tid, store);
	store.load((slices) => room(tid, slices), firstPicture, opened!.early).catch((why: unknown) => {
		if (store.stopped) return;
		if (opened!.early) return end(tid); // no listener is left: opening the thread again sends a new request
		store.stop(); // the other lanes
		fail(tid, why);
	});
}

function end(tid: number): void {
	stores.get(tid)?.stop();
	stores.delete(tid);
	promised.delete(tid);
	reached.delete(tid);
}

/** Requests of closed threads are not awaited.  An early message opens threads in addition, until the page has sent the list of open ones. */
function open(m: Extract<ToWorker, { kind: 'open' }>): void {
	if (m.early && opened && !opened.early) return;
	const other = opened !== null && opened.trace !== m.trace;
	opened = m;
	for (const tid of [...stores.keys()]) if (other || (!m.early && !m.tids.includes(tid))) end(tid);
	for (const tid of m.tids) if (!stores.has(tid)) begin(tid);
	if (m.early || !expected) return;
	setTimeout(() => {
		expected = false;
		paintHeld();
		pictured(); // also if the page does not show the timeline
	}, PICTURE_MS);
}

function about(s: Store, r: Rows, k: number, row: number): About {
	const method = r.method[k];
	const t = r === s.rows ? s.totals : null;
	return {
		self: r.merged ? null : selfOf(r, k, row),
		methodCount: t ? t.count[method] : null,
		methodSelf: t ? t.self[method] : null,
		busy: t ? t.busy : null,
	};
}

let shown = { from: 0, to: 0 };

function picture(m: Paint): void {
	let calls = 0;
	for (const s of stores.values()) calls += s.kept;
	if (expected && calls === 0 && [...stores.keys()].some((tid) => !reached.has(tid))) {
		held = m;
		return;
	}
	expected = false;
	const px = new Uint32Array(m.buffer);
	const labels: Label[] = [];
	shown = m.picture;
	px.fill(look?.background ?? 0);
	for (const part of m.parts) {
		const rows = stores.get(part.tid)?.view(part.from, part.to);
		if (rows && look) paint(px, rows, part, look, labels);
	}
	post({ kind: 'painted', picture: m.picture, buffer: m.buffer, labels, calls }, [m.buffer]);
	pictured();
}

/** Response to a request that failed, so that the requester continues. */
function nothing(m: ToWorker): void {
	if (m.kind === 'paint') post({ kind: 'painted', picture: m.picture, buffer: m.buffer, labels: [], calls: 0 }, [m.buffer]);
	else if (m.kind === 'hit') post({ kind: 'hit', id: m.id, hit: null, about: NOTHING, called: null });
	else if (m.kind === 'call') post({ kind: 'call', id: m.id, called: null, all: true });
	else if (m.kind === 'visible') post({ kind: 'visible', calls: [] });
	else if (m.kind === 'next') post({ kind: 'next', tid: m.tid, hit: null });
}

function handle(m: ToWorker): void {
	try {
		answer(m);
	} catch (why) {
		nothing(m);
		fail(null, why);
	}
}

self.onmessage = (e: MessageEvent<ToWorker>) => handle(e.data);

function answer(m: ToWorker): void {
	switch (m.kind) {
	case 'open':
		open(m);
		break;
	case 'again':
		end(m.tid);
		begin(m.tid);
		break;
	case 'look':
		look = m.look;
		postFound();
		break;
	case 'count':
		counted = m.tid;
		postFound();
		break;
	case 'paint':
		picture(m);
		break;
	case 'hit': {
		const s = stores.get(m.tid);
		const rows = s?.view(shown.from, shown.to);
		const k = rows ? sliceAt(rows, m.row, m.time) : -1;
		if (!s || !rows || k < 0) return nothing(m);
		const hit = hitOf(rows, k, m.row);
		post({ kind: 'hit', id: m.id, hit, about: about(s, rows, k, m.row), called: m.chosen ? called(rows, { tid: m.tid, start: hit.start, depth: m.row }, CALLEES_MAX) : null });
		break;
	}
	case 'call': {
		const { call } = m;
		const p = reached.get(call.tid);
		post({ kind: 'call', id: m.id, called: called(stores.get(call.tid)?.at(call.start), call, CALLEES_MAX), all: p?.complete === true });
		break;
	}
	case 'visible': {
		const rows = stores.get(m.tid)?.view(m.from, m.to);
		post({ kind: 'visible', calls: rows ? visible(rows, m.from, m.to, VISIBLE_MAX) : [] });
		break;
	}
	case 'next': {
		const rows = stores.get(m.tid)?.rows;
		post({ kind: 'next', tid: m.tid, hit: rows && look?.matches ? next(rows, look.matches, m.after, m.forward) : null });
		break;
	}
	}
}

/* The page's thread is busy when its first message would arrive, so the first threads come with the worker's name. */
const { trace, project, threads }: WorkerStart = JSON.parse(self.name || '{"threads":[]}');

/** Of the main thread: without a parameter, which returns the thread with the longest running time if no main thread has calls. */
async function chunksOf(thread: string): Promise<Directory> {
	const q = new URLSearchParams({ ...(thread !== 'main' && { thread }), ...(project && { project }) });
	return (await get(`${slicesOf(trace)}?${q}`, new AbortController().signal)).json();
}

for (const one of threads)
	chunksOf(one)
		.then((d) => open({ kind: 'open', trace, project, tids: [d.tid], early: d }))
		.catch(() => undefined); // the page opens its threads again and reports errors
