/*
 * bucket.mjs - an S3-compatible store for tests: s3rver, behind a gate that verifies signatures and the
 * sums of bodies from the scheme's text alone (s3rver takes any), and in which things go wrong on demand.
 *
 *   const b = await startBucket(t);
 *   const s = await startServer(t, { args: b.args(), env: b.env });
 *   b.fault = (q) => (q.method === 'PUT' ? { status: 503, code: 'SlowDown' } : undefined);
 *
 * What a fault may be: { status, code, retryAfter } an answer; { drop } the connection ends, before or ('after') the store
 * did it; { cut } an answer's body ends early; { flip } a byte of it is another; { etag } another one;
 * { wait } milliseconds; { hang } no answer. What `early` gives is asked before the body is read: { reset } the
 * connection is reset within it.
 */
import { createHash, createHmac } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import S3rver from 's3rver';

import { sleep, until } from './server.mjs';

const SUFFIX = '._S3rver_object';
const SECRET = 'S3RVER';
const LATE_MS = 15 * 60 * 1000;

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
const hmac = (key, text) => createHmac('sha256', key).update(text).digest();
const escape = (text) => encodeURIComponent(text).replace(/[!'()*]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase());

/* A response of a server to a read, asked for again while the server believes the store to be away: it shares this process
 * with the test, and is late on a busy machine. */
export const present = (s, target) => until(async () => {
	const answer = await s.get(target);
	return answer.status === 503 && answer.text.includes('store is unavailable') ? undefined : answer;
}, `a response to ${target}`);

/* The query in the order of the scheme, without its signature. */
const sorted = (query) => [...new URLSearchParams(query.replace(/\+/g, '%2B'))]
	.filter(([name]) => name !== 'X-Amz-Signature')
	.map(([name, value]) => `${escape(name)}=${escape(value)}`).sort().join('&');

/* What a request says of its signature, in its header or its address. */
function claimOf({ url, headers }) {
	const query = new URLSearchParams(url.split('?')[1] ?? '');
	if (query.has('X-Amz-Signature')) {
		const [, date, region, service] = /^[^/]+\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request$/.exec(query.get('X-Amz-Credential')) ?? [];
		return { date, region, service, names: query.get('X-Amz-SignedHeaders'), signature: query.get('X-Amz-Signature'),
			time: query.get('X-Amz-Date'), expires: Number(query.get('X-Amz-Expires')), payload: 'UNSIGNED-PAYLOAD' };
	}
	const [, date, region, service, names, signature] =
		/^AWS4-HMAC-SHA256 Credential=[^/]+\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/
			.exec(headers.authorization ?? '') ?? [];
	return { date, region, service, names: names ?? '', signature, time: headers['x-amz-date'], expires: LATE_MS / 1000, payload: headers['x-amz-content-sha256'] };
}

/* Signature Version 4, as the service computes it. */
function isSigned(q, c, secret) {
	if (!c.signature || !/(^|;)host(;|$)/.test(c.names) || !c.payload) return false;
	const [where, query = ''] = q.url.split('?');
	const lines = c.names.split(';').map((name) => `${name}:${(q.headers[name] ?? '').trim()}\n`).join('');
	const canonical = [q.method, where, sorted(query), lines, c.names, c.payload].join('\n');
	const scope = `${c.date}/${c.region}/${c.service}/aws4_request`;
	const key = [c.date, c.region, c.service, 'aws4_request'].reduce(hmac, 'AWS4' + secret);
	return hmac(key, ['AWS4-HMAC-SHA256', c.time, scope, sha256(canonical)].join('\n')).toString('hex') === c.signature;
}

const timeOf = (text) => Date.parse((text ?? '').replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));

/* The store removes a folder with its last object, also while it is listed. */
function entries(folder) {
	try {
		return fs.readdirSync(folder, { withFileTypes: true });
	} catch (e) {
		if (e.code !== 'ENOENT') throw e;
		return [];
	}
}

class Bucket {
	constructor(dir, name, secret) {
		Object.assign(this, { dir, name, secret, log: [], skewMs: 0, pageKeys: 3, busy: new Map(), fault: () => undefined, early: () => undefined });
		this.env = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: secret };
	}

	/* Flags of a server that keeps its files here. */
	args(...more) {
		return [`--blobs=s3://${this.name}/tw`, `--s3-endpoint=${this.url}`, '--s3-timeout=20', ...more];
	}

	get folder() {
		return path.join(this.dir, 'store', this.name);
	}

	/* Keys of all objects of files, below the prefix. */
	keys(prefix = 'tw') {
		return this.all(prefix).filter((key) => !key.startsWith('owner/'));
	}

	all(prefix = 'tw') {
		const keys = [];
		const list = (folder, key) => {
			for (const e of entries(folder))
				if (e.isDirectory()) list(path.join(folder, e.name), key + e.name + '/');
				else if (e.name.endsWith(SUFFIX)) keys.push(key + e.name.slice(0, -SUFFIX.length));
		};
		list(path.join(this.folder, prefix), '');
		return keys.sort();
	}

	file(key, prefix = 'tw') {
		return path.join(this.folder, prefix, key + SUFFIX);
	}

	/* As any S3 client copies a prefix to a folder. */
	fetch(name, prefix) {
		const to = path.join(this.dir, name);
		for (const key of this.keys(prefix)) {
			fs.mkdirSync(path.dirname(path.join(to, key)), { recursive: true });
			fs.copyFileSync(this.file(key, prefix), path.join(to, key));
		}
		return to;
	}

	isOurs(q) {
		return q.headers.host.startsWith(`${this.name}.`) || q.url.startsWith(`/${this.name}/`);
	}

	count(method, part) {
		return this.log.filter((line) => line.startsWith(method + ' ') && line.includes(part)).length;
	}

	get date() {
		return new Date(Date.now() + this.skewMs).toUTCString();
	}

	answer(r, q, status, code, more = {}) {
		const body = q.method === 'HEAD' ? '' : `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code} it is</Message></Error>`;
		r.writeHead(status, { date: this.date, 'content-type': 'application/xml', ...more }).end(body);
	}

	refuse(q, r, body) {
		const claim = claimOf(q);
		const late = Math.abs(timeOf(claim.time) - (Date.now() + this.skewMs)) > claim.expires * 1000;
		if (!isSigned(q, claim, this.secret)) this.answer(r, q, 403, 'SignatureDoesNotMatch');
		else if (late) this.answer(r, q, 403, 'RequestTimeTooSkewed');
		else if (claim.payload !== 'UNSIGNED-PAYLOAD' && sha256(body) !== claim.payload) this.answer(r, q, 400, 'XAmzContentSHA256Mismatch');
		else return false;
		return true;
	}

	/* Its own: s3rver has no second page on today's Node.  Pages are short, so that there are some. */
	list(r, query) {
		const [prefix, after] = [query.get('prefix') ?? '', query.get('continuation-token') ?? ''];
		const most = Math.min(Number(query.get('max-keys')), this.pageKeys);
		const left = this.keys('').filter((key) => key.startsWith(prefix) && key > after);
		const page = left.slice(0, most);
		const more = left.length > page.length;
		const of = (key) => fs.statSync(this.file(key, ''));
		r.writeHead(200, { date: this.date, 'content-type': 'application/xml' }).end(`<?xml version="1.0"?><ListBucketResult><IsTruncated>${more}</IsTruncated>` +
			(more ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : '') +
			page.map((key) => `<Contents><Key>${key}</Key><LastModified>${of(key).mtime.toISOString()}</LastModified><Size>${of(key).size}</Size></Contents>`).join('') +
			'</ListBucketResult>');
	}

	/* An object is the one before or the one that was put, as in any store: s3rver writes it in place. */
	async alone(q, work) {
		const key = q.url.split('?')[0];
		const before = this.busy.get(key) ?? Promise.resolve();
		let done;
		const mine = new Promise((ok) => (done = ok));
		this.busy.set(key, mine);
		await before;
		work(done);
	}

	pass(q, r, body, fault, done) {
		const { expect, authorization, ...headers } = q.headers;
		const host = (headers.host ?? '').split('.')[0];
		const url = q.url.replace(/[?&]X-Amz-[^&]*/g, '').replace(/^([^?&]*)&/, '$1?');
		const inner = http.request({ port: this.inner, host: '127.0.0.1', method: q.method, path: host === this.name ? `/${host}${url}` : url, headers: { ...headers, host: '127.0.0.1' } }, async (answer) => {
			const bytes = await answer.toArray().then(Buffer.concat, () => undefined);
			done();
			if (!bytes) return q.socket.destroy();
			if (fault?.drop === 'after') return q.socket.destroy();
			if (answer.statusCode === 500 && q.method === 'POST' && q.url.includes('uploadId=')) return this.answer(r, q, 404, 'NoSuchUpload'); // joined before
			if (fault?.flip && bytes.length) bytes[bytes.length >> 1] ^= 1;
			r.writeHead(answer.statusCode, { ...answer.headers, date: this.date, ...(fault?.etag && answer.headers.etag ? { etag: fault.etag } : {}) });
			if (!fault?.cut) return r.end(bytes);
			r.write(bytes.subarray(0, bytes.length >> 1));
			setTimeout(() => q.socket.destroy(), 20);
		});
		inner.on('error', () => {
			done();
			q.socket.destroy();
		});
		inner.end(body);
	}

	async take(q, r) {
		if (this.early(q)?.reset) {
			await new Promise((done) => q.once('data', done).once('end', done));
			return q.socket.resetAndDestroy();
		}
		const body = Buffer.concat(await q.toArray());
		this.log.push(`${q.method} ${q.url}`);
		const fault = await this.fault(q);
		if (fault?.wait) await sleep(fault.wait);
		if (fault?.hang) return;
		if (fault?.drop === true) return q.socket.destroy();
		if (fault?.status) return this.answer(r, q, fault.status, fault.code, fault.retryAfter ? { 'retry-after': String(fault.retryAfter) } : {});
		const query = new URLSearchParams(q.url.split('?')[1] ?? '');
		if (this.refuse(q, r, body)) return;
		if (q.method === 'GET' && query.has('list-type') && this.isOurs(q)) this.list(r, query);
		else await this.alone(q, (done) => this.pass(q, r, body, fault, done));
	}
}

/* `at`: the address that it is reached by; `dir`: a folder that stays, where one is given, and the secret of its key. */
export async function startBucket(t, name = 'files', at = '127.0.0.1', { dir: kept, secret = SECRET } = {}) {
	const dir = kept ?? fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-s3-'));
	const store = new S3rver({ port: 0, address: '127.0.0.1', silent: true, directory: path.join(dir, 'store'), configureBuckets: [{ name }] });
	const bucket = new Bucket(dir, name, secret);
	bucket.inner = (await store.run()).port;
	const gate = http.createServer((q, r) => bucket.take(q, r).catch(() => q.socket.destroy()));
	await new Promise((done) => gate.listen(0, at, done));
	bucket.port = gate.address().port;
	bucket.url = `http://${at}:${bucket.port}`;
	t.after(async () => {
		gate.close();
		gate.closeAllConnections();
		const closed = store.close();
		store.httpServer.closeAllConnections(); /* requests that the gate passed on */
		await closed;
		if (!kept) fs.rmSync(dir, { recursive: true, force: true });
	});
	return bucket;
}
