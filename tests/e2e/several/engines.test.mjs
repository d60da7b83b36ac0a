/*
 * engines.test.mjs - SQLite and PostgreSQL answer alike: two servers with the same traces, lists with filters drawn by
 * lot, their pages, totals and facets.  Pages miss no row, and repeat none, while others are inserted and deleted.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { lots } from '../cluster.mjs';
import { sampleTrace } from '../make.mjs';
import { postgresIsThere, startPostgres } from '../postgres.mjs';
import { Server, atEnd, inFull, newFolder, until } from '../server.mjs';

const TRACES = 48;
const LISTS = inFull(4000, 250);
const PAGE = 5;
const DAY_MS = 86400000;
const started = (n) => 1700000000000 + n * DAY_MS;
const HOUR_MS = DAY_MS / 24, now = Date.now();
const recorded = (n) => now - (TRACES + 1 - n) * HOUR_MS; // earlier than its arrival, by less than 30 days

/* Texts that a pattern, an array, JSON or a literal would read otherwise. */
const texts = ['', 'shop', 'SHOP', 'sh_p', 'sh%p', '%', '_', '\\', '\\%', 'a\\', "it's", '"quoted"', '{a,b}', 'null', 'NULL', '$1', '?1', 'Näher', 'NÄHER', 'İstanbul', 'ß', '中文', '\u{1F600}', 'e\u0301', 'a\u200Bb', 'x'.repeat(255)];
const labels = [{}, { user: '47' }, { user: '471' }, { user: 47 }, { 'a=b': 'c=d' }, { user: 'a,b' }, { user: '}' }, { note: '{"user":"47"}' }, { wifi: true }, { wifi: 'true' }, { 'k%': '_' }, { k: '\\' }, { k: '"' }, { ü: 'Ä' }, { n: 5 }, { n: 55 }];
const tags = ['slow', 'a b', '%', 'Ä', '\\', "'"];
const codes = ['', '0', '7', '007', '8.1', '803', '99999999999999999999', 'ten'];

const of = (draw, list) => list[Math.floor(draw() * list.length)];
const meta = (draw, n) => ({ app: of(draw, texts), version_name: of(draw, texts), version_code: of(draw, codes), device: `${of(draw, texts)}${n % 7}`, scenario: of(draw, texts), build_id: of(draw, ['', 'b1', 'B1', 'b%']), os: of(draw, ['13', '14', '']), process: of(draw, texts),
	session_id: of(draw, ['', 's', 'S', 's_']), started_at: String(of(draw, [recorded(n), recorded(0), 0])), labels: JSON.stringify(of(draw, labels)) });

/* Part of a text, except one that may occur in an id: the servers have different ids. */
function part(draw) {
	const all = [...of(draw, texts)];
	const from = Math.floor(draw() * all.length);
	const text = all.slice(from, from + 1 + Math.floor(draw() * 4)).join('');
	return /^[0-9a-hjkmnp-tv-z]*$/i.test(text) ? part(draw) : text;
}
const label = (draw) => {
	const [key, value] = of(draw, Object.entries(of(draw, labels)).length ? Object.entries(of(draw, labels.slice(1))) : [['user', '47']]);
	return `${key}=${draw() < 0.3 ? '' : value}`;
};
const filters = {
	app: (draw) => of(draw, texts.slice(1)), version_name: (draw) => of(draw, texts.slice(1)), version_code: (draw) => of(draw, codes.slice(1)), scenario: (draw) => of(draw, texts.slice(1)), process: (draw) => of(draw, texts.slice(1)),
	build_id: (draw) => of(draw, ['b1', 'B1', 'b%']), os: (draw) => of(draw, ['13', '14']), session_id: (draw) => of(draw, ['s', 'S', 's_']), device: (draw) => `${of(draw, texts)}${Math.floor(draw() * 7)}`,
	version_code_min: (draw) => of(draw, ['0', '7', '804', '9223372036854775807']), version_code_max: (draw) => of(draw, ['0', '7', '804', '9223372036854775807']), state: (draw) => of(draw, ['ready', 'failed', 'queued', 'archived', 'decoding']), pinned: (draw) => of(draw, ['0', '1']),
	recorded_since: (draw) => String(recorded(Math.floor(draw() * TRACES))), recorded_until: (draw) => String(recorded(Math.floor(draw() * TRACES))), tag: (draw) => of(draw, tags), label, q: (draw) => (draw() < 0.5 ? part(draw) : `${part(draw)} ${part(draw)}`),
};

