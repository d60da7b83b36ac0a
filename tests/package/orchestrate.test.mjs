/*
 * orchestrate.test.mjs - what deploy/ gives to compose, Kubernetes and systemd's timers: every setting, flag, path
 * and port in it is one that the server of this checkout has, and what it starts comes up and does its work.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';

import { sampleTrace } from '../e2e/make.mjs';
import { Server, atEnd, binary, root, startServer, tracewell } from '../e2e/server.mjs';
import { settings, yaml } from './cluster.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-orchestrate-'));
const deploy = path.join(root, 'deploy');
const run = (program, args, options = {}) => execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...options });
after(() => fs.rmSync(folder, { recursive: true, force: true }));

test('compose: its paths are there, its settings are settings, and the server takes them', async (t) => {
	const [compose] = yaml('container/compose.yml');
	const { tracewell: server, proxy } = compose.services;
	const context = path.resolve(deploy, 'container', server.build.context);
	assert.equal(context, root);
	assert.ok(fs.existsSync(path.join(context, server.build.dockerfile)));
	assert.ok(server.read_only && server.cap_drop.includes('ALL') && proxy.read_only);
	assert.ok(server.ports.every((port) => port.startsWith('127.0.0.1:')), 'nobody else sees it without TLS');
	const known = settings();
	for (const name of Object.keys(server.environment)) assert.ok(known.has(name.replace('TRACEWELL_', '').toLowerCase().replaceAll('_', '-')), name);
	const networks = compose.networks.inside.ipam.config.map((config) => config.subnet);
	assert.deepEqual(networks, [server.environment.TRACEWELL_TRUSTED_PROXIES]);
	/* without an address and with one */
	const shell = (env) => run('bash', ['-c', `echo "${server.environment.TRACEWELL_PUBLIC_URL}"`], { env }).trim();
	assert.equal(shell({}), 'http://127.0.0.1:8080');
	assert.equal(shell({ TRACEWELL_URL: 'https://traces.example.com' }), 'https://traces.example.com');
	const s = await startServer(t, { args: ['--behind-proxy'], env: { TRACEWELL_PUBLIC_URL: shell({}), TRACEWELL_TRUSTED_PROXIES: networks[0] } });
	assert.equal((await s.get('/readyz', { key: null })).status, 200);
});

test('Kubernetes: the server takes its settings, the probes ask for what there is', async () => {
	const all = yaml('kubernetes/tracewell.yml');
	const of = (kind) => all.find((object) => object.kind === kind);
	const pod = of('StatefulSet').spec.template.spec;
	const [container] = pod.containers;
	const config = path.join(folder, 'tracewell.conf');
	const text = of('ConfigMap').data['tracewell.conf'];
	const ports = [...text.matchAll(/^(?:metrics-)?listen = 0\.0\.0\.0:(\d+)$/gm)].map((m) => Number(m[1]));
	assert.deepEqual(ports, container.ports.map((port) => port.containerPort));
	fs.writeFileSync(config, text.replace(/^(metrics-listen) = .*$/m, '$1 = 127.0.0.1:0').replace(/^(drain-seconds) = .*$/m, '$1 = 0'));
	assert.deepEqual(container.args.slice(0, 4), ['serve', '--data', '/data', '--config']);
	const s = new Server(path.join(folder, 'kubernetes'), ['--config', config], {});
	await s.start();
	try {
		for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'])
			assert.equal((await s.get(container[probe].httpGet.path, { key: null })).status, 200, probe);
		assert.equal((await s.get('/metrics', { key: null })).status, 404, 'it has a port of its own');
	} finally {
		await s.stop();
	}
	const mounted = container.volumeMounts.map((mount) => mount.name);
	const volumes = [...pod.volumes.map((volume) => volume.name), ...of('StatefulSet').spec.volumeClaimTemplates.map((claim) => claim.metadata.name)];
	assert.deepEqual(mounted.sort(), volumes.sort());
	const labels = JSON.stringify(of('StatefulSet').spec.template.metadata.labels);
	for (const selector of [of('Service').spec.selector, of('StatefulSet').spec.selector.matchLabels, of('NetworkPolicy').spec.podSelector.matchLabels])
		assert.equal(JSON.stringify(selector), labels);
	assert.ok(pod.securityContext.runAsNonRoot && container.securityContext.readOnlyRootFilesystem);
});

test('what copies each night copies: on Kubernetes and by the timer', async (t) => {
	const s = await startServer(t, {});
	const { id, state } = await s.trace(sampleTrace(), {});
	assert.equal(state, 'ready');
	const [job] = yaml('kubernetes/backup.yml');
	const { args } = job.spec.jobTemplate.spec.template.spec.containers[0];
	for (const flag of args.filter((arg) => arg.startsWith('--'))) assert.ok(tracewell('help').includes(flag), flag);
	assert.equal(args[0], 'backup');

	const unit = fs.readFileSync(path.join(deploy, 'tracewell-backup.service'), 'utf8');
	const value = (name) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)[1];
	const to = path.join(folder, 'copy');
	const line = value('ExecStart').replace('/usr/bin/tracewell', binary()).replace('/var/lib/tracewell', s.data).replace('$BACKUP_TO', to);
	run('sh', ['-c', line]);
	assert.ok(value('StateDirectory').split(' ').includes(path.basename(value('Environment').split('=')[1])), 'where it may write');
	const copy = new Server(to, [], {});
	await copy.start();
	atEnd(t, () => copy.stop());
	assert.equal((await copy.get(`/api/v1/traces/${id}`, { key: s.read })).json.state, 'ready');
});

test('the units of the timer are well formed and leave little to a program that was taken over', () => {
	for (const name of ['tracewell-backup.service', 'tracewell-backup.timer']) {
		const { stderr } = spawnSync('systemd-analyze', ['verify', path.join(deploy, name)], { encoding: 'utf8' });
		const said = stderr.split('\n').filter((line) => line.includes(name) && !/not executable|Command 'man/.test(line));
		assert.deepEqual(said, []);
	}
	const exposure = run('systemd-analyze', ['security', '--offline=true', path.join(deploy, 'tracewell-backup.service')]);
	assert.ok(Number(/Overall exposure level for \S+: ([0-9.]+)/.exec(exposure)[1]) <= 1.5, exposure);
});
