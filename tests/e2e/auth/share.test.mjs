/*
 * share.test.mjs - titles, pins, tags, annotations and saved lists.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { startServer, tracewell } from '../server.mjs';

const HOSTILE = ['<img src=x onerror=alert(1)>', "'; DROP TABLE trace; --", '‮gnp.exe', '%s%n', '💥 ünï'];
const GONE = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
const json = (v) => JSON.stringify(v);

async function withTrace(t) {
	const s = await startServer(t);
	const trace = await s.trace(sampleTrace(), { query: { build_id: 'b1', app: 'a' } });
	const at = `/api/v1/traces/${trace.id}`;
	const mark = (v, options = {}) => s.ask('PATCH', at, { key: s.write, body: typeof v === 'string' || Buffer.isBuffer(v) ? v : json(v), ...options });
	const write = (v) => s.ask('POST', `${at}/annotations`, { key: s.write, body: typeof v === 'string' || Buffer.isBuffer(v) ? v : json(v) });
	const annotations = async () => (await s.get(`${at}/annotations`)).json.annotations;
	return { s, trace, at, mark, write, annotations };
}

/* Text that no field takes, whatever its limit. */
const notText = (name) => [
	Buffer.concat([Buffer.from(`{"${name}":"`), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]),
	`{"${name}":"a\\u0000b"}`, `{"${name}":"\\ud800"}`, `{"${name}":"\\u0007"}`, `{"${name}":7}`, `{"${name}":null}`, `{"${name}"`, '[]', '',
];

test('a trace has a title, a pin and tags', async (t) => {
	const { s, trace, at, mark } = await withTrace(t);
	assert.deepEqual([trace.title, trace.pinned, trace.tags, trace.annotations], ['', false, [], 0]);

	const one = await mark({ title: 'cold start, slow', pinned: true, tags: ['slow', 'cold', 'slow'] });
	assert.equal(one.status, 200, one.text);
	assert.deepEqual([one.json.title, one.json.pinned, one.json.tags], ['cold start, slow', true, ['cold', 'slow']]);
	const two = await mark({ pinned: false });
	assert.deepEqual([two.json.title, two.json.pinned, two.json.tags], ['cold start, slow', false, ['cold', 'slow']], 'what is not said stays');
	assert.equal((await mark({ title: '', tags: [] })).json.title, '');

	for (const text of HOSTILE) {
		const tag = text.replaceAll(',', '');
		assert.equal((await mark({ title: text, tags: [tag] })).status, 200, text);
		const got = (await s.get(at)).json;
		assert.deepEqual([got.title, got.tags], [text, [tag]]);
		const found = await s.get('/api/v1/traces', { query: { tag } });
		assert.deepEqual(found.json.traces.map((x) => x.id), [trace.id], text);
	}

	await t.test('at the limits, and one past them', async () => {
		assert.equal((await mark({ title: 'x'.repeat(200) })).status, 200);
		assert.equal((await mark({ title: 'x'.repeat(201) })).status, 400);
		assert.equal((await mark({ tags: ['x'.repeat(64)] })).status, 200);
		assert.equal((await mark({ tags: ['x'.repeat(65)] })).status, 400);
		const many = (n) => Array.from({ length: n }, (_, i) => `t${i}`);
		assert.equal((await mark({ tags: many(20) })).json.tags.length, 20);
		assert.equal((await mark({ tags: many(21) })).status, 400);
		assert.equal((await s.get(at)).json.tags.length, 20, 'a refusal changes nothing');
	});
	await t.test('tags are added and removed beside those of others', async () => {
		const names = Array.from({ length: 20 }, (_, n) => `t${String(n).padStart(2, '0')}`);
		await mark({ tags: ['old'] });
		for (const r of await Promise.all([...names.slice(0, 18).map((n) => mark({ add_tags: [n, n] })), mark({ remove_tags: ['old', 'none'] })])) assert.equal(r.status, 200, r.text);
		assert.deepEqual((await s.get(at)).json.tags, names.slice(0, 18));
		const full = await mark({ add_tags: ['x', 'y', 'z'] });
		assert.equal(full.status, 409, full.text);
		assert.equal(full.json.error.message, 'a trace has at most 20 tags');
		assert.deepEqual((await mark({ add_tags: ['x', 'y', 'z'], remove_tags: ['t00', 'x'] })).json.tags, [...names.slice(1, 18), 'y', 'z']);
		assert.deepEqual((await mark({ tags: names, add_tags: ['t00'] })).json.tags, names);
	});
	await t.test('invalid values are refused', async () => {
		const before = (await s.get(at)).json;
		for (const bad of [...notText('title'), { tags: [''] }, { tags: ['  '] }, { tags: ['a,b'] }, { tags: 'a' }, { tags: [1] }, { tags: ['a\nb'] }, { add_tags: ['a,b'] }, { remove_tags: 'a' },
			{ pinned: 'yes' }, { pinned: null }, {}, { title: 'x', app: 'y' }, { title: 'good', tags: [''] }]) {
			const r = await mark(bad);
			assert.equal(r.status, 400, `${bad} ${r.text}`);
			assert.ok(r.json.error.message.length > 10);
		}
		assert.equal((await mark({ title: 'x'.repeat(1 << 20) })).status, 413);
		assert.deepEqual((await s.get(at)).json, before);
		assert.equal((await s.ask('PATCH', `/api/v1/traces/${GONE}`, { key: s.write, body: '{"pinned":true}' })).status, 404);
		assert.equal((await mark({ pinned: true }, { key: s.read })).status, 403);
		assert.equal((await mark({ pinned: true }, { key: s.key('write', 'other') })).status, 404);
	});
});

