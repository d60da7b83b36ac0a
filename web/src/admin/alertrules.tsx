// Limits of figures: the rules with their current figures, and a form that adds or changes one, with a preview.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { get, send } from '../api/api';
import { manage } from '../api/manage';
import { COMMA, count, inUnit } from '../i18n/format';
import { tr } from '../i18n/strings/notifications';
import { AsJson } from './asjson';
import { Cards } from '../ui/cards';
import { Sure, useChange, useEditing } from '../ui/change';
import { Failure, focused, Panel, Pending, useLoad } from '../ui/parts';
import { link, set, text } from '../ui/route';

interface Rule {
	id: string; name: string; kind: string; unit: 'ms' | 'share' | 'times'; app: string; scenario: string; version_name: string; method: string;
	percentile: number; threshold: number; min_traces: number; days: number; mail: boolean;
}
interface Rules { rules: Rule[]; max_rules: number; mail: boolean }
interface Figure { rule: string; app: string; version: string; anr: string; title: string; value: number; traces: number; exceeded: boolean; trace: string }
interface Look { figures: Figure[]; partial?: boolean }
type Draft = Pick<Rule, 'name' | 'kind' | 'app' | 'scenario' | 'version_name' | 'method' | 'percentile' | 'min_traces' | 'days' | 'mail'> & { threshold: string };

const KINDS: [kind: string, shown: string, unit: Rule['unit']][] = [['duration', tr('duration'), 'ms'], ['initial_display', tr('time to initial display'), 'ms'], ['full_display', tr('time to full display'), 'ms'],
	['slow_frames', tr('slow frames'), 'share'], ['frozen_frames', tr('frozen frames'), 'share'], ['method_self', tr('self time of a method'), 'ms'], ['method_share', tr('share of a method'), 'share'], ['anr_spike', tr('spike of an ANR group'), 'times']];
const NEW: Draft = { name: '', kind: 'duration', app: '', scenario: '', version_name: '', method: '', percentile: 95, threshold: '', min_traces: 20, days: 7, mail: true };
const PERCENT = 100;
const DIGITS = 12; // of a threshold in %: no 0.1 + 0.2
const LISTED = 20; // figures of a preview

const kindName = (kind: string) => KINDS.find(([k]) => k === kind)?.[1] ?? kind;
const unitOf = (kind: string) => KINDS.find(([k]) => k === kind)?.[2] ?? 'ms';
const shown = (value: number, unit: Rule['unit']) => inUnit(value, unit, (n) => tr('{n} times', { n }));
const ofMethod = (kind: string) => kind.startsWith('method');
const scopeOf = (r: Pick<Rule, 'app' | 'scenario' | 'version_name' | 'method'>) => [r.method, r.app, r.scenario, r.version_name].filter(Boolean).join(COMMA) || tr('all traces');
const figureOf = (r: Pick<Rule, 'kind' | 'percentile'>) => `${unitOf(r.kind) === 'ms' ? `p${r.percentile}${COMMA}` : ''}${kindName(r.kind)}`;
const subjectOf = (f: Figure) => f.version || f.title || f.anr || tr('no version');
const draftOf = (r: Rule): Draft => ({ ...r, threshold: String(r.unit === 'share' ? Number((r.threshold * PERCENT).toPrecision(DIGITS)) : r.threshold) });

const IN_LINK = ['alert', 'app', 'scenario', 'method', 'percentile', 'threshold'];

/** A new rule, filled in by a link of another page: alertLink. */
function draftOfAddress(): Draft {
	const [kind, app, scenario, method, percentile, threshold] = IN_LINK.map(text);
	if (!kind) return NEW;
	return { ...NEW, kind, app, scenario, method, percentile: Number(percentile) || NEW.percentile, threshold, name: [method || scenario || app, figureOf({ kind, percentile: Number(percentile) })].filter(Boolean).join(': ').slice(0, 100) };
}

