// Annotations: a form to write one, a list of all.
import { useEffect, useRef, useState } from 'preact/hooks';
import { api, currentProject, may, type Annotation, type AnnotationPlace, type Thread } from '../../api/api';
import { annotations, draft, showAnnotation } from '../state/annotations';
import type { Span } from '../state/axis';
import { duration, when } from '../../i18n/format';
import { Copy, Failure, Panel } from '../../ui/parts';
import { text } from '../../ui/route';
import { nameOfThread } from '../parts/threadname';
import { tr } from '../../i18n/strings/trace';

interface Of { id: string; threads: Thread[]; names: string[]; whole: Span }

function where(a: AnnotationPlace, { threads, names, whole }: Of): string {
	const parts: string[] = [];
	if (a.ts_ns !== undefined) parts.push(tr('at {from}{dur_ns}', { from: duration(a.ts_ns - whole.from), dur_ns: a.dur_ns ? tr(' for {dur_ns}', { dur_ns: duration(a.dur_ns) }) : '' }));
	if (a.tid !== undefined) parts.push(tr('in {name}', { name: nameOfThread(a.tid, threads) }));
	if (a.method !== undefined) parts.push(tr('on {names}', { names: names[a.method] ?? tr('method {method}', { method: a.method }) }));
	return parts.join(' ');
}

const given = (v: number | null) => v ?? undefined;
const placed = (a: Annotation): AnnotationPlace => ({ ts_ns: given(a.ts_ns), dur_ns: a.dur_ns, tid: given(a.tid), method: given(a.method) });

function Form({ of, place, done }: { of: Of; place: AnnotationPlace; done: () => void }) {
	const [words, hold] = useState('');
	const [error, fail] = useState<Error | null>(null);
	const area = useRef<HTMLTextAreaElement>(null);
	useEffect(() => area.current?.focus(), [place]);
	const save = (e: Event) => {
		e.preventDefault();
		fail(null);
		api.annotate(of.id, place, words).then(done, fail);
	};
	return (
		<form class="annotate" onSubmit={save} onKeyDown={(e) => { if (e.key === 'Escape') draft.value = null; if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) save(e); }}>
			<label>{tr('Annotate {place}', { place: where(place, of) })}
				<textarea ref={area} rows={2} maxLength={4000} value={words} onInput={(e) => hold(e.currentTarget.value)} /></label>
			{error && <Failure error={error} />}
			<p class="row"><button class="primary" disabled={!words.trim()}>{tr('Save')}</button>
				<button type="button" onClick={() => { draft.value = null; }}>{tr('Cancel')}</button><span class="quiet">{tr('Ctrl+Enter saves')}</span></p>
		</form>
	);
}

function Item({ a, of, changed }: { a: Annotation; of: Of; changed: () => void }) {
	const [editing, edit] = useState<string | null>(null);
	const [sure, setSure] = useState(false);
	const [error, fail] = useState<Error | null>(null);
	const link = `${location.origin}/traces/${of.id}?annotation=${a.id}${currentProject() ? `&project=${currentProject()}` : ''}`;
	const save = (e: Event) => {
		e.preventDefault();
		api.editAnnotation(of.id, a.id, editing!).then(() => { edit(null); changed(); }, fail);
	};
	return (
		<li data-annotation={a.id} class={text('annotation') === a.id ? 'current' : ''}>
			<p class="row"><button class="small" onClick={() => showAnnotation(a, of.whole)}>{where(placed(a), of) || (a.method_name ? tr('on {method_name}', { method_name: a.method_name }) : tr('Show'))}</button>
				<span class="quiet">{a.author}, {when(a.created_ms)}{a.updated_ms > 0 ? tr(', changed {edited_ms}', { edited_ms: when(a.updated_ms) }) : ''}</span>
				<span class="grow" /><Copy text={link} label={tr('Copy link')} />
				{may.write && editing === null && (sure
					? <><button class="small danger" onClick={() => api.removeAnnotation(of.id, a.id).then(changed, fail)}>{tr('Delete permanently')}</button><button class="small" onClick={() => setSure(false)}>{tr('Keep')}</button></>
					: <><button class="small" onClick={() => edit(a.text)}>{tr('Edit')}</button><button class="small" onClick={() => setSure(true)}>{tr('Delete')}</button></>)}</p>
			{editing === null ? <p class="words">{a.text}</p> : <form class="annotate" onSubmit={save}>
				<textarea aria-label={tr('Text')} rows={2} maxLength={4000} value={editing} onInput={(e) => edit(e.currentTarget.value)} />
				<p class="row"><button class="primary" disabled={!editing.trim()}>{tr('Save')}</button><button type="button" onClick={() => edit(null)}>{tr('Cancel')}</button></p></form>}
			{error && <Failure error={error} />}
		</li>
	);
}

export function AnnotationPanel(of: Of & { again: () => void }) {
	const list = annotations.value;
	return (
		<Panel title={tr('Annotations')} id="annotations">
			{draft.value && <Form of={of} place={draft.value} done={() => { draft.value = null; of.again(); }} />}
			<ul class="annotations">{list.map((a) => <Item key={a.id} a={a} of={of} changed={of.again} />)}</ul>
		</Panel>
	);
}
