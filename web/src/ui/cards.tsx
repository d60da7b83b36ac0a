// A table whose rows become blocks on a phone, and wherever it is wider than its panel, so that nothing scrolls sideways: the
// cell that names the row, then each other cell after its column's name, unless it is empty.
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

const PHONE = '(max-width: 760px)'; // as in app/style.css

/** Names the cells of each row. Rows under a cell that spans rows have fewer cells: they are counted from the end. */
function label({ tHead, tBodies }: HTMLTableElement): void {
	const names = [...tHead!.rows[0]!.cells].map((head) => (head.querySelector('.hidden, input') ? '' : head.textContent!.replace(/[↑↓]/g, '').trim()));
	for (const box of tHead!.querySelectorAll<HTMLInputElement>('.check input')) box.parentElement!.dataset.column = box.ariaLabel ?? '';
	for (const body of tBodies)
		for (const { cells } of body.rows) {
			const spans = cells[0]?.colSpan > 1; // the first cell spans several columns and has no label
			const lead = spans ? undefined : [...cells].find((cell) => cell.matches('.wide, .cause, .name')) ?? [...cells].find((cell) => !cell.matches('.check'));
			[...cells].forEach((cell, i) => {
				cell.toggleAttribute('data-lead', cell === lead);
				cell.toggleAttribute('data-none', cell !== lead && cell.textContent === '–');
				cell.dataset.column = cell === lead || (spans && i === 0) || cell.matches('.check') ? '' : names[names.length - cells.length + i] ?? '';
			});
		}
}

/** `of`: its class; `label`: the name of a table that may scroll and has no other focusable element; `stale`: newer rows are loading. */
export function Cards({ of, label: name, stale, children }: { of?: string; label?: string; stale?: boolean; children: ComponentChildren }) {
	const ref = useRef<HTMLTableElement>(null);
	useLayoutEffect(() => { // rows come and go without this component, as when the next page is appended
		const table = ref.current!, box = table.parentElement!;
		const phone = matchMedia(PHONE);
		let width = -1;
		const apply = () => {
			width = box.clientWidth;
			table.toggleAttribute('data-blocks', phone.matches);
			if (!phone.matches && !table.toggleAttribute('data-blocks', table.offsetWidth > width)) return;
			label(table);
		};
		const rows = new MutationObserver(apply), size = new ResizeObserver(() => box.clientWidth !== width && apply());
		rows.observe(table, { childList: true, characterData: true, subtree: true });
		size.observe(box);
		apply();
		return () => {
			rows.disconnect();
			size.disconnect();
		};
	}, []);
	return <div class={stale ? 'scroll stale' : 'scroll'} {...(name && { role: 'group', 'aria-label': name, tabIndex: 0 })}>
		<table ref={ref} class={of ? `cards ${of}` : 'cards'}>{children}</table></div>;
}
