/*
 * lists.mjs - processor time of each list of the API in a project with many rows of each kind.
 *
 *   TRACEWELL=build-release/server/tracewell node tests/bench/server/lists.mjs [--postgres] [TRACES [OTHER-BINARY]]
 *
 * TRACES is 300,000 by default, with a tenth as many regressions, ANRs and alerts, and a hundredth as many builds, keys,
 * people and projects.  A server decodes and counts a few traces; their rows are then copied in its catalogue.  Prints of
 * each list the rows and bytes of its first page, processor time (of the server and of PostgreSQL) and wall time of the
 * best of five requests for its first page and for its tenth, and whether both meet the goal.  Each list is measured when
 * the servers are idle.  With a second binary both take turns, request by request, each on a catalogue of its own.
 */
import fs from 'node:fs';
import path from 'node:path';

import { btrace } from '../../e2e/make.mjs';
import { startPostgres } from '../../e2e/postgres.mjs';
import { Server, atEnd, binary, cookiesOf, newFolder, sleep, tracewell, until, untilEnd } from '../../e2e/server.mjs';

const GOAL_MS = 50; // of processor time for a page
const TIMES = 5;
const SINCE = Date.now() - 30 * 86_400_000;
const METHODS = 1000, CELLS = 56, FIRST = 12;
const onPostgres = process.argv.includes('--postgres');
const [traces, other] = process.argv.slice(2).filter((arg) => arg !== '--postgres');
const N = Number(traces ?? 300_000);

/* --- rows --- */

const dialect = onPostgres
	? { id: (prefix) => `'${prefix}'||lpad(i::text,${26 - prefix.length},'0')`, hex: (n) => `lpad(to_hex(${n}),16,'0')`, hash: (salt) => `sha256(convert_to('${salt}'||i,'UTF8'))`,
		series: (n) => `(SELECT n AS i FROM generate_series(0::bigint,${n - 1}::bigint) n) n`, user: '"user"', empty: "''::bytea" }
	: { id: (prefix) => `printf('${prefix}%0${26 - prefix.length}d',i)`, hex: (n) => `printf('%016x',${n})`, hash: (salt) => `CAST(printf('${salt}%0${32 - salt.length}d',i) AS BLOB)`,
		series: (n) => `(WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i+1<${n}) SELECT i FROM n) n`, user: 'user', empty: "x''" };
const { id, hex, hash, series } = dialect;
const mixed = (n) => `((i*104729)%1000003*7919%1000003%${n})`;

