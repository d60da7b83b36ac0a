// State derived from responses: whether the server responds, whether the session is valid, and the last object not found.
import { signal } from '@preact/signals';

const REQUEST_MS = 2000; // while the server is away

export const away = signal(false);
export const returned = signal(0); // number of recoveries of the server
export const expired = signal(0); // number of refusals because there is no session
export const missing = signal({ path: '', turn: 0 }); // the last that was not found

let timer: ReturnType<typeof setTimeout> | undefined;

function request(): void {
	clearTimeout(timer);
	timer = setTimeout(() => fetch('/api/v1/session').then(found, request), REQUEST_MS);
}

/** No response arrived. */
export function lost(): void {
	if (away.value) return;
	away.value = true;
	request();
}

/** A response arrived. */
function found(): void {
	if (!away.value) return;
	clearTimeout(timer);
	away.value = false;
	returned.value++;
}

/** Checks whether the server responds, for requests that do not use `call`. */
export function probe(): void {
	fetch('/api/v1/session').then(found, lost);
}

export function answered(path: string, status: number): void {
	found();
	if (status === 401 && !path.startsWith('/api/v1/session')) expired.value++;
	if (status === 404) missing.value = { path: path.split('?')[0], turn: missing.value.turn + 1 };
}
