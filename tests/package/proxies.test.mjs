/*
 * proxies.test.mjs - the configurations of deploy/proxy, each with its program in front of a real server: TLS,
 * whole and resumable uploads, the page, large answers, the client's address and a sign-in.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import https from 'node:https';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import * as tus from 'tus-js-client';

import { sampleTrace } from '../e2e/make.mjs';
import { root, startServer, until } from '../e2e/server.mjs';

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
	test(`behind ${name}`, { timeout: 60_000, skip: spawnSync('which', [name]).status !== 0 && `no ${name}` }, async (t) => {
		const s = await startServer(t, { args: ['--behind-proxy', '--trusted-proxies', '127.0.0.1', '--public-url', `https://${NAME}`] });
		const port = await free();
		const [program, ...args] = configure(port, `127.0.0.1:${s.port}`);
		const child = spawn(program, args, { env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder } });
		let said = '';
		for (const out of [child.stdout, child.stderr]) out.on('data', (piece) => (said += piece));
		t.after(() => new Promise((done) => child.once('close', done).kill('SIGTERM')));
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
