/*
 * judge.test.mjs - the beginnings of uploads are looked at by processes of their own: refused in words
 * and with the place, and where such a process dies of one, the upload is taken and the next one looked at.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { describe, test } from 'node:test';

import { sampleTrace } from './make.mjs';
import { startServer } from './server.mjs';

const judges = (s) => fs.readdirSync(`/proc/${s.child.pid}/task`)
	.flatMap((t) => fs.readFileSync(`/proc/${s.child.pid}/task/${t}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number));
const deaths = async (s, why) => Number(new RegExp(`tracewell_decoder_deaths_total\\{reason="${why}"\\} (\\d+)`).exec((await s.get('/metrics', { key: null })).text)[1]);

describe('judges', { concurrency: 2 }, () => {
	test('what no format knows is refused with its place, by a process that stays', async (t) => {
		const s = await startServer(t);
		for (let i = 0; i < 5; i++) {
			const r = await s.post('/api/v1/traces', Buffer.alloc(1000, i + 1));
			assert.equal(r.status, 415, r.text);
			assert.equal(typeof r.json.error.offset, 'number');
		}
		assert.equal(judges(s).length, 1, 'one judge for all that came one after the other');
		assert.equal((await s.trace(sampleTrace(30))).state, 'ready');
		assert.deepEqual([await deaths(s, 'crash'), await s.total()], [0, 1]);
	});

	for (const [how, reason, slow] of [['crash', 'crash'], ['run', 'forbidden'], ['eat', null], ['sleep', 'loop', true]])
		test(`one that ends by ${how} costs no upload`, async (t) => {
			const s = await startServer(t, { env: { TRACEWELL_JUDGE_FAULT: how } });
			const sent = slow ? 1 : 3;
			for (let i = 0; i < sent; i++) assert.equal((await s.trace(sampleTrace(31 + i))).state, 'ready');
			if (reason) assert.equal(await deaths(s, reason), sent);
			assert.match(s.log, reason ? new RegExp(`event=judge_died reason=${reason}`) : /event=judge_d(ismissed|ied)/); // eating takes long on a busy machine
			const bad = await s.trace(Buffer.alloc(500, 7));
			assert.equal(bad.state, 'failed', 'what no judge saw is refused by the decoder');
		});

	test('a killed judge is replaced', async (t) => {
		const s = await startServer(t);
		await s.trace(sampleTrace(35));
		const [first] = judges(s);
		process.kill(first, 'SIGKILL');
		assert.equal((await s.trace(sampleTrace(36))).state, 'ready');
		assert.equal((await s.post('/api/v1/traces', Buffer.alloc(100, 9))).status, 415);
		assert.notEqual(judges(s)[0], first);
	});
});
