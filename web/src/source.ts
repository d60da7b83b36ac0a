// Where the calls of a thread come from, in words: nobody shall read a count of samples as one of calls.
import type { Thread } from './api';
import { count, duration } from './format';

export type Source = 'calls' | 'samples' | 'counts';

export interface Words {
	one: string; many: string; // of what a number counts
	head: string; // of a column of such numbers
	hint: string; // what they are, '' for calls
}

const WORDS: Record<Source | 'mixed', Words> = {
	calls: { one: 'call', many: 'calls', head: 'Calls', hint: '' },
	samples: { one: 'sampled stretch', many: 'sampled stretches', head: 'Samples',
		hint: 'Stretches of samples in a row that have it on the stack. How often it was called is not known.' },
	counts: { one: 'counted call', many: 'counted calls', head: 'Calls',
		hint: 'Only how often was recorded: lengths are numbers of calls, not times.' },
	mixed: { one: 'call or sample', many: 'calls and samples', head: 'Calls, samples',
		hint: 'Some of these threads were sampled: for them these are stretches of samples, not calls.' },
};

/** Of what is shown of these threads together. */
export function wordsOf(threads: Thread[]): Words {
	const first = threads[0]?.source ?? 'calls';
	return WORDS[threads.every((t) => t.source === first) ? first : 'mixed'];
}

export const many = (n: number, w: Words) => `${count(n)} ${n === 1 ? w.one : w.many}`;

// Of these every call was seen; of all others some may have been sampled or only counted.
const ALL_SEEN = ['btrace2', 'rhea1', 'rhea_atrace', 'atrace', 'systrace', 'chrome'];

/** What the number of a trace's slices counts, as far as its format tells. */
export const headOf = (format: string) => (ALL_SEEN.includes(format) ? WORDS.calls.head : WORDS.mixed.head);

/** What stands beside the name of a thread; '' when every call was seen. */
export function mark(t: Thread): string {
	if (t.source === 'counts') return 'counts, no times';
	if (t.source !== 'samples') return '';
	return t.interval_ns > 0 ? `samples, every ${duration(t.interval_ns)}` : 'samples';
}
