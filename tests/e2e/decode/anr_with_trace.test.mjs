/* An ANR report with the trace of the same seconds: both are shown, and its stacks are not calls. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { form, sampleTrace, zip } from '../make.mjs';
import { root, startServer } from '../server.mjs';

const report = `----- pid 4000 at 2026-01-02 03:04:05 -----
Cmd line: com.shop
DALVIK THREADS (2):
"main" prio=5 tid=1 Blocked
  | group="main" sCount=1 dsCount=0 obj=0x1 self=0x2
  | sysTid=4000 nice=-10 cgrp=default sched=0/0 handle=0x3
  at com.shop.Cart.total(Cart.java:10)
  - waiting to lock <0x0a> (a com.shop.Db) held by thread 7
  at android.os.Looper.loop(Looper.java:1)

"writer" prio=5 tid=7 Runnable
  | sysTid=4007 nice=0 cgrp=default sched=0/0 handle=0x4
  at com.shop.Db.write(Db.java:3)
  - locked <0x0a> (a com.shop.Db)

----- end 4000 -----
`;

test('an ANR report with a trace', async (t) => {
	const s = await startServer(t);
	const alone = await s.trace(sampleTrace());
	const { body, headers } = form(['trace', sampleTrace()], ['anr', report]);
	const both = await s.trace(body, { headers });
	assert.equal(both.state, 'ready', JSON.stringify(both.error));
	assert.equal(both.summary.format, 'btrace2');
	assert.equal(both.summary.slices, alone.summary.slices, 'its stacks are no calls');
	const { documents } = (await s.get(`/api/v1/traces/${both.id}/documents?kind=anr`)).json;
	assert.equal(documents.length, 1);
	assert.match(JSON.stringify(documents[0].content), /writer/);
	const { kinds } = (await s.get(`/api/v1/traces/${both.id}/notes`)).json;
	assert.equal(kinds.contention, 1, JSON.stringify(kinds));
	const { notes } = (await s.get(`/api/v1/traces/${both.id}/notes?kind=anr`)).json;
	assert.equal(notes[0].tid, 4000);
	assert.equal(notes[0].ts_ns, both.end_ns, 'it was written at the end');
	const flame = (await s.get(`/api/v1/traces/${both.id}/flame?thread=4000`)).json;
	assert.ok(!JSON.stringify(flame).includes('Looper'));
});

const golden = (name) => fs.readFileSync(path.join(root, 'tests/golden', name, 'realistic/input'));

/* Instrumented or sampled: the report belongs to the trace's end, in a form or in an archive. */
for (const format of ['btrace2', 'java_samples'])
	for (const how of ['form', 'zip'])
		test(`an ANR dump with ${format}, by ${how}`, async (t) => {
			const s = await startServer(t);
			const alone = await s.trace(golden(format));
			const { body, headers } = how === 'form' ? form(['trace', golden(format)], ['anr', golden('anr')])
				: { body: zip({ 'w/anr_2024-01-12.txt': golden('anr'), 'w/capture': golden(format) }), headers: {} };
			const both = await s.trace(body, { headers });
			assert.equal(both.state, 'ready', JSON.stringify(both.error));
			assert.equal(both.summary.format, format);
			assert.equal(both.summary.slices, alone.summary.slices);
			const { documents } = (await s.get(`/api/v1/traces/${both.id}/documents?kind=anr`)).json;
			assert.match(documents[0].content.verdict, /^main waits 5 s for a lock of Cart held by DB-writer/);
			const { notes } = (await s.get(`/api/v1/traces/${both.id}/notes?kind=anr`)).json;
			assert.equal(notes[0].ts_ns, both.end_ns, 'at the end of the trace');
			assert.equal(both.end_ns, alone.end_ns, 'which the report does not move');
		});
