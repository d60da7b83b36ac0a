/*
 * formats_atrace.test.mjs - text traces over the wire: btrace's side files join the method trace of the
 * same form, kernel text and RheaTrace 1.0 are separate traces; damage in a side file affects only itself.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import zlib from 'node:zlib';

import { btrace, form } from '../make.mjs';
import { newFolder, root, startServer } from '../server.mjs';

const golden = (format, name) => fs.readFileSync(path.join(root, 'tests/golden', format, name, 'input'));
const PID = 40000; /* over 15 bits: the method trace knows 7232 only */
const WORKER = 40077;

/* Methods 1 (0 to 1 ms) and 2 (100 to 900 us) on the main thread, 3 on a worker. */
const methods = btrace([[PID, 2, 100_000, 800_000], [PID, 1, 0, 1_000_000], [WORKER, 3, 0, 500_000]], { pid: PID });

/* The base of make.mjs' recordings is 1000 s of CLOCK_MONOTONIC. */
const at = (ns, tid, text) => `1000.${String(ns).padStart(9, '0')} ${tid}: ${text}\n`;
const sections =
	`512|TRACE_START|1005000000000|${PID}|2147483647|2|1\n` +
	at(50_000, PID, `E|${PID}`) +
	at(200_000, PID, `B|${PID}|<rhea-draft>binder transact[android.os.IThing:3]`) +
	at(300_000, PID, `E|${PID}`) +
	at(400_000, PID, `B|${PID}|monitor contention with owner worker (${WORKER}) at void a.B.c()(B.java:5) waiters=0 blocking from void d.E.f()(E.java:6)`) +
	at(450_000, PID, `E|${PID}`) +
	at(100_000, WORKER, `B|${PID}|open:/data/x`) +
	at(200_000, WORKER, 'E') +
	`600|TRACE_END|1006000000000|${PID}|2147483647|2|1\n`;
const binder = '#android.os.IThing\nTRANSACTION_other:2\nTRANSACTION_doIt:3\n';

const notes = async (s, id) => (await s.get(`/api/v1/traces/${id}/notes`)).json.notes;
const threads = async (s, id) => (await s.get(`/api/v1/traces/${id}/threads`)).json.threads;

