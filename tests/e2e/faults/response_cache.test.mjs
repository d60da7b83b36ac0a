/*
 * response_cache.test.mjs - the response cache: slow responses are cached for equal requests, and never returned to
 * a caller without access or after the result has changed.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { btrace, sampleMapping } from '../make.mjs';
import { parse, value } from '../prometheus.mjs';
import { startServer } from '../server.mjs';

const PID = 4000;

/* Of many threads, with call trees that are large. */
function wide() {
	const records = [];
	for (let tid = PID; tid < PID + 8; tid++)
		for (let i = 0, x = tid; i < 3000; i++) {
			const at = 1_000_000 + i * 100_000;
			for (let depth = 12; depth >= 0; depth--) records.push([tid, 1 + ((x = (x * 48271) % 2147483647) % 9), at + depth * 100, 90_000 - depth * 300]);
		}
	return btrace(records, { pid: PID });
}

const flame = (id, more = '') => `/api/v1/traces/${id}/flame?view=bottom_up&format=columns${more}`;
const counts = async (s) => {
	const m = parse((await s.get('/metrics', { key: null })).text);
	return { again: value(m, 'tracewell_response_cache_hits_total'), bytes: value(m, 'tracewell_response_cache_bytes') };
};

test('an equal question is answered again, in each coding, and another is not', { timeout: 900_000 }, async (t) => {
	const s = await startServer(t);
	const { id } = await s.trace(wide(), { query: { build_id: 'b1' } });
	const packed = { headers: { 'Accept-Encoding': 'gzip' } };
	const first = await s.get(flame(id), packed);
	assert.deepEqual([first.status, first.headers.get('content-encoding')], [200, 'gzip']);
	assert.deepEqual({ ...(await counts(s)), bytes: 0 }, { again: 0, bytes: 0 });
	assert.ok((await counts(s)).bytes > 0, 'it is kept');
	const second = await s.get(flame(id), packed);
	assert.equal((await counts(s)).again, 1);
	assert.equal(second.text, first.text);
	for (const name of ['content-type', 'content-encoding', 'etag', 'vary', 'cache-control']) assert.equal(second.headers.get(name), first.headers.get(name), name);

	const plain = await s.get(flame(id));
	assert.equal(plain.headers.get('content-encoding'), null);
	assert.equal((await counts(s)).again, 1, 'in another coding it is another');
	assert.equal(plain.text, first.text);
	assert.equal((await s.get(flame(id))).text, first.text);
	assert.equal((await counts(s)).again, 2);
	assert.equal((await s.get(flame(id), { headers: { 'If-None-Match': first.headers.get('etag') } })).status, 304);

	const count = await s.get(flame(id, '&metric=count'));
	assert.notEqual(count.text, first.text);
	const all = ({ json }) => json.self.reduce((a, b) => a + b);
	assert.equal(all(await s.get(flame(id, `&thread=${PID}`))) < all(first), true);
	assert.equal((await counts(s)).again, 2);

	await s.put('/api/v1/builds/b1/methods', sampleMapping);
	const named = await s.get(flame(id));
	assert.ok(named.json.names.includes('com.example.app.Class3.method4'), named.json.names.join(' '));
	assert.equal((await counts(s)).again, 2, 'names that came later make it another');

	for (const key of [s.key('read', 'other'), null]) assert.notEqual((await s.get(flame(id), { key })).status, 200);
	assert.equal((await s.ask('DELETE', `/api/v1/traces/${id}`)).status, 204);
	assert.equal((await s.get(flame(id))).status, 404);
	assert.equal((await counts(s)).again, 2);
});

test('with the setting nothing is stored', { timeout: 900_000 }, async (t) => {
	const s = await startServer(t, { args: ['--response-cache', '0'] });
	const { id } = await s.trace(wide());
	const first = await s.get(flame(id));
	assert.equal((await s.get(flame(id))).text, first.text);
	assert.deepEqual(await counts(s), { again: 0, bytes: 0 });
});
