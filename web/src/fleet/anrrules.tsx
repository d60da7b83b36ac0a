// The rules by which ANRs are grouped: applied in order, changed by users with write permission, all versions stored.
import { useState } from 'preact/hooks';
import { get, may, send } from '../api/api';
import { ACTS, KINDS, describe, type Rule, type Rules } from './anrgroups';
import { Cards } from '../ui/cards';
import { Sure, useChange, useEditing } from '../ui/change';
import { when } from '../i18n/format';
import { Invalid, useInvalid } from '../ui/invalid';
import { Failure, Panel, Pending, useLoad } from '../ui/parts';
import { number, set, text } from '../ui/route';
import { tr } from '../i18n/strings/anrs';

const EXAMPLES: Record<Rule['action'], string> = { skip: 'com.example.log.', merge: '/^com\\.example\\.image\\./', name: 'com.example.Cart' };

function tidy(r: Rule): Rule {
	if (r.action === 'skip') return { action: 'skip', frame: r.frame ?? '', ...(r.enabled === false && { enabled: false }) };
	return { action: r.action, name: r.name ?? '', ...(r.frame && { frame: r.frame }), ...(r.lock && { lock: r.lock }), ...(r.kind && { kind: r.kind }), ...(r.groups?.length && { groups: r.groups }), ...(r.enabled === false && { enabled: false }) };
}

function Form({ rule, keep, cancel }: { rule: Rule; keep: (r: Rule) => void; cancel: () => void }) {
	const [r, put] = useState(rule);
	const field = (key: 'name' | 'frame' | 'lock') => ({ name: key, spellcheck: false, value: r[key] ?? '', onInput: (e: { currentTarget: { value: string } }) => put({ ...r, [key]: e.currentTarget.value }) });
	return (
		<form class="rule" aria-label={tr('A rule')} onSubmit={(e) => { e.preventDefault(); keep(tidy(r)); }}>
			<div class="row">
				<label class="inline">{tr('Rule')}{' '}<select name="action" value={r.action} onChange={(e) => put({ ...r, action: e.currentTarget.value as Rule['action'] })}>{Object.entries(ACTS).map(([k, shown]) => <option key={k} value={k}>{shown}</option>)}</select></label>
				{r.action !== 'skip' && <label class="inline">{tr('Name of the group')}{' '}<input {...field('name')} /></label>}
				<label class="inline">{tr('Frame')}{' '}<input class="mono" placeholder={EXAMPLES[r.action]} {...field('frame')} /></label>
				{r.action !== 'skip' && <label class="inline">{tr('Lock of class')}{' '}<input class="mono" {...field('lock')} /></label>}
				{r.action !== 'skip' && <label class="inline">{tr('Kind')}{' '}<select name="kind" value={r.kind ?? ''} onChange={(e) => put({ ...r, kind: e.currentTarget.value || undefined })}>
					<option value="">{tr('any')}</option>{Object.entries(KINDS).map(([k, shown]) => <option key={k} value={k}>{shown}</option>)}</select></label>}
				<label class="inline"><input type="checkbox" name="enabled" checked={r.enabled !== false} onChange={(e) => put({ ...r, enabled: e.currentTarget.checked })} />{' '}{tr('Enabled')}</label>
			</div>
			{r.action !== 'skip' && (r.groups?.length ?? 0) > 0 && <p class="quiet anywhere">{tr('Of the groups {groups}.', { groups: r.groups!.join(', ') })}</p>}
			<p class="quiet">{tr('Text contained in a name, ignoring case, or a regular expression between slashes. All conditions must match.')}</p>
			<div class="row"><button class="primary">{tr('Save')}</button><button type="button" onClick={cancel}>{tr('Cancel')}</button></div>
		</form>
	);
}

