// What can be done with a method, wherever it is shown.
import { draft } from './annotations';
import { may } from './api';
import { splitName } from './format';
import { Menu, type Item } from './menu';
import { set } from './route';
import { take } from './stepbar';
import { packageOf } from './steps';

export interface About {
	x: number;
	y: number;
	method: number;
	name: string;
	stack?: string[]; // from the top, this one last
	row?: string; // of the table, as text
}

function copy(text: string): void {
	navigator.clipboard?.writeText(text).catch(() => undefined);
}

export function itemsOf({ method, name, stack, row }: About): Item[] {
	const pkg = name.startsWith('[') ? '' : packageOf(name);
	const items: Item[] = [
		{ label: 'Callers and callees', title: 'Who called it above, what it called below', run: () => set({ view: 'sandwich', method, root: null, skip: null, callers: null, callees: null }, true) },
		{ label: 'Only this method', title: 'All its calls, wherever they are', run: () => take({ kind: 'focus', method }) },
		{ label: 'Without this method', title: 'Its calls and all they called go, with their time', run: () => take({ kind: 'drop', method }) },
		{ label: 'Merge into its callers', title: 'Its time becomes theirs', run: () => take({ kind: 'merge', method }) },
		{ label: 'Fold what it calls', title: 'The time of its callees becomes its own', run: () => take({ kind: 'fold', method }) },
	];
	if (pkg) items.push({ label: `Show ${pkg} as one frame`, run: () => take({ kind: 'library', name: pkg }) });
	items.push({ label: 'Show recursion as one frame', run: () => take({ kind: 'recursion' }) });
	if (!name.startsWith('[')) items.push({ label: 'Find its calls', run: () => set({ find: name }) });
	if (may.write && !name.startsWith('[')) items.push({ label: 'Annotate', title: 'Write something about this method', run: () => { draft.value = { method }; } });
	if (!name.startsWith('[')) items.push({ label: 'Source', title: 'Where it is in the source, whose it is, who changed it last', run: () => void import('./sourcecode').then((m) => m.showSource(name)) });
	items.push({ label: 'Copy name', run: () => copy(name) });
	if (row) items.push({ label: 'Copy row', run: () => copy(row) });
	if (stack && stack.length > 1) items.push({ label: 'Copy stack', run: () => copy([...stack].reverse().map((f) => `\tat ${f}`).join('\n')) });
	return items;
}

export function MethodMenu({ about, close }: { about: About; close: () => void }) {
	return <Menu x={about.x} y={about.y} label={splitName(about.name)[1] || about.name} items={itemsOf(about)} close={close} />;
}
