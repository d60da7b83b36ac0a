// The timeline's canvas: the worker paints calls; this module paints the other lanes, and labels, bands and the
// selection on top.  It does not depend on the page.
import type { Thread } from '../../api/api';
import { fitted, timeOf, xOf, type Span } from '../state/axis';
import { palette } from '../../ui/color';
import type { Found } from '../worker/calls';
import { earlyWorker } from '../../api/early';
import { drawLabels } from './chartdraw';
import { sameNote, type Flow, type Spot } from '../state/flows';
import { harmless, isolated } from '../../i18n/format';
import { fit, FONT } from '../../ui/label';
import { eachRun, paintCounter, paintSpans, paintStates, paintStrip, rangeOf, tintOf, uncovered, type Surface, type Worded } from './lanepaint';
import { noteAt, Tiles, valueAt, type Lane, type Owner, type Strip } from '../state/lanes';
import type { About, Called, CallId, FromWorker, Hit, Part, Picture, ToWorker, WorkerError } from '../worker/messages';
import type { Label } from '../worker/paint';
import { drawAnnotations, drawBands, drawCursor, drawFlow, drawRange, drawRuler, drawScale, drawSelected, drawSpot, drawValue, type Ink } from './scenedraw';
import { STATES } from '../state/statelines';
import type { Progress } from '../worker/store';
import { counterValue, OUTCOMES } from '../state/notekinds';
import { cssPixel, dark, density, safe } from '../../ui/theme';
import { groupAt, inView, ROW, rowBox, together, trackAt, type Group, type Layout, type Track } from './tracks';

declare const WORKER_URL: string;

const PAINTED = 'tracewell-painted'; // for measuring from outside
const LIST_MS = 150; // a view that moves on is not listed
const NAMELESS = 900; // CSS pixels of a window without names of tracks
const LABEL_MIN = 28; // CSS pixels of an event with words
const REACH = 3; // CSS pixels around a moment

export interface Range extends Span {
	tids: ReadonlySet<number> | null; // null: every thread
}

interface SceneInput {
	threads: Thread[]; // those that are listed
	layout: Layout;
	names: string[];
	matches: Uint8Array | null;
	focus: number | null;
	range: Range | null;
	opened: number[];
	annotations: Span[];
}

export type Hover =
	| { what: 'call'; tid: number; hit: Hit; about: About; called: Called | null } // called: of a click
	| { what: 'note'; group: Group; track: Track; spot: Spot };

interface SceneEvents {
	view(v: Span): void;
	top(px: number): void;
	progress(tid: number, p: Progress): void;
	failed(tid: number | null, error: WorkerError): void; // null: not of one thread
	found(tid: number, found: Found | null): void;
	visible(calls: Hit[]): void;
	next(tid: number, hit: Hit): void;
	hover(h: Hover | null): void;
	drawn(): void; // calls, for the first time
}

interface Elements {
	canvas: HTMLCanvasElement;
	over: HTMLCanvasElement;
	ruler: HTMLCanvasElement;
	list: HTMLElement;
	scroller: HTMLElement;
}

export class Scene {
	view: Span;
	top = 0;
	width = 0;
	height = 0;
	flow: Flow | null = null;
	spot: Spot | null = null; // picked
	selected: Called | null = null;
	drag: { from: number; to: number; y0: number; y1: number } | null = null; // a range that is being picked
	private input: SceneInput | null = null;
	private e: Elements | null = null;
	private worker = earlyWorker() ?? new Worker(WORKER_URL);
	private spare: ArrayBuffer[] = [];
	private waiting = false; // a paint is in progress
	private dirty = false;
	private reported = false; // that there are calls
	private looked: unknown[] = []; // inputs of the colours
	private colors: Uint32Array | null = null; // by method
	private listed: number | null = null; // the thread whose visible calls are listed, too
	private listing: ReturnType<typeof setTimeout> | undefined;
	private last: { picture: Picture; labels: Label[]; image: ImageData } | null = null;
	private cursor: number | null = null; // time under the pointer
	private overlaid = false; // something is on the canvas over the calls
	private hoverId = 0;
	private question = 0; // counts down: requests of the pointer count up
	private answers = new Map<number, (m: FromWorker) => void>();
	private hovering: { tid: number } | null = null;

