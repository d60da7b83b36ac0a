/*
 * fault_table.test.mjs - PostgreSQL, a store, ClickHouse, two HAProxy and servers of each role; each part is killed, stopped
 * and cut off while devices upload. Uploads continue where they can, each accepted one is decoded and counted once, and a
 * table of the longest times between two accepted uploads is printed. A full run has more rows, longer ones, Debian's Swift
 * as the store and a replica of PostgreSQL. FAULT_TABLE=full is a full run; ROWS=paused selects rows by their names.
 */
import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { lacksSwift, startSwift } from '../../swift/swift.mjs';
import { startBucket } from '../bucket.mjs';
import { startCluster } from '../cluster.mjs';
import { startGates } from '../forwarders.mjs';
import { sampleTrace } from '../make.mjs';
import { postgresIsThere } from '../postgres.mjs';
import { startPair, startPrimary } from '../postgres_pair.mjs';
import { FAKETIME, atEnd, binary, fetchWithin, freePort, newFolder, root, sanitized, sleep, until } from '../server.mjs';

const FULL = process.env.FAULT_TABLE === 'full';
const has = (program) => spawnSync('which', [program]).status === 0;
const skip = !postgresIsThere ? 'PostgreSQL 15 or later is not installed' : !has('haproxy') ? 'no haproxy' : sanitized() && 'too slow with a sanitizer';

const PER_SECOND = FULL ? 8 : 5; /* uploads that begin, whatever became of earlier ones: as of many devices */
const DEVICES = FULL ? 100 : 60; /* that may wait: attempts of more would use all of a small machine */
const PATIENCE_MS = 20000;
const GOAL_MS = 1000; /* between two accepted uploads, on an idle machine */
const LEAST = 15; /* uploads accepted during a fault that uploads do not depend on */
const SECONDS = FULL ? 8 : 3; /* a fault lasts, unless its row has another figure */
const LOCK_MS = 1500; /* a wait for a lock that PostgreSQL reports */
const WAITED = /STATEMENT: +(INSERT INTO (trace|part|job|capture)|WITH of_build)/; /* an upload's */
const LEASE_S = 42; /* longer than a claim of a job and the lease of background work */

/* --- the table --- */

/* `parts`: the parts that the fault affects; lead: the server that counts for all. `uploads`: 'stop' if a 202
 * depends on the part, 'slow' if on each request to it. `brief`: in the default run, too. */
const FAULTS = [
	{ parts: [], fault: 'no fault', brief: true },
	{ parts: ['in1'], fault: 'killed', brief: true },
	{ parts: ['in1'], fault: 'paused', brief: true },
	{ parts: ['in1'], fault: 'cut off', brief: true },
	{ parts: ['worker'], fault: 'killed' },
	{ parts: ['worker'], fault: 'paused' },
	{ parts: ['worker'], fault: 'cut off' },
	{ parts: ['lead'], fault: 'killed' },
	{ parts: ['lead'], fault: 'paused', brief: true },
	{ parts: ['lead'], fault: 'cut off', brief: true },
	{ parts: ['lead'], fault: 'paused', seconds: LEASE_S },
	{ parts: ['proxy1'], fault: 'killed' },
	{ parts: ['proxy1'], fault: 'paused', brief: true },
	{ parts: ['proxy1'], fault: 'cut off' },
	{ parts: ['clickhouse'], fault: 'killed', brief: true },
	{ parts: ['clickhouse'], fault: 'paused' },
	{ parts: ['clickhouse'], fault: 'cut off' },
	{ parts: ['in1', 'in2', 'q1', 'd1', 'd2'], fault: 'killed', in_turn: true },
	{ parts: ['d1', 'd2'], fault: 'killed' },
	{ parts: ['in1', 'in2'], fault: 'killed', uploads: 'stop' },
	{ parts: ['in2', 'd2'], fault: 'cut off', seconds: LEASE_S },
	{ parts: ['in2'], fault: 'cut off from PostgreSQL', seconds: 20 },
	{ parts: ['in2'], fault: 'clock 2 hours slow' },
	{ parts: ['d2'], fault: 'clock 2 hours fast' },
	{ parts: ['store'], fault: 'killed', uploads: 'stop' },
	{ parts: ['store'], fault: 'paused', uploads: 'stop' },
	{ parts: ['store'], fault: 'cut off', uploads: 'stop', seconds: 25 },
	{ parts: ['store'], fault: '500 to 3 of 10', uploads: 'slow' },
	{ parts: ['store'], fault: '503 to half', uploads: 'slow' },
	{ parts: ['store'], fault: 'drops 2 of 10', uploads: 'slow' },
	{ parts: ['store'], fault: 'truncates 15 of 100', uploads: 'slow' },
	{ parts: ['store'], fault: 'flips a bit of 1 of 10', uploads: 'slow' },
	{ parts: ['store'], fault: '0.5 s late', uploads: 'slow' },
	{ parts: ['postgres'], fault: 'restarted', uploads: 'stop' },
	{ parts: ['postgres'], fault: 'killed', uploads: 'stop' },
	{ parts: ['postgres'], fault: 'paused', uploads: 'stop', brief: true },
	{ parts: ['postgres'], fault: 'paused', uploads: 'stop', seconds: 40 },
	{ parts: ['postgres'], fault: 'cut off', uploads: 'stop' },
	{ parts: ['postgres'], fault: 'replaced by its replica', uploads: 'stop' }, // the last: none is left then
];
const nameOf = (row) => [row.parts.join(' and '), row.in_turn ? 'killed in turn' : row.fault, row.seconds ? `for ${row.seconds} s` : ''].join(' ').trim();
const rowsOf = (engine) => FAULTS.filter((row) => (FULL || process.env.ROWS || (engine === 'clickhouse' ? row.brief : ['no fault', 'paused'].includes(row.fault) && row.brief && row.parts[0] !== 'proxy1'))
	&& (engine === 'clickhouse' || row.parts[0] !== 'clickhouse') && nameOf(row).includes(process.env.ROWS ?? ''));

