// The worker that owns the calls: started while the page's code still comes, as it takes its time, and
// started as soon as the threads to load are known, before anything is drawn.
import { earlyWorker } from '../../api/early';
import type { ToWorker } from './messages';

declare const WORKER_URL: string;

let early: Worker | null = null;

const make = () => new Worker(WORKER_URL, { type: 'module' });

export function beginWorker(): void {
	early ??= earlyWorker() ?? make();
}

/** Starts loading these threads in the unused worker. */
export function loadEarly(trace: string, project: string, tids: number[]): void {
	const m: ToWorker = { kind: 'open', trace, project, tids, early: true };
	early?.postMessage(m);
}

/** A worker for exclusive use. */
export function takeWorker(): Worker {
	const w = early ?? make();
	early = null;
	return w;
}
