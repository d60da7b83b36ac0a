// What got slower, as the server found it: who looks at it, how sure it is, and what is enough to be told.
import { useEffect, useState } from 'preact/hooks';
import { get, may, send } from './api';
import { useChange } from './change';
import { count, duration, percent, when } from './format';
import { IssueText } from './issue';
import { Failure, MethodName, Panel, Pending, useCame, useLoad } from './parts';
import { RegressionRules } from './regressionrules';
import { RegressionTrend } from './regressiontrend';
import { link, set, text } from './route';
import { SourceBox } from './sourcelater';

interface Regression {
	id: string; kind: 'slower' | 'new'; share: number; app: string; scenario: string; method: string; descriptor: string; base: string; head: string;
	day_ms: number; percent: number; before_ns: number; after_ns: number; change: number; low: number; high: number;
	traces_before: number; traces_after: number; before_trace: string | null; after_trace: string | null;
	status: string; fixed_in: string; fixed_day_ms: number; earlier: string; owner: string; note: string; muted_until_ms: number;
}

const DAY_MS = 86400000;
const MUTED_DAYS = 7;
const SHOWN: [string, string][] = [['live', 'to be looked at'], ['open', 'open'], ['acknowledged', 'acknowledged'], ['returned', 'came back'], ['fixed', 'fixed'], ['all', 'all']];
const STATUS: Record<string, string> = { open: 'Open', acknowledged: 'Acknowledged', fixed: 'Fixed', returned: 'Came back' };

const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);
const signed = (share: number) => `${share < 0 ? '−' : '+'}${percent(Math.abs(share))}`;

/** One sentence that can be sent to somebody. */
function sentence(r: Regression): string {
	const what = r.method ? `${r.method} in ${r.scenario || 'all scenarios'}` : r.scenario || 'Traces without a scenario';
	if (r.kind === 'new') return `New: ${r.method} takes ${duration(r.after_ns)} at the median in ${percent(r.share)} of ${r.scenario || 'all'} traces of ${r.head}; ${r.base || 'the version before'} did not have it. That is ${percent(r.change)} of a median trace, 95 % sure between ${percent(r.low)} and ${percent(r.high)}.`;
	const since = r.head ? `${r.head} against ${r.base || 'the version before'}` : `since ${day(r.day_ms)}`;
	return `${what} is ${percent(r.change)} slower, ${since}: ${duration(r.before_ns)} to ${duration(r.after_ns)} at the ${r.percent === 50 ? 'median' : `${r.percent}th percentile`}, 95 % sure between ${signed(r.low)} and ${signed(r.high)}.`;
}

function How({ r }: { r: Regression }) {
	const fixed = r.fixed_in ? ` in ${r.fixed_in}` : r.fixed_day_ms ? ` since ${day(r.fixed_day_ms)}` : '';
	return <>
		<span class={r.status === 'fixed' ? 'quiet' : r.status === 'returned' ? 'loss' : ''}>{STATUS[r.status] ?? r.status}{r.status === 'fixed' && fixed}</span>
		{r.muted_until_ms > Date.now() && <span class="quiet"> muted until {day(r.muted_until_ms)}</span>}
	</>;
}

/** Both versions, in the days in which they were used, the method opened. */
function versions(r: Regression): string {
	const days = Math.min(400, Math.max(30, Math.floor((Date.now() - r.day_ms) / DAY_MS) + 30));
	const asked = Object.entries({ a: r.base, b: r.head, app: r.app, scenario: r.scenario, method: r.method, days: days > 30 ? String(days) : '' });
	return link(`/fleet/compare?${new URLSearchParams(asked.filter(([, v]) => v))}`);
}

function Evidence({ r }: { r: Regression }) {
	const filter = { app: r.app, scenario: r.scenario, ...(r.head && { version_name: r.head }) };
	return (
		<p>
			{r.base && r.head && <><a href={versions(r)}>both versions compared</a>{' · '}</>}
			{r.after_trace && <><a href={link(`/traces/${r.after_trace}`)}>A slow trace</a>{' · '}</>}
			{r.before_trace && <><a href={link(`/traces/${r.before_trace}`)}>one from before</a>{' · '}</>}
			{r.before_trace && r.after_trace && <><a href={link(`/compare?a=${r.before_trace}&b=${r.after_trace}`)}>both traces compared</a>{' · '}</>}
			<a href={link(`/?${new URLSearchParams(filter)}`)}>all traces of it</a>
		</p>
	);
}

