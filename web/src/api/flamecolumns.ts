import type { Flame } from './api';

/** A flame graph as the server sends it: without all that follows from the rest (see openapi.json). */
export interface FlameColumns {
	names: string[]; methods: number[]; name: number[]; children: number[]; unit: number; self: number[]; count: number[]; other: number[];
	total_nodes: number; shown_nodes: number; partial: boolean;
}

export function flameOf({ methods, children, ...c }: FlameColumns): Flame {
	const self = c.self.map((v) => v * c.unit);
	const value = self.slice();
	const parent: number[] = [];
	const done: number[] = []; // nodes without a parent yet, in falling order
	for (let i = self.length; i--; done.push(i))
		for (let n = children[i]; n--; value[i] += value[done.pop()!]) parent[done.at(-1)!] = i;
	parent[0] = 0;
	const method = c.name.map((n) => methods[n]);
	let rests = 0;
	return { ...c, self, value, parent, method, other: method.map((m) => (m < -1 ? c.other[rests++] : 0)) };
}
