/*
 * doctor.test.mjs - each thing that `tracewell doctor` finds, found after that very thing was broken, and
 * not found before.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { describe, test } from 'node:test';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { saysAnything } from '../oidc_provider.mjs';
import { atEnd, binary, newFolder, sanitized, sqlite, startServer, until } from '../server.mjs';

/* Its messages as { check: [level, text] }, and its exit code. `before`: the program that starts it. */
async function doctor(args, { before = [], env = {} } = {}) {
	const [program, ...rest] = [...before, binary(), 'doctor', '--json', ...args];
	const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
	let out = '';
	child.stdout.setEncoding('utf8').on('data', (text) => (out += text));
	const code = await new Promise((done) => child.once('close', done));
	const said = out.trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));
	for (const s of said) assert.match(s.message, /^\S.{10,}[.?]$/, 'a sentence');
	assert.equal(code, said.some((s) => s.level === 'wrong') ? 1 : 0);
	return { code, said, of: (what) => said.find((s) => s.check === what && s.level !== 'good'), good: (what) => said.some((s) => s.check === what && s.level === 'good') };
}

/* The subject is sound, then broken, then reported at that level with that text. */
async function breaks(args, what, level, words, breaking, options) {
	const before = await doctor(args);
	assert.equal(before.of(what), undefined, `${what} before: ${before.of(what)?.message}`);
	const after = await breaking(() => doctor(args, options));
	const found = (after ?? (await doctor(args, options))).of(what);
	assert.ok(found, `${what} was not reported`);
	assert.equal(found.level, level);
	assert.match(found.message, words);
}

function change(data, ...statements) {
	sqlite(path.join(data, 'catalogue.db'), statements.join(';'));
}

async function stopped(t, fill = async () => {}) {
	const s = await startServer(t);
	await fill(s);
	await s.stop();
	return s.data;
}

const nothing = async () => undefined;

