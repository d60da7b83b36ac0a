// Which traces are listed: fields over the address, and lists that are kept by a name.
import { useRef, useState } from 'preact/hooks';
import { api, may } from '../api/api';
import { count, when } from '../i18n/format';
import { Failure, useLoad } from '../ui/parts';
import { Popover } from '../ui/popover';
import { query, set, text } from '../ui/route';
import { tr } from '../i18n/strings/list';
import { changesTo, dateOf, dayStart, FILTERS, keptOf, newestFirst, stateName } from '../api/traces';

const MAIN: [string, string][] = [['app', tr('App')], ['version_name', tr('Version')], ['scenario', tr('Scenario')], ['device', tr('Device')], ['state', tr('State')], ['tag', tr('Tag')]];
const MORE: [string, string][] = [['os', 'OS'], ['build_id', tr('Build')], ['process', tr('Process')]];
const FROM_START = { cursor: null, n: null };

export function put(changes: Record<string, string | number | null>): void {
	set({ ...changes, ...FROM_START });
}

/** Most traces first, as they come; of versions the newest. */
function inOrder(column: string, values: { value: string; count: number }[]): typeof values {
	if (column !== 'version_name') return values;
	const at = new Map(newestFirst(values.map((v) => v.value)).map((v, i) => [v, i]));
	return [...values].sort((a, b) => at.get(a.value)! - at.get(b.value)!);
}

/** It stands where it will stand before its values are known, so that nothing moves. */
function Filter({ column, label }: { column: string; label: string }) {
	const values = inOrder(column, useLoad(column, () => api.facets(column)).value?.values.filter((v) => v.value) ?? []);
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
	const [value, hold] = useState(text('q'));
	const timer = useRef(0);
	const asked = text('q');
	const before = useRef(asked);
	if (before.current !== asked) { // the back button, a saved filter
		before.current = asked;
		if (value !== asked) hold(asked);
	}
	const change = (v: string) => {
		hold(v);
		clearTimeout(timer.current);
		timer.current = window.setTimeout(() => put({ q: v }), 250);
	};
	return <label class="inline grow">{tr('Search')}
		<input type="search" id="search" value={value} placeholder={tr('title, app, device, build, id')}
			onInput={(e) => change(e.currentTarget.value)} /></label>;
}

/** Both ends belong to the range: the server's `until` is the day after. */
function Days() {
	return <>
		<label class="inline">{tr('From')}
			<input type="date" value={dateOf(text('since'))} onChange={(e) => put({ since: dayStart(e.currentTarget.value) })} /></label>
		<label class="inline">{tr('To')}
			<input type="date" value={dateOf(text('until'), 1)} onChange={(e) => put({ until: dayStart(e.currentTarget.value, 1) })} /></label>
	</>;
}

export function isFiltered(): boolean {
	return FILTERS.some((n) => text(n) !== '');
}

export function Filters() {
	const wanted = text('more') === '1';
	const inUse = [...MORE.map(([c]) => c), 'since', 'until', 'pinned'].some((c) => text(c) !== '');
	const more = wanted || inUse;
	return (
		<div class="row filters" role="search">
			{MAIN.map(([c, l]) => <Filter key={c} column={c} label={l} />)}
			{more && MORE.map(([c, l]) => <Filter key={c} column={c} label={l} />)}
			{more && <Days />}
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
			<p class="quiet">{tr('Filters, order and columns, for everybody in this project.{name}', { name: used.includes(name.trim()) ? tr(' There is one of that name: it is replaced.') : '' })}</p>
			{error && <Failure error={error} />}
			<button class="primary" disabled={!name.trim()}>{tr('Save')}</button>
		</form>
	);
}

/** The project's lists, one click each. */
export function Saved() {
	const load = useLoad('filters', () => api.filters());
	const [error, fail] = useState<Error | null>(null);
	const all = load.value?.filters ?? [];
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
			{may.write && here && !all.some((f) => f.query === here) && <Popover label={tr('Save this list')} title={tr('Save this list')} small>{(close) => <Keep used={all.map((f) => f.name)} kept={load.again} close={close} />}</Popover>}
			{error && <Failure error={error} />}
		</div>
	);
}
