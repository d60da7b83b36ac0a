// Locks that threads waited for, over many traces: durations, numbers of traces and versions.
import { get, may } from '../api/api';
import { FleetFilter, NoRows, useDays, useFleet } from './fleetfilter';
import { count, duration, when } from '../i18n/format';
import { Cards } from '../ui/cards';
import { Page } from '../ui/page';
import { Choice, ClassName, inView, MethodName, Panel, Pending, Sorted, useLoad } from '../ui/parts';
import { link, set, text } from '../ui/route';
import { tr } from '../i18n/strings/anrs';

interface Sums { traces: number; reports: number; versions: number; waits: number; timed: number; total_ns: number; max_ns: number; mean_ns: number; first_ms: number; last_ms: number; holder: string; worst: string | null; worst_source: 'calls' | 'reports' }
interface Lock extends Sums { name: string; owner: string; monitors: string[] }
interface Locks { total: number; locks: Lock[] }
interface Series { lock: Lock; groups: (Sums & { key: string })[] }

const SORTS: [string, string][] = [['total', tr('Total wait')], ['max', tr('Longest')], ['waits', tr('Waits')], ['traces', tr('Traces')]];

const time = (s: Sums, ns: number) => (s.timed ? duration(ns) : <span class="quiet">{tr('not recorded')}</span>);

function Numbers({ s, most }: { s: Sums; most: number }) {
	return <>
		<td class="num share">{s.timed > 0 && <span class="bar" style={{ width: `${(100 * s.total_ns) / most}%` }} />}{time(s, s.total_ns)}</td><td class="num">{time(s, s.max_ns)}</td><td class="num">{count(s.waits)}</td>
		<td class="num">{count(s.traces)}</td><td class="num">{count(s.reports)}</td>
	</>;
}

const mostOf = (rows: Sums[]) => Math.max(1, ...rows.map((s) => s.total_ns));

function Row({ l, most, chosen }: { l: Lock; most: number; chosen: boolean }) {
	return (
		<tr data-lock={l.name} aria-current={chosen ? 'true' : undefined}>
			<td class="anywhere wide"><button class="plain linkish" aria-expanded={chosen} onClick={() => set({ name: chosen ? null : l.name }, true)}>{l.owner ? <MethodName name={l.owner} /> : tr('an unknown holder')}</button>
				{l.monitors.map((m) => <div key={m} class="quiet">{tr.rich('lock of {name}', { name: <ClassName name={m} /> })}</div>)}</td>
			<td class="thread" title={l.holder}>{l.holder}</td>
			<Numbers s={l} most={most} /><td class="num">{count(l.versions)}</td><td class="when">{when(l.last_ms)}</td>
			<td>{l.worst && <a href={link(`/traces/${l.worst}${l.worst_source === 'calls' ? `?note=contention&eq=${encodeURIComponent(l.name)}` : ''}`)} aria-label={tr('longest wait for {name}', { name: l.name })}>{tr('longest wait')}</a>}</td>
		</tr>
	);
}

function useLockQuery() {
	const fleet = useFleet();
	const own = { threads: text('threads') === 'all' ? 'all' : '', source: ['calls', 'reports'].includes(text('source')) ? text('source') : '' };
	return { params: { ...fleet.params, ...own }, key: `${fleet.key} ${own.threads} ${own.source}`, ...own };
}

