// The worker that owns the calls: started while the page's code still comes, as it takes its time, and
// told what to load as soon as that is known, though nothing is drawn yet.
import type { ToWorker } from './messages';

declare const WORKER_URL: string;

let early: Worker | null = null;

const make = () => new Worker(WORKER_URL, { type: 'module' });

export function beginWorker(): void {
	early ??= make();
}

/** Has the one that nobody took yet load these threads. */
export function loadEarly(trace: string, project: string, tids: number[]): void {
	const m: ToWorker = { kind: 'open', trace, project, tids, early: true };
	early?.postMessage(m);
}

/** One that nobody else has. */
export function takeWorker(): Worker {
	const w = early ?? make();
	early = null;
	return w;
}
