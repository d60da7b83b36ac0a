// The days around a regression as a picture: positions of points, bands and versions.
import { DAY_MS, tickStep } from '../i18n/format';

export interface Quantile { ns: number; low_ns: number | null; high_ns: number | null }
export interface TrendPoint { day_ms: number; of_traces: number; traces: number; p50: Quantile; p95: Quantile }
interface TrendLine { version: string | null; points: TrendPoint[] }
interface TrendVersion { version: string; day_ms: number; traces: number }
export interface Trend { since_ms: number; until_ms: number; change_ms: number; metric: 'duration' | 'self'; lines: TrendLine[]; versions: TrendVersion[]; versions_total: number; complete: boolean }
export type Which = 'p50' | 'p95';

interface Dot { x: number; y: number; point: TrendPoint }
export interface Drawn { line: TrendLine; role: 'all' | 'base' | 'head'; dots: Dot[]; bands: string[] }
export interface TrendChart { lines: Drawn[]; ticks: { y: number; value: number }[]; change: number; versions: { x: number; of: TrendVersion }[]; left: number; right: number; bottom: number; top: number }

const LEFT = 64, RIGHT = 14, TOP = 18, BOTTOM = 38, TICKS = 4;

/** For a change between versions their two lines, otherwise the line of all traces; lines without points are omitted. */
export function shownLines(t: Trend): { line: TrendLine; role: 'all' | 'base' | 'head' }[] {
	const [all, base, head] = t.lines;
	const both = base && head ? ([{ line: base, role: 'base' }, { line: head, role: 'head' }] as const).filter((l) => l.line.points.length > 0) : [];
	return both.length ? [...both] : all ? [{ line: all, role: 'all' }] : [];
}

/** Days that follow each other and have an interval, as polygons: a day without one cuts the band. */
function bandsOf(points: TrendPoint[], which: Which, x: (ms: number) => number, y: (ns: number) => number): string[] {
	const runs: TrendPoint[][] = [];
	for (const p of points) {
		if (p[which].low_ns === null) { runs.push([]); continue; }
		const last = runs[runs.length - 1]?.at(-1);
		if (last && p.day_ms - last.day_ms <= DAY_MS) runs[runs.length - 1].push(p);
		else runs.push([p]);
	}
	const at = (p: TrendPoint, ns: number, dx = 0) => `${(x(p.day_ms) + dx).toFixed(1)},${y(ns).toFixed(1)}`;
	return runs.filter((r) => r.length > 0).map((r) => {
		const wide = r.length === 1 ? [-4, 4] : [0]; // one day alone is a bar
		return [...r.flatMap((p) => wide.map((dx) => at(p, p[which].high_ns!, dx))), ...[...r].reverse().flatMap((p) => [...wide].reverse().map((dx) => at(p, p[which].low_ns!, dx)))].join(' ');
	});
}

export function trendChart(t: Trend, which: Which, wide: number, high: number): TrendChart {
	const shown = shownLines(t);
	const days = shown.flatMap((l) => l.line.points.map((p) => p.day_ms));
	const first = Math.min(t.change_ms, ...days), last = Math.max(t.change_ms, ...days) + DAY_MS;
	const begins = last - first > DAY_MS ? DAY_MS / 2 : 0; // a single day is drawn at the axis
	const right = Math.max(LEFT + 1, wide - RIGHT), bottom = high - BOTTOM;
	const x = (ms: number) => LEFT + ((ms + DAY_MS / 2 - first) / (last - first)) * (right - LEFT);
	const most = Math.max(1, ...shown.flatMap((l) => l.line.points.map((p) => Math.max(p[which].ns, p[which].high_ns ?? 0))));
	const step = tickStep(most, TICKS);
	const top = Math.ceil(most / step) * step;
	const y = (ns: number) => bottom - (ns / top) * (bottom - TOP);
	return {
		lines: shown.map(({ line, role }) => ({ line, role, dots: line.points.map((p) => ({ x: x(p.day_ms), y: y(p[which].ns), point: p })), bands: bandsOf(line.points, which, x, y) })),
		ticks: Array.from({ length: Math.round(top / step) + 1 }, (_, i) => ({ y: y(i * step), value: i * step })),
		change: x(t.change_ms - begins), // where its day begins
		versions: t.versions.filter((v) => v.day_ms >= first && v.day_ms < last).map((v) => ({ x: x(v.day_ms), of: v })),
		left: LEFT, right, bottom, top: TOP,
	};
}

/** Versions whose names fit, the two of the change first. */
export function namedVersions(all: TrendChart['versions'], room: number, first: string[]): TrendChart['versions'] {
	const out: TrendChart['versions'] = [];
	for (const v of [...all.filter((a) => first.includes(a.of.version)), ...all.filter((a) => !first.includes(a.of.version)).reverse()])
		if (out.every((o) => Math.abs(o.x - v.x) >= room)) out.push(v);
	return out;
}
