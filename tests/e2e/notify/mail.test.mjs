/*
 * mail.test.mjs - digests mailed by a real mail server: implicit TLS and STARTTLS, certificates of an
 * unknown authority or another name, valid and invalid logins by PLAIN and LOGIN, and a server that offers
 * a login without TLS.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { SMTPServer } from 'smtp-server';

import { atEnd, binary, startServer, until } from '../server.mjs';

const json = (o) => JSON.stringify(o);
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-mail-'));
after(() => fs.rmSync(dir, { recursive: true, force: true }));

/** A certificate that signs itself; the name is one of this machine or of another. */
function certificate(name, alt) {
	const [key, cert] = ['key', 'crt'].map((end) => path.join(dir, `${name}.${end}`));
	execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', `/CN=${name}`, '-addext', `subjectAltName=${alt}`, '-keyout', key, '-out', cert], { stdio: 'ignore' });
	return { key: fs.readFileSync(key), cert: fs.readFileSync(cert), file: cert };
}
const ours = certificate('ours', 'IP:127.0.0.1');
const another = certificate('another', 'DNS:mail.example.com');

/** Stores received mails, and the login of each sender. */
async function startMails(t, options) {
	const mails = [], logins = [];
	const server = new SMTPServer({
		logger: false, authOptional: true, ...options,
		onAuth: (auth, session, done) => {
			logins.push([auth.method, auth.username, auth.password, session.secure]);
			return auth.username === 'ann' && auth.password === 'hush hush' ? done(null, { user: 'ann' }) : done(new Error('nobody of that name and password'));
		},
		onData: (stream, session, done) => {
			const pieces = [];
			stream.on('data', (p) => pieces.push(p)).on('end', () => {
				mails.push({ to: session.envelope.rcptTo.map((r) => r.address), user: session.user, secure: session.secure, text: Buffer.concat(pieces).toString('utf8') });
				done();
			});
		},
	});
	server.on('error', () => {});
	await new Promise((ok) => server.listen(0, '127.0.0.1', ok));
	atEnd(t, () => new Promise((ok) => server.close(ok)));
	return { mails, logins, port: server.server.address().port };
}

const secret = path.join(dir, 'secret');
fs.writeFileSync(secret, 'hush hush\n');
const wrong = path.join(dir, 'wrong');
fs.writeFileSync(wrong, 'hush\n');

/** One digest to ann, and the log entry of the first attempt. */
async function tryMail(t, args) {
	const s = await startServer(t, { args: ['--mail-from', 'tracewell@example.com', ...args] });
	assert.equal((await s.ask('PUT', '/api/v1/digest/settings', { key: s.admin, body: json({ mail: ['ann@example.com'] }) })).status, 200);
	s.sql(`insert into outbox(project_id,hook_id,event_id,event,facts,created_ms,due_ms,until_ms,attempts_left)
	select project_id,'mail','digest.1.1',5,'{"digest":{},"to":"ann@example.com"}',${Date.now()},1,${Date.now() + 1e8},15 from project where name='test'`);
	const d = await until(async () => (await s.get('/api/v1/webhooks/mail/deliveries', { key: s.admin })).json.deliveries.find((x) => x.log.length), 'a try', 40);
	return [d.state, d.log[0].error];
}

test('TLS from the first byte, and a login by PLAIN', async (t) => {
	const m = await startMails(t, { secure: true, ...ours, authMethods: ['PLAIN'], authOptional: false });
	const url = `smtps://127.0.0.1:${m.port}`;
	assert.deepEqual(await tryMail(t, ['--smtp-url', url, '--smtp-ca-file', ours.file, '--smtp-user', 'ann', '--smtp-password-file', secret]), ['delivered', '']);
	assert.deepEqual(m.logins, [['PLAIN', 'ann', 'hush hush', true]]);
	assert.deepEqual([m.mails[0].to, m.mails[0].user, m.mails[0].secure], [['ann@example.com'], 'ann', true]);
	assert.match(m.mails[0].text, /^To: <ann@example.com>\r?$/m);
});

test('STARTTLS, and a login by LOGIN', async (t) => {
	const m = await startMails(t, { ...ours, authMethods: ['LOGIN'], authOptional: false });
	assert.deepEqual(await tryMail(t, ['--smtp-url', `smtp://127.0.0.1:${m.port}`, '--smtp-ca-file', ours.file, '--smtp-user', 'ann', '--smtp-password-file', secret]), ['delivered', '']);
	assert.deepEqual(m.logins, [['LOGIN', 'ann', 'hush hush', true]]);
});

