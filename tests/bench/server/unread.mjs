/*
 * unread.mjs - memory of a server whose clients do not read their exports: `node tests/bench/server/unread.mjs`.
 *
 * 200 exports of a trace of two million methods are requested and read up to their headers at most.  Prints the
 * resident memory before, at its highest and after the clients left, and the answers by status.  EXPORTS, METHODS and
 * ARGS ("--response-memory 512M") change it.
 */
import { btrace } from '../../e2e/make.mjs';
import { sleep, startServer, until, untilEnd } from '../../e2e/server.mjs';

const exports = Number(process.env.EXPORTS ?? 200);
const methods = Number(process.env.METHODS ?? 2_000_000);
const t = untilEnd();
const s = await startServer(t, { args: ['--connections-per-address', '0', ...(process.env.ARGS?.split(' ') ?? [])] });
try {
	const { id } = (await s.post('/api/v1/traces', btrace(Array.from({ length: methods }, (_, i) => [4000, i, 1_000_000 + i * 10, 5]), { pid: 4000 }))).json;
	await until(async () => ((await s.get(`/api/v1/traces/${id}`)).json.state === 'ready' ? true : undefined), 'the trace decoded', 300);
	await sleep(3000);
	for (const kind of ['export/speedscope', 'perfetto']) {
		const idle = s.resident();
		const statuses = {};
		const sockets = [];
		let peak = idle;
		for (let i = 0; i < exports; i++) {
			const socket = await s.socket();
			socket.removeAllListeners('data');
			socket.once('data', (piece) => {
				const status = /^HTTP\/1.1 (\d+)/.exec(piece)?.[1];
				statuses[status] = (statuses[status] ?? 0) + 1;
				socket.pause();
			});
			socket.write(`GET /api/v1/traces/${id}/${kind} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${s.read}\r\n\r\n`);
			sockets.push(socket);
		}
		for (const end = Date.now() + 25_000; Date.now() < end; await sleep(100)) peak = Math.max(peak, s.resident());
		sockets.forEach((socket) => socket.destroy());
		await sleep(3000);
		console.log(`${kind}: ${exports} unread, ${Object.entries(statuses).map(([k, n]) => `${n} with status ${k}`).join(', ')}; ` +
			`idle ${idle.toFixed()} MB, highest ${peak.toFixed()} MB (${(peak / idle).toFixed(1)} x idle), after ${s.resident().toFixed()} MB`);
	}
} finally {
	await t.end();
}
