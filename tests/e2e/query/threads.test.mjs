/*
 * threads.test.mjs - thread= of every endpoint that has it: main, a name, a tid, all; threads= means
 * the same; and the error for a thread that does not exist.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { before, test } from 'node:test';

import { btrace, form } from '../make.mjs';
import { startServer, tracewell, until } from '../server.mjs';

const MAIN = 4000, SYNC = 4007;
const RECORDS = [[MAIN, 1, 1000, 9000], [MAIN, 2, 2000, 3000], [SYNC, 3, 4000, 5000], [SYNC, 2, 5000, 1000]];
const NAMES = `${MAIN},shop.main.looper\n${SYNC},sync-worker\n`;
const MAPPING = '# v\n1,1,com.app.Main onCreate ()V\n2,1,com.app.Repo load ()V\n3,1,com.app.Sync run ()V\n';
const FLEET_MAIN = 'main'; /* the fleet's word for it too */

let s, id, other, doc;

before(async (t) => {
	s = await startServer(t);
	for (const name of ['first', 'second']) {
		const sent = form(['meta', JSON.stringify({ app: 'shop', version_name: '1', build_id: 'b', scenario: name })], ['trace', btrace(RECORDS, { pid: MAIN })], ['threads', NAMES]);
		const { json, text } = await s.post('/api/v1/traces', sent.body, { headers: sent.headers });
		assert.ok(json?.id, text);
		if (name === 'first') id = json.id;
		else other = json.id;
		await until(async () => ((await s.get(`/api/v1/traces/${json.id}`)).json.state === 'ready' ? true : undefined), 'ready');
	}
	await s.put('/api/v1/builds/b/methods', MAPPING);
	await until(async () => ((await s.get('/api/v1/fleet/flame')).json?.traces === 2 ? true : undefined), 'counted', 90);
	await until(async () => ((await s.get('/api/v1/fleet/callers?name=com.app.Repo.load')).status === 200 ? true : undefined), 'counted by name', 90);
	doc = (await s.get('/api/v1/openapi.json', { key: null })).json;
});

/* Every path of the description that takes thread= or threads=, with what else it needs. */
function endpoints() {
	const found = (p) => (p.$ref ? doc.components.parameters[p.$ref.split('/').pop()] : p);
	return Object.entries(doc.paths).flatMap(([at, { get }]) => {
		const params = (get?.parameters ?? []).map(found);
		if (!params.some((p) => p.in === 'query' && (p.name === 'thread' || p.name === 'threads'))) return [];
		const query = {};
		if (at === '/api/v1/merge') query.ids = `${id},${other}`;
		if (at.startsWith('/api/v1/compare')) Object.assign(query, { a: id, b: other });
		if (at === '/api/v1/fleet/compare') Object.assign(query, { 'a.scenario': 'first', 'b.scenario': 'second', tree: 1 });
		if (/\/fleet\/(callers|method)$/.test(at)) query.name = 'com.app.Repo.load';
		if (at === '/api/v1/fleet/search') query.method = 'com.app.Repo.load';
		if (at === '/api/v1/fleet/lock') query.name = 'x';
		return [{ at, fleet: at.startsWith('/api/v1/fleet'), query }];
	});
}

const kinds = ['speedscope', 'folded', 'csv', 'pprof', 'chrome', 'firefox', 'd3', 'svg'];

/* The same answer to both? Without the times of day that some exports hold. */
function same(a, b, what) {
	assert.equal(a.status, 200, `${what}: ${a.text.slice(0, 300)}`);
	assert.equal(b.status, 200, `${what}: ${b.text.slice(0, 300)}`);
	assert.ok(a.bytes.equals(b.bytes), what);
}

test('thread=main is the main thread wherever a thread can be chosen', async () => {
	const all = endpoints();
	assert.ok(all.length >= 18, all.map((e) => e.at).join());
	for (const { at, fleet, query } of all.filter((e) => !e.fleet || e.at))
		for (const kind of at.includes('{kind}') ? kinds : ['']) {
			const url = at.replace('{id}', id).replace('{kind}', kind);
			const ask = (more) => s.get(url, { query: { ...query, ...more } });
			const by = await ask({ thread: FLEET_MAIN });
			if (at === '/api/v1/fleet/lock') { /* there are none: only not refused */
				assert.equal(by.status, 404, by.text);
				continue;
			}
			if (/\/fleet\/methods?$/.test(at)) { /* times of methods by thread are ClickHouse's: clickhouse.test.mjs */
				assert.equal(by.status, 400, by.text);
				assert.match(by.json.error.message, /only with --analytics/);
				continue;
			}
			same(by, await ask({ threads: 'main' }), `${url}: threads= is thread=`);
			if (!fleet) {
				same(by, await ask({ thread: MAIN }), `${url}: main is its tid`);
				same(by, await ask({ thread: 'shop.main.looper' }), `${url}: and its name`);
				if (!at.endsWith('/slices')) same(await ask({ thread: `main,${SYNC}` }), await ask({ thread: 'sync-worker,main' }), `${url}: several`);
				assert.ok(!by.bytes.equals((await ask({ thread: SYNC })).bytes) || /notes|activity/.test(at), `${url}: another thread is another answer`);
			}
		}
});

