/*
 * Power cuts: the server's operations on its folder are recorded.  For a cut after each of them, with unsynced
 * writes complete, lost, torn or reordered, a server is started on the remaining files.  Uploads that got 2xx
 * are stored and become ready with their exact bytes, nothing is incomplete, and `tracewell check` reports
 * nothing (I1, I9).
 *
 * A sample is tested: for POWER_SECONDS (8, in a full run 25) per scenario, chosen by POWER_SEED (1), POWER_JOBS (2)
 * at a time.  POWER_EVERY=1 tests each cut in order, with every way to lose or reorder unsynced writes, except
 * those that leave the same bytes with the same promises as an earlier one.
 * A failure reports the seed and the cut.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { Disk, Recorder, digestOf, random, recorder, snapshot, writeImage } from '../power_cut.mjs';
import { Server, atEnd, binary, inFull, until } from '../server.mjs';

const SECONDS = Number(process.env.POWER_SECONDS ?? inFull(25, 8));
const SEED = Number(process.env.POWER_SEED ?? 1);
const EVERY = process.env.POWER_EVERY === '1';
const JOBS = Number(process.env.POWER_JOBS ?? 2);
const skip = !fs.existsSync(recorder) && `no ${recorder}`;
const ARGS = ['--min-free', '0', '--reserve', '0', '--worker-jail=false', '--retention-every', '1', '--shutdown', '5'];
const TUS = { 'Tus-Resumable': '1.0.0' };
const PIECE = 'application/offset+octet-stream';
const hash = (bytes) => createHash('sha256').update(bytes).digest('hex');
const files = (folder) => fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((e) => e.isFile()).length;

/* In memory where that is: thousands of small files. */
function scratch(t) {
	const dir = fs.mkdtempSync(path.join(fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir(), 'tracewell-power-'));
	atEnd(t, () => fs.rmSync(dir, { recursive: true, force: true }));
	return dir;
}

/* --- the promises that a client received --- */

/* Requests and responses; each response applies from the moment at which the server sent it. */
class Client {
	constructor(s, recorder) {
		this.s = s;
		this.recorder = recorder;
		this.reported = new Map(); /* X-Request-Id: what the answer promises */
		this.sent = new Map(); /* SHA-256: slices of the upload */
	}

	async ask(method, target, options, promise) {
		const answer = await this.s.ask(method, target, options);
		assert.ok(answer.status < 300, `${method} ${target}: ${answer.status} ${answer.text}`);
		this.reported.set(answer.headers.get('x-request-id'), promise(answer));
		return answer;
	}

	content(calls, seed) {
		const bytes = sampleTrace(calls, 5000 + seed);
		this.sent.set(hash(bytes), calls * 3);
		return bytes;
	}

	async upload(calls, seed) {
		const body = this.content(calls, seed);
		const answer = await this.ask('POST', '/api/v1/traces', { key: this.s.ingest, body, query: { build_id: 'b' },
			headers: { 'Idempotency-Key': `seed-${seed}` } }, ({ json }) => ({ trace: json.id, sha256: hash(body) }));
		return answer.json.id;
	}

	/* In pieces, every other one with a checksum. */
	async resumable(calls, seed, pieces) {
		const bytes = this.content(calls, seed);
		const begun = await this.ask('POST', '/api/v1/uploads', { key: this.s.ingest,
			headers: { ...TUS, 'Upload-Length': String(bytes.length) } },
			({ headers }) => ({ upload: headers.get('location'), offset: 0 }));
		const at = begun.headers.get('location');
		const step = Math.ceil(bytes.length / pieces);
		for (let offset = 0; offset < bytes.length; offset += step) {
			const body = bytes.subarray(offset, offset + step);
			const sum = createHash('sha1').update(body).digest('base64');
			await this.ask('PATCH', at, { key: this.s.ingest, body, headers: { ...TUS, 'Content-Type': PIECE,
				'Upload-Offset': String(offset), ...((offset / step) % 2 ? { 'Upload-Checksum': `sha1 ${sum}` } : {}) } },
			({ headers }) => ({ upload: at, offset: Number(headers.get('upload-offset')), bytes, trace: headers.get('tracewell-trace') ?? undefined,
				sha256: hash(bytes) }));
		}
	}

