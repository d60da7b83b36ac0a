/*
 * capture.test.mjs - what devices should record: whom the rules choose, that the answer is cached by
 * its ETag and ends with the day's room, and that uploads which follow a rule are counted once.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { sampleTrace } from '../make.mjs';
import { startServer } from '../server.mjs';

const RULES = { max_age_s: 600, rules: [
	{ name: 'cold-8.3', scenario: 'cold_start', where: { version_name: ['8.3.*'] }, per_day: 3, record: { tracer: 'btrace2', max_seconds: 20 } },
	{ name: 'few', share: 0.2 },
	{ name: 'later', enabled: false },
] };

async function withRules(t, rules = RULES) {
	const s = await startServer(t);
	const put = await s.ask('PUT', '/api/v1/capture/rules', { key: s.admin, body: JSON.stringify(rules) });
	assert.equal(put.status, 200, put.text);
	return s;
}

const ask = (s, query, headers = {}) => s.get('/api/v1/capture', { key: s.ingest, query, headers });
const names = (a) => a.json.captures.map((c) => c.rule);

test('without rules devices record nothing', async (t) => {
	const s = await startServer(t);
	const a = await ask(s, {});
	assert.deepEqual([a.status, a.json], [200, { max_age_s: 3600, captures: [] }]);
	assert.deepEqual((await s.get('/api/v1/capture/rules')).json, { max_age_s: 3600, rules: [], updated_ms: 0, days: [] });
});

test('a device gets its matching rules, and 304 while they are unchanged', async (t) => {
	const s = await withRules(t);
	const a = await ask(s, { version_name: '8.3.1' });
	assert.deepEqual(a.json, { max_age_s: 600, captures: [
		{ rule: 'cold-8.3', scenario: 'cold_start', record: { tracer: 'btrace2', max_seconds: 20 }, share: 1 },
		{ rule: 'few', scenario: '', record: {}, share: 0.2 }] });
	assert.match(a.headers.get('cache-control'), /private, max-age=600/);
	const tag = a.headers.get('etag');
	const again = await ask(s, { version_name: '8.3.1' }, { 'If-None-Match': tag });
	assert.deepEqual([again.status, again.text], [304, '']);
	assert.equal((await ask(s, { version_name: '8.2' }, { 'If-None-Match': tag })).status, 200);
	await s.ask('PUT', '/api/v1/capture/rules', { key: s.admin, body: JSON.stringify({ rules: [RULES.rules[0]] }) });
	assert.equal((await ask(s, { version_name: '8.3.1' }, { 'If-None-Match': tag })).status, 200);
});

test('a fifth of the devices is chosen, always the same ones', async (t) => {
	const s = await withRules(t);
	const chosen = [];
	for (let i = 0; i < 200; i++) if (names(await ask(s, { device_id: `install-${i}` })).includes('few')) chosen.push(i);
	assert.ok(chosen.length > 12 && chosen.length < 70, `${chosen.length} of 200`);
	for (const i of chosen.slice(0, 5)) {
		const a = await ask(s, { device_id: `install-${i}`, os: '14' });
		assert.deepEqual(a.json.captures.find((c) => c.rule === 'few'), { rule: 'few', scenario: '', record: {} }, 'chosen: no share to draw by');
	}
});

test('uploads by a rule are counted with their devices, and end its day', async (t) => {
	const s = await withRules(t);
	const send = async (seed, query) => s.trace(sampleTrace(seed), { query });
	const by = { capture: 'cold-8.3', version_name: '8.3.1' };
	assert.deepEqual(names(await ask(s, { version_name: '8.3.1' })), ['cold-8.3', 'few']);
	await send(30, { ...by, device_id: 'one' });
	await send(31, { ...by, device_id: 'one' });
	const day = async () => (await s.get('/api/v1/capture/rules')).json.days.map((d) => [d.rule, d.traces, d.devices]);
	assert.deepEqual(await day(), [['cold-8.3', 2, 1]]);
	assert.deepEqual(names(await ask(s, { version_name: '8.3.1' })), ['cold-8.3', 'few'], 'there is room for one more');
	await send(32, { ...by, device: 'Pixel 8' });
	assert.deepEqual(await day(), [['cold-8.3', 3, 2]]);
	assert.deepEqual(names(await ask(s, { version_name: '8.3.1' })), ['few']);
	await send(33, { ...by, device_id: 'late' });
	await send(34, { capture: 'of last week' });
	await send(35, {});
	assert.deepEqual(await day(), [['', 1, 0], ['cold-8.3', 4, 3]], 'what comes late is taken and counted');
});

test('the same upload twice is one', async (t) => {
	const s = await withRules(t);
	const query = { capture: 'few', device_id: 'one' };
	for (let i = 0; i < 2; i++) await s.ask('POST', '/api/v1/traces', { key: s.ingest, query, body: sampleTrace(40), headers: { 'Idempotency-Key': 'same' } });
	assert.deepEqual((await s.get('/api/v1/capture/rules')).json.days.map((d) => d.traces), [1]);
});

test('invalid rules are refused with a message and the old ones remain', async (t) => {
	const s = await withRules(t);
	for (const [body, says] of [
		['{"rules":[{"name":"a","share":2}]}', /rule a: share must be a number from 0 to 1/],
		['{"rules":[{"name":"a","where":{"abi":["x"]}}]}', /where: unknown member abi; the members are app, version_name, device and os/],
		['{"rules":{}}', /rules must be a list/],
		['{"rules":[', /JSON|json/],
	]) {
		const a = await s.ask('PUT', '/api/v1/capture/rules', { key: s.admin, body });
		assert.equal(a.status, 400, body);
		assert.match(a.json.error.message, says);
	}
	assert.equal((await ask(s, { app: 'x'.repeat(600) })).status, 400);
	assert.equal((await s.get('/api/v1/capture/rules')).json.rules.length, 3);
	assert.equal((await s.ask('PUT', '/api/v1/capture/rules', { key: s.write, body: '{"rules":[]}' })).status, 403);
});
