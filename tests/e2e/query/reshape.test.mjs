/*
 * Flame graphs and method tables of reshaped calls, against the same steps taken on every path of
 * the graph as it was; and of CPU and waiting time, which are wall time together.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { difference, inverted, paths, STEPS, stepped, subtree, sums, weights, within } from '../reshape_reference.mjs';
import { binary, newFolder, root, startServer, tracewell } from '../server.mjs';

const sim = path.join(path.dirname(binary()), '..', 'tests', 'tracewell-sim');
const phone = path.join(root, 'tests', 'gen', 'art.py');

function scratch(t) {
	return newFolder(t, 'tracewell-reshape-');
}

async function json(s, target) {
	const answer = await s.get(target);
	assert.equal(answer.status, 200, answer.text);
	return answer.json;
}

/* The flame graph, whole unless fewer nodes are enough. */
function ask(s, id, query, nodes = 200000) {
	return json(s, `/api/v1/traces/${id}/flame?thread=all&max_nodes=${nodes}&${query}`);
}

async function phoneTrace(t, s) {
	const dir = scratch(t);
	execFileSync(sim, ['--out', dir, '--seed', '11', '--records', '6000', '--threads', '3', '--depth', '40']);
	const build = fs.readFileSync(path.join(dir, 'methodMapping.txt'));
	assert.equal((await s.put('/api/v1/builds/b/methods', build)).status, 200);
	return tracewell('push', '--server', s.url, '--key', s.ingest, '--build-id', 'b', '--wait',
		path.join(dir, 'rhea-atrace.bin'));
}

test('reshaped calls', async (t) => {
	const s = await startServer(t);
	const id = await phoneTrace(t, s);
	const whole = await ask(s, id, '');
	const list = paths(whole);
	const { methods } = await json(s, `/api/v1/traces/${id}/methods?sort=total_ns&limit=10000`);
	const often = methods.filter((m) => list.some(([p]) => p.filter((x) => x === m.name).length > 1));
	const [a, b] = [often[0] ?? methods[0], methods[Math.min(7, methods.length - 1)]];
	const wholePackage = a.name.split('.').slice(0, -2).join('.');

	const same = async (transform, want) => {
		const got = await ask(s, id, `transform=${encodeURIComponent(transform)}`);
		assert.deepEqual(sums(paths(got)), want, transform);
		assert.equal(got.value, [...want.values()].reduce((x, y) => x + y, 0));
		const up = await ask(s, id, `view=bottom_up&transform=${encodeURIComponent(transform)}`, 50);
		assert.equal(up.value, got.value, 'both directions tell the same whole');
		const table = await json(s, `/api/v1/traces/${id}/methods?limit=10000&transform=${encodeURIComponent(transform)}`);
		const own = new Map();
		for (const [p, self] of paths(got)) if (p.length) own.set(p.at(-1), (own.get(p.at(-1)) ?? 0) + self);
		assert.deepEqual(Object.fromEntries(table.methods.filter((m) => m.self_ns).map((m) => [m.name, m.self_ns]).sort()),
			Object.fromEntries([...own].sort()));
	};

	await t.test('each step', async () => {
		for (const m of [a, b])
			for (const kind of ['focus', 'drop', 'merge', 'fold'])
				await same(`${kind}:${m.method}`, stepped(list, STEPS[kind](m.name)));
		await same('recursion', stepped(list, STEPS.recursion()));
		await same(`library:${wholePackage}`, stepped(list, STEPS.frame(wholePackage)));
	});

	await t.test('steps in order, and the frames they make', async () => {
		await same(`recursion,focus:${a.method},drop:${b.method}`,
			stepped(list, STEPS.recursion(), STEPS.focus(a.name), STEPS.drop(b.name)));
		const { methods: all } = await json(s, `/api/v1/traces/${id}/methods?limit=10000&transform=library:${wholePackage}`);
		const made = all.find((m) => m.name === `[${wholePackage}]`);
		assert.ok(made && made.id === null, 'the library is a row of the table');
		await same(`library:${wholePackage},focus:${made.method}`,
			stepped(list, STEPS.frame(wholePackage), STEPS.focus(made.name)));
	});

	await t.test('a subtree and the inverted tree, complete and after steps', async () => {
		const index = new Map(methods.map((m) => [m.name, m.method]));
		const known = list.filter(([p]) => p.length > 3 && p.every((m) => index.has(m)));
		for (const [p] of [known[0], known[Math.floor(known.length / 2)], known.at(-1)])
			for (const at of [p.slice(0, 1), p.slice(0, 3)]) {
				const down = await ask(s, id, `root=${at.map((m) => index.get(m)).join('.')}`);
				assert.equal(difference(weights(down), subtree(list, at)), '', at.join(' > '));
				const above = p.slice(-at.length).reverse();
				const up = await ask(s, id, `view=bottom_up&root=${above.map((m) => index.get(m)).join('.')}`);
				assert.equal(difference(weights(up), inverted(list, above)), '', `turned around: ${above.join(' > ')}`);
			}
		assert.equal(difference(weights(await ask(s, id, 'view=bottom_up')), inverted(list)), '');
		const fewer = list.map(([p, self]) => [STEPS.drop(b.name)(STEPS.recursion()(p)), self]).filter(([p]) => p);
		const steps = `transform=recursion,drop:${b.method}`;
		assert.equal(difference(weights(await ask(s, id, `view=bottom_up&${steps}`)), inverted(fewer)), '');
		const [top] = [...subtree(fewer, [])].filter(([p]) => index.has(p)).sort((x, y) => y[1] - x[1])[0];
		assert.equal(difference(weights(await ask(s, id, `root=${index.get(top)}&${steps}`)), subtree(fewer, [top])), '');
	});

	await t.test('the app\'s own frames, by rules of the project', async () => {
		const rules = await json(s, '/api/v1/frames');
		assert.ok(rules.presets.every((p) => p.enabled && p.title && p.prefixes.length));
		const foreign = (x) => rules.presets.some((p) => p.prefixes.some((b2) => within(b2)(x) || x.startsWith(b2 + '(')));
		const before = await s.get(`/api/v1/traces/${id}/flame?transform=app`);
		await same('app', stepped(list, STEPS.app((x) => !foreign(x))));
		const set = await s.put('/api/v1/frames', JSON.stringify({ framework: [wholePackage], app: [a.name] }), { key: s.write });
		assert.equal(set.status, 200, set.text);
		assert.deepEqual(set.json.framework, [wholePackage]);
		await same('app', stepped(list, STEPS.app((x) => x === a.name || !(foreign(x) || within(wholePackage)(x)))));
		const after = await s.get(`/api/v1/traces/${id}/flame?transform=app`);
		assert.notEqual(after.headers.get('etag'), before.headers.get('etag'), 'an old answer is not taken for the new');
		for (const bad of ['{"app":"x"}', '{"app":[""]}', '{"app":[7]}', '{"what":[]}', '{', '[]', `{"off":["${'x'.repeat(300)}"]}`]) {
			const refused = await s.put('/api/v1/frames', bad, { key: s.write });
			assert.equal(refused.status, 400, bad);
			assert.ok(refused.json.error.message.length > 10);
		}
		assert.equal((await s.put('/api/v1/frames', '{}', { key: s.ingest })).status, 403);
		await s.put('/api/v1/frames', '{}', { key: s.write });
		await same('app', stepped(list, STEPS.app((x) => !foreign(x))));
	});

	await t.test('invalid steps', async () => {
		for (const bad of ['twist:1', 'focus:', 'focus:x', 'focus:999999999', 'library:', `library:${'x'.repeat(400)}`,
			Array(33).fill('recursion').join(',')]) {
			const { status, json: answer } = await s.get(`/api/v1/traces/${id}/flame?transform=${bad}`);
			assert.equal(status, 400, bad);
			assert.match(answer.error.message, /transform/);
		}
		const none = await s.get(`/api/v1/traces/${id}/flame?metric=cpu`);
		assert.equal(none.status, 400);
		assert.match(none.json.error.message, /CPU/);
	});
});

