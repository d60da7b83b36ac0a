/*
 * clickhouse.test.mjs - users' own queries: those of the guide and of the dashboard's panels run on the server's tables
 * and return the uploaded values; labels in any combination; texts that look like SQL are data; deleted traces are
 * absent.  And the server's connection: TLS, a password, the next of several hosts.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import path from 'node:path';
import { test } from 'node:test';

import { fleet } from '../../gen/anr_fleet.mjs';
import { btrace } from '../make.mjs';
import { atEnd, newFolder, root, sleep, startServer, until } from '../server.mjs';

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
	const anrs = fleet(42).slice(0, 3);
	for (const x of anrs)
		assert.ok((await s.post('/api/v1/traces', x.text, { query: { app: 'shop', scenario: 'anr', version_name: x.version, device: x.device, labels: JSON.stringify({ user_id: x.user }) }, headers: { 'Idempotency-Key': `anr-${x.i}` } })).status <= 202);
	let now;
	await until(async () => {
		now = (await s.get('/api/v1/fleet/findings?scenario=cold_start')).json;
		return now.traces === N && now.examined === N && now.pending === 0 ? true : undefined;
	}, () => `all counted and inspected: ${JSON.stringify({ ...now, rules: undefined })}`);
	await until(async () => (Number((await ask("SELECT uniqExact(trace) FROM anrs WHERE kind != ''"))[0][0]) === anrs.length ? true : undefined), 'copies of the ANRs');

	await t.test('the queries of the guide', async () => {
		const guide = fs.readFileSync(path.join(root, 'deploy/guides/clickhouse.md'), 'utf8');
		const queries = /```sql\n(.*?)```/s.exec(guide)[1].split(/;\s*\n/).filter((q) => q.trim());
		assert.equal(queries.length, 13);
		const rows = [];
		for (const q of queries) rows.push(await ask(q.replace(/^--.*$/gm, '')));
		assert.deepEqual(rows[0].map((r) => Number(r[2])), [20, 20]);
		for (const [i, r] of rows.entries()) assert.ok(r.length > 0 || i === 5, `query ${i + 1} returns rows`); // no CPU times
		assert.equal(rows[4].length, 2, 'a version each');
		assert.ok(rows[3].some((r) => r[0] === 'com.shop.Repo.load'));
		assert.ok(rows[7].some((r) => r[0].endsWith('getString')), 'what load calls');
		assert.equal(Number(rows[9][0][1]), N);
		assert.equal(rows[10].reduce((sum, r) => sum + Number(r[2]), 0), anrs.length, 'ANRs by group');
		assert.ok(rows[10].every((r) => /^[0-9a-f]{16}$/.test(r[0]) && r[1] && Number(r[3]) > 0), JSON.stringify(rows[10]));
		assert.ok(rows[12].some((r) => r[0] === 'com.shop.Repo.load' && Number(r[1]) === 20), JSON.stringify(rows[12]));
		assert.ok(rows[11].some((r) => r[1].endsWith('getString')) && rows[11].every((r) => r[0]), 'each with its thread');
	});

	await t.test('the panels of the dashboard', async () => {
		const board = JSON.parse(fs.readFileSync(path.join(root, 'deploy/grafana-clickhouse.json'), 'utf8'));
		const [[project]] = await ask(board.templating.list.find((v) => v.name === 'project').query);
		const values = { project, scenario: 'cold_start', version: '8.3.1', label: 'experiment', __from: Date.now() - 86400000, __to: Date.now() };
		for (const p of board.panels) {
			const rows = await ask(p.targets[0].rawSql.replace(/\$\{(\w+)\}/g, (_, name) => values[name] ?? assert.fail(name)));
			assert.ok(rows.length > 0, p.title);
			if (p.title.startsWith('Duration by the values')) assert.deepEqual(rows.map((r) => [r[0], Number(r[1])]), [['a', 30], ['b', 10]]);
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

	await t.test('a deleted trace counts no more, and its rows go', async () => {
		const { traces } = (await s.get('/api/v1/traces?scenario=cold_start&limit=1')).json;
		const id = traces[0].id;
		const rates = async () => {
			const { json } = await s.get('/api/v1/anr/groups');
			return [json.anrs, json.traces, (await s.get(`/api/v1/anr/groups/${json.groups[0].key}`)).json.by_version];
		};
		const before = await rates();
		assert.equal((await s.ask('DELETE', `/api/v1/traces/${id}`)).status, 204);
		await until(async () => ((await s.get('/api/v1/fleet/scenarios?by=all&scenario=cold_start')).json.traces === N - 1 ? true : undefined), 'taken out');
		const left = `SELECT sum(n) FROM (${['traces', 'method_times', 'call_trees', 'longest_calls', 'findings'].map((table) => `SELECT count() AS n FROM ${table} WHERE trace = '${id}'${table === 'traces' ? ' AND deleted = 0' : ''}`).join(' UNION ALL ')})`;
		await until(async () => (Number((await ask(left))[0][0]) === 0 ? true : undefined), 'rows removed');
		assert.equal((await s.get('/api/v1/fleet/scenarios?by=all&scenario=cold_start')).json.traces, N - 1);
		assert.deepEqual(await rates(), before, 'its version had as many traces when the ANRs were reported');
		assert.deepEqual(await ask(`SELECT app, version_name, device, length(label_keys), duration_ns FROM traces WHERE trace = '${id}' AND deleted = 2`), [['shop', traces[0].meta.version_name, '', '0', '0']]);
	});

	await t.test('methods by kind of thread, as in the trace alone', async () => {
		const calls = [[PID, 3, 4 * MS, 5 * MS], [PID, 2, 3 * MS, 7 * MS], [PID, 1, MS, 20 * MS], [PID + 1, 2, 2 * MS, 3 * MS], [PID + 2, 2, 2 * MS, 4 * MS], [PID + 2, 3, 8 * MS, MS]];
		const { id } = await s.trace(btrace(calls, { pid: PID }), { query: { app: 'shop', scenario: 'threads', build_id: 'b' } });
		await until(async () => ((await s.get('/api/v1/fleet/scenarios?by=all&scenario=threads')).json.traces === 1 ? true : undefined), 'counted');
		const kinds = new Map((await s.get(`/api/v1/traces/${id}/threads`)).json.threads.map((x) => [x.is_main ? 'main' : x.name.replace(/\d+/g, '#') || 'thread', x]));
		assert.ok(kinds.size >= 2, JSON.stringify([...kinds]));
		for (const kind of [...kinds.keys(), 'others']) {
			const of = calls.filter(([tid]) => (tid === PID) === (kind === 'main'));
			const { json } = await s.get(`/api/v1/fleet/methods?scenario=threads&metrics=wall,calls&thread=${encodeURIComponent(kind)}`);
			const sums = json.methods.map((m) => [m.name.split('.').at(-1), m.calls.sum, m.wall.sum]).sort();
			const truth = ['getString', 'load', 'onCreate'].map((name, i) => [name, of.filter((c) => c[1] === 3 - i)]).filter(([, own]) => own.length).map(([name, own]) => [name, own.length, own.reduce((sum, c) => sum + c[3], 0)]);
			assert.deepEqual(sums, truth, kind);
			const one = (await s.get(`/api/v1/fleet/method?name=com.shop.Repo.load&by=all&scenario=threads&metrics=calls&thread=${encodeURIComponent(kind)}`)).json;
			assert.equal(one.groups[0].calls.sum, of.filter((c) => c[1] === 2).length);
		}
	});
});

/* ClickHouse, with an action before each request. */
async function startBetween(t, before) {
	const gate = http.createServer(async (req, res) => {
		const pieces = [];
		for await (const piece of req) pieces.push(piece);
		const body = Buffer.concat(pieces);
		await before(body.toString('latin1'));
		const answer = await fetch(`http://${at}${req.url}`, { method: 'POST', body });
		res.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()));
	});
	await new Promise((done) => gate.listen(0, '127.0.0.1', done));
	atEnd(t, () => { gate.close(); gate.closeAllConnections(); });
	return `127.0.0.1:${gate.address().port}`;
}

