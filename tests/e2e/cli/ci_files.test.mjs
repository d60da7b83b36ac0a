/*
 * ci_files.test.mjs - the gates of deploy/ci, run line by line as GitHub and GitLab would: a pull request that makes
 * starts slower is stopped with a report, one that does not passes.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { btrace } from '../make.mjs';
import { binary, newFolder, root, startServer } from '../server.mjs';

const PID = 4000;
const STARTS = 30;
const mapping = ['# v', '1,1,com.app.Main onCreate ()V', '2,1,com.app.Repo load ()V', ''].join('\n');
const trace = (load) => btrace([[PID, 2, 1_001_000, load], [PID, 1, 1_000_000, load + 30_000]], { pid: PID });
const load = (i, factor) => Math.round((200_000 + ((i * 7) % 10) * 4000) * factor);

function yaml(name) {
	const program = 'import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))';
	return JSON.parse(execFileSync('/usr/bin/python3', ['-c', program, path.join(root, 'deploy/ci', name)], { encoding: 'utf8' }));
}

/* Not spawnSync: the server's log must be read during the run. */
const bash = (script, options) => new Promise((done) => execFile('bash', ['-eo', 'pipefail', '-c', script], { ...options, timeout: 120_000 }, (error, stdout, stderr) => done({ status: error ? error.code : 0, stdout, stderr })));

/* What each runs, and with which variables; expressions of the CI are filled from `known`. */
function githubSteps(known) {
	const fill = (text) => String(text).replace(/\$\{\{ ([\w.]+) \}\}/g, (_, name) => known[name] ?? assert.fail(name));
	const job = yaml('github.yml').jobs['cold-start'];
	const env = (of) => Object.fromEntries(Object.entries(of ?? {}).map(([name, value]) => [name, fill(value)]));
	return job.steps.filter((step) => step.run).map((step) => ({ run: fill(step.run), env: { ...env(job.env), ...env(step.env) } }));
}

function gitlabSteps(known) {
	const job = yaml('gitlab.yml')['cold start'];
	const env = Object.fromEntries(Object.entries(job.variables).map(([name, value]) => [name, String(value).replace(/\$(\w+)/g, (_, v) => known[v] ?? assert.fail(v))]));
	return job.script.map((run) => ({ run, env: { ...known, ...env } }));
}

/* A checkout with a build that records; the answer of the step that failed, or the last. */
async function runAll(t, steps, factor) {
	const folder = newFolder(t, 'tracewell-ci-');
	fs.mkdirSync(path.join(folder, 'bin'));
	fs.symlinkSync(binary(), path.join(folder, 'bin/tracewell'));
	fs.mkdirSync(path.join(folder, 'recorded'));
	for (let i = 0; i < STARTS; i++) fs.writeFileSync(path.join(folder, 'recorded', `${i}.trace`), trace(load(i, factor) + i));
	fs.writeFileSync(path.join(folder, 'map'), mapping);
	fs.writeFileSync(path.join(folder, 'gradlew'), '#!/bin/sh\nset -e\nmkdir -p app/build\ncp -r recorded traces\ncp map app/build/methodMapping.txt\n', { mode: 0o755 });
	let last;
	for (const { run, env } of steps) {
		last = await bash(run, { cwd: folder, env: { ...process.env, PATH: `${folder}/bin:${process.env.PATH}`, GITHUB_STEP_SUMMARY: path.join(folder, 'comparison.md'), ...env } });
		last.step = run;
		if (last.status !== 0) break;
	}
	const report = path.join(folder, 'comparison.md');
	return { ...last, report: fs.existsSync(report) ? fs.readFileSync(report, 'utf8') : '' };
}

for (const [name, steps] of [
	['GitHub', (s, n) => githubSteps({ 'secrets.TRACEWELL_URL': s.url, 'secrets.TRACEWELL_WRITE_KEY': s.write, 'secrets.TRACEWELL_READ_KEY': s.read, 'github.event.pull_request.number': n, 'github.sha': 'c0ffee' })],
	['GitLab', (s, n) => gitlabSteps({ TRACEWELL_URL: s.url, TRACEWELL_WRITE_KEY: s.write, TRACEWELL_READ_KEY: s.read, CI_MERGE_REQUEST_IID: n, CI_COMMIT_SHA: 'c0ffee' })],
])
	test(`${name}: slower starts are stopped, others pass`, async (t) => {
		const s = await startServer(t);
		await s.put('/api/v1/builds/base/methods', mapping);
		for (let i = 0; i < STARTS; i++) await s.post('/api/v1/traces', trace(load(i, 1)), { query: { version_name: '8.3.0', build_id: 'base', scenario: 'cold_start', labels: '{"device_class":"mid"}' } });
		const slow = await runAll(t, steps(s, '7'), 1.4);
		assert.match(slow.step, /tracewell compare/, slow.stderr);
		assert.equal(slow.status, 1, slow.stderr + slow.report);
		assert.match(slow.report, /\| `p50\(cold_start\) > \+10%` \| FAILS \|/);
		const same = await runAll(t, steps(s, '8'), 1);
		assert.equal(same.status, 0, same.stderr + same.report);
		const { text } = await s.get('/api/v1/traces?version_name=8.3.1');
		assert.equal(JSON.parse(text).total, 2 * STARTS, 'requests are traces of the release');
		assert.doesNotMatch(same.report, /could not be corrected/);
		assert.match(same.report, /\| `p95\(cold_start\) > \+15%` \| passes \|/);
	});
