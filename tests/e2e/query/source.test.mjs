/*
 * source.test.mjs - from a method to its source: links without a clone, files, lines and owners with
 * one, authors of changes between two versions; clones that are missing, broken, huge or link outside;
 * and that no project reaches another's.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { sampleTrace } from '../make.mjs';
import { Repository, shopRepository } from '../repository.mjs';
import { newFolder, sanitized, startServer } from '../server.mjs';

const LINK = 'https://git.example.com/app/blob/{commit}/{path}#L{line}';
const APP = { name: 'app', packages: ['com.example.'], link: LINK, commit_link: 'https://git.example.com/app/commit/{commit}',
	roots: ['app/src/main/kotlin', 'app/src/main/java'], clone: 'app' };
const LOAD = 'com.example.feed.FeedAdapter.load';

function folder(t) {
	return newFolder(t, 'tracewell-clones-');
}

async function withClones(t, repositories, make) {
	const clones = folder(t);
	const made = make?.(clones);
	const s = await startServer(t, { args: ['--repositories', clones] });
	if (repositories) await put(s, repositories);
	return { s, clones, made };
}

async function put(s, repositories, status = 200) {
	const a = await s.ask('PUT', '/api/v1/source/repositories', { key: s.admin, body: JSON.stringify({ repositories }) });
	assert.equal(a.status, status, a.text);
	return a;
}

async function ask(s, query, status = 200, what = '/api/v1/source') {
	const a = await s.get(what, { query });
	assert.equal(a.status, status, a.text);
	return a.json;
}

const blame = (s, query, status) => ask(s, query, status, '/api/v1/source/blame');
const at = (a) => [a.path, a.lines, a.note ?? null];

test('without a clone a link is made of package and class alone', async (t) => {
	const s = await startServer(t);
	assert.match((await ask(s, { method: LOAD })).reason, /no repository yet/);
	await put(s, [{ ...APP, clone: '' }]);
	const a = await ask(s, { method: LOAD, version: '1.1', line: '12' });
	assert.equal(a.link, 'https://git.example.com/app/blob/v1.1/app/src/main/kotlin/com/example/feed/FeedAdapter.kt#L12');
	assert.equal(a.found, false);
	assert.match(a.reason, /no clone/);
	const without = await ask(s, { method: 'com.example.feed.UtilKt.run', version: '"><script>' });
	assert.equal(without.link, 'https://git.example.com/app/blob/v%22%3E%3Cscript%3E/app/src/main/kotlin/com/example/feed/Util.kt');
	assert.match((await ask(s, { method: 'org.other.A.b' })).reason, /no repository of this project has classes/);
	for (const method of ['', 'load', 'a..b.c', 'a/b.c', '../../etc.passwd', 'x y.z', 'a.B.c\u0000d']) await ask(s, { method }, 400);
	assert.equal((await s.get('/api/v1/source?method=a.B.%ff')).status, 400);
	assert.match((await blame(s, { method: LOAD, base: '1.0', head: '1.1' })).reason, /no clone/);
});

test('with a clone: file, lines, owners and the age of the lines', async (t) => {
	const { s, made } = await withClones(t, [APP], (dir) => shopRepository(path.join(dir, 'test/app')));
	const a = await ask(s, { method: LOAD, version: '1.1' });
	assert.deepEqual(at(a), ['app/src/main/kotlin/com/example/feed/FeedAdapter.kt', [[7, 12]], null]);
	assert.equal(a.link, `https://git.example.com/app/blob/${made.ids.logged}/${a.path}#L7`);
	assert.deepEqual([a.found, a.is_method, a.commit, a.owners, a.owners_file], [true, true, made.ids.logged, [{ section: '', names: ['@org/feed', 'ann@example.com'], line: 3 }], '.github/CODEOWNERS']);
	assert.equal(new Date(a.newest_ms).toISOString(), '2026-01-01T00:08:00.000Z');
	const before = await ask(s, { method: LOAD, version: '1.0' });
	assert.deepEqual(at(before), ['app/src/main/java/com/example/feed/FeedAdapter.kt', [[7, 10]], null], 'where it was then');
	assert.deepEqual(before.owners[0].names, ['@org/feed-old']);
	assert.deepEqual(at(await ask(s, { method: 'com.example.feed.FeedAdapterKt.topLevel', version: '1.0' })).slice(1), [[[19, 21]], null]);
	assert.deepEqual((await ask(s, { method: 'com.example.feed.FeedAdapter$Companion.create' })).is_method, true);
	assert.deepEqual(at(await ask(s, { method: 'com.example.Main.plain' })).slice(1), [[[4, 6], [8, 10]], 'several methods have this name and no line number selects one']);
	assert.deepEqual(at(await ask(s, { method: 'com.example.Main.plain', line: '9' })).slice(1), [[[8, 10]], null]);
	const lambda = await ask(s, { method: 'com.example.feed.FeedAdapter$load$1.invoke', version: '1.1' });
	assert.deepEqual([lambda.lines, lambda.is_method], [[[7, 12]], true]);
	assert.match(lambda.note, /lambda/);
	const none = await ask(s, { method: 'com.example.feed.FeedAdapter.toString' });
	assert.deepEqual([none.is_method, none.lines], [false, [[6, 6]]]);
	assert.match((await ask(s, { method: 'com.example.feed.Gone.load' })).reason, /no file of that commit declares/);
	assert.match((await ask(s, { method: LOAD, version: '7.7' })).reason, /no tag, branch or commit v7.7/);
	for (const version of ['2.4 (77)', '../../../../evil/x', ':/Log']) {
		const a = await ask(s, { method: LOAD, version });
		assert.deepEqual([a.commit, a.found], [undefined, false], `${version} is not the newest`);
		assert.match(a.reason, /cannot be the name of a tag or branch/);
		const since = await blame(s, { method: LOAD, base: version, head: '1.1' });
		assert.deepEqual([since.commit, since.commits], [made.ids.logged, undefined], `since ${version} is not ever`);
		assert.match(since.reason, /cannot be the name of a tag or branch/);
	}
	await put(s, [{ ...APP, refs: ['nightly-{build}', '{build}'] }]);
	for (const build of [made.ids.first, made.ids.first.slice(0, 9)]) assert.deepEqual(at(await ask(s, { method: LOAD, build })), at(before), 'a build that is called by its commit');
	await s.trace(sampleTrace(), { query: { build_id: made.ids.first, version_name: 'nightly 77' } });
	assert.deepEqual(at(await ask(s, { method: LOAD, version: 'nightly 77' })), at(before), 'a version by its build');
	assert.deepEqual((await blame(s, { method: LOAD, base: 'nightly 77', head: '', head_build: 'v1.1' })).commits.length, 2);
	for (const build of ['HEAD~1', 'v1.1^', ':/Log', '@{u}', '../v1.0', made.ids.first.slice(0, 6)]) {
		const a = await ask(s, { method: LOAD, build });
		assert.deepEqual([a.commit, a.lines], [undefined, undefined], `${build} is no expression`);
		assert.match(a.reason, /no tag, branch|of a tag or branch/, build);
	}
	for (const roots of [[], ['**/main/*']]) {
		await put(s, [{ ...APP, roots }]);
		assert.deepEqual(at(await ask(s, { method: LOAD, version: '1.1' })), at(a), `roots ${roots}`);
	}
});

test('a build carries its commit: links and last changes go by it and not by tags', async (t) => {
	const { s, made: { ids, r } } = await withClones(t, [APP], (dir) => shopRepository(path.join(dir, 'test/app')));
	const set = (build, commit, status = 200) => s.ask('PUT', `/api/v1/builds/${build}/commit`, { key: s.ingest, body: JSON.stringify({ commit }) }).then((a) => (assert.equal(a.status, status, a.text), a));
	for (const commit of ['abcdef', 'g'.repeat(40), 'a'.repeat(65), 'HEAD', 7, null, '../x']) assert.match((await set('b1', commit, 400)).json.error.message, /commit/);
	await s.trace(sampleTrace(), { query: { build_id: 'b1', version_name: '1.0', commit: ids.first.toUpperCase() } });
	await s.trace(sampleTrace(2), { query: { build_id: 'b2', version_name: '1.1' } });
	const commits = async () => Object.fromEntries((await s.get('/api/v1/builds')).json.builds.map((b) => [b.build_id, b.commit]));
	assert.deepEqual(await commits(), { b1: ids.first, b2: '' });
	const from = async (query) => (await ask(s, { method: LOAD, ...query })).commit_from;
	assert.deepEqual([await from({ build: 'b1' }), await from({ version: '1.0' })], ['build', 'name'], 'what a device says is of its build and no version');
	await set('b1', ids.first);
	await set('b2', ids.slow.slice(0, 12));
	await s.trace(sampleTrace(3), { query: { build_id: 'b2', version_name: '1.1', commit: ids.first } });
	assert.deepEqual(await commits(), { b1: ids.first, b2: ids.slow.slice(0, 12) }, 'what whoever builds it said is not changed by a device');
	const orphan = await s.post('/api/v1/traces', sampleTrace(4), { query: { version_name: '1.1', commit: ids.first } });
	assert.deepEqual([orphan.status, /build_id too/.test(orphan.text)], [400, true]);

	const a = await blame(s, { method: LOAD, base: '1.0', head: '1.1' });
	assert.deepEqual([a.base_commit, a.commit, a.base_commit_from, a.commit_from], [ids.first, ids.slow, 'build', 'build']);
	assert.deepEqual(a.commits.map((c) => c.id), [ids.slow], 'what tag v1.1 has besides is not in that build');
	assert.ok(a.link.includes(`/${ids.slow}/`));
	assert.deepEqual([(await ask(s, { method: LOAD, version: '1.1' })).commit, (await ask(s, { method: LOAD, build: 'b1' })).commit, (await ask(s, { method: LOAD, version: '1.1', build: 'b1' })).commit], [ids.slow, ids.first, ids.first]);
	r.git('tag', '-d', 'v1.0');
	assert.equal((await blame(s, { method: LOAD, base: '1.0', head: '1.1' })).base_commit, ids.first, 'no tag is needed');
	const gone = 'f'.repeat(40);
	await set('b1', gone);
	const unknown = await blame(s, { method: LOAD, base: '1.0', head: '1.1' });
	assert.deepEqual([unknown.commit, unknown.base_commit, unknown.commits], [ids.slow, undefined, undefined]);
	assert.match(unknown.reason, new RegExp(`no tag, branch or commit ${gone}`));
	assert.equal((await ask(s, { method: LOAD, version: '1.0' })).link, `https://git.example.com/app/blob/${gone}/app/src/main/kotlin/com/example/feed/FeedAdapter.kt`, 'its own place, not the newest');
	await set('b1', '');
	await s.trace(sampleTrace(5), { query: { build_id: 'b3', version_name: '1.1', app: 'other' } });
	await set('b3', ids.first);
	assert.equal(await from({ version: '1.1' }), 'name', 'two builds disagree');
	assert.deepEqual([(await ask(s, { method: LOAD, version: '1.1', app: 'other' })).commit, (await blame(s, { method: LOAD, head: '1.1', app: 'other' })).commit, await from({ version: '1.1', app: 'none' })], [ids.first, ids.first, 'name'], 'two apps may have a version each of that name');
	await set('b3', '');
	assert.equal((await ask(s, { method: LOAD, version: '1.1' })).commit_from, 'build');
	assert.equal((await ask(s, { method: LOAD, version: '1.0' })).commit_from, 'name');
	assert.equal((await ask(s, { method: LOAD })).commit_from, 'newest');
});

test('a facade of several files is found in that which has the function', async (t) => {
	const { s } = await withClones(t, [{ ...APP, roots: ['src'], refs: ['{version}'] }], (dir) => {
		const r = new Repository(path.join(dir, 'test/app'));
		for (const [file, name] of [['One', 'first'], ['Two', 'second']])
			r.write(`src/com/example/${file}.kt`, `@file:JvmName("Feeds")\n@file:JvmMultifileClass\npackage com.example\n\n@JvmName("${name}Named")\nfun ${name}() = 1\n`);
		r.commit('Begin');
	});
	assert.deepEqual(at(await ask(s, { method: 'com.example.Feeds.secondNamed' })), ['src/com/example/Two.kt', [[5, 6]], null]);
	assert.deepEqual(at(await ask(s, { method: 'com.example.Feeds__OneKt.firstNamed$default' })), ['src/com/example/One.kt', [[5, 6]], null]);
	assert.equal((await blame(s, { method: 'com.example.Feeds.firstNamed' })).commits.length, 1);
	assert.match((await ask(s, { method: 'com.example.Feeds.third' })).reason, /no file of that commit declares/);
});

test('an invalid base gets a message, and no link to the newest version', async (t) => {
	const { s, made: { ids, r } } = await withClones(t, [APP], (dir) => shopRepository(path.join(dir, 'test/app')));
	const note = async (base, head) => (await blame(s, { method: LOAD, base, head })).base_note;
	assert.equal(await note('1.0', '1.1'), undefined);
	assert.match(await note('1.1', '1.0'), /base is newer/);
	assert.match(await note('1.1', '1.1'), /same commit/);
	r.git('checkout', '-q', '-b', 'hotfix', ids.first);
	r.write('other.txt', 'x');
	r.commit('Fix');
	r.git('tag', 'v1.0.1');
	assert.match(await note('1.0.1', '1.1'), /not an ancestor/);
	r.git('checkout', '-q', '--orphan', 'new');
	r.commit('Begin anew');
	r.git('tag', 'v0.0');
	assert.match(await note('0.0', '1.1'), /no common history/);
	const odd = await ask(s, { method: LOAD, version: '2.4 (77)' });
	assert.deepEqual([odd.link, odd.commit_from], [null, 'name']);
	await put(s, [{ ...APP, clone: '' }]);
	const without = await ask(s, { method: LOAD, version: '2.4 (77)' });
	assert.equal(without.link, null);
	assert.match(without.reason, /cannot be the name of a tag or branch|no clone/);
	assert.match((await ask(s, { method: LOAD })).link, /\/blob\/HEAD\//, 'who asks for none gets the newest');
});

test('the authors of changes to a method between two versions, through a move and a merge', async (t) => {
	const { s, made: { ids, r } } = await withClones(t, [APP], (dir) => shopRepository(path.join(dir, 'test/app')));
	const a = await blame(s, { method: LOAD, base: '1.0', head: '1.1' });
	assert.deepEqual(a.commits.map((c) => [c.id, c.author, c.summary]), [[ids.logged, 'Cleo', 'Log each load'], [ids.slow, 'Bob', 'Copy rows before use <b>now</b>']]);
	assert.deepEqual([a.more, a.base_commit, a.commits[0].link], [false, ids.first, `https://git.example.com/app/commit/${ids.logged}`]);
	assert.ok(!JSON.stringify(a.commits).includes('@'), 'no address without being asked to');
	await put(s, [{ ...APP, show_emails: true }]);
	assert.equal((await blame(s, { method: LOAD, base: '1.0', head: '1.1' })).commits[0].email, 'ann@example.com');
	const added = await blame(s, { method: 'com.example.feed.FeedAdapter.more', base: '1.0', head: '1.1' });
	assert.deepEqual(added.commits.map((c) => c.id), [ids.beside]);
	assert.deepEqual((await blame(s, { method: 'com.example.feed.FeedAdapter.size', base: '1.0', head: '1.1' })).commits, [], 'not touched');
	const ever = await blame(s, { method: LOAD, head: '1.1' });
	assert.deepEqual(ever.commits.map((c) => c.id), [ids.logged, ids.slow, ids.first]);
	assert.match((await blame(s, { method: LOAD, base: '0.1', head: '1.1' })).reason, /no tag, branch or commit v0.1/);
	assert.match((await blame(s, { method: 'com.example.feed.FeedAdapter.more', base: '1.0', head: '1.0' })).reason, /declares no method more/);
	r.write('app/src/main/kotlin/com/example/feed/FeedAdapter.kt', 'package com.example.feed\nclass FeedAdapter {\n\tfun load() = 1\n}\n');
	const last = r.commit('Rewrite');
	r.git('tag', 'v1.2');
	assert.deepEqual((await blame(s, { method: LOAD, base: '1.1', head: '1.2' })).commits.map((c) => c.id), [last], 'a tag that came meanwhile');
	const evil = new Date((await ask(s, { method: LOAD })).newest_ms).toISOString();
	assert.equal(evil, '2026-01-01T00:09:00.000Z');
});

/* libgit2 leaks 16 bytes of such a clone, and a child that leaks ends without an answer there. */
test('a shallow clone is marked, with the data that it has', { skip: sanitized() && 'built with a sanitizer' }, async (t) => {
	const origin = folder(t);
	const { ids } = shopRepository(path.join(origin, 'app'));
	const { s } = await withClones(t, [{ ...APP, refs: ['{version}'] }], (dir) => {
		fs.mkdirSync(path.join(dir, 'test'));
		execFileSync('git', ['clone', '-q', '--mirror', '--depth', '2', `file://${path.join(origin, 'app')}`, path.join(dir, 'test/app')]);
	});
	const a = await blame(s, { method: LOAD, head: 'v1.1' });
	assert.deepEqual([a.commit, a.more, a.lines], [ids.logged, true, [[7, 12]]], JSON.stringify(a));
	assert.match(a.reason, /is shallow.*unshallow/);
});

