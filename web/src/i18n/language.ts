// The language of the page.  Texts in the code are English; another language is a table from them,
// loaded only if it is selected, before the code that needs it runs.  A change reloads the page.
import type { ComponentChildren } from 'preact';

export type Language = 'en' | 'zh-Hans';

export const LANGUAGES: Record<Language, string> = { en: 'English', 'zh-Hans': '中文' };

const KEY = 'tracewell-language';

/** The chosen language, otherwise the first supported one of the browser, otherwise English. */
export function languageOf(chosen: string | null, wanted: readonly string[]): Language {
	if (chosen !== null && Object.hasOwn(LANGUAGES, chosen)) return chosen as Language;
	for (const one of wanted) {
		if (/^en\b/i.test(one)) return 'en';
		if (/^zh(-(Hans|CN|SG|MY)\b|$)/i.test(one)) return 'zh-Hans'; // traditional script is another language
	}
	return 'en';
}

function remembered(): string | null {
	try {
		return localStorage.getItem(KEY);
	} catch {
		return null;
	}
}

const onPage = typeof document !== 'undefined'; // not in a worker, not in a test

export const language: Language = onPage ? languageOf(remembered(), navigator.languages) : 'en';
if (onPage) document.documentElement.lang = language;

/** Stores the choice and reloads the page; the address has its state. */
export function switchLanguage(one: Language): void {
	try {
		localStorage.setItem(KEY, one);
	} catch {
		return; // nothing would be kept
	}
	location.reload();
}

type Named<S> = S extends `${string}{${infer P}}${infer Rest}` ? P | Named<Rest> : never;
type Given<S, V> = [Named<S>] extends [never] ? [] : [values: { [P in Named<S>]: V }];
type Table = Record<string, string>;

/** Are the places of each text those of its English?  A table that has others is none. */
export type Fits<T extends Table> = { [K in keyof T]: [Exclude<Named<T[K]>, Named<K>>] extends [never] ? string : never };

/** Texts of a part of the page: English in, the page's language out. */
interface Tr<T extends Table> {
	<K extends keyof T & string>(text: K, ...given: Given<K, string | number | false | null | undefined>): string;
	/** With elements in its places. */
	rich: <K extends keyof T & string>(text: K, ...given: Given<K, ComponentChildren>) => ComponentChildren[];
	/** By how many: {n} is the number, as it is written. */
	many: (n: number, one: string, text: keyof T & string) => string;
}

/** 1234567.5 → "1,234,567.5", in both languages. Not by Intl, whose first use takes several milliseconds before the first paint. */
export function grouped(n: number): string {
	const [whole, part] = String(Math.round(n * 1000) / 1000).split('.');
	return whole.replace(/\B(?=(\d{3})+$)/g, ',') + (part ? `.${part}` : '');
}

/** A text's pieces: by turns the text between its placeholders and their names. */
const pieces = (text: string): string[] => text.split(/\{(\w+)\}/);

function filled(text: string, values: object): ComponentChildren[] {
	return pieces(text).map((piece, i) => (i % 2 ? (values as Record<string, ComponentChildren>)[piece] : piece)).filter((v) => v || v === 0);
}

/** The texts of a part, once its table is there; without one, as after an update of the server, in English. */
export async function words<T extends Table>(load: () => Promise<{ default: T }>): Promise<Tr<T>> {
	const table: Table = language === 'en' ? {} : await load().then((m) => m.default, () => ({}));
	const inLanguage = (text: string) => table[text] ?? text;
	const tr = (text: string, values?: object) => (values ? filled(inLanguage(text), values).join('') : inLanguage(text));
	return Object.assign(tr, {
		rich: (text: string, values: object = {}) => filled(inLanguage(text), values),
		many: (n: number, one: string, text: string) => tr(language === 'en' && n === 1 ? one : text, { n: grouped(n) }),
	}) as Tr<T>;
}
