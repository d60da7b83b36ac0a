// The document "anr" of a trace, and questions about it.
import { tr } from '../i18n/strings/anr';

export interface AnrFrame {
	name: string; where?: string; kind?: 'native' | 'kernel'; inlined?: true; // into the frame below
	locks?: { how: 'locked' | 'wants' | 'waits' | 'sleeps'; id: string; type?: string }[];
}
interface AnrLock { id: string; type?: string }
export interface AnrWish extends AnrLock { holder_tid?: number; holder: number | null; named: boolean }
export interface AnrThread {
	name: string; track: number; tid?: number; sys_tid?: number; state: string; priority?: number; nice?: number;
	daemon?: boolean; attached?: boolean; victims?: number; channel?: string; sched_state?: string;
	run_ns?: number; queue_ns?: number; wants?: AnrWish; held: AnrLock[]; top: AnrFrame | null;
	frames: AnrFrame[]; more_frames?: number;
}
export interface AnrStep {
	thread: number; does: string; frame: AnrFrame | null; app_frame: AnrFrame | null; wants?: AnrWish; owner_frame?: AnrFrame | null;
}
export interface AnrProcess {
	pid: number | null; at_ns: number; facts: Record<string, string>; verdict: string; end: string; cluster: string;
	main: number | null; culprit: number | null; main_frame: AnrFrame | null; chain: AnrStep[];
	cycles: { certain: boolean; size: number; threads: AnrStep[] }[]; threads: AnrThread[]; threads_left_out: number;
}
export interface Anr {
	version: number; verdict: string; end: string; kind: string; cluster: string; waited_ms: number | null; reason: string;
	sampled: boolean; blamed: number | null; facts: Record<string, string>; loads: string[]; processes: AnrProcess[];
}

/** A thread's activity, before the name of a method. */
const DOES: Record<string, string> = {
	blocked: tr('waits in'), idle: tr('waits for its next message in'), running: 'runs', native: 'runs', io: tr('reads or writes in'),
	binder: tr('waits for another process in'), sleeping: tr('sleeps in'), waiting: tr('waits in'), gc: tr('waits for the garbage collector in'),
	lock_unknown: tr('waits for a lock in'), no_stack: tr('has no stack'), no_cpu: tr('waits for a CPU in'),
};

export function does(step: AnrStep): string {
	return DOES[step.does] ?? tr('is in');
}

export function threadName(t: AnrThread | undefined): string {
	if (!t) return tr('an unknown thread');
	return t.name || tr('thread {track}', { track: t.tid ?? t.sys_tid ?? t.track });
}

export function stateOf(t: AnrThread): string {
	return t.state || (t.attached === false ? tr('not attached') : 'unknown');
}

/** The states of a process's threads and how many are in each, the most frequent first. */
export function statesOf(p: AnrProcess): [string, number][] {
	const n = new Map<string, number>();
	for (const t of p.threads) n.set(stateOf(t), (n.get(stateOf(t)) ?? 0) + 1);
	return [...n].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

/** "a.b.Store" → "a lock of a.b.Store", "java.lang.Class<a.B>" → "the class lock of a.B". */
export function lockName(lock: AnrLock): string {
	const cls = /^java\.lang\.Class<(.*)>$/.exec(lock.type ?? '');
	if (cls) return tr('the class lock of {cls}', { cls: cls[1] });
	return lock.type ? tr('a lock of {type}', { type: lock.type }) : tr('a lock of an unknown class');
}

/** Indexes of the threads in reading order: main, its chain, deadlocks, threads that wait for a lock, threads that
 *  others wait for, the rest as in the dump. */
export function order(p: AnrProcess): number[] {
	const rank = new Map<number, number>();
	const put = (i: number, r: number) => rank.set(i, Math.min(r, rank.get(i) ?? r));
	if (p.main !== null) put(p.main, 0);
	p.chain.forEach((s) => put(s.thread, 1));
	p.cycles.forEach((c) => c.threads.forEach((s) => put(s.thread, 2)));
	p.threads.forEach((t, i) => put(i, t.wants ? 3 : t.victims ? 4 : t.held.length ? 5 : 6));
	return p.threads.map((_, i) => i).sort((a, b) => rank.get(a)! - rank.get(b)! || a - b);
}

/** True if each word is in the thread's row or in its stack. */
export function shows(t: AnrThread, filter: string): boolean {
	const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
	if (words.length === 0) return true;
	const text = [threadName(t), t.state, t.tid, t.sys_tid, t.wants?.type, t.wants?.id, t.channel,
		...t.held.flatMap((l) => [l.type, l.id]), ...t.frames.map((f) => f.name)].join('\n').toLowerCase();
	return words.every((w) => text.includes(w));
}

/** A stack as text in the form of a dump, for copying. */
export function stackText(t: AnrThread): string {
	const head = `"${threadName(t)}" ${t.tid ? `tid=${t.tid} ` : ''}${t.state}`;
	const lines = t.frames.flatMap((f) => [tr('  at {name}{where}', { name: f.name, where: f.where ? `(${f.where})` : '' }),
		...(f.locks ?? []).map((l) => `  - ${HOW[l.how]} <${l.id}>${l.type ? ` (a ${l.type})` : ''}`)]);
	return [head, ...lines].join('\n');
}

export const HOW: Record<string, string> = { locked: tr('locked'), wants: tr('waiting to lock'), waits: tr('waiting on'), sleeps: tr('sleeping on') };

/** The event that the system waited for, by the kind of ANR. */
export const CAUSED: Record<string, string> = { input: tr('input'), broadcast: tr('broadcast'), foreground_service: tr('foreground service'), service: tr('service'), provider: tr('content provider'), job: tr('job'), watchdog: tr('watchdog') };
