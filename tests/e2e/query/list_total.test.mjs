/*
 * list_total.test.mjs - a list counts up to 10,000 traces and states when there are more, with and without a filter.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { sampleTrace } from '../make.mjs';
import { startServer } from '../server.mjs';

const COPIED = ['project_id', 'key_id', 'upload_bytes', 'version_name', 'version_code', 'build_id', 'mapping_id', 'device', 'os', 'abi', 'process', 'scenario', 'session_id', 'uuid', 'labels', 'pid', 'started_ms'].join();

/* Failed traces, which no stage reads. */
const copies = (from, to, app, id) => `WITH RECURSIVE n(i) AS (SELECT ${from} UNION ALL SELECT i+1 FROM n WHERE i<${to}) INSERT INTO trace(trace_id,idempotency_key,content,state,created_ms,app,${COPIED}) SELECT '01ARZ30000000000000'||(1000000+i),'',content||i,3,created_ms-i,'${app}',${COPIED} FROM trace,n WHERE trace_id='${id}';`;

test('a list counts up to 10,000 traces', async (t) => {
	const s = await startServer(t);
	const { id } = await s.trace(sampleTrace(20), { query: { app: 'first', device: 'd' } });
	const list = async (query) => {
		const { status, json, text } = await s.get('/api/v1/traces', { query: { limit: 2, ...query } });
		assert.equal(status, 200, text);
		return json;
	};
	const totals = ({ total, total_is_capped }) => [total, total_is_capped];
	assert.deepEqual(totals(await list()), [1, false]);
	s.sql(copies(1, 9999, 'many', id));
	assert.deepEqual(totals(await list()), [10000, false]);
	s.sql(copies(10000, 10001, 'many', id));
	const first = await list();
	assert.deepEqual(totals(first), [10000, true], '10,002 traces');
	assert.equal(first.traces[0].id, id);
	assert.deepEqual(totals(await list({ app: 'many' })), [10000, true], '10,001 of an app');
	assert.deepEqual(totals(await list({ app: 'first' })), [1, false]);
	const second = await list({ cursor: first.next_cursor });
	assert.deepEqual([second.traces.length, ...totals(second)], [2, 10000, true], 'also on other pages');
	const found = (await s.get('/api/v1/search', { query: { q: 'many' } })).json;
	assert.deepEqual([found.traces_total, found.traces_total_is_capped], [10000, true]);
});
