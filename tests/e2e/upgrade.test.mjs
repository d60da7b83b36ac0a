/*
 * upgrade.test.mjs - a catalogue of an earlier version is copied, then brought forward; one of a later
 * version is left alone.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { sampleTrace } from './make.mjs';
import { binary, root, sanitized, startServer } from './server.mjs';

const migrations = path.join(root, 'schema', 'catalogue');
const scripts = fs.readdirSync(migrations).sort();

function python(...args) {
	return execFileSync('python3', ['-c', ...args], { encoding: 'utf8' }).trim();
}

/* From here on each page ends with its sum. */
const WITH_SUMS = scripts.findIndex((name) => name.endsWith('_sums.sql')) + 1;

/* An empty file with eight bytes to spare in each page, as the library makes it when it is told to. */
const ROOM = `
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.executescript('PRAGMA page_size=4096; VACUUM; PRAGMA user_version=1')
db.close()
with open(sys.argv[1], 'r+b') as f:
    f.seek(20); f.write(bytes([8]))
    f.seek(105); f.write((4096 - 8).to_bytes(2, 'big'))
`;

const SEAL = `
import struct, sys
page = 4096
with open(sys.argv[1], 'r+b') as f:
    data = f.read()
    for at in range(0, len(data), page):
        words = struct.unpack(f'<{(page - 8) // 4}I', data[at:at + page - 8])
        one = two = 0
        for i in range(0, len(words), 2):
            one = one + words[i] + two & 0xFFFFFFFF
            two = two + words[i + 1] + one & 0xFFFFFFFF
        f.seek(at + page - 8); f.write(struct.pack('<2I', one, two))
`;

/* The catalogue as a program with the first `n` migrations left it, with a project in it. */
function oldCatalogue(file, n) {
	const text = scripts.slice(0, n).map((name) => fs.readFileSync(path.join(migrations, name), 'utf8')).join('\n');
	if (n >= WITH_SUMS) python(ROOM, file);
	python(
		'import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\ndb.executescript(sys.argv[2])\n' +
			"db.execute(\"INSERT INTO project VALUES('01J00000000000000000000000', 'old', 1)\")\n" +
			'db.execute(f"PRAGMA user_version={int(sys.argv[3])}")\ndb.commit()',
		file, text, String(n),
	);
	if (n >= WITH_SUMS) python(SEAL, file);
}

const asked = (file, sql) => python('import sqlite3, sys\nprint(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0])', file, sql);

function folder(t) {
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-upgrade-'));
	t.after(() => fs.rmSync(dir, { recursive: true, force: true }));
	return dir;
}

for (let n = 1; n < scripts.length; n++)
	test(`from schema ${n}`, async (t) => {
		const data = folder(t);
		const file = path.join(data, 'catalogue.db');
		oldCatalogue(file, n);
		const s = await startServer(t, { data });
		assert.equal((await s.trace(sampleTrace(10))).state, 'ready');
		await s.stop();
		assert.equal(asked(file, 'PRAGMA user_version'), String(scripts.length));
		assert.equal(asked(file, "SELECT count(*) FROM project WHERE name='old'"), '1');
		assert.equal(asked(`${file}.schema-${n}`, 'PRAGMA user_version'), String(n), 'the way back');
		assert.equal(asked(`${file}.schema-${n}`, 'SELECT name FROM project'), 'old');
	});

/* Most memory that a program ever had, in MiB, and what it said. */
const MEASURE = `
import resource, subprocess, sys
run = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
print(run.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, run.stdout)
`;
const LARGE = `
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute('PRAGMA journal_mode=WAL')
db.execute('CREATE TABLE large (bytes BLOB)')
db.executemany('INSERT INTO large VALUES (randomblob(1000000))', [()] * int(sys.argv[2]))
db.commit()
`;

test('a large catalogue is brought forward once, and not in memory, when several processes come', async (t) => {
	const MB = 48;
	const data = folder(t);
	const file = path.join(data, 'catalogue.db');
	oldCatalogue(file, WITH_SUMS - 1);
	python(LARGE, file, String(MB));
	const runs = await Promise.all([1, 2, 3, 4].map((n) => promisify(execFile)('python3', ['-c', MEASURE, binary(), 'key', 'create',
		'--data', data, '--project', `p${n}`, '--scope', 'read'])));
	for (const { stdout } of runs) {
		const [status, mib] = stdout.split(' ').map(Number);
		assert.equal(status, 0, stdout);
		t.diagnostic(`${mib} MiB at most`);
		if (!sanitized()) assert.ok(mib < MB * 0.6, `${mib} MiB for a catalogue of ${MB} MB`);
	}
	assert.equal(asked(file, 'SELECT count(*) FROM project'), '5');
	assert.equal(asked(file, 'SELECT count(*) FROM large'), String(MB));
	assert.equal(asked(`${file}.schema-${WITH_SUMS - 1}`, 'PRAGMA user_version'), String(WITH_SUMS - 1), 'the way back');
	assert.deepEqual(fs.readdirSync(data).filter((name) => !name.startsWith('catalogue.db')), [], 'nothing else is left');
	execFileSync(binary(), ['check', '--data', data]);
});

test('a catalogue of a later version is refused and left as it is', (t) => {
	const data = folder(t);
	const file = path.join(data, 'catalogue.db');
	oldCatalogue(file, scripts.length);
	python('import sqlite3, sys\nsqlite3.connect(sys.argv[1]).execute("PRAGMA user_version=999")', file);
	const before = fs.readFileSync(file);
	const run = spawnSync(binary(), ['serve', '--data', data, '--listen', '127.0.0.1:0'], { encoding: 'utf8', timeout: 10000 });
	assert.equal(run.status, 1);
	assert.match(run.stdout + run.stderr, /has schema 999, this program knows up to \d+: it was written by a newer tracewell/);
	assert.equal(asked(file, 'PRAGMA user_version'), '999');
	assert.equal(fs.readFileSync(file).length, before.length);
});
