/*
 * sql.test.mjs - SELECT over a trace by HTTP: rows as JSON and CSV, and everything that a statement may not do.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { sampleMapping, sampleTrace } from '../make.mjs';
import { startServer } from '../server.mjs';

test('a SELECT over a trace', async (t) => {
	const s = await startServer(t);
	await s.put('/api/v1/builds/b1/methods', sampleMapping);
	const { id } = await s.trace(sampleTrace(50), { query: { build_id: 'b1' } });
	const other = s.key('read', 'elsewhere');
	const ask = (body, more = {}) => s.ask('POST', `/api/v1/traces/${id}/sql`, { key: s.read ?? s.key('read'), body: JSON.stringify(body), ...more });
	const rows = async (sql, more = {}) => {
		const answer = await ask({ sql, ...more });
		assert.equal(answer.status, 200, answer.text);
		return answer.json;
	};
	const refused = async (sql, status = 400) => {
		const answer = await ask({ sql });
		assert.equal(answer.status, status, `${sql}: ${answer.text}`);
		return answer.json.error.message;
	};

	await t.test('rows and columns', async () => {
		assert.deepEqual(await rows('SELECT count(*) AS n, sum(dur_ns) FROM slice'), { columns: ['n', 'sum(dur_ns)'], rows: [[150, 50 * (2000 + 3000 + 9000)]], truncated: false });
		const named = await rows("SELECT name, count(*) FROM slice WHERE name LIKE '%method1' GROUP BY name");
		assert.deepEqual(named.rows, [['com.example.app.Class0.method1', 50]]);
		assert.deepEqual((await rows('SELECT NULL, 1.5, x\'41\', \'a"b\'')).rows, [[null, 1.5, 'A', 'a"b']]);
		assert.deepEqual((await rows('SELECT 9e999, -9e999, 1.0/3e9, 2e18')).rows, [[null, null, 3.33333333333333e-10, 2e18]], 'infinity is not JSON; digits as in CSV');
		assert.deepEqual((await rows('WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<3) SELECT x FROM c')).rows, [[1], [2], [3]]);
		assert.equal(await refused('SELECT name FROM calls'), 'no such table: calls; the tables are slice, thread, method and call_tree');
		const some = await rows('SELECT id FROM slice ORDER BY id', { limit: 7 });
		assert.deepEqual([some.rows.length, some.truncated], [7, true]);
	});

	await t.test('as CSV', async () => {
		const answer = await ask({ sql: "SELECT 1 AS a, 'x,\"y\"' AS b UNION ALL SELECT 2, NULL", format: 'csv' });
		assert.match(answer.headers.get('content-type'), /^text\/csv/);
		assert.equal(answer.text, '"a","b"\r\n1,"x,""y"""\r\n2,\r\n');
		assert.equal(answer.headers.get('tracewell-truncated'), '0');
		const typeFor = async (accept, body = {}) => (await ask({ sql: 'SELECT 1', ...body }, { headers: { accept } })).headers.get('content-type').split(';')[0];
		assert.deepEqual([await typeFor('text/csv'), await typeFor('text/csv, */*;q=0.1'), await typeFor('*/*'), await typeFor('application/json, text/csv;q=0.5'), await typeFor('application/json;q=0.5, text/csv'), await typeFor('text/csv;q=0'), await typeFor('text/csv', { format: 'json' })],
			['text/csv', 'text/csv', 'application/json', 'application/json', 'text/csv', 'application/json', 'application/json']);
	});

	await t.test('nothing but the trace is read, nothing is written', async () => {
		for (const sql of ['PRAGMA temp_store=FILE', 'PRAGMA database_list', "ATTACH '/tmp/x.db' AS x", "ATTACH ':memory:' AS x", 'CREATE TABLE t(x)', 'CREATE TEMP TABLE t(x)', "VACUUM INTO '/tmp/x.db'",
			'INSERT INTO method(name) VALUES(1)', 'DELETE FROM slice', "SELECT load_extension('x')", "SELECT hex(fts3_tokenizer('simple'))", "SELECT readfile('/etc/passwd')", "SELECT writefile('/tmp/x','y')", 'SELECT * FROM sqlite_master', 'SELECT * FROM sqlite_schema',
			'SELECT * FROM pragma_database_list', 'SELECT * FROM pragma_compile_options', 'CREATE VIRTUAL TABLE v USING fts5(x)', 'BEGIN', 'SELECT 1; SELECT 2', '', '-- nothing', 'SELEC 1', 'ANALYZE', 'REINDEX', 'SAVEPOINT a'])
			await refused(sql);
		assert.deepEqual((await rows('SELECT count(*) FROM slice')).rows, [[150]]);
	});

	await t.test('time, memory and sizes are limited', async () => {
		assert.match(await refused('SELECT length(zeroblob(2000000))'), /too big/);
		await refused("WITH RECURSIVE c(x) AS (SELECT zeroblob(900000) UNION ALL SELECT zeroblob(900000) FROM c) SELECT count(*) FROM (SELECT x FROM c ORDER BY x LIMIT 100000)", 413);
		const wide = `SELECT ${Array.from({ length: 300 }, (_, i) => i).join(',')}`;
		await refused(wide);
		assert.equal((await ask({ sql: `SELECT ${'1+'.repeat(30000)}1` })).status, 400);
	});

	await t.test('one call of a function needs no more memory than a statement may', async () => {
		const escaped = `WITH v AS MATERIALIZED (SELECT replace(hex(zeroblob(490000)), '0', char(1)) AS x)`;
		const list = `WITH v AS MATERIALIZED (SELECT '[0' || replace(hex(zeroblob(249000)), '00', ',0') || ']' AS x)`;
		const times = (n, what) => Array.from({ length: n }, (_, i) => what.replace('#', i)).join(',');
		for (const sql of [`${escaped} SELECT length(json_array(${times(126, 'x')})) FROM v`, `${escaped} SELECT length(json_object(${times(63, "'#',x")})) FROM v`, `${escaped} SELECT ${times(200, 'json_group_array(x || #)')} FROM v`])
			assert.match(await refused(sql, 413), /more than 128 MB of memory/, sql);
		assert.deepEqual((await rows(`${list} SELECT json_extract(x,'$[7]'), json_array_length(x) FROM v`)).rows, [[0, 249001]]);
	});

	await t.test('functions refuse arguments that would take long', async () => {
		const long = (digit) => `replace(hex(zeroblob(490000)),'0','${digit}')`;
		for (const sql of [`SELECT trim(${long('a')}, ${long('b')}||'a')`, `SELECT instr(${long('a')}, ${long('a')}||'b')`, `SELECT replace(${long('a')}, ${long('a')}||'b', '')`,
			"SELECT printf('%.*c', 1000000000, 'x')", "SELECT format('%.1000000000c', 'x')", `SELECT printf(replace(hex(zeroblob(900)),'0','%9999c'), 'x')`, `SELECT json_patch('{"a":1}', ${long('1')}) || json_patch(${long('1')}, ${long('1')})`])
			assert.match(await refused(sql), /too many or too long/, sql);
		assert.deepEqual((await rows("SELECT trim(' a '), trim('xax','x'), ltrim('xax','x'), rtrim('xax','x'), instr('abc','c'), replace('abc','b','--'), printf('%.1f ms of %s', 1.25, 'a'), format('%5d', 7), 'Abc' LIKE 'a%', 'a%' LIKE 'a!%' ESCAPE '!', 'abc' GLOB 'a*', json_patch('{\"a\":1}','{\"b\":2}'), trim(NULL,'a'), instr(x'0102',x'02')")).rows,
			[['a', 'a', 'ax', 'xa', 3, 'a--c', '1.3 ms of a', '    7', 1, 1, 1, '{"a":1,"b":2}', null, 2]]);
		assert.match(await refused("SELECT trim('a','b','c')"), /wrong number of arguments/);
	});

	await t.test('replaced functions return what SQLite returns', async () => {
		const many = Array.from({ length: 30 }, (_, i) => i);
		for (const [sql, value] of [["printf('%d * 2', 3)", '3 * 2'], ["printf('%d00000', 7)", '700000'], ["printf('100%% of 12345* %5d', 7)", '100% of 12345*     7'], ["printf('%s%', 'a')", 'a%'], [`printf('${'%d'.repeat(30)}', ${many.join(',')})`, many.join('')],
			["x'6162' LIKE 'a%'", 0], ["12 LIKE '1%'", 1], ["NULL LIKE 'a'", null], ["'ab' LIKE x'6125'", 0],
			["json_array(json_set('{}', '$.a', json('[1, 2]'), '$.b', '[1]'))", '[{"a":[1,2],"b":"[1]"}]'], ["json_insert('[]', '$[0]', json_patch('{}', json('{\"a\":1}')))", '[{"a":1}]'], ["json_replace('{\"a\":1}', '$.a', NULL)", '{"a":null}']])
			assert.deepEqual((await rows(`SELECT ${sql}`)).rows, [[value]], sql);
		assert.match(await refused(`SELECT 'a' LIKE ${`'${'a'.repeat(1001)}'`}`), /pattern too complex/);
	});

	await t.test('a path of JSON does not use up the stack', async () => {
		for (const name of ['json_set', 'json_insert', 'json_replace'])
			assert.match(await refused(`SELECT ${name}('{}', '$' || replace(hex(zeroblob(300000)), '00', '.a'), 1)`), /too many or too long/, name);
		assert.equal((await rows("SELECT length(json_set('{}', '$' || replace(hex(zeroblob(499)), '00', '.a'), 1))")).rows[0][0], 499 * 6 + 1);
		for (const open of ['[', '{"a":'])
			await ask({ sql: `SELECT json(replace(hex(zeroblob(1999)), '00', '${open}') || '1' || replace(hex(zeroblob(1999)), '00', '${open === '[' ? ']' : '}'}'))` });
		assert.deepEqual((await rows('SELECT 1')).rows, [[1]]);
	});

	await t.test('bodies and callers', async () => {
		for (const body of [{}, { sql: 1 }, { sql: 'SELECT 1', limit: 0 }, { sql: 'SELECT 1', limit: 100001 }, { sql: 'SELECT 1', limit: 'x' }, { sql: 'SELECT 1', format: 'xml' }, { sql: 'SELECT 1', more: 1 }])
			assert.equal((await ask(body)).status, 400, JSON.stringify(body));
		assert.equal((await ask({ sql: 'SELECT 1' }, { key: null })).status, 401);
		assert.equal((await ask({ sql: 'SELECT 1' }, { key: s.ingest })).status, 403);
		assert.equal((await ask({ sql: 'SELECT 1' }, { key: other })).status, 404, 'of another project');
	});
});
