// The list of keyboard and pointer actions.  A test compares the timeline's keys with it.
import { tr } from '../i18n/strings/frame';

export interface Shortcut {
	shown: string;
	does: string;
	keys?: string[]; // names of key events, with "Shift " before them; none for the pointer
}

export interface Shortcuts {
	title: string;
	canvas?: 'timeline'; // needs its focus
	keys: Shortcut[];
}

const one = (shown: string, does: string, ...keys: string[]): Shortcut => ({ shown, does, keys });

export const SHORTCUTS: Shortcuts[] = [
	{ title: tr('Everywhere'), keys: [
		one('?', tr('show this list'), '?'), one('Tab, Shift+Tab', tr('next, previous control'), 'Tab'), one('Enter, Space', tr('activate the focused control'), 'Enter', ' '),
		one('Esc', tr('close a menu or this list'), 'Escape'), one('/', tr('search the project (in a trace: find a method)'), '/'), one('Ctrl+K', tr('search the project, also in a trace'), 'Ctrl k'),
	] },
	{ title: tr('List of traces'), keys: [
		one('j / k', tr('next, previous trace'), 'j', 'k'), one('Enter', tr('open it'), 'Enter'), one('n / p', tr('next, previous page'), 'n', 'p'), one('x', tr('select or deselect it'), 'x'), one('X', tr('select the range from the previous one'), 'X'),
		one('Esc', tr('clear the selection'), 'Escape'), one('#', tr('delete the selected traces (asks first)'), '#'),
	] },
	{ title: tr('Inbox'), keys: [
		one('j / k', tr('next, previous item'), 'j', 'k'), one('Enter', tr('open it'), 'Enter'), one('n / p', tr('next, previous page'), 'n', 'p'), one('x', tr('select or deselect it'), 'x'),
		one('a', tr('acknowledge it, or the selected ones'), 'a'), one('f', tr('mark as fixed'), 'f'), one('m', tr('mute for 7 days'), 'm'), one('z', tr('undo the last change'), 'z'), one('Esc', tr('clear the selection'), 'Escape'),
	] },
	{ title: tr('Timeline'), canvas: 'timeline', keys: [
		one(tr('w / s, + / −, Ctrl+wheel'), tr('zoom in, zoom out'), 'w', 's', '+', '=', '-'), one(tr('a / d, ← / →, drag'), tr('move earlier, later'), 'a', 'd', 'ArrowLeft', 'ArrowRight'),
		one('0', tr('whole trace'), '0'), one(tr('↑ / ↓, wheel, Shift+wheel'), tr('scroll rows'), 'ArrowUp', 'ArrowDown'), one('Page ↑ / ↓', tr('scroll threads'), 'PageUp', 'PageDown'),
		one(tr('click'), tr('select the call')), one(tr('double click'), tr('zoom to the call')), one(tr('Shift+F10, right click'), tr('menu of actions for a method'), 'Shift F10'), one('j / k', tr('next, previous thread'), 'j', 'k'), one('o', tr('open or close the thread'), 'o'),
		one('O', tr('close all others'), 'O'), one('e', tr('all its rows, or fewer'), 'e'), one('p', tr('pin the thread to the top, or unpin it'), 'p'), one('h', tr('hide the thread'), 'h'), one('. / ,', tr('next, previous event of the thread'), '.', ','),
		one('f', tr('follow the arrow: lock, start, wake-up; again goes back'), 'f'),
	] },
	{ title: tr('Annotations'), keys: [
		one('n', tr('write one, at the selection or the middle of the view'), 'n'), one('Ctrl+Enter', tr('save it')), one('Esc', tr('discard it'), 'Escape'),
	] },
	{ title: tr('Selection'), canvas: 'timeline', keys: [
		one(tr('Shift+drag'), tr('time and threads')), one(tr('drag on the ruler'), tr('time')), one('v', tr('visible range'), 'v'), one('m', tr('the selected call'), 'm'),
		one('Shift+← / →', tr('move its end'), 'Shift ArrowLeft', 'Shift ArrowRight'), one(tr('x, Ctrl+click on a name'), tr('add or remove a thread'), 'x'),
		one('Enter', tr('zoom to it'), 'Enter'), one('Esc', tr('clear it'), 'Escape'),
	] },
	{ title: tr('Search'), keys: [one('/', tr('find a method'), '/'), one('Enter, Shift+Enter', tr('next, previous call'), 'Enter', 'Shift Enter'), one('Esc', tr('clear the search'), 'Escape')] },
	{ title: tr('Merged graph, comparison'), keys: [
		one('↑ ↓ ← →, Home', tr('parent, child, siblings, root'), 'ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'Home'), one('Enter', tr('open the node, or the group of smaller ones'), 'Enter'),
		one('Esc, Backspace', tr('back up'), 'Escape', 'Backspace'), one('n, N, F3', tr('next, previous hit of the search'), 'n', 'N', 'F3'),
		one(tr('m, right click'), tr('menu of actions for a method'), 'm'),
	] },
	{ title: tr('Tree'), keys: [
		one('↑ ↓, Home, End, Page ↑ ↓', tr('rows'), 'ArrowUp', 'ArrowDown', 'Home', 'End', 'PageUp', 'PageDown'), one('→ / ←, Space', tr('expand, collapse; go to child, to parent'), 'ArrowRight', 'ArrowLeft', ' '),
		one('*', tr('expand the heaviest path'), '*'), one(tr('letters'), tr('next row that starts with it')), one(tr('Enter, double click'), tr('only this node'), 'Enter'),
		one('Esc, Backspace', tr('back up'), 'Escape', 'Backspace'), one('F3, Shift+F3', tr('next, previous hit of the search'), 'F3', 'Shift F3'),
		one(tr('Shift+F10, right click'), tr('menu of actions for a method'), 'Shift F10'),
	] },
	{ title: tr('ANR report'), keys: [one('Enter, Space', tr('on a box of the chart: show its stack'), 'Enter', ' ')] },
];
