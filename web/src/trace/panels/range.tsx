// Everything of the selected time and threads in one table: calls, thread states, events and counters; next to
// another range of the same trace, if one was stored for comparison.
import { useMemo } from 'preact/hooks';
import { api, type Method, type Thread } from '../../api/api';
import { count, duration, percent } from '../../i18n/format';
import { interval } from '../../i18n/interval';
import { tr } from '../../i18n/strings/trace';
import { useMore } from '../../ui/panelstate';
import { later } from '../../ui/later';
import { matching } from '../../ui/matching';
import { Choice, Copy, MethodName, Panel, Pending, useLoad } from '../../ui/parts';
import { set, text } from '../../ui/route';
import { formatBase, parseBase, type Base } from '../state/base';
import { nameOfThread } from '../parts/threadname';
import { compared, noteRows, type Pair, type Row } from './rangerows';

const ROWS = 15, METHODS_MAX = 10000;

interface Props {
	id: string;
	range: [number, number];
	tids: ReadonlySet<number> | null;
	threads: Thread[];
	start: number;
	hasCalls: boolean;
	turn: number;
}

interface Section {
	id: string;
	title: string;
	rows: Row[];
}

const threadsOf = (tids: ReadonlySet<number> | null) => (tids ? [...tids].join(',') : 'all');

const callRows = (methods: Method[]): Row[] => methods.map((m) => ({ key: `m${m.method}`, name: m.name, n: m.count, ns: m.running_ns, more: m.running_ns < m.self_ns ? tr('waits {self}', { self: duration(m.self_ns) }) : tr('total {total}, longest {max}', { total: duration(m.total_ns), max: duration(m.max_ns) }), method: m.method }));

/** All that happened in a range; calls by running time, so that waits come last. */
async function load(p: Props, { from, to, tids }: Base, signal: AbortSignal): Promise<{ sections: Section[]; busy: number; partial: boolean }> {
	const of = { thread: threadsOf(tids), from, to };
	const [methods, sums, lanes] = await Promise.all([
		p.hasCalls ? api.methods(p.id, { ...of, sort: 'running_ns', limit: METHODS_MAX }, signal) : null,
		api.noteSums(p.id, of, signal), api.lanes(p.id, { kind: 'counter', cells: 1, ...of }, signal)]);
	const own = sums.sums.filter((s) => !tids || s.tid === null || tids.has(s.tid));
	const named = (tid: number | null) => (tid === null ? '' : ` · ${p.threads.find((t) => t.tid === tid)?.name || tid}`);
	const counters = lanes.lanes.filter((l) => l.notes.length > 0).map((l, i): Row => {
		const low = Math.min(...(l.low ?? l.value)), high = Math.max(...(l.high ?? l.value));
		return { key: `c${i}${l.name}${l.tid}`, name: l.name + named(l.tid), n: l.notes.reduce((a, b) => a + b, 0), ns: null, more: low === high ? count(low) : interval(count(low), count(high)) };
	});
	return { busy: methods?.busy_ns ?? 0, partial: sums.partial || methods?.partial === true, sections: [
		{ id: 'calls', title: tr('Calls'), rows: callRows(methods?.methods ?? []) }, { id: 'states', title: tr('Thread states'), rows: noteRows(own, true) },
		{ id: 'notes', title: tr('Events'), rows: noteRows(own, false) }, { id: 'counters', title: tr('Counters'), rows: counters }].filter((s) => s.rows.length > 0) };
}

const amount = (r: Row) => (r.ns === null ? r.more : r.ns > 0 ? duration(r.ns) : '');
const signed = (v: number, time: boolean) => `${v > 0 ? '+' : v < 0 ? '−' : ''}${time ? duration(Math.abs(v)) : count(Math.abs(v))}`;

function Rows({ s, base, busy }: { s: Section; base: Section | null; busy: number }) {
	const [shown, more] = useMore(`r${s.id}`, ROWS);
	const pairs: Pair[] = useMemo(() => (base ? compared(s.rows, base.rows) : s.rows.map((row) => ({ row, base: null, change: 0 }))), [s, base]);
	const most = Math.max(1, ...pairs.map(({ row }) => row.ns ?? 0));
	return <>
		<tbody>
			<tr class="section"><th colSpan={5} scope="rowgroup">{s.title} <span class="quiet">{count(pairs.length)}</span></th></tr>
			{pairs.slice(0, shown).map(({ row: r, base: b, change }) => (
				<tr key={r.key}>
					<td class={s.id === 'calls' ? 'mono name' : 'name'}>{r.method !== undefined ? <button class="plain" title={tr('List its calls')} onClick={() => set({ calls: r.method!, min: null, max: null, tab: 'calls' }, true)}><MethodName name={r.name} /></button>
						: s.id === 'states' ? <><i class="swatch" style={{ background: `var(--state-${r.name})` }} />{r.name}</> : r.name}</td>
					<td class="num">{count(r.n)}</td>
					<td class="num share">{r.ns !== null && <span class="bar" style={{ width: `${(100 * r.ns) / most}%` }} />}<span>{amount(r)}</span></td>
					{base ? <><td class="num">{b ? r.ns === null ? b.more : amount(b) || count(b.n) : '–'}</td><td class={`num ${change > 0 ? 'worse' : ''}`}>{change ? signed(change, r.ns !== null && (r.ns > 0 || (b?.ns ?? 0) > 0)) : ''}</td></>
						: <><td class="num">{s.id === 'calls' && busy > 0 ? percent((r.ns ?? 0) / busy) : ''}</td><td class="quiet nowrap">{r.ns === null ? '' : r.more}</td></>}
				</tr>))}
		</tbody>
		{pairs.length > shown && <tbody><tr><td colSpan={5}><button class="small" onClick={() => more(shown * 10)}>{tr('Show more of {all}', { all: count(pairs.length) })}</button></td></tr></tbody>}
	</>;
}

