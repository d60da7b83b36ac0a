// Translates pointer, wheel and keys on the timeline's canvas to actions.
import { panned, zoomed } from '../state/axis';
import type { Scene } from './scene';
import { ROW, type Group } from './tracks';

const MOVED = 3; // CSS pixels; less is a click
const PINCHED = 0.0025; // of the logarithm of the zoom, for a step of the wheel

/** Actions of the timeline around the scene. */
export interface Actions {
	rows(g: Group, row: number): void; // of an open thread, the first that is shown
	select(from: number, to: number, tids: ReadonlySet<number> | null): void; // null: the threads are unchanged
	clear(): void;
	menu(): void; // of the selected call
	zoomTo(what: 'whole' | 'selection'): void;
	dwell(on: boolean): void; // a drag begins or ends: nothing is shown under the pointer
	focus(step: number): void;
	toggle(): void;
	alone(): void;
	full(): void;
	add(): void;
	selectView(): void;
	mark(): void; // the selection, as a range
	extend(share: number): void; // of the view, the selection's end
	step(forward: boolean): void;
	follow(): void;
	down(rows: number): void; // scroll
	pin(): void; // the thread, to the top
	hide(): void;
}

interface Drag {
	x: number;
	y: number;
	from: number;
	to: number;
	top: number;
	row: number;
	group: Group | null;
	select: boolean;
	moved: boolean;
}

/** Can a drag or a wheel move the rows of this group? */
export function rowsHidden(g: Group | null): g is Group & { thread: NonNullable<Group['thread']>; calls: NonNullable<Group['calls']> } {
	return !!g?.calls && !!g.thread && g.thread.max_depth > g.calls.rows;
}

function finishDrag(scene: Scene, act: Actions, d: Drag): void {
	const picked = scene.drag;
	scene.drag = null;
	act.dwell(false);
	if (!d.select) return;
	if (!d.moved || !picked) return act.clear();
	const [a, b] = [Math.min(picked.from, picked.to), Math.max(picked.from, picked.to)];
	act.select(Math.max(0, Math.floor(a)), Math.ceil(b), picked.y0 < 0 ? null : scene.between(picked.y0, picked.y1));
}

function moveDrag(scene: Scene, act: Actions, d: Drag, x: number, y: number): void {
	if (d.select) {
		scene.drag!.to = scene.timeAt(x);
		scene.drag!.y1 = y + scene.top;
		scene.draw();
		return;
	}
	const shift = ((d.x - x) / scene.width) * (d.to - d.from);
	scene.move({ from: d.from + shift, to: d.to + shift });
	if (rowsHidden(d.group)) act.rows(d.group, d.row + Math.round((d.y - y) / ROW));
	else scene.scroll(d.top + d.y - y);
}

/** Two fingers: the content below them moves with them. */
class Pinch {
	private at = new Map<number, number>(); // where each is
	private held: { a: number; b: number } | null = null; // times below them when the second came

	/** Are there two? */
	down(scene: Scene, e: PointerEvent): boolean {
		if (e.pointerType === 'touch') this.at.set(e.pointerId, e.offsetX);
		if (this.at.size !== 2) return false;
		const [a, b] = [...this.at.values()].sort((p, q) => p - q);
		this.held = { a: scene.timeAt(a), b: scene.timeAt(b) };
		return true;
	}

	move(scene: Scene, e: PointerEvent): boolean {
		if (!this.held || !this.at.has(e.pointerId)) return false;
		this.at.set(e.pointerId, e.offsetX);
		const [x, y] = [...this.at.values()].sort((p, q) => p - q);
		const scale = (this.held.b - this.held.a) / Math.max(1, y - x); // time of a pixel
		const from = this.held.a - x * scale;
		scene.move({ from, to: from + scene.width * scale });
		return true;
	}

	/** Was it one of two? */
	up(e: PointerEvent): boolean {
		this.at.delete(e.pointerId);
		if (!this.held) return false;
		if (this.at.size === 0) this.held = null;
		return true;
	}
}

