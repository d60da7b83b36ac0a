// Small pieces that every page uses.
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Refusal } from '../api/api';
import { sentence, splitClass, splitName } from '../i18n/format';
import { returned } from '../api/health';
import { ended } from '../i18n/servertext';
import { link, set } from './route';
import { tr } from '../i18n/strings/frame';

function titleOf(error: Error): string {
	const status = error instanceof Refusal ? error.status : -1;
	if (status === 0) return tr('No connection.');
	if (status === 401) return tr('Sign in to continue.');
	if (status === 404) return tr('Not found');
	if (status === 429) return tr('Too many requests.');
	return status >= 502 && status <= 504 ? tr('The server is temporarily unavailable.') : tr('Something went wrong.');
}

/** An error with its remedy; `more` adds facts that the server does not know. */
export function Failure({ error, retry, title, more, again = tr('Try again') }: { error: Error; retry?: () => void; title?: string; more?: string; again?: string }) {
	const status = error instanceof Refusal ? error.status : 0;
	const offset = error instanceof Refusal ? error.offset : null;
	return (
		<div class="notice bad" role="alert">
			<strong>{title ?? titleOf(error)}</strong>
			<p>{ended(sentence(error.message))}{offset !== null ? tr(' (at byte {offset})', { offset }) : ''}{more && ` ${more}`}{error instanceof Refusal && error.retryMs > 0 && ` ${tr('The page will try again.')}`}</p>
			<p class="row">
				{status === 401 && <a class="button" href="/signin">{tr('Sign in')}</a>}
				{status === 404 && <a class="button" href={link('/traces')}>{tr('All traces')}</a>}
				{retry && <button onClick={retry}>{again}</button>}
			</p>
		</div>
	);
}

/** Saves a file that the page made. */
export function download(file: Blob, name: string): void {
	const href = URL.createObjectURL(file);
	Object.assign(document.createElement('a'), { href, download: name }).click();
	setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

const STALLED_S = 10;

/** A pending operation; after a second with its duration so far. With `retry`, it can be repeated if the server does not respond. */
export function Busy({ what, retry }: { what: string; retry?: () => void }) {
	const [seconds, count] = useState(0);
	useEffect(() => {
		const timer = setInterval(() => count((n) => n + 1), 1000);
		return () => clearInterval(timer);
	}, []);
	return <p class="busy" role="status"><span class="spinner" aria-hidden="true" />{what}{seconds > 0 && <span class="num" aria-hidden="true">{seconds} s</span>}
		{retry && seconds >= STALLED_S && <>{tr('The server has not responded yet.')}<button class="small" onClick={() => { count(0); retry(); }}>{tr('Try again')}</button></>}</p>;
}

export interface Loaded<T> {
	value: T | null;
	error: Error | null;
	busy: boolean;
	again: () => void;
}

const RETRIES = 3; // a response that is too expensive for this server is refused each time

/** Loads when `key` changes, drops answers that come too late. Repeats a request that the server refused for a moment, with growing intervals. */
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
	const [state, put] = useState<{ value: T | null; of: string; requested: string; error: Error | null; busy: boolean }>({ value: null, of: '', requested: key, error: null, busy: true });
	const unheard = useRef(false); // it failed because the server did not answer
	const [turn, again] = useState(0);
	const refused = useRef({ key, times: 0 });
	useLayoutEffect(() => { // an effect would wait for a frame to be drawn
		const abort = new AbortController();
		put((s) => ({ ...s, busy: true, requested: key }));
		unheard.current = false;
		if (refused.current.key !== key) refused.current = { key, times: 0 };
		let timer: ReturnType<typeof setTimeout> | undefined;
		load(abort.signal).then(
			(value) => {
				if (abort.signal.aborted) return;
				refused.current.times = 0;
				put({ value, of: key, requested: key, error: null, busy: false });
			},
			(error: Error) => {
				if (abort.signal.aborted) return;
				unheard.current = error instanceof Refusal && error.status === 0;
				if (error instanceof Refusal && error.afterMs > 0 && refused.current.times < RETRIES) {
					error.retryMs = error.afterMs * 2 ** refused.current.times++;
					timer = setTimeout(() => again((n) => n + 1), error.retryMs);
				}
				put((s) => ({ ...s, error: unheard.current && s.value !== null && s.of === key ? null : error, busy: false })); // existing data remains
			});
		return () => {
			abort.abort();
			clearTimeout(timer);
		};
	}, [key, turn]);
	useEffect(() => returned.subscribe(() => unheard.current && again((n) => n + 1)), []);
	const busy = state.busy || state.requested !== key; // a new key is drawn once before its effect sends the request
	return { value: state.value, error: state.error, busy, again: () => again((n) => n + 1) };
}

/** Reports once that a response or an error arrived, so that panels below can appear without being moved. */
export function useCame(load: { busy: boolean }, came: () => void): void {
	useEffect(() => {
		if (!load.busy) came();
	}, [load.busy]);
}

