// Builds the page into dist/: index.html, hashed assets, and a .gz beside what shrinks.
// `--test` bundles test/*.test.ts into dist-test/ for node's test runner instead.
import { build } from 'esbuild';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';

const MAX_JS_GZ = 80 * 1024;
const shared = { bundle: true, minify: true, format: 'esm', target: 'es2022', metafile: true,
	jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none', logLevel: 'warning' };

async function bundle(entry, outdir, extra = {}) {
	const made = await build({ ...shared, entryPoints: [entry], outdir,
		entryNames: '[name]-[hash]', ...extra });
	return Object.keys(made.metafile.outputs).map((f) => basename(f));
}

async function tests() {
	rmSync('dist-test', { recursive: true, force: true });
	const entries = readdirSync('test').filter((f) => f.endsWith('.test.ts')).map((f) => join('test', f));
	await build({ ...shared, entryPoints: entries, outdir: 'dist-test', minify: false, platform: 'node' });
}

function compress(dir) {
	let js = 0;
	for (const name of readdirSync(dir, { recursive: true, withFileTypes: true })) {
		if (!name.isFile() || !/\.(js|css|html|svg)$/.test(name.name)) continue;
		const path = join(name.parentPath ?? name.path, name.name);
		const plain = readFileSync(path);
		const gz = gzipSync(plain, { level: 9 });
		if (gz.length < plain.length) writeFileSync(path + '.gz', gz);
		if (name.name.endsWith('.js')) js += gz.length;
	}
	return js;
}

async function page() {
	rmSync('dist', { recursive: true, force: true });
	mkdirSync('dist/assets', { recursive: true });
	const [worker] = await bundle('src/worker.ts', 'dist/assets');
	const app = await bundle('src/main.tsx', 'dist/assets', {
		define: { WORKER_URL: JSON.stringify('/assets/' + worker) } });
	const css = await bundle('src/style.css', 'dist/assets');
	const html = readFileSync('src/index.html', 'utf8')
		.replace('{{app}}', '/assets/' + app.find((f) => f.endsWith('.js')))
		.replace('{{css}}', '/assets/' + css.find((f) => f.endsWith('.css')));
	writeFileSync('dist/index.html', html);
	writeFileSync('dist/favicon.svg', readFileSync('src/favicon.svg'));
	const js = compress('dist');
	console.log(`page built: ${(js / 1024).toFixed(1)} KB of JavaScript, gzipped`);
	if (js > MAX_JS_GZ) throw new Error('more JavaScript than the page may have');
}

await (process.argv.includes('--test') ? tests() : page());
