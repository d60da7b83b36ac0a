/*
 * settings.test.mjs - settings that are invalid in the catalogue: requests use the defaults, no trace expires, and the
 * settings are reported by the log, the API and `tracewell doctor` until they are saved again.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

import { sampleTrace } from '../make.mjs';
import { binary, startServer, until } from '../server.mjs';

const DAY_MS = 86400000;
/* What each request returns by default, and a valid body that replaces the setting. */
const SETTINGS = {
	capture: { at: '/api/v1/capture/rules', body: { rules: [] } },
	detectors: { at: '/api/v1/detectors', body: { rules: [] } },
	digest: { at: '/api/v1/digest/settings', body: { every: 'daily' } },
	frames: { at: '/api/v1/frames', body: {} },
	regressions: { at: '/api/v1/regressions/rules', body: {} },
	retention: { at: '/api/v1/retention', body: {} },
	rollups: { at: '/api/v1/fleet/labels', body: { labels: [] } },
	source: { at: '/api/v1/source/repositories', body: { repositories: [] } },
	tracker: { at: '/api/v1/tracker', body: { for: 'github', template: '' } },
	anr_rules: { at: '/api/v1/anr/rules', body: { rules: [] } },
};
const RULESETS = ['detectors', 'anr_rules'];

function store(s, text) {
	const quoted = `'${text.replaceAll("'", "''")}'`;
	s.sql(Object.keys(SETTINGS).map((key) => (RULESETS.includes(key)
		? `INSERT OR REPLACE INTO ruleset(project_id,kind,version,value,author,created_ms) SELECT project_id,'${key}',1,${quoted},'me',1 FROM project`
		: `INSERT OR REPLACE INTO project_setting(project_id,key,value,updated_ms) SELECT project_id,'${key}',${quoted},1 FROM project`)).join(';'));
}

const invalid = async (s) => (await s.get('/api/v1/settings/invalid', { key: s.read })).json.settings;
const doctor = (s) => spawnSync(binary(), ['doctor', '--json', '--data', s.data], { encoding: 'utf8' }).stdout.trim().split('\n').map((l) => JSON.parse(l)).filter((l) => l.check === 'setting');

for (const [what, text, reason] of [['that are not JSON', '{"rules', /^it is not JSON: /], ['of another version', '{"rules":"all","labels":7,"every":9,"off":1,"for":2,"repositories":3,"max_age_days":"x"}', /./]])
	test(`settings ${what} are reported, and requests use the defaults`, async (t) => {
		const s = await startServer(t, { args: ['--retention-every', '1'] });
		const { id } = await s.trace(sampleTrace());
		const of = Object.fromEntries(await Promise.all(Object.entries(SETTINGS).map(async ([key, { at }]) => [key, (await s.get(at, { key: s.admin })).json])));
		assert.deepEqual(await invalid(s), []);
		store(s, text);

		for (const [key, { at }] of Object.entries(SETTINGS)) {
			const answer = await s.get(at, { key: s.admin });
			assert.equal(answer.status, 200, `${at}: ${answer.text}`);
			if (key !== 'retention' && !RULESETS.includes(key)) assert.deepEqual({ ...answer.json, updated_ms: 0 }, { ...of[key], updated_ms: 0 }, key);
			if (RULESETS.includes(key)) assert.deepEqual(answer.json.rules, of[key].rules, key);
		}
		for (const at of ['/api/v1/traces', `/api/v1/traces/${id}`, `/api/v1/traces/${id}/findings`, '/api/v1/fleet/findings', '/api/v1/fleet/scenarios', '/api/v1/anr/groups', '/api/v1/digest', '/api/v1/capture', '/api/v1/fleet/compare?a=1&b=2', '/api/v1/source?method=a.B.c'])
			assert.equal((await s.get(at, { key: s.admin })).status, 200, at);
		assert.equal((await s.ask('POST', '/api/v1/regressions/detect', { key: s.write })).status, 200);

		const rules = (await s.get('/api/v1/retention', { key: s.admin })).json.rules;
		assert.deepEqual([rules.max_age_days, rules.uploads_max_age_days, rules.keep_annotated], [null, null, true], 'the defaults would delete');
		s.sql(`UPDATE trace SET created_ms=created_ms-${500 * DAY_MS}`);
		const late = await s.trace(sampleTrace(40), { query: { capture: 'cold' } });
		assert.equal(late.state, 'ready', 'an upload that names a capture rule');
		await until(async () => ((await s.get('/api/v1/fleet/stages')).json.stages.every((x) => x.waiting === 0) ? true : undefined), 'all stages');
		assert.equal((await s.get(`/api/v1/traces/${id}`)).status, 200);

		const found = await invalid(s);
		assert.deepEqual(found.map((x) => x.key).sort(), Object.keys(SETTINGS).sort());
		for (const x of found) assert.match(x.reason, reason);
		const reported = doctor(s);
		assert.equal(reported.length, found.length);
		for (const { level, message } of reported) assert.ok(level === 'wrong' && message.includes('of project test is invalid'), message);
		const logged = s.log.split('\n').filter((l) => l.includes('event=setting_invalid') && l.includes('setting=retention'));
		assert.equal(logged.length, 1, logged.join('\n'));

		for (const { at, body } of Object.values(SETTINGS)) {
			const answer = await s.ask('PUT', at, { key: s.admin, body: JSON.stringify(body) });
			assert.equal(answer.status, 200, `${at}: ${answer.text}`);
		}
		assert.deepEqual(await invalid(s), []);
		assert.deepEqual(doctor(s), []);
	});

test('a stored text that is not UTF-8 does not hide the list', async (t) => {
	const s = await startServer(t);
	const { id } = await s.trace(sampleTrace());
	s.sql(`UPDATE trace SET title=CAST(x'61ff62' AS TEXT) WHERE trace_id='${id}'`);
	const { traces, total } = (await s.get('/api/v1/traces')).json;
	assert.equal(total, 1);
	assert.deepEqual(traces.map((x) => x.title), ['a\ufffdb']);
	assert.equal((await s.get(`/api/v1/traces/${id}`)).json.title, 'a\ufffdb');
});
