// The wait-for graph of a dump.  A thread waits for one lock at most, so the threads that wait for the same
// end are a tree: its root is a thread that waits for none, one that the dump does not have, or a ring of
// threads, which is a deadlock.
import type { AnrProcess, AnrWish } from './anrdoc';

export interface Wait {
	ring: number[]; // threads (indexes) at the end: all of a deadlock, in the order of their waits, otherwise one or none
	gone: AnrWish | null; // the end is a lock whose holder is not in the dump
	deadlock: boolean;
	threads: number[]; // all, with those at the end
}

export interface Box {
	kind: 'thread' | 'gone' | 'more';
	thread: number; // of kind thread
	more: number; // of kind more: number of threads that it represents
	ring: boolean;
	column: number; // 0 is the left
	row: number;
}

export interface Arrow {
	from: number; // boxes
	to: number;
	lock: AnrWish | null; // null: several threads that wait for the same one
	ring: boolean;
}

export interface Picture {
	boxes: Box[];
	arrows: Arrow[];
	columns: number;
	rows: number;
	hidden: number; // threads that are not drawn one by one
}

const MOST = 48; // boxes
const WAITERS = 6; // of one thread
const RING = 12; // threads of a deadlock

const holderOf = (p: AnrProcess, i: number) => {
	const h = p.threads[i]?.wants?.holder ?? null;
	return h !== null && h >= 0 && h < p.threads.length ? h : null;
};

/** Where the waits of a thread lead to, by the name of that end. */
class Ends {
	private of: (string | undefined)[] = [];
	readonly waits = new Map<string, Wait>();

	constructor(private p: AnrProcess) {}

	/** Follows the wishes from one thread on, as far as nothing is known yet. */
	follow(first: number): void {
		const path: number[] = [];
		const met = new Map<number, number>();
		let at: number | null = first;
		while (at !== null && this.of[at] === undefined && !met.has(at)) {
			met.set(at, path.length);
			path.push(at);
			at = holderOf(this.p, at);
		}
		const key = at === null ? this.end(path[path.length - 1]) : this.of[at] ?? this.ring(path.slice(met.get(at)));
		for (const i of path) {
			this.of[i] = key;
			this.waits.get(key)!.threads.push(i);
		}
	}

	private ring(threads: number[]): string {
		const key = `ring ${threads[0]}`;
		this.waits.set(key, { ring: threads, gone: null, deadlock: true, threads: [] });
		return key;
	}

	/** The end of a path: a thread that waits for no other. */
	private end(last: number): string {
		const gone = this.p.threads[last].wants ?? null;
		const key = gone ? `gone ${gone.holder_tid ?? ''} ${gone.id}` : `thread ${last}`;
		if (!this.waits.has(key)) this.waits.set(key, { ring: gone ? [] : [last], gone, deadlock: false, threads: [] });
		return key;
	}
}

/** All waits of a process: main's first, then deadlocks, then by number of threads. */
export function waitsOf(p: AnrProcess): Wait[] {
	const ends = new Ends(p);
	for (let i = 0; i < p.threads.length; i++) if (p.threads[i].wants) ends.follow(i);
	for (const w of ends.waits.values())
		if (w.deadlock && p.main !== null && w.ring.includes(p.main)) {
			const at = w.ring.indexOf(p.main);
			w.ring = [...w.ring.slice(at), ...w.ring.slice(0, at)];
		}
	const rank = (w: Wait) => (p.main !== null && w.threads.includes(p.main) ? 2 : w.deadlock ? 1 : 0);
	return [...ends.waits.values()].map((w) => ({ ...w, threads: [...w.threads].sort((a, b) => a - b), rank: rank(w) }))
		.sort((a, b) => b.rank - a.rank || b.threads.length - a.threads.length)
		.map(({ rank: _, ...w }) => w);
}

/** The threads on the way from main to the end: they are always drawn. */
function wayOf(p: AnrProcess): Set<number> {
	const way = new Set<number>();
	for (let at = p.main; at !== null && !way.has(at); at = holderOf(p, at)) way.add(at);
	return way;
}

/** Waiting threads and the holders, first on main's path, then by number of waiting threads. */
function waitersOf(p: AnrProcess, w: Wait): Map<number, number[]> {
	const way = wayOf(p);
	const out = new Map<number, number[]>();
	const ring = new Set(w.deadlock ? w.ring : []);
	for (const i of w.threads) {
		if (ring.has(i) || !p.threads[i].wants) continue;
		const to = holderOf(p, i) ?? -1;
		const list = out.get(to);
		if (list) list.push(i);
		else out.set(to, [i]);
	}
	const weight = (i: number) => (way.has(i) ? Infinity : p.threads[i].victims ?? 0);
	for (const list of out.values()) list.sort((a, b) => (weight(a) === weight(b) ? a - b : weight(b) - weight(a)));
	return out;
}

