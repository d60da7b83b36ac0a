/*
 * package.test.mjs - what deploy/package makes: the same twice, clean for lintian, a unit that leaves the server
 * the calls it needs, documents that fit the binary; installed, upgraded, removed and purged in a fresh Debian.
 *
 * The fresh Debian is made by debootstrap and wants root and a mirror: PACKAGE_ROOT=no leaves it out.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { linksOf } from '../e2e/documents.mjs';
import { sampleMapping, sampleTrace } from '../e2e/make.mjs';
import { Server, root } from '../e2e/server.mjs';
import { Image } from './container.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-package-'));
const debian = path.join(folder, 'debian');
const unit = path.join(root, 'deploy/tracewell.service');
const noRoot = process.getuid() !== 0 || process.env.PACKAGE_ROOT === 'no' ? 'needs root and a mirror' : false;
const OLD = '0.0.9';
let version;

const run = (program, args, options = {}) => execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...options });
const deb = (v = version) => path.join(folder, v, fs.readdirSync(path.join(folder, v)).find((name) => name.endsWith('.deb')));
const sums = (v) => fs.readFileSync(path.join(folder, v, 'SHA256SUMS'), 'utf8');

function make(v, out = v) {
	run('deploy/package', ['--version', v, '--out', path.join(folder, out)], { cwd: root });
}

before(() => {
	version = /version: '([^']+)'/.exec(fs.readFileSync(path.join(root, 'meson.build'), 'utf8'))[1];
	make(version);
	make(OLD);
});

const image = new Image(folder);

after(() => {
	spawnSync('umount', ['-l', path.join(debian, 'proc')]);
	image.close();
	fs.rmSync(folder, { recursive: true, force: true });
});

test('made twice, it is the same to the byte; the sums are true', () => {
	make(version, 'again');
	assert.equal(sums('again'), sums(version));
	run('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: path.join(folder, version) });
});

test('lintian finds nothing but the address of nobody', () => {
	const { stdout } = spawnSync('lintian', ['--allow-root', '--fail-on', 'none', deb()], { encoding: 'utf8' });
	const found = stdout.split('\n').filter((line) => /^[EW]: /.test(line) && !line.includes('bogus-mail-host'));
	assert.deepEqual(found, []);
});

test('the changelog is the one of the source, as programs of Debian read it', () => {
	const at = path.join(folder, 'changelog-of');
	run('dpkg-deb', ['-x', deb(), at]);
	const said = run('zcat', [path.join(at, 'usr/share/doc/tracewell/changelog.gz')]);
	const read = run('dpkg-parsechangelog', ['-l', '-'], { input: said, stdio: ['pipe', 'pipe', 'pipe'] });
	assert.match(read, new RegExp(`^Version: ${version.replaceAll('.', '\\.')}$`, 'm'));
	const [, first] = /^- (.*)$/m.exec(fs.readFileSync(path.join(root, 'CHANGELOG.md'), 'utf8'));
	const words = (text) => text.replaceAll(/[`*]|\[|\]\([^)]*\)/g, '').split(/\s+/).join(' ');
	assert.ok(words(said).includes(words(first)), words(said).slice(0, 300));
	assert.ok(said.split('\n').every((line) => line.length <= 100));
});

test('every link in the packaged documents leads to a file of the package', () => {
	const at = path.join(folder, 'documents-of');
	run('dpkg-deb', ['-x', deb(), at]);
	const documents = path.join(at, 'usr/share/doc/tracewell');
	const names = fs.readdirSync(documents, { recursive: true }).filter((name) => name.endsWith('.md'));
	const local = names.flatMap((name) => linksOf(fs.readFileSync(path.join(documents, name), 'utf8')).filter((link) => !/^([a-z]+:|#)/.test(link)).map((link) => [name, link.split('#')[0]]));
	assert.ok(local.length > 100, `${local.length} links`);
	assert.deepEqual(local.filter(([name, link]) => !fs.existsSync(path.join(documents, path.dirname(name), link))), []);
	for (const name of ['deploy/guides/pictures/trace.webp', 'deploy/device/hooks/Tracing.java', 'deploy/alerts.yml', 'deploy/grafana.json', 'server/decisions/README.md'])
		assert.ok(fs.existsSync(path.join(documents, name)), name);
});

test('the tar has the source and the page, so that it builds without npm', () => {
	const names = run('tar', ['-tzf', path.join(folder, version, `tracewell-${version}.tar.gz`)]).split('\n');
	for (const name of ['meson.build', 'web/dist/index.html', 'server/main.c', 'deploy/tracewell.service'])
		assert.ok(names.includes(`tracewell-${version}/${name}`), name);
	assert.ok(!names.some((name) => name.includes('node_modules')));
});

test('the unit is well formed and leaves little to a server that was taken over', () => {
	const exposure = run('systemd-analyze', ['security', '--offline=true', unit]);
	const level = Number(/Overall exposure level for \S+: ([0-9.]+)/.exec(exposure)[1]);
	assert.ok(level <= 1.5, exposure);
	const { stderr } = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' });
	const said = stderr.split('\n').filter((line) => line.includes('tracewell.service') && !/not executable|Command 'man/.test(line));
	assert.deepEqual(said, []);
});

/* A script that the tests' server starts in place of the binary. */
function wrapper(name, text) {
	const file = path.join(folder, name);
	fs.writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
	process.env.TRACEWELL = file;
}

