/* ANR documents with a mapping: a report with obfuscated names becomes the report of the original
 * code, and one without names to change is unchanged, byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/fleet/anr/anr_names.h"
#include "tests/unit/anr_fixture.h"
#include "tests/unit/native_fixture.h"
#include "tests/unit/unit.h"

static const char mapping[] =
        "com.shop.Cart -> a.b:\n"
        "# {\"id\":\"sourceFile\",\"fileName\":\"Cart.kt\"}\n"
        "    1:3:int total(int):10:12 -> c\n"
        "    4:6:void clear():20:22 -> c\n"
        "    7:7:void com.shop.Store.check():30:30 -> c\n"
        "    7:7:void clear():23 -> c\n"
        "    8:8:void left():40:40 -> c\n"
        "    9:9:void between():41:41 -> c\n"
        "    8:8:void right():42:42 -> c\n"
        "    void save() -> d\n"
        "com.shop.OrderDao -> a.d:\n"
        "    1:1:void insert():5:5 -> e\n"
        "    2:2:void insert():0:0 -> e\n"
        "# {\"id\":\"com.android.tools.r8.outlineCallsite\",\"positions\":{\"3\":1},"
        "\"outline\":\"La/o;f()V\"}\n"
        "com.shop.Outline -> a.o:\n"
        "    3:3:void taken() -> f\n"
        "# {\"id\":\"com.android.tools.r8.outline\"}\n"
        "com.shop.Store -> a.s:\n"
        "androidx.fragment.Manager -> a.x:\n"
        "    1:1:void dispatch():7:7 -> a\n";

struct image {
	struct tw_buf bytes;
	struct tw_retrace retrace;
};

static struct image compiled(const char *text)
{
	struct tw_retrace_writer *w = tw_retrace_writer_new(1 << 20);
	struct tw_retrace_stats stats;
	struct image m;

	tw_buf_init(&m.bytes, 1 << 20);
	assert_non_null(w);
	assert_int_equal(
	        tw_retrace_writer_push(w, (const uint8_t *)text, strlen(text), NULL), TW_OK);
	assert_int_equal(tw_retrace_writer_finish(w, &m.bytes, &stats, NULL), TW_OK);
	tw_retrace_writer_free(w);
	assert_int_equal(tw_retrace_open(m.bytes.data, m.bytes.len, &m.retrace, NULL), TW_OK);
	return m;
}

static json_t *named_by(const json_t *doc, const struct tw_names *by)
{
	struct tw_arena *a = tw_arena_new(64 << 20);
	char *text = json_dumps(doc, JSON_COMPACT);
	struct tw_str out = tw_anr_named(a, tw_str_of(text), by);
	json_t *got;

	assert_non_null(out.ptr);
	got = json_loadb(out.ptr, out.len, 0, NULL);
	assert_non_null(got);
	free(text);
	tw_arena_free(a);
	return got;
}

static json_t *named(const json_t *doc, const char *map)
{
	struct image m = compiled(map);
	json_t *got = named_by(doc, &(struct tw_names){.retrace = &m.retrace});

	tw_buf_done(&m.bytes);
	return got;
}

static json_t *document(const char *report)
{
	struct anr_report r = anr_read(report, strlen(report), NULL);
	json_t *doc = json_incref(r.doc);

	if (r.log.status != TW_OK)
		fail_msg("%s", r.log.err.msg);
	anr_done(&r);
	return doc;
}

/* The frames of a thread, one per line: "name(where)" and their kind. */
static void stack(const json_t *doc, size_t thread, const char *want)
{
	const json_t *p = json_array_get(json_object_get(doc, "processes"), 0);
	const json_t *t = json_array_get(json_object_get(p, "threads"), thread);
	const json_t *frames = json_object_get(t, "frames");
	char got[2048] = "";

	for (size_t i = 0; i < json_array_size(frames); i++) {
		const json_t *f = json_array_get(frames, i);
		const json_t *lock = json_array_get(json_object_get(f, "locks"), 0);
		size_t at = strlen(got);

		(void)snprintf(got + at, sizeof got - at, "%s(%s)%s%s%s\n", anr_word(f, "name"),
		        anr_word(f, "where"), json_object_get(f, "inlined") ? " inlined" : "",
		        lock ? " " : "", lock ? anr_word(lock, "how") : "");
	}
	assert_string_equal(got, want);
}

