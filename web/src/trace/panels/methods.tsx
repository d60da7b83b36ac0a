// The table of methods: the canvases as numbers.
import { useMemo, useRef, useState } from 'preact/hooks';
import { api, Refusal, type Method } from '../../api/api';
import { count, duration, percent } from '../../i18n/format';
import { HitBar, nextHit } from '../parts/hits';
import { cell, chosen, COLUMNS, filterOf, rowText, tsvOf, UNTIMED, withColumn, type Column } from './methodcolumns';
import { MethodMenu, type About } from '../parts/methodmenu';
import { Cards } from '../../ui/cards';
import { Filter } from '../../ui/filter';
import { Busy, Copy, Failure, MethodName, Panel, Sorted, useLoad, type Loaded } from '../../ui/parts';
import { Popover } from '../../ui/popover';
import { number, set, text } from '../../ui/route';
import type { Words } from '../../api/source';
import { tr } from '../../i18n/strings/trace';

const STEP = 25;
const ROWS_MAX = 10000;
const P95_RESHAPED = tr('p95 is computed from recorded calls and is not available after the graph was changed');

type Page = Awaited<ReturnType<typeof api.methods>>;

interface Props {
	id: string;
	thread: string;
	range: [number, number] | null;
	mappingTurn: number;
	scope: preact.ComponentChild;
	steps: preact.ComponentChild; // that are taken
	words: Words;
	matches: Uint8Array | null;
	hasCpu: boolean;
	timed: boolean; // otherwise only numbers of calls are meaningful
	transform: string; // steps that reshape the calls
	onFind: (name: string) => void;
}

/** The order in the address; otherwise the default. */
function sorting({ timed }: Props): { sort: string; order: string } {
	const requested = text('sort');
	const sort = requested === 'name' || COLUMNS.some((c) => c.key === requested) ? requested : timed ? 'running_ns' : 'self_ns';
	const order = text('order');
	return { sort, order: order === 'asc' || order === 'desc' ? order : sort === 'name' ? 'asc' : 'desc' };
}

/** Which columns there are, as a list to pick from. */
function Chooser({ hasCpu, words }: { hasCpu: boolean; words: Words }) {
	const cols = text('cols');
	const shown = chosen(cols, hasCpu);
	return (
		<Popover small label={tr('Columns')} title={tr('Columns')}>{() => COLUMNS.filter((c) => !c.cpu || hasCpu).map((c) => (
			<label key={c.key} class="check" title={c.hint}><input type="checkbox" checked={shown.includes(c)}
				onChange={() => set({ cols: withColumn(cols, hasCpu, c.key) }, true)} /> {c.key === 'count' ? words.head : c.title}</label>))}</Popover>
	);
}

function Row({ m, columns, words, busy, most, lit, onFind, onMore }: {
	m: Method; columns: Column[]; words: Words; busy: number; most: number; lit: boolean; onFind: (name: string) => void; onMore: (about: About) => void;
}) {
	const more = (x: number, y: number) => onMore({ x, y, method: m.method, name: m.name, row: rowText(m, columns, words) });
	return (
		<tr class={lit ? 'lit' : ''} onContextMenu={(e) => { e.preventDefault(); more(e.clientX, e.clientY); }}>
			<td class="mono name"><button class="plain" title={tr('Show where it runs{id}', { id: m.id === null ? '' : tr('; method id {id}', { id: m.id }) })} onClick={() => onFind(m.name)}>
				<MethodName name={m.name} /></button></td>
			{columns.map((c) => <td key={c.key} class="num">{cell(m, c, words)}</td>)}
			<td class="num share"><span class="bar" style={{ width: `${(100 * m.self_ns) / most}%` }} /><span>{percent(m.self_ns / (busy || 1))}</span></td>
			<td class="num"><button class="plain" aria-label={tr('More about {name}', { name: m.name })} aria-haspopup="menu" onClick={(e) => {
				const r = e.currentTarget.getBoundingClientRect();
				more(r.left, r.bottom);
			}}>⋯</button></td>
		</tr>
	);
}

/** The rows, then the values that require a scan of every call. */
function useMethods(p: Props, columns: Column[]): Loaded<Page> {
	const { sort, order } = sorting(p);
	const limit = Math.min(ROWS_MAX, Math.max(1, number('rows') ?? STEP));
	const params = { thread: p.thread, from: p.range?.[0], to: p.range?.[1], sort, order, ...filterOf(text('filter')), limit, transform: p.transform };
	const key = JSON.stringify(params) + p.mappingTurn;
	const page = useLoad(key, async (s) => ({ ...await api.methods(p.id, params, s), key }));
	const wants = columns.some((c) => c.key === 'p95_ns') && sort !== 'p95_ns' && !params.transform && page.value?.key === key;
	const all = useLoad(wants ? key : '', async (s) => (wants ? { ...await api.methods(p.id, { ...params, p95: '1' }, s), key } : null));
	return { ...page, value: all.value && all.value.key === page.value?.key ? all.value : page.value };
}

