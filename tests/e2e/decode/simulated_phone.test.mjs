/*
 * The calls of the simulated phone are those of the trace file, the flame graph and the Perfetto file.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { binary, endsUnlike, inFull, newFolder, startServer, tracewell, until } from '../server.mjs';

const sim = path.join(path.dirname(binary()), '..', 'tests', 'tracewell-sim');

const perfettoTruth = path.join(path.dirname(sim), 'tracewell-perfetto-truth');

function simulate(dir, ...args) {
	execFileSync(sim, ['--out', dir, ...args.map(String)]);
	return JSON.parse(fs.readFileSync(path.join(dir, 'truth.json'), 'utf8'));
}

/* A folder that goes with the test. */
function scratch(t) {
	return newFolder(t, 'tracewell-sim-');
}

async function json(s, target) {
	const answer = await s.get(target);
	assert.equal(answer.status, 200, answer.text);
	return answer.json;
}

const file = (dir, name) => path.join(dir, name);

function push(s, dir, build, extra = []) {
	return tracewell('push', '--server', s.url, '--key', s.ingest, '--build-id', build, '--scenario', 'cold_start',
		'--threads', file(dir, 'threads.txt'), '--wait', ...extra, file(dir, 'rhea-atrace.bin'));
}

/* Every sum of a node and its children, all the way down. */
function checkFlame(node) {
	let sum = node.self;
	for (const c of node.children) sum += checkFlame(c);
	assert.equal(sum, node.value, `value of ${node.name}`);
	return node.value;
}

const REST_NODES = 61; // several requests for each tree
/* What an answer hides in (other) is shown by asking for the rest, down to the last. */
async function checkRests(s, id, view, want) {
	const seen = [];
	for (let skip = 0, more = true; more; skip = seen.length) {
		const part = await json(s, `/api/v1/traces/${id}/flame?thread=all&view=${view}&max_nodes=${REST_NODES}&skip=${skip}`);
		checkFlame(part);
		assert.equal(part.other === undefined, skip === 0);
		const shown = part.children.filter((c) => c.other === undefined);
		more = shown.length < part.children.length;
		seen.push(...shown.map((c) => [c.name, c.value]));
		assert.ok(shown.length > 0, 'something is shown each time');
	}
	assert.deepEqual(Object.fromEntries(seen), Object.fromEntries(want));
	assert.equal(seen.length, want.length);
}

/* The tree of columns. */
function unpacked(c) {
	let next = 0;
	let rests = 0;
	const read = () => {
		const i = next++;
		const node = { name: c.names[c.name[i]], value: c.self[i] * c.unit, self: c.self[i] * c.unit, count: c.count[i], children: [] };
		const method = c.methods[c.name[i]];
		if (method === -2) node.other = c.other[rests++];
		else if (method >= 0) node.method = method;
		for (let n = c.children[i]; n > 0; n--) node.value += node.children[node.children.push(read()) - 1].value;
		return node;
	};
	const root = read();
	assert.deepEqual([next, rests], [c.name.length, c.other.length], 'every node is below the root');
	return root;
}

const nodesOf = (node) => [node, ...node.children.flatMap(nodesOf)];

/* Columns leave out what follows from the others, and descriptors: /names has them. */
async function checkColumns(s, id, query, nested) {
	const c = await json(s, `/api/v1/traces/${id}/flame?${query}&format=columns`);
	const { total_nodes, shown_nodes, partial, ...root } = JSON.parse(JSON.stringify(nested, (key, v) => (key === 'max_ns' || key === 'descriptor' ? undefined : v)));
	assert.deepEqual(unpacked(c), root, query);
	assert.deepEqual([c.unit, c.total_nodes, c.shown_nodes, c.partial], [1, total_nodes, shown_nodes, partial]);
	const uses = c.names.map((_, k) => c.name.filter((name) => name === k).length);
	assert.deepEqual(uses, [...uses].sort((a, b) => b - a), 'frequent names first');
}

