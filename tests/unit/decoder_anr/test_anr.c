/* Complete ANR reports of all kinds: their documents, above all the verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/unit/anr_fixture.h"
#include "tests/unit/unit.h"

static void says(const char *text, const char *verdict, const char *end)
{
	struct anr_report r = anr_read_text(text);

	assert_string_equal(anr_word(r.doc, "verdict"), verdict);
	assert_string_equal(anr_word(r.doc, "end"), end);
	anr_done(&r);
}

/* --- verdicts --- */

static void test_verdict_of_a_holder(void **state)
{
	(void)state;
	says("Subject: Input dispatching timed out (Waited 5003ms for x)\n" ANR_MAIN_WANTS
	     "\"DB-writer\" prio=5 tid=2 Native\n"
	     "  at android.database.sqlite.SQLiteConnection.nativeExecute(Native method)\n"
	     "  at android.database.sqlite.SQLiteSession.execute(SQLiteSession.java:6)\n"
	     "  - locked <0x01> (a a.b.Store)\n",
	        "main waits 5 s for a lock of Store held by DB-writer, which runs "
	        "SQLiteSession.execute",
	        "io");
	says(ANR_MAIN_WANTS
	        "\"w\" prio=5 tid=2 Sleeping\n  at java.lang.Thread.sleep(Native method)\n"
	        "  at a.b.Work.nap(Work.java:1)\n",
	        "main waits for a lock of Store held by w, which sleeps in Work.nap", "sleeping");
	says(ANR_MAIN_WANTS "\"w\" prio=5 tid=2 Native\n"
	                    "  at android.os.BinderProxy.transactNative(Native method)\n"
	                    "  at android.os.BinderProxy.transact(BinderProxy.java:5)\n"
	                    "  at android.app.IActivityManager$Stub$Proxy.x(I.java:1)\n"
	                    "  at a.b.Work.ask(Work.java:1)\n",
	        "main waits for a lock of Store held by w, which waits for another process in "
	        "IActivityManager$Stub$Proxy.x for Work.ask",
	        "binder");
	says(ANR_MAIN_WANTS,
	        "main waits for a lock of Store held by thread 2, which the dump does not have",
	        "holder_gone");
}

static void test_verdict_of_a_chain(void **state)
{
	(void)state;
	says(ANR_MAIN_WANTS
	        "\"b\" prio=5 tid=2 Blocked\n  at a.b.B.b(B.java:1)\n"
	        "  - waiting to lock <0x02> (a java.lang.Class<a.b.Two>) held by thread 3\n\n"
	        "\"c\" prio=5 tid=3 Runnable\n  at a.b.C.c(C.java:1)\n",
	        "main waits for a lock of Store held by b, which waits for the class lock of Two "
	        "held "
	        "by c, which runs C.c",
	        "running");
	says(ANR_MAIN_WANTS
	        "\"b\" prio=5 tid=2 Blocked\n  at a.b.B.b(B.java:1)\n"
	        "  - waiting to lock <0x02> (a a.b.Two) held by thread 3\n\n"
	        "\"c\" prio=5 tid=3 Blocked\n  at a.b.C.c(C.java:1)\n"
	        "  - waiting to lock <0x03> (a a.b.Three) held by thread 4\n\n"
	        "\"d\" prio=5 tid=4 Waiting\n  at java.lang.Object.wait(Native method)\n"
	        "  at a.b.D.d(D.java:1)\n",
	        "main waits for a lock of Store held by b, which waits for a lock of Two; 2 "
	        "threads "
	        "further on, d waits in D.d",
	        "waiting");
}

static void test_verdict_of_a_deadlock(void **state)
{
	static const char text[] =
	        ANR_MAIN_WANTS "\"b\" prio=5 tid=2 Blocked\n  at a.b.B.b(B.java:1)\n"
	                       "  - waiting to lock <0x02> (a a.b.Two) held by thread 1\n"
	                       "  - locked <0x01> (a a.b.Store)\n";
	struct anr_report r = anr_read_text(text);
	json_t *cycle = json_array_get(json_object_get(anr_process(&r, 0), "cycles"), 0);
	json_t *second = json_array_get(json_object_get(cycle, "threads"), 1);

	(void)state;
	assert_string_equal(anr_word(r.doc, "verdict"),
	        "deadlock: main waits for a lock of Store held by b, which waits for a lock of Two "
	        "held by main");
	assert_true(json_is_true(json_object_get(cycle, "certain")));
	assert_int_equal(anr_number(cycle, "size"), 2);
	assert_int_equal(anr_number(second, "thread"), 1);
	assert_string_equal(anr_word(json_object_get(second, "wants"), "type"), "a.b.Two");
	assert_string_equal(anr_word(json_object_get(second, "frame"), "name"), "a.b.B.b");
	assert_int_equal(anr_count(anr_process(&r, 0), "chain"), 2);
	anr_done(&r);
	says("\"main\" prio=5 tid=1 Runnable\n  at a.b.Screen.draw(Screen.java:1)\n"
	     "  - waiting to lock <0x01> (a a.b.Store) held by thread 2\n\n"
	     "\"b\" prio=5 tid=2 Blocked\n  at a.b.B.b(B.java:1)\n"
	     "  - waiting to lock <0x02> (a a.b.Two) held by thread 1\n",
	        "possible deadlock: main waits for a lock of Store held by b, which waits for a "
	        "lock "
	        "of Two held by main",
	        "possible_deadlock");
}

