// Messages of the server in the page's language.  The API is English, for scripts; other languages have a
// table of messages that is loaded with the first message.
import { signal } from '@preact/signals';
import { language } from './language';

type Say = (text: string) => string;

const say = signal<Say | null>(language === 'en' ? (text) => text : null);
let coming: Promise<void> | null = null;

const load = (): Promise<void> => (coming ??= import('./servermessages').then((m) => { say.value = m.translate; }).catch(() => { say.value = (text) => text; })); // as after an update of the server: shown unchanged

/** A message of the server: unchanged until the table is loaded, then rendered again. */
export function serverText(text: string): string {
	if (say.value) return say.value(text);
	void load();
	return text;
}

/** The same for who can wait. */
export async function translateInTime(text: string): Promise<string> {
	if (!say.value) await load();
	return say.value!(text);
}

/** A sentence with its end. */
export const ended = (text: string): string => (/[.!?。！？]$/.test(text) ? text : text + (language === 'en' ? '.' : '。'));
