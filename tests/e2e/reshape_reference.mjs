/*
 * reshape_reference.mjs - steps that reshape calls, applied to every path of a flame graph one by one: the reference for the server
 * and the page.
 */

/* [methods from the top, own weight] of every node that has some. */
export function paths(node, above = [], out = []) {
	if (node.self) out.push([above, node.self]);
	for (const c of node.children) paths(c, [...above, c.name], out);
	return out;
}

export function sums(list) {
	const out = new Map();
	for (const [p, self] of list) {
		const key = p.join(' > ');
		out.set(key, (out.get(key) ?? 0) + self);
	}
	return out;
}

const squeeze = (p, same) => p.filter((m, i) => i === 0 || !same(p[i - 1], m));
export const within = (beginning) => (m) => m === beginning || m.startsWith(beginning + '.');
export const STEPS = {
	focus: (m) => (p) => (p.includes(m) ? p.slice(p.indexOf(m)) : undefined),
	drop: (m) => (p) => (p.includes(m) ? undefined : p),
	merge: (m) => (p) => p.filter((x) => x !== m),
	fold: (m) => (p) => (p.includes(m) ? p.slice(0, p.indexOf(m) + 1) : p),
	recursion: () => (p) => squeeze(p, (a, b) => a === b),
	frame: (b) => (p) => squeeze(p.map((x) => (within(b)(x) ? `[${b}]` : x)), (x, y) => x === y && y === `[${b}]`),
	app: (own) => (p) => p.filter(own),
};

export function stepped(list, ...steps) {
	for (const step of steps) list = list.map(([p, self]) => [step(p), self]).filter(([p]) => p);
	return sums(list);
}

const sumUp = (chains, depth = Infinity) => {
	const out = new Map();
	for (const [p, self] of chains)
		for (let i = 0, key = ''; i < Math.min(p.length, depth); i++) {
			key = i ? `${key} > ${p[i]}` : p[i];
			out.set(key, (out.get(key) ?? 0) + self);
		}
	return out;
};

/* Focused on a subtree: the nodes below this path; `depth`: number of levels. */
export const subtree = (list, at, depth) => sumUp(list.filter(([p]) => at.every((m, i) => p[i] === m)).map(([p, self]) => [p.slice(at.length), self]), depth);

/* Bottom-up: each method's self weight by its callers, below `at` if set. */
export const inverted = (list, at = [], depth = Infinity) => sumUp(list.map(([p, self]) => [[...p].reverse(), self])
	.filter(([up]) => at.every((m, i) => up[i] === m)).map(([up, self]) => [up.slice(at.length), self]), depth);

/* The values of a response for every node below its root with a weight. */
export function weights(node, above = [], out = new Map()) {
	for (const c of node.children) {
		const key = [...above, c.name].join(' > ');
		if (c.value) out.set(key, (out.get(key) ?? 0) + c.value);
		weights(c, [...above, c.name], out);
	}
	return out;
}

/* The first difference of two of these; '' if they are equal. */
export function difference(is, wanted) {
	const at = [...new Set([...is.keys(), ...wanted.keys()])].find((k) => is.get(k) !== wanted.get(k));
	return at === undefined ? '' : `${at}: ${is.get(at)}, not ${wanted.get(at)}; ${is.size} nodes, not ${wanted.size}`;
}
