// The daily inbox: regressions, ANR groups and alerts in one list, by state, answered one by one or several at once.
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { get, may } from '../api/api';
import { count, inUnit, signed, when } from '../i18n/format';
import { heard } from '../i18n/heard';
import { tr } from '../i18n/strings/inbox';
import { MethodName, Pending, useLoad } from '../ui/parts';
import { go, link, set, text } from '../ui/route';
import { KINDS } from './anrgroups';
import { Decisions } from './decisions';
import { BOX_NAMES, BOXES, decide, inMuteDays, stateOf, type Box, type Inbox, type Item } from './triage';

const keyOf = (i: Item) => `${i.kind} ${i.id}`;

function addressOf(i: Item): string {
	if (i.alert) return link(i.alert.anr ? `/anrs/${i.alert.anr}` : `/fleet?${new URLSearchParams({ app: i.app, scenario: i.scenario, version_name: i.version })}`);
	return link(i.kind === 'anr' ? `/anrs/${i.id}` : `/regressions?${new URLSearchParams({ open: i.id, status: 'all' })}`);
}

const shown = (value: number, unit: NonNullable<Item['alert']>['unit']) => inUnit(value, unit, (n) => tr('{n} times', { n }));

function figureOf(i: Item): string {
	if (i.anr) return tr.many(i.anr.count, '{n} report', '{n} reports');
	if (i.alert) return tr('{value}, limit {limit}', { value: i.alert.traces || i.alert.anr ? shown(i.alert.value, i.alert.unit) : tr('no figure'), limit: shown(i.alert.limit, i.alert.unit) });
	return i.regression!.kind === 'new' ? tr('new method') : signed(i.regression!.change);
}

function Tabs({ box, counts }: { box: Box; counts?: Record<Box, number> }) {
	return (
		<div class="row boxes" role="group" aria-label={tr('State')}>
			{BOXES.map((b) => <button key={b} class="small" aria-pressed={b === box} onClick={() => set({ state: b === 'live' ? null : b }, true)}>{BOX_NAMES[b]}{counts && <span class="num"> {count(counts[b])}</span>}</button>)}
		</div>
	);
}

function Row({ i, picked, pick }: { i: Item; picked: boolean; pick: () => void }) {
	return (
		<tr data-item={keyOf(i)} class={picked ? 'is-picked' : ''}>
			{may.write && <td class="check"><input type="checkbox" checked={picked} onChange={pick} aria-label={tr('Select {title}', { title: i.title })} /></td>}
			<td class="anywhere wide"><a class="rowlink" href={addressOf(i)}>{i.alert ? i.title : i.kind === 'anr' ? heard(i.title) : i.title ? <MethodName name={i.title} /> : tr('the whole trace')}</a>
				{i.scenario && i.scenario !== i.title && <span class="quiet"> {i.scenario}</span>}</td>
			<td class="nowrap">{i.kind === 'anr' ? tr('ANR, {kind}', { kind: KINDS[i.anr!.kind] ?? i.anr!.kind }) : i.alert ? tr('Alert') : tr('Regression')}</td>
			<td class="num">{figureOf(i)}</td>
			<td>{stateOf(i)}</td>
			<td class="anywhere">{i.owner || <span class="quiet">{tr('nobody')}</span>}</td>
			<td class="nowrap">{i.version || '–'}</td>
			<td class="nowrap">{when(i.last_ms)}</td>
		</tr>
	);
}

const typing = (e: KeyboardEvent) => e.ctrlKey || e.metaKey || e.altKey || (/^(INPUT|TEXTAREA|SELECT)$/.test((e.target as Element).tagName) && (e.target as HTMLInputElement).type !== 'checkbox');

/** j and k move, x picks, a, f, m answer what is picked or has the focus. */
function useKeys(items: Item[], picked: Item[], pick: (i: Item) => void, clear: () => void, again: () => void): void {
	useLayoutEffect(() => {
		const key = (e: KeyboardEvent) => {
			if (typing(e) || document.querySelector('dialog[open]')) return;
			const links = [...document.querySelectorAll<HTMLElement>('tr[data-item] .rowlink')];
			const at = links.findIndex((l) => l.closest('tr')!.contains(document.activeElement));
			const here = items.find((i) => keyOf(i) === links[at]?.closest('tr')!.dataset.item);
			const on = picked.length > 0 ? picked : here ? [here] : [];
			const say = (what: Parameters<typeof decide>[1]) => may.write && on.length > 0 && void decide(on, what).then(again);
			if (e.key === 'j') links[Math.min(links.length - 1, at + 1)]?.focus();
			else if (e.key === 'k') links[Math.max(0, at - 1)]?.focus();
			else if (e.key === 'x' && here) pick(here);
			else if (e.key === 'a') say({ status: 'acknowledged' });
			else if (e.key === 'f') say({ status: 'fixed' });
			else if (e.key === 'm') say({ muted_until_ms: inMuteDays() });
			else if (e.key === 'Escape' && picked.length > 0) clear();
			else return;
			e.preventDefault();
		};
		addEventListener('keydown', key);
		return () => removeEventListener('keydown', key);
	});
}

