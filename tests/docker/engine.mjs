/*
 * engine.mjs - Docker itself for the tests of deploy/container: a separate engine with its own folder, the product's
 * image built as the documents say, and stand-ins, of Debian's packages, for the other images that the files name.
 */
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { root, until } from '../e2e/server.mjs';

const there = (program) => !spawnSync(program, ['--version']).error;
export const lacksDocker = process.getuid() !== 0 ? 'an engine is started as root'
	: !['/usr/bin/docker', 'dockerd', 'docker-compose', 'debootstrap'].every(there) && 'Debian: docker.io docker-compose debootstrap';

const STANDS = { postgres: 'postgres:17', haproxy: 'haproxy:3.2-alpine', caddy: 'caddy:2', store: 'chrislusf/seaweedfs:3.97', clickhouse: 'clickhouse/clickhouse-server:24.8' };
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt';
const BUILDER = { DOCKER_BUILDKIT: '0' }; // what Debian 12's docker build is

function run(program, args, env = {}) {
	return new Promise((done, fail) => execFile(program, args, { cwd: root, maxBuffer: 1 << 28, env: { ...process.env, ...env } }, (error, stdout, stderr) =>
		(error ? fail(new Error(`${program} ${args.join(' ')}: ${(stdout + stderr).slice(-3000)}`)) : done(stdout.trim()))));
}

/* From where this machine has its packages. */
function mirror() {
	const sites = execFileSync('apt-get', ['indextargets', '--format', '$(SITE) $(RELEASE)', 'Created-By: Packages'], { encoding: 'utf8' }).split('\n');
	return sites.filter((line) => line.endsWith(' bookworm')).slice(0, 1).map((line) => line.split(' ')[0]);
}

/* What this machine needs to reach its packages, for the builds alone. */
const proxies = () => Object.entries(process.env).filter(([name]) => /^(https?|no)_proxy$/i.test(name)).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]);

export class Engine {
	constructor() {
		this.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-docker-'));
		this.host = `unix://${this.dir}/socket`;
	}

	async start() {
		const flags = ['--host', this.host, '--data-root', `${this.dir}/data`, '--exec-root', `${this.dir}/run`, '--pidfile', `${this.dir}/pid`, '--log-level', 'warn'];
		this.child = spawn('dockerd', flags, { stdio: ['ignore', 'ignore', fs.openSync(path.join(this.dir, 'log'), 'w')] });
		await until(async () => ((await this.docker('info').catch(() => '')) ? true : undefined), 'the engine', 60)
			.catch((e) => { throw new Error(e.message + fs.readFileSync(path.join(this.dir, 'log'), 'utf8').slice(-2000)); });
	}

	docker(...args) {
		return run('/usr/bin/docker', args, { DOCKER_HOST: this.host, ...BUILDER });
	}

	/* compose(FILE, ...args), the environment's own variables first: a file of deploy/container */
	compose(file, args, env = {}) {
		return run('docker-compose', ['-f', path.join('deploy/container', file), ...args], { DOCKER_HOST: this.host, COMPOSE_PROJECT_NAME: 'tracewell', ...env });
	}

	build(...args) {
		return this.docker('build', '--network', 'host', ...proxies(), ...args);
	}

	/* Debian's image, and all that the files name. */
	async images() {
		const debian = path.join(this.dir, 'debian');
		execFileSync('debootstrap', ['--variant=minbase', '--include=ca-certificates', 'bookworm', debian, ...mirror()], { stdio: 'ignore' });
		fs.copyFileSync(AUTHORITIES, path.join(debian, AUTHORITIES)); // whom this machine believes, npm's mirror may be of
		execFileSync('tar', ['-C', debian, '-cf', `${this.dir}/debian.tar`, '.']);
		fs.rmSync(debian, { recursive: true });
		await this.docker('import', `${this.dir}/debian.tar`, 'debian:12-slim');
		await this.build('-f', 'deploy/container/Containerfile', '-t', 'tracewell', '.');
		for (const [stage, name] of Object.entries(STANDS)) await this.build('-f', 'tests/docker/stands/Containerfile', '--target', stage, '-t', name, 'tests');
	}

	async healthy(file, services, { seconds = 60, env } = {}) {
		const ids = (await Promise.all(services.map((of) => this.compose(file, ['ps', '-q', of], env)))).flatMap((text) => text.split('\n'));
		await until(async () => {
			const states = await this.docker('inspect', '--format', '{{.State.Health.Status}}', ...ids);
			return states.split('\n').every((state) => state === 'healthy') ? true : undefined;
		}, `${services} healthy`, seconds);
	}

	async stop() {
		const over = new Promise((done) => (this.child && this.child.exitCode === null ? this.child.once('close', done).kill('SIGTERM') : done()));
		await over;
		spawnSync('umount', [`${this.dir}/run/netns/default`]);
		fs.rmSync(this.dir, { recursive: true, force: true });
	}
}
