/*
 * clients.test.mjs - the API description suits client generators: types for TypeScript (openapi-typescript,
 * called by openapi-fetch) and classes for Python (quicktype) are generated from the served description,
 * compiled, and used to query the server; a response that does not match the types fails.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { before, test } from 'node:test';

import openapiTS, { astToString } from 'openapi-typescript';
import { FetchingJSONSchemaStore, InputData, JSONSchemaInput, quicktype } from 'quicktype-core';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { root, startServer } from '../server.mjs';

/* Below tests/, where packages are found. */
const out = path.join(root, 'tests/out/clients');
const file = (name) => path.join(out, name);

function run(program, args, env = {}) {
	return new Promise((done) => execFile(program, args, { cwd: out, timeout: 240_000, maxBuffer: 1 << 26, env: { ...process.env, ...env } }, (error, stdout, stderr) =>
		done({ code: error ? error.code ?? 1 : 0, stdout, stderr })));
}

before(() => {
	fs.rmSync(out, { recursive: true, force: true });
	fs.mkdirSync(out, { recursive: true });
	fs.writeFileSync(file('package.json'), '{"type": "module"}');
	fs.writeFileSync(file('trace.bin'), sampleTrace());
	fs.writeFileSync(file('map.txt'), sampleMapping);
});

const typescript = `
import { readFileSync } from 'node:fs';
import createClient from 'openapi-fetch';
import type { components, paths } from './api.js';

const env = (name: string): string => process.env[name] ?? '';
const clientOf = (key: string) => createClient<paths>({ baseUrl: env('URL'), headers: { Authorization: 'Bearer ' + key } });
const sender = clientOf(env('INGEST'));
const reader = clientOf(env('READ'));

const asIs = (body: unknown) => body as BodyInit;
const mapped = await sender.PUT('/api/v1/builds/{build_id}/methods', { params: { path: { build_id: 'ts' }, query: { wait: 60 } }, body: readFileSync('map.txt', 'utf8') as never, bodySerializer: asIs });
const sent = await sender.POST('/api/v1/traces', { params: { query: { build_id: 'ts', scenario: 'page' } }, body: readFileSync('trace.bin') as never, bodySerializer: asIs });
const id: string = sent.data!.id;

let trace: components['schemas']['Trace'] | undefined;
do {
	trace = (await reader.GET('/api/v1/traces/{id}', { params: { path: { id } } })).data;
	await new Promise((done) => setTimeout(done, 100));
} while (trace?.state === 'queued' || trace?.state === 'decoding');

const list = await reader.GET('/api/v1/traces', { params: { query: { scenario: 'page', limit: 10, order: 'asc' } } });
const methods = await reader.GET('/api/v1/traces/{id}/methods', { params: { path: { id }, query: { limit: 100 } } });
const refused = await sender.GET('/api/v1/builds');
const unknown = await reader.GET('/api/v1/traces/{id}', { params: { path: { id: 'none' } } });

// @ts-expect-error the description knows these states and no others
const state: components['schemas']['State'] = 'eaten';
// @ts-expect-error nor this order
void reader.GET('/api/v1/traces', { params: { query: { order: 'sideways' } } });
// @ts-expect-error nor this path
void (() => reader.GET('/api/v1/tracez', {}));

console.log(JSON.stringify({
	entries: mapped.data && 'entries' in mapped.data ? mapped.data.entries : undefined, state: trace?.state, slices: trace?.summary?.slices, listed: list.data?.traces.map((t) => t.id), id, unused: state,
	names: methods.data?.methods.map((m) => m.name), refused: [refused.response.status, refused.error?.error.status], unknown: unknown.error?.error.status,
}));
`;

/* What of node the client uses, so that its whole description need not be there. */
const node = `
declare module 'node:fs' { export function readFileSync(name: string): Uint8Array; export function readFileSync(name: string, as: 'utf8'): string; }
declare const process: { env: Record<string, string | undefined> };
`;

