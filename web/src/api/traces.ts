// Row texts of a trace list, and the parameters of its address.
import type { Trace } from './api';
import { count, duration, harmless } from '../i18n/format';
import { tr } from '../i18n/strings/frame';

/** Its title, otherwise its app, version and scenario. */
export function namesOf(t: Trace): string[] {
	const names = [t.meta.app, t.meta.version_name, t.meta.scenario].filter(Boolean);
	return t.title || !names.length ? [t.title || t.id] : names;
}

export const nameOf = (t: Trace): string => harmless(namesOf(t).join(' '));

/** The device with its system, which a trace states as Android's version or by name. */
export const deviceOf = ({ device, os }: Trace['meta']) => [device, os && (/^\d/.test(os) ? `Android ${os}` : os)].filter(Boolean).join(', ');

/** Its duration, if it has times: the lengths of counts and snapshots mean nothing. */
export const lengthOf = (s: NonNullable<Trace['summary']>) => (!s.timed ? '–' : duration(s.duration_ns));

/** The server counts up to a limit: beyond it, "10,000+". */
export const totalOf = (v: { total: number; total_is_capped: boolean }) => `${count(v.total)}${v.total_is_capped ? '+' : ''}`;

/** Parameters of the address that select and order traces, as stored in a saved filter. */
export const FILTERS = ['app', 'version_name', 'scenario', 'device', 'state', 'tag', 'os', 'build_id', 'process', 'version_code', 'version_code_min', 'version_code_max', 'abi',
	'session_id', 'label', 'pinned', 'since', 'until', 'recorded_since', 'recorded_until', 'q'] as const;
export const KEPT = [...FILTERS, 'sort', 'order', 'cols'] as const;

/** The kept part of an address, in an order that makes equal lists equal texts. */
export function keptOf(q: URLSearchParams): string {
	const out = new URLSearchParams();
	for (const k of KEPT) for (const v of q.getAll(k).sort()) if (v) out.append(k, v);
	return out.toString();
}

/** Changes that turn any address of the list into the saved one; unknown ones are omitted. */
export function changesTo(saved: string): Record<string, string[] | null> {
	const q = new URLSearchParams(saved);
	return { ...Object.fromEntries(KEPT.map((k) => [k, q.getAll(k)])), cursor: null, n: null };
}

/** Unix ms of a day's start in local time, or of the next day's: a date field as `since` or `until`. */
export function dayStart(date: string, after = 0): number | null {
	const m = /^(\d{4})-(\d\d)-(\d\d)$/.exec(date);
	return m ? new Date(Number(m[1]), Number(m[2]) - 1, Number(m[3]) + after).getTime() : null;
}

/** The inverse: a date field's text. */
export function dateOf(ms: string, after = 0): string {
	if (!/^\d{1,15}$/.test(ms)) return '';
	const d = new Date(Number(ms));
	d.setDate(d.getDate() - after);
	const two = (n: number) => String(n).padStart(2, '0');
	return `${String(d.getFullYear()).padStart(4, '0')}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
}

const SEVERAL = {
	trace: (n: number) => tr.many(n, '{n} trace', '{n} traces'),
	build: (n: number) => tr.many(n, '{n} build', '{n} builds'),
	day: (n: number) => tr.many(n, '{n} day', '{n} days'),
	annotation: (n: number) => tr.many(n, '{n} annotation', '{n} annotations'),
	upload: (n: number) => tr.many(n, '{n} upload', '{n} uploads'),
	item: (n: number) => tr.many(n, '{n} item', '{n} items'),
	method: (n: number) => tr.many(n, '{n} method', '{n} methods'),
};

const STATES: Record<string, string> = { received: tr('received'), queued: tr('queued'), decoding: tr('decoding'), ready: tr('ready'), failed: tr('failed'), archived: tr('archived') };

/** The name of a trace's state. */
export function stateName(state: string): string {
	return STATES[state] ?? state;
}

/** "3 traces", "1 trace". */
export function several(n: number, one: keyof typeof SEVERAL): string {
	return SEVERAL[one](n);
}

/** Sentences that describe what is deleted with these traces. */
export function loss(list: Trace[]): string[] {
	const notes = list.reduce((n, t) => n + t.annotations, 0);
	const pinned = list.filter((t) => t.pinned).length;
	const out = [list.length === 1 ? tr('Its upload and decoded data are deleted permanently. Links to it stop working.') : tr('Their uploads and decoded data are deleted permanently. Links to them stop working.')];
	if (notes > 0) out.push(tr.many(notes, '{n} annotation is deleted, too.', '{n} annotations are deleted, too.'));
	if (pinned > 0) out.push(list.length === 1 ? tr('It is pinned.') : tr.many(pinned, '{n} of them is pinned.', '{n} of them are pinned.'));
	out.push(tr('Builds and their mappings are kept.'));
	return out;
}

/** Milliseconds before the next request: longer each time, up to ten seconds. */
export function backOff(turn: number): number {
	return Math.min(10_000, Math.round(1000 * 1.4 ** turn));
}

/** Names of versions, the newest first; names that do not begin like a version (a build of CI) come last. */
export function newestFirst(versions: string[]): string[] {
	const like = (v: string) => /^[vV]?\d/.test(v);
	return versions.filter(Boolean).sort((x, y) => Number(like(y)) - Number(like(x)) || y.localeCompare(x, 'en', { numeric: true }));
}
