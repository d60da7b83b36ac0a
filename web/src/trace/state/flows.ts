// Where a note leads to: who holds the lock that is waited for, who answers a call to another process, which thread was started,
// who woke one.
import { api, type Note, type Thread } from '../../api/api';
import type { Lane } from './lanes';
import { tr } from '../../i18n/strings/trace';

export interface End {
	tid: number;
	time: number;
}

export interface Flow {
	from: End;
	to: End;
	back: number | null; // when the resource was released
	label: string;
}

/** One note as an item of a lane. */
export interface Spot {
	lane: Lane;
	i: number;
}

/** Whether both represent the same note, from any tile. */
export const sameNote = (a: Spot, b: Spot): boolean => a.lane.ts[a.i] === b.lane.ts[b.i] && a.lane.dur[a.i] === b.lane.dur[b.i] && a.lane.text[a.i] === b.lane.text[b.i] && a.lane.kind === b.lane.kind;

/** Flows that are visible in the lane itself. */
export function flowOf(s: Spot, threads: Thread[]): Flow | null {
	const { lane, i } = s;
	const other = threads.find((t) => t.tid === lane.value[i]);
	if (lane.tid === null || lane.notes[i] !== 1 || !other || other.tid === lane.tid) return null;
	const from = { tid: lane.tid, time: lane.ts[i] };
	if (lane.kind === 'contention')
		return { from, to: { tid: other.tid, time: lane.ts[i] }, back: lane.ts[i] + lane.dur[i], label: tr('held by {tid}', { tid: other.name || other.tid }) };
	if (lane.kind === 'binder')
		return { from, to: { tid: other.tid, time: lane.ts[i] }, back: lane.ts[i] + lane.dur[i], label: tr('answered by {tid}', { tid: other.name || other.tid }) };
	if (lane.kind === 'thread_created')
		return { from, to: { tid: other.tid, time: Math.max(lane.ts[i], other.slices > 0 ? other.start_ns : 0) }, back: null, label: tr('starts {tid}', { tid: other.name || other.tid }) };
	if (lane.kind === 'flow')
		return { from, to: { tid: other.tid, time: lane.ts[i] + lane.dur[i] }, back: null, label: tr('handled by {tid}', { tid: other.name || other.tid }) };
	return null;
}

/** A thread that becomes runnable or running was woken by the thread with a wake-up at that time. */
export async function wakerOf(id: string, s: Spot, threads: Thread[], signal: AbortSignal): Promise<Flow | null> {
	const { lane, i } = s;
	if (lane.kind !== 'state' || lane.tid === null || lane.notes[i] !== 1 || !/^run/.test(lane.text[i])) return null;
	const at = lane.ts[i];
	const { notes } = await api.notes(id, { kind: 'wakeup', from: Math.max(0, at - 1000), to: at + 1000, limit: 1000 }, signal);
	const woke = (n: Note) => n.value === lane.tid && n.tid !== null && n.tid !== lane.tid;
	const n = notes.filter(woke).sort((a, b) => Math.abs(a.ts_ns - at) - Math.abs(b.ts_ns - at))[0];
	const by = n && threads.find((t) => t.tid === n.tid);
	return by ? { from: { tid: by.tid, time: n.ts_ns }, to: { tid: lane.tid, time: at }, back: null, label: tr('woken by {tid}', { tid: by.name || by.tid }) } : null;
}

/** The end that one is not at. */
export function otherEnd(f: Flow, tid: number): End {
	return f.from.tid === tid ? f.to : f.from;
}
