// The columns of the table of methods: which there are, which are shown, rows as text.
import type { Method } from '../../api/api';
import { count, duration, withoutParameters } from '../../i18n/format';
import type { Words } from '../../api/source';
import { tr } from '../../i18n/strings/trace';

export interface Column {
	key: 'count' | 'running_ns' | 'self_ns' | 'total_ns' | 'sum_ns' | 'max_ns' | 'p95_ns' | 'cpu_ns' | 'waiting_ns';
	title: string;
	hint: string;
	cpu?: boolean; // only where a CPU clock was recorded
	rare?: boolean; // not shown at first
}

export const COLUMNS: Column[] = [
	{ key: 'count', title: tr('Calls'), hint: '' },
	{ key: 'running_ns', title: tr('Running'), hint: tr('Self time, without methods that only wait: for messages, locks, timers') },
	{ key: 'self_ns', title: tr('Self'), hint: tr('Wall time without callees') },
	{ key: 'total_ns', title: tr('Total'), hint: tr('Wall time with the method on the stack; recursive calls count once') },
	{ key: 'sum_ns', title: tr('Wall'), hint: tr('Wall time of all its calls, including nested ones'), rare: true },
	{ key: 'cpu_ns', title: 'CPU', hint: tr('CPU time with the method on the stack; recursive calls count once'), cpu: true },
	{ key: 'waiting_ns', title: tr('Waiting'), hint: tr('Total time spent off the CPU'), cpu: true },
	{ key: 'p95_ns', title: 'p95', hint: tr('95 % of its calls take at most this, within 1.6 %') },
	{ key: 'max_ns', title: tr('Longest'), hint: tr('Its longest call') },
];

/** The columns in the address; '' means the default. */
export function chosen(text: string, hasCpu: boolean): Column[] {
	const there = COLUMNS.filter((c) => !c.cpu || hasCpu);
	if (!text) return there.filter((c) => !c.rare);
	const keys = text.split(',');
	return there.filter((c) => keys.includes(c.key.replace('_ns', '')));
}

/** The address's value with one column added or removed; null: the default, 'none': no columns. */
export function withColumn(text: string, hasCpu: boolean, key: Column['key']): string | null {
	const now = chosen(text, hasCpu).map((c) => c.key);
	const then = now.includes(key) ? now.filter((k) => k !== key) : [...now, key];
	const first = chosen('', hasCpu).map((c) => c.key);
	if (then.length === first.length && first.every((k) => then.includes(k))) return null;
	return then.map((k) => k.replace('_ns', '')).join(',') || 'none';
}

/** Of calls without times: how many. */
export const UNTIMED = COLUMNS.filter((c) => c.key === 'self_ns' || c.key === 'total_ns');

export function cell(m: Method, c: Column, { unit }: Words): string {
	const v = m[c.key];
	return v === null ? '–' : c.key === 'count' ? count(v) : unit ? count(v / unit) : duration(v);
}

const titleOf = (c: Column, words: Words) => (c.key === 'count' ? words.many.replace(/\W+/g, '_') : words.unit ? c.key.slice(0, -3) : c.key);

/** Names and plain numbers, in nanoseconds, with tabs between. */
export function tsvOf(methods: Method[], columns: Column[], words: Words): string {
	return [['method', ...columns.map((c) => titleOf(c, words))].join('\t'),
		...methods.map((m) => [m.name, ...columns.map((c) => (words.unit ? m[c.key]! / words.unit : m[c.key] ?? ''))].join('\t'))].join('\n');
}

export function rowText(m: Method, columns: Column[], words: Words): string {
	return `${m.name}: ${columns.map((c) => `${c.key === 'count' ? words.head : c.title} ${cell(m, c, words)}`.toLowerCase().replace('cpu', 'CPU')).join(', ')}`;
}

/** The request parameters of a filter: text, or /expression/. */
export function filterOf(text: string): { q: string; regex: string | null } {
	const m = /^\/(.+)\/$/.exec(text);
	return m ? { q: m[1], regex: '1' } : { q: withoutParameters(text), regex: null }; // the server's names have no parameters
}
