// Reduces pasted text to a search term: trace URLs, stack frames, dex and smali names.

const TRACE = /\/traces\/([0-9A-HJKMNP-TV-Z]{26})\b/i;
const DEX_CLASS = /^L?((?:[\w$-]+\/)+[\w$-]+);?$/;

export function searchTerm(text: string): string {
	const id = TRACE.exec(text)?.[1];
	if (id) return id.toUpperCase();
	const name = text.trim().replace(/^at\s+(?=\S+\()/, '').replace(/(\S)\([^()]*\).*$/, '$1'); // with parameters, or file and line
	const [owner, method] = name.split(/;->/);
	const dotted = DEX_CLASS.exec(owner)?.[1].replaceAll('/', '.');
	return dotted ? [dotted, method].filter(Boolean).join('.') : name;
}
