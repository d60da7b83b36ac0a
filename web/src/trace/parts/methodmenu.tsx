// What can be done with a method, wherever it is shown.
import { draft } from '../state/annotations';
import { may } from '../../api/api';
import { splitName, withoutParameters } from '../../i18n/format';
import { Menu, type Item } from '../../ui/menu';
import { go, link, set } from '../../ui/route';
import { take } from './stepbar';
import { packageOf, type Step } from '../state/steps';
import { showTab } from '../state/tab';
import { tr } from '../../i18n/strings/trace';

export interface About {
	x: number;
	y: number;
	method: number;
	name: string;
	stack?: string[]; // from the top, this one last
	row?: string; // of the table, as text
	show?: boolean; // from another tab: shows the graph, which the steps reshape
}

function copy(text: string): void {
	navigator.clipboard?.writeText(text).catch(() => undefined);
}

export const copying = (name: string): Item => ({ label: tr('Copy name'), run: () => copy(name) });

/** The flame graph may be in another tab: shows it, and focuses the middle of a sandwich. */
function showGraph(): void {
	showTab('flame');
	setTimeout(() => document.querySelector<HTMLElement>('.sandwich h3.mono')?.focus({ preventScroll: true }), 50); // after the menu gave its focus back
}

/** A dialog; its code comes with its first use. */
export function showSource(name: string): void {
	void import('../../source/sourcecode').then((m) => m.showSource(name));
}

/** The page of a method over all traces. */
export const overVersions = (name: string): string => link(`/fleet/methods?${new URLSearchParams({ method: name })}`);

/** Menu items for other pages of a method; `name` is without parameters. */
export const elsewhere = (name: string): Item[] => (name.startsWith('[') ? [] : [
	{ label: tr('Over versions'), title: tr('Its times in all traces, by version'), run: () => go(overVersions(name)) },
	{ label: tr('Source'), title: tr('Source location, owners and last changes'), run: () => showSource(name) },
]);

export function itemsOf({ method, name, stack, row, show }: About): Item[] {
	const step = (s: Step) => {
		take(s);
		if (show) showGraph();
	};
	const isMethod = !name.startsWith('['); // not a library's frame
	const pkg = isMethod && packageOf(name);
	const items: Item[] = [
		{ label: tr('Callers and callees'), title: tr('Callers above, callees below'), run: () => { set({ view: 'sandwich', method, root: null, skip: null, callers: null, callees: null }, true); showGraph(); } },
		{ label: tr('Only this method'), title: tr('All its calls, merged'), run: () => step({ kind: 'focus', method }) },
		{ label: tr('Without this method'), title: tr('Removes its calls and their callees, with their time'), run: () => step({ kind: 'drop', method }) },
		{ label: tr('Merge into its callers'), title: tr('Its time is charged to its callers'), run: () => step({ kind: 'merge', method }) },
		{ label: tr('Merge its callees into it'), title: tr('The time of its callees counts as its own'), run: () => step({ kind: 'fold', method }) },
	];
	if (pkg) items.push({ label: tr('Show {pkg} as one frame', { pkg }), run: () => step({ kind: 'library', name: pkg }) });
	items.push({ label: tr('App frames only'), run: () => step({ kind: 'app' }) });
	items.push({ label: tr('Show recursion as one frame'), run: () => step({ kind: 'recursion' }) });
	if (isMethod) items.unshift({ label: tr('List its calls'), title: tr('Each with its duration, and a histogram'), run: () => set({ calls: method, min: null, max: null, tab: 'calls' }, true) });
	if (isMethod) items.push({ label: tr('Find its calls'), run: () => set({ find: name }) });
	if (may.write && isMethod) items.push({ label: tr('Annotate'), title: tr('Annotate this method'), run: () => { draft.value = { method }; } });
	items.push(...elsewhere(withoutParameters(name)));
	items.push(copying(name));
	if (row) items.push({ label: tr('Copy row'), run: () => copy(row) });
	if (stack && stack.length > 1) items.push({ label: tr('Copy stack'), run: () => copy([...stack].reverse().map((f) => tr('	at {f}', { f })).join('\n')) });
	return items;
}

export function MethodMenu({ about, items = itemsOf, close }: { about: About; items?: (about: About) => Item[]; close: () => void }) {
	return <Menu x={about.x} y={about.y} label={splitName(about.name)[1] || about.name} items={items(about)} close={close} />;
}
