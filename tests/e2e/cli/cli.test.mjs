/*
 * cli.test.mjs - behaviour common to all subcommands: exit codes of the guide's table, valid --json,
 * colours and progress only on terminals; and `watch` and `top` against a real server.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';

import { btrace, sampleMapping, sampleTrace } from '../make.mjs';
import { atEnd, binary, makeData, newFolder, root, startServer, until } from '../server.mjs';
import { sendSlower } from '../regressed_fleet.mjs';

/* `input` null: standard input is empty.  `enough`: for a program that runs until it is ended, the output to wait for. */
function run(args, { input = '', env = {}, program = binary(), timeout = 60_000, cwd, enough } = {}) {
	return new Promise((done) => {
		const child = execFile(program, args, { env: { ...process.env, TRACEWELL_KEY: '', ...env }, timeout, cwd, maxBuffer: 1 << 26 }, (error, stdout, stderr) =>
			done({ code: error ? error.code : 0, stdout, stderr }));
		child.stdin.on('error', () => {}).end(input);
		let printed = '';
		if (enough) child.stdout.on('data', (piece) => enough.test((printed += piece)) && child.kill());
	});
}

/* The same on a terminal of 24 lines and 100 columns; both streams come as one. */
const quote = (s) => `'${s.replaceAll("'", "'\\''")}'`;
const onTerminal = (args, { env, ...options } = {}) =>
	run(['-qec', `stty rows 24 columns 100; ${[binary(), ...args].map(quote).join(' ')}`, '/dev/null'], { program: 'script', env: { TERM: 'xterm', NO_COLOR: '', ...env }, ...options });

const lines = (text) => text.trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));

function folder(t) {
	return newFolder(t, 'tracewell-cli-');
}

/* The commands that `tracewell help` lists, each once. */
async function commands() {
	const { stdout } = await run(['help']);
	return [...new Set([...stdout.matchAll(/^ {2}tracewell (\w+)/gm)].map((m) => m[1]))];
}

test('for every subcommand help succeeds and an unknown flag is wrong usage', async () => {
	const names = (await commands()).filter((name) => name !== 'version' && name !== 'help');
	assert.ok(names.length >= 20, names.join());
	for (const name of names) {
		const helped = await run([name, '--help']);
		assert.equal(helped.code, 0, `${name} --help: ${helped.stderr}`);
		assert.match(helped.stdout, /usage|--data/, name);
		const odd = await run([name, '--nonsense']);
		assert.equal(odd.code, 2, `${name} --nonsense`);
		assert.equal(odd.stdout, '', name);
	}
	assert.equal((await run([])).code, 2);
	assert.equal((await run(['nonsense'])).code, 2);
	assert.equal((await run(['help'])).code, 0);
	assert.match((await run(['help', 'push'])).stdout, /^usage: tracewell push /);
	for (const name of ['version', 'help']) assert.match((await run(['help', name])).stdout, new RegExp(`^usage: tracewell ${name} `));
	assert.equal((await run(['help', 'nonsense'])).code, 2);
	assert.deepEqual(lines((await run(['version', '--json'])).stdout).map((v) => typeof v.version), ['string']);
});

/* What each command lacks when it is called with these arguments alone; null: nothing. */
const LACKS = {
	serve: null, rollup: null, check: null, audit: null, doctor: null,
	key: [[[], 'specify an action: create, list, rotate or revoke'], [['create', '--scope', 'read'], '--project'], [['create', '--project', 'p'], '--scope'], [['revoke', '--project', 'p'], 'ID']],
	user: [[[], 'specify an action: create, passwd, role, list, remove, disable, enable or unlink'], [['role', 'ann'], '--role'], [['passwd'], 'NAME']],
	link: [[[], 'specify an action: create']],
	project: [[[], 'specify an action: list or delete'], [['delete'], 'NAME']],
	decode: [[[], 'FILE']], open: [[[], 'FILE']], import: [[[], 'FILE']],
	perfetto: [[[], 'FILE'], [['x'], '--output']],
	export: [[[], 'FILE'], [['x', '-o', 'y'], '--to'], [['x', '--to', 'csv'], '--output'], [['--project', 'p'], '--output']],
	sql: [[[], 'FILE-OR-ID'], [['x'], 'QUERY']],
	compare: [[[], '--server'], [['--server', 'x', '--key', 'k'], '--base'], [['--server', 'x', '--key', 'k', '--base', '1'], '--head']],
	watch: [[[], '--server'], [['--server', 'x'], '--key or TRACEWELL_KEY in the environment']],
	top: [[[], '--server'], [['--server', 'x'], '--key or TRACEWELL_KEY in the environment']],
	mcp: [[[], '--server'], [['--server', 'x'], '--key or TRACEWELL_KEY in the environment']],
	backup: [[[], '--to']],
	migrate: [[[], '--from'], [['--from', 'x'], '--data']],
	push: [[['x'], '--server'], [['x', '--server', 'x'], '--key or TRACEWELL_KEY in the environment'], [['--server', 'x', '--key', 'k'], 'nothing to send'], [['--server', 'x', '--key', 'k', '--mapping', 'm'], '--build-id']],
};

test('each command names the missing argument', async () => {
	const names = (await commands()).filter((name) => name !== 'version' && name !== 'help');
	assert.deepEqual(Object.keys(LACKS).sort(), names.sort(), 'every command is here');
	for (const [name, calls] of Object.entries(LACKS))
		for (const [args, lack] of calls ?? []) {
			const r = await run([name, ...args], { env: { TRACEWELL_KEY: '' } });
			assert.equal(r.code, 2, `${name} ${args.join(' ')}: ${r.stderr}`);
			assert.equal(r.stdout, '');
			assert.ok(r.stderr.split('\n')[0].includes(/^(specify|nothing)/.test(lack) ? lack : `${lack} is missing`), `${name} ${args.join(' ')}: ${r.stderr}`);
		}
});

