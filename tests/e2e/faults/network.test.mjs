/*
 * network.test.mjs - one of two servers runs in a separate network namespace. Its packets to PostgreSQL or
 * to the S3-compatible store are dropped, in both directions and in one, while it works: duration of a
 * hanging request, take-over of its work, and recovery of the network. Needs root, ip and nft. CUT_SECONDS
 * (4) sets the duration; with 40, leases expire.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { startCluster } from '../cluster.mjs';
import { sampleTrace } from '../make.mjs';
import { Postgres, postgresIsThere } from '../postgres.mjs';
import { atEnd, sanitized, sleep, until } from '../server.mjs';


const SECONDS = Number(process.env.CUT_SECONDS ?? 4);
const LEASE_S = 30;
const HANGS_S = 180; /* TCP alone would wait for 15 minutes */
const run = (...all) => execFileSync(all[0], all.slice(1), { stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8' });

const name = `tw${process.pid}`;
const net = `198.18.${process.pid % 250}`;
const [outside, inside] = [`${net}.1`, `${net}.2`];

function canCut() {
	if (process.getuid() !== 0) return 'a network namespace needs root';
	for (const program of ['ip', 'nft']) if (spawnSync('which', [program]).status !== 0) return `no ${program}`;
	if (spawnSync('ip', ['netns', 'add', name]).status !== 0) return 'no network namespaces here';
	const can = spawnSync('ip', ['netns', 'exec', name, 'nft', 'add', 'table', 'inet', 'cut']).status === 0 && spawnSync('ip', ['link', 'add', name, 'type', 'veth', 'peer', 'name', 'up0', 'netns', name]).status === 0;
	run('ip', 'netns', 'del', name);
	return can ? false : 'neither nft nor veth here';
}

const skip = !postgresIsThere ? 'PostgreSQL 15 or later is not installed' : sanitized() ? 'too slow with a sanitizer' : canCut();

const within = (...all) => run('ip', 'netns', 'exec', name, ...all);

function makeNet(t) {
	run('ip', 'netns', 'add', name);
	atEnd(t, () => run('ip', 'netns', 'del', name));
	run('ip', 'link', 'add', name, 'type', 'veth', 'peer', 'name', 'up0', 'netns', name);
	run('ip', 'addr', 'add', `${outside}/30`, 'dev', name);
	run('ip', 'link', 'set', name, 'up');
	within('ip', 'addr', 'add', `${inside}/30`, 'dev', 'up0');
	for (const at of ['up0', 'lo']) within('ip', 'link', 'set', at, 'up');
	within('nft', 'add table inet cut; add chain inet cut out { type filter hook output priority 0; }; add chain inet cut in { type filter hook input priority 0; }');
}

/* Packets are dropped silently. */
function cut(port, ways) {
	if (ways.includes('out')) within('nft', 'add', 'rule', 'inet', 'cut', 'out', 'ip', 'daddr', outside, 'tcp', 'dport', String(port), 'drop');
	if (ways.includes('in')) within('nft', 'add', 'rule', 'inet', 'cut', 'in', 'ip', 'saddr', outside, 'tcp', 'sport', String(port), 'drop');
}

const repair = () => within('nft', 'flush table inet cut');

async function startDatabase(t) {
	const db = new Postgres(fs.mkdtempSync(path.join(os.tmpdir(), 'tw-pg-')), undefined, ['-c', `listen_addresses=${outside}`]);
	db.make();
	fs.appendFileSync(path.join(db.data, 'pg_hba.conf'), `host all all ${net}.0/24 trust\n`);
	await db.start();
	atEnd(t, async () => {
		await db.stop();
		fs.rmSync(db.folder, { recursive: true, force: true });
	});
	return db;
}

/* Records the longest time until each kind of request was answered or failed.  Refused uploads are sent to another server, as devices do. */
async function ask(s, other, what, load, hung, going) {
	const timed = async (kind, send) => {
		const began = Date.now();
		const answer = await send().catch(() => ({ status: 0 }));
		const now = `${kind} ${answer.status}`;
		hung.set(now, Math.max(hung.get(now) ?? 0, (Date.now() - began) / 1000));
		return answer;
	};
	const one = async (kind, send) => {
		while (going.on) {
			await timed(kind, send);
			await sleep(50);
		}
	};
	const uploads = async () => {
		for (let i = 0; going.on; i++) {
			const key = `${what} ${i}`;
			const send = (to) => to.post('/api/v1/traces', sampleTrace(7, 4100), { query: { app: 'shop', version_name: '1', scenario: 'start' }, headers: { 'Idempotency-Key': key } });
			let answer = await timed('upload', () => send(s));
			if (answer.status !== 202) answer = await send(other);
			assert.ok(answer.status === 202 || answer.status === 200, answer.text);
			load.kept.set(key, { id: answer.json.id, calls: 7, of: 100 });
		}
	};
	await Promise.all([uploads(), one('ready', () => s.get('/readyz', { key: null })), one('list', () => s.get('/api/v1/traces')), one('alive', () => s.get('/healthz', { key: null }))]);
}

test('a server is cut off and comes back', { skip, timeout: 600000 }, async (t) => {
	makeNet(t);
	const db = await startDatabase(t);
	db.sql('CREATE SCHEMA cut');
	const c = await startCluster(t, { db, url: `postgres://tw@${outside}/postgres?options=-csearch_path%3Dcut`, at: outside });
	const here = await c.serve();
	const away = await c.serve({ under: ['ip', 'netns', 'exec', name], args: ['--listen', `${inside}:0`, '--behind-proxy', '--trusted-proxies', outside], host: inside });
	const load = c.send(3, { patience: 2000, pause: 20 });
	for (const [what, port, ways] of [['the database', 5432, ['out', 'in']], ['what the database answers', 5432, ['in']], ['the store', c.bucket.port, ['out', 'in']]]) {
		await load.more(6, 'uploads before', 90);
		const [hung, going] = [new Map(), { on: true }];
		const asked = ask(away, here, what, load, hung, going);
		cut(port, ways);
		const until_ms = Date.now() + SECONDS * 1000;
		await load.more(4, 'the other takes uploads');
		if (SECONDS < LEASE_S) db.sql('UPDATE job SET due_ms=0 WHERE claimed=1', 'cut'); // as if it were longer than leases are
		await load.more(4, 'the other takes and decodes');
		await sleep(Math.max(0, until_ms - Date.now())); // the rest of the fault
		repair();
		const healed = Date.now();
		await until(async () => ((await away.get('/readyz', { key: null })).status === 200 ? true : undefined), 'it is ready again', 60);
		const ready = (Date.now() - healed) / 1000;
		await c.works();
		going.on = false;
		await asked;
		t.diagnostic(`cut from ${what} for ${SECONDS} s: ready ${ready} s after, all pages ${(Date.now() - healed) / 1000} s after; longest waits ${JSON.stringify([...hung])}`);
		for (const [kind, s] of hung) assert.ok(s < HANGS_S, `${kind} hung ${s} s`);
		assert.ok(hung.has('alive 200') && !hung.has('alive 0'), 'it lives');
	}
	await load.more(6, 'uploads after', 90);
	await load.end();
	t.diagnostic(`${load.kept.size} uploads accepted; answers ${JSON.stringify([...load.reported])}`);
	await c.verify(load);
});
