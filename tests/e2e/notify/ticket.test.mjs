/*
 * ticket.test.mjs - a regression or a group of ANRs becomes an issue at GitHub, GitLab, Jira and Gitea, once, with
 * labels and the author of the change; closed there it is fixed here, and one that returns is reopened there.
 */
import assert from 'node:assert/strict';
import path from 'node:path';

import { Repository } from '../repository.mjs';
import { newFolder, sideBySide, startServer, until } from '../server.mjs';
import { findSlower } from '../regressed_fleet.mjs';
import { startTrackers } from '../trackers.mjs';

const test = sideBySide(4);

const ARGS = ['--webhook-private', '127.0.0.0/8', '--public-url', 'https://traces.example.com'];
const KINDS = ['github', 'gitlab', 'jira', 'gitea'];
const ANR = '"main" prio=5 tid=1 Blocked\n  at com.app.Main.draw(Main.kt:5)\n  - waiting to lock <0x01> (a a.T) held by thread 2\n\n"w" prio=5 tid=2 Runnable\n  at com.app.Repo.load(Repo.kt:5)\n  - locked <0x01> (a a.T)\n';

const set = (s, settings) => s.ask('PUT', '/api/v1/tracker', { key: s.admin, body: JSON.stringify(settings) });
const post = (s, of) => s.ask('POST', `/api/v1/${of}/ticket`, { key: s.write });
const get = async (s, of) => (await s.get(`/api/v1/${of}/ticket`)).json;
/** What only time would bring. */
const makeDue = (s) => s.sql('update ticket set due_ms=1 where due_ms>0');
const inState = (s, of, state, is = () => true) => until(async () => {
	const now = await get(s, of);
	return now.state === state && is(now) ? now : undefined;
}, `${of} is ${state}`, 30);

async function use(s, tracker, more = {}) {
	const done = await set(s, { ...tracker.settings, ...more });
	assert.equal(done.status, 200, done.text);
	return done.json;
}

/** A repository in which Bob changed the slow method, and Ann wrote the rest. */
async function addSource(t, s, clones) {
	const source = (load) => `package com.app\n\nclass Repo(private val rows: List<String>) {\n\tfun load(): Int {\n${load}\n\t}\n}\n`;
	const git = new Repository(path.join(clones, 'test', 'app'));
	git.write('src/com/app/Repo.kt', source('\t\treturn rows.size'));
	git.write('CODEOWNERS', '/src/ @feed-team\n');
	git.commit('Begin', 'Ann');
	git.git('tag', 'v8.3.0');
	git.write('src/com/app/Repo.kt', source('\t\tval copy = rows.toList()\n\t\treturn copy.size'));
	git.commit('Copy rows', 'Bob');
	git.git('tag', 'v8.3.1');
	const done = await s.ask('PUT', '/api/v1/source/repositories', { key: s.admin, body: JSON.stringify({ repositories: [{
		name: 'app', packages: ['com.app.'], link: 'https://git.example.com/{commit}/{path}#L{line}', commit_link: '', roots: ['src'],
		refs: ['v{version}'], clone: 'app', owners: 'CODEOWNERS', show_emails: false }] }) });
	assert.equal(done.status, 200, done.text);
}

