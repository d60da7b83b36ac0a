// Annotations: a form to write one, a list of all; flags on the timeline's ruler.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { api, currentProject, may, type Annotation, type AnnotationPlace, type Thread } from '../../api/api';
import { annotations, draft, showAnnotation } from '../state/annotations';
import type { Span } from '../state/axis';
import { viewOf } from '../state/view';
import { duration, when } from '../../i18n/format';
import { Copy, Failure, inField, type Loaded, Panel, useLoad } from '../../ui/parts';
import { number, text } from '../../ui/route';
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

/** The selection, otherwise the middle of the view. */
function placeInView(whole: Span, thread: Thread | null): AnnotationPlace {
	const [a, b] = [number('a'), number('b')];
	if (a !== null && b !== null && b > a) return { ts_ns: a, dur_ns: b - a, tid: thread?.tid };
	const { from, to } = viewOf(whole);
	return { ts_ns: Math.round((from + to) / 2) };
}

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

/** Begins one; nothing for those who may only look. */
export function AnnotateButton({ whole, thread }: { whole: Span; thread: Thread | null }) {
	const begin = () => {
		draft.value = placeInView(whole, thread);
	};
	useLayoutEffect(() => {
		const key = (e: KeyboardEvent) => {
			if (e.key !== 'n' || e.ctrlKey || e.metaKey || e.altKey || !may.write || inField(e)) return;
			e.preventDefault();
			begin();
		};
		addEventListener('keydown', key);
		return () => removeEventListener('keydown', key);
	});
	return may.write ? <button class="small" title={tr('At the selection or the middle of the view')} onClick={begin}>{tr('Annotate')}</button> : null;
}

/** Loads the annotations for the list and the timeline, and shows the position of the one in the address. */
export function useAnnotations(id: string, whole: Span): Loaded<unknown> {
	const load = useLoad(id, (s) => api.annotations(id, s));
	const came = useRef(false);
	useEffect(() => {
		annotations.value = load.value?.annotations ?? [];
		const one = annotations.value.find((a) => a.id === text('annotation'));
		if (one && !came.current && number('from') === null) showAnnotation(one, whole);
		if (load.value) came.current = true;
	}, [load.value]);
	useEffect(() => () => {
		annotations.value = [];
		draft.value = null;
	}, []);
	return load;
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

/** Flags over the ruler, one for each annotation whose time is in view. */
export function Flags({ whole }: { whole: Span }) {
	const { from, to } = viewOf(whole);
	const share = (t: number) => ((t - from) / Math.max(1, to - from)) * 100;
	return (
		<div class="flags">{annotations.value.map((a) => {
			if (a.ts_ns === null || share(a.ts_ns + a.dur_ns) < 0 || share(a.ts_ns) > 100) return null;
			const x = Math.max(0, share(a.ts_ns));
			return <button key={a.id} class={`plain flag ${text('annotation') === a.id ? 'current' : ''}`} title={`${a.author}: ${a.text}`} aria-label={tr('Annotation by {author}: {text}', { author: a.author, text: a.text.slice(0, 80) })}
				style={{ left: `${x}%`, width: a.dur_ns > 0 ? `max(9px, ${Math.min(100, share(a.ts_ns + a.dur_ns)) - x}%)` : '9px' }}
				onClick={() => showAnnotation(a, whole)} />;
		})}</div>
	);
}
