// Pages that are loaded when they are first shown.
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { probe, returned } from '../api/health';
import { Busy, Failure, Panel, useLoad } from './parts';
import { flush } from './route';
import { tr } from '../i18n/strings/frame';

export const ASIDE = 'aside';

/** Its code could not be loaded. */
export const incomplete = () => new Error(tr('Part of this page could not be loaded. The server is not responding, or it was updated after the page was opened.'));

export interface Later<P> {
	Page: ComponentType<P>;
	begin: () => Promise<unknown>; // loads it before it is shown; it reports its own failure
}

/** A page whose code is loaded at its first use.  A failed import stays failed in the browser, and a
 *  newer server has other files: so the page is reloaded at the same address.  With a title it is
 *  a panel of a page; ASIDE shows nothing until it is loaded or has failed. */
export function later<P extends object>(name: string, load: () => Promise<ComponentType<P>>, panel = ''): Later<P> {
	let code: Promise<ComponentType<P>> | undefined;
	const come = () => (code ??= load());
	const anew = () => {
		flush();
		location.reload();
	};
	const Page = (props: P) => {
		const part = useLoad(name, () => come().then((Inner) => ({ Inner })));
		useEffect(() => {
			if (!part.error) return;
			const known = returned.value;
			probe();
			return returned.subscribe((n) => n !== known && anew());
		}, [part.error]);
		if (part.value) return <part.value.Inner {...props} />;
		if (panel === ASIDE && !part.error) return null;
		const instead = part.error ? <Failure error={incomplete()} title={tr('The page is incomplete.')} again={tr('Reload the page')} retry={anew} /> : <Busy what={tr('Loading the page')} />;
		if (panel === ASIDE) return <div class="aside-failed">{instead}</div>;
		if (panel) return <Panel title={panel}>{instead}</Panel>;
		return <main>{part.error && <h1>tracewell</h1>}{instead}</main>;
	};
	return { Page, begin: () => come().catch(() => undefined) };
}
