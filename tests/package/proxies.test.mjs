/*
 * proxies.test.mjs - the configurations of deploy/proxy, each with its program in front of a real server: TLS,
 * whole and resumable uploads, the page, large answers, the client's address and a sign-in.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import * as tus from 'tus-js-client';

import { sampleTrace } from '../e2e/make.mjs';
import { atEnd, root, startServer, until } from '../e2e/server.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-proxies-'));
const at = (name) => path.join(folder, name);
const NAME = 'traces.example.com';
const free = () => new Promise((done) => {
	const s = net.createServer().listen(0, '127.0.0.1', () => {
		const { port } = s.address();
		s.close(() => done(port));
	});
});

before(() => {
	fs.chmodSync(folder, 0o755);
	execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', `/CN=${NAME}`,
		'-addext', `subjectAltName=DNS:${NAME}`, '-keyout', at('key.pem'), '-out', at('cert.pem')], { stdio: 'ignore' });
	fs.writeFileSync(at('both.pem'), fs.readFileSync(at('cert.pem'), 'utf8') + fs.readFileSync(at('key.pem'), 'utf8'));
});
after(() => fs.rmSync(folder, { recursive: true, force: true }));

/* The shipped text with the test's ports and files in it; each replacement must find its place. */
function configured(file, changes) {
	let text = fs.readFileSync(path.join(root, 'deploy/proxy', file), 'utf8');
	for (const [from, to] of changes) {
		assert.ok(text.includes(from), `${file} has ${from}`);
		text = text.replaceAll(from, to);
	}
	fs.writeFileSync(at(file), text);
	return at(file);
}

const proxies = {
	nginx(port, backend) {
		const site = configured('nginx.conf', [['127.0.0.1:8080', backend], ['listen 443 ssl http2', `listen 127.0.0.1:${port} ssl http2`],
			['	listen [::]:443 ssl http2;\n', ''], [`/etc/ssl/certs/${NAME}.pem`, at('cert.pem')], [`/etc/ssl/private/${NAME}.key`, at('key.pem')]]);
		fs.writeFileSync(at('whole.conf'), `pid ${at('nginx.pid')}; daemon off; error_log ${at('nginx.log')};
			events {} http { access_log off; client_body_temp_path ${at('t1')}; proxy_temp_path ${at('t2')}; fastcgi_temp_path ${at('t3')};
			uwsgi_temp_path ${at('t4')}; scgi_temp_path ${at('t5')}; include ${site}; }`);
		return ['nginx', '-e', at('nginx.log'), '-c', at('whole.conf')];
	},
	haproxy(port, backend) {
		return ['haproxy', '-db', '-f', configured('haproxy.cfg', [['127.0.0.1:8080', backend], ['bind :443', `bind 127.0.0.1:${port}`],
			[`/etc/haproxy/${NAME}.pem`, at('both.pem')]])];
	},
	caddy(port, backend) {
		return ['caddy', 'run', '--adapter', 'caddyfile', '--config', configured('Caddyfile', [['127.0.0.1:8080', backend],
			[`\n${NAME} {`, `\n{\n\tadmin off\n\tauto_https off\n}\nhttps://${NAME}:${port} {\n\ttls ${at('cert.pem')} ${at('key.pem')}`]])];
	},
};

/* A request to the proxy under the name of its certificate. */
const through = (port) => (method, target, { headers = {}, body } = {}) =>
	new Promise((done, fail) => {
		const req = https.request({ host: '127.0.0.1', port, method, path: target, servername: NAME, ca: fs.readFileSync(at('cert.pem')), agent: false,
			headers: { Host: NAME, ...headers } }, (res) => {
			const pieces = [];
			res.on('data', (piece) => pieces.push(piece)).on('end', () => {
				const bytes = Buffer.concat(pieces);
				done({ status: res.statusCode, headers: res.headers, bytes, text: bytes.toString() });
			});
		}).on('error', fail);
		req.end(body);
	});

const upload = (port, bytes, key) =>
	new Promise((done, fail) => {
		process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'; // the client looks for 127.0.0.1 in the certificate
		new tus.Upload(bytes, { endpoint: `https://127.0.0.1:${port}/api/v1/uploads`, headers: { Authorization: `Bearer ${key}`, Host: NAME }, chunkSize: 50000,
			metadata: { build_id: 'b' }, onAfterResponse: (_, res) => res.getHeader('Tracewell-Trace') && done(res.getHeader('Tracewell-Trace')), onError: fail }).start();
	});

