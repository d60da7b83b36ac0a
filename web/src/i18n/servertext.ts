// Messages of the server in the page's language.  The API is English, for scripts; other languages have a
// table of messages that is loaded with the first message.
import { signal } from '@preact/signals';
import { language } from './language';

type Translate = (text: string) => string;

const translate = signal<Translate | null>(language === 'en' ? (text) => text : null);
let coming: Promise<void> | null = null;

const load = (): Promise<void> => (coming ??= import('./servermessages').then((m) => { translate.value = m.translate; }).catch(() => { translate.value = (text) => text; })); // as after an update of the server: shown unchanged

/** A message of the server: unchanged until the table is loaded, then rendered again. */
export function serverText(text: string): string {
	if (translate.value) return translate.value(text);
	void load();
	return text;
}

/** The same for who can wait. */
export async function translateInTime(text: string): Promise<string> {
	if (!translate.value) await load();
	return translate.value!(text);
}

/** A sentence with its end. */
export const ended = (text: string): string => (/[.!?。！？]$/.test(text) ? text : text + (language === 'en' ? '.' : '。'));
