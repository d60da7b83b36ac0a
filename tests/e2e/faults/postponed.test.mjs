/*
 * postponed.test.mjs - a shortage of the server does not consume attempts of a trace: while decoders cannot
 * write, traces stay queued and report the reason, and they are decoded when the shortage ends.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';

import { Faults, shim } from '../faults.mjs';
import { sampleTrace } from '../make.mjs';
import { Server, atEnd, until } from '../server.mjs';

async function start(t) {
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-put-off-'));
	const data = path.join(folder, 'data');
	/* decoders write spool/<trace id>, and ids begin with the time: 01 until the year 4000 or so */
	const faults = new Faults(folder, path.join(data, 'spool', '01'));
	const s = new Server(data, ['--min-free', '0', '--worker-attempts', '2'], { LD_PRELOAD: faults.shim });
	await s.start();
	atEnd(t, async () => {
		await s.stop();
		fs.rmSync(folder, { recursive: true, force: true });
	});
	return { s, faults };
}

describe('decoders that cannot write', { skip: !fs.existsSync(shim) && `no ${shim}`, concurrency: 2 }, () => {
	for (const [error, status, words] of [['ENOSPC', 'disk_full', /full|space/], ['EIO', 'storage', /./]])
		test(error, async (t) => {
			const { s, faults } = await start(t);
			faults.arm(1, 0xffffffff, error);
			const ids = [];
			for (let i = 0; i < 3; i++) ids.push((await s.post('/api/v1/traces', sampleTrace(20, 5000 + i))).json.id);
			const trace = async (id) => (await s.get(`/api/v1/traces/${id}`)).json;

			const reported = await until(async () => {
				const now = await trace(ids[0]);
				return now.error ? now : undefined;
			}, 'the reason', 10);
			assert.equal(reported.error.status, status);
			assert.match(reported.error.message, words);
			assert.equal(reported.error.offset, null);
			const starts = () => s.log.match(/outcome=postponed/g)?.length ?? 0;
			await until(() => (starts() >= 4 ? true : undefined), 'more attempts than a trace has tries');
			for (const id of ids) {
				const now = await trace(id);
				assert.ok(now.state === 'queued' || now.state === 'decoding', JSON.stringify(now));
				assert.ok(now.attempts <= 1, `attempts: ${now.attempts}`);
			}
			const early = await s.get(`/api/v1/traces/${ids[0]}/flame`);
			assert.equal(early.status, 409);
			assert.match(early.json.error.message, words);
			assert.match((await s.get('/metrics', { key: null })).text, /tracewell_decodes_total\{format="",outcome="postponed"\} \d/);

			/* a trace deleted while it waits does not exist */
			assert.equal((await s.ask('DELETE', `/api/v1/traces/${ids.pop()}`)).status, 204);
			assert.ok(faults.disarm().hits > 0);
			for (const id of ids) {
				const ready = await until(async () => {
					const now = await trace(id);
					assert.notEqual(now.state, 'failed', JSON.stringify(now));
					return now.state === 'ready' ? now : undefined;
				}, 'ready once it is over', 40);
				assert.equal(ready.error, null);
				assert.equal(ready.summary.slices, 60);
				assert.equal(ready.attempts, 1);
			}
			assert.deepEqual(s.spool(), []);
		});

	test('a restart retries immediately', async (t) => {
		const { s, faults } = await start(t);
		faults.arm(1, 0xffffffff, 'ENOSPC');
		const { id } = (await s.post('/api/v1/traces', sampleTrace(20))).json;
		await until(() => (/outcome=postponed/.test(s.log) ? true : undefined), 'a first attempt', 10);
		await s.stop();
		faults.disarm();
		await s.start();
		assert.equal((await s.decoded(id)).state, 'ready');
	});
});
