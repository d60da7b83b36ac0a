// A thread by name and number; one without a name by its number alone.
import { tr } from '../../i18n/strings/trace';

export function ThreadName({ name, tid }: { name: string | undefined; tid: number }) {
	return <>{name || tr('Thread')} <span class="quiet num">{tid}</span></>;
}
