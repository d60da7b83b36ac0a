/*
 * jdk.mjs - Java of deploy/device compiled as an app compiles it: its language and library of Java 8, no warnings.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { root } from './server.mjs';

/* Why a test cannot run; false: it can. */
export const skip = spawnSync('javac', ['-version']).status === 0 ? false : 'no JDK';

export const java = (folder) => fs.readdirSync(path.join(root, folder)).filter((f) => f.endsWith('.java')).map((f) => path.join(root, folder, f));

/* Stand-ins for libraries that are not installed: classes in one file of tests/device, a line "== package.Class" before each. */
export function stubs(name, folder) {
	return fs.readFileSync(path.join(root, 'tests/device', name), 'utf8').split(/^== /m).slice(1).map((part) => {
		const [of, ...lines] = part.split('\n');
		const to = path.join(folder, 'stubs', `${of.replaceAll('.', '/')}.java`);
		fs.mkdirSync(path.dirname(to), { recursive: true });
		fs.writeFileSync(to, lines.join('\n'));
		return to;
	});
}

export function compile(classes, sources) {
	const made = spawnSync('javac', ['--release', '8', '-Xlint:all,-options', '-Werror', '-d', classes, ...sources], { encoding: 'utf8' });
	assert.equal(made.status, 0, made.stderr);
}