	map(version) {
		return this.ask('PUT', '/api/v1/builds/b/methods', { key: this.s.ingest, body: `# version-${version}\n${sampleMapping}` },
			() => ({ mapping: version }));
	}

	/* From here on they may be there or not. */
	doubt(...ids) {
		this.recorder.mark({ doubt: ids });
	}

	remove(id) {
		this.doubt(id);
		return this.ask('DELETE', `/api/v1/traces/${id}`, {}, () => ({ gone: id }));
	}
}

/* What held when the power went. */
class Promises {
	constructor(client) {
		this.client = client;
		this.traces = new Map(); /* id: SHA-256 */
		this.doubted = new Set();
		this.gone = new Set();
		this.uploads = new Map(); /* location: {offset, bytes} */
		this.mapping = 0;
		this.rules = null;
		this.keys = false;
		this.promised = 0; /* promises so far */
	}

	keep(p) {
		this.promised++;
		if (p.doubt) p.doubt.forEach((id) => this.doubted.add(id));
		if (p.keys) this.keys = true;
		if (p.trace) this.traces.set(p.trace, p.sha256);
		if (p.gone) this.gone.add(p.gone);
		if (p.upload) this.uploads.set(p.upload, p);
		if (p.mapping) this.mapping = Math.max(this.mapping, p.mapping);
		if (p.rules) this.rules = p.rules;
	}

	copy() {
		return Object.assign(new Promises(this.client), { ...this, traces: new Map(this.traces), doubted: new Set(this.doubted),
			gone: new Set(this.gone), uploads: new Map(this.uploads) });
	}

	/* A line of the record: the head of a response, or the client's own note. */
	receive({ op, data }) {
		if (op === 'mark') this.keep(JSON.parse(data));
		const id = op === 'sent' && /\r\nX-Request-Id: ([^\r]*)\r\n/i.exec(data.toString('latin1'))?.[1];
		if (id && this.client.reported.has(id)) this.keep(this.client.reported.get(id));
	}
}

/* --- a server on the remaining files --- */

async function allDecoded(s) {
	return until(async () => {
		const { json } = await s.get('/api/v1/traces?limit=500');
		return json.traces.every((x) => x.state === 'ready' || x.state === 'failed') ? json.traces : undefined;
	}, 'all decoded', 60);
}

async function checkTraces(s, held, traces) {
	const there = new Map(traces.map((x) => [x.id, x]));
	for (const x of traces) {
		assert.equal(x.state, 'ready', `${x.id}: ${JSON.stringify(x.error)}`);
		const raw = await s.get(`/api/v1/traces/${x.id}/raw/trace`);
		/* a rule may take it between the list and here */
		if (raw.status === 404 && held.doubted.has(x.id)) continue;
		assert.equal(raw.status, 200, `the upload of ${x.id}: ${raw.text.slice(0, 200)}`);
		assert.equal(x.summary.slices, held.client.sent.get(hash(raw.bytes)), `${x.id} is what somebody sent`);
		if (held.traces.has(x.id)) assert.equal(hash(raw.bytes), held.traces.get(x.id), `the bytes of ${x.id}`);
	}
	for (const id of held.traces.keys())
		assert.ok(there.has(id) || held.doubted.has(id), `${id} was accepted and is lost`);
	for (const id of held.gone) assert.ok(!there.has(id), `${id} was deleted and is back`);
}

