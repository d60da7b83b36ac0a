// Methods of two sides of the fleet: means per trace, confidence intervals, and on which side they exist.
import type { ComponentChildren } from 'preact';
import { change, relative } from './comparedoc';
import { count, duration, percent, signed, withoutParameters } from '../i18n/format';
import { Cards } from '../ui/cards';
import { matching } from '../ui/matching';
import { Filter } from '../ui/filter';
import { narrow } from '../ui/narrow';
import { Choice, Copy, MethodName, Panel, Sorted } from '../ui/parts';
import { number, set, text } from '../ui/route';
import { tr } from '../i18n/strings/versus';
import { isSingleTrace, reportedIn, sorted, type Key, type Mean, type Method, type Reported, type Versus } from './versusdoc';
import { ReportedIn } from './versusnumbers';

const [STEP, FEW] = [25, 5]; // rows at first; on a phone, where a row is a block
export const METHODS_MAX = 1000; // per response
export const ONLY: [string, string][] = [['all', tr('All')], ['slower', tr('Slower')], ['faster', tr('Faster')], ['new', tr('New')], ['removed', tr('Removed')], ['significant', tr('Significant')]];
const COLUMNS: [Key, string][] = [['name', tr('Method')], ['self_a', tr('Self A')], ['self_b', tr('Self B')], ['self_change', tr('Self change')], ['total_a', tr('Total A')], ['total_b', tr('Total B')], ['total_change', tr('Total change')],
	['calls_a', tr('Calls A')], ['calls_b', tr('Calls B')], ['calls_change', tr('Calls change')], ['share_a', tr('In A')], ['share_b', tr('In B')]];

const calls = (n: number) => (n >= 100 || Math.abs(n - Math.round(n)) < 0.005 ? count(Math.round(n)) : n.toFixed(n < 1 ? 2 : 1));

function margin({ change: c }: Mean, show: (v: number) => string): string {
	return c.high === null || c.value === null || c.high === c.value ? '' : `± ${show(c.high - c.value)}`;
}

const STANDARD = 'self_change';

function useOrder(): { key: Key; down: boolean } {
	const [sort, order] = [text('sort'), text('order')];
	const key = COLUMNS.find(([k]) => k === sort)?.[0] ?? STANDARD;
	return { key, down: order ? order === 'desc' : key !== 'name' };
}

/** The change in the one scenario that has it; '' if it is new there. */
const within = ({ significant, scenario, scenario_self_ns: s }: Method): string => (significant && s?.a ? tr('{change} in {scenario}', { change: signed(s.b / s.a - 1), scenario: scenario || tr('no scenario') }) : '');

function Changed({ m, show, most, open, inside }: { m: Mean; show: (v: number) => string; most?: number; open?: Reported[]; inside?: string }) {
	const off = margin(m, show);
	return (
		<td class="num change">
			{most !== undefined && <span class={`bar ${m.b < m.a ? 'less' : ''}`} style={{ width: `${(100 * Math.abs(m.b - m.a)) / most}%` }} aria-hidden="true" />}
			<span>{change(m, show)}{off && <span class="within"> {off}</span>}</span>
			{open?.length ? <div class="within"><ReportedIn of={open} /></div> : inside && <div class="within quiet">{inside}</div>}
		</td>
	);
}

type Detail = (name: string, descriptor: string) => ComponentChildren;

/** The name that distinguishes it from other overloads. */
const nameOf = (m: Method) => m.shown ?? m.name;

function Row({ m, most, judged, open: reported, detail }: { m: Method; most: number; judged: boolean; open: Reported[]; detail: Detail }) {
	const name = nameOf(m);
	const open = text('method') === name;
	return <>
		<tr data-method={m.name}>
			<td class="mono name"><button class="plain" aria-expanded={open} onClick={() => set({ method: open ? null : name }, true)}><MethodName name={name} /></button>
				{m.state !== 'both' && <span class="state">{m.state === 'new' ? tr('new') : tr('removed')}</span>}</td>
			<td class="num">{duration(m.self_ns.a)}</td><td class="num">{duration(m.self_ns.b)}</td><Changed m={m.self_ns} show={duration} most={most} open={reported} inside={within(m) || (judged && !m.significant && m.self_ns.a !== m.self_ns.b ? tr('may be chance') : '')} />
			<td class="num">{duration(m.total_ns.a)}</td><td class="num">{duration(m.total_ns.b)}</td><Changed m={m.total_ns} show={duration} />
			<td class="num">{calls(m.calls.a)}</td><td class="num">{calls(m.calls.b)}</td><Changed m={m.calls} show={calls} />
			<td class="num">{percent(m.a_share)}</td><td class="num">{percent(m.b_share)}</td>
		</tr>
		{open && <tr class="more"><td colSpan={COLUMNS.length}>{detail(m.name, m.descriptor)}</td></tr>}
	</>;
}

