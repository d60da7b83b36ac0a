// Describes the source of a thread's calls, so that sample counts are not read as call counts.
import type { Thread } from './api';
import { duration } from '../i18n/format';
import { tr } from '../i18n/strings/frame';

export type Source = 'calls' | 'samples' | 'counts';

export interface Words {
	one: string; many: string; // the counted unit
	head: string; // of a column of such numbers
	hint: string; // the kind of the calls, '' for recorded calls
	of: (n: number) => string; // the number with its unit
	unit?: number; // for calls without times: durations are multiples of this
}

const WORDS: Record<Source | 'snapshot' | 'mixed', Words> = {
	calls: { one: tr('call'), many: tr('calls'), head: tr('Calls'), hint: '', of: (n) => tr.many(n, '{n} call', '{n} calls') },
	samples: { one: tr('sample run'), many: tr('sample runs'), head: tr('Samples'),
		hint: tr('Runs of consecutive samples with the method on the stack. The number of calls is not known.'),
		of: (n) => tr.many(n, '{n} sampled stretch', '{n} sample runs') },
	counts: { one: tr('counted call'), many: tr('counted calls'), head: tr('Calls'),
		hint: tr('The trace has only counts: widths are numbers of calls, not times.'),
		of: (n) => tr.many(n, '{n} counted call', '{n} counted calls'), unit: 1 },
	snapshot: { one: tr('stack'), many: tr('stacks'), head: tr('Stacks'),
		hint: tr('A snapshot has one stack per thread: widths are numbers of stacks, not times.'),
		of: (n) => tr.many(n, '{n} stack', '{n} stacks'), unit: 1_000_000 },
	mixed: { one: tr('call or sample'), many: tr('calls and samples'), head: tr('Calls, samples'),
		hint: tr('Some of these threads were sampled: for them, these are sample runs, not calls.'),
		of: (n) => tr.many(n, '{n} call or sample', '{n} calls and samples') },
};

/** The unit for these threads together. */
export function wordsOf(threads: Thread[]): Words {
	const kindOf = (t: Thread | undefined) => (t?.source === 'samples' && t.interval_ns < 0 ? 'snapshot' : t?.source ?? 'calls');
	const first = kindOf(threads[0]);
	return WORDS[threads.every((t) => kindOf(t) === first) ? first : 'mixed'];
}

export const many = (n: number, w: Words) => w.of(n);

// Of these every call was seen; of all others some may have been sampled or only counted.
const ALL_SEEN = ['btrace2', 'rhea1', 'rhea_atrace', 'atrace', 'systrace', 'chrome'];

/** The unit of a trace's number of slices, if its format records it. */
export const headOf = (format: string) => (ALL_SEEN.includes(format) ? WORDS.calls.head : WORDS.mixed.head);

/** The remark next to a thread's name; '' if every call was recorded. */
export function mark(t: Thread): string {
	if (t.source === 'counts') return tr('counts, no times');
	if (t.source !== 'samples') return '';
	if (t.interval_ns < 0) return tr('snapshot, no times');
	return t.interval_ns > 0 ? tr('samples, every {interval_ns}', { interval_ns: duration(t.interval_ns) }) : tr('samples');
}
