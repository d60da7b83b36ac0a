// What is under the pointer.
import type { ComponentChildren } from 'preact';
import type { Thread } from './api';
import type { Spot } from './flows';
import { count, duration, percent } from './format';
import type { About, Hit } from './messages';
import { kindTitle } from './notekinds';
import { MethodName } from './parts';
import { many, type Words } from './source';

/** Beside the pointer, on the side with more room; x and y in the window. */
export function Tip({ x, y, name, children }: { x: number; y: number; name: string; children: ComponentChildren }) {
	const style = {
		...(x > innerWidth / 2 ? { right: `${innerWidth - x + 10}px` } : { left: `${x + 12}px` }),
		...(y > innerHeight / 2 ? { bottom: `${innerHeight - y + 12}px` } : { top: `${y + 16}px` }),
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
			{hit.merged > 1 && <div>{count(hit.merged)} short {words.many} drawn as one; the longest is named</div>}
			<dl>
				<dt>wall</dt><dd>{duration(wall)}</dd>
				{self !== null && <><dt>self</dt><dd>{duration(self)}</dd></>}
				{busy !== null && <><dt>share</dt><dd>{percent(wall / (busy || 1))} of the thread's busy time</dd></>}
				{methodCount !== null && <><dt>count</dt><dd>{many(methodCount, words)} of this method in the thread</dd></>}
				{methodSelf !== null && methodCount !== null && methodCount > 1 &&
					<><dt>all its self</dt><dd>{duration(methodSelf)}, {percent(methodSelf / (busy || 1))}</dd></>}
				<dt>starts at</dt><dd>{duration(hit.start - start)}</dd>
				<dt>depth</dt><dd>{hit.depth}</dd>
			</dl>
		</Tip>
	);
}

/** A note of a lane, or several that were drawn together. */
export function NoteTip({ spot: { lane, i }, threads, start, x, y }: { spot: Spot; threads: Thread[]; start: number; x: number; y: number }) {
	const named = (tid: number) => threads.find((t) => t.tid === tid)?.name || `thread ${tid}`;
	const many = lane.notes[i] > 1;
	const dur = lane.dur[i];
	return (
		<Tip x={x} y={y} name={lane.kind === 'counter' ? lane.name : lane.text[i] || kindTitle(lane.kind)}>
			{many && <div>{lane.kind === 'counter' ? `${count(lane.notes[i])} changes drawn as one` : `${count(lane.notes[i])} drawn as one; what took most is named`}</div>}
			<dl>
				<dt>what</dt><dd>{kindTitle(lane.kind)}{lane.tid !== null ? ` of ${named(lane.tid)}` : ''}</dd>
				{lane.kind === 'counter' ? <><dt>value</dt><dd>{many ? `${count(lane.low[i])} to ${count(lane.high[i])}` : count(lane.value[i])}</dd></>
					: dur > 0 && <><dt>for</dt><dd>{duration(dur)}</dd></>}
				{lane.kind === 'contention' && lane.value[i] > 0 && !many && <><dt>held by</dt><dd>{named(lane.value[i])}</dd></>}
				{lane.kind === 'state' && lane.text[i] === 'running' && lane.value[i] >= 0 && !many && <><dt>on CPU</dt><dd>{lane.value[i]}</dd></>}
				<dt>starts at</dt><dd>{duration(Math.max(0, lane.ts[i] - start))}</dd>
			</dl>
		</Tip>
	);
}