static void test_verdict_of_main_alone(void **state)
{
	(void)state;
	says("\"main\" prio=5 tid=1 Native\n"
	     "  at android.os.MessageQueue.nativePollOnce(Native method)\n"
	     "  at android.os.MessageQueue.next(MessageQueue.java:335)\n",
	        "main was idle when the dump was taken: the work that blocked it had ended",
	        "idle");
	says("Reason: executing service a.b/.S, waited 20005ms\n"
	     "\"main\" prio=5 tid=1 Runnable\n  at a.b.Work.sum(Work.java:1)\n",
	        "main did not respond for 20 s: it runs Work.sum", "running");
	says("\"main\" prio=5 tid=1 Waiting\n  at sun.misc.Unsafe.park(Native method)\n"
	     "  at java.util.concurrent.locks.LockSupport.park(LockSupport.java:1)\n"
	     "  at a.b.Work.get(Work.java:1)\n",
	        "main waits in Work.get", "waiting");
	says("\"main\" prio=5 tid=1 Blocked\n  at a.b.Work.get(Work.java:1)\n"
	     "  - waiting to lock an unknown object\n",
	        "main waits for a lock whose holder is not seen, in Work.get", "lock_unknown");
	says("\"main\" prio=5 tid=1 WaitingForGcToComplete\n  at a.b.Work.get(Work.java:1)\n",
	        "main waits for the garbage collector in Work.get", "gc");
	says("Subject: x\n", "the report has no stack of the main thread", "no_stack");
	says("\"other\" prio=5 tid=4 Native\n  at a.b.Work.get(Work.java:1)\n",
	        "the report has no stack of the main thread", "no_stack");
}

/* A third thread that takes part in a ring with the second. */
#define RING_OF_B_AND_C                                                                            \
	"\"b\" prio=5 tid=2 Blocked\n  at a.b.B.b(B.java:1)\n"                                     \
	"  - waiting to lock <0x02> (a a.b.Two) held by thread 3\n  - locked <0x01> (a "           \
	"a.b.Store)\n\n"                                                                           \
	"\"c\" prio=5 tid=3 Blocked\n  at a.b.C.c(C.java:1)\n"                                     \
	"  - waiting to lock <0x03> (a a.b.Three) held by thread 2\n  - locked <0x02> (a "         \
	"a.b.Two)\n\n"

#define RING(a, b, wants, has)                                                                     \
	"\"t" a "\" prio=5 tid=" a " Blocked\n  at r.R" a ".go(R.java:" a ")\n"                    \
	"  - waiting to lock <0x" wants "> (a r.L" wants ") held by thread " b "\n"                \
	"  - locked <0x" has "> (a r.L" has ")\n\n"

static const char *member(const json_t *cycle, size_t i, const char *key)
{
	const json_t *step = json_array_get(json_object_get(cycle, "threads"), i);

	return anr_word(json_object_get(step, key), "name");
}

