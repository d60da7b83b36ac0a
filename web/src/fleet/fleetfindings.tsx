// What detectors found in many traces: a card on the fleet's overview, and a page with causes and versions.
import { get } from '../api/api';
import { groupId, groupName, inOrder, LABEL, type ByLabel, type Head, type Keyed, type Point } from './fleetdoc';
import { FleetFilter } from './fleetfilter';
import { byName, methodLink, Narrowed, PickBy, Uncounted, useFleetQuery, useBy, withFilter } from './fleetparts';
import { count, duration, percent } from '../i18n/format';
import { serverText } from '../i18n/servertext';
import { PROCESSING_MS, usePolling } from '../ui/polling';
import { Cards } from '../ui/cards';
import { inView, MethodName, Panel, Pending, useLoad, type Loaded } from '../ui/parts';
import { link, set, text } from '../ui/route';
import { tr } from '../i18n/strings/fleet';
import { several } from '../api/traces';

const ROWS = 5, CAUSES = 20, GROUPS = 12;
const ALL = { by: 'all', limit: 1 };

interface Sum { traces: number; found: number; ns: number; max_ns: number }
interface CauseSum extends Sum { name: string | null; resolved: boolean; build_id: string; exemplar: string | null }
type Group = Keyed & Sum & { of_traces: number; main_ns: number };
interface RuleSum extends Sum {
	id: string; kind: string; title: string; severity: 'info' | 'warning' | 'error'; message: string; threshold_ns: number; main_ns: number; share: number;
	exemplars: { id: string | null; ns: number }[]; causes: CauseSum[]; causes_total: number; groups: Group[];
}
interface Found extends Head, ByLabel { by: string; examined: number; partial: number; complete: boolean; unreadable: number; pending: number; rules_version: number; rules: RuleSum[] }

const ink = (r: RuleSum) => (r.severity === 'error' ? 'loss' : r.severity === 'warning' ? 'warnink' : '');

/** Links to the findings of a trace. */
function Example({ id, what, ns }: { id: string | null | undefined; what: string; ns?: number }) {
	return id ? <a href={link(`/traces/${id}?findings=1`)} aria-label={what}>{ns ? duration(ns) : tr('slowest trace')}</a> : <span class="quiet" title={tr('It was deleted')}>{tr('deleted')}</span>;
}

function Cause({ c }: { c: CauseSum | undefined }) {
	if (!c) return null;
	return c.name === null ? <span class="quiet">{tr("no app method")}</span> : <a href={methodLink(c.name)}><MethodName name={c.name} /></a>;
}

/** Of how many traces this is, and which are still to come. */
function Stand({ f }: { f: Found }) {
	return <p class="quiet">{tr('From {traces} that detectors analysed{partial}.{pending}{complete}{unreadable} Deleted traces are not included.', { traces: several(f.examined, 'trace'), partial: f.partial > 0 && tr(', {partial} of them incompletely', { partial: count(f.partial) }), pending: f.pending > 0 && tr.many(f.pending, ' {n} trace of the project still has to be analysed with the current rules and names.', ' {n} traces of the project still have to be analysed with the current rules and names.'), complete: !f.complete && tr(' Not all are shown: narrow the filter or the time range.'), unreadable: f.unreadable > 0 && tr(' The findings of {unreadable} cannot be read.', { unreadable: count(f.unreadable) }) })}</p>;
}

const nothing = (f: Found) => (f.examined === 0 ? tr('No analysed trace matches.') : tr('Detectors found nothing above their thresholds.'));

/** Loads findings, repeatedly while some of the project's traces are not analysed. */
function useFindings(own: { by: string; limit: number; rule?: string }): Loaded<Found> {
	const params = { ...useFleetQuery().params, ...own };
	const load = useLoad(JSON.stringify(params), (signal) => get<Found>('/api/v1/fleet/findings', params, signal));
	usePolling(load, load.value?.pending && PROCESSING_MS);
	return load;
}

