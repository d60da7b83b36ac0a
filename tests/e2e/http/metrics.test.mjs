/*
 * metrics.test.mjs - /metrics: values, form, names and its separate listener; the dashboard and the alerts
 * in deploy/ use existing metrics only.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import { describe, test } from 'node:test';

import { btrace, sampleTrace } from '../make.mjs';
import { lint, parse, value } from '../prometheus.mjs';
import { newFolder, root, stages, startServer, until } from '../server.mjs';

const read = async (s) => parse((await s.get('/metrics', { key: null })).text);
const declared = [...fs.readFileSync(path.join(root, 'server/http/metrics.def'), 'utf8').matchAll(/^METRIC\((\w+), (\w+), /gm)].map(([, name, type]) => ({ name, type }));

test('the format is strict, names follow the rules, and all of metrics.def is present', async (t) => {
	const s = await startServer(t);
	await s.trace(sampleTrace(50));
	await s.get('/api/v1/traces');
	await s.get('/nowhere');
	fs.writeFileSync(path.join(s.data, 'backup.done'), ''); // of a backup; without one there is no age
	const answer = await s.get('/metrics', { key: null });
	assert.equal(answer.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
	const families = parse(answer.text);
	lint(families);
	assert.deepEqual([...families.values()].map((f) => `${f.name} ${f.type}`).sort(), declared.map((d) => `${d.name} ${d.type}`).sort());
	assert.deepEqual([...families.values()].filter((f) => !f.samples.length).map((f) => f.name).sort(), ['tracewell_repairs_total', 'tracewell_stage_postponed_projects'], 'no decoder repaired, no stage waits; all others have samples');
});

test('it counts events', async (t) => {
	const s = await startServer(t);
	const body = sampleTrace(50);
	await s.trace(body);
	await s.trace(btrace([[4000, 1, 5000, 100], [4000, 2, -400_000_000, 10]])); // begins before the recording
	await s.post('/api/v1/traces', Buffer.alloc(100));
	await s.post('/api/v1/uploads', undefined, { headers: { 'Tus-Resumable': '1.0.0', 'Upload-Length': '9' } });
	const m = await read(s);
	assert.equal(value(m, 'tracewell_requests_total', { method: 'POST', route: '/api/v1/traces', status: '202' }), 2);
	assert.equal(value(m, 'tracewell_requests_total', { method: 'POST', route: '/api/v1/traces', status: '415' }), 1);
	assert.equal(value(m, 'tracewell_request_seconds_count', { method: 'POST', route: '/api/v1/traces' }), 3);
	assert.ok(value(m, 'tracewell_request_bytes_total', { method: 'POST', route: '/api/v1/traces' }) > body.length);
	assert.ok(value(m, 'tracewell_reply_bytes_total') > 0);
	assert.equal(value(m, 'tracewell_decodes_total', { format: 'btrace2', outcome: 'ready' }), 2);
	assert.equal(value(m, 'tracewell_decode_seconds_count', { format: 'btrace2', outcome: 'ready' }), 2);
	assert.ok(value(m, 'tracewell_decode_seconds_sum', { format: 'btrace2', outcome: 'ready' }) > 0);
	assert.ok([...m.get('tracewell_repairs_total').samples].some((x) => x.value > 0 && x.labels.name && x.labels.kind), 'a repair by name');
	assert.equal(value(m, 'tracewell_queue_traces'), 0);
	assert.equal(value(m, 'tracewell_resumable_open'), 1);
	assert.equal(value(m, 'tracewell_build_info'), 1);
	assert.equal(value(m, 'tracewell_sessions'), 0);
	/* as df counts, whatever is reserved for root; others write to the disk at the same time */
	const [used, free] = execFileSync('df', ['-B1', '--output=used,avail', s.data], { encoding: 'utf8' }).trim().split('\n')[1].trim().split(/\s+/).map(Number);
	assert.ok(Math.abs(value(m, 'tracewell_disk_free_percent') - (100 * free) / (used + free)) < 3);
	assert.ok(value(m, 'tracewell_disk_free_bytes') > 0 && value(m, 'tracewell_disk_free_bytes') < value(m, 'tracewell_disk_size_bytes'));
	assert.ok(value(m, 'tracewell_open_fds') > 5 && value(m, 'tracewell_resident_bytes') > 1e6);
});

