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
export function typesOf(descriptor: string): { parameters: string[]; type: string } | null {
	const end = descriptor.lastIndexOf(')');
	return descriptor[0] === '(' && end > 0 ? { parameters: listed(descriptor.slice(1, end)), type: listed(descriptor.slice(end + 1))[0] ?? '' } : null;
}

const short = (type: string) => type.slice(type.lastIndexOf('.') + 1);

/** "(String, int[]): void"; full: with packages. */
export function signature(descriptor: string, full = true, typed = true): string {
	const of = typesOf(descriptor);
	if (!of) return '';
	const show = full ? (t: string) => t : short;
	return `(${of.parameters.map(show).join(', ')})${typed && of.type ? `: ${show(of.type)}` : ''}`;
}

/** For methods that share their name, the text that distinguishes them: as short as suffices for all of that name. */
export function distinctions(names: string[], descriptors: string[]): Map<number, string> {
	const groups = new Map<string, number[]>();
	names.forEach((name, i) => {
		const group = groups.get(name);
		if (group) group.push(i);
		else groups.set(name, [i]);
	});
	const out = new Map<number, string>();
	for (const group of groups.values()) {
		if (group.length === 1) continue;
		const known = group.filter((i) => descriptors[i][0] === '(');
		const different = new Set(known.map((i) => descriptors[i])).size;
		if (different < 2 && known.length === group.length) continue;
		for (let k = 0; k < 4; k++) {
			known.forEach((i) => out.set(i, signature(descriptors[i], k > 1, k % 2 > 0)));
			if (new Set(known.map((i) => out.get(i))).size === different) break;
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

/** The names of a trace's methods, overloads with their parameters; from then on its other answers name them so, too. */
export function distinct(id: string, names: string[], descriptors: string[]): string[] {
	open = { id, descriptors, suffixes: distinctions(names, descriptors) };
	return open.suffixes.size ? names.map((n, i) => n + (open.suffixes.get(i) ?? '')) : names;
}

/** The name of a method in an answer about the trace. */
export const distinctName = (id: string, method: number, name: string): string => name + (id === open.id ? open.suffixes.get(method) ?? '' : '');

/** Parameters and type of a method of the trace that is shown; "" unknown. */
export const signatureOf = (id: string, method: number): string => (id === open.id ? signature(open.descriptors[method] ?? '') : '');
