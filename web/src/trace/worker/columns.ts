// The second implementation of schema/columns.md: a chunk's payload, read straight to where its slices
// are kept, so that nothing is held twice.

const MAGIC = 0x32435754;
const HEADER = 48;
const HAS_MERGED = 2;

/** Receives slices: each has a separate index and begins before it ends. */
export interface Places {
	begin(at: number, start: number, method: number, merged: number): void;
	finish(at: number, end: number): void;
}

export class DamagedChunk extends Error {}

/** Reads varints of one column; numbers are exact up to 2^53. */
class Column {
	constructor(private p: Uint8Array, private at: number, readonly end: number) {}

	get left(): number {
		return this.end - this.at;
	}

	next(): number {
		let v = this.byte();
		if (v < 128) return v; // as most are
		v &= 127;
		for (let scale = 128; ; scale *= 128) {
			const b = this.byte();
			v += (b & 127) * scale;
			if (b < 128) return v;
		}
	}

	byte(): number {
		if (this.at >= this.end) throw new DamagedChunk('a column ends early');
		return this.p[this.at++];
	}
}

// Durations are buckets, octaves of eight steps, and the bits below a bucket's step.
const WIDE = 255; // the value follows in 64 bits
const BITS = Uint8Array.from({ length: 256 }, (_, b) => Math.max(0, (b >> 3) - 1));
const BASE = Float64Array.from({ length: 256 }, (_, b) => (b - BITS[b] * 8) * 2 ** BITS[b]);
const SLOTS = 4096;

/** A bucket is the difference from the average of earlier ones in the same context, in 1/256. */
function bucketOf(averages: Uint16Array, slot: number, differs: number): number {
	const average = averages[slot];
	const bucket = (((average + 128) >> 8) + differs) & 255;
	averages[slot] = average ? average + (((bucket << 8) - average) >> 2) : bucket << 8;
	return bucket;
}

/** Reads the slices of a chunk; level 0 is the thread. */
class Reader {
	private readonly p: Uint8Array;
	private call: number; // positions in the columns
	private readonly callEnd: number;
	private leaf: number;
	private tail: number;
	private gap: number;
	private bit: number;
	private readonly endBit: number;
	private depth: number;
	// by level
	private readonly place: number[] = []; // of the call; -1: open before the chunk
	private readonly cursor: number[] = []; // where the next child's gap counts from
	private readonly method: number[] = []; // parts of the contexts' hashes
	private readonly lastChild: number[] = [];
	private readonly forChild: number[] = []; // the next one
	private readonly forLater: number[] = []; // all after a first one
	private readonly gaps = new Uint16Array(SLOTS);
	private readonly tails = new Uint16Array(SLOTS);

	constructor(private readonly payload: Payload) {
		const [bits, call, leaf, tail, gap] = [1, 2, 3, 4, 5].map((c) => payload.span(c));
		const { n, open, startNs } = payload;
		// so no read of a bucket is past the columns
		if (gap[1] - gap[0] !== n || leaf[1] - leaf[0] + tail[1] - tail[0] !== n) throw new DamagedChunk('columns do not fit');
		this.p = payload.bytes;
		[this.call, this.callEnd] = call;
		[this.leaf, this.tail, this.gap] = [leaf[0], tail[0], gap[0]];
		[this.bit, this.endBit] = [bits[0] * 8, bits[1] * 8];
		this.depth = open.length / 3;
		for (let i = 0; i <= this.depth; i++) this.set(i, -1, startNs, i ? open[3 * i - 1] : -1);
	}

	private set(level: number, place: number, cursor: number, method: number): void {
		const other = Math.imul(method, 0x85ebca77);
		this.place[level] = place;
		this.cursor[level] = cursor;
		this.method[level] = Math.imul(method, 0x9e3779b1);
		this.lastChild[level] = 0;
		this.forChild[level] = other;
		this.forLater[level] = other ^ 0xc2b2ae3d;
	}

	private varint(): number {
		let v = 0;
		for (let scale = 1; ; scale *= 128) {
			if (this.call >= this.callEnd) throw new DamagedChunk('a column ends early');
			const b = this.p[this.call++];
			v += (b & 127) * scale;
			if (b < 128) return v;
		}
	}

	/** n: up to 24; past the end they are some bits. */
	private bits(n: number): number {
		const p = this.p;
		const at = this.bit >>> 3;
		const v = ((p[at] | (p[at + 1] << 8) | (p[at + 2] << 16) | (p[at + 3] << 24)) >>> (this.bit & 7)) & ((1 << n) - 1);
		this.bit += n;
		return v;
	}

	private manyBits(n: number): number {
		const low = this.bits(16);
		return low + this.bits(n - 16) * 65536;
	}

