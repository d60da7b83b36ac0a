// One trace: facts, threads, the chart of one thread, the merged graph and the methods of a range.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { AnrPanel } from './anr';
import { api, type Thread, type Trace } from './api';
import { Chart } from './chart';
import { Exports } from './exports';
import { count, duration, sentence } from './format';
import { FlamePanel } from './flame';
import { Keys } from './keys';
import { matching } from './matching';
import { MethodsPanel } from './methods';
import { NotesPanel } from './notes';
import { Busy, Choice, Failure, Panel, useLoad } from './parts';
import { Facts, NamesWarning, Repairs } from './report';
import { number, set, text } from './route';
import { many, mark, wordsOf } from './source';
import { Strip } from './strip';
import { Waiting } from './waiting';

const POLL_MS = 1000;

function title(t: Trace): string {
	return [t.meta.app, t.meta.version_name, t.meta.scenario].filter(Boolean).join(' ') || t.id;
}

function Threads({ list, chosen, pick }: { list: Thread[]; chosen: Thread; pick: (t: Thread) => void }) {
	const [all, more] = useState(false);
	const shown = all ? list : list.slice(0, Math.max(12, list.indexOf(chosen) + 1));
	return (
		<Panel title="Threads" aside={<span class="quiet">{count(list.length)}</span>}>
			<ul class="threads">
				{shown.map((t) => (
					<li key={t.thread_id}>
						<button aria-pressed={t === chosen} onClick={() => pick(t)}>
							<span class="name">{t.name || `thread ${t.tid}`}{t.is_main && <em>main</em>}{mark(t) && <em title={`${mark(t)}. ${wordsOf([t]).hint}`}>{t.source}</em>}</span>
							<span class="quiet num">{t.tid}</span>
							<Strip activity={t.activity} />
							<span class="num">{duration(t.busy_ns)} busy</span>
							<span class="quiet num">{many(t.slices, wordsOf([t]))}</span>
						</button>
					</li>))}
			</ul>
			{shown.length < list.length && <button class="small" onClick={() => more(true)}>Show all {count(list.length)}</button>}
		</Panel>
	);
}

function SearchBar({ names, matches, thread, calls, onStep }: {
	names: string[]; matches: Uint8Array | null; thread: Thread; calls: number | null; onStep: (forward: boolean) => void;
}) {
	const find = text('find');
	const input = useRef<HTMLInputElement>(null);
	const methods = matches ? matches.reduce((n, v) => n + v, 0) : 0;
	useEffect(() => {
		const key = (e: KeyboardEvent) => {
			if (e.key !== '/' || /^(INPUT|TEXTAREA|SELECT)$/.test((e.target as Element).tagName)) return;
			e.preventDefault();
			input.current?.focus();
		};
		addEventListener('keydown', key);
		return () => removeEventListener('keydown', key);
	}, []);
	return (
		<div class="row search" role="search">
			<label class="inline">Find a method
				<input ref={input} type="search" value={find} placeholder="name, or /expression/" onInput={(e) => set({ find: e.currentTarget.value })}
					onKeyDown={(e) => {
						if (e.key === 'Enter') onStep(!e.shiftKey);
						if (e.key === 'Escape') set({ find: null });
					}} /></label>
			{find && <output>{!matches ? 'not an expression' : `${count(methods)} of ${count(names.length)} methods`
				+ (methods > 0 && calls !== null ? `, ${calls === 0 ? `no ${wordsOf([thread]).one}` : many(calls, wordsOf([thread]))} in ${thread.name || thread.tid}` : '')}</output>}
			{find && methods > 0 && calls !== 0 && <>
				<button class="small" onClick={() => onStep(false)} aria-label="Previous call that matches">Previous</button>
				<button class="small" onClick={() => onStep(true)} aria-label="Next call that matches">Next</button>
			</>}
		</div>
	);
}

