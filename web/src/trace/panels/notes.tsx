// The events of the trace that are not calls: waits, locks, states, counters, garbage collections, marks.
import type { ComponentChild } from 'preact';
import { useMemo } from 'preact/hooks';
import { api, type Note, type Thread } from '../../api/api';
import { COMMA, count, duration } from '../../i18n/format';
import { useMore } from '../../ui/panelstate';
import { useTyped } from '../../ui/filter';
import { columnsOf, factsOf, type Fact } from './eventfacts';
import { formatEvent, idOf } from '../state/event';
import { around, inOrder, kindsInOrder, kindTitle, ofOneThread, within } from '../state/notekinds';
import { openAlso } from '../state/opened';
import { STATE_NAMES, STATES } from '../state/statelines';
import { nameOfThread, ThreadName } from '../parts/threadname';
import { atTimeline } from '../state/tab';
import { Choice, Failure, Panel, Pending, useLoad } from '../../ui/parts';
import { serverText } from '../../i18n/servertext';
import { set, text } from '../../ui/route';
import { tr } from '../../i18n/strings/trace';

const LOAD = 10000;
const MOST = 100000; // that the server returns
const ALL = 'all'; // kinds: searched unless one is selected
const ROWS = 100;
const COLUMNS = 4; // of details

interface Row {
	note: Note;
	facts: Fact[];
}

/** A column's head, which orders the rows. */
function Ordered({ label, by, now }: { label: string; by: 'start' | 'duration'; now: string }) {
	return <th class="num" aria-sort={now !== by ? 'none' : by === 'start' ? 'ascending' : 'descending'}>
		<button class="plain" onClick={() => set({ eventsort: by === 'start' ? by : null }, true)}>{now === by && <span aria-hidden="true">{by === 'start' ? '↑ ' : '↓ '}</span>}{label}</button></th>;
}

/** The event in one word or more: a state by its name and colour. */
function Words({ n, mixed }: { n: Note; mixed: boolean }) {
	if (mixed) return <><span class="quiet">{kindTitle(n.kind)}</span> <Words n={n} mixed={false} /></>;
	const state = n.kind === 'state' ? STATES.indexOf(n.text) : -1;
	if (state >= 0) return <><i class="swatch" style={{ background: `var(--state-${n.text})` }} />{STATE_NAMES[state]}</>;
	return <>{(n.kind === 'anr' ? serverText(n.text) : n.text) || '–'}</>;
}

function Table({ rows, all, mixed, start, end, timed, byTime, threads, goTo }: {
	rows: Row[]; all: Row[]; mixed: boolean; byTime: boolean; start: number; end: number; timed: boolean; threads: Thread[]; goTo: (n: Note) => void;
}) {
	const selected = text('event');
	const { columns, rest } = useMemo(() => columnsOf(all.map((r) => r.facts), COLUMNS), [all]);
	const longest = useMemo(() => all.reduce((most, r) => Math.max(most, r.note.dur_ns ?? 0), 0), [all]);
	const now = byTime ? 'start' : 'duration';
	return (
		<div class="scroll"><table class="methods">
			<thead><tr>{timed && (longest > 0 ? <><Ordered label={tr('At')} by="start" now={now} /><Ordered label={tr('Duration')} by="duration" now={now} /></> : <th class="num">{tr('At')}</th>)}<th>{tr('Event')}</th>
				{columns.map((c) => <th key={c.key} class={c.number ? 'num' : ''}>{c.label}</th>)}{rest.size > 0 && <th>{tr('More')}</th>}<th>{tr('Thread')}</th></tr></thead>
			<tbody>{rows.map(({ note: n, facts }) => {
				const lit = selected && `${formatEvent(idOf(n))}.`.startsWith(`${selected}.`);
				return (
					<tr key={n.id} class={`${lit ? 'lit' : ''} ${timed ? 'go' : ''}`} onClick={() => timed && getSelection()?.isCollapsed !== false && goTo(n)}>
						{timed && <td class="num" data-label={tr('At')}><button class="plain" aria-current={lit || undefined} title={tr('Show this in the chart')} onClick={(e) => (e.stopPropagation(), goTo(n))}>{duration(within(n, start, end).ts_ns - start)}</button></td>}
						{timed && longest > 0 && <td class="num share" data-label={tr('Duration')}>{n.dur_ns !== null && <><span class="bar" style={{ width: `${(100 * n.dur_ns) / longest}%` }} /><span>{duration(n.dur_ns)}</span></>}</td>}
						<td class="event" title={n.kind === 'state' ? undefined : n.text}><Words n={n} mixed={mixed} /></td>
						{columns.map((c) => {
							const f = facts.find((x) => x.key === c.key);
							return <td key={c.key} class={c.number ? 'num fact' : 'fact'} data-label={c.label} title={f?.text}>{f?.short}</td>;
						})}
						{rest.size > 0 && <td class="quiet more">{facts.filter((f) => rest.has(f.key)).map((f) => `${f.label}: ${f.text}`).join(COMMA)}</td>}
						<td class="thread">{n.tid === null ? <span class="quiet">{tr('the trace')}</span> : <ThreadName name={threads.find((t) => t.tid === n.tid)?.name} tid={n.tid} />}</td>
					</tr>);
			})}</tbody>
		</table></div>
	);
}

