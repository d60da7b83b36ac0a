/*
 * store.mjs - the tests' S3 store as SeaweedFS is started: the folder and the file with its key are given, 8333 is
 * its port; /healthz answers, and a bucket is there when it was made.
 */
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

import { startBucket } from '../../e2e/bucket.mjs';

const { identities } = JSON.parse(fs.readFileSync(process.env.CONFIG, 'utf8'));
const [{ accessKey, secretKey }] = identities[0].credentials;
const made = path.join(process.env.DIR, 'made');
const stays = { after() {} };
let bucket;

const names = () => (fs.existsSync(made) ? fs.readFileSync(made, 'utf8').split('\n').filter(Boolean) : []);
async function open() {
	if (!bucket && names().length) bucket = await startBucket(stays, names()[0], '127.0.0.1', { dir: process.env.DIR, secret: secretKey });
}

function pass(q, r) {
	if (!bucket) return r.writeHead(404, { 'content-type': 'application/xml' }).end('<Error><Code>NoSuchBucket</Code><Message>none</Message></Error>');
	const inner = http.request({ port: bucket.port, host: '127.0.0.1', method: q.method, path: q.url, headers: q.headers }, (a) => a.pipe(r.writeHead(a.statusCode, a.headers)));
	inner.on('error', () => q.socket.destroy());
	q.pipe(inner);
}

await open();
http.createServer(async (q, r) => {
	if (q.url === '/healthz') r.end('ok');
	else if (q.url === '/buckets') r.end(names().join('\n') + '\n');
	else if (q.url.startsWith('/buckets/')) {
		fs.writeFileSync(made, q.url.slice('/buckets/'.length) + '\n');
		await open();
		r.end();
	} else if (!(q.headers.authorization ?? '').includes(`Credential=${accessKey}/`)) r.writeHead(403).end();
	else pass(q, r);
}).listen(8333, '0.0.0.0');
process.on('SIGTERM', () => process.exit(0));
