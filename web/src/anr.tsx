// Why an application did not respond: the verdict, who blocks whom, deadlocks, and all threads.
import { useMemo } from 'preact/hooks';
import { api } from './api';
import { does, HOW, lockName, order, shows, stackText, threadName, type Anr, type AnrFrame, type AnrProcess, type AnrStep, type AnrThread } from './anrdoc';
import { count, duration, splitName } from './format';
import { openAlso } from './opened';
import { Copy, Failure, Panel, useLoad } from './parts';
import { number, set, text } from './route';

const ROWS = 40;

function Method({ f }: { f: AnrFrame }) {
	const [pkg, rest] = f.kind ? ['', f.name] : splitName(f.name);
	return <span class="mono method"><span class="quiet">{pkg}</span>{rest}{f.where && <span class="quiet"> {f.where}</span>}{f.inlined && <em class="tag" title="The compiler put this method's code into the method below">inlined</em>}</span>;
}

function Stack({ t }: { t: AnrThread }) {
	if (t.frames.length === 0) return <p class="quiet">{t.more_frames ? 'The stack was left out: the report is too large.' : 'No frames in the dump.'}{t.channel ? ` In the kernel it waits in ${t.channel}.` : ''}</p>;
	return (
		<ol class="stack">
			{t.frames.map((f, i) => (
				<li key={i} class={f.kind ? 'native' : ''}><Method f={f} />
					{f.locks?.map((l, k) => <span key={k} class={`lock ${l.how}`}>{HOW[l.how]} <span class="mono">{l.type ?? 'an unknown class'} {l.id}</span></span>)}</li>))}
			{(t.more_frames ?? 0) > 0 && <li class="quiet">and {count(t.more_frames!)} more</li>}
		</ol>
	);
}

function Wish({ p, step }: { p: AnrProcess; step: AnrStep }) {
	const w = step.wants;
	if (!w) return null;
	const holder = w.holder === null ? undefined : p.threads[w.holder];
	const nobody = w.holder_tid ? `thread ${w.holder_tid}, which the dump does not have` : 'nobody who is seen';
	return (
		<p class="wish">wants {lockName(w)} <span class="mono quiet">{w.id}</span>, held by <strong>{holder ? threadName(holder) : nobody}</strong>
			{step.taken_in && <>, taken in <Method f={step.taken_in} /></>}
			{holder && !w.told && <span class="quiet"> (found by who has it locked)</span>}</p>
	);
}

function Step({ p, step }: { p: AnrProcess; step: AnrStep }) {
	const t = p.threads[step.thread];
	const app = step.app_frame && step.app_frame.name !== step.frame?.name ? step.app_frame : null;
	return (
		<li>
			<p><strong>{threadName(t)}</strong> {t?.state && <span class="state">{t.state}</span>} {does(step)} {step.frame && <Method f={step.frame} />}
				{app && <> for <Method f={app} /></>}</p>
			<Wish p={p} step={step} />
		</li>
	);
}

function Chain({ p }: { p: AnrProcess }) {
	const last = p.chain[p.chain.length - 1];
	const back = last?.wants?.holder ?? null;
	const first = p.chain.findIndex((s) => s.thread === back);
	return (
		<section aria-label="What main waits for">
			<h3>{p.chain.length > 1 ? 'Who blocks main' : 'Where main stood'}</h3>
			<ol class="chain">{p.chain.map((s) => <Step key={s.thread} p={p} step={s} />)}</ol>
			{first >= 0 && <p class="badtext">and so round again to {threadName(p.threads[back!])}.</p>}
		</section>
	);
}

function Cycles({ p }: { p: AnrProcess }) {
	return <>{p.cycles.map((c, i) => (
		<section key={i} class="cycle" aria-label={`Deadlock ${i + 1}`}>
			<h3 class="badtext">{c.certain ? 'Deadlock' : 'Possible deadlock'} of {count(c.size)} threads</h3>
			{!c.certain && <p class="quiet">Threads are dumped one after the other, and not all of these were seen to be blocked.</p>}
			<div class="stacks">{c.threads.map((s) => p.threads[s.thread] && (
				<div key={s.thread}>
					<p class="row"><strong>{threadName(p.threads[s.thread])}</strong><span class="state">{p.threads[s.thread].state}</span>
						<span class="grow" /><Copy text={stackText(p.threads[s.thread])} label="Copy the stack" /></p>
					<Wish p={p} step={s} />
					<Stack t={p.threads[s.thread]} />
				</div>))}</div>
		</section>))}</>;
}

function Row({ p, i, open }: { p: AnrProcess; i: number; open: boolean }) {
	const t = p.threads[i];
	const holder = t.wants && t.wants.holder !== null ? threadName(p.threads[t.wants.holder]) : '';
	return <>
		<tr>
			<td><button class="plain" aria-expanded={open} onClick={() => set({ stack: open ? null : i })}>{threadName(t)}</button>
				{i === p.main && <em class="tag">main</em>}{t.daemon && <span class="quiet"> daemon</span>}</td>
			<td class="num quiet">{t.sys_tid ?? ''}</td>
			<td><span class={`state ${t.wants ? 'loss' : ''}`}>{t.state || (t.attached === false ? 'not attached' : 'unknown')}</span></td>
			<td>{t.held.map((l) => <div key={l.id} class="mono">{l.type ?? 'unknown'} <span class="quiet">{l.id}</span></div>)}
				{(t.victims ?? 0) > 0 && <span class="badtext">blocks {count(t.victims!)} {t.victims === 1 ? 'thread' : 'threads'}</span>}</td>
			<td>{t.wants && <><span class="mono">{t.wants.type ?? 'unknown'} <span class="quiet">{t.wants.id}</span></span>{holder && <div>of {holder}</div>}</>}</td>
			<td>{t.top ? <Method f={t.top} /> : <span class="quiet">{t.channel ? `kernel: ${t.channel}` : 'no stack'}</span>}</td>
		</tr>
		{open && <tr class="opened"><td colSpan={6}>
			<p class="row"><Copy text={stackText(t)} label="Copy the stack" />
				{t.frames.length > 0 && <button class="small" onClick={() => set({ thread: t.track, open: openAlso(text('open'), t.track), from: null, to: null, a: null, b: null, root: null, row: null }, true)}>Show in the chart</button>}
				{t.run_ns !== undefined && <span class="quiet">on a CPU for {duration(t.run_ns)}, waited for one for {duration(t.queue_ns ?? 0)} in all</span>}</p>
			<Stack t={t} /></td></tr>}
	</>;
}

