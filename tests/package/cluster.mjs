/*
 * cluster.mjs - what several servers stand on, for tests of the files that set them up: a PostgreSQL that asks for
 * its password, a store, a ClickHouse, and HAProxy with the shipped configuration, all on loopback.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { startBucket } from '../e2e/bucket.mjs';
import { startPostgres } from '../e2e/postgres.mjs';
import { Server, atEnd, freePort, root, until } from '../e2e/server.mjs';

export const hasProxy = spawnSync('which', ['haproxy']).status === 0;

export function folder(t, name) {
	const at = fs.mkdtempSync(path.join(os.tmpdir(), `tracewell-${name}-`));
	fs.chmodSync(at, 0o755);
	atEnd(t, () => fs.rmSync(at, { recursive: true, force: true }));
	return at;
}

/* Debian's parser: all documents of a file. */
export function yaml(name) {
	const program = 'import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))';
	return JSON.parse(execFileSync('/usr/bin/python3', ['-c', program, path.join(root, 'deploy', name)], { encoding: 'utf8' }));
}

/* Names of all settings of the server, as its configuration file lists them. */
export function settings() {
	const made = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-settings-'));
	execFileSync(path.join(root, 'deploy/documents.py'), [made, '0', '2026-01-01']);
	const text = fs.readFileSync(path.join(made, 'tracewell.conf'), 'utf8');
	fs.rmSync(made, { recursive: true });
	return new Set([...text.matchAll(/^#?([a-z][a-z0-9-]*) *=/gm)].map((m) => m[1]));
}

/* A role and a database "tracewell" that only the password opens. */
export async function startDatabase(t, password) {
	const port = await freePort();
	const db = await startPostgres(t, { tcp: port });
	db.sql(`CREATE ROLE tracewell LOGIN PASSWORD '${password}'`);
	db.sql('CREATE DATABASE tracewell OWNER tracewell');
	return { port, address: `127.0.0.1:${port}` };
}

export const hasClickHouse = spawnSync('which', ['clickhouse-server']).status === 0;

/* With the users of a file of settings, as a folder users.d gives them to it; "HOST:PORT". */
export async function startClickHouse(t, users) {
	const at = folder(t, 'clickhouse'), port = await freePort();
	fs.mkdirSync(path.join(at, 'users.d'));
	fs.writeFileSync(path.join(at, 'users.d/tracewell.xml'), users.replaceAll('clickhouse>', 'yandex>')); /* as 18.16 calls the root */
	const child = spawn(path.join(root, 'tests/unit/on_clickhouse'), ['--serve', at, String(port)], { stdio: 'ignore' });
	atEnd(t, () => new Promise((done) => (child.exitCode === null ? child.once('exit', done).kill('SIGKILL') : done())));
	await until(async () => (await fetch(`http://127.0.0.1:${port}/ping`).catch(() => undefined))?.ok || undefined, 'ClickHouse');
	return `127.0.0.1:${port}`;
}

export const startStore = (t) => startBucket(t, 'tracewell');

/* The shipped text unchanged; differences are set from outside, as the files do. */
export async function startBalance(t, env) {
	const port = await freePort();
	const child = spawn('haproxy', ['-db', '-f', path.join(root, 'deploy/proxy/haproxy-cluster.cfg')],
		{ stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: process.env.PATH, TRACEWELL_BIND: `127.0.0.1:${port}`, ...env } });
	let said = '';
	child.stderr.on('data', (piece) => (said += piece));
	atEnd(t, () => new Promise((done) => (child.exitCode === null ? child.once('close', done).kill('SIGTERM') : done())));
	const url = `http://127.0.0.1:${port}`;
	await until(async () => ((await fetch(url + '/proxyz').catch(() => null))?.status === 200 ? true : undefined), 'the proxy').catch((e) => assert.fail(e.message + said));
	return url;
}

/* A file's flags for `tracewell serve`, with the test's folder and port. */
export async function startOne(t, name, command, env) {
	assert.deepEqual(command.slice(0, 3), ['serve', '--data', '/data']);
	const rest = command.slice(3);
	const at = rest.indexOf('--listen');
	if (at >= 0) rest.splice(at, 2);
	const s = new Server(folder(t, name), rest, env);
	await s.start();
	atEnd(t, () => s.stop());
	return s;
}