for (const [name, configure] of Object.entries(proxies)) {
	test(`behind ${name}`, { timeout: 300_000, skip: spawnSync('which', [name]).status !== 0 && `no ${name}` }, async (t) => {
		const s = await startServer(t, { args: ['--behind-proxy', '--trusted-proxies', '127.0.0.1', '--public-url', `https://${NAME}`] });
		const port = await free();
		const [program, ...args] = configure(port, `127.0.0.1:${s.port}`);
		const child = spawn(program, args, { env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder } });
		let said = '';
		for (const out of [child.stdout, child.stderr]) out.on('data', (piece) => (said += piece));
		atEnd(t, () => new Promise((done) => child.once('close', done).kill('SIGTERM')));
		const ask = through(port);
		await until(async () => ((await ask('GET', '/readyz').catch(() => null))?.status === 200 ? true : undefined), `${name} ready`).catch((e) => assert.fail(`${e.message}: ${said}`));

		const key = { Authorization: `Bearer ${s.ingest}` };
		const body = sampleTrace(20000, 3); // some hundred KB
		const sent = await ask('POST', '/api/v1/traces?build_id=b', { headers: { ...key, 'Content-Length': body.length }, body });
		assert.equal(sent.status, 202, sent.text + said);
		const chunked = await ask('POST', '/api/v1/traces?build_id=b', { headers: { ...key, 'Transfer-Encoding': 'chunked' }, body: sampleTrace(500, 9) });
		assert.equal(chunked.status, 202, chunked.text);
		const { id } = JSON.parse(sent.text);
		assert.equal((await s.decoded(id)).state, 'ready');
		assert.equal((await s.decoded(await upload(port, sampleTrace(20000, 4), s.ingest))).state, 'ready');

		const perfetto = await ask('GET', `/api/v1/traces/${id}/perfetto`, { headers: { Authorization: `Bearer ${s.read}` } });
		assert.deepEqual(perfetto.bytes, (await s.get(`/api/v1/traces/${id}/perfetto`)).bytes);
		const page = await ask('GET', '/');
		assert.equal(page.status, 200);
		assert.match(page.headers['strict-transport-security'], /max-age/);

		const signed = await ask('POST', '/api/v1/session', { headers: { 'Content-Type': 'application/json', 'X-Tracewell': '1', Origin: `https://${NAME}`, 'X-Forwarded-For': '9.9.9.9' },
			body: JSON.stringify({ token: s.write }) });
		assert.equal(signed.status, 204, signed.text);
		assert.match(String(signed.headers['set-cookie']), /^__Host-.*; Secure/);
		assert.equal((await ask('PUT', '/api/v1/filters/f', { headers: { Authorization: `Bearer ${s.write}`, 'X-Forwarded-For': '9.9.9.9' }, body: JSON.stringify({ query: 'app=a' }) })).status < 300, true);
		const entry = JSON.parse((await ask('GET', '/api/v1/audit?target=f', { headers: { Authorization: `Bearer ${s.admin}` } })).text).entries[0];
		assert.equal(entry.address, '127.0.0.1', 'the client as the proxy saw it, not as it says');
	});
}

/* --- where requests land --- */

/* A node's probes as the server has them (e2e/http/ready.test.mjs), and for the rest its name. */
async function startNode(t, name) {
	const node = { name, state: 'well', probes: new Set() };
	const server = http.createServer((req, res) => {
		if (req.url.startsWith('/readyz')) node.probes.add(req.url);
		const red = node.state === 'cannot read' || (node.state === 'cannot write' && req.url === '/readyz');
		res.writeHead(req.url.startsWith('/readyz') && red ? 503 : 200, { 'content-type': 'text/plain' });
		req.resume().on('end', () => res.end(name));
	});
	await new Promise((done) => server.listen(0, '127.0.0.1', done));
	atEnd(t, () => {
		server.closeAllConnections?.();
		server.close();
	});
	node.port = server.address().port;
	return node;
}

function startProgram(t, [program, ...args], env = {}) {
	const child = spawn(program, args, { env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, ...env } });
	const out = { said: '' };
	for (const from of [child.stdout, child.stderr]) from.on('data', (piece) => (out.said += piece));
	atEnd(t, () => new Promise((done) => child.once('close', done).kill('SIGTERM')));
	return out;
}

const plain = (port) => (method, target, { body } = {}) => new Promise((done, fail) => {
	const req = http.request({ host: '127.0.0.1', port, method, path: target, agent: false, headers: body ? { 'Content-Length': body.length } : {} }, (res) => {
		let text = '';
		res.on('data', (piece) => (text += piece)).on('end', () => done({ status: res.statusCode, text }));
	}).on('error', fail);
	req.end(body);
});

