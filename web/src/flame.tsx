// The merged flame graph: a click goes into a node and asks the server for that subtree in full.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { api, type Flame } from './api';
import { colorOf, css } from './color';
import { count, duration, percent, splitName } from './format';
import { boxAt, boxesOf, pathOf, type Boxes } from './flamelayout';
import { Busy, Choice, Failure, Panel, useLoad, useWidth } from './parts';
import { set, text } from './route';
import { dark } from './theme';

const ROW = 19;

interface Props {
	id: string;
	thread: string;
	range: [number, number] | null;
	names: string[];
	matches: Uint8Array | null;
	mappingTurn: number;
}

function paintBoxes(g: CanvasRenderingContext2D, f: Flame, b: Boxes, width: number, matches: Uint8Array | null): void {
	const style = getComputedStyle(document.documentElement);
	const ink = style.getPropertyValue('--flame-ink');
	const hit = style.getPropertyValue('--hit');
	const faded = style.getPropertyValue('--faded');
	const other = style.getPropertyValue('--line');
	g.font = '11px system-ui, sans-serif';
	g.textBaseline = 'middle';
	for (let i = 0; i < b.n; i++) {
		const x = b.x0[i] * width;
		const w = (b.x1[i] - b.x0[i]) * width;
		if (w < 0.5) continue;
		const y = b.depth[i] * ROW;
		const name = f.names[f.name[i]];
		const m = f.method[i];
		g.fillStyle = f.other[i] ? other : matches ? (m >= 0 && matches[m] ? hit : faded) : i === 0 ? other : css(colorOf(name, dark.value));
		g.fillRect(x, y, Math.max(1, w - (w > 3 ? 1 : 0)), ROW - 1);
		const room = Math.floor((w - 8) / 6.1);
		if (room < 3) continue;
		const label = f.other[i] ? `${count(f.other[i])} smaller` : i === 0 ? name : splitName(name)[1];
		g.fillStyle = ink;
		g.fillText(label.length > room ? label.slice(0, room - 1) + '…' : label, x + 4, y + (ROW - 1) / 2 + 0.5);
	}
}

function FlameTip({ f, node, x, y, width, counts }: { f: Flame; node: number; x: number; y: number; width: number; counts: boolean }) {
	const [pkg, rest] = splitName(f.names[f.name[node]]);
	const show = (v: number) => (counts ? count(v) : duration(v));
	return (
		<div class="tip" style={{ top: `${y + 16}px`, ...(x > width / 2 ? { right: `${width - x + 8}px` } : { left: `${x + 8}px` }) }}>
			<div class="mono"><span class="quiet">{pkg}</span>{rest}</div>
			{f.other[node] > 0 && <div>{count(f.other[node])} smaller nodes; click to see them</div>}
			<dl>
				<dt>{counts ? 'calls, with all below' : 'wall'}</dt><dd>{show(f.value[node])}</dd>
				<dt>self</dt><dd>{show(f.self[node])}</dd>
				<dt>calls</dt><dd>{count(f.count[node])}</dd>
				<dt>share</dt><dd>{percent(f.value[node] / (f.value[0] || 1))}</dd>
			</dl>
		</div>
	);
}

function Crumbs({ root, names, go }: { root: number[]; names: string[]; go: (path: number[]) => void }) {
	if (root.length === 0) return null;
	const first = Math.max(0, root.length - 4);
	return (
		<nav class="crumbs" aria-label="Path of the flame graph">
			<button class="small" onClick={() => go([])}>Top</button>
			{first > 0 && <span class="quiet">…</span>}
			{root.slice(first).map((m, i) => (
				<button key={i} class="small" title={names[m]} onClick={() => go(root.slice(0, first + i + 1))}>{splitName(names[m] ?? '')[1]}</button>))}
		</nav>
	);
}

export function FlamePanel(p: Props) {
	const view = text('view') || 'top_down';
	const metric = text('metric') || 'wall';
	const rootText = text('root');
	const root = rootText ? rootText.split('.').map(Number) : [];
	const params = { thread: p.thread, view, metric, root: rootText, from: p.range?.[0], to: p.range?.[1] };
	const flame = useLoad(JSON.stringify(params) + p.mappingTurn, (s) => api.flame(p.id, params, s));
	const f = flame.value;
	const boxes = useMemo(() => (f ? boxesOf(f) : null), [f]);
	const [box, width] = useWidth<HTMLDivElement>();
	const canvas = useRef<HTMLCanvasElement>(null);
	const [over, point] = useState<{ node: number; x: number; y: number } | null>(null);
	const dpr = Math.max(1, Math.round(devicePixelRatio || 1));
	const height = Math.max(1, boxes?.rows ?? 1) * ROW;
	const go = (path: number[]) => {
		point(null);
		set({ root: path.join('.') }, true);
	};

	useEffect(() => {
		const g = canvas.current?.getContext('2d');
		if (!g || !f || !boxes || width < 10) return;
		g.setTransform(dpr, 0, 0, dpr, 0, 0);
		g.clearRect(0, 0, width, height);
		paintBoxes(g, f, boxes, width, p.matches);
	}, [f, boxes, width, p.matches, dark.value]);

	const nodeAt = (e: PointerEvent | MouseEvent) =>
		boxes ? boxAt(boxes, Math.floor(e.offsetY / ROW), e.offsetX / width) : -1;
	const click = (e: MouseEvent) => {
		const node = nodeAt(e);
		if (!f || node < 0) return;
		if (node === 0) go(root.slice(0, -1));
		else go([...root, ...pathOf(f, node)]);
	};
	const empty = f && f.value[0] === 0;
	return (
		<Panel title="Merged flame graph" aside={<>
			<Choice label="Direction" value={view} options={[['top_down', 'Top-down'], ['bottom_up', 'Bottom-up']]}
				onPick={(v) => set({ view: v === 'top_down' ? null : v, root: null })} />
			<Choice label="Metric" value={metric} options={[['wall', 'Wall'], ['count', 'Calls']]}
				onPick={(v) => set({ metric: v === 'wall' ? null : v })} />
		</>}>
			<Crumbs root={root} names={p.names} go={go} />
			{flame.error && <Failure error={flame.error} retry={flame.again} />}
			<div ref={box} class={`canvasbox flame ${flame.busy ? 'stale' : ''}`}>
				{!f && flame.busy && <Busy what="Merging calls" />}
				{empty && <p class="quiet">No call in this part.</p>}
				{f && !empty && <canvas ref={canvas} width={width * dpr} height={height * dpr} role="img"
					style={{ width: `${width}px`, height: `${height}px` }}
					aria-label="Merged flame graph. The table of methods below holds the same numbers."
					onClick={click} onPointerLeave={() => point(null)}
					onPointerMove={(e) => {
						const node = nodeAt(e);
						point(node < 0 ? null : { node, x: e.offsetX, y: e.offsetY });
					}} />}
				{f && over && over.node < f.value.length && <FlameTip f={f} node={over.node} x={over.x} y={over.y} width={width} counts={metric === 'count'} />}
			</div>
			{f && <p class="quiet">{count(f.shown_nodes)} of {count(f.total_nodes)} nodes{f.shown_nodes < f.total_nodes ? '; click a node to see what is below it in full' : ''}{f.partial ? '. The time for this query ran out: the graph is not complete' : ''}</p>}
		</Panel>
	);
}
