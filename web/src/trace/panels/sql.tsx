// SQL over the calls of a trace: an editor, its result as a table and CSV, examples and the project's saved queries.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { api, may, send, type Thread } from '../../api/api';
import { count, duration, when } from '../../i18n/format';
import { tr } from '../../i18n/strings/sql';
import { useMore } from '../../ui/panelstate';
import { download, Failure, Panel, Pending, useLoad } from '../../ui/parts';
import { Popover } from '../../ui/popover';
import { set, text } from '../../ui/route';
import { rememberStatement, statementsRun } from '../state/statements';
import { placeOfCall } from '../state/tab';
import { viewOf } from '../state/view';
import { completionOf, type Completion } from './sqlcomplete';
import { isDuration, placer, savedSql, sqlOf, type Place, type Result, type Value } from './sqlrows';

const LIMIT = 1000, CSV_LIMIT = 100_000, ROWS = 100;

const EXAMPLES: [string, string][] = [
	[tr('Methods by self time'), 'SELECT name, count, self_ns, total_ns, max_ns\nFROM method ORDER BY self_ns DESC LIMIT 100'],
	[tr('Main thread calls over 16 ms'), 'SELECT s.dur_ns, s.name, s.ts_ns, s.depth, s.thread_id\nFROM slice s JOIN thread t USING (thread_id)\nWHERE t.is_main AND s.dur_ns > 16000000\nORDER BY s.dur_ns DESC'],
	[tr('Busy time by thread'), 'SELECT name, tid, slices, busy_ns\nFROM thread ORDER BY busy_ns DESC'],
	[tr('Longest call of each method'), 'SELECT name, count(*) AS calls, max(dur_ns) AS dur_ns, ts_ns, depth, thread_id\nFROM slice GROUP BY name ORDER BY dur_ns DESC LIMIT 100'],
	[tr('Calls started per 100 ms'), 'SELECT ts_ns / 100000000 * 100000000 AS from_ns, count(*) AS calls\nFROM slice GROUP BY 1 ORDER BY 1'],
];

const TABLES = [
	'slice(id, thread_id, ts_ns, dur_ns, cpu_ns, depth, parent_id, name)',
	'thread(thread_id, tid, name, is_main, pid, slices, busy_ns)',
	'method(method_id, name, count, total_ns, sum_ns, self_ns, max_ns, id)',
	'call_tree(node_id, thread_id, parent_id, method_id, name, depth, count, total_ns, self_ns, max_ns)',
];

const ask = (id: string, body: object, signal?: AbortSignal) => send('POST', `/api/v1/traces/${encodeURIComponent(id)}/sql`, body, {}, signal);

async function saveCsv(id: string, sql: string): Promise<void> {
	download(await (await ask(id, { sql, format: 'csv', limit: CSV_LIMIT })).blob(), `${id}.csv`);
}

function Keep({ sql, used, done, close }: { sql: string; used: string[]; done: () => void; close: () => void }) {
	const [name, hold] = useState('');
	const [error, fail] = useState<Error | null>(null);
	const save = (e: Event) => {
		e.preventDefault();
		api.keepFilter(name.trim(), savedSql(sql)).then(() => { done(); close(); }, fail);
	};
	return (
		<form onSubmit={save}>
			<label>{tr('Name of this query')}<input value={name} maxLength={100} autocomplete="off" onInput={(e) => hold(e.currentTarget.value)} /></label>
			<p class="quiet">{tr('Saves the query for everyone in this project.')}{used.includes(name.trim()) && <> {tr('A saved query or list with that name exists and will be replaced.')}</>}</p>
			{error && <Failure error={error} />}
			<button class="primary" disabled={!name.trim()}>{tr('Save')}</button>
		</form>
	);
}

