/*
 * formats_studio.test.mjs - what Android Studio's profiler exports, and the reports of BlockCanary and BlockCanaryX, each
 * uploaded: the calls of its flame graph; recordings without times of code are refused with the reason.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { newFolder, root, startServer } from '../server.mjs';

const golden = (format, name = 'minimal') => fs.readFileSync(path.join(root, 'tests/golden', format, name, 'input'));
const varint = (n) => (n < 128 ? [n] : [(n % 128) + 128, ...varint(Math.floor(n / 128))]);
const message = (field, bytes) => [...varint(field * 8 + 2), ...varint(bytes.length), ...bytes];

test('files of other tools', async (t) => {
	const s = await startServer(t);
	const json = async (target) => {
		const answer = await s.get(target);
		assert.equal(answer.status, 200, answer.text);
		return answer.json;
	};
	/* Each path of the flame graph with its own value: milliseconds, or calls. */
	const flame = async (trace, query = 'thread=all') => {
		assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
		const lines = [], unit = query.includes('metric=count') ? 1 : 1e6;
		const walk = (node, before) => {
			if (node.self) lines.push(`${before}${node.name} ${node.self / unit}`);
			for (const child of node.children) walk(child, `${before}${node.name};`);
		};
		const top = await json(`/api/v1/traces/${trace.id}/flame?${query}`);
		for (const child of top.children) walk(child, '');
		return lines.sort();
	};

	await t.test('Android Studio: recorded Java/Kotlin methods (.trace of ART) have the phone\'s calls', async () => {
		const dir = newFolder(t, 'tw-studio-');
		for (const layout of ['v1-dual', 'stream-dual', 'v2c-dual']) {
			const truth = path.join(dir, `${layout}.json`), file = execFileSync('python3', [path.join(root, 'tests/gen/art.py'), layout, '--seed', '7', '--calls', '300', '--threads', '3', '--json', truth]);
			const trace = await s.trace(file);
			assert.equal(trace.summary.format, 'art');
			const calls = {};
			for (const line of await flame(trace, 'thread=all&metric=count')) {
				const [, name, n] = /([^;]+) (\d+)$/.exec(line);
				calls[name] = (calls[name] ?? 0) + Number(n);
			}
			const { methods } = JSON.parse(fs.readFileSync(truth, 'utf8'));
			assert.deepEqual(calls, Object.fromEntries(Object.entries(methods).map(([name, m]) => [name, m.count])), layout);
		}
	});

	await t.test('Android Studio: a callstack sample (.trace of simpleperf)', async () => {
		const trace = await s.trace(golden('simpleperf'));
		assert.equal(trace.summary.format, 'simpleperf');
		assert.deepEqual(await flame(trace), ['__libc_init;a.B.main 1', '__libc_init;a.B.main;[libc.so] 1', '__libc_init;a.B.main;a.C.run 1']);
	});

	await t.test('Android Studio: a system trace (.trace of Perfetto)', async () => {
		const trace = await s.trace(golden('perfetto'));
		assert.equal(trace.summary.format, 'perfetto');
		assert.deepEqual(await flame(trace), ['a.B.c 0.0015']);
	});

	await t.test('Android Studio: heap dumps and allocations are refused with the reason', async () => {
		const heap = Buffer.concat([Buffer.from('JAVA PROFILE 1.0.3\0', 'latin1'), Buffer.alloc(200)]);
		const native = Buffer.from(message(1, [...message(37, message(5, [8, 1])), 80, 1]));
		for (const [name, body, why] of [['.hprof', heap, /heap dump .*Android Studio/], ['.heapprofd', native, /heap profile .* Perfetto UI/], ['.alloc', Buffer.from([10, 3, 8, 1, 16, 2, 2, 2, 2]), /a trace in a known format/]]) {
			const { status, json: answer, text } = await s.post('/api/v1/traces', body);
			assert.ok([415, 422].includes(status), `${name}: ${text}`);
			assert.match(answer.error.message, why, name);
		}
	});

	await t.test('BlockCanary: a log has the stacks of the main thread', async () => {
		const trace = await s.trace(golden('blockcanary'));
		assert.equal(trace.summary.format, 'blockcanary');
		assert.deepEqual(await flame(trace), ['android.app.ActivityThread.main;com.example.shop.Cart.update 52', 'android.app.ActivityThread.main;com.example.shop.Cart.update;com.example.shop.Cart.total 52']);
		const { notes } = await json(`/api/v1/traces/${trace.id}/notes`);
		assert.deepEqual(notes.map((n) => [n.kind, n.dur_ns]), [['message', 520e6]], 'the message that blocked');
	});

	await t.test('BlockCanaryX: a report (.blockInfo) has the stacks of the main thread', async () => {
		const at = (name) => ({ declaringClass: name.slice(0, name.lastIndexOf('.')), methodName: name.slice(name.lastIndexOf('.') + 1), fileName: 'A.java', lineNumber: 3 });
		const sample = (time, ...frames) => ({ time, stackTraceElements: frames.map(at) });
		const main = 'android.app.ActivityThread.main', load = 'com.example.shop.Cart.load', read = 'com.example.shop.Store.read';
		const report = { startTime: 1000, endTime: 1400, sampleInterval: 100, message: '>>>>> Dispatching to Handler', stackTraceSamples: [sample(1100, load, main), sample(1200, read, load, main), sample(1300, read, load, main), sample(1400, main)] };
		const trace = await s.trace(JSON.stringify(report));
		assert.equal(trace.summary.format, 'java_samples');
		assert.deepEqual(await flame(trace), [`${main} 100`, `${main};${load} 100`, `${main};${load};${read} 200`]);
	});
});
