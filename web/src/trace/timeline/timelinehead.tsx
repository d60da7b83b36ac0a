// The names next to the tracks: one head per thread, scrolled together with the canvas.
import type { ComponentChildren } from 'preact';
import type { Thread } from '../../api/api';
import { count, duration } from '../../i18n/format';
import { trackTitle } from '../state/notekinds';
import { many, mark, wordsOf } from '../../api/source';
import { tr } from '../../i18n/strings/trace';
import { nameOfThread } from '../parts/threadname';
import type { Group, Process, Track } from './tracks';

export interface HeadActions {
	pick(t: Thread, add: boolean): void;
	toggle(t: Thread): void;
	full(t: Thread): void;
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

function Item({ g, on, children }: { g: Group; on: HeadActions; children: ComponentChildren }) {
	const menu = (e: MouseEvent) => {
		const of = g.thread ?? g.process;
		if (!of) return;
		e.preventDefault();
		const r = (e.target as Element).getBoundingClientRect(); // a key event has no position
		on.threadMenu(of, e.clientX || r.left, e.clientY || r.bottom);
	};
	return <li onContextMenu={menu} style={{ top: `${g.y}px`, height: `${g.height}px` }} class={g.process ? 'process' : g.open ? 'open' : ''} onFocusIn={() => on.reveal(g)}>{children}</li>;
}

function Fold({ g, name, enabled = true, toggle }: { g: Group; name: string; enabled?: boolean; toggle: () => void }) {
	return <button class="fold" aria-expanded={g.open} aria-label={`${g.open ? tr('Close') : tr('Open')} ${name}`} disabled={!enabled} onClick={toggle}>
		<svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true"><path d={g.open ? 'M1 3h8L5 8z' : 'M3 1v8l5-4z'} /></svg>
	</button>;
}

function ProcessHead({ g, process: p, on }: { g: Group; process: Process; on: HeadActions }) {
	const threads = tr.many(p.threads.length, '{n} thread', '{n} threads');
	const named = p.name !== String(p.pid);
	const name = named ? p.name : tr('process {pid}', { pid: p.pid });
	return <Item g={g} on={on}>
		<Fold g={g} name={name} toggle={() => on.process(p, 'toggle')} />
		<button class="name" title={p.pid < 0 ? tr('Select the threads named like {name}', { name }) : tr('Select the threads of {process}', { process: name })} onClick={() => on.process(p, 'select')}>
			<span class="text">{name}</span>{named && p.pid > 0 && <span class="quiet num">{p.pid}</span>}
		</button>
		<span class="facts quiet">{threads}</span>
	</Item>;
}

export function Head({ g, focused, picked, on }: { g: Group; focused: boolean; picked: boolean; on: HeadActions }) {
	const t = g.thread;
	if (g.process) return <ProcessHead g={g} process={g.process} on={on} />;
	if (!t)
		return <Item g={g} on={on}>
			<span class="name plain">{tr('Whole trace')}</span><Tracks g={g} />
			{g.hidden !== 0 && <button class="small bottom" onClick={on.counters}>{tr.many(g.hidden, 'Show {n} counter', 'Show {n} counters')}</button>}
		</Item>;
	const name = nameOfThread(t.tid, [t]);
	const foldable = t.slices > 0 || g.tracks.length > 0;
	return (
		<Item g={g} on={on}>
			<Fold g={g} name={name} enabled={foldable} toggle={() => on.toggle(t)} />
			<button class={`name ${picked ? 'picked' : ''}`} aria-pressed={focused} title={t.name ? tr('{name}, thread {tid}', { name, tid: t.tid }) : name} onClick={(e) => on.pick(t, e.ctrlKey || e.metaKey)}>
				{t.pinned && <svg class="pin" viewBox="0 0 10 10" width="9" height="9" role="img" aria-label={tr('pinned')}><path d="M3 0h4v4l2 2v1H5.5v3h-1V7H1V6l2-2z" /></svg>}<span class="text">{t.name || tr('Thread')}</span>{t.is_main && !g.open && <em>{tr('main')}</em>}<span class="quiet num">{t.tid}</span>
			</button>
			{g.open && <Tracks g={g} />}
			<Facts t={t} open={g.open} />
			{g.calls && t.max_depth > 20 && <button class="small bottom" aria-pressed={g.calls.rows === t.max_depth} onClick={() => on.full(t)}>
				{g.calls.rows === t.max_depth ? tr('Fewer rows') : tr('All {max_depth} rows', { max_depth: count(t.max_depth) })}</button>}
		</Item>
	);
}
