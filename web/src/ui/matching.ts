// Search by name in the page: text, or /expression/.
import { withoutParameters } from '../i18n/format';

/** 1 for each method whose name fits; null: no search, or no expression. */
export function matching(names: string[], find: string): Uint8Array | null {
	if (!find) return null;
	const regex = /^\/(.+)\/$/.exec(find);
	try {
		const test = regex ? new RegExp(regex[1], 'i') : null;
		const low = find.toLowerCase();
		return Uint8Array.from(names, (n) => ((test ? test.test(n) || test.test(withoutParameters(n)) : n.toLowerCase().includes(low)) ? 1 : 0));
	} catch {
		return null;
	}
}
