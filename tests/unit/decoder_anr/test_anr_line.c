/* Each shape of line that ANR reports have, Dalvik to Android 15. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "decoder/formats/anr/anr_line.h"
#include "decoder/formats/anr/anr_markup.h"
#include "decoder/formats/anr/anr_scan.h"
#include "tests/unit/unit.h"

static struct tw_anr_line parse(const char *line)
{
	return tw_anr_line_parse(tw_str_of(line));
}

static void is(struct tw_str s, const char *want)
{
	char got[300];

	assert_true(s.len < sizeof got);
	memcpy(got, s.len ? s.ptr : "", s.len);
	got[s.len] = '\0';
	assert_string_equal(got, want);
}

static void is_thread(const char *line, const char *name, const char *state, uint64_t tid)
{
	struct tw_anr_line l = parse(line);

	assert_int_equal(l.kind, TW_ANR_THREAD);
	is(l.name, name);
	is(l.text, state);
	assert_int_equal(l.tid, tid);
}

static void test_threads(void **state)
{
	(void)state;
	is_thread("\"main\" prio=5 tid=1 Blocked", "main", "Blocked", 1);
	is_thread("\"a \"b\" c\" daemon prio=10 tid=6 Runnable", "a \"b\" c", "Runnable", 6);
	is_thread("\"x\" prio=10 tid=7 Native (still starting up)", "x", "Native", 7);
	is_thread("\"x\" prio=10 tid=7 Native DisableFlipCount = 1", "x", "Native", 7);
	is_thread("\"main\" tid=1 Native", "main", "Native", 1);
	is_thread("\"\" prio=5 tid=3 TIMED_WAIT", "", "TIMED_WAIT", 3);
	is_thread("main (timed waiting):tid=1 systid=31211 ", "main", "timed waiting", 1);
	is_thread("pool (x) (native):tid=9", "pool (x)", "native", 9);
	is_thread("\"surfaceflinger\" sysTid=900", "surfaceflinger", "", 0);
	is_thread("05-27 15:09:02.105  4242  4243 I art     : \"main\" prio=5 tid=1 Native", "main",
	        "Native", 1);
	is_thread("I/art: \"main\" prio=5 tid=1 Native", "main", "Native", 1);
	is_thread("05-27 15:09:02.105 I/dalvikvm( 123): \"main\" prio=5 tid=1 NATIVE", "main",
	        "NATIVE", 1);
	assert_true(parse("\"a\" daemon prio=-2 tid=6 Runnable").daemon);
	assert_int_equal(parse("\"a\" daemon prio=-2 tid=6 Runnable").priority, -2);
	assert_true(parse("\"x\" prio=10 tid=7 Native (still starting up)").starting);
	assert_false(parse("\"binder:1_3\" prio=5 (not attached)").attached);
	assert_int_equal(parse("\"binder:1_3\" prio=5 (not attached)").kind, TW_ANR_THREAD);
	assert_int_equal(parse("main (native):tid=1 systid=31211").sys_tid, 31211);
	is(parse("\"binder:1_3\" prio=5 (not attached)").text, "");
	assert_int_equal(parse("\"key\": \"value\"").kind, TW_ANR_OTHER);
	assert_int_equal(parse("\"").kind, TW_ANR_OTHER);
	assert_int_equal(parse("\"main\"").kind, TW_ANR_OTHER);
	assert_int_equal(parse("\"main\" is a name").kind, TW_ANR_OTHER);
}

static void test_attributes(void **state)
{
	struct tw_anr_line l =
	        parse("  | sysTid=5645 nice=-10 cgrp=top-app sched=0/0 handle=0x6fce9a94f8");

	(void)state;
	assert_int_equal(l.kind, TW_ANR_IDS);
	assert_int_equal(l.sys_tid, 5645);
	assert_int_equal(l.nice, -10);
	l = parse("  | state=S schedstat=( 324804784 183300334 997 ) utm=48 stm=10 core=2 HZ=100");
	assert_int_equal(l.kind, TW_ANR_TIMES);
	is(l.text, "S");
	assert_int_equal(l.run_ns, 324804784);
	assert_int_equal(l.queue_ns, 183300334);
	assert_int_equal(l.user_ticks, 48);
	assert_int_equal(l.kernel_ticks, 10);
	l = parse("  | schedstat=( 12 34 5 )");
	assert_int_equal(l.kind, TW_ANR_TIMES);
	assert_int_equal(l.run_ns, 12);
	assert_int_equal(
	        parse("  | held mutexes= \"mutator lock\"(shared held)").kind, TW_ANR_ATTRIBUTE);
}

static void is_frame(const char *line, enum tw_anr_kind kind, const char *name, const char *where)
{
	struct tw_anr_line l = parse(line);

	assert_int_equal(l.kind, kind);
	is(l.name, name);
	is(l.text, where);
}

static void test_java_frames(void **state)
{
	(void)state;
	is_frame("  at a.b.C.<init>(C.java:12)", TW_ANR_AT, "a.b.C.<init>", "C.java:12");
	is_frame("\tat a.b.C.m(Native Method)", TW_ANR_AT, "a.b.C.m", "Native Method");
	is_frame("  at a.B.c(B.java:~12)", TW_ANR_AT, "a.B.c", "B.java:~12");
	is_frame("at a.B.c (B.java:12)", TW_ANR_AT, "a.B.c", "B.java:12");
	is_frame("  at a.B.c(unavailable:8)", TW_ANR_AT, "a.B.c", "unavailable:8");
	is_frame("  at a.B.lambda$c$0$a-B", TW_ANR_AT, "a.B.lambda$c$0$a-B", "");
	is_frame("  at java.base@17/java.lang.Thread.run(Thread.java:1)", TW_ANR_AT,
	        "java.lang.Thread.run", "Thread.java:1");
	is_frame("  at java.lang.Object.wait!(Native method)", TW_ANR_AT, "java.lang.Object.wait",
	        "Native method");
	is_frame("a.B.c(B.java:12)", TW_ANR_BARE_AT, "a.B.c", "B.java:12");
	assert_int_equal(parse("  at least").kind, TW_ANR_OTHER);
	assert_int_equal(parse("  at (x)").kind, TW_ANR_OTHER);
}

static void test_native_frames(void **state)
{
	(void)state;
	is_frame("  native: #00 pc 000000000053a6e0  /apex/lib64/libart.so "
	         "(art::Dump(std::ostream&, int)+128) (BuildId: e24a)",
	        TW_ANR_NATIVE, "art::Dump(std::ostream&, int)", "libart.so");
	is_frame("  native: #100 pc 0a  /data/x.apk!libfoo.so (offset 1a000) (f+4)", TW_ANR_NATIVE,
	        "f", "libfoo.so");
	is_frame("  #00  pc 00020418  /system/lib/libc.so (__ioctl+8)", TW_ANR_NATIVE, "__ioctl",
	        "libc.so");
	is_frame("#00 pc 0xc4188 libc.so (__epoll_pwait + 8) (BuildId: ab)", TW_ANR_NATIVE,
	        "__epoll_pwait", "libc.so");
	is_frame("    #00 pc 0000  /lib/libx.so (deleted) (g+1)", TW_ANR_NATIVE, "g", "libx.so");
	is_frame("  native: #01 pc 1d840  /system/lib64/libsqlite.so (?\?\?) (BuildId: 5)",
	        TW_ANR_NATIVE, "", "libsqlite.so");
	is_frame("  #00 pc 1 /x.so ( 12)", TW_ANR_NATIVE, "", "x.so");
	is_frame("  native: #01 pc 1d840  ???", TW_ANR_NATIVE, "", "???");
	is_frame("  kernel: futex_wait+0x90/0xa4", TW_ANR_KERNEL, "futex_wait", "");
	assert_int_equal(parse("  native: #01 pc 1d840  /a.so").number, 0x1d840);
	is(parse("  native: #01 pc 1d840  /a.so").build_id, "");
	is(parse("  native: #01 pc 1d840  /a.so (BuildId: 5eAb)").build_id, "5eAb");
	is(parse("  #01 pc 1d840  /a.so (f(int)+4) (BuildId: 5eab)").build_id, "5eab");
	is(parse("  #01 pc 1d840  /a.so (f+4) (BuildId: 5eab").build_id, "5eab");
	assert_int_equal(parse("  native: (Unwind failed for thread 1: x)").kind, TW_ANR_FAILED);
	assert_int_equal(
	        parse("  kernel: (couldn't read /proc/self/task/1/stack)").kind, TW_ANR_REMARK);
	assert_int_equal(parse("  (no managed stack frames)").kind, TW_ANR_REMARK);
	assert_int_equal(parse("#0 dalvik.system.PathClassLoader: []").kind, TW_ANR_REMARK);
}

static void is_lock(
        const char *line, enum tw_anr_how how, uint64_t object, uint64_t holder, const char *type)
{
	struct tw_anr_line l = parse(line);

	assert_int_equal(l.kind, TW_ANR_LOCK);
	assert_int_equal(l.how, how);
	assert_int_equal(l.object, object);
	assert_int_equal(l.holder, holder);
	is(l.text, type);
}

static void test_locks(void **state)
{
	(void)state;
	is_lock("  - waiting to lock <0x0d3a2f0a> (a java.lang.Object) held by thread 5",
	        TW_ANR_WANTED, 0x0d3a2f0a, 5, "java.lang.Object");
	is_lock("  - waiting to lock <0x41> (a T) held by tid=12 (Thread-112)", TW_ANR_WANTED, 0x41,
	        12, "T");
	is_lock("  - waiting to lock <0x41> (a T)", TW_ANR_WANTED, 0x41, 0, "T");
	is_lock("  - waiting for lock inflation of <0x41> (a T)", TW_ANR_INFLATION, 0x41, 0, "T");
	is_lock("  - locked <0x1> (a java.lang.Class<a.B>)", TW_ANR_LOCKED, 1, 0,
	        "java.lang.Class<a.B>");
	is_lock("  - waiting on <0x2> (a T)", TW_ANR_WAITING, 2, 0, "T");
	is_lock("  - sleeping on <0x2> (a T)", TW_ANR_SLEEPING, 2, 0, "T");
	is_lock("  - locked <@addr=0x2> (a T)", TW_ANR_LOCKED, 2 | TW_ANR_ADDRESS, 0, "T");
	is_lock("\t- parking to wait for  <0x00000007> (a T$Sync)", TW_ANR_WAITING, 7, 0, "T$Sync");
	is_lock("- waiting on <0x425c> (a T) held by tid=14 (AsyncTask #1)", TW_ANR_WAITING, 0x425c,
	        14, "T");
	assert_int_equal(parse("  - waiting to lock an unknown object").kind, TW_ANR_NO_LOCK);
	assert_int_equal(parse("  - waiting on an unknown object").kind, TW_ANR_NO_LOCK);
	assert_int_equal(parse("  - locked <zz> (a T)").kind, TW_ANR_REMARK);
	assert_int_equal(parse("  - something else").kind, TW_ANR_REMARK);
}

static void test_heads(void **state)
{
	struct tw_anr_line l = parse("----- pid 28941 at 2023-04-04 22:06:31.064728684+0200 -----");

	(void)state;
	assert_int_equal(l.kind, TW_ANR_PROCESS);
	assert_int_equal(l.pid, 28941);
	assert_int_equal(l.at_ns % 1000000000, 64728684);
	assert_int_equal(parse("----- pid 1 at 2013-01-02 03:04:05 -----").kind, TW_ANR_PROCESS);
	assert_int_equal(parse("----- Waiting Channels: pid 7 at 2013-01-02 03:04:05 -----").kind,
	        TW_ANR_CHANNELS);
	assert_int_equal(parse("----- end 7 -----").kind, TW_ANR_END);
	assert_int_equal(parse("----- dumping pid: 7 at 8123").pid, 7);
	assert_int_equal(parse("DALVIK THREADS (29):").kind, TW_ANR_THREADS);
	assert_int_equal(parse("  ... repeated 12 times").number, 12);
	l = parse("sysTid=28941     state=S futex_wait_queue_me");
	assert_int_equal(l.kind, TW_ANR_CHANNEL);
	is(l.text, "futex_wait_queue_me");
	l = parse("Subject: Broadcast of Intent { act=x }");
	assert_int_equal(l.fact, TW_ANR_FACT_subject);
	is(l.text, "Broadcast of Intent { act=x }");
	is(parse("ABI: 'arm64'").text, "arm64");
	is(parse("ABI: arm64").text, "arm64");
	assert_int_equal(parse("  45% 12/com.a: 30% user").kind, TW_ANR_LOAD);
	assert_int_equal(parse("0.5% TOTAL: 1% user").kind, TW_ANR_LOAD);
	assert_int_equal(parse("----- end").kind, TW_ANR_OTHER);
	assert_int_equal(parse("").kind, TW_ANR_BLANK);
	assert_int_equal(parse(" \t ").kind, TW_ANR_BLANK);
}

static void test_watchdogs(void **state)
{
	struct tw_anr_line l = parse("com.github.anrwatchdog.ANRError: Application Not Responding");

	(void)state;
	assert_int_equal(l.kind, TW_ANR_EXCEPTION);
	assert_int_equal(l.number, 1);
	assert_int_equal(parse("java.lang.RuntimeException: ANR detected").number, 1);
	assert_int_equal(parse("java.lang.RuntimeException: no").number, 0);
	l = parse(
	        "Caused by: com.github.anrwatchdog.ANRError$$$_Thread: Thread-5 (state = BLOCKED)");
	assert_int_equal(l.kind, TW_ANR_CAUSE);
	is(l.name, "Thread-5");
	is(l.text, "BLOCKED");
	assert_int_equal(parse("Caused by: java.io.IOException: x").name.len, 0);
	l = parse("05-27 15:09:02.105  1000  1001 W Watchdog: main thread stack trace:");
	assert_int_equal(l.kind, TW_ANR_STACK_OF);
	is(l.name, "main");
	assert_true(l.at_ns > 0);
	assert_int_equal(parse("stack = 01-12 10:10:10.400").kind, TW_ANR_MOMENT);
	assert_int_equal(parse("[2024-01-12 10:10:10.400]").kind, TW_ANR_MOMENT);
	assert_int_equal(parse("time-start = 01-12 10:10:10.400").kind, TW_ANR_OTHER);
}

static int64_t date(const char *text)
{
	struct tw_str s = tw_str_of(text);
	int64_t ns = -1;

	return tw_anr_eat_date(&s, &ns) ? ns : -1;
}

static void test_dates(void **state)
{
	const int64_t day = INT64_C(86400000000000);

	(void)state;
	assert_true(date("2000-01-01 00:00:00") >= 0);
	assert_int_equal(date("2024-03-01 00:00:00") - date("2024-02-28 00:00:00"), 2 * day);
	assert_int_equal(date("2023-03-01 00:00:00") - date("2023-02-28 00:00:00"), day);
	assert_int_equal(date("2100-03-01 00:00:00") - date("2100-02-28 00:00:00"), day);
	assert_int_equal(date("2024-01-01 00:00:00") - date("2023-12-31 23:59:59"), 1000000000);
	assert_int_equal(date("2024-01-01 00:00:00.25") - date("2024-01-01 00:00:00"), 250000000);
	assert_int_equal(date("01-02 00:00:00") - date("01-01 00:00:00"), day);
	assert_int_equal(date("2024-13-01 00:00:00"), -1);
	assert_int_equal(date("2024-00-01 00:00:00"), -1);
	assert_int_equal(date("1999-01-01 00:00:00"), -1);
	assert_int_equal(date("2024-01-01 24:00:00"), -1);
	assert_int_equal(date("2024-01-01T00:00:00"), -1);
	assert_int_equal(date("01-01"), -1);
}

static void test_scan(void **state)
{
	struct tw_str s = TW_STR("18446744073709551616");
	uint64_t v;
	int32_t i;

	(void)state;
	assert_false(tw_anr_eat_number(&s, &v));
	assert_int_equal(s.len, 20);
	s = TW_STR("0xfFg");
	assert_true(tw_anr_eat_hex(&s, &v));
	assert_int_equal(v, 255);
	s = TW_STR("0x");
	assert_false(tw_anr_eat_hex(&s, &v));
	s = TW_STR("-2147483648");
	assert_false(tw_anr_eat_signed(&s, &i));
	s = TW_STR("-12 x");
	assert_true(tw_anr_eat_signed(&s, &i));
	assert_int_equal(i, -12);
	assert_int_equal(tw_anr_find(TW_STR("aab"), "ab"), 1);
	assert_int_equal(tw_anr_find(TW_STR("aab"), "abc"), 3);
	assert_int_equal(tw_anr_find_last(TW_STR("abab"), "ab"), 2);
	assert_int_equal(tw_anr_find_last(TW_STR(""), "ab"), 0);
	assert_true(tw_anr_number_after(TW_STR("a=1 b=2"), "b=", &v));
	assert_int_equal(v, 2);
	assert_false(tw_anr_number_after(TW_STR("a=1"), "b=", &v));
}

static void test_words(void **state)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_str rest = TW_STR("in \x01"
	                            "a.B.c\x03\x02"
	                            "a.B\x03.");
	enum tw_anr_part kind;
	struct tw_str part;

	(void)state;
	assert_string_equal(tw_anr_plain(a, rest.ptr), "in B.cB.");
	assert_string_equal(tw_anr_plain(a, ""), "");
	assert_string_equal(tw_anr_plain(a, "\x01"
	                                    "nodot"),
	        "nodot");
	assert_true(tw_anr_next_part(&rest, &part, &kind));
	assert_int_equal(kind, TW_ANR_PART_TEXT);
	is(part, "in ");
	assert_true(tw_anr_next_part(&rest, &part, &kind));
	assert_int_equal(kind, TW_ANR_PART_METHOD);
	is(part, "a.B.c");
	assert_true(tw_anr_next_part(&rest, &part, &kind));
	assert_int_equal(kind, TW_ANR_PART_CLASS);
	is(part, "a.B");
	assert_true(tw_anr_next_part(&rest, &part, &kind));
	is(part, ".");
	assert_false(tw_anr_next_part(&rest, &part, &kind));
	is(tw_anr_short(TW_STR("a.b.C.d"), TW_ANR_PART_METHOD), "C.d");
	is(tw_anr_short(TW_STR("C.d"), TW_ANR_PART_METHOD), "C.d");
	is(tw_anr_short(TW_STR("a.b.C"), TW_ANR_PART_CLASS), "C");
	is(tw_anr_short(TW_STR("a.b.C"), TW_ANR_PART_TEXT), "a.b.C");
	tw_arena_free(a);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_java_frames),
        cmocka_unit_test(test_native_frames),
        cmocka_unit_test(test_locks),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_watchdogs),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_words),
};

UNIT_TESTS("anr_line", tests)
