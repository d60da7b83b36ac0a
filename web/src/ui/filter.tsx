// Filter of a table of methods, in the address.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { set, text, type Changes } from './route';
import { tr } from '../i18n/strings/frame';

const TYPING_MS = 200;

/** The text of a field.  When typing pauses, it is put into the address, with `more` changes. */
export function useTyped(name: string, more: Changes = {}): [string, (v: string) => void] {
	const value = text(name);
	const [typed, put] = useState(value);
	const timer = useRef(0);
	useLayoutEffect(() => {
		put(value);
		return () => clearTimeout(timer.current); // the address changed meanwhile, or the field is gone
	}, [value]);
	return [typed, (v) => {
		put(v);
		clearTimeout(timer.current);
		timer.current = window.setTimeout(() => set({ [name]: v, ...more }), TYPING_MS);
	}];
}

export function Filter() {
	const [typed, type] = useTyped('filter', { rows: null });
	return <label class="inline">{tr('Filter')}{' '}<input type="search" size={28} value={typed} placeholder={tr('part of a name, or /expression/')} onInput={(e) => type(e.currentTarget.value)} /></label>;
}