test('lists are filtered by tag, pin and title', async (t) => {
	const { s, trace, mark } = await withTrace(t);
	const other = await s.trace(sampleTrace(2), { query: { app: 'b' } });
	await mark({ title: 'Morning', pinned: true, tags: ['slow', 'cold'] });
	await s.ask('PATCH', `/api/v1/traces/${other.id}`, { key: s.write, body: json({ tags: ['slow'] }) });
	const ids = async (query) => {
		const { json: page } = await s.get('/api/v1/traces', { query });
		assert.equal(page.total, page.traces.length);
		return page.traces.map((x) => x.id).sort();
	};
	const both = [trace.id, other.id].sort();
	assert.deepEqual(await ids({ tag: 'slow' }), both);
	assert.deepEqual(await ids({ tag: 'slow,cold' }), [trace.id]);
	assert.deepEqual(await ids({ tag: 'slo' }), []);
	assert.deepEqual(await ids({ pinned: 'true' }), [trace.id]);
	assert.deepEqual(await ids({ q: 'orning' }), [trace.id]);
	assert.deepEqual(await ids({ tag: 'slow', app: 'b' }), [other.id]);
	assert.equal((await s.get('/api/v1/traces', { query: { tag: Array(9).fill('a').join(',') } })).status, 400);
	assert.equal((await s.get('/api/v1/traces', { query: { pinned: 'perhaps' } })).status, 400);
	const { values } = (await s.get('/api/v1/facets?column=tag')).json;
	assert.deepEqual(values, [{ value: 'slow', count: 2 }, { value: 'cold', count: 1 }]);
	assert.deepEqual((await s.get('/api/v1/facets?column=tag', { key: s.key('read', 'other') })).json.values, []);
	await s.ask('DELETE', `/api/v1/traces/${trace.id}`);
	assert.deepEqual((await s.get('/api/v1/facets?column=tag')).json.values, [{ value: 'slow', count: 1 }], 'tags go with the trace');
});

