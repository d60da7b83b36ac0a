// ANRs by cause: which there are, whom they hit and since when; one of them; the rules that make them.
import { useEffect, useState } from 'preact/hooks';
import { get, may } from '../api/api';
import { AnrGroup } from './anrgroup';
import { KINDS, RATES, rate, type Group, type Groups } from './anrgroups';
import { AnrRules } from './anrrules';
import { FleetFilter, NoRows, Trend, Ungrouped, useFleet } from './fleetfilter';
import { decisionOf } from './triage';
import { count, sentence, when } from '../i18n/format';
import { ended, serverText } from '../i18n/servertext';
import { Cards } from '../ui/cards';
import { Panel, Pending, useLoad } from '../ui/parts';
import { link, path, query, set, text } from '../ui/route';
import { tr } from '../i18n/strings/anrs';

const ROWS = 100;

/** The same question on another page of ANRs. */
export function within(to: string): string {
	const q = query.value.toString();
	return q ? `${to}?${q}` : to;
}

function Row({ g, traces, days, picked, pick }: { g: Group; traces: number | null; days: number; picked: boolean; pick?: () => void }) {
	return (
		<tr data-group={g.key}>
			{pick && <td class="check"><input type="checkbox" checked={picked} onChange={pick} aria-label={tr('Select {title}', { title: g.name || serverText(g.title) })} /></td>}
			<td class="cause"><a href={within(`/anrs/${g.key}`)}>{g.name || serverText(g.title)}</a><p class="quiet">{g.name && `${ended(serverText(g.title))} `}{ended(sentence(serverText(g.verdict)))}</p>{decisionOf(g) && <p class="quiet" data-decision>{decisionOf(g)}</p>}</td>
			<td><span class={`state ${g.kind === 'deadlock' ? 'failed' : ''}`}>{KINDS[g.kind] ?? g.kind}</span></td>
			<td class="num">{count(g.count)}{rate(g.count, traces) && <><br /><span class="quiet nowrap" data-rate>{tr('{rate} per 1,000', { rate: rate(g.count, traces) })}</span></>}</td>
			<td class="num">{g.users ? count(g.users) : <span class="quiet">{tr('not given')}</span>}</td>
			<td><Trend trend={g.trend} days={days} name={g.name || serverText(g.title)} /></td>
			<td class="num">{count(g.versions)}</td>
			<td class="num">{count(g.devices)}</td>
			<td class="when">{when(g.last_ms)}<br /><span class="quiet">{g.last_version || tr('no version')}</span></td>
		</tr>
	);
}

function List() {
	const fleet = useFleet();
	const kind = KINDS[text('kind')] ? text('kind') : '';
	const load = useLoad(`anrs ${fleet.key} ${kind}`, () => get<Groups>('/api/v1/anr/groups', { ...fleet.params, kind, limit: ROWS }));
	const [picked, pick] = useState<string[]>([]);
	const v = load.value;
	const turn = (key: string) => pick(picked.includes(key) ? picked.filter((k) => k !== key) : [...picked, key]);
	return (
		<Panel title={tr('ANRs by cause')} id="anrs" aside={<>
			<label class="inline">{tr('Kind')}{' '}<select name="kind" value={kind} onChange={(e) => set({ kind: e.currentTarget.value }, true)}>
				<option value="">{tr('any')}</option>{Object.entries(KINDS).map(([k, shown]) => <option key={k} value={k}>{shown}</option>)}</select></label>
			{picked.length > 0 && <a class="button" href={`${link('/anrs/rules')}${link('/').includes('?') ? '&' : '?'}groups=${picked.join('.')}`}>{picked.length === 1 ? tr('Rename') : tr('Merge {picked}', { picked: picked.length })}</a>}
			<a class="button" href={within('/anrs/rules')}>{tr('Rules')}</a>
		</>}>
			{(!v || load.error) && <Pending of={load} what={tr('Loading groups')} />}
			<Ungrouped load={load} />
			{v && v.groups.length === 0 && v.pending === 0 && <NoRows also={['kind']} unmatched={tr('No ANR matches.')}
				none={<>{tr('No ANRs in the last {days} days.', { days: fleet.days })}{may.write && <>{' '}{tr('Drop a thread dump anywhere on this page to see the cause of the ANR.')}</>}</>} />}
			{v && v.groups.length > 0 && <>
				<p class="quiet">{tr('{reports}{users} in {groups}.', { reports: tr.many(v.anrs, '{n} report', '{n} reports'), users: v.users > 0 && tr.many(v.users, ' of {n} user', ' of {n} users'), groups: tr.many(v.total, '{n} group', '{n} groups') })}
					{rate(v.anrs, v.traces) && <>{' '}{tr('Reports per 1,000 traces with times: {rate}.', { rate: rate(v.anrs, v.traces) })} {RATES}</>}</p>
				<Cards>
					<thead><tr>{may.write && <th><span class="hidden">{tr('Pick')}</span></th>}<th>{tr('Cause')}</th><th>{tr('Kind')}</th><th class="num">{tr('ANRs')}</th><th class="num">{tr('Users')}</th>
						<th>{tr('{days} days', { days: fleet.days })}</th><th class="num">{tr('Versions')}</th><th class="num">{tr('Devices')}</th><th>{tr('Last seen')}</th></tr></thead>
					<tbody>{v.groups.map((g) => <Row key={g.key} g={g} traces={v.traces} days={fleet.days} picked={picked.includes(g.key)} pick={may.write ? () => turn(g.key) : undefined} />)}</tbody>
				</Cards></>}
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
		<main class="anrs">
			<div class="row head"><h1>{rest ? <a href={link('/anrs')}>{tr('ANRs')}</a> : tr('ANRs')}{rest === '/rules' && tr(' · Rules')}</h1>{rest !== '/rules' && <FleetFilter />}</div>
			{key ? <AnrGroup key={key} id={key} /> : rest === '/rules' ? <AnrRules /> : <List />}
		</main>
	);
}
