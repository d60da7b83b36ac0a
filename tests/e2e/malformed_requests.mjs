/*
 * malformed_requests.mjs - requests that no client makes, from a seed: well-made ones of every route, cut, joined,
 * repeated and garbled, and the forms that make proxies and servers disagree about the end of
 * a request; and the responses that are permitted.
 *
 * The n-th case of a seed is always the same.
 */
import zlib from 'node:zlib';

import { btrace, form, sampleMapping, sampleTrace, zstd } from './make.mjs';
import { random } from './power_cut.mjs';
import { routesServed } from './server.mjs';

const CRLF = '\r\n';
const latin1 = (text) => Buffer.from(text, 'latin1');
const ROUTES = routesServed().map(({ method, path: template }) => ({ method, template }));

class Dice {
	constructor(seed) {
		this.next = random(seed);
	}

	below(n) {
		return Math.floor(this.next() * n);
	}

	of(list) {
		return list[this.below(list.length)];
	}

	is(share) {
		return this.next() < share;
	}
}

/* --- well-made requests --- */

const BODIES = [
	() => sampleTrace(5), () => zstd(sampleTrace(3)), () => zlib.gzipSync(sampleTrace(4)), () => btrace([]), () => Buffer.alloc(0),
	() => latin1(sampleMapping), () => latin1('{"max_traces":5}'), () => latin1('{"name":"k","scope":"read"}'), () => latin1('[[[[{}'),
	(dice) => Buffer.from(Array.from({ length: dice.below(3000) }, () => dice.below(256))),
];
const HEADERS = ['Expect: 100-continue', 'Connection: close', 'Connection: keep-alive', 'Accept-Encoding: zstd, gzip;q=0.5', 'Range: bytes=0-5',
	'Content-Type: application/json', 'Content-Encoding: gzip', 'Idempotency-Key: one', 'If-None-Match: "x"', 'Upgrade: h2c', 'Cookie: tw=x',
	'Content-Type: application/offset+octet-stream', 'Tus-Resumable: 1.0.0', 'Upload-Length: 100', 'Upload-Offset: 0',
	'Upload-Metadata: device dGV4dA==', 'Upload-Checksum: sha1 AAAA', 'Origin: http://else.example', 'X-Forwarded-For: 1.2.3.4'];
const VALUES = ['x', '0', '-1', '01ARZ3NDEKTSV4RRFFQ69G5FAV', '%00', '%2e%2e%2f', 'é', 'a'.repeat(300), "';--", '99999999999999999999'];

function target(dice, template) {
	const filled = template.replace(/\{\w+\}/g, () => dice.of(VALUES));
	return dice.is(0.4) ? `${filled}?${dice.of(['limit', 'thread', 'q', 'build_id', 'from', 'cursor'])}=${dice.of(VALUES)}` : filled;
}

function chunked(dice, bytes) {
	const pieces = [];
	for (let at = 0; at < bytes.length; ) {
		const n = 1 + dice.below(Math.min(bytes.length - at, 700));
		pieces.push(latin1(n.toString(16) + (dice.is(0.1) ? ';ext=1' : '') + CRLF), bytes.subarray(at, at + n), latin1(CRLF));
		at += n;
	}
	return Buffer.concat([...pieces, latin1(dice.is(0.1) ? `0${CRLF}Trailer: x${CRLF}${CRLF}` : `0${CRLF}${CRLF}`)]);
}

function request(dice, keys) {
	const { method, template } = dice.is(0.3) ? { method: 'POST', template: '/api/v1/traces' } : dice.of(ROUTES);
	const lines = [`${dice.is(0.05) ? dice.of(['HEAD', 'OPTIONS', 'TRACE', 'BREW', 'PUT']) : method} ${target(dice, template)} HTTP/1.${dice.is(0.1) ? 0 : 1}`, 'Host: x'];
	let body = Buffer.alloc(0);
	if (dice.is(0.85)) lines.push(`Authorization: Bearer ${dice.of(keys)}`);
	while (dice.is(0.4)) lines.push(dice.of(HEADERS));
	if (method !== 'GET' || dice.is(0.1)) {
		body = dice.of(BODIES)(dice);
		if (dice.is(0.2)) {
			const whole = form(['trace', body], ['meta', '{"build_id":"b"}']);
			lines.push(`Content-Type: ${whole.headers['Content-Type']}`);
			body = whole.body;
		}
		if (dice.is(0.4)) {
			body = chunked(dice, body);
			lines.push('Transfer-Encoding: chunked');
		} else lines.push(`Content-Length: ${body.length}`);
	}
	return Buffer.concat([latin1(lines.join(CRLF) + CRLF + CRLF), body]);
}

