// ANRs by cause: which there are, whom they hit and since when; one of them; the rules that make them.
import { useEffect, useState } from 'preact/hooks';
import { get, may } from './api';
import { AnrGroup } from './anrgroup';
import { KINDS, type Group, type Groups } from './anrgroups';
import { AnrRules } from './anrrules';
import { FleetFilter, Trend, useFleet } from './fleetfilter';
import { count, when } from './format';
import { Panel, Pending, useLoad } from './parts';
import { link, path, query, set, text } from './route';

const ROWS = 100;

/** The same question on another page of ANRs. */
export function within(to: string): string {
	const q = query.value.toString();
	return q ? `${to}?${q}` : to;
}

function Row({ g, days, picked, pick }: { g: Group; days: number; picked: boolean; pick?: () => void }) {
	return (
		<tr data-group={g.key}>
			{pick && <td><input type="checkbox" checked={picked} onChange={pick} aria-label={`Pick ${g.name || g.title}`} /></td>}
			<td class="cause"><a href={within(`/anrs/${g.key}`)}>{g.name || g.title}</a><p class="quiet">{g.name ? `${g.title}. ${g.verdict}` : g.verdict}</p></td>
			<td><span class={`state ${g.kind === 'deadlock' ? 'failed' : ''}`}>{KINDS[g.kind] ?? g.kind}</span></td>
			<td class="num">{count(g.count)}</td>
			<td class="num">{g.users ? count(g.users) : <span class="quiet">not said</span>}</td>
			<td><Trend trend={g.trend} days={days} name={g.name || g.title} /></td>
			<td class="num">{count(g.versions)}</td>
			<td class="num">{count(g.devices)}</td>
			<td class="nowrap">{when(g.last_ms)}<br /><span class="quiet">{g.last_version || 'no version'}</span></td>
		</tr>
	);
}

/** Says what waits: reports that do not have their group by the rules and names that hold. */
function Waiting({ v, again }: { v: Groups; again: () => void }) {
	useEffect(() => {
		if (!v.pending) return undefined;
		const timer = setTimeout(again, 1000);
		return () => clearTimeout(timer);
	}, [v]);
	return v.pending ? <p class="quiet" role="status">{count(v.pending)} {v.pending === 1 ? 'report is' : 'reports are'} still being grouped.</p> : null;
}

function List() {
	const fleet = useFleet();
	const kind = KINDS[text('kind')] ? text('kind') : '';
	const load = useLoad(`anrs ${fleet.key} ${kind}`, () => get<Groups>('/api/v1/anr/groups', { ...fleet.params, kind, limit: ROWS }));
	const [picked, pick] = useState<string[]>([]);
	const v = load.value;
	const turn = (key: string) => pick(picked.includes(key) ? picked.filter((k) => k !== key) : [...picked, key]);
	return (
		<Panel title="Why apps did not respond" id="anrs" aside={<>
			<label class="inline">Kind <select name="kind" value={kind} onChange={(e) => set({ kind: e.currentTarget.value }, true)}>
				<option value="">any</option>{Object.entries(KINDS).map(([k, shown]) => <option key={k} value={k}>{shown}</option>)}</select></label>
			{picked.length > 0 && <a class="button" href={`${link('/anrs/rules')}${link('/').includes('?') ? '&' : '?'}groups=${picked.join('.')}`}>{picked.length === 1 ? 'Name it' : `Merge ${picked.length}`}</a>}
			<a class="button" href={within('/anrs/rules')}>Rules</a>
		</>}>
			<FleetFilter />
			{(!v || load.error) && <Pending of={load} what="Loading groups" />}
			{v && <Waiting v={v} again={load.again} />}
			{v && v.groups.length === 0 && <p class="quiet">{v.anrs ? 'There is no group of that kind.' : 'No ANR came in that time and filter. Reports come as traces: a thread dump, or a trace with one beside it.'}</p>}
			{v && v.groups.length > 0 && <>
				<p class="quiet">{count(v.anrs)} {v.anrs === 1 ? 'report' : 'reports'}{v.users > 0 && <> of {count(v.users)} {v.users === 1 ? 'user' : 'users'}</>} in {count(v.total)} {v.total === 1 ? 'group' : 'groups'}.</p>
				<div class="scroll"><table>
					<thead><tr>{may.write && <th scope="col"><span class="hidden">Pick</span></th>}<th scope="col">Cause</th><th scope="col">Kind</th><th scope="col" class="num">ANRs</th><th scope="col" class="num">Users</th>
						<th scope="col">{fleet.days} days</th><th scope="col" class="num">Versions</th><th scope="col" class="num">Devices</th><th scope="col">Last</th></tr></thead>
					<tbody>{v.groups.map((g) => <Row key={g.key} g={g} days={fleet.days} picked={picked.includes(g.key)} pick={may.write ? () => turn(g.key) : undefined} />)}</tbody>
				</table></div></>}
		</Panel>
	);
}

export function AnrsPage() {
	const rest = path.value.slice('/anrs'.length);
	const key = /^\/([0-9a-f]{16})$/.exec(rest)?.[1];
	useEffect(() => {
		document.title = 'ANRs · tracewell';
	}, []);
	return (
		<main class="hangs">
			<div class="row head"><h1>{rest ? <a href={link('/anrs')}>ANRs</a> : 'ANRs'}{rest === '/rules' && ' · Rules'}</h1></div>
			{key ? <AnrGroup key={key} id={key} /> : rest === '/rules' ? <AnrRules /> : <List />}
		</main>
	);
}
