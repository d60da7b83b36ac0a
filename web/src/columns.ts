// The second implementation of schema/columns.md: a chunk's payload to slices in pre-order.

const MAGIC = 0x31435754;
const HEADER = 48;
const OPEN = 0, STEP = 1, GAP = 2, LEAF = 3, TAIL = 4, METHOD = 5, CPU = 6, MERGED = 7;

export interface Slices {
	n: number;
	start: Float64Array;
	dur: Float64Array;
	method: Uint32Array;
	depth: Uint16Array;
	merged: Uint32Array | null;
	open: Float64Array; // calls that are open where it begins, outermost first: begin, duration, method
}

export class DamagedChunk extends Error {}

/** Reads varints of one column; numbers stay exact up to 2^53. */
class Column {
	constructor(private p: Uint8Array, private at: number, private end: number) {}

	next(): number {
		let v = 0;
		let scale = 1;
		for (;;) {
			if (this.at >= this.end) throw new DamagedChunk('a column ends early');
			const b = this.p[this.at++];
			v += (b & 127) * scale;
			if (b < 128) return v;
			scale *= 128;
		}
	}
}

function columns(p: Uint8Array, view: DataView): Column[] {
	let at = HEADER;
	return Array.from({ length: 8 }, (_, i) => {
		const bytes = view.getUint32(16 + 4 * i, true);
		if (at + bytes > p.length) throw new DamagedChunk('columns do not fit');
		at += bytes;
		return new Column(p, at - bytes, at);
	});
}

/** startNs: the chunk's start from the directory. */
export function decodeChunk(p: Uint8Array, startNs: number): Slices {
	if (p.length < HEADER) throw new DamagedChunk('too short');
	const view = new DataView(p.buffer, p.byteOffset, p.byteLength);
	if (view.getUint32(0, true) !== MAGIC) throw new DamagedChunk('not a chunk');
	const n = view.getUint32(4, true);
	const nOpen = view.getUint32(8, true);
	const flags = view.getUint32(12, true);
	const c = columns(p, view);
	const open = new Float64Array(nOpen * 3);
	for (let i = 0; i < open.length; i++) open[i] = i % 3 ? c[OPEN].next() : startNs - c[OPEN].next();
	const out: Slices = {
		n, start: new Float64Array(n), dur: new Float64Array(n), method: new Uint32Array(n),
		depth: new Uint16Array(n), merged: flags & 2 ? new Uint32Array(n) : null, open,
	};
	// per level: index in the chunk (-1: open before it), where the next child's gap counts from,
	// and whether it has a child here
	const index: number[] = new Array(nOpen).fill(-1);
	const cursor: number[] = new Array(nOpen).fill(startNs);
	const parent: boolean[] = new Array(nOpen).fill(false);
	let depth = nOpen;
	let rootCursor = startNs;

	const close = () => {
		depth--;
		const i = index[depth];
		if (i < 0) return;
		const end = cursor[depth] + (parent[depth] ? c[TAIL] : c[LEAF]).next();
		out.dur[i] = end - out.start[i];
		if (depth > 0) cursor[depth - 1] = end;
		else rootCursor = end;
	};

	for (let i = 0; i < n; i++) {
		const step = c[STEP].next();
		if (step > depth) throw new DamagedChunk('closes more than is open');
		for (let k = 0; k < step; k++) close();
		const from = depth > 0 ? cursor[depth - 1] : rootCursor;
		const start = from + c[GAP].next();
		out.start[i] = start;
		out.method[i] = c[METHOD].next();
		out.depth[i] = depth;
		if (flags & 1) c[CPU].next();
		if (out.merged) out.merged[i] = c[MERGED].next();
		if (depth > 0) parent[depth - 1] = true;
		index[depth] = i;
		cursor[depth] = start;
		parent[depth] = false;
		depth++;
	}
	while (depth > 0) close();
	return out;
}
