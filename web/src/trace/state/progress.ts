// The percentage of the calls of all open threads that is loaded.
import type { Progress } from '../worker/store';

/** At least `before`: the chunks of each thread are known only when its loading begins, and a thread may be opened in between. */
export function risen(before: number, of: Pick<Progress, 'loaded' | 'total'>[]): number {
	const sum = (key: 'loaded' | 'total') => of.reduce((n, p) => n + p[key], 0);
	return Math.max(before, Math.round((100 * sum('loaded')) / Math.max(1, sum('total'))));
}