test('traces that are counted again during an answer do not mix their figures', { skip: !at && 'TRACEWELL_TEST_CLICKHOUSE is not set' }, async (t) => {
	const database = `mixed_${process.pid}`, ask = async (sql) => {
		const r = await fetch(`http://${at}/?database=${database}&default_format=JSONCompact`, { method: 'POST', body: sql });
		assert.equal(r.status, 200, `${sql}: ${await r.clone().text()}`);
		return r.text();
	};
	const columns = async (table) => JSON.parse(await ask(`SELECT groupArray(name) FROM system.columns WHERE database = '${database}' AND table = '${table}'`)).data[0][0];
	let replaced = -1, first;
	/* Another attempt of the trace, with one method each time. */
	const replace = async (sql) => {
		if (replaced < 0 || !/FROM (method_times|call_trees)/.test(sql)) return;
		const method = first.methods[replaced++ % first.methods.length];
		for (const [table, where] of [['method_times', `method = ${method}`], ['call_trees', `method = ${method} OR parent = 0`], ['traces', '1']]) {
			const names = await columns(table);
			await ask(`INSERT INTO ${table} (${names}) SELECT ${names.map((n) => (n === 'attempt' ? `attempt + ${replaced}` : n))} FROM ${table} WHERE attempt = ${first.attempt} AND (${where})`);
		}
	};
	atEnd(t, () => fetch(`http://${at}/`, { method: 'POST', body: `DROP DATABASE IF EXISTS ${database}` }));
	const s = await startServer(t, { args: ['--analytics', `clickhouse://${await startBetween(t, replace)}/${database}`] });
	await s.put('/api/v1/builds/b/methods', mapping);
	await s.trace(trace(20), { query: { app: 'shop', scenario: 'open', build_id: 'b' } });
	await until(async () => ((await s.get('/api/v1/fleet/scenarios?by=all')).json.traces === 1 ? true : undefined), 'counted');
	const [row] = JSON.parse(await ask('SELECT toString(any(attempt)),groupArray(toString(method)) FROM method_times')).data;
	first = { attempt: row[0], methods: row[1] };
	assert.equal(first.methods.length, 3);
	const methods = async (query) => (await s.get(`/api/v1/fleet/methods?metrics=wall,self,calls&sort=p95_wall&${query}`)).json.methods.map((m) => [m.name.split('.').at(-1), m.wall.traces, m.self.traces, m.calls.traces]).sort();

	replaced = 0;
	assert.deepEqual(await methods('os='), ['getString', 'load', 'onCreate'].map((name) => [name, 1, 1, 1]));
	assert.ok(replaced > 3, `counted again ${replaced} times`);
	replaced = -1;
	assert.equal((await methods('class=')).length, 1, 'then the last attempt');
});