/* --- where does it end? --- */

const LENGTHS = ['4', '4, 4', '4,5', '+4', '-4', '0x4', '04', ' 4', '4 ', '4\t', '\v4', '4;', '', '4 4', '18446744073709551620', '1e1'];
const CODINGS = ['chunked', 'Chunked', ' chunked', 'chunked ', '\tchunked', 'xchunked', 'chunked, identity', 'identity, chunked', 'chunked\0', '"chunked"',
	'chunked;q=1', 'gzip', 'gzip, chunked', '', '\x0bchunked'];
const SIZES = ['4', '04', '0x4', '+4', '-4', ' 4', '4 ', '4;x', '4\t', 'FFFFFFFFFFFFFFFF', '10000000000000004', '4g', '', '4\n', '00000000000000000000004'];
const ENDS = [CRLF, CRLF, CRLF, '\n', '\r', '\r\r\n', '\n\r'];

/* The request in a body, which must not be served. */
const inner = 'GET /api/v1/inner HTTP/1.1\r\nHost: x\r\n\r\n';

function smuggling(dice, keys) {
	const lines = ['POST /api/v1/traces HTTP/1.1', 'Host: x', `Authorization: Bearer ${keys[0]}`];
	const name = (n) => n + dice.of(['', '', '', ' ', '\t', '\0', '\r\n ']);
	const framing = [() => `${name('Content-Length')}:${dice.of(LENGTHS)}`, () => `${name('Transfer-Encoding')}:${dice.of(CODINGS)}`];
	lines.push(dice.of(framing)());
	while (dice.is(0.6)) lines.push(dice.of(framing)());
	if (dice.is(0.2)) lines.push(dice.of(['X: a\r\n b', ' Content-Length: 4', 'Host: y', ': empty', 'X\0Y: z', 'Content_Length: 4', 'X: \x01']));
	const end = dice.is(0.7) ? CRLF : dice.of(ENDS);
	const body = dice.of([`abcd${inner}`, `${dice.of(SIZES)}${dice.of(ENDS)}abcd${dice.of(ENDS)}0${dice.of(ENDS)}${dice.of(ENDS)}${inner}`, `0${CRLF}${CRLF}${inner}`]);
	return latin1(lines.join(end) + end + end + body);
}

const ODD = ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'GET /\r\n\r\n', 'GET http://else.example/healthz HTTP/1.1\r\nHost: x\r\n\r\n',
	'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n', 'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n', '\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n', 'GET /healthz HTTP/1.1\nHost: x\n\n',
	'GET  /healthz  HTTP/1.1\r\nHost: x\r\n\r\n', 'GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n', 'GET //../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n', '\0'.repeat(100), '\r\n'.repeat(300)];

/* --- garbled --- */

const TOKENS = [CRLF, '\r', '\n', '\0', ' ', ':', '0', 'chunked', 'HTTP/1.1', '%', '..', '\xff', '\r\n\r\n', 'Content-Length: 9\r\n', ';', '--', '{', '"'];

function garbled(dice, bytes) {
	const at = dice.below(bytes.length + 1);
	const to = Math.min(bytes.length, at + dice.below(dice.is(0.5) ? 8 : 200));
	const head = bytes.subarray(0, at);
	const piece = bytes.subarray(at, to);
	switch (dice.below(6)) {
		case 0: return Buffer.concat([head, bytes.subarray(to)]);
		case 1: return Buffer.concat([head, latin1(dice.of(TOKENS)), bytes.subarray(at)]);
		case 2: return Buffer.concat([head, ...Array(1 + dice.below(dice.is(0.1) ? 2000 : 5)).fill(piece), bytes.subarray(at)]);
		case 3: return Buffer.concat([head, piece.map((b) => (dice.is(0.3) ? dice.below(256) : b)), bytes.subarray(to)]);
		case 4: return Buffer.concat([head, piece.map((b) => b ^ (1 << dice.below(8))), bytes.subarray(to)]);
		default: return head;
	}
}

