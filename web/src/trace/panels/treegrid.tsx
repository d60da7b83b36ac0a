// The merged calls as a tree of rows: opened by pointer and keys, with virtual rows; nodes that a response omitted are
// requested when opened.  Open nodes are in the address.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { api } from '../../api/api';
import { closeAll, formatTree, graft, isLeaf, lacks, openHeaviest, openHottest, openTree, pathOf, rowsOf, treeOf, typed, type TreeNode } from './calltree';
import type { Place } from '../graph/flamelayout';
import type { Answer, Metric } from '../graph/graphparts';
import { storeScroll, scrolledTo } from '../../ui/panelstate';
import { HitBar, nextHit } from '../parts/hits';
import { MethodMenu, type About } from '../parts/methodmenu';
import { Failure, useSize } from '../../ui/parts';
import { set, text } from '../../ui/route';
import type { Words } from '../../api/source';
import { tr } from '../../i18n/strings/trace';
import { AROUND, Line, ROW, Titles } from './treeline';

const ADDRESS_MAX = 3000; // characters of the address for the open nodes
const CLOSED = '-'; // instead of the hottest path
const TYPED_MS = 900; // letters that follow each other sooner are one word
const INDENTS = 3; // levels above the highest row in view that indentation begins at

interface Props {
	id: string;
	a: Answer;
	params: Record<string, string | number | null | undefined>; // of the question, but its place
	metric: Metric;
	words: Words;
	matches: Uint8Array | null;
	callers: boolean;
	go: (p: Place) => void;
	up: () => void;
}

/** The tree of a response, extended by later requests. */
function useTree({ id, a, params }: Props) {
	const tree = useMemo(() => {
		const top = treeOf(a.f);
		openHottest(top);
		return { root: top, first: formatTree(top, ADDRESS_MAX), held: '' }; // held: the open nodes as the address has them
	}, [a]);
	const { root } = tree;
	const [turn, again] = useState(0);
	const [error, fail] = useState<Error | null>(null);
	const abort = useRef(new AbortController());
	const rows = useMemo(() => rowsOf(root), [root, turn]);
	const fill = async (n: TreeNode) => {
		const lack = lacks(n);
		if (!lack) return;
		const top = n.other > 0 && n.parent === root ? a.at.skip : 0;
		const path = [...a.at.path, ...lack.path];
		graft(n, await api.flame(id, { ...params, root: path.join('.'), skip: lack.skip + top || null }, abort.current.signal));
	};
	/** Changes the tree, renders it and stores the open nodes in the address. */
	const change = async (what: () => Promise<TreeNode | void>, push = false): Promise<TreeNode | void> => {
		fail(null);
		try {
			const n = await what();
			again((t) => t + 1);
			const open = formatTree(root, ADDRESS_MAX);
			tree.held = open === null || open === tree.first ? '' : open || CLOSED;
			set({ tree: tree.held || null }, push);
			return n;
		} catch (why) {
			if ((why as Error).name !== 'AbortError') fail(why as Error);
		}
	};
	const address = text('tree');
	useEffect(() => { // another tree, or the back button
		abort.current = new AbortController();
		if (address === tree.held) return;
		tree.held = address;
		closeAll(root);
		void openTree(root, address === CLOSED ? '' : address || (tree.first ?? ''), fill).then(() => again((t) => t + 1), (why: Error) => why.name !== 'AbortError' && fail(why));
	}, [root, address]);
	useEffect(() => () => abort.current.abort(), [root]);
	return { root, rows, error, fill, change };
}

/** Which row has the focus; rows come and go around it. */
function useAt(rows: TreeNode[], box: preact.RefObject<HTMLDivElement>) {
	const [node, put] = useState<TreeNode | null>(null);
	const found = node ? rows.indexOf(node) : 0;
	const at = Math.max(0, found);
	const show = (n: TreeNode | undefined) => {
		if (!n) return;
		put(n);
		requestAnimationFrame(() => {
			const y = rowsOf(rows[0]).indexOf(n) * ROW;
			const b = box.current;
			if (b && (y < b.scrollTop || y + 2 * ROW > b.scrollTop + b.clientHeight)) b.scrollTop = y - b.clientHeight / 2;
		});
	};
	return { at, node: rows[at], show };
}

