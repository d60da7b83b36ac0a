/*
 * `tracewell mcp` as an assistant runs it: a child process with requests on stdin and responses on stdout, for a real server.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import readline from 'node:readline';
import { test } from 'node:test';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { atEnd, binary, startServer, until } from '../server.mjs';

class Assistant {
	constructor(t, server, key, args = []) {
		this.child = spawn(binary(), ['mcp', '--server', server, ...args], { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, TRACEWELL_KEY: key } });
		this.lines = readline.createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
		this.ended = new Promise((done) => this.child.once('exit', done));
		this.n = 0;
		atEnd(t, () => this.child.kill('SIGKILL'));
	}

	async ask(method, params) {
		const id = ++this.n;
		this.child.stdin.write(JSON.stringify({ jsonrpc: '2.0', id, method, params }) + '\n');
		const answer = JSON.parse((await this.lines.next()).value);
		assert.equal(answer.id, id);
		return answer.result ?? answer;
	}

	async call(name, args) {
		const { content, isError } = await this.ask('tools/call', { name, arguments: args });
		return isError ? content[0].text : JSON.parse(content[0].text);
	}
}

test('an assistant asks which methods are slow, and nothing but that', async (t) => {
	const s = await startServer(t, {});
	await s.put('/api/v1/builds/b/methods', sampleMapping);
	const { id } = await s.trace(sampleTrace(), { query: { build_id: 'b', version_name: '1.0', scenario: 'cold_start' } });
	const a = new Assistant(t, s.url, s.read);
	const { serverInfo, capabilities } = await a.ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } });
	assert.equal(serverInfo.name, 'tracewell');
	assert.ok(capabilities.tools);
	a.child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
	const { tools } = await a.ask('tools/list');
	const slow = tools.find((tool) => tool.name === 'slowest_methods');
	assert.ok(slow.inputSchema.properties.version_name);

	const methods = await until(async () => {
		const reported = await a.call('slowest_methods', { version_name: '1.0', limit: 3 });
		return reported.methods?.length ? reported.methods : undefined;
	}, 'counted methods');
	const same = await s.get('/api/v1/fleet/methods?version_name=1.0&limit=3');
	assert.deepEqual(methods, same.json.methods);
	const flame = await a.call('trace_flame', { id, max_nodes: 10 });
	assert.deepEqual(flame, (await s.get(`/api/v1/traces/${id}/flame?max_nodes=10`)).json);
	assert.equal((await a.call('list_traces', {})).traces[0].id, id);

	/* errors have a message, and the session continues */
	assert.match(await a.call('trace', { id: 'nobody' }), /trace/);
	assert.match(await a.call('slowest_methods', { sort: 'p95_beauty' }), /beauty/);
	assert.match(await a.call('list_traces', { colour: 'red' }), /no parameter "colour"/);
	assert.equal((await a.ask('tools/call', { name: 'delete_traces' })).error.code, -32602);
	a.child.stdin.write('x'.repeat(3 << 20) + '\n');
	assert.equal(JSON.parse((await a.lines.next()).value).error.code, -32700);
	assert.deepEqual(await a.ask('ping'), {});
	a.child.stdin.end();
	assert.equal(await a.ended, 0);
});

test('a key that may not read, and a bound for answers', async (t) => {
	const s = await startServer(t, {});
	const device = new Assistant(t, s.url, s.ingest);
	assert.match(await device.call('list_traces', {}), /scope|may/);
	const small = new Assistant(t, s.url, s.read, ['--max-response', '10']);
	assert.match(await small.call('list_traces', {}), /more than 10: narrow it/);
});
