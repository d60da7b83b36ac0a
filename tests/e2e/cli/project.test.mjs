/*
 * project.test.mjs - a project as one file, into another server or under another name: with all that
 * people made of it, without keys, once and again, and never half.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { binary, newFolder, startServer, until } from '../server.mjs';

function run(...args) {
	const { status, stdout, stderr } = spawnSync(binary(), args, { encoding: 'utf8' });
	return { code: status, output: stdout + stderr };
}

const send = (data, out, project = 'test') => run('export', '--project', project, '--data', data, '-o', out);
const take = (data, file, ...more) => run('import', file, '--data', data, ...more);
const isWhole = (data) => spawnSync(binary(), ['check', '--data', data]).status === 0;

function folder(t) {
	return newFolder(t, 'tracewell-project-');
}

/* A project with something of everything. */
async function filled(t) {
	const s = await startServer(t, { args: ['--retention-every', '1'] });
	const upload = async (n, query) => (await s.trace(sampleTrace(20 + n), { query: { build_id: 'b1', scenario: `s${n}`, ...query },
		headers: { 'Idempotency-Key': `key-${n}` } })).id;
	const ids = [await upload(0), await upload(1), await upload(2, { device: 'pixel' })];
	assert.equal((await s.put('/api/v1/builds/b1/methods', sampleMapping)).status, 200);
	const write = { key: s.write };
	assert.equal((await s.ask('PATCH', `/api/v1/traces/${ids[0]}`, { ...write, body: '{"title":"the slow one","pinned":true,"tags":["a","b"]}' })).status, 200);
	assert.equal((await s.ask('POST', `/api/v1/traces/${ids[0]}/annotations`, { ...write, body: '{"text":"here","ts_ns":1000,"dur_ns":10}' })).status, 201);
	assert.ok((await s.ask('PUT', '/api/v1/filters/mine', { ...write, body: '{"query":"tag=a"}' })).status < 300);
	assert.equal((await s.ask('PUT', '/api/v1/retention', { key: s.admin, body: '{"max_age_days":300}' })).status, 200);
	return { s, ids };
}

/* A reader's view of a project, without fields that depend on the server or the time. */
async function seen(s, ids) {
	const of = {};
	for (const id of ids) {
		await s.decoded(id);
		const { json } = await s.get(`/api/v1/traces/${id}`);
		const { meta, title, tags, pinned, state, summary, created_ms, has_upload } = json;
		of[id] = { meta, title, tags, pinned, state, slices: summary.slices, created_ms, has_upload,
			flame: (await s.get(`/api/v1/traces/${id}/flame`)).json,
			methods: (await s.get(`/api/v1/traces/${id}/methods`)).json,
			annotations: (await s.get(`/api/v1/traces/${id}/annotations`)).json };
	}
	of.retention = (await s.get('/api/v1/retention')).json.rules;
	of.filters = (await s.get('/api/v1/filters')).json.filters.map(({ name, query }) => ({ name, query }));
	of.builds = (await s.get('/api/v1/builds')).json.builds.map(({ build_id, entries, traces, map_version }) => ({ build_id, entries, traces, map_version }));
	return of;
}