test('the history has the first sample and the current one', async (t) => {
	const s = await startServer(t);
	await s.ran('metric_history', { first: true });
	await s.trace(sampleTrace(50));
	await s.post('/api/v1/traces', Buffer.alloc(100));
	await s.get(`/api/v1/traces?q=${'x'.repeat(20000)}`);
	const { json } = await s.get('/metrics/history', { key: null });
	assert.equal(json.at_ms.length, 2);
	assert.ok(json.at_ms[0] < json.at_ms[1] && json.at_ms[1] <= Date.now());
	for (const values of Object.values(json.series)) assert.equal(values.length, 2);
	const grown = (name) => json.series[name][1] - json.series[name][0];
	assert.deepEqual(['uploads', 'decoded', 'failed', 'refused', 'errors'].map(grown), [1, 1, 0, 1, 0]);
	assert.equal(json.series.queue_traces[1], 0);
	assert.ok(json.series.disk_free_bytes[1] > 0 && json.series.resident_bytes[1] > 0);
});

test('each background task counts its runs', async (t) => {
	const s = await startServer(t);
	for (const task of [...stages, 'connections', 'deliveries', 'digests', 'quota', 'retention'])
		await s.ran(task, { first: true });
	const runs = () => s.metric('tracewell_background_runs_total', { task: 'connections' });
	const before = await runs();
	await s.ran('connections');
	assert.ok((await runs()) >= before + 2);
});

test('unauthenticated requests create no new series', async (t) => {
	const s = await startServer(t);
	const ask = async (n) => {
		await s.get(`/no/such/${n}`);
		await s.get(`/api/v1/traces/01ARZ3NDEKTSV4RRFFQ69G5F${n}`);
		await s.ask('GET', '/api/v1/traces', { query: { app: `x${n}` } });
		await s.ask(`VERB${n}`, '/api/v1/traces').catch(() => {});
	};
	await ask(10);
	const lines = async () => (await s.get('/metrics', { key: null })).text.split('\n').length;
	await lines();
	const before = await lines();
	for (let n = 11; n < 60; n++) await ask(n);
	assert.equal(await lines(), before);
});

test('a separate listener serves nothing else', async (t) => {
	const s = await startServer(t, { args: ['--metrics-listen', '127.0.0.1:0'] });
	const port = await until(() => /event=metrics port=(\d+)/.exec(s.log)?.[1], 'the reported port');
	const ask = (target, options) => fetch(`http://127.0.0.1:${port}${target}`, options);
	const reported = await ask('/metrics');
	assert.equal(reported.status, 200);
	lint(parse(await reported.text()));
	for (const target of ['/', '/healthz', '/api/v1/session', '/api/v1/traces']) assert.equal((await ask(target)).status, 404, target);
	assert.equal((await ask('/api/v1/traces', { method: 'POST', body: 'x', headers: { Authorization: `Bearer ${s.ingest}` } })).status, 404);
	const main = await s.get('/metrics', { key: null });
	assert.equal(main.status, 404);
	assert.match(main.json.error.message, /--metrics-listen/);
	assert.equal((await ask('/metrics/history')).status, 200);
	assert.equal((await s.get('/metrics/history', { key: null })).status, 404);
	assert.equal((await s.get('/healthz', { key: null })).status, 200);
});

test('targets and headers that are too long are counted as limits', async (t) => {
	const s = await startServer(t);
	const hit = async (limit) => value(await read(s), 'tracewell_limits_hit_total', { limit });
	assert.deepEqual([await hit('target'), await hit('headers')], [0, 0]);
	assert.equal((await s.get(`/api/v1/traces?q=${'x'.repeat(20000)}`)).status, 414);
	assert.equal((await s.get('/api/v1/traces', { headers: { 'X-Long': 'y'.repeat(70000) } })).status, 431);
	await until(async () => ((await hit('target')) === 1 && (await hit('headers')) === 1 ? true : undefined), 'both counted');
});