function One({ name }: { name: string }) {
	const query = useLockQuery();
	const by = text('by') === 'day' ? 'day' : 'version';
	const load = useLoad(`lock ${name} ${by} ${query.key}`, () => get<Series>('/api/v1/fleet/lock', { ...query.params, name, by }));
	const v = load.value;
	return (
		<Panel title={tr('One lock')} id="lock" aside={<><Choice label={tr('By')} value={by} options={[['version', tr('by version')], ['day', tr('by day')]]} onPick={(b) => set({ by: b === 'day' ? b : null }, true)} />
			<button class="small" onClick={() => set({ name: null, by: null }, true)}>{tr('Close')}</button></>}>
			<p class="verdict" ref={inView}>{v && !v.lock.owner ? <ClassName name={name} /> : <MethodName name={name} />}</p>
			{(!v || load.error) && <Pending of={load} what={tr('Loading the lock')} />}
			{v && <Cards>
				<thead><tr><th>{by === 'day' ? tr('Day') : tr('Version')}</th>{SORTS.map(([s, shown]) => <th key={s} class="num">{shown}</th>)}<th class="num">{tr('ANRs')}</th><th>{tr('Held by')}</th></tr></thead>
				<tbody>{v.groups.map((g) => <tr key={g.key} data-point={g.key}><td>{g.key || <span class="quiet">{tr('not given')}</span>}</td><Numbers s={g} most={mostOf(v.groups)} /><td class="thread" title={g.holder}>{g.holder}</td></tr>)}</tbody>
			</Cards>}
		</Panel>
	);
}

function List() {
	const query = useLockQuery();
	const sort = SORTS.some(([s]) => s === text('sort')) ? text('sort') : 'total';
	const q = text('q');
	const days = useDays();
	const load = useLoad(`locks ${sort} ${q} ${query.key}`, () => get<Locks>('/api/v1/fleet/locks', { ...query.params, sort, q }));
	const v = load.value;
	return (
		<Panel title={query.threads ? tr('Locks that threads waited for') : tr('Locks that main threads waited for')} id="locks" aside={<>
			<label class="inline">{tr('Threads')}{' '}<select name="threads" value={query.threads} onChange={(e) => set({ threads: e.currentTarget.value }, true)}><option value="">{tr('main')}</option><option value="all">{tr('all')}</option></select></label>
			<label class="inline">{tr('Source')}{' '}<select name="source" value={query.source} onChange={(e) => set({ source: e.currentTarget.value }, true)}><option value="">{tr('both')}</option><option value="calls">{tr('traces')}</option><option value="reports">{tr('ANR reports')}</option></select></label>
			<label class="inline">{tr('Find')}{' '}<input type="search" name="q" value={q} onInput={(e) => set({ q: e.currentTarget.value })} /></label>
		</>}>
			{(!v || load.error) && <Pending of={load} what={tr('Loading locks')} />}
			{v && v.locks.length === 0 && <NoRows also={['source', 'q']} unmatched={tr('No lock wait matches.')} none={<>
				{query.threads ? tr('No thread waited for a lock in the last {days} days.', { days }) : tr('No main thread waited for a lock in the last {days} days.', { days })}
				{may.write && <>{' '}{tr('Drop a trace with lock waits, or a thread dump, anywhere on this page.')}</>}
				{!query.threads && <>{' '}<button class="small" onClick={() => set({ threads: 'all' }, true)}>{tr('Include all threads')}</button></>}</>} />}
			{v && v.locks.length > 0 && <Cards>
				<thead><tr><th>{tr('Acquired in')}</th><th>{tr('Held by')}</th>{SORTS.map(([by, label]) => <Sorted key={by} by={by} label={label} now={{ sort, order: 'fixed' }} standard="total" />)}
					<th class="num">{tr('ANRs')}</th><th class="num">{tr('Versions')}</th><th>{tr('Last seen')}</th><th><span class="hidden">{tr('Trace')}</span></th></tr></thead>
				<tbody>{v.locks.map((l) => <Row key={l.name} l={l} most={mostOf(v.locks)} chosen={l.name === text('name')} />)}</tbody>
			</Cards>}
			{v && v.locks.length > 0 && <p class="quiet">{tr("In ANR reports, only the main thread's wait has a duration, if the report contains it.")}</p>}
		</Panel>
	);
}

export function LocksPage() {
	const name = text('name');
	return (
		<Page title={tr('Locks')} of="anrs" head={<FleetFilter />}>
			{name && <One key={name} name={name} />}
			<List />
		</Page>
	);
}
