/*
 * migrate_store.test.mjs - files migrated between a data folder and S3-compatible stores, with the catalogue in a
 * file or in PostgreSQL: equal bytes and rows there and back, also after kills, while a server uses the source,
 * with damaged files, and with stores that fail.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { startBucket } from '../bucket.mjs';
import { sampleMapping, sampleTrace } from '../make.mjs';
import { answers, failedIn, fill, folder, json, keysOf, serve, startMigrate } from '../migrate_fixture.mjs';
import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { atEnd, binary, makeData, until } from '../server.mjs';

const skip = postgresIsThere ? false : 'PostgreSQL 15 or later is not installed';
const migrate = (args, env) => startMigrate(args, env).ended;
const toStore = (b, prefix = 'tw') => [`--to-blobs=s3://${b.name}/${prefix}`, `--s3-endpoint=${b.url}`, '--s3-timeout=20'];

/* Files by their keys: uploads, mappings, decoded ones. */
function filesIn(data) {
	return ['blobs', 'traces'].flatMap((kind) => fs.readdirSync(path.join(data, kind), { recursive: true }).map((f) => `${kind}/${f}`))
		.filter((key) => fs.statSync(path.join(data, key)).isFile()).sort();
}

const bytesIn = (data) => Object.fromEntries(filesIn(data).map((key) => [key, fs.readFileSync(path.join(data, key)).toString('latin1')]));
const bytesOf = (b, prefix) => Object.fromEntries(b.keys(prefix).map((key) => [key, fs.readFileSync(b.file(key, prefix)).toString('latin1')]));
const sums = (r, side) => Object.fromEntries(r.json.tables.map((x) => [x.name, x[side]]));

/* The complete state of a folder, to check that the source is unchanged. */
function snapshot(data) {
	return fs.readdirSync(data, { recursive: true }).map(String).filter((f) => /^(blobs|traces|storage|secret)/.test(f) && fs.statSync(path.join(data, f)).isFile())
		.sort().map((f) => [f, fs.readFileSync(path.join(data, f)).toString('latin1')]);
}

/* A folder of three traces and a mapping, and keys for the servers of its copies. */
async function small(t, { data = folder(t), args, env } = {}) {
	const s = await serve(t, data, env, args);
	void [s.read, s.write, s.admin];
	s.traces = [];
	for (const n of [20, 21, 22]) s.traces.push(await s.trace(sampleTrace(n), { query: { app: 'shop', version_name: '1', build_id: 'b1' } }));
	assert.equal((await s.put('/api/v1/builds/b1/methods', sampleMapping)).status, 200);
	await until(async () => ((await s.get(`/api/v1/traces/${s.traces[2].id}`)).json.state === 'ready' ? true : undefined), 'decoded');
	return s;
}

/* Each file of the source is compared by its checksum; missing ones are reported by name and as a count. */
const lostIn = (r) => [...r.reported.matchAll(/^(\S+): (.*), in the source too$/gm)].map(([, id, why]) => [id, why]);