/** `chosen`: on the page of findings, which has more columns. */
function Rules({ rules, chosen }: { rules: RuleSum[]; chosen?: string }) {
	const page = chosen !== undefined;
	const most = Math.max(1, ...rules.map((r) => r.main_ns));
	return (
		<Cards>
			<thead><tr><th>{tr('Finding')}</th><th class="num">{tr('In traces')}</th><th class="num">{tr('On the main thread')}</th><th class="num" title={tr('Mean of the traces with this finding')}>{tr('Per trace')}</th>
				<th>{tr('Main cause')}</th><th>{page ? tr('Slowest traces') : <span class="hidden">{tr('Trace')}</span>}</th></tr></thead>
			<tbody>{rules.map((r) => <tr key={r.id} data-rule={r.id} aria-current={r.id === chosen ? 'true' : undefined}>
				<td class="anywhere named name"><a href={withFilter('/fleet/findings', { rule: r.id })}>{serverText(r.title)}</a></td>
				<td class="num">{page && `${count(r.traces)} · `}<span class={ink(r)}>{percent(r.share)}</span></td><td class={`num ${page ? 'share' : ''}`}>{page && <span class="bar" style={{ width: `${(100 * r.main_ns) / most}%` }} />}{duration(r.main_ns)}</td><td class="num">{duration(r.ns / r.traces)}</td>
				<td class="anywhere wide"><Cause c={r.causes[0]} /></td>
				<td>{r.exemplars.slice(0, page ? 3 : 1).map((e, i) => <>{i > 0 && ' '}<Example id={e.id} ns={page ? e.ns : 0} what={page ? `${duration(e.ns)} ${serverText(r.title)}` : tr('slowest trace with {title}', { title: serverText(r.title) })} /></>)}</td>
			</tr>)}</tbody>
		</Cards>
	);
}

export function FleetFindings() {
	const load = useFindings(ALL);
	const f = load.value;
	return (
		<Panel title={tr('Findings')} id="topfindings" aside={<a href={withFilter('/fleet/findings')}>{f && f.rules.length > ROWS ? tr('All {rules}', { rules: count(f.rules.length) }) : tr('Findings')}</a>}>
			<Pending of={load} what={tr('Loading findings')} />
			{f && !load.error && <div class="findings">
				{f.rules.length ? <Rules rules={f.rules.slice(0, ROWS)} /> : <p class="quiet">{nothing(f)}</p>}
				<Stand f={f} />
			</div>}
		</Panel>
	);
}

/* --- the page --- */

function Causes({ r }: { r: RuleSum }) {
	return <>
		<h3>{tr('Caused by')}</h3>
		<Cards>
			<thead><tr><th>{tr('Method of the app')}</th><th class="num">{tr('Traces')}</th><th class="num">{tr('Count')}</th><th class="num">{tr('Time')}</th><th class="num">{tr('Longest')}</th><th><span class="hidden">{tr('Trace')}</span></th></tr></thead>
			<tbody>{r.causes.map((c) => <tr key={`${c.name} ${c.build_id}`} data-cause={c.name ?? ''}>
				<td class="anywhere wide"><Cause c={c} />{!c.resolved && c.name !== null && c.build_id && <span class="quiet">{' '}{tr('of build {build_id}', { build_id: c.build_id })}</span>}</td>
				<td class="num">{count(c.traces)}</td><td class="num">{count(c.found)}</td><td class="num">{duration(c.ns)}</td><td class="num">{duration(c.max_ns)}</td>
				<td class="nowrap"><Example id={c.exemplar} what={tr('slowest trace by {name}', { name: c.name ?? tr('no app method') })} /></td>
			</tr>)}</tbody>
		</Cards>
		<p class="quiet">{tr.rich('The eight methods with the most time in each trace.{causes}', { causes: r.causes_total > r.causes.length && tr(' The first {causes} of {causes_total}.', { causes: count(r.causes.length), causes_total: count(r.causes_total) }) })}</p>
	</>;
}

