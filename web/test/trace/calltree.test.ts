import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Flame } from '../../src/api/api';
import { closeAll, formatTree, graft, isLeaf, lacks, openHeaviest, openHottest, openTree, pathOf, rowsOf, treeOf, typed, type TreeNode } from '../../src/trace/panels/calltree';
import { hitsOf, nextHit } from '../../src/trace/parts/hits';

/** A whole tree: method m has the children m * 10 + 1 .. + 3 down to three levels; values halve. */
interface Whole { method: number; value: number; children: Whole[] }
function whole(method: number, value: number, levels: number): Whole {
	const children = levels === 0 ? [] : [1, 2, 3].map((k) => whole(method * 10 + k, value >> k, levels - 1));
	return { method, value, children };
}
const all = whole(0, 1 << 14, 3);

/** What the server answers: `wide` children a node and `deep` levels, the others as a rest. */
function answer(path: number[], skip: number, wide: number, deep: number): Flame {
	const f: Flame = { names: [], name: [], parent: [], value: [], self: [], count: [], method: [], other: [], total_nodes: 40, shown_nodes: 0, partial: false };
	const put = (method: number, value: number, parent: number, other: number) => {
		f.names.push(other ? '(other)' : `com.acme.C${method}.m${method}`);
		f.name.push(f.name.length);
		f.parent.push(parent);
		f.value.push(value);
		f.self.push(0);
		f.count.push(1);
		f.method.push(method);
		f.other.push(other);
		return f.name.length - 1;
	};
	const node = (w: Whole, parent: number, from: number, left: number) => {
		const at = put(w.method || -1, w.value, parent, 0);
		const shown = left === 0 ? [] : w.children.slice(from, from + wide);
		for (const c of shown) node(c, at, 0, left - 1);
		const rest = w.children.length - from - shown.length;
		if (rest > 0) put(-1, 1, at, rest);
	};
	let at = all;
	for (const m of path) at = at.children.find((c) => c.method === m)!;
	node(at, 0, skip, deep);
	return f;
}

const asked: string[] = [];
const fill = async (n: TreeNode) => {
	const lack = lacks(n);
	if (!lack) return;
	asked.push(`${lack.path.join('.')}/${lack.skip}`);
	graft(n, answer(lack.path, lack.skip, 2, 1));
};
const names = (root: TreeNode) => rowsOf(root).map((n) => (n.other ? `+${n.other}` : n.method));

test('a tree shows what is open, and asks for what is not there', async () => {
	const root = treeOf(answer([], 0, 2, 1));
	assert.deepEqual(names(root), [-1, 1, 2, '+1']);
	asked.length = 0;
	const one = root.children![0];
	await fill(one);
	one.open = true;
	assert.deepEqual(names(root), [-1, 1, 11, 12, '+1', 2, '+1']);
	await fill(one.children![2]);
	assert.deepEqual(names(root), [-1, 1, 11, 12, 13, 2, '+1']);
	assert.deepEqual(asked, ['1/0', '1/2']);
	assert.deepEqual(pathOf(one.children![2]), [1, 13]);
	assert.equal(lacks(one), null);
});

test('every node can be reached, and leaves are leaves', async () => {
	const root = treeOf(answer([], 0, 1, 1));
	for (let i = 0; i < 200; i++) {
		const n = rowsOf(root).find((x) => !isLeaf(x) && (x.other > 0 || !x.open));
		if (!n) break;
		await fill(n);
		if (!n.other) n.open = true;
	}
	assert.equal(rowsOf(root).length, 1 + 3 + 9 + 27);
	assert.ok(rowsOf(root).every((n) => n.other === 0));
});

test('the address holds what is open', async () => {
	const root = treeOf(answer([], 0, 2, 1));
	await openTree(root, '+1(1(12),3*2)', fill);
	assert.deepEqual(names(root), [-1, 1, 11, 12, 121, 122, '+1', '+1', 2, 3, 31, 311, 312, '+1', 32, '+1']);
	const text = formatTree(root, 100)!;
	const other = treeOf(answer([], 0, 2, 1));
	await openTree(other, text, fill);
	assert.deepEqual(names(other), names(root));
	assert.equal(formatTree(other, 100), text);
	assert.equal(formatTree(other, 3), null, 'too long');
	closeAll(other);
	assert.equal(formatTree(other, 100), '+1');
	await openTree(other, '(77(1),2)((', fill); // what is not there, and what makes no sense
	assert.ok(names(other).includes(21));
});

test('the heaviest path opens to its end', async () => {
	const root = treeOf(answer([], 0, 1, 1));
	const last = await openHeaviest(root, fill);
	assert.deepEqual(pathOf(last), [1, 11, 111]);
	assert.ok(isLeaf(last));
	assert.equal(formatTree(root, 100), '(1*1)');
});

test('the hottest path opens down to the first node that splits, without asking', () => {
	const node = (value: number, ...children: TreeNode[]): TreeNode => ({ method: value, name: '', value, self: 0, count: 1, other: 0, depth: 0, parent: null, children, open: false, more: 0 });
	const root = node(100, node(90, node(80, node(39, node(39)), node(30)), node(1)), node(9));
	openHottest(root);
	assert.deepEqual(names(root), [100, 90, 80, 39, 30, 1, 9]);
	const cut = treeOf(answer([], 0, 2, 1));
	openHottest(cut);
	assert.deepEqual(names(cut), [-1, 1, 2, '+1']);
});

test('letters lead to the next row that begins with them', () => {
	const root = treeOf(answer([], 0, 2, 1));
	const rows = rowsOf(root);
	assert.equal(typed(rows, 0, 'm2'), 2);
	assert.equal(typed(rows, 2, 'm'), 2);
	assert.equal(typed(rows, 3, 'm'), 0, 'round to the first');
	assert.equal(typed(rows, 0, 'zz'), -1);
});

test('hits are counted once where they stand in each other', () => {
	const f = answer([], 0, 3, 3);
	const matches = new Uint8Array(400);
	matches[1] = matches[11] = matches[2] = 1;
	const hits = hitsOf(f, matches)!;
	assert.equal(hits.nodes.length, 3);
	assert.equal(hits.value, (1 << 13) + (1 << 12));
	assert.equal(hitsOf(f, null), null);
	const list = [3, 7, 9];
	for (const [at, forward, to] of [[-1, true, 3], [3, true, 7], [9, true, 3], [8, true, 9], [-1, false, 9], [3, false, 9], [8, false, 7], [9, false, 7]] as [number, boolean, number][])
		assert.equal(nextHit(list, at, forward), to, `${at} ${forward}`);
	assert.equal(nextHit([], 0, true), -1);
});