function Threads({ p }: { p: AnrProcess }) {
	const filter = text('anr');
	const open = number('stack');
	const limit = Math.max(ROWS, number('anrrows') ?? ROWS);
	const all = useMemo(() => order(p), [p]);
	const found = useMemo(() => all.filter((i) => shows(p.threads[i], filter)), [all, filter]);
	if (p.threads.length === 0) return null;
	return (
		<section aria-label="Threads of the dump">
			<div class="row"><h3>Threads</h3><span class="quiet">{filter ? `${count(found.length)} of ` : ''}{count(p.threads.length)}
				{p.threads_left_out > 0 ? `, ${count(p.threads_left_out)} more were left out` : ''}</span><span class="grow" />
				<label class="inline">Filter<input type="search" value={filter} placeholder="name, state, class or method" onInput={(e) => set({ anr: e.currentTarget.value, anrrows: null })} /></label></div>
			{found.length === 0 ? <p class="quiet">No thread has this in its name, state, locks or stack.</p>
				: <div class="scroll"><table class="anrthreads">
					<thead><tr><th scope="col">Thread</th><th scope="col" class="num">Id</th><th scope="col">State</th><th scope="col">Holds</th><th scope="col">Wants</th><th scope="col">Top frame</th></tr></thead>
					<tbody>{found.slice(0, limit).map((i) => <Row key={i} p={p} i={i} open={open === i} />)}</tbody>
				</table></div>}
			{found.length > limit && <p><button class="small" onClick={() => set({ anrrows: p.threads.length })}>Show all {count(found.length)}</button></p>}
		</section>
	);
}

function title(p: AnrProcess): string {
	return p.facts.command ?? (p.pid === null ? 'the report' : `process ${p.pid}`);
}

function Which({ doc, at }: { doc: Anr; at: number }) {
	if (doc.processes.length < 2) return null;
	return <label class="inline">{doc.sampled ? 'Sample' : 'Process'}
		<select value={at} onChange={(e) => set({ dump: Number(e.currentTarget.value), stack: null })}>
			{doc.processes.map((p, i) => <option key={i} value={i}>{doc.sampled ? `${count(i + 1)} of ${count(doc.processes.length)}, at ${duration(p.at_ns)}`
				: `${title(p)}${p.pid === null ? '' : ` (${p.pid})`}`}</option>)}
		</select></label>;
}

function More({ doc, p }: { doc: Anr; p: AnrProcess }) {
	const facts = Object.entries({ ...doc.facts, ...p.facts }).filter(([k]) => !['subject', 'reason'].includes(k));
	if (facts.length === 0 && doc.loads.length === 0) return null;
	return (
		<details>
			<summary>Device, memory and CPU use</summary>
			<dl class="facts">{facts.map(([k, v]) => <div key={k}><dt>{k.replaceAll('_', ' ')}</dt><dd>{v}</dd></div>)}</dl>
			{doc.loads.length > 0 && <pre class="mono" tabIndex={0}>{doc.loads.join('\n')}</pre>}
		</details>
	);
}

function Report({ doc }: { doc: Anr }) {
	const usual = doc.blamed ?? 0;
	const at = Math.min(number('dump') ?? usual, doc.processes.length - 1);
	const p = doc.processes[at];
	const verdict = at === usual || !p ? doc.verdict : p.verdict;
	return (
		<Panel id="anr" title="ANR" aside={<>
			<Which doc={doc} at={at} />
			{doc.kind !== 'unknown' && <span class="state">{doc.kind.replaceAll('_', ' ')}</span>}
			{doc.waited_ms !== null && <span class="quiet">waited {duration(doc.waited_ms * 1e6)}</span>}
			<span class="quiet">cluster <span class="mono">{doc.cluster}</span></span></>}>
			<p class="verdict">{verdict.charAt(0).toUpperCase() + verdict.slice(1)}.</p>
			{doc.reason && <p class="quiet reason">{doc.reason}</p>}
			{p && p.chain.length > 0 && <Chain p={p} />}
			{p && <Cycles p={p} />}
			{p && <Threads p={p} />}
			{p && <More doc={doc} p={p} />}
		</Panel>
	);
}

/** Nothing for a trace that has no ANR report.  names changes when a mapping came. */
export function AnrPanel({ id, names }: { id: string; names: string }) {
	const load = useLoad(id + names, (s) => api.documents<Anr>(id, 'anr', s));
	if (load.error) return <Failure error={load.error} retry={load.again} />;
	return <>{load.value?.documents.map((d, i) => <Report key={i} doc={d.content} />)}</>;
}
