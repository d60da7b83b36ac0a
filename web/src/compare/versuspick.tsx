// Pickers of both sides and of each side, in rows; their values are in the address.
import { useEffect, useState } from 'preact/hooks';
import { get } from '../api/api';
import { manage } from '../api/manage';
import { CLASSES, classWord } from '../api/classes';
import { afresh } from '../ui/panelstate';
import { Failure, useLoad, type Loaded } from '../ui/parts';
import { set, text } from '../ui/route';
import { tr } from '../i18n/strings/versus';
import { newestFirst } from '../api/traces';
import { daysOf, SIDES, sinceOf, traceIn } from './versusdoc';

const DAYS = [7, 30, 90, 400];
const COLUMNS = ['version_name', 'app', 'scenario', 'os'] as const;
type Column = typeof COLUMNS[number] | 'class';
const TITLES: [Column, string][] = [['version_name', tr('Version')], ['app', tr('App')], ['scenario', tr('Scenario')], ['class', tr('Device class')], ['os', 'Android']];
export type Values = Record<Column, string[]> & { load: Loaded<unknown>; none: boolean };

/** What there is to pick from, most used first; of versions the newest. */
export function useValues(): Values {
	const load = useLoad('versus facets', () => Promise.all(COLUMNS.map(manage.facets)));
	const of = (i: number) => load.value?.[i].values.map((v) => v.value).filter(Boolean) ?? [];
	const none = load.value?.every((f) => f.values.length === 0) ?? false; // no traces in the project
	return { load, none, version_name: newestFirst(of(0)), app: of(1), scenario: of(2), os: of(3), class: CLASSES };
}

/** Sides for an address without any: the two newest versions of one app, the most used unless the address names another.
 *  `only`: that app's one version, if it has no other. */
export function useSuggestion({ load, app }: Values, wanted: boolean): { sides: Record<'a' | 'b' | 'app', string> | null; versions: Loaded<unknown>; only: string | undefined; busy: boolean } {
	const of = text('app') || app[0] || '';
	const [scenario, since] = [text('scenario'), sinceOf(text, Date.now())];
	const ready = wanted && !load.busy;
	const versions = useLoad(ready ? `versions ${of} ${scenario} ${since}` : '', async (s) => (ready
		? (await get<{ groups: { key: string }[] }>('/api/v1/fleet/scenarios', { by: 'version', app: of, scenario, since }, s)).groups.map((g) => g.key) : []));
	const [newest, before] = ready && !versions.busy ? newestFirst([...new Set(versions.value)]) : [];
	return { sides: before ? { a: before, b: newest, app: app.length > 1 ? of : text('app') } : null, only: before ? '' : newest && `${of} ${newest}`.trim(), versions, busy: wanted && (load.busy || versions.busy) };
}

/** Compares other sides, or by another filter: the graph begins at its top. */
export function compareWith(changes: Record<string, string | number | null>): void {
	set({ ...changes, root: null, at: null, nodes: null, rows: null, ...afresh() }, true);
}

/** Caption above a picker; omitted for B on wide screens, where A's captions apply. */
const Caption = ({ title }: { title: string }) => <span class="cap">{title}</span>;

function Pick({ side, title, name, values, none, disabled = false }: { side: string; title: string; name: string; values: string[]; none: string; disabled?: boolean }) {
	const now = text(name);
	const list = now && !values.includes(now) ? [now, ...values] : values;
	return (
		<label><Caption title={title} />
			<select name={name} aria-label={`${side} ${title}`} value={now} disabled={disabled} class={now ? '' : 'unset'} onChange={(e) => compareWith({ [name]: e.currentTarget.value })}>
				<option value="">{none}</option>
				{list.map((v) => <option key={v} value={v}>{name.endsWith('class') ? classWord(v) : v}</option>)}
			</select></label>
	);
}

function Day({ side, name, title, disabled }: { side: string; name: string; title: string; disabled: boolean }) {
	const now = text(name);
	return <label><Caption title={title} /><input type="date" name={name} aria-label={`${side} ${title}`} value={now} disabled={disabled} class={now ? '' : 'unset'}
		onChange={(e) => compareWith({ [name]: e.currentTarget.value })} /></label>;
}

function TraceId({ side, name }: { side: string; name: string }) {
	const value = text(name);
	const now = value.startsWith('trace:') ? value.slice(6) : '';
	return <label><Caption title={tr('Or one trace')} /><input key={now} name={`${name}.trace`} aria-label={tr('{side} Or one trace', { side })} defaultValue={now} placeholder={tr('id or address')} spellcheck={false} autocomplete="off"
		onChange={(e) => compareWith({ [name]: e.currentTarget.value.trim() && `trace:${traceIn(e.currentTarget.value)}` })} /></label>;
}

function One({ name, values }: { name: 'a' | 'b'; values: Values }) {
	const side = name.toUpperCase();
	const alone = text(name).startsWith('trace:');
	return (
		<div class="pickrow" role="group" aria-label={tr('Side {side}', { side })}>
			<strong>{side}</strong>
			{TITLES.map(([column, title]) => (column === 'version_name' && !alone ? <Pick key={column} side={side} title={title} name={name} values={values[column]} none={tr('any')} />
				: <Pick key={column} side={side} title={title} name={`${name}.${column}`} values={values[column]} none={alone ? '–' : tr('as both')} disabled={alone} />))}
			<Day side={side} title={tr('From')} name={`${name}.since`} disabled={alone} /><Day side={side} title={tr('Until')} name={`${name}.until`} disabled={alone} />
			<TraceId side={side} name={name} />
		</div>
	);
}

function Both({ values }: { values: Values }) {
	const days = daysOf(text('days'));
	return (
		<div class="pickrow" role="group" aria-label={tr('Both sides')}>
			<strong>{tr('Both')}</strong>
			{TITLES.map(([column, title]) => <Pick key={column} side={tr('Both')} title={title} name={column} values={values[column]} none={tr('any')} />)}
			<label class="two"><Caption title={tr('Time')} /><select name="days" value={days} onChange={(e) => compareWith({ days: Number(e.currentTarget.value) === 30 ? null : e.currentTarget.value })}>
				{(DAYS.includes(days) ? DAYS : [days, ...DAYS]).map((n) => <option key={n} value={n}>{tr.many(n, '{n} day', '{n} days')}</option>)}</select></label>
			<label><Caption title={tr('Mix')} /><select name="mix" value={text('mix')} onChange={(e) => compareWith({ mix: e.currentTarget.value })}>
				<option value="">{tr('B as in A')}</option><option value="none">{tr('not corrected')}</option></select></label>
		</div>
	);
}

/** The pickers; closed on a phone unless nothing can be compared without them. */
export function Picker({ values, needed }: { values: Values; needed: boolean }) {
	const [open, put] = useState(innerWidth > 760);
	useEffect(() => {
		if (needed) put(true);
	}, [needed]);
	return (
		<details class="panel versuspick" open={open}>
			<summary><h2>{tr('Sides')}</h2></summary>
			<div class="picks"><Both values={values} />{SIDES.map((s) => <One key={s} name={s} values={values} />)}</div>
			{values.load.error && <Failure error={values.load.error} retry={values.load.again} title={tr('The lists of choices could not be loaded.')} />}
			<p class="quiet">{tr('Days are UTC days of recording. Filters of A or B override the common ones.')}</p>
		</details>
	);
}
