// A project's retention rules: types, fields and texts.
import { bytes, COMMA, count, when } from '../i18n/format';
import { tr } from '../i18n/strings/manage';
import { several } from '../api/traces';

export interface Rules {
	max_age_days: number | null; anr_max_age_days: number | null; max_traces: number | null; max_bytes: number | null;
	uploads_max_age_days: number | null; decoded_max_age_days: number | null; keep_annotated: boolean; keep_first_anr: boolean;
	quarantine_max_traces: number | null; quarantine_max_bytes: number | null;
}
export interface Due {
	id: string; name: string; deletes: 'trace' | 'upload' | 'decoded'; reason: string; created_ms: number; bytes: number; expires_ms: number | null;
}
export interface Room {
	rules: Rules; use: { traces: number; archived: number; pinned: number; upload_bytes: number; decoded_bytes: number }; expiring_now: Due[]; expiring_soon: Due[];
	disk: { max_percent: number; size_bytes: number; used_bytes: number } | null;
}

const GIB = 2 ** 30;
export type NumberRule = 'max_age_days' | 'anr_max_age_days' | 'max_traces' | 'max_bytes' | 'uploads_max_age_days' | 'decoded_max_age_days' | 'quarantine_max_traces' | 'quarantine_max_bytes';

/** The editable fields, in their order on the page. */
export const FIELDS: { key: NumberRule; label: string; unit: string; scale: number; empty: string }[] = [
	{ key: 'max_age_days', label: tr('Delete traces older than'), unit: tr('days'), scale: 1, empty: tr('not deleted') },
	{ key: 'anr_max_age_days', label: tr('Delete traces with an ANR after'), unit: tr('days'), scale: 1, empty: tr('like all others') },
	{ key: 'max_traces', label: tr('Maximum traces'), unit: tr('traces'), scale: 1, empty: tr('no limit') },
	{ key: 'max_bytes', label: tr('Maximum storage, raw and decoded'), unit: 'GiB', scale: GIB, empty: tr('no limit') },
	{ key: 'uploads_max_age_days', label: tr('Delete raw uploads after'), unit: tr('days'), scale: 1, empty: tr('with the trace') },
	{ key: 'decoded_max_age_days', label: tr('Delete decoded files after'), unit: tr('days'), scale: 1, empty: tr('with the trace') },
	{ key: 'quarantine_max_traces', label: tr('Maximum in quarantine'), unit: tr('uploads'), scale: 1, empty: '100' },
	{ key: 'quarantine_max_bytes', label: tr('Maximum size of the quarantine'), unit: 'GiB', scale: GIB, empty: '1' },
];

/** The text of a field, "" for no limit. */
export function shown(value: number | null, scale: number): string {
	return value === null ? '' : String(Number((value / scale).toPrecision(6)));
}

/** The value of a field's text; null: no limit, undefined: not a valid number. */
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
	if (r.max_age_days) out.push(tr('Traces are deleted {max_age_days} after upload.', { max_age_days: several(r.max_age_days, 'day') }));
	if (r.anr_max_age_days) out.push(tr('Traces with an ANR are kept {anr_max_age_days}, whatever the other rules say.', { anr_max_age_days: several(r.anr_max_age_days, 'day') }));
	if (r.max_traces) out.push(tr('At most {max_traces} are kept; the oldest are deleted first.', { max_traces: several(r.max_traces, 'trace') }));
	if (r.max_bytes) out.push(tr('At most {max_bytes} are used, raw and decoded; the oldest traces are deleted first.', { max_bytes: bytes(r.max_bytes) }));
	if (out.length === 0) out.push(tr('Traces are kept until they are deleted manually.'));
	if (r.uploads_max_age_days) out.push(tr('Raw uploads of decoded traces are deleted after {uploads_max_age_days}. The trace is kept but cannot be decoded again. A trace without a decoded file keeps its upload.', { uploads_max_age_days: several(r.uploads_max_age_days, 'day') }));
	if (r.decoded_max_age_days) out.push(tr('Decoded files are deleted {decoded_max_age_days} after decoding while the raw upload exists. Opening the trace decodes it again.', { decoded_max_age_days: several(r.decoded_max_age_days, 'day') }));
	if (r.keep_first_anr && (r.max_age_days || r.anr_max_age_days)) out.push(tr('The first trace of each ANR group is kept longer: the newest 1,000, up to 4 GiB.'));
	const stay = [tr('Pinned traces'), ...(r.keep_annotated ? [tr('traces with a title or annotations')] : [])];
	out.push(tr('{stay} are always kept.', { stay: stay.length > 1 ? tr('{stay} and {stay2}', { stay: stay.slice(0, -1).join(COMMA), stay2: stay[stay.length - 1] }) : stay[0] }));
	return out;
}

const WHAT: Record<Due['deletes'], string> = { trace: 'trace', upload: tr('raw upload'), decoded: tr('decoded file') };
export const what = (d: Due): string => WHAT[d.deletes];

/** The rule that deletes it, as a reason. */
export function why(d: Due, r: Rules): string {
	const older = (days: number | null) => tr('older than {days}', { days: several(days ?? 0, 'day') });
	if (d.reason === 'age') return older(r.max_age_days);
	if (d.reason === 'anr_age') return tr('an ANR {anr_max_age_days}', { anr_max_age_days: older(r.anr_max_age_days) });
	if (d.reason === 'count') return tr('there are more than {max_traces} traces', { max_traces: count(r.max_traces ?? 0) });
	if (d.reason === 'bytes') return tr('more than {max_bytes} are used', { max_bytes: bytes(r.max_bytes ?? 0) });
	if (d.reason === 'upload_age') return tr('{uploads_max_age_days}; the trace stays', { uploads_max_age_days: older(r.uploads_max_age_days) });
	if (d.reason === 'archived_age') return tr('{uploads_max_age_days}; only the raw upload was left of it', { uploads_max_age_days: older(r.uploads_max_age_days) });
	if (d.reason === 'decoded_age') return tr('decoded more than {decoded_max_age_days} ago; decoded again when opened', { decoded_max_age_days: several(r.decoded_max_age_days ?? 0, 'day') });
	return tr('quarantine limit');
}

/** The time of the deletion: the next retention run, or its own time. */
export function time(d: Due, now: number): string {
	return d.expires_ms === null || d.expires_ms <= now ? tr('at the next check') : when(d.expires_ms);
}

/** In the order in which they go. */
export function inTurn(room: Room): Due[] {
	return [...room.expiring_now, ...room.expiring_soon.sort((a, b) => (a.expires_ms ?? 0) - (b.expires_ms ?? 0))];
}
