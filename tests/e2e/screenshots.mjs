/*
 * screenshots.mjs - a picture of every page in both themes, 1280, 1920 and 3840 wide, from simulated
 * recordings:  node screenshots.mjs FOLDER
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { launch, settled, signInAs } from './browser.mjs';
import { sampleTrace } from './make.mjs';
import { binary, root, startServer, tracewell } from './server.mjs';

const folder = path.resolve(process.argv[2] ?? 'screenshots');
const DEADLOCK = `"main" prio=5 tid=1 Blocked
  at com.example.shop.Cart.total(Cart.java:88)
  - waiting to lock <0x02> (a com.example.shop.Store) held by thread 9
  - locked <0x01> (a com.example.shop.Cart)

"DB-writer" prio=5 tid=9 Blocked
  at com.example.shop.Store.put(Store.java:7)
  - waiting to lock <0x01> (a com.example.shop.Cart) held by thread 1
  - locked <0x02> (a com.example.shop.Store)

"DB-reader" prio=5 tid=10 Blocked
  at com.example.shop.Store.get(Store.java:3)
  - waiting to lock <0x02> (a com.example.shop.Store) held by thread 9
`;

/* Traces of each kind; their ids by name. */
async function fill(server, dir) {
	execFileSync(path.join(path.dirname(binary()), '..', 'tests', 'tracewell-sim'), ['--out', dir, '--seed', '77', '--records', '12000']);
	const push = ['push', '--server', server.url, '--key', server.ingest];
	const phone = tracewell(...push, '--build-id', 'shop-831', '--scenario', 'cold_start', '--meta', 'app=com.acme.shop', '--meta', 'version_name=8.3.1',
		'--threads', path.join(dir, 'threads.txt'), '--mapping', path.join(dir, 'methodMapping.txt'), '--wait', path.join(dir, 'rhea-atrace.bin'));
	const golden = (name) => fs.readFileSync(path.join(root, 'tests/golden', name, 'realistic/input'));
	execFileSync(path.join(path.dirname(binary()), '..', 'tests', 'tracewell-sim'), ['--out', path.join(dir, 'next'), '--seed', '77', '--records', '18000', '--slow', '50']);
	const next = tracewell(...push, '--build-id', 'shop-832', '--scenario', 'cold_start', '--meta', 'app=com.acme.shop', '--meta', 'version_name=8.3.2',
		'--mapping', path.join(dir, 'next/methodMapping.txt'), '--wait', path.join(dir, 'next/rhea-atrace.bin'));
	return {
		phone,
		next,
		unnamed: (await server.trace(sampleTrace(400), { query: { app: 'com.example.app', scenario: 'scroll', build_id: 'unnamed' } })).id,
		anr: (await server.trace(golden('anr'), { query: { app: 'com.example.shop', scenario: 'anr' } })).id,
		deadlock: (await server.trace(DEADLOCK, { query: { app: 'com.example.shop', scenario: 'anr' } })).id,
		system: (await server.trace(golden('systrace'), { query: { app: 'com.example.maps', scenario: 'jank' } })).id,
	};
}

/* Every page: name, address, a selector of the complete page, and keys to press. */
const pages = (ids) => [
	['overview', '/', '#newest td'], ['list', '/traces', 'td'], ['nothing-found', '/traces?q=nothing+like+it', 'text=No traces match'], ['builds', '/builds', 'td'],
	['trace', `/traces/${ids.phone}?tab=methods`, '.methods tbody tr'], ['search', `/traces/${ids.phone}?find=okhttp3&threads=all&tab=methods`, '.methods tbody tr'],
	['bottom-up', `/traces/${ids.phone}?view=bottom_up&t=recursion`, '.flame canvas, [role=treegrid]'], ['sandwich', `/traces/${ids.phone}?view=sandwich&method=1`, '.flame canvas, table'],
	['keys', `/traces/${ids.phone}?tab=methods`, '.methods tbody tr', '?'], ['names-missing', `/traces/${ids.unnamed}?tab=methods`, '.methods tbody tr'],
	['system', `/traces/${ids.system}?tab=events`, '#notes tbody tr'], ['anr', `/traces/${ids.anr}?stack=0`, '#anr .opened'], ['anr-deadlock', `/traces/${ids.deadlock}`, '#anr .box.ring'],
	['compare', `/compare?a=${ids.phone}&b=${ids.next}`, '.compared tbody tr'], ['compare-removed', `/compare?a=${ids.phone}&b=${ids.next}&width=a&only=removed`, '[data-compared]'],
	['fleet-methods', '/fleet/methods', '#methods tbody tr'],
	['fleet-flame', '/fleet/flame', '#flame canvas'],
	['projects-and-keys', '/keys', 'main section:last-of-type td'], ['people', '/people', '#accounts td'], ['changes', '/audit', 'tr[data-entry]'], ['account', '/account', 'input[type=password]'],
	['retention', '/retention', '.roomfacts'], ['quarantine', '/quarantine', 'main .panel p'], ['capture', '/capture', '#rules p'], ['start', '/?project=EMPTY', '.start'],
	['unknown-link', `/traces/${ids.phone}?hologram=1&t=explode:3`, 'text=Some link parameters'], ['no-such-trace', '/traces/01ARZ3NDEKTSV4RRFFQ69G5FAV', '[role=alert]'],
];

async function shoot(browser, server, ids, scheme, width) {
	const page = await (await browser.newContext({ colorScheme: scheme, viewport: { width, height: 1000 } })).newPage();
	const keep = (name) => page.screenshot({ path: path.join(folder, `${name}-${scheme}-${width}.png`), fullPage: true });
	await page.goto(server.url);
	await page.waitForSelector('input[type=password]');
	await keep('sign-in');
	await signInAs(page, server, person.name, person.password);
	const { id } = (await page.evaluate(async () => (await (await fetch('/api/v1/projects')).json()).projects.find((p) => p.name === 'empty')));
	for (const [name, at, whole, key] of pages(ids)) {
		await page.goto(server.url + at.replace('EMPTY', id));
		await page.waitForSelector(whole);
		if (at.startsWith('/traces/') && name !== 'no-such-trace') await page.waitForSelector('[data-ready]');
		if (key) await page.keyboard.press(key);
		await settled(page); // the last picture of a canvas
		await keep(name);
	}
	await page.context().close();
}

const person = { name: 'mira', password: 'sees every page' };
const ending = [];
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'tracewell-shots-'));
const server = await startServer({ after: (f) => ending.push(f) });
const browser = await launch();
try {
	fs.mkdirSync(folder, { recursive: true });
	const ids = await fill(server, dir);
	execFileSync(binary(), ['user', 'create', person.name, '--data', server.data], { input: person.password });
	tracewell('user', 'role', person.name, '--data', server.data, '--role', 'server-admin');
	server.key('read', 'empty'); // a project without a trace
	for (const scheme of ['light', 'dark']) for (const width of [1280, 1920, 3840]) await shoot(browser, server, ids, scheme, width);
	console.log(`${fs.readdirSync(folder).length} pictures in ${folder}`);
} finally {
	await browser.close();
	for (const f of ending) await f();
	fs.rmSync(dir, { recursive: true, force: true });
}
