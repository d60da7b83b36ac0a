/* Unit tests of decoder/base: arena, buffer, strings, error record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "decoder/base/arena.h"
#include "decoder/base/buf.h"
#include "decoder/base/err.h"
#include "decoder/base/hash.h"
#include "decoder/base/list.h"
#include "decoder/base/lookup.h"
#include "decoder/base/str.h"
#include "tests/unit/unit.h"

static void test_arena_keeps_its_limit(void **state)
{
	struct tw_arena *a = tw_arena_new(10000);
	volatile size_t huge = SIZE_MAX; /* hidden from the compiler, which would refuse it */

	(void)state;
	assert_non_null(tw_arena_alloc(a, 1, 9000));
	assert_null(tw_arena_alloc(a, 1, 9000));
	assert_non_null(tw_arena_alloc(a, 1, 16));
	tw_arena_reset(a);
	assert_null(tw_arena_alloc(a, huge, 2));
	tw_arena_free(a);
}

static void test_buf_status_is_sticky(void **state)
{
	struct tw_buf b;

	(void)state;
	tw_buf_init(&b, 4);
	assert_int_equal(tw_buf_add(&b, "abc", 3), TW_OK);
	assert_int_equal(tw_buf_add(&b, "de", 2), TW_TOO_LARGE);
	assert_int_equal(tw_buf_add(&b, "f", 1), TW_TOO_LARGE);
	assert_int_equal(b.len, 3);
	tw_buf_done(&b);
}

static void test_sleb(void **state)
{
	static const struct {
		uint8_t bytes[11];
		size_t n;
		int64_t value;
		bool good;
	} rows[] = {
	        {{0}, 1, 0, true},
	        {{0x3f}, 1, 63, true},
	        {{0x40}, 1, -64, true},
	        {{0x7f}, 1, -1, true},
	        {{0xc0, 0}, 2, 64, true},
	        {{0x80, 0x7f}, 2, -128, true},
	        {{0xb8, 0xc1, 0xca, 0x89, 0x07}, 5, 0x7132a0b8, true},
	        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0}, 10, INT64_MAX, true},
	        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f}, 10, INT64_MIN, true},
	        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1}, 10, 0, false},
	        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}, 11, 0, false},
	        {{0x80}, 1, 0, false},
	        {{0}, 0, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const uint8_t *at = rows[i].bytes;
		int64_t value = 77;

		assert_int_equal(tw_get_sleb(&at, at + rows[i].n, &value), rows[i].good);
		assert_true(value == (rows[i].good ? rows[i].value : 77));
		assert_int_equal(at - rows[i].bytes, rows[i].good ? rows[i].n : 0);
	}
}

static void test_varint_round_trip(void **state)
{
	static const uint64_t values[] = {0, 1, 127, 128, 16383, 16384, (1 << 21) - 1, 1 << 21,
	        (1 << 28) - 1, 1 << 28, UINT32_MAX, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		uint8_t p[10];
		uint8_t other[10];
		const uint8_t *q = p;
		uint8_t *end = tw_put_varint(p, values[i]);
		uint64_t v = 0;

		assert_true(tw_get_varint(&q, end, &v));
		assert_true(v == values[i] && q == end);
		assert_int_equal(tw_put_varint_branchless(other, values[i]) - other, end - p);
		assert_memory_equal(other, p, (size_t)(end - p));
		q = p;
		assert_false(tw_get_varint(&q, end - 1, &v) && q == end);
	}
}

static void test_utf8_clean_replaces_bad_bytes(void **state)
{
	char out[16];

	(void)state;
	assert_int_equal(tw_utf8_clean(out, sizeof out, (struct tw_str){"a\xff\0b", 4}), 8);
	assert_string_equal(out, "a\xEF\xBF\xBD\xEF\xBF\xBD"
	                         "b");
	assert_int_equal(tw_utf8_clean(out, 4, TW_STR("\xC3\xA9\xC3\xA9")), 2);
	/* U+1F600 and U+10FFFF in Java's way; half a pair is not a character */
	assert_int_equal(tw_utf8_clean(out, sizeof out,
	                         TW_STR("\xED\xA0\xBD\xED\xB8\x80\xED\xAF\xBF\xED\xBF\xBF")),
	        8);
	assert_string_equal(out, "\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF");
	assert_int_equal(tw_utf8_clean(out, sizeof out, TW_STR("\xED\xA0\xBD!")), 10);
	assert_int_equal(tw_utf8_clean(out, 4, TW_STR("\xED\xA0\xBD\xED\xB8\x80")), 0);
}