test('a file and a folder to PostgreSQL and a store, and back: files, rows and answers are the same', { skip, timeout: 900_000 }, async (t) => {
	const [db, b] = [await startPostgres(t), await startBucket(t)];
	const [source, target, back] = [folder(t), path.join(folder(t), 'new'), path.join(folder(t), 'back')];
	const failed = await failedIn(t, source);
	const s = await serve(t, source);
	const known = { failed, ready: await fill(s) };
	const before = await answers(s, known);
	await s.stop();
	const [was, files] = [snapshot(source), bytesIn(source)];
	const there = ['--from', source, '--data', target, '--to-catalog', db.url('one'), ...toStore(b)];
	let done;

	await t.test('killed anywhere and run again: stored files are not sent again', async () => {
		for (const step of ['object_put', 'migrate_file', 'migrate_rows', 'migrate_brought']) {
			assert.equal((await migrate(there, { ...b.env, TRACEWELL_CRASH_AT: step })).signal, 'SIGKILL', step);
			const early = spawn(binary(), ['serve', '--data', target, '--listen', '127.0.0.1:0', ...b.args()], { env: { ...process.env, ...b.env }, stdio: ['ignore', 'pipe', 'pipe'] });
			let reported = '';
			for (const out of [early.stdout, early.stderr]) out.setEncoding('utf8').on('data', (text) => (reported += text));
			const timer = setTimeout(() => early.kill('SIGKILL'), 180_000);
			assert.equal(await new Promise((end) => early.once('close', end)), 1, `${step}: ${reported}`);
			clearTimeout(timer);
			assert.match(reported, /an incomplete copy/, step);
		}
		assert.equal(b.keys().length, Object.keys(files).length);
		b.log.length = 0;
		done = await migrate([...there, '--json'], b.env);
		assert.equal(done.code, 0, done.reported);
		assert.deepEqual([done.json.state, done.json.from, done.json.to, done.json.from_blobs, done.json.to_blobs], ['done', 'sqlite', 'postgresql', '', 's3://files/tw']);
		assert.deepEqual([done.json.files.copied, done.json.files.linked, done.json.files.lost], [0, 0, 0]);
		assert.ok(done.json.files.files >= Object.keys(files).length);
		assert.equal(b.log.filter((line) => line.startsWith('PUT ')).length, 0, 'nothing is sent that is there');
		for (const table of done.json.tables) assert.deepEqual(table.from, table.to, table.name);
	});

	await t.test('the target equals the source', () => {
		assert.deepEqual(bytesOf(b), files);
		assert.deepEqual(snapshot(source), was, 'the source stays as it was');
		assert.equal(b.all().filter((key) => key.startsWith('owner/')).length, 1);
		assert.match(fs.readFileSync(path.join(target, 'storage'), 'utf8'), /blobs = s3:\/\/files\/tw\n/);
		assert.deepEqual(fs.readdirSync(path.join(target, 'spool')).filter((f) => f !== 'storage_owner'), [], 'nothing but what the first kill left');
		assert.ok(!fs.existsSync(path.join(target, 'blobs')));
	});

	await t.test('back in a file and a folder, byte by byte', async () => {
		for (const step of ['migrate_file', 'migrate_rows'])
			assert.equal((await migrate(['--from', target, '--data', back], { ...b.env, TRACEWELL_CRASH_AT: step })).signal, 'SIGKILL', step);
		const r = await migrate(['--from', target, '--data', back, '--json'], b.env);
		assert.equal(r.code, 0, r.reported);
		assert.deepEqual([r.json.state, r.json.from, r.json.to, r.json.from_blobs, r.json.to_blobs], ['done', 'postgresql', 'sqlite', 's3://files/tw', '']);
		assert.deepEqual(bytesIn(back), files);
		assert.ok(!fs.existsSync(path.join(back, 'storage')));
		const [first, last] = [sums(done, 'from'), sums(r, 'to')];
		for (const name of Object.keys(first)) if (name !== 'audit') assert.deepEqual(last[name], first[name], name); // each run is on the record
	});

	await t.test('a server on the target, and on the source again, returns the same responses', async (t) => {
		const moved = keysOf(s, await serve(t, target, b.env, b.args('--webhook-private', '127.0.0.0/8')));
		assert.match(moved.log, /catalogue=postgresql/);
		const after = await answers(moved, known);
		for (const at of Object.keys(before)) assert.deepEqual(after[at], before[at], at);
		assert.equal((await moved.trace(sampleTrace(9), {})).state, 'ready');
		await moved.stop();
		const home = keysOf(s, await serve(t, back));
		const again = await answers(home, known);
		for (const at of Object.keys(before)) assert.deepEqual(again[at], before[at], at);
		await home.stop();
		assert.equal(spawnSync(binary(), ['check', '--data', back]).status, 0);
	});
});

test('--verify finds differences in a store, also a truncated decoded file', { timeout: 900_000 }, async (t) => {
	const b = await startBucket(t);
	const [source, target] = [folder(t), path.join(folder(t), 'new')];
	const s = await small(t, { data: source });
	await s.stop();
	const done = await migrate(['--from', source, '--data', target, ...toStore(b)], b.env);
	assert.equal(done.code, 0, done.reported);
	assert.match(done.reported, /done: .* copied/);
	const verify = () => migrate(['--from', source, '--data', target, '--verify', '--json'], b.env);
	const whole = await verify();
	assert.deepEqual([whole.code, whole.json.state], [0, 'compared'], whole.reported);
	for (const kind of ['blobs/', 'traces/']) {
		const at = b.file(b.keys().find((key) => key.startsWith(kind)));
		const bytes = fs.readFileSync(at);
		for (const wrong of [Buffer.concat([bytes.subarray(0, 40), Buffer.from([bytes[40] ^ 1]), bytes.subarray(41)]), null]) {
			if (wrong) fs.writeFileSync(at, wrong);
			else fs.rmSync(at);
			const r = await verify();
			assert.equal(r.code, 1, r.reported);
			assert.match(r.json.error, wrong ? /the target's .* damaged/ : /the target's .* missing/);
		}
		fs.writeFileSync(at, bytes);
	}
	assert.equal((await verify()).code, 0);
});

