// What detectors find in a trace, and what differs between two documents of them.
import { tr } from '../../i18n/strings/findings';
export interface Named { method: number; name: string }
export interface Finding {
	rule: string; kind: string; tid: number | null; start_ns: number; wall_ns: number; cpu_ns: number | null;
	call: Named | null; depth: number; caller: Named | null; note: { id: number; text: string } | null;
}
export interface RuleSum {
	id: string; kind: string; title: string; severity: 'info' | 'warning' | 'error'; message: string; enabled: boolean; threshold_ns: number;
	calls: number; total_ns: number; max_ns: number; cpu_ns: number | null; found: number; found_ns: number; listed: number; problem: string | null;
}
export interface Cause { message: string; rule: string | null; call: Named | null; caller: Named | null; start_ns: number; ns: number }
export interface FrameFound { what: 'frame' | 'message'; frozen: boolean; tid: number | null; start_ns: number; dur_ns: number; call: Named | null; display: string; cause: Cause | null }
export interface Phase { id: string; title: string; tid: number | null; start_ns: number; dur_ns: number; call: Named | null; cause: Cause | null }
export interface Findings {
	rules_version: number | null; main_tid: number | null; methods: number; unnamed: number; rules: RuleSum[]; findings: Finding[];
	frames: { from: 'calls' | 'notes' | null; slow_ns: number; frozen_ns: number; total: number; slow: number; frozen: number; messages: number; list: FrameFound[] };
	start: { kind: 'process' | 'activity'; start_ns: number; dur_ns: number; phases: Phase[] } | null;
	partial: boolean; cut: string[];
}

/** Why the list may be incomplete, by the value in the response. */
const CUTS: Record<string, string> = {
	time: tr('The time limit was reached: there may be more findings.'),
	calls: tr('Too many calls also have events: some may be counted twice.'),
	role_calls: tr('The main thread has too many messages and frames: only the first ones are analysed.'),
	notes: tr('The trace has too many events: not all were analysed.'),
	frames: tr('The trace has too many display frames: later ones are not counted.'),
	causes: tr('There was not enough memory to explain some frames or phases.'),
};
export const cuts = (f: Findings) => f.cut.map((word) => CUTS[word] ?? tr('There may be more findings ({word}).', { word }));

export interface Rule { id: string; [member: string]: unknown }
export interface Doc { rules: Rule[]; frames?: Record<string, unknown> }
export interface Kept extends Doc {
	version: number; author: string; created_ms: number; versions: { version: number; author: string; created_ms: number }[]; defaults: Doc;
}

export const docOf = (d: Doc): Doc => ({ rules: d.rules, ...(d.frames && { frames: d.frames }) });

/** JSON as people write it: lists of texts in one line. */
export function written(doc: Doc): string {
	const one = '"(?:[^"\\\\]|\\\\.)*"';
	return JSON.stringify(docOf(doc), null, 2).replace(new RegExp(`\\[\\n\\s+(${one}(?:,\\n\\s+${one})*)\\n\\s+\\]`, 'g'), (_, inner: string) => `[${inner.replace(/\n\s+/g, ' ')}]`);
}

/** Rules with findings first, ordered by time over their threshold. */
export function inOrder(rules: RuleSum[]): RuleSum[] {
	return rules.filter((r) => r.enabled).sort((a, b) => b.found_ns - a.found_ns || b.total_ns - a.total_ns || (a.id < b.id ? -1 : 1));
}

export const ofRule = (f: Findings, id: string) => f.findings.filter((x) => x.rule === id).sort((a, b) => b.wall_ns - a.wall_ns || a.start_ns - b.start_ns);

interface Difference { what: string; member: string; before: string; after: string }

const shown = (v: unknown) => (v === undefined ? '' : typeof v === 'string' ? v : JSON.stringify(v));
const isTexts = (v: unknown): v is string[] => Array.isArray(v) && v.every((x) => typeof x === 'string');

function differ(what: string, member: string, a: unknown, b: unknown): Difference[] {
	if (JSON.stringify(a) === JSON.stringify(b)) return [];
	if (!isTexts(a) || !isTexts(b)) return [{ what, member, before: shown(a), after: shown(b) }];
	const before = a.filter((x) => !b.includes(x)).join(', ');
	const after = b.filter((x) => !a.includes(x)).join(', ');
	return [{ what, member: before || after ? member : tr('{member}, order', { member }), before, after }];
}

function members(what: string, a: Record<string, unknown>, b: Record<string, unknown>): Difference[] {
	return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((m) => differ(what, m, a[m], b[m]));
}

/** What changes from one document to the other, rule by rule; '' is not there. */
export function differences(from: Doc, to: Doc): Difference[] {
	const find = (d: Doc, id: string) => d.rules.find((r) => r.id === id);
	const ids = [...new Set([...from.rules, ...to.rules].map((r) => r.id))];
	const list = ids.flatMap((id) => {
		const [a, b] = [find(from, id), find(to, id)];
		if (!a || !b) return [{ what: id, member: tr('the rule'), before: a ? shown(a.title) : '', after: b ? shown(b.title) : '' }];
		return members(id, a, b);
	});
	const order = (d: Doc, o: Doc) => d.rules.map((r) => r.id).filter((id) => find(o, id)).join(', ');
	if (order(from, to) !== order(to, from)) list.push({ what: 'rules', member: 'order', before: order(from, to), after: order(to, from) });
	return [...list, ...members('frames', from.frames ?? {}, to.frames ?? {})];
}
