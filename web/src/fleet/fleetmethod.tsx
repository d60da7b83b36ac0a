// One method over the fleet: by version, day and more, as a picture and as numbers, with a trace to each.
import { get, may } from '../api/api';
import { enough, chartOf, groupId, groupName, inOrder, LABEL, METRICS, metricNamed, namedMarks, valueOf, type Chart, type Mark, type Metric, type MetricName, type Point, type Series } from './fleetdoc';
import { alertLink, byName, Change, filterOf, NoTraces, PickBy, Stated, searchLink, Uncounted, useFleetQuery, useBy, withFilter } from './fleetparts';
import { NoRows } from './fleetfilter';
import { count, tick } from '../i18n/format';
import { Cards } from '../ui/cards';
import { Choice, Copy, MethodName, Panel, Pending, useLoad, useWidth } from '../ui/parts';
import { link, set, text } from '../ui/route';
import { SourceBox } from '../source/sourcelater';
import { tr } from '../i18n/strings/fleet';

const HIGH = 190, NAME_WIDE = 84;

const line = (marks: Mark[], of: 'p50' | 'p75' | 'p95') => marks.map((m) => `${m.x.toFixed(1)},${m[of].toFixed(1)}`).join(' ');

/** All figures of a group, shown under the pointer. */
const textOf = (metric: MetricName, g: Point) => {
	const m = g[metric]!;
	return `${groupName(g)}: p50 ${valueOf(metric, m.p50)}, p75 ${valueOf(metric, m.p75)}, p95 ${valueOf(metric, m.p95)}, ${count(m.traces)} ${m.traces === 1 ? 'trace' : 'traces'}`;
};

function Marks({ c, metric, joined }: { c: Chart; metric: MetricName; joined: boolean }) {
	return <>
		{joined && (['p95', 'p75', 'p50'] as const).map((of) => <polyline key={of} class={of} points={line(c.marks, of)} />)}
		{c.marks.map((m) => <g key={groupId(m.point)} data-mark={m.key}>
			<title>{textOf(metric, m.point)}</title>
			<rect class="catch" x={m.x - 8} width="16" y="0" height={c.bottom} />
			<line class="range" x1={m.x} x2={m.x} y1={m.p50} y2={m.p95} />
			<line class="p95" x1={m.x - 4} x2={m.x + 4} y1={m.p95} y2={m.p95} /><line class="p75" x1={m.x - 3} x2={m.x + 3} y1={m.p75} y2={m.p75} /><circle cx={m.x} cy={m.p50} r="3.5" />
		</g>)}
	</>;
}

function Picture({ by, groups, metric }: { by: string; groups: Point[]; metric: MetricName }) {
	const [ref, wide] = useWidth<HTMLDivElement>();
	const c = chartOf(by, groups, metric, wide, HIGH);
	const name = (m: Mark) => groupName(m.point).replace(/^(.{14}).+/s, '$1…');
	return (
		<div class="trend" ref={ref}>
			{wide > 0 && c.marks.length > 0 && <svg width={wide} height={HIGH} role="img" aria-label={tr('Median to p95, by {by}; the latest: {metric}. The table below has all values', { by: byName(by), metric: textOf(metric, c.marks[c.marks.length - 1].point) })}>
				{c.ticks.map((t) => <g key={t.value}><line class="tick" x1={c.left} x2={c.right} y1={t.y} y2={t.y} /><text x={c.left - 8} y={t.y + 4} text-anchor="end">{metric === 'calls' ? count(t.value) : tick(t.value)}</text></g>)}
				<Marks c={c} metric={metric} joined={by === 'version' || by === 'day'} />
				{namedMarks(c.marks, NAME_WIDE).map((m) => <text key={groupId(m.point)} x={Math.min(m.x, c.right - NAME_WIDE / 3)} y={HIGH - 6} text-anchor="middle">{name(m)}</text>)}
			</svg>}
			<p class="quiet legend">{tr.rich('{span} p50, ticks at p75 and p95{dropped}', { span: <span class="dot" aria-hidden="true" />, dropped: c.dropped > 0 && tr('; the last {marks} of {dropped} are drawn', { marks: count(c.marks.length), dropped: count(c.marks.length + c.dropped) }) })}</p>
		</div>
	);
}

function Key({ by, g }: { by: string; g: Point }) {
	const filter = filterOf(by, g);
	const shown = g.key ? g.key : <span class="quiet">{groupName(g)}</span>;
	return filter ? <a href={withFilter('/fleet/methods', { ...filter, method: text('method'), metric: text('metric'), by: 'day' })} title={tr('Only this one, by day')}>{shown}</a> : <>{shown}</>;
}

