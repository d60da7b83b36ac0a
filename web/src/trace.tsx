// One trace: facts, threads, the chart of one thread, the merged graph and the methods of a range.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { AnrPanel } from './anr';
import { api, type NoteSum, type Thread, type Trace } from './api';
import { Exports } from './exports';
import { count, sentence } from './format';
import { FlamePanel } from './flame';
import { Keys } from './keys';
import { matching } from './matching';
import { MethodsPanel } from './methods';
import { NotesPanel } from './notes';
import { Busy, Choice, Failure, Panel, useLoad } from './parts';
import { Facts, NamesWarning, Repairs } from './report';
import { number, set, text } from './route';
import type { Range } from './scene';
import { many, wordsOf } from './source';
import { StatesPanel } from './states';
import { Timeline } from './timeline';
import { inOrder } from './tracks';
import { Waiting } from './waiting';

const POLL_MS = 1000;

function title(t: Trace): string {
	return [t.meta.app, t.meta.version_name, t.meta.scenario].filter(Boolean).join(' ') || t.id;
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

/** Numbers with commas. */
const tidsOf = (list: string) => new Set(list.split(',').filter((v) => /^\d{1,16}$/.test(v)).map(Number));

/** The range that is selected, of which threads: one, some or (null) all. */
function useRange(thread: Thread | null): { range: Range | null; tids: Set<number> | null } {
	const a = number('a');
	const b = number('b');
	const scope = text('threads');
	const sel = text('sel');
	const tids = useMemo(() => (scope === 'all' ? null : scope === 'sel' && sel ? tidsOf(sel) : thread ? new Set([thread.tid]) : null), [scope, sel, thread]);
	const range = useMemo(() => (a !== null && b !== null && b > a ? { from: a, to: b, tids } : null), [a, b, tids]);
	return { range, tids };
}

/** Graph, tables and states of what is selected; not drawn anew while the view moves. */
function Totals({ t, busy, listed, thread, range, tids, sums, names, matches }: {
	t: Trace; busy: Thread[]; listed: Thread[]; thread: Thread; range: Range | null; tids: Set<number> | null; sums: NoteSum[]; names: string[]; matches: Uint8Array | null;
}) {
	const turn = t.report?.names.resolved ?? 0;
	const chosen = useMemo(() => (tids ? busy.filter((x) => tids.has(x.tid)) : busy), [busy, tids]);
	const several = text('sel') !== '' && text('sel').includes(',');
	const words = wordsOf(chosen);
	const scope = busy.length > 1 && <Choice label="Threads" value={text('threads') || 'one'}
		options={[['one', thread.name || `thread ${thread.tid}`], ...(several ? [['sel', `${count(tidsOf(text('sel')).size)} threads`] as [string, string]] : []), ['all', 'All threads']]}
		onPick={(v) => set({ threads: v === 'one' ? null : v, root: null, skip: null })} />;
	const list = !tids ? 'all' : chosen.map((x) => x.tid).join(',');
	const times = useMemo<[number, number] | null>(() => (range ? [range.from, range.to] : null), [range?.from, range?.to]);
	const states = <StatesPanel id={t.id} threads={listed} tids={tids} range={times} sums={sums} scope={scope} />;
	if (chosen.length === 0)
		return <><Panel title="Merged flame graph" aside={scope}><p class="quiet">The selected threads have no calls.</p></Panel>{states}</>;
	return <>
		<FlamePanel id={t.id} thread={list} range={times} names={names} matches={matches} mappingTurn={turn} scope={scope} words={words} hasCpu={t.has_cpu === true} />
		{states}
		<MethodsPanel id={t.id} thread={list} range={times} mappingTurn={turn} scope={scope} words={words} onFind={(n) => set({ find: n })} />
	</>;
}

function Ready({ t }: { t: Trace }) {
	const threads = useLoad(t.id, () => api.threads(t.id));
	const sums = useLoad(t.id, (s) => api.noteSums(t.id, {}, s));
	const turn = t.report?.names.resolved ?? 0; // a mapping that came changes every name
	const names = useLoad(t.id + turn, () => api.names(t.id));
	const [step, go] = useState({ turn: 0, forward: true });
	const [calls, found] = useState<number | null>(null);
	const find = text('find');
	const idle = text('idle') === '1';
	const all = useMemo(() => inOrder(threads.value?.threads ?? []), [threads.value]);
	const busy = useMemo(() => all.filter((x) => x.slices > 0), [all]);
	const listed = idle || busy.length === 0 ? all : busy;
	const tid = number('thread');
	const thread = listed.find((x) => x.tid === tid) ?? listed[0] ?? null;
	const list = useMemo(() => names.value?.names ?? [], [names.value]);
	const matches = useMemo(() => matching(list, find), [list, find]);
	const start = t.start_ns ?? 0;
	const end = t.end_ns ?? 1;
	const whole = useMemo(() => ({ from: start, to: Math.max(end, start + 1) }), [start, end]);
	const { range, tids } = useRange(thread);
	const search = useMemo(() => thread && <SearchBar names={list} matches={matches} thread={thread} calls={calls}
		onStep={(forward) => go((s) => ({ turn: s.turn + 1, forward }))} />, [list, matches, thread, calls]);
	const totals = useMemo(() => thread && sums.value && <Totals t={t} busy={busy} listed={listed} thread={thread} range={range} tids={tids} sums={sums.value.sums} names={list} matches={matches} />,
		[t, thread, busy, listed, range, tids, sums.value, list, matches]);

	const failed = [threads, names, sums].find((l) => l.error);
	if (failed) return <Failure error={failed.error!} retry={failed.again} />;
	if (!threads.value || !names.value || !sums.value) return <Busy what="Opening the trace" />;
	const notes = <NotesPanel id={t.id} threads={all} shown={thread ?? undefined} start={start} end={end} />;
	const none = busy.length === 0 && <div class="notice"><strong>This trace holds no calls.</strong></div>;
	if (!thread) return <>{none}{notes}<Repairs t={t} /></>;
	return <>
		{none}
		<Panel title="Threads" aside={<>
			{range && <button class="small" onClick={() => set({ a: null, b: null, sel: null, threads: text('threads') === 'sel' ? null : text('threads'), root: null, skip: null })}>Clear the selection</button>}
			<span class="quiet">wheel zooms, drag moves, Shift+drag selects, ? for keys</span>
			{busy.length > 0 && all.length > busy.length && <label class="check"><input type="checkbox" checked={idle} onChange={(e) => set({ idle: e.currentTarget.checked ? 1 : null })} />
				{count(all.length - busy.length)} without calls</label>}</>}>
			{search}
			<Timeline id={t.id} threads={listed} names={list} matches={matches} whole={whole} sums={sums.value.sums} focus={thread} range={range} step={step} onFound={found} />
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
