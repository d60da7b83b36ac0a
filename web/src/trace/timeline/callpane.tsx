// The call that is selected: its times, the stack from the root to it, its callees, the calls of its method around it.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { api, type Thread } from '../../api/api';
import { parseCall } from '../state/selection';
import { count, duration, percent, splitName } from '../../i18n/format';
import { wordsOf } from '../../api/source';
import type { Called, CallId, Hit } from '../worker/messages';
import { kindTitle } from '../state/notekinds';
import { Busy, Copy, MethodName, useLoad } from '../../ui/parts';
import { flush, text } from '../../ui/route';
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

/** The call that the address names, as far as it is loaded. */
export function useSelected(scene: Scene, progress: ReadonlyMap<number, Progress>): Selected | null {
	const name = text('call');
	const at = useMemo(() => parseCall(name), [name]);
	const [state, put] = useState<Selected | null>(null);
	const whole = [...progress.values()].filter((q) => q.complete).length; // threads that calls of the method may be on
	useEffect(() => {
		let left = false;
		const show = (s: Selected | null) => {
			if (left) return;
			scene.selected = s?.called ?? null;
			scene.drawOver();
			put(s);
		};
		if (at) void scene.tellOf(at).then((told) => show({ at, ...told }));
		else show(null);
		return () => { left = true; };
	}, [at, at && progress.get(at.tid), whole]);
	return at && (state ?? { at, called: null, all: false }); // until it is told of, the one before stays
}

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

export interface PaneActions {
	goTo(tid: number, hit: Hit): void;
	unselect(): void;
	zoomToCall(): void;
}

function Around({ call, several, on }: { call: Called; several: boolean; on: PaneActions }) {
	const { before, after } = call.near;
	const here = (h: Hit | null) => h && { tid: call.tid, hit: h };
	const step = (to: { tid: number; hit: Hit } | null, label: string, shown: string) =>
		<button class="small" disabled={!to} aria-label={label} onClick={() => to && on.goTo(to.tid, to.hit)}>{shown}</button>;
	return <>
		<dt>{tr('Same method')}</dt>
		<dd class="row tight">{step(here(before.here), tr('Previous call of the method on this thread'), tr('Previous'))}{step(here(after.here), tr('Next call of the method on this thread'), tr('Next'))}</dd>
		{several && <><dt>{tr('in open threads')}</dt>
			<dd class="row tight">{step(before.open, tr('Previous call of the method in all open threads'), tr('Previous'))}{step(after.open, tr('Next call of the method in all open threads'), tr('Next'))}</dd></>}
	</>;
}

function Facts({ p, call, thread, opened, on }: { p: TimelineProps; call: Called; thread: Thread | undefined; opened: number; on: PaneActions }) {
	const wall = length(call.hit);
	const parent = call.stack[call.stack.length - 1];
	return <dl class="facts">
		<dt>{tr('wall')}</dt><dd><strong>{duration(wall)}</strong></dd>
		{call.self !== null && <><dt>{tr('self')}</dt><dd>{duration(call.self)} {wall > 0 && <span class="quiet">{percent(call.self / wall)}</span>}</dd></>}
		{thread && <States p={p} call={call} thread={thread} />}
		{parent && length(parent) > 0 && <><dt>{tr('of its caller')}</dt><dd>{percent(wall / length(parent))}</dd></>}
		<dt>{tr('Thread')}</dt><dd class="anywhere">{thread?.name || tr('thread {tid}', { tid: call.tid })} <span class="quiet">{call.tid}</span></dd>
		<dt>{tr('starts at')}</dt><dd>{duration(call.start - p.whole.from)}</dd>
		<dt>{tr('depth')}</dt><dd>{call.depth}</dd>
		<Around call={call} several={opened > 1} on={on} />
	</dl>;
}

/** A call in a list; the bar is its share of `whole`. */
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

export function CallPane({ p, selected, opened, on }: { p: TimelineProps; selected: Selected; opened: number; on: PaneActions }) {
	const { at, called: call } = selected;
	const thread = p.threads.find((t) => t.tid === at.tid);
	const all = selected.all || !thread?.slices; // or none ever comes
	const words = wordsOf(thread ? [thread] : []);
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
				<h3 class="mono anywhere">{call ? <MethodName name={p.names[call.hit.method] ?? ''} /> : tr('Selected call')}</h3>
				{call && <div class="row tight">
					<button class="small" onClick={() => on.zoomToCall()}>{tr('Zoom to it')}</button>
					<Copy text={link} label={tr('Copy link')} />
				</div>}
				<button class="plain close" aria-label={tr('Clear the selection')} onClick={() => on.unselect()}>×</button>
			</header>
			{!call && !all && <Busy what={tr('Loading {many}', { many: words.many })} />}
			{!call && all && <p class="quiet" role="status">{tr('No loaded call starts there. Zoom in to load more of a long trace.')}</p>}
			{call && <div class="columns">
				<Facts p={p} call={call} thread={thread} opened={opened} on={on} />
				<Stack p={p} call={call} on={on} />
				<Callees p={p} call={call} on={on} />
			</div>}
		</section>
	);
}
