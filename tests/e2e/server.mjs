/*
 * server.mjs - a real tracewell on a free port with a fresh data folder, for the tests in this folder.
 *
 *   const s = await startServer(t, { args: ['--max-body', '64K'] });   // ends with the test t
 *   const r = await s.post('/api/v1/traces', body, { query: { build_id: 'b1' } });
 *
 * The binary is $TRACEWELL, or the one built last in a build folder of the checkout.  With
 * $TRACEWELL_TEST_POSTGRES (postgres://...) each data folder has its catalogue in a schema there, and with
 * $TRACEWELL_TEST_BUCKET each server its files in a separate S3-compatible store.  With
 * $TRACEWELL_TEST_CLICKHOUSE (HOST:PORT) each has its sums over many traces in a database there.
 */
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const stages = [...fs.readFileSync(path.join(root, 'server/derive/stages.def'), 'utf8').matchAll(/^STAGE\((\w+)\)/gm)].map((m) => m[1]);

/* The path of real recordings, which are not in the repository: in $TRACEWELL_SAMPLES, by default ../shared/samples. */
export const sample = (name) => path.resolve(root, process.env.TRACEWELL_SAMPLES || '../shared/samples', name);

/* The option of a test that reads them. */
export const reads = (file) => ({ skip: !fs.existsSync(file) && `needs ${file}` });

/* What the routes of the server state about themselves: {method, path, needs}, with the page's.  Read
 * from schema/openapi.json, which the test `openapi` of meson compares with the server's table. */
export function routesServed() {
	const { paths } = JSON.parse(fs.readFileSync(path.join(root, 'schema/openapi.json'), 'utf8'));
	return Object.entries(paths)
		.flatMap(([at, item]) => Object.entries(item).map(([method, op]) => ({ method: method.toUpperCase(), path: at, needs: op['x-needs'].toUpperCase() })))
		.concat({ method: 'GET', path: '/{*}', needs: 'PUBLIC' });
}

export function binary() {
	if (process.env.TRACEWELL) return path.resolve(process.env.TRACEWELL);
	const built = fs
		.readdirSync(root)
		.map((name) => path.join(root, name, 'server', 'tracewell'))
		.filter((file) => fs.existsSync(file))
		.sort((a, b) => fs.statSync(b).mtimeMs - fs.statSync(a).mtimeMs);
	if (!built.length) throw new Error('no built tracewell: set TRACEWELL or run meson and ninja');
	return built[0];
}

let isSanitized;

/* Was it built with a sanitizer?  Then its memory use means nothing, and it is several times slower. */
export const FAKETIME = ['x86_64', 'aarch64'].map((of) => `/usr/lib/${of}-linux-gnu/faketime/libfaketimeMT.so.1`).find((file) => fs.existsSync(file));

export function sanitized() {
	const look = (program) => program.includes('__asan_init') || program.includes('__tsan_init');
	return (isSanitized ??= look(fs.readFileSync(binary())));
}

/* Exits of a child that differ there: a sanitizer reports a crash by its own exit status, and needs the
 * memory and the calls that are forbidden. */
export const endsUnlike = (how) => sanitized() && ['crash', 'eat', 'run'].includes(how) && 'built with a sanitizer';

const ENDS = new WeakMap();

/* Calls `end` at the end of the test or suite `t`: those of later calls first, and each although others fail. t.after() calls
 * them in the order they were given, so a folder would be removed while a server writes to it. */
export function atEnd(t, end) {
	const ends = ENDS.get(t) ?? [];
	ends.push(end);
	if (ends.length > 1) return;
	ENDS.set(t, ends);
	t.after(async () => {
		const failed = [];
		while (ends.length) {
			try {
				await ends.pop()();
			} catch (e) {
				failed.push(e);
			}
		}
		if (failed.length) throw failed[0];
	});
}

/* Replaces the `t` of a test in other programs.  end() calls the functions passed to after(), in order; so does a signal that
 * ends the program. */
export function untilEnd() {
	const ends = [];
	const t = {
		after: (end) => ends.push(end),
		end: async () => {
			while (ends.length) await ends.shift()();
		},
	};
	for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void t.end().finally(() => process.exit(128 + os.constants.signals[signal])));
	return t;
}

/* An empty temporary folder, removed at the end of `t`. */
export function newFolder(t, prefix) {
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), prefix));
	atEnd(t, () => fs.rmSync(folder, { recursive: true, force: true }));
	return folder;
}

/* A test() whose tests run `n` at a time, for a file of tests that mostly wait and share nothing. */
export function sideBySide(n) {
	const all = [];
	setImmediate(() => describe('side by side', { concurrency: n }, () => all.forEach((one) => test(...one))));
	return (...one) => all.push(one);
}