/* [table, number of rows, column → value, FROM]; one statement each, in this order. */
function rows(p, hook, now) {
	const at = (ms) => `${now}-i*${ms}`;
	const day = `(${at(8000)})/86400000`;
	return [
		['trace', N, { project_id: `'${p}'`, trace_id: id('01SIM'), key_id: `'01SIMKEY'`, idempotency_key: `''`, content: `'trace='||i`, state: '4-CASE WHEN i%100=0 THEN 1 ELSE 0 END', created_ms: at(8000), upload_bytes: mixed(1000000), app: `'com.shop'`,
			version_name: `'8.'||(i/20000)`, version_code: `CAST(8030000+i/5000 AS TEXT)`, build_id: `'b'||(i/100)`, mapping_id: `''`, device: `'device '||${mixed(200)}`, os: `CAST(10+${mixed(5)} AS TEXT)`, abi: `'arm64-v8a'`, process: `'com.shop'`, scenario: `'scenario '||${mixed(4)}`,
			session_id: `'s-'||(i/8)`, uuid: `'u'||i`, labels: `'{"user":"'||${mixed(100000)}||'","group":"'||${mixed(2)}||'"}'`, pid: 1, started_ms: at(8000), slices: mixed(900000), duration_ns: mixed(800000), rollup_state: 1, anr_state: 1, named: 1, detected: 'd.detected', has_upload: 1, recorded_ms: at(8000) },
			`(SELECT max(detected) AS detected FROM trace WHERE project_id='${p}') d`],
		['part', N / 300, { project_id: `'${p}'`, trace_id: `'01SIM'||${onPostgres ? "lpad((i*100)::text,21,'0')" : "printf('%021d',i*100)"}`, part: `'trace'`, sha256: `'a'||i`, format: `''`, bytes: 1000 }],
		['quarantine', N / 300, { project_id: `'${p}'`, trace_id: `'01SIM'||${onPostgres ? "lpad((i*100)::text,21,'0')" : "printf('%021d',i*100)"}`, reason: `'crash'`, signal: 11, format: `'art'`, decoder_version: 6, first_ms: at(8000), last_ms: now, deaths: 2 }],
		['build', N / 100, { project_id: `'${p}'`, build_id: `'b'||i`, created_ms: at(800000), traces: 100, app: `'com.shop'`, version_name: `'8.'||(i/200)` }],
		['audit', N, { ...(onPostgres && { entry_id: '1000000+i' }), at_ms: `${now}-(${N}-i)*1000`, project_id: `'${p}'`, by_kind: `'user'`, by_id: `'u'`, by_name: `'ann'`, address: `'10.0.0.1'`, request_id: `'r'||i`, action: `'trace.edit'`, target: `'t'||i`, facts: `'{}'` }],
		['api_key', N / 100, { project_id: `'${p}'`, key_id: id('01KEY'), name: `'key '||i`, scope: 1, hash: hash('key'), created_ms: at(1000), revoked_ms: `CASE WHEN i%10=0 THEN 0 ELSE ${now} END` }],
		['project', N / 100, { project_id: id('01PRO'), name: `'project '||i`, created_ms: at(1000) }],
		[dialect.user, N / 100, { user_id: id('01USR'), name: `'person '||i`, created_ms: at(1000) }],
		['member', N / 100, { user_id: id('01USR'), project_id: `'${p}'`, scope: 2 }],
		['outbox', N, { project_id: `'${p}'`, hook_id: `'${hook}'`, event_id: `'e'||i`, event: 1, facts: `'{}'`, created_ms: `${now}-(${N}-i)*1000`, due_ms: 0, until_ms: 0, attempts: 1, attempts_left: 0, state: 1 }],
		['saved_filter', 100, { project_id: `'${p}'`, name: `'filter '||i`, query: `'app=com.shop'`, author: `'ann'`, updated_ms: now }],
		['regression', N / 10, { project_id: `'${p}'`, regression_id: id('01REG'), app: `'com.shop'`, scenario: `'scenario '||(i%4)`, method: `'com.shop.A.m'||i`, descriptor: `''`, base: `'8.1'`, head: `'8.2'`, day: `20000-i/1000`, percent: 95, before_ns: 1000000, after_ns: '1500000+i', change_ppm: 500000,
			low_ppm: 300000, high_ppm: 700000, score_milli: 9000, n_before: 50, n_after: 50, before_trace: `''`, after_trace: `''`, status: 'i%4', first_ms: at(1000), last_ms: at(500) }],
		['alert_rule', 1, { project_id: `'${p}'`, rule_id: `'rule'`, name: `'slow'`, kind: 0, app: `''`, scenario: `''`, version_name: `''`, method: `''`, percentile: 95, limit_micro: 1, min_traces: 1, days: 7, mail: 0, author: `'ann'`, created_ms: 1, changed_ms: 1 }],
		['alert', N / 10, { project_id: `'${p}'`, alert_id: id('01ALT'), rule_id: `'rule'`, app: `'com.shop'`, subject: `'8.'||i`, title: `''`, trace_id: `''`, value_micro: 5, traces: 40, is_over: 1, status: 'i%4', first_ms: 1, last_ms: at(700) }],
		['anr_trace', N / 10, { project_id: `'${p}'`, trace_id: id('01SIM'), recorded_ms: at(80000), day: `(${at(80000)})/86400000`, app: `'com.shop'`, version_name: `'8.'||(i/20000)`, build_id: `'b'||(i/100)`, mapping_id: `''`, scenario: `'scenario '||${mixed(4)}`, device: `'device '||${mixed(200)}`,
			device_class: `'mid'`, os: `'14'`, labels: `'{}'`, who: mixed(1000), anr: 1, keyed: 'a.keyed', key: hex('i%1000'), kind: `'lock'`, copied: 1 }, `(SELECT max(keyed) AS keyed FROM anr_trace WHERE project_id='${p}') a`],
		['anr', N / 10, { project_id: `'${p}'`, trace_id: id('01SIM'), brief: 'a.brief', base: `'b'`, key: hex('i%1000'), kind: `'lock'`, name: `'com.shop.T'||(i%1000)||'.run'`, title: `'Lock of T'||(i%1000)`, verdict: `''`, detail: `'{}'` }, `(SELECT brief FROM anr WHERE project_id='${p}' LIMIT 1) a`],
		['lock_wait', N / 10, { project_id: `'${p}'`, trace_id: id('01SIM'), seq: 0, dump: 1, is_main: 1, raw_monitor: `'m'`, raw_owner: `'o'`, source: `'A.java:1'`, monitor: `'com.shop.Lock'||(i%400)`, owner: `'com.shop.Owner'||(i%400)||'.take'`, holder: `'pool-1'`, waits: 2, timed: 1, total_ns: '1000000+i', max_ns: 1000000 }],
		['anr_state', 1000, { project_id: `'${p}'`, key: hex('i'), status: 'i%3', fixed_ms: `CASE WHEN i%3=2 THEN ${now}-86400000 ELSE 0 END`, author: `'ann'`, changed_ms: now }],
		['anr_day', 1, { project_id: 'd.project_id', day: 'd.day' }, '(SELECT DISTINCT project_id, day FROM anr_trace) d', 'ON CONFLICT DO NOTHING'],
		...['rollup_cell', 'rollup_part', 'rollup_delta'].map((table) => [table, CELLS, copied(table), `(SELECT * FROM ${table} WHERE project_id='${p}') t`]),
	];
}