/* What happens to a part, and what ends it. */
const faulty = (state) => [(part) => part.fail(state), (part) => part.fail({})];
const clock = (off) => [(part) => part.again({ LD_PRELOAD: FAKETIME, FAKETIME: off }), (part) => part.again({})];
const HOW = {
	'no fault': [() => {}, () => {}],
	killed: [(part) => part.kill(), (part) => part.up()],
	paused: [(part) => part.pause(), (part) => part.resume()],
	'cut off': [(part) => part.cut(true), (part) => part.cut(false)],
	'cut off from PostgreSQL': [(part) => part.cut(true, /db/), (part) => part.cut(false)],
	restarted: [(part) => part.restart(), () => {}],
	'replaced by its replica': [(part) => part.kill(), (part) => part.replace()],
	'clock 2 hours slow': clock('-2h'),
	'clock 2 hours fast': clock('+2h'),
	'500 to 3 of 10': faulty({ chance: 0.3, status: 500 }),
	'503 to half': faulty({ chance: 0.5, status: 503 }),
	'drops 2 of 10': faulty({ chance: 0.2, drop: true }),
	'truncates 15 of 100': faulty({ chance: 0.15, cut: true }),
	'flips a bit of 1 of 10': faulty({ chance: 0.1, flip: true }),
	'0.5 s late': faulty({ chance: 1, wait: 500 }),
};

/* --- the parts --- */

/* Stops or continues these processes; ended ones are skipped. */
function signal(pids, name) {
	for (const pid of pids)
		try {
			process.kill(pid, name);
		} catch {
			/* it has ended */
		}
}

/* Programs that take no part in the test itself: { kill, up, pause, resume, cut }. */
function program(t, gates, gate, start) {
	const part = {
		pids: () => [part.child.pid],
		up: async () => (part.child = await start()),
		kill: async () => {
			const ended = new Promise((done) => part.child.once('exit', done));
			signal(part.pids(), 'SIGKILL');
			await ended;
		},
		pause: () => signal(part.pids(), 'SIGSTOP'),
		resume: () => signal(part.pids(), 'SIGCONT'),
		cut: (closed) => gates.set(gate, { closed }),
	};
	atEnd(t, () => part.child.exitCode === null && part.child.signalCode === null && part.kill());
	return part;
}

