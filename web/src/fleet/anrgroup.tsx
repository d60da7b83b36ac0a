// One group of ANRs: its sentence, whom it hits, and the report of one of its traces, deadlock drawn.
import { get } from '../api/api';
import { Chain, Cycles } from '../anr/anr';
import type { Anr } from '../anr/anrdoc';
import { Decisions } from './decisions';
import { stateOf } from './triage';
import { KINDS, RATES, rate, shortOf, type Exemplar, type GroupDetail, type Slice } from './anrgroups';
import { Trend, useFleet } from './fleetfilter';
import { count, duration, percent, sentence, when } from '../i18n/format';
import { ended, serverText } from '../i18n/servertext';
import { Cards } from '../ui/cards';
import { ClassName, MethodName, Panel, Pending, useLoad } from '../ui/parts';
import { IssueText } from './issue';
import { link, set, text } from '../ui/route';
import { tr } from '../i18n/strings/anrs';
import { Waits } from '../anr/waitpicture';

function Slices({ title, of, all }: { title: string; of: (Slice & { traces?: number | null })[]; all: number }) {
	const rated = of.some((s) => s.traces);
	return (
		<table class="slices">
			<thead><tr><th>{title}</th><th class="num">{tr('ANRs')}</th><th class="num">{tr('Share')}</th>{rated && <th class="num">{tr('Per 1,000 traces')}</th>}</tr></thead>
			<tbody>{of.map((s) => <tr key={s.value}><td class="anywhere">{s.value || <span class="quiet">{tr('not given')}</span>}</td><td class="num">{count(s.count)}</td><td class="num">{percent(s.count / all)}</td>
				{rated && <td class="num" data-rate title={s.traces ? tr('{traces} traces with times', { traces: count(s.traces) }) : undefined}>{rate(s.count, s.traces) ?? <span class="quiet">{tr('no traces')}</span>}</td>}</tr>)}</tbody>
		</table>
	);
}

function Locks({ g }: { g: GroupDetail }) {
	if (g.cause.locks.length === 0) return null;
	return (
		<Cards>
			<thead><tr><th>{tr('Lock class')}</th><th>{tr('Waits in')}</th><th>{tr('Acquired in')}</th></tr></thead>
			<tbody>{g.cause.locks.map((l, i) => (
				<tr key={i}><td>{l.class ? <ClassName name={l.class} /> : tr('an unknown class')}</td><td><MethodName name={l.blocked_method} /></td>
					<td>{l.blocking_method ? <a href={link(`/locks?name=${encodeURIComponent(l.blocking_method)}`)}><MethodName name={l.blocking_method} /></a> : <span class="quiet">{tr('not seen')}</span>}</td></tr>))}</tbody>
		</Cards>
	);
}

function Facts({ g }: { g: GroupDetail }) {
	const { frames, binder, consumer, path } = g.cause;
	return <>
		{binder && <p>{tr.rich('It waits for {bold} in another process.', { bold: <strong><MethodName name={`${binder.interface}.${binder.method}`} /></strong> })}</p>}
		{consumer && <p>{tr.rich('{consumer} was using the CPU.', { consumer: <strong>{consumer}</strong> })}</p>}
		{path && <p>{tr('Main was in this call for {ns} of the {window_ns} before the report.', { ns: duration(path.ns), window_ns: duration(path.window_ns) })}</p>}
		{frames.length > 0 && <><h3>{tr('Identified by')}</h3><ol class="stack frames">{frames.map((f, i) => <li key={i}><MethodName name={f} /></li>)}</ol></>}
		<Locks g={g} />
	</>;
}

function Report({ id }: { id: string }) {
	const load = useLoad(`anr of ${id}`, () => get<{ documents: { content: Anr }[] }>(`/api/v1/traces/${id}/documents`, { kind: 'anr' }));
	const doc = load.value?.documents[0]?.content;
	const p = doc?.processes[doc.blamed ?? 0];
	return (
		<section id="anr" aria-label={tr('The report of one trace')}>
			{!load.value && <Pending of={load} what={tr('Loading the report')} />}
			{load.value && !p && <p class="quiet">{tr('This trace has no thread dump: the cause is taken from its calls.')}</p>}
			{p && p.chain.length > 0 && <Chain p={p} />}
			{p && <Waits p={p} />}
			{p && <Cycles p={p} />}
		</section>
	);
}

