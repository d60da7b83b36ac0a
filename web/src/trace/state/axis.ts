// The time axis of all tracks: the view, moved and zoomed within the trace.

export interface Span {
	from: number; // ns
	to: number;
}

const SPAN_MIN = 50; // ns
const MARGIN = 0.01; // of the trace, beyond its ends

/** The nearest view within the trace. */
export function fitted(view: Span, trace: Span): Span {
	const all = Math.max(1, trace.to - trace.from);
	const span = Math.min(Math.max(view.to - view.from, SPAN_MIN), all * (1 + 2 * MARGIN));
	const from = Math.max(trace.from - all * MARGIN, Math.min(view.from, trace.to + all * MARGIN - span));
	return { from, to: from + span };
}

/** Smaller by `factor` around a share of the view. */
export function zoomed(view: Span, factor: number, at: number): Span {
	const time = view.from + (view.to - view.from) * at;
	return { from: time - (time - view.from) * factor, to: time + (view.to - time) * factor };
}

export const panned = (view: Span, share: number): Span => {
	const d = share * (view.to - view.from);
	return { from: view.from + d, to: view.to + d };
};

export const xOf = (time: number, view: Span, width: number): number => ((time - view.from) / (view.to - view.from)) * width;

export const timeOf = (x: number, view: Span, width: number): number => view.from + (x / width) * (view.to - view.from);

/** The view as the address holds it: whole nanoseconds. */
export const addressOf = (v: Span) => ({ from: Math.max(0, Math.round(v.from)), to: Math.max(1, Math.round(v.to)) });

/** Is this view the one in the address?  The page's own change of the address needs no new drawing. */
export function sameView(v: Span, inAddress: Span): boolean {
	const a = addressOf(v);
	return a.from === inAddress.from && a.to === inAddress.to;
}
