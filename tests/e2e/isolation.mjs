/*
 * isolation.mjs - two projects on one server: A attacks in a separate thread, B works and is measured.
 *
 *   const place = await openNeighbourhood(t, { full: false });
 *   const idle = await place.measure({ rounds: 10 });
 *   const { samples, failures, peak, attack } = await place.under('mappings', { rounds: 10 });
 *
 * An attack is a number of closed loops: each repeats its hostile request with new content until B's
 * rounds are done, so the load is still there when the server refuses it quickly.  A connects from
 * 127.0.0.2, B from 127.0.0.1: limits per address must not count one's connections against the other.
 *
 * This file is also the attacker's thread.
 */
import { execFileSync } from 'node:child_process';
import { setMaxListeners } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { fileURLToPath } from 'node:url';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import zlib from 'node:zlib';

import { btrace, sampleMapping, sampleTrace, zstd } from './make.mjs';
import { binary, sleep, startServer, tracewell, until } from './server.mjs';

const DEADLINE_MS = 180_000;
const A_ADDRESS = '127.0.0.2';

/* --- requests of both --- */

/* One request on a separate connection.  Never throws: status 0 with `error` without a response. */
function ask(port, method, target, { key, body, headers = {}, localAddress = '127.0.0.1', deadline = DEADLINE_MS, signal } = {}) {
	const began = performance.now();
	return new Promise((done) => {
		const end = (status, error, answer) => {
			clearTimeout(timer);
			done({ status, error, ms: performance.now() - began, ...answer });
		};
		const request = http.request({ host: '127.0.0.1', port, method, path: target, localAddress, agent: false, signal,
			headers: { ...(key ? { Authorization: `Bearer ${key}` } : {}), ...(body ? { 'Content-Length': body.length } : {}), Connection: 'close', ...headers } });
		const timer = setTimeout(() => request.destroy(new Error(`no answer within ${deadline / 1000} s`)), deadline);
		request.on('error', (e) => end(0, e.message));
		request.on('response', (answer) => {
			const pieces = [];
			answer.on('data', (piece) => pieces.push(piece)).on('error', (e) => end(0, e.message));
			answer.on('end', () => end(answer.statusCode, undefined, { headers: answer.headers, text: Buffer.concat(pieces).toString('utf8') }));
		});
		request.end(body);
	});
}

/* --- hostile bodies: each is a function of a number that makes its bytes unlike all others --- */

const MIB = 1 << 20;
const gzipOf = (bytes, level = 9) => zlib.gzipSync(bytes, { level });
const times = (bytes, n) => Buffer.concat(Array(n).fill(bytes));
/* An empty gzip member with a name: its decoder reads over it. */
function tagged(bytes, n) {
	const empty = zlib.gzipSync(Buffer.alloc(0));
	return Buffer.concat([empty.subarray(0, 3), Buffer.from([8]), empty.subarray(4, 10), Buffer.from(`${n}\0`), empty.subarray(10), bytes]);
}

/* A zstd frame that is skipped, of 16 MiB, as a gzip member: nothing comes out of it. */
function skippable() {
	const head = Buffer.alloc(8);
	head.writeUInt32LE(0x184d2a50, 0);
	head.writeUInt32LE(16 * MIB, 4);
	return gzipOf(Buffer.concat([head, Buffer.alloc(16 * MIB)]));
}

let cached = {};
const once = (name, make) => (cached[name] ??= make());
/* 64 GiB in skipped frames: a limit on the output of the last stage is never reached. */
const skipBomb = () => once('skip', () => times(gzipOf(times(skippable(), 64)), 64));
const zeroBomb = () => once('zeros', () => times(gzipOf(Buffer.alloc(64 * MIB)), 32));
const emptyBomb = () => once('empty', () => gzipOf(times(gzipOf(Buffer.alloc(0)), 400_000)));
const deepBomb = () => once('deep', () => { let bytes = Buffer.from(sampleMapping); for (let i = 0; i < 6; i++) bytes = gzipOf(bytes); return bytes; });
const zstdBomb = () => once('zstd', () => zstd({ byte: 0, n: 2 ** 30 }));