static void becomes(const char *frames, const char *want)
{
	char report[1024];
	json_t *doc;
	json_t *got;

	(void)snprintf(report, sizeof report, "\"main\" prio=5 tid=1 Runnable\n%s", frames);
	doc = document(report);
	got = named(doc, mapping);
	stack(got, 0, want);
	json_decref(doc);
	json_decref(got);
}

static void test_frames(void **state)
{
	(void)state;
	becomes("  at a.b.d(SourceFile:3)\n", "com.shop.Cart.save(Cart.kt:3)\n");
	/* a line selects one of several; without it all are returned */
	becomes("  at a.b.c(SourceFile:5)\n", "com.shop.Cart.clear(Cart.kt:21)\n");
	becomes("  at a.b.c(SourceFile:2)\n", "com.shop.Cart.total(Cart.kt:11)\n");
	becomes("  at a.b.c(unavailable:2)\n",
	        "com.shop.Cart.total | com.shop.Cart.clear | com.shop.Cart.left | "
	        "com.shop.Cart.between | com.shop.Cart.right(unavailable:2)\n");
	/* two that cover one line are both returned, none is guessed */
	becomes("  at a.b.c(SourceFile:8)\n",
	        "com.shop.Cart.left | com.shop.Cart.right(SourceFile:8)\n");
	/* an inlined method is a separate frame; the lock belongs to the containing method */
	becomes("  at a.b.c(SourceFile:7)\n  - locked <0x01> (a a.s)\n",
	        "com.shop.Store.check(Store.kt:30) inlined\ncom.shop.Cart.clear(Cart.kt:23) "
	        "locked\n");
	/* an outline is not a frame; its caller's line applies */
	becomes("  at a.o.f(SourceFile:3)\n  at a.d.e(SourceFile:2)\n",
	        "com.shop.OrderDao.insert(OrderDao.java:5)\n");
	/* a line of another mapping: the class, and the rest as it was */
	becomes("  at a.b.c(SourceFile:99)\n", "com.shop.Cart.c(Cart.kt:99)\n");
	becomes("  at a.b.z(SourceFile:1)\n  at a.b.z(Native method)\n",
	        "com.shop.Cart.z(Cart.kt:1)\ncom.shop.Cart.z(Native method)\n");
	becomes("  at x.y.z(SourceFile:1)\n  native: #00 pc 0001  /lib/a.so (a.b.d+4)\n",
	        "x.y.z(SourceFile:1)\na.b.d(a.so)\n");
}

#define ORIGINAL                                                                                   \
	"Subject: Input dispatching timed out (Waited 5008ms for MotionEvent)\n"                   \
	"----- pid 7 at 2024-01-12 10:00:00 -----\n"                                               \
	"\"main\" prio=5 tid=1 Blocked\n  | sysTid=7 nice=-10 cgrp=top-app\n"                      \
	"  at androidx.fragment.Manager.dispatch(Manager.java:7)\n"                                \
	"  - waiting to lock <0x01> (a com.shop.Store) held by thread 2\n"                         \
	"  at com.shop.Cart.total(Cart.kt:11)\n\n"                                                 \
	"\"w\" prio=5 tid=2 Sleeping\n  at java.lang.Thread.sleep(Native method)\n"                \
	"  - sleeping on <0x09> (a java.lang.Object)\n"                                            \
	"  at com.shop.Store.check(Store.kt:30)\n  at com.shop.Cart.clear(Cart.kt:23)\n"           \
	"  - locked <0x01> (a com.shop.Store)\n"                                                   \
	"  at com.shop.OrderDao.insert(OrderDao.java:5)\n\n"                                       \
	"\"l\" prio=5 tid=3 Blocked\n  at com.shop.Cart.total(Cart.kt:10)\n"                       \
	"  - waiting to lock <0x02> (a java.lang.Class<com.shop.Cart>) held by thread 4\n"         \
	"  - locked <0x03> (a com.shop.OrderDao)\n\n"                                              \
	"\"r\" prio=5 tid=4 Blocked\n  at com.shop.OrderDao.insert(OrderDao.java:5)\n"             \
	"  - waiting to lock <0x03> (a com.shop.OrderDao)\n"                                       \
	"  - locked <0x02> (a java.lang.Class<com.shop.Cart>)\n\n----- end 7 -----\n"
