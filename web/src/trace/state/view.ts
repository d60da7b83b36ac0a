// The part of a trace that the timeline shows.
import type { Span } from './axis';
import { number } from '../../ui/route';

/** The view in the address; the whole trace if nothing of it is in view. */
export function viewOf(whole: Span): Span {
	const from = number('from') ?? whole.from;
	const to = Math.max(from + 1, number('to') ?? whole.to);
	return from >= whole.to || to <= whole.from ? whole : { from, to };
}
