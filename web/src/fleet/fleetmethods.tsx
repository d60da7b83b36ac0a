// Methods over many traces: one statistic of each metric, sorted by one of them; and one method.
import { distinctions, signature } from '../api/overloads';
import { get } from '../api/api';
import { METRICS, metricNamed, STATS, statNamed, valueOf, type FleetMethodRow, type FleetMethods, type MetricName, type StatName } from './fleetdoc';
import { FleetCallers } from './fleetcallers';
import { FleetMethod } from './fleetmethod';
import { FleetFilter } from './fleetfilter';
import { methodLink, Narrowed, MissingMappings, NoTraces, OnThread, Stated, useFleetQuery, withFilter } from './fleetparts';
import { count, percent } from '../i18n/format';
import { Cards } from '../ui/cards';
import { Choice, MethodName, Panel, Pending, Sorted, useLoad } from '../ui/parts';
import { link, number, set, text } from '../ui/route';
import { tr } from '../i18n/strings/fleet';
import { several } from '../api/traces';

const PAGE = 100, MOST = 1000;

/** The sort order in the address. */
function useSort(): { metric: MetricName; stat: StatName; order: 'asc' | 'desc' } {
	return { metric: metricNamed(text('sort')), stat: statNamed(text('stat')), order: text('order') === 'asc' ? 'asc' : 'desc' };
}

function Cell({ m, metric, stat, most }: { m: FleetMethodRow; metric: MetricName; stat: StatName; most: number }) {
	const of = m[metric];
	if (!of?.traces) return <td class="num quiet">–</td>;
	return <td class={`num ${most ? 'share' : ''}`}>{most > 0 && <span class="bar" style={{ width: `${(100 * of[stat]) / most}%` }} />}{valueOf(metric, of[stat])}</td>;
}

function Row({ m, distinction = '', most }: { m: FleetMethodRow; distinction?: string; most: number }) {
	const { metric, stat } = useSort();
	const worst = m[metric]?.exemplar;
	return (
		<tr data-method={m.name}>
			<td class="name"><a href={methodLink(m.name, { metric: metric === 'self' ? '' : metric, thread: text('thread') })} title={signature(m.descriptor) || undefined}><MethodName name={m.name + distinction} /></a>{!m.resolved && m.build_id && <span class="quiet">{' '}{tr('of build {build_id}', { build_id: m.build_id })}</span>}</td>
			{METRICS.map(([of]) => <Cell key={of} m={m} metric={of} stat={stat} most={of === metric ? most : 0} />)}
			<td class="num" title={tr('{traces} traces have it', { traces: count(m[metric]?.traces ?? 0) })}>{percent(m.share)}</td>
			<td class="nowrap">{worst && <a href={link(`/traces/${worst}?find=${encodeURIComponent(m.name)}`)} aria-label={tr('slowest trace with {name}', { name: m.name })}>{tr('slowest trace')}</a>}</td>
		</tr>
	);
}

function Table({ v, rows }: { v: FleetMethods; rows: number }) {
	const { metric, stat, order } = useSort();
	const most = Math.max(0, ...v.methods.map((m) => m[metric]?.[stat] ?? 0));
	const overloads = distinctions(v.methods.map((m) => m.name), v.methods.map((m) => m.descriptor));
	return <>
		<p class="quiet" role="status">{tr('{methods} of {traces}{first}.', { methods: several(v.total, 'method'), traces: several(v.traces, 'trace'), first: v.total > v.methods.length && tr(', the first {methods}', { methods: count(v.methods.length) }) })}</p>
		<MissingMappings of={v.methods} />
		<Cards of="methods">
			<thead><tr><th>{tr('Method')}</th>{METRICS.map(([of, label, hint]) => <Sorted key={of} by={of} label={label} hint={hint} now={{ sort: metric, order }} standard="self" />)}
				<th class="num">{tr('In traces')}</th><th><span class="hidden">{tr('Trace')}</span></th></tr></thead>
			<tbody>{v.methods.map((m, i) => <Row key={`${m.name} ${m.descriptor} ${m.build_id}`} m={m} distinction={overloads.get(i)} most={most} />)}</tbody>
		</Cards>
		{v.total > v.methods.length && (rows < MOST ? <p><button onClick={() => set({ rows: Math.min(MOST, rows + PAGE) })}>{tr('Show more')}</button></p>
			: <p class="quiet">{tr('More than {most} are not shown: filter by name.', { most: count(MOST) })}</p>)}
		<Stated error={v.error} more={tr('Where a value is missing, no trace has it.')} />
	</>;
}

function List() {
	const fleet = useFleetQuery();
	const { metric, stat, order } = useSort();
	const rows = Math.min(MOST, Math.max(PAGE, number('rows') ?? PAGE));
	const q = text('q');
	const regex = text('regex') === '1';
	const thread = text('thread');
	const waits = text('waits') === '1';
	const question = { ...(!waits && { waits: 'false' }), sort: `${stat}_${metric}`, order, q, limit: rows, ...(regex && { regex: 1 }), ...(thread && { thread }), metrics: METRICS.map(([m]) => m).join(',') };
	const load = useLoad(`methods ${JSON.stringify(question)} ${fleet.key}`, (signal) => get<FleetMethods>('/api/v1/fleet/methods', { ...fleet.params, ...question }, signal));
	const v = load.value;
	return (
		<Panel title={tr('Methods of all traces')} id="methods" aside={<>
			<Choice label={tr('Statistic over traces')} value={stat} options={STATS} onPick={(s) => set({ stat: s === 'p95' ? null : s, rows: null }, true)} />
			<label class="inline">{tr('Find')}{' '}<input type="search" name="q" value={q} onInput={(e) => set({ q: e.currentTarget.value, rows: null })} /></label>
			{(thread || v?.by_thread) && <OnThread />}
			<label class="inline" title={tr('Methods that only wait: for messages, locks or timers')}><input type="checkbox" name="waits" checked={waits} onChange={(e) => set({ waits: e.currentTarget.checked ? 1 : null, rows: null }, true)} />{' '}{tr('include waits')}</label>
			<label class="inline"><input type="checkbox" name="regex" checked={regex} onChange={(e) => set({ regex: e.currentTarget.checked ? 1 : null }, true)} />{' '}{tr('regex')}</label>
		</>}>
			<Pending of={load} what={tr('Loading methods')} />
			{v && !load.error && v.methods.length === 0 && (v.traces === 0 ? <NoTraces /> : <p class="quiet">{tr('No method matches this name.')}</p>)}
			{v && !load.error && v.methods.length > 0 && <div class={load.busy ? 'stale' : ''}><Table v={v} rows={rows} /></div>}
		</Panel>
	);
}

export function MethodsPage() {
	const method = text('method');
	return <>
		<div class="row head"><h1><a href={withFilter('/fleet')}>{tr('Fleet')}</a> · {method ? <a href={withFilter('/fleet/methods')}>{tr('Methods')}</a> : tr('Methods')}</h1><FleetFilter /><Narrowed /></div>
		{method ? <><FleetMethod key={method} name={method} /><FleetCallers key={`callers ${method}`} name={method} /></> : <List />}
	</>;
}
