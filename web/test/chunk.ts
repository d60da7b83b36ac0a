// Chunks put together by hand, for the tests beside this.

export function varint(v: number): number[] {
	const out: number[] = [];
	while (v >= 128) {
		out.push((v % 128) | 128);
		v = Math.floor(v / 128);
	}
	return [...out, v];
}

/** Eight columns of numbers: open, step, gap, leaf, tail, method, cpu, merged. */
export function chunk(n: number, open: number, cols: number[][]): Uint8Array {
	const bytes = cols.map((c) => c.flatMap(varint));
	const p = new Uint8Array(48 + bytes.reduce((s, b) => s + b.length, 0));
	const v = new DataView(p.buffer);
	v.setUint32(0, 0x31435754, true);
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
