// Loads a thread's chunks level by level: a coarse one first, so that something is seen soon.
import { decodeChunk, type Slices } from './columns';

export interface Chunk {
	chunk: number;
	level: number;
	start_ns: number;
	slices: number;
}

/** Fetches one path; throws when the answer is not a good one. */
export type Fetch = (path: string, signal: AbortSignal) => Promise<Response>;

/** An answer worth asking for again: the server is busy, or none came at all. */
export class Passing extends Error {}

const AT_ONCE = 6;
const TRIES = 4;
const WAIT_MS = 250; // before the second try; twice as long before each further one

export const SLICES_MAX = 8_000_000; // beyond that the finest level that fits is shown

/** Levels that are loaded, coarsest first; the last is the one to end with. */
export function plan(chunks: Chunk[]): Chunk[][] {
	const levels: Chunk[][] = [];
	for (const c of chunks) (levels[c.level] ??= []).push(c);
	const there = levels.filter((l) => l);
	const size = (l: Chunk[]) => l.reduce((n, c) => n + c.slices, 0);
	const fitting = there.filter((l) => size(l) <= SLICES_MAX);
	if (fitting.length === 0) return there.slice(-1);
	return fitting.length > 1 ? [fitting[fitting.length - 1], fitting[0]] : fitting;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
	return new Promise((resolve, reject) => {
		const timer = setTimeout(resolve, ms);
		signal.addEventListener('abort', () => {
			clearTimeout(timer);
			reject(signal.reason);
		}, { once: true });
	});
}

/** Asks again when the reason may pass; a TypeError is how fetch tells of a connection that broke. */
export async function persist<T>(ask: () => Promise<T>, signal: AbortSignal, waitMs = WAIT_MS): Promise<T> {
	for (let i = 1; ; i++) {
		signal.throwIfAborted();
		try {
			return await ask();
		} catch (why) {
			if (!(why instanceof Passing || why instanceof TypeError) || i === TRIES) throw why;
		}
		await pause(waitMs * 2 ** (i - 1), signal);
	}
}

/** The slices of a level's chunks, some fetched at once; `on` hears how many are there. */
export async function loadLevel(chunks: Chunk[], path: (chunk: number) => string, fetch: Fetch,
	signal: AbortSignal, on: (done: number) => void, waitMs = WAIT_MS): Promise<Slices[]> {
	const out: Slices[] = new Array(chunks.length);
	let next = 0;
	let done = 0;
	const lane = async () => {
		while (next < chunks.length) {
			const i = next++;
			const bytes = await persist(async () => (await fetch(path(chunks[i].chunk), signal)).arrayBuffer(), signal, waitMs);
			out[i] = decodeChunk(new Uint8Array(bytes), chunks[i].start_ns);
			on(++done);
		}
	};
	await Promise.all(Array.from({ length: Math.min(AT_ONCE, chunks.length) }, lane));
	return out;
}
