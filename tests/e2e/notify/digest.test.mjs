/*
 * digest.test.mjs - slow methods and changes, made once a period across restarts, sent by webhook and by mail;
 * a regression that a later version fixes by itself, and one that comes back; issues for three trackers.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';

import { btrace } from '../make.mjs';
import { readMail, startMail, startReceiver } from '../webhook_receiver.mjs';
import { binary, sideBySide, startServer, until } from '../server.mjs';
import { findSlower, look } from '../regressed_fleet.mjs';

const test = sideBySide(3);

const json = (o) => JSON.stringify(o);
const BASE = 'https://traces.example.com';
const HOUR_MS = 3_600_000;

const db = (s, sql) => s.sql(sql);

test('a digest is sent once a period, by webhook and by mail, across restarts', async (t) => {
	const [r, mail] = [await startReceiver(t), await startMail(t)];
	const s = await startServer(t, { args: ['--webhook-private', '127.0.0.1', '--public-url', BASE, '--smtp-url', mail.url, '--mail-from', 'tracewell@example.com'] });
	const put = (body) => s.ask('PUT', '/api/v1/digest/settings', { key: s.admin, body: json(body) });
	await s.ask('POST', '/api/v1/webhooks', { key: s.admin, body: json({ url: `${r.url}/h`, events: ['digest'] }) });
	await s.ask('POST', '/api/v1/webhooks', { key: s.admin, body: json({ url: `${r.url}/other`, events: ['anr.new'] }) });
	await findSlower(s, 12);
	const today = Math.floor(Date.now() / (24 * HOUR_MS));
	assert.deepEqual((await s.get('/api/v1/digest')).json.scenarios, [], 'a day is reported when it is over');
	db(s, 'update rollup_cell set day=day-1');

	await t.test('how it would read now', async () => {
		const { json: d } = await s.get('/api/v1/digest');
		assert.deepEqual(Object.values(d.days).map((ms) => ms / (24 * HOUR_MS) - today), [-1, -1, -8, -8]);
		assert.deepEqual(Object.values((await s.get('/api/v1/digest?days=7')).json.days).map((ms) => ms / (24 * HOUR_MS) - today), [-7, -1, -14, -8]);
		assert.deepEqual([d.project.name, d.empty, d.found.total, d.returned.total, d.open.total, d.ingest.accepted, d.ingest.failed], ['test', false, 2, 0, 0, 24, 0]);
		assert.deepEqual(d.found.list.map((x) => x.method).sort(), ['', 'com.app.Repo.load']);
		assert.equal(d.scenarios[0].scenario, 'slower');
		assert.ok(d.scenarios[0].p95_ns >= d.scenarios[0].p50_ns && d.scenarios[0].traces === 24);
		assert.deepEqual(d.methods.map((m) => m.name), ['com.app.Repo.load', 'com.app.Main.onCreate']);
		const text = (await s.get('/api/v1/digest?for=text')).text;
		assert.match(text, /^test: slow methods and changes, .* UTC\n\nGot slower\n\n- /);
		const markdown = (await s.get('/api/v1/digest?for=markdown&days=7')).text;
		assert.match(markdown, /## Scenarios, \d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d against \d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d \\?\(UTC/);
		assert.match(markdown, /## Got slower\n\n- `com\.app\.Repo\.load` in `slower`/);
		assert.ok(markdown.includes(`](${BASE}/regressions?project=`));
		const html = await s.get('/api/v1/digest?for=html');
		assert.match(html.headers.get('content-type'), /^text\/plain/);
		assert.match(html.text, /<li><code>com\.app\.Repo\.load<\/code>/);
	});
	await t.test('contradictory settings are refused with a message', async () => {
		for (const [body, words] of [[{ every: 'hourly' }, /off, daily or weekly/], [{ hour: 24 }, /0 to 23/], [{ weekday: -1 }, /0 to 6/], [{ mail: ['ann'] }, /not an address such as/], [{ mail: ['a@b.c\r\nBcc: x@y.z'] }, /not an address/],
			[{ mail: Array(21).fill('a@b.c') }, /at most 20/], [{ colour: 1 }, /unknown member colour/]]) {
			const a = await put(body);
			assert.equal(a.status, 400, a.text);
			assert.match(a.json.error.message, words);
		}
	});
	const hour = new Date().getUTCHours();
	assert.equal((await put({ every: 'daily', hour, webhook: true, mail: ['ann@example.com', 'bob@example.com'] })).status, 200);
	/* the settings are older than the period's end */
	db(s, `update project_setting set updated_ms=updated_ms-${26 * HOUR_MS} where key='digest'`);
	await s.stop();
	await s.start(); // which looks for digests that are due
	const got = await r.wait('/h', 1);
	assert.deepEqual([got.json.event, got.json.id.startsWith('digest.')], ['digest', true]);
	assert.equal(got.json.digest.until_ms % (24 * HOUR_MS), hour * HOUR_MS);
	assert.match(got.json.text, /slow methods and changes/);
	const both = await until(() => (mail.mails.length === 2 ? mail.mails : undefined), 'two mails');
	assert.deepEqual(both.map((m) => [m.from, m.to]).sort(), [['tracewell@example.com', ['ann@example.com']], ['tracewell@example.com', ['bob@example.com']]]);
	for (const m of both) assert.ok(!JSON.stringify({ ...m, to: '' }).includes(m.to[0] === 'ann@example.com' ? 'bob@' : 'ann@'), 'none sees another');
	const [one] = both;
	const read = readMail(one);
	assert.match(read.subject, /^test: slow methods and changes, /);
	assert.match(read.text, /^test: slow methods and changes/);
	assert.match(read.html, /^<!doctype html>/);
	assert.match(read.head, /Message-ID: <digest\.\d+\.\d\.\w{26}@example\.com>\r\n/);
	await until(async () => ((await s.get('/api/v1/webhooks/mail/deliveries', { key: s.admin })).json.deliveries[0]?.state === 'delivered' ? true : undefined), 'the log has the mail');
	await s.stop('SIGKILL');
	await s.start();
	await s.ran('digests', { first: true });
	assert.deepEqual([r.at('/h').length, r.at('/other').length, mail.mails.length, db(s, 'select count(*) from digest_made')], [1, 0, 2, '1']);
	/* at another hour of the same day, or of the week, nothing is sent twice */
	for (const body of [{ every: 'daily', hour: 0 }, { every: 'weekly', hour, weekday: new Date().getUTCDay() }]) {
		assert.equal((await put({ ...body, mail: ['ann@example.com'] })).status, 200);
		db(s, `update project_setting set updated_ms=updated_ms-${200 * HOUR_MS} where key='digest'`);
		await s.stop('SIGKILL');
		await s.start();
		await s.ran('digests', { first: true });
		assert.equal(db(s, 'select count(*) from digest_made'), '1');
	}
});

