// The daily inbox: regressions, ANR groups and alerts in one list, by state, changed one at a time or in bulk.
import { useEffect, useState } from 'preact/hooks';
import { get, may } from '../api/api';
import { count, duration, inUnit, signed, when } from '../i18n/format';
import { serverText } from '../i18n/servertext';
import { tr } from '../i18n/strings/inbox';
import { Cards } from '../ui/cards';
import { useChange } from '../ui/change';
import { Page } from '../ui/page';
import { Failure, MethodName, Pending, useLoad } from '../ui/parts';
import { EmptyPage, fromStart, Pages, useRowKeys } from '../ui/pages';
import { narrow } from '../ui/narrow';
import { link, set, text, type Changes } from '../ui/route';
import { KINDS } from './anrgroups';
import { Trend } from './fleetfilter';
import { Decisions } from './decisions';
import { RegressionDays, TREND_DAYS } from './regressiondays';
import { BOX_NAMES, BOXES, dayOf, decide, durationName, inMuteDays, mayRevert, revert, stateOf, TONES, type Box, type Decision, type Inbox, type Item } from './triage';

const PAGE = 100;
const keyOf = (i: Item) => `${i.kind} ${i.id}`;

function addressOf(i: Item): string {
	if (i.alert) return link(i.alert.anr ? `/anrs/${i.alert.anr}` : `/fleet?${new URLSearchParams({ app: i.app, scenario: i.scenario, version_name: i.version })}`);
	return link(i.kind === 'anr' ? `/anrs/${i.id}` : `/regressions?${new URLSearchParams({ open: i.id, status: 'all' })}`);
}

const filter = (changes: Changes) => set(fromStart(changes), true);

const shown = (value: number, unit: NonNullable<Item['alert']>['unit']) => inUnit(value, unit, (n) => tr('{n} times', { n }));

function figureOf(i: Item): string {
	if (i.anr) return tr.many(i.anr.count, '{n} report', '{n} reports');
	if (i.alert) return tr('{value}, threshold {threshold}', { value: i.alert.traces || i.alert.anr ? shown(i.alert.value, i.alert.unit) : tr('no value'), threshold: shown(i.alert.threshold, i.alert.unit) });
	return i.regression!.kind === 'new' ? tr('new method') : signed(i.regression!.change);
}

function Tabs({ box, counts }: { box: Box; counts?: Record<Box, number> }) {
	return (
		<div class="row boxes" role="group" aria-label={tr('State')}>
			{BOXES.map((b) => <button key={b} class="small" aria-pressed={b === box} onClick={() => filter({ state: b === 'live' ? null : b })}>{BOX_NAMES[b]}{counts && <span class="num"> {count(counts[b])}</span>}</button>)}
		</div>
	);
}

interface Done { before: Item[]; what: Decision }

/** A regression of the duration of a scenario has the scenario as its title. */
const isWhole = (i: Item): boolean => i.kind === 'regression' && i.title === i.scenario;

const titleOf = (i: Item): string => (i.kind === 'anr' ? serverText(i.title) : isWhole(i) || !i.title ? durationName(i.scenario) : i.title);

function newState({ before, what }: Done): string {
	if (what.owner !== undefined) return what.owner ? tr('assigned to {owner}', { owner: what.owner }) : tr('unassigned');
	if (what.muted_until_ms !== undefined) return what.muted_until_ms ? tr('muted until {day}', { day: dayOf(what.muted_until_ms) }) : tr('unmuted');
	return stateOf({ ...before[0], ...what, muted_until_ms: 0 });
}

const NO_ACCOUNT = tr('Not assigned: you signed in with a link or a key, not with an account. Select the item and enter an owner.');

/** The last change, with a button that undoes it, or why there was none. */
function LastChange({ last, undo }: { last: Done | string | null; undo: () => void }) {
	if (typeof last === 'string') return <p role="status">{last}</p>;
	const items = last && (last.before.length === 1 ? titleOf(last.before[0]) : tr.many(last.before.length, '{n} item', '{n} items'));
	return (
		<p class="row quiet anywhere lastchange" role="status">
			{last && tr('{items}: {state}', { items, state: newState(last) })}
			{last && mayRevert(last.before, last.what) && <button class="small" onClick={undo}>{tr('Undo')}</button>}
		</p>
	);
}

