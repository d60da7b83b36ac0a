// Regressions with owner and confidence, and the thresholds of detection.
import { useEffect, useState } from 'preact/hooks';
import { get, may, send } from '../api/api';
import { Cards } from '../ui/cards';
import { Decisions } from './decisions';
import { count, DAY_MS, duration, percent, signed, when } from '../i18n/format';
import { interval } from '../i18n/interval';
import { IssueText } from './issue';
import { Page } from '../ui/page';
import { Failure, MethodName, Panel, Pending, useCame, useLoad } from '../ui/parts';
import { RegressionDays, TREND_DAYS } from './regressiondays';
import { RegressionRules } from './regressionrules';
import { RegressionTrend } from './regressiontrend';
import { BOX_NAMES, dayOf, durationName, isMuted, STATUS_NAMES, TONES, type Item } from './triage';
import { EmptyPage, fromStart, Pages } from '../ui/pages';
import { link, set, text } from '../ui/route';
import { SourceBox } from '../source/sourcelater';
import { tr } from '../i18n/strings/regressions';

interface Regression {
	id: string; kind: 'slower' | 'new'; share: number; app: string; scenario: string; method: string; descriptor: string; base: string; head: string;
	day_ms: number; percentile: number; before_ns: number; after_ns: number; change: number; low: number; high: number;
	traces_before: number; traces_after: number; before_trace: string | null; after_trace: string | null;
	status: Item['status']; fixed_in: string; fixed_day_ms: number; earlier: string; owner: string; note: string; muted_until_ms: number;
}

const SHOWN: [string, string][] = [['live', BOX_NAMES.live], ['open', BOX_NAMES.new], ['acknowledged', BOX_NAMES.acknowledged], ['returned', BOX_NAMES.returned], ['fixed', BOX_NAMES.fixed], ['all', BOX_NAMES.all]];
const STATUS: Record<string, string> = STATUS_NAMES;

/** A one-sentence summary for sharing. */
function sentence(r: Regression): string {
	const what = r.method ? tr('{method} in {scenario}', { method: r.method, scenario: r.scenario || tr('all scenarios') }) : r.scenario || tr('Traces without a scenario');
	if (r.kind === 'new') return tr('New: {method} takes {after_ns} at the median in {share} of {scenario} traces of {head}; {base} did not have it. That is {change} of a median trace, 95 % confidence interval {interval}.', { method: r.method, after_ns: duration(r.after_ns), share: percent(r.share), scenario: r.scenario || tr('all'), head: r.head, base: r.base || tr('the version before'), change: percent(r.change), interval: interval(percent(r.low), percent(r.high)) });
	const since = r.head ? tr('{head} against {base}', { head: r.head, base: r.base || tr('the version before') }) : tr('since {day_ms}', { day_ms: dayOf(r.day_ms) });
	return tr('{what} is {change} slower, {since}: {before_ns} to {after_ns} at the {percent}, 95 % confidence interval {interval}.', { what, change: percent(r.change), since, before_ns: duration(r.before_ns), after_ns: duration(r.after_ns), percent: r.percentile === 50 ? tr('median') : tr('{percent}th percentile', { percent: r.percentile }), interval: interval(signed(r.low), signed(r.high)) });
}

function How({ r }: { r: Regression }) {
	const fixed = r.fixed_in ? tr(' in {fixed_in}', { fixed_in: r.fixed_in }) : r.fixed_day_ms ? tr(' since {fixed_day_ms}', { fixed_day_ms: dayOf(r.fixed_day_ms) }) : '';
	return <>
		<span class={`state ${TONES[r.status]}`}>{STATUS[r.status] ?? r.status}{r.status === 'fixed' && fixed}</span>
		{isMuted(r) && <span class="quiet">{' '}{tr('muted until {muted_until_ms}', { muted_until_ms: dayOf(r.muted_until_ms) })}</span>}
	</>;
}

/** Both versions, in the days in which they were used, the method opened. */
function versions(r: Regression): string {
	const days = Math.min(400, Math.max(30, Math.floor((Date.now() - r.day_ms) / DAY_MS) + 30));
	const query = Object.entries({ a: r.base, b: r.head, app: r.app, scenario: r.scenario, method: r.method, days: days > 30 ? String(days) : '' });
	return link(`/fleet/compare?${new URLSearchParams(query.filter(([, v]) => v))}`);
}

function Evidence({ r }: { r: Regression }) {
	const filter = { app: r.app, scenario: r.scenario, ...(r.head && { version_name: r.head }) };
	const trace = (id: string) => link(`/traces/${id}${r.method ? `?find=${encodeURIComponent(r.method)}` : ''}`);
	return (
		<p>
			{r.base && r.head && <><a href={versions(r)}>{tr('both versions compared')}</a>{' · '}</>}
			{r.after_trace && <><a href={trace(r.after_trace)}>{tr('a slow trace')}</a>{' · '}</>}
			{r.before_trace && <><a href={trace(r.before_trace)}>{tr('an earlier trace')}</a>{' · '}</>}
			{r.before_trace && r.after_trace && <><a href={link(`/compare?a=${r.before_trace}&b=${r.after_trace}`)}>{tr('both traces compared')}</a>{' · '}</>}
			<a href={link(`/traces?${new URLSearchParams(filter)}`)}>{tr('all its traces')}</a>
			{may.write && r.kind === 'slower' && <>{' · '}<button class="plain linkish" onClick={() => set({ min_change: Math.ceil(r.change * 100) })}>{tr('report only changes above {change}', { change: percent(Math.ceil(r.change * 100) / 100) })}</button></>}
		</p>
	);
}

