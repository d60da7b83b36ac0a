// Which threads are open, from which row on they are shown, and whether in full height: one value of
// the address, "tid", "tid.row" or "tid.rowf" with commas between.

export interface Opened {
	row: number; // the first that is shown
	full: boolean; // every row, however many
}

export type OpenSet = ReadonlyMap<number, Opened>;

const NONE = 'none';

/** '' means the default. */
export function parseOpen(text: string, first: number | null): OpenSet {
	const set = new Map<number, Opened>();
	if (text === '' && first !== null) set.set(first, { row: 0, full: false });
	for (const one of text.split(',')) {
		const m = /^(\d{1,16})(?:\.(\d{1,5}))?(f?)$/.exec(one);
		if (m) set.set(Number(m[1]), { row: Number(m[2] ?? 0), full: m[3] === 'f' });
	}
	return set;
}

export function formatOpen(set: OpenSet): string {
	if (set.size === 0) return NONE;
	return [...set].map(([tid, o]) => `${tid}${o.row ? `.${o.row}` : ''}${o.full ? 'f' : ''}`).join(',');
}

/** The same with one thread changed; null closes it. */
export function withOpen(set: OpenSet, tid: number, to: Partial<Opened> | null): OpenSet {
	const next = new Map(set);
	if (!to) next.delete(tid);
	else next.set(tid, { row: 0, full: false, ...next.get(tid), ...to });
	return next;
}

/** The address's value with this thread also open; null if the address names none, so that the displayed thread opens. */
export function openAlso(text: string, tid: number): string | null {
	return text ? formatOpen(withOpen(parseOpen(text, null), tid, {})) : null;
}
