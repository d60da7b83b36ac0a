// Builds the page into dist/: index.html and hashed assets.
// `--test` bundles each *.test.ts below test/ into dist-test/ for node's test runner instead.
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { minify } from 'terser';
import { BUDGETS, budgetOf } from './budget.mjs';

/* What the address may say: every name that the source reads from it. */
function parameters() {
	const source = readdirSync('src', { recursive: true }).filter((f) => /\.tsx?$/.test(f)).map((f) => readFileSync(join('src', f), 'utf8')).join('\n');
	return [...new Set([...source.matchAll(/\b(?:text|number|texts)\('(\w+)'\)/g)].map((m) => m[1]))].sort();
}

const shared = { bundle: true, format: 'esm', target: 'es2022', metafile: true,
	jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none', charset: 'utf8', logLevel: 'warning',
	define: { PARAMETERS: JSON.stringify(parameters().join(' ')) } };

const COMMON = 5; // pages that share a piece
const inputs = {}; // of each built file, by its name

/* A file and all files that it imports statically, or, with `later`, that it or they may load. */
function closure(outputs, f, later = false, found = new Set()) {
	if (!found.has(f)) {
		found.add(f);
		for (const i of outputs[f].imports) if (later || i.kind === 'import-statement') closure(outputs, i.path, later, found);
	}
	return found;
}

const IMPORTS = /^import (?:\{([^}]*)\} from )?"([^"]+)";$/gm; // as esbuild writes them
const EXPORTS = /^export \{([^}]*)\};$/gm;
const listed = (list = '') => list.split(',').map((n) => n.trim().split(' as ')).filter(([n]) => n); // [name] or [name, other]

/* Names that cross files: A to Z, then A0 to Zz. */
const CROSSES = /^[A-Z][0-9a-z]?$/;
const crossing = (n) => String.fromCharCode(65 + n % 26) + (n < 26 ? '' : (Math.floor(n / 26) - 1).toString(36));

/* esbuild's own output is a few per cent larger when it is compressed. Another file is imported by one statement, and by the
 * names that it exports: `import{A}` is smaller than `import{A as e}`. */
async function minified(code) {
	const from = new Map(); // by file, what is imported
	const rest = code.replace(IMPORTS, (_, list, path) => (from.set(path, [...from.get(path) ?? [], ...listed(list)]), ''));
	const exported = [...code.matchAll(EXPORTS)].flatMap(([, list]) => listed(list)).map(([local, name = local]) => [name, local]);
	const local = [...exported, ...[...from.values()].flat()].filter(([name]) => CROSSES.test(name)).map(([name, here = name]) => [`$${here}`, name]);
	const imports = [...from].map(([path, names]) => `import {${names.map((n) => n.join(' as '))}} from "${path}";`);
	return (await minify(imports.join('') + rest, { module: true, ecma: 2020, compress: { passes: 3 }, nameCache: { vars: { props: Object.fromEntries(local) } } })).code;
}

/* Builds an entry that imports no other file. */
async function single(entry, extra = {}) {
	const { metafile: { outputs }, outputFiles } = await build({ ...shared, minify: true, entryPoints: [entry], outdir: 'dist/assets', entryNames: '[name]-[hash]', write: false, ...extra,
		define: { ...shared.define, ...extra.define } });
	for (const { path, text } of outputFiles) writeFileSync(path, path.endsWith('.js') ? await minified(text) : text);
	for (const [file, out] of Object.entries(outputs)) inputs[basename(file)] = out.inputs;
	return '/assets/' + basename(Object.keys(outputs)[0]);
}

/* Assigns each piece that the application shell or the trace page needs to a file, because each file costs a browser
 * several milliseconds. A piece that other pages also need becomes a separate file, unless it can be added to the shell's.
 * Pieces without texts that COMMON or more of the other pages share are one file, and so is everything that only the trace
 * page loads later: its panels share most of their code's shape, and compress better together. */