/* Rounded columns differ from exact ones by less than a unit in every value, which is small compared with each node. */
async function checkRounded(s, id, query, nested, digits) {
	const c = await json(s, `/api/v1/traces/${id}/flame?${query}&format=columns&digits=${digits}`);
	const exact = nodesOf(nested);
	const least = Math.min(...exact.slice(1).filter((n) => n.other === undefined).map((n) => n.value));
	assert.equal(c.unit, query.includes('count') ? 1 : Math.max(1, 10 ** Math.floor(Math.log10(Math.floor(least / 10 ** digits)))), `${query}: lightest ${least}`);
	const rounded = nodesOf(unpacked(c));
	assert.equal(rounded.length, exact.length);
	for (const [i, n] of rounded.entries()) {
		assert.ok(n.self >= 0 && Math.abs(n.value - exact[i].value) < Math.max(1, c.unit), `${n.name}: ${n.value}, exactly ${exact[i].value}, in units of ${c.unit}`);
		assert.deepEqual([n.name, n.count, n.method, n.other], [exact[i].name, exact[i].count, exact[i].method, exact[i].other]);
	}
	return c.unit;
}

async function checkAgainst(s, id, truth) {
	const { threads } = await json(s, `/api/v1/traces/${id}/threads`);
	const got = Object.fromEntries(threads.filter((t) => t.slices).map((t) =>
		[t.tid, { name: t.name, slices: t.slices, roots: t.roots, max_depth: t.max_depth }]));
	assert.deepEqual(got, truth.threads);
	const { methods, total, busy_ns } = await json(s, `/api/v1/traces/${id}/methods?limit=10000`);
	assert.equal(total, Object.keys(truth.methods).length);
	for (const m of methods) {
		const { count, sum_ns, self_ns, max_ns } = m;
		assert.deepEqual({ count, sum_ns, self_ns, max_ns }, truth.methods[m.name], m.name);
	}
	const selfSum = Object.values(truth.methods).reduce((n, m) => n + m.self_ns, 0);
	for (const view of ['top_down', 'bottom_up']) {
		const flame = await json(s, `/api/v1/traces/${id}/flame?thread=all&view=${view}&max_nodes=200000`);
		assert.equal(checkFlame(flame), selfSum, view);
		const cut = await json(s, `/api/v1/traces/${id}/flame?thread=all&view=${view}&max_nodes=40`);
		assert.equal(checkFlame(cut), selfSum, `${view}, cut`);
		await checkColumns(s, id, `thread=all&view=${view}&max_nodes=40`, cut);
		assert.ok((await checkRounded(s, id, `thread=all&view=${view}&max_nodes=40`, cut, 2)) >= 10, 'something is rounded');
		await checkRounded(s, id, `thread=all&view=${view}&max_nodes=40`, cut, 9);
		const calls = `view=${view}&metric=count&max_nodes=40`;
		await checkRounded(s, id, calls, await json(s, `/api/v1/traces/${id}/flame?${calls}`), 1);
		for (const metric of ['count', 'waiting', 'running'])
			await checkColumns(s, id, `view=${view}&metric=${metric}&max_nodes=200`, await json(s, `/api/v1/traces/${id}/flame?view=${view}&metric=${metric}&max_nodes=200`));
		await checkRests(s, id, view, view === 'top_down' ? flame.children.map((c) => [c.name, c.value])
			: Object.entries(truth.methods).map(([name, m]) => [name, m.self_ns]).filter(([, v]) => v > 0));
	}
	assert.equal(busy_ns, selfSum);
	const none = await json(s, `/api/v1/traces/${id}/methods?q=no_such_method`);
	assert.deepEqual(none, { methods: [], total: 0, busy_ns: selfSum, partial: false });
}

/* The Perfetto file, read back; its importer takes 512 levels, so deeper calls are not in it. */
async function checkPerfetto(s, dir, id, truth) {
	const answer = await s.get(`/api/v1/traces/${id}/perfetto`);
	assert.equal(answer.status, 200);
	fs.writeFileSync(file(dir, 'out.perfetto-trace'), answer.bytes);
	const got = JSON.parse(execFileSync(perfettoTruth, [file(dir, 'out.perfetto-trace')], { maxBuffer: 1 << 28 }).toString());
	assert.equal(got.errors, 0);
	const depth = Math.max(...Object.values(truth.threads).map((t) => t.max_depth));
	if (depth > 512) {
		assert.equal(Math.max(...Object.values(got.threads).map((t) => t.max_depth)), 512);
		return;
	}
	const names = Object.values(truth.threads).map((t) => t.name);
	for (const name of names) assert.ok(got.thread_names.includes(name), `a track named ${name}`);
	for (const t of Object.values(truth.threads)) delete t.name;
	assert.deepEqual(got.threads, truth.threads);
	assert.deepEqual(got.methods, truth.methods);
}

