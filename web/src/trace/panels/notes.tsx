// The events of the trace that are not calls: waits, locks, states, counters, garbage collections, marks.
import { useMemo } from 'preact/hooks';
import { api, type Note, type Thread } from '../../api/api';
import { COMMA, count, duration } from '../../i18n/format';
import { useMore } from '../../ui/held';
import { matching } from '../../ui/matching';
import { factsOf } from './eventfacts';
import { formatEvent, idOf } from '../state/event';
import { around, inOrder, kindsInOrder, kindTitle, ofOneThread, within } from '../state/notekinds';
import { openAlso } from '../state/opened';
import { atTimeline } from '../state/tab';
import { Choice, Failure, Panel, Pending, useLoad } from '../../ui/parts';
import { serverText } from '../../i18n/servertext';
import { set, text } from '../../ui/route';
import { tr } from '../../i18n/strings/trace';

const LOAD = 2000;
const ROWS = 15;

/** Details of a row beside its text; '' if there are none. */
const detailOf = (n: Note, named: (tid: number) => string) => factsOf(n, named).map(([k, v]) => `${k}: ${v}`).join(COMMA);

/** Times are shown as the chart shows them, from `start` on; states are those of the thread that is shown. */
export function NotesPanel({ id, threads, shown, start, end, timed }: { id: string; threads: Thread[]; shown?: Thread; start: number; end: number; timed: boolean }) {
	const a = text('a');
	const b = text('b');
	const chosen = text('note');
	const first = useLoad(id, (s) => api.notes(id, { limit: 1 }, s));
	const kinds = useMemo(() => kindsInOrder(first.value?.kinds ?? {}), [first.value]);
	const kind = kinds.includes(chosen) ? chosen : kinds[0] ?? '';
	const of = shown && ofOneThread(kind) ? shown : null;
	const load = useLoad(`${id} ${kind} ${of?.tid} ${a} ${b}`,
		async (s) => (kind ? { of: kind, ...(await api.notes(id, { kind, limit: LOAD, thread: of?.tid, from: a || (timed ? start : ''), to: b || (timed ? end + 1 : '') }, s)) } : null));
	const came = load.value?.of === kind ? load.value : null; // not those of the kind before
	const [rows, show] = useMore('notes', ROWS);
	const list = useMemo(() => inOrder((came?.notes ?? []).map((n) => ({ ...n, dur_ns: timed ? within(n, start, end).dur_ns : n.dur_ns }))), [came, start, end, timed]);
	const named = (tid: number) => threads.find((t) => t.tid === tid)?.name || tr('thread {tid}', { tid });
	const more = list.some((n) => detailOf(n, named) !== '');
	const find = text('eq');
	const hits = useMemo(() => matching(list.map((n) => `${n.text} ${n.tid === null ? '' : named(n.tid)} ${detailOf(n, named)}`), find), [list, find]);
	const met = useMemo(() => (hits ? list.filter((_, i) => hits[i]) : list), [list, hits]);
	const selected = text('event');
	const goTo = (n: Note) => {
		const [from, to] = around(n, end, start);
		const has = threads.some((t) => t.tid === n.tid && t.slices > 0);
		set({ ...(has ? { thread: n.tid, open: openAlso(text('open'), n.tid!) } : {}), from, to, event: formatEvent(idOf(n)), call: null, ...atTimeline() }, true);
	};

	if (first.error) return <Failure error={first.error} retry={first.again} />;
	if (kinds.length === 0) return null;
	return (
		<Panel title={tr('Events and counters')} id="notes" aside={<><label class="inline">{tr('Find')}<input type="search" value={find} placeholder={tr('text, thread or detail')} onInput={(e) => { show(ROWS); set({ eq: e.currentTarget.value || null }); }} /></label><Choice label={tr('Kind')} value={kind} onPick={(v) => { show(ROWS); set({ note: v }); }}
			options={kinds.map((k) => [k, `${kindTitle(k)} ${count(first.value!.kinds[k])}`])} /></>}>
			{find && list.length > 0 && <p class="quiet" role="status">{tr('{met} of {all} match', { met: count(met.length), all: count(list.length) })}</p>}
			<Pending of={{ ...load, value: came }} what={tr('Loading')} />
			{came && list.length === 0 && <p class="quiet">{tr('None{of}{b}.', { of: of ? tr(' of {name}', { name: of.name || tr('thread {tid}', { tid: of.tid }) }) : '', b: a && b ? tr(' in the selected time') : '' })}</p>}
			{list.length > 0 && (
				<div class="scroll"><table>
					<thead><tr>{timed && <><th scope="col" class="num">{tr('At')}</th><th scope="col" class="num">{tr('For')}</th></>}<th scope="col">{tr('Thread')}</th>
						<th scope="col">{tr('Event')}</th>{more && <th scope="col">{tr('More')}</th>}</tr></thead>
					<tbody>{met.slice(0, rows).map((n) => (
						<tr key={n.id} class={selected === formatEvent(idOf(n)) ? 'lit' : ''}>
							{timed && <><td class="num"><button class="small" title={tr('Show this in the chart')} onClick={() => goTo(n)}>{duration(within(n, start, end).ts_ns - start)}</button></td>
							<td class="num">{n.dur_ns === null ? '' : duration(n.dur_ns)}</td></>}
							<td>{n.tid === null ? <span class="quiet">{tr('the trace')}</span> : named(n.tid)}</td>
							<td class="mono">{n.kind === 'anr' ? serverText(n.text) : n.text}</td>
							{more && <td class="quiet more">{detailOf(n, named)}</td>}
						</tr>))}</tbody>
				</table></div>)}
			<p class="row">
				{met.length > rows && <button class="small" onClick={() => show(rows * 4)}>{tr('Show more')}</button>}
				{came?.next_cursor && <span class="quiet">{tr('The first {load} of {kinds}{b}; select a time range to see others.', { load: count(LOAD), kinds: count(first.value!.kinds[kind]), b: a && b ? tr(' in the selected time') : '' })}</span>}
			</p>
		</Panel>
	);
}
