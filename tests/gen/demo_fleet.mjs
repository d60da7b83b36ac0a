/*
 * demo_fleet.mjs - what many phones sent in three weeks: cold starts and scrolls of three versions, in the last of which
 * one method got slower and one is new; first launches, of which one has 100,000 calls on 20 threads; and reports of
 * apps that stopped responding, one with 60 threads. Then the server is asked to look for regressions.
 *
 *   node tests/gen/demo_fleet.mjs URL KEY [CLONE]       the key's scope is write; with a clone (demo_repository.mjs): admin
 *
 * Numbers come from a seed, so each run sends the same but for its days.
 */
import { gzipSync } from 'node:zlib';
import { CAUSES } from './anr_fleet.mjs';
import { anrReport, launchTrace, numbers } from './demo_launch.mjs';

const DAY_MS = 24 * 3600 * 1000;
const [VERSIONS, DAYS, A_DAY, AT_ONCE, RETRIES] = [['8.2.0', '8.3.0', '8.4.0'], 7, 6, 8, 3];
const [CALLS, LESS] = [100_000, 25_000]; // of a first launch on the fastest device, and on the others
/* model, memory, Android, how much longer everything takes there */
const DEVICES = [['Galaxy A15', 2800, '14', 1.9], ['Redmi Note 12', 5600, '13', 1.35], ['Pixel 8', 7700, '15', 1]];

/* name, milliseconds, what it calls */
const start = (slower) => ['com.acme.shop.App.onCreate', 20, [
	['com.acme.shop.di.Graph.build', 35, [['com.acme.shop.data.Prefs.load', 18, []]]],
	['com.acme.shop.home.HomeActivity.onCreate', 15, [
		['com.acme.shop.data.Repo.load', 12, [['com.acme.shop.data.JsonParser.parse', slower ? 94 : 64, []]]],
		['android.view.LayoutInflater.inflate', 48, []],
		...(slower ? [['com.acme.shop.ads.Ads.warmUp', 46, []]] : []),
		['com.acme.shop.image.ImageCache.open', 27, []]]]]];
const scroll = () => ['com.acme.shop.feed.Feed.onScroll', 6, [
	['com.acme.shop.feed.FeedAdapter.onBind', 9, [['com.acme.shop.image.ImageCache.get', 7, []], ['com.acme.shop.text.Prices.format', 3, []]]]]];

/* The calls as a trace: the self time of each precedes its callees. */
function recording(tree, factor, random) {
	const events = [{ ph: 'M', name: 'thread_name', pid: 4711, tid: 4711, args: { name: 'main' } }, { ph: 'M', name: 'process_name', pid: 4711, args: { name: 'com.acme.shop' } }];
	const call = ([name, ms, inner], ts) => {
		const event = { ph: 'X', cat: 'method', name, pid: 4711, tid: 4711, ts };
		let at = ts + Math.round(ms * 1000 * factor * (0.88 + 0.24 * random()));
		for (const one of inner) at = call(one, at);
		event.dur = at - ts;
		events.push(event); // as they end
		return at;
	};
	call(tree, 1_000_000);
	return JSON.stringify({ traceEvents: events });
}

/* All uploads: the body and its meta data. */
function* traces(now) {
	const random = numbers(20261123);
	for (const [v, version] of VERSIONS.entries())
		for (let day = 0; day < DAYS; day++)
			for (let i = 0; i < A_DAY; i++)
				for (const scenario of ['cold_start', 'feed_scroll']) {
					const [device, ram, os, factor] = DEVICES[i % DEVICES.length];
					const at = now - (DAYS * (VERSIONS.length - v) - day) * DAY_MS + i * 1000 * 60;
					yield [recording(scenario === 'cold_start' ? start(v === 2) : scroll(), factor, random), { version, scenario, device, ram, os, at, who: `${day}-${i}` }];
				}
	for (const [n, cause] of CAUSES.slice(0, 3).entries())
		for (let i = 0; i < 5 - n; i++) {
			const [device, ram, os] = DEVICES[i % DEVICES.length];
			yield [cause.make(i), { version: VERSIONS[n === 0 ? 2 : 1], scenario: 'anr', device, ram, os, at: now - (1 + i) * DAY_MS / 2, who: `anr-${i}` }];
		}
	for (let i = 0; i < 3; i++) {
		const [device, ram, os] = DEVICES[i];
		yield [anrReport(i), { version: VERSIONS[2], scenario: 'anr', device, ram, os, at: now - (1 + i) * DAY_MS / 3, who: `anr60-${i}` }];
	}
}

