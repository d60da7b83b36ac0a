// The table of methods: what the canvases show, as numbers.
import { useEffect, useRef, useState } from 'preact/hooks';
import { api, type Method } from './api';
import { count, duration, percent, splitName } from './format';
import { MethodMenu, type About } from './methodmenu';
import { Busy, Copy, Failure, Panel, useLoad } from './parts';
import { number, set, text } from './route';
import type { Words } from './source';

const COLUMNS: [string, string, (m: Method) => string][] = [
	['count', 'Calls', (m) => count(m.count)],
	['self_ns', 'Self', (m) => duration(m.self_ns)],
	['total_ns', 'Total', (m) => duration(m.total_ns)],
	['max_ns', 'Longest', (m) => duration(m.max_ns)],
];
// In recordings that have a CPU clock: what a method did not wait.
const CPU: typeof COLUMNS = [
	['cpu_ns', 'CPU', (m) => m.cpu_ns === null ? '' : duration(m.cpu_ns)],
	['waiting_ns', 'Waiting', (m) => m.waiting_ns === null ? '' : duration(m.waiting_ns)],
];
const STEP = 25;
const ROWS_MAX = 10000;
const TYPING_MS = 200;

function Sorted({ by, label, hint }: { by: string; label: string; hint?: string }) {
	const now = text('sort') || 'self_ns';
	const usual = by === 'name' ? 'asc' : 'desc';
	const order = now === by ? text('order') || usual : '';
	const pick = () => {
		const to = order === usual ? (usual === 'asc' ? 'desc' : 'asc') : usual;
		set({ sort: by === 'self_ns' ? null : by, order: to === usual ? null : to });
	};
	const arrow = order && <span aria-hidden="true">{order === 'asc' ? ' ↑ ' : ' ↓ '}</span>;
	return (
		<th scope="col" class={by === 'name' ? '' : 'num'} title={hint} aria-sort={order ? (order === 'asc' ? 'ascending' : 'descending') : 'none'}>
			<button class="plain" onClick={pick}>{by !== 'name' && arrow}{label}{by === 'name' && arrow}</button>
		</th>
	);
}

function Filter() {
	const value = text('filter');
	const [typed, put] = useState(value);
	const timer = useRef(0);
	useEffect(() => put(value), [value]);
	const change = (v: string) => {
		put(v);
		clearTimeout(timer.current);
		timer.current = window.setTimeout(() => set({ filter: v, rows: null }), TYPING_MS);
	};
	return <label class="inline">Filter
		<input type="search" value={typed} placeholder="part of a name" onInput={(e) => change(e.currentTarget.value)} /></label>;
}

function Row({ m, columns, busy, most, onFind, onMore }: {
	m: Method; columns: typeof COLUMNS; busy: number; most: number; onFind: (name: string) => void; onMore: (about: About) => void;
}) {
	const share = m.self_ns / (busy || 1);
	const [pkg, rest] = splitName(m.name);
	return (
		<tr onContextMenu={(e) => { e.preventDefault(); onMore({ x: e.clientX, y: e.clientY, method: m.method, name: m.name }); }}>
			<td class="mono name"><button class="plain" title={`Show where it runs${m.id === null ? '' : `; method id ${m.id}`}`} onClick={() => onFind(m.name)}>
				<span class="quiet">{pkg}</span>{rest}</button></td>
			{columns.map(([key, , show]) => <td key={key} class="num">{show(m)}</td>)}
			<td class="num share"><span class="bar" style={{ width: `${(100 * m.self_ns) / most}%` }} /><span>{percent(share)}</span></td>
			<td class="num"><button class="plain" aria-label={`More about ${m.name}`} aria-haspopup="menu" onClick={(e) => {
				const r = e.currentTarget.getBoundingClientRect();
				onMore({ x: r.left, y: r.bottom, method: m.method, name: m.name });
			}}>⋯</button></td>
		</tr>
	);
}

export function MethodsPanel({ id, thread, range, mappingTurn, scope, words, onFind }: {
	id: string; thread: string; range: [number, number] | null; mappingTurn: number; scope: preact.ComponentChild; words: Words; onFind: (name: string) => void;
}) {
	const sort = text('sort') || 'self_ns';
	const order = text('order') || (sort === 'name' ? 'asc' : 'desc');
	const q = text('filter');
	const limit = Math.min(ROWS_MAX, Math.max(1, number('rows') ?? STEP));
	const transform = text('t');
	const [menu, ask] = useState<About | null>(null);
	const params = { thread, from: range?.[0], to: range?.[1], sort, order, q, limit, transform };
	const page = useLoad(JSON.stringify(params) + mappingTurn, (s) => api.methods(id, params, s));
	const v = page.value;
	const columns = v?.methods.some((m) => m.cpu_ns !== null) ? [...COLUMNS, ...CPU] : COLUMNS;
	const tsv = () => [`method\t${words.many.replace(/ /g, '_')}\tself_ns\ttotal_ns\tlongest_ns\tcpu_ns\twaiting_ns`,
		...(v?.methods ?? []).map((m) => [m.name, m.count, m.self_ns, m.total_ns, m.max_ns, m.cpu_ns ?? '', m.waiting_ns ?? ''].join('\t'))].join('\n');
	return (
		<Panel title="Methods" aside={<>{scope}<Filter />{v && v.methods.length > 0 && <Copy text={tsv()} label="Copy as TSV" />}</>}>
			{page.error && <Failure error={page.error} retry={page.again} />}
			{!v && page.busy && <Busy what="Adding up" />}
			{v && v.total === 0 && <p class="quiet">{q ? 'No method that was called here has this in its name.' : 'No call in this part.'}</p>}
			{v && v.total > 0 && <div class={`scroll ${page.busy ? 'stale' : ''}`}>
				<table class="methods">
					<thead><tr>
						<Sorted by="name" label="Method" />
						{columns.map(([key, label]) => <Sorted key={key} by={key} label={key === 'count' ? words.head : label} hint={key === 'count' ? words.hint : undefined} />)}
						<th scope="col" class="num">Self share</th>
						<th scope="col"><span class="hidden">More</span></th>
					</tr></thead>
					<tbody>{v.methods.map((m) => <Row key={m.method} m={m} columns={columns} busy={v.busy_ns} most={Math.max(1, ...v.methods.map((x) => x.self_ns))} onFind={onFind} onMore={ask} />)}</tbody>
				</table>
			</div>}
			{v && v.total > 0 && <div class="row under">
				<span class="quiet">{count(v.methods.length)} of {count(v.total)} methods; shares are of {duration(v.busy_ns)} busy time{v.partial ? '; not complete: the time for this query ran out' : ''}</span>
				{v.methods.length < v.total && limit < ROWS_MAX && <button class="small" onClick={() => set({ rows: Math.min(ROWS_MAX, limit * 4) })}>Show more</button>}
			</div>}
			{menu && <MethodMenu about={menu} close={() => ask(null)} />}
		</Panel>
	);
}
