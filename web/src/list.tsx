// The list of traces: filters and order in the address, pages by cursor, states that refresh.
import { useEffect, useRef, useState } from 'preact/hooks';
import { api, type Trace } from './api';
import { bytes, count, duration, when } from './format';
import { Busy, Command, Failure, useLoad } from './parts';
import { link, set, text } from './route';

const FILTERS: [string, string][] = [
	['app', 'App'], ['version_name', 'Version'], ['scenario', 'Scenario'], ['device', 'Device'], ['state', 'State'],
];
const REFRESH_MS = 2000;

function useFacets(column: string) {
	return useLoad(column, () => api.facets(column)).value?.values.filter((v) => v.value) ?? [];
}

function Filter({ column, label }: { column: string; label: string }) {
	const values = useFacets(column);
	const value = text(column);
	if (values.length === 0 && !value) return null;
	return (
		<label class="inline">{label}
			<select value={value} onChange={(e) => set({ [column]: e.currentTarget.value, cursor: null })}>
				<option value="">any</option>
				{value && !values.some((v) => v.value === value) && <option value={value}>{value}</option>}
				{values.map((v) => <option key={v.value} value={v.value}>{v.value} ({count(v.count)})</option>)}
			</select>
		</label>
	);
}

function SearchBox() {
	const [value, put] = useState(text('q'));
	const timer = useRef(0);
	const change = (v: string) => {
		put(v);
		clearTimeout(timer.current);
		timer.current = window.setTimeout(() => set({ q: v, cursor: null }), 250);
	};
	return <label class="inline grow">Search
		<input type="search" value={value} placeholder="app, device, build, id"
			onInput={(e) => change(e.currentTarget.value)} /></label>;
}

function Sorted({ by, children }: { by: string; children: string }) {
	const sort = text('sort') || 'created';
	const asc = text('order') === 'asc';
	const on = sort === by;
	return (
		<th scope="col" aria-sort={on ? (asc ? 'ascending' : 'descending') : 'none'} class="num">
			<button class="plain" onClick={() => set({ sort: by, order: on && !asc ? 'asc' : null, cursor: null })}>
				{children}{on ? (asc ? ' ↑' : ' ↓') : ''}
			</button>
		</th>
	);
}

function State({ t }: { t: Trace }) {
	const flaws = (t.summary?.losses ?? 0) + (t.summary?.repairs ?? 0);
	return (
		<span class={`state ${t.state}`} title={t.error?.message}>
			{t.state}{t.state === 'queued' && t.error ? ', held up' : ''}{t.state === 'ready' && flaws > 0 ? `, ${flaws} ${flaws === 1 ? 'repair' : 'repairs'}` : ''}
		</span>
	);
}

function Row({ t, removed }: { t: Trace; removed: () => void }) {
	const [sure, ask] = useState(false);
	const [error, fail] = useState('');
	const remove = () => api.remove(t.id).then(removed, (why: Error) => fail(why.message));
	const m = t.meta;
	return (
		<tr>
			<td><a href={link(`/traces/${t.id}`)}>{m.app || t.id}</a>{m.process && m.process !== m.app ? <span class="quiet"> {m.process}</span> : null}</td>
			<td>{m.version_name}</td>
			<td>{m.scenario}</td>
			<td>{m.device}{m.os ? <span class="quiet"> {m.os}</span> : null}</td>
			<td><State t={t} /></td>
			<td class="num">{t.summary ? duration(t.summary.duration_ns) : ''}</td>
			<td class="num">{t.summary ? count(t.summary.slices) : ''}</td>
			<td class="num">{bytes(t.upload_bytes)}</td>
			<td class="num">{when(t.created_ms)}</td>
			<td class="actions">
				{sure ? <span role="group" aria-label="Delete this trace?">
					<button class="small danger" onClick={remove}>Delete for good</button>
					<button class="small" onClick={() => ask(false)}>Keep</button>
				</span> : <button class="small" onClick={() => ask(true)} aria-label={`Delete trace ${t.id}`}>Delete</button>}
				{error && <span class="badtext" role="alert">{error}</span>}
			</td>
		</tr>
	);
}

function FirstTrace() {
	const o = location.origin;
	return (
		<div class="notice">
			<strong>No trace has arrived yet.</strong>
			<p>1. Make an ingest key on the server:</p>
			<Command>{'KEY=$(tracewell key create --data ./data --project default --scope ingest)'}</Command>
			<p>2. Send the build's method mapping, before or after its traces:</p>
			<Command>{`curl -T methodMapping.txt -H "Authorization: Bearer $KEY" ${o}/api/v1/builds/BUILD/methods`}</Command>
			<p>3. Send a trace:</p>
			<Command>{`curl --data-binary @rhea-atrace.bin -H "Authorization: Bearer $KEY" '${o}/api/v1/traces?build_id=BUILD&scenario=cold_start'`}</Command>
			<p class="quiet">This page shows it as soon as it is there.</p>
		</div>
	);
}

export function ListPage() {
	const names = ['app', 'version_name', 'scenario', 'device', 'state', 'build_id', 'q', 'sort', 'order', 'cursor'];
	const params = Object.fromEntries(names.map((n) => [n, text(n)]));
	const filtered = names.slice(0, 7).some((n) => params[n]);
	const page = useLoad(JSON.stringify(params), (s) => api.traces({ ...params, limit: 50 }, s));
	const moving = page.value?.traces.some((t) => t.state === 'queued' || t.state === 'decoding') || page.value?.total === 0;

	useEffect(() => {
		document.title = 'Traces · tracewell';
	}, []);
	useEffect(() => {
		if (!moving || page.error) return;
		const timer = setTimeout(page.again, REFRESH_MS);
		return () => clearTimeout(timer);
	});

	const v = page.value;
	return (
		<main>
			<div class="row head">
				<h1>Traces</h1>
				{v && v.total > 0 && <span class="quiet">{count(v.total)} {filtered ? 'match' : 'in this project'}</span>}
			</div>
			{(filtered || !v || v.total > 0) && <div class="row filters" role="search">
				{FILTERS.map(([c, l]) => <Filter key={c} column={c} label={l} />)}
				<SearchBox />
				{filtered && <button class="small" onClick={() => set(Object.fromEntries(names.map((n) => [n, null])))}>Clear</button>}
			</div>}
			{page.error && <Failure error={page.error} retry={page.again} />}
			{!v && page.busy && <Busy what="Loading traces" />}
			{v && v.total === 0 && (filtered
				? <div class="notice"><strong>No trace fits these filters.</strong></div> : <FirstTrace />)}
			{v && v.traces.length > 0 && (
				<div class="scroll">
					<table>
						<thead><tr>
							<th scope="col">App</th><th scope="col">Version</th><th scope="col">Scenario</th>
							<th scope="col">Device</th><th scope="col">State</th>
							<Sorted by="duration">Duration</Sorted><Sorted by="slices">Calls, samples</Sorted>
							<Sorted by="bytes">Upload</Sorted><Sorted by="created">Arrived</Sorted>
							<th scope="col"><span class="hidden">Actions</span></th>
						</tr></thead>
						<tbody>{v.traces.map((t) => <Row key={t.id} t={t} removed={page.again} />)}</tbody>
					</table>
				</div>)}
			<div class="row pages">
				{params.cursor && <button onClick={() => history.back()}>Back</button>}
				{v?.cursor && <button onClick={() => set({ cursor: v.cursor }, true)}>More</button>}
			</div>
		</main>
	);
}
