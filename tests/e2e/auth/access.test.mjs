/*
 * access.test.mjs - permissions: every route requested by every kind of caller.
 *
 * The needs of each route are listed here a second time, by hand, and compared with those that the routes
 * declare; a GET that is not listed must need READ. The verdicts are then compared with the running
 * server's.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { binary, routesServed, startServer, tracewell } from '../server.mjs';

const NEEDS = {
	PUBLIC: ['GET /healthz', 'GET /readyz', 'GET /metrics', 'GET /metrics/history', 'GET /api/v1/openapi.json', 'GET /api/reference', 'GET /api/reference.css', 'GET /api/v1/session', 'POST /api/v1/session',
		'DELETE /api/v1/session', 'GET /api/v1/oidc/begin', 'GET /api/v1/oidc/callback', 'GET /api/v1/tickets/{ticket}/{file}', 'GET /{*}', 'OPTIONS /api/v1/uploads', 'OPTIONS /api/v1/uploads/{upload}'],
	INGEST: ['POST /api/v1/traces', 'POST /v1development/profiles', 'PUT /api/v1/builds/{build_id}/methods', 'PUT /api/v1/builds/{build_id}/retrace', 'PUT /api/v1/builds/{build_id}/symbols', 'PUT /api/v1/builds/{build_id}/commit',
		'POST /api/v1/uploads', 'POST /api/v1/uploads/direct', 'POST /api/v1/uploads/direct/{upload}/complete', 'HEAD /api/v1/uploads/{upload}', 'PATCH /api/v1/uploads/{upload}', 'DELETE /api/v1/uploads/{upload}'],
	READ_OR_INGEST: ['GET /api/v1/traces/{id}', 'GET /api/v1/capture'],
	READ: ['POST /api/v1/traces/{id}/sql', 'POST /api/v1/traces/{id}/tickets', 'POST /api/v1/detectors/preview', 'POST /api/v1/alerts/preview'],
	WRITE: ['PUT /api/v1/anr/rules', 'PUT /api/v1/detectors', 'PUT /api/v1/regressions/rules', 'POST /api/v1/regressions/detect', 'PATCH /api/v1/regressions/{regression}', 'POST /api/v1/regressions/{regression}/ticket', 'POST /api/v1/anr/groups/{key}/ticket', 'PATCH /api/v1/inbox', 'POST /api/v1/alerts/rules', 'PATCH /api/v1/alerts/rules/{rule}', 'DELETE /api/v1/alerts/rules/{rule}', 'POST /api/v1/alerts/evaluate', 'PUT /api/v1/frames', 'PUT /api/v1/fleet/labels', 'DELETE /api/v1/traces/{id}', 'PATCH /api/v1/traces/{id}', 'POST /api/v1/traces/{id}/annotations',
		'PATCH /api/v1/traces/{id}/annotations/{annotation}', 'DELETE /api/v1/traces/{id}/annotations/{annotation}',
		'PUT /api/v1/filters/{name}', 'DELETE /api/v1/filters/{name}'],
	ADMIN: ['PUT /api/v1/tracker', 'POST /api/v1/digest', 'GET /api/v1/digest/settings', 'PUT /api/v1/digest/settings', 'GET /api/v1/webhooks', 'POST /api/v1/webhooks', 'GET /api/v1/webhooks/{hook}', 'PATCH /api/v1/webhooks/{hook}',
		'DELETE /api/v1/webhooks/{hook}', 'POST /api/v1/webhooks/{hook}/test', 'GET /api/v1/webhooks/{hook}/deliveries', 'GET /api/v1/webhooks/{hook}/deliveries/{delivery}', 'POST /api/v1/webhooks/{hook}/deliveries/{delivery}',
		'GET /api/v1/audit', 'GET /api/v1/keys', 'POST /api/v1/keys', 'POST /api/v1/keys/{id}/rotate', 'DELETE /api/v1/keys/{id}', 'GET /api/v1/members', 'PUT /api/v1/members/{name}',
		'DELETE /api/v1/members/{name}', 'PUT /api/v1/retention', 'PUT /api/v1/capture/rules', 'PUT /api/v1/source/repositories',
		'GET /api/v1/quarantine', 'GET /api/v1/quarantine/{id}/{part}', 'POST /api/v1/quarantine/{id}', 'DELETE /api/v1/quarantine/{id}'],
	SERVER: ['POST /api/v1/projects', 'DELETE /api/v1/projects/{name}', 'GET /api/v1/users', 'POST /api/v1/users', 'PUT /api/v1/users/{name}', 'DELETE /api/v1/users/{name}'],
	USER: ['DELETE /api/v1/session/all', 'PUT /api/v1/session/password', 'POST /api/v1/oidc/link'],
};

/* What each kind of caller reaches; all others are refused. */
const VIEWER = ['PUBLIC', 'READ_OR_INGEST', 'READ'];
const EDITOR = [...VIEWER, 'INGEST', 'WRITE'];
const REACH = {
	nobody: ['PUBLIC'],
	'ingest key': ['PUBLIC', 'INGEST', 'READ_OR_INGEST'],
	'read key': VIEWER,
	'write key': EDITOR,
	'admin key': [...EDITOR, 'ADMIN'],
	'session of a read key': VIEWER,
	'link session': [...EDITOR, 'ADMIN', 'SERVER'],
	'user without a role': ['PUBLIC', 'USER'],
	viewer: [...VIEWER, 'USER'],
	editor: [...EDITOR, 'USER'],
	admin: [...EDITOR, 'ADMIN', 'USER'],
	'admin of the server': [...EDITOR, 'ADMIN', 'SERVER', 'USER'],
};