test('while a server with a store runs: it responds throughout, and new traces are in the other store', { timeout: 900_000 }, async (t) => {
	const [a, b] = [await startBucket(t), await startBucket(t, 'other')];
	const [source, target] = [folder(t), path.join(folder(t), 'new')];
	const s = await small(t, { data: source, args: a.args('--webhook-private', '127.0.0.0/8'), env: a.env });
	const args = ['--from', source, '--data', target, ...toStore(b)];
	const [first, second] = s.traces;
	let slow = 0;

	b.fault = (q) => (q.method === 'PUT' && !q.url.includes('/owner/') ? (slow++, { wait: 1500 }) : undefined);
	const copying = startMigrate([...args, '--json'], a.env);
	atEnd(t, () => copying.child.kill('SIGKILL'));
	await until(() => (slow > 0 ? true : undefined), 'a file on its way');
	const before = await Promise.all(s.traces.map(({ id }) => s.get(`/api/v1/traces/${id}/flame`)));
	assert.ok(before.every((r) => r.status === 200));
	assert.equal((await s.ask('PATCH', `/api/v1/traces/${second.id}`, { key: s.write, body: json({ title: 'meanwhile' }) })).status, 200);
	assert.equal(copying.child.exitCode, null, 'it was still copying');
	assert.ok(slow > 1, 'several at once');
	const copied = await copying.ended;
	assert.deepEqual([copied.code, copied.json.state], [0, 'copied'], copied.reported);
	b.fault = () => undefined;

	const third = await s.trace(sampleTrace(30), { query: { app: 'shop' } });
	assert.equal((await s.ask('DELETE', `/api/v1/traces/${first.id}`)).status, 204);
	const old = b.keys();
	b.log.length = 0;
	const held = startMigrate([...args, '--hold', '--json'], a.env);
	atEnd(t, () => held.child.kill('SIGKILL'));
	await until(() => (held.reported.includes('The source serves reads') ? true : undefined), 'held');
	assert.equal(b.log.filter((line) => line.startsWith('PUT ')).length, 2, 'the upload that came and what was decoded of it');
	for (const key of old.filter((k) => !k.includes(first.id) && k.startsWith('traces/'))) assert.equal(b.count('HEAD', key), 1, 'and each was looked at once, not while it is held');
	const now = await s.get(`/api/v1/traces/${second.id}/flame`);
	assert.deepEqual([now.status, now.text], [200, before[1].text]);
	assert.equal((await s.ask('PATCH', `/api/v1/traces/${second.id}`, { key: s.write, body: json({ title: 'x' }) })).status, 503);
	const moved = keysOf(s, await serve(t, target, b.env, b.args()));
	await s.stop('SIGKILL');
	held.child.kill('SIGINT');
	const r = await held.ended;
	assert.deepEqual([r.code, r.json.state, r.json.from_blobs, r.json.to_blobs], [0, 'done', 's3://files/tw', 's3://other/tw'], r.reported);

	assert.equal((await moved.get(`/api/v1/traces/${first.id}`)).status, 404);
	assert.equal((await moved.get(`/api/v1/traces/${second.id}`)).json.title, 'meanwhile');
	assert.equal((await moved.get(`/api/v1/traces/${second.id}/flame`)).text, before[1].text);
	assert.equal((await moved.get(`/api/v1/traces/${third.id}/flame`)).status, 200);
	assert.equal((await moved.trace(sampleTrace(9), {})).state, 'ready');
	assert.equal((await moved.ask('DELETE', `/api/v1/traces/${third.id}`)).status, 204);
});

test('damaged and missing files are named and counted, into a store and out of it, and the rest is copied', { timeout: 900_000 }, async (t) => {
	const b = await startBucket(t);
	const [source, target, back] = [folder(t), path.join(folder(t), 'new'), path.join(folder(t), 'back')];
	const s = await small(t, { data: source });
	await s.stop();
	const [cut, gone] = [s.traces[0].id, s.traces[1].id].map((id) => `traces/${id.slice(-2)}/${id}.db`);
	const upload = filesIn(source).find((key) => key.startsWith('blobs/') && fs.readFileSync(path.join(source, key)).equals(sampleTrace(22)));
	fs.truncateSync(path.join(source, cut), 100);
	fs.rmSync(path.join(source, gone));
	fs.chmodSync(path.join(source, upload), 0o600);
	fs.appendFileSync(path.join(source, upload), 'x');
	const most = filesIn(source).filter((key) => key !== cut && key !== upload);

	b.fault = (q) => (q.method === 'PUT' && q.url.includes('/traces/') ? { status: 403, code: 'AccessDenied' } : undefined);
	const denied = await migrate(['--from', source, '--data', target, ...toStore(b), '--json'], b.env);
	assert.deepEqual([denied.code, denied.json.state], [1, 'failed'], denied.reported);
	assert.match(denied.json.error, /AccessDenied/);
	const there = b.keys();
	assert.ok(there.length > 0 && there.every((key) => key.startsWith('blobs/')), there.join(' '));

	let n = 0; // a store that fails now and then: each third request, by turns
	b.fault = () => [undefined, undefined, { status: 503, code: 'SlowDown' }, undefined, undefined, { drop: 'after' }][n++ % 6];
	const r = await migrate(['--from', source, '--data', target, ...toStore(b), '--json'], b.env);
	b.fault = () => undefined;
	assert.equal(r.code, 1, 'lost files are no success');
	assert.deepEqual([r.json.state, r.json.files.lost, r.json.files.copied], ['done', 3, most.length - there.length], r.reported);
	assert.deepEqual(lostIn(r).sort(), [[s.traces[0].id, 'its decoded is damaged'], [s.traces[1].id, 'the content is no longer stored'], [s.traces[2].id, 'its trace is damaged']].sort(), r.reported);
	assert.deepEqual(b.keys(), most);

	const flipped = b.keys().find((key) => key.startsWith('blobs/') && fs.readFileSync(b.file(key)).equals(sampleTrace(20)));
	const bytes = fs.readFileSync(b.file(flipped));
	bytes[20] ^= 1;
	fs.writeFileSync(b.file(flipped), bytes);
	const home = await migrate(['--from', target, '--data', back, '--json'], b.env);
	assert.deepEqual([home.code, home.json.state, home.json.files.lost], [1, 'done', 4], home.reported);
	assert.ok(lostIn(home).some(([id, why]) => id === s.traces[0].id && /damaged/.test(why)), home.reported);
	assert.deepEqual(filesIn(back), most.filter((key) => key !== flipped));
});

