// The list of traces: filters, order and columns in the address, pages by cursor, states that
// refresh, rows picked by pointer or keys.
import { useEffect, useRef, useState } from 'preact/hooks';
import { api, may, type Trace } from '../api/api';
import { ColumnChooser, NameCell, sharedOf, shownColumns, type Column, type Shared } from './listcolumns';
import { Filters, isFiltered, put, Saved } from './listfilters';
import { PickedBar } from './listpicked';
import { usePolling } from '../ui/polling';
import { Cards } from '../ui/cards';
import { Busy, Failure, useLoad, type Loaded } from '../ui/parts';
import { EmptyPage, Pages, useRowKeys } from '../ui/pages';
import { text, texts } from '../ui/route';
import { Arrival, Start } from './start';
import { traceChanges } from './uploadstate';
import { tr } from '../i18n/strings/list';
import { backOff, FILTERS, totalOf } from '../api/traces';

const PAGE = 50;

function Heading({ c }: { c: Column }) {
	const sort = text('sort') || 'created';
	const asc = text('order') === 'asc';
	const on = c.sort === sort;
	if (!c.sort) return <th class={c.num ? 'num' : ''}>{c.label}</th>;
	return (
		<th aria-sort={on ? (asc ? 'ascending' : 'descending') : 'none'} class="num">
			<button class="plain" onClick={() => put({ sort: c.sort!, order: on && !asc ? 'asc' : null })}>
				{c.label}{on ? (asc ? ' ↑' : ' ↓') : ''}
			</button>
		</th>
	);
}

type Picked = ReadonlyMap<string, Trace>;

/** The selected rows, kept over pages and refreshes; Shift selects the range from the previous one. */
function usePicked(rows: Trace[]) {
	const [picked, hold] = useState<Picked>(new Map());
	const last = useRef('');
	const fresh = new Map(rows.map((t) => [t.id, t]));
	const pick = (t: Trace, range: boolean) => {
		const next = new Map(picked);
		const on = !picked.has(t.id);
		const [a, b] = [rows.findIndex((x) => x.id === last.current), rows.indexOf(t)];
		for (const x of range && a >= 0 ? rows.slice(Math.min(a, b), Math.max(a, b) + 1) : [t]) {
			if (on) next.set(x.id, x);
			else next.delete(x.id);
		}
		last.current = t.id;
		hold(next);
	};
	const pickAll = (on: boolean) => {
		const next = new Map(picked);
		for (const t of rows) if (on) next.set(t.id, t); else next.delete(t.id);
		hold(next);
	};
	const list = [...picked.values()].map((t) => fresh.get(t.id) ?? t);
	return { picked, list, pick, pickAll, clear: () => hold(new Map()) };
}

/** A long text is cut; the pointer shows all of it. */
const titleOf = (cell: unknown) => (typeof cell === 'string' && cell.length > 24 ? cell : undefined);

function Row({ t, shared, columns, picked, pick }: { t: Trace; shared: Shared; columns: Column[]; picked: boolean; pick: (range: boolean) => void }) {
	return (
		<tr data-trace={t.id} class={picked ? 'is-picked' : ''}>
			<td class="check"><input type="checkbox" checked={picked} aria-label={tr('Select {id}, {id2}', { id: t.title || t.meta.app || t.id, id2: t.id })}
				onClick={(e) => pick(e.shiftKey)} /></td>
			<td class="wide"><NameCell t={t} shared={shared} /></td>
			{columns.map((c) => <td key={c.key} class={c.num ? 'num' : ''} title={titleOf(c.cell(t))}>{c.cell(t)}</td>)}
		</tr>
	);
}