/* Of the cells of the traces that were counted: on other days and of other versions. */
const CELL = { cell_id: 't.cell_id+i+1', day: 't.day-1-i%28', version_name: `'8.'||(i/28)` };
const COLUMNS = {
	rollup_cell: 'project_id cell_id day app version_name build_id mapping_id scenario device_class os label traces pending version head',
	rollup_part: 'project_id cell_id metric data',
	rollup_delta: 'project_id cell_id trace_id duration_ns data',
};
const copied = (table) => Object.fromEntries(COLUMNS[table].split(' ').map((c) => [c, CELL[c] ?? `t.${c}`]));

/* --- servers --- */

const REPORT = ['----- pid 4000 at 2026-11-20 09:00:00 -----', 'Cmd line: com.shop', 'Build fingerprint: \'a/b/c:14/D/1:user/release-keys\'', '', 'DALVIK THREADS (1):',
	'"main" prio=5 tid=1 Blocked', '  | sysTid=4000 nice=-10 cgrp=default sched=0/0 handle=0x1', '  | state=S schedstat=( 1 1 1 ) utm=1 stm=1 core=0 HZ=100',
	'  at com.shop.Repo.load(Repo.java:10)', '  - waiting to lock <0x0a1> (a com.shop.Lock) held by thread 2', '  at com.shop.Main.onClick(Main.java:20)', '',
	'"worker" prio=5 tid=2 Runnable', '  | sysTid=4001 nice=0 cgrp=default sched=0/0 handle=0x2', '  at com.shop.Repo.store(Repo.java:30)', '  - locked <0x0a1> (a com.shop.Lock)', '', '----- end 4000 -----', ''].join('\n');

/* Each of the methods is called once. */
const calls = (seed) => btrace(Array.from({ length: METHODS }, (_, m) => [4000, m + 1, 1_000_000 + m * 20_000 + seed, 10_000 + m]), { pid: 4000 });

async function start(t, program, db, schema) {
	const s = new Server(newFolder(t, 'tw-lists-'), ['--retention-every', '86400', '--figures-days', '4000', '--max-disk-use', '0', ...(db ? ['--catalog', db.url(schema)] : [])], {});
	s.program = program;
	s.pids = () => [s.child.pid, ...(db ? processesOf(db.child.pid) : [])];
	s.run = (text) => (db ? db.sql(text, schema) : s.sql(text));
	await s.start();
	atEnd(t, () => s.stop());
	return s;
}

const processesOf = (pid) => fs.readdirSync('/proc').filter((name) => {
	try {
		return /^\d+$/.test(name) && fs.readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1].split(' ')[1] === String(pid);
	} catch {
		return false;
	}
});

