// The panels of the fleet's overview.
import { useEffect } from 'preact/hooks';
import { api, get, may, type Stage } from '../api/api';
import { manage } from '../api/manage';
import { stageName } from '../api/stages';
import { KINDS, type Groups } from './anrgroups';
import { enough, groupId, groupName, LABEL, scenarioRows, uncounted, type Counts, type FleetMethods, type Scenario, type ScenarioGroup, type Scenarios } from './fleetdoc';
import { dayOf, decisionOf, durationName } from './triage';
import { alertLink, byName, Change, filterOf, methodLink, MissingMappings, NoTraces, PickBy, Stated, Uncounted, useFleetQuery, useBy, withFilter } from './fleetparts';
import { namedParams, processed, span, Trend, Ungrouped, useDays } from './fleetfilter';
import { count, duration, percent, signed } from '../i18n/format';
import { interval } from '../i18n/interval';
import { serverText } from '../i18n/servertext';
import { PROCESSING_MS, usePolling } from '../ui/polling';
import { Cards } from '../ui/cards';
import { MethodName, Panel, Pending, useLoad, type Loaded } from '../ui/parts';
import { totalOf } from '../api/traces';
import { link, set, text } from '../ui/route';
import { tr } from '../i18n/strings/fleet';

const LATEST = 3, LARGEST = 8, SCENARIOS = 6, ROWS = 5, METHODS = 8;

/* --- arrived traces --- */

/** Filters of lists and rules, which do not support device classes. */
function listedParams(): Record<string, string> {
	const { class: _, ...params } = namedParams();
	return params;
}

function useListed(): { params: Record<string, string>; key: string; since: number } {
	const params = listedParams();
	const { first } = span(useDays());
	return { params, key: JSON.stringify([params, first]), since: first };
}

async function intake(p: Record<string, string>, since: number, signal: AbortSignal): Promise<Counts> {
	const of = (state: string) => api.traces({ ...p, state, recorded_since: since, limit: 1 }, signal);
	const [all, queued, decoding, failed, ready, archived, fleet] = await Promise.all([of(''), of('queued'), of('decoding'), of('failed'), of('ready'), of('archived'),
		get<Scenarios>('/api/v1/fleet/scenarios', { ...p, since, by: 'all' }, signal)]);
	return { all: all.total, queued: queued.total, decoding: decoding.total, failed: failed.total, done: ready.total + archived.total, counted: fleet.traces,
		capped: { all: all.total_is_capped, queued: queued.total_is_capped, decoding: decoding.total_is_capped, failed: failed.total_is_capped, done: ready.total_is_capped || archived.total_is_capped } };
}

function Fact({ name, n, capped = false, bad, to }: { name: string; n: number; capped?: boolean; bad?: boolean; to?: string }) {
	const shown = <span class={bad && n > 0 ? 'badtext' : ''}>{totalOf({ total: n, total_is_capped: capped })}</span>;
	return <div><dt>{name}</dt><dd>{to && n > 0 ? <a href={to}>{shown}</a> : shown}</dd></div>;
}

/** Lists the parts of the filter that a panel does not support. */
function Beyond({ of }: { of: string[] }) {
	const names: Record<string, string> = { class: tr('devices'), label: tr('label'), os: tr('system'), build_id: tr('build') };
	const beyond = of.filter((k) => text(k)).map((k) => names[k]);
	return beyond.length ? <p class="quiet">{tr('Not filtered by {beyond}.', { beyond: beyond.join(tr(' and ')) })}</p> : null;
}

/** Ready traces that are missing below, and why; nothing when none is. */
function Derived({ stages }: { stages: Stage[] }) {
	const parts = stages.flatMap((x) => {
		const name = stageName(x.stage);
		return [...(x.waiting ? [`${name} ${count(x.waiting)}`] : []),
			...x.postponed.map((p) => tr('{name} {n} postponed ({reason})', { name, n: count(p.traces), reason: serverText(p.message) }))];
	});
	return parts.length ? <p class="quiet" data-stages>{tr('Traces still to process: {parts}.', { parts: parts.join(', ') })}</p> : null;
}