/* A TLS proxy for ClickHouse with a user and a password; counts its requests. */
async function startGate(t, files, login) {
	const gate = { let_in: 0, refused: 0 };
	const server = https.createServer({ key: fs.readFileSync(files.key), cert: fs.readFileSync(files.cert) }, async (req, res) => {
		const pieces = [];
		for await (const piece of req) pieces.push(piece);
		if (req.headers['x-clickhouse-user'] !== login.user || req.headers['x-clickhouse-key'] !== login.password) {
			gate.refused++;
			return res.writeHead(401).end('Code: 193, e.displayText() = DB::Exception: Wrong password');
		}
		gate.let_in++;
		const answer = await fetch(`http://${at}${req.url}`, { method: 'POST', body: Buffer.concat(pieces) });
		res.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()));
	});
	gate.end = () => new Promise((done) => {
		server.close(done);
		server.closeAllConnections();
	});
	await new Promise((done) => server.listen(0, '127.0.0.1', done));
	atEnd(t, gate.end);
	gate.at = `127.0.0.1:${server.address().port}`;
	return gate;
}

test('a search leads to its calls, however long ClickHouse takes', { skip: !at && 'TRACEWELL_TEST_CLICKHOUSE is not set' }, async (t) => {
	let late = 0;
	const database = `late_${process.pid}`;
	atEnd(t, () => fetch(`http://${at}/`, { method: 'POST', body: `DROP DATABASE IF EXISTS ${database}` }));
	const s = await startServer(t, { args: ['--analytics', `clickhouse://${await startBetween(t, () => sleep(late))}/${database}`] });
	await s.put('/api/v1/builds/b/methods', mapping);
	await s.trace(trace(20), { query: { app: 'shop', scenario: 'open', build_id: 'b' } });
	await until(async () => ((await s.get('/api/v1/fleet/scenarios?by=all')).json.traces === 1 ? true : undefined), 'counted');
	let found;
	late = 500; /* more than files may take */
	await until(async () => {
		const { json } = await s.get('/api/v1/fleet/search?method=com.shop.Repo.load');
		assert.equal(json.hits.length, 1, JSON.stringify(json));
		found = json.hits[0];
		return found.call ? true : undefined;
	}, () => `the call of ${JSON.stringify(found)}`);
	assert.equal(found.call.duration_ns, found.max_ns);
	late = 0;
});