	constructor(trace: string, project: string, readonly whole: Span, readonly tiles: Tiles, private on: SceneEvents) {
		this.view = whole;
		this.worker.onmessage = (m) => this.receive(m.data as FromWorker);
		this.worker.onerror = (e) => this.on.failed(null, { code: 'internal', status: 0, message: e.message || 'The timeline\'s worker did not start.' });
		this.opening = (tids) => this.post({ kind: 'open', trace, project, tids });
	}

	/** Pixels of the screen for one of CSS: 1.25 where the page is zoomed so. */
	get dpr(): number {
		return density.value;
	}

	private opening: (tids: number[]) => void;

	attach(e: Elements): void {
		this.e = e;
	}

	stop(): void {
		clearTimeout(this.listing);
		this.worker.terminate();
		this.tiles.stop();
	}

	post(m: ToWorker, transfer: Transferable[] = []): void {
		this.worker.postMessage(m, transfer);
	}

	/** Reports the visible calls of a thread, now and after each change; null: stops. */
	list(tid: number | null): void {
		clearTimeout(this.listing);
		this.listed = tid;
		if (tid !== null) this.post({ kind: 'visible', tid, from: this.view.from, to: this.view.to });
	}

	private relist(): void {
		clearTimeout(this.listing);
		if (this.listed !== null) this.listing = setTimeout(() => this.list(this.listed), LIST_MS);
	}

	update(input: SceneInput): void {
		const before = this.input;
		this.input = input;
		if (before?.opened.join() !== input.opened.join()) this.opening(input.opened);
		if (before?.focus !== input.focus) this.post({ kind: 'count', tid: input.focus });
		if (before?.names !== input.names || before.matches !== input.matches) this.look();
		this.repaint();
	}

	/** Colours of calls, after the names, the search or the theme changed. */
	look(): void {
		const i = this.input;
		if (!i) return;
		const by = [i.names, dark.value, safe.value, i.matches];
		const same = by.map((v, k) => v === this.looked[k]);
		if (same.every(Boolean)) return;
		this.looked = by;
		if (!same.slice(0, 3).every(Boolean)) this.colors = palette(i.names, dark.value, safe.value);
		this.post({ kind: 'look', look: { palette: this.colors!, matches: i.matches, background: cssPixel('--chart'),
			highlight: cssPixel('--hit'), faded: cssPixel('--faded') } });
		this.repaint();
	}

	resize(width: number, height: number): void {
		this.width = width;
		this.height = height;
		this.repaint();
	}

	move(to: Span): void {
		const v = fitted(to, this.whole);
		if (v.from === this.view.from && v.to === this.view.to) return;
		this.view = v;
		this.on.view(v);
		this.repaint();
	}

	scroll(px: number): void {
		if (this.e) this.e.scroller.scrollTop = px; // which comes back as an event
	}

	scrolled(): void {
		const px = this.e?.scroller.scrollTop ?? 0;
		if (px === this.top) return;
		this.top = px;
		this.on.top(px);
		this.repaint();
	}

	/** The groups that are in view. */
	private groups(top = this.top): Group[] {
		const l = this.input?.layout;
		if (!l) return [];
		const [a, b] = inView(l, top, top + this.height);
		return l.groups.slice(a, b);
	}

	private partOf(g: Group): Part | null {
		if (!g.calls || !g.thread) return null;
		const y0 = Math.max(0, g.calls.y - this.top);
		const y1 = Math.min(this.height, g.calls.y + g.calls.height - this.top);
		if (y1 <= y0) return null;
		const hidden = Math.max(0, this.top - g.calls.y) + g.calls.row * ROW;
		const d = this.dpr;
		return { tid: g.thread.tid, from: this.view.from, to: this.view.to, width: Math.round(this.width * d), y: Math.round(y0 * d),
			height: Math.round(y1 * d) - Math.round(y0 * d), top: Math.round(hidden * d), rowHeight: ROW * d };
	}

