/* Perfetto files over HTTP: joined to the device's own trace, cut, packed, of several traces, and refused. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import zlib from 'node:zlib';
import { btrace, form, sampleMapping, sampleTrace, sub, systemTrace } from '../make.mjs';
import { newFolder, startServer, tracewell } from '../server.mjs';

function packets(bytes) {
	const list = [];
	for (let at = 0; at < bytes.length;) {
		assert.equal(bytes[at], 0x0a);
		let [n, shift] = [0, 0];
		do n += (bytes[++at] & 127) * 2 ** shift, shift += 7;
		while (bytes[at] & 128);
		at++;
		list.push(bytes.subarray(at, at + n));
		at += n;
	}
	return list;
}

/* The descriptor of a thread's CPU time. The server takes it from the states of the device's trace, which the command line
 * copies without decoding it. */
const CPU_TIME = Buffer.from([0x42, 6, 8, 1, 0x18, 1, 0x28, 1]);
const withoutCpu = (bytes) => packets(bytes).filter((p) => !p.includes(CPU_TIME));

/* All packets of one, in order, are among those of the other. */
function holds(file, system) {
	const wanted = packets(system);
	let at = 0;
	for (const p of packets(file)) if (at < wanted.length && p.equals(wanted[at])) at++;
	return at === wanted.length;
}

function members(tar) {
	const out = {};
	for (let at = 0; tar[at];) {
		const name = tar.toString('latin1', at, tar.indexOf(0, at));
		const n = parseInt(tar.toString('latin1', at + 124, at + 135), 8);
		out[name] = tar.subarray(at + 512, at + 512 + n);
		at += 512 + Math.ceil(n / 512) * 512;
	}
	return out;
}