const python = `
import json, os, sys, time, urllib.request
from urllib.error import HTTPError
import api

def ask(path, key, data=None, method="GET"):
    request = urllib.request.Request(os.environ["URL"] + path, data=data, method=method, headers={"Authorization": "Bearer " + key})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            return answer.status, json.load(answer)
    except HTTPError as e:
        return e.code, json.load(e)

def fits(kind, answer):
    """The answer as an object of the generated class, which refuses what it is not; and back."""
    made = kind.from_dict(answer)
    missing = [key for key, value in answer.items() if value is not None and key not in made.to_dict()]
    assert not missing, missing
    return made

ingest, read = os.environ["INGEST"], os.environ["READ"]
accepted = fits(api.Accepted, ask("/api/v1/traces?build_id=py&scenario=cold", ingest, open("trace.bin", "rb").read(), "POST")[1])
fits(api.MappingResult, ask("/api/v1/builds/py/methods?wait=60", ingest, open("map.txt", "rb").read(), "PUT")[1])
trace = fits(api.Trace, ask("/api/v1/traces/" + accepted.id, read)[1])
while trace.state.value in ("queued", "decoding"):
    time.sleep(0.1)
    trace = fits(api.Trace, ask("/api/v1/traces/" + accepted.id, read)[1])
page = fits(api.TracePage, ask("/api/v1/traces?scenario=cold", read)[1])
methods = fits(api.Methods, ask("/api/v1/traces/%s/methods?limit=100" % accepted.id, read)[1])
code, refused = ask("/api/v1/builds", ingest)
error = fits(api.Error, refused)
try:
    api.Trace.from_dict({"id": 5})
    sys.exit("a trace whose id is a number was taken")
except (AssertionError, KeyError, TypeError, AttributeError):
    pass
print(json.dumps({"id": accepted.id, "state": trace.state.value, "slices": trace.summary.slices, "listed": [t.id for t in page.traces],
                  "names": [m.name for m in methods.methods], "refused": [code, error.error.status.value]}))
`;

test('a client for TypeScript', async (t) => {
	const s = await startServer(t);
	const doc = (await s.get('/api/v1/openapi.json', { key: null })).json;
	fs.writeFileSync(file('api.d.ts'), astToString(await openapiTS(doc)));
	fs.writeFileSync(file('client.ts'), typescript);
	fs.writeFileSync(file('node.d.ts'), node);
	const compilerOptions = { strict: true, target: 'es2022', module: 'nodenext', moduleResolution: 'nodenext', types: [], lib: ['es2022', 'dom', 'dom.iterable'] };
	fs.writeFileSync(file('tsconfig.json'), JSON.stringify({ compilerOptions, files: ['client.ts', 'node.d.ts'] }));
	const compiled = await run('node', [path.join(root, 'tests/node_modules/typescript/bin/tsc'), '-p', '.']);
	assert.equal(compiled.code, 0, compiled.stdout);
	const asked = await run('node', ['client.js'], { URL: s.url, INGEST: s.ingest, READ: s.read });
	assert.equal(asked.code, 0, asked.stderr);
	const got = JSON.parse(asked.stdout);
	assert.deepEqual([got.entries, got.state, got.slices, got.listed, got.refused, got.unknown], [9, 'ready', 150, [got.id], [403, 'denied'], 'not_found']);
	assert.ok(got.names.includes('com.example.app.Class0.method1'), got.names.join());
});

/* quicktype reads JSON Schema: the description's schemas differ only in their location. */
const asSchema = (o) => (Array.isArray(o) ? o.map(asSchema)
	: o && typeof o === 'object' ? Object.fromEntries(Object.entries(o).map(([k, v]) => [k, k === '$ref' ? v.replace('#/components/schemas/', '#/definitions/') : asSchema(v)])) : o);

test('classes for Python', async (t) => {
	const s = await startServer(t);
	const doc = (await s.get('/api/v1/openapi.json', { key: null })).json;
	const definitions = asSchema(doc.components.schemas);
	const input = new JSONSchemaInput(new FetchingJSONSchemaStore());
	for (const name of ['Accepted', 'MappingResult', 'Trace', 'TracePage', 'Methods', 'Error'])
		await input.addSource({ name, schema: JSON.stringify({ ...definitions[name], definitions }) });
	const inputData = new InputData();
	inputData.addInput(input);
	const { lines } = await quicktype({ inputData, lang: 'python', rendererOptions: { 'python-version': '3.7' } });
	fs.writeFileSync(file('api.py'), lines.join('\n'));
	fs.writeFileSync(file('client.py'), python);
	const asked = await run('/usr/bin/python3', ['client.py'], { URL: s.url, INGEST: s.ingest, READ: s.read });
	assert.equal(asked.code, 0, asked.stderr);
	const got = JSON.parse(asked.stdout);
	assert.deepEqual([got.state, got.slices, got.listed, got.refused], ['ready', 150, [got.id], [403, 'denied']]);
	assert.ok(got.names.includes('com.example.app.Class0.method1'), got.names.join());
});
