/*
 * detect_trace.mjs - a trace of which it is known what detectors find: an app starts, draws, reads a
 * database while it draws, and keeps the main thread with a message.  Times are milliseconds.
 */
import { btrace } from '../e2e/make.mjs';

export const MAIN = 4000;
const NAMES = ['android.app.ActivityThread main', 'android.os.Handler dispatchMessage', 'android.view.Choreographer doFrame', 'com.shop.Cart load',
	'android.database.sqlite.SQLiteDatabase query', 'android.database.sqlite.SQLiteConnection execute', 'java.lang.reflect.Method invoke',
	'java.lang.Thread sleep', 'com.shop.ShopApp onCreate', 'com.shop.ShopApp attachBaseContext', 'com.shop.MainActivity onCreate',
	'com.shop.MainActivity onResume', 'org.json.JSONObject <init>', 'com.shop.Feed parse', 'android.app.ActivityThread installContentProviders',
	'java.io.FileInputStream read', 'com.shop.Cart heavy', 'com.shop.Worker run'];
export const method = (name) => NAMES.findIndex((n) => n.replace(' ', '.') === name) + 1;
export const mapping = ['# 11111111-2222-3333-4444-555555555555', ...NAMES.map((n, i) => `${i + 1},1,${n} ()V`), ''].join('\n');

/* [name, from, to, ...calls inside], as records: children first. */
function records(tid, [name, from, to, ...inside]) {
	return [...inside.flatMap((c) => records(tid, c)), [tid, method(name), Math.round(from * 1e6), Math.round((to - from) * 1e6)]];
}

const message = (from, to, ...inside) => ['android.os.Handler.dispatchMessage', from, to, ...inside];
const frame = (from, to, ...inside) => message(from - 1, to + 1, ['android.view.Choreographer.doFrame', from, to, ...inside]);

export const started = [
	message(10, 400, ['com.shop.ShopApp.attachBaseContext', 20, 60], ['android.app.ActivityThread.installContentProviders', 61, 100],
		['com.shop.ShopApp.onCreate', 110, 390, ['java.lang.Thread.sleep', 120, 370]]),
	message(410, 700, ['com.shop.MainActivity.onCreate', 420, 600,
		['com.shop.Feed.parse', 430, 560, ['org.json.JSONObject.<init>', 435, 555, ['org.json.JSONObject.<init>', 440, 480]]]],
	['com.shop.MainActivity.onResume', 610, 640]),
	frame(711, 759),
];
export const drawn = [
	frame(1001, 1999, ['com.shop.Cart.load', 1010, 1990, ['android.database.sqlite.SQLiteDatabase.query', 1100, 1900,
		['android.database.sqlite.SQLiteConnection.execute', 1110, 1890]]]),
	frame(2101, 2111, ['java.io.FileInputStream.read', 2102, 2107]),
	message(3000, 3900, ['com.shop.Cart.load', 3010, 3890, ['com.shop.Cart.heavy', 3020, 3880], ['java.io.FileInputStream.read', 3881, 3889]]),
];
/* Within the calls that contain all work of a process's main thread. */
const around = (...inside) => ['java.lang.reflect.Method.invoke', 1, 5000, ['android.app.ActivityThread.main', 2, 4999, ...inside]];
const worker = ['com.shop.Worker.run', 5, 2000, ['java.io.FileInputStream.read', 100, 700]];

/* A phone writes a record when a call ends. */
const byEnd = (list) => [...list].sort((a, b) => a[2] + a[3] - b[2] - b[3]);

export const shopTrace = () => btrace(byEnd([...records(MAIN, around(...started, ...drawn)), ...records(MAIN + 1, worker)]), { pid: MAIN });
/* Only what another thread did. */
export const workerTrace = () => btrace(records(MAIN + 1, worker), { pid: MAIN });

/* Calls drawn at random: [tid, method, start_ns, dur_ns, depth, parent], and the file of them. */
export function randomCalls(seed, n = 400) {
	let state = seed;
	const below = (k) => (state = (state * 1103515245 + 12345) % 2147483648) % k;
	const list = [];
	const made = [];
	function grow(tid, from, to, depth, parent) {
		for (let at = from + below(3e6); at < to && list.length < n; ) {
			const dur = Math.min(to - at, 1 + below(depth ? Math.max(2, Math.floor((to - from) * 0.7)) : 90e6));
			const call = { tid, method: 1 + below(NAMES.length), start: at, dur, depth, parent };
			list.push(call);
			if (depth < 6 && below(3)) grow(tid, at, at + dur, depth + 1, call);
			made.push([tid, call.method, at, dur]);
			at += dur + 1 + below(2e6);
		}
	}
	for (const tid of [MAIN, MAIN + 1]) grow(tid, 1e6 + below(1e6), 3e9, 0, null);
	return { list, body: btrace(byEnd(made), { pid: MAIN }), nameOf: (m) => NAMES[m - 1].replace(' ', '.') };
}
