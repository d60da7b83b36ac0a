// The names next to the tracks: one head per thread, scrolled together with the canvas.  The list is one stop of Tab.
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Thread } from '../../api/api';
import { count, duration } from '../../i18n/format';
import { trackTitle } from '../state/notekinds';
import { many, mark, wordsOf } from '../../api/source';
import { tr } from '../../i18n/strings/trace';
import { nameOfThread } from '../parts/threadname';
import { inView, type Group, type Layout, type Process, type Track } from './tracks';

const HEADS_ALL = 64; // up to this number of threads every head is in the document
const HEADS_AROUND = 400; // CSS pixels beyond the view

export interface HeadActions {
	pick(t: Thread, add: boolean): void;
	toggle(t: Thread): void;
	full(t: Thread): void;
	pin(t: Thread): void;
	hide(t: Thread): void;
	process(p: Process, what: 'toggle' | 'select'): void;
	counters(): void;
	reveal(g: Group): void; // it has the focus
	threadMenu(of: Thread | Process, x: number, y: number): void;
}

function titleOf(t: Track): string {
	return t.kind === 'counter' ? t.name : t.kind === 'state' ? tr('States') : trackTitle(t.kind, t.name);
}

function Tracks({ g }: { g: Group }) {
	return <>{g.tracks.map((t) => (
		<span key={t.kind + t.name} class={`track ${t.kind === 'state' ? 'thin' : ''}`} style={{ top: `${t.y - g.y}px`, height: `${t.height}px` }} title={titleOf(t)}>{titleOf(t)}</span>))}</>;
}

function Facts({ t, open }: { t: Thread; open: boolean }) {
	const words = wordsOf([t]);
	const of = mark(t);
	const calls = t.slices > 0 ? many(t.slices, words) : tr('no calls');
	return <span class="facts quiet" title={tr('{busy_ns} busy, {calls}{of}', { busy_ns: duration(t.running_ns), calls, of: of ? `, ${of}` : '' })}>
		{open && of && <span><em title={`${of}. ${words.hint}`}>{t.source}</em></span>}
		{(t.running_ns > 0 || (open && t.is_main)) && <span>{open && t.is_main && <><em>{tr('main')}</em> </>}{t.running_ns > 0 && `${duration(t.running_ns)}${open ? tr(' busy') : ''}`}</span>}
		{open && <span>{calls}</span>}
	</span>;
}

const isFoldable = (g: Group) => g.process !== null || (g.thread !== null && (g.thread.slices > 0 || g.tracks.length > 0));

/** In the document, and in the tree. */
interface Place { level: number; at: number; of: number; stop: boolean; focus: () => void }
interface HeadProps { g: Group; place: Place; on: HeadActions }

function Item({ g, place, selected, on, children }: HeadProps & { selected?: boolean; children: ComponentChildren }) {
	const menu = (e: MouseEvent) => {
		const of = g.thread ?? g.process;
		if (!of) return;
		e.preventDefault();
		const r = (e.target as Element).getBoundingClientRect(); // a key event has no position
		on.threadMenu(of, e.clientX || r.left, e.clientY || r.bottom);
	};
	return <li role="treeitem" aria-level={place.level} aria-posinset={place.at + 1} aria-setsize={place.of} aria-expanded={isFoldable(g) ? g.open : undefined} aria-selected={selected} tabIndex={place.stop ? 0 : -1}
		onContextMenu={menu} style={{ top: `${g.y}px`, height: `${g.height}px` }} class={g.process ? 'process' : g.open ? 'open' : ''} onFocusIn={() => { on.reveal(g); place.focus(); }}>{children}</li>;
}

function Fold({ g, name, enabled = true, toggle }: { g: Group; name: string; enabled?: boolean; toggle: () => void }) {
	return <button class="fold" tabIndex={-1} aria-expanded={g.open} aria-label={`${g.open ? tr('Close') : tr('Open')} ${name}`} disabled={!enabled} onClick={toggle}>
		<svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true"><path d={g.open ? 'M1 3h8L5 8z' : 'M3 1v8l5-4z'} /></svg>
	</button>;
}

function ProcessHead({ g, process: p, place, on }: HeadProps & { process: Process }) {
	const threads = tr.many(p.threads.length, '{n} thread', '{n} threads');
	const named = p.name !== String(p.pid);
	const name = named ? p.name : tr('process {pid}', { pid: p.pid });
	return <Item g={g} place={place} on={on}>
		<Fold g={g} name={name} toggle={() => on.process(p, 'toggle')} />
		<button class="name" tabIndex={-1} title={p.pid < 0 ? tr('Select the threads named like {name}', { name }) : tr('Select the threads of {process}', { process: name })} onClick={() => on.process(p, 'select')}>
			<span class="text">{name}</span>{named && p.pid > 0 && <span class="quiet num">{p.pid}</span>}
		</button>
		<span class="facts quiet">{threads}</span>
	</Item>;
}

