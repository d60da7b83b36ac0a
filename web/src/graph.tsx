// One merged flame graph on a canvas, with pointer and keys.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Flame } from './api';
import { count, duration, percent } from './format';
import { boxAt, childrenOf, walk, type Boxes, type Place } from './flamelayout';
import { labelOf, paintBoxes, ROW, rowOf } from './flamepaint';
import { MethodMenu, type About } from './methodmenu';
import { useWidth } from './parts';
import { many, type Words } from './source';
import { dark } from './theme';
import { Tip } from './tip';

/** What widths are made of. */
export interface Metric {
	key: 'wall' | 'count' | 'cpu' | 'waiting';
	all: string; // of a node with all below it
	own: string;
	show: (v: number) => string;
}

export function metricOf(key: string, w: Words): Metric {
	if (key === 'count') return { key, all: `${w.many} with all below`, own: `own ${w.many}`, show: count };
	if (key === 'cpu') return { key, all: 'CPU', own: 'own CPU', show: duration };
	if (key === 'waiting') return { key, all: 'waiting', own: 'own waiting', show: duration };
	return { key: 'wall', all: 'wall', own: 'self', show: duration };
}

export interface Answer {
	f: Flame;
	boxes: Boxes;
	at: Place; // what was asked for: nodes of an answer lie below this, whatever the address says by now
}

export function numbers(f: Flame, node: number, m: Metric, w: Words): [string, string][] {
	return [
		[m.all, m.show(f.value[node])],
		[m.own, m.show(f.self[node])],
		['count', many(f.count[node], w)],
		['share', `${percent(f.value[node] / (f.value[0] || 1))} of this graph`],
	];
}

function FlameTip({ f, node, x, y, metric, words }: { f: Flame; node: number; x: number; y: number; metric: Metric; words: Words }) {
	return (
		<Tip x={x} y={y} name={f.other[node] ? `${count(f.other[node])} smaller` : f.names[f.name[node]]}>
			{f.other[node] > 0 && node > 0 && <div>A click shows them.</div>}
			<dl>{numbers(f, node, metric, words).map(([k, v]) => <><dt key={k}>{k}</dt><dd>{v}</dd></>)}</dl>
			{f.method[node] >= 0 && <div class="quiet">Right click or m: more</div>}
		</Tip>
	);
}

/** The node that is gone back to: the one that was the root before. */
function nodeOf(a: Answer, left: Place | null): number {
	if (!left || left.skip || left.path.length !== a.at.path.length + 1) return 0;
	return childrenOf(a.f).find((i) => a.f.method[i] === left.path[left.path.length - 1]) ?? 0;
}

function stackOf(f: Flame, node: number, above: string[]): string[] {
	const out: string[] = [];
	for (let i = node; i > 0; i = f.parent[i]) out.unshift(f.names[f.name[i]]);
	return f.method[0] >= 0 ? [...above, ...out] : out;
}

interface Props {
	a: Answer;
	metric: Metric;
	words: Words;
	matches: Uint8Array | null;
	names: string[];
	label: string;
	flip?: boolean;
	callers?: boolean; // children are callers
	open: (node: number) => void;
	up: () => void;
	came: Place | null;
}

const FLIPPED: Record<string, string> = { ArrowUp: 'ArrowDown', ArrowDown: 'ArrowUp' };