interface Entry { n: number; at_ms: number; author: string; event: string; status: string; version: string }

function eventText(e: Entry): string {
	if (e.event === 'regression.found') return tr('found');
	if (e.event === 'regression.returned') return tr('returned');
	return e.status === 'fixed' && e.version ? tr('fixed in {version}', { version: e.version }) : STATUS[e.status]?.toLowerCase() ?? e.status;
}

/** What became of it, and by whom. */
function History({ r }: { r: Regression }) {
	const load = useLoad(`history ${r.id} ${r.status}`, () => get<{ history: Entry[] }>(`/api/v1/regressions/${r.id}/history`));
	const list = load.value?.history ?? [];
	if (load.error) return <Failure error={load.error} retry={load.again} />;
	if (list.length === 0) return null;
	return <ul class="history" aria-label={tr('History')}>{list.map((e) => <li key={e.n}>{when(e.at_ms)}: {eventText(e)} <span class="quiet">{tr('by {author}', { author: e.author })}</span></li>)}</ul>;
}

const COLUMNS = [[tr('State')], [tr('Item')], [tr('Change'), 'num'], [tr('Before'), 'num'], [tr('After'), 'num'], [tr('{days} days', { days: TREND_DAYS })], [tr('Scenario')], [tr('Since')], [tr('Traces'), 'num'], [tr('Owner')]];

function Row({ r, open, toggle, again }: { r: Regression; open: boolean; toggle: () => void; again: () => void }) {
	const [file, setOwners] = useState<string | null>(''); // its owner by the code owners file, null without a repository
	return <>
		<tr data-regression={r.id}>
			<td class="nowrap"><How r={r} /></td>
			<td class="wide anywhere"><button class="plain linkish" aria-expanded={open} onClick={toggle}>{r.method ? <MethodName name={r.method} /> : durationName(r.scenario)}</button></td>
			{r.kind === 'new' ? <td class="num" title={tr('{change} of a median trace, 95 % confidence interval {interval}', { change: percent(r.change), interval: interval(percent(r.low), percent(r.high)) })}>{tr('new')}</td> : <td class="num" title={tr('95 % confidence interval {interval}', { interval: interval(signed(r.low), signed(r.high)) })}>{signed(r.change)}</td>}
			<td class="num">{r.kind === 'new' ? <span class="quiet">{tr('absent')}</span> : duration(r.before_ns)}</td>
			<td class="num">{duration(r.after_ns)}</td>
			<td><RegressionDays id={r.id} percentile={r.percentile} name={r.method || durationName(r.scenario)} /></td>
			<td class="anywhere">{r.scenario || <span class="quiet">{tr('none')}</span>}{r.app && <span class="quiet"> {r.app}</span>}</td>
			<td>{r.base && r.head ? <a href={versions(r)} title={tr('Compare {base} with {head}', { base: r.base, head: r.head })}>{tr('{head} after {base}', { head: r.head, base: r.base })}</a> : <>{r.head || dayOf(r.day_ms)}{r.base && <span class="quiet">{' '}{tr('after {base}', { base: r.base })}</span>}</>}</td>
			<td class="num">{count(r.traces_before)} / {count(r.traces_after)}</td>
			<td class="anywhere">{r.owner}</td>
		</tr>
		{open && <tr class="more"><td colSpan={COLUMNS.length}>
			<div class="instructions">
				<p>{sentence(r)}</p>
				{r.earlier && <p class="quiet">{tr('It was slow before, was fixed, and is slow again.')}</p>}
				{r.note && !may.write && <p>{r.note}</p>}
				<RegressionTrend id={r.id} base={r.base} head={r.head} percentile={r.percentile} />
				{r.kind === 'slower' && <p class="quiet">{tr('The chart shows all traces of each day together. The change above is the mean change per device class and day, so its numbers may differ.')}</p>}
				<Evidence r={r} />
				<History r={r} />
				<IssueText path={`/api/v1/regressions/${r.id}`} />
				<Decisions key={r.owner + r.note} items={[{ ...r, kind: 'regression' }]} changed={again} noted file={file} />
				{r.method && <SourceBox method={r.method} app={r.app} base={r.base} head={r.head} onOwners={setOwners} />}
			</div>
		</td></tr>}
	</>;
}

function Table({ rows, again }: { rows: Regression[]; again: () => void }) {
	const open = text('open');
	return (
		<Cards of="regressions">
			<thead><tr>{COLUMNS.map(([name, of]) => <th key={name} class={of}>{name}</th>)}</tr></thead>
			<tbody>{rows.map((r) => <Row key={r.id} r={r} open={open === r.id} toggle={() => set({ open: open === r.id ? null : r.id })} again={again} />)}</tbody>
		</Cards>
	);
}

