// Which pane of a trace is shown. A phone shows one at a time, and the timeline is the first of them.
import { narrow } from '../../ui/narrow';
import { set, text } from '../../ui/route';

/** The part of an address that leads to the timeline, from where it may be out of sight. */
export const atTimeline = (): Record<string, string> => (narrow.value ? { tab: 'timeline' } : {});

export interface Tab {
	id: string;
	/** Does an address without a tab mean this one? Links from before there were tabs name what they show. */
	meant?: () => boolean;
}

const some = (...values: (string | null)[]) => values.some(Boolean);

/** In the order in which an address is read. */
export const TABS: Tab[] = [
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

/** The tab that the address names or means, of those that there are. */
export function tabFromAddress(there: string[]): string {
	const asked = text('tab');
	if (there.includes(asked)) return asked;
	return TABS.find((t) => there.includes(t.id) && t.meant?.())?.id ?? there[0];
}

export function showTab(id: string): void {
	set({ tab: id });
}
