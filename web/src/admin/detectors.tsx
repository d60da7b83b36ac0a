// Detectors of a project: what should not take long, and where.  Changed in a form or as JSON, tried on traces before
// they are saved; every version can be read and brought back.
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { api, get, may, send, type Trace } from '../api/api';
import { Cards } from '../ui/cards';
import { useChange } from '../ui/change';
import { differences, docOf, written, type Doc, type Findings, type Kept } from '../trace/panels/findings';
import { FindingsView, type Spot } from '../trace/panels/findingsview';
import { count, when } from '../i18n/format';
import { spotOf } from '../trace/panels/findingspanel';
import { Invalid, useInvalid } from '../ui/invalid';
import { Page } from '../ui/page';
import { Choice, Failure, inView, Panel, Pending, useLoad } from '../ui/parts';
import { DetectorTable } from './detectorform';
import { go, link, number, set, text } from '../ui/route';
import { serverText } from '../i18n/servertext';
import { tr } from '../i18n/strings/findings';
import { nameOf } from '../api/traces';

const LISTED = 50;
const RECENT = 10; // traces of a preview
const RECENT_AT_ONCE = 2;

/** The editor's document; invalid JSON is reported without a request. */
function parsed(draft: string): Doc {
	try {
		return JSON.parse(draft) as Doc;
	} catch (why) {
		throw new Error(tr('This is not JSON: {message}', { message: (why as Error).message }));
	}
}

/** A document in a form that can be compared. */
function readable(draft: string): Doc | null {
	try {
		const doc = JSON.parse(draft) as Doc | null;
		return Array.isArray(doc?.rules) && doc.rules.every((r) => typeof r?.id === 'string') ? docOf(doc) : null;
	} catch {
		return null;
	}
}

function Differences({ from, to, title }: { from: Doc; to: Doc | null; title: string }) {
	const list = useMemo(() => (to ? differences(from, to) : []), [from, to]);
	if (!to) return <p class="quiet">{tr('Fix the JSON to see the differences.')}</p>;
	if (list.length === 0) return <p class="quiet">{tr('No differences from {title}.', { title })}</p>;
	return (
		<Cards>
			<caption>{tr('Differences from {title}', { title })}</caption>
			<thead><tr><th>{tr('Rule')}</th><th>{tr('Setting')}</th><th>{tr('Before')}</th><th>{tr('After')}</th></tr></thead>
			<tbody>{list.map((d, i) => (
				<tr key={i} data-differs={d.what}><td>{d.what}</td><td>{d.member}</td><td class="anywhere">{d.before && <del>{d.before}</del>}</td><td class="anywhere">{d.after && <ins>{d.after}</ins>}</td></tr>))}</tbody>
		</Cards>
	);
}

function Versions({ v, held }: { v: Kept; held: boolean }) {
	const last = v.versions[0]?.version ?? 0;
	if (v.versions.length < 2) return null;
	return (
		<label class="inline">{tr('Version')}{' '}<select name="version" value={v.version} disabled={held} onChange={(e) => set({ version: Number(e.currentTarget.value) === last ? null : e.currentTarget.value }, true)}>
			{v.versions.map((o) => <option key={o.version} value={o.version}>{o.version}, {when(o.created_ms)}{o.author && tr(' by {author}', { author: o.author })}</option>)}</select></label>
	);
}

/** Traces to try on: the last that can be opened, and the one that the address names. */
function useTraces(): { traces: Trace[]; error: Error | null; again: () => void } {
	const load = useLoad('traces to try on', (s) => api.traces({ limit: LISTED, state: 'ready' }, s));
	return { traces: load.value?.traces ?? [], error: load.error, again: load.again };
}

function Tried({ f, before, t, id }: { f: Findings; before: Findings; t: Trace | undefined; id: string }) {
	const threads = useLoad(id, () => api.threads(id));
	const all = threads.value?.threads ?? [];
	const from = t?.start_ns ?? Math.min(...all.filter((x) => x.slices > 0).map((x) => x.start_ns), Infinity);
	const show = (s: Spot) => {
		const q = new URLSearchParams({ findings: '1' });
		for (const [k, v] of Object.entries(spotOf(s, Number.MAX_SAFE_INTEGER, '', new Set(all.map((x) => x.tid))))) if (v !== null) q.set(k, String(v));
		go(link(`/traces/${id}?${q}`));
	};
	const sum = (x: Findings) => x.rules.reduce((n, r) => n + r.found, 0);
	return <>
		<p role="status" ref={inView}>{tr.rich('{f} findings with these rules{before}. Nothing was saved.', { f: count(sum(f)), before: tr(', {before} with the active rules', { before: count(sum(before)) }) })}</p>
		<FindingsView f={f} from={Number.isFinite(from) ? from : 0} show={show} threads={all} />
	</>;
}