async function startProxies(t, gates, ports) {
	const folder = newFolder(t, 'tracewell-proxy-');
	const parts = {}, urls = [];
	for (const name of ['proxy1', 'proxy2']) {
		const port = await freePort();
		let text = fs.readFileSync(path.join(root, 'deploy/proxy/haproxy-several.cfg'), 'utf8');
		for (const [from, to] of [[/bind :443 .*/, `bind 127.0.0.1:${port}`], ...ports.map((p, i) => [`127.0.0.1:808${i + 1}`, `127.0.0.1:${p}`])]) {
			assert.ok(text.search(from) >= 0, `${from}`);
			text = text.replace(from, to);
		}
		fs.writeFileSync(`${folder}/${name}.cfg`, text);
		parts[name] = program(t, gates, name, async () => {
			const child = spawn('haproxy', ['-db', '-f', `${folder}/${name}.cfg`], { stdio: 'ignore' });
			await until(async () => ((await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null)) ? true : undefined), name);
			return child;
		});
		await parts[name].up();
		urls.push(`http://127.0.0.1:${await gates.make(name, { port })}`);
	}
	return { parts, urls };
}

async function startClickHouse(t, gates) {
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-ch-')), port = await freePort();
	atEnd(t, () => fs.rmSync(folder, { recursive: true, force: true }));
	const part = program(t, gates, 'clickhouse', async () => {
		const child = spawn(path.join(root, 'tests/unit/on_clickhouse'), ['--serve', folder, String(port)], { stdio: 'ignore' });
		await until(async () => (await fetch(`http://127.0.0.1:${port}/ping`).catch(() => undefined))?.ok || undefined, 'ClickHouse');
		return child;
	});
	await part.up();
	part.port = await gates.make('clickhouse', { port });
	return part;
}

function database(gates, pair) {
	return {
		kill: () => pair.primary.crash(),
		up: () => pair.primary.start(),
		pause: () => pair.primary.signal('SIGSTOP'),
		resume: () => pair.primary.signal('SIGCONT'),
		cut: (closed) => gates.set('postgres', { closed }),
		restart: async () => {
			for (const how of ['SIGINT', 'SIGQUIT']) {
				await pair.primary.stop(how);
				await pair.primary.start();
			}
		},
		replace: () => pair.promote(),
	};
}

/* Only Swift has separate processes. */
function storeOf(gates, store) {
	return {
		kill: () => store.kill(),
		up: () => store.up(),
		pause: () => store.signal('SIGSTOP'),
		resume: () => store.signal('SIGCONT'),
		cut: (closed) => gates.set('store', { hang: closed }),
		fail: (state) => gates.set('store', state),
	};
}

/* A server, separate gates to the services that it uses, and a port that remains after a restart, for HAProxy. */
async function startNode(c, gates, name, role, services, more = []) {
	const port = await freePort(), own = {};
	for (const [what, to] of Object.entries(services)) own[what] = await gates.make(`${name} ${what}`, { port: to });
	const env = {};
	const url = c.url;
	c.url = c.address(own.db, own.replica);
	const s = await c.serve({ join: role !== 'decode', env, args: ['--role', role, '--node', name, '--listen', `127.0.0.1:${port}`, '--behind-proxy', '--trusted-proxies', '127.0.0.1', '--max-open-uploads=10000',
		`--s3-endpoint=http://127.0.0.1:${own.store}`, ...(own.clickhouse ? ['--analytics', `clickhouse://127.0.0.1:${own.clickhouse}/tw`] : []), ...more] });
	c.url = url;
	return Object.assign(s, {
		kill: () => s.stop('SIGKILL'),
		up: () => s.start(),
		pause: () => s.child.kill('SIGSTOP'),
		resume: () => s.child.kill('SIGCONT'),
		cut: (closed, which = /./) => Promise.all(Object.keys(services).filter((what) => which.test(what)).map((what) => gates.set(`${name} ${what}`, { closed }))),
		again: async (other) => {
			await s.stop();
			for (const key of ['LD_PRELOAD', 'FAKETIME']) delete s.env[key];
			Object.assign(s.env, other);
			await s.start();
		},
	});
}

/* --- the load --- */

const SCENARIOS = ['start', 'scroll', 'pay'];

const count = (map, key) => map.set(key, (map.get(key) ?? 0) + 1);
/* The increase of each count since the copy of the map. */
const since = (map, before) => [...map].map(([key, n]) => [key, n - (before.get(key) ?? 0)]).filter(([, n]) => n > 0);

/* The reason of a refusal: the server's message without names and numbers, otherwise the proxy's. */
function reasonOf(status, text) {
	if (status === 0) return 'no answer';
	const message = text?.startsWith('{') ? JSON.parse(text).error.message : text?.replaceAll(/<[^>]*>/g, ' ').trim();
	return `${status} ${message?.replaceAll(/[^ ]*[0-9/][^ ]*/g, '#') ?? ''}`;
}

