/*
 * bucket.mjs - an S3-compatible store for tests. It verifies signatures and the sums of bodies from the scheme's text alone,
 * stores objects in files, and things go wrong in it on demand.
 *
 *   const b = await startBucket(t);
 *   const s = await startServer(t, { args: b.args(), env: b.env });
 *   b.fault = (q) => (q.method === 'PUT' ? { status: 503, code: 'SlowDown' } : undefined);
 *
 * Kinds of faults: { status, code, retryAfter } an answer; { drop } the connection ends, before or ('after') the store
 * did it; { cut } an answer's body ends early; { flip } a byte of it is another; { etag } another one;
 * { wait } milliseconds; { hang } no answer. What `early` gives is asked before the body is read: { reset } the
 * connection is reset within it.
 */
import { fork } from 'node:child_process';
import { createHash, createHmac, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { atEnd, sleep, until } from './server.mjs';

const SUFFIX = '._object'; // a key may be a folder of other keys
const SECRET = 'S3RVER';
const LATE_MS = 15 * 60 * 1000;

const sha256 = (bytes, as = 'hex') => createHash('sha256').update(bytes).digest(as);
const md5 = (bytes) => createHash('md5').update(bytes).digest('hex');
const hmac = (key, text) => createHmac('sha256', key).update(text).digest();
const escape = (text) => encodeURIComponent(text).replace(/[!'()*]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase());

/* A response of a server to a read, asked for again while the server believes the store to be away: it may share this
 * process with the test, and is late on a busy machine. */
export const present = (s, target) => until(async () => {
	const answer = await s.get(target);
	return answer.status === 503 && answer.text.includes('store is unavailable') ? undefined : answer;
}, `a response to ${target}`);

/* The query in the order of the scheme, without its signature. */
const sorted = (query) => [...new URLSearchParams(query.replace(/\+/g, '%2B'))]
	.filter(([name]) => name !== 'X-Amz-Signature')
	.map(([name, value]) => `${escape(name)}=${escape(value)}`).sort().join('&');

/* The signature of a request, from its header or its address. */
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

const xml = (text) => ({ status: 200, headers: { 'content-type': 'application/xml' }, bytes: Buffer.from(`<?xml version="1.0"?>${text}`) });

class Bucket {
	constructor(dir, name, secret) {
		Object.assign(this, { dir, name, secret, log: [], skewMs: 0, pageKeys: 3, verifies: true, fault: () => undefined, early: () => undefined });
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
			for (const e of fs.existsSync(folder) ? fs.readdirSync(folder, { withFileTypes: true }) : [])
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

	/* The key of a request, by the bucket's host name or path; undefined: another bucket. */
	keyOf(q) {
		const key = decodeURIComponent(q.url.split('?')[0]).slice(1);
		if (q.headers.host.startsWith(`${this.name}.`)) return key;
		return key === this.name || key.startsWith(`${this.name}/`) ? key.slice(this.name.length + 1) : undefined;
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
		else if (this.verifies && sha256(body, 'base64') !== (q.headers['x-amz-checksum-sha256'] ?? sha256(body, 'base64'))) this.answer(r, q, 400, 'BadDigest');
		else return false;
		return true;
	}

	/* Pages are short, so that there are some. */
	list(query) {
		const [prefix, after] = [query.get('prefix') ?? '', query.get('continuation-token') ?? ''];
		const most = Math.min(Number(query.get('max-keys')), this.pageKeys);
		const left = this.keys('').filter((key) => key.startsWith(prefix) && key > after);
		const page = left.slice(0, most);
		const more = left.length > page.length;
		const of = (key) => fs.statSync(this.file(key, ''));
		return xml(`<ListBucketResult><IsTruncated>${more}</IsTruncated>` +
			(more ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : '') +
			page.map((key) => `<Contents><Key>${key}</Key><LastModified>${of(key).mtime.toISOString()}</LastModified><Size>${of(key).size}</Size></Contents>`).join('') +
			'</ListBucketResult>');
	}

	/* Of an object; undefined: there is none.  Tests also put files without one. */
	metadata(file) {
		const at = fs.statSync(file, { throwIfNoEntry: false });
		if (!at?.isFile()) return undefined;
		const known = file.replace(/object$/, 'metadata.json');
		const more = fs.existsSync(known) ? JSON.parse(fs.readFileSync(known)) : { etag: `"${md5(fs.readFileSync(file))}"` };
		return { ...more, 'last-modified': at.mtime.toUTCString(), 'content-length': at.size };
	}

	/* An object is the one before or the one that was put, as in any store, whenever this process is killed. */
	store(file, body, etag, headers) {
		const whole = path.join(this.dir, `put-${randomUUID()}`);
		fs.mkdirSync(path.dirname(file), { recursive: true });
		fs.writeFileSync(file.replace(/object$/, 'metadata.json'), JSON.stringify({ etag, ...Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('x-amz-meta-'))) }));
		fs.writeFileSync(whole, body);
		fs.renameSync(whole, file);
		return { status: 200, headers: { etag } };
	}

	object(q, key, body) {
		const file = this.file(key, '');
		if (q.method === 'PUT') return this.store(file, body, `"${md5(body)}"`, q.headers);
		if (q.method === 'DELETE') {
			for (const gone of [file, file.replace(/object$/, 'metadata.json')]) fs.rmSync(gone, { force: true });
			return { status: 204 };
		}
		const headers = this.metadata(file);
		if (!headers) return { status: 404, code: 'NoSuchKey' };
		if (q.method === 'HEAD') return { status: 200, headers };
		const bytes = fs.readFileSync(file);
		const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(q.headers.range ?? '') ?? [];
		if (first === undefined) return { status: 200, headers, bytes };
		const part = bytes.subarray(Number(first), last ? Number(last) + 1 : undefined);
		if (!part.length) return { status: 416, code: 'InvalidRange' };
		return { status: 206, headers: { ...headers, 'content-length': part.length, 'content-range': `bytes ${first}-${Number(first) + part.length - 1}/${bytes.length}` }, bytes: part };
	}

	/* An upload in parts: a folder with its key and headers, and each part by its number. */
	parts(q, key, query, body) {
		if (q.method === 'GET') return { status: 501, code: 'NotImplemented' }; // a list of them
		if (query.has('uploads')) {
			const id = randomUUID();
			fs.mkdirSync(path.join(this.dir, 'parts', id), { recursive: true });
			fs.writeFileSync(path.join(this.dir, 'parts', id, 'begun'), JSON.stringify({ key, headers: q.headers }));
			return xml(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`);
		}
		const folder = path.join(this.dir, 'parts', path.basename(query.get('uploadId')));
		const begun = fs.existsSync(folder) ? JSON.parse(fs.readFileSync(path.join(folder, 'begun'))) : {};
		if (begun.key !== key) return { status: 404, code: 'NoSuchUpload' };
		if (q.method === 'PUT') {
			fs.writeFileSync(path.join(folder, String(Number(query.get('partNumber')))), body);
			return { status: 200, headers: { etag: `"${md5(body)}"` } };
		}
		let answer = { status: 204 };
		if (q.method === 'POST') {
			const named = [...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber>/g)].map(([, number]) => path.join(folder, number));
			if (!named.length || !named.every((part) => fs.existsSync(part))) return { status: 400, code: 'InvalidPart' };
			const pieces = named.map((part) => fs.readFileSync(part));
			const etag = `"${md5(Buffer.concat(pieces.map((part) => createHash('md5').update(part).digest())))}-${pieces.length}"`;
			this.store(this.file(key, ''), Buffer.concat(pieces), etag, begun.headers);
			answer = xml(`<CompleteMultipartUploadResult><ETag>${etag}</ETag></CompleteMultipartUploadResult>`);
		}
		fs.rmSync(folder, { recursive: true });
		return answer;
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
		const key = this.keyOf(q);
		const { status, code, headers, bytes = Buffer.alloc(0) } = key === undefined ? { status: 404, code: 'NoSuchBucket' }
			: query.has('list-type') ? this.list(query) : query.has('uploads') || query.has('uploadId') ? this.parts(q, key, query, body) : this.object(q, key, body);
		if (fault?.drop === 'after') return q.socket.destroy();
		if (code) return this.answer(r, q, status, code);
		if (fault?.flip && bytes.length) bytes[bytes.length >> 1] ^= 1;
		r.writeHead(status, { 'content-length': bytes.length, ...headers, date: this.date, ...(fault?.etag && headers?.etag ? { etag: fault.etag } : {}) });
		if (!fault?.cut) return r.end(bytes);
		r.write(bytes.subarray(0, bytes.length >> 1), () => q.socket.destroy());
	}
}

/* `at`: the address that it is reached by; `dir`: a folder that stays, where one is given, and the secret of its key. */
export async function startBucket(t, name = 'files', at = '127.0.0.1', { dir: kept, secret = SECRET } = {}) {
	const dir = kept ?? fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-s3-'));
	const bucket = new Bucket(dir, name, secret);
	fs.mkdirSync(bucket.folder, { recursive: true });
	const gate = http.createServer((q, r) => bucket.take(q, r).catch(() => q.socket.destroy()));
	await new Promise((done) => gate.listen(0, at, done));
	bucket.port = gate.address().port;
	bucket.url = `http://${at}:${bucket.port}`;
	atEnd(t, async () => {
		gate.close();
		gate.closeAllConnections();
		if (!kept) fs.rmSync(dir, { recursive: true, force: true });
	});
	return bucket;
}

const file = fileURLToPath(import.meta.url);

/* A bucket in a separate process, for tests that compute for long or wait for commands: a new server expects a response within
 * five seconds.  `fails({ method, status, code })`: requests of that method fail so, until `fails({})`. */
export async function startBucketApart(t) {
	const child = fork(file);
	const received = () => new Promise((done) => child.once('message', done));
	atEnd(t, () => child.disconnect());
	const { dir, name, url } = await received();
	return Object.assign(new Bucket(dir, name, SECRET), { url, fails: (fault) => (child.send(fault), received()) });
}

if (process.argv[1] === file) {
	const ends = [];
	const bucket = await startBucket({ after: (end) => ends.push(end) });
	process.on('message', (fault) => {
		bucket.fault = (q) => (q.method === fault.method ? fault : undefined);
		process.send({});
	});
	process.on('disconnect', async () => {
		for (const end of ends) await end();
		process.exit();
	});
	process.send({ dir: bucket.dir, name: bucket.name, url: bucket.url });
}
