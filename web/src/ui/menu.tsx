// A menu at a point of the window: arrows move, Enter selects, Escape and a click outside close it.
import { useLayoutEffect, useRef } from 'preact/hooks';

export interface Item {
	label: string;
	title?: string;
	run: () => void;
}

export function Menu({ x, y, label, items, close }: { x: number; y: number; label: string; items: Item[]; close: () => void }) {
	const box = useRef<HTMLDivElement>(null);
	const buttons = () => [...(box.current?.querySelectorAll('button') ?? [])];
	useLayoutEffect(() => {
		const e = box.current!;
		e.style.left = `${Math.max(4, Math.min(x, innerWidth - e.offsetWidth - 4))}px`;
		e.style.top = `${Math.max(4, Math.min(y, innerHeight - e.offsetHeight - 4))}px`;
		const before = document.activeElement as HTMLElement | null;
		buttons()[0]?.focus();
		return () => before?.focus({ preventScroll: true });
	}, []);
	useLayoutEffect(() => {
		const outside = (e: Event) => !box.current?.contains(e.target as Node) && close();
		addEventListener('pointerdown', outside, true);
		addEventListener('resize', close);
		addEventListener('scroll', outside, true);
		return () => {
			removeEventListener('pointerdown', outside, true);
			removeEventListener('resize', close);
			removeEventListener('scroll', outside, true);
		};
	}, []);
	const key = (e: KeyboardEvent) => {
		const all = buttons();
		const at = all.indexOf(document.activeElement as HTMLButtonElement);
		if (e.key === 'Escape' || e.key === 'Tab') close();
		else if (e.key === 'ArrowDown') all[(at + 1) % all.length].focus();
		else if (e.key === 'ArrowUp') all[(at + all.length - 1) % all.length].focus();
		else if (e.key === 'Home') all[0].focus();
		else if (e.key === 'End') all[all.length - 1].focus();
		else return;
		e.preventDefault();
		e.stopPropagation();
	};
	return (
		<div ref={box} class="menu" role="menu" aria-label={label} onKeyDown={key}>
			<p class="mono quiet">{label}</p>
			{items.map((i) => (
				<button key={i.label} role="menuitem" class="plain" title={i.title} tabIndex={-1}
					onClick={() => { close(); i.run(); }}>{i.label}</button>
			))}
		</div>
	);
}