process.env.TRACEWELL_CHEAP_PASSWORDS = '1'; // of the servers and commands that the tests start

/* Runs a subcommand; stdout trimmed. */
export function tracewell(...args) {
	return execFileSync(binary(), args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 28 }).trim();
}

/* The value of a setting that makes a test longer or wider than in the default run. */
export const inFull = (full, otherwise) => (process.env.TRACEWELL_TESTS === 'full' ? full : otherwise);

/* The pace of a client, a fault or a kill, and the pause between two attempts. A test that expects something to have
 * happened, or not, waits with until(). */
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/*
 * Status, headers and text of a response; null if there is none within `ms`. A fetch() whose connection is closed at the
 * wrong moment never settles, and AbortSignal.timeout() does not end it.
 */
export async function fetchWithin(ms, url, options) {
	const control = new AbortController();
	const answer = fetch(url, { ...options, signal: control.signal }).then(async (a) => ({ status: a.status, headers: a.headers, text: await a.text() })).catch(() => null);
	let timer;
	const late = new Promise((done) => {
		timer = setTimeout(() => { done(null); control.abort(); }, ms);
	});
	return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}

/* A port that a test gives to a program, and that stays free while the program is restarted: none of those from which
 * the kernel takes the ports of connections (32768 and up), as it would give one of them to another test. */
export async function freePort(host = '127.0.0.1') {
	for (;;) {
		const port = 12000 + Math.floor(Math.random() * 20000);
		const probe = net.createServer();
		if (await new Promise((done) => probe.once('error', () => done(false)).listen(port, host, () => probe.close(() => done(true))))) return port;
	}
}

/* Each cookie of an answer; Debian 12's Node 18 hands them out as one text. */
export const cookiesOf = (headers) => headers.getSetCookie?.() ?? (headers.get('set-cookie') ?? '').split(/, (?=[^;, ]+=)/).filter(Boolean);

const LEAST_S = 180;

/* CLIENT_LATE=2000: delays a test before each request by up to that many milliseconds, as a busy machine does. */
const LATE_MS = Number(process.env.CLIENT_LATE ?? 0);

/* Repeats `ask` until it returns something other than undefined and false. The deadline is for a machine that is busy with other
 * work: a test never measures with it. */
export async function until(ask, what, seconds = LEAST_S) {
	const begin = Date.now();
	seconds = Math.max(seconds, LEAST_S) * (sanitized() ? 4 : 1);
	const end = begin + seconds * 1000;
	for (let pause = 4; Date.now() < end; pause = Math.min(pause * 2, Math.max(40, (Date.now() - begin) / 8), 250)) {
		const answer = await ask();
		if (answer !== undefined && answer !== false) return answer;
		await sleep(pause);
	}
	throw new Error(`${typeof what === 'function' ? what() : what}: not within ${seconds} s`);
}

/* The schema that has the catalogue where the tests want one; undefined: it is in its folder. */
function schemaOf(data, args) {
	const url = process.env.TRACEWELL_TEST_POSTGRES;
	if (!url || args.includes('--catalog')) return undefined;
	const schema = data.slice(-50).toLowerCase().replace(/[^a-z0-9]/g, '_').replace(/^[0-9_]+/, '');
	execFileSync('psql', ['-Xq', '-c', `CREATE SCHEMA IF NOT EXISTS ${schema}`, url], { stdio: 'ignore' });
	return schema;
}

function catalogueAt(schema) {
	const url = process.env.TRACEWELL_TEST_POSTGRES;
	return schema ? ['--catalog', `${url}${url.includes('?') ? '&' : '?'}options=-csearch_path%3D${schema}`] : [];
}

function analyticsOf(data, args) {
	const at = process.env.TRACEWELL_TEST_CLICKHOUSE;
	if (!at || args.includes('--analytics')) return [];
	const deadline = args.some((arg) => arg.startsWith('--query-deadline')) ? [] : ['--query-deadline', '60000']; // ten seconds are too few on a busy machine
	return ['--analytics', `clickhouse://${at}/t_${data.slice(-40).toLowerCase().replace(/[^a-z0-9]/g, '_')}`, ...deadline];
}

/* Statements on a file of SQLite, several in one transaction; rows as lines, columns between blanks. */
export const sqlite = (file, text) => execFileSync('sqlite3', ['-bail', '-cmd', '.timeout 20000', '-separator', ' ', file,
	text.includes(';') ? `BEGIN IMMEDIATE;${text};COMMIT` : text], { encoding: 'utf8' }).trim();

export class Server {
	constructor(data, args, env, under = []) {
		this.data = data;
		this.under = under;
		this.schema = schemaOf(data, args);
		this.args = [...args, ...catalogueAt(this.schema), ...analyticsOf(data, args)];
		this.env = env;
		this.log = '';
		this.stderr = 'pipe'; // or a descriptor
	}

