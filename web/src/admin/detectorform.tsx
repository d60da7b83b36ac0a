// Detectors as a table and a form: one rule a row, changed in place; the JSON of the same document is the other view.
import { useState } from 'preact/hooks';
import { get, may } from '../api/api';
import { docOf, type Doc, type Rule } from '../trace/panels/findings';
import { Cards } from '../ui/cards';
import { PROCESSING_MS, usePolling } from '../ui/polling';
import { Sure } from '../ui/change';
import { count, duration } from '../i18n/format';
import { breakable, focused, useLoad } from '../ui/parts';
import { link } from '../ui/route';
import { serverText } from '../i18n/servertext';
import { tr } from '../i18n/strings/findings';

const SEVERITIES: [string, string][] = [['info', tr('Info')], ['warning', tr('Warning')], ['error', tr('Error')]];
const THREADS: [string, string][] = [['main', tr('main thread')], ['others', tr('other threads')], ['all', tr('all threads')]];
const NS_OF_MS = 1e6, COLUMNS = 8, DAYS = 30; // of the fleet, unless another period is requested

const texts = (v: unknown): string[] => (Array.isArray(v) ? v.filter((x): x is string => typeof x === 'string') : []);
const textOf = (v: unknown, otherwise = ''): string => (typeof v === 'string' ? v : otherwise);
const lines = (text: string): string[] => text.split('\n').map((l) => l.trim()).filter(Boolean);

/** The rule in the form's fields; members without a field remain unchanged. */
export function ruleOf(base: Rule, f: Record<string, string>): Rule {
	const { notes: _, message: __, threads: ___, severity: ____, ...rest } = base;
	const notes = lines(f.notes.replaceAll(',', '\n'));
	return { ...rest, id: f.id.trim(), kind: textOf(base.kind, 'own'), title: f.title.trim(), methods: lines(f.methods), ...(notes.length && { notes }), threads: f.threads.trim() || 'main',
		threshold_ms: f.threshold_ms.trim() === '' ? NaN : Number(f.threshold_ms), severity: f.severity, ...(f.message.trim() && { message: f.message.trim() }) };
}

/** A free id from a title: "Image cache!" becomes image-cache, image-cache-2. */
export function idOf(title: string, used: string[]): string {
	const id = title.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '').slice(0, 36) || 'rule';
	for (let n = 1; ; n++) {
		const one = n === 1 ? id : `${id}-${n}`;
		if (!used.includes(one)) return one;
	}
}

const fieldsOf = (r: Rule): Record<string, string> => ({ id: r.id, title: textOf(r.title), methods: texts(r.methods).join('\n'), notes: texts(r.notes).join(', '), threads: textOf(r.threads, 'main'),
	threshold_ms: typeof r.threshold_ms === 'number' ? String(r.threshold_ms) : '', severity: textOf(r.severity, 'warning'), message: textOf(r.message) });

function Form({ rule, used, keep, cancel }: { rule: Rule; used: string[]; keep: (r: Rule) => void; cancel: () => void }) {
	const [f, put] = useState(() => fieldsOf(rule));
	const field = (name: string) => ({ name, value: f[name], spellcheck: false, onInput: (e: { currentTarget: { value: string } }) => put({ ...f, [name]: e.currentTarget.value }) });
	const fresh = rule.id === '';
	const made = ruleOf(rule, { ...f, id: fresh ? idOf(f.title, used) : rule.id });
	const missing = !made.title ? tr('Enter a title.') : texts(made.methods).length + texts(made.notes).length === 0 ? tr('Enter methods or events.') : !(Number(made.threshold_ms) >= 0) ? tr('Enter a duration in milliseconds.') : '';
	return (
		<form class="rule" aria-label={fresh ? tr('A new rule') : tr('Edit {title}', { title: textOf(rule.title) })} onSubmit={(e) => { e.preventDefault(); if (!missing) keep(made); }}>
			<div class="row">
				<label class="inline">{tr('Title')}<input {...field('title')} maxLength={100} ref={focused} /></label>
				<label class="inline">{tr('Longer than')}<input class="short" inputMode="decimal" {...field('threshold_ms')} /> ms</label>
				<label class="inline">{tr('Threads')}<input list="detector-threads" {...field('threads')} /><datalist id="detector-threads">{THREADS.map(([v, shown]) => <option key={v} value={v}>{shown}</option>)}</datalist></label>
				<label class="inline">{tr('Severity')}<select name="severity" value={f.severity} onChange={(e) => put({ ...f, severity: e.currentTarget.value })}>{SEVERITIES.map(([v, shown]) => <option key={v} value={v}>{shown}</option>)}</select></label>
			</div>
			<label class="list">{tr('Methods')} <span class="quiet">{tr('one pattern per line')}</span><textarea rows={8} class="mono" placeholder="com.example.images" {...field('methods')} /></label>
			<div class="lists">
				<label class="list">{tr('Events')} <span class="quiet">{tr('kinds such as contention, io, binder')}</span><input class="mono" {...field('notes')} /></label>
				<label class="list">{tr('Advice')} <span class="quiet">{tr('shown with each finding')}</span><input maxLength={300} {...field('message')} /></label>
			</div>
			<div class="row"><button class="primary" disabled={missing !== ''}>{tr('Apply to the rules')}</button><button type="button" onClick={cancel}>{tr('Cancel')}</button>{missing && <span class="quiet" role="status">{missing}</span>}</div>
		</form>
	);
}

