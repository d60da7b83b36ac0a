// State that panels store in the address in addition to their parameters: open tables, numbers of rows
// shown, scroll positions.
import { set, text } from './route';

/** Names with numbers, "notes:60,children:200"; anything else is left out. */
export function parsePanelState(list: string): Map<string, number> {
	const held = new Map<string, number>();
	for (const [, name, n] of list.matchAll(/(?:^|,)([a-z]+):(\d{1,7})(?=,|$)/g)) held.set(name, Number(n));
	return held;
}

/** The same with one of them changed; null takes it out. */
export function withPanelState(list: string, name: string, n: number | null): string | null {
	const held = parsePanelState(list);
	if (n === null) held.delete(name);
	else held.set(name, n);
	return [...held].map(([k, v]) => `${k}:${v}`).join(',') || null;
}

/** Tables that are shown next to their canvases. */
export function useTable(name: string): [boolean, () => void] {
	const shown = text('tables').split(',').filter(Boolean);
	const on = shown.includes(name);
	return [on, () => set({ tables: (on ? shown.filter((n) => n !== name) : [...shown, name]).join(',') || null })];
}

/** The number of shown rows, initially `first`, and a function that shows more. */
export function useMore(name: string, first: number): [number, (rows: number) => void] {
	const rows = parsePanelState(text('more')).get(name);
	return [Math.max(first, rows ?? first), (n) => set({ more: withPanelState(text('more'), name, n > first ? n : null) })];
}

/** How far something is scrolled, in CSS pixels from where it begins. */
export function scrolledTo(name: string): number {
	return parsePanelState(text('tops')).get(name) ?? 0;
}

export function storeScroll(name: string, px: number): void {
	set({ tops: withPanelState(text('tops'), name, px > 0 ? Math.round(px) : null) });
}

/** For another graph or tree in the same place: it begins at its top, with the first of its rows. */
export function afresh(): Record<string, string | null> {
	const tops = ['graph', 'tree'].reduce<string | null>((list, name) => withPanelState(list ?? '', name, null), text('tops'));
	return { tops, more: withPanelState(text('more'), 'children', null) };
}
