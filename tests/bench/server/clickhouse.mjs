#!/usr/bin/env node
/*
 * clickhouse.mjs - times of questions on many traces in ClickHouse, by rows of method_times: clickhouse.mjs [ROWS...]
 *
 * Rows are made by ClickHouse itself: 100 methods a trace of 5,000, 30 days, 10 versions, 4 scenarios, 3 classes, a label of
 * 50 values, one method in ten on two kinds of thread.  Prints bytes a row and those of the columns of threads, and of each question the median of REPEATS (3): time in ms, processor time of all ClickHouse servers
 * in ms, its ratio to that of a sum of three columns of all rows, so that busy and other machines can be compared, and
 * the rows that its statements select.
 * SHARDS=2 spreads them over two servers.
 */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';

import { atEnd, freePort, root, startServer, until, untilEnd } from '../../e2e/server.mjs';

const sizes = process.argv.slice(2).map(Number);
const SHARDS = Number(process.env.SHARDS ?? 1), REPEATS = Number(process.env.REPEATS ?? 3), PER_TRACE = 100;
const t = untilEnd();
const folders = [], ports = [], pids = [];

for (let i = 0; i < SHARDS; i++) {
	folders.push(fs.mkdtempSync(path.join(os.tmpdir(), 'tw-ch-')));
	ports.push(await freePort());
}
const shards = ports.map((port) => `<shard><replica><host>127.0.0.1</host><port>${port + 1}</port></replica></shard>`).join('');
for (let i = 0; i < SHARDS; i++) {
	const child = spawn(path.join(root, 'tests/unit/on_clickhouse'), ['--serve', folders[i], String(ports[i])], { stdio: 'ignore', env: { ...process.env, CLICKHOUSE_SHARDS: shards } });
	pids.push(child.pid); /* on_clickhouse becomes the server */
	atEnd(t, () => new Promise((done) => child.once('exit', done) && child.kill('SIGKILL')).then(() => fs.rmSync(folders[i], { recursive: true, force: true })));
	await until(async () => (await fetch(`http://127.0.0.1:${ports[i]}/ping`).catch(() => undefined))?.ok || undefined, 'ClickHouse');
}

async function ask(sql, shard = 0, database = 'tw') {
	const r = await fetch(`http://127.0.0.1:${ports[shard]}/?database=${database}&insert_distributed_sync=1&max_execution_time=1800`, { method: 'POST', body: sql });
	const text = await r.text();
	if (!r.ok) throw new Error(text.slice(0, 300));
	return text.trim();
}

/* Processor time of all servers so far, in ms. */
const used = () => pids.reduce((sum, pid) => {
	const fields = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
	return sum + (Number(fields[11]) + Number(fields[12])) * 10; /* ticks of 10 ms */
}, 0);

/* Rows that queries of all servers selected so far, by marks of 8,192. */
async function selected() {
	let marks = 0;
	for (let i = 0; i < SHARDS; i++) marks += Number(await ask("SELECT sum(value) FROM system.events WHERE event = 'SelectedMarks'", i));
	return marks * 8192;
}

/* Waits for the merges of the new rows. */
const quiet = () => until(async () => {
	for (let i = 0; i < SHARDS; i++) if (Number(await ask('SELECT count() FROM system.merges', i)) > 0) return undefined;
	return true;
}, 'the merges', 3600);

/* The tables as the server makes them, and over them tables of all shards. */
async function spread() {
	for (const name of ['traces', 'method_times', 'call_trees', 'longest_calls', 'findings', 'methods']) {
		const made = await ask(`SHOW CREATE TABLE ${name} FORMAT TSVRaw`);
		for (let i = 0; i < SHARDS; i++) {
			await ask('CREATE DATABASE IF NOT EXISTS tw', i, 'default');
			if (i === 0) await ask(`RENAME TABLE ${name} TO ${name}_local`);
			else await ask(made.replace(`tw.${name}`, `tw.${name}_local`), i);
			await ask(`CREATE TABLE ${name} AS ${name}_local ENGINE = Distributed(tw, tw, ${name}_local, cityHash64(${name === 'methods' ? 'method' : 'trace'}))`, i);
		}
	}
}

const THREADS = 'threads, thread_calls, thread_total_ns, thread_self_ns, thread_sum_ns, thread_cpu_ns';
const COLUMNS = 'project, day, app, version_name, build_id, scenario, device_class, os, trace, attempt';
const DIMS = (n) => `toDate(today() - ${n} % 30) AS day, 'app', concat('8.', toString(${n} % 10)) AS v, concat('b', toString(${n} % 10)), ['cold_start','page','feed','cart'][${n} % 4 + 1], ['low','mid','high'][intDiv(${n}, 7) % 3 + 1], ['13','14'][${n} % 2 + 1], toFixedString(concat('01', leftPad(toString(${n}), 24, '0')), 26), toUInt64(${n} + 1)`.replace(/leftPad\((.*?), 24, '0'\)/, "substring(concat('000000000000000000000000', $1), -24)");

