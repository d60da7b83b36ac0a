/*
 * The n-th disk operation of upload, decode and mapping fails, for every third n (in a full run each) until none is reached:
 * after a 2xx the upload is stored and becomes ready; after any other response it is enough to send it
 * again; and after a restart no incomplete file remains. Writes that are short or interrupted refuse nothing.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { sampleMapping, sampleTrace } from '../make.mjs';
import { Faults, shim } from '../faults.mjs';
import { Server, atEnd, inFull, until } from '../server.mjs';

const MOST = 1000;
const LANES = 4;
const FULL_DISKS = 2; /* lanes in which the disk is full */
const STEP = LANES * inFull(1, 3); /* every third operation, in a full run each */
/* Operations of an upload before its response, or of a mapping's compilation, which is tried again. */
const OF_AN_UPLOAD = /^(\w+ \/spool\/(up|map)-|rename \/blobs\/|fsync \/blobs\/|mkdir \/blobs\/)/;
const files = (folder) => fs.readdirSync(folder, { recursive: true, withFileTypes: true })
	.filter((e) => e.isFile()).length;

class Run {
	constructor(server, faults) {
		this.s = server;
		this.faults = faults;
		this.accepted = new Set();
		this.rounds = 0;
		this.mapped = null; /* version that was answered with 2xx last */
		this.maybe = new Set(); /* versions answered with an error since */
	}

	upload(n) {
		return this.s.post('/api/v1/traces?build_id=b', sampleTrace(20, 5000 + n),
			{ headers: { 'Idempotency-Key': `round-${n}` } }).catch(() => null);
	}

	/* Accepted uploads are decoded without intervention. */
	async becomesReady(id, seconds) {
		await until(async () => {
			const { status, json } = await this.s.get(`/api/v1/traces/${id}`).catch(() => ({}));
			if (status === 200) assert.notEqual(json.state, 'failed', JSON.stringify(json.error));
			return status === 200 && json.state === 'ready' ? true : undefined;
		}, `trace ${id} ready`, seconds);
	}

	async faulty(n) {
		const version = `version-${n}`;
		const sent = await this.upload(n);
		const map = await this.s.put('/api/v1/builds/b/methods?wait=1', `# ${version}\n${sampleMapping}`).catch(() => null);
		for (const answer of [sent, map])
			if (answer && answer.status >= 300) assert.ok(answer.json?.error?.message, 'an error has a message: ' + answer.text);
		if (map?.status === 200) {
			this.mapped = version;
			this.maybe.clear();
		} else this.maybe.add(version);
		if (sent && sent.status < 300) this.accepted.add(sent.json.id);
		/* 202 of a mapping: stored, and compiled once the disk works again */
		const refused = [sent, map].filter((a) => !a || a.status >= 300).length;
		return { id: sent && sent.status < 300 ? sent.json.id : undefined, refused, errors: refused + (map?.status === 202 ? 1 : 0) };
	}

	/* Was a compilation put off or repeated since the last start? */
	compiledAgain() {
		return this.s.log.split('\n').some((line) => line.includes('event=mapping_compiled') && !line.includes('outcome=ready'));
	}

	/* Removes the fault. */
	async settled(n) {
		const again = await this.upload(n);
		assert.ok(again && again.status < 300, 'sent again: ' + again?.text);
		this.rounds++;
		this.accepted.add(again.json.id);
		await this.becomesReady(again.json.id, 20);
		assert.equal(this.accepted.size, this.rounds, 'an upload sent twice is one trace');
		const { json } = await this.s.get('/api/v1/traces?limit=500');
		assert.equal(json.total, this.rounds);
		for (const t of json.traces) {
			assert.ok(this.accepted.has(t.id));
			assert.equal(t.state, 'ready', JSON.stringify(t));
			assert.equal(t.summary.slices, 60);
		}
		const build = await until(async () => {
			const found = (await this.s.get('/api/v1/builds')).json.builds.find((b) => b.build_id === 'b');
			return /queued|compiling/.test(found.state) ? undefined : found;
		}, 'no mapping waits to be compiled');
		if (build.mapping) assert.ok(build.map_version === this.mapped || this.maybe.has(build.map_version), build.map_version);
		else assert.equal(this.mapped, null);
		const blobs = this.rounds + (build.mapping ? 2 : 0);
		const { data } = this.s;
		await until(async () => (files(path.join(data, 'spool')) === 0 && files(path.join(data, 'blobs')) === blobs &&
			files(path.join(data, 'traces')) === this.rounds ? true : undefined), `no leftovers after round ${n}`, 10)
			.catch((e) => {
				throw new Error(`${e.message}: ${files(path.join(data, 'spool'))} in the spool, ` +
					`${files(path.join(data, 'blobs'))} blobs for ${blobs}, ${files(path.join(data, 'traces'))} traces for ${this.rounds}`);
			});
	}

