// The timeline's state in the address: view, open threads, range and its threads.
import type { ComponentChild } from 'preact';
import { type NoteSum, type Thread } from '../../api/api';
import type { Span } from '../state/axis';
import type { Found } from '../worker/calls';
import { formatOpen, parseOpen, withOpen, type OpenSet } from '../state/opened';
import { number, set, text } from '../../ui/route';
import type { Range } from './scene';
import { inOrder, processesOf } from './tracks';
import { arranged, SORTS, type Arrangement, type Sort } from '../state/threadlist';

export interface TimelineProps {
	id: string;
	threads: Thread[]; // in order, those that are listed
	all: Thread[]; // the others, too: events name them
	there: number; // of which, without a filter
	names: string[];
	matches: Uint8Array | null;
	whole: Span;
	sums: NoteSum[];
	focus: Thread | null;
	range: Range | null;
	picked: ReadonlySet<number> | null; // threads selected together, or alone in a range; null: all, or only the focus
	step: { turn: number; forward: boolean };
	onFound: (found: Found | null) => void;
	onDrawn: () => void; // calls are on the screen
	onDetails: (of: ComponentChild) => void; // of the selection
}

const tids = (list: string): number[] => [...new Set(list.split(',').filter((v) => /^\d{1,16}$/.test(v)).map(Number))];

export function arrangement(): Arrangement {
	const sort = text('tsort') as Sort;
	return { find: text('tq').trim(), sort: SORTS.includes(sort) ? sort : '', grouped: text('tgroup') === '1', pinned: tids(text('pin')), hidden: new Set(tids(text('hide'))) };
}

/** Processes whose threads are not listed. */
export const closedProcesses = (): Set<string> => new Set(text('closed').split(',').filter(Boolean));

/** The address's value without the process of a thread that is shown. */
export function withoutProcessOf(tid: number, threads: Thread[]): string | null {
	const closed = closedProcesses();
	closed.delete(processesOf(threads).find((p) => p.threads.some((t) => t.tid === tid))?.key ?? '');
	return [...closed].join(',') || null;
}

export function openFromAddress(first: Thread | null): OpenSet {
	const open = text('open');
	const row = number('row'); // older addresses knew one thread
	const set = parseOpen(open, first && first.slices > 0 ? first.tid : null);
	return !open && row && first ? withOpen(set, first.tid, { row }) : set;
}

/** Threads of a trace in order, those with calls, those that are listed, and the current one. */
export function threadsFromAddress(threads: Thread[]) {
	const all = inOrder(threads);
	const busy = all.filter((t) => t.slices > 0);
	const tid = number('thread');
	const there = text('idle') === '1' || busy.length === 0 ? all : all.filter((t) => t.slices > 0 || t.tid === tid); // one that a link names is shown
	const listed = arranged(there, arrangement(), there.some((t) => t.tid === tid) ? tid : null);
	return { all, busy, listed, there, focus: listed.find((t) => t.tid === tid) ?? listed[0] ?? there[0] ?? null };
}

/** Threads whose calls are shown, and the one whose call is selected. */
export const openTids = (listed: Thread[], open: OpenSet, chosen?: number): number[] => listed.filter((t) => (open.has(t.tid) || t.tid === chosen) && t.slices > 0).map((t) => t.tid);

/** A range of time, of these threads: one is the thread that is shown, several are a set. */
export function selectRange(p: TimelineProps, from: number, to: number, tids: ReadonlySet<number> | null, push = true): void {
	const time = { a: from, b: to, root: null, skip: null };
	if (!tids) return set(time, push);
	const calls = p.threads.filter((t) => tids.has(t.tid));
	if (calls.length === 1) return set({ ...time, thread: calls[0].tid, sel: null, threads: null, open: text('open') || formatOpen(openFromAddress(p.focus)) }, push);
	set({ ...time, sel: calls.map((t) => t.tid).join(','), threads: calls.length === 0 ? null : 'sel' }, push);
}

/** Adds a thread to the selected threads, or removes it. */
export function addToRange(p: TimelineProps, t: Thread): void {
	const before = text('sel') ? text('sel').split(',').map(Number) : [];
	const tids = new Set(before.length > 0 ? before : p.focus ? [p.focus.tid] : []);
	if (before.includes(t.tid)) tids.delete(t.tid);
	else tids.add(t.tid);
	set({ sel: [...tids].join(','), threads: tids.size > 1 ? 'sel' : null, root: null, skip: null }, true);
}
