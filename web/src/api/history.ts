// Groups the samples of GET /metrics/history into bars of 15 minutes.
import { DAY_MS, HOUR_MS } from '../i18n/format';

export interface MetricHistory { step_ms: number; at_ms: number[]; series: Record<string, number[]> }

export interface Bar { from_ms: number; value: number | null } // null: no sample, the server did not run

export const BARS = 96;
const BAR_MS = DAY_MS / BARS;
const FULL_MS = DAY_MS - HOUR_MS; // the server stores a day of samples, less when there are gaps

/** The samples begin with the server's start, when its counters were 0. */
export const isFromStart = (h: MetricHistory): boolean => h.at_ms.length > 0 && h.at_ms[h.at_ms.length - 1] - h.at_ms[0] < FULL_MS;

/** Of a series' last day: a counter's increase in each bar, or the extreme of a gauge. */
export function barsOf(h: MetricHistory, name: string, kind: 'counter' | 'highest' | 'lowest'): Bar[] {
	const values = h.series[name] ?? [];
	const end = h.at_ms.at(-1) ?? 0;
	const bars = Array.from({ length: BARS }, (_, i): Bar => ({ from_ms: end - DAY_MS + i * BAR_MS, value: null }));
	values.forEach((v, i) => {
		const bar = bars[Math.min(BARS - 1, Math.floor((h.at_ms[i] - bars[0].from_ms) / BAR_MS))];
		if (!bar) return;
		if (kind === 'counter') bar.value = (bar.value ?? 0) + (i > 0 ? Math.max(0, v - values[i - 1]) : isFromStart(h) ? v : 0);
		else bar.value = bar.value === null ? v : kind === 'highest' ? Math.max(bar.value, v) : Math.min(bar.value, v);
	});
	return bars;
}

/** How much a counter increased in the last `ms`. */
export function increase(h: MetricHistory, name: string, ms: number): number {
	const values = h.series[name] ?? [];
	const since = (h.at_ms.at(-1) ?? 0) - ms;
	const first = h.at_ms.findIndex((at) => at >= since);
	return values.length === 0 || first < 0 ? 0 : values[values.length - 1] - (h.at_ms[0] >= since ? 0 : values[Math.max(0, first - 1)]);
}

/** The bar with the highest or lowest value; the latest of equal ones. */
export function extreme(bars: Bar[], kind: 'highest' | 'lowest'): Bar | null {
	return bars.reduce<Bar | null>((best, b) => (b.value !== null && (best?.value == null || (kind === 'highest' ? b.value >= best.value : b.value <= best.value)) ? b : best), null);
}
