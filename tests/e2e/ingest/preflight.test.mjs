/*
 * preflight.test.mjs - the first bytes of uploads are checked by processes of their own: an unknown format is refused
 * with its offset; an upload that ends the process is accepted, and the next one is checked again. A process checks
 * uploads of one project, and no other project waits for it.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { describe, test } from 'node:test';
import zlib from 'node:zlib';

import { sampleTrace } from '../make.mjs';
import { childrenOf, endsUnlike, startServer, until } from '../server.mjs';

const processes = (s) => childrenOf(s).filter((child) => !child.template).map((child) => child.pid);
/* What its descriptors are of; [] when it has ended. */
const own = (pid) => {
	try {
		return fs.readdirSync(`/proc/${pid}/fd`).map((fd) => fs.readlinkSync(`/proc/${pid}/fd/${fd}`));
	} catch {
		return [];
	}
};
const deaths = async (s, why) => Number(new RegExp(`tracewell_decoder_crashes_total\\{reason="${why}"\\} (\\d+)`).exec((await s.get('/metrics', { key: null })).text)[1]);

describe('preflight processes', { concurrency: 2 }, () => {
	test('an unknown format is refused with its offset, by a process that continues', async (t) => {
		const s = await startServer(t);
		for (let i = 0; i < 5; i++) {
			const r = await s.post('/api/v1/traces', Buffer.alloc(1000, i + 1));
			assert.equal(r.status, 415, r.text);
			assert.equal(typeof r.json.error.offset, 'number');
		}
		assert.equal(processes(s).length, 1, 'one process for uploads that came one after the other');
		assert.equal((await s.trace(sampleTrace(30))).state, 'ready');
		assert.deepEqual([await deaths(s, 'crash'), await s.total()], [0, 1]);
	});

	for (const [how, reason, slow] of [['crash', 'crash'], ['run', 'forbidden'], ['eat', null], ['sleep', 'loop', true]])
		test(`one that ends by ${how} costs no upload`, { skip: endsUnlike(how) }, async (t) => {
			const s = await startServer(t, { env: { TRACEWELL_PREFLIGHT_FAULT: how } });
			const sent = slow ? 1 : 3;
			for (let i = 0; i < sent; i++) assert.equal((await s.trace(sampleTrace(31 + i))).state, 'ready');
			if (reason) assert.equal(await deaths(s, reason), sent);
			assert.match(s.log, reason ? new RegExp(`event=preflight_process_ended reason=${reason}`) : /event=preflight_(process_ended|response_invalid)/); // eating takes long on a busy machine
			const bad = await s.trace(Buffer.alloc(500, 7));
			assert.equal(bad.state, 'failed', 'what no preflight checked is refused by the decoder');
		});

	test('a killed process is replaced', async (t) => {
		const s = await startServer(t);
		await s.trace(sampleTrace(35));
		const [first] = processes(s);
		process.kill(first, 'SIGKILL');
		assert.equal((await s.trace(sampleTrace(36))).state, 'ready');
		assert.equal((await s.post('/api/v1/traces', Buffer.alloc(100, 9))).status, 415);
		assert.notEqual(processes(s)[0], first);
	});

	test('a process checks 500 uploads, and its successor has started before the next one', async (t) => {
		const s = await startServer(t);
		assert.equal((await s.post('/api/v1/traces', Buffer.alloc(100, 9))).status, 415);
		const [first, ...more] = processes(s);
		assert.deepEqual(more, []);
		const check = async (i) => assert.equal((await s.post('/api/v1/traces', Buffer.alloc(100, i + 9))).status, 415);
		for (let i = 1; i < 499; i++) await check(i);
		assert.deepEqual(processes(s), [first]);
		await check(499);
		await until(() => (processes(s).length === 1 && processes(s)[0] !== first ? true : undefined), 'another process');
	});

	test('a process reads uploads of one project and remains for its next', async (t) => {
		const s = await startServer(t);
		const bad = (key) => s.post('/api/v1/traces', Buffer.alloc(100, 9), { key });
		const [one, two] = ['one', 'two'].map((name) => s.key('ingest', name));
		assert.equal((await bad(one)).status, 415);
		const first = processes(s);
		assert.equal((await bad(two)).status, 415);
		const both = processes(s);
		assert.deepEqual([first.length, both.length], [1, 2], 'another project, another process');
		for (const key of [one, two, one]) assert.equal((await bad(key)).status, 415);
		assert.deepEqual(processes(s).sort(), both.sort(), 'each project keeps its process');
	});

	test('more projects than processes: the oldest is ended, none checks a second project', async (t) => {
		const s = await startServer(t, { env: { TRACEWELL_PREFLIGHT_FAULT: 'tire' } }); /* ends at its second request */
		for (let i = 0; i < 19; i++) {
			const r = await s.post('/api/v1/traces', Buffer.alloc(100, 9), { key: s.key('ingest', `project-${i}`) });
			assert.equal(r.status, 415, r.text);
		}
		assert.deepEqual([await deaths(s, 'loop'), processes(s).length], [0, 16]);
	});

	test('an upload that ends a used process is checked again by a new one', async (t) => {
		const s = await startServer(t, { env: { TRACEWELL_PREFLIGHT_FAULT: 'tire' } });
		for (let i = 0; i < 4; i++) assert.equal((await s.post('/api/v1/traces', Buffer.alloc(100, i + 1))).status, 415);
		assert.equal(await deaths(s, 'loop'), 3, 'each after the first met a used process');
	});

	test('hanging processes delay only their own uploads, and only briefly', async (t) => {
		const s = await startServer(t, { env: { TRACEWELL_PREFLIGHT_FAULT: 'sleep' } });
		const other = s.key('ingest', 'other');
		const large = Buffer.concat([sampleTrace(20), Buffer.alloc(300 << 10)]); /* its head is full while it arrives */
		assert.equal((await s.get('/api/v1/traces')).status, 200);
		let ended = 0;
		const hanging = [...Array(8)].map((_, i) => s.post('/api/v1/traces', i < 6 ? large : Buffer.alloc(100, i)).finally(() => ended++));
		await until(() => (processes(s).length > 0 ? true : undefined), 'a process that hangs');
		for (const target of ['/healthz', '/api/v1/traces']) assert.equal((await s.get(target)).status, 200);
		assert.ok(ended < 8, 'answered while they hang');
		assert.equal((await s.post('/api/v1/traces', sampleTrace(21), { key: other })).status, 202);
		for (const r of await Promise.all(hanging)) assert.equal(r.status, 202, r.text);
		await until(() => (/event=preflight_skips_project project=/.test(s.log) ? true : undefined), 'the project is skipped');
		const died = await deaths(s, 'loop');
		assert.equal((await s.post('/api/v1/traces', large)).status, 202);
		assert.equal(await deaths(s, 'loop'), died, 'uploads of a project that made processes hang are not checked for a while');
	});

	test('an upload that is too large is checked once', async (t) => {
		const s = await startServer(t, { env: { TRACEWELL_PREFLIGHT_FAULT: 'tire' } });
		const packed = [1, 2, 3, 4, 5].reduce((bytes) => zlib.gzipSync(bytes), sampleTrace(20));
		const r = await s.post('/api/v1/traces', packed);
		assert.equal(r.status, 413, r.text);
		assert.match(r.json.error.message, /times over/);
		assert.equal(await deaths(s, 'loop'), 0);
	});
});

