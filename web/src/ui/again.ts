// Repeats requests for data that changes at the server, while the page is visible.
import { useEffect } from 'preact/hooks';
import type { Loaded } from './parts';

export const SOON_MS = 2000; // while something is on its way
export const PROCESSING_MS = 5000; // while traces of the project are processed
export const LATER_MS = 30_000; // while its next try is far off

/** Repeats the request this long after a response; never for null. */
export function useLookAgain(load: Loaded<unknown>, wait_ms: number | null): void {
	useEffect(() => {
		if (load.busy || wait_ms === null) return;
		let timer: ReturnType<typeof setTimeout> | undefined;
		const plan = () => {
			clearTimeout(timer);
			if (!document.hidden) timer = setTimeout(load.again, wait_ms);
		};
		plan();
		document.addEventListener('visibilitychange', plan);
		return () => {
			clearTimeout(timer);
			document.removeEventListener('visibilitychange', plan);
		};
	}, [load.busy, load.value, wait_ms]);
}
