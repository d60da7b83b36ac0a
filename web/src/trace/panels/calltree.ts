// A merged call tree that is loaded as it is opened: loaded nodes, open nodes, and the resulting rows.
// A response has a tree's heaviest nodes; omitted ones are requested when they are opened.
import type { Flame } from '../../api/api';
import { withoutParameters } from '../../i18n/format';
import { childrenOf, type Place } from '../graph/flamelayout';

const HOTTEST_MAX = 40; // levels: an endless recursion is not expanded

export interface TreeNode {
	method: number; // -1: the top, or a rest
	name: string;
	value: number;
	self: number;
	count: number;
	other: number; // a rest: number of nodes that it represents
	depth: number;
	parent: TreeNode | null;
	children: TreeNode[] | null; // heaviest first, the rest last; null: not requested yet
	open: boolean;
	more: number; // rests of its children that were opened
}

/** The children of a node of an answer, with all below them. */
function grow(f: Flame, into: TreeNode, heads: number[]): TreeNode[] {
	const made = new Map<number, TreeNode>();
	const list: TreeNode[] = [];
	const nodeOf = (i: number, parent: TreeNode): TreeNode => ({ method: f.method[i], name: f.names[f.name[i]], value: f.value[i], self: f.self[i],
		count: f.count[i], other: f.other[i], depth: parent.depth + 1, parent, children: [], open: false, more: 0 });
	for (const head of heads) {
		const top = nodeOf(head, into);
		list.push(top);
		made.set(head, top);
		for (let i = head + 1; i < f.parent.length && f.parent[i] >= head; i++) {
			const parent = made.get(f.parent[i])!;
			const node = nodeOf(i, parent);
			parent.children!.push(node);
			made.set(i, node);
		}
	}
	for (const n of made.values()) // a rest alone has no information
		if (n.children!.length === 1 && n.children![0].other > 0) n.children = null;
	return list;
}

export function treeOf(f: Flame): TreeNode {
	const root: TreeNode = { method: f.method[0], name: f.names[f.name[0]], value: f.value[0], self: f.self[0], count: f.count[0], other: 0,
		depth: 0, parent: null, children: [], open: true, more: 0 };
	root.children = grow(f, root, childrenOf(f));
	return root;
}

/** Methods from the top of the tree, without its root. */
export function pathOf(n: TreeNode): number[] {
	const path: number[] = [];
	for (let at: TreeNode | null = n; at && at.parent; at = at.parent) if (at.method >= 0) path.unshift(at.method);
	return path;
}

export const isLeaf = (n: TreeNode) => n.children !== null && n.children.length === 0 && n.other === 0;

/** The request needed before the node can be opened; null: none. */
export function lacks(n: TreeNode): Place | null {
	if (n.other > 0 && n.parent) return { path: pathOf(n.parent), skip: n.parent.children!.filter((c) => c.other === 0).length };
	return n.children === null ? { path: pathOf(n), skip: 0 } : null;
}

/** Puts an answer to lacks(n) in its place. */
export function graft(n: TreeNode, f: Flame): void {
	if (n.other === 0) {
		n.children = grow(f, n, childrenOf(f));
		return;
	}
	const parent = n.parent!;
	parent.more++;
	parent.children = [...parent.children!.filter((c) => c !== n), ...grow(f, parent, childrenOf(f))];
}

/** The visible rows, from top to bottom. */
export function rowsOf(root: TreeNode): TreeNode[] {
	const rows: TreeNode[] = [];
	const stack = [root];
	for (let n = stack.pop(); n; n = stack.pop()) {
		rows.push(n);
		if (n.open && n.children) for (let i = n.children.length - 1; i >= 0; i--) stack.push(n.children[i]);
	}
	return rows;
}

const opened = (n: TreeNode) => (n.open && n.children ? n.children.filter((c) => c.open) : []);

