/*
 * kubernetes.test.mjs - deploy/kubernetes/several.yml: names, ports, selectors and settings fit each other and the
 * server, secrets are references, and its pods' commands, with its settings, take a trace and show its flame graph.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { sampleTrace } from '../e2e/make.mjs';
import { postgresIsThere } from '../e2e/postgres.mjs';
import { root, until } from '../e2e/server.mjs';
import { folder, hasClickHouse, hasProxy, settings, startBalance, startClickHouse, startDatabase, startOne, startStore, yaml } from './cluster.mjs';
import { compiled } from './types.mjs';

const skip = !postgresIsThere ? 'no PostgreSQL 15' : !hasProxy ? 'no haproxy' : !hasClickHouse && 'no ClickHouse';
const FILE = 'kubernetes/several.yml';
const all = yaml(FILE);
const head = fs.readFileSync(path.join(root, 'deploy', FILE), 'utf8').split('\napiVersion')[0];
const of = (kind) => all.filter((object) => object.kind === kind);
const named = (kind, name) => of(kind).find((object) => object.metadata.name === name);
const podOf = (name) => named('Deployment', name).spec.template;
const ROLES = ['ingest', 'decode', 'query'];
const conf = of('ConfigMap')[0].data['tracewell.conf'];

/* Is every label of the selector one of the pod? */
const selects = ({ matchLabels, matchExpressions = [] }, labels) =>
	Object.entries(matchLabels).every(([k, v]) => labels[k] === v) && matchExpressions.every(({ key, values }) => values.includes(labels[key]));

/* Kubernetes' own description of its objects, as types; a literal with a field that they do not have does not compile. */
function typed(file) {
	return yaml(file).map(({ apiVersion, kind, ...rest }, i) =>
		`import type { I${kind} as K${i} } from 'kubernetes-models/${apiVersion}';\nexport const o${i}: K${i} = ${JSON.stringify({ apiVersion, kind, ...rest })};\n`).join('');
}

test('every object has the fields that Kubernetes knows, and no other', async (t) => {
	const files = ['tracewell', 'backup', 'several'].map((name) => `kubernetes/${name}.yml`);
	const sources = Object.fromEntries(files.map((file) => [path.basename(file, '.yml') + '.ts', typed(file)]));
	const { status, stdout } = compiled(t, sources);
	assert.equal(status, 0, stdout);
	assert.match(compiled(t, { 'wrong.ts': typed(FILE).replace('"readOnlyRootFilesystem"', '"readonlyRootFilesystem"') }).stdout, /readonlyRootFilesystem/, 'a word of the wrong case is found');
	for (const object of files.flatMap(yaml)) {
		const { [object.kind]: Kind } = await import(`kubernetes-models/${object.apiVersion}/${object.kind}`);
		new Kind(object).validate();
	}
});