test('impossible migrations with a store are refused with a message', { timeout: 900_000 }, async (t) => {
	const [b, c] = [await startBucket(t), await startBucket(t, 'other')];
	const [source, empty] = [folder(t), folder(t)];
	const s = await small(t, { data: source });
	await s.stop();
	await makeData(empty);
	spawnSync(binary(), ['key', 'create', '--data', empty, '--project', 'p', '--scope', 'read']);
	const kept = path.join(folder(t), 'kept');
	assert.equal((await migrate(['--from', source, '--data', kept, ...toStore(b, 'taken')], b.env)).code, 0);
	const fresh = () => path.join(folder(t), 'new');
	fs.mkdirSync(path.join(b.folder, 'full', 'blobs', 'ab'), { recursive: true });
	const some = b.keys('taken')[0];
	fs.cpSync(path.dirname(b.file(some, 'taken')), path.join(b.folder, 'full', path.dirname(some)), { recursive: true });
	/* 2: the arguments can never work together; 1: this time they do not */
	for (const [code, args, words, env = b.env] of [
		[1, ['--from', source, '--data', fresh(), ...toStore(b, 'taken')], /another catalogue/],
		[1, ['--from', source, '--data', fresh(), ...toStore(b, 'full')], /has files, but this catalogue has none/],
		[2, ['--from', kept, '--data', fresh(), ...toStore(b, 'taken')], /has the files of the source/],
		[2, ['--from', kept, '--data', fresh(), `--to-blobs=s3://${b.name}/taken/`, `--s3-endpoint=${b.url}/`, '--s3-adopt'], /has the files of the source, and/],
		[2, ['--from', kept, '--data', fresh(), `--to-blobs=s3://${b.name}/taken`, `--s3-endpoint=${b.url.replace('127.0.0.1', 'localhost')}`, '--s3-adopt'], /has the files of the source, under another name/],
		[1, ['--from', source, '--data', kept, ...toStore(c)], /the files of this data folder are in s3:\/\/files\/taken/],
		[2, ['--from', source, '--data', fresh(), `--s3-endpoint=${b.url}`], /the store of --to-blobs/],
		[2, ['--from', source, '--data', fresh(), '--to-blobs=ftp://x'], /s3:\/\/BUCKET/],
		[2, ['--from', source, '--data', fresh(), ...toStore(b, 'x'), '--s3-timeout=no'], /s3-timeout/],
		[1, ['--from', source, '--data', fresh(), ...toStore(b, 'x')], /AccessDenied|InvalidAccessKey|Signature|403/, { ...b.env, AWS_SECRET_ACCESS_KEY: 'wrong' }],
		[1, ['--from', source, '--data', fresh(), '--to-blobs=s3://files/x', '--s3-endpoint=http://127.0.0.1:9', '--s3-timeout=1'], /127\.0\.0\.1|connect|respond/],
		[1, ['--from', kept, '--data', fresh()], /taken|files|bucket|store/, { ...b.env, TRACEWELL_BLOBS: 's3://files/elsewhere' }],
	]) {
		const r = await migrate(args, env);
		assert.equal(r.code, code, `${args.join(' ')}: ${r.reported}`);
		assert.match(r.reported, words, args.join(' '));
	}
	assert.deepEqual(b.all('x'), [], 'nothing was begun there');
});
