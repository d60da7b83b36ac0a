// Calls in the fleet longer than a given time; the query is in the address, and each hit links to its call.
import { distinctions } from '../api/overloads';
import { api, get, type Frames } from '../api/api';
import { classWord } from '../api/classes';
import { FleetFilter, useFleet } from './fleetfilter';
import type { FleetMethods } from './fleetdoc';
import { count, duration } from '../i18n/format';
import { Cards } from '../ui/cards';
import { Page } from '../ui/page';
import { Busy, Failure, MethodName, Panel, Pending, useLoad } from '../ui/parts';
import { link, set, text } from '../ui/route';
import { tr } from '../i18n/strings/fleet';

interface Call { tid: number; start_ns: number; duration_ns: number; depth: number }
interface Hit {
	trace: string; method: string; descriptor: string; thread: string; is_main: boolean; max_ns: number; day_ms: number;
	version_name: string; scenario: string; class: string; os: string; call: Call | null;
}
interface Found { traces: number; methods: number; matches: number; hits: Hit[]; partial: boolean }

const NS_A_MS = 1e6;
const START = 10, READ = 100; // methods of the page before a search, and those of which they are chosen
const AROUND = 0.1; // of the call, before and after it

/** The trace's page with the call as its range, seen whole and a little around it. */
function hitLink(h: Hit): string {
	if (!h.call) return link(`/traces/${h.trace}?find=${encodeURIComponent(h.method)}`);
	const { tid, start_ns: from, duration_ns: long } = h.call;
	const to = from + long;
	const margin = Math.max(1, Math.round(long * AROUND));
	return link(`/traces/${h.trace}?thread=${tid}&from=${Math.max(0, from - margin)}&to=${to + margin}&a=${from}&b=${to}&find=${encodeURIComponent(h.method)}`);
}

/** The request of the address; null: none yet. */
function useQuestion(): Record<string, string> | null {
	const over = Number(text('over'));
	const q = {
		...useFleet().params, method: text('method'), regex: text('regex'), over_ns: over > 0 ? String(Math.round(over * NS_A_MS)) : '', thread: text('on'),
		ancestor: text('below'), ancestor_regex: text('below') && text('below_regex'),
	};
	return q.method ? Object.fromEntries(Object.entries(q).filter(([, v]) => v)) : null;
}

function Form() {
	const submit = (e: SubmitEvent) => {
		e.preventDefault();
		const form = new FormData(e.currentTarget as HTMLFormElement);
		const of = (name: string) => String(form.get(name) ?? '').trim();
		set(Object.fromEntries(['method', 'regex', 'over', 'on', 'below', 'below_regex', 'os'].map((n) => [n, of(n)])), true);
	};
	return (
		<form class="rule search" onSubmit={submit} aria-label={tr('Search for')}>
			<div class="row">
				<label class="inline grow">{tr('Method')}{' '}<input name="method" class="mono" required defaultValue={text('method')} placeholder="com.shop.Repo.load" autofocus /></label>
				<label class="inline"><input type="checkbox" name="regex" value="1" defaultChecked={text('regex') === '1'} />{' '}{tr('regex')}</label>
				<label class="inline">{tr('longer than (ms)')}{' '}<input name="over" class="short" inputMode="decimal" pattern="[0-9]+([.][0-9]+)?" title={tr('A number of milliseconds')} defaultValue={text('over')} /></label>
				<label class="inline">{tr('on thread')}{' '}<input name="on" defaultValue={text('on')} placeholder={tr('any, or main')} /></label>
			</div>
			<div class="row">
				<label class="inline grow">{tr('Called by')}{' '}<input name="below" class="mono" defaultValue={text('below')} placeholder={tr('any direct or indirect caller')} /></label>
				<label class="inline"><input type="checkbox" name="below_regex" value="1" defaultChecked={text('below_regex') === '1'} />{' '}{tr('regex')}</label>
				<label class="inline">{'Android'}{' '}<input name="os" class="short" defaultValue={text('os')} placeholder={tr('any')} /></label>
				<button class="primary">{tr('Search')}</button>
			</div>
		</form>
	);
}

function Row({ h, distinction = '', most }: { h: Hit; distinction?: string; most: number }) {
	return (
		<tr>
			<td class="num share"><span class="bar" style={{ width: `${(100 * h.max_ns) / most}%` }} /><a href={hitLink(h)}>{duration(h.max_ns)}</a></td>
			<td class="anywhere wide"><a href={link(`/fleet/methods?method=${encodeURIComponent(h.method)}`)}><MethodName name={h.method + distinction} /></a></td>
			<td class="nowrap">{h.thread || (h.is_main ? tr('main') : tr('unnamed'))}{h.is_main && h.thread && h.thread !== 'main' && <span class="quiet">{' '}{tr('(main)')}</span>}</td>
			<td>{h.version_name || '–'}</td>
			<td>{h.scenario || '–'}</td>
			<td>{h.class ? classWord(h.class) : '–'}</td>
			<td>{h.os || '–'}</td>
			<td class="nowrap">{new Date(h.day_ms).toISOString().slice(0, 10)}</td>
		</tr>
	);
}

