// Loads a thread's chunks level by level: a coarse one first, so that something is seen soon.
import { bytesOf } from './body';
import { Payload } from './columns';

export interface Chunk {
	chunk: number;
	level: number;
	start_ns: number;
	slices: number;
}

/** The stored chunks of a thread's calls. */
export interface Directory {
	tid: number;
	slices: number;
	chunks: Chunk[];
}

/** Fetches one path; throws unless the response is 2xx. */
export type Fetch = (path: string, signal: AbortSignal) => Promise<Response>;

/** A response that is not 2xx, or none (status 0). */
export class Refused extends Error {
	constructor(message: string, readonly status = 0, readonly code = 'lost') {
		super(message);
	}
}

/** Worth a retry: the server is busy or did not respond. */
export class Passing extends Refused {}

const AT_ONCE = 6;
const TRIES = 4;
const SLICE_BYTES = 12; // of a payload; most take fewer
const WAIT_MS = 250; // before the second try; twice as long before each further one

export const WHOLE_MAX = 5_000_000; // slices that are loaded completely, of all open threads together
const PART_MAX = 700_000; // slices of the part that is loaded around the view, beyond that

/** Chunks by level, coarsest last. */
export function levelsOf(chunks: Chunk[]): Chunk[][] {
	const levels: Chunk[][] = [];
	for (const c of chunks) (levels[c.level] ??= []).push(c);
	return levels.filter((l) => l);
}

const sizeOf = (l: Chunk[]) => l.reduce((n, c) => n + c.slices, 0);

/** Levels that are loaded completely, coarsest first, if `room` slices fit: a picture appears soon, and the last level is the final one. If not every
 *  call fits, the rest is loaded in parts. */
export function plan(chunks: Chunk[], room = WHOLE_MAX): { whole: Chunk[][]; parts: boolean } {
	const there = levelsOf(chunks);
	if (there.length === 0) return { whole: [], parts: false };
	const coarse = there[there.length - 1];
	if (sizeOf(there[0]) > room) return { whole: [coarse], parts: there.length > 1 };
	return { whole: there.length > 1 ? [coarse, there[0]] : [there[0]], parts: false };
}

export interface Part {
	level: number;
	chunks: Chunk[];
	from: number; // the time range that they cover
	to: number;
}

/** The chunks of a level between two times: from the last one that begins by `from`. */
function within(level: Chunk[], from: number, to: number): [number, number] {
	let first = 0;
	while (first + 1 < level.length && level[first + 1].start_ns <= from) first++;
	let last = first;
	while (last + 1 < level.length && level[last + 1].start_ns < to) last++;
	return [first, last];
}

/** The finest level of which the view, and as much again around it, is few enough; null: the coarsest. */
export function partFor(levels: Chunk[][], from: number, to: number): Part | null {
	const wide = (to - from) / 2;
	for (const level of levels.slice(0, -1))
		for (const margin of [wide, 0]) {
			const [first, last] = within(level, from - margin, to + margin);
			const chunks = level.slice(first, last + 1);
			if (sizeOf(chunks) > PART_MAX) continue;
			return { level: chunks[0].level, chunks, from: first === 0 ? -Infinity : chunks[0].start_ns,
				to: last + 1 < level.length ? level[last + 1].start_ns : Infinity };
		}
	return null;
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

/** Retries if the reason may be temporary; fetch reports a broken connection as a TypeError. */
export async function persist<T>(attempt: () => Promise<T>, signal: AbortSignal, waitMs = WAIT_MS): Promise<T> {
	for (let i = 1; ; i++) {
		signal.throwIfAborted();
		try {
			return await attempt();
		} catch (why) {
			if (!(why instanceof Passing || why instanceof TypeError) || i === TRIES) throw why;
		}
		await pause(waitMs * 2 ** (i - 1), signal);
	}
}

/** A level's chunks, several fetched concurrently; `on` receives their number. */
export async function loadLevel(chunks: Chunk[], path: (chunk: number) => string, fetch: Fetch,
	signal: AbortSignal, on: (done: number) => void, waitMs = WAIT_MS): Promise<Payload[]> {
	const out: Payload[] = new Array(chunks.length);
	let next = 0;
	let done = 0;
	const lane = async () => {
		while (next < chunks.length) {
			const i = next++;
			const expected = chunks[i].slices * SLICE_BYTES;
			const bytes = await persist(async () => bytesOf(await fetch(path(chunks[i].chunk), signal), expected), signal, waitMs);
			out[i] = new Payload(bytes, chunks[i].start_ns);
			on(++done);
		}
	};
	await Promise.all(Array.from({ length: Math.min(AT_ONCE, chunks.length) }, lane));
	return out;
}