/** Whether the numbers below are of everything that was sent. */
export function Intake() {
	const { params, key, since } = useListed();
	const load = useLoad(`intake ${key}`, (signal) => Promise.all([intake(params, since, signal), manage.stages(signal)]));
	const [v, { stages } = { stages: [] }] = load.value ?? [];
	const processing = !!(v?.queued || v?.decoding || stages.some((x) => x.waiting));
	usePolling(load, processing && PROCESSING_MS);
	useEffect(() => () => void (processing && processed.value++), [processing]); // it ended
	const list = (state: string) => link(`/traces?${new URLSearchParams({ ...params, recorded_since: String(since), ...(state && { state }) })}`);
	return (
		<Panel title={tr('Received traces')} id="intake">
			<Pending of={load} what={tr('Counting traces')} />
			{v && !load.error && <dl class="facts" data-counts>
				<Fact name={tr('Traces')} n={v.all} capped={v.capped?.all} to={list('')} />
				<Fact name={tr('Waiting')} n={v.queued} capped={v.capped?.queued} to={list('queued')} /><Fact name={tr('Decoding')} n={v.decoding} capped={v.capped?.decoding} to={list('decoding')} />
				<Fact name={tr('Failed')} n={v.failed} capped={v.capped?.failed} bad to={list('failed')} />
				<Fact name={tr('Included below')} n={v.counted} />
				{uncounted(v) > 0 && <Fact name={tr('ANR reports and pending')} n={uncounted(v)} />}
			</dl>}
			{v && v.all === 0 && v.counted === 0 && <p class="quiet">{tr.rich('No traces for this time range and filter. {link}', { link: <a href={link('/')}>{tr('How to send a trace')}</a> })}</p>}
			<Derived stages={stages} />
			<Beyond of={['class', 'label']} />
		</Panel>
	);
}

/* --- scenarios --- */

/** From the median to p95, p75 marked, of the longest of its scenario. */
function Spread({ g, most }: { g: ScenarioGroup; most: number }) {
	const d = g.duration_ns;
	const at = (v: number) => `${most ? (100 * v) / most : 0}%`;
	return (
		<svg class="spread" width="100%" height="14" role="img" aria-label={`p50 ${duration(d.p50)}, p75 ${duration(d.p75)}, p95 ${duration(d.p95)}`}>
			<line class="rail" x1="0" x2="100%" y1="7" y2="7" /><line x1={at(d.p50)} x2={at(d.p95)} y1="7" y2="7" />
			<circle cx={at(d.p50)} cy="7" r="3.5" /><line x1={at(d.p75)} x2={at(d.p75)} y1="3" y2="11" /><line x1={at(d.p95)} x2={at(d.p95)} y1="2" y2="12" />
		</svg>
	);
}

function Exemplar({ id, children, what }: { id: string | null; children: string; what: string }) {
	return id ? <a href={link(`/traces/${id}`)} title={what}>{children}</a> : <>{children}</>;
}

/** The methods of a group's traces. */
function Group({ s, g, by }: { s: Scenario; g: ScenarioGroup; by: string }) {
	const shown = g.key || <span class="quiet">{groupName(g)}</span>;
	const filter = filterOf(by, g);
	return s.scenario && filter ? <a href={withFilter('/fleet/methods', { scenario: s.scenario, ...filter })} title={tr('Methods of these traces')}>{shown}</a> : <>{shown}</>;
}

/** The list of a scenario's traces with the filter of this page, the slowest first; of one group with `more`. Classes of devices are not a filter of the list. */
function listLink(s: Scenario, since: number, more: Record<string, string> = {}): string {
	const label = text('label');
	return link(`/traces?${new URLSearchParams({ ...listedParams(), ...(label && { label }), recorded_since: String(since), scenario: s.scenario, ...more, sort: 'duration' })}`);
}

