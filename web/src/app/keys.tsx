// The list of keys, opened by "?".
import { useLayoutEffect, useRef } from 'preact/hooks';
import { SHORTCUTS } from './shortcuts';
import { tr } from '../i18n/strings/frame';

export function Keys() {
	const dialog = useRef<HTMLDialogElement>(null);
	useLayoutEffect(() => {
		const key = (e: KeyboardEvent) => {
			if (e.key === '?' && !/^(INPUT|TEXTAREA|SELECT)$/.test((e.target as Element).tagName)) open();
		};
		const open = () => {
			dialog.current?.showModal();
			dialog.current?.scrollTo(0, 0); // the focus is at its end
		};
		addEventListener('keydown', key);
		return () => removeEventListener('keydown', key);
	}, []);
	return (
		<dialog ref={dialog} aria-label={tr('Keys')}>
			<h2>{tr('Keys')}</h2>
			<div class="keys">{SHORTCUTS.map(({ title, keys }) => <section key={title}>
				<h3>{title}</h3>
				<dl>{keys.map(({ shown, does }) => <div key={shown}><dt>{shown}</dt><dd>{does}</dd></div>)}</dl>
			</section>)}</div>
			<form method="dialog" class="row"><button autofocus>{tr('Close')}</button></form>
		</dialog>
	);
}
