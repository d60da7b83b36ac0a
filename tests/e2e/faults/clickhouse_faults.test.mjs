/*
 * clickhouse_faults.test.mjs - ClickHouse is killed, paused and cut off while traces arrive: uploads continue, the stage
 * waits and says so, and afterwards each trace is counted once; and a server that is killed between an insert and its mark.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { btrace } from '../make.mjs';
import { binary, freePort, inFull, root, sleep, startServer, until } from '../server.mjs';

const PID = 4300, MS = 1_000_000;
const program = ['/usr/sbin/clickhouse-server', '/usr/bin/clickhouse-server'].find((file) => fs.existsSync(file));
const trace = (ms) => btrace([[PID, 2, 2 * MS, ms * MS], [PID, 1, MS, (ms + 2) * MS]], { pid: PID });

/* ClickHouse behind a gate that can be closed: { up, kill, pause, resume, cut, mend, port }. */
async function startClickHouse(t) {
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tw-ch-'));
	const port = await freePort(), gate = await freePort();
	const open = new Set();
	let child, closed = false;
	const up = async () => {
		child = spawn(path.join(root, 'tests/unit/on_clickhouse'), ['--serve', folder, String(port)], { stdio: 'ignore' });
		await until(async () => (await fetch(`http://127.0.0.1:${port}/ping`).catch(() => undefined))?.ok || undefined, 'ClickHouse');
	};
	const down = (signal) => new Promise((done) => child.once('exit', done) && child.kill(signal));
	const server = net.createServer((from) => {
		const to = net.connect(port, '127.0.0.1');
		for (const [a, b] of [[from, to], [to, from]]) {
			open.add(a);
			a.on('data', (bytes) => closed || b.write(bytes)).on('error', () => b.destroy()).on('close', () => open.delete(a) && b.destroy());
		}
	}).listen(gate, '127.0.0.1');
	t.after(async () => {
		server.close();
		for (const s of open) s.destroy();
		child.kill('SIGCONT');
		await down('SIGKILL');
		fs.rmSync(folder, { recursive: true, force: true });
	});
	await up();
	return {
		at: `127.0.0.1:${gate}`, up,
		kill: () => down('SIGKILL'),
		pause: () => child.kill('SIGSTOP'),
		resume: () => child.kill('SIGCONT'),
		cut: () => (closed = true), /* nothing passes, and connections stay open */
		mend: () => { closed = false; for (const s of open) s.destroy(); },
	};
}

test('ClickHouse killed, paused and cut off under load', { skip: !program && 'ClickHouse is not installed' }, async (t) => {
	const ch = await startClickHouse(t);
	const s = await startServer(t, { args: ['--analytics', `clickhouse://${ch.at}/tw`] });
	const sent = [];
	let sending = true;
	const send = async (i) => {
		const ms = 10 + (i % 50);
		const answer = await s.post('/api/v1/traces', trace(ms), { query: { app: 'shop', scenario: 'open', version_name: `1.${i % 3}`, build_id: 'b' }, headers: { 'Idempotency-Key': `c-${i}` } });
		assert.ok(answer.status <= 202, `an upload was refused: ${answer.status} ${answer.text}`);
		sent.push({ id: answer.json.id, ms });
	};
	const load = (async () => {
		for (let i = 0; sending; i++) {
			await send(i);
			await sleep(15);
		}
	})();
	const more = async (n) => { const from = sent.length; await until(() => (sent.length >= from + n ? true : undefined), `${n} more uploads`); };
	const late = () => until(async () => {
		const { json } = await s.get('/api/v1/fleet/stages');
		const stage = json.stages.find((x) => x.stage === 'rollup');
		return stage && stage.waiting > 0 ? stage : undefined;
	}, 'the stage that waits');

	await until(async () => ((await s.get('/api/v1/fleet/scenarios?by=all')).json.traces > 5 ? true : undefined), 'the first traces');
	for (let round = 0; round < inFull(5, 1); round++) {
		await ch.kill();
		await more(10);
		await late();
		assert.equal((await s.get('/api/v1/fleet/scenarios?by=all')).status, 503, 'a question has no answer meanwhile');
		await ch.up();
		await more(5);
		ch.pause();
		await more(10);
		ch.resume();
		await more(5);
		ch.cut();
		await more(10);
		ch.mend();
		await more(5);
	}
	sending = false;
	await load;
	const counted = async () => (await s.get('/api/v1/fleet/scenarios?by=all')).json;
	await until(async () => {
		const { traces } = await counted();
		assert.ok(traces === undefined || traces <= sent.length, `${traces} counted of ${sent.length}`);
		return traces === sent.length ? true : undefined;
	}, 'all traces counted', 180);
	const { duration_ns } = (await counted()).groups[0];
	assert.equal(duration_ns.sum, sent.reduce((sum, x) => sum + (x.ms + 2) * MS, 0), 'each once');
	assert.match(s.log, /stage_late/);
	assert.match((await s.get('/metrics')).text, /tracewell_analytics_requests_total\{outcome="unanswered"\} [1-9]/);

	await t.test('made again, it is the same', async () => {
		const before = (await counted());
		await s.stop();
		await promisify(execFile)(binary(), ['rollup', '--data', s.data, '--rebuild']); /* the gate goes on */
		await s.start();
		assert.deepEqual(await counted(), before);
	});
});
