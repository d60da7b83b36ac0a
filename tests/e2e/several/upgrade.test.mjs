/*
 * upgrade.test.mjs - a catalogue whose schema the program does not know is refused and left unchanged.  The unit
 * test catalogue_upgrade covers migrations.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { binary, makeData, newFolder, sqlite, tracewell } from '../server.mjs';

const digest = (file) => crypto.createHash('sha256').update(fs.readFileSync(file)).digest('hex');

for (const [name, statement, words] of [
	['of a later version', 'PRAGMA user_version=999', /has schema 999, this program knows up to \d+: it was written by a newer tracewell/],
	['without a version', 'PRAGMA user_version=0', /no schema number: it is not a catalogue of tracewell/],
])
	test(`a catalogue ${name} is refused and left unchanged`, async (t) => {
		const data = newFolder(t, 'tracewell-upgrade-');
		await makeData(data);
		const file = path.join(data, 'catalogue.db');
		tracewell('key', 'create', '--data', data, '--project', 'p', '--scope', 'read');
		sqlite(file, statement);
		const before = digest(file);
		for (const args of [['serve', '--data', data, '--listen', '127.0.0.1:0'], ['key', 'list', '--data', data, '--project', 'p']]) {
			const run = spawnSync(binary(), args, { encoding: 'utf8', timeout: 60_000 });
			assert.equal(run.status, 1, args[0]);
			assert.match(run.stdout + run.stderr, words);
		}
		assert.equal(digest(file), before);
		assert.deepEqual(fs.readdirSync(data).filter((n) => n.includes('schema-')), [], 'no copy');
	});