const tsv = (sections: Section[]) => [['kind', 'name', 'count', 'ns', 'more'].join('\t'), ...sections.flatMap((s) => s.rows.map((r) => [s.id, r.name, r.n, r.ns ?? '', r.more].join('\t')))].join('\n');

const filtered = (s: Section, find: string): Section => {
	const hits = matching(s.rows.map((r) => r.name), find);
	return hits ? { ...s, rows: s.rows.filter((_, i) => hits[i]) } : s;
};

const graph = later<{ id: string; base: Base; here: Base; turn: number }>('range graph', async () => (await import('../../compare/rangegraph')).RangeGraph, tr('Differential flame graph'));

/** "12.0 ms from 3.40 s" */
const spanText = (b: Base, start: number) => tr('{length} from {from}', { length: duration(b.to - b.from), from: duration(b.from - start) });

export function RangePanel(p: Props) {
	const here = useMemo<Base>(() => ({ from: p.range[0], to: p.range[1], tids: p.tids }), [p.range, p.tids]);
	const baseText = text('base');
	const base = useMemo(() => parseBase(baseText), [baseText]);
	const find = text('rq');
	const drawn = base !== null && p.hasCalls && text('rview') === 'graph';
	const of = useLoad(`${p.id} ${formatBase(here)} ${p.turn}`, (s) => load(p, here, s));
	const other = useLoad(base ? `${p.id} ${baseText} ${p.turn}` : '', (s) => (base ? load(p, base, s) : Promise.resolve(null)));
	const v = of.value;
	const w = base ? other.value : null;
	const sections = useMemo(() => {
		const all = v?.sections ?? [];
		const only = (w?.sections ?? []).filter((s) => !all.some((x) => x.id === s.id)).map((s) => ({ ...s, rows: [] }));
		return [...all, ...only].map((s) => filtered(s, find)).filter((s) => s.rows.length > 0 || w);
	}, [v, w, find]);
	const names = !p.tids ? tr('all threads') : p.tids.size === 1 ? nameOfThread([...p.tids][0], p.threads) : tr('{n} threads', { n: count(p.tids.size) });
	return (
		<Panel title={tr('Selected range')} aside={<>
			{base && p.hasCalls && <Choice label={tr('Shown as')} value={drawn ? 'graph' : 'table'} options={[['table', tr('Table')], ['graph', tr('Differential flame graph')]]} onPick={(v) => set({ rview: v === 'graph' ? v : null, dfocus: null, droot: null, dnodes: null }, true)} />}
			{!drawn && <label class="inline">{tr('Find')}<input type="search" value={find} onInput={(e) => set({ rq: e.currentTarget.value || null })} /></label>}
			{base ? <button class="small" onClick={() => set({ base: null, rview: null, dfocus: null, droot: null, dwidth: null, dnodes: null }, true)}>{tr('Stop comparing')}</button>
				: <button class="small" title={tr('Then select another range: both are shown side by side')} onClick={() => set({ base: formatBase(here) }, true)}>{tr('Compare with another range')}</button>}
			{v && <Copy text={() => tsv(v.sections)} label={tr('Copy as TSV')} />}</>}>
			<p role="status"><strong>{spanText(here, p.start)}</strong>{', '}{names}{base && <span class="quiet">{' '}{formatBase(base) === formatBase(here) ? tr('Base of the comparison. Select another range to compare it with this one.') : tr('compared with {base}', { base: spanText(base, p.start) })}</span>}</p>
			{drawn && <graph.Page id={p.id} base={base} here={here} turn={p.turn} />}
			{!drawn && <>
				<Pending of={of} what={tr('Summing')} />
				{base && <Pending of={other} what={tr('Summing')} />}
				{v && sections.length === 0 && <p class="quiet">{find ? tr('Nothing has this name here.') : tr('Nothing was recorded here.')}</p>}
				{sections.length > 0 && <div class={of.busy || other.busy ? 'stale' : ''}><div class="scroll"><table class={w ? 'methods range' : 'methods range alone'}>
					<thead><tr><th>{tr('Name')}</th><th class="num">{tr('Count')}</th><th class="num" title={tr('For calls: self time without waits. For states and events: time in the range.')}>{tr('Time')}</th>
						{w ? <><th class="num">{tr('Before')}</th><th class="num">{tr('Change')}</th></> : <><th class="num">{tr('Share')}</th><th>{tr('More')}</th></>}</tr></thead>
					{sections.map((s) => { const b = w?.sections.find((x) => x.id === s.id); return <Rows key={s.id} s={s} base={w ? filtered(b ?? { ...s, rows: [] }, find) : null} busy={v?.busy ?? 0} />; })}
				</table></div></div>}
				{v?.partial && <p class="quiet">{tr('Incomplete: the time limit was reached.')}</p>}
			</>}
		</Panel>
	);
}