	private time(bucket: number): number {
		const n = BITS[bucket];
		if (n <= 24) return BASE[bucket] + this.bits(n);
		if (bucket !== WIDE) return BASE[bucket] + this.manyBits(n);
		const low = this.manyBits(32);
		return low + this.manyBits(32) * 2 ** 32;
	}

	/** The last slice, when the next one is not below it. */
	private closeLeaf(to: Places): void {
		const d = this.depth--;
		const end = this.cursor[d] + this.time(this.p[this.leaf++]);
		to.finish(this.place[d], end);
		this.cursor[d - 1] = end;
	}

	/** A call with a child in the chunk, or one that was open before. */
	private closeParent(to: Places): void {
		const d = this.depth--;
		if (this.place[d] < 0) return;
		const end = this.cursor[d] + this.time(bucketOf(this.tails, (this.method[d] ^ this.lastChild[d]) >>> 20, this.p[this.tail++]));
		to.finish(this.place[d], end);
		this.cursor[d - 1] = end;
	}

	read(to: Places, next: Uint32Array): void {
		const { n, merged } = this.payload;
		const counts = merged ? this.payload.column(7) : null;
		for (let i = 0; i < n; i++) {
			let step = this.varint();
			if (step > (i > 0 ? this.depth : 0)) throw new DamagedChunk('closes more than is open');
			const method = this.varint();
			if (step > 0) {
				this.closeLeaf(to);
				for (step--; step > 0; step--) this.closeParent(to);
			}
			const d = this.depth;
			const start = this.cursor[d] + this.time(bucketOf(this.gaps, (Math.imul(method, 0x9e3779b1) ^ this.forChild[d]) >>> 20, this.p[this.gap++]));
			const at = next[d]++;
			to.begin(at, start, method, counts ? counts.next() : 0);
			this.forChild[d] = this.forLater[d];
			this.lastChild[d] = Math.imul(method, 0x85ebca77);
			this.set(++this.depth, at, start, method);
		}
		if (n > 0) this.closeLeaf(to);
		while (this.depth > 0) this.closeParent(to);
		if (this.bit > this.endBit) throw new DamagedChunk('the bits end early');
	}
}

/** A chunk as it came.  startNs: its start from the directory. */
export class Payload {
	readonly n: number;
	readonly open: Float64Array; // calls that are open where it begins, outermost first: begin, duration, method
	readonly merged: boolean;
	private readonly spans: [number, number][] = []; // of the columns

	constructor(private p: Uint8Array, readonly startNs: number) {
		if (p.length < HEADER) throw new DamagedChunk('too short');
		const view = new DataView(p.buffer, p.byteOffset, p.byteLength);
		if (view.getUint32(0, true) !== MAGIC) throw new DamagedChunk('not a chunk');
		this.n = view.getUint32(4, true);
		const flags = view.getUint32(12, true);
		this.merged = (flags & HAS_MERGED) !== 0;
		let at = HEADER;
		for (let i = 0; i < 8; i++) {
			const end = at + view.getUint32(16 + 4 * i, true);
			if (end > p.length) throw new DamagedChunk('columns do not fit');
			this.spans.push([at, end]);
			at = end;
		}
		this.open = this.readOpen(view.getUint32(8, true));
	}

	get bytes(): Uint8Array {
		return this.p;
	}

	/** Nothing that is open in it begins before; the outermost call is the first. */
	get earliest(): number {
		return this.open.length > 0 ? this.open[0] : this.startNs;
	}

	span(i: number): [number, number] {
		return this.spans[i];
	}

	column(i: number): Column {
		return new Column(this.p, ...this.spans[i]);
	}

	private readOpen(n: number): Float64Array {
		const c = this.column(0);
		if (n * 3 > c.left) throw new DamagedChunk('a column ends early');
		return Float64Array.from({ length: n * 3 }, (_, i) => (i % 3 ? c.next() : this.startNs - c.next()));
	}

	/** Adds how many slices each depth has. */
	countDepths(into: number[]): void {
		const call = this.column(2);
		let depth = this.open.length / 3;
		for (let i = 0; i < this.n; i++) {
			depth -= call.next();
			if (depth < 0) throw new DamagedChunk('closes more than is open');
			into[depth] = (into[depth] ?? 0) + 1;
			depth++;
			call.next(); // the method
		}
	}

	/** Puts each slice to the next place of its depth: `next`, which moves on. */
	read(to: Places, next: Uint32Array): void {
		new Reader(this).read(to, next);
	}

	/** Frees its memory immediately, which the garbage collector would free late. */
	free(): void {
		(this.p.buffer as ArrayBuffer & { transfer?: (bytes: number) => void }).transfer?.(0);
		this.p = new Uint8Array(0);
	}
}