async function checkUploads(s, held) {
	let open = 0;
	for (const [at, { offset, bytes, trace }] of held.uploads) {
		const { status, headers } = await s.ask('HEAD', at, { key: s.ingest, headers: TUS });
		assert.equal(status, 200, `${at} was begun and is lost`);
		const now = Number(headers.get('upload-offset'));
		assert.ok(now >= offset, `${at}: ${offset} were acknowledged, ${now} are there`);
		if (trace) assert.equal(headers.get('tracewell-trace'), trace);
		if (!headers.get('tracewell-trace')) open++;
		if (!bytes || trace || now >= bytes.length) continue;
		const done = await s.ask('PATCH', at, { key: s.ingest, body: bytes.subarray(now),
			headers: { ...TUS, 'Content-Type': PIECE, 'Upload-Offset': String(now) } });
		assert.equal(done.status, 204, `${at} goes on: ${done.text}`);
		const raw = await s.get(`/api/v1/traces/${done.headers.get('tracewell-trace')}/raw/trace`);
		assert.ok(raw.bytes.equals(bytes), `${at}: what was there before the cut is what was sent`);
		open--;
	}
	return open;
}

/* 0: it has none, or its first is still being compiled. */
async function mappingVersion(s) {
	const build = (await s.get('/api/v1/builds')).json.builds.find((b) => b.build_id === 'b');
	return build?.mapping ? Number(/version-(\d+)/.exec(build.map_version)[1]) : 0;
}

async function checkRest(s, held) {
	const version = await mappingVersion(s);
	assert.ok(version >= held.mapping, `mapping ${held.mapping} was accepted, ${version} is there`);
	if (held.rules) assert.deepEqual((await s.get('/api/v1/retention')).json.rules.max_age_days, held.rules);
}

/* As many files as rows: a server sweeps after its start. */
async function checkFiles(s) {
	const { data } = s;
	const traces = await allDecoded(s);
	const count = () => ['spool', 'blobs', 'traces'].map((name) => files(path.join(data, name)));
	let images; // text and image of a mapping, once it is compiled
	await until(async () => {
		images = (await mappingVersion(s)) > 0 ? 2 : 0;
		const [spool, blobs, decoded] = count();
		return spool === 0 && blobs === traces.length + images && decoded === traces.length ? true : undefined;
	}, 'as many files as rows', 60).catch((e) => {
		throw new Error(`${e.message}: ${count()} in spool, blobs, traces for ${traces.length} traces and ${images} of mappings`);
	});
}

/* `keys` are the client's, after it received them. */
async function checkState(data, held, keys) {
	/* another boot of the machine */
	const uploads = path.join(data, 'uploads');
	for (const name of fs.existsSync(uploads) ? fs.readdirSync(uploads).filter((n) => n.endsWith('.watermark')) : []) {
		const mark = fs.readFileSync(path.join(uploads, name));
		fs.writeFileSync(path.join(uploads, name), mark.toString('latin1').replace(/ [0-9a-f]{8}/, ' ffffffff'), 'latin1');
	}
	const s = new Server(data, ARGS, {});
	await s.start().catch((e) => {
		throw new Error(`no server starts on it: ${e.message}`);
	});
	try {
		if (!held.keys) return; /* cut before anybody had a key */
		Object.assign(s, keys);
		const traces = await allDecoded(s);
		await checkTraces(s, held, traces);
		await checkUploads(s, held);
		await checkRest(s, held);
		await checkFiles(s);
	} catch (e) {
		throw new Error(`${e.message}\n--- the server on what was left:\n${s.log.slice(-1500)}`);
	} finally {
		await s.stop('SIGKILL');
	}
	await promisify(execFile)(binary(), ['check', '--data', data]).catch(({ stdout, stderr }) => assert.fail(stdout + stderr));
}

/* --- cuts --- */

/* Effect of a cut on unsynced data: how many names and writes remain, and in which pieces. */
const ADVERSE = [{ names: 0, writes: 0 }, { names: 1, writes: 0 }, { names: 0, writes: 1 },
	{ names: 0.5, writes: 0.5 }, { names: 0.5, writes: 0.5, sector: 512 }, { names: 1, writes: 0.6, sector: 4096 }];

