/*
 * equal_contents.test.mjs - equal contents share one file. While the last trace or mapping of a content is deleted, the same
 * content is uploaded again: one of both waits at the step where the other could take its file away, or the server is killed
 * there. The upload is stored, and no file is left without a row.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { startBucket } from '../bucket.mjs';
import { sampleMapping, sampleTrace } from '../make.mjs';
import { Server, atEnd, binary, newFolder, sideBySide, until } from '../server.mjs';

const test = sideBySide(4);
const MAPPING = [1, 2].map((n) => `# version-${n}\n${sampleMapping}`);
const filesBelow = (folder) => (fs.existsSync(folder) ? fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((e) => e.isFile()).map((e) => e.name) : []);

/* Not spawnSync: the store is in this process. */
function run(args, { env, input = '' }) {
	const child = spawn(binary(), args, { env: { ...process.env, ...env } });
	let text = '';
	for (const out of [child.stdout, child.stderr]) out.setEncoding('utf8').on('data', (piece) => (text += piece));
	child.stdin.end(input);
	return new Promise((done) => child.once('close', (code) => done({ code, text })));
}

class Shared {
	constructor(t, bucket) {
		const folder = newFolder(t, 'tracewell-equal-');
		this.pause = path.join(folder, 'pause');
		this.bucket = bucket;
		this.s = new Server(path.join(folder, 'data'), ['--min-free', '0', '--shutdown', '5', '--retention-every', '1', '--max-disk-use', '0', ...(bucket ? bucket.args() : [])], {});
		this.env = { ...bucket?.env, TRACEWELL_PAUSE_FILE: this.pause };
		this.kept = new Map();
		atEnd(t, () => this.s.stop('SIGKILL'));
	}

	/* `step`: threads wait there from hold() until go(). */
	async start(step, env = {}) {
		this.s.env = { ...this.env, ...(step ? { TRACEWELL_PAUSE_AT: step } : {}), ...env };
		this.s.log = '';
		await this.s.start();
		assert.ok(this.s.ingest && this.s.read && this.s.write);
		this.other ??= this.s.key('write', 'other');
	}

	hold() {
		fs.writeFileSync(this.pause, '');
	}

	go() {
		fs.rmSync(this.pause);
	}

	async send(body, key = this.s.ingest) {
		const answer = await this.s.post('/api/v1/traces', body, { key });
		assert.equal(answer.status, 202, answer.text);
		this.kept.set(answer.json.id, { body, key: key === this.other ? key : this.s.read });
		return answer.json.id;
	}

	/* A trace that was decoded, to be deleted. */
	async last(body) {
		const { id } = await this.s.trace(body);
		return id;
	}

	remove(id) {
		return this.s.ask('DELETE', `/api/v1/traces/${id}`);
	}

	isGone(id) {
		return until(() => this.s.sql(`SELECT count(*) FROM trace WHERE trace_id='${id}'`) === '0' || undefined, 'its row is deleted');
	}

	blobs() {
		return this.bucket ? this.bucket.keys().filter((key) => key.startsWith('blobs/')).map((key) => path.basename(key)) : filesBelow(path.join(this.s.data, 'blobs'));
	}

	/* Changes with each upload of the only content. */
	puts() {
		const [sha] = this.blobs();
		return this.bucket ? this.bucket.count('PUT', 'blobs/') : fs.statSync(path.join(this.s.data, 'blobs', sha.slice(0, 2), sha)).ino;
	}

	async check() {
		const { s } = this;
		for (const [id, { body, key }] of this.kept) {
			await until(async () => {
				const { json } = await s.get(`/api/v1/traces/${id}`, { key });
				assert.notEqual(json.state, 'failed', JSON.stringify(json.error));
				return json.state === 'ready' || undefined;
			}, `${id} is decoded`);
			assert.deepEqual((await s.get(`/api/v1/traces/${id}/raw/trace`, { key })).bytes, body);
		}
		const rows = s.sql('SELECT sha256 FROM part UNION SELECT source_sha256 FROM build UNION SELECT map_sha256 FROM build').split('\n').filter(Boolean).sort();
		await until(() => s.sql('SELECT (SELECT count(*) FROM file_drop) + (SELECT count(*) FROM job) + (SELECT count(*) FROM project WHERE deleted_ms<>0)') === '0' || undefined, 'nothing is left to do');
		await until(() => this.blobs().sort().join() === rows.join() || undefined, () => `one file per content: ${this.blobs().length} for ${rows.length}`);
		await s.stop();
		const { code, text } = await run(['check', '--data', s.data], s);
		assert.equal(code, 0, text);
	}
}