test('a digest can be sent on request, and the scheduled one still follows', async (t) => {
	const [r, mail] = [await startReceiver(t), await startMail(t)];
	const s = await startServer(t, { args: ['--webhook-private', '127.0.0.1', '--smtp-url', mail.url, '--mail-from', 'tracewell@example.com'] });
	const tell = (key = s.admin) => s.ask('POST', '/api/v1/digest?days=7', { key });
	const nobody = await tell();
	assert.equal(nobody.status, 409, nobody.text);
	assert.match(nobody.json.error.message, /no recipients/);
	assert.equal((await tell(s.write)).status, 403);
	const hook = (path, more) => s.ask('POST', '/api/v1/webhooks', { key: s.admin, body: json({ url: `${r.url}${path}`, ...more }) });
	await hook('/h', { events: ['digest'] });
	await hook('/other', { events: ['anr.new'] });
	const paused = (await hook('/paused')).json.id;
	await s.ask('PATCH', `/api/v1/webhooks/${paused}`, { key: s.admin, body: json({ paused: true }) });
	await s.ask('PUT', '/api/v1/digest/settings', { key: s.admin, body: json({ every: 'off', webhook: true, mail: ['ann@example.com', 'bob@example.com'] }) });
	const minute = () => Math.floor(Date.now() / 60_000);
	const twice = async () => {
		const began = minute();
		const both = [await tell(), await tell()];
		return minute() === began ? both : undefined;
	};
	const answers = (await twice()) ?? (await twice()); // a minute may end between the two
	assert.deepEqual(answers.map((a) => [a.status, a.json]), Array(2).fill([202, { webhooks: 1, mails: 2 }]));
	const got = await r.wait('/h');
	assert.equal(got.json.digest.until_ms - got.json.digest.since_ms > 7 * 24 * HOUR_MS, true);
	await until(() => (mail.mails.length >= 2 ? true : undefined), 'two mails');
	assert.deepEqual([r.at('/other').length, r.at('/paused').length, db(s, 'select count(*) from digest_made')], [0, 0, '0']);
	const ids = Number(db(s, "select count(distinct event_id) from outbox where hook_id<>'mail'"));
	assert.ok(ids <= 2, 'two requests within a minute send one digest');
	await r.wait('/h', ids);
});

