// Folders of src/ depend on those below them only: web/README.md lists them from the bottom up.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

const WEB = new URL('../', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, WEB), 'utf8');
const floors = [...read('README.md').matchAll(/^\| `([\w/]+)\/` \|/gm)].map((m) => m[1]);
const floorOf = (file: string) => Math.max(...floors.map((f, i) => (dirname(file) === f || (f === 'i18n' && ['i18n/strings', 'i18n/zh'].includes(dirname(file))) ? i : -1)));

test('the README lists every folder, and no file imports from a folder above its own', () => {
	const upward: string[] = [];
	for (const file of readdirSync(new URL('src/', WEB), { recursive: true, encoding: 'utf8' }).filter((f) => /\.tsx?$/.test(f))) {
		assert.ok(floorOf(file) >= 0, `${file}: its folder is not in web/README.md`);
		for (const [, to] of read(`src/${file}`).matchAll(/^(?:import|export) .*from '(\.[^']+)';/gm))
			if (floorOf(join(dirname(file), to)) > floorOf(file)) upward.push(`${file} imports ${to}`);
	}
	assert.deepEqual(upward, []);
});
