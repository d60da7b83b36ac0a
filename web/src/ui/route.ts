// The address is the state: path and query as signals.  Entries for the back button are written immediately; other changes, such as those of a mouse
// wheel, a few times per second, because browsers limit how often a page may write its address.
import { computed, signal, type ReadonlySignal } from '@preact/signals';

const WRITE_MS = 250;

const MOVED: Record<string, string> = { '/webhooks': '/notifications' }; // earlier addresses

function pathname(): string {
	const to = MOVED[location.pathname];
	if (to) history.replaceState(history.state, '', to + location.search + location.hash);
	return location.pathname;
}

export const path = signal(pathname());
export const query = signal(new URLSearchParams(location.search));

let timer: ReturnType<typeof setTimeout> | undefined;
let written = -Infinity; // when, by performance.now()

function address(): string {
	const s = query.value.toString();
	return path.value + (s ? '?' + s : '');
}

/** Writes what waits to be written. */
export function flush(): void {
	clearTimeout(timer);
	timer = undefined;
	written = performance.now();
	if (address() !== location.pathname + location.search) history.replaceState(history.state, '', address());
}

function read(): void {
	clearTimeout(timer);
	timer = undefined;
	path.value = pathname();
	query.value = new URLSearchParams(location.search);
}

addEventListener('popstate', read);
addEventListener('pagehide', flush);

export function go(to: string): void {
	flush();
	history.pushState(null, '', to);
	read();
	scrollTo(0, 0);
}

/** The new value of a query parameter: null, '' and an empty list remove it, a list repeats it. */
export type Changes = Record<string, string | number | string[] | null>;

/** Changes some of the query. `push` makes a step for the back button. */
export function set(changes: Changes, push = false): void {
	const before = address();
	const q = new URLSearchParams(query.value);
	for (const [k, v] of Object.entries(changes)) {
		const [first, ...rest] = (Array.isArray(v) ? v : [v]).filter((one) => one !== null && one !== '');
		if (first === undefined) q.delete(k);
		else q.set(k, String(first)); // where it stood
		for (const one of rest) q.append(k, String(one));
	}
	const s = q.toString();
	const to = path.value + (s ? '?' + s : '');
	if (to === before) return;
	if (push) {
		flush();
		history.pushState(null, '', to);
	}
	query.value = q;
	if (!push && performance.now() - written >= WRITE_MS) flush();
	else if (!push) timer ??= setTimeout(flush, WRITE_MS);
}

declare const PARAMETERS: string; // every name that the source passes to text() or number(): build.mjs

const named = new Map<string, ReadonlySignal<string>>();

/** One value of the query; its readers are drawn again only if this one changes. */
export function text(name: string): string {
	let one = named.get(name);
	if (!one) {
		one = computed(() => query.value.get(name) ?? '');
		named.set(name, one);
	}
	return one.value;
}

/** All values of a parameter that may be repeated. */
export function texts(name: string): string[] {
	text(name);
	return query.value.getAll(name).filter(Boolean);
}

/** Does this version know that name of the query? */
export function known(name: string): boolean {
	return PARAMETERS.split(' ').includes(name) || named.has(name);
}

export function number(name: string): number | null {
	const v = text(name);
	return /^\d{1,16}$/.test(v) ? Number(v) : null;
}

/** An address of this page in the project that the address names: links lead to where they were shown. */
export function link(to: string): string {
	const project = text('project');
	return project ? `${to}${to.includes('?') ? '&' : '?'}project=${encodeURIComponent(project)}` : to;
}

/** Follows a link within the page, unless it opens in a new tab. */
export function follow(e: MouseEvent): void {
	const a = (e.target as Element).closest('a');
	if (!a || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
	if (a.origin !== location.origin || a.target || a.hasAttribute('download') || a.pathname.startsWith('/api/')) return;
	e.preventDefault();
	go(a.pathname + a.search + a.hash);
}