const how = (n) => (n < 0 ? undefined : ADVERSE[n]); /* -1: all in order */
const left = (disk, at, n) => disk.image(how(n), random(SEED * 1000003 + at * 31 + n));

/* Starts a server on the n-th variant of the files that a cut after line `at` leaves, and verifies the promises `held`. */
async function verify({ dir, lines, client }, { at, n, image, held }) {
	const where = path.join(dir, `cut-${at}-${n}`);
	writeImage(image, where);
	try {
		await checkState(path.join(where, 'data'), held, client.keys);
	} catch (e) {
		const last = lines[at - 1];
		e.message = `cut behind line ${at} of ${lines.length} (${last.op} ${last.path || last.ino}), ` +
			`${n < 0 ? 'in order' : JSON.stringify(how(n))}; again by POWER_SEED=${SEED} POWER_CUT=${at},${n}: ${e.message}`;
		throw e;
	}
	fs.rmSync(where, { recursive: true, force: true });
}

function cut({ root, base, lines, client }, at, n) {
	const disk = new Disk(root, base);
	const held = new Promises(client);
	for (const line of lines.slice(0, at)) {
		disk.play(line);
		held.receive(line);
	}
	return { at, n, image: left(disk, at, n), held };
}

const shuffled = (all, chance) => all.map((x) => [chance(), x]).sort((a, b) => a[0] - b[0]).map(([, x]) => x);

/* Points at which what may be left differs from the point before.  Of the 256 folders of blobs a few do. */
function pointsOf(lines) {
	return lines.flatMap(({ op, path: p }, i) =>
		op === 'begin' || (op === 'mkdir' && /\/blobs\/..$/.test(p) && !/[07f]f$/.test(p)) ? [] : [i + 1]);
}

/* As many as there is time for; every other one in order as long as there are any. */
function* someCuts(recorded, counts) {
	const points = pointsOf(recorded.lines);
	const chance = random(SEED);
	const inOrder = shuffled(points.map((at) => [at, -1]), chance);
	const adverse = shuffled(points.flatMap((at) => ADVERSE.map((_, n) => [at, n])), chance);
	const end = Date.now() + SECONDS * 1000;
	counts.all = inOrder.length + adverse.length;
	for (const work of adverse.flatMap((one, i) => (i < inOrder.length ? [inOrder[i], one] : [one])))
		if (Date.now() < end) yield cut(recorded, ...work);
}

/* Each of them, but equal bytes and promises only once. */
function* everyCut({ root, base, lines, client }, counts) {
	const disk = new Disk(root, base);
	const held = new Promises(client);
	const seen = new Set();
	for (const [i, line] of lines.entries()) {
		disk.play(line);
		held.receive(line);
		for (let n = -1; n < ADVERSE.length; n++) {
			const image = left(disk, i + 1, n);
			const digest = `${digestOf(image)} ${held.promised}`;
			counts.all++;
			if (seen.has(digest)) continue;
			seen.add(digest);
			yield { at: i + 1, n, image, held: held.copy() };
		}
	}
}

async function cutAll(t, recorded) {
	const counts = { all: 0, done: 0 };
	const began = Date.now();
	const seconds = () => Math.round((Date.now() - began) / 1000);
	const broken = []; /* of all cuts; of a sample the first ends the test */
	const cuts = process.env.POWER_CUT ? [cut(recorded, ...process.env.POWER_CUT.split(',').map(Number))][Symbol.iterator]()
		: (EVERY ? everyCut : someCuts)(recorded, counts);
	const worker = async () => {
		for (let next = cuts.next(); !next.done; next = cuts.next()) {
			await verify(recorded, next.value).catch((e) => (EVERY ? broken.push(e.message) : Promise.reject(e)));
			if (++counts.done % 100 === 0 && EVERY) console.error(`${counts.done} cuts, ${broken.length} broken, ${seconds()} s`);
		}
	};
	await Promise.all(Array.from({ length: JOBS }, worker));
	t.diagnostic(`${counts.done} of ${counts.all} cuts, over ${recorded.lines.length} operations, in ${seconds()} s`);
	assert.deepEqual(broken, []);
	assert.ok(counts.done > 0);
}

