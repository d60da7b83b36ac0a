// The bytes of a response in a buffer of this module, which is freed as soon as it was read; the browser's
// own buffers wait for a garbage collector that does not know their size.

const PIECE_BYTES = 65536;
const idle: ArrayBuffer[] = []; // chunks passed to a stream and back, reused by the next response

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

/** expected: estimated bytes; too few cost time, too many cost memory. */
export async function bytesOf(answer: Response, expected: number): Promise<Uint8Array> {
	let reader: ReadableStreamBYOBReader;
	try {
		reader = answer.body!.getReader({ mode: 'byob' });
	} catch {
		return new Uint8Array(await answer.arrayBuffer()); // a browser without readable byte streams
	}
	return pull(reader, expected);
}
