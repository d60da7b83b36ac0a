/*
 * Trace files are opened from disk and by hand: one whose tables are views that answer anything, or for
 * ever, is refused rather than read.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { binary, newFolder, root } from '../server.mjs';

const [, version] = /user_version (\d+)/.exec(fs.readFileSync(path.join(root, 'schema/trace/0001_init.sql'), 'utf8'));
const python = `
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.executescript("PRAGMA application_id=0x54575452; PRAGMA user_version=${version};" + sys.argv[2])
`;

function refused(t, sql) {
	const dir = newFolder(t, 'tracewell-file-');
	const file = path.join(dir, 'x.db');
	execFileSync('python3', ['-c', python, file, sql]);
	const r = spawnSync(binary(), ['sql', file, 'SELECT 1'], { encoding: 'utf8', timeout: 60_000 });
	assert.equal(r.signal, null, 'neither crashes nor goes on for ever');
	assert.equal(r.status, 1);
	assert.match(r.stderr, /damaged \(schema\)/);
}

test('a view in place of the threads', (t) => refused(t, 'CREATE VIEW trace_thread AS SELECT random() % 9;'));
test('a view without end in place of the facts', (t) => refused(t,
	"CREATE VIEW trace_meta AS WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n) SELECT 'x' || k AS key, k AS value FROM n;"));
