/* Unit tests of decoder/symbols/method_map: the text's grammar, the image, look-ups in damaged
 * ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "decoder/symbols/map_text.h"
#include "decoder/symbols/method_map.h"
#include "tests/unit/unit.h"

struct made {
	enum tw_status status;
	struct tw_err err;
	struct tw_map_stats stats;
	struct tw_buf image;
	struct tw_map map;
};

/* Pushes text in pieces of `step` bytes. */
static struct made make(const char *text, size_t len, size_t step, uint64_t max, uint32_t entries)
{
	struct tw_map_writer *w = tw_map_writer_new(max, entries);
	struct made m = {.status = w ? TW_OK : TW_NOMEM};

	tw_buf_init(&m.image, 1 << 24);
	for (size_t at = 0; m.status == TW_OK && at < len; at += step)
		m.status = tw_map_writer_push(
		        w, (const uint8_t *)text + at, len - at < step ? len - at : step, &m.err);
	if (m.status == TW_OK)
		m.status = tw_map_writer_finish(w, &m.image, &m.stats, &m.err);
	tw_map_writer_free(w);
	if (m.status == TW_OK)
		m.status = tw_map_open(m.image.data, m.image.len, &m.map, &m.err);
	return m;
}

static const char text[] = "\xEF\xBB\xBF#e1534ea1-7ba6\n"
                           "7,1,a.b.C$D one (I)V\r\n"
                           "3,8,a.b.C$D <clinit> ()V\n"
                           "\n"
                           "no mapping line\n"
                           "#second\n"
                           "16777214,1,android.os.Handler dispatchMessage (Landroid.os.Message;)V\n"
                           "7,2,a.b.C two\n"
                           "2147483647,4294967295,x y";

static void test_grammar(void **state)
{
	struct made m = make(text, sizeof text - 1, sizeof text, 1 << 20, 100);
	struct tw_method_name name;
	char out[64];

	(void)state;
	assert_int_equal(m.status, TW_OK);
	assert_int_equal(m.stats.lines, 6);
	assert_int_equal(m.stats.entries, 4);
	assert_int_equal(m.stats.duplicates, 1);
	assert_int_equal(m.stats.malformed, 1);
	assert_int_equal(m.stats.first_malformed, strstr(text, "no mapping") - text);
	assert_string_equal(m.stats.version, "e1534ea1-7ba6");
	assert_true(tw_map_find(&m.map, 7, &name)); /* the last wins */
	assert_int_equal(name.access_flags, 2);
	assert_int_equal(name.descriptor.len, 0);
	assert_true(tw_map_display(&m.map, 7, out, sizeof out));
	assert_string_equal(out, "a.b.C.two");
	assert_true(tw_map_find(&m.map, 3, &name));
	assert_true(tw_str_eq(name.method, TW_STR("<clinit>")));
	assert_true(tw_str_eq(name.descriptor, TW_STR("()V")));
	assert_true(tw_map_find(&m.map, INT32_MAX, &name));
	assert_false(tw_map_find(&m.map, 4, &name));
	assert_false(tw_map_find(&m.map, ((uint64_t)1 << 32) + 3, &name));
	assert_false(tw_map_display(&m.map, 4, out, sizeof out));
	assert_string_equal(out, "unknown:4");
	assert_false(tw_map_display(NULL, UINT64_MAX, out, sizeof out));
	assert_string_equal(out, "unknown:18446744073709551615");
	assert_true(tw_map_display(&m.map, 16777214, out, 8)); /* cut to what there is room for */
	assert_string_equal(out, "android");
	tw_buf_done(&m.image);
}

static void test_cuts_change_nothing(void **state)
{
	struct made whole = make(text, sizeof text - 1, sizeof text, 1 << 20, 100);

	(void)state;
	for (size_t step = 1; step < sizeof text; step++) {
		struct made m = make(text, sizeof text - 1, step, 1 << 20, 100);

		assert_int_equal(m.status, TW_OK);
		assert_int_equal(m.image.len, whole.image.len);
		assert_memory_equal(m.image.data, whole.image.data, whole.image.len);
		assert_memory_equal(&m.stats, &whole.stats, sizeof m.stats);
		tw_buf_done(&m.image);
	}
	tw_buf_done(&whole.image);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text;
		uint64_t offset;
	} none[] = {
	        {"", 0},
	        {"# only a comment\n", 0},
	        {"\n\n<html>\n", 2},
	        {"a.b.C -> d:\n    void x() -> y\n", 0},
	        {"1,1,class-without-method\n", 0},
	        {"x,1,a b\n", 0},
	        {"2147483648,1,a b\n", 0},
	        {"-1,1,a b\n", 0},
	        {"1,4294967296,a b\n", 0},
	};
	struct made m;

	(void)state;
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		m = make(none[i].text, strlen(none[i].text), 7, 1000, 10);
		assert_int_equal(m.status, TW_CORRUPT);
		assert_int_equal(m.err.offset, none[i].offset);
		tw_buf_done(&m.image);
	}
	m = make("1,1,a\0 b\n", 9, 9, 1000, 10);
	assert_int_equal(m.status, TW_CORRUPT);
	tw_buf_done(&m.image);
}