test('a digest that reaches its deadline states that it is incomplete', async (t) => {
	const s = await startServer(t, { args: ['--query-deadline', '1'] });
	const d = await until(async () => {
		const a = await s.get('/api/v1/digest');
		return a.status === 200 && a.json.partial ? a.json : undefined;
	}, 'one that is cut');
	assert.deepEqual([d.empty, d.methods, d.scenarios], [false, [], []]);
	await until(async () => (/some are omitted/.test((await s.get('/api/v1/digest?for=text')).text) ? true : undefined), 'its text, when it is cut as well');
});

test('without an SMTP server a digest can be turned off, and no address added', async (t) => {
	const s = await startServer(t);
	const put = (body) => s.ask('PUT', '/api/v1/digest/settings', { key: s.admin, body: json(body) });
	assert.equal((await put({ every: 'daily', mail: ['ann@example.com'] })).status, 409);
	assert.equal((await put({ every: 'daily' })).status, 200);
	db(s, "update project_setting set value=replace(value, '\"mail\":[]', '\"mail\":[\"ann@example.com\"]') where key='digest'");
	const old = (await s.get('/api/v1/digest/settings', { key: s.admin })).json;
	assert.deepEqual(old.mail, ['ann@example.com']);
	const off = await put({ ...old, every: 'off' });
	assert.deepEqual([off.status, off.json.every, off.json.mail], [200, 'off', ['ann@example.com']]);
	assert.equal((await put({ ...old, mail: ['ann@example.com', 'bob@example.com'] })).status, 409);
	assert.equal((await put({ ...old, every: 'daily', hour: new Date().getUTCHours() })).status, 200);
	db(s, `update project_setting set updated_ms=updated_ms-${26 * HOUR_MS} where key='digest'`);
	await s.stop();
	await s.start(); // which looks for digests that are due
	await until(() => (db(s, 'select count(*) from digest_made') === '1' ? true : undefined), 'a digest');
	assert.equal(db(s, "select count(*) from outbox where hook_id='mail'"), '0', 'nothing waits for a mail server that is not there');
	assert.equal((await put({ every: 'off' })).status, 200);
});

