// The slices of one open thread: all if they fit, otherwise a coarse level and the visible part.
import { totalsOf, type Totals } from './calls';
import { levelsOf, loadLevel, Passing, partFor, persist, plan, Refused, type Chunk, type Directory, type Fetch, type Part } from './levels';
import { toRows, type Rows } from './rows';

const SETTLE_MS = 60; // a view that moves on is not worth loading
const REPORT_MS = 100; // between reports about chunks that change no picture

export interface Progress {
	loaded: number;
	total: number;
	slices: number;
	complete: boolean;
	fresh: boolean; // other calls can be painted
}

export const get: Fetch = async (path, signal) => {
	const r = await fetch(path, { signal }).catch((why: Error) => {
		throw why.name === 'AbortError' ? why : new Passing('The server is not responding. Is it still running?');
	});
	if (r.ok) return r;
	const body = await r.json().catch(() => null);
	const message = body?.error?.message ?? `The server returned ${r.status}.`;
	throw new (r.status === 429 || r.status >= 500 ? Passing : Refused)(message, r.status, body?.error?.status ?? '');
};

const turns = new MessageChannel();
const waiting: (() => void)[] = [];
turns.port1.onmessage = () => waiting.shift()?.();

/** Lets pending messages be handled, so that the page is drawn while calls are read. */
function breathe(): Promise<void> {
	return new Promise((go) => {
		waiting.push(go);
		turns.port2.postMessage(null);
	});
}

export class Store {
	rows: Rows | null = null; // of the complete thread, the finest stored level
	private reached: Progress = { loaded: 0, total: 0, slices: 0, complete: false, fresh: false };
	private sums: { of: Rows; totals: Totals } | null = null;
	private part: { rows: Rows; of: Part } | null = null;
	private levels: Chunk[][] = [];
	private aimed: Part | null = null;
	private timer: ReturnType<typeof setTimeout> | undefined;
	private abort = new AbortController();
	private partial: AbortController | null = null;

	/** base: /api/v1/traces/ID/slices; query: what follows a '?'. */
	constructor(private base: string, private query: string, readonly tid: number, private on: (p: Progress) => void, private fail: (why: unknown) => void) {}

	get kept(): number {
		return (this.rows?.n ?? 0) + (this.part?.rows.n ?? 0);
	}

	/** Loads; up to `room` slices are stored completely.  Levels finer than the first wait for `seen`. */
	async load(room: (slices: number) => number, seen: Promise<void>, known?: Directory): Promise<void> {
		const { signal } = this.abort;
		const directory = known ?? await persist(async () => (await get(`${this.base}?thread=${this.tid}&${this.query}`, signal)).json() as Promise<Directory>, signal);
		const { chunks } = directory;
		const { whole, parts } = plan(chunks, room(directory.slices));
		const total = whole.reduce((n, l) => n + l.length, 0);
		let before = 0;
		if (parts) this.levels = levelsOf(chunks);
		for (const [i, level] of whole.entries()) {
			if (i > 0) await seen;
			let reported = performance.now();
			const came = await this.fetch(level, signal, (done) => {
				if (performance.now() - reported < REPORT_MS) return;
				reported = performance.now();
				this.report({ loaded: before + done, total, slices: this.rows?.n ?? 0, complete: false, fresh: false });
			});
			before += level.length;
			const rows = await toRows(came, false, breathe);
			signal.throwIfAborted();
			this.rows = rows;
			this.report({ loaded: before, total, slices: this.rows.n, complete: i === whole.length - 1, fresh: true });
		}
		if (whole.length === 0) this.report({ loaded: 0, total: 0, slices: 0, complete: true, fresh: true });
	}

	private report(p: Progress): void {
		this.reached = p;
		this.on(p);
	}

	/** Once every call is loaded; computed on request. */
	get totals(): Totals | null {
		const r = this.rows;
		if (!r || r.merged) return null;
		if (this.sums?.of !== r) this.sums = { of: r, totals: totalsOf(r) };
		return this.sums.totals;
	}

	private fetch(level: Chunk[], signal: AbortSignal, on: (done: number) => void) {
		return loadLevel(level, (c) => `${this.base}/${c}?${this.query}`, get, signal, on);
	}

	get stopped(): boolean {
		return this.abort.signal.aborted;
	}

	stop(): void {
		clearTimeout(this.timer);
		this.abort.abort();
		this.partial?.abort();
	}

	/** The best loaded level between two times; starts loading a better one. */
	view(from: number, to: number): Rows | null {
		if (this.levels.length > 0) this.aim(from, to);
		const p = this.part;
		return p && p.of.from <= from && p.of.to >= to ? p.rows : this.rows;
	}

	/** The best loaded data about a call with this begin; loads nothing. */
	at(start: number): Rows | null {
		const p = this.part;
		return p && p.of.from <= start && p.of.to > start ? p.rows : this.rows;
	}

	private aim(from: number, to: number): void {
		const p = this.part?.of;
		const want = partFor(this.levels, from, to);
		if (!want) return;
		if (p && p.level <= want.level && p.from <= from && p.to >= to) return;
		if (this.aimed && this.aimed.level === want.level && this.aimed.from <= from && this.aimed.to >= to) return;
		this.aimed = want;
		clearTimeout(this.timer);
		this.timer = setTimeout(() => void this.loadPart(want), SETTLE_MS);
	}

	/** The visible part at a finer level; the thread's totals are unchanged. */
	private async loadPart(want: Part): Promise<void> {
		this.partial?.abort();
		const abort = new AbortController();
		this.partial = abort;
		try {
			const rows = await toRows(await this.fetch(want.chunks, abort.signal, () => {}), true, breathe);
			abort.signal.throwIfAborted();
			this.part = { rows, of: want };
			this.on({ ...this.reached, fresh: true });
		} catch (why) {
			if (abort.signal.aborted) return;
			this.aimed = null; // requested again with the next view
			this.fail(why);
		}
	}
}