	repaint(): void {
		this.dirty = true;
		if (this.waiting || this.width < 10 || this.height < 10 || !this.input) return;
		this.dirty = false;
		this.waiting = true;
		const groups = this.groups();
		const picture = { width: Math.round(this.width * this.dpr), height: Math.round(this.height * this.dpr), from: this.view.from, to: this.view.to, top: this.top };
		const bytes = picture.width * picture.height * 4;
		this.spare = this.spare.filter((b) => b.byteLength === bytes);
		const buffer = this.spare.pop() ?? new ArrayBuffer(bytes);
		this.post({ kind: 'paint', picture, parts: groups.flatMap((g) => this.partOf(g) ?? []), buffer }, [buffer]);
		const owners: Owner[] = groups.map((g) => g.thread?.tid ?? '');
		if (!owners.includes('')) owners.push(''); // bands cover all threads
		this.tiles.want(this.view, owners);
	}

	private receive(m: FromWorker): void {
		if (m.kind === 'painted') this.painted(m);
		else if (m.kind === 'progress') {
			this.on.progress(m.tid, m);
			if (m.fresh) this.repaint();
		} else if (m.kind === 'failed') this.on.failed(m.tid, m.error);
		else if (m.kind === 'found') this.on.found(m.tid, m.found);
		else if (m.kind === 'visible') this.on.visible(m.calls);
		else if (m.kind === 'next' && m.hit) this.on.next(m.tid, m.hit);
		else if ((m.kind === 'hit' || m.kind === 'call') && m.id < 0) {
			this.answers.get(m.id)?.(m);
			this.answers.delete(m.id);
		} else if (m.kind === 'hit' && m.id === this.hoverId && this.hovering)
			this.on.hover(m.hit && { what: 'call', tid: this.hovering.tid, hit: m.hit, about: m.about, called: null });
	}

	private painted(m: Extract<FromWorker, { kind: 'painted' }>): void {
		this.waiting = false;
		if (this.last && this.last.image.data.byteLength > 0) this.spare.push(this.last.image.data.buffer as ArrayBuffer);
		const image = new ImageData(new Uint8ClampedArray(m.buffer), m.picture.width, m.picture.height);
		this.last = { picture: m.picture, labels: m.labels, image };
		this.paintLanes();
		this.draw();
		this.drawOver();
		if (this.dirty) this.repaint();
		this.relist();
		if (m.calls > 0 && !this.reported) this.on.drawn();
		this.reported ||= m.calls > 0;
		performance.clearMarks(PAINTED);
		performance.mark(PAINTED, { detail: m.calls });
	}

	lanesOf(t: Track, g: Group): Lane[] {
		return this.tiles.lanes(this.shown(), g.thread ? g.thread.tid : '', t.kind, t.name);
	}

	private shown(): Span {
		return this.last?.picture ?? this.view;
	}

	private shownTop(): number {
		return this.last?.picture.top ?? this.top;
	}

	/** Activity of /threads is drawn until its tiles are loaded. */
	private stripsOf(t: Thread): Strip[] {
		const got = this.tiles.strips(this.shown(), t.tid);
		return got.length > 0 ? got : [{ tile: this.whole, cells: Uint8Array.from(t.activity) }];
	}

