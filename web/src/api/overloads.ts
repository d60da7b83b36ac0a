// Overloads: methods of one name, which their parameters distinguish.

const PRIMITIVES: Record<string, string> = { Z: 'boolean', B: 'byte', C: 'char', S: 'short', I: 'int', J: 'long', F: 'float', D: 'double', V: 'void' };

/* The types that a part of a descriptor lists, as in Java. */
function listed(part: string): string[] {
	const out: string[] = [];
	let depth = 0;
	for (let i = 0; i < part.length; i++) {
		const end = part[i] === 'L' ? part.indexOf(';', i) : -1;
		const type = end < 0 ? PRIMITIVES[part[i]] : part.slice(i + 1, end).replaceAll('/', '.');
		if (end >= 0) i = end;
		if (type) out.push(depth ? type + '[]'.repeat(depth) : type);
		depth = part[i] === '[' ? depth + 1 : 0;
	}
	return out;
}

/** "(Ljava/lang/String;[I)V" → its parameters and its type as in Java; null: not a descriptor. */
function typesOf(descriptor: string): { parameters: string[]; type: string } | null {
	const end = descriptor.lastIndexOf(')');
	return descriptor[0] === '(' && end > 0 ? { parameters: listed(descriptor.slice(1, end)), type: listed(descriptor.slice(end + 1))[0] ?? '' } : null;
}

const short = (type: string) => type.slice(type.lastIndexOf('.') + 1);

function written({ parameters, type }: { parameters: string[]; type: string }, full: boolean, typed: boolean): string {
	const show = full ? (t: string) => t : short;
	return `(${parameters.map(show).join(', ')})${typed && type ? `: ${show(type)}` : ''}`;
}

/** "(java.lang.String, int[]): void". */
export function signature(descriptor: string): string {
	const of = typesOf(descriptor);
	return of ? written(of, true, true) : '';
}

/** For methods that share their name, the text that distinguishes them: as short as suffices for all of that name. */
export function distinctions(names: string[], descriptors: string[]): Map<number, string> {
	const first = new Map<string, number>();
	const groups = new Map<number, number[]>(); // of several, by the first
	names.forEach((name, i) => {
		const before = first.get(name);
		if (before === undefined) first.set(name, i);
		else if (!groups.get(before)?.push(i)) groups.set(before, [before, i]);
	});
	const out = new Map<number, string>();
	for (const group of groups.values()) {
		const known = group.filter((i) => descriptors[i][0] === '(');
		const different = new Set(known.map((i) => descriptors[i])).size;
		if (different < 2 && known.length === group.length) continue;
		const types = known.map((i) => typesOf(descriptors[i]));
		for (let k = 0; k < 4; k++) {
			const texts = types.map((t) => (t ? written(t, k > 1, k % 2 > 0) : ''));
			if (k < 3 && new Set(texts).size !== different) continue;
			known.forEach((i, n) => out.set(i, texts[n]));
			break;
		}
	}
	return out;
}

/** Rows of one answer, overloads among them named with their parameters. */
export function withOverloads<T extends { name: string; descriptor: string }>(rows: T[]): T[] {
	const of = distinctions(rows.map((r) => r.name), rows.map((r) => r.descriptor));
	return of.size ? rows.map((r, i) => ({ ...r, name: r.name + (of.get(i) ?? '') })) : rows;
}

let open = { id: '', descriptors: [] as string[], suffixes: new Map<number, string>() };

/** The names of a trace's methods, overloads with their parameters; from then on its other responses use these names, too. */
export function distinct(id: string, names: string[], descriptors: string[]): string[] {
	open = { id, descriptors, suffixes: distinctions(names, descriptors) };
	return open.suffixes.size ? names.map((n, i) => n + (open.suffixes.get(i) ?? '')) : names;
}

/** The name of a method in an answer about the trace. */
export const distinctName = (id: string, method: number, name: string): string => name + (id === open.id ? open.suffixes.get(method) ?? '' : '');

/** Parameters and type of a method of the trace that is shown; "" unknown. */
export const signatureOf = (id: string, method: number): string => (id === open.id ? signature(open.descriptors[method] ?? '') : '');