static void test_limits(void **state)
{
	static const char three[] = "1,1,a b\n2,1,a b\n3,1,a b\n";
	static char line[(32 << 10) + 2];
	struct made m = make(three, sizeof three - 1, 5, sizeof three - 1, 3);

	(void)state;
	assert_int_equal(m.status, TW_OK);
	tw_buf_done(&m.image);
	m = make(three, sizeof three - 1, 5, sizeof three - 1, 2);
	assert_int_equal(m.status, TW_TOO_LARGE);
	tw_buf_done(&m.image);
	m = make(three, sizeof three - 1, 5, sizeof three - 2, 3);
	assert_int_equal(m.status, TW_TOO_LARGE);
	tw_buf_done(&m.image);
	for (size_t over = 0; over < 2; over++) { /* a line at its limit, and one byte more */
		(void)snprintf(line, sizeof line, "1,1,a m ");
		memset(line + 8, 'd', sizeof line - 9);
		m = make(line, (32 << 10) + over, 1000, 1 << 20, 10);
		assert_int_equal(m.status, over ? TW_CORRUPT : TW_OK);
		tw_buf_done(&m.image);
	}
}

static void test_damaged_images(void **state)
{
	struct made m = make(text, sizeof text - 1, sizeof text, 1 << 20, 100);
	struct tw_method_name name;
	struct tw_map map;

	(void)state;
	for (size_t len = 0; len < m.image.len; len++)
		assert_int_equal(tw_map_open(m.image.data, len, &map, NULL), TW_CORRUPT);
	for (size_t at = 0; at < m.image.len; at++)
		for (int bit = 0; bit < 8; bit++) {
			m.image.data[at] ^= (uint8_t)(1 << bit);
			if (tw_map_open(m.image.data, m.image.len, &map, NULL) == TW_OK)
				for (uint64_t id = 0; id < 9; id++)
					(void)tw_map_find(
					        &map, id, &name); /* the sanitizer watches */
			m.image.data[at] ^= (uint8_t)(1 << bit);
		}
	tw_buf_done(&m.image);
}

static void test_memory_that_fails(void **state)
{
	bool done = false;

	(void)state;
	for (uint64_t n = 1; !done; n++) {
		struct made m;

		tw_mem_fail_at(n);
		m = make(text, sizeof text - 1, 9, 1 << 20, 100);
		done = tw_mem_count() < n;
		tw_mem_fail_at(0);
		assert_int_equal(m.status, done ? TW_OK : TW_NOMEM);
		tw_buf_done(&m.image);
	}
}

/* By the first meaningful line, whatever the length of the text. */
static void test_kinds(void **state)
{
	static const struct {
		const char *text;
		enum tw_map_text kind;
	} rows[] = {
	        {"", TW_MAP_TEXT_NONE},
	        {"# compiler: R8\n\n", TW_MAP_TEXT_NONE},
	        {"1,2,a.B run ()V\n", TW_MAP_TEXT_METHODS},
	        {"\xEF\xBB\xBF\r\n1,2,a.B", TW_MAP_TEXT_METHODS},
	        {"1,2,", TW_MAP_TEXT_NONE},
	        {"1,main\n2,3,a.B c\n", TW_MAP_TEXT_NONE},
	        {"# compiler: R8\r\na.B -> c.d:\r\n", TW_MAP_TEXT_RETRACE},
	        {"a.B -> c.d", TW_MAP_TEXT_NONE},
	        {"words:\na.B -> c.d:\n", TW_MAP_TEXT_NONE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(tw_map_text_of(tw_str_of(rows[i].text)), rows[i].kind);
	assert_null(tw_map_text_belongs(TW_MAP_TEXT_NONE));
	assert_non_null(strstr(tw_map_text_belongs(TW_MAP_TEXT_METHODS), "/methods"));
	assert_non_null(strstr(tw_map_text_belongs(TW_MAP_TEXT_RETRACE), "/retrace"));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_cuts_change_nothing),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_damaged_images),
        cmocka_unit_test(test_memory_that_fails),
};

UNIT_TESTS("method_map", tests)
