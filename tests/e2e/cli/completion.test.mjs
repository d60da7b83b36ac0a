/*
 * completion.test.mjs - the completions that bash offers: a real bash on a terminal, with the completion
 * that is made from the lists of the binary.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { root } from '../server.mjs';

const lacks = ['bash', 'script', 'python3'].filter((name) => spawnSync(name, ['--version']).error);
const skip = lacks.length > 0 && `there is no ${lacks.join(', ')} here`;
let dir;

before(() => {
	if (skip) return;
	dir = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-completion-'));
	execFileSync('python3', [path.join(root, 'deploy/documents.py'), path.join(dir, 'made'), '1', '2026-01-01']);
	fs.mkdirSync(path.join(dir, 'here/folder_one'), { recursive: true });
	fs.writeFileSync(path.join(dir, 'here/file_one'), '');
	fs.mkdirSync(path.join(dir, 'bin'));
	fs.writeFileSync(path.join(dir, 'bin/tracewell'), '#!/bin/sh\nprintf "GOT"; printf "<%s>" "$@"; echo\n', { mode: 0o755 }); // shows its arguments
});
after(() => dir && fs.rmSync(dir, { recursive: true, force: true }));

/** The line after each \t was completed, as its command receives it. */
function typed(line) {
	return new Promise((done, fail) => {
		const env = { ...process.env, PATH: `${path.join(dir, 'bin')}:${process.env.PATH}`, PS1: '$ ', TERM: 'dumb', HISTFILE: '', INPUTRC: '/dev/null' };
		const bash = spawn('script', ['-qec', 'bash --norc --noprofile -i', '/dev/null'], { cwd: path.join(dir, 'here'), env });
		let said = '';
		let asked = false;
		const end = setTimeout(() => { bash.kill(); fail(new Error(`${line}: bash said ${said}`)); }, 180_000);
		bash.stdout.on('data', (d) => {
			said += d;
			if (!asked && said.includes('READY-7')) {
				asked = true;
				bash.stdin.write(`${line}\r`);
			}
			const got = /GOT((?:<[^>]*>)*)\r?\n/.exec(said);
			if (got) {
				clearTimeout(end);
				bash.kill();
				done([...got[1].matchAll(/<([^>]*)>/g)].map((m) => m[1]));
			}
		});
		bash.stdin.write(`. ${path.join(dir, 'made/tracewell.bash')}; bind 'set bell-style none'; echo READY-$((3 + 4))\r`);
	});
}

test('commands, their first words and flags', { skip }, async () => {
	assert.deepEqual(await typed('tracewell doc\t'), ['doctor']);
	assert.deepEqual(await typed('tracewell help pu\t'), ['help', 'push']);
	assert.deepEqual(await typed('tracewell key ro\t'), ['key', 'rotate']);
	assert.deepEqual(await typed('tracewell check --qu\t'), ['check', '--quick']);
});

test('values of flags: formats, roles, log levels, with a blank and with =', { skip }, async () => {
	assert.deepEqual(await typed('tracewell export file_one --to spe\t'), ['export', 'file_one', '--to', 'speedscope']);
	assert.deepEqual(await typed('tracewell user role ann --role server\t'), ['user', 'role', 'ann', '--role', 'server-admin']);
	assert.deepEqual(await typed('tracewell serve --log-level wa\t--role dec\t'), ['serve', '--log-level', 'warn', '--role', 'decode']);
	assert.deepEqual(await typed('tracewell serve --log-format=js\t'), ['serve', '--log-format=json']);
	assert.deepEqual(await typed('tracewell sql file_one --format cs\t'), ['sql', 'file_one', '--format', 'csv']);
	assert.deepEqual(await typed('tracewell top --by p7\t'), ['top', '--by', 'p75']);
});

test('completes folders for folders, files for files, and nothing for other values', { skip }, async () => {
	assert.deepEqual(await typed('tracewell check --data f\t'), ['check', '--data', 'folder_one/']);
	assert.deepEqual(await typed('tracewell serve --tls-cert fi\t'), ['serve', '--tls-cert', 'file_one']);
	assert.deepEqual(await typed('tracewell decode fi\t'), ['decode', 'file_one']);
	assert.deepEqual(await typed('tracewell push --scenario fi\t'), ['push', '--scenario', 'fi']);
});

test('zsh reads its file', { skip: spawnSync('zsh', ['--version']).error ? 'there is no zsh here' : skip }, () => {
	const { status, stderr } = spawnSync('zsh', ['-n', path.join(dir, 'made/_tracewell')], { encoding: 'utf8' });
	assert.equal(status, 0, stderr);
});
