// The timeline's controller: turns keys, pointer events, heads and flows into moves of the scene and changes of the
// address.  It lives longer than one drawing; `now` is the state drawn last.
import type { Thread } from '../../api/api';
import type { About } from '../parts/methodmenu';
import { count, duration } from '../../i18n/format';
import { flowOf, otherEnd, sameNote, wakerOf, type Spot } from '../state/flows';
import type { Called, Hit, Place } from '../worker/messages';
import { formatEvent } from '../state/event';
import { around, kindTitle } from '../state/notekinds';
import { formatOpen, withOpen, type OpenSet } from '../state/opened';
import { formatCall } from '../state/selection';
import { set, text } from '../../ui/route';
import { toggled } from '../state/threadlist';
import type { Hover, Scene } from './scene';
import { tr } from '../../i18n/strings/trace';
import type { HeadActions } from './timelinehead';
import { rowsHidden, type Actions } from './timelineinput';
import { addToRange, arrangement, closedProcesses, selectRange, withoutProcessOf, type TimelineProps } from './timelineview';
import { OPEN_ROWS, ROW, type Group, type Layout, type Process, type Track } from './tracks';

export interface Shown {
	hover: Hover;
	x: number;
	y: number;
}

/** The thread, or the threads with similar names or one process, that a menu is for. */
export interface AboutThread {
	of: Thread | Process;
	x: number;
	y: number;
}

export interface Now {
	p: TimelineProps;
	open: OpenSet;
	layout: Layout;
	height: number;
	shown: Shown | null;
	scroller: HTMLElement | null;
	canvas: HTMLElement | null;
}

const NOTHING = { call: null, event: null, a: null, b: null, sel: null, root: null, skip: null };

export class Control implements Actions, HeadActions {
	now!: Now;
	scene!: Scene;
	pointer = { x: 0, y: 0, busy: false };
	private here: number | null = null; // thread at which a flow was met
	private found: { tid: number; hit: Hit } | null = null;
	private waker: AbortController | null = null;
	private loaded = new Set<number>(); // threads, all of their calls
	private sought: { tid: number; after: Place; forward: boolean } | null = null; // in one that is not loaded yet
	private clicked: Promise<Hover | null> | null = null;

	/** point: the item under the pointer; announce: shows a message about a key's effect; openMenu: shows a method's menu. */
	constructor(private point: (s: Shown | null) => void, private announce: (message: string) => void, private openMenu: (about: About) => void, private about: (t: AboutThread) => void) {}

	private get p(): TimelineProps {
		return this.now.p;
	}

	private put(to: OpenSet, more: Record<string, string | number | null> = {}, push = false): void {
		const closed = more.thread === undefined ? text('closed') : withoutProcessOf(Number(more.thread), this.p.threads);
		set({ open: formatOpen(to), row: null, closed, ...more }, push);
	}

	private groupOf(tid: number): Group | undefined {
		return this.now.layout.groups.find((g) => g.thread?.tid === tid);
	}

	/* --- the item under the pointer, and its targets --- */

	hover(h: Hover | null): void {
		if (this.pointer.busy) return;
		this.waker?.abort();
		this.point(h && { hover: h, x: this.pointer.x, y: this.pointer.y });
		if (h?.what === 'note') this.meet(h.spot);
		else if (!this.scene.spot && this.here === null) {
			this.scene.flow = null;
			this.scene.drawOver();
		}
	}

	/** Draws the target of this note; the waker of a thread must be requested. */
	private meet(spot: Spot): void {
		const { scene } = this;
		this.here = null;
		scene.flow = flowOf(spot, this.p.all);
		scene.drawOver();
		if (scene.flow) return;
		const abort = new AbortController();
		this.waker = abort;
		wakerOf(this.p.id, spot, this.p.all, abort.signal).then((f) => {
			if (!f || abort.signal.aborted) return;
			scene.flow = f;
			scene.drawOver();
		}, () => {});
	}

	dwell(on: boolean): void {
		this.pointer.busy = on;
		if (on) this.point(null);
		else this.scene.draw();
	}

	/* --- the selection --- */

