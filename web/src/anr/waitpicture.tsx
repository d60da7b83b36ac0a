// Who waits for whom, drawn: threads as boxes, wishes for locks as arrows to who holds them.
import { useMemo } from 'preact/hooks';
import { lockName, stateOf, threadName, type AnrProcess, type AnrWish } from './anrdoc';
import { count, splitName } from '../i18n/format';
import { useMore, useTable } from '../ui/panelstate';
import { useWidth } from '../ui/parts';
import { number, set } from '../ui/route';
import { tr } from '../i18n/strings/anr';
import { folded, pictureOf, waitsOf, type Arrow, type Box, type Picture, type Wait } from './waits';

const BOX = { width: 196, height: 46 };
const GAP = { x: 188, y: 18, ring: 46 }; // y between boxes; of a ring, whose arrows are labelled there
const EDGE = 4; // around all, for strokes
const BACK = 206; // right of a ring: its arrow back and that label
const FOLD = { indent: 24, gap: 34, back: 26, line: 12, least: 120 }; // in one column: line is the x of an arrow, from the left of its box
const LABEL = 20; // characters
const NAME = 22; // in a box of BOX.width
const DETAIL = 26;
const ROWS = 40; // of the table

function short(s: string, most: number): string {
	const chars = [...s]; // not halves of one
	return chars.length <= most ? s : chars.slice(0, most - 1).join('') + '…';
}

/** "java.lang.Class<a.b.C>" and "a.b.C" → "class C" and "C". */
function className(lock: AnrWish): string {
	const cls = /^java\.lang\.Class<(.*)>$/.exec(lock.type ?? '')?.[1];
	const full = cls ?? lock.type ?? tr('unknown class');
	return (cls ? 'class ' : '') + full.slice(full.lastIndexOf('.') + 1);
}

interface Spot { x: number; y: number; width: number }
interface Places { spots: Spot[]; width: number; height: number; fold: boolean }

function placesOf(q: Picture, ring: boolean): Places {
	const gap = ring ? GAP.ring : GAP.y;
	return {
		spots: q.boxes.map((b) => ({ x: EDGE + b.column * (BOX.width + GAP.x), y: EDGE + b.row * (BOX.height + gap), width: BOX.width })),
		width: 2 * EDGE + q.columns * (BOX.width + GAP.x) - GAP.x + (ring ? BACK : 0),
		height: 2 * EDGE + q.rows * (BOX.height + gap) - gap,
		fold: false,
	};
}

/** One column as wide as the panel. */
function foldedPlaces(q: Picture, ring: boolean, room: number): Places {
	const at = folded(q);
	const right = Math.max(room - EDGE - (ring ? FOLD.back : 0), EDGE + FOLD.least + FOLD.indent * Math.max(...at.map((f) => f.level)));
	const x = (level: number) => EDGE + level * FOLD.indent;
	return {
		spots: at.map((f) => ({ x: x(f.level), y: EDGE + f.row * (BOX.height + FOLD.gap), width: Math.min(right - x(f.level), 2 * BOX.width) })),
		width: right + EDGE + (ring ? FOLD.back : 0),
		height: 2 * EDGE + at.length * (BOX.height + FOLD.gap) - (ring ? 0 : FOLD.gap), // the label of the arrow back is below the last box
		fold: true,
	};
}

/** `below`: of its second line; 0: the id follows on the same line. */
function Label({ lock, x, y, below = 15 }: { lock: AnrWish | null; x: number; y: number; below?: number }) {
	if (!lock) return null;
	return (
		<text x={x} y={y}>
			<title>{`${lockName(lock)} ${lock.id}`}</title>
			<tspan class="mono">{short(className(lock), LABEL)}</tspan>
			{below ? <tspan class="quiet" x={x} dy={below}>{short(lock.id, LABEL)}</tspan> : <tspan class="quiet" dx="8">{short(lock.id, LABEL)}</tspan>}
		</text>
	);
}

/** From the right of who waits to the left of who holds. */
function Across({ a, from, to }: { a: Arrow; from: Spot; to: Spot }) {
	const x0 = from.x + BOX.width;
	const y0 = from.y + BOX.height / 2;
	const y1 = to.y + BOX.height / 2;
	const bend = to.x - GAP.x / 4;
	return <g class="arrow">
		<path d={`M${x0} ${y0}H${bend - 20}C${bend} ${y0} ${bend} ${y1} ${to.x - 8} ${y1}`} />
		<path class="tip" d={`M${to.x} ${y1}l-9 -5v10z`} />
		<Label lock={a.lock} x={x0 + 8} y={y0 - 6} below={20} />
	</g>;
}

