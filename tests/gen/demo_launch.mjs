/*
 * demo_launch.mjs - what a phone records of the first launch of an app: the kernel's text trace with 20 threads, their
 * calls, states, frames, lock waits and calls to other processes; and the report of an app with 60 threads that does
 * not respond.  The same bytes for the same seed.
 */
const PID = 4711;
const START_US = 4_000_000_000;

/* Park and Miller's, from 0 to 1. */
export function numbers(seed) {
	let at = seed;
	return () => (at = (at * 48271) % 2147483647) / 2147483647;
}

/* What each part of the app calls, from the outer to the inner. */
const AREAS = {
	inflate: [['android.view.LayoutInflater.inflate', 'android.view.LayoutInflater.rInflate'], ['android.view.LayoutInflater.createViewFromTag', 'androidx.appcompat.app.AppCompatViewInflater.createView', 'com.acme.shop.ui.PriceView.<init>'],
		['android.content.res.Resources.loadDrawable', 'android.content.res.TypedArray.getColorStateList', 'android.content.res.Resources.getDimensionPixelSize'], ['android.content.res.AssetManager.openXmlResource', 'android.util.TypedValue.coerceToString', 'android.content.res.XmlBlock$Parser.next']],
	layout: [['android.view.ViewRootImpl.performMeasure', 'android.view.ViewRootImpl.performLayout', 'android.view.ViewRootImpl.performDraw'], ['androidx.recyclerview.widget.RecyclerView.onMeasure', 'android.widget.LinearLayout.measureVertical', 'androidx.constraintlayout.widget.ConstraintLayout.onMeasure'],
		['android.widget.TextView.onMeasure', 'android.text.StaticLayout.generate', 'android.view.View.draw', 'com.acme.shop.feed.FeedAdapter.onBindViewHolder'], ['android.text.TextLine.measure', 'android.graphics.Paint.getRunAdvance', 'com.acme.shop.text.Prices.format']],
	json: [['com.acme.shop.data.Repo.load', 'com.acme.shop.data.FeedRepo.refresh'], ['com.acme.shop.data.JsonParser.parse', 'com.google.gson.Gson.fromJson'], ['com.google.gson.internal.bind.ReflectiveTypeAdapterFactory$Adapter.read', 'com.google.gson.stream.JsonReader.nextName', 'com.acme.shop.data.Product.fromJson'],
		['com.google.gson.stream.JsonReader.nextNonWhitespace', 'java.lang.StringBuilder.append', 'java.util.HashMap.put']],
	di: [['com.acme.shop.di.Graph.build', 'dagger.internal.DoubleCheck.get'], ['com.acme.shop.di.NetworkModule.client', 'com.acme.shop.di.DataModule.database', 'com.acme.shop.data.Prefs.load'], ['okhttp3.OkHttpClient$Builder.build', 'androidx.room.RoomDatabase$Builder.build', 'android.app.SharedPreferencesImpl.awaitLoadedLocked'],
		['java.util.concurrent.ConcurrentHashMap.putVal', 'java.security.Provider.getService', 'java.lang.Class.forName']],
	net: [['okhttp3.internal.connection.RealCall.getResponseWithInterceptorChain', 'okhttp3.internal.http.RealInterceptorChain.proceed'], ['okhttp3.internal.http.BridgeInterceptor.intercept', 'okhttp3.internal.cache.CacheInterceptor.intercept', 'com.acme.shop.net.AuthInterceptor.intercept'],
		['okhttp3.internal.http2.Http2Reader.nextFrame', 'okio.RealBufferedSource.read', 'com.android.org.conscrypt.NativeSsl.read'], ['okio.Segment.push', 'java.nio.ByteBuffer.get', 'okio.Buffer.readByte']],
	image: [['com.acme.shop.image.ImageLoader.decode', 'com.acme.shop.image.ImageCache.get'], ['android.graphics.ImageDecoder.decodeBitmapImpl', 'com.acme.shop.image.DiskCache.read', 'com.acme.shop.image.Transform.round'], ['android.graphics.Bitmap.createBitmap', 'java.io.FileInputStream.read', 'android.graphics.Canvas.drawBitmap'],
		['java.util.LinkedHashMap.get', 'libcore.io.Linux.readBytes', 'android.graphics.Matrix.setScale']],
	db: [['androidx.room.util.DBUtil.query', 'com.acme.shop.data.CartDao_Impl.load'], ['android.database.sqlite.SQLiteDatabase.rawQueryWithFactory', 'android.database.sqlite.SQLiteQuery.fillWindow', 'android.database.sqlite.SQLiteSession.beginTransaction'],
		['android.database.sqlite.SQLiteConnection.nativeExecuteForCursorWindow', 'android.database.CursorWindow.getString'], ['android.database.sqlite.SQLiteConnection.acquirePreparedStatement', 'java.lang.String.<init>']],
	ads: [['com.acme.shop.ads.Ads.warmUp'], ['com.acme.shop.ads.BidCache.load', 'com.acme.shop.ads.Targeting.profile'], ['java.util.regex.Matcher.find', 'com.acme.shop.ads.Signals.hash'], ['java.util.regex.Pattern$Loop.match', 'java.security.MessageDigest.update']],
	kotlin: [['kotlinx.coroutines.DispatchedTask.run', 'kotlin.coroutines.jvm.internal.BaseContinuationImpl.resumeWith'], ['com.acme.shop.feed.FeedViewModel$load$1.invokeSuspend', 'com.acme.shop.cart.CartViewModel$sync$1.invokeSuspend'], ['kotlinx.coroutines.flow.StateFlowImpl.setValue', 'com.acme.shop.feed.FeedItem.copy', 'kotlin.collections.CollectionsKt.map'],
		['java.util.ArrayList.add', 'kotlin.jvm.internal.Intrinsics.areEqual', 'java.lang.Integer.valueOf']],
};