test('annotations at a time and on a method', async (t) => {
	const { s, trace, at, write, annotations } = await withTrace(t);
	assert.deepEqual(await annotations(), []);
	const began = Date.now();
	const made = await write({ text: 'here it\n\tstalls', ts_ns: 1000, dur_ns: 500, tid: 4000 });
	assert.equal(made.status, 201, made.text);
	assert.equal((await write({ text: 'hot', method: 0 })).status, 201);
	let [first, second] = await annotations();
	assert.equal(first.id, made.json.id);
	assert.deepEqual([first.text, first.ts_ns, first.dur_ns, first.tid, first.method, first.method_name], ['here it\n\tstalls', 1000, 500, 4000, null, null]);
	assert.ok(first.created_ms >= began && first.created_ms <= Date.now() && first.updated_ms === 0);
	assert.ok(first.author.length > 0);
	assert.deepEqual([second.ts_ns, second.tid, second.method], [null, null, 0]);
	assert.equal((await s.get(at)).json.annotations, 2);
	assert.equal((await s.get('/api/v1/traces')).json.traces[0].annotations, 2);

	await t.test('a mapping that comes later names the method', async () => {
		const before = second.method_name;
		await s.put('/api/v1/builds/b1/methods', sampleMapping);
		[, second] = await annotations();
		assert.notEqual(second.method_name, before);
		assert.equal(second.method_name, (await s.get(`${at}/names`)).json.names[0]);
	});
	await t.test('changed and deleted', async () => {
		const one = `${at}/annotations/${first.id}`;
		assert.equal((await s.ask('PATCH', one, { key: s.write, body: json({ text: 'better' }) })).status, 204);
		[first] = await annotations();
		assert.equal(first.text, 'better');
		assert.ok(first.updated_ms >= first.created_ms);
		assert.equal((await s.ask('PATCH', one, { key: s.write, body: json({ text: ' ' }) })).status, 400);
		assert.equal((await s.ask('PATCH', `${at}/annotations/${GONE}`, { key: s.write, body: json({ text: 'x' }) })).status, 404);
		assert.equal((await s.ask('DELETE', one, { key: s.read })).status, 403);
		assert.equal((await s.ask('DELETE', one, { key: s.key('write', 'other') })).status, 404);
		assert.equal((await s.ask('DELETE', one)).status, 204);
		assert.equal((await s.ask('DELETE', one)).status, 404);
		assert.deepEqual((await annotations()).map((a) => a.id), [second.id]);
		assert.equal((await s.get(at)).json.annotations, 1);
	});
	await t.test('invalid values are refused', async () => {
		for (const bad of [...notText('text'), { text: 'nowhere' }, { text: 'x', tid: 4000 }, { text: 'x', dur_ns: 5, method: 0 }, { text: 'x', ts_ns: -1 },
			{ text: 'x', ts_ns: 1.5 }, { text: 'x', ts_ns: '1' }, { text: '', ts_ns: 1 }, { text: '\n', ts_ns: 1 }, { text: 'x'.repeat(4001), ts_ns: 1 },
			{ text: 'x', ts_ns: Number.MAX_SAFE_INTEGER, dur_ns: 1e300 }, '{"text":"x","ts_ns":9223372036854775807,"dur_ns":1}'])
			assert.equal((await write(bad)).status, 400, json(bad).slice(0, 80));
		for (const missing of [{ text: 'x', ts_ns: 1, tid: 77 }, { text: 'x', method: 1e6 }]) assert.equal((await write(missing)).status, 404);
		assert.equal((await write({ text: 'x'.repeat(1 << 20), ts_ns: 1 })).status, 413);
		assert.equal((await annotations()).length, 1);
	});
	await t.test('hostile text comes back as it was', async () => {
		for (const text of HOSTILE) assert.equal((await write({ text, ts_ns: 1 })).status, 201);
		assert.equal((await write({ text: 'é'.repeat(2000), ts_ns: 1 })).status, 201, '4000 bytes');
		assert.deepEqual((await annotations()).slice(1, 1 + HOSTILE.length).map((a) => a.text), HOSTILE);
	});
	await t.test('limits on their number', async () => {
		for (let i = (await annotations()).length; i < 500; i++) assert.equal((await write({ text: 'n', ts_ns: i })).status, 201, String(i));
		const full = await write({ text: 'one too many', ts_ns: 1 });
		assert.equal(full.status, 409);
		assert.match(full.json.error.message, /500/);
		assert.equal((await s.ask('DELETE', `${at}/annotations/${second.id}`)).status, 204);
		assert.equal((await write({ text: 'room again', ts_ns: 1 })).status, 201);
	});
	assert.equal((await s.ask('DELETE', at)).status, 204);
	assert.equal((await s.get(`${at}/annotations`)).status, 404, 'they go with the trace');
	assert.equal(trace.state, 'ready');
});