for (const kind of KINDS)
	test(`${kind}: created with labels and assignee, closed there, reopened by a return`, async (t) => {
		const clones = newFolder(t, 'tracewell-clones-');
		const s = await startServer(t, { args: ['--repositories', clones, ...ARGS] });
		const tracker = await startTrackers(t, kind);
		const { id } = await findSlower(s, 12);
		const of = `regressions/${id}`;
		await addSource(t, s, clones);
		assert.equal((await s.get(`/api/v1/${of}/ticket`)).status, 404);
		const early = await post(s, of);
		assert.deepEqual([early.status, early.json.error.message], [409, "the project's tracker has no API and token: an administrator sets them"]);
		const shown = await use(s, tracker);
		assert.deepEqual([shown.token, shown.token_set, shown.token_lost], [undefined, true, false]);
		assert.equal((await s.ask('POST', `/api/v1/${of}/ticket`, { key: s.read })).status, 403);

		assert.equal((await post(s, of)).status, 202);
		const made = await inState(s, of, 'open');
		const [issue] = tracker.issues;
		assert.match(issue.title, /^com\.app\.Repo\.load in slower is \+?\d+ % slower since 8\.3\.1$/);
		assert.match(issue.body, /Suspect commits[\s\S]*Copy rows/);
		assert.match(issue.body, /\n\nCreated by tracewell: tracewell-[0-9a-f]{32}\n$/);
		assert.doesNotMatch(issue.body, /@example/);
		assert.equal(issue.assignee, { github: 'bob-gh', gitlab: 42, jira: '5b10a2844c20165700ede21g', gitea: 'bob-gt' }[kind]);
		assert.deepEqual(issue.labels.filter((l) => !/^tracewell-/.test(l)), [kind === 'gitea' ? 7 : 'performance']);
		assert.deepEqual([made.for, made.key, made.error], [kind, kind === 'jira' ? 'SHOP-1' : '1', '']);
		assert.equal(made.url, { github: 'https://github.example.com/acme/shop/issues/1', gitlab: 'https://gitlab.example.com/acme/mobile/shop/-/issues/1',
			jira: `${tracker.url}/browse/SHOP-1`, gitea: 'https://gitea.example.com/acme/shop/issues/1' }[kind]);

		await post(s, of);
		makeDue(s);
		await until(() => tracker.of('GET', /(issues|SHOP-|issue\/SHOP-)\/?1?$/).length || undefined, 'its state is read');
		assert.equal(tracker.issues.length, 1, 'a second POST creates nothing');

		issue.state = 'closed';
		makeDue(s);
		await inState(s, of, 'closed');
		const fixed = (await s.get(`/api/v1/${of}`)).json;
		assert.deepEqual([fixed.status, fixed.note], ['fixed', `Closed in ${kind}: ${made.url}`]);
		assert.equal((await s.get(`/api/v1/${of}/history`)).json.history[0].author, kind);

		assert.equal((await s.ask('PATCH', `/api/v1/${of}`, { key: s.write, body: JSON.stringify({ status: 'open' }) })).status, 200);
		await inState(s, of, 'open');
		assert.equal(issue.state, 'open');
		assert.equal(issue.comments.length, 1);
		assert.match(issue.comments[0], /^The regression returned in 8\.3\.1\.\n\nhttps:\/\/traces\.example\.com\/regressions\?/);
		assert.equal(tracker.issues.length, 1);
		assert.ok(!s.log.includes('secret-token-1') && !JSON.stringify((await s.get('/api/v1/audit', { key: s.admin })).json).includes('secret-token'), 'the token is nowhere');
		assert.ok(s.sql("select value from project_setting where key='tracker_token'").toString().startsWith('sealed:1:'));

	});

const groupOf = (s) => until(async () => (await s.get('/api/v1/anr/groups')).json.groups[0], 'a group of ANRs');
const entryOf = async (s, key) => (await s.get('/api/v1/inbox', { query: { state: 'all', kind: 'anr' } })).json.items.find((i) => i.id === key);
/** Another report of the same group, which is new by its identity. */
const report = (s, n, version) => s.trace(`${ANR}\n"x${n}" prio=5 tid=${n + 3} Runnable\n  at com.app.Other.run(Other.kt:${n})\n`, { query: { version_name: version } });

for (const kind of KINDS)
	test(`${kind}: a group of ANRs is closed there, answered here, and reopened there by a report or a person`, async (t) => {
		const [s, tracker] = [await startServer(t, { args: ARGS }), await startTrackers(t, kind)];
		await use(s, tracker);
		await report(s, 1, '8.3.1');
		const { key } = await groupOf(s);
		const of = `anr/groups/${key}`;
		assert.equal((await post(s, of)).status, 202);
		const made = await inState(s, of, 'open');
		const [issue] = tracker.issues;
		assert.match(issue.title, /^ANR: /);

		issue.state = 'closed';
		makeDue(s);
		await inState(s, of, 'closed');
		const fixed = await entryOf(s, key);
		assert.deepEqual([fixed.status, fixed.note], ['fixed', `Closed in ${kind}: ${made.url}`]);
		const audited = (await s.get('/api/v1/audit', { key: s.admin })).json.entries.find((e) => e.action === 'anr.change');
		assert.equal(audited.actor.name, kind);

		await report(s, 2, '8.3.2');
		await inState(s, of, 'open');
		assert.equal((await entryOf(s, key)).status, 'returned');
		assert.equal(issue.state, 'open');
		assert.equal(issue.comments.length, 1);
		assert.match(issue.comments[0], new RegExp(`^The ANR returned in 8\\.3\\.2\\.\n\nhttps://traces\\.example\\.com/anrs/${key}\\?`));
		await report(s, 3, '8.3.2');
		await until(async () => (await s.get('/api/v1/anr/groups')).json.groups[0].count === 3 || undefined, 'a third report');
		assert.equal((await get(s, of)).state, 'open', 'a second report after the return says nothing new');

		issue.state = 'closed';
		makeDue(s);
		await inState(s, of, 'closed');
		assert.equal((await entryOf(s, key)).status, 'fixed', 'a group that returned is fixed once more');
		const again = await s.ask('PATCH', '/api/v1/inbox', { key: s.write, body: JSON.stringify({ items: [{ kind: 'anr', id: key }], owner: 'ann' }) });
		assert.equal(again.status, 200, again.text);
		assert.equal((await get(s, of)).state, 'closed', 'an owner opens nothing');
		assert.equal((await s.ask('PATCH', '/api/v1/inbox', { key: s.write, body: JSON.stringify({ items: [{ kind: 'anr', id: key }], status: 'open' }) })).status, 200);
		await inState(s, of, 'open');
		assert.deepEqual([issue.state, issue.comments.length, tracker.issues.length], ['open', 2, 1]);
	});