function Version({ s, i, error, by, slower }: { s: Scenario; i: number; error: number; by: string; slower: Regression[] }) {
	const g = s.versions[i];
	const d = g.duration_ns;
	const { first } = span(useDays());
	const before = by === 'version' || by === 'day' ? s.versions[i + 1]?.duration_ns : undefined;
	const older = by === 'version' ? s.versions[i + 1]?.key : '';
	const to = older && g.key ? withFilter('/fleet/compare', { a: older, b: g.key, scenario: s.scenario, version_name: '', build_id: '' }) : undefined;
	const only = filterOf(by, g);
	const its = s.scenario && only && !only.class && !text('class') ? listLink(s, first, only) : '';
	const changed = (percentile: 50 | 95, p: 'p50' | 'p95') => {
		const open = slower.filter((r) => older && r.scenario === s.scenario && r.base === older && r.head === g.key && r.percentile === percentile);
		return open.length === 1 ? <OpenRegression r={open[0]} />
			: <Change now={d[p]} before={before?.[p]} error={error} few={!enough(percentile, d.traces, before?.traces ?? 0)} to={to} />;
	};
	return (
		<tr data-scenario={s.scenario} data-version={g.key} data-values={g.values} class={i && by === 'version' ? 'older' : 'latest'}>
			{i === 0 && <th scope="rowgroup" rowSpan={s.versions.length} class="anywhere">{s.scenario ? <a href={listLink(s, first)} title={tr('Its traces')}>{s.scenario}</a> : <span class="quiet">{tr('no scenario')}</span>}
				{may.admin && by === 'version' && <p class="quiet"><a href={alertLink(s.scenario, text('app'), 95, d.p95)} aria-label={tr('Alert on {scenario}', { scenario: s.scenario || tr('no scenario') })}>{tr('Alert')}</a></p>}
				{s.older > 0 && <p class="quiet">{by === 'version' ? tr.many(s.older, '1 more version', '{n} more versions') : tr.many(s.older, '1 more row', '{n} more rows')}</p>}</th>}
			<td class="anywhere"><Group s={s} g={g} by={by} /></td>
			<td class="num"><Exemplar id={g.exemplars.p50} what={tr('A trace at the median')}>{duration(d.p50)}</Exemplar></td>
			<td class="num">{changed(50, 'p50')}</td>
			<td class="num"><Exemplar id={g.exemplars.p75} what={tr('A trace at p75')}>{duration(d.p75)}</Exemplar></td>
			<td class="num"><Exemplar id={g.exemplars.p95} what={tr('A trace at p95')}>{duration(d.p95)}</Exemplar></td>
			<td class="num">{changed(95, 'p95')}</td>
			<td class="draw"><Spread g={g} most={s.most} /></td>
			<td class="num">{its ? <a href={its} title={tr('These traces, the slowest first')}>{count(d.traces)}</a> : count(d.traces)}</td>
			<td class="nowrap">{g.exemplars.max && <a href={link(`/traces/${g.exemplars.max}`)} aria-label={tr('slowest trace of {scenario}, {group}', { scenario: s.scenario || tr('no scenario'), group: groupName(g) })}>{tr('slowest trace')}</a>}</td>
		</tr>
	);
}

function ScenarioTable({ rows, error, by, slower }: { rows: Scenario[]; error: number; by: string; slower: Regression[] }) {
	return (
		<Cards of="scenarios">
			<thead><tr><th>{tr('Scenario')}</th><th>{by.startsWith(LABEL) ? byName(by) : byName(by).replace(/^./, (c) => c.toUpperCase())}</th><th class="num">p50</th>
				<th class="num" title={tr('Against the previous version in this list. An open regression shows the mean change per device class and day; other changes are of all traces together. Click for the confidence interval.')}>Δ p50</th><th class="num">p75</th><th class="num">p95</th><th class="num">Δ p95</th><th>{tr('p50 to p95')}</th><th class="num">{tr('Traces')}</th><th><span class="hidden">{tr('Trace')}</span></th></tr></thead>
			{rows.map((s) => <tbody key={s.scenario}>{s.versions.map((g, i) => <Version key={groupId(g)} s={s} i={i} error={error} by={by} slower={slower} />)}</tbody>)}
		</Cards>
	);
}

