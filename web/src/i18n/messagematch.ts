// Messages with values in them, recognised in a text and translated.  Values are
// untrusted data: matching takes one pass over the text for any content.

interface Message {
	literals: string[]; // between the values
	names: string[]; // of the values: a number, and the required kind
	text: string;
}

const HOLE = /\{\d+[!?#]?\}/;
const DURATION = /^\d[\d.]* (s|ms|µs|ns)$/;
const DEPTH = 6; // of sentences within sentences

function parse([pattern, text]: [string, string]): Message {
	return { literals: pattern.split(HOLE), names: [...pattern.matchAll(/\{(\d+[!?#]?)\}/g)].map((m) => m[1]), text };
}

/** The values of a text that matches a message, each as short as possible; null: no match. */
function valuesOf({ literals }: Message, text: string): string[] | null {
	const last = literals[literals.length - 1];
	if (!text.startsWith(literals[0]) || !text.endsWith(last)) return null;
	const end = text.length - last.length;
	const values: string[] = [];
	let at = literals[0].length;
	for (let i = 1; i < literals.length; i++) {
		const next = i === literals.length - 1 ? end : text.indexOf(literals[i], at);
		if (next < at || next > end) return null;
		values.push(text.slice(at, next));
		at = next + literals[i].length;
	}
	return values;
}

/** The most specific come first: "no such trace" before "no {1}". */
const weight = (s: Message) => s.literals.join('').length + (s.literals[1].startsWith('; ') ? 1000 : 0); // a message that joins two is tried before either
const ordered = (table: Record<string, string>) => Object.entries(table).filter(([k]) => HOLE.test(k)).map(parse).sort((a, b) => weight(b) - weight(a));

/* Removes spaces between Chinese characters, next to Chinese punctuation, and before %. */
const set = (text: string) => text.replace(/(?<=[\p{Script=Han}，。：；（）、“”]) (?=[\p{Script=Han}，。：；（）、“”])| (?=[，。：；（）、])|(?<=[，。：；（）、]) |(?<=\d) (?=%)/gu, '');

/** Translates a text by two tables: messages, and pieces that occur only within messages ({1?} in Chinese where
 * one may, {1!} in a pattern where one must, {1#} a duration).  An unknown message is returned unchanged. */
export function messageTranslator(sentences: Record<string, string>, pieces: Record<string, string>): (text: string) => string {
	const whole = { fixed: sentences, open: ordered(sentences) };
	const both = { ...sentences, ...pieces };
	const within = { fixed: both, open: ordered(both) };
	const known = new Map<string, string>();

	function fill(s: Message, values: string[], depth: number): string | null {
		const wrong = (name: string, value: string) => (name.endsWith('!') ? inner(value, depth) === null : name.endsWith('#') && !DURATION.test(value));
		if (s.names.some((name, i) => wrong(name, values[i]))) return null;
		return set(s.text.replace(/\{(\d+)([!?]?)\}/g, (_, n: string, mark: string) => (mark && inner(values[+n - 1], depth)) || values[+n - 1]));
	}
	function by(table: typeof whole, text: string, depth: number): string | null {
		if (Object.hasOwn(table.fixed, text)) return table.fixed[text];
		for (const s of table.open) {
			const values = valuesOf(s, text);
			const filled = values && fill(s, values, depth);
			if (filled) return filled;
		}
		return null;
	}
	const inner = (text: string, depth: number): string | null => (depth < DEPTH ? by(within, text, depth + 1) : null);
	/* Unchanged, otherwise without the capital and the full stop that a page or a document adds. */
	function find(text: string): string | null {
		const bare = text.charAt(0).toLowerCase() + text.slice(1);
		const cut = /\.$/.test(bare) ? bare.slice(0, -1) : '';
		return by(whole, text, 0) ?? by(whole, bare, 0) ?? (cut && by(whole, cut, 0)?.concat('。')) ?? null;
	}
	return (text) => {
		let translated = known.get(text);
		if (translated === undefined) {
			translated = (text && find(text)) || text;
			if (known.size < 2000) known.set(text, translated);
		}
		return translated;
	};
}
