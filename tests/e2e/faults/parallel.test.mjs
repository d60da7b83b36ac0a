/*
 * Many requests at once, of all kinds, on the same traces: every answer is whole or a plain refusal.
 * `tests/run --only threads` runs it over a server built with the thread sanitizer.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { sampleMapping, sampleTrace } from '../make.mjs';
import { binary, newFolder, startServer, until } from '../server.mjs';

/* Queries of a busy machine take as long as they need. */
const patient = { args: ['--query-deadline', '600000'] };
const sim = path.join(path.dirname(binary()), '..', 'tests', 'tracewell-sim');
const plain = { 'Accept-Encoding': 'identity' };
const ROUNDS = 8;

async function allOf(n, make) {
	return Promise.all(Array.from({ length: n }, (_, i) => make(i)));
}

/* Valid statuses of a trace while it is queued, present, or deleted by another client. */
function fits(answer, what) {
	assert.ok([200, 404, 409].includes(answer.status), `${what}: ${answer.status} ${answer.text.slice(0, 300)}`);
}

test('concurrent uploads, flame graphs, downloads, mappings and deletions', async (t) => {
	const s = await startServer(t, patient);
	assert.ok(s.read && s.ingest);
	await allOf(6, async (client) => {
		for (let round = 0; round < ROUNDS; round++) {
			const sent = await s.post('/api/v1/traces?build_id=b&app=a', sampleTrace(200, 5000 + 100 * client + round),
				{ headers: { 'Idempotency-Key': `${client % 3}-${round}` } });
			assert.ok([200, 202, 409].includes(sent.status), sent.text);
			const list = (await s.get('/api/v1/traces?limit=5&q=a')).json;
			const id = sent.json.id ?? list.traces[0]?.id;
			if (!id) continue;
			const of = `/api/v1/traces/${id}`;
			await Promise.all([
				s.get(`${of}/flame?thread=all`).then((a) => fits(a, 'flame')),
				s.get(`${of}/flame?thread=all&view=bottom_up&from=1&to=900000`).then((a) => fits(a, 'bottom up')),
				s.get(`${of}/methods?q=class`).then((a) => fits(a, 'methods')),
				s.get(`${of}/threads`).then((a) => fits(a, 'threads')),
				s.get(`${of}/perfetto`).then((a) => fits(a, 'perfetto')),
				s.get(`${of}/search?q=method`).then((a) => fits(a, 'search')),
				s.get('/api/v1/facets?column=app').then((a) => assert.equal(a.status, 200)),
				s.get('/metrics', { key: null }).then((a) => assert.equal(a.status, 200)),
				round % 3 === client % 3 && s.put('/api/v1/builds/b/methods', `# ${client}.${round}\n${sampleMapping}`)
					.then((a) => assert.ok([200, 202].includes(a.status) || (a.status === 409 && /a later upload replaced/.test(a.text)), a.text)),
			]);
			if (round % 2) {
				const gone = await s.ask('DELETE', of);
				assert.ok([204, 404].includes(gone.status), gone.text);
			}
		}
	});
	await until(async () => {
		const { traces } = (await s.get('/api/v1/traces?limit=500')).json;
		assert.ok(traces.every((x) => x.state !== 'failed'), JSON.stringify(traces.find((x) => x.state === 'failed')));
		return traces.every((x) => x.state === 'ready') ? true : undefined;
	}, 'all decoded', 120);
	assert.deepEqual(await s.stop(), { code: 0, signal: null });
});

/* A trace whose Perfetto file is far larger than what sockets hold. */
async function largeTrace(s, t) {
	const dir = newFolder(t, 'tracewell-parallel-');
	execFileSync(sim, ['--out', dir, '--seed', '5', '--records', '400000', '--threads', '3']);
	return s.trace(fs.readFileSync(path.join(dir, 'rhea-atrace.bin')));
}

/* The rest of a body: its length, or null when the connection broke. */
async function rest(reader, length) {
	try {
		for (;;) {
			const { done, value } = await reader.read();
			if (done) return length;
			length += value.length;
		}
	} catch {
		return null;
	}
}

test('a trace is deleted while its downloads run', async (t) => {
	const s = await startServer(t, patient);
	const trace = await largeTrace(s, t);
	const of = `/api/v1/traces/${trace.id}`;
	const whole = (await s.get(`${of}/perfetto`, { headers: plain })).bytes.length;
	assert.ok(whole > 8 << 20, `${whole} bytes`);
	/* an empty file remains open for the next decode */
	const held = () => fs.readdirSync(`/proc/${s.child.pid}/fd`).filter((fd) => {
		try {
			const file = `/proc/${s.child.pid}/fd/${fd}`;
			return fs.readlinkSync(file).includes(trace.id) && fs.statSync(file).blocks > 0;
		} catch {
			return false;
		}
	});
	const running = await allOf(4, async () => {
		const answer = await fetch(`${s.url}${of}/perfetto`, { headers: { ...plain, Authorization: `Bearer ${s.read}` } });
		const reader = answer.body.getReader();
		return { reader, length: (await reader.read()).value.length };
	});
	const others = allOf(6, (i) => s.get(i % 2 ? `${of}/flame?thread=all&from=1` : `${of}/methods?from=1`).then((a) => fits(a, 'a query')));
	await until(() => (held().length > 0 ? true : undefined), 'they are under way');
	assert.equal((await s.ask('DELETE', of)).status, 204);
	const lengths = await Promise.all(running.map((r) => rest(r.reader, r.length)));
	for (const length of lengths) assert.ok(length === null || length === whole, `${length} of ${whole} bytes, as if that were all`);
	t.diagnostic(`${lengths.filter((l) => l === whole).length} of ${lengths.length} downloads came whole`);
	await others;
	for (const path_ of ['', '/perfetto', '/flame']) assert.equal((await s.get(of + path_)).status, 404);
	await until(() => (held().length === 0 ? true : undefined), 'the file closed, so that its space is free', 10);
	const again = await s.trace(sampleTrace());
	assert.equal(again.state, 'ready');
	assert.deepEqual(await s.stop(), { code: 0, signal: null });
});
