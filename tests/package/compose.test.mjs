/*
 * compose.test.mjs - deploy/container/compose-several.yml: each name, flag and setting in it is one that there is,
 * secrets are in no environment, and what it starts, on PostgreSQL, a store, ClickHouse and HAProxy of this machine,
 * takes a trace, shows its flame graph and counts it.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { sampleTrace } from '../e2e/make.mjs';
import { postgresIsThere } from '../e2e/postgres.mjs';
import { binary, root, tracewell, until } from '../e2e/server.mjs';
import { folder, hasClickHouse, hasProxy, settings, startBalance, startClickHouse, startDatabase, startOne, startStore, yaml } from './cluster.mjs';

const FILE = 'container/compose-several.yml';
const skip = !postgresIsThere ? 'no PostgreSQL 15' : !hasProxy ? 'no haproxy' : !hasClickHouse && 'no ClickHouse';
const engine = spawnSync('docker', ['compose', 'version']).status === 0;
const [compose] = yaml(FILE);
const all = Object.entries(compose.services);
const ours = all.filter(([, s]) => s.command?.[0] === 'serve');

/* ${NAME:-default} and ${NAME:+other}, as compose fills them in; $$ is a dollar. */
const filled = (text, env = {}) => execFileSync('sh', ['-c', `printf %s "${text}"`], { encoding: 'utf8', env });