/** Down a ring; the last leads back up to the first. */
function Round({ a, from, to }: { a: Arrow; from: Spot; to: Spot }) {
	if (to.y > from.y) {
		const x = from.x + BOX.width / 2;
		const y = from.y + BOX.height;
		return <g class="arrow ring">
			<path d={`M${x} ${y}V${to.y - 8}`} />
			<path class="tip" d={`M${x} ${to.y}l-5 -9h10z`} />
			<Label lock={a.lock} x={x + 10} y={y + 19} />
		</g>;
	}
	const x = from.x + BOX.width;
	const y0 = from.y + BOX.height * 0.65;
	const y1 = to.y + BOX.height * 0.35;
	const out = x + 44;
	return <g class="arrow ring">
		<path d={`M${x} ${y0}C${out} ${y0} ${out} ${y1} ${x + 8} ${y1}`} />
		<path class="tip" d={`M${x} ${y1}l9 -5v10z`} />
		<Label lock={a.lock} x={x + 42} y={(y0 + y1) / 2 - 2} />
	</g>;
}

/** In one column: down the left edge of the lower box, or back up along the right edge. */
function Folded({ a, from, to }: { a: Arrow; from: Spot; to: Spot }) {
	const label = <Label lock={a.lock} x={from.x + FOLD.line + 10} y={from.y + BOX.height + 20} below={0} />;
	if (to.y > from.y) {
		const x = to.x + FOLD.line;
		const start = from.x > to.x ? `M${from.x} ${from.y + BOX.height / 2}H${x}` : `M${x} ${from.y + BOX.height}`;
		return <g class={a.ring ? 'arrow ring' : 'arrow'}><path d={`${start}V${to.y - 8}`} /><path class="tip" d={`M${x} ${to.y}l-5 -9h10z`} />{label}</g>;
	}
	const x = from.x + from.width;
	const y0 = from.y + BOX.height * 0.65;
	const y1 = to.y + BOX.height * 0.35;
	return <g class="arrow ring"><path d={`M${x} ${y0}h14q6 0 6 -6V${y1 + 6}q0 -6 -6 -6h-6`} /><path class="tip" d={`M${x} ${y1}l9 -5v10z`} />{label}</g>;
}

function ArrowLine({ a, at }: { a: Arrow; at: Places }) {
	const [from, to] = [at.spots[a.from], at.spots[a.to]];
	if (at.fold) return <Folded a={a} from={from} to={to} />;
	return a.ring ? <Round a={a} from={from} to={to} /> : <Across a={a} from={from} to={to} />;
}

function words(p: AnrProcess, b: Box, gone: AnrWish | null): { name: string; detail: string } {
	if (b.kind === 'more') return { name: tr.many(b.more, '{n} more thread', '{n} more threads'), detail: b.ring ? tr('of this deadlock') : tr('also wait for it') };
	if (b.kind === 'gone') return { name: gone?.holder_tid ? tr('thread {holder_tid}', { holder_tid: gone.holder_tid }) : tr('an unknown thread'), detail: gone?.holder_tid ? tr('is not in the dump') : tr('has this lock') };
	const t = p.threads[b.thread];
	return { name: threadName(t), detail: [stateOf(t), t.top && splitName(t.top.name)[1]].filter(Boolean).join(' · ') };
}

function Node({ p, b, at, gone }: { p: AnrProcess; b: Box; at: Spot; gone: AnrWish | null }) {
	const { name, detail } = words(p, b, gone);
	const kind = [b.kind, b.ring && 'ring', b.kind === 'thread' && b.thread === p.main && 'main'].filter(Boolean).join(' ');
	const show = () => {
		set({ anr: null, anrstate: null, stack: b.thread, anrrows: p.threads.length > ROWS ? p.threads.length : null });
		setTimeout(() => document.getElementById(`anr-thread-${b.thread}`)?.scrollIntoView({ block: 'center' }));
	};
	const acts = b.kind === 'thread' ? { role: 'button' as const, tabindex: 0, onClick: show,
		onKeyDown: (e: KeyboardEvent) => (e.key === 'Enter' || e.key === ' ') && (e.preventDefault(), show()) } : {};
	return (
		<g class={`box ${kind}`} transform={`translate(${at.x} ${at.y})`} {...acts}>
			<title>{b.kind === 'thread' ? tr('{name}: {detail}. Show its stack', { name, detail }) : `${name}: ${detail}`}</title>
			<rect width={at.width} height={BOX.height} rx="6" />
			<text x="12" y="19" class="name">{short(name, Math.floor(NAME * at.width / BOX.width))}</text>
			<text x="12" y="35" class="quiet">{short(detail, Math.floor(DETAIL * at.width / BOX.width))}</text>
		</g>
	);
}

