// Repeats requests for data that changes at the server, while the page is visible.
import { useEffect } from 'preact/hooks';
import type { Loaded } from './parts';

export const SOON_MS = 2000; // while work is in progress
export const PROCESSING_MS = 5000; // while traces of the project are processed
export const LATER_MS = 30_000; // while its next try is far off

/** Repeats the request this long after a response, or when the page becomes visible again. Does nothing if `wait_ms` is not set; Infinity: only when the page becomes visible. */
export function usePolling(load: Loaded<unknown>, wait_ms: number | false | null | undefined): void {
	useEffect(() => {
		if (load.busy || !wait_ms) return;
		const look = () => document.hidden || load.again();
		const timer = wait_ms < Infinity ? setTimeout(look, wait_ms) : undefined;
		document.addEventListener('visibilitychange', look);
		return () => {
			clearTimeout(timer);
			document.removeEventListener('visibilitychange', look);
		};
	}, [load.busy, load.value, wait_ms]);
}
