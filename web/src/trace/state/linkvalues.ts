// Valid values of a trace's address, and the defaults for invalid ones.
import { parseBase } from './base';
import { parseEvent } from './event';
import { parseCall } from './selection';
import { tr } from '../../i18n/strings/trace';

export interface Known {
	tids: number[]; // of all threads
	methods: number; // of the trace
	hasCpu: boolean;
	columns: string[]; // of the table, as the address names them
	tabs: string[];
}

interface Strange {
	name: string;
	value: string;
	instead: string;
}

interface Rule {
	fits: (v: string, k: Known) => boolean;
	instead: string;
}

const one = (...of: string[]) => (v: string) => of.includes(v);
const time = { fits: (v: string) => /^\d{1,16}$/.test(v), instead: tr('the whole trace') };
const selected = { fits: time.fits, instead: tr('no selection') };
const flag = (instead: string): Rule => ({ fits: one('1', '0'), instead });
const path = { fits: (v: string) => /^\d{1,9}(\.\d{1,9})*$/.test(v), instead: tr('the whole graph') };
const part = { fits: (v: string) => /^(\d{1,9}(\.\d{1,9})*)?(\+\d{1,9})?$/.test(v), instead: tr('all of them') };
const held = (v: string) => /^[a-z]+:\d{1,7}(,[a-z]+:\d{1,7})*$/.test(v);
const isThread = (v: string, k: Known) => /^\d{1,16}$/.test(v) && k.tids.includes(Number(v));

const RULES: Record<string, Rule> = {
	view: { fits: one('top_down', 'bottom_up', 'sandwich'), instead: 'top-down' },
	as: { fits: one('tree', 'graph'), instead: 'a graph' },
	tab: { fits: (v, k) => k.tabs.includes(v), instead: tr('the first panel') },
	metric: { fits: (v, k) => one('wall', 'count', 'running', 'waiting')(v) || (k.hasCpu && v === 'cpu'), instead: tr('wall time') },
	threads: { fits: one('one', 'sel', 'all'), instead: tr('the one thread') },
	thread: { fits: isThread, instead: tr('the first thread') },
	sel: { fits: (v, k) => v.split(',').every((t) => isThread(t, k)), instead: tr('the existing threads') },
	call: { fits: (v, k) => isThread(parseCall(v)?.tid.toString() ?? '', k), instead: tr('no call') },
	event: { fits: (v) => parseEvent(v) !== null, instead: tr('no event') },
	open: { fits: (v, k) => v === 'none' || v.split(',').every((t) => isThread(/^(\d+)(\.\d{1,5})?f?$/.exec(t)?.[1] ?? '', k)), instead: tr('the existing threads') },
	from: time, to: time, a: selected, b: selected,
	root: path, skip: { fits: (v) => /^\d{1,9}$/.test(v), instead: tr('all children') }, callers: part, callees: part,
	method: { fits: (v, k) => /^\d{1,9}$/.test(v) && Number(v) < k.methods, instead: tr('no method') },
	calls: { fits: (v, k) => /^\d{1,9}$/.test(v) && Number(v) < k.methods, instead: tr('calls of every method') }, min: time, max: time, callsort: { fits: one('start'), instead: tr('the longest first') }, eventsort: { fits: one('start'), instead: tr('the longest first') },
	rview: { fits: one('graph', 'table'), instead: tr('a table') }, dwidth: { fits: one('a', 'b'), instead: tr('the widths of the selected range') }, droot: path, dnodes: { fits: (v) => /^\d{1,6}$/.test(v), instead: tr('the default number of nodes') },
	base: { fits: (v) => parseBase(v) !== null, instead: tr('no comparison') },
	sort: { fits: (v, k) => v === 'name' || k.columns.includes(v.replace(/_ns$/, '')), instead: tr('by running time') },
	order: { fits: one('asc', 'desc'), instead: tr('the default order') },
	cols: { fits: (v, k) => v === 'none' || v.split(',').every((c) => k.columns.includes(c)), instead: tr('the existing columns') },
	rows: { fits: (v) => /^\d{1,6}$/.test(v), instead: '25 rows' },
	counters: { fits: one('all'), instead: tr('the first counters') },
	closed: { fits: (v) => /^(\d{1,10}|~[^,]+)(,(\d{1,10}|~[^,]+))*$/.test(v), instead: tr('every process open') },
	tsort: { fits: one('busy', 'calls', 'name', 'start', 'tid'), instead: tr('the default order') }, tgroup: flag(tr('no groups')),
	pin: { fits: (v, k) => v.split(',').every((t) => isThread(t, k)), instead: tr('the existing threads') }, hide: { fits: (v, k) => v.split(',').every((t) => isThread(t, k)), instead: tr('the existing threads') },
	idle: flag(tr('threads with calls')), findings: flag(tr('no findings')), tables: { fits: (v) => /^[a-z]+(,[a-z]+)*$/.test(v), instead: 'none' },
	more: { fits: held, instead: tr('the first rows') }, tops: { fits: held, instead: tr('the top') },
	y: { fits: (v) => /^\d{1,7}$/.test(v), instead: tr('the top of the list') },
};

/** Invalid values, with the default used for each; `get` reads the address. */
export function strangeValues(get: (name: string) => string, known: Known): Strange[] {
	return Object.entries(RULES).flatMap(([name, { fits, instead }]) => {
		const value = get(name);
		return value === '' || fits(value, known) ? [] : [{ name, value, instead }];
	});
}