/** Open regressions; acknowledged ones are collapsed unless one of them is open. */
function Live({ rows, complete, again }: { rows: Regression[]; complete: boolean; again: () => void }) {
	const taken = rows.filter((r) => r.status === 'acknowledged');
	const [unfolded, unfold] = useState(false); // closing a row does not fold the list under the reader
	const waiting = rows.filter((r) => r.status !== 'acknowledged');
	return <>
		{waiting.length > 0 ? <Table rows={waiting} again={again} /> : complete && <Nothing />}
		{taken.length > 0 && <details class="numbers acknowledged" open={unfolded || taken.some((r) => r.id === text('open'))} onToggle={(e) => unfold(e.currentTarget.open)}><summary>{tr('Acknowledged: {n}', { n: count(taken.length) })}</summary><Table rows={taken} again={again} /></details>}
	</>;
}

/** The rules' thresholds, because too few traces look like no findings. */
function Nothing() {
	const load = useLoad('regression rules', () => get<Record<'min_traces' | 'min_days' | 'window_days', number>>('/api/v1/regressions/rules'));
	const r = load.value;
	return <>
		<p class="quiet">{tr('No open regressions. The server checks every scenario and method once an hour, by version and by day.')}</p>
		<p class="quiet">{r ? tr('It checks the last {window} days including today. A change needs {traces} traces on {days} days on each side.', { window: count(r.window_days), traces: count(r.min_traces), days: count(r.min_days) }) : '\u00a0' /* its place */}</p>
	</>;
}

/** Runs the detection now and shows its result. */
function Look({ done }: { done: () => void }) {
	const [busy, setBusy] = useState(false);
	const [result, setResult] = useState('');
	const look = async () => {
		setBusy(true);
		await send('POST', '/api/v1/regressions/detect').then(async (answer) => {
			const l = await answer.json() as { series: number; found: number; new: number };
			setResult(tr('{series} series checked, {found} slower, {new} of them new.', { series: count(l.series), found: count(l.found), new: count(l.new) }));
			done();
		}).catch((why: Error) => setResult(why.message));
		setBusy(false);
	};
	return <><span class="quiet" role="status">{result}</span> <button disabled={busy} onClick={() => void look()}>{busy ? tr('Checking') : tr('Check now')}</button></>;
}

export function RegressionsPage() {
	const named = text('status');
	const status = SHOWN.some(([s]) => s === named) ? named : 'live';
	const muted = text('muted') === '1';
	const cursor = text('cursor'), open = cursor ? '' : text('open');
	const load = useLoad(`regressions ${status} ${muted} ${cursor}`, () => get<{ regressions: Regression[]; next_cursor: string | null }>('/api/v1/regressions', { status, cursor, ...(muted && { muted: 'true' }) }));
	const v = load.value;
	const [missing, miss] = useState(''); // a link's regression that this page of the list does not have
	useEffect(() => {
		if (v) miss(v.regressions.some((r) => r.id === open) ? '' : open);
	}, [open, !v]); // not of one that leaves the list because it was muted
	const other = useLoad<Regression | null>(`regression ${missing}`, async () => (missing ? get<Regression>(`/api/v1/regressions/${missing}`) : null));
	const listed = v?.regressions ?? [];
	const rows = missing && other.value && !listed.some((r) => r.id === missing) ? [other.value, ...listed] : listed;
	const again = () => {
		load.again();
		other.again();
	};
	const [came, settle] = useState(false); // the list does not move the content below
	useCame(load, () => settle(true));
	return (
		<Page title={tr('Regressions')} of="widest">
			<Panel title={SHOWN.find(([s]) => s === status)![1]} aside={<>
				<label class="inline"><input type="checkbox" checked={muted} onChange={(e) => set(fromStart({ muted: e.currentTarget.checked ? 1 : null }), true)} />{' '}{tr('include muted')}</label>
				<label class="inline">{tr('Show')}{' '}<select value={status} onChange={(e) => set(fromStart({ status: e.currentTarget.value === 'live' ? null : e.currentTarget.value }), true)}>{SHOWN.map(([s, shown]) => <option key={s} value={s}>{shown}</option>)}</select></label>
				{may.write && <Look done={again} />}
			</>}>
				<Pending of={load} what={tr('Loading regressions')} />
				{v && rows.length === 0 && (cursor ? <EmptyPage /> : status === 'live' ? <Nothing /> : <p class="quiet">{tr('No regressions with this state.')}</p>)}
				{rows.length > 0 && status === 'live' && <Live rows={rows} complete={!cursor && !v?.next_cursor} again={again} />}
				{rows.length > 0 && status !== 'live' && <Table rows={rows} again={again} />}
				{v && <Pages rows={v.regressions.length} cursor={v.next_cursor} of={load} />}
			</Panel>
			{came && <RegressionRules />}
		</Page>
	);
}
