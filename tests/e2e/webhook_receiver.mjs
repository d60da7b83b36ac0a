/*
 * webhook_receiver.mjs - a real HTTP server for webhooks, which can be made to hang, refuse, redirect, close or
 * talk without end; and how a receiver checks a signature.
 */
import crypto from 'node:crypto';
import http from 'node:http';
import net from 'node:net';

import { atEnd, until } from './server.mjs';

/** As documented: over the time, a dot and the body; not older than five minutes. */
export function isSigned(got, secret) {
	const { t, v1 } = Object.fromEntries(got.headers['tracewell-signature'].split(',').map((p) => p.split('=')));
	const ours = crypto.createHmac('sha256', secret).update(`${t}.${got.text}`).digest('hex');
	return Math.abs(Date.now() / 1000 - Number(t)) < 300 && crypto.timingSafeEqual(Buffer.from(ours), Buffer.from(v1));
}

const MANNERS = {
	fine: (res) => res.writeHead(204).end(),
	hang: () => undefined,
	busy: (res) => res.writeHead(500).end('no'),
	wrong: (res) => res.writeHead(400).end('no'),
	later: (res) => res.writeHead(429, { 'Retry-After': '7200' }).end(),
	redirect: (res) => res.writeHead(302, { Location: 'http://169.254.169.254/latest/meta-data' }).end(),
	away: (res) => res.socket.destroy(),
	cut: (res) => {
		res.writeHead(200, { 'Content-Length': '1000' });
		res.write('half', () => res.socket.destroy());
	},
	endless: (res) => {
		res.writeHead(200);
		const timer = setInterval(() => res.write('x'.repeat(65536)), 1);
		res.on('close', () => clearInterval(timer));
	},
	gone: (res) => res.writeHead(410).end(),
};

class Receiver {
	constructor() {
		this.got = []; // what came, in its order
		this.manner = {}; // by path; fine where none is set
		this.http = http.createServer((req, res) => {
			const pieces = [];
			req.on('data', (p) => pieces.push(p)).on('end', () => {
				const text = Buffer.concat(pieces).toString('utf8');
				this.got.push({ path: req.url, headers: req.headers, text, json: JSON.parse(text), at: Date.now() });
				MANNERS[this.manner[req.url] ?? 'fine'](res);
			});
		});
	}

	at(path) {
		return this.got.filter((g) => g.path === path);
	}

	/** The n-th that came there, once it has. */
	wait(path, n = 1, seconds = 30) {
		return until(() => this.at(path)[n - 1], `delivery ${n} to ${path}`, seconds);
	}
}

export async function startReceiver(t) {
	const r = new Receiver();
	await new Promise((ok) => r.http.listen(0, '127.0.0.1', ok));
	r.url = `http://127.0.0.1:${r.http.address().port}`;
	atEnd(t, () => {
		r.http.closeAllConnections();
		r.http.close();
	});
	return r;
}

/** A mail server that keeps what it takes: what was said, and the message. It refuses the addresses in
 * `refused`, and does not answer the words in `silent`. */
export async function startMail(t) {
	const mails = [], refused = new Set(), silent = new Set(), received = [];
	const server = net.createServer((socket) => {
		let held = '', message = null;
		const one = { from: '', to: [] };
		const say = (line) => socket.write(line + '\r\n');
		const receive = (line) => {
			if (message !== null) {
				if (line !== '.') return void (message += line.replace(/^\./, '') + '\r\n');
				mails.push({ ...one, message });
				message = null;
				return say('250 taken');
			}
			const word = line.split(/[ :]/)[0].toUpperCase();
			if (word === 'MAIL') one.from = /<(.*?)>/.exec(line)[1];
			received.push(word);
			if (silent.has(word)) return undefined;
			if (word === 'RCPT') {
				const to = /<?([^<>: ]+@[^<> ]+)>?/.exec(line)[1];
				if (refused.has(to)) return say('550 5.1.1 nobody is called that');
				one.to.push(to);
			}
			if (word === 'DATA') message = '';
			say({ DATA: '354 go on', QUIT: '221 bye' }[word] ?? '250 ok');
		};
		socket.on('error', () => {}).setEncoding('utf8').on('data', (text) => {
			const lines = (held + text).split('\r\n');
			held = lines.pop();
			lines.forEach(receive);
		});
		say('220 here');
	});
	await new Promise((ok) => server.listen(0, '127.0.0.1', ok));
	atEnd(t, () => server.close());
	return { mails, refused, silent, received, url: `smtp://127.0.0.1:${server.address().port}` };
}

/** Subject, and both forms of a mail. */
export function readMail({ message }) {
	const [head, ...parts] = message.split(/--=_tracewell_two_forms(?:--)?\r\n/);
	const subject = /Subject: ((?:.*\r\n )*.*)/.exec(head)[1].replace(/\?=\r\n =\?utf-8\?B\?/g, '?==?utf-8?B?').split('=?utf-8?B?').filter(Boolean)
		.map((w) => Buffer.from(w.replace('?=', ''), 'base64').toString('utf8')).join('');
	const [text, html] = parts.filter((p) => p.includes('base64')).map((p) => Buffer.from(p.split('\r\n\r\n')[1], 'base64').toString('utf8'));
	return { head, subject, text, html };
}