test('commits with impossible times get the nearest possible time', async (t) => {
	const { s } = await withClones(t, [{ ...APP, roots: [], refs: ['{version}'] }], (dir) => {
		const r = new Repository(path.join(dir, 'test/app'));
		const file = (n) => `package com.example\nclass A {\n\tfun f(): Int {\n\t\treturn ${n}\n\t}\n}\n`;
		const data = (text) => `data ${Buffer.byteLength(text)}\n${text}\n`;
		r.commit('Begin');
		const stream = ['99999999999999', '9223372036854775807'].map((at, i) => `commit refs/heads/main\ncommitter Eve <e@example.com> ${at} +0000\n${data(`late ${i}`)}${i ? '' : 'from refs/heads/main^0\n'}M 100644 inline A.kt\n${data(file(i))}`).join('');
		execFileSync('git', ['fast-import', '--quiet', '--date-format=raw-permissive'], { cwd: r.folder, input: stream });
	});
	const a = await blame(s, { method: 'com.example.A.f' });
	assert.ok(a.commits.length > 0, JSON.stringify(a));
	for (const c of a.commits) assert.ok(c.time_ms >= 0 && c.time_ms <= 253402300799000, `${c.time_ms}`);
	assert.equal(a.newest_ms, undefined, 'a time to come is no age');
});