/** Shown in place of data: that it is loading, or the error. */
export function Pending({ of, what }: { of: Loaded<unknown>; what: string }) {
	return <>
		{of.error && <Failure error={of.error} retry={of.again} />}
		{!of.value && of.busy && <Busy what={what} retry={of.again} />}
	</>;
}

/** The key is typed into a field. */
export const inField = (e: KeyboardEvent): boolean => /^(INPUT|TEXTAREA|SELECT)$/.test((e.target as Element).tagName);

const PIECES = /(?<=[.(])|(?=\$)|(?<=[a-z])(?=[A-Z])/;

/** A name that breaks after its dots and before its capital letters, not within a word. */
export const breakable = (name: string) => name.split(PIECES).map((piece) => [<wbr />, piece]);

/** A method's name: its package is quiet. */
export const MethodName = ({ name }: { name: string }) => <Qualified of={splitName(name)} />;

/** A class's name, likewise. */
export const ClassName = ({ name }: { name: string }) => <Qualified of={splitClass(name)} />;

function Qualified({ of: [pkg, rest] }: { of: [string, string] }) {
	return <><span class="quiet">{breakable(pkg)}</span>{breakable(rest)}</>;
}

/** Width and height of an element's content in CSS pixels, kept current; known before the first frame is drawn. */
export function useSize<T extends HTMLElement>(): [preact.RefObject<T>, number, number] {
	const ref = useRef<T>(null);
	const [size, put] = useState<[number, number]>([0, 0]);
	useLayoutEffect(() => {
		const e = ref.current;
		if (!e) return;
		const are = (width: number, height: number) => put((s) => (s[0] === Math.floor(width) && s[1] === Math.floor(height) ? s : [Math.floor(width), Math.floor(height)]));
		const p = getComputedStyle(e);
		are(e.clientWidth - parseFloat(p.paddingLeft) - parseFloat(p.paddingRight), e.clientHeight - parseFloat(p.paddingTop) - parseFloat(p.paddingBottom));
		const o = new ResizeObserver(([{ contentRect }]) => are(contentRect.width, contentRect.height));
		o.observe(e);
		return () => o.disconnect();
	}, []);
	return [ref, ...size];
}

export function useWidth<T extends HTMLElement>(): [preact.RefObject<T>, number] {
	const [ref, width] = useSize<T>();
	return [ref, width];
}

/** The ref of a form's first field: a form that opens below a long table is scrolled to. */
export const focused = (field: HTMLElement | null): void => {
	field?.focus({ preventScroll: true });
	field?.closest('form')?.scrollIntoView({ block: 'nearest' });
};

/** Ref that scrolls a new result into view. */
export const inView = (e: HTMLElement | null): void => e?.scrollIntoView({ block: 'nearest' });

export function Copy({ text, label = tr('Copy') }: { text: string | (() => string); label?: string }) {
	const [done, put] = useState(false);
	const copy = async () => {
		try {
			await navigator.clipboard.writeText(typeof text === 'string' ? text : text());
			put(true);
			setTimeout(() => put(false), 1500);
		} catch {
			put(false);
		}
	};
	return <button class="small" onClick={copy}>{done ? tr('Copied') : label}</button>;
}

export function Command({ children }: { children: string }) {
	return <div class="command"><pre tabIndex={0}>{children}</pre><Copy text={children} /></div>;
}

export function Panel({ title, aside, children, id }: { title: string; aside?: ComponentChildren; children: ComponentChildren; id?: string }) {
	return (
		<section class="panel" id={id} aria-label={title}>
			<header><h2>{title}</h2><div class="aside">{aside}</div></header>
			{children}
		</section>
	);
}

export function Choice({ label, value, options, onPick }: {
	label: string; value: string; options: [string, string][]; onPick: (v: string) => void;
}) {
	return (
		<div class="choice" role="group" aria-label={label}>
			{options.map(([v, t]) => (
				<button key={v} aria-pressed={v === value} onClick={() => onPick(v)}>{t}</button>
			))}
		</div>
	);
}

/** A column's head, which orders the rows; `standard` is the column without a word in the address. */
export function Sorted({ by, label, hint, now, standard }: { by: string; label: string; hint?: string; now: { sort: string; order: string }; standard: string }) {
	const usual = by === 'name' ? 'asc' : 'desc';
	const order = now.sort === by ? now.order : '';
	const pick = () => {
		const to = order === usual ? (usual === 'asc' ? 'desc' : 'asc') : usual;
		set({ sort: by === standard ? null : by, order: to === usual ? null : to, rows: null }, true);
	};
	const arrow = order && <span aria-hidden="true">{order === 'asc' ? ' ↑ ' : ' ↓ '}</span>;
	return (
		<th class={by === 'name' ? '' : 'num'} title={hint} aria-sort={order ? (order === 'asc' ? 'ascending' : 'descending') : 'none'}>
			<button class="plain" onClick={pick}>{by !== 'name' && arrow}{label}{by === 'name' && arrow}</button>
		</th>
	);
}
