// A project's rules of retention: what the server holds, and what it says of them in words.
import { bytes, count, when } from './format';
import { several } from './traces';

export interface Rules {
	max_age_days: number | null; anr_max_age_days: number | null; max_traces: number | null; max_bytes: number | null;
	uploads_max_age_days: number | null; decoded_max_age_days: number | null; keep_annotated: boolean; keep_first_anr: boolean;
	quarantine_max_traces: number | null; quarantine_max_bytes: number | null;
}
export interface Due {
	id: string; name: string; what: 'trace' | 'upload' | 'decoded'; why: string; created_ms: number; bytes: number; expires_ms: number | null;
}
export interface Room {
	rules: Rules; use: { traces: number; archived: number; pinned: number; upload_bytes: number; decoded_bytes: number }; due: Due[]; soon: Due[];
}

const GIB = 2 ** 30;
export type NumberRule = 'max_age_days' | 'anr_max_age_days' | 'max_traces' | 'max_bytes' | 'uploads_max_age_days' | 'decoded_max_age_days' | 'quarantine_max_traces' | 'quarantine_max_bytes';

/** What a person may set, in the order in which they meet it. */
export const FIELDS: { key: NumberRule; label: string; unit: string; scale: number; empty: string }[] = [
	{ key: 'max_age_days', label: 'Traces go when they are older than', unit: 'days', scale: 1, empty: 'never' },
	{ key: 'anr_max_age_days', label: 'Those with an ANR instead after', unit: 'days', scale: 1, empty: 'as all others' },
	{ key: 'max_traces', label: 'At most so many traces', unit: 'traces', scale: 1, empty: 'no limit' },
	{ key: 'max_bytes', label: 'At most so much room, raw and decoded', unit: 'GiB', scale: GIB, empty: 'no limit' },
	{ key: 'uploads_max_age_days', label: 'Raw uploads alone go after', unit: 'days', scale: 1, empty: 'with the trace' },
	{ key: 'decoded_max_age_days', label: 'Decoded files alone go after', unit: 'days', scale: 1, empty: 'with the trace' },
	{ key: 'quarantine_max_traces', label: 'In quarantine at most', unit: 'uploads', scale: 1, empty: '100' },
	{ key: 'quarantine_max_bytes', label: 'and at most', unit: 'GiB', scale: GIB, empty: '1' },
];

/** The text of a field, "" for no limit. */
export function shown(value: number | null, scale: number): string {
	return value === null ? '' : String(Number((value / scale).toPrecision(6)));
}

/** What a field's text means; null for none, undefined for what is no number of that kind. */
export function meant(text: string, scale: number): number | null | undefined {
	const t = text.trim();
	if (t === '') return null;
	const v = Math.round(Number(t) * scale);
	if (!/^\d+(\.\d+)?$/.test(t) || !Number.isSafeInteger(v) || v < 1) return undefined;
	return scale === 1 && t.includes('.') ? undefined : v;
}

/** The rules as sentences, for those who only look. */
export function sentences(r: Rules): string[] {
	const out: string[] = [];
	if (r.max_age_days) out.push(`Traces are deleted ${several(r.max_age_days, 'day')} after they came.`);
	if (r.anr_max_age_days) out.push(`Those with an ANR are kept ${several(r.anr_max_age_days, 'day')}, whatever else is said here.`);
	if (r.max_traces) out.push(`At most ${several(r.max_traces, 'trace')} are kept, the oldest go first.`);
	if (r.max_bytes) out.push(`At most ${bytes(r.max_bytes)} are used, raw and decoded together; the oldest go first.`);
	if (out.length === 0) out.push('Traces are kept until somebody deletes them.');
	if (r.uploads_max_age_days) out.push(`The raw upload of a decoded trace is deleted ${several(r.uploads_max_age_days, 'day')} after it came; the trace stays, but cannot be decoded again, unless nothing but the upload was left of it.`);
	if (r.decoded_max_age_days) out.push(`What was decoded is deleted ${several(r.decoded_max_age_days, 'day')} after that, while the raw upload is there; it is decoded again when somebody opens the trace.`);
	if (r.keep_first_anr && (r.max_age_days || r.anr_max_age_days)) out.push('The first trace of each group of ANRs outlives its age: the newest 1,000 of them, 4 GiB together.');
	const stay = ['Pinned traces', ...(r.keep_annotated ? ['traces with a title or annotations'] : [])];
	out.push(`${stay.length > 1 ? `${stay.slice(0, -1).join(', ')} and ${stay[stay.length - 1]}` : stay[0]} always stay.`);
	return out;
}

const WHAT: Record<Due['what'], string> = { trace: 'trace', upload: 'raw upload', decoded: 'decoded file' };
export const what = (d: Due): string => WHAT[d.what];

/** Why it goes, by which rule. */
export function why(d: Due, r: Rules): string {
	const older = (days: number | null) => `older than ${several(days ?? 0, 'day')}`;
	if (d.why === 'age') return older(r.max_age_days);
	if (d.why === 'anr_age') return `an ANR ${older(r.anr_max_age_days)}`;
	if (d.why === 'count') return `there are more than ${count(r.max_traces ?? 0)} traces`;
	if (d.why === 'bytes') return `more than ${bytes(r.max_bytes ?? 0)} are used`;
	if (d.why === 'upload_age') return `${older(r.uploads_max_age_days)}; the trace stays`;
	if (d.why === 'archived_age') return `${older(r.uploads_max_age_days)}; only the raw upload was left of it`;
	if (d.why === 'decoded_age') return `decoded more than ${several(r.decoded_max_age_days ?? 0, 'day')} ago; decoded again when opened`;
	return 'there is more in quarantine than may be';
}

/** When: at the next look for what is due, or at its time. */
export function time(d: Due, now: number): string {
	return d.expires_ms === null || d.expires_ms <= now ? 'at the next look' : when(d.expires_ms);
}

/** In the order in which they go. */
export function inTurn(room: Room): Due[] {
	return [...room.due, ...room.soon.sort((a, b) => (a.expires_ms ?? 0) - (b.expires_ms ?? 0))];
}
