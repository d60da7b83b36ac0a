// Limits of figures: the rules with their current figures, and a form that adds one.
import { useState } from 'preact/hooks';
import { get, send } from '../api/api';
import { count } from '../i18n/format';
import { tr } from '../i18n/strings/webhooks';
import { Sure, useChange } from '../ui/change';
import { Failure, Panel, Pending, useLoad } from '../ui/parts';

interface Rule {
	id: string; name: string; kind: string; unit: 'ms' | 'share' | 'times'; app: string; scenario: string; version_name: string;
	percent: number; limit: number; least: number; days: number; mail: boolean;
}
interface Rules { rules: Rule[]; most: number; mail: boolean }
interface Figure { rule: string; app: string; version: string; anr: string; value: number; traces: number; over: boolean }
interface Look { figures: Figure[]; partial: boolean }
type Draft = Pick<Rule, 'name' | 'kind' | 'app' | 'scenario' | 'percent' | 'least' | 'days' | 'mail'> & { limit: string };

const KINDS: [kind: string, shown: string, unit: Rule['unit']][] = [['duration', tr('duration'), 'ms'], ['initial_display', tr('time to initial display'), 'ms'], ['full_display', tr('time to full display'), 'ms'],
	['slow_frames', tr('slow frames'), 'share'], ['frozen_frames', tr('frozen frames'), 'share'], ['anr_spike', tr('spike of an ANR group'), 'times']];
const NEW: Draft = { name: '', kind: 'duration', app: '', scenario: '', percent: 95, limit: '', least: 20, days: 7, mail: true };
const SIGNIFICANT = 3;

const unitOf = (kind: string) => KINDS.find(([k]) => k === kind)?.[2] ?? 'ms';
const plain = (n: number) => String(Number(n.toPrecision(SIGNIFICANT)));
/** As the server writes it in messages: shares as percentages. */
const shown = (value: number, unit: Rule['unit']) => unit === 'ms' ? `${plain(value)} ms` : unit === 'share' ? `${plain(value * 100)} %` : tr('{n} times', { n: plain(value) });
const scopeOf = (r: Rule) => [r.app, r.scenario, r.version_name].filter(Boolean).join(', ') || tr('all traces');

function Form({ mail, keep, cancel }: { mail: boolean; keep: (d: Draft) => void; cancel: () => void }) {
	const [d, put] = useState(NEW);
	const unit = unitOf(d.kind);
	const save = (e: Event) => {
		e.preventDefault();
		keep(d);
	};
	const number = (key: 'percent' | 'least' | 'days', most: number) => <input class="short" type="number" name={key} min={1} max={most} required value={d[key]} onInput={(e) => put({ ...d, [key]: Number(e.currentTarget.value) })} />;
	return (
		<form class="rule" onSubmit={save} aria-label={tr('A new alert rule')}>
			<div class="row">
				<label class="inline">{tr('Name')}{' '}<input name="name" maxLength={100} required autofocus value={d.name} onInput={(e) => put({ ...d, name: e.currentTarget.value })} /></label>
				<label class="inline">{tr('Figure')}{' '}<select name="kind" value={d.kind} onChange={(e) => put({ ...d, kind: e.currentTarget.value })}>{KINDS.map(([k, words]) => <option key={k} value={k}>{words}</option>)}</select></label>
				{unit === 'ms' && <label class="inline">{tr('Percentile')}{' '}{number('percent', 99)}</label>}
				<label class="inline">{unit === 'ms' ? tr('Limit in ms') : unit === 'share' ? tr('Limit in %') : tr('Limit, times the mean day')}{' '}<input class="short" type="number" name="limit" min="0" step="any" required value={d.limit} onInput={(e) => put({ ...d, limit: e.currentTarget.value })} /></label>
			</div>
			<div class="row">
				<label class="inline">{tr('App')}{' '}<input name="app" maxLength={200} value={d.app} onInput={(e) => put({ ...d, app: e.currentTarget.value })} /></label>
				<label class="inline">{tr('Scenario')}{' '}<input name="scenario" maxLength={200} value={d.scenario} onInput={(e) => put({ ...d, scenario: e.currentTarget.value })} /></label>
				<label class="inline">{tr('Days')}{' '}{number('days', 90)}</label>
				<label class="inline">{unit === 'times' ? tr('At least reports') : tr('At least traces')}{' '}{number('least', 1000000)}</label>
				{mail && <label class="inline"><input type="checkbox" name="mail" checked={d.mail} onChange={(e) => put({ ...d, mail: e.currentTarget.checked })} />{' '}{tr("also to the digest's addresses")}</label>}
			</div>
			<div class="row"><button class="primary">{tr('Add')}</button><button type="button" onClick={cancel}>{tr('Cancel')}</button></div>
		</form>
	);
}

