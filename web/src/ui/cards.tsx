// A table whose rows a phone shows as blocks, so that nothing scrolls sideways: each cell follows its column's name.
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

export function Cards({ of, children }: { of?: string; children: ComponentChildren }) {
	const ref = useRef<HTMLTableElement>(null);
	useLayoutEffect(() => {
		const { tHead, tBodies } = ref.current!;
		const names = [...tHead!.rows[0]!.cells].map((head) => (head.querySelector('.hidden, input') ? '' : head.textContent!));
		for (const body of tBodies)
			for (const row of body.rows) [...row.cells].forEach((cell, i) => { cell.dataset.column = cell.colSpan > 1 ? '' : names[i] ?? ''; });
	});
	return <div class="scroll"><table ref={ref} class={of ? `cards ${of}` : 'cards'}>{children}</table></div>;
}
