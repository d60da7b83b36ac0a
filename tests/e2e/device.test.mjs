/*
 * device.test.mjs - the uploader for devices (deploy/device) on the JVM against the real server: networks that
 * break, servers and processes that are killed, full queues, refusals, and what to record.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { sampleTrace } from './make.mjs';
import { root, sleep, startServer, until } from './server.mjs';

const hasJava = spawnSync('javac', ['-version']).status === 0;
const skip = hasJava ? false : 'no JDK';
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-device-'));
const classes = path.join(folder, 'classes');
let queues = 0;
const queue = () => path.join(folder, `queue-${++queues}`);
const file = (name, bytes) => (fs.writeFileSync(path.join(folder, name), bytes), path.join(folder, name));
const args = (...more) => ['-XX:TieredStopAtLevel=1', '-Xshare:auto', '-cp', classes, 'Device', ...more];

before(() => {
	if (skip) return;
	const sources = ['deploy/device/dev/tracewell/TraceUploader.java', 'deploy/device/dev/tracewell/CaptureConfig.java', 'tests/device/Device.java'];
	const made = spawnSync('javac', ['--release', '8', '-Xlint:all,-options', '-Werror', '-d', classes, ...sources.map((name) => path.join(root, name))], { encoding: 'utf8' });
	assert.equal(made.status, 0, made.stderr);
});
after(() => fs.rmSync(folder, { recursive: true, force: true }));

function device(...more) {
	const child = spawn('java', args(...more));
	const d = { child, out: '', err: '' };
	child.stdout.on('data', (piece) => (d.out += piece));
	child.stderr.on('data', (piece) => (d.err += piece));
	d.ended = new Promise((done) => child.once('close', (code) => done({ code, out: d.out.trim(), err: d.err })));
	return d;
}

async function says(...more) {
	const { code, out, err } = await device(...more).ended;
	assert.equal(code, 0, err);
	return out;
}

/* Random bytes between the calls keep it large when it is compressed. */
const large = (seed) => sampleTrace(6000, seed);

test('queued without a network, sent when there is one, with all that was said', { skip }, async (t) => {
	const q = queue();
	assert.equal(await says('add', q, '1000000', file('a.bin', sampleTrace(50, 1)), 'build_id=b1', 'scenario=kalter Start €', 'device_id=d1'), 'true dropped 0');
	assert.ok(Number(await says('once', 'http://127.0.0.1:1', 'key', q)) > 0, 'no network: later');
	assert.equal(fs.readdirSync(q).filter((n) => n.endsWith('.gz')).length, 1);
	const s = await startServer(t);
	assert.match(await says('send', s.url, s.ingest, q), /^sent 1 refused 0/);
	assert.deepEqual(fs.readdirSync(q), []);
	const { json } = await s.get('/api/v1/traces');
	const trace = await s.decoded(json.traces[0].id);
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	assert.deepEqual([trace.meta.build_id, trace.meta.scenario], ['b1', 'kalter Start €']);
});

test('the server is killed on the way, the device too: one trace, whole', { skip }, async (t) => {
	const s = await startServer(t);
	const q = queue();
	const bytes = large(2);
	await says('add', q, '100000000', file('b.bin', bytes));
	const port = s.port;
	const first = device('send', s.url, s.ingest, q);
	await until(() => (/path=\/api\/v1\/uploads\/\w+/.test(s.log) ? true : undefined), 'a first piece');
	await s.stop('SIGKILL');
	await sleep(300);
	first.child.kill('SIGKILL');
	await first.ended;
	s.args = ['--listen', `127.0.0.1:${port}`];
	await s.start();
	assert.match(await says('send', s.url, s.ingest, q), /^sent 1 refused 0/);
	const { json } = await s.get('/api/v1/traces');
	assert.equal(json.total, 1);
	assert.equal((await s.decoded(json.traces[0].id)).state, 'ready');
	assert.equal(s.log.match(/method=POST path=\/api\/v1\/uploads .*status=201/g)?.length, 1, 'it went on, it did not begin again');
});

test('a full queue drops the oldest, and what is too large is not taken', { skip }, async () => {
	const q = queue();
	const names = [1, 2, 3].map((n) => file(`c${n}.bin`, sampleTrace(400, n)));
	await says('add', q, '100000000', names[0]);
	const [one] = fs.readdirSync(q).filter((n) => n.endsWith('.gz'));
	const bytes = fs.statSync(path.join(q, one)).size;
	assert.equal(await says('add', q, String(Math.round(bytes * 2.5)), names[1]), 'true dropped 0');
	assert.equal(await says('add', q, String(Math.round(bytes * 2.5)), names[2]), 'true dropped 1');
	assert.ok(!fs.existsSync(path.join(q, one)));
	assert.equal(fs.readdirSync(q).length, 4);
	assert.equal(await says('add', q, '100', names[0]), 'false dropped 0');
});

test('what is no trace goes with its reason, and holds up no other', { skip }, async (t) => {
	const s = await startServer(t);
	const q = queue();
	await says('add', q, '1000000', file('d.bin', Buffer.alloc(5000, 'no trace ')));
	await says('add', q, '1000000', file('e.bin', sampleTrace(50, 5)));
	assert.match(await says('send', s.url, s.ingest, q), /^sent 1 refused 1 4\d\d: .*error/);
	assert.deepEqual(fs.readdirSync(q), []);
});

test('a server that asks to wait is waited for, and a wrong key keeps the trace', { skip }, async (t) => {
	let status = 503;
	const stub = http.createServer((req, res) => req.resume().on('end', () => res.writeHead(status, { 'Retry-After': '7' }).end('{}')));
	await new Promise((done) => stub.listen(0, '127.0.0.1', done));
	t.after(() => stub.close());
	const url = `http://127.0.0.1:${stub.address().port}`;
	for (const [answer, least] of [[503, 7000], [429, 7000], [507, 7000], [401, 7000]]) {
		const q = queue();
		status = answer;
		await says('add', q, '1000000', file('f.bin', sampleTrace(5, 6)));
		const wait = Number(await says('once', url, 'key', q));
		assert.ok(wait >= least && wait <= 2 * least + 1, `${answer}: ${wait}`);
		assert.equal(fs.readdirSync(q).filter((n) => n.endsWith('.gz')).length, 1);
	}
});

test('what to record is asked with an ETag, and kept without a network', { skip }, async (t) => {
	const s = await startServer(t, { args: ['--log-level', 'debug'] });
	const kept = path.join(folder, 'capture');
	const ask = (url = s.url) => says('capture', url, s.ingest, kept, 'version_name=8.3.1', 'device_id=d1');
	const rules = { valid_s: 60, rules: [{ name: 'cold', scenario: 'cold_start', share: 1, per_day: 500, record: { max_seconds: 20 } }] };
	assert.equal((await s.ask('PUT', '/api/v1/capture/rules', { key: s.admin, body: JSON.stringify(rules) })).status, 200);
	assert.equal(JSON.parse(await ask()).captures[0].rule, 'cold');
	const due = (ms) => fs.writeFileSync(kept, fs.readFileSync(kept, 'utf8').replace(/^due=.*$/m, `due=${ms}`));
	assert.equal(JSON.parse(await ask('http://127.0.0.1:1')).captures[0].rule, 'cold', 'fresh: not asked');
	due(0);
	assert.equal(JSON.parse(await ask()).captures[0].rule, 'cold');
	assert.match(s.log, /path=\/api\/v1\/capture.* status=304/);
	due(0);
	assert.equal(JSON.parse(await ask('http://127.0.0.1:1')).captures[0].rule, 'cold', 'no network: the last answer holds');
});
