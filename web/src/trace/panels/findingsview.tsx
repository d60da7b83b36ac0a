// Findings, frames and the start of a trace: the same in its workbench and where detectors are tried.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Thread } from '../../api/api';
import { cuts, inOrder, ofRule, type Cause, type Finding, type Findings, type FrameFound, type Phase, type RuleSum } from './findings';
import { COMMA, count, duration, percent } from '../../i18n/format';
import { serverText } from '../../i18n/servertext';
import { Cards } from '../../ui/cards';
import { MethodName } from '../../ui/parts';
import { tr } from '../../i18n/strings/findings';

const ROWS = 10;

/** A stretch of a thread that the timeline can show. */
export interface Spot { tid: number | null; start_ns: number; dur_ns: number }
type Show = (s: Spot) => void;

function At({ s, from, show }: { s: Spot; from: number; show: Show }) {
	return <button class="small" title={tr('Show this in the timeline')} onClick={() => show(s)}>{duration(s.start_ns - from)}</button>;
}

function What({ f }: { f: Finding }) {
	if (f.note) return <><span class="mono">{f.note.text || tr('a wait')}</span>{f.call && <span class="quiet">{' '}{tr.rich('in {methodname}', { methodname: <MethodName name={f.call.name} /> })}</span>}</>;
	return <span class="mono">{f.call ? <MethodName name={f.call.name} /> : ''}</span>;
}

function List({ r, f, from, show, named }: { r: RuleSum; f: Findings; from: number; show: Show; named: (tid: number | null) => string }) {
	const [rows, more] = useState(ROWS);
	const list = ofRule(f, r.id);
	const others = list.some((x) => x.tid !== f.main_tid);
	const cpu = list.some((x) => x.cpu_ns !== null);
	return (
		<div class="found">
			<p>{serverText(r.message)}</p>
			<Cards>
				<thead><tr><th class="num">{tr('At')}</th><th class="num">{tr('Wall')}</th>{cpu && <th class="num">CPU</th>}{others && <th>{tr('Thread')}</th>}<th>{tr('Call or event')}</th><th>{tr('Called by')}</th></tr></thead>
				<tbody>{list.slice(0, rows).map((x, i) => (
					<tr key={i} data-finding={r.id}>
						<td class="num"><At s={{ tid: x.tid, start_ns: x.start_ns, dur_ns: x.wall_ns }} from={from} show={show} /></td>
						<td class="num">{duration(x.wall_ns)}</td>{cpu && <td class="num">{x.cpu_ns === null ? '' : duration(x.cpu_ns)}</td>}
						{others && <td>{named(x.tid)}</td>}
						<td class="name"><What f={x} /></td><td class="mono">{x.caller && <MethodName name={x.caller.name} />}</td>
					</tr>))}</tbody>
			</Cards>
			<p class="row">
				{list.length > rows && <button class="small" onClick={() => more(rows * 4)}>{tr('Show more')}</button>}
				{r.found > r.listed && <span class="quiet">{tr('The longest {listed} of {found}.', { listed: count(r.listed), found: count(r.found) })}</span>}
			</p>
		</div>
	);
}

function Row({ r, open, toggle, children }: { r: RuleSum; open: boolean; toggle: () => void; children: ComponentChildren }) {
	return <>
		<tr data-rule={r.id} aria-current={open ? 'true' : undefined}>
			<td>{r.found > 0 ? <button class="plain" aria-expanded={open} onClick={toggle}>{serverText(r.title)}</button> : serverText(r.title)}{r.problem && <p class="loss">{serverText(r.problem)}</p>}</td>
			<td class={`num ${r.found > 0 && r.severity !== 'info' ? r.severity === 'error' ? 'loss' : 'warnink' : ''}`}>{count(r.found)}</td>
			<td class="num">{r.found > 0 ? duration(r.found_ns) : ''}</td><td class="num">{r.max_ns > 0 ? duration(r.max_ns) : ''}</td>
			<td class="num">{duration(r.threshold_ns)}</td><td class="num">{count(r.calls)}</td><td class="num">{r.calls > 0 ? duration(r.total_ns) : ''}</td>
		</tr>
		{open && <tr class="more"><td colSpan={7}>{children}</td></tr>}
	</>;
}