function Head({ g, place, focused, picked, on }: HeadProps & { focused: boolean; picked: boolean }) {
	const t = g.thread;
	if (g.process) return <ProcessHead g={g} process={g.process} place={place} on={on} />;
	if (!t)
		return <Item g={g} place={place} on={on}>
			<span class="name plain">{tr('Whole trace')}</span><Tracks g={g} />
			{g.hidden !== 0 && <button class="small bottom" tabIndex={-1} onClick={on.counters}>{tr.many(g.hidden, 'Show {n} counter', 'Show {n} counters')}</button>}
		</Item>;
	const name = nameOfThread(t.tid, [t]);
	return (
		<Item g={g} place={place} selected={focused} on={on}>
			<Fold g={g} name={name} enabled={isFoldable(g)} toggle={() => on.toggle(t)} />
			<button class={`name ${picked ? 'picked' : ''}`} tabIndex={-1} aria-pressed={focused} title={t.name ? tr('{name}, thread {tid}', { name, tid: t.tid }) : name} onClick={(e) => on.pick(t, e.ctrlKey || e.metaKey)}>
				{t.pinned && <svg class="pin" viewBox="0 0 10 10" width="9" height="9" role="img" aria-label={tr('pinned')}><path d="M3 0h4v4l2 2v1H5.5v3h-1V7H1V6l2-2z" /></svg>}<span class="text">{t.name || tr('Thread')}</span>{t.is_main && !g.open && <em>{tr('main')}</em>}<span class="quiet num">{t.tid}</span>
			</button>
			{g.open && <Tracks g={g} />}
			<Facts t={t} open={g.open} />
			{g.calls && t.max_depth > 20 && <button class="small bottom" tabIndex={-1} aria-pressed={g.calls.rows === t.max_depth} onClick={() => on.full(t)}>
				{g.calls.rows === t.max_depth ? tr('Fewer rows') : tr('All {max_depth} rows', { max_depth: count(t.max_depth) })}</button>}
		</Item>
	);
}

const keyOf = (g: Group) => (g.process ? `p${g.process.key}` : String(g.thread?.thread_id ?? 0));

/** A tree by keyboard: arrows move and fold, other keys act on the thread as on the canvas. */
export function Heads({ layout: { groups: all }, layout, list, width, top, height, focus, picked, on }: {
	layout: Layout; list: preact.RefObject<HTMLUListElement>; width: number; top: number; height: number; focus: Thread | null; picked: ReadonlySet<number> | null; on: HeadActions;
}) {
	const [stop, stopAt] = useState('');
	const at = useRef(0);
	const isFocus = (g: Group) => !!focus && g.thread === focus;
	const found = all.findIndex((g) => (stop ? keyOf(g) === stop : isFocus(g)));
	const i = Math.max(0, found < 0 && stop ? Math.min(at.current, all.length - 1) : found); // after a hidden one, the next
	const here = all[i];
	at.current = i;
	const parentOf = (g: Group) => all.findIndex((x) => g.thread && x.process?.threads.includes(g.thread));
	useLayoutEffect(() => {
		const to = list.current!.querySelector<HTMLElement>('[tabindex="0"]');
		if (stop && !to?.contains(document.activeElement)) to?.focus({ preventScroll: true });
	});
	const fold = () => (here.thread ? on.toggle(here.thread) : on.process(here.process!, 'toggle'));
	const go = (n: number) => all[n] && stopAt(keyOf(all[n]));
	const key = (e: KeyboardEvent) => {
		if (!here || e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) return;
		const { thread: t, process: p, open } = here;
		const enter = () => (t ? on.pick(t, false) : p ? on.process(p, 'select') : here.hidden && on.counters());
		const does = {
			ArrowDown: () => go(i + 1), ArrowUp: () => go(i - 1), Home: () => go(0), End: () => go(all.length - 1),
			ArrowRight: () => (!isFoldable(here) ? 0 : open ? p && go(i + 1) : fold()), ArrowLeft: () => (open && isFoldable(here) ? fold() : go(parentOf(here))),
			...((e.target as Element).tagName === 'LI' && { Enter: enter, ' ': enter }),
			...(t && { e: () => on.full(t), x: () => on.pick(t, true), p: () => on.pin(t), h: () => on.hide(t) }),
		}[e.key];
		if (!does) return;
		e.preventDefault();
		does();
	};
	const [a, b] = all.length <= HEADS_ALL ? [0, all.length] : inView(layout, top - HEADS_AROUND, top + height + HEADS_AROUND);
	const shown = all.slice(a, b).map((g, n): [Group, number] => [g, a + n]);
	if (here && (i < a || i >= b)) shown.push([here, i]); // Tab leads to it
	return <ul class="threads" role="tree" ref={list} style={{ width: `${width}px` }} aria-label={tr('Threads')} onKeyDown={key} onFocusOut={(e) => list.current!.contains(e.relatedTarget as Node) || stopAt('')}>
		{shown.map(([g, n]) => <Head key={keyOf(g)} g={g} focused={isFocus(g)} picked={!!g.thread && !!picked?.has(g.thread.tid)} on={on}
			place={{ level: parentOf(g) < 0 ? 1 : 2, at: n, of: all.length, stop: n === i, focus: () => { at.current = n; stopAt(keyOf(g)); } }} />)}
	</ul>;
}
