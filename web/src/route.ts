// The address is the state: path and query as signals, written back without reloading.
import { signal } from '@preact/signals';

export const path = signal(location.pathname);
export const query = signal(new URLSearchParams(location.search));

function read(): void {
	path.value = location.pathname;
	query.value = new URLSearchParams(location.search);
}

addEventListener('popstate', read);

export function go(to: string): void {
	history.pushState(null, '', to);
	read();
	scrollTo(0, 0);
}

/** Changes some of the query; null or '' removes. `push` makes a step for the back button. */
export function set(changes: Record<string, string | number | null>, push = false): void {
	const q = new URLSearchParams(location.search);
	for (const [k, v] of Object.entries(changes)) {
		if (v === null || v === '') q.delete(k);
		else q.set(k, String(v));
	}
	const s = q.toString();
	const to = location.pathname + (s ? '?' + s : '');
	if (to === location.pathname + location.search) return;
	if (push) history.pushState(null, '', to);
	else history.replaceState(null, '', to);
	read();
}

export function text(name: string): string {
	return query.value.get(name) ?? '';
}

export function number(name: string): number | null {
	const v = query.value.get(name);
	return v !== null && /^\d+$/.test(v) ? Number(v) : null;
}

/** A click that stays on the page, unless the browser is asked for a tab of its own. */
export function follow(e: MouseEvent): void {
	const a = (e.target as Element).closest('a');
	if (!a || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
	if (a.origin !== location.origin || a.target || a.hasAttribute('download') || a.pathname.startsWith('/api/')) return;
	e.preventDefault();
	go(a.pathname + a.search + a.hash);
}