interface Found { pending: number; rules: { id: string; found: number; traces: number }[] }

/** Rules of a document; `put` gets the changed one. */
export function DetectorTable({ doc, put }: { doc: Doc; put: (d: Doc) => void }) {
	const [editing, edit] = useState<string | null>(null); // '' is a new one
	const load = useLoad('found', () => get<Found>('/api/v1/fleet/findings', { by: 'all', limit: 1 }));
	usePolling(load, load.value?.pending && PROCESSING_MS);
	const change = (rules: Rule[]) => put({ ...docOf(doc), rules });
	const replace = (r: Rule, by: Rule) => change(doc.rules.map((o) => (o === r ? by : o)));
	const keep = (r: Rule) => {
		change(editing === '' ? [...doc.rules, r] : doc.rules.map((o) => (o.id === editing ? r : o)));
		edit(null);
	};
	const form = (rule: Rule) => <Form key={editing} rule={rule} used={doc.rules.map((r) => r.id)} keep={keep} cancel={() => edit(null)} />;
	return <>
		<Cards>
			<thead><tr>{may.write && <th>{tr('Enabled')}</th>}<th>{tr('Rule')}</th><th class="num">{tr('Findings in {days} days', { days: DAYS })}</th><th>{tr('Matches')}</th><th>{tr('Threads')}</th><th class="num">{tr('Longer than')}</th><th>{tr('Severity')}</th>{may.write && <th><span class="hidden">{tr('Actions')}</span></th>}</tr></thead>
			<tbody>{doc.rules.map((r) => {
				const title = serverText(textOf(r.title, r.id));
				const found = load.value?.rules.find((f) => f.id === r.id);
				const matches = [...texts(r.methods), ...texts(r.notes)];
				return <><tr key={r.id} data-rule={r.id} class={r.enabled === false ? 'quiet' : ''}>
					{may.write && <td class="check"><input type="checkbox" checked={r.enabled !== false} aria-label={tr('Use {title}', { title })} onChange={(e) => { const { enabled: _, ...rest } = r; replace(r, e.currentTarget.checked ? rest : { ...rest, enabled: false }); }} /></td>}
					<td class="wide">{title}</td>
					<td class="num">{found ? <a href={link(`/fleet/findings?rule=${encodeURIComponent(r.id)}`)} title={tr.many(found.traces, 'In {n} trace', 'In {n} traces')}>{count(found.found)}</a> : load.value && '–'}</td>
					<td class="mono" title={matches.join('\n')}>{breakable(matches[0] ?? '')}{matches.length > 1 && <span class="quiet nowrap"> +{count(matches.length - 1)}</span>}</td>
					<td class="nowrap">{THREADS.find(([v]) => v === textOf(r.threads, 'main'))?.[1] ?? textOf(r.threads)}</td><td class="num">{typeof r.threshold_ms === 'number' ? duration(r.threshold_ms * NS_OF_MS) : ''}</td>
					<td>{SEVERITIES.find(([v]) => v === textOf(r.severity, 'warning'))?.[1] ?? textOf(r.severity)}</td>
					{may.write && <td class="actions"><button class="small" aria-label={tr('Edit {title}', { title })} aria-expanded={editing === r.id} onClick={() => edit(editing === r.id ? null : r.id)}>{tr('Edit')}</button><Sure what={tr('Remove')} label={tr('Remove {title}', { title })} act={() => change(doc.rules.filter((o) => o !== r))} /></td>}</tr>
					{editing === r.id && <tr class="more"><td colSpan={COLUMNS}>{form(r)}</td></tr>}</>;
			})}</tbody>
		</Cards>
		{editing === '' && form({ id: '' })}
		{may.write && editing !== '' && <div class="row"><button onClick={() => edit('')}>{tr('Add a rule')}</button></div>}
	</>;
}