/** Examples and saved queries: a click puts one into the editor and runs it. */
function Queries({ sql, pick }: { sql: string; pick: (sql: string) => void }) {
	const load = useLoad('saved queries', () => api.filters());
	const [error, fail] = useState<Error | null>(null);
	const all = load.value?.filters ?? [];
	const saved = all.map((f) => ({ ...f, sql: sqlOf(f.query) })).filter((f) => f.sql);
	const drop = (name: string) => api.dropFilter(name).then(load.again, fail);
	return <>
		{saved.length > 0 && <div class="row saved" role="group" aria-label={tr('Saved for this project')}><span class="quiet">{tr('Saved for this project')}</span>
			{saved.map((f) => <span class="step" key={f.name}><button class="plain" aria-pressed={f.sql === sql} title={tr('by {author}, {when}', { author: f.author, when: when(f.updated_ms) })} onClick={() => pick(f.sql)}>{f.name}</button>
				{may.write && <button class="plain" aria-label={tr('Delete the saved query {name}', { name: f.name })} onClick={() => void drop(f.name)}>×</button>}</span>)}</div>}
		<div class="row" role="group" aria-label={tr('Examples')}><span class="quiet">{tr('Examples')}</span>
			{EXAMPLES.map(([title, one]) => <button key={title} class="small" aria-pressed={one === sql} onClick={() => pick(one)}>{title}</button>)}
			{may.write && sql.trim() && !saved.some((f) => f.sql === sql) && <Popover label={tr('Save this query')} title={tr('Save this query')} small>{(close) => <Keep sql={sql} used={all.map((f) => f.name)} done={load.again} close={close} />}</Popover>}</div>
		{(error ?? load.error) && <Failure error={(error ?? load.error)!} />}
	</>;
}

/** Earlier statements; a click runs one again. */
function History({ now, pick }: { now: string; pick: (sql: string) => void }) {
	const all = statementsRun();
	return all.length === 0 ? null : <Popover label={tr('History')} title={tr('Queries run in this browser')}>{(close) => <ul class="ran">{all.map((one) => (
		<li key={one}><button class="plain mono" aria-pressed={one === now} title={one} onClick={() => { close(); pick(one); }}>{one.replace(/\s+/g, ' ')}</button></li>))}</ul>}</Popover>;
}

/** The statement, with names of tables and columns below it while a word is typed: Tab takes the first or the one that arrow keys chose,
 *  Enter only a chosen one, Escape none. */
function Editor({ draft, put, run }: { draft: string; put: (sql: string) => void; run: () => void }) {
	const field = useRef<HTMLTextAreaElement>(null);
	const [names, offer] = useState<Completion | null>(null);
	const [at, move] = useState(-1); // none is chosen
	const cursor = useRef<number | null>(null); // set after the text is
	useLayoutEffect(() => {
		if (cursor.current !== null) field.current?.setSelectionRange(cursor.current, cursor.current);
		cursor.current = null;
	}, [draft]);
	const typed = (e: Event & { currentTarget: HTMLTextAreaElement }) => {
		put(e.currentTarget.value);
		offer(completionOf(e.currentTarget.value, e.currentTarget.selectionStart, TABLES));
		move(-1);
	};
	const take = (name: string) => {
		const end = field.current!.selectionStart;
		cursor.current = names!.from + name.length;
		put(draft.slice(0, names!.from) + name + draft.slice(end));
		offer(null);
		field.current?.focus();
	};
	const key = (e: KeyboardEvent) => {
		if (e.isComposing) return; // the keys of an input method
		const runs = e.key === 'Enter' && (e.ctrlKey || e.metaKey);
		if (runs) run();
		else if (!names || e.shiftKey) return;
		else if (e.key === 'Tab' || (e.key === 'Enter' && at >= 0)) take(names.names[Math.max(0, at)]);
		else if (e.key === 'ArrowDown') move((at + 1) % names.names.length);
		else if (e.key === 'ArrowUp') move((at > 0 ? at : names.names.length) - 1);
		else if (e.key !== 'Escape') return;
		if (runs || e.key === 'Escape') offer(null);
		e.preventDefault();
		e.stopPropagation();
	};
	return (
		<div class="sqleditor">
			<label class="list"><span class="hidden">{tr('A SELECT over the calls of this trace')}</span><textarea ref={field} name="sql" class="mono" rows={5} maxLength={60000} spellcheck={false} autocapitalize="none" autocomplete="off" placeholder={EXAMPLES[0][1]} value={draft}
				aria-autocomplete="list" aria-controls={names ? 'sqlnames' : undefined} aria-activedescendant={names && at >= 0 ? `sqlname${at}` : undefined} onInput={typed} onKeyDown={key} onBlur={() => offer(null)} /></label>
			{names && <ul id="sqlnames" role="listbox" aria-label={tr('Tables and columns')} class="mono">{names.names.map((n, i) => (
				<li key={n} id={`sqlname${i}`} role="option" aria-selected={i === at} onMouseDown={(e) => e.preventDefault()} onClick={() => take(n)}>{n}</li>))}</ul>}
		</div>
	);
}

