// The bytes of an answer, in memory of our own: it can be given back the moment it was read, where what
// the browser makes of an answer waits for a collector that knows little of its size.

const PIECE_BYTES = 65536;
const idle: ArrayBuffer[] = []; // pieces that travel to a stream and back, used again by the next answer

/** Bytes that come in pieces; grows where more come than were expected. */
class Gathered {
	private bytes: Uint8Array;
	private n = 0;

	constructor(expected: number) {
		this.bytes = new Uint8Array(expected);
	}

	add(piece: Uint8Array): void {
		if (this.n + piece.length > this.bytes.length) {
			const more = new Uint8Array(2 * (this.n + piece.length));
			more.set(this.bytes.subarray(0, this.n));
			this.bytes = more;
		}
		this.bytes.set(piece, this.n);
		this.n += piece.length;
	}

	all(): Uint8Array {
		return this.bytes.subarray(0, this.n);
	}
}

async function pull(reader: ReadableStreamBYOBReader, expected: number): Promise<Uint8Array> {
	const to = new Gathered(expected);
	let piece = idle.pop() ?? new ArrayBuffer(PIECE_BYTES);
	for (;;) {
		const { value, done } = await reader.read(new Uint8Array(piece));
		if (!value) throw new TypeError('the answer broke off');
		to.add(value);
		piece = value.buffer as ArrayBuffer;
		if (!done) continue;
		idle.push(piece);
		return to.all();
	}
}

/** expected: bytes that there may be; with fewer it takes longer, with more it takes room. */
export async function bytesOf(answer: Response, expected: number): Promise<Uint8Array> {
	let reader: ReadableStreamBYOBReader;
	try {
		reader = answer.body!.getReader({ mode: 'byob' });
	} catch {
		return new Uint8Array(await answer.arrayBuffer()); // a browser whose answers cannot be read so
	}
	return pull(reader, expected);
}
