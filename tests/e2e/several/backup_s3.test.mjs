/*
 * backup_s3.test.mjs - a backup into an S3-compatible store, under load; its downloaded copy is a
 * data folder that a server runs on. The store is bucket.mjs.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { test } from 'node:test';

import { startBucket } from '../bucket.mjs';
import { sampleMapping, sampleTrace } from '../make.mjs';
import { binary, startServer, until } from '../server.mjs';

/* The store and its bucket; .backup() and .fetch(). */
async function startStore(t) {
	const bucket = await startBucket(t, 'backups');
	return {
		async backup(data, more = {}, to = 's3://backups/nightly', args = []) {
			const child = spawn(binary(), ['backup', '--data', data, '--to', to, '--s3-endpoint', `${bucket.url}/`, ...args],
				{ stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...bucket.env, ...more } });
			let output = '';
			for (const out of [child.stdout, child.stderr]) out.setEncoding('utf8').on('data', (text) => (output += text));
			return new Promise((done) => child.once('close', (code) => done({ code, output })));
		},
		fetch: (name) => bucket.fetch(name, 'nightly'),
		bucket,
	};
}

const upload = async (s, n) => (await s.post('/api/v1/traces', sampleTrace(50 + n), { query: { build_id: 'b1' } })).json.id;
const flameOf = async (s, id, key) => (await s.get(`/api/v1/traces/${id}/flame`, { key })).json;
const isWhole = (data) => spawnSync(binary(), ['check', '--data', data]).status === 0;

test('under load; the copy is a data folder with the same responses; the next run sends only new files', async (t) => {
	const store = await startStore(t);
	const s = await startServer(t);
	const before = [];
	for (let i = 0; i < 8; i++) before.push(await upload(s, i));
	await s.put('/api/v1/builds/b1/methods', sampleMapping);
	for (const id of before) await s.decoded(id);
	let going = true;
	const load = (async () => {
		for (let i = 100; going; i++) {
			const id = await upload(s, i);
			if (i % 3 === 0) await s.ask('DELETE', `/api/v1/traces/${id}`);
		}
	})();
	const first = await store.backup(s.data);
	going = false;
	await load;
	assert.equal(first.code, 0, first.output);
	assert.match(first.output, /\d+ uploads in the backup: \d+ files copied/);

	const again = await startServer(t, { data: store.fetch('restored') });
	for (const id of before) {
		assert.equal((await until200(again, `/api/v1/traces/${id}/flame`, s.read)).status, 200);
		assert.deepEqual(await flameOf(again, id, s.read), await flameOf(s, id, s.read));
	}
	await again.stop();
	assert.ok(isWhole(again.data));

	await store.backup(s.data);
	assert.match((await store.backup(s.data)).output, /: 1 files copied/, 'the catalogue alone');
	await upload(s, 500);
	assert.match((await store.backup(s.data)).output, /: 2 files copied/);
});

async function until200(s, target, key) {
	return until(async () => {
		const r = await s.get(target, { key });
		return r.status === 200 ? r : undefined;
	}, `${target}: no 200`);
}

const tracesIn = (data) => Number(spawnSync('sqlite3', [`${data}/catalogue.db`, 'SELECT count(*) FROM trace'], { encoding: 'utf8' }).stdout);

test('of two backups at once the one that began with fewer uploads does not replace the other', async (t) => {
	const store = await startStore(t);
	const s = await startServer(t);
	await upload(s, 1);
	let goOn, begun;
	const goesOn = new Promise((done) => (goOn = done)), hasBegun = new Promise((done) => (begun = done));
	store.bucket.fault = (q) => (q.method === 'PUT' && q.url.includes('/blobs/') ? (begun(), goesOn) : undefined); // its catalogue is copied
	const first = store.backup(s.data);
	await hasBegun;
	store.bucket.fault = () => undefined;
	await upload(s, 2);
	const second = await store.backup(s.data);
	assert.equal(second.code, 0, second.output);
	goOn();
	const { code, output } = await first;
	assert.equal(code, 1, output);
	assert.match(output, /another backup has replaced catalogue\.db during this one: run it again/);
	assert.equal(tracesIn(store.fetch('newest')), 2);
	assert.equal((await store.backup(s.data)).code, 0);
});

test('a prefix with the backup of another server is refused', async (t) => {
	const store = await startStore(t);
	const [s, other] = [await startServer(t), await startServer(t)];
	for (let i = 0; i < 3; i++) await upload(s, i);
	await upload(other, 9);
	assert.equal((await store.backup(s.data)).code, 0);
	const { code, output } = await store.backup(other.data);
	assert.equal(code, 1, output);
	assert.match(output, /shares no project with this server .*: use another prefix, or set --replace/);
	assert.equal(tracesIn(store.fetch('own')), 3);
	assert.equal((await store.backup(other.data, {}, undefined, ['--replace'])).code, 0);
	assert.equal(tracesIn(store.fetch('replaced')), 1);
	for (const each of [s, other]) assert.deepEqual(each.spool(), []);
});

test('the prefix in which a server stores its files is refused', async (t) => {
	const store = await startStore(t);
	const [s, there] = [await startServer(t), await startServer(t, { args: store.bucket.args(), env: store.bucket.env })];
	await upload(s, 1);
	await there.decoded(await upload(there, 2));
	for (const args of [[], ['--replace']]) {
		const { code, output } = await store.backup(s.data, {}, 's3://backups/tw', args);
		assert.equal(code, 1, output);
		assert.match(output, /a server stores its files below this prefix/);
	}
});

test('unsupported cases are reported', async (t) => {
	const store = await startStore(t);
	const s = await startServer(t);
	await upload(s, 1);
	const wrong = await store.backup(s.data, { AWS_SECRET_ACCESS_KEY: 'guessed' });
	assert.equal(wrong.code, 1);
	assert.match(wrong.output, /the store returned 403/);
	assert.ok(!wrong.output.includes('guessed'));
	assert.match((await store.backup(s.data, { AWS_ACCESS_KEY_ID: '' })).output, /set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/);
	assert.match((await store.backup(s.data, {}, 's3://')).output, /the target must be/);
	assert.match((await store.backup(s.data, {}, 's3://nowhere/x')).output, /the store returned 404/);
	assert.deepEqual(s.spool(), []);
});
