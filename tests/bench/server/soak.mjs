/*
 * soak.mjs - the server under a steady load for minutes: do memory and descriptors grow?
 *
 *   tests/bench/soak [--minutes 30] [--share 0.8] [--capacity-seconds 20]
 *
 * First, clients that send, wait until the trace is decoded, read its flame graph and repeat this
 * measure the machine's capacity.  Then `share` of it is sent at fixed times, as plain and resumable
 * uploads, while a rule of the project deletes all but the newest 300 traces.  Prints a line per half
 * minute, the use at the start, in the middle and at the end, and a verdict: the peak of the last third
 * compared with the second third.  The exit status is the verdict.
 */

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { sampleTrace } from '../../e2e/make.mjs';
import { Server, binary, sleep } from '../../e2e/server.mjs';

const option = (name, dflt) => {
	const at = process.argv.indexOf(`--${name}`);
	return at < 0 ? dflt : Number(process.argv[at + 1]);
};
const minutes = option('minutes', 30);
const share = option('share', 0.8);
const CLIENTS = 8;
const SAMPLE_MS = 1000;
const LINE_S = 30;
const SLACK_MIB = 12;
const SLACK_FDS = 16;

const bodies = Array.from({ length: 64 }, (_, i) => sampleTrace(100 + 50 * (i % 20), i + 1));
const data = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-soak-'));
const s = new Server(data, ['--retention-every', '5']);

async function start() {
	await s.start();
	s.child.stdout.removeAllListeners('data').resume();
	s.child.stderr.removeAllListeners('data').resume();
}

let sent = 0;
const counts = { accepted: 0, refused: 0, failed: 0, read: 0 };

async function upload(n) {
	const body = bodies[n % bodies.length];
	if (n % 4) {
		const answer = await s.post('/api/v1/traces', body, { query: { build_id: 'soak', device: `device-${n % 5000}` } });
		return { status: answer.status, id: answer.json?.id };
	}
	const answer = await s.ask('POST', '/api/v1/uploads', { key: s.ingest, body, headers: { 'Tus-Resumable': '1.0.0',
		'Upload-Length': String(body.length), 'Content-Type': 'application/offset+octet-stream' } });
	return { status: answer.status, id: answer.headers.get('tracewell-trace') };
}

async function one(n) {
	const { status, id } = await upload(n).catch(() => ({ status: 0 }));
	if (status === 202 || status === 201) counts.accepted++;
	else if (status === 503 || status === 429) counts.refused++;
	else counts.failed++;
	return id;
}

async function decoded(id) {
	for (;;) {
		const { json } = await s.get(`/api/v1/traces/${id}`);
		if (json?.state !== 'queued' && json?.state !== 'decoding') return;
		await sleep(20);
	}
}

async function look(id) {
	const answer = await s.get(`/api/v1/traces/${id}/flame`).catch(() => undefined);
	if (answer?.status === 200) counts.read++;
}

/* Traces a second of clients that wait for each. */
async function capacity(seconds) {
	const end = Date.now() + seconds * 1000;
	const began = Date.now();
	let done = 0;
	await Promise.all(Array.from({ length: CLIENTS }, async () => {
		while (Date.now() < end) {
			const id = await one(sent++);
			if (!id) continue;
			await decoded(id);
			await look(id);
			done++;
		}
	}));
	return (done * 1000) / (Date.now() - began);
}

const fds = () => fs.readdirSync(`/proc/${s.child.pid}/fd`).length;
const metric = (text, name) => Number(new RegExp(`^${name} ([0-9.]+)$`, 'm').exec(text)?.[1] ?? NaN);
const max = (list) => Math.max(...list);
const samples = [];

async function steady(rate) {
	const began = Date.now();
	const end = began + minutes * 60000;
	let due = 0;
	let line = LINE_S;
	let next = 0;
	let recent;
	console.log('  minute  resident MiB  descriptors  queued  accepted  refused  failed  read');
	while (Date.now() < end) {
		const passed = (Date.now() - began) / 1000;
		for (; due < passed * rate; due++)
			void one(sent++).then((id) => (recent = id ?? recent));
		if (due % 10 === 0 && recent) void look(recent);
		if (passed >= next) {
			samples.push({ at: passed, mib: s.resident(), fds: fds() });
			next += SAMPLE_MS / 1000;
		}
		if (passed >= line) {
			const text = (await s.get('/metrics', { key: null })).text;
			const last = samples.slice(-LINE_S);
			console.log([(line / 60).toFixed(1), max(last.map((x) => x.mib)).toFixed(1), max(last.map((x) => x.fds)),
				metric(text, 'tracewell_queue_traces'), counts.accepted, counts.refused, counts.failed, counts.read]
				.map((v, i) => String(v).padStart([8, 14, 13, 8, 10, 9, 8, 6][i])).join(''));
			line += LINE_S;
		}
		await sleep(20);
	}
}

function verdict() {
	const third = Math.floor(samples.length / 3);
	const before = samples.slice(third, 2 * third);
	const after = samples.slice(-third);
	const grown = max(after.map((x) => x.mib)) - max(before.map((x) => x.mib));
	const opened = max(after.map((x) => x.fds)) - max(before.map((x) => x.fds));
	const flat = grown <= SLACK_MIB && opened <= SLACK_FDS && counts.failed === 0;
	const at = (i) => `${samples[i].mib.toFixed(1)} MiB and ${samples[i].fds} descriptors`;
	console.log(`${at(0)} at the start, ${at(samples.length >> 1)} in the middle, ${at(samples.length - 1)} at the end`);
	console.log(`memory ${grown >= 0 ? '+' : ''}${grown.toFixed(1)} MiB, descriptors ${opened >= 0 ? '+' : ''}${opened}, last third against second; ` +
		`${counts.failed} requests failed, ${counts.refused} were asked to retry later: ${flat ? 'FLAT' : 'NOT FLAT'}`);
	return flat;
}

let flat = false;
try {
	await start();
	void s.ingest;
	void s.read;
	const rule = await s.ask('PUT', '/api/v1/retention', { key: s.admin, body: JSON.stringify({ max_traces: 300 }) });
	if (rule.status !== 200) throw new Error(`retention: ${rule.status} ${rule.text}`);
	const most = await capacity(option('capacity-seconds', 20));
	console.log(`${binary()}\n${most.toFixed(1)} traces a second at most; ${minutes} minutes at ${Math.round(share * 100)} % of that, ` +
		`${(most * share).toFixed(1)} a second, load average ${os.loadavg()[0].toFixed(1)} on ${os.cpus().length} processors`);
	await steady(most * share);
	flat = verdict();
} finally {
	await s.stop();
	fs.rmSync(data, { recursive: true, force: true });
}
process.exit(flat ? 0 : 1);
