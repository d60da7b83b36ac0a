// The one search of the page: a button at its top, `/` and Ctrl+K.
import { useEffect, useState } from 'preact/hooks';
import type { Session } from '../api/api';
import { path } from '../ui/route';
import { tr } from '../i18n/strings/frame';
import { ASIDE, later } from '../ui/later';
import { traceOf } from './pages';

const palette = later<{ s: Session; close: () => void }>('palette', async () => (await import('./palette')).Palette, ASIDE);

const typing = (e: KeyboardEvent) => /^(INPUT|TEXTAREA|SELECT)$/.test((e.target as Element).tagName) && (e.target as HTMLInputElement).type !== 'checkbox';

export function Find({ s }: { s: Session }) {
	const [open, show] = useState(false);
	useEffect(() => {
		const key = (e: KeyboardEvent) => {
			const slash = e.key === '/' && !e.ctrlKey && !e.metaKey && !e.altKey && !typing(e) && !traceOf(path.value); // a trace has a search of its own
			const k = e.key === 'k' && (e.ctrlKey || e.metaKey) && !e.shiftKey && !e.altKey;
			if ((!slash && !k) || document.querySelector('dialog[open]')) return;
			e.preventDefault();
			show(true);
		};
		addEventListener('keydown', key);
		return () => removeEventListener('keydown', key);
	}, []);
	useEffect(() => show(false), [path.value]);
	return <>
		<button class="small find" onPointerEnter={palette.begin} onClick={() => show(true)} aria-haspopup="dialog" aria-keyshortcuts="/ Control+K">{tr('Search')}<kbd aria-hidden="true">/</kbd></button>
		{open && <palette.Page s={s} close={() => show(false)} />}
	</>;
}
