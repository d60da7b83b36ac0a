// Owns the slices of the thread that is shown: fetches and decodes its chunks, paints views of them.
import { decodeChunk, type Slices } from './columns';
import type { FromWorker, Hit, ToWorker } from './messages';
import { paint, type Look } from './paint';
import { firstEndingAfter, sliceAt, toRows, type Rows } from './rows';

interface Chunk {
	chunk: number;
	level: number;
	start_ns: number;
	slices: number;
	bytes: number;
}

const AT_ONCE = 6;
const SLICES_MAX = 8_000_000; // beyond that the finest level that fits is shown
const VISIBLE_MAX = 200;

let rows: Rows | null = null;
let look: Look | null = null;
let current = 0; // the load whose slices are wanted

function say(m: FromWorker, transfer: Transferable[] = []): void {
	(self as unknown as Worker).postMessage(m, transfer);
}

async function get(path: string): Promise<Response> {
	const r = await fetch(path);
	if (!r.ok) {
		const body = await r.json().catch(() => null);
		throw new Error(body?.error?.message ?? `the server answered ${r.status}`);
	}
	return r;
}

/** Levels of the directory that can be shown, coarsest first; the last is the one to end with. */
export function plan(chunks: Chunk[]): Chunk[][] {
	const levels: Chunk[][] = [];
	for (const c of chunks) (levels[c.level] ??= []).push(c);
	const size = (l: Chunk[]) => l.reduce((n, c) => n + c.slices, 0);
	const fitting = levels.filter((l) => l && size(l) <= SLICES_MAX);
	if (fitting.length === 0) return levels.length ? [levels[levels.length - 1]] : [];
	return fitting.length > 1 ? [fitting[fitting.length - 1], fitting[0]] : [fitting[0]];
}

async function loadLevel(base: string, query: string, chunks: Chunk[], on: (done: number) => void): Promise<Slices[]> {
	const out: Slices[] = new Array(chunks.length);
	let next = 0;
	let done = 0;
	const lane = async () => {
		while (next < chunks.length) {
			const i = next++;
			const r = await get(`${base}/${chunks[i].chunk}${query}`);
			out[i] = decodeChunk(new Uint8Array(await r.arrayBuffer()), chunks[i].start_ns);
			on(++done);
		}
	};
	await Promise.all(Array.from({ length: Math.min(AT_ONCE, chunks.length) }, lane));
	return out;
}

async function load(id: number, trace: string, project: string, tid: number): Promise<void> {
	const base = `/api/v1/traces/${trace}/slices`;
	const query = project ? `?project=${project}` : '';
	const directory = await (await get(`${base}?thread=${tid}${project ? `&project=${project}` : ''}`)).json();
	const levels = plan(directory.chunks as Chunk[]);
	const total = levels.reduce((n, l) => n + l.length, 0);
	let before = 0;
	for (let i = 0; i < levels.length; i++) {
		const slices = await loadLevel(base, query, levels[i], (done) => {
			if (id === current)
				say({ kind: 'progress', id, loaded: before + done, total, slices: 0, complete: false, rows: rows?.depth ?? 0 });
		});
		if (id !== current) return;
		before += levels[i].length;
		rows = toRows(slices);
		say({ kind: 'progress', id, loaded: before, total, slices: rows.n, complete: i === levels.length - 1, rows: directory.max_depth });
	}
	if (levels.length === 0) say({ kind: 'progress', id, loaded: 0, total: 0, slices: 0, complete: true, rows: 0 });
}

function hitOf(r: Rows, k: number, depth: number): Hit {
	return { method: r.method[k], start: r.start[k], end: r.end[k], depth, merged: r.merged ? r.merged[k] : 0 };
}

/** The longest calls of the first rows between two times. */
function visible(from: number, to: number): Hit[] {
	const calls: Hit[] = [];
	for (let row = 0; rows && row < rows.depth && calls.length < VISIBLE_MAX * 20; row++) {
		const hi = rows.first[row + 1];
		let k = firstEndingAfter(rows.end, rows.first[row], hi, from);
		for (let n = 0; k < hi && rows.start[k] < to && n < VISIBLE_MAX; k++, n++) calls.push(hitOf(rows, k, row));
	}
	calls.sort((a, b) => b.end - b.start - (a.end - a.start));
	return calls.slice(0, VISIBLE_MAX).sort((a, b) => a.start - b.start || a.depth - b.depth);
}

/** The next or previous call that the search lights up, in time order. */
function next(after: number, row: number, forward: boolean): Hit | null {
	let best: Hit | null = null;
	const m = look?.matches;
	if (!rows || !m) return null;
	for (let r = 0; r < rows.depth; r++) {
		const lo = rows.first[r];
		const hi = rows.first[r + 1];
		let k = firstEndingAfter(rows.start, lo, hi, after);
		if (!forward) k--;
		while (k >= lo && k < hi) {
			const same = rows.start[k] === after && (forward ? r <= row : r >= row);
			if (m[rows.method[k]] && !same) break;
			k += forward ? 1 : -1;
		}
		if (k < lo || k >= hi) continue;
		const better = !best || (forward ? rows.start[k] < best.start : rows.start[k] > best.start);
		if (better) best = hitOf(rows, k, r);
	}
	return best;
}

self.onmessage = (e: MessageEvent<ToWorker>) => {
	const m = e.data;
	switch (m.kind) {
	case 'load':
		current = m.id;
		rows = null;
		load(m.id, m.trace, m.project, m.tid).catch((why: Error) => {
			if (m.id === current) say({ kind: 'failed', id: m.id, message: why.message });
		});
		break;
	case 'look':
		look = m.look;
		break;
	case 'paint': {
		const px = new Uint32Array(m.buffer);
		const labels = rows && look ? paint(px, rows, m.view, look) : [];
		if (!rows || !look) px.fill(look?.background ?? 0);
		say({ kind: 'painted', id: m.id, view: m.view, buffer: m.buffer, labels }, [m.buffer]);
		break;
	}
	case 'hit': {
		const k = rows ? sliceAt(rows, m.row, m.time) : -1;
		say({ kind: 'hit', id: m.id, hit: rows && k >= 0 ? hitOf(rows, k, m.row) : null });
		break;
	}
	case 'visible':
		say({ kind: 'visible', id: m.id, calls: visible(m.from, m.to) });
		break;
	case 'next':
		say({ kind: 'next', id: m.id, hit: next(m.after, m.row, m.forward) });
		break;
	}
};
