/*
 * The n-th descriptor that the server or a decoder asks for is refused (EMFILE), for every fourth n (in a full
 * run each) until none is reached; an allocation of the server fails (ENOMEM), at each place of the program once and the n-th,
 * sampled by LACK_SEED (1), for half of LACK_SECONDS (8, in a full run 24) each: the server continues, serves requests or refuses them with a message;
 * accepted uploads become ready; and everything works again once there is enough.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { ANY, Faults, shim } from '../faults.mjs';
import { random } from '../power_cut.mjs';
import { Server, atEnd, binary, inFull, until } from '../server.mjs';

const skip = !fs.existsSync(shim) && `no ${shim}`;
const SECONDS = Number(process.env.LACK_SECONDS ?? inFull(24, 8));
const SEED = Number(process.env.LACK_SEED ?? 1);
const EACH = inFull(1, 4); // one of this many descriptors is refused
const MOST = 2000;
const KINDS = ['open', 'accept', 'memfd', 'pipe']; // of calls that give a descriptor

class Run {
	constructor(s, faults) {
		this.s = s;
		this.faults = faults;
		this.accepted = new Set();
		this.serial = 0;
	}

	/* An answer, or null when the connection was lost. */
	ask(method, target, options = {}) {
		const { s } = this;
		return s.ask(method, target, { ...options, headers: { Connection: 'close', ...options.headers } }).catch(() => null);
	}

	upload() {
		const n = ++this.serial;
		return this.ask('POST', '/api/v1/traces', { key: this.s.ingest, body: sampleTrace(20, 5000 + n), query: { build_id: 'b' } });
	}

	/* All that is done while something fails: write, decode, read. */
	async work() {
		const answers = [];
		const sent = await this.upload();
		answers.push(sent, await this.ask('PUT', '/api/v1/builds/b/methods', { key: this.s.ingest, body: sampleMapping }));
		if (sent && sent.status < 300) this.accepted.add(sent.json.id);
		const [id] = this.accepted;
		for (const target of ['/api/v1/traces', `/api/v1/traces/${id}`, `/api/v1/traces/${id}/flame`, `/api/v1/traces/${id}/perfetto`, '/metrics', '/readyz'])
			answers.push(await this.ask('GET', target));
		if (sent && sent.status < 300) await this.becomesReady(sent.json.id);
		return answers;
	}

	becomesReady(id) {
		return until(async () => {
			const answer = await this.ask('GET', `/api/v1/traces/${id}`);
			if (answer?.status !== 200) return undefined;
			assert.notEqual(answer.json.state, 'failed', JSON.stringify(answer.json.error));
			return answer.json.state === 'ready' ? true : undefined;
		}, `trace ${id} ready`, 25);
	}

	async round(n, error, pid, to = n, only = '') {
		this.faults.arm(n, to, error, pid, only);
		let calls = 0;
		let hits = 0;
		let what = '';
		try {
			const answers = await this.work().finally(() => ({ calls, hits, what } = this.faults.disarm()));
			assert.ok(!this.s.exited, `the server lives: ${this.s.child.signalCode}, ${this.s.log.slice(-600)}`);
			for (const answer of answers.filter((a) => a && a.status >= 400 && !a.headers.get('content-type')?.startsWith('text/')))
				assert.ok(answer.json?.error?.message || answer.json?.status === 'not_ready', `an error is reported: ${answer.status} ${answer.text}`);
			const after = await this.upload();
			assert.ok(after && after.status < 300, `all is well again: ${after?.text}`);
			this.accepted.add(after.json.id);
			await this.becomesReady(after.json.id);
		} catch (e) {
			e.message = `number ${n} (${what}, ${error}): ${e.message}`;
			throw e;
		}
		return { calls, hits, what };
	}

	/* Nothing is half there. */
	async end() {
		for (const id of this.accepted) assert.equal((await this.s.get(`/api/v1/traces/${id}`)).json.state, 'ready', id);
		await this.s.stop();
		const { status, stdout, stderr } = spawnSync(binary(), ['check', '--data', this.s.data], { encoding: 'utf8' });
		assert.equal(status, 0, stdout + stderr);
	}
}

async function start(t) {
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-lack-'));
	const data = path.join(folder, 'data');
	const faults = new Faults(folder, data);
	const s = new Server(data, ['--shutdown', '5', '--min-free', '0', '--worker-jail=false'], { LD_PRELOAD: faults.shim });
	await s.start();
	atEnd(t, async () => {
		await s.stop('SIGKILL');
		fs.rmSync(folder, { recursive: true, force: true });
	});
	assert.ok(s.read && s.ingest && s.write);
	const run = new Run(s, faults);
	await run.work();
	return run;
}

test('no descriptor is left, at every place in turn', { skip }, async (t) => {
	const run = await start(t);
	const met = new Map();
	let rounds = 0;
	const one = async (n, only) => {
		const { hits, what } = await run.round(n, 'EMFILE', 0, n, only);
		const [kind] = what.split(' ');
		if (hits > 0) met.set(kind, (met.get(kind) ?? 0) + 1);
		rounds++;
		return hits > 0;
	};
	/* what runs at the same time shifts the numbers a little: past the last one it is tried again */
	for (let n = 1, misses = 0; misses < 3; n += EACH) {
		assert.ok(n < MOST, 'an end');
		misses = await one(n) ? 0 : misses + 1;
	}
	for (const kind of KINDS) for (let n = 1; n <= 24 && !met.has(kind); n++) await one(1, kind);
	t.diagnostic(`${rounds} rounds: ${JSON.stringify(Object.fromEntries(met))}`);
	for (const kind of KINDS) assert.ok(met.has(kind), `${kind} was refused once`);
	await run.end();
});

/* A location is identified by its call stack. */
test('no memory is left, at one place after the other', { skip }, async (t) => {
	const run = await start(t);
	const end = Date.now() + (SECONDS / 2) * 1000;
	let places = 0;
	let misses = 0;
	for (let n = 0; Date.now() < end && misses < 5; n++) {
		const { hits } = await run.round(1, 'PLACE', run.s.child.pid, ANY);
		places += hits > 0;
		misses = hits > 0 ? 0 : misses + 1;
	}
	t.diagnostic(`${places} places, ${misses < 5 ? 'then the time was over' : 'and no more'}`);
	assert.ok(places > 0);
	await run.end();
});

test('no memory is left, by chance', { skip }, async (t) => {
	const run = await start(t);
	const chance = random(SEED);
	const end = Date.now() + (SECONDS / 2) * 1000;
	const wanted = process.env.LACK_AT?.split(',').map(Number) ?? [];
	let all = 1000;
	let rounds = 0;
	while (Date.now() < end || wanted.length) {
		const { calls } = await run.round(wanted.shift() ?? 1 + Math.floor(chance() * all), 'ENOMEM', run.s.child.pid);
		all = Math.max(all, calls);
		rounds++;
	}
	t.diagnostic(`${rounds} of ${all} allocations failed`);
	await run.end();
});
