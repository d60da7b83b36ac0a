// The dialog of keyboard shortcuts.
import { useLayoutEffect, useRef } from 'preact/hooks';
import { SHORTCUTS } from './shortcuts';
import { tr } from '../i18n/strings/frame';

export function ShortcutList({ close }: { close: () => void }) {
	const dialog = useRef<HTMLDialogElement>(null);
	useLayoutEffect(() => {
		const before = document.activeElement as HTMLElement | null;
		dialog.current?.showModal();
		dialog.current?.scrollTo(0, 0); // the focus is at its end
		return () => before?.focus({ preventScroll: true });
	}, []);
	return (
		<dialog ref={dialog} aria-label={tr('Keyboard shortcuts')} onClose={close}>
			<h2>{tr('Keyboard shortcuts')}</h2>
			<div class="keys">{SHORTCUTS.map(({ title, keys }) => <section key={title}>
				<h3>{title}</h3>
				<dl>{keys.map(({ shown, does }) => <div key={shown}><dt>{shown}</dt><dd>{does}</dd></div>)}</dl>
			</section>)}</div>
			<form method="dialog" class="row"><button autofocus>{tr('Close')}</button></form>
		</dialog>
	);
}