#define OBFUSCATED                                                                                 \
	"Subject: Input dispatching timed out (Waited 5008ms for MotionEvent)\n"                   \
	"----- pid 7 at 2024-01-12 10:00:00 -----\n"                                               \
	"\"main\" prio=5 tid=1 Blocked\n  | sysTid=7 nice=-10 cgrp=top-app\n"                      \
	"  at a.x.a(SourceFile:1)\n"                                                               \
	"  - waiting to lock <0x01> (a a.s) held by thread 2\n"                                    \
	"  at a.b.c(SourceFile:2)\n\n"                                                             \
	"\"w\" prio=5 tid=2 Sleeping\n  at java.lang.Thread.sleep(Native method)\n"                \
	"  - sleeping on <0x09> (a java.lang.Object)\n"                                            \
	"  at a.b.c(SourceFile:7)\n"                                                               \
	"  - locked <0x01> (a a.s)\n"                                                              \
	"  at a.d.e(SourceFile:1)\n\n"                                                             \
	"\"l\" prio=5 tid=3 Blocked\n  at a.b.c(SourceFile:1)\n"                                   \
	"  - waiting to lock <0x02> (a java.lang.Class<a.b>) held by thread 4\n"                   \
	"  - locked <0x03> (a a.d)\n\n"                                                            \
	"\"r\" prio=5 tid=4 Blocked\n  at a.d.e(SourceFile:1)\n"                                   \
	"  - waiting to lock <0x03> (a a.d)\n"                                                     \
	"  - locked <0x02> (a java.lang.Class<a.b>)\n\n----- end 7 -----\n"

/* The one mark that the original code's report does not have. */
static void forget_inlining(json_t *doc)
{
	json_t *p = json_array_get(json_object_get(doc, "processes"), 0);
	json_t *threads = json_object_get(p, "threads");

	for (size_t i = 0; i < json_array_size(threads); i++) {
		json_t *t = json_array_get(threads, i);
		json_t *frames = json_object_get(t, "frames");

		(void)json_object_del(json_object_get(t, "top"), "inlined");
		for (size_t k = 0; k < json_array_size(frames); k++)
			(void)json_object_del(json_array_get(frames, k), "inlined");
	}
	for (size_t i = 0; i < json_array_size(json_object_get(p, "chain")); i++) {
		json_t *step = json_array_get(json_object_get(p, "chain"), i);

		(void)json_object_del(json_object_get(step, "frame"), "inlined");
		(void)json_object_del(json_object_get(step, "app_frame"), "inlined");
	}
}

/* Whose frames are the application's, verdict, chain, cycles and cluster: all as if the report had
 * come from the code before R8. */
static void test_as_the_original(void **state)
{
	json_t *original = document(ORIGINAL);
	json_t *obfuscated = document(OBFUSCATED);
	json_t *got = named(obfuscated, mapping);
	char *want_text = json_dumps(original, JSON_INDENT(1));
	char *got_text;

	(void)state;
	assert_string_not_equal(anr_word(obfuscated, "cluster"), anr_word(original, "cluster"));
	assert_string_equal(anr_word(got, "cluster"), anr_word(original, "cluster"));
	assert_string_equal(anr_word(got, "verdict"),
	        "main waits 5 s for a lock of Store held by w, which sleeps in Store.check; also a "
	        "deadlock: l waits for the class lock of Cart held by r, which waits for a lock of "
	        "OrderDao held by l");
	forget_inlining(got);
	got_text = json_dumps(got, JSON_INDENT(1));
	assert_string_equal(got_text, want_text);
	free(got_text);
	free(want_text);
	json_decref(got);
	json_decref(obfuscated);
	json_decref(original);
}

