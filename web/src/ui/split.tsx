// A line between two panes: dragged by pointer, moved by arrows. Its position is stored in this browser.
import { useState } from 'preact/hooks';
import { remember, remembered } from './theme';

const STEP = 2; // percent, of one key

interface Split {
	id: string;
	first: number; // percent of what holds the panes
	min: number;
	max: number;
}

const keyOf = (s: Split) => `tracewell-split-${s.id}`;
const within = (s: Split, v: number) => Math.max(s.min, Math.min(s.max, v));

/** How much the pane has, in percent. */
export function useSplit(s: Split): [number, (to: number) => void] {
	const [share, put] = useState(() => within(s, Number(remembered(keyOf(s))) || s.first));
	return [share, (to) => {
		const v = Math.round(10 * within(s, to)) / 10;
		put(v);
		remember(keyOf(s), v === s.first ? '' : String(v));
	}];
}

/** `upright`: between columns, of which the right one is sized; otherwise the upper of two rows is. */
export function Separator({ split, label, upright = false, share, move }: { split: Split; label: string; upright?: boolean; share: number; move: (to: number) => void }) {
	const drag = (e: PointerEvent) => {
		const line = e.currentTarget as HTMLElement;
		if (!line.hasPointerCapture(e.pointerId)) return;
		const box = line.parentElement!.getBoundingClientRect();
		move(100 * (upright ? (box.right - e.clientX) / box.width : (e.clientY - box.top) / box.height));
	};
	const key = (e: KeyboardEvent) => {
		const more = upright ? 'ArrowLeft' : 'ArrowDown';
		const less = upright ? 'ArrowRight' : 'ArrowUp';
		const to = { [more]: share + STEP, [less]: share - STEP, Home: split.min, End: split.max }[e.key];
		if (to === undefined) return;
		e.preventDefault();
		move(to);
	};
	return <div class={`separator ${upright ? 'upright' : ''}`} role="separator" tabIndex={0} aria-label={label} aria-orientation={upright ? 'vertical' : 'horizontal'}
		aria-valuenow={Math.round(share)} aria-valuemin={split.min} aria-valuemax={split.max} onKeyDown={key} onDblClick={() => move(split.first)}
		onPointerDown={(e) => { e.preventDefault(); e.currentTarget.focus(); e.currentTarget.setPointerCapture(e.pointerId); }} onPointerMove={drag} />;
}