test('an ANR group follows a renamed project and honours Retry-After of the tracker', async (t) => {
	const [s, tracker] = [await startServer(t, { args: ARGS }), await startTrackers(t, 'github')];
	await use(s, tracker);
	await report(s, 1, '8.3.1');
	const { key } = await groupOf(s);
	const of = `anr/groups/${key}`;
	tracker.fail = [[429, { 'Retry-After': '7200' }, { message: 'later' }]];
	await post(s, of);
	await inState(s, of, 'waiting', (w) => w.error.includes('429') && w.next_ms > Date.now() + 7190 * 1000);
	tracker.moved = true;
	makeDue(s);
	await inState(s, of, 'open');
	assert.equal(tracker.of('POST', /^\/api\/repositories\/4711\/issues$/).length, 1);
	tracker.issues[0].state = 'closed';
	tracker.fail = [[403, { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(Math.floor(Date.now() / 1000) + 3600) }, { message: 'later' }]];
	makeDue(s);
	await inState(s, of, 'open', (w) => w.error.includes('403') && w.next_ms > Date.now() + 3500 * 1000);
	assert.equal((await entryOf(s, key)).status, 'open', 'nothing is answered before the tracker is');
	makeDue(s);
	await inState(s, of, 'closed');
	assert.equal((await entryOf(s, key)).status, 'fixed');
});