	/** A click or tap anywhere in the timeline: on a call, it selects it; the second zooms to it; on a closed thread, it opens it. */
	click(e: MouseEvent, canvas: boolean): void {
		if (e.detail === 2) return void this.clicked?.then((h) => h && this.open(h)); // of the first, under which things may have moved
		this.clicked = canvas ? this.scene.at(e.offsetX, e.offsetY) : null;
		const at = canvas ? this.scene.groupAt(e.offsetY) : null;
		void this.clicked?.then((h) => (!h && at?.strip ? this.pick(at.thread!, false) : this.take(h)));
	}

	private open(h: Hover): void {
		if (h.what === 'call') this.zoomAround(h.hit.start, h.hit.end);
		else this.zoomAround(h.spot.lane.ts[h.spot.i], h.spot.lane.ts[h.spot.i] + h.spot.lane.dur[h.spot.i]);
	}

	/** What can be done with the method of a call: of the one at a point, or the selected one. */
	async menu(e?: MouseEvent): Promise<void> {
		const { scene, p } = this;
		e?.preventDefault();
		const h = e ? await scene.at(e.offsetX, e.offsetY) : scene.selected && { what: 'call' as const, ...scene.selected };
		if (h?.what === 'call' && h.hit.merged > 1) return this.requestMerged(h.hit.merged);
		if (h?.what !== 'call') return e ? undefined : this.announce(tr('No call is selected.'));
		const { tid, hit } = h;
		const called = 'called' in h ? h.called : scene.selected;
		const box = scene.boxOf(h);
		const canvas = this.now.canvas?.getBoundingClientRect();
		const name = (m: number) => p.names[m] ?? '';
		if (tid !== p.focus?.tid) this.put(this.now.open, { thread: tid, root: null, skip: null }); // the graph below is of its thread
		this.point(null);
		this.openMenu({ x: e?.clientX ?? (canvas?.left ?? 0) + Math.max(0, box?.x0 ?? 0) + 12, y: e?.clientY ?? (canvas?.top ?? 0) + (box ? box.y + ROW : 0),
			method: hit.method, name: name(hit.method), stack: [...(called?.stack ?? []), hit].map((c) => name(c.method)), show: true });
	}

	private requestMerged(merged: number): void {
		this.announce(tr('{merged} short calls drawn as one: zoom in to select one.', { merged: count(merged) }));
	}

	private take(h: Hover | null): void {
		const { scene } = this;
		this.announce('');
		if (h?.what === 'note') return this.pickEvent(h.spot);
		if (h?.what === 'call' && h.hit.merged > 1) this.requestMerged(h.hit.merged);
		else if (h?.what === 'call') this.choose(h.tid, h.hit, true, h.called);
		else this.unselect();
		scene.drawOver();
	}

	/** Selects an event; of several that are drawn as one, none can be selected. */
	private pickEvent(spot: Spot): void {
		const { lane, i } = spot;
		if (lane.notes[i] !== 1) return this.announce(tr('{n} drawn as one: zoom in to select one.', { n: count(lane.notes[i]) }));
		this.selectEvent(spot, true);
	}

	private selectEvent(spot: Spot, push: boolean): void {
		const { lane, i } = spot;
		this.showEvent(spot);
		set({ event: formatEvent({ kind: lane.kind, tid: lane.tid, ts: lane.ts[i], dur: lane.dur[i] }), call: null }, push);
	}

	showEvent(spot: Spot | null): void {
		this.scene.spot = spot;
		if (spot) this.meet(spot);
		else this.scene.flow = null;
		this.scene.drawOver();
	}

	zoomToEvent(): void {
		const s = this.scene.spot;
		if (!s) return;
		const [from, to] = around({ ts_ns: s.lane.ts[s.i], dur_ns: s.lane.dur[s.i] }, this.p.whole.to, this.p.whole.from);
		this.scene.move({ from, to });
	}

	/** Makes the call's thread the current one. A click includes the call's details, so they are shown without another request to the worker. */
	private choose(tid: number, { start, depth }: Hit, push = false, called: Called | null = null): void {
		if (called) this.scene.selected = called;
		const call = formatCall({ tid, start, depth });
		if (tid === this.p.focus?.tid) set({ call, event: null }, push);
		else this.put(this.now.open, { call, event: null, thread: tid, root: null, skip: null }, push);
	}

