/*
 * documents.test.mjs - the documents are correct: every link within the checkout has a target, and every
 * command in a block of shell is run against a real server in the order of the document, or listed in
 * NOT_RUN with the reason.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { anchorsOf, blocksOf, commandsOf, documents, linksOf, textOf } from '../documents.mjs';
import { btrace, zstd } from '../make.mjs';
import { binary, newFolder, root, startServer, until } from '../server.mjs';

/* [document, how the command begins, why it is not run here]. */
const NOT_RUN = [
	['README.md', './deploy/run', 'installs packages and builds a release: deploy/run is what CI begins with'],
	['README.md', './tests/run', 'runs this test'],
	['deploy/guides/people.md', 'tracewell serve --public-url', 'needs a provider: oidc.test.mjs has one'],
	['deploy/guides/source.md', 'git clone --mirror', 'a repository of the reader: source.test.mjs has one'],
	['deploy/guides/source.md', '*/10 * * * * git', 'a line for cron'],
	['deploy/guides/source.md', 'tracewell serve --data data --repositories', 'stays in the foreground: source.test.mjs'],
	['deploy/guides/source.md', 'tracewell doctor --repositories', 'a folder of the reader: doctor.test.mjs'],
	['deploy/guides/retention.md', 'echo old-app', 'a project of the reader: project_delete.test.mjs'],
	['deploy/guides/retention.md', 'curl --fail -H "Authorization: Bearer $ADMIN" -OJ "$URL/api/v1/quarantine/', 'needs a trace of which decoders died: quarantine.test.mjs'],
	['deploy/guides/retention.md', 'curl -X POST -H "Authorization: Bearer $ADMIN" "$URL/api/v1/quarantine/', 'needs a trace of which decoders died: quarantine.test.mjs'],
	['deploy/guides/storage.md', 'export AWS_ACCESS_KEY_ID', 'needs a store: storage.test.mjs has one'],
	['deploy/guides/storage.md', 'tracewell serve --data data --blobs', 'needs a store: storage.test.mjs has one'],
	['deploy/guides/storage.md', 'tracewell doctor --data data ', 'asks that store'],
	['deploy/guides/postgres.md', 'createdb tracewell', 'needs PostgreSQL: postgres.test.mjs has one'],
	['deploy/guides/postgres.md', 'tracewell serve --data /shared/data', 'needs PostgreSQL: postgres.test.mjs has one'],
	['deploy/guides/migration.md', 'export AWS_ACCESS_KEY_ID', 'needs a store: migrate_store.test.mjs has one'],
	['deploy/guides/migration.md', 'tracewell migrate', 'needs PostgreSQL and a store: migrate_store.test.mjs has both'],
	['deploy/guides/migration.md', 'tracewell serve --data /srv/new', 'needs them too'],
	['deploy/guides/migration.md', 'systemctl stop tracewell', 'needs the package installed: tests/package/package.test.mjs'],
	['deploy/README.md', 'apt install', 'installs the package: tests/package/package.test.mjs does, in a Debian of its own'],
	['deploy/README.md', 'tracewell-admin', 'needs the package installed: tests/package/package.test.mjs'],
	['deploy/README.md', 'docker', 'needs a container engine: tests/run --only docker'],
	['tests/fuzz/README.md', 'tests/fuzz/run', 'minutes of fuzzing: tests/run --only fuzz'],
	['tests/fuzz/README.md', 'ASAN_SYMBOLIZER_PATH', 'needs the fuzz build: tests/run --only fuzz makes it'],
];

test('every link within the checkout has a target, in every document', () => {
	const anchors = new Map();
	const has = (name, anchor) => {
		if (!anchors.has(name)) anchors.set(name, anchorsOf(textOf(name)));
		return anchors.get(name).has(anchor);
	};
	const wrong = [];
	let n = 0;
	for (const name of documents())
		for (const link of linksOf(textOf(name))) {
			n++;
			if (/^(https|mailto):/.test(link)) continue;
			const [file, anchor] = link.split('#');
			const target = file ? path.normalize(path.join(path.dirname(name), decodeURI(file))) : name;
			if (/^[a-z]+:/.test(link) || target.startsWith('..')) wrong.push(`${name}: ${link} leads out of the checkout`);
			else if (!fs.existsSync(path.join(root, target))) wrong.push(`${name}: ${link} is not there`);
			else if (anchor && !has(target, anchor)) wrong.push(`${name}: ${link} has no such heading`);
		}
	assert.deepEqual(wrong, []);
	assert.ok(n > 20, `${n} links were looked at`);
});