test('a merge that itself changes the lines is reported', async (t) => {
	const { s, made } = await withClones(t, [{ ...APP, roots: [], refs: ['{version}'] }], (dir) => {
		const r = new Repository(path.join(dir, 'test/app'));
		const file = (n) => `package com.example\nclass A {\n\tfun f(): Int {\n\t\treturn ${n}\n\t}\n}\n`;
		r.write('A.kt', file(1));
		r.commit('one');
		r.git('tag', 'a');
		r.git('checkout', '-q', '-b', 'left');
		r.write('A.kt', file(2));
		const left = r.commit('two');
		r.git('checkout', '-q', '-b', 'right', 'a');
		r.write('A.kt', file(3));
		const right = r.commit('three');
		try { r.git('merge', '-q', 'left'); } catch { /* a conflict, as meant */ }
		r.write('A.kt', file(4));
		const merge = r.commit('joined');
		r.git('tag', 'b');
		return { left, right, merge };
	});
	const a = await blame(s, { method: 'com.example.A.f', base: 'a', head: 'b' });
	assert.deepEqual(a.commits.map((c) => c.id), [made.merge, made.right, made.left]);
});

test('invalid settings are refused with a message that names repository and field', async (t) => {
	const s = await startServer(t);
	const wrong = async (change, words) => assert.match((await put(s, [{ ...APP, ...change }], 400)).json.error.message, words);
	await wrong({ name: '' }, /repository 1: a name/);
	await wrong({ link: 'javascript:alert(1)//{path}' }, /repository app: link begins with http/);
	await wrong({ link: 'https://{path}/x' }, /link begins/);
	await wrong({ link: 'https://h/{path}"onclick=' }, /link has no blanks, quotes/);
	await wrong({ link: 'https://h/{file}' }, /only \{commit\}, \{path\}/);
	await wrong({ link: 'https://h/x' }, /must contain \{path\}/);
	await wrong({ commit_link: 'https://h/{path}' }, /commit_link must contain \{commit\}/);
	for (const clone of ['..', '../x', 'a/b', '.git', '/etc']) await wrong({ clone }, /clone must be the name of a folder/);
	for (const roots of [['../x'], ['/x'], ['a/../b'], ['a//b'], [''], [7]]) await wrong({ roots }, /repository app: each of roots must be a folder/);
	await wrong({ refs: ['HEAD'] }, /each of refs must be the name of a tag/);
	await wrong({ refs: ['{version}..{build}'] }, /refs/);
	await wrong({ packages: ['a/b'] }, /packages/);
	await wrong({ owners: '../OWNERS' }, /owners must be the path/);
	await wrong({ show_emails: 1 }, /show_emails must be true or false/);
	await wrong({ tokens: 'x' }, /repository app: unknown member tokens/);
	await wrong({ link: '', clone: '' }, /neither link nor clone/);
	assert.match((await put(s, [APP, APP], 400)).json.error.message, /name is used twice/);
	assert.match((await put(s, Array(21).fill(APP), 400)).json.error.message, /at most 20/);
	assert.deepEqual((await s.get('/api/v1/source/repositories')).json, { repositories: [], updated_ms: 0, clones_folder: null });
	await put(s, [APP]);
	assert.deepEqual((await s.get('/api/v1/source/repositories')).json.repositories, [APP]);
});