test('refusals of the tracker are reported, and temporary failures are retried when it states', async (t) => {
	const [s, tracker] = [await startServer(t, { args: ARGS }), await startTrackers(t, 'github')];
	const { id } = await findSlower(s, 12);
	const of = `regressions/${id}`;
	for (const [status, headers, body, words] of [[401, {}, { message: 'Bad credentials' }, 'the tracker refuses the token (401): Bad credentials'],
		[403, {}, { message: 'Resource not accessible' }, 'the token may not do this (403): Resource not accessible'],
		[404, {}, { message: 'Not Found' }, 'no such project or issue, or the token may not read it (404): Not Found'],
		[422, {}, { message: 'Validation Failed' }, 'the tracker refuses it (422): Validation Failed'],
		[301, { Location: 'http://169.254.169.254/x' }, {}, /^it returned 301, a redirect/]]) {
		await use(s, tracker);
		// a search comes before every try after the first
		tracker.fail = tracker.got.length ? [null, [status, headers, body]] : [[status, headers, body]];
		await post(s, of);
		const failed = await inState(s, of, 'failed', (f) => (typeof words === 'string' ? f.error === words : words.test(f.error)));
		assert.equal(failed.next_ms, 0);
	}
	for (const [status, headers, seconds] of [[503, {}, 40], [429, { 'Retry-After': '7200' }, 7190], [403, { 'Retry-After': '7200' }, 7190],
		[403, { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(Math.floor(Date.now() / 1000) + 3600) }, 3500]]) {
		tracker.fail = [null, [status, headers, { message: 'later' }]];
		const before = tracker.got.length;
		if ((await get(s, of)).state === 'failed') await post(s, of);
		else makeDue(s);
		await until(() => (tracker.got.length === before + 2 ? true : undefined), 'it was tried');
		const later = await inState(s, of, 'waiting', (w) => w.error.includes(String(status)) && w.next_ms > Date.now() + seconds * 1000);
		assert.match(later.error, /: later$/);
	}
	tracker.fail = [null, [201, {}, 'no object']];
	makeDue(s);
	await inState(s, of, 'waiting', (w) => /not what the tracker's API documents/.test(w.error));
	assert.equal(tracker.issues.length, 0);
	makeDue(s);
	const made = await inState(s, of, 'open');
	assert.deepEqual([made.error, tracker.issues.length], ['', 1]);
	tracker.issues.length = 0;
	makeDue(s);
	await inState(s, of, 'failed', (f) => /no such project or issue/.test(f.error));
	await post(s, of);
	await inState(s, of, 'open');
	assert.equal(tracker.issues.length, 1, 'one that was deleted there is created again');
});

test('an assignee that the tracker does not know does not prevent the issue', async (t) => {
	const [s, tracker] = [await startServer(t, { args: ARGS }), await startTrackers(t, 'gitea')];
	const { id } = await findSlower(s, 12);
	await use(s, tracker);
	tracker.users.clear();
	await post(s, `regressions/${id}`);
	await inState(s, `regressions/${id}`, 'open');
	assert.equal(tracker.issues[0].assignee, undefined);
});

test('a renamed project is followed, with the token to the same host only', async (t) => {
	const [s, tracker] = [await startServer(t, { args: ARGS }), await startTrackers(t, 'github')];
	const { id } = await findSlower(s, 12);
	await use(s, tracker);
	tracker.moved = true;
	await post(s, `regressions/${id}`);
	await inState(s, `regressions/${id}`, 'open');
	assert.equal(tracker.of('POST', /^\/api\/repositories\/4711\/issues$/).length, 1);
	assert.equal(tracker.issues.length, 1);
	const other = await startTrackers(t, 'github');
	tracker.fail = [[301, { Location: `${other.url}/repos/acme/shop/issues/1` }, {}]];
	makeDue(s);
	await inState(s, `regressions/${id}`, 'open', (o) => /returned 301/.test(o.error));
	assert.equal(other.got.length, 0);
	const refused = await set(s, { ...tracker.settings, api: other.url, token: undefined });
	assert.deepEqual([refused.status, refused.json.error.message], [400, 'api is another server: enter its token as well']);
});

for (const kind of KINDS)
	test(`kill -9 between the issue and its row creates no second issue at ${kind}`, async (t) => {
		const tracker = await startTrackers(t, kind);
		const s = await startServer(t, { args: ARGS, env: { TRACEWELL_CRASH_AT: 'ticket_created' } });
		const { id } = await findSlower(s, 12);
		await use(s, tracker);
		await post(s, `regressions/${id}`);
		assert.equal((await s.ended).signal, 'SIGKILL');
		assert.equal(tracker.issues.length, 1);
		s.env = {};
		await s.start();
		makeDue(s);
		const made = await inState(s, `regressions/${id}`, 'open');
		assert.deepEqual([tracker.issues.length, made.key], [1, kind === 'jira' ? 'SHOP-1' : '1']);
	});

test('invalid tracker settings are refused with a message', async (t) => {
	const s = await startServer(t);
	const good = { for: 'github', template: '', api: 'https://api.github.com', repository: 'acme/shop', token: 'x' };
	for (const [more, words] of [[{ repository: 'shop' }, /owner\/name/], [{ repository: '../x' }, /owner\/name/], [{ api: 'https://a.example?x' }, /must not have a query/],
		[{ api: 'http://127.0.0.1' }, /private address/], [{ for: 'trac' }, /github, gitlab, jira or gitea/], [{ labels: 'a' }, /labels must be a list/], [{ labels: [''] }, /a label is a text/],
		[{ for: 'jira', repository: 'SHOP', labels: ['a b'] }, /spaces for Jira/], [{ assignees: { a: 1 } }, /assignees maps/], [{ token: 'a b' }, /without spaces/], [{ user: 'a:b' }, /colon/], [{ secret: 'x' }, /unknown member secret/]]) {
		const a = await set(s, { ...good, ...more });
		assert.equal(a.status, 400, a.text);
		assert.match(a.json.error.message, words);
	}
	assert.equal((await set(s, good)).status, 200);
	const { json } = await s.get('/api/v1/tracker');
	assert.deepEqual([json.token, json.token_set], [undefined, true]);
	assert.equal((await set(s, { for: 'github', template: '' })).json.token_set, true, 'the token stays');
	assert.equal((await set(s, { ...good, token: '' })).json.token_set, false);
});
