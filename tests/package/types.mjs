/*
 * types.mjs - files of others' formats, held to the types that those publish: TypeScript refuses a literal with a field
 * that its type has not.
 */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { atEnd, root } from '../e2e/server.mjs';

/* sources: names of files and their texts. { status, stdout } of the compiler. */
export function compiled(t, sources) {
	const at = fs.mkdtempSync(path.join(root, 'tests/package/types-')); // below tests/, where packages are found
	atEnd(t, () => fs.rmSync(at, { recursive: true, force: true }));
	for (const [name, text] of Object.entries(sources)) fs.writeFileSync(path.join(at, name), text);
	const flags = ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022', '--module', 'nodenext', '--moduleResolution', 'nodenext'];
	return spawnSync('node', [path.join(root, 'tests/node_modules/typescript/bin/tsc'), ...flags, ...Object.keys(sources)], { cwd: at, encoding: 'utf8' });
}
