// One trace: its head, its timeline, and panels for the selection.
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ComponentChild } from 'preact';
import { AnnotateButton, useAnnotations } from './parts/annotate';
import { useReports } from '../anr/reports';
import { api, may, Refusal, type Thread, type Trace } from '../api/api';
import { Bench } from './bench';
import { Exports } from './exports';
import type { Found } from './worker/calls';
import { count, isolated, percent, sentence } from '../i18n/format';
import { serverText } from '../i18n/servertext';
import { LinkCheck } from './state/linkcheck';
import { matching } from '../ui/matching';
import { Deleted, NewNames, useTraceChanges } from './tracechanges';
import { COLUMNS } from './panels/methodcolumns';
import { Busy, Failure, inField, Panel, useLoad } from '../ui/parts';
import { PANELS, tidsOf } from './registry';
import { Facts, NamesWarning, NothingDrawn } from './parts/facts';
import { usePolling } from '../ui/polling';
import { number, set, text } from '../ui/route';
import type { Range } from './timeline/scene';
import { many, wordsOf } from '../api/source';
import { tr } from '../i18n/strings/trace';
import { Legend } from './timeline/legend';
import { Timeline } from './timeline/timeline';
import { mainOf, ranOf } from './state/threadlist';
import { threadsFromAddress } from './timeline/timelineview';
import { TraceHead } from './tracehead';
import { nameOf } from '../api/traces';
import { Waiting } from './waiting';

/* Decode failures that quarantine the upload: the decoder crashed without reporting an error. */
const DEATHS = new Set(['internal', 'out_of_memory', 'deadline']);

const POLL_MS = 1000;
const REST_MS = 400;
const COLUMN_NAMES = COLUMNS.map((c) => c.key.replace('_ns', ''));

function foundIn(met: Found, thread: Thread): string {
	const of = thread.name || thread.tid;
	if (met.calls === 0 && !met.least) return tr('no {one} in {of}', { one: wordsOf([thread]).one, of });
	if (met.least) return tr('at least {calls} in {of}', { calls: many(met.calls, wordsOf([thread])), of });
	return tr('{calls} in {of}, {share} of its busy time', { calls: many(met.calls, wordsOf([thread])), of, share: percent(met.share) });
}

function SearchBar({ names, matches, thread, single, met, onStep }: {
	names: string[]; matches: Uint8Array | null; thread: Thread; single: boolean; met: Found | null; onStep: (forward: boolean) => void;
}) {
	const find = text('find');
	const input = useRef<HTMLInputElement>(null);
	const methods = matches ? matches.reduce((n, v) => n + v, 0) : 0;
	const elsewhere = !single && met?.calls === 0 && !met.least && text('threads') !== 'all';
	useLayoutEffect(() => {
		const key = (e: KeyboardEvent) => {
			if (e.key !== '/' || inField(e)) return;
			e.preventDefault();
			input.current?.focus();
		};
		addEventListener('keydown', key);
		return () => removeEventListener('keydown', key);
	}, []);
	return (
		<div class="row search" role="search">
			<label class="inline"><span>{tr('Find a method')}</span>
				<input ref={input} type="search" value={find} placeholder={tr('name, or /expression/')} onInput={(e) => set({ find: e.currentTarget.value })}
					onKeyDown={(e) => {
						if (e.key === 'Enter') onStep(!e.shiftKey);
						if (e.key === 'Escape') set({ find: null });
					}} /></label>
			{find && <output>{!matches ? tr('not an expression') : tr('{methods} of {names} methods', { methods: count(methods), names: count(names.length) })
				+ (methods > 0 && met ? `, ${foundIn(met, thread)}` : '')}</output>}
			{find && methods > 0 && met?.calls !== 0 && <>
				<button class="small" onClick={() => onStep(false)} aria-label={tr('Previous call that matches')}>{tr('Previous')}</button>
				<button class="small" onClick={() => onStep(true)} aria-label={tr('Next call that matches')}>{tr('Next')}</button>
			</>}
			{find && methods > 0 && elsewhere && <button class="small" onClick={() => set({ threads: 'all', root: null, skip: null, tab: 'flame' }, true)}>{tr('All threads')}</button>}
		</div>
	);
}

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

