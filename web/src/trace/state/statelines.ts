// Time in each state and wait, by thread: sums of notes as lines of a table.
import type { NoteSum, Thread } from '../../api/api';
import { tr } from '../../i18n/strings/trace';

export const STATES = ['running', 'runnable', 'blocked', 'sleeping', 'stopped', 'dead'];
export const STATE_NAMES = [tr('running'), tr('runnable'), tr('blocked'), tr('sleeping'), tr('stopped'), tr('dead')];

/** Kinds other than states that occupy time of a thread. */
export const WAITS = ['contention', 'wait', 'park', 'io', 'binder', 'gc'];

/** Does the trace have states of its threads? */
export const hasStates = (sums: NoteSum[]) => sums.some((s) => s.kind === 'state' || WAITS.includes(s.kind));

export interface Line {
	thread: Thread;
	states: number[]; // as STATES
	waits: number[]; // as WAITS
	known: number; // all states together
}

export function linesOf(sums: NoteSum[], threads: Thread[]): Line[] {
	return threads.flatMap((thread) => {
		const own = sums.filter((s) => s.tid === thread.tid);
		const states = STATES.map((name) => own.filter((s) => s.kind === 'state' && s.text === name).reduce((n, s) => n + s.dur_ns, 0));
		const waits = WAITS.map((kind) => own.filter((s) => s.kind === kind).reduce((n, s) => n + s.dur_ns, 0));
		const known = states.reduce((a, b) => a + b, 0);
		return known > 0 || waits.some((w) => w > 0) ? [{ thread, states, waits, known }] : [];
	});
}
