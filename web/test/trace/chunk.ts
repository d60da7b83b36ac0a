// Chunks and calls put together by hand, for the tests beside this.
import { Rows } from '../../src/trace/worker/rows';

export function varint(v: number): number[] {
	const out: number[] = [];
	while (v >= 128) {
		out.push((v % 128) | 128);
		v = Math.floor(v / 128);
	}
	return [...out, v];
}

/** Eight columns of numbers: open, bits, call, leaf, tail, gap, cpu, merged.  Durations below 16 are their own
 * buckets, without bits. */
export function chunk(n: number, open: number, cols: number[][]): Uint8Array {
	const bytes = cols.map((c) => c.flatMap(varint));
	const p = new Uint8Array(48 + bytes.reduce((s, b) => s + b.length, 0));
	const v = new DataView(p.buffer);
	v.setUint32(0, 0x32435754, true);
	v.setUint32(4, n, true);
	v.setUint32(8, open, true);
	v.setUint32(12, (cols[6].length ? 1 : 0) | (cols[7].length ? 2 : 0), true);
	let at = 48;
	bytes.forEach((b, i) => {
		v.setUint32(16 + 4 * i, b.length, true);
		p.set(b, at);
		at += b.length;
	});
	return p;
}

/** Calls as [start, dur, method, depth], in pre-order. */
export type Call = [number, number, number, number];

/** The same by row, put there without the code that reads chunks. */
export function rowsOf(calls: Call[]): Rows {
	const depth = Math.max(0, ...calls.map((c) => c[3] + 1));
	const sorted = Array.from({ length: depth }, (_, d) => calls.filter((c) => c[3] === d));
	const first = Uint32Array.from({ length: depth + 1 }, (_, d) => sorted.slice(0, d).reduce((n, r) => n + r.length, 0));
	const rows = new Rows(first, calls[0]?.[0] ?? 0, false);
	sorted.flat().forEach(([start, dur, method], k) => {
		rows.begin(k, start, method, 0);
		rows.finish(k, start + dur);
	});
	return rows;
}

/** What is in them, row by row. */
export function callsOf(r: Rows): Call[] {
	return Array.from({ length: r.depth }, (_, row) => Array.from({ length: r.first[row + 1] - r.first[row] }, (_, i): Call => {
		const k = r.first[row] + i;
		return [r.start(k), r.end(k) - r.start(k), r.method[k], row];
	})).flat();
}
