// Layout of the timeline: groups from top to bottom, and their tracks.  Pixels are CSS pixels.
import type { NoteSum, Thread } from '../../api/api';
import { coarse } from '../../ui/narrow';
import { trackKey } from '../state/lanes';
import { FRAME_TRACKS } from '../state/notekinds';
import type { OpenSet } from '../state/opened';

export const ROW = 18;
export const OPEN_ROWS = 20; // of an open thread, unless it is shown in full
const CLOSED = coarse ? 40 : 30;
const TITLE = 66; // an open group is at least as high as the text of its head
const SPANS = 16;
const GAP = 2;
const STATES = 9;
const COUNTER = 34;
const COUNTERS_AT_FIRST = 4; // without calls
const COUNTERS_OVER_CALLS = 2; // more would push the threads out of view

/** Spans of a thread in separate lanes, in this order. */
export const SPAN_KINDS = ['contention', 'wait', 'park', 'io', 'binder', 'message', 'render', 'class_load', 'section', 'flow', 'thread_created'];
/** What concerns every thread. */
export const TRACE_KINDS = ['anr', 'gc', 'frame', 'async', 'instant'];

export interface Track {
	kind: string; // of notes
	name: string; // among those of its kind: a counter's, or a frame's
	tid: number | null;
	y: number; // in the list
	height: number;
	row: number; // height of a row: notes that overlap are on different ones
}

/** Of a trace with several, or threads with similar names; its threads follow it, unless it is closed. */
export interface Process {
	key: string; // in the address
	pid: number; // -1: threads with similar names
	name: string;
	threads: Thread[];
}

export interface Group {
	thread: Thread | null; // null: a process, or the whole trace
	process: Process | null;
	open: boolean;
	y: number;
	height: number;
	tracks: Track[];
	strip: { y: number; height: number } | null; // activity, while closed
	calls: { y: number; height: number; row: number; rows: number } | null;
	hidden: number; // counters that are not shown
}

export interface Layout {
	groups: Group[];
	height: number;
}

/** Which notes there are. */
export class Presence {
	private kinds = new Map<number | null, Set<string>>();
	readonly counters = new Map<number | null, string[]>();
	readonly trace: [kind: string, name: string][]; // tracks of the whole trace's group, counters apart

	/** rows: of tracks with more than one, see Tiles. */
	constructor(sums: NoteSum[], private rows: ReadonlyMap<string, number> = new Map()) {
		for (const s of sums) {
			if (!this.kinds.has(s.tid)) this.kinds.set(s.tid, new Set());
			this.kinds.get(s.tid)!.add(s.kind);
			if (s.kind === 'counter') this.counters.set(s.tid, [...(this.counters.get(s.tid) ?? []), s.text]);
		}
		const namesOf = (kind: string) => [...new Set(sums.filter((s) => s.kind === kind).map((s) => s.text))];
		this.trace = TRACE_KINDS.flatMap((k) => namesOf(k).sort((a, b) => FRAME_TRACKS.indexOf(a) - FRAME_TRACKS.indexOf(b)).map((name): [string, string] => [k, name]));
	}

	has(tid: number | null, kind: string): boolean {
		return this.kinds.get(tid)?.has(kind) ?? false;
	}

	/** Tracks below each other, from `y` on. */
	spans(list: [kind: string, name: string][], tid: number | null, y: number): Track[] {
		return list.map(([kind, name]) => {
			const height = (this.rows.get(trackKey(kind, tid, name)) ?? 1) * (SPANS + GAP) - GAP;
			y += height + GAP;
			return { kind, name, tid, y: y - height - GAP, height, row: SPANS };
		});
	}

	/** Kinds that some thread of these has. */
	of(kinds: string[]): string[] {
		return kinds.filter((k) => [...this.kinds.values()].some((s) => s.has(k)));
	}
}

/** Main first, then by activity; threads without calls last.  A sampled thread has a stack all the
 *  time, waiting or not: its activity is the number of changes of the stack.  Threads of one process follow its first. */
export function inOrder(threads: Thread[]): Thread[] {
	const rank = (t: Thread) => (t.slices === 0 ? 2 : t.is_main ? 0 : 1);
	const sampled = threads.some((t) => t.source === 'samples');
	const did = (t: Thread) => (sampled ? t.slices : t.running_ns);
	const all = [...threads].sort((a, b) => rank(a) - rank(b) || did(b) - did(a) || a.tid - b.tid);
	return processesOf(all).flatMap((p) => p.threads);
}

/** The name of a group with similar names, as the address has it: no comma, no number. */
const familyKey = (family: string) => `~${encodeURIComponent(family)}`;

/** Threads grouped by process or by similar names, both in the order of the threads; those of a trace with
 *  one process, and single ones, have no group. */
export function processesOf(threads: Thread[]): Process[] {
	const of = new Map<string, Process>();
	let last = '';
	for (const t of threads) {
		const alone = t.family === undefined ? t.process === undefined : t.family === '';
		const key = t.family ? familyKey(t.family) : !alone ? String(t.pid) : last.startsWith('=') ? last : `=${of.size}`;
		last = key;
		const p = of.get(key);
		if (p) p.threads.push(t);
		else of.set(key, { key, pid: alone || t.family ? -1 : t.pid, name: alone ? '' : t.family || (t.process ?? ''), threads: [t] });
	}
	return [...of.values()];
}

/** Where a track ends, and the next one begins. */
const below = (tracks: Track[], from: number): number => tracks.reduce((y, t) => Math.max(y, t.y + t.height + GAP), from);

