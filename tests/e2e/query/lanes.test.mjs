/*
 * lanes.test.mjs - the timeline's requests other than calls: lanes and sums of notes, activity.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { frameTimeline, systemTrace } from '../make.mjs';
import { root, startServer, until } from '../server.mjs';

const golden = fs.readFileSync(path.join(root, 'tests/golden/perfetto/realistic/input'));

/* The notes that runs of one note represent, as /notes returns them. */
function unrolled(lanes, l) {
	let at = lanes.from_ns;
	return l.step_ns.map((step, i) => {
		at += step;
		return { kind: l.kind, tid: l.tid, ts_ns: at, dur_ns: l.dur_ns[i] < 0 ? null : l.dur_ns[i], value: l.value[i], text: lanes.texts[l.text[i]] };
	});
}

test('lanes, sums and activity', async (t) => {
	const s = await startServer(t);
	const trace = await s.trace(golden, {});
	const at = `/api/v1/traces/${trace.id}`;
	const { notes } = (await s.get(`${at}/notes`)).json;

	await t.test('lanes with space for each note match /notes', async () => {
		const lanes = (await s.get(`${at}/notes/lanes?cells=4096&kind=state,wakeup&from=${trace.start_ns}&to=${trace.end_ns}`)).json;
		const reported = lanes.lanes.flatMap((l) => unrolled(lanes, l).filter((_, i) => l.notes[i] === 1));
		assert.equal(lanes.partial, false);
		assert.ok(reported.length > 3);
		for (const n of reported)
			assert.ok(notes.some((x) => Object.keys(n).every((k) => x[k] === n[k])), JSON.stringify(n));
		const all = lanes.lanes.flatMap((l) => l.notes).reduce((a, b) => a + b, 0);
		assert.equal(all, notes.filter((n) => n.kind === 'state' || n.kind === 'wakeup').length);
	});

	await t.test('one cell is one run a lane', async () => {
		const { lanes } = (await s.get(`${at}/notes/lanes?cells=1&kind=counter`)).json;
		assert.ok(lanes.length > 0);
		for (const l of lanes) assert.deepEqual([l.notes.length, l.high.length, l.name !== ''], [1, 1, true]);
	});

	await t.test('expected and actual frames have lanes and sums of their own', async () => {
		const { lanes } = (await s.get(`${at}/notes/lanes?cells=4096&kind=frame`)).json;
		const { sums } = (await s.get(`${at}/notes/sums`)).json;
		const of = (timeline) => notes.filter((n) => n.kind === 'frame' && n.detail.timeline === timeline && n.ts_ns < trace.end_ns);
		for (const timeline of ['expected', 'actual']) {
			const all = lanes.filter((l) => l.name.startsWith(timeline));
			assert.ok(of(timeline).length > 0);
			assert.equal(all.flatMap((l) => l.notes).reduce((a, b) => a + b, 0), of(timeline).length);
			const { dur_ns } = sums.find((x) => x.kind === 'frame' && x.text === `${timeline} surface`);
			assert.equal(dur_ns, of(timeline).filter((n) => n.detail.of === 'surface').reduce((a, n) => a + n.dur_ns, 0));
		}
	});

	await t.test('overlapping frames are on different rows, the same for every range, and have a lane per outcome', async () => {
		const janks = [[10, 1], [24, 128], [24, 128 | 64], [12, 1], [30, 16], [40, 1024], [10, 256], [10, 0]];
		const id = (await s.trace(Buffer.concat([systemTrace(), frameTimeline(janks)]), {})).id;
		const lanesOf = async (range) => {
			const lanes = (await s.get(`/api/v1/traces/${id}/notes/lanes?cells=4096&kind=frame${range}`)).json;
			return lanes.lanes.filter((l) => l.name === 'actual surface').flatMap((l) => unrolled(lanes, l).map((n) => ({ ...n, row: l.row, outcome: l.outcome }))).sort((a, b) => a.value - b.value);
		};
		const all = await lanesOf('');
		assert.deepEqual(all.map((n) => n.outcome), ['on_time', 'queued', 'late_app', 'on_time', 'late_other', 'dropped', 'late_other', '']);
		assert.deepEqual(all.map((n) => n.row), [0, 0, 1, 0, 0, 1, 0, 0]);
		const late = await lanesOf(`&from=${all[2].ts_ns + 1e6}&to=${all[4].ts_ns + 2e6}`);
		assert.deepEqual(late.map((n) => [n.value, n.row]), all.slice(1, 5).map((n) => [n.value, n.row]));
		const { notes: frames } = (await s.get(`/api/v1/traces/${id}/notes?kind=frame`)).json;
		assert.deepEqual(frames.filter((n) => n.detail.timeline === 'actual').map((n) => n.outcome ?? ''), all.map((n) => n.outcome));
		assert.deepEqual([...new Set(frames.filter((n) => n.detail.timeline === 'expected').map((n) => n.outcome))], [undefined]);
	});

	await t.test('sums are those of /notes', async () => {
		const { sums, partial } = (await s.get(`${at}/notes/sums`)).json;
		assert.equal(partial, false);
		assert.equal(sums.reduce((n, x) => n + x.notes, 0), notes.length);
		for (const x of sums.filter((y) => y.kind === 'state')) {
			const same = notes.filter((n) => n.kind === 'state' && n.tid === x.tid && n.text === x.text);
			assert.equal(x.dur_ns, same.reduce((n, y) => n + y.dur_ns, 0));
		}
	});

	await t.test('activity of the complete trace equals that of the thread list', async () => {
		const { threads } = (await s.get(`${at}/threads`)).json;
		const { threads: strips } = (await s.get(`${at}/activity?cells=128&from=${trace.start_ns}&to=${trace.end_ns}`)).json;
		for (const x of strips) assert.deepEqual(x.activity, threads.find((y) => y.tid === x.tid && y.slices > 0).activity);
	});

	await t.test('a search finds events of all kinds by text, thread and detail, and counts all of them', async () => {
		const { threads } = (await s.get(`${at}/threads`)).json;
		const target = new Set(['contention', 'binder', 'wakeup', 'flow', 'thread_created']);
		const named = (tid) => { const t = threads.find((x) => x.tid === tid); return t ? t.name || `thread ${tid}` : ''; };
		const texts = (n) => [n.text, named(n.tid), n.value > 0 && target.has(n.kind) ? named(n.value) : '', ...Object.values(n.detail ?? {}).map((v) => (typeof v === 'string' ? v : JSON.stringify(v)))];
		const words = [...new Set(notes.flatMap((n) => texts(n)).filter((w) => w.length > 3))];
		for (const [q, regex] of [...words.slice(0, 40).map((w) => [w.slice(1).toUpperCase(), false]), ['^run', true], ['e$', true], ['in no event', false]]) {
			const wanted = notes.filter((n) => texts(n).some((x) => (regex ? new RegExp(q, 'i').test(x) : x.toLowerCase().includes(q.toLowerCase()))));
			const { json } = await s.get(`${at}/notes`, { query: { q, ...(regex && { regex }) } });
			assert.deepEqual(json.notes, wanted, q);
			const counts = {};
			for (const n of wanted) counts[n.kind] = (counts[n.kind] ?? 0) + 1;
			assert.deepEqual(json.matches, counts, q);
			const kind = Object.keys(counts)[0];
			if (!kind) continue;
			const one = (await s.get(`${at}/notes`, { query: { q, kind, limit: 1, ...(regex && { regex }) } })).json;
			assert.deepEqual([one.notes, one.matches], [[wanted.find((n) => n.kind === kind)], counts], 'the first of a kind, and the counts of all');
			if (counts[kind] > 1) assert.deepEqual((await s.get(`${at}/notes`, { query: { q, kind, limit: 1, cursor: one.next_cursor, ...(regex && { regex }) } })).json.notes, [wanted.filter((n) => n.kind === kind)[1]]);
		}
		assert.ok(words.length > 10);
		assert.equal((await s.get(`${at}/notes?q=(&regex=true`)).status, 400);
	});

	await t.test('a search finds events of a thread without a name by the one that pages show', async () => {
		const mark = { ph: 'i', pid: 1, ts: 5, name: 'mark' };
		const other = await s.trace(JSON.stringify([{ ph: 'X', pid: 1, tid: 4711, ts: 1, dur: 9, name: 'a' }, { ...mark, tid: 4711 }, { ...mark, tid: 4712 }]));
		const found = (await s.get(`/api/v1/traces/${other.id}/notes`, { query: { q: 'Thread 4711' } })).json.notes;
		assert.deepEqual(found.map((n) => n.tid), [4711]);
	});

	await t.test('a regular expression that is too costly is refused', async () => {
		const other = await s.trace(JSON.stringify([{ ph: 'X', pid: 1, tid: 1, ts: 1, dur: 9, name: 'a' }, { ph: 'i', pid: 1, tid: 1, ts: 5, name: `${'a'.repeat(200)}b` }]));
		const r = await s.get(`/api/v1/traces/${other.id}/notes`, { query: { q: '(a|aa)+c|b', regex: true } });
		assert.deepEqual([r.status, /too costly for names like a{60}: /.test(r.json.error.message)], [400, true], r.text);
	});

	await t.test('invalid queries are refused', async () => {
		for (const q of ['notes/lanes?kind=nothing', 'notes/lanes?cells=0', 'notes/lanes?cells=4097', 'notes/lanes?from=5&to=5', 'activity?cells=0', 'notes/sums?from=9&to=2'])
			assert.equal((await s.get(`${at}/${q}`)).status, 400, q);
		for (const q of ['notes/lanes', 'notes/sums', 'activity']) assert.equal((await s.get(`${at}/${q}?thread=999999`)).status, 404, q);
	});
});

