/*
 * backup.test.mjs - a backup made under load is a data folder that a server runs on, with everything
 * that was accepted before it began.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { atEnd, binary, startServer, until } from '../server.mjs';

function backup(data, to, ...args) {
	const run = spawnSync(binary(), ['backup', '--data', data, '--to', to, ...args], { encoding: 'utf8' });
	return { code: run.status, output: run.stdout + run.stderr };
}

function backupBeside(data, to) {
	const child = spawn(binary(), ['backup', '--data', data, '--to', to], { stdio: ['ignore', 'pipe', 'inherit'] });
	let output = '';
	child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
	return new Promise((done) => child.once('close', (code) => done({ code, output })));
}

const isWhole = (data) => spawnSync(binary(), ['check', '--data', data]).status === 0;

async function upload(s, n) {
	return (await s.post('/api/v1/traces', sampleTrace(50 + n), { query: { build_id: 'b1', scenario: `s${n}` } })).json.id;
}

function folder(t) {
	const dir = fs.mkdtempSync(path.join(fs.realpathSync('/tmp'), 'tracewell-backup-'));
	atEnd(t, () => fs.rmSync(dir, { recursive: true, force: true }));
	return path.join(dir, 'backup');
}

const flameOf = async (s, id) => (await s.get(`/api/v1/traces/${id}/flame`)).json;

describe('tracewell backup', { concurrency: 2 }, () => {
	test('under load: a server on the copy has all that was accepted before', async (t) => {
		const s = await startServer(t);
		const to = folder(t);
		const before = [];
		for (let i = 0; i < 20; i++) before.push(await upload(s, i));
		await s.put('/api/v1/builds/b1/methods', sampleMapping);
		await s.decoded(before[0]);

		let going = true;
		const during = [];
		const load = (async () => {
			for (let i = 20; going; i++) {
				during.push(await upload(s, i));
				if (i % 5 === 0) await s.ask('DELETE', `/api/v1/traces/${during.shift()}`);
			}
		})();
		const { code, output } = await backupBeside(s.data, to);
		going = false;
		await load;
		assert.equal(code, 0, output);
		assert.match(output, /\d+ uploads in the backup: \d+ files copied \(\d+\.\d MB\), 0 obsolete files deleted, 0 uploads excluded/);
		assert.ok(isWhole(to), 'every file that it names is there');

		const want = await flameOf(s, before[0]);
		const again = await startServer(t, { data: to });
		for (const id of before) assert.equal((await again.get(`/api/v1/traces/${id}`, { key: s.read })).status, 200, id);
		await again.decoded(before[19]);
		assert.deepEqual(await flameOf(again, before[0]), want);
	});

	test('again to the same folder: only new files are copied, and deleted ones removed', async (t) => {
		const s = await startServer(t);
		const to = folder(t);
		const ids = [await upload(s, 1), await upload(s, 2)];
		for (const id of ids) await s.decoded(id);
		assert.equal(backup(s.data, to).code, 0);
		const age = async () => /^tracewell_backup_age_seconds (\d+)$/m.exec((await s.get('/metrics', { key: null })).text)?.[1];
		assert.ok(Number(await age()) < 60);
		const before = new Date(Date.now() - 5 * 86400e3);
		fs.utimesSync(path.join(s.data, 'backup.done'), before, before);
		assert.ok(Number(await age()) >= 5 * 86400);
		fs.rmSync(path.join(s.data, 'backup.done'));
		assert.equal(await age(), undefined, 'no copy, no age');
		assert.match(backup(s.data, to).output, /^2 uploads in the backup: 0 files copied/);
		assert.ok(Number(await age()) < 60);
		await s.decoded(await upload(s, 3));
		await s.ask('DELETE', `/api/v1/traces/${ids[0]}`);
		assert.match(backup(s.data, to).output, /^2 uploads in the backup: 2 files copied .* 1 obsolete files deleted/);
		assert.ok(isWhole(to));
	});

	test('without decoded files, a server decodes again', async (t) => {
		const s = await startServer(t);
		const to = folder(t);
		const id = await upload(s, 7);
		await s.decoded(id);
		const want = await flameOf(s, id);
		assert.equal(backup(s.data, to, '--without-decoded').code, 0);
		const again = await startServer(t, { data: to });
		await until(async () => ((await again.get(`/api/v1/traces/${id}/flame`)).status === 200 ? true : undefined), 'decoded again');
		assert.deepEqual(await flameOf(again, id), want);
	});

	test('without decoded files, that of a trace whose upload has expired is still copied', async (t) => {
		const s = await startServer(t, { args: ['--retention-every', '1'] });
		const to = folder(t);
		const id = await upload(s, 8);
		await s.decoded(id);
		s.sql(`UPDATE trace SET created_ms=created_ms-40*86400000 WHERE trace_id='${id}'`);
		await s.ask('PUT', '/api/v1/retention', { key: s.admin, body: '{"uploads_max_age_days":30}' });
		await until(async () => ((await s.get(`/api/v1/traces/${id}`)).json.has_upload ? undefined : true), 'its upload deleted');
		const want = await flameOf(s, id);
		assert.equal(backup(s.data, to, '--without-decoded').code, 0);
		assert.ok(isWhole(to));
		const again = await startServer(t, { data: to });
		assert.deepEqual(await flameOf(again, id), want);
	});

	test('a damaged upload is named and skipped, the rest is copied', async (t) => {
		const s = await startServer(t);
		const to = folder(t);
		const ids = [await upload(s, 1), await upload(s, 2)];
		for (const id of ids) await s.decoded(id);
		const blob = execFileSync('find', [path.join(s.data, 'blobs'), '-type', 'f'], { encoding: 'utf8' }).split('\n')[0];
		fs.appendFileSync(blob, 'x');
		const { code, output } = backup(s.data, to);
		assert.equal(code, 1);
		assert.match(output, /the upload of [0-9A-Z]{26} is excluded: it is damaged/);
		assert.match(output, /^1 uploads in the backup/m);
		const again = await startServer(t, { data: to });
		for (const id of ids) assert.equal((await again.get(`/api/v1/traces/${id}/flame`, { key: s.read })).status, 200);
		await again.stop();

		fs.rmSync(to, { recursive: true });
		assert.equal(backup(s.data, to, '--without-decoded').code, 1);
		assert.ok(isWhole(to), 'what nobody could read there is not named either');
	});

	test('one that is killed leaves the one before', async (t) => {
		const s = await startServer(t);
		const to = folder(t);
		await s.decoded(await upload(s, 1));
		assert.equal(backup(s.data, to).code, 0);
		for (let i = 2; i < 12; i++) await upload(s, i);
		for (const ms of [5, 15, 40]) {
			spawnSync(binary(), ['backup', '--data', s.data, '--to', to], { timeout: ms, killSignal: 'SIGKILL' });
			assert.ok(isWhole(to), `killed after ${ms} ms`);
		}
		assert.equal(backup(s.data, to).code, 0);
		assert.ok(isWhole(to));
	});

	test('a copy of which the server knows nothing is left alone', async (t) => {
		const to = folder(t);
		const [old, fresh] = [await startServer(t), await startServer(t)];
		await old.decoded(await upload(old, 1));
		await fresh.decoded(await upload(fresh, 2));
		assert.equal(backup(old.data, to).code, 0);
		const files = () => execFileSync('find', [to, '-type', 'f', '!', '-name', 'catalogue.db-*', '-exec', 'sha256sum', '{}', '+'], { encoding: 'utf8' }).split('\n').sort();
		const before = files();
		const refused = backup(fresh.data, to);
		assert.equal(refused.code, 1);
		assert.match(refused.output, /shares no project with this server .*: use another folder, or set --replace/);
		assert.deepEqual(files(), before);
		assert.equal(backup(old.data, to).code, 0, 'its own goes on');
		assert.match(backup(fresh.data, to, '--replace').output, /^1 uploads in the backup: 2 files copied .* 1 obsolete files deleted/);
		assert.ok(isWhole(to));
	});

	test('a target that may be the only copy of its data is refused', async (t) => {
		const s = await startServer(t);
		const id = await upload(s, 1);
		await s.decoded(id);
		const to = folder(t);
		const uploads = (dir) => execFileSync('find', ['blobs', '-type', 'f'], { cwd: dir, encoding: 'utf8' }).split('\n').sort();
		const all = await Promise.all(Array.from({ length: 3 }, () => backupBeside(s.data, to)));
		assert.ok(all.some((b) => b.code === 0), 'one of several at once');
		assert.equal(backup(s.data, to).code, 0);
		assert.ok(isWhole(to));

		const copy = await startServer(t, { data: to });
		const later = await copy.post('/api/v1/traces', sampleTrace(99), { key: s.ingest });
		await until(async () => (await copy.get(`/api/v1/traces/${later.json.id}`, { key: s.read })).json.state === 'ready', 'it is decoded');
		const before = uploads(to);
		for (const args of [[], ['--replace']]) assert.match(backup(s.data, to, ...args).output, /a server or another backup uses/);
		await copy.stop();
		assert.match(backup(s.data, to).output, /a server has run on .* since the last backup, .*: use another folder, or set --replace/);
		assert.deepEqual(uploads(to), before);
		await copy.start();
		assert.equal((await copy.get(`/api/v1/traces/${later.json.id}`, { key: s.read })).status, 200);
		await copy.stop();

		const lost = folder(t);
		fs.cpSync(to, lost, { recursive: true });
		for (const name of fs.readdirSync(lost)) if (name.startsWith('catalogue.db')) fs.rmSync(path.join(lost, name));
		assert.match(backup(s.data, lost).output, /has uploads but no catalogue/);
		fs.writeFileSync(path.join(lost, 'catalogue.url'), 'postgres://x/y\n');
		assert.match(backup(s.data, lost, '--replace').output, /whose catalogue is in PostgreSQL: use another folder/);
		assert.deepEqual(uploads(lost), before);

		for (const at of ['copy', 'blobs/00', '.', 'new/..']) assert.equal(backup(s.data, path.join(s.data, at)).code, 2, at);
		assert.equal(backup(s.data, path.dirname(s.data)).code, 2, 'the folder above');
		assert.match(backup(s.data, to, '--replace').output, /^1 uploads in the backup: .* 1 obsolete files deleted/);
		assert.equal(backup(s.data, to).code, 0, 'its own copy again');
	});

	test('unsupported cases are reported', async (t) => {
		const s = await startServer(t);
		assert.match(backup(s.data, s.data).output, /is the data folder itself/);
		assert.match(backup('/nonexistent', folder(t)).output, /is not a data folder of a server/);
		assert.match(backup(s.data, '/proc/backup').output, /cannot|mkdir/);
		assert.equal(spawnSync(binary(), ['backup', '--data', s.data]).status, 2);
	});
});
