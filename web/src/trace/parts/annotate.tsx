// Annotations at the timeline: the button for a new one, and flags on the ruler.
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { api, may, type AnnotationPlace, type Thread } from '../../api/api';
import { inField, type Loaded, useLoad } from '../../ui/parts';
import { number, text } from '../../ui/route';
import { annotations, draft, showAnnotation } from '../state/annotations';
import type { Span } from '../state/axis';
import { viewOf } from '../state/view';
import { tr } from '../../i18n/strings/trace';

/** The selection, otherwise the middle of the view. */
function placeInView(whole: Span, thread: Thread | null): AnnotationPlace {
	const [a, b] = [number('a'), number('b')];
	if (a !== null && b !== null && b > a) return { ts_ns: a, dur_ns: b - a, tid: thread?.tid };
	const { from, to } = viewOf(whole);
	return { ts_ns: Math.round((from + to) / 2) };
}

/** Begins an annotation; for users who may write. */
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