function joined(outputs, main, trace) {
	const users = (f) => Object.keys(outputs).filter((e) => outputs[e].entryPoint && closure(outputs, e).has(f)).map((e) => outputs[e].entryPoint);
	const texts = (f) => Object.keys(outputs[f].inputs).some((i) => i.startsWith('src/i18n/strings/')); // waits for a language
	const group = new Map([...closure(outputs, main)].map((f) => [f, 'main']));
	const all = [...closure(outputs, trace)].reverse().filter((f) => !group.has(f));
	for (let before = -1; before !== group.size;) {
		before = group.size;
		for (const f of all.filter((f) => !group.has(f))) {
			const by = users(f);
			if (by.every((u) => u.startsWith('src/trace/'))) group.set(f, 'trace');
			else if (by.every((u) => /^src\/(trace|compare|anr|fleet\/graphpages)\b/.test(u))) group.set(f, 'graph');
			else if (!texts(f) && outputs[f].imports.every((i) => group.get(i.path) === 'main')) group.set(f, 'main');
		}
	}
	const seldom = closure(outputs, trace, true);
	const rest = Object.keys(outputs).filter((f) => !seldom.has(f) && !outputs[f].entryPoint && !texts(f));
	for (let before = -1; before !== group.size;) {
		before = group.size;
		for (const f of rest.filter((f) => !group.has(f)))
			if (users(f).length >= COMMON && outputs[f].imports.every((i) => ['main', 'common'].includes(group.get(i.path)))) group.set(f, 'common');
	}
	for (const f of seldom) if (!group.has(f) && users(f).every((u) => u.startsWith('src/trace/'))) group.set(f, 'panels');
	return group;
}

const HASH = 'BUILDHASH'; // in names until the content is known

/* Writes the page's modules. esbuild splits them into pieces, one for each set of pages that share code; a second pass joins
 * the pieces into files. All file names contain the same hash, which covers all contents. Returns the addresses of the files
 * that a source file needs when it is loaded. */
async function modules(entry, show, define) {
	const { metafile: { outputs }, outputFiles } = await build({ ...shared, entryPoints: [entry], outdir: 'dist/assets', splitting: true,
		write: false, entryNames: '[name]-[hash]', chunkNames: '[name]-[hash]', define: { ...shared.define, ...define } });
	const all = Object.keys(outputs);
	const code = new Map(outputFiles.map((o) => [relative('.', o.path), o.text]));
	const made = (source) => all.find((f) => outputs[f].entryPoint === source);
	const group = joined(outputs, made(entry), made(show));
	const fileOf = (f) => group.get(f) ?? (outputs[f].entryPoint ? basename(f, '.js').replace(/-\w+$/, '') : `part${all.indexOf(f)}`);
	const nameOf = (f) => `${fileOf(f)}-${HASH}.js`;
	for (const f of all) if (!group.has(f) && all.some((o) => o !== f && nameOf(o) === nameOf(f))) throw new Error(`two source files would be ${nameOf(f)}`);

	const users = new Map(); // by "PIECE NAME", the files that import it
	const taken = {}; // by "FILE PIECE", what a file imports of another's piece
	for (const f of all)
		for (const [, list, path] of code.get(f).matchAll(IMPORTS)) {
			const of = join(dirname(f), path);
			if (nameOf(of) === nameOf(f)) continue;
			for (const [name] of listed(list)) {
				users.set(`${of} ${name}`, (users.get(`${of} ${name}`) ?? new Set()).add(nameOf(f)));
				(taken[`${nameOf(f)} ${of}`] ??= new Set()).add(name);
			}
		}
	const short = new Map(all.map((f) => [f, new Map()])); // by the piece's names
	const used = {}; // by file, its names that cross files: the most frequent are the shortest
	for (const [key, by] of [...users].sort((a, b) => b[1].size - a[1].size)) {
		const [of, name] = key.split(' ');
		const files = [nameOf(of), ...by].map((f) => (used[f] ??= new Set()));
		let n = 0;
		while (files.some((f) => f.has(crossing(n)))) n++;
		short.get(of).set(name, crossing(n));
		for (const f of files) f.add(crossing(n));
	}
	const contentOf = (name) => all.filter((f) => nameOf(f) === name).map((f) => `export { ${[...short.get(f)].map(([n, s]) => `${n} as ${s}`)} } from "${f}";`
		+ (outputs[f].entryPoint ? `export * from "${f}";${outputs[f].exports.includes('default') ? `export { default } from "${f}";` : ''}` : '')).join('\n');
	const importOf = (by) => {
		const of = by.split(' ')[1];
		return `export { ${[...taken[by] ?? []].map((n) => `${short.get(of).get(n)} as ${n}`)} } from "./${nameOf(of)}";`;
	};
	const plugin = { name: 'joined', setup(b) {
		b.onResolve({ filter: /./ }, ({ path, kind, importer, namespace }) => {
			if (kind === 'entry-point') return { path, namespace: 'whole' };
			if (namespace === 'whole') return { path, namespace: 'piece' };
			const f = join(dirname(importer), path);
			if (namespace === 'other' || !all.includes(f)) return { path, external: true };
			if (nameOf(f) === nameOf(importer)) return { path: f, namespace: 'piece' };
			return kind === 'dynamic-import' ? { path: `./${nameOf(f)}`, external: true } : { path: `${nameOf(importer)} ${f}`, namespace: 'other' };
		});
		b.onLoad({ filter: /./, namespace: 'whole' }, ({ path }) => ({ contents: contentOf(path), resolveDir: '.' }));
		b.onLoad({ filter: /./, namespace: 'piece' }, ({ path }) => ({ contents: code.get(path) }));
		b.onLoad({ filter: /./, namespace: 'other' }, ({ path }) => ({ contents: importOf(path) }));
	} };
	const out = await build({ ...shared, minifySyntax: true, minifyIdentifiers: true, outdir: 'dist/assets', write: false, plugins: [plugin],
		entryPoints: [...new Set(all.map(nameOf))].map((name) => ({ in: name, out: basename(name, '.js') })) });
	const texts = await Promise.all(out.outputFiles.map((o) => minified(o.text)));
	const hash = createHash('sha256').update(texts.join('')).digest('hex').slice(0, 8);
	out.outputFiles.forEach((o, i) => writeFileSync(o.path.replace(HASH, hash), texts[i].replaceAll(HASH, hash)));
	for (const f of all) Object.assign(inputs[nameOf(f).replace(HASH, hash)] ??= {}, outputs[f].inputs);

	const href = (f) => '/assets/' + nameOf(f).replace(HASH, hash);
	const needs = (source, later) => [...new Set([...closure(outputs, made(source), later)].map(href))];
	return { needs, mayNeed: (source) => needs(source, true) };
}