function Table({ v, p, columns, openMenu }: { v: Page; p: Props; columns: Column[]; openMenu: (about: About) => void }) {
	const body = useRef<HTMLTableSectionElement>(null);
	const [at, put] = useState(-1);
	const { matches, words } = p;
	const heads = { now: sorting(p), standard: p.timed ? 'running_ns' : 'self_ns' };
	const lit = (m: Method) => !!matches && matches[m.method] === 1;
	const hits = useMemo(() => v.methods.flatMap((m, i) => (lit(m) ? [i] : [])), [v, matches]);
	const most = Math.max(1, ...v.methods.map((m) => m.self_ns));
	const go = (forward: boolean) => {
		const to = nextHit(hits, at, forward);
		const row = body.current?.rows[to];
		put(to);
		row?.scrollIntoView({ block: 'nearest' });
		row?.querySelector('button')?.focus({ preventScroll: true });
	};
	return <>
		{matches && <HitBar hits={hits.length} of={v.methods.length} share={hits.reduce((n, i) => n + v.methods[i].self_ns, 0) / (v.busy_ns || 1)} what={tr('rows')} go={go} />}
		<Cards of="methods">
			<thead><tr>
				<Sorted by="name" label={tr('Method')} {...heads} />
				{columns.map((c) => <Sorted key={c.key} {...heads} by={c.key} label={c.key === 'count' ? words.head : c.title} hint={c.key === 'count' || words.unit ? words.hint : c.key === 'p95_ns' && p.transform ? tr('Unknown: {reason}', { reason: P95_RESHAPED }) : c.hint} />)}
				<th class="num">{tr('Self share')}</th>
				<th><span class="hidden">{tr('More')}</span></th>
			</tr></thead>
			<tbody ref={body}>{v.methods.map((m) => (
				<Row key={m.method} m={m} columns={columns} words={words} busy={v.busy_ns} most={most} lit={lit(m)} onFind={p.onFind} onMore={openMenu} />))}</tbody>
		</Cards>
	</>;
}

export function MethodsPanel(p: Props) {
	const columns = p.timed ? chosen(text('cols'), p.hasCpu) : UNTIMED;
	const page = useMethods(p, columns);
	const [menu, openMenu] = useState<About | null>(null);
	const filter = text('filter');
	const v = page.value;
	const badFilter = page.error instanceof Refusal && page.error.status === 400 && filter.startsWith('/');
	const limit = number('rows') ?? STEP;
	return (
		<Panel title={tr('Methods')} aside={<>{p.scope}<Filter />{p.timed && <Chooser hasCpu={p.hasCpu} words={p.words} />}
			{v && v.methods.length > 0 && <Copy text={tsvOf(v.methods, columns, p.words)} label={tr('Copy as TSV')} />}</>}>
			{p.steps}
			{badFilter && <p class="badtext" role="alert">{page.error!.message}</p>}
			{page.error && !badFilter && <Failure error={page.error} retry={page.again} />}
			{!v && page.busy && <Busy what={tr('Summing')} />}
			{v && v.total === 0 && <p class="quiet">{filter ? tr('No called method matches this name.') : tr('No calls here.')}</p>}
			{v && v.total > 0 && <div class={page.busy || badFilter ? 'stale' : ''}><Table v={v} p={p} columns={columns} openMenu={openMenu} /></div>}
			{v && v.total > 0 && <div class="row under">
				<span class="quiet">{!p.timed ? tr('{methods} of {total} methods', { methods: count(v.methods.length), total: count(v.total) }) : tr.rich('{methods} of {total} methods{filter}; shares are of {busy_ns} busy time{partial}{some}', { methods: count(v.methods.length), total: count(v.total), filter: filter && tr(' that fit'), busy_ns: duration(v.busy_ns), partial: v.partial ? tr('; incomplete: the time limit was reached') : '', some: p.transform && columns.some((c) => c.key === 'p95_ns') ? `; ${P95_RESHAPED}` : '' })}</span>
				{v.methods.length < v.total && limit < ROWS_MAX && <button class="small" onClick={() => set({ rows: Math.min(ROWS_MAX, limit * 4) })}>{tr('Show more')}</button>}
			</div>}
			{menu && <MethodMenu about={menu} close={() => openMenu(null)} />}
		</Panel>
	);
}
