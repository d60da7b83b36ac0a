// The whole thread in one strip: how busy it is, and which part is in view.
import { useRef } from 'preact/hooks';
import type { Thread } from './api';
import { Strip } from './strip';

export function Minimap({ thread, start, end, from, to, selection, onView }: {
	thread: Thread; start: number; end: number; from: number; to: number;
	selection: [number, number] | null; onView: (from: number, to: number) => void;
}) {
	const box = useRef<HTMLDivElement>(null);
	const span = Math.max(1, end - start);
	const share = (t: number) => `${Math.max(0, Math.min(100, ((t - start) / span) * 100))}%`;
	const jump = (e: PointerEvent) => {
		if (!(e.buttons & 1) || !box.current) return;
		const r = box.current.getBoundingClientRect();
		const t = start + ((e.clientX - r.left) / r.width) * span;
		onView(t - (to - from) / 2, t + (to - from) / 2);
	};
	return (
		<div ref={box} class="minimap" onPointerDown={jump} onPointerMove={jump} aria-hidden="true">
			<Strip activity={thread.activity} />
			{selection && <div class="sel" style={{ left: share(selection[0]), width: `calc(${share(selection[1])} - ${share(selection[0])})` }} />}
			<div class="shade" style={{ left: 0, width: share(from) }} />
			<div class="shade" style={{ left: share(to), right: 0 }} />
			<div class="window" style={{ left: share(from), width: `calc(${share(to)} - ${share(from)})` }} />
		</div>
	);
}
