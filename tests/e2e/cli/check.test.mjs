/*
 * check.test.mjs - damage on disk is found, reported and repaired from intact files: by `tracewell check`
 * on a data folder, and by the server when it reads.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';

import { btrace, sampleMapping, sampleTrace } from '../make.mjs';
import { binary, startServer } from '../server.mjs';

function check(data, ...args) {
	const run = spawnSync(binary(), ['check', '--data', data, ...args], { encoding: 'utf8' });
	return { code: run.status, lines: run.stdout.split('\n').filter(Boolean), stderr: run.stderr };
}

function filesBelow(folder) {
	return fs
		.readdirSync(folder, { recursive: true, withFileTypes: true })
		.filter((e) => e.isFile())
		.map((e) => path.join(e.parentPath ?? e.path, e.name));
}

/* In place: a server may have the file mapped, and must not find it empty for a moment. */
function flip(file, at) {
	const fd = fs.openSync(file, 'r+');
	const byte = Buffer.alloc(1);
	const where = at ?? fs.fstatSync(fd).size >> 1;
	fs.readSync(fd, byte, 0, 1, where);
	byte[0] ^= 0x10;
	fs.writeSync(fd, byte, 0, 1, where);
	fs.closeSync(fd);
}

/* A server with a decoded trace and a mapping, and the path of each file. */
async function withTrace(t, trace = sampleTrace(2000)) {
	const s = await startServer(t);
	const id = (await s.post('/api/v1/traces', trace, { query: { build_id: 'b1' } })).json.id;
	await s.decoded(id);
	const blobs = filesBelow(path.join(s.data, 'blobs'));
	await s.put('/api/v1/builds/b1/methods', sampleMapping);
	const both = filesBelow(path.join(s.data, 'blobs')).filter((f) => !blobs.includes(f));
	const isText = (f) => fs.readFileSync(f, 'latin1').startsWith('#');
	return {
		s,
		id,
		upload: blobs[0],
		source: both.find(isText),
		image: both.find((f) => !isText(f)),
		decoded: filesBelow(path.join(s.data, 'traces'))[0],
	};
}

describe('tracewell check', { concurrency: 2 }, () => {
	test('finds nothing in a sound folder, while a server runs', async (t) => {
		const { s } = await withTrace(t);
		const { code, lines, stderr } = check(s.data);
		assert.deepEqual([code, lines], [0, []]);
		assert.match(stderr, /checked 1 uploads, 2 mappings and 1 decoded files, (?:read )?\d+\.\d MB: no problems found/);
	});

	test('any flipped byte of a decoded file is found, and repaired from the upload', async (t) => {
		const { s, id, decoded } = await withTrace(t);
		const whole = fs.readFileSync(decoded);
		for (const share of [0, 0.13, 0.31, 0.5, 0.77, 0.999]) {
			flip(decoded, Math.floor(whole.length * share));
			const { code, lines } = check(s.data);
			assert.equal(code, 1, `at ${share}`);
			assert.match(lines[0], new RegExp(`^wrong: the decoded file of trace ${id} is damaged; its upload is intact`));
			assert.equal(check(s.data, '--quick').code, 0); /* compares lengths only */
			fs.writeFileSync(decoded, whole);
		}
		flip(decoded);
		const { code, lines } = check(s.data, '--repair');
		assert.equal(code, 0);
		assert.match(lines[0], /^repaired: .* queued to be decoded again/);
		await s.decoded(id);
		assert.equal(check(s.data).code, 0);
	});

	test('missing and cut files are found at a glance', async (t) => {
		const { s, id, decoded, upload } = await withTrace(t);
		fs.truncateSync(decoded, 5000);
		assert.match(check(s.data, '--quick').lines[0], /decoded file .* is damaged/);
		fs.unlinkSync(decoded);
		assert.match(check(s.data, '--quick').lines[0], /decoded file .* is missing; its upload is intact/);
		fs.unlinkSync(upload);
		const { code, lines } = check(s.data, '--repair');
		assert.equal(code, 1);
		assert.match(lines[0], new RegExp(`^wrong: the upload of trace ${id} \\(part trace\\) is missing`));
		assert.match(lines[1], /cannot be decoded again/);
	});

	test('a compiled mapping is made again from its text', async (t) => {
		const { s, id, image, source } = await withTrace(t);
		const whole = fs.readFileSync(image);
		flip(image);
		assert.match(check(s.data).lines[0], /^wrong: the mapping image of build b1 is damaged; --repair/);
		assert.equal(check(s.data, '--repair').code, 0);
		assert.deepEqual(fs.readFileSync(image), whole);
		flip(source);
		const { code, lines } = check(s.data, '--repair', '--json');
		assert.equal(code, 1);
		const finding = JSON.parse(lines[0]);
		assert.deepEqual([finding.id, finding.problem, finding.repaired], ['b1', 'mapping', false]);
		await s.decoded(id);
	});

	test('a damaged catalogue is reported', async (t) => {
		const { s } = await withTrace(t);
		await s.stop();
		const file = path.join(s.data, 'catalogue.db');
		const bytes = fs.readFileSync(file);
		bytes.fill(0xa5, bytes.length - 4096 * 3, bytes.length - 4096);
		fs.writeFileSync(file, bytes);
		const { code, lines, stderr } = check(s.data);
		assert.equal(code, 1);
		assert.match(lines.join() + stderr, /malformed|wrong|missing from index|invalid page|btree/i);
	});

	test('reports a folder that is not a data folder, and creates none', () => {
		const { code, stderr } = check('/nonexistent/data');
		assert.equal(code, 1);
		assert.match(stderr, /is not a data folder of a server/);
		assert.equal(fs.existsSync('/nonexistent'), false);
		assert.equal(spawnSync(binary(), ['check', 'extra']).status, 2);
	});
});