/** The request body; for a stored rule only the members that can be changed. */
function bodyOf(d: Draft, stored: boolean): Partial<Rule> {
	const ms = unitOf(d.kind) === 'ms';
	const threshold = Number(d.threshold) / (unitOf(d.kind) === 'share' ? PERCENT : 1);
	return { name: d.name.trim(), threshold, min_traces: d.min_traces, days: d.days, mail: d.mail, ...(ms && { percentile: d.percentile }), ...(!stored && { kind: d.kind, app: d.app.trim(), scenario: d.scenario.trim(), version_name: d.version_name.trim(), method: ofMethod(d.kind) ? d.method.trim() : '' }) };
}

/** The fields that a rule as JSON has replace those of the form. */
const merged = (d: Draft, v: Partial<Rule>): Draft => draftOf({ ...d, ...bodyOf(d, false), ...v, unit: unitOf(v.kind ?? d.kind) } as Rule);

/** The figures of a rule as it would be now; `rule`: the id of a stored one. */
const previewOf = async (d: Draft, rule?: string) => (await send('POST', '/api/v1/alerts/preview', { ...bodyOf(d, !!rule), ...(rule && { rule }) })).json() as Promise<Look>;

function Preview({ d, rule }: { d: Draft; rule?: Rule }) {
	const [seen, see] = useState<Figure[] | null>(null);
	const [busy, work] = useState(false);
	const [error, run] = useChange(() => undefined);
	const edited = useRef(d);
	edited.current = d;
	useLayoutEffect(() => see(null), [d]);
	const unit = unitOf(d.kind);
	const missing = Number(d.threshold) > 0 ? '' : tr('Enter a threshold above 0.');
	const preview = () => run(async () => {
		work(true);
		try {
			const { figures } = await previewOf(d, rule?.id);
			if (edited.current === d) see(figures.sort((a, b) => b.value - a.value));
		} finally {
			work(false);
		}
	});
	useEffect(() => {
		if (!rule && missing === '') void preview();
	}, []); // a rule that a link filled in
	const over = seen?.filter((f) => f.exceeded).length ?? 0;
	return <>
		<div class="row"><button type="button" disabled={busy || missing !== ''} onClick={() => void preview()}>{tr('Preview')}</button>
			<span role="status">{missing || seen && (seen.length === 0 ? (d.kind === 'anr_spike' ? tr('No value: too few reports.') : tr('No value: too few traces.')) : tr('Above the threshold now: {over} of {all}. Nothing was saved.', { over, all: seen.length }))}</span></div>
		{error && <Failure error={error} />}
		{seen && seen.length > 0 && <Cards label={tr('Preview')}>
			<thead><tr><th>{tr('Applies to')}</th><th class="num">{tr('Now')}</th><th class="num">{unit === 'times' ? tr('Reports') : tr('Traces')}</th><th>{tr('Above the threshold')}</th></tr></thead>
			<tbody>{seen.slice(0, LISTED).map((f) => <tr key={`${f.app} ${subjectOf(f)}`} data-figure={subjectOf(f)}>
				<td class="anywhere">{[d.app || f.app, subjectOf(f)].filter(Boolean).join(COMMA)}</td>
				<td class="num nowrap">{f.trace ? <a href={link(`/traces/${f.trace}`)}>{shown(f.value, unit)}</a> : shown(f.value, unit)}</td>
				<td class="num">{count(f.traces)}</td><td>{f.exceeded ? <span class="loss">{tr('yes')}</span> : <span class="quiet">{tr('no')}</span>}</td></tr>)}</tbody>
		</Cards>}
		{seen && seen.length > LISTED && <p class="quiet">{tr.many(seen.length - LISTED, 'And one more with a lower figure.', 'And {n} more with lower values.')}</p>}
	</>;
}

/** Suggests the values which the project's traces have. */
function Known({ column }: { column: string }) {
	const load = useLoad(column, () => manage.facets(column));
	return <datalist id={`known-${column}`}>{load.value?.values.map((v) => <option key={v.value} value={v.value} />)}</datalist>;
}