	async start() {
		this.exited = false;
		const [program, ...before] = [...this.under, this.program ?? binary()];
		this.child = spawn(
			program,
			[...before, 'serve', '--data', this.data, '--listen', '127.0.0.1:0', ...this.args],
			{ stdio: ['ignore', 'pipe', this.stderr], env: { ...process.env, ...this.env } },
		);
		this.ended = new Promise((done) =>
			this.child.once('exit', (code, signal) => {
				this.exited = true;
				done({ code, signal });
			}),
		);
		const start = this.log.length;
		const receive = (text) => (this.log += text);
		this.child.stdout.setEncoding('utf8').on('data', receive);
		this.child.stderr?.setEncoding('utf8').on('data', receive);
		this.port = await until(
			() => {
				if (this.exited) throw new Error('the server ended: ' + this.log.slice(-500));
				const said = /event=listening url=https?:\/\/[^ ]*:(\d+)/.exec(this.log.slice(start));
				return said ? Number(said[1]) : undefined;
			},
			'a listening server',
		);
		this.url = `http://127.0.0.1:${this.port}`;
	}

	/* Statements that both engines know, as sqlite() does. */
	sql(text) {
		if (!this.schema) return sqlite(path.join(this.data, 'catalogue.db'), text);
		return execFileSync('psql', ['-XqtA', '-F', ' ', '-v', 'ON_ERROR_STOP=1', '-c', `SET search_path=${this.schema}`, '-c', text, process.env.TRACEWELL_TEST_POSTGRES], { encoding: 'utf8' }).trim();
	}

	key(scope, project = 'test') {
		return tracewell('key', 'create', '--data', this.data, '--project', project, '--new-project', '--scope', scope);
	}

	get ingest() {
		return (this.ingestKey ??= this.key('ingest'));
	}

	get read() {
		return (this.readKey ??= this.key('read'));
	}

	get write() {
		return (this.writeKey ??= this.key('write'));
	}

	get admin() {
		return (this.adminKey ??= this.key('admin'));
	}

