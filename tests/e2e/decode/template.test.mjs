/*
 * template.test.mjs - decoders are copies of one process that has read nothing: each decodes one trace in its own sandbox
 * and ends, and the process is replaced when a copy died, or it did.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { describe, test } from 'node:test';

import { sampleTrace } from '../make.mjs';
import { childrenOf, endsUnlike, sanitized, startServer, until } from '../server.mjs';

const copied = { skip: sanitized() && 'decoders of a build with a sanitizer are started, not copied' };
const links = (pid) => {
	try {
		return fs.readdirSync(`/proc/${pid}/fd`).sort((a, b) => a - b).map((fd) => fs.readlinkSync(`/proc/${pid}/fd/${fd}`));
	} catch {
		return []; // it has ended
	}
};
const isTemplate = (pid) => links(pid).length === 4 && links(pid)[3].startsWith('socket:');
const templates = (s) => childrenOf(s).filter((c) => c.template && isTemplate(c.pid)).map((c) => c.pid);
const started = (s) => [...s.log.matchAll(/event=decoding trace=\S+ attempt=\d+ pid=(\d+)/g)].map((m) => Number(m[1]));
const gone = (pid) => {
	try {
		return /^State:\tZ/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8')) || undefined;
	} catch {
		return true;
	}
};
const zombies = (s) => fs.readdirSync(`/proc/${s.child.pid}/task`)
	.flatMap((task) => fs.readFileSync(`/proc/${s.child.pid}/task/${task}/children`, 'utf8').trim().split(' ').filter(Boolean))
	.filter(gone).length;

describe('templates', { concurrency: 2 }, () => {
	test('traces of two projects are decoded by processes of their own, copied from one', copied, async (t) => {
		const s = await startServer(t);
		assert.deepEqual(templates(s), [], 'none before the first trace');
		assert.equal((await s.trace(sampleTrace(30))).state, 'ready');
		const [first, ...more] = templates(s);
		assert.ok(first && !more.length, 'one');
		const other = { project: 'other', key: s.key('ingest', 'other'), read: s.key('read', 'other') };
		const { id } = (await s.post('/api/v1/traces', sampleTrace(31), { key: other.key })).json;
		await until(async () => ((await s.get(`/api/v1/traces/${id}`, { key: other.read })).json.state === 'ready' ? true : undefined), 'the other project\'s trace');
		assert.deepEqual(templates(s), [first]);
		const pids = started(s);
		assert.equal(pids.length, 2);
		assert.equal(new Set([...pids, first]).size, 3, 'each trace had a process of its own');
		for (const pid of pids) assert.ok(gone(pid), 'which has ended');
	});

	test('a copy has its task, its own sandbox and nothing of the template', copied, async (t) => {
		const s = await startServer(t, { args: ['--shutdown', '0'], env: { TRACEWELL_WORKER_FAULT: 'sleep' } });
		await s.post('/api/v1/traces', sampleTrace(32));
		const pid = await until(() => started(s)[0], 'a decoder');
		const status = await until(() => (/^Seccomp:\t2/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8')) ? fs.readFileSync(`/proc/${pid}/status`, 'utf8') : undefined), 'its sandbox');
		assert.match(status, new RegExp(`^PPid:\t${s.child.pid}$`, 'm'));
		assert.match(status, /^NoNewPrivs:\t1/m);
		const own = links(pid);
		assert.equal(own.length, 7, own.join(' '));
		assert.ok(!own.some((at) => at.startsWith('socket:')), own.join(' '));
		const [template] = templates(s);
		assert.match(fs.readFileSync(`/proc/${template}/status`, 'utf8'), /^Seccomp:\t0/m);
		assert.match(fs.readFileSync(`/proc/${pid}/limits`, 'utf8'), /^Max core file size +0 +0/m);
		s.child.kill('SIGKILL');
		await until(() => gone(pid), 'the end of the decoder with its server');
		await until(() => gone(template), 'the end of the template with its server');
	});

	test('a death replaces the template: the next decoder has another address layout', { skip: copied.skip || endsUnlike('crash') }, async (t) => {
		const s = await startServer(t, { args: ['--worker-attempts', '1'], env: { TRACEWELL_WORKER_FAULT: 'crash' } });
		assert.equal((await s.trace(sampleTrace(33))).state, 'failed');
		assert.deepEqual(templates(s), []);
		assert.equal((await s.trace(sampleTrace(34))).state, 'failed');
		assert.equal(started(s).length, 2);
	});

	test('a template that was killed is replaced, and costs no trace a try', copied, async (t) => {
		const s = await startServer(t);
		assert.equal((await s.trace(sampleTrace(35))).state, 'ready');
		const [first] = templates(s);
		process.kill(first, 'SIGKILL');
		const trace = await s.trace(sampleTrace(36));
		assert.deepEqual([trace.state, trace.attempts], ['ready', 1]);
		const [second] = templates(s);
		assert.ok(second && second !== first);
	});

	test('a template that stopped is replaced, and costs no trace a try', copied, async (t) => {
		const s = await startServer(t);
		assert.equal((await s.trace(sampleTrace(37))).state, 'ready');
		const [first] = templates(s);
		process.kill(first, 'SIGSTOP');
		const trace = await s.trace(sampleTrace(38));
		assert.deepEqual([trace.state, trace.attempts], ['ready', 1]);
		assert.ok(gone(first));
		assert.equal(started(s).length, 2);
	});

	test('a template that dies before it has named the copy: the copy decodes, and no other', copied, async (t) => {
		const s = await startServer(t, { env: { TRACEWELL_CRASH_AT: 'decoder_copied' } });
		for (const seed of [39, 40]) {
			const trace = await s.trace(sampleTrace(seed));
			assert.deepEqual([trace.state, trace.attempts], ['ready', 1]);
		}
		assert.equal(started(s).length, 2);
		assert.doesNotMatch(s.log, /outcome=postponed/);
		await until(() => (templates(s).length ? undefined : true), 'the end of both templates');
		assert.ok(zombies(s) <= 1, 'the second template, until the next trace');
	});
});
