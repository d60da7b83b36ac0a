/*
 * migrate_fixture.mjs - what tests of `tracewell migrate` share: a server with everything that a project can have,
 * and all that it answers.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';

import { sampleMapping, sampleTrace } from './make.mjs';
import { Server, atEnd, binary, newFolder, until } from './server.mjs';
import { findSlower } from './regressed_fleet.mjs';

export const json = (o) => JSON.stringify(o);

export function folder(t) {
	return newFolder(t, 'tracewell-mig-');
}

/* `catalog` keeps a run of these tests on PostgreSQL from moving the source there. */
export async function serve(t, data, env = {}, args = ['--webhook-private', '127.0.0.0/8']) {
	const s = new Server(data, args, env);
	s.args = s.args.filter((_, i, all) => all[i] !== '--catalog' && all[i - 1] !== '--catalog');
	await s.start();
	atEnd(t, () => s.stop());
	return s;
}

export function migrate(args, env = {}) {
	const { TRACEWELL_CATALOG: _, ...own } = process.env;
	const r = spawnSync(binary(), ['migrate', ...args], { encoding: 'utf8', env: { ...own, ...env } });
	return { code: r.status, signal: r.signal, reported: r.stdout + r.stderr, json: r.stdout.startsWith('{') ? JSON.parse(r.stdout) : undefined };
}

/* The same where this process has the store; its output so far is `reported`. */
export function startMigrate(args, env = {}) {
	const { TRACEWELL_CATALOG: _, ...own } = process.env;
	const child = spawn(binary(), ['migrate', ...args], { stdio: ['ignore', 'pipe', 'pipe'], env: { ...own, ...env } });
	const run = { child, reported: '', out: '' };
	child.stdout.setEncoding('utf8').on('data', (text) => { run.out += text; run.reported += text; });
	child.stderr.setEncoding('utf8').on('data', (text) => (run.reported += text));
	run.ended = new Promise((done) => child.once('close', (code, signal) =>
		done({ code, signal, reported: run.reported, json: run.out.startsWith('{') ? JSON.parse(run.out) : undefined })));
	return run;
}

/* Everything that a project can have, and traces in all final states. */
export async function fill(s) {
	const as = { key: s.write }, admin = { key: s.admin };
	await findSlower(s, 12);
	const ready = await s.trace(sampleTrace(20), { query: { app: 'shop', version_name: '1', build_id: 'b1', device: 'Pixel \u{1F600}', labels: json({ team: 'cart' }), scenario: 'start' } });
	for (const answer of [
		await s.put('/api/v1/builds/b1/methods', sampleMapping),
		await s.ask('PATCH', `/api/v1/traces/${ready.id}`, { ...as, body: json({ tags: ['slow', 'a b'], title: 'Näher ansehen', pinned: true }) }),
		await s.ask('POST', `/api/v1/traces/${ready.id}/annotations`, { ...as, body: json({ author: 'ann', text: 'here', ts_ns: 5 }) }),
		await s.ask('PUT', '/api/v1/filters/mine', { ...as, body: json({ query: 'app=shop', author: 'ann' }) }),
		await s.ask('POST', '/api/v1/webhooks', { ...admin, body: json({ url: 'http://127.0.0.1:9/x', name: 'ours' }) }),
	]) assert.ok(answer.status < 300, answer.text);
	assert.equal(spawnSync(binary(), ['user', 'create', 'ann', '--data', s.data, '--server-admin'], { input: 'correct horse battery' }).status, 0);
	await until(() => s.sql("SELECT count(*) FROM trace WHERE state=2 AND (rollup_state=0 OR anr_state=0 OR detected=0 OR named<>1 AND build_id<>'')") === '0', 'all counted');
	await until(async () => (await s.get('/api/v1/builds', admin)).json.builds.every((b) => b.names.unresolved_traces === 0), 'all named');
	return ready;
}

/* Left in quarantine. */
export async function failedIn(t, data) {
	const s = await serve(t, data, { TRACEWELL_WORKER_FAULT: 'crash' }, ['--worker-attempts', '1']);
	const failed = await s.trace(sampleTrace(33), { query: { app: 'shop' } });
	assert.equal(failed.state, 'failed');
	await s.stop();
	return failed;
}

const TARGETS = (id, failed) => [
	'/api/v1/traces?limit=200', `/api/v1/traces/${id}`, `/api/v1/traces/${failed}`, `/api/v1/traces/${id}/annotations`, `/api/v1/traces/${id}/threads`,
	`/api/v1/traces/${id}/names`, `/api/v1/traces/${id}/flame`, `/api/v1/traces/${id}/methods`, `/api/v1/traces/${id}/findings`, `/api/v1/traces/${id}/raw/trace`,
	'/api/v1/traces?tag=slow', '/api/v1/traces?q=PIXEL', '/api/v1/facets', '/api/v1/builds', '/api/v1/builds/b1', '/api/v1/filters', '/api/v1/retention', '/api/v1/detectors',
	'/api/v1/regressions', '/api/v1/fleet/scenarios?by=all', '/api/v1/fleet/scenarios?by=day', '/api/v1/fleet/methods', '/api/v1/fleet/findings', '/api/v1/fleet/labels',
	'/api/v1/fleet/search?method=com.app.Repo.load&limit=8', '/api/v1/fleet/locks', '/api/v1/anr/groups', '/api/v1/webhooks', '/api/v1/projects', '/api/v1/members', '/api/v1/quarantine',
];

export async function answers(s, { ready, failed }) {
	const all = {};
	for (const target of TARGETS(ready.id, failed.id)) {
		/* files are opened within a time limit; those after it are hits without their call */
		const answer = await until(async () => {
			const one = await s.get(target, { key: s.admin });
			return one.json?.hits?.some((hit) => hit.call === null) ? undefined : one;
		}, target);
		/* a server looks when it starts, and notes the time; the disk's use differs from one question to the next */
		all[target] = [answer.status, target === '/api/v1/regressions' ? answer.text.replaceAll(/"last_ms":\d+/g, '') : target === '/api/v1/retention' ? answer.text.replace(/,"disk":(null|\{[^}]*\})/, '') : answer.bytes.toString('latin1')];
	}
	assert.ok(Object.values(all).filter(([status]) => status === 200).length > 25, json(Object.entries(all).filter(([, [status]]) => status !== 200)));
	return all;
}

export const keysOf = (from, to) => Object.assign(to, { ingestKey: from.ingest, readKey: from.read, writeKey: from.write, adminKey: from.admin });
