// The numbers of GET /metrics, in Prometheus' text form, and what can be read from a histogram.
export interface Sample {
	name: string;
	labels: Record<string, string>;
	value: number;
}

const LINE = /^(\w+)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

export function parseMetrics(text: string): Sample[] {
	return text.split('\n').flatMap((line) => {
		const [, name, labels = '', value] = LINE.exec(line) ?? [];
		return name ? [{ name, value: Number(value), labels: Object.fromEntries([...labels.matchAll(LABEL)].map(([, k, v]) => [k, v.replace(/\\(.)/g, (_, c: string) => (c === 'n' ? '\n' : c))])) }] : [];
	});
}

/** The sum of a metric over all its labels; null if the server has none of that name. */
export function sumOf(all: Sample[], name: string): number | null {
	const mine = all.filter((s) => s.name === name);
	return mine.length ? mine.reduce((sum, s) => sum + s.value, 0) : null;
}

/** The values of a metric by one of its labels. */
export function byLabel(all: Sample[], name: string, label: string): [string, number][] {
	return all.filter((s) => s.name === name).map((s) => [s.labels[label] ?? '', s.value]);
}

export interface Timed {
	method: string;
	route: string;
	count: number;
	mean_s: number;
	p95_s: number; // at most: the limit of the bucket that has it; Infinity above the last
	over: number; // requests above `slow_s`
}

/** Durations of requests by route, those with the most slow requests first. */
export function timedRoutes(all: Sample[], slow_s: number): Timed[] {
	const routes = new Map<string, Timed & { buckets: [number, number][]; sum: number }>();
	for (const { name, labels: { method = '', route = '', le = '' }, value } of all) {
		if (!name.startsWith('tracewell_request_seconds_')) continue;
		const key = `${method} ${route}`;
		const one = routes.get(key) ?? { method, route, count: 0, mean_s: 0, p95_s: 0, over: 0, buckets: [], sum: 0 };
		routes.set(key, one);
		if (name.endsWith('_count')) one.count = value;
		else if (name.endsWith('_sum')) one.sum = value;
		else one.buckets.push([le === '+Inf' ? Infinity : Number(le), value]);
	}
	return [...routes.values()].filter((r) => r.count > 0).map(({ buckets, sum, ...r }) => {
		buckets.sort(([a], [b]) => a - b);
		const below = Math.max(0, ...buckets.filter(([le]) => le <= slow_s).map(([, n]) => n));
		return { ...r, mean_s: sum / r.count, p95_s: buckets.find(([, n]) => n >= 0.95 * r.count)?.[0] ?? Infinity, over: r.count - below };
	}).sort((a, b) => b.over - a.over || b.p95_s - a.p95_s || b.mean_s - a.mean_s);
}
