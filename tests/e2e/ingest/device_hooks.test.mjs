/*
 * device_hooks.test.mjs - the hooks of deploy/device in an app of stubs (tests/device): the files of each
 * recorder arrive at a real server as a trace with the right metadata.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { fleet } from '../../gen/anr_fleet.mjs';
import { compile, java, skip, stubs } from '../jdk.mjs';
import { sampleTrace } from '../make.mjs';
import { root, startServer } from '../server.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-hooks-'));
const classes = path.join(folder, 'classes');
const app = path.join(folder, 'app');
const file = (name, bytes) => (fs.writeFileSync(path.join(folder, name), bytes), path.join(folder, name));

before(() => skip || compile(classes, [...stubs('android.txt', folder), ...java('deploy/device/dev/tracewell'), ...java('deploy/device/hooks'), path.join(root, 'tests/device/Hooks.java')]));
after(() => fs.rmSync(folder, { recursive: true, force: true }));

function run(s, of, ...args) {
	const said = spawnSync('java', ['-XX:TieredStopAtLevel=1', `-Durl=${s.url}`, `-Dkey=${s.ingest}`, `-Dstorage=${folder}/shared`, ...of, '-cp', classes, 'com.example.app.Hooks', ...args],
		{ encoding: 'utf8', timeout: 60_000 });
	assert.equal(said.status, 0, said.stderr);
	return said.stdout.trim().split('\n');
}

const left = () => fs.readdirSync(path.join(app, 'cache'));

test('each recorder\'s files are queued once, sent and decoded', { skip }, async (t) => {
	const trace = file('trace.bin', sampleTrace(50, 1));
	const anr = file('anr.txt', fleet(42)[0].text);
	const nowhere = { url: 'http://127.0.0.1:1', ingest: 'key' };
	assert.deepEqual(run(nowhere, [], 'record', app, trace, anr), ['anr 1', 'again 0', 'summary 8.3.1 8.3.1-4711-release', 'btrace2 2', 'btrace3 3', 'rhea1 4',
		'true false', 'art 5', 'matrix 6', 'profiles 2 7', 'sampler 8']);
	assert.deepEqual(left(), [], 'what was queued is deleted');
	const [waits] = run(nowhere, [], 'send', app).slice(-1);
	assert.match(waits, /^next in [1-9]\d* \[tracewell APPEND_OR_REPLACE\]$/, 'no network: later, by the uploader\'s own wait');
	for (const name of fs.readdirSync(path.join(app, 'no_backup/traces')).filter((n) => n.endsWith('.properties'))) {
		const about = path.join(app, 'no_backup/traces', name);
		fs.writeFileSync(about, fs.readFileSync(about, 'utf8').replace(/^due=.*$/m, 'due=0'));
	}
	const s = await startServer(t);
	const lines = run(s, [], 'send', app);
	assert.equal(lines.at(-1), 'next in 0 []');
	const { json } = await s.get('/api/v1/traces');
	const by = new Map();
	for (const { id } of json.traces) {
		const d = await s.decoded(id);
		assert.equal(d.state, 'ready', `${d.meta.scenario}: ${JSON.stringify(d.error)}`);
		by.set(d.meta.scenario, d.meta);
		assert.ok(lines.includes(`${d.meta.scenario}: ${s.url}/traces/${id}`), 'the app hears its address');
	}
	assert.deepEqual([...by.keys()].sort(), ['Trace_EvilMethod', 'anr', 'art', 'btrace2', 'btrace3', 'rhea1', 'slow_message', 'system_triggered']);
	const { version_name, build_id, pid, process, started_ms } = by.get('anr');
	assert.deepEqual([version_name, build_id, pid, process, started_ms], ['8.2.0', 'old-build', 4711, 'com.example.app:old', 1_700_000_002_000]);
	assert.deepEqual([by.get('btrace3').pid, by.get('btrace3').build_id], [99, 'former']);
	assert.match(fs.readFileSync(path.join(app, 'files/rhea/tracing/1234/build.properties'), 'utf8'), /^build_id=8\.3\.1-4711-release$/m);
	assert.deepEqual([by.get('art').build_id, by.get('art').abi, by.get('art').pid], ['8.3.1-4711-release', 'arm64-v8a', 1234]);
	assert.equal(by.get('art').labels.ram_mb, 5120, 'from which its class is derived');
});

test('without consent nothing is stored', { skip }, () => {
	const trace = file('trace.bin', sampleTrace(5, 1));
	const nowhere = { url: 'http://127.0.0.1:1', ingest: 'key' };
	const refused = run(nowhere, [], 'refuse', path.join(folder, 'refused'), trace, file('anr.txt', fleet(42)[0].text));
	assert.match(refused.at(-1), /^sampler 0$/);
	assert.deepEqual(fs.readdirSync(path.join(folder, 'refused/cache')), []);
});

test('the server\'s rules decide what to record, and the trace names its rule', { skip }, async (t) => {
	const s = await startServer(t);
	const rules = { max_age_s: 60, rules: [{ name: 'cold', scenario: 'cold_start', share: 1, record: { max_seconds: 20 } }, { name: 'feed', scenario: 'feed_scroll', share: 1, record: { max_seconds: 3 } }] };
	assert.equal((await s.ask('PUT', '/api/v1/capture/rules', { key: s.admin, body: JSON.stringify(rules) })).status, 200);
	assert.equal(run(s, [], 'capture', app, 'cold_start').at(-1), '20 5 cold');
	assert.equal(run(s, [], 'capture', app, 'feed_scroll').at(-1), '3 3 feed');
	assert.equal(run(s, [], 'capture', app, 'other').at(-1), 'none');
	const nowhere = { url: 'http://127.0.0.1:1', ingest: 'key' };
	assert.equal(run(nowhere, [], 'capture', app, 'feed_scroll').at(-1), '3 3 feed', 'no network: what was received last');
});
