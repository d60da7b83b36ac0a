// The one list of what keys and the pointer do.  A test holds the timeline's keys to it.

export interface Shortcut {
	shown: string;
	does: string;
	keys?: string[]; // as events name them, with "Shift " before; none for the pointer
}

export interface Shortcuts {
	title: string;
	canvas?: 'timeline'; // whose focus they need
	keys: Shortcut[];
}

const one = (shown: string, does: string, ...keys: string[]): Shortcut => ({ shown, does, keys });

export const SHORTCUTS: Shortcuts[] = [
	{ title: 'Everywhere', keys: [
		one('?', 'these keys', '?'), one('Tab, Shift+Tab', 'next, previous control', 'Tab'), one('Enter, Space', 'press what has the focus', 'Enter', ' '),
		one('Esc', 'close a menu or this list', 'Escape'),
	] },
	{ title: 'List of traces', keys: [
		one('j / k', 'next, previous trace', 'j', 'k'), one('Enter', 'open it', 'Enter'), one('x', 'pick it, or not', 'x'), one('X', 'pick all from the one picked before', 'X'),
		one('Esc', 'pick none', 'Escape'), one('#', 'delete what is picked, after asking', '#'), one('/', 'search', '/'),
	] },
	{ title: 'Timeline', canvas: 'timeline', keys: [
		one('w / s, + / −, wheel', 'zoom in, zoom out', 'w', 's', '+', '=', '-'), one('a / d, ← / →, drag', 'move earlier, later', 'a', 'd', 'ArrowLeft', 'ArrowRight'),
		one('0', 'whole trace', '0'), one('↑ / ↓, Shift+wheel', 'scroll rows', 'ArrowUp', 'ArrowDown'), one('Page ↑ / ↓', 'scroll threads', 'PageUp', 'PageDown'),
		one('double click', 'zoom to the call'), one('j / k', 'next, previous thread', 'j', 'k'), one('o', 'open or close the thread', 'o'),
		one('O', 'close all others', 'O'), one('e', 'all its rows, or fewer', 'e'), one('. / ,', 'next, previous note of the thread', '.', ','),
		one('f', 'follow the arrow: lock, start, wake-up; again goes back', 'f'),
	] },
	{ title: 'Annotations', keys: [
		one('n', 'write one, at the selection or the middle of the view', 'n'), one('Ctrl+Enter', 'save it'), one('Esc', 'leave it', 'Escape'),
	] },
	{ title: 'Selection', canvas: 'timeline', keys: [
		one('Shift+drag', 'time and threads'), one('drag on the ruler', 'time'), one('v', 'what is in view', 'v'),
		one('Shift+← / →', 'move its end', 'Shift ArrowLeft', 'Shift ArrowRight'), one('x, Ctrl+click on a name', 'take a thread in, or out', 'x'),
		one('Enter', 'zoom to it', 'Enter'), one('Esc', 'clear it', 'Escape'),
	] },
	{ title: 'Search', keys: [one('/', 'find a method', '/'), one('Enter, Shift+Enter', 'next, previous call', 'Enter', 'Shift Enter'), one('Esc', 'clear the search', 'Escape')] },
	{ title: 'Merged graph, comparison', keys: [
		one('↑ ↓ ← →, Home', 'parent, child, siblings, root', 'ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'Home'), one('Enter', 'open the node, or what is smaller', 'Enter'),
		one('Esc, Backspace', 'back up', 'Escape', 'Backspace'), one('n, N, F3', 'next, previous hit of the search', 'n', 'N', 'F3'),
		one('m, right click', 'what can be done with a method', 'm'),
	] },
	{ title: 'Tree', keys: [
		one('↑ ↓, Home, End, Page ↑ ↓', 'rows', 'ArrowUp', 'ArrowDown', 'Home', 'End', 'PageUp', 'PageDown'), one('→ / ←, Space', 'open, close; into it, out of it', 'ArrowRight', 'ArrowLeft', ' '),
		one('*', 'open the heaviest path to its end', '*'), one('letters', 'next row that begins so'), one('Enter, double click', 'this node alone', 'Enter'),
		one('Esc, Backspace', 'back up', 'Escape', 'Backspace'), one('F3, Shift+F3', 'next, previous hit of the search', 'F3', 'Shift F3'),
		one('Shift+F10, right click', 'what can be done with a method', 'Shift F10'),
	] },
	{ title: 'ANR report', keys: [one('Enter, Space', 'on a box of the picture: show its stack', 'Enter', ' ')] },
];