async function serves(data, args, check) {
	const s = new Server(data, args, {});
	await s.start();
	try {
		await check(s);
	} finally {
		await s.stop();
	}
	assert.match(s.log, /event=stopped exit=0/);
}

async function uploads(s) {
	assert.equal((await s.put('/api/v1/builds/b/methods', sampleMapping)).status < 300, true);
	const trace = await s.trace(sampleTrace(), { query: { build_id: 'b' } });
	assert.equal(trace.state, 'ready', JSON.stringify(trace));
	assert.equal((await s.get('/')).status, 200);
	assert.ok((await s.get(`/api/v1/traces/${trace.id}/perfetto`)).bytes.length > 100);
	return trace.id;
}

test('with the calls that the unit leaves, uploads are taken, decoded and read', async () => {
	wrapper('under-unit', `exec /usr/bin/python3 ${root}/tests/package/under_unit.py ${unit} ${root}/build-package/server/tracewell "$@"`);
	const data = path.join(folder, 'data');
	await serves(data, [], uploads);
	run(process.env.TRACEWELL, ['check', '--data', data]);
});

test('that filter is one: what it does not name is refused', () => {
	const { status, stderr } = spawnSync('/usr/bin/python3', [path.join(root, 'tests/package/under_unit.py'), unit, '/usr/sbin/chroot', '/', 'true'], { encoding: 'utf8' });
	assert.notEqual(status, 0);
	assert.match(stderr, /Operation not permitted/);
});

