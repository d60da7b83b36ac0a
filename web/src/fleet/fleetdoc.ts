// Fleet figures of the server, and computations on them.
import { count, DAY_MS, duration, tickStep } from '../i18n/format';
import { tr } from '../i18n/strings/fleet';

export interface Stat { traces: number; sum: number; mean: number; p50: number; p75: number; p95: number; p99: number; max: number }
export interface Metric extends Stat { exemplar: string | null }
export type MetricName = 'self' | 'wall' | 'call' | 'calls' | 'cpu' | 'waiting';
export type StatName = 'p50' | 'p75' | 'p95' | 'p99' | 'mean' | 'max' | 'sum';

export interface Head { since_ms: number; until_ms: number; traces: number; cells: number; error: number }
/** The key of groups; for a label, `values` is the number of its values in a group: none, one, or the others. */
export interface Keyed { key: string; values?: number }
export interface ScenarioGroup extends Keyed { scenario: string; duration_ns: Stat; exemplars: Record<'p50' | 'p75' | 'p95' | 'p99' | 'max', string | null> }
/** For responses by label: the number of values, and traces that arrived before it was counted. */
export interface ByLabel { values?: number; not_counted?: number }
export interface Scenarios extends Head, ByLabel { by: string; total: number; groups: ScenarioGroup[] }
export type FleetMethodRow = { name: string; descriptor: string; resolved: boolean; build_id: string; share: number } & Partial<Record<MetricName, Metric>>;
export interface FleetMethods extends Head { by_thread: boolean; total: number; methods: FleetMethodRow[] }
export type Point = Keyed & { of_traces: number } & Partial<Record<MetricName, Metric>>;
export interface Near { name: string; descriptor: string; thread: boolean; total_ns: number; share: number; calls: number; in_traces: number }
export interface Callers extends Head { name: string; of_traces: number; omitted_below_ns: number; total_ns: number; self_ns: number; calls: number; callers_total: number; callers: Near[]; callees_total: number; callees: Near[] }
export interface Series extends Head, ByLabel { name: string; by: string; groups: Point[] }

/** Metrics of a method, and their meaning. */
export const METRICS: [MetricName, string, string][] = [
	['self', tr('Self'), tr('self time per trace')],
	['wall', tr('Wall'), tr('total time per trace, with callees')],
	['call', tr('One call'), tr('wall time of a call (mean of each trace)')],
	['calls', tr('Calls'), tr('calls per trace')],
	['cpu', 'CPU', tr('CPU time per trace, where traces have it')],
	['waiting', tr('Waiting'), tr('time off the CPU per trace, where traces have it')],
];
export const STATS: [StatName, string][] = [['p50', 'p50'], ['p75', 'p75'], ['p95', 'p95'], ['p99', 'p99'], ['mean', tr('mean')], ['max', tr('max')], ['sum', tr('all')]];

export const metricNamed = (name: string): MetricName => METRICS.find(([m]) => m === name)?.[0] ?? 'self';
export const statNamed = (name: string): StatName => STATS.find(([s]) => s === name)?.[0] ?? 'p95';

/** A value of a metric as text. */
export const valueOf = (metric: MetricName, v: number): string => (metric === 'calls' ? count(v) : duration(v));

const natural = new Intl.Collator('en', { numeric: true });

/** Older versions first, by their names: numbers count as numbers, and what leads up to a release comes before it. */
export function compareVersions(a: string, b: string): number {
	const cut = (v: string) => [v.split('-', 1)[0], v.slice(v.split('-', 1)[0].length + 1)];
	const [coreA, preA] = cut(a);
	const [coreB, preB] = cut(b);
	if (!a || !b) return Number(!!a) - Number(!!b); // no version is older than each
	const core = natural.compare(coreA, coreB);
	if (core || preA === preB) return core;
	return !preA ? 1 : !preB ? -1 : natural.compare(preA, preB);
}

export const LABEL = 'label:';
/** The rest of a label's values are the last of all; those without it the last but that. */
const rank = (g: Keyed) => ((g.values ?? 1) > 1 ? 2 : g.values === 0 ? 1 : 0);
/** The name of a group; unique within a response, because no value is empty or begins like that. */
export function groupName(g: Keyed): string {
	if (g.values === undefined || g.values === 1) return g.key || tr('not given');
	return g.values ? tr('{values} other values', { values: count(g.values) }) : tr('(none)');
}
/** Identifies a group within a response. */
export const groupId = (g: Keyed): string => (g.values === undefined || g.values === 1 ? g.key : g.values ? '\u0000rest' : '\u0000none');
const byTraces = (traces: (g: never) => number) => (a: Keyed, b: Keyed) => rank(a) - rank(b) || traces(b as never) - traces(a as never) || natural.compare(a.key, b.key);

