// Notes and activity by tiles of time: a view requests the tiles that it touches, and draws coarser
// ones until they have arrived.  A tile of level L is 2^L ns long, counted from the trace's start.
import { api, type Lanes } from '../../api/api';
import type { Span } from './axis';

const CELLS = 2048; // of a tile; a view is at least half a tile long
const KEPT = 600; // tiles of threads, least recently used go first
const SETTLE_MS = 70;

/** Notes of one row of a track over a tile. Frames with different outcomes have separate lanes. */
export interface Lane {
	kind: string;
	tid: number | null;
	name: string;
	row: number;
	outcome: string;
	tile: Span;
	n: number;
	ts: Float64Array;
	dur: Float64Array; // 0: a moment
	text: string[];
	value: number[];
	notes: number[];
	low: number[];
	high: number[];
}

export interface Strip {
	tile: Span;
	cells: Uint8Array;
}

interface Tile {
	lanes: Lane[];
	strip: Strip | null;
}

/** tid of a thread; '' what concerns every thread. */
export type Owner = number | '';

interface Place {
	level: number;
	index: number;
}

export function lanesOf(a: Lanes, tile: Span): Lane[] {
	return a.lanes.map((l) => {
		const n = l.step_ns.length;
		const ts = new Float64Array(n);
		let at = a.from_ns;
		for (let i = 0; i < n; i++) ts[i] = at += l.step_ns[i];
		return { kind: l.kind, tid: l.tid, name: l.name, row: l.row, outcome: l.outcome, tile, n, ts, dur: Float64Array.from(l.dur_ns, (d) => Math.max(0, d)),
			text: l.text.map((t) => a.texts[t]), value: l.value, notes: l.notes, low: l.low ?? l.value, high: l.high ?? l.value };
	});
}

/** A track among all. */
export const trackKey = (kind: string, tid: number | null, name: string): string => `${kind} ${tid} ${name}`;

export class Tiles {
	/** Number of rows, of tracks whose events overlap: as far as loaded; never changed, but replaced. */
	rows: ReadonlyMap<string, number> = new Map();
	private tiles = new Map<string, Tile>();
	private requested = new Set<string>();
	private failed = new Set<string>(); // not requested again before `retry`
	private timer: ReturnType<typeof setTimeout> | undefined;
	private abort = new AbortController();
	readonly top: number; // level of the tile that is the whole trace

	/** kinds: of notes, of threads and of the whole trace; changed: something came. */
	constructor(private id: string, private trace: Span, private kinds: { thread: string[]; trace: string[]; counters: boolean },
		private changed: () => void, private fail: (why: Error) => void) {
		this.top = Math.ceil(Math.log2(Math.max(1024, trace.to - trace.from)));
	}

	stop(): void {
		clearTimeout(this.timer);
		this.abort.abort();
	}

	private places(view: Span): Place[] {
		const level = Math.min(this.top, Math.ceil(Math.log2(Math.max(1024, view.to - view.from))));
		const size = 2 ** level;
		const last = Math.max(0, Math.floor((this.trace.to - this.trace.from) / size));
		const index = (t: number) => Math.max(0, Math.min(last, Math.floor((t - this.trace.from) / size)));
		const list: Place[] = [];
		for (let i = index(view.from); i <= index(view.to); i++) list.push({ level, index: i });
		return list;
	}

	private spanOf(p: Place): Span {
		const from = this.trace.from + p.index * 2 ** p.level;
		return { from, to: from + 2 ** p.level };
	}

	/** Loads, once the view rests, what these owners need for it. */
	want(view: Span, owners: Owner[]): void {
		clearTimeout(this.timer);
		const key = (o: Owner, p: Place) => `${o}/${p.level}/${p.index}`;
		const jobs = this.places(view).map((p) => ({ p, owners: owners.filter((o) => !this.tiles.has(key(o, p)) && !this.requested.has(key(o, p)) && !this.failed.has(key(o, p))) }))
			.filter((j) => j.owners.length > 0);
		if (jobs.length === 0) return;
		this.timer = setTimeout(() => {
			for (const j of jobs) {
				for (const o of j.owners) this.requested.add(key(o, j.p));
				void this.load(j.p, j.owners).catch((why: Error) => {
					if (this.abort.signal.aborted) return;
					for (const o of j.owners) this.failed.add(key(o, j.p));
					this.fail(why);
				}).finally(() => {
					for (const o of j.owners) this.requested.delete(key(o, j.p));
				});
			}
		}, this.tiles.size === 0 ? 0 : SETTLE_MS);
	}

	/** Loads these owners for the whole trace, whatever is in view. */
	overview(owners: Owner[]): void {
		const place = { level: this.top, index: 0 };
		const keys = owners.map((o) => `${o}/${this.top}/0`);
		for (const k of keys) this.requested.add(k);
		void this.load(place, owners).catch(() => undefined).finally(() => {
			for (const k of keys) this.requested.delete(k);
		});
	}

	/** The data loaded for the complete trace. */
	loadedOverall(): Lane[] {
		return [...this.tiles].flatMap(([key, t]) => (key.endsWith(`/${this.top}/0`) ? t.lanes : []));
	}

	/** Failed tiles are requested again with the next view. */
	retry(): void {
		this.failed.clear();
	}