test('every setting of the configuration file is one that the server takes', async () => {
	const made = path.join(folder, 'documents');
	run(path.join(root, 'deploy/documents.py'), [made, version, '2026-01-01']);
	const all = fs.readFileSync(path.join(made, 'tracewell.conf'), 'utf8').replace(/^#(?! )/gm, '');
	const settings = all.split('\n').filter((line) => /^[a-z]/.test(line));
	assert.ok(settings.length > 50, all);
	const file = path.join(folder, 'all.conf');
	fs.writeFileSync(file, settings.filter((line) => !/= *$/.test(line)).join('\n') + '\n');
	wrapper('plain', `exec ${root}/build-package/server/tracewell "$@"`);
	await serves(path.join(folder, 'data'), ['--config', file], async (s) => assert.equal((await s.get('/readyz', { key: null })).status, 200));
});

test('the man page has no mistakes and every command of the binary', () => {
	const page = path.join(folder, 'documents/tracewell.1');
	for (const file of [page, path.join(root, 'deploy/debian/tracewell-admin.8')])
		assert.equal(spawnSync('man', ['--warnings', '-E', 'UTF-8', '-l', '-Tutf8', '-Z', file], { encoding: 'utf8' }).stderr, '');
	const text = fs.readFileSync(page, 'utf8').replaceAll('\\-', '-').replaceAll('\\e', '\\');
	const help = run(`${root}/build-package/server/tracewell`, ['help']);
	const commands = [...help.matchAll(/^ {2}tracewell (\S.*)$/gm)].map((m) => m[1]);
	assert.ok(commands.length > 15);
	for (const command of commands) assert.ok(text.includes(`.B ${command}\n`), command);
});

test('bash completes commands, flags and choices; zsh reads its file', () => {
	const complete = (...line) =>
		run('bash', ['-c', `. ${folder}/documents/tracewell.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tracewell; printf '%s\\n' "\${COMPREPLY[@]}"`, '_', 'tracewell', ...line]).trim().split('\n');
	assert.deepEqual(complete('doc'), ['doctor']);
	assert.ok(complete('serve', '--tls-').includes('--tls-cert'));
	assert.deepEqual(complete('user', 'pass'), ['passwd']);
	assert.ok(complete('check', '--').includes('--repair'));
	run('zsh', ['-n', path.join(folder, 'documents/_tracewell')]);
});

test('tracewell-admin: as the service\'s user on its folder, with its secrets', { skip: noRoot }, () => {
	const at = path.join(folder, 'admin');
	fs.mkdirSync(at);
	fs.writeFileSync(path.join(at, 'systemd-run'), '#!/bin/sh\nprintf \'%s\\n\' "$@"\n', { mode: 0o755 });
	const asked = (...args) => {
		const r = spawnSync('sh', [path.join(root, 'deploy/debian/tracewell-admin'), ...args], { encoding: 'utf8', env: { ...process.env, PATH: `${at}:${process.env.PATH}` } });
		return r.stdout.split('\n').slice(r.stdout.split('\n').indexOf('/usr/bin/tracewell') + 1).join(' ').trim();
	};
	assert.equal(asked('link', 'create', '--url', 'http://here'), 'link create --url http://here --data /var/lib/tracewell');
	assert.equal(asked('key', 'list', '--project', 'a b'), 'key list --project a b --data /var/lib/tracewell');
	assert.equal(asked('link', 'create'), 'link create --data /var/lib/tracewell');
	const secrets = 'EnvironmentFile=-/etc/tracewell/secrets.env';
	for (const file of ['debian/tracewell-admin', 'tracewell.service', 'tracewell-backup.service']) assert.ok(fs.readFileSync(path.join(root, 'deploy', file), 'utf8').includes(secrets), file);
});

/* From where this machine has its packages. */
function mirror() {
	const sites = run('apt-get', ['indextargets', '--format', '$(SITE) $(RELEASE)', 'Created-By: Packages']).split('\n');
	return sites.filter((line) => line.endsWith(' bookworm')).slice(0, 1).map((line) => line.split(' ')[0]);
}

/* A temporary folder of the caller need not exist there. */
const inside = (...args) => run('chroot', [debian, 'env', '-u', 'TMPDIR', 'DEBIAN_FRONTEND=noninteractive', 'LC_ALL=C', 'PATH=/usr/sbin:/usr/bin:/sbin:/bin', ...args]);
const there = (name) => fs.existsSync(path.join(debian, name));

function install(v) {
	fs.copyFileSync(deb(v), path.join(debian, 'tmp/tracewell.deb'));
	return inside('apt-get', '-q', '-y', '-o', 'Dpkg::Options::=--force-confold', '--no-install-recommends', 'install', '/tmp/tracewell.deb');
}

test('in a fresh Debian: installed, upgraded with its data and settings, removed, purged', { skip: noRoot }, async (t) => {
	const made = spawnSync('debootstrap', ['--variant=minbase', 'bookworm', debian, ...mirror()], { encoding: 'utf8' });
	if (made.status !== 0) return t.skip(`debootstrap: ${(made.stdout ?? '').slice(-300)}`);
	run('mount', ['-t', 'proc', 'proc', path.join(debian, 'proc')]);
	const began = Date.now();
	const said = install(OLD);
	assert.match(said, /tracewell-admin link create/, 'what to do next');
	assert.match(inside('tracewell', 'version'), /^tracewell \d/);
	for (const name of ['lib/systemd/system/tracewell.service', 'lib/systemd/system/tracewell-backup.timer', 'etc/tracewell/tracewell.conf', 'usr/share/man/man1/tracewell.1.gz',
		'etc/systemd/system/multi-user.target.wants/tracewell.service']) assert.ok(fs.lstatSync(path.join(debian, name)), name);

	inside('install', '-d', '-o', '4000', '-g', '4000', '-m', '700', '/var/lib/tracewell');
	wrapper('in-debian', `exec env -u TMPDIR chroot --userspec=4000:4000 ${debian} /usr/bin/tracewell "$@"`);
	const config = ['--config', '/etc/tracewell/tracewell.conf'];
	let id;
	await serves('/var/lib/tracewell', config, async (s) => (id = await uploads(s)));
	t.diagnostic(`from a fresh Debian to a decoded trace: ${((Date.now() - began) / 1000).toFixed(1)} s`);

	fs.appendFileSync(path.join(debian, 'etc/tracewell/tracewell.conf'), 'log-level = debug\n');
	const again = install(version);
	assert.doesNotMatch(again, /link create/, 'an upgrade says nothing');
	assert.match(inside('dpkg-query', '-W', '-f=${Version}', 'tracewell'), new RegExp(`^${version}$`));
	assert.match(fs.readFileSync(path.join(debian, 'etc/tracewell/tracewell.conf'), 'utf8'), /^log-level = debug$/m);
	await serves('/var/lib/tracewell', config, async (s) => {
		assert.equal((await s.get(`/api/v1/traces/${id}`)).json.state, 'ready');
		await uploads(s);
	});

	inside('apt-get', '-q', '-y', 'remove', 'tracewell');
	assert.ok(!there('usr/bin/tracewell'));
	assert.ok(there('etc/tracewell/tracewell.conf') && there('var/lib/tracewell/catalogue.db'), 'settings and data stay');
	inside('apt-get', '-q', '-y', 'purge', 'tracewell');
	for (const name of ['etc/tracewell', 'var/lib/tracewell', 'lib/systemd/system/tracewell.service', 'lib/systemd/system/tracewell-backup.timer',
		'etc/systemd/system/multi-user.target.wants/tracewell.service', 'etc/systemd/system/tracewell.service'])
		assert.ok(!fs.lstatSync(path.join(debian, name), { throwIfNoEntry: false }), `${name} is gone`);
});

test('the image: built, then run as nobody with a root that is read-only; healthy, and unhealthy', { skip: noRoot }, async (t) => {
	if (!there('usr/bin/apt-get')) return t.skip('there is no fresh Debian');
	spawnSync('umount', ['-l', path.join(debian, 'proc')]);
	image.build(debian, path.join(folder, version));
	const { health, command } = image.verify();
	const data = path.join(folder, 'volume');
	const program = image.wrapper(path.join(folder, 'in-image'), data);
	const healthy = (port) => spawnSync(program, health.slice(1).map((arg) => arg.replace(':8080', `:${port}`)), { encoding: 'utf8' });
	assert.equal(command[0], 'serve');
	process.env.TRACEWELL = program;
	let port;
	await serves('/data', command.slice(1).filter((arg, i, all) => !/^--(data|listen)$/.test(arg) && !/^--(data|listen)$/.test(all[i - 1])), async (s) => {
		await uploads(s);
		port = new URL(s.url).port;
		const { status, stdout } = healthy(port);
		assert.equal(status, 0, stdout);
	});
	assert.notEqual(healthy(port).status, 0, 'nobody answers');
	assert.ok(fs.existsSync(path.join(data, 'catalogue.db')));
});