const FEW = ['--records', 4000]; // of 20,000: every call is compared, several times
const cases = [
	['plain', ['--seed', 1]],
	['thread ids over 32,767', ['--seed', 2, '--big-tids', ...FEW]],
	['deep', ['--seed', 3, '--depth', 900, '--records', 9000]],
	['one thread', ['--seed', 4, '--threads', 1]],
	['many threads', ['--seed', 5, '--threads', 40, '--records', inFull(60000, 12000)]],
	['zeros and an older recording behind', ['--seed', 6, '--zero-tail', '--stale-tail']],
	['begins that wrap', ['--seed', 7, '--wrapped']],
];

test('the merged file shows what the phone did', async (t) => {
	const s = await startServer(t);
	for (const [what, args] of cases)
		await t.test(what, async () => {
			const dir = scratch(t);
			const truth = simulate(dir, ...args);
			const id = push(s, dir, what.replaceAll(/\W/g, '-'), ['--mapping', file(dir, 'methodMapping.txt')]);
			await checkAgainst(s, id, truth);
			await checkPerfetto(s, dir, id, truth);
		});
});

test('a late mapping names existing traces', async (t) => {
	const s = await startServer(t);
	const dir = scratch(t);
	const truth = simulate(dir, '--seed', 11, ...FEW);
	const id = push(s, dir, 'late');
	const before = await json(s, `/api/v1/traces/${id}`);
	assert.match(before.report.names.warning, /PUT \/api\/v1\/builds\/late\/methods/);
	const unnamed = await json(s, `/api/v1/traces/${id}/methods?limit=5`);
	assert.match(unnamed.methods[0].name, /^unknown:\d+$/);
	const r = await fetch(`${s.url}/api/v1/builds/late/methods`, {
		method: 'PUT', headers: { Authorization: `Bearer ${s.ingest}` }, body: fs.readFileSync(file(dir, 'methodMapping.txt')) });
	assert.equal(r.status, 200);
	await checkAgainst(s, id, truth);
	assert.equal((await json(s, `/api/v1/traces/${id}`)).report.names.warning, null);
});

test('another build has its own method numbers', async (t) => {
	const s = await startServer(t);
	for (const build of [1, 2]) {
		const dir = scratch(t);
		const truth = simulate(dir, '--seed', 21, '--build', build, ...FEW);
		const id = push(s, dir, `b${build}`, ['--mapping', file(dir, 'methodMapping.txt')]);
		await checkAgainst(s, id, truth);
	}
});

const blobsOf = (s) => fs.readdirSync(path.join(s.data, 'blobs'), { recursive: true, withFileTypes: true })
	.filter((e) => e.isFile()).map((e) => path.join(e.parentPath ?? e.path, e.name));

/* Kill -9 at every step between the first byte and ready; the next start continues from there. */
const steps = ['spool_created', 'spool_written', 'blob_renamed', 'content_synced', 'name_synced', 'log_synced', 'row_committed', 'job_claimed', 'child_done',
	'trace_renamed', 'row_ready'];