function Rules({ f, from, show, named }: { f: Findings; from: number; show: Show; named: (tid: number | null) => string }) {
	const all = inOrder(f.rules);
	const rules = all.filter((r) => r.calls > 0 || r.problem);
	const silent = all.filter((r) => !rules.includes(r));
	const [open, toggle] = useState<string | null>(rules[0]?.found ? rules[0].id : null);
	if (all.length === 0) return <p class="quiet">{tr('No detector is enabled.')}</p>;
	return <>
		{rules.length > 0 && <Cards>
			<thead><tr><th>{tr('Detector')}</th><th class="num">{tr('Findings')}</th><th class="num">{tr('Time in findings')}</th><th class="num">{tr('Longest')}</th>
				<th class="num" title={tr('Shorter ones are not counted')}>{tr('Threshold')}</th><th class="num">{tr('All calls')}</th><th class="num">{tr('Time in all calls')}</th></tr></thead>
			<tbody>{rules.map((r) => <Row key={r.id} r={r} open={r.id === open && r.found > 0} toggle={() => toggle(r.id === open ? null : r.id)}><List r={r} f={f} from={from} show={show} named={named} /></Row>)}</tbody>
		</Cards>}
		{silent.length > 0 && <p class="quiet">{tr('No findings for: {silent}.', { silent: silent.map((r) => serverText(r.title)).join(COMMA) })}</p>}
	</>;
}

function Why({ c, show, tid }: { c: Cause | null; show: Show; tid: number | null }) {
	if (!c) return <span class="quiet">{tr('not analysed')}</span>;
	return <>{serverText(c.message)} {c.rule && <button class="small" onClick={() => show({ tid, start_ns: c.start_ns, dur_ns: c.ns })}>{tr('Show the call')}</button>}</>;
}

function framesText(f: Findings['frames']): string {
	if (f.from === null && f.messages === 0) return tr("The trace has no frames: neither Choreographer calls nor a display timeline.");
	const frames = f.from === null ? tr('No frames in this trace') : tr('{frames}{from}: {slow} slow (over {slow_ns}), {frozen} of them frozen (over {frozen_ns})', { frames: tr.many(f.total, '{n} frame', '{n} frames'), from: f.from === 'notes' ? tr(', from the display timeline') : '', slow: count(f.slow), slow_ns: duration(f.slow_ns), frozen: count(f.frozen), frozen_ns: duration(f.frozen_ns) });
	return `${frames}${f.messages ? tr.many(f.messages, '; {n} message during which no frame could be drawn', '; {n} messages during which no frame could be drawn') : ''}.`;
}

function Frames({ f, from, show }: { f: Findings; from: number; show: Show }) {
	const [rows, more] = useState(ROWS);
	const list = f.frames.list;
	const kind = (x: FrameFound) => (x.what === 'message' ? tr('Message') : x.frozen ? tr('Frozen') : tr('Slow'));
	return <>
		<h3>{tr('Frames')}</h3>
		<p class={f.frames.frozen + f.frames.messages > 0 ? 'loss' : 'quiet'}>{framesText(f.frames)}</p>
		{list.length > 0 && <Cards>
			<thead><tr><th class="num">{tr('At')}</th><th class="num">{tr('Duration')}</th><th>{tr('Frame')}</th><th>{tr('Cause')}</th></tr></thead>
			<tbody>{list.slice(0, rows).map((x, i) => (
				<tr key={i} data-frame={x.frozen ? 'frozen' : 'slow'}>
					<td class="num"><At s={x} from={from} show={show} /></td><td class="num">{duration(x.dur_ns)}</td>
					<td class="nowrap">{kind(x)}</td><td class="cause"><Why c={x.cause} show={show} tid={x.tid} /></td>
				</tr>))}</tbody>
		</Cards>}
		{list.length > rows && <p><button class="small" onClick={() => more(rows * 4)}>{tr('Show more frames')}</button></p>}
	</>;
}

