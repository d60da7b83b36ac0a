// One merged flame graph on a canvas, with pointer and keys.  Rows are virtual: the canvas is as high as
// the view and stays in it while the graph scrolls.
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { boxAt, walk } from './flamelayout';
import { labelOf, paintBoxes, ROW, rowOf } from './flamepaint';
import { storeScroll, scrolledTo } from '../../ui/panelstate';
import { HitBar, hitsOf, nextHit } from '../parts/hits';
import { FlameTip, nodeOf, numbers, stackOf, type GraphProps } from './graphparts';
import { MethodMenu, type About } from '../parts/methodmenu';
import { pinchOn } from './pinch';
import { useSize } from '../../ui/parts';
import { tr } from '../../i18n/strings/trace';
import { dark, density, safe } from '../../ui/theme';

const FLIPPED: Record<string, string> = { ArrowUp: 'ArrowDown', ArrowDown: 'ArrowUp' };

/** The canvas and its contents: rows around the scroll position, painted again after scrolling. */
function useCanvas({ a, matches, fill, flip = false }: GraphProps, focus: number) {
	const [box, width, room] = useSize<HTMLDivElement>();
	const canvas = useRef<HTMLCanvasElement>(null);
	const dpr = density.value;
	const all = Math.max(1, a.boxes.rows) * ROW;
	const height = Math.max(1, Math.min(all, room));
	const paint = () => {
		const g = canvas.current?.getContext('2d');
		if (!g || width < 10 || !box.current) return;
		const top = box.current.scrollTop;
		const from = Math.floor(top / ROW);
		g.setTransform(dpr, 0, 0, dpr, 0, 0);
		g.clearRect(0, 0, width, height);
		paintBoxes(g, a.f, a.boxes, { from, to: Math.ceil((top + height) / ROW), shift: top - from * ROW, width }, { matches, dark: dark.value, safe: safe.value, focus, flip, fill });
	};
	useLayoutEffect(paint, [a, width, height, dpr, matches, dark.value, safe.value, focus, fill]); // a new size clears the canvas: an effect would show it empty for a frame
	return { box, canvas, dpr, width, height, all, paint };
}

/** How far it is scrolled is in the address: from its root on, which is the lowest row where it is flipped. */
function useHeldScroll(box: preact.RefObject<HTMLDivElement>, { a, hold, flip = false }: GraphProps, height: number): () => void {
	const fromRoot = (e: HTMLElement, px: number) => (flip ? e.scrollHeight - e.clientHeight - px : px);
	useLayoutEffect(() => {
		if (box.current) box.current.scrollTop = fromRoot(box.current, scrolledTo(hold));
	}, [a, height]);
	return () => box.current && storeScroll(hold, fromRoot(box.current, box.current.scrollTop));
}

/** The node that the keys are at. */
function useKeyed({ a, came, flip = false }: GraphProps, box: preact.RefObject<HTMLDivElement>, at: number, put: (set: (n: number) => number) => void) {
	const { f, boxes } = a;
	const keyed = at >= 0 && at < boxes.n ? at : -1;
	useLayoutEffect(() => {
		put((n) => (n < 0 ? -1 : nodeOf(a, came)));
	}, [a]);
	const show = (to: number) => {
		const y = rowOf(boxes, boxes.depth[to], flip) * ROW;
		put(() => to);
		if (box.current && (y < box.current.scrollTop || y + ROW > box.current.scrollTop + box.current.clientHeight))
			box.current.scrollTop = y - box.current.clientHeight / 2;
	};
	const step = (key: string) => show(keyed < 0 ? 0 : walk(f, boxes, keyed, flip ? FLIPPED[key] ?? key : key));
	return { keyed, show, step };
}

/** The method of its menu; null: none. */
function aboutNode({ a: { f, at }, names, callers = false }: GraphProps, node: number, x: number, y: number): About | null {
	if (node < 0 || f.method[node] < 0) return null;
	const stack = stackOf(f, node, at.path.slice(0, -1).map((m) => names[m] ?? ''));
	return { x, y, method: f.method[node], name: f.names[f.name[node]], stack: callers ? stack.reverse() : stack };
}