	zoomToCall(): void {
		const hit = this.scene.selected?.hit;
		if (hit) this.zoomAround(hit.start, hit.end);
	}

	unselect(): void {
		set({ call: null, event: null }, true);
	}

	/** Selects a call of another panel and scrolls to it. */
	goTo(tid: number, hit: Hit): void {
		this.choose(tid, hit);
		const { view } = this.scene;
		if (hit.start >= view.to || hit.end <= view.from) {
			const span = Math.max(view.to - view.from, (hit.end - hit.start) * 1.1);
			const middle = (hit.start + hit.end) / 2;
			this.scene.move({ from: middle - span / 2, to: middle + span / 2 });
		}
		this.showRow(tid, hit.depth);
	}

	/** Selects the next or previous event of the focused thread. For an event of the complete trace, stays on its track. */
	step(forward: boolean): void {
		const { scene, now: { layout }, p: { focus } } = this;
		const { spot } = scene;
		const all = spot?.lane.tid === null;
		const g = all ? layout.groups[0] : focus && this.groupOf(focus.tid);
		if (!g) return;
		const at = spot && (all || spot.lane.tid === g.thread?.tid) ? spot.lane.ts[spot.i] : forward ? scene.view.from - 1 : scene.view.to;
		const tracks = all ? g.tracks.filter((t) => t.kind === spot.lane.kind && t.name === spot.lane.name) : g.tracks.filter((t) => t.kind !== 'counter' && t.kind !== 'state');
		const list = this.spotsOf(tracks.length > 0 ? tracks : g.tracks.filter((t) => t.kind === 'state'), g, forward);
		const here = spot ? list.findIndex((s) => sameNote(s, spot)) : -1; // another may begin at the same time
		const to = here >= 0 ? list[here + 1] : list.find((s) => (forward ? s.lane.ts[s.i] > at : s.lane.ts[s.i] < at));
		if (!to) return this.announce(forward ? tr('No later event here.') : tr('No earlier event here.'));
		this.centre(to.lane.ts[to.i]);
		this.selectEvent(to, false);
		this.announce(`${kindTitle(to.lane.kind)}: ${to.lane.text[to.i] || tr('no text')}, ${to.lane.dur[to.i] > 0 ? duration(to.lane.dur[to.i]) : tr('instant')}${scene.flow ? tr(', {label}; f follows', { label: scene.flow.label }) : ''}`);
	}

	/** Single notes of these tracks in the order in which they are stepped through. */
	private spotsOf(tracks: Track[], g: Group, forward: boolean): Spot[] {
		return tracks.flatMap((t) => this.scene.lanesOf(t, g))
			.flatMap((lane) => [...lane.ts].flatMap((_, i) => (lane.notes[i] === 1 ? [{ lane, i }] : [])))
			.sort((a, b) => (a.lane.ts[a.i] - b.lane.ts[b.i] || a.lane.row - b.lane.row) * (forward ? 1 : -1));
	}

	follow(): void {
		const { scene } = this;
		const f = scene.flow;
		const h = this.now.shown?.hover;
		if (!f) return this.announce(tr('Nothing to follow here.'));
		const end = otherEnd(f, this.here ?? scene.spot?.lane.tid ?? (h?.what === 'note' ? h.spot.lane.tid ?? -1 : -1));
		const t = this.p.all.find((x) => x.tid === end.tid);
		if (!t) return;
		this.here = end.tid;
		this.centre(end.time);
		this.pick(t, false);
		this.announce(tr('At {tid}; f goes back.', { tid: t.name || t.tid }));
	}

	/* --- where the view is --- */

	reveal(g: Group): void {
		const s = this.now.scroller;
		if (!s) return;
		if (g.y < s.scrollTop) this.scene.scroll(g.y);
		else if (g.y + Math.min(g.height, 60) > s.scrollTop + s.clientHeight) this.scene.scroll(g.y - s.clientHeight / 3);
	}