for (const step of steps)
	test(`killed at ${step}`, async (t) => {
		const s = await startServer(t, { env: { TRACEWELL_CRASH_AT: step } });
		const dir = scratch(t);
		simulate(dir, '--seed', 31, '--records', 3000);
		const answer = await fetch(`${s.url}/api/v1/traces?build_id=b`, { method: 'POST',
			headers: { Authorization: `Bearer ${s.ingest}` }, body: fs.readFileSync(file(dir, 'rhea-atrace.bin')) })
			.then((r) => r.json(), () => null);
		assert.equal((await s.ended).signal, 'SIGKILL');
		s.env = {};
		await s.start();
		const list = await until(async () => {
			const l = await json(s, '/api/v1/traces');
			return l.traces.every((x) => x.state === 'ready') ? l : undefined;
		}, 'all decoded');
		if (answer) assert.deepEqual(list.traces.map((x) => x.id), [answer.id], 'accepted, so it is there');
		assert.ok(list.total <= 1);
		await until(async () => (fs.readdirSync(path.join(s.data, 'spool')).length === 0 ? true : undefined), 'an empty spool');
		const left = (folder) => fs.readdirSync(path.join(s.data, folder), { recursive: true, withFileTypes: true })
			.filter((e) => e.isFile()).length;
		await until(async () => (left('blobs') === list.total && left('traces') === list.total ? true : undefined),
			`as many files as rows (${left('blobs')} blobs, ${left('traces')} traces, ${list.total} rows)`);
	});

/* A power cut while rows and files become durable side by side: the row is there, its file is not,
 * or not as it was sent. */
for (const [what, cut] of [['is gone', (f) => fs.unlinkSync(f)], ['is empty', (f) => fs.truncateSync(f, 0)],
	['lost its end', (f) => fs.truncateSync(f, fs.statSync(f).size - 1)],
	['has zeros', (f) => fs.writeFileSync(f, Buffer.alloc(fs.statSync(f).size))], ['is whole', () => {}]])
	test(`the power went before the answer, and the file ${what}`, async (t) => {
		const s = await startServer(t);
		const dir = scratch(t);
		const send = (seed) => {
			simulate(dir, '--seed', seed, '--records', 3000);
			return fetch(`${s.url}/api/v1/traces?build_id=b`, { method: 'POST',
				headers: { Authorization: `Bearer ${s.ingest}`, 'Idempotency-Key': `seed-${seed}` },
				body: fs.readFileSync(file(dir, 'rhea-atrace.bin')) }).then((r) => r.json(), () => null);
		};
		const before = await send(51);
		await s.stop();
		s.env = { TRACEWELL_CRASH_AT: 'log_synced' };
		await s.start();
		const known = new Set(blobsOf(s));
		assert.equal(await send(52), null, 'no answer');
		assert.equal((await s.ended).signal, 'SIGKILL');
		const [mine] = blobsOf(s).filter((f) => !known.has(f));
		cut(mine);
		s.env = {};
		await s.start();
		const list = await json(s, '/api/v1/traces');
		assert.equal(list.total, what === 'is whole' ? 2 : 1, 'a row has its file');
		assert.ok(list.traces.some((x) => x.id === before.id), 'what was answered is there');
		assert.equal(blobsOf(s).length, list.total);
		const again = await send(52);
		for (const x of [before, again]) assert.equal((await s.decoded(x.id)).state, 'ready');
		assert.equal((await json(s, '/api/v1/traces')).total, 2);
	});

test('a child that crashes, loops, eats memory or runs programs costs its own trace', async (t) => {
	for (const [how, limit] of [['crash', []], ['loop', ['--worker-cpu', '1', '--worker-wall', '200']], ['eat', []],
		['sleep', ['--worker-wall', '1']], ['run', []]])
		await t.test(how, { skip: endsUnlike(how) }, async (t2) => {
			const s = await startServer(t2, { args: ['--worker-attempts', '1', ...limit], env: { TRACEWELL_WORKER_FAULT: how } });
			const dir = scratch(t);
			simulate(dir, '--seed', 41, '--records', 2000);
			const { id } = await fetch(`${s.url}/api/v1/traces`, { method: 'POST',
				headers: { Authorization: `Bearer ${s.ingest}` }, body: fs.readFileSync(file(dir, 'rhea-atrace.bin')) }).then((r) => r.json());
			const failed = await until(async () => {
				const x = await json(s, `/api/v1/traces/${id}`);
				return x.state === 'failed' ? x : undefined;
			}, 'a failed trace', 200);
			const words = { crash: /crashed/, loop: /CPU time/, eat: /exit 9|memory/, sleep: /too long/, run: /forbidden system call/ };
			assert.match(failed.error.message, words[how]);
			assert.equal((await fetch(`${s.url}/healthz`)).status, 200);
		});
});
