/*
 * senders.mjs - uploads of many devices, over connections that stay open.  The requests are written by hand: fetch()
 * takes as much processor time for an upload as a server needs to decode it, and both share the machine.
 */
import net from 'node:net';

/* Connects to a server; the result sends one upload and returns the status of its response, one after the other. */
async function connect(s) {
	const socket = net.connect(s.port, '127.0.0.1').setNoDelay(true);
	await new Promise((done, fail) => socket.once('connect', done).once('error', fail));
	let received = '', waiting;
	const end = (e) => waiting?.fail(e ?? new Error('the server closed the connection'));
	socket.setEncoding('latin1').on('error', end).on('close', () => end());
	socket.on('data', (piece) => {
		received += piece;
		const head = received.indexOf('\r\n\r\n');
		const length = head < 0 ? undefined : /\r\ncontent-length: *(\d+)/i.exec(received.slice(0, head + 2))?.[1];
		if (length === undefined || received.length < head + 4 + Number(length)) return;
		waiting.done({ status: Number(received.slice(9, 12)), text: received });
		received = '';
	});
	return {
		send: (target, body, headers) => new Promise((done, fail) => {
			waiting = { done, fail };
			const lines = Object.entries({ Host: `127.0.0.1:${s.port}`, Authorization: `Bearer ${s.ingest}`, 'Content-Length': body.length, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
			socket.write(Buffer.concat([Buffer.from(`POST ${target} HTTP/1.1\r\n${lines.join('')}\r\n`), body]));
		}),
		close: () => {
			waiting = undefined;
			socket.destroy();
		},
	};
}

/* Sends each body as a trace of another device, numbered from `first`, to one server or to several in turn. */
export async function sendTraces(servers, bodies, senders, first = 0) {
	const all = [servers].flat();
	let next = 0;
	await Promise.all(
		Array.from({ length: senders }, async (_, of) => {
			const to = await connect(all[of % all.length]);
			while (next < bodies.length) {
				const n = next++;
				const answer = await to.send(`/api/v1/traces?app=shop&build_id=b&version_name=1&scenario=start&device=d${first + n}`, bodies[n], { 'Idempotency-Key': `k${first + n}` });
				if (answer.status !== 202) throw new Error(answer.text);
			}
			to.close();
		}),
	);
}
