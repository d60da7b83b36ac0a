// The list of keyboard and pointer actions.  A test compares the timeline's keys with it.
import { tr } from '../i18n/strings/frame';

export interface Shortcuts {
	title: string;
	on: RegExp; // the pages that have them
	canvas?: 'timeline'; // needs its focus
	keys: [shown: string, does: string][];
}

const TRACE = /^\/traces\//;

export const SHORTCUTS: Shortcuts[] = [
	{ title: tr('Everywhere'), on: /^/, keys: [
		['?', tr('show this list')], ['Esc', tr('close a menu or this list')], ['/', tr('search the project (in a trace: find a method)')], ['Ctrl+K', tr('search the project, also in a trace')],
	] },
	{ title: tr('List of traces'), on: /^\/traces$/, keys: [
		['j / k', tr('next, previous trace')], ['Enter', tr('open it')], ['n / p', tr('next, previous page')], ['x', tr('select or deselect it')], ['X', tr('select the range from the previous one')],
		['Esc', tr('clear the selection')], ['#', tr('delete the selected traces (asks first)')],
	] },
	{ title: tr('Inbox'), on: /^\/inbox/, keys: [
		['j / k', tr('next, previous item')], ['Enter', tr('open it')], ['n / p', tr('next, previous page')], ['x', tr('select or deselect it')],
		['a', tr('acknowledge it, or the selected ones')], ['i', tr('assign to you')], ['f', tr('mark as fixed')], ['m', tr('mute for 7 days')], ['z', tr('undo the last change')], ['Esc', tr('clear the selection')],
	] },
	{ title: tr('Timeline'), on: TRACE, canvas: 'timeline', keys: [
		[tr('w / s, + / −, Ctrl+wheel'), tr('zoom in, zoom out')], [tr('a / d, ← / →, drag'), tr('move earlier, later')],
		['0', tr('whole trace')], [tr('↑ / ↓, wheel, Shift+wheel'), tr('scroll rows')], ['Page ↑ / Page ↓', tr('scroll threads')],
		[tr('click'), tr('select the call')], [tr('double click'), tr('zoom to the call')], [tr('Shift+F10, right click'), tr('menu of actions for a method')], ['j / k', tr('next, previous thread')], ['o', tr('open or close the thread')],
		['O', tr('close all others')], ['e', tr('all its rows, or fewer')], ['p', tr('pin the thread to the top, or unpin it')], ['h', tr('hide the thread')], ['. / ,', tr('next, previous event of the thread')],
		['f', tr('follow the arrow: lock, start, wake-up; again goes back')],
	] },
	{ title: tr('List of threads'), on: TRACE, keys: [
		['↑ / ↓ / Home / End', tr('next, previous, first, last')], ['→ / ←', tr('open, close')], ['Enter', tr('show the thread, or select those of the process')], ['e / p / h / x', tr('as on the timeline')],
	] },
	{ title: tr('Annotations'), on: TRACE, keys: [
		['n', tr('write one, at the selection or the middle of the view')], ['Ctrl+Enter', tr('save it')], ['Esc', tr('discard it')],
	] },
	{ title: tr('Selection'), on: TRACE, canvas: 'timeline', keys: [
		[tr('Shift+drag'), tr('time and threads')], [tr('drag on the ruler'), tr('time')], ['v', tr('visible range')], ['m', tr('the selected call')],
		['Shift+← / Shift+→', tr('move its end')], [tr('x, Ctrl+click on a name'), tr('add or remove a thread')],
		['Enter', tr('zoom to it')], ['Esc', tr('clear it')],
	] },
	{ title: tr('Search'), on: TRACE, keys: [['/', tr('find a method')], ['Enter, Shift+Enter', tr('next, previous call')], ['Esc', tr('clear the search')]] },
	{ title: tr('Merged graph, comparison'), on: /^\/(traces\/|compare|fleet\/compare)/, keys: [
		['↑ / ↓ / ← / → / Home', tr('parent, child, siblings, root')], ['Enter', tr('open the node, or the group of smaller ones')],
		['Esc, Backspace', tr('back up')], ['n, N, F3', tr('next, previous hit of the search')],
		[tr('m, right click'), tr('menu of actions for a method')],
	] },
	{ title: tr('Tree'), on: TRACE, keys: [
		['↑ / ↓ / Home / End / Page ↑ / Page ↓', tr('rows')], ['→ / ←, Space', tr('expand, collapse; go to child, to parent')],
		['*', tr('expand the heaviest path')], [tr('letters'), tr('next row that starts with it')], [tr('Enter, double click'), tr('only this node')],
		['Esc, Backspace', tr('back up')], ['F3, Shift+F3', tr('next, previous hit of the search')],
		[tr('Shift+F10, right click'), tr('menu of actions for a method')],
	] },
	{ title: tr('ANR report'), on: TRACE, keys: [['Enter, Space', tr('on a box of the chart: show its stack')]] },
];