function counters(names: string[], tid: number | null, from: number): Track[] {
	return names.map((name, i) => ({ kind: 'counter', name, tid, y: from + i * (COUNTER + 3), height: COUNTER, row: COUNTER }));
}

function traceGroup(p: Presence, y: number, all: boolean, calls: boolean): Group | null {
	const of = p.counters.get(null) ?? [];
	const shown = all ? of : !calls ? of.slice(0, COUNTERS_AT_FIRST) : of.length > COUNTERS_OVER_CALLS ? [] : of;
	const tracks = p.spans(p.trace, null, y + 4);
	tracks.push(...counters(shown, null, below(tracks, y + 4)));
	const hidden = of.length - shown.length;
	if (tracks.length + hidden === 0) return null;
	const last = tracks[tracks.length - 1];
	const bottom = (last ? last.y + last.height : y + 18) + 5 + (hidden ? (coarse ? 40 : 24) : 0);
	return { thread: null, process: null, open: true, y, height: Math.max(CLOSED, bottom - y), tracks, strip: null, calls: null, hidden };
}

function closedGroup(thread: Thread, p: Presence, y: number): Group {
	const states = p.has(thread.tid, 'state');
	const alone = thread.slices === 0; // states use all the space
	const tracks: Track[] = states ? [{ kind: 'state', name: '', tid: thread.tid, y: y + (alone ? 8 : 4), height: alone ? 14 : 6, row: 14 }] : [];
	return { thread, process: null, open: false, y, height: CLOSED, tracks, strip: alone ? null : states ? { y: y + 12, height: CLOSED - 16 } : { y: y + 6, height: CLOSED - 12 }, calls: null, hidden: 0 };
}

function openGroup(thread: Thread, p: Presence, y: number, opened: { row: number; full: boolean }): Group {
	const tracks: Track[] = [];
	let at = y + 4;
	if (p.has(thread.tid, 'state')) {
		tracks.push({ kind: 'state', name: '', tid: thread.tid, y: at, height: STATES, row: STATES });
		at += STATES + 3;
	}
	const own = p.spans(SPAN_KINDS.flatMap((k) => (p.has(thread.tid, k) ? [[k, '']] : [])), thread.tid, at);
	at = below(own, at);
	const count = counters(p.counters.get(thread.tid) ?? [], thread.tid, at);
	at += count.length * (COUNTER + 3);
	const rows = opened.full ? thread.max_depth : Math.min(thread.max_depth, OPEN_ROWS);
	const row = Math.max(0, Math.min(opened.row, thread.max_depth - rows));
	const calls = rows > 0 ? { y: at, height: rows * ROW, row, rows } : null;
	return { thread, process: null, open: true, y, height: Math.max(TITLE, at + rows * ROW + 6 - y), tracks: [...tracks, ...own, ...count], strip: null, calls, hidden: 0 };
}

function processGroup(process: Process, open: boolean, y: number): Group {
	const strip = open ? null : { y: y + 6, height: CLOSED - 12 };
	return { thread: null, process, open, y, height: CLOSED, tracks: [], strip, calls: null, hidden: 0 };
}

/** A head would repeat the text of its only thread. */
const isOneThread = ({ name, pid, threads }: Process) => threads.length === 1 && (name === threads[0].name || name === String(pid));

/** The groups of these threads, in their order, below their processes; closed: keys of processes. */
export function layoutOf(threads: Thread[], open: OpenSet, p: Presence, allCounters: boolean, closed: ReadonlySet<string> = new Set()): Layout {
	const groups: Group[] = [];
	let y = 0;
	const add = (g: Group | null): void => {
		if (!g) return;
		groups.push(g);
		y += g.height;
	};
	add(traceGroup(p, 0, allCounters, threads.some((t) => t.slices > 0)));
	for (const process of processesOf(threads)) {
		const named = process.name && !isOneThread(process);
		if (named) add(processGroup(process, !closed.has(process.key), y));
		if (named && closed.has(process.key)) continue;
		for (const t of process.threads) {
			const o = open.get(t.tid);
			add(o ? openGroup(t, p, y, o) : closedGroup(t, p, y));
		}
	}
	return { groups, height: y };
}

/** The groups that reach into [top, bottom): from, to. */
export function inView(l: Layout, top: number, bottom: number): [number, number] {
	let lo = 0;
	let hi = l.groups.length;
	while (lo < hi) {
		const mid = (lo + hi) >>> 1;
		if (l.groups[mid].y + l.groups[mid].height <= top) lo = mid + 1;
		else hi = mid;
	}
	let end = lo;
	while (end < l.groups.length && l.groups[end].y < bottom) end++;
	return [lo, end];
}

export function groupAt(l: Layout, y: number): Group | null {
	const [i, j] = inView(l, y, y + 1);
	return i < j ? l.groups[i] : null;
}

/** Where a row of a track is; of one that was loaded just now, the last that has a place. */
export const rowBox = (t: Track, row: number): { y: number; height: number } => ({ y: t.y + Math.min(row * (t.row + GAP), Math.max(0, t.height - t.row)), height: Math.min(t.row, t.height) });

export function trackAt(g: Group, y: number): Track | null {
	return g.tracks.find((t) => y >= t.y - 1 && y < t.y + t.height + 1) ?? null;
}

/** The mean of all threads with calls, raised so that the busiest cell is full. */
export function together(threads: Thread[]): number[] {
	const of = threads.filter((t) => t.slices > 0);
	const sum = (of[0]?.activity ?? []).map((_, i) => of.reduce((n, t) => n + (t.activity[i] ?? 0), 0));
	const most = Math.max(1, ...sum);
	return sum.map((v) => Math.round((255 * v) / most));
}
