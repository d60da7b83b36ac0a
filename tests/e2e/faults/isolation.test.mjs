/*
 * isolation.test.mjs - one project's attack does not stop another project: B lists, opens a flame graph, signs in and
 * uploads while A sends hostile mappings and bombs, reads no export, sends slow bodies, fills the queue, deletes and asks
 * heavy questions; and the server's memory stays bounded.
 *
 * Latencies are not asserted here; tests/bench/server/isolation.mjs prints them as ratios to an idle server.
 * ISOLATION=full: 10,000 queued traces, larger mappings and traces, more rounds.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ATTACKS, MEASURED, openNeighbourhood, percentile } from '../isolation.mjs';
import { sanitized } from '../server.mjs';

const full = process.env.ISOLATION === 'full';
const ROUNDS = full ? 20 : 3;
/* The server without its children, whose memory --worker-memory limits: answers, and 200 MiB for everything else. */
const ANSWERS_MIB = full ? 1024 : 512;
const MEMORY_MIB = ANSWERS_MIB + 200;

test('B is served while A attacks', async (t) => {
	const place = await openNeighbourhood(t, { full, args: ['--response-memory', `${ANSWERS_MIB}M`] });
	const idle = await place.measure({ rounds: ROUNDS });
	assert.deepEqual(idle.failures, []);
	for (const name of Object.keys(ATTACKS))
		await t.test(name, async (t) => {
			const { samples, failures, peak, attack } = await place.under(name, { rounds: ROUNDS });
			const ms = (what) => `${what} ${percentile(samples[what], 99)?.toFixed(0)} ms`;
			t.diagnostic(`slowest: ${MEASURED.map(ms).join(', ')}; ${peak.toFixed(0)} MiB; A was answered ${JSON.stringify(attack)}`);
			assert.deepEqual(failures, []);
			if (!sanitized()) assert.ok(peak < MEMORY_MIB, `${peak.toFixed(0)} MiB`);
		});
	assert.deepEqual(await place.server.stop(), { code: 0, signal: null });
});
