/*
 * openapi.test.mjs - the served API description, the routes and the responses agree.
 *
 * Every path and method of the description is requested: the server must know it (no 404 "no such path", no
 * 405), and every response must be one that the description allows, of its schema. In the other direction,
 * /metrics lists every requested route, so a route without a description is detected there; and `Allow` of
 * each path must be exactly the described methods.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { test } from 'node:test';

import Ajv2020 from 'ajv/dist/2020.js';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { saysAnything } from '../oidc_provider.mjs';
import { binary, startServer, until } from '../server.mjs';
import { findSlower } from '../regressed_fleet.mjs';

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

/* Is this response one that the operation describes, of its type and schema? */
function agrees(doc, validate, path, method, answer) {
	const place = `/paths/${escape(path)}/${method}/responses/${answer.status}`;
	const [described, at] = resolve(doc, place);
	assert.ok(described, `${method} ${path} answers ${answer.status}, which is not described: ${answer.text.slice(0, 300)}`);
	if (!described.content) return assert.equal(answer.bytes.length, 0, `${method} ${path}: a body`);
	const type = answer.headers.get('content-type').split(';')[0];
	assert.ok(described.content[type], `${method} ${path} ${answer.status}: type ${type}`);
	if (type === 'application/json') validate(encodeURI(`${at}/content/${escape(type)}/schema`), answer.json);
}

/* The id of a trace that looks as if decoders had died of it. */
let poisons = 0;
async function poisoned(s) {
	const { id } = await s.trace(sampleTrace(100 + poisons++));
	s.sql(`UPDATE trace SET state=3 WHERE trace_id='${id}'; INSERT INTO quarantine SELECT project_id,trace_id,'crash',11,'',1,1,2,3 FROM trace WHERE trace_id='${id}'`);
	return id;
}

