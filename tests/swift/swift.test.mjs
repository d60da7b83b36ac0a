/*
 * swift.test.mjs - files on OpenStack Swift by its s3api: uploads whole and in parts, decodes, reads by another
 * server, addresses for devices, deletes, the sweep, a server that is killed. `tests/run --only swift`.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { blobKey, fileKey, startCluster } from '../e2e/cluster.mjs';
import { sampleMapping, sampleTrace } from '../e2e/make.mjs';
import { startPostgres } from '../e2e/postgres.mjs';
import { startServer, until } from '../e2e/server.mjs';
import { lacksSwift, startSwift } from './swift.mjs';

const skip = lacksSwift;

test('one server: whole and in parts, read again, by a device, deleted', { skip, timeout: 240000 }, async (t) => {
	const b = await startSwift(t);
	const s = await startServer(t, { args: b.args('--s3-part=64K'), env: b.env });
	const [small, large] = [sampleTrace(40), sampleTrace(8000)];
	const one = await s.trace(small, { query: { build_id: 'b1' } });
	const other = await s.trace(large);
	for (const trace of [one, other]) assert.equal(trace.state, 'ready');
	assert.equal((await s.put('/api/v1/builds/b1/methods', sampleMapping)).status, 200);
	for (const key of [blobKey(small), blobKey(large), fileKey(one.id), fileKey(other.id)]) assert.ok((await b.keys()).includes(key), key);
	assert.ok((await b.keys('files+segments')).length > 1, 'it went in parts');
	const before = (await s.get(`/api/v1/traces/${other.id}/flame`)).json;
	await s.stop();
	fs.rmSync(path.join(s.data, 'cache'), { recursive: true });
	await s.start();
	assert.deepEqual((await s.get(`/api/v1/traces/${other.id}/flame`)).json, before);
	assert.deepEqual((await s.get(`/api/v1/traces/${other.id}/raw/trace`)).bytes, large);
	assert.deepEqual((await s.get(`/api/v1/traces/${one.id}/raw/trace`)).bytes, small);
	assert.equal((await s.get('/readyz', { key: null })).json.checks.storage.ok, true);

	const third = sampleTrace(41);
	const asked = await s.post('/api/v1/uploads/direct', JSON.stringify({ bytes: third.length, sha256: createHash('sha256').update(third).digest('hex'), meta: {} }));
	assert.equal(asked.status, 201, asked.text);
	const { url, headers, complete_url } = asked.json;
	const put = await fetch(url, { method: 'PUT', headers, body: third });
	assert.equal(put.status, 200, await put.text());
	const arrived = await s.post(complete_url);
	assert.ok(arrived.status < 300, arrived.text);
	assert.equal((await s.decoded(arrived.json.id)).state, 'ready');

	for (const { id } of [one, other, arrived.json]) assert.equal((await s.ask('DELETE', `/api/v1/traces/${id}`)).status, 204);
	const gone = [small, large, third].map(blobKey).concat([one, other, arrived.json].map(({ id }) => fileKey(id)));
	await until(async () => ((await b.keys()).some((key) => gone.includes(key)) ? undefined : true), 'all gone', 60)
		.catch(async (e) => assert.fail(`${e.message}: ${await b.keys()} ${s.log.slice(-3000)}`));
	assert.deepEqual(await b.keys('files+segments'), [], 'and their parts');
});

test('a wrong key and a missing bucket are reported with a message', { skip, timeout: 120000 }, async (t) => {
	const b = await startSwift(t);
	const s = await startServer(t, { args: b.args(), env: { ...b.env, AWS_SECRET_ACCESS_KEY: 'wrong' } }).catch((e) => e);
	assert.ok(s instanceof Error || (await s.get('/readyz', { key: null })).status === 503);
	assert.match(s.message ?? s.log, /SignatureDoesNotMatch|403/);
	const missing = await startServer(t, { args: b.args('--blobs=s3://nowhere/tw'), env: b.env }).catch((e) => e);
	assert.match(missing.message ?? missing.log, /no bucket of that name|NoSuchBucket|404/);
});

test('two servers under load, one of which is killed', { skip, timeout: 240000 }, async (t) => {
	const db = await startPostgres(t);
	const c = await startCluster(t, { db, name: 'swift', bucket: await startSwift(t) });
	await c.serve();
	await c.serve();
	const load = c.send(3);
	await load.more(10, 'uploads', 120);
	c.servers[1].child.kill('SIGKILL');
	await c.servers[1].ended;
	await load.more(10, 'uploads go on', 120);
	await c.servers[1].start();
	await load.more(5, 'uploads at both', 120);
	await load.end();
	await c.works();
	await c.verify(load, 120);
	t.diagnostic(`${load.kept.size} uploads accepted; answers ${JSON.stringify([...load.reported])}, the slowest ${load.slowest} ms`);
});
