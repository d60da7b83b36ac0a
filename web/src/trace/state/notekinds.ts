// What kinds of notes are called, and in which order kinds and notes are shown.
import type { Note } from '../../api/api';
import { bytes, count, PERCENT } from '../../i18n/format';
import { tr } from '../../i18n/strings/trace';

const TITLES: Record<string, string> = {
	instant: tr('Marks'), async: tr('Spans'), counter: tr('Counters'), state: tr('Thread states'), wakeup: tr('Wake-ups'), contention: tr('Lock waits'), wait: 'Object.wait',
	notify: 'notify', park: tr('Parked'), unpark: tr('Unparked'), thread_created: tr('Thread starts'), gc: tr('Collections'), class_load: tr('Class loading'), io: tr('File access'),
	binder: tr('Binder calls'), render: tr('Rendering'), message: tr('Messages'), anr: 'ANR', sample: tr('Samples'), merged: tr('Merged calls'), section: tr('Sections'),
	process: tr('Processes'), unroll: tr('Unwound by exceptions'), flow: tr('Flows'), frame: tr('Frames'),
};

/** What people look for first comes first. */
const FIRST = ['anr', 'contention', 'io', 'gc', 'binder', 'wait', 'park', 'message', 'render', 'class_load'];

export function kindTitle(kind: string): string {
	return TITLES[kind] ?? kind.replaceAll('_', ' ');
}

const FRAMES: Record<string, string> = {
	'expected surface': tr('Expected frames'), 'actual surface': tr('Actual frames'), 'expected display': tr('Expected display frames'), 'actual display': tr('Actual display frames'),
};

export const FRAME_TRACKS = Object.keys(FRAMES);

/** How actual frames were shown, by rising weight. */
export const OUTCOMES: Record<string, string> = {
	on_time: tr('on time'), queued: tr('late: queued'), dropped: tr('dropped'),
	late_other: tr('late: other cause'), late_app: tr('late: app'),
};
const OUTCOME_RANK = Object.keys(OUTCOMES);

/** The title of a track, or of the sum of its events. */
export const trackTitle = (kind: string, name: string): string => FRAMES[name] ?? (name ? `${kindTitle(kind)}: ${name}` : kindTitle(kind));

/** Every thread of a machine has states, so their sums over all threads are of little use. */
export function ofOneThread(kind: string): boolean {
	return kind === 'state' || kind === 'section';
}

export function kindsInOrder(kinds: Record<string, number>): string[] {
	const rank = (k: string) => (FIRST.includes(k) ? FIRST.indexOf(k) : FIRST.length);
	return Object.keys(kinds).sort((a, b) => rank(a) - rank(b) || kinds[b] - kinds[a] || (a < b ? -1 : 1));
}

/** Frames that were on time, and expected ones, are not. */
const late = (n: Note) => Math.max(0, OUTCOME_RANK.indexOf(n.outcome ?? ''));

/** Thread states and counter values are continuous, so they are not listed among other events. */
const always = (n: Note) => Number(n.kind === 'state' || n.kind === 'counter');

/** Late frames first, those because of the app before others; then by duration if they have one, otherwise by time; states and values of counters last. */
export function inOrder(notes: Note[]): Note[] {
	return notes.some((n) => always(n) || (n.dur_ns ?? 0) > 0) ? [...notes].sort((a, b) => always(a) - always(b) || late(b) - late(a) || (b.dur_ns ?? -1) - (a.dur_ns ?? -1) || a.ts_ns - b.ts_ns) : notes;
}

/** The part of a note within the trace's time: a system trace may begin earlier and end later. */
export function within({ ts_ns, dur_ns }: Pick<Note, 'ts_ns' | 'dur_ns'>, start: number, end: number): { ts_ns: number; dur_ns: number | null } {
	const from = Math.max(start, ts_ns);
	return { ts_ns: from, dur_ns: dur_ns === null ? null : Math.max(0, Math.min(end, ts_ns + dur_ns) - from) };
}

/** A time range that shows the note with its surroundings. */
export function around(n: Pick<Note, 'ts_ns' | 'dur_ns'>, end: number, start = 0): [number, number] {
	const span = Math.max((n.dur_ns ?? 0) * 3, 1e6);
	const from = Math.max(start, n.ts_ns + (n.dur_ns ?? 0) / 2 - span / 2);
	return [Math.round(from), Math.round(Math.max(from + 1, Math.min(end, from + span)))];
}

const UNIT = /(?:^|[_\s.([-])(bytes|kb|mb|[mun]s|fps|[km]?hz|percent|m[av]|ua)[)\]]?$/i;
const SIZES: Record<string, number> = { bytes: 1, kb: 1024, mb: 1048576 };

/** The value of a counter, in the unit with which its name ends. */
export function counterValue(name: string, value: number): string {
	const unit = UNIT.exec(name)?.[1] ?? '';
	const size = SIZES[unit.toLowerCase()];
	if (size && value >= 0) return bytes(value * size);
	const text = Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(6)));
	return !unit || size ? text : unit.toLowerCase() === 'percent' ? `${text}${PERCENT}` : `${text} ${unit}`;
}
