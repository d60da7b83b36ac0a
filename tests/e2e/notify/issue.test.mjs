/*
 * The text of an issue names the commits that changed the slow method, with author, date and number of
 * lines, its owners and its source, the measured values, and the condition under which the regression is
 * fixed.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';

import { Repository } from '../repository.mjs';
import { newFolder, startServer, until } from '../server.mjs';
import { findSlower } from '../regressed_fleet.mjs';

const source = (load) => `package com.app

class Repo(private val rows: List<String>) {
	fun load(): Int {
${load.map((l) => `\t\t${l}`).join('\n')}
	}

	fun size() = rows.size
}
`;

const ANR = `"main" prio=5 tid=1 Blocked
  at com.app.Main.draw(Main.kt:5)
  - waiting to lock <0x01> (a a.T) held by thread 2

"w" prio=5 tid=2 Runnable
  at com.app.Repo.load(Repo.kt:5)
  - locked <0x01> (a a.T)
`;

test('suspect commits, owners and source are part of an issue', async (t) => {
	const clones = newFolder(t, 'tracewell-clones-');
	const s = await startServer(t, { args: ['--repositories', clones, '--public-url', 'https://traces.example.com'] });
	const { id } = await findSlower(s, 12);
	const issue = async (what = `regressions/${id}`, tracker = 'github') => (await s.get(`/api/v1/${what}/issue?for=${tracker}`)).json;

	const without = await issue();
	assert.doesNotMatch(without.body, /commit|Source/);
	assert.match(without.body, /## Done when\n\nA later version is back at [\d.]+ ms\. /);

	const git = new Repository(path.join(clones, 'test', 'app'));
	git.write('src/com/app/Repo.kt', source(['return rows.size']));
	git.write('CODEOWNERS', '* @everybody\n/src/com/app/ @feed-team @dora\n');
	git.commit('Begin', 'Ann');
	git.git('tag', 'v8.3.0');
	git.write('src/com/app/Repo.kt', source(['val copy = rows.toList()', 'copy.forEach(::println)', 'return rows.size']));
	git.commit('Copy rows <b>before</b> use @here', 'Bob');
	git.write('README', 'Not the method.\n');
	git.commit('Describe', 'Cleo');
	git.git('tag', 'v8.3.1');
	const set = await s.ask('PUT', '/api/v1/source/repositories', { key: s.admin, body: JSON.stringify({ repositories: [{
		name: 'app', packages: ['com.app.'], link: 'https://git.example.com/{commit}/{path}#L{line}',
		commit_link: 'https://git.example.com/commit/{commit}', roots: ['src'], refs: ['v{version}'], clone: 'app', owners: 'CODEOWNERS', show_emails: false }] }) });
	assert.equal(set.status, 200, set.text);

	const { body } = await issue();
	assert.match(body, /## Suspect commits\n\n- \[[0-9a-f]{12}\]\(https:\/\/git\.example\.com\/commit\/[0-9a-f]{40}\) Copy rows .*before.* use .* \(Bob on 2026-01-01, 2 lines\)\n/);
	assert.doesNotMatch(body, /<b>|Describe|ann@example|[^`]@feed-team/);
	assert.match(body, /## Source\n\n- \[src\/com\/app\/Repo\.kt\]\(https:\/\/git\.example\.com\/[0-9a-f]{40}\/src\/com\/app\/Repo\.kt#L4\)\n- Owned by `@feed-team`, `@dora`\n/);
	assert.match((await issue(`regressions/${id}`, 'jira')).body, /Suspect commits[\s\S]*Copy rows/);

	await s.trace(ANR, { query: { version_name: '8.3.1' } });
	const group = await until(async () => (await s.get('/api/v1/anr/groups')).json.groups[0], 'a group of ANRs');
	const anr = (await issue(`anr/groups/${group.key}`)).body;
	assert.match(anr, /## Last commits that changed the method\n\n- \[[0-9a-f]{12}\]\([^)]*\) Copy rows/);
	assert.match(anr, /- Owned by `@feed-team`/);
	assert.match(anr, /## Done when\n\nNo report of a later version is in this group\.\n/);
});