/** The parts below the timeline are mounted once calls are drawn, or after a moment: drawing has priority. */
function useRest(id: string): [boolean, () => void] {
	const [rest, come] = useState(false);
	const now = useCallback(() => come(true), []);
	useEffect(() => {
		const timer = setTimeout(now, REST_MS);
		return () => clearTimeout(timer);
	}, [id]);
	return [rest, now];
}

function Ready({ t }: { t: Trace }) {
	const sums = useLoad(t.id, (s) => api.noteSums(t.id, {}, s));
	const turn = t.report?.names.resolved ?? 0; // a mapping that came changes every name
	const threads = useLoad(t.id + turn, () => api.threads(t.id));
	const names = useLoad(t.id + turn, () => api.names(t.id));
	const [step, go] = useState({ turn: 0, forward: true });
	const [met, found] = useState<Found | null>(null);
	const [rest, drawn] = useRest(t.id);
	const find = text('find');
	const idle = text('idle') === '1';
	const { all, busy, listed, there, focus: thread } = useMemo(() => threadsFromAddress(ranOf(mainOf(threads.value?.threads ?? [], t.meta.pid), sums.value?.sums ?? [])), [threads.value, sums.value, idle, number('thread'), text('tq'), text('tsort'), text('tgroup'), text('pin'), text('hide')]);
	const list = useMemo(() => names.value?.names ?? [], [names.value]);
	const matches = useMemo(() => matching(list, find, names.value?.obfuscated), [list, find]);
	const start = t.start_ns ?? 0;
	const end = t.end_ns ?? 1;
	const whole = useMemo(() => ({ from: start, to: Math.max(end, start + 1) }), [start, end]);
	const { range, tids } = useRange(thread);
	const picked = range || (tids && tids.size > 1) ? tids : null;
	const [details, tell] = useState<ComponentChild>(null);
	const reports = useReports(t);
	const notes = useAnnotations(t.id, whole);
	const search = useMemo(() => thread && <SearchBar names={list} matches={matches} thread={thread} single={busy.length === 1} met={met}
		onStep={(forward) => go((s) => ({ turn: s.turn + 1, forward }))} />, [list, matches, thread, busy, met]);
	const documents = reports.value?.documents;
	const shown = useMemo(() => ({ t, turn, whole, threads: all, busy, listed, thread, range, tids, sums: sums.value?.sums ?? [], names: list, matches, reports: documents ?? [], reload: notes.again }),
		[t, whole, all, busy, listed, thread, range, tids, sums.value, list, matches, documents]);

	const loads = [threads, names, sums];
	const failed = loads.find((l) => l.error && !l.value);
	const stale = loads.find((l) => l.error); // loaded data is retained
	if (failed) return <Failure error={failed.error!} retry={failed.again} />;
	if (!threads.value || !names.value || !sums.value) return <Busy what={tr('Opening the trace')} retry={() => loads.forEach((l) => l.value || l.again())} />;
	const known = { tids: all.map((x) => x.tid), methods: list.length, hasCpu: t.has_cpu === true, columns: COLUMN_NAMES, tabs: ['timeline', ...PANELS.map((p) => p.id)] };
	const clear = () => set({ a: null, b: null, sel: null, threads: text('threads') === 'sel' ? null : text('threads'), root: null, skip: null });
	const timed = t.summary?.timed !== false; // counts and snapshots have no time axis
	const events = sums.value.sums.some((s) => s.kind !== 'process');
	const upper = timed && (thread !== null || events) && <Panel title={tr('Threads')} aside={<>
		{list.length > 0 && search}
		<span class="quiet hint">{tr('Ctrl+wheel zooms, drag moves, Shift+drag selects, ? for keys')}</span>
		{(range || picked) && <button class="small" onClick={clear}>{tr('Clear the selection')}</button>}
		<AnnotateButton whole={whole} thread={thread} />
		<Legend names={list} sums={sums.value.sums} />
		{busy.length > 0 && all.length > busy.length && <label class="check"><input type="checkbox" checked={idle} onChange={(e) => set({ idle: e.currentTarget.checked ? 1 : null })} />
			{tr('{busy} without calls', { busy: count(all.length - busy.length) })}</label>}</>}>
		<Timeline key={turn} id={t.id} threads={listed} all={all} there={there.length} names={list} matches={matches} whole={whole} sums={sums.value.sums} focus={thread} range={range} picked={picked} step={step} onFound={found} onDrawn={drawn} onDetails={tell} />
	</Panel>;
	return <>
		<div class="notices">
			<LinkCheck of={known} />
			{!thread && !events && documents?.length === 0 && <NothingDrawn t={t} sums={sums.value.sums} />}
			{stale && <Failure error={stale.error!} retry={stale.again} />}
			{reports.error && <Failure error={reports.error} retry={reports.again} />}
			{notes.error && <Failure error={notes.error} retry={notes.again} title={tr('The annotations could not be loaded.')} />}
		</div>
		<Bench shown={shown} come={(rest || !upper) && (documents !== undefined || reports.error !== null)} upper={upper} details={details} />
	</>;
}