/* Every ring is reported with the stacks of all its members, and the verdict names each. */
static void test_rings(void **state)
{
	static const char four[] =
	        "\"main\" prio=5 tid=1 Native\n"
	        "  at android.os.MessageQueue.nativePollOnce(Native method)\n\n" RING(
	                "2", "3", "22", "21") RING("3", "4", "23", "22") RING("4", "2", "21", "23")
	                RING("7", "8", "28", "27") RING("8", "7", "27", "28");
	struct anr_report r = anr_read_text(four);
	const json_t *cycles = json_object_get(anr_process(&r, 0), "cycles");
	const json_t *first = json_array_get(cycles, 0);

	(void)state;
	assert_string_equal(anr_word(r.doc, "verdict"),
	        "main was idle when the dump was taken: the work that blocked it had ended; also a "
	        "deadlock: t2 waits for a lock of L22 held by t3, which waits for a lock of L23 "
	        "held by t4, in a ring of 3 threads, and 1 more");
	assert_int_equal(json_array_size(cycles), 2);
	assert_int_equal(anr_number(first, "size"), 3);
	assert_string_equal(member(first, 0, "frame"), "r.R2.go");
	assert_string_equal(member(first, 1, "frame"), "r.R3.go");
	assert_string_equal(member(first, 2, "owner_frame"), "r.R2.go");
	assert_string_equal(member(json_array_get(cycles, 1), 1, "frame"), "r.R8.go");
	for (size_t i = 1; i <= 5; i++)
		assert_int_equal(anr_count(anr_thread(&r, i), "frames"), 1);
	anr_done(&r);
	says(ANR_MAIN_WANTS RING_OF_B_AND_C,
	        "deadlock: main waits for a lock of Store held by b; b waits for a lock of Two "
	        "held "
	        "by c, which waits for a lock of Three held by b",
	        "deadlock");
	says(ANR_MAIN_WANTS "\"b\" prio=5 tid=2 Blocked\n  at a.b.B.b(B.java:1)\n"
	                    "  - waiting to lock <0x02> (a a.b.Two) held by thread 77\n",
	        "main waits for a lock of Store held by b, which waits for a lock of Two held by "
	        "thread 77, which the dump does not have",
	        "holder_gone");
	says("\"b\" prio=5 tid=9 Runnable\n  at x.Y.z(Y.java:1)\n\n" RING_OF_B_AND_C,
	        "the report has no stack of the main thread; also a deadlock: b waits for a "
	        "lock of Two held by c, which waits for a lock of Three held by b",
	        "no_stack");
}

/* A chain above the limit of threads: the verdict still describes its end. */
static void test_a_long_chain(void **state)
{
	struct anr_report r;
	struct tw_buf text;

	(void)state;
	tw_buf_init(&text, 1 << 20);
	for (int i = 1; i < 100; i++)
		(void)tw_buf_printf(&text,
		        "\"t%d\" prio=5 tid=%d Blocked\n  at a.b.T.go(T.java:1)\n"
		        "  - waiting to lock <0x%x> (a a.b.L) held by thread %d\n\n",
		        i, i, i, i + 1);
	(void)tw_buf_printf(
	        &text, "\"last\" prio=5 tid=100 Runnable\n  at a.b.Last.go(L.java:1)\n");
	r = anr_read((const char *)text.data, text.len, NULL);
	assert_string_equal(anr_word(r.doc, "verdict"),
	        "main waits for a lock of L held by t2, which waits for a lock of L; 98 threads "
	        "further on, last runs Last.go");
	assert_int_equal(anr_number(anr_process(&r, 0), "culprit"), 99);
	anr_done(&r);
	tw_buf_done(&text);
}

#define MAIN(state, frames) "\"main\" prio=5 tid=1 " state "\n" frames

static void test_what_main_does(void **state)
{
	(void)state;
	/* nine native frames without a name above the call */
	says(MAIN("Native",
	             "  native: #00 pc 01  /l/libc.so\n  native: #01 pc 02  /l/libc.so\n"
	             "  native: #02 pc 03  /l/libbinder.so\n  native: #03 pc 04  /l/libbinder.so\n"
	             "  native: #04 pc 05  /l/libbinder.so\n  native: #05 pc 06  /l/libbinder.so\n"
	             "  native: #06 pc 07  /l/libandroid_runtime.so\n"
	             "  native: #07 pc 08  /l/boot.oat\n  native: #08 pc 09  /l/boot.oat\n"
	             "  at android.os.BinderProxy.transactNative(Native method)\n"
	             "  at android.os.BinderProxy.transact(BinderProxy.java:5)\n"
	             "  at a.b.Work.ask(Work.java:1)\n"),
	        "main waits for another process in Work.ask", "binder");
	/* a call that came in while one went out is not that one */
	says(MAIN("Runnable", "  at a.b.Work.answer(Work.java:1)\n"
	                      "  at android.os.Binder.execTransact(Binder.java:1)\n"
	                      "  at android.os.BinderProxy.transactNative(Native method)\n"
	                      "  at android.os.BinderProxy.transact(BinderProxy.java:5)\n"),
	        "main runs Work.answer", "running");
	says(MAIN("Native", "  native: #00 pc 01  /l/libc.so (fsync+8)\n"
	                    "  native: #01 pc 02  /l/libown.so (flush+1)\n"
	                    "  at a.b.Own.flush(Native method)\n"),
	        "main runs Own.flush", "io");
	says(MAIN("TIMED_WAIT", "  at java.lang.VMThread.sleep(Native Method)\n"
	                        "  at java.lang.Thread.sleep(Thread.java:1)\n"
	                        "  at a.b.Nap.nap(Nap.java:1)\n"),
	        "main sleeps in Nap.nap", "sleeping");
	says(MAIN("Runnable", "  | state=R schedstat=( 2000000000 9000000000 7 ) utm=1 stm=1\n"
	                      "  at a.b.Work.sum(Work.java:1)\n"),
	        "main waits for a processor more than it runs, in Work.sum", "no_cpu");
	says(MAIN("Runnable", "  | state=R schedstat=( 200000000 900000000 7 ) utm=1 stm=1\n"
	                      "  at a.b.Work.sum(Work.java:1)\n"),
	        "main runs Work.sum", "running");
}