/* Devices that each send one trace until it is accepted, some in pieces. */
class Load {
	constructor(urls, key) {
		Object.assign(this, { urls, key, n: 0, kept: new Map(), statuses: new Map(), reasons: new Map(), answers: [], accepted: [], running: new Set() });
		this.timer = setInterval(() => {
			if (this.running.size >= DEVICES) return;
			const one = this.device(this.n++).finally(() => this.running.delete(one));
			this.running.add(one);
		}, 1000 / PER_SECOND);
	}

	async ask(at, turn, method, target, headers, body) {
		const began = performance.now();
		const answer = await fetchWithin(PATIENCE_MS, this.urls[turn % this.urls.length] + target, { method, body, redirect: 'manual', headers: { Authorization: `Bearer ${this.key}`, ...headers } });
		const [status, text] = [answer?.status ?? 0, answer?.text];
		at.fails = status > 0 && status < 400 ? 0 : (at.fails ?? 0) + 1;
		count(this.statuses, status);
		if (status === 0 || status >= 500) count(this.reasons, reasonOf(status, text));
		this.answers.push({ status, began, took: performance.now() - began });
		return { status, headers: answer?.headers, text };
	}

	/* The id, once it is accepted. */
	async whole(at, turn, body, query, name) {
		const r = await this.ask(at, turn, 'POST', `/api/v1/traces?${query}`, { 'Idempotency-Key': name }, body);
		return r.status === 202 || r.status === 200 ? JSON.parse(r.text).id : undefined;
	}

	async pieces(at, turn, body, query) {
		const tus = { 'Tus-Resumable': '1.0.0' };
		if (!at.path) {
			const metadata = [...query].map(([name, value]) => `${name} ${Buffer.from(value).toString('base64')}`).join(',');
			const made = await this.ask(at, turn, 'POST', '/api/v1/uploads', { ...tus, 'Upload-Length': String(body.length), 'Upload-Metadata': metadata });
			if (made.status === 201) at.path = new URL(made.headers.get('location'), this.urls[0]).pathname;
			return undefined;
		}
		const head = await this.ask(at, turn, 'HEAD', at.path, tus);
		const id = head.headers?.get('tracewell-trace');
		if (id || head.status !== 200) return id ?? undefined;
		const offset = Number(head.headers.get('upload-offset'));
		const r = await this.ask(at, turn + 1, 'PATCH', at.path, { ...tus, 'Upload-Offset': String(offset), 'Content-Type': 'application/offset+octet-stream' }, body.subarray(offset, offset + Math.ceil(body.length / 2)));
		return r.headers?.get('tracewell-trace') ?? undefined;
	}

	async device(i) {
		const of = { of: i % 9, calls: 5 + (7 * i) % 40, version: `1.${i % 3}`, scenario: SCENARIOS[Math.floor(i / 3) % 3] };
		const body = sampleTrace(of.calls, 4000 + of.of);
		const query = new URLSearchParams({ app: 'shop', version_name: of.version, scenario: of.scenario });
		for (let turn = i, at = {}; !this.given_up; turn++) {
			const id = i % 5 === 4 ? await this.pieces(at, turn, body, query) : await this.whole(at, turn, body, query, `device-${i}`);
			if (id) {
				this.kept.set(i, { ...of, id });
				return void this.accepted.push(performance.now());
			}
			await sleep(at.fails ? Math.random() * Math.min(2000, 200 * 2 ** at.fails) : 5);
		}
	}

	/* Uploads accepted from `from` on. */
	since(from) {
		return this.accepted.filter((at) => at >= from).length;
	}

	/* The longest time between two accepted uploads from `from` until now. */
	gap(from) {
		let last = from, longest = 0;
		for (const at of [...this.accepted.filter((x) => x >= from), performance.now()]) {
			longest = Math.max(longest, at - last);
			last = at;
		}
		return Math.round(longest);
	}

	more(n, what) {
		const from = this.accepted.length;
		return until(() => (this.accepted.length >= from + n ? true : undefined), () => `${what}: ${JSON.stringify([...this.statuses])}`, 180);
	}

	async end() {
		clearInterval(this.timer);
		await Promise.all(this.running);
	}
}

/* --- the test --- */

const leads = (s) => s.metric('tracewell_leader').catch(() => 0);

