// The dialog of keyboard shortcuts: those of this page, then those of others.
import { useLayoutEffect, useRef } from 'preact/hooks';
import { path } from '../ui/route';
import { SHORTCUTS, type Shortcuts } from './shortcuts';
import { tr } from '../i18n/strings/frame';

/** Keys and gestures of a line: "a / d, drag". */
const PIECES = /( \/ |, |，|、)/;

function Keys({ of }: { of: Shortcuts[] }) {
	return <div class="keys">{of.map(({ title, keys }) => <section key={title}>
		<h3>{title}</h3>
		<dl>{keys.map(([shown, does]) => <div key={shown}><dt>{shown.split(PIECES).map((piece, i) => (i % 2 ? <span class="hidden">{piece}</span> : <kbd>{piece}</kbd>))}</dt><dd>{does}</dd></div>)}</dl>
	</section>)}</div>;
}

export function ShortcutList({ close }: { close: () => void }) {
	const here = ({ on }: Shortcuts) => on.test(path.value);
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
			<Keys of={SHORTCUTS.filter(here)} />
			<details><summary>{tr('Other pages')}</summary><Keys of={SHORTCUTS.filter((s) => !here(s))} /></details>
			<form method="dialog" class="row"><button autofocus>{tr('Close')}</button></form>
		</dialog>
	);
}