test('a missing, broken or foreign clone causes one error with a message', async (t) => {
	const outside = folder(t);
	shopRepository(path.join(outside, 'secret'));
	const named = (clone) => ({ ...APP, name: clone, clone, packages: [`com.${clone}.`], refs: ['{version}'] });
	const kept = sanitized() ? [] : ['inner', 'borrowed', 'pointer']; /* sanitizers need what Landlock denies */
	const names = ['gone', 'plain', 'out', 'broken', ...kept];
	const { s } = await withClones(t, names.map(named), (dir) => {
		const home = path.join(dir, 'test');
		fs.mkdirSync(path.join(home, 'plain'), { recursive: true });
		fs.symlinkSync(path.join(outside, 'secret'), path.join(home, 'out'));
		for (const name of ['inner', 'broken', 'borrowed']) shopRepository(path.join(home, name));
		const git = (name, file) => path.join(home, name, '.git', file);
		fs.rmSync(git('inner', 'objects'), { recursive: true });
		fs.symlinkSync(path.join(outside, 'secret/.git/objects'), git('inner', 'objects'));
		for (const pack of fs.readdirSync(git('broken', 'objects'))) if (pack.length === 2) for (const f of fs.readdirSync(git('broken', `objects/${pack}`))) {
			const at = git('broken', `objects/${pack}/${f}`);
			fs.chmodSync(at, 0o644);
			fs.writeFileSync(at, Buffer.from('garbage in place of an object'));
		}
		fs.rmSync(git('borrowed', 'objects'), { recursive: true });
		fs.mkdirSync(git('borrowed', 'objects/info'), { recursive: true });
		fs.writeFileSync(git('borrowed', 'objects/info/alternates'), `${path.join(outside, 'secret/.git/objects')}\n`);
		fs.mkdirSync(path.join(home, 'pointer'));
		fs.writeFileSync(path.join(home, 'pointer/.git'), `gitdir: ${path.join(outside, 'secret/.git')}\n`);
	});
	const words = { gone: /no clone test\/gone/, plain: /not a readable git repository/, out: /link to a folder outside/, inner: /./, broken: /clone cannot be read|no tag/, borrowed: /./, pointer: /not a readable git repository/ };
	for (const name of names) {
		const a = await blame(s, { method: `com.${name}.Feed.load`, base: 'v1.0', head: 'v1.1' });
		assert.match(a.reason ?? '', words[name], name);
		assert.ok(!a.commits && !a.commit && !a.owners?.length, `${name} tells nothing of what lies outside: ${JSON.stringify(a)}`);
		assert.ok(!a.reason.includes(outside), `${name} names no path: ${a.reason}`);
	}
	assert.equal((await s.get('/healthz')).status, 200);
});