test('pods have no more rights than they need, and bounded room', () => {
	for (const { metadata, spec } of of('Deployment')) {
		const pod = spec.template.spec;
		assert.ok(pod.securityContext.runAsNonRoot && pod.securityContext.runAsUser > 0, metadata.name);
		assert.deepEqual([pod.automountServiceAccountToken, pod.securityContext.seccompProfile.type], [false, 'RuntimeDefault']);
		const volumes = pod.volumes.map((v) => v.name).sort();
		for (const c of pod.containers) {
			assert.deepEqual([c.securityContext.readOnlyRootFilesystem, c.securityContext.allowPrivilegeEscalation, c.securityContext.capabilities.drop], [true, false, ['ALL']]);
			assert.doesNotMatch(c.image, /^[^/]*[.:][^/]*\//);
			assert.ok(c.resources.limits.memory && c.resources.requests.cpu && c.livenessProbe && c.readinessProbe, metadata.name);
			assert.deepEqual(c.volumeMounts.map((m) => m.name).sort(), volumes);
		}
		for (const v of pod.volumes) if (v.emptyDir) assert.ok(v.emptyDir.sizeLimit, v.name);
	}
});

test('every selector finds its pods, every port is one of theirs', () => {
	for (const { metadata, spec } of of('Deployment')) {
		assert.ok(selects(spec.selector, spec.template.metadata.labels), metadata.name);
		const budget = named('PodDisruptionBudget', metadata.name);
		assert.ok(selects(budget.spec.selector, spec.template.metadata.labels) && budget.spec.maxUnavailable < spec.replicas);
	}
	const pods = of('Deployment').map((d) => d.spec.template);
	const ports = (p) => p.spec.containers.flatMap((c) => c.ports.map((port) => port.name));
	for (const { metadata, spec } of of('Service')) {
		const mine = pods.filter((p) => selects({ matchLabels: spec.selector }, p.metadata.labels));
		assert.equal(mine.length, 1, metadata.name);
		for (const port of spec.ports) assert.ok(ports(mine[0]).includes(port.targetPort));
	}
	for (const { metadata, spec } of of('NetworkPolicy')) {
		const mine = pods.filter((p) => selects(spec.podSelector, p.metadata.labels));
		assert.equal(mine.length, metadata.name === 'tracewell' ? 3 : 1);
		for (const rule of spec.ingress) for (const { port } of rule.ports) assert.ok(mine.every((p) => ports(p).includes(port)), port);
	}
	for (const { spec } of of('HorizontalPodAutoscaler')) assert.ok(named('Deployment', spec.scaleTargetRef.name) && spec.maxReplicas <= 8, 'HAProxy uses eight');
	const { service } = of('Ingress')[0].spec.rules[0].http.paths[0].backend;
	assert.ok(named('Service', service.name).spec.ports.some((port) => port.name === service.port.name));
	const listens = [...conf.matchAll(/^(?:metrics-)?listen = 0\.0\.0\.0:(\d+)$/gm)].map((m) => Number(m[1]));
	for (const role of ROLES) assert.deepEqual(podOf(`tracewell-${role}`).spec.containers[0].ports.map((port) => port.containerPort), listens);
});

test('HAProxy asks for the services by the names and ports that they have', () => {
	const env = Object.fromEntries(podOf('tracewell-proxy').spec.containers[0].env.map(({ name, value }) => [name, value]));
	const text = fs.readFileSync(path.join(root, 'deploy/proxy/haproxy-cluster.cfg'), 'utf8');
	for (const name of Object.keys(env)) assert.ok(text.includes('${' + name), name);
	for (const role of ['INGEST', 'QUERY']) {
		const [, name, port] = /^([a-z-]+)\.tracewell\.svc\.cluster\.local:(\d+)$/.exec(env[`TRACEWELL_${role}`]);
		const { spec } = named('Service', name);
		assert.deepEqual([spec.clusterIP, spec.ports[0].port], ['None', Number(port)]);
	}
});

test('secrets are references to objects that the guide creates', () => {
	const made = [...head.matchAll(/--from-literal=([a-z0-9.-]+)=/g)].map((m) => m[1]);
	const used = new Set();
	for (const role of ROLES) {
		const pod = podOf(`tracewell-${role}`).spec;
		for (const { name, value, valueFrom } of pod.containers[0].env) {
			assert.equal(value, undefined, name);
			assert.equal(valueFrom.secretKeyRef.name, 'tracewell');
			used.add(valueFrom.secretKeyRef.key);
		}
		for (const item of pod.volumes.find((v) => v.secret).secret.items) used.add(item.key);
	}
	assert.deepEqual([...used].sort(), made.sort());
	assert.doesNotMatch(conf, /password *=|:[^/@ ]+@|aws_/);
	for (const [, command] of head.matchAll(/configmap tracewell-proxy --from-file=haproxy\.cfg=(\S+)/g)) assert.ok(fs.existsSync(path.join(root, command)));
	assert.equal(podOf('tracewell-proxy').spec.volumes[0].configMap.name, 'tracewell-proxy');
});

/* The settings with the test's addresses; each must find its place. */
function settingsFile(at, db, store, clickhouse) {
	const known = settings();
	for (const [, name] of conf.matchAll(/^([a-z0-9-]+) =/gm)) assert.ok(known.has(name), name);
	let text = conf;
	for (const [from, to] of [['postgres.example.com', db.address], ['sslmode=require', 'sslmode=disable'], ['https://s3.example.com', store.url], ['clickhouse+https://clickhouse.example.com:8443', `clickhouse://${clickhouse}`], ['/secrets/', `${at}/`],
		['10.0.0.0/8', '127.0.0.1'], ['metrics-listen = 0.0.0.0:9090', 'metrics-listen = 127.0.0.1:0'], ['drain-seconds = 10', 'drain-seconds = 0']]) {
		assert.ok(text.includes(from), from);
		text = text.replaceAll(from, to);
	}
	fs.writeFileSync(path.join(at, 'tracewell.conf'), text);
	fs.writeFileSync(path.join(at, 'secret.key'), 'ab'.repeat(32), { mode: 0o440 });
	fs.writeFileSync(path.join(at, 'clickhouse-password'), 'of the user', { mode: 0o440 });
	return path.join(at, 'tracewell.conf');
}

test('its pods take a trace and show its flame graph', { skip, timeout: 600000 }, async (t) => {
	const at = folder(t, 'settings');
	const db = await startDatabase(t, 'from the Secret');
	const store = await startStore(t);
	const clickhouse = await startClickHouse(t, '<clickhouse><users><default remove="1"/><tracewell><password>of the user</password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></tracewell></users></clickhouse>');
	const file = settingsFile(at, db, store, clickhouse);
	const env = { ...store.env, PGPASSWORD: 'from the Secret' };
	const by = {};
	await Promise.all(ROLES.map(async (role) => {
		const [container] = podOf(`tracewell-${role}`).spec.containers;
		assert.deepEqual(container.env.map((e) => e.name).sort(), Object.keys(env).sort());
		by[role] = await startOne(t, `pod-${role}`, container.args.map((arg) => arg.replace('/etc/tracewell/tracewell.conf', file)), env);
		for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'])
			assert.equal((await by[role].get(container[probe].httpGet.path, { key: null })).status, 200, `${role} ${probe}`);
		assert.equal((await by[role].get('/metrics', { key: null })).status, 404, 'it has a port of its own');
	}));
	const url = await startBalance(t, { TRACEWELL_INGEST: `127.0.0.1:${by.ingest.port}`, TRACEWELL_QUERY: `127.0.0.1:${by.query.port}`, TRACEWELL_FRONT: '127.0.0.0/8' });
	Object.assign(process.env, env); // as kubectl exec gives it to the command
	const key = by.query.key('write');
	const asked = (target, options) => fetch(url + target, { ...options, headers: { Authorization: `Bearer ${key}` } });
	const sent = await until(async () => {
		const answer = await asked('/api/v1/traces?app=shop', { method: 'POST', body: sampleTrace(20) });
		return answer.status === 503 ? undefined : answer;
	}, 'an ingest that HAProxy has seen');
	assert.equal(sent.status, 202);
	const { id } = await sent.json();
	await until(async () => ((await (await asked(`/api/v1/traces/${id}`)).json()).state === 'ready' ? true : undefined), 'it is decoded');
	assert.equal((await asked(`/api/v1/traces/${id}/flame?thread=all`)).status, 200);
	await until(async () => ((await (await asked('/api/v1/fleet/scenarios?by=all')).json()).traces === 1 ? true : undefined), 'it is counted in ClickHouse');
	assert.equal((await fetch(url + podOf('tracewell-proxy').spec.containers[0].readinessProbe.httpGet.path)).status, 200);
});
