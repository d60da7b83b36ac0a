/*
 * swift.mjs - a second S3-compatible store for tests: Debian's OpenStack Swift with its s3api, all on loopback in a
 * temporary folder. It verifies signatures by code that is not ours and keeps parts, lists and ETags its own way.
 *
 *   const b = await startSwift(t);      // as bucket.mjs: b.args(), b.env, await b.keys()
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

import { atEnd, until } from '../e2e/server.mjs';

const PROGRAMS = ['proxy', 'account', 'container', 'object'];
const there = PROGRAMS.every((of) => fs.existsSync(`/usr/bin/swift-${of}-server`)) && spawnSync('which', ['memcached']).status === 0;
export const lacksSwift = there ? (process.getuid() === 0 ? false : 'Swift switches to its configured user: run as root') : 'no Swift (Debian: swift-proxy swift-account swift-container swift-object memcached)';

const freePort = () => new Promise((done) => {
	const s = net.createServer().listen(0, '127.0.0.1', () => {
		const { port } = s.address();
		s.close(() => done(port));
	});
});

const listens = (port) => new Promise((done) => {
	const s = net.connect(port, '127.0.0.1', () => done(true)).on('error', () => done(undefined));
	s.once('connect', () => s.destroy());
});

const common = (dir, port) => `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
workers = 0
user = root
swift_dir = ${dir}/etc
devices = ${dir}/srv
mount_check = false
log_level = WARNING
fallocate_reserve = 0
`;

/* It has one server of each kind, which it would leave alone for a minute after ten errors. */
const proxy = (dir, port, cache) => `${common(dir, port)}
[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck cache listing_formats bulk s3api tempauth slo dlo versioned_writes proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
error_suppression_limit = 1000000
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
min_segment_size = 1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:${cache}
${['catch_errors', 'gatekeeper', 'healthcheck', 'listing_formats', 'bulk', 'slo', 'dlo', 'versioned_writes'].map((name) => `[filter:${name}]\nuse = egg:swift#${name}\n`).join('')}`;

const keeper = (of, dir, port) => `${common(dir, port)}
[pipeline:main]
pipeline = ${of}-server
[app:${of}-server]
use = egg:swift#${of}
[${of}-replicator]
`;

class Swift {
	constructor(dir, name) {
		Object.assign(this, { dir, name, children: [], ports: {} });
		this.env = { AWS_ACCESS_KEY_ID: 'test:tester', AWS_SECRET_ACCESS_KEY: 'testing' };
	}

	args(...more) {
		return [`--blobs=s3://${this.name}/tw`, `--s3-endpoint=${this.url}`, '--s3-region=us-east-1', '--s3-timeout=20', ...more];
	}

	run(program, ...args) {
		const out = fs.openSync(path.join(this.dir, 'log'), 'a');
		const child = spawn('setpriv', ['--pdeathsig', 'KILL', program, ...args], { stdio: ['ignore', out, out], env: { PATH: '/usr/bin:/bin:/usr/sbin:/sbin' } });
		child.ended = new Promise((done) => child.once('exit', done));
		this.children.push(child);
	}

	ring(of, port) {
		const at = path.join(this.dir, 'etc', `${of}.builder`);
		for (const args of [['create', '4', '1', '0'], ['add', `r1z1-127.0.0.1:${port}/d1`, '1'], ['rebalance']])
			execFileSync('/usr/bin/swift-ring-builder', [at, ...args], { stdio: 'ignore', env: { PATH: '/usr/bin:/bin' } });
	}

	async start() {
		for (const at of ['etc', 'srv/d1']) fs.mkdirSync(path.join(this.dir, at), { recursive: true });
		fs.writeFileSync(path.join(this.dir, 'etc/swift.conf'), '[swift-hash]\nswift_hash_path_suffix = of a test\nswift_hash_path_prefix = of a test\n');
		const cache = (this.cache = await freePort());
		for (const of of PROGRAMS) {
			const port = await freePort();
			const conf = path.join(this.dir, 'etc', `${of}.conf`);
			fs.writeFileSync(conf, of === 'proxy' ? proxy(this.dir, port, cache) : keeper(of, this.dir, port));
			this.ports[of] = port;
			if (of === 'proxy') this.url = `http://127.0.0.1:${port}`;
			else this.ring(of, port);
		}
		await this.up();
	}

	/* Starts its programs, also after kill(). */
	async up() {
		this.children = [];
		this.run('memcached', '-l', '127.0.0.1', '-p', String(this.cache), '-u', 'root', '-U', '0');
		/* a proxy that finds one that does not listen yet leaves it alone for a minute */
		for (const of of [...PROGRAMS.slice(1), PROGRAMS[0]]) {
			this.run(`/usr/bin/swift-${of}-server`, path.join(this.dir, 'etc', `${of}.conf`));
			if (of !== 'proxy') await until(() => listens(this.ports[of]), `Swift's ${of}s`, 40);
		}
		await until(async () => ((await fetch(`${this.url}/healthcheck`).catch(() => null))?.status === 200 ? true : undefined), 'Swift', 30).catch((e) => {
			throw new Error(e.message + fs.readFileSync(path.join(this.dir, 'log'), 'utf8').slice(-1500));
		});
		const auth = await fetch(`${this.url}/auth/v1.0`, { headers: { 'X-Auth-User': 'test:tester', 'X-Auth-Key': 'testing' } });
		this.token = auth.headers.get('x-auth-token');
		const made = await this.native('PUT', `/${this.name}`);
		if (made.status > 299) throw new Error(`a bucket: ${auth.status} ${made.status} ${await made.text()}`);
	}

	/* By Swift's own API. */
	native(method, target, headers = {}) {
		return fetch(`${this.url}/v1/AUTH_test${target}`, { method, headers: { 'X-Auth-Token': this.token, ...headers } });
	}

	/* Keys of all objects of files, and of parts that lie in a container of their own. */
	async keys(container = this.name) {
		const all = [];
		for (let page = [], marker = ''; ; marker = page.at(-1).name) {
			const list = await this.native('GET', `/${container}?format=json&marker=${encodeURIComponent(marker)}`);
			page = list.status === 200 ? await list.json() : [];
			if (!page.length) return all.map((o) => o.name.replace(/^tw\//, '')).filter((key) => !key.startsWith('owner/'));
			all.push(...page);
		}
	}

	signal(name) {
		for (const child of this.children) child.kill(name);
	}

	async kill() {
		this.signal('SIGKILL');
		await Promise.all(this.children.map((child) => child.ended));
	}

	async stop() {
		this.signal('SIGCONT');
		this.signal('SIGTERM');
		setTimeout(() => this.signal('SIGKILL'), 3000).unref();
		await Promise.all(this.children.map((child) => child.ended));
		fs.rmSync(this.dir, { recursive: true, force: true });
	}
}

export async function startSwift(t, name = 'files') {
	const swift = new Swift(fs.mkdtempSync(path.join(os.tmpdir(), 'tw-swift-')), name);
	atEnd(t, () => swift.stop());
	await swift.start();
	return swift;
}