describe('a server that meets damage', () => {
	test('decodes the trace again, and reports progress', async (t) => {
		const { s, id, decoded } = await withTrace(t);
		for (const [harm, read] of [
			[() => fs.writeFileSync(decoded, 'no database'), '/flame'],
			[() => fs.unlinkSync(decoded), '/flame'],
			[() => fs.unlinkSync(decoded), ''],
			[() => fs.truncateSync(decoded, 8192), '/flame'],
		]) {
			harm();
			const r = await s.get(`/api/v1/traces/${id}${read}`);
			assert.ok(r.status === 503 || r.status === 422 || r.status === 409, `${r.status} ${r.text}`);
			await s.decoded(id);
			assert.equal((await s.get(`/api/v1/traces/${id}/flame`)).status, 200);
			assert.equal(check(s.data).code, 0);
		}
		assert.match(s.log, /event=trace_file_damaged/);
		assert.match((await s.get('/metrics', { key: null })).text, /tracewell_trace_files_repaired_total [1-9]/);
	});

	test('notices a flipped byte in the frames it reads', async (t) => {
		/* durations that hardly compress: a small file is one frame, which nothing reads before it is checked */
		const calls = Array.from({ length: 150_000 }, (_, i) => [4000, 1 + (i % 9), 1_000_000 + i * 10_000, 1 + ((i * 7919 * i) % 9000)]);
		const { s, id, decoded } = await withTrace(t, btrace(calls, { pid: 4000 }));
		const frame = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
		const bytes = fs.readFileSync(decoded);
		const at = [];
		for (let i = bytes.indexOf(frame); i >= 0; i = bytes.indexOf(frame, i + 4)) at.push(i);
		assert.ok(at.length >= 2, 'frames of calls and of trees');
		for (const i of at) bytes[i + 40] ^= 0x01;
		fs.writeFileSync(decoded, bytes);
		const r = await s.get(`/api/v1/traces/${id}/flame?view=bottom_up`);
		assert.notEqual(r.status, 200);
		await s.decoded(id);
		assert.equal((await s.get(`/api/v1/traces/${id}/flame?view=bottom_up`)).status, 200);
	});
});