/* A valid method mapping of many lines with long names. */
function largeMapping(lines) {
	const long = 'com.example.' + 'a'.repeat(200);
	return once('large', () => {
		const members = [gzipOf(Buffer.from('# v\n'))];
		for (let at = 0; at < lines; at += 5000)
			members.push(gzipOf(Buffer.from(Array.from({ length: 5000 }, (_, i) => `${at + i + 1},1,${long}.C m (I)V\n`).join('')), 1));
		return Buffer.concat(members);
	});
}
const badLines = () => once('bad', () => times(gzipOf(Buffer.from('no,line\n'.repeat(130_000))), 16));
const longLine = () => once('long', () => times(gzipOf(Buffer.alloc(4 * MIB, 'x'), 1), 16));
/* One class with very many methods that are inlined into one another. */
const inlined = () => once('inlined', () => gzipOf(Buffer.from(['com.a.B -> a:', ...Array.from({ length: 150_000 }, (_, i) => `    1:${1 + (i % 50)}:void m${i}(int):${i}:${i} -> a`), ''].join('\n')), 1));

const MAPPING_KINDS = {
	'skipped frames': ['methods', skipBomb], zeros: ['methods', zeroBomb], 'empty members': ['methods', emptyBomb], 'six deep': ['methods', deepBomb], 'zstd zeros': ['methods', zstdBomb],
	large: ['methods', (full) => largeMapping(full ? 2_000_000 : 300_000)], 'bad lines': ['methods', badLines], 'one long line': ['methods', longLine],
	'R8 skipped frames': ['retrace', skipBomb], 'R8 inlined': ['retrace', inlined],
};

/* Every call another method: names and their tables are large in each export. */
export const manyMethods = (n, first = 1) => btrace(Array.from({ length: n }, (_, i) => [4000, first + i, 1_000_000 + i * 10, 5]));

/* A call tree of `methods` methods, each within another one; `n` makes its times its own. */
function treeTrace(methods, n) {
	const records = [];
	let at = 1_000_000;
	const call = (first, count, depth) => {
		const began = at;
		at += 100 + ((first + n) % 7);
		const inner = Math.min(4, count - 1);
		for (let i = 0, next = first + 1, left = count - 1; i < inner; i++) {
			const share = i === inner - 1 ? left : Math.floor((count - 1) / inner);
			call(next, share, depth + 1);
			next += share;
			left -= share;
		}
		at += 50;
		records.push([4000, first, began, at - began]);
	};
	call(1, methods, 0);
	return btrace(records);
}

/* --- attacks; each runs in the attacker's thread: `a` has port, keys, ids, full, stop --- */

const count = {};
const note = (answer) => {
	const word = answer.status || answer.error;
	count[word] = (count[word] ?? 0) + 1;
	return answer;
};
let serial = 0;

async function loops(a, n, step) {
	await Promise.all(Array.from({ length: n }, async (_, i) => {
		while (!a.stopped) {
			const answer = await step(i);
			if (!answer || answer.status === 0 || answer.status >= 400) await sleep(50); // a client that is refused tries again soon, not in a busy loop
		}
	}));
}

const asA = (a, method, target, options = {}) => ask(a.port, method, target, { localAddress: A_ADDRESS, deadline: 600_000, signal: a.signal, ...options }).then(note);

const upload = (a, body, query = '') => asA(a, 'POST', `/api/v1/traces${query}`, { key: a.ingest, body });

/* Eight at once of each kind. */
function mappingAttack(kinds) {
	const send = (a, [what, make]) => asA(a, 'PUT', `/api/v1/builds/hostile-${++serial}/${what}?wait=60`, { key: a.ingest, body: tagged(make(a.full), serial) });
	return { prepare: (a) => kinds.forEach((kind) => MAPPING_KINDS[kind][1](a.full)), run: (a) => loops(a, 8 * kinds.length, (i) => send(a, MAPPING_KINDS[kinds[i % kinds.length]])) };
}