test('its author', async (t) => {
	const { s, write, annotations } = await withTrace(t);
	await write({ text: 'a', ts_ns: 1 });
	const named = await s.ask('POST', '/api/v1/keys', { key: s.key('admin'), body: json({ name: 'nightly <b>bot</b>', scope: 'write' }) });
	assert.equal(named.status, 201, named.text);
	await s.ask('POST', `/api/v1/traces/${(await s.get('/api/v1/traces')).json.traces[0].id}/annotations`, { key: named.json.key, body: json({ text: 'b', ts_ns: 1 }) });
	const authors = (await annotations()).map((a) => a.author);
	assert.equal(authors.length, 2);
	assert.equal(authors[1], 'nightly <b>bot</b>');
	assert.notEqual(authors[0], authors[1]);
});

test('lists are saved under a name', async (t) => {
	const s = await startServer(t);
	const keep = (name, query, key = s.write) => s.put(`/api/v1/filters/${encodeURIComponent(name)}`, typeof query === 'string' ? json({ query }) : query, { key });
	const list = async (key = s.read) => (await s.get('/api/v1/filters', { key })).json.filters;
	assert.deepEqual(await list(), []);
	for (const name of [...HOSTILE, 'a/b', 'x'.repeat(100)]) assert.equal((await keep(name, 'tag=slow')).status, 204, name);
	assert.equal((await keep('a/b', 'app=z')).status, 204);
	const all = await list();
	assert.equal(all.length, HOSTILE.length + 2);
	assert.equal(all.find((f) => f.name === 'a/b').query, 'app=z');
	assert.ok(all.every((f) => f.author && f.updated_ms > 0));
	assert.deepEqual(await list(s.key('read', 'other')), []);

	assert.equal((await keep('x'.repeat(101), '')).status, 400);
	assert.equal((await keep(' ', '')).status, 400);
	assert.equal((await keep('q', 'x'.repeat(2000))).status, 204);
	assert.equal((await keep('q', 'x'.repeat(2001))).status, 400);
	for (const bad of notText('query')) assert.equal((await keep('q', Buffer.from(bad))).status, 400, String(bad));
	assert.equal((await keep('q', '', s.read)).status, 403);
	assert.equal((await s.put('/api/v1/filters/%00', json({ query: '' }), { key: s.write })).status, 400);
	assert.equal((await s.put('/api/v1/filters/%ff', json({ query: '' }), { key: s.write })).status, 400);

	const one = '/api/v1/filters/a%2Fb';
	assert.equal((await s.ask('DELETE', one, { key: s.key('write', 'other') })).status, 404);
	assert.equal((await s.ask('DELETE', one)).status, 204);
	assert.equal((await s.ask('DELETE', one)).status, 404);
	for (let i = (await list()).length; i < 100; i++) assert.equal((await keep(`n${i}`, '')).status, 204);
	assert.equal((await keep('one too many', '')).status, 409);
	assert.equal((await keep('q', 'app=known')).status, 204, 'a known name is no new one');
});

test('a project is made, once a name', async (t) => {
	const s = await startServer(t);
	const link = tracewell('link', 'create', '--data', s.data).split('#')[1];
	const signed = await s.ask('POST', '/api/v1/session', { key: null, body: json({ token: link }) });
	const as = { key: null, headers: { Cookie: signed.headers.get('set-cookie').split(';')[0], 'X-Tracewell': '1' } };
	const make = (body) => s.ask('POST', '/api/v1/projects', { ...as, body });
	const made = await make(json({ name: HOSTILE[0] }));
	assert.equal(made.status, 201, made.text);
	assert.equal(made.json.name, HOSTILE[0]);
	assert.equal((await make(json({ name: HOSTILE[0] }))).status, 409);
	for (const bad of [...notText('name'), '{"name":""}', '{"name":"  "}', json({ name: 'x'.repeat(101) })]) assert.equal((await make(bad)).status, 400, String(bad));
	assert.equal((await make(json({ name: 'x'.repeat(100) }))).status, 201);
	const { projects } = (await s.ask('GET', '/api/v1/projects', as)).json;
	assert.equal(projects.length, 2);
	const key = await s.ask('POST', '/api/v1/keys', { ...as, query: { project: made.json.id }, body: json({ name: 'k', scope: 'ingest' }) });
	assert.equal(key.status, 201, key.text);
	assert.equal((await s.post('/api/v1/traces', sampleTrace(), { key: key.json.key })).status, 202);
});
