/*
 * postgres.mjs - a PostgreSQL of a test's own, from Debian's package, in a temporary folder.
 *
 *   const db = await startPostgres(t);      // null when it is not installed; ends with the test t
 *   const s = await startServer(t, { args: ['--catalog', db.url('one')] });   // a schema each
 */
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { atEnd, root, until } from './server.mjs';

const HOME = '/usr/lib/postgresql';
const versions = fs.existsSync(HOME) ? fs.readdirSync(HOME).filter((v) => Number(v) >= 15 && fs.existsSync(`${HOME}/${v}/bin/initdb`)) : [];
const bin = versions.length ? `${HOME}/${versions.sort((a, b) => b - a)[0]}/bin` : null;

export const postgresIsThere = bin !== null;

/* It refuses to run as root. */
const as = process.getuid() === 0 ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'] : [];
export const command = (program, ...args) => [...as, path.join(bin, program), ...args];

/* Where initdb runs once: in the folder of tests/run, otherwise in one of this process. */
function initdbFolder() {
	if (!process.env.TRACEWELL_INITDB) {
		const folder = (process.env.TRACEWELL_INITDB = fs.mkdtempSync(path.join(os.tmpdir(), 'tw-initdb-')));
		fs.chmodSync(folder, 0o755);
		process.once('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
	}
	return process.env.TRACEWELL_INITDB;
}

export class Postgres {
	/* `tcp`: a port of 127.0.0.1 where it listens, too; `more`: arguments of the server. */
	constructor(folder, tcp, more = []) {
		this.more = more;
		this.hosts = 'scram-sha-256'; // authentication of connections by TCP
		this.folder = folder;
		this.tcp = tcp ? ['-c', 'listen_addresses=127.0.0.1', '-p', String(tcp)] : ['-c', 'listen_addresses='];
		this.data = path.join(folder, 'data');
		this.socket = path.join(folder, 's');
		this.base = `postgres://tw@/postgres?host=${encodeURIComponent(this.socket)}${tcp ? `&port=${tcp}` : ''}`;
	}

	make() {
		fs.mkdirSync(this.socket);
		fs.chmodSync(this.folder, 0o755);
		fs.chmodSync(this.socket, 0o777);
		if (as.length) execFileSync('chown', ['postgres:postgres', this.socket]);
		execFileSync(path.join(root, 'tests/unit/initdb'), [this.hosts, this.data], { stdio: 'ignore', env: { ...process.env, TRACEWELL_INITDB: initdbFolder() } });
	}

	/* Commits are written, so that a kill loses none; a power cut is not tried. */
	async start() {
		const [program, ...args] = command('postgres', '-D', this.data, '-k', this.socket, ...this.tcp, '-c', 'fsync=off', '-c', 'max_connections=200', ...this.more);
		this.log = '';
		this.child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'], cwd: '/' });
		this.child.stderr.setEncoding('utf8').on('data', (text) => (this.log += text));
		this.ended = new Promise((done) => this.child.once('exit', done));
		await until(() => (/ready to accept (read-only )?connections/.test(this.log) ? true : undefined), 'a database server');
	}

	/* SIGINT ends it at once and in order, SIGQUIT as a crash does. */
	async stop(signal = 'SIGINT') {
		this.child.kill(signal);
		await this.ended;
	}

	sql(text, schema = 'public') {
		return execFileSync(path.join(bin, 'psql'), ['-XqtA', '-v', 'ON_ERROR_STOP=1', '-c', `SET search_path=${schema}`, '-c', text, this.base], { encoding: 'utf8' }).trim();
	}

	/* A schema of that name is a separate catalogue. */
	url(schema) {
		this.sql(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
		return `${this.base}&options=-csearch_path%3D${schema}`;
	}
}

/* tcp: a port of loopback that requires passwords; more: arguments of the server. */
export async function startPostgres(t, { tcp, more } = {}) {
	if (!postgresIsThere) return null;
	const db = new Postgres(fs.mkdtempSync(path.join(os.tmpdir(), 'tw-pg-')), tcp, more);
	db.make();
	await db.start();
	atEnd(t, async () => {
		await db.stop();
		fs.rmSync(db.folder, { recursive: true, force: true });
	});
	return db;
}