test('each wrong word is answered with the right ones', async () => {
	let tried = 0;
	for (const name of Object.keys(LACKS)) {
		const said = (await run([name, '--help'])).stdout;
		for (const [, flag, list] of said.matchAll(/--([a-z0-9-]+) ([a-z0-9_-]+(?:\|[a-z0-9_-]+)+)(?![A-Z|:])/g)) {
			if (name === 'serve') continue;
			const r = await run([name, ...(LACKS[name]?.[0][0] ?? []), `--${flag}`, 'nonsense']);
			assert.equal(r.code, 2, `${name} --${flag}: ${r.stderr}`);
			assert.match(r.stderr, new RegExp(`^tracewell ${name}.*: --${flag} must be .*, not "nonsense"`), `${name} --${flag}`);
			for (const word of list.split('|')) assert.ok(r.stderr.split('\n')[0].includes(word), `${name} --${flag} ${word}: ${r.stderr}`);
			tried++;
		}
	}
	assert.ok(tried >= 9, `${tried} flags with a list of words`);
	for (const [args, right] of [
		[['watch', '--every', '0'], 'a number from 1 to 3600'], [['top', '--limit', 'x'], 'a number from 1 to 200'], [['audit', '--limit', '-1'], 'a number from 1 to'],
		[['open', '--port', '65536'], 'a number from 0 to 65535'], [['doctor', '--min-free', '100'], 'a number from 0 to 99'], [['link', '--hours', '0'], 'a number from 1 to'],
		[['key', '--expires', 'soon'], 'like 90d, 12h or 30m, or never'], [['export', '--range', '5..1'], 'FROM..TO in nanoseconds'], [['perfetto', '--align', 'slice:'], 'clock, start or slice:NAME'],
		[['push', '--wait=done'], 'ready or counted'], [['push', '--meta', 'odd'], 'K=V'], [['push', '--part', 'odd='], 'NAME=FILE'], [['top', '--where', 'odd'], 'K=V'],
		[['serve', '--max-body', '3'], 'a size from 1K to 16G'], [['serve', '--http-threads', 'x'], 'a number from 1 to'], [['serve', '--log-level', 'loud'], 'debug, info, warn or error'],
		[['serve', '--behind-proxy=perhaps'], 'true or false'], [['serve', '--role', 'king'], 'ingest, decode, query or all'], [['serve', '--public-url', 'traces.example'], 'http:// or https://'], [['serve', '--listen', 'here'], 'ADDRESS:PORT'],
	]) {
		const r = await run(args);
		assert.equal(r.code, 2, `${args.join(' ')}: ${r.stderr}`);
		assert.ok(/ must (be|begin with) /.test(r.stderr) && r.stderr.includes(right), `${args.join(' ')}: ${r.stderr}`);
	}
	for (const [args, says] of [
		[['compare', '--server', 'x', '--key', 'k', '--base', '1', '--head', '2', '--markdown', '--json'], '--markdown and --json exclude each other'], [['check', '--rebuild', '--quick'], '--rebuild excludes --quick'],
		[['perfetto', 'x', '-o', 'y', '--from', '5', '--to', '5'], '--from must be less than --to'], [['decode', 'a', 'b'], 'unexpected argument "b"'], [['key', 'make'], '"make" is unknown: use create, list, rotate or revoke'], [['check', '--quick=yes'], '--quick takes no value'],
	]) {
		const r = await run(args);
		assert.equal(r.code, 2, `${args.join(' ')}: ${r.stderr}`);
		assert.ok(r.stderr.includes(says), `${args.join(' ')}: ${r.stderr}`);
	}
});

test('unreadable files and unreachable servers are reported without error numbers', async (t) => {
	const at = folder(t), no = path.join(at, 'none');
	const to = ['--server', 'http://127.0.0.1:9', '--key', 'k'];
	fs.writeFileSync(path.join(at, 'a.trace'), sampleTrace(9));
	for (const [args, says] of [
		[['decode', no], 'No such file'], [['decode', at], 'Is a directory'], [['decode', path.join(at, 'a.trace'), '--mapping', no], 'No such file'], [['open', no], 'No such file'],
		[['export', no, '--to', 'csv', '-o', path.join(at, 'x')], 'No such file'], [['perfetto', no, '-o', path.join(at, 'x')], 'No such file'], [['perfetto', path.join(at, 'a.trace'), '--system', no, '-o', path.join(at, 'x')], 'No such file'],
		[['export', path.join(at, 'a.trace'), '--to', 'csv', '-o', path.join(no, 'x')], 'No such file'], [['sql', no, 'SELECT 1'], 'No such file'], [['import', no, '--data', path.join(at, 'new')], 'No such file'],
		[['check', '--data', no], 'not a data folder'], [['audit', '--data', no], 'not a data folder'], [['rollup', '--data', no], 'not a data folder'], [['backup', '--data', no, '--to', path.join(at, 'copy')], 'not a data folder'],
		[['key', 'list', '--data', no, '--project', 'p'], 'not a data folder'], [['user', 'list', '--data', no], 'not a data folder'], [['link', 'create', '--data', no], 'not a data folder'], [['migrate', '--from', no, '--data', path.join(at, 'new2')], 'data folder'],
		[['top', ...to], '127.0.0.1:9: Connection refused'], [['watch', ...to, '--once'], '127.0.0.1:9: Connection refused'], [['doctor', ...to], 'http://127.0.0.1:9'], [['serve', '--data', path.join(at, 'a.trace'), '--listen', '127.0.0.1:0'], 'is not a folder'],
	]) {
		const r = await run(args);
		assert.ok(r.code === 1 || r.code === 3, `${args.join(' ')}: ${r.code} ${r.stderr}`);
		assert.match(r.stderr + r.stdout, new RegExp(says), args.join(' '));
		assert.doesNotMatch(r.stderr.replaceAll(at, ''), /errno|\b(E[A-Z]{3,}|error \d|\(\d+\))/, args.join(' '));
	}
});

