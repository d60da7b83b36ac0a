/* `tracewell push` against the real server, and against networks that fail. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';
import zlib from 'node:zlib';
import { sampleMapping, sampleTrace } from '../make.mjs';
import { atEnd, binary, newFolder, startServer } from '../server.mjs';

/* Not synchronous: its server may run in this process. */
function push(...args) {
	return new Promise((done) => {
		const child = spawn(binary(), ['push', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
		const out = { stdout: '', stderr: '' };
		for (const stream of ['stdout', 'stderr']) child[stream].on('data', (d) => (out[stream] += d));
		child.on('close', (code) => done({ code, ...out, ids: out.stdout.trim().split('\n').filter(Boolean) }));
	});
}

function folder(t, files) {
	const dir = newFolder(t, 'tw-push-');
	for (const [name, bytes] of Object.entries(files)) {
		fs.mkdirSync(path.dirname(path.join(dir, name)), { recursive: true });
		fs.writeFileSync(path.join(dir, name), bytes);
	}
	return (name) => path.join(dir, name);
}

/* Hands requests on; `spoil` may answer in the server's place, or break the connection. */
function proxy(t, target, spoil) {
	let n = 0;
	const server = http.createServer((req, res) => {
		if (spoil(n++, req, res)) return;
		const onward = http.request(target + req.url, { method: req.method, headers: req.headers }, (answer) => {
			res.writeHead(answer.statusCode, answer.headers);
			answer.pipe(res);
		});
		onward.on('error', () => res.destroy());
		req.pipe(onward);
	});
	atEnd(t, () => server.close());
	return new Promise((done) => server.listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${server.address().port}`)));
}

test('push --wait=counted: a fleet query afterwards includes the trace', async (t) => {
	const s = await startServer(t);
	const at = folder(t, { 'a.bin': sampleTrace(33), 'b.bin': sampleTrace(34) });
	const to = ['--server', s.url, '--key', s.ingest, '--meta', 'app=com.a', '--meta', 'version_name=1'];
	const traces = async () => (await s.get('/api/v1/fleet/scenarios?by=version&app=com.a')).json;
	for (const [n, file] of [[1, 'a.bin'], [2, 'b.bin']]) {
		const sent = await push(...to, '--wait=counted', '--json', at(file));
		assert.equal(sent.code, 0, sent.stderr);
		const { id, state } = JSON.parse(sent.stdout);
		assert.equal(state, 'counted');
		assert.equal((await traces()).traces, n);
		assert.equal((await s.get(`/api/v1/traces/${id}`)).json.rollup_state, 'counted');
	}
	s.sql("UPDATE trace SET rollup_state=2");
	const never = await push(...to, '--wait=counted', '--json', at('a.bin'));
	assert.deepEqual([never.code, JSON.parse(never.stdout).state], [1, 'ready']);
	assert.match(never.stderr, /will not be counted/);
	const odd = await push(...to, '--wait=forever', at('a.bin'));
	assert.deepEqual([odd.code, /--wait must be ready or counted, not "forever"/.test(odd.stderr)], [2, true]);
	assert.equal((await push(...to, '--wait=ready', at('a.bin'))).code, 0);
});

test('push through pipes, also over a network that fails', async (t) => {
	const s = await startServer(t);
	const at = folder(t, { 'a.bin': sampleTrace(35), map: sampleMapping });
	const url = await proxy(t, s.url, (n, req, res) => n % 2 === 0 && (req.destroy(), res.destroy(), true));
	const sent = await new Promise((done) => {
		const line = `"$0" push --server ${url} --key ${s.ingest} --build-id p --mapping <(cat ${at('map')}) --threads <(echo 4000,piped) --wait --json - <(cat ${at('a.bin')}; printf more) < <(cat ${at('a.bin')})`;
		const child = spawn('bash', ['-c', line, binary()], { stdio: ['ignore', 'pipe', 'pipe'] });
		const out = { stdout: '', stderr: '' };
		for (const stream of ['stdout', 'stderr']) child[stream].on('data', (d) => (out[stream] += d));
		child.on('close', (code) => done({ code, ...out }));
	});
	assert.equal(sent.code, 0, sent.stderr);
	const reported = sent.stdout.trim().split('\n').map((line) => JSON.parse(line));
	assert.deepEqual(reported.map((x) => x.state), ['ready', 'ready']);
	assert.deepEqual([reported[0].file, /^\/dev\/fd\/\d+$/.test(reported[1].file)], ['-', true]);
	assert.match(sent.stderr, /mapping of p: 9 methods/);
	for (const { id } of reported) assert.deepEqual((await s.get(`/api/v1/traces/${id}/threads`)).json.threads.map((x) => x.name), ['piped']);
});

/* 4 MB of stacks, of one line again and again (which compresses past the limit of ratios) and of different ones. */
test('push compresses uploads and pipes: a file that compresses below the limit is accepted', async (t) => {
	const s = await startServer(t, { args: ['--max-body', '512K'] });
	const dull = 'main;com.shop.Cart.pay;com.shop.Cart.sum 2\n'.repeat(100_000);
	const varied = Array.from({ length: 100_000 }, (_, i) => `main;com.shop.Cart.pay;step${i % 2000} ${1 + (i % 7)}\n`).join('');
	const noise = zlib.gzipSync(varied.slice(0, 1 << 20));
	const at = folder(t, { 'dull.folded': dull, 'varied.folded': varied, 'small.folded.gz': noise });
	const to = ['--server', s.url, '--key', s.ingest, '--wait'];
	for (const name of ['dull.folded', 'varied.folded', 'small.folded.gz']) {
		const sent = await push(...to, at(name));
		assert.equal(sent.code, 0, sent.stderr);
		assert.deepEqual((await push(...to, at(name))).ids, sent.ids);
		const line = `cat ${at(name)} | "$0" push --server ${s.url} --key ${s.ingest} --wait -`;
		const piped = spawnSync('bash', ['-c', line, binary()], { encoding: 'utf8' });
		assert.deepEqual([piped.status, piped.stdout.trim()], [0, sent.ids[0]], piped.stderr);
	}
	const { json } = await s.get('/api/v1/traces');
	assert.deepEqual(json.traces.map((x) => x.state), ['ready', 'ready', 'ready']);
	const total = async (id) => (await s.get(`/api/v1/traces/${id}/methods?limit=1&q=com.shop.Cart.pay`)).json.methods[0].total_ns;
	const [small, large, same] = await Promise.all(json.traces.map((x) => total(x.id)));
	assert.equal(same, 200_000);
	assert.equal(large, Array.from({ length: 100_000 }, (_, i) => 1 + (i % 7)).reduce((a, b) => a + b));
	assert.ok(small > 0 && small < large);
});

/* As of a server that has as many requests waiting as it allows. */
test('push repeats a mapping that is not waited for with pauses, until it is compiled', async (t) => {
	let compiled = false, asked = 0;
	const busy = http.createServer((req, res) => req.resume().on('end', () => {
		if (!asked++) setTimeout(() => (compiled = true), 3000);
		res.writeHead(compiled ? 200 : 202).end(JSON.stringify(compiled ? { state: 'ready', entries: 9 } : { state: 'queued' }));
	}));
	await new Promise((done) => busy.listen(0, '127.0.0.1', done));
	atEnd(t, () => (busy.closeAllConnections(), busy.close()));
	const at = folder(t, { 'map.txt': sampleMapping });
	const r = await push('--server', `http://127.0.0.1:${busy.address().port}`, '--key', 'x', '--build-id', 'p', '--mapping', at('map.txt'));
	assert.equal(r.code, 0, r.stderr);
	assert.match(r.stderr, /mapping of p: 9 methods/);
	assert.ok(asked > 1 && asked < 10, `${asked} requests in 3 seconds`);
});

test('push', async (t) => {
	const s = await startServer(t);
	const at = folder(t, {
		'a.bin': sampleTrace(), 'deep/er/b.bin': sampleTrace(20), 'threads.txt': '4000,the main one\n',
		'map.txt': sampleMapping, 'r8.txt': 'com.shop.Cart -> com.example.app.Class0:\n    void pay() -> method1\n', 'notes.md': 'no trace',
	});
	const to = ['--server', s.url, '--key', s.ingest];

	await t.test('a trace with its parts and mappings; the same again is the same trace', async () => {
		const args = [...to, '--build-id', 'p1', '--mapping', at('map.txt'), '--retrace', at('r8.txt'), '--part', `threads=${at('threads.txt')}`,
			'--meta', 'device=phone', '--wait', at('a.bin')];
		const first = await push(...args);
		assert.equal(first.code, 0, first.stderr);
		assert.equal(first.ids.length, 1);
		assert.match(first.stderr, /mapping of p1: 9 methods/);
		assert.match(first.stderr, /R8 mapping of p1: 1 methods/);
		const { json } = await s.get(`/api/v1/traces/${first.ids[0]}/methods?limit=100`);
		assert.ok(json.methods.some((m) => m.name === 'com.shop.Cart.pay'), JSON.stringify(json.methods.map((m) => m.name)));
		assert.equal((await s.get(`/api/v1/traces/${first.ids[0]}/threads`)).json.threads[0].name, 'the main one');
		assert.deepEqual((await push(...args)).ids, first.ids);
	});
	await t.test('a folder: its traces, however deep, and nothing else', async () => {
		const got = await push(...to, at('.'));
		assert.equal(got.code, 0, got.stderr);
		assert.equal(got.ids.length, 2);
		const none = await push(...to, path.dirname(at('notes.md')) + '/deep/er/none');
		assert.notEqual(none.code, 0);
	});
	await t.test('a folder with JSON: traces are sent, other files are skipped, named and counted', async () => {
		const chrome = JSON.stringify({ traceEvents: [{ name: 'load', ph: 'X', ts: 1000, dur: 500, pid: 1, tid: 1 }, { name: 'draw', ph: 'X', ts: 2000, dur: 500, pid: 1, tid: 1 }] });
		const mixed = folder(t, { 'chrome.json': chrome, 'settings.json': '{"colour":"red"}', 'readme.md': 'no trace' });
		const got = await push(...to, '--wait', mixed('.'));
		assert.equal(got.code, 0, got.stderr);
		assert.equal(got.ids.length, 1);
		assert.match(got.stderr, /skipped \S*settings\.json: JSON in no known trace format/);
		assert.match(got.stderr, /skipped \S*readme\.md: not named like a trace/);
		assert.match(got.stderr, /2 files skipped, 1 sent/);
		const named = await push(...to, mixed('settings.json'));
		assert.equal(named.code, 1, 'who names it means it');
	});
	await t.test('refusals have a message and are not retried', async () => {
		const bad = await push('--server', s.url, '--key', 'twi_nonsense', at('a.bin'));
		assert.notEqual(bad.code, 0);
		assert.doesNotMatch(bad.stderr, /retrying/);
		assert.match(bad.stderr, /401/);
		const odd = await push(...to, at('notes.md'));
		assert.notEqual(odd.code, 0);
		assert.match(odd.stderr, /415|does not contain a trace/);
		assert.equal((await push(...to, '--part', 'nonsense', at('a.bin'))).code !== 0, true);
		const absent = await push(...to, '--threads', at('absent.txt'), at('a.bin'));
		assert.deepEqual([absent.code, absent.stderr], [1, `tracewell push: cannot read ${at('absent.txt')}: No such file or directory\n`]);
	});
	await t.test('a busy server and a broken connection are tried again', async () => {
		let bytes = 0;
		const url = await proxy(t, s.url, (n, req, res) => {
			if (n === 0) {
				req.resume();
				res.writeHead(503, { 'Content-Type': 'application/json' }).end('{"error":{"status":"busy","message":"later","offset":null}}');
				return true;
			}
			if (n === 1) {
				req.on('data', (d) => { bytes += d.length; req.socket.destroy(); });
				return true;
			}
			return false;
		});
		const got = await push('--server', url, '--key', s.ingest, '--wait', at('deep/er/b.bin'));
		assert.equal(got.code, 0, got.stderr);
		assert.equal(got.stderr.match(/retrying/g).length, 2, got.stderr);
		assert.ok(bytes > 0);
	});
	await t.test('an answer that was lost on the way makes no second trace', async () => {
		const before = (await s.get('/api/v1/traces')).json.total;
		const url = await proxy(t, s.url, (n, req, res) => {
			if (n > 0) return false;
			const onward = http.request(s.url + req.url, { method: req.method, headers: req.headers }, (answer) => {
				answer.resume();
				answer.on('end', () => res.destroy());
			});
			req.pipe(onward);
			return true;
		});
		const file = folder(t, { 'c.bin': sampleTrace(33) })('c.bin');
		const got = await push('--server', url, '--key', s.ingest, file);
		assert.equal(got.code, 0, got.stderr);
		assert.equal(got.ids.length, 1);
		assert.equal((await s.get('/api/v1/traces')).json.total, before + 1);
	});
});