interface Entry { n: number; at_ms: number; author: string; event: string; status: string; version: string }

function told(e: Entry): string {
	if (e.event === 'regression.found') return 'found';
	if (e.event === 'regression.returned') return 'came back';
	return e.status === 'fixed' && e.version ? `fixed in ${e.version}` : STATUS[e.status]?.toLowerCase() ?? e.status;
}

/** What became of it, and by whom. */
function History({ r }: { r: Regression }) {
	const load = useLoad(`history ${r.id} ${r.status}`, () => get<{ history: Entry[] }>(`/api/v1/regression/${r.id}/history`));
	const list = load.value?.history ?? [];
	if (load.error) return <Failure error={load.error} retry={load.again} />;
	if (list.length === 0) return null;
	return <ul class="history" aria-label="History">{list.map((e) => <li key={e.n}>{when(e.at_ms)}: {told(e)} <span class="quiet">by {e.author}</span></li>)}</ul>;
}

function Answer({ r, file, say }: { r: Regression; file: string; say: (what: Partial<Regression>) => Promise<boolean> }) {
	const [owner, own] = useState(r.owner);
	const [note, put] = useState(r.note);
	const muted = r.muted_until_ms > Date.now();
	const save = (e: Event) => {
		e.preventDefault();
		void say({ owner: owner.trim(), note });
	};
	return (
		<form class="rule" onSubmit={save} aria-label="What is done about it">
			<div class="row">
				{r.status !== 'acknowledged' && <button type="button" onClick={() => say({ status: 'acknowledged' })}>Acknowledge</button>}
				{r.status !== 'fixed' && <button type="button" onClick={() => say({ status: 'fixed' })}>Mark as fixed</button>}
				{r.status !== 'open' && <button type="button" onClick={() => say({ status: 'open' })}>Open again</button>}
				<button type="button" onClick={() => say({ muted_until_ms: muted ? 0 : Date.now() + MUTED_DAYS * DAY_MS })}>{muted ? 'Unmute' : `Mute for ${MUTED_DAYS} days`}</button>
			</div>
			<div class="row">
				<label class="inline">Owner <input name="owner" maxLength={200} value={owner} onInput={(e) => own(e.currentTarget.value)} /></label>
				{file && !owner.trim() && <span class="from-file"><span class="quiet">not set; the code owners file says</span> {file} <button type="button" class="small" onClick={() => own(file.slice(0, 200))}>Take</button></span>}
			</div>
			<label class="list">Note<textarea name="note" rows={2} maxLength={2000} value={note} onInput={(e) => put(e.currentTarget.value)} /></label>
			<div class="row"><button class="primary" disabled={owner.trim() === r.owner && note === r.note}>Save</button></div>
		</form>
	);
}

const COLUMNS = ['Status', 'What', 'Scenario', 'Since', 'Before', 'After', 'Change', 'Traces', 'Owner'];