	/** Keeps the first visible thread in place after others were pinned, unpinned or hidden. */
	keep(before: Layout, now: Layout): void {
		const { top } = this.scene;
		for (const g of before.groups) {
			const to = top > 0 && g.y + g.height > top && g.thread && now.groups.find((x) => x.thread?.tid === g.thread!.tid && x.thread.pinned === g.thread!.pinned);
			if (to) return to.y === g.y ? undefined : this.scene.scroll(top + to.y - g.y);
		}
	}

	private centre(time: number): void {
		const { view } = this.scene;
		const span = view.to - view.from;
		if (time < view.from || time > view.to) this.scene.move({ from: time - span / 2, to: time + span / 2 });
	}

	private zoomAround(from: number, to: number): void {
		const pad = Math.max(1, (to - from) * 0.03);
		this.scene.move({ from: from - pad, to: to + pad });
	}

	zoomTo(what: 'whole' | 'selection'): void {
		if (what === 'whole') this.scene.move(this.p.whole);
		else if (this.p.range) this.scene.move(this.p.range);
	}

	down(rows: number): void {
		const g = this.p.focus && this.groupOf(this.p.focus.tid);
		if (g && rowsHidden(g)) this.rows(g, g.calls.row + rows);
		else this.scene.scroll(this.scene.top + rows * ROW);
	}

	rows(g: Group, row: number): void {
		if (!g.thread || !g.calls) return;
		this.put(withOpen(this.now.open, g.thread.tid, { row: Math.max(0, Math.min(g.thread.max_depth - g.calls.rows, row)) }));
	}

	/* --- calls that a search meets --- */

	seek(forward: boolean): void {
		const t = this.p.focus;
		if (!t) return;
		const f = this.found?.tid === t.tid ? this.found.hit : null;
		const { view } = this.scene;
		const after = f ? { start: f.start, row: f.depth, index: f.index } : { start: forward ? view.from : view.to, row: -1, index: -1 };
		if (this.now.open.has(t.tid) && this.loaded.has(t.tid)) return this.scene.post({ kind: 'next', tid: t.tid, after, forward });
		this.sought = { tid: t.tid, after, forward };
		if (!this.now.open.has(t.tid)) this.put(withOpen(this.now.open, t.tid, {}));
	}

	/** Calls of a thread arrived: a pending search continues once all are loaded. */
	progress(tid: number, complete: boolean): void {
		if (complete) this.loaded.add(tid);
		else this.loaded.delete(tid);
		const s = this.sought;
		if (!complete || s?.tid !== tid) return;
		this.sought = null;
		this.scene.post({ kind: 'next', ...s });
	}

	forget(): void {
		this.found = null;
	}

	/** Shows a hit of the search, and selects it unless several calls are merged in it. */
	showHit(tid: number, h: Hit): void {
		if (h.merged <= 1) this.choose(tid, h);
		const span = Math.max((h.end - h.start) * 4, 1000);
		const middle = (h.start + h.end) / 2;
		this.found = { tid, hit: h };
		this.scene.move({ from: middle - span / 2, to: middle + span / 2 });
		this.showRow(tid, h.depth);
	}

	/** Opens the thread, and scrolls where the row is not in view. */
	private showRow(tid: number, depth: number): void {
		const { open, height } = this.now;
		const g = this.groupOf(tid);
		if (!g?.calls) return this.put(withOpen(open, tid, { row: Math.max(0, depth - OPEN_ROWS / 2) }), { thread: tid });
		if (depth < g.calls.row || depth >= g.calls.row + g.calls.rows) return this.put(withOpen(open, tid, { row: Math.max(0, depth - OPEN_ROWS / 2) }));
		const y = g.calls.y + (depth - g.calls.row) * ROW;
		if (y < this.scene.top || y + ROW > this.scene.top + height) this.scene.scroll(y - height / 2);
	}

	/* --- threads and ranges --- */

	pick(t: Thread, add: boolean, opens = true, push = true): void {
		if (add) return addToRange(this.p, t);
		const { open } = this.now;
		this.put(opens && t.slices > 0 && !open.has(t.tid) ? withOpen(open, t.tid, {}) : open, { thread: t.tid, root: null, skip: null }, push);
		const g = this.groupOf(t.tid);
		if (g) this.reveal(g);
	}