function hitsIn(rows: TreeNode[], matches: Uint8Array | null): { rows: number[]; value: number } | null {
	if (!matches) return null;
	const lit = (n: TreeNode) => n.method >= 0 && matches[n.method] === 1;
	const within = new Set<TreeNode>();
	const hits: number[] = [];
	let value = 0;
	rows.forEach((n, i) => {
		const inside = n.parent !== null && within.has(n.parent);
		if (lit(n)) hits.push(i);
		if (lit(n) && !inside) value += n.value;
		if (lit(n) || inside) within.add(n);
	});
	return { rows: hits, value };
}

/** The scroll position in the address; restored once the tree is open. */
function useScroll(box: preact.RefObject<HTMLDivElement>, root: TreeNode, rows: TreeNode[], height: number): [number, () => void] {
	const [top, put] = useState(0);
	const wanted = useRef<number | null>(null);
	const given = useRef(0);
	useLayoutEffect(() => {
		wanted.current = scrolledTo('tree');
	}, [root]);
	useLayoutEffect(() => {
		if (!box.current || wanted.current === null) return;
		box.current.scrollTop = wanted.current;
		given.current = box.current.scrollTop;
		if (Math.abs(given.current - wanted.current) < 2) wanted.current = null;
	}, [root, rows, height]);
	return [top, () => {
		const { scrollTop } = box.current!;
		put(scrollTop);
		if (wanted.current !== null && scrollTop === given.current) return;
		wanted.current = null;
		storeScroll('tree', scrollTop);
	}];
}

type Move = (rows: TreeNode[], at: number, page: number) => TreeNode | undefined;

const MOVES: Record<string, Move> = {
	ArrowDown: (rows, at) => rows[at + 1],
	ArrowUp: (rows, at) => rows[at - 1],
	Home: (rows) => rows[0],
	End: (rows) => rows[rows.length - 1],
	PageDown: (rows, at, page) => rows[Math.min(rows.length - 1, at + page)],
	PageUp: (rows, at, page) => rows[Math.max(0, at - page)],
};

/** What its menu is about; null: no method. */
function aboutNode(n: TreeNode, x: number, y: number, callers: boolean): About | null {
	if (n.method < 0) return null;
	const stack: string[] = [];
	for (let i: TreeNode | null = n; i && (i.parent || i.method >= 0); i = i.parent) stack.unshift(i.name);
	return { x, y, method: n.method, name: n.name, stack: callers ? stack.reverse() : stack };
}

/** Where one more letter leads. */
function typedRow(rows: TreeNode[], at: number, word: { text: string; since: number }, letter: string): number {
	const now = performance.now();
	word.text = now - word.since < TYPED_MS ? word.text + letter : letter;
	word.since = now;
	return typed(rows, word.text.length > 1 ? at : at + 1, word.text);
}

