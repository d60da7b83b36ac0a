/*
 * device_mappings.test.mjs - the uploads of a build (deploy/device/gradle) on the JVM: to a real server, to one that
 * starts late or refuses them, and with a missing mapping.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { compile, java, skip, stubs } from '../jdk.mjs';
import { atEnd, root, startServer } from '../server.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-mappings-'));
const classes = path.join(folder, 'classes');
const file = (name, text) => (fs.writeFileSync(path.join(folder, name), text), path.join(folder, name));
const methods = file('methodMapping.txt', '1,1,com.shop.Cart update ()V\n');
const retrace = file('mapping.txt', 'com.shop.Cart -> a.a:\n    1:1:void update():10:10 -> b\n');

before(() => skip || compile(classes, [...stubs('gradle.txt', folder), ...java('deploy/device/gradle/buildSrc/src/main/java'), path.join(root, 'tests/device/Mappings.java')]));
after(() => fs.rmSync(folder, { recursive: true, force: true }));

function run(...args) {
	const child = spawn('java', ['-XX:TieredStopAtLevel=1', '-cp', classes, 'Mappings', ...args], { timeout: 60_000 });
	const said = { out: '', err: '' };
	child.stdout.on('data', (piece) => (said.out += piece));
	child.stderr.on('data', (piece) => (said.err += piece));
	return new Promise((done) => child.once('close', (code) => done({ ...said, code })));
}

test('both mappings of a variant are uploaded under its build id', { skip }, async (t) => {
	const s = await startServer(t);
	const { code, err } = await run('task', s.url, s.ingest, '8.3.1 (4711)/freeRelease', methods, retrace);
	assert.equal(code, 0, err);
	const { json } = await s.get('/api/v1/builds');
	const build = json.builds.find((b) => b.build_id === '8.3.1 (4711)/freeRelease');
	assert.ok(build, JSON.stringify(json));
	const wrong = await run('task', s.url, 'wrong', 'b', methods, '-');
	assert.equal(wrong.code, 1);
	assert.match(wrong.err, /was not accepted by .*: 401/);
	const binary = await run('send', s.url, s.ingest, 'b', 'methods', file('binary', Buffer.alloc(3000)));
	assert.match(binary.err, /: 4\d\d: .*"error"/, 'the server\'s own words');
});

test('a mapping that is not there, or a key that is not, fails the build', { skip }, async () => {
	const server = 'http://127.0.0.1:1';
	for (const [args, why] of [[['key', 'b', path.join(folder, 'none'), retrace], /none is missing/], [['key', 'b', '-', '-'], /neither retrace nor methods/], [['-', 'b', methods, '-'], /TRACEWELL_KEY/]]) {
		const { code, err } = await run('task', server, ...args);
		assert.equal(code, 1);
		assert.match(err, why);
	}
});

test('a restarting server is waited for', { skip }, async (t) => {
	const asked = [];
	const s = http.createServer((req, res) => req.resume().on('end', () => (asked.push(req.url), res.writeHead(asked.length < 3 ? 503 : 204).end())));
	let cut = 0;
	s.on('connection', (socket) => cut < 2 && (cut++, socket.destroy()));
	await new Promise((done) => s.listen(0, '127.0.0.1', done));
	const { port } = s.address();
	atEnd(t, () => (s.closeAllConnections(), s.close()));
	const { code, err } = await run('send', `http://127.0.0.1:${port}`, 'key', 'b', 'methods', methods);
	assert.equal(code, 0, err);
	assert.equal(cut, 2);
	assert.deepEqual(asked, Array(3).fill('/api/v1/builds/b/methods?wait=60'));
});

test('a mapping that is queued is waited for', { skip }, async (t) => {
	const asked = [];
	const s = http.createServer((req, res) => req.resume().on('end', () => (asked.push(req.url), res.writeHead(asked.length < 3 ? 202 : 200).end())));
	await new Promise((done) => s.listen(0, '127.0.0.1', done));
	atEnd(t, () => (s.closeAllConnections(), s.close()));
	const { code, err } = await run('send', `http://127.0.0.1:${s.address().port}`, 'key', 'b', 'methods', methods);
	assert.equal(code, 0, err);
	assert.equal(asked.length, 3);
});