const box = (kind: Box['kind'], more: Partial<Box> = {}): Box => ({ kind, thread: -1, more: 0, ring: false, column: 0, row: 0, ...more });

class Drawing {
	boxes: Box[] = [];
	arrows: Arrow[] = [];
	private kids: number[][] = [];

	constructor(private p: AnrProcess, private waiters: Map<number, number[]>) {}

	put(b: Box, to?: number): number {
		const at = this.boxes.push(b) - 1;
		this.kids.push([]);
		if (to !== undefined) {
			b.column = this.boxes[to].column + 1;
			this.kids[to].push(at);
			this.arrows.push({ from: at, to, lock: b.kind === 'thread' ? this.p.threads[b.thread].wants ?? null : null, ring: false });
		}
		return at;
	}

	/** Adds threads that wait for drawn ones, breadth first, while there is space. */
	grow(): void {
		for (let at = 0; at < this.boxes.length; at++) {
			const b = this.boxes[at];
			if (b.kind === 'more') continue;
			const all = this.waiters.get(b.kind === 'gone' ? -1 : b.thread) ?? [];
			const room = Math.max(0, Math.min(WAITERS, MOST - this.boxes.length));
			const shown = all.length <= room ? all : all.slice(0, Math.max(0, room - 1));
			for (const i of shown) this.put(box('thread', { thread: i }), at);
			const more = all.slice(shown.length).reduce((n, i) => n + 1 + (this.p.threads[i].victims ?? 0), 0);
			if (more > 0) this.put(box('more', { more }), at);
		}
	}

	/** Assigns rows: the first thread that waits for another is on that one's row.  Returns the next free row. */
	lay(at: number, row: number): number {
		let next = row;
		this.boxes[at].row = row;
		for (const kid of this.kids[at]) next = this.lay(kid, next);
		return Math.max(next, row + 1);
	}
}

/** The threads of a deadlock below each other, and the arrow back to the first. */
function ringOf(d: Drawing, p: AnrProcess, ring: number[]): number[] {
	const shown = ring.length <= RING ? ring : ring.slice(0, RING - 1);
	const roots = shown.map((thread) => d.put(box('thread', { thread, ring: true })));
	if (shown.length < ring.length) roots.push(d.put(box('more', { more: ring.length - shown.length, ring: true })));
	roots.forEach((from, i) => {
		const b = d.boxes[from];
		d.arrows.push({ from, to: roots[(i + 1) % roots.length], lock: b.kind === 'thread' ? p.threads[b.thread].wants ?? null : null, ring: true });
	});
	return roots;
}

export function pictureOf(p: AnrProcess, w: Wait): Picture {
	const d = new Drawing(p, waitersOf(p, w));
	const roots = w.deadlock ? ringOf(d, p, w.ring) : [d.put(w.gone ? box('gone') : box('thread', { thread: w.ring[0] }))];
	d.grow();
	let rows = 0;
	for (const r of roots) rows = d.lay(r, rows);
	const columns = Math.max(...d.boxes.map((b) => b.column)) + 1;
	for (const b of d.boxes) b.column = columns - 1 - b.column;
	return { boxes: d.boxes, arrows: d.arrows, columns, rows, hidden: w.threads.length - d.boxes.filter((b) => b.kind === 'thread').length };
}

/** A box of the folded picture: its row from the top, and how far it is indented. */
export interface Folded { row: number; level: number }

/** The picture as one column, for narrow windows: threads above those that they wait for. Threads that wait for the same one are indented; a single one is not, so
 *  that a chain does not grow sideways. A ring is not indented, because its arrows run along the left edge. */
export function folded(q: Picture): Folded[] {
	const kids: number[][] = q.boxes.map(() => []);
	for (const a of q.arrows) if (!a.ring) kids[a.to].push(a.from);
	const out = q.boxes.map((): Folded => ({ row: 0, level: 0 }));
	let rows = 0;
	const lay = (at: number, level: number): void => {
		const deeper = kids[at].length > 1 || q.boxes[at].ring ? level + 1 : level;
		for (const kid of kids[at]) lay(kid, deeper);
		out[at] = { row: rows++, level };
	};
	const waiting = new Set(q.arrows.filter((a) => !a.ring).map((a) => a.from));
	q.boxes.forEach((_, i) => !waiting.has(i) && lay(i, 0));
	return out;
}