function drawn(draw) {
	const query = new URLSearchParams({ sort: of(draw, ['slices', 'duration', 'bytes', 'created']), order: of(draw, ['asc', 'desc']) });
	for (let n = 1 + Math.floor(draw() * 3); n > 0; n--) {
		const name = of(draw, Object.keys(filters));
		if (!query.has(name) || name === 'label') query.append(name, filters[name](draw));
	}
	return query;
}

const skip = postgresIsThere ? false : 'PostgreSQL 15 or later is not installed';

test('two servers with the same traces, one on each engine', { skip }, async (t) => {
	const db = await startPostgres(t);
	const servers = await Promise.all([[], ['--catalog', db.url('engines')]].map(async (args) => {
		const s = new Server(newFolder(t, 'tw-engines-'), ['--device-requests', '0', ...args]);
		atEnd(t, () => s.stop());
		await s.start();
		return s;
	}));
	const numbers = await Promise.all(servers.map(fill));

	await t.test('lists by any filters have the same rows, totals and pages', async () => {
		const draw = lots(4711);
		let found = 0;
		for (let n = 0; n < LISTS; n++) {
			const query = drawn(draw);
			const [one, other] = await Promise.all(servers.map((s, k) => whole(s, numbers[k], query)));
			assert.deepEqual(other, one, `${query}`);
			found += one.total > 0;
		}
		assert.ok(found > LISTS / 5, `${found} of ${LISTS} lists have rows`);
	});

	await t.test('a condition that is not valid is refused alike', async () => {
		for (const query of ['q=%FF', 'q=a%00b', 'app=%C3', 'label=%00%3D1', 'label==1', 'tag=%ED%A0%80', `q=${'x'.repeat(10000)}`, `app=${'%25'.repeat(10000)}`, `label=k%3D${'%5C'.repeat(5000)}`, 'since=-1', 'version_code_min=9223372036854775808', `q=${'a+'.repeat(9)}`, 'cursor=1', 'cursor=x', `cursor=99999999999999999999.${'0'.repeat(26)}`]) {
			const [one, other] = await Promise.all(servers.map(async (s) => ((answer) => [answer.status, answer.json?.error ?? answer.json?.total])(await s.get(`/api/v1/traces?${query}`))));
			assert.deepEqual(other, one, query);
			assert.ok(one[0] < 500, `${query}: ${one[0]}`);
		}
	});

	await t.test('facets have the same values and counts', async () => {
		for (const column of ['app', 'version_name', 'version_code', 'build_id', 'device', 'os', 'scenario', 'process', 'abi', 'state', 'tag', 'label']) {
			const [one, other] = await Promise.all(servers.map(async (s) => (await s.get(`/api/v1/facets?column=${column}`)).json.values));
			assert.deepEqual(other, one, column);
		}
	});

	await t.test('pages return each row once while others are inserted and deleted', () => Promise.all(servers.map(async (s, k) => {
		const sql = (text) => (k ? db.sql(text, 'engines') : s.sql(text));
		await tracesOnce(s, [...numbers[k].keys()]);
		await regressionsOnce(s, sql);
		await auditOnce(s, numbers[k].keys().next().value);
	})));
});

/* Reads all pages, with a change after each; those of `permanent` are in them once. */
async function eachOnce(s, target, member, permanent, change, key = s.read) {
	const ids = [];
	for (let cursor = ''; cursor != null; ) {
		const { json } = await s.get(`${target}&limit=${PAGE}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`, { key });
		ids.push(...json[member].map(({ id }) => id));
		cursor = json.next_cursor;
		await change(ids.at(-1));
	}
	assert.deepEqual(ids.filter((id) => permanent.includes(id)).sort(), [...permanent].sort(), target);
}

/* Deletes the last row of the page if it may, otherwise another; adds one. */
function replace(mortal, add, remove) {
	let n = 0;
	return async (last) => {
		const id = mortal.includes(last) ? last : mortal[n++ % mortal.length];
		mortal.splice(mortal.indexOf(id), 1);
		await remove(id);
		mortal.push(await add(n));
	};
}

