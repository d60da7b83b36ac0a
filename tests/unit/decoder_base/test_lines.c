/* Unit tests of lines.c: ends and limits of lines; splitting the input changes nothing (I3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "decoder/base/buf.h"
#include "decoder/formats/lines.h"
#include "tests/unit/unit.h"

enum { MAX = 8 };

struct seen { /* each line as "offset:text", "+" too long, "~" not ended, then "|" */
	struct tw_buf text;
	int fail_at; /* this line is refused; 0 none */
};

static enum tw_status each(void *arg, const struct tw_line *line, struct tw_err *err)
{
	struct seen *s = arg;

	if (s->fail_at && --s->fail_at == 0)
		return tw_fail_at(err, TW_CORRUPT, line->offset, "refused");
	(void)tw_buf_printf(&s->text, "%llu:", (unsigned long long)line->offset);
	(void)tw_buf_add_str(&s->text, line->text);
	return tw_buf_printf(&s->text, "%s%s|", line->too_long ? "+" : "", line->ended ? "" : "~");
}

/* Pushes the input in pieces of `step` bytes. */
static struct tw_buf lines_of(struct tw_str input, size_t step, size_t max_bytes)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct seen s = {0};
	struct tw_lines l;

	tw_buf_init(&s.text, 1 << 16);
	assert_true(tw_lines_init(&l, a, max_bytes, each, &s));
	for (size_t at = 0; at < input.len; at += step) {
		size_t n = input.len - at < step ? input.len - at : step;

		assert_int_equal(
		        tw_lines_push(&l, (const uint8_t *)input.ptr + at, n, NULL), TW_OK);
	}
	assert_int_equal(tw_lines_finish(&l, TW_LINES_OPEN, NULL), TW_OK);
	assert_int_equal(
	        tw_lines_finish(&l, TW_LINES_OPEN, NULL), TW_OK); /* once reported as lost */
	tw_arena_free(a);
	return s.text;
}

static void is_cut_anywhere(struct tw_str input, const char *want)
{
	for (size_t step = 1; step <= input.len + 1; step++) {
		struct tw_buf got = lines_of(input, step, MAX);

		(void)tw_buf_add_u8(&got, 0);
		assert_string_equal((const char *)got.data, want);
		tw_buf_done(&got);
	}
}

static void test_lines(void **state)
{
	(void)state;
	is_cut_anywhere(TW_STR(""), "");
	is_cut_anywhere(TW_STR("\n"), "0:|");
	is_cut_anywhere(TW_STR("a\n\nbc\n"), "0:a|2:|3:bc|");
	is_cut_anywhere(TW_STR("a\r\nb\rc\r\n\r\n"), "0:a|3:b\rc|8:|");
	is_cut_anywhere(TW_STR("a\nbc"), "0:a|2:bc~|");
	is_cut_anywhere(TW_STR("a\nbc\r"), "0:a|2:bc\r~|");
}

/* A bound of 8: at it, one past it, with the "\r" that is not of the line, and with one that is. */
static void test_bound(void **state)
{
	(void)state;
	is_cut_anywhere(TW_STR("12345678\nx\n"), "0:12345678|9:x|");
	is_cut_anywhere(TW_STR("12345678\r\nx\n"), "0:12345678|10:x|");
	is_cut_anywhere(TW_STR("123456789\nx\n"), "0:12345678+|10:x|");
	is_cut_anywhere(TW_STR("123456789\r\nx\n"), "0:12345678+|11:x|");
	is_cut_anywhere(TW_STR("12345678\r9\nx\n"), "0:12345678+|11:x|");
	is_cut_anywhere(TW_STR("1234567890abcdef\n\n"), "0:12345678+|17:|");
	is_cut_anywhere(TW_STR("12345678"), "0:12345678~|");
	is_cut_anywhere(TW_STR("123456789"), "0:12345678+~|");
	is_cut_anywhere(TW_STR("12345678\r"), "0:12345678+~|");
}

struct counted {
	struct tw_sink sink; /* first */
	uint64_t n, offset;
	unsigned believed;
};

static void count(struct tw_sink *s, enum tw_repair what, uint64_t offset, uint64_t n)
{
	struct counted *c = (struct counted *)(void *)s;

	assert_int_equal(what, TW_REPAIR_input_truncated);
	c->n += n;
	c->offset = offset;
}

static enum tw_status believe(void *arg, const struct tw_line *line, struct tw_err *err)
{
	struct counted *c = arg;

	(void)err;
	c->believed += !tw_line_is_cut(line, &c->sink);
	return TW_OK;
}

/* A last line without a newline is used if the container marks the end of the text; otherwise it is
 * counted, once. */
static void test_last_line(void **state)
{
	static const struct tw_sink_ops ops = {.repair = count};
	static const struct {
		enum tw_lines_end how;
		unsigned believed;
		uint64_t counted;
	} rows[] = {{TW_LINES_OPEN, 1, 1}, {TW_LINES_CUT, 1, 0}, {TW_LINES_WHOLE, 2, 0}};
	struct tw_arena *a = tw_arena_new(1 << 20);

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct counted c = {.sink = {&ops}};
		struct tw_lines l;

		assert_true(tw_lines_init(&l, a, MAX, believe, &c));
		assert_int_equal(tw_lines_push(&l, (const uint8_t *)"ab\ncd", 5, NULL), TW_OK);
		assert_int_equal(tw_lines_finish(&l, rows[i].how, NULL), TW_OK);
		assert_int_equal(c.believed, rows[i].believed);
		assert_int_equal(c.n, rows[i].counted);
		assert_int_equal(c.offset, rows[i].counted ? 3 : 0);
	}
	tw_arena_free(a);
}

static void test_refused(void **state)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct seen s = {.fail_at = 2};
	struct tw_err err = {0};
	struct tw_lines l;

	(void)state;
	tw_buf_init(&s.text, 1 << 16);
	assert_true(tw_lines_init(&l, a, MAX, each, &s));
	assert_int_equal(tw_lines_push(&l, (const uint8_t *)"a\nb\nc\n", 6, &err), TW_CORRUPT);
	assert_int_equal(err.offset, 2);
	assert_int_equal(s.text.len, 4); /* nothing was emitted after the refusal */
	tw_buf_done(&s.text);
	tw_arena_free(a);
}

static void test_no_memory(void **state)
{
	struct tw_arena *a = tw_arena_new(1 << 20);
	struct tw_lines l;

	(void)state;
	tw_mem_fail_at(1);
	assert_false(tw_lines_init(&l, a, 1 << 19, each, NULL));
	tw_mem_fail_at(0);
	assert_true(tw_lines_init(&l, a, 1 << 19, each, NULL));
	tw_arena_free(a);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_last_line),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_memory),
};

UNIT_TESTS("lines", tests)