test('a child has its own descriptors, and none that the launcher of the server left open', async (t) => {
	/* 7, 9 and 233 of a shell, without close-on-exec */
	const under = ['bash', '-c', 'exec 7</etc/passwd 9>&1 233</dev/zero; exec "$0" "$@"'];
	for (const [kind, env, children] of [['preflight', {}, processes], ['decoder', { TRACEWELL_WORKER_FAULT: 'sleep' }, (s) => childrenOf(s).map((child) => child.pid).filter((pid) => !own(pid).some((at) => at.startsWith('socket:')))]]) {
		const s = await startServer(t, { under, env });
		for (const fd of [7, 233]) assert.ok(fs.existsSync(`/proc/${s.child.pid}/fd/${fd}`), 'the server has it');
		assert.equal((await s.post('/api/v1/traces', sampleTrace(20))).status, 202);
		/* a child is the server's copy until it runs the program, and may end soon */
		const [pid, links] = await until(() => children(s).map((child) => [child, own(child)]).find(([, of]) => of.some((at) => at.includes('memfd:complaints'))), `a ${kind} and its descriptors`);
		for (const at of links) assert.doesNotMatch(at, /passwd|\/dev\/zero/, `${kind}: ${links}`);
		assert.ok(links.length <= 24, `${kind}: ${links}`);
		if (kind === 'decoder') process.kill(pid, 'SIGKILL');
	}
});
