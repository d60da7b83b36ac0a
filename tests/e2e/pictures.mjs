/*
 * pictures.mjs - the pictures of the documents: the subject and data of each.  The pages are opened again by
 * pictures_page.test.mjs, which compares the committed files with them;   PICTURES=write node --test pictures_page.test.mjs   writes them.
 */
import fs from 'node:fs';
import path from 'node:path';

import { fleet as reports } from '../gen/anr_fleet.mjs';
import { btrace } from './make.mjs';
import { look } from './regressed_fleet.mjs';
import { root, until } from './server.mjs';

export const FOLDER = path.join(root, 'deploy/guides/pictures');
const PID = 4711, EACH = 30, MS = 1_000_000;

/* A cold start: [method, milliseconds of self time before, then its callees]. */
const START = ['com.acme.shop.ShopApp.onCreate', 4,
	['com.acme.shop.di.AppComponent.create', 3, ['com.acme.shop.di.NetworkModule.client', 9], ['com.acme.shop.di.DatabaseModule.open', 2,
		['androidx.room.RoomDatabase.init', 5], ['android.database.sqlite.SQLiteDatabase.openDatabase', 21]]],
	['com.acme.shop.telemetry.Crash.install', 6, ['com.acme.shop.telemetry.Crash.readPending', 14, ['java.io.File.listFiles', 5]]],
	['com.acme.shop.config.RemoteConfig.load', 4, ['com.acme.shop.config.Json.parse', 18, ['org.json.JSONObject.<init>', 11]], ['android.content.SharedPreferences.getAll', 9]],
	['com.acme.shop.home.HomeActivity.onCreate', 7, ['android.view.LayoutInflater.inflate', 26, ['com.acme.shop.home.BannerView.<init>', 6, ['android.graphics.BitmapFactory.decodeResource', 24]],
		['com.acme.shop.home.TileView.<init>', 8], ['androidx.constraintlayout.widget.ConstraintLayout.<init>', 12]],
		['com.acme.shop.home.HomePresenter.bind', 5, ['com.acme.shop.cart.CartRepo.load', 6, ['com.acme.shop.db.CartDao.all', 3, ['android.database.sqlite.SQLiteCursor.fillWindow', 17]]],
			['com.acme.shop.images.ImageLoader.warm', 4, ['com.acme.shop.images.DiskCache.open', 12, ['java.io.RandomAccessFile.read', 9]]]]],
	['com.acme.shop.home.HomeActivity.onResume', 5, ['com.acme.shop.home.Feed.firstPage', 8, ['com.acme.shop.home.FeedAdapter.bind', 19]]]];
const WORKER = ['com.acme.shop.sync.SyncWorker.doWork', 8, ['com.acme.shop.net.Api.products', 5, ['okhttp3.RealCall.execute', 90], ['com.acme.shop.net.Moshi.fromJson', 44]], ['com.acme.shop.db.ProductDao.insertAll', 60]];
const SLOWER = { 'com.acme.shop.config.Json.parse': 3.2, 'com.acme.shop.images.DiskCache.open': 2.1, 'com.acme.shop.home.TileView.<init>': 0.6 };

const methods = (tree, all = []) => (all.includes(tree[0]) || all.push(tree[0]), tree.slice(2).forEach((t) => methods(t, all)), all);
const NAMES = [...methods(START), ...methods(WORKER)];
const MAPPING = ['# v', ...NAMES.map((name, i) => `${i + 1},1,${name.replace(/\.([^.]+)$/, ' $1')} ()V`), ''].join('\n');

/* Calls in order of their ends, each with a reproducible random part. */
function calls(tid, tree, from, of) {
	const records = [];
	let n = of.seed * 7919;
	const walk = ([name, own, ...children], at) => {
		n = (n * 1103515245 + 12345) % 2147483648;
		let end = at + Math.round(own * MS * (0.8 + (n % 1000) / 2500) * (of.slow ? SLOWER[name] ?? 1 : 1) * of.device);
		for (const child of children) end = walk(child, end + 20_000);
		records.push([tid, NAMES.indexOf(name) + 1, at, end + 10_000 - at]);
		return end + 10_000;
	};
	walk(tree, from);
	return records;
}

const DEVICES = [['Pixel 8', 1], ['Galaxy A15', 1.12], ['Redmi Note 12', 1.2]];

async function sendStarts(s) {
	const ids = [];
	for (const version of ['8.3.0', '8.4.0']) {
		await s.put(`/api/v1/builds/shop-${version}/methods`, MAPPING);
		for (let i = 0; i < EACH; i++) {
			const [device, factor] = DEVICES[i % 3];
			const of = { seed: i + 1, device: factor, slow: version === '8.4.0' };
			const trace = btrace([...calls(PID, START, 20 * MS, of), ...[1, 2].flatMap((w) => calls(PID + w, WORKER, (30 + 25 * w) * MS, { ...of, seed: i + w }))], { pid: PID });
			const form = new FormData();
			form.append('trace', new Blob([trace]), 'rhea-atrace.bin');
			form.append('threads', new Blob([`${PID},main\n${PID + 1},sync-1\n${PID + 2},sync-2\n`]), 'threads.txt');
			form.append('meta', JSON.stringify({ app: 'com.acme.shop', version_name: version, build_id: `shop-${version}`, scenario: 'cold_start', device, os: 'Android 14' }));
			const sent = await fetch(`${s.url}/api/v1/traces`, { method: 'POST', body: form, headers: { Authorization: `Bearer ${s.write}`, 'Idempotency-Key': `${version}-${i}` } });
			if (sent.status > 202) throw new Error(await sent.text());
			ids.push((await sent.json()).id);
		}
	}
	return ids;
}

/* All that the pictures show; ids of one start of each version. */
export async function fill(s) {
	const ids = await sendStarts(s);
	const anrs = reports(22);
	for (const x of anrs) await s.post('/api/v1/traces', x.text, { query: { app: 'com.acme.shop', version_name: x.version, device: x.device, os: '14', scenario: 'anr', labels: JSON.stringify({ user_id: x.user }) } });
	await until(async () => {
		const [groups, fleet] = [await s.get('/api/v1/anr/groups?app=com.acme.shop'), await s.get('/api/v1/fleet/methods?scenario=cold_start')];
		return groups.json?.anrs === anrs.length && groups.json.pending === 0 && fleet.json?.traces === ids.length && fleet.json.methods.every((m) => m.resolved) ? true : undefined;
	}, 'all are counted and named', 90);
	await s.ask('PUT', '/api/v1/regressions/rules', { key: s.write, body: JSON.stringify({ min_days: 1, min_traces: 5 }) });
	await look(s);
	return { before: ids[0], after: ids[EACH] };
}

/* [name, address, selector once it is complete, selector at the top of the picture, element to click and its selector]. */
export const pictures = ({ before, after }) => [
	['trace', `/traces/${after}`, '.flame canvas', 'body'],
	['methods', `/traces/${after}?tab=methods`, '.methods tbody tr', 'body'],
	['compare', '/fleet/compare?a=8.3.0&b=8.4.0&app=com.acme.shop&scenario=cold_start', '[data-graph] canvas', '.verdict'],
	['pair', `/compare?a=${before}&b=${after}`, '.compared tbody tr', 'body'],
	['fleet', '/fleet?app=com.acme.shop', '#slowest tbody tr', 'body'],
	['regressions', '/regressions', 'tr[data-regression]', 'body', ['tr[data-regression]:has-text("Json.parse") button', '.trendline circle']],
	['anrs', '/anrs?app=com.acme.shop', 'tr[data-group]:has-text("Deadlock")', 'body'],
];