/* In these functions a thread waits; the first frame outside them identifies the caller. */
static void test_native_waits(void **state)
{
	(void)state;
	says(MAIN("Native", "  native: #00 pc 01  /l/libc.so (__epoll_pwait+8)\n"
	                    "  native: #01 pc 02  /l/libnet.so (net::Socket::await(int)+8)\n"
	                    "  at a.b.Net.ask(Native method)\n"),
	        "main waits in Net.ask", "waiting");
	says(MAIN("Native", "  native: #00 pc 01  /l/libc.so (nanosleep+8)\n"
	                    "  native: #01 pc 02  /l/libc.so (usleep+8)\n"
	                    "  native: #02 pc 03  /l/libgame.so (Game::frame()+8)\n"),
	        "main sleeps in Game::frame()", "sleeping");
	says(MAIN("Native", "  native: #00 pc 01  /l/libc.so (__ioctl+8)\n"
	                    "  native: #01 pc 02  /l/libc.so (ioctl+8)\n"
	                    "  native: #02 pc 03  /v/libgpu.so (gpu_submit+8)\n"),
	        "main waits in gpu_submit", "waiting");
	says(MAIN("Native",
	             "  native: #00 pc 01  /l/libc.so (__ioctl+8)\n"
	             "  native: #01 pc 02  /l/libbinder.so "
	             "(android::IPCThreadState::talkWithDriver(bool)+8)\n"
	             "  native: #02 pc 03  /l/libbinder.so (android::BpBinder::transact(int)+8)\n"
	             "  native: #03 pc 04  /l/libcam.so (camera::Device::open()+8)\n"),
	        "main waits for another process in camera::Device::open()", "binder");
	/* a runnable thread that its native frames show to wait */
	says(MAIN("Runnable", "  native: #00 pc 01  /l/libc.so (syscall+8)\n"
	                      "  native: #01 pc 02  /l/libc.so (pthread_cond_wait+8)\n"
	                      "  native: #02 pc 03  /l/libx.so (Queue::take()+8)\n"),
	        "main waits in Queue::take()", "waiting");
	says(MAIN("Runnable", "  native: #00 pc 01  /l/libc.so (nanosleep+8)\n"
	                      "  at a.b.Nap.nap(Native method)\n"),
	        "main sleeps in Nap.nap", "sleeping");
}