test('notes and findings of a trace of a million events', { timeout: 900_000 }, async (t) => {
	const s = await startServer(t);
	const events = ['{"ph":"X","pid":1,"tid":1,"ts":1,"dur":20000000,"name":"main"}'];
	for (let i = 1; i < 1_000_000; i++) events.push(`{"ph":"i","pid":1,"tid":1,"ts":${i * 10},"name":"n${i % 9}"}`);
	const { id } = (await s.post('/api/v1/traces', `[${events.join(',\n')}]`)).json;
	await until(async () => ((await s.get(`/api/v1/traces/${id}`)).json.state === 'ready' ? true : undefined), 'the trace decoded', 240);
	const notes = await s.get(`/api/v1/traces/${id}/notes?limit=10`);
	assert.equal(notes.status, 200, notes.text);
	assert.deepEqual(notes.json.kinds, { instant: 999_999 });
	const found = await s.get(`/api/v1/traces/${id}/notes?q=N3&limit=10`);
	assert.deepEqual([found.json.notes.length, found.json.matches], [10, { instant: 111_111 }], 'all are searched');
	const last = await s.get(`/api/v1/traces/${id}/notes?from=9999990000&to=9999999999`);
	assert.deepEqual(last.json.notes.map((n) => n.ts_ns), [9_999_990_000]);
	assert.equal((await s.get(`/api/v1/traces/${id}/findings`)).status, 200);
	assert.doesNotMatch(s.log, /event=stage_(postponed|failed)/);
});

test('a search that reached its deadline is marked, and the next page continues there', async (t) => {
	const s = await startServer(t, { args: ['--query-deadline', '1'] });
	const events = Array.from({ length: 20_000 }, (_, i) => ({ ph: 'i', pid: 1, tid: 1, ts: i, name: `${i}${'a'.repeat(200)}b` }));
	const { id } = await s.trace(JSON.stringify([{ ph: 'X', pid: 1, tid: 1, ts: 1, dur: 20_000, name: 'main' }, ...events]));
	const search = (query) => s.get(`/api/v1/traces/${id}/notes`, { query: { q: 'a+c|z', regex: true, ...query } });
	const { status, headers, json, text } = await search({});
	assert.equal(status, 200, text);
	assert.deepEqual([json.notes, json.partial, headers.get('etag'), headers.get('cache-control')], [[], true, null, 'no-store']);
	assert.ok(json.next_cursor > 0 && json.next_cursor < events.length);
	assert.ok((await search({ cursor: json.next_cursor })).json.next_cursor !== json.next_cursor);
	const sums = await s.get(`/api/v1/traces/${id}/notes/sums`);
	assert.ok(sums.json.partial === false || sums.headers.get('etag') === null, 'sums are quick: they may be complete, and even be sent before the deadline');
});