	private paintLanes(): void {
		const l = this.last!;
		const s: Surface = { px: new Uint32Array(l.image.data.buffer), width: l.picture.width, height: l.picture.height, dpr: this.dpr,
			view: l.picture, top: l.picture.top };
		const states = new Map(STATES.map((n) => [n, cssPixel(`--state-${n}`)]));
		const busy = cssPixel('--strip');
		for (const g of this.groups(l.picture.top)) {
			if (g.strip && g.thread) paintStrip(s, g.strip, this.stripsOf(g.thread), busy);
			else if (g.strip && g.process) paintStrip(s, g.strip, [{ tile: this.whole, cells: Uint8Array.from(together(g.process.threads)) }], busy);
			for (const t of g.tracks) {
				const lanes = this.lanesOf(t, g);
				if (t.kind === 'state') paintStates(s, t, lanes, states);
				else if (t.kind === 'counter') paintCounter(s, t, lanes, rangeOf(lanes), tintOf('counter', dark.value));
				else for (const l of lanes) paintSpans(s, rowBox(t, l.row), [l], t.kind === 'frame' ? { fill: cssPixel(l.outcome ? `--frame-${l.outcome}` : '--faded'), edge: cssPixel('--quiet') } : tintOf(t.kind, dark.value));
			}
		}
	}

	private ink(): Ink {
		const style = getComputedStyle(document.documentElement);
		return (name) => style.getPropertyValue(`--${name}`);
	}

	/** Everything that does not follow the pointer. */
	draw(): void {
		const l = this.last;
		const g = this.e?.canvas.getContext('2d', { alpha: false }); // an opaque canvas is drawn without blending
		const i = this.input;
		if (!g || !l || !i || !this.e) return;
		const ink = this.ink();
		g.setTransform(1, 0, 0, 1, 0, 0);
		g.putImageData(l.image, 0, 0);
		g.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
		this.e.list.style.transform = `translateY(${-l.picture.top}px)`;
		const [plain, lit, faded] = [ink('flame-ink'), ink('hit-ink'), ink('faded-ink')];
		drawLabels(g, l.labels, i.names, this.dpr, (m) => (!i.matches ? plain : i.matches[m] ? lit : faded));
		const line = ink('line');
		for (const group of this.groups(l.picture.top)) {
			g.fillStyle = line;
			g.fillRect(0, group.y + group.height - l.picture.top - 1, this.width, 1);
			for (const t of group.tracks) this.labelTrack(g, group, t, plain, ink);
		}
		drawBands(g, l.picture, this.width, this.height, (kind) => this.tiles.lanes(l.picture, '', kind), ink);
		drawAnnotations(g, l.picture, this.width, this.height, i.annotations, ink);
		const range = this.picked();
		if (range) drawRange(g, range, l.picture, this.width, this.height, this.groups(l.picture.top), l.picture.top, ink);
		const r = this.e.ruler.getContext('2d');
		if (r) {
			r.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
			drawRuler(r, l.picture, this.whole.from, this.width, range, ink);
		}
	}

	private labelTrack(g: CanvasRenderingContext2D, group: Group, t: Track, plain: string, ink: Ink): void {
		if (t.kind === 'state' || !this.last) return;
		const { picture } = this.last;
		if (t.kind === 'counter') {
			const lanes = this.lanesOf(t, group);
			const [low, high] = rangeOf(lanes);
			if (lanes.some((l) => l.n > 0)) drawScale(g, `${innerWidth <= NAMELESS ? `${isolated(fit(g, harmless(t.name), this.width / 2))} ` : ''}${counterValue(t.name, high)}`, counterValue(t.name, low), t.y - picture.top, t.height, ink);
			return;
		}
		const s = { px: new Uint32Array(0), width: this.width, height: this.height, dpr: 1, view: picture, top: picture.top };
		g.font = FONT;
		g.textBaseline = 'middle';
		g.fillStyle = plain;
		const rows: Record<number, Worded[]> = {}; // by height in the list: a row without a place yet is drawn over another
		for (const l of this.lanesOf(t, group)) {
			const late = l.outcome && l.outcome !== 'on_time' ? `${OUTCOMES[l.outcome]} · ` : '';
			const { y } = rowBox(t, l.row);
			const boxes = rows[y] ??= [];
			eachRun(s, l, (i, x0, x1) => boxes.push({ x0: Math.max(0, x0), x1: Math.min(x1, this.width), text: `${l.notes[i] > 1 ? `${l.notes[i]} × ` : ''}${late}${l.text[i] || t.kind}` }));
		}
		for (const y in rows)
			for (const { x0, x1, text } of uncovered(rows[y])) {
				const words = x1 - x0 < LABEL_MIN ? '' : fit(g, harmless(text), x1 - x0 - 8);
				if (words) g.fillText(words, x0 + 5, +y - picture.top + t.row / 2 + 0.5);
			}
	}