static void test_fail_makes_one_line(void **state)
{
	struct tw_err err;

	(void)state;
	(void)tw_fail_at(&err, TW_CORRUPT, 7, "\xC2\x9B\xD8\x9C\xE2\x80\xAE\xEF\xBB\xBF\xC3\xA9");
	assert_string_equal(err.msg, "??????????\xC3\xA9");
	tw_err_copy(NULL, &err);
	assert_int_equal(tw_fail_at(&err, TW_CORRUPT, 7, "bad\n%s", "\x01"), TW_CORRUPT);
	assert_string_equal(err.msg, "bad??");
	assert_int_equal(tw_status_http(TW_CORRUPT), 422);
	assert_int_equal(tw_status_of_name("malformed"), TW_CORRUPT);
}

static void test_i64(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		int64_t value;
	} rows[] = {{"0", true, 0}, {"-0", true, 0}, {"-1", true, -1},
	        {"9223372036854775807", true, INT64_MAX}, {"9223372036854775808", false, 0},
	        {"-9223372036854775808", true, INT64_MIN}, {"-9223372036854775809", false, 0},
	        {"", false, 0}, {"-", false, 0}, {"--1", false, 0}, {"+1", false, 0},
	        {"1 ", false, 0}, {"1-", false, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int64_t v = 77;

		assert_int_equal(tw_str_i64(tw_str_of(rows[i].text), &v), rows[i].ok);
		assert_int_equal(v, rows[i].ok ? rows[i].value : 77);
	}
}

/* Strings with equal unsalted FNV-1a hashes are spread, and differently for another salt. */
static void test_salted_strings(void **state)
{
	enum { STRINGS = 4096, SLOTS = 4096 };
	static unsigned used[2][SLOTS];
	unsigned most = 0, moved = 0, n = 0;

	(void)state;
	for (unsigned i = 0; n < STRINGS; i++) {
		char text[40];
		int len = snprintf(text, sizeof text, "com.example.Class%u", i);
		struct tw_str s = {text, (size_t)len};
		uint64_t fnv = 0xCBF29CE484222325u;
		uint64_t at[2];

		for (size_t k = 0; k < s.len; k++)
			fnv = (fnv ^ (unsigned char)s.ptr[k]) * 0x100000001B3u;
		if (fnv & 0xFF)
			continue;
		n++;
		for (int salt = 0; salt < 2; salt++) {
			at[salt] = tw_hash_str(s, (uint64_t)salt) % SLOTS;
			if (++used[salt][at[salt]] > most)
				most = used[salt][at[salt]];
		}
		moved += at[0] != at[1];
		assert_int_equal(tw_hash_str(s, 7), tw_hash_str(tw_str_of(text), 7));
	}
	assert_in_range(most, 3, 12);
	assert_in_range(moved, STRINGS - 20, STRINGS);
	/* the length is hashed: a string has another slot than the same string and a NUL */
	assert_int_not_equal(tw_hash_str((struct tw_str){"a\0", 1}, 7),
	        tw_hash_str((struct tw_str){"a\0", 2}, 7));
	(void)tw_hash_str(TW_STR(""), 7);
}

static void test_arena_fits(void **state)
{
	struct tw_arena *a = tw_arena_new(10000);
	size_t n = 0;

	(void)state;
	assert_true(tw_arena_fits(a, 10000));
	assert_false(tw_arena_fits(a, 10001));
	assert_false(tw_arena_fits(a, SIZE_MAX));
	for (; tw_arena_fits(a, 100); n++)
		assert_non_null(tw_arena_alloc(a, 100, 1));
	assert_null(tw_arena_alloc(a, 100, 1));
	assert_in_range(n, 70, 10000 / 112); /* a sanitizer puts borders between them */
	tw_arena_free(a);
}

/* A row is found by a text in it and by one that it points to. */
static void test_lookup(void **state)
{
	struct row {
		char *owned;
		const char *lent;
		char held[4];
	} rows[2] = {{NULL, NULL, "a"}, {NULL, NULL, "b"}};
	const struct row *fixed = rows;

	(void)state;
	for (int i = 0; i < 2; i++)
		rows[i].owned = rows[i].held, rows[i].lent = rows[i].held;
	assert_ptr_equal(TW_LOOKUP(rows, 2, held, "b"), &rows[1]);
	assert_ptr_equal(TW_LOOKUP(rows, 2, lent, "b"), &rows[1]);
	assert_ptr_equal(TW_LOOKUP(rows, 2, owned, "b"), &rows[1]);
	assert_ptr_equal(TW_LOOKUP(fixed, 2, held, "b"), &rows[1]);
	assert_ptr_equal(TW_LOOKUP(fixed, 2, lent, "b"), &rows[1]);
	assert_ptr_equal(TW_LOOKUP(fixed, 2, owned, "b"), &rows[1]);
	assert_null(TW_LOOKUP(rows, 2, owned, "c"));
}

