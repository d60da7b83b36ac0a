// A thread by name and number; one without a name by its number alone.
import { tr } from '../../i18n/strings/trace';

/** Of a thread among `threads`. */
export const nameOfThread = (tid: number, threads: { tid: number; name: string }[]): string => threads.find((t) => t.tid === tid)?.name || tr('Thread {tid}', { tid });

export function ThreadName({ name, tid }: { name: string | undefined; tid: number }) {
	return <>{name || tr('Thread')} <span class="quiet num">{tid}</span></>;
}
