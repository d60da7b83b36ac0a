// The event that is selected, as the address holds it: "kind.tid.time", without a tid where it concerns every thread.
// Optionally followed by ".duration", because an expected and an actual frame may begin at the same time.
import { api, type Note } from '../../api/api';
import type { Spot } from './flows';
import type { Lane } from './lanes';

export interface EventId {
	kind: string;
	tid: number | null;
	ts: number;
	dur?: number;
}

export function parseEvent(text: string): EventId | null {
	const m = /^([a-z_]{1,32})\.(\d{0,16})\.(\d{1,16})(?:\.(\d{1,16}))?$/.exec(text);
	return m && { kind: m[1], tid: m[2] === '' ? null : Number(m[2]), ts: Number(m[3]), ...(m[4] && { dur: Number(m[4]) }) };
}

export const formatEvent = ({ kind, tid, ts, dur }: EventId): string => [kind, tid, ts, ...(dur ? [dur] : [])].join('.');

export const idOf = (n: Note): EventId => ({ kind: n.kind, tid: n.tid, ts: n.ts_ns, dur: n.dur_ns ?? 0 });

/** The event with all its details; null: no event of that kind begins at that time. */
export async function loadEvent(id: string, { kind, tid, ts, dur }: EventId, signal: AbortSignal): Promise<Note | null> {
	const { notes } = await api.notes(id, { kind, from: ts, to: ts + 1, thread: tid, limit: 2000 }, signal);
	const there = notes.filter((n) => n.ts_ns === ts && n.tid === tid);
	return there.find((n) => n.dur_ns === dur) ?? there[0] ?? null;
}

/** As an item of a lane. */
export function spotOf(n: Note): Spot {
	const dur = Math.max(0, n.dur_ns ?? 0);
	const name = n.kind === 'counter' ? n.text : n.kind === 'frame' ? `${n.detail?.timeline} ${n.detail?.of}` : '';
	const lane: Lane = { kind: n.kind, tid: n.tid, name, row: 0, outcome: n.outcome ?? '', tile: { from: n.ts_ns, to: n.ts_ns + dur + 1 }, n: 1, ts: Float64Array.of(n.ts_ns), dur: Float64Array.of(dur),
		text: [n.text], value: [n.value], notes: [1], low: [n.value], high: [n.value] };
	return { lane, i: 0 };
}