function headOf(p: AnrProcess, w: Wait): string {
	const main = p.main !== null && w.threads.includes(p.main);
	if (w.deadlock) {
		const certain = p.cycles.some((c) => c.certain && c.threads.some((s) => w.ring.includes(s.thread)));
		return tr('{certain} of {threads}{main}', { certain: certain ? tr('Deadlock') : tr('Possible deadlock'), threads: tr.many(w.ring.length, '{n} thread', '{n} threads'), main: main && !w.ring.includes(p.main!) ? tr(', main waits for it') : '' });
	}
	const end = w.gone ? tr('an unknown holder') : threadName(p.threads[w.ring[0]]);
	const waiting = w.threads.length - w.ring.length;
	return main && waiting === 1 ? tr('main waits for {end}', { end }) : tr('{waiting} waiting for {end}', { waiting: count(waiting), end });
}

/** The same as rows. */
function Table({ p, w }: { p: AnrProcess; w: Wait }) {
	const [most, more] = useMore('waits', ROWS);
	const waiting = w.threads.filter((i) => p.threads[i].wants);
	return <>
		<div class="scroll short" tabIndex={0}><table>
			<thead><tr><th>{tr('Thread')}</th><th>{tr('State')}</th><th>{tr('Waits for')}</th><th>{tr('Held by')}</th></tr></thead>
			<tbody>{waiting.slice(0, most).map((i) => {
				const t = p.threads[i];
				const holder = t.wants!.holder === null ? undefined : p.threads[t.wants!.holder];
				return <tr key={i}><td>{threadName(t)}</td><td>{stateOf(t)}</td><td>{lockName(t.wants!)} <span class="mono quiet">{t.wants!.id}</span></td>
					<td>{holder ? threadName(holder) : t.wants!.holder_tid ? tr('thread {holder_tid}, not in the dump', { holder_tid: t.wants!.holder_tid }) : tr('an unknown thread')}</td></tr>;
			})}</tbody>
		</table></div>
		{waiting.length > most && <p><button class="small" onClick={() => more(waiting.length)}>{tr('Show all {waiting}', { waiting: count(waiting.length) })}</button></p>}
	</>;
}

/** From the left to the right, or in one column where that is wider than the panel. */
function Graph({ p, w, q }: { p: AnrProcess; w: Wait; q: Picture }) {
	const [ref, room] = useWidth<HTMLDivElement>();
	const flat = placesOf(q, w.deadlock);
	const at = room && room < flat.width ? foldedPlaces(q, w.deadlock, room) : flat;
	return (
		<div class="scroll" tabIndex={0} ref={ref}>
			<svg width={at.width} height={at.height} viewBox={`0 0 ${at.width} ${at.height}`} role="group" aria-label={tr('{p}. Arrows lead from a thread to the holder of the lock that it waits for.', { p: headOf(p, w) })}>
				{q.arrows.map((a, i) => <ArrowLine key={i} a={a} at={at} />)}
				{q.boxes.map((b, i) => <Node key={i} p={p} b={b} at={at.spots[i]} gone={w.gone} />)}
			</svg>
		</div>
	);
}

export function Waits({ p }: { p: AnrProcess }) {
	const waits = useMemo(() => waitsOf(p), [p]);
	const [listed, list] = useTable('waits');
	const at = Math.min(number('waits') ?? 0, waits.length - 1);
	const w = waits[at];
	const q = useMemo(() => (w ? pictureOf(p, w) : null), [p, w]);
	if (!w || !q) return null;
	const others = waits.reduce((n, x) => n + x.threads.length, 0) - w.threads.length;
	return (
		<section class="waits" aria-label={tr('Wait graph')}>
			<div class="row"><h3>{tr('Wait graph')}</h3>
				{waits.length > 1 ? <label class="inline">{tr('Show')}<select value={at} onChange={(e) => set({ waits: Number(e.currentTarget.value) || null })}>
					{waits.map((x, i) => <option key={i} value={i}>{headOf(p, x)}</option>)}</select></label>
					: <span class={w.deadlock ? 'badtext' : 'quiet'}>{headOf(p, w)}</span>}
				<span class="quiet">{[q.hidden > 0 && tr('{hidden} of its {threads} threads are not shown', { hidden: count(q.hidden), threads: count(w.threads.length) }),
					others > 0 && tr('{others} other threads are part of other waits', { others: count(others) })].filter(Boolean).join('; ')}</span>
				<span class="grow" />
				<button class="small" aria-expanded={listed} onClick={list}>{listed ? tr('Hide the table') : tr('As a table')}</button></div>
			<Graph p={p} w={w} q={q} />
			{listed && <Table p={p} w={w} />}
		</section>
	);
}
