/*
 * ANR reports through the real server: the document, threads as samples, notes, refusals.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import zlib from 'node:zlib';
import { root, startServer } from '../server.mjs';

const golden = (name) => fs.readFileSync(path.join(root, 'tests/golden/anr', name, 'input'));

test('a dump becomes a trace with its document, samples and notes', async (t) => {
	const s = await startServer(t);
	const trace = await s.trace(zlib.gzipSync(golden('realistic')), { query: { scenario: 'anr' } });
	assert.equal(trace.state, 'ready');
	assert.equal(trace.summary.format, 'anr');
	assert.equal(trace.summary.threads, 10);
	assert.deepEqual(trace.report.repairs.map((r) => r.name), ['sample_failed'], 'the native stack that the phone could not write');

	const { documents } = (await s.get(`/api/v1/traces/${trace.id}/documents?kind=anr`)).json;
	assert.equal(documents.length, 1);
	const doc = documents[0].content;
	assert.equal(doc.verdict, 'main waits 5 s for a lock of Cart held by DB-writer, which runs SQLiteConnection.execute for OrderDao.insert' +
		'; also a deadlock: say "hi" waits for a lock of Right held by crossing, which waits for a lock of Left held by say "hi"');
	assert.equal(doc.kind, 'input');
	assert.match(doc.cluster, /^[0-9a-f]{16}$/);
	const [shop, flinger] = doc.processes;
	assert.deepEqual(shop.chain.map((step) => shop.threads[step.thread].name), ['main', 'DB-writer']);
	assert.equal(shop.chain[0].owner_frame.name, 'com.example.shop.OrderDao.insert');
	assert.deepEqual(shop.cycles.map((c) => c.threads.map((m) => shop.threads[m.thread].name)), [['say "hi"', 'crossing']]);
	assert.equal(shop.threads.find((x) => x.name === 'DB-writer').channel, 'jbd2_log_wait_commit');
	assert.equal(flinger.facts.command, '/system/bin/surfaceflinger');
	assert.equal((await s.get(`/api/v1/traces/${trace.id}/documents?kind=other`)).json.documents.length, 0);

	const { threads } = (await s.get(`/api/v1/traces/${trace.id}/threads`)).json;
	assert.equal(threads[0].name, 'main');
	assert.ok(threads[0].is_main);
	assert.equal(threads.find((x) => x.name === 'deep').slices, 8);
	const flame = (await s.get(`/api/v1/traces/${trace.id}/flame?thread=${threads[0].tid}&view=top_down&metric=wall`)).json;
	assert.equal(flame.children[0].name, 'com.android.internal.os.ZygoteInit.main');
	const { notes } = (await s.get(`/api/v1/traces/${trace.id}/notes`)).json;
	assert.deepEqual(notes.filter((n) => n.kind === 'contention').map((n) => n.text).sort(),
		['com.example.shop.Cart', 'com.example.shop.Left', 'com.example.shop.Right']);
	assert.match(notes.find((n) => n.kind === 'anr').text, /^Input dispatching timed out/);
	assert.equal(notes.find((n) => n.kind === 'anr').value, 5008);
});

test('a late R8 mapping names frames, locks, notes and the verdict, and restores the original cluster', async (t) => {
	const s = await startServer(t);
	const dump = (main, wants, writer, holds) => `"main" prio=5 tid=1 Blocked\n${main}  - waiting to lock <0x01> (a ${wants}) held by thread 2\n\n`
		+ `"w" prio=5 tid=2 Runnable\n${writer}  - locked <0x01> (a ${holds})\n`;
	const read = async (id) => (await s.get(`/api/v1/traces/${id}/documents?kind=anr`)).json.documents[0].content;
	const { id } = await s.trace(dump('  at a.b.c(SourceFile:1)\n', 'a.d', '  at a.d.e(SourceFile:3)\n', 'a.d'), { query: { build_id: 'b1' } });
	const before = await read(id);
	assert.equal(before.verdict, 'main waits for a lock of d held by w, which runs d.e');
	const put = await s.put('/api/v1/builds/b1/retrace', 'com.shop.Cart -> a.b:\n    void total() -> c\ncom.shop.Store -> a.d:\n'
		+ '    3:3:void com.shop.Disk.read():9 -> e\n    3:3:void load():20 -> e\n');
	assert.equal(put.status, 200, put.text);
	const doc = await read(id);
	assert.equal(doc.verdict, 'main waits for a lock of Store held by w, which runs Disk.read');
	assert.equal(doc.processes[0].verdict, doc.verdict);
	assert.equal(doc.processes[0].threads[0].wants.type, 'com.shop.Store');
	assert.deepEqual(doc.processes[0].threads.map((x) => x.frames.map((f) => [f.name, f.where, f.inlined ?? false])), [
		[['com.shop.Cart.total', 'Cart.java:1', false]],
		[['com.shop.Disk.read', 'Disk.java:9', true], ['com.shop.Store.load', 'Store.java:20', false]]]);
	const { notes } = (await s.get(`/api/v1/traces/${id}/notes?kind=contention`)).json;
	assert.deepEqual(notes.map((n) => n.text), ['com.shop.Store']);
	const own = (await s.get(`/api/v1/traces/${id}/notes?kind=anr`)).json.notes;
	assert.deepEqual(own.map((n) => n.text), [doc.verdict]);
	const tree = (await s.get(`/api/v1/traces/${id}/methods?thread=all`)).json.methods.map((m) => m.name).sort();
	assert.deepEqual(tree, ['com.shop.Cart.total', 'com.shop.Disk.read', 'com.shop.Store.load'], 'inlined frames are methods of their own');

	const debug = await s.trace(dump('  at com.shop.Cart.total(Cart.java:1)\n', 'com.shop.Store',
		'  at com.shop.Disk.read(Disk.java:9)\n  at com.shop.Store.load(Store.java:20)\n', 'com.shop.Store'));
	assert.equal(doc.cluster, (await read(debug.id)).cluster);
	assert.notEqual(before.cluster, doc.cluster);
});

test('methods in the notes of contended locks are named too', async (t) => {
	const s = await startServer(t);
	const at = (us, text) => `            main-40    (   40) [000] ...1     1.${String(us).padStart(6, '0')}: tracing_mark_write: ${text}\n`;
	const { id } = await s.trace('# tracer: nop\n#\n' + at(100, 'B|40|monitor contention with owner w (41) at void a.b.c(a.d)(SourceFile:7) waiters=0 blocking from '
		+ 'void a.d.e()(SourceFile:3)') + at(900, 'E|40'), { query: { build_id: 'b1' } });
	const detail = async () => (await s.get(`/api/v1/traces/${id}/notes?kind=contention`)).json.notes[0].detail;
	assert.equal((await detail()).owner_method, 'void a.b.c(a.d)');
	await s.put('/api/v1/builds/b1/retrace', 'com.shop.Cart -> a.b:\n    1:9:void total(com.shop.Store):21:29 -> c\ncom.shop.Store -> a.d:\n    void load() -> e\n');
	const { owner_method, owner_source, method, source } = await detail();
	assert.deepEqual([owner_method, owner_source, method, source], ['com.shop.Cart.total', 'Cart.java:27', 'com.shop.Store.load', 'Store.java:3']);
});

test('a truncated dump keeps its complete parts and is marked', async (t) => {
	const s = await startServer(t);
	const trace = await s.trace(golden('truncated'));
	assert.equal(trace.state, 'ready');
	assert.deepEqual(trace.report.repairs.map((r) => r.name), ['input_truncated', 'records_missing']);
});

test('a report without threads is refused with a message', async (t) => {
	const s = await startServer(t);
	const answer = await s.post('/api/v1/traces', golden('garbage'));
	assert.equal(answer.status, 422);
	assert.match(answer.json.error.message, /no readable thread, wait channel or reason/);
});

test('a dump of 40 MB is within the limits of a decode', async (t) => {
	/* it needs 250 MB of address space, a few MB more or less by where the kernel puts libraries */
	const s = await startServer(t, { args: ['--worker-memory', '320M'] });
	const blocks = [];
	for (let i = 1; i <= 12000; i++) {
		const frames = Array.from({ length: 70 }, (_, k) => `  at pkg${k}.Class${i % 977}.method${k}(File.java:${i + k})\n`).join('');
		blocks.push(`"thread ${i}" prio=5 tid=${i} Blocked\n${frames}  - waiting to lock <0x${i.toString(16)}> (a T${i}) held by thread ${i + 1}\n\n`);
	}
	const trace = await s.trace(Buffer.from('----- pid 1 at 2024-01-01 00:00:00 -----\n' + blocks.join('') + '----- end 1 -----\n'));
	assert.equal(trace.state, 'ready', trace.error?.message);
	assert.equal(trace.summary.threads, 4096);
	const { content } = (await s.get(`/api/v1/traces/${trace.id}/documents?kind=anr`)).json.documents[0];
	assert.equal(content.processes[0].threads_left_out, 12000 - 4096);
	assert.equal(content.processes[0].chain.length, 64);
});