function Row({ r, open, toggle, again }: { r: Regression; open: boolean; toggle: () => void; again: () => void }) {
	const [error, change] = useChange(again);
	const [file, tell] = useState(''); // who owns it by the code owners file
	const say = (what: Partial<Regression>) => change(() => send('PATCH', `/api/v1/regression/${r.id}`, what));
	return <>
		<tr data-regression={r.id}>
			<td class="nowrap"><How r={r} /></td>
			<td class="wide anywhere"><button class="plain mono" aria-expanded={open} onClick={toggle}>{r.method ? <MethodName name={r.method} /> : 'the whole trace'}</button></td>
			<td class="anywhere">{r.scenario || <span class="quiet">none</span>}{r.app && <span class="quiet"> {r.app}</span>}</td>
			<td class="nowrap">{r.base && r.head ? <a href={versions(r)} title={`Compare ${r.base} with ${r.head}`}>{r.head} after {r.base}</a> : <>{r.head || day(r.day_ms)}{r.base && <span class="quiet"> after {r.base}</span>}</>}</td>
			<td class="num">{r.kind === 'new' ? <span class="quiet">not there</span> : duration(r.before_ns)}</td>
			<td class="num">{duration(r.after_ns)}</td>
			{r.kind === 'new' ? <td class="num" title={`${percent(r.change)} of a median trace, 95 % sure between ${percent(r.low)} and ${percent(r.high)}`}>new</td> : <td class="num" title={`95 % sure between ${signed(r.low)} and ${signed(r.high)}`}>{signed(r.change)}</td>}
			<td class="num">{count(r.traces_before)} / {count(r.traces_after)}</td>
			<td class="anywhere">{r.owner}</td>
		</tr>
		{open && <tr class="more"><td colSpan={COLUMNS.length}>
			<div class="instructions">
				<p>{sentence(r)}</p>
				{r.earlier && <p class="quiet">It was slow before, was fixed, and came back.</p>}
				{r.note && !may.write && <p>{r.note}</p>}
				<RegressionTrend id={r.id} base={r.base} head={r.head} percent={r.percent} />
				<Evidence r={r} />
				<History r={r} />
				<IssueText path={`/api/v1/regression/${r.id}`} />
				{may.write && <Answer key={`${r.owner} ${r.note}`} r={r} file={file} say={say} />}
				{r.method && <SourceBox method={r.method} base={r.base} head={r.head} told={tell} />}
				{error && <Failure error={error} />}
			</div>
		</td></tr>}
	</>;
}

function Table({ rows, again }: { rows: Regression[]; again: () => void }) {
	const open = text('open');
	return (
		<div class="scroll"><table class="regressions">
			<thead><tr>{COLUMNS.map((c) => <th key={c} scope="col" class={['Before', 'After', 'Change', 'Traces'].includes(c) ? 'num' : ''}>{c}</th>)}</tr></thead>
			<tbody>{rows.map((r) => <Row key={r.id} r={r} open={open === r.id} toggle={() => set({ open: open === r.id ? null : r.id })} again={again} />)}</tbody>
		</table></div>
	);
}

/** Looks now, and says what came of it. */
function Look({ done }: { done: () => void }) {
	const [busy, say] = useState(false);
	const [told, tell] = useState('');
	const look = async () => {
		say(true);
		await send('POST', '/api/v1/regressions/look').then(async (answer) => {
			const l = await answer.json() as { series: number; found: number; new: number };
			tell(`${count(l.series)} series looked at, ${count(l.found)} slower, ${count(l.new)} of them new.`);
			done();
		}).catch((why: Error) => tell(why.message));
		say(false);
	};
	return <><span class="quiet" role="status">{told}</span> <button disabled={busy} onClick={() => void look()}>{busy ? 'Looking' : 'Look now'}</button></>;
}

export function RegressionsPage() {
	const named = text('status');
	const status = SHOWN.some(([s]) => s === named) ? named : 'live';
	const muted = text('muted') === '1';
	const load = useLoad(`regressions ${status} ${muted}`, () => get<{ regressions: Regression[] }>('/api/v1/regressions', { status, ...(muted && { muted: 'true' }) }));
	const v = load.value;
	const [came, settle] = useState(false); // what stands below is not moved by the list
	useCame(load, () => settle(true));
	useEffect(() => {
		document.title = 'Regressions · tracewell';
	}, []);
	return (
		<main>
			<div class="row head"><h1>Regressions</h1></div>
			<Panel title="What got slower" aside={<>
				<label class="inline"><input type="checkbox" checked={muted} onChange={(e) => set({ muted: e.currentTarget.checked ? 1 : null }, true)} /> muted, too</label>
				<label class="inline">Show <select value={status} onChange={(e) => set({ status: e.currentTarget.value === 'live' ? null : e.currentTarget.value }, true)}>{SHOWN.map(([s, shown]) => <option key={s} value={s}>{shown}</option>)}</select></label>
				{may.write && <Look done={load.again} />}
			</>}>
				<Pending of={load} what="Loading regressions" />
				{v && v.regressions.length === 0 && <p class="quiet">{status === 'live' ? 'Nothing got slower that nobody answered. The server looks once an hour at each scenario and method, by version and by day.' : 'There is none of that kind.'}</p>}
				{v && v.regressions.length > 0 && <Table rows={v.regressions} again={load.again} />}
			</Panel>
			{came && <RegressionRules />}
		</main>
	);
}
