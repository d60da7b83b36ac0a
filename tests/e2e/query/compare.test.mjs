/*
 * compare.test.mjs - comparisons of two selections of traces, checked against sums of the responses for
 * each trace.
 */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';

import { btrace, sampleMapping, sampleTrace } from '../make.mjs';
import { startServer } from '../server.mjs';

const GONE = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
const PID = 4000;
const ends = [];
let s, a1, a2, b1, unnamed;

/* Method 1 makes `inner` calls of method 2, or of the given one, each `ns` long. */
function trace(inner, ns, callee = 2, other = 0) {
	const records = [];
	for (let i = 0; i < inner; i++) records.push([PID, callee, 1000 + i * ns, ns]);
	records.push([PID, 1, 1000, inner * ns + 500]);
	if (other) records.push([PID + 1, other, 2000, 7777]);
	return btrace(records, { pid: PID });
}

before(async (t) => {
	s = await startServer({ after: (f) => ends.push(f) });
	const send = (body, build = 'b1') => s.trace(body, { query: { build_id: build, app: 'shop' } });
	await s.put('/api/v1/builds/b1/methods', sampleMapping);
	// the next build numbers its methods another way round
	await s.put('/api/v1/builds/b2/methods', sampleMapping.replace(/^(\d),/gm, (_, n) => `${10 - n},`));
	[a1, a2] = [await send(trace(3, 1000, 2, 4)), await send(trace(5, 1000))];
	b1 = await send(btrace([[PID, 8, 1000, 9000], [PID, 7, 11000, 300], [PID, 9, 1000, 11000]], { pid: PID }), 'b2');
	unnamed = await send(sampleTrace(2), 'b3');
});

test.after(async () => {
	for (const f of ends) await f();
});

const compare = (query) => s.get('/api/v1/compare', { query });
const table = (query) => s.get('/api/v1/compare/methods', { query });

/* name path -> [a, b] of { ns, self, count } */
function nodes(json) {
	const name = new Map(json.names.map((n) => [n.method, n.name]));
	const path = [];
	return new Map(json.parent.map((p, i) => {
		path[i] = i === 0 ? '' : `${path[p]}/${json.other[i] ? '(other)' : name.get(json.method[i])}`;
		return [path[i], ['a', 'b'].map((k) => ({ ns: json[`${k}_ns`][i], self: json[`${k}_self_ns`][i], count: json[`${k}_count`][i] }))];
	}));
}

/* The same out of each trace's own flame graph. */
async function naive(sides, parts = ['', '']) {
	const sum = new Map();
	for (const [side, ids] of sides.entries())
		for (const id of ids) {
			const walk = (node, path) => {
				const at = sum.get(path) ?? [{ ns: 0, self: 0, count: 0 }, { ns: 0, self: 0, count: 0 }];
				sum.set(path, at);
				at[side].ns += node.value;
				at[side].self += node.self;
				at[side].count += path ? node.count : 0;
				for (const c of node.children) walk(c, `${path}/${c.name}`);
			};
			walk((await s.get(`/api/v1/traces/${id}/flame?max_nodes=100000${parts[side]}`)).json, '');
		}
	return sum;
}

test('two ranges of one trace are compared, each of its own threads', async () => {
	const from = a2.start_ns;
	const [first, second] = [[from, from + 2000], [from + 2500, from + 5400]];
	const ask = (sides) => compare({ a: a2.id, b: a2.id, ...sides });
	const of = ([a, b]) => ({ a_from: a[0], a_to: a[1], b_from: b[0], b_to: b[1] });
	const part = ([a, b]) => `&from=${a}&to=${b}`;
	const { json, status, text } = await ask(of([first, second]));
	assert.equal(status, 200, text);
	assert.deepEqual([json.a_ns[0], json.b_ns[0]], [2000, 2900]);
	const got = nodes(json);
	got.get('').forEach((side) => (side.count = 0));
	assert.deepEqual([...got].sort(), [...await naive([[a2.id], [a2.id]], [part(first), part(second)])].sort());
	const threads = (await compare({ a: a1.id, b: a1.id, a_thread: PID, b_thread: PID + 1, b_from: a1.start_ns, b_to: a1.end_ns })).json;
	assert.deepEqual([threads.a_ns[0], threads.b_ns[0]], [3500, 7777]);
	const methods = (await table({ a: a2.id, b: a2.id, ...of([first, second]) })).json;
	assert.equal(methods.methods.reduce((n, m) => n + m.b.self_ns, 0), 2900);
	assert.match((await ask({ a_from: 9, a_to: 9 })).json.error.message, /^a_from must be less than a_to/);
});