export function InboxPage({ name }: { name: string }) {
	const box = BOXES.find((b) => b === text('state')) ?? 'live';
	const kind = ['anr', 'regression', 'alert'].includes(text('kind')) ? text('kind') : '';
	const owner = text('owner');
	const asked = { state: box, kind, owner };
	const load = useLoad(`inbox ${JSON.stringify(asked)}`, (s) => get<Inbox>('/api/v1/inbox', asked, s));
	const [keys, hold] = useState<string[]>([]);
	const v = load.value;
	const items = v?.items ?? [];
	const picked = items.filter((i) => keys.includes(keyOf(i)));
	const pick = (i: Item) => hold(keys.includes(keyOf(i)) ? keys.filter((k) => k !== keyOf(i)) : [...keys, keyOf(i)]);
	const changed = () => {
		hold([]);
		load.again();
	};
	useKeys(items, picked, pick, () => hold([]), changed);
	useEffect(() => {
		document.title = tr('Inbox · tracewell');
	}, []);
	const all = items.length > 0 && picked.length === items.length;
	return (
		<main class="inbox">
			<div class="row head"><h1>{tr('Inbox')}</h1><span class="grow" /><span class="quiet">{tr('j k move, x selects, a acknowledges, f fixes, m mutes')}</span></div>
			<Tabs box={box} counts={v?.counts} />
			<div class="row">
				<label class="inline">{tr('Kind')}<select value={kind} onChange={(e) => set({ kind: e.currentTarget.value }, true)}>
					<option value="">{tr('any')}</option><option value="regression">{tr('Regressions')}</option><option value="anr">{tr('ANR groups')}</option><option value="alert">{tr('Alerts')}</option></select></label>
				<label class="inline">{tr('Owner')}<input value={owner} onChange={(e) => set({ owner: e.currentTarget.value.trim() }, true)} /></label>
				{name && owner !== name && <button class="small" onClick={() => set({ owner: name }, true)}>{tr('Mine')}</button>}
				{(kind || owner) && <button class="small" onClick={() => set({ kind: null, owner: null }, true)}>{tr('Clear')}</button>}
			</div>
			<Pending of={load} what={tr('Loading the inbox')} />
			{v && items.length === 0 && <div class="notice"><strong>{box === 'live' ? tr('Nothing needs review.') : tr('Nothing is in this state.')}</strong>
				{box !== 'all' && v.counts.all > 0 && <p><button onClick={() => go(link('/inbox?state=all'))}>{tr('Show all {n}', { n: count(v.counts.all) })}</button></p>}</div>}
			{items.length > 0 && <div class="scroll"><table>
				<thead><tr>{may.write && <th scope="col" class="check"><input type="checkbox" aria-label={tr('Select all')} checked={all} onChange={() => hold(all ? [] : items.map(keyOf))} /></th>}
					<th scope="col">{tr('What')}</th><th scope="col">{tr('Kind')}</th><th scope="col" class="num">{tr('Change, reports')}</th><th scope="col">{tr('State')}</th><th scope="col">{tr('Owner')}</th><th scope="col">{tr('Version')}</th><th scope="col">{tr('Last seen')}</th></tr></thead>
				<tbody>{items.map((i) => <Row key={keyOf(i)} i={i} picked={keys.includes(keyOf(i))} pick={() => pick(i)} />)}</tbody>
			</table></div>}
			{v && v.total > items.length && <p class="quiet">{tr('The latest {n} of {total}.', { n: count(items.length), total: count(v.total) })}</p>}
			{picked.length > 0 && <section class="picked" aria-label={tr('Selected')}><p>{tr.many(picked.length, '{n} selected', '{n} selected')}</p><Decisions key={keys.join()} items={picked} changed={changed} /></section>}
		</main>
	);
}