/** Plain numbers, in nanoseconds, calls and shares, with tabs between. */
function tsv(list: Method[]): string {
	const head = ['method', 'a_self_ns', 'b_self_ns', 'a_total_ns', 'b_total_ns', 'a_calls', 'b_calls', 'a_share', 'b_share', 'relative', 'significant'];
	return [head.join('\t'), ...list.map((m) => [nameOf(m), m.self_ns.a, m.self_ns.b, m.total_ns.a, m.total_ns.b, m.calls.a, m.calls.b, m.a_share, m.b_share, relative(m.self_ns), m.significant].join('\t'))].join('\n');
}

/** The filtered methods of the server, in the selected order. */
function useShown(v: Versus): Method[] {
	const { key, down } = useOrder();
	const fit = matching(v.methods.map(nameOf), text('filter'));
	return sorted(fit ? v.methods.filter((_, i) => fit[i]) : v.methods, key, down);
}

export function VersusTable({ v, busy, detail }: { v: Versus; busy: boolean; detail: Detail }) {
	const only = ONLY.some(([k]) => k === text('only')) ? text('only') : 'all';
	const rows = Math.max(1, number('rows') ?? (narrow.value ? FEW : STEP));
	const list = useShown(v);
	const { key, down } = useOrder();
	const heads = { now: { sort: key, order: down ? 'desc' : 'asc' }, standard: STANDARD };
	const shown = list.slice(0, rows);
	const most = Math.max(1, ...shown.map((m) => Math.abs(m.self_ns.b - m.self_ns.a)));
	const method = text('method');
	const there = v.counts[only] ?? v.methods.length;
	return (
		<Panel title={tr('Methods')} id="methods" aside={<><Choice label={tr('Show')} value={only} options={ONLY.map(([k, t]): [string, string] => [k, `${t} (${count(v.counts[k] ?? 0)})`])} onPick={(w) => set({ only: w === 'all' ? null : w, rows: null }, true)} />
			<Filter />{list.length > 0 && <Copy text={tsv(list)} label={tr('Copy as TSV')} />}</>}>
			{method && !shown.some((m) => nameOf(m) === method) && <section class="asked" aria-label={tr('One method')}>
				<div class="row"><h3 class="anywhere"><MethodName name={method} /></h3><span class="grow" /><button class="small" onClick={() => set({ method: null }, true)}>{tr('Close')}</button></div>
				{detail(withoutParameters(method), v.methods.find((m) => nameOf(m) === method)?.descriptor ?? '')}</section>}
			{list.length === 0 && <p class="quiet">{tr('No methods match.')}</p>}
			{list.length > 0 && <Cards of="methods compared" stale={busy}>
				<thead><tr>{COLUMNS.map(([k, label]) => <Sorted key={k} by={k} label={label} hint={k.endsWith('change') ? tr('Size of the change, in either direction') : undefined} {...heads} />)}</tr></thead>
				<tbody>{shown.map((m) => <Row key={nameOf(m)} m={m} most={most} judged={!isSingleTrace(v)} open={reportedIn(v, m.name, m.descriptor)} detail={detail} />)}</tbody>
			</Cards>}
			<div class="row under"><span class="quiet">{tr.rich('{shown} of {list} methods{methods}{v}', { shown: count(shown.length), list: count(list.length), methods: there > v.methods.length && tr(' of the {methods} whose self time changed most, of {there}', { methods: count(v.methods.length), there: count(there) }), v: isSingleTrace(v) ? '.' : tr('; means per trace. At most 1 in 20 of the changes not marked as chance is due to chance.') })}</span>
				{list.length > rows && <button class="small" onClick={() => set({ rows: rows * 4 })}>{tr('Show more')}</button>}</div>
		</Panel>
	);
}
