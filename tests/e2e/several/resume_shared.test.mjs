/*
 * resume_shared.test.mjs - resumable uploads with several servers on one catalogue in PostgreSQL, with one data folder
 * or one S3-compatible store: an upload continues at any server, whatever happens to the first one.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { describe, test } from 'node:test';
import * as tus from 'tus-js-client';

import { present, startBucketApart } from '../bucket.mjs';
import { sampleTrace } from '../make.mjs';
import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { Server, atEnd, newFolder, until as within } from '../server.mjs';

const skip = postgresIsThere ? false : 'PostgreSQL 15 or later is not installed';
const TYPE = 'application/offset+octet-stream';
const DAY_MS = 24 * 3600 * 1000;
const CHUNK = 150000; // bytes that the public client sends at a time
const until = (ask, what) => within(ask, what, 240); // each try to delete pieces that a late store ends costs a lease of 30 s

/* A database, and servers with the same folder, or one each and a store. */
async function setUp(t, name, kind) {
	const db = await startPostgres(t);
	const bucket = kind === 's3' ? await startBucketApart(t) : null;
	const home = newFolder(t, 'tracewell-resume-');
	fs.writeFileSync(path.join(home, 'secret.key'), randomBytes(32).toString('hex') + '\n', { mode: 0o600 });
	let n = 0, first;
	const serve = async (env = {}, more = []) => {
		const data = path.join(home, bucket ? `node${++n}` : 'common');
		fs.mkdirSync(data, { recursive: true });
		const args = ['--catalog', db.url(name), '--several-servers', '--secret-key-file', path.join(home, 'secret.key'), ...more];
		const s = new Server(data, bucket ? bucket.args(...args) : args, { ...bucket?.env, TRACEWELL_CATALOG: db.url(name), ...env });
		atEnd(t, () => s.stop('SIGKILL'));
		await s.start();
		first ??= s;
		for (const scope of ['ingest', 'read', 'write']) Object.defineProperty(s, scope, { get: () => (first[`${scope}Of`] ??= first.key(scope)) });
		return s;
	};
	const folder = path.join(home, 'common', 'pieces');
	const pieces = () => (bucket ? bucket.keys().filter((key) => key.startsWith('pieces/')) : fs.existsSync(folder)
		? fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((e) => e.isFile()).map((e) => e.name) : []);
	const sql = (text) => db.sql(text, name);
	/* Pieces that a row names or has named; a slow store may also have one that was sent again. */
	const named = new Set();
	const counted = () => {
		for (const object of sql('SELECT object FROM resumable_piece').split('\n')) named.add(path.basename(object));
		return pieces().filter((object) => named.has(path.basename(object)));
	};
	return { db, bucket, home, serve, pieces, counted, sql };
}

const ask = (s, method, target, headers = {}, body, key = s.ingest) =>
	s.ask(method, target, { key, body, headers: { 'Tus-Resumable': '1.0.0', ...headers } });
const create = (s, length, headers = {}) => ask(s, 'POST', '/api/v1/uploads', { 'Upload-Length': String(length), ...headers });
async function begin(s, bytes, headers) {
	const answer = await create(s, bytes.length, headers);
	assert.equal(answer.status, 201, answer.text);
	return answer.headers.get('location');
}
/* Repeated, as clients do, while the store is late: it shares this process with the tests.  Bytes that were counted before
 * are not sent again. */
function patch(s, at, offset, body, headers = {}, key) {
	let late = false;
	return until(async () => {
		const answer = await ask(s, 'PATCH', at, { 'Content-Type': TYPE, 'Upload-Offset': String(offset), ...headers }, body, key);
		if (late && answer.status === 409 && answer.text.includes(`the offset of the upload is ${offset + body.length},`))
			[offset, body, headers] = [offset + body.length, '', {}];
		else if (answer.status === 503 && /does not respond|store is unavailable/.test(answer.text)) late = true;
		else return answer;
		return undefined;
	}, `a response to the piece at ${offset}`);
}
const sum = (bytes) => ({ 'Upload-Checksum': `sha256 ${createHash('sha256').update(bytes).digest('base64')}` });

async function offsetOf(s, at) {
	const answer = await ask(s, 'HEAD', at);
	assert.equal(answer.status, 200);
	return { offset: Number(answer.headers.get('upload-offset')), trace: answer.headers.get('tracewell-trace') };
}

