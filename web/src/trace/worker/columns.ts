// The second implementation of schema/columns.md: a chunk's payload, read straight to where its slices
// are kept, so that nothing is held twice.

const MAGIC = 0x32435754, FIRST_MAGIC = 0x31435754;
const HEADER = 48;
const HAS_CPU = 1, HAS_MERGED = 2;

/** Where slices go: each to a place of its own, begun before it is ended. */
export interface Places {
	begin(at: number, start: number, method: number, merged: number): void;
	finish(at: number, end: number): void;
}

export class DamagedChunk extends Error {}

/** Reads varints of one column; numbers stay exact up to 2^53. */
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

/** The calls that are open while a chunk of the first form is read, by depth. */
class FirstLevels {
	place: number[]; // of the call; -1: open before the chunk
	cursor: number[]; // where the next child's gap counts from
	parent: boolean[]; // it has a child in the chunk
	root: number; // where the next root's gap counts from

	constructor(public depth: number, startNs: number) {
		this.place = new Array(depth).fill(-1);
		this.cursor = new Array(depth).fill(startNs);
		this.parent = new Array(depth).fill(false);
		this.root = startNs;
	}

	get from(): number {
		return this.depth > 0 ? this.cursor[this.depth - 1] : this.root;
	}

	push(place: number, start: number): void {
		if (this.depth > 0) this.parent[this.depth - 1] = true;
		this.place[this.depth] = place;
		this.cursor[this.depth] = start;
		this.parent[this.depth] = false;
		this.depth++;
	}

	close(leaf: Column, tail: Column, to: Places): void {
		const d = --this.depth;
		const at = this.place[d];
		if (at < 0) return;
		const end = this.cursor[d] + (this.parent[d] ? tail : leaf).next();
		to.finish(at, end);
		if (d > 0) this.cursor[d - 1] = end;
		else this.root = end;
	}
}

// Durations are buckets, octaves of eight steps, and the bits below a bucket's step.
const WIDE = 255; // stands for 64 bits
const BITS = Uint8Array.from({ length: 256 }, (_, b) => Math.max(0, (b >> 3) - 1));
const BASE = Float64Array.from({ length: 256 }, (_, b) => (b - BITS[b] * 8) * 2 ** BITS[b]);
const SLOTS = 4096;

/** The bits below the buckets, from the lowest of the first byte on. */
class Bits {
	private bit: number;
	private readonly end: number;

	constructor(private p: Uint8Array, at: number, end: number) {
		this.bit = at * 8;
		this.end = end * 8;
	}

	/** n: up to 25 */
	private few(n: number): number {
		const { p, bit } = this;
		const at = bit >>> 3;
		if (bit + n > this.end) throw new DamagedChunk('the bits end early');
		this.bit = bit + n;
		return ((p[at] | (p[at + 1] << 8) | (p[at + 2] << 16) | (p[at + 3] << 24)) >>> (bit & 7)) & ((1 << n) - 1);
	}

	private take(n: number): number {
		if (n <= 24) return this.few(n);
		const low = this.few(16);
		return low + this.few(n - 16) * 65536;
	}

	time(bucket: number): number {
		if (bucket !== WIDE) return BASE[bucket] + this.take(BITS[bucket]);
		const low = this.take(32);
		return low + this.take(32) * 2 ** 32;
	}
}

/** A bucket is the difference from the average of earlier ones in the same context, in 1/256. */
function bucketOf(averages: Uint16Array, slot: number, differs: number): number {
	const average = averages[slot];
	const bucket = (((average + 128) >> 8) + differs) & 255;
	averages[slot] = average ? average + (((bucket << 8) - average) >> 2) : bucket << 8;
	return bucket;
}

const gapSlot = (method: number, parent: number, first: boolean) =>
	(Math.imul(method, 0x9e3779b1) ^ Math.imul(parent, 0x85ebca77) ^ (first ? 0 : 0xc2b2ae3d)) >>> 20;
const tailSlot = (method: number, lastChild: number) => (Math.imul(method, 0x9e3779b1) ^ Math.imul(lastChild, 0x85ebca77)) >>> 20;

interface Form {
	countDepths(p: Payload, into: number[]): void;
	read(p: Payload, to: Places, next: Uint32Array): void;
}

/** step, gap, leaf, tail, method and cpu, each a column of varints. */
const FIRST: Form = {
	countDepths: (p, into) => {
		const step = p.column(1);
		count(p, into, () => step.next());
	},
	read: (p, to, next) => {
		const [step, gap, leaf, tail, method, cpu, merged] = [1, 2, 3, 4, 5, 6, 7].map((i) => p.column(i));
		const levels = new FirstLevels(p.open.length / 3, p.startNs);
		for (let i = 0; i < p.n; i++) {
			for (let k = step.next(); k > 0; k--) levels.close(leaf, tail, to);
			const at = next[levels.depth]++;
			const start = levels.from + gap.next();
			to.begin(at, start, method.next(), p.merged ? merged.next() : 0);
			if (p.hasCpu) cpu.next();
			levels.push(at, start);
		}
		while (levels.depth > 0) levels.close(leaf, tail, to);
	},
};

