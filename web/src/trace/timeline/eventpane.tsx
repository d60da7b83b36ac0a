// The selected event: kind, time, duration, thread and targets.
import { useEffect, useLayoutEffect } from 'preact/hooks';
import type { Note } from '../../api/api';
import { duration } from '../../i18n/format';
import { serverText } from '../../i18n/servertext';
import { tr } from '../../i18n/strings/trace';
import { Busy, Copy, Failure, useLoad } from '../../ui/parts';
import { flush, text } from '../../ui/route';
import { factsOf } from '../panels/eventfacts';
import { nameOfThread, ThreadName } from '../parts/threadname';
import { formatEvent, loadEvent, spotOf, type EventId } from '../state/event';
import type { Spot } from '../state/flows';
import { showTab } from '../state/tab';
import { kindTitle } from '../state/notekinds';
import type { TimelineProps } from './timelineview';

interface EventActions {
	showEvent(s: Spot | null): void; // it is loaded
	zoomToEvent(): void;
	step(forward: boolean): void;
	follow(): void;
	mark(): void;
	unselect(): void;
}

function Facts({ p, note }: { p: TimelineProps; note: Note }) {
	const named = (tid: number) => nameOfThread(tid, p.all);
	return <dl class="facts">
		<dt>{tr('what')}</dt><dd>{kindTitle(note.kind)}</dd>
		{note.dur_ns !== null && note.dur_ns >= 0 && <><dt>{tr('for')}</dt><dd><strong>{duration(note.dur_ns)}</strong></dd></>}
		<dt>{tr('starts at')}</dt><dd>{duration(note.ts_ns - p.whole.from)}</dd>
		<dt>{tr('Thread')}</dt><dd class="anywhere">{note.tid === null ? tr('the trace') : <ThreadName name={p.all.find((t) => t.tid === note.tid)?.name} tid={note.tid} />}</dd>
		{factsOf(note, named).map((f) => <><dt key={f.key}>{f.label}</dt><dd class="anywhere">{f.text}</dd></>)}
	</dl>;
}

export function EventPane({ p, at, on }: { p: TimelineProps; at: EventId; on: EventActions }) {
	const load = useLoad(`${p.id} ${formatEvent(at)}`, (s) => loadEvent(p.id, at, s));
	const note = load.value?.ts_ns === at.ts && load.value.kind === at.kind && load.value.tid === at.tid ? load.value : null;
	useLayoutEffect(() => { // a button of the pane may be pressed immediately after
		if (note && text('event') === formatEvent(at)) on.showEvent(spotOf(note)); // a key may have selected another event during the request
	}, [note]);
	useEffect(() => () => on.showEvent(null), []);
	const leads = note && (note.value > 0 && ['contention', 'binder', 'flow', 'thread_created', 'wakeup'].includes(note.kind) || note.kind === 'state' && /^run/.test(note.text));
	const link = () => {
		flush();
		return location.href;
	};
	const key = (e: KeyboardEvent) => {
		if (e.key !== 'Escape') return;
		e.stopPropagation();
		on.unselect();
	};
	return (
		<section class="callpane" aria-label={tr('The selected event')} onKeyDown={key}>
			<header>
				<h3 class="mono anywhere">{note ? (note.kind === 'anr' ? serverText(note.text) : note.text) || kindTitle(note.kind) : kindTitle(at.kind)}</h3>
				<div class="row tight">
					<button class="small" onClick={() => on.step(false)} aria-label={tr('Previous event')}>{tr('Previous')}</button>
					<button class="small" onClick={() => on.step(true)} aria-label={tr('Next event')}>{tr('Next')}</button>
					{note && <button class="small" onClick={() => on.zoomToEvent()}>{tr('Zoom to it')}</button>}
					{(note?.dur_ns ?? 0) > 0 && <button class="small" onClick={() => { on.mark(); showTab('range'); }}>{tr('Select its time')}</button>}
					{leads && <button class="small" onClick={() => on.follow()}>{tr('Follow to the other thread')}</button>}
					<Copy text={link} label={tr('Copy link')} />
				</div>
				<button class="plain close" aria-label={tr('Clear the selection')} onClick={() => on.unselect()}>×</button>
			</header>
			{load.error && <Failure error={load.error} retry={load.again} />}
			{load.busy && !note && <Busy what={tr('Loading')} />}
			{!load.busy && !load.error && !note && <p class="quiet" role="status">{tr('No event of this kind starts there.')}</p>}
			{note && <Facts p={p} note={note} />}
		</section>
	);
}
