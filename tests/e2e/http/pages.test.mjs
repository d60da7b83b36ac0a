/* pages.test.mjs - lists that have a cursor return each row once, in order, and count all of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { cookiesOf, startServer, tracewell } from '../server.mjs';

const PROJECTS = 230, REGRESSIONS = 250, ALERTS = 30, POISONED = 5;
const many = (n, row) => Array.from({ length: n }, (_, i) => `(${row(i, String(i).padStart(21, '0'))})`).join(',');

/* All rows of a list, page by page. */
async function pages(s, target, member, options) {
	const rows = [];
	for (let cursor = ''; cursor !== null;) {
		const { status, json, text } = await s.get(`${target}${target.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`, options);
		assert.equal(status, 200, text);
		assert.ok(json[member].length > 0, `${target}: an empty page`);
		rows.push(...json[member]);
		cursor = json.next_cursor;
	}
	assert.equal(new Set(rows.map((r) => r.id)).size, rows.length, `${target}: a row twice`);
	return rows;
}

const isSorted = (rows, compare) => rows.every((r, i) => i === 0 || compare(rows[i - 1], r) < 0);

test('projects: all by pages, the first of them in the session, and by the command', async (t) => {
	const s = await startServer(t);
	const key = s.read;
	s.sql(`INSERT INTO project(project_id,name,created_ms) VALUES ${many(PROJECTS, (i, id) => `'01PRO${id}','project ${i}',1`)}`);
	const link = tracewell('link', 'create', '--data', s.data).trim();
	const signed = await s.ask('POST', '/api/v1/session', { key: null, body: JSON.stringify({ token: link.split('#')[1] }), headers: { 'X-Tracewell': '1' } });
	const root = { key: null, headers: { Cookie: cookiesOf(signed.headers).map((c) => c.split(';')[0]).join('; ') } };
	const all = await pages(s, '/api/v1/projects', 'projects', root);
	assert.equal(all.length, PROJECTS + 1);
	assert.ok(isSorted(all, (a, b) => (a.id < b.id ? -1 : 1)));
	const session = (await s.get('/api/v1/session', root)).json;
	assert.deepEqual(session.projects, all.slice(0, 200));
	assert.equal(session.projects_are_capped, true);
	const own = (await s.get('/api/v1/session', { key })).json;
	assert.deepEqual([own.projects.map((p) => p.name), own.projects_are_capped, own.project.name], [['test'], false, 'test']);
	const last = all.at(-1);
	const there = (await s.get('/api/v1/session', { ...root, query: { project: last.id } })).json;
	assert.deepEqual([there.project, there.projects], [last, [...all.slice(0, 200), last]]);

	const lines = tracewell('project', 'list', '--data', s.data, '--json').split('\n').map((l) => JSON.parse(l));
	assert.deepEqual(lines, all);
	assert.match(tracewell('project', 'list', '--data', s.data), /^\S{26}\t1970-01-01T00:00Z\tproject 7$/m);
});

test('regressions, the inbox and the quarantine', async (t) => {
	const s = await startServer(t);
	const p = (await s.get('/api/v1/projects', { key: s.admin })).json.projects[0].id;
	s.sql(`INSERT INTO regression(project_id,regression_id,app,scenario,method,descriptor,base,head,day,percent,before_ns,after_ns,change_ppm,low_ppm,high_ppm,score_milli,n_before,n_after,before_trace,after_trace,status,owner,muted_until_ms,first_ms,last_ms) VALUES
		${many(REGRESSIONS, (i, id) => `'${p}','01REG${id}','app','page','m${i}','','1','2',${20000 + (i % 3)},50,1000,${2000 + (i % 7)},1,1,1,1,9,9,'','',${i % 4},'${i % 2 ? 'ann' : ''}',${i % 5 ? 0 : '9000000000000'},1,${1000 + (i % 11)}`)}`);
	s.sql(`INSERT INTO alert_rule(project_id,rule_id,name,kind,app,scenario,version_name,method,percentile,limit_micro,min_traces,days,mail,author,created_ms,changed_ms) VALUES ('${p}','r','slow',0,'','','','',95,1,1,7,0,'ann',1,1)`);
	s.sql(`INSERT INTO alert(project_id,alert_id,rule_id,app,subject,title,trace_id,value_micro,traces,is_over,status,first_ms,last_ms) VALUES ${many(ALERTS, (i) => `'${p}','a${i}','r','app','${i}','','',5,9,1,${i % 4},1,${1000 + (i % 11)}`)}`);
	s.sql(`INSERT INTO trace(project_id,trace_id,key_id,idempotency_key,content,state,created_ms,upload_bytes,app,version_name,version_code,build_id,mapping_id,device,os,abi,process,scenario,session_id,uuid,labels,pid,started_ms) VALUES
		${many(POISONED, (i, id) => `'${p}','01SIM${id}','','','trace=${i}',3,1,100,'app','','','','','','','','','','','','',0,0`)}`);
	s.sql(`INSERT INTO part(project_id,trace_id,part,sha256,format,bytes) VALUES ${many(POISONED, (i, id) => `'${p}','01SIM${id}','trace','x${i}','',100`)}`);
	s.sql(`INSERT INTO quarantine(project_id,trace_id,reason,signal,format,decoder_version,first_ms,last_ms,deaths) VALUES ${many(POISONED, (i, id) => `'${p}','01SIM${id}','crash',11,'art',6,${i % 2},2,2`)}`);

	for (const limit of [100, 1000]) {
		const all = await pages(s, `/api/v1/regressions?status=all&muted=true&limit=${limit}`, 'regressions');
		assert.equal(all.length, REGRESSIONS);
		assert.ok(isSorted(all, (a, b) => b.day_ms - a.day_ms || (b.after_ns - b.before_ns) - (a.after_ns - a.before_ns) || (a.id > b.id ? -1 : 1)), 'newest first, the largest change of a day first');
	}
	assert.equal((await pages(s, '/api/v1/regressions?status=fixed&limit=7', 'regressions')).length, (await s.get('/api/v1/regressions?status=fixed&limit=1000')).json.regressions.length);

	const items = await pages(s, '/api/v1/inbox?state=all&limit=33', 'items');
	assert.equal(items.length, REGRESSIONS + ALERTS);
	assert.ok(isSorted(items, (a, b) => b.last_ms - a.last_ms || (a.id > b.id ? -1 : 1)), 'last seen first');
	const { counts } = (await s.get('/api/v1/inbox')).json;
	for (const [state, n] of Object.entries(counts)) assert.equal((await pages(s, `/api/v1/inbox?state=${state}`, 'items')).length, n, state);
	assert.equal(counts.all, REGRESSIONS + ALERTS);
	const ann = (await s.get('/api/v1/inbox?state=all&owner=ann&kind=regression')).json;
	assert.equal(ann.total, REGRESSIONS / 2);

	const poisoned = await pages(s, '/api/v1/quarantine?limit=2', 'quarantine', { key: s.admin });
	assert.equal(poisoned.length, POISONED);
	assert.ok(isSorted(poisoned, (a, b) => a.first_ms - b.first_ms || (a.id < b.id ? -1 : 1)), 'oldest first');
	assert.deepEqual(poisoned[0].parts, [{ part: 'trace', bytes: 100 }]);
	const { total, total_bytes } = (await s.get('/api/v1/quarantine?limit=1', { key: s.admin })).json;
	assert.deepEqual([total, total_bytes], [POISONED, 100 * POISONED]);
	for (const cursor of ['x', '5', '5.']) assert.equal((await s.get(`/api/v1/quarantine?cursor=${cursor}`, { key: s.admin })).status, 400, cursor);
});
