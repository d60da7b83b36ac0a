// Pages of one of several lists on a page.
import { tr } from '../i18n/strings/frame';

/** `cursors` led to the shown one, none to the first. */
export function Turn({ cursors, next, to }: { cursors: string[]; next: string | null; to: (cursors: string[]) => void }) {
	if (cursors.length === 0 && !next) return null;
	return <div class="row"><button disabled={cursors.length === 0} onClick={() => to(cursors.slice(0, -1))}>{tr('Back')}</button>
		<button disabled={!next} onClick={() => to([...cursors, next!])}>{tr('Next')}</button></div>;
}
