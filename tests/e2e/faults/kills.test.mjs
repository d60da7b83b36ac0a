/*
 * kill -9 at random moments during many uploads, mappings and deletions: accepted uploads exist and become
 * ready with their exact bytes, and nothing incomplete remains.
 *
 * KILLS (30) sets the number of kills; `KILLS=1000 node --test tests/e2e/faults/kills.test.mjs` is the long
 * run.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { random } from '../power_cut.mjs';
import { Server, atEnd, binary, sleep, until } from '../server.mjs';

const KILLS = Number(process.env.KILLS ?? 30);
const SEED = Number(process.env.KILL_SEED ?? 1);
const CHECK_EVERY = 10;   /* kills between two complete checks */
const MOST_KEPT = 60;    /* traces: older ones are deleted by the load itself */
const SENDERS = 6;
const hash = (bytes) => createHash('sha256').update(bytes).digest('hex');
const files = (folder) => fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((e) => e.isFile()).length;

/* Clients that never stop, and the responses that they received. */
class Load {
	constructor(s) {
		this.s = s;
		this.kept = new Map();    /* id: SHA-256 of accepted uploads that were not deleted */
		this.doubted = new Set(); /* deletion was requested and not answered */
		this.sent = new Map();    /* SHA-256: slices */
		this.open = new Map();    /* Idempotency-Key: body whose answer never came */
		this.mapped = 0;
		this.asked = 0;           /* versions of the mapping that were sent */
		this.accepted = 0;
		this.serial = 0;
	}

	async upload() {
		const again = [...this.open.keys()][0];
		const key = again ?? `key-${++this.serial}`;
		const body = this.open.get(key) ?? sampleTrace(5 + (this.serial % 40), 1000 + this.serial);
		this.sent.set(hash(body), (body.length - 32) / 16);
		this.open.delete(key);
		const answer = await this.s.post('/api/v1/traces', body, { query: { build_id: 'b' }, headers: { 'Idempotency-Key': key } }).catch(() => null);
		if (answer?.status === 202 || answer?.status === 200) {
			this.kept.set(answer.json.id, hash(body));
			this.accepted++;
		} else this.open.set(key, body);
	}

	async map() {
		const version = ++this.asked;
		const answer = await this.s.put('/api/v1/builds/b/methods', `# version-${version}\n${sampleMapping}`).catch(() => null);
		if (answer?.status === 200) this.mapped = Math.max(this.mapped, version);
	}

	async remove() {
		const [id] = this.kept.keys();
		const sha256 = this.kept.get(id);
		this.kept.delete(id);
		this.doubted.add(id);
		const answer = await this.s.ask('DELETE', `/api/v1/traces/${id}`).catch(() => null);
		if (answer?.status === 204) this.doubted.delete(id);
		else if (answer && answer.status !== 404) {
			this.doubted.delete(id);
			this.kept.set(id, sha256);
		}
	}

	/* Until `stop` is set, and the last request ended. */
	async run(chance) {
		this.stop = false;
		const sender = async () => {
			while (!this.stop) {
				const what = chance();
				if (this.kept.size > MOST_KEPT || (what < 0.1 && this.kept.size > 10)) await this.remove();
				else if (what < 0.15) await this.map();
				else await this.upload();
			}
		};
		await Promise.all(Array.from({ length: SENDERS }, sender));
	}
}

async function look(s, load) {
	const traces = await until(async () => {
		const { status, json } = await s.get('/api/v1/traces?limit=500').catch(() => ({}));
		return status === 200 && json.traces.every((x) => x.state === 'ready' || x.state === 'failed') ? json.traces : undefined;
	}, 'all decoded', 60);
	const there = new Set(traces.map((x) => x.id));
	for (const id of load.kept.keys()) assert.ok(there.has(id), `${id} was accepted and is lost`);
	for (const x of traces) {
		assert.equal(x.state, 'ready', JSON.stringify(x.error));
		const raw = await s.get(`/api/v1/traces/${x.id}/raw/trace`);
		assert.equal(raw.status, 200, `${x.id}: ${raw.text.slice(0, 100)}`);
		assert.equal(x.summary.slices, load.sent.get(hash(raw.bytes)), `${x.id} is what was sent`);
		if (load.kept.has(x.id)) assert.equal(hash(raw.bytes), load.kept.get(x.id));
		else assert.ok(load.doubted.has(x.id) || load.open.size > 0, `${x.id} was deleted and is back, or was never sent`);
	}
	const left = [...load.doubted].filter((id) => there.has(id));
	for (const id of left) assert.equal((await s.ask('DELETE', `/api/v1/traces/${id}`)).status, 204, 'deleted at last');
	load.doubted.clear();
	const build = (await s.get('/api/v1/builds')).json.builds.find((b) => b.build_id === 'b');
	const version = build?.mapping ? Number(/version-(\d+)/.exec(build.map_version)[1]) : 0;
	assert.ok(load.mapped === 0 || version > 0, 'the mapping is there');
	const counts = () => ['spool', 'blobs', 'traces'].map((name) => files(path.join(s.data, name)));
	const rows = traces.length - left.length;
	const wanted = [0, rows + (version ? 2 : 0), rows];
	await until(() => (String(counts()) === String(wanted) ? true : undefined), 'as many files as rows', 20).catch((e) => {
		throw new Error(`${e.message}: ${counts()} for ${wanted}`);
	});
}

test(`killed ${KILLS} times under load`, async (t) => {
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-kills-'));
	const s = new Server(path.join(folder, 'data'), ['--min-free', '0', '--shutdown', '5'], {});
	const load = new Load(s);
	const chance = random(SEED);
	await s.start();
	atEnd(t, async () => {
		await s.stop('SIGKILL');
		fs.rmSync(folder, { recursive: true, force: true });
	});
	assert.ok(s.ingest && s.read && s.write);
	/* fetch() loads its parser during the first connection of a process, and never settles if that is closed meanwhile */
	await s.get('/healthz', { key: null });
	for (let kills = 1; kills <= KILLS; kills++) {
		const loaded = load.run(chance);
		await sleep(chance() ** 2 * 800);
		load.stop = true;
		await s.stop('SIGKILL');
		await loaded;
		s.log = '';
		await s.start();
		if (kills % CHECK_EVERY === 0 || kills === KILLS) await look(s, load);
	}
	await s.stop();
	const { status, stdout, stderr } = spawnSync(binary(), ['check', '--data', s.data], { encoding: 'utf8' });
	assert.equal(status, 0, stdout + stderr);
	t.diagnostic(`${KILLS} kills, ${load.accepted} uploads accepted, ${load.kept.size} kept to the end`);
	assert.ok(load.accepted > KILLS / 2, `${load.accepted} accepted`);
});
