// Which pane of a trace is shown. A phone shows one at a time, and the timeline is the first of them.
import type { Call } from '../../api/api';
import { narrow } from '../../ui/narrow';
import { set, text } from '../../ui/route';
import { openAlso } from './opened';
import { formatCall } from './selection';

const ROOM = 1.5; // of a call that is shown, around it

/** The part of an address that leads to the timeline, from where it may be out of sight. */
export const atTimeline = (): Record<string, string> => (narrow.value ? { tab: 'timeline' } : {});

/** The part of the address that shows a call and selects it. */
export function placeOfCall(c: Omit<Call, 'cpu_ns'>, { from, to }: { from: number; to: number }): Record<string, string | number | null> {
	const middle = c.start_ns + c.dur_ns / 2;
	const span = Math.max(to - from > c.dur_ns * 3 ? 0 : to - from, c.dur_ns * 2 * ROOM, 1000);
	const seen = c.start_ns < to && c.start_ns + c.dur_ns > from && to - from < 400 * c.dur_ns;
	return { call: formatCall({ tid: c.tid, start: c.start_ns, depth: c.depth }), thread: c.tid, open: openAlso(text('open'), c.tid), root: null, skip: null,
		...(seen ? {} : { from: Math.max(0, Math.round(middle - span / 2)), to: Math.round(middle + span / 2) }), ...atTimeline() };
}

export interface Tab {
	id: string;
	/** Whether an address without a tab means this one: older links only have the parameters of the panel. */
	meant?: () => boolean;
}

const some = (...values: (string | null)[]) => values.some(Boolean);

/** In the order in which an address is read. */
const TABS: Tab[] = [
	{ id: 'findings', meant: () => text('findings') === '1' },
	{ id: 'annotations', meant: () => text('annotation') !== '' },
	{ id: 'anr', meant: () => some(text('stack'), text('waits'), text('anrstate'), text('dump')) },
	{ id: 'calls', meant: () => some(text('calls'), text('min')) },
	{ id: 'events', meant: () => text('note') !== '' },
	{ id: 'tree', meant: () => text('as') === 'tree' && text('view') !== 'sandwich' },
	{ id: 'flame', meant: () => some(text('view'), text('root'), text('method'), text('skip'), text('metric'), text('t')) },
	{ id: 'methods', meant: () => some(text('filter'), text('sort'), text('order'), text('cols'), text('rows')) },
	{ id: 'sql', meant: () => text('sql') !== '' },
	{ id: 'range' },
	{ id: 'states' },
	{ id: 'report' },
	{ id: 'timeline' },
];

/** The tab that the address names or implies, among the available ones; otherwise the first one. */
export function tabFromAddress(there: string[], first: string): string {
	const requested = text('tab');
	if (there.includes(requested)) return requested;
	return TABS.find((t) => there.includes(t.id) && t.meant?.())?.id ?? first;
}

export function showTab(id: string): void {
	set({ tab: id });
}
