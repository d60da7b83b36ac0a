// What the server can say, read from its sources: formats of refusals, texts of rules and verdicts.
import { readdirSync, readFileSync } from 'node:fs';

const ROOT = new URL('../../', import.meta.url);
const TOKEN = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\]|\\.)*'|[A-Za-z_]\w*|[(){},]|\S/g;
const PRINTED = /%[-+ 0#]*[\d*]*(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j)?([a-zA-Z%])/g;

export interface Source { name: string; tokens: string[]; texts: Map<string, string> }

/** A call in the sources: what stands in it, by arguments. */
export interface Call { file: string; of: string; args: string[][] }

function strings(of: string): Map<string, string> {
	const found = new Map<string, string>();
	for (const [, name, text] of of.matchAll(/^#define (\w+)\s+((?:"(?:[^"\\\n]|\\.)*"|\\\n|[A-Z_]+|\s)+?)$/gm)) if (text.includes('"')) found.set(name, text.replaceAll('\\\n', ' '));
	return found;
}

const plain = (text: string) => text.replace(/\/\*[\s\S]*?\*\//g, ' ');

function read(folder: string): Source[] {
	const names = readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' }).filter((f) => /\.(c|h|def)$/.test(f));
	return names.map((f) => {
		const text = plain(readFileSync(new URL(folder + f, ROOT), 'utf8'));
		return { name: folder + f, tokens: text.replace(/^#include.*$/gm, '').match(TOKEN) ?? [], texts: strings(text) };
	});
}

export const SOURCES = [...read('server/'), ...read('decoder/')];
const shared = new Map(SOURCES.filter((s) => s.name.endsWith('.h')).flatMap((s) => [...s.texts]));

const unescaped = (text: string) => text.replace(/\\(["\\'])/g, '$1').replace(/\\n/g, '\n');

/** The texts among tokens: those in a row are one, PRIu64 and macros of texts are part of them. */
export function textsOf(tokens: string[], of: Source): string[] {
	const found: string[] = [];
	let text: string | null = null;
	for (const t of [...tokens, ';']) {
		const macro: string | undefined = of.texts.get(t) ?? shared.get(t);
		const piece: string | null = t.startsWith('"') ? t.slice(1, -1) : /^PRI[a-zA-Z]\d+$/.test(t) ? t[3] : macro !== undefined ? textsOf(macro.match(TOKEN) ?? [], of).join('') : null;
		if (piece !== null) text = (text ?? '') + piece;
		else if (text !== null) {
			found.push(unescaped(text));
			text = null;
		}
	}
	return found;
}

/** Calls of the named functions or macros. */
export function callsOf(of: Source, names: RegExp): Call[] {
	const found: Call[] = [];
	of.tokens.forEach((t, at) => {
		if (!names.test(t) || of.tokens[at + 1] !== '(') return;
		const args: string[][] = [[]];
		for (let i = at + 2, depth = 1; i < of.tokens.length; i++) {
			const o = of.tokens[i];
			depth += o === '(' || o === '{' ? 1 : o === ')' || o === '}' ? -1 : 0;
			if (depth === 0) break;
			if (o === ',' && depth === 1) args.push([]);
			else args[args.length - 1].push(o);
		}
		found.push({ file: of.name, of: t, args });
	});
	return found;
}

/** A format as it may come out. */
export const sample = (format: string): string => format.replace(PRINTED, (_, kind: string) => (kind === '%' ? '%' : kind === 's' ? 'Xy' : kind === 'c' ? 'X' : '7'));

/** All that is text in the sources, without values. */
export const everything = (): string => SOURCES.map((s) => textsOf(s.tokens, s).join('\n').replace(PRINTED, (_, kind: string) => (kind === '%' ? '%' : '\n'))).join('\n');