const WORKERS = [['RenderThread', 'layout'], ...Array.from({ length: 6 }, (_, i) => [`DefaultDispatcher-worker-${i + 1}`, 'kotlin']), ['OkHttp api.acme.com', 'net'], ['OkHttp img.acme.com', 'net'], ...Array.from({ length: 3 }, (_, i) => [`image-loader-${i + 1}`, 'image']),
	['room-query-1', 'db'], ['room-query-2', 'db'], ['arch_disk_io_0', 'json'], ...Array.from({ length: 4 }, (_, i) => [`Binder:${PID}_${i + 1}`, 'kotlin'])];
export const THREADS = WORKERS.length + 1;

/* One thread: its clock, and the lines it writes. */
class Thread {
	constructor(tid, name, cpu, lines, random) {
		Object.assign(this, { tid, name: name.slice(0, 15), cpu, lines, random, at: START_US, calls: 0 });
	}
	line(text, { tid = this.tid, name = this.name, flags = '...1' } = {}) {
		const own = tid ? `(${PID})` : '(-----)';
		this.lines.push([this.at, `${name.padStart(16)}-${tid} ${own.padStart(7)} [${String(this.cpu).padStart(3, '0')}] ${flags} ${(this.at / 1e6).toFixed(6)}: ${text}`]);
	}
	begin(name) {
		this.calls++;
		this.line(`tracing_mark_write: B|${PID}|${name}`);
	}
	end() {
		this.line(`tracing_mark_write: E|${PID}`);
	}
	comes() {
		this.line(`sched_switch: prev_comm=swapper/${this.cpu} prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=${this.name} next_pid=${this.tid} next_prio=110`, { tid: 0, name: '<idle>', flags: 'd..2' });
	}
	/* Off the CPU in `state` until `us` later; `by` wakes it. */
	leave(us, state = 'S', by = undefined) {
		this.line(`sched_switch: prev_comm=${this.name} prev_pid=${this.tid} prev_prio=110 prev_state=${state} ==> next_comm=swapper/${this.cpu} next_pid=0 next_prio=120`, { flags: 'd..2' });
		this.at += Math.max(2, Math.round(us));
		if (by) this.line(`sched_waking: comm=${this.name} pid=${this.tid} prio=110 target_cpu=${String(this.cpu).padStart(3, '0')}`, { tid: by.tid, name: by.name, flags: 'd..3' });
		this.at += 8 + Math.round(60 * this.random() ** 3); // runnable
		this.comes();
	}
	call(name, inner) {
		this.begin(name);
		this.at += 1;
		inner();
		this.at += 1;
		this.end();
	}
	/* `us` of an area's calls, of which there are `calls`. */
	work(area, us, calls, level = 0) {
		if (calls <= 0) {
			this.at += Math.max(1, Math.round(us));
			return;
		}
		const names = AREAS[area][Math.min(level, AREAS[area].length - 1)];
		const depth = AREAS[area].length - 1;
		const n = level >= depth + 2 ? calls : Math.max(1, Math.min(calls, level === 0 ? 1 + Math.floor(this.random() * 2) : Math.round(calls ** 0.5)));
		for (let i = 0, left = calls; i < n; i++) {
			const mine = i === n - 1 ? left : Math.floor(calls / n);
			left -= mine;
			const took = (us / n) * (0.6 + 0.8 * this.random());
			this.call(names[Math.floor(this.random() * names.length)], () => {
				this.at += Math.round(took * 0.12);
				this.work(area, took * 0.85, mine - 1, level + 1);
			});
		}
	}
	/* A lock that `owner` has. */
	blocked(us, owner, lock, from) {
		this.call(`monitor contention with owner ${owner.name} (${owner.tid}) at void ${lock}(${lock.split('.').at(-2)}.java:88) waiters=0 blocking from void ${from}(${from.split('.').at(-2)}.java:41)`, () => this.leave(us, 'S', owner));
	}
	/* An answer of another process. */
	binder(us, method) {
		this.call(method, () => this.call('android.os.BinderProxy.transactNative', () => this.leave(us)));
	}
	file(us, method) {
		this.call(method, () => this.call('libcore.io.Linux.readBytes', () => this.leave(us, 'D')));
	}
}

