// The one search of the page: a button at its top, `/` and Ctrl+K.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Session } from '../api/api';
import { path } from '../ui/route';
import { tr } from '../i18n/strings/frame';
import { ASIDE, later } from '../ui/later';
import { inField } from '../ui/parts';
import { traceOf } from './pages';

/** Text typed before the search was loaded. */
export interface Early {
	text: string;
	enter: boolean;
}

const palette = later<{ s: Session; early: Early; close: () => void }>('palette', async () => (await import('./palette')).Palette, ASIDE);

const typing = (e: KeyboardEvent) => inField(e) && (e.target as HTMLInputElement).type !== 'checkbox';

const idle = globalThis.requestIdleCallback ?? ((f: () => void) => setTimeout(f, 1000));

/** Stores typed text until the search is loaded. */
function useEarly(open: boolean, close: () => void): Early {
	const early = useRef<Early>({ text: '', enter: false });
	useLayoutEffect(() => {
		if (!open) return undefined;
		Object.assign(early.current, { text: '', enter: false }); // the search has it already
		const key = (e: KeyboardEvent) => {
			if (document.querySelector('dialog.palette') || e.ctrlKey || e.metaKey || e.altKey) return; // it has them itself
			const v = early.current;
			if (e.key === 'Escape') close();
			else if (e.key === 'Backspace') v.text = v.text.slice(0, -1);
			else if (e.key === 'Enter') v.enter = true;
			else if ([...e.key].length === 1) v.text += e.key;
			else return;
			e.preventDefault();
			e.stopPropagation();
		};
		addEventListener('keydown', key, true);
		return () => removeEventListener('keydown', key, true);
	}, [open]);
	return early.current;
}

export function Find({ s }: { s: Session }) {
	const [open, show] = useState(false);
	const early = useEarly(open, () => show(false));
	useEffect(() => void idle(palette.begin), []);
	useLayoutEffect(() => {
		const key = (e: KeyboardEvent) => {
			const slash = e.key === '/' && !e.ctrlKey && !e.metaKey && !e.altKey && !typing(e) && !traceOf(path.value); // a trace has a separate search
			const k = e.key === 'k' && (e.ctrlKey || e.metaKey) && !e.shiftKey && !e.altKey;
			if ((!slash && !k) || document.querySelector('dialog[open]')) return;
			e.preventDefault();
			show(true);
		};
		addEventListener('keydown', key);
		return () => removeEventListener('keydown', key);
	}, []);
	useLayoutEffect(() => show(false), [path.value]);
	return <>
		<button class="small find" onPointerEnter={palette.begin} onClick={() => show(true)} aria-haspopup="dialog" aria-keyshortcuts="/ Control+K">{tr('Search')}<kbd aria-hidden="true">/</kbd></button>
		{open && <palette.Page s={s} early={early} close={() => show(false)} />}
	</>;
}
