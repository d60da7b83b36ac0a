// Filter and order of a table of methods, in the address.
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
	return <label class="inline">{tr('Filter')}{' '}<input type="search" value={typed} placeholder={tr('part of a name, or /expression/')} onInput={(e) => type(e.currentTarget.value)} /></label>;
}

/** A column's head, which orders the rows; `standard` is the column without a word in the address. */
export function Sorted({ by, label, hint, now, standard }: { by: string; label: string; hint?: string; now: { sort: string; order: string }; standard: string }) {
	const usual = by === 'name' ? 'asc' : 'desc';
	const order = now.sort === by ? now.order : '';
	const pick = () => {
		const to = order === usual ? (usual === 'asc' ? 'desc' : 'asc') : usual;
		set({ sort: by === standard ? null : by, order: to === usual ? null : to }, true);
	};
	const arrow = order && <span aria-hidden="true">{order === 'asc' ? ' ↑ ' : ' ↓ '}</span>;
	return (
		<th scope="col" class={by === 'name' ? '' : 'num'} title={hint} aria-sort={order ? (order === 'asc' ? 'ascending' : 'descending') : 'none'}>
			<button class="plain" onClick={pick}>{by !== 'name' && arrow}{label}{by === 'name' && arrow}</button>
		</th>
	);
}