async function tracesOnce(s, permanent) {
	const add = async (n) => (await s.post('/api/v1/traces', sampleTrace(3 + ((7 * n) % TRACES)), { query: { app: 'mortal' }, headers: { 'Idempotency-Key': `m${Math.random()}` } })).json.id;
	const mortal = [];
	for (let n = 0; n < 2 * PAGE; n++) mortal.push((await s.decoded(await add(n))).id);
	const change = replace(mortal, add, (id) => s.ask('DELETE', `/api/v1/traces/${id}`));
	for (const query of ['sort=created&order=desc', 'sort=created&order=asc', 'sort=slices&order=desc', 'sort=duration&order=asc', 'sort=bytes&order=desc']) await eachOnce(s, `/api/v1/traces?${query}`, 'traces', permanent, change);
	const found = (await s.get('/api/v1/traces?q=o&limit=500')).json.traces.map(({ id }) => id).filter((id) => permanent.includes(id));
	await eachOnce(s, '/api/v1/traces?q=o', 'traces', found, change);
}

/* Many have the same day, change and time. */
async function regressionsOnce(s, sql) {
	const p = sql('SELECT min(project_id) FROM trace');
	let sum = 0;
	const add = (kind, many) => {
		const all = Array.from({ length: many }, () => [`01REG${kind}${String((sum * 7919) % 100003).padStart(20, '0')}`, sum++]);
		sql(`INSERT INTO regression(project_id,regression_id,app,scenario,method,descriptor,base,head,day,percent,before_ns,after_ns,change_ppm,low_ppm,high_ppm,score_milli,n_before,n_after,before_trace,after_trace,status,first_ms,last_ms)
			VALUES ${all.map(([id, n]) => `('${p}','${id}','shop','start','m${n}','','1','2',${20000 + (n % 3)},95,1000,${2000 + (n % 2)},500000,300000,700000,9000,50,50,'','',0,1,${started(n % 3)})`)}`);
		return all.map(([id]) => id);
	};
	const [permanent, mortal] = [add('P', 4 * PAGE), add('M', 2 * PAGE)];
	const change = replace(mortal, () => add('M', 1)[0], (id) => sql(`DELETE FROM regression WHERE regression_id='${id}'`));
	for (const [target, member] of [['regressions?status=all', 'regressions'], ['inbox?state=all', 'items']]) await eachOnce(s, `/api/v1/${target}`, member, permanent, change);
}

/* Nothing deletes entries but their age. */
async function auditOnce(s, id) {
	const edit = () => s.ask('PATCH', `/api/v1/traces/${id}`, { key: s.write, body: JSON.stringify({ title: `${Math.random()}` }) });
	for (let n = 0; n < 2 * PAGE; n++) await edit();
	const before = (await s.get('/api/v1/audit?limit=500', { key: s.admin })).json.entries.map((entry) => entry.id);
	await eachOnce(s, '/api/v1/audit?', 'entries', before, edit, s.admin);
}

/* The traces' numbers by id.  Each has another number of calls, so that orders do not depend on ids. */
async function fill(s) {
	const draw = lots(29);
	const ids = [];
	for (let n = 0; n < TRACES; n++) {
		const answer = await s.post('/api/v1/traces', sampleTrace(2 + n), { query: meta(draw, n), headers: { 'Idempotency-Key': `k${n}` } });
		assert.equal(answer.status, 202, answer.text);
		ids.push(answer.json.id);
	}
	await until(async () => ((await s.get('/api/v1/traces?state=queued')).json.total + (await s.get('/api/v1/traces?state=decoding')).json.total === 0 ? true : undefined), 'decoded');
	for (const [n, id] of ids.entries())
		if (n % 3 === 0) {
			const answer = await s.ask('PATCH', `/api/v1/traces/${id}`, { key: s.write, body: JSON.stringify({ tags: tags.filter(() => draw() < 0.3), title: of(draw, texts).slice(0, 200), pinned: draw() < 0.3 }) });
			assert.equal(answer.status, 200, answer.text);
		}
	return new Map(ids.map((id, n) => [id, n]));
}

/* All pages of a list as numbers of traces, and its total. */
async function whole(s, numbers, query) {
	const of_list = { status: 0, total: 0, traces: [] };
	for (let cursor = ''; cursor != null; ) {
		const { status, json } = await s.get(`/api/v1/traces?${query}&limit=${PAGE}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
		Object.assign(of_list, { status, total: json.total, error: json.error });
		of_list.traces.push(...(json.traces ?? []).map(({ id }) => numbers.get(id)));
		cursor = json.next_cursor;
	}
	if (of_list.status === 200) assert.equal(of_list.traces.length, of_list.total, `${query}: its total`);
	assert.equal(new Set(of_list.traces).size, of_list.traces.length, `${query}: none twice`);
	if (query.get('sort') === 'created') of_list.traces.sort((a, b) => a - b);
	return of_list;
}