function Row({ by, g, metric, before, error, name }: { by: string; g: Point; metric: MetricName; before?: Metric; error: number; name: string }) {
	const m = g[metric];
	if (!m?.traces) return <tr data-point={g.key} data-values={g.values}><td class="anywhere"><Key by={by} g={g} /></td><td class="num quiet">{tr('0 of {of_traces}', { of_traces: count(g.of_traces) })}</td><td class="quiet" colSpan={9}>{tr('No trace has this value.')}</td></tr>;
	return (
		<tr data-point={g.key} data-values={g.values}>
			<td class="anywhere"><Key by={by} g={g} /></td>
			<td class="num">{count(m.traces)}<span class="quiet">{tr(' of {of_traces}', { of_traces: count(g.of_traces) })}</span></td>
			{([m.p50, m.p75, m.p95, m.p99, m.mean, m.max, m.sum]).map((v, i) => <td key={i} class="num">{valueOf(metric, v)}</td>)}
			<td class="num">{(by === 'version' || by === 'day') && <Change now={m.p50} before={before?.traces ? before.p50 : undefined} error={error} few={!enough(50, m.traces, before?.traces ?? 0)} />}</td>
			<td class="nowrap">{m.exemplar ? <a href={link(`/traces/${m.exemplar}?find=${encodeURIComponent(name)}`)} aria-label={tr('slowest trace of {g}', { g: groupName(g) })}>{tr('slowest trace')}</a> : <span class="quiet" title={tr('It was deleted')}>{tr('deleted')}</span>}</td>
		</tr>
	);
}

function Numbers({ by, groups, metric, error, name }: { by: string; groups: Point[]; metric: MetricName; error: number; name: string }) {
	const ordered = by === 'version' || by === 'day';
	const rows = groups.map((g, i) => <Row key={groupId(g)} by={by} g={g} metric={metric} before={ordered ? groups[i - 1]?.[metric] : undefined} error={error} name={name} />);
	return (
		<Cards>
			<thead><tr><th>{by.startsWith(LABEL) ? byName(by) : byName(by).replace(/^./, (c) => c.toUpperCase())}</th><th class="num">{tr('Traces')}</th>
				{['p50', 'p75', 'p95', 'p99', tr('Mean'), tr('Max'), tr('All')].map((s) => <th key={s} class="num">{s}</th>)}
				<th class="num">{ordered ? 'Δ p50' : <span class="hidden">{tr('Change')}</span>}</th><th><span class="hidden">{tr('Trace')}</span></th></tr></thead>
			<tbody>{ordered ? rows.reverse() : rows}</tbody>
		</Cards>
	);
}

export function FleetMethod({ name }: { name: string }) {
	const fleet = useFleetQuery();
	const { by, bys } = useBy();
	const metric = metricNamed(text('metric'));
	const [, label, meaning] = METRICS.find(([m]) => m === metric)!;
	const load = useLoad(`method ${name} ${by} ${metric} ${fleet.key}`, (signal) => get<Series>('/api/v1/fleet/method', { ...fleet.params, name, by, metrics: metric }, signal));
	const v = load.value?.by === by ? load.value : null; // another question's groups have other keys
	const groups = v && v.groups.some((g) => g[metric]) ? inOrder(by, v.groups) : [];
	const none = !groups.some((g) => g[metric]?.traces);
	const newest = may.admin && metric === 'self' && by === 'version' ? groups[groups.length - 1]?.self : undefined;
	return (
		<Panel title={tr('One method')} id="method" aside={<>
			<Choice label={tr('Metric')} value={metric} options={METRICS.map(([m, label]) => [m, label])} onPick={(m) => set({ metric: m === 'self' ? null : m }, true)} />
			<PickBy by={by} bys={bys} />
		</>}>
			<p class="verdict mono"><MethodName name={name} /></p>
			<p class="row"><a href={searchLink(name)}>{tr('Its calls in all traces')}</a><a href={withFilter('/fleet/flame', { method: name })}>{tr('Flame graph')}</a><a href={withFilter('/fleet/methods')}>{tr('All methods')}</a><Copy text={name} label={tr('Copy name')} />{newest && <a href={alertLink(text('scenario'), text('app'), 95, newest.p95, name)}>{tr('Alert')}</a>}
				<span class="quiet">{tr('{label}: {meaning}.', { label, meaning })}</span></p>
			{load.error ? <Pending of={load} what="" /> : !v ? <Pending of={{ ...load, value: null, busy: true }} what={tr('Loading the method')} /> : v.traces === 0 ? <NoTraces /> : none ? <NoRows unmatched={tr('No trace that matches the filter has this value.')} none={tr('None of these traces has this value.')} />
				: <div class={load.busy ? 'stale' : ''}>
					<Picture by={by} groups={groups} metric={metric} />
					<Numbers by={by} groups={groups} metric={metric} error={v.error} name={name} />
					<Uncounted n={v.not_counted} />
					<Stated error={v.error} more={tr('Percentiles are over traces. Overloads of a name are counted together.')} />
				</div>}
			<SourceBox method={name} app={text('app')} head={text('version_name')} />
		</Panel>
	);
}
