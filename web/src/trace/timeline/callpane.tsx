// The call that is selected: its times, the stack from the root to it, its callees, other calls of its method.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { api, type Call, type Calls, type Thread } from '../../api/api';
import { showSource } from '../parts/methodmenu';
import { ThreadName } from '../parts/threadname';
import { formatCall, parseCall } from '../state/selection';
import { count, duration, percent, splitName, withoutParameters } from '../../i18n/format';
import { signatureOf } from '../../api/overloads';
import { wordsOf } from '../../api/source';
import type { Called, CallId, Hit } from '../worker/messages';
import { kindTitle } from '../state/notekinds';
import { Busy, Copy, MethodName, useLoad, type Loaded } from '../../ui/parts';
import { flush, set, text } from '../../ui/route';
import type { Scene } from './scene';
import { linesOf, STATE_NAMES, STATES, WAITS } from '../state/statelines';
import type { Progress } from '../worker/store';
import { tr } from '../../i18n/strings/trace';
import type { TimelineProps } from './timelineview';

export interface Selected {
	at: CallId;
	called: Called | null;
	all: boolean; // of its thread, no more calls come
}

/** The call in the address, if it is loaded. */
export function useSelected(scene: Scene, progress: ReadonlyMap<number, Progress>): Selected | null {
	const name = text('call');
	const at = useMemo(() => parseCall(name), [name]);
	const [state, put] = useState<Selected | null>(null);
	const clicked = useMemo(() => {
		const s = scene.selected;
		return at && s && formatCall(s) === name ? { at, called: s, all: false } : null;
	}, [at]);
	useEffect(() => {
		let left = false;
		const show = (s: Selected | null) => {
			if (left) return;
			scene.selected = s?.called ?? null;
			scene.drawOver();
			put(s);
		};
		if (at) void scene.factsOf(at).then((facts) => show({ at, ...facts }));
		else show(null);
		return () => { left = true; };
	}, [at, at && progress.get(at.tid)]);
	return at && (state?.at === at ? state : clicked ?? state ?? { at, called: null, all: false }); // the previous one is shown until it is described
}

const hitOf = (c: Call): Hit => ({ method: c.method, start: c.start_ns, end: c.start_ns + c.dur_ns, depth: c.depth, merged: 0, index: -1 });

const length = (h: Hit) => h.end - h.start;

/** Running and waiting, where the trace has the thread's states. */
function States({ p, call, thread }: { p: TimelineProps; call: Called; thread: Thread }) {
	const known = useMemo(() => p.sums.some((s) => s.tid === thread.tid && (s.kind === 'state' || WAITS.includes(s.kind))), [p.sums, thread]);
	const { start, end } = call.hit;
	const load = useLoad(known && end > start ? `${p.id} ${thread.tid} ${start} ${end}` : '', (s) => (known && end > start ? api.noteSums(p.id, { from: start, to: end }, s) : Promise.resolve(null)));
	const [line] = load.value ? linesOf(load.value.sums, [thread]) : [];
	if (!line) return null;
	return <>
		{line.states.map((ns, i) => ns > 0 && <><dt key={i}><i class="swatch" style={{ background: `var(--state-${STATES[i]})` }} />{STATE_NAMES[i]}</dt><dd>{duration(ns)} <span class="quiet">{percent(ns / (end - start))}</span></dd></>)}
		{line.waits.map((ns, i) => ns > 0 && <><dt key={WAITS[i]}>{kindTitle(WAITS[i])}</dt><dd>{duration(ns)} <span class="quiet">{percent(ns / (end - start))}</span></dd></>)}
	</>;
}

interface PaneActions {
	goTo(tid: number, hit: Hit): void;
	unselect(): void;
	zoomToCall(): void;
}

/** The calls of its method, also in collapsed threads, from the server. */
function useAround(p: TimelineProps, call: Called): Loaded<Calls> {
	const { method } = call.hit;
	const around = formatCall(call);
	return useLoad(`${p.id} ${around}`, (s) => api.calls(p.id, { method, around, limit: 0 }, s));
}

function Around({ p, load, method, on }: { p: TimelineProps; load: Loaded<Calls>; method: number; on: PaneActions }) {
	const v = load.value;
	const step = (to: Call | null | undefined, label: string, shown: string) =>
		<button class="small" disabled={!to || load.busy} aria-label={label} onClick={() => to && on.goTo(to.tid, hitOf(to))}>{shown}</button>;
	const steps = (before: Call | null | undefined, after: Call | null | undefined, labels: [string, string]) =>
		<dd class="row tight">{step(before, labels[0], tr('Previous'))}{step(after, labels[1], tr('Next'))}</dd>;
	return <>
		<dt>{tr('Same method')}</dt>
		<dd class="row tight">{v && <button class="small" title={tr('p50 {p50}, p95 {p95}, longest {max}', { p50: duration(v.p50_ns), p95: duration(v.p95_ns), max: duration(v.max_ns) })}
			onClick={() => set({ calls: method, min: null, max: null, threads: 'all', tab: 'calls' }, true)}>{tr.many(v.count, 'List its only call', 'List its {n} calls')}</button>}</dd>
		<dt>{tr('on this thread')}</dt>{steps(v?.previous_here, v?.next_here, [tr('Previous call of the method on this thread'), tr('Next call of the method on this thread')])}
		{p.threads.length > 1 && <><dt>{tr('in the trace')}</dt>{steps(v?.previous, v?.next, [tr('Previous call of the method in the trace'), tr('Next call of the method in the trace')])}</>}
	</>;
}

