/*
 * make.mjs - small inputs for the tests: btrace 2.0 files, zstd frames, multipart bodies.
 */

const BASE = 1_000_000_000_000n;

/* rhea-atrace.bin, version 5: records are [tid, method, start_ns, dur_ns], children first. */
export function btrace(records, { version = 5, pid = 4000 } = {}) {
	const out = Buffer.alloc(32 + 16 * records.length);
	out.writeUInt32LE(version, 0);
	out.writeUInt32LE(pid, 4);
	out.writeBigUInt64LE(BASE + 5_000_000_000n, 8);
	out.writeBigUInt64LE(BASE, 16);
	out.writeBigUInt64LE(BASE, 24);
	records.forEach(([tid, method, start, dur], i) => {
		const s = BigInt.asUintN(45, BigInt(start));
		const d = BigInt.asUintN(45, BigInt(dur));
		out.writeBigUInt64LE((s << 19n) | (d >> 26n), 32 + 16 * i);
		out.writeBigUInt64LE(((d & 0x3ffffffn) << 38n) | (BigInt(tid & 0x7fff) << 23n) | BigInt(method), 40 + 16 * i);
	});
	return out;
}

/* `calls` calls of methods 1..9 two deep on the main thread: 3 records each. */
export function sampleTrace(calls = 50, pid = 4000) {
	const records = [];
	for (let i = 0; i < calls; i++) {
		const at = 1_000_000 + i * 10_000;
		records.push([pid, 2 + (i % 4), at + 1000, 2000], [pid, 6, at + 4000, 3000], [pid, 1, at, 9000]);
	}
	return btrace(records, { pid });
}

export const sampleMapping = [
	'# 11111111-2222-3333-4444-555555555555',
	...Array.from({ length: 9 }, (_, i) => `${i + 1},1,com.example.app.Class${i} method${i + 1} ()V`),
	'',
].join('\n');

function block(type, size, last) {
	const head = Buffer.alloc(3);
	head.writeUIntLE((last ? 1 : 0) | (type << 1) | (size << 3), 0, 3);
	return head;
}

/* A valid zstd frame of stored blocks, and of runs of one byte: pieces are Buffers or {byte, n}. */
export function zstd(...pieces) {
	const out = [Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58])]; /* 2 MiB window */
	for (const piece of pieces) {
		const n = Buffer.isBuffer(piece) ? piece.length : piece.n;
		for (let at = 0; at < n; at += 131072) {
			const size = Math.min(131072, n - at);
			if (Buffer.isBuffer(piece)) out.push(block(0, size, false), piece.subarray(at, at + size));
			else out.push(block(1, size, false), Buffer.from([piece.byte]));
		}
	}
	out.push(block(0, 0, true));
	return Buffer.concat(out);
}

/* A multipart/form-data body of [name, content] pairs. */
export function form(...parts) {
	const boundary = 'e2e-boundary-7c1f';
	const out = [];
	for (const [name, content] of parts)
		out.push(
			Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"; filename="${name}"\r\n\r\n`),
			Buffer.from(content),
			Buffer.from('\r\n'),
		);
	out.push(Buffer.from(`--${boundary}--\r\n`));
	return { body: Buffer.concat(out), headers: { 'Content-Type': `multipart/form-data; boundary=${boundary}` } };
}

/* A zip of stored entries; readers that go forwards need no directory. */
export function zip(files) {
	const out = [];
	for (const [name, bytes] of Object.entries(files)) {
		const head = Buffer.alloc(30);
		head.writeUInt32LE(0x04034b50, 0);
		head.writeUInt32LE(bytes.length, 18);
		head.writeUInt32LE(bytes.length, 22);
		head.writeUInt16LE(Buffer.byteLength(name), 26);
		out.push(head, Buffer.from(name), bytes);
	}
	return Buffer.concat([...out, Buffer.from([0x50, 0x4b, 1, 2])]);
}

function varint(v) {
	const out = [];
	for (v = BigInt.asUintN(64, BigInt(v)); v > 127n; v >>= 7n) out.push(Number(v & 127n) | 128);
	return Buffer.from([...out, Number(v)]);
}
const num = (field, v) => Buffer.concat([varint(field << 3), varint(v)]);
/* A message in a message of Perfetto's. */
export const sub = (field, ...parts) => {
	const body = Buffer.concat(parts.map((p) => Buffer.from(p)));
	return Buffer.concat([varint((field << 3) | 2), varint(body.length), body]);
};

/* Frames of an app as the compositor reports them, one every 16 ms: how many ms each took, and the bits of its jank. */
export function frameTimeline(frames, boot = BASE + 5_000_000_000n) {
	const layer = sub(5, 'TX - com.acme/com.acme.Main#0');
	const at = (ms, kind, ...fields) => sub(1, num(8, boot + BigInt(ms) * 1_000_000n), num(10, 11), sub(76, sub(kind, ...fields)));
	return Buffer.concat(frames.flatMap(([ms, janks], i) => {
		const of = (cookie) => [num(1, cookie), num(2, 100 + i), num(3, 500 + i), num(4, 4000), layer];
		const [expected, actual] = [2 * i + 1, 2 * i + 2];
		return [at(16 * i, 3, ...of(expected)), at(16 * i, 4, ...of(actual), num(6, janks === 1 ? 1 : 2), num(9, janks)),
			at(16 * i + 16, 5, num(1, expected)), at(16 * i + ms, 5, num(1, actual))];
	}));
}

/* A device's own trace: snapshots of clocks at both ends, a process, a thread that runs.  mono: from btrace(). */
export function systemTrace(mono = BASE, { pid = 4000, boot = mono + 5_000_000_000n } = {}) {
	const snapshot = (t) => sub(1, num(10, 1), sub(6, sub(1, num(1, 6), num(2, boot + t)), sub(1, num(1, 3), num(2, mono + t))));
	const on = (t, from, to) => sub(2, num(1, boot + t), num(2, from), sub(4, num(2, from), num(4, 1), num(6, to)));
	const bundle = (at) => sub(1, num(10, 7), sub(1, num(1, 0), on(at, 0, pid), on(at + 90_000n, pid, 0)));
	const bundles = [];
	for (let i = 0n; i < 40n; i++) bundles.push(bundle(i * 100_000n));
	return Buffer.concat([snapshot(0n), sub(1, num(8, boot), num(10, 3), sub(2, sub(1, num(1, pid), sub(3, 'com.example.app')))),
		...bundles, snapshot(4_000_000n)]);
}