function Form({ rule, mail, keep, cancel }: { rule?: Rule; mail: boolean; keep: (d: Draft) => void; cancel: () => void }) {
	const [d, put] = useState(() => (rule ? draftOf(rule) : draftOfAddress()));
	const unit = unitOf(d.kind);
	const save = (e: Event) => {
		e.preventDefault();
		keep(d);
	};
	const number = (key: 'percentile' | 'min_traces' | 'days', most: number) => <input class="short" type="number" name={key} min={1} max={most} required value={d[key]} onInput={(e) => put({ ...d, [key]: Number(e.currentTarget.value) })} />;
	const scope = (key: 'app' | 'scenario' | 'version_name') => <><input name={key} list={`known-${key}`} maxLength={200} spellcheck={false} autocomplete="off" placeholder={tr('any')} value={d[key]} onInput={(e) => put({ ...d, [key]: e.currentTarget.value })} /><Known column={key} /></>;
	return (
		<form class="rule" onSubmit={save} aria-label={rule ? tr('Edit {name}', { name: rule.name }) : tr('A new alert rule')}>
			<div class="row">
				<label class="inline">{tr('Name')}{' '}<input name="name" maxLength={100} required ref={focused} value={d.name} onInput={(e) => put({ ...d, name: e.currentTarget.value })} /></label>
				{rule ? <span class="quiet">{tr('{figure} of {scope}', { figure: kindName(rule.kind), scope: scopeOf(rule) })}</span>
					: <label class="inline">{tr('Metric')}{' '}<select name="kind" value={d.kind} onChange={(e) => put({ ...d, kind: e.currentTarget.value })}>{KINDS.map(([k, words]) => <option key={k} value={k}>{words}</option>)}</select></label>}
				{unit === 'ms' && <label class="inline">{tr('Percentile')}{' '}{number('percentile', 99)}</label>}
				<label class="inline">{unit === 'ms' ? tr('Threshold in ms') : unit === 'share' ? tr('Threshold in %') : tr('Threshold, multiple of the daily mean')}{' '}<input class="short" type="number" name="threshold" min="0" step="any" required value={d.threshold} onInput={(e) => put({ ...d, threshold: e.currentTarget.value })} /></label>
			</div>
			<div class="row">
				{!rule && ofMethod(d.kind) && <label class="inline">{tr('Method')}{' '}<input name="method" maxLength={1024} required spellcheck={false} value={d.method} onInput={(e) => put({ ...d, method: e.currentTarget.value })} /></label>}
				{!rule && <><label class="inline">{tr('App')}{' '}{scope('app')}</label><label class="inline">{tr('Scenario')}{' '}{scope('scenario')}</label><label class="inline">{tr('Version')}{' '}{scope('version_name')}</label></>}
				<label class="inline">{tr('Days')}{' '}{number('days', 90)}</label>
				<label class="inline">{unit === 'times' ? tr('Minimum reports') : tr('Minimum traces')}{' '}{number('min_traces', 1000000)}</label>
				{mail && <label class="inline"><input type="checkbox" name="mail" checked={d.mail} onChange={(e) => put({ ...d, mail: e.currentTarget.checked })} />{' '}{tr("also to the digest's addresses")}</label>}
			</div>
			<Preview d={d} rule={rule} />
			<AsJson value={bodyOf(d, !!rule)} label={tr('Fill in the form')} use={(v) => put(merged(d, v))} />
			<div class="row"><button class="primary">{rule ? tr('Save') : tr('Add')}</button><button type="button" onClick={cancel}>{tr('Cancel')}</button></div>
		</form>
	);
}