test('groups of ANRs are reported by their first report, whatever the number of later reports', async (t) => {
	const s = await startServer(t);
	const report = (n, who, query) => s.trace(`"main" prio=5 tid=1 Blocked\n  at a.B${n}.c(B.java:1)\n  - waiting to lock <0x01> (a a.T${n}) held by thread 2\n\n"w" prio=5 tid=2 Runnable\n  at com.example.app.Class${n}.method1(D.java:3)\n  - locked <0x01> (a a.T${n})\n`, { query: { version_name: '1', device: `${who}`, ...query } });
	for (const [n, who] of [[1, 'old'], [1, 'new'], [2, 'x'], [2, 'y']]) await report(n, who);
	await report(3, 'offline', { started_at: Date.now() - 12 * 24 * HOUR_MS }); // after the digest of its day
	await until(async () => ((await s.get('/api/v1/anr/groups')).json.groups.length === 3 ? true : undefined), 'three groups');
	db(s, "update anr_trace set trace_id='00' || substr(trace_id, 3) where device='old'"); // arrived decades ago
	const { anrs } = (await s.get('/api/v1/digest')).json;
	assert.deepEqual([anrs.total, anrs.list.map((g) => g.count)], [2, [2, 1]]);
});

/** Queues a digest for one address; its period is its id. */
const toMail = (s, id, to) => db(s, `insert into outbox(project_id,hook_id,event_id,event,facts,created_ms,due_ms,until_ms,attempts_left)
	select project_id,'mail','digest.${id}',5,'${json({ digest: {}, to })}',${Date.now()},1,${Date.now() + 72 * HOUR_MS},15 from project where name='test'`);

test('a refused mailbox delays no other, and neither does a mail server that does not answer QUIT', async (t) => {
	const [r, mail] = [await startReceiver(t), await startMail(t)];
	const s = await startServer(t, { args: ['--webhook-private', '127.0.0.1', '--smtp-url', mail.url, '--mail-from', 'tracewell@example.com'] });
	const key = s.admin;
	const ended = (id) => until(async () => (await s.get('/api/v1/webhooks/mail/deliveries', { key })).json.deliveries.find((d) => d.event_id === `digest.${id}` && d.log.length), `mail ${id}`, 30);
	const hook = (await s.ask('POST', '/api/v1/webhooks', { key, body: json({ url: `${r.url}/h` }) })).json;
	await s.ask('PUT', '/api/v1/digest/settings', { key, body: json({ mail: ['ann@example.com', 'dead@example.com', 'bob@example.com'] }) });
	mail.refused.add('dead@example.com');
	mail.silent.add('QUIT');
	toMail(s, 1, 'ann@example.com');
	const one = await ended(1);
	assert.deepEqual([one.state, one.attempts, one.log[0].error], ['delivered', 1, '']);
	assert.deepEqual(mail.mails.map((m) => m.to), [['ann@example.com']]);

	toMail(s, 2, 'dead@example.com');
	await until(() => (mail.received.filter((w) => w === 'QUIT').length === 2 ? true : undefined), 'its second QUIT', 30);
	await s.ask('POST', `/api/v1/webhooks/${hook.id}/test`, { key });
	await r.wait('/h');
	const two = await ended(2);
	assert.deepEqual([two.state, two.attempts, two.log[0].error], ['given_up', 1, 'the mail server returned 550']);
	mail.silent.add('MAIL');
	toMail(s, 3, 'bob@example.com');
	await until(() => (mail.received.filter((w) => w === 'MAIL').length === 3 ? true : undefined), 'its third MAIL', 30);
	await s.stop(); // and does not wait for the mail server
	assert.equal(mail.received.filter((w) => w === 'MAIL').length, 3);
	for (const url of ['smtp://ann:hushhush@mail.example.com', 'ann:hushhush@mail.example.com']) {
		const { status, stderr } = spawnSync(binary(), ['serve', '--data', s.data, '--listen', '127.0.0.1:0', '--smtp-url', url, '--mail-from', 'a@b.c'], { encoding: 'utf8', timeout: 60_000 });
		assert.notEqual(status, 0);
		assert.match(stderr, /smtp-url (must not contain a name or password|is neither)/);
		assert.ok(!stderr.includes('hush'), 'never its password');
	}
});