/** The number of results as text. */
export function summary(v: Found): string {
	if (v.methods === 0) return tr('No counted trace has a method with this name.');
	const of = tr.many(v.traces, '{n} trace', '{n} traces');
	if (v.hits.length === 0) return v.partial ? tr('Nothing found within the time limit, in {of}.', { of }) : tr('No call is that long in {of}.', { of });
	return tr('The {hits} of {matches} in {of}{partial}.', { hits: v.hits.length === 1 ? tr('longest call') : tr('{hits} longest', { hits: count(v.hits.length) }), matches: count(v.matches), of, partial: v.partial ? tr('; there may be more: the time limit was reached') : '' });
}

function Hits({ query }: { query: Record<string, string> }) {
	const key = JSON.stringify(query);
	const load = useLoad(key, (signal) => get<Found>('/api/v1/fleet/search', query, signal));
	const v = load.value;
	if (load.error) return <Failure error={load.error} retry={load.again} />;
	if (!v) return <Busy what={tr('Searching')} />;
	const overloads = distinctions(v.hits.map((h) => h.method), v.hits.map((h) => h.descriptor));
	return <>
		<p class="quiet" role="status">{summary(v)}</p>
		{v.hits.length > 0 && <Cards>
			<thead><tr><th class="num">{tr('Longest call')}</th><th>{tr('Method')}</th><th>{tr('Thread')}</th><th>{tr('Version')}</th>
				<th>{tr('Scenario')}</th><th>{tr('Device class')}</th><th>Android</th><th>{tr('Day')}</th></tr></thead>
			<tbody>{v.hits.map((h, i) => <Row key={`${h.trace} ${h.method} ${h.descriptor} ${h.thread} ${h.is_main}`} h={h} distinction={overloads.get(i)} most={v.hits[0]!.max_ns} />)}</tbody>
		</Cards>}
	</>;
}

/** A method of the app, by the project's rules; a name without a package, or with a space, is that of a section. */
function isOwn(name: string, { presets, framework, app }: Frames): boolean {
	const has = (prefixes: string[]) => prefixes.some((p) => name.startsWith(p));
	return /^[^ ]+\.[^ ]+$/.test(name) && (has(app) || !has([...framework, ...presets.flatMap((p) => (p.enabled ? p.prefixes : []))]));
}

/** Before a search: methods with the longest calls, each a search. */
function Start() {
	const { params, key } = useFleet();
	const load = useLoad(`start ${key}`, (signal) => Promise.all([
		get<FleetMethods>('/api/v1/fleet/methods', { ...params, waits: 'false', sort: 'p95_call', metrics: 'call', limit: READ }, signal), api.frames()]));
	const [all, frames] = load.value ?? [];
	const own = all?.methods.filter((m) => isOwn(m.name, frames!)) ?? [];
	const rows = (own.length > 0 ? own : all?.methods ?? []).slice(0, START);
	return <>
		<p class="quiet">{rows.length > 0 ? tr('Enter a method, or select one of the app’s methods with long calls:') : tr('Enter a method.')}</p>
		<Pending of={load} what={tr('Searching')} />
		{rows.length > 0 && <Cards>
			<thead><tr><th>{tr('Method')}</th><th class="num">{tr('One call, p95')}</th><th class="num">{tr('Traces')}</th></tr></thead>
			<tbody>{rows.map((m) => <tr key={`${m.name} ${m.descriptor} ${m.build_id}`}>
				<td class="anywhere wide"><button class="plain linkish" onClick={() => set({ method: m.name }, true)}><MethodName name={m.name} /></button></td>
				<td class="num share"><span class="bar" style={{ width: `${(100 * m.call!.p95) / rows[0]!.call!.p95}%` }} />{duration(m.call!.p95)}</td>
				<td class="num">{count(m.call!.traces)}</td></tr>)}</tbody>
		</Cards>}
	</>;
}

export function SearchPage() {
	const query = useQuestion();
	return (
		<Page title={tr('Slow calls')} of="widest" head={<FleetFilter />}>
			<Panel title={tr('Calls of all traces')} id="asked">
				<Form key={JSON.stringify(query)} />
				{query ? <Hits query={query} /> : <Start />}
			</Panel>
		</Page>
	);
}
