// The second implementation of schema/columns.md: a chunk's payload, read straight to where its slices
// are kept, so that nothing is held twice.

const MAGIC = 0x31435754;
const HEADER = 48;
const OPEN = 0, STEP = 1, GAP = 2, LEAF = 3, TAIL = 4, METHOD = 5, CPU = 6, MERGED = 7;
const HAS_CPU = 1, HAS_MERGED = 2;

/** Where slices go: each to a place of its own, begun before it is ended. */
export interface Places {
	begin(at: number, start: number, method: number, merged: number): void;
	finish(at: number, end: number): void;
}

export class DamagedChunk extends Error {}

/** Reads varints of one column; numbers stay exact up to 2^53. */
class Column {
	constructor(private p: Uint8Array, private at: number, private end: number) {}

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

	private byte(): number {
		if (this.at >= this.end) throw new DamagedChunk('a column ends early');
		return this.p[this.at++];
	}
}

/** The calls that are open while a chunk is read, by depth. */
class Levels {
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

/** A chunk as it came.  startNs: its start from the directory. */
export class Payload {
	readonly n: number;
	readonly open: Float64Array; // calls that are open where it begins, outermost first: begin, duration, method
	readonly merged: boolean;
	private readonly hasCpu: boolean;
	private readonly spans: [number, number][] = []; // of the columns

	constructor(private p: Uint8Array, private readonly startNs: number) {
		if (p.length < HEADER) throw new DamagedChunk('too short');
		const view = new DataView(p.buffer, p.byteOffset, p.byteLength);
		if (view.getUint32(0, true) !== MAGIC) throw new DamagedChunk('not a chunk');
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

	/** Nothing that is open in it begins before; the outermost call is the first. */
	get earliest(): number {
		return this.open.length > 0 ? this.open[0] : this.startNs;
	}

	private column(i: number): Column {
		return new Column(this.p, ...this.spans[i]);
	}

	private readOpen(n: number): Float64Array {
		const c = this.column(OPEN);
		if (n * 3 > this.spans[OPEN][1] - this.spans[OPEN][0]) throw new DamagedChunk('a column ends early');
		return Float64Array.from({ length: n * 3 }, (_, i) => (i % 3 ? c.next() : this.startNs - c.next()));
	}

	/** Adds how many slices each depth has. */
	countDepths(into: number[]): void {
		const step = this.column(STEP);
		let depth = this.open.length / 3;
		for (let i = 0; i < this.n; i++) {
			depth -= step.next();
			if (depth < 0) throw new DamagedChunk('closes more than is open');
			into[depth] = (into[depth] ?? 0) + 1;
			depth++;
		}
	}

	/** Puts each slice to the next place of its depth: `next`, which moves on. */
	read(to: Places, next: Uint32Array): void {
		const [step, gap, leaf, tail, method, cpu, merged] = [STEP, GAP, LEAF, TAIL, METHOD, CPU, MERGED].map((i) => this.column(i));
		const levels = new Levels(this.open.length / 3, this.startNs);
		for (let i = 0; i < this.n; i++) {
			for (let k = step.next(); k > 0; k--) levels.close(leaf, tail, to);
			const at = next[levels.depth]++;
			const start = levels.from + gap.next();
			to.begin(at, start, method.next(), this.merged ? merged.next() : 0);
			if (this.hasCpu) cpu.next();
			levels.push(at, start);
		}
		while (levels.depth > 0) levels.close(leaf, tail, to);
	}

	/** Gives its memory back now; a collector that knows little of it would take its time. */
	free(): void {
		(this.p.buffer as ArrayBuffer & { transfer?: (bytes: number) => void }).transfer?.(0);
		this.p = new Uint8Array(0);
	}
}
