// Above the thread names: find, sort and group threads, and actions on one.
import type { Thread } from '../../api/api';
import { count } from '../../i18n/format';
import { tr } from '../../i18n/strings/trace';
import { Menu, type Item } from '../../ui/menu';
import { Popover } from '../../ui/popover';
import { set } from '../../ui/route';
import { nothingArranged, stemOf, type Sort } from '../state/threadlist';
import type { AboutThread, Control } from './timelinecontrol';
import { nameOfThread } from '../parts/threadname';
import { addToRange, arrangement, type TimelineProps } from './timelineview';

const SORT_NAMES: [Sort, string][] = [['', tr('Main first, then by activity')], ['busy', tr('Busy time')], ['calls', tr('Number of calls')], ['name', tr('Name')], ['start', tr('First call')], ['tid', tr('Thread id')]];

export function ThreadTools({ listed, all }: { listed: number; all: number }) {
	const a = arrangement();
	const { find } = a;
	if (all === 0) return null;
	return <div class="threadtools">
		<input type="search" aria-label={tr('Find a thread')} placeholder={listed < all ? tr('{listed} of {all} threads', { listed: count(listed), all: count(all) }) : tr.many(all, '{n} thread', '{n} threads')} value={find} onInput={(e) => set({ tq: e.currentTarget.value || null, y: null })} />
		<Popover small label={tr('Sort')} title={tr('Order of threads')}>{() => <>
			<fieldset class="plain"><legend>{tr('Order')}</legend>
				{SORT_NAMES.map(([key, label]) => <label key={key} class="check"><input type="radio" name="tsort" checked={a.sort === key} onChange={() => set({ tsort: key || null, y: null }, true)} />{' '}{label}</label>)}
			</fieldset>
			<label class="check"><input type="checkbox" checked={a.grouped} onChange={(e) => set({ tgroup: e.currentTarget.checked ? 1 : null, closed: null, y: null }, true)} />{' '}{tr('Group threads with similar names')}</label>
			{a.hidden.size > 0 && <p><button class="small" onClick={() => set({ hide: null }, true)}>{tr('Show {n} hidden', { n: count(a.hidden.size) })}</button></p>}
			{!nothingArranged(a) && <p><button class="small" onClick={() => set({ tq: null, tsort: null, tgroup: null, pin: null, hide: null, closed: null, y: null }, true)}>{tr('Reset')}</button></p>}
			<p class="quiet">{tr('Right click a name to pin or hide it.')}</p>
		</>}</Popover>
	</div>;
}

const isThread = (of: AboutThread['of']): of is Thread => 'tid' in of;

function itemsOf(of: AboutThread['of'], p: TimelineProps, on: Control): Item[] {
	const { pinned, hidden } = arrangement();
	if (!isThread(of)) return [
		{ label: tr('Select these threads'), run: () => on.process(of, 'select') },
		{ label: tr('Hide these threads'), run: () => set({ hide: [...new Set([...hidden, ...of.threads.map((t) => t.tid)])].join(',') }, true) },
		{ label: tr('Show only these'), run: () => set({ hide: p.threads.filter((t) => !of.threads.includes(t)).map((t) => t.tid).concat([...hidden]).join(',') }, true) }];
	const like = p.threads.filter((t) => stemOf(t.name) === stemOf(of.name) && t.name);
	const items: Item[] = [
		{ label: pinned.includes(of.tid) ? tr('Unpin') : tr('Pin to the top'), run: () => on.pin(of) },
		{ label: tr('Hide'), run: () => on.hide(of) },
		{ label: tr('Show only this thread'), run: () => set({ hide: p.threads.filter((t) => t.tid !== of.tid).map((t) => t.tid).concat([...hidden]).join(','), thread: of.tid }, true) },
		{ label: tr('Add to the selection, or remove'), run: () => addToRange(p, of) }];
	if (like.length > 1) items.push({ label: tr('Hide {n} with similar names', { n: count(like.length) }), run: () => set({ hide: [...new Set([...hidden, ...like.map((t) => t.tid)])].join(',') }, true) });
	if (hidden.size > 0) items.push({ label: tr('Show {n} hidden', { n: count(hidden.size) }), run: () => set({ hide: null }, true) });
	return items;
}

export function ThreadMenu({ about, p, on, close }: { about: AboutThread; p: TimelineProps; on: Control; close: () => void }) {
	const { of } = about;
	return <Menu x={about.x} y={about.y} label={isThread(of) ? nameOfThread(of.tid, [of]) : of.name || of.key} items={itemsOf(of, p, on)} close={close} />;
}
