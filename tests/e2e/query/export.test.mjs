/*
 * Exports in other tools' formats, read back: every method has the self time, total and count of
 * the API's table, for any choice of threads and time range, and with any name.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import Ajv from 'ajv';
import * as read from '../export_readers.mjs';
import { btrace, sampleMapping, sampleTrace } from '../make.mjs';
import { binary, inFull, newFolder, reads, root, sample, startServer, tracewell, until } from '../server.mjs';

const sim = path.join(path.dirname(binary()), '..', 'tests', 'tracewell-sim');
const samples = sample('btrace2/javac-parallel');
const KINDS = ['speedscope', 'folded', 'pprof', 'chrome', 'firefox', 'd3', 'csv', 'svg', 'sqlite'];

function scratch(t) {
	return newFolder(t, 'tracewell-export-');
}

function push(s, dir, ...more) {
	return tracewell('push', '--server', s.url, '--key', s.ingest, '--build-id', path.basename(dir), '--threads', path.join(dir, 'threads.txt'),
		'--meta', 'app=com.acme.shop', '--scenario', 'cold_start', '--wait', ...more);
}

async function exported(s, id, kind, query = '', coding = 'gzip') {
	const answer = await s.get(`/api/v1/traces/${id}/export/${kind}${query ? `?${query}` : ''}`, { headers: { 'Accept-Encoding': coding } });
	assert.equal(answer.status, 200, answer.text.slice(0, 300));
	return answer;
}

/* The API's table, by name; null where two methods share a name. */
async function table(s, id, query = '') {
	const rows = new Map();
	for (let offset = 0, total = 1; offset < total; offset += 10000) {
		const { json } = await s.get(`/api/v1/traces/${id}/methods?limit=10000&offset=${offset}&${query.replace('threads=', 'thread=')}`);
		total = json.total;
		for (const m of json.methods)
			rows.set(m.name, rows.has(m.name) ? null : { self: m.self_ns, total: m.total_ns, count: m.count });
	}
	return rows;
}

/* columns: which of self, total and count the format can express. */
function same(got, want, columns, what) {
	let compared = 0;
	for (const [name, row] of want) {
		const g = got.get(name) ?? { self: 0, total: 0, count: 0 };
		if (row === null) continue;
		for (const c of columns) assert.equal(g[c], row[c], `${what}: ${c} of ${name}`);
		compared++;
	}
	for (const name of got.keys()) assert.ok(want.has(name), `${what}: ${name} is not in the table`);
	return compared;
}

/* Read by the sqlite3 program: total and self time and count of each name, from the slices alone. */
function sqlite(s, bytes) {
	const file = path.join(s.data, 'exported.sqlite');
	fs.writeFileSync(file, bytes);
	const query = (sql) => JSON.parse(execFileSync('sqlite3', ['-json', file, sql], { encoding: 'utf8', maxBuffer: 1 << 28 }) || '[]');
	assert.deepEqual(query('PRAGMA integrity_check'), [{ integrity_check: 'ok' }]);
	assert.deepEqual(query(`SELECT count(*) AS n FROM slice s LEFT JOIN slice p ON p.id=s.parent_id WHERE (s.depth=0)<>(p.id IS NULL) OR p.depth<>s.depth-1
		OR p.thread_id<>s.thread_id OR s.ts_ns<p.ts_ns OR s.ts_ns+s.dur_ns>p.ts_ns+p.dur_ns`), [{ n: 0 }]);
	const rows = query(`WITH RECURSIVE kids AS (SELECT parent_id, sum(dur_ns) AS ns FROM slice GROUP BY parent_id),
		up(id, method_id, at) AS (SELECT id, method_id, parent_id FROM slice UNION ALL SELECT up.id, up.method_id, s.parent_id FROM up JOIN slice s ON s.id=up.at),
		nested AS (SELECT DISTINCT up.id FROM up JOIN slice s ON s.id=up.at WHERE s.method_id=up.method_id)
		SELECT c.name, count(*) AS count, sum(c.dur_ns - ifnull(k.ns, 0)) AS self, sum(CASE WHEN n.id IS NULL THEN c.dur_ns ELSE 0 END) AS total
		FROM call c LEFT JOIN kids k ON k.parent_id=c.id LEFT JOIN nested n ON n.id=c.id GROUP BY c.name`);
	return { query, methods: new Map(rows.map((r) => [r.name, r])) };
}