static void test_kernel_wait_channels(void **state)
{
	static const struct {
		const char *channel, *verdict, *end;
	} cases[] = {
	        {"binder_thread_read",
	                "main waits for another process in the kernel's "
	                "binder_thread_read",
	                "binder"},
	        {"do_epoll_wait",
	                "main was idle when the dump was taken: the work that blocked it had ended",
	                "idle"},
	        {"wait_on_page_bit_common",
	                "main waits for input or output in the kernel's "
	                "wait_on_page_bit_common",
	                "io"},
	        {"0", "the report has no stack of the main thread", "no_stack"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[300];

		(void)snprintf(text, sizeof text,
		        "----- Waiting Channels: pid 7 at 2023-01-01 00:00:00 -----\nCmd line: "
		        "a.b\n"
		        "\nsysTid=7     state=D     %s\n\n----- end 7 -----\n",
		        cases[i].channel);
		says(text, cases[i].verdict, cases[i].end);
	}
}

/* A thread woken in Object.wait waits for its lock: "locked" in its stack is from before. */
static void test_a_lock_wanted_back_is_not_held(void **state)
{
	(void)state;
	says("\"main\" prio=5 tid=1 Blocked\n  at a.b.Screen.draw(Screen.java:1)\n"
	     "  - waiting to lock <0x01> (a a.b.Store)\n\n"
	     "\"w\" prio=5 tid=2 Blocked\n  at java.lang.Object.wait(Native method)\n"
	     "  - waiting to lock <0x01> (a a.b.Store)\n  at a.b.W.w(W.java:1)\n"
	     "  - locked <0x01> (a a.b.Store)\n\n"
	     "\"h\" prio=5 tid=3 Runnable\n  at a.b.H.h(H.java:1)\n  - locked <0x01> (a "
	     "a.b.Store)\n",
	        "main waits for a lock of Store held by h, which runs H.h", "running");
}

/* --- forms of reports --- */

static void test_dalvik(void **state)
{
	static const char text[] =
	        "----- pid 701 at 2013-01-02 03:04:05 -----\nCmd line: a.b\n\nDALVIK THREADS:\n"
	        "(mutexes: tll=0 tsl=0 tscl=0 ghl=0 hwl=0 hwll=0)\n\n"
	        "\"main\" prio=5 tid=1 MONITOR\n"
	        "  | group=\"main\" sCount=1 dsCount=0 obj=0x4001f1a8 self=0xce60\n"
	        "  | sysTid=701 nice=0 sched=0/0 cgrp=apps handle=-1216532416\n"
	        "  | schedstat=( 12 34 5 )\n"
	        "  at a.b.Main.go(Main.java:~43)\n"
	        "  - waiting to lock <0x41b5> (a a.b.L) held by tid=12 (Thread-112)\n"
	        "  at dalvik.system.NativeStart.main(Native Method)\n\n"
	        "\"Thread-112\" prio=5 tid=12 TIMED_WAIT\n"
	        "  | sysTid=712 nice=0 sched=0/0 cgrp=apps handle=-1216532410\n"
	        "  #00  pc 00020418  /system/lib/libc.so (__ioctl+8)\n"
	        "  at java.lang.VMThread.sleep(Native Method)\n"
	        "  at java.lang.Thread.sleep(Thread.java:1031)\n"
	        "  at a.b.T.run(T.java:9)\n"
	        "  - locked <0x41b5> (a a.b.L)\n\n----- end 701 -----\n";
	struct anr_report r = anr_read_text(text);

	(void)state;
	assert_string_equal(anr_word(r.doc, "end"), "sleeping");
	assert_string_equal(anr_word(anr_thread(&r, 0), "state"), "MONITOR");
	assert_int_equal(anr_number(json_object_get(anr_thread(&r, 0), "wants"), "holder"), 1);
	assert_int_equal(anr_number(anr_thread(&r, 0), "queue_ns"), 34);
	assert_int_equal(anr_count(anr_thread(&r, 1), "frames"), 4);
	assert_int_equal(event_log_repairs(&r.log), 0);
	anr_done(&r);
}

static void test_play_console(void **state)
{
	static const char text[] =
	        "Input dispatching timed out (Waited 5000ms)\n\n"
	        "\"main\" tid=1 Blocked\n"
	        "  #00  pc 0x00000000000a7ff8  /apex/lib64/bionic/libc.so (syscall+32)\n"
	        "  at a.b.Main.go (Main.java:43)\n"
	        "  - waiting to lock <0x0b> (a a.b.L) held by thread 12\n"
	        "  at android.os.Handler.handleCallback (Handler.java:958)\n\n"
	        "\"worker\" tid=12 Waiting\n"
	        "  at java.lang.Object.wait (Native method)\n"
	        "  at a.b.T.run (T.java:9)\n";
	struct anr_report r = anr_read_text(text);

	(void)state;
	assert_string_equal(anr_word(r.doc, "verdict"),
	        "main waits for a lock of L held by worker, which waits in T.run");
	assert_int_equal(anr_number(anr_thread(&r, 0), "track"), 1);
	assert_int_equal(anr_number(anr_thread(&r, 1), "track"), 12);
	anr_done(&r);
}

/* Pages of the console of some years wrote the head of each thread twice, with no blank lines. */
static void test_heads_reported_twice(void **state)
{
	struct anr_report r =
	        anr_read_text("\"main\" tid=1 Blocked \n\"main\" prio=5 tid=1 Blocked\n"
	                      "  | sysTid=16352 nice=-4 cgrp=default\n"
	                      "  at a.b.Main.go (Main.java:1)\n"
	                      "- waiting to lock <0x0b> (a a.b.L) held by thread 3\n"
	                      "\"Worker\" tid=3 Waiting \n"
	                      "\"Worker\" daemon prio=5 tid=3 Waiting\n"
	                      "  at java.lang.Object.wait! (Native method)\n"
	                      "- waiting on <0x0c> (a a.b.Q)\n"
	                      "  at a.b.T.run (T.java:9)\n"
	                      "- locked <0x0c> (a a.b.Q)\n- locked <0x0b> (a a.b.L)\n");

	(void)state;
	assert_int_equal(anr_count(r.doc, "processes"), 1);
	assert_int_equal(anr_count(anr_process(&r, 0), "threads"), 2);
	assert_int_equal(anr_number(anr_thread(&r, 0), "sys_tid"), 16352);
	assert_true(json_is_true(json_object_get(anr_thread(&r, 1), "daemon")));
	assert_string_equal(anr_word(r.doc, "verdict"),
	        "main waits for a lock of L held by Worker, which waits in T.run");
	anr_done(&r);
}

/* Names are whatever an application gave: quotes, line breaks, any script, and what Java's own
 * UTF-8 makes of characters beyond the first 65,536. */
static void test_names_of_threads(void **state)
{
	struct anr_report r = anr_read_text(
	        "\"main\" prio=5 tid=1 Native\n  at a.b.M.m(M.java:1)\n\n"
	        "\"\xE7\xBD\x91\xE7\xBB\x9C\xE7\xBA\xBF\xE7\xA8\x8B-1\" daemon prio=5 tid=2 "
	        "Waiting\n  at a.b.N.n(N.java:1)\n\n"
	        "\"say \"hi\" prio=1 tid=9\" prio=5 tid=3 Waiting\n"
	        "  at a.b.O.o(O.java:1)\n\n"
	        "\"first\nsecond\" prio=5 tid=4 Waiting\n  at a.b.P.p(P.java:1)\n\n"
	        "\"\xED\xA0\xBD\xED\xB8\x80\" prio=5 tid=5 Waiting\n"
	        "  at a.b.Q.q(Q.java:1)\n\n"
	        "\"half a head\n  at a.b.R.r(R.java:1)\n");

	(void)state;
	assert_int_equal(anr_count(anr_process(&r, 0), "threads"), 5);
	assert_string_equal(anr_word(anr_thread(&r, 1), "name"),
	        "\xE7\xBD\x91\xE7\xBB\x9C\xE7\xBA\xBF\xE7\xA8\x8B-1");
	assert_string_equal(anr_word(anr_thread(&r, 2), "name"), "say \"hi\" prio=1 tid=9");
	assert_string_equal(anr_word(anr_thread(&r, 3), "name"), "second");
	assert_int_equal(anr_number(anr_thread(&r, 3), "tid"), 4);
	assert_string_equal(anr_word(anr_thread(&r, 4), "name"), "\xF0\x9F\x98\x80");
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(anr_count(anr_thread(&r, i), "frames"), 1);
	anr_done(&r);
}

static void test_crashlytics(void **state)
{
	struct anr_report r =
	        anr_read_text("# Crashlytics - Stack trace\n# Platform: android\n\n"
	                      "main (native):tid=1 systid=31211 \n"
	                      "#00 pc 0xc4188 libc.so (__epoll_pwait + 8) (BuildId: ab)\n"
	                      "at android.os.MessageQueue.nativePollOnce(Native method)\n\n"
	                      "Thread-4 (timed waiting):tid=25 systid=31300\n"
	                      "at java.lang.Thread.sleep(Native method)\n");

	(void)state;
	assert_string_equal(anr_word(r.doc, "end"), "idle");
	assert_string_equal(anr_word(anr_thread(&r, 1), "name"), "Thread-4");
	assert_int_equal(anr_number(anr_thread(&r, 1), "sys_tid"), 31300);
	anr_done(&r);
}

static void test_anr_watchdog(void **state)
{
	static const char text[] =
	        "com.github.anrwatchdog.ANRError: Application Not Responding for at least 5000 "
	        "ms.\n"
	        "Caused by: com.github.anrwatchdog.ANRError$$$_Thread: main (state = BLOCKED)\n"
	        "\tat a.b.Main.go(Main.java:43)\n"
	        "\tat android.os.Looper.loop(Looper.java:1)\n"
	        "Caused by: com.github.anrwatchdog.ANRError$$$_Thread: Thread-5 (state = "
	        "RUNNABLE)\n"
	        "\tat a.b.T.run(T.java:9)\n"
	        "\t... 3 more\n";
	struct anr_report r = anr_read_text(text);

	(void)state;
	assert_string_equal(anr_word(r.doc, "kind"), "watchdog");
	assert_int_equal(anr_number(r.doc, "waited_ms"), 5000);
	assert_int_equal(anr_count(r.doc, "processes"), 1);
	assert_int_equal(anr_count(anr_process(&r, 0), "threads"), 2);
	assert_string_equal(anr_word(anr_thread(&r, 0), "state"), "BLOCKED");
	assert_string_equal(anr_word(anr_thread(&r, 1), "name"), "Thread-5");
	anr_done(&r);
}

static void test_system_watchdog(void **state)
{
	struct anr_report r = anr_read_text(
	        "05-27 15:09:02.105  1000  1001 W Watchdog: *** WATCHDOG KILLING SYSTEM PROCESS: "
	        "Blocked in handler on main thread (main)\n"
	        "05-27 15:09:02.105  1000  1001 W Watchdog: main thread stack trace:\n"
	        "05-27 15:09:02.105  1000  1001 W Watchdog:     at a.b.Main.go(Main.java:43)\n"
	        "05-27 15:09:02.105  1000  1001 W Watchdog: *** GOODBYE!\n");

	(void)state;
	assert_string_equal(anr_word(r.doc, "kind"), "watchdog");
	assert_string_equal(anr_word(anr_process(&r, 0), "verdict"), "main runs Main.go");
	anr_done(&r);
}

#define LOOK(time, frame)                                                                          \
	"stack = 01-12 10:10:" time "\r\n\r\n" frame "\r\na.b.Main.go(Main.java:1)\r\n\r\n"

static void test_dumps_at_intervals(void **state)
{
	struct anr_report r = anr_read_text(LOOK("10.000", "a.b.Io.read(Io.java:1)") LOOK(
	        "10.300", "a.b.Io.read(Io.java:2)") LOOK("10.600", "a.b.Draw.it(Draw.java:1)")
	                LOOK("10.900", "a.b.Io.read(Io.java:2)"));

	(void)state;
	assert_string_equal(
	        anr_word(r.doc, "verdict"), "main was in Io.read in 3 of 4 samples over 0.9 s");
	assert_true(json_is_true(json_object_get(r.doc, "sampled")));
	assert_int_equal(anr_count(r.doc, "processes"), 4);
	assert_int_equal(anr_number(anr_process(&r, 3), "at_ns"), 900000000);
	assert_non_null(strstr((const char *)r.log.names.data, "source 2 samples 300000000\n"));
	/* go once over all; read, it, read: the first two samples of read are one call */
	assert_int_equal(r.log.n, 8);
	assert_int_equal(r.log.events[r.log.n - 1].ts_ns, 1200000000);
	anr_done(&r);
}

static void test_waiting_channels_only(void **state)
{
	struct anr_report r =
	        anr_read_text("----- Waiting Channels: pid 7 at 2023-01-01 00:00:00 -----\n"
	                      "Cmd line: a.b\n\nsysTid=7     futex_wait\nsysTid=9     0\n\n"
	                      "----- end 7 -----\n");

	(void)state;
	assert_int_equal(anr_count(anr_process(&r, 0), "threads"), 2);
	assert_string_equal(anr_word(anr_thread(&r, 0), "channel"), "futex_wait");
	assert_string_equal(anr_word(r.doc, "end"), "waiting");
	assert_string_equal(anr_word(r.doc, "verdict"), "main waits in the kernel's futex_wait");
	assert_int_equal(r.log.n, 0);
	anr_done(&r);
	/* listed twice, within the list and by a second one */
	r = anr_read_text("----- Waiting Channels: pid 7 at 2023-01-01 00:00:00 -----\n"
	                  "Cmd line: a.b\n\nsysTid=7     futex_wait\nsysTid=9     0\n"
	                  "sysTid=9     0\n\n----- end 7 -----\n"
	                  "----- Waiting Channels: pid 7 at 2023-01-01 00:00:01 -----\n"
	                  "Cmd line: a.b\n\nsysTid=7     futex_wait\nsysTid=9     0\n\n"
	                  "----- end 7 -----\n");
	assert_int_equal(anr_count(r.doc, "processes"), 1);
	assert_int_equal(anr_count(anr_process(&r, 0), "threads"), 2);
	anr_done(&r);
}

#define DUMP(pid, time, frame)                                                                     \
	"----- pid " pid " at 2024-01-01 00:00:" time " -----\n\"main\" prio=5 tid=1 Runnable\n"   \
	"  | sysTid=" pid " nice=0 cgrp=x\n  at " frame "(X.java:1)\n\n----- end " pid " -----\n"

static void test_several_processes(void **state)
{
	struct anr_report r = anr_read_text("----- dumping pid: 20 at 5\n" DUMP("10", "01", "a.A.a")
	                DUMP("20", "02", "b.B.b") DUMP("10", "03.5", "c.C.c"));

	(void)state;
	assert_int_equal(anr_count(r.doc, "processes"), 3);
	assert_int_equal(anr_number(r.doc, "blamed"), 1);
	assert_string_equal(anr_word(r.doc, "verdict"), "main runs B.b");
	assert_int_equal(anr_number(anr_process(&r, 2), "at_ns"), 2500000000);
	assert_int_equal(r.log.clock.pid, 20);
	assert_int_equal(r.log.counts[TW_REPAIR_input_truncated], 0);
	anr_done(&r);
}

/* If no line names the dumped process, the name or id in the report's head identifies it. */
static void test_who_is_blamed(void **state)
{
	static const char *const heads[] = {"ANR in com.app (com.app/.Main)\nPID: 99\n",
	        "PID: 20\n", "Process: com.app\n",
	        "Subject: Input dispatching timed out (7d1 com.app/com.app.Main (server) is not "
	        "responding. Waited 5001ms)\n",
	        "Subject: executing service com.app/.Sync\n"};

	(void)state;
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		char text[1024];
		struct anr_report r;

		(void)snprintf(text, sizeof text,
		        "%s----- pid 10 at 2024-01-01 00:00:01 -----\nCmd line: com.app:remote\n"
		        "\"main\" prio=5 tid=1 Runnable\n  at a.A.a(X.java:1)\n\n"
		        "----- end 10 -----\n----- pid 20 at 2024-01-01 00:00:01 -----\n"
		        "Cmd line: com.app\n\"main\" prio=5 tid=1 Runnable\n"
		        "  at b.B.b(X.java:1)\n\n----- end 20 -----\n",
		        heads[i]);
		r = anr_read_text(text);
		assert_int_equal(anr_number(r.doc, "blamed"), 1);
		assert_string_equal(anr_word(r.doc, "end"), "running");
		assert_int_equal(r.log.clock.pid, 20);
		anr_done(&r);
	}
}