async function fill(project, from, to) {
	await ask(`INSERT INTO traces (${COLUMNS}, time, mapping_id, device, label_keys, label_values, duration_ns, tree, tree_level) SELECT '${project}', ${DIMS('number')}, now(), '', 'phone', ['flavour'], [concat('f', toString(number % 50))], toUInt64(1e8 + cityHash64(number) % 1000000000), 0, 0 FROM numbers(${from}, ${to - from})`);
	const step = 20000;
	for (let at = from; at < to; at += step)
		await ask(`INSERT INTO method_times (${COLUMNS}, method, calls, total_ns, self_ns, sum_ns, cpu_ns, ${THREADS}) SELECT '${project}', ${DIMS('n')}, m * 7919 + 1, 1 + h % 20, self * 2, self, self * 2, toInt64(self), if(two, ['main', 'pool-#-thread-#'], [['main', 'pool-#-thread-#', 'RenderThread'][m % 3 + 1]]), ${['1 + h % 20', 'self * 2', 'self', 'self * 2', 'toInt64(self)'].map((of) => `if(two, [intDiv(${of}, 2), intDiv(${of} + 1, 2)], ${of === 'toInt64(self)' ? 'emptyArrayInt64()' : 'emptyArrayUInt64()'})`).join()} FROM (SELECT intDiv(number, ${PER_TRACE}) AS n, cityHash64(number) AS h, (h % 50 + (number % ${PER_TRACE}) * 50) AS m, toUInt64(1000 + m * 100 + h % (1000 + m * 300)) AS self, h % 10 = 0 AS two FROM numbers(${at * PER_TRACE}, ${Math.min(step, to - at) * PER_TRACE}))`);
}

const s = await startServer(t, { args: ['--analytics', `clickhouse://127.0.0.1:${ports[0]}/tw`, '--query-deadline', '600000'] });
await s.get('/api/v1/fleet/scenarios'); // makes the tables
if (SHARDS > 1) await spread();
const project = /project=(01\w+)/.exec(s.log)[1];
const questions = { 'scenarios by version': 'scenarios?by=version', 'scenarios by a label': 'scenarios?by=label:flavour', 'methods of a version and scenario': 'methods?version_name=8.3&scenario=page', 'methods of all': 'methods?metrics=self', 'compare two versions': 'compare?a=8.3&b=8.4&tree=false' };
/* fetch gives up after five minutes. */
const asked = (target) => new Promise((done, failed) => http.get(s.url + target, { headers: { Authorization: `Bearer ${s.read}` } }, (answer) => answer.resume().on('end', () => done(answer.statusCode))).on('error', failed));
let from = 0;
for (const rows of sizes) {
	const to = rows / PER_TRACE, began = Date.now(), start = used();
	await fill(project, from, to);
	const filled = (to - from) * PER_TRACE / (Date.now() - began) * 1000;
	const added = (to - from) * PER_TRACE;
	from = to;
	await quiet();
	let bytes = 0, threads = 0;
	for (let i = 0; i < SHARDS; i++) {
		bytes += Number(await ask("SELECT sum(bytes) FROM system.parts WHERE active AND table LIKE 'method_times%'", i));
		threads += Number(await ask("SELECT sum(data_compressed_bytes) FROM system.columns WHERE table LIKE 'method_times%' AND name LIKE 'thread%'", i));
	}
	const median = async (fn) => {
		const runs = [];
		for (let i = 0; i < REPEATS; i++) {
			const at = performance.now(), before = used();
			const rows_before = await selected();
			await fn();
			runs.push({ ms: performance.now() - at, cpu: used() - before, rows: await selected() - rows_before });
		}
		return runs.sort((a, b) => a.cpu - b.cpu)[Math.floor(REPEATS / 2)];
	};
	const cpu = (used() - start) / 1000 / added * 1e6; /* since the last size, with merges */
	const times = Math.max(1, Math.ceil(1e7 / rows)); /* so that ticks of 10 ms do not matter */
	const many = await median(async () => { for (let i = 0; i < times; i++) await ask('SELECT sum(self_ns + total_ns + cpu_ns) FROM method_times'); });
	const scan = { ms: many.ms / times, cpu: many.cpu / times };
	console.log(`${rows} rows of ${to} traces on ${SHARDS}: ${(bytes / rows).toFixed(1)} bytes a row, ${(threads / rows).toFixed(1)} of them by thread, ${Math.round(filled)} rows/s made, ${cpu.toFixed(1)} s of processor a million rows, scan ${scan.ms.toFixed(0)} ms, processor ${scan.cpu.toFixed(1)} ms`);
	for (const [name, query] of Object.entries(questions)) {
		let status;
		const { ms, cpu: own, rows: read } = await median(async () => (status = await asked(`/api/v1/fleet/${query}`)));
		console.log(`  ${name}: ${status === 200 ? `${ms.toFixed(0)} ms, processor ${own} ms, ${(own / scan.cpu).toFixed(1)} scans, ${(read / 1e6).toFixed(1)} M rows selected` : `HTTP ${status}`}`);
	}
}
await t.end();