test('slices without `thread` are those of the main thread, otherwise of the longest-running one', async () => {
	const slices = async (of) => (await s.get(`/api/v1/traces/${of}/slices`)).json;
	assert.equal((await slices(id)).tid, MAIN);
	const [SHORT, LONG] = [SYNC, SYNC + 1];
	const { id: pool } = await s.trace(btrace([[SHORT, 1, 1000, 2000], [LONG, 2, 1000, 9000]], { pid: MAIN }), { query: { scenario: 'pool' } });
	const none = await slices(pool);
	assert.equal(none.tid, LONG);
	assert.equal(none.slices, 1);
});

test('an unknown thread is 404, and the message states how to list threads', async () => {
	for (const { at, fleet, query } of endpoints()) {
		if (fleet) continue;
		const url = at.replace('{id}', id).replace('{kind}', 'folded');
		for (const thread of ['nobody', '99', 'main,nobody']) {
			const { status, json, text } = await s.get(url, { query: { ...query, thread } });
			if (at === '/api/v1/merge' && thread === 'main,nobody') assert.equal(status, 200, 'another trace may have it');
			else {
				assert.equal(status, 404, `${url} ${thread}: ${text}`);
				assert.match(json.error.message, /thread (nobody|99|main,nobody)/);
				assert.match(json.error.message, /threads? lists|compare all threads|none of the traces/);
			}
		}
	}
	for (const [query, words] of [[{ thread: 'all' }, /one thread: set thread to main/], [{ thread: `main,${SYNC}` }, /selects 2 threads/]]) {
		const { status, json } = await s.get(`/api/v1/traces/${id}/slices`, { query });
		assert.equal(status, 400);
		assert.match(json.error.message, words);
	}
	const locks = (q) => s.get('/api/v1/fleet/locks', { query: q });
	assert.equal((await locks({ thread: 'x' })).status, 400, 'not ignored');
	for (const word of ['thread', 'threads'])
		assert.equal((await s.get('/api/v1/fleet/flame', { query: { [word]: 'nobody' } })).status, 404, word);
	same(await s.get('/api/v1/fleet/flame', { query: { thread: 'all' } }), await s.get('/api/v1/fleet/flame'), 'all is all');
});

test('a trace that does not tell its main thread may have one of that name', async () => {
	const lone = await s.trace(btrace([[7, 1, 0, 9], [8, 1, 0, 5]], { pid: 1 }), { query: { app: 'x' } });
	const flame = (thread) => s.get(`/api/v1/traces/${lone.id}/flame`, { query: { thread } });
	assert.equal((await flame('main')).status, 404);
	const named = form(['trace', btrace([[7, 1, 0, 9], [8, 1, 0, 5]], { pid: 1 })], ['threads', '7,worker\n8,main\n']);
	const { json } = await s.post('/api/v1/traces', named.body, { headers: named.headers });
	await until(async () => ((await s.get(`/api/v1/traces/${json.id}`)).json.state === 'ready' ? true : undefined), 'ready');
	const main = await s.get(`/api/v1/traces/${json.id}/flame`, { query: { thread: 'main' } });
	assert.equal(main.json.value, 5, main.text);
});

test('--thread of commands on files is the same', async () => {
	const dir = fs.mkdtempSync('/tmp/tw-threads-');
	const file = path.join(dir, 'a.trace'), names = path.join(dir, 'threads.txt'), out = path.join(dir, 'out');
	fs.writeFileSync(file, btrace(RECORDS, { pid: MAIN }));
	fs.writeFileSync(names, NAMES);
	const run = (thread, ...command) => {
		tracewell(...command, '--threads', names, '--thread', thread, '-o', out);
		return fs.readFileSync(out);
	};
	for (const command of [['export', file, '--to', 'folded'], ['perfetto', file]]) {
		const main = run('main', ...command);
		assert.ok(main.equals(run(String(MAIN), ...command)), command[0]);
		assert.ok(main.equals(run('shop.main.looper', ...command)), command[0]);
		assert.ok(!main.equals(run('sync-worker', ...command)), command[0]);
		assert.throws(() => run('nobody', ...command), /no thread nobody.*main, a tid or a name.*SELECT tid, name FROM thread/s, command[0]);
	}
	fs.rmSync(dir, { recursive: true });
});
