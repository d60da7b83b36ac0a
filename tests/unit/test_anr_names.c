/* Names put into an ANR document when it is read: frames, classes, the verdict, and what must stay.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "anr_names.h"
#include "base/buf.h"

static const char mapping[] = "com.shop.Cart -> a.b:\n"
                              "    1:3:int total(int):10:12 -> c\n"
                              "    4:6:void clear():20:22 -> c\n"
                              "    void save() -> d\n"
                              "com.shop.OrderDao -> a.d:\n"
                              "    void insert() -> e\n";

static struct tw_buf image;
static struct tw_retrace retrace;
static struct tw_arena *arena;

static int setup(void **state)
{
	struct tw_retrace_writer *w = tw_retrace_writer_new(1 << 20);
	struct tw_retrace_stats stats;

	(void)state;
	tw_buf_init(&image, 1 << 20);
	if (!w ||
	        tw_retrace_writer_push(w, (const uint8_t *)mapping, strlen(mapping), NULL) !=
	                TW_OK ||
	        tw_retrace_writer_finish(w, &image, &stats, NULL) != TW_OK)
		return -1;
	tw_retrace_writer_free(w);
	arena = tw_arena_new(64 << 20);
	return tw_retrace_open(image.data, image.len, &retrace, NULL) == TW_OK && arena ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	tw_buf_done(&image);
	arena = tw_arena_free(arena);
	return 0;
}

static void becomes(const char *doc, const char *want)
{
	struct tw_str named = tw_anr_named(arena, tw_str_of(doc), &retrace);

	assert_non_null(named.ptr);
	assert_int_equal(named.len, strlen(want));
	assert_memory_equal(named.ptr, want, named.len);
}

#define THREAD(members) "{\"processes\":[{\"threads\":[{" members "}]}]}"
#define FRAMES(frame)   THREAD("\"frames\":[{" frame "}]")

static void test_frames(void **state)
{
	(void)state;
	becomes(FRAMES("\"name\":\"a.b.d\""), FRAMES("\"name\":\"com.shop.Cart.save\""));
	/* a line tells which of two it is; without, both are told */
	becomes(FRAMES("\"name\":\"a.b.c\",\"where\":\"SourceFile:5\""),
	        FRAMES("\"name\":\"com.shop.Cart.clear\",\"where\":\"SourceFile:5\""));
	becomes(FRAMES("\"name\":\"a.b.c\",\"where\":\"SourceFile:2\""),
	        FRAMES("\"name\":\"com.shop.Cart.total\",\"where\":\"SourceFile:2\""));
	becomes(FRAMES("\"name\":\"a.b.c\",\"where\":\"unavailable:2\""),
	        FRAMES("\"name\":\"com.shop.Cart.total | com.shop.Cart.clear\",\"where\":"
	               "\"unavailable:2\""));
	becomes(FRAMES("\"name\":\"x.y.z\""), FRAMES("\"name\":\"x.y.z\""));
	becomes(FRAMES("\"name\":\"a.b.d\",\"kind\":\"native\""),
	        FRAMES("\"name\":\"a.b.d\",\"kind\":\"native\""));
	becomes(FRAMES("\"name\":\"nodot\""), FRAMES("\"name\":\"nodot\""));
	becomes(FRAMES("\"name\":7"), FRAMES("\"name\":7"));
}

static void test_classes(void **state)
{
	(void)state;
	becomes(THREAD("\"held\":[{\"type\":\"a.b\"},{\"type\":\"java.lang.Class<a.d>\"}],"
	               "\"wants\":{\"type\":\"a.b\"}"),
	        THREAD("\"held\":[{\"type\":\"com.shop.Cart\"},{\"type\":\"java.lang.Class<com."
	               "shop."
	               "OrderDao>\"}],\"wants\":{\"type\":\"com.shop.Cart\"}"));
	becomes(THREAD("\"held\":[{\"type\":\"java.lang.Object\"},{\"type\":\"java.lang.Class<\"}"
	               "]"),
	        THREAD("\"held\":[{\"type\":\"java.lang.Object\"},{\"type\":\"java.lang.Class<\"}"
	               "]"));
	becomes(FRAMES("\"name\":\"x.y.z\",\"locks\":[{\"type\":\"a.b\"}]"),
	        FRAMES("\"name\":\"x.y.z\",\"locks\":[{\"type\":\"com.shop.Cart\"}]"));
}

static void test_steps(void **state)
{
	(void)state;
	becomes("{\"processes\":[{\"main_frame\":{\"name\":\"a.b.d\"},\"chain\":[{\"frame\":"
	        "{\"name\":\"a.b.d\"},\"app_frame\":null,\"taken_in\":{\"name\":\"a.d.e\"},"
	        "\"wants\":{\"type\":\"a.b\"}}],\"cycles\":[{\"threads\":[{\"frame\":{\"name\":"
	        "\"a.d.e\"}}]}]}]}",
	        "{\"processes\":[{\"main_frame\":{\"name\":\"com.shop.Cart.save\"},\"chain\":[{"
	        "\"frame\":{\"name\":\"com.shop.Cart.save\"},\"app_frame\":null,\"taken_in\":{"
	        "\"name\":\"com.shop.OrderDao.insert\"},\"wants\":{\"type\":\"com.shop.Cart\"}}],"
	        "\"cycles\":[{\"threads\":[{\"frame\":{\"name\":\"com.shop.OrderDao.insert\"}}]}]}]"
	        "}");
}

#define PARTS                                                                                      \
	"\"verdict_parts\":[\"main waits for a lock of \",{\"class\":\"a.b\"},\" in \","           \
	"{\"method\":\"a.d.e\"},\" and \",{\"method\":\"x.y.z\"}]"

static void test_the_verdict(void **state)
{
	(void)state;
	becomes("{\"verdict\":\"old\"," PARTS "}",
	        "{\"verdict\":\"main waits for a lock of Cart in OrderDao.insert and y.z\"," PARTS
	        "}");
	becomes("{\"verdict\":\"old\",\"verdict_parts\":[]}",
	        "{\"verdict\":\"old\",\"verdict_parts\":[]}");
	becomes("{\"verdict\":\"old\",\"verdict_parts\":[7,{}]}",
	        "{\"verdict\":\"old\",\"verdict_parts\":[7,{}]}");
}

static void test_what_is_no_document(void **state)
{
	(void)state;
	becomes("[1]", "[1]");
	becomes("{", "{");
	becomes("{\"processes\":[7,null,{\"threads\":{}}]}",
	        "{\"processes\":[7,null,{\"threads\":{}}]}");
}

static void test_no_memory(void **state)
{
	struct tw_arena *small = tw_arena_new(64);

	(void)state;
	if (small)
		assert_null(
		        tw_anr_named(small, TW_STR(FRAMES("\"name\":\"a.b.d\"")), &retrace).ptr);
	tw_arena_free(small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_frames),
	        cmocka_unit_test(test_classes),
	        cmocka_unit_test(test_steps),
	        cmocka_unit_test(test_the_verdict),
	        cmocka_unit_test(test_what_is_no_document),
	        cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("anr_names", tests, setup, teardown);
}