	/** The range that is being picked, or the one that was. */
	private picked(): Range | null {
		const d = this.drag;
		if (!d) return this.input?.range ?? null;
		return { from: Math.min(d.from, d.to), to: Math.max(d.from, d.to), tids: d.y0 < 0 ? this.input?.range?.tids ?? null : this.between(d.y0, d.y1) };
	}

	/** Threads whose groups are between two heights of the list. */
	between(a: number, b: number): Set<number> {
		const l = this.input!.layout;
		const [i, j] = inView(l, Math.min(a, b), Math.max(a, b) + 1);
		return new Set(l.groups.slice(i, j).flatMap((g) => (g.thread ? [g.thread.tid] : [])));
	}

	/** The parts that follow the pointer; a canvas without content is not touched, because each costs a frame. */
	drawOver(): void {
		const something = this.selected !== null || this.spot !== null || this.flow !== null || this.cursor !== null;
		if (!something && !this.overlaid) return;
		const g = this.e?.over.getContext('2d');
		if (!g || !this.input) return;
		this.overlaid = something;
		const ink = this.ink();
		g.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
		g.clearRect(0, 0, this.width, this.height);
		const v = this.shown();
		if (this.selected) this.drawCall(g, this.selected, ink);
		if (this.spot) this.drawPicked(g, this.spot, ink);
		if (this.flow) drawFlow(g, this.flow, v, this.width, (tid) => this.heightOf(tid), ink);
		if (this.cursor !== null) this.drawValues(g, this.cursor, ink);
		if (this.cursor !== null) drawCursor(g, this.cursor, v, this.width, this.height, this.whole.from, ink);
	}

	/** The value of each counter in view at the time under the pointer. */
	private drawValues(g: CanvasRenderingContext2D, time: number, ink: Ink): void {
		for (const group of this.groups(this.shownTop()))
			for (const t of group.tracks) {
				const spot = t.kind === 'counter' ? this.spotAt(group, t, time, t.y) : null;
				if (spot) drawValue(g, counterValue(t.name, spot.lane.value[spot.i]), xOf(time, this.shown(), this.width), t.y + t.height / 2 - this.shownTop(), this.width, ink);
			}
	}

	/** Where a call is on the canvas, in CSS pixels; null: its thread or row is not shown. */
	boxOf({ tid, hit }: { tid: number; hit: Hit }): { x0: number; x1: number; y: number } | null {
		const calls = this.input?.layout.groups.find((g) => g.thread?.tid === tid)?.calls;
		if (!calls || hit.depth < calls.row || hit.depth >= calls.row + calls.rows) return null;
		const v = this.shown();
		return { x0: xOf(hit.start, v, this.width), x1: xOf(hit.end, v, this.width), y: calls.y + (hit.depth - calls.row) * ROW - this.top };
	}

	private drawCall(g: CanvasRenderingContext2D, call: Called, ink: Ink): void {
		const at = this.boxOf(call);
		if (at && at.x1 >= 0 && at.x0 <= this.width) drawSelected(g, Math.max(-4, at.x0), Math.min(this.width + 4, Math.max(at.x1, at.x0 + 3)), at.y, ROW - 1, ink);
	}

	private drawPicked(g: CanvasRenderingContext2D, s: Spot, ink: Ink): void {
		const group = this.input!.layout.groups.find((x) => (x.thread?.tid ?? null) === s.lane.tid || (!x.thread && s.lane.tid !== null && x.tracks.some((t) => t.kind === s.lane.kind)));
		const t = group?.tracks.find((x) => x.kind === s.lane.kind && x.name === s.lane.name);
		if (!group) return;
		const there = t && this.lanesOf(t, group).find((lane) => lane.ts.some((_, i) => sameNote({ lane, i }, s)));
		const { y, height } = !t ? { y: group.y, height: 28 } : there ? rowBox(t, there.row) : t;
		const v = this.shown();
		const x0 = xOf(s.lane.ts[s.i], v, this.width);
		drawSpot(g, x0, Math.max(x0 + 2, xOf(s.lane.ts[s.i] + s.lane.dur[s.i], v, this.width)), y - this.top, height, ink);
	}