/* First launches, long recordings: the newest version's on the fastest device last. */
function* launches(now) {
	for (const [v, version] of VERSIONS.entries())
		for (const [d, [device, ram, os, factor]] of DEVICES.entries()) {
			const text = launchTrace({ calls: device === 'Pixel 8' ? CALLS : LESS, slower: v === 2, factor, seed: 1 + v * 10 + d });
			yield [gzipSync(text, { level: 1 }), { version, scenario: 'first_launch', device, ram, os, at: now - (VERSIONS.length - v) * DAYS * DAY_MS + 2 * DAY_MS, who: `launch-${v}-${d}`, encoding: 'gzip' }];
		}
}

async function sent(url, key, n, [body, of]) {
	const query = new URLSearchParams({ app: 'com.acme.shop', version_name: of.version, build_id: `shop-${of.version}`, scenario: of.scenario, device: of.device, os: of.os,
		labels: JSON.stringify({ ram_mb: of.ram }), started_at: String(Math.round(of.at)), device_id: `phone-${of.who}` });
	for (let failures = 0; ;) {
		let answer;
		try {
			answer = await fetch(`${url}/api/v1/traces?${query}`, { method: 'POST', body, headers: { Authorization: `Bearer ${key}`, 'Idempotency-Key': `demo-fleet-${n}`, ...(of.encoding && { 'Content-Encoding': of.encoding }) } });
		} catch (error) { // such as a connection that the server closed while a long recording was made
			if (++failures > RETRIES) throw error;
			continue;
		}
		if (answer.status === 202 || answer.status === 200) return;
		if (answer.status !== 503 && answer.status !== 429) throw new Error(await answer.text());
		await new Promise((done) => setTimeout(done, 1000 * Number(answer.headers.get('retry-after') ?? 1)));
	}
}

const [url, key, clone] = process.argv.slice(2);
const ask = async (target, method = 'GET', body = undefined) => (await fetch(url + target, { method, body, headers: { Authorization: `Bearer ${key}` } })).json();
const now = Date.now();
if (clone) {
	const repository = { name: clone, packages: ['com.acme.shop.', 'com.shop.'], roots: ['app/src/main/java'], refs: ['v{version}'], clone };
	const { repositories = [] } = await ask('/api/v1/source/repositories');
	const set = repositories.length ? {} : await ask('/api/v1/source/repositories', 'PUT', JSON.stringify({ repositories: [repository] }));
	if (set.error) throw new Error(set.error.message);
}
const all = [...traces(now)];
const left = all.entries();
await Promise.all(Array.from({ length: AT_ONCE }, async () => { for (const [n, one] of left) await sent(url, key, n, one); }));
let long = 0;
for (const one of launches(now)) await sent(url, key, `launch-${long++}`, one); // one at a time: each is 20 MB before it is compressed

const expected = all.filter(([, of]) => of.scenario !== 'anr').length;
for (const end = Date.now() + 120_000; Date.now() < end; await new Promise((done) => setTimeout(done, 300))) {
	const { groups = [] } = await ask('/api/v1/fleet/scenarios?by=version&app=com.acme.shop');
	const counted = groups.filter((g) => g.scenario === 'cold_start' || g.scenario === 'feed_scroll').reduce((sum, g) => sum + g.duration_ns.traces, 0);
	if (counted >= expected) break;
}
/* All of it comes within a day, of which the server would wait for two. */
await ask('/api/v1/regressions/rules', 'PUT', JSON.stringify({ min_days: 1 }));
for (let tries = 0; tries < 20 && (await ask('/api/v1/regressions/detect', 'POST')).error; tries++) await new Promise((done) => setTimeout(done, 500));
console.log(all.length + long);
