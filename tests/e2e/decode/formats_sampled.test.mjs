/*
 * Sampled stacks of every origin, pushed to a real server: threads are marked as sampled, names are present
 * or come with the build's mapping, also in notes and reports.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { form } from '../make.mjs';
import { root, startServer } from '../server.mjs';

const golden = (format, name = 'realistic') => fs.readFileSync(path.join(root, 'tests/golden', format, name, 'input'));

async function json(s, target) {
	const answer = await s.get(target);
	assert.equal(answer.status, 200, answer.text);
	return answer.json;
}

async function look(s, trace) {
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	const at = `/api/v1/traces/${trace.id}`;
	return {
		format: trace.summary.format,
		threads: (await json(s, `${at}/threads`)).threads,
		names: (await json(s, `${at}/methods?limit=1000&thread=all`)).methods.map((m) => m.name),
		notes: (await json(s, `${at}/notes?limit=1000`)).notes,
		repairs: trace.report.repairs.map((r) => r.name),
	};
}

test('sampled stacks', async (t) => {
	const s = await startServer(t);

	await t.test('Profilo: samples, marks as calls on other threads, counters', async () => {
		const v = await look(s, await s.trace(golden('profilo')));
		assert.equal(v.format, 'profilo');
		assert.deepEqual(Object.fromEntries(v.threads.map((x) => [x.name, x.source])),
			{ main: 'samples', 'busy-thread': 'samples', RenderThread: 'calls' });
		assert.ok(v.threads.find((x) => x.name === 'main').interval_ns > 0);
		assert.ok(v.names.includes('com.example.shop.Cart.total'));
		assert.ok(v.names.includes('frame 3'));
		assert.ok(v.notes.some((n) => n.kind === 'section' && n.text === 'traversal'));
		assert.ok(v.notes.some((n) => n.kind === 'counter' && n.text === 'allocations'));
	});

	await t.test('Sentry', async () => {
		const v = await look(s, await s.trace(golden('sentry')));
		assert.equal(v.format, 'sentry');
		assert.deepEqual(v.threads.map((x) => [x.name, x.source]).sort(), [['http-nio-8080', 'samples'], ['main', 'samples']]);
		assert.ok(v.names.includes('com.example.net.Socket.read'));
		assert.deepEqual(v.repairs, []);
	});

	await t.test('OpenTelemetry: as an exporter sends it', async () => {
		const body = golden('otlp');
		const answer = await s.post('/v1development/profiles', body, { query: { scenario: 'otlp' }, headers: { 'Content-Type': 'application/x-protobuf' } });
		assert.equal(answer.status, 200, answer.text);
		assert.equal(answer.headers.get('content-type'), 'application/x-protobuf');
		assert.equal(answer.bytes.length, 0);
		const { traces } = (await s.get('/api/v1/traces?scenario=otlp')).json;
		assert.equal(traces.length, 1);
		const v = await look(s, await s.decoded(traces[0].id));
		assert.equal(v.format, 'otlp');
		assert.deepEqual(v.threads.map((x) => [x.name, x.source, x.pid]).sort(), [['main', 'samples', 4711], ['worker', 'samples', 4711]]);
		const refused = await s.post('/v1development/profiles', '{"resourceProfiles":[]}', { headers: { 'Content-Type': 'application/json' } });
		assert.ok([415, 422].includes(refused.status), refused.text);
	});

	await t.test('Java stacks, and the definition of a gap', async () => {
		const v = await look(s, await s.trace(golden('java_samples')));
		assert.equal(v.format, 'java_samples');
		assert.ok(v.threads.every((x) => x.source === 'samples' && x.interval_ns === 20e6));
		assert.deepEqual(v.repairs, ['sample_gap']);
	});

	await t.test('Matrix: ids named by a late mapping', async () => {
		const trace = await s.trace(golden('matrix', 'minimal'), { query: { build_id: 'm1' } });
		let v = await look(s, trace);
		assert.equal(v.format, 'matrix');
		assert.equal(v.threads[0].source, 'samples');
		assert.ok(v.names.includes('unknown:1048574'));
		const map = '2,1,com.a.B run ()V\n3,257,com.a.B read\n5,1,com.a.C<init> x ()V\n' +
			'1048574,1,android.os.Handler dispatchMessage (Landroid.os.Message;)V\n';
		assert.equal((await s.put('/api/v1/builds/m1/methods', map)).status, 200);
		v = await look(s, trace);
		assert.ok(v.names.includes('android.os.Handler.dispatchMessage'));
		assert.ok(v.names.includes('com.a.B.read'));
		assert.ok(v.notes.some((n) => n.kind === 'merged' && n.value === 4));
	});

	await t.test('simpleperf: names after the samples, and without them', async () => {
		const whole = await s.trace(golden('simpleperf'));
		let v = await look(s, whole);
		assert.equal(v.format, 'simpleperf');
		assert.deepEqual(v.threads.map((x) => [x.name, x.source, x.is_main]).sort(), [['OkHttp Dispatch', 'samples', false], ['com.example.shop', 'samples', true]]);
		assert.ok(v.threads.every((x) => x.interval_ns > 990000 && x.interval_ns < 1010000));
		for (const name of ['com.example.shop.Cart.total', 'art::gc::Heap::AllocObject(art::Thread*)', '[kernel.kallsyms]', '[libart.so]']) assert.ok(v.names.includes(name), name);
		assert.deepEqual(v.repairs.sort(), ['sample_failed', 'sample_gap']);
		const own = JSON.stringify(await json(s, `/api/v1/traces/${whole.id}/flame?transform=app`));
		assert.match(own, /Cart\.total/);
		assert.doesNotMatch(own, /__libc_init|art_quick|art::gc|\[lib|\[kernel|HashMap/, 'native frames are not the app\'s');
		v = await look(s, await s.trace(golden('simpleperf', 'truncated')));
		assert.deepEqual(v.repairs, ['input_truncated']);
		assert.equal(v.names.length, 4);
	});

	await t.test('perf.data: as the samples that it holds, and named by an R8 mapping', async () => {
		const whole = await s.trace(golden('perf_data'));
		const v = await look(s, whole);
		assert.equal(v.format, 'perf_data');
		assert.deepEqual(v.threads.map((x) => [x.name, x.source]).sort(), [['OkHttp Dispatch', 'samples'], ['com.example.shop', 'samples'], ['other', 'samples']]);
		for (const name of ['com.example.shop.Cart.total', 'art::gc::Heap::Alloc', '__start_thread', 'do_futex', '[other]']) assert.ok(v.names.includes(name), name);
		assert.ok(!v.names.includes('art::interpreter::DoCall'), 'frames of the interpreter are none of the app');
		assert.deepEqual(v.repairs.sort(), ['sample_failed', 'sample_gap']);
		const trace = await s.trace(golden('perf_data', 'minimal'), { query: { build_id: 'pd1' } });
		assert.equal((await s.put('/api/v1/builds/pd1/retrace', 'com.example.Start -> android.app.ActivityThread:\n    void begin() -> main\n')).status, 200);
		assert.ok((await look(s, trace)).names.includes('com.example.Start.begin'));
	});

	await t.test('simpleperf: an obfuscated build is named by its R8 mapping', async () => {
		const trace = await s.trace(golden('simpleperf', 'minimal'), { query: { build_id: 'sp1' } });
		const map = 'com.example.Start -> a.B:\n    void begin(android.content.Context) -> main\n';
		assert.equal((await s.put('/api/v1/builds/sp1/retrace', map)).status, 200);
		assert.ok((await look(s, trace)).names.includes('com.example.Start.begin'));
	});

	await t.test('Java stacks of an obfuscated build: inlined methods are frames of their own', async () => {
		const stacks = JSON.stringify({
			format: 'java-stacks/1', pid: 9, interval_ms: 10,
			frames: ['android.os.Looper.loop(Looper.java:99)', 'a.a.m(SourceFile:1)', 'a.a.m(SourceFile:2)', 'a.a.m(SourceFile:3)', 'a.o.x(SourceFile:5)'],
			stacks: [[1, 0], [2, 0], [3, 0], [4, 3, 0]],
			threads: { 1: { name: 'main', sys_tid: 9 } },
			samples: [[0, 1, 0], [10000000, 1, 1], [20000000, 1, 2], [30000000, 1, 3]],
		});
		const trace = await s.trace(stacks, { query: { build_id: 'inlined' } });
		const flame = async (query = '') => {
			const lines = [];
			const walk = (node, before) => {
				lines.push(`${before}${node.name} ${node.value / 1e6}`);
				for (const child of node.children) walk(child, `${before}${node.name};`);
			};
			for (const child of (await json(s, `/api/v1/traces/${trace.id}/flame?${query}`)).children[0].children) walk(child, '');
			return lines;
		};
		assert.deepEqual((await look(s, trace)).names.sort(), ['a.a.m', 'a.o.x', 'android.os.Looper.loop'], 'lines make no methods without a mapping');
		assert.deepEqual(await flame(), ['a.a.m 40', 'a.a.m;a.o.x 10']);
		const map = 'shop.Cart -> a.a:\n    1:1:void shop.Price.round():7:7 -> m\n    1:1:int shop.Price.sum():21 -> m\n    1:1:void pay():30 -> m\n'
			+ '    2:2:int shop.Price.sum():22:22 -> m\n    2:2:void pay():30 -> m\n    3:3:void pay():31:31 -> m\n'
			+ 'shop.Made -> a.o:\n    5:5:void outline():0:0 -> x\n# {"id":"com.android.tools.r8.outline"}\n';
		assert.equal((await s.put('/api/v1/builds/inlined/retrace', map)).status, 200);
		assert.deepEqual((await look(s, trace)).names.sort(), ['android.os.Looper.loop', 'shop.Cart.pay', 'shop.Price.round', 'shop.Price.sum']);
		assert.deepEqual(await flame(), ['shop.Cart.pay 40', 'shop.Cart.pay;shop.Price.sum 20', 'shop.Cart.pay;shop.Price.sum;shop.Price.round 10']);
		const { methods } = await json(s, `/api/v1/traces/${trace.id}/methods?thread=all`);
		assert.deepEqual(Object.fromEntries(methods.map((m) => [m.name, [m.total_ns / 1e6, m.self_ns / 1e6]])), {
			'android.os.Looper.loop': [40, 0], 'shop.Cart.pay': [40, 20], 'shop.Price.sum': [20, 10], 'shop.Price.round': [10, 10],
		});
		const sum = methods.find((m) => m.name === 'shop.Price.sum').method;
		assert.equal((await json(s, `/api/v1/traces/${trace.id}/flame?transform=focus:${sum}`)).value / 1e6, 20);
		assert.deepEqual((await json(s, `/api/v1/traces/${trace.id}/flame?view=bottom_up`)).children.map((c) => `${c.name} ${c.value / 1e6}`).sort(),
			['android.os.Looper.loop 0', 'shop.Cart.pay 20', 'shop.Price.round 10', 'shop.Price.sum 10']);
	});

	await t.test('btrace 3.0 with its names in a part', async () => {
		const { body, headers } = form(['trace', golden('btrace3')], ['names', golden('btrace3_names')]);
		const v = await look(s, await s.trace(body, { headers }));
		assert.equal(v.format, 'btrace3');
		assert.ok(v.names.includes('com.example.shop.Cart.update'), v.names.join());
		assert.ok(!v.names.some((n) => n.startsWith('unknown:')));
		assert.ok(v.threads.every((x) => x.source === 'samples'));
		assert.ok(v.threads.find((x) => x.name === 'com.example.shop' || x.is_main).is_main);
		assert.ok(v.notes.some((n) => n.kind === 'wait' && n.dur_ns > 0));
		assert.ok(v.notes.some((n) => n.kind === 'counter' && n.text === 'allocated bytes' && n.value > 0));
	});

	await t.test('refusals state the remedy', async () => {
		for (const [body, words] of [
			['{"platform":"android","sampled_profile":"QUJD"}', /does not contain a trace/],
			['{"format":"java-stacks/7"}', /java-stacks\/1/],
			['dt\nver|9\nprec|6\n\n', /version 9/],
			[Buffer.concat([Buffer.from([4, 3, 2, 1, 0, 0, 0, 0, 9, 0, 0, 0]), Buffer.alloc(40)]), /versions 3 to 5/],
		]) {
			const answer = await s.post('/api/v1/traces', body);
			assert.equal(answer.status, 415, answer.text);
			assert.match(answer.json.error.message, words);
		}
	});
});