test('text traces', async (t) => {
	const s = await startServer(t);

	await t.test('side files join the methods of their threads', async () => {
		const { body, headers } = form(['atrace', zlib.gzipSync(sections)], ['trace', methods], ['binder', binder], ['threads', `${PID},main\n${WORKER},worker\n`]);
		const trace = await s.trace(body, { headers });
		assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
		assert.equal(trace.summary.format, 'btrace2');
		assert.deepEqual((await threads(s, trace.id)).map((x) => [x.tid, x.name, x.slices]), [[PID, 'main', 4], [WORKER, 'worker', 2]]);
		assert.deepEqual(await s.flameLines(trace.id, PID), [
			'  unknown:1 1000000',
			'    unknown:2 800000',
			'      binder transact[android.os.IThing:TRANSACTION_doIt|3] 100000',
			`      monitor contention with owner worker (${WORKER}) at void a.B.c()(B.java:5) waiters=0 blocking from void d.E.f()(E.java:6) 50000`,
		]);
		assert.deepEqual(await s.flameLines(trace.id, WORKER), ['  unknown:3 500000', '    open:/data/x 100000']);
		const found = Object.fromEntries((await notes(s, trace.id)).map((n) => [n.kind, n]));
		assert.equal(found.binder.detail.code, 3);
		assert.equal(found.binder.text, 'android.os.IThing:TRANSACTION_doIt');
		assert.equal(found.contention.value, WORKER);
		assert.equal(found.contention.ts_ns, 400_000);
		assert.equal(found.contention.dur_ns, 50_000);
		assert.equal(found.contention.detail.method, 'void d.E.f()');
		assert.equal(found.io.text, '/data/x');
		const repairs = Object.fromEntries(trace.report.repairs.map((r) => [r.name, r.count]));
		assert.equal(repairs.exit_without_enter, 1);
		assert.equal(repairs.order_restored, undefined);
		assert.equal(repairs.overlap_clipped, undefined);
		assert.equal(repairs.side_file_unreadable, undefined);
	});

	await t.test('the order of the parts does not matter', async () => {
		const parts = [['trace', methods], ['atrace', sections], ['binder', binder]];
		const answers = [];
		for (const order of [[0, 1, 2], [2, 1, 0], [1, 0, 2]]) {
			const { body, headers } = form(...order.map((i) => parts[i]));
			const trace = await s.trace(body, { headers });
			assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
			answers.push(await s.flameLines(trace.id, PID));
		}
		assert.deepEqual(answers[1], answers[0]);
		assert.deepEqual(answers[2], answers[0]);
	});

	await t.test('an archive of the same files is the same trace', async (t) => {
		const dir = newFolder(t, 'tw-atrace-');
		const files = { 'rhea-atrace.gz': zlib.gzipSync(sections), 'rhea-atrace.bin': methods, 'binder.txt': binder };
		for (const [name, bytes] of Object.entries(files)) fs.writeFileSync(path.join(dir, name), bytes);
		const form3 = form(['trace', methods], ['atrace', sections], ['binder', binder]);
		const one = await s.trace(form3.body, { headers: form3.headers });
		const two = await s.trace(execFileSync('tar', ['-cz', '-C', dir, ...Object.keys(files)]));
		assert.equal(two.state, 'ready', JSON.stringify(two.error));
		assert.equal(two.summary.format, 'btrace2');
		assert.deepEqual(await s.flameLines(two.id, PID), await s.flameLines(one.id, PID));
		assert.deepEqual(await notes(s, two.id), await notes(s, one.id));
	});

	await t.test('damage in a side file costs the side file', async () => {
		const packed = zlib.gzipSync(sections);
		for (const atrace of [packed.subarray(0, 12), Buffer.concat([packed.subarray(0, 40), Buffer.alloc(60, 0xa5)]), '']) {
			const { body, headers } = form(['trace', methods], ['atrace', atrace], ['binder', '']);
			const trace = await s.trace(body, { headers });
			assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
			assert.ok(trace.summary.slices >= 3);
		}
	});

	await t.test('sections of another time are left out', async () => {
		const { body, headers } = form(['trace', methods], ['atrace', sections.replaceAll('\n1000.', '\n999000.')]);
		const trace = await s.trace(body, { headers });
		assert.equal(trace.summary.slices, 3);
		assert.ok(trace.report.repairs.some((r) => r.name === 'side_clock_unknown' && r.kind === 'loss'));
	});

	await t.test('files for other endpoints are refused', async () => {
		for (const [name, content] of [['atrace', methods], ['atrace', 'words\n'.repeat(3000)], ['binder', 'words\n'.repeat(3000)], ['trace', binder], ['other', 'x']]) {
			const { body, headers } = form(['trace', methods], [name, content]);
			const answer = await s.post('/api/v1/traces', body, { headers });
			assert.ok([400, 415].includes(answer.status), `${name}: ${answer.text}`);
		}
	});

	await t.test('kernel text, packed kernel text and RheaTrace 1.0 as traces of their own', async () => {
		for (const [format, name] of [['atrace', 'realistic'], ['atrace', 'truncated'], ['systrace', 'realistic'], ['rhea1', 'realistic'], ['rhea_atrace', 'realistic']]) {
			const trace = await s.trace(golden(format, name), {});
			assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
			assert.equal(trace.summary.format, format);
			assert.ok(trace.summary.slices > 10);
		}
		const trace = await s.trace(golden('atrace', 'realistic'), {});
		const states = (await notes(s, trace.id)).filter((n) => n.kind === 'state' && n.text === 'blocked');
		assert.deepEqual(states[0].detail, { iowait: 1, caller: 'filemap_fault+0x1c/0x40' });
		assert.equal((await threads(s, trace.id))[0].name, '.acme.shop');
	});
});
