/*
 * openapi.test.mjs - the description that the server hands out, its routes and its answers agree.
 *
 * Every path and method of the description is asked for: the server must know it (no 404 "no such
 * path", no 405), and every answer must be one that the description allows, of its schema.  The
 * other way round, /metrics names every route that was hit, so a route that is not described is
 * found there; and `Allow` of each path must be exactly the methods described.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import Ajv2020 from 'ajv/dist/2020.js';

import { sampleMapping, sampleTrace } from './make.mjs';
import { startServer, tracewell } from './server.mjs';

function validator(doc) {
	const ajv = new Ajv2020({ strict: false, validateFormats: false });
	ajv.addSchema(doc, 'api');
	return (pointer, value) => {
		const check = ajv.getSchema(`api#${pointer}`);
		assert.ok(check, `schema at ${pointer}`);
		assert.ok(check(value), `${pointer}: ${JSON.stringify(check.errors)}\n${JSON.stringify(value).slice(0, 1500)}`);
	};
}

const escape = (s) => s.replaceAll('~', '~0').replaceAll('/', '~1');

/* Follows a $ref; gives the object and its place. */
function resolve(doc, pointer) {
	const at = pointer.slice(1).split('/').reduce((o, k) => o?.[k.replaceAll('~1', '/').replaceAll('~0', '~')], doc);
	return at?.$ref ? resolve(doc, at.$ref.slice(1)) : [at, pointer];
}

/* Is this answer one that the operation describes, of the type and schema it says? */
function agrees(doc, validate, path, method, answer) {
	const place = `/paths/${escape(path)}/${method}/responses/${answer.status}`;
	const [described, at] = resolve(doc, place);
	assert.ok(described, `${method} ${path} answers ${answer.status}, which is not described: ${answer.text.slice(0, 300)}`);
	if (!described.content) return assert.equal(answer.bytes.length, 0, `${method} ${path}: a body`);
	const type = answer.headers.get('content-type').split(';')[0];
	assert.ok(described.content[type], `${method} ${path} ${answer.status}: type ${type}`);
	if (type === 'application/json') validate(encodeURI(`${at}/content/${escape(type)}/schema`), answer.json);
}

test('description, routes and answers agree', async (t) => {
	const s = await startServer(t);
	const served = await s.get('/api/v1/openapi.json', { key: null });
	assert.equal(served.status, 200);
	const doc = served.json;
	const validate = validator(doc);
	assert.match(doc.openapi, /^3\.1\./);

	const trace = await s.trace(sampleTrace(), { query: { build_id: 'b1', app: 'a' } });
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	await s.put('/api/v1/builds/b1/methods', sampleMapping);
	const link = tracewell('link', 'create', '--data', s.data);
	const signed = await s.ask('POST', '/api/v1/session', { key: null, body: JSON.stringify({ token: link.split('#')[1] }) });
	agrees(doc, validate, '/api/v1/session', 'post', signed);
	const cookie = { Cookie: signed.headers.get('set-cookie').split(';')[0], 'X-Tracewell': '1' };

	const { chunks } = (await s.get(`/api/v1/traces/${trace.id}/slices?thread=4000`)).json;
	const ticket = await s.ask('POST', `/api/v1/traces/${trace.id}/tickets`, { body: '{"kind":"csv"}' });
	const good = { kind: 'csv', ticket: ticket.json.path.split('/').at(-2), file: 'x.csv', id: trace.id, build_id: 'b1', chunk: String(chunks[0].chunk), part: 'trace' };
	const query = { column: 'app', q: 'a', thread: '4000', ids: trace.id };
	const bodies = {
		upload_trace: sampleTrace(7),
		set_mapping: sampleMapping,
		set_retrace: 'a.B -> c:\n    void m() -> d\n',
		sign_in: JSON.stringify({ token: 'no such token' }),
		make_ticket: JSON.stringify({ kind: 'speedscope', query: 'threads=all' }),
		set_frames: JSON.stringify({ framework: ['com.vendor'] }),
		make_key: JSON.stringify({ name: 'n', scope: 'ingest' }),
	};
	const last = ['delete_trace', 'sign_out']; /* they end what others need */
	const all = Object.entries(doc.paths).flatMap(([path, item]) =>
		Object.entries(item).map(([method, op]) => ({ path, method, op })),
	);
	all.sort((a, b) => last.indexOf(a.op.operationId) - last.indexOf(b.op.operationId));

	const fill = (path, values) => path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ''));
	const required = (op) =>
		Object.fromEntries((op.parameters ?? []).map((p) => resolve(doc, p.$ref ? p.$ref.slice(1) : '')?.[0] ?? p)
			.map((p) => (p.$ref ? {} : p)).filter((p) => p.in === 'query' && p.required).map((p) => [p.name, query[p.name]]));
	const ask = (o, values, extra = {}) =>
		s.ask(o.method.toUpperCase(), fill(o.path, values), {
			key: null, headers: cookie, query: required(o.op), body: bodies[o.op.operationId], ...extra,
		});

	for (const o of all.filter((x) => !last.includes(x.op.operationId)))
		await t.test(`${o.op.operationId} answers as described`, async () => {
			assert.ok(o.op.summary && o.op.operationId, 'a summary');
			const answer = await ask(o, good);
			assert.notEqual(answer.status, 405);
			if (o.op.operationId !== 'sign_in' && o.op.operationId !== 'revoke_key') assert.ok(answer.status < 400, answer.text);
			agrees(doc, validate, o.path, o.method, answer);
			if (o.path.includes('{id}')) agrees(doc, validate, o.path, o.method, await ask(o, { ...good, id: '01ARZ3NDEKTSV4RRFFQ69G5FAV' }));
			if (o.op.security.length && !o.op.security.some((x) => !Object.keys(x).length)) {
				const nobody = await ask(o, good, { headers: {} });
				assert.equal(nobody.status, 401);
				agrees(doc, validate, o.path, o.method, nobody);
			}
		});

	await t.test('each path allows exactly the methods described', async () => {
		for (const [path, item] of Object.entries(doc.paths)) {
			const answer = await s.ask('OPTIONS', fill(path, good), { key: null });
			assert.equal(answer.status, 405, path);
			validate('/components/schemas/Error', answer.json);
			const allowed = answer.headers.get('allow').split(', ').filter((m) => m !== 'HEAD').map((m) => m.toLowerCase());
			assert.deepEqual(allowed.sort(), Object.keys(item).sort(), path);
		}
	});

	await t.test('no route is left out', async () => {
		const { text } = await s.get('/metrics', { key: null });
		const hit = new Set([...text.matchAll(/^tracewell_request_seconds_count\{method="(\w+)",route="([^"]+)"/gm)].map((m) => `${m[1].toLowerCase()} ${m[2]}`));
		hit.delete('get /{*}');
		const described = new Set(all.map((o) => `${o.method} ${o.path}`));
		for (const route of hit) assert.ok(described.has(route), `${route} is not described`);
		for (const o of all.filter((x) => !last.includes(x.op.operationId)))
			assert.ok(hit.has(`${o.method} ${o.path}`), `${o.method} ${o.path} was never reached`);
	});

	for (const o of all.filter((x) => last.includes(x.op.operationId)))
		await t.test(`${o.op.operationId} answers as described`, async () => {
			const answer = await ask(o, good);
			assert.equal(answer.status, 204);
			agrees(doc, validate, o.path, o.method, answer);
		});
});