export interface Scenario { scenario: string; traces: number; versions: ScenarioGroup[]; older: number; most: number }

/** Order of a scenario's groups: newest first, or by traces. */
const inScenario = (by: string) => (by === 'version' || by === 'day' ? (a: ScenarioGroup, b: ScenarioGroup) => compareVersions(b.key, a.key) : byTraces((g: ScenarioGroup) => g.duration_ns.traces));

/** Scenarios with most traces first; of each its latest versions, or the largest of its other groups. */
export function scenarioRows(groups: ScenarioGroup[], latest: number, by = 'version'): Scenario[] {
	const of = new Map<string, ScenarioGroup[]>();
	for (const g of groups) of.set(g.scenario, [...(of.get(g.scenario) ?? []), g]);
	return [...of].map(([scenario, all]) => {
		const versions = all.sort(inScenario(by)).slice(0, latest);
		return { scenario, traces: all.reduce((n, g) => n + g.duration_ns.traces, 0), versions, older: all.length - versions.length, most: Math.max(0, ...versions.map((g) => g.duration_ns.p95)) };
	}).sort((a, b) => b.traces - a.traces || natural.compare(a.scenario, b.scenario));
}

/** By which share it changed; null: nothing to hold it against. */
export const changeOf = (now: number, before: number | undefined): number | null => (before ? now / before - 1 : null);

/** Two quantiles, each accurate to within `error`, may differ by this share without a real change. */
export const unsure = (error: number): number => (1 + error) / (1 - error) - 1;

const ENOUGH = 10;

/** Whether a comparison gives an interval for this percentile of both sides: ten traces each, one of them expected beyond it. */
export const enough = (percentile: number, a: number, b: number): boolean => Math.min(a, b) >= Math.max(ENOUGH, 100 / (100 - percentile));

/** Groups in the order in which they are read: versions by their names, days by time, the rest as they come. */
export const inOrder = (by: string, groups: Point[]): Point[] => (by === 'version' ? [...groups].sort((a, b) => compareVersions(a.key, b.key)) : by.startsWith(LABEL) ? [...groups].sort(byTraces((g: Point) => g.of_traces)) : groups);

export interface Mark { key: string; x: number; p50: number; p75: number; p95: number; point: Point }
export interface Chart { marks: Mark[]; ticks: { y: number; value: number }[]; left: number; right: number; bottom: number; most: number; dropped: number }

const MARKS = 60; // more would be a wall
const LEFT = 64, RIGHT = 12, TOP = 8, BOTTOM = 22, TICKS = 4;

/** Position of a group between the first and the last, 0 to 1: days by time, others at equal distances. */
function places(by: string, shown: Point[]): number[] {
	const days = shown.map((g) => Date.parse(g.key) / DAY_MS);
	const long = days[days.length - 1] - days[0];
	return by === 'day' && long > 0 ? days.map((d) => (d - days[0] + 0.5) / (long + 1)) : shown.map((_, i) => (i + 0.5) / shown.length);
}

/** The chart of a series: the last groups that have the metric, from zero. */
export function chartOf(by: string, groups: Point[], metric: MetricName, wide: number, high: number): Chart {
	const measured = groups.filter((g) => g[metric]?.traces);
	const shown = measured.slice(-MARKS);
	const most = Math.max(1, ...shown.map((g) => g[metric]!.p95));
	const step = tickStep(most, TICKS);
	const top = Math.ceil(most / step) * step;
	const bottom = high - BOTTOM;
	const y = (v: number) => bottom - (v / top) * (bottom - TOP);
	const at = places(by, shown);
	const right = Math.max(LEFT + 1, wide - RIGHT);
	return {
		marks: shown.map((g, i) => ({ key: g.key, x: LEFT + at[i] * (right - LEFT), p50: y(g[metric]!.p50), p75: y(g[metric]!.p75), p95: y(g[metric]!.p95), point: g })),
		ticks: Array.from({ length: Math.round(top / step) + 1 }, (_, i) => ({ y: y(i * step), value: i * step })),
		left: LEFT, right, bottom, most, dropped: measured.length - shown.length,
	};
}

/** The marks with a label: as many as fit, always including the last. */
export function namedMarks(marks: Mark[], room: number): Mark[] {
	const out: Mark[] = [];
	for (const m of [...marks].reverse()) if (!out.length || out[out.length - 1].x - m.x >= room) out.push(m);
	return out.reverse();
}

/** capped: the server stopped counting at this number. */
export interface Counts { all: number; queued: number; decoding: number; failed: number; done: number; counted: number; capped?: { all: boolean; queued: boolean; decoding: boolean; failed: boolean; done: boolean } }

/** Lower bound of ready traces that are not in the rollups, as deleted ones remain counted. 0: not known. */
export const uncounted = (c: Counts): number => (c.capped?.done ? 0 : Math.max(0, c.done - c.counted));