/* --- a case --- */

/* The bytes, their pieces, and the client's next step: it ends its side, disconnects immediately, or waits. */
export function wildCase(seed, n, keys) {
	const dice = new Dice(seed * 1000003 + n);
	const kind = dice.next();
	let bytes = kind < 0.3 ? smuggling(dice, keys) : kind < 0.35 ? latin1(dice.of(ODD)) : request(dice, keys);
	while (dice.is(0.2)) bytes = Buffer.concat([bytes, request(dice, keys)]);
	if (kind >= 0.15) while (dice.is(0.6)) bytes = garbled(dice, bytes);
	if (dice.is(0.2)) bytes = bytes.subarray(0, dice.below(bytes.length + 1));
	const cuts = Array.from({ length: dice.is(0.5) ? 0 : dice.below(4) }, () => dice.below(bytes.length + 1)).sort((a, b) => a - b);
	const pieces = [...cuts, bytes.length].map((to, i) => bytes.subarray(i ? cuts[i - 1] : 0, to)).filter((piece) => piece.length);
	return { bytes, pieces, then: dice.is(0.8) ? 'end' : dice.is(0.5) ? 'gone' : 'wait' };
}

/* --- permitted responses --- */

/* The headers of the first request, as the strictest reader sees them; undefined where that sees none. */
function framingOf(bytes) {
	const text = bytes.toString('latin1');
	const end = text.indexOf('\r\n\r\n');
	const [first, ...lines] = end < 0 ? [''] : text.slice(0, end).split(CRLF);
	if (!/^[A-Z]+ [!-~]+ HTTP\/1\.1$/.test(first) || !lines.every((l) => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+:[ -~\t]*$/.test(l))) return undefined;
	const values = (name) => lines.map((l) => l.split(/:(.*)/s)).filter(([n]) => n.toLowerCase() === name).map(([, v]) => v.trim());
	return { lengths: values('content-length'), codings: values('transfer-encoding') };
}

/* Two readers could see different ends: it must be refused, and nothing after it read as a request. */
export function isAmbiguous(bytes) {
	const framing = framingOf(bytes);
	if (!framing) return false;
	const { lengths, codings } = framing;
	return lengths.length + codings.length > 1 || lengths.some((v) => !/^\d+$/.test(v)) || codings.some((v) => v.toLowerCase() !== 'chunked');
}

function chunkedEnd(text, at) {
	for (;;) {
		const size = /^([0-9a-fA-F]+)\r\n/.exec(text.slice(at, at + 20));
		if (!size) return -1;
		at += size[0].length + parseInt(size[1], 16) + 2;
		if (size[1] === '0') return at;
	}
}

/* The responses in a server's output, each `{status, head, whole}`; throws if it is not a response. */
export function answersIn(text) {
	const answers = [];
	for (let at = 0; at < text.length; ) {
		const end = text.indexOf('\r\n\r\n', at);
		const head = end < 0 ? text.slice(at) : text.slice(at, end + 2);
		const status = Number(/^HTTP\/1\.[01] (\d{3}) /.exec(head)?.[1] ?? NaN);
		if (Number.isNaN(status) && !(end < 0 && 'HTTP/1.1 '.startsWith(head.slice(0, 9)))) throw new Error(`no answer at ${at}: ${JSON.stringify(text.slice(at, at + 200))}`);
		if (end < 0) return [...answers, { status, head, whole: false }];
		if (!/^[^\r\n]+\r\n([!-9;-~]+:[^\r\n\0]*\r\n)*$/.test(head)) throw new Error(`odd headers at ${at}: ${JSON.stringify(head.slice(0, 500))}`);
		at = end + 4;
		const length = /\r\nContent-Length: (\d+)\r\n/i.exec(head)?.[1];
		const next = text.slice(at, at + 7) === 'HTTP/1.' || at === text.length; /* to a HEAD, or 1xx, 204, 304 */
		const body = next || (status >= 100 && status < 200) || status === 204 || status === 304 ? at
			: length !== undefined ? at + Number(length) : /\r\nTransfer-Encoding: chunked\r\n/i.test(head) ? chunkedEnd(text, at) : text.length;
		answers.push({ status, head, whole: body >= 0 && body <= text.length });
		if (body < 0) return answers;
		at = body;
	}
	return answers;
}