test('an endless file and a history of 5,000 commits end in time with a message', async (t) => {
	const few = (n) => `package com.example;\nclass Few {\n\tint f() {\n\t\treturn ${n};\n\t}\n}\n`;
	const { s } = await withClones(t, [{ ...APP, refs: ['{version}'] }], (dir) => {
		const r = new Repository(path.join(dir, 'test/app'));
		r.write('app/src/main/java/com/example/Big.java', `package com.example;\nclass Big {\n${'\tint x;\n'.repeat(400000)}}\n`);
		r.write('app/src/main/java/com/example/Few.java', few(0));
		r.commit('Begin');
		r.git('tag', 'a');
		const data = (text) => `data ${Buffer.byteLength(text)}\n${text}\n`;
		let stream = '';
		for (let i = 0; i < 5000; i++)
			stream += `commit refs/heads/main\ncommitter Dan <d@example.com> ${1767300000 + i} +0000\n${data(`change ${i}`)}${i ? '' : 'from refs/heads/main^0\n'}M 100644 inline ${i % 1000 === 500 ? 'app/src/main/java/com/example/Few.java' : 'README'}\n${data(i % 1000 === 500 ? few(i) : String(i))}`;
		execFileSync('git', ['fast-import', '--quiet'], { cwd: r.folder, input: stream });
		r.git('tag', 'b', 'main');
	});
	assert.match((await ask(s, { method: 'com.example.Big.x', version: 'a' })).reason, /Big.java is larger than 2 MiB/);
	const a = await blame(s, { method: 'com.example.Few.f', base: 'a', head: 'b' });
	assert.deepEqual(a.commits.map((c) => c.summary), ['change 4500', 'change 3500', 'change 2500', 'change 1500', 'change 500']);
	assert.ok(!a.more, 'within the deadline of a query');
});