const kindOf = (i: Item): string => (i.kind === 'anr' ? tr('ANR, {kind}', { kind: KINDS[i.anr!.kind] ?? i.anr!.kind }) : i.alert ? tr('Alert') : tr('Regression'));

function Row({ i, picked, pick }: { i: Item; picked: boolean; pick: () => void }) {
	return (
		<tr data-item={keyOf(i)} class={picked ? 'is-picked' : ''}>
			{may.write && <td class="check"><input type="checkbox" checked={picked} onChange={pick} aria-label={tr('Select {title}', { title: titleOf(i) })} /></td>}
			<td class="anywhere wide"><a class="rowlink" href={addressOf(i)}>{i.kind === 'regression' && i.title && !isWhole(i) ? <MethodName name={i.title} /> : titleOf(i)}</a>
				{i.scenario && i.scenario !== i.title && <span class="quiet"> {i.scenario}</span>}
				{narrow.value && <div class="quiet">{kindOf(i)}</div>}</td>
			{!narrow.value && <td>{kindOf(i)}</td>}
			<td>{i.anr && <Trend trend={i.anr.trend} days={TREND_DAYS} name={titleOf(i)} wide={90} high={14} />}{i.regression && <RegressionDays id={i.id} percentile={i.regression.percentile} name={titleOf(i)} />}</td>
			<td class="num">{i.regression && <span class="quiet nowrap">{i.regression.kind === 'new' ? '' : `${duration(i.regression.before_ns)} → `}{duration(i.regression.after_ns)}</span>} {figureOf(i)}</td>
			<td><span class={`state ${TONES[i.status]}`}>{stateOf(i)}</span></td>
			<td class="anywhere">{i.owner ? <><span class="letter" aria-hidden="true">{[...i.owner][0]}</span>{'\u00a0'}{i.owner}</> : '–'}</td>
			<td class="nowrap">{i.version || '–'}</td>
			<td class="when">{when(i.last_ms)}</td>
		</tr>
	);
}

/** Keys that change the selected items, or the focused one. */
const DECISIONS: Record<string, (me: string) => Decision | false> = { a: () => ({ status: 'acknowledged' }), f: () => ({ status: 'fixed' }), m: () => ({ muted_until_ms: inMuteDays() }), i: (owner) => owner !== '' && { owner } };