for (const where of ['folder', 'store']) {
	const begin = async (t) => new Shared(t, where === 'store' ? await startBucket(t) : undefined);
	const suite = (name, body) => test(`${where}: ${name}`, { timeout: 600_000 }, async (t) => body(await begin(t)));

	for (const killed of [false, true])
		suite(`uploaded while a deletion waits between its row and its file${killed ? ', and killed' : ''}`, async (x) => {
			const body = sampleTrace(3);
			await x.start('row_deleted');
			const id = await x.last(body);
			x.hold();
			const deleted = x.remove(id).catch(() => null);
			await x.isGone(id);
			await x.send(body, x.other);
			if (killed) {
				await x.s.stop('SIGKILL');
				await x.start();
			}
			x.go();
			await deleted;
			await x.check();
		});

	for (const killed of where === 'store' ? [false] : [false, true]) /* a store's deletions by a killed server are repeated after a minute */
		suite(`deleted while an upload waits between its file and its row${killed ? ', and killed' : ''}`, async (x) => {
			const body = sampleTrace(4);
			await x.start(where === 'store' ? 'object_put' : 'blob_renamed');
			const id = await x.last(body);
			const before = x.puts();
			x.hold();
			const sent = x.send(body, x.other).catch(() => null);
			await until(() => x.puts() !== before || undefined, 'its file is stored');
			const deleted = x.remove(id).catch(() => null);
			await x.isGone(id);
			if (killed) {
				await x.s.stop('SIGKILL');
				await sent;
				x.go();
				await x.start();
				await x.send(body, x.other);
			} else x.go();
			await Promise.all([sent, deleted]);
			assert.equal(x.kept.size, 1);
			await x.check();
		});

	suite('uploaded while a project with it is deleted', async (x) => {
		const body = sampleTrace(5);
		await x.start('row_deleted');
		const { text } = await run(['key', 'create', '--data', x.s.data, '--project', 'gone', '--new-project', '--scope', 'write'], x.s);
		const { json } = await x.s.post('/api/v1/traces', body, { key: text.trim() });
		x.hold();
		assert.equal((await run(['project', 'delete', 'gone', '--data', x.s.data], { env: x.s.env, input: 'gone\n' })).code, 0);
		await x.isGone(json.id);
		await x.send(body);
		x.go();
		await x.check();
	});

	suite('uploaded while it expires', async (x) => {
		const body = sampleTrace(6);
		await x.start('row_deleted');
		const id = await x.last(body);
		x.hold();
		await x.s.ask('PUT', '/api/v1/retention', { key: x.s.admin, body: JSON.stringify({ max_traces: 1 }) });
		await x.send(sampleTrace(7));
		await x.isGone(id);
		await x.send(body, x.other);
		x.go();
		await x.check();
	});

	suite('a mapping is compiled while the last build with it gets another', async (x) => {
		await x.start('mapping_stored');
		assert.equal((await x.s.put('/api/v1/builds/b1/methods', MAPPING[0])).status, 200);
		x.hold();
		const put = (build, body) => x.s.ask('PUT', `/api/v1/builds/${build}/methods?wait=0`, { key: x.s.write, body });
		const [source, replaced] = [await put('b2', MAPPING[0]), await put('b1', MAPPING[1])];
		assert.deepEqual([source.status, replaced.status], [202, 202]);
		x.go();
		await until(async () => (await x.s.get('/api/v1/builds')).json.builds.every((b) => b.state === 'ready') || undefined, 'both are compiled');
		await x.check();
	});
}
