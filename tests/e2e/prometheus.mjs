/*
 * prometheus.mjs - a strict reader of Prometheus' text format 0.0.4, and the checks of its naming rules.
 */
import assert from 'node:assert/strict';

const NAME = /^[a-z_][a-z0-9_]*$/;
const SAMPLE = /^([a-z_][a-z0-9_]*)(?:\{(.*)\})? (-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf|NaN))$/;
const LABEL = /([a-z_][a-z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/y;

function labelsOf(text) {
	const labels = {};
	LABEL.lastIndex = 0;
	for (let at = 0; at < text.length; at = LABEL.lastIndex) {
		LABEL.lastIndex = at;
		const m = LABEL.exec(text);
		assert.ok(m, `labels: ${text}`);
		assert.ok(!(m[1] in labels), `label twice: ${text}`);
		labels[m[1]] = m[2];
	}
	return labels;
}

/* The family that a sample belongs to: histograms have three kinds. */
function familyOf(families, name) {
	const base = name.replace(/_(bucket|sum|count)$/, '');
	return families.get(name) ?? (families.get(base)?.type === 'histogram' ? families.get(base) : undefined);
}

/* Map of families: { name, type, help, samples: [{ name, labels, value }] }. Throws if the text is invalid. */
export function parse(text) {
	assert.ok(text.endsWith('\n') && !text.includes('\r'), 'lines end with a line feed');
	const families = new Map();
	const seen = new Set();
	let help;
	let current;
	for (const line of text.slice(0, -1).split('\n')) {
		let m;
		if ((m = /^# HELP (\S+) (.+)$/.exec(line))) {
			help = { name: m[1], text: m[2] };
		} else if ((m = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line))) {
			assert.ok(NAME.test(m[1]), m[1]);
			assert.ok(!families.has(m[1]), `${m[1]} twice`);
			assert.equal(help?.name, m[1], `HELP stands before TYPE of ${m[1]}`);
			families.set(m[1], (current = { name: m[1], type: m[2], help: help.text, samples: [] }));
		} else {
			m = SAMPLE.exec(line);
			assert.ok(m, `no sample: ${line}`);
			assert.equal(familyOf(families, m[1]), current, `samples of a metric stand together: ${line}`);
			const sample = { name: m[1], labels: labelsOf(m[2] ?? ''), value: Number(m[3].replace('Inf', 'Infinity')) };
			const key = m[1] + JSON.stringify(Object.entries(sample.labels).sort());
			assert.ok(!seen.has(key), `series twice: ${line}`);
			seen.add(key);
			current.samples.push(sample);
		}
	}
	return families;
}

function lintHistogram(f) {
	const series = Map.groupBy ? Map.groupBy(f.samples, keyOf) : group(f.samples);
	for (const [key, samples] of series) {
		const buckets = samples.filter((s) => s.name.endsWith('_bucket'));
		const bounds = buckets.map((b) => Number(b.labels.le.replace('+Inf', 'Infinity')));
		assert.deepEqual(bounds, [...bounds].sort((a, b) => a - b), key);
		assert.equal(bounds.at(-1), Infinity, key);
		for (let i = 1; i < buckets.length; i++) assert.ok(buckets[i].value >= buckets[i - 1].value, `${key} is cumulative`);
		assert.equal(samples.find((s) => s.name.endsWith('_count')).value, buckets.at(-1).value, key);
		assert.ok(samples.some((s) => s.name.endsWith('_sum')), key);
	}
}

function keyOf(s) {
	const { le, ...rest } = s.labels;
	return JSON.stringify(rest);
}

function group(samples) {
	const all = new Map();
	for (const s of samples) all.set(keyOf(s), [...(all.get(keyOf(s)) ?? []), s]);
	return all;
}

/* The rules of `promtool check metrics`, and ours: the prefix, few labels. */
export function lint(families) {
	for (const f of families.values()) {
		assert.ok(f.name.startsWith('tracewell_'), f.name);
		assert.ok(f.help.length > 2, `${f.name} has no help`);
		assert.equal(f.name.endsWith('_total'), f.type === 'counter', `${f.name}: _total is for counters, and for all of them`);
		assert.ok(!/_(ms|us|ns|milliseconds|minutes|hours|days|kb|mb|kilobytes|megabytes)(_|$)/.test(f.name), `${f.name}: base units`);
		assert.ok(!/_(bucket|sum|count)$/.test(f.name), `${f.name}: that ending is a histogram's`);
		assert.ok(!new RegExp(`_${f.type}(_|$)`).test(f.name), `${f.name} names its type`);
		for (const s of f.samples) assert.ok(Object.keys(s.labels).length <= 3, f.name);
		if (f.type === 'histogram') lintHistogram(f);
		if (f.type === 'counter') for (const s of f.samples) assert.ok(s.value >= 0, f.name);
	}
}

/* The value of one series, undefined when there is none. */
export function value(families, name, labels = {}) {
	const samples = [...families.values()].flatMap((f) => f.samples).filter((s) => s.name === name);
	return samples.find((s) => Object.entries(labels).every(([k, v]) => s.labels[k] === v))?.value;
}