/* --- scenarios --- */

/* A server whose disk operations are recorded.  `prepare` runs before, and its files are durable. */
async function record(t, { prepare, doing }) {
	const dir = scratch(t);
	const root = path.join(dir, 'disk');
	const data = path.join(root, 'data');
	fs.mkdirSync(root);
	const recorder = new Recorder(dir, root);
	const s = new Server(data, ARGS, { LD_PRELOAD: recorder.shim });
	const client = new Client(s, recorder);
	await prepare?.(client);
	const base = snapshot(root);
	await s.start();
	await doing(client);
	await s.stop();
	return { dir, root, base, client, lines: recorder.lines() };
}

const KEYS = { ingestKey: 'ingest', readKey: 'read', writeKey: 'write', adminKey: 'admin' };

function makeKeys(client, env = {}) {
	client.keys = Object.fromEntries(Object.entries(KEYS).map(([field, scope]) => [field, execFileSync(binary(),
		['key', 'create', '--data', client.s.data, '--project', 'test', '--scope', scope],
		{ encoding: 'utf8', env: { ...process.env, ...env } }).trim()]));
	client.recorder.mark({ keys: true });
	Object.assign(client.s, client.keys);
}

test('the first start, the first keys and an upload', { skip }, async (t) => {
	const recorded = await record(t, {
		doing: async (client) => {
			makeKeys(client, client.s.env);
			await client.s.decoded(await client.upload(20, 1));
		},
	});
	await cutAll(t, recorded);
});

/* Makes traces look old. */
function age(data, ids) {
	const script = 'import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], timeout=20)\n' +
		"for id in sys.argv[2:]:\n  db.execute('UPDATE trace SET created_ms=created_ms-40*86400000 WHERE trace_id=?', (id,))\ndb.commit()";
	execFileSync('python3', ['-c', script, path.join(data, 'catalogue.db'), ...ids]);
}

test('whole and resumable uploads, mappings, deletion and retention', { skip }, async (t) => {
	const old = [];
	const recorded = await record(t, {
		prepare: async (client) => {
			const env = client.s.env;
			client.s.env = {};
			await client.s.start();
			makeKeys(client);
			await client.s.ask('PUT', '/api/v1/retention', { key: client.s.admin, body: '{}' }); /* no default deletes old traces */
			for (let i = 0; i < 3; i++) old.push(await client.upload(5, 100 + i));
			await allDecoded(client.s);
			age(client.s.data, old.slice(0, 2)); /* next to the server, which adds the page checksums */
			await client.s.stop();
			client.s.env = env;
			client.recorder.mark({ trace: old[2], sha256: hash(client.content(5, 102)) });
		},
		doing: async (client) => {
			const ids = await Promise.all([1, 2, 3, 4, 5].map((n) => client.upload(10 + n, n)));
			const more = [client.map(1), client.resumable(200, 50, 4), client.remove(old[2]), client.upload(9, 60), client.upload(9, 61)];
			client.recorder.mark({ doubt: old });
			more.push(client.ask('PUT', '/api/v1/retention', { key: client.s.admin, body: '{"max_age_days":30}' }, () => ({ rules: 30 })));
			await Promise.all(more);
			await Promise.all([client.map(2), client.remove(ids[0]), client.resumable(50, 51, 2)]);
			await allDecoded(client.s);
			await until(async () => ((await client.s.get(`/api/v1/traces/${old[0]}`)).status === 404 ? true : undefined), 'expired');
			await client.s.ran('retention');
		},
	});
	await cutAll(t, recorded);
});
