/*
 * docker.test.mjs - deploy/container by Docker: the image is built and the compose files are started as their first
 * lines say. `tests/run --only docker`; minutes, most of them the build. PostgreSQL, HAProxy, Caddy and the store are
 * stand-ins of Debian's packages (stands/), as no image is fetched.
 */
import assert from 'node:assert/strict';
import https from 'node:https';
import { after, before, describe, test } from 'node:test';

import { sampleTrace } from '../e2e/make.mjs';
import { until } from '../e2e/server.mjs';
import { Engine, lacksDocker } from './engine.mjs';

const URL = 'http://127.0.0.1:8080';
const [ALONE, SEVERAL] = ['compose.yml', 'compose-several.yml'];
const engine = new Engine();

const asked = async (key, target, options = {}) => {
	const answer = await fetch(URL + target, { ...options, headers: { Authorization: `Bearer ${key}` } });
	return { status: answer.status, json: await answer.json().catch(() => undefined) };
};
const send = async (key, n) => {
	const answer = await asked(key, '/api/v1/traces?app=shop', { method: 'POST', body: sampleTrace(n) });
	assert.equal(answer.status, 202, JSON.stringify(answer.json));
	return answer.json.id;
};
const ready = (key, id) => until(async () => ((await asked(key, `/api/v1/traces/${id}`)).json?.state === 'ready' ? true : undefined), 'it is decoded', 60);
const keyOf = (file, service) => engine.compose(file, ['exec', '-T', service, 'tracewell', 'key', 'create', '--data', '/data', '--project', 'default', '--scope', 'write']);

/* The proxy's certificate is self-signed. */
const byTls = (target) => new Promise((done) =>
	https.get('https://localhost' + target, { rejectUnauthorized: false, agent: false }, (a) => a.resume().on('end', () => done(a.statusCode))).on('error', () => done(undefined)));

describe('deploy/container by Docker', { skip: lacksDocker, timeout: 3_500_000 }, () => {
	before(async () => {
		await engine.start();
		await engine.images();
	}, { timeout: 3_000_000 });
	after(() => engine.stop());

	test('one server: healthy, takes a trace, keeps it over a new container, stops in time', async () => {
		await engine.compose(ALONE, ['up', '-d']);
		await engine.healthy(ALONE, ['tracewell']);
		assert.match(await engine.compose(ALONE, ['exec', '-T', 'tracewell', 'tracewell', 'link', 'create', '--data', '/data']), /^http:\/\/127\.0\.0\.1:8080\/signin#/);
		const key = await keyOf(ALONE, 'tracewell');
		const id = await send(key, 20);
		await ready(key, id);
		const [container] = JSON.parse(await engine.docker('inspect', await engine.compose(ALONE, ['ps', '-q', 'tracewell'])));
		const { Memory, PidsLimit, ReadonlyRootfs, CapDrop } = container.HostConfig;
		assert.deepEqual({ Memory, PidsLimit, ReadonlyRootfs, CapDrop }, { Memory: 4 * 2 ** 30, PidsLimit: 4096, ReadonlyRootfs: true, CapDrop: ['ALL'] });
		await engine.compose(ALONE, ['up', '-d', '--force-recreate']);
		await engine.healthy(ALONE, ['tracewell']);
		assert.equal((await asked(key, `/api/v1/traces/${id}`)).json.state, 'ready');
	});

	test('behind Caddy with a certificate', async () => {
		const env = { TRACEWELL_URL: 'https://localhost' };
		await engine.compose(ALONE, ['--profile', 'proxy', 'up', '-d'], env);
		await until(async () => ((await byTls('/readyz')) === 200 ? true : undefined), 'the proxy', 60);
		const link = await engine.compose(ALONE, ['exec', '-T', 'tracewell', 'sh', '-c', 'echo $TRACEWELL_PUBLIC_URL'], env);
		assert.equal(link, 'https://localhost');
		const id = await engine.compose(ALONE, ['ps', '-q', 'tracewell'], env);
		await engine.compose(ALONE, ['--profile', 'proxy', 'stop'], env);
		const [{ State }] = JSON.parse(await engine.docker('inspect', id));
		assert.equal(State.ExitCode, 0, 'it is not killed at the end of the grace period');
		await engine.compose(ALONE, ['--profile', 'proxy', 'down', '-v'], env);
	});

	test('several servers: start without anything prepared, take over from each other, grow, and come back', async () => {
		await engine.compose(SEVERAL, ['up', '-d']);
		await engine.healthy(SEVERAL, ['ingest', 'decode', 'query', 'balance']);
		const key = await keyOf(SEVERAL, 'query');
		await ready(key, await send(key, 21));

		await engine.compose(SEVERAL, ['up', '-d', '--scale', 'ingest=2', '--scale', 'decode=3']);
		await engine.healthy(SEVERAL, ['ingest', 'decode']);
		const decoders = (await engine.compose(SEVERAL, ['ps', '-q', 'decode'])).split('\n');
		assert.equal(decoders.length, 3);
		await engine.docker('kill', decoders[0], (await engine.compose(SEVERAL, ['ps', '-q', 'ingest'])).split('\n')[0]);
		const ids = [];
		for (let n = 30; n < 36; n++) ids.push(await until(() => send(key, n).catch(() => undefined), 'another ingest takes it', 30));
		await Promise.all(ids.map((id) => ready(key, id)));

		await engine.compose(SEVERAL, ['--profile', 'proxy', 'up', '-d'], { TRACEWELL_URL: 'https://localhost' });
		await until(async () => ((await byTls('/readyz')) === 200 ? true : undefined), 'the proxy, at the address that is kept for it', 90);

		await engine.compose(SEVERAL, ['--profile', 'proxy', 'down']);
		await engine.compose(SEVERAL, ['up', '-d']);
		await engine.healthy(SEVERAL, ['ingest', 'decode', 'query', 'balance']);
		const all = (await asked(key, '/api/v1/traces?limit=100')).json.traces;
		assert.deepEqual(ids.filter((id) => !all.some((trace) => trace.id === id && trace.state === 'ready')), [], 'passwords, keys, catalogue and files stayed');
		await engine.compose(SEVERAL, ['down', '-v']);
	});
});
