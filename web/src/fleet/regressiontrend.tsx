// The days around a regression: median or p95 with its interval, the change and the versions; the same as a table.
import { useState } from 'preact/hooks';
import { get } from '../api/api';
import { count, duration, tick } from '../i18n/format';
import { interval } from '../i18n/interval';
import { Cards } from '../ui/cards';
import { Choice, Pending, useLoad, useWidth } from '../ui/parts';
import { tr } from '../i18n/strings/regressions';
import { dayOf as day } from './triage';
import { namedVersions, trendChart, type Drawn, type Quantile, type Trend, type TrendChart, type TrendPoint, type Which } from './trenddoc';

const HIGH = 220, NAME_WIDE = 70, DAY_WIDE = 78;
const WORDS: Record<Which, string> = { p50: tr('median'), p95: 'p95' };

const between = (q: Quantile) => (q.low_ns === null ? tr('too few traces for an interval') : tr('95 % confidence interval {interval}', { interval: interval(duration(q.low_ns), duration(q.high_ns!)) }));
const nameOf = (l: Drawn) => (l.role === 'all' ? tr('all versions') : l.line.version || tr('no version'));
const textOf = (l: Drawn, p: TrendPoint, which: Which) => `${day(p.day_ms)}, ${nameOf(l)}: ${WORDS[which]} ${duration(p[which].ns)}, ${between(p[which])}, ${tr.many(p.traces, '{n} trace', '{n} traces')}`;

function Line({ l, which }: { l: Drawn; which: Which }) {
	return (
		<g class={`of-${l.role}`} data-line={nameOf(l)}>
			{l.bands.map((b) => <polygon key={b} class="band" points={b} />)}
			<polyline points={l.dots.map((d) => `${d.x.toFixed(1)},${d.y.toFixed(1)}`).join(' ')} />
			{l.dots.map((d) => l.role === 'base' ? <rect key={d.x} x={d.x - 3} y={d.y - 3} width="6" height="6"><title>{textOf(l, d.point, which)}</title></rect> : <circle key={d.x} cx={d.x} cy={d.y} r="3.5"><title>{textOf(l, d.point, which)}</title></circle>)}
		</g>
	);
}

function Axes({ c, t, base, head }: { c: TrendChart; t: Trend; base: string; head: string }) {
	const dots = c.lines.flatMap((l) => l.dots).sort((a, b) => a.x - b.x);
	const days = dots.filter((_, i) => i === 0 || i === dots.length - 1).filter((d, i, all) => i === 0 || d.x - all[0].x > DAY_WIDE);
	return <>
		{c.ticks.map((k) => <g key={k.value}><line class="tick" x1={c.left} x2={c.right} y1={k.y} y2={k.y} /><text x={c.left - 8} y={k.y + 4} text-anchor="end">{tick(k.value)}</text></g>)}
		{days.map((d, i) => <text key={d.x} x={i ? Math.min(d.x, c.right - DAY_WIDE / 2) : Math.max(d.x, c.left + DAY_WIDE / 2)} y={c.bottom + 30} text-anchor="middle">{day(d.point.day_ms)}</text>)}
		{c.versions.map((v) => <path key={v.of.version} class="version" d={`M${v.x.toFixed(1)} ${c.bottom}v6`}><title>{tr('{version}: first on {day_ms}', { version: v.of.version || tr('no version'), day_ms: day(v.of.day_ms) })}</title></path>)}
		{namedVersions(c.versions, NAME_WIDE, [base, head].filter(Boolean)).map((v) => <text key={v.of.version} class="name" x={Math.min(Math.max(v.x, c.left + NAME_WIDE / 3), c.right - NAME_WIDE / 3)} y={c.bottom + 16} text-anchor="middle">{(v.of.version || 'none').slice(0, 11)}</text>)}
		<line class="change" x1={c.change} x2={c.change} y1={c.top - 4} y2={c.bottom} /><text class="name" x={Math.min(c.change + 5, c.right - 90)} y={c.top - 6}>{tr('change, {change_ms}', { change_ms: day(t.change_ms) })}</text>
	</>;
}