/* Looks of a watchdog: the frame that main was in most often is counted by its original name. */
static void test_looks(void **state)
{
	static const char report[] =
	        "stack = 01-12 10:10:10.000\r\n\r\na.x.a(SourceFile:1)\r\na.b.c(SourceFile:1)"
	        "\r\n\r\n"
	        "stack = 01-12 10:10:10.500\r\n\r\na.b.c(SourceFile:2)\r\na.d.e(SourceFile:1)"
	        "\r\n\r\n"
	        "stack = 01-12 10:10:11.000\r\n\r\na.d.e(SourceFile:1)\r\nq.r.s(SourceFile:1)"
	        "\r\n\r\n";
	json_t *doc = document(report);
	json_t *got;

	(void)state;
	assert_true(json_is_true(json_object_get(doc, "sampled")));
	got = named(doc, mapping);
	assert_string_equal(
	        anr_word(got, "verdict"), "main was in Cart.total in 2 of 3 samples over 1.0 s");
	json_decref(got);
	json_decref(doc);
}

/* --- nothing to name --- */

static char *read_whole(const char *path, size_t *ret_n)
{
	FILE *f = fopen(path, "rb");
	char *text = tw_mem_alloc(1 << 20, 1);

	assert_non_null(text);
	*ret_n = f ? fread(text, 1, 1 << 20, f) : 0;
	if (f)
		(void)fclose(f);
	return text;
}

static void stays(const char *path)
{
	struct tw_arena *a = tw_arena_new(64 << 20);
	struct image m = compiled("no.Such -> no.Such:\n    void m() -> n\n");
	const struct tw_names by = {.retrace = &m.retrace};
	size_t n;
	char *text = read_whole(path, &n);
	struct anr_report r = anr_read(text, n, NULL);

	if (r.doc) {
		char *before = json_dumps(r.doc, JSON_COMPACT);
		struct tw_str after = tw_anr_named(a, tw_str_of(before), &by);

		assert_non_null(after.ptr);
		if (after.len != strlen(before) || memcmp(after.ptr, before, after.len) != 0)
			fail_msg("%s\n%s\n%s", path, before, after.ptr);
		free(before);
	}
	anr_done(&r);
	tw_mem_free(text);
	tw_buf_done(&m.bytes);
	tw_arena_free(a);
}

static unsigned stays_each(const char *folder, const char *file)
{
	struct dirent *e;
	unsigned n = 0;
	DIR *d = opendir(folder);

	while (d && (e = readdir(d))) {
		char full[1024];

		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(full, sizeof full, "%s/%s%s", folder, e->d_name, file);
		stays(full);
		n++;
	}
	if (d)
		(void)closedir(d);
	return n;
}

static void test_what_has_no_names_stays(void **state)
{
	(void)state;
	assert_in_range(stays_each(unit_source("tests/golden/anr"), "/input"), 4, 99);
	assert_in_range(stays_each(unit_source("tests/golden/anr_json"), "/input"), 4, 99);
}

static void test_what_has_no_names_stays_in_samples(void **state)
{
	(void)state;
	assert_in_range(stays_each(unit_sample("anr"), ""), 1, 99);
}

/* A frame without a function has its address, and its function once the library's symbols are
 * there. */
