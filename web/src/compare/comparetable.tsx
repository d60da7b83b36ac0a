// The methods of two sides as a table: ordered and chosen by the server, numbers of one trace.
import { Refusal, type ComparedMethod, type ComparedMethods } from '../api/api';
import { manage } from '../api/manage';
import { change, relative, type Pair } from './comparedoc';
import { count, duration, withoutParameters } from '../i18n/format';
import { filterOf } from '../trace/panels/methodcolumns';
import { overVersions } from '../trace/parts/methodmenu';
import { Cards } from '../ui/cards';
import { Filter } from '../ui/filter';
import { Busy, Choice, Copy, Failure, MethodName, Panel, Sorted, useLoad } from '../ui/parts';
import { number, set, text } from '../ui/route';
import { tr } from '../i18n/strings/compare';

const STEP = 25;
const ROWS_MAX = 10000;
const ONLY: [string, string][] = [['all', tr('All')], ['slower', tr('Slower')], ['faster', tr('Faster')], ['new', tr('New')], ['removed', tr('Removed')]];

export interface Sides { params: Record<string, string>; traces: { a: number; b: number } }

type Number_ = 'self_ns' | 'total_ns' | 'count';

const pair = (m: ComparedMethod, what: Number_, of: Sides['traces']): Pair => ({ a: m.a[what] / of.a, b: m.b[what] / of.b });
const calls = (n: number) => (Number.isInteger(n) ? count(n) : n.toFixed(1));

function Row({ m, of, most }: { m: ComparedMethod; of: Sides['traces']; most: number }) {
	const [self, total, n] = [pair(m, 'self_ns', of), pair(m, 'total_ns', of), pair(m, 'count', of)];
	const share = (x: { traces: number }, all: number) => (all > 1 ? <span class="quiet" title={tr('Called in {traces} of {all} traces', { traces: x.traces, all })}>{' '}{tr('in {traces}/{all}', { traces: x.traces, all })}</span> : null);
	return (
		<tr>
			<td class="mono name"><a href={overVersions(withoutParameters(m.name))} title={tr('Its times in all traces, by version')}><MethodName name={m.name} /></a>{m.a.count === 0 && <span class="state">{tr('new')}</span>}{m.b.count === 0 && <span class="state">{tr('removed')}</span>}</td>
			<td class="num">{duration(self.a)}</td><td class="num">{duration(self.b)}</td>
			<td class="num change"><span class={`bar ${self.b < self.a ? 'less' : ''}`} style={{ width: `${(100 * Math.abs(self.b - self.a)) / most}%` }} aria-hidden="true" /><span>{change(self)}</span></td>
			<td class="num">{relative(self)}</td>
			<td class="num">{duration(total.a)}</td><td class="num">{duration(total.b)}</td><td class="num">{change(total)}</td>
			<td class="num">{calls(n.a)}{share(m.a, of.a)}</td><td class="num">{calls(n.b)}{share(m.b, of.b)}</td><td class="num">{change(n, calls)}</td>
		</tr>
	);
}

/** Plain numbers, in nanoseconds and calls a trace, with tabs between. */
function tsv(v: ComparedMethods, of: Sides['traces']): string {
	const keys: Number_[] = ['self_ns', 'total_ns', 'count'];
	return [['method', ...keys.flatMap((k) => [`a_${k}`, `b_${k}`])].join('\t'),
		...v.methods.map((m) => [m.name, ...keys.flatMap((k) => Object.values(pair(m, k, of)))].join('\t'))].join('\n');
}

function Table({ v, of, sort, order }: { v: ComparedMethods; of: Sides['traces']; sort: string; order: string }) {
	const heads = { now: { sort, order }, standard: 'self_change' };
	const most = Math.max(1, ...v.methods.map((m) => Math.abs(pair(m, 'self_ns', of).b - pair(m, 'self_ns', of).a)));
	return (
		<Cards of="methods compared">
			<thead><tr><Sorted by="name" label={tr('Method')} {...heads} /><Sorted by="self_a" label={tr('Self A')} {...heads} /><Sorted by="self_b" label={tr('Self B')} {...heads} /><Sorted by="self_change" label={tr('Self change')} {...heads} />
				<th class="num">{tr('Of A')}</th><Sorted by="total_a" label={tr('Total A')} {...heads} /><Sorted by="total_b" label={tr('Total B')} {...heads} /><Sorted by="total_change" label={tr('Total change')} {...heads} />
				<Sorted by="count_a" label={tr('Calls A')} {...heads} /><Sorted by="count_b" label={tr('Calls B')} {...heads} /><Sorted by="count_change" label={tr('Calls change')} {...heads} /></tr></thead>
			<tbody>{v.methods.map((m) => <Row key={m.method} m={m} of={of} most={most} />)}</tbody>
		</Cards>
	);
}

export function CompareTable({ sides }: { sides: Sides }) {
	const only = text('only') || 'all';
	const filter = text('filter');
	const sort = text('sort') || 'self_change';
	const order = text('order') || (sort === 'name' ? 'asc' : 'desc');
	const limit = Math.min(ROWS_MAX, Math.max(1, number('rows') ?? STEP));
	const params = { ...sides.params, sort, order, only, ...filterOf(filter), limit };
	const page = useLoad(JSON.stringify(params), (s) => manage.compareMethods(params, s));
	const v = page.value;
	const badFilter = page.error instanceof Refusal && page.error.status === 400 && filter.startsWith('/');
	const options = ONLY.map(([k, t]): [string, string] => [k, v && (k === 'new' || k === 'removed') ? `${t} (${count(v[k])})` : t]);
	return (
		<Panel title={tr('Methods')} aside={<><Choice label={tr('Show')} value={only} options={options} onPick={(w) => set({ only: w === 'all' ? null : w, rows: null }, true)} /><Filter />
			{v && v.methods.length > 0 && <Copy text={tsv(v, sides.traces)} label={tr('Copy as TSV')} />}</>}>
			{badFilter && <p class="badtext" role="alert">{page.error!.message}</p>}
			{page.error && !badFilter && <Failure error={page.error} retry={page.again} />}
			{!v && page.busy && <Busy what={tr('Summing both sides')} retry={page.again} />}
			{v && v.total === 0 && <p class="quiet">{tr('No methods match.')}</p>}
			{v && v.total > 0 && <div class={page.busy || badFilter ? 'stale' : ''}><Table v={v} of={sides.traces} sort={sort} order={order} /></div>}
			{v && v.total > 0 && <div class="row under"><span class="quiet">{tr('{methods} of {total} methods', { methods: count(v.methods.length), total: count(v.total) })}</span>
				{v.methods.length < v.total && limit < ROWS_MAX && <button class="small" onClick={() => set({ rows: Math.min(ROWS_MAX, limit * 4) })}>{tr('Show more')}</button>}</div>}
		</Panel>
	);
}
