/*
 * unread_log.test.mjs - the process that reads the log blocks or exits: the server continues, counts the
 * dropped lines and logs their number when the log is read again.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { sampleTrace } from '../make.mjs';
import { parse, value } from '../prometheus.mjs';
import { Server, atEnd, until } from '../server.mjs';

const { O_RDONLY, O_WRONLY, O_NONBLOCK } = fs.constants;

/* A server whose stderr is a named pipe that the test reads on demand. */
class Piped extends Server {
	constructor(folder) {
		const pipe = path.join(folder, 'pipe');
		execFileSync('mkfifo', [pipe]);
		super(path.join(folder, 'data'), [], {});
		this.pipe = pipe;
		this.open();
		this.stderr = fs.openSync(pipe, O_WRONLY); // also ours: the server must not change it
	}

	open() {
		this.reader = fs.openSync(this.pipe, O_RDONLY | O_NONBLOCK);
	}

	receive() {
		const piece = Buffer.alloc(1 << 16);
		for (let n = 1; n > 0; this.log += piece.toString('utf8', 0, n)) {
			try {
				n = fs.readSync(this.reader, piece);
			} catch (e) {
				if (e.code !== 'EAGAIN') throw e;
				n = 0;
			}
		}
		return this.log;
	}
}

async function start(t) {
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-e2e-'));
	const s = new Piped(folder);
	const reading = setInterval(() => s.receive(), 20);
	await s.start();
	clearInterval(reading);
	atEnd(t, async () => {
		await s.stop();
		fs.closeSync(s.stderr);
		fs.rmSync(folder, { recursive: true, force: true });
	});
	return s;
}

const lost = async (s) => value(parse((await s.get('/metrics', { key: null })).text), 'tracewell_log_lines_lost_total');

/* Asks until lines are lost. */
async function fill(s) {
	for (let i = 0; i < 3000; i++) {
		await s.get(`/api/v1/traces?limit=${1 + (i % 500)}`);
		if (i % 100 === 99 && (await lost(s)) > 0) return;
	}
	assert.fail('the pipe is not full');
}

const reported = (log) => [...log.matchAll(/event=log_lost lines=(\d+)/g)].reduce((sum, [, n]) => sum + Number(n), 0);

test('an unread pipe blocks nothing, and lost lines are reported when it is read', { timeout: 900_000 }, async (t) => {
	const s = await start(t);
	assert.equal(await lost(s), 0);
	await fill(s);
	for (let i = 0; i < 20; i++) assert.equal((await s.trace(sampleTrace(20 + i))).state, 'ready');
	const flags = parseInt(/^flags:\s(\d+)/m.exec(fs.readFileSync(`/proc/self/fdinfo/${s.stderr}`, 'utf8'))[1], 8);
	assert.equal(flags & O_NONBLOCK, 0, 'whoever else writes there still waits');
	s.receive();
	assert.equal(reported(s.log), 0);
	const were = await lost(s);
	await s.get('/api/v1/traces');
	await until(() => (reported(s.receive()) > 0 ? true : undefined), 'reported in the log');
	assert.equal(reported(s.log), were);
	for (const line of s.log.trimEnd().split('\n')) assert.match(line, /^time=\S+ level=\w+ event=/, 'whole lines only');
	assert.equal(await lost(s), were, 'and no more are lost');
});

test('a pipe without a reader does not end the server', { timeout: 900_000 }, async (t) => {
	const s = await start(t);
	fs.closeSync(s.reader);
	assert.equal((await s.trace(sampleTrace(20))).state, 'ready');
	const were = await until(async () => (await lost(s)) || undefined, 'lines lost');
	s.open();
	await s.get('/api/v1/traces');
	await until(() => (reported(s.receive()) >= were ? true : undefined), 'reported in the log');
	assert.equal((await s.stop()).code, 0);
	assert.match(s.receive(), /event=stopped/);
});
