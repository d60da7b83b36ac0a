// Two sides of the fleet: the request from the address, and texts and positions from its response.
import type { ComparedTree } from '../api/api';
import { classWord } from '../api/classes';
import { withOverloads } from '../api/overloads';
import { COMMA, DAY_MS } from '../i18n/format';
import { interval } from '../i18n/interval';
import { tr } from '../i18n/strings/versus';

export const WHERE = '/api/v1/fleet/compare';

export interface Interval { value: number | null; low: number | null; high: number | null }
export interface Stat { a: Interval; b: Interval; change: Interval; enough_traces: boolean; significant: boolean }
type Stats = Record<string, Stat>;
/** Null: strata are by the other alone. */
export interface Stratum { scenario: string | null; class: string | null; a_traces: number; b_traces: number; a_weight: number | null; b_weight: number | null; excluded: boolean }
export interface Mix { corrected: boolean; strata: Stratum[] }
export interface Side { label: string; traces: number; compared: number; since_ms: number; until_ms: number; trace: string | null }
export interface Scenario { scenario: string; a_traces: number; b_traces: number; mix: Mix; stats: Stats }
export interface Mean { a: number; b: number; change: Interval }
export interface Method {
	name: string; descriptor: string; shown?: string; resolved: boolean; state: 'new' | 'removed' | 'both'; self_ns: Mean; total_ns: Mean; calls: Mean;
	a_share: number; b_share: number; p: number | null; significant: boolean; scenario: string | null; scenario_self_ns: Mean | null;
}
export interface One { name: string; a_share: number; b_share: number; share_margin: number | null; stats: Stats }
/** An open regression between the versions of the sides, of a scenario's duration or of a method in it. */
export interface Reported { id: string; scenario: string; method: string; descriptor: string; kind: string; base: string; head: string; percentile: number; before_ns: number; after_ns: number; change: number; low: number; high: number }
export interface Versus {
	summary: string; comparable: boolean; error: number; a: Side; b: Side; mix: Mix; scenarios: Scenario[]; method: One | null;
	methods: Method[]; counts: Record<string, number>; reported: Reported[];
}
/** The server's tree of both sides: sums over a and b traces. */
export type FleetTree = Omit<ComparedTree, 'a' | 'b' | 'significant'> & { a_of_traces: number; b_of_traces: number; significant: number[] };

/* --- the address --- */

/** Words of the filter, of both sides or, with "a." or "b." before them, of one. */
export const WORDS = ['app', 'version_name', 'scenario', 'class', 'os', 'build_id', 'label'];
export const SIDES = ['a', 'b'] as const;
const DATES = ['since', 'until'];
const OWN = SIDES.flatMap((side) => [side, ...[...WORDS, ...DATES].map((w) => `${side}.${w}`)]);
/** The address parameters that define the comparison. */
export const QUERY_PARAMS = [...WORDS, 'days', 'mix', ...OWN];

type Get = (name: string) => string;

export function daysOf(text: string): number {
	const n = Number(text);
	return /^\d+$/.test(text) && n >= 1 && n <= 400 ? n : 30;
}

/** A day as a parameter; the server refuses invalid ones. */
function dayOf(text: string): number | string {
	const ms = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : NaN;
	return Number.isFinite(ms) ? ms : text;
}

/** The days of one side; if it has only an end, it is as long as the common range. */
function spanOf(get: Get, side: string, days: number): Record<string, number | string> {
	const [since, until] = DATES.map((w) => dayOf(get(`${side}.${w}`)));
	const begin = since === '' && typeof until === 'number' ? Math.max(0, until - (days - 1) * DAY_MS) : since;
	return { [`${side}.since`]: begin, [`${side}.until`]: until };
}

/** The first day that both sides have. */
export const sinceOf = (get: Get, now: number): number => (Math.floor(now / DAY_MS) - daysOf(get('days')) + 1) * DAY_MS;

/** The request of the address; null: the sides are equal. */
export function paramsOf(get: Get, now: number): Record<string, number | string> | null {
	if (!OWN.some((name) => get(name))) return null;
	const days = daysOf(get('days'));
	const all: Record<string, number | string> = { since: sinceOf(get, now), mix: get('mix') };
	for (const w of WORDS) for (const name of [w, ...SIDES.map((s) => `${s}.${w}`)]) all[name] = get(name);
	for (const side of SIDES) Object.assign(all, { [side]: get(side) }, spanOf(get, side, days));
	return Object.fromEntries(Object.entries(all).filter(([, v]) => v !== ''));
}

/** A and B the other way round. */
export function swapped(get: Get): Record<string, string | null> {
	const other = (name: string) => (name[0] === 'a' ? 'b' : 'a') + name.slice(1);
	return Object.fromEntries(OWN.map((name) => [name, get(other(name)) || null]));
}

