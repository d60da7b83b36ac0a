/*
 * isolation.mjs - how much slower a project is served while another one attacks the same server: p50 and p99 of each
 * of its requests, in milliseconds and as a ratio to the same server when idle.  Goal: p99 at most 5 times idle.
 *
 *   TRACEWELL=build-release/server/tracewell node tests/bench/server/isolation.mjs [--full] [--each-mapping] [SECONDS [ATTACK...]]
 *
 * ATTACK: a part of an attack's name (tests/e2e/isolation.mjs has them); all without.  The attacker's own client and the
 * decoders share the machine with the measured project, so a ratio contains what the attack costs in processor time.
 */
import { ATTACKS, MEASURED, SINGLE_MAPPINGS, openNeighbourhood, percentile } from '../../e2e/isolation.mjs';
import { untilEnd } from '../../e2e/server.mjs';

const GOAL = 5;
const args = process.argv.slice(2);
const flag = (name) => args.includes(name) && args.splice(args.indexOf(name), 1).length > 0;
const full = flag('--full');
const each = flag('--each-mapping');
const [seconds = '10', ...wanted] = args;
const attacks = Object.keys({ ...ATTACKS, ...(each ? SINGLE_MAPPINGS : {}) }).filter((name) => !wanted.length || wanted.some((part) => name.includes(part)));

const cell = (list, p, idle) => {
	const ms = percentile(list, p);
	if (ms === undefined) return '-'.padStart(16);
	const ratio = idle ? ms / percentile(idle, p) : 1;
	return `${ms.toFixed(ms < 10 ? 1 : 0).padStart(7)} ${`${ratio.toFixed(1)} x`.padStart(8)}`;
};

function print(name, { samples, failures, peak, attack }, idle) {
	console.log(`${name}: ${peak.toFixed(0)} MiB${attack ? `; A was answered ${JSON.stringify(attack)}` : ''}`);
	for (const what of MEASURED) {
		const past = idle && percentile(samples[what], 99) > GOAL * percentile(idle.samples[what], 99);
		console.log(`  ${what.padEnd(8)} ${String(samples[what].length).padStart(4)}  p50 ${cell(samples[what], 50, idle?.samples[what])}  p99 ${cell(samples[what], 99, idle?.samples[what])}${past ? `  past ${GOAL} x` : ''}`);
	}
	for (const failure of failures) console.log(`  FAILED ${failure}`);
}

const t = untilEnd();
try {
	const place = await openNeighbourhood(t, { full });
	await place.measure({ rounds: 5 });
	const idle = await place.measure({ seconds });
	print('idle', idle);
	for (const name of attacks) print(name, await place.under(name, { seconds }), idle);
} finally {
	await t.end();
}
