// The tooltip of the item under the pointer.
import type { ComponentChildren } from 'preact';
import type { Thread } from '../../api/api';
import type { Spot } from '../state/flows';
import { count, duration, percent } from '../../i18n/format';
import { interval } from '../../i18n/interval';
import type { About, Hit } from '../worker/messages';
import { counterValue, kindTitle, OUTCOMES } from '../state/notekinds';
import { MethodName } from '../../ui/parts';
import { many, type Words } from '../../api/source';
import { nameOfThread } from './threadname';
import { tr } from '../../i18n/strings/trace';

const ROW = 20; // at least: the row under the pointer stays in view

/** Next to the pointer, on the side with more space; x and y in the window. */
export function Tip({ x, y, name, children }: { x: number; y: number; name: string; children: ComponentChildren }) {
	const style = {
		...(x > innerWidth / 2 ? { right: `${innerWidth - x + 10}px` } : { left: `${x + 12}px` }),
		...(y > innerHeight / 2 ? { bottom: `${innerHeight - y + ROW}px` } : { top: `${y + ROW}px` }),
	};
	return (
		<div class="tip" style={style}>
			<div class="mono"><MethodName name={name} /></div>
			{children}
		</div>
	);
}

/** A call: its own times first, then what its method does in the whole thread. */
export function CallTip({ words, hit, about, name, start, x, y }: {
	words: Words; hit: Hit; about: About; name: string; start: number; x: number; y: number;
}) {
	const wall = hit.end - hit.start;
	const { self, methodCount, methodSelf, busy } = about;
	return (
		<Tip x={x} y={y} name={name}>
			{hit.merged > 1 && <div>{tr('{merged} short {many} drawn as one; the longest is named', { merged: count(hit.merged), many: words.many })}</div>}
			<dl>
				<dt>{tr('wall')}</dt><dd>{duration(wall)}</dd>
				{self !== null && <><dt>{tr('self')}</dt><dd>{duration(self)}</dd></>}
				{busy !== null && <><dt>{tr('share')}</dt><dd>{tr("{busy} of the thread's busy time", { busy: percent(wall / (busy || 1)) })}</dd></>}
				{methodCount !== null && <><dt>{tr('count')}</dt><dd>{tr('{methodCount} of this method in the thread', { methodCount: many(methodCount, words) })}</dd></>}
				{methodSelf !== null && methodCount !== null && methodCount > 1 &&
					<><dt>{tr('total self time')}</dt><dd>{duration(methodSelf)}, {percent(methodSelf / (busy || 1))}</dd></>}
				<dt>{tr('starts at')}</dt><dd>{duration(hit.start - start)}</dd>
				<dt>{tr('depth')}</dt><dd>{hit.depth}</dd>
			</dl>
		</Tip>
	);
}

/** A note of a lane, or several that were drawn together. */
export function NoteTip({ spot: { lane, i }, threads, start, x, y }: { spot: Spot; threads: Thread[]; start: number; x: number; y: number }) {
	const named = (tid: number) => nameOfThread(tid, threads);
	const many = lane.notes[i] > 1;
	const dur = lane.dur[i];
	return (
		<Tip x={x} y={y} name={lane.kind === 'counter' ? lane.name : lane.text[i] || kindTitle(lane.kind)}>
			{many && <div>{lane.kind === 'counter' ? tr('{notes} changes drawn as one', { notes: count(lane.notes[i]) }) : tr('{notes} drawn as one, named after the longest', { notes: count(lane.notes[i]) })}</div>}
			<dl>
				<dt>{tr('what')}</dt><dd>{kindTitle(lane.kind)}{lane.tid !== null ? tr(' of {tid}', { tid: named(lane.tid) }) : ''}</dd>
				{lane.outcome && <><dt>{tr('result')}</dt><dd>{OUTCOMES[lane.outcome]}</dd></>}
				{lane.kind === 'counter' ? <><dt>{tr('value')}</dt><dd>{many && lane.low[i] !== lane.high[i] ? interval(counterValue(lane.name, lane.low[i]), counterValue(lane.name, lane.high[i])) : counterValue(lane.name, lane.value[i])}</dd></>
					: dur > 0 && <><dt>{tr('for')}</dt><dd>{duration(dur)}</dd></>}
				{(lane.kind === 'contention' || lane.kind === 'binder') && lane.value[i] > 0 && !many && <><dt>{lane.kind === 'binder' ? tr('answered by') : tr('held by')}</dt><dd>{named(lane.value[i])}</dd></>}
				{lane.kind === 'state' && lane.text[i] === 'running' && lane.value[i] >= 0 && !many && <><dt>{tr('on CPU')}</dt><dd>{lane.value[i]}</dd></>}
				<dt>{tr('starts at')}</dt><dd>{duration(Math.max(0, lane.ts[i] - start))}</dd>
			</dl>
		</Tip>
	);
}
