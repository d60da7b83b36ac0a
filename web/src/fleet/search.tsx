// Calls in the fleet longer than a given time; the query is in the address, and each hit links to its call.
import { distinctions } from '../api/overloads';
import { get } from '../api/api';
import { CLASSES, classWord } from '../api/classes';
import { count, duration } from '../i18n/format';
import { Cards } from '../ui/cards';
import { Page } from '../ui/page';
import { Busy, Failure, MethodName, Panel, useLoad } from '../ui/parts';
import { link, set, text } from '../ui/route';
import { tr } from '../i18n/strings/search';

interface Call { tid: number; start_ns: number; duration_ns: number; depth: number }
interface Hit {
	trace: string; method: string; descriptor: string; thread: string; is_main: boolean; max_ns: number; day_ms: number;
	version_name: string; scenario: string; class: string; os: string; call: Call | null;
}
interface Found { traces: number; methods: number; matches: number; hits: Hit[]; partial: boolean }

const NS_A_MS = 1e6;
const AROUND = 0.1; // of the call, before and after it

/** The trace's page with the call as its range, seen whole and a little around it. */
export function hitLink(h: Hit): string {
	if (!h.call) return link(`/traces/${h.trace}?find=${encodeURIComponent(h.method)}`);
	const { tid, start_ns: from, duration_ns: long } = h.call;
	const to = from + long;
	const margin = Math.max(1, Math.round(long * AROUND));
	return link(`/traces/${h.trace}?thread=${tid}&from=${Math.max(0, from - margin)}&to=${to + margin}&a=${from}&b=${to}&find=${encodeURIComponent(h.method)}`);
}

/** The request of the address; null: none yet. */
function question(): Record<string, string> | null {
	const over = Number(text('over'));
	const q = {
		method: text('method'), regex: text('regex'), over_ns: over > 0 ? String(Math.round(over * NS_A_MS)) : '', thread: text('on'),
		ancestor: text('below'), ancestor_regex: text('below') && text('below_regex'),
		version_name: text('version_name'), scenario: text('scenario'), class: text('class'), os: text('os'),
	};
	return q.method ? Object.fromEntries(Object.entries(q).filter(([, v]) => v)) : null;
}


function Form() {
	const ask = (e: SubmitEvent) => {
		e.preventDefault();
		const said = new FormData(e.currentTarget as HTMLFormElement);
		const of = (name: string) => String(said.get(name) ?? '').trim();
		set(Object.fromEntries(['method', 'regex', 'over', 'on', 'below', 'below_regex', 'version_name', 'scenario', 'class', 'os'].map((n) => [n, of(n)])), true);
	};
	return (
		<form class="rule search" onSubmit={ask} aria-label={tr('Search for')}>
			<div class="row">
				<label class="inline grow">{tr('Method')}{' '}<input name="method" class="mono" required defaultValue={text('method')} placeholder="com.shop.Repo.load" autofocus /></label>
				<label class="inline"><input type="checkbox" name="regex" value="1" defaultChecked={text('regex') === '1'} />{' '}{tr('regex')}</label>
				<label class="inline">{tr('longer than (ms)')}{' '}<input name="over" class="short" inputMode="decimal" pattern="[0-9]+([.][0-9]+)?" title={tr('A number of milliseconds')} defaultValue={text('over')} /></label>
				<label class="inline">{tr('on thread')}{' '}<input name="on" defaultValue={text('on')} placeholder={tr('any, or main')} /></label>
			</div>
			<div class="row">
				<label class="inline grow">{tr('Called by')}{' '}<input name="below" class="mono" defaultValue={text('below')} placeholder={tr('any direct or indirect caller')} /></label>
				<label class="inline"><input type="checkbox" name="below_regex" value="1" defaultChecked={text('below_regex') === '1'} />{' '}{tr('regex')}</label>
				<label class="inline">{tr('Version')}{' '}<input name="version_name" class="short" defaultValue={text('version_name')} placeholder={tr('any')} /></label>
				<label class="inline">{tr('Scenario')}{' '}<input name="scenario" defaultValue={text('scenario')} placeholder={tr('any')} /></label>
				<label class="inline">{tr('Device class')}{' '}<select name="class" defaultValue={text('class')}>
					<option value="">{tr('any')}</option>
					{CLASSES.map((c) => <option key={c} value={c} selected={c === text('class')}>{classWord(c)}</option>)}
				</select></label>
				<label class="inline">{'Android'}{' '}<input name="os" class="short" defaultValue={text('os')} placeholder={tr('any')} /></label>
				<button class="primary">{tr('Search')}</button>
			</div>
		</form>
	);
}

function Row({ h, distinction = '' }: { h: Hit; distinction?: string }) {
	return (
		<tr>
			<td class="num"><a href={hitLink(h)} title={h.call ? tr('Opens the trace at this call') : tr('Opens the trace')}>{duration(h.max_ns)}</a></td>
			<td><MethodName name={h.method + distinction} /></td>
			<td>{h.thread || (h.is_main ? tr('main') : tr('unnamed'))}{h.is_main && h.thread && h.thread !== 'main' && <span class="quiet">{' '}{tr('(main)')}</span>}</td>
			<td>{h.version_name || '–'}</td>
			<td>{h.scenario || '–'}</td>
			<td>{h.class ? classWord(h.class) : '–'}</td>
			<td>{h.os || '–'}</td>
			<td>{new Date(h.day_ms).toISOString().slice(0, 10)}</td>
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

function Hits({ ask }: { ask: Record<string, string> }) {
	const key = JSON.stringify(ask);
	const load = useLoad(key, (signal) => get<Found>('/api/v1/fleet/search', ask, signal));
	const v = load.value;
	if (load.error) return <Failure error={load.error} retry={load.again} />;
	if (!v) return <Busy what={tr('Searching')} />;
	const overloads = distinctions(v.hits.map((h) => h.method), v.hits.map((h) => h.descriptor));
	return <>
		<p class="quiet" role="status">{summary(v)}</p>
		{v.hits.length > 0 && <Cards>
			<thead><tr><th scope="col" class="num">{tr('Longest call')}</th><th scope="col">{tr('Method')}</th><th scope="col">{tr('Thread')}</th><th scope="col">{tr('Version')}</th>
				<th scope="col">{tr('Scenario')}</th><th scope="col">{tr('Device class')}</th><th scope="col">Android</th><th scope="col">{tr('Day')}</th></tr></thead>
			<tbody>{v.hits.map((h, i) => <Row key={`${h.trace} ${h.method} ${h.descriptor} ${h.thread} ${h.is_main}`} h={h} distinction={overloads.get(i)} />)}</tbody>
		</Cards>}
	</>;
}

export function SearchPage() {
	const ask = question();
	return (
		<Page title={tr('Slow calls')} of="widest">
			<Panel title={tr('Calls of all traces')} id="asked">
				<Form key={JSON.stringify(ask)} />
				{ask ? <Hits ask={ask} /> : <p class="quiet">{tr('Enter a method and a minimum duration. Searches traces of the last 30 days.')}</p>}
			</Panel>
		</Page>
	);
}
