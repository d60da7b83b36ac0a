// Which traces are listed: fields stored in the address, and saved lists.
import { useState } from 'preact/hooks';
import { api, may } from '../api/api';
import { manage } from '../api/manage';
import { count, when } from '../i18n/format';
import { useTyped } from '../ui/filter';
import { Failure, useLoad } from '../ui/parts';
import { Popover } from '../ui/popover';
import { fromStart } from '../ui/pages';
import { query, set, text, texts, type Changes } from '../ui/route';
import { tr } from '../i18n/strings/list';
import { changesTo, dateOf, dayStart, FILTERS, keptOf, newestFirst, stateName } from '../api/traces';

const MAIN: [string, string][] = [['app', tr('App')], ['version_name', tr('Version')], ['scenario', tr('Scenario')], ['device', tr('Device')], ['state', tr('State')], ['tag', tr('Tag')]];
const MORE: [string, string][] = [['os', 'OS'], ['abi', 'ABI'], ['version_code', tr('Version code')], ['build_id', tr('Build')], ['process', tr('Process')]];
const TYPED: [string, string, string][] = [['version_code_min', tr('Lowest version code'), 'number'], ['version_code_max', tr('Highest version code'), 'number'], ['session_id', tr('Session'), 'text']];

export function put(changes: Changes): void {
	set(fromStart(changes));
}

/** Most traces first, as they come; of versions the newest. */
function inOrder(column: string, values: { value: string; count: number }[]): typeof values {
	if (column !== 'version_name') return values;
	const at = new Map(newestFirst(values.map((v) => v.value)).map((v, i) => [v, i]));
	return [...values].sort((a, b) => at.get(a.value)! - at.get(b.value)!);
}

/** Takes its space before its values are known, so that nothing moves. */
function Filter({ column, label }: { column: string; label: string }) {
	const values = inOrder(column, useLoad(column, () => manage.facets(column)).value?.values.filter((v) => v.value) ?? []);
	const value = text(column);
	return (
		<label class="inline">{label}
			<select value={value} disabled={values.length === 0 && !value} onChange={(e) => put({ [column]: e.currentTarget.value })}>
				<option value="">{tr('any')}</option>
				{value && !values.some((v) => v.value === value) && <option value={value}>{value}</option>}
				{values.map((v) => <option key={v.value} value={v.value}>{column === 'state' ? stateName(v.value) : v.value} ({count(v.count)})</option>)}
			</select>
		</label>
	);
}

function SearchBox() {
	const [typed, type] = useTyped('q', fromStart({}));
	return <label class="inline grow">{tr('Search')}
		<input type="search" id="search" value={typed} placeholder={tr('title, app, device, build, id')}
			onInput={(e) => type(e.currentTarget.value)} /></label>;
}

/** Both ends belong to the range: the server's `until` is the day after. */
function Days({ since, until, from, to }: { since: string; until: string; from: string; to: string }) {
	return <>
		<label class="inline">{from}
			<input type="date" value={dateOf(text(since))} onChange={(e) => put({ [since]: dayStart(e.currentTarget.value) })} /></label>
		<label class="inline">{to}
			<input type="date" value={dateOf(text(until), 1)} onChange={(e) => put({ [until]: dayStart(e.currentTarget.value, 1) })} /></label>
	</>;
}

/** Filters with too many values for a menu. */
function Typed({ name, label, type }: { name: string; label: string; type: string }) {
	return <label class="inline">{label}
		<input class="short" type={type} min={0} value={text(name)} autocomplete="off" onChange={(e) => put({ [name]: e.currentTarget.value.trim() })} /></label>;
}

/** Labels that all must be there, suggested from those of the newest traces. */
function Labels() {
	const [value, hold] = useState('');
	const known = useLoad('label', () => manage.facets('label')).value?.values ?? [];
	const used = texts('label');
	const add = (e: Event) => {
		e.preventDefault();
		put({ label: [...new Set([...used, value.trim()])] });
		hold('');
	};
	return (
		<form class="row" onSubmit={add}>
			<label class="inline">{tr('Label')}
				<input value={value} list="known-labels" placeholder={tr('key=value')} autocomplete="off" onInput={(e) => hold(e.currentTarget.value)} /></label>
			<datalist id="known-labels">{known.map((v) => <option key={v.value} value={v.value} />)}</datalist>
			{value && <button class="small" disabled={value.trim().indexOf('=') < 1}>{tr('Filter')}</button>}
			{used.map((u) => (
				<span class="tag" key={u}>{u}<button type="button" class="plain" aria-label={tr('Without the label {label}', { label: u })} onClick={() => put({ label: used.filter((x) => x !== u) })}>×</button></span>))}
		</form>
	);
}