static void test_native_frames(void **state)
{
	static const char report[] =
	        "\"main\" prio=5 tid=1 Native\n"
	        "  native: #00 pc 0000000000000104  /data/lib/libshop.so (?\?\?) "
	        "(BuildId: " NATIVE_ID ")\n"
	        "  native: #01 pc 0000000000000204  /data/lib/libshop.so (BuildId: AABBCCDD)\n"
	        "  native: #02 pc 0000000000000204  /data/lib/libshop.so (known+4) "
	        "(BuildId: " NATIVE_ID ")\n"
	        "  native: #03 pc 0000000000000999  /data/lib/libshop.so (BuildId: " NATIVE_ID ")\n"
	        "  native: #04 pc 0000000000000104  /data/lib/libother.so (BuildId: 11223344)\n"
	        "  native: #05 pc 0000000000000104  /data/lib/libold.so\n"
	        "  at a.b.d(SourceFile:3)\n";
	struct image m = compiled(mapping);
	struct tw_buf symbols;
	const struct tw_native_map map = native_symbols(&symbols);
	const struct tw_natives natives = {&map, 1};
	json_t *doc = document(report);
	json_t *late = named_by(doc, &(struct tw_names){.natives = &natives});
	json_t *both =
	        named_by(doc, &(struct tw_names){.retrace = &m.retrace, .natives = &natives});
	json_t *again = named_by(late, &(struct tw_names){.retrace = &m.retrace});

	(void)state;
	stack(doc, 0,
	        "libshop.so+0x104(libshop.so)\nlibshop.so+0x204(libshop.so)\nknown(libshop.so)\n"
	        "libshop.so+0x999(libshop.so)\nlibother.so+0x104(libother.so)\nlibold.so+0x104("
	        "libold.so)\n"
	        "a.b.d(SourceFile:3)\n");
#define NAMED                                                                                      \
	"pay(libshop.so)\ntail(libshop.so)\nknown(libshop.so)\nlibshop.so+0x999(libshop.so)\n"     \
	"libother.so+0x104(libother.so)\nlibold.so+0x104(libold.so)\n"
	stack(late, 0, NAMED "a.b.d(SourceFile:3)\n");
	stack(both, 0, NAMED "com.shop.Cart.save(Cart.kt:3)\n");
	assert_true(json_equal(again, both));
	json_decref(doc);
	json_decref(late);
	json_decref(both);
	json_decref(again);
	tw_buf_done(&symbols);
	tw_buf_done(&m.bytes);
}

static void test_what_is_no_document(void **state)
{
	static const char *const texts[] = {"[1]", "{"};
	struct tw_arena *a = tw_arena_new(16 << 20);
	struct image m = compiled(mapping);
	const struct tw_names by = {.retrace = &m.retrace};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_true(
		        tw_str_eq(tw_anr_named(a, tw_str_of(texts[i]), &by), tw_str_of(texts[i])));
	/* members of other types are as if they were not there */
	assert_non_null(tw_anr_named(a,
	        TW_STR("{\"processes\":[7,null,{\"threads\":{}},{\"threads\":[7,{\"frames\":[7,{}],"
	               "\"wants\":7,\"held\":[7]}],\"pid\":-1}],\"loads\":[7],\"blamed\":99}"),
	        &by)
	                        .ptr);
	tw_buf_done(&m.bytes);
	tw_arena_free(a);
}

static void test_no_memory(void **state)
{
	json_t *doc = document(OBFUSCATED);
	char *text = json_dumps(doc, JSON_COMPACT);
	struct image m = compiled(mapping);
	const struct tw_names by = {.retrace = &m.retrace};
	struct tw_str got = {NULL, 0};
	uint64_t n = 0;

	(void)state;
	while (!got.ptr && ++n < 200) {
		struct tw_arena *a = tw_arena_new(16 << 20);

		assert_non_null(a);
		tw_mem_fail_at(n);
		got = tw_anr_named(a, tw_str_of(text), &by);
		tw_mem_fail_at(0);
		tw_arena_free(a);
	}
	assert_in_range(n, 2, 199);
	free(text);
	json_decref(doc);
	tw_buf_done(&m.bytes);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_as_the_original),
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_native_frames),
        cmocka_unit_test(test_what_has_no_names_stays),
        cmocka_unit_test(test_what_has_no_names_stays_in_samples),
        cmocka_unit_test(test_what_is_no_document),
        cmocka_unit_test(test_no_memory),
};

UNIT_TESTS("anr_names", tests)