function Table({ rows, columns, picked, pick, pickAll }: {
	rows: Trace[]; columns: Column[]; picked: Picked; pick: (t: Trace, range: boolean) => void; pickAll: (on: boolean) => void;
}) {
	const all = rows.every((t) => picked.has(t.id));
	const some = rows.some((t) => picked.has(t.id));
	const shared = sharedOf(rows, columns.some((c) => c.key === 'version' || c.key === 'device'));
	return (
		<Cards of="traces">
			<thead><tr>
				<th class="check"><input type="checkbox" aria-label={tr('Select all on this page')} checked={all} ref={(e) => { if (e) e.indeterminate = some && !all; }}
					onChange={(e) => pickAll(e.currentTarget.checked)} /></th>
				<th>{tr('Trace')}</th>{columns.map((c) => <Heading key={c.key} c={c} />)}
			</tr></thead>
			<tbody>{rows.map((t) => <Row key={t.id} t={t} shared={shared} columns={columns} picked={picked.has(t.id)} pick={(range) => pick(t, range)} />)}</tbody>
		</Cards>
	);
}

/** Repeats the request with growing intervals while traces are in progress. */
function useRefresh(on: boolean, state: string, page: Loaded<unknown>): void {
	const turn = useRef({ state: '', n: 0 });
	if (turn.current.state !== state) turn.current = { state, n: 0 };
	usePolling(page, on && backOff(turn.current.n++));
}

export function ListPage() {
	const names = [...FILTERS, 'sort', 'order', 'cursor'];
	const params = Object.fromEntries(names.map((n) => [n, texts(n)]));
	const page = useLoad(`${JSON.stringify(params)} ${traceChanges.value}`, (s) => api.traces({ ...params, limit: PAGE }, s));
	const [first, watch] = useState(false); // the first trace comes while this page is open
	const [asking, ask] = useState(false);
	const v = page.value;
	const rows = v?.traces ?? [];
	const { picked, list, pick, pickAll, clear } = usePicked(rows);
	const columns = shownColumns(rows);
	const empty = v !== null && v.total === 0 && !isFiltered();
	const moving = rows.some((t) => t.state === 'queued' || t.state === 'decoding');
	useRefresh((moving || empty) && !page.busy && !asking, rows.map((t) => t.state).join(), page);
	useRowKeys(rows, (key, row) => {
		if ((key === 'x' || key === 'X') && row) pick(row, key === 'X');
		else if (key === '#' && list.length > 0 && may.write) ask(true);
		else if (key === 'Escape' && list.length > 0) clear();
		else return false;
		return true;
	});
	useEffect(() => {
		if (empty) watch(true);
		else document.title = tr('Traces · tracewell');
	}, [empty]);

	return (
		<main class="widest">
			<div class="row head">
				<h1>{empty && may.write ? tr('Send a first trace') : tr('Traces')}</h1>
				{v && v.total > 0 && <span class="quiet">{totalOf(v)} {isFiltered() ? tr('match') : tr('in this project')}</span>}
				<span class="grow" />
				{!empty && <span class="quiet keyhint">{tr('? for keys')}</span>}
				{!empty && <ColumnChooser shown={columns} />}
			</div>
			{first && v && v.total > 0 && <Arrival t={rows[rows.length - 1]} />}
			{!empty && <Filters />}
			{!empty && <Saved />}
			{page.error && <Failure error={page.error} retry={page.again} />}
			{page.error && rows.length > 0 && <p class="quiet">{tr('The rows below are from the previous response.')}</p>}
			{!v && page.busy && <Busy what={tr('Loading traces')} retry={page.again} />}
			{empty && <Start />}
			{v && v.total === 0 && isFiltered() && <div class="notice"><strong>{tr('No traces match these filters.')}</strong>
				<p><button onClick={() => put(Object.fromEntries(FILTERS.map((n) => [n, null])))}>{tr('Show all traces')}</button></p></div>}
			{v && v.total > 0 && rows.length === 0 && <EmptyPage />}
			{rows.length > 0 && <Table rows={rows} columns={columns} picked={picked} pick={pick} pickAll={pickAll} />}
			{v && <Pages rows={rows.length} total={totalOf(v)} cursor={v.next_cursor} of={page} />}
			{list.length > 0 && <PickedBar list={list} clear={clear} changed={page.again} asking={asking} ask={ask} />}
		</main>
	);
}