const PID = 4000;
const trace = (load) => btrace([[PID, 2, 1_001_000, load], [PID, 1, 1_000_000, load + 500_000]], { pid: PID });

async function send(s, version, scale, each = 12) {
	await s.put(`/api/v1/builds/b${version}/methods`, '# v\n1,1,com.app.Main onCreate ()V\n2,1,com.app.Repo load ()V\n');
	for (let i = 0; i < each; i++)
		await s.post('/api/v1/traces', trace(Math.round((1_000_000 + i * 4_000) * scale)), { query: { app: 'shop', version_name: version, build_id: `b${version}`, scenario: 'slower' }, headers: { 'Idempotency-Key': `${version}-${i}` } });
	await until(async () => {
		const { json: j } = await s.get(`/api/v1/fleet/methods?scenario=slower&version_name=${version}`);
		return j?.traces === each && j.methods.length === 2 && j.methods.every((m) => m.resolved) ? true : undefined;
	}, `${version} is counted`, 60);
}

test('status follows: a later version fixes it, another brings it back', async (t) => {
	const [s, r] = [await startServer(t, { args: ['--webhook-private', '127.0.0.1'] }), await startReceiver(t)];
	await s.ask('POST', '/api/v1/webhooks', { key: s.admin, body: json({ url: `${r.url}/h` }) });
	const found = await findSlower(s, 12);
	const get = async () => (await s.get(`/api/v1/regressions/${found.id}`)).json;
	const events = () => r.at('/h').filter((g) => g.json.regression.method).map((g) => g.json.event);

	await send(s, '8.3.2', 1.35); // better by a third, and still more than a tenth above
	await look(s);
	assert.equal((await get()).status, 'open', 'the rest would still be reported');
	await send(s, '8.3.3', 1.02);
	await look(s);
	const fixed = await get();
	assert.deepEqual([fixed.status, fixed.fixed_in], ['fixed', '8.3.3']);
	const history = (await s.get(`/api/v1/regressions/${found.id}/history`)).json.history;
	assert.deepEqual(history.map((h) => [h.event, h.author, h.version]), [['regression.fixed', 'tracewell', '8.3.3'], ['regression.found', 'tracewell', '']]);
	const standsIn = async () => Object.entries((await s.get('/api/v1/digest')).json).filter(([, part]) => part.list?.some((x) => x.id === found.id)).map(([name]) => name);
	assert.deepEqual(await standsIn(), ['fixed'], 'once, where it is now');
	await s.ask('PATCH', `/api/v1/regressions/${found.id}`, { key: s.write, body: json({ status: 'open' }) });
	assert.deepEqual(await standsIn(), ['found']);
	await look(s);
	assert.equal((await get()).status, 'open', 'who opens it again knows of that version');
	await s.ask('PATCH', `/api/v1/regressions/${found.id}`, { key: s.write, body: json({ status: 'fixed' }) });

	await send(s, '8.3.4', 1.6);
	await look(s);
	const back = (await s.get('/api/v1/regressions?method=com.app.Repo.load&status=returned')).json.regressions;
	assert.deepEqual(back.map((x) => [x.base, x.head, x.earlier]), [['8.3.3', '8.3.4', found.id]]);
	assert.deepEqual(await standsIn(), [], 'what came back stands for it');
	await until(() => (events().length === 5 ? true : undefined), 'everything is sent');
	assert.deepEqual(events(), ['regression.found', 'regression.fixed', 'regression.status', 'regression.fixed', 'regression.returned']);
	assert.match(r.at('/h').find((g) => g.json.event === 'regression.fixed' && g.json.regression.method).json.text, /^Fixed in 8\.3\.3 \(by tracewell\): com\.app\.Repo\.load in slower/);
});