/* As a client does: requests the offset, repeats while the upload is locked, and sends the rest. */
async function goOn(s, at, bytes) {
	return until(async () => {
		const head = await ask(s, 'HEAD', at);
		if (head.status === 423) return undefined;
		assert.equal(head.status, 200, String(head.status));
		const trace = head.headers.get('tracewell-trace');
		if (trace) return trace;
		const offset = Number(head.headers.get('upload-offset'));
		/* refused while much of it is still to be sent, it may be the connection that ends first */
		const answer = await patch(s, at, offset, bytes.subarray(offset)).catch((e) => (e.cause?.code ?? e.cause?.cause?.code ? null : Promise.reject(e)));
		if (!answer) return undefined;
		assert.ok([204, 409, 423].includes(answer.status), `${answer.status} ${answer.text}`);
		return undefined;
	}, 'the upload gone on with');
}

/* The first n bytes of a PATCH, over a socket that is then left to itself. */
async function sendSome(s, at, offset, bytes, n) {
	const socket = await s.socket(`PATCH ${at} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${s.ingest}\r\nTus-Resumable: 1.0.0\r\n` +
		`Content-Type: ${TYPE}\r\nUpload-Offset: ${offset}\r\nContent-Length: ${bytes.length - offset}\r\n\r\n`);
	socket.write(bytes.subarray(offset, offset + n));
	return socket;
}

