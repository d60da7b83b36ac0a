// A button with a box below it, and a dialog: both closed by Escape, focus goes back where it was.
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

export function Popover({ label, title, small, children }: { label: ComponentChildren; title: string; small?: boolean; children: (close: () => void) => ComponentChildren }) {
	const [open, show] = useState(false);
	const box = useRef<HTMLDivElement>(null);
	const button = useRef<HTMLButtonElement>(null);
	const close = () => {
		show(false);
		button.current?.focus();
	};
	useLayoutEffect(() => {
		const e = box.current;
		if (!open || !e) return;
		e.classList.toggle('leftward', e.getBoundingClientRect().right > innerWidth - 8);
		e.classList.toggle('upward', e.getBoundingClientRect().bottom > innerHeight - 8 && button.current!.getBoundingClientRect().top > e.offsetHeight + 8);
		e.querySelector<HTMLElement>('input, button, a')?.focus();
	}, [open]);
	useLayoutEffect(() => {
		if (!open) return;
		const beside = (e: Event) => !box.current?.parentElement?.contains(e.target as Node) && show(false);
		addEventListener('pointerdown', beside);
		return () => removeEventListener('pointerdown', beside);
	}, [open]);
	const key = (e: KeyboardEvent) => {
		if (e.key !== 'Escape' || !open) return;
		e.stopPropagation();
		close();
	};
	return (
		<div class="holds-popover" onKeyDown={key}>
			<button ref={button} class={small ? 'small' : ''} aria-expanded={open} aria-haspopup="dialog" onClick={() => show(!open)}>{label}</button>
			{open && <div class="popover" role="dialog" aria-label={title} ref={box}>{children(close)}</div>}
		</div>
	);
}

export function Dialog({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }) {
	const box = useRef<HTMLDialogElement>(null);
	useLayoutEffect(() => {
		const before = document.activeElement as HTMLElement | null;
		box.current?.showModal();
		return () => before?.focus({ preventScroll: true });
	}, []);
	return (
		<dialog ref={box} class="ask" aria-label={title} onCancel={(e) => { e.preventDefault(); close(); }}>
			<h2>{title}</h2>
			{children}
		</dialog>
	);
}
