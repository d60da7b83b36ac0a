/*
 * anr_natives.test.mjs - native frames of ANR reports: addresses until the library's symbols arrive, then functions in
 * the report, its verdict, its group and the flame graph, also if the server is killed in between.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { addresses, ID, library, OTHER, source } from '../native_symbols.mjs';
import { binary, newFolder, startServer, until } from '../server.mjs';

const hex = (n) => n.toString(16).padStart(16, '0');
/* The main thread is in `top`, called by `caller`; its libc was not stripped. */
const report = (top, caller, id = ID) => `----- pid 4321 at 2026-11-20 10:11:12 -----
Cmd line: com.shop

DALVIK THREADS (1):
"main" prio=5 tid=1 Native
  | sysTid=4321 nice=-10
  native: #00 pc 00000000000d9bd8  /apex/lib64/bionic/libc.so (syscall+28) (BuildId: ${OTHER})
  native: #01 pc ${hex(top)}  /data/app/lib/arm64/libshop.so (BuildId: ${id})
  native: #02 pc ${hex(caller)}  /data/app/base.apk!libshop.so (offset 0x1000) (???) (BuildId: ${id.toUpperCase()})

----- end 4321 -----
`;

test('native frames of ANR reports', async (t) => {
	const s = await startServer(t), dir = newFolder(t, 'tw-anr-natives-');
	const so = library(dir, ID), at = addresses(so);
	const text = report(at('shop_total') + 2, at('_ZN4shop4Cart3payEii') + 3);
	const PLACES = [at('shop_total') + 2, at('_ZN4shop4Cart3payEii') + 3].map((n) => `libshop.so+0x${n.toString(16)}`), NAMED = ['shop_total', 'shop::Cart::pay(int, int)'];
	const send = async (build) => (await s.trace(text, { app: 'shop', build_id: build, scenario: 'anr' })).id;
	const main = async (id) => {
		const doc = (await s.get(`/api/v1/traces/${id}/documents?kind=anr`)).json.documents[0].content;
		return { verdict: doc.verdict, frames: doc.processes[0].threads[0].frames.map((f) => f.name) };
	};
	const methods = async (id) => (await s.get(`/api/v1/traces/${id}/methods`)).json.methods.map((m) => m.name).sort();
	const groups = (n, title) => until(async () => {
		const { json } = await s.get('/api/v1/anr/groups');
		return json?.pending === 0 && json.anrs === n && json.groups.every((g) => g.title.includes(title)) ? json.groups : undefined;
	}, `${n} reports, ${title}`, 60);
	const ids = [await send('one'), await send('two'), await send('')];

	await t.test('before symbols, addresses in the report and the library in the flame graph', async () => {
		assert.deepEqual(await main(ids[0]), { verdict: `main runs ${PLACES[0]}`, frames: ['syscall', ...PLACES] });
		assert.deepEqual(await methods(ids[0]), ['[libshop.so]', 'syscall']);
		assert.equal((await groups(3, 'libshop.so')).length, 1);
	});

	await t.test('late symbols name report, verdict, flame graph and group, of every build', async () => {
		const { status, text: answer } = await s.put(`/api/v1/builds/elf:${ID}/symbols`, fs.readFileSync(so));
		assert.equal(status, 200, answer);
		for (const id of ids) {
			assert.deepEqual(await main(id), { verdict: 'main runs shop_total', frames: ['syscall', ...NAMED] });
			assert.deepEqual(await methods(id), ['shop::Cart::pay(int, int)', 'shop_total', 'syscall']);
		}
		const [group, ...others] = await groups(3, 'shop_total');
		assert.deepEqual([group.count, others], [3, []]);
	});

	await t.test('a report after them joins their group', async () => {
		ids.push(await send('three'));
		assert.equal((await groups(4, 'shop_total'))[0].count, 4);
	});

	await t.test('another project keeps the addresses', async () => {
		const { id } = (await s.post('/api/v1/traces', text, { key: s.key('ingest', 'beta') })).json, key = s.key('read', 'beta');
		const content = await until(async () => (await s.get(`/api/v1/traces/${id}/documents?kind=anr`, { key })).json.documents?.[0]?.content, 'their report');
		assert.deepEqual(content.processes[0].threads[0].frames.slice(1).map((f) => [f.name, f.build_id]), PLACES.map((name) => [name, ID]));
	});

	await t.test('a command without a server takes the symbols, too', () => {
		const file = path.join(dir, 'anr.txt');
		fs.writeFileSync(file, text);
		const out = execFileSync(binary(), ['decode', file, '--symbols', so], { encoding: 'utf8' });
		for (const name of NAMED) assert.ok(out.includes(`"name":"${name}"`), out);
		assert.ok(out.includes('main runs shop_total'), out);
	});
});

test('symbols that arrive while the server is killed name the groups once it is back', async (t) => {
	const s = await startServer(t), dir = newFolder(t, 'tw-anr-natives-');
	const so = library(dir, ID, source), at = addresses(so), titles = async () => (await s.get('/api/v1/anr/groups')).json;
	for (const build of ['one', 'two']) await s.trace(report(at('shop_total'), at('shop_total')), { app: 'shop', build_id: build, scenario: 'anr' });
	await until(async () => ((await titles())?.anrs === 2 ? true : undefined), 'grouped');
	await s.stop('SIGKILL');
	s.env = { TRACEWELL_CRASH_AT: 'mapping_stored' };
	await s.start();
	await s.put(`/api/v1/builds/elf:${ID}/symbols`, fs.readFileSync(so)).catch(() => undefined);
	await until(() => s.exited || undefined, 'it died');
	s.env = {};
	await s.start();
	await until(async () => {
		const json = await titles();
		return json?.pending === 0 && json.anrs === 2 && json.groups.length === 1 && json.groups[0].title.includes('shop_total') ? true : undefined;
	}, async () => `named: ${JSON.stringify(await titles())}`, 60);
});
