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

import { compile, java, skip } from '../jdk.mjs';
import { sampleTrace } from '../make.mjs';
import { atEnd, freePort, root, startServer, until } from '../server.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-device-'));
const classes = path.join(folder, 'classes');
let queues = 0;
const queue = () => path.join(folder, `queue-${++queues}`);
/* The files of a queue, without the sender's lock. */
const left = (q) => fs.readdirSync(q).filter((n) => n !== 'lock');
const traces = (q) => left(q).filter((n) => n.endsWith('.gz'));
const file = (name, bytes) => (fs.writeFileSync(path.join(folder, name), bytes), path.join(folder, name));
const args = (...more) => ['-XX:TieredStopAtLevel=1', '-Xshare:auto', '-cp', classes, 'Device', ...more];

before(() => skip || compile(classes, [...java('deploy/device/dev/tracewell'), path.join(root, 'tests/device/Device.java')]));
after(() => fs.rmSync(folder, { recursive: true, force: true }));

function device(...more) {
	const child = spawn('java', args(...more));
	const d = { child, out: '', err: '' };
	setTimeout(() => child.kill('SIGKILL'), 180_000).unref();
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

/* A server that gives every request the same response; asked: number of requests. */
async function stub(t, answer) {
	const s = { asked: [] };
	s.http = http.createServer((req, res) => req.resume().on('end', () => (s.asked.push(req), answer(req, res))));
	await new Promise((done) => s.http.listen(0, '127.0.0.1', done));
	atEnd(t, () => (s.http.closeAllConnections(), s.http.close()));
	s.url = `http://127.0.0.1:${s.http.address().port}`;
	return s;
}

/* Random bytes between the calls keep it large when it is compressed. */
const large = (seed) => sampleTrace(6000, seed);

test('queued without a network, sent when there is one, with all metadata', { skip }, async (t) => {
	const q = queue();
	assert.equal(await says('add', q, '1000000', file('a.bin', sampleTrace(50, 1)), 'build_id=b1', 'scenario=kalter Start €', 'device_id=d1'), 'true dropped 0');
	assert.ok(Number(await says('once', 'http://127.0.0.1:1', 'key', q)) > 0, 'no network: later');
	assert.equal(traces(q).length, 1);
	const s = await startServer(t);
	assert.match(await says('send', s.url, s.ingest, q), /^sent 1 refused 0/m);
	assert.deepEqual(left(q), []);
	const { json } = await s.get('/api/v1/traces');
	const trace = await s.decoded(json.traces[0].id);
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	assert.deepEqual([trace.meta.build_id, trace.meta.scenario], ['b1', 'kalter Start €']);
});

test('server and device are killed during it: one complete trace', { skip }, async (t) => {
	const s = await startServer(t, { args: ['--listen', `127.0.0.1:${await freePort()}`] });
	const q = queue();
	const bytes = large(2);
	await says('add', q, '100000000', file('b.bin', bytes));
	const first = device('send', s.url, s.ingest, q);
	await until(() => (/path=\/api\/v1\/uploads\/\w+/.test(s.log) ? true : undefined), 'a first piece');
	await s.stop('SIGKILL');
	first.child.kill('SIGKILL');
	await first.ended;
	await s.start();
	assert.match(await says('send', s.url, s.ingest, q), /^sent 1 refused 0/m);
	const { json } = await s.get('/api/v1/traces');
	assert.equal(json.total, 1);
	assert.equal((await s.decoded(json.traces[0].id)).state, 'ready');
	assert.equal(s.log.match(/method=POST path=\/api\/v1\/uploads .*status=201/g)?.length, 1, 'it went on, it did not begin again');
});

test('a full queue drops the oldest and refuses too large files', { skip }, async () => {
	const q = queue();
	const names = [1, 2, 3].map((n) => file(`c${n}.bin`, sampleTrace(400, n)));
	await says('add', q, '100000000', names[0]);
	const [one] = traces(q);
	const bytes = fs.statSync(path.join(q, one)).size;
	assert.equal(await says('add', q, String(Math.round(bytes * 2.5)), names[1]), 'true dropped 0');
	assert.equal(await says('add', q, String(Math.round(bytes * 2.5)), names[2]), 'true dropped 1');
	assert.ok(!fs.existsSync(path.join(q, one)));
	assert.equal(fs.readdirSync(q).length, 4);
	assert.equal(await says('add', q, '100', names[0]), 'false dropped 0');
});

test('a file that is not a trace is dropped with its reason and blocks no other', { skip }, async (t) => {
	const s = await startServer(t);
	const q = queue();
	await says('add', q, '1000000', file('d.bin', Buffer.alloc(5000, 'no trace ')));
	await says('add', q, '1000000', file('e.bin', sampleTrace(50, 5)));
	assert.match(await says('send', s.url, s.ingest, q), /^sent 1 refused 1 4\d\d: .*error/m);
	assert.deepEqual(left(q), []);
});

test('Retry-After is followed, and a wrong key keeps the trace', { skip }, async (t) => {
	let status = 503;
	const { url } = await stub(t, (req, res) => res.writeHead(status, { 'Retry-After': '7' }).end('{}'));
	for (const [answer, least] of [[503, 7000], [429, 7000], [507, 7000], [401, 7000]]) {
		const q = queue();
		status = answer;
		await says('add', q, '1000000', file('f.bin', sampleTrace(5, 6)));
		const wait = Number(await says('once', url, 'key', q));
		assert.ok(wait >= least && wait <= 2 * least + 1, `${answer}: ${wait}`);
		assert.equal(traces(q).length, 1);
	}
});

test('a server\'s Retry-After applies to all waiting uploads of its key', { skip }, async (t) => {
	const s = await stub(t, (req, res) => res.writeHead(503, { 'Retry-After': '120' }).end('{}'));
	const q = queue();
	for (const n of [1, 2, 3]) await says('add', q, '1000000', file(`g${n}.bin`, sampleTrace(5, n)));
	for (let i = 0; i < 3; i++) assert.ok(Number(await says('once', s.url, 'key', q)) > 100_000);
	assert.equal(s.asked.length, 1);
	assert.ok(Number(await says('once', s.url, 'another', q)) > 0);
	assert.equal(s.asked.length, 2);
});

test('digits of the user\'s language lose no trace', { skip }, async (t) => {
	const s = await startServer(t);
	const q = queue();
	const arabic = { env: { ...process.env, JAVA_TOOL_OPTIONS: '-Duser.language=ar -Duser.country=EG' } };
	const run = (...more) => spawnSync('java', args(...more), { encoding: 'utf8', ...arabic }).stdout.trim();
	assert.equal(run('add', q, '1000000', file('h.bin', sampleTrace(5, 7))), 'true dropped 0');
	assert.match(traces(q)[0], /^\d{13}-[0-9a-f-]+\.gz$/);
	/* and what an earlier version of the app has queued by other digits */
	fs.renameSync(path.join(q, traces(q)[0]), path.join(q, '\u0661\u0662-a.gz'));
	assert.match(run('send', s.url, s.ingest, q), /^sent 1 refused 0/m);
});

test('a wrong request, or a response from another server, deletes nothing', { skip }, async (t) => {
	let status = 400;
	/* the server's refusals have tus headers: a 415 or 422 without them comes from an intermediary */
	const s = await stub(t, (req, res) => res.writeHead(status, status < 412 ? { 'Tus-Resumable': '1.0.0' } : {}).end('{}'));
	for (const answer of [302, 400, 404, 415, 422]) {
		const q = queue();
		status = answer;
		await says('add', q, '1000000', file('i.bin', sampleTrace(5, 6)));
		assert.ok(Number(await says('once', s.url, 'key', q)) > 0, `${answer}`);
		assert.equal(traces(q).length, 1, `${answer}`);
	}
});

test('a piece that is lost on the way, and an upload the server forgot, delete nothing', { skip }, async (t) => {
	let status = 460;
	const s = await stub(t, (req, res) => {
		const made = req.url === '/api/v1/uploads';
		res.writeHead(made ? 201 : status, { 'Tus-Resumable': '1.0.0', Location: '/api/v1/uploads/u' }).end();
	});
	for (status of [460, 404, 410]) {
		const q = queue();
		await says('add', q, '1000000', file('j.bin', sampleTrace(5, 6)));
		const wait = Number(await says('once', s.url, 'key', q));
		assert.ok(wait > 0 && wait <= 50, `${status}: ${wait}`);
		assert.equal(traces(q).length, 1);
	}
});

test('concurrent uploaders leave each other\'s files alone', { skip }, async () => {
	const q = queue();
	fs.mkdirSync(q);
	const old = new Date(Date.now() - 2 * 3600_000);
	for (const name of ['x.part', 'x.next', 'x.properties']) {
		fs.writeFileSync(path.join(q, name), '');
		fs.utimesSync(path.join(q, name), old, old);
		fs.writeFileSync(path.join(q, `young-${name}`), '');
	}
	assert.equal(await says('many', q, file('k.bin', large(3)), '15'), '15');
	assert.equal(traces(q).length, 15);
	assert.deepEqual(left(q).filter((n) => n.includes('x.')), ['young-x.next', 'young-x.part', 'young-x.properties']);
});

test('a clock that was set back delays nothing', { skip }, async (t) => {
	const s = await startServer(t);
	const q = queue();
	await says('add', q, '1000000', file('l.bin', sampleTrace(5, 8)));
	await says('once', 'http://127.0.0.1:1', 'key', q);
	const about = path.join(q, left(q).find((n) => n.endsWith('.properties')));
	const year = Date.now() + 365 * 86400_000;
	fs.writeFileSync(about, fs.readFileSync(about, 'utf8').replace(/^due=.*$/m, `due=${year}`));
	assert.equal(await says('once', s.url, s.ingest, q), '0');
	assert.equal((await s.get('/api/v1/traces')).json.total, 1);
});

test('adding does not wait for sending, and one process sends', { skip }, async (t) => {
	const s = await stub(t, () => {});
	const q = queue();
	await says('add', q, '1000000', file('m.bin', sampleTrace(5, 9)));
	const d = device('during', s.url, 'key', q, file('n.bin', sampleTrace(5, 10)));
	await until(() => (s.asked.length ? true : undefined), 'a request');
	assert.equal(await says('once', s.url, 'key', q), '50', 'another process sends: come later');
	assert.equal(s.asked.length, 1);
	d.child.stdin.write('\n');
	const { code, out, err } = await d.ended;
	assert.equal(code, 0, err);
	assert.equal(out, 'still sending');
	assert.equal(traces(q).length, 2);
});

test('a file found again at each start is one trace by its key', { skip }, async (t) => {
	const s = await startServer(t);
	const q = queue();
	const anr = file('o.bin', sampleTrace(5, 11));
	for (const key of ['anr-1', 'anr-1', 'anr 2 \u0663']) assert.equal(await says('key', q, key, anr), 'true');
	assert.equal(traces(q).length, 2);
	assert.match(await says('send', s.url, s.ingest, q), /^sent 2 refused 0/m);
	await says('key', q, 'anr-1', anr);
	assert.match(await says('send', s.url, s.ingest, q), /^sent 1 refused 0/m);
	assert.equal((await s.get('/api/v1/traces')).json.total, 2);
	/* the same key for another trace can never be accepted: the trace is deleted, and this is reported */
	await says('key', q, 'anr-1', file('p.bin', sampleTrace(6, 12)));
	assert.match(await says('send', s.url, s.ingest, q), /^sent 0 refused 1 409/m);
});

test('missing metadata is not invented, the recording time is added, and listeners get the id', { skip }, async (t) => {
	const s = await startServer(t);
	const q = queue();
	const bare = file('q.bin', sampleTrace(5, 13));
	const when = new Date('2026-01-02T03:04:05Z');
	fs.utimesSync(bare, when, when);
	assert.equal(await says('bare', q, bare), 'true');
	const out = await says('send', s.url, s.ingest, q);
	const { json } = await s.get('/api/v1/traces');
	assert.equal(out.match(/^reported sent null (\S+)$/m)?.[1], json.traces[0].id, out);
	assert.equal((await s.decoded(json.traces[0].id)).meta.started_ms, when.getTime());
	await says('add', q, '1000000', file('r.bin', Buffer.alloc(5000, 'no trace ')), 'scenario=start');
	assert.match(await says('send', s.url, s.ingest, q), /^reported refused start 4\d\d$/m);
	await says('add', q, '1000000', bare, 'scenario=start');
	const closed = await stub(t, (req, res) => res.writeHead(503).end());
	const d = device('send', closed.url, s.ingest, q);
	await until(() => (/^reported waits start \d+$/m.test(d.out) ? true : undefined), 'a wait');
	d.child.kill();
	await d.ended;
});

test('capture rules are requested with an ETag and remain valid without a network', { skip }, async (t) => {
	const s = await startServer(t, { args: ['--log-level', 'debug'] });
	const kept = path.join(folder, 'capture');
	const ask = (url = s.url) => says('capture', url, s.ingest, kept, 'version_name=8.3.1', 'device_id=d1');
	const rules = { max_age_s: 60, rules: [{ name: 'cold', scenario: 'cold_start', share: 1, per_day: 500, record: { max_seconds: 20 } }] };
	assert.equal((await s.ask('PUT', '/api/v1/capture/rules', { key: s.admin, body: JSON.stringify(rules) })).status, 200);
	assert.equal(JSON.parse(await ask()).captures[0].rule, 'cold');
	const due = (ms) => fs.writeFileSync(kept, fs.readFileSync(kept, 'utf8').replace(/^due=.*$/m, `due=${ms}`));
	assert.equal(JSON.parse(await ask('http://127.0.0.1:1')).captures[0].rule, 'cold', 'fresh: not asked');
	due(0);
	assert.equal(JSON.parse(await ask()).captures[0].rule, 'cold');
	assert.match(s.log, /path=\/api\/v1\/capture.* status=304/);
	due(0);
	assert.equal(JSON.parse(await ask('http://127.0.0.1:1')).captures[0].rule, 'cold', 'no network: the last answer holds');
	/* a damaged file is requested again; other responses to an upload request nothing new */
	due('abc');
	assert.equal(JSON.parse(await ask()).captures[0].rule, 'cold');
	due(Date.now() + 365 * 86400_000);
	const asked = () => s.log.match(/path=\/api\/v1\/capture\b.* status=\d+/g).length;
	const before = asked();
	await says('capture', s.url, s.ingest, kept, 'version_name=8.3.1', 'device_id=d1', 'scenario=feed', 'started_at=5');
	await says('capture', s.url, s.ingest, kept, 'version_name=8.3.1', 'device_id=d1', 'scenario=cold_start', 'pid=6');
	assert.equal(asked(), before + 1);
});
