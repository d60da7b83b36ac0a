// The parts around the timeline's canvas: the item under the pointer, the status line and the table below.
import { useEffect, useRef } from 'preact/hooks';
import type { Thread } from '../../api/api';
import { count, duration } from '../../i18n/format';
import { useTable } from '../../ui/panelstate';
import type { Hit } from '../worker/messages';
import { Busy } from '../../ui/parts';
import { zoomed } from '../state/axis';
import type { Scene } from './scene';
import { many, wordsOf } from '../../api/source';
import type { Progress } from '../worker/store';
import { tr } from '../../i18n/strings/trace';
import type { Shown } from './timelinecontrol';
import type { TimelineProps } from './timelineview';
import { viewOf } from '../state/view';
import { risen } from '../state/progress';
import { CallTip, NoteTip } from '../parts/tip';
import { nameOfThread } from '../parts/threadname';

export function HoverTip({ shown, p }: { shown: Shown; p: TimelineProps }) {
	const { hover: h, x, y } = shown;
	if (h.what === 'note') return <NoteTip spot={h.spot} threads={p.all} start={p.whole.from} x={x} y={y} />;
	const t = p.threads.find((q) => q.tid === h.tid);
	return <CallTip words={wordsOf(t ? [t] : [])} hit={h.hit} about={h.about} name={p.names[h.hit.method] ?? ''} start={p.whole.from} x={x} y={y} />;
}

/** The calls in view are listed while their table is open. */
function useListed(p: TimelineProps, ready: boolean, scene: Scene, list: (h: Hit[] | null) => void): [boolean, () => void] {
	const [listed, turn] = useTable('visible');
	const tid = p.focus?.tid;
	useEffect(() => {
		scene.list(listed && ready && tid !== undefined ? tid : null);
		if (!listed) list(null);
	}, [listed, ready, tid]);
	return [listed, turn];
}

export function Under({ p, message, progress, wanted, failed, scene, calls, list, goTo }: {
	p: TimelineProps; message: string; progress: Progress[]; wanted: number; failed: boolean; scene: Scene; calls: Hit[] | null; list: (h: Hit[] | null) => void; goTo: (tid: number, h: Hit) => void;
}) {
	const v = viewOf(p.whole);
	const ready = progress.length === wanted && progress.every((q) => q.complete);
	const shown = useRef(0);
	shown.current = ready ? 0 : risen(shown.current, progress);
	const slices = progress.reduce((n, q) => n + q.slices, 0);
	const shares = { span: duration(v.to - v.from), whole: duration(p.whole.to - p.whole.from) };
	const words = wordsOf(p.focus ? [p.focus] : []);
	const [listed, turn] = useListed(p, ready, scene, list);
	return <>
		<div class="row under">
			<p class="keyed" role="status">{message}</p>
			{!ready && !failed && <Busy what={shown.current > 0 ? tr('Loading {many}, {total} %', { many: words.many, total: shown.current }) : tr('Loading {many}', { many: words.many })} />}
			{ready && p.names.length === 0 && <span class="quiet" data-ready="1">{tr('No calls were recorded. The view shows {span} of {whole}.', shares)}</span>}
			{ready && p.names.length > 0 && <span class="quiet" data-ready="1">{tr('{slices} in {threads}. The view shows {span} of {whole}.', { slices: many(slices, words), threads: tr.many(wanted, '{n} open thread', '{n} open threads'), ...shares })}</span>}
			<span class="quiet" role="status">{p.range && tr('{from} selected{tids}', { from: duration(p.range.to - p.range.from), tids: p.range.tids ? tr(' of {tid}', { tid: p.range.tids.size === 1 && p.focus ? nameOfThread(p.focus.tid, [p.focus]) : tr('{tids} threads', { tids: count(p.range.tids.size) }) }) : '' })}</span>
			<span class="grow" />
			<button class="small" aria-label={tr('Zoom in')} onClick={() => scene.move(zoomed(scene.view, 0.5, 0.5))}>+</button>
			<button class="small" aria-label={tr('Zoom out')} onClick={() => scene.move(zoomed(scene.view, 2, 0.5))}>−</button>
			<button class="small" onClick={() => scene.move(p.whole)}>{tr('Whole trace')}</button>
			{p.focus && p.names.length > 0 && <button class="small" aria-expanded={listed} onClick={turn}>{listed ? tr('Hide the table') : tr('Visible {many} as a table', { many: words.many })}</button>}
		</div>
		{listed && calls && <VisibleCalls of={p.focus} calls={calls} names={p.names} start={p.whole.from} goTo={goTo} />}
	</>;
}

function VisibleCalls({ of, calls, names, start, goTo }: { of: Thread | null; calls: Hit[]; names: string[]; start: number; goTo: (tid: number, h: Hit) => void }) {
	return (
		<div class="scroll short" tabIndex={0}>
			<table>
				<caption class="quiet">{tr('The longest {many} of {name} in view, at most 200, in time order', { many: wordsOf(of ? [of] : []).many, name: of?.name || tr('the thread') })}</caption>
				<thead><tr><th class="num">{tr('Start')}</th><th class="num">{tr('Duration')}</th>
					<th class="num">{tr('Depth')}</th><th>{tr('Method')}</th></tr></thead>
				<tbody>{calls.map((c, i) => (
					<tr key={i}><td class="num">{duration(c.start - start)}</td><td class="num">{duration(c.end - c.start)}</td>
						<td class="num">{c.depth}</td>
						<td class="mono name">{c.merged > 1 ? tr('{merged} short {many}, the longest {names}', { merged: count(c.merged), many: wordsOf(of ? [of] : []).many, names: names[c.method] }) : <button class="plain" disabled={!of} onClick={() => of && goTo(of.tid, c)}>{names[c.method]}</button>}</td></tr>))}</tbody>
			</table>
		</div>
	);
}