function Picture({ t, which, base, head, id }: { t: Trend; which: Which; base: string; head: string; id: string }) {
	const [ref, wide] = useWidth<HTMLDivElement>();
	const c = trendChart(t, which, wide, HIGH);
	const last = c.lines.map((l) => { const d = l.dots[l.dots.length - 1]; return tr('{l} on {day_ms} {ns}', { l: nameOf(l), day_ms: day(d.point.day_ms), ns: duration(d.point[which].ns) }); });
	return (
		<div class="trendline" ref={ref}>
			{wide > 0 && <svg width={wide} height={HIGH} role="img" aria-labelledby={`title-${id} desc-${id}`}>
				<title id={`title-${id}`}>{tr('The {words} by day, {since_ms} to {until_ms}', { words: WORDS[which], since_ms: day(t.since_ms), until_ms: day(t.until_ms - 1) })}</title>
				<desc id={`desc-${id}`}>{tr('It changed on {change_ms}. The last days: {last}. The table below has all days.', { change_ms: day(t.change_ms), last: last.join('; ') })}</desc>
				<Axes c={c} t={t} base={base} head={head} />
				{c.lines.map((l) => <Line key={l.role} l={l} which={which} />)}
			</svg>}
			<p class="quiet legend">{tr.rich('{lines}the {words} of each day; bands are 95 % confidence intervals where a day has enough traces; marks below are first days of versions{versions}', { lines: c.lines.map((l) => <span key={l.role} class={`of-${l.role}`}><span class="dot" aria-hidden="true" /> {nameOf(l)} </span>), words: WORDS[which], versions: t.versions_total > t.versions.length && tr(' ({versions} of {versions_total})', { versions: count(t.versions.length), versions_total: count(t.versions_total) }) })}</p>
		</div>
	);
}

const cell = (q: Quantile) => <>{duration(q.ns)}{q.low_ns !== null && <span class="quiet">{' '}{interval(duration(q.low_ns), duration(q.high_ns!))}</span>}</>;

function Numbers({ t }: { t: Trend }) {
	const c = trendChart(t, 'p50', 1, 1);
	const rows = c.lines.flatMap((l) => l.line.points.map((p) => ({ l, p }))).sort((a, b) => b.p.day_ms - a.p.day_ms);
	return (
		<details class="numbers"><summary>{tr('The days as a table')}</summary>
			<Cards>
				<thead><tr><th>{tr('Day')}</th><th>{tr('Version')}</th><th class="num">{tr('Traces')}</th><th class="num">{tr('Median')}</th><th class="num">p95</th></tr></thead>
				<tbody>{rows.map(({ l, p }) => <tr key={`${p.day_ms} ${l.role}`} data-day={day(p.day_ms)}>
					<td class="nowrap">{day(p.day_ms)}{p.day_ms === t.change_ms && <span class="quiet">{' '}{tr('change')}</span>}</td><td class="anywhere">{nameOf(l)}</td><td class="num">{count(p.traces)}</td><td class="num">{cell(p.p50)}</td><td class="num">{cell(p.p95)}</td>
				</tr>)}</tbody>
			</Cards>
		</details>
	);
}

export function RegressionTrend({ id, base, head, percentile }: { id: string; base: string; head: string; percentile: number }) {
	const load = useLoad(`trend ${id}`, (signal) => get<Trend>(`/api/v1/regressions/${id}/trend`, {}, signal));
	const [which, pick] = useState<Which>(percentile === 50 ? 'p50' : 'p95');
	const t = load.value;
	const none = t && t.lines.every((l) => l.points.length === 0);
	return (
		<div class="regressiontrend" data-trend>
			<Pending of={load} what={tr('Loading its days')} />
			{none && <p class="quiet">{tr('No counted traces for these days.')}</p>}
			{t && !none && <>
				<div class="row"><Choice label={tr('Percentile')} value={which} options={[['p50', tr('Median')], ['p95', 'p95']]} onPick={(w) => pick(w as Which)} /><span class="quiet">{t.metric === 'self' ? tr('self time per trace') : tr('duration of a trace')}</span></div>
				<Picture t={t} which={which} base={base} head={head} id={id} />
				{!t.complete && <p class="quiet">{tr('The time limit was reached: some days are missing.')}</p>}
				<Numbers t={t} />
			</>}
		</div>
	);
}