static void test_filled_pages(void **state)
{
	enum { LARGE = 2 << 20 };
	size_t bytes = LARGE / 2;
	uint8_t *p = NULL;

	(void)state;
	assert_int_equal(tw_mem_fill_pages(0), 0);
	assert_int_equal(tw_mem_fill_pages(LARGE / 2 + 3), LARGE / 2 + 3);
	assert_int_equal(tw_mem_fill_pages(SIZE_MAX - 1), SIZE_MAX - 1);
	for (int i = 1; i <= 4; i++) { /* an array that doubles stays below multiples */
		bytes = tw_mem_fill_pages(bytes * 2);
		assert_in_range(
		        bytes, ((size_t)LARGE << (i - 1)) - 64, ((size_t)LARGE << (i - 1)) - 1);
		p = tw_mem_resize(p, bytes, 1);
		assert_non_null(p);
		tw_mem_will_fill(p, bytes);
		memset(p + bytes / 2, i, bytes - bytes / 2);
		assert_int_equal(p[bytes / 2], i);
	}
	assert_int_equal(p[LARGE - 100], 1);
	tw_mem_free(p);
	p = tw_mem_alloc_to_fill(3 * LARGE);
	assert_int_equal((uintptr_t)p % LARGE, 0);
	tw_mem_free(p);
	p = tw_mem_alloc_to_grow(3 * LARGE);
	assert_int_equal((uintptr_t)p % LARGE, 0);
	memset(p, 1, LARGE + 1);
	tw_mem_free(p);
}

static void test_dropped_pages(void **state)
{
	enum { LARGE = 2 << 20, PAGE = 4096 };
	uint8_t *p = tw_mem_alloc(2 * LARGE, 1);

	(void)state;
	assert_non_null(p);
	memset(p, 7, 2 * LARGE);
	tw_mem_drop(p, PAGE); /* less than a large page */
	tw_mem_drop(NULL, LARGE);
	assert_int_equal(p[0] + p[PAGE - 1], 14);
	tw_mem_drop(p, 2 * LARGE - 1);
	assert_int_equal(p[PAGE], 0);
	assert_int_equal(p[2 * LARGE - 1], 7);
	tw_mem_free(p); /* which reads its first bytes */
}

static void check_growing(struct tw_arena *a)
{
	uint32_t *items = NULL;
	uint32_t cap = 0;

	for (uint32_t i = 0; i < 100; i++) {
		assert_true(TW_GROW_FROM(8, a, items, i, cap));
		assert_int_equal(cap, i < 8 ? 8 : i < 16 ? 16 : i < 32 ? 32 : i < 64 ? 64 : 128);
		items[i] = i;
	}
	tw_mem_fail_at(a ? 0 : 1);
	assert_false(TW_GROW_FROM(8, a, items, cap, cap));
	tw_mem_fail_at(0);
	assert_int_equal(cap, 128);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(items[i], i);
	if (!a)
		tw_mem_free(items);
}

static void test_lists_double(void **state)
{
	struct tw_arena *a = tw_arena_new(4 * 256 + 256);
	uint32_t *items = NULL;
	uint32_t few = 0;
	uint32_t cap = 3u << 30;

	(void)state;
	check_growing(a);
	check_growing(NULL);
	assert_true(TW_RESERVE_FROM(8, NULL, items, 0, 20, few));
	assert_int_equal(few, 32);
	assert_true(TW_RESERVE_FROM(8, NULL, items, 30, 20, few));
	assert_int_equal(few, 32);
	tw_mem_free(items);
	items = NULL;
	assert_false(TW_GROW_MEM(items, cap, cap)); /* twice as many do not fit 32 bits */
	tw_arena_free(a);
}

static void test_bytes(void **state)
{
	struct tw_arena *a = tw_arena_new(SIZE_MAX);
	struct tw_bytes b = {0};
	static uint8_t page[4096];

	(void)state;
	assert_true(tw_bytes_add(&b, a, NULL, 0));
	page[4095] = 7;
	for (int i = 0; i < 3; i++)
		assert_true(tw_bytes_add(&b, a, page, sizeof page));
	assert_int_equal(b.n, 3 * sizeof page);
	assert_int_equal(b.cap, 4 * sizeof page);
	assert_int_equal(b.data[4095] + b.data[2 * 4096 - 1] + b.data[b.n - 1], 21);
	assert_false(tw_bytes_add(&b, a, page, (size_t)UINT32_MAX + 1));
	assert_int_equal(b.n, 3 * sizeof page);
	tw_arena_free(a);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lookup),
        cmocka_unit_test(test_i64),
        cmocka_unit_test(test_arena_keeps_its_limit),
        cmocka_unit_test(test_buf_status_is_sticky),
        cmocka_unit_test(test_sleb),
        cmocka_unit_test(test_varint_round_trip),
        cmocka_unit_test(test_salted_strings),
        cmocka_unit_test(test_arena_fits),
        cmocka_unit_test(test_filled_pages),
        cmocka_unit_test(test_dropped_pages),
        cmocka_unit_test(test_lists_double),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_utf8_clean_replaces_bad_bytes),
        cmocka_unit_test(test_fail_makes_one_line),
};

UNIT_TESTS("base", tests)