test('a hanging child is killed at its deadline, and the server continues', async (t) => {
	const clones = folder(t);
	shopRepository(path.join(clones, 'test/app'));
	const s = await startServer(t, { args: ['--repositories', clones, '--query-deadline', '2000'], env: { TRACEWELL_WORKER_FAULT: 'loop' } });
	await put(s, [APP]);
	const a = await ask(s, { method: LOAD, version: '1.1' });
	assert.match(a.reason, /exceeded its time or memory limit/);
	assert.equal(a.link, 'https://git.example.com/app/blob/v1.1/app/src/main/kotlin/com/example/feed/FeedAdapter.kt', 'the likely place all the same');
	const read = await s.metric('tracewell_source_responses_total', { from: 'clone' });
	assert.equal((await ask(s, { method: LOAD, version: '1.1' })).reason, a.reason);
	assert.equal(await s.metric('tracewell_source_responses_total', { from: 'clone' }), read, 'what took all its time is not tried again at once');
	assert.equal(await s.metric('tracewell_source_responses_total', { from: 'cached' }), 1);
	assert.equal((await s.get('/healthz')).status, 200);
});

test('facts found before the history are returned when the child dies reading it', { skip: sanitized() && 'a sanitizer takes the signal' }, async (t) => {
	const clones = folder(t);
	const { ids } = shopRepository(path.join(clones, 'test/app'));
	const s = await startServer(t, { args: ['--repositories', clones], env: { TRACEWELL_SOURCE_FAULT: 'crash' } });
	await put(s, [APP]);
	const a = await blame(s, { method: LOAD, base: '1.0', head: '1.1' });
	assert.deepEqual([a.commit, a.base_commit, a.lines, a.commits, a.more], [ids.logged, ids.first, [[7, 12]], [], true]);
	assert.match(a.reason, /reading the clone app failed/);
});