/* The part of that name; `lead` and `worker` are whichever servers of the role are it now. */
async function find(parts, name) {
	if (name !== 'lead' && name !== 'worker') return parts[name];
	return until(async () => {
		const d = [parts.d1, parts.d2];
		const lead = (await leads(d[0])) ? 0 : (await leads(d[1])) ? 1 : undefined;
		return lead === undefined ? undefined : d[name === 'lead' ? lead : 1 - lead];
	}, 'a server that leads', 240);
}

const ready = (s) => s.get('/readyz', { key: null }).catch(() => ({ status: 0 }));

/* Seconds until /readyz of each is red. */
async function untilRed(servers) {
	const began = performance.now();
	return Promise.all(servers.map((s) => until(async () => ((await ready(s)).status === 503 ? (performance.now() - began) / 1000 : undefined), '/readyz is red')));
}

async function run(row, parts, load, pair) {
	const chosen = await Promise.all(row.parts.map((name) => find(parts, name)));
	const [begin, end] = HOW[row.fault];
	const from = performance.now(), seconds = row.seconds ?? SECONDS;
	const hangs = row.parts[0] === 'postgres' && ['paused', 'cut off'].includes(row.fault);
	const result = { name: nameOf(row), depends: Boolean(row.uploads) };
	const before = new Map(load.statuses), reasons = new Map(load.reasons);
	const goesOn = async () => row.uploads !== 'stop' && until(() => (load.since(from) >= LEAST ? true : undefined), `uploads go on: ${result.name}`, 180);
	if (row.in_turn) {
		for (const part of chosen) {
			await begin(part);
			await load.more(5, `uploads go on: ${result.name}`);
			await end(part);
		}
	} else {
		await Promise.all(chosen.map((part) => begin(part)));
		const red = hangs ? untilRed(['in1', 'in2', 'q1', 'd1', 'd2'].map((name) => parts[name])) : [];
		await sleep(seconds * 1000);
		await goesOn();
		if (row.parts[0] === 'clickhouse') await clickhouseIsAway(parts);
		if (hangs) result.red = Math.max(...(await red));
		if (hangs) await until(() => load.answers.some((x) => x.began >= from && x.status === 503) || undefined, 'uploads are refused');
		await Promise.all(chosen.map((part) => end(part)));
	}
	if (!result.depends) assert.doesNotMatch(pair.primary.log, WAITED, `no upload waited for a lock: ${result.name}`);
	const ended = performance.now();
	if (hangs) result.refused = Math.max(...load.answers.filter((x) => x.began >= from && x.began + x.took < ended && x.status !== 202).map((x) => x.took)) / 1000;
	await load.more(5, `uploads after: ${result.name}`);
	for (const name of ['in1', 'in2', 'q1', 'd1', 'd2']) {
		let now;
		await until(async () => ((now = await ready(parts[name])).status === 200 ? true : undefined), () => `${name} is ready after: ${result.name}; ${now?.text}`, 180);
	}
	return Object.assign(result, { gap: load.gap(from), ready: (performance.now() - ended) / 1000, uploads: load.since(from),
		statuses: since(load.statuses, before).filter(([status]) => status === 0 || status >= 400), reasons: since(load.reasons, reasons) });
}

/* Questions on many traces have no answer, and the stage states what waits. */
async function clickhouseIsAway({ q1 }) {
	await until(async () => ((await q1.get('/api/v1/fleet/scenarios?by=all')).status === 503 ? true : undefined), 'no answer');
	await until(async () => ((await q1.get('/api/v1/fleet/stages')).json?.stages?.some((x) => x.stage === 'rollup' && x.waiting > 0) ? true : undefined), 'the stage waits');
}

const print = (t, engine, results) => {
	t.diagnostic(`${engine}: longest time between two accepted uploads (goal ${GOAL_MS} ms, * if missed)`);
	for (const r of results)
		t.diagnostic(`${r.name.padEnd(44)} ${String(r.gap).padStart(6)} ms ${r.depends ? '(uploads depend on it)' : r.gap > GOAL_MS ? '*' : ''} ready ${r.ready.toFixed(1)} s after, ${r.uploads} uploads`
			+ (r.red ? `, /readyz red after ${r.red.toFixed(1)} s, uploads refused after at most ${r.refused.toFixed(1)} s` : '') + (r.statuses.length ? `, answers ${JSON.stringify(r.statuses)}` : '') + (r.reasons.length ? `, ${JSON.stringify(r.reasons)}` : ''));
};