function Row({ r, now, edit, remove }: { r: Rule; now?: Look; edit: () => void; remove: () => void }) {
	const own = now?.figures;
	return (
		<tr data-rule={r.id}>
			<td class="anywhere">{r.name}</td>
			<td>{figureOf(r)}</td>
			<td class="anywhere">{scopeOf(r)}</td>
			<td class="num nowrap">{shown(r.threshold, r.unit)}</td>
			<td>{own && (own.length ? own.map((f) => <div key={`${f.app} ${f.version} ${f.anr}`} class={f.exceeded ? 'loss' : 'quiet'}>{subjectOf(f)}: {shown(f.value, r.unit)} ({r.kind === 'anr_spike' ? tr.many(f.traces, '{n} report', '{n} reports') : tr.many(f.traces, '{n} trace', '{n} traces')})</div>) : <span class="quiet">{now?.partial ? tr('no value in time') : r.kind === 'anr_spike' ? tr('too few reports') : tr('too few traces')}</span>)}</td>
			<td class="actions"><button class="small" data-edits={`alert ${r.id}`} aria-label={tr('Edit {name}', { name: r.name })} onClick={edit}>{tr('Edit')}</button><Sure what={tr('Remove')} label={tr('Remove {name}', { name: r.name })} act={remove} /></td>
		</tr>
	);
}

export function AlertRules() {
	const load = useLoad('alert rules', () => get<Rules>('/api/v1/alerts/rules'));
	const [editing, open] = useEditing('alert', text('alert') ? '' : null); // '' is a new one
	const edit = (id: string | null) => {
		open(id);
		set(Object.fromEntries(IN_LINK.map((name) => [name, null])));
	};
	const [now, show] = useState<Record<string, Look>>({}); // by rule
	const [error, change] = useChange(load.again);
	const v = load.value;
	const rule = v?.rules.find((r) => r.id === editing);
	const look = async (saved?: Rule) => {
		const { figures, partial } = await (await send('POST', '/api/v1/alerts/evaluate')).json() as Look;
		show(Object.fromEntries([...v!.rules, ...(saved ? [saved] : [])].map((r) => [r.id, { partial, figures: figures.filter((f) => f.rule === r.id) }])));
	};
	const keep = async (d: Draft) => {
		const path = '/api/v1/alerts/rules';
		let saved: Rule | undefined;
		if (!await change(async () => { saved = await (await (rule ? send('PATCH', `${path}/${rule.id}`, bodyOf(d, true)) : send('POST', path, bodyOf(d, false)))).json() as Rule; })) return;
		edit(null);
		await change(() => look(saved));
	};
	return (
		<Panel title={tr('Alerts')} id="alerts" aside={v && <>{v.rules.length > 0 && <button onClick={() => void change(() => look())}>{tr('Check now')}</button>}{' '}{editing !== '' && v.rules.length < v.max_rules && <button data-edits="alert " onClick={() => edit('')}>{tr('Add an alert rule')}</button>}</>}>
			<Pending of={load} what={tr('Loading alert rules')} />
			{v && v.rules.length === 0 && <p class="quiet">{tr('No alert rules yet. A rule reports each version whose metric exceeds a threshold, once: in the inbox, to webhooks and by mail.')}</p>}
			{v && v.rules.length > 0 && <Cards>
				<thead><tr><th>{tr('Name')}</th><th>{tr('Metric')}</th><th>{tr('Applies to')}</th><th class="num">{tr('Threshold')}</th><th>{tr('Now')}</th><th><span class="hidden">{tr('Actions')}</span></th></tr></thead>
				<tbody>{v.rules.map((r) => <Row key={r.id} r={r} now={now[r.id]} edit={() => edit(r.id)} remove={() => void change(() => send('DELETE', `/api/v1/alerts/rules/${r.id}`))} />)}</tbody>
			</Cards>}
			{v && (rule || editing === '') && <Form key={editing} rule={rule} mail={v.mail} keep={(d) => void keep(d)} cancel={() => edit(null)} />}
			{error && <Failure error={error} />}
		</Panel>
	);
}
