/*
 * container.mjs - the image of deploy/container, built over a folder with a Debian, and a server in it as an
 * orchestrator would run it: as the image's user, the root read-only, only the volume and /tmp to write to.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { root } from '../e2e/server.mjs';

const run = (program, args, options = {}) => execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 28, ...options }).trim();

export class Image {
	constructor(folder) {
		this.folder = path.join(folder, 'container');
		this.store = ['--storage-driver', 'vfs', '--root', path.join(this.folder, 'root'), '--runroot', path.join(this.folder, 'run')];
	}

	buildah(...args) {
		return run('buildah', [...this.store, ...args], { cwd: root });
	}

	/* base: a folder with a Debian; packages: one with the package. */
	build(base, packages) {
		const from = this.buildah('from', 'scratch');
		this.buildah('add', '-q', from, base, '/');
		this.buildah('commit', '-q', '--rm', from, 'localhost/debian:test');
		this.buildah('bud', '--isolation', 'chroot', '--network', 'host', '--format', 'docker', '--build-arg', 'BASE=localhost/debian:test',
			'--build-context', `package=${packages}`, '-f', 'deploy/container/Containerfile', '-t', 'localhost/tracewell', '.');
		this.config = JSON.parse(this.buildah('inspect', '--type', 'image', 'localhost/tracewell')).Docker.config;
		this.root = this.buildah('mount', this.buildah('from', 'localhost/tracewell'));
	}

	/* A script that runs a program of the image, with the folder as its volume. */
	wrapper(file, data) {
		const inside = path.join(this.root, Object.keys(this.config.Volumes)[0]);
		const [user, group] = this.config.User.split(':');
		fs.mkdirSync(data, { recursive: true });
		fs.chownSync(data, Number(user), Number(group));
		fs.writeFileSync(file, `#!/bin/sh
set -e
if [ "$1" != inside ]; then exec unshare --mount -- "$0" inside "$@"; fi
shift
mount --bind '${this.root}' '${this.root}'
mount --bind '${data}' '${inside}'
mount -t tmpfs tmpfs '${this.root}/tmp'
mount -t proc proc '${this.root}/proc'
mount -o remount,ro,bind '${this.root}'
exec chroot --userspec=${user}:${group} --groups= '${this.root}' setpriv --no-new-privs --inh-caps=-all -- ${this.config.Entrypoint.join(' ')} "$@"
`, { mode: 0o755 });
		return file;
	}

	/* What an orchestrator takes from it. */
	verify() {
		const { User, Volumes, Healthcheck, ExposedPorts, Cmd } = this.config;
		assert.match(User, /^[1-9]\d*:[1-9]\d*$/, 'a number that is not root');
		assert.deepEqual(Object.keys(Volumes), ['/data']);
		assert.deepEqual(Object.keys(ExposedPorts), ['8080/tcp']);
		assert.equal(Healthcheck.Test[0], 'CMD');
		return { health: Healthcheck.Test.slice(1), command: Cmd };
	}

	close() {
		if (!fs.existsSync(this.folder)) return;
		this.buildah('umount', '--all');
		fs.rmSync(this.folder, { recursive: true, force: true });
	}
}