test('calls of both sides are one tree, by name, whatever their ids are', async () => {
	for (const [a, b] of [[[a1.id], [b1.id]], [[a1.id, a2.id], [b1.id]], [[b1.id], [a1.id, a2.id]], [[a1.id], [a1.id]]]) {
		const { json, status, text } = await compare({ a: a.join(), b: b.join() });
		assert.equal(status, 200, text);
		const got = nodes(json);
		got.get('').forEach((side) => (side.count = 0));
		assert.deepEqual([...got].sort(), [...await naive([a, b])].sort());
		assert.equal(json.total_nodes, json.shown_nodes);
		assert.deepEqual([json.a.map((x) => x.trace.id), json.b.map((x) => x.trace.id)], [a, b]);
	}
	const { json } = await compare({ a: a1.id, b: b1.id });
	const both = nodes(json).get('/com.example.app.Class0.method1');
	assert.ok(both[0].count === 1 && both[1].count === 1, 'method 1 of one build is method 9 of the other');
	assert.deepEqual([json.a[0].methods, json.a[0].named, json.b[0].trace.meta.build_id], [3, 3, 'b2']);
});

test('a part of the tree, its cut, and the main thread', async () => {
	const { json } = await compare({ a: a1.id, b: b1.id });
	const top = json.parent.findIndex((p, i) => i > 0 && p === 0);
	const part = (await compare({ a: a1.id, b: b1.id, root: json.method[top] })).json;
	assert.deepEqual([part.a_ns[0], part.b_ns[0]], [json.a_ns[top], json.b_ns[top]]);
	const inner = json.parent.findIndex((p) => p > 0);
	const way = [json.method[json.parent[inner]], json.method[inner]];
	const deep = (await compare({ a: a1.id, b: b1.id, root: way.join('.') })).json;
	assert.deepEqual(deep.names, json.names.filter((n) => way.includes(n.method)), 'a link needs the names of its path');
	const cut = (await compare({ a: a1.id, b: b1.id, max_nodes: 1 })).json;
	assert.equal(cut.shown_nodes, 1);
	assert.equal(cut.other.reduce((x, y) => x + y) + 1, cut.total_nodes);
	const main = (await compare({ a: a1.id, b: b1.id, thread: 'main' })).json;
	assert.deepEqual([main.a_ns[0], main.b_ns[0]], [json.a_ns[0] - 7777, json.b_ns[0]]);
	assert.equal((await compare({ a: a1.id, b: b1.id, root: '4294967290' })).status, 404);
});

test('the calls of one method on both sides, whatever called them', async () => {
	const sides = { a: `${a1.id},${a2.id}`, b: b1.id };
	const whole = nodes((await compare(sides)).json);
	const path = [...whole.keys()].find((p) => p.split('/').length === 3);
	const name = path.split('/')[2];
	const one = nodes((await compare({ ...sides, focus: name })).json);
	assert.deepEqual([...one], [['', one.get('')], [`/${name}`, whole.get(path)]]);
	assert.deepEqual(one.get('').map((of) => of.ns), whole.get(path).map((of) => of.ns));
	const two = (await s.trace(btrace([[PID, 2, 1000, 100], [PID, 1, 900, 300], [PID, 2, 2000, 700], [PID, 3, 1900, 900]], { pid: PID }), { query: { build_id: 'b1', app: 'shop' } })).id;
	const called = nodes((await compare({ a: two, b: b1.id })).json);
	const paths = [...called].filter(([p, [a]]) => p.endsWith('.method2') && a.count);
	assert.deepEqual(paths.map(([, [a]]) => a.ns).sort(), [100, 700], 'two callers');
	const merged = (await compare({ a: two, b: b1.id, focus: paths[0][0].split('/').pop() })).json;
	assert.deepEqual([merged.parent, merged.a_ns, merged.a_count.slice(1)], [[0, 0], [800, 800], [2]]);
	const none = await compare({ ...sides, focus: 'no.Such.method' });
	assert.deepEqual([none.status, none.json.error.message], [404, 'neither side has a method with that name']);
});

test('methods of both sides: changed, new and removed ones, per trace', async () => {
	const sides = { a: `${a1.id},${a2.id}`, b: b1.id };
	const { json } = await table(sides);
	const row = Object.fromEntries(json.methods.map((m) => [m.name.split('.').pop(), m]));
	assert.deepEqual(row.method2.a, { self_ns: 8000, total_ns: 8000, count: 8, traces: 2 });
	assert.deepEqual(row.method2.b, { self_ns: 9000, total_ns: 9000, count: 1, traces: 1 });
	assert.deepEqual([json.total, json.new, json.removed], [4, 1, 1]);
	// method 2 takes 4,000 ns a trace in A and 9,000 in B, method 4 takes 3,888.5 in A and is absent in B
	assert.deepEqual(json.methods.map((m) => m.name.split('.').pop()).slice(0, 2), ['method2', 'method4']);
	const only = async (word) => (await table({ ...sides, only: word })).json.methods.map((m) => m.name.split('.').pop()).sort();
	assert.deepEqual([await only('new'), await only('removed')], [['method3'], ['method4']]);
	assert.deepEqual([await only('slower'), await only('faster')], [['method1', 'method2', 'method3'], ['method4']]);
	const names = (await table({ ...sides, sort: 'name', order: 'asc', q: 'METHOD[123]', regex: 1, limit: 2, offset: 1 })).json;
	assert.deepEqual([names.total, ...names.methods.map((m) => m.name.split('.').pop())], [3, 'method2', 'method3']);
});