/* The main thread: everything that a person waits for before the first frame, then frames. */
function launch(t, db, calls, slower) {
	const share = (part) => Math.round(calls * part);
	t.comes();
	t.call('android.app.ActivityThread.main', () => {
		t.call('android.app.ActivityThread.handleBindApplication', () => {
			t.binder(14_000, 'android.app.IActivityManager$Stub$Proxy.attachApplication');
			t.file(9_000, 'dalvik.system.DexPathList.makeDexElements');
			t.call('com.acme.shop.App.onCreate', () => {
				t.work('di', 70_000, share(0.14));
				t.blocked(38_000, db, 'com.acme.shop.data.CartStore.migrate', 'com.acme.shop.data.Prefs.load');
				t.binder(17_000, 'android.content.pm.IPackageManager$Stub$Proxy.getPackageInfo');
				if (slower) t.work('ads', 150_000, share(0.08));
			});
		});
		t.leave(1500);
		t.call('android.app.ActivityThread.handleLaunchActivity', () => {
			t.call('com.acme.shop.home.HomeActivity.onCreate', () => {
				t.work('inflate', 160_000, share(0.2));
				t.work('json', slower ? 230_000 : 120_000, share(0.12));
				t.file(12_000, 'com.acme.shop.image.DiskCache.open');
			});
			t.binder(6_000, 'android.view.IWindowSession$Stub$Proxy.addToDisplay');
		});
		for (let frame = 0; frame < 40; frame++) {
			t.call(`Choreographer#doFrame ${frame}`, () => {
				t.call('input', () => t.work('kotlin', 300, share(0.001)));
				t.call('animation', () => t.work('kotlin', 500, share(0.001)));
				t.call('traversal', () => {
					t.work('layout', frame === 0 ? 90_000 : frame % 11 === 5 ? 24_000 : 5_000, share(frame === 0 ? 0.1 : 0.008));
					if (frame === 5) t.blocked(21_000, db, 'com.acme.shop.cart.Cart.add', 'com.acme.shop.feed.FeedAdapter.onBindViewHolder');
				});
			});
			t.leave(2_000 + 6_000 * t.random());
		}
	});
}

