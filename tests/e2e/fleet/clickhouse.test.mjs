/*
 * clickhouse.test.mjs - what people ask ClickHouse themselves: the queries of the guide and the panels of the dashboard
 * run on the server's tables and return what was sent; labels in any combination; texts that look like SQL are data.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { btrace } from '../make.mjs';
import { root, startServer, until } from '../server.mjs';

const at = process.env.TRACEWELL_TEST_CLICKHOUSE;
const PID = 4400, MS = 1_000_000;
const mapping = ['# v', '1,1,com.shop.Main onCreate ()V', '2,1,com.shop.Repo load ()V', '3,1,android.app.SharedPreferencesImpl getString ()V', ''].join('\n');
const trace = (ms) => btrace([[PID, 3, 4 * MS, ms * MS], [PID, 2, 3 * MS, (ms + 2) * MS], [PID, 1, MS, (ms + 6) * MS]], { pid: PID });
const NASTY = ["it's", "'); DROP TABLE traces; --", 'a\\', '\u00fc\\x27', '%s', 'x=y'];

test('tables, queries and dashboard', { skip: !at && 'TRACEWELL_TEST_CLICKHOUSE is not set' }, async (t) => {
	const s = await startServer(t);
	const database = s.args[s.args.indexOf('--analytics') + 1].split('/').at(-1);
	const ask = async (sql) => {
		const r = await fetch(`http://${at}/?database=${database}&default_format=JSONCompact`, { method: 'POST', body: sql });
		const text = await r.text();
		assert.equal(r.status, 200, `${sql}: ${text.slice(0, 300)}`);
		return JSON.parse(text).data;
	};
	await s.put('/api/v1/builds/b/methods', mapping);
	const N = 40;
	for (let i = 0; i < N; i++)
		assert.ok((await s.post('/api/v1/traces', trace(20 + i), { query: { app: 'shop', scenario: 'cold_start', version_name: i % 2 ? '8.3.0' : '8.3.1', build_id: 'b', os: String(13 + (i % 2)), device: 'Pixel',
			labels: JSON.stringify({ ram_mb: i % 4 < 2 ? 2048 : 8192, experiment: i % 4 ? 'a' : 'b', flavour: NASTY[i % NASTY.length] }) }, headers: { 'Idempotency-Key': `q-${i}` } })).status <= 202);
	await until(async () => {
		const { json } = await s.get('/api/v1/fleet/findings');
		return json.traces === N && json.looked === N && json.pending === 0 ? true : undefined;
	}, 'all counted and inspected');

	await t.test('the queries of the guide', async () => {
		const guide = fs.readFileSync(path.join(root, 'deploy/guides/clickhouse.md'), 'utf8');
		const queries = /```sql\n(.*?)```/s.exec(guide)[1].split(/;\s*\n/).filter((q) => q.trim());
		assert.equal(queries.length, 10);
		const rows = [];
		for (const q of queries) rows.push(await ask(q.replace(/^--.*$/gm, '')));
		assert.deepEqual(rows[0].map((r) => Number(r[2])), [20, 20]);
		for (const [i, r] of rows.entries()) assert.ok(r.length > 0 || [5, 9].includes(i), `query ${i + 1} returns rows`); // no CPU times; 30 of a device
		assert.equal(rows[4].length, 2, 'a version each');
		assert.ok(rows[3].some((r) => r[0] === 'com.shop.Repo.load'));
		assert.ok(rows[7].some((r) => r[0].endsWith('getString')), 'what load calls');
		assert.equal(Number(rows[9][0][1]), N);
	});

	await t.test('the panels of the dashboard', async () => {
		const board = JSON.parse(fs.readFileSync(path.join(root, 'deploy/grafana-clickhouse.json'), 'utf8'));
		const [[project]] = await ask(board.templating.list.find((v) => v.name === 'project').query);
		const values = { project, scenario: 'cold_start', version: '8.3.1', label: 'experiment', __from: Date.now() - 86400000, __to: Date.now() };
		for (const p of board.panels) {
			const rows = await ask(p.targets[0].rawSql.replace(/\$\{(\w+)\}/g, (_, name) => values[name] ?? assert.fail(name)));
			assert.ok(rows.length > 0, p.title);
			if (p.title.startsWith('Length by the values')) assert.deepEqual(rows.map((r) => [r[0], Number(r[1])]), [['a', 30], ['b', 10]]);
		}
	});

	await t.test('labels in any combination, and texts that look like SQL', async () => {
		const count = async (query) => (await s.get(`/api/v1/fleet/scenarios?by=all&${query}`)).json.traces;
		assert.equal(await count('label=experiment%3Da&class=low&os=14'), 10);
		assert.equal(await count('label=experiment%3Db&label=device%3DPixel&version_name=8.3.1'), 10);
		assert.equal(await count('label=experiment%3D'), 0);
		for (const [i, nasty] of NASTY.entries()) {
			const of = Array.from({ length: N }, (_, k) => k).filter((k) => k % NASTY.length === i).length;
			assert.equal(await count(`label=${encodeURIComponent(`flavour=${nasty}`)}`), of, nasty);
			for (const name of ['app', 'version_name', 'scenario', 'os', 'build_id']) assert.equal(await count(`${name}=${encodeURIComponent(nasty)}`), 0, `${name}=${nasty}`);
			assert.ok((await s.get(`/api/v1/fleet/search?method=.*&regex=1&thread=${encodeURIComponent(nasty)}`)).status < 500);
		}
		const { json } = await s.get('/api/v1/fleet/scenarios?by=label:flavour&class=high');
		assert.equal(json.groups.reduce((sum, g) => sum + g.duration_ns.traces, 0), 20);
		for (const key of NASTY.slice(0, 5)) assert.equal((await s.get(`/api/v1/fleet/scenarios?by=${encodeURIComponent(`label:${key}`)}`)).status, 200, key);
	});
});
