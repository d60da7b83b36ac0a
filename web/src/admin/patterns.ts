// Patterns of capture rules, matched as the server does it: fnmatch(3) without escapes.

const LITERAL = /[.+^${}()|\\\]/]/g;

/** "Pixel*", "1[45]", "8.?": `*` is any text, `?` one character, `[...]` one of a set, `[!...]` none of it. */
export function matches(pattern: string, value: string): boolean {
	const source = pattern.replace(/\[([!^]?)(\]?[^\]]*)\]|\*+|\?|[\s\S]/gu, (one, not: string | undefined, set: string | undefined) => {
		if (set !== undefined) return `[${not ? '^' : ''}${set.replace(/[\\\]^[]/g, '\\$&')}]`;
		return one.startsWith('*') ? '.*' : one === '?' ? '.' : one === '[' ? '\\[' : one.replace(LITERAL, '\\$&');
	});
	try {
		return new RegExp(`^(?:${source})$`, 'su').test(value);
	} catch {
		return false; // a set such as [z-a]
	}
}
