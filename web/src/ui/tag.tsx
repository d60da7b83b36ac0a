// Tags and pin of a trace, in lists and on its page.
import { tr } from '../i18n/strings/frame';
import { link } from './route';

/** A link to the list of all that have it. */
export function Tag({ tag }: { tag: string }) {
	return <a class="tag" href={link(`/traces?tag=${encodeURIComponent(tag)}`)}>{tag}</a>;
}

export function Pinned() {
	return <svg class="pin" viewBox="0 0 16 16" width="12" height="12" role="img" aria-label={tr('pinned')}><path d="M10 1l5 5-2 1-3 3-1 4-3-3-4 4-1-1 4-4-3-3 4-1 3-3z" /></svg>;
}
