// What is under the pointer.
import type { ComponentChildren } from 'preact';
import { count, duration, percent, splitName } from './format';
import type { About, Hit } from './messages';
import { many, type Words } from './source';

/** Beside the pointer, on the side with more room; x and y in the window. */
export function Tip({ x, y, name, children }: { x: number; y: number; name: string; children: ComponentChildren }) {
	const [pkg, rest] = splitName(name);
	const style = {
		...(x > innerWidth / 2 ? { right: `${innerWidth - x + 10}px` } : { left: `${x + 12}px` }),
		...(y > innerHeight / 2 ? { bottom: `${innerHeight - y + 12}px` } : { top: `${y + 16}px` }),
	};
	return (
		<div class="tip" style={style}>
			<div class="mono"><span class="quiet">{pkg}</span>{rest}</div>
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