test('description, routes and answers agree', async (t) => {
	const provider = await saysAnything(t);
	const s = await startServer(t, { args: ['--oidc-issuer', provider.url, '--oidc-client-id', 'tracewell', '--oidc-loopback-http'] });
	const served = await s.get('/api/v1/openapi.json', { key: null });
	assert.equal(served.status, 200);
	const doc = served.json;
	const validate = validator(doc);
	assert.match(doc.openapi, /^3\.1\./);

	const trace = await s.trace(sampleTrace(), { query: { build_id: 'b1', app: 'a' } });
	assert.equal(trace.state, 'ready', JSON.stringify(trace.error));
	await s.put('/api/v1/builds/b1/methods', sampleMapping);
	await until(async () => ((await s.get('/api/v1/fleet/method?name=com.example.app.Class0.method1')).status === 200 ? true : undefined), 'counted and named');
	await s.trace('"main" prio=5 tid=1 Blocked\n  at a.B.c(B.java:1)\n  - waiting to lock <0x01> (a a.T) held by thread 2\n\n"w" prio=5 tid=2 Runnable\n  at com.example.app.Class0.method1(D.java:3)\n  - locked <0x01> (a a.T)\n');
	const hung = await until(async () => (await s.get('/api/v1/anr/groups')).json.groups[0], 'a group of ANRs');
	const root = { name: 'root', password: 'correct horse' };
	execFileSync(binary(), ['user', 'create', root.name, '--server-admin', '--data', s.data], { input: root.password });
	const signed = await s.ask('POST', '/api/v1/session', { key: null, body: JSON.stringify(root) });
	agrees(doc, validate, '/api/v1/session', 'post', signed);
	const cookie = { Cookie: signed.headers.get('set-cookie').split(';')[0], 'X-Tracewell': '1' };

	const { chunks } = (await s.get(`/api/v1/traces/${trace.id}/slices?thread=4000`)).json;
	const ticket = await s.ask('POST', `/api/v1/traces/${trace.id}/tickets`, { body: '{"kind":"csv"}' });
	const note = await s.ask('POST', `/api/v1/traces/${trace.id}/annotations`, { key: null, headers: cookie, body: '{"text":"here","ts_ns":1}' });
	assert.equal(note.status, 201, note.text);
	const regression = (await findSlower(s, 12)).id;
	const tracker = JSON.stringify({ for: 'github', template: 'https://example.com/new?title={title}', api: 'https://tracker.invalid', repository: 'a/b', token: 't', labels: ['x'], assignees: { ann: 'ann' } });
	await s.ask('PUT', '/api/v1/tracker', { key: s.admin, body: tracker });
	for (const of of [`regressions/${regression}`, `anr/groups/${hung.key}`]) assert.equal((await s.ask('POST', `/api/v1/${of}/ticket`, { key: s.write })).status, 202);
	const hook = (await s.ask('POST', '/api/v1/webhooks', { key: s.admin, body: JSON.stringify({ url: 'https://hooks.invalid/x' }) })).json.id;
	const { delivery } = (await s.ask('POST', `/api/v1/webhooks/${hook}/test`, { key: s.admin })).json;
	const { id: rule } = (await s.ask('POST', '/api/v1/alerts/rules', { key: s.write, body: JSON.stringify({ name: 'long', kind: 'duration', threshold: 0.000001, min_traces: 1 }) })).json;
	assert.equal((await s.ask('POST', '/api/v1/alerts/evaluate', { key: s.write })).status, 200);
	const some = { rule, hook, delivery: String(delivery), annotation: note.json.id, name: 'ann', kind: 'csv', ticket: ticket.json.path.split('/').at(-2), file: 'x.csv', id: trace.id, build_id: 'b1', chunk: String(chunks[0].chunk), part: 'trace', regression, key: hung.key };
	const query = { column: 'app', name: 'com.example.app.Class0.method1', q: 'a', thread: '4000', ids: trace.id, a: trace.id, b: trace.id };
	const asked = { method: 'com.example.app.Class0.method1' };
	const queries = { slices: { thread: '4000' }, source: asked, source_blame: asked, fleet_compare: { a: `trace:${trace.id}`, b: '2' } };
	const bodies = {
		go_on_with_upload: 'piece',
		upload_trace: sampleTrace(7),
		upload_otlp_profiles: fs.readFileSync(new URL('../../golden/otlp/minimal/input', import.meta.url)),
		set_mapping: sampleMapping,
		set_retrace: 'a.B -> c:\n    void m() -> d\n',
		set_symbols: fs.readFileSync(new URL('../../fuzz/corpus/native_map/lib', import.meta.url)).subarray(1), // the first byte controls the fuzzer
		sign_in: JSON.stringify({ token: 'no such token' }),
		make_ticket: JSON.stringify({ kind: 'speedscope', query: 'threads=all' }),
		set_retention: JSON.stringify({ max_age_days: 365, max_traces: null }),
		set_source_repositories: JSON.stringify({ repositories: [{ name: 'app', packages: ['com.example.'], link: 'https://git.example.com/{commit}/{path}#L{line}', roots: ['src'], refs: ['v{version}'], clone: 'app', owners: 'CODEOWNERS', show_emails: true }] }),
		set_capture_rules: JSON.stringify({ max_age_s: 600, rules: [{ name: 'cold', scenario: 'cold_start', share: 0.5, per_day: 10, where: { os: ['14'] }, record: { max_seconds: 5 } }] }),
		set_regression_rules: JSON.stringify({ min_days: 1 }),
		make_alert_rule: JSON.stringify({ name: 'start', kind: 'duration', threshold: 800 }),
		preview_alert_rule: JSON.stringify({ kind: 'duration', threshold: 800, min_traces: 1 }),
		change_alert_rule: JSON.stringify({ threshold: 900 }),
		answer_inbox: JSON.stringify({ items: [{ kind: 'anr', id: hung.key }], owner: 'ann' }),
		trace_sql: JSON.stringify({ sql: 'SELECT name, dur_ns FROM slice', limit: 3 }),
		change_regression: JSON.stringify({ owner: 'ann' }),
		set_build_commit: JSON.stringify({ commit: '0123456789abcdef' }),
		set_tracker: tracker,
		make_webhook: JSON.stringify({ name: 'one more', url: 'https://hooks.invalid/x', kind: 'slack', events: ['digest'] }),
		change_webhook: JSON.stringify({ name: 'other', new_secret: true }),
		set_digest_settings: JSON.stringify({ every: 'weekly', hour: 7, weekday: 1, webhook: true, mail: [] }),
		set_anr_rules: JSON.stringify({ version: 0, rules: [{ action: 'merge', name: 'x', frame: '/^a/', lock: 'a.T', kind: 'lock', groups: [hung.key], enabled: false }] }),
		set_detectors: JSON.stringify({ version: 0, rules: [{ id: 'a', kind: 'own', title: 'A', methods: ['com.example'], threshold_ms: 0.001 }], frames: { slow_ms: 8 } }),
		preview_detectors: JSON.stringify({ trace: trace.id, rules: [{ id: 'a', kind: 'own', title: 'A', methods: ['com.example'], notes: ['io'], threads: 'all', threshold_ms: 0, severity: 'info', message: 'x', enabled: true }] }),
		set_fleet_labels: JSON.stringify({ labels: ['device'] }),
		set_frames: JSON.stringify({ framework: ['com.vendor'] }),
		make_project: JSON.stringify({ name: 'ann' }),
		mark_trace: JSON.stringify({ title: 'the slow one', pinned: true, tags: ['slow'] }),
		add_annotation: JSON.stringify({ text: 'here', ts_ns: 1, tid: 4000, method: 0 }),
		edit_annotation: JSON.stringify({ text: 'there' }),
		set_filter: JSON.stringify({ query: 'app=a&tag=slow' }),
		make_user: JSON.stringify({ name: 'ann', password: 'correct horse' }),
		change_user: JSON.stringify({ admin: true }),
		set_member: JSON.stringify({ role: 'viewer' }),
		set_own_password: JSON.stringify({ old: root.password, password: 'battery staple' }),
		link_oidc: JSON.stringify({ password: root.password }),
		make_key: JSON.stringify({ name: 'n', scope: 'ingest' }),
		rotate_key: JSON.stringify({ grace_s: 60 }),
		begin_direct_upload: JSON.stringify({ bytes: 9, sha256: 'a'.repeat(64), meta: { app: 'x' } }),
	};
	const tus = { 'Tus-Resumable': '1.0.0' };
	const piece = { ...tus, 'Content-Type': 'application/offset+octet-stream', 'Upload-Offset': '0' };
	const begun = await s.ask('POST', '/api/v1/uploads', { key: s.ingest, headers: { ...tus, 'Upload-Length': '9' } });
	some.upload = begun.headers.get('location').split('/').at(-1);
	const headersOf = { begin_upload: { ...tus, 'Upload-Length': '9' }, upload_offset: tus, go_on_with_upload: piece, end_upload: tus };
	const last = ['end_upload', 'delete_trace', 'remove_webhook', 'remove_alert_rule', 'remove_user', 'set_own_password', 'sign_out_everywhere', 'sign_out']; /* they end what others need */
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
			key: null, redirect: 'manual', query: { ...required(o.op), ...queries[o.op.operationId] }, body: bodies[o.op.operationId], ...extra,
			headers: { 'Accept-Encoding': 'gzip', ...headersOf[o.op.operationId], ...(extra.headers ?? cookie) },
		});

	for (const o of all.filter((x) => !last.includes(x.op.operationId)))
		await t.test(`${o.op.operationId} answers as described`, async () => {
			const good = o.path.startsWith('/api/v1/quarantine/{id}') ? { ...some, id: await poisoned(s) } : o.op.operationId === 'set_symbols' ? { ...some, build_id: 'elf:0123456789abcdef01234567' } : some;
			assert.ok(o.op.summary && o.op.operationId, 'a summary');
			if (o.path.startsWith('/api/v1/webhooks/{hook}')) await until(async () => { // a test sent before
				const sent = await s.get(`/api/v1/webhooks/${hook}/deliveries`, { key: s.admin });
				return sent.json.deliveries.some((d) => d.event === 'test' && ['waiting', 'sending'].includes(d.state)) ? undefined : true;
			}, 'no test of the webhook is under way');
			const answer = await ask(o, good);
			assert.notEqual(answer.status, 405);
			if (!/^(begin|end)_direct_upload$/.test(o.op.operationId) /* storage.test.mjs: not in a folder */ && o.op.operationId !== 'sign_in' && o.op.operationId !== 'revoke_key' && o.op.operationId !== 'rotate_key') assert.ok(answer.status < 400, answer.text);
			agrees(doc, validate, o.path, o.method, answer);
			if (o.path.includes('{id}')) agrees(doc, validate, o.path, o.method, await ask(o, { ...good, id: '01ARZ3NDEKTSV4RRFFQ69G5FAV' }));
			if (!o.op['x-any-parameters']) {
				const unknown = await ask(o, good, { query: { no_such_parameter: '1' } });
				assert.equal(unknown.status, 400, unknown.text);
				if (o.method !== 'head') assert.match(unknown.json.error.message, /unknown parameter no_such_parameter/);
				agrees(doc, validate, o.path, o.method, unknown);
			}
			if (o.op.security.length && !o.op.security.some((x) => !Object.keys(x).length)) {
				const nobody = await ask(o, good, { headers: {} });
				assert.equal(nobody.status, 401);
				agrees(doc, validate, o.path, o.method, nobody);
			}
		});

	await t.test('each path allows exactly the methods described', async () => {
		for (const [path, item] of Object.entries(doc.paths)) {
			const answer = await s.ask('PROPFIND', fill(path, some), { key: null });
			assert.equal(answer.status, 405, path);
			validate('/components/schemas/Error', answer.json);
			const allowed = answer.headers.get('allow').split(', ').filter((m) => m !== 'HEAD' || item.head).map((m) => m.toLowerCase());
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
			const answer = await ask(o, some);
			assert.equal(answer.status, 204, answer.text);
			if (o.op.operationId === 'set_own_password') cookie.Cookie = answer.headers.get('set-cookie').split(';')[0];
			agrees(doc, validate, o.path, o.method, answer);
		});
});