export function ScenarioTimes({ open }: { open: Open }) {
	const fleet = useFleetQuery();
	const { by, bys } = useBy(['scenario']);
	const load = useLoad(`scenarios ${by} ${fleet.key}`, (signal) => get<Scenarios>('/api/v1/fleet/scenarios', { ...fleet.params, by }, signal));
	const all = text('all') === '1';
	const v = load.value?.by === by ? load.value : null; // another question's groups have other keys
	const slower = ['class', 'label', 'os', 'build_id'].some(text) ? [] : (open.value?.regressions ?? []).filter((r) => r.kind === 'slower' && !r.method); // those are of all traces
	const rows = scenarioRows(v?.groups ?? [], by === 'version' ? LATEST : LARGEST, by);
	return (
		<Panel title={tr('Scenario durations')} id="scenarios" aside={<><PickBy by={by} bys={bys} />{rows.length > SCENARIOS && <button class="small" onClick={() => set({ all: all ? null : 1 }, true)}>{all ? tr('Show fewer') : tr('Show all {rows}', { rows: count(rows.length) })}</button>}</>}>
			<Pending of={v ? load : { ...load, value: null }} what={tr('Loading scenarios')} />
			{v && !load.error && rows.length === 0 && <NoTraces />}
			{v && !load.error && rows.length > 0 && <>
				<ScenarioTable rows={all ? rows : rows.slice(0, SCENARIOS)} error={v.error} by={by} slower={slower} />
				<Uncounted n={v.not_counted} />
				<Stated error={v.error} more={by === 'version' ? tr('The latest {latest} versions by name; Δ is against the previous one.', { latest: LATEST }) : ''} />
			</>}
		</Panel>
	);
}

/* --- what got slower --- */

interface Regression { id: string; kind: 'slower' | 'new'; app: string; scenario: string; method: string; base: string; head: string; day_ms: number; percentile: number; change: number; low: number; high: number; status: string }

function Slower({ r }: { r: Regression }) {
	return (
		<tr data-regression={r.id}>
			<td class="anywhere wide"><a href={link(`/regressions?open=${encodeURIComponent(r.id)}`)}>{r.method ? <MethodName name={r.method} /> : durationName(r.scenario)}</a></td>
			<td class="num"><OpenRegression r={r} /></td>
			<td class="anywhere named">{r.scenario || <span class="quiet">{tr('no scenario')}</span>}</td>
			<td class="nowrap">{r.head || dayOf(r.day_ms)}</td>
			<td class="nowrap">{r.method && <a href={methodLink(r.method, { app: r.app, scenario: r.scenario, version_name: '', by: r.head ? 'version' : 'day' })} aria-label={tr('over {head}: {method}', { method: r.method, head: r.head ? tr('versions') : tr('days') })}>{tr('over {head}', { head: r.head ? tr('versions') : tr('days') })}</a>}</td>
		</tr>
	);
}

type Open = Loaded<{ regressions: Regression[]; next_cursor: string | null }>;

export function useOpenRegressions(): Open {
	const { params: { app = '', scenario = '', version_name = '' } } = useListed();
	return useLoad(`slower ${JSON.stringify([app, scenario, version_name, processed.value])}`, (signal) => get<{ regressions: Regression[]; next_cursor: string | null }>('/api/v1/regressions', { status: 'live', app, scenario, version_name, limit: 1000 }, signal));
}

/** The change as the list of regressions states it, so that one change has one figure. */
function OpenRegression({ r }: { r: Regression }) {
	const isNew = r.kind === 'new';
	const shown = isNew ? percent : signed;
	return <a class="slower" href={link(`/regressions?open=${encodeURIComponent(r.id)}`)} title={tr('Open regression: {kind}; 95 % confidence interval {interval}', { kind: isNew ? tr('the share of a median trace') : tr('the mean change per device class and day'), interval: interval(shown(r.low), shown(r.high)) })}>{isNew ? tr('new') : signed(r.change)}</a>;
}

export function Regressions({ open: load, few }: { open: Open; few: boolean }) {
	const all = load.value?.regressions;
	return (
		<Panel title={tr('Regressions')} id="slower" aside={<a href={link('/regressions')}>{all && all.length > ROWS ? tr('All {all}', { all: count(all.length) + (load.value!.next_cursor ? '+' : '') }) : tr('Regressions')}</a>}>
			<Pending of={load} what={tr('Loading regressions')} />
			{all && !load.error && all.length === 0 && <p class="quiet">{tr('No open regressions.')}{few && <> {tr('A regression is reported once a scenario has enough traces before and after a change.')}</>}</p>}
			{all && !load.error && all.length > 0 && <Cards>
				<thead><tr><th>{tr('Item')}</th><th class="num">{tr('Slower')}</th><th>{tr('Scenario')}</th><th>{tr('Since')}</th><th><span class="hidden">{tr('Trend')}</span></th></tr></thead>
				<tbody>{all.slice(0, ROWS).map((r) => <Slower key={r.id} r={r} />)}</tbody>
			</Cards>}
			<Beyond of={['class', 'label', 'os', 'build_id']} />
		</Panel>
	);
}

