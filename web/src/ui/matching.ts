// Search by name in the page: text, or /expression/.
import { withoutParameters } from '../i18n/format';

/** 1 for each method of which a name fits, or its other name in `also`; null: no search, or no expression. */
export function matching(names: string[], find: string, also: string[] = []): Uint8Array | null {
	if (!find) return null;
	const regex = /^\/(.+)\/$/.exec(find);
	try {
		const test = regex ? new RegExp(regex[1], 'i') : null;
		const low = find.toLowerCase();
		const fits = (n: string) => (test ? test.test(n) || test.test(withoutParameters(n)) : n.toLowerCase().includes(low));
		return Uint8Array.from(names, (n, i) => (fits(n) || (also[i] && fits(also[i])) ? 1 : 0));
	} catch {
		return null;
	}
}