function Cell({ column, value }: { column: string; value: Value }) {
	if (value === null) return <td class="quiet">NULL</td>;
	if (typeof value === 'string') return <td class="mono anywhere">{value}</td>;
	if (isDuration(column)) return <td class="num" title={String(value)}>{duration(value)}</td>;
	return <td class="num">{Number.isInteger(value) && Math.abs(value) > 1e6 ? value : +value.toPrecision(12)}</td>;
}

function Rows({ v, threads, whole }: { v: Result; threads: Thread[]; whole: { from: number; to: number } }) {
	const [rows, more] = useMore('sql', ROWS);
	const place = placer(v.columns, threads);
	const shown = v.rows.slice(0, rows);
	const numeric = v.columns.map((_, i) => shown.some((r) => typeof r[i] === 'number'));
	const goTo = (p: Place) => {
		const to = placeOfCall({ ...p, depth: p.depth ?? 0, method: -1, name: '' }, viewOf(whole));
		set(p.depth === null ? { ...to, call: null } : to, true);
	};
	if (v.rows.length === 0) return <p class="quiet" role="status">{tr('No rows.')}</p>;
	return <>
		<p class="quiet" role="status">{v.truncated ? tr('The first {n} rows', { n: count(v.rows.length) }) : tr.many(v.rows.length, '{n} row', '{n} rows')}</p>
		<div class="scroll" tabIndex={0}><table>
			<thead><tr>{place && <th><span class="hidden">{tr('Show this call in the timeline')}</span></th>}{v.columns.map((c, i) => <th key={i} class={numeric[i] ? 'num mono' : 'mono'}>{c}</th>)}</tr></thead>
			<tbody>{shown.map((row, n) => {
				const at = place?.(row);
				return <tr key={n}>{place && <td>{at && <button class="small" aria-label={at.depth === null ? tr('Show this time in the timeline') : tr('Show this call in the timeline')} title={at.depth === null ? tr('Show this time in the timeline') : tr('Show this call in the timeline')} onClick={() => goTo(at)}>↗</button>}</td>}
					{row.map((value, i) => <Cell key={i} column={v.columns[i]} value={value} />)}</tr>;
			})}</tbody>
		</table></div>
		{v.rows.length > rows && <p class="row under"><button class="small" onClick={() => more(rows * 10)}>{tr('Show more')}</button></p>}
	</>;
}

export function SqlPanel({ id, threads, whole, turn }: { id: string; threads: Thread[]; whole: { from: number; to: number }; turn: number }) {
	const sql = text('sql') || EXAMPLES[0][1]; // the last one run; at first an example
	const [draft, put] = useState(sql);
	const [error, fail] = useState<Error | null>(null);
	const [run, again] = useState(0);
	const load = useLoad(`${id} ${run} ${turn} ${sql}`, async (signal) => (await ask(id, { sql, limit: LIMIT }, signal)).json() as Promise<Result>);
	const pick = (one: string) => {
		put(one);
		fail(null);
		if (one.trim()) rememberStatement(one);
		if (one.trim() && one === sql) again((n) => n + 1);
		else set({ sql: one.trim() ? one : null }, true);
	};
	return (
		<Panel title="SQL" id="sql">
			<Queries sql={draft} pick={pick} />
			<Editor draft={draft} put={put} run={() => pick(draft)} />
			<div class="row"><button class="primary" disabled={!draft.trim()} onClick={() => pick(draft)}>{tr('Run')}</button>
				<button disabled={load.busy || load.error !== null} onClick={() => { fail(null); saveCsv(id, sql).catch(fail); }}>{tr('Save as CSV')}</button><History key={sql} now={draft} pick={pick} /><span class="quiet">{tr('Ctrl+Enter runs')}</span>
			<details><summary>{tr('Tables')}</summary><ul class="mono tables">{TABLES.map((t) => <li key={t}>{t}</li>)}</ul>
				<p class="quiet">{tr('Times are in nanoseconds. slice.id and parent_id number the calls of the trace. Statements may only read, within the time and memory limits of other queries.')}</p></details></div>
			{error && <Failure error={error} />}
			{load.error ? <Failure error={load.error} title={tr('The query was not run.')} /> : <>
				<Pending of={load} what={tr('Running the query')} />
				{load.value && <div class={load.busy ? 'stale' : ''}><Rows v={load.value} threads={threads} whole={whole} /></div>}</>}
		</Panel>
	);
}