async function checkAll(s, id, query, kinds = KINDS, coding = undefined) {
	const want = await table(s, id, query);
	const text = async (kind, more = '') => (await exported(s, id, kind, [query, more].filter(Boolean).join('&'), coding)).text;
	const all = ['self', 'total', 'count'];
	const checks = {
		speedscope: async () => same(read.speedscope(await text('speedscope')).methods, want, all, 'speedscope'),
		chrome: async () => same(read.chrome(await text('chrome')).methods, want, all, 'chrome'),
		firefox: async () => same(read.firefox(await text('firefox')).methods, want, ['self', 'total'], 'firefox'),
		pprof: async () => same(read.pprof((await exported(s, id, 'pprof', query)).bytes).methods, want, all, 'pprof'),
		csv: async () => same(read.csv(await text('csv')).methods, want, all, 'csv'),
		sqlite: async () => same(sqlite(s, (await exported(s, id, 'sqlite', query)).bytes).methods, want, all, 'sqlite'),
		d3: async () => same(read.d3(await text('d3', 'max_nodes=200000')).methods, want, all, 'd3'),
		folded: async () => {
			same(read.folded(await text('folded')).methods, want, ['self', 'total'], 'folded');
			same(read.folded(await text('folded', 'metric=count&merged=1'), { merged: true, count: true }).methods, want, ['count'], 'folded');
		},
	};
	for (const kind of kinds) await checks[kind]?.();
	return want.size;
}

