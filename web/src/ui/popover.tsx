// A button with a box below it, and a dialog: both closed by Escape, which restores the focus.
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

const GAP = 4; // to the button, and twice as much to the window's edges

/** Below its button, or above it where there is more space, and within the window; panes do not cut it off. */
function place(box: HTMLElement, at: DOMRect): void {
	const [above, below] = [at.top - 3 * GAP, innerHeight - at.bottom - 3 * GAP];
	box.style.maxHeight = `${Math.max(above, below)}px`;
	const { offsetWidth: width, offsetHeight: height } = box;
	const left = at.left + width > innerWidth - 2 * GAP ? at.right - width : at.left;
	box.style.left = `${Math.max(2 * GAP, Math.min(left, innerWidth - 2 * GAP - width))}px`;
	box.style.top = `${height <= below || below >= above ? at.bottom + GAP : at.top - GAP - height}px`;
}

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
		let frame = 0;
		let before = '';
		const follow = () => { // whatever moves the button: scrolling, the window, content that came above it
			const at = button.current!.getBoundingClientRect();
			const now = [at.x, at.y, at.width, at.height, innerWidth, innerHeight, e.scrollWidth, e.scrollHeight].join();
			if (now !== before) place(e, at);
			before = now;
			frame = requestAnimationFrame(follow);
		};
		follow();
		e.querySelector<HTMLElement>('input, button, a')?.focus();
		return () => cancelAnimationFrame(frame);
	}, [open]);
	useLayoutEffect(() => {
		if (!open) return;
		const outside = (e: Event) => !box.current?.parentElement?.contains(e.target as Node) && show(false);
		addEventListener('pointerdown', outside);
		return () => removeEventListener('pointerdown', outside);
	}, [open]);
	const key = (e: KeyboardEvent) => {
		if (e.key !== 'Escape' || !open) return;
		e.stopPropagation();
		close();
	};
	return (
		<div onKeyDown={key}>
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