async function fill(s) {
	const key = s.admin;
	const { id: p } = (await s.get('/api/v1/projects', { key })).json.projects[0];
	await s.ask('PUT', '/api/v1/retention', { key, body: '{}' });
	const { id: hook } = (await s.ask('POST', '/api/v1/webhooks', { key, body: JSON.stringify({ name: 'chat', url: 'https://hooks.invalid/x', events: ['digest'] }) })).json;
	const query = { app: 'com.shop', version_name: '8.0', build_id: 'b', scenario: 'start', os: '14', device: 'phone' };
	for (let n = 0; n < FIRST; n++) await s.trace(calls(n), { query });
	await s.trace(REPORT, { query: { ...query, scenario: 'anr' } });
	await until(() => (Number(s.run('SELECT count(*) FROM trace WHERE state=2 AND rollup_state<>0 AND anr_state=1 AND detected>0')) === FIRST + 1 && Number(s.run('SELECT count(*) FROM anr_trace WHERE keyed<>0 AND anr=1')) === 1 ? true : undefined), 'traces counted', 120);
	await s.stop();
	for (const [table, n, columns, from, end = ''] of rows(p, hook, Date.now()))
		s.run(`INSERT INTO ${table}(${Object.keys(columns)}) SELECT ${Object.values(columns).join(',')} FROM ${series(Math.floor(n))}${from ? ` CROSS JOIN ${from}` : ''} WHERE 1=1 ${end}`);
	s.run('ANALYZE');
	await s.start();
	s.lists = listsOf(hook);
}

async function settled(s) {
	const anrDays = (which) => Number(s.run(`SELECT count(*) FROM anr_day WHERE ${which} AND day<${Math.floor(Date.now() / 86400000)}`));
	await until(() => anrDays('waiting=1') === 0, 'ANRs summed', 3600);
	await s.stop();
	s.run('UPDATE anr_day SET pack_ms=1 WHERE pack_ms>0'); // without waiting for that time
	await s.start();
	await until(() => anrDays('pack_ms>0') === 0, 'their sums packed', 3600);
	await until(async () => (await s.get('/api/v1/fleet/stages', { key: s.admin })).json.stages.every(({ waiting }) => waiting === 0), 'stages done', 3600);
}

const IDLE_MS = 20; // of processor time per second

/* The start after the copy writes a record per trace, and from time to time each stage inspects all projects. */
async function idle(servers) {
	let busy;
	await until(async () => (busy = await busyMs(servers)) <= IDLE_MS, () => `servers idle (${busy.toFixed(0)} ms per second)`, 3600);
}

/* Their processor time in a second. */
async function busyMs(servers) {
	const cpu = () => servers.reduce((sum, s) => sum + cpuNs(s), 0);
	const [before, at] = [cpu(), performance.now()];
	await sleep(1000);
	return ((cpu() - before) / 1e6 / (performance.now() - at)) * 1000;
}

/* --- lists --- */

/* [name, address, member with the rows, how its pages are named, by whom if not by an admin of the project]. */
const listsOf = (hook) => [
	['traces', '/api/v1/traces', 'traces'], ['traces, words', '/api/v1/traces?q=shop+device+77', 'traces'], ['traces, none', '/api/v1/traces?q=nothing', 'traces'], ['inbox', '/api/v1/inbox', 'items'], ['inbox, all', '/api/v1/inbox?state=all', 'items'], ['regressions', '/api/v1/regressions', 'regressions'],
	['ANR groups', `/api/v1/anr/groups?since=${SINCE}`, 'groups', 'offset'], ['ANR locks', `/api/v1/fleet/locks?since=${SINCE}`, 'locks', 'offset'],
	['fleet methods', `/api/v1/fleet/methods?since=${SINCE}`, 'methods', 'offset'], ['search', '/api/v1/search?q=com.shop', 'methods'],
	['builds', '/api/v1/builds', 'builds'], ['keys', '/api/v1/keys', 'keys'], ['members', '/api/v1/members', 'members'], ['projects', '/api/v1/projects', 'projects', 'cursor', 'server'],
	['session', '/api/v1/session', 'projects', 'cursor', 'server'], ['audit log', '/api/v1/audit', 'entries'], ['deliveries', `/api/v1/webhooks/${hook}/deliveries`, 'deliveries'], ['webhooks', '/api/v1/webhooks', 'webhooks'],
	['saved filters', '/api/v1/filters', 'filters'], ['quarantine', '/api/v1/quarantine', 'quarantine'], ['alert rules', '/api/v1/alerts/rules', 'rules'], ['stages', '/api/v1/fleet/stages', 'stages'],
	...['app', 'version_name', 'build_id', 'device', 'os', 'scenario', 'state', 'label'].map((column) => [`facet ${column}`, `/api/v1/facets?column=${column}`, 'values']),
];