test('where the server speaks TLS its listener for metrics does, by the same certificate', async (t) => {
	const dir = newFolder(t, 'tracewell-metrics-');
	const [cert, key] = ['crt', 'key'].map((f) => path.join(dir, `one.${f}`));
	execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=localhost',
		'-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert], { stdio: 'ignore' });
	const s = await startServer(t, { args: ['--tls-cert', cert, '--tls-key', key, '--metrics-listen', '127.0.0.1:0'] });
	const port = await until(() => /event=metrics port=(\d+)/.exec(s.log)?.[1], 'the reported port');
	const answer = await new Promise((done, fail) => {
		https.get({ host: '127.0.0.1', port, path: '/metrics', ca: fs.readFileSync(cert), agent: false }, (a) => {
			const pieces = [];
			a.on('data', (p) => pieces.push(p)).on('end', () => done({ status: a.statusCode, text: Buffer.concat(pieces).toString() })).on('error', fail);
		}).on('error', fail);
	});
	assert.equal(answer.status, 200);
	lint(parse(answer.text));
	await assert.rejects(fetch(`http://127.0.0.1:${port}/metrics`), 'and nothing without');
});

/* Every tracewell_* word of an expression, without the suffix of a histogram. */
const named = (text) => [...new Set([...text.matchAll(/\btracewell_\w+/g)].map(([w]) => w))];
const known = (word) => declared.some((d) => d.name === word || (d.type === 'histogram' && new RegExp(`^${d.name}_(bucket|sum|count)$`).test(word)));

describe('deploy/', () => {
	test('the dashboard uses existing metrics', () => {
		const board = JSON.parse(fs.readFileSync(path.join(root, 'deploy/grafana.json'), 'utf8'));
		const exprs = board.panels.flatMap((p) => p.targets ?? []).map((x) => x.expr);
		assert.ok(exprs.length >= 15);
		for (const e of exprs) for (const word of named(e)) assert.ok(known(word), `${word} in ${e}`);
		const ids = board.panels.map((p) => p.id);
		assert.equal(new Set(ids).size, ids.length);
		for (const p of board.panels) {
			assert.ok(p.title && p.gridPos.x + p.gridPos.w <= 24, p.title);
			for (const q of board.panels.filter((x) => x !== p)) {
				const apart = (a, b) => a.x + a.w <= b.x || a.y + a.h <= b.y;
				assert.ok(apart(p.gridPos, q.gridPos) || apart(q.gridPos, p.gridPos), `${p.title} lies over ${q.title}`);
			}
			for (const x of p.targets ?? []) assert.deepEqual(x.datasource, { type: 'prometheus', uid: '${source}' });
		}
	});

	test('Prometheus itself accepts the rules and /metrics', async (t) => {
		const promtool = (args, input) => spawnSync('promtool', args, { encoding: 'utf8', input });
		if (promtool(['--version']).error) return t.skip('promtool is not here: Debian has it in the package prometheus');
		const rules = promtool(['check', 'rules', path.join(root, 'deploy/alerts.yml')]);
		assert.equal(rules.status, 0, rules.stdout + rules.stderr);
		const s = await startServer(t);
		await s.trace(sampleTrace(50));
		const form = promtool(['check', 'metrics'], (await s.get('/metrics', { key: null })).text);
		assert.equal(form.status, 0, form.stdout + form.stderr);
	});

	test('the alerts use existing metrics and state a remedy', () => {
		const text = fs.readFileSync(path.join(root, 'deploy/alerts.yml'), 'utf8');
		const rules = text.split(/^ {6}- alert: /m).slice(1);
		assert.ok(rules.length >= 8);
		for (const rule of rules) {
			const name = rule.split('\n')[0];
			assert.match(name, /^Tracewell[A-Z]\w+$/);
			const expr = /^ {8}expr: (.+)$/m.exec(rule)?.[1];
			assert.ok(expr, name);
			for (const word of named(expr)) assert.ok(known(word), `${word} in ${name}`);
			for (const part of [/^ {8}for: \d+[mh]$/m, /^ {10}severity: (page|ticket)$/m, /^ {10}summary: .{10,}$/m, /^ {10}description: .{20,}$/m]) assert.match(rule, part, name);
		}
	});
});