test('each service has no more rights than it needs', () => {
	for (const [name, s] of all) {
		assert.ok(s.read_only && s.cap_drop.includes('ALL') && s.security_opt.includes('no-new-privileges:true'), name);
		assert.doesNotMatch(s.image, /^[^/]*[.:][^/]*\//, `${name}: from wherever the reader's images come`);
		assert.deepEqual((s.ports ?? []).filter((port) => name !== 'proxy' && !port.startsWith('127.0.0.1:')), [], `${name}: nobody else sees it without TLS`);
		for (const [setting, value] of Object.entries(s.environment ?? {}))
			assert.doesNotMatch(`${setting}=${value}`, /(PASSWORD|SECRET|KEY)(_ID|_ACCESS_KEY)?=|:[^/@]+@/, `${name}: secrets are files`);
	}
});

test('who waits for whom waits for something that comes', () => {
	for (const [name, s] of all)
		for (const [of, { condition }] of Object.entries(s.depends_on ?? {})) {
			const other = compose.services[of];
			assert.ok(other, `${name} waits for ${of}`);
			if (condition === 'service_healthy') assert.ok(other.healthcheck, `${of} has no healthcheck`);
			else assert.ok(condition === 'service_completed_successfully' && other.restart !== 'unless-stopped', `${of} ends`);
		}
	const volumes = all.flatMap(([, s]) => s.volumes ?? []).map((v) => v.split(':')[0]);
	for (const v of volumes) assert.ok(v.startsWith('.') ? fs.existsSync(path.join(root, 'deploy/container', v)) : v in compose.volumes, v);
	assert.deepEqual(Object.keys(compose.volumes).filter((v) => !volumes.includes(v)), [], 'none is left over');
});

test('HAProxy believes the address that the proxy has', () => {
	const text = fs.readFileSync(path.join(root, 'deploy/proxy/haproxy-cluster.cfg'), 'utf8');
	assert.ok(text.includes(`TRACEWELL_FRONT-${compose.services.proxy.networks.inside.ipv4_address}}`));
	const { subnet, ip_range: given } = compose.networks.inside.ipam.config[0];
	assert.deepEqual([subnet, given], ['172.31.78.0/24', '172.31.78.128/25']);
	assert.ok(Number(compose.services.proxy.networks.inside.ipv4_address.split('.')[3]) < 128, 'no other container is given its address');
	for (const role of ['ingest', 'query']) assert.ok(text.includes(`-${role}:8080}`) && compose.services[role]);
	for (const [, s] of ours) assert.equal(s.environment.TRACEWELL_TRUSTED_PROXIES, compose.networks.inside.ipam.config[0].subnet);
});

test('docker compose takes the file', { skip: !engine && 'no docker compose' }, () => {
	const { status, stderr } = spawnSync('docker', ['compose', '-f', path.join(root, 'deploy', FILE), '--profile', 'proxy', 'config', '-q'], { encoding: 'utf8' });
	assert.equal(status, 0, stderr);
});

/* The service that makes the secrets, on a folder; run again it changes none. */
function prepare(at) {
	const { entrypoint, command } = compose.services.prepare;
	const here = process.getuid() === 0 ? '' : 'chown() { :; }\n';
	for (const of of ['tracewell', 'postgres', 's3', 'clickhouse']) fs.mkdirSync(path.join(at, of), { recursive: true });
	execFileSync(entrypoint[0], [...entrypoint.slice(1), here + command[0].replaceAll('$$', '$')], { env: { PATH: process.env.PATH, SECRETS: at } });
	return (name) => fs.readFileSync(path.join(at, name), 'utf8').trim();
}

/* Its own words with the test's addresses; each must find its place. */
function environment(service, at, db, store, clickhouse) {
	const env = Object.fromEntries(Object.entries(service.environment).map(([name, value]) => [name, filled(value)]));
	const put = (name, from, to) => {
		assert.ok(env[name].includes(from), `${name}: ${from}`);
		env[name] = env[name].replace(from, to);
	};
	put('TRACEWELL_CATALOG', '@postgres/', `@${db.address}/`);
	put('TRACEWELL_CATALOG', '/secrets/', `${at}/tracewell/`);
	put('TRACEWELL_S3_ENDPOINT', 'http://s3:8333', store.url);
	put('TRACEWELL_ANALYTICS', '//clickhouse:8123/', `//${clickhouse}/`);
	for (const name of ['TRACEWELL_S3_CREDENTIALS_FILE', 'TRACEWELL_SECRET_KEY_FILE', 'TRACEWELL_ANALYTICS_PASSWORD_FILE']) put(name, '/secrets', `${at}/tracewell`);
	env.TRACEWELL_TRUSTED_PROXIES = '127.0.0.1';
	env.TRACEWELL_DRAIN_SECONDS = '0';
	return env;
}

const ends = (args) => new Promise((done) => execFile(binary(), args, (error) => done(error ? error.code : 0)));

/* HAProxy takes a busy server out for a few seconds, and a server refuses what its store is late for. */
const answered = (ask) => until(async () => {
	const answer = await ask();
	return [502, 503, 504].includes(answer.status) ? undefined : answer;
}, 'an answer through HAProxy');

test('what it starts takes a trace and shows its flame graph', { skip, timeout: 600000 }, async (t) => {
	const at = folder(t, 'secrets');
	const secret = prepare(at);
	const password = secret('postgres/password');
	assert.match(password, /^[0-9a-f]{64}$/);
	prepare(at);
	assert.equal(secret('postgres/password'), password, 'made once');
	const key = JSON.parse(secret('s3/s3.json')).identities[0].credentials[0];
	assert.ok(secret('tracewell/s3').includes(`aws_secret_access_key = ${key.secretKey}`) && secret('tracewell/s3').includes(`aws_access_key_id = ${key.accessKey}`));

	const db = await startDatabase(t, password);
	const store = await startStore(t);
	const clickhouse = await startClickHouse(t, secret('clickhouse/tracewell.xml'));
	const edit = (name, from, to) => {
		assert.ok(secret(name).includes(from), from);
		fs.writeFileSync(path.join(at, name), secret(name).replace(from, to));
	};
	edit('tracewell/pgpass', 'postgres:5432:', `127.0.0.1:${db.port}:`);
	edit('tracewell/s3', key.secretKey, store.env.AWS_SECRET_ACCESS_KEY);
	const [known, help] = [settings(), tracewell('help')];
	const by = {};
	await Promise.all(ours.map(async ([name, s]) => {
		for (const flag of s.command.filter((arg) => arg.startsWith('--'))) assert.ok(help.includes(flag), flag);
		for (const of of Object.keys(s.environment)) assert.ok(known.has(of.replace('TRACEWELL_', '').toLowerCase().replaceAll('_', '-')), of);
		by[name] = await startOne(t, `compose-${name}`, s.command, environment(s, at, db, store, clickhouse));
	}));
	for (const [name, s] of ours) {
		const [, program, ...args] = s.healthcheck.test;
		assert.equal(program, 'tracewell');
		/* repeated, as compose does; the store shares this process, so nothing may block it */
		await until(async () => ((await ends(args.map((arg) => arg.replace('http://127.0.0.1:8080', by[name].url)))) === 0 ? true : undefined), `${name} is healthy`);
	}
	const url = await startBalance(t, { TRACEWELL_INGEST: `127.0.0.1:${by.ingest.port}`, TRACEWELL_QUERY: `127.0.0.1:${by.query.port}` });
	const token = by.query.key('write');
	const asked = (target, options) => answered(() => fetch(url + target, { ...options, headers: { Authorization: `Bearer ${token}`, ...options?.headers } }));
	const sent = await asked('/api/v1/traces?app=shop', { method: 'POST', body: sampleTrace(20), headers: { 'Idempotency-Key': 'one' } });
	assert.ok(sent.status <= 202, `${sent.status}`);
	const { id } = await sent.json();
	await until(async () => ((await (await asked(`/api/v1/traces/${id}`)).json()).state === 'ready' ? true : undefined), 'it is decoded');
	const flame = await asked(`/api/v1/traces/${id}/flame?thread=all`);
	assert.equal(flame.status, 200);
	assert.ok((await flame.text()).length > 100);
	assert.ok(store.keys('production').some((key) => key.startsWith('traces/')), 'and is in the store');
	await until(async () => ((await (await asked('/api/v1/fleet/scenarios?by=all')).json()).traces === 1 ? true : undefined), 'it is counted');
	const login = secret('tracewell/clickhouse');
	const rows = (headers) => fetch(`http://${clickhouse}/?database=tracewell`, { method: 'POST', body: 'SELECT count() FROM traces', headers });
	assert.equal((await (await rows({ 'X-ClickHouse-User': 'tracewell', 'X-ClickHouse-Key': login })).text()).trim(), '1', 'in ClickHouse');
	assert.notEqual((await rows({ 'X-ClickHouse-User': 'tracewell', 'X-ClickHouse-Key': 'x' })).status, 200);
	assert.notEqual((await rows({})).status, 200, 'no other user');
	const page = await answered(() => fetch(url + '/'));
	assert.equal(page.status, 200);
	assert.match(page.headers.get('set-cookie') ?? '', /^tracewell-node=/, 'a browser stays where it began');
});