	/* Any request; `key` null sends none; by default it is the read key, or the write key if needed. The response's body is in .bytes, .text and .json.
	 * It is compressed only if `headers` accept that. */
	async ask(method, target, { key = method === 'DELETE' ? this.write : this.read, body, query, headers = {}, redirect = 'follow' } = {}) {
		const search = query ? '?' + new URLSearchParams(query) : '';
		if (LATE_MS) await sleep(Math.random() * LATE_MS);
		/* the server may have closed the idle connection while this process was busy; the event loop reports that in its next iteration */
		for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate);
		const send = () => fetch(this.url + target + search, {
			method,
			body,
			duplex: 'half',
			redirect,
			headers: { ...(key ? { Authorization: `Bearer ${key}` } : {}), 'Accept-Encoding': 'identity', ...headers },
		});
		/* a connection that was idle while this process was delayed may be closed by now */
		const answer = await send().catch((e) => {
			if (!['GET', 'HEAD'].includes(method) || this.exited || !e.cause?.code) throw new Error(`${method} ${target}: ${e.message} ${e.cause?.message ?? ''}`, { cause: e });
			return send();
		});
		const bytes = Buffer.from(await answer.arrayBuffer());
		const text = bytes.toString('utf8');
		const isJson = (answer.headers.get('content-type') ?? '').startsWith('application/json');
		return { status: answer.status, headers: answer.headers, bytes, text, json: isJson && text ? JSON.parse(text) : undefined };
	}

	get(target, options) {
		return this.ask('GET', target, options);
	}

	post(target, body, options = {}) {
		return this.ask('POST', target, { key: this.ingest, body, ...options });
	}

	/* Of a mapping, waits until it is compiled, however busy the machine is. */
	put(target, body, options = {}) {
		const ask = (more) => this.ask('PUT', target, { key: this.write, body, ...options, ...more });
		if (!/\/builds\/[^/]+\/(methods|retrace)$/.test(target) || options.query?.wait) return ask();
		return until(async () => {
			const answer = await ask({ query: { wait: '60', ...options.query } });
			return answer.status === 202 ? undefined : answer;
		}, `${target} compiled`);
	}

	/* Uploads and waits until ready or failed; the TRACE. */
	async trace(body, options) {
		const answer = await this.post('/api/v1/traces', body, options);
		if (answer.status > 202) throw new Error(`upload: ${answer.status} ${answer.text}`);
		return this.decoded(answer.json.id);
	}

	/* A thread's flame graph as lines of name and value, two blanks a level, without the thread itself. */
	async flameLines(id, tid) {
		const { json } = await this.get(`/api/v1/traces/${id}/flame?thread=${tid}`);
		const lines = [];
		const walk = (node, depth) => {
			lines.push(`${'  '.repeat(depth)}${node.name} ${node.value}`);
			for (const child of node.children ?? []) walk(child, depth + 1);
		};
		walk(json, 0);
		return lines.slice(1);
	}

	async decoded(id) {
		return until(async () => {
			const { json } = await this.get(`/api/v1/traces/${id}`);
			return json.state === 'ready' || json.state === 'failed' ? json : undefined;
		}, `trace ${id} decoded`);
	}

	async total() {
		return (await this.get('/api/v1/traces')).json.total;
	}

	/* A metric as a number, summed over the series that have all of `labels`. */
	async metric(name, labels = {}) {
		const { text } = await this.get('/metrics', { key: null });
		const wanted = Object.entries(labels).map(([k, v]) => `${k}="${v}"`);
		const series = text.split('\n').filter((l) => l.startsWith(name) && /^[ {]/.test(l.slice(name.length)) && wanted.every((w) => l.includes(w)));
		return series.reduce((sum, l) => sum + Number(l.slice(l.lastIndexOf(' ') + 1)), 0);
	}

	/* Waits for a complete run of a background task that begins after this call, or for the first one of this process. */
	async ran(task, { first = false } = {}) {
		const runs = () => this.metric('tracewell_background_runs_total', { task });
		const enough = first ? 1 : (await runs()) + 2;
		await until(async () => ((await runs()) >= enough ? true : undefined), `a run of ${task}`);
	}

	/* Names of the files in the spool: uploads in progress, or left over. */
	spool() {
		const folder = path.join(this.data, 'spool');
		return fs.existsSync(folder) ? fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((e) => e.isFile()).map((e) => e.name) : [];
	}

	/* A socket for input that no well-behaved client sends; .answer has all bytes received. */
	async socket(text = '', localAddress = undefined) {
		const socket = net.connect({ port: this.port, host: '127.0.0.1', localAddress });
		await new Promise((done, fail) => socket.once('connect', done).once('error', fail));
		socket.on('error', () => {});
		socket.answer = new Promise((done) => {
			let all = '';
			socket.setEncoding('latin1').on('data', (piece) => (all += piece));
			socket.once('close', () => done(all));
		});
		if (text) socket.write(text);
		return socket;
	}

	/* A server that does not end is killed after three minutes, and the test fails instead of waiting for ever. */
	async stop(signal = 'SIGTERM') {
		if (this.exited) return this.ended;
		this.child.kill(signal);
		let late = false;
		const timer = setTimeout(() => {
			late = true;
			this.child.kill('SIGKILL');
		}, 180_000 * (sanitized() ? 4 : 1));
		const end = await this.ended;
		clearTimeout(timer);
		if (late) throw new Error(`the server did not end after ${signal}: ${this.log.slice(-2000)}`);
		return end;
	}

	/* Resident memory in MiB. */
	resident() {
		const status = fs.readFileSync(`/proc/${this.child.pid}/status`, 'utf8');
		return Number(/VmRSS:\s+(\d+) kB/.exec(status)[1]) / 1024;
	}
}

/* The child processes of a server: {pid, template}, `template` of the process that decoders are copied from and of the copies. */
export const childrenOf = (s) => fs.readdirSync(`/proc/${s.child.pid}/task`)
	.flatMap((task) => fs.readFileSync(`/proc/${s.child.pid}/task/${task}/children`, 'utf8').trim().split(' ').filter(Boolean))
	.flatMap((pid) => {
		try {
			const line = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8');
			return line.includes('worker') ? [{ pid: Number(pid), template: line.includes('template') }] : []; // until its exec it is the server's copy
		} catch {
			return []; // it has ended
		}
	});

/* A data folder with an empty catalogue, as the first start of a server leaves it; commands make none. */
export async function makeData(data) {
	const server = new Server(data, ['--catalog', ''], {});
	await server.start();
	await server.stop();
	return data;
}

/* A store, if the tests use one: in a separate process, because this one waits for subcommands. */
async function bucketArgs(t, args, data) {
	if (!process.env.TRACEWELL_TEST_BUCKET || data || args.some((arg) => /^--(blobs|s3)/.test(arg))) return [];
	const { startBucketApart } = await import('./bucket.mjs');
	const bucket = await startBucketApart(t);
	Object.assign(process.env, bucket.env);
	return bucket.args();
}

/* `t`: the test or suite context whose end stops it and removes its data.  `under`: a program and its arguments that becomes
 * the server. */
export async function startServer(t, { args = [], env = {}, data, under } = {}) {
	const folder = data ?? newFolder(t, 'tracewell-e2e-');
	const server = new Server(folder, [...args, ...(await bucketArgs(t, args, data))], env, under);
	await server.start();
	atEnd(t, () => server.stop());
	return server;
}
