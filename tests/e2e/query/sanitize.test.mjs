/*
 * Files for people outside the team: no export with sanitize=1 contains the texts of events, the
 * device, addresses or ids, and all keep the calls.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import zlib from 'node:zlib';
import * as read from '../export_readers.mjs';
import { newFolder, startServer, tracewell } from '../server.mjs';

const KINDS = ['speedscope', 'folded', 'pprof', 'chrome', 'firefox', 'd3', 'csv', 'svg', 'sqlite'];
const at = { pid: 7, tid: 7 };
const TRACE = JSON.stringify({ traceEvents: [
	{ ph: 'M', name: 'process_name', ...at, args: { name: 'com.acme' } },
	{ ph: 'M', name: 'process_name', pid: 9, tid: 9, args: { name: 'org.hidden.other' } },
	{ ph: 'M', name: 'thread_name', ...at, args: { name: 'main' } },
	{ ph: 'M', name: 'thread_name', pid: 7, tid: 8, args: { name: 'OkHttp https://hidden.example/' } },
	{ ph: 'X', name: 'com.acme.Main.start', ...at, ts: 0, dur: 100 },
	{ ph: 'X', name: 'GET https://hidden.example/user/4711', pid: 7, tid: 8, ts: 10, dur: 50 },
	{ ph: 'X', name: 'https://hidden.example', pid: 7, tid: 8, ts: 70, dur: 10 },
	{ ph: 'X', name: 'org.work', pid: 9, tid: 9, ts: 70, dur: 10 },
	{ ph: 'i', s: 't', name: 'hidden user signs in', ...at, ts: 20, args: { name: 'hidden' } },
	{ ph: 'P', name: 'hidden sample', ...at, ts: 25 },
	{ ph: 'C', name: 'hidden counter', ...at, ts: 30, args: { value: 5 } },
	{ ph: 'b', cat: 'x', id: 1, name: 'hidden span', ...at, ts: 40 },
	{ ph: 'e', cat: 'x', id: 1, name: 'hidden span', ...at, ts: 60 },
] });

const plain = (bytes) => (bytes[0] === 0x1f ? zlib.gunzipSync(bytes) : bytes).toString('latin1');

test('a file for people outside the team', async (t) => {
	const s = await startServer(t, { args: ['--public-url', 'https://inside.example'] });
	const { id } = await s.trace(TRACE, { query: { app: 'com.acme', version_name: '1.2', device: 'the hidden phone', scenario: 'cold start', started_at: '1764460800000', labels: '{"user":"hidden"}' } });
	const file = async (what, query) => {
		const answer = await s.get(`/api/v1/traces/${id}/${what}${query}`);
		assert.equal(answer.status, 200, answer.text);
		assert.equal(answer.headers.get('content-disposition').includes(id), !query.includes('sanitize'), 'the name of the file');
		return plain(answer.bytes);
	};
	const secret = new RegExp(`hidden|inside\\.example|${id}|17644608`);

	await t.test('no export has texts, the device, addresses or ids', async () => {
		for (const what of [...KINDS.map((kind) => `export/${kind}`), 'perfetto', 'perfetto?format=tar']) {
			const more = what.includes('?') ? '&' : '?';
			assert.match(await file(what, ''), secret, `${what} has something to omit`);
			const shared = await file(what, `${more}sanitize=1`);
			assert.doesNotMatch(shared, secret, what);
			assert.match(shared, /com\.acme\.Main\.start/, what);
			assert.match(shared, /GET/, what);
		}
		assert.doesNotMatch((await s.get(`/api/v1/merge?ids=${id}&sanitize=1`)).bytes.toString('latin1'), secret);
	});
	await t.test('nor does the title of a trace without app', async () => {
		const unnamed = (await s.trace(TRACE.replace('com.acme"', '"'))).id;
		for (const kind of KINDS) {
			const { status, bytes, text } = await s.get(`/api/v1/traces/${unnamed}/export/${kind}?sanitize=1`);
			assert.equal(status, 200, text);
			assert.ok(!plain(bytes).includes(unnamed), kind);
		}
	});
	await t.test('calls, their times and threads are retained', async () => {
		const { methods, threads } = read.speedscope(await file('export/speedscope', '?sanitize=1'), 1);
		assert.deepEqual([...methods].map(([name, m]) => [name, m.total]).sort(), [['(address)', 10_000], ['GET ', 50_000], ['com.acme.Main.start', 100_000], ['org.work', 10_000]]);
		assert.ok(threads.some((name) => name.startsWith('main (')) && threads.some((name) => name.startsWith('OkHttp (')), String(threads));
	});
	await t.test('events keep kind, thread and time', async () => {
		const db = path.join(newFolder(t, 'tracewell-sanitize-'), 'shared.sqlite');
		const events = async (query) => {
			fs.writeFileSync(db, (await s.get(`/api/v1/traces/${id}/export/sqlite${query}`)).bytes);
			return JSON.parse(execFileSync('sqlite3', ['-json', db, "SELECT kind, thread_id, ts_ns, dur_ns, text FROM event WHERE kind NOT IN ('counter', 'process')"], { encoding: 'utf8' }));
		};
		const all = await events('');
		assert.deepEqual(all.map((e) => e.kind).sort(), ['async', 'instant', 'sample']);
		assert.deepEqual(await events('?sanitize=1'), all.map((e) => ({ ...e, text: '' })));
	});
	await t.test('later requests are complete', async () => {
		assert.match(JSON.stringify((await s.get(`/api/v1/traces/${id}/threads`)).json), /OkHttp https:\/\/hidden\.example/);
		assert.equal((await s.get(`/api/v1/traces/${id}/export/folded?sanitize=1&threads=nobody`)).status, 404);
		assert.match(await file('export/folded', ''), secret);
	});
	await t.test('a system trace cannot be part of it', async () => {
		const answer = await s.get(`/api/v1/traces/${id}/perfetto?sanitize=1&system=1`);
		assert.equal(answer.status, 400);
		assert.match(answer.json.error.message, /omits the system trace/);
	});
	await t.test('commands without a server', () => {
		const dir = newFolder(t, 'tracewell-sanitize-');
		const input = path.join(dir, 'hidden.json'), output = path.join(dir, 'out');
		fs.writeFileSync(input, TRACE);
		for (const args of [['perfetto', input], ['export', input, '--to', 'chrome']]) {
			tracewell(...args, '-o', output);
			assert.match(plain(fs.readFileSync(output)), secret);
			tracewell(...args, '--sanitize', '-o', output);
			assert.doesNotMatch(plain(fs.readFileSync(output)), secret, args[0]);
		}
		assert.throws(() => tracewell('perfetto', input, '--sanitize', '--system', input, '-o', output), /omits the system trace/);
	});
});