test('TLS, a password, and the next host', { skip: !at && 'TRACEWELL_TEST_CLICKHOUSE is not set' }, async (t) => {
	const dir = newFolder(t, 'tw-ch-tls-');
	const certificate = (name) => {
		const [key, cert] = ['key', 'crt'].map((end) => path.join(dir, `${name}.${end}`));
		execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert], { stdio: 'ignore' });
		return { key, cert };
	};
	const ours = certificate('ours'), another = certificate('another');
	const login = { user: 'tracewell', password: 'first' };
	const password = path.join(dir, 'password');
	fs.writeFileSync(password, 'first\n');
	const gates = [await startGate(t, ours, login), await startGate(t, ours, login)];
	const database = `tls_${process.pid}`;
	const start = (ca) => startServer(t, { args: ['--analytics', `clickhouse+https://${gates.map((g) => g.at).join(',')}/${database}`, '--analytics-user', login.user, '--analytics-password-file', password, '--analytics-ca-file', ca] });
	atEnd(t, () => fetch(`http://${at}/`, { method: 'POST', body: `DROP DATABASE IF EXISTS ${database}` }));
	const s = await start(ours.cert);
	const counted = async (n) => {
		assert.ok((await s.post('/api/v1/traces', trace(10 + n), { query: { app: 'shop', scenario: 'open' }, headers: { 'Idempotency-Key': `tls-${n}` } })).status <= 202);
		await until(async () => ((await s.get('/api/v1/fleet/scenarios?by=all')).json.traces === n ? true : undefined), `${n} counted`);
	};

	await counted(1);
	assert.deepEqual([gates[0].refused, gates[1].refused], [0, 0], 'the password');
	await gates[0].end();
	const before = gates.map((g) => g.let_in);
	await counted(2);
	assert.ok(gates[1].let_in > before[1] && gates[0].let_in === before[0], 'the next host');
	login.password = 'second';
	fs.writeFileSync(password, 'second');
	await counted(3);

	const wrong = await start(another.cert);
	assert.equal((await wrong.get('/api/v1/fleet/scenarios?by=all')).status, 503, 'a certificate of another authority');
	assert.match(wrong.log + (await wrong.get('/api/v1/fleet/scenarios?by=all')).text, /certificate|SSL/i);
});