test('STARTTLS is used where it is offered, also without a login', async (t) => {
	const m = await startMails(t, { ...ours });
	assert.deepEqual(await tryMail(t, ['--smtp-url', `smtp://127.0.0.1:${m.port}`, '--smtp-ca-file', ours.file]), ['delivered', '']);
	assert.equal(m.mails[0].secure, true);
});

test('a wrong password is reported as such, never sent in the clear, and retried', async (t) => {
	const m = await startMails(t, { ...ours, authOptional: false });
	const login = ['--smtp-user', 'ann', '--smtp-password-file'];
	const [state, why] = await tryMail(t, ['--smtp-url', `smtp://127.0.0.1:${m.port}`, '--smtp-ca-file', ours.file, ...login, wrong]);
	assert.match(why, /refuses the login: check --smtp-user and its password/);
	assert.deepEqual([state, m.mails.length, m.logins.every((l) => l[3])], ['waiting', 0, true]);
	const plain = await startMails(t, { disabledCommands: ['STARTTLS'], allowInsecureAuth: true });
	const [, refused] = await tryMail(t, ['--smtp-url', `smtp://127.0.0.1:${plain.port}`, ...login, secret]);
	assert.match(refused, /offers no TLS, and the password is sent only over TLS/);
	assert.deepEqual([plain.logins, plain.mails], [[], []]);
});

test('an untrusted certificate, or one of another name, is refused', async (t) => {
	for (const [secure, cert, ca] of [[true, ours, []], [false, ours, []], [true, another, ['--smtp-ca-file', another.file]], [false, another, ['--smtp-ca-file', another.file]]]) {
		const m = await startMails(t, { secure, ...cert });
		const [state, why] = await tryMail(t, ['--smtp-url', `${secure ? 'smtps' : 'smtp'}://127.0.0.1:${m.port}`, ...ca]);
		assert.match(why, /certificate has another name, has expired or is not signed by a trusted CA/);
		assert.deepEqual([state, m.mails], ['waiting', []]);
	}
	const { status, stderr } = spawnSync(binary(), ['serve', '--data', path.join(dir, 'data'), '--listen', '127.0.0.1:0', '--smtp-url', 'smtp://127.0.0.1', '--mail-from', 'a@b.c', '--smtp-ca-file', path.join(dir, 'none')], { encoding: 'utf8', timeout: 60_000 });
	assert.notEqual(status, 0);
	assert.match(stderr, /smtp-ca-file/);
});

test('the doctor checks mail without sending any, and reports the base of links', async (t) => {
	const doctor = async (...args) => {
		const { stdout } = await promisify(execFile)(binary(), ['doctor', '--json', ...args]).catch((e) => e);
		return Object.fromEntries(stdout.trim().split('\n').map((l) => JSON.parse(l)).map((l) => [l.check, [l.level, l.message]]));
	};
	const m = await startMails(t, { ...ours, authOptional: false });
	const mail = ['--smtp-url', `smtp://127.0.0.1:${m.port}`, '--mail-from', 'tracewell@example.com', '--smtp-user', 'ann'];
	const good = await doctor(...mail, '--smtp-password-file', secret, '--smtp-ca-file', ours.file);
	assert.deepEqual([good.mail[0], /accepts the user/.test(good.mail[1])], ['good', true]);
	assert.match(good.public_url[1], /Without --public-url, mails and webhooks contain no links/);
	const tell = async (words, ...args) => {
		const [level, text] = (await doctor(...args)).mail;
		assert.deepEqual([level, words.test(text)], ['wrong', true], text);
	};
	await tell(/check --smtp-user and its password/, ...mail, '--smtp-password-file', wrong, '--smtp-ca-file', ours.file);
	await tell(/certificate has another name/, ...mail, '--smtp-password-file', secret);
	await tell(/--smtp-user needs --smtp-password-file/, ...mail);
	await tell(/needs --mail-from/, '--smtp-url', `smtp://127.0.0.1:${m.port}`);
	await tell(/Mail cannot be sent through smtp:\/\/127.0.0.1:1:/, '--smtp-url', 'smtp://127.0.0.1:1', '--mail-from', 'a@b.c');
	assert.deepEqual(m.mails, []);

	const s = await startServer(t);
	assert.deepEqual((await doctor('--public-url', s.url)).public_url[0], 'note', 'of this machine');
	const other = http.createServer((req, res) => res.end('{}'));
	await new Promise((ok) => other.listen(0, '127.0.0.1', ok));
	atEnd(t, () => other.close());
	assert.match((await doctor('--public-url', `http://127.0.0.1:${other.address().port}`)).public_url[1], /a program other than tracewell/);
	assert.match((await doctor('--public-url', 'http://127.0.0.1:1')).public_url[1], /does not respond/);
});
