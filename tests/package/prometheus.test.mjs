/*
 * prometheus.test.mjs - a real Prometheus scrapes a server that was used, refused and given a cut trace: it takes
 * the shipped rules, none of them fires, and each panel of the shipped dashboard gets its answer. The dashboards
 * themselves are what Grafana's own types say.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { sampleTrace } from '../e2e/make.mjs';
import { atEnd, freePort, root, startServer, tracewell, until } from '../e2e/server.mjs';
import { folder } from './cluster.mjs';
import { compiled } from './types.mjs';

const skip = spawnSync('prometheus', ['--version']).error ? 'prometheus is not here: Debian has it' : false;
const board = JSON.parse(fs.readFileSync(path.join(root, 'deploy/grafana.json'), 'utf8'));
const questions = board.panels.flatMap((p) => (p.targets ?? []).map((q) => ({ title: p.title, expr: q.expr })));

/* What Grafana puts into an expression: all jobs and servers, four scrapes. */
const filled = (expr) => expr.replaceAll('$job', '.+').replaceAll('$instance', '.+').replaceAll('$__rate_interval', '4s');

/* Metrics without a value on one server with a folder, or before an error. */
const MAY_BE_EMPTY = ['Crashed decoders', 'Limits hit', 'Cache', 'Cache hits', 'Requests to the store', 'Server errors'];

async function startPrometheus(t, target) {
	const at = folder(t, 'prometheus');
	const port = await freePort();
	fs.writeFileSync(path.join(at, 'prometheus.yml'), `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [${path.join(root, 'deploy/alerts.yml')}]
scrape_configs: [{job_name: tracewell, static_configs: [{targets: ['${target}']}]}]\n`);
	const child = spawn('prometheus', [`--config.file=${at}/prometheus.yml`, `--storage.tsdb.path=${at}/data`, `--web.listen-address=127.0.0.1:${port}`, '--log.level=warn'],
		{ stdio: ['ignore', 'ignore', 'pipe'] });
	let said = '';
	child.stderr.on('data', (piece) => (said += piece));
	atEnd(t, () => new Promise((done) => (child.exitCode === null ? child.once('close', done).kill('SIGKILL') : done())));
	const ask = async (what) => (await fetch(`http://127.0.0.1:${port}/api/v1/${what}`)).json();
	await until(async () => ((await ask('status/buildinfo').catch(() => null))?.status === 'success' ? true : undefined), 'Prometheus').catch((e) => assert.fail(e.message + said));
	return { ask, query: (expr) => ask(`query?query=${encodeURIComponent(expr)}`) };
}

test('Prometheus scrapes a server; rules and panels get their answers', { skip, timeout: 90000 }, async (t) => {
	const s = await startServer(t);
	const p = await startPrometheus(t, `127.0.0.1:${s.port}`);
	await s.trace(sampleTrace(50));
	await s.trace(sampleTrace(50).subarray(0, -100));
	assert.equal((await s.post('/api/v1/traces', Buffer.from('no trace at all'))).status, 415);
	await s.get('/api/v1/traces');
	tracewell('backup', '--data', s.data, '--to', path.join(folder(t, 'copy'), 'of-it'));
	const scraped = async () => Number((await p.query('min(count_over_time(up{job="tracewell"}[1m]))')).data.result[0]?.value[1] ?? 0);
	await until(async () => ((await scraped()) >= 4 ? true : undefined), 'four scrapes');

	const { data } = await p.ask('rules');
	const rules = data.groups.flatMap((g) => g.rules);
	assert.ok(rules.length >= 8);
	await until(async () => ((await p.ask('rules')).data.groups.flatMap((g) => g.rules).every((r) => r.health !== 'unknown') ? true : undefined), 'all are evaluated');
	for (const r of (await p.ask('rules')).data.groups.flatMap((g) => g.rules)) {
		assert.deepEqual([r.health, r.lastError ?? ''], ['ok', ''], r.name);
		assert.notEqual(r.state, 'firing', r.name); // one that looks at the machine's disk may be pending
	}

	for (const { title, expr } of questions) {
		const answer = await p.query(filled(expr));
		assert.equal(answer.status, 'success', `${title}: ${answer.error}`);
		if (!MAY_BE_EMPTY.includes(title)) assert.ok(answer.data.result.length > 0, `${title} shows nothing: ${expr}`);
	}
});

/* A word of an enumeration is that word in the file. */
const typed = (name) => `import type { Dashboard } from '@grafana/schema';
type Plain<T> = T extends string ? \`\${T}\` : T extends (infer U)[] ? Plain<U>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
export const board: Plain<Dashboard> = ${fs.readFileSync(path.join(root, 'deploy', name), 'utf8')};\n`;

test('the dashboards are what Grafana knows', (t) => {
	const { status, stdout } = compiled(t, { 'one.ts': typed('grafana.json'), 'two.ts': typed('grafana-traces.json'), 'three.ts': typed('grafana-clickhouse.json') });
	assert.equal(status, 0, stdout);
	assert.match(compiled(t, { 'wrong.ts': typed('grafana.json').replace('"gridPos"', '"gridpos"') }).stdout, /gridpos/, 'a word of the wrong case is found');
});