/* Every way to end that deploy/guides/commands.md names, made to happen. */
test('exit codes are those of deploy/guides/commands.md', async (t) => {
	const s = await startServer(t);
	const at = folder(t);
	const file = (name) => path.join(at, name);
	fs.writeFileSync(file('a.trace'), sampleTrace(9));
	fs.writeFileSync(file('odd.trace'), 'no trace at all');
	fs.writeFileSync(file('plain'), 'a file');
	await sendSlower(s, 15);
	const to = ['--server', s.url, '--key', s.read];
	const nobody = ['--server', 'http://127.0.0.1:9', '--key', s.read];
	await makeData(file('fresh'));
	await run(['key', 'create', '--data', file('fresh'), '--project', 'p', '--scope', 'read']);
	const broken = file('broken');
	await run(['backup', '--data', s.data, '--to', broken]);
	const blobs = fs.readdirSync(path.join(broken, 'blobs'), { recursive: true }).map((name) => path.join(broken, 'blobs', name)).filter((name) => fs.statSync(name).isFile());
	for (const blob of blobs) fs.appendFileSync(blob, 'more');
	const seen = {
		'every command': { 0: ['key', 'list', '--data', file('fresh'), '--project', 'p'], 1: ['audit', '--data', file('none')], 2: ['key', 'nonsense'] },
		check: { 0: ['check', '--data', file('fresh')], 1: ['check', '--data', broken], 2: ['check', 'x'] },
		doctor: { 0: ['doctor', '--server', s.url, '--key', s.ingest], 1: ['doctor', '--server', 'http://127.0.0.1:9'], 2: ['doctor', 'x'] },
		backup: { 0: ['backup', '--data', s.data, '--to', file('copy')], 1: ['backup', '--data', broken, '--to', file('copy2')], 2: ['backup', '--data', s.data] },
		push: { 0: ['push', '--server', s.url, '--key', s.ingest, file('a.trace')], 1: ['push', '--server', s.url, '--key', s.ingest, file('odd.trace'), file('a.trace')], 2: ['push', file('a.trace')] },
		compare: {
			0: ['compare', ...to, '--base', '8.3.0', '--head', '8.3.1', '--where', 'scenario=slower', '--fail-if', 'p50(slower) > +90%'],
			1: ['compare', ...to, '--base', '8.3.0', '--head', '8.3.1', '--where', 'scenario=slower', '--fail-if', 'p50(slower) > +5%'],
			2: ['compare', ...to, '--base', 'none', '--head', 'none'], 3: ['compare', '--server', s.url, '--key', 'twr_nonsense', '--base', '1', '--head', '1'],
		},
		'watch`, `top': { 0: ['watch', ...to, '--once'], 1: null /* below */, 2: ['top', ...to, '--where', 'class=odd'], 3: ['top', ...nobody] },
		migrate: { 0: null /* migrate.test.mjs, as is 1 */, 1: null, 2: ['migrate', '--from', s.data] },
		serve: { 0: null /* drain.test.mjs */, 1: ['serve', '--data', file('plain'), '--listen', '127.0.0.1:0'], 2: ['serve', '--listen'] },
	};
	const guide = fs.readFileSync(path.join(root, 'deploy/guides/commands.md'), 'utf8');
	const table = /\n## Exit codes\n[^]*?\n\| \| 0 \| 1 \| 2 \| 3 \|\n\|[-|]+\n([^]*?)\n(?:\n|$)/.exec(guide);
	assert.ok(table, 'deploy/guides/commands.md: Exit codes');
	const rows = table[1].split('\n').map((row) => row.slice(1, -1).split('|').map((cell) => cell.trim()));
	assert.deepEqual(rows.map((row) => row[0].replace(/^`|`$/g, '')).sort(), Object.keys(seen).sort());
	for (const [name, ...cells] of rows)
		await t.test(name, async () => {
			const ways = seen[name.replace(/^`|`$/g, '')];
			cells.forEach((cell, code) => assert.equal(cell !== '', code in ways, `${name} ${code}: the table and the test know the same codes`));
			for (const [code, args] of Object.entries(ways)) {
				if (!args) continue;
				const r = await run(args);
				assert.equal(r.code, Number(code), `${args.join(' ')}: ${r.stdout}${r.stderr}`);
				if (r.code) assert.notEqual(r.stderr + r.stdout, '', 'says why');
			}
		});
	await t.test('an output that cannot be written is a failure', async () => {
		const full = (args) => run(['-c', `${[binary(), ...args].map(quote).join(' ')} >/dev/full`], { program: 'sh' });
		for (const args of [['top', ...to], ['top', ...to, '--json'], ['watch', ...to, '--once'], ['doctor', '--json'], ['decode', file('a.trace'), '--json'], ['version']]) {
			const r = await full(args);
			assert.equal(r.code, 1, `${args.join(' ')}: ${r.stderr}`);
			assert.match(r.stderr, /the output cannot be written/, args[0]);
		}
	});
	await t.test('invalid requests are wrong usage', async () => {
		for (const name of ['top', 'watch']) {
			const once = name === 'watch' ? ['--once'] : [];
			for (const args of [[...to, '--where', `q=${'x'.repeat(20_000)}`], ['--server', 'ftp://127.0.0.1', '--key', s.read], ['--server', s.url], ['--server', s.url, '--key', '']])
				assert.equal((await run([name, ...args, ...once])).code, 2, `${name} ${args}`.slice(0, 200));
		}
		for (const args of [['--server', 'ftp://127.0.0.1', '--key', 'k'], ['--server', s.url], ['--server', s.url, '--key', 'k', '--meta', 'odd']]) assert.equal((await run(['push', ...args, file('a.trace')])).code, 2, args.join(' '));
	});
	await t.test('watch and top refuse with 3 whom the server does not know', async () => {
		for (const name of ['watch', 'top']) assert.equal((await run([name, '--server', s.url, '--key', 'twr_nonsense', ...(name === 'watch' ? ['--once'] : [])])).code, 3);
	});
});