export function isFiltered(): boolean {
	return FILTERS.some((n) => text(n) !== '');
}

export function Filters() {
	const wanted = text('more') === '1';
	const inUse = [...MORE, ...TYPED].map(([c]) => c).concat('label', 'since', 'until', 'recorded_since', 'recorded_until', 'pinned').some((c) => text(c) !== '');
	const more = wanted || inUse;
	return (
		<div class="row filters" role="search">
			{MAIN.map(([c, l]) => <Filter key={c} column={c} label={l} />)}
			{more && MORE.map(([c, l]) => <Filter key={c} column={c} label={l} />)}
			{more && TYPED.map(([c, l, t]) => <Typed key={c} name={c} label={l} type={t} />)}
			{more && <Labels />}
			{more && <Days since="since" until="until" from={tr('From')} to={tr('To')} />}
			{more && <Days since="recorded_since" until="recorded_until" from={tr('Recorded since')} to={tr('Recorded until')} />}
			{more && <label class="check"><input type="checkbox" checked={text('pinned') !== ''} onChange={(e) => put({ pinned: e.currentTarget.checked ? 1 : null })} />{tr('Pinned only')}</label>}
			<SearchBox />
			{!inUse && <button class="small" aria-expanded={more} onClick={() => set({ more: more ? null : 1 })}>{more ? tr('Fewer filters') : tr('More filters')}</button>}
			{isFiltered() && <button class="small" onClick={() => put(Object.fromEntries(FILTERS.map((n) => [n, null])))}>{tr('Clear')}</button>}
		</div>
	);
}

function Keep({ used, kept, close }: { used: string[]; kept: () => void; close: () => void }) {
	const [name, hold] = useState('');
	const [error, fail] = useState<Error | null>(null);
	const save = async (e: Event) => {
		e.preventDefault();
		try {
			await api.keepFilter(name.trim(), keptOf(query.value));
			kept();
			close();
		} catch (why) {
			fail(why as Error);
		}
	};
	return (
		<form onSubmit={save}>
			<label>{tr('Name of this list')}
				<input value={name} maxLength={100} autocomplete="off" onInput={(e) => hold(e.currentTarget.value)} /></label>
			<p class="quiet">{tr('Saves filters, order and columns for everyone in this project.{name}', { name: used.includes(name.trim()) ? tr(' A list with that name exists and will be replaced.') : '' })}</p>
			{error && <Failure error={error} />}
			<button class="primary" disabled={!name.trim()}>{tr('Save')}</button>
		</form>
	);
}

/** The project's lists, one click each. */
export function Saved() {
	const load = useLoad('filters', () => api.filters());
	const [error, fail] = useState<Error | null>(null);
	const names = (load.value?.filters ?? []).map((f) => f.name);
	const all = (load.value?.filters ?? []).filter((f) => !new URLSearchParams(f.query).has('sql')); // those are queries of traces
	const here = keptOf(query.value);
	const drop = (name: string) => api.dropFilter(name).then(load.again, (why: Error) => fail(why));
	if (all.length === 0 && (!may.write || !here)) return null;
	return (
		<div class="row saved" role="group" aria-label={tr('Saved lists')}>
			<span class="quiet">{tr('Saved')}</span>
			{all.map((f) => (
				<span class="step" key={f.name}>
					<button class="plain" aria-pressed={f.query === here} title={tr('by {author}, {updated_ms}', { author: f.author, updated_ms: when(f.updated_ms) })} onClick={() => set(changesTo(f.query), true)}>{f.name}</button>
					{may.write && <button class="plain" aria-label={tr('Delete the saved list {name}', { name: f.name })} onClick={() => void drop(f.name)}>×</button>}
				</span>))}
			{may.write && here && !all.some((f) => f.query === here) && <Popover label={tr('Save this list')} title={tr('Save this list')} small>{(close) => <Keep used={names} kept={load.again} close={close} />}</Popover>}
			{error && <Failure error={error} />}
		</div>
	);
}