/* Calls of each version and scenario. */
async function figuresOf(s, kept) {
	const sums = new Map();
	for (const { version, scenario, calls } of kept.values()) sums.set(`${version} ${scenario}`, (sums.get(`${version} ${scenario}`) ?? 0) + calls);
	const found = new Map();
	for (const cell of sums.keys()) {
		const [version_name, scenario] = cell.split(' ');
		const { json } = await s.get('/api/v1/fleet/methods', { query: { metrics: 'calls', version_name, scenario } });
		found.set(cell, Math.max(...json.methods.map((m) => m.calls.sum)));
	}
	assert.deepEqual(found, sums, 'calls by version and scenario');
	return (await s.get('/api/v1/fleet/scenarios?by=all')).json;
}

for (const engine of ['clickhouse', 'embedded'])
	test(`each part is killed, stopped and cut off under load, sums in ${engine === 'clickhouse' ? 'ClickHouse' : 'the catalogue'}`, {
		skip: skip || (engine === 'clickhouse' && !has('clickhouse-server') && 'ClickHouse is not installed'), timeout: 3600000,
	}, async (t) => {
		const gates = await startGates(t);
		const pair = FULL ? await startPair(t) : await startPrimary(t);
		for (const setting of ['log_lock_waits=on', `deadlock_timeout='${LOCK_MS}ms'`]) pair.primary.sql(`ALTER SYSTEM SET ${setting}`);
		pair.primary.sql('SELECT pg_reload_conf()');
		const swift = FULL && !lacksSwift;
		if (FULL && lacksSwift) t.diagnostic(lacksSwift);
		const store = swift ? await startSwift(t) : await startBucket(t);
		const storePort = await gates.make('store', { http: true, port: Number(new URL(store.url).port) });
		const c = await startCluster(t, { db: pair.primary, bucket: store, url: pair.url('cluster') });
		const services = { db: await gates.make('postgres', { port: pair.primary.port }), store: storePort };
		if (pair.replica) services.replica = pair.replica.port;
		c.address = (...ports) => pair.address('cluster', ...ports);
		const parts = { postgres: database(gates, pair), store: storeOf(gates, store) };
		if (engine === 'clickhouse') {
			parts.clickhouse = await startClickHouse(t, gates);
			services.clickhouse = parts.clickhouse.port;
		}
		for (const [name, role] of [['in1', 'ingest'], ['in2', 'ingest'], ['q1', 'query'], ['q2', 'query'], ['d1', 'decode'], ['d2', 'decode']])
			if (FULL || name !== 'q2') parts[name] = await startNode(c, gates, name, role, services);
		const proxies = await startProxies(t, gates, ['in1', 'in2', 'q1', FULL ? 'q2' : 'q1'].map((name) => parts[name].port));
		Object.assign(parts, proxies.parts);
		c.servers = [parts.q1];

		const load = new Load(proxies.urls, c.keys.ingest);
		atEnd(t, () => {
			load.given_up = true;
			return load.end();
		});
		await load.more(LEAST, 'uploads');
		const results = [];
		try {
			for (const row of rowsOf(engine)) {
				if (row.fault.startsWith('clock') && !FAKETIME) continue;
				if (row.parts[0] === 'store' && ['killed', 'paused'].includes(row.fault) && !swift) continue;
				results.push(await run(row, parts, load, pair));
			}
		} finally {
			print(t, engine, results);
		}
		await load.end();
		t.diagnostic(`${load.kept.size} uploads accepted; answers ${JSON.stringify([...load.statuses])}`);
		assert.deepEqual([...load.statuses.keys()].filter((status) => ![0, 200, 201, 202, 204, 409, 423, 429, 502, 503, 504].includes(status)), [], 'answers that make a device give up');
		await c.verify({ kept: load.kept }, 600);
		const figures = await figuresOf(parts.q1, load.kept);
		if (engine === 'clickhouse' && FULL)
			await t.test('counted again, it is the same', async () => {
				for (const name of ['in1', 'in2', 'q1', 'q2', 'd1', 'd2']) await parts[name]?.stop();
				await promisify(execFile)(binary(), ['rollup', '--data', parts.d1.data, '--rebuild'], { env: { ...process.env, ...store.env } });
				for (const name of ['d1', 'q1']) await parts[name].start();
				await until(async () => ((await parts.q1.get('/api/v1/fleet/scenarios?by=all')).json?.traces === load.kept.size ? true : undefined), 'all counted again', 600);
				assert.deepEqual(await figuresOf(parts.q1, load.kept), figures);
			});
	});
