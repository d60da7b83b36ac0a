// A page that exceeds its budget is not left for the server to embed.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

const web = join(import.meta.dirname, '..');

test('a build above its budget fails and leaves no index.html', (t) => {
	const at = mkdtempSync(join(tmpdir(), 'tracewell-page-'));
	t.after(() => rmSync(at, { recursive: true }));
	for (const name of ['src', 'build.mjs', 'tsconfig.json', 'package.json']) cpSync(join(web, name), join(at, name), { recursive: true });
	symlinkSync(join(web, 'node_modules'), join(at, 'node_modules'));
	writeFileSync(join(at, 'budget.mjs'), "export const BUDGETS = { workbench: 1000 }; export const budgetOf = () => 'workbench';");
	const { status, stderr } = spawnSync(process.execPath, ['build.mjs'], { cwd: at, encoding: 'utf8' });
	assert.match(stderr, /bytes more JavaScript than the workbench may have/);
	assert.notEqual(status, 0);
	assert.ok(existsSync(join(at, 'dist/assets')) && !existsSync(join(at, 'dist/index.html')));
});
