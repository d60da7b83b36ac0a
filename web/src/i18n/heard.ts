// What the server says, in the page's language.  Its API is English, which scripts read; whoever reads
// another language has its sentences from a table that is loaded with the first of them.
import { signal } from '@preact/signals';
import { language } from './language';

type Say = (text: string) => string;

const say = signal<Say | null>(language === 'en' ? (text) => text : null);
let coming: Promise<void> | null = null;

const load = (): Promise<void> => (coming ??= import('./said').then((m) => { say.value = m.said; }).catch(() => { say.value = (text) => text; })); // as after an update of the server: as it came

/** A sentence of the server's; until the table is there as it came, and once more when it is. */
export function heard(text: string): string {
	if (say.value) return say.value(text);
	void load();
	return text;
}

/** The same for who can wait. */
export async function heardInTime(text: string): Promise<string> {
	if (!say.value) await load();
	return say.value!(text);
}

/** A sentence with its end. */
export const ended = (text: string): string => (/[.!?。！？]$/.test(text) ? text : text + (language === 'en' ? '.' : '。'));
