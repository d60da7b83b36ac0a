// Small pieces that every page uses.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Refusal } from './api';
import { link } from './route';

export function Failure({ error, retry }: { error: Error; retry?: () => void }) {
	const status = error instanceof Refusal ? error.status : 0;
	const offset = error instanceof Refusal ? error.offset : null;
	return (
		<div class="notice bad" role="alert">
			<strong>{status === 401 ? 'Sign in to go on.' : status === 404 ? 'There is nothing here.' : 'That did not work.'}</strong>
			<p>{error.message}{offset !== null ? ` (at byte ${offset})` : ''}</p>
			<p class="row">
				{status === 401 && <a class="button" href="/signin">Sign in</a>}
				{status === 404 && <a class="button" href={link('/')}>All traces</a>}
				{retry && <button onClick={retry}>Try again</button>}
			</p>
		</div>
	);
}

export function Busy({ what }: { what: string }) {
	return <p class="busy" role="status"><span class="spinner" aria-hidden="true" />{what}</p>;
}

export interface Loaded<T> {
	value: T | null;
	error: Error | null;
	busy: boolean;
	again: () => void;
}

/** Loads when `key` changes, drops answers that come too late. */
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
	const [state, put] = useState<{ key: string; value: T | null; error: Error | null; busy: boolean }>(
		{ key, value: null, error: null, busy: true });
	const [turn, again] = useState(0);
	useEffect(() => {
		const abort = new AbortController();
		put((s) => ({ ...s, key, busy: true }));
		load(abort.signal).then(
			(value) => !abort.signal.aborted && put({ key, value, error: null, busy: false }),
			(error: Error) => !abort.signal.aborted && put((s) => ({ key, value: s.value, error, busy: false })));
		return () => abort.abort();
	}, [key, turn]);
	return { value: state.value, error: state.error, busy: state.busy, again: () => again((n) => n + 1) };
}

/** Width of an element in CSS pixels, kept current. */
export function useWidth<T extends HTMLElement>(): [preact.RefObject<T>, number] {
	const ref = useRef<T>(null);
	const [width, put] = useState(0);
	useEffect(() => {
		if (!ref.current) return;
		const o = new ResizeObserver((e) => put(Math.floor(e[0].contentRect.width)));
		o.observe(ref.current);
		return () => o.disconnect();
	}, []);
	return [ref, width];
}

export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
	const [done, put] = useState(false);
	const copy = async () => {
		try {
			await navigator.clipboard.writeText(text);
			put(true);
			setTimeout(() => put(false), 1500);
		} catch {
			put(false);
		}
	};
	return <button class="small" onClick={copy}>{done ? 'Copied' : label}</button>;
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
