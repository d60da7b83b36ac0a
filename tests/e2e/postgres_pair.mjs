/*
 * postgres_pair.mjs - a primary and its streaming replica, both on loopback: the replica has written
 * every commit of the primary.
 *
 *   const pair = await startPair(t);          // null when PostgreSQL is not installed
 *   pair.url('one')                            // both hosts, a schema
 *   await pair.primary.crash();  await pair.promote();
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { Postgres, command, postgresIsThere } from './postgres.mjs';
import { atEnd, freePort, until } from './server.mjs';

const run = (...all) => execFileSync(all[0], all.slice(1), { stdio: ['ignore', 'pipe', 'pipe'], cwd: '/', encoding: 'utf8' });

class Node extends Postgres {
	constructor(folder, port, more = []) {
		super(folder, port, more);
		this.port = port;
		this.hosts = 'trust';
	}

	/* To all its processes. */
	signal(name) {
		const sessions = run('ps', '-o', 'pid=', '--ppid', String(this.child.pid)).split('\n').map(Number).filter(Boolean);
		for (const pid of [this.child.pid, ...sessions]) {
			try {
				process.kill(pid, name);
			} catch {
				/* it has ended */
			}
		}
	}

	/* As after the loss of its machine: its sessions end, too. */
	async crash() {
		this.signal('SIGKILL');
		await this.ended;
	}

	/* All sessions of tracewell end. */
	endSessions() {
		this.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid<>pg_backend_pid() AND application_name='tracewell'");
	}
}

class Pair {
	constructor(primary, replica) {
		Object.assign(this, { primary, replica });
	}

	url(schema) {
		this.primary.sql(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
		return this.address(schema, this.primary.port, this.replica?.port);
	}

	/* Through other ports. */
	address(schema, ...ports) {
		return `postgres://tw@${ports.filter(Boolean).map((port) => `127.0.0.1:${port}`).join(',')}/postgres?options=-csearch_path%3D${schema}`;
	}

	/* A commit is done when the replica has it on its disk. */
	async agree() {
		this.primary.sql("ALTER SYSTEM SET synchronous_standby_names='*'");
		this.primary.sql('SELECT pg_reload_conf()');
		await until(() => (this.primary.sql('SELECT sync_state FROM pg_stat_replication') === 'sync' ? true : undefined), 'a replica that is waited for');
	}

	/* It waits for no replica. */
	async promote() {
		this.replica.sql("ALTER SYSTEM SET synchronous_standby_names=''");
		this.replica.sql('SELECT pg_promote()');
		await until(() => (this.replica.sql('SELECT pg_is_in_recovery()') === 'f' ? true : undefined), 'promoted');
	}
}

function copy(primary, replica) {
	fs.mkdirSync(replica.socket);
	fs.chmodSync(replica.folder, 0o755);
	fs.chmodSync(replica.socket, 0o777);
	fs.mkdirSync(replica.data, { mode: 0o700 });
	if (process.getuid() === 0) for (const at of [replica.data, replica.socket]) run('chown', 'postgres:postgres', at);
	run(...command('pg_basebackup', '-h', '127.0.0.1', '-p', String(primary.port), '-U', 'tw', '-D', replica.data, '-R', '-c', 'fast', '--no-sync'));
}

async function make(t) {
	const node = new Node(fs.mkdtempSync(path.join(os.tmpdir(), 'tw-pg-')), await freePort());
	atEnd(t, async () => {
		if (node.child && node.child.exitCode === null && node.child.signalCode === null) await node.stop('SIGQUIT');
		fs.rmSync(node.folder, { recursive: true, force: true });
	});
	return node;
}

/* Without a replica. */
export async function startPrimary(t) {
	const primary = await make(t);
	primary.make();
	await primary.start();
	return new Pair(primary);
}

export async function startPair(t) {
	if (!postgresIsThere) return null;
	const [primary, replica] = [await make(t), await make(t)];
	primary.make();
	await primary.start();
	copy(primary, replica);
	fs.appendFileSync(path.join(replica.data, 'postgresql.auto.conf'), "wal_retrieve_retry_interval='200ms'\n"); // after its primary was away
	await replica.start();
	const pair = new Pair(primary, replica);
	await pair.agree();
	return pair;
}