test('CPU and waiting time', async (t) => {
	const s = await startServer(t);
	const dir = scratch(t);
	const trace = path.join(dir, 'dual.trace');
	const truth = path.join(dir, 'truth.json');
	fs.writeFileSync(trace, execFileSync('python3', [phone, 'v1-dual', '--json', truth, '--seed', '5', '--calls', '900', '--threads', '3']));
	const id = tracewell('push', '--server', s.url, '--key', s.ingest, '--wait', trace);
	const [wall, cpu, waiting] = await Promise.all(['wall', 'cpu', 'waiting'].map((m) => ask(s, id, `metric=${m}`)));
	const of = (node) => sums(paths(node));
	const total = new Map(of(cpu));
	for (const [p, ns] of of(waiting)) total.set(p, (total.get(p) ?? 0) + ns);
	assert.ok(cpu.value > 0 && waiting.value > 0);
	/* calls that the recording ended in have no CPU time of their own */
	const all = of(wall);
	const open = [...all].filter(([p, ns]) => total.get(p) !== ns);
	assert.ok(open.length <= 3 && open.every(([p, ns]) => (total.get(p) ?? 0) < ns), 'a frame works or waits');
	assert.equal([...total.keys()].filter((p) => !all.has(p)).length, 0);
	for (const metric of ['cpu', 'waiting']) {
		const up = await ask(s, id, `metric=${metric}&view=bottom_up`, 50);
		assert.equal(up.value, metric === 'cpu' ? cpu.value : waiting.value);
		const merged = await ask(s, id, `metric=${metric}&transform=recursion`);
		assert.equal(merged.value, up.value, 'steps move time, they lose none');
	}
	/* the table has the phone's CPU time, if an outermost call has one: an open call has none */
	const { methods } = await json(s, `/api/v1/traces/${id}/methods?limit=10000`);
	const said = JSON.parse(fs.readFileSync(truth, 'utf8')).methods;
	for (const m of methods) assert.equal(m.cpu_ns ?? 0, said[m.name].cpu_ns, m.name);
});