function Groups({ r, by }: { r: RuleSum; by: string }) {
	const most = Math.max(1e-9, ...r.groups.map((g) => (g.of_traces ? g.traces / g.of_traces : 0)));
	const ordered = inOrder(by, r.groups as unknown as Point[]) as unknown as Group[];
	const rows = (by === 'version' || by === 'day' ? ordered.reverse() : ordered).filter((g) => g.of_traces > 0);
	return <>
		<Cards label={tr('Affected traces')}>
			<thead><tr><th>{by.startsWith(LABEL) ? byName(by) : byName(by).replace(/^./, (c) => c.toUpperCase())}</th><th class="num">{tr('Affected traces')}</th><th class="num">{tr('Share')}</th><th><span class="hidden">{tr('Share')}</span></th>
				<th class="num">{tr('On the main thread')}</th><th class="num">{tr('Per trace')}</th></tr></thead>
			<tbody>{rows.slice(0, GROUPS).map((g) => <tr key={groupId(g)} data-group={g.key}>
				<td class="anywhere">{g.key ? g.key : <span class="quiet">{groupName(g)}</span>}</td><td class="num">{count(g.traces)}<span class="quiet">{tr(' of {of_traces}', { of_traces: count(g.of_traces) })}</span></td><td class="num">{percent(g.traces / g.of_traces)}</td>
				<td class="draw"><svg class="bars" width="120" height="10" aria-hidden="true"><rect y="1" height="8" width={Math.max(1, (120 * g.traces) / g.of_traces / most)} /></svg></td>
				<td class="num">{duration(g.main_ns)}</td><td class="num">{g.traces ? duration(g.ns / g.traces) : <span class="quiet">–</span>}</td>
			</tr>)}</tbody>
		</Cards>
		{rows.length > GROUPS && <p class="quiet">{tr('The first {groups} of {rows}.', { groups: count(GROUPS), rows: count(rows.length) })}</p>}
	</>;
}

function One({ id }: { id: string }) {
	const { by, bys } = useBy();
	const load = useFindings({ by, limit: CAUSES, rule: id });
	const f = load.value?.by === by ? load.value : null; // another question's groups have other keys
	const r = f?.rules.find((x) => x.id === id);
	return (
		<Panel title={r?.title ?? tr('One detector')} id="finding" aside={<><PickBy by={by} bys={bys} /><button class="small" onClick={() => set({ rule: null })}>{tr('Close')}</button></>}>
			<Pending of={f ? load : { ...load, value: null }} what={tr('Loading its causes')} />
			{f && !load.error && !r && <p class="quiet">{nothing(f)}</p>}
			{f && r && !load.error && <div class={`findings ${load.busy && !f.pending ? 'stale' : ''}`}>
				<p ref={inView}>{serverText(r.message)} <span class="quiet">{tr('Threshold')} {duration(r.threshold_ns)}</span></p>
				<Groups r={r} by={by} />
				<Uncounted n={f.not_counted} />
				<Causes r={r} />
			</div>}
		</Panel>
	);
}

export function FindingsPage() {
	const chosen = text('rule');
	const load = useFindings(ALL);
	const f = load.value;
	return <>
		<div class="row head"><h1>{tr.rich('{link} · Findings', { link: <a href={withFilter('/fleet')}>{tr('Fleet')}</a> })}</h1><FleetFilter /><Narrowed /></div>
		<Panel title={tr('Findings')} id="findings" aside={<a href={link('/detectors')}>{tr('Detectors')}</a>}>
			<Pending of={load} what={tr('Loading findings')} />
			{f && !load.error && <div class="findings">{f.rules.length ? <Rules rules={f.rules} chosen={chosen} /> : <p class="quiet">{nothing(f)}</p>}<Stand f={f} /></div>}
		</Panel>
		{chosen && <One key={chosen} id={chosen} />}
	</>;
}