function Ready({ t }: { t: Trace }) {
	const threads = useLoad(t.id, () => api.threads(t.id));
	const turn = t.report?.names.resolved ?? 0; // a mapping that came changes every name
	const names = useLoad(t.id + turn, () => api.names(t.id));
	const [step, go] = useState({ turn: 0, forward: true });
	const [calls, found] = useState<number | null>(null);
	const find = text('find');
	const busy = useMemo(() => (threads.value?.threads ?? []).filter((x) => x.slices > 0), [threads.value]);
	const tid = number('thread');
	const thread = busy.find((x) => x.tid === tid) ?? busy[0];
	const all = useMemo(() => names.value?.names ?? [], [names.value]);
	const matches = useMemo(() => matching(all, find), [names.value, find]);
	const start = t.start_ns ?? 0;
	const end = t.end_ns ?? 1;
	const from = number('from') ?? thread?.start_ns ?? start;
	const to = number('to') ?? thread?.end_ns ?? end;
	const a = number('a');
	const b = number('b');
	const selection = useMemo<[number, number] | null>(() => (a !== null && b !== null && b > a ? [a, b] : null), [a, b]);
	const everyone = text('threads') === 'all';
	// panels that do not follow the view are not drawn anew while it moves
	const threadsPanel = useMemo(() => thread && <Threads list={busy} chosen={thread}
		pick={(x) => set({ thread: x.tid, from: null, to: null, a: null, b: null, root: null, skip: null, row: null }, true)} />, [busy, thread]);
	const search = useMemo(() => thread && <SearchBar names={all} matches={matches} thread={thread} calls={calls}
		onStep={(forward) => go((s) => ({ turn: s.turn + 1, forward }))} />, [all, matches, thread, calls]);
	const totals = useMemo(() => {
		if (!thread) return null;
		const chosen = everyone ? 'all' : String(thread.tid);
		const words = wordsOf(everyone ? busy : [thread]);
		const scope = busy.length > 1 && <Choice label="Threads" value={everyone ? 'all' : 'one'}
			options={[['one', thread.name || `thread ${thread.tid}`], ['all', 'All threads']]}
			onPick={(v) => set({ threads: v === 'all' ? v : null, root: null, skip: null })} />;
		return <>
			<FlamePanel id={t.id} thread={chosen} range={selection} names={all} matches={matches} mappingTurn={turn} scope={scope} words={words} hasCpu={t.has_cpu === true} />
			<MethodsPanel id={t.id} thread={chosen} range={selection} mappingTurn={turn} scope={scope} words={words} onFind={(n) => set({ find: n })} />
		</>;
	}, [t.id, thread, busy, everyone, selection, all, matches, turn]);

	if (threads.error) return <Failure error={threads.error} retry={threads.again} />;
	if (names.error) return <Failure error={names.error} retry={names.again} />;
	if (!threads.value || !names.value) return <Busy what="Opening the trace" />;
	const notes = <NotesPanel id={t.id} threads={threads.value.threads} shown={thread} start={start} end={end} />;
	if (!thread) return <><div class="notice"><strong>This trace holds no calls.</strong></div>{notes}<Repairs t={t} /></>;
	return <>
		{threadsPanel}
		{search}
		<Panel title={thread.name || `thread ${thread.tid}`} aside={<>
			{mark(thread) && <em class="mark" title={wordsOf([thread]).hint}>{mark(thread)}</em>}
			{selection && <button class="small" onClick={() => set({ a: null, b: null, root: null, skip: null })}>Clear the selection</button>}
			<span class="quiet">wheel zooms, drag moves, Shift+drag selects, ? for keys</span></>}>
			<Chart trace={t.id} thread={thread} start={start} end={end} from={from} to={Math.max(to, from + 1)} names={all} matches={matches}
				selection={selection} step={step} onFound={found}
				row={number('row') ?? 0} onRow={(r) => set({ row: r || null })}
				onView={(f, l) => set({ from: Math.max(0, Math.round(f)), to: Math.max(1, Math.round(l)) })}
				onSelect={(r) => set({ a: r ? r[0] : null, b: r ? r[1] : null, root: null, skip: null }, true)} />
		</Panel>
		{totals}
		{notes}
		<Repairs t={t} />
		<Keys />
	</>;
}

export function TracePage({ id }: { id: string }) {
	const load = useLoad(id, (s) => api.trace(id, s));
	const t = load.value;
	const waiting = t && (t.state === 'queued' || t.state === 'decoding');
	useEffect(() => {
		document.title = t ? `${title(t)} · tracewell` : 'Trace · tracewell';
	}, [t]);
	useEffect(() => {
		if (!waiting || load.busy) return;
		const timer = setTimeout(load.again, POLL_MS);
		return () => clearTimeout(timer);
	}, [waiting, load.busy]);
	// a mapping may arrive while the page is open: look again when it is looked at again
	useEffect(() => {
		const back = () => document.visibilityState === 'visible' && load.again();
		document.addEventListener('visibilitychange', back);
		return () => document.removeEventListener('visibilitychange', back);
	}, []);

	if (load.error) return <main><Failure error={load.error} retry={load.again} /></main>;
	if (!t) return <main><Busy what="Opening the trace" /></main>;
	return (
		<main class="wide">
			<div class="row head">
				<h1>{title(t)}</h1>
				<span class={`state ${t.state}`}>{t.state}</span>
				<span class="grow" />
				{t.state === 'ready' && <Exports t={t} name={title(t)} />}
			</div>
			<Facts t={t} />
			<NamesWarning t={t} />
			{waiting && <Waiting t={t} />}
			{t.state === 'failed' && <div class="notice bad" role="alert"><strong>This trace could not be decoded.</strong>
				<p>{sentence(t.error?.message ?? '')}{t.error?.offset !== null && t.error?.offset !== undefined ? ` (at byte ${count(t.error.offset)})` : ''}</p>
				<p class="quiet">{t.tries > 1 ? `It was tried ${count(t.tries)} times. ` : ''}The upload is kept as it came, so that it can be looked into.</p>
				<p><a class="button" href={api.rawUrl(t.id)} download>Download what was uploaded</a></p></div>}
			{t.state === 'ready' && <AnrPanel id={t.id} names={JSON.stringify(t.report?.names)} />}
			{t.state === 'ready' && <Ready t={t} />}
		</main>
	);
}
