// Changes by users: run, with a message if they fail, confirmed if they delete.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { tr } from '../i18n/strings/regressions';

/** Runs a change; shows its error, or reloads after success. */
export function useChange(again: () => void): [Error | null, (change: () => Promise<unknown>) => Promise<boolean>] {
	const [error, fail] = useState<Error | null>(null);
	const run = async (change: () => Promise<unknown>) => {
		fail(null);
		try {
			const answer = await change();
			if (answer instanceof Response && !answer.bodyUsed) await answer.text(); // unread, it would hold its connection
			again();
			return true;
		} catch (why) {
			fail(why as Error);
			return false;
		}
	};
	return [error, run];
}

/** A button with a confirmation. */
export function Sure({ what, label, act }: { what: string; label: string; act: () => void }) {
	const [sure, setSure] = useState(false);
	if (!sure) return <button class="small" onClick={() => setSure(true)} aria-label={label}>{what}</button>;
	return (
		<span role="group" aria-label={`${label}?`}>
			<button class="small danger" onClick={() => { setSure(false); act(); }}>{tr('{what} permanently', { what })}</button>
			<button class="small" onClick={() => setSure(false)}>{tr('Keep')}</button>
		</span>
	);
}

/** The item of a list whose form is open ('' a new one).  Once the form closes, the button that opened it, or that of `next`, has the
 *  focus: the one with [data-edits="KIND ITEM"]. */
export function useEditing(kind: string, first: string | null = null): [item: string | null, edit: (item: string | null, next?: string) => void] {
	const [item, open] = useState(first);
	const last = useRef<string | null>(null);
	useLayoutEffect(() => {
		const opener = item === null && last.current !== null && [...document.querySelectorAll<HTMLElement>('[data-edits]')].find((b) => b.dataset.edits === `${kind} ${last.current}`);
		if (opener) opener.focus();
		last.current = item;
	}, [item]);
	return [item, (to, next) => {
		last.current = next ?? last.current;
		open(to);
	}];
}
