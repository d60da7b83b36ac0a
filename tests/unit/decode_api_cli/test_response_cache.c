/* Unit tests of response_cache.c: which responses are stored, which are evicted, and its limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/base/arena.h"
#include "server/http/response_cache.h"
#include "tests/unit/unit.h"

enum { ROOM = 64 << 10, PIECE = 4000 };

static void keep(struct tw_response_cache *a, const char *key, char fill, size_t len)
{
	static char bytes[ROOM];

	memset(bytes, fill, sizeof bytes);
	tw_response_cache_put(a, key, (struct tw_str){bytes, len});
}

/* Returns the length of the response cached under the key, 0 none; all its bytes are `fill`. */
static size_t taken(struct tw_response_cache *a, const char *key, char fill)
{
	struct tw_buf out;
	size_t len;

	tw_buf_init(&out, ROOM);
	(void)tw_response_cache_get(a, key, &out);
	len = out.len;
	for (size_t i = 0; i < len; i++)
		assert_int_equal(out.data[i], fill);
	tw_buf_done(&out);
	return len;
}

static void last_wins(void **state)
{
	struct tw_response_cache *a = tw_response_cache_new(ROOM);

	(void)state;
	assert_int_equal(taken(a, "a", 'x'), 0);
	keep(a, "a", 'x', PIECE);
	keep(a, "b", 'y', PIECE);
	assert_int_equal(taken(a, "a", 'x'), PIECE);
	keep(a, "a", 'z', 10);
	assert_int_equal(taken(a, "a", 'z'), 10);
	assert_int_equal(taken(a, "b", 'y'), PIECE);
	keep(a, "empty", 'x', 0);
	assert_int_equal(taken(a, "empty", 'x'), 0);
	tw_response_cache_free(a);
}

static uint64_t reported(struct tw_response_cache *a, const char *name)
{
	struct tw_buf out;
	const char *at;
	unsigned long long n = 0;

	tw_buf_init(&out, ROOM);
	tw_response_cache_metrics(a, &out);
	assert_int_equal(tw_buf_add(&out, "", 1), TW_OK);
	at = strstr((const char *)out.data, name);
	assert_non_null(at);
	assert_int_equal(sscanf(at + strlen(name), " %llu", &n), 1);
	tw_buf_done(&out);
	return n;
}

/* The most recently used one remains, whatever its age. */
static void bounded(void **state)
{
	struct tw_response_cache *a = tw_response_cache_new(ROOM);
	char key[16];

	(void)state;
	keep(a, "first", 'f', PIECE);
	for (int i = 0; i < 2000; i++) {
		(void)snprintf(key, sizeof key, "%d", i);
		keep(a, key, 'x', i < 1000 ? PIECE : 1);
		assert_int_equal(taken(a, key, 'x'), i < 1000 ? PIECE : 1);
		assert_int_equal(taken(a, "first", 'f'), PIECE);
		assert_true(reported(a, "tracewell_response_cache_bytes") <= ROOM);
	}
	assert_int_equal(taken(a, "0", 'x'), 0);
	assert_int_equal(taken(a, "999", 'x'), 0); /* by their number, too */
	assert_int_equal(reported(a, "tracewell_response_cache_hits_total"), 4000);
	tw_response_cache_free(a);
}

static void too_large_is_not_kept(void **state)
{
	struct tw_response_cache *a = tw_response_cache_new(ROOM);
	struct tw_response_cache *none = tw_response_cache_new(0);

	(void)state;
	keep(a, "small", 's', PIECE);
	keep(a, "large", 'l', ROOM / 8);
	assert_int_equal(taken(a, "large", 'l'), 0);
	assert_int_equal(taken(a, "small", 's'), PIECE);
	keep(none, "a", 'x', 1);
	assert_int_equal(taken(none, "a", 'x'), 0);
	tw_response_cache_free(a);
	tw_response_cache_free(none);
	assert_null(tw_response_cache_free(NULL));
}

/* Either of two allocations fails: nothing is cached, and nothing leaks. */
static void without_memory(void **state)
{
	struct tw_response_cache *a = tw_response_cache_new(ROOM);

	(void)state;
	for (uint64_t n = 1; n <= 2; n++) {
		tw_mem_fail_at(n);
		keep(a, "a", 'x', PIECE);
		tw_mem_fail_at(0);
		assert_int_equal(taken(a, "a", 'x'), 0);
	}
	keep(a, "a", 'x', PIECE);
	assert_int_equal(taken(a, "a", 'x'), PIECE);
	tw_response_cache_free(a);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_wins),
        cmocka_unit_test(bounded),
        cmocka_unit_test(too_large_is_not_kept),
        cmocka_unit_test(without_memory),
};

UNIT_TESTS("response_cache", tests)