/* --- ANRs --- */

export function Anrs({ few }: { few: boolean }) {
	const fleet = useFleetQuery();
	const load = useLoad(`top anrs ${fleet.key}`, (signal) => get<Groups>('/api/v1/anr/groups', { ...fleet.params, limit: ROWS }, signal));
	const v = load.value;
	return (
		<Panel title={tr('ANRs by cause')} id="topanrs" aside={<a href={withFilter('/anrs', { label: '' })}>{v && v.total > ROWS ? tr('All {total}', { total: count(v.total) }) : tr('ANRs')}</a>}>
			<Pending of={load} what={tr('Loading ANRs')} />
			{v && !load.error && v.groups.length === 0 && <p class="quiet">{few && may.write ? tr('No ANRs. Drop a thread dump to see its cause.') : tr('No ANRs for this time range and filter.')}</p>}
			{v && !load.error && v.groups.length > 0 && <Cards>
				<thead><tr><th>{tr('Cause')}</th><th>{tr('Kind')}</th><th class="num">{tr('ANRs')}</th><th class="num">{tr('Users')}</th><th>{tr('{days} days', { days: fleet.days })}</th></tr></thead>
				<tbody>{v.groups.map((g) => <tr key={g.key} data-group={g.key}>
					<td class="anywhere wide"><a href={withFilter(`/anrs/${g.key}`, { label: '' })}>{g.name || serverText(g.title)}</a>{decisionOf(g) && <p class="quiet" data-decision>{decisionOf(g)}</p>}</td><td class="nowrap">{KINDS[g.kind] ?? g.kind}</td>
					<td class="num">{count(g.count)}</td><td class="num">{g.users ? count(g.users) : <span class="quiet">–</span>}</td><td><Trend trend={g.trend} days={fleet.days} name={g.name || serverText(g.title)} wide={90} /></td>
				</tr>)}</tbody>
			</Cards>}
			<Ungrouped load={load} />
		</Panel>
	);
}

/* --- methods --- */

export function Slowest() {
	const fleet = useFleetQuery();
	const load = useLoad(`slowest ${fleet.key}`, (signal) => get<FleetMethods>('/api/v1/fleet/methods', { ...fleet.params, sort: 'p95_self', metrics: 'self,wall', limit: METHODS }, signal));
	const v = load.value;
	return (
		<Panel title={tr('Slowest methods')} id="slowest" aside={<a href={withFilter('/fleet/methods')}>{v ? tr('All {total} methods', { total: count(v.total) }) : tr('Methods')}</a>}>
			<Pending of={load} what={tr('Loading methods')} />
			{v && !load.error && v.methods.length === 0 && <NoTraces />}
			{v && !load.error && v.methods.length > 0 && <><MissingMappings of={v.methods} /><Cards>
				<thead><tr><th>{tr('Method')}</th><th class="num">{tr('Self, p50')}</th><th class="num">{tr('Self, p95')}</th><th class="num">{tr('Wall, p95')}</th><th class="num">{tr('In traces')}</th><th><span class="hidden">{tr('Trace')}</span></th></tr></thead>
				<tbody>{v.methods.map((m) => <tr key={`${m.name} ${m.descriptor} ${m.build_id}`} data-method={m.name}>
					<td class="anywhere wide"><a href={methodLink(m.name)}><MethodName name={m.name} /></a></td>
					<td class="num">{duration(m.self!.p50)}</td><td class="num">{duration(m.self!.p95)}</td><td class="num">{duration(m.wall!.p95)}</td><td class="num">{percent(m.share)}</td>
					<td class="nowrap">{m.self!.exemplar && <a href={link(`/traces/${m.self!.exemplar}?find=${encodeURIComponent(m.name)}`)} aria-label={tr('slowest trace with {name}', { name: m.name })}>{tr('slowest trace')}</a>}</td>
				</tr>)}</tbody>
			</Cards></>}
		</Panel>
	);
}
