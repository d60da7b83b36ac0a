/*
 * again.mjs - flame graph requests for a trace: times of the first request and of a repeated one, and the bytes of a
 * response of 20,000 nodes and of 10,000, the default that the page requests.
 *
 *   TRACEWELL=build-release/server/tracewell node tests/bench/server/again.mjs [FILE | RECORDS [TIMES]]
 *
 * FILE: an upload; otherwise 20 simulated threads with 400,000 calls, or RECORDS.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';

import { binary, startServer, untilEnd } from '../../e2e/server.mjs';

const INPUT = process.argv[2] ?? '400000';
const TIMES = Number(process.argv[3] ?? 9);
const FLOOR = 5;
const QUESTIONS = { 'top down': 'flame?format=columns&digits=4', 'nested': 'flame?', 'bottom up': 'flame?view=bottom_up&format=columns&digits=4', 'by calls': 'flame?metric=count&format=columns&digits=4', 'a range': 'flame?from=0&to=4000000000&format=columns&digits=4' };

const t = untilEnd();
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'tw-again-'));
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];

/* Until the last byte; nothing is unpacked here. */
function ask(s, target) {
	const began = performance.now();
	let bytes = 0;
	return new Promise((done, fail) => {
		http.get(s.url + target, { headers: { Authorization: `Bearer ${s.read}`, 'Accept-Encoding': 'gzip' } }, (answer) => {
			if (answer.statusCode !== 200) fail(new Error(`status ${answer.statusCode}`));
			answer.on('data', (piece) => (bytes += piece.length)).on('end', () => done({ ms: performance.now() - began, bytes })).on('error', fail);
		}).on('error', fail);
	});
}

function simulate(records) {
	execFileSync(path.join(path.dirname(binary()), '..', 'tests', 'tracewell-sim'), ['--out', dir, '--seed', '3', '--records', records, '--threads', '20', '--depth', '60']);
	return path.join(dir, 'rhea-atrace.bin');
}

try {
	const file = fs.existsSync(INPUT) ? INPUT : simulate(INPUT);
	const s = await startServer(t, { args: ['--response-memory', '4G', '--query-deadline', '120000'] }); // for large traces on busy machines
	const { id } = await s.trace(fs.readFileSync(file));
	for (const [name, question] of Object.entries(QUESTIONS)) {
		const target = `/api/v1/traces/${id}/${question}`;
		const cold = [];
		const warm = [];
		const { bytes } = await ask(s, `${target}&max_nodes=20000`);
		const page = (await ask(s, `${target}`)).bytes;
		for (let n = 1; n <= TIMES; n++) {
			cold.push((await ask(s, `${target}&max_nodes=${20_000 - n}`)).ms);
			warm.push((await ask(s, `${target}&max_nodes=${20_000 - n}`)).ms);
		}
		const [first, again] = [median(cold), median(warm)];
		console.log(`${name.padEnd(10)} first ${first.toFixed(1)} ms, again ${again.toFixed(1)} ms, ${(bytes / 1000).toFixed(0)} and ${(page / 1000).toFixed(0)} KB of gzip: ${(first / again).toFixed(1)} x${first / again < FLOOR ? `, below ${FLOOR} x` : ''}`);
	}
} finally {
	await t.end();
	fs.rmSync(dir, { recursive: true, force: true });
}
