// The table of methods: what the canvases show, as numbers.
import { useState } from 'preact/hooks';
import { api, type Method } from './api';
import { count, duration, percent, splitName } from './format';
import { Busy, Copy, Failure, Panel, useLoad } from './parts';

const COLUMNS: [string, string, (m: Method) => string][] = [
	['count', 'Calls', (m) => count(m.count)],
	['self_ns', 'Self', (m) => duration(m.self_ns)],
	['total_ns', 'Total', (m) => duration(m.total_ns)],
	['max_ns', 'Longest', (m) => duration(m.max_ns)],
];
const STEP = 25;

export function MethodsPanel({ id, thread, range, busyNs, mappingTurn, onFind }: {
	id: string; thread: string; range: [number, number] | null; busyNs: number; mappingTurn: number; onFind: (name: string) => void;
}) {
	const [sort, order] = useState<[string, string]>(['self_ns', 'desc']);
	const [q, filter] = useState('');
	const [limit, more] = useState(STEP);
	const params = { thread, from: range?.[0], to: range?.[1], sort: sort[0], order: sort[1], q, limit };
	const page = useLoad(JSON.stringify(params) + mappingTurn, (s) => api.methods(id, params, s));
	const v = page.value;
	const tsv = () => ['method\tcalls\tself_ns\ttotal_ns\tlongest_ns',
		...(v?.methods ?? []).map((m) => [m.name, m.count, m.self_ns, m.total_ns, m.max_ns].join('\t'))].join('\n');
	return (
		<Panel title="Methods" aside={<>
			<label class="inline">Filter <input type="search" value={q} onInput={(e) => { filter(e.currentTarget.value); more(STEP); }} /></label>
			{v && <Copy text={tsv()} label="Copy as TSV" />}
		</>}>
			{page.error && <Failure error={page.error} retry={page.again} />}
			{!v && page.busy && <Busy what="Adding up" />}
			{v && <div class={`scroll ${page.busy ? 'stale' : ''}`}>
				<table class="methods">
					<thead><tr>
						<th scope="col" aria-sort={sort[0] === 'name' ? (sort[1] === 'asc' ? 'ascending' : 'descending') : 'none'}>
							<button class="plain" onClick={() => order(['name', sort[0] === 'name' && sort[1] === 'asc' ? 'desc' : 'asc'])}>Method</button></th>
						{COLUMNS.map(([key, label]) => (
							<th key={key} scope="col" class="num" aria-sort={sort[0] === key ? (sort[1] === 'asc' ? 'ascending' : 'descending') : 'none'}>
								<button class="plain" onClick={() => order([key, sort[0] === key && sort[1] === 'desc' ? 'asc' : 'desc'])}>
									{label}{sort[0] === key ? (sort[1] === 'asc' ? ' ↑' : ' ↓') : ''}</button></th>))}
						<th scope="col" class="num">Self share</th>
					</tr></thead>
					<tbody>{v.methods.map((m) => (
						<tr key={m.method}>
							<td class="mono name"><button class="plain" title="Show where it runs" onClick={() => onFind(m.name)}>
								<span class="quiet">{splitName(m.name)[0]}</span>{splitName(m.name)[1]}</button></td>
							{COLUMNS.map(([key, , show]) => <td key={key} class="num">{show(m)}</td>)}
							<td class="num share"><span class="bar" style={{ width: `${Math.min(100, (100 * m.self_ns) / (busyNs || 1))}%` }} />{percent(m.self_ns / (busyNs || 1))}</td>
						</tr>))}</tbody>
				</table>
			</div>}
			{v && <div class="row under"><span class="quiet">{count(Math.min(limit, v.methods.length))} of {count(v.total)} methods{v.partial ? ', not complete: the time for this query ran out' : ''}</span>
				{v.methods.length < v.total && <button class="small" onClick={() => more(limit * 4)}>Show more</button>}</div>}
		</Panel>
	);
}
