// Pages of a list by cursor, and the keys of its rows.
import type { ComponentChild } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { count } from '../i18n/format';
import { tr } from '../i18n/strings/frame';
import type { Loaded } from './parts';
import { inField } from '../ui/parts';
import { number, set, text, type Changes } from './route';

const typing = (e: KeyboardEvent) => e.ctrlKey || e.metaKey || e.altKey || (inField(e) && (e.target as HTMLInputElement).type !== 'checkbox');

function useKeys(act: (key: string) => boolean): void {
	useLayoutEffect(() => {
		const key = (e: KeyboardEvent) => {
			if (!typing(e) && !document.querySelector('dialog[open]') && act(e.key)) e.preventDefault();
		};
		addEventListener('keydown', key);
		return () => removeEventListener('keydown', key);
	});
}

/** j and k move the focus from row to row; `act` gets other keys with the row that has the focus. Enter on a link is the browser's. */
export function useRowKeys<T>(rows: T[], act: (key: string, row?: T) => boolean): void {
	useKeys((key) => {
		const links = [...document.querySelectorAll<HTMLElement>('tr .rowlink')];
		const at = links.findIndex((l) => l.closest('tr')!.contains(document.activeElement));
		if (key !== 'j' && key !== 'k') return act(key, rows[at]);
		links[key === 'j' ? Math.min(links.length - 1, at + 1) : Math.max(0, at - 1)]?.focus();
		return true;
	});
}

/* State of a history entry that follows the previous page; a link or a bookmark lacks it, so Back shows the first page. */
const FROM_HERE = 'next page';

/** Changes of the address that also lead to the first page. */
export const fromStart = (changes: Changes): Changes => ({ ...changes, cursor: null, n: null });

/** `cursor` is the next page's; `of` loads the page that the address names, which until then is another one than the shown. */
export function Pages({ rows, total, cursor, of }: { rows: number; total?: string; cursor: string | null; of: Loaded<unknown> }) {
	const before = number('n') ?? 0;
	const first = !text('cursor');
	const next = () => {
		if (of.busy || of.error) return;
		set({ cursor, n: before + rows }, true);
		history.replaceState(FROM_HERE, '');
		scrollTo(0, 0);
	};
	const back = () => (history.state === FROM_HERE ? history.back() : set(fromStart({})));
	useKeys((key) => {
		if (key === 'n' && cursor) next();
		else if (key === 'p' && !first) back();
		else return false;
		return true;
	});
	if (first && !cursor) return null;
	return (
		<nav class="row pages" aria-label={tr('Pages of the list')}>
			<button disabled={first} onClick={() => set(fromStart({}))}>{tr('First')}</button>
			<button disabled={first} onClick={back}>{tr('Back')}</button>
			<button disabled={!cursor} onClick={next}>{tr('Next')}</button>
			{rows > 0 && <span class="quiet">{total ? tr('{before} to {rows} of {total}', { before: count(before + 1), rows: count(before + rows), total }) : tr('{before} to {rows}', { before: count(before + 1), rows: count(before + rows) })}</span>}
		</nav>
	);
}

/** A page whose rows were deleted or are in another state since. */
export function EmptyPage() {
	return <div class="notice"><strong>{tr('This page of the list is now empty.')}</strong>
		<p><button onClick={() => set(fromStart({}))}>{tr('To the first page')}</button></p></div>;
}

/** For one of several lists on a page: the cursor of the shown page, and the buttons that lead to others; `next` is the cursor of the next page. */
export function useTurn(): [cursor: string, buttons: (next: string | null) => ComponentChild] {
	const [cursors, to] = useState<string[]>([]); // led to the shown page, none to the first
	return [cursors.at(-1) ?? '', (next) => (cursors.length > 0 || next) && <div class="row"><button disabled={cursors.length === 0} onClick={() => to(cursors.slice(0, -1))}>{tr('Back')}</button>
		<button disabled={!next} onClick={() => to([...cursors, next!])}>{tr('Next')}</button></div>];
}
