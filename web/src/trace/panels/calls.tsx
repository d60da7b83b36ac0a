// Single calls: all of one method with a histogram of their durations, or the longest of threads and a range.
import { useState } from 'preact/hooks';
import { api, type Calls, type Thread } from '../../api/api';
import { count, duration } from '../../i18n/format';
import { tr } from '../../i18n/strings/trace';
import { Cards } from '../../ui/cards';
import { narrow } from '../../ui/narrow';
import { useMore } from '../../ui/panelstate';
import { Choice, MethodName, Panel, Pending, useLoad } from '../../ui/parts';
import { number, set, text } from '../../ui/route';
import { ThreadName } from '../parts/threadname';
import { formatCall } from '../state/selection';
import { placeOfCall } from '../state/tab';
import { viewOf } from '../state/view';

const ROWS = 100, MOST = 10000;
const BARS_HEIGHT = 64;
const ALL = { min: null, max: null }; // durations

/** Bars of two an octave; a click picks the durations of one. */
function Histogram({ of, min, max }: { of: Calls; min: number; max: number | null }) {
	const step = narrow.value ? 3 : 1; // wide enough for a finger
	const bars = of.histogram.flatMap((_, i, all) => (i % step ? [] : all.slice(i, i + step).reduce((sum, next) => ({ ...sum, to_ns: next.to_ns, calls: sum.calls + next.calls }))));
	const most = Math.max(...bars.map((b) => b.calls));
	const [at, point] = useState(-1);
	const pointed = bars[at];
	const describe = (b: Calls['histogram'][0]) => tr('{calls} from {from} to {to}', { calls: tr.many(b.calls, '{n} call', '{n} calls'), from: duration(b.from_ns), to: duration(b.to_ns) });
	return <div class="histogram" style={{ maxWidth: `${Math.max(320, bars.length * 29)}px` }}>
		<div class="bars" role="group" aria-label={tr('Calls by duration')} onPointerLeave={() => point(-1)}>
			{bars.map((b, i) => {
				const on = b.from_ns >= min && (max === null || b.from_ns <= max);
				const only = min === b.from_ns && max === b.to_ns - 1;
				return <button key={b.from_ns} class={on ? 'on' : ''} aria-label={describe(b)} aria-pressed={on && (min > 0 || max !== null)} onPointerEnter={() => point(i)} onFocus={() => point(i)}
					onClick={() => set(only ? ALL : { min: b.from_ns || null, max: b.to_ns - 1 }, true)}>
					<span style={{ height: `${Math.max(2, BARS_HEIGHT * Math.sqrt(b.calls / most))}px` }} /></button>;
			})}
		</div>
		<p class="quiet ends"><span>{duration(bars[0].from_ns)}</span>
			<span aria-live="polite">{pointed ? describe(pointed) : tr('Height is the square root of the number of calls')}</span>
			<span>{duration(of.max_ns)}</span></p>
	</div>;
}

function Least({ min }: { min: number }) {
	const [typed, put] = useState<string | null>(null);
	return <label class="inline">{tr('At least')}
		<input class="short" type="number" min="0" step="any" inputMode="decimal" value={typed ?? (min > 0 ? String(min / 1e6) : '')} placeholder="0" onBlur={() => put(null)}
			onInput={(e) => {
				const v = e.currentTarget.value;
				put(v);
				if (v === '' || Number(v) >= 0) set({ min: Math.round(Number(v) * 1e6) || null, max: null });
			}} /> ms</label>;
}

