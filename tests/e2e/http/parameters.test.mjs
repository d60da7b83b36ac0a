/*
 * parameters.test.mjs - every endpoint of the API refuses unknown query parameters and lists the known
 * ones: an ignored parameter would return the answer to another query, and a misspelt dry_run would apply a
 * change that was to be previewed.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startServer } from '../server.mjs';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

test('an unknown parameter is refused everywhere, with a list of the known ones', async (t) => {
	const s = await startServer(t);
	const doc = (await s.get('/api/v1/openapi.json', { key: null })).json;
	const found = (p) => (p.$ref ? doc.components.parameters[p.$ref.split('/').pop()] : p);
	let asked = 0;
	const any = [];
	for (const [path, item] of Object.entries(doc.paths))
		for (const [method, op] of Object.entries(item)) {
			if (!METHODS.includes(method) || !path.startsWith('/api/v1/')) continue;
			if (op['x-any-parameters']) {
				any.push(op.operationId);
				continue;
			}
			const known = (op.parameters ?? []).map(found).filter((p) => p.in === 'query').map((p) => p.name);
			const answer = await s.ask(method.toUpperCase(), path.replace(/\{\w+\}/g, '1'), { query: { colour: 'red' } });
			assert.equal(answer.status, 400, `${method} ${path}: ${answer.text}`);
			assert.match(answer.json.error.message, /^unknown parameter colour; the parameters are: /, `${method} ${path}`);
			assert.deepEqual([...answer.json.error.known].sort(), known.sort(), `${method} ${path}`);
			const shown = answer.json.error.message.split('are: ')[1].split(', ');
			assert.ok(shown.every((name) => name === '...' || name === 'none' || known.includes(name)), `whole names: ${shown}`);
			asked++;
		}
	assert.ok(asked > 100, `${asked}`);
	assert.deepEqual(any.sort(), ['begin_direct_upload', 'begin_upload', 'end_direct_upload', 'end_oidc', 'end_upload', 'go_on_with_upload', 'use_ticket', 'upload_trace'].sort(), 'uploads, and answers of others');
	assert.equal((await s.ask('POST', '/api/v1/traces', { query: { colour: 'red' }, key: s.ingest, body: 'x' })).status, 400, 'reads its own metadata');
	const dry = await s.ask('PUT', '/api/v1/retention', { query: { dryrun: 1 }, key: s.admin, body: '{"max_age_days":1}' });
	assert.equal(dry.status, 400, dry.text);
});
