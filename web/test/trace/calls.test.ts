import assert from 'node:assert/strict';
import { test } from 'node:test';
import { called, found, next, selfOf, totalsOf, visible } from '../../src/trace/worker/calls';
import type { Hit } from '../../src/trace/worker/messages';
import { Rows } from '../../src/trace/worker/rows';
import { rowsOf, type Call } from './chunk';

/** A small generator of its own, the same on every run. */
function random(seed: number): () => number {
	let s = seed;
	return () => {
		s = (Math.imul(s, 1664525) + 1013904223) >>> 0;
		return s / 2 ** 32;
	};
}

/** Nested calls with ties, and some of no length. */
function forest(seed: number): Call[] {
	const r = random(seed);
	const out: Call[] = [];
	const fill = (from: number, to: number, depth: number) => {
		for (let t = from; t <= to && out.length < 400;) {
			const start = t + Math.floor(r() * 6);
			const dur = r() < 0.2 ? 0 : Math.floor(r() * (depth ? 12 : 60));
			if (start + dur > to) return;
			out.push([start, dur, Math.floor(r() * 9), depth]);
			if (depth < 5 && r() < 0.6) fill(start, start + dur, depth + 1);
			t = start + dur + (r() < 0.5 ? 0 : 1);
			if (dur === 0 && r() < 0.5) t++;
		}
	};
	fill(0, 3000, 0);
	return out;
}

test('what is visible is the longest, wherever in its row it stands', () => {
	// 500 short calls, then one long one, all in one row
	const many: Call[] = [...Array.from({ length: 500 }, (_, i): Call => [i * 2, 1, 0, 0]), [2000, 900, 7, 0]];
	const rows = rowsOf(many);
	const calls = visible(rows, 0, 5000, 200);
	assert.equal(calls.length, 200);
	assert.equal(calls[199].method, 7, 'the longest is there, though it is the last of its row');
	assert.ok(calls.every((c, i) => i === 0 || c.start >= calls[i - 1].start), 'in time order');
});

test('what is visible agrees with sorting everything', () => {
	for (let seed = 1; seed < 20; seed++) {
		const all = forest(seed);
		const rows = rowsOf(all);
		for (const [from, to, max] of [[0, 3000, 1], [0, 3000, 50], [100, 160, 5], [700, 701, 200]]) {
			const want = all.filter(([s, d]) => s < to && s + d > from).map((c) => c[1]).sort((a, b) => b - a).slice(0, max);
			const got = visible(rows, from, to, max).map((c) => c.end - c.start).sort((a, b) => b - a);
			assert.deepEqual(got, want, `seed ${seed}, ${from} to ${to}`);
		}
	}
});

/** Nanosecond by nanosecond: in which share of the time with a call open is one open that is wanted? */
function shareOf(all: Call[], wanted: Uint8Array): number {
	const end = Math.max(...all.map(([s, d]) => s + d));
	const cover = (of: typeof all) => {
		const cells = new Uint8Array(end);
		for (const [s, d] of of) cells.fill(1, s, s + d);
		return cells.reduce((n, v) => n + v, 0);
	};
	return cover(all.filter((c) => wanted[c[2]])) / cover(all);
}

test('stepping through a search meets every call once, and begins again behind the last', () => {
	for (let seed = 1; seed < 20; seed++) {
		const all = forest(seed);
		const rows = rowsOf(all);
		const wanted = Uint8Array.from({ length: 9 }, (_, m) => (m === 3 || m === 5 ? 1 : 0));
		const n = all.filter((c) => wanted[c[2]]).length;
		assert.deepEqual(found(rows, wanted), { calls: n, share: shareOf(all, wanted), least: false });
		for (const forward of [true, false]) {
			const met: Hit[] = [];
			let at = { start: forward ? -1 : 1e9, row: -1, index: -1 };
			for (let i = 0; i < n; i++) {
				const h = next(rows, wanted, at, forward);
				assert.ok(h && wanted[h.method] === 1);
				met.push(h);
				at = { start: h.start, row: h.depth, index: h.index };
			}
			assert.equal(new Set(met.map((h) => h.index)).size, n, `seed ${seed}: each once`);
			assert.ok(met.every((h, i) => i === 0 || (forward ? h.start >= met[i - 1].start : h.start <= met[i - 1].start)));
			assert.equal(next(rows, wanted, at, forward)?.index, met[0].index, 'round to the first');
		}
	}
});

