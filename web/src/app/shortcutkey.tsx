// "?" opens the keyboard shortcuts.
import { useLayoutEffect, useState } from 'preact/hooks';
import { inField } from '../ui/parts';
import { ASIDE, later } from '../ui/later';

const list = later<{ close: () => void }>('shortcuts', async () => (await import('./shortcutlist')).ShortcutList, ASIDE);

export function ShortcutKey() {
	const [open, show] = useState(false);
	useLayoutEffect(() => {
		const key = (e: KeyboardEvent) => {
			if (e.key === '?' && !inField(e)) show(true);
		};
		addEventListener('keydown', key);
		return () => removeEventListener('keydown', key);
	}, []);
	return open ? <list.Page close={() => show(false)} /> : null;
}