test('a child that cannot lock itself in costs no link', async (t) => {
	const clones = folder(t);
	shopRepository(path.join(clones, 'test/app'));
	const s = await startServer(t, { args: ['--repositories', clones], env: { TRACEWELL_WORKER_FAULT: 'unlocked' } });
	await put(s, [APP]);
	const a = await ask(s, { method: LOAD, version: '1.1' });
	assert.match(a.reason, /sandbox could not be set up/);
	assert.match(a.link, /^https:/);
});

test('no project can read the clones of another, and readers can change nothing', async (t) => {
	const { s } = await withClones(t, [APP], (dir) => {
		shopRepository(path.join(dir, 'test/app'));
		fs.mkdirSync(path.join(dir, 'other'));
	});
	const read = s.key('read', 'other');
	assert.match((await s.get('/api/v1/source', { key: read, query: { method: LOAD } })).json.reason, /no repository yet/);
	assert.equal((await s.ask('PUT', '/api/v1/source/repositories', { key: s.key('admin', 'other'), body: JSON.stringify({ repositories: [APP] }) })).status, 200);
	assert.match((await s.get('/api/v1/source', { key: read, query: { method: LOAD } })).json.reason, /no clone other\/app/);
	assert.equal((await ask(s, { method: LOAD, version: '1.1' })).found, true);
	assert.equal((await s.ask('PUT', '/api/v1/source/repositories', { key: s.write, body: '{"repositories":[]}' })).status, 403);
	assert.equal((await s.get('/api/v1/source', { key: s.ingest, query: { method: LOAD } })).status, 403);
});

