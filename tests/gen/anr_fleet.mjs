/*
 * anr_fleet.mjs - reports of ANRs whose causes are known, over versions, users and devices.
 *
 * Report i is the same whenever it is asked for.  What a cause does not depend on differs from
 * report to report: lines, numbers of lambdas and anonymous classes, ids of objects and threads, the
 * order of a ring, where exactly within a lock or a path a thread stood.
 *
 * Causes with `obf` have obfuscated names, which MAPPING resolves.
 */
export const VERSIONS = ['8.3.0', '8.3.1', '8.4.0-rc.1+build.7'];

const LOOPER = ['android.os.Handler.dispatchMessage(Handler.java:106)', 'android.os.Looper.loop(Looper.java:294)', 'android.app.ActivityThread.main(ActivityThread.java:8177)'];
const tail = LOOPER.map((f) => `  at ${f}`);

const hex = (n) => `0x${(0x1000000 + n * 7919).toString(16).padStart(8, '0')}`;

/* name, state, lines of the stack; tid 1 is main */
function thread(name, tid, state, lines, { letter = state === 'Runnable' ? 'R' : 'S', sched = '( 324804784 183300334 997 )' } = {}) {
	return [`"${name}" prio=5 tid=${tid} ${state}`, `  | sysTid=${4241 + tid} nice=0 cgrp=top-app sched=0/0 handle=0x7deceb74f8`,
		`  | state=${letter} schedstat=${sched} utm=23 stm=8 core=3 HZ=100`, ...lines, ''].join('\n');
}

function report(threads, { waited = 5000, loads = [] } = {}) {
	return [`Subject: Input dispatching timed out (Waited ${waited}ms for MotionEvent)`, ...loads, '----- pid 4242 at 2024-05-27 15:09:02.105000000+0200 -----',
		'Cmd line: com.shop', `DALVIK THREADS (${threads.length}):`, ...threads, '----- end 4242 -----', ''].join('\n');
}

const main = (state, lines, how) => thread('main', 1, state, [...lines, ...tail], how);
const wants = (id, type, tid) => `  - waiting to lock <${id}> (a ${type})${tid ? ` held by thread ${tid}` : ''}`;
const holds = (id, type) => `  - locked <${id}> (a ${type})`;