test('one server uses a data folder; once it was killed, another starts at once', async (t) => {
	const s = await startServer(t);
	const { id } = await s.trace(sampleTrace(9));
	const second = await run(['serve', '--data', s.data, '--listen', '127.0.0.1:0', ...s.args]);
	assert.equal(second.code, 1, second.stdout);
	assert.match(second.stderr, /a server or backup uses this data folder|another server uses this catalogue/);
	assert.equal((await s.get(`/api/v1/traces/${id}`)).status, 200);
	s.child.kill('SIGKILL');
	await s.ended;
	await s.start();
	assert.equal((await s.get(`/api/v1/traces/${id}`)).status, 200);
});

test('a command waits for the catalogue of a server that makes its data folder', async (t) => {
	const data = await makeData(path.join(folder(t), 'data'));
	const [catalogue, away] = ['catalogue.db', 'away.db'].map((name) => path.join(data, name));
	fs.renameSync(catalogue, away);
	const child = spawn(binary(), ['link', 'create', '--data', data]);
	let printed = '', ended = false;
	child.stdout.on('data', (piece) => { printed += piece; });
	const end = new Promise((done) => child.on('close', (code) => { ended = true; done(code); }));
	await until(() => {
		assert.ok(!ended, 'it waits');
		const [, waits] = /^voluntary_ctxt_switches:\s*(\d+)/m.exec(fs.readFileSync(`/proc/${child.pid}/status`, 'utf8'));
		return Number(waits) > 5 || undefined;
	}, 'it looks again and again');
	fs.renameSync(away, catalogue);
	assert.equal(await end, 0);
	assert.match(printed, /\/signin#twl_/);
});

test('--json is JSON, an object a line', async (t) => {
	const s = await startServer(t);
	const at = folder(t);
	const file = (name) => path.join(at, name);
	fs.writeFileSync(file('a.bin'), sampleTrace(9));
	fs.writeFileSync(file('b.bin'), btrace([[4000, 1, 1, 5]]));
	fs.writeFileSync(file('odd.bin'), 'nothing');
	fs.writeFileSync(file('map'), sampleMapping);
	const data = ['--data', s.data];
	const json = async (...args) => {
		const r = await run([...args, '--json'], { input: 'correct horse battery\n' });
		assert.equal(r.code, 0, `${args.join(' ')}: ${r.stderr}`);
		return lines(r.stdout);
	};
	const [made] = await json('key', 'create', ...data, '--project', 'test', '--scope', 'read', '--expires', '2d');
	assert.match(made.secret, /^twr_/);
	assert.ok(made.expires_ms > Date.now());
	assert.deepEqual((await json('key', 'list', ...data, '--project', 'test')).map((k) => [k.id, k.scope, k.state]), [[made.id, 'read', 'valid']]);
	const [turned] = await json('key', 'rotate', made.id, ...data, '--project', 'test');
	assert.equal(turned.id, made.id);
	assert.notEqual(turned.secret, made.secret);
	const [link] = await json('link', 'create', ...data, '--url', s.url);
	assert.ok(link.url.startsWith(`${s.url}/signin#twl_`));
	assert.equal((await run(['user', 'create', 'ann', ...data, '--server-admin'], { input: 'correct horse battery\n' })).code, 0);
	assert.deepEqual(await json('user', 'list', ...data), [{ name: 'ann', role: 'server-admin', roles: [], disabled: false, linked: false }]);
	assert.equal((await run(['user', 'create', 'bob', ...data], { input: 'correct horse battery\n' })).code, 0);
	const slip = await run(['user', 'role', 'bob', ...data, '--project', 'tset', '--role', 'viewer']);
	assert.deepEqual([slip.code, slip.stderr], [1, 'tracewell user: there is no project tset (did you mean test?)\n'], 'a slip makes no project');
	assert.equal((await run(['user', 'list', ...data, '--project', 'tset'])).code, 1);
	assert.equal((await run(['user', 'list', ...data])).stdout, 'ann\tserver-admin\nbob\tnone\n');
	assert.equal((await run(['user', 'role', 'bob', ...data, '--project', 'test', '--role', 'viewer'])).code, 0);
	assert.equal((await run(['user', 'list', ...data])).stdout, 'ann\tserver-admin\nbob\ttest: viewer\n');
	assert.deepEqual((await json('user', 'list', ...data))[1].roles, [{ project: 'test', role: 'viewer' }]);
	assert.equal((await run(['user', 'list', ...data, '--project', 'test'])).stdout, 'bob\tviewer\n');

	const sent = await run(['push', '--server', s.url, '--key', s.ingest, '--build-id', 'b', '--mapping', file('map'), '--wait', '--json', file('a.bin'), file('b.bin')]);
	assert.equal(sent.code, 0, sent.stderr);
	const traces = lines(sent.stdout);
	assert.deepEqual(traces.map((l) => [path.basename(l.file), l.state]), [['a.bin', 'ready'], ['b.bin', 'ready']]);
	const refused = await run(['push', '--server', s.url, '--key', s.ingest, '--json', file('odd.bin')]);
	assert.deepEqual([refused.code, lines(refused.stdout).map((l) => [path.basename(l.file), l.state, /returned 4/.test(l.error), 'id' in l])], [1, [['odd.bin', 'refused', true, false]]]);
	const away = await run(['push', '--server', s.url, '--key', s.ingest, '--json', file('none.bin')]);
	assert.deepEqual([away.code, lines(away.stdout).map((l) => l.state)], [1, ['unsent']]);

	const events = await json('decode', file('a.bin'), '--mapping', file('map'));
	const text = (await run(['decode', file('a.bin'), '--mapping', file('map')])).stdout.trim().split('\n').map((line) => line.split('\t'));
	assert.deepEqual(events.map((e) => e.event), text.map((fields) => fields[0]));
	const slice = text.find((fields) => fields[0] === 'slice');
	assert.deepEqual(events.find((e) => e.event === 'slice'), { event: 'slice', tid: +slice[1], ts_ns: +slice[2], dur_ns: +slice[3], name: slice[4] });
	assert.deepEqual(JSON.parse((await run(['sql', file('a.bin'), '--json', 'SELECT count(*) AS n FROM slice'])).stdout), [{ n: 27 }]);
	const unnamed = `'"' || 'a\n',\n9e999`; /* a column without AS has its expression as name */
	assert.deepEqual(JSON.parse((await run(['sql', file('a.bin'), '--json', `SELECT ${unnamed}`])).stdout), [{ [`'"' || 'a\n'`]: '"a\n', '9e999': null }]);
	assert.equal((await run(['sql', file('a.bin'), `SELECT ${unnamed}`])).stdout, `'"' || 'a\ufffd'\t9e999\n"a\ufffd\tinf\n`);
	assert.equal((await run(['sql', file('a.bin'), "SELECT 'a' || char(155) || '31m' || char(8238) AS n"])).stdout, 'n\na\ufffd31m\ufffd\n', 'nothing that a terminal obeys');

	const copy = file('copy');
	assert.ok((await json('backup', ...data, '--to', copy))[0].copied > 0);
	assert.equal((await json('export', '--project', 'test', ...data, '-o', file('p.tar')))[0].traces, 2);
	assert.deepEqual((await json('import', file('p.tar'), '--data', file('other')))[0], { traces: 2, builds: 1, existing: 0, renamed: 0 });
	assert.equal((await json('rollup', ...data))[0].postponed, 0);
	assert.deepEqual(await json('check', ...data), []);
	assert.ok((await json('doctor', ...data)).every((l) => l.level && l.message));
	assert.ok((await json('audit', ...data)).some((l) => /key/.test(l.action)));
});

test('formats other than calls become JSON too, each event with its own fields', async (t) => {
	const at = folder(t);
	const anr = path.join(at, 'anr.txt');
	fs.writeFileSync(anr, '"main" prio=5 tid=1 Blocked\n  at a.B.c(B.java:1)\n  - waiting to lock <0x01> (a a.T) held by thread 2\n\n"w" prio=5 tid=2 Runnable\n  at d.E.f(E.java:3)\n  - locked <0x01> (a a.T)\n');
	const r = await run(['decode', anr, '--json']);
	assert.equal(r.code, 0, r.stderr);
	const all = lines(r.stdout);
	assert.ok(all.find((e) => e.event === 'document').json, 'the report is JSON itself');
	const odd = Object.keys(Object.assign({}, ...all)).filter((k) => /^[#!]/.test(k));
	assert.deepEqual(odd, []);
	for (const e of all) assert.ok(Object.keys(e).length > 1, JSON.stringify(e));
});

test('decode and sql print original names of every format', async (t) => {
	const at = folder(t);
	const file = (name, text) => {
		fs.writeFileSync(path.join(at, name), text);
		return path.join(at, name);
	};
	const map = file('map', 'tea.Cup -> a.b:\n    1:2:void tea.Pot.pour():7:8 -> c\n    1:2:void fill():30 -> c\n    void wash() -> d\ntea.Lid -> a.l:\n');
	const trace = file('stacks.json', JSON.stringify({
		format: 'java-stacks/1', frames: ['a.b.c(SourceFile:2)'], stacks: [[0]], threads: {}, samples: [[0, 1, 0], [5000000, 1, 0]],
	}));
	const anr = file('anr.txt', '"main" prio=5 tid=1 Blocked\n  at a.b.c(SourceFile:2)\n  - waiting to lock <0x01> (a a.l) held by thread 2\n\n"w" prio=5 tid=2 Runnable\n  at a.b.d(SourceFile)\n  - locked <0x01> (a a.l)\n');
	const chrome = file('chrome.json', '{"traceEvents":[{"ph":"X","pid":1,"tid":1,"ts":0,"dur":5,"name":"a.b.d"}]}');
	for (const [from, want, inlined = want] of [[trace, ['tea.Cup.fill'], ['tea.Cup.fill', 'tea.Pot.pour']], [anr, ['tea.Cup.fill', 'tea.Cup.wash'], ['tea.Cup.fill', 'tea.Cup.wash', 'tea.Pot.pour']], [chrome, ['tea.Cup.wash']]]) {
		const text = (await run(['decode', from, '--retrace', map])).stdout;
		const names = text.split('\n').filter((line) => /^(begin|slice)\t/.test(line)).map((line) => line.split('\t').at(-1));
		assert.deepEqual([...new Set(names)].sort(), want, text);
		const rows = JSON.parse((await run(['sql', from, '--retrace', map, '--json', 'SELECT DISTINCT name FROM slice ORDER BY name'])).stdout);
		assert.deepEqual(rows.map((row) => row.name), inlined);
	}
	const report = lines((await run(['decode', anr, '--retrace', map, '--json'])).stdout).find((e) => e.event === 'document').json;
	const frames = JSON.stringify(report);
	assert.match(frames, /tea\.Pot\.pour.*Pot\.java:8.*tea\.Cup\.fill.*Cup\.java:30/);
	assert.match(frames, /tea\.Lid/);
	assert.doesNotMatch(frames, /a\.b\.c|a\.l\b/);
});

test('push --wait --json: "failed" is the server\'s state, not the result of the request', async (t) => {
	const answers = { '/api/v1/traces': '{"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}' };
	const odd = http.createServer((req, res) => { req.resume().on('end', () => { if (req.method === 'GET') res.statusCode = 403; res.end(req.method === 'GET' ? '{"error":{"status":"denied","message":"no"}}' : answers[req.url.split('?')[0]]); }); });
	await new Promise((done) => odd.listen(0, '127.0.0.1', done));
	atEnd(t, () => odd.close());
	const at = path.join(folder(t), 'a.bin');
	fs.writeFileSync(at, sampleTrace());
	const r = await run(['push', '--server', `http://127.0.0.1:${odd.address().port}`, '--key', 'x', '--wait', '--json', at]);
	assert.equal(r.code, 1);
	assert.deepEqual(lines(r.stdout).map((l) => [l.state, l.error]), [['accepted', 'the server returned 403: no']]);
});

test('decode --json: a report that is longer than a megabyte', async (t) => {
	const at = path.join(folder(t), 'anr.txt');
	const threads = Array.from({ length: 3000 }, (_, i) => `"worker-${i}" prio=5 tid=${i + 1} Waiting\n  at com.app.feature${i}.${'Long'.repeat(40)}.run(Long.java:${i})\n  at com.app.feature${i}.${'Deep'.repeat(40)}.call(Deep.java:${i})\n`);
	fs.writeFileSync(at, threads.join('\n'));
	const r = await run(['decode', at, '--json']);
	assert.equal(r.code, 0, r.stderr);
	assert.ok(Math.max(...r.stdout.split('\n').map((l) => l.length)) > 1 << 20, 'the document is one line');
	assert.ok(lines(r.stdout).find((e) => e.event === 'document').json);
});

/* A server in the test, whose traces are the current `traces`, newest first. */
async function listing(t, traces) {
	const server = http.createServer((req, res) => {
		const from = Number(new URL(req.url, 'http://x').searchParams.get('cursor') ?? 0);
		res.end(JSON.stringify({ traces: traces.slice(from, from + 100), total: traces.length, next_cursor: from + 100 < traces.length ? String(from + 100) : null }));
	});
	await new Promise((done) => server.listen(0, '127.0.0.1', done));
	atEnd(t, () => server.close());
	return `http://127.0.0.1:${server.address().port}`;
}
const listed = (n, state = 'ready', more = {}) => ({ id: `01ARZ3NDEKTSV4RRFFQ6${String(n).padStart(6, '0')}`, created_ms: 1.7e12 + n, state, meta: {}, ...more });

test('watch: bursts are complete, old traces are not listed, long texts are accepted', async (t) => {
	const traces = Array.from({ length: 300 }, (_, i) => listed(300 - i, 'ready', { title: 'x'.repeat(20_000) }));
	const url = await listing(t, traces);
	const child = spawn(binary(), ['watch', '--server', url, '--key', 'k', '--every', '1', '--json'], { stdio: ['ignore', 'pipe', 'pipe'] });
	atEnd(t, () => child.kill());
	let out = '', said = '';
	child.stdout.setEncoding('utf8').on('data', (d) => (out += d));
	child.stderr.setEncoding('utf8').on('data', (d) => (said += d));
	const reported = () => out.split('\n').slice(0, -1).map((l) => JSON.parse(l)).map((l) => `${Number(l.id.slice(-6))} ${l.state}`);
	const come = (n) => until(() => (reported().length >= n ? true : undefined), `${n} lines: ${said}`);
	await come(100);
	traces.unshift(...Array.from({ length: 250 }, (_, i) => listed(550 - i, 'queued')));
	await come(350);
	for (let i = 0; i < 250; i++) traces[i] = listed(550 - i, 'ready');
	traces.splice(260, 20); /* older ones are deleted, so that still older ones come in sight */
	await come(600);
	traces.unshift(listed(551));
	await come(601);
	const range = (from, to, state) => Array.from({ length: to - from + 1 }, (_, i) => `${from + i} ${state}`);
	assert.deepEqual(reported(), [...range(201, 300, 'ready'), ...range(301, 550, 'queued'), ...range(301, 550, 'ready'), '551 ready']);
	assert.equal(said, '');
});

test('watch: rows are as wide as the window', async (t) => {
	const url = await listing(t, Array.from({ length: 30 }, (_, i) => listed(30 - i, 'ready', { title: 'a title that is longer than what is left of a row '.repeat(4), meta: { scenario: 'cold_start_of_all', version_name: '8.3.1-4711-debug' } })));
	const whole = { test: (text) => text.slice(0, Math.max(0, text.lastIndexOf('\u001b[?7h'))).split('ready').length > 21 }; // as one expression it takes for ever where it fails
	const { stdout } = await onTerminal(['watch', '--server', `${url}/${'path'.repeat(40)}/..`, '--key', 'k', '--every', '1'], { enough: whole });
	const rows = stdout.replace(/\u001b\[\??[0-9;]*[A-Za-z]/g, '').split(/\r?\n/);
	assert.ok(rows.filter((row) => /ready/.test(row)).length >= 21, stdout.slice(0, 500));
	for (const row of rows) assert.ok([...row].length <= 100, `${[...row].length}: ${row}`);
	assert.ok(stdout.includes('\u001b[?7l') && stdout.includes('\u001b[?7h'), 'nothing is wrapped meanwhile');
});

test('watch: a line for each trace and each change of its state', async (t) => {
	const s = await startServer(t);
	const first = await s.trace(sampleTrace(), { query: { scenario: 'cold_start', version_name: '8.3.1', device: 'Pixel\u009b31m 8\u202e' } });
	const child = spawn(binary(), ['watch', '--server', s.url, '--every', '1', '--json'], { env: { ...process.env, TRACEWELL_KEY: s.read }, stdio: ['ignore', 'pipe', 'pipe'] });
	atEnd(t, () => child.kill());
	let out = '';
	child.stdout.setEncoding('utf8').on('data', (d) => (out += d));
	const reported = (id) => out.split('\n').slice(0, -1).map((l) => JSON.parse(l)).filter((l) => l.id === id);
	await until(() => (reported(first.id).length ? true : undefined), 'the first');
	const second = await s.trace(sampleTrace(20), { query: { scenario: 'page' } });
	await until(() => (reported(second.id).at(-1)?.state === 'ready' ? true : undefined), 'the second, ready');
	assert.equal(reported(first.id).length, 1, 'an unchanged trace is listed once');

	const labelled = await s.trace(sampleTrace(30), { query: { version_code: '804', labels: JSON.stringify({ user: '4,7=x', wifi: true }) } });
	const by = async (...where) => (await run(['watch', '--server', s.url, '--key', s.read, ...where.flatMap((w) => ['--where', w]), '--once', '--json'])).stdout.split('\n').slice(0, -1).map((l) => JSON.parse(l).id);
	assert.deepEqual(await by('label=user=4,7=x', 'label=wifi=true', 'version_code_min=804'), [labelled.id]);
	assert.deepEqual(await by('label=user=4,7=x', 'label=wifi=false'), []);
	const once = await run(['watch', '--server', s.url, '--key', s.read, '--where', 'scenario=cold_start', '--once']);
	assert.equal(once.code, 0, once.stderr);
	assert.match(once.stdout, new RegExp(`ready .*cold_start +8\\.3\\.1 +${first.id} +Pixel`));
	assert.doesNotMatch(once.stdout, new RegExp(second.id));
	assert.doesNotMatch(once.stdout, /[\u001b\u009b\u202e]/, 'names are data: a terminal does not obey them');

	const screen = await onTerminal(['watch', '--server', s.url, '--key', s.read, '--every', '1'], { enough: /3 traces; Ctrl-C ends[^]*ready/ });
	assert.match(screen.stdout, /3 traces; Ctrl-C ends/);
	assert.match(screen.stdout, /\u001b\[32mready/);
	assert.doesNotMatch(screen.stdout, /[\u009b\u202e]/);
	const plain = await onTerminal(['watch', '--server', s.url, '--key', s.read, '--every', '1'], { enough: /ready/, env: { NO_COLOR: '1' } });
	assert.match(plain.stdout, /ready/);
	assert.doesNotMatch(plain.stdout, /\u001b\[[0-9]+m/);
});

test('top: the slowest methods of a filter', async (t) => {
	const s = await startServer(t);
	await sendSlower(s, 5);
	const to = ['top', '--server', s.url, '--key', s.read, '--where', 'scenario=slower'];
	const r = await run([...to, '--where', 'version_name=8.3.1']);
	assert.equal(r.code, 0, r.stderr);
	const [head, ...rows] = r.stdout.trimEnd().split('\n');
	assert.match(head, /p50 +p95 +max +sum +traces +self by p95/);
	assert.equal(rows.length, 2);
	assert.match(rows[0], /1\.5\d? ms +1\.5\d? ms .* 100\.0 % +com\.app\.Repo\.load/);
	const [answer] = lines((await run([...to, '--metric', 'wall', '--by', 'max', '--limit', '1', '--json'])).stdout);
	assert.equal(answer.methods.length, 1);
	assert.equal(answer.methods[0].name, 'com.app.Main.onCreate');
	assert.equal((await run([...to, '--metric', 'odd'])).code, 2);
	assert.match((await onTerminal(to)).stdout, /\u001b\[1m/);
	assert.doesNotMatch((await onTerminal(to, { env: { NO_COLOR: '1' } })).stdout, /\u001b\[/);
	assert.doesNotMatch((await onTerminal(to, { env: { TERM: 'dumb' } })).stdout, /\u001b/);
});

test('a sign-in link leads to the server that last ran on the folder', async (t) => {
	const link = async (data, ...more) => {
		const { code, stdout, stderr } = await run(['link', 'create', '--data', data, ...more]);
		assert.equal(code, 0, stderr);
		return { url: stdout.split('/signin#')[0], stderr };
	};
	const s = await startServer(t, { args: ['--listen', '0.0.0.0:0', '--behind-proxy'] });
	assert.deepEqual(await link(s.data), { url: `http://127.0.0.1:${s.port}`, stderr: '' }, 'an address that a browser of this machine can open');
	assert.deepEqual(await link(s.data, '--url', 'https://here.example/'), { url: 'https://here.example', stderr: '' });
	await s.stop();
	assert.deepEqual(await link(s.data), { url: `http://127.0.0.1:${s.port}`, stderr: '' }, 'it may be started again');
	s.args.push('--public-url', 'https://traces.example');
	await s.start();
	assert.deepEqual(await link(s.data), { url: 'https://traces.example', stderr: '' });
	fs.writeFileSync(path.join(s.data, 'server.url'), 'javascript:alert(1)\n');
	assert.equal((await link(s.data)).url, 'http://127.0.0.1:8080');
	fs.rmSync(path.join(s.data, 'server.url'));
	assert.deepEqual(await link(s.data), { url: 'http://127.0.0.1:8080', stderr: `${s.data} does not record the address of its server: the link is for http://127.0.0.1:8080, unless --url sets another\n` }, 'as in a restored backup');
	const none = await run(['link', 'create', '--data', path.join(s.data, 'none')]);
	assert.match(none.stderr, /^tracewell link: .*is not a data folder of a server[^\n]*\n$/, 'and nothing about an address');
});

test('an unknown command: a similar one is suggested, or none', async () => {
	const says = async (...args) => {
		const { code, stdout, stderr } = await run(args);
		assert.equal(code, 2, args.join(' '));
		assert.equal(stdout, '');
		return /did you mean (.*)\?/.exec(stderr)?.[1];
	};
	assert.equal(await says('puhs'), 'push');
	assert.equal(await says('exprot'), 'export');
	assert.equal(await says('doc'), 'doctor');
	assert.equal(await says('help', 'bakcup'), 'backup');
	assert.equal(await says('wrker'), undefined, 'what is hidden stays so');
	assert.equal(await says('xyzzy'), undefined);
	assert.equal(await says('x'.repeat(500)), undefined);
	assert.equal(await says('check', '--quik'), '--quick');
	assert.equal(await says('push', '--sever', 'x'), '--server');
	assert.equal(await says('check', '--nonsense'), undefined);
	assert.equal(await says('check', '-'.repeat(300)), undefined);
});

test('an unknown setting: a similar one is suggested', async (t) => {
	const at = path.join(folder(t), 'tracewell.conf');
	const says = async (args, env) => {
		const { code, stderr } = await run(['serve', ...args], { env });
		assert.equal(code, 2, stderr);
		return stderr.trim();
	};
	assert.equal(await says(['--blob=s3://key:secret@x']), 'tracewell serve: unknown flag --blob; did you mean --blobs?');
	assert.equal(await says(['--retention_evry', '5']), 'tracewell serve: unknown flag --retention_evry; did you mean --retention-every?');
	assert.equal(await says(['--xyzzy']), 'tracewell serve: unknown flag --xyzzy');
	assert.equal(await says([`--${'x'.repeat(300)}`]), `tracewell serve: unknown flag --${'x'.repeat(64)}`);
	fs.writeFileSync(at, '# mine\nlistn = 127.0.0.1:0\n');
	assert.equal(await says(['--config', at]), `tracewell serve: ${at} line 2: unknown setting listn; did you mean listen?`);
	const s = await startServer(t, { env: { TRACEWELL_QUERY_DEADLNE: '5', TRACEWELL_KEY: 'x', TRACEWELL_SERVICE_HOST: '10.0.0.1', TRACEWELL_PORT: 'tcp://10.0.0.1:80' } });
	assert.deepEqual([...s.log.matchAll(/event=setting_unknown (.*)/g)].map(([, what]) => what), ['environment=query-deadlne similar=query-deadline']);
});

test('progress: on terminals only, and gone at the end', async (t) => {
	const s = await startServer(t);
	await s.trace(sampleTrace());
	const slow = http.createServer((req, res) => { req.resume().on('end', () => res.end('{"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}')); });
	await new Promise((done) => slow.listen(0, '127.0.0.1', done));
	atEnd(t, () => slow.close());
	const big = path.join(folder(t), 'big.bin');
	fs.writeFileSync(big, randomBytes(4 << 20)); // as long when it is compressed
	const small = path.join(folder(t), 'small.bin');
	fs.writeFileSync(small, sampleTrace());
	const parcel = path.join(folder(t), 'p.tar');
	const push = ['push', '--server', `http://127.0.0.1:${slow.address().port}`, '--key', 'x', big];
	for (const [args, line] of [[push, /100% of 4\.2 MB/], [['check', '--data', s.data], /check: files \[#+\.*\] +\d+%  \d+ of 2/], [['backup', '--data', s.data, '--to', path.join(folder(t), 'b')], /backup: uploads \[#+\] 100%  1 of 1/],
		[['export', '--project', 'test', '--data', s.data, '-o', parcel], /export: files( \d+)?  \d+\.\d MB/], [['import', parcel, '--data', path.join(folder(t), 'there')], /import: files( \d+)?  \d+\.\d MB/],
		[['perfetto', small, '-o', path.join(folder(t), 'x')], /writing +0\.\d MB/]]) {
		const seen = await onTerminal(args);
		assert.match(seen.stdout.replace(/\u001b\[\d*m/g, ''), line);
		assert.match(seen.stdout, /\r\u001b\[K/, 'taken away');
		const piped = await run(args);
		assert.doesNotMatch(piped.stderr + piped.stdout, /[\r\u001b]/);
	}
});