test('blocks that look like commands are marked as shell', () => {
	const looks = /^(\.\/|(curl|tracewell|tracewell-admin|git|apt|docker|meson|ninja|npm|node|sudo|systemctl|alias|[A-Z]+=\$\()\b)/m;
	const unmarked = documents().flatMap((name) => blocksOf(textOf(name)).filter((b) => b.language === '' && looks.test(b.text)).map((b) => `${name}:${b.line}`));
	assert.deepEqual(unmarked, []);
});

const MAIN = 4711;
const methods = ['# 11111111-2222-3333-4444-555555555555', '1,1,com.acme.shop.App onCreate ()V', '2,1,com.acme.shop.data.JsonParser parse ()V', '3,1,com.acme.shop.data.Prefs load ()V', ''].join('\n');
const recording = (load) => btrace([[MAIN, 2, 1_001_000_000, load], [MAIN, 3, 1_001_000_000 + load, 90_000_000], [MAIN, 1, 1_000_000_000, load + 100_000_000], [MAIN, 1, 2_500_000_000, 1000]], { pid: MAIN });

/* Files that the documents assume: a recording, a checkout of the app, a fleet of two versions. */
async function prepare(t, s) {
	const at = newFolder(t, 'tracewell-documents-');
	const write = (name, bytes) => (fs.mkdirSync(path.dirname(path.join(at, name)), { recursive: true }), fs.writeFileSync(path.join(at, name), bytes));
	write('rhea-atrace.bin', recording(60_000_000));
	write('rhea-atrace.bin.zst', zstd(recording(60_000_000)));
	write('methodMapping.txt', methods);
	write('methodMapping.txt.zst', zstd(Buffer.from(methods)));
	write('mapping.txt', 'com.acme.shop.data.JsonParser -> a.a:\n    void parse() -> a\n');
	write('threads.txt', `${MAIN},main\n4712,RenderThread\n`);
	write('password', 'correct horse battery\n'.repeat(4));
	write('home/.keep', ''); // without files of the user who runs the tests
	write('bin/.keep', '');
	fs.symlinkSync(binary(), path.join(at, 'bin/tracewell'));
	fs.mkdirSync(path.join(at, 'build-release/server'), { recursive: true });
	fs.symlinkSync(binary(), path.join(at, 'build-release/server/tracewell'));
	fs.symlinkSync(s.data, path.join(at, 'data'));
	for (const args of [['init', '-q'], ['-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-q', '--allow-empty', '-m', 'app: Begin']]) execFileSync('git', args, { cwd: at });
	const key = s.key('ingest', 'default');
	for (const version of ['8.3.0', '8.4.0']) {
		await s.put(`/api/v1/builds/fleet-${version}/methods`, methods, { key });
		for (let i = 0; i < 24; i++)
			await s.post('/api/v1/traces', recording(60_000_000 + i * 100_000 + (version === '8.4.0' ? 30_000_000 : 0)), { key,
				query: { app: 'com.acme.shop', version_name: version, build_id: `fleet-${version}`, scenario: 'cold_start', device: 'Pixel 3a' } });
	}
	const read = s.key('read', 'default');
	await until(async () => {
		const { json } = await s.get('/api/v1/fleet/methods?q=com.acme.shop.data.JsonParser.parse', { key: read });
		return json?.traces === 48 && json.methods[0]?.resolved ? true : undefined;
	}, 'the fleet is counted', 120);
	await s.ask('PUT', '/api/v1/fleet/labels', { key: s.key('admin', 'default'), body: JSON.stringify({ labels: ['experiment'] }) });
	return at;
}

/* One shell per document; the first command that fails ends it. */
const SETUP = `
set -eu -o pipefail
shopt -s expand_aliases
curl() { case " $* " in *" --fail "*) command curl -sS "$@" ;; *) command curl -sS --fail-with-body "$@" ;; esac; }
`;

function runDocument(commands, s, cwd) {
	const each = commands.map(({ text, line }) => `echo ${line} > at\n{ ${text}\n} < password\n`);
	const script = SETUP + each.join('');
	fs.writeFileSync(path.join(cwd, 'script.sh'), script.replaceAll('http://127.0.0.1:8080', s.url));
	return new Promise((done) =>
		execFile('bash', ['script.sh'], { cwd, timeout: 240_000, maxBuffer: 1 << 28, env: { ...process.env, HOME: path.join(cwd, 'home'), PATH: `${cwd}/bin:${process.env.PATH}`, NO_PROXY: '127.0.0.1' } }, (error, stdout, stderr) =>
			done({ code: error ? error.code ?? 1 : 0, stdout, stderr, line: fs.readFileSync(path.join(cwd, 'at'), 'utf8').trim() })));
}

test('every command in every document works, or is named with the reason', async (t) => {
	const used = new Set();
	const reason = (name, command) => NOT_RUN.find(([document, begins]) => document === name && command.startsWith(begins));
	for (const name of documents()) {
		const all = blocksOf(textOf(name)).filter((b) => ['sh', 'bash', 'console', 'shell'].includes(b.language))
			.flatMap((b) => commandsOf(b.text).map((text) => ({ text, line: b.line })));
		const commands = all.filter(({ text }) => {
			const why = reason(name, text);
			if (why) used.add(why);
			return !why;
		});
		if (!commands.length) continue;
		await t.test(name, async (t) => {
			const s = await startServer(t);
			const cwd = await prepare(t, s);
			const from = Date.now();
			const r = await runDocument(commands, s, cwd);
			t.diagnostic(`${name}: ${commands.length} commands in ${((Date.now() - from) / 1000).toFixed(1)} s`);
			assert.equal(r.code, 0, `${name}, the block at line ${r.line}: ${r.stderr.slice(-1500)}\n${r.stdout.slice(-500)}`);
		});
	}
	assert.deepEqual(NOT_RUN.filter((row) => !used.has(row)).map((row) => row.slice(0, 2).join(': ')), [], 'named, and nowhere in the documents any more');
});