	/** Where a thread's arrows begin and end: the first lane, otherwise the middle of a closed group. */
	private heightOf(tid: number): number | null {
		const g = this.input?.layout.groups.find((x) => x.thread?.tid === tid);
		if (!g) return null;
		const state = g.tracks.find((t) => t.kind === 'state');
		return (state ? state.y + state.height / 2 : g.y + Math.min(14, g.height / 2)) - this.top;
	}

	timeAt(x: number): number {
		return timeOf(x, this.view, this.width);
	}

	groupAt(y: number): Group | null {
		return this.input ? groupAt(this.input.layout, y + this.top) : null;
	}

	private request<K extends 'hit' | 'call'>(question: (id: number) => ToWorker & { kind: K }): Promise<Extract<FromWorker, { kind: K }>> {
		const id = --this.question;
		return new Promise((done) => {
			this.answers.set(id, (m) => done(m as Extract<FromWorker, { kind: K }>));
			this.post(question(id));
		});
	}

	/** All that is loaded of a call. */
	async factsOf(call: CallId): Promise<{ called: Called | null; all: boolean }> {
		return this.request((id) => ({ kind: 'call', id, call }));
	}

	/** The item at a point of the canvas, in CSS pixels. */
	async at(x: number, y: number): Promise<Hover | null> {
		const group = this.groupAt(y);
		const time = this.timeAt(x);
		const track = group && trackAt(group, y + this.top);
		const spot = group && track && this.spotAt(group, track, time, y + this.top);
		if (track) return spot && { what: 'note', group, track, spot };
		const row = group && this.rowAt(group, y);
		if (row === null || !group?.thread) return null;
		const { tid } = group.thread;
		const m = await this.request((id) => ({ kind: 'hit', id, tid, row, time, chosen: true }));
		return m.hit && { what: 'call', tid, hit: m.hit, about: m.about, called: m.called };
	}

	/** The row of calls at a height of the canvas; null: none. */
	private rowAt({ calls }: Group, y: number): number | null {
		const row = calls ? Math.floor((y + this.top - calls.y) / ROW) : -1;
		return calls && row >= 0 && row < calls.rows ? row + calls.row : null;
	}

	/** Position of the pointer in CSS pixels of the canvas; null: outside. */
	point(at: { x: number; y: number } | null): void {
		this.hoverId++;
		this.hovering = null;
		this.cursor = at && this.timeAt(at.x);
		this.drawOver();
		const group = at && this.groupAt(at.y);
		if (!at || !group) return this.on.hover(null);
		const track = trackAt(group, at.y + this.top);
		const spot = track && this.spotAt(group, track, this.timeAt(at.x), at.y + this.top);
		if (track) return this.on.hover(spot && { what: 'note', group, track, spot });
		const row = this.rowAt(group, at.y);
		if (row === null || !group.thread) return this.on.hover(null);
		this.hovering = { tid: group.thread.tid };
		this.post({ kind: 'hit', id: this.hoverId, tid: group.thread.tid, row, time: this.timeAt(at.x) });
	}

	/** y: in the list. */
	private spotAt(g: Group, t: Track, time: number, y: number): Spot | null {
		const reach = (REACH * (this.view.to - this.view.from)) / this.width;
		for (const lane of this.lanesOf(t, g).reverse()) { // the last is on top
			const box = rowBox(t, lane.row);
			if (y < box.y - 1 || y > box.y + box.height + 1 || time < lane.tile.from || time >= lane.tile.to) continue;
			const i = t.kind === 'counter' ? valueAt(lane, time) : noteAt(lane, time, reach);
			if (i >= 0) return { lane, i };
		}
		return null;
	}
}