test('exports of a simulated phone match the API', async (t) => {
	const s = await startServer(t);
	const dir = scratch(t);
	execFileSync(sim, ['--out', dir, '--seed', '5', '--records', '6000']);
	const id = push(s, dir, '--mapping', path.join(dir, 'methodMapping.txt'), path.join(dir, 'rhea-atrace.bin'));
	const trace = (await s.get(`/api/v1/traces/${id}`)).json;
	const threads = (await s.get(`/api/v1/traces/${id}/threads`)).json.threads.filter((x) => x.slices);
	const span = trace.end_ns - trace.start_ns;

	await t.test('all threads, the whole time', async () => {
		assert.ok((await checkAll(s, id, '')) > 50);
	});
	await t.test('chosen threads', async () => {
		await checkAll(s, id, `threads=${threads[1].tid}`);
		await checkAll(s, id, `threads=${threads[0].tid},${threads[2].tid}`);
		const labels = read.pprof((await exported(s, id, 'pprof', `threads=${threads[1].tid}`)).bytes).labels;
		assert.deepEqual(labels.map((l) => [l.tid, l.source]), [[threads[1].tid, 'calls']]);
		assert.ok(labels[0].thread.includes(String(threads[1].tid)) && labels[0].thread.startsWith(threads[1].name));
	});
	await t.test('a time range cuts calls at both ends', async () => {
		const from = trace.start_ns + Math.round(span / 3);
		const to = trace.start_ns + Math.round(span / 2);
		await checkAll(s, id, `from=${from}&to=${to}`);
		await checkAll(s, id, `from=${from}&to=${to}&threads=${threads[0].tid}`);
		const { file } = read.speedscope((await exported(s, id, 'speedscope', `from=${from}&to=${to}`)).text);
		assert.ok(file.profiles.every((p) => p.startValue >= from && p.endValue <= to));
	});
	await t.test('a range without a call is a file without one', async () => {
		const q = `from=${trace.end_ns + 10}&to=${trace.end_ns + 20}`;
		assert.equal(read.speedscope((await exported(s, id, 'speedscope', q)).text).file.profiles.length, 0);
		assert.equal((await exported(s, id, 'folded', q)).text, '');
		assert.equal(read.firefox((await exported(s, id, 'firefox', q)).text).file.threads.length, 0);
		assert.equal(read.pprof((await exported(s, id, 'pprof', q)).bytes).profile.sample.length, 0);
		assert.equal(read.csv((await exported(s, id, 'csv', q)).text).rows, 0);
		assert.equal(read.d3((await exported(s, id, 'd3', q)).text).root.value, 0);
		assert.match((await exported(s, id, 'svg', q)).text, /<\/svg>\s*$/);
	});
	await t.test('speedscope: valid by its own schema', async () => {
		const schema = JSON.parse(fs.readFileSync(path.join(root, 'tests/node_modules/speedscope/dist/release/file-format-schema.json'), 'utf8'));
		const valid = new Ajv({ strict: false, validateSchema: false }).compile({ ...schema, $schema: undefined });
		const file = JSON.parse((await exported(s, id, 'speedscope')).text);
		assert.ok(valid(file), JSON.stringify(valid.errors?.slice(0, 3)));
		assert.ok(!valid({ ...file, profiles: [{ type: 'other' }] }), 'the schema refuses something');
	});
	await t.test('d3 and svg keep their sums when they are cut, both ways up', async () => {
		const whole = read.d3((await exported(s, id, 'd3')).text).root.value;
		for (const q of ['max_nodes=20', 'max_nodes=20&view=bottom_up']) assert.equal(read.d3((await exported(s, id, 'd3', q)).text).root.value, whole);
		const svg = (await exported(s, id, 'svg', 'max_nodes=30')).text;
		assert.equal((svg.match(/<svg x=/g) ?? []).length, (svg.match(/<rect class="(?:h|other)/g) ?? []).length);
		assert.ok(svg.includes('(other)') && !/<script|href|url\(|onload/i.test(svg));
		assert.match((await exported(s, id, 'svg', 'metric=count')).text, /calls<\/text>/);
	});
	await t.test('sqlite: every table matches the API, and raw?as=sqlite is the same file', async () => {
		const { bytes } = await exported(s, id, 'sqlite');
		const { query } = sqlite(s, bytes);
		const raw = await s.get(`/api/v1/traces/${id}/raw?as=sqlite`);
		assert.deepEqual([raw.status, raw.headers.get('content-type'), raw.bytes.equals(bytes)], [200, 'application/vnd.sqlite3', true]);
		assert.equal((await s.get(`/api/v1/traces/${id}/raw?as=csv`)).status, 400);
		const all = (await s.get(`/api/v1/traces/${id}/threads`)).json.threads;
		assert.deepEqual(query('SELECT thread_id AS id, tid, name, slices FROM thread').map(Object.values), all.map((x) => [x.thread_id, x.tid, x.name, x.slices]));
		const flame = (await s.get(`/api/v1/traces/${id}/flame?thread=${threads[0].tid}`)).json;
		assert.equal(query(`SELECT sum(dur_ns) AS ns FROM call WHERE depth=0 AND thread_id=${threads[0].thread_id}`)[0].ns, flame.value);
		const notes = (await s.get(`/api/v1/traces/${id}/notes?limit=10000`)).json.notes;
		assert.equal(query('SELECT count(*) AS n FROM event')[0].n, notes.length);
		assert.equal(query("SELECT value FROM meta WHERE key='trace'")[0].value, id);
	});
	await t.test('names, types and sizes of downloads', async () => {
		const types = { speedscope: 'application/json', svg: 'image/svg+xml', csv: 'text/csv; charset=utf-8', pprof: 'application/octet-stream' };
		for (const [kind, type] of Object.entries(types)) {
			const { headers } = await exported(s, id, kind);
			assert.equal(headers.get('content-type'), type);
			assert.match(headers.get('content-disposition'), new RegExp(`^attachment; filename="com.acme.shop-cold_start-${id}\\.`));
		}
		const packed = await s.get(`/api/v1/traces/${id}/export/pprof`, { headers: { 'Accept-Encoding': 'gzip' } });
		assert.equal(packed.headers.get('content-encoding'), null, 'packed once');
	});
	await t.test('missing traces are refused', async () => {
		const status = async (path) => (await s.get(`/api/v1/traces/${id}/export/${path}`)).status;
		assert.equal(await status('nothing'), 404);
		assert.equal(await status('svg?metric=cpu'), 400);
		assert.equal(await status('pprof?metric=count'), 400);
		assert.equal(await status('csv?view=sideways'), 400);
		assert.equal(await status('csv?threads=1'), 404);
		assert.equal(await status('csv?from=5&to=5'), 400);
		assert.equal((await s.get(`/api/v1/traces/${id}/export/csv`, { key: s.key('read', 'other') })).status, 404);
		assert.equal((await s.get(`/api/v1/traces/${id}/export/csv`, { key: null })).status, 401);
		assert.equal((await s.get(`/api/v1/traces/${id}/export/csv`, { key: s.ingest })).status, 403);
	});
	await t.test('the command line makes the same files', async () => {
		const out = path.join(dir, 'out');
		for (const kind of KINDS.filter((k) => !['svg', 'pprof', 'sqlite'].includes(k))) {
			tracewell('export', path.join(dir, 'rhea-atrace.bin'), '--to', kind, '--mapping', path.join(dir, 'methodMapping.txt'),
				'--threads', path.join(dir, 'threads.txt'), '-o', out, ...(kind === 'd3' ? ['--max-nodes', '200000'] : []));
			const mine = read[kind](fs.readFileSync(out, 'utf8')).methods;
			assert.deepEqual(mine, read[kind]((await exported(s, id, kind, kind === 'd3' ? 'max_nodes=200000' : '')).text).methods, kind);
		}
		tracewell('export', path.join(dir, 'rhea-atrace.bin'), '--to', 'sqlite', '--mapping', path.join(dir, 'methodMapping.txt'), '-o', out);
		assert.ok(same(sqlite(s, fs.readFileSync(out)).methods, await table(s, id), ['self', 'total', 'count'], 'the command line') > 50);
		const range = `${trace.start_ns + 1000}..${trace.start_ns + span / 2 | 0}`;
		tracewell('export', path.join(dir, 'rhea-atrace.bin'), '--to', 'folded', '--thread', String(threads[0].tid), '--range', range, '--metric', 'count', '--merged', '-o', out);
		assert.ok(read.folded(fs.readFileSync(out, 'utf8'), { merged: true }).methods.size > 0);
		for (const bad of [['--to', 'none'], ['--to', 'svg', '--metric', 'cpu'], ['--to', 'csv', '--range', '5..4'], ['--to', 'csv', '--thread', 'x']]) {
			assert.throws(() => tracewell('export', path.join(dir, 'rhea-atrace.bin'), ...bad, '-o', path.join(dir, 'never')));
			assert.ok(!fs.existsSync(path.join(dir, 'never')));
		}
	});
});

/* What an attacker or a compiler may call a method. */
const NAMES = ['a"b\\c', '<script>alert(1)</script>', "&amp;'\"]]>", 'Lcom/x;y;z', '=cmd|calc', '-$$Lambda$1', '\u0001\u001b[31m', '\ufffe\uffff',
	'\u65e5\u672c\u8a9e \ud83d\ude00', 'x'.repeat(5000), '%s%n', '{"a":1}', 'end 42', '\u2028\u2029'];

test('files are well-formed for any method names', async (t) => {
	const s = await startServer(t);
	const lines = ['# 11111111-2222-3333-4444-555555555555', ...NAMES.map((n, i) => `${i + 1},1,com.a.B ${n.replaceAll(' ', '\u00a0')} ()V`), ''];
	const records = NAMES.map((_, i) => [4000, i + 1, 1_000_000 + i * 10_000, 5000 + i]);
	const trace = await s.trace(btrace([...records, [4000, 99, 900_000, 900_000]]), { query: { build_id: 'evil', app: '"><svg/onload=alert(1)>', scenario: '../../x' } });
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	assert.equal((await s.put('/api/v1/builds/evil/methods', lines.join('\n'))).status, 200);
	const want = await table(s, trace.id);
	assert.equal(want.size, NAMES.length + 1);
	for (const [kind, columns] of Object.entries({ speedscope: ['self', 'total', 'count'], chrome: ['self', 'count'], firefox: ['self'], d3: ['self'], csv: ['self', 'count'] }))
		same(read[kind]((await exported(s, trace.id, kind)).text).methods, want, columns, kind);
	same(read.pprof((await exported(s, trace.id, 'pprof')).bytes).methods, want, ['self', 'count'], 'pprof');
	const plain = new Map([...want].map(([n, r]) => [n.replaceAll(';', ':').replaceAll(/[\0-\x1f\x7f]/g, ' '), r]));
	same(read.folded((await exported(s, trace.id, 'folded')).text).methods, plain, ['self'], 'folded');
	const csv = (await exported(s, trace.id, 'csv')).text;
	assert.ok(!/^"[=+@-]/m.test(csv), 'no formula');
	const formulas = ['=1', '\n=1', '\t=1', '\r=1', '\r\n=1', '@1', '+1', '-1'];
	const chrome = formulas.map((name, i) => ({ ph: 'X', pid: 1, tid: 1, name, ts: 100 * i, dur: 50 }));
	const named = await s.trace(Buffer.from(JSON.stringify({ traceEvents: chrome })));
	for (const text of [(await exported(s, named.id, 'csv')).text, tracewell('sql', named.id, '--data', s.data, '--format', 'csv', 'SELECT name, method_id FROM method ORDER BY 2')]) {
		for (const name of formulas) assert.ok(text.includes(`"'${name}"`), JSON.stringify([name, text]));
	}
	const svg = await exported(s, trace.id, 'svg');
	assert.ok(!svg.text.includes('<script>alert') && svg.text.includes('&lt;script&gt;alert(1)&lt;/script&gt;'));
	const valid = execFileSync('python3', ['-c', 'import sys, xml.etree.ElementTree as e; print(len(list(e.parse(sys.stdin.buffer).iter())))'], { input: svg.bytes });
	assert.ok(Number(valid) > NAMES.length);
	assert.match(svg.headers.get('content-disposition'), /^attachment; filename="[\w.-]+"$/);
});

test('random bytes as names: always well-formed JSON, XML, CSV and protobuf', async (t) => {
	const s = await startServer(t);
	let seed = 12345;
	const random = (n) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
	const letters = Buffer.from('"\\\'<>&;,=+-@%{}[]$\t\x00\x01\x1b\x7f\x80\xbf\xc0\xe2\xed\xef\xf0\xff\xa0', 'latin1');
	const name = (i) => Buffer.concat([Buffer.from(`n${i}`), Buffer.from(Array.from({ length: 1 + random(12) }, () => (random(3) ? letters[random(letters.length)] : 33 + random(94))))]);
	const lines = [Buffer.from('# 11111111-2222-3333-4444-555555555555\n')];
	const records = [];
	for (let i = 1; i <= 600; i++) {
		lines.push(Buffer.from(`${i},1,com.a.B `), name(i), Buffer.from(' ()V\n'));
		records.push([4000, i, 1_000_000 + i * 1000, 1 + random(900)]);
	}
	const trace = await s.trace(btrace(records), { query: { build_id: 'random' } });
	assert.equal((await s.put('/api/v1/builds/random/methods', Buffer.concat(lines))).status, 200);
	const want = await table(s, trace.id);
	assert.equal(want.size, 600);
	for (const kind of ['speedscope', 'chrome', 'firefox', 'd3']) same(read[kind]((await exported(s, trace.id, kind)).text).methods, want, ['self'], kind);
	same(read.pprof((await exported(s, trace.id, 'pprof')).bytes).methods, want, ['self'], 'pprof');
	const { rows, methods } = read.csv((await exported(s, trace.id, 'csv')).text);
	assert.equal(rows, 600);
	same(methods, want, ['self', 'count'], 'csv');
	const lineTotals = read.folded((await exported(s, trace.id, 'folded')).text).methods;
	assert.equal([...lineTotals.values()].reduce((n, m) => n + m.self, 0), [...want.values()].reduce((n, m) => n + m.self, 0));
	const svg = (await exported(s, trace.id, 'svg')).bytes;
	execFileSync('python3', ['-c', 'import sys, xml.etree.ElementTree as e; e.parse(sys.stdin.buffer)'], { input: svg });
});

test('a name of a megabyte', async (t) => {
	const s = await startServer(t);
	const name = 'N'.repeat(1 << 20);
	const systrace = ['# tracer: nop', '#', ...[['B|77|' + name, 1.0], ['B|77|short', 1.1], ['E|77', 1.2], ['E|77', 1.3]]
		.map(([what, at]) => `   app-77    (   77) [000] .... ${at.toFixed(6)}: tracing_mark_write: ${what}`), ''].join('\n');
	const trace = await s.trace(systrace);
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	const want = await table(s, trace.id);
	for (const kind of ['speedscope', 'chrome', 'firefox', 'd3', 'csv', 'folded'])
		same(read[kind]((await exported(s, trace.id, kind)).text).methods, want, ['self'], kind);
	same(read.pprof((await exported(s, trace.id, 'pprof')).bytes).methods, want, ['self', 'count'], 'pprof');
	assert.match((await exported(s, trace.id, 'svg')).text, /<\/svg>\s*$/);
});

test('sampled threads are marked', async (t) => {
	const s = await startServer(t);
	const trace = await s.trace(fs.readFileSync(path.join(root, 'tests/golden/profilo/realistic/input')));
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	const names = { speedscope: 0, chrome: 0, firefox: 0, folded: 0 };
	for (const kind of Object.keys(names)) {
		const { threads } = read[kind]((await exported(s, trace.id, kind)).text);
		assert.ok(threads.some((n) => /^main \(\d+, sampled\)$/.test(n)), `${kind}: ${threads}`);
		assert.ok(threads.some((n) => /^RenderThread \(\d+\)$/.test(n)), `${kind}: ${threads}`);
	}
	const { labels } = read.pprof((await exported(s, trace.id, 'pprof')).bytes);
	assert.deepEqual(new Set(labels.map((l) => l.source)), new Set(['sampled', 'calls']));
	assert.match((await exported(s, trace.id, 'csv')).text, /,"samples"\r\n/);
	await checkAll(s, trace.id, '');
});

test('obfuscated names are retraced, late mappings too', async (t) => {
	const s = await startServer(t);
	const trace = await s.trace(sampleTrace(), { query: { build_id: 'r1' } });
	const before = read.csv((await exported(s, trace.id, 'csv')).text);
	assert.ok([...before.methods.keys()].every((n) => n.startsWith('unknown:')));
	await s.put('/api/v1/builds/r1/methods', sampleMapping);
	await s.put('/api/v1/builds/r1/retrace', 'com.acme.Real -> com.example.app.Class0:\n    void start() -> method1\n');
	for (const kind of ['speedscope', 'chrome', 'firefox', 'd3', 'csv', 'folded'])
		assert.ok(read[kind]((await exported(s, trace.id, kind)).text).methods.has('com.acme.Real.start'), kind);
	assert.ok(read.pprof((await exported(s, trace.id, 'pprof')).bytes).methods.has('com.acme.Real.start'));
});

test('links that other tools may fetch', async (t) => {
	const s = await startServer(t, { args: ['--perfetto-ui', 'https://ui.example:8443/sub', '--public-url', 'https://traces.example'] });
	const trace = await s.trace(sampleTrace(), { query: { app: 'a b' } });
	const make = (body, key = s.read, id = trace.id) => s.ask('POST', `/api/v1/traces/${id}/tickets`, { key, body: JSON.stringify(body) });
	const fetched = (path, headers = {}) => s.get(path, { key: null, headers });

	const made = await make({ kind: 'csv', query: 'threads=4000' });
	assert.equal(made.status, 201, made.text);
	assert.equal(made.json.base, 'https://traces.example');
	assert.match(made.json.path, /^\/api\/v1\/tickets\/[\w-]+\/a_b--\w+\.methods\.csv$/);
	const ok = await fetched(made.json.path, { Origin: 'https://ui.example:8443' });
	assert.equal(ok.status, 200, ok.text);
	assert.equal(ok.text, (await exported(s, trace.id, 'csv', 'threads=4000')).text);
	assert.equal(ok.headers.get('access-control-allow-origin'), 'https://ui.example:8443');
	assert.match(ok.headers.get('cache-control'), /no-store/);
	for (const Origin of ['https://ui.example', 'https://ui.example:8443.evil.example', 'null', s.url])
		assert.equal((await fetched(made.json.path, { Origin })).headers.get('access-control-allow-origin'), null, Origin);
	assert.equal((await fetched(made.json.path, { Origin: 'https://www.speedscope.app' })).headers.get('access-control-allow-origin'), 'https://www.speedscope.app');
	const perfetto = await make({ kind: 'perfetto' });
	assert.equal((await fetched(perfetto.json.path)).bytes[0], 0x0a);

	await t.test('no letter of it can be changed', async () => {
		const [ticket, file] = made.json.path.split('/').slice(-2);
		for (let i = 0; i < ticket.length; i += 7) {
			const other = ticket.slice(0, i) + (ticket[i] === 'A' ? 'B' : 'A') + ticket.slice(i + 1);
			assert.equal((await fetched(`/api/v1/tickets/${other}/${file}`)).status, 401, `letter ${i}`);
		}
		for (const bad of ['x', ticket.slice(0, -1), `${ticket}A`, `${ticket}=`, 'A'.repeat(5000)])
			assert.equal((await fetched(`/api/v1/tickets/${bad}/${file}`)).status, 401, bad.slice(0, 20));
	});
	await t.test('an extra query changes nothing, another method is refused', async () => {
		assert.equal((await fetched(`${made.json.path}?threads=all&project=x`)).text, ok.text);
		assert.equal((await s.ask('DELETE', made.json.path, { key: null })).status, 405);
	});
	await t.test('it reads no other project and makes no link for one', async () => {
		assert.equal((await make({ kind: 'csv' }, s.key('read', 'other'))).status, 404);
		assert.equal((await make({ kind: 'csv' }, s.ingest)).status, 403);
		assert.equal((await make({ kind: 'csv' }, null)).status, 401);
	});
	await t.test('wishes that make no sense', async () => {
		for (const body of [{}, { kind: 'raw/trace' }, { kind: '../x' }, { kind: 'csv', query: 5 }, { kind: 'csv', query: 'a b' }, { kind: 'csv', query: 'x#y' },
			{ kind: 'csv', query: 'x'.repeat(1025) }, { kind: 'csv', query: 'a=\n' }])
			assert.equal((await make(body)).status, 400, JSON.stringify(body).slice(0, 60));
		const wrong = await make({ kind: 'csv', query: 'threads=nobody' });
		assert.equal((await fetched(wrong.json.path)).status, 404);
	});
	await t.test('it is over after its time, and with its trace', async () => {
		const other = await make({ kind: 'csv' });
		await s.ask('DELETE', `/api/v1/traces/${trace.id}`);
		assert.equal((await fetched(other.json.path)).status, 404);
		await s.stop();
		s.args.push('--ticket', '1');
		await s.start();
		const next = await s.trace(sampleTrace(31));
		const short = await make({ kind: 'csv' }, s.read, next.id);
		assert.equal(short.status, 201, short.text);
		const late = await until(async () => {
			const answer = await fetched(short.json.path);
			return answer.status === 200 ? undefined : answer;
		}, 'the end of its time');
		assert.equal(late.status, 401);
		assert.match(late.json.error.message, /expired/);
	});
	assert.ok(!s.log.includes(made.json.path.split('/').at(-2)), 'the log keeps no link');
});

test('a million calls of a real compiler', reads(samples), async (t) => {
	const s = await startServer(t, { args: ['--connection-timeout', '600'] }); // parsing keeps this side silent
	const dir = scratch(t);
	execFileSync('zstd', ['-dqf', path.join(samples, 'methodMapping.txt.zst'), '-o', path.join(dir, 'methodMapping.txt')]);
	fs.copyFileSync(path.join(samples, 'threads.txt'), path.join(dir, 'threads.txt'));
	const id = push(s, dir, '--mapping', path.join(dir, 'methodMapping.txt'), path.join(samples, 'rhea-atrace.bin.zst'));
	const trace = (await s.get(`/api/v1/traces/${id}`)).json;
	/* 150 MB: compressing and decompressing them takes most of the time; all other exports are compressed */
	await checkAll(s, id, '', inFull(['speedscope', 'pprof', 'csv'], ['speedscope', 'csv']), 'identity');
	await exported(s, id, 'pprof'); // for the server's memory; read for a range
	const from = trace.start_ns + Math.round((trace.end_ns - trace.start_ns) * 0.6);
	const q = `from=${from}&to=${from + Math.round((trace.end_ns - trace.start_ns) * 0.02)}`;
	await checkAll(s, id, q, ['speedscope', 'chrome', 'firefox', 'pprof', 'csv', 'folded']);
	assert.ok(s.resident() < 700, `${s.resident()} MiB`);
});

/* Six samples of 10 ms: inlined methods, an outline whose callers are found by its lines, and one whose
 * callers' lines have only the outer two methods in common. */
const STACKS = JSON.stringify({
	format: 'java-stacks/1', pid: 9, interval_ms: 10,
	frames: ['android.os.Looper.loop(Looper.java:99)', 'a.a.m(SourceFile:1)', 'a.a.m(SourceFile:2)', 'a.a.m(SourceFile:3)', 'a.a.m(SourceFile:27)',
		'a.a.m(SourceFile:28)', 'a.o.x(SourceFile:1)', 'a.o.x(SourceFile:2)'],
	stacks: [[1, 0], [2, 0], [6, 4, 0], [6, 5, 0], [7, 5, 0], [3, 0], []],
	threads: { 1: { name: 'main', sys_tid: 9 } },
	samples: [0, 1, 2, 3, 4, 5, 6].map((stack, i) => [i * 10_000_000, 1, stack]),
});
const INLINES = `shop.Made -> a.o:
    1:2:int outline():0:0 -> x
# {"id":"com.android.tools.r8.outline"}
shop.Cart -> a.a:
    1:1:void shop.Price.round():7:7 -> m
    1:1:int shop.Price.sum():21 -> m
    1:1:void pay():30 -> m
    2:2:int shop.Price.sum():22:22 -> m
    2:2:void pay():30 -> m
    3:3:void pay():31:31 -> m
    27:27:void pay():0:0 -> m
# {"id":"com.android.tools.r8.outlineCallsite","positions":{"1":1,"2":1}}
    28:28:void pay():0:0 -> m
# {"id":"com.android.tools.r8.outlineCallsite","positions":{"1":1,"2":2}}
`;

test('inlined methods are the same in all views and exports, and outlines in none', async (t) => {
	const s = await startServer(t);
	const ms = (rows) => Object.fromEntries([...rows].map(([name, { self, total }]) => [name, [self / 1e6, total / 1e6]]).sort());
	const want = { 'android.os.Looper.loop': [0, 60], 'shop.Cart.pay': [10, 60], 'shop.Price.round': [20, 20], 'shop.Price.sum': [30, 50] };
	const { id } = await s.trace(STACKS, { query: { build_id: 'inlined' } });
	assert.deepEqual(ms(await table(s, id)), { 'a.a.m': [30, 60], 'a.o.x': [30, 30], 'android.os.Looper.loop': [0, 60] });
	assert.equal(await checkAll(s, id, ''), 3, 'without a mapping, lines make no methods either');
	assert.equal((await s.put('/api/v1/builds/inlined/retrace', INLINES)).status, 200);
	const get = async (path) => {
		const answer = await s.get(`/api/v1/traces/${id}${path}`);
		assert.equal(answer.status, 200, answer.text);
		return answer.json;
	};

	assert.deepEqual(ms(await table(s, id)), want);
	assert.deepEqual(ms(await table(s, id, 'thread=9')), want);
	assert.equal(await checkAll(s, id, ''), 4);
	await checkAll(s, id, 'from=5000000&to=45000000');
	const lines = [];
	const walk = (node, path) => node.children.forEach((c) => {
		lines.push(`${path}${c.name} ${c.value / 1e6}`);
		walk(c, `${path}${c.name};`);
	});
	walk((await get('/flame')).children[0], '');
	assert.deepEqual(lines, ['shop.Cart.pay 60', 'shop.Cart.pay;shop.Price.sum 50', 'shop.Cart.pay;shop.Price.sum;shop.Price.round 20']);
	const found = await get('/search?q=Price');
	assert.deepEqual(found.methods.map((m) => [m.name, m.self_ns / 1e6]).sort(), [['shop.Price.round', 20], ['shop.Price.sum', 30]]);
	assert.equal((await get('/search?q=x')).total_methods, 0, 'neither the outline nor an obfuscated name is found');
	assert.ok((await get('/methods?p95=1&thread=all')).methods.every((m) => m.p95_ns > 0));
	const [main] = (await get('/threads')).threads;
	assert.equal(main.max_depth, 4);
	const directory = await get(`/slices?thread=${main.tid}`);
	assert.equal(directory.slices, main.slices);
	const chunk = await s.get(`/api/v1/traces/${id}/slices/${directory.chunks[0].chunk}`);
	assert.equal(chunk.bytes.readUInt32LE(4), main.slices, 'the timeline has as many');
	assert.doesNotMatch(chunk.headers.get('cache-control') ?? '', /immutable/, 'another mapping gives others');
	const { json: versus } = await s.get(`/api/v1/compare/methods?a=${id}&b=${id}`);
	assert.deepEqual(versus.methods.map((m) => m.name).sort(), Object.keys(want).sort());

	const perfetto = await s.get(`/api/v1/traces/${id}/perfetto`);
	const back = await s.trace(perfetto.bytes, {});
	assert.deepEqual(ms(await table(s, back.id)), want, 'Perfetto');

	const dir = scratch(t);
	const file = path.join(dir, 'stacks.json'), map = path.join(dir, 'mapping.txt'), out = path.join(dir, 'out.txt');
	fs.writeFileSync(file, STACKS);
	fs.writeFileSync(map, INLINES);
	const rows = tracewell('sql', file, '--retrace', map, '--json', 'SELECT name, sum(dur_ns) AS ns, count(*) AS n FROM slice GROUP BY name ORDER BY name');
	assert.deepEqual(Object.fromEntries(JSON.parse(rows).map((r) => [r.name, r.ns / 1e6])), Object.fromEntries(Object.entries(want).map(([n, v]) => [n, v[1]])));
	tracewell('export', file, '--retrace', map, '--to', 'csv', '-o', out);
	assert.deepEqual(ms(read.csv(fs.readFileSync(out, 'utf8')).methods), want);
	tracewell('perfetto', file, '--retrace', map, '-o', out);
	assert.deepEqual(ms(await table(s, (await s.trace(fs.readFileSync(out), {})).id)), want);
});

test('databases being made leave threads to other queries, and space to uploads', async (t) => {
	const data = newFolder(t, 'tracewell-export-');
	let s = await startServer(t, { data, args: ['--min-free', '0', '--query-threads', '2'] });
	const { id } = await s.trace(sampleTrace(200000));
	const get = () => s.get(`/api/v1/traces/${id}/export/sqlite`);
	const answers = await Promise.all([get(), get(), get(), get()]);
	const refused = answers.filter((a) => a.status !== 200);
	assert.ok(refused.length > 0 && refused.length < answers.length, answers.map((a) => a.status).join());
	for (const a of refused) {
		assert.equal(a.status, 503, a.text);
		assert.equal(a.json.error.message, 'too many exports of this format are in progress: retry later');
		assert.equal(a.headers.get('retry-after'), '1');
	}
	assert.equal((await get()).status, 200);

	await s.stop();
	s = await startServer(t, { data, args: ['--min-free', '99'] });
	const full = await get();
	assert.equal(full.status, 507);
	assert.equal(full.json.error.message, "the server has too little disk space for this export; other formats need none");
	assert.equal(full.headers.get('content-disposition'), null, 'a browser would save the error');
});
