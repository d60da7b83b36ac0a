// ANR groups of the server, and their texts.
import { COMMA, count } from '../i18n/format';
import { tr } from '../i18n/strings/anrs';

export interface Held { class: string; blocked_method: string; blocking_method: string }
export interface Cause {
	frames: string[]; locks: Held[]; binder?: { interface: string; method: string }; consumer?: string;
	path?: { frames: string[]; ns: number; window_ns: number };
}
export interface Group {
	key: string; kind: string; name: string; title: string; verdict: string; cause: Cause;
	count: number; users: number; versions: number; devices: number; first_ms: number; last_ms: number; last_version: string;
	status: 'open' | 'acknowledged' | 'fixed' | 'returned'; fixed_in: string; owner: string; note: string; muted_until_ms: number;
	trend: { day_ms: number; count: number; users: number }[];
}
/** `traces`: traces with times by the same filter; null: not known. */
export interface Groups { anrs: number; users: number; pending: number; traces: number | null; rules_version: number; total: number; groups: Group[] }
export interface Slice { value: string; count: number; users: number }
export interface Exemplar { trace: string; exists: boolean; recorded_ms: number; version_name: string; device: string; os: string; verdict: string }
export interface GroupDetail extends Groups, Group { by_version: (Slice & { traces: number | null })[]; by_device: Slice[]; by_os: Slice[]; exemplars: Exemplar[] }

export interface Rule { action: 'skip' | 'merge' | 'name'; name?: string; frame?: string; lock?: string; kind?: string; groups?: string[]; enabled?: boolean }
export interface Rules { version: number; author: string; created_ms: number; rules: Rule[]; versions: { version: number; author: string; created_ms: number }[] }

/** The beginning of a trace's id, which is its time in milliseconds; the search finds traces by it. Ids of the same millisecond differ in their last characters only. */
export const shortOf = (id: string) => id.slice(0, 10);

/** In the order of the causes' weight; what each is called. */
export const KINDS: Record<string, string> = {
	deadlock: tr('deadlock'), lock: tr('lock'), path: tr('long work'), io: 'IO', binder: 'binder', no_cpu: tr('no CPU'), gc: tr('collection'), sleep: tr('sleep'), wait: tr('wait'), run: tr('running'), idle: tr('idle'), unknown: tr('unknown'),
};

/** Reports per 1,000 traces with times: "3.2"; undefined without such traces. */
export function rate(reports: number, traces: number | null | undefined): string | undefined {
	if (!traces) return undefined;
	const per = (reports / traces) * 1000;
	return per > 0 && per < 0.1 ? '<0.1' : per < 9.95 ? per.toFixed(1).replace('.0', '') : count(Math.round(per));
}

export const RATES = tr('Rates are comparable between versions whose devices record equally often. They are not shares of sessions.');

export const ACTS: Record<Rule['action'], string> = { skip: tr('Do not blame'), merge: tr('Merge'), name: tr('Name') };

/** A sentence that describes a rule. */
export function describe(r: Rule): string {
	if (r.action === 'skip') return tr('Frames with {frame} are not blamed.', { frame: r.frame });
	const which = [r.kind && tr('of kind {kind}', { kind: KINDS[r.kind] ?? r.kind }), r.frame && tr('with a frame {frame}', { frame: r.frame }), r.lock && tr('with a lock of {lock}', { lock: r.lock }), r.groups && tr('of {groups}', { groups: r.groups.join(', ') })]
		.filter(Boolean).join(COMMA);
	return r.action === 'merge' ? tr('ANRs {which} are one group.', { which }) : tr('Groups {which} get this name.', { which });
}
