/*
 * ART traces in every layout, recorded by a simulated phone: the server shows the phone's calls.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { newFolder, root, startServer, tracewell } from '../server.mjs';

const phone = path.join(root, 'tests', 'gen', 'art.py');

function record(dir, layout, ...args) {
	const truth = path.join(dir, `${layout}.json`);
	const trace = path.join(dir, `${layout}.trace`);
	fs.writeFileSync(trace, execFileSync('python3', [phone, layout, '--json', truth, ...args.map(String)]));
	return { trace, truth: JSON.parse(fs.readFileSync(truth, 'utf8')) };
}

async function json(s, target) {
	const answer = await s.get(target);
	assert.equal(answer.status, 200, answer.text);
	return answer.json;
}

function checkFlame(node) {
	let sum = node.self;
	for (const c of node.children) sum += checkFlame(c);
	assert.equal(sum, node.value, `value of ${node.name}`);
	return node.value;
}

const counts = (truth) => Object.fromEntries(Object.entries(truth.methods).map(([name, m]) => [name, m.count]));

async function checkThreads(s, id, truth, source) {
	const { threads } = await json(s, `/api/v1/traces/${id}/threads`);
	assert.deepEqual(Object.fromEntries(threads.map((t) => [t.name, t.slices])), truth.slices);
	for (const t of threads) assert.equal(t.source, source);
	return threads;
}

test('ART traces', async (t) => {
	const s = await startServer(t);
	const dir = newFolder(t, 'tracewell-art-');
	const push = (trace) => tracewell('push', '--server', s.url, '--key', s.ingest, '--wait', trace);

	for (const layout of ['v1-wall', 'v1-dual', 'stream-wall', 'stream-dual', 'v2b-wall', 'v2b-dual', 'v2b-late',
		'v2c-wall', 'v2c-dual'])
		await t.test(layout, async () => {
			const { trace, truth } = record(dir, layout, '--seed', 5, '--calls', 400, '--threads', 4);
			const id = push(trace);
			const { summary, report } = await json(s, `/api/v1/traces/${id}`);
			assert.equal(summary.format, 'art');
			assert.deepEqual(report.repairs.map((r) => r.name), ['enter_without_exit']);
			const threads = await checkThreads(s, id, truth, 'calls');
			assert.ok(threads[0].is_main && threads[0].name === 'main' && threads[0].tid === threads[0].pid);
			const { methods } = await json(s, `/api/v1/traces/${id}/methods?limit=10000`);
			const dual = /dual|late/.test(layout);
			assert.deepEqual(Object.fromEntries(methods.map((m) => [m.name, { count: m.count, sum_ns: m.sum_ns,
				cpu_ns: dual ? m.cpu_ns : truth.methods[m.name].cpu_ns }])), truth.methods);
			for (const m of methods) assert.ok(m.id === null && (dual || m.cpu_ns === null), m.name);
			const flame = await json(s, `/api/v1/traces/${id}/flame?thread=all`);
			assert.equal(checkFlame(flame), threads.reduce((n, x) => n + x.busy_ns, 0));
			const { notes } = await json(s, `/api/v1/traces/${id}/notes?kind=unroll`);
			/* unknown: an exit of form C does not contain its method, a late name is later than the mark */
			const known = !/late|v2c/.test(layout);
			assert.ok(notes.length > 0 && notes.every((n) => known ? n.text in truth.methods : n.text === ''));
		});

	await t.test('CPU time of threads and ranges', async () => {
		const { trace } = record(dir, 'v1-dual', '--seed', 6, '--calls', 300);
		const id = push(trace);
		const one = await json(s, `/api/v1/traces/${id}/methods?thread=2&sort=cpu_ns`);
		assert.ok(one.methods.length > 5);
		for (const [i, m] of one.methods.entries()) {
			assert.ok(m.cpu_ns === null || (m.cpu_ns <= m.total_ns && m.cpu_ns >= 0), m.name);
			if (i) assert.ok((m.cpu_ns ?? -1) <= (one.methods[i - 1].cpu_ns ?? -1));
		}
		const all = await json(s, `/api/v1/traces/${id}`);
		const part = await json(s, `/api/v1/traces/${id}/methods?from=${all.start_ns}&to=${all.start_ns + 100000}`);
		for (const m of part.methods) assert.ok(m.cpu_ns === null || m.cpu_ns <= m.total_ns, m.name);
	});

	await t.test('thread CPU clock only', async () => {
		const { trace, truth } = record(dir, 'v1-cpu', '--seed', 5, '--calls', 50);
		const id = push(trace);
		await checkThreads(s, id, truth, 'calls');
		const { report } = await json(s, `/api/v1/traces/${id}`);
		assert.ok(report.repairs.some((r) => r.name === 'cpu_clock_only' && r.kind === 'note'));
	});

	await t.test('always-on dumps', async () => {
		const timed = record(dir, 'long-running', '--seed', 8);
		await checkThreads(s, push(timed.trace), timed.truth, 'calls');
		const counted = record(dir, 'counts', '--seed', 8);
		const id = push(counted.trace);
		await checkThreads(s, id, counted.truth, 'counts');
		const { methods } = await json(s, `/api/v1/traces/${id}/methods?limit=10000`);
		assert.deepEqual(Object.fromEntries(methods.map((m) => [m.name, m.count])), counts(counted.truth));
		for (const m of methods) assert.ok(m.self_ns === m.count && m.sum_ns >= m.count, m.name);
	});

	await t.test('a header and nothing else is a trace', async () => {
		const trace = path.join(dir, 'header.trace');
		fs.writeFileSync(trace, '*version\n3\nclock=dual\n*threads\n1\tmain\n*methods\n*end\n');
		const { state, summary } = await json(s, `/api/v1/traces/${push(trace)}`);
		assert.equal(state, 'ready');
		assert.equal(summary.slices, 0);
	});

	await t.test('unreadable uploads are refused with a message', async () => {
		const r = await s.post('/api/v1/traces', Buffer.from('SLOW\xf1\0' + '\0'.repeat(26), 'latin1'));
		assert.equal(r.status, 415);
		assert.match(r.json.error.message, /version 0xf1; this server reads/);
	});
});