test('equal concurrent queries share one child, and a flood of one project delays no other', async (t) => {
	const { s } = await withClones(t, [APP], (dir) => {
		shopRepository(path.join(dir, 'test/app'));
		shopRepository(path.join(dir, 'other/app'));
	});
	const counts = async () => Object.fromEntries((await s.get('/metrics')).text.split('\n').filter((l) => l.startsWith('tracewell_source_')).map((l) => l.split(' ')).map(([k, v]) => [k.replace('tracewell_source_', ''), Number(v)]));
	const all = await Promise.all(Array(12).fill(0).map(() => ask(s, { method: LOAD, version: '1.1' })));
	for (const a of all) assert.deepEqual(a, all[0]);
	const n = await counts();
	assert.deepEqual([n['responses_total{from="clone"}'], n['responses_total{from="shared"}'] + n['responses_total{from="cached"}'], n.requests], [1, 11, 0]);
	const read = s.key('read', 'other');
	assert.equal((await s.ask('PUT', '/api/v1/source/repositories', { key: s.key('admin', 'other'), body: JSON.stringify({ repositories: [APP] }) })).status, 200);
	const flood = Promise.all(Array(40).fill(0).map((_, i) => s.get('/api/v1/source', { query: { method: LOAD, line: String(i + 1) } })));
	const other = await s.get('/api/v1/source', { key: read, query: { method: LOAD, version: '1.1' } });
	assert.deepEqual([other.status, other.json.found], [200, true], other.text);
	for (const a of await flood) assert.ok(a.status === 200 || (a.status === 503 && /retry in a moment/.test(a.text)), a.text);
});