interface Preview { rule: string; title: string; before: number; after: number; traces: number }

/** Findings in a trace by these rules, which are not saved. */
const found = async (doc: Doc, trace: string) => (await send('POST', '/api/v1/detectors/preview', { ...doc, trace })).json() as Promise<Findings>;

/** Findings in the latest traces by the edited rules and by the active ones. */
async function previewed(draft: string, traces: Trace[], done: (n: number) => void): Promise<Preview[]> {
	const doc = docOf(parsed(draft));
	const sums = new Map<string, Preview>();
	const add = (f: Findings, member: 'before' | 'after') => f.rules.forEach((r) => {
		const one = sums.get(r.id) ?? { rule: r.id, title: r.title, before: 0, after: 0, traces: 0 };
		if (r.enabled) one[member] += r.found;
		if (member === 'after' && r.enabled && r.found) one.traces++;
		sums.set(r.id, one);
	});
	const left = traces.values();
	let n = 0;
	let over = false; // one failed: the others end
	await Promise.all(Array.from({ length: RECENT_AT_ONCE }, async () => {
		for (const t of left) {
			if (over) return;
			add(await found(doc, t.id), 'after');
			add(await get<Findings>(`/api/v1/traces/${t.id}/findings`), 'before');
			if (!over) done(++n);
		}
	})).finally(() => (over = true));
	return [...sums.values()].filter((p) => p.before || p.after).sort((a, b) => b.after - a.after || b.before - a.before);
}

function PreviewTable({ list, traces }: { list: Preview[]; traces: number }) {
	return <div ref={inView}>
		<p role="status">{tr.many(traces, 'In the latest trace. Nothing was saved.', 'In the latest {n} traces. Nothing was saved.')}</p>
		{list.length === 0 ? <p class="quiet">{tr('No findings.')}</p> : <Cards>
			<thead><tr><th>{tr('Rule')}</th><th class="num">{tr('Findings')}</th><th class="num">{tr('With the active rules')}</th><th class="num">{tr('In traces')}</th></tr></thead>
			<tbody>{list.map((p) => <tr key={p.rule} data-preview={p.rule}><td>{serverText(p.title)}</td><td class="num">{count(p.after)}</td><td class="num">{count(p.before)}</td><td class="num">{count(p.traces)}</td></tr>)}</tbody>
		</Cards>}
	</div>;
}

function Try({ draft }: { draft: string }) {
	const { traces, error, again } = useTraces();
	const chosen = text('trace') || traces[0]?.id || '';
	const latest = traces.slice(0, RECENT);
	const [tried, put] = useState<{ f: Findings; before: Findings; id: string } | null>(null);
	const [busy, work] = useState(false);
	const [seen, see] = useState<{ list: Preview[]; traces: number } | null>(null);
	const [at, step] = useState(-1); // of a preview that runs
	const [why, run] = useChange(() => undefined);
	const edited = useRef(draft);
	edited.current = draft;
	useLayoutEffect(() => {
		put(null);
		see(null);
	}, [draft]);
	/** Shows the result of a test, unless it failed or the rules were edited meanwhile. */
	const test = <T,>(show: (result: T | null) => void, result: () => Promise<T>) => run(async () => {
		const v = await result().catch((failed: Error) => {
			show(null);
			throw failed;
		});
		if (edited.current === draft) show(v);
	});
	const begin = async () => {
		work(true);
		await test(put, async () => ({ f: await found(docOf(parsed(draft)), chosen), before: await get<Findings>(`/api/v1/traces/${chosen}/findings`), id: chosen }));
		work(false);
	};
	const preview = async () => {
		step(0);
		await test(see, async () => ({ list: await previewed(draft, latest, step), traces: latest.length }));
		step(-1);
	};
	return (
		<Panel title={tr('Test the rules')} id="try">
			{error && <Failure error={error} retry={again} />}
			<div class="row">
				<label class="inline">{tr('Trace')}{' '}<select name="trace" value={chosen} onChange={(e) => set({ trace: e.currentTarget.value })}>
					{chosen && !traces.some((t) => t.id === chosen) && <option value={chosen}>{chosen}</option>}
					{traces.map((t) => <option key={t.id} value={t.id}>{nameOf(t)}, {when(t.created_ms)}</option>)}</select></label>
				<button class="primary" disabled={busy || !chosen} onClick={() => void begin()}>{busy ? tr('Testing') : tr('Test')}</button>
				<button disabled={at >= 0 || latest.length === 0} onClick={() => void preview()}>{at >= 0 ? tr('Trace {at} of {all}', { at: at + 1 > latest.length ? latest.length : at + 1, all: latest.length }) : tr('Preview on the latest {n}', { n: latest.length })}</button>
				{!chosen && <span class="quiet">{tr('There is no trace to test the rules on yet.')}</span>}
			</div>
			{why && <Failure error={why} />}
			{seen && <PreviewTable {...seen} />}
			{tried && <Tried key={tried.id} {...tried} t={traces.find((t) => t.id === tried.id)} />}
		</Panel>
	);
}