test('a good setup passes, and checking changes nothing', async (t) => {
	const s = await startServer(t);
	await s.trace(sampleTrace(30));
	const list = () => fs.readdirSync(s.data).sort().join();
	const files = list();
	const all = await doctor(['--data', s.data, '--server', s.url, '--key', s.ingest]);
	assert.equal(all.code, 0, JSON.stringify(all.said));
	for (const what of ['open_files', 'seccomp', 'owner', 'disk', 'schema', 'reach', 'ready', 'key']) assert.ok(all.good(what), what);
	assert.equal(list(), files);
	assert.match(all.said.find((x) => x.check === 'key').message, /scope ingest in project test/);
	const text = execFileSync(binary(), ['doctor', '--data', s.data], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
	assert.match(text, /^good: The catalogue has the schema of this program\.$/m);
});

const skip = sanitized() && 'built with a sanitizer'; /* which needs a descriptor that is missing here */

describe('the machine', () => {
	const limited = (...limits) => ({ before: ['prlimit', ...limits] });
	test('too few open files', () => breaks([], 'open_files', 'wrong', /may open 256 files.*LimitNOFILE/, nothing, limited('--nofile=256:256')));
	test('too little memory', { skip }, () => breaks([], 'memory_limit', 'wrong', /1024 MiB of address space/, nothing, limited(`--as=${2 ** 30}`)));

	test('no seccomp, no Landlock', { skip }, async (t) => {
		const dir = newFolder(t, 'tracewell-doctor-');
		const source = path.join(dir, 'old.c');
		const shim = path.join(dir, 'old.so');
		fs.writeFileSync(source, '#include <errno.h>\nint seccomp_load(void *f) { (void)f; return -EINVAL; }\n' +
			'long syscall(long n, ...) { (void)n; errno = ENOSYS; return -1; }\n');
		execFileSync('cc', ['-shared', '-fPIC', '-o', shim, source]);
		const old = await doctor([], { env: { LD_PRELOAD: shim } });
		assert.match(old.of('seccomp').message, /no system call filter.*--worker-jail=false/);
		assert.match(old.of('landlock').message, /no Landlock/);
		assert.equal(old.code, 1);
	});

	test('the port is taken, the address is none', async (t) => {
		const server = net.createServer().listen(0, '127.0.0.1');
		atEnd(t, () => server.close());
		await new Promise((done) => server.once('listening', done));
		const { port } = server.address();
		const taken = await doctor(['--listen', `127.0.0.1:${port}`]);
		assert.match(taken.of('listen').message, /in use.*ss -ltnp/);
		const s = await startServer(t);
		assert.ok((await doctor(['--listen', `127.0.0.1:${s.port}`])).good('listen'), 'a server of its own is there');
		assert.ok((await doctor(['--listen', '127.0.0.1:0'])).good('listen'));
		assert.match((await doctor(['--listen', 'nowhere'])).of('listen').message, /is not an address/);
	});

	test('the files for TLS', async (t) => {
		const dir = newFolder(t, 'tracewell-doctor-');
		const [cert, key] = ['c.pem', 'k.pem'].map((n) => path.join(dir, n));
		fs.writeFileSync(cert, '-----BEGIN CERTIFICATE-----\n');
		fs.writeFileSync(key, '-----BEGIN PRIVATE KEY-----\n', { mode: 0o600 });
		const args = ['--tls-cert', cert, '--tls-key', key];
		assert.ok((await doctor(args)).good('tls'));
		await breaks(args, 'tls', 'wrong', /Other users can read the private key/, async () => void fs.chmodSync(key, 0o644));
		fs.chmodSync(key, 0o600);
		await breaks(args, 'tls', 'wrong', /not a PEM file/, async () => void fs.writeFileSync(cert, 'hello'));
		fs.rmSync(cert);
		assert.match((await doctor(args)).of('tls').message, /No such file/);
		assert.match((await doctor(['--tls-key', key])).of('tls').message, /must be set together/);
	});
});

describe('a data folder', { concurrency: 2 }, () => {
	test('does not exist yet, or is not a folder', async (t) => {
		const dir = newFolder(t, 'tracewell-doctor-');
		const none = await doctor(['--data', path.join(dir, 'none')]);
		assert.deepEqual([none.of('data').level, none.code], ['note', 0]);
		fs.writeFileSync(path.join(dir, 'file'), '');
		assert.equal((await doctor(['--data', path.join(dir, 'file')])).of('data').level, 'wrong');
	});

	test('of other files, or without its catalogue', async (t) => {
		const dir = newFolder(t, 'tracewell-doctor-');
		const other = path.join(dir, 'home');
		fs.mkdirSync(other, { mode: 0o755 });
		fs.mkdirSync(path.join(other, 'lost+found'));
		assert.match((await doctor(['--data', other])).of('mode').message, /mode 755/, 'a new volume is empty');
		fs.writeFileSync(path.join(other, 'letter'), '');
		const wrong = await doctor(['--data', other]);
		assert.match(wrong.of('data').message, /no server has used it\. Check --data/);
		assert.equal(wrong.of('mode'), undefined, 'no advice to change the mode of such a folder');
		assert.equal(wrong.code, 0);
		const data = await stopped(t);
		await breaks(['--data', data], 'lost_catalogue', 'wrong', /no catalogue\. Restore .*check --rebuild/, async () => void fs.renameSync(path.join(data, 'catalogue.db'), path.join(dir, 'away')));
	});

	test('the free space of a small disk is in MB', async (t) => {
		const disk = newFolder(t, 'tracewell-small-');
		if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=20m,mode=700', 'none', disk]).status !== 0) return t.skip('needs the right to mount');
		atEnd(t, () => execFileSync('umount', [disk]));
		const { said } = await doctor(['--data', disk]);
		assert.match(said.find((s) => s.check === 'disk').message, /^100\.0 % of the disk is free \(2[01]\.\d MB\)\.$/);
	});

	test('owner, mode, room', async (t) => {
		const data = await stopped(t);
		const args = ['--data', data];
		await breaks(args, 'mode', 'wrong', /mode 755.*chmod 700/, async () => void fs.chmodSync(data, 0o755));
		fs.chmodSync(data, 0o700);
		assert.match((await doctor([...args, '--min-free', '99'])).of('disk').message, /less than --min-free \(99 %\)/);
		if (process.getuid() !== 0) return t.diagnostic('owner: needs root');
		await breaks(args, 'owner', 'wrong', /belongs to user 65534/, async () => void fs.chownSync(data, 65534, 65534));
	});

	test('the schema is newer, different, unknown or missing', async (t) => {
		const data = await stopped(t);
		const version = Number(sqlite(path.join(data, 'catalogue.db'), 'PRAGMA user_version'));
		await breaks(['--data', data], 'schema', 'wrong', /newer tracewell/, async () => change(data, `PRAGMA user_version=${version + 1}`));
		change(data, `PRAGMA user_version=${version}`);
		await breaks(['--data', data], 'schema', 'wrong', /refuses to start: the catalogue has an unknown column way/, async () => change(data, 'ALTER TABLE alert_rule RENAME method TO way'));
		change(data, 'ALTER TABLE alert_rule RENAME way TO method');
		await breaks(['--data', data], 'schema', 'wrong', /not a catalogue of tracewell/, async () => change(data, 'PRAGMA user_version=0'));
		for (const name of fs.readdirSync(data)) if (/-(wal|shm)$/.test(name)) fs.rmSync(path.join(data, name));
		fs.writeFileSync(path.join(data, 'catalogue.db'), 'no database at all, but long enough to be looked at'.repeat(100));
		assert.match((await doctor(['--data', data])).of('catalogue').message, /cannot be read.*tracewell check/);
	});

	test('the last server was killed', async (t) => {
		const s = await startServer(t);
		await s.trace(sampleTrace(31));
		assert.equal((await doctor(['--data', s.data])).of('unclean_stop'), undefined, 'a server that runs has its log');
		await s.stop('SIGKILL');
		assert.match((await doctor(['--data', s.data])).of('unclean_stop').message, /the next start applies them/);
		await s.start();
		await s.stop();
		assert.equal((await doctor(['--data', s.data])).of('unclean_stop'), undefined);
	});

	test('the clock went back', async (t) => {
		const data = await stopped(t, (s) => s.trace(sampleTrace(32)));
		await breaks(['--data', data], 'clock_back', 'wrong', /the clock went back/, async () => change(data, 'UPDATE trace SET created_ms=created_ms+7200000'));
	});

	test('decodes fail', async (t) => {
		const data = await stopped(t, (s) => s.trace(sampleTrace(33)));
		await breaks(['--data', data], 'decodes', 'wrong', /1 of the 1 uploads.*too odd/, async () => change(data, "UPDATE trace SET state=3, error_status='malformed', error_message='too odd'"));
	});

	test('a trace waits for ever', async (t) => {
		const data = await stopped(t, (s) => s.trace(sampleTrace(34)));
		await breaks(['--data', data], 'queue', 'wrong', /waited for 1666 minutes/, async () =>
			change(data, `INSERT INTO job(project_id,trace_id,due_ms,queued_ms) SELECT project_id,trace_id,0,${Date.now() - 100_000_000} FROM trace`));
	});

	test('names in traces need no mapping', async (t) => {
		const data = await stopped(t, async (s) => {
			await s.trace(JSON.stringify({ traceEvents: [{ ph: 'X', name: 'com.app.Main.start', pid: 1, tid: 1, ts: 0, dur: 9 }] }), { query: { build_id: 'readable' } });
			await s.trace(sampleTrace(36), { query: { build_id: 'ids' } });
			await until(async () => (await s.get('/api/v1/builds')).json.builds.every((b) => b.names.traces === 1), 'names are counted');
		});
		const all = await doctor(['--data', data]);
		assert.match(all.of('mapping').message, /Builds with method ids but no mapping: 1 \(most traces: ids\)/);
		assert.match(all.said.find((x) => x.check === 'names' && x.level === 'good').message, /Builds without a mapping whose traces contain method names: 1\./);
	});

	test('quarantine and missing mappings', async (t) => {
		const data = await stopped(t, async (s) => {
			await s.trace(sampleTrace(35), { query: { build_id: 'named' } });
			await s.put('/api/v1/builds/named/methods', sampleMapping);
		});
		await breaks(['--data', data], 'quarantine', 'note', /1 uploads that crashed their decoders/, async () =>
			change(data, "INSERT INTO quarantine SELECT project_id,trace_id,'crash',11,'',1,1,2,3 FROM trace"));
		await breaks(['--data', data], 'mapping', 'note', /Builds with method ids but no mapping: 1 .*nameless/, async () =>
			change(data, "INSERT INTO build(project_id,build_id,created_ms,traces,names_traces,names_lacking) SELECT project_id,'nameless',1,7,7,7 FROM trace"));
	});
});

describe('a server from outside', () => {
	const pretend = (t, answer) => new Promise((done) => {
		const server = http.createServer(answer).listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${server.address().port}`));
		atEnd(t, () => server.close());
	});

	test('does not answer', async () => {
		assert.match((await doctor(['--server', 'http://127.0.0.1:1'])).of('reach').message, /does not respond: .*firewall/);
		assert.ok((await doctor(['--server', 'http://no.such.host.invalid'])).of('reach'));
	});

	test('is something else, or of another time', async (t) => {
		const other = await pretend(t, (q, r) => r.end('hello'));
		assert.match((await doctor(['--server', other])).of('not_tracewell').message, /A program other than tracewell/);
		const late = await pretend(t, (q, r) => r.setHeader('Date', new Date(Date.now() + 3600_000).toUTCString()).setHeader('Content-Type', 'application/json').end('{"status":"ok"}'));
		assert.match((await doctor(['--server', late])).of('skew').message, /3[56]\d\d seconds ahead/);
	});

	test('is not ready, does not know the key', async (t) => {
		const s = await startServer(t, { args: ['--min-free', '99'] });
		const found = await doctor(['--server', s.url, '--key', 'twi_nonsense']);
		assert.match(found.of('ready').message, /free disk space is below/);
		assert.match(found.of('key').message, /does not know this key/);
		assert.ok((await doctor(['--server', `${s.url}/`, '--key', s.read])).good('key'));
	});
});

test('the OpenID provider is queried as the server does', async (t) => {
	const p = await saysAnything(t);
	const args = ['--oidc-issuer', p.url, '--oidc-loopback-http'];
	const well = await doctor(args);
	assert.ok(well.good('provider') && well.good('provider_keys'), JSON.stringify(well.said));
	const broken = async (what, words, breaking, mending) => {
		breaking();
		const found = (await doctor(args)).of(what);
		mending();
		assert.equal(found?.level, 'wrong', what);
		assert.match(found.message, words);
	};
	await broken('provider', /issuer is https:\/\/evil\.example.*spelled/, () => (p.about = { issuer: 'https://evil.example' }), () => (p.about = {}));
	await broken('provider', /responded with 500/, () => (p.only = (_, res) => res.writeHead(500).end()), () => (p.only = undefined));
	await broken('provider', /token_endpoint is not an https address/, () => (p.about = { token_endpoint: 'http://evil.example/' }), () => (p.about = {}));
	await broken('provider_keys', /responded with 404/, () => (p.only = (at, res) => at === '/keys' && res.writeHead(404).end()), () => (p.only = undefined));
	const { keys } = p;
	await broken('provider_keys', /has 0 keys/, () => (p.keys = []), () => (p.keys = keys));
	assert.ok((await doctor(args)).good('provider_keys'), 'repaired');
	const gone = await doctor(['--oidc-issuer', 'https://127.0.0.1:1']);
	assert.match(gone.of('provider').message, /does not respond/);
	assert.match((await doctor(['--oidc-issuer', 'http://id.example'])).of('provider').message, /is not an https address/);
});

test('the folder of clones: missing, empty, no clone, a link out, borrowed, old', async (t) => {
	const dir = newFolder(t, 'tracewell-doctor-clones-');
	const clones = path.join(dir, 'clones');
	const args = ['--repositories', clones];
	assert.match((await doctor(args)).of('repositories').message, /is not a readable folder/);
	fs.mkdirSync(path.join(clones, 'shop'), { recursive: true });
	assert.match((await doctor(args)).of('repositories').message, /PROJECT\/NAME/);
	const app = path.join(clones, 'shop', 'app');
	execFileSync('git', ['init', '-q', '--bare', app]);
	assert.ok((await doctor(args)).good('repositories'));
	await breaks(args, 'clone', 'wrong', /is not a clone that this user can read/, () => fs.mkdirSync(path.join(clones, 'shop', 'plain')));
	fs.rmdirSync(path.join(clones, 'shop', 'plain'));
	await breaks(args, 'clone', 'wrong', /is a link to a folder outside/, () => fs.symlinkSync(dir, path.join(clones, 'shop', 'out')));
	fs.unlinkSync(path.join(clones, 'shop', 'out'));
	await breaks(args, 'clone_age', 'note', /fetched 30 days ago/, () => {
		fs.writeFileSync(path.join(app, 'FETCH_HEAD'), '');
		fs.utimesSync(path.join(app, 'FETCH_HEAD'), Date.now() / 1000 - 30 * 86400, Date.now() / 1000 - 30 * 86400 - 5);
	});
	await breaks(args, 'clone', 'wrong', /is a shallow clone/, () => fs.writeFileSync(path.join(app, 'shallow'), ''));
	fs.unlinkSync(path.join(app, 'shallow'));
	await breaks(args, 'clone', 'wrong', /uses objects of another folder/, () => fs.writeFileSync(path.join(app, 'objects/info/alternates'), '/elsewhere\n'));
});
