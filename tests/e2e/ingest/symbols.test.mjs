/*
 * symbols.test.mjs - native frames: a trace with addresses first, its library's symbols later; names then, and only
 * in the project that has the symbols.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { addresses, ID, library, OTHER, placed, profile, recording, source } from '../native_symbols.mjs';
import { binary, newFolder, startServer, until } from '../server.mjs';

test('symbols of native libraries', async (t) => {
	const s = await startServer(t), dir = newFolder(t, 'tw-symbols-');
	const so = library(dir, ID), at = addresses(so);
	const stack = [at('shop_total') + 2, at('_ZN4shop4Cart3payEii') + 3];
	const foreign = { ingest: s.key('ingest', 'beta'), read: s.key('read', 'beta') };
	const names = async (id, key) => (await s.get(`/api/v1/traces/${id}/methods`, key ? { key } : {})).json.methods.map((m) => m.name).sort();
	const named = ['shop::Cart::pay(int, int)', 'shop_total'];
	const { id } = await s.trace(profile(stack));
	const theirs = (await s.post('/api/v1/traces', profile(stack), { key: foreign.ingest })).json.id;
	await until(async () => ((await s.get(`/api/v1/traces/${theirs}`, { key: foreign.read })).json.state === 'ready' ? true : undefined), 'their trace');
	const folderOf = (name) => (fs.mkdirSync(path.join(dir, name)), path.join(dir, name));
	const put = (build, body, options) => s.put(`/api/v1/builds/${build}/symbols`, body, options);

	await t.test('without symbols the library is the frame', async () => {
		assert.deepEqual(await names(id), ['[libshop.so]']);
	});

	await t.test('what is not the library\'s symbols is refused', async () => {
		const file = fs.readFileSync(so);
		assert.equal((await put('b1', file)).status, 400);
		assert.equal((await put(`elf:${ID.toUpperCase()}`, file)).status, 400);
		assert.equal((await s.put(`/api/v1/builds/elf:${ID}/methods`, '1,1,a.B c ()V\n')).status, 400);
		const other = await put(`elf:${OTHER}`, file);
		assert.deepEqual([other.status, other.json.error.message], [422, `the file's build id is ${ID}`], other.text);
		assert.equal((await put(`elf:${ID}`, 'no ELF file')).status, 422);
		assert.equal((await put(`elf:${ID}`, file.subarray(0, 900))).status, 415);
		const none = await put(`elf:${OTHER}`, fs.readFileSync(library(dir, OTHER, source, '-Wl,--build-id=none')));
		assert.equal(none.status, 415, none.text);
		assert.deepEqual(await names(id), ['[libshop.so]']);
	});

	await t.test('then frames have their functions, without another upload of the trace', async () => {
		const flame = () => s.get(`/api/v1/traces/${id}/flame`, { headers: { 'If-None-Match': etag ?? '' } });
		let etag;
		etag = (await flame()).headers.get('etag');
		assert.equal((await flame()).status, 304);
		const { status, json, text: answer } = await put(`elf:${ID}`, fs.readFileSync(so));
		assert.equal(status, 200, answer);
		assert.deepEqual([json.state, json.version, json.entries], ['ready', 'libshop.so', 2]);
		const after = await flame();
		assert.equal(after.status, 200);
		for (const name of named) assert.ok(after.text.includes(name), after.text);
		assert.deepEqual(await names(id), named);
		assert.ok((await s.get(`/api/v1/traces/${id}/export/folded`)).text.includes('shop::Cart::pay(int, int);shop_total '));
	});

	await t.test('another project does not have them', async () => {
		assert.deepEqual(await names(theirs, foreign.read), ['[libshop.so]']);
	});

	await t.test('tracewell push sends a library like a trace, in folders too', async () => {
		const run = (...files) => execFileSync(binary(), ['push', '--server', s.url, '--key', foreign.ingest, ...files], { encoding: 'utf8', stdio: 'pipe' });
		const folder = path.join(dir, 'libs');
		fs.mkdirSync(folder);
		fs.copyFileSync(so, path.join(folder, 'libshop.so'));
		run(folder);
		assert.deepEqual(await names(theirs, foreign.read), named);
		assert.throws(() => run(library(dir, OTHER, source, '-Wl,--build-id=none')), /without a build id/);
	});

	await t.test('commands without a server take .so files', async () => {
		const other = library(folderOf('placed'), ID, placed), out = path.join(dir, 'out');
		const run = (...args) => execFileSync(binary(), args, { encoding: 'utf8', stdio: 'pipe' });
		const has = (text) => ['shop_total', 'shop::Cart::pay(int, int)', 'shop_log'].map((name) => text.includes(name));
		const all = [true, true, true];
		assert.deepEqual(has(run('decode', recording)), [false, false, false]);
		assert.deepEqual(has(run('decode', recording, '--symbols', other)), all);
		assert.deepEqual(has(run('sql', recording, '--symbols', other, 'SELECT DISTINCT name FROM slice')), all);
		run('perfetto', recording, '--symbols', other, '-o', out);
		assert.deepEqual(has(fs.readFileSync(out, 'latin1')), all);
		assert.deepEqual(has(run('export', recording, '--to', 'folded', '--symbols', other, '-o', '-')), all);
		assert.throws(() => run('decode', recording, '--symbols', recording), /not an ELF file/);
		assert.ok(run('sql', id, '--data', s.data, 'SELECT name FROM method').includes('shop_total'), 'those of its project');
	});

	await t.test('a damaged image is compiled from the library again', async () => {
		await s.stop();
		const sha = s.sql(`SELECT DISTINCT map_sha256 FROM build WHERE build_id='elf:${ID}'`);
		const at = execFileSync('find', [s.data, '-name', `*${sha.slice(4)}*`], { encoding: 'utf8' }).trim();
		const image = fs.readFileSync(at);
		fs.writeFileSync(at, image.subarray(0, 100));
		execFileSync(binary(), ['check', '--data', s.data, '--repair'], { stdio: 'pipe' });
		assert.deepEqual(fs.readFileSync(at), image);
		await s.start();
		assert.deepEqual(await names(id), named);
	});

	await t.test('symbols last a restart', async () => {
		await s.stop();
		await s.start();
		assert.deepEqual(await names(id), named);
		const { json } = await s.get(`/api/v1/builds/elf:${ID}`);
		assert.deepEqual([json.state, json.mapping, json.entries, json.map_version], ['ready', true, 2, 'libshop.so']);
	});
});
