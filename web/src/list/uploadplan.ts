// Files that are dropped together: which are traces, which belong to a trace, and which build names them.
const SIDES = ['threads', 'binder', 'atrace', 'system'] as const;
export type Side = (typeof SIDES)[number];
export type Kind = 'trace' | 'methods' | 'retrace' | 'symbols';

/** A file, the folder that it was dropped in, its first bytes, and the build id of an ELF file ('' without one). */
export interface Dropped { file: File; folder: string; head: string; elfBuild?: string }

/** `alone`: it cannot be sent without its trace. */
interface Planned { file: File; kind: Kind; sides: [Side, File][]; build: string; alone: boolean }

/** By its content: a mapping is text of a known shape.  A side file is known by its name, which the recorder gives it. */
export function kindOf(name: string, head: string): Kind | Side {
	const line = head.split('\n', 200).map((l) => l.trim()).find((l) => l && !l.startsWith('#')) ?? '';
	if (/^binder\b.*\.txt(\.(zst|gz))?$/i.test(name)) return 'binder';
	if (/^\d+,\d+,\S+/.test(line)) return 'methods';
	if (/^[\w$.\-/]+ -> [\w$.\-/]+:$/.test(line)) return 'retrace';
	if (/^methodMapping\b.*\.txt(\.(zst|gz))?$/i.test(name)) return 'methods';
	if (/^(mapping|proguard)\b.*\.txt(\.(zst|gz))?$/i.test(name)) return 'retrace';
	if (/^threads?\b.*\.txt$/i.test(name)) return 'threads';
	if (/^rhea-atrace\b[^.]*\.gz$/i.test(name)) return 'atrace';
	if (/^system\b.*\.(perfetto-trace|pftrace)(\.(zst|gz))?$/i.test(name)) return 'system';
	return 'trace';
}

/** A name for the build that traces and a mapping dropped together belong to: from R8's header, otherwise from the mapping's content. */
export function buildOf(head: string): string {
	const given = /^# ?pg_map_id: *(\w+)/m.exec(head)?.[1];
	if (given) return given;
	let hash = 0x811c9dc5;
	for (let i = 0; i < head.length; i++) hash = Math.imul(hash ^ head.charCodeAt(i), 0x01000193);
	return `local-${(hash >>> 0).toString(16).padStart(8, '0')}`;
}

type Known = Dropped & { kind: Kind | Side };

/** Is it clear which file belongs to which? */
const isClear = (all: Known[]) => new Set(all.filter((d) => d.kind !== 'trace').map((d) => d.kind)).size === all.filter((d) => d.kind !== 'trace').length;

/** Several mappings of one kind may be of several builds: none of them is applied to the traces dropped with it. */
function planGroup(all: Known[], known: string): Planned[] {
	const of = (kind: Kind | Side) => all.filter((d) => d.kind === kind);
	const one = of('trace').length === 1;
	const sides = SIDES.flatMap((kind) => (one && of(kind).length === 1 ? of(kind) : []));
	const loose = all.filter((d) => !sides.includes(d));
	const mappings = [...of('methods'), ...of('retrace')];
	const named = of('methods').length < 2 && of('retrace').length < 2;
	const isTrace = (d: Known) => d.kind === 'trace' || d.kind === 'system' || d.kind === 'atrace';
	const build = known || (named && mappings.length > 0 && all.some(isTrace) ? buildOf(mappings[0].head) : '');
	return loose.map((d) => ({
		file: d.file, kind: d.kind === 'methods' || d.kind === 'retrace' ? d.kind : 'trace', build: d.kind === 'methods' || d.kind === 'retrace' ? (named ? build : '') : build,
		sides: d.kind === 'trace' ? sides.map((s): [Side, File] => [s.kind as Side, s.file]) : [], alone: d.kind === 'threads' || d.kind === 'binder',
	}));
}

/** What to upload.  Files of one drop belong together; if that is ambiguous, those of one folder do. */
export function planOf(files: Dropped[], known: string): Planned[] {
	const libraries = files.filter((d) => d.elfBuild !== undefined)
		.map((d): Planned => ({ file: d.file, kind: 'symbols', sides: [], build: d.elfBuild ? `elf:${d.elfBuild}` : '', alone: !d.elfBuild }));
	const all = files.filter((d) => d.elfBuild === undefined).map((d): Known => ({ ...d, kind: kindOf(d.file.name, d.head) }));
	return [...libraries, ...planOthers(all, known)];
}

function planOthers(all: Known[], known: string): Planned[] {
	if (isClear(all)) return planGroup(all, known);
	return [...new Set(all.map((d) => d.folder))].flatMap((folder) => planGroup(all.filter((d) => d.folder === folder), known));
}