/** The id in a typed or pasted text: an id, or a trace's address. */
export function traceIn(typed: string): string {
	return /[0-9A-HJKMNP-TV-Z]{26}/.exec(typed.toUpperCase())?.[0] ?? typed.trim();
}

/* --- words --- */

/** An interval that is known; otherwise ''. */
export function between({ low, high }: Interval, show: (v: number) => string): string {
	return low === null || high === null ? '' : interval(show(low), show(high));
}

/** One trace on each side: there is nothing to be sure of. */
export const isSingleTrace = (v: Versus) => v.a.trace !== null && v.b.trace !== null;

export type Verdict = 'slower' | 'faster' | 'may be chance' | 'too few traces';

export function verdictOf(s: Stat): Verdict {
	if (!s.enough_traces) return 'too few traces';
	if (!s.significant) return 'may be chance';
	return (s.change.value ?? 0) > 0 ? 'slower' : 'faster';
}

const NAMED = 5;

/** A stratum as text; the scenario only if there are several. */
const stratumWord = (c: Stratum, several: boolean): string => [several && c.scenario, c.class && classWord(c.class)].filter(Boolean).join(' · ') || tr('not given');

export const severalScenarios = (m: Mix): boolean => new Set(m.strata.map((c) => c.scenario)).size > 1;

/** Why some of a side's traces are not compared; '' when all are. */
export function leftOut(side: 'a' | 'b', v: Versus): string {
	const out = v.mix.strata.filter((c) => c.excluded && c[`${side}_traces`] > 0).map((c) => stratumWord(c, severalScenarios(v.mix)));
	if (v[side].compared >= v[side].traces || out.length === 0) return '';
	const capped = v.mix.strata.some((c) => c.excluded && c.a_traces > 0 && c.b_traces > 0);
	const values = { out: out.slice(0, NAMED).join(COMMA), more: out.length > NAMED && tr(' and more') };
	return capped ? tr('Excluded, as they are not on both sides, or not among the 100 with the most traces on both: {out}{more}.', values) : tr('Excluded, as they are not on both sides: {out}{more}.', values);
}

/** The open regression for a scenario's percentile, so that all pages show the same value. */
export function reportedOf(v: Versus, scenario: string, stat: string): Reported | undefined {
	const all = v.reported.filter((r) => !r.method && r.scenario === scenario && `p${r.percentile}` === stat);
	return all.length === 1 ? all[0] : undefined;
}

/** The open regressions of a method, in any scenario. */
export const reportedIn = (v: Versus, name: string, descriptor: string): Reported[] => v.reported.filter((r) => r.method === name && r.descriptor === descriptor);

/* --- places --- */

export interface Axis { low: number; high: number }

/** The range of changes that a picture must cover; it includes 0. */
export function axisOf(stats: Stat[]): Axis {
	const all = stats.flatMap((s) => [s.change.low, s.change.value, s.change.high]).filter((v): v is number => v !== null);
	const [low, high] = [Math.min(0, ...all), Math.max(0, ...all)];
	const room = (high - low || 0.1) * 0.04;
	return { low: low - room, high: high + room };
}

/** Where a change is, 0 to 1. */
export const positionOn = (x: Axis, v: number) => (v - x.low) / (x.high - x.low);

/* --- the table --- */

export type Key = 'name' | `${'self' | 'total' | 'calls'}_${'a' | 'b' | 'change'}` | 'share_a' | 'share_b';
const MEANS = { self: 'self_ns', total: 'total_ns', calls: 'calls' } as const;

function valueOf(m: Method, key: Key): number | string {
	if (key === 'name') return m.name;
	const [what, of] = key.split('_') as ['self' | 'total' | 'calls' | 'share', 'a' | 'b' | 'change'];
	if (what === 'share') return of === 'a' ? m.a_share : m.b_share;
	const mean = m[MEANS[what]];
	return of === 'change' ? Math.abs(mean.b - mean.a) : mean[of];
}

/** Sorted by a column, changes by their size; equal rows remain in the server's order. */
export function sorted(list: Method[], key: Key, down: boolean): Method[] {
	const sign = down ? -1 : 1;
	return [...list].sort((x, y) => {
		const [a, b] = [valueOf(x, key), valueOf(y, key)];
		return sign * (typeof a === 'string' ? a.localeCompare(b as string, 'en') : a - (b as number));
	});
}

/** The response, overloads named with their parameters: `shown`. */
export const named = <V extends Omit<Versus, 'reported'>>(v: V): V => ({ ...v, methods: withOverloads(v.methods).map((m, i) => ({ ...m, name: v.methods[i].name, shown: m.name })) });

/** The tree for the differential graph, with too few traces for a test of significance. */
export function treeOf(t: FleetTree, least = 10): ComparedTree {
	const { a_of_traces: a, b_of_traces: b, significant, ...rest } = t;
	return { ...rest, names: withOverloads(rest.names), a: { length: Math.max(1, a) }, b: { length: Math.max(1, b) }, ...(Math.min(a, b) >= least && { significant }) };
}
