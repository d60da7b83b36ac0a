import type { Flame } from './api';

/** A flame graph as the server sends it: without all that follows from the rest (see openapi.json). */
export interface FlameColumns {
	names: string[]; methods: number[]; name: number[]; depth: number[]; self: number[]; count: number[]; other: number[];
	total_nodes: number; shown_nodes: number; partial: boolean;
}

export function flameOf({ methods, depth, ...c }: FlameColumns): Flame {
	const last: number[] = []; // node on each level
	const parent = depth.map((d, i) => {
		last[d] = i;
		return d ? last[d - 1] : 0;
	});
	const value = c.self.slice();
	for (let i = value.length - 1; i > 0; i--) value[parent[i]] += value[i];
	return { ...c, parent, value, method: c.name.map((n) => methods[n]) };
}
