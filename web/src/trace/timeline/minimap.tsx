// The whole trace in one strip: how many threads are busy when, or the first counter of a trace without calls, and which part is in view.
import { useRef } from 'preact/hooks';
import { Flags } from '../parts/annotate';
import type { Span } from '../state/axis';
import { Strip } from './strip';
import { viewOf } from '../state/view';

export function Minimap({ activity, whole, range, onView }: { activity: number[]; whole: Span; range: Span | null; onView: (v: Span) => void }) {
	const box = useRef<HTMLDivElement>(null);
	const { from, to } = viewOf(whole);
	const span = Math.max(1, whole.to - whole.from);
	const share = (t: number) => `${Math.max(0, Math.min(100, ((t - whole.from) / span) * 100))}%`;
	const jump = (e: PointerEvent) => {
		if (!(e.buttons & 1) || !box.current) return;
		const r = box.current.getBoundingClientRect();
		const t = whole.from + ((e.clientX - r.left) / r.width) * span;
		onView({ from: t - (to - from) / 2, to: t + (to - from) / 2 });
	};
	return <>
		<div ref={box} class="minimap" onPointerDown={jump} onPointerMove={jump} aria-hidden="true">
			<Strip activity={activity} />
			{range && <div class="sel" style={{ left: share(range.from), width: `calc(${share(range.to)} - ${share(range.from)})` }} />}
			<div class="shade" style={{ left: 0, width: share(from) }} />
			<div class="shade" style={{ left: share(to), right: 0 }} />
			<div class="window" style={{ left: share(from), width: `calc(${share(to)} - ${share(from)})` }} />
		</div>
		<Flags whole={whole} />
	</>;
}