async function tests() {
	rmSync('dist-test', { recursive: true, force: true });
	const entries = readdirSync('test', { recursive: true }).filter((f) => f.endsWith('.test.ts')).map((f) => join('test', f));
	await build({ ...shared, entryPoints: entries, outdir: 'dist-test', entryNames: '[name]', platform: 'node', external: ['typescript'] });
}

/* As the server sends it: schema/embed.py puts the compressed form beside each file. */
function gzipped(dir, opens, shows) {
	const js = Object.fromEntries(Object.keys(BUDGETS).map((part) => [part, 0]));
	for (const name of readdirSync(dir, { recursive: true, withFileTypes: true }))
		if (name.isFile() && name.name.endsWith('.js'))
			js[budgetOf(name.name, inputs[name.name], opens, shows)] += gzipSync(readFileSync(join(name.parentPath ?? name.path, name.name)), { level: 9 }).length;
	return js;
}

async function page() {
	rmSync('dist', { recursive: true, force: true });
	mkdirSync('dist/assets', { recursive: true });
	const worker = await single('src/trace/worker/worker.ts');
	const css = await single('src/app/style.css');
	const early = await single('src/app/early.ts', { format: 'iife', define: { WORKER_URL: JSON.stringify(worker) } });
	const app = await modules('src/app/main.tsx', 'src/trace/trace.tsx', { WORKER_URL: JSON.stringify(worker) });
	const [main, ...needs] = app.needs('src/app/main.tsx');
	const trace = app.needs('src/trace/trace.tsx').filter((f) => f !== main && !needs.includes(f));
	const names = (all) => new Set(all.map((f) => basename(f)));
	const opens = names([early, worker, main, ...needs, ...trace]);
	const js = gzipped('dist', opens, names(app.mayNeed('src/trace/trace.tsx')));
	console.log(`page built, gzipped JavaScript: ${Object.entries(js).map(([part, n]) => `${part} ${(n / 1024).toFixed(1)} KB`).join(', ')}`);
	for (const [part, n] of Object.entries(js)) if (n > BUDGETS[part]) throw new Error(`${n - BUDGETS[part]} bytes more JavaScript than the ${part} may have`);
	const html = readFileSync('src/app/index.html', 'utf8')
		.replace('{{app}}', main)
		.replace('{{early}}', early)
		.replace('{{css}}', css)
		.replace('{{needs}}', needs.map((f) => `<link rel="modulepreload" href="${f}">`).join('\n'))
		.replace('{{trace}}', trace.join(' '));
	writeFileSync('dist/favicon.svg', readFileSync('src/app/favicon.svg'));
	writeFileSync('dist/index.html', html); // last: without it, deploy/run builds again
}

await (process.argv.includes('--test') ? tests() : page());