	focus(step: number): void {
		const { threads, focus } = this.p;
		const at = threads.findIndex((t) => t.tid === focus?.tid);
		const t = threads[Math.max(0, Math.min(threads.length - 1, at + step))];
		if (t) this.pick(t, false, false, false);
	}

	toggle(t = this.p.focus): void {
		if (t) this.put(withOpen(this.now.open, t.tid, this.now.open.has(t.tid) ? null : {}), {}, true);
	}

	full(t = this.p.focus): void {
		if (t) this.put(withOpen(this.now.open, t.tid, { full: !this.now.open.get(t.tid)?.full, row: 0 }), {}, true);
	}

	alone(): void {
		const t = this.p.focus;
		if (t) this.put(withOpen(new Map(), t.tid, this.now.open.get(t.tid) ?? {}), {}, true);
	}

	/** Lists or hides a group's threads, or shows them together. */
	process({ key, threads }: Process, what: 'toggle' | 'select'): void {
		const closed = closedProcesses();
		if (what === 'select') return set({ sel: threads.map((t) => t.tid).join(','), threads: 'sel', root: null, skip: null }, true);
		if (!closed.delete(key)) closed.add(key);
		set({ closed: [...closed].join(',') || null }, true);
	}

	pin(t: Pick<Thread, 'tid'> | null = this.p.focus): void {
		if (t) set({ pin: toggled(arrangement().pinned, t.tid) }, true);
	}

	/** Makes the next thread the current one. */
	hide(t: Pick<Thread, 'tid'> | null = this.p.focus): void {
		if (!t) return;
		const at = this.p.threads.findIndex((x) => x.tid === t.tid);
		const next = this.p.threads[at + 1] ?? this.p.threads[at - 1];
		const { pinned, hidden } = arrangement();
		set({ hide: toggled(new Set([...hidden].filter((tid) => tid !== t.tid)), t.tid), ...(pinned.includes(t.tid) && { pin: toggled(pinned, t.tid) }),
			...(t.tid === this.p.focus?.tid && { thread: next?.tid ?? null, open: formatOpen(this.now.open), root: null, skip: null }) }, true);
	}

	/** What can be done with a thread, or with those with similar names. */
	threadMenu(of: Thread | Process, x: number, y: number): void {
		this.about({ of, x, y });
	}

	counters(): void {
		set({ counters: 'all' }, true);
	}

	add(): void {
		if (this.p.focus) addToRange(this.p, this.p.focus);
	}

	select(from: number, to: number, tids: ReadonlySet<number> | null): void {
		selectRange(this.p, from, to, tids);
	}

	selectView(): void {
		const { view } = this.scene;
		selectRange(this.p, Math.max(0, Math.floor(view.from)), Math.ceil(view.to), null);
	}

	/** The selected call, or the note that was picked, becomes the range. */
	mark(): void {
		const { selected, spot } = this.scene;
		const [from, to, tid] = selected ? [selected.hit.start, selected.hit.end, selected.tid]
			: spot ? [spot.lane.ts[spot.i], spot.lane.ts[spot.i] + spot.lane.dur[spot.i], spot.lane.tid] : [0, 0, null];
		if (to <= from) return this.announce(tr('The selection has no duration.'));
		selectRange(this.p, from, to, tid === null ? null : new Set([tid]));
		if (tid === null) set({ threads: 'all' });
		this.announce('');
	}

	extend(share: number): void {
		const v = this.scene.view;
		const r = this.p.range ?? { from: v.from, to: (v.from + v.to) / 2 };
		selectRange(this.p, Math.floor(r.from), Math.ceil(Math.max(r.from + 1, r.to + share * (v.to - v.from))), null, false);
	}

	clear(): void {
		this.scene.spot = this.scene.flow = this.here = null;
		this.scene.drawOver();
		this.announce('');
		set({ ...NOTHING, threads: text('threads') === 'sel' ? null : text('threads') }, true);
	}
}