function Editor({ v, again }: { v: Kept; again: () => void }) {
	const kept = useMemo(() => written(v), [v]);
	const [draft, put] = useState(kept);
	const [against, compare] = useState('kept');
	const [error, run] = useChange(again);
	const last = v.versions[0]?.version ?? 0;
	const now = v.version === last;
	const invalid = useInvalid('detectors', v);
	const changed = draft !== kept || invalid !== '';
	const doc = useMemo(() => readable(draft), [draft]);
	const asJson = text('as') === 'json';
	useLayoutEffect(() => put(kept), [kept]);
	const save = () => (!now || changed) && run(async () => {
		await send('PUT', '/api/v1/detectors', { ...docOf(parsed(draft)), version: last });
		if (!now) set({ version: null });
	});
	const there = against === 'kept' ? docOf(v) : v.defaults;
	const title = against !== 'kept' ? tr('the default rules') : v.version ? tr('version {version}', { version: v.version }) : tr('the active rules');
	return <>
		<Panel title={tr('Rules')} id="rules" aside={<>
			<span class="quiet">{v.version === 0 ? tr('Default rules') : tr('Version {version}{author}, {created_ms}', { version: v.version, author: v.author && tr(' by {author}', { author: v.author }), created_ms: when(v.created_ms) })}{!now && tr(', no longer active')}</span>
			<Versions v={v} held={changed} />
			<Choice label={tr('View')} value={asJson ? 'json' : 'form'} options={[['form', tr('Form')], ['json', 'JSON']]} onPick={(o) => set({ as: o === 'json' ? o : null })} /></>}>
			{!asJson && (doc ? <DetectorTable doc={doc} put={(d) => put(written(d))} /> : <p class="quiet">{tr('Fix the JSON to use the form.')}</p>)}
			{asJson && <label class="list">{tr('Detectors')}<textarea name="rules" class="mono" rows={24} spellcheck={false} readOnly={!may.write} value={draft} onInput={(e) => put(e.currentTarget.value)} /></label>}
			<Invalid why={invalid} />
			{error && <Failure error={error} title={tr('These rules were not saved.')} />}
			<div class={`row ${changed ? 'unsaved' : ''}`}>
				{may.write && <button class="primary" aria-disabled={now && !changed} onClick={save}>{now ? tr('Save as a new version') : tr('Restore these rules')}</button>}
				<button disabled={!changed} onClick={() => put(kept)}>{tr('Undo changes')}</button>
				{may.write && <button onClick={() => put(written(v.defaults))}>{tr('Reset to defaults')}</button>}
				<span class="grow" />
				<label class="inline">{tr('Compare with')}{' '}<select name="against" value={against} onChange={(e) => compare(e.currentTarget.value)}><option value="kept">{tr('the saved rules')}</option><option value="server">{tr('the default rules')}</option></select></label>
			</div>
			<Differences from={there} to={doc} title={title} />
			<p class="quiet">{tr('A pattern is a prefix of a name (package, class or method), a name with *, or a /regular expression/. Of nested calls, only the outermost is reported. The last 200 versions are kept.')}</p>
		</Panel>
		<Try draft={draft} />
	</>;
}

export function DetectorsPage() {
	const version = number('version');
	const load = useLoad(`detectors ${version ?? ''}`, () => get<Kept>('/api/v1/detectors', { version }));
	return (
		<Page title={tr('Detectors')}>
			<Pending of={load} what={tr('Loading the rules')} />
			{load.value && <Editor v={load.value} again={load.again} />}
		</Page>
	);
}
