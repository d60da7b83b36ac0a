// The keys, behind "?".
import { useEffect, useRef } from 'preact/hooks';

const KEYS: [string, string][] = [
	['w / s, + / −', 'zoom in, zoom out'], ['a / d, ← / →', 'move earlier, later'], ['↑ / ↓', 'scroll rows'],
	['0', 'whole thread'], ['Enter', 'zoom to the selection'], ['Esc', 'clear the selection or the search'],
	['/', 'find a method'], ['Enter, Shift+Enter in the search', 'next, previous call that matches'],
	['wheel', 'zoom at the pointer'], ['drag', 'move'], ['Shift+drag, or drag on the ruler', 'select a time range'],
	['Shift+wheel', 'scroll rows'], ['double click', 'zoom to the call'],
	['↑ ↓ ← → in the merged graph', 'parent, child, siblings'], ['Enter in the merged graph', 'open the node, or what is smaller'],
	['Esc, Backspace in the merged graph', 'back up'], ['m or right click in it', 'what can be done with a method'],
];

export function Keys() {
	const dialog = useRef<HTMLDialogElement>(null);
	useEffect(() => {
		const key = (e: KeyboardEvent) => {
			if (e.key === '?' && !/^(INPUT|TEXTAREA|SELECT)$/.test((e.target as Element).tagName)) dialog.current?.showModal();
		};
		addEventListener('keydown', key);
		return () => removeEventListener('keydown', key);
	}, []);
	return (
		<dialog ref={dialog} aria-label="Keys">
			<h2>Keys</h2>
			<dl class="keys">{KEYS.map(([k, what]) => <div key={k}><dt>{k}</dt><dd>{what}</dd></div>)}</dl>
			<form method="dialog"><button autofocus>Close</button></form>
		</dialog>
	);
}