function Table({ rules, edit, change }: { rules: Rule[]; edit: (at: number) => void; change?: (rules: Rule[]) => void }) {
	const swap = (at: number) => rules.map((r, i) => (i === at - 1 ? rules[at] : i === at ? rules[at - 1] : r));
	return (
		<Cards>
			<thead><tr><th class="num">{tr('No.')}</th><th>{tr('Rule')}</th><th>{tr('Group')}</th><th>{tr('Effect')}</th>{change && <th><span class="hidden">{tr('Actions')}</span></th>}</tr></thead>
			<tbody>{rules.map((r, i) => (
				<tr key={i} data-rule={i + 1}>
					<td class="num">{i + 1}</td><td class="nowrap">{ACTS[r.action]}{r.enabled === false && <span class="quiet">{' '}{tr('(disabled)')}</span>}</td><td class="anywhere">{r.name}</td><td class="anywhere">{describe(r)}</td>
					{change && <td class="actions">
						<button class="small" disabled={i === 0} onClick={() => change(swap(i))} aria-label={tr('Move rule {i} up', { i: i + 1 })}>{tr('Move up')}</button>
						<button class="small" data-edits={`anr ${i}`} onClick={() => edit(i)} aria-label={tr('Edit rule {i}', { i: i + 1 })}>{tr('Edit')}</button>
						<Sure what={tr('Remove')} label={tr('Remove rule {i}', { i: i + 1 })} act={() => change(rules.filter((o) => o !== r))} /></td>}
				</tr>))}</tbody>
		</Cards>
	);
}

function Versions({ v }: { v: Rules }) {
	const last = v.versions[0]?.version ?? 0;
	if (v.versions.length < 2) return null;
	return (
		<label class="inline">{tr('Version')}{' '}<select name="version" value={v.version} onChange={(e) => set({ version: Number(e.currentTarget.value) === last ? null : e.currentTarget.value }, true)}>
			{v.versions.map((o) => <option key={o.version} value={o.version}>{o.version}, {when(o.created_ms)}{o.author && tr(' by {author}', { author: o.author })}</option>)}</select></label>
	);
}

/** Groups that were picked in the list, for a rule about them. */
function useWanted(): Rule | null {
	const groups = text('groups').split('.').filter((k) => /^[0-9a-f]{16}$/.test(k));
	return groups.length ? { action: groups.length > 1 ? 'merge' : 'name', groups } : null;
}

export function AnrRules() {
	const version = number('version');
	const wanted = useWanted();
	const load = useLoad(`anr rules ${version ?? ''}`, () => get<Rules>('/api/v1/anr/rules', { version }));
	const [error, run] = useChange(load.again);
	const [editing, edit] = useEditing('anr', wanted && ''); // '' is a new one
	const v = load.value;
	const invalid = useInvalid('anr_rules', v);
	const last = v?.versions[0]?.version ?? 0;
	const now = v !== null && v.version === last;
	const put = (rules: Rule[]) => run(async () => {
		await send('PUT', '/api/v1/anr/rules', { version: last, rules });
		if (version !== null) set({ version: null });
	});
	const keep = async (r: Rule) => {
		if (!(await put(editing === '' ? [...v!.rules, r] : v!.rules.map((o, i) => (String(i) === editing ? r : o))))) return;
		edit(null);
		set({ groups: null });
	};
	return (
		<Panel title={tr('How ANRs are grouped')} id="rules" aside={v && <>{editing === null && <Versions v={v} />}
			{may.write && now && editing === null && <button data-edits="anr " onClick={() => edit('')}>{tr('Add a rule')}</button>}
			{may.write && !now && <button onClick={() => void put(v.rules)}>{tr('Restore these rules')}</button>}</>}>
			{(!v || load.error) && <Pending of={load} what={tr('Loading rules')} />}
			<Invalid why={invalid} />
			{v && v.rules.length === 0 && editing === null && <p class="quiet">{tr('There are no rules: ANRs are grouped by cause.')}</p>}
			{v && v.rules.length > 0 && <Table rules={v.rules} edit={(i) => edit(String(i))} change={may.write && now ? (rules) => void put(rules) : undefined} />}
			{v && editing !== null && <Form key={editing} rule={editing === '' ? wanted ?? { action: 'skip' } : v.rules[Number(editing)]} keep={(r) => void keep(r)} cancel={() => { edit(null); set({ groups: null }); }} />}
			{error && <Failure error={error} />}
			{v && <p class="quiet">{tr("The first matching rule names or merges a group. A change regroups all reports in the background. App frames are set with the methods of a trace.")}</p>}
		</Panel>
	);
}