test('of calls that are merged, a search counts those it knows', () => {
	const first = Uint32Array.from([0, 2]);
	const rows = new Rows(first, 0, true);
	[[0, 50], [60, 90]].forEach(([from, to], k) => {
		rows.begin(k, from, 3, 0);
		rows.finish(k, to);
	});
	rows.merged!.set([1, 1000]);
	assert.deepEqual(found(rows, Uint8Array.from([0, 0, 0, 1])), { calls: 2, share: 1, least: true });
});

test('a search that fits nothing leads nowhere', () => {
	const rows = rowsOf(forest(1));
	assert.equal(next(rows, new Uint8Array(9), { start: 0, row: -1, index: -1 }, true), null);
	assert.deepEqual(found(rows, new Uint8Array(9)), { calls: 0, share: 0, least: false });
});

test('self times are what the calls below leave, one by one and by method', () => {
	for (let seed = 1; seed < 20; seed++) {
		const all = forest(seed);
		const self = all.map((c) => c[1]);
		const open: number[] = [];
		all.forEach((c, i) => {
			if (c[3] > 0) self[open[c[3] - 1]] -= c[1];
			open[c[3]] = i;
		});
		const rows = rowsOf(all);
		const byRow = all.map((c, i) => [c[3], i]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
		byRow.forEach(([row, i], k) => assert.equal(selfOf(rows, k, row), self[i], `seed ${seed}, call ${i}`));
		const t = totalsOf(rows);
		for (let m = 0; m < 9; m++) {
			assert.equal(t.count[m] ?? 0, all.filter((c) => c[2] === m).length);
			assert.equal(t.self[m] ?? 0, all.reduce((n, c, i) => n + (c[2] === m ? self[i] : 0), 0));
		}
		assert.equal(t.busy, all.reduce((n, c) => n + (c[3] === 0 ? c[1] : 0), 0));
	}
});

test('a call is told with its stack and its callees, as looking through everything tells them', () => {
	for (let seed = 1; seed < 12; seed++) {
		const mine = forest(seed);
		const rows = rowsOf(mine);
		for (const c of mine.filter(([, d]) => d > 0)) {
			const [start, dur, method, depth] = c;
			const got = called(rows, { tid: 7, start, depth }, 3)!;
			assert.deepEqual([got.hit.start, got.hit.end, got.hit.method, got.hit.depth], [start, start + dur, method, depth]);
			const around = mine.filter(([s, d, , row]) => d > 0 && row < depth && s <= start && s + d >= start + dur).sort((a, b) => a[3] - b[3]);
			assert.deepEqual(got.stack.map((h) => [h.start, h.end, h.depth]), around.map(([s, d, , row]) => [s, s + d, row]));
			const inside = mine.filter(([s, d, , row]) => row === depth + 1 && s >= start && s < start + dur && s + d <= start + dur).map(([, d]) => d);
			assert.equal(got.made, inside.length);
			assert.deepEqual(got.callees.map((h) => h.end - h.start), inside.sort((a, b) => b - a).slice(0, 3));
		}
	}
	assert.equal(called(rowsOf([[10, 5, 0, 0]]), { tid: 7, start: 11, depth: 0 }, 3), null, 'none begins there');
	assert.equal(called(undefined, { tid: 7, start: 11, depth: 0 }, 3), null, 'its thread is not loaded');
});