/** The open nodes, for the address, as methods with their open children: "12+1(5,7*3(9))" is 12, its rest opened once,
 *  with 5 and 7; below 7 the heaviest child is open three times in a row, then 9.  null: longer than max. */
export function formatTree(root: TreeNode, max: number): string | null {
	const list = (n: TreeNode): string => opened(n).map(one).join(',');
	const one = (n: TreeNode): string => {
		let at = n;
		let steps = 0;
		for (let next = opened(at); at.more === 0 && next.length === 1 && next[0] === at.children![0] && next[0].more === 0; next = opened(at)) {
			at = next[0];
			steps++;
		}
		const inner = list(at);
		return `${n.method}${n.more ? `+${n.more}` : ''}${steps ? `*${steps}` : ''}${inner ? `(${inner})` : ''}`;
	};
	const text = `${root.more ? `+${root.more}` : ''}${list(root) ? `(${list(root)})` : ''}`;
	return text.length <= max ? text : null;
}

export function closeAll(root: TreeNode): void {
	for (const n of rowsOf(root)) n.open = n === root;
}

/** Requests a node's missing children and adds them; rejects if that fails. */
export type Fill = (n: TreeNode) => Promise<void>;

async function openOne(n: TreeNode, more: number, fill: Fill): Promise<void> {
	if (lacks(n)) await fill(n);
	n.open = true;
	for (let i = 0; i < more; i++) {
		const rest = n.children![n.children!.length - 1];
		if (!rest?.other) return;
		await fill(rest);
	}
}

/** Opens the nodes of an address; missing ones are skipped. */
export async function openTree(root: TreeNode, text: string, fill: Fill): Promise<void> {
	const words = text.match(/\d+|[+*(),]/g) ?? [];
	let at = 0;
	const number = (sign: string): number => {
		if (words[at] !== sign) return 0;
		at += 2;
		return Number(words[at - 1]) || 0;
	};
	const list = async (n: TreeNode | null): Promise<void> => {
		if (words[at] !== '(') return;
		do {
			at++;
			await one(n);
		} while (words[at] === ',');
		at++;
	};
	const one = async (parent: TreeNode | null): Promise<void> => {
		const method = Number(words[at++]);
		let n = parent?.children?.find((c) => c.method === method && c.other === 0) ?? null;
		const more = number('+');
		const steps = number('*');
		if (n) await openOne(n, more, fill);
		for (let i = 0; n && i < steps; i++) {
			n = n.children?.[0] ?? null;
			if (n) await openOne(n, 0, fill);
		}
		await list(n);
	};
	await openOne(root, number('+'), fill);
	await list(root);
}

/** Opens the heaviest child, its heaviest child and so on; the last. */
export async function openHeaviest(from: TreeNode, fill: Fill): Promise<TreeNode> {
	let n = from;
	for (;;) {
		if (lacks(n)) await fill(n);
		n.open = !isLeaf(n);
		const next = n.children?.[0];
		if (!next || next.other > 0) return n;
		n = next;
	}
}

/** Opens the hottest path as far as it is loaded: below the root's heaviest child, down to the first node of which no child has half. */
export function openHottest(root: TreeNode): void {
	for (let n = root; n.children?.length && n.depth < HOTTEST_MAX; n = n.children[0]) {
		n.open = true;
		if (n.children[0].other > 0 || (n !== root && 2 * n.children[0].value < n.value)) return;
	}
}

/** The first row after `at` whose method begins with the typed text, otherwise the first that contains it. */
export function typed(rows: TreeNode[], at: number, text: string): number {
	const low = text.toLowerCase();
	const names = rows.map((r) => r.name.slice(withoutParameters(r.name).lastIndexOf('.') + 1).toLowerCase());
	for (const fits of [(s: string) => s.startsWith(low), (s: string) => s.includes(low)])
		for (let i = 0; i < rows.length; i++) {
			const k = (at + i) % rows.length;
			if (fits(names[k])) return k;
		}
	return -1;
}
