// What people wrote on this trace: the list that panel and timeline share, and where one leads.
import { signal } from '@preact/signals';
import type { Annotation, AnnotationPlace } from '../../api/api';
import type { Span } from './axis';
import { around } from './notekinds';
import { openAlso } from './opened';
import { atTimeline } from './tab';
import { set, text } from '../../ui/route';

export const annotations = signal<Annotation[]>([]);
/** Where the one that is being written belongs. */
export const draft = signal<AnnotationPlace | null>(null);

/** The times of those that have one. */
export function timesOf(list: Annotation[]): Span[] {
	return list.flatMap((a) => (a.ts_ns === null ? [] : [{ from: a.ts_ns, to: a.ts_ns + a.dur_ns }]));
}

/** The part of the address that shows where it belongs. */
export function placeOf(a: Annotation, whole: Span, open: string): Record<string, string | number | null> {
	const to: Record<string, string | number | null> = { annotation: a.id };
	if (a.ts_ns !== null) {
		[to.from, to.to] = around({ ts_ns: a.ts_ns, dur_ns: a.dur_ns }, whole.to, whole.from);
		if (a.tid !== null) Object.assign(to, { thread: a.tid, open: openAlso(open, a.tid) });
	} else if (a.method_name) to.find = a.method_name;
	return to;
}

export function showAnnotation(a: Annotation, whole: Span): void {
	set({ ...placeOf(a, whole, text('open')), ...atTimeline() }, true);
}