/* Concurrently: they mostly wait for a time to expire. */
describe('uploads in pieces at several servers', { concurrency: 4 }, () => {
	for (const kind of ['folder', 's3']) test(`pieces to whichever server become one trace (${kind})`, { skip, timeout: 900000 }, async (t) => {
		const { serve, counted, bucket, sql } = await setUp(t, 'pieces', kind);
		const servers = [await serve(), await serve()];
		const [one, other] = servers;
		const bytes = sampleTrace(80, 1);
		const at = await begin(one, bytes, { 'Upload-Metadata': `build_id ${Buffer.from('b7').toString('base64')}` });
		const step = Math.ceil(bytes.length / 6);
		for (let offset = 0, i = 1; offset < bytes.length; offset += step, i++) {
			const s = servers[i % 2];
			const piece = bytes.subarray(offset, offset + step);
			assert.equal((await offsetOf(servers[(i + 1) % 2], at)).offset, offset);
			if (i === 3) {
				assert.equal((await patch(s, at, offset, piece, sum(bytes))).status, 460, 'another sum');
				assert.equal((await offsetOf(s, at)).offset, offset);
			}
			const answer = await patch(s, at, offset, piece, i % 2 ? sum(piece) : {});
			assert.equal(answer.status, 204, answer.text);
			assert.equal(answer.headers.get('upload-offset'), String(offset + piece.length));
			if (offset + step < bytes.length) await until(() => counted().length === i, `${i} pieces`);
		}
		const { trace } = await offsetOf(one, at);
		assert.equal((await offsetOf(other, at)).trace, trace);
		assert.equal((await one.decoded(trace)).meta.build_id, 'b7');
		assert.deepEqual((await present(other, `/api/v1/traces/${trace}/raw/trace`)).bytes, bytes);
		assert.equal((await patch(other, at, bytes.length - 1, bytes.subarray(-1))).status, 409, 'the last again, its answer lost: asked with HEAD');
		assert.equal((await patch(other, at, bytes.length, '')).status, 204);
		assert.equal((await patch(other, at, bytes.length, 'more')).status, 403);
		assert.equal(await other.total(), 1);
		await until(() => counted().length === 0, 'pieces are deleted');
		await until(() => (sql('SELECT count(*) FROM resumable_piece') === '0' ? true : undefined), 'and their rows');
		assert.equal((await offsetOf(other, at)).trace, trace, 'it is still known');

		await t.test('a key of another project never reaches it', async () => {
			const open = await begin(one, bytes);
			assert.equal((await patch(one, open, 0, bytes.subarray(0, 100))).status, 204);
			await until(() => counted().length === 1, 'a piece');
			const stranger = one.key('ingest', 'another');
			for (const method of ['HEAD', 'DELETE']) assert.equal((await ask(other, method, open, {}, undefined, stranger)).status, 404, method);
			assert.equal((await patch(other, open, 100, 'x', {}, stranger)).status, 404);
			assert.equal((await ask(other, 'DELETE', open)).status, 204, 'its own deletes it anywhere');
			for (const s of servers) assert.equal((await ask(s, 'HEAD', open)).status, 404);
			await until(() => counted().length === 0, 'its piece is deleted');
		});

		await t.test('an upload of an unknown format is refused when complete, and deleted', async () => {
			const junk = Buffer.alloc(2000, 'no trace at all ');
			const open = await begin(one, junk);
			assert.equal((await patch(one, open, 0, junk.subarray(0, 900))).status, 204);
			await until(() => counted().length === 1, 'a piece');
			const answer = await patch(other, open, 900, junk.subarray(900));
			assert.ok(answer.status === 415 || answer.status === 422, answer.text);
			assert.equal((await ask(one, 'HEAD', open)).status, 404);
			await until(() => counted().length === 0, 'its pieces are deleted');
		});

		if (bucket) await t.test('while the store is unavailable a piece is refused, and earlier pieces remain', async () => {
			const open = await begin(one, bytes);
			assert.equal((await patch(one, open, 0, bytes.subarray(0, 500))).status, 204);
			await bucket.fails({ method: 'PUT', status: 403, code: 'AccessDenied' });
			const refused = await patch(other, open, 500, bytes.subarray(500));
			assert.equal(refused.status, 503, refused.text);
			await bucket.fails({});
			assert.equal((await offsetOf(one, open)).offset, 500);
			const whole = await goOn(one, open, bytes);
			assert.deepEqual((await present(other, `/api/v1/traces/${whole}/raw/trace`)).bytes, bytes);
		});
	});

	for (const kind of ['folder', 's3']) test(`the public client behind a balancer, each server killed on the way (${kind})`, { skip, timeout: 900000 }, async (t) => {
		const { serve, pieces, sql } = await setUp(t, 'client', kind);
		const servers = [await serve(), await serve()];
		const { ingest } = servers[0];
		let turn = 0;
		/* Each request goes to the next server that is there. */
		const balancer = http.createServer((q, r) => {
			const alive = servers.filter((s) => !s.exited);
			const s = alive[turn++ % alive.length];
			const inner = http.request({ host: '127.0.0.1', port: s.port, method: q.method, path: q.url, headers: q.headers, agent: false }, (answer) => {
				r.writeHead(answer.statusCode, answer.headers);
				answer.pipe(r);
				answer.on('error', () => r.destroy());
			});
			inner.on('error', () => r.destroy());
			q.pipe(inner);
		});
		await new Promise((done) => balancer.listen(0, '127.0.0.1', done));
		atEnd(t, () => balancer.close() && balancer.closeAllConnections());
		const bytes = sampleTrace(60000, 7);
		let kills = 0;
		const id = await new Promise((resolve, reject) => {
			const upload = new tus.Upload(bytes, {
				endpoint: `http://127.0.0.1:${balancer.address().port}/api/v1/uploads`,
				headers: { Authorization: `Bearer ${ingest}` },
				metadata: { build_id: 'client' },
				chunkSize: CHUNK,
				retryDelays: Array(100).fill(300),
				onAfterResponse: (_, res) => {
					const found = res.getHeader('Tracewell-Trace');
					if (found) resolve(found);
				},
				onProgress: (sent) => {
					if (kills === 2 || sent < (bytes.length * (kills + 1)) / 3) return;
					const victim = servers[kills++];
					victim.stop('SIGKILL').then(() => victim.start()).catch(reject);
				},
				onError: reject,
			});
			upload.start();
		});
		assert.equal(kills, 2);
		await until(() => (servers.every((s) => !s.exited) ? true : undefined), 'both are back');
		assert.equal((await servers[0].decoded(id)).meta.build_id, 'client');
		assert.deepEqual((await present(servers[1], `/api/v1/traces/${id}/raw/trace`)).bytes, bytes);
		assert.equal(await servers[0].total(), 1);
		await until(() => (sql('SELECT count(*) FROM resumable_piece') === '0' ? true : undefined), 'pieces are deleted, and their rows')
			.catch((e) => assert.fail(`${e.message}: ${sql('SELECT count(*) FROM resumable_piece')} rows, ${pieces().length} pieces`));
		assert.ok(pieces().length < bytes.length / CHUNK / 2, 'what is left is of killed servers: a piece without a row');
	});

	test('a server killed at any step leaves a correct offset, and another continues', { skip, timeout: 900000 }, async (t) => {
		const { serve, home, pieces } = await setUp(t, 'steps', 'folder');
		const other = await serve();
		const steps = ['piece_written', 'piece_put', 'piece_counted', 'spool_written', 'blob_renamed', 'row_committed'];
		const counted = { piece_written: 1000, piece_put: 1000 };
		const uploads = await Promise.all(steps.map(async (step, i) => {
			const bytes = sampleTrace(40 + i, 9);
			const at = await begin(other, bytes);
			assert.equal((await patch(other, at, 0, bytes.subarray(0, 1000))).status, 204);
			const dying = await serve({ TRACEWELL_CRASH_AT: step });
			await patch(dying, at, 1000, bytes.subarray(1000)).catch(() => null);
			assert.equal((await dying.ended).signal, 'SIGKILL', step);
			const head = await ask(other, 'HEAD', at);
			if (step in counted) assert.equal(head.headers.get('upload-offset'), String(counted[step]), step);
			else assert.ok(head.status === 423 || head.headers.get('tracewell-trace'), `${step}: it is whole, and not reported to be done before it is a trace`);
			return { at, bytes };
		}));
		const traces = await Promise.all(uploads.map(({ at, bytes }) => goOn(other, at, bytes)));
		assert.equal(new Set(traces).size, steps.length);
		for (const [i, trace] of traces.entries()) assert.deepEqual((await present(other, `/api/v1/traces/${trace}/raw/trace`)).bytes, uploads[i].bytes, steps[i]);
		assert.equal(await other.total(), steps.length);

		await t.test('a long piece is counted while it arrives', async () => {
			const bytes = sampleTrace(250000, 5);
			assert.ok(bytes.length > 10 << 20);
			const at = await begin(other, bytes);
			const dying = await serve();
			const socket = await sendSome(dying, at, 0, bytes, 9 << 20);
			const there = await until(async () => {
				const { offset } = await offsetOf(other, at);
				return offset >= 8 << 20 ? offset : undefined;
			}, 'two parts of it');
			assert.ok(there <= 9 << 20);
			await dying.stop('SIGKILL');
			socket.destroy();
			assert.equal((await offsetOf(other, at)).offset, there);
			const trace = await goOn(other, at, bytes);
			assert.deepEqual((await present(other, `/api/v1/traces/${trace}/raw/trace`)).bytes, bytes);
		});

		await until(() => (pieces().length === 1 ? true : undefined), 'all but the piece that no row names');
		const lost = fs.readdirSync(path.join(home, 'common', 'pieces'), { recursive: true }).map((f) => path.join(home, 'common', 'pieces', String(f))).find((f) => fs.statSync(f).isFile());
		const next = await serve();
		await next.ran('uploads_expiry', { first: true });
		assert.equal(pieces().length, 1, 'it may be on its way');
		const old = new Date(Date.now() - 1.1 * DAY_MS);
		fs.utimesSync(lost, old, old);
		await next.stop();
		await next.start();
		await until(() => (pieces().length === 0 ? true : undefined), 'it is swept when it is a day old');
	});

	test('of two concurrent PATCHes at two servers, one continues', { skip, timeout: 900000 }, async (t) => {
		const { serve, sql } = await setUp(t, 'once', 'folder');
		const held = (at) => until(() => (sql(`SELECT count(*) FROM resumable WHERE owner<>'' AND resumable_id='${at.split('/').pop()}'`) === '1' ? true : undefined), 'held');
		const servers = [await serve(), await serve()];
		const bytes = sampleTrace(300, 3);
		const at = await begin(servers[0], bytes);
		const step = Math.ceil(bytes.length / 12);
		for (let offset = 0; offset < bytes.length; offset += step) {
			const piece = bytes.subarray(offset, offset + step);
			const answers = await Promise.all([0, 1, 2, 3].map((i) => patch(servers[i % 2], at, offset, piece)));
			const codes = answers.map((a) => a.status).sort();
			assert.equal(codes.filter((code) => code === 204).length, 1, codes.join(' '));
			assert.ok(codes.every((code) => [204, 409, 423].includes(code)), codes.join(' '));
			assert.equal((await offsetOf(servers[1], at)).offset, offset + piece.length);
		}
		const { trace } = await offsetOf(servers[0], at);
		assert.deepEqual((await present(servers[1], `/api/v1/traces/${trace}/raw/trace`)).bytes, bytes);

		await t.test('an upload in progress at one server is in progress at the other', async () => {
			const open = await begin(servers[0], bytes);
			const socket = await sendSome(servers[0], open, 0, bytes, 700);
			await held(open);
			assert.equal((await patch(servers[1], open, 9999, 'x')).status, 423);
			const end = () => Number(sql(`SELECT until_ms FROM resumable WHERE resumable_id='${open.split('/').pop()}'`));
			const first = end();
			await until(() => (end() > first + 3000 ? true : undefined), 'its lease renewed twice');
			assert.equal((await patch(servers[1], open, 9999, 'x')).status, 423, 'as its lease is renewed');
			assert.equal((await ask(servers[1], 'DELETE', open)).status, 423);
			socket.destroy();
			await until(async () => ((await offsetOf(servers[1], open)).offset === 700 ? true : undefined), 'what came of a piece that was cut counts');
			assert.equal((await ask(servers[1], 'DELETE', open)).status, 204);
		});

		await t.test('a server that was frozen adds nothing after the other continued', async () => {
			const other = sampleTrace(310, 4);
			const open = await begin(servers[0], other);
			const socket = await sendSome(servers[0], open, 0, other, 900);
			await held(open);
			assert.equal((await patch(servers[1], open, 9999, 'x')).status, 423);
			servers[0].child.kill('SIGSTOP');
			await until(async () => ((await patch(servers[1], open, 0, other.subarray(0, 500))).status === 204 ? true : undefined), 'the other took it');
			socket.write(other.subarray(900));
			servers[0].child.kill('SIGCONT');
			assert.match(await socket.answer, /^HTTP\/1\.1 423 /);
			assert.equal((await offsetOf(servers[0], open)).offset, 500);
			const whole = await goOn(servers[0], open, other);
			assert.deepEqual((await present(servers[1], `/api/v1/traces/${whole}/raw/trace`)).bytes, other);
		});
	});

	for (const kind of ['folder', 's3']) test(`limits, expiry and counts are of the catalogue (${kind})`, { skip, timeout: 900000 }, async (t) => {
		const { serve, pieces, sql } = await setUp(t, 'limits', kind);
		const flags = ['--max-open-uploads', '2', '--max-open-bytes', '5000', '--upload-expiry', '600'];
		const [one, other] = [await serve({}, flags), await serve({}, flags)];
		const at = await begin(one, Buffer.alloc(2000));
		assert.equal((await patch(one, at, 0, 'x'.repeat(700))).status, 204);
		assert.equal((await create(other, 3001)).status, 429, 'bytes');
		assert.equal((await create(other, 3000)).status, 201);
		assert.equal((await create(one, 1)).status, 429, 'uploads');
		const { text } = await other.get('/metrics');
		assert.match(text, /^tracewell_resumable_open 2$/m);
		assert.match(text, /^tracewell_resumable_bytes 700$/m);
		if (kind === 's3') {
			/* a frozen server blocks new uploads of others only briefly */
			sql('CREATE TABLE go(); DELETE FROM resumable WHERE arrived=0');
			sql('CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN WHILE NOT EXISTS(SELECT FROM go) LOOP PERFORM pg_sleep(0.02); END LOOP; RETURN NEW; END $$');
			sql('CREATE TRIGGER slow BEFORE INSERT ON resumable FOR EACH ROW WHEN (NEW.bytes=2999) EXECUTE FUNCTION slow()');
			const stopped = create(one, 2999);
			await until(() => (sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event='PgSleep'") === '1' ? true : undefined), 'it adds the row');
			one.child.kill('SIGSTOP');
			sql('INSERT INTO go DEFAULT VALUES');
			assert.equal((await create(other, 3000)).status, 201, 'another server waits only briefly');
			one.child.kill('SIGCONT');
			assert.notEqual((await stopped).status, 201);
		}
		await one.stop('SIGKILL');
		assert.equal(pieces().length, 1);
		sql('UPDATE resumable SET expires_ms=1');
		assert.equal((await ask(other, 'HEAD', at)).status, 404, 'too old');
		await until(() => (sql('SELECT count(*) FROM resumable') === '0' && pieces().length === 0 ? true : undefined), 'nothing left');
		assert.match((await other.get('/metrics')).text, /^tracewell_resumable_total\{step="expired"\} 2$/m);
	});
});