/** Drags on the canvas move or, with Shift, select; drags on the ruler select.  `dragged`: the click that comes is the end of one. */
export function pointerOn(scene: Scene, act: Actions, ruler: boolean) {
	let drag: Drag | null = null;
	let dragged = false;
	const pinch = new Pinch();
	const down = (e: PointerEvent) => {
		if (e.button !== 0) return;
		(e.currentTarget as Element).setPointerCapture(e.pointerId);
		if (!ruler && pinch.down(scene, e)) {
			cancel();
			dragged = true;
			return;
		}
		const select = e.shiftKey || ruler;
		dragged = select;
		const group = ruler ? null : scene.groupAt(e.offsetY);
		drag = { x: e.offsetX, y: e.offsetY, from: scene.view.from, to: scene.view.to, top: scene.top, row: group?.calls?.row ?? 0, group, select, moved: false };
		const time = scene.timeAt(e.offsetX);
		if (select) scene.drag = { from: time, to: time, y0: ruler ? -1 : e.offsetY + scene.top, y1: e.offsetY + scene.top };
		act.dwell(true);
	};
	const move = (e: PointerEvent) => {
		if (pinch.move(scene, e)) return;
		if (!drag) {
			scene.point(ruler ? null : { x: e.offsetX, y: e.offsetY });
			return;
		}
		drag.moved ||= Math.abs(e.offsetX - drag.x) > MOVED || Math.abs(e.offsetY - drag.y) > MOVED;
		dragged ||= drag.moved;
		if (drag.moved) moveDrag(scene, act, drag, e.offsetX, e.offsetY);
	};
	const up = (e: PointerEvent) => {
		if (pinch.up(e)) return;
		const d = drag;
		drag = null;
		if (!d) return;
		finishDrag(scene, act, d);
		move(e); // its line would remain where the drag began
	};
	const cancel = (e?: PointerEvent) => {
		if (e) pinch.up(e);
		if (!drag) return;
		drag = scene.drag = null;
		act.dwell(false);
	};
	const leave = () => {
		if (!drag) scene.point(null);
	};
	return { on: { onPointerDown: down, onPointerMove: move, onPointerUp: up, onPointerCancel: cancel, onPointerLeave: leave }, dragged: () => dragged };
}

/** The wheel scrolls threads, with Shift the rows of one; sideways it moves; with Ctrl, and as a pinch on a touchpad, it zooms. */
export function wheelOn(scene: Scene, act: Actions) {
	let rest = 0; // of a row
	return (e: WheelEvent) => {
		e.preventDefault();
		if (e.ctrlKey || e.metaKey) scene.move(zoomed(scene.view, Math.exp(Math.max(-1, Math.min(1, e.deltaY * PINCHED))), e.offsetX / scene.width));
		else if (e.shiftKey) {
			const g = scene.groupAt(e.offsetY);
			const d = e.deltaY || e.deltaX;
			if (!rowsHidden(g)) return scene.scroll(scene.top + d);
			rest += d / ROW;
			const rows = Math.trunc(rest);
			rest -= rows;
			if (rows) act.rows(g, g.calls.row + rows);
		} else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) scene.move(panned(scene.view, e.deltaX / scene.width));
		else scene.scroll(scene.top + e.deltaY);
	};
}

export function keysOn(scene: Scene, act: Actions) {
	const zoom = (f: number) => scene.move(zoomed(scene.view, f, 0.5));
	const pan = (share: number) => scene.move(panned(scene.view, share));
	const keys: Record<string, () => void> = {
		w: () => zoom(0.7), s: () => zoom(1 / 0.7), a: () => pan(-0.2), d: () => pan(0.2),
		'+': () => zoom(0.7), '=': () => zoom(0.7), '-': () => zoom(1 / 0.7), '0': () => act.zoomTo('whole'),
		ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), ArrowDown: () => act.down(3), ArrowUp: () => act.down(-3),
		'Shift ArrowLeft': () => act.extend(-0.02), 'Shift ArrowRight': () => act.extend(0.02),
		PageDown: () => scene.scroll(scene.top + scene.height * 0.8), PageUp: () => scene.scroll(scene.top - scene.height * 0.8),
		ContextMenu: () => act.menu(), 'Shift F10': () => act.menu(),
		Escape: () => act.clear(), Enter: () => act.zoomTo('selection'),
		j: () => act.focus(1), k: () => act.focus(-1), o: () => act.toggle(), O: () => act.alone(), e: () => act.full(),
		x: () => act.add(), v: () => act.selectView(), m: () => act.mark(), '.': () => act.step(true), ',': () => act.step(false), f: () => act.follow(), p: () => act.pin(), h: () => act.hide(),
	};
	return (e: KeyboardEvent) => {
		if (e.ctrlKey || e.metaKey || e.altKey) return;
		const does = (e.shiftKey && keys[`Shift ${e.key}`]) || keys[e.key];
		if (!does) return;
		e.preventDefault();
		does();
	};
}