/** Position of a phase within the app start. */
function Bar({ p, start }: { p: Phase; start: NonNullable<Findings['start']> }) {
	const x = ((p.start_ns - start.start_ns) / Math.max(1, start.dur_ns)) * 100;
	const w = Math.max(0.5, (p.dur_ns / Math.max(1, start.dur_ns)) * 100);
	return <svg class="phase" aria-hidden="true" viewBox="0 0 100 10" preserveAspectRatio="none"><rect x={Math.min(x, 99.5)} y="1" width={w} height="8" /></svg>;
}

function Start({ start, from, show }: { start: NonNullable<Findings['start']>; from: number; show: Show }) {
	return <>
		<h3>{start.kind === 'process' ? tr('Start of the app') : tr('Start of an activity')}</h3>
		<p class="quiet">{tr('{dur_ns} from {title} to the end of {title2}, according to the calls.', { dur_ns: duration(start.dur_ns), title: serverText(start.phases[0].title), title2: serverText(start.phases[start.phases.length - 1].title) })}</p>
		<Cards>
			<thead><tr><th class="num">{tr('At')}</th><th class="num">{tr('Duration')}</th><th class="num">{tr('Share')}</th><th>{tr('Phase')}</th><th class="when"><span class="hidden">{tr('When')}</span></th><th>{tr('Dominated by')}</th></tr></thead>
			<tbody>{start.phases.map((p) => (
				<tr key={p.id} data-phase={p.id}>
					<td class="num"><At s={p} from={from} show={show} /></td><td class="num">{duration(p.dur_ns)}</td><td class="num">{percent(p.dur_ns / Math.max(1, start.dur_ns))}</td>
					<td class="nowrap name">{serverText(p.title)}</td><td class="when"><Bar p={p} start={start} /></td><td class="cause"><Why c={p.cause} show={show} tid={p.tid} /></td>
				</tr>))}</tbody>
		</Cards>
	</>;
}

/** What keeps findings from being all there is. */
function Limits({ f, threads }: { f: Findings; threads: Thread[] }) {
	const main = threads.find((t) => t.tid === f.main_tid);
	return <>
		{main && main.source !== 'calls' && <p class="notice warn" role="status">{tr('The calls of the main thread are {source}.', { source: main.source === 'samples' ? tr('samples{interval_ns}: short calls may be missing, and durations are only as precise as the interval', { interval_ns: main.interval_ns > 0 ? tr(', {interval_ns} apart', { interval_ns: duration(main.interval_ns) }) : '' }) : tr('counts: their lengths are not times') })}</p>}
		{cuts(f).map((why) => <p key={why} class="notice warn" role="status">{why}</p>)}
		{f.main_tid === null && <p class="notice warn" role="status">{tr('The trace does not name its main thread, so detectors for the main thread find nothing. Send the list of threads with the trace (threads.txt of the recording).')}</p>}
		{f.unnamed > 0 && <p class="notice warn" role="status">{tr('{unnamed} of {methods} methods have no name, and detectors match names. Send the mapping of the build.', { unnamed: count(f.unnamed), methods: count(f.methods) })}</p>}
	</>;
}

/** Times are shown from `from` on. */
export function FindingsView({ f, from, show, threads }: { f: Findings; from: number; show: Show; threads: Thread[] }) {
	const named = (tid: number | null) => (tid === null ? '' : threads.find((t) => t.tid === tid)?.name || tr('thread {tid}', { tid }));
	return (
		<div class="findings">
			<Limits f={f} threads={threads} />
			<Rules f={f} from={from} show={show} named={named} />
			<Frames f={f} from={from} show={show} />
			{f.start && <Start start={f.start} from={from} show={show} />}
		</div>
	);
}