	private async load(p: Place, owners: Owner[]): Promise<void> {
		const tile = this.spanOf(p);
		const range = { from: tile.from, to: tile.to };
		const { signal } = this.abort;
		const tids = owners.filter((o) => o !== '').join(',');
		const kinds = this.kinds;
		const trace = [...kinds.trace, ...(kinds.counters ? ['counter'] : [])].join(',');
		const none = Promise.resolve(null);
		const [own, all, busy] = await Promise.all([
			tids && kinds.thread.length > 0 ? api.lanes(this.id, { kind: kinds.thread.join(','), thread: tids, cells: CELLS, ...range }, signal) : none,
			owners.includes('') && trace ? api.lanes(this.id, { kind: trace, cells: CELLS, ...range }, signal) : none,
			tids ? api.activity(this.id, { thread: tids, cells: CELLS / 2, ...range }, signal) : none]);
		const lanes = [...(own ? lanesOf(own, tile) : []), ...(all ? lanesOf(all, tile) : [])];
		for (const { kind, tid, name, row } of lanes) {
			const key = trackKey(kind, tid, name);
			if (row >= (this.rows.get(key) ?? 1)) this.rows = new Map(this.rows).set(key, row + 1);
		}
		for (const o of owners) {
			const strip = busy?.threads.find((t) => t.tid === o);
			this.keep(`${o}/${p.level}/${p.index}`, {
				lanes: lanes.filter((l) => (o === '' ? kinds.trace.includes(l.kind) || (l.kind === 'counter' && l.tid === null) : l.tid === o && kinds.thread.includes(l.kind))),
				strip: strip && busy ? { tile: { from: busy.from_ns, to: busy.to_ns }, cells: Uint8Array.from(strip.activity) } : null });
		}
		this.changed();
	}

	private keep(key: string, t: Tile): void {
		this.tiles.set(key, t);
		for (const old of this.tiles.keys()) {
			if (this.tiles.size <= KEPT) break;
			if (!old.includes(`/${this.top}/`)) this.tiles.delete(old);
			else this.tiles.set(old, this.tiles.get(old)!);
		}
	}

	/** The tile, or the finest above it that is there. */
	private best(o: Owner, p: Place): Tile | null {
		for (let { level, index } = p; level <= this.top; level++, index = Math.floor(index / 2)) {
			const key = `${o}/${level}/${index}`;
			const t = this.tiles.get(key);
			if (!t) continue;
			this.tiles.delete(key);
			this.tiles.set(key, t); // used last
			return t;
		}
		return null;
	}

	private touching(view: Span, o: Owner): Tile[] {
		return [...new Set(this.places(view).flatMap((p) => this.best(o, p) ?? []))];
	}

	lanes(view: Span, o: Owner, kind: string, name = ''): Lane[] {
		return this.touching(view, o).flatMap((t) => t.lanes.filter((l) => l.kind === kind && l.name === name));
	}

	strips(view: Span, tid: number): Strip[] {
		return this.touching(view, tid).flatMap((t) => t.strip ?? []);
	}
}

/** The shortest of a lane's notes at t, or a moment within `reach` of it; -1 none. */
export function noteAt(l: Lane, t: number, reach: number): number {
	let best = -1;
	for (let i = 0; i < l.n && l.ts[i] <= t + reach; i++) {
		const end = l.ts[i] + Math.max(l.dur[i], reach);
		if (end < t || l.ts[i] > t + reach) continue;
		if (best < 0 || l.dur[i] <= l.dur[best]) best = i;
	}
	return best;
}

/** Which value of a counter's lane holds at t; -1 none yet. */
export function valueAt(l: Lane, t: number): number {
	let lo = 0;
	let hi = l.n;
	while (lo < hi) {
		const mid = (lo + hi) >>> 1;
		if (l.ts[mid] <= t) lo = mid + 1;
		else hi = mid;
	}
	return lo - 1;
}

/** For a trace without calls: how many threads run in each cell, otherwise the first counter, 0 to 255. */
export function shapeOf(lanes: Lane[], whole: Span, cells: number): number[] {
	const span = Math.max(1, whole.to - whole.from);
	const cellOf = (t: number) => ((t - whole.from) / span) * cells;
	const sums: number[] = new Array(cells).fill(0);
	for (const l of lanes)
		for (let i = 0; i < l.n; i++) {
			if (l.kind !== 'state' || l.text[i] !== 'running') continue;
			const [a, b] = [Math.max(0, cellOf(l.ts[i])), Math.min(cells, cellOf(l.ts[i] + l.dur[i]))];
			for (let c = Math.floor(a); c < b; c++) sums[c] += Math.min(b, c + 1) - Math.max(a, c);
		}
	const counter = lanes.find((l) => l.kind === 'counter' && l.n > 0);
	if (counter && !sums.some((v) => v > 0)) {
		const low: number = Math.min(0, ...counter.low);
		for (let c = 0; c < cells; c++) sums[c] = (counter.value[valueAt(counter, whole.from + ((c + 0.5) / cells) * span)] ?? low) - low;
	}
	const most = Math.max(...sums);
	return sums.map((v) => (most > 0 ? Math.round((255 * v) / most) : 0));
}