function Row({ r, now, remove }: { r: Rule; now: Look | null; remove: () => void }) {
	const own = now?.figures.filter((f) => f.rule === r.id);
	return (
		<tr data-rule={r.id}>
			<td class="anywhere">{r.name}</td>
			<td>{r.unit === 'ms' ? `p${r.percent}, ` : ''}{KINDS.find(([k]) => k === r.kind)?.[1] ?? r.kind}</td>
			<td class="anywhere">{scopeOf(r)}</td>
			<td class="num nowrap">{shown(r.limit, r.unit)}</td>
			<td>{own && (own.length ? own.map((f) => <div key={`${f.app} ${f.version} ${f.anr}`} class={f.over ? 'loss' : 'quiet'}>{f.version || f.anr || tr('no version')}: {shown(f.value, r.unit)} ({count(f.traces)})</div>) : <span class="quiet">{now?.partial ? tr('no figure in time') : tr('too few traces')}</span>)}</td>
			<td class="actions"><Sure what={tr('Remove')} label={tr('Remove {name}', { name: r.name })} act={remove} /></td>
		</tr>
	);
}

export function AlertRules() {
	const load = useLoad('alert rules', () => get<Rules>('/api/v1/alerts/rules'));
	const [adding, add] = useState(false);
	const [now, show] = useState<Look | null>(null);
	const [error, change] = useChange(load.again);
	const look = async () => show(await (await send('POST', '/api/v1/alerts/look')).json() as Look);
	const keep = async (d: Draft) => {
		const { percent, ...rest } = d;
		const limit = Number(d.limit) / (unitOf(d.kind) === 'share' ? 100 : 1);
		if (await change(() => send('POST', '/api/v1/alerts/rules', { ...rest, name: d.name.trim(), limit, ...(unitOf(d.kind) === 'ms' ? { percent } : {}) }))) add(false);
	};
	const v = load.value;
	return (
		<Panel title={tr('Alerts')} id="alerts" aside={v && <>{v.rules.length > 0 && <button onClick={() => void change(look)}>{tr('Look now')}</button>}{' '}{!adding && v.rules.length < v.most && <button onClick={() => add(true)}>{tr('Add an alert rule')}</button>}</>}>
			<Pending of={load} what={tr('Loading alert rules')} />
			{v && v.rules.length === 0 && !adding && <p class="quiet">{tr('No alert rules yet. A rule reports each version whose figure is above a limit, once, in the inbox, to webhooks and by mail.')}</p>}
			{v && v.rules.length > 0 && <div class="scroll"><table>
				<thead><tr><th scope="col">{tr('Name')}</th><th scope="col">{tr('Figure')}</th><th scope="col">{tr('Of')}</th><th scope="col" class="num">{tr('Limit')}</th><th scope="col">{tr('Now')}</th><th scope="col"><span class="hidden">{tr('Actions')}</span></th></tr></thead>
				<tbody>{v.rules.map((r) => <Row key={r.id} r={r} now={now} remove={() => void change(() => send('DELETE', `/api/v1/alerts/rules/${r.id}`))} />)}</tbody>
			</table></div>}
			{v && adding && <Form mail={v.mail} keep={(d) => void keep(d)} cancel={() => add(false)} />}
			{error && <Failure error={error} />}
		</Panel>
	);
}
