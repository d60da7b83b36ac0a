// Filter of a table of methods, in the address.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { set, text } from './route';
import { tr } from '../i18n/strings/frame';

const TYPING_MS = 200;

export function Filter() {
	const value = text('filter');
	const [typed, put] = useState(value);
	const timer = useRef(0);
	useLayoutEffect(() => put(value), [value]);
	const type = (v: string) => {
		put(v);
		clearTimeout(timer.current);
		timer.current = window.setTimeout(() => set({ filter: v, rows: null }), TYPING_MS);
	};
	return <label class="inline">{tr('Filter')}{' '}<input type="search" size={28} value={typed} placeholder={tr('part of a name, or /expression/')} onInput={(e) => type(e.currentTarget.value)} /></label>;
}