describe('a project', { concurrency: 2 }, () => {
	for (const ending of ['tar', 'tar.zst'])
		test(`into another server, as ${ending}, while both run`, async (t) => {
			const { s, ids } = await filled(t);
			const file = path.join(folder(t), `p.${ending}`);
			const want = await seen(s, ids);
			const out = send(s.data, file);
			assert.equal(out.code, 0, out.output);
			assert.match(out.output, /^3 traces and 1 builds exported/);
			if (ending === 'tar') assert.match(execFileSync('tar', ['tf', file], { encoding: 'utf8' }), /^tracewell-project.json\ncatalogue.db\nblobs\//);

			const other = await startServer(t);
			assert.ok(other.read && other.write);
			const into = take(other.data, file);
			assert.equal(into.code, 0, into.output);
			assert.match(into.output, /^3 traces and 1 builds imported, 0 traces existed already, 0 have new ids/);
			assert.deepEqual(await seen(other, ids), want);
			assert.match(take(other.data, file).output, /^0 traces and 0 builds imported, 3 traces existed already/);
			assert.deepEqual(await seen(other, ids), want);
			assert.equal((await other.get('/api/v1/traces', { key: s.read })).status, 401, 'keys stay where they are');
			const again = await other.post('/api/v1/traces', sampleTrace(20), { query: { build_id: 'b1' }, headers: { 'Idempotency-Key': 'key-0' } });
			assert.equal(again.json.id, ids[0], 'what was sent before is known');
			await other.stop();
			assert.ok(isWhole(other.data));
		});

	test('under another name next to the first: with separate ids, the same each time', async (t) => {
		const { s, ids } = await filled(t);
		const file = path.join(folder(t), 'p.tar');
		send(s.data, file);
		const into = take(s.data, file, '--project', 'copy');
		assert.match(into.output, /^3 traces and 1 builds imported, 0 traces existed already, 3 have new ids/, into.output);
		const reader = s.key('read', 'copy');
		const list = await until(async () => {
			const { json } = await s.get('/api/v1/traces', { key: reader });
			return json.traces.every((x) => x.state === 'ready') ? json.traces : undefined;
		}, 'all decoded');
		assert.deepEqual([list.length, list.filter((x) => ids.includes(x.id)).length], [3, 0]);
		assert.match(take(s.data, file, '--project', 'copy').output, /^0 traces .* 3 traces existed already/);
		assert.equal((await s.get('/api/v1/traces', { key: reader })).json.total, 3);
		const flame = async (id, key) => (await s.get(`/api/v1/traces/${id}/flame`, { key })).json.value;
		assert.equal(await flame(list.find((x) => x.meta.scenario === 's0').id, reader), await flame(ids[0], s.read));
		assert.equal((await s.ask('DELETE', `/api/v1/traces/${ids[0]}`)).status, 204);
		assert.equal((await s.get('/api/v1/traces', { key: reader })).json.total, 3, 'deleting one leaves the other');
		await s.stop();
		assert.ok(isWhole(s.data));
	});

	test('a trace without its upload is imported as it was decoded', async (t) => {
		const { s, ids } = await filled(t);
		execFileSync('python3', ['-c', 'import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], timeout=20)\n' +
			"db.execute('UPDATE trace SET created_ms=created_ms-40*86400000 WHERE trace_id=?', (sys.argv[2],))\ndb.commit()",
		path.join(s.data, 'catalogue.db'), ids[1]]);
		await s.ask('PUT', '/api/v1/retention', { key: s.admin, body: '{"uploads_max_age_days":30}' });
		await until(async () => ((await s.get(`/api/v1/traces/${ids[1]}`)).json.has_upload ? undefined : true), 'its upload deleted');
		const file = path.join(folder(t), 'p.tar.zst');
		const want = await seen(s, ids);
		send(s.data, file);
		const other = await startServer(t);
		assert.ok(other.read);
		assert.equal(take(other.data, file).code, 0);
		assert.deepEqual(await seen(other, ids), want);
		await other.stop();
		assert.ok(isWhole(other.data));
	});

	test('ids that are not ids, and would lead out of the data folder, are refused', async (t) => {
		const { s, ids } = await filled(t);
		const file = path.join(folder(t), 'p.tar');
		const evil = '../../../../tracewell-evil';
		await s.stop();
		execFileSync('python3', ['-c', 'import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\n' +
			"for table in ('trace', 'part', 'trace_tag', 'annotation', 'job'): db.execute(f'UPDATE {table} SET trace_id=? WHERE trace_id=?', sys.argv[2:])\ndb.commit()",
		path.join(s.data, 'catalogue.db'), evil, ids[0]]);
		send(s.data, file);
		const other = folder(t);
		const { code, output } = take(other, file);
		assert.deepEqual([code, /its catalogue is damaged; nothing was changed/.test(output)], [1, true], output);
		assert.match(run('check', '--data', s.data).output, new RegExp(`invalid trace id: ${evil}`));
	});

	test('a setting or labels that are not JSON are refused', async (t) => {
		const { s, ids } = await filled(t);
		await s.stop();
		for (const [broken, whole, words] of [
			["UPDATE project_setting SET value='{' WHERE key='retention'", "UPDATE project_setting SET value='{}' WHERE key='retention'", 'setting retention of project .* is not valid JSON'],
			[`UPDATE trace SET labels='{"a":' WHERE trace_id='${ids[0]}'`, "UPDATE trace SET labels=''", `labels of trace ${ids[0]} are not valid JSON`]]) {
			const change = (sql) => execFileSync('python3', ['-c', 'import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\ndb.execute(sys.argv[2])\ndb.commit()',
				path.join(s.data, 'catalogue.db'), sql]);
			const file = path.join(folder(t), 'p.tar');
			change(broken);
			send(s.data, file);
			const { code, output } = take(folder(t), file);
			assert.deepEqual([code, /its catalogue is damaged; nothing was changed/.test(output)], [1, true], output);
			assert.match(run('check', '--data', s.data).output, new RegExp(words));
			change(whole);
		}
	});

	test('a broken archive changes nothing and is reported', async (t) => {
		const { s, ids } = await filled(t);
		const dir = folder(t);
		const file = path.join(dir, 'p.tar');
		send(s.data, file);
		send(s.data, file + '.zst');
		const other = await startServer(t);
		assert.ok(other.read);
		const bytes = fs.readFileSync(file);
		const harm = {
			'cut in the middle': bytes.subarray(0, bytes.length >> 1),
			'without its end': bytes.subarray(0, bytes.length - 1536),
			'a flipped byte in the catalogue': flipped(bytes, bytes.indexOf('SQLite format 3') + 4096 + 10),
			'a flipped byte in an upload': flipped(bytes, bytes.indexOf('blobs/') + 512 + 40),
			'not an archive': Buffer.from('hello'),
			empty: Buffer.alloc(0),
			'compressed and cut': fs.readFileSync(file + '.zst').subarray(0, -20),
		};
		for (const [what, with_] of Object.entries(harm)) {
			const broken = path.join(dir, 'broken');
			fs.writeFileSync(broken, with_);
			const { code, output } = take(other.data, broken);
			assert.equal(code, 1, what);
			assert.match(output, /^tracewell import: .*nothing was changed/, `${what}: ${output}`);
			assert.equal((await other.get('/api/v1/traces')).json.total, 0, what);
		}
		assert.deepEqual(other.spool(), []);
		const uploads = () => fs.readdirSync(path.join(other.data, 'blobs'), { recursive: true, withFileTypes: true }).filter((f) => f.isFile()).length;
		assert.equal(uploads(), 0, 'nothing of them is left');
		assert.equal(take(other.data, file).code, 0);
		assert.ok(uploads() > 0);
		await until(() => (other.spool().length === 0 ? true : undefined), 'what was imported is decoded');
		await seen(other, ids);
		const piped = spawnSync('bash', ['-c', '"$0" export --project test --data "$1" -o - | tee "$3" | "$0" import /dev/stdin --data "$2"', binary(), s.data, path.join(dir, 'piped'), path.join(dir, 'piped.tar.zst')], { encoding: 'utf8' });
		assert.equal(piped.status, 0, piped.stderr);
		assert.match(piped.stderr, /traces and \d+ builds exported/);
		assert.match(piped.stdout, new RegExp(`^${ids.length} traces and`));
		const cut = path.join(dir, 'cut.tar.zst');
		fs.writeFileSync(cut, fs.readFileSync(path.join(dir, 'piped.tar.zst')).subarray(0, -50));
		assert.notEqual(take(path.join(dir, 'cut'), cut).code, 0);
		assert.match(send(s.data, file, 'nobody').output, /there is no project "nobody"/);
		assert.match(take(other.data, path.join(dir, 'none')).output, /No such file/);
		assert.deepEqual([run('import').code, run('export', '--project', 'x').code], [2, 2]);
	});
});

function flipped(bytes, at) {
	const out = Buffer.from(bytes);
	out[at] ^= 0x04;
	return out;
}