function Table({ v, threads, start, method, view }: { v: Calls; threads: Thread[]; start: number; method: boolean; view: { from: number; to: number } }) {
	const chosen = text('call');
	return (
		<Cards of="methods">
			<thead><tr><th class="num">{tr('Duration')}</th><th class="num">{tr('Start')}</th>{!method && <th>{tr('Method')}</th>}
				<th>{tr('Thread')}</th><th class="num">{tr('Depth')}</th></tr></thead>
			<tbody>{v.calls.map((c) => {
				const id = formatCall({ tid: c.tid, start: c.start_ns, depth: c.depth });
				return (
					<tr key={id} class={id === chosen ? 'lit' : ''}>
						<td class="num share"><span class="bar" style={{ width: `${(100 * c.dur_ns) / (v.max_ns || 1)}%` }} /><button class="plain" aria-current={id === chosen || undefined} title={tr('Show this call in the timeline')} onClick={() => set(placeOfCall(c, view), true)}>{duration(c.dur_ns)}</button></td>
						<td class="num">{duration(c.start_ns - start)}</td>
						{!method && <td class="mono name"><button class="plain" title={c.name} onClick={() => set({ calls: c.method, ...ALL }, true)}><MethodName name={c.name} /></button></td>}
						<td class="thread"><ThreadName name={threads.find((t) => t.tid === c.tid)?.name} tid={c.tid} /></td><td class="num">{c.depth}</td>
					</tr>);
			})}</tbody>
		</Cards>
	);
}

export function CallsPanel({ id, thread, range, threads, names, whole, scope, turn }: {
	id: string; thread: string; range: [number, number] | null; threads: Thread[]; names: string[]; whole: { from: number; to: number }; scope: preact.ComponentChild; turn: number;
}) {
	const requested = number('calls');
	const method = requested !== null && requested < names.length ? requested : null;
	const min = number('min') ?? 0;
	const max = number('max');
	const sort = text('callsort') === 'start' ? 'start' : 'duration';
	const [rows, more] = useMore('calls', ROWS);
	const params = { thread, from: range?.[0], to: range?.[1], method, min_ns: min || null, max_ns: max, sort: sort === 'start' ? sort : null, limit: Math.min(MOST, rows) };
	const load = useLoad(`${id} ${JSON.stringify(params)} ${turn}`, (s) => api.calls(id, params, s));
	const v = load.value;
	const limited = min > 0 || max !== null;
	const calls = tr.many(v?.count ?? 0, '{n} call', '{n} calls');
	const hint = <span class="quiet">{tr('Calls of all methods. Choose "List its calls" of a method to see only its own.')}</span>;
	const view = viewOf(whole);
	return (
		<Panel title={tr('Calls')} aside={<>{scope}<Least min={min} />
			<Choice label={tr('Order')} value={sort} options={[['duration', tr('Longest')], ['start', tr('First')]]} onPick={(o) => set({ callsort: o === 'start' ? o : null }, true)} /></>}>
			{(method !== null || v?.count === 0) && <p class="row">{method !== null ? <><strong class="mono anywhere"><MethodName name={names[method]} /></strong> <button class="small" onClick={() => set({ calls: null, ...ALL }, true)}>{tr('Calls of all methods')}</button></>
				: hint}</p>}
			<Pending of={load} what={tr('Reading calls')} />
			{v && v.count === 0 && <p class="quiet">{tr('No calls here.')}</p>}
			{v && v.count > 0 && <div class={load.busy ? 'stale' : ''}>
				<p class="row">{limited && <><strong aria-live="polite">{tr('{total} of {calls} take {from} to {to}', { total: count(v.total), calls, from: duration(min), to: duration(max === null ? v.max_ns : max + 1) })}</strong>
					<button class="small" onClick={() => set(ALL, true)}>{tr('All durations')}</button></>}
					<span class="quiet" role="status">{tr('{count}, p50 {p50}, p95 {p95}, longest {max}, total {sum}', { count: calls, p50: duration(v.p50_ns), p95: duration(v.p95_ns), max: duration(v.max_ns), sum: duration(v.sum_ns) })}{v.partial ? tr('; incomplete: the time limit was reached') : ''}</span>{method === null && !limited && hint}</p>
				<Histogram of={v} min={min} max={max} />
				<Table v={v} threads={threads} start={whole.from} method={method !== null} view={view} />
				<p class="row under"><span class="quiet">{tr('{shown} of {total} of these durations', { shown: count(v.calls.length), total: count(v.total) })}</span>
					{v.calls.length < v.total && rows < MOST && <button class="small" onClick={() => more(rows * 10)}>{tr('Show more')}</button>}</p>
			</div>}
		</Panel>
	);
}