const listed = Object.entries(NEEDS).flatMap(([need, list]) => list.map((r) => ({ need, method: r.split(' ')[0], path: r.split(' ')[1] })));
const served = routesServed();
const reads = served.filter((r) => r.method === 'GET' && !listed.some((x) => x.method === 'GET' && x.path === r.path)).map(({ method, path: p }) => ({ need: 'READ', method, path: p }));
const routes = [...listed, ...reads];

/* Ending a session would end the caller's. */
const ends = (r) => r.method === 'DELETE' && r.path.includes('/session');

function filled(r, values) {
	return r.path.replace(/\{([\w*]+)\}/g, (_, name) => values[name] ?? 'x');
}

test('the list here is the list of the server', () => {
	const lines = served.map((r) => `${r.needs} ${r.method} ${r.path}`);
	assert.ok(lines.length > 30);
	assert.deepEqual(lines.sort(), routes.map((r) => `${r.need} ${r.method} ${r.path}`).sort());
});

async function cookieOf(s, body) {
	const answer = await s.ask('POST', '/api/v1/session', { key: null, body: JSON.stringify(body) });
	assert.equal(answer.status, 204, answer.text);
	return answer.headers.get('set-cookie').split(';')[0];
}

const byCookie = (cookie) => ({ key: null, headers: { Cookie: cookie, 'X-Tracewell': '1' } });

/* A person with that role, signed in. */
async function person(s, project, role) {
	const name = `${role}.${project}`;
	const password = `password of ${name}`;
	execFileSync(binary(), ['user', 'create', name, '--data', s.data], { input: password });
	if (role === 'server-admin') tracewell('user', 'role', name, '--data', s.data, '--role', role);
	else if (role !== 'nothing') tracewell('user', 'role', name, '--data', s.data, '--role', role, '--project', project);
	return byCookie(await cookieOf(s, { name, password }));
}

async function callers(s, project) {
	const link = tracewell('link', 'create', '--data', s.data).split('#')[1];
	return {
		nobody: { key: null },
		'ingest key': { key: s.key('ingest', project) },
		'read key': { key: s.key('read', project) },
		'write key': { key: s.key('write', project) },
		'admin key': { key: s.key('admin', project) },
		'session of a read key': byCookie(await cookieOf(s, { token: s.key('read', project) })),
		'link session': byCookie(await cookieOf(s, { token: link })),
		'user without a role': await person(s, project, 'nothing'),
		viewer: await person(s, project, 'viewer'),
		editor: await person(s, project, 'editor'),
		admin: await person(s, project, 'admin'),
		'admin of the server': await person(s, project, 'server-admin'),
	};
}

test('every route, every kind of caller', async (t) => {
	const s = await startServer(t);
	const trace = await s.trace(sampleTrace(), { query: { build_id: 'b1' } });
	await s.put('/api/v1/builds/b1/methods', sampleMapping);
	const project = (await s.get('/api/v1/projects')).json.projects[0].id;
	const gone = '01ARZ3NDEKTSV4RRFFQ69G5FAV'; // so that nothing is really deleted
	const all = await callers(s, 'test');
	const strangers = await callers(s, 'other');

	for (const [who, as] of Object.entries(all))
		await t.test(who, async () => {
			for (const r of routes.filter((x) => !ends(x))) {
				const id = r.method === 'DELETE' ? gone : trace.id;
				const name = 'nobody.at.all';
				const a = await s.ask(r.method, filled(r, { id, name, build_id: 'b1', kind: 'csv', part: 'trace' }), as);
				const reported = `${who}: ${r.method} ${r.path} answers ${a.status} ${a.status >= 400 ? a.text : ''}`;
				if (REACH[who].includes(r.need)) {
					// signing in without credentials, and a ticket that was never made, are refused as such
					const itself = r.path.startsWith('/api/v1/tickets') || (r.method === 'POST' && r.path === '/api/v1/session');
					assert.ok(itself || (a.status !== 401 && a.status !== 403), reported);
				} else {
					assert.equal(a.status, who === 'nobody' ? 401 : 403, reported);
					if (r.method !== 'HEAD') assert.ok(a.json.error.message.length > 10, reported);
				}
			}
		});

	for (const [who, as] of Object.entries(strangers).filter(([w]) => !REACH[w].includes('SERVER')))
		await t.test(`another project's ${who} reaches nothing here`, async () => {
			for (const r of routes.filter((x) => !ends(x) && x.need !== 'PUBLIC' && x.need !== 'SERVER' && x.need !== 'USER')) {
				const a = await s.ask(r.method, filled(r, { id: trace.id, build_id: 'b1', kind: 'csv', part: 'trace' }), { ...as, query: { project } });
				assert.equal(a.status, who === 'nobody' ? 401 : 404, `${who}: ${r.method} ${r.path} answers ${a.status} ${a.text}`);
			}
			assert.equal((await s.get(`/api/v1/traces/${trace.id}`)).status, 200, 'it is still there');
		});
});