test('Perfetto files', async (t) => {
	const s = await startServer(t);
	await s.put('/api/v1/builds/b1/methods', sampleMapping);
	const upload = (trace, system, query = {}) => {
		const parts = [['trace', trace], ...(system ? [['system', system]] : [])];
		const { body, headers } = form(...parts);
		return s.trace(body, { headers, query: { build_id: 'b1', device: 'a', app: 'com.example.app', ...query } });
	};
	const probe = btrace([]).readBigUInt64LE(16);
	const system = systemTrace(probe);
	const joined = await upload(sampleTrace(300), system, { session_id: 'one' });
	const alone = await upload(sampleTrace(200), undefined, { session_id: 'one' });
	const other = await upload(sampleTrace(100, 5000), undefined, { device: 'b', version_name: '2' });
	const file = (id, query) => s.get(`/api/v1/traces/${id}/perfetto`, { query });
	const merge = (ids, query) => s.get('/api/v1/merge', { query: { ids: ids.join(','), ...query } });

	await t.test('hold the device\'s trace, and say so in the report', async () => {
		assert.equal(joined.state, 'ready', JSON.stringify(joined.error));
		const { system: reported } = joined.report;
		assert.deepEqual([reported.joined, reported.reason, reported.clock, reported.offset_ns, reported.residual_ns], [true, null, 'monotonic', 5_000_000_000, 0]);
		assert.equal(reported.packets, packets(system).length);
		assert.equal(alone.report.system, null);
		const whole = await file(joined.id);
		assert.equal(whole.status, 200);
		assert.ok(holds(whole.bytes, system));
		assert.match(whole.headers.get('content-disposition'), /\.perfetto-trace"$/);
		assert.ok(!holds((await file(joined.id, { system: '0' })).bytes, system));
		assert.ok(whole.text.includes('com.example.app.Class0.method1'), whole.text.match(/[\w.:]{6,}/g).slice(0, 40).join(' '));
		assert.equal((await file(alone.id, { system: '1' })).status, 404);
		assert.equal((await file(alone.id)).status, 200);
	});

	await t.test('as an archive and compressed', async () => {
		const plain = (await file(joined.id)).bytes;
		const tar = await file(joined.id, { format: 'tar' });
		const m = members(tar.bytes);
		assert.deepEqual(Object.keys(m), ['perfetto_manifest.json', 'device.perfetto-trace', 'tracewell.perfetto-trace']);
		assert.ok(m['device.perfetto-trace'].equals(system));
		const { perfetto_manifest: manifest } = JSON.parse(m['perfetto_manifest.json']);
		assert.deepEqual(manifest.files, [{ path: 'device.perfetto-trace' }, { path: 'tracewell.perfetto-trace' }]);
		assert.equal(manifest.attributes.tracewell_trace, joined.id);
		assert.ok(packets(m['tracewell.perfetto-trace']).length > 900);
		const gz = await file(joined.id, { compress: 'gzip' });
		assert.equal(gz.headers.get('content-encoding'), null);
		assert.ok(zlib.gunzipSync(gz.bytes).equals(plain));
		assert.match(gz.headers.get('content-disposition'), /\.perfetto-trace\.gz"$/);
		const folded = (await file(joined.id, { compress: 'packets' })).bytes;
		assert.ok(folded.length < plain.length / 2 && holds(folded, system));
		for (const query of [{ format: 'zip' }, { compress: 'lz4' }, { system: 'perhaps' }, { from: '9', to: '9' }])
			assert.equal((await file(joined.id, query)).status, 400, JSON.stringify(query));
		for (const threads of ['99', 'x']) assert.equal((await file(joined.id, { threads })).status, 404, threads);
	});

	await t.test('cut to a range', async () => {
		const [all, cut] = [(await file(joined.id)).bytes, (await file(joined.id, { from: 1_500_000, to: 1_600_000 })).bytes];
		assert.ok(cut.length * 4 < all.length, `${cut.length} of ${all.length} bytes`);
		const [few, many] = [cut, all].map((b) => packets(b).filter((p) => packets(system).some((q) => q.equals(p))).length);
		assert.equal(many, packets(system).length);
		assert.ok(few >= 4 && few < 8, `${few} packets of the device's`);
	});

	await t.test('of several traces', async () => {
		const both = await merge([joined.id, alone.id, other.id]);
		assert.equal(both.status, 200, both.text.slice(0, 200));
		assert.ok(holds(both.bytes, system));
		assert.ok(both.text.includes('2 b 2: ') || both.text.includes('3 b 2: '), 'whose process it is');
		for (const align of ['clock', 'start', 'slice:com.example.app.Class0.method1'])
			assert.equal((await merge([joined.id, other.id], { align })).status, 200, align);
		assert.equal((await merge([joined.id, other.id], { align: 'slice:no.such' })).status, 404);
		assert.equal((await merge([joined.id, other.id], { align: 'moon' })).status, 400);
		assert.equal((await merge([joined.id, other.id], { threads: '4000' })).status, 200);
		assert.equal((await merge([joined.id, other.id], { threads: '7' })).status, 404);
		assert.equal((await merge([])).status, 400);
		assert.equal((await merge([joined.id, joined.id])).status, 400);
		assert.equal((await merge(Array(17).fill(joined.id))).status, 400);
		assert.equal((await merge([joined.id, '01ARZ3NDEKTSV4RRFFQ69G5FAV'])).status, 404);
		assert.equal((await merge(['../../etc/passwd'])).status, 400);
		assert.ok(members((await merge([joined.id, other.id], { format: 'tar' })).bytes)['device.perfetto-trace'].equals(system));
	});

	await t.test('not of other projects', async () => {
		const stranger = s.key('read', 'another');
		for (const path of [`/api/v1/traces/${joined.id}/perfetto`, `/api/v1/merge?ids=${joined.id}`])
			assert.equal((await s.get(path, { key: stranger })).status, 404);
		assert.equal((await s.get(`/api/v1/merge?ids=${joined.id}`, { key: null })).status, 401);
		assert.equal((await s.get(`/api/v1/merge?ids=${joined.id}`, { key: s.ingest })).status, 403);
	});

	await t.test('of ours alone when the device\'s trace is none, of another time, or cut', async () => {
		const later = await upload(sampleTrace(31), systemTrace(probe + 3600_000_000_000n));
		assert.equal(later.report.system.joined, false);
		assert.match(later.report.system.reason, /another time or device/);
		assert.ok((await file(later.id)).text.includes('another time or device'));
		const cut = await upload(sampleTrace(32), system.subarray(0, system.length - 9));
		assert.deepEqual([cut.report.system.joined, cut.report.system.cut], [true, true]);
		assert.ok(holds((await file(cut.id)).bytes, Buffer.concat(packets(system).slice(0, -1).map((p) => sub(1, p)))));
		const { body, headers } = form(['trace', sampleTrace(33)], ['system', Buffer.from('this is no trace at all')]);
		const none = await s.post('/api/v1/traces', body, { headers });
		if (none.status < 300) {
			const trace = await s.decoded(none.json.id);
			assert.equal(trace.state, 'ready');
			assert.match(trace.report.system.reason, /not a Perfetto trace/);
			assert.equal((await file(trace.id)).status, 200);
		} else {
			assert.ok(none.status === 415 || none.status === 422, none.text);
		}
	});

	await t.test('the command line joins, cuts and packs as the server does', async () => {
		const dir = newFolder(t, 'tracewell-perfetto-');
		const at = (name) => path.join(dir, name);
		fs.writeFileSync(at('trace'), sampleTrace(300));
		fs.writeFileSync(at('other'), sampleTrace(100, 5000));
		fs.writeFileSync(at('system'), system);
		const made = (...args) => {
			tracewell('perfetto', ...args, '-o', at('out'));
			return fs.readFileSync(at('out'));
		};
		const whole = made(at('trace'), '--system', at('system'));
		assert.ok(holds(whole, system));
		const server = (await file(joined.id)).bytes;
		assert.equal(packets(whole).length, withoutCpu(server).length + 1, 'as many packets as the server writes, behind whose it is');
		assert.ok(!holds(made(at('trace')), system));
		assert.ok(zlib.gunzipSync(made(at('trace'), '--system', at('system'), '--compress', 'gzip')).equals(whole));
		const tar = members(made(at('trace'), '--system', at('system'), '--format', 'tar'));
		assert.ok(Object.values(tar).some((m) => m.equals(system)));
		assert.ok(made(at('trace'), '--system', at('system'), '--from', '0', '--to', '100000').length < whole.length);
		assert.ok(made(at('trace'), at('other'), '--system', at('system'), '--align', 'start').length > whole.length);
		fs.writeFileSync(at('words'), 'this is no trace at all');
		assert.ok(made(at('trace'), '--system', at('words')).includes('not a Perfetto trace'));
		for (const bad of [['--system', at('nothing')], ['--format', 'zip'], ['--compress', 'lzma'], ['--from', '5', '--to', '4'], ['--from', '-1'], ['--align', 'end']]) {
			fs.rmSync(at('out'), { force: true });
			assert.throws(() => made(at('trace'), ...bad), undefined, bad.join(' '));
			assert.ok(!fs.existsSync(at('out')), bad.join(' '));
		}
	});

	await t.test('the command line takes the threads and the time that the server takes', async () => {
		const dir = newFolder(t, 'tracewell-perfetto-');
		const at = (name) => path.join(dir, name);
		const calls = Array.from({ length: 60 }, (_, i) => [4000 + (i % 3), 1 + (i % 5), 1_000_000 + i * 10_000, 9000]);
		fs.writeFileSync(at('trace'), btrace(calls, { pid: 4000 }));
		fs.writeFileSync(at('system'), system);
		const sent = await upload(fs.readFileSync(at('trace')), system);
		const made = (...args) => {
			fs.rmSync(at('out'), { force: true });
			tracewell('perfetto', at('trace'), '--system', at('system'), ...args, '-o', at('out'));
			return packets(fs.readFileSync(at('out'))).length - 1; /* it begins with whose it is */
		};
		const asked = async (query) => withoutCpu((await file(sent.id, query)).bytes).length;
		const seen = new Set([made()]);
		for (const query of [{ thread: '4001' }, { thread: '4002,4000' }, { from: 1_200_000 }, { to: 1_150_000 }, { thread: '4001', from: 1_200_000, to: 1_300_000 }]) {
			const n = made(...Object.entries(query).flatMap(([k, v]) => [`--${k}`, String(v)]));
			assert.equal(n, await asked(query), JSON.stringify(query));
			assert.ok(!seen.has(n), `${JSON.stringify(query)} changes the file`);
			seen.add(n);
		}
		fs.writeFileSync(at('other'), sampleTrace(100, 5000));
		assert.ok(made(at('other'), '--thread', '5000') > 200, 'a thread of one of two files');
		for (const bad of [['--thread', '77'], ['--thread', 'nobody'], ['--thread', '4000;4001'], ['--from', '9', '--to', '9'], ['--to', '1e9'], ['--thread', Array(4097).fill('1').join()]])
			assert.throws(() => made(...bad), undefined, bad.join(' ').slice(0, 40));
		assert.ok(!fs.existsSync(at('out')));
	});

	await t.test('also when the trace is deleted during it', async () => {
		const big = await upload(sampleTrace(60_000), system);
		const whole = (await file(big.id)).bytes;
		const answer = await fetch(`${s.url}/api/v1/merge?ids=${big.id}`, { headers: { Authorization: `Bearer ${s.read}`, 'Accept-Encoding': 'identity' } });
		const reader = answer.body.getReader();
		const got = [Buffer.from((await reader.read()).value)];
		assert.equal((await s.ask('DELETE', `/api/v1/traces/${big.id}`)).status, 204);
		for (let r = await reader.read(); !r.done; r = await reader.read()) got.push(Buffer.from(r.value));
		assert.ok(holds(Buffer.concat(got), system));
		assert.ok(Math.abs(Buffer.concat(got).length - whole.length) < 1000);
		assert.equal((await file(big.id)).status, 404);
	});
});
