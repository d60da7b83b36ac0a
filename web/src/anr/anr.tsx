// Why an application did not respond: the verdict, who blocks whom, deadlocks, and all threads.
import { useMemo } from 'preact/hooks';
import { api, type Trace } from '../api/api';
import { turnOf, type Reports } from './reports';
import { CAUSED, does, lockName, stackText, threadName, type Anr, type AnrProcess, type AnrStep } from './anrdoc';
import { Calls, Method, Stack, type Way } from './anrparts';
import { Raw, useRaw } from './anrraw';
import { Threads } from './anrthreads';
import { count, DAY_MS, duration, sentence, withoutParameters } from '../i18n/format';
import { ended, serverText } from '../i18n/servertext';
import { openAlso } from '../trace/state/opened';
import { atTimeline } from '../trace/state/tab';
import { Copy, Panel, useLoad } from '../ui/parts';
import { link, number, set, text } from '../ui/route';
import { tr } from '../i18n/strings/anr';
import { Waits } from './waitpicture';

const WAITED_MS = 10_000; // before the report, if it does not have the duration
const USUAL_DAYS = 30; // default range of the pages of ANR groups
const NONE: string[] = [];

function Wish({ p, step }: { p: AnrProcess; step: AnrStep }) {
	const w = step.wants;
	if (!w) return null;
	const holder = w.holder === null ? undefined : p.threads[w.holder];
	const unknown = w.holder_tid ? tr('thread {holder_tid}, not in the dump', { holder_tid: w.holder_tid }) : tr('an unknown thread');
	return (
		<p class="wish">{tr.rich('waits for {w} {id}, held by {holder}', { w: lockName(w), id: <span class="mono quiet">{w.id}</span>, holder: <strong>{holder ? threadName(holder) : unknown}</strong> })}
			{step.owner_frame && <>{tr(', acquired in')}{' '}<Method f={step.owner_frame} track={holder?.track} /></>}
			{holder && !w.named && <span class="quiet">{' '}{tr('(inferred from the lock\'s holder)')}</span>}</p>
	);
}

function Step({ p, step }: { p: AnrProcess; step: AnrStep }) {
	const t = p.threads[step.thread];
	const app = step.app_frame && step.app_frame.name !== step.frame?.name ? step.app_frame : null;
	return (
		<li>
			<p><strong>{threadName(t)}</strong> {t?.state && <span class="state">{t.state}</span>} {does(step)} {step.frame && <Method f={step.frame} track={t?.track} />}
				{app && <>{' '}{tr('for')}{' '}<Method f={app} track={t?.track} /></>}</p>
			<Wish p={p} step={step} />
		</li>
	);
}

export function Chain({ p }: { p: AnrProcess }) {
	const last = p.chain[p.chain.length - 1];
	const back = last?.wants?.holder ?? null;
	const first = p.chain.findIndex((s) => s.thread === back);
	return (
		<section aria-label={tr('What the main thread waits for')}>
			<h3>{p.chain.length > 1 ? tr('What blocks the main thread') : tr('Where the main thread was')}</h3>
			<ol class="chain">{p.chain.map((s) => <Step key={s.thread} p={p} step={s} />)}</ol>
			{first >= 0 && <p class="badtext">{tr('and back to {threads}.', { threads: threadName(p.threads[back!]) })}</p>}
		</section>
	);
}

export function Cycles({ p }: { p: AnrProcess }) {
	return <>{p.cycles.map((c, i) => (
		<section key={i} class="cycle" aria-label={tr('Deadlock {i}', { i: i + 1 })}>
			<h3 class="badtext">{tr('{certain} of {c} threads', { certain: c.certain ? tr('Deadlock') : tr('Possible deadlock'), c: count(c.size) })}</h3>
			{!c.certain && <p class="quiet">{tr('Threads are dumped one after another, and not all of these were blocked when dumped.')}</p>}
			<div class="stacks">{c.threads.map((s) => p.threads[s.thread] && (
				<div key={s.thread}>
					<p class="row"><strong>{threadName(p.threads[s.thread])}</strong><span class="state">{p.threads[s.thread].state}</span>
						<span class="grow" /><Copy text={stackText(p.threads[s.thread])} label={tr('Copy the stack')} /></p>
					<Wish p={p} step={s} />
					<Stack t={p.threads[s.thread]} />
				</div>))}</div>
		</section>))}</>;
}

function title(p: AnrProcess): string {
	return p.facts.command ?? (p.pid === null ? tr('the report') : tr('process {pid}', { pid: p.pid }));
}