/** The calls that are open while a chunk is read; level 0 is the thread. */
class Levels {
	depth: number;
	readonly place: number[]; // of the call; -1: open before the chunk
	readonly cursor: number[]; // where the next child's gap counts from
	readonly method: number[];
	readonly lastChild: number[]; // its method; -1: none in the chunk
	private readonly gaps = new Uint16Array(SLOTS);
	private readonly tails = new Uint16Array(SLOTS);

	constructor(open: Float64Array, startNs: number, private readonly bits: Bits) {
		this.depth = open.length / 3;
		this.place = new Array(this.depth + 1).fill(-1);
		this.cursor = new Array(this.depth + 1).fill(startNs);
		this.method = Array.from({ length: this.depth + 1 }, (_, i) => (i ? open[3 * i - 1] : -1));
		this.lastChild = new Array(this.depth + 1).fill(-1);
	}

	close(leaf: Column, tail: Column, to: Places): void {
		const d = this.depth--;
		const at = this.place[d];
		if (at < 0) return;
		const last = this.lastChild[d];
		const bucket = last < 0 ? leaf.byte() : bucketOf(this.tails, tailSlot(this.method[d], last), tail.byte());
		const end = this.cursor[d] + this.bits.time(bucket);
		to.finish(at, end);
		this.cursor[d - 1] = end;
	}

	/** Opens a call; returns its begin. */
	push(method: number, gap: number, place: number): number {
		const d = this.depth++;
		const start = this.cursor[d] + this.bits.time(bucketOf(this.gaps, gapSlot(method, this.method[d], this.lastChild[d] < 0), gap));
		this.lastChild[d] = method;
		this.place[d + 1] = place;
		this.cursor[d + 1] = start;
		this.method[d + 1] = method;
		this.lastChild[d + 1] = -1;
		return start;
	}
}

/** Calls (how many close before, and the method), and buckets with the bits below them. */
const SECOND: Form = {
	countDepths: (p, into) => {
		const call = p.column(2);
		count(p, into, () => {
			const step = call.next();
			call.next();
			return step;
		});
	},
	read: (p, to, next) => {
		const [call, leaf, tail, gap, merged] = [2, 3, 4, 5, 7].map((i) => p.column(i));
		if (gap.left !== p.n || leaf.left + tail.left !== p.n) throw new DamagedChunk('columns do not fit');
		const levels = new Levels(p.open, p.startNs, new Bits(p.bytes, ...p.span(1)));
		for (let i = 0; i < p.n; i++) {
			for (let k = call.next(); k > 0; k--) levels.close(leaf, tail, to);
			const at = next[levels.depth]++;
			const method = call.next();
			const start = levels.push(method, gap.byte(), at);
			to.begin(at, start, method, p.merged ? merged.next() : 0);
		}
		while (levels.depth > 0) levels.close(leaf, tail, to);
	},
};

/** Adds how many slices each depth has. */
function count(p: Payload, into: number[], step: () => number): void {
	let depth = p.open.length / 3;
	for (let i = 0; i < p.n; i++) {
		depth -= step();
		if (depth < 0) throw new DamagedChunk('closes more than is open');
		into[depth] = (into[depth] ?? 0) + 1;
		depth++;
	}
}

/** A chunk as it came.  startNs: its start from the directory. */
export class Payload {
	readonly n: number;
	readonly open: Float64Array; // calls that are open where it begins, outermost first: begin, duration, method
	readonly merged: boolean;
	readonly hasCpu: boolean;
	private readonly form: Form;
	private readonly spans: [number, number][] = []; // of the columns

	constructor(private p: Uint8Array, readonly startNs: number) {
		if (p.length < HEADER) throw new DamagedChunk('too short');
		const view = new DataView(p.buffer, p.byteOffset, p.byteLength);
		const magic = view.getUint32(0, true);
		if (magic !== MAGIC && magic !== FIRST_MAGIC) throw new DamagedChunk('not a chunk');
		this.form = magic === MAGIC ? SECOND : FIRST;
		this.n = view.getUint32(4, true);
		const flags = view.getUint32(12, true);
		this.hasCpu = (flags & HAS_CPU) !== 0;
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

	countDepths(into: number[]): void {
		this.form.countDepths(this, into);
	}

	/** Puts each slice to the next place of its depth: `next`, which moves on. */
	read(to: Places, next: Uint32Array): void {
		this.form.read(this, to, next);
	}

	/** Gives its memory back now; a collector that knows little of it would take its time. */
	free(): void {
		(this.p.buffer as ArrayBuffer & { transfer?: (bytes: number) => void }).transfer?.(0);
		this.p = new Uint8Array(0);
	}
}