function Exemplars({ list, shown }: { list: Exemplar[]; shown?: string }) {
	return (
		<Cards>
			<thead><tr><th>{tr('Trace')}</th><th>{tr('When')}</th><th>{tr('Version')}</th><th>{tr('Device')}</th><th>Android</th><th>{tr('Verdict')}</th><th><span class="hidden">{tr('Show')}</span></th></tr></thead>
			<tbody>{list.map((e) => (
				<tr key={e.trace} data-trace={e.trace} aria-current={e.trace === shown ? 'true' : undefined}>
					<td class="mono nowrap">{e.exists ? <a href={link(`/traces/${e.trace}`)} title={e.trace}>{shortOf(e.trace)}</a> : <span class="quiet" title={tr('The trace was deleted; it remains counted')}>{tr('{trace} (deleted)', { trace: shortOf(e.trace) })}</span>}</td>
					<td class="when">{when(e.recorded_ms)}</td><td>{e.version_name}</td><td>{e.device}</td><td>{e.os}</td><td class="anywhere long">{sentence(serverText(e.verdict))}</td>
					<td>{e.exists && e.trace !== shown && <button class="small" onClick={() => set({ trace: e.trace }, true)} aria-label={tr('Show the report of {trace}', { trace: shortOf(e.trace) })}>{tr('Show')}</button>}</td>
				</tr>))}</tbody>
		</Cards>
	);
}

export function AnrGroup({ id }: { id: string }) {
	const fleet = useFleet();
	const load = useLoad(`anr group ${id} ${fleet.key}`, () => get<GroupDetail>(`/api/v1/anr/groups/${id}`, fleet.params));
	const g = load.value;
	if (!g || load.error) return <Panel title={tr('ANR group')}><Pending of={load} what={tr('Loading the group')} /></Panel>;
	const there = g.exemplars.filter((e) => e.exists).map((e) => e.trace);
	const shown = there.includes(text('trace')) ? text('trace') : there[0];
	return <>
		<Panel title={g.name || serverText(g.title)} id="group" aside={<span class={`state ${g.kind === 'deadlock' ? 'failed' : ''}`}>{KINDS[g.kind] ?? g.kind}</span>}>
			<p class="verdict">{ended(sentence(serverText(g.verdict)))}</p>
			<p><strong>{stateOf(g)}</strong>{g.owner && <span class="quiet"> · {g.owner}</span>}</p>
			<Decisions key={id + g.owner + g.note} items={[{ ...g, kind: 'anr', id }]} changed={load.again} noted />
			<dl class="facts">
				<div><dt>{tr('ANRs')}</dt><dd>{count(g.count)}</dd></div><div><dt>{tr('Users')}</dt><dd>{g.users ? count(g.users) : tr('not given')}</dd></div>
				<div><dt>{tr('Versions')}</dt><dd>{count(g.versions)}</dd></div><div><dt>{tr('Devices')}</dt><dd>{count(g.devices)}</dd></div>
				<div><dt>{tr('First seen')}</dt><dd>{when(g.first_ms)}</dd></div><div><dt>{tr('Last seen')}</dt><dd>{when(g.last_ms)}</dd></div>
				<div><dt>{tr('{days} days', { days: fleet.days })}</dt><dd><Trend trend={g.trend} days={fleet.days} name={tr('ANRs of this group')} wide={240} high={32} /></dd></div>
			</dl>
			{g.name && <p class="quiet">{serverText(g.title)}</p>}
			<Facts g={g} />
			<IssueText path={`/api/v1/anr/groups/${id}`} />
		</Panel>
		<Panel title={tr('Affected versions and devices')} id="who"><div class="three"><Slices title={tr('Version')} of={g.by_version} all={g.count} /><Slices title={tr('Device')} of={g.by_device} all={g.count} /><Slices title="Android" of={g.by_os} all={g.count} /></div>
			{g.by_version.some((s) => s.traces) && <p class="quiet">{tr('Rates are reports per 1,000 traces with times of the version.')} {RATES}</p>}</Panel>
		<Panel title={tr('Traces')} id="exemplars"><Exemplars list={g.exemplars} shown={shown} /></Panel>
		{shown && <Panel title={tr('The report of {shown}', { shown: shortOf(shown) })}><Report key={shown} id={shown} /></Panel>}
	</>;
}
