// A range that was kept to compare others with: "from-to", or "from-to:tid,tid".
export interface Base {
	from: number;
	to: number;
	tids: ReadonlySet<number> | null; // null: all threads
}

export function parseBase(text: string): Base | null {
	const m = /^(\d{1,16})-(\d{1,16})(?::(\d{1,16}(?:,\d{1,16})*))?$/.exec(text);
	if (!m || Number(m[2]) <= Number(m[1])) return null;
	return { from: Number(m[1]), to: Number(m[2]), tids: m[3] ? new Set(m[3].split(',').map(Number)) : null };
}

export const formatBase = ({ from, to, tids }: Base): string => `${from}-${to}${tids ? `:${[...tids].join(',')}` : ''}`;