/* Opens a connection that sends a request and reads nothing; resolves when it is closed. */
function unread(a, target) {
	return new Promise((done) => {
		const socket = net.connect({ port: a.port, host: '127.0.0.1', localAddress: A_ADDRESS });
		let head = '';
		socket.on('error', () => {}).once('close', () => done({ status: Number(/ (\d+)/.exec(head)?.[1] ?? 0) }));
		socket.once('data', (piece) => {
			head = piece.toString('latin1', 0, 64);
			note({ status: Number(/ (\d+)/.exec(head)?.[1] ?? 0) });
			if (/ 200 /.test(head)) socket.pause();
			else socket.destroy();
		});
		socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${a.read}\r\n\r\n`);
		a.signal.addEventListener('abort', () => socket.destroy());
	});
}

/* Sends one byte a second of a body that it announced. */
function slowBody(a) {
	return new Promise((done) => {
		const socket = net.connect({ port: a.port, host: '127.0.0.1', localAddress: A_ADDRESS });
		let head = '';
		const beat = setInterval(() => socket.write('x'), 1000);
		socket.on('error', () => {}).once('close', () => {
			clearInterval(beat);
			done(note({ status: Number(/ (\d+)/.exec(head)?.[1] ?? 0), error: 'closed' }));
		});
		socket.on('data', (piece) => (head += piece.toString('latin1', 0, 64)));
		socket.write(`POST /api/v1/traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${a.ingest}\r\nContent-Length: 100000\r\n\r\n`);
		socket.write(sampleTrace(2).subarray(0, 32));
		a.signal.addEventListener('abort', () => socket.destroy());
	});
}

const FLEET = ['flame?metric=wall', 'methods?metrics=wall,self,calls,call', 'methods?sort=p95_wall', 'flame?view=bottom_up'];

const BOMBS = [skipBomb, zeroBomb, emptyBomb, zstdBomb];

/* Uploads and waits until the decoders are done with it, so that there are as many at a time as loops. */
async function uploadAndWait(a, body, query) {
	const sent = await upload(a, body, query);
	if (sent.status !== 202) return sent;
	for (const { id } = JSON.parse(sent.text); !a.stopped; await sleep(100)) {
		const { status, text } = await ask(a.port, 'GET', `/api/v1/traces/${id}`, { key: a.read, localAddress: A_ADDRESS });
		if (status !== 200 || /"state":"(ready|failed)"/.test(text)) break;
	}
	return sent;
}

export const ATTACKS = {
	'4 bombs as traces': { prepare: () => BOMBS.forEach((make) => make()), run: (a) => loops(a, 4, (i) => uploadAndWait(a, tagged(BOMBS[i](), ++serial))) },
	'4 large traces': { run: (a) => loops(a, 4, () => uploadAndWait(a, manyMethods(a.full ? 2_000_000 : 400_000, ++serial), `?uuid=l${serial}`)) },
	'30 unread exports': { run: (a) => loops(a, 30, (i) => unread(a, `/api/v1/traces/${a.large}/${i % 2 ? 'perfetto' : 'export/speedscope'}`)) },
	'300 slow bodies': { run: (a) => loops(a, 300, () => slowBody(a)) },
	'queued traces': {
		run: async (a) => {
			let left = a.full ? 10_000 : 1200;
			await loops(a, 32, () => (left-- > 0 ? upload(a, sampleTrace(20, 1000 + (++serial % 60_000)), `?uuid=q${serial}`) : sleep(200)));
		},
	},
	'24 deletes under load': {
		run: async (a) => {
			const made = [];
			const make = loops(a, 8, async () => {
				const sent = await upload(a, sampleTrace(30, 1000 + (++serial % 60_000)), `?uuid=d${serial}`);
				if (sent.status === 202) made.push(JSON.parse(sent.text).id);
				return sent;
			});
			await Promise.all([make, loops(a, 24, () => (made.length ? asA(a, 'DELETE', `/api/v1/traces/${made.shift()}`, { key: a.write }) : undefined))]);
		},
	},
	/* each with a different time range, so that no response is cached */
	'20 heavy fleet questions': { run: (a) => loops(a, 20, (i) => asA(a, 'GET', `/api/v1/fleet/${FLEET[i % FLEET.length]}&since=${a.since - ++serial}`, { key: a.read })) },
	'20 heavy flame graphs': { run: (a) => loops(a, 20, () => asA(a, 'GET', `/api/v1/traces/${a.large}/flame?max_nodes=${1000 + (++serial % 18_000)}&from=${serial}`, { key: a.read })) },
	/* last: its jobs are left to the server */
	'mappings of every hostile kind': mappingAttack(Object.keys(MAPPING_KINDS)),
};

/* For finding out which of the mappings it is. */
export const SINGLE_MAPPINGS = Object.fromEntries(Object.keys(MAPPING_KINDS).map((kind) => [`8 mappings: ${kind}`, mappingAttack([kind])]));

/* The attacker's thread.  It sends 'begun' once its loops run, and its counts at the end. */
async function attacker() {
	const control = new AbortController();
	setMaxListeners(0, control.signal);
	const a = { ...workerData, signal: control.signal, stopped: false };
	const attack = ATTACKS[a.name] ?? SINGLE_MAPPINGS[a.name];
	attack.prepare?.(a);
	parentPort.on('message', () => {
		a.stopped = true;
		control.abort();
	});
	const run = attack.run(a);
	parentPort.postMessage('begun');
	await run;
	parentPort.postMessage(count);
	parentPort.close();
}

if (!isMainThread && workerData?.neighbour) await attacker();

/* --- B --- */

const PASSWORD = 'a password of B, long enough';

/* Requests of B in a round; each returns undefined, or the error in the response. */
const STEPS = {
	list: (b) => [['GET', '/api/v1/traces?limit=20', { key: b.read }], ({ text }) => {
		const ids = JSON.parse(text).traces.map((x) => x.id);
		return ids.length && ids.every((id) => b.ids.has(id)) ? undefined : `${ids.length} traces`;
	}],
	flame: (b) => [['GET', `/api/v1/traces/${b.trace}/flame?thread=4000`, { key: b.read }], ({ text }) => (JSON.parse(text).value === b.value ? undefined : text.slice(0, 200))],
	'sign in': () => [['POST', '/api/v1/session', { body: Buffer.from(JSON.stringify({ name: 'bea', password: PASSWORD })) }], ({ headers }) => (headers['set-cookie'] ? undefined : 'no cookie'), 204],
	upload: (b) => [['POST', `/api/v1/traces?uuid=b${++serial}`, { key: b.ingest, body: sampleTrace(20, 2000 + (serial % 50_000)) }], ({ text }) => (b.ids.add(JSON.parse(text).id), undefined), 202],
};
export const MEASURED = [...Object.keys(STEPS), 'decoded'];

/* Ends at the first failure: each may have taken the whole deadline. */
async function round(b, samples, failures) {
	for (const [name, make] of Object.entries(STEPS)) {
		const [request, check, status = 200] = make(b);
		const answer = await ask(b.port, ...request);
		let wrong = answer.status === status ? undefined : `${answer.status} ${answer.error ?? answer.text.slice(0, 200)}`;
		try {
			wrong ??= check(answer);
		} catch (e) {
			wrong = e.message;
		}
		samples[name].push(answer.ms);
		if (wrong) return failures.push(`${name} after ${answer.ms.toFixed(0)} ms: ${wrong}`);
		if (name === 'upload') await decoded(b, JSON.parse(answer.text).id, samples, failures);
	}
}

async function decoded(b, id, samples, failures) {
	const began = performance.now();
	let state;
	while (performance.now() - began < DEADLINE_MS) {
		const answer = await ask(b.port, 'GET', `/api/v1/traces/${id}`, { key: b.read });
		state = answer.status === 200 ? JSON.parse(answer.text).state : `${answer.status} ${answer.error ?? ''}`;
		if (state === 'ready' || state === 'failed') break;
		await sleep(10);
	}
	samples.decoded.push(performance.now() - began);
	if (state !== 'ready') failures.push(`decoded: ${state} after ${((performance.now() - began) / 1000).toFixed(1)} s`);
}

export const percentile = (list, p) => [...list].sort((x, y) => x - y)[Math.max(0, Math.ceil((list.length * p) / 100) - 1)];

/* --- both on one server --- */

const user = (data, input, ...args) => execFileSync(binary(), ['user', ...args, '--data', data], { input, stdio: ['pipe', 'ignore', 'pipe'] });

class Neighbourhood {
	constructor(server, a, b) {
		Object.assign(this, { server, a, b });
	}

	/* B's rounds: at least that many, and for as long as that. */
	async measure({ rounds = 1, seconds = 0 } = {}) {
		const samples = Object.fromEntries(MEASURED.map((name) => [name, []]));
		const failures = [];
		const end = performance.now() + seconds * 1000;
		let peak = 0;
		const look = () => (peak = this.server.exited ? peak : Math.max(peak, this.server.resident()));
		const looking = setInterval(look, 100);
		for (let i = 0; (i < rounds || performance.now() < end) && !failures.length; i++) await round(this.b, samples, failures);
		clearInterval(looking);
		look();
		if (this.server.exited) failures.push(`the server ended: ${JSON.stringify(await this.server.ended)} ${this.server.log.slice(-2000)}`);
		return { samples, failures, peak };
	}

	/* B's rounds while A attacks. */
	async under(name, { rounds, seconds, lead = 1000 } = {}) {
		const worker = new Worker(fileURLToPath(import.meta.url), { workerData: { neighbour: true, name, ...this.a } });
		const messages = [];
		const ended = new Promise((done, fail) => worker.once('exit', done).once('error', fail));
		worker.on('message', (m) => messages.push(m));
		await until(() => (messages.length ? true : undefined), `attack ${name} begun`, 60);
		await sleep(lead); // measured is what holds while the attack lasts, not its first moment
		const result = await this.measure({ rounds, seconds });
		worker.postMessage('end');
		await ended;
		await this.quiet(result.failures.length > 0);
		return { ...result, attack: messages.at(-1) };
	}

	/* Deletes A's queue, so that it does not affect the next measurement.  A server that failed may have children
	 * that it waits for: it is killed and started again. */
	async quiet(failed) {
		const { a, b, server } = this;
		if (failed) {
			await server.stop('SIGKILL');
			await server.start();
			a.port = b.port = server.port;
		}
		for (;;) {
			/* 503: A's last queries still hold its share of --response-memory */
			const page = await until(async () => {
				const answer = await ask(a.port, 'GET', '/api/v1/traces?state=queued&limit=500', { key: a.read, deadline: 120_000 });
				return answer.status === 503 ? undefined : answer;
			}, 'the queue of A', 120);
			if (page.status !== 200) throw new Error(`the queue of A: ${page.status} ${page.error ?? page.text}`);
			const { traces } = JSON.parse(page.text);
			if (!traces.length) break;
			const left = traces.values();
			await Promise.all(Array.from({ length: 8 }, async () => {
				for (const { id } of left) await ask(a.port, 'DELETE', `/api/v1/traces/${id}`, { key: a.write, deadline: 120_000 });
			}));
		}
	}
}

/* A has a trace with large exports and its own fleet; B has a trace, a mapping and a user. */
export async function openNeighbourhood(t, { full = false, args = [] } = {}) {
	const s = await startServer(t, { args });
	const keys = (project) => Object.fromEntries(['ingest', 'read', 'write'].map((scope) => [scope, s.key(scope, project)]));
	const [a, b] = [keys('a'), keys('b')];
	user(s.data, PASSWORD, 'create', 'bea');
	tracewell('user', 'role', 'bea', '--data', s.data, '--project', 'b', '--role', 'viewer');

	const ready = async (key, id) => until(async () => {
		const { json } = await s.get(`/api/v1/traces/${id}`, { key });
		if (json.state === 'failed') throw new Error(json.error);
		return json.state === 'ready' ? json : undefined;
	}, 'decoded', 120);
	const sent = async (of, body, query) => {
		const answer = await s.post('/api/v1/traces', body, { key: of.ingest, query });
		if (answer.status > 202) throw new Error(answer.text);
		return answer.json.id;
	};
	b.trace = await sent(b, sampleTrace(50), { build_id: 'b' });
	const large = await sent(a, manyMethods(full ? 2_000_000 : 250_000), { uuid: 'large' });
	const methods = 4000;
	const fleet = [];
	for (let i = 0; i < (full ? 120 : 40); i++) fleet.push(await sent(a, treeTrace(methods, i), { app: 'shop', version_name: `1.${i}`, build_id: 'fleet', scenario: 'cold_start', uuid: `fleet${i}` }));
	await s.put('/api/v1/builds/fleet/methods', Array.from({ length: methods }, (_, i) => `${i + 1},1,com.shop.Class${i % 500} method${i} ()V\n`).join(''), { key: a.write });
	await s.put('/api/v1/builds/b/methods', sampleMapping, { key: b.write });
	await ready(b.read, b.trace);
	for (const id of [large, ...fleet]) await ready(a.read, id);
	await until(async () => ((await s.get('/api/v1/fleet/scenarios?by=all', { key: a.read })).json?.traces >= fleet.length ? true : undefined), 'the fleet is counted', 120);
	Object.assign(b, { port: s.port, ids: new Set([b.trace]), value: (await s.get(`/api/v1/traces/${b.trace}/flame?thread=4000`, { key: b.read })).json.value });
	Object.assign(a, { port: s.port, full, large, since: Date.now() - 20 * 86_400_000 });
	return new Neighbourhood(s, a, b);
}