export function Graph(p: GraphProps) {
	const { a, metric, words, matches, label, flip = false, open, up } = p;
	const factsOf = p.factsOf ?? ((node: number) => numbers(a.f, node, metric, words));
	const { f, boxes } = a;
	const [over, point] = useState<{ node: number; x: number; y: number } | null>(null);
	const [menu, openMenu] = useState<About | null>(null);
	const [focus, put] = useState(-1);
	const { box, canvas, dpr, width, height, all, paint } = useCanvas(p, focus < boxes.n ? focus : -1);
	const { keyed, show, step } = useKeyed(p, box, focus, put);
	const scrolled = useHeldScroll(box, p, height);
	const hits = useMemo(() => hitsOf(f, matches), [f, matches]);
	useLayoutEffect(() => {
		point(null);
		openMenu(null);
	}, [a]);

	const under = (x: number, y: number) => {
		const row = Math.floor((y + (box.current?.scrollTop ?? 0)) / ROW);
		return boxAt(boxes, flip ? boxes.rows - 1 - row : row, x / width);
	};
	const nodeAt = (e: PointerEvent | MouseEvent) => under(e.offsetX, e.offsetY);
	const into = (node: number) => node >= 0 && open(node);
	const spread = ({ x, y }: { x: number; y: number }) => into(under(x, y));
	const now = useRef({ spread, up });
	now.current = { spread, up };
	const pinch = useMemo(() => pinchOn((at) => now.current.spread(at), () => now.current.up()), []);
	const more = (node: number, x: number, y: number) => {
		point(null);
		openMenu(aboutNode(p, node, x, y));
	};
	const moreKeyed = () => {
		const at = Math.max(0, keyed);
		const frame = canvas.current!.getBoundingClientRect();
		more(at, frame.left + boxes.x0[at] * width + 12, frame.top - box.current!.scrollTop + (rowOf(boxes, boxes.depth[at], flip) + 1) * ROW);
	};
	const goHit = (forward: boolean) => hits && hits.nodes.length > 0 && show(nextHit(hits.nodes, keyed, forward));
	const onKey = (e: KeyboardEvent) => {
		if (e.ctrlKey || e.metaKey || e.altKey) return;
		if (e.key === 'Enter') open(Math.max(0, keyed));
		else if (e.key === 'm' || e.key === 'ContextMenu' || (e.key === 'F10' && e.shiftKey)) moreKeyed();
		else if (e.key === 'Escape' || e.key === 'Backspace') up();
		else if (/^(n|N|F3)$/.test(e.key)) goHit(!e.shiftKey);
		else if (/^(Arrow(Up|Down|Left|Right)|Home)$/.test(e.key)) step(e.key);
		else return;
		e.preventDefault();
	};
	const onMove = (e: PointerEvent) => {
		pinch.onPointerMove(e);
		if (e.pointerType === 'touch') return; // a finger hides the node below it
		const node = nodeAt(e);
		point(node < 0 || menu ? null : { node, x: e.clientX, y: e.clientY });
	};
	return <>
		{hits && <HitBar hits={hits.nodes.length} of={boxes.n - 1} share={hits.value / (f.value[0] || 1)} what={tr('frames')} go={goHit} />}
		<div ref={box} class="canvasbox flame" onScroll={() => { point(null); paint(); scrolled(); }}>
			<div style={{ height: `${all}px` }}>
				<canvas ref={canvas} width={Math.round(width * dpr)} height={Math.round(height * dpr)} role="application" tabIndex={0}
					style={{ width: `${width}px`, height: `${height}px` }}
					aria-label={tr('{label}. Arrows move to parent, child and siblings, Enter opens, m shows a menu, Escape goes up. The tables below have the same data.', { label })}
					onClick={(e) => { if (!pinch.wasPinch()) into(nodeAt(e)); }} onKeyDown={onKey}
					onPointerDown={pinch.onPointerDown} onPointerUp={pinch.onPointerEnd} onPointerCancel={pinch.onPointerEnd}
					onContextMenu={(e) => { e.preventDefault(); more(nodeAt(e), e.clientX, e.clientY); }}
					onFocus={(e) => e.currentTarget.matches(':focus-visible') && put((n) => Math.max(0, n))} onBlur={() => menu || put(-1)}
					onPointerLeave={() => point(null)} onPointerMove={onMove} />
			</div>
		</div>
		{over && over.node < boxes.n && <FlameTip f={f} node={over.node} x={over.x} y={over.y} facts={factsOf(over.node)} />}
		{menu && <MethodMenu about={menu} items={p.itemsOf} close={() => openMenu(null)} />}
		<p class="keyed" role="status">{keyed >= 0 && <><span class="mono">{f.other[keyed] ? labelOf(f, keyed) : f.names[f.name[keyed]]}</span>{' '}
			<span class="quiet">{factsOf(keyed).map(([k, v]) => `${k} ${v}`).join(', ')}</span></>}</p>
	</>;
}