/* Threads that the head counts, stacks that could not be taken, a process without its end. */
static void test_holes(void **state)
{
	struct anr_report r = anr_read_text(
	        "----- pid 10 at 2024-01-01 00:00:01 -----\nDALVIK THREADS (3):\n"
	        "\"main\" prio=5 tid=1 Native\n  native: (Unwind failed for thread 10: x)\n"
	        "  at a.A.a(X.java:1)\n\n\"b\" prio=5 tid=2 Runnable\n"
	        "Not able to dump stack of thread that isn't suspended\n\n"
	        "----- pid 20 at 2024-01-01 00:00:02 -----\nDALVIK THREADS (1):\n"
	        "\"main\" prio=5 tid=1 Runnable\n  at a.A.a(X.java:1)\n\n----- end 20 -----\n");

	(void)state;
	assert_int_equal(r.log.counts[TW_REPAIR_records_missing], 1);
	assert_int_equal(r.log.counts[TW_REPAIR_sample_failed], 2);
	assert_int_equal(r.log.counts[TW_REPAIR_end_mark_missing], 1);
	anr_done(&r);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdict_of_a_holder),
        cmocka_unit_test(test_verdict_of_a_chain),
        cmocka_unit_test(test_verdict_of_a_deadlock),
        cmocka_unit_test(test_verdict_of_main_alone),
        cmocka_unit_test(test_rings),
        cmocka_unit_test(test_a_long_chain),
        cmocka_unit_test(test_what_main_does),
        cmocka_unit_test(test_native_waits),
        cmocka_unit_test(test_kernel_wait_channels),
        cmocka_unit_test(test_a_lock_wanted_back_is_not_held),
        cmocka_unit_test(test_heads_reported_twice),
        cmocka_unit_test(test_names_of_threads),
        cmocka_unit_test(test_dalvik),
        cmocka_unit_test(test_play_console),
        cmocka_unit_test(test_crashlytics),
        cmocka_unit_test(test_anr_watchdog),
        cmocka_unit_test(test_system_watchdog),
        cmocka_unit_test(test_dumps_at_intervals),
        cmocka_unit_test(test_waiting_channels_only),
        cmocka_unit_test(test_several_processes),
        cmocka_unit_test(test_who_is_blamed),
        cmocka_unit_test(test_holes),
};

UNIT_TESTS("anr", tests)