function Facts({ p, call, thread, on }: { p: TimelineProps; call: Called; thread: Thread | undefined; on: PaneActions }) {
	const wall = length(call.hit);
	const parent = call.stack[call.stack.length - 1];
	const around = useAround(p, call);
	const cpu = around.busy ? null : around.value?.around?.cpu_ns ?? null; // the last call's while this one loads
	return <dl class="facts">
		<dt>{tr('wall')}</dt><dd><strong>{duration(wall)}</strong></dd>
		{call.self !== null && <><dt>{tr('self')}</dt><dd>{duration(call.self)} {wall > 0 && <span class="quiet">{percent(call.self / wall)}</span>}</dd></>}
		{cpu !== null && <><dt>CPU</dt><dd>{duration(cpu)} {wall > 0 && <span class="quiet">{percent(cpu / wall)}</span>}</dd></>}
		{thread && <States p={p} call={call} thread={thread} />}
		{parent && length(parent) > 0 && <><dt>{tr('of its caller')}</dt><dd>{percent(wall / length(parent))}</dd></>}
		<dt>{tr('Thread')}</dt><dd class="anywhere"><ThreadName name={thread?.name} tid={call.tid} /></dd>
		<dt>{tr('starts at')}</dt><dd>{duration(call.start - p.whole.from)}</dd>
		<dt>{tr('depth')}</dt><dd>{call.depth}</dd>
		<Around p={p} load={around} method={call.hit.method} on={on} />
	</dl>;
}

/** A call in a list; the bar is its share of the total. */
function Line({ hit, name, whole, current = false, go }: { hit: Hit; name: string; whole: number; current?: boolean; go: () => void }) {
	const short = hit.merged > 1 ? tr('{merged} short ones', { merged: count(hit.merged) }) : splitName(name)[1] || name;
	const share = whole > 0 ? length(hit) / whole : 0;
	return (
		<li style={{ '--share': `${Math.min(100, 100 * share).toFixed(1)}%` }}>
			<button class="plain" title={name} aria-current={current || undefined} disabled={hit.merged > 1} onClick={go}><span class="mono">{short}</span></button>
			<span class="num quiet">{duration(length(hit))}</span><span class="num quiet">{percent(share)}</span>
		</li>);
}

function Stack({ p, call, on }: { p: TimelineProps; call: Called; on: PaneActions }) {
	const list = useRef<HTMLOListElement>(null);
	const root = length(call.stack[0] ?? call.hit);
	useEffect(() => {
		if (list.current) list.current.scrollTop = list.current.scrollHeight; // its nearest callers
	}, [call]);
	return (
		<section aria-label={tr('Stack')}><h3>{tr('Stack')} <span class="quiet">{tr('from the root')}</span></h3>
			<ol ref={list} tabIndex={0}>{[...call.stack, call.hit].map((h) => <Line key={h.depth} hit={h} name={p.names[h.method] ?? ''} whole={root} current={h === call.hit} go={() => on.goTo(call.tid, h)} />)}</ol>
		</section>);
}

function Callees({ p, call, on }: { p: TimelineProps; call: Called; on: PaneActions }) {
	const { callees, made } = call;
	return (
		<section aria-label={tr('Callees')}><h3>{tr('Callees')} <span class="quiet">{made > callees.length ? tr('the longest {n} of {made}', { n: count(callees.length), made: count(made) }) : count(made)}</span></h3>
			{callees.length === 0 && <p class="quiet">{tr('No callees were recorded.')}</p>}
			{callees.length > 0 && <ol tabIndex={0}>{callees.map((h) => <Line key={h.index} hit={h} name={p.names[h.method] ?? ''} whole={length(call.hit)} go={() => on.goTo(call.tid, h)} />)}</ol>}
		</section>);
}

export function CallPane({ p, selected, on }: { p: TimelineProps; selected: Selected; on: PaneActions }) {
	const { at, called: call } = selected;
	const thread = p.threads.find((t) => t.tid === at.tid);
	const all = selected.all || !thread?.slices; // or none ever comes
	const words = wordsOf(thread ? [thread] : []);
	const name = (call && p.names[call.hit.method]) ?? '';
	const takes = call ? signatureOf(p.id, call.hit.method) : '';
	const key = (e: KeyboardEvent) => {
		if (e.key !== 'Escape') return;
		e.stopPropagation();
		on.unselect();
	};
	const link = () => {
		flush();
		return location.href;
	};
	return (
		<section class="callpane" aria-label={tr('The selected call')} onKeyDown={key}>
			<header>
				<h3 class="mono anywhere">{call ? <MethodName name={name} /> : tr('Selected call')}</h3>
				{call && <div class="row tight">
					<button class="small" onClick={() => on.zoomToCall()}>{tr('Zoom to it')}</button>
					{name && !name.startsWith('[') && <button class="small" title={tr('Source location, owners and last changes')} onClick={() => showSource(name)}>{tr('Source')}</button>}
					<Copy text={link} label={tr('Copy link')} />
				</div>}
				<button class="plain close" aria-label={tr('Clear the selection')} onClick={() => on.unselect()}>×</button>
			</header>
			{takes && <p class="mono quiet anywhere signature">{splitName(withoutParameters(name))[1]}<wbr />{takes}</p>}
			{!call && !all && <Busy what={tr('Loading {many}', { many: words.many })} />}
			{!call && all && <p class="quiet" role="status">{tr('No loaded call starts there. Zoom in to load more of a long trace.')}</p>}
			{call && <div class="columns">
				<Facts p={p} call={call} thread={thread} on={on} />
				<Stack p={p} call={call} on={on} />
				<Callees p={p} call={call} on={on} />
			</div>}
		</section>
	);
}