export function InboxPage({ name }: { name: string }) {
	const box = BOXES.find((b) => b === text('state')) ?? 'live';
	const kind = ['anr', 'regression', 'alert'].includes(text('kind')) ? text('kind') : '';
	const owner = text('owner');
	const query = { state: box, kind, owner, cursor: text('cursor') };
	const page = JSON.stringify(query);
	const load = useLoad(`inbox ${page}`, (s) => get<Inbox>('/api/v1/inbox', { ...query, limit: PAGE }, s));
	const [keys, hold] = useState<string[]>([]);
	const v = load.value;
	const items = v?.items ?? [];
	const [owners, addOwners] = useState<string[]>([]); // of all items seen so far
	useEffect(() => addOwners((known) => [...new Set([...known, name, ...items.map((i) => i.owner)])].filter(Boolean).sort()), [v]);
	const picked = items.filter((i) => keys.includes(keyOf(i)));
	const pick = (i: Item) => hold(keys.includes(keyOf(i)) ? keys.filter((k) => k !== keyOf(i)) : [...keys, keyOf(i)]);
	const [last, remember] = useState<Done | string | null>(null);
	const changed = (to: Done | null) => {
		hold([]);
		remember(to);
		load.again();
	};
	const [error, change] = useChange(() => undefined);
	const apply = async (before: Item[], what: Decision) => {
		remember(null); // what came before cannot be undone during the change
		if (await change(() => decide(before, what))) changed({ before, what });
	};
	const undo = async () => {
		remember(null);
		if (last && typeof last !== 'string') await change(() => revert(last.before, last.what));
		changed(null); // also after a failure, which may have reverted some
	};
	useRowKeys(items, (key, here) => {
		const on = picked.length > 0 ? picked : here ? [here] : [];
		const decision = DECISIONS[key]?.(name);
		if (key === 'x' && here) pick(here);
		else if (decision && may.write && on.length > 0) void apply(on, decision);
		else if (key === 'i' && may.write && on.length > 0) remember(NO_ACCOUNT);
		else if (key === 'z' && last && typeof last !== 'string' && mayRevert(last.before, last.what)) void undo();
		else if (key === 'Escape' && picked.length > 0) hold([]);
		else return false;
		return true;
	});
	useEffect(() => {
		hold([]);
		remember(null);
	}, [page]);
	const all = items.length > 0 && picked.length === items.length;
	return (
		<Page title={tr('Inbox')} of="inbox" head={<><span class="grow" /><span class="quiet keyhint">{tr('j k move, x selects, a acknowledges, i assigns to you, f fixes, m mutes, z undoes')}</span></>}>
			<Tabs box={box} counts={v?.counts} />
			<div class="row">
				<label class="inline">{tr('Kind')}<select value={kind} onChange={(e) => filter({ kind: e.currentTarget.value })}>
					<option value="">{tr('any')}</option><option value="regression">{tr('Regressions')}</option><option value="anr">{tr('ANR groups')}</option><option value="alert">{tr('Alerts')}</option></select></label>
				<label class="inline">{tr('Owner')}<input list="owners" value={owner} onChange={(e) => filter({ owner: e.currentTarget.value.trim() })} /><datalist id="owners">{owners.map((o) => <option key={o} value={o} />)}</datalist></label>
				{name && owner !== name && <button class="small" onClick={() => filter({ owner: name })}>{tr('Mine')}</button>}
				{(kind || owner) && <button class="small" onClick={() => filter({ kind: null, owner: null })}>{tr('Clear')}</button>}
				<LastChange last={last} undo={() => void undo()} />
			</div>
			{error && <Failure error={error} />}
			<Pending of={load} what={tr('Loading the inbox')} />
			{v && v.total > 0 && items.length === 0 && <EmptyPage />}
			{v && v.total === 0 && <div class="notice"><strong>{kind || owner ? tr('No items match.') : v.counts.all === 0 ? tr('The inbox is empty.') : box === 'live' ? tr('No unresolved items.') : tr('No items match.')}</strong>
				{v.counts.all === 0 && !kind && !owner && <p>{tr.rich('Regressions, ANR groups and alerts of this project appear here. {rules} define when a change is reported.', { rules: <a href={link('/regressions')}>{tr('Thresholds')}</a> })}</p>}
				{box !== 'all' && v.counts.all > 0 && <p><button onClick={() => filter({ state: 'all' })}>{tr('Show all {n}', { n: count(v.counts.all) })}</button></p>}</div>}
			{items.length > 0 && <Cards>
				<thead><tr>{may.write && <th class="check"><input type="checkbox" aria-label={tr('Select all on this page')} checked={all} onChange={() => hold(all ? [] : items.map(keyOf))} /></th>}
					<th>{tr('Item')}</th>{!narrow.value && <th>{tr('Kind')}</th>}<th>{tr('{days} days', { days: TREND_DAYS })}</th><th class="num">{tr('Change, reports')}</th><th>{tr('State')}</th><th>{tr('Owner')}</th><th>{tr('Version')}</th><th>{tr('Last seen')}</th></tr></thead>
				<tbody>{items.map((i) => <Row key={keyOf(i)} i={i} picked={keys.includes(keyOf(i))} pick={() => pick(i)} />)}</tbody>
			</Cards>}
			{v && <Pages rows={items.length} total={count(v.total)} cursor={v.next_cursor} of={load} />}
			{picked.length > 0 && <section class="picked" aria-label={tr('Selected')}><p>{tr.many(picked.length, '{n} selected', '{n} selected')}</p><Decisions key={keys.join()} items={picked} changed={(what) => changed({ before: picked, what })} /></section>}
		</Page>
	);
}
