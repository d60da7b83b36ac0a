// Builds the page into dist/: index.html and hashed assets.
// `--test` bundles test/*.test.ts into dist-test/ for node's test runner instead.
import { build } from 'esbuild';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { BUDGETS, budgetOf } from './budget.mjs';

/* What the address may say: every name that the source reads from it. */
function parameters() {
	const source = readdirSync('src', { recursive: true }).filter((f) => /\.tsx?$/.test(f)).map((f) => readFileSync(join('src', f), 'utf8')).join('\n');
	return [...new Set([...source.matchAll(/\b(?:text|number|texts)\('(\w+)'\)/g)].map((m) => m[1]))].sort();
}

const shared = { bundle: true, minify: true, format: 'esm', target: 'es2022', metafile: true,
	jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none', charset: 'utf8', logLevel: 'warning',
	define: { PARAMETERS: JSON.stringify(parameters()) } };

const inputs = {}; // of each built file, by its name

/* What `entry` became: its address, and that of all it needs at once, by source file. */
async function bundle(entry, outdir, extra = {}) {
	const { metafile: { outputs } } = await build({ ...shared, entryPoints: [entry], outdir,
		entryNames: '[name]-[hash]', ...extra, define: { ...shared.define, ...extra.define } });
	for (const [file, out] of Object.entries(outputs)) inputs[basename(file)] = out.inputs;
	const made = (source) => Object.keys(outputs).find((f) => outputs[f].entryPoint === source);
	const href = (f) => '/assets/' + basename(f);
	const needs = (f) => outputs[f].imports.filter((i) => i.kind === 'import-statement').flatMap((i) => [i.path, ...needs(i.path)]);
	const mayNeed = (f) => outputs[f].imports.flatMap((i) => [i.path, ...needs(i.path)]);
	return { href: href(made(entry)), of: (source) => href(made(source)), needs: (source) => [...new Set(needs(made(source)))].map(href),
		mayNeed: (source) => [...new Set([made(source), ...needs(made(source))].flatMap(mayNeed))].map(href) };
}

async function tests() {
	rmSync('dist-test', { recursive: true, force: true });
	const entries = readdirSync('test').filter((f) => f.endsWith('.test.ts')).map((f) => join('test', f));
	await build({ ...shared, entryPoints: entries, outdir: 'dist-test', minify: false, platform: 'node', external: ['typescript'] });
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
	const worker = await bundle('src/trace/worker/worker.ts', 'dist/assets');
	const app = await bundle('src/app/main.tsx', 'dist/assets', {
		splitting: true, chunkNames: '[name]-[hash]', define: { WORKER_URL: JSON.stringify(worker.href) } });
	const css = await bundle('src/app/style.css', 'dist/assets');
	const early = await bundle('src/app/early.ts', 'dist/assets', { format: 'iife', define: { WORKER_URL: JSON.stringify(worker.href) } });
	const trace = [app.of('src/trace/trace.tsx'), ...app.needs('src/trace/trace.tsx')];
	const html = readFileSync('src/app/index.html', 'utf8')
		.replace('{{app}}', app.href)
		.replace('{{early}}', early.href)
		.replace('{{css}}', css.href)
		.replace('{{needs}}', app.needs('src/app/main.tsx').map((f) => `<link rel="modulepreload" href="${f}">`).join('\n'))
		.replace('{{trace}}', trace.join(' '));
	writeFileSync('dist/index.html', html);
	writeFileSync('dist/favicon.svg', readFileSync('src/app/favicon.svg'));
	const names = (all) => new Set(all.map((f) => basename(f)));
	const opens = names([early.href, worker.href, app.href, ...app.needs('src/app/main.tsx'), ...trace]);
	const js = gzipped('dist', opens, names(app.mayNeed('src/trace/trace.tsx')));
	console.log(`page built, gzipped JavaScript: ${Object.entries(js).map(([part, n]) => `${part} ${(n / 1024).toFixed(1)} KB`).join(', ')}`);
	for (const [part, n] of Object.entries(js)) if (n > BUDGETS[part]) throw new Error(`${n - BUDGETS[part]} bytes more JavaScript than the ${part} may have`);
}

await (process.argv.includes('--test') ? tests() : page());