function Which({ doc, at }: { doc: Anr; at: number }) {
	if (doc.processes.length < 2) return null;
	return <label class="inline">{doc.sampled ? tr('Sample') : tr('Process')}
		<select value={at} onChange={(e) => set({ dump: Number(e.currentTarget.value), stack: null, waits: null, anrstate: null })}>
			{doc.processes.map((p, i) => <option key={i} value={i}>{doc.sampled ? tr('{i} of {processes}, at {at_ns}', { i: count(i + 1), processes: count(doc.processes.length), at_ns: duration(p.at_ns) })
				: `${title(p)}${p.pid === null ? '' : ` (${p.pid})`}`}</option>)}
		</select></label>;
}

function More({ doc, p }: { doc: Anr; p: AnrProcess }) {
	const facts = Object.entries({ ...doc.facts, ...p.facts }).filter(([k]) => !['subject', 'reason'].includes(k));
	if (facts.length === 0 && doc.loads.length === 0) return null;
	return (
		<details>
			<summary>{tr('Device, memory and CPU use')}</summary>
			<dl class="facts">{facts.map(([k, v]) => <div key={k}><dt>{k.replaceAll('_', ' ')}</dt><dd>{v}</dd></div>)}</dl>
			{doc.loads.length > 0 && <pre class="mono" tabIndex={0}>{doc.loads.join('\n')}</pre>}
		</details>
	);
}

/** Links a frame to its method in the report's trace: the last seconds of that thread. */
function wayTo(t: Trace, names: string[], at_ns: number, waited_ms: number | null): Way {
	const known = new Map<string, string>();
	for (const n of names) known.set(withoutParameters(n), known.has(withoutParameters(n)) ? withoutParameters(n) : n); // overloads: all of them
	const [start, end] = [t.start_ns ?? 0, t.end_ns ?? 0];
	const to = at_ns > start && at_ns <= end ? at_ns : end; // a report without a time belongs to the trace's end
	const from = Math.max(start, to - (waited_ms ?? WAITED_MS) * 1e6);
	return {
		has: (name) => known.has(name),
		go: (name, track) => {
			set({ find: known.get(name)!, thread: track, open: openAlso(text('open'), track), from, to: Math.max(to, from + 1), a: null, b: null, sel: null, threads: null, root: null, row: null, ...atTimeline() }, true);
		},
	};
}

function Body({ doc, p, timed }: { doc: Anr; p: AnrProcess | undefined; timed: boolean }) {
	return <>
		{p && p.chain.length > 0 && <Chain p={p} />}
		{p && <Waits p={p} />}
		{p && <Cycles p={p} />}
		{p && <Threads p={p} timed={timed} />}
		{p && <More doc={doc} p={p} />}
	</>;
}

/** Query string for the group's page; empty if its default range includes the trace. */
function daysOf(t: Trace): string {
	const days = Math.ceil((Date.now() - (t.meta.recorded_ms || t.created_ms)) / DAY_MS) + 1;
	return days > USUAL_DAYS ? `?days=${days}` : '';
}

function Report({ doc, t, names }: { doc: Anr; t: Trace; names: string[] }) {
	const usual = doc.blamed ?? 0;
	const at = Math.min(number('dump') ?? usual, doc.processes.length - 1);
	const p = doc.processes[at];
	const verdict = at === usual || !p ? doc.verdict : p.verdict;
	const way = useMemo(() => (p && names.length > 0 ? wayTo(t, names, p.at_ns, doc.waited_ms) : null), [t, names, p, doc]);
	const [raw, button] = useRaw();
	return (
		<Panel id="anr" title="ANR" aside={<>
			<Which doc={doc} at={at} />
			{doc.kind !== 'unknown' && <span class="state">{CAUSED[doc.kind] ?? doc.kind.replaceAll('_', ' ')}</span>}
			{doc.waited_ms !== null && <span class="quiet">{tr('waited {waited_ms}', { waited_ms: duration(doc.waited_ms * 1e6) })}</span>}
			<span class="quiet">{tr.rich('cluster {cluster}', { cluster: <span class="mono">{doc.cluster}</span> })}</span>{t.anr_group && <a href={link(`/anrs/${t.anr_group}${daysOf(t)}`)}>{tr('All ANRs with this cause')}</a>}{button}</>}>
			<p class="verdict">{ended(sentence(serverText(verdict)))}</p>
			{doc.reason && <p class="quiet reason">{doc.reason}</p>}
			{raw && <Raw id={t.id} />}
			<Calls.Provider value={way}><Body doc={doc} p={p} timed={t.summary?.timed === true} /></Calls.Provider>
		</Panel>
	);
}

export function AnrPanel({ t, reports }: { t: Trace; reports: Reports }) {
	const turn = turnOf(t);
	const timed = t.summary?.timed === true; // otherwise the trace consists of its stacks
	const names = useLoad(`${t.id} ${turn} ${timed}`, () => (timed ? api.names(t.id) : Promise.resolve(null)));
	return <>{reports.map((d, i) => <Report key={i} doc={d.content} t={t} names={names.value?.names ?? NONE} />)}</>;
}