export function TracePage({ id }: { id: string }) {
	const load = useLoad(id, (s) => api.trace(id, s));
	const t = load.value;
	const waiting = t && (t.state === 'queued' || t.state === 'decoding' || t.state === 'archived');
	useEffect(() => {
		document.title = `${t ? isolated(nameOf(t)) : tr('Trace')} · tracewell`;
	}, [t]);
	usePolling(load, waiting ? POLL_MS : Infinity); // a mapping may arrive while the page is in the background
	// requesting data of the decoded file starts another decode
	useEffect(() => {
		if (t?.state === 'archived' && !load.busy) void api.threads(id).catch(() => undefined); // again with each look: one may fail
	}, [id, t?.state, load.busy]);
	useTraceChanges(t, load.again);

	const gone = load.error instanceof Refusal && load.error.status === 404;
	if (load.error && !t) return <main><div class="row head"><h1>{tr('Trace')}</h1></div><Failure error={load.error} retry={load.again} title={gone ? tr('Trace not found') : undefined}
		more={gone ? tr('It was deleted, the link is incomplete, or you have no role in its project. If the link works for the sender, ask an admin for a role.') : ''} /></main>;
	if (!t) return <main><Busy what={tr('Opening the trace')} retry={load.again} /></main>;
	return (
		<main class={t.state === 'ready' ? 'workbench' : 'wide'}>
			<div class="row head">
				<TraceHead t={t} changed={load.again} />
				{t.state === 'ready' && <Exports t={t} name={nameOf(t)} />}
			</div>
			<div class="notices">
				{load.error && (gone ? <Deleted /> : <Failure error={load.error} retry={load.again} />)}
				<NewNames t={t} />
				<NamesWarning t={t} />
			</div>
			{t.state !== 'ready' && <Facts t={t} />}
			{waiting && <Waiting t={t} />}
			{t.state === 'failed' && <div class="notice bad" role="alert"><strong>{tr('This trace could not be decoded.')}</strong>
				<p>{sentence(serverText(t.error?.message ?? ''))}{t.error?.offset !== null && t.error?.offset !== undefined ? tr(' (at byte {offset})', { offset: count(t.error.offset) }) : ''}</p>
				<p class="quiet">{tr('{attempts}The upload is kept for analysis.', { attempts: t.attempts > 1 ? tr('It was attempted {attempts} times. ', { attempts: count(t.attempts) }) : '' })}</p>
				{may.admin || !DEATHS.has(t.error?.status ?? '')
					? <p><a class="button" href={api.rawUrl(t.id)} download>{tr('Download the upload')}</a></p>
					: <p>{tr('It is in quarantine because it crashed the decoder. A project admin can download it.')}</p>}</div>}
			{t.state === 'ready' && <Ready t={t} />}
		</main>
	);
}
