// Callers and callees of a method in the fleet's merged call trees, with shares of its time.
import type { ComponentChildren } from 'preact';

import { get } from '../api/api';
import { withOverloads } from '../api/overloads';
import type { Callers, Near } from './fleetdoc';
import { methodLink, OnThread, useFleetQuery } from './fleetparts';
import { count, duration, percent } from '../i18n/format';
import { Cards } from '../ui/cards';
import { MethodName, Panel, Pending, useLoad } from '../ui/parts';
import { text } from '../ui/route';
import { tr } from '../i18n/strings/fleet';
import { several } from '../api/traces';

/** A thread is not a method: its row has no link. */
function Name({ of, shown }: { of: Near; shown: string }) {
	return of.thread ? <span title={tr('These threads call it directly')}>{tr.rich('threads {name}', { name: <b>{of.name}</b> })}</span> : <a class="mono" href={methodLink(of.name, { thread: text('thread') })}><MethodName name={shown} /></a>;
}

function Row({ of, shown, traces, what }: { of: Near; shown: string; traces: number; what: string }) {
	return (
		<tr data-near={of.name}>
			<td class="anywhere"><Name of={of} shown={shown} /></td>
			<td class="num share"><span class="bar" style={{ width: `${Math.min(100, 100 * of.share)}%` }} />{percent(of.share)}</td>
			<td class="num" title={tr('{total_ns} in all {what}', { total_ns: duration(of.total_ns), what })}>{duration(of.total_ns / traces)}</td>
			<td class="num">{count(of.calls)}</td>
			<td class="num">{count(of.in_traces)}</td>
		</tr>
	);
}

/** The remaining share: of callees, the method's self time and calls too short to be stored. */
function Rest({ label, title, ns, of }: { label: string; title: string; ns: number; of: Callers }) {
	if (ns * 1000 < of.total_ns) return null; // 0.1 %
	return <tr class="quiet"><td title={title}>{label}</td><td class="num share"><span class="bar" style={{ width: `${(100 * ns) / of.total_ns}%` }} />{percent(ns / of.total_ns)}</td><td class="num">{duration(ns / of.of_traces)}</td><td /><td /></tr>;
}

function List({ title, list, total, of, children }: { title: string; list: Near[]; total: number; of: Callers; children?: ComponentChildren }) {
	return (
		<tbody>
			<tr><th scope="rowgroup" colSpan={5}>{title}{total > list.length && <span class="quiet">{tr(', {list} of {total}', { list: count(list.length), total: count(total) })}</span>}</th></tr>
			{withOverloads(list).map((n, i) => <Row key={`${n.thread} ${n.name}`} of={list[i]} shown={n.name} traces={of.of_traces} what={tr('{of_traces} traces', { of_traces: count(of.of_traces) })} />)}{children}
		</tbody>
	);
}

function Both({ of }: { of: Callers }) {
	const callees = of.callees.reduce((n, c) => n + c.total_ns, 0);
	return <>
		<Cards>
			<thead><tr><th>{tr('Method')}</th><th class="num">{tr('Share of its time')}</th><th class="num" title={tr('Mean per counted trace')}>{tr('Per trace')}</th><th class="num">{tr('Calls')}</th><th class="num" title={tr('At least')}>{tr('In traces')}</th></tr></thead>
			<List title={tr('Called by')} list={of.callers} total={of.callers_total} of={of} />
			<List title={tr('Callees')} list={of.callees} total={of.callees_total} of={of}>
				<Rest label={tr('self time')} title={tr('Time in the method itself, without its callees')} ns={of.self_ns} of={of} />
				<Rest label={tr('other calls')} title={tr('Calls that were too short to keep, and calls not listed')} ns={of.total_ns - of.self_ns - callees} of={of} />
			</List>
		</Cards>
		<p class="quiet">{tr('{calls}, {mean} per trace over {traces}. A nested call of the same method counts with the outer one.{omitted_below_ns}', { calls: tr.many(of.calls, '{n} call', '{n} calls'), mean: duration(of.total_ns / of.of_traces), traces: several(of.of_traces, 'trace'), omitted_below_ns: of.omitted_below_ns > 0 ? tr(' Calls that took less than {omitted_below_ns} in their trace may be missing.', { omitted_below_ns: duration(of.omitted_below_ns) }) : '' })}</p>
	</>;
}

export function FleetCallers({ name }: { name: string }) {
	const fleet = useFleetQuery();
	const thread = text('thread');
	const load = useLoad(`callers ${name} ${fleet.key} ${thread}`, (signal) => get<Callers>('/api/v1/fleet/callers', { ...fleet.params, name, ...(thread && { thread }) }, signal));
	const v = load.value?.name === name ? load.value : null;
	return (
		<Panel title={tr('Callers')} id="callers" aside={<OnThread />}>
			{load.error ? <Pending of={load} what="" /> : !v ? <Pending of={{ ...load, value: null, busy: true }} what={tr('Loading its callers')} />
				: v.callers.length === 0 ? <p class="quiet">{thread ? tr('No call of it on these threads, or its calls there are too short.') : tr('The merged call trees of these traces do not contain it: its calls are too short, or the traces are not merged yet.')}</p>
					: <div class={load.busy ? 'stale' : ''}><Both of={v} /></div>}
		</Panel>
	);
}