	async restart() {
		assert.ok(!this.s.exited, 'the server lives: ' + this.s.log.slice(-600));
		await this.s.stop();
		this.s.log = '';
		await this.s.start();
	}
}

async function start(t) {
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-fault-'));
	const data = path.join(folder, 'data');
	const faults = new Faults(folder, data);
	const s = new Server(data, ['--shutdown', '5', '--min-free', '0', '--reserve', '0', '--worker-jail=false'], { LD_PRELOAD: faults.shim });
	await s.start();
	atEnd(t, async () => {
		await s.stop();
		fs.rmSync(folder, { recursive: true, force: true });
	});
	assert.ok(s.read && s.ingest);
	return new Run(s, faults);
}

/* Operations first, first + step, ... until one is not reached, or `most`; `only` operations of that name count.  `last`:
 * the last operation that fails. */
async function failEach(t, { error, first, step, last, only = '', most = MOST, repeats = false }, met) {
	const run = await start(t);
	for (let n = first; n <= most; n += step) {
		assert.ok(n < MOST, 'an end');
		run.faults.arm(n, last(n), error, 0, only);
		const { id, refused, errors } = await run.faulty(n);
		if (id && last(n) === n) await run.becomesReady(id, 20);
		else if (id) await until(() => (run.faults.hits() > 0 || run.s.exited || run.s.log.includes(`event=decoded trace=${id} `) || undefined), 'a fault met, or the trace decoded');
		const { hits, what } = run.faults.disarm();
		try {
			if (repeats) assert.equal(refused, 0, 'the write is repeated');
			else if (OF_AN_UPLOAD.test(what)) assert.ok(errors > 0 || run.compiledAgain(), 'accepted although it was not written');
			await run.restart();
			await run.settled(n);
		} catch (e) {
			e.message = `operation ${n} (${what}, ${error}): ${e.message}`;
			throw e;
		}
		if (hits === 0) return;
		const kind = what.split(' ')[0];
		met.set(kind, (met.get(kind) ?? 0) + 1);
	}
}

const skip = !fs.existsSync(shim) && `no ${shim}`;
const KINDS = ['write', 'pwrite', 'fsync', 'fdatasync', 'rename', 'open', 'mkdir'];
const met = new Map();

/* Lanes wait for the disk and for retries side by side. */
describe('disk operations fail', { skip, concurrency: LANES + FULL_DISKS }, () => {
	for (let lane = 1; lane <= LANES; lane++)
		test(`each once, from ${lane} in steps of ${STEP}`, (t) =>
			failEach(t, { error: 'EIO', first: 1 + ((lane - 1) * STEP) / LANES, step: STEP, last: (n) => n }, met));
	for (let lane = 0; lane < FULL_DISKS; lane++)
		test(`the disk is full from one on, from ${1 + lane * STEP} in steps of ${FULL_DISKS * STEP}`, (t) =>
			failEach(t, { error: 'ENOSPC', first: 1 + lane * STEP, step: FULL_DISKS * STEP, last: () => 0xffffffff }, new Map()));
});

/* The system may write less than it was given, or nothing because of a signal. */
describe('writes are repeated', { skip, concurrency: 4 }, () => {
	for (const error of ['SHORT', 'EINTR'])
		for (const only of ['write', 'pwrite'])
			test(`${only}, ${error}`, (t) => failEach(t, { error, first: 1, step: inFull(1, 8), last: (n) => n, only, repeats: true }, new Map()));
});

/* Threads take turns as they like, so the n-th operation is not the same one each time: a rare kind
 * may have been stepped over by all lanes. */
test('every kind of operation was made to fail', { skip }, async (t) => {
	for (const kind of KINDS)
		for (let n = 1; n <= 8 && !met.has(kind); n++)
			await t.test(`${kind} ${n}`, (t2) => failEach(t2, { error: 'EIO', first: n, step: 1, last: (i) => i, only: kind, most: n }, met));
	for (const kind of KINDS) assert.ok(met.has(kind), `${kind} was made to fail: ${[...met]}`);
});