export function Graph({ a, metric, words, matches, names, label, flip = false, callers = false, open, up, came }: Props) {
	const { f, boxes } = a;
	const [box, width] = useWidth<HTMLDivElement>();
	const canvas = useRef<HTMLCanvasElement>(null);
	const [over, point] = useState<{ node: number; x: number; y: number } | null>(null);
	const [menu, ask] = useState<About | null>(null);
	const [focus, put] = useState(-1);
	const dpr = Math.max(1, Math.round(devicePixelRatio || 1));
	const height = Math.max(1, boxes.rows) * ROW;
	const keyed = focus >= 0 && focus < boxes.n ? focus : -1;

	useEffect(() => {
		point(null);
		ask(null);
		put((n) => (n < 0 ? -1 : nodeOf(a, came)));
		if (flip && box.current) box.current.scrollTop = height;
	}, [a]);
	useEffect(() => {
		const g = canvas.current?.getContext('2d');
		if (!g || width < 10) return;
		g.setTransform(dpr, 0, 0, dpr, 0, 0);
		g.clearRect(0, 0, width, height);
		paintBoxes(g, f, boxes, width, { matches, dark: dark.value, focus: keyed, flip });
	}, [a, width, matches, dark.value, keyed]);

	const nodeAt = (e: PointerEvent | MouseEvent) => {
		const row = Math.floor(e.offsetY / ROW);
		return boxAt(boxes, flip ? boxes.rows - 1 - row : row, e.offsetX / width);
	};
	const more = (node: number, x: number, y: number) => {
		if (node < 0 || f.method[node] < 0) return;
		const stack = stackOf(f, node, a.at.path.slice(0, -1).map((m) => names[m] ?? ''));
		point(null);
		ask({ x, y, method: f.method[node], name: f.names[f.name[node]], stack: callers ? [...stack].reverse() : stack });
	};
	const moreKeyed = () => {
		const at = Math.max(0, keyed);
		const frame = canvas.current!.getBoundingClientRect();
		more(at, frame.left + boxes.x0[at] * width + 12, frame.top + (rowOf(boxes, boxes.depth[at], flip) + 1) * ROW);
	};
	const step = (key: string) => {
		const to = keyed < 0 ? 0 : walk(f, boxes, keyed, flip ? FLIPPED[key] ?? key : key);
		const y = rowOf(boxes, boxes.depth[to], flip) * ROW;
		put(to);
		if (box.current && (y < box.current.scrollTop || y + ROW > box.current.scrollTop + box.current.clientHeight))
			box.current.scrollTop = y - box.current.clientHeight / 2;
	};
	const onKey = (e: KeyboardEvent) => {
		if (e.ctrlKey || e.metaKey || e.altKey) return;
		if (e.key === 'Enter') open(Math.max(0, keyed));
		else if (e.key === 'm' || e.key === 'ContextMenu' || (e.key === 'F10' && e.shiftKey)) moreKeyed();
		else if (e.key === 'Escape' || e.key === 'Backspace') up();
		else if (/^(Arrow(Up|Down|Left|Right)|Home)$/.test(e.key)) step(e.key);
		else return;
		e.preventDefault();
	};
	return <>
		<div ref={box} class="canvasbox flame">
			<canvas ref={canvas} width={width * dpr} height={height * dpr} role="application" tabIndex={0}
				style={{ width: `${width}px`, height: `${height}px` }}
				aria-label={`${label}. Arrows go to parent, child and siblings, Enter opens a node, m shows what can be done with it, Escape goes up. The tables below hold the same numbers.`}
				onClick={(e) => { const n = nodeAt(e); if (n >= 0) open(n); }} onKeyDown={onKey}
				onContextMenu={(e) => { e.preventDefault(); more(nodeAt(e), e.clientX, e.clientY); }}
				onFocus={(e) => e.currentTarget.matches(':focus-visible') && put((n) => Math.max(0, n))} onBlur={() => menu || put(-1)}
				onPointerLeave={() => point(null)}
				onPointerMove={(e) => {
					const node = nodeAt(e);
					point(node < 0 || menu ? null : { node, x: e.clientX, y: e.clientY });
				}} />
		</div>
		{over && over.node < boxes.n && <FlameTip f={f} node={over.node} x={over.x} y={over.y} metric={metric} words={words} />}
		{menu && <MethodMenu about={menu} close={() => ask(null)} />}
		<p class="keyed" role="status">{keyed >= 0 && <><span class="mono">{f.other[keyed] ? labelOf(f, keyed) : f.names[f.name[keyed]]}</span>{' '}
			<span class="quiet">{numbers(f, keyed, metric, words).map(([k, v]) => `${k} ${v}`).join(', ')}</span></>}</p>
	</>;
}