/** Times are shown as the chart shows them, from `start` on. States are those of the thread that is shown, unless other threads are chosen. */
export function NotesPanel({ id, threads, shown, tids, start, end, timed, scope }: {
	id: string; threads: Thread[]; shown?: Thread; tids: Set<number> | null; start: number; end: number; timed: boolean; scope: (standard: string) => ComponentChild;
}) {
	const a = text('a');
	const b = text('b');
	const chosen = text('note');
	const first = useLoad(id, (s) => api.notes(id, { limit: 1 }, s));
	const kinds = useMemo(() => kindsInOrder(first.value?.kinds ?? {}), [first.value]);
	const find = text('eq');
	const expression = /^\/(.+)\/$/.exec(find)?.[1];
	const kind = kinds.includes(chosen) ? chosen : find ? ALL : kinds[0] ?? '';
	const standard = ofOneThread(kind) ? 'one' : 'all';
	const of = text('threads') ? tids : standard === 'one' && shown ? new Set([shown.tid]) : null;
	const [wanted, want] = useMore('loaded', LOAD);
	const load = useLoad(`${wanted} ${id} ${kind} ${of && [...of].join()} ${a} ${b} ${find}`,
		async (s) => (kind ? { of: kind, find, ...(await api.notes(id, { kind: kind === ALL ? undefined : kind, q: expression ?? (find || undefined), regex: expression && true, limit: Math.min(wanted, MOST), thread: of ? [...of].join(',') : undefined, from: a || (timed ? start : ''), to: b || (timed ? end + 1 : '') }, s)) } : null));
	const came = load.value?.of === kind && load.value.find === find ? load.value : null; // not those of an earlier kind or text
	const [rows, show] = useMore('notes', ROWS);
	const [typed, type] = useTyped('eq');
	const byTime = text('eventsort') === 'start';
	const named = (tid: number) => nameOfThread(tid, threads);
	const list = useMemo<Row[]>(() => {
		const notes = (came?.notes ?? []).map((n) => ({ ...n, dur_ns: timed ? within(n, start, end).dur_ns : n.dur_ns }));
		return (byTime ? notes : inOrder(notes)).map((note) => ({ note, facts: factsOf(note, named) }));
	}, [came, start, end, timed, byTime, threads]);
	const numbers = (find && load.value?.find === find && load.value.matches) || first.value?.kinds || {}; // of each kind
	const sum = (of: Record<string, number>) => (kind === ALL ? Object.values(of).reduce((n, v) => n + v, 0) : of[kind] ?? 0);
	const one = of?.size === 1 ? [...of][0] : null;
	const goTo = (n: Note) => {
		const [from, to] = around(n, end, start);
		const has = threads.some((t) => t.tid === n.tid && t.slices > 0);
		set({ ...(has ? { thread: n.tid, open: openAlso(text('open'), n.tid!) } : {}), from, to, event: formatEvent(idOf(n)), call: null, ...atTimeline() }, true);
	};

	if (first.error) return <Failure error={first.error} retry={first.again} />;
	if (kinds.length === 0) return null;
	return (
		<Panel title={tr('Events and counters')} id="notes" aside={<><Choice label={tr('Kind')} value={kind} onPick={(v) => { show(ROWS); set({ note: v }); }}
			options={[...(find ? [[ALL, tr('All kinds {n}', { n: count(Object.values(numbers).reduce((n, v) => n + v, 0)) })] as [string, string]] : []), ...kinds.map((k) => [k, `${kindTitle(k)} ${count(numbers[k] ?? 0)}`] as [string, string])]} />
			<label class="inline"><span class="hidden">{tr('Find')}</span><input type="search" value={typed} placeholder={tr('text, thread or detail')} onInput={(e) => { show(ROWS); type(e.currentTarget.value); }} /></label>
			{scope(standard)}</>}>
			<Pending of={{ ...load, value: came }} what={tr('Loading')} />
			{came && list.length === 0 && !find && <p class="quiet">{tr('None{of}{b}.', { of: one !== null ? tr(' of {name}', { name: named(one) }) : '', b: a && b ? tr(' in the selected time') : '' })}</p>}
			{came && list.length === 0 && find && <p class="quiet" role="status">{tr('{met} of {all} match', { met: 0, all: count(sum(first.value!.kinds)) })}</p>}
			{came?.partial && <p class="quiet">{tr('The search reached its time limit: the counts are incomplete. Select a shorter time range.')}</p>}
			{list.length > 0 && <Table rows={list.slice(0, rows)} all={list} mixed={kind === ALL} byTime={byTime} start={start} end={end} timed={timed} threads={threads} goTo={goTo} />}
			{list.length > 0 && <p class="row under">
				<span class="quiet" role="status">{find ? tr('{met} of {all} match', { met: count(sum(numbers)), all: count(sum(first.value!.kinds)) }) : tr('{shown} of {all}', { shown: count(Math.min(rows, list.length)), all: count(list.length) })}</span>
				{list.length > rows && <button class="small" onClick={() => show(rows * 4)}>{tr('Show more')}</button>}
				{came?.next_cursor && !came.partial && <span class="quiet">{tr('The first {load} of {kinds}{b}; select a time range to see others.', { load: count(came.notes.length), kinds: count(sum(numbers)), b: a && b ? tr(' in the selected time') : '' })}</span>}
				{came?.next_cursor && !came.partial && wanted < MOST && <button class="small" onClick={() => want(MOST)}>{tr('Load up to {most} events', { most: count(MOST) })}</button>}
			</p>}
		</Panel>
	);
}