export function TreeGrid(p: Props) {
	const { a, metric, words, matches, callers, go, up } = p;
	const { root, rows, error, fill, change } = useTree(p);
	const [box, , height] = useSize<HTMLDivElement>();
	const [top, scrolled] = useScroll(box, root, rows, height);
	const [menu, openMenu] = useState<About | null>(null);
	const { at, node, show } = useAt(rows, box);
	const word = useRef({ text: '', since: 0 });
	const hits = useMemo(() => hitsIn(rows, matches), [rows, matches]);
	const first = Math.max(0, Math.floor(top / ROW) - AROUND);
	const shown = rows.slice(first, Math.ceil((top + Math.max(height, ROW)) / ROW) + AROUND);
	const away = at < first || at >= first + shown.length; // the focus remains on a row that scrolled out of view
	const seen = shown.slice(first > 0 ? AROUND : 0);
	const base = Math.max(0, seen.reduce((d, n) => Math.min(d, n.depth), Infinity) - INDENTS);

	const open = (n: TreeNode, to = !n.open) => {
		const place = n.parent?.children?.indexOf(n) ?? 0; // index of the first node that a rest represents
		void change(async () => {
			if (to) await fill(n);
			if (n.other === 0) n.open = to;
		}).then(() => show(n.other ? n.parent!.children![Math.min(n.parent!.children!.length - 1, place)] : n));
	};
	const heaviest = () => void change(() => openHeaviest(node, fill), true).then((last) => last && show(last));
	const drill = (n: TreeNode) => (n === root ? up() : n.other ? open(n) : go({ path: [...a.at.path, ...pathOf(n)], skip: 0 }));
	const goHit = (forward: boolean) => hits && hits.rows.length > 0 && show(rows[nextHit(hits.rows, at, forward)]);
	const more = (n: TreeNode, x: number, y: number) => openMenu(aboutNode(n, x, y, callers));
	const type = (letter: string) => {
		const to = typedRow(rows, at, word.current, letter);
		if (to >= 0) show(rows[to]);
	};
	const aside = (right: boolean) => {
		if (right) return node.open ? show(node.children?.[0]) : isLeaf(node) ? undefined : open(node, true);
		return node.open && node !== root ? open(node, false) : show(node.parent ?? undefined);
	};
	const onKey = (e: KeyboardEvent) => {
		if (e.ctrlKey || e.metaKey || e.altKey || menu) return;
		const move = MOVES[e.key];
		const place = () => (box.current!.querySelector('[aria-selected="true"]') ?? box.current!).getBoundingClientRect();
		if (move) show(move(rows, at, Math.max(1, Math.floor(height / ROW) - 1)));
		else if (e.key === 'ArrowRight' || e.key === 'ArrowLeft') aside(e.key === 'ArrowRight');
		else if (e.key === 'Enter') drill(node);
		else if (e.key === ' ') open(node);
		else if (e.key === '*') heaviest();
		else if (e.key === 'Escape' || e.key === 'Backspace') up();
		else if (e.key === 'F3') goHit(!e.shiftKey);
		else if (e.key === 'ContextMenu' || (e.key === 'F10' && e.shiftKey)) more(node, place().left + 40, place().bottom);
		else if (e.key.length === 1 && !/[/?]/.test(e.key)) type(e.key);
		else return;
		e.preventDefault();
	};
	const line = (n: TreeNode, i: number) => (
		<Line key={i} n={n} at={i} focused={n === node} indent={n.depth - base} metric={metric} total={root.value}
			lit={!!matches && n.method >= 0 && matches[n.method] === 1} on={{ pick: show, open, drill, more }} />);
	return <>
		{hits && <HitBar hits={hits.rows.length} of={rows.length} share={hits.value / (root.value || 1)} what={tr('open rows')} go={goHit} />}
		{error && <Failure error={error} />}
		<div class={metric.timed ? 'tree' : 'tree untimed'} role="treegrid" aria-label={callers ? tr('Callers as a tree') : tr('Calls as a tree')} aria-rowcount={rows.length + 1} aria-readonly="true"
			aria-activedescendant={`row${at}`} tabIndex={0} onKeyDown={onKey}>
			<Titles metric={metric} words={words} />
			<div ref={box} class="treebody" role="rowgroup" tabIndex={0} onScroll={scrolled}>
				<div role="presentation" style={{ height: `${rows.length * ROW}px` }}>
					{shown.map((n, i) => line(n, first + i))}
					{away && line(node, at)}
				</div>
			</div>
		</div>
		{menu && <MethodMenu about={menu} close={() => openMenu(null)} />}
	</>;
}