test('ids that nothing names are not one method because they are one number', async () => {
	const { json } = await table({ a: unnamed.id, b: a1.id });
	assert.ok(json.methods.filter((m) => /of build b3$/.test(m.name)).length > 3);
	assert.ok(json.methods.every((m) => m.a.count === 0 || m.b.count === 0));
	assert.equal((await compare({ a: unnamed.id, b: a1.id })).json.a[0].named, 0);
});

test('overloads are compared with themselves, and a method without parameters with the only one of its name', async () => {
	const send = async (build, mapping, records) => {
		await s.put(`/api/v1/builds/${build}/methods`, mapping);
		return (await s.trace(btrace(records, { pid: PID }), { query: { build_id: build, app: 'shop' } })).id;
	};
	const overloads = ['1,1,a.Json parse (I)V', '2,1,a.Json parse (Ljava/lang/String;)V', '3,1,a.Feed load ()V', ''].join('\n');
	const sides = {
		a: await send('o1', overloads, [[PID, 1, 1000, 100], [PID, 2, 2000, 300], [PID, 3, 3000, 50]]),
		b: await send('o2', overloads.replace('a.Feed load ()V', 'a.Feed load'), [[PID, 1, 1000, 100], [PID, 2, 2000, 900], [PID, 3, 3000, 50]]),
	};
	const key = (m) => `${m.name.slice(2)}${m.descriptor}`;
	const rows = (json) => json.methods.map((m) => [key(m), m.a.self_ns, m.b.self_ns]).sort();
	const all = [['Feed.load()V', 50, 50], ['Json.parse(I)V', 100, 100], ['Json.parse(Ljava/lang/String;)V', 300, 900]];
	assert.deepEqual(rows((await table(sides)).json), all);
	assert.deepEqual(rows((await table({ ...sides, q: 'parse(String' })).json), all.slice(2));
	const { json } = await compare(sides);
	assert.deepEqual(json.names.map(key).sort(), all.map(([k]) => k));
	const of = new Map(json.names.map((n) => [n.method, key(n)]));
	assert.deepEqual(json.method.flatMap((m, i) => (of.has(m) ? [[of.get(m), json.a_ns[i], json.b_ns[i]]] : [])).sort(), all);
});

test('incomparable traces are refused with a message', async () => {
	const many = Array.from({ length: 17 }, (_, i) => a1.id.slice(0, 24) + String(i).padStart(2, '0')).join();
	for (const [query, status, words] of [
		[{ b: b1.id }, 400, /^a is required/], [{ a: a1.id }, 400, /^b is required/], [{ a: a1.id, b: '' }, 400, /^b is required/],
		[{ a: 'x', b: b1.id }, 400, /a is trace ids/], [{ a: a1.id, b: `${b1.id},${b1.id}` }, 400, /b: .* twice/],
		[{ a: many, b: b1.id }, 404, /./], [{ a: GONE, b: b1.id }, 404, /./],
		[{ a: a1.id, b: b1.id, thread: 'x' }, 404, /has no thread x/], [{ a: a1.id, b: b1.id, root: 'x' }, 400, /root/],
	]) {
		const answer = await compare(query);
		assert.equal(answer.status, status, `${JSON.stringify(query)} ${answer.text}`);
		assert.match(answer.json.error.message, words);
	}
	for (const bad of [{ sort: 'x' }, { only: 'x' }, { limit: 0 }, { q: '(', regex: 1 }])
		assert.equal((await table({ a: a1.id, b: b1.id, ...bad })).status, 400, JSON.stringify(bad));
	const none = await s.trace(btrace([[7, 1, 0, 9]], { pid: 1 }), { query: { app: 'x' } });
	const other = await compare({ a: a1.id, b: none.id, thread: 'main' });
	assert.equal(other.status, 404, other.text);
	assert.match(other.json.error.message, /compare all threads/);
});

test('a comparison ends when its time is up, before all of its traces are open', async (t) => {
	const hasty = await startServer(t, { args: ['--query-deadline', '1'] });
	const ids = [];
	for (let i = 1; i <= 8; i++) ids.push((await hasty.trace(trace(i, 1000))).id);
	for (const path of ['/api/v1/compare', '/api/v1/compare/methods']) {
		const { status, json } = await hasty.get(path, { query: { a: ids.join(), b: ids.join() } });
		assert.equal(status, 504);
		assert.equal(json.error.status, 'deadline');
		assert.match(json.error.message, /compare one thread, or fewer traces/);
	}
});
