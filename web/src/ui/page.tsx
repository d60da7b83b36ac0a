// A page of settings with its title, which is also that of the browser's tab.
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';

/** `head`: shown next to the title; `of`: a class. */
export function Page({ title, head, of, children }: { title: string; head?: ComponentChildren; of?: string; children: ComponentChildren }) {
	useEffect(() => {
		document.title = `${title} · tracewell`;
	}, [title]);
	return <main class={of}><div class="row head"><h1>{title}</h1>{head}</div>{children}</main>;
}