function worker(t, area, calls, until, locks) {
	const bursts = Math.max(4, Math.round(calls / 220));
	t.at += Math.round(60_000 * t.random());
	t.comes();
	const gap = (until - t.at) / bursts;
	for (let i = 0; i < bursts; i++) {
		const begin = t.at;
		const mine = Math.round(calls / bursts);
		if (t.name.startsWith('Binder:')) t.call('android.os.Binder.execTransact', () => t.work(area, gap * 0.2, mine - 1));
		else if (t.name === 'RenderThread') t.call(`DrawFrames ${i}`, () => t.work(area, gap * 0.5, mine - 1));
		else t.work(area, gap * (0.35 + 0.3 * t.random()), mine);
		if (locks && i % 6 === 3) t.blocked(gap * 0.1, locks, 'com.acme.shop.image.ImageCache.trim', 'com.acme.shop.image.ImageCache.get');
		t.leave(Math.max(100, gap - (t.at - begin)) * (0.5 + t.random()), i % 9 === 8 ? 'D' : 'S');
	}
}

/* The trace of a launch with about `calls` calls. */
export function launchTrace({ calls, slower = false, factor = 1, seed = 1 }) {
	const random = numbers(seed);
	const lines = [];
	const main = new Thread(PID, 'com.acme.shop', 0, lines, random);
	const others = WORKERS.map(([name, area], i) => ({ area, t: new Thread(PID + 20 + i, name, i + 1, lines, random) }));
	launch(main, others.find((o) => o.t.name === 'room-query-1').t, Math.round(calls * 0.42), slower);
	const each = Math.max(20, Math.round((calls - main.calls) / others.length));
	for (const { t, area } of others) worker(t, area, each, main.at, area === 'image' ? others.find((o) => o.area === 'image').t : undefined);
	const rows = lines.map(([at, text], i) => [at, i, text]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
	const scaled = factor === 1 ? rows : rows.map(([at, i, text]) => [at, i, text.replace((at / 1e6).toFixed(6), ((START_US + (at - START_US) * factor) / 1e6).toFixed(6))]);
	return `# tracer: nop\n#\n${scaled.map(([, , text]) => text).join('\n')}\n`;
}

/* --- an app that does not respond --- */

function dumped(name, tid, state, lines, letter = 'S') {
	return [`"${name}" prio=5 tid=${tid} ${state}`, `  | sysTid=${PID + tid - 1} nice=0 cgrp=top-app sched=0/0 handle=0x7deceb74f8`, `  | state=${letter} schedstat=( 324804784 183300334 997 ) utm=23 stm=8 core=3 HZ=100`, ...lines.map((l) => `  ${l}`), ''].join('\n');
}

const PARKED = ['at jdk.internal.misc.Unsafe.park(Native method)', '- waiting on an unknown object', 'at java.util.concurrent.locks.LockSupport.park(LockSupport.java:194)', 'at java.util.concurrent.LinkedBlockingQueue.take(LinkedBlockingQueue.java:435)', 'at java.util.concurrent.ThreadPoolExecutor.getTask(ThreadPoolExecutor.java:1092)', 'at java.lang.Thread.run(Thread.java:1012)'];

/* 60 threads: the main one waits for the cart, whose owner waits for the database, whose writer syncs a file. */
export function anrReport(i) {
	const threads = [
		dumped('main', 1, 'Blocked', [`at com.acme.shop.cart.Cart.total(Cart.kt:${140 + i})`, '- waiting to lock <0x0a1b2c3d> (a com.acme.shop.cart.Cart) held by thread 21', 'at com.acme.shop.cart.CartBadge.refresh(CartBadge.kt:58)', 'at com.acme.shop.home.HomeActivity.onResume(HomeActivity.kt:212)',
			'at android.app.Activity.performResume(Activity.java:8315)', 'at android.os.Handler.dispatchMessage(Handler.java:106)', 'at android.os.Looper.loop(Looper.java:294)', 'at android.app.ActivityThread.main(ActivityThread.java:8177)']),
		dumped('Signal Catcher', 2, 'Runnable', ['native: #00 pc 0000000000539e50  /apex/com.android.art/lib64/libart.so (art::DumpNativeStack+108)'], 'R'),
		dumped('cart-sync', 21, 'Blocked', ['at com.acme.shop.data.CartDb.write(CartDb.kt:77)', '- waiting to lock <0x0b2c3d4e> (a com.acme.shop.data.CartDb) held by thread 22', 'at com.acme.shop.cart.Cart.merge(Cart.kt:201)', '- locked <0x0a1b2c3d> (a com.acme.shop.cart.Cart)', 'at com.acme.shop.cart.CartSync.run(CartSync.kt:33)', 'at java.lang.Thread.run(Thread.java:1012)']),
		dumped('room-query-1', 22, 'Native', ['native: #00 pc 00000000000a20f4  /apex/com.android.runtime/lib64/bionic/libc.so (fdatasync+4)', 'at android.database.sqlite.SQLiteConnection.nativeExecute(Native method)', 'at android.database.sqlite.SQLiteConnection.execute(SQLiteConnection.java:730)', 'at com.acme.shop.data.CartDb.migrate(CartDb.kt:41)', '- locked <0x0b2c3d4e> (a com.acme.shop.data.CartDb)', 'at java.lang.Thread.run(Thread.java:1012)'], 'D'),
	];
	const names = [...Array.from({ length: 12 }, (_, n) => `DefaultDispatcher-worker-${n + 1}`), ...Array.from({ length: 8 }, (_, n) => `OkHttp Dispatcher ${n + 1}`), ...Array.from({ length: 6 }, (_, n) => `image-loader-${n + 1}`), ...Array.from({ length: 8 }, (_, n) => `Binder:${PID}_${n + 1}`), 'FinalizerDaemon', 'ReferenceQueueDaemon', 'HeapTaskDaemon', 'FinalizerWatchdogDaemon',
		'Jit thread pool', 'RenderThread', 'hwuiTask0', 'hwuiTask1', 'queued-work-looper', 'ConnectivityThread', 'WM.task-1', 'GoogleApiHandler', 'Firebase-Messaging', 'Crashlytics Exception Handler', 'glide-disk-cache-1', 'glide-source-1', 'ads-prefetch', 'metrics-upload', 'room-query-2', 'arch_disk_io_0', 'pool-9-thread-1', 'Timer-0'];
	names.slice(0, 60 - threads.length).forEach((name, n) => threads.push(name.startsWith('Binder:')
		? dumped(name, 30 + n, 'Native', ['native: #00 pc 00000000000a1f98  /apex/com.android.runtime/lib64/bionic/libc.so (__ioctl+8)', 'native: #01 pc 000000000005d1f4  /system/lib64/libbinder.so (android::IPCThreadState::talkWithDriver(bool)+284)', '(no managed stack frames)'])
		: dumped(name, 30 + n, 'Waiting', PARKED)));
	return ['Subject: Input dispatching timed out (com.acme.shop/com.acme.shop.home.HomeActivity is not responding. Waited 5004ms for MotionEvent)', `----- pid ${PID} at 2026-11-20 09:12:44.105000000+0100 -----`, 'Cmd line: com.acme.shop', `DALVIK THREADS (${threads.length}):`, ...threads, `----- end ${PID} -----`, ''].join('\n');
}
