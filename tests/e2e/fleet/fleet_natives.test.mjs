/*
 * fleet_natives.test.mjs - native frames in figures of many traces: counted by library, and by function once the
 * library's symbols arrive, each trace once, also if the server is killed while it counts again.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';

import { ID, library, placed, recording } from '../native_symbols.mjs';
import { newFolder, sleep, startServer, until } from '../server.mjs';

const OTHERS = ['[libnone.so]', '[libother.so]'], UNNAMED = [...OTHERS, '[libshop.so]'], NAMED = [...OTHERS, 'shop::Cart::pay(int, int)', 'shop_log', 'shop_total'];
/* The library's file. */
function makeLibrary(t) {
	const dir = newFolder(t, 'tw-natives-');
	return fs.readFileSync(library(dir, ID, placed));
}

async function useServer(t) {
	const s = await startServer(t);
	const send = async (build, i, options = {}) => (await s.post('/api/v1/traces', fs.readFileSync(recording), { ...options, query: { app: 'shop', build_id: build, version_name: build || 'none', scenario: build || 'none' }, headers: { 'Idempotency-Key': `${build}-${i}` } })).json.id;
	const methods = async (build) => (await s.get(`/api/v1/fleet/methods?scenario=${build || 'none'}`)).json;
	const counted = async (build, names, traces) => {
		let now;
		await until(async () => {
			now = await methods(build);
			for (const m of now?.methods ?? []) assert.ok(m.wall.traces > 0 && m.self.traces > 0, `listed without figures: ${JSON.stringify(m)}`);
			return now?.traces === traces && JSON.stringify(now.methods.map((m) => m.name).sort()) === JSON.stringify(names) && now.methods.every((m) => m.wall.traces === traces);
		}, () => `each trace counts once with ${names}; ${build}: ${JSON.stringify(now)}`, 120);
	};
	return { s, send, methods, counted };
}

test('native frames in the fleet', async (t) => {
	const symbols = makeLibrary(t);
	const { s, send, methods, counted } = await useServer(t);

	await t.test('before symbols, frames count by library', async () => {
		for (const build of ['one', 'two', '']) for (let i = 0; i < 3; i++) await send(build, i);
		for (const build of ['one', 'two', '']) await counted(build, UNNAMED, 3);
	});

	await t.test('late symbols count the traces of all builds of the library again, by function', async () => {
		const { status, text } = await s.put(`/api/v1/builds/elf:${ID}/symbols`, symbols);
		assert.equal(status, 200, text);
		for (const build of ['one', 'two', '']) await counted(build, NAMED, 3);
		await send('one', 3);
		await counted('one', NAMED, 4);
	});

	await t.test('the flame graph and the search have the functions', async () => {
		const flame = (await s.get('/api/v1/fleet/flame?scenario=one')).json.names.map((n) => n.name);
		for (const name of NAMED) assert.ok(flame.includes(name), flame.join());
		const { json } = await s.get('/api/v1/fleet/search?method=shop_total&scenario=one');
		assert.equal(json.hits.length, 4, JSON.stringify(json));
		for (const hit of json.hits) assert.deepEqual([hit.method, hit.call?.duration_ns > 0], ['shop_total', true], JSON.stringify(hit));
	});

	await t.test('a comparison with a trace has the same methods on both sides', async () => {
		const id = await send('two', 9);
		await counted('two', NAMED, 4);
		const { json, text } = await s.get(`/api/v1/fleet/compare?a=trace:${id}&b.scenario=one`);
		assert.deepEqual(json.methods?.map((m) => m.name).sort(), NAMED, text);
	});

	await t.test('another project keeps the library', async () => {
		const ingest = s.key('ingest', 'beta'), key = s.key('read', 'beta');
		await send('theirs', 0, { key: ingest });
		const theirs = async () => (await s.get('/api/v1/fleet/methods?scenario=theirs', { key })).json;
		await until(async () => (await theirs()).traces === 1, 'counted');
		assert.deepEqual((await theirs()).methods.map((m) => m.name).sort(), UNNAMED);
		assert.equal((await methods('theirs')).traces, 0);
	});
});

test('killed while symbols arrive and traces are counted again, each trace counts once, by function', async (t) => {
	const symbols = makeLibrary(t);
	const { s, send, counted } = await useServer(t);
	let sent = 0;
	for (const step of ['mapping_stored', 'rollup', 'rollup', 'mapping_compiled']) {
		for (let i = 0; i < 3; i++, sent++) await send('one', sent);
		/* another file of the same library: other symbols each time */
		await s.stop('SIGKILL');
		s.env = { TRACEWELL_CRASH_AT: step };
		await s.start().catch(() => undefined);
		await s.put(`/api/v1/builds/elf:${ID}/symbols`, Buffer.concat([symbols, Buffer.alloc(8 + sent)]), { key: s.write }).catch(() => undefined);
		await until(() => s.exited || undefined, 'it died');
		s.env = {};
		await s.start();
		await s.put(`/api/v1/builds/elf:${ID}/symbols`, Buffer.concat([symbols, Buffer.alloc(8 + sent)]), { key: s.write });
		await sleep((sent * 37) % 150);
	}
	await counted('one', NAMED, sent);
});