/* kind, title: how its group must be reported.  make(i): report i of it. */
export const CAUSES = [
	{
		id: 'ring', kind: 'deadlock', title: 'Deadlock of Cart and Stock', locks: ['com.shop.Cart', 'com.shop.Stock'],
		make(i) {
			const [a, b] = [hex(i), hex(i + 1)];
			const cart = [`  at com.shop.Cart.total(Cart.java:${80 + i})`, wants(b, 'com.shop.Stock', i % 2 ? 9 : 1), holds(a, 'com.shop.Cart'), '  at com.shop.CartScreen.draw(CartScreen.java:5)'];
			const stock = [`  at com.shop.Stock.take(Stock.java:${9 + i})`, wants(a, 'com.shop.Cart', i % 2 ? 1 : 9), holds(b, 'com.shop.Stock'), '  at com.shop.Sync.run(Sync.java:7)'];
			/* main is in either place */
			return report(i % 2 ? [main('Blocked', cart), thread(`pool-${i}-thread-1`, 9, 'Blocked', stock)] : [main('Blocked', stock), thread(`pool-${i}-thread-1`, 9, 'Blocked', cart)]);
		},
	},
	{
		id: 'held', kind: 'lock', title: 'Lock of Orders, held in Orders.insert', locks: ['com.shop.Orders'],
		make(i) {
			const within = i % 2 ? ['  native: #00 pc 00000000000a20f4  /apex/com.android.runtime/lib64/bionic/libc.so (fdatasync+4)', '  at android.database.sqlite.SQLiteConnection.nativeExecute(Native method)'] : ['  at com.shop.Orders.encode(Orders.java:99)'];
			return report([main('Blocked', [`  at com.shop.List${'$'}${1 + i}.bind(List.java:${i})`, wants(hex(i), 'com.shop.Orders', 12)]),
				thread('DB-writer', 12, i % 2 ? 'Native' : 'Runnable', [...within, `  at com.shop.Orders.insert(Orders.java:${50 + i})`, holds(hex(i), 'com.shop.Orders'), `  at com.shop.Sync$$ExternalSyntheticLambda${i}.run(D8$$SyntheticClass:0)`])]);
		},
	},
	{
		id: 'file', kind: 'io', title: 'File, database or network in Prefs.load',
		make: (i) => report([main('Native', ['  at libcore.io.Linux.read(Native method)', '  at libcore.io.BlockGuardOs.read(BlockGuardOs.java:5)', `  at java.io.FileInputStream.read(FileInputStream.java:${i + 1})`,
			`  at com.shop.Prefs.load(Prefs.java:${i + 30})`, `  at com.shop.App.lambda$onCreate$${i}(App.java:7)`, `  at com.shop.App$$ExternalSyntheticLambda${i + 3}.run(D8$$SyntheticClass:0)`])]),
	},
	{
		id: 'call', kind: 'binder', title: 'IPackageManager.getPackageInfo in another process, called by Ads.installed', binder: { interface: 'android.content.pm.IPackageManager', method: 'getPackageInfo' },
		make: (i) => report([main('Native', ['  at android.os.BinderProxy.transactNative(Native method)', `  at android.os.BinderProxy.transact(BinderProxy.java:${540 + i})`,
			'  at android.content.pm.IPackageManager$Stub$Proxy.getPackageInfo(IPackageManager.java:3000)', '  at android.app.ApplicationPackageManager.getPackageInfo(ApplicationPackageManager.java:200)',
			`  at com.shop.Ads.installed-${['0d7_KjU', 'aB3dE9f'][i % 2]}(Ads.kt:${12 + i})`])]),
	},
	{
		id: 'starved', kind: 'no_cpu', title: 'No CPU: used by system_server',
		make: (i) => report([main('Runnable', [`  at com.shop.Screen${i}.draw(Screen.java:${i})`])],
			{ loads: ['Load: 31.2 / 20.1 / 10.0', 'CPU usage from 0ms to 8123ms later:', '  190% 1511/system_server: 100% user + 90% kernel', `  ${i % 5}% 4242/com.shop: ${i % 5}% user + 0% kernel`, '98% TOTAL: 50% user + 48% kernel'] }),
	},
	{
		id: 'busy', kind: 'run', title: 'Running Layout.measure',
		make: (i) => report([main('Runnable', [`  at java.util.Arrays.sort(Arrays.java:${i})`, `  at com.shop.Layout.measure$app_release(Layout.kt:${i + 10})`, `  at com.shop.Layout.measure$default(Layout.kt:${i})`, '  at com.shop.Screen.draw(Screen.java:4)'])]),
	},
	{
		id: 'obfuscated', kind: 'sleep', obf: true, title: 'Sleep in Retry.pause', before: 'Sleep in b.c',
		make: (i) => report([main('Sleeping', ['  at java.lang.Thread.sleep(Native method)', `  at a.b.c(SourceFile:${1 + (i % 9)})`, '  at a.d.e(SourceFile:3)'])]),
	},
];

export const MAPPING = 'com.shop.Retry -> a.b:\n    1:9:void pause():21:29 -> c\ncom.shop.Net -> a.d:\n    3:3:void load():20 -> e\n';

/* n reports: cause, version, user, device and text of each. */
export function fleet(n) {
	return Array.from({ length: n }, (_, i) => {
		const cause = CAUSES[[0, 1, 2, 0, 3, 4, 1, 5, 6, 0, 2][i % 11]];
		return { i, cause, version: VERSIONS[i % VERSIONS.length], user: `u${i % 5}`, device: `Phone ${i % 4}`, text: cause.make(i) };
	});
}