test('issues for three trackers', async (t) => {
	const s = await startServer(t, { args: ['--public-url', BASE] });
	const { id } = await findSlower(s, 12);
	const issue = async (tracker) => (await s.get(`/api/v1/regressions/${id}/issue?for=${tracker}`)).json;
	const github = await issue('github');
	assert.match(github.title, /^com\.app\.Repo\.load in slower is \d+ % slower since 8\.3\.1$/);
	assert.match(github.body, /^`com\.app\.Repo\.load` in `slower` of `shop` got slower: \+\d+ % in `8\.3\.1` against `8\.3\.0`: .* at the median, 95 % confidence interval (about )?\+[\d.]+ %( to \+[\d.]+ %)?\.\n/);
	assert.match(github.body, /12 traces before \d{4}-\d\d-\d\d and 12 since then/);
	assert.match(github.body, /- \[Both versions compared, with the methods that changed\]\(https:\/\/traces\.example\.com\/fleet\/compare\?project=[^&)]+&days=90&a=8\.3\.0&b=8\.3\.1&app=shop&scenario=slower&method=com\.app\.Repo\.load\)/);
	assert.match(github.body, /## Trace duration, by class of device\n\n- unknown: median [\d.]+ ms \(12 traces\) to [\d.]+ ms \(12 traces\)/);
	assert.doesNotMatch(github.body, /largest increase/, 'the method is the regression');
	const whole = (await s.get('/api/v1/regressions?scenario=slower')).json.regressions.find((x) => x.method === '');
	const { body } = (await s.get(`/api/v1/regressions/${whole.id}/issue?for=github`)).json;
	assert.match(body, /## Methods with the largest increase of mean self time per trace\n\n- `com\.app\.Repo\.load`: 1\.02 ms to 1\.53 ms\n\n/, 'of the scenario\'s duration, and no method that did not change');
	assert.match(github.body, /- A slow trace: \[\w{26}\]\(https:\/\/traces\.example\.com\/traces\/\w{26}\?project=/);
	assert.equal(github.url, null);
	assert.match((await issue('gitlab')).body, /\n\/label ~performance\n$/);
	assert.match((await issue('jira')).body, /\{\{com\.app\.Repo\.load\}\} in \{\{slower\}\}/);
	const set = (body) => s.ask('PUT', '/api/v1/tracker', { key: s.admin, body: json(body) });
	for (const [body, words] of [[{ for: 'bugzilla', template: '' }, /github, gitlab, jira or gitea/], [{ for: 'github', template: 'javascript:alert(1)//{title}' }, /http/], [{ for: 'github', template: 'https://a.example' }, /\{title\}/], [{ for: 'jira' }, /template must be a text/]])
		assert.match((await set(body)).json.error.message, words);
	assert.equal((await set({ for: 'github', template: 'https://github.com/o/r/issues/new?title={title}&body={body}' })).status, 200);
	const url = new URL((await issue('github')).url);
	assert.equal(url.searchParams.get('title'), github.title);
	assert.equal(url.searchParams.get('body'), github.body.slice(0, url.searchParams.get('body').length));
	assert.equal((await issue('jira')).url, null);
	await s.trace('"main" prio=5 tid=1 Blocked\n  at a.B.c(B.java:1)\n  - waiting to lock <0x01> (a a.T) held by thread 2\n\n"w" prio=5 tid=2 Runnable\n  at com.example.app.Class0.method1(D.java:3)\n  - locked <0x01> (a a.T)\n', { query: { version_name: '8.3.1', device: 'Pixel `9`' } });
	const group = await until(async () => (await s.get('/api/v1/anr/groups')).json.groups[0], 'a group of ANRs');
	const anr = (await s.get(`/api/v1/anr/groups/${group.key}/issue`)).json;
	assert.match(anr.title, /^ANR: /);
	assert.match(anr.body, /`` Pixel `9` ``/);
	assert.equal((await s.get('/api/v1/anr/groups/none/issue')).status, 404);
	assert.equal((await s.get(`/api/v1/regressions/${id}/issue`, { key: s.key('read', 'other') })).status, 404);
});
