/*
 * malformed_requests.test.mjs - a live server and thousands of connections with input that no client sends (malformed_requests.mjs): it
 * keeps running, answers in HTTP or closes, never returns a 500, interprets an ambiguous end of a request
 * in one way only, releases all resources, and serves the next normal request.
 *
 * MALFORMED_SECONDS (12) and MALFORMED_SEED (1); a failure prints seed and number, MALFORMED_CASE=n runs only that case.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import { test } from 'node:test';

import { sampleTrace } from '../make.mjs';
import { startServer, until } from '../server.mjs';
import { answersIn, isAmbiguous, wildCase } from '../malformed_requests.mjs';

const SECONDS = Number(process.env.MALFORMED_SECONDS ?? 12);
const SEED = Number(process.env.MALFORMED_SEED ?? 1);
const ONLY = process.env.MALFORMED_CASE;
const AT_ONCE = 24;
const CHECK_EVERY = 1000; /* cases between two normal uploads */
const LATEST_MS = 180_000; /* of a close; the server's own time-out is 2 s */
/* Up to three more preflight processes of four descriptors each stay for the project's next uploads, and connections of
 * the test itself. What a case leaks is in the hundreds. */
const KEPT_DESCRIPTORS = 24;
const WRONG = new Set([500, 502, 504, 507]); /* never right here */
const FAILED = /"status":"storage"/; /* the 503 of a failed disk or database */

/* The complete response to a case. */
async function say(s, { pieces, then }) {
	const socket = net.connect({ port: s.port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
	let said = '';
	socket.setEncoding('latin1').on('data', (piece) => (said += piece)).on('error', () => {});
	const closed = new Promise((done) => socket.once('close', done));
	socket.once('end', () => socket.end());
	await new Promise((done) => socket.once('connect', done).once('close', done));
	for (const piece of pieces) {
		if (socket.destroyed || socket.writableEnded) break;
		socket.write(piece);
		await new Promise(setImmediate);
	}
	if (then === 'end') socket.end();
	if (then === 'gone') socket.destroy();
	const late = setTimeout(() => socket.destroy(new Error('late')), LATEST_MS);
	const began = Date.now();
	await closed;
	clearTimeout(late);
	assert.ok(Date.now() - began < LATEST_MS, 'neither answered nor closed');
	return said;
}

function verify(c, said) {
	const answers = answersIn(said);
	for (const { status, head } of answers) assert.ok(!WRONG.has(status), head);
	assert.doesNotMatch(said, FAILED);
	if (isAmbiguous(c.bytes)) {
		/* if a length is not a number, libmicrohttpd writes the head of its refusal twice */
		assert.ok(new Set(answers.map(({ head }) => head)).size <= 1, `${answers.length} answers where the end is in doubt`);
		for (const { status } of answers) assert.ok(status >= 400 || !status, `${status} where the end is in doubt`);
	}
	return answers;
}

async function goesOn(s, n) {
	assert.ok(!s.exited, `the server lives: ${s.log.slice(-1500)}`);
	const { status, json, text } = await s.post('/api/v1/traces', sampleTrace(20, 5000 + n), { query: { build_id: 'normal' } });
	assert.equal(status, 202, text);
	assert.equal((await s.decoded(json.id)).state, 'ready');
}

test('a server among strangers', async (t) => {
	const s = await startServer(t, { args: ['--connection-timeout', '2', '--connections-per-address', '0', '--min-free', '0'] });
	const keys = [s.key('ingest', 'wild'), s.key('read', 'wild'), s.key('write', 'wild'), s.key('admin', 'wild'), 'twk_none'];
	/* Connections to the catalogue remain open for later queries: as many as there were concurrent ones. */
	const of = (fd) => {
		try {
			return fs.readlinkSync(`/proc/${s.child.pid}/fd/${fd}`);
		} catch {
			return 'catalogue.db'; // closed since it was listed
		}
	};
	const descriptors = () => fs.readdirSync(`/proc/${s.child.pid}/fd`).filter((fd) => !of(fd).includes('catalogue.db')).length;
	let normal = 1;
	await goesOn(s, 0);
	const before = descriptors();
	const end = Date.now() + SECONDS * 1000;
	const statuses = {};
	let next = ONLY ? Number(ONLY) : 0;
	let answered = 0;
	const worker = async () => {
		while (Date.now() < end) {
			const n = next++;
			const c = wildCase(SEED, n, keys);
			try {
				const answers = verify(c, await say(s, c));
				answered += answers.length;
				for (const { status } of answers) statuses[status] = (statuses[status] ?? 0) + 1;
				if (n % CHECK_EVERY === CHECK_EVERY - 1) await goesOn(s, (normal++, n));
			} catch (e) {
				e.message = `MALFORMED_SEED=${SEED} MALFORMED_CASE=${n}: ${e.message}\n${JSON.stringify(c.bytes.toString('latin1').slice(0, 3000))}, ` +
					`in ${c.pieces.length} pieces, then ${c.then}\n${s.log.slice(-1000)}`;
				throw e;
			}
			if (ONLY) return;
		}
	};
	await Promise.all(Array.from({ length: ONLY ? 1 : AT_ONCE }, worker));
	t.diagnostic(`seed ${SEED}: ${next} cases, ${answered} answers: ${JSON.stringify(statuses)}`);
	await goesOn(s, (normal++, next));
	assert.equal((await s.get('/healthz', { key: null })).status, 200);
	await until(() => (s.spool().length === 0 ? true : undefined), 'an empty spool', 60);
	await until(() => (descriptors() <= before + KEPT_DESCRIPTORS ? true : undefined), 'descriptors are given back', 60);
	assert.ok(ONLY || answered > 50, `${answered} answers`);
	assert.equal(await s.total(), normal, "the strangers' own project has what they sent, and no other");
});
