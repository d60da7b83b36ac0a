// The threads of the timeline and their order: filtered, sorted, grouped by name, pinned and hidden, by the state in the address.
import type { NoteSum, Thread } from '../../api/api';

/** Orders of threads; '' is main first, then by activity. */
export const SORTS = ['', 'busy', 'calls', 'name', 'start', 'tid'] as const;
export type Sort = (typeof SORTS)[number];

export interface Arrangement {
	find: string;
	sort: Sort;
	grouped: boolean;
	pinned: number[]; // first, in this order
	hidden: ReadonlySet<number>;
}

/** The common form of the names of a pool's threads: "pool-3-thread-12" and "pool-3-thread-7" are "pool-#-thread-#". */
export const stemOf = (name: string): string => name.replace(/\d+/g, '#');

const COMPARE: Record<Exclude<Sort, ''>, (a: Thread, b: Thread) => number> = {
	busy: (a, b) => b.running_ns - a.running_ns,
	calls: (a, b) => b.slices - a.slices,
	name: (a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }),
	start: (a, b) => (a.slices ? a.start_ns : Infinity) - (b.slices ? b.start_ns : Infinity) || 0,
	tid: (a, b) => a.tid - b.tid,
};

const fits = (t: Thread, find: string) => !find || `${t.name} ${t.tid}`.toLowerCase().includes(find.toLowerCase());

/** Threads with similar names below one head, at the position of the first; others are listed alone. */
function families(threads: Thread[]): Thread[] {
	const of = new Map<string, Thread[]>();
	for (const t of threads) of.set(stemOf(t.name), [...(of.get(stemOf(t.name)) ?? []), t]);
	return [...of].flatMap(([stem, list]) => (list.length < 2 || !stem ? list.map((t) => ({ ...t, process: undefined, family: '' })) : list.map((t) => ({ ...t, process: undefined, family: stem }))));
}

/** The listed threads, in their usual order. `shown` is listed also if the filter excludes it. */
export function arranged(threads: Thread[], a: Arrangement, shown: number | null): Thread[] {
	const listed = threads.filter((t) => t.tid === shown || (fits(t, a.find) && (!a.hidden.has(t.tid) || a.pinned.includes(t.tid))));
	const sorted = a.sort ? [...listed].sort((x, y) => COMPARE[a.sort as Exclude<Sort, ''>](x, y) || x.tid - y.tid) : listed;
	const rest = sorted.filter((t) => !a.pinned.includes(t.tid));
	const pinned = a.pinned.flatMap((tid) => sorted.filter((t) => t.tid === tid)).map((t) => ({ ...t, family: '', pinned: true }));
	return [...pinned, ...(a.grouped ? families(rest) : rest)];
}

export const nothingArranged = (a: Arrangement): boolean => !a.find && !a.sort && !a.grouped && a.pinned.length === 0 && a.hidden.size === 0;

/** A tid into a list of the address, or out of it. */
export function toggled(list: number[] | ReadonlySet<number>, tid: number): string | null {
	const set = new Set(list);
	if (!set.delete(tid)) set.add(tid);
	return [...set].join(',') || null;
}

/** Of several processes only the traced one has a main thread: `pid` (0 unknown), otherwise those with calls. */
export function mainOf(threads: Thread[], pid: number): Thread[] {
	const mains = threads.filter((t) => t.is_main);
	const known = pid > 0 && mains.some((t) => t.pid === pid);
	if (!known && mains.length < 2) return threads;
	const traced = new Set(known ? [pid] : threads.filter((t) => t.slices > 0).map((t) => t.pid));
	return threads.map((t) => (t.is_main && !traced.has(t.pid) ? { ...t, is_main: false } : t));
}

/** The running time of threads without calls comes from the scheduler. */
export function ranOf(threads: Thread[], sums: NoteSum[]): Thread[] {
	const ran = new Map<number | null, number>();
	for (const s of sums) if (s.kind === 'state' && s.text === 'running') ran.set(s.tid, (ran.get(s.tid) ?? 0) + s.dur_ns);
	return threads.map((t) => (t.slices === 0 && ran.has(t.tid) ? { ...t, running_ns: ran.get(t.tid)! } : t));
}
