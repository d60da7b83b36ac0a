// One group of ANRs: its sentence, whom it hits, and the report of one of its traces, deadlock drawn.
import { get } from './api';
import { Chain, Cycles } from './anr';
import type { Anr } from './anrdoc';
import { KINDS, type Exemplar, type GroupDetail, type Slice } from './anrgroups';
import { Trend, useFleet } from './fleetfilter';
import { count, duration, percent, when } from './format';
import { MethodName, Panel, Pending, useLoad } from './parts';
import { IssueText } from './issue';
import { link, set, text } from './route';
import { Waits } from './waitpicture';

function Slices({ title, of, all }: { title: string; of: Slice[]; all: number }) {
	return (
		<table class="slices">
			<thead><tr><th scope="col">{title}</th><th scope="col" class="num">ANRs</th><th scope="col" class="num">Share</th></tr></thead>
			<tbody>{of.map((s) => <tr key={s.value}><td class="anywhere">{s.value || <span class="quiet">not said</span>}</td><td class="num">{count(s.count)}</td><td class="num">{percent(s.count / all)}</td></tr>)}</tbody>
		</table>
	);
}

function Locks({ g }: { g: GroupDetail }) {
	if (g.cause.locks.length === 0) return null;
	return (
		<div class="scroll"><table>
			<thead><tr><th scope="col">Lock of</th><th scope="col">Wanted in</th><th scope="col">Taken in</th></tr></thead>
			<tbody>{g.cause.locks.map((l, i) => (
				<tr key={i}><td><MethodName name={l.class || 'a class that is not known'} /></td><td><MethodName name={l.wanted_in} /></td>
					<td>{l.taken_in ? <a href={link(`/locks?name=${encodeURIComponent(l.taken_in)}`)}><MethodName name={l.taken_in} /></a> : <span class="quiet">not seen</span>}</td></tr>))}</tbody>
		</table></div>
	);
}

function Told({ g }: { g: GroupDetail }) {
	const { frames, binder, consumer, path } = g.cause;
	return <>
		{binder && <p>It waits for <strong><MethodName name={`${binder.interface}.${binder.method}`} /></strong> in another process.</p>}
		{consumer && <p><strong>{consumer}</strong> had the processors.</p>}
		{path && <p>For {duration(path.ns)} of the {duration(path.window_ns)} before the report, main was in there.</p>}
		{frames.length > 0 && <><h3>Told by</h3><ol class="stack frames">{frames.map((f, i) => <li key={i}><MethodName name={f} /></li>)}</ol></>}
		<Locks g={g} />
	</>;
}

function Report({ id }: { id: string }) {
	const load = useLoad(`anr of ${id}`, () => get<{ documents: { content: Anr }[] }>(`/api/v1/traces/${id}/documents`, { kind: 'anr' }));
	const doc = load.value?.documents[0]?.content;
	const p = doc?.processes[doc.blamed ?? 0];
	return (
		<section id="anr" aria-label="The report of one trace">
			{!load.value && <Pending of={load} what="Loading the report" />}
			{load.value && !p && <p class="quiet">This trace has no report of threads: its calls tell the cause.</p>}
			{p && p.chain.length > 0 && <Chain p={p} />}
			{p && <Waits p={p} />}
			{p && <Cycles p={p} />}
		</section>
	);
}

function Exemplars({ list, shown }: { list: Exemplar[]; shown?: string }) {
	return (
		<div class="scroll"><table>
			<thead><tr><th scope="col">Trace</th><th scope="col">When</th><th scope="col">Version</th><th scope="col">Device</th><th scope="col">Android</th><th scope="col">Verdict</th><th scope="col"><span class="hidden">Show</span></th></tr></thead>
			<tbody>{list.map((e) => (
				<tr key={e.trace} data-trace={e.trace} aria-current={e.trace === shown ? 'true' : undefined}>
					<td class="mono nowrap">{e.there ? <a href={link(`/traces/${e.trace}`)}>{e.trace.slice(-8)}</a> : <span class="quiet" title="The trace is deleted; it stays counted">{e.trace.slice(-8)} (gone)</span>}</td>
					<td class="nowrap">{when(e.created_ms)}</td><td>{e.version_name}</td><td>{e.device}</td><td>{e.os}</td><td class="anywhere">{e.verdict}</td>
					<td>{e.there && e.trace !== shown && <button class="small" onClick={() => set({ trace: e.trace }, true)} aria-label={`Show the report of ${e.trace.slice(-8)}`}>Show</button>}</td>
				</tr>))}</tbody>
		</table></div>
	);
}

export function AnrGroup({ id }: { id: string }) {
	const fleet = useFleet();
	const load = useLoad(`anr group ${id} ${fleet.key}`, () => get<GroupDetail>(`/api/v1/anr/groups/${id}`, fleet.params));
	const g = load.value;
	if (!g || load.error) return <Panel title="ANR group"><Pending of={load} what="Loading the group" /></Panel>;
	const there = g.exemplars.filter((e) => e.there).map((e) => e.trace);
	const shown = there.includes(text('trace')) ? text('trace') : there[0];
	return <>
		<Panel title={g.name || g.title} id="group" aside={<span class={`state ${g.kind === 'deadlock' ? 'failed' : ''}`}>{KINDS[g.kind] ?? g.kind}</span>}>
			<p class="verdict">{g.verdict}</p>
			<dl class="facts">
				<div><dt>ANRs</dt><dd>{count(g.count)}</dd></div><div><dt>Users</dt><dd>{g.users ? count(g.users) : 'not said'}</dd></div>
				<div><dt>Versions</dt><dd>{count(g.versions)}</dd></div><div><dt>Devices</dt><dd>{count(g.devices)}</dd></div>
				<div><dt>First seen</dt><dd>{when(g.first_ms)}</dd></div><div><dt>Last seen</dt><dd>{when(g.last_ms)}</dd></div>
				<div><dt>{fleet.days} days</dt><dd><Trend trend={g.trend} days={fleet.days} name="ANRs of this group" wide={240} high={32} /></dd></div>
			</dl>
			{g.name && <p class="quiet">{g.title}</p>}
			<Told g={g} />
			<IssueText path={`/api/v1/anr/groups/${id}`} />
		</Panel>
		<Panel title="Who has it" id="who"><div class="three"><Slices title="Version" of={g.by_version} all={g.count} /><Slices title="Device" of={g.by_device} all={g.count} /><Slices title="Android" of={g.by_os} all={g.count} /></div></Panel>
		<Panel title="Traces that show it" id="exemplars"><Exemplars list={g.exemplars} shown={shown} /></Panel>
		{shown && <Panel title={`The report of ${shown.slice(-8)}`}><Report key={shown} id={shown} /></Panel>}
	</>;
}