const cpuNs = (s) => s.pids().flatMap((pid) => {
	try {
		return fs.readdirSync(`/proc/${pid}/task`).map((tid) => Number(fs.readFileSync(`/proc/${pid}/task/${tid}/schedstat`, 'utf8').split(' ')[0]));
	} catch {
		return []; // it has ended
	}
}).reduce((sum, ns) => sum + ns, 0);

async function once(s, [, target, , , as], best) {
	const [cpu, at] = [cpuNs(s), performance.now()];
	best.answer = await s.get(target, as ? s.server : { key: s.admin });
	best.wall = Math.min(best.wall, performance.now() - at);
	best.cpu = Math.min(best.cpu, (cpuNs(s) - cpu) / 1e6);
}

/* Of all servers in turns; null: it has no such page. */
async function bestOf(servers, lists) {
	const all = lists.map((of) => of && { cpu: Infinity, wall: Infinity });
	for (let n = 0; n < TIMES; n++) for (const [k, s] of servers.entries()) if (lists[k]) await once(s, lists[k], all[k]);
	return all;
}

/* The list's tenth page, or null. */
async function tenth(s, list, first) {
	const [name, target, member, by, ...more] = list;
	const at = (q) => [name, `${target}${target.includes('?') ? '&' : '?'}${q}`, member, by, ...more];
	if (by === 'offset') return at(`offset=${9 * first.json[member].length}`);
	let cursor = first.json.next_cursor;
	for (let n = 2; n < 10 && cursor != null; n++) cursor = (await s.get(at(`cursor=${encodeURIComponent(cursor)}`)[1], more[0] ? s.server : { key: s.admin })).json.next_cursor;
	return cursor == null ? null : at(`cursor=${encodeURIComponent(cursor)}`);
}

const t = untilEnd();
try {
	const db = onPostgres ? await startPostgres(t, { more: ['-c', 'shared_buffers=1GB', '-c', 'max_wal_size=8GB'] }) : null;
	const servers = [];
	for (const [k, program] of [binary(), ...(other ? [path.resolve(other)] : [])].entries()) {
		const s = await start(t, program, db, `lists_${k}`);
		await fill(s);
		const link = tracewell('link', 'create', '--data', s.data).trim();
		const signed = await s.ask('POST', '/api/v1/session', { key: null, body: JSON.stringify({ token: link.split('#')[1] }), headers: { 'X-Tracewell': '1' } });
		s.server = { key: null, headers: { Cookie: cookiesOf(signed.headers).map((c) => c.split(';')[0]).join('; ') } };
		servers.push(s);
	}
	await Promise.all(servers.map(settled));
	console.log(`${N} traces, ${onPostgres ? 'PostgreSQL' : 'SQLite'}; goal: ${GOAL_MS} ms of processor time for a page`);
	console.log(`${'list'.padEnd(20)} ${'rows'.padStart(6)} ${'bytes'.padStart(8)} ${'cpu ms'.padStart(8)} ${'wall ms'.padStart(8)} ${'page 10: cpu ms'.padStart(16)}`);
	for (const at of servers[0].lists.keys()) {
		const lists = servers.map((s) => s.lists[at]);
		await idle(servers);
		const first = await bestOf(servers, lists);
		const last = await bestOf(servers, await Promise.all(servers.map((s, k) => (first[k].answer.status === 200 ? tenth(s, lists[k], first[k].answer) : null))));
		for (const [k, { cpu, wall, answer }] of first.entries()) {
			const [name, , member] = lists[k];
			if (answer.status !== 200) throw new Error(`${name}: ${answer.status} ${answer.text}`);
			const list = answer.json[member];
			const met = Math.max(cpu, last[k]?.cpu ?? 0) <= GOAL_MS;
			console.log(`${(k ? '  other binary' : name).padEnd(20)} ${String(list.length).padStart(6)} ${String(answer.bytes.length).padStart(8)} ${cpu.toFixed(1).padStart(8)} ${wall.toFixed(0).padStart(8)} ${(last[k] ? `${last[k].cpu.toFixed(1)}` : '–').padStart(16)}  ${met ? 'met' : 'NOT MET'}`);
		}
	}
} finally {
	await t.end();
}
