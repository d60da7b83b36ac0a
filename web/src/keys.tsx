// The keys, behind "?".
import { useEffect, useRef } from 'preact/hooks';

const KEYS: [string, [string, string][]][] = [
	['Timeline', [
		['w / s, + / −, wheel', 'zoom in, zoom out'], ['a / d, ← / →, drag', 'move earlier, later'], ['0', 'whole trace'],
		['↑ / ↓, Shift+wheel', 'scroll rows'], ['Page ↑ / ↓', 'scroll threads'], ['double click', 'zoom to the call'],
		['j / k', 'next, previous thread'], ['o', 'open or close the thread'], ['O', 'close all others'], ['e', 'all its rows, or fewer'],
		['. / ,', 'next, previous note of the thread'], ['f', 'follow the arrow: lock, start, wake-up; again goes back'],
	]],
	['Selection', [
		['Shift+drag', 'time and threads'], ['drag on the ruler', 'time'], ['v', 'what is in view'], ['Shift+← / →', 'move its end'],
		['x, Ctrl+click on a name', 'take a thread in, or out'], ['Enter', 'zoom to it'], ['Esc', 'clear it'],
	]],
	['Search', [['/', 'find a method'], ['Enter, Shift+Enter', 'next, previous call'], ['Esc', 'clear the search']]],
	['Merged graph', [['↑ ↓ ← →', 'parent, child, siblings'], ['Enter', 'open the node, or what is smaller'], ['Esc, Backspace', 'back up'], ['m, right click', 'what can be done with a method']]],
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
			<div class="keys">{KEYS.map(([title, keys]) => <section key={title}>
				<h3>{title}</h3>
				<dl>{keys.map(([k, what]) => <div key={k}><dt>{k}</dt><dd>{what}</dd></div>)}</dl>
			</section>)}</div>
			<form method="dialog"><button autofocus>Close</button></form>
		</dialog>
	);
}