/* Names of the nodes that get a kind of request, or the status where none does. */
async function landing(ask, kind) {
	const [method, target, body] = kind === 'upload' ? ['POST', '/api/v1/traces', 'x'] : ['GET', '/'];
	const all = new Set();
	for (let i = 0; i < 8; i++) {
		const r = await ask(method, target, { body }).catch((e) => ({ status: e.code }));
		all.add(r.status === 200 ? r.text : String(r.status));
	}
	return [...all].sort().join();
}

const lands = (ask, kind, expected, out) => until(async () => ((await landing(ask, kind)) === expected ? true : undefined), `${kind} at ${expected}`, 40)
	.catch(async (e) => assert.fail(`${e.message}, but ${await landing(ask, kind)}: ${out.said}`));

const without = (program) => spawnSync('which', [program]).status !== 0 && `no ${program}`;

test('haproxy-several.cfg: a node that cannot write gets pages and no uploads, one that cannot read nothing', { timeout: 300_000, skip: without('haproxy') }, async (t) => {
	const [in1, in2, q1, q2] = [await startNode(t, 'in1'), await startNode(t, 'in2'), await startNode(t, 'q1'), await startNode(t, 'q2')];
	const port = await free();
	const file = configured('haproxy-several.cfg', [['bind :443', `bind 127.0.0.1:${port}`], [`/etc/haproxy/${NAME}.pem`, at('both.pem')],
		...[in1, in2, q1, q2].map((node, i) => [`127.0.0.1:808${i + 1}`, `127.0.0.1:${node.port}`])]);
	const out = startProgram(t, ['haproxy', '-db', '-f', file]);
	const ask = through(port);
	await lands(ask, 'upload', 'in1,in2', out);
	await lands(ask, 'page', 'q1,q2', out);
	in1.state = q1.state = 'cannot write';
	await lands(ask, 'upload', 'in2', out);
	await until(() => (q1.probes.size ? true : undefined), 'a probe of q1');
	assert.equal(await landing(ask, 'page'), 'q1,q2', 'a full disk keeps nobody from reading');
	q1.state = 'cannot read';
	await lands(ask, 'page', 'q2', out);
	in1.state = q1.state = 'well';
	await lands(ask, 'upload', 'in1,in2', out);
	await lands(ask, 'page', 'q1,q2', out);
	assert.deepEqual([...in1.probes], ['/readyz']);
	assert.deepEqual([...q1.probes], ['/readyz?for=read']);
});

test('haproxy-cluster.cfg: the same, by names', { timeout: 300_000, skip: without('haproxy') }, async (t) => {
	const [takes, shows] = [await startNode(t, 'in'), await startNode(t, 'q')];
	const port = await free();
	const out = startProgram(t, ['haproxy', '-db', '-f', path.join(root, 'deploy/proxy/haproxy-cluster.cfg')],
		{ TRACEWELL_INGEST: `localhost:${takes.port}`, TRACEWELL_QUERY: `localhost:${shows.port}`, TRACEWELL_BIND: `127.0.0.1:${port}` });
	const ask = plain(port);
	await lands(ask, 'upload', 'in', out);
	await lands(ask, 'page', 'q', out);
	takes.state = shows.state = 'cannot write';
	await lands(ask, 'upload', '503', out);
	assert.equal(await landing(ask, 'page'), 'q', 'a full disk keeps nobody from reading');
	assert.equal((await ask('GET', '/proxyz')).status, 200);
	takes.state = 'well';
	shows.state = 'cannot read';
	await lands(ask, 'page', '503', out);
	await lands(ask, 'upload', 'in', out);
});

/* One node: it refuses uploads itself, with what to do, and its proxy takes nothing from readers. */
for (const [name, configure] of Object.entries(proxies))
	test(`${name}, one node: what it cannot take it refuses itself`, { timeout: 300_000, skip: without(name) }, async (t) => {
		const node = await startNode(t, 'one');
		const port = await free();
		const out = startProgram(t, configure(port, `127.0.0.1:${node.port}`));
		const ask = through(port);
		await lands(ask, 'page', 'one', out);
		node.state = 'cannot write';
		node.probes.clear();
		if (name === 'haproxy') await until(() => (node.probes.size ? true : undefined), 'a probe');
		for (const kind of ['upload', 'page']) await lands(ask, kind, 'one', out);
		node.state = 'cannot read';
		await lands(ask, 'page', name === 'haproxy' ? '503' : 'one', out); // the others probe nothing
	});
